"""Tokenizers whose words a function finds: Japanese BERT, beside BertJapaneseTokenizer of transformers."""

from __future__ import annotations

import copy
import json
import pickle
import unicodedata
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_files import MODELS, copied, make_japanese
from model_files import split_words as split
from wordpiece_bert import AddedToken, Tokenizer, tasks, vocab_report
from wordpiece_bert.bert import AutoModel
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError, TokenizerFormatError, WordPieceError
from wordpiece_bert.pretraining import Masking
from wordpiece_bert.tokenizer.subword import tokenizer_of, wordpiece

FOLDERS = ("japanese_wordpiece", "japanese_wordpiece_lower", "japanese_character")


def other_split(text: str) -> list[str]:
    """Split at white space."""
    return text.split()


def loaded(name: str = "japanese_wordpiece", splitter: Any = split) -> Tokenizer:
    return Tokenizer.from_pretrained(MODELS / name, word_splitter=splitter)


# --- beside transformers


@pytest.mark.parametrize("name", FOLDERS)
def test_tokens_and_ids_equal_those_of_the_reference(name: str) -> None:
    listing = json.loads((MODELS / name / "reference.json").read_text(encoding="utf-8"))
    words = {row["normalized"]: row["words"] for row in listing["rows"]}
    tokenizer = loaded(name, lambda text: list(words[text]))
    texts = [row["text"] for row in listing["rows"]]
    for row in listing["rows"]:
        assert tokenizer.tokenize(row["text"]) == row["tokens"]
        assert tokenizer.encode(row["text"]).ids == row["ids"]
        assert tokenizer.encode_ids(row["text"]).tolist() == row["ids"]
    rows = tokenizer.encode_batch(texts)
    assert [rows[i].tolist() for i in range(len(rows))] == [row["ids"] for row in listing["rows"]]
    pair = listing["pair"]
    encoding = tokenizer.encode(*pair["texts"])
    assert (encoding.ids, encoding.token_type_ids) == (pair["ids"], pair["types"])
    inputs = tokenizer([pair["texts"][0]], [pair["texts"][1]])
    assert inputs["input_ids"].tolist() == [pair["ids"]]
    assert inputs["token_type_ids"].tolist() == [pair["types"]]


class Splitter:
    """What transformers' MecabTokenizer does, with another program in the place of MeCab."""

    def __init__(self, lower: bool, normalize: bool) -> None:
        self.lower, self.normalize = lower, normalize

    def tokenize(self, text: str, never_split: Any = None, **_: Any) -> list[str]:
        words = split(unicodedata.normalize("NFKC", text) if self.normalize else text)
        return [word.lower() if self.lower and word not in (never_split or []) else word for word in words]


#: Pieces of texts: special tokens with white space, in other forms of their characters, and letters that NFKC changes.
WORDS = (
    "吾輩",
    "は",
    "猫",
    "東京都",
    "無い",
    "ガンダム",
    "ｶﾞﾝﾀﾞﾑ",
    "ABC",
    "ＡＢＣ",
    "a",
    "bc",
    "é",
    "１２",
    "Ⅳ",
    "ﬁ",
    "☃",
    "A" * 101,
)
OTHERS = (
    "[MASK]",
    "[SEP]",
    "[mask]",
    "［ＭＡＳＫ］",
    "<ent>",
    "<ENT>",
    " ",
    "\u3000",
    "\n",
    "\x1f",
    "\u00a0",
    "İ",
    "ß",
)
PIECES = st.sampled_from(WORDS + OTHERS)


