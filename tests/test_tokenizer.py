"""The tokenizer: construction, which options apply, lookups and decoding, comparison, and saving."""

from __future__ import annotations

import json
import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import case_files
import strategies
import wordpiece_bert as wb
from processes import printed
from small_tokenizer import TEXTS, TOKENS, fields, tokenizer, with_file_settings
from wordpiece_bert.errors import (
    InputError,
    ModelNotFoundError,
    TokenizerFormatError,
    TruncationWarning,
    VocabError,
    VocabWarning,
)

ROLES = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}


# --- from_vocab


def test_a_vocabulary_may_be_a_file_a_list_or_a_dict(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    expected = tokenizer()
    assert wb.Tokenizer.from_vocab(path) == expected
    assert wb.Tokenizer.from_vocab(str(path)) == expected
    assert wb.Tokenizer.from_vocab({token: i for i, token in enumerate(TOKENS)}) == expected
    assert wb.Tokenizer.from_vocab(tuple(TOKENS)) == expected


def test_ids_may_have_gaps() -> None:
    tok = wb.Tokenizer.from_vocab({"[UNK]": 100, "a": 1037, "[CLS]": 101, "[SEP]": 102})
    assert tok.encode("a b").ids == [101, 1037, 100, 102]
    assert len(tok) == tok.vocab_size == 4


@pytest.mark.parametrize(
    ("options", "text", "tokens"),
    [
        ({}, "CAFÉ", ["caf", "##e"]),
        ({"lowercase": False}, "cat CAT", ["cat", "[UNK]"]),
        ({"strip_accents": False}, "café", ["[UNK]"]),
        ({"lowercase": False, "strip_accents": True}, "café", ["caf", "##e"]),
        ({"tokenize_chinese_chars": False}, "中国", ["[UNK]"]),
        ({"clean_text": False}, "ca\u200bt", ["[UNK]"]),
        ({"max_input_chars_per_word": 7}, "unwanted cat", ["[UNK]", "cat"]),
    ],
)
def test_options_reach_the_core(options: dict[str, Any], text: str, tokens: list[str]) -> None:
    assert tokenizer(**options).tokenize(text) == tokens


def test_special_tokens_of_the_vocabulary_are_registered() -> None:
    tok = tokenizer()
    assert {token.content for token in tok.added_tokens.values()} == set(ROLES.values())
    assert all(token.special and not token.normalized for token in tok.added_tokens.values())
    assert tok.tokenize("cat[MASK]cat") == ["cat", "[MASK]", "cat"]
    bare = wb.Tokenizer.from_vocab(["[UNK]", "a"])
    assert [token.content for token in bare.added_tokens.values()] == ["[UNK]"]


@pytest.mark.parametrize("missing", ["[CLS]", "[SEP]"])
def test_without_classifier_or_separator_no_special_tokens_are_added(missing: str) -> None:
    tok = wb.Tokenizer.from_vocab([token for token in TOKENS if token != missing])
    assert tok.encode("a", "b").tokens == ["a", "b"]
    assert tok.num_special_tokens_to_add(pair=True) == 0


def test_the_template_is_that_of_bert() -> None:
    enc = tokenizer().encode("a b", "c")
    assert enc.tokens == ["[CLS]", "a", "b", "[SEP]", "c", "[SEP]"]
    assert enc.token_type_ids == [0, 0, 0, 0, 1, 1]
    assert json.loads(tokenizer().to_json())["post_processor"]["type"] == "TemplateProcessing"


def test_special_tokens_may_have_other_names() -> None:
    roles = {"unk_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>", "mask_token": "<m>"}
    tok = wb.Tokenizer.from_vocab([*roles.values(), "a", "_b"], continuing_subword_prefix="_", **roles)  # type: ignore[arg-type]
    assert tok.encode("ab zz <m>").tokens == ["<s>", "a", "_b", "<unk>", "<m>", "</s>"]
    assert {role: getattr(tok, role) for role in roles} == roles
    assert tok.decode(tok.encode_ids("ab a")) == "ab a"


@pytest.mark.parametrize(
    ("vocab", "options", "message"),
    [
        ([], {}, "empty"),
        (["a"], {}, r'"\[UNK\]" is not in the vocabulary'),
        (["[UNK]", "a"], {"unk_token": "<unk>"}, '"<unk>" is not in the vocabulary'),
        ({"[UNK]": 0, "a": 1, "b": 1}, {}, "id 1 is given to two tokens"),
        (["[UNK]", "a", "b", "a"], {}, '"a" is in the vocabulary twice, at index 1 and index 3'),
    ],
)
def test_unusable_vocabularies_are_refused(vocab: object, options: dict[str, Any], message: str) -> None:
    with pytest.raises(VocabError, match=message):
        wb.Tokenizer.from_vocab(vocab, **options)


def test_unusual_lines_are_reported_and_keep_their_ids(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes(b"[UNK]\na\n\nb \na\nc\n")
    with pytest.warns(VocabWarning) as caught:
        tok = wb.Tokenizer.from_vocab(path)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    message = str(caught[0].message)
    assert str(path) in message
    for expected in ("line 3 is blank", "line 4 ends in white space", "line 2 and again on line 5"):
        assert expected in message
    assert tok.get_vocab() == {"[UNK]": 0, "": 2, "b": 3, "a": 4, "c": 5}
    with pytest.raises(VocabError, match="line 3 of the vocabulary is blank") as raised:
        wb.Tokenizer.from_vocab(path, strict=True)
    assert str(path) in str(raised.value)


def test_many_unusual_lines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("[UNK]\n" + "\n" * 1000)
    with pytest.warns(VocabWarning, match="and 995 more such lines"):
        wb.Tokenizer.from_vocab(path)


def test_a_missing_file_and_invalid_utf8_are_reported(tmp_path: Path) -> None:
    for load in (wb.Tokenizer.from_vocab, wb.Tokenizer.from_file):
        with pytest.raises(ModelNotFoundError, match=r"nowhere\.txt"):
            load(tmp_path / "nowhere.txt")
    path = tmp_path / "vocab.txt"
    path.write_bytes(b"[UNK]\na\xff\n")
    with pytest.raises(VocabError, match=r"vocab\.txt: .*not UTF-8: line 2, byte offset 7"):
        wb.Tokenizer.from_vocab(path)
    with pytest.raises(
        TokenizerFormatError, match=r"vocab\.txt: not a valid tokenizer\.json: not UTF-8: byte 0xff at offset 7"
    ):
        wb.Tokenizer.from_file(path)


# --- which options apply


@pytest.mark.filterwarnings("ignore:.*by the truncation that the tokenizer's file sets")
def test_settings_of_the_file_are_defaults() -> None:
    tok = with_file_settings({"max_length": 5, "stride": 1}, {"strategy": {"Fixed": 7}})
    assert tok.truncation == {"max_length": 5, "stride": 1, "strategy": "longest_first", "direction": "right"}
    assert tok.padding is not None
    assert tok.padding["length"] == 7
    enc = tok.encode("a b c d e")
    assert enc.tokens == ["[CLS]", "a", "b", "c", "[SEP]", "[PAD]", "[PAD]"]
    assert enc.overflowing[0].tokens[1:4] == ["c", "d", "e"]
    assert tok.encode_ids("a b c d e").tolist() == enc.ids == tok.encode_batch(["a b c d e"])[0].tolist()
    plain = tok.encode("a b c d e", truncation=False, padding=False)
    assert plain == tokenizer().encode("a b c d e")


@pytest.mark.filterwarnings("ignore:.*by the truncation that the tokenizer's file sets")
@pytest.mark.parametrize(
    ("options", "tokens"),
    [
        ({"max_length": 3}, "[CLS] a [SEP] [PAD] [PAD] [PAD] [PAD]"),
        ({"truncation": True}, "[CLS] a b c [SEP] [PAD] [PAD]"),  # the file's max_length
        ({"truncation": True, "max_length": 4}, "[CLS] a b [SEP] [PAD] [PAD] [PAD]"),
        ({"truncation": True, "max_length": 4, "padding": "max_length"}, "[CLS] a b [SEP]"),
        ({"padding": "max_length"}, "[CLS] a b c [SEP] [PAD] [PAD]"),  # the file's length
        ({"padding": True}, "[CLS] a b c [SEP]"),
        ({"padding": "longest", "pad_to_multiple_of": 4}, "[CLS] a b c [SEP] [PAD] [PAD] [PAD]"),
        ({"truncation_side": "left"}, "[CLS] c d e [SEP] [PAD] [PAD]"),
        ({"padding_side": "left"}, "[PAD] [PAD] [CLS] a b c [SEP]"),
        ({"truncation": False}, "[CLS] a b c d e [SEP]"),
        ({"truncation": False, "padding": False, "add_special_tokens": False}, "a b c d e"),
    ],
)
def test_options_of_a_call_override_the_file(options: dict[str, Any], tokens: str) -> None:
    tok = with_file_settings({"max_length": 5}, {"strategy": {"Fixed": 7}})
    assert tok.encode("a b c d e", **options).tokens == tokens.split()
    assert [e.tokens for e in tok.encodings(["a b c d e"], **options)] == [tokens.split()]


def test_truncation_by_the_file_is_reported_for_batches_and_files(tmp_path: Path) -> None:
    tok = with_file_settings({"max_length": 5}, None)
    texts = ["a", "a b c d e", "b", "a b c d e f"]
    expected = "2 of 4 texts were cut at 5 tokens, the first at index 1, by the truncation that the tokenizer's file"
    with pytest.warns(TruncationWarning, match=expected):
        batch = tok.encode_batch(texts)
    assert batch.truncated.tolist() == [False, True, False, True]
    with pytest.warns(TruncationWarning, match=expected):
        tok.encodings(texts)
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(texts) + "\n")
    with pytest.warns(TruncationWarning, match=r"2 of 4 texts .* the first at .*texts\.txt.*2"):
        tok.encode_files(path, tmp_path / "ids.npy")
    with pytest.warns(TruncationWarning, match=r"2 of 4 texts .* the first at .*texts\.txt.*2"):
        assert sum(len(rows) for rows in tok.iter_files(path)) == 4
    # What the call asks for is not reported, nor what keeps all windows; warnings are errors here.
    tok.encode_batch(texts, truncation=True)
    tok.encode_batch(texts, truncation=False)
    tok.encode_batch(texts, return_overflowing_tokens=True)
    tok.with_truncation(None).encode_batch(texts)
    tok.encode_files(path, tmp_path / "ids.npy", truncation=True, max_length=3)


def test_from_pretrained_does_not_follow_the_truncation_and_padding_of_the_file(tmp_path: Path) -> None:
    tok = with_file_settings({"max_length": 5, "direction": "Left"}, {"strategy": {"Fixed": 7}, "direction": "Left"})
    folder = tmp_path / "model"
    tok.save_pretrained(folder)
    loaded = wb.Tokenizer.from_pretrained(folder)
    assert (loaded.truncation, loaded.padding) == (None, None)
    assert (loaded.truncation_side, loaded.padding_side) == ("left", "left")
    assert len(loaded.encode("a b c d e")) == len(loaded.encode_ids("a b c d e")) == 7
    assert loaded.encode_batch(["a b c d e"]).lengths.tolist() == [7]
    assert loaded.encode("a b c d", truncation=True, max_length=4, padding=True).tokens == ["[CLS]", "c", "d", "[SEP]"]
    followed = wb.Tokenizer.from_file(folder / "tokenizer.json")
    assert (followed.truncation, followed.padding) == (tok.truncation, tok.padding)


def test_truncation_and_padding_can_be_set_and_removed() -> None:
    tok = tokenizer()
    cut = tok.with_truncation(max_length=4, stride=1, truncation_side="left")
    assert cut.truncation == {"max_length": 4, "stride": 1, "strategy": "longest_first", "direction": "left"}
    assert cut.encode("a b c d").tokens == ["[CLS]", "c", "d", "[SEP]"]
    assert wb.Tokenizer.from_json(cut.to_json()).truncation == cut.truncation
    padded = cut.with_padding("max_length", max_length=6)
    assert padded.encode("a").tokens == ["[CLS]", "a", "[SEP]", "[PAD]", "[PAD]", "[PAD]"]
    assert padded.truncation == cut.truncation
    assert padded.with_truncation(None).with_padding(None) == tok.with_truncation(False).with_padding(False) == tok
    with pytest.raises(InputError, match="needs a max_length"):
        tok.with_truncation()
    with pytest.raises(InputError, match="'other'"):
        tok.with_truncation("other", max_length=4)


def test_a_padding_id_that_is_not_its_tokens_is_reported(tmp_path: Path) -> None:
    text = tokenizer().with_padding().to_json().replace('"pad_id": 0', '"pad_id": 3')
    path = tmp_path / "tokenizer.json"
    path.write_text(text)
    for load in (lambda: wb.Tokenizer.from_json(text), lambda: wb.Tokenizer.from_file(path)):
        with pytest.warns(UserWarning, match=r"pad_id is 3, but its pad_token '\[PAD\]' has the id 0; .* with 3"):
            tok = load()
        assert tok.encode_batch(["a b", "a"])[1].tolist()[-1] == 3
    with pytest.warns(UserWarning, match="pad_id is 3, .* with the id of the pad_token"):
        loaded = wb.Tokenizer.from_pretrained(tmp_path)
    assert loaded(["a b", "a"], padding=True)["input_ids"][1, -1] == 0


def test_by_default_nothing_is_truncated_or_padded() -> None:
    tok = tokenizer()
    assert (tok.truncation, tok.padding, tok.model_max_length) == (None, None, None)
    assert (tok.truncation_side, tok.padding_side) == ("right", "right")
    assert len(tok.encode("a " * 1000)) == 1002
    assert tok.encode("a b c", max_length=5) == tok.encode("a b c", truncation=True, max_length=5)


def test_windows_share_the_stride_of_the_call() -> None:
    enc = tokenizer().encode("a b c d e f g", truncation=True, max_length=5, stride=1)
    assert [window.tokens[1:-1] for window in [enc, *enc.overflowing]] == [list("abc"), list("cde"), list("efg")]


def test_truncation_strategies() -> None:
    tok = tokenizer()
    cut = {
        strategy: tok.encode("a b c d", "e f g", truncation=strategy, max_length=8).tokens
        for strategy in ("longest_first", "only_first", "only_second")
    }
    assert cut["longest_first"] == ["[CLS]", "a", "b", "c", "[SEP]", "e", "f", "[SEP]"]
    assert cut["only_first"] == ["[CLS]", "a", "b", "[SEP]", "e", "f", "g", "[SEP]"]
    assert cut["only_second"] == ["[CLS]", "a", "b", "c", "d", "[SEP]", "e", "[SEP]"]


def test_special_tokens_can_be_encoded_as_text() -> None:
    tok = tokenizer()
    assert tok.tokenize("a[SEP]b") == ["a", "[SEP]", "b"]
    taken = tok.encode("a[SEP]b", add_special_tokens=False, encode_special_tokens=True).tokens
    assert "[SEP]" not in taken


@pytest.mark.parametrize(("unit", "offsets"), [("char", (2, 5)), ("byte", (5, 8)), ("utf16", (3, 6))])
def test_units_of_offsets(unit: str, offsets: tuple[int, int]) -> None:
    assert tokenizer().encode("\U0001f600 cat", offset_unit=unit).offsets[2] == offsets


# --- words and pairs


def test_words_keep_their_indices() -> None:
    enc = tokenizer().encode(["new york", "", "unwanted"], is_split_into_words=True)
    assert enc.tokens[1:-1] == ["new", "york", "un", "##want", "##ed"]
    assert enc.word_ids[1:-1] == [0, 0, 2, 2, 2]
    assert enc.offsets[1:-1] == [(0, 3), (4, 8), (0, 2), (2, 6), (6, 8)]


def test_an_empty_pair_is_a_pair() -> None:
    tok = tokenizer()
    assert tok.encode("a", "").tokens == ["[CLS]", "a", "[SEP]", "[SEP]"]
    assert tok("a", "")["input_ids"].shape == (1, 4)
    assert tok.encode("a", None) == tok.encode("a")


def test_numpy_strings_are_strings() -> None:
    tok = tokenizer()
    for array in (np.array(["中国", "cat"]), np.array(["中国", "cat"], dtype=object)):
        assert tok.encodings(array) == tok.encodings(["中国", "cat"])
        assert tok.encode(array, is_split_into_words=True) == tok.encode(["中国", "cat"], is_split_into_words=True)
    pairs = np.array([["a", "b"], ["c", "d"]])
    assert tok.encodings(pairs) == tok.encodings([("a", "b"), ("c", "d")])
    assert tok.encode(np.str_("cat")) == tok.encode("cat")


def test_any_iterable_is_a_batch() -> None:
    tok = tokenizer()
    expected = tok.encode_batch(TEXTS).to_list()
    for texts in (tuple(TEXTS), iter(TEXTS), (text for text in TEXTS), dict.fromkeys(TEXTS).keys()):
        assert tok.encode_batch(texts).to_list() == expected


# --- added tokens


def test_added_tokens_make_a_new_tokenizer() -> None:
    tok = tokenizer()
    before = tok.to_json()
    marked = tok.with_added_tokens(["<e1>", wb.AddedToken("<e2>", lstrip=True), "cat"])
    assert marked.tokenize("see <e1> and  <e2>cat")[1::2] == ["<e1>", "  <e2>"]
    assert tok.to_json() == before
    assert tok != marked
    assert len(marked) == len(tok) + 2
    assert marked.vocab_size == tok.vocab_size
    assert [marked.token_to_id(token) for token in ("<e1>", "<e2>", "cat")] == [
        len(tok),
        len(tok) + 1,
        tok.token_to_id("cat"),
    ]
    assert "<e1>" in marked
    assert "<e1>" not in tok


def test_decoding_omits_special_added_tokens() -> None:
    plain = tokenizer().with_added_tokens(["<e>"])
    special = tokenizer().with_added_tokens(["<e>", wb.AddedToken("<f>", lstrip=True)], special=True)
    assert plain.decode(plain.encode_ids("a <e> b")) == "a <e> b"
    assert special.decode(special.encode_ids("a <e> b <f>")) == "a b"
    assert all(token.special and not token.normalized for token in special.added_tokens.values())
    assert special.added_tokens[len(special) - 1].lstrip


def test_special_tokens_of_bert_get_their_roles(tmp_path: Path) -> None:
    tok = wb.Tokenizer.from_json(wb.Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]"]).to_json())
    more = tok.with_added_tokens(["[MASK]", wb.AddedToken("[PAD]", special=True), "[CLS]"], special=True)
    assert (more.mask_token_id, more.pad_token_id, more.cls_token_id) == (3, 4, 1)
    assert tok.with_added_tokens(["[MASK]"]).mask_token is None
    more.save_pretrained(tmp_path)
    assert wb.Tokenizer.from_pretrained(tmp_path) == more


def test_the_normalized_flag_of_a_token() -> None:
    assert wb.AddedToken("X").normalized
    assert not wb.AddedToken("X", special=True).normalized
    tok = tokenizer()
    assert tok.with_added_tokens([wb.AddedToken("Foo")]).tokenize("FOO foo") == ["foo", "foo"]
    assert tok.with_added_tokens([wb.AddedToken("Foo", normalized=False)]).tokenize("Foo") == ["Foo"]


def test_an_added_token_is_a_value() -> None:
    token = wb.AddedToken("<e>", rstrip=True)
    assert token == wb.AddedToken("<e>", rstrip=True)
    assert token != wb.AddedToken("<e>")
    assert len({token, wb.AddedToken("<e>", rstrip=True)}) == 1
    assert str(token) == "<e>"
    assert "rstrip=True" in repr(token)
    with pytest.raises(AttributeError):
        token.content = "x"  # type: ignore[misc]


# --- vocabulary, special tokens, decoding


def test_lookups() -> None:
    tok = tokenizer()
    assert tok.token_to_id("cat") == TOKENS.index("cat")
    assert tok.token_to_id("dog") is None
    assert tok.id_to_token(0) == "[PAD]"
    assert tok.id_to_token(len(tok)) is None
    assert tok.get_vocab() == {token: i for i, token in enumerate(TOKENS)}
    assert tok.convert_tokens_to_ids("dog") == tok.unk_token_id == 1
    assert tok.convert_tokens_to_ids(["cat", "dog"]) == [TOKENS.index("cat"), 1]
    assert tok.convert_ids_to_tokens(2) == "[CLS]"
    assert tok.convert_ids_to_tokens(np.array([2, 10, 999])) == ["[CLS]", "the", None]
    assert tok.convert_ids_to_tokens([2, 10, 3], skip_special_tokens=True) == ["the"]
    added = tok.with_added_tokens(["<e>"])
    assert added.get_vocab() == {**tok.get_vocab(), "<e>": len(tok)}
    assert added.get_vocab(with_added_tokens=False) == tok.get_vocab()


def test_special_tokens_have_roles() -> None:
    tok = tokenizer()
    assert {role: getattr(tok, role) for role in ROLES} == ROLES
    assert {role: getattr(tok, f"{role}_id") for role in ROLES} == {
        role: TOKENS.index(token) for role, token in ROLES.items()
    }
    assert sorted(tok.all_special_ids) == [0, 1, 2, 3, 4]
    more = tok.with_added_tokens(["<s>"], special=True).with_added_tokens(["<t>"])
    assert set(more.all_special_tokens) == {*ROLES.values(), "<s>"}


def test_roles_missing_from_the_vocabulary_are_none() -> None:
    tok = wb.Tokenizer.from_vocab(["[UNK]", "a"])
    assert (tok.pad_token, tok.pad_token_id, tok.mask_token, tok.mask_token_id) == (None,) * 4
    assert tok.all_special_tokens == ["[UNK]"]
    with pytest.raises(InputError, match=r"'\[PAD\]' is not in its vocabulary"):
        tok.encode("a", padding=True)
    named = wb.Tokenizer.from_vocab(["[UNK]", "a"], pad_token="<pad>")
    with pytest.raises(InputError, match="'<pad>' is not in its vocabulary"):
        named(["a"], padding="max_length", max_length=4)


def test_decoding() -> None:
    tok = tokenizer()
    enc = tok.encode("Unwanted cats, running!")
    assert tok.decode(enc.ids) == "unwanted cats, running!"
    assert tok.decode(enc.ids, skip_special_tokens=False) == "[CLS] unwanted cats, running! [SEP]"
    assert tok.decode(enc.ids, clean_up_tokenization_spaces=False) == "unwanted cats, running!"
    ids = tok.convert_tokens_to_ids(["the", "cat", "'", "c", "mat", "!"])
    assert tok.decode(ids) == "the cat ' c mat!"
    assert tok.decode(ids, clean_up_tokenization_spaces=True) == "the cat'c mat!"
    with pytest.raises(InputError, match="clean_up_tokenization_spaces must be True or False, or None, not 1"):
        tok.decode(ids, True, 1)  # type: ignore[arg-type]
    assert tok.decode(np.array(enc.ids)) == tok.decode(tuple(enc.ids)) == tok.decode(iter(enc.ids))
    assert tok.decode(10) == "the"
    assert tok.decode([]) == ""
    batch = tok.encode_batch(TEXTS)
    expected = [tok.decode(ids) for ids in batch.to_list()]
    assert tok.decode_batch(batch) == tok.decode_batch(batch.to_list()) == expected
    assert tok.decode_batch(tok(TEXTS, padding=True)["input_ids"]) == expected
    assert tok.decode_batch([]) == []
    assert tok.decode([10, 99999, 11]) == "the cat"
    with pytest.raises(InputError, match="99999 has no token"):
        tok.decode([10, 99999, 11], strict=True)
    with pytest.raises(InputError, match=r"item 1: .*99999 has no token"):
        tok.decode_batch([[10], [99999]], strict=True)


@given(st.lists(st.sampled_from(["un", "cat", "the", "a", "unwanted", "running", "cafe"]), max_size=8))
def test_decoding_inverts_encoding_of_plain_text(words: list[str]) -> None:
    tok = tokenizer()
    text = " ".join(words)
    assert tok.decode(tok.encode_ids(text)) == text


# --- comparison and representation


def test_tokenizers_with_equal_definitions_are_equal() -> None:
    tok = tokenizer()
    assert tok == tokenizer()
    assert hash(tok) == hash(tokenizer())
    assert len({tok, tokenizer()}) == 1
    for other in (
        tokenizer(lowercase=False),
        tokenizer(continuing_subword_prefix="_"),
        wb.Tokenizer.from_vocab(TOKENS[::-1]),
        tok.with_added_tokens(["<e>"]),
        with_file_settings({"max_length": 9}),
    ):
        assert tok != other
        assert tok.fingerprint != other.fingerprint
    assert tok != "tokenizer"


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    code = "from small_tokenizer import tokenizer; print(tokenizer().fingerprint)"
    for seed in ("1", "2"):
        assert printed(code, env={**os.environ, "PYTHONHASHSEED": seed}) == [tokenizer().fingerprint]
    assert len(tokenizer().fingerprint) == 64


def test_repr() -> None:
    tok = with_file_settings({"max_length": 9}, {"strategy": {"Fixed": 12}}).with_added_tokens(["<e>"])
    shown = (
        f"Tokenizer(vocab_size={len(TOKENS)}, lowercase=True, [CLS] A [SEP], added_tokens=1, truncation=9, padding=12)"
    )
    assert repr(tok) == shown
    assert "lowercase=False, strip_accents=True" in repr(tokenizer(lowercase=False, strip_accents=True))


def test_a_tokenizer_is_immutable() -> None:
    tok = tokenizer()
    for name in ("padding", "truncation", "model_max_length", "cls_token", "vocab_size"):
        with pytest.raises(AttributeError):
            setattr(tok, name, None)
    with pytest.raises(AttributeError):
        tok.anything = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="from_vocab"):
        wb.Tokenizer()


