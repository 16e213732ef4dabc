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
RECORDS = ROOT / "benchmarks" / "records"
#: The record of each command that is published.
RUNS = {
    "table": "amd-epyc-family-26-model-2-2026-11-24",
    "training": "amd-epyc-family-26-model-2-2026-11-24",
    "models": "amd-epyc-family-26-model-2-2026-11-24",
    "latency": "amd-epyc-family-26-model-2-2026-11-24",
    "accuracy": "amd-epyc-family-26-model-2-2026-11-24",
}
#: The records of the table of ratios that are not the published ones of their command.
LIMITED = "amd-epyc-family-26-model-2-2026-11-22-models"
LARGE = "amd-epyc-family-26-model-2-2026-11-22-models-large"
AMX = "intel-r-xeon-r-processor-family-6-model-167-2026-11-23-models"
SECOND_AMX = "intel-r-xeon-r-processor-family-6-model-207-2026-11-26-models"
QUEUED = "intel-r-xeon-r-processor-family-6-model-207-2026-11-27-models"
WITHOUT_AVX512 = "amd-epyc-family-25-model-1-2026-11-29-models"
#: Names of processors by the family and the model that records have.
ZEN = {"family 25, model 17": "Zen 4", "family 26, model 2": "Zen 5"}
NAMES = {
    "ours": "wordpiece-bert",
    "tokenizers-rc": "tokenizers 1.0.0rc3",
    "tokenizers": "tokenizers 0.23.3",
    "nanotoken, ids only": "nanotoken",
}

#: The library that others are compared with, which has a column of its own in README.md.
USUAL = "tokenizers 0.23.3"
#: What the benchmark of offsets measures without them.
WITHOUT_OFFSETS = {"nanotoken"}

#: The tokenizers of the page of comparisons.
TOKENIZERS = ["wordpiece-bert", "nanotoken", "tokie", "kitoken", "tokenizers 1.0.0rc3", "tokenizers 0.23.3"]
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

#: The benchmarks of loading, by the sizes of their vocabularies.
LOADED = {"30,522": "loading, 30,522 tokens", "119,547": "loading, 119,547 tokens"}
#: The benchmarks of two threads that are published, by what one call gets.
THREADED = {"64 KiB": "two threads, 64 KiB", "1 MiB": "two threads, 1 MiB", "34 MB": "two threads, whole corpus"}
#: The table of ratios: what a row is, its record, the name there, and the instructions that ours and the others are
#: limited to in it.
RATIOS: list[tuple[str, str, str, dict[str, tuple[str, str]]]] = [
    ("MiniLM, one thread", f"{RUNS['models']}-models", "minilm, 1 thread", {}),
    ("MiniLM, two threads", f"{RUNS['models']}-models", "minilm, 2 threads", {}),
    *(
        (f"MiniLM, one thread, limited to {what}", LIMITED, "minilm, limited to an instruction set, 1 thread", limits)
        for what, limits in (
            ("AVX-512 without VNNI", {"int8": ("avx512-plain", "AVX512_CORE")}),
            ("AVX-VNNI", {"int8": ("avx-vnni", "AVX2_VNNI")}),
            ("AVX2", {"float32": ("avx2", "AVX2"), "int8": ("avx2-plain", "AVX2")}),
        )
    ),
    ("BERT-base's size, one thread, OpenVINO only", LARGE, "BERT-base, random weights, 1 thread", {}),
    (
        "BERT-large's size, 8 of 24 layers, one thread, OpenVINO only",
        LARGE,
        "BERT-large, 8 of its 24 layers, random weights, 1 thread",
        {},
    ),
    ("MiniLM, one thread of a Xeon with AMX", AMX, "minilm, 1 thread", {}),
    ("MiniLM, two threads of a Xeon with AMX", AMX, "minilm, 2 threads", {}),
    ("MiniLM, one thread of another Xeon with AMX", SECOND_AMX, "minilm, 1 thread", {}),
    ("MiniLM, two threads of it", SECOND_AMX, "minilm, 2 threads", {}),
    ("BERT-base's size, one thread of it", SECOND_AMX, "BERT-base, random weights, 1 thread", {}),
    ("BERT-base's size, two threads of it", SECOND_AMX, "BERT-base, random weights, 2 threads", {}),
    ("MiniLM, one thread of its like, beside other work", QUEUED, "minilm, 1 thread", {}),
    ("MiniLM, two threads of it, OpenVINO by its queue", QUEUED, "minilm, 2 threads", {}),
    ("MiniLM, one thread of a Zen 3, which has no AVX-512", WITHOUT_AVX512, "minilm, 1 thread", {}),
    ("MiniLM, two threads of it", WITHOUT_AVX512, "minilm, 2 threads", {}),
]

