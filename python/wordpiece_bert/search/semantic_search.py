"""Exact search for the vectors of a collection that are most similar to queries."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from wordpiece_bert._internal.answers import Results
from wordpiece_bert._internal.arrays import as_float32, as_numbers, as_vectors
from wordpiece_bert._internal.checks import checked_flag, whole_number
from wordpiece_bert._internal.texts import check_texts
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import InputError, VectorsWarning
from wordpiece_bert.search.prepared_vectors import PreparedVectors, nearest_prepared
from wordpiece_bert.search.quantized_search import quantized_search
from wordpiece_bert.sentence.dense.encoder_fingerprint import check_fingerprint, document_prompt, fingerprint_of
from wordpiece_bert.sentence.metrics import check_metric
from wordpiece_bert.sentence.nearest_rows import best_of_scores, nearest
from wordpiece_bert.sentence.quantization import check_precision
from wordpiece_bert.sentence.sparse.sparse_vectors import SparseVectors, as_sparse, is_sparse, sparse_similarity
from wordpiece_bert.tokenizer.corpus.vector_files import read_stored
from wordpiece_bert.tokenizer.corpus.vector_fingerprint import TextsDigest

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
    from wordpiece_bert.sentence.nearest_rows import Found


class SearchHit(TypedDict):
    """A vector that `semantic_search` found."""

    #: The row in the collection.
    corpus_id: int
    #: The similarity to the query.
    score: float


#: The most scores of sparse vectors that are in memory at once (for one query all its scores): 8 MB.
_BLOCK = 1 << 21


def semantic_search(
    query_embeddings: npt.ArrayLike | SparseVectors,
    corpus_embeddings: npt.ArrayLike | SparseVectors | PreparedVectors | os.PathLike[str],
    top_k: int = 10,
    metric: str = "cosine",
    *,
    corpus_precision: str | None = None,
    rescore: bool = True,
    rescore_multiplier: int = 2,
    ranges: npt.ArrayLike | None = None,
    threads: int | None = None,
    encoder: SentenceEncoder | None = None,
    texts: Iterable[str] | None = None,
    allow_stale: bool = False,
) -> list[list[SearchHit]]:
    """Find the vectors of a collection that are most similar to each query, by comparing with all of them.

    The collection is read once for all queries, in place if it is float32 in C order; it may be memory-mapped. Few
    queries take as long as reading it from memory, and less than half of that with `PreparedVectors`.

    Parameters
    ----------
    query_embeddings : array_like or SparseVectors
        Vectors [n, d], or one [d].
    corpus_embeddings : array_like, PreparedVectors, SparseVectors or PathLike
        Vectors [m, d]; or `PreparedVectors`, in which the same hits are found faster; or the path of a file that
        ``wordpiece-bert embed`` wrote, whose fingerprint is then compared with `encoder` and `texts`. An array has no
        fingerprint. Of `SparseVectors` or sparse matrices of scipy, here or as queries, the numbers other than 0 are
        compared.
    top_k : int, default 10
        How many to return for each query; all of them if the collection has fewer.
    metric : str, default "cosine"
        ``"cosine"``, ``"dot"``, ``"euclidean"`` or ``"manhattan"``, as in `similarity`; it is not used with
        `corpus_precision`.
    corpus_precision : str, optional
        The precision of `corpus_embeddings`, which `sentence.quantize_embeddings` made: ``"ubinary"``, ``"binary"``,
        ``"uint8"`` or ``"int8"``; ``"float32"`` for inner products. Queries are float32. 8-bit numbers are compared
        by what they stand for, so ``"int8"`` and ``"uint8"`` find the same.
    rescore : bool, default True
        Whether the candidates, found by Hamming distance or by the inner product with a query of 8-bit numbers, are
        compared with the float32 query and sorted again. Without it the scores of binary precisions are Hamming
        distances, the lowest first, and other scores are those of the rounded query.
    rescore_multiplier : int, default 2
        How many candidates are rescored, as a multiple of `top_k`.
    ranges : array_like, optional
        The ranges [2, d] that 8-bit vectors were quantized with; only for these.
    threads : int, optional
        How many threads to use; by default as many as this process may use. The result does not depend on it.
    encoder : SentenceEncoder, optional
        With a path: the encoder of the queries, which must be the one of the file, in contents and settings, with its
        prompt for documents.
    texts : iterable of str, optional
        With a path: the texts of the collection, if they are to be compared as well.
    allow_stale : bool, default False
        With a path: whether a file that is of something else is searched all the same, with a warning.

    Returns
    -------
    list of list of SearchHit
        For each query, dicts with ``corpus_id`` (the row in the collection) and ``score``, the highest score first; of
        equal scores the lower row first. A score does not depend on the other queries and vectors. A vector of the
        collection with NaN comes after all others, with the score NaN. The lists show themselves as tables in a
        notebook.

    Raises
    ------
    InputError
        The vectors differ in length, a query is not finite, an argument is wrong, or a file has no vectors or, by its
        fingerprint, vectors of something else; the message says what differs.
    OSError
        The file cannot be read.

    Warns
    -----
    VectorsWarning
        A file has no fingerprint, or, with `allow_stale`, the fingerprint of something else.

    Examples
    --------
    >>> from wordpiece_bert import SentenceEncoder
    >>> from wordpiece_bert.sentence import semantic_search
    >>> encoder = SentenceEncoder("models/sentences")
    >>> corpus = encoder.encode(["to bake bread", "a bicycle wheel"])
    >>> semantic_search(encoder.encode(["a wheel"]), corpus, top_k=1)[0][0]["corpus_id"]
    1
    """
    top_k = whole_number("top_k", top_k, 1)
    check_metric(metric)
    if corpus_precision is None and (ranges is not None or not rescore or rescore_multiplier != 2):
        raise InputError("ranges, rescore and rescore_multiplier are for quantized vectors: pass corpus_precision too")
    if isinstance(corpus_embeddings, str | os.PathLike):
        scale_counts = metric != "cosine" or corpus_precision is not None
        corpus_embeddings = _read(corpus_embeddings, encoder, texts, scale_counts=scale_counts, allow_stale=allow_stale)
    elif encoder is not None or texts is not None or allow_stale:
        raise InputError(
            "encoder, texts and allow_stale are for the fingerprint of a file; corpus_embeddings is an array"
        )
    if corpus_precision is None and (is_sparse(query_embeddings) or is_sparse(corpus_embeddings)):
        return _hits(_sparse_search(query_embeddings, corpus_embeddings, metric, top_k))
    queries = as_float32("query_embeddings", as_vectors("query_embeddings", query_embeddings))
    if isinstance(corpus_embeddings, PreparedVectors):
        if corpus_precision is not None:
            raise InputError("corpus_precision is for vectors that are stored in it; PreparedVectors are float32")
        return _hits(nearest_prepared(queries, corpus_embeddings, metric, top_k, threads))
    if corpus_precision is not None:
        check_precision(corpus_precision)
        multiplier = whole_number("rescore_multiplier", rescore_multiplier, 1)
        checked_flag("rescore", rescore)
        metric = "dot"
    if corpus_precision in (None, "float32"):
        corpus = as_vectors("corpus_embeddings", corpus_embeddings)
        return _hits(nearest(queries, corpus, metric, top_k, threads))
    return _hits(
        quantized_search(
            queries,
            as_numbers("corpus_embeddings", corpus_embeddings),
            top_k,
            corpus_precision,
            rescore=rescore,
            multiplier=multiplier,
            ranges=ranges,
            threads=threads,
        )
    )


def _hits(found: Found) -> list[list[SearchHit]]:
    rows, scores = found
    return Results(
        Results(SearchHit(corpus_id=i, score=score) for i, score in zip(*one, strict=True))
        for one in zip(rows.tolist(), scores.tolist(), strict=True)
    )


def _read(
    file: str | os.PathLike[str],
    encoder: SentenceEncoder | None,
    texts: Iterable[str] | None,
    *,
    scale_counts: bool,
    allow_stale: bool,
) -> npt.NDArray[Any]:
    """Read a file of vectors that must come from an encoder, and from texts unless these are None."""
    if encoder is None:
        raise InputError(f"{file}: pass encoder, the model of the queries, which is compared with that of the file")
    checked_flag("allow_stale", allow_stale)
    path, digest = Path(file), None
    stored = read_stored(path)
    if texts is not None:
        digest = TextsDigest()
        digest.add(check_texts(texts)[1])
        if digest.count != len(stored.vectors):
            raise InputError(f"{path} has {len(stored.vectors)} vectors, but there are {digest.count} texts")
    expected = fingerprint_of(
        encoder, digest, prompt=document_prompt(encoder), normalize=False if scale_counts else None
    )
    check_fingerprint(
        path,
        stored,
        expected,
        allow_stale=allow_stale,
        option="allow_stale=True",
        warn=lambda message: warn(message, VectorsWarning),
    )
    return stored.vectors


def _sparse_search(queries: object, corpus: object, metric: str, top_k: int) -> Found:
    """Return the rows and similarities of the sparse vectors nearest to each query, in bounded memory."""
    x, y = as_sparse("query_embeddings", queries), as_sparse("corpus_embeddings", corpus)
    bad = np.flatnonzero(~np.isfinite(x.values))
    if len(bad):
        row = int(np.searchsorted(x.indptr, bad[0], side="right")) - 1
        raise InputError(
            f"query {row} has {x.values[bad[0]]} at index {x.indices[bad[0]]}: a query must be finite numbers"
        )
    step = max(1, _BLOCK // max(1, len(y)))
    scores = (sparse_similarity(x[start : start + step], y, metric) for start in range(0, max(1, len(x)), step))
    parts = [best_of_scores(some, top_k) for some in scores]
    return np.concatenate([rows for rows, _ in parts]), np.concatenate([best for _, best in parts])
