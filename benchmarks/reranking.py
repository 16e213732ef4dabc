"""The command `reranking`: a query's documents from texts to scores, beside ONNX Runtime and flashrank.

The ranker has MiniLM's weights and a head with random weights: its scores say nothing, and take the time of a trained one's. The
others run graphs of the same weights, in float32 and quantized by ONNX Runtime, dynamically and per channel. ONNX Runtime
is measured in several ways: all documents in one run, or sorted by length in runs of 8 or 1, with several threads also
a run a thread; the table has the fastest for each size. flashrank is its own class over the plain and over the fused
graph, of which the faster counts. Before anything is timed, scores are compared. Engines take turns, each in a process of
its own, and the best of several rounds counts. Tokenization is part of the time.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import contests, report
from benchmarks.contests import Contest, Entry
from benchmarks.model_data import paragraphs
from wordpiece_bert import Tokenizer
from wordpiece_bert._internal.correlation import spearman
from wordpiece_bert.bert import BertConfig, BertForSequenceClassification
from wordpiece_bert.bert.checkpoint import find_weights, read_tensors
from wordpiece_bert.hub import find_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

#: Numbers of documents, and words of each.
SIZES = ((20, 100), (20, 250), (50, 100), (50, 250))
QUICK_SIZES = ((3, 5), (2, 9))
QUERY_WORDS = 8

GRAPHS = {"float32": "fused", "int8": "fused-int8"}
PLAIN = {"float32": "plain", "int8": "int8"}
PROGRAMS = {"ours": "rank_ours.py", "onnxruntime": "rank_onnx.py", "flashrank": "rank_flashrank.py"}
LABELS = {"ours": "wordpiece-bert", "onnxruntime": "ONNX Runtime", "flashrank": "flashrank"}

#: The most that a score in float32 may differ from ours.
MOST = 1e-4


def entry_of(engine: str, dtype: str, kind: str, threads: int, *, streams: bool = False) -> Entry:
    """Return an engine in one of the ways of using it."""
    way = "" if engine == "ours" else f", {kind}{', a run a thread' * streams}"
    variables = {"TOKENIZERS_PARALLELISM": "true" if threads > 1 else "false"}
    writer = None if engine == "ours" else "onnxruntime"
    label = f"{LABELS[engine]} {dtype}{way}"
    return Entry(label, engine, kind, dtype, variables=variables, streams=streams, written_by=writer)


def entries(engines: list[str], threads: int, dtype: str) -> Iterator[Entry]:
    """Yield what is measured with this number of threads and this dtype, ours first."""
    yield entry_of("ours", dtype, dtype, threads)
    graph = GRAPHS[dtype]
    if "onnxruntime" in engines:
        for rows in ("all", "8", "1"):
            yield entry_of("onnxruntime", dtype, f"{graph} {rows}", threads)
        for rows in ("8", "1") if threads > 1 else ():
            yield entry_of("onnxruntime", dtype, f"{graph} {rows}", threads, streams=True)
    if "flashrank" in engines:
        for kind in (PLAIN[dtype], graph):
            yield entry_of("flashrank", dtype, kind, threads)


def make_ranker(encoder: Path, folder: Path) -> Path:
    """Write a ranker of an encoder's weights and a head with random weights, unless it exists."""
    if not (folder / "model.safetensors").exists():
        config = replace(BertConfig.from_folder(encoder), id2label={0: "LABEL_0"})
        base = read_tensors(find_weights(encoder))
        weights = {f"bert.{name.removeprefix('bert.')}": base[name] for name in base if "pooler" not in name}
        random, hidden = np.random.default_rng(0), config.hidden_size
        for name, rows in {"bert.pooler.dense": hidden, "classifier": 1}.items():
            weights[f"{name}.weight"] = random.standard_normal((rows, hidden), np.float32) * np.float32(2 / hidden**0.5)
            weights[f"{name}.bias"] = np.zeros(rows, np.float32)
        BertForSequenceClassification(config, weights).save_pretrained(folder)
        Tokenizer.from_pretrained(encoder).save_pretrained(folder)
    return folder


def texts_of(corpus: Path | None, documents: int, words: int) -> list[tuple[str, str]]:
    """Return a query with each of its documents, of this many words each."""
    found = " ".join(paragraphs(corpus, 20 * documents)).split()
    query, rest = " ".join(found[:QUERY_WORDS]), found[QUERY_WORDS:]
    return [(query, " ".join(rest[start : start + words])) for start in range(0, documents * words, words)]


class Rankers(Contest):
    """A contest whose engines return scores of pairs of texts."""

    programs = PROGRAMS

    def scores(self, path: Path, count: int) -> dict[str, npt.NDArray[np.float32]]:
        """Return the scores of the pairs in a file by each engine; one in float32 that differs from ours is excluded."""
        found: dict[str, npt.NDArray[np.float32]] = {}
        for label, engine in list(self.engines.items()):
            answer = engine.ask(do="texts", path=str(path), rows=list(range(count)), vectors=True)
            found[label] = np.array(answer["vectors"], np.float32)
            far = float(np.abs(found[label] - next(iter(found.values()))).max())
            if self.entries[label].dtype == "float32" and not far <= MOST:
                self.exclude(label, f"WRONG: a score differs from ours by {far:.2g}")
        return found


