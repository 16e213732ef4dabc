"""Exact search in the row groups of a folder of vectors, each where it lies in its file."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wordpiece_bert import _core
from wordpiece_bert.errors import InputError
from wordpiece_bert.search.prepared_vectors import Block, nearest_in_blocks
from wordpiece_bert.search.quantized_search import restored
from wordpiece_bert.sentence.metrics import similarity
from wordpiece_bert.sentence.nearest_rows import best_first, best_of_scores, by_groups, check_queries, counted, merged
from wordpiece_bert.sentence.quantization import quantize_embeddings
from wordpiece_bert.vectors.forms import scaled
from wordpiece_bert.vectors.layout import BINARY, CODES, DENSE, INT8, VECTOR
from wordpiece_bert.vectors.part_files import GROUP_ROWS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.sentence.encoder_loading import Encoder
    from wordpiece_bert.sentence.nearest_rows import Found
    from wordpiece_bert.vectors.layout import Layout

# So many 8-bit numbers are converted to float32 at once, which then are in the cache of a core: 1 MB.
_CONVERTED = 1 << 18
_MANY_QUERIES = 4


class Group(NamedTuple):
    """A row group of a folder."""

    #: The number of its first row in the folder.
    start: int
    #: Reads the vectors of one of its columns.
    read: Callable[[str], Any]
    #: The numbers of its rows that do not count, which rise.
    replaced: npt.NDArray[np.int64]


def nearest_in_groups(queries: Array, groups: Sequence[Group], metric: str, top_k: int, threads: int | None) -> Found:
    """Return the rows of the float32 vectors nearest to queries [n, d], and their scores; as `nearest_rows.nearest`."""

    def blocks() -> Iterable[Block]:
        return (Block(one.start, np.asarray(one.read(VECTOR)), one.read(CODES), one.replaced) for one in groups)

    return nearest_in_blocks(queries, blocks, metric, top_k, threads)


def nearest_bits(
    queries: Array, groups: Sequence[Group], layout: Layout, top_k: int, multiplier: int, threads: int | None
) -> Found:
    """Return the rows nearest to queries by their bits, and their scores.

    ``top_k * multiplier`` candidates are found by Hamming distance, and sorted by their float32 vectors; without these
    by the inner product of the query and the bits.
    """
    check_queries(queries)
    count = top_k * multiplier
    asked = np.ascontiguousarray(quantize_embeddings(queries, "ubinary"))

    def search(some: npt.NDArray[np.uint8]) -> Found:
        return _best(
            groups,
            count,
            len(some),
            lambda read, most: _core.search_packed_bits(some, np.asarray(read(BINARY)), most, threads, None),
        )

    candidates, _ = by_groups(asked, count, search)
    if "float32" in layout.precisions:
        return _rescored(queries, candidates, groups, layout.similarity, top_k)
    rows = np.sort(candidates, axis=1)
    scores = np.stack([restored(_taken(groups, some, BINARY), layout.dimension, None) @ query
                       for query, some in zip(scaled(queries, layout), rows, strict=True)])  # fmt: skip
    return best_first(rows, scores.astype(np.float64), top_k)


def nearest_int8(
    queries: Array,
    groups: Sequence[Group],
    layout: Layout,
    ranges: npt.ArrayLike,
    top_k: int,
    multiplier: int,
    threads: int | None,
) -> Found:
    """Return the rows nearest to queries by 8-bit numbers, and their scores.

    The score is the inner product of the query and what the numbers stand for. With float32 vectors,
    ``top_k * multiplier`` candidates are sorted by these.
    """
    check_queries(queries)
    lowest, highest = np.asarray(ranges, np.float32)
    asked = scaled(queries, layout)
    # Σ q (lowest + step v) over the numbers v, of which 128 is subtracted in the files.
    weights = np.ascontiguousarray((asked * ((highest - lowest) / np.float32(255))).T)  # [d, n]
    constant = asked @ lowest
    exact = "float32" in layout.precisions
    count = top_k * multiplier if exact else top_k
    # One query: blocks that stay in the caches of our threads. Many: a product of matrices, with threads of its own.
    single = len(queries) < _MANY_QUERIES
    step = max(1, _CONVERTED // layout.dimension) if single else GROUP_ROWS

    def of_group(group: Group) -> Found:
        values = np.asarray(group.read(INT8)) ^ np.uint8(128)
        blocks = (values[first : first + step].astype(np.float32) @ weights for first in range(0, len(values), step))
        every = np.ascontiguousarray((np.concatenate([*blocks]) + constant).T)
        rows, scores = counted(group.replaced, count, lambda most: best_of_scores(every, most))
        return rows + group.start, scores

    with ThreadPoolExecutor(_core.num_threads(threads) if single else 1) as pool:
        best = _best_of(pool.map(of_group, groups), count, len(queries))
    if not groups:
        return best
    return _rescored(queries, best[0], groups, layout.similarity, top_k) if exact else best


def _rescored(
    queries: Array, candidates: npt.NDArray[np.int64], groups: Sequence[Group], metric: str, top_k: int
) -> Found:
    """Sort candidates, [n, k] rows, by their float32 vectors."""
    rows = np.sort(candidates, axis=1)
    scores = [similarity(query, _taken(groups, some, VECTOR), metric)[0]
              for query, some in zip(queries, rows, strict=True)]  # fmt: skip
    return best_first(rows, np.stack(scores).astype(np.float64), top_k)


def nearest_scored(queries: Any, groups: Sequence[Group], encoder: Encoder, top_k: int) -> Found:
    """Return the rows nearest to sparse or many vectors by the `similarity` of their encoder, and their scores."""

    def of_group(read: Callable[[str], Any], most: int) -> Found:
        return best_of_scores(encoder.similarity(queries, read("")), most)

    return _best(groups, top_k, len(queries), of_group)


def _best(
    groups: Sequence[Group], top_k: int, queries: int, search: Callable[[Callable[[str], Any], int], Found]
) -> Found:
    """Search each group, and return the best rows of all; `search` gets the number of rows to find."""
    each = ((group.start, counted(group.replaced, top_k, partial(search, group.read))) for group in groups)
    return _best_of(((rows + start, scores) for start, (rows, scores) in each), top_k, queries)


def _best_of(each: Iterable[Found], top_k: int, queries: int) -> Found:
    """Return the best rows of results for `queries` queries, whose rows rise from one to the next."""
    best: Found | None = None
    for found in each:
        best = found if best is None else merged(best, found, top_k)
    return best or (np.zeros((queries, 0), np.int64), np.zeros((queries, 0)))


def _taken(groups: Sequence[Group], rows: npt.NDArray[np.int64], column: str) -> npt.NDArray[Any]:
    """Return the vectors of some rows, which rise."""
    starts = np.array([group.start for group in groups])
    group_of = np.searchsorted(starts, rows, side="right") - 1
    parts = []
    for group in np.unique(group_of).tolist():
        own = groups[group]
        parts.append(np.asarray(own.read(column))[rows[group_of == group] - own.start])
    return np.concatenate(parts)


def check_queries_fit(queries: Array, layout: Layout) -> None:
    """Raise an `InputError` unless a folder has dense vectors, and query vectors are as wide."""
    if layout.kind != DENSE:
        raise InputError(f"the folder has {layout.kind} vectors, which are searched with texts and their encoder")
    if queries.shape[1] != layout.dimension:
        raise InputError(
            f"the queries have {queries.shape[1]} numbers, the vectors of the folder {layout.dimension}: they are not "
            "from the same model"
        )
