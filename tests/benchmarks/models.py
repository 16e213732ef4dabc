"""The command `models`: BERT compared with ONNX Runtime, on the same rows.

Tokenization is not timed, except from texts to vectors. Engines take turns with a few dozen rows at a time, and the best of
several rounds counts, because other programs may share the machine; CPU seconds of all threads are reported as well.
Gflop/s count only real tokens, not padding.
"""

# ruff: noqa: ANN401 (arrays of other packages, and JSON)

from __future__ import annotations

import argparse
import ctypes
import glob
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.process import Engine, EngineError, MissingError
from benchmarks.texts import ROOT

BUILD = ROOT / "build" / "bench"
GROUP = 64  # rows in a turn

#: The contestants: label -> what the engine loads.
OURS = {"ours": "rust", "ours bfloat16": "rust bfloat16", "ours int8": "rust int8", "ours, AVX2": "rust avx2"}
THEIRS = {
    "ONNX Runtime": "plain",
    "ONNX Runtime, fused": "fused",
    "ONNX Runtime, int8": "int8",
    "ONNX Runtime, fused int8": "fused-int8",
}


@dataclass
class Timing:
    """Time of an engine for some rows: the best of each group, summed."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    note: str = ""
    turns: list[float] = field(default_factory=list)


class Contest:
    """Engines with one model loaded, each in a separate process."""

    def __init__(self, folder: Path, threads: int, labels: list[str]) -> None:
        self.engines: dict[str, Engine] = {}
        self.notes: dict[str, str] = {}
        self.versions: dict[str, str] = {}
        for label in labels:
            program = "model_ours.py" if label in OURS else "model_onnx.py"
            kind = OURS[label] if label in OURS else THEIRS[label]
            try:
                engine = Engine("ours" if label in OURS else "onnxruntime", threads, program)
                self.engines[label] = engine
                self.versions[label] = engine.version
                engine.ask(do="load", folder=str(folder), kind=kind, threads=threads)
            except (MissingError, EngineError) as error:
                self.notes[label] = str(error)
                if label in self.engines:
                    self.engines.pop(label).close()

    def rows(self, rows: list[list[int]]) -> None:
        """Pass the rows to all engines."""
        BUILD.mkdir(parents=True, exist_ok=True)
        path = BUILD / "rows.json"
        path.write_text(json.dumps(rows))
        for engine in self.engines.values():
            engine.ask(do="rows", path=str(path))

    def time(
        self, groups: list[list[int]], rounds: int, batch: int = 32, calls: int = 1, **ask: Any
    ) -> dict[str, Timing]:
        """Time all engines in turns."""
        request: dict[str, Any] = {"do": "forward", "batch": batch, "calls": calls} | ask
        found = {label: Timing() for label in self.engines}
        for group in groups:
            best: dict[str, list[tuple[float, float]]] = {label: [] for label in self.engines}
            for _ in range(rounds):
                for label, engine in self.engines.items():
                    answer = engine.ask(rows=group, **request)
                    best[label].append((answer["seconds"], answer["cpu_seconds"]))
            for label, times in best.items():
                found[label].seconds += min(t[0] for t in times)
                found[label].cpu_seconds += min(t[1] for t in times)
        return found

    def agreement(self, group: list[int]) -> dict[str, float]:
        """Return the smallest cosine similarity of each engine's vectors with those of the first engine."""
        vectors = {
            label: np.array(engine.ask(do="forward", rows=group, batch=32, vectors=True)["vectors"])
            for label, engine in self.engines.items()
        }
        unit = {label: x / np.linalg.norm(x, axis=1, keepdims=True) for label, x in vectors.items()}
        first = next(iter(unit.values()))
        return {label: float((x * first).sum(axis=1).min()) for label, x in unit.items()}

    def close(self) -> None:
        """End all processes."""
        for engine in self.engines.values():
            engine.close()


def flop(config: dict[str, Any], lengths: list[int]) -> float:
    """Return the number of floating-point operations of the encoder for rows of these lengths."""
    hidden, inner, layers = config["hidden_size"], config["intermediate_size"], config["num_hidden_layers"]
    return sum(layers * n * (2 * (4 * hidden**2 + 2 * hidden * inner) + 4 * n * hidden) for n in lengths)


