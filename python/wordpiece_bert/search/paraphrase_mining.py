"""The most similar pairs of a collection of vectors or texts, by comparing all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.answers import Results
from wordpiece_bert._internal.arrays import as_float32, as_vectors, check_finite
from wordpiece_bert._internal.checks import whole_number
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.texts import row_texts
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.metrics import check_metric, least_score, normalized, similarity
from wordpiece_bert.sentence.parameters import ENCODING

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder

    #: Pairs of items as one number each, first · n + second, and their scores.
    Pairs = tuple[npt.NDArray[np.int64], Array]

#: The most scores that are in memory at once (for one vector at least all its scores), 8 MB of float32.
_BLOCK = 1 << 21

#: How many candidates are kept for each vector, if neither `top_k` nor `threshold` says it.
_CANDIDATES = 100


def paraphrase_mining_embeddings(
    embeddings: npt.ArrayLike,
    *,
    top_k: int | None = None,
    max_pairs: int = 500_000,
    metric: str = "cosine",
    threshold: float | None = None,
) -> list[list[Any]]:
    """Find the most similar pairs of vectors, by comparing all n·(n − 1)/2 pairs.

    Parameters
    ----------
    embeddings : array_like
        Vectors [n, d].
    top_k : int, optional
        How many candidates to keep for each vector: a pair is found if either vector is among the other's candidates.
        By default 100, and all with `threshold`.
    max_pairs : int, default 500000
        How many pairs to return, at most.
    metric : str, default "cosine"
        How vectors are compared: ``"cosine"``, ``"dot"``, ``"euclidean"`` or ``"manhattan"``.
    threshold : float, optional
        The least score of a pair: duplicates have a cosine near 1. All pairs that reach it are found, up to
        `max_pairs`; a cosine of 1 is reached by equal vectors.

    Returns
    -------
    list of [float, int, int]
        Score and the two rows i < j, each pair once; the highest score first, of equal scores the lower rows first. The
        list shows itself as a table in a notebook.

    Raises
    ------
    InputError
        A vector has NaN or infinity, no score can reach `threshold`, or an argument is wrong.

    Notes
    -----
    This is the introductory example of the Sentence-BERT paper (Reimers and Gurevych 2019): to find the most similar
    pair of 10,000 sentences takes 65 hours with a cross encoder.

    Examples
    --------
    >>> from wordpiece_bert.sentence import paraphrase_mining_embeddings
    >>> vectors = [[1.0, 0.0], [0.0, 1.0], [4.0, 3.0]]
    >>> paraphrase_mining_embeddings(vectors, max_pairs=2)
    [[0.800000011920929, 0, 2], [0.6000000238418579, 1, 2]]
    >>> paraphrase_mining_embeddings(vectors, threshold=0.75)
    [[0.800000011920929, 0, 2]]
    """
    check_metric(metric)
    least = None if threshold is None else least_score("threshold", threshold, metric)
    vectors = as_float32("embeddings", as_vectors("embeddings", embeddings))
    check_finite("embeddings", vectors)
    if metric == "cosine":
        vectors, metric = normalized(vectors), "dot"
    return mined_pairs(
        len(vectors), lambda rows, columns: similarity(vectors[rows], vectors[columns], metric), top_k, max_pairs, least
    )


@completed_by(paraphrase_mining_embeddings)
def mined_pairs(
    count: int,
    scores: Callable[[slice, slice], Array],
    top_k: int | None,
    max_pairs: int,
    least: np.float32 | None,
) -> list[list[Any]]:
    """Return the pairs of items with the highest scores, as `paraphrase_mining_embeddings`.

    Parameters
    ----------
    count : int
        The number of items, n.
    scores : callable
        Returns the scores of some items with others, float32 [rows, columns], which are changed.
    least : float32, optional
        The least score of a pair.
    """
    most = whole_number("max_pairs", max_pairs, 1)
    if top_k is None and least is not None:
        key, value = _pairs_above(count, scores, least, most)
    else:
        kept = _CANDIDATES if top_k is None else whole_number("top_k", top_k, 1, others="or None")
        key, value = _nearest_pairs(count, scores, kept)
        if least is not None:
            key, value = key[value >= least], value[value >= least]
    order = np.argsort(-value, kind="stable")[:most]
    return Results([float(value[i]), int(key[i] // count), int(key[i] % count)] for i in order)


def _nearest_pairs(count: int, scores: Callable[[slice, slice], Array], top_k: int) -> Pairs:
    """Return the pairs of which one item is among the `top_k` nearest of the other, in the order of their numbers."""
    k = min(top_k, count - 1)
    keys, values = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
    for rows in _blocks(count if k else 0, count):
        found = _without_nan(scores(rows, slice(0, None)), rows.start, 0)  # [step, n]
        items = np.arange(rows.start, rows.start + len(found))
        found[np.arange(len(found)), items] = -np.inf
        candidates = np.argpartition(-found, k - 1, axis=1)[:, :k]  # [step, k]
        first, second = np.repeat(items, k), candidates.ravel()
        others = first != second  # an item is chosen as its own candidate if the score of another is -inf as well
        first, second = first[others], second[others]
        keys.append(np.minimum(first, second) * count + np.maximum(first, second))
        values.append(np.take_along_axis(found, candidates, axis=1).ravel()[others])
    # A pair may be found from both of its items: keep one.
    key, index = np.unique(np.concatenate(keys), return_index=True)
    return key, np.concatenate(values)[index]


def _pairs_above(count: int, scores: Callable[[slice, slice], Array], least: np.float32, most: int) -> Pairs:
    """Return the pairs with at least a score, the best `most` of them, in the order of their numbers."""
    keys, values, kept = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)], 0
    for rows in _blocks(count, count):
        found = _without_nan(scores(rows, slice(rows.start, None)), rows.start, rows.start)  # [step, n - start]
        near = np.flatnonzero(found >= least)
        first, second = np.divmod(near, found.shape[1])
        near, first, second = (array[second > first] for array in (near, first, second))
        keys.append((first + rows.start) * count + second + rows.start)
        values.append(found.ravel()[near])
        kept += len(near)
        if kept > 2 * most:
            key, value = np.concatenate(keys), np.concatenate(values)
            best = np.sort(np.argsort(-value, kind="stable")[:most])
            keys, values, kept = [key[best]], [value[best]], most
            least = values[0].min()  # what is lower is not among the best
    return np.concatenate(keys), np.concatenate(values)


def _blocks(count: int, columns: int) -> Iterator[slice]:
    """Yield the rows whose scores with so many columns are computed at once."""
    step = max(1, _BLOCK // max(1, columns))
    for start in range(0, count, step):
        yield slice(start, start + step)


def _without_nan(scores: Array, top: int, left: int) -> Array:
    """Return scores, of which the first is for the rows `top` and `left`; an `InputError` if there is NaN."""
    if scores.size and np.isnan(scores.max()):
        row, column = np.argwhere(np.isnan(scores))[0]
        raise InputError(
            f"the score of the vectors {top + row} and {left + column} is NaN: their numbers are too large to compare "
            "in float32"
        )
    return scores


@completed_by(paraphrase_mining_embeddings, ENCODING)
def paraphrase_mining(
    encoder: str | os.PathLike[str] | SentenceEncoder,
    sentences: Iterable[str],
    *,
    batch_size: int = 32,
    top_k: int | None = None,
    max_pairs: int = 500_000,
    threshold: float | None = None,
    show_progress_bar: bool | None = None,
) -> list[list[Any]]:
    """Find the most similar pairs of sentences in a collection, by the cosine of their vectors.

    Parameters
    ----------
    encoder : str, PathLike or SentenceEncoder
        The model that encodes the sentences, or its name or folder.
    sentences : iterable of str
        The collection.

    Returns
    -------
    list of [float, int, int]
        As from `paraphrase_mining_embeddings`.

    Examples
    --------
    >>> from wordpiece_bert.sentence import paraphrase_mining
    >>> sentences = ["to bake bread", "a bicycle wheel", "she baked the bread"]
    >>> [
    ...     (i, j)
    ...     for _, i, j in paraphrase_mining("models/sentences", sentences, max_pairs=1)
    ... ]
    [(0, 2)]
    """
    from wordpiece_bert.sentence.dense.sentence_encoder import sentence_encoder  # a search alone needs no models

    least_score("threshold", 0 if threshold is None else threshold)
    model = sentence_encoder(encoder)
    texts = row_texts("sentences", sentences)
    vectors = model.encode(texts, batch_size=batch_size, show_progress_bar=show_progress_bar)
    return paraphrase_mining_embeddings(vectors, top_k=top_k, max_pairs=max_pairs, threshold=threshold)
