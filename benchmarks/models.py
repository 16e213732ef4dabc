"""The command `models`: BERT compared with other engines, on the same rows.

Tokenization is not timed, except from texts to vectors. Engines take turns with a few dozen rows at a time, and the best of
several rounds counts, because other programs may share the machine; CPU seconds of all threads are reported as well.
Gflop/s count only real tokens, not padding.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import contests, model_growth, report
from benchmarks.contests import Agreement, Contest, Entry, Timing, forced, in_groups
from benchmarks.model_data import CALIBRATION, flop, ids_of, paragraphs, random_model, read_config
from wordpiece_bert import _core
from wordpiece_bert.hub import find_model

SECTIONS = ("throughput", "forced", "texts", "memory", "base", "large", "growth")

#: The sections that run by default.
USUAL = SECTIONS[:-1]

#: On a CPU with AMX: the ratios of bfloat16 to reach, sorted and in the order given.
AMX_GOALS = (2.0, 4.0)

KINDS = ("lowest cosine", "median cosine", "rank correlation")

#: What a dtype is to keep, beside ours in float32: the lowest cosine, the median, and the rank correlation.
KEPT = {"ours bfloat16": (0.9999, 0.9999, 0.9995), "ours int8": (0.999, 0.9997, 0.9995)}

#: Seconds after which an engine has only two rounds for the rows that are left.
BUDGET = 20.0

#: Sizes of models with random weights: hidden, inner, heads, layers; rows and rows of a batch. With --quick, tiny ones.
SIZES = {
    "base": ("BERT-base", (768, 3072, 12, 12), 64, 16),
    "large": ("BERT-large", (1024, 4096, 16, 24), 32, 16),
}
QUICK_SIZE = (64, 128, 4, 2)

#: Engines for these models by default; the others take more time than all of them.
LARGE_ENGINES = ("openvino", "onnxruntime", "ctranslate2")


@dataclass
class Run:
    """The options of a run, what it is measured on, and what has been found."""

    options: argparse.Namespace
    folder: Path
    texts: list[str]
    rows: list[list[int]]
    #: Rows that are not measured, for ranges of int8 inputs.
    calibration: list[list[int]]
    lines: list[str] = field(default_factory=list)
    measured: list[dict[str, Any]] = field(default_factory=list)
    goals: list[list[str]] = field(default_factory=list)
    wrong: bool = False

    def add(self, part: str) -> None:
        """Add a part to the report, and print it."""
        self.lines.append(part)
        print(part, flush=True)

    def entries(self, entries: tuple[Entry, ...]) -> list[Entry]:
        """Return the entries of the engines that are wanted."""
        return [entry for entry in entries if entry.ours or entry.engine in self.options.engines]

    def contest(self, folder: Path, threads: int, entries: list[Entry]) -> Contest:
        """Load a model by these engines."""
        return Contest(folder, threads, entries, self.calibration, self.options.torch)


def best_beside(entry: Entry, times: dict[str, Timing]) -> tuple[str, float] | None:
    """Return the fastest engine that an entry is compared with, and how many times as fast the entry is."""
    able = [label for label in entry.beside if label in times]
    if not able or entry.label not in times:
        return None
    best = min(able, key=lambda label: times[label].seconds)
    return best, times[best].seconds / times[entry.label].seconds


def goals_of(entry: Entry) -> tuple[float, float] | None:
    """Return the ratios to reach on this CPU."""
    if entry.kind == "bfloat16" and "amx" in _core.kernel_instruction_sets():
        return AMX_GOALS
    return entry.goals


def throughput(
    run: Run,
    title: str,
    contest: Contest,
    rows: list[list[int]],
    batch: int = 32,
    rounds: int | None = None,
) -> None:
    """Report sentences, tokens and Gflop per second, with rows sorted by length and in the given order."""
    contest.rows(rows)
    lengths = [len(row) for row in rows]
    work = flop(read_config(contest.folder), lengths)
    name = _title(title, contest.threads)
    run.add(f"## {name}\n\n{len(rows)} rows, {sum(lengths):,} tokens, batches of {batch}.\n")
    orders = {
        "sorted": sorted(range(len(rows)), key=lambda i: -lengths[i]),
        "in the order given": list(range(len(rows))),
    }
    agreement = contest.agreement(orders["sorted"], batch)
    found = {}
    for order, indices in orders.items():
        times = contest.time(in_groups(indices), rounds or run.options.rounds, batch, budget=BUDGET)
        cells = [_speeds(contest.entries[label], times, lengths, work) for label in times]
        header = ["", "sentences/s", "per CPU second", "tokens/s", "Gflop/s", "times", "the best of its kind"]
        run.add("\n".join([f"{order.capitalize()}:", "", *report.markdown(header, cells), ""]))
        for label in times:
            _goal(run, contest.entries[label], times, order, name)
        if "ours auto" in times and "ours float32" in times:
            ratio = times["ours float32"].seconds / times["ours auto"].seconds
            _note(run, f"ours auto: {name}, {order}", f"{ratio:.2f}× ours float32", "1×", met=ratio >= 1)
        found[order] = {label: asdict(t) for label, t in times.items()}
    _agreement(run, name, agreement)
    if contest.notes:
        run.add("\n".join(f"- {label}: not measured: {note}" for label, note in contest.notes.items()) + "\n")
    run.wrong |= contest.wrong
    agreements = {label: asdict(a) for label, a in agreement.items()}
    run.measured.append({"name": name, "lengths": lengths, "agreement": agreements, "times": found})


def _agreement(run: Run, name: str, agreement: dict[str, Agreement]) -> None:
    """Report how near the vectors are to ours in float32."""
    for label in [label for label in KEPT if label in agreement]:
        for what, reached, goal in zip(KINDS, astuple(agreement[label]), KEPT[label], strict=True):
            _note(run, f"{label}: {name}, {what}", f"{reached:.6f}", f"{goal:g}", met=reached >= goal)
    cells = [[label, f"{a.lowest:.6f}", f"{a.median:.6f}", f"{a.correlation:.6f}"] for label, a in agreement.items()]
    run.add("\n".join([*report.markdown(["", *KINDS], cells), ""]))


def _speeds(entry: Entry, times: dict[str, Timing], lengths: list[int], work: float) -> list[str]:
    """Return the cells of one engine."""
    t, best = times[entry.label], best_beside(entry, times)
    return [
        entry.label,
        f"{len(lengths) / t.seconds:.1f}",
        f"{len(lengths) / t.cpu_seconds:.1f}",
        f"{sum(lengths) / t.seconds:,.0f}",
        f"{work / t.seconds / 1e9:.0f}",
        *(("", "") if best is None else (f"{best[1]:.2f}", best[0])),
    ]


def _goal(run: Run, entry: Entry, times: dict[str, Timing], order: str, name: str) -> None:
    """Note whether an entry has reached its goal, if it has one."""
    best, goals = best_beside(entry, times), goals_of(entry)
    if best is not None and goals is not None:
        goal = goals[order != "sorted"]
        _note(run, f"{entry.label}: {name}, {order}", f"{best[1]:.2f}× {best[0]}", f"{goal:g}×", met=best[1] >= goal)


def _note(run: Run, what: str, reached: str, goal: str, *, met: bool) -> None:
    """Add a line to the table of goals."""
    run.goals.append([what, reached, goal, "yes" if met else "no"])


def versions(run: Run, contest: Contest) -> None:
    """Report the versions of engines, once each, and what ours computes with."""
    seen = {}
    for label, load in contest.loads.items():
        seen.setdefault(contest.entries[label].engine, load["version"])
    lines = [f"- {engine}: {version}" for engine, version in seen.items()]
    lines += [f"- {label}: {load['engine']}" for label, load in contest.loads.items() if "engine" in load]
    run.add("\n".join(lines) + "\n")


def of_the_model(run: Run) -> None:
    """Measure all engines on the model, with the same rows for any number of threads."""
    entries = run.entries((*contests.OURS, *contests.with_streams(contests.THEIRS)))
    for place, threads in enumerate(run.options.threads):
        with run.contest(run.folder, threads, entries) as contest:
            if place == 0:
                versions(run, contest)
            throughput(run, Path(run.options.model).name, contest, run.rows)


def limited(run: Run) -> None:
    """Measure ours and OpenVINO, both limited to an instruction set, on one thread and half the rows."""
    entries = run.entries((contests.OURS[0], *forced()))
    with run.contest(run.folder, 1, entries) as contest:
        title = f"{Path(run.options.model).name}, limited to an instruction set"
        throughput(run, title, contest, run.rows[: len(run.rows) // 2])


def random_weights(run: Run, which: str) -> None:
    """Measure a model with random weights of BERT-base's or BERT-large's size."""
    name, size, count, batch = SIZES[which]
    layers = run.options.large_layers
    if run.options.quick:
        size, count = QUICK_SIZE, 4
    elif which == "large" and layers < size[3]:
        name, size = f"{name}, {layers} of its {size[3]} layers", (*size[:3], layers)
    vocabulary = read_config(run.folder)["vocab_size"]
    folder = random_model(contests.BUILD / f"random-{'-'.join(map(str, size))}-{vocabulary}", size, vocabulary)
    entries = run.entries((*contests.OURS[:3], *contests.with_streams(contests.THEIRS)))
    entries = [entry for entry in entries if entry.ours or entry.engine in run.options.large_engines]
    for threads in run.options.threads if which == "base" else run.options.threads[:1]:
        with run.contest(folder, threads, entries) as contest:
            throughput(run, f"{name}, random weights", contest, run.rows[:count], batch, rounds=2)


def texts_to_vectors(run: Run) -> None:
    """Report the throughput of tokenizer and model together, for texts in the given order."""
    threads = run.options.threads[-1]
    wanted = [e for e in run.entries((*contests.OURS, *contests.THEIRS)) if e.engine != "torch" and e.kind != "auto"]
    with run.contest(run.folder, threads, wanted) as contest:
        texts = run.texts[: len(run.texts) // 2]
        path = str(contest.texts(texts))
        groups = in_groups(list(range(len(texts))))
        times = contest.time(groups, run.options.rounds, budget=BUDGET, do="texts", path=path)
    cells = []
    for label, t in times.items():
        best = best_beside(contest.entries[label], times)
        cells.append([label, f"{len(texts) / t.seconds:.1f}", "" if best is None else f"{best[1]:.2f}"])
    title = f"## {_title('Texts to vectors, batches of 32 in the order given', threads)}"
    run.add("\n".join([title, "", *report.markdown(["", "texts/s", "times the best of its kind"], cells), ""]))
    run.measured.append({"name": title[3:], "times": {label: asdict(t) for label, t in times.items()}})


def memory(run: Run) -> None:
    """Report the time of loading and the peak of memory, each engine in a process that has done nothing else."""
    stored = tuple(Entry(f"ours {dtype}, stored", "ours", f"{dtype} stored", dtype) for dtype in ("bfloat16", "int8"))
    cells, found = [], {}
    row = max(run.rows, key=len)
    for entry in run.entries((*contests.OURS, *stored, *contests.THEIRS)):
        best: dict[str, Any] | None = None
        for _ in range(min(run.options.rounds, 2)):
            with run.contest(run.folder, 1, [entry]) as contest:
                if not contest.engines:
                    continue
                load = contest.loads[entry.label]
                contest.rows([row] * 32)
                contest.engines[entry.label].ask(do="forward", rows=list(range(32)), batch=32)
                load |= {"batch": contest.engines[entry.label].ask(do="memory")["bytes"]}
                if best is None or load["seconds"] < best["seconds"]:
                    best = load
        if best is not None:
            found[entry.label] = best
            values = f"{1e3 * best['seconds']:.0f}", f"{best['bytes'] / 1e6:.0f}", f"{best['batch'] / 1e6:.0f}"
            cells.append([entry.label, *values])
    header = ["", "load, ms", "peak of loading, MB", f"with 32 rows of {len(row)} tokens, MB"]
    size = (run.folder / "model.safetensors").stat().st_size / 1e6
    title = f"## Loading and memory, 1 thread; the weights take {size:.0f} MB in float32"
    run.add("\n".join([title, "", *report.markdown(header, cells), ""]))
    run.measured.append({"name": title[3:], "loads": found})
    _memory_goals(run, found)


def _memory_goals(run: Run, found: dict[str, dict[str, Any]]) -> None:
    """Note the peaks of loading: the weights and 45 MB, in int8 those in int8, the file's largest tensor and 30 MB."""
    config = read_config(run.folder)
    largest = 4 * config["hidden_size"] * max(config["vocab_size"], config["intermediate_size"])
    stored = contests.place_of(run.folder) / "ours-int8" / "model.safetensors"
    limits = {"ours float32": (run.folder / "model.safetensors").stat().st_size + 45e6}
    if stored.exists():
        limits["ours int8"] = limits["ours int8, stored"] = stored.stat().st_size + largest + 30e6
    for label, limit in limits.items():
        if label in found:
            reached, goal = found[label]["bytes"] / 1e6, limit / 1e6
            _note(run, f"{label}: peak of loading", f"{reached:.0f} MB", f"{goal:.0f} MB", met=reached <= goal)


