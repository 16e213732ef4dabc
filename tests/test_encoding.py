"""An encoding: its lists, its windows and its lookup methods."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import case_files
import strategies
import wordpiece_bert as wb
from small_tokenizer import TEXTS, fields, tokenizer, with_file_settings
from wordpiece_bert.errors import InputError

# A file's truncation warns where it cuts, and a padding whose id is not its token's warns on loading: these cases
# follow files on purpose.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*by the truncation that the tokenizer's file sets"),
    pytest.mark.filterwarnings("ignore:padding. pad_id is"),
]


LISTS = (
    "ids",
    "tokens",
    "offsets",
    "word_ids",
    "sequence_ids",
    "token_type_ids",
    "attention_mask",
    "special_tokens_mask",
)


@given(strategies.cases())
def test_all_lists_have_one_entry_per_token(case: dict[str, Any]) -> None:
    for encoding in encoded(case):
        pending = [encoding]
        while pending:
            row = pending.pop()
            assert {len(getattr(row, name)) for name in LISTS} == {len(row)}
            assert row.type_ids == row.token_type_ids
            pending += row.overflowing


def encoded(case: dict[str, Any]) -> list[wb.Encoding]:
    """The encodings of a generated case, or none if it is refused."""
    items = [(one["text"], one["pair"]) if "pair" in one else one["text"] for one in case["inputs"]]
    words = {isinstance(one[key], list) for one in case["inputs"] for key in ("text", "pair") if key in one}
    if len(words) > 1:
        return []
    try:
        tok = wb.Tokenizer.from_json(case_files.tokenizer_json(case))
        return tok.encodings(items, is_split_into_words=words.pop(), add_special_tokens=case["add_special_tokens"])
    except InputError as error:
        known = ("stride", "too short", "not provided", "normalizer turns it into nothing")
        if not any(part in str(error) for part in known):
            raise
        return []


@given(strategies.texts)
def test_offsets_slice_to_the_surface_form(text: str) -> None:
    enc = tokenizer().encode(text)
    last = 0
    for token, (start, stop), word in zip(enc.tokens, enc.offsets, enc.word_ids, strict=True):
        if word is None:
            assert (start, stop) == (0, 0)
            continue
        assert 0 <= start <= stop <= len(text)
        assert last <= start, "tokens stand in the order of the text"
        last = start
        surface = text[start:stop]
        if surface.isascii() and surface.isalnum():
            assert token in ("[UNK]", surface.lower(), f"##{surface.lower()}")


@given(strategies.texts)
def test_units_of_offsets_mean_the_same_positions(text: str) -> None:
    tok = tokenizer()
    chars = tok.encode(text).offsets
    raw, utf16 = text.encode(), text.encode("utf-16-le")
    for (a, b), (c, d), (e, f) in zip(
        chars, tok.encode(text, offset_unit="byte").offsets, tok.encode(text, offset_unit="utf16").offsets, strict=True
    ):
        assert text[a:b] == raw[c:d].decode() == utf16[2 * e : 2 * f].decode("utf-16-le")


def test_special_tokens_have_none_for_words_and_sequences() -> None:
    enc = tokenizer().encode("unwanted", "cat", padding="max_length", max_length=9)
    assert " ".join(enc.tokens) == "[CLS] un ##want ##ed [SEP] cat [SEP] [PAD] [PAD]"
    assert enc.word_ids == [None, 0, 0, 0, None, 0, None, None, None]
    assert enc.sequence_ids == [None, 0, 0, 0, None, 1, None, None, None]
    assert enc.token_type_ids == [0, 0, 0, 0, 0, 1, 1, 0, 0]
    assert enc.attention_mask == [1] * 7 + [0] * 2
    assert enc.special_tokens_mask == [1, 0, 0, 0, 1, 0, 1, 1, 1]
    assert enc.offsets == [(0, 0), (0, 2), (2, 6), (6, 8), (0, 0), (0, 3), (0, 0), (0, 0), (0, 0)]
    assert enc.n_sequences == 2


def test_an_encoding_reports_truncation() -> None:
    tok = tokenizer()
    whole = tok.encode("a b c d e")
    assert (whole.truncated, whole.n_tokens, whole.overflowing) == (False, 7, [])
    cut = tok.encode("a b c d e", truncation=True, max_length=4, padding="max_length")
    assert (cut.truncated, cut.n_tokens, len(cut)) == (True, 7, 4)
    assert [window.tokens for window in cut.overflowing] == [
        ["[CLS]", "c", "d", "[SEP]"],
        ["[CLS]", "e", "[SEP]", "[PAD]"],
    ]
    fits = tok.encode("a b", truncation=True, max_length=4)
    assert (fits.truncated, fits.n_tokens) == (False, 4)


def test_windows_of_a_pair_are_nested_as_in_the_reference() -> None:
    enc = tokenizer().encode("a b c", "d e f", truncation=True, max_length=6)
    assert [(" ".join(w.tokens), len(w.overflowing)) for w in enc.overflowing] == [
        ("[CLS] b [SEP] d e [SEP]", 1),
        ("[CLS] b [SEP] f [SEP]", 0),
        ("[CLS] c [SEP] d e [SEP]", 1),
        ("[CLS] c [SEP] f [SEP]", 0),
        ("[CLS] a [SEP] f [SEP]", 2),
    ]
    assert " ".join(enc.overflowing[4].overflowing[1].tokens) == "[CLS] c [SEP] f [SEP]"


def test_windows_are_computed_on_demand() -> None:
    """The windows of a long pair are the product of both texts' windows, too many to hold in memory."""
    enc = tokenizer().encode("a b c " * 50_000, "d e f " * 50_000, truncation=True, max_length=7)
    assert enc.tokens == ["[CLS]", "a", "b", "[SEP]", "d", "e", "[SEP]"]
    assert (enc.truncated, enc.n_tokens) == (True, 300_003)
    assert repr(enc) == "Encoding(7 tokens: [CLS] a b [SEP] d e [SEP]; cut from 300003)"


