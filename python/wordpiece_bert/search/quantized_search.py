"""Search over quantized vectors: candidates by the quantized numbers, then rescored with the float32 query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wordpiece_bert import _core
from wordpiece_bert._internal.highest import highest
from wordpiece_bert._internal.mapped_files import require_whole
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.nearest_rows import by_groups, check_queries
from wordpiece_bert.sentence.quantization import checked_ranges, quantize_embeddings

if TYPE_CHECKING:
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.sentence.nearest_rows import Found


def quantized_search(
    queries: Array,
    corpus: npt.NDArray[Any],
    top_k: int,
    precision: str,
    *,
    rescore: bool,
    multiplier: int,
    ranges: npt.ArrayLike | None,
    threads: int | None,
) -> Found:
    """Return the rows and scores of the vectors nearest to each query, [n, k] each, the nearest first.

    The arguments are as for `semantic_search`; the precision is not ``"float32"``.
    """
    check_queries(queries)
    require_whole(corpus)
    width = queries.shape[1]
    is_binary = precision in ("binary", "ubinary")
    expected = -(-width // 8) if is_binary else width
    dtype = np.dtype(np.uint8 if precision[0] == "u" else np.int8)
    if corpus.ndim != 2 or corpus.dtype != dtype or corpus.shape[1] != expected or width == 0:
        raise InputError(
            f"corpus_embeddings must be {dtype} [m, {expected}] for the precision {precision} and queries of {width} "
            f"numbers, not {corpus.dtype} of shape {list(corpus.shape)}"
        )
    if is_binary and ranges is not None:
        raise InputError(f"ranges are for 8-bit numbers; vectors in {precision} have none: leave ranges out")
    if not is_binary and ranges is None:
        raise InputError(
            f"the precision {precision} needs ranges, the lowest and highest values that the collection was given"
        )
    count = min(len(corpus), top_k * multiplier if rescore else top_k)
    # int8 is uint8 − 128: the highest bit is flipped.
    flipped = 128 if precision[0] != "u" else 0
    bytes_ = np.ascontiguousarray(corpus).view(np.uint8)
    if is_binary:
        asked = np.ascontiguousarray(quantize_embeddings(queries, "ubinary"))
        rows, scores = by_groups(
            asked,
            count,
            lambda some: _core.search_packed_bits(some ^ np.uint8(flipped), bytes_, count, threads, None),
        )
    else:
        assert ranges is not None
        rows, scores = _nearest_bytes(queries, bytes_, checked_ranges(ranges, width), count, threads, flipped)
    if not rescore:
        return rows, -scores if is_binary else scores
    found = (np.zeros((len(queries), min(top_k, count)), np.int64), np.zeros((len(queries), min(top_k, count))))
    for i, (query, candidates) in enumerate(zip(queries, rows, strict=True)):
        values = bytes_[candidates] ^ np.uint8(flipped)  # [count, w]
        rescored = restored(values, width, None if is_binary else ranges) @ query
        order = highest(rescored, top_k)
        found[0][i], found[1][i] = candidates[order], rescored[order]
    return found


def _nearest_bytes(
    queries: Array,
    rows: npt.NDArray[np.uint8],
    ranges: npt.NDArray[np.float32],
    count: int,
    threads: int | None,
    flipped: int,
) -> Found:
    """Return the rows of 8-bit numbers, combined with `flipped`, nearest to queries, and near scores.

    A number v of a dimension from lowest to highest stands for lowest + step·v, so that a product with a query q is
    Σ q·lowest + Σ (q·step)·v. The numbers q·step, of one scale for each query, are rounded to 8 bits.
    """
    lowest, highest = ranges.astype(np.float64)
    weights = queries * ((highest - lowest) / 255)  # [n, d]
    scales = np.abs(weights).max(axis=1, keepdims=True) / 127  # [n, 1]
    integers = np.rint(weights / np.where(scales == 0, 1, scales)).astype(np.int8, order="C")
    found, products = by_groups(
        integers,
        count,
        lambda some: _core.search_small_integers(some, rows, flipped != 0, count, threads, None),
    )
    if not flipped:  # as if 128 had been subtracted from the numbers: then rounding a query takes less from a score
        products -= 128 * integers.sum(axis=1, dtype=np.int64)[:, None]
    constant = queries @ lowest + 128 * weights.sum(axis=1)  # [n]
    return found, scales * products + constant[:, None]


def restored(values: npt.NDArray[np.uint8], width: int, ranges: npt.ArrayLike | None) -> npt.NDArray[np.float32]:
    """Return what quantized vectors stand for, float32 [n, width].

    Parameters
    ----------
    values : ndarray of uint8
        The bits of each vector, or its 8-bit numbers from 0.
    width : int
        The number of dimensions.
    ranges : array_like, optional
        The ranges [2, width] of 8-bit numbers; None for bits, which stand for 0 and 1.
    """
    if ranges is None:
        return np.unpackbits(values, axis=1)[:, :width].astype(np.float32)
    lowest, highest = np.asarray(ranges, np.float32)
    x: npt.NDArray[np.float32] = lowest + values * ((highest - lowest) / np.float32(255))
    return x
