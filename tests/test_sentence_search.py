"""Similarity, quantization and search of sentence vectors, and vectors of tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_files import MODELS
from sentence_fixtures import LONG, encoder, folders
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence import (
    SentenceEncoder,
    TruncationWarning,
    pairwise_similarity,
    paraphrase_mining,
    paraphrase_mining_embeddings,
    quantize_embeddings,
    semantic_search,
    similarity,
)

# The folders hold one text that is longer than their 12 tokens; only the tests that are about it look at the warning.
pytestmark = pytest.mark.filterwarnings("ignore::wordpiece_bert.errors.TruncationWarning")


# --- similarity and quantization

A = np.array([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]], np.float32)
B = np.array([[3.0, 0.0, 4.0], [1.0, 2.0, 2.0], [-1.0, -2.0, -2.0]], np.float32)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("cosine", [[11 / 15, 1, -1], [0, 0, 0]]),
        ("dot", [[11, 9, -9], [0, 0, 0]]),
        ("euclidean", [[-np.sqrt(12), 0, -6], [-5, -3, -3]]),
        ("manhattan", [[-6, 0, -10], [-7, -5, -5]]),
    ],
)
def test_similarity_by_hand(metric: str, expected: Any) -> None:
    np.testing.assert_allclose(similarity(A, B, metric), expected, atol=1e-6)
    np.testing.assert_allclose(similarity(A[0], B, metric), expected[:1], atol=1e-6)
    np.testing.assert_allclose(pairwise_similarity(A, B[:2], metric), np.diag(np.array(expected)), atol=1e-6)
    assert similarity(A[:0], B, metric).shape == (0, 3)
    assert similarity(A, B, metric).dtype == np.float32


def test_euclidean_distance_of_near_vectors_keeps_its_digits() -> None:
    x = np.full((1, 384), 100, np.float32)
    y = x + np.float32(1e-3)
    np.testing.assert_allclose(similarity(x, y, "euclidean"), -np.linalg.norm((y - x).astype(float)), rtol=1e-6)


def test_vectors_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(InputError, match="of a have 3 numbers, those of b 2"):
        similarity(A, B[:, :2])
    with pytest.raises(InputError, match="not 2 and 3"):
        pairwise_similarity(A, B)
    with pytest.raises(InputError, match="similarity must be one of cosine, dot, euclidean, manhattan, not 'l2'"):
        similarity(A, B, "l2")
    with pytest.raises(InputError, match=r"not of shape \[1, 2, 3\]"):
        similarity(A[None], B)


@pytest.mark.parametrize("precision", ["int8", "uint8", "binary", "ubinary"])
def test_quantization_equals_sentence_transformers(precision: str) -> None:
    reference = np.load(MODELS / "minilm_reference.npz")
    found = quantize_embeddings(reference["embeddings"], precision)
    assert found.dtype == reference[precision].dtype
    np.testing.assert_array_equal(found, reference[precision])


def test_ranges_and_calibration_set_the_steps() -> None:
    reference = np.load(MODELS / "minilm_reference.npz")
    x = reference["embeddings"]
    ranges = np.stack([np.full(384, -0.2), np.full(384, 0.2)])
    np.testing.assert_array_equal(quantize_embeddings(x, "int8", ranges), reference["int8_fixed_ranges"])
    own = np.stack([x.min(axis=0), x.max(axis=0)])
    np.testing.assert_array_equal(quantize_embeddings(x[:1], "int8", own), reference["int8"][:1])
    np.testing.assert_array_equal(quantize_embeddings(x[:1], "int8", calibration_embeddings=x), reference["int8"][:1])


def test_a_constant_dimension_has_the_lowest_step() -> None:
    x = np.array([[1.0, 0.0], [1.0, 255.0]], np.float32)
    assert quantize_embeddings(x, "uint8").tolist() == [[0, 0], [0, 255]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((A[0], "int8"), "8-bit precision needs at least 2 vectors"),
        ((A.astype(np.int8), "int8"), "embeddings must be floating-point vectors"),
        ((A, "int8", A[:, :2]), r"ranges must have shape \[2, 3\].*not \[2, 2\]"),
        ((A, "int8", None, B[:, :2]), "3 dimensions"),
        ((A[:1], "uint8"), "at least 2 vectors"),
        ((A, "int2"), "precision must be one of"),
    ],
)
def test_wrong_arguments_of_quantization_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        quantize_embeddings(*arguments)


# --- tokens


def test_token_vectors_have_offsets(encoder: SentenceEncoder) -> None:
    texts = ["the cat, and Paris", LONG]
    with pytest.warns(TruncationWarning):
        found = encoder.encode_tokens(texts)
    expected: Any = encoder.encode(texts, output_value="token_embeddings")
    for one, vectors in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one.vectors, vectors)
        assert len(one.tokens) == len(one.offsets) == len(vectors)
    assert [one.truncated for one in found] == [False, True]
    assert [texts[0][start:end] for start, end in found[0].offsets] == ["", "the", "cat", ",", "and", "Paris", ""]
    assert encoder.encode_tokens("cat").tokens == ["[CLS]", "cat", "[SEP]"]


# --- search


numbers = st.integers(-3, 3).map(float)


@given(data=st.data(), metric=st.sampled_from(["cosine", "dot", "euclidean", "manhattan"]))
def test_semantic_search_gives_the_best_rows_in_order(data: st.DataObject, metric: str) -> None:
    rows = st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=1, max_size=8).map(
        lambda x: np.array(x, np.float32)
    )
    queries, corpus, top_k = data.draw(rows), data.draw(rows), data.draw(st.integers(1, 10))
    found = semantic_search(queries, corpus, top_k, metric)
    scores = similarity(queries, corpus, metric)
    for row, hits in zip(scores, found, strict=True):
        assert len(hits) == min(top_k, len(corpus))
        np.testing.assert_allclose([hit["score"] for hit in hits], np.sort(row)[::-1][: len(hits)], atol=1e-6)
        for hit in hits:
            np.testing.assert_allclose(row[hit["corpus_id"]], hit["score"], atol=1e-6)
        assert len({hit["corpus_id"] for hit in hits}) == len(hits)


def test_mining_does_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(1).normal(size=(40, 8)).astype(np.float32)
    pairs = paraphrase_mining_embeddings(vectors)
    monkeypatch.setattr("wordpiece_bert.search.paraphrase_mining._BLOCK", 100)
    again = paraphrase_mining_embeddings(vectors)
    assert [pair[1:] for pair in again] == [pair[1:] for pair in pairs]


def test_every_pair_is_mined_once_the_most_similar_first() -> None:
    vectors = np.random.default_rng(2).normal(size=(30, 8)).astype(np.float32)
    scores = similarity(vectors, vectors)
    pairs = paraphrase_mining_embeddings(vectors)
    assert len(pairs) == 30 * 29 // 2
    assert all(i < j for _, i, j in pairs)
    assert len({(i, j) for _, i, j in pairs}) == len(pairs)
    np.testing.assert_allclose(
        [s for s, i, j in pairs], sorted((scores[i, j] for _, i, j in pairs), reverse=True), atol=1e-6
    )
    assert paraphrase_mining_embeddings(vectors, max_pairs=5) == pairs[:5]
    few = paraphrase_mining_embeddings(vectors, top_k=2)
    best_two = {
        (min(i, int(j)), max(i, int(j)))
        for i in range(30)
        for j in np.argsort(-(scores[i] - 9 * (np.arange(30) == i)))[:2]
    }
    assert {(i, j) for _, i, j in few} == best_two
    assert few[0] == pairs[0]
    assert paraphrase_mining_embeddings(vectors[:1]) == []
    assert paraphrase_mining_embeddings(np.zeros((0, 8), np.float32)) == []


def test_paraphrases_of_sentences_are_found(encoder: SentenceEncoder) -> None:
    sentences = ["the cat was in the house", "paris is a city", "the cat was in the house!", "good morning"]
    score, i, j = paraphrase_mining(encoder, sentences, top_k=3)[0]
    vectors = encoder.encode(sentences)
    np.testing.assert_allclose(score, similarity(vectors[i], vectors[j])[0, 0], atol=1e-6)
    assert score == max(pair[0] for pair in paraphrase_mining(encoder, sentences))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda v: semantic_search(v, v, 0), "top_k must be"),
        (lambda v: semantic_search(v, v[:, :2]), "not from the same model"),
        (lambda v: semantic_search(v, v, metric="best"), "similarity must be one of"),
        (lambda v: semantic_search(v[None], v), "query_embeddings must be vectors"),
        (lambda v: paraphrase_mining_embeddings(v, max_pairs=0), "max_pairs must be"),
        (lambda v: paraphrase_mining_embeddings(v, top_k=1.0), "top_k must be"),
    ],
)
def test_wrong_arguments_of_searches_are_reported(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(np.ones((3, 4), np.float32))
