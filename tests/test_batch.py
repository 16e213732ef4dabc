"""Batches: flat and padded arrays, and that both equal the results of encoding one text after the other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import case_files
import strategies
import wordpiece_bert as wb
from small_tokenizer import TEXTS, TOKENS, tokenizer, with_file_settings
from wordpiece_bert.errors import InputError

# Settings of the file that the tests follow on purpose: its truncation, and a padding id that is not its token's.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*by the truncation that the tokenizer's file sets"),
    pytest.mark.filterwarnings("ignore:padding. pad_id is"),
]

PAIRS = [(a, b) for a in TEXTS[:4] for b in TEXTS[2:6]]
EVERYTHING: dict[str, Any] = {
    "return_offsets": True,
    "return_word_ids": True,
    "return_sequence_ids": True,
    "return_n_tokens": True,
}


def assert_agree(batch: wb.RaggedBatch, encodings: list[wb.Encoding], texts: list[wb.Encoding]) -> None:
    """Assert that the flat arrays are the rows' arrays, concatenated; `texts` are the rows that are not windows."""

    def flat(name: str) -> list[Any]:
        values = [value for encoding in encodings for value in getattr(encoding, name)]
        return [-1 if value is None else value for value in values]

    assert batch.to_list() == [encoding.ids for encoding in encodings]
    assert batch.lengths.tolist() == [len(encoding) for encoding in encodings]
    assert batch.truncated.tolist() == [encoding.truncated for encoding in texts]
    assert batch.offsets is not None
    assert list(map(tuple, batch.offsets.tolist())) == flat("offsets")
    assert batch.word_ids is not None
    assert batch.word_ids.tolist() == flat("word_ids")
    assert batch.sequence_ids is not None
    assert batch.sequence_ids.tolist() == flat("sequence_ids")
    assert batch.n_tokens is not None
    assert batch.n_tokens.tolist() == [encoding.n_tokens for encoding in texts]


# --- encode_batch


@pytest.mark.parametrize("items", [TEXTS, PAIRS, [*TEXTS, *PAIRS], []], ids=["texts", "pairs", "both", "none"])
@pytest.mark.parametrize("padding", [False, True])
def test_a_batch_equals_its_texts_one_by_one(items: list[Any], padding: bool) -> None:
    tok = tokenizer()
    encodings = tok.encodings(items, padding=padding)
    assert_agree(tok.encode_batch(items, padding=padding, **EVERYTHING), encodings, encodings)
    if not padding:
        assert encodings == [tok.encode(*item) if isinstance(item, tuple) else tok.encode(item) for item in items]


@given(strategies.cases())
def test_random_batches_equal_their_texts_one_by_one(case: dict[str, Any]) -> None:
    items = [(one["text"], one["pair"]) if "pair" in one else one["text"] for one in case["inputs"]]
    words = {isinstance(one[key], list) for one in case["inputs"] for key in ("text", "pair") if key in one}
    options: dict[str, Any] = {"add_special_tokens": case["add_special_tokens"], "is_split_into_words": words.pop()}
    try:
        tok = wb.Tokenizer.from_json(case_files.tokenizer_json(case))
    except InputError:
        return
    try:
        encodings = tok.encodings(items, **options)
    except InputError as error:
        # What one method refuses, the other refuses with the same message.
        with pytest.raises(InputError, match=re.escape(str(error))):
            tok.encode_batch(items, **options)
        return
    assert_agree(tok.encode_batch(items, **options, **EVERYTHING), encodings, encodings)
    windows = tok.encode_batch(items, **options, **EVERYTHING, return_overflowing_tokens=True)
    rows = [row for encoding in encodings for row in (encoding, *encoding.overflowing)]
    assert_agree(windows, rows, encodings)
    assert windows.overflow_to_sample is not None
    samples = [i for i, encoding in enumerate(encodings) for _ in (encoding, *encoding.overflowing)]
    assert windows.overflow_to_sample.tolist() == samples