#: The tasks of pairs that people scored, by the names of their files.
SCORED = {"STSBenchmark": "STS benchmark", "SICK-R": "SICK-R"}

WIDTH, PANEL, BAR, TOP = 960, 300, 22, 74
INK, GREY = "#1f2328", "#656d76"
OURS, OTHERS = "#0b6e99", "#9aa8b2"


def record(command: str) -> dict[str, Any]:
    """Return the published record of a command."""
    return read(f"{RUNS[command]}-{command}")


def read(stem: str) -> dict[str, Any]:
    """Return a record by the name of its file."""
    found: dict[str, Any] = json.loads((RECORDS / f"{stem}.json").read_text(encoding="utf-8"))
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
    """Megabytes a second, warm and in the first pass: ours first, then the others by their warm speed."""
    row = table_row(benchmark)
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


def table_row(benchmark: str) -> dict[str, Any]:
    """One benchmark of the record of tokenizers."""
    found: dict[str, Any] = next(row for row in record("table")["rows"] if row["name"] == benchmark)
    return found


def loaded(benchmark: str) -> dict[str, float]:
    """Milliseconds from a file to a tokenizer."""
    return {
        NAMES.get(one["label"], one["label"]): 1e3 * median(one["first"])
        for one in table_row(benchmark)["results"]
        if one["first"]
    }


def spreads(benchmark: str) -> str:
    """The least and the largest spread of a benchmark's passes: from the fastest to the slowest, beside the median."""
    passes = [one[kind] for one in table_row(benchmark)["results"] for kind in ("first", "repeated")]
    found = [(max(one) - min(one)) / median(one) for one in passes if len(one) > 1]
    return f"{100 * min(found):.0f} to {100 * max(found):.0f} %"


def embedded(dtype: str, threads: int = 2) -> list[Speed]:
    """MiniLM sentences a second, sorted and in the order given, of each engine in its faster way to use threads."""
    return of_engines(vectors(threads), dtype)


def of_engines(measured: dict[str, Any], dtype: str, limits: Sequence[str] = ()) -> list[Speed]:
    """Sentences a second of each engine, ours first; with `limits` only of what is limited to these instructions."""
    count = len(measured["lengths"])
    best: dict[str, Speed] = {}
    for label in measured["times"]["sorted"]:
        limited = not limits or label.partition(f" {dtype}, ")[2] in limits
        if limited and (engine := of_dtype(label, dtype)) is not None:
            taken = (measured["times"][order][label]["seconds"] for order in ("sorted", "in the order given"))
            one, two = (count / seconds for seconds in taken)
            before = best.get(engine, Speed("", 0, 0))
            best[engine] = Speed(engine, max(one, before.one), max(two, before.two))
    return sorted(best.values(), key=lambda speed: (speed.name != "wordpiece-bert", -speed.one))


def vectors(threads: int = 2) -> dict[str, Any]:
    """What was measured of MiniLM."""
    return model(record("models"), f"minilm, {threads} thread{'s' * (threads != 1)}")


def model(found: dict[str, Any], name: str) -> dict[str, Any]:
    """What a record has of a model."""
    measured: dict[str, Any] = next(one for one in found["measured"] if one.get("name") == name)
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


def number(value: float) -> str:
    """A number with two or three digits."""
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.0f}" if value >= 9.95 else f"{value:.1f}"


def seconds(value: float) -> str:
    """Seconds or milliseconds with two digits after the point below ten."""
    return f"{value:.2f}" if value < 9.95 else f"{value:.1f}"


def fastest(others: Sequence[Speed]) -> tuple[Speed, Speed]:
    """The fastest for the first number, and the fastest for the second: they may be two engines."""
    return max(others, key=lambda speed: speed.one), max(others, key=lambda speed: speed.two)


