"""Finding vectors that are alike: in a collection for queries, and the most alike pairs of a collection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.checks import whole_number
from wordpiece_bert.bert.functional import Array, normalize
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.metrics import check_metric, similarity

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from wordpiece_bert.sentence.encoder import SentenceEncoder

__all__ = ["paraphrase_mining", "paraphrase_mining_embeddings", "semantic_search"]

#: How many numbers one block of scores may have: 64 MB.
_BLOCK = 1 << 24


def semantic_search(
    query_embeddings: npt.ArrayLike, corpus_embeddings: npt.ArrayLike, top_k: int = 10, metric: str = "cosine"
) -> list[list[dict[str, Any]]]:
    """Find the vectors of a collection that are most like each query's.

    Parameters
    ----------
    query_embeddings
        Vectors [n, d], or one [d].
    corpus_embeddings
        Vectors [m, d].
    top_k
        How many to give for each query; fewer where the collection has fewer.
    metric
        ``"cosine"``, ``"dot"``, ``"euclidean"`` or ``"manhattan"``, as in `similarity`.

    Returns
    -------
    list of list of dict
        For each query dicts with ``corpus_id`` (the row in the collection) and ``score``, the highest first, the lower
        row first where scores are equal. The whole matrix of scores is never held.

    Raises
    ------
    InputError
        The vectors differ in length, or an argument is wrong.
    """
    top_k = whole_number("top_k", top_k, 1)
    check_metric(metric)
    queries, corpus = _rows("query_embeddings", query_embeddings), _rows("corpus_embeddings", corpus_embeddings)
    if metric == "cosine":  # once for the collection, not once for each block of queries
        queries, corpus, metric = normalize(queries), normalize(corpus), "dot"
    found: list[list[dict[str, Any]]] = []
    step = max(1, _BLOCK // max(1, len(corpus)))
    for start in range(0, len(queries), step):
        scores = similarity(queries[start : start + step], corpus, metric)  # [step, m]
        found += [[{"corpus_id": int(i), "score": float(row[i])} for i in _best(row, top_k)] for row in scores]
    return found


def paraphrase_mining(
    encoder: SentenceEncoder,
    sentences: Iterable[str],
    *,
    batch_size: int = 32,
    top_k: int = 100,
    max_pairs: int = 500_000,
    show_progress_bar: bool | None = None,
) -> list[list[Any]]:
    """Find the pairs of sentences in a collection that are most alike, by the cosine of their vectors.

    Parameters
    ----------
    encoder
        What makes vectors of sentences.
    sentences
        The collection.
    batch_size, show_progress_bar
        As for `SentenceEncoder.encode`.
    top_k, max_pairs
        As for `paraphrase_mining_embeddings`.

    Returns
    -------
    list of [float, int, int]
        As for `paraphrase_mining_embeddings`.
    """
    texts = list(sentences)
    vectors = encoder.encode(texts, batch_size=batch_size, show_progress_bar=show_progress_bar)
    return paraphrase_mining_embeddings(vectors, top_k=top_k, max_pairs=max_pairs)


def paraphrase_mining_embeddings(
    embeddings: npt.ArrayLike, *, top_k: int = 100, max_pairs: int = 500_000, metric: str = "cosine"
) -> list[list[Any]]:
    """Find the pairs of vectors that are most alike: each with each, n·(n − 1)/2 comparisons.

    Parameters
    ----------
    embeddings
        Vectors [n, d].
    top_k
        How many partners to look at for each vector: a pair is found if either is among the other's best.
    max_pairs
        How many pairs to give.
    metric
        As in `similarity`.

    Returns
    -------
    list of [float, int, int]
        Score and the two rows, i < j, each pair once; the highest score first, then the lower rows.

    Raises
    ------
    InputError
        An argument is wrong.

    Notes
    -----
    The task with which the Sentence-BERT paper begins (Reimers and Gurevych 2019): the most similar pair of 10,000
    sentences, 65 hours with a cross encoder.
    """
    top_k = whole_number("top_k", top_k, 1)
    max_pairs = whole_number("max_pairs", max_pairs, 1)
    check_metric(metric)
    vectors = _rows("embeddings", embeddings)
    if metric == "cosine":
        vectors, metric = normalize(vectors), "dot"
    count = len(vectors)
    step = max(1, _BLOCK // max(1, count))
    keys, values = [], []
    for start in range(0, count, step):
        scores = similarity(vectors[start : start + step], vectors, metric)  # [step, n]
        rows = np.arange(start, start + len(scores))
        scores[np.arange(len(scores)), rows] = -np.inf  # nobody is its own partner
        wanted = min(top_k, count - 1)
        if wanted == 0:
            break
        partners = np.argpartition(-scores, wanted - 1, axis=1)[:, :wanted]  # [step, wanted]
        chosen = np.take_along_axis(scores, partners, axis=1).ravel()
        one, other = np.repeat(rows, wanted), partners.ravel()
        keys.append(np.minimum(one, other) * count + np.maximum(one, other))
        values.append(chosen)
    if not keys:
        return []
    # A pair may have been found from both sides: keep the first, in the order of pairs.
    key, first = np.unique(np.concatenate(keys), return_index=True)
    value = np.concatenate(values)[first]
    order = np.argsort(-value, kind="stable")[:max_pairs]
    return [[float(value[i]), int(key[i] // count), int(key[i] % count)] for i in order]


def _best(row: Array, count: int) -> npt.NDArray[np.intp]:
    """Return the places of the highest numbers, the highest first, the lower place first among equals."""
    if count < len(row):
        threshold = np.partition(row, len(row) - count)[len(row) - count]
        places = np.flatnonzero(row >= threshold)
    else:
        places = np.arange(len(row))
    return places[np.argsort(-row[places], kind="stable")[:count]]


def _rows(name: str, value: npt.ArrayLike) -> Array:
    vectors = np.atleast_2d(np.asarray(value, dtype=np.float32))
    if vectors.ndim != 2:
        message = f"{name} must be vectors [n, d], not of shape {list(vectors.shape)}"
        raise InputError(message)
    return vectors
