"""The command `encoders`: models of ModernBERT-base's and DeBERTa-v3-base's size beside ONNX Runtime and OpenVINO.

The weights are random. torch exports the model of transformers as an ONNX graph, which both engines run as it is, with
their own optimizations; tokenization is not timed. Three sections for each model: rows of 128 tokens on average, sorted
by length and in the order given; one sentence by its length; and one row of 8,192 tokens, with the peak of memory. For
the last two, each engine runs alone.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import contests, models, report
from benchmarks.contests import Entry, both_ways, place_of, with_streams
from benchmarks.model_data import CALIBRATION, random_encoder, random_rows
from benchmarks.models import Run
from benchmarks.process import Engine, EngineError, MissingError
from wordpiece_bert.bert import (
    BertConfig,
    BertModel,
    DebertaV2Config,
    DebertaV2Model,
    ModernBertConfig,
    ModernBertModel,
)

SECTIONS = ("throughput", "latency", "long")
LENGTHS = (8, 16, 32, 64, 128, 256, 512)
LONG = 8192

THEIRS = (
    Entry("OpenVINO float32", "openvino", "float32", "float32"),
    Entry("OpenVINO bfloat16", "openvino", "bfloat16", "bfloat16"),
    Entry("OpenVINO int8", "openvino", "int8", "int8"),
    Entry("ONNX Runtime float32", "onnxruntime", "exported", "float32"),
    Entry("ONNX Runtime int8", "onnxruntime", "exported-int8", "int8"),
)
_FLOAT32 = both_ways("OpenVINO float32", "ONNX Runtime float32")
_INT8 = both_ways("OpenVINO int8", "ONNX Runtime int8")


@dataclass(frozen=True)
class Size:
    """A model: its name, its class and configuration, and the ratios to reach in float32, sorted and as given."""

    name: str
    kind: type[BertModel]
    config: BertConfig
    goals: tuple[float, float]
    #: How many times as fast as the others a row of `LONG` tokens is to be, and in what share of their memory.
    long_goals: tuple[float, float] | None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Ours and the others, for this model."""
        return (
            Entry("ours float32", "ours", "float32", "float32", _FLOAT32, self.goals),
            Entry("ours bfloat16", "ours", "bfloat16", "bfloat16", both_ways("OpenVINO bfloat16")),
            Entry("ours int8", "ours", "int8", "int8", _INT8, (1.3, 3.0)),
            *THEIRS,
        )


_DEBERTA: dict[str, Any] = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "relative_attention": True,
    "position_buckets": 256,
    "pos_att_type": ("p2c", "c2p"),
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
    "position_biased_input": False,
}

SIZES = {
    "modernbert": Size("ModernBERT-base", ModernBertModel, ModernBertConfig(), (1.4, 3.0), (5.0, 0.2)),
    "deberta": Size("DeBERTa-v3-base", DebertaV2Model, DebertaV2Config(**_DEBERTA), (1.4, 1.4), None),
}

#: With --quick: models of this size.
_TINY: dict[str, Any] = {
    "vocab_size": 500,
    "pad_token_id": 0,
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 96,
}


def exported(size: Size, python: Path | None) -> Path:
    """Write a model with random weights, and let torch export it; return the folder of the model."""
    width, layers = size.config.hidden_size, size.config.num_hidden_layers
    folder = random_encoder(
        contests.BUILD / f"random-{size.config.model_type}-{width}-{layers}", size.kind, size.config
    )
    place = place_of(folder)
    if not (place / "exported.stamp").exists():
        with Engine("export", 1, "model_export.py", python) as engine:
            engine.ask(do="prepare", folder=str(folder), place=str(place), kind="float32")
        (place / "exported.stamp").touch()
    return folder


def throughput(run: Run, size: Size, folder: Path) -> None:
    """Rows of 128 tokens on average, of many lengths."""
    random = np.random.default_rng(0)
    lengths = np.clip(random.lognormal(np.log(110), 0.55, run.options.rows), 8, 512).astype(int).tolist()
    rows = random_rows(size.config.vocab_size, lengths)
    for threads in run.options.threads:
        with run.contest(folder, threads, run.entries(with_streams(size.entries))) as contest:
            models.versions(run, contest)
            models.throughput(run, f"{size.name}, random weights", contest, rows, run.options.batch)


def latency(run: Run, size: Size, folder: Path) -> None:
    """One row of each length, each engine alone; ours is to be below both others."""
    lengths = LENGTHS if not run.options.quick else LENGTHS[:2]
    rows = random_rows(size.config.vocab_size, list(lengths))
    for threads in run.options.threads:
        found: dict[str, list[float]] = {}
        notes = []
        for entry in run.entries(size.entries):
            with run.contest(folder, threads, [entry]) as contest:
                notes += [f"- {label}: not measured: {note}" for label, note in contest.notes.items()]
                if contest.engines:
                    contest.rows(rows)
                    options = {"calls": 1000, "limit": 0.05 if run.options.quick else 1.0}
                    times = [contest.time([[place]], 2, **options)[entry.label] for place in range(len(rows))]
                    found[entry.label] = [t.seconds for t in times]
        name = f"One sentence, {size.name}, {threads} thread{'s' * (threads != 1)}"
        cells = [[label, *(f"{1e3 * seconds:.2f}" for seconds in times)] for label, times in found.items()]
        for entry in size.entries:
            others = [found[label] for label in entry.beside if label in found]
            if not others or entry.label not in found:
                continue
            shares = [ours / min(column) for ours, *column in zip(found[entry.label], *others, strict=True)]
            cells.append([f"{entry.label} ÷ the fastest other", *(f"{share:.2f}" for share in shares)])
            if entry.goals:
                worst = max(shares)
                run.goals.append([f"{name}, {entry.label}", f"{worst:.2f}", "below 1", "yes" if worst < 1 else "no"])
        table = report.markdown(["", *map(str, lengths)], cells)
        run.add("\n".join([f"## {name}, milliseconds by tokens", "", *table, "", *notes, ""]))
        run.measured.append({"name": name, "lengths": list(lengths), "seconds": found})


