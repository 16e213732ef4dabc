"""Write what README.md and the docs say of speed and accuracy, and the picture of it, from the benchmarks' records.

Run without arguments to write them, with `--check` to fail if what is committed differs.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "tests" / "benchmarks" / "records"
#: The record of each command that is published.
RUNS = {
    "table": "amd-epyc-family-26-model-2-2026-11-24",
    "training": "amd-epyc-family-26-model-2-2026-11-24",
    "models": "amd-epyc-family-26-model-2-2026-11-24",
    "latency": "amd-epyc-family-26-model-2-2026-11-24",
    "accuracy": "amd-epyc-family-26-model-2-2026-11-24",
}
#: Names of processors by the family and the model that records have.
ZEN = {"family 25, model 17": "Zen 4", "family 26, model 2": "Zen 5"}
NAMES = {
    "ours": "wordpiece-bert",
    "tokenizers-rc": "tokenizers 1.0.0rc3",
    "tokenizers": "tokenizers 0.23.3",
    "nanotoken, ids only": "nanotoken",
}

#: The benchmarks of the page of comparisons.
COMPARED = {
    "English paragraphs": "English paragraphs, ragged ids",
    "75 languages, uncased": "many languages, uncased vocabulary",
    "75 languages, cased": "many languages, cased vocabulary",
    "tweets": "tweets",
    "Chinese": "Chinese",
    "code and logs": "code and logs",
    "256 paragraphs padded to 128": "padded arrays, 256 paragraphs to 128",
    "256 tweets padded to the longest": "padded arrays, 256 tweets to the longest",
    "ids, offsets and word ids (nanotoken: ids only)": "ids, offsets and word ids",
}
#: The benchmarks of training that are published, by their texts.
TRAINED = {"34 MB of English": "bpe, English", "13 MB in 75 languages": "bpe, many languages"}

#: The tasks of pairs that people scored, by the names of their files.
SCORED = {"STSBenchmark": "STS benchmark", "SICK-R": "SICK-R"}

WIDTH, PANEL, BAR, TOP = 960, 300, 22, 74
INK, GREY = "#1f2328", "#656d76"
OURS, OTHERS = ("#0b6e99", "#6fb3cf"), ("#9aa8b2", "#ccd5db")


def record(command: str) -> dict[str, Any]:
    """Return the published record of a command."""
    path = RECORDS / f"{RUNS[command]}-{command}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def processor(command: str) -> str:
    """Return the processor of a record, with the name of its cores."""
    cpu = record(command)["machine"]["cpu"]
    family = re.search(r"\((.*)\)", cpu)
    return f"{cpu.split(' (')[0]} ({ZEN[family[1]]})" if family and family[1] in ZEN else cpu


class Speed(NamedTuple):
    """Two speeds of a program, the higher the better: warm and in the first pass, or sorted and in the order given."""

    name: str
    one: float
    two: float


def tokenized(benchmark: str) -> list[Speed]:
    """Megabytes a second, warm and in the first pass, ours first and then the fastest."""
    row = next(row for row in record("table")["rows"] if row["name"] == benchmark)
    found = [
        Speed(
            NAMES.get(one["label"], one["label"]),
            row["bytes"] / 1e6 / median(one["repeated"]),
            row["bytes"] / 1e6 / median(one["first"]),
        )
        for one in row["results"]
        if one["repeated"] and not one["wrong"]
    ]
    return [found[0], *sorted(found[1:], key=lambda speed: -speed.one)]


def embedded(dtype: str, threads: int = 2) -> list[Speed]:
    """MiniLM sentences a second, sorted and in the order given, of each engine in its faster way to use threads."""
    measured = vectors(threads)
    count = len(measured["lengths"])
    best: dict[str, Speed] = {}
    for label in measured["times"]["sorted"]:
        if (engine := of_dtype(label, dtype)) is not None:
            taken = (measured["times"][order][label]["seconds"] for order in ("sorted", "in the order given"))
            one, two = (count / seconds for seconds in taken)
            before = best.get(engine, Speed("", 0, 0))
            best[engine] = Speed(engine, max(one, before.one), max(two, before.two))
    return sorted(best.values(), key=lambda speed: (speed.name != "wordpiece-bert", -speed.one))


def vectors(threads: int = 2) -> dict[str, Any]:
    """What was measured of MiniLM."""
    name = f"minilm, {threads} thread{'s' * (threads != 1)}"
    measured: dict[str, Any] = next(one for one in record("models")["measured"] if one["name"] == name)
    return measured


def of_dtype(label: str, dtype: str) -> str | None:
    """The engine that a label names, if it computes in this type."""
    engine, found, _ = label.partition(f" {dtype}")
    return NAMES.get(engine, engine) if found else None


def trained(benchmark: str) -> list[tuple[str, float]]:
    """Seconds to learn a vocabulary."""
    row = next(row for row in record("training")["rows"] if row["name"] == benchmark)
    return [(NAMES.get(one["label"], one["label"]), median(one["seconds"])) for one in row["trainers"]]


def first_vector(dtype: str, length: int) -> list[tuple[str, float]]:
    """Milliseconds for one sentence on one thread."""
    found = record("latency")
    place = found["lengths"].index(length)
    return [
        (engine, 1e3 * taken[place])
        for label, taken in found["seconds"]["1"].items()
        if (engine := of_dtype(label, dtype)) is not None
    ]


def correlations(label: str) -> str:
    """Return an engine's correlations with the scores of people, as in the table of README.md; of "published" those."""
    pairs = record("accuracy")["results"]["pairs"]
    found = pairs["published"] if label == "published" else pairs["engines"][label]["correlations"]
    return " / ".join(f"{found[task]:.4f}" for task in SCORED)


