"""Rows of a call that are equal are computed once, with the results, the order and the progress of all rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_files import MODELS, sentence_folder, with_tokenizer
from wordpiece_bert import BertModel
from wordpiece_bert._internal.batching import Distinct, Passes, distinct_rows, encoding_batches
from wordpiece_bert._internal.progress import observed
from wordpiece_bert._internal.recent import Recent
from wordpiece_bert.sentence import CrossEncoder, M3Encoder, MultiVectorEncoder, SentenceEncoder, SparseEncoder
from wordpiece_bert.sentence.dense.recent_rows import recent_vectors
from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch

TEXTS = ["the dog", "river", "the old house", "the dog", "", "river", "The dog", "water", "the dog"]


def ragged(rows: list[list[int]]) -> RaggedBatch:
    ends = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    ids = np.array([id_ for row in rows for id_ in row], np.uint32)
    return RaggedBatch(ids=ids, row_offsets=ends, truncated=np.zeros(len(rows), np.bool_))


some_rows = st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=4), max_size=12)


@given(some_rows, st.integers(1, 5), st.none() | st.integers(1, 9))
def test_passes_have_each_distinct_row_once_and_their_results_make_all_rows(
    rows: list[list[int]], size: int, tokens: int | None
) -> None:
    batch = ragged(rows)
    passes = Passes(batch, size, tokens)
    numbers = [np.arange(len(rows))[part] for part in passes.parts]
    computed = np.concatenate([np.zeros(0, np.intp), *numbers])
    assert sorted(map(tuple, (rows[i] for i in computed))) == sorted({*map(tuple, rows)})
    for part in numbers:
        assert len(part) <= size or tokens is not None
        assert tokens is None or len(part) == 1 or sum(len(rows[i]) for i in part) <= tokens
    order = passes.order()
    joined = [rows[i] for i in computed]
    assert (joined if order is None else [joined[i] for i in order]) == rows
    results = np.full((len(rows), 2), -1.0, np.float32)
    for part in passes.parts:
        results[part] = [[sum(rows[i]), len(rows[i])] for i in np.arange(len(rows))[part]]
    passes.repeat(results)
    assert results.tolist() == [[sum(row), len(row)] for row in rows]
    shared = [pair for part in numbers for pair in passes.sharing(part)]
    assert sorted(number for number, _ in shared) == list(range(len(rows)))
    for part in numbers:
        assert all(rows[part[place]] == rows[number] for number, place in passes.sharing(part))


@given(some_rows, st.integers(1, 5))
def test_reports_count_all_rows(rows: list[list[int]], size: int) -> None:
    seen: list[tuple[int, int, int]] = []
    with observed(lambda *report: seen.append(report)):
        list(Passes(ragged(rows), size).shown(show=False))
    assert sum(count for count, _, _ in seen) == len(rows)
    tokens = sum(map(len, rows))
    assert sum(count for _, count, _ in seen) == tokens
    assert all(total == tokens for _, _, total in seen)


def test_rows_that_differ_in_what_is_visible_are_distinct() -> None:
    batch = ragged([[1, 2], [1, 2], [1, 2]])
    assert distinct_rows(batch).first.tolist() == [0, 0, 0]
    assert distinct_rows(batch, np.array([1, 2, 1])).first.tolist() == [0, 1, 0]
    # The same numbers, divided otherwise.
    assert not distinct_rows(ragged([[1, 2], [1], [2]])).has_repeats


class Pair:
    def __init__(self, ids: list[int], types: list[int]) -> None:
        self.ids, self.token_type_ids = ids, types

    def __len__(self) -> int:
        return len(self.ids)


def test_encodings_with_other_token_types_are_distinct() -> None:
    pairs = [Pair([1, 2], [0, 0]), Pair([1, 2], [0, 1]), Pair([1, 2], [0, 0]), Pair([3], [0])]
    [batch] = encoding_batches(pairs, 8)
    assert batch.inputs["input_ids"].tolist() == [[1, 2], [1, 2], [3, 0]]
    assert batch.inputs["token_type_ids"].tolist() == [[0, 0], [0, 1], [0, 0]]
    assert dict(zip(batch.encodings.tolist(), batch.rows.tolist(), strict=True)) == {0: 0, 2: 0, 1: 1, 3: 2}
    assert batch.tokens == 7
    assert Distinct([]).rows.tolist() == []


def dense(parent: Path) -> SentenceEncoder:
    return SentenceEncoder(sentence_folder("sentence_cls_dense_normalize", parent))


#: An encoder, and its outputs as lists of arrays for each text.
CALLS: dict[str, tuple[Callable[[Path], Any], Callable[[Any, list[str]], list[list[Any]]]]] = {
    "dense": (dense, lambda encoder, texts: [[x] for x in encoder.encode(texts)]),
    "windows": (dense, lambda encoder, texts: [[x] for x in encoder.encode(texts, windows="mean", max_length=4)]),
    "tokens": (dense, lambda encoder, texts: [[x] for x in encoder.encode(texts, output_value="token_embeddings")]),
    "sparse": (
        lambda _: SparseEncoder(MODELS / "splade_max"),
        lambda encoder, texts: [
            [x.indices, x.values] for x in map(encoder.encode(texts).__getitem__, range(len(texts)))
        ],
    ),
    "query": (
        lambda _: MultiVectorEncoder(MODELS / "colbert_st"),
        lambda encoder, texts: [[x] for x in encoder.encode_query(texts)],
    ),
    "document": (
        lambda _: MultiVectorEncoder(MODELS / "colbert_st"),
        lambda encoder, texts: [[x] for x in encoder.encode_document(texts)],
    ),
    "m3": (
        lambda _: M3Encoder(MODELS / "m3_colbert_dim"),
        lambda encoder, texts: [
            [x.dense[i], x.sparse[i].values, x.colbert[i]] for x in [encoder.encode(texts)] for i in range(len(texts))
        ],
    ),
    "pairs": (
        lambda parent: CrossEncoder(with_tokenizer("cross_encoder_score", parent)),
        lambda encoder, texts: [[x] for x in encoder.predict([("a dog", text) for text in texts], batch_size=2)],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_each_text_alone_bit_for_bit(name: str, tmp_path: Path) -> None:
    make, call = CALLS[name]
    encoder = make(tmp_path)
    alone = [call(encoder, [text])[0] for text in TEXTS]
    rows: list[int] = []
    with observed(lambda count, *_: rows.append(count)):
        together = call(encoder, TEXTS)
    assert len(together) == len(TEXTS)
    assert sum(rows) >= len(TEXTS)  # windows are more rows than texts
    if name != "windows":
        assert sum(rows) == len(TEXTS)
    for one, other in zip(alone, together, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b, strict=True)
    arrays = [array for row in together for array in row if isinstance(array, np.ndarray)]
    if name == "tokens":  # what one text has can be changed without the others
        assert not any(np.shares_memory(a, b) for a, b in itertools.combinations(arrays, 2))


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The ids of all rows that go through `BertModel.pooled`."""
    seen: list[bytes] = []
    pooled = BertModel.pooled

    def counted(self: Any, rows: Any, part: Any, *more: Any) -> Any:
        seen.extend(rows[int(i)].tobytes() for i in np.arange(len(rows))[part])
        return pooled(self, rows, part, *more)

    monkeypatch.setattr(BertModel, "pooled", counted)
    return seen