def long_row(run: Run, size: Size, folder: Path) -> None:
    """One row of 8,192 tokens: seconds, and the peak of memory above the loaded model's, each engine alone."""
    length = LONG if not run.options.quick else 200
    rows = random_rows(size.config.vocab_size, [length])
    for threads in run.options.threads:
        seconds: dict[str, float] = {}
        peaks: dict[str, float] = {}
        notes = []
        for entry in run.entries(size.entries):
            with run.contest(folder, threads, [entry]) as contest:
                notes += [f"- {label}: not measured: {note}" for label, note in contest.notes.items()]
                if not contest.engines:
                    continue
                contest.rows(rows)
                engine = contest.engines[entry.label]
                try:
                    engine.ask(do="restart")
                    answer = engine.ask(do="forward", rows=[0], batch=1, calls=1)  # it takes half a minute or more
                    seconds[entry.label] = answer["seconds"]
                    peaks[entry.label] = engine.ask(do="memory")["bytes"]
                except EngineError as error:  # it ended for lack of memory
                    notes.append(f"- {entry.label}: not measured: {error}")
        name = f"One row of {length:,} tokens, {size.name}, {threads} thread{'s' * (threads != 1)}"
        cells = [[label, f"{seconds[label]:.2f}", f"{peaks[label] / 1e6:,.0f}"] for label in seconds]
        table = report.markdown(["", "seconds", "peak above the loaded model, MB"], cells)
        run.add("\n".join([f"## {name}", "", *table, "", *notes, ""]))
        run.measured.append({"name": name, "seconds": seconds, "bytes": peaks})
        others = [label for label in _FLOAT32 if label in seconds]
        if size.long_goals and others and "ours float32" in seconds:
            speed, share = size.long_goals
            times = min(seconds[label] for label in others) / seconds["ours float32"]
            memory = peaks["ours float32"] / min(peaks[label] for label in others)
            run.goals.append([name, f"{times:.2f}×", f"{speed:g}×", "yes" if times >= speed else "no"])
            run.goals.append([f"{name}, memory", f"{memory:.2f}", f"{share:g}", "yes" if memory <= share else "no"])


def main(arguments: list[str]) -> int:
    """Run the command; return 1 if an engine in float32 gave other vectors than ours."""
    parser = argparse.ArgumentParser(prog="benchmarks encoders", description=__doc__)
    parser.add_argument("--models", nargs="+", choices=list(SIZES), default=list(SIZES), help="which models")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS, help="run these sections")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads (default: 1 2)")
    parser.add_argument("--rows", type=int, default=64, help="rows of the first section (default: 64)")
    parser.add_argument("--batch", type=int, default=16, help="rows of a batch (default: 16)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the best counts (default: 3)")
    engines = ("onnxruntime", "openvino")
    parser.add_argument(
        "--engines", nargs="+", choices=engines, default=engines, help="compare only with these engines"
    )
    parser.add_argument(
        "--torch", type=Path, help="a Python that has torch, transformers and onnx, instead of installing them"
    )
    parser.add_argument("--quick", action="store_true", help="tiny models, to check that the benchmark works")
    parser.add_argument("--record", type=Path, nargs="?", const=report.RECORDS)
    options = parser.parse_args(arguments)
    if options.quick:
        options.rows, options.batch, options.rounds, options.threads = 6, 3, 1, options.threads[:1]
    run: Run | None = None
    sections = {"throughput": throughput, "latency": latency, "long": long_row}
    for model in options.models:
        size = SIZES[model]
        if options.quick:
            size = replace(size, config=replace(size.config, **_TINY))
        try:
            folder = exported(size, options.torch)
        except MissingError as error:
            parser.error(f"the models are exported by torch: {error}; or pass --torch PYTHON")
        calibration = random_rows(size.config.vocab_size, [64] * CALIBRATION)
        if run is None:
            run = Run(options, folder, [], [], calibration)
            run.add(report.heading("Newer encoders compared with other engines", "random ids"))
        run.folder, run.calibration = folder, calibration
        for section in options.only:
            sections[section](run, size, folder)
    assert run is not None, "one model is wanted at least"
    if run.goals:
        run.add("\n".join(["## Goals", "", *report.markdown(["", "reached", "goal", "met"], run.goals), ""]))
    if options.record:
        print(report.save("encoders", "\n".join(run.lines), {"measured": run.measured}, options.record))
    return int(run.wrong)