def paragraphs(path: Path | None, count: int) -> list[str]:
    """Return every twentieth line of at least 40 characters; without a corpus, random ones of similar lengths."""
    if path is None:
        random = np.random.default_rng(1)
        words = [
            "the",
            "of",
            "and",
            "in",
            "a",
            "to",
            "was",
            "is",
            "for",
            "on",
            "as",
            "by",
            "with",
            "at",
            "from",
            "it",
            "an",
            "his",
            "that",
            "were",
            "be",
        ]
        return [" ".join(random.choice(words, int(n))) for n in np.clip(random.lognormal(4.3, 0.7, count), 8, 300)]
    found = []
    with path.open(encoding="utf-8") as lines:
        for i, line in enumerate(lines):
            if i % 20 == 0 and len(line.strip()) >= 40:
                found.append(line.strip())
            if len(found) == count:
                break
    return found


def in_groups(order: list[int]) -> list[list[int]]:
    return [order[start : start + GROUP] for start in range(0, len(order), GROUP)]


def bert_base(folder: Path) -> Path:
    """Write a model of BERT-base's size with random weights, unless it exists."""
    from wordpiece_bert.bert import BertConfig, BertModel
    from wordpiece_bert.bert.checkpoint import bert_shapes

    if not (folder / "model.safetensors").exists():
        config, random = BertConfig(), np.random.default_rng(0)
        weights = {}
        for name, sizes in bert_shapes(config).items():
            shape = [getattr(config, size) if isinstance(size, str) else size for size in sizes]
            weights[name] = random.normal(0, 0.02, shape).astype(np.float32)
            if "LayerNorm.weight" in name:
                weights[name] += 1
        BertModel(config, weights, backend="numpy").save_pretrained(folder)
    return folder


def throughput(
    title: str, contest: Contest, config: dict[str, Any], rows: list[list[int]], rounds: int, orders: list[str]
) -> str:
    """Report sentences, tokens and Gflop per second, with rows sorted by length and in the given order."""
    contest.rows(rows)
    lengths = [len(row) for row in rows]
    work, parts = flop(config, lengths), [f"## {title}", ""]
    agreement = contest.agreement(list(range(min(16, len(rows)))))
    for order in orders:
        indices = sorted(range(len(rows)), key=lambda i: -lengths[i]) if order == "sorted" else list(range(len(rows)))
        times = contest.time(in_groups(indices), rounds)
        best = min((t.seconds for label, t in times.items() if label in THEIRS and "int8" not in label), default=None)
        best8 = min((t.seconds for label, t in times.items() if label in THEIRS and "int8" in label), default=None)
        parts += [f"{order}: {len(rows)} rows, {sum(lengths):,} tokens.", ""]
        header = [
            "",
            "sentences/s",
            "tokens/s",
            "Gflop/s",
            "Gflop per CPU second",
            "× ONNX Runtime float32",
            "× int8",
            "smallest cosine",
        ]
        cells = [
            [
                label,
                f"{len(rows) / t.seconds:.1f}",
                f"{sum(lengths) / t.seconds:,.0f}",
                f"{work / t.seconds / 1e9:.0f}",
                f"{work / t.cpu_seconds / 1e9:.0f}",
                "" if best is None else f"{best / t.seconds:.2f}",
                "" if best8 is None else f"{best8 / t.seconds:.2f}",
                f"{agreement[label]:.6f}",
            ]
            for label, t in times.items()
        ]
        parts += [*report.markdown(header, cells), ""]
    parts += [f"- {label}: not measured: {note}" for label, note in contest.notes.items()]
    return "\n".join(parts) + "\n"


def latency(contest: Contest, rows: list[list[int]], rounds: int) -> str:
    """Report the time of one call with one sentence, by length."""
    cells = []
    for length in (8, 16, 32, 64, 128, 256):
        row = next(row for row in rows if len(row) >= length)
        contest.rows([[*row[: length - 1], row[-1]]])
        times = contest.time([[0]], rounds, calls=10)
        cells.append([str(length), *(f"{1e3 * t.seconds:.2f}" for t in times.values())])
    return "\n".join(["## One sentence, milliseconds", "", *report.markdown(["tokens", *contest.engines], cells), ""])