def test_arrays_have_their_types_and_large_ones_are_not_copied() -> None:
    options: dict[str, Any] = {**EVERYTHING, "return_overflowing_tokens": True, "truncation": True, "max_length": 8}
    batch = tokenizer().encode_batch([*TEXTS, *["a"] * 4097], **options)
    types = {
        "ids": np.uint32,
        "row_offsets": np.int64,
        "offsets": np.int64,
        "word_ids": np.int32,
        "sequence_ids": np.int32,
        "overflow_to_sample": np.int64,
        "n_tokens": np.int64,
        "truncated": np.bool_,
    }
    for name, dtype in types.items():
        array = getattr(batch, name)
        assert array.dtype == dtype
        assert array.flags.c_contiguous
        assert not array.flags.owndata, f"{name} should be the core's own buffer"
    assert batch.offsets is not None
    assert batch.offsets.shape == (len(batch.ids), 2)


def test_fields_that_were_not_requested_are_none() -> None:
    batch = tokenizer().encode_batch(TEXTS)
    given = (batch.offsets, batch.word_ids, batch.sequence_ids, batch.overflow_to_sample, batch.n_tokens)
    assert given == (None,) * 5
    assert batch.truncated.tolist() == [False] * len(TEXTS)


def test_rows_of_a_batch() -> None:
    tok = tokenizer()
    batch = tok.encode_batch(["the cat", "a"])
    assert len(batch) == 2
    assert [row.tolist() for row in batch] == batch.to_list() == [tok.encode("the cat").ids, tok.encode("a").ids]
    assert batch[-1].tolist() == batch[1].tolist() == tok.encode("a").ids
    assert np.shares_memory(batch[0], batch.ids)
    for outside in (2, -3):
        with pytest.raises(IndexError, match=f"index {outside} is out of range for a batch of 2 rows"):
            batch[outside]
    assert repr(tok.encode_batch(["a b c", "a"], truncation=True, max_length=4, return_offsets=True)) == (
        "RaggedBatch(2 rows, 7 tokens, 1 texts truncated, offsets)"
    )


def test_no_texts_make_an_empty_batch() -> None:
    batch = tokenizer().encode_batch([], **EVERYTHING, return_overflowing_tokens=True)
    assert (len(batch), batch.to_list(), batch.row_offsets.tolist()) == (0, [], [0])
    assert batch.offsets is not None
    assert batch.offsets.shape == (0, 2)


def test_arrow_shares_the_memory() -> None:
    pytest.importorskip("pyarrow")
    batch = tokenizer().encode_batch(TEXTS)
    arrow = batch.to_arrow()
    assert arrow.to_pylist() == batch.to_list()
    assert str(arrow.type) == "large_list<item: uint32>"
    assert arrow.values.buffers()[1].address == batch.ids.ctypes.data


def test_items_may_be_pairs_of_either_kind() -> None:
    tok = tokenizer()
    expected = [tok.encode("a", "b").ids, tok.encode("a").ids]
    for items in ([("a", "b"), "a"], [["a", "b"], "a"]):
        assert tok.encode_batch(items).to_list() == expected
    words = [["new", "york"], (["new"], ["york"]), [["new", "cat"], []], []]
    encodings = tok.encodings(words, is_split_into_words=True)
    assert [encoding.n_sequences for encoding in encodings] == [1, 2, 2, 1]
    assert encodings[1].sequence_ids == [None, 0, None, 1, None]


# --- the call


def test_the_call_returns_model_inputs() -> None:
    inputs = tokenizer()(["the cat sat", "a"], padding=True)
    assert list(inputs) == ["input_ids", "token_type_ids", "attention_mask"]
    assert isinstance(inputs, Mapping)
    for array in inputs.values():
        assert array.dtype == np.int64
        assert array.shape == (2, 5)
        assert array.flags.c_contiguous
    assert inputs["input_ids"][1].tolist() == [2, TOKENS.index("a"), 3, 0, 0]
    assert inputs["attention_mask"].tolist() == [[1] * 5, [1, 1, 1, 0, 0]]
    assert inputs.input_ids is inputs["input_ids"]
    assert dict(**inputs).keys() == inputs.keys()
    assert inputs.truncated.tolist() == [False, False]
    with pytest.raises(AttributeError, match="no 'labels' in this BatchEncoding, which has input_ids"):
        _ = inputs.labels


