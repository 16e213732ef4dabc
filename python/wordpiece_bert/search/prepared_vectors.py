"""Vectors with 8-bit codes, by which exact search reads few of them: `PreparedVectors`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._internal.arrays import as_float32, as_vectors
from wordpiece_bert._internal.mapped_files import require_whole
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.metrics import normalized
from wordpiece_bert.sentence.nearest_rows import by_groups, check_queries, check_widths, counted, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.sentence.nearest_rows import Found

#: The bytes of a row of codes beside its codes.
CODE_BYTES = 12


class Block(NamedTuple):
    """Rows of a collection that are searched at once."""

    #: The number of the first.
    start: int
    vectors: Array
    #: None for rows without codes.
    codes: npt.NDArray[np.uint8] | None
    #: The numbers in the block of rows that do not count, which rise.
    replaced: npt.NDArray[np.int64]


# The bounds of more queries are less tight, and so worth their time for few hits only; and portable code multiplies
# bytes for several queries no faster than float32 numbers.
_FEW_QUERIES = 2
_FEW_HITS = 16

# So many rows have their codes compared with given ones.
_COMPARED = 16


def code_rows(vectors: Array, threads: int | None = None) -> npt.NDArray[np.uint8]:
    """Return the codes of vectors, float32 [n, d] in C order, as uint8 [n, d + 12].

    A row has d signed bytes, and float32 numbers, the lowest byte first: what the bytes are multiplied by, a bound for
    the length of the difference from the vector, and the length of the vector.
    """
    return (
        _core.search_codes_of(vectors, threads)
        if len(vectors)
        else np.zeros((0, vectors.shape[1] + CODE_BYTES), np.uint8)
    )


def _pays(metric: str, queries: int, top_k: int) -> bool:
    """Return whether the codes of vectors are worth comparing."""
    if metric == "manhattan":
        return False
    return queries <= _FEW_QUERIES or (top_k <= _FEW_HITS and _core.kernel_instruction_sets() != ["scalar"])


class PreparedVectors:
    """A collection of vectors for `semantic_search`, which finds the same hits in less time.

    Each vector x has 8-bit codes next to it, which stand for a vector x̂ near it. A product q·x is at most q·x̂ +
    ‖q‖·‖x − x̂‖. Vectors for which that is below the scores found so far are never read in float32; the others are
    scored in float32. So hits, scores and the order of equal scores are those without codes, bit for bit. Where the
    bound leaves too many vectors, they are all compared in float32, and so are the vectors of three or more queries
    that ask for more than 16 hits. The metric ``"manhattan"`` has no such bound and does not use codes.

    Parameters
    ----------
    vectors : array_like
        Vectors [n, d]. An array of float32 in C order is used in place, and may be memory-mapped; it must not change.
    codes : ndarray of uint8, optional
        The `codes` of these vectors, saved before, [n, d + 12]; they may be memory-mapped. By default they are made.
    threads : int, optional
        How many threads make the codes; by default as many as this process may use.

    Attributes
    ----------
    vectors : ndarray of float32
        The vectors, [n, d].
    codes : ndarray of uint8
        The codes, [n, d + 12]: a quarter of the memory of the vectors. ``numpy.save`` keeps them.

    Raises
    ------
    InputError
        The vectors are not numbers [n, d], or the codes are of other vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.sentence import PreparedVectors, semantic_search
    >>> x = np.random.default_rng(0).normal(size=(1000, 64)).astype(np.float32)
    >>> prepared = PreparedVectors(x)
    >>> semantic_search(x[:3], prepared) == semantic_search(x[:3], x)
    True
    """

    def __init__(
        self, vectors: npt.ArrayLike, codes: npt.NDArray[np.uint8] | None = None, *, threads: int | None = None
    ) -> None:
        self.vectors: Array = np.ascontiguousarray(as_float32("vectors", as_vectors("vectors", vectors)))
        if not self.vectors.shape[1]:
            raise InputError("vectors must have at least one number each")
        self.codes = code_rows(self.vectors, threads) if codes is None else self._checked(codes)

    def _checked(self, codes: Any) -> npt.NDArray[np.uint8]:
        count, width = self.vectors.shape
        if not isinstance(codes, np.ndarray) or codes.dtype != np.uint8 or codes.shape != (count, width + CODE_BYTES):
            shape = getattr(codes, "shape", ())
            raise InputError(
                f"codes must be uint8 [{count}, {width + CODE_BYTES}], the codes of these vectors, not "
                f"{getattr(codes, 'dtype', type(codes).__name__)} of shape {list(shape)}"
            )
        require_whole(codes)
        rows = np.unique(np.linspace(0, count - 1, min(count, _COMPARED)).astype(np.int64))
        if len(rows) and (code_rows(np.ascontiguousarray(self.vectors[rows])) != codes[rows]).any():
            raise InputError("codes are of other vectors: leave them out, and save the new ones")
        return np.ascontiguousarray(codes)

    def __len__(self) -> int:
        return len(self.vectors)

    def __repr__(self) -> str:
        count, width = self.vectors.shape
        return f"PreparedVectors({count} vectors of {width})"


def nearest_prepared(queries: Array, prepared: PreparedVectors, metric: str, top_k: int, threads: int | None) -> Found:
    """Return the rows with the highest scores for each query, and the scores, as `nearest_rows.nearest`."""
    check_widths(queries, prepared.vectors)
    require_whole(prepared.vectors)
    require_whole(prepared.codes)
    blocks = [Block(0, prepared.vectors, prepared.codes, np.zeros(0, np.int64))]
    return nearest_in_blocks(queries, lambda: blocks, metric, min(top_k, len(prepared)), threads)


def nearest_in_blocks(
    queries: Array, blocks: Callable[[], Iterable[Block]], metric: str, top_k: int, threads: int | None
) -> Found:
    """Return the rows with the highest scores for each query [n, d], and the scores, of blocks that follow one another.

    Each block is searched for what is better than the best of the blocks before it.
    """
    check_queries(queries)
    if metric == "cosine":
        queries = normalized(queries)

    def search(some: Array) -> Found:
        best: Found = (np.zeros((len(some), 0), np.int64), np.zeros((len(some), 0)))
        for block in blocks():
            lowest = best[1][:, top_k - 1 : top_k].ravel()  # empty if there are fewer hits
            least = np.where(np.isnan(lowest), -np.inf, lowest)
            # A hit that is missing because it is below the lowest has the score −∞, and comes after all of `best`.
            rows, scores = counted(block.replaced, top_k, partial(_of_block, some, block, metric, least, threads))
            best = merged(best, (rows + block.start, scores), top_k)
        return best

    return by_groups(np.ascontiguousarray(queries), top_k, search)


def _of_block(
    some: Array, block: Block, metric: str, least: npt.NDArray[np.float64], threads: int | None, count: int
) -> Found:
    """Return the best `count` rows of a block; where it has codes, those whose scores are not below `least`."""
    if block.codes is None or not len(some) or not _pays(metric, len(some), count):
        return _core.search_floats(some, block.vectors, metric, count, threads, None)
    return _core.search_by_codes(some, block.vectors, block.codes, metric, count, least, threads, None)
