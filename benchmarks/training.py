"""Compares vocabulary training with other trainers: time and peak memory of fresh processes, which take turns."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
import tomllib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.definitions import DefinitionError
from benchmarks.process import PROGRAMS, EngineError, MissingError, cores, python_of
from benchmarks.report import MB, markdown
from benchmarks.texts import CORPORA, Source

TABLE = Path(__file__).with_name("training.toml")
PROGRAM = PROGRAMS / "trainers.py"
ENGINES = ("ours", "tokenizers", "tensorflow-text")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

_FIELDS = {"name", "texts", "work", "algorithm", "vocab_size", "options", "beside", "cores", "goals", "analysis"}
_GOALS = {"over", "times", "memory", "seconds", "megabytes_a_second"}


@dataclass
class Trainer:
    """A contestant and its measurements."""

    engine: str
    label: str
    algorithm: str
    version: str = ""
    #: Why there are no measurements.
    note: str = ""
    #: Whether its tokens differ from the reference's.
    wrong: bool = False
    tokens: int = 0
    #: Seconds of each pass: of the call, and of the entire process, imports included.
    seconds: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    #: Peak memory of the process in each pass, in bytes.
    peak: list[int] = field(default_factory=list)


@dataclass
class Row:
    """One benchmark and its measurements."""

    name: str
    size: int
    work: str
    goals: dict[str, Any]
    analysis: str
    trainers: list[Trainer]


def read_table(path: Path = TABLE) -> list[dict[str, Any]]:
    """Read and check the definitions.

    Raises
    ------
    DefinitionError
        A field is unknown or missing, or has an unknown value.
    """
    with path.open("rb") as file:
        entries: list[dict[str, Any]] = tomllib.load(file)["benchmark"]
    for entry in entries:
        name = entry.get("name", "a benchmark without a name")
        known = entry.keys() <= _FIELDS and entry.get("goals", {}).keys() <= _GOALS
        if not known or not {"name", "texts", "work", "beside", "analysis"} <= entry.keys():
            raise DefinitionError(f"{name}: fields are missing or unknown")
        if entry["work"] not in ("text", "counts", "count") or entry["texts"]["corpus"] not in CORPORA:
            raise DefinitionError(f"{name}: unknown work {entry['work']!r} or corpus")
        trainers = _trainers(entry)
        labels = [trainer.label for trainer in trainers]
        if labels[0] != "ours" or any(trainer.engine not in ENGINES for trainer in trainers):
            raise DefinitionError(f"{name}: contestants {labels}: the first must be ours, and engines are {ENGINES}")
        if entry["goals"].get("over", "ours") not in labels:
            raise DefinitionError(f"{name}: the goal refers to {entry['goals']['over']!r}, which is not a contestant")
    return entries


def _trainers(entry: dict[str, Any]) -> list[Trainer]:
    algorithm = entry.get("algorithm", "")
    given = ({"engine": one} if isinstance(one, str) else one for one in entry["beside"])
    return [Trainer(one["engine"], one.get("label", one["engine"]), one.get("algorithm", algorithm)) for one in given]


def run(source: Source, entry: dict[str, Any], passes: int, budget: float, only: set[str] | None = None) -> Row:
    """Measure one benchmark: compare the tokens, then time passes until the budget of seconds is spent."""
    with tempfile.TemporaryDirectory(prefix="wordpiece-bench-") as name:
        file = Path(name) / "texts.txt"
        lines = source.lines(entry["texts"]["corpus"])[: entry["texts"].get("first")]
        file.write_bytes("".join(f"{line}\n" for line in lines).encode())
        size = file.stat().st_size
        if entry["work"] == "counts":
            file = _counted(file)
        trainers = [one for one in _trainers(entry) if only is None or one.engine in only]
        requests = {one.label: _request(entry, one, file) for one in trainers}
        _compare(entry, trainers, requests)
        for _ in range(passes):
            for one in trainers:
                if one.note or sum(one.whole) > budget:
                    continue
                start = time.perf_counter()
                answer = _ask(one, requests[one.label])
                one.whole.append(time.perf_counter() - start)
                one.seconds.append(answer["seconds"])
                one.peak.append(answer["peak"])
    return Row(entry["name"], size, entry["work"], entry["goals"], entry["analysis"], trainers)


def _counted(file: Path) -> Path:
    """Count the words of the texts, for training from counts."""
    import wordpiece_bert as wb

    counts = file.with_suffix(".tsv")
    wb.WordCounts.from_files(file).save(counts)
    return counts


def _request(entry: dict[str, Any], trainer: Trainer, file: Path) -> dict[str, Any]:
    count = entry.get("cores", 2)
    return {
        "engine": trainer.engine,
        "algorithm": trainer.algorithm,
        "work": entry["work"],
        "file": str(file),
        "vocab_size": entry.get("vocab_size", 30_522),
        "options": entry.get("options", {}),
        "threads": count,
        "cores": cores(count),
        "pinned": [],
    }


def _ask(trainer: Trainer, request: dict[str, Any]) -> dict[str, Any]:
    environment = os.environ | {"RAYON_NUM_THREADS": str(request["threads"])}
    # Without the driver's PYTHONPATH, which would make packages of another environment visible.
    environment.pop("PYTHONPATH", None)
    command = [python_of(trainer.engine), PROGRAM, json.dumps(request)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise EngineError(f"{trainer.label}: {(done.stderr.strip().splitlines() or ['no error message'])[-1]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    if "missing" in answer:
        raise MissingError(answer["missing"])
    return answer


def _compare(entry: dict[str, Any], trainers: list[Trainer], requests: dict[str, dict[str, Any]]) -> None:
    """Compare the lists of tokens of all trainers with the same algorithm; those that differ are not timed."""
    own: dict[str, Any] | None = None
    for one in trainers:
        request = requests[one.label] | {"all": True}
        if one.engine == "tokenizers" and own is not None:
            # Its order of characters is random; with our order of characters its tokens must equal ours.
            request["pinned"] = _alphabet(own["all"])
        try:
            answer = _ask(one, request)
        except (MissingError, EngineError) as error:
            if one.engine == "ours":
                raise
            one.note = str(error)
            continue
        one.version, one.tokens = answer["version"], answer["tokens"]
        if one.label == "ours":
            own = answer
        elif own is not None and one.algorithm == entry.get("algorithm") and answer["digest"] != own["digest"]:
            one.wrong = True
            one.note = f"its {one.tokens:,} tokens differ from our {own['tokens']:,}"


def _alphabet(tokens: list[str]) -> list[str]:
    """Return the special tokens and the characters, which precede the first merge."""
    end = len(SPECIAL)
    while end < len(tokens) and len(tokens[end].removeprefix("##")) == 1:
        end += 1
    return tokens[:end]


# --- reports


def table(row: Row) -> str:
    """Return one benchmark as a Markdown table with a heading."""
    header = ["", "seconds", "spread", "ours ×", "whole process", "ours ×", "peak MB", "tokens"]
    ours = row.trainers[0]
    cells = []
    for one in row.trainers:
        if one.note:
            continue
        ratio = "" if one is ours else f"{statistics.median(one.seconds) / statistics.median(ours.seconds):.1f}"
        of_whole = "" if one is ours else f"{statistics.median(one.whole) / statistics.median(ours.whole):.1f}"
        cells.append(
            [
                f"{one.label} {one.version}",
                f"{statistics.median(one.seconds):.3f}",
                f"{(max(one.seconds) - min(one.seconds)) / statistics.median(one.seconds):.0%}",
                ratio,
                f"{statistics.median(one.whole):.3f}",
                of_whole,
                f"{statistics.median(one.peak) / MB:.0f}",
                f"{one.tokens:,}",
            ]
        )
    lines = [f"### {row.name}", "", f"{row.size / MB:,.1f} MB of text.", "", *markdown(header, cells)]
    lines += [f"- {one.label}: not measured: {one.note}" for one in row.trainers if one.note]
    goals = [
        f"Goal: {what}: {reached}, {goal}: {'reached' if met else 'NOT reached'}."
        for what, reached, goal, met in verdicts(row)
    ]
    return "\n".join([*lines, "", *goals, *([""] if goals else []), row.analysis, ""])


def verdicts(row: Row) -> list[tuple[str, str, str, bool]]:
    """Return for each goal of a benchmark its name, the value reached, the goal, and whether it is met."""
    ours, goals = row.trainers[0], row.goals
    seconds = statistics.median(ours.seconds)
    found = []
    if "seconds" in goals:
        found.append(("time", f"{seconds:.3f} s", f"at most {goals['seconds']} s", seconds <= goals["seconds"]))
    if "megabytes_a_second" in goals:
        speed, goal = row.size / MB / seconds, goals["megabytes_a_second"]
        found.append(("a core", f"{speed:.0f} MB/s", f"at least {goal} MB/s", speed >= goal))
    other = next((one for one in row.trainers if one.label == goals.get("over") and not one.note), None)
    if other is not None:
        times = statistics.median(other.seconds) / seconds
        found.append(("speed", f"{times:.2f}× {other.label}", f"at least {goals['times']}×", times >= goals["times"]))
    if other is not None and "memory" in goals:
        share = statistics.median(ours.peak) / statistics.median(other.peak)
        found.append(("peak", f"{share:.2f} of {other.label}", f"at most {goals['memory']}", share <= goals["memory"]))
    return found


def summary(rows: list[Row]) -> str:
    """Return all goals in one table."""
    cells = [
        [row.name, what, reached, goal, "yes" if met else "no"]
        for row in rows
        for what, reached, goal, met in verdicts(row)
    ]
    return "\n".join(markdown(["work", "", "reached", "goal", "met"], cells))


def to_json(row: Row) -> dict[str, Any]:
    """Return the row as JSON values."""
    return asdict(row)
