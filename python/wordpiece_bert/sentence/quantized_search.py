"""Search over quantized vectors: candidates by the quantized numbers, then rescored with the float32 query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.quantization import quantize_embeddings

if TYPE_CHECKING:
    from wordpiece_bert.bert.functional import Array

__all__ = ["best", "quantized_search"]

# The most bytes of the collection that are compared at once; a memory-mapped one is read block by block.
_BLOCK_BYTES = 1 << 24

#: The most scores of a query that are partially sorted in one call of NumPy, which cannot be interrupted.
_SORTED = 1 << 20

# So many products of 8-bit numbers have a sum that float32 holds exactly.
_EXACT = 256

Found = tuple[npt.NDArray[np.intp], npt.NDArray[Any]]


def quantized_search(
    queries: Array,
    corpus: npt.NDArray[Any],
    top_k: int,
    precision: str,
    *,
    rescore: bool,
    multiplier: int,
    ranges: npt.ArrayLike | None,
) -> list[Found]:
    """Return the rows and scores of the vectors nearest to each query, the nearest first.

    The arguments are those of `semantic_search`; the precision is not ``"float32"``.
    """
    width = queries.shape[1]
    is_binary = precision in ("binary", "ubinary")
    expected = -(-width // 8) if is_binary else width
    dtype = np.dtype(np.uint8 if precision[0] == "u" else np.int8)
    if corpus.ndim != 2 or corpus.dtype != dtype or corpus.shape[1] != expected:
        message = (
            f"corpus_embeddings must be {dtype} [m, {expected}] for the precision {precision} and queries of {width} "
            f"numbers, not {corpus.dtype} of shape {list(corpus.shape)}"
        )
        raise InputError(message)
    if not is_binary and ranges is None:
        message = f"the precision {precision} needs ranges, the lowest and highest values that the collection was given"
        raise InputError(message)
    count = min(len(corpus), top_k * multiplier if rescore else top_k)
    quantized = quantize_embeddings(queries, "ubinary" if is_binary else "uint8", ranges)
    found = []
    for query, own in zip(queries, quantized, strict=True):
        nearness = _nearness(own, corpus, binary=is_binary)  # [m], higher is nearer
        rows = best(nearness, count)
        if not rescore:
            found.append((rows, -nearness[rows] if is_binary else nearness[rows]))
            continue
        values = _unsigned(corpus[rows])
        if is_binary:
            x = np.unpackbits(values, axis=1)[:, :width].astype(np.float32)
        else:
            lowest, highest = np.asarray(ranges, np.float32)
            x = lowest + values * ((highest - lowest) / np.float32(255))
        scores = x @ query
        order = best(scores, min(top_k, count))
        found.append((rows[order], scores[order]))
    return found


def best(row: npt.NDArray[Any], count: int) -> npt.NDArray[np.intp]:
    """Return the indices of the highest numbers, the highest first, of equal numbers the lower index first."""
    parts = [start + _candidates(row[start : start + _SORTED], count) for start in range(0, len(row), _SORTED)]
    indices = np.concatenate(parts) if parts else np.zeros(0, np.intp)
    return indices[np.argsort(-row[indices], kind="stable")[:count]]


def _candidates(row: npt.NDArray[Any], count: int) -> npt.NDArray[np.intp]:
    """Return the indices of the `count` highest numbers, and of those that equal the last of them, ascending."""
    if count >= len(row):
        return np.arange(len(row))
    threshold = np.partition(row, len(row) - count)[len(row) - count]
    return np.flatnonzero(row >= threshold)


def _nearness(query: npt.NDArray[Any], corpus: npt.NDArray[Any], *, binary: bool) -> npt.NDArray[np.float64]:
    """Compare a quantized query with all vectors: minus the Hamming distances, or inner products, [m]."""
    nearness = np.empty(len(corpus))
    step = max(1, _BLOCK_BYTES // max(1, corpus.shape[1]))
    for start in range(0, len(corpus), step):
        block = _unsigned(corpus[start : start + step])
        if binary:
            nearness[start : start + step] = -_BITS[block ^ query].sum(axis=1, dtype=np.int64)
            continue
        total = np.zeros(len(block))
        for at in range(0, len(query), _EXACT):
            total += block[:, at : at + _EXACT].astype(np.float32) @ query[at : at + _EXACT].astype(np.float32)
        nearness[start : start + step] = total
    return nearness


def _unsigned(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return uint8 and int8 numbers as uint8: int8 is uint8 − 128."""
    return np.asarray(values) if values.dtype == np.uint8 else values.view(np.uint8) ^ np.uint8(128)


#: How many bits of each byte are 1.
_BITS = np.array([byte.bit_count() for byte in range(256)], np.uint8)
