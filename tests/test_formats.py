"""vocab.txt and tokenizer.json: reading, refusals and their messages, and writing."""

from __future__ import annotations

import copy
import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wordpiece_bert as wb
from wordpiece_bert.errors import TokenizerFormatError, VocabError, VocabWarning, WordPieceError

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##b", "é", "new", "york", "中"]
TEXT = "Éa b [MASK] New York中 bb a."


def token(token_id: int, content: str, **flags: bool) -> dict[str, Any]:
    names = ("single_word", "lstrip", "rstrip", "normalized", "special")
    return {"id": token_id, "content": content, **dict.fromkeys(names, False), **flags}


def pieces(*names: str) -> list[dict[str, Any]]:
    """The JSON of a template from its text form, `$A:0` or `[CLS]:0`."""
    parts = [name.rsplit(":", 1) for name in names]
    return [
        {"Sequence": {"id": name[1:], "type_id": int(type_id)}}
        if name.startswith("$")
        else {"SpecialToken": {"id": name, "type_id": int(type_id)}}
        for name, type_id in parts
    ]


TEMPLATE = {
    "type": "TemplateProcessing",
    "single": pieces("[CLS]:0", "$A:0", "[SEP]:0"),
    "pair": pieces("[CLS]:0", "$A:0", "[SEP]:0", "$B:1", "[SEP]:1"),
    "special_tokens": {name: {"id": name, "ids": [VOCAB.index(name)], "tokens": [name]} for name in ("[CLS]", "[SEP]")},
}
BERT = {
    "type": "BertNormalizer",
    "clean_text": True,
    "handle_chinese_chars": True,
    "strip_accents": None,
    "lowercase": True,
}
PARTS: dict[str, list[Any]] = {
    "truncation": [
        None,
        {"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0},
        {"direction": "Left", "max_length": 6, "strategy": "OnlyFirst", "stride": 1},
    ],
    "padding": [
        None,
        {
            "strategy": {"Fixed": 12},
            "direction": "Left",
            "pad_to_multiple_of": 8,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "[PAD]",
        },
    ],
    "added_tokens": [
        [],
        [token(i, name, special=True) for i, name in enumerate(VOCAB[:5])],
        [
            token(4, "[MASK]", special=True, lstrip=True),
            token(12, "New York", normalized=True, single_word=True),
            token(13, "<e>", rstrip=True),
        ],
    ],
    "normalizer": [
        None,
        BERT,
        {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}, {"type": "StripAccents"}]},
        {"type": "Replace", "pattern": {"Regex": "b+"}, "content": "b"},
        {"type": "Sequence", "normalizers": [{"type": "Strip", "strip_left": True, "strip_right": False}, BERT]},
        {"type": "Prepend", "prepend": "a"},
    ],
    "pre_tokenizer": [
        None,
        {"type": "BertPreTokenizer"},
        {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, {"type": "Digits", "individual_digits": True}]},
        {"type": "Split", "pattern": {"String": " "}, "behavior": "Removed", "invert": False},
        {
            "type": "Sequence",
            "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "Isolated"}],
        },
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True},
        {"type": "CharDelimiterSplit", "delimiter": " "},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    ],
    "post_processor": [
        None,
        TEMPLATE,
        {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        {
            "type": "RobertaProcessing",
            "sep": ["[SEP]", 3],
            "cls": ["[CLS]", 2],
            "trim_offsets": True,
            "add_prefix_space": False,
        },
    ],
    "decoder": [
        None,
        {"type": "WordPiece", "prefix": "##", "cleanup": True},
        {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "##"}, "content": ""},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
                {"type": "Fuse"},
            ],
        },
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": False},
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    ],
}
MODEL = {
    "type": "WordPiece",
    "unk_token": "[UNK]",
    "continuing_subword_prefix": "##",
    "max_input_chars_per_word": 100,
    "vocab": {name: i for i, name in enumerate(VOCAB)},
}
FILES = st.fixed_dictionaries({name: st.sampled_from(parts) for name, parts in PARTS.items()}).map(
    lambda parts: copy.deepcopy({"version": "1.0", **parts, "model": MODEL})
)


