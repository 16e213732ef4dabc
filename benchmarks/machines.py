"""The command `machines`: a job in parts by 1, 2 and 4 processes beside one process, merging, and updates of a folder.

Processes share the processors of this machine evenly: each has its number of them. All runs embed the same Parquet file
from its file to a file, and load the model: what a part of an array of jobs does. Updates write random vectors, without an
encoder: what is measured is the folder. Seconds are those of the clock, of the processors (all processes), and bytes those
that the system counts as written.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

from benchmarks import report
from benchmarks.process import cores
from benchmarks.vector_folder import layout
from wordpiece_bert import merge_parts, write_vectors
from wordpiece_bert.vectors.documents import Documents
from wordpiece_bert.vectors.folder_update import Encoded, write_folder

PROCESSES = (1, 2, 4)
WIDTH = 384
WORDS = [
    "the",
    "a",
    "of",
    "in",
    "and",
    "bread",
    "oven",
    "city",
    "river",
    "bicycle",
    "to",
    "repair",
    "capital",
    "which",
    "was",
    "with",
    "film",
    "history",
    "water",
]


def main(arguments: list[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="benchmarks machines", description=__doc__)
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--texts", type=int, default=4000, help="how many texts are embedded")
    parser.add_argument("--rows", type=int, default=300_000, help="the rows of the folder that is updated")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--record", type=Path, nargs="?", const=report.RECORDS, help="save the results in this folder")
    parser.add_argument("--update", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.update:
        _update(Path(options.update), options.rows)
        return 0
    what = f"{options.texts:,} texts, {options.model}; a folder of {options.rows:,} rows"
    head = report.heading("A job in parts", what)
    load = os.getloadavg()[0]
    head += f"\nOther programs took {load:.1f} processors before the run.\n"
    print(head, flush=True)
    with tempfile.TemporaryDirectory(prefix="wordpiece-machines-") as folder:
        home = Path(folder)
        parts = _parts(options, home)
        merged = _merging(options, home)
        updates = _updates(options, home)
    text = "\n".join(
        [
            head,
            *report.markdown(
                ["processes", "seconds", "CPU seconds", "times one process"],
                [
                    [str(n), f"{wall:.2f}", f"{cpu:.2f}", f"{parts[1][0] / wall:.2f}"]
                    for n, (wall, cpu) in parts.items()
                ],
            ),
            "",
            *report.markdown(["merge", "seconds", "MB written"], merged),
            "",
            *report.markdown(["update", "seconds", "CPU seconds", "MB written", "% of the folder"], updates),
            "",
        ]
    )
    print(text)
    if options.record:
        found = {str(n): one for n, one in parts.items()}
        content = {"load": load, "parts": found, "merge": merged, "updates": updates}
        print(report.save("machines", text, content, options.record))
    return 0


def _parts(options: argparse.Namespace, home: Path) -> dict[int, tuple[float, float]]:
    """Return the median seconds of the clock and of the processors, by number of processes."""
    chance = random.Random(0)
    texts = [" ".join(chance.choices(WORDS, k=chance.randint(5, 60))) for _ in range(options.texts)]
    table = pyarrow.table({"id": range(len(texts)), "text": texts})
    pyarrow.parquet.write_table(table, home / "texts.parquet", row_group_size=max(1, len(texts) // 64))
    command = [sys.executable, "-m", "wordpiece_bert", "embed", str(home / "texts.parquet"), "--text-column", "text"]
    command += ["-m", options.model, "-q"]
    found: dict[int, list[tuple[float, float]]] = {count: [] for count in PROCESSES}
    for _ in range(options.rounds):
        for count in PROCESSES:
            files = [home / f"{count}-{i}.npy" for i in range(count)]
            for file in files:  # a part that is complete is not computed again
                for old in home.glob(f"{file.name}*"):
                    old.unlink()
            own = [[*command, "-o", str(file), "--part", f"{i}/{count}"] for i, file in enumerate(files)]
            found[count].append(_timed(own, _shares(count)))
    return {count: tuple(map(statistics.median, zip(*runs, strict=True))) for count, runs in found.items()}  # type: ignore[misc]


def _shares(count: int) -> list[list[int]]:
    """Return the processors of each process."""
    every = cores(len(os.sched_getaffinity(0)))
    return [every[i::count] or [every[i % len(every)]] for i in range(count)]


def _timed(commands: Sequence[Sequence[str]], shares: Sequence[Sequence[int]]) -> tuple[float, float]:
    """Run programs at the same time; return the seconds of the clock and of the processors."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    running = [
        subprocess.Popen(command, preexec_fn=_on(share)) for command, share in zip(commands, shares, strict=True)
    ]
    codes = [one.wait() for one in running]
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert not any(codes), codes
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _on(share: Sequence[int]) -> Callable[[], None]:
    return lambda: os.sched_setaffinity(0, share)


