"""The command `late_interaction`: MaxSim over token vectors, compared with torch.

Random vectors of length 1: queries of 32 tokens and documents of various lengths. torch gets the documents padded to one
array [documents, tokens, d] before the clock starts, and multiplies a block of them at a time, as sentence-transformers'
`maxsim` does; NumPy the same. Calls run in turns, and the best of several rounds counts. Before anything is timed, scores
are compared. Packages that are not installed are skipped.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.turns import least
from wordpiece_bert.sentence import MultiVectors, maxsim

#: Documents that are multiplied at once by the others: their products have some 30 MB.
_BLOCK = 1024


def main(arguments: list[str]) -> int:
    """Run the command; return 1 if scores differ."""
    parser = argparse.ArgumentParser(prog="benchmarks late_interaction", description=__doc__)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--queries", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    rng = np.random.default_rng(1)
    lengths = rng.integers(20, 181, options.documents)
    documents = _vectors(rng, lengths, options.width)
    print(f"\n{options.documents:,} documents of 20 to 180 vectors of {options.width}, {options.threads} thread(s)\n")
    print("| queries | | seconds | million pairs of tokens/s | ours × |\n|--:|---|--:|--:|--:|")
    for count in options.queries:
        queries = _vectors(rng, np.full(count, 32), options.width)
        calls = contestants(queries, documents, options.threads)
        scores = {label: call() for label, call in calls.items()}
        if any(np.abs(scores["ours"] - other).max() > 1e-3 for other in scores.values()):
            print("the scores differ")
            return 1
        best = least(calls, options.rounds)
        pairs = 32 * count * int(lengths.sum())
        for label, (seconds, _) in best.items():
            ratio = seconds / best["ours"][0]
            print(f"| {count} | {label} | {seconds:.4f} | {pairs / seconds / 1e6:,.0f} | {ratio:.2f} |")
    return 0


def _vectors(rng: np.random.Generator, lengths: Any, width: int) -> MultiVectors:
    vectors = rng.standard_normal((int(lengths.sum()), width), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return MultiVectors(vectors, np.concatenate([[0], np.cumsum(lengths)]))


def contestants(queries: MultiVectors, documents: MultiVectors, threads: int) -> dict[str, Callable[[], Any]]:
    """Return the calls that are timed, ours first."""
    calls: dict[str, Callable[[], Any]] = {"ours": lambda: maxsim(queries, documents, threads=threads)}
    longest = int(documents.lengths.max())
    mask = np.arange(longest) < documents.lengths[:, None]
    padded = np.zeros((*mask.shape, documents.width), np.float32)
    padded[mask] = documents.vectors
    stacked = queries.vectors.reshape(len(queries), -1, queries.width)
    blocks = [slice(start, start + _BLOCK) for start in range(0, len(documents), _BLOCK)]
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        print("torch: not installed")
        return calls
    torch.set_num_threads(threads)
    a, b, absent = torch.from_numpy(stacked.copy()), torch.from_numpy(padded), torch.from_numpy(~mask)

    def einsum() -> Any:
        parts = []
        for block in blocks:
            products = torch.einsum("ash,bth->abst", a, b[block])
            products.masked_fill_(absent[block][None, :, None, :], float("-inf"))
            parts.append(products.amax(-1).sum(-1))
        return torch.cat(parts, 1).numpy()

    calls["torch einsum, padded"] = einsum
    return calls
