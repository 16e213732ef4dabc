"""Exact search by codes: hits, scores and ties are those of the float32 search, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from wordpiece_bert import _core
from wordpiece_bert.errors import InputError
from wordpiece_bert.search.prepared_vectors import CODE_BYTES, Block, code_rows, nearest_in_blocks
from wordpiece_bert.sentence import PreparedVectors, quantize_embeddings, semantic_search

METRICS = ["dot", "cosine", "euclidean", "manhattan"]
SETS = _core.kernel_instruction_sets()


def vectors_of(kind: str, count: int, width: int, seed: int) -> Any:
    """Vectors that are hard to bound."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, width)).astype(np.float32)
    rows = np.arange(count)
    if kind == "ties":
        x = np.round(x)
    elif kind == "duplicates":
        x = x[rng.integers(0, max(1, count // 5), count)]
    elif kind == "zeros":
        x[rng.random(count) < 0.5] = 0
    elif kind == "scales":
        x *= np.array([1, 1e30, 1e-30, 5e37, 1e-42, 1e-12, 1e18, 3e-13], np.float32)[rows % 8][:, None]
    elif kind == "outlying column":
        x[:, 0] += 100
    elif kind == "unequal columns":
        x *= np.float32(10) ** np.float32(np.arange(width) % 9 - 4)
    elif kind == "not finite":
        x[rows % 5 == 1, 0], x[rows % 5 == 2, -1], x[rows % 5 == 3, 0] = np.nan, np.inf, -np.inf
    return np.ascontiguousarray(x)


KINDS = ["plain", "ties", "duplicates", "zeros", "scales", "outlying column", "unequal columns", "not finite"]


def bits(found: tuple[Any, Any]) -> tuple[list[Any], bytes]:
    return found[0].tolist(), found[1].tobytes()


@pytest.mark.parametrize("instruction_set", SETS)
@given(
    kind=st.sampled_from(KINDS),
    count=st.integers(1, 400),
    width=st.integers(1, 90),
    queries=st.sampled_from([1, 2, 3, 35]),
    top_k=st.sampled_from([1, 3, 10, 400, 500]),
    metric=st.sampled_from(METRICS[:3]),
    seed=st.integers(0, 999),
)
@settings(max_examples=25, deadline=None)
@example(kind="zeros", count=400, width=1, queries=35, top_k=1, metric="cosine", seed=0)
@example(kind="scales", count=400, width=90, queries=3, top_k=400, metric="euclidean", seed=1)
@example(kind="scales", count=287, width=11, queries=1, top_k=3, metric="cosine", seed=0)  # products beyond float32
def test_hits_scores_and_ties_are_those_of_the_float32_search(
    instruction_set: str, kind: str, count: int, width: int, queries: int, top_k: int, metric: str, seed: int
) -> None:
    x = vectors_of(kind, count, width, seed)
    asked = np.random.default_rng(seed + 1).normal(size=(queries, width)).astype(np.float32)
    finite = x[np.isfinite(x).all(axis=1)]
    if len(finite):
        asked[0] = finite[0]
    asked[-1] *= np.float32(1e-20 if seed % 3 else 1e20)
    expected = _core.search_floats(asked, x, metric, top_k, 2, instruction_set)
    for threads in (1, 2):
        least = np.zeros(0)
        found = _core.search_by_codes(asked, x, code_rows(x), metric, top_k, least, threads, instruction_set)
        assert bits(found) == bits(expected)


@given(
    kind=st.sampled_from(KINDS),
    count=st.integers(0, 60),
    block=st.integers(1, 40),
    top_k=st.integers(1, 70),
    metric=st.sampled_from(METRICS),
    with_codes=st.integers(0, 7),
    missing=st.sampled_from([0.0, 0.2, 0.9]),
)
@settings(max_examples=40, deadline=None)
@example(kind="not finite", count=13, block=1, top_k=10, metric="dot", with_codes=0, missing=0.0)  # −∞ beside NaN
def test_blocks_of_which_some_have_codes_are_searched_as_one_collection(
    kind: str, count: int, block: int, top_k: int, metric: str, with_codes: int, missing: float
) -> None:
    x = vectors_of(kind, count, 9, 1)
    asked = np.random.default_rng(2).normal(size=(3, 9)).astype(np.float32)
    replaced = np.flatnonzero(np.random.default_rng(count + block).random(count) < missing)
    blocks = []
    for number, start in enumerate(range(0, count, block)):
        some = x[start : start + block]
        gone = replaced[(replaced >= start) & (replaced < start + block)] - start
        blocks.append(Block(start, some, code_rows(some) if with_codes >> number % 3 & 1 else None, gone))
    found = nearest_in_blocks(asked, lambda: blocks, metric, top_k, None)
    kept = np.setdiff1d(np.arange(count), replaced)
    one = Block(0, np.ascontiguousarray(x[kept]), None, replaced[:0])
    rows, scores = nearest_in_blocks(asked, lambda: [one], metric, top_k, None)
    expected = (kept[rows], scores)
    finite = ~np.isnan(expected[1])
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_array_equal(found[0][finite], expected[0][finite])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", KINDS)
def test_semantic_search_finds_the_same_with_prepared_vectors(kind: str, metric: str) -> None:
    x = vectors_of(kind, 3000, 32, 5)
    asked = np.random.default_rng(6).normal(size=(40, 32)).astype(np.float32)
    prepared = PreparedVectors(x, threads=2)
    for top_k in (1, 10, 4000):
        found = semantic_search(asked, prepared, top_k, metric)
        expected = semantic_search(asked, x, top_k, metric)
        assert repr(found) == repr(expected)  # NaN is not equal to itself


def test_codes_are_kept_in_a_file_and_checked(tmp_path: Path) -> None:
    x = vectors_of("plain", 500, 20, 1)
    prepared = PreparedVectors(x)
    assert prepared.codes.shape == (500, 20 + CODE_BYTES)
    assert (len(prepared), repr(prepared)) == (500, "PreparedVectors(500 vectors of 20)")
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "codes.npy", prepared.codes)
    mapped = [np.load(tmp_path / name, mmap_mode="r") for name in ("x.npy", "codes.npy")]
    again = PreparedVectors(*mapped)
    assert np.shares_memory(again.vectors, mapped[0])
    assert np.shares_memory(again.codes, mapped[1])
    assert semantic_search(x[:4], again) == semantic_search(x[:4], x)
    assert semantic_search(x[:4].astype(np.float64), PreparedVectors(x.astype(np.float64))) == semantic_search(x[:4], x)
    with pytest.raises(InputError, match="codes are of other vectors"):
        PreparedVectors(x[::-1], prepared.codes)
    for codes in (prepared.codes[:-1], prepared.codes.view(np.int8), [[1]], prepared.codes[:, :-1]):
        with pytest.raises(InputError, match=r"codes must be uint8 \[500, 32\]"):
            PreparedVectors(x, codes)  # type: ignore[arg-type]
    with (tmp_path / "codes.npy").open("r+b") as file:
        file.truncate(1000)
    with pytest.raises(InputError, match="has shortened it"):
        semantic_search(x[:1], again)


def test_what_prepared_vectors_cannot_be_searched_for_is_refused() -> None:
    prepared = PreparedVectors(vectors_of("plain", 5, 4, 1))
    with pytest.raises(InputError, match="the vectors of query_embeddings have 3 numbers"):
        semantic_search(np.ones((1, 3)), prepared)
    with pytest.raises(InputError, match="a query must be finite"):
        semantic_search(np.full((1, 4), np.nan), prepared)
    with pytest.raises(InputError, match="PreparedVectors are float32"):
        semantic_search(np.ones((1, 4)), prepared, corpus_precision="int8", ranges=np.ones((2, 4)))
    with pytest.raises(InputError, match="at least one number"):
        PreparedVectors(np.zeros((3, 0)))
    assert semantic_search(np.ones((2, 4)), PreparedVectors(np.zeros((0, 4)))) == [[], []]
    assert semantic_search(np.zeros((0, 4)), prepared) == []


def test_quantized_vectors_are_compared_by_what_they_stand_for() -> None:
    """Also where columns have unequal widths, and with numbers that are not signed."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(400, 96)).astype(np.float32) * np.exp(rng.normal(size=96)).astype(np.float32)
    ranges = np.stack([x.min(axis=0), x.max(axis=0)])
    asked = x[:100] + np.float32(0.3) * rng.normal(size=(100, 96)).astype(np.float32)
    exact = np.argsort(-(asked @ x.T), axis=1)[:, :5]
    for precision in ("int8", "uint8"):
        small = quantize_embeddings(x, precision, ranges)
        hits = semantic_search(asked, small, 5, corpus_precision=precision, ranges=ranges)
        found = [{hit["corpus_id"] for hit in one} for one in hits]
        assert np.mean([len(one & {*best}) / 5 for one, best in zip(found, exact.tolist(), strict=True)]) > 0.97
        near = semantic_search(asked, small, 5, corpus_precision=precision, ranges=ranges, rescore=False)
        for one, query in zip(near, asked, strict=True):
            for hit in one:
                spread = np.linalg.norm(query) * np.linalg.norm(x[hit["corpus_id"]])
                assert abs(hit["score"] - query @ x[hit["corpus_id"]]) < 0.05 * spread
    bits_of = quantize_embeddings(x, "ubinary")
    with pytest.raises(InputError, match="ranges are for 8-bit numbers"):
        semantic_search(asked, bits_of, 5, corpus_precision="ubinary", ranges=ranges)


@pytest.mark.parametrize(
    "ranges", [[[1.0] * 4, [0.0] * 4], [[0.0] * 4, [np.nan] * 4], [[-np.inf] * 4, [0.0] * 4], [[-3e38] * 4, [3e38] * 4]]
)
def test_ranges_without_a_finite_width_are_refused(ranges: list[list[float]]) -> None:
    with pytest.raises(InputError, match="ranges go from"):
        semantic_search(np.ones((1, 4)), np.ones((2, 4), np.int8), corpus_precision="int8", ranges=ranges)
    with pytest.raises(InputError, match="ranges go from"):
        quantize_embeddings(np.ones((2, 4)), "int8", ranges)