def agreement(
    entries: dict[str, Entry], scores: dict[str, npt.NDArray[np.float32]], exact: npt.NDArray[np.float32]
) -> list[list[str]]:
    """Return the cells of a table: how far each engine's scores are from ours in float32; of an engine's ways the worst."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for label, values in scores.items():
        far, rank = float(np.abs(values - exact).max()), spearman(values, exact)
        found.setdefault((LABELS[entries[label].engine], entries[label].dtype), []).append((far, rank))
    return [
        [label, dtype, f"{max(far for far, _ in of):.1e}", f"{min(rank for _, rank in of):.5f}"]
        for (label, dtype), of in found.items()
    ]


def cells_of(entries: dict[str, Entry], times: dict[str, float]) -> list[str]:
    """Return cells of one dtype: milliseconds by engine, and how many times as fast as the fastest other ours is."""
    best: dict[str, float] = {}  # of the ways of each engine
    for label, seconds in times.items():
        engine = entries[label].engine
        best[engine] = min(seconds, best.get(engine, seconds))
    others = [one for engine, one in best.items() if engine != "ours"]
    row = [f"{1e3 * best[engine]:.0f}" if engine in best else "" for engine in PROGRAMS]
    return [*row, f"{min(others) / best['ours']:.2f}" if others else ""]


def measure(folder: Path, threads: int, options: argparse.Namespace) -> tuple[str, dict[str, Any], bool]:
    """Measure all sizes with a number of threads; return a section, the figures, and whether scores were wrong.

    One dtype after the other: ONNX Runtime keeps gigabytes for the longest documents in each process.
    """
    corpus = options.corpora and options.corpora / "wiki_en.txt"
    unit = "cpu_seconds" if options.cpu else "seconds"
    rows = {size: [f"{size[0]} of {size[1]} words"] for size in options.sizes}
    exact: dict[tuple[int, int], npt.NDArray[np.float32]] = {}
    figures, far, wrong = [], [], False
    versions: dict[str, str] = {}
    notes: dict[str, str] = {}
    for dtype in GRAPHS:
        with Rankers(folder, threads, entries(options.engines, threads, dtype)) as rankers:
            for size in options.sizes:
                pairs = texts_of(corpus, *size)
                path = rankers.texts(pairs)
                scores = rankers.scores(path, len(pairs))
                apart = agreement(rankers.entries, scores, exact.setdefault(size, next(iter(scores.values()))))
                found = rankers.time([list(range(len(pairs)))], options.rounds, do="texts", path=str(path))
                times = {label: getattr(time, unit) for label, time in found.items()}
                rows[size] += cells_of(rankers.entries, times)
                case = {"documents": size[0], "words": size[1], "dtype": dtype}
                figures.append(case | {"seconds": times, "agreement": apart})
            far += apart
            for label, load in rankers.loads.items():
                versions[f"{LABELS[rankers.entries[label].engine]} {dtype}"] = load.get("engine", load["version"])
            notes |= rankers.notes
            wrong |= rankers.wrong
    names = list(LABELS.values())
    header = ["documents", *(f"{name}, {dtype}" for dtype in GRAPHS for name in (*names, "times"))]
    title = f"{threads} thread{'s' * (threads != 1)}, milliseconds{' of the processor' * options.cpu}"
    count, words = options.sizes[-1]
    lines = [f"## {title}", "", *report.markdown(header, list(rows.values())), ""]
    lines += [f"Scores of {count} documents of {words} words beside ours in float32:", ""]
    lines += [*report.markdown(["", "", "largest difference of a score", "rank correlation"], far), ""]
    lines += [f"- {label}: {version}" for label, version in versions.items()]
    lines += [f"- {label}: not measured: {note}" for label, note in notes.items()]
    return "\n".join([*lines, ""]), {"threads": threads, "sizes": figures, "versions": versions, "notes": notes}, wrong


def main(arguments: list[str]) -> int:
    """Run the command; return 1 if an engine in float32 gave other scores than ours."""
    parser = argparse.ArgumentParser(prog="benchmarks reranking", description=__doc__)
    parser.add_argument("--corpora", type=Path, help="folder with wiki_en.txt (default: random words)")
    parser.add_argument(
        "--model", default="minilm", help="name or folder of the encoder that becomes a ranker (default: minilm)"
    )
    engines = [name for name in PROGRAMS if name != "ours"]
    parser.add_argument(
        "--engines", nargs="*", choices=engines, default=engines, help="compare only with these engines"
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads (default: 1 2)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the best counts (default: 3)")
    parser.add_argument("--cpu", action="store_true", help="report the processor's time, for a machine that others use")
    parser.add_argument("--quick", action="store_true", help="few short documents, to check that the benchmark works")
    parser.add_argument("--record", type=Path, nargs="?", const=report.RECORDS)
    options = parser.parse_args(arguments)
    options.sizes = QUICK_SIZES if options.quick else SIZES
    options.rounds = 1 if options.quick else options.rounds
    encoder = find_model(options.model)
    folder = make_ranker(encoder, contests.BUILD / f"ranker-{encoder.name}")
    source = "words of wiki_en.txt" if options.corpora else "random words"
    lines = [report.heading("Reranking, from texts to scores", source)]
    print(lines[0], flush=True)
    content, wrong = [], False
    for threads in options.threads:
        text, figures, differs = measure(folder, threads, options)
        lines.append(text)
        content.append(figures)
        wrong |= differs
        print(text, flush=True)
    if options.record:
        print(report.save("reranking", "\n".join(lines), {"measured": content}, options.record))
    return int(wrong)
