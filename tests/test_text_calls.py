"""Normalized texts, words, counts of tokens, and texts that are cut where tokens end."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wordpiece_bert import Tokenizer
from wordpiece_bert.errors import InputError

tokenizers = pytest.importorskip("tokenizers")
Reference = tokenizers.Tokenizer
VOCAB = [
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[PAD]",
    "[MASK]",
    "a",
    "b",
    "##a",
    "##b",
    "ab",
    "e",
    "##e",
    "中",
    ".",
    "'",
    "1",
    "##1",
]
TEXTS = st.text(st.sampled_from("aAbB éÉe中文.'1\t\n\u0301\u200bß İΣς[MASK]<x>😀")) | st.text()


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_vocab(VOCAB).with_added_tokens(["<x>"])


@pytest.fixture(scope="module")
def reference(tokenizer: Tokenizer) -> Any:
    return Reference.from_str(tokenizer.to_json())


@given(text=TEXTS)
def test_normalize_equals_the_normalizer_of_tokenizers(tokenizer: Tokenizer, reference: Any, text: str) -> None:
    assert tokenizer.normalize(text) == reference.normalizer.normalize_str(text)


@given(text=TEXTS.filter(lambda text: "<" not in text and "[" not in text))
def test_words_and_their_places_are_those_of_tokenizers(tokenizer: Tokenizer, reference: Any, text: str) -> None:
    expected = tokenizers.PreTokenizedString(text)
    expected.normalize(reference.normalizer.normalize)
    reference.pre_tokenizer.pre_tokenize(expected)
    words = [(word, *place) for word, place, _ in expected.get_splits("original", "char")]
    assert [tuple(word) for word in tokenizer.pre_tokenize(text)] == words


def test_an_added_token_is_a_word(tokenizer: Tokenizer) -> None:
    words = tokenizer.pre_tokenize("Ab<x>É [MASK].")
    assert [tuple(word) for word in words] == [
        ("ab", 0, 2), ("<x>", 2, 5), ("e", 5, 6), ("[MASK]", 7, 13), (".", 13, 14),
    ]  # fmt: skip


@given(texts=st.lists(TEXTS, max_size=5), special=st.booleans())
def test_counts_are_the_lengths_of_ids(tokenizer: Tokenizer, texts: list[str], special: bool) -> None:
    expected = [len(tokenizer.encode(text, add_special_tokens=special).ids) for text in texts]
    counts = tokenizer.count_tokens(texts, add_special_tokens=special)
    assert counts.dtype == np.int64
    assert counts.tolist() == expected
    for text, count in zip(texts, expected, strict=True):
        assert tokenizer.count_tokens(text, add_special_tokens=special) == count


def test_counts_ignore_the_settings_of_a_tokenizer(tokenizer: Tokenizer) -> None:
    short = tokenizer.with_truncation(max_length=3).with_padding("max_length", max_length=9)
    assert short.count_tokens(["a b ab a", "a"]).tolist() == [4, 1]
    assert short.truncate_text("a b ab a", 3) == "a b ab"
    assert [part.text for part in short.split_text("a b ab a", 3)] == ["a b ab", "a"]
    assert short.build_inputs_with_special_tokens([5, 6, 5, 6]) == [1, 5, 6, 5, 6, 2]


@given(text=TEXTS, count=st.integers(0, 6))
def test_a_text_is_cut_after_a_token(tokenizer: Tokenizer, text: str, count: int) -> None:
    offsets = tokenizer.encode(text, add_special_tokens=False).offsets
    found = tokenizer.truncate_text(text, count)
    if len(offsets) <= count:
        assert found == text
    else:
        assert found == text[: offsets[count - 1][1] if count else 0]


@given(text=TEXTS, data=st.data())
def test_parts_have_all_tokens_and_overlap(tokenizer: Tokenizer, text: str, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 5))
    overlap = data.draw(st.integers(0, size - 1))
    offsets = tokenizer.encode(text, add_special_tokens=False).offsets
    parts = tokenizer.split_text(text, size, overlap)
    assert [part.text for part in parts] == [text[part.start : part.end] for part in parts]
    seen: list[int] = []
    for number, part in enumerate(parts):
        start = number * (size - overlap)
        mine = list(range(start, min(start + size, len(offsets))))
        assert (part.start, part.end) == (offsets[mine[0]][0], offsets[mine[-1]][1])
        assert set(mine) - set(seen), "a part has a token that none before it has"
        seen += mine
    assert sorted(set(seen)) == list(range(len(offsets)))


@given(text=st.text(st.sampled_from("abcd 한A.\u0301"), max_size=40), size=st.integers(1, 6), data=st.data())
@example("bcda bcda", 2, None)
@example("한 한", 1, None)
def test_a_part_by_itself_has_no_more_tokens_than_asked_for(text: str, size: int, data: st.DataObject | None) -> None:
    # "cda" is a token within a word alone, and "한" is three tokens of one character.
    tokens = ["##a", "##b", "##c", "##d", "##cda", "\u1112", "##\u1161", "##\u11ab"]
    uneven = Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", *"abcd.", *tokens])
    overlap = data.draw(st.integers(0, size - 1)) if data else 0
    parts = uneven.split_text(text, size, overlap)
    assert all(uneven.count_tokens(part.text) <= size or part.text == "한" for part in parts)
    assert all(one.start < other.start and one.end < other.end for one, other in itertools.pairwise(parts))
    covered = {i for part in parts for i in range(part.start, part.end)}
    offsets = uneven.encode(text, add_special_tokens=False).offsets
    assert {i for start, end in offsets for i in range(start, end)} <= covered
    cut = uneven.truncate_text(text, size)
    assert text.startswith(cut)
    assert uneven.count_tokens(cut) <= size


@given(first=st.lists(st.integers(0, 17)), second=st.none() | st.lists(st.integers(0, 17)))
def test_rows_are_built_as_in_transformers(tokenizer: Tokenizer, first: list[int], second: list[int] | None) -> None:
    expected = [1, *first, 2] + ([] if second is None else [*second, 2])
    assert tokenizer.build_inputs_with_special_tokens(first, second) == expected


def test_rows_follow_the_template_of_a_file(tokenizer: Tokenizer, reference: Any) -> None:
    from tokenizers.processors import TemplateProcessing

    reference.add_tokens([tokenizers.AddedToken("<y>")])
    reference.post_processor = TemplateProcessing(
        single="[SEP] $A",
        pair="$B:1 [SEP] [MASK] $A:0 [CLS]",
        special_tokens=[("[SEP]", 2), ("[MASK]", 4), ("[CLS]", 1)],
    )
    other = Tokenizer.from_json(reference.to_str())
    assert other.build_inputs_with_special_tokens([5, 6]) == [2, 5, 6]
    assert other.build_inputs_with_special_tokens([5, 6], [7]) == [7, 2, 4, 5, 6, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.normalize(3), "a text is a str"),
        (lambda t: t.pre_tokenize(["a"]), "a text is a str"),
        (lambda t: t.normalize("a\ud800"), "surrogate"),
        (lambda t: t.count_tokens(["a", 3]), "item 1 is int 3"),
        (lambda t: t.truncate_text("a", -1), "max_tokens"),
        (lambda t: t.truncate_text(3, 1), "str"),
        (lambda t: t.split_text("a", 0), "max_tokens"),
        (lambda t: t.split_text("a", 3, 3), "overlap"),
        (lambda t: t.split_text(["a"], 3), "str"),
        (lambda t: t.build_inputs_with_special_tokens([1, 99]), "token_ids_0: 99 is not the id"),
        (lambda t: t.build_inputs_with_special_tokens([1], [-1]), "token_ids_1"),
        (lambda t: t.build_inputs_with_special_tokens([1.5]), "token_ids_0"),
    ],
)
def test_wrong_arguments_are_named(tokenizer: Tokenizer, call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(tokenizer)