def number(value: float) -> str:
    """A number with two or three digits."""
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.0f}" if value >= 9.95 else f"{value:.1f}"


def seconds(value: float) -> str:
    """Seconds or milliseconds with two digits after the point below ten."""
    return f"{value:.2f}" if value < 9.95 else f"{value:.1f}"


def both(speed: Speed) -> str:
    """Two speeds, the second one first where it is the first pass."""
    return f"{number(speed.one)} / {number(speed.two)}"


def times(ours: Speed, theirs: Speed) -> str:
    """How many times as fast, in the same order."""
    return f"{ours.one / theirs.one:.1f} / {ours.two / theirs.two:.1f}"


def readme() -> str:
    """The table of README.md, and what is to be known with it."""
    rows = []
    for what, benchmark in (
        ("English paragraphs", "English paragraphs, ragged ids"),
        ("75 languages", "many languages, uncased vocabulary"),
        ("tweets", "tweets"),
        ("tweets, padded arrays", "padded arrays, 256 tweets to the longest"),
        ("ids with offsets and word ids, beside ids alone", "ids, offsets and word ids"),
    ):
        ours, other = tokenized(benchmark)[:2]
        rows.append([f"{what}, MB/s", both(ours), f"{other.name} {both(other)}", times(ours, other)])
    two, one = tokenized("two threads, whole corpus")
    rows.append(["English on two threads, MB/s, beside one", both(two), f"{both(one)}", times(two, one)])
    for what, benchmark in TRAINED.items():
        (_, ours_s), (name, theirs_s) = trained(benchmark)
        cells = [seconds(ours_s), f"{name} {seconds(theirs_s)}", f"{theirs_s / ours_s:.0f}"]
        rows.append([f"a vocabulary of {what}, seconds", *cells])
    for dtype in ("float32", "bfloat16", "int8"):
        ours, other = embedded(dtype)[:2]
        what = f"MiniLM in {dtype}, sentences/s of two cores"
        rows.append([what, both(ours), f"{other.name} {both(other)}", times(ours, other)])
    fastest = embedded("int8")[1].name
    cells = [correlations("ours int8"), f"{fastest} {correlations(f'{fastest} int8')}", ""]
    rows.append(["MiniLM in int8, rank correlation with scores of people", *cells])
    english = {speed.name: speed for speed in tokenized("English paragraphs, ragged ids")}
    many = {speed.name: speed for speed in tokenized("many languages, uncased vocabulary")}
    ours, usual = english["wordpiece-bert"], english["tokenizers 0.23.3"]
    lines = [
        "| | wordpiece-bert | fastest other | times |",
        "|---|--:|--:|--:|",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
        f"Tokens: from `list[str]` on one core of an {processor('table')}, warm / first pass of a fresh process. "
        f"On English, tokenizers 0.23.3 reaches {both(usual)} MB/s, so ours is {ours.one / usual.one:.0f} / "
        f"{ours.two / usual.two:.0f} times as fast, in 75 languages {_ratio(many)} times. "
        f"Vectors: token ids of Wikipedia paragraphs on an {processor('models')}, sorted by length, as most libraries "
        "do, / in the order given; each engine in its faster way to use two threads. "
        "The last row is Spearman's correlation of cosines with the scores of pairs in the "
        f"{' / '.join(SCORED.values())}: {correlations('published')} as published, {correlations('ours float32')} here "
        "in float32.",
    ]
    return "\n".join(lines)