def texts_to_vectors(contest: Contest, texts: list[str], rounds: int) -> str:
    """Report the throughput of tokenizer and model together, for texts in the given order."""
    path = BUILD / "texts.json"
    path.write_text(json.dumps(texts))
    times = contest.time(in_groups(list(range(len(texts)))), rounds, do="texts", path=str(path))
    ours = times["ours"].seconds
    cells = [[label, f"{len(texts) / t.seconds:.1f}", f"{t.seconds / ours:.2f}"] for label, t in times.items()]
    header = ["", "texts/s", "ours ×"]
    return "\n".join(["## Texts to vectors, batches of 32 in the order given", "", *report.markdown(header, cells), ""])


def growth(
    folder: Path, config: dict[str, Any], row: list[int], rounds: int, threads: int
) -> tuple[str, dict[str, Any]]:
    """Measure cost against length, batch size and threads, for this package and the fused graph."""
    curves: dict[str, Any] = {}
    parts = ["## How cost grows, Gflop/s", ""]
    for what, points in (
        ("length", [8, 16, 32, 64, 128, 256]),
        ("batch", [1, 2, 4, 8, 16, 32, 64]),
        ("threads", list(range(1, threads + 1))),
    ):
        curve: dict[str, list[float]] = {}
        for point in points:
            length, batch, count = (
                point if what == name else default
                for name, default in (("length", 64), ("batch", 16), ("threads", threads))
            )
            contest = Contest(folder, count, ["ours", "ONNX Runtime, fused"])
            contest.rows([[*(row * 8)[: length - 1], row[-1]]] * batch)
            for label, t in contest.time([list(range(batch))], rounds, calls=2).items():
                curve.setdefault(label, []).append(flop(config, [length] * batch) / t.seconds / 1e9)
            contest.close()
        fixed = {"length": "16 rows", "batch": "rows of 64 tokens", "threads": "16 rows of 64 tokens"}[what]
        cells = [[str(point), *(f"{y[i]:.0f}" for y in curve.values())] for i, point in enumerate(points)]
        parts += [f"{what}, {fixed}:", "", *report.markdown([what, *curve], cells), ""]
        curves[what] = {"points": points, "gflops": curve}
    return "\n".join(parts), curves


def plot(curves: dict[str, Any], path: Path) -> None:
    """Plot the curves."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(curves), figsize=(4 * len(curves), 3.2), sharey=True)
    for axis, (what, curve) in zip(axes, curves.items(), strict=True):
        for label, y in curve["gflops"].items():
            axis.plot(curve["points"], y, marker="o", label=label)
        axis.set(xlabel=what, ylim=(0, None))
        if what != "threads":
            axis.set_xscale("log", base=2)
    axes[0].set_ylabel("Gflop/s")
    axes[0].legend()
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


_MEMORY = """
import json, sys, time
start = time.perf_counter()
def peak():
    return int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1]) * 1024
import wordpiece_bert as wb
imported = peak()
st = wb.SentenceEncoder.from_pretrained(sys.argv[1], threads=2)
st.encode("one sentence")
first = time.perf_counter() - start
loaded = peak()
weights = sum(w.nbytes for w in st._model._weights.values())
text = "word " * 300
st.encode([text] * 32, return_truncated=True)
batch = peak()
for _ in range(20):
    st.encode(["a text of a few words, one of many"] * 500)
