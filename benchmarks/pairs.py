"""Pairs of texts that people have scored: how well cosines follow the scores, by number type and engine.

A folder has a file for each task, NAME.tsv or NAME.tsv.xz in UTF-8 without a header. A line has a score and two texts,
separated by tabs. This package runs in each of its dtypes, other engines in int8, over the same texts sorted by length.
"""

from __future__ import annotations

import argparse
import lzma
import tomllib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks import contests, report
from benchmarks.contests import Contest, in_groups
from benchmarks.model_data import CALIBRATION, ids_of, paragraphs
from wordpiece_bert._internal.correlation import spearman
from wordpiece_bert.errors import InputError
from wordpiece_bert.hub import find_model
from wordpiece_bert.util import pairwise_cos_sim

PUBLISHED = Path(__file__).with_name("published.toml")

#: How far ours in float32 may be from a published correlation. MTEB computes in float32 as well, with other sums.
TOLERANCE = 1e-6

#: Pairs of each task with --quick.
QUICK = 50


class Scored(NamedTuple):
    """The pairs of a task."""

    scores: npt.NDArray[np.float64]
    first: list[str]
    second: list[str]


class Measured(NamedTuple):
    """What an engine reached: correlations by task, and its cosines to ours in float32."""

    dtype: str
    correlations: dict[str, float]
    lowest: float
    median: float


def read_folder(folder: Path, limit: int | None = None) -> dict[str, Scored]:
    """Read the tasks of a folder, by name, at most `limit` pairs of each.

    Raises
    ------
    InputError
        The folder has no file of pairs, or a line is none.
    """
    files = sorted([*folder.glob("*.tsv"), *folder.glob("*.tsv.xz")])
    if not files:
        raise InputError(f"{folder}: there is no file of pairs, .tsv or .tsv.xz")
    return {file.name.split(".tsv")[0]: _read(file, limit) for file in files}


def _read(file: Path, limit: int | None) -> Scored:
    data = lzma.decompress(file.read_bytes()) if file.suffix == ".xz" else file.read_bytes()
    scores, first, second = [], [], []
    # Only line feeds end a line: texts may have other characters at which str.splitlines splits.
    for number, line in enumerate(data.decode("utf-8").removesuffix("\n").split("\n")[:limit], 1):
        try:
            score, one, other = line.removesuffix("\r").split("\t")
            scores.append(float(score))
        except ValueError:
            what = f"{file}, line {number}: {line!r:.60} is not a score and two texts, separated by tabs"
            raise InputError(what) from None
        first.append(one)
        second.append(other)
    return Scored(np.array(scores), first, second)


def published(model: str) -> dict[str, float]:
    """Return the published correlations of a model by task; none of a model that `PUBLISHED` does not name."""
    found: dict[str, float] = tomllib.loads(PUBLISHED.read_text(encoding="utf-8")).get(model, {})
    return found


def measure(contest: Contest, tasks: dict[str, Scored]) -> dict[str, Measured]:
    """Return what each engine reaches; the first is that with which the vectors of the others are compared."""
    # As sentence-transformers sorts them: texts of like lengths share a batch, which decides how int8 inputs are rounded
    # where a batch has one scale.
    texts = sorted(
        {text for task in tasks.values() for text in (*task.first, *task.second)}, key=lambda t: (-len(t), t)
    )
    place = {text: row for row, text in enumerate(texts)}
    path = str(contest.texts(texts))
    vectors = contest.unit_vectors(in_groups(list(range(len(texts)))), do="texts", path=path)
    exact = next(iter(vectors.values()))
    found = {}
    for label, x in vectors.items():
        correlations = {}
        for name, task in tasks.items():
            one, other = (x[[place[text] for text in part]] for part in (task.first, task.second))
            correlations[name] = spearman(pairwise_cos_sim(one, other), task.scores)
        cosines = pairwise_cos_sim(x, exact)
        # Of ours the report of the engine: what "auto" is depends on the CPU.
        dtype = contest.loads[label].get("engine", contest.entries[label].dtype).split()[0]
        found[label] = Measured(dtype, correlations, float(cosines.min()), float(np.median(cosines)))
    return found


def run(tasks: dict[str, Scored], options: argparse.Namespace) -> tuple[str, dict[str, object], bool]:
    """Measure all engines.

    Returns
    -------
    str
        A section of the report.
    dict
        The figures.
    bool
        Whether ours in float32 missed a published correlation.
    """
    ours = [entry for entry in contests.OURS if entry.kind in options.dtypes or entry.kind == "float32"]
    theirs = [entry for entry in contests.THEIRS if entry.dtype == "int8" and entry.engine in options.engines]
    folder = find_model(options.model)
    calibration = ids_of(folder, paragraphs(options.corpora and options.corpora / "wiki_en.txt", CALIBRATION))
    with Contest(folder, options.threads or 1, [*ours, *theirs], calibration) as contest:
        found = measure(contest, tasks)
        engines = [f"- {label}: {load.get('engine', load['version'])}" for label, load in contest.loads.items()]
        notes = [f"- {label}: not measured: {note}" for label, note in contest.notes.items()]
    # The figures are of whole files.
    goals = {} if options.quick else published(options.model)
    lines = [*table(found, goals), "", *engines, *notes]
    exact = next(iter(found.values())).correlations
    wrong = [name for name in tasks if name in goals and abs(exact[name] - goals[name]) > TOLERANCE]
    lines += [f"- WRONG: {name}: ours float32 has {exact[name]:.8f}, published is {goals[name]:.8f}" for name in wrong]
    content = {
        "pairs": {name: len(task.scores) for name, task in tasks.items()},
        "published": goals,
        "engines": {label: one._asdict() for label, one in found.items()},
        "notes": contest.notes,
    }
    return "\n".join(lines), content, bool(wrong)


def table(found: dict[str, Measured], goals: dict[str, float]) -> list[str]:
    """Return the lines of a table: each task's correlation and, where it is published, the difference."""
    tasks = next(iter(found.values())).correlations
    header = ["engine", "dtype"]
    for name in tasks:
        header += [f"Spearman, {name}", *["to published"] * (name in goals)]
    cells = []
    for label, one in found.items():
        engine = " ".join(word for word in label.replace(",", "").split() if word != one.dtype)
        row = [engine, one.dtype]
        for name, value in one.correlations.items():
            row.append(f"{value:.7f}")
            if name in goals:
                # + 0.0: a difference that is rounded to 0 has no minus.
                row.append(f"{round(value - goals[name], 7) + 0.0:+.7f}")
        cells.append([*row, f"{one.lowest:.5f}", f"{one.median:.5f}"])
    return report.markdown([*header, "lowest cosine", "median cosine"], cells)