def _merging(options: argparse.Namespace, home: Path) -> list[list[str]]:
    """Return the rows of the table of merging."""
    most = max(PROCESSES)
    columns: dict[str, Any] = {"text_column": "text", "id_column": "id"}
    for i in range(most):
        write_vectors(home / "texts.parquet", home / f"{i}.vectors", options.model, part=(i, most), **columns)
    rows = []
    for label, names, output in (
        (f"{most} files", [home / f"{most}-{i}.npy" for i in range(most)], home / "merged.npy"),
        (f"{most} folders", [home / f"{i}.vectors" for i in range(most)], home / "merged.vectors"),
    ):
        before, start = _written(), time.perf_counter()
        merge_parts(names, output)
        rows.append([label, f"{time.perf_counter() - start:.3f}", f"{(_written() - before) / 1e6:.2f}"])
    return rows


def _updates(options: argparse.Namespace, home: Path) -> list[list[str]]:
    """Return the rows of the table of updates; each runs in a process of its own."""
    folder = home / "rows.vectors"
    rows = []
    for count in (options.rows, 10, max(1, options.rows // 100)):
        runs = []
        for _ in range(1 if count == options.rows else options.rounds):
            command = [sys.executable, "-m", "benchmarks", "machines", "--rows", str(options.rows)]
            command += ["--update", f"{folder}:{count}"]
            ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            runs.append([float(value) for value in ran.stdout.split()])
        seconds, cpu, written, memory = map(statistics.median, zip(*runs, strict=True))
        whole = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
        label = f"{count:,} rows, the first time" if count == options.rows else f"{count:,} rows"
        rows.append([f"{label} ({memory:.0f} MB of memory)", f"{seconds:.3f}", f"{cpu:.3f}", f"{written:.2f}",
                     f"{100 * written / whole:.2f}"])  # fmt: skip
    return rows


def _update(given: Path, total: int) -> None:
    """Write or update a folder; print seconds of the clock and the processors, MB written, and the peak in MB."""
    name, _, count = str(given).rpartition(":")
    folder, number = Path(name), int(count)
    is_new = not folder.exists()
    chance = np.random.default_rng(None)
    ids = np.arange(total) if is_new else chance.choice(total, number, replace=False)
    table = pyarrow.table(
        {
            "id": ids,
            "body": [f"text {i} {chance.integers(1 << 30)}" for i in ids],
            "title": [f"title {i}" for i in ids],
        }
    )
    documents = Documents(table, "body", "id", ["title"])

    def embed(texts: list[str]) -> Encoded:
        return Encoded(chance.standard_normal((len(texts), WIDTH), dtype=np.float32), np.zeros(len(texts), np.bool_))

    before, start, cpu = _written(), time.perf_counter(), time.process_time()
    write_folder(
        folder, documents, layout(WIDTH, ("float32",)), embed, update=not is_new, prune=False,
        planned=lambda plan: None, done=lambda count, cut: None,
    )  # fmt: skip
    print(time.perf_counter() - start, time.process_time() - cpu, (_written() - before) / 1e6,
          resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)  # fmt: skip


def _written() -> int:
    """Return how many bytes this process has written."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))