def file(**parts: Any) -> dict[str, Any]:
    return copy.deepcopy({"version": "1.0", **dict.fromkeys(PARTS), "added_tokens": [], "model": MODEL} | parts)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values inside a JSON value, except for single vocabulary entries."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = []
    for key, inner in inside:
        found.append((*path, key))
        if key != "vocab":
            found += paths(inner, (*path, key))
    return found


REMOVED = object()
VALUES: list[Any] = [
    *(REMOVED, None, True, False, 0, 1, -1, 1.5, 2**32, "", "a", "ab", [], {}, [1], {"a": 1}),
    *("Left", "Sequence", "BertNormalizer", "WordPiece", "NFC", {"String": "q"}, {"Regex": "("}),
]


@st.composite
def damaged(draw: st.DrawFn) -> tuple[dict[str, Any], Any]:
    """A file in which one value is removed or replaced, and the key of that value."""
    whole = draw(FILES)
    *above, key = draw(st.sampled_from(paths(whole)))
    parent = whole
    for step in above:
        parent = parent[step]
    value = draw(st.sampled_from(VALUES))
    if value is REMOVED:
        del parent[key]
    else:
        parent[key] = copy.deepcopy(value)
    return whole, key


def theirs(whole: dict[str, Any]) -> Any:
    """The reference's tokenizer, or None if it refuses the file."""
    tokenizers = pytest.importorskip("tokenizers")
    try:
        return tokenizers.Tokenizer.from_str(json.dumps(whole))
    except Exception:  # noqa: BLE001 (it raises bare Exceptions)
        return None


@given(FILES)
def test_written_json_equals_that_of_the_reference(whole: dict[str, Any]) -> None:
    reference = theirs(whole)
    tokenizer = wb.Tokenizer.from_json(json.dumps(whole))
    text = tokenizer.to_json()
    assert text == reference.to_str(pretty=True)
    again = wb.Tokenizer.from_json(text)
    assert again == tokenizer
    assert again.to_json() == text


# What this package refuses on purpose and the reference accepts: a type with the fields of another (the reference
# ignores the type), stored ids that are not the real ones, templates with undefined tokens, a missing unknown token, an
# added token that would match everywhere, two tokens with one id.
STRICTER = (
    "is not supported",
    'the field "type" is missing',
    '"type" is',
    "but tokenizers gives it id",
    "the template",
    "ids but",
    "is not in the vocabulary",
    "the vocabulary is empty",
    "turns it into nothing",
    "is given to two tokens",
    '"trim_offsets"',
    '"add_prefix_space"',
    "max_length is",
    "stride is",
)