# --- saving


def test_added_tokens_after_a_gap_keep_their_ids_in_tokenizers(tmp_path: Path) -> None:
    """A vocab.txt with blank and repeated lines has fewer tokens than lines; tokenizers counts ids from the number."""
    tokenizers = pytest.importorskip("tokenizers")
    path = tmp_path / "vocab.txt"
    path.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n\n\nc\n##d\na\ne\n")
    with pytest.warns(VocabWarning):
        tok = wb.Tokenizer.from_vocab(path)
    tok = tok.with_added_tokens(["NEW", "n3w"]).with_added_tokens(["[X]", "<a b>"], special=True)
    assert [tok.token_to_id(token) for token in ("e", "NEW", "n3w", "[X]", "<a b>")] == [12, 13, 14, 15, 16]
    text = "a NEW b n3w xn3wy [X]e <a b> new n3"
    tok.save_pretrained(tmp_path / "model")
    saved = tmp_path / "model" / "tokenizer.json"
    assert tokenizers.Tokenizer.from_file(str(saved)).encode(text).ids == tok.encode(text).ids
    for again in (wb.Tokenizer.from_file(saved), wb.Tokenizer.from_pretrained(tmp_path / "model")):
        assert again.encode(text).ids == tok.encode(text).ids
        assert len(again) == len(tok)
    unwritable = tok.with_added_tokens(["new"], special=True)
    with pytest.raises(InputError, match=r'"new" the id 15 instead of 17; .* a piece of ordinary words'):
        unwritable.save_pretrained(tmp_path / "refused")
    assert not (tmp_path / "refused").exists()
    again = pickle.loads(pickle.dumps(unwritable))
    assert again == unwritable
    assert again.encode("a new b").ids == unwritable.encode("a new b").ids