def beside(found: Sequence[tuple[str, float]], *, less: bool = False) -> list[str]:
    """The cells of a row: ours, the fastest other, tokenizers if it is there, and how many times as fast ours is.

    With `less` the numbers are times, of which the least is the best.
    """
    (_, ours), *others = found
    name, other = (min if less else max)(others, key=lambda one: one[1])
    usual = dict(others).get(USUAL)
    shown = seconds if less else number
    times = other / ours if less else ours / other
    return [
        shown(ours),
        f"{'tokenizers' if name == USUAL else name} {shown(other)}",
        "" if usual is None else shown(usual),
        number(times) if times >= 1 else f"{times:.2f}",
    ]


def readme() -> str:
    """The table of README.md, one number a cell, and what is to be known with it."""
    english = tokenized("English paragraphs, ragged ids")
    located = tokenized("ids, offsets and word ids")
    many = tokenized("many languages, uncased vocabulary")
    padded = tokenized("padded arrays, 256 tweets to the longest")
    pairs = record("accuracy")["results"]["pairs"]
    # On one core no engine needs several streams: on two, this record has OpenVINO without its AsyncInferQueue.
    sorted_rows = [(speed.name, speed.one) for speed in embedded("float32", 1)]
    rows = [
        ["English paragraphs, ids, one core, warm, MB/s", *beside([(one.name, one.one) for one in english])],
        ["English paragraphs, ids, one core, first pass, MB/s", *beside([(one.name, one.two) for one in english])],
        ["75 languages, ids, one core, warm, MB/s", *beside([(one.name, one.one) for one in many])],
        [
            "English paragraphs with offsets and word ids, one core, warm, MB/s",
            *beside([(one.name, one.one) for one in located if one.name not in WITHOUT_OFFSETS]),
        ],
        ["256 tweets as padded arrays, one core, warm, MB/s", *beside([(one.name, one.one) for one in padded])],
        [
            "loading a tokenizer of 30,522 tokens, new process, ms",
            *beside([*loaded(LOADED["30,522"]).items()], less=True),
        ],
        [
            "learning a vocabulary from 34 MB of English, two cores, s",
            *beside(trained(TRAINED["34 MB of English"]), less=True),
        ],
        ["MiniLM float32, ids to vectors, sorted by length, one core, sentences/s", *beside(sorted_rows)],
        [
            "MiniLM float32, one text of 32 ids to a vector, one core, ms",
            *beside(first_vector("float32", 32), less=True),
        ],
    ]
    date = record("table")["machine"]["date"]
    lines = [
        f"| | wordpiece-bert | fastest other | {USUAL} | times |",
        "|---|--:|--:|--:|--:|",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
        "Times: how many times as fast ours is; below 1 the other is faster. "
        f"All rows are from one machine, an {processor('table')}, {date}. First pass: the first over the texts, in a "
        "new process. Other libraries in the record have no such offsets. Vocabularies were not measured with "
        "tokenizers 1.0.0rc3. OpenVINO has one stream on one core; with its `AsyncInferQueue`, for more, it is "
        "compared [on two](https://github.com/wordpiece-bert/wordpiece-bert/blob/main/docs/benchmarks.md#models). "
        "In int8, MiniLM's rank correlation with scores of people (STS benchmark) is "
        f"{pairs['engines']['ours int8']['correlations']['STSBenchmark']:.4f}, "
        f"OpenVINO's {pairs['engines']['OpenVINO int8']['correlations']['STSBenchmark']:.4f}, "
        f"as published {pairs['published']['STSBenchmark']:.4f}. More conditions, dtypes and machines: "
        "[comparison](https://github.com/wordpiece-bert/wordpiece-bert/blob/main/docs/comparison.md#speed).",
    ]
    return "\n".join(lines)


def tokens_compared() -> str:
    """The table of tokenizers on the page of comparisons: warm, and the first pass in brackets."""
    lines = [f"| | {' | '.join(TOKENIZERS)} |", "|---" + "|--:" * len(TOKENIZERS) + "|"]
    for what, benchmark in COMPARED.items():
        speeds = {speed.name: speed for speed in tokenized(benchmark)}
        cells = (speeds.get(name) for name in TOKENIZERS)
        shown = ("" if cell is None else f"{number(cell.one)} ({number(cell.two)})" for cell in cells)
        lines.append(f"| {what} | {' | '.join(shown)} |")
    return "\n".join(lines)