def _ratio(speeds: dict[str, Speed]) -> str:
    ours, usual = speeds["wordpiece-bert"], speeds["tokenizers 0.23.3"]
    return f"{ours.one / usual.one:.0f} / {ours.two / usual.two:.0f}"


def tokens_compared() -> str:
    """The table of tokenizers on the page of comparisons: warm, and the first pass in brackets."""
    engines = ["wordpiece-bert", "nanotoken", "tokie", "kitoken", "tokenizers 1.0.0rc3", "tokenizers 0.23.3"]
    lines = [f"| | {' | '.join(engines)} |", "|---" + "|--:" * len(engines) + "|"]
    for what, benchmark in COMPARED.items():
        speeds = {speed.name: speed for speed in tokenized(benchmark)}
        cells = (speeds.get(name) for name in engines)
        shown = ("" if cell is None else f"{number(cell.one)} ({number(cell.two)})" for cell in cells)
        lines.append(f"| {what} | {' | '.join(shown)} |")
    return "\n".join(lines)


def threads_compared() -> str:
    """The table of two threads on the page of comparisons: repeated passes."""
    lines = ["| one call for | one thread | two threads | times |", "|---|--:|--:|--:|"]
    for what, benchmark in (("64 KiB", "64 KiB"), ("1 MiB", "1 MiB"), ("34 MB", "whole corpus")):
        two, one = tokenized(f"two threads, {benchmark}")
        lines.append(f"| {what} | {number(one.one)} | {number(two.one)} | {two.one / one.one:.1f} |")
    return "\n".join(lines)


def vocabularies_compared() -> str:
    """The table of training on the page of comparisons."""
    lines = ["| | wordpiece-bert | tokenizers 0.23.3 | times |", "|---|--:|--:|--:|"]
    for what, benchmark in TRAINED.items():
        (_, ours), (_, theirs) = trained(benchmark)
        lines.append(f"| {what} | {seconds(ours)} | {seconds(theirs)} | {theirs / ours:.0f} |")
    return "\n".join(lines)


def models_compared() -> str:
    """The table of sentence vectors on the page of comparisons: two threads, and one for a sentence."""
    return _models(2, (32, 128), ("float32", "bfloat16", "int8"))


def scored_pairs() -> str:
    """The table of accuracy on the page of benchmarks, and the versions."""
    pairs = record("accuracy")["results"]["pairs"]
    lines = [f"| | dtype |{''.join(f' {name} | to published |' for name in SCORED.values())} lowest cosine | median |"]
    lines.append("|---|---|" + "--:|" * (2 * len(SCORED) + 2))
    for label, one in pairs["engines"].items():
        row = [label.removesuffix(f" {one['dtype']}").replace("int8, ", ""), one["dtype"]]
        for task in SCORED:
            value = one["correlations"][task]
            row += [f"{value:.7f}", f"{value - pairs['published'][task]:+.7f}".replace("-", "\u2212")]
        row += [f"{one[name]:.5f}" for name in ("lowest", "median")]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def one_thread() -> str:
    """The table of sentence vectors on the page of benchmarks."""
    return _models(1, (8, 32, 128, 256), ("float32", "bfloat16", "int8", "f16", "q8_0"))


