"""The rows of a collection that are nearest to queries: arrays in, arrays out, over the Rust functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wordpiece_bert import _core
from wordpiece_bert._internal.arrays import as_float32, first_non_finite
from wordpiece_bert._internal.highest import highest
from wordpiece_bert._internal.mapped_files import require_whole
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.metrics import normalized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wordpiece_bert.bert.functional import Array

#: Rows, int64 [n, k], and scores, float64 [n, k], the nearest first.
Found = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]

# A collection that is not float32 in the order of its rows is converted so many bytes at a time.
_BLOCK_BYTES = 1 << 24

# Each thread keeps up to twice the hits that are asked for; together they keep at most so many, 256 MB, or the
# hits of one query.
_HITS_KEPT = 1 << 20

_OTHER_MODEL = "they are not from the same model"


def nearest(queries: Array, collection: npt.NDArray[Any], metric: str, top_k: int, threads: int | None) -> Found:
    """Return the rows with the highest scores for each query, and the scores.

    Parameters
    ----------
    queries : array
        Vectors, float32 [n, d].
    collection : array
        Vectors [m, d] of any real dtype, possibly memory-mapped. float32 rows in C order are read in place.
    metric : str
        One of `metrics.METRICS`.
    top_k : int
        How many rows to find; all if there are fewer.
    threads : int or None
        Number of threads; None for the default.

    Raises
    ------
    InputError
        The vectors differ in length, have no numbers, or a query is not finite; or the collection is mapped from a file
        that was shortened.
    """
    check_widths(queries, collection)
    check_queries(queries)
    require_whole(collection)
    if metric == "cosine":
        queries = normalized(queries)

    def search(some: Array) -> Found:
        best: Found | None = None
        for start, block in _float_blocks(collection):
            rows, scores = _core.search_floats(some, block, metric, top_k, threads, None)
            best = (rows, scores) if best is None else merged(best, (rows + start, scores), top_k)
        return best or (np.zeros((len(some), 0), np.int64), np.zeros((len(some), 0)))

    return by_groups(np.ascontiguousarray(queries), min(top_k, len(collection)), search)


def check_widths(queries: Array, collection: npt.NDArray[Any]) -> None:
    """Refuse queries [n, d] and vectors [m, e] with other numbers, or none."""
    if queries.shape[1] != collection.shape[1] or queries.shape[1] == 0:
        raise InputError(
            f"the vectors of query_embeddings have {queries.shape[1]} numbers, those of corpus_embeddings "
            f"{collection.shape[1]}: " + ("there is nothing to compare" if not queries.shape[1] else _OTHER_MODEL)
        )


def check_queries(queries: Array) -> None:
    """Refuse queries [n, d] with NaN or infinity, to which no vector is near."""
    bad = first_non_finite(queries)
    if bad is not None:
        raise InputError(f"query {bad[0]} has {queries[bad]} at index {bad[1]}: a query must be finite numbers")


def by_groups(queries: npt.NDArray[Any], hits: int, search: Callable[[Any], Found]) -> Found:
    """Call `search` with groups of queries whose hits fit in bounded memory, and concatenate the results."""
    step = max(1, _HITS_KEPT // (2 * hits + 64))
    if len(queries) <= step:
        return search(queries)
    found = [search(queries[start : start + step]) for start in range(0, len(queries), step)]
    return np.concatenate([rows for rows, _ in found]), np.concatenate([scores for _, scores in found])


def best_of_scores(scores: Array, top_k: int) -> Found:
    """Return the columns of the highest scores of each row, [n, m] -> [n, k], of equal ones the lower column first."""
    count = min(top_k, scores.shape[1])
    rows = np.zeros((len(scores), count), np.int64)
    for row, best in zip(scores, rows, strict=True):
        best[:] = highest(row, count)
    return rows, np.take_along_axis(scores, rows, axis=1).astype(np.float64)


def counted(replaced: npt.NDArray[np.int64], top_k: int, search: Callable[[int], Found]) -> Found:
    """Return the best rows that are none of `replaced`, of what `search` finds given the number of rows.

    More are searched for than are wanted, and more again while a query has too few that count.
    """
    if not len(replaced):
        return search(top_k)
    most = 2 * top_k + 8
    while True:
        rows, scores = search(most)
        counts = ~np.isin(rows, replaced)
        least = int(counts.sum(axis=1).min(initial=most))
        if least >= top_k or rows.shape[1] < most:
            break
        most *= 4
    order = np.argsort(~counts, axis=1, kind="stable")[:, : min(top_k, least)]
    return np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)


def _float_blocks(collection: npt.NDArray[Any]) -> Iterator[tuple[int, Array]]:
    """Yield the collection as float32 rows in C order, with the number of the first: at once if it is stored so."""
    flags = collection.flags
    if collection.dtype == np.float32 and collection.dtype.isnative and flags.c_contiguous and flags.aligned:
        yield 0, np.asarray(collection)
        return
    step = max(1, _BLOCK_BYTES // (4 * collection.shape[1]))
    for start in range(0, len(collection), step):
        yield start, np.ascontiguousarray(as_float32("corpus_embeddings", collection[start : start + step]))


def merged(first: Found, second: Found, top_k: int) -> Found:
    """Merge two results into the best `top_k`; the rows of `second` come after the rows of `first`."""
    rows, scores = (np.concatenate(pair, axis=1) for pair in zip(first, second, strict=True))
    return best_first(rows, scores, top_k)


def best_first(rows: npt.NDArray[np.int64], scores: npt.NDArray[np.float64], top_k: int) -> Found:
    """Return the best `top_k` of rows [n, k] by their scores, the best first; of equal ones those that come first."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
    return np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)
