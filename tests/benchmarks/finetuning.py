"""The command `finetuning`: a training step compared with torch's, on the same rows.

A step is forward and backward pass, clipping and AdamW of MiniLM with a head for two classes, dropout on. Each engine runs in
a process of its own, which is idle while another has its turn, and the best of several rounds counts, by the clock and as
CPU time of all threads. torch and transformers
are not dependencies of this package: `--torch` names a Python interpreter that has them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.process import Engine, EngineError, MissingError

#: What is trained on: the lengths of the rows.
BATCHES: dict[str, list[int]] = {
    "32 × 128 full": [128] * 32,
    "32 of mixed lengths": [
        128,
        *np.clip(np.random.default_rng(1).lognormal(3.5, 0.7, 31), 8, 128).astype(int).tolist(),
    ],
    "16 × 64 full": [64] * 16,
}


def main(arguments: list[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="benchmarks finetuning", description=__doc__)
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"], choices=["float32", "bfloat16"])
    parser.add_argument("--rounds", type=int, default=5, help="of which the best counts")
    parser.add_argument("--torch", type=Path, default=Path(sys.executable), help="a Python with torch and transformers")
    parser.add_argument("--vocabulary", type=int, default=20_000, help="ids are drawn below this")
    parser.add_argument("--record", type=Path, nargs="?", const=report.RECORDS)
    options = parser.parse_args(arguments)

    from wordpiece_bert.hub import find_model

    folder = find_model(options.model)
    lines = [report.heading("A training step compared with torch", f"{options.model}; best of {options.rounds}")]
    print(lines[0], flush=True)
    found: list[dict[str, Any]] = []
    for threads in options.threads:
        for dtype in options.dtypes:
            rows = [_measure(folder, dtype, threads, options, name) for name in BATCHES]
            found += rows
            lines.append(_table(f"{dtype}, {threads} threads" if threads > 1 else f"{dtype}, 1 thread", rows))
            print(lines[-1], flush=True)
    if options.record:
        print(report.save("finetuning", "\n".join(lines), {"rows": found}, options.record))
    return 0


def _measure(folder: Path, dtype: str, threads: int, options: argparse.Namespace, name: str) -> dict[str, Any]:
    """Return seconds, CPU seconds and peak memory of this package and of torch, for one batch."""
    engines: dict[str, Engine] = {}
    row: dict[str, Any] = {"batch": name, "dtype": dtype, "threads": threads}
    try:
        for label, program, interpreter in (
            ("ours", "finetune_ours.py", None),
            ("torch", "finetune_torch.py", options.torch),
        ):
            try:
                engine = Engine(label, threads, program, interpreter)
                engines[label] = engine
                row[label] = {"version": engine.version, "seconds": [], "cpu_seconds": []}
                row[label] |= engine.ask(do="load", folder=str(folder), dtype=dtype, threads=threads)
            except (MissingError, EngineError, OSError) as error:
                print(f"{label} is skipped: {error}", file=sys.stderr)
                if label in engines:
                    engines.pop(label).close()
                row.pop(label, None)
        for turn in range(options.rounds + 1):
            for label, engine in engines.items():
                answer = engine.ask(do="step", lengths=BATCHES[name], vocabulary=options.vocabulary)
                row[label] |= {"peak": answer["peak"], "loss": answer["loss"]}
                if turn:  # the first step allocates
                    row[label]["seconds"].append(answer["seconds"])
                    row[label]["cpu_seconds"].append(answer["cpu_seconds"])
    finally:
        for engine in engines.values():
            engine.close()
    return row


def _table(title: str, rows: list[dict[str, Any]]) -> str:
    """Return a table of milliseconds by the clock and of all threads, and of megabytes, each with torch's over ours."""
    cells = []
    for row in rows:
        line = [row["batch"]]
        for what, scale in (("seconds", 1e3), ("cpu_seconds", 1e3), ("peak", 1e-6)):
            values = [scale * np.min(row[label][what]) if label in row else None for label in ("ours", "torch")]
            ours, torch = values
            line += ["–" if value is None else f"{value:.0f}" for value in values]
            line.append("–" if ours is None or torch is None else f"{torch / ours:.2f}")
        cells.append(line)
    header = ["rows × tokens"]
    for what in ("ms", "CPU ms", "MB at the peak"):
        header += [f"ours, {what}", f"torch, {what}", "×"]
    return "\n".join([f"## {title}", "", *report.markdown(header, cells), ""])
