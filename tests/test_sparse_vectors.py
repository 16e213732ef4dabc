"""Sparse vectors: conversions, selection, and similarity against the similarity of dense vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence import SparseVectors, pairwise_similarity, similarity
from wordpiece_bert.sentence.sparse.sparse_vectors import sparse_pairwise_similarity, sparse_similarity

NUMBERS = st.sampled_from([0.0, 0.0, 0.0, 1.0, 0.25, 3.5, -2.0])
MATRICES = st.tuples(st.integers(0, 9), st.integers(1, 40)).flatmap(
    lambda shape: arrays.arrays(np.float32, shape, elements=NUMBERS)
)


@given(MATRICES)
def test_dense_and_sparse_are_the_same_matrix(dense: Any) -> None:
    sparse = SparseVectors.from_dense(dense)
    assert np.array_equal(sparse.toarray(), dense)
    assert sparse.shape == dense.shape
    assert len(sparse) == len(dense)
    assert len(sparse.values) == np.count_nonzero(dense)
    for i, row in enumerate(sparse):
        assert np.array_equal(row.toarray(), dense[i])
        assert row == SparseVectors.from_dense(dense[i])


@given(MATRICES, st.data())
def test_rows_are_selected_as_in_numpy(dense: Any, data: Any) -> None:
    sparse, n = SparseVectors.from_dense(dense), len(dense)
    chosen = data.draw(st.one_of(
        st.slices(n),
        st.lists(st.integers(-n, n - 1), max_size=12).map(lambda x: np.array(x, np.int64)) if n else st.just(slice(None)),
        arrays.arrays(np.bool_, n),
    ))  # fmt: skip
    assert np.array_equal(sparse[chosen].toarray(), dense[chosen])
    if n:
        assert np.array_equal(sparse[-1].toarray(), dense[-1])


@pytest.mark.parametrize("metric", ["dot", "cosine", "euclidean", "manhattan"])
@given(st.integers(0, 2**32 - 1), st.integers(0, 7), st.integers(0, 7), st.integers(1, 30))
def test_similarity_is_that_of_the_dense_vectors(metric: str, seed: int, n: int, m: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = ((rng.random((k, width)) * (rng.random((k, width)) < 0.4)).astype(np.float32) for k in (n, m))
    found = sparse_similarity(SparseVectors.from_dense(a), b, metric)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, similarity(a, b, metric), atol=2e-6)
    if n == m:
        pairs = sparse_pairwise_similarity(a, SparseVectors.from_dense(b), metric)
        np.testing.assert_allclose(pairs, pairwise_similarity(a, b, metric), atol=2e-6)


def test_similarity_does_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    a, b = (SparseVectors.from_dense(np.maximum(rng.standard_normal((k, 50)), 0)) for k in (3, 40))
    expected = sparse_similarity(a, b, "cosine")
    monkeypatch.setattr("wordpiece_bert.sentence.sparse.sparse_vectors._BLOCK", 60)
    assert np.array_equal(sparse_similarity(a, b, "cosine"), expected)


@given(MATRICES, st.integers(1, 12))
def test_the_greatest_values_are_kept_and_of_equal_ones_the_first(dense: Any, count: int) -> None:
    kept = SparseVectors.from_dense(dense).top(count).toarray()
    for row, few in zip(dense, kept, strict=True):
        stored = np.flatnonzero(row)
        chosen = sorted(stored, key=lambda column: (-abs(row[column]), column))[:count]
        expected = np.zeros_like(row)
        expected[chosen] = row[chosen]
        assert np.array_equal(few, expected)


def test_files_are_those_of_scipy(tmp_path: Path) -> None:
    vectors = SparseVectors.from_dense([[0, 1.5, 0, 2], [0, 0, 0, 0]])
    for one in (vectors[0], vectors):
        one.save(tmp_path / "x.npz")
        assert SparseVectors.load(tmp_path / "x.npz") == one
    scipy = pytest.importorskip("scipy.sparse")
    assert np.array_equal(scipy.load_npz(tmp_path / "x.npz").toarray(), vectors.toarray())
    matrix = vectors.to_scipy()
    assert np.shares_memory(matrix.data, vectors.values)
    assert np.array_equal(matrix.toarray(), vectors.toarray())
    assert vectors[0].to_scipy().shape == (1, 4)
    scipy.save_npz(tmp_path / "y.npz", matrix)
    assert SparseVectors.load(tmp_path / "y.npz") == vectors
    assert np.array_equal(sparse_similarity(matrix, vectors), sparse_similarity(vectors, vectors))


@pytest.mark.parametrize(
    ("content", "match"), [(b"nothing", "cannot be read"), (b"", "cannot be read"), (b"PK\3\4", "cannot be read")]
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, match: str) -> None:
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(InputError, match=match):
        SparseVectors.load(tmp_path / "x.npz")
    with pytest.raises(InputError, match=r"ends in \.npz"):
        SparseVectors.from_dense([1]).save(tmp_path / "x.npy")
    with pytest.raises(InputError, match="cannot be read"):
        SparseVectors.load(tmp_path / "missing.npz")


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (([0, 2], [0], [1.0], (1, 3)), "indptr must rise from 0 to 1"),
        (([0, 2, 1], [0], [1.0], (2, 3)), "indptr must rise from 0 to 1"),
        (([0, 1], [3], [1.0], (1, 3)), "indices must be from 0 to 2, not 3 to 3"),
        (([0, 1], [-1], [1.0], (1, 3)), "indices must be from 0 to 2"),
        (([0, 1], [0], [1.0, 2.0], (1, 3)), "are not those of a matrix"),
        (([0, 1], [0], [1.0], (3, 3)), "are not those of a matrix"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arguments: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        SparseVectors(*arguments)


def test_vectors_never_change() -> None:
    vectors = SparseVectors.from_dense([[0, 1.0]])
    with pytest.raises(AttributeError, match="never changes"):
        vectors.shape = (2, 2)  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        vectors.values[0] = 2
    with pytest.raises(TypeError, match="no rows"):
        vectors[0][0]
    with pytest.raises(TypeError, match="no length"):
        len(vectors[0])
    with pytest.raises(IndexError):
        vectors[1]
    with pytest.raises(InputError, match="not from one model"):
        sparse_similarity(vectors, [[1.0, 2.0, 3.0]])
    with pytest.raises(InputError, match="a must be SparseVectors"):
        sparse_similarity("text", vectors)
    with pytest.raises(InputError, match="equal numbers of vectors"):
        sparse_pairwise_similarity(vectors, [[1, 2], [3, 4]])


def test_vectors_show_themselves() -> None:
    vectors = SparseVectors.from_dense(np.eye(30, dtype=np.float32))
    assert repr(vectors) == "SparseVectors([30, 30], 30 values, 1.0 a row)"
    assert repr(vectors[0]) == "SparseVectors([30], 1 values)"
    assert "29: 1" not in vectors._repr_html_()
    assert "the first 10 rows" in vectors._repr_html_()
