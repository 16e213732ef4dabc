"""Search over quantized vectors against the numbers of sentence-transformers with faiss, and against the definition."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_files import MODELS
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence import quantize_embeddings, semantic_search

LISTING = json.loads((MODELS / "rescore" / "reference.json").read_text(encoding="utf-8"))
ARRAYS = np.load(MODELS / "rescore" / "reference.npz")


def search(queries: Any, corpus: Any, top_k: int, **options: Any) -> tuple[Any, Any]:
    hits = semantic_search(queries, corpus, top_k, **options)
    ids = np.array([[hit["corpus_id"] for hit in row] for row in hits])
    return ids, np.array([[hit["score"] for hit in row] for row in hits])


@pytest.mark.parametrize("name", sorted(LISTING["runs"].keys() - {"uint8"}))
def test_hits_are_those_of_the_reference(name: str) -> None:
    run = LISTING["runs"][name]
    ranges = ARRAYS["ranges"] if run["ranges"] and "binary" not in run["precision"] else None
    corpus = quantize_embeddings(ARRAYS["corpus"], run["precision"], ranges)
    options = {"corpus_precision": run["precision"], "ranges": ranges} | run["options"]
    ids, scores = search(ARRAYS["queries"], corpus, LISTING["top_k"], **options)
    assert np.array_equal(ids, ARRAYS[f"{name}.ids"])
    np.testing.assert_allclose(scores, ARRAYS[f"{name}.scores"], rtol=0, atol=1e-6)


def test_8_bit_numbers_find_more_neighbours_than_the_raw_products_of_the_reference() -> None:
    ranges, top_k = ARRAYS["ranges"], LISTING["top_k"]
    exact = np.argsort(-(ARRAYS["queries"] @ ARRAYS["corpus"].T), axis=1)[:, :top_k]
    corpus = quantize_embeddings(ARRAYS["corpus"], "uint8", ranges)
    ids, _ = search(ARRAYS["queries"], corpus, top_k, corpus_precision="uint8", ranges=ranges)

    def recall(found: Any) -> float:
        return float(np.mean([len({*a} & {*b}) / top_k for a, b in zip(found.tolist(), exact.tolist(), strict=True)]))

    assert recall(ids) > 0.9 > recall(ARRAYS["uint8.ids"])


@pytest.mark.parametrize("rescore", [True, False])
def test_signed_bits_find_what_unsigned_ones_find(rescore: bool) -> None:
    found = []
    for precision in ("binary", "ubinary"):
        corpus = quantize_embeddings(ARRAYS["corpus"], precision)
        options = {"corpus_precision": precision, "rescore": rescore}
        found.append(search(ARRAYS["queries"], corpus, 7, **options))
    assert np.array_equal(found[0], found[1])


@given(seed=st.integers(0, 99), width=st.integers(1, 700), count=st.integers(1, 40), top_k=st.integers(1, 50))
def test_without_rescoring_scores_are_distances_and_products(seed: int, width: int, count: int, top_k: int) -> None:
    rng = np.random.default_rng(seed)
    corpus, query = rng.normal(size=(count, width)).astype(np.float32), rng.normal(size=(1, width)).astype(np.float32)
    bits, own = quantize_embeddings(corpus, "ubinary"), quantize_embeddings(query, "ubinary")
    distances = np.unpackbits(bits ^ own, axis=1).sum(axis=1).astype(int)
    ids, scores = search(query, bits, top_k, corpus_precision="ubinary", rescore=False)
    assert ids[0].tolist() == np.argsort(distances, kind="stable")[:top_k].tolist()
    assert scores[0].tolist() == distances[ids[0]].tolist()
    ranges = np.array([corpus.min(axis=0) - 1, corpus.max(axis=0) + 1])
    step = (ranges[1] - ranges[0]) / 255
    for precision, offset in (("uint8", 0), ("int8", 128)):
        bytes_ = quantize_embeddings(corpus, precision, ranges)
        products = (ranges[0] + (bytes_.astype(int) + offset) * step) @ query[0]
        ids, scores = search(query, bytes_, top_k, corpus_precision=precision, rescore=False, ranges=ranges)
        # Each number of the query is rounded by half a step of 127 at most.
        most = np.abs(query[0] * step).max() / 254 * 255 * width + 1e-3
        assert (np.abs(scores[0] - products[ids[0]]) <= most).all()
        assert (np.diff(scores[0]) <= 0).all()
        assert scores[0, -1] + 2 * most >= np.sort(products)[::-1][: len(ids[0])][-1]


def test_8_bit_numbers_find_the_neighbours_of_random_vectors() -> None:
    rng = np.random.default_rng(5)
    corpus, queries = rng.normal(size=(5000, 128)).astype(np.float32), rng.normal(size=(20, 128)).astype(np.float32)
    ranges = [corpus.min(axis=0), corpus.max(axis=0)]
    exact = np.argsort(-(queries @ corpus.T), axis=1)[:, :10]
    for precision, rescore in itertools.product(("int8", "uint8"), (True, False)):
        bytes_ = quantize_embeddings(corpus, precision, ranges)
        ids, _ = search(queries, bytes_, 10, corpus_precision=precision, rescore=rescore, ranges=ranges)
        assert np.mean([len(set(a) & set(b)) / 10 for a, b in zip(ids, exact, strict=True)]) > 0.9


def test_a_memory_mapped_collection_is_searched_in_groups_of_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = quantize_embeddings(ARRAYS["corpus"], "ubinary")
    np.save(tmp_path / "bits.npy", corpus)
    mapped = np.load(tmp_path / "bits.npy", mmap_mode="r")
    expected = search(ARRAYS["queries"], corpus, 9, corpus_precision="ubinary")
    monkeypatch.setattr("wordpiece_bert.sentence.nearest_rows._HITS_KEPT", 1)
    assert np.array_equal(search(ARRAYS["queries"], mapped, 9, corpus_precision="ubinary"), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"corpus_precision": "int4"}, "precision must be one of"),
        ({"corpus_precision": "uint8"}, "needs ranges"),
        ({"corpus_precision": "int8", "ranges": np.zeros((2, 32))}, "must be int8"),
        ({"corpus_precision": "ubinary"}, r"must be uint8 \[m, 4\]"),
        ({"corpus_precision": "uint8", "rescore_multiplier": 0}, "rescore_multiplier must be"),
        ({"corpus_precision": "uint8", "rescore": 1}, "rescore must be True or False"),
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    corpus = quantize_embeddings(ARRAYS["corpus"], "uint8", ARRAYS["ranges"])
    with pytest.raises(InputError, match=message):
        semantic_search(ARRAYS["queries"], corpus, 3, **options)


@pytest.mark.parametrize("option", [{"ranges": np.zeros((2, 8))}, {"rescore": False}, {"rescore_multiplier": 5}])
def test_options_of_quantized_vectors_without_a_precision_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="are for quantized vectors: pass corpus_precision too"):
        semantic_search(np.ones((1, 8)), np.ones((2, 8)), **option)
    with pytest.raises(InputError, match="allow_stale are for the fingerprint of a file"):
        semantic_search(np.ones((1, 8)), np.ones((2, 8)), allow_stale=True)
