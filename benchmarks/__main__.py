"""The commands of the benchmarks: each is a module of its own, or one of the three that compare tokenizers."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from benchmarks import growth, report, training
from benchmarks.definitions import ENGINES, read_table
from benchmarks.measure import QUICK, Bench, Effort
from benchmarks.texts import QUICK_BYTES, ROOT, Source

#: The commands with arguments of their own: the modules of these names, each of which has a `main`. The others compare
#: engines for tokenizers on texts and vocabularies.
COMMANDS = (
    "accuracy",
    "encoders",
    "evaluation",
    "finetuning",
    "integrations",
    "late_interaction",
    "latency",
    "machines",
    "models",
    "pages",
    "pretraining",
    "reranking",
    "search",
    "serve",
    "sparse",
    "start",
    "static",
    "subword",
    "threads",
    "vector_folder",
)


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return 1 if a result of this package was wrong."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] in COMMANDS:
        code: int = importlib.import_module(f"benchmarks.{arguments[0]}").main(arguments[1:])
        return code
    options = _parser().parse_args(arguments)
    source = Source(options.corpora, QUICK_BYTES if options.quick else None)
    if options.command == "training":
        return _training(source, options)
    effort = QUICK if options.quick else Effort() if options.command == "table" else growth.EFFORT
    with Bench(source, effort, set(options.engines) if options.engines else None) as bench:
        return _table(bench, options) if options.command == "table" else _growth(bench, options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="benchmarks", description=f"Commands with options of their own: {', '.join(COMMANDS)}."
    )
    parser.add_argument(
        "command",
        choices=["table", "growth", "training"],
        help="the table of results and goals, the growth of cost, or training",
    )
    parser.add_argument(
        "--corpora", type=Path, help="folder of corpora and vocabularies (default: the project's own small texts)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="less text and fewer passes, to check that the benchmarks work"
    )
    parser.add_argument(
        "--engines", nargs="+", choices=sorted({*ENGINES, *training.ENGINES}), help="run only these engines"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="WORDS", help="run only benchmarks whose name contains one of these"
    )
    parser.add_argument("--record", type=Path, nargs="?", const=report.RECORDS, help="save the results in this folder")
    return parser


def _table(bench: Bench, options: argparse.Namespace) -> int:
    benchmarks = [one for one in read_table() if not options.only or any(word in one.name for word in options.only)]
    parts = [report.heading("Comparison with other tokenizers", bench.source.describe())]
    print(parts[0], flush=True)
    rows = []
    for benchmark in benchmarks:
        row = bench.run(benchmark)
        rows.append(row)
        parts.append(report.table(row))
        print(parts[-1], flush=True)
    parts.append(f"## Goals\n\n{report.summary(rows)}\n")
    print(parts[-1])
    if options.record:
        print(report.save("table", "\n".join(parts), {"rows": [row.to_json() for row in rows]}, options.record))
    return int(any(row.results[0].wrong for row in rows if row.results))


def _growth(bench: Bench, options: argparse.Namespace) -> int:
    parts = [report.heading("How cost grows", bench.source.describe())]
    print(parts[0], flush=True)
    found = growth.curves(bench)
    for curve in found:
        parts.append(growth.table(curve))
        print(parts[-1], flush=True)
    picture = ROOT / "build" / "bench" / "growth.png"
    if options.record:
        record = report.save(
            "growth", "\n".join(parts), {"curves": [curve.to_json() for curve in found]}, options.record
        )
        picture = record.with_suffix(".png")
        print(record)
    try:
        growth.plot(found, picture)
    except ImportError:
        print("No plot: matplotlib is not installed.", file=sys.stderr)
    else:
        print(picture)
    return 0


def _training(source: Source, options: argparse.Namespace) -> int:
    chosen = [
        one for one in training.read_table() if not options.only or any(word in one["name"] for word in options.only)
    ]
    parts = [report.heading("Comparison with other trainers", source.describe())]
    print(parts[0], flush=True)
    passes, budget = (1, 1.0) if options.quick else (5, 60.0)
    only = set(options.engines) if options.engines else None
    rows = []
    for entry in chosen:
        row = training.run(source, entry, passes, budget, only)
        rows.append(row)
        parts.append(training.table(row))
        print(parts[-1], flush=True)
    parts.append(f"## Goals\n\n{training.summary(rows)}\n")
    print(parts[-1])
    if options.record:
        content = {"rows": [training.to_json(row) for row in rows]}
        print(report.save("training", "\n".join(parts), content, options.record))
    return int(any(one.wrong for row in rows for one in row.trainers))


if __name__ == "__main__":
    sys.exit(main())