@given(
    pieces=st.lists(PIECES, max_size=8),
    second=st.lists(PIECES, max_size=4),
    lower=st.booleans(),
    normalize=st.booleans(),
    characters=st.booleans(),
    flags=st.fixed_dictionaries({name: st.booleans() for name in ("lstrip", "rstrip", "single_word", "special")}),
)
@settings(max_examples=150, deadline=None)
def test_ids_equal_those_of_transformers(
    pieces: list[str],
    second: list[str],
    lower: bool,
    normalize: bool,
    characters: bool,
    flags: dict[str, bool],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transformers: Any = pytest.importorskip("transformers")
        from transformers.models.bert_japanese.tokenization_bert_japanese import BertJapaneseTokenizer
    folder = MODELS / "japanese_wordpiece"
    kind = "character" if characters else "wordpiece"
    theirs: Any = BertJapaneseTokenizer(str(folder / "vocab.txt"), do_lower_case=lower, subword_tokenizer_type=kind)
    theirs.word_tokenizer = Splitter(lower, normalize)
    theirs.add_tokens([transformers.AddedToken("<ent>", normalized=False, **flags)], special_tokens=flags["special"])
    parent = tmp_path_factory.mktemp("japanese")
    changed = copied(
        "japanese_wordpiece",
        parent,
        "tokenizer_config.json",
        do_lower_case=lower,
        subword_tokenizer_type=kind,
        mecab_kwargs={"normalize_text": normalize},
    )
    ours = Tokenizer.from_pretrained(changed, word_splitter=split)
    ours = ours.with_added_tokens([AddedToken("<ent>", normalized=False, **flags)])
    text, pair = "".join(pieces), "".join(second)
    assert ours.encode(text).ids == theirs(text)["input_ids"]
    expected = theirs(text, pair, return_token_type_ids=True)
    found = ours.encode(text, pair)
    assert (found.ids, found.token_type_ids) == (expected["input_ids"], expected["token_type_ids"])
    assert ours.encode_ids(text, pair).tolist() == expected["input_ids"]
    words = [piece for piece in pieces if piece]
    if words:  # transformers takes an empty list for a batch
        assert ours.encode(words, is_split_into_words=True).ids == theirs(words, is_split_into_words=True)["input_ids"]
    if len(ours.tokenize(text)) > 1:
        expected = theirs(text, pair, truncation="only_first", max_length=len(found.ids) - 1)["input_ids"]
        assert ours.encode(text, pair, truncation="only_first", max_length=len(found.ids) - 1).ids == expected


def test_basic_words_need_no_splitter(tmp_path: Path) -> None:
    folder = copied("japanese_wordpiece", tmp_path, "tokenizer_config.json", word_tokenizer_type="basic")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("transformers")
        from transformers.models.bert_japanese.tokenization_bert_japanese import BertJapaneseTokenizer
    for lower in (False, True):
        content = json.loads((folder / "tokenizer_config.json").read_text()) | {"do_lower_case": lower}
        (folder / "tokenizer_config.json").write_text(json.dumps(content))
        ours = Tokenizer.from_pretrained(folder)
        theirs: Any = BertJapaneseTokenizer(str(folder / "vocab.txt"), do_lower_case=lower)
        for text in ("東京 都 ABC café 吾輩は[MASK]。", "", "猫。 12"):
            assert ours.encode(text).ids == theirs(text)["input_ids"]


# --- calls


def test_all_calls_give_the_same_ids(tmp_path: Path) -> None:
    tokenizer = loaded()
    texts = ["吾輩は猫である。", "", "東京都に[MASK]行った"]
    expected = [tokenizer.encode(text).ids for text in texts]
    assert [one.ids for one in tokenizer.encodings(texts)] == expected
    columns: list[Any] = [texts, tuple(texts), iter(texts), np.array(texts), np.array(texts, object)]
    for column in columns:
        rows = tokenizer.encode_batch(column, return_sequence_ids=True, return_n_tokens=True)
        assert [rows[i].tolist() for i in range(3)] == expected
    file = tmp_path / "texts.txt"
    file.write_text("\n".join([texts[0], texts[2]]) + "\n", encoding="utf-8")
    (batch,) = tokenizer.iter_files(file)
    assert [batch[i].tolist() for i in range(2)] == [expected[0], expected[2]]
    tokenizer.encode_files(file, tmp_path / "ids.npy")
    assert np.load(tmp_path / "ids.npy").tolist() == expected[0] + expected[2]
    inputs = tokenizer(texts, padding=True)
    assert [one.ids for one in inputs.encodings or []] == inputs["input_ids"].tolist()
    assert inputs.tokens(0)[: len(expected[0])] == tokenizer.encode(texts[0]).tokens
    mapped = tokenizer.map_function()({"text": texts})
    assert [row.tolist() for row in mapped["input_ids"]] == expected
    assert tokenizer.decode(tokenizer.encode("吾輩は猫。ガンダム").ids) == "吾輩 は 猫 。 ガンダム"
    windows = tokenizer.encode(texts[0], truncation=True, max_length=4, stride=1)
    assert [len(windows), *(len(one) for one in windows.overflowing)] == [4, 4, 4, 4]
    assert tokenizer.with_truncation(max_length=4).encode(texts[0]).ids == windows.ids


def test_special_tokens_may_be_ordinary_text() -> None:
    seen: list[str] = []

    def splitter(text: str) -> list[str]:
        seen.append(text)
        return split(text)

    tokenizer = loaded(splitter=splitter)
    tokenizer.encode("猫 [MASK] は")
    tokenizer.encode("猫 [MASK] は", encode_special_tokens=True)
    assert seen == ["猫 ", " は", "猫 [MASK] は"]


def test_tokens_have_no_place_in_the_text() -> None:
    tokenizer = loaded()
    encoding = tokenizer.encode("吾輩は猫である。")
    for name in ("offsets", "word_ids", "char_to_token", "token_to_chars", "word_to_chars", "token_to_word"):
        with pytest.raises(InputError, match=f"{name}: a tokenizer with a word_splitter has no offsets"):
            getattr(encoding, name)
    with pytest.raises(AttributeError, match="nothing"):
        encoding.nothing  # noqa: B018
    for options in ({"return_offsets": True}, {"return_word_ids": True}):
        with pytest.raises(InputError, match="no offsets and no word ids"):
            tokenizer.encode_batch(["猫"], **options)
    with pytest.raises(InputError, match="no offsets"):
        tokenizer(["猫"], return_offsets_mapping=True)
    with pytest.raises(InputError, match="no offsets"):
        tokenizer(["猫"]).char_to_token(0, 0)


# --- what a splitter returns, and what it is given


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "return a list of str, not NoneType"),
        ("猫", "return a list of str, not str"),
        (("猫",), "return a list of str, not tuple"),
        (iter(["猫"]), "return a list of str, not list_iterator"),
        (["猫", 3], "item 1 is 3"),
        ([b"x"], "item 0 is b'x'"),
        ([None], "item 0 is None"),
    ],
)
def test_other_results_than_a_list_of_str_are_refused(returned: Any, message: str) -> None:
    tokenizer = loaded(splitter=lambda _: returned)
    calls = [tokenizer.encode, tokenizer.encode_ids, tokenizer, lambda text: tokenizer.encode_batch([text])]
    for call in (*calls, lambda text: tokenizer.encodings([text])):
        with pytest.raises(InputError, match=f"word_splitter must .*{message}.*for the text '猫は'"):
            call("猫は")