def _models(threads: int, lengths: tuple[int, ...], dtypes: tuple[str, ...]) -> str:
    """A table of engines: sentences a second, milliseconds for one sentence on one thread, the lowest cosine."""
    header = ["", "sorted", "as given", *(f"{length} tokens, ms" for length in lengths), "lowest cosine"]
    lines = [f"| {' | '.join(header)} |", "|---" + "|--:" * (len(header) - 1) + "|"]
    agreement = vectors(threads)["agreement"]
    for dtype in dtypes:
        latencies = [dict(first_vector(dtype, length)) for length in lengths]
        for speed in embedded(dtype, threads):
            lowest = next(agreement[label]["lowest"] for label in agreement if of_dtype(label, dtype) == speed.name)
            taken = [f"{times[speed.name]:.2f}" if speed.name in times else "" for times in latencies]
            cells = [f"{speed.name}, {dtype}", number(speed.one), number(speed.two), *taken, f"{lowest:.5f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


class Panel(NamedTuple):
    """One group of bars, two for each program if there are two numbers."""

    title: str
    unit: str
    bars: Sequence[tuple[str, tuple[float, ...]]]


def panels() -> list[Panel]:
    """The groups of the picture."""
    tokens = [(speed.name, (speed.one, speed.two)) for speed in tokenized("English paragraphs, ragged ids")]
    vectors = [(speed.name, (speed.one, speed.two)) for speed in embedded("float32")]
    vocabulary = [(name, (value,)) for name, value in trained("bpe, English")]
    return [
        Panel("Text to token ids", "MB of English a second, one core: warm / first pass", tokens[:5]),
        Panel("Text to vectors, float32", "MiniLM sentences a second, two cores: sorted / as given", vectors[:5]),
        Panel("Text to a vocabulary", "seconds for 34 MB of English (less is better)", vocabulary),
    ]


def draw(groups: list[Panel]) -> str:
    """Return the picture as SVG."""
    height = TOP + 2 * BAR * max(len(panel.bars) for panel in groups) + 14
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="13">',
        "<title>Speed of wordpiece-bert compared with other libraries</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
    ]
    for place, panel in enumerate(groups):
        x = 20 + place * (WIDTH - 20) // len(groups)
        parts.append(f'<text x="{x}" y="30" font-size="17" font-weight="600" fill="{INK}">{escape(panel.title)}</text>')
        parts.append(f'<text x="{x}" y="50" font-size="10" fill="{GREY}">{escape(panel.unit)}</text>')
        longest = max(max(values) for _, values in panel.bars)
        for i, (name, values) in enumerate(panel.bars):
            y = TOP + 2 * BAR * i
            colours = OURS if name == "wordpiece-bert" else OTHERS
            parts.append(f'<text x="{x}" y="{y + 10}" fill="{INK}">{escape(name)}</text>')
            each = 14 / len(values)
            widths = [max(2, (PANEL - 90) * value / longest) for value in values]
            for line, (width, colour) in enumerate(zip(widths, colours, strict=False)):
                top = y + 16 + line * each
                parts.append(f'<rect x="{x}" y="{top:g}" width="{width:.1f}" height="{each:g}" fill="{colour}"/>')
            shown = " / ".join(number(value) if len(values) > 1 else seconds(value) for value in values)
            weight = ' font-weight="600"' if colours is OURS else ""
            parts.append(f'<text x="{x + max(widths) + 6:.1f}" y="{y + 28}"{weight} fill="{INK}">{shown}</text>')
    return "\n".join([*parts, "</svg>", ""])


def between(page: str, name: str, text: str) -> str:
    """Return a page with other text between the comments of this name."""
    start, end = f"<!-- {name}: written by scripts/published_speed.py -->\n", f"\n<!-- end of {name} -->"
    head, found, rest = page.partition(start)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        sys.exit(f"no {start.strip()} with its end")
    return f"{head}{start}\n{text}\n{end}{tail}"


def main() -> None:
    """Write the pages and the picture, or check the committed ones."""
    pages = {
        "README.md": {"speed": readme()},
        "docs/comparison.md": {
            "tokens": tokens_compared(),
            "threads": threads_compared(),
            "vocabularies": vocabularies_compared(),
            "vectors": models_compared(),
        },
        "docs/benchmarks.md": {"one thread": one_thread(), "accuracy": scored_pairs()},
    }
    files = {"docs/images/overview.svg": draw(panels())}
    for path, parts in pages.items():
        files[path] = (ROOT / path).read_text(encoding="utf-8")
        for name, text in parts.items():
            files[path] = between(files[path], name, text)
    for path, text in files.items():
        if "--check" not in sys.argv[1:]:
            (ROOT / path).write_text(text, encoding="utf-8")
        elif (ROOT / path).read_text(encoding="utf-8") != text:
            sys.exit(f"{path} is not what {Path(__file__).name} writes: run it")


if __name__ == "__main__":
    main()