def summary(run: Run) -> str:
    """Return the main figures of the model in one table: sentences a second, agreement, loading and memory."""
    measured = {one["name"]: one for one in run.measured}
    name = Path(run.options.model).name
    loads: dict[str, Any] = next((one["loads"] for one in run.measured if "loads" in one), {})
    header = [""]
    columns: list[dict[str, str]] = []
    for threads in run.options.threads:
        one = measured.get(_title(name, threads))
        for order, times in one["times"].items() if one else ():
            header.append(f"{threads}, {order}")
            columns.append({label: f"{len(one['lengths']) / t['seconds']:.1f}" for label, t in times.items()})
    for what in ("lowest", "correlation"):
        one = measured.get(_title(name, run.options.threads[0]))
        header.append({"lowest": "lowest cosine"}.get(what, what))
        columns.append({label: f"{a[what]:.5f}" for label, a in one["agreement"].items()} if one else {})
    header += ["load, ms", "MB", "MB with a batch"]
    for what, scale in (("seconds", 1e3), ("bytes", 1e-6), ("batch", 1e-6)):
        columns.append({label: f"{scale * load[what]:.0f}" for label, load in loads.items()})
    labels = dict.fromkeys(label for column in columns for label in column)
    cells = [[label, *(column.get(label, "") for column in columns)] for label in labels]
    title = f"## Summary of {name}: sentences a second by threads and order, agreement, loading"
    return "\n".join([title, "", *report.markdown(header, cells), ""])


