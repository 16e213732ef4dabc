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
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from benchmarks import contests, report
from benchmarks.contests import place_of
from benchmarks.model_data import paragraphs
from benchmarks.process import Engine, EngineError, MissingError
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


class Entry(NamedTuple):
    """An engine in one of the ways of using it."""

    engine: str
    dtype: str
    kind: str
    streams: bool = False

    @property
    def label(self) -> str:
        """What lists of ways call it."""
        way = "" if self.engine == "ours" else f", {self.kind}{', a run a thread' * self.streams}"
        return f"{LABELS[self.engine]} {self.dtype}{way}"


def entries(engines: list[str], threads: int) -> Iterator[Entry]:
    """Yield what is measured with this number of threads, ours first."""
    for dtype in GRAPHS:
        yield Entry("ours", dtype, dtype)
    for dtype, graph in GRAPHS.items():
        if "onnxruntime" in engines:
            yield from (Entry("onnxruntime", dtype, f"{graph} {rows}") for rows in ("all", "8", "1"))
            if threads > 1:
                yield from (Entry("onnxruntime", dtype, f"{graph} {rows}", streams=True) for rows in ("8", "1"))
        if "flashrank" in engines:
            yield from (Entry("flashrank", dtype, kind) for kind in (PLAIN[dtype], graph))


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


class Rankers:
    """The engines of one number of threads, each in a process. A context manager that ends the processes."""

    def __init__(self, folder: Path, threads: int, wanted: list[Entry]) -> None:
        place = place_of(folder)
        self.engines: dict[Entry, Engine] = {}
        self.notes: dict[str, str] = {}
        self.versions: dict[str, str] = {}
        self.wrong = False
        for entry in wanted:
            request = {"folder": str(folder), "place": str(place), "kind": entry.kind, "streams": entry.streams}
            try:
                if entry.engine != "ours":
                    with Engine("onnxruntime", 1, PROGRAMS["onnxruntime"]) as writer:
                        writer.ask(do="prepare", **request)
                parallel = {"TOKENIZERS_PARALLELISM": "true" if threads > 1 else "false"}
                engine = Engine(entry.engine, threads, PROGRAMS[entry.engine], variables=parallel)
                self.engines[entry] = engine
                told = engine.ask(do="load", threads=threads, **request).get("engine", engine.version)
                self.versions[f"{LABELS[entry.engine]} {entry.dtype}"] = told
            except (MissingError, EngineError) as error:
                self.exclude(entry, str(error))

    def exclude(self, entry: Entry, why: str) -> None:
        """Measure an engine no further."""
        self.notes[entry.label] = why
        if entry in self.engines:
            self.engines.pop(entry).close()

    def scores(self, path: Path, count: int) -> dict[Entry, npt.NDArray[np.float32]]:
        """Return the scores of the pairs in a file by each engine; one in float32 that differs from ours is excluded."""
        found: dict[Entry, npt.NDArray[np.float32]] = {}
        for entry, engine in list(self.engines.items()):
            answer = engine.ask(do="texts", path=str(path), rows=list(range(count)), vectors=True)
            found[entry] = np.array(answer["vectors"], np.float32)
            far = float(np.abs(found[entry] - next(iter(found.values()))).max())
            if entry.dtype == "float32" and not far <= MOST:
                self.exclude(entry, f"WRONG: a score differs from ours by {far:.2g}")
                self.wrong = True
        return found

    def time(self, path: Path, count: int, rounds: int, of: str = "seconds") -> dict[Entry, float]:
        """Return the least seconds, or ``cpu_seconds``, that each engine needs for the pairs in a file."""
        best = dict.fromkeys(self.engines, np.inf)
        for _ in range(rounds):
            for entry, engine in self.engines.items():
                answer = engine.ask(do="texts", path=str(path), rows=list(range(count)), calls=2)
                best[entry] = min(best[entry], answer[of])
        return best

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for engine in self.engines.values():
            engine.close()


def agreement(scores: dict[Entry, npt.NDArray[np.float32]]) -> list[list[str]]:
    """Return the cells of a table: how far each engine's scores are from ours in float32; of an engine's ways the worst."""
    exact = next(iter(scores.values()))
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for entry, values in scores.items():
        far, rank = float(np.abs(values - exact).max()), spearman(values, exact)
        found.setdefault((LABELS[entry.engine], entry.dtype), []).append((far, rank))
    return [
        [label, dtype, f"{max(far for far, _ in of):.1e}", f"{min(rank for _, rank in of):.5f}"]
        for (label, dtype), of in found.items()
    ]


def fastest(times: dict[Entry, float]) -> dict[tuple[str, str], Entry]:
    """Return the fastest way of each engine and dtype."""
    best: dict[tuple[str, str], Entry] = {}
    for entry, seconds in times.items():
        place = entry.engine, entry.dtype
        if place not in best or seconds < times[best[place]]:
            best[place] = entry
    return best


def cells_of(size: tuple[int, int], times: dict[Entry, float]) -> list[str]:
    """Return a row of the table: milliseconds by dtype and engine, and how many times as fast as the fastest other ours is."""
    best = fastest(times)
    row = [f"{size[0]} of {size[1]} words"]
    for dtype in GRAPHS:
        seconds = {engine: times[best[engine, dtype]] for engine in PROGRAMS if (engine, dtype) in best}
        row += [f"{1e3 * seconds[engine]:.0f}" if engine in seconds else "" for engine in PROGRAMS]
        others = [one for engine, one in seconds.items() if engine != "ours"]
        row.append(f"{min(others) / seconds['ours']:.2f}" if others else "")
    return row


def measure(folder: Path, threads: int, options: argparse.Namespace) -> tuple[str, dict[str, Any], bool]:
    """Measure all sizes with a number of threads; return a section, the figures, and whether scores were wrong."""
    corpus = options.corpora and options.corpora / "wiki_en.txt"
    rows, figures, far = [], [], []
    with Rankers(folder, threads, list(entries(options.engines, threads))) as rankers:
        for size in options.sizes:
            pairs = texts_of(corpus, *size)
            path = place_of(folder) / "pairs.json"
            path.write_text(json.dumps(pairs), encoding="utf-8")
            scores = rankers.scores(path, len(pairs))
            times = rankers.time(path, len(pairs), options.rounds, "cpu_seconds" if options.cpu else "seconds")
            rows.append(cells_of(size, times))
            far = agreement(scores)
            figures.append(
                {
                    "documents": size[0],
                    "words": size[1],
                    "seconds": {entry.label: seconds for entry, seconds in times.items()},
                    "agreement": far,
                }
            )
        versions, notes, wrong = rankers.versions, rankers.notes, rankers.wrong
    names = list(LABELS.values())
    header = ["documents", *(f"{name}, {dtype}" for dtype in GRAPHS for name in (*names, "times"))]
    unit = f"milliseconds{' of the processor' * options.cpu}"
    lines = [f"## {threads} thread{'s' * (threads != 1)}, {unit}", "", *report.markdown(header, rows), ""]
    lines += [f"Scores beside ours in float32, of the {figures[-1]['documents']} longest documents:", ""]
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
    parser.add_argument("--rounds", type=int, default=5, help="rounds, of which the best counts (default: 5)")
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
