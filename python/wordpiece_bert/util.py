"""The functions of ``sentence_transformers.util``, under its names and with its arguments.

They compute as `wordpiece_bert.sentence` does, for programs that were written for sentence-transformers:
``from wordpiece_bert import util``. Results are arrays of NumPy, or tensors where an argument is a tensor.

Stability: provisional.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.arrays import as_float32, as_numbers, as_vectors
from wordpiece_bert._internal.checks import check_device, check_function, finite_number, whole_number
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.tensors import is_tensor
from wordpiece_bert._internal.texts import row_texts
from wordpiece_bert.errors import InputError
from wordpiece_bert.search import paraphrase_mining as paraphrases
from wordpiece_bert.search import semantic_search as semantic
from wordpiece_bert.search.communities import community_detection as community_detection
from wordpiece_bert.search.hard_negatives import mine_hard_negatives as mine_hard_negatives
from wordpiece_bert.sentence import metrics
from wordpiece_bert.sentence.arguments import as_given
from wordpiece_bert.sentence.dense.sentence_encoder import sentence_encoder
from wordpiece_bert.sentence.multi_vector import late_interaction
from wordpiece_bert.sentence.nearest_rows import best_of_scores
from wordpiece_bert.sentence.parameters import CHUNKS, ENCODING
from wordpiece_bert.sentence.quantization import quantize_embeddings as quantize_embeddings
from wordpiece_bert.sentence.sparse.sparse_vectors import (
    SparseVectors,
    as_sparse,
    is_sparse,
    sparse_pairwise_similarity,
    sparse_similarity,
)

if TYPE_CHECKING:
    import os

    import numpy.typing as npt

    from wordpiece_bert.search.semantic_search import SearchHit
    from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder

__all__ = [
    "SimilarityFunction",
    "community_detection",
    "cos_sim",
    "dot_score",
    "euclidean_sim",
    "manhattan_sim",
    "maxsim",
    "maxsim_pairwise",
    "mean_maxsim",
    "mean_maxsim_pairwise",
    "mine_hard_negatives",
    "normalize_embeddings",
    "pairwise_cos_sim",
    "pairwise_dot_score",
    "pairwise_euclidean_sim",
    "pairwise_manhattan_sim",
    "paraphrase_mining",
    "paraphrase_mining_embeddings",
    "pytorch_cos_sim",
    "quantize_embeddings",
    "semantic_search",
    "truncate_embeddings",
]

#: A function of two sets of vectors, [n, d] and [m, d], that returns scores [n, m].
ScoreFunction = Callable[[Any, Any], Any]


class SimilarityFunction(enum.Enum):
    """The measures of similarity, by the names that sentence-transformers has for them.

    A member is accepted wherever its value is, as in ``SentenceEncoder(name, similarity_fn_name=...)``.

    Examples
    --------
    >>> from wordpiece_bert.util import SimilarityFunction
    >>> SimilarityFunction("dot").value
    'dot'
    """

    #: The cosine.
    COSINE = "cosine"
    #: The dot product.
    DOT_PRODUCT = "dot"
    DOT = "dot"  # noqa: PIE796 - the alias that sentence-transformers has
    #: The negative Euclidean distance.
    EUCLIDEAN = "euclidean"
    #: The negative sum of absolute differences.
    MANHATTAN = "manhattan"

    @staticmethod
    def possible_values() -> list[str]:
        """Return the values of the members.

        Returns
        -------
        list of str
            The values.

        Examples
        --------
        >>> from wordpiece_bert.util import SimilarityFunction
        >>> SimilarityFunction.possible_values()
        ['cosine', 'dot', 'euclidean', 'manhattan']
        """
        return [member.value for member in SimilarityFunction]

    @staticmethod
    def to_similarity_fn(similarity_function: str | SimilarityFunction) -> ScoreFunction:
        """Return the function that compares every vector with every other.

        Parameters
        ----------
        similarity_function : str or SimilarityFunction
            The measure.

        Returns
        -------
        callable
            A function from vectors [n, d] and [m, d] to [n, m].

        Examples
        --------
        >>> from wordpiece_bert.util import SimilarityFunction
        >>> SimilarityFunction.to_similarity_fn("dot")([[1, 0]], [[1, 0], [0, 2]])
        array([[1., 0.]], dtype=float32)
        """
        return _FUNCTIONS[SimilarityFunction(similarity_function).value][0]

    @staticmethod
    def to_similarity_pairwise_fn(similarity_function: str | SimilarityFunction) -> ScoreFunction:
        """Return the function that compares vectors pair by pair.

        Parameters
        ----------
        similarity_function : str or SimilarityFunction
            The measure.

        Returns
        -------
        callable
            A function from vectors [n, d] and [n, d] to [n].

        Examples
        --------
        >>> from wordpiece_bert.util import SimilarityFunction
        >>> SimilarityFunction.to_similarity_pairwise_fn("dot")(
        ...     [[1, 0], [0, 1]], [[1, 0], [0, 2]]
        ... )
        array([1., 2.], dtype=float32)
        """
        return _FUNCTIONS[SimilarityFunction(similarity_function).value][1]


# --- similarities


def cos_sim(a: npt.ArrayLike | SparseVectors, b: npt.ArrayLike | SparseVectors) -> npt.NDArray[np.float32]:
    """Return the cosine of every vector of `a` with every vector of `b`.

    Parameters
    ----------
    a, b : array_like, tensor, SparseVectors or sparse matrix of scipy
        Vectors [n, d] and [m, d]; one vector [d] counts as one row.

    Returns
    -------
    ndarray of float32
        The similarities [n, m]; a tensor if an argument is one.

    Raises
    ------
    InputError
        The vectors differ in length.

    Examples
    --------
    >>> from wordpiece_bert.util import cos_sim
    >>> cos_sim([[1, 0]], [[1, 0], [0, 2]])
    array([[1., 0.]], dtype=float32)
    """
    return _all_with_all(a, b, "cosine")


@completed_by(cos_sim)
def pytorch_cos_sim(a: npt.ArrayLike | SparseVectors, b: npt.ArrayLike | SparseVectors) -> npt.NDArray[np.float32]:
    """Return what `cos_sim` does: its older name.

    Returns
    -------
    ndarray of float32
        The values, [n, m].

    Examples
    --------
    >>> from wordpiece_bert.util import pytorch_cos_sim
    >>> pytorch_cos_sim([[1, 0]], [[1, 0], [0, 2]])
    array([[1., 0.]], dtype=float32)
    """
    return cos_sim(a, b)


@completed_by(cos_sim)
def dot_score(a: npt.ArrayLike | SparseVectors, b: npt.ArrayLike | SparseVectors) -> npt.NDArray[np.float32]:
    """Return the dot product of every vector of `a` with every vector of `b`, as `cos_sim`.

    Returns
    -------
    ndarray of float32
        The values, [n, m].

    Examples
    --------
    >>> from wordpiece_bert.util import dot_score
    >>> dot_score([[1, 0]], [[1, 0], [0, 2]])
    array([[1., 0.]], dtype=float32)
    """
    return _all_with_all(a, b, "dot")


@completed_by(cos_sim)
def euclidean_sim(a: npt.ArrayLike | SparseVectors, b: npt.ArrayLike | SparseVectors) -> npt.NDArray[np.float32]:
    """Return the negative Euclidean distance of every vector of `a` to every vector of `b`, as `cos_sim`.

    Returns
    -------
    ndarray of float32
        The values, [n, m].

    Examples
    --------
    >>> from wordpiece_bert.util import euclidean_sim
    >>> euclidean_sim([[1, 0]], [[1, 0], [0, 2]]).round(2)
    array([[-0.  , -2.24]], dtype=float32)
    """
    return _all_with_all(a, b, "euclidean")


@completed_by(cos_sim)
def manhattan_sim(a: npt.ArrayLike | SparseVectors, b: npt.ArrayLike | SparseVectors) -> npt.NDArray[np.float32]:
    """Return the negative sum of absolute differences of every vector of `a` to every vector of `b`, as `cos_sim`.

    Returns
    -------
    ndarray of float32
        The values, [n, m].

    Examples
    --------
    >>> from wordpiece_bert.util import manhattan_sim
    >>> manhattan_sim([[1, 0]], [[1, 0], [0, 2]])
    array([[-0., -3.]], dtype=float32)
    """
    return _all_with_all(a, b, "manhattan")


def pairwise_cos_sim(a: npt.ArrayLike | SparseVectors, b: npt.ArrayLike | SparseVectors) -> npt.NDArray[np.float32]:
    """Return the cosine of each vector of `a` with the vector of `b` of the same number.

    Parameters
    ----------
    a, b : array_like, tensor, SparseVectors or sparse matrix of scipy
        Vectors [n, d] each; one vector [d] counts as one row.

    Returns
    -------
    ndarray of float32
        The similarities [n]; a tensor if an argument is one.

    Raises
    ------
    InputError
        The vectors differ in length or number.

    Examples
    --------
    >>> from wordpiece_bert.util import pairwise_cos_sim
    >>> pairwise_cos_sim([[1, 0], [0, 1]], [[1, 0], [0, 2]])
    array([1., 1.], dtype=float32)
    """
    return _pair_by_pair(a, b, "cosine")


@completed_by(pairwise_cos_sim)
def pairwise_dot_score(a: npt.ArrayLike | SparseVectors, b: npt.ArrayLike | SparseVectors) -> npt.NDArray[np.float32]:
    """Return the dot product of each vector of `a` with its vector of `b`, as `pairwise_cos_sim`.

    Returns
    -------
    ndarray of float32
        The values, [n].

    Examples
    --------
    >>> from wordpiece_bert.util import pairwise_dot_score
    >>> pairwise_dot_score([[1, 0], [0, 1]], [[1, 0], [0, 2]])
    array([1., 2.], dtype=float32)
    """
    return _pair_by_pair(a, b, "dot")


@completed_by(pairwise_cos_sim)
def pairwise_euclidean_sim(
    a: npt.ArrayLike | SparseVectors, b: npt.ArrayLike | SparseVectors
) -> npt.NDArray[np.float32]:
    """Return the negative Euclidean distance of each vector of `a` to its vector of `b`, as `pairwise_cos_sim`.

    Returns
    -------
    ndarray of float32
        The values, [n].

    Examples
    --------
    >>> from wordpiece_bert.util import pairwise_euclidean_sim
    >>> pairwise_euclidean_sim([[1, 0], [0, 1]], [[1, 0], [0, 2]])
    array([-0., -1.], dtype=float32)
    """
    return _pair_by_pair(a, b, "euclidean")


@completed_by(pairwise_cos_sim)
def pairwise_manhattan_sim(
    a: npt.ArrayLike | SparseVectors, b: npt.ArrayLike | SparseVectors
) -> npt.NDArray[np.float32]:
    """Return the negative sum of absolute differences of each vector of `a` to its vector, as `pairwise_cos_sim`.

    Returns
    -------
    ndarray of float32
        The values, [n].

    Examples
    --------
    >>> from wordpiece_bert.util import pairwise_manhattan_sim
    >>> pairwise_manhattan_sim([[1, 0], [0, 1]], [[1, 0], [0, 2]])
    array([-0., -1.], dtype=float32)
    """
    return _pair_by_pair(a, b, "manhattan")


def maxsim(
    a: Any,
    b: Any,
    a_mask: Any = None,
    b_mask: Any = None,
    chunk_elements: int | None = None,
    length_normalize: bool = False,
    device: str | None = None,
) -> npt.NDArray[np.float32]:
    """Score every query with every document by their token vectors, as `wordpiece_bert.sentence.maxsim`.

    Parameters
    ----------
    a, b : MultiVectors, list of array_like, or array_like
        The token vectors of queries and of documents.
    a_mask, b_mask : array_like or list of array_like, optional
        Which vectors count.
    chunk_elements : int, optional
        Not needed here: no products are kept.
    length_normalize : bool, default False
        Divide each score by the number of vectors of the query.
    device : {"cpu"}, optional
        The device, which is always the CPU.

    Returns
    -------
    ndarray of float32
        The scores [queries, documents]; a tensor if an argument is one.

    Examples
    --------
    >>> from wordpiece_bert.util import maxsim
    >>> maxsim([[[1, 0], [0, 1]]], [[[1, 0], [1, 1]], [[0, 3], [0, 2]]])
    array([[2., 3.]], dtype=float32)
    """
    return _late(late_interaction.maxsim, a, b, a_mask, b_mask, chunk_elements, length_normalize, device)


@completed_by(maxsim)
def maxsim_pairwise(
    a: Any,
    b: Any,
    a_mask: Any = None,
    b_mask: Any = None,
    chunk_elements: int | None = None,
    length_normalize: bool = False,
    device: str | None = None,
) -> npt.NDArray[np.float32]:
    """Score each query with the document of the same number, as `maxsim`: [n].

    Returns
    -------
    ndarray of float32
        The scores, [n].

    Examples
    --------
    >>> from wordpiece_bert.util import maxsim_pairwise
    >>> maxsim_pairwise([[[1, 0], [0, 1]]], [[[1, 0], [1, 1]]])
    array([2.], dtype=float32)
    """
    return _late(late_interaction.maxsim_pairwise, a, b, a_mask, b_mask, chunk_elements, length_normalize, device)


@completed_by(maxsim)
def mean_maxsim(
    a: Any,
    b: Any,
    a_mask: Any = None,
    b_mask: Any = None,
    chunk_elements: int | None = None,
    length_normalize: bool = True,
    device: str | None = None,
) -> npt.NDArray[np.float32]:
    """Score every query with every document as `maxsim`, divided by the number of vectors of the query.

    Parameters
    ----------
    length_normalize : bool, default True
        Divide each score by the number of vectors of the query; False for `maxsim`.

    Returns
    -------
    ndarray of float32
        The scores, [n, m].

    Examples
    --------
    >>> from wordpiece_bert.util import mean_maxsim
    >>> mean_maxsim([[[1, 0], [0, 1]]], [[[1, 0], [1, 1]], [[0, 3], [0, 2]]])
    array([[1. , 1.5]], dtype=float32)
    """
    return maxsim(a, b, a_mask, b_mask, chunk_elements, length_normalize, device)


@completed_by(maxsim)
def mean_maxsim_pairwise(
    a: Any,
    b: Any,
    a_mask: Any = None,
    b_mask: Any = None,
    chunk_elements: int | None = None,
    length_normalize: bool = True,
    device: str | None = None,
) -> npt.NDArray[np.float32]:
    """Score each query with the document of the same number, as `mean_maxsim`: [n].

    Parameters
    ----------
    length_normalize : bool, default True
        Divide each score by the number of vectors of the query; False for `maxsim_pairwise`.

    Returns
    -------
    ndarray of float32
        The scores, [n].

    Examples
    --------
    >>> from wordpiece_bert.util import mean_maxsim_pairwise
    >>> mean_maxsim_pairwise([[[1, 0], [0, 1]]], [[[1, 0], [1, 1]]])
    array([1.], dtype=float32)
    """
    return maxsim_pairwise(a, b, a_mask, b_mask, chunk_elements, length_normalize, device)


#: The functions of each measure: every vector with every other, and pair by pair.
_FUNCTIONS: dict[str, tuple[ScoreFunction, ScoreFunction]] = {
    "cosine": (cos_sim, pairwise_cos_sim),
    "dot": (dot_score, pairwise_dot_score),
    "euclidean": (euclidean_sim, pairwise_euclidean_sim),
    "manhattan": (manhattan_sim, pairwise_manhattan_sim),
}
#: The measure of each function that compares every vector with every other.
_METRICS: dict[ScoreFunction, str] = {pytorch_cos_sim: "cosine"} | {
    functions[0]: metric for metric, functions in _FUNCTIONS.items()
}


# --- vectors


def normalize_embeddings(embeddings: Any) -> Any:
    """Scale vectors to length 1; a vector of zeros stays one.

    Parameters
    ----------
    embeddings : array_like, tensor, SparseVectors or sparse matrix of scipy
        Vectors [..., d].

    Returns
    -------
    ndarray of float32, tensor or SparseVectors
        The vectors, of the same shape.

    Raises
    ------
    InputError
        It is not an array of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.util import normalize_embeddings
    >>> normalize_embeddings(np.array([[3, 4]], np.float32))
    array([[0.6, 0.8]], dtype=float32)
    """
    if is_sparse(embeddings):
        sparse = as_sparse("embeddings", embeddings)
        rows = np.repeat(np.arange(len(sparse)), np.diff(sparse.indptr))
        lengths = np.sqrt(np.bincount(rows, sparse.values.astype(np.float64) ** 2, minlength=len(sparse)))
        lengths[lengths == 0] = 1
        return SparseVectors(sparse.indptr, sparse.indices, sparse.values / lengths[rows], embeddings.shape)
    x = as_float32("embeddings", as_numbers("embeddings", embeddings, "vectors [..., d]"))
    if x.ndim == 0:
        raise InputError(f"embeddings must be vectors [..., d], not the number {x}")
    flat = x.reshape(-1, x.shape[-1]) if x.size else np.zeros((0, 1), np.float32)
    return as_given(metrics.normalized(flat).reshape(x.shape), embeddings)


def truncate_embeddings(embeddings: Any, truncate_dim: int | None) -> Any:
    """Return the first numbers of each vector, a view.

    Parameters
    ----------
    embeddings : array_like or tensor
        Vectors [..., d].
    truncate_dim : int or None
        How many numbers to keep; None for all, as is a number above d.

    Returns
    -------
    ndarray or tensor
        The vectors [..., truncate_dim].

    Raises
    ------
    InputError
        `truncate_dim` is not a whole number above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.util import truncate_embeddings
    >>> truncate_embeddings(np.array([[3, 4, 5]]), 2)
    array([[3, 4]])
    """
    if truncate_dim is not None:
        truncate_dim = whole_number("truncate_dim", truncate_dim, 1, others="or None for all")
    if not getattr(embeddings, "ndim", 0):
        embeddings = np.atleast_1d(as_numbers("embeddings", embeddings))
    return embeddings[..., :truncate_dim]


# --- search


@completed_by(semantic.semantic_search)
def semantic_search(
    query_embeddings: Any,
    corpus_embeddings: Any,
    query_chunk_size: int = 100,
    corpus_chunk_size: int = 500_000,
    top_k: int = 10,
    score_function: ScoreFunction = cos_sim,
) -> list[list[SearchHit]]:
    """Find the vectors of a collection that are most similar to each query, by comparing with all of them.

    `wordpiece_bert.sentence.semantic_search` has more: quantized and stored collections, threads.

    Parameters
    ----------
    query_embeddings, corpus_embeddings : array_like, tensor, SparseVectors or sparse matrix of scipy
        Vectors [n, d], or one [d], and [m, d].
    query_chunk_size, corpus_chunk_size : int
        How many queries and vectors a `score_function` that is not one of this module gets at once. Functions
        of this module need bounded memory without it.
    score_function : callable, optional
        How vectors are compared: `cos_sim`, the default, `dot_score`, `euclidean_sim`, `manhattan_sim`, or a function
        of queries [n, d] and vectors [m, d] that returns scores [n, m], higher for the more similar.

    Returns
    -------
    list of list of SearchHit
        For each query, dicts with ``corpus_id`` and ``score``, the highest score first, of equal scores the lower row
        first.

    Raises
    ------
    InputError
        The vectors differ in length, or an argument is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.util import semantic_search
    >>> semantic_search(np.eye(2)[:1], np.eye(2), top_k=1)
    [[{'corpus_id': 0, 'score': 1.0}]]
    """
    top_k = whole_number("top_k", top_k, 1)
    queries_at_once = whole_number("query_chunk_size", query_chunk_size, 1)
    rows_at_once = whole_number("corpus_chunk_size", corpus_chunk_size, 1)
    check_function("score_function", score_function, "two sets of vectors")
    metric = _METRICS.get(score_function)
    if metric is not None:
        return semantic.semantic_search(query_embeddings, corpus_embeddings, top_k, metric)
    queries = _batch("query_embeddings", query_embeddings)
    corpus = _batch("corpus_embeddings", corpus_embeddings)
    hits: list[list[SearchHit]] = []
    for start in range(0, len(queries), queries_at_once):
        some = queries[start : start + queries_at_once]
        parts = []
        for first in range(0, len(corpus), rows_at_once):
            scores = _scores(score_function, some, corpus[first : first + rows_at_once])
            rows, best = best_of_scores(scores, top_k)
            parts.append((rows + first, best))
        rows, best = (np.concatenate(columns, axis=1) for columns in zip(*parts, strict=True))
        chosen, best = best_of_scores(best.astype(np.float32), top_k)
        rows = np.take_along_axis(rows, chosen, axis=1)
        hits += [
            [{"corpus_id": i, "score": score} for i, score in zip(*one, strict=True)]
            for one in zip(rows.tolist(), best.tolist(), strict=True)
        ]
    return hits


@completed_by(CHUNKS, paraphrases.paraphrase_mining_embeddings)
def paraphrase_mining_embeddings(
    embeddings: Any,
    query_chunk_size: int = 5000,
    corpus_chunk_size: int = 100_000,
    max_pairs: int = 500_000,
    top_k: int | None = None,
    score_function: ScoreFunction = cos_sim,
    *,
    threshold: float | None = None,
) -> list[list[Any]]:
    """Find the most similar pairs of vectors, by comparing all n·(n − 1)/2 pairs.

    Parameters
    ----------
    embeddings : array_like or tensor
        Vectors [n, d].
    score_function : callable, optional
        How vectors are compared, as in `semantic_search`.

    Returns
    -------
    list of [float, int, int]
        Score and the two rows i < j, each pair once; the highest score first, of equal scores the lower rows first.

    Raises
    ------
    InputError
        A vector has NaN or infinity, a score is NaN, no score can reach `threshold`, or an argument is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.util import paraphrase_mining_embeddings
    >>> paraphrase_mining_embeddings(np.array([[1, 0], [1, 0], [0, 1]]), max_pairs=1)
    [[1.0, 0, 1]]
    """
    whole_number("query_chunk_size", query_chunk_size, 1)
    whole_number("corpus_chunk_size", corpus_chunk_size, 1)
    check_function("score_function", score_function, "two sets of vectors")
    metric = _METRICS.get(score_function)
    if metric is not None:
        return paraphrases.paraphrase_mining_embeddings(
            embeddings, top_k=top_k, max_pairs=max_pairs, metric=metric, threshold=threshold
        )
    vectors = _batch("embeddings", embeddings)
    return paraphrases.mined_pairs(
        len(vectors),
        lambda rows, columns: _scores(score_function, vectors[rows], vectors[columns]),
        top_k,
        max_pairs,
        None if threshold is None else np.float32(finite_number("threshold", threshold)),
    )


@completed_by(paraphrase_mining_embeddings, ENCODING)
def paraphrase_mining(
    model: str | os.PathLike[str] | SentenceEncoder,
    sentences: list[str],
    show_progress_bar: bool = False,
    batch_size: int = 32,
    query_chunk_size: int = 5000,
    corpus_chunk_size: int = 100_000,
    max_pairs: int = 500_000,
    top_k: int | None = None,
    score_function: ScoreFunction = cos_sim,
    truncate_dim: int | None = None,
    prompt_name: str | None = None,
    prompt: str | None = None,
    *,
    threshold: float | None = None,
) -> list[list[Any]]:
    """Find the most similar pairs of sentences in a collection, by their vectors.

    Parameters
    ----------
    model : str, PathLike or SentenceEncoder
        An encoder, or its name or folder.
    sentences : iterable of str
        The collection.

    Returns
    -------
    list of [float, int, int]
        As from `paraphrase_mining_embeddings`.

    Examples
    --------
    >>> from wordpiece_bert import SentenceEncoder
    >>> from wordpiece_bert.util import paraphrase_mining
    >>> pairs = paraphrase_mining(
    ...     SentenceEncoder("minilm"), ["The cat sleeps.", "Rates rise.", "A kitten naps."]
    ... )
    >>> pairs[0][1:]
    [0, 2]
    """
    vectors = sentence_encoder(model, "model").encode(
        row_texts("sentences", sentences),
        prompt_name,
        prompt,
        batch_size=batch_size,
        show_progress_bar=show_progress_bar,
        truncate_dim=truncate_dim,
    )
    return paraphrase_mining_embeddings(
        vectors, query_chunk_size, corpus_chunk_size, max_pairs, top_k, score_function, threshold=threshold
    )


# --- what the functions above share


def _all_with_all(a: Any, b: Any, metric: str) -> npt.NDArray[np.float32]:
    compare = sparse_similarity if is_sparse(a) or is_sparse(b) else metrics.similarity
    found: npt.NDArray[np.float32] = as_given(compare(a, b, metric), a, b)
    return found


def _pair_by_pair(a: Any, b: Any, metric: str) -> npt.NDArray[np.float32]:
    compare = sparse_pairwise_similarity if is_sparse(a) or is_sparse(b) else metrics.pairwise_similarity
    found: npt.NDArray[np.float32] = as_given(compare(a, b, metric), a, b)
    return found


def _late(
    compare: Any,
    a: Any,
    b: Any,
    a_mask: Any,
    b_mask: Any,
    chunk_elements: int | None,
    length_normalize: bool,
    device: str | None,
) -> npt.NDArray[np.float32]:
    check_device(device)
    if chunk_elements is not None:
        whole_number("chunk_elements", chunk_elements, 1, others="or None")
    found: npt.NDArray[np.float32] = as_given(compare(a, b, a_mask, b_mask, length_normalize=length_normalize), a, b)
    return found


def _batch(name: str, vectors: Any) -> Any:
    """Return vectors as a function of scores gets them, [n, d]: a tensor as it is, else an array."""
    if is_tensor(vectors):
        return vectors[None] if vectors.ndim == 1 else vectors
    return as_sparse(name, vectors) if is_sparse(vectors) else as_vectors(name, vectors)


def _scores(function: ScoreFunction, a: Any, b: Any) -> npt.NDArray[np.float32]:
    """Return the scores of a function, checked, as a new array [n, m]."""
    return metrics.checked_scores("score_function", function(a, b), len(a), len(b))