def test_what_transformers_saves_of_a_vocabulary_with_gaps_is_loaded(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n\n\nc\n##d\na\ne\n")
    theirs = transformers.BertTokenizer.from_pretrained(str(tmp_path))
    theirs.add_tokens(["NEW1", "NEW2"])
    theirs.add_special_tokens({"additional_special_tokens": ["[X]"]})
    theirs.save_pretrained(str(tmp_path / "saved"))
    tok = wb.Tokenizer.from_pretrained(tmp_path / "saved")
    text = "a NEW1 b NEW2 [X] e"
    ids = theirs(text)["input_ids"]
    assert tok.encode(text).ids == ids  # NEW1 and "a" share an id, as there
    assert tok.decode(ids, skip_special_tokens=False) == theirs.decode(ids)
    assert len(tok) == len(theirs.get_vocab())
    tok.save_pretrained(tmp_path / "again")
    again = transformers.AutoTokenizer.from_pretrained(str(tmp_path / "again"))
    assert again(text)["input_ids"] == wb.Tokenizer.from_pretrained(tmp_path / "again").encode(text).ids == ids


def test_a_byte_order_mark_is_named_where_the_unknown_token_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes("\ufeff[UNK]\na\n".encode())
    with pytest.raises(VocabError, match=r"begins with a byte order mark.*; save the file without the mark"):
        wb.Tokenizer.from_vocab(path)


@pytest.mark.filterwarnings("ignore:.*by the truncation that the tokenizer's file sets")
def test_save_and_from_file_round_trip(tmp_path: Path) -> None:
    tok = with_file_settings({"max_length": 30, "direction": "Left"}, {"pad_to_multiple_of": 8}).with_added_tokens(
        ["<e>"]
    )
    tok.save(tmp_path / "tokenizer.json")
    again = wb.Tokenizer.from_file(tmp_path / "tokenizer.json")
    assert again == tok
    assert again.to_json() == tok.to_json() == (tmp_path / "tokenizer.json").read_text(encoding="utf-8")
    assert again.truncation_side == "left"
    assert [fields(e) for e in again.encodings(TEXTS)] == [fields(e) for e in tok.encodings(TEXTS)]


def test_an_invalid_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text('{"model": {"type": "BPE"}}')
    with pytest.raises(TokenizerFormatError, match=r'tokenizer\.json: model: "BPE" is not supported'):
        wb.Tokenizer.from_file(path)
    path.write_text("{")
    with pytest.raises(TokenizerFormatError, match=r"tokenizer\.json: .*line 1"):
        wb.Tokenizer.from_file(path)


@pytest.mark.filterwarnings("ignore:padding. pad_id is")
@given(strategies.cases(windows=False))
def test_saving_is_idempotent(case: dict[str, Any]) -> None:
    try:
        tok = wb.Tokenizer.from_json(case_files.tokenizer_json(case))
    except InputError:
        return
    again = wb.Tokenizer.from_json(tok.to_json())
    assert again == tok
    assert again.to_json() == tok.to_json()


def test_folders_round_trip(tmp_path: Path) -> None:
    tok = tokenizer().with_added_tokens(["<e>", wb.AddedToken("<f>", special=True, lstrip=True)])
    tok.save_pretrained(tmp_path / "model")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = wb.Tokenizer.from_pretrained(tmp_path / "model")
    assert again == tok
    assert (tmp_path / "model" / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1] == TOKENS


def test_a_folder_of_a_vocabulary_with_gaps_has_no_vocab_txt(tmp_path: Path) -> None:
    tok = wb.Tokenizer.from_vocab({"[UNK]": 0, "a": 7})
    tok.save_pretrained(tmp_path)
    assert not (tmp_path / "vocab.txt").exists()
    assert wb.Tokenizer.from_pretrained(tmp_path).encode("a b").ids == [7, 0]


def test_a_folder_sets_sides_and_model_max_length(tmp_path: Path) -> None:
    tokenizer().save_pretrained(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    config |= {"model_max_length": 5, "padding_side": "left", "truncation_side": "left"}
    config["model_input_names"] = ["input_ids", "attention_mask"]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tok = wb.Tokenizer.from_pretrained(tmp_path)
    assert (tok.model_max_length, tok.padding_side, tok.truncation_side) == (5, "left", "left")
    assert tok.encode("a b c d", truncation=True).tokens == ["[CLS]", "b", "c", "d", "[SEP]"]
    assert tok.encode("a", padding="max_length").tokens == ["[PAD]", "[PAD]", "[CLS]", "a", "[SEP]"]
    assert list(tok("a")) == ["input_ids", "attention_mask"]
    tok.save_pretrained(tmp_path / "again")
    assert wb.Tokenizer.from_pretrained(tmp_path / "again") == tok


def test_a_folder_with_only_a_vocabulary(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    tok = wb.Tokenizer.from_pretrained(tmp_path)
    assert tok.to_json() == tokenizer(lowercase=False).to_json()


def test_a_folder_that_contradicts_itself_warns(tmp_path: Path) -> None:
    tokenizer(lowercase=False).save(tmp_path / "tokenizer.json")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    with pytest.warns(UserWarning, match="do_lower_case") as caught:
        tok = wb.Tokenizer.from_pretrained(tmp_path)
    assert caught[0].filename == __file__
    assert tok.tokenize("Cat cat") == ["[UNK]", "cat"]


def test_transformers_and_tokenizers_load_what_is_saved(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    for name, tok in {
        "bert": tokenizer(),
        "cased": tokenizer(lowercase=False),
        "added": tokenizer().with_added_tokens(["<e>", wb.AddedToken("<f>", rstrip=True, special=True)]),
        "odd": tokenizer(max_input_chars_per_word=5, clean_text=False),
    }.items():
        folder = tmp_path / name
        tok.save_pretrained(folder)
        texts = [*TEXTS, "the <e> cat <f>  sat"]
        expected = tok.encode_batch(texts).to_list()
        peer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        assert [e.ids for e in peer.encode_batch(texts)] == expected
        assert transformers.AutoTokenizer.from_pretrained(folder)(texts)["input_ids"] == expected


def test_the_word_cache_has_a_documented_bound() -> None:
    tok = tokenizer()
    assert 1 << 20 < tok.memory_bytes_per_thread < 1 << 27
