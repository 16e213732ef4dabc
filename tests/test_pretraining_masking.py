"""Masks equal the masks of the slow reference, and of the worked examples, byte for byte."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pretraining_reference as reference
import wordpiece_bert as wb
from pretraining_folders import tokenizer, vocabulary
from test_pretraining_reference import TOKENS, cases
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.pretraining import Masking

rows = st.lists(st.integers(0, len(TOKENS) - 1), max_size=70)
u64 = st.integers(0, 2**64 - 1)
options = st.builds(
    reference.MaskOptions,
    probability=st.just(0.15) | st.floats(0, 1),
    unit_kind=st.sampled_from(["tokens", "words", "spans"]),
    max_predictions=st.none() | st.integers(1, 12),
    masked=st.floats(0, 0.5),
    random=st.floats(0, 0.5),
    span_probability=st.floats(0.01, 1),
    max_span_length=st.integers(1, 12),
)


def masking_of(tok: wb.Tokenizer, given_options: reference.MaskOptions) -> Masking:
    arguments = dict(vars(given_options))
    unit = arguments.pop("unit_kind")
    return Masking(tok, whole_words=unit == "words", spans=unit == "spans", **arguments)


@pytest.mark.parametrize("case", cases("masking"))
def test_the_worked_examples(case: dict[str, Any]) -> None:
    masking = masking_of(tokenizer(), reference.MaskOptions(**case["options"]))
    found = masking.rows(case["ids"], seed=case["seed"], epoch=case["epoch"], rows=case["row"])
    assert (found.input_ids.tolist(), found.labels.tolist()) == (case["input_ids"], case["labels"])


@pytest.mark.parametrize("prefix", ["##", "@@"])
@given(rows, options, u64, u64, st.integers(0, 2**63 - 1))
def test_masks_equal_the_reference(
    prefix: str, row: list[int], chosen: reference.MaskOptions, seed: int, epoch: int, number: int
) -> None:
    tok = tokenizer(prefix)
    expected = reference.mask_row(row, vocabulary(tok, prefix), chosen, seed, epoch, 0, number)
    found = masking_of(tok, chosen).rows(row, seed=seed, epoch=epoch, rows=number)
    assert (found.input_ids.tolist(), found.labels.tolist()) == expected[:2]


@given(rows, options, u64)
def test_added_tokens_are_ordinary_unless_they_are_special(
    row: list[int], chosen: reference.MaskOptions, seed: int
) -> None:
    # An added token that looks like a continuing piece continues no word: it is matched as a whole.
    tok = tokenizer().with_added_tokens(["zebra", "##added"]).with_added_tokens(["[NEW]"], special=True)
    row = [*row, len(TOKENS), len(TOKENS) + 1, len(TOKENS) + 2]
    found = masking_of(tok, chosen).rows(row, seed=seed, epoch=0, rows=0)
    assert (found.input_ids.tolist(), found.labels.tolist()) == reference.mask_row(
        row, vocabulary(tok), chosen, seed, 0, 0, 0
    )[:2]


def test_without_ordinary_tokens_none_becomes_random() -> None:
    tok = wb.Tokenizer.from_vocab(["[UNK]", "[MASK]", "a"]).with_added_tokens(["a"], special=True)
    ids = Masking(tok, probability=1.0, masked=0.0, random=1.0)([0, 1, 2], 0).input_ids
    assert ids.tolist() == [0, 1, 2]


@given(st.lists(rows, min_size=1, max_size=4), u64)
def test_a_row_is_masked_alike_in_any_batch(batch: list[list[int]], seed: int) -> None:
    masking = Masking(tokenizer(), probability=0.5, whole_words=True)
    length = max(map(len, batch))
    padded = np.array([row + [0] * (length - len(row)) for row in batch], np.int64).reshape(len(batch), length)
    numbers = [7 * i for i in range(len(batch))]
    found = masking.rows(padded, seed=seed, epoch=3, rows=numbers)
    for i, row in enumerate(batch):
        alone = masking.rows(row, seed=seed, epoch=3, rows=numbers[i])
        assert found.input_ids[i, : len(row)].tolist() == alone.input_ids.tolist()
        assert found.labels[i, : len(row)].tolist() == alone.labels.tolist()


def test_a_masking_is_pickled_with_its_options() -> None:
    masking = Masking(tokenizer(), spans=True, max_predictions=3, probability=0.4)
    row = list(range(5, 40))
    copy = pickle.loads(pickle.dumps(masking))
    assert copy(row, 5).labels.tolist() == masking(row, 5).labels.tolist()


def test_wrong_options_name_the_value() -> None:
    for arguments, message in [
        ({"spans": True, "whole_words": True}, "whole_words=True and spans=True exclude each other"),
        ({"spans": 1}, "spans must be True or False"),
        ({"span_probability": 0}, "span_probability must be above 0, not 0"),
        ({"span_probability": 2}, "span_probability must be between 0 and 1, not 2"),
        ({"max_span_length": 0}, "max_span_length must be a whole number from 1"),
    ]:
        with pytest.raises(InputError, match=message):
            Masking(tokenizer(), **arguments)
    empty = wb.Tokenizer.from_vocab([*TOKENS[:5], "a", "b"], continuing_subword_prefix="")
    with pytest.raises(ConfigError, match="continuing_subword_prefix is empty: use spans=False"):
        Masking(empty, spans=True)
    masking = Masking(tokenizer())
    for seed, epoch, numbers in [(-1, 0, 0), (0, -1, 0), (0, 0, [0, 1]), (0, 0, -1), (0, 0, 0.5), (2**64, 0, 0)]:
        with pytest.raises(InputError):
            masking.rows([5, 6], seed=seed, epoch=epoch, rows=numbers)
    with pytest.raises(InputError, match="seed must be a whole number from 0 to 18446744073709551615"):
        masking([5, 6], 2**64)
