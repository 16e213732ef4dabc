"""Retrieve and rerank: candidates by the vectors of a fast model, their order by the scores of an accurate one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.answers import Answer, SearchResults
from wordpiece_bert._internal.arrays import as_vectors
from wordpiece_bert._internal.checks import check_instance, checked_flag, whole_number
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.texts import check_texts
from wordpiece_bert.errors import InputError
from wordpiece_bert.search.keywords import BM25Index, fused_rows
from wordpiece_bert.search.pair_scores import check_reranker, scores_of_pairs
from wordpiece_bert.search.prepared_vectors import PreparedVectors, nearest_prepared
from wordpiece_bert.sentence.cross_encoder import CrossEncoder
from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
from wordpiece_bert.sentence.encoder_loading import load_encoder
from wordpiece_bert.sentence.multi_vector.multi_vector_encoder import MultiVectorEncoder
from wordpiece_bert.sentence.multi_vector.multi_vectors import as_multi_vectors
from wordpiece_bert.sentence.nearest_rows import best_of_scores, nearest
from wordpiece_bert.sentence.parameters import ENCODING
from wordpiece_bert.sentence.parts import threads_of
from wordpiece_bert.sentence.sparse.sparse_encoder import SparseEncoder
from wordpiece_bert.sentence.sparse.sparse_vectors import as_sparse

if TYPE_CHECKING:
    from wordpiece_bert.sentence.arguments import Texts
    from wordpiece_bert.sentence.nearest_rows import Found

#: The most scores of sparse or many vectors that are in memory at once (for one query at least all its scores).
_SCORES = 1 << 22


@completed_by(ENCODING)
def retrieve_and_rerank(
    queries: str | Texts,
    documents: Texts,
    retriever: str | os.PathLike[str] | SentenceEncoder | SparseEncoder | MultiVectorEncoder | BM25Index,
    reranker: str | os.PathLike[str] | CrossEncoder | None = None,
    *,
    document_embeddings: Any = None,
    keywords: BM25Index | None = None,
    retrieve_top_k: int = 100,
    top_k: int = 10,
    prompt_name: str | None = None,
    prompt: str | None = None,
    return_documents: bool = True,
    batch_size: int = 32,
    show_progress_bar: bool | None = None,
) -> SearchResults[Any]:
    """Find the documents most relevant to each query: candidates by their vectors, ranked by a cross encoder.

    The vectors of documents are computed once and can be kept. A cross encoder has to run each query with each
    document, so it runs with the candidates only.

    Parameters
    ----------
    queries : str, iterable of str or Arrow column
        A query, or an iterable of queries.
    documents : iterable of str or Arrow column
        The texts to search.
    retriever : str, PathLike, SentenceEncoder, SparseEncoder, MultiVectorEncoder or BM25Index
        The model of the first stage, with dense, sparse or many vectors for a text: its ``encode_query`` and
        ``encode_document`` make them, and its ``similarity_fn_name`` compares them. A name or a folder is loaded for
        this call. Or an index of the tokens of the documents.
    reranker : str, PathLike or CrossEncoder, optional
        The model of the second stage, with one label, or its name or folder; None to keep the order of the first.
    document_embeddings : object, optional
        The vectors of the documents, [m, d], if they have been computed; they may be memory-mapped. `SparseVectors`
        and `MultiVectors` for the other encoders.
    keywords : BM25Index, optional
        An index of the tokens of the documents, besides a model as `retriever`: the `retrieve_top_k` candidates of each
        are joined by `reciprocal_rank_fusion`, whose score is then the first stage's.
    retrieve_top_k : int, default 100
        How many candidates the first stage finds for each query, at least `top_k`.
    top_k : int, default 10
        How many documents to return for each query.
    prompt_name, prompt : str, optional
        What is put before each query, as for `SentenceEncoder.encode_query`.
    return_documents : bool, default True
        Whether to return their texts, too.

    Returns
    -------
    SearchResults
        For each query a list of dicts, the highest score first: ``corpus_id`` (the index in `documents`), ``score``
        (the cross encoder's), ``retrieval_score`` (the similarity of the vectors) and, with `return_documents`,
        ``text``; without a `reranker` ``score`` is the similarity, and there is no other. For a single query its list.
        The attribute ``truncated`` of a dict is whether the pair was truncated.

    Raises
    ------
    InputError
        There are not as many vectors as documents, or an index is of another number, the cross encoder has several
        labels, or an argument is wrong.

    Warns
    -----
    TruncationWarning
        Queries or documents were truncated when they were encoded.

    Examples
    --------
    >>> from wordpiece_bert.sentence import retrieve_and_rerank
    >>> documents = ["to repair a bicycle", "bread dough in the oven", "a city in Poland"]
    >>> found = retrieve_and_rerank(
    ...     "bake bread", documents, "models/static", "models/ranker", retrieve_top_k=2
    ... )
    >>> [hit["corpus_id"] for hit in found]
    [1, 0, 2]
    """
    if isinstance(retriever, str | os.PathLike):
        retriever = load_encoder(retriever)
    if isinstance(reranker, str | os.PathLike):
        reranker = CrossEncoder(reranker)
    if not isinstance(retriever, SentenceEncoder | SparseEncoder | MultiVectorEncoder | BM25Index):
        kinds = "SentenceEncoder, SparseEncoder, MultiVectorEncoder or BM25Index, or the name of a model"
        raise InputError(f"retriever must be a {kinds}, not {type(retriever).__name__}: {retriever!r:.80}")
    top_k = whole_number("top_k", top_k, 1)
    candidates = whole_number("retrieve_top_k", retrieve_top_k, 1)
    checked_flag("return_documents", return_documents)
    if reranker is not None:
        check_reranker(reranker)
    single, asked = check_texts(queries)
    texts = check_texts(documents)[1]
    _check_indexes(retriever, keywords, len(texts), embedded=document_embeddings is not None)
    most = max(candidates, top_k)
    count = most if reranker is not None else top_k
    if isinstance(retriever, BM25Index):
        found = retriever.ranked(asked, count)
    else:
        found = _retrieved(
            asked,
            texts,
            retriever,
            document_embeddings,
            count if keywords is None else most,
            prompt_name=prompt_name,
            prompt=prompt,
            batch_size=batch_size,
            show=show_progress_bar,
        )
        if keywords is not None:
            found = [one[:count] for one in fused_rows(found, keywords.ranked(asked, most))]
    if reranker is None:
        results = [[_answer(row, score, {}) for row, score in one] for one in found]
    else:
        results = _reranked(asked, texts, found, reranker, batch_size=batch_size, show=show_progress_bar)
    shown: SearchResults[Any] = SearchResults()
    for answers in results:
        best: SearchResults[Answer] = SearchResults(answers[:top_k])
        if return_documents:
            for answer in best:
                answer["text"] = texts[answer["corpus_id"]]
        shown.append(best)
    return shown[0] if single else shown


def _check_indexes(retriever: object, keywords: BM25Index | None, documents: int, *, embedded: bool) -> None:
    """Refuse indexes that do not fit together or are not of the documents."""
    indexes = [index for index in (retriever, keywords) if isinstance(index, BM25Index)]
    if keywords is not None:
        check_instance("keywords", keywords, BM25Index)
    if len(indexes) == 2 or (indexes and embedded and keywords is None):
        raise InputError("a BM25Index as retriever is used alone: pass no keywords and no document_embeddings")
    for index in indexes:
        if len(index) != documents:
            raise InputError(f"the BM25Index has {len(index)} documents, but there are {documents}")


def _retrieved(
    queries: list[str],
    documents: list[str],
    retriever: SentenceEncoder | SparseEncoder | MultiVectorEncoder,
    embeddings: Any,
    count: int,
    *,
    prompt_name: str | None,
    prompt: str | None,
    batch_size: int,
    show: bool | None,
) -> list[list[tuple[int, float]]]:
    """Return the rows and similarities of the candidates of each query."""
    if embeddings is None:
        embeddings = retriever.encode_document(documents, batch_size=batch_size, show_progress_bar=show)
    vectors = _vectors_of(retriever, embeddings)
    if len(vectors) != len(documents):
        raise InputError(f"document_embeddings has {len(vectors)} vectors, but there are {len(documents)} documents")
    if not queries or not documents:
        return [[] for _ in queries]
    asked = retriever.encode_query(queries, prompt_name, prompt, batch_size)
    found: Found
    if isinstance(retriever, SentenceEncoder) and isinstance(vectors, PreparedVectors):
        found = nearest_prepared(asked, vectors, retriever.similarity_fn_name, count, threads_of(retriever))
    elif isinstance(retriever, SentenceEncoder):
        found = nearest(asked, vectors, retriever.similarity_fn_name, count, threads_of(retriever))
    else:
        step = max(1, _SCORES // len(documents))
        parts = [
            best_of_scores(retriever.similarity(asked[start : start + step], vectors), count)
            for start in range(0, len(queries), step)
        ]
        found = np.concatenate([rows for rows, _ in parts]), np.concatenate([scores for _, scores in parts])
    return [list(zip(*one, strict=True)) for one in zip(found[0].tolist(), found[1].tolist(), strict=True)]


def _vectors_of(retriever: SentenceEncoder | SparseEncoder | MultiVectorEncoder, embeddings: Any) -> Any:
    """Check the vectors of documents for a retriever, and return them as it compares them."""
    name = "document_embeddings"
    if (isinstance(embeddings, np.ndarray) and embeddings.shape[:1] == (0,)) or (
        isinstance(embeddings, list | tuple) and not embeddings
    ):
        return []
    if isinstance(retriever, SentenceEncoder):
        return embeddings if isinstance(embeddings, PreparedVectors) else as_vectors(name, embeddings)
    return as_sparse(name, embeddings) if isinstance(retriever, SparseEncoder) else as_multi_vectors(name, embeddings)


def _reranked(
    queries: list[str],
    documents: list[str],
    found: list[list[tuple[int, float]]],
    reranker: CrossEncoder,
    *,
    batch_size: int,
    show: bool | None,
) -> list[list[Answer]]:
    """Score the candidates of each query with the cross encoder, and sort them by it."""
    pairs = [(number, row, score) for number, one in enumerate(found) for row, score in one]
    texts = [(queries[number], documents[row]) for number, row, _ in pairs]
    scores, truncated = scores_of_pairs(reranker, texts, batch_size=batch_size, show=show)
    results: list[list[Answer]] = [[] for _ in queries]
    # Of equal scores the candidate that the first stage prefers comes first: the sort is stable.
    for index in np.argsort(-scores, kind="stable").tolist():
        number, row, similarity = pairs[index]
        more = {"retrieval_score": similarity}
        results[number].append(_answer(row, float(scores[index]), more, truncated=bool(truncated[index])))
    return results


def _answer(row: int, score: float, more: dict[str, float], *, truncated: bool = False) -> Answer:
    return Answer({"corpus_id": row, "score": score, **more}, truncated=truncated)