@given(damaged())
def test_damaged_files_are_read_as_by_the_reference_or_refused(
    case: tuple[dict[str, Any], Any],
) -> None:
    whole, key = case
    reference = theirs(whole)
    refusal = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a padding id of another token is followed with a warning
            tokenizer = wb.Tokenizer.from_json(json.dumps(whole))
    except WordPieceError as error:
        refusal = str(error)
    if refusal:
        assert reference is None or key == "type" or any(words in refusal for words in STRICTER), refusal
        return
    assert reference is not None, "the reference refuses it"
    reference.no_truncation()
    reference.no_padding()
    assert tokenizer.encode(TEXT, truncation=False, padding=False).ids == reference.encode(TEXT).ids


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"normalizer": {"type": "Precompiled"}}, 'normalizer: "Precompiled" is not supported'),
        (
            {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Nmt"}]}},
            'normalizer.normalizers[1]: "Nmt" is not supported',
        ),
        ({"pre_tokenizer": {"type": "UnicodeScripts"}}, 'pre_tokenizer: "UnicodeScripts" is not supported'),
        ({"post_processor": {"type": "ByteLevel"}}, 'post_processor: "ByteLevel" is not supported'),
        ({"decoder": {"type": "CTC"}}, 'decoder: "CTC" is not supported'),
        ({"model": MODEL | {"type": "BPE"}}, 'model: "BPE" is not supported'),
        ({"model": {"type": "WordPiece"}}, 'model: the field "vocab" is missing'),
        ({"version": "2.0"}, '"version" is "2.0"'),
        ({"extra": 1}, 'unknown field "extra"'),
        ({"normalizer": BERT | {"lowercase": "yes"}}, 'normalizer: "lowercase" is "yes"; expected true or false'),
        ({"added_tokens": [token(99, "<e>")]}, '"<e>" has id 99 in the file, but tokenizers gives it id 12'),
        (
            {"post_processor": TEMPLATE | {"special_tokens": {}}},
            'the template names "[CLS]", which is not among its special_tokens',
        ),
        (
            {"post_processor": {"type": "Sequence", "processors": [TEMPLATE, TEMPLATE]}},
            '"Sequence of 2 post-processors" is not supported',
        ),
    ],
)
def test_a_refusal_names_the_component_and_the_value(parts: dict[str, Any], words: str) -> None:
    with pytest.raises(TokenizerFormatError) as caught:
        wb.Tokenizer.from_json(json.dumps(file(**parts)))
    assert words in str(caught.value)


def test_invalid_json_is_reported_with_line_and_column() -> None:
    with pytest.raises(TokenizerFormatError, match="line 3 column"):
        wb.Tokenizer.from_json('{\n "version": "1.0",\n "model": }')
    text = json.dumps(file(), indent=1).replace('"a": 5', '"a": -5')
    line = 1 + text[: text.index('"a": -5')].count("\n")
    with pytest.raises(TokenizerFormatError, match=rf"model\.vocab: .*-5.* at line {line} column"):
        wb.Tokenizer.from_json(text)


def test_deep_nesting_is_refused() -> None:
    nested = '{"type":"Sequence","normalizers":[' * 100_000 + "]}" * 100_000
    with pytest.raises(TokenizerFormatError, match="62 deep"):
        wb.Tokenizer.from_json(json.dumps(file()).replace('"normalizer": null', f'"normalizer": {nested}'))


