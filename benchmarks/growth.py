"""How cost grows with the length of texts, the size of a batch, the number of threads and the size of a vocabulary."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.definitions import Contestant
from benchmarks.measure import Bench, Effort, Result, write_tokenizer
from benchmarks.report import MB, duration, markdown
from benchmarks.texts import Item, size_of, write_texts

ENGINES = ("ours", "nanotoken", "tokenizers")

LENGTHS = [16 << (2 * step) for step in range(9)]  # 16 bytes to 1 MiB
BATCHES = [4**step for step in range(9)]  # 1 to 65,536 texts
VOCABULARIES = [1000, 3000, 10_000, 30_000, 119_547]

#: Growth is measured with repeated passes, at many points.
EFFORT = Effort(first_passes=1, repeated_passes=7, budget=1.0)

# A point has at most this many bytes; short calls are repeated until they have about as many, but not more often than
# POINT_CALLS.
POINT_BYTES = 2_000_000
POINT_CALLS = 2000


@dataclass
class Curve:
    """Seconds per call of each engine against one variable."""

    name: str
    axis: str
    #: Values of the variable, bytes of text at each, and seconds by engine.
    points: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    seconds: dict[str, list[float | None]] = field(default_factory=dict)

    def add(self, point: int, size: int, results: dict[str, Result]) -> None:
        """Add a point."""
        self.points.append(point)
        self.sizes.append(size)
        for label, result in results.items():
            self.seconds.setdefault(label, []).append(result.seconds("repeated"))

    def to_json(self) -> dict[str, Any]:
        """Return the curve as JSON values."""
        return {"name": self.name, "points": self.points, "bytes": self.sizes, "seconds": self.seconds}


def curves(bench: Bench) -> list[Curve]:
    """Measure all curves, on English text with the uncased vocabulary unless that is the variable."""
    lines = bench.source.lines("english")
    tokenizer = bench.tokenizer("uncased")
    folder = tokenizer.parent
    contestants = [_contestant(name) for name in ENGINES if bench.only is None or name in bench.only]

    lengths = Curve("length of texts", "bytes per text (same total)")
    whole = " ".join(lines).encode("ascii", "ignore")[:POINT_BYTES].decode("ascii")
    for length in LENGTHS:
        if length <= len(whole):
            texts: list[Item] = [whole[start : start + length] for start in range(0, len(whole), length)]
            _point(bench, lengths, length, texts, contestants, tokenizer, folder)

    batches = Curve("size of the batch", "texts per call")
    for size in BATCHES:
        if size <= len(lines):
            _point(bench, batches, size, list(lines[:size]), contestants, tokenizer, folder)

    threads = Curve("threads", "threads")
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    for count in sorted({1, *(n for n in (2, 4, 8, 16, 32, 64) if n < usable), usable}):
        ours = [_contestant("ours", threads=count)]
        _point(bench, threads, count, list(lines), ours, tokenizer, folder, cores=count)

    vocabularies = Curve("size of the vocabulary", "tokens")
    tokens, lowercase = bench.source.vocabulary("multilingual-cased")
    for size in VOCABULARIES:
        if size <= len(tokens):
            path = folder / f"vocabulary-{size}.json"
            write_tokenizer(smaller(tokens, size), lowercase, path)
            _point(bench, vocabularies, size, list(lines), contestants, path, folder, limit=POINT_BYTES)
    return [lengths, batches, threads, vocabularies]


def smaller(tokens: list[str], size: int) -> list[str]:
    """Return `size` tokens of a vocabulary: special tokens first, then the shortest, so that words have several pieces."""
    special = [token for token in tokens if token.startswith("[") and token.endswith("]") and "unused" not in token]
    rest = sorted(
        (token for token in tokens if token not in set(special)), key=lambda token: len(token.removeprefix("##"))
    )
    return [*special, *rest][:size]


def _contestant(engine: str, **options: int) -> Contestant:
    return Contestant(engine=engine, label=engine, work="ragged", options=dict(options))


def _point(
    bench: Bench,
    curve: Curve,
    point: int,
    texts: list[Item],
    contestants: list[Contestant],
    tokenizer: Path,
    folder: Path,
    *,
    cores: int = 1,
    limit: int | None = None,
) -> None:
    if limit is not None:
        total = size_of(texts)
        texts = texts[: max(1, len(texts) * limit // total)] if total > limit else texts
    path = folder / "texts.json"
    size = write_texts(texts, path)
    calls = max(1, min(POINT_CALLS, POINT_BYTES // (4 * size)))
    results = {one.label: Result(one.label) for one in contestants}
    able = bench.compare(contestants, tokenizer, path, results, cores)
    bench.time(able, tokenizer, path, results, cores, calls)
    curve.add(point, size, results)


def table(curve: Curve) -> str:
    """Return a curve as a table of MB/s and seconds per call."""
    header = [curve.axis, *(f"{label} {unit}" for label in curve.seconds for unit in ("MB/s", "per call"))]
    cells = []
    for index, (point, size) in enumerate(zip(curve.points, curve.sizes, strict=True)):
        line = [f"{point:,}"]
        for seconds in (values[index] for values in curve.seconds.values()):
            line += ["", ""] if seconds is None else [f"{size / MB / seconds:.1f}", duration(seconds)]
        cells.append(line)
    return f"### Cost by {curve.name}\n\n" + "\n".join(markdown(header, cells)) + "\n"


def plot(found: list[Curve], path: Path) -> None:
    """Plot the curves in MB/s, one panel each, with logarithmic axes.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
    for curve, panel in zip(found, panels.flat, strict=True):
        for label, seconds in curve.seconds.items():
            points = [
                (point, size / MB / one)
                for point, size, one in zip(curve.points, curve.sizes, seconds, strict=True)
                if one is not None
            ]
            panel.plot([point for point, _ in points], [speed for _, speed in points], marker="o", label=label)
        panel.set(xscale="log", yscale="log", xlabel=curve.axis, ylabel="MB/s", title=f"by {curve.name}")
        panel.grid(visible=True, which="both", alpha=0.3)
        panel.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
