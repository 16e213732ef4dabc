"""The command `search`: exact search compared with NumPy, FAISS (flat, and its scalar quantizer) and usearch.

The vectors are random, of length 1, the same for all; with `--clustered` most of them are near to others. Every engine runs in this process, in turns, and the best of several rounds counts. A
peer that is not installed is skipped. Before anything is timed, the rows that are found are compared. The first line of the
table is what the machine can do: all threads read the collection and keep its maximum.
"""

from __future__ import annotations

import argparse
import importlib
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import wordpiece_bert as wb
from benchmarks import report
from benchmarks.turns import least
from wordpiece_bert import _core
from wordpiece_bert.sentence import PreparedVectors, quantize_embeddings, semantic_search

TOP_K = 10


def main(arguments: list[str]) -> int:
    """Run the command; return 1 if rows differ."""
    parser = argparse.ArgumentParser(prog="benchmarks search", description=__doc__)
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--queries", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--clustered", type=float, default=0.0, help="the spread within clusters of 50 vectors; 0 for none"
    )
    parser.add_argument("--record", type=Path, nargs="?", const=report.RECORDS, help="save the results in this folder")
    options = parser.parse_args(arguments)
    wb.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as parent:
        corpus = _vectors(options.vectors, options.width, 1, options.clustered)
        file = Path(parent) / "corpus.npy"
        np.save(file, corpus)
        try:
            return _compare(corpus, np.load(file, mmap_mode="r"), options)
        finally:
            wb.set_num_threads(None)


def _vectors(count: int, width: int, seed: int, spread: float = 0.0) -> Any:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((count, width), dtype=np.float32)
    if spread:
        vectors *= np.float32(spread)
        for start in range(0, count, 50):
            vectors[start : start + 50] += rng.standard_normal((1, width), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def contestants(corpus: Any, mapped: Any, threads: int) -> dict[str, tuple[int, Callable[[Any], Any]]]:
    """Return for each engine the bytes that it reads and its call, from queries to the rows found."""
    ranges = np.array([corpus.min(axis=0), corpus.max(axis=0)])
    prepared = PreparedVectors(corpus, threads=threads)
    bits, small = quantize_embeddings(corpus, "ubinary"), quantize_embeddings(corpus, "uint8", ranges)

    def rows(found: Any) -> Any:
        return np.array([[hit["corpus_id"] for hit in hits] for hits in found])

    def read(_: Any) -> None:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(np.max, np.array_split(corpus.reshape(-1), threads)))

    def with_numpy(queries: Any) -> Any:
        scores = queries @ corpus.T
        best = np.argpartition(-scores, TOP_K, axis=1)[:, :TOP_K]
        order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1)
        return np.take_along_axis(best, order, axis=1)

    options: dict[str, Any] = {"corpus_precision": "uint8", "ranges": ranges}
    calls: dict[str, tuple[int, Callable[[Any], Any]]] = {
        "reading alone (np.max)": (corpus.nbytes, read),
        "ours, float32": (corpus.nbytes, lambda q: rows(semantic_search(q, corpus, TOP_K, "dot"))),
        "ours, exact by codes": (
            prepared.codes.nbytes,
            lambda q: rows(semantic_search(q, prepared, TOP_K, "dot")),
        ),
        "ours, exact by codes, cosine": (prepared.codes.nbytes, lambda q: rows(semantic_search(q, prepared, TOP_K))),
        "ours, float32, cosine": (corpus.nbytes, lambda q: rows(semantic_search(q, corpus, TOP_K))),
        "ours, float32, memory-mapped": (corpus.nbytes, lambda q: rows(semantic_search(q, mapped, TOP_K, "dot"))),
        "NumPy, float32": (corpus.nbytes, with_numpy),
        "ours, uint8, rescored": (small.nbytes, lambda q: rows(semantic_search(q, small, TOP_K, **options))),
        "ours, bits, rescored": (
            bits.nbytes,
            lambda q: rows(semantic_search(q, bits, TOP_K, corpus_precision="ubinary")),
        ),
    }
    _add_usearch(calls, corpus, threads)
    try:
        faiss = importlib.import_module("faiss")
    except ImportError:
        print("faiss: not installed")
        return calls
    faiss.omp_set_num_threads(threads)
    flat, binary = faiss.IndexFlatIP(corpus.shape[1]), faiss.IndexBinaryFlat(8 * bits.shape[1])
    flat.add(corpus)
    binary.add(bits)
    quantized = faiss.IndexScalarQuantizer(corpus.shape[1], faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT)
    quantized.train(corpus)
    quantized.add(corpus)
    calls["FAISS IndexScalarQuantizer, not exact"] = small.nbytes, lambda q: quantized.search(q, TOP_K)[1]
    calls["FAISS IndexFlatIP"] = corpus.nbytes, lambda q: flat.search(q, TOP_K)[1]
    calls["FAISS IndexBinaryFlat"] = (
        bits.nbytes,
        lambda q: binary.search(quantize_embeddings(q, "ubinary"), 2 * TOP_K)[1],
    )
    return calls


def _add_usearch(calls: dict[str, tuple[int, Callable[[Any], Any]]], corpus: Any, threads: int) -> None:
    try:
        usearch = importlib.import_module("usearch.index")
    except ImportError:
        print("usearch: not installed")
        return
    options: dict[str, Any] = {"metric": usearch.MetricKind.IP, "exact": True, "threads": threads}
    calls["usearch, exact"] = (
        corpus.nbytes,
        lambda q: np.atleast_2d(usearch.search(corpus, q, TOP_K, **options).keys),
    )


def _compare(corpus: Any, mapped: Any, options: argparse.Namespace) -> int:
    calls = contestants(corpus, mapped, options.threads)
    queries = _vectors(max(options.queries), options.width, 2)
    expected = calls["NumPy, float32"][1](queries)
    for count in options.queries:
        if (calls["ours, exact by codes"][1](queries[:count]) != calls["ours, float32"][1](queries[:count])).any():
            print("ours, exact by codes: the rows differ from those of float32")
            return 1
    for label in ("ours, float32", "ours, float32, memory-mapped", "FAISS IndexFlatIP", "usearch, exact"):
        # Rounding may exchange neighbours with almost equal scores.
        if label in calls and (calls[label][1](queries) == expected).mean() < 0.99:
            print(f"{label}: the rows differ from NumPy's")
            return 1
    searches = {(label, n): partial(call, queries[:n]) for label, (_, call) in calls.items() for n in options.queries}
    best = least(searches, options.rounds)
    sets = _core.kernel_instruction_sets()
    size = f"{options.vectors:,} vectors × {options.width}, {options.threads} thread(s), top {TOP_K}, {sets[-1]}"
    columns = [column for n in options.queries for column in (f"{n} queries, ms", "GB/s")]
    cells = [
        [label, *(cell for n in options.queries for cell in _cells(nbytes, best[label, n][0]))]
        for label, (nbytes, _) in calls.items()
    ]
    text = "\n".join(
        [report.heading("Exact search", "random vectors"), size, "", *report.markdown(["", *columns], cells), ""]
    )
    print(text)
    if options.record:
        rows = [{"engine": label, "queries": n, "seconds": seconds} for (label, n), seconds in best.items()]
        chosen = {name: getattr(options, name) for name in ("vectors", "width", "threads", "rounds", "clustered")}
        print(report.save("search", text, {**chosen, "rows": rows}, options.record))
    return 0


def _cells(nbytes: int, seconds: float) -> tuple[str, str]:
    return f"{1e3 * seconds:,.1f}", f"{nbytes / seconds / 1e9:.1f}"