def threads_compared() -> str:
    """The table of two threads on the page of comparisons: warm, and the first pass in brackets."""
    lines = ["| one call for | one thread | two threads | times | spreads |", "|---|--:|--:|--:|--:|"]
    for what, benchmark in THREADED.items():
        two, one = tokenized(benchmark)
        cells = [f"{number(speed.one)} ({number(speed.two)})" for speed in (one, two)]
        cells += [f"{two.one / one.one:.1f} ({two.two / one.two:.1f})", spreads(benchmark)]
        lines.append(f"| {what} | {' | '.join(cells)} |")
    return "\n".join(lines)


def loading_compared() -> str:
    """The table of loading on the page of comparisons."""
    lines = [f"| tokens | {' | '.join(TOKENIZERS)} |", "|---" + "|--:" * len(TOKENIZERS) + "|"]
    for size, benchmark in LOADED.items():
        found = loaded(benchmark)
        cells = (f"{found[name]:.1f}" if name in found else "" for name in TOKENIZERS)
        lines.append(f"| {size} | {' | '.join(cells)} |")
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


def ratios() -> str:
    """The table of ratios on the page of benchmarks: beside OpenVINO, or the engine that is named."""
    dtypes = ("float32", "bfloat16", "int8")
    lines = [f"| | date | {' | '.join(dtypes)} |", "|---|---|" + "--:|" * len(dtypes)]
    for what, stem, name, limits in RATIOS:
        found = read(stem)
        cells = [_multiples(model(found, name), dtype, limits) for dtype in dtypes]
        lines.append(f"| {what} | {found['machine']['date']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _multiples(measured: dict[str, Any], dtype: str, limits: dict[str, tuple[str, str]]) -> str:
    """Our speed as a multiple of the fastest other's, sorted / in the order given."""
    if limits and dtype not in limits:
        return ""
    ours, *others = of_engines(measured, dtype, limits.get(dtype, ()))
    one, two = fastest(others)
    pairs = ((ours.one / one.one, one.name), (ours.two / two.two, two.name))
    return " / ".join(f"{times:.2f}{f' ({name})' * (name != 'OpenVINO')}" for times, name in pairs)


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
    """One group of bars, one for each program."""

    title: str
    unit: str
    bars: Sequence[tuple[str, float]]


def panels() -> list[Panel]:
    """The groups of the picture, with every engine, so that the fastest is among them."""
    tokens = [(speed.name, speed.one) for speed in tokenized("English paragraphs, ragged ids")]
    vectors = [(speed.name, speed.one) for speed in embedded("float32", 1)]
    return [
        Panel("Text to token ids", "MB of English a second, one core, warm", tokens),
        Panel("Ids to vectors, float32", "MiniLM sentences a second, one core, sorted by length", vectors),
        Panel(
            "Text to a vocabulary", "seconds for 34 MB of English, two cores (less is better)", trained("bpe, English")
        ),
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
        longest = max(value for _, value in panel.bars)
        for i, (name, value) in enumerate(panel.bars):
            y = TOP + 2 * BAR * i
            own = name == "wordpiece-bert"
            width = max(2, (PANEL - 90) * value / longest)
            shown = seconds(value) if "seconds" in panel.unit else number(value)
            weight = ' font-weight="600"' if own else ""
            parts += [
                f'<text x="{x}" y="{y + 10}" fill="{INK}">{escape(name)}</text>',
                f'<rect x="{x}" y="{y + 16}" width="{width:.1f}" height="14" fill="{OURS if own else OTHERS}"/>',
                f'<text x="{x + width + 6:.1f}" y="{y + 28}"{weight} fill="{INK}">{shown}</text>',
            ]
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
            "loading": loading_compared(),
            "vocabularies": vocabularies_compared(),
            "vectors": models_compared(),
        },
        "docs/benchmarks.md": {"one thread": one_thread(), "ratios": ratios(), "accuracy": scored_pairs()},
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