def test_errors_of_a_splitter_are_its_own() -> None:
    def splitter(_: str) -> list[str]:
        raise RuntimeError("no dictionary")

    with pytest.raises(RuntimeError, match="no dictionary"):
        loaded(splitter=splitter).encode("猫")
    assert loaded(splitter=splitter).encode("").ids == [2, 3]  # it is not asked for nothing


@pytest.mark.parametrize("bad", [3, None, b"x", "\ud800", ["猫"], ("猫", "は", "で")])
def test_other_texts_than_str_are_refused(bad: Any) -> None:
    tokenizer = loaded()
    with pytest.raises(InputError):
        tokenizer.encode_batch(["猫", bad])
    with pytest.raises(InputError):
        tokenizer.encode(bad)
    with pytest.raises(InputError):
        tokenizer.encode_batch(bad if isinstance(bad, int | bytes | str) else 3)


# --- folders


def test_a_folder_without_a_splitter_is_refused_by_the_name_of_the_argument(tmp_path: Path) -> None:
    folder = MODELS / "japanese_wordpiece"
    for load in (Tokenizer.from_pretrained, tokenizer_of):
        with pytest.raises(
            TokenizerFormatError, match=r"tokenizer_config.json: 'word_tokenizer_type' is 'mecab'.*word_splitter=f"
        ):
            load(folder)
    # Files of some models name the class in config.json alone, or not at all.
    unnamed = copied("japanese_wordpiece", tmp_path, "tokenizer_config.json", tokenizer_class=...)
    with pytest.raises(TokenizerFormatError, match="word_splitter"):
        Tokenizer.from_pretrained(unnamed)
    (unnamed / "tokenizer_config.json").write_text('{"word_tokenizer_type": "sudachi"}')
    (unnamed / "config.json").unlink()
    with pytest.raises(TokenizerFormatError, match="'word_tokenizer_type' is 'sudachi'"):
        Tokenizer.from_pretrained(unnamed)
    assert Tokenizer.from_pretrained(unnamed, word_splitter=split).encode("猫").ids == [2, 7, 3]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"word_tokenizer_type": "kytea"}, "'word_tokenizer_type' is 'kytea'; expected one of basic, mecab"),
        ({"subword_tokenizer_type": "sentencepiece"}, "'subword_tokenizer_type' is 'sentencepiece'"),
        ({"word_tokenizer_type": "basic", "subword_tokenizer_type": "character"}, "'subword_tokenizer_type'"),
        ({"mecab_kwargs": 3}, "'mecab_kwargs' is 3"),
        ({"mecab_kwargs": {"normalize_text": "yes"}}, "'mecab_kwargs'.*normalize_text"),
        ({"do_word_tokenize": False}, "'do_word_tokenize' is False|'do_word_tokenize' is false"),
        ({"do_subword_tokenize": False}, "'do_subword_tokenize'"),
        ({"never_split": "猫"}, "'never_split'"),
        ({"do_lower_case": "no"}, "'do_lower_case'"),
    ],
)
def test_settings_that_are_not_supported_are_named(fields: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder = copied("japanese_wordpiece", tmp_path, "tokenizer_config.json", **fields)
    with pytest.raises(TokenizerFormatError, match=message):
        Tokenizer.from_pretrained(folder, word_splitter=split)


def test_a_splitter_for_another_tokenizer_is_refused(tmp_path: Path) -> None:
    for name in ("sentence_plain_folder", "st_roberta"):
        with pytest.raises(InputError, match="word_splitter is for tokenizers whose words another program finds"):
            Tokenizer.from_pretrained(MODELS / name, word_splitter=split)
    basic = copied("japanese_wordpiece", tmp_path, "tokenizer_config.json", word_tokenizer_type="basic")
    with pytest.raises(InputError, match="'word_tokenizer_type' is \"basic\""):
        Tokenizer.from_pretrained(basic, word_splitter=split)
    with pytest.raises(InputError, match="word_splitter must be a function"):
        Tokenizer.from_pretrained(MODELS / "japanese_wordpiece", word_splitter="mecab")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FOLDERS)