@pytest.mark.parametrize(
    "padding", [{}, {"padding": True}, {"padding": True, "pad_to_multiple_of": 8}, {"padding": "max_length"}]
)
def test_windows_of_a_batch_are_padded_like_its_rows(padding: dict[str, Any]) -> None:
    tok = tokenizer()
    texts = ["a b c d e", "the cat", ("a b c", "d e f g")]
    options: dict[str, Any] = {"truncation": True, "max_length": 6, "stride": 0, **padding}
    rows = [row.ids for enc in tok.encodings(texts, **options) for row in (enc, *enc.overflowing)]
    assert rows == tok.encode_batch(texts, return_overflowing_tokens=True, **options).to_list()


def test_lookup_methods() -> None:
    enc = tokenizer().encode("unwanted cats", "the mat")
    assert " ".join(enc.tokens) == "[CLS] un ##want ##ed cat ##s [SEP] the mat [SEP]"
    assert [enc.char_to_token(i) for i in range(14)] == [1, 1, 2, 2, 2, 2, 3, 3, None, 4, 4, 4, 5, None]
    assert [enc.char_to_token(i, 1) for i in (0, 3, 4, 99, 2**63)] == [7, None, 8, None, None]
    assert (enc.char_to_word(7), enc.char_to_word(12), enc.char_to_word(4, sequence_index=1)) == (0, 1, 1)
    assert (enc.token_to_chars(3), enc.token_to_chars(8), enc.token_to_chars(0), enc.token_to_chars(99)) == (
        (6, 8),
        (4, 7),
        None,
        None,
    )
    assert (enc.token_to_word(3), enc.token_to_word(8), enc.token_to_word(0)) == (0, 1, None)
    assert (enc.token_to_sequence(5), enc.token_to_sequence(7), enc.token_to_sequence(6)) == (0, 1, None)
    assert (enc.word_to_tokens(0), enc.word_to_tokens(1, 1), enc.word_to_tokens(9)) == ((1, 4), (8, 9), None)
    assert (enc.word_to_chars(0), enc.word_to_chars(1, sequence_index=1), enc.word_to_chars(9)) == (
        (0, 8),
        (4, 7),
        None,
    )


QUESTIONS: list[Callable[[Any, int, int], object]] = [
    lambda enc, i, s: enc.char_to_token(i, s),
    lambda enc, i, s: enc.char_to_word(i, s),
    lambda enc, i, s: enc.word_to_tokens(i, s),
    lambda enc, i, s: enc.word_to_chars(i, s),
    lambda enc, i, s: enc.token_to_chars(i),
    lambda enc, i, s: enc.token_to_word(i),
    lambda enc, i, s: enc.token_to_sequence(i),
]


