"""Ids of tokenizers that are not WordPiece, from texts in blocks, words that are kept, and calls side by side."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_files import MODELS, copied
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer import shared_core, word_cache
from wordpiece_bert.tokenizer.subword import SubwordTokenizer

tokenizers = pytest.importorskip("tokenizers")

FOLDERS = ("st_xlmr", "st_roberta", "m3_model", "st_modernbert_cls", "m2v_unigram")
#: Words of the tokenizers, special tokens, and characters that act beyond a word: combining marks, joiners, signs that
#: are put before others, spaces of all kinds, and characters whose compatible form has a space or is several.
PARTS = [
    *("the city", "the", "city", "by night", "猫", "é", "Ⅳ", "ﬁ", "½", "▁", "▁the", "<s>", "</s>", "<unk>", "<mask>"),
    *(
        "[MASK]",
        "\u0301",
        "a\u0301",
        "\u00b4",
        "\u00a8x",
        "\u0e33",
        "\u0600",
        "\u0d4e",
        "\U000110bd",
        "\u200d",
        "\u200b",
    ),
    *(
        " ",
        "  ",
        "\n",
        "\t",
        "\u3000",
        "\u00a0",
        "\u2003",
        "\x1c",
        "\x85",
        "\U0001f3fb",
        "👍🏽",
        "ﾞ",
        "ｶﾞ",
        "각",
        "\u115f",
    ),
    *("...", "…", "A", "İ", "ẞ", "\ufdfa", "12", "-", "\u0344", "\u0f71\u0f73", "x" * 40),
]
TEXTS = st.lists(st.lists(st.sampled_from(PARTS) | st.characters(codec="utf-8"), max_size=8), max_size=6).flatmap(
    lambda rows: st.sampled_from(["", " "]).map(lambda space: [space.join(row) for row in rows])
)


def one_by_one(tokenizer: SubwordTokenizer, text: str) -> list[int]:
    ids: list[int] = tokenizer._core.encode(text, add_special_tokens=False).ids
    return ids


def unigram(**parts: Any) -> Any:
    """A tokenizer with the pieces of a fixture and another pipeline."""
    core = tokenizers.Tokenizer.from_file(str(MODELS / "st_xlmr" / "tokenizer.json"))
    for name, part in parts.items():
        setattr(core, name, part)
    return core


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SubwordTokenizer]:
    found = {name: SubwordTokenizer(MODELS / name) for name in FOLDERS}
    whitespace = tokenizers.pre_tokenizers.WhitespaceSplit()
    metaspace = tokenizers.pre_tokenizers.Metaspace()
    both = tokenizers.pre_tokenizers.Sequence([whitespace, metaspace])
    lower = tokenizers.normalizers.Sequence([tokenizers.normalizers.NFD(), tokenizers.normalizers.Lowercase()])
    pipelines = {
        "plain": {"normalizer": None},
        "split": {"normalizer": lower, "pre_tokenizer": both},
        "first": {"pre_tokenizer": tokenizers.pre_tokenizers.Metaspace(prepend_scheme="first")},
        "whole": {"pre_tokenizer": tokenizers.pre_tokenizers.Metaspace(split=False)},
        "accents": {"normalizer": tokenizers.normalizers.StripAccents()},
    }
    for name, parts in pipelines.items():
        folder = copied("st_xlmr", tmp_path_factory.mktemp(name))
        unigram(**parts).save(str(folder / "tokenizer.json"))
        found[name] = SubwordTokenizer(folder)
    return found


def test_words_are_kept_where_a_word_is_tokenized_by_itself(loaded: dict[str, SubwordTokenizer]) -> None:
    usable = {name for name, tokenizer in loaded.items() if tokenizer._words.is_usable}
    assert {"st_xlmr", "m3_model", "plain", "split"} <= usable
    assert usable.isdisjoint({"st_roberta", "st_modernbert_cls", "first", "whole", "accents"})


@given(texts=TEXTS, threads=st.sampled_from([1, 2, None]))
@settings(max_examples=60, deadline=None)
def test_ids_are_those_of_one_text_after_the_other(
    loaded: dict[str, SubwordTokenizer], texts: list[str], threads: int | None
) -> None:
    for name, tokenizer in loaded.items():
        expected = [one_by_one(tokenizer, text) for text in texts]
        rows = tokenizer.encode_batch(texts, add_special_tokens=False, threads=threads)
        assert rows.to_list() == expected, name
        assert not rows.truncated.any()
        cut = tokenizer.encode_batch(texts, add_special_tokens=False, truncation=True, max_length=3, threads=threads)
        assert cut.to_list() == [ids[:3] for ids in expected], name
        assert cut.truncated.tolist() == [len(ids) > 3 for ids in expected]
        full = tokenizer.encode_batch(texts, threads=threads, return_offsets=True)
        assert full.to_list() == [one.ids for one in tokenizer.encodings(texts, threads=1)], name


def test_a_full_cache_is_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_cache, "_MOST_WORDS", 4)
    tokenizer = SubwordTokenizer(MODELS / "st_xlmr")
    for text in ("the city by night", "a b c d e", "the city", "x"):
        assert tokenizer.encode_batch([text], add_special_tokens=False).to_list() == [one_by_one(tokenizer, text)]
    assert len(tokenizer._words._ids) < 8


def test_texts_are_cut_on_the_side_of_the_folder(tmp_path: Path) -> None:
    folder = copied("st_xlmr", tmp_path)
    (folder / "tokenizer_config.json").write_text('{"truncation_side": "left"}')
    tokenizer = SubwordTokenizer(folder)
    ids = one_by_one(tokenizer, "the city by night")
    cut = tokenizer.encode_batch(["the city by night"], add_special_tokens=False, truncation=True, max_length=3)
    assert cut.to_list() == [ids[-3:]]


def test_calls_with_other_truncations_do_not_mix() -> None:
    tokenizer = SubwordTokenizer(MODELS / "st_roberta")
    texts = ["the city by night", "a dog in the park"] * 4
    lengths = [5, 6, 7, None]
    expected = {
        most: tokenizer.encode_batch(texts, truncation=most is not None, max_length=most).to_list() for most in lengths
    }
    start = threading.Barrier(len(lengths))

    def calls(most: int | None) -> bool:
        start.wait()
        return all(
            tokenizer.encode_batch(texts, truncation=most is not None, max_length=most, threads=1).to_list()
            == expected[most]
            for _ in range(30)
        )

    with ThreadPoolExecutor(len(lengths)) as pool:
        assert all(pool.map(calls, lengths))


def test_a_truncation_that_is_refused_leaves_the_tokenizer_usable() -> None:
    tokenizer = SubwordTokenizer(MODELS / "st_roberta")
    expected = tokenizer.encode("the city").ids
    for message, options in (
        ("not 'shortest'", {"truncation": "shortest"}),
        ("stride is 9", {"stride": 9}),
        ("cannot truncate to", {"stride": 3, "add_special_tokens": False}),
    ):
        with pytest.raises(InputError, match=message):
            tokenizer.encode_batch(["the city"], **{"max_length": 4} | options)  # type: ignore[arg-type]
    assert tokenizer.encode("the city").ids == expected


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 3, None])
def test_a_call_has_as_many_threads_as_it_asks_for(
    split: bool, threads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_core.os, "cpu_count", lambda: 8)
    tokenizer = SubwordTokenizer(MODELS / "st_roberta")
    items: list[Any] = [["the", "city"]] * 20 if split else ["the city", ("a", "dog")] * 10
    expected = [tokenizer._core.encode_batch([item], is_pretokenized=split)[0].ids for item in items]
    found = tokenizer.encodings(items, is_split_into_words=split, threads=threads)
    assert [one.ids for one in found] == expected


def test_a_pickle_has_its_words_no_longer_and_the_same_ids() -> None:
    tokenizer = SubwordTokenizer(MODELS / "st_xlmr")
    expected = tokenizer.encode_batch(["the city", "猫"], add_special_tokens=False).to_list()
    again = pickle.loads(pickle.dumps(tokenizer))
    np.testing.assert_array_equal(again._words._ids.keys(), SubwordTokenizer(MODELS / "st_xlmr")._words._ids.keys())
    assert again.encode_batch(["the city", "猫"], add_special_tokens=False).to_list() == expected
