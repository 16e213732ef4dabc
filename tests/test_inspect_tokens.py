"""`wordpiece_bert.inspect.tokens`: the steps from a text to its ids."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import case_files
import strategies
import wordpiece_bert as wb
from inspect_fixtures import VOCAB, tok
from wordpiece_bert import inspect
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from wordpiece_bert.inspect import View


def entry(view: View, index: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = view.data["tokenizers"][index]
    return found


def test_tokens_show_each_step(tok: wb.Tokenizer) -> None:
    shown = entry(inspect.tokens(tok, "Unaffordable\u200b, Café\t漢zzz"))
    assert [row["token"] for row in shown["tokens"]] == tok.encode("Unaffordable\u200b, Café\t漢zzz").tokens
    (side,) = shown["sides"]
    assert shown["agrees"] is True
    steps = {change["from"]: change["steps"] for change in side["changes"]}
    assert steps == {
        "U": ["lower case"],
        "\u200b": ["removed"],
        "C": ["lower case"],
        "é": ["accent"],
        "\t": ["space"],
        "漢": ["set apart"],
    }
    words = {word["word"]: word for word in side["words"]}
    assert [piece["token"] for piece in words["unaffordable"]["pieces"]] == ["un", "##afford", "##able"]
    assert [(piece["start"], piece["end"]) for piece in words["unaffordable"]["pieces"]] == [(0, 2), (2, 8), (8, 12)]
    assert "no token" in words["zzz"]["unknown"]
    assert [row["unknown"] for row in shown["tokens"]].count(True) == 1


def test_tokens_that_are_cut_and_padded_are_marked(tok: wb.Tokenizer) -> None:
    shown = entry(inspect.tokens(tok, "the cafe, the cafe", "the", max_length=6))
    kept = [row["token"] for row in shown["tokens"]]
    assert len(kept) == 6
    assert [token["token"] for token in shown["cut"]] == [",", "the", "cafe"]
    assert shown["truncated"] is True


def test_two_tokenizers_side_by_side(tok: wb.Tokenizer) -> None:
    cased = wb.Tokenizer.from_vocab([*VOCAB, "Café"], lowercase=False)
    view = inspect.tokens(tok, "Café", beside=cased, names=("uncased", "cased"))
    assert [entry(view, i)["name"] for i in (0, 1)] == ["uncased", "cased"]
    assert [[row["token"] for row in entry(view, i)["tokens"]] for i in (0, 1)] == [
        ["[CLS]", "cafe", "[SEP]"],
        ["[CLS]", "Café", "[SEP]"],
    ]


def test_added_tokens_are_found_before_the_text_is_split(tok: wb.Tokenizer) -> None:
    shown = entry(inspect.tokens(tok, "the [MASK] cafe"))
    assert [word["added"] for word in shown["sides"][0]["words"]] == [False, True, False]
    assert shown["agrees"] is True


@given(st.text(alphabet="unafordble café漢\u200b\t,.!Éß#\u0301 İ", max_size=30))
def test_the_steps_agree_with_the_tokenizer(text: str) -> None:
    tokenizer = wb.Tokenizer.from_vocab([*VOCAB, *"unafordblec", *(f"##{c}" for c in "unafordblc"), "i", "s", "ß", "."])
    shown = entry(inspect.tokens(tokenizer, text))
    assert shown["agrees"] is True
    assert [row["id"] for row in shown["tokens"]] == tokenizer.encode(text).ids


def steps_of(tokenizer: wb.Tokenizer, text: str, pair: str | None = None) -> list[dict[str, Any]]:
    """The words of both texts, as the last step shows them, compared with the encoding."""
    shown = entry(inspect.tokens(tokenizer, text, pair))
    whole = tokenizer.encode(text, pair, truncation=False, padding=False)
    assert shown["agrees"] is True
    words = [{**word, "side": index} for index, side in enumerate(shown["sides"]) for word in side["words"]]
    tokens = [
        (word["side"], token)
        for word in words
        for token in (
            [shown["unknown"]]
            if word["unknown"]
            else [word["word"]]
            if word["added"]
            else [piece["token"] for piece in word["pieces"]]
        )
    ]
    columns = zip(whole.sequence_ids, whole.tokens, whole.word_ids, whole.offsets, strict=True)
    own = sorted((column for column in columns if column[0] is not None), key=lambda column: column[0] or 0)
    assert tokens == [(side, token) for side, token, _, _ in own]
    spans: dict[tuple[int | None, int | None], list[tuple[int, int]]] = {}
    for side, _, word, span in own:
        spans.setdefault((side, word), []).append(span)
    assert [(word["start"], word["end"]) for word in words] == [
        (min(start for start, _ in group), max(end for _, end in group)) for group in spans.values()
    ]
    for word in words:
        if not word["added"] and not word["unknown"]:
            ends = [0, *(piece["end"] for piece in word["pieces"])]
            assert [piece["start"] for piece in word["pieces"]] == ends[:-1]
            assert ends[-1] == len(word["word"])
    return words


@pytest.mark.parametrize("text", ["漢a", "a漢", "漢a漢", "a漢a", " 漢 a 漢 ", "b漢a漢b", "漢漢a", "aa漢"])
@pytest.mark.parametrize("sides", [{"lstrip": True}, {"rstrip": True}, {"lstrip": True, "rstrip": True}])
def test_added_tokens_take_the_spaces_around_chinese_characters(text: str, sides: dict[str, bool]) -> None:
    case = {
        "vocab": ["[UNK]", "漢", "b"],
        "normalizer": {"type": "BertNormalizer"},
        "added_tokens": [{"content": "a", **sides}],
        "add_special_tokens": False,
    }
    tokenizer = wb.Tokenizer.from_json(case_files.tokenizer_json(case))
    assert "".join(word["word"] for word in steps_of(tokenizer, text)).replace(" ", "") == text.replace(" ", "")
    shown = entry(inspect.tokens(tokenizer, text))["sides"][0]["normalized"]
    spaced = "".join(f" {c} " if c == "漢" else c for c in text)
    assert shown == spaced


@given(strategies.cases())
def test_the_last_step_is_the_encoding_for_any_tokenizer_and_text(case: dict[str, Any]) -> None:
    case = {name: value for name, value in case.items() if name not in ("padding", "truncation")}
    try:
        tokenizer = wb.Tokenizer.from_json(case_files.tokenizer_json(case))
    except InputError as error:  # an added token that no text can have
        if "normalizer turns it into nothing" not in str(error):
            raise
        return
    for one in case["inputs"]:
        texts = [text if isinstance(text, str) else " ".join(text) for text in one.values()]
        steps_of(tokenizer, *texts)


@given(strategies.texts)
def test_changes_of_characters_make_the_normalized_text(text: str) -> None:
    """Also of characters that this Python's Unicode knows and BERT's does not, or the other way round."""
    tokenizer = wb.Tokenizer.from_vocab(VOCAB)
    (side,) = entry(inspect.tokens(tokenizer, text))["sides"]
    changed = {change["index"]: change["to"] for change in side["changes"]}
    normalized = "".join(changed.get(index, c) for index, c in enumerate(text))
    # Marks that follow each other are put in their canonical order, of the whole text.
    assert sorted(normalized) == sorted(side["normalized"])


def test_the_time_of_tokens_is_linear_in_the_text() -> None:
    """Four times the text takes about four times as long, of texts, long words and added tokens."""
    tokenizer = wb.Tokenizer.from_vocab([*VOCAB, "a", "##a"], max_input_chars_per_word=1_000_000)

    def seconds(text: str) -> float:
        times = []
        for _ in range(3):
            start = time.process_time()
            assert entry(inspect.tokens(tokenizer, text))["agrees"]
            times.append(time.process_time() - start)
        return min(times)

    for part in ("Café, the漢 unaffordable\t", "a", "[MASK]"):
        short, long = (seconds(part * (count // len(part))) for count in (5_000, 40_000))
        assert long < 8 * 3 * max(short, 0.01), part