def _title(title: str, threads: int) -> str:
    return f"{title}, {threads} thread{'s' * (threads != 1)}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks models", description=__doc__)
    parser.add_argument("--corpora", type=Path, help="folder with wiki_en.txt (default: random texts)")
    parser.add_argument("--model", default="minilm", help="name or folder of a sentence encoder (default: minilm)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads (default: 1 2)")
    parser.add_argument("--paragraphs", type=int, default=192)
    parser.add_argument("--rounds", type=int, default=3, help="rounds per group of rows, of which the best counts")
    engines = tuple(contests.PROGRAMS)
    parser.add_argument(
        "--engines", nargs="+", choices=engines, default=engines, help="compare only with these engines"
    )
    parser.add_argument(
        "--torch", type=Path, help="a Python that has torch and transformers, instead of installing them"
    )
    parser.add_argument(
        "--only", nargs="+", choices=SECTIONS, default=USUAL, help="run these sections (default: all but growth)"
    )
    what = f"engines for models of BERT-base's and BERT-large's size (default: {' '.join(LARGE_ENGINES)})"
    parser.add_argument("--large-engines", nargs="+", choices=engines, default=LARGE_ENGINES, help=what)
    parser.add_argument(
        "--large-layers", type=int, default=8, help="layers of the model of BERT-large's size (default: 8)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="few rows and tiny models, to check that the benchmark works"
    )
    parser.add_argument("--record", type=Path, nargs="?", const=report.RECORDS)
    return parser


