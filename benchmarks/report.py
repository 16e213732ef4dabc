"""Formats results for the terminal and for records."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.definitions import OTHERS
from benchmarks.measure import Result, Row

RECORDS = Path(__file__).with_name("records")
MB = 1_000_000

HEADER = ["", "first MB/s", "spread", "first ours ×", "repeated MB/s", "spread", "repeated ours ×", "Mtokens/s", "call"]


def table(row: Row) -> str:
    """Return one benchmark as a Markdown table with a heading."""
    benchmark = row.benchmark
    lines = [f"### {benchmark.name}", ""]
    if benchmark.texts is None:
        lines += _alone(row)
    else:
        lines += [f"{row.texts:,} texts, {row.size / MB:,.3f} MB; vocabulary: {benchmark.vocabulary}.", ""]
        lines += markdown(HEADER, [_cells(row, result) for result in row.results if not result.note])
    lines += [f"- {result.label}: not measured: {result.note}" for result in row.results if result.note]
    lines += ["", *_goals(row), benchmark.analysis, ""]
    return "\n".join(lines)


def _cells(row: Row, result: Result) -> list[str]:
    ours = row.results[0]
    cells = [f"{result.label} {result.version}".strip()]
    for kind in ("first", "repeated"):
        seconds, own, spread = result.seconds(kind), ours.seconds(kind), result.spread(kind)
        cells.append("" if seconds is None else f"{row.size / MB / seconds:.1f}")
        cells.append("" if spread is None else f"{spread:.0%}")
        cells.append("" if seconds is None or own is None or result is ours else f"{seconds / own:.2f}")
    seconds = result.seconds("repeated")
    cells.append("" if seconds is None else f"{result.tokens / MB / seconds:.2f}")
    cells.append("" if seconds is None else duration(seconds))
    return cells


def _alone(row: Row) -> list[str]:
    if row.benchmark.work == "load":
        header = ["", "ms", "spread"]
        cells = [
            [
                f"{one.label} {one.version}",
                f"{1e3 * (one.seconds('first') or 0):.1f}",
                f"{one.spread('first') or 0:.0%}",
            ]
            for one in row.results
            if not one.note
        ]
    else:
        header = ["", "MB grown by loading", "MB grown by the stream"]
        cells = [
            [f"{one.label} {one.version}", f"{one.loaded / MB:.1f}", f"{one.growth / MB:.1f}"]
            for one in row.results
            if not one.note
        ]
    return markdown(header, cells)


class Ratio(NamedTuple):
    """What is reached of a goal: our speed over an engine's, or the share of a limit that a time takes."""

    #: The kind of passes, or the milliseconds.
    what: str
    over: str
    reached: float
    goal: float

    @property
    def met(self) -> bool:
        """Whether the goal is reached."""
        return self.reached >= self.goal


def ratios(row: Row) -> list[Ratio]:
    """Return what is reached of each goal of a benchmark."""
    goals, ours = row.benchmark.goals, row.results[0]
    found = []
    if "milliseconds" in goals and (seconds := ours.seconds("first")) is not None:
        found.append(Ratio(f"{1e3 * seconds:.1f} ms", "", goals["milliseconds"] / (1e3 * seconds), 1.0))
    for kind in ("first", "repeated"):
        seconds, others = ours.seconds(kind), _rivals(row, kind)
        if kind in goals and seconds is not None and others:
            theirs, label = min(others)
            found.append(Ratio(kind, label, theirs / seconds, goals[kind]))
    return found


def _rivals(row: Row, kind: str) -> list[tuple[float, str]]:
    """Return the seconds and the labels of the engines that a goal is over."""
    over = row.benchmark.goals.get("over")
    own = {one.label for one in row.benchmark.contestants if one.engine == "ours"}
    able = [one for one in row.results if (one.label not in own if over == OTHERS else one.label == over)]
    return [(seconds, one.label) for one in able if (seconds := one.seconds(kind)) is not None]


def _goals(row: Row) -> list[str]:
    goals = row.benchmark.goals
    lines = []
    for one in ratios(row):
        verdict = "reached" if one.met else "NOT reached"
        if "milliseconds" in goals:
            lines.append(f"Goal: {one.what} of {goals['milliseconds']:g} ms: {verdict}.")
        else:
            lines.append(f"Goal, {one.what}: {one.reached:.2f}× {one.over}, at least {one.goal:g}×: {verdict}.")
    return [*lines, ""] if lines else []


def summary(rows: list[Row]) -> str:
    """Return all goals in one table."""
    cells = []
    for row in rows:
        goals = row.benchmark.goals
        for one in ratios(row):
            times = "milliseconds" in goals
            cells.append(
                [
                    row.benchmark.name,
                    one.what if times else f"{one.reached:.2f}× {one.over}, {one.what}",
                    f"{goals['milliseconds']:g} ms" if times else f"{one.goal:g}×",
                    "yes" if one.met else "no",
                ]
            )
    return "\n".join(markdown(["work", "reached", "goal", "met"], cells))


def duration(seconds: float) -> str:
    """Format seconds in a suitable unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def markdown(header: list[str], cells: list[list[str]]) -> list[str]:
    widths = [max(len(line[column]) for line in [header, *cells]) for column in range(len(header))]
    lines = [
        "| "
        + " | ".join(_aligned(cell, width, index) for index, (cell, width) in enumerate(zip(line, widths, strict=True)))
        + " |"
        for line in [header, *cells]
    ]
    rule = (
        "|"
        + "|".join("-" * (width + 2) if index == 0 else "-" * (width + 1) + ":" for index, width in enumerate(widths))
        + "|"
    )
    return [lines[0], rule, *lines[1:]]


def _aligned(cell: str, width: int, index: int) -> str:
    return cell.ljust(width) if index == 0 else cell.rjust(width)


def machine() -> dict[str, Any]:
    """Describe the machine."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    fields = _fields(lines)
    name = fields.get("model name") or platform.machine()
    if "cpu family" in fields:
        name += f" (family {fields['cpu family']}, model {fields.get('model', '?')})"
    return name


def _fields(lines: list[str]) -> dict[str, str]:
    """Return the first processor's fields in /proc/cpuinfo."""
    found: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            break
        found[name.strip()] = value.strip()
    return found


def heading(what: str, source: str) -> str:
    """Return the beginning of a report: the machine, the date and the texts."""
    about = machine()
    return (
        f"# {what}\n\n{about['cpu']}, {about['cores']} cores; {about['system']}; Python {about['python']}; "
        f"{about['date']}.\nTexts: {source}.\n"
    )


def save(kind: str, text: str, content: dict[str, Any], folder: Path = RECORDS) -> Path:
    """Write a report and its figures as records/<cpu>-<date>-<kind>.md and .json; return the path of the first."""
    about = machine()
    stem = re.sub(r"[^a-z0-9]+", "-", f"{about['cpu']} {about['date']} {kind}".lower()).strip("-")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem}.json").write_text(json.dumps({"machine": about, **content}, indent=1) + "\n", encoding="utf-8")
    path = folder / f"{stem}.md"
    path.write_text(text, encoding="utf-8")
    return path