def ids_of(encoder: Any, texts: list[str]) -> set[tuple[int, ...]]:
    return {tuple(encoder.tokenizer.encode(text).ids) for text in texts}


def test_each_distinct_row_goes_through_the_model_once(tmp_path: Path, computed: list[bytes]) -> None:
    encoder = dense(tmp_path)
    encoder.encode(TEXTS)
    assert len(computed) == len(set(computed)) == len(ids_of(encoder, TEXTS)) < len(TEXTS)


def test_calls_that_share_a_table_compute_a_row_once(tmp_path: Path, computed: list[bytes]) -> None:
    encoder = dense(tmp_path)
    expected = encoder.encode(TEXTS)
    other_prompt = encoder.encode(TEXTS, prompt="a ")
    computed.clear()
    table, reports = Recent(1 << 20), []
    with recent_vectors(table), observed(lambda *report: reports.append(report)):
        found = [encoder.encode(TEXTS[start : start + 2]) for start in range(0, len(TEXTS), 2)]
        assert len(computed) == len(set(computed)) == len(ids_of(encoder, TEXTS))
        np.testing.assert_array_equal(encoder.encode(TEXTS, prompt="a "), other_prompt)
    np.testing.assert_array_equal(np.concatenate(found), expected)
    assert sum(rows for rows, _, _ in reports) == 2 * len(TEXTS)
    assert 0 < table.size <= table.most


def test_a_table_keeps_what_was_used_last_in_bounded_memory() -> None:
    table = Recent(3 * 500)
    for key in "abc":
        table.keep(key, key.upper(), 100)
    assert (table.size, table.get("a")) == (1500, "A")
    table.keep("d", "D", 100)
    assert [table.get(key) for key in "abcd"] == ["A", None, "C", "D"]
    table.keep("e", "E", 5000)  # larger than the table
    assert table.get("e") is None
    assert table.size == 1500


def test_a_column_of_a_dictionary_has_each_of_its_texts_computed_once(tmp_path: Path, computed: list[bytes]) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from wordpiece_bert.integrations.arrow import embed

    encoder = dense(tmp_path)
    column = pyarrow.array([*TEXTS, None]).dictionary_encode()
    found = embed(pyarrow.table({"text": column}), "text", encoder)
    assert len(computed) == len(ids_of(encoder, TEXTS))
    vectors = np.array(found["vector"].to_pylist()[:-1], np.float32)
    np.testing.assert_array_equal(vectors, encoder.encode(TEXTS))
    assert found["vector"].to_pylist()[-1] is None