print(json.dumps(dict(first=first, weights=weights, loaded=loaded - imported, batch=batch - imported, many=peak() - imported)))
"""


def start_and_memory(folder: Path, rounds: int) -> str:
    """Report the time from import to the first vector, and memory beyond that after the import."""
    runs = []
    for _ in range(rounds):
        out = subprocess.run([sys.executable, "-c", _MEMORY, str(folder)], capture_output=True, text=True, check=True)
        runs.append(json.loads(out.stdout))
    m = min(runs, key=lambda run: run["first"])
    cells = [
        ["import, load and first vector", f"{1e3 * m['first']:.0f} ms"],
        ["weights", f"{m['weights'] / 1e6:.0f} MB"],
        ["peak while loading", f"{m['loaded'] / 1e6:.0f} MB"],
        ["peak with 32 texts of 256 tokens", f"{m['batch'] / 1e6:.0f} MB"],
        ["peak after 10,000 more texts", f"{m['many'] / 1e6:.0f} MB"],
    ]
    return "\n".join(
        ["## Start and memory (over the process after the import)", "", *report.markdown(["", ""], cells), ""]
    )


def blas_kernel() -> str:
    """Return the name of the kernels that NumPy's OpenBLAS uses."""
    for file in glob.glob(str(Path(np.__file__).parent.parent / "numpy.libs" / "libscipy_openblas*")):
        name = getattr(ctypes.CDLL(file), "scipy_openblas_get_corename64_", None)
        if name is not None:
            name.restype = ctypes.c_char_p
            return str(name().decode())
    return "unknown"


def main(arguments: list[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="benchmarks models", description=__doc__)
    parser.add_argument("--corpora", type=Path, help="folder with wiki_en.txt (default: random texts)")
    parser.add_argument("--model", default="minilm", help="a sentence encoder")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--paragraphs", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3, help="rounds per group of rows, of which the best counts")
    parser.add_argument("--only", nargs="+", choices=["throughput", "latency", "texts", "base", "growth", "memory"])
    parser.add_argument("--record", type=Path, nargs="?", const=report.RECORDS)
    options = parser.parse_args(arguments)
    wanted = set(options.only or ["throughput", "latency", "texts", "base", "growth", "memory"])

    from wordpiece_bert import Tokenizer
    from wordpiece_bert.hub import find_model

    folder = find_model(options.model)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    texts = paragraphs(options.corpora and options.corpora / "wiki_en.txt", options.paragraphs)
    rows = (
        Tokenizer.from_pretrained(folder).encode_batch(texts, truncation=True, max_length=256, padding=False).to_list()
    )
    lines = [report.heading("BERT compared with ONNX Runtime", f"{len(texts)} paragraphs; {options.threads} threads")]
    lines.append(f"NumPy {np.__version__}, its OpenBLAS with the kernels for {blas_kernel()}.\n")
    curves: dict[str, Any] = {}
    print(*lines, sep="\n", flush=True)

    def add(part: str) -> None:
        lines.append(part)
        print(part, flush=True)

    contest = Contest(
        folder,
        options.threads,
        [*OURS, *THEIRS] if "throughput" in wanted else ["ours", "ONNX Runtime", "ONNX Runtime, fused"],
    )
    add("\n".join(f"- {label}: {version}" for label, version in contest.versions.items()) + "\n")
    if "throughput" in wanted:
        add(
            throughput(
                Path(options.model).name, contest, config, rows, options.rounds, ["sorted", "in the order given"]
            )
        )
    for label in ("ours, AVX2",):
        if label in contest.engines:
            contest.engines.pop(label).close()
    if "latency" in wanted:
        add(latency(contest, sorted(rows, key=len), options.rounds))
    if "texts" in wanted:
        add(texts_to_vectors(contest, texts[:256], options.rounds))
    contest.close()
    if "memory" in wanted:
        add(start_and_memory(folder, options.rounds))
    if "base" in wanted:
        base = bert_base(BUILD / "bert-base-random")
        contest = Contest(base, options.threads, ["ours", "ours bfloat16", "ONNX Runtime, fused"])
        base_config = json.loads((base / "config.json").read_text(encoding="utf-8"))
        add(
            throughput(
                "BERT-base, random weights",
                contest,
                base_config,
                rows[: options.paragraphs // 8],
                options.rounds,
                ["sorted"],
            )
        )
        contest.close()
    if "growth" in wanted:
        part, curves = growth(folder, config, max(rows, key=len), options.rounds, options.threads)
        add(part)
    picture = BUILD / "models.png"
    if options.record:
        record = report.save("models", "\n".join(lines), {"curves": curves}, options.record)
        picture = record.with_suffix(".png")
        print(record)
    if curves:
        try:
            plot(curves, picture)
        except ImportError:
            print("No plot: matplotlib is not installed.", file=sys.stderr)
        else:
            print(picture)
    return 0
