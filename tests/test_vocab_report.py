"""Vocabulary reports against a naive computation of their definitions, contents of vocabularies, and plots."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
import wordpiece_bert as wb
from wordpiece_bert.errors import InputError, TrainingWarning
from wordpiece_bert.training import vocab_contents

VOCAB = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "[unused0]",
    "the",
    "cat",
    "##s",
    "s",
    "a",
    "##a",
    "!",
    "ä",
    "中",
    "é",
]
TOKENIZER = wb.Tokenizer.from_vocab(VOCAB)


def by_definition(tokenizer: wb.Tokenizer, texts: list[str]) -> dict[str, float | int | None]:
    """Every number of the report, computed in the most obvious way."""
    texts = [text for text in texts if text]
    words, tokens, unknown, whole, continued, of_continued, chars, unk_chars = 0, 0, 0, 0, 0, 0, 0, 0
    used: Counter[str] = Counter()
    lengths = []
    for text in texts:
        length = 2
        for word in wb.WordCounts.from_texts([text]).to_dict().items():
            pieces = tokenizer.tokenize(word[0])
            n = word[1]
            words += n
            tokens += n * len(pieces)
            chars += n * len(word[0])
            length += n * len(pieces)
            for piece in pieces:
                used[piece] += n
            if pieces == ["[UNK]"]:
                unknown += n
                unk_chars += n * len(word[0])
            elif len(pieces) == 1:
                whole += n
            else:
                continued += n
                of_continued += n * len(pieces)
        lengths.append(length)
    plain = [token for token in VOCAB if token not in tokenizer.all_special_tokens and token != "[unused0]"]
    total = sum(used.values())
    shares = [n / total for n in used.values()]

    def ratio(part: float, whole: float) -> float | None:
        return part / whole if whole else None

    return {
        "texts": len(texts),
        "words": words,
        "tokens": tokens,
        "chars": sum(map(len, texts)),
        "bytes": sum(len(text.encode()) for text in texts),
        "fertility": ratio(tokens, words),
        "tokens_per_char": ratio(tokens, sum(map(len, texts))),
        "bytes_per_token": ratio(sum(len(text.encode()) for text in texts), tokens),
        "unk_words": ratio(unknown, words),
        "unk_chars": ratio(unk_chars, chars),
        "whole_words": ratio(whole, words),
        "continued_words": ratio(continued, words),
        "mean_pieces_of_split": ratio(of_continued, continued),
        "utilisation": ratio(sum(token in used for token in plain), len(plain)),
        "dead": sum(token not in used for token in plain),
        "entropy": -sum(p * math.log2(p) for p in shares) if shares else None,
        "renyi_efficiency": math.log2(sum(p**2.5 for p in shares)) / -1.5 / math.log2(len(VOCAB)) if shares else None,
        "mean_length": ratio(sum(lengths), len(lengths)),
        "max": max(lengths, default=None),
        "over_512": ratio(sum(length > 512 for length in lengths), len(lengths)),
    }


@given(st.lists(strategies.texts | st.text("thecats äé!中", max_size=30), max_size=8))
def test_every_number_matches_its_definition(texts: list[str]) -> None:
    report = wb.vocab_report(TOKENIZER, texts)
    for name, value in by_definition(TOKENIZER, texts).items():
        found = getattr(report, name)
        assert found == (None if value is None else pytest.approx(value, abs=1e-12)), name
    if report.words:
        assert report.whole_words + report.continued_words + report.unk_words == pytest.approx(1)  # type: ignore[operator]
    assert report == wb.vocab_report(TOKENIZER, iter(texts), threads=3)


def test_a_report_of_a_text() -> None:
    report = wb.vocab_report(TOKENIZER, ["The cats, the cat!", "", "xyz cats [MASK]"], name="mine", min_count=2)
    assert (report.name, report.texts, report.words) == ("mine", 2, 11)
    assert report.token_counts == {"the": 2, "cat": 3, "##s": 2, "[UNK]": 5, "!": 1}
    assert report.utilisation == 3 / 10
    assert report.words_by_tokens == {1: 4, 2: 2}
    assert report.texts_by_length == {8: 1, 9: 1}
    assert (report.p50, report.p95, report.max) == (8, 9, 9)
    assert "[unused0]" not in report.dead_tokens
    assert report.renyi_efficiency_seen is not None
    assert wb.vocab_report(TOKENIZER, ["the cat"], alpha=1).renyi_efficiency_seen == pytest.approx(1)


def test_reports_work_with_any_normalizer_and_pre_tokenizer() -> None:
    parts = json.loads(TOKENIZER.to_json())
    parts["normalizer"] = {"type": "Lowercase"}
    parts["pre_tokenizer"] = {"type": "WhitespaceSplit"}
    parts["added_tokens"] = []
    report = wb.vocab_report(wb.Tokenizer.from_json(json.dumps(parts)), ["The cat! cats"])
    assert (report.words, report.unk_words, report.tokens) == (3, 1 / 3, 4)


def test_a_report_of_no_texts_has_none_instead_of_nan() -> None:
    report = wb.vocab_report(TOKENIZER, [])
    assert report.fertility is report.entropy is report.p95 is report.over_512 is None
    assert json.loads(report.to_json())["fertility"] is None
    assert "–" in report.text()
    assert wb.vocab_report(TOKENIZER, ["  "]).mean_length == 2


def test_reports_are_shown_side_by_side_and_warn_if_not_comparable(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    texts = ["The cats sat", "a cat"]
    ours = wb.vocab_report(TOKENIZER, texts, name="ours")
    theirs = wb.vocab_report(wb.Tokenizer.from_vocab([*VOCAB, "sat"]), texts, name="theirs")
    table = ours.text(theirs).splitlines()
    assert table[0].split() == ["ours", "theirs"]
    assert any(line.split()[-2:] == ["40", "%"] or "fertility" in line for line in table)
    ours.plot(tmp_path / "both.svg", theirs)
    picture = (tmp_path / "both.svg").read_text(encoding="utf-8")
    assert "<svg" in picture
    with pytest.warns(TrainingWarning, match="different texts"):
        ours.text(wb.vocab_report(TOKENIZER, ["the"]))
    cased = wb.Tokenizer.from_vocab(VOCAB, lowercase=False)
    with pytest.warns(TrainingWarning, match="different normalizers"):
        ours.text(wb.vocab_report(cased, texts))
    assert str(ours) == ours.text()
    assert "token_counts" in json.loads(ours.to_json(details=True))


def test_wrong_input_is_reported() -> None:
    for texts in ("one text", b"bytes", 5, {"a": 1}):
        with pytest.raises(InputError, match="iterable of str"):
            wb.vocab_report(TOKENIZER, texts)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="item 4097 is"):
        wb.vocab_report(TOKENIZER, ["a"] * 4097 + [None])  # type: ignore[list-item]
    for wrong in ({"min_count": 0}, {"alpha": 0}, {"threads": 0}):
        with pytest.raises(InputError):
            wb.vocab_report(TOKENIZER, ["a"], **wrong)  # type: ignore[arg-type]


def test_contents_of_a_vocabulary() -> None:
    contents = vocab_contents(VOCAB, TOKENIZER.all_special_tokens)
    assert contents.special == {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
    assert (contents.tokens, contents.unused, contents.single_characters, contents.whole_words) == (16, 1, 6, 2)
    assert (contents.continuations, contents.single_character_continuations) == (2, 2)
    assert (contents.first_whole_word, contents.last_whole_word) == (("the", 6), ("cat", 7))
    assert (contents.first_continuation, contents.last_continuation) == (("##s", 8), ("##a", 11))
    assert contents.scripts == {"LATIN": 8, "SYMBOL": 1, "CJK": 1}
    assert contents.lengths == {1: 8, 3: 2}
    assert contents == vocab_contents(TOKENIZER.get_vocab(), TOKENIZER.all_special_tokens)
    empty = vocab_contents([], [])
    assert (empty.first_whole_word, empty.longest) == (None, None)


def test_contents_follow_the_continuing_subword_prefix() -> None:
    renamed = [token.replace("##", "@@") for token in VOCAB]
    ours = vocab_contents(VOCAB, TOKENIZER.all_special_tokens).to_dict()
    theirs = vocab_contents(renamed, TOKENIZER.all_special_tokens, continuing_subword_prefix="@@").to_dict()
    for name in ("first_continuation", "last_continuation"):
        token, number = ours.pop(name)  # type: ignore[misc]
        assert theirs.pop(name) == (token.replace("##", "@@"), number)
    assert ours == theirs
    without = vocab_contents(VOCAB, TOKENIZER.all_special_tokens, continuing_subword_prefix="")
    assert (without.continuations, without.whole_words) == (0, 4)


@pytest.mark.model
def test_contents_of_bert_match_the_literature() -> None:
    tokenizer = wb.Tokenizer.from_pretrained("minilm")
    contents = vocab_contents(tokenizer.get_vocab(), tokenizer.all_special_tokens)
    assert (contents.tokens, contents.unused, contents.single_characters) == (30522, 994, 997)
    assert contents.first_whole_word == ("the", 1996)
    assert contents.first_continuation == ("##s", 2015)
    assert contents.last_whole_word == ("necessitated", 29611)