@given(st.sampled_from(TEXTS), st.sampled_from([None, *TEXTS]), st.sampled_from([None, 5, 9]))
def test_lookup_methods_match_the_reference(first: str, second: str | None, max_length: int | None) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    settings = None if max_length is None else {"max_length": max_length}
    tok = with_file_settings(settings, {"strategy": {"Fixed": 12}})
    peer = tokenizers.Tokenizer.from_str(tok.to_json())
    mine, other = tok.encode(first, second), peer.encode(first, second)
    pending = [(mine, other)]
    while pending:
        mine, other = pending.pop()
        pending += zip(mine.overflowing, other.overflowing, strict=True)
        assert mine.n_sequences == other.n_sequences
        for ask, i, sequence in itertools.product(QUESTIONS, range(15), (0, 1)):
            if sequence < other.n_sequences or ask in QUESTIONS[4:]:
                assert ask(mine, i, sequence) == ask(other, i, sequence), (mine, i, sequence)


@pytest.mark.parametrize(
    "question", ["char_to_token", "token_to_chars", "token_to_word", "token_to_sequence", "word_to_chars"]
)
@pytest.mark.parametrize("index", [-1, "0", None, 1.0])
def test_lookups_with_invalid_arguments_are_refused(question: str, index: object) -> None:
    enc = tokenizer().encode("cat")
    with pytest.raises(InputError, match=r"(char_pos|token_index|word_index) is .*expected a whole number, 0 or more"):
        getattr(enc, question)(index)
    with pytest.raises(InputError, match="sequence_index"):
        enc.char_to_token(0, -1)


def test_lists_are_copies() -> None:
    enc = tokenizer().encode("cat")
    enc.ids.append(0)
    enc.offsets.clear()
    assert (len(enc.ids), len(enc.offsets)) == (3, 3)
    with pytest.raises(AttributeError):
        enc.ids = []  # type: ignore[misc]


@pytest.mark.parametrize(
    "use",
    [
        list,
        tuple,
        sorted,
        lambda enc: enc[0],
        lambda enc: enc[:2],
        lambda enc: [*enc],
        lambda enc: 3 in enc,
        np.array,
        np.asarray,
        np.stack,
        lambda enc: np.array([enc, enc]),
        lambda enc: np.array(enc, np.int64),
    ],
)
def test_an_encoding_used_as_a_list_points_to_its_ids(use: Callable[[wb.Encoding], object]) -> None:
    with pytest.raises(InputError, match=r"an Encoding is not an? (list|array): use .*encoding\.ids") as raised:
        use(tokenizer().encode("the cat"))
    assert isinstance(raised.value, TypeError)


def test_encodings_can_be_items_of_lists_and_arrays() -> None:
    one, two = tokenizer().encodings(["the cat", "a b"])
    array = np.array([one, two], dtype=object)
    assert array.shape == (2,)
    assert array[1] is two
    assert two in [one, two]
    assert copy.copy(one) == one
    column = pytest.importorskip("pandas").Series([one, two])
    assert column[0] is one


def test_encodings_with_equal_contents_are_equal() -> None:
    tok = tokenizer()
    assert tok.encode("the cat") == tok.encode("the cat")
    assert tok.encode("the cat") != tok.encode("the  cat")
    cut = tok.encode("a b c d", truncation=True, max_length=4)
    assert cut.overflowing == cut.overflowing
    assert cut.overflowing[0] != cut
    assert cut != "cut"


def test_a_window_outlives_its_row() -> None:
    window = tokenizer().encode("a b c d", truncation=True, max_length=4).overflowing[0]
    assert window.tokens == ["[CLS]", "c", "d", "[SEP]"]
    assert fields(window)["truncated"]


def test_repr() -> None:
    tok = tokenizer()
    assert repr(tok.encode("the cat")) == "Encoding(4 tokens: [CLS] the cat [SEP])"
    cut = tok.encode("a b c d", truncation=True, max_length=4)
    assert repr(cut) == "Encoding(4 tokens: [CLS] a b [SEP]; cut from 6)"
    assert repr(tok.encode("a " * 20)).endswith("a a …)")
