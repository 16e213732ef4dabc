"""MaxSim on every instruction set against its definition, and the arrays of token vectors."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wordpiece_bert import _core
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence import MultiVectors, maxsim, maxsim_pairwise

LENGTHS = st.lists(st.integers(0, 70), min_size=1, max_size=9)


def drawn(seed: int, lengths: list[int], width: int) -> MultiVectors:
    rng = np.random.default_rng(seed)
    return MultiVectors.from_list([rng.standard_normal((n, width)) / np.sqrt(width) for n in lengths])


def definition(queries: MultiVectors, documents: MultiVectors) -> Any:
    """Σᵢ maxⱼ qᵢ·dⱼ in float64."""
    scores = np.empty((len(queries), len(documents)))
    for i, q in enumerate(queries):
        for j, d in enumerate(documents):
            products = q.astype(np.float64) @ d.astype(np.float64).T
            scores[i, j] = products.max(axis=1).sum() if len(d) else -1e9
    return scores


@pytest.mark.parametrize("instruction_set", _core.kernel_instruction_sets())
@given(st.integers(0, 2**32 - 1), LENGTHS, LENGTHS, st.sampled_from([1, 7, 12, 31, 32, 33, 96, 128]))
def test_every_instruction_set_computes_the_definition(
    instruction_set: str, seed: int, queries: list[int], documents: list[int], width: int
) -> None:
    a, b = drawn(seed, queries, width), drawn(seed + 1, documents, width)
    found = _core.maxsim((a.vectors, a.offsets), (b.vectors, b.offsets), None, instruction_set)
    np.testing.assert_allclose(found, definition(a, b), rtol=2e-6, atol=1e-5)


@given(st.integers(0, 2**32 - 1), LENGTHS, st.integers(1, 4))
def test_scores_do_not_depend_on_the_batch_or_the_threads(seed: int, lengths: list[int], threads: int) -> None:
    queries, documents = drawn(seed, [32, 5, 0, 40], 16), drawn(seed + 1, lengths * 4, 16)
    scores = maxsim(queries, documents, threads=1)
    assert np.array_equal(maxsim(queries, documents, threads=threads), scores)
    for i in range(len(queries)):
        for j in range(len(documents)):
            assert maxsim(queries[i], documents[j])[0, 0] == scores[i, j]
    pairs = maxsim_pairwise(queries, documents[:4], threads=threads)
    assert np.array_equal(pairs, np.diagonal(scores))
    means = maxsim(queries, documents, length_normalize=True)
    assert np.array_equal(means, scores / np.maximum(queries.lengths, 1)[:, None].astype(np.float32))


def test_thousands_of_documents_are_shared_among_threads() -> None:
    documents = drawn(3, [30, 5, 0, 17] * 700, 24)
    queries = drawn(4, [32, 9], 24)
    scores = maxsim(queries, documents, threads=1)
    assert np.array_equal(maxsim(queries, documents, threads=3), scores)
    np.testing.assert_allclose(scores, definition(queries, documents), rtol=2e-6, atol=1e-5)


def padded(texts: MultiVectors) -> tuple[Any, Any]:
    """The vectors in one array with rows of zeros, [n, longest, d], and the mask of those that are not padding."""
    mask = np.arange(texts.lengths.max()) < texts.lengths[:, None]
    array = np.zeros((*mask.shape, texts.width), np.float32)
    array[mask] = texts.vectors
    return array, mask


@given(st.integers(0, 2**32 - 1), LENGTHS, LENGTHS, st.booleans())
def test_padding_does_not_count(seed: int, queries: list[int], documents: list[int], normalize: bool) -> None:
    a, b = drawn(seed, queries, 8), drawn(seed + 1, documents, 8)
    # All products are negative, so that a product of 0 with a row of padding would be the greatest.
    a, b = MultiVectors(np.abs(a.vectors), a.offsets), MultiVectors(-np.abs(b.vectors) - 0.1, b.offsets)
    scores = maxsim(a, b, length_normalize=normalize)
    (x, x_mask), (y, y_mask) = padded(a), padded(b)
    assert np.array_equal(maxsim(x, y, length_normalize=normalize), scores)
    assert np.array_equal(maxsim(a, y.astype(np.float64), length_normalize=normalize), scores)
    if x.size and y.size:
        assert np.array_equal(maxsim(x[0], y[0], length_normalize=normalize), scores[:1, :1])
    # With a mask what is under it does not matter, and rows of zeros may count.
    x[~x_mask], y[~y_mask] = 7, 9
    lists = [list(row[:length]) for row, length in zip(x_mask, a.lengths, strict=True)]
    for one, other in ((x_mask, y_mask), (x_mask.astype(np.float32), y_mask.tolist()), (list(x_mask), y_mask)):
        assert np.array_equal(maxsim(x, y, one, other, length_normalize=normalize), scores)
    assert np.array_equal(maxsim(list(a), y, lists, y_mask, length_normalize=normalize), scores)
    count = min(len(a), len(b))
    pairs = maxsim_pairwise(x[:count], y[:count], x_mask[:count], y_mask[:count], length_normalize=normalize)
    assert np.array_equal(pairs, np.diagonal(scores))


def test_rows_of_zeros_count_where_they_are_no_padding() -> None:
    query, document = np.ones((1, 2), np.float32), np.array([[-1, -1], [0, 0]], np.float32)
    assert maxsim(query, document).tolist() == [[-2]]
    assert maxsim(query, document[None]).tolist() == [[-2]]
    assert maxsim(query, document, b_mask=[1, 1]).tolist() == [[0]]
    assert maxsim(query, [document]).tolist() == [[0]]
    assert maxsim(query, [document], b_mask=[[True, False]]).tolist() == [[-2]]
    assert maxsim(query, MultiVectors(document, [0, 2])).tolist() == [[0]]
    assert maxsim(query, np.zeros((2, 3, 2))).tolist() == [[-1e9, -1e9]]
    assert maxsim(np.zeros((1, 3, 2)), query, length_normalize=True).tolist() == [[0]]


@pytest.mark.parametrize(
    ("mask", "match"),
    [
        ([1], r"the mask of b has rows of shapes \[\(1,\)\], but the texts have \[2\] vectors"),
        ([[1, 1], [1, 1]], "the mask of b has rows of shapes"),
        (np.ones((1, 2, 2)), "the mask of b has rows of shapes"),
        ([0.5, 1], "must have booleans, or 0 and 1, not 0.5"),
        ([np.nan, 1], "must have booleans, or 0 and 1, not nan"),
        ("11", "the mask of b must be an array of numbers, not str"),
        (3, "the mask of b must be an array .* not int"),
        ([[1, 0], 1], "the mask of b has rows of shapes"),
    ],
)
def test_masks_that_do_not_fit_are_refused(mask: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        maxsim(np.ones((1, 2)), np.ones((2, 2)), b_mask=mask)


def test_empty_documents_and_queries() -> None:
    nothing, one = np.zeros((0, 3), np.float32), np.ones((2, 3), np.float32)
    assert maxsim([nothing, one], [one, nothing]).tolist() == [[0, -1e9], [6, -1e9]]
    means = maxsim([nothing, one], [one, nothing], length_normalize=True)
    assert means.tolist() == [[0, -1e9], [3, -5e8]]
    assert maxsim_pairwise([nothing, one], [nothing, one]).tolist() == [-1e9, 6]
    assert maxsim([], [one]).shape == (0, 1)
    assert maxsim([one], []).shape == (1, 0)
    assert maxsim_pairwise([], []).shape == (0,)


def test_one_text_and_padded_arrays_are_accepted() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 4, 8)), rng.standard_normal((3, 5, 8)).astype(np.float32)
    expected = np.einsum("ash,bth->abst", a, b).max(-1).sum(-1)
    np.testing.assert_allclose(maxsim(a, b), expected, rtol=1e-5)
    np.testing.assert_allclose(maxsim(a[0], list(b)), expected[:1], rtol=1e-5)
    np.testing.assert_allclose(maxsim_pairwise(list(a), b[:2]), np.diagonal(expected), rtol=1e-5)


@pytest.mark.parametrize(
    ("a", "b", "match"),
    [
        ([np.ones((2, 3))], [np.ones((2, 4))], "vectors of a have 3 numbers, those of b 4"),
        (["text"], [np.ones((2, 4))], r"a\[0\] must be an array \[tokens, d\]"),
        ("text", [np.ones((2, 4))], "a must be MultiVectors"),
        ([np.ones((2, 4))], [np.ones(4)], r"b\[0\] has the shape \[4\]"),
        ([np.ones((2, 4)), np.ones((2, 3))], [np.ones((1, 4))], r"a\[1\] has the shape \[2, 3\]"),
        (np.ones(3), [np.ones((2, 3))], "a must be MultiVectors"),
        (3, [np.ones((2, 3))], "a must be MultiVectors"),
    ],
)
def test_other_arguments_are_refused(a: Any, b: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        maxsim(a, b)


def test_pairs_need_equal_numbers() -> None:
    with pytest.raises(InputError, match="not 2 and 1"):
        maxsim_pairwise([np.ones((1, 2))] * 2, [np.ones((1, 2))])
    with pytest.raises(InputError, match="length_normalize must be True or False"):
        maxsim([np.ones((1, 2))], [np.ones((1, 2))], length_normalize=1)  # type: ignore[arg-type]


def test_token_vectors_are_a_sequence() -> None:
    vectors = drawn(1, [3, 0, 2, 5], 4)
    assert len(vectors) == 4
    assert [len(x) for x in vectors] == [3, 0, 2, 5]
    assert np.array_equal(vectors[-1], vectors.vectors[5:])
    assert vectors[1:3] == MultiVectors.from_list([vectors[1], vectors[2]])
    assert np.shares_memory(vectors[1:].vectors, vectors.vectors)
    assert vectors[[2, 0, 2]] == MultiVectors.from_list([vectors[2], vectors[0], vectors[2]])
    assert vectors[np.array([True, False, False, True])] == MultiVectors.from_list([vectors[0], vectors[3]])
    assert len(vectors[4:]) == 0
    assert pickle.loads(pickle.dumps(vectors)) == vectors
    assert repr(vectors) == "MultiVectors(4 texts, 10 vectors of 4)"
    assert "<td>5</td>" in vectors._repr_html_()
    with pytest.raises(IndexError):
        vectors[4]
    with pytest.raises(AttributeError, match="never changes"):
        vectors.vectors = np.ones(3)  # type: ignore[assignment]
    with pytest.raises(ValueError, match="read-only"):
        vectors.vectors[0] = 1


@pytest.mark.parametrize(
    ("vectors", "offsets", "match"),
    [
        (np.ones((3, 2)), [0, 2], "offsets must rise from 0 to 3"),
        (np.ones((3, 2)), [0, 2, 1, 3], "offsets must rise from 0 to 3"),
        (np.ones((3, 2)), [1, 3], "offsets must rise"),
        (np.ones(3), [0, 3], "must have shape"),
        (np.ones((3, 0)), [0, 3], "must have shape"),
        (np.ones((0, 2)), [], "must have shape"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(vectors: Any, offsets: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        MultiVectors(vectors, offsets)


def test_files_that_are_no_index_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read as token vectors"):
        MultiVectors.load(tmp_path)
    vectors = drawn(1, [3, 0, 2], 4)
    vectors.save(tmp_path / "x")
    np.save(tmp_path / "x" / "offsets.npy", np.array([0, 3]))
    with pytest.raises(InputError, match="offsets must rise from 0 to 5"):
        MultiVectors.load(tmp_path / "x")
    np.save(tmp_path / "x" / "vectors.npy", np.ones((5, 4)))
    with pytest.raises(InputError, match="expected float32 and int64"):
        MultiVectors.load(tmp_path / "x")
    (tmp_path / "x" / "vectors.npy").write_bytes(b"nothing")
    with pytest.raises(InputError, match="cannot be read as token vectors"):
        MultiVectors.load(tmp_path / "x")
