"""Chunks of texts: their sizes, overlaps and places, against the rules and a slow computation."""

from __future__ import annotations

import itertools
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wordpiece_bert import Tokenizer
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.dividing import token_counts
from wordpiece_bert.vectors.chunking import Chunking, spans_of, token_borders

#: Letters whose tokens are the same wherever a word is cut.
LETTERS = st.text(alphabet=st.sampled_from("ab ,.!?\n。„“”)A1é"), max_size=80)


@cache
def tokenizer() -> Tokenizer:
    return Tokenizer.from_vocab(
        ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "a", "##a", "b", "##b", "ab", ".", ",", "1", "##1"]
    )


def chunks_of(text: str, chunking: Chunking) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The chunks of a text, and its tokens, by their places in it."""
    borders = token_borders(tokenizer(), [text], None)
    (spans,) = spans_of([text], borders, chunking, token_counts(tokenizer(), "", None))
    return [tuple(span) for span in spans.tolist()], [tuple(token) for token in borders[0].tolist()]  # type: ignore[misc]


@given(LETTERS, st.integers(1, 7), st.integers(0, 6))
def test_windows_of_tokens(text: str, size: int, overlap: int) -> None:
    overlap = min(overlap, size - 1)
    chunks, tokens = chunks_of(text, Chunking(size, overlap))
    expected = []
    start = 0
    while True:
        window = tokens[start : start + size]
        if window:
            expected.append((window[0][0], window[-1][1]))
        if start + size >= len(tokens):
            break
        start += size - overlap
    assert chunks == (expected or [(0, len(text))])


@given(LETTERS, st.integers(1, 9), st.integers(0, 8))
@example("a b. a b. a b.", 4, 2)
def test_sentences_are_kept_together(text: str, size: int, overlap: int) -> None:
    overlap = min(overlap, size - 1)
    chunks, tokens = chunks_of(text, Chunking(size, overlap, "sentences"))
    if not tokens:
        assert chunks == [(0, len(text))]
        return
    places = [[i for i, token in enumerate(tokens) if start <= token[0] and token[1] <= end] for start, end in chunks]
    assert all(0 < len(place) <= size and place == list(range(place[0], place[-1] + 1)) for place in places)
    assert {i for place in places for i in place} == set(range(len(tokens)))  # nothing is lost
    for before, after in itertools.pairwise(places):
        assert before[0] < after[0]
        assert before[-1] < after[-1]
        assert before[-1] - after[0] + 1 <= overlap


@pytest.mark.parametrize(
    ("text", "size", "overlap", "expected"),
    [
        ("a b. a b a. b.", 4, 0, ["a b.", "a b a.", "b."]),
        ("a b. a b a. b.", 7, 0, ["a b. a b a.", "b."]),
        ("a b. a. b b b.", 7, 2, ["a b. a.", "a. b b b."]),
        ("a a a a a a a. b.", 3, 0, ["a a a", "a a a", "a.", "b."]),
        ("a? (b!) „b.“ a", 4, 0, ["a?", "(b!)", "„b.“", "a"]),
        ("a b。a b", 3, 0, ["a b。", "a b"]),
        ("a b\n\na b", 3, 0, ["a b", "a b"]),
        ("a 1.1 b", 9, 0, ["a 1.1 b"]),
    ],
)
def test_sentences_end_where_readers_see_it(text: str, size: int, overlap: int, expected: list[str]) -> None:
    chunks, _ = chunks_of(text, Chunking(size, overlap, "sentences"))
    assert [text[start:end] for start, end in chunks] == expected


@given(
    st.text(st.sampled_from("abcde 한각.\u00ad\u0301A"), max_size=60),
    st.integers(1, 7),
    st.integers(0, 6),
    st.sampled_from(["tokens", "sentences"]),
    st.sampled_from(["", "b: ", "ab"]),
)
@example("한각 a", 2, 1, "tokens", "")
@example("bcde bcde", 2, 0, "tokens", "")
def test_a_chunk_by_itself_has_no_more_tokens_than_asked_for(
    text: str, size: int, overlap: int, by: str, prompt: str
) -> None:
    # Words that are cut have more tokens: "cde" is a token within a word alone, and "한" is three tokens.
    vocabulary = ["[UNK]", "[CLS]", "[SEP]", *"abcde.:", *(f"##{letter}" for letter in "abcde"), "##cde"]
    vocabulary += ["\u1112", "##\u1161", "##\u11ab", "\u1100", "##\u11a8"]
    uneven = Tokenizer.from_vocab(vocabulary)
    borders = token_borders(uneven, [text], None)
    count = token_counts(uneven, prompt, None)
    (spans,) = spans_of([text], borders, Chunking(size, min(overlap, size - 1), by), count)
    pieces = [text[start:end] for start, end in spans.tolist()]
    counts = count(pieces)
    assert all(count <= size or len(piece) == 1 for count, piece in zip(counts, pieces, strict=True))
    covered = {i for start, end in spans.tolist() for i in range(start, end)}
    assert {i for start, end in borders[0].tolist() for i in range(start, end)} <= covered
    assert all(before[0] < after[0] for before, after in itertools.pairwise(spans.tolist()))


def test_bad_chunking_is_refused() -> None:
    for arguments, message in [
        ((0,), "size must be"),
        ((3, 3), "overlap must be a whole number from 0 to 2"),
        ((3, -1), "overlap must be"),
        ((3, 1, "words"), "by must be"),
    ]:
        with pytest.raises(InputError, match=message):
            Chunking(*arguments)  # type: ignore[arg-type]


def test_borders_are_those_of_encodings(tmp_path: Path) -> None:
    del tmp_path
    texts = ["ab a, b", "", "  ", "é ab"]
    for borders, text in zip(token_borders(tokenizer(), texts, None), texts, strict=True):
        encoding = tokenizer().encode(text, add_special_tokens=False)
        np.testing.assert_array_equal(borders, np.array(encoding.offsets).reshape(-1, 2))


def test_a_long_run_of_marks_takes_no_longer_than_others() -> None:
    text = "a " + "." * 100_000 + "b. a" + "\n" + " " * 100_000 + "a"
    start = time.perf_counter()
    chunks, tokens = chunks_of(text, Chunking(1000, 0, "sentences"))
    assert time.perf_counter() - start < 10  # a quadratic search takes minutes
    assert len(tokens) > 100_000
    assert len(chunks) > 100
