"""The command `evaluation`: communities and evaluators, compared with sentence-transformers.

Random vectors around centers, so that there are communities and near documents. A model that looks its vectors up takes the
place of an encoder: what is measured is the search and the measures, not the encoding. Calls run in turns; the best of
several rounds counts, in seconds and in CPU seconds of the process. Before anything is timed, results are compared.
Without sentence-transformers only this package is measured.
"""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.turns import least
from wordpiece_bert import evaluation, set_num_threads, util

_WIDTH = 384
_PAIRS = 20_000


class Table:
    """A model whose vectors are the rows of a table; the texts are their numbers."""

    similarity_fn_name = "cosine"

    def __init__(self, rows: Any, tensor: Callable[[Any], Any] | None) -> None:
        self._rows, self._tensor = rows, tensor
        self.model_card_data = self

    def set_evaluation_metrics(self, *arguments: Any) -> None:
        """What sentence-transformers calls with the results."""

    def encode(self, texts: list[str], **options: Any) -> Any:
        x = self._rows[np.array(texts, np.int64)]
        return self._tensor(x) if self._tensor is not None and options.get("convert_to_tensor") else x

    encode_query = encode_document = encode

    def similarity(self, a: Any, b: Any) -> Any:
        if self._tensor is None:
            return util.cos_sim(a, b)
        return importlib.import_module("sentence_transformers").util.cos_sim(a, b)


def main(arguments: list[str]) -> int:
    """Run the command; return 1 if results differ."""
    parser = argparse.ArgumentParser(prog="benchmarks evaluation", description=__doc__)
    parser.add_argument("--vectors", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args(arguments)
    if os.environ.get("OMP_NUM_THREADS") != str(options.threads):
        print(f"set OMP_NUM_THREADS={options.threads} and OPENBLAS_NUM_THREADS: NumPy reads it when it is imported")
    set_num_threads(options.threads)
    random = np.random.default_rng(1)
    centers = random.normal(size=(options.vectors // 40 + 1, _WIDTH))
    rows = centers[random.integers(len(centers), size=options.vectors)]
    rows = (rows + 0.45 * random.normal(size=rows.shape)).astype(np.float32)
    peers = _peers(options.threads)
    print(f"\n{options.vectors:,} vectors of {_WIDTH}, {options.queries:,} queries, {options.threads} thread(s)\n")
    print("| | | seconds | CPU seconds | ours × (CPU) |\n|---|---|--:|--:|--:|")
    for name, calls in contests(rows, options.queries, peers).items():
        results = {label: call() for label, call in calls.items()}
        if any(not same(results["ours"], other) for other in results.values()):
            print(f"the results of {name} differ")
            return 1
        best = least(calls, options.rounds)
        for label, (seconds, used) in best.items():
            print(f"| {name} | {label} | {seconds:.2f} | {used:.2f} | {used / best['ours'][1]:.2f} |", flush=True)
    return 0


def _peers(threads: int) -> tuple[Any, Any, Any] | None:
    """Return torch, and the functions and the evaluators of sentence-transformers, where they are installed."""
    try:
        torch = importlib.import_module("torch")
        util_of_peer = importlib.import_module("sentence_transformers.util")
        evaluators = importlib.import_module("sentence_transformers.sentence_transformer.evaluation")
    except ImportError:
        print("sentence-transformers: not installed")
        return None
    torch.set_num_threads(threads)
    return torch, util_of_peer, evaluators


def contests(rows: Any, queries: int, peers: tuple[Any, Any, Any] | None) -> dict[str, dict[str, Callable[[], Any]]]:
    """Return the calls that are timed by what they do, ours first."""
    random = np.random.default_rng(2)
    count = len(rows)
    first, second = ([str(row) for row in random.integers(count, size=_PAIRS)] for _ in range(2))
    scores, labels = random.normal(size=_PAIRS).tolist(), random.integers(2, size=_PAIRS).tolist()
    corpus = {f"d{row:07}": str(row) for row in range(count)}
    asked = {f"q{row}": str(random.integers(count)) for row in range(queries)}
    relevant = {
        query: {f"d{row:07}" for row in random.integers(count, size=20)} | {f"d{int(text):07}"}
        for query, text in asked.items()
    }
    data: dict[str, tuple[Any, ...]] = {
        "EmbeddingSimilarityEvaluator": (first, second, scores),
        "BinaryClassificationEvaluator": (first, second, labels),
        "InformationRetrievalEvaluator": (asked, corpus, relevant),
    }
    found: dict[str, dict[str, Callable[[], Any]]] = {
        "community_detection": {"ours": lambda: util.community_detection(rows, 0.75, 10)}
    }
    for name, arguments in data.items():
        found[name] = {"ours": lambda name=name, a=arguments: getattr(evaluation, name)(*a)(Table(rows, None))}
    if peers is not None:
        torch, functions, evaluators = peers
        given, peer = torch.from_numpy(rows), "sentence-transformers"
        found["community_detection"][peer] = lambda: functions.community_detection(given, 0.75, 10)
        for name, arguments in data.items():
            found[name][peer] = lambda name=name, a=arguments: getattr(evaluators, name)(*a)(
                Table(rows, torch.from_numpy)
            )
    return found


def same(ours: Any, other: Any) -> bool:
    """Whether results are equal: communities as sets in their order, measures to 1e-4."""
    if isinstance(ours, dict):
        return ours.keys() == other.keys() and all(abs(ours[key] - other[key]) < 1e-4 for key in ours)
    return [(one[0], set(one)) for one in ours] == [(one[0], set(one)) for one in other]
