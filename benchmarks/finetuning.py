"""The command `finetuning`: a training step compared with torch's, on the same rows.

A step is forward and backward pass, clipping and AdamW of MiniLM with a head for two classes, dropout on; of another model
with `--model`, or with `--random` of one of DeBERTa-v3-base's or ModernBERT-base's width with random weights. Each engine
runs in a process of its own, which is idle while another has its turn, and the best of several rounds counts, by the clock
and as CPU time of all threads. torch and transformers
are not dependencies of this package: `--torch` names a Python interpreter that has them.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import contests, report
from benchmarks.encoders import SIZES
from benchmarks.model_data import random_encoder
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
    parser.add_argument("--random", choices=SIZES, help="instead, a model of this size with random weights")
    parser.add_argument("--layers", type=int, default=3, help="of the model with random weights")
    parser.add_argument("--batches", nargs="+", default=list(BATCHES), choices=BATCHES)
    parser.add_argument("--numpy", action="store_true", help="measure this package's NumPy engine as well, in float32")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"], choices=["float32", "bfloat16"])
    parser.add_argument("--rounds", type=int, default=5, help="of which the best counts")
    parser.add_argument("--torch", type=Path, default=Path(sys.executable), help="a Python with torch and transformers")
    parser.add_argument("--vocabulary", type=int, default=20_000, help="ids are drawn below this")
    parser.add_argument("--record", type=Path, nargs="?", const=report.RECORDS)
    options = parser.parse_args(arguments)

    from wordpiece_bert.hub import find_model

    name, folder = options.model, None
    if options.random is None:
        folder = find_model(options.model)
    else:
        size = SIZES[options.random]
        config = replace(size.config, vocab_size=options.vocabulary, num_hidden_layers=options.layers)
        name = f"{size.name}'s width, {options.layers} layers, {options.vocabulary:,} tokens"
        place = contests.BUILD / f"random-{config.model_type}-{options.layers}-{options.vocabulary}"
        folder = random_encoder(place, size.kind, config)
    lines = [report.heading("A training step compared with torch", f"{name}; best of {options.rounds}")]
    print(lines[0], flush=True)
    found: list[dict[str, Any]] = []
    for threads in options.threads:
        for dtype in options.dtypes:
            rows = [_measure(folder, dtype, threads, options, name) for name in options.batches]
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
        entries = [("ours", "finetune_ours.py", None), ("torch", "finetune_torch.py", options.torch)]
        if options.numpy and dtype == "float32":
            entries.append(("numpy", "finetune_ours.py", None))
        for label, program, interpreter in entries:
            try:
                engine = Engine(label, threads, program, interpreter)
                engines[label] = engine
                row[label] = {"version": engine.version, "seconds": [], "cpu_seconds": []}
                backend = "numpy" if label == "numpy" else "rust"
                row[label] |= engine.ask(do="load", folder=str(folder), dtype=dtype, threads=threads, backend=backend)
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
    """Return a table of milliseconds by the clock and of all threads, and of megabytes, each with the others' over ours."""
    others = ["torch", *(["numpy"] if any("numpy" in row for row in rows) else [])]
    cells = []
    for row in rows:
        line = [row["batch"]]
        for what, scale in (("seconds", 1e3), ("cpu_seconds", 1e3), ("peak", 1e-6)):
            ours = scale * np.min(row["ours"][what]) if "ours" in row else None
            line.append("–" if ours is None else f"{ours:.0f}")
            for label in others:
                other = scale * np.min(row[label][what]) if label in row else None
                line.append("–" if other is None else f"{other:.0f}")
                line.append("–" if ours is None or other is None else f"{other / ours:.2f}")
        cells.append(line)
    header = ["rows × tokens"]
    for what in ("ms", "CPU ms", "MB at the peak"):
        header.append(f"ours, {what}")
        for label in others:
            header += [f"{label}, {what}", "×"]
    return "\n".join([f"## {title}", "", *report.markdown(header, cells), ""])