def test_the_second_text_has_token_type_1() -> None:
    inputs = tokenizer()("the cat", "sat on")
    assert inputs["token_type_ids"].tolist() == [[0, 0, 0, 0, 1, 1, 1]]


def test_padded_to_8_the_mask_is_1_for_tokens() -> None:
    inputs = tokenizer()(["the cat", "a b c d e f"], padding="max_length", max_length=8)
    assert inputs["attention_mask"].tolist() == [[1] * 4 + [0] * 4, [1] * 8]
    assert inputs["input_ids"][0, 4:].tolist() == [0] * 4


@pytest.mark.parametrize("dtype", ["int32", np.int32, np.dtype("int64"), "i8"])
def test_arrays_can_have_another_type(dtype: npt.DTypeLike) -> None:
    inputs = tokenizer()(["the cat", "a"], padding=True, dtype=dtype, return_offsets_mapping=True, return_length=True)
    assert {array.dtype for array in inputs.values()} == {np.dtype(dtype)}


# 64 rows of 8 int64 numbers are 4 KiB, the most that is copied.
@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, 300])
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_arrays_are_the_lists_whether_they_are_copied_or_not(rows: int, dtype: npt.DTypeLike) -> None:
    texts = [TEXTS[i % len(TEXTS)] for i in range(rows)]
    options: dict[str, Any] = {"padding": "max_length", "truncation": True, "max_length": 8}
    options |= {"return_special_tokens_mask": True, "return_offsets_mapping": True}
    inputs = tokenizer()(texts, dtype=dtype, **options)
    lists = tokenizer()(texts, return_tensors=None, **options)
    assert list(inputs) == list(lists)
    for name, array in inputs.items():
        assert array.shape == (rows, 8 if rows else 0, 2)[: array.ndim]
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert array.tolist() == [list(map(list, row)) if array.ndim == 3 else row for row in lists[name]]


def test_an_id_that_does_not_fit_int32_is_refused() -> None:
    tok = wb.Tokenizer.from_vocab({"[UNK]": 0, "a": 3_000_000_000})
    assert tok("a")["input_ids"].tolist() == [[3_000_000_000]]
    with pytest.raises(InputError, match="input_ids has 3000000000, which does not fit int32"):
        tok("a", dtype="int32")


def test_rows_of_unequal_length_do_not_form_an_array() -> None:
    tok = tokenizer()
    with pytest.raises(InputError, match="rows of 3 to 5 tokens do not form an array: pass padding=True"):
        tok(["a", "the cat sat"])
    with pytest.raises(InputError, match="rows of 4 to 5 tokens"):
        tok(["a", "the cat sat"], padding="max_length", max_length=4)
    assert tok(["a", "b"])["input_ids"].shape == (2, 3)
    assert tok([])["input_ids"].shape == (0, 0)


def test_lists_on_request() -> None:
    tok = tokenizer()
    batch = tok(["a", "the cat"], return_tensors=None, return_offsets_mapping=True, return_length=True)
    assert batch["input_ids"] == [tok.encode("a").ids, tok.encode("the cat").ids]
    assert batch["offset_mapping"][1] == [(0, 0), (0, 3), (4, 7), (0, 0)]
    assert batch["length"] == [3, 4]
    single = tok("the cat", return_tensors=None)
    assert single["input_ids"] == tok.encode("the cat").ids
    windows = tok("a b c", return_tensors=None, truncation=True, max_length=4, return_overflowing_tokens=True)
    assert len(windows["input_ids"]) == 2


