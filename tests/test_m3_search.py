"""`M3Encoder.search`: the ranks and scores of a slow reference in plain Python, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_files import MODELS, reference_vectors
from wordpiece_bert._internal.answers import Answer, SearchResults
from wordpiece_bert.errors import InputError, TruncationWarning
from wordpiece_bert.sentence import M3Encoder, M3Vectors, MultiVectors, SparseVectors
from wordpiece_bert.sentence.m3 import scoring

pytest.importorskip("tokenizers")

FOLDER = MODELS / "m3_colbert_dim"
TEXTS = [
    "the old house by the river",
    "a dog",
    "the city by night",
    "",
    "the dog and the river",
    "water",
    "a dog",
    "the house",
    "night",
]
QUERIES = ["the dog", "river house", "☃", ""]
WEIGHTS = [(1, 1, 1), (0.4, 0.2, 0.4), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0.3, 0), (0, 2, 5)]


@pytest.fixture(scope="module")
def encoder() -> M3Encoder:
    return M3Encoder(FOLDER)


def slow_scores(query: M3Vectors, document: M3Vectors) -> tuple[float, float, float]:
    """The scores of FlagEmbedding, number by number: cosine, common tokens, and the mean of the greatest products."""
    dense = sum(a * b for a, b in zip(query.dense.tolist(), document.dense.tolist(), strict=True))
    weights = dict(zip(document.sparse.indices.tolist(), document.sparse.values.tolist(), strict=True))
    own = zip(query.sparse.indices.tolist(), query.sparse.values.tolist(), strict=True)
    sparse = sum(weight * weights.get(token, 0.0) for token, weight in own)
    tokens = [vector.tolist() for vector in query.colbert]
    greatest = [
        max(sum(a * b for a, b in zip(token, other.tolist(), strict=True)) for other in document.colbert)
        for token in tokens
    ]
    return dense, sparse, sum(greatest) / len(tokens)


def slow_search(
    encoder: M3Encoder, query: str, texts: list[str], weights: tuple[float, ...]
) -> list[tuple[int, float, tuple[float, float, float]]]:
    """All documents with their scores, the best first, of equal ones the first."""
    own = encoder.encode(query)
    scores = [slow_scores(own, encoder.encode(text)) for text in texts]
    means = [sum(w * s for w, s in zip(weights, one, strict=True)) / sum(weights) for one in scores]
    order = sorted(range(len(texts)), key=lambda i: -round(means[i], 5))
    return [(i, means[i], scores[i]) for i in order]


@pytest.mark.parametrize("weights", WEIGHTS)
def test_hits_are_those_of_the_slow_search(encoder: M3Encoder, weights: tuple[float, float, float]) -> None:
    found = encoder.search(QUERIES, TEXTS, weights, top_k=len(TEXTS))
    assert isinstance(found, SearchResults)
    assert len(found) == len(QUERIES)
    for query, hits in zip(QUERIES, found, strict=True):
        expected = slow_search(encoder, query, TEXTS, weights)
        assert sorted(hit["corpus_id"] for hit in hits) == list(range(len(TEXTS)))
        numbers = {i: (mean, scores) for i, mean, scores in expected}
        for hit, (_, best, _) in zip(hits, expected, strict=True):
            mean, scores = numbers[hit["corpus_id"]]
            assert math.isclose(hit["score"], mean, abs_tol=1e-5)
            assert math.isclose(hit["score"], best, abs_tol=2e-5)  # the same rank, but for ties
            for name, right in zip(("dense", "sparse", "colbert"), scores, strict=True):
                assert math.isclose(hit[name], right, abs_tol=1e-5), name
            assert [*hit] == ["corpus_id", "score", "dense", "sparse", "colbert"]
            assert isinstance(hit, Answer)
        # The same text twice: the lower number comes first.
        ids = [hit["corpus_id"] for hit in hits]
        assert ids.index(1) < ids.index(6)
        for count in (1, 3):
            assert encoder.search(query, TEXTS, weights, top_k=count) == hits[:count]


def test_scores_are_those_of_the_reference_and_of_score(encoder: M3Encoder) -> None:
    reference, _ = reference_vectors("m3_colbert_dim")
    texts = reference["texts"]
    vectors, _ = encoder.encode(texts, return_truncated=True)
    for (a, b), right in zip(reference["pairs"], reference["scores"], strict=True):
        query = M3Vectors(vectors.dense[a], vectors.sparse[a], vectors.colbert[a])
        hits = encoder.search(query, vectors, reference["weights"], top_k=len(texts))
        hit = next(hit for hit in hits if hit["corpus_id"] == b)
        assert hit["score"] == pytest.approx(right["colbert+sparse+dense"], abs=1e-5)
        for name in ("dense", "sparse", "colbert"):
            assert hit[name] == pytest.approx(right[name], abs=1e-5)
    scored = encoder.score([(QUERIES[0], text) for text in TEXTS])
    for hit in encoder.search(QUERIES[0], TEXTS):
        assert hit["score"] == pytest.approx(scored["colbert+sparse+dense"][hit["corpus_id"]], abs=1e-6)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_candidates_are_the_best_by_dense_and_sparse_scores(
    encoder: M3Encoder, weights: tuple[float, float, float]
) -> None:
    query = "the dog by the river"
    found = encoder.search(query, TEXTS, weights, top_k=2, retrieve_top_k=4)
    two = (weights[0], weights[1], 0) if weights[0] + weights[1] else (1, 1, 0)
    kept = {i for i, _, _ in slow_search(encoder, query, TEXTS, two)[:4]}
    expected = [row for row in slow_search(encoder, query, TEXTS, weights) if row[0] in kept]
    assert [hit["corpus_id"] for hit in found] == [i for i, _, _ in expected[:2]]
    np.testing.assert_allclose([hit["score"] for hit in found], [mean for _, mean, _ in expected[:2]], atol=1e-5)
    every = encoder.search(query, TEXTS, weights, top_k=2)
    assert encoder.search(query, TEXTS, weights, top_k=2, retrieve_top_k=100) == every
    # No fewer candidates than results.
    assert len(encoder.search(query, TEXTS, weights, top_k=5, retrieve_top_k=1)) == 5


def test_queries_in_blocks_give_the_same(encoder: M3Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = encoder.search(QUERIES, TEXTS)
    for scores in (1, len(TEXTS), 2 * len(TEXTS) + 1):
        monkeypatch.setattr(scoring, "_SCORES", scores)
        for hits, right in zip(encoder.search(QUERIES, TEXTS), expected, strict=True):
            assert hits == right


def test_outputs_can_be_kept_in_files(encoder: M3Encoder, tmp_path: Path) -> None:
    vectors = encoder.encode(TEXTS)
    np.save(tmp_path / "dense.npy", vectors.dense)
    vectors.sparse.save(tmp_path / "sparse.npz")
    vectors.colbert.save(tmp_path / "colbert")
    kept = M3Vectors(
        np.load(tmp_path / "dense.npy", mmap_mode="r"),
        SparseVectors.load(tmp_path / "sparse.npz"),
        MultiVectors.load(tmp_path / "colbert"),
    )
    expected = encoder.search(QUERIES, TEXTS, retrieve_top_k=3, top_k=3)
    assert encoder.search(QUERIES, kept, retrieve_top_k=3, top_k=3) == expected
    asked = encoder.encode(QUERIES)
    for queries in (asked, M3Vectors(asked.dense.tolist(), asked.sparse, [*asked.colbert])):  # type: ignore[arg-type]
        assert encoder.search(queries, kept, retrieve_top_k=3, top_k=3) == expected
    assert encoder.search(encoder.encode(QUERIES[0]), kept, retrieve_top_k=3, top_k=3) == expected[0]


def test_texts_of_hits_and_empty_arguments(encoder: M3Encoder) -> None:
    hits = encoder.search("a dog", TEXTS, top_k=2, return_documents=True)
    assert [hit["text"] for hit in hits] == ["a dog", "a dog"]
    assert encoder.search("a dog", []) == []
    assert encoder.search(["a dog", "b"], encoder.encode([])) == [[], []]
    assert encoder.search([], TEXTS) == []
    assert encoder.search(encoder.encode([]), TEXTS) == []
    assert encoder.search(iter(["a dog"]), iter(TEXTS)) == encoder.search(["a dog"], TEXTS)


def test_truncated_texts_are_marked() -> None:
    encoder = M3Encoder(FOLDER, max_seq_length=6)
    with pytest.warns(TruncationWarning, match="truncated to 6 tokens"):
        hits = encoder.search("a dog", TEXTS)
    truncated = encoder.encode(TEXTS, return_truncated=True)[1]
    assert truncated.any()
    assert {hit["corpus_id"]: hit.truncated for hit in hits} == dict(enumerate(truncated.tolist()))
    with pytest.warns(TruncationWarning):
        assert all(hit.truncated for hit in encoder.search(TEXTS[0], encoder.encode(["a dog"])))


@pytest.mark.parametrize(
    "weights",
    [(1, 1), (0, 0, 0), (1, -1, 1), (1, 1, math.nan), (math.inf, 1, 1), "abc", (1, 1, True), None, (1e308,) * 3],
)
def test_wrong_weights_are_refused(encoder: M3Encoder, weights: Any) -> None:
    with pytest.raises(InputError, match=r"weights must be three finite numbers of at least 0.*not all of them 0; not"):
        encoder.search("a", TEXTS, weights)


def test_wrong_arguments_are_refused(encoder: M3Encoder) -> None:
    vectors = encoder.encode(TEXTS)
    for options in ({"top_k": 0}, {"top_k": 1.5}, {"retrieve_top_k": 0}, {"return_documents": "yes"}):
        with pytest.raises(InputError, match=next(iter(options))):
            encoder.search("a", TEXTS, **options)
    with pytest.raises(InputError, match="return_documents needs the texts of the documents"):
        encoder.search("a", vectors, return_documents=True)
    with pytest.raises(InputError, match="documents must be a list of texts, not one text: 'a dog'"):
        encoder.search("a", "a dog")
    with pytest.raises(InputError, match=r"\b2\b.* must be a str"):
        encoder.search("a", ["a", "b", 3])  # type: ignore[list-item]
    with pytest.raises(InputError, match=r"documents must have as many dense vectors as .*, not 8, 9 and 9"):
        encoder.search("a", M3Vectors(vectors.dense[1:], vectors.sparse, vectors.colbert))
    with pytest.raises(
        InputError, match=r"queries are not from this model: .* have 31, 185, 12 numbers, not 32, 185, 12"
    ):
        encoder.search(M3Vectors(vectors.dense[:, 1:], vectors.sparse, vectors.colbert), vectors)