def main(arguments: list[str]) -> int:
    """Run the command; return 1 if an engine in float32 gave other vectors than ours."""
    options = _parser().parse_args(arguments)
    if options.quick:
        options.paragraphs, options.rounds, options.threads = 6, 1, options.threads[:1]
    folder = find_model(options.model)
    texts = paragraphs(options.corpora and options.corpora / "wiki_en.txt", options.paragraphs + CALIBRATION)
    rows, count = ids_of(folder, texts), options.paragraphs
    run = Run(options, folder, texts[:count], rows[:count], rows[count:])
    run.add(report.heading("BERT compared with other engines", f"{count} paragraphs"))
    sections = {
        "throughput": of_the_model,
        "forced": limited,
        "texts": texts_to_vectors,
        "memory": memory,
        "base": lambda run: random_weights(run, "base"),
        "large": lambda run: random_weights(run, "large"),
    }
    for name, section in sections.items():
        if name in options.only:
            section(run)
    curves: dict[str, Any] = {}
    if "growth" in options.only:
        engines = run.entries((contests.OURS[0], contests.THEIRS[3]))
        part, curves = model_growth.growth(folder, engines, max(run.rows, key=len), options)
        run.add(part)
    if "throughput" in options.only:
        run.add(summary(run))
    if run.goals:
        run.add("\n".join(["## Goals", "", *report.markdown(["", "reached", "goal", "met"], run.goals), ""]))
    picture = contests.BUILD / "models.png"
    if options.record:
        content = {"measured": run.measured, "curves": curves}
        record = report.save("models", "\n".join(run.lines), content, options.record)
        picture = record.with_suffix(".png")
        print(record)
    if curves:
        model_growth.plot(curves, picture)
    return int(run.wrong)
