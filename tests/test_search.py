"""Exact search over float vectors, and retrieval with re-ranking, against their definitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_files import MODELS
from tiny_models import make_ranker, make_sentences
from wordpiece_bert import _core
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence import (
    CrossEncoder,
    MultiVectorEncoder,
    SentenceEncoder,
    SparseEncoder,
    retrieve_and_rerank,
    semantic_search,
    similarity,
)

METRICS = ["cosine", "dot", "euclidean", "manhattan"]


def definition(queries: Any, corpus: Any, metric: str) -> Any:
    """All scores, in float64."""
    q, x = np.asarray(queries, np.float64), np.asarray(corpus, np.float64)
    if metric in ("euclidean", "manhattan"):
        order = 2 if metric == "euclidean" else 1
        return -np.linalg.norm(q[:, None] - x[None], ord=order, axis=2)
    if metric == "cosine":
        q = q / np.maximum(np.linalg.norm(q, axis=1, keepdims=True), 1e-300)
        x = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-300)
    return q @ x.T


def hits_of(found: Any) -> list[list[tuple[int, float]]]:
    return [[(hit["corpus_id"], hit["score"]) for hit in hits] for hits in found]


@given(
    scales=st.lists(st.floats(-42, 37), min_size=1, max_size=9),
    width=st.integers(1, 70),
    queries=st.integers(1, 40),
    metric=st.sampled_from(METRICS),
)
def test_scores_of_huge_and_tiny_vectors_are_those_of_the_definition(
    scales: list[float], width: int, queries: int, metric: str
) -> None:
    """Their squares are beyond the range of float32, or 0."""
    rng = np.random.default_rng(width)
    corpus = (rng.normal(size=(len(scales), width)) * 10.0 ** np.array(scales)[:, None]).astype(np.float32)
    asked = rng.normal(size=(queries, width)).astype(np.float32)
    expected = definition(asked, corpus, metric)
    sizes = np.abs(asked).astype(np.float64) @ np.abs(corpus.astype(np.float64)).T if metric == "dot" else expected
    tolerance = 1e-5 * np.maximum(np.abs(sizes), 1.0 if metric == "cosine" else 1e-37)
    for hits, scores, within in zip(semantic_search(asked, corpus, 9, metric), expected, tolerance, strict=True):
        assert len(hits) == len(scores)
        assert all(abs(hit["score"] - scores[i := hit["corpus_id"]]) <= within[i] for hit in hits)
    found = similarity(asked, corpus, metric)
    if metric != "dot":
        assert np.all((np.abs(found - expected) <= tolerance) | (np.abs(expected) > 3e38))


@given(
    seed=st.integers(0, 999),
    width=st.integers(1, 100),
    count=st.integers(0, 70),
    queries=st.integers(0, 9),
    top_k=st.integers(1, 80),
    metric=st.sampled_from(METRICS),
)
def test_hits_are_the_best_of_the_definition(
    seed: int, width: int, count: int, queries: int, top_k: int, metric: str
) -> None:
    rng = np.random.default_rng(seed)
    corpus = rng.normal(size=(count, width)).astype(np.float32)
    asked = rng.normal(size=(queries, width)).astype(np.float32)
    found = hits_of(semantic_search(asked, corpus, top_k, metric))
    assert len(found) == queries
    for scores, hits in zip(definition(asked, corpus, metric), found, strict=True):
        assert len(hits) == min(top_k, count)
        rows = [row for row, _ in hits]
        assert len(set(rows)) == len(rows)
        np.testing.assert_allclose([score for _, score in hits], scores[rows], atol=2e-5, rtol=1e-5)
        np.testing.assert_allclose(scores[rows], np.sort(scores)[::-1][: len(rows)], atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("metric", METRICS)
def test_of_equal_scores_the_lower_row_is_first_on_any_number_of_threads(metric: str) -> None:
    rng = np.random.default_rng(5)
    corpus = rng.integers(-1, 2, size=(60_000, 7)).astype(np.float32)  # 2,187 different rows
    queries = rng.integers(-1, 2, size=(5, 7)).astype(np.float32)
    found = [hits_of(semantic_search(queries, corpus, 100, metric, threads=threads)) for threads in (1, 2, 5)]
    assert found[0] == found[1] == found[2]
    for hits in found[0]:
        assert hits == sorted(hits, key=lambda hit: (-hit[1], hit[0]))
    alone = [hits_of(semantic_search(query, corpus, 100, metric))[0] for query in queries]
    assert alone == found[0]
    if metric != "cosine":  # the scores are exact
        best = np.argsort(-definition(queries, corpus, metric), axis=1, kind="stable")[:, :100]
        assert [[row for row, _ in hits] for hits in found[0]] == best.tolist()


@pytest.mark.parametrize("metric", METRICS)
def test_every_instruction_set_finds_the_same(metric: str) -> None:
    rng = np.random.default_rng(6)
    corpus, queries = rng.normal(size=(500, 45)).astype(np.float32), rng.normal(size=(7, 45)).astype(np.float32)
    expected = np.argsort(-definition(queries, corpus, "dot" if metric == "cosine" else metric), axis=1)[:, :5]
    for asked in (queries, queries[:1]):
        found = []
        for name in _core.kernel_instruction_sets():
            if metric == "cosine":  # its queries come normalized
                unit = asked / np.linalg.norm(asked, axis=1, keepdims=True)
                rows, scores = _core.search_floats(unit, corpus, metric, 5, 1, name)
                assert np.array_equal(rows, np.argsort(-definition(asked, corpus, metric), axis=1)[:, :5])
            else:
                rows, scores = _core.search_floats(asked, corpus, metric, 5, 1, name)
                assert np.array_equal(rows, expected[: len(asked)])
            found.append(scores.tobytes())
        assert len(set(found)) == 1


@pytest.mark.parametrize(
    "stored",
    [
        lambda x: x.astype(np.float16),
        lambda x: x.astype(np.float64),
        lambda x: x.astype(">f4"),
        lambda x: np.asfortranarray(x),
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: x.tolist(),
    ],
)
def test_collections_of_other_kinds_are_converted_in_blocks(stored: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wordpiece_bert.sentence.nearest_rows._BLOCK_BYTES", 7 * 4 * 10)
    rng = np.random.default_rng(7)
    corpus = rng.integers(-3, 4, size=(95, 7)).astype(np.float32)  # exact in every dtype, with ties
    queries = rng.integers(-3, 4, size=(4, 7)).astype(np.float32)
    expected = hits_of(semantic_search(queries, corpus, 20, "dot"))
    assert hits_of(semantic_search(queries, stored(corpus), 20, "dot")) == expected


def test_a_memory_mapped_file_is_searched_in_place(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    corpus, queries = rng.normal(size=(3000, 64)).astype(np.float32), rng.normal(size=(3, 64)).astype(np.float32)
    np.save(tmp_path / "corpus.npy", corpus)
    mapped = np.load(tmp_path / "corpus.npy", mmap_mode="r")
    assert hits_of(semantic_search(queries, mapped)) == hits_of(semantic_search(queries, corpus))


def test_groups_of_queries_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(9)
    corpus, queries = rng.normal(size=(80, 12)).astype(np.float32), rng.normal(size=(11, 12)).astype(np.float32)
    expected = hits_of(semantic_search(queries, corpus))
    monkeypatch.setattr("wordpiece_bert.sentence.nearest_rows._HITS_KEPT", 84 * 3)
    assert hits_of(semantic_search(queries, corpus)) == expected


@pytest.mark.parametrize("metric", ["dot", "cosine", "euclidean", "manhattan"])
def test_a_score_does_not_depend_on_the_other_queries(metric: Any) -> None:
    """The second query is a row, whose distance float32 has not, and the third has sums beyond float32."""
    corpus = np.random.default_rng(5).normal(size=(50, 384)).astype(np.float32)
    corpus[9] = 1e-30  # its length has no float32 either
    query = corpus[3] + np.float32(0.1)
    queries = [query, corpus[7], np.full(384, 3e38, np.float32)]
    alone = hits_of(semantic_search(query, corpus, 50, metric=metric))[0]
    assert hits_of(semantic_search(np.array(queries), corpus, 50, metric=metric))[0] == alone


def test_not_a_number_comes_last_and_a_vector_of_zeros_is_similar_to_nothing() -> None:
    corpus = [[np.nan, 0], [1, 0], [0, 0], [-1, 0]]
    hits = hits_of(semantic_search([1, 0], corpus, 4))[0]
    assert hits[:3] == [(1, 1.0), (2, 0.0), (3, -1.0)]
    assert hits[3][0] == 0
    assert np.isnan(hits[3][1])
    assert [row for row, _ in hits_of(semantic_search([1, 0], corpus, 2))[0]] == [1, 2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda v: semantic_search(v, [["a", "b"]]), "corpus_embeddings must be vectors"),
        (lambda v: semantic_search(v, np.ones((2, 2, 2))), "corpus_embeddings must be vectors"),
        (lambda v: semantic_search(v[:, :0], v[:, :0]), "there is nothing to compare"),
        (lambda v: semantic_search(v, v, threads=0), "threads must be"),
    ],
)
def test_wrong_arguments_are_refused(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(np.ones((3, 4), np.float32))


# --- retrieve_and_rerank

DOCUMENTS = [
    "to repair a bicycle",
    "bread dough in the oven",
    "a cat sat on the mat",
    "flour, water and salt",
    "the capital of Poland",
    "the bread is baked",
]
QUERIES = ["how to bake bread", "a city in Poland", "the cat"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[SentenceEncoder, CrossEncoder]:
    folder = tmp_path_factory.mktemp("models")
    make_sentences(folder / "sentences")
    make_ranker(folder / "ranker")
    return SentenceEncoder(folder / "sentences"), CrossEncoder(folder / "ranker")


def test_candidates_are_those_of_the_vectors_and_their_order_that_of_the_ranker(
    models: tuple[SentenceEncoder, CrossEncoder],
) -> None:
    encoder, ranker = models
    found = retrieve_and_rerank(QUERIES, DOCUMENTS, encoder, ranker, retrieve_top_k=4, top_k=3)
    corpus = encoder.encode_document(DOCUMENTS)
    for query, answers in zip(QUERIES, found, strict=True):
        candidates = semantic_search(encoder.encode_query(query), corpus, 4, encoder.similarity_fn_name)[0]
        similarity = {hit["corpus_id"]: hit["score"] for hit in candidates}
        rows = list(similarity)
        ranked = ranker.rank(query, [DOCUMENTS[row] for row in rows])[:3]
        assert [answer["corpus_id"] for answer in answers] == [rows[hit["corpus_id"]] for hit in ranked]
        np.testing.assert_allclose([a["score"] for a in answers], [hit["score"] for hit in ranked], atol=1e-6)
        for answer in answers:
            assert answer["text"] == DOCUMENTS[answer["corpus_id"]]
            np.testing.assert_allclose(answer["retrieval_score"], similarity[answer["corpus_id"]], atol=1e-6)


def test_a_single_query_gives_its_list_and_parts_may_be_left_out(
    models: tuple[SentenceEncoder, CrossEncoder],
) -> None:
    encoder, ranker = models
    both = retrieve_and_rerank(QUERIES[:1], DOCUMENTS, encoder, ranker)
    assert retrieve_and_rerank(QUERIES[0], DOCUMENTS, encoder, ranker) == both[0]
    vectors = encoder.encode_document(DOCUMENTS)
    given = retrieve_and_rerank(
        QUERIES[0], DOCUMENTS, encoder, ranker, document_embeddings=vectors, return_documents=False
    )
    assert [set(answer) for answer in given] == [{"corpus_id", "score", "retrieval_score"}] * len(DOCUMENTS)
    assert [answer["corpus_id"] for answer in given] == [answer["corpus_id"] for answer in both[0]]
    first_stage = retrieve_and_rerank(QUERIES[0], DOCUMENTS, encoder, top_k=2)
    hits = semantic_search(encoder.encode_query(QUERIES[0]), vectors, 2, encoder.similarity_fn_name)[0]
    assert [(a["corpus_id"], a["score"], a["text"]) for a in first_stage] == [
        (hit["corpus_id"], hit["score"], DOCUMENTS[hit["corpus_id"]]) for hit in hits
    ]
    assert retrieve_and_rerank([], DOCUMENTS, encoder, ranker) == []
    assert retrieve_and_rerank(QUERIES[:2], [], encoder, ranker) == [[], []]


@pytest.mark.filterwarnings("ignore::wordpiece_bert.errors.TruncationWarning")  # documents of 20 tokens
@pytest.mark.parametrize(
    ("kind", "name"),
    [(SparseEncoder, "splade_max"), (SparseEncoder, "splade_log1p"), (MultiVectorEncoder, "colbert_st")],
)
def test_the_first_stage_may_have_sparse_or_many_vectors(
    models: tuple[SentenceEncoder, CrossEncoder], kind: type[Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, ranker = kind(MODELS / name), models[1]
    vectors = encoder.encode_document(DOCUMENTS)
    scores = encoder.similarity(encoder.encode_query(QUERIES), vectors)
    monkeypatch.setattr("wordpiece_bert.search.retrieve_and_rerank._SCORES", 7)  # one query at a time
    for computed in (None, vectors, *([vectors.to_scipy()] if kind is SparseEncoder else [])):
        found = retrieve_and_rerank(QUERIES, DOCUMENTS, encoder, top_k=4, document_embeddings=computed)
        for row, answers in zip(scores, found, strict=True):
            assert [answer["corpus_id"] for answer in answers] == np.argsort(-row, kind="stable")[:4].tolist()
            np.testing.assert_allclose([a["score"] for a in answers], np.sort(row)[::-1][:4], rtol=1e-5)
    ranked = retrieve_and_rerank(QUERIES[0], DOCUMENTS, encoder, ranker, retrieve_top_k=3, top_k=2)
    assert len(ranked) == 2
    assert {a["corpus_id"] for a in ranked} <= set(np.argsort(-scores[0], kind="stable")[:3].tolist())
    with pytest.raises(InputError, match="has 2 vectors, but there are 6 documents"):
        retrieve_and_rerank(QUERIES, DOCUMENTS, encoder, document_embeddings=vectors[:2])


def test_pairs_are_scored_in_groups(
    models: tuple[SentenceEncoder, CrossEncoder], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = retrieve_and_rerank(QUERIES, DOCUMENTS, *models)
    monkeypatch.setattr("wordpiece_bert.search.pair_scores._PAIRS", 4)
    for one, other in zip(retrieve_and_rerank(QUERIES, DOCUMENTS, *models), expected, strict=True):
        assert [answer["corpus_id"] for answer in one] == [answer["corpus_id"] for answer in other]


def test_results_show_themselves_briefly(models: tuple[SentenceEncoder, CrossEncoder]) -> None:
    long = [f"{document} {'and so on ' * 50}{i}" for i, document in enumerate(DOCUMENTS * 3)]
    with pytest.warns(match="truncated"):
        found = retrieve_and_rerank(QUERIES, long, *models)
    assert len(repr(found)) < 4000
    assert "… 5 more" in repr(found[0])
    assert "and so on" in found._repr_html_()
    assert any(answer.truncated for answer in found[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top_k": 0}, "top_k must be"),
        ({"retrieve_top_k": 0}, "retrieve_top_k must be"),
        ({"return_documents": 1}, "return_documents must be"),
        ({"document_embeddings": np.ones((2, 64))}, "has 2 vectors, but there are 6 documents"),
        ({"retriever": 3}, "retriever must be a SentenceEncoder"),
        ({"reranker": 3}, "reranker must be a CrossEncoder"),
    ],
)
def test_wrong_parts_are_refused(
    models: tuple[SentenceEncoder, CrossEncoder], options: dict[str, Any], message: str
) -> None:
    parts: dict[str, Any] = {"retriever": models[0], "reranker": models[1]} | options
    with pytest.raises(InputError, match=message):
        retrieve_and_rerank(QUERIES, DOCUMENTS, **parts)
