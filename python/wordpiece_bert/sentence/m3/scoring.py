"""Scores of BGE-M3's outputs: dense, sparse, of the vectors of tokens, their weighted means, and the best by these.

Source: Chen et al. 2024, "BGE M3-Embedding", section 3.2, and FlagEmbedding's `compute_score`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert._internal.checks import real_number
from wordpiece_bert._internal.highest import highest
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.multi_vector.late_interaction import maxsim, maxsim_pairwise
from wordpiece_bert.sentence.nearest_rows import nearest
from wordpiece_bert.sentence.sparse.sparse_vectors import sparse_pairwise_similarity, sparse_similarity

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.sentence.m3.m3_vectors import M3Rows

#: The most dense scores, and as many sparse ones, that are in memory at once (for one query at least all
#: its scores).
_SCORES = 1 << 22


class Weights(NamedTuple):
    """What the scores count in their mean."""

    dense: float
    sparse: float
    colbert: float

    def mean(self, dense: Array, sparse: Array, colbert: Array) -> Array:
        """Return the weighted mean of all three scores."""
        found = (self.dense * dense + self.sparse * sparse + self.colbert * colbert) / sum(self)
        return np.asarray(found, np.float32)

    def mean_of_two(self, dense: Array, sparse: Array) -> Array:
        """Return the weighted mean of the dense and the sparse score."""
        return np.asarray((self.dense * dense + self.sparse * sparse) / (self.dense + self.sparse), np.float32)


class Hits(NamedTuple):
    """The best documents of a query: their numbers and their scores, the best first."""

    rows: npt.NDArray[np.int64]
    score: Array
    dense: Array
    sparse: Array
    colbert: Array


def checked_weights(weights: Any, *, two: bool) -> Weights:
    """Return weights as numbers, of which at least one is not 0; with `two`, one of the first two.

    Raises
    ------
    InputError
        They are not three finite numbers of at least 0, or all 0.
    """
    numbers = np.asarray(weights, dtype=object).reshape(-1).tolist()
    right = len(numbers) == 3 and all(0 <= real_number(x) < np.inf for x in numbers)
    if not right or not (sum(numbers[: 2 if two else 3]) > 0 and sum(numbers) < np.inf):
        raise InputError(
            "weights must be three finite numbers of at least 0, of dense, sparse and multi-vector scores, and "
            f"{'the first two not both' if two else 'not all of them'} 0; not {weights!r}"
        )
    return Weights(*map(float, numbers))


def scores_of_pairs(queries: M3Rows, passages: M3Rows, weights: Weights, threads: int | None) -> dict[str, Array]:
    """Return the scores of each query with the passage of the same number, [n], by FlagEmbedding's names."""
    dense = np.einsum("ij,ij->i", queries.dense, passages.dense)
    sparse = sparse_pairwise_similarity(queries.sparse, passages.sparse, "dot")
    colbert = maxsim_pairwise(queries.colbert, passages.colbert, length_normalize=True, threads=threads)
    return {
        "dense": np.asarray(dense, np.float32),
        "sparse": sparse,
        "colbert": colbert,
        "sparse+dense": weights.mean_of_two(dense, sparse),
        "colbert+sparse+dense": weights.mean(dense, sparse, colbert),
    }


def best_documents(
    queries: M3Rows, documents: M3Rows, weights: Weights, top_k: int, candidates: int | None, threads: int | None
) -> Iterator[Hits]:
    """Yield the best documents of each query by the weighted mean of their scores, of equal ones the lower first.

    Vectors of tokens are compared for `candidates` documents alone, the best by the weighted mean of the dense and the
    sparse score (of equal weights if both weigh nothing); for all with None. If their score weighs nothing, they are
    compared for the documents that are returned.
    """
    count = len(documents.dense)
    first = weights if weights.dense + weights.sparse else Weights(1.0, 1.0, 0.0)
    most = count if candidates is None else max(candidates, top_k)
    if not weights.colbert:
        most = top_k
    step = max(1, _SCORES // max(count, 1))
    for start in range(0, len(queries.dense) if count else 0, step):
        part = slice(start, start + step)
        dense = _dense_scores(queries.dense[part], documents.dense, threads)  # [q, m]
        sparse = sparse_similarity(queries.sparse[part], documents.sparse, "dot")
        for i in range(len(dense)):
            rows = np.arange(count)
            if most < count:
                rows = np.sort(highest(first.mean_of_two(dense[i], sparse[i]), most))
            vectors = documents.colbert if most >= count else documents.colbert[rows]
            query = queries.colbert[start + i : start + i + 1]
            colbert = maxsim(query, vectors, length_normalize=True, threads=threads)[0]
            mean = weights.mean(dense[i, rows], sparse[i, rows], colbert)
            best = highest(mean, top_k)
            yield Hits(rows[best], mean[best], dense[i, rows[best]], sparse[i, rows[best]], colbert[best])
    if not count:
        none = np.zeros(0, np.float32)
        for _ in range(len(queries.dense)):
            yield Hits(np.zeros(0, np.int64), none, none, none, none)


def _dense_scores(queries: Array, documents: Array, threads: int | None) -> Array:
    """Return the products of every query with every document, [n, m], the same bits whatever else is compared."""
    found = np.full((len(queries), len(documents)), np.nan, np.float32)
    rows, scores = nearest(queries, documents, "dot", len(documents), threads)
    np.put_along_axis(found, rows, scores.astype(np.float32), axis=1)
    return found