def test_all_fields_in_the_order_of_transformers() -> None:
    inputs = tokenizer()(
        ["a b c d", "e"],
        padding=True,
        truncation=True,
        max_length=5,
        stride=1,
        return_special_tokens_mask=True,
        return_offsets_mapping=True,
        return_length=True,
        return_overflowing_tokens=True,
    )
    assert list(inputs) == [
        *("input_ids", "token_type_ids", "attention_mask", "special_tokens_mask", "offset_mapping"),
        *("length", "overflow_to_sample_mapping"),
    ]
    assert inputs["overflow_to_sample_mapping"].tolist() == [0, 0, 1]
    assert inputs["input_ids"].shape == (3, 5)
    assert inputs["offset_mapping"].shape == (3, 5, 2)
    assert inputs["length"].tolist() == [5, 5, 5]
    assert inputs.truncated.tolist() == [True, True, False]
    assert inputs["special_tokens_mask"].tolist() == [[1, 0, 0, 0, 1], [1, 0, 0, 1, 1], [1, 0, 1, 1, 1]]
    fewer = tokenizer()("a", return_token_type_ids=False, return_attention_mask=False)
    assert list(fewer) == ["input_ids"]


def test_max_length_alone_truncates() -> None:
    tok = tokenizer()
    assert tok("a b c d", max_length=4)["input_ids"].shape == (1, 4)
    assert tok("a b c d", max_length=4, truncation=False)["input_ids"].shape == (1, 6)
    with pytest.warns(UserWarning, match="max_length=4 has no effect"):
        assert tok("a b c d", max_length=4, padding=True)["input_ids"].shape == (1, 6)  # as in transformers


def test_the_call_ignores_the_settings_of_the_file() -> None:
    tok = with_file_settings({"max_length": 4}, {"strategy": {"Fixed": 9}})
    assert tok("a b c d")["input_ids"].shape == (1, 6)
    with pytest.warns(UserWarning, match="truncation=True needs a max_length"):
        assert tok("a b c d", truncation=True)["input_ids"].shape == (1, 6)


def test_second_texts_may_be_a_separate_list() -> None:
    tok = tokenizer()
    expected = tok([("a", "b c"), ("d", "")], padding=True)
    found = tok(["a", "d"], ["b c", ""], padding=True)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
    with pytest.raises(InputError, match=r"batch length of `text`: 2 does not match batch length of `text_pair`: 1"):
        tok(["a", "d"], ["b"])


def test_words_may_be_one_text_or_a_batch() -> None:
    tok = tokenizer()
    one = tok(["new", "york"], is_split_into_words=True)["input_ids"]
    assert one.shape == (1, 4)
    many = tok([["new", "york"], ["the", "cat"]], is_split_into_words=True)["input_ids"]
    assert many.shape == (2, 4)
    np.testing.assert_array_equal(many[:1], one)
    pair = tok(["new"], ["york"], is_split_into_words=True)["input_ids"]
    assert pair.tolist() == [tok.encode("new", "york").ids]


@given(st.lists(strategies.texts, max_size=5), st.booleans())
def test_the_call_agrees_with_encodings(texts: list[str], left: bool) -> None:
    tok = tokenizer()
    side: Any = "left" if left else "right"
    options: dict[str, Any] = {"padding": True, "padding_side": side, "truncation": True, "max_length": 9}
    inputs = tok(texts, **options)
    encodings = tok.encodings(texts, **options)
    assert inputs["input_ids"].tolist() == [encoding.ids for encoding in encodings]
    assert inputs["token_type_ids"].tolist() == [encoding.token_type_ids for encoding in encodings]
    assert inputs["attention_mask"].tolist() == [encoding.attention_mask for encoding in encodings]
    assert inputs.truncated.tolist() == [encoding.truncated for encoding in encodings]


@given(st.lists(strategies.texts, min_size=1, max_size=5), st.integers(2, 12))
def test_padding_commutes_with_truncation(texts: list[str], length: int) -> None:
    """Truncation with padding equals truncation, then padding; and a truncated row is a prefix."""
    tok = tokenizer()
    both = tok(texts, padding="max_length", truncation=True, max_length=length)["input_ids"]
    cut = tok.encode_batch(texts, truncation=True, max_length=length)
    assert both.shape == (len(texts), length)
    for row, ids in zip(both, cut, strict=True):
        assert row[: len(ids)].tolist() == ids.tolist()
        assert set(row[len(ids) :].tolist()) <= {0}
    whole = tok.encode_batch(texts)
    for ids, all_ids in zip(cut, whole, strict=True):
        assert ids[:-1].tolist() == all_ids[: len(ids) - 1].tolist()