def test_line_numbers_of_a_vocab_txt_are_ids(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes("\ufeffa\r\nb \n\nc\u3000\n d\nb\n[UNK]".encode())
    with pytest.warns(VocabWarning) as caught:
        tokenizer = wb.Tokenizer.from_vocab(path)
    assert tokenizer.get_vocab() == {"\ufeffa": 0, "": 2, "c": 3, " d": 4, "b": 5, "[UNK]": 6}
    messages = [str(warning.message) for warning in caught]
    for words in ("byte order mark", "line 2 ends in white space", "line 3 is blank", "line 2 and again on line 6"):
        assert any(words in message for message in messages), words
    with pytest.raises(VocabError, match="byte order mark"):
        wb.Tokenizer.from_vocab(path, strict=True)


@given(st.lists(st.text(st.sampled_from("ab \r\t\u0085\u2028\ufeff#é"), max_size=4), max_size=8))
def test_a_vocab_txt_is_read_as_by_the_reference(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    models = pytest.importorskip("tokenizers").models
    path = tmp_path_factory.getbasetemp() / "vocab.txt"
    path.write_bytes("\n".join([*lines, "[UNK]"]).encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert wb.Tokenizer.from_vocab(path).get_vocab() == models.WordPiece.read_file(str(path))


@pytest.mark.parametrize(
    ("tokens", "options", "missing"),
    [
        (["[UNK]", "a"], {}, "no '[CLS]' and no '[SEP]', so"),
        (["[UNK]", "[CLS]", "a"], {}, "no '[SEP]', so"),
        (["[UNK]", "[CLS]", "[SEP]", "a"], {"cls_token": "<s>"}, "no '<s>', so"),
        (["[UNK]", "[CLS]", "[SEP]", "a"], {}, None),
        (["[UNK]", "<s>", "</s>", "a"], {"cls_token": "<s>", "sep_token": "</s>"}, None),
    ],
)
def test_a_vocab_txt_from_which_no_special_tokens_are_added_warns(
    tmp_path: Path, tokens: list[str], options: dict[str, str], missing: str | None
) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(tokens) + "\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tokenizer = wb.Tokenizer.from_vocab(path, **options)  # type: ignore[arg-type]
        wb.Tokenizer.from_vocab(tokens, **options)  # type: ignore[arg-type]
    assert tokenizer.num_special_tokens_to_add() == (0 if missing else 2)
    assert [warning.category for warning in caught] == ([VocabWarning] if missing else [])
    assert not missing or (missing in str(caught[0].message) and str(path) in str(caught[0].message))


def test_a_vocab_txt_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes(b"[UNK]\na\xff\n")
    with pytest.raises(VocabError, match=r"not UTF-8: line 2, byte offset 7"):
        wb.Tokenizer.from_vocab(path)


def test_only_a_vocabulary_without_gaps_is_saved_as_vocab_txt(tmp_path: Path) -> None:
    wb.Tokenizer.from_vocab({"[UNK]": 0, "a": 5}).save_pretrained(tmp_path / "gaps")
    assert not (tmp_path / "gaps" / "vocab.txt").exists()
    assert wb.Tokenizer.from_pretrained(tmp_path / "gaps").token_to_id("a") == 5
    wb.Tokenizer.from_vocab(["[UNK]", "a"]).save_pretrained(tmp_path / "dense")
    assert (tmp_path / "dense" / "vocab.txt").read_text(encoding="utf-8") == "[UNK]\na\n"


def test_json_files_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    tokenizer = wb.Tokenizer.from_vocab(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "B"], lowercase=False)
    tokenizer.save_pretrained(tmp_path / "plain")
    shutil.copytree(tmp_path / "plain", tmp_path / "marked")
    for file in (tmp_path / "marked").glob("*.json"):
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert wb.Tokenizer.from_pretrained(tmp_path / "marked") == tokenizer
    # tokenizer.json is compared with tokenizer_config.json, mark or not
    config = json.loads((tmp_path / "plain" / "tokenizer_config.json").read_text()) | {"do_lower_case": True}
    (tmp_path / "marked" / "tokenizer_config.json").write_text("\ufeff" + json.dumps(config), encoding="utf-8")
    with pytest.warns(UserWarning, match="do_lower_case"):
        wb.Tokenizer.from_pretrained(tmp_path / "marked")
    assert wb.Tokenizer.from_file(tmp_path / "marked" / "tokenizer.json") == wb.Tokenizer.from_json(tokenizer.to_json())
    assert wb.Tokenizer.from_json("\ufeff" + tokenizer.to_json()) == wb.Tokenizer.from_json(tokenizer.to_json())


def test_a_vocab_txt_in_utf16_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    for coding in ("utf-16", "utf-16-le", "utf-16-be"):
        path.write_text("[UNK]\n[CLS]\n[SEP]\na\n", encoding=coding)
        with pytest.raises(VocabError, match=r"the vocabulary is not UTF-8: line 1.*convert it to UTF-8"):
            wb.Tokenizer.from_vocab(path)


def test_a_line_of_white_space_is_named(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_text("[UNK]\n[CLS]\n[SEP]\n\u2028\na\n", encoding="utf-8")
    with pytest.warns(VocabWarning, match=r'line 4 has nothing but the white space "\\u\{2028\}"'):
        tokenizer = wb.Tokenizer.from_vocab(path)
    assert tokenizer.token_to_id("a") == 4
    with pytest.raises(VocabError, match=r'line 4 of the vocabulary has nothing but the white space "\\u\{2028\}"'):
        wb.Tokenizer.from_vocab(path, strict=True)