def test_a_saved_folder_gives_the_same_ids(name: str, tmp_path: Path) -> None:
    tokenizer = loaded(name).with_added_tokens(["<ent>"], special=True)
    (tmp_path / "tokenizer.json").write_text("{}")  # an older one, which would be read instead
    tokenizer.save_pretrained(tmp_path)
    assert not (tmp_path / "tokenizer.json").exists()
    with pytest.raises(TokenizerFormatError, match="word_splitter"):
        Tokenizer.from_pretrained(tmp_path)
    again = Tokenizer.from_pretrained(tmp_path, word_splitter=split)
    for text in ("吾輩は猫である。", "ＡＢＣ<ent>[MASK] café"):
        assert again.encode(text).ids == tokenizer.encode(text).ids
    written = json.loads((tmp_path / "tokenizer_config.json").read_text())
    original = json.loads((MODELS / name / "tokenizer_config.json").read_text())
    assert {key: written[key] for key in original} == original
    for call in (tokenizer.to_json, lambda: tokenizer.save(tmp_path / "one.json")):
        with pytest.raises(InputError, match=r"no tokenizer\.json has a word_splitter"):
            call()


def test_copies_compare_and_pickle() -> None:
    tokenizer = loaded()
    again = pickle.loads(pickle.dumps(tokenizer))
    assert again == tokenizer == copy.deepcopy(tokenizer)
    assert hash(again) == hash(tokenizer)
    assert again.encode("ＡＢＣ").ids == tokenizer.encode("ＡＢＣ").ids
    assert tokenizer != loaded(splitter=other_split)
    assert tokenizer != loaded("japanese_character")
    assert tokenizer != Tokenizer.from_vocab(MODELS / "japanese_wordpiece" / "vocab.txt", lowercase=False)
    assert "word_splitter=<function split_words" in repr(tokenizer)
    with pytest.raises(InputError, match="no fingerprint"):
        tokenizer.fingerprint  # noqa: B018


def test_what_needs_a_tokenizer_that_finds_words_refuses_by_name() -> None:
    tokenizer = loaded()
    with pytest.raises(InputError, match="vocab_report needs a tokenizer that finds words itself"):
        vocab_report(tokenizer, ["猫"])
    with pytest.raises(InputError, match="masking needs a tokenizer that finds words itself"):
        Masking(tokenizer)
    with pytest.raises(InputError, match="training needs a tokenizer that finds words itself"):
        wordpiece(tokenizer, "training")
    with pytest.raises(WordPieceError):
        Tokenizer.from_pretrained(MODELS / "japanese_wordpiece")


def test_a_model_is_quantized_and_described_without_its_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_japanese(copied("bert_seqcls_single", tmp_path))
    model: Any = AutoModel.from_pretrained(folder, dtype="int8")
    exact: Any = AutoModel.from_pretrained(folder)
    np.testing.assert_allclose(model([[2, 5, 6, 3]]).logits, exact([[2, 5, 6, 3]]).logits, atol=0.05)
    with pytest.raises(TokenizerFormatError, match="word_splitter"):
        AutoModel.from_pretrained(folder, dtype="int8", calibrate=["吾輩は猫である。"])
    assert main(["info", str(folder), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["tokenizer"] == {"words_found_by": "mecab", "loaded_with": "word_splitter"}
    assert facts["model"]["architectures"] == ["BertForSequenceClassification"]


def test_tasks_take_the_tokenizer_with_their_model(tmp_path: Path) -> None:
    """A classifier of texts with the vocabulary of a Japanese tokenizer."""
    folder = make_japanese(copied("bert_seqcls_single", tmp_path))
    with pytest.raises(TokenizerFormatError, match="word_splitter"):
        tasks.load(folder)
    source = tasks.load(folder, word_splitter=split)
    (found,) = tasks.classify(source, ["吾輩は猫である。"])
    model, tokenizer = source
    inputs = tokenizer.encode("吾輩は猫である。").ids
    logits = model([inputs]).logits[0]  # type: ignore[operator]
    assert found[0]["label"] == model.config.id2label[int(np.argmax(logits))]
