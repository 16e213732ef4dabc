"""Model folders: reading them, compared with transformers where it is installed, and writing them."""

from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wordpiece_bert as wb
from wordpiece_bert import _core
from wordpiece_bert._internal.atomic_folder import AtomicFolder
from wordpiece_bert.errors import InputError, ModelNotFoundError, TokenizerFormatError, VocabWarning
from wordpiece_bert.tokenizer import pretrained
from wordpiece_bert.tokenizer.pretrained import FolderSettings, load_folder, write_folder

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##b", "É", "e", "éa", "中", "[", "]", "cls", "x"]
UNCASED = {"do_lower_case": True}
TEXT = "É a中b xb <x> foo[MASK] <m> [CLS] New b"


def tokenizer_json(**parts: Any) -> dict[str, Any]:
    """A cased BERT tokenizer without added tokens, with some parts replaced."""
    cls, sep = ({"SpecialToken": {"id": token, "type_id": 0}} for token in ("[CLS]", "[SEP]"))
    first, second = ({"Sequence": {"id": "AB"[i], "type_id": i}} for i in (0, 1))
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": False,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [cls, first, sep],
            "pair": [cls, first, sep, second, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
            "special_tokens": {
                token: {"id": token, "ids": [VOCAB.index(token)], "tokens": [token]} for token in ("[CLS]", "[SEP]")
            },
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {token: i for i, token in enumerate(VOCAB)},
        },
        **parts,
    }


def added_token(token_id: int, content: str, **flags: bool) -> dict[str, Any]:
    names = ("single_word", "lstrip", "rstrip", "normalized", "special")
    return {"id": token_id, "content": content, **dict.fromkeys(names, False), **flags}


SPECIAL = [added_token(i, token, special=True) for i, token in enumerate(VOCAB[:5])]


def make_folder(path: Path, files: dict[str, Any]) -> Path:
    """A folder with these files; values that are not text or bytes are written as JSON."""
    path.mkdir(exist_ok=True)
    for name, value in files.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        (path / name).write_text(text, encoding="utf-8")
    return path


def vocab_folder(path: Path, **files: Any) -> Path:
    named = {name.replace("__", "."): value for name, value in files.items()}
    return make_folder(path, {"vocab.txt": "\n".join(VOCAB) + "\n", **named})


def test_a_vocab_txt_has_the_options_of_its_config(tmp_path: Path) -> None:
    options = {"do_lower_case": False, "strip_accents": True, "tokenize_chinese_chars": False, "padding_side": "left"}
    config = {**options, "model_max_length": 512.0, "tokenizer_class": "BertTokenizer", "cls_token": "[MASK]"}
    loaded = load_folder(vocab_folder(tmp_path, tokenizer_config__json=config))
    assert loaded.json is None
    assert loaded.vocab is not None
    assert (loaded.vocab.lowercase, loaded.vocab.strip_accents, loaded.vocab.tokenize_chinese_chars) == (
        False,
        True,
        False,
    )
    settings = loaded.settings
    assert (settings.model_max_length, settings.padding_side, settings.truncation_side) == (512, "left", None)
    assert settings.special_tokens["cls_token"] == "[MASK]"
    assert settings.special_tokens["sep_token"] == "[SEP]"


def test_without_a_config_the_defaults_are_those_of_bert(tmp_path: Path) -> None:
    loaded = load_folder(vocab_folder(tmp_path))
    assert loaded.vocab is not None
    assert (loaded.vocab.lowercase, loaded.vocab.strip_accents) == (True, None)
    assert loaded.settings == FolderSettings(special_tokens=pretrained.SPECIAL_TOKEN_ROLES)
    assert [token.content for token in loaded.added_tokens] == ["[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"]


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ({"tokenizer_class": "DistilBertTokenizerFast"}, ("input_ids", "attention_mask")),
        ({"tokenizer_class": "BertTokenizerFast"}, ("input_ids", "token_type_ids", "attention_mask")),
        ({"model_input_names": ["input_ids"]}, ("input_ids",)),
    ],
)
def test_model_input_names_come_from_the_config_or_the_class(
    tmp_path: Path, config: dict[str, Any], names: tuple[str, ...]
) -> None:
    assert load_folder(vocab_folder(tmp_path, tokenizer_config__json=config)).settings.model_input_names == names


@pytest.mark.parametrize("limit", [None, int(1e30), 1e30, 10**20])
def test_a_huge_model_max_length_means_no_limit(tmp_path: Path, limit: float | None) -> None:
    folder = vocab_folder(tmp_path, tokenizer_config__json={"model_max_length": limit})
    assert load_folder(folder).settings.model_max_length is None


def test_tokenizer_json_is_used_and_a_contradiction_warns(tmp_path: Path) -> None:
    files = {"tokenizer.json": tokenizer_json(), "vocab.txt": "other\n"}
    config = {"do_lower_case": True, "tokenize_chinese_chars": True, "strip_accents": None}
    loaded = load_folder(make_folder(tmp_path, {**files, "tokenizer_config.json": config}))
    assert loaded.vocab is None
    assert loaded.json is not None
    assert json.loads(loaded.json) == tokenizer_json()
    (warning,) = loaded.warnings
    assert "'do_lower_case' is true" in warning
    assert "tokenizer.json has false" in warning
    assert load_folder(make_folder(tmp_path, {"tokenizer_config.json": {"do_lower_case": False}})).warnings == ()
    assert load_folder(make_folder(tmp_path, {"tokenizer_config.json": {}})).warnings == ()
    steps = {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}]}
    make_folder(tmp_path, {"tokenizer.json": tokenizer_json(normalizer=steps), "tokenizer_config.json": config})
    assert load_folder(tmp_path).warnings == ()


def test_a_cased_tokenizer_json_is_never_lower_cased(tmp_path: Path) -> None:
    make_folder(tmp_path, {"tokenizer.json": tokenizer_json(), "tokenizer_config.json": {"do_lower_case": True}})
    with pytest.warns(UserWarning, match="'do_lower_case' is true"):
        tokenizer = wb.Tokenizer.from_pretrained(tmp_path)
    assert tokenizer.encode("É").ids == [2, VOCAB.index("É"), 3]


def test_a_folder_without_a_vocabulary_names_the_missing_files(tmp_path: Path) -> None:
    make_folder(tmp_path, {"config.json": {}})
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ModelNotFoundError, match=r"neither tokenizer\.json nor vocab\.txt"):
            load_folder(folder)


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("tokenizer_config.json", "[1]", r"tokenizer_config\.json: holds '?\[1\]'?, expected a JSON object"),
        ("tokenizer_config.json", "{", r"tokenizer_config\.json: not JSON"),
        ("tokenizer_config.json", {"do_lower_case": 1}, r"tokenizer_config\.json: 'do_lower_case' is 1; expected true"),
        ("tokenizer_config.json", {"padding_side": "up"}, r"'padding_side' is 'up'; expected \"left\" or \"right\""),
        ("tokenizer_config.json", {"model_max_length": 0}, r"'model_max_length' is 0; expected a whole number"),
        ("tokenizer_config.json", {"max_len": 1.5}, r"'max_len' is 1\.5"),
        ("tokenizer_config.json", {"tokenizer_class": "PhobertTokenizer"}, r"'PhobertTokenizer'; expected a WordPiece"),
        ("tokenizer_config.json", {"cls_token": 3}, r"'cls_token' is 3; expected a token"),
        ("tokenizer_config.json", {"extra_special_tokens": 5}, r"'extra_special_tokens' is 5; expected a list"),
        (
            "tokenizer_config.json",
            {"added_tokens_decoder": {"x": {"content": "y"}}},
            r"has the key 'x'; expected an id",
        ),
        ("tokenizer_config.json", {"added_tokens_decoder": {"7": {"content": "y", "lstrip": 1}}}, r"7: 'lstrip' is 1"),
        ("special_tokens_map.json", {"mask_token": {"lstrip": True}}, r"special_tokens_map\.json: 'mask_token' is"),
        ("added_tokens.json", {"y": -1}, r"added_tokens\.json: 'y' has -1; expected an id"),
    ],
)
def test_an_invalid_file_is_reported_with_its_key(tmp_path: Path, name: str, content: Any, match: str) -> None:
    make_folder(vocab_folder(tmp_path), {name: content})
    with pytest.raises(TokenizerFormatError, match=match):
        load_folder(tmp_path)


def test_a_tokenizer_json_that_is_not_text_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(b'{"version": "\xff"}')
    for read in (wb.Tokenizer.from_pretrained, lambda folder: wb.Tokenizer.from_file(folder / "tokenizer.json")):
        with pytest.raises(
            TokenizerFormatError,
            match=r"/tokenizer\.json: not a valid tokenizer\.json: not UTF-8: byte 0xff at offset 13",
        ):
            read(tmp_path)
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    with pytest.raises(TokenizerFormatError, match="Git LFS pointer"):
        load_folder(tmp_path)


def test_an_id_other_than_the_stated_one_is_reported(tmp_path: Path) -> None:
    loaded = load_folder(vocab_folder(tmp_path, added_tokens__json={"<x>": 99, "<y>": 16}))
    assert pretrained.moved_tokens(loaded, {"<x>": 17, "<y>": 16}.get) == [
        "added_tokens.json: the added token '<x>' has id 99 there, but gets 17, the next after the "
        "vocabulary; the model's embeddings may not match"
    ]


JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-2, 9), st.floats(allow_nan=False), st.sampled_from(["", "a", "left"])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(st.sampled_from(["content", "lstrip", "5", "type", "id"]), inner, max_size=3),
    ),
    max_leaves=4,
)
KEYS = [
    *pretrained.SPECIAL_TOKEN_ROLES,
    *("extra_special_tokens", "additional_special_tokens", "added_tokens_decoder", "model_max_length", "padding_side"),
    *("do_lower_case", "tokenizer_class", "model_input_names", "own_token", "added_tokens", "normalizer", "model"),
]


@given(
    st.dictionaries(
        st.sampled_from(["tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"]),
        st.one_of(JSON, st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4)),
    ),
    st.data(),
)
def test_any_json_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, Any], data: Any
) -> None:
    folder = vocab_folder(tmp_path_factory.mktemp("folder", numbered=True))
    make_folder(folder, files)
    refusal = ""
    try:
        load_folder(folder)
    except TokenizerFormatError as error:
        refusal = str(error)
    assert not refusal or any(name in refusal for name in files)


# --- against transformers

FLAGS = st.fixed_dictionaries(
    {}, optional={name: st.booleans() for name in ("single_word", "lstrip", "rstrip", "normalized")}
)
CONTENTS = st.sampled_from(["<x>", "<y>", "foo", "[MASK]", "[CLS]", "a", "b", "<m>"])
PLAIN_OR_TYPED = st.one_of(
    CONTENTS, st.builds(lambda content, flags: {"__type": "AddedToken", "content": content, **flags}, CONTENTS, FLAGS)
)
ROLES = ("sep_token", "pad_token", "cls_token", "mask_token", "eos_token")
CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(ROLES, CONTENTS),
        "image_token": st.just("<img>"),
        "additional_special_tokens": st.lists(PLAIN_OR_TYPED, max_size=2),
        "extra_special_tokens": st.one_of(st.lists(PLAIN_OR_TYPED, max_size=2), st.just({"audio_token": "<au>"})),
        "added_tokens_decoder": st.dictionaries(
            st.integers(3, 30).map(str),
            st.builds(lambda content, flags: {"content": content, **flags}, CONTENTS, FLAGS),
            max_size=3,
        ),
        "do_lower_case": st.booleans(),
        "strip_accents": st.sampled_from([None, True, False]),
        "tokenize_chinese_chars": st.booleans(),
        "model_max_length": st.sampled_from([8, 512, int(1e30)]),
        "padding_side": st.sampled_from(["left", "right"]),
        "truncation_side": st.sampled_from(["left", "right"]),
    },
)
MAPS = st.fixed_dictionaries(
    {},
    optional={
        **{
            role: st.one_of(CONTENTS, st.builds(lambda content, flags: {"content": content, **flags}, CONTENTS, FLAGS))
            for role in ROLES[:-1]
        },
        "additional_special_tokens": st.lists(CONTENTS, max_size=2),
        "extra_special_tokens": st.lists(CONTENTS, max_size=2),
    },
)
ADDED = st.lists(CONTENTS, unique=True, max_size=3).map(lambda contents: {c: 20 + i for i, c in enumerate(contents)})
ADDED_IN_JSON = st.lists(st.tuples(CONTENTS, st.booleans(), st.booleans()), unique_by=lambda item: item[0], max_size=3)


@given(
    config=CONFIGS,
    special_tokens_map=st.none() | MAPS,
    added_tokens=st.none() | ADDED,
    in_json=st.none() | ADDED_IN_JSON,
    lowercase=st.booleans(),
)
def test_ids_are_those_of_transformers(
    tmp_path_factory: pytest.TempPathFactory,
    config: dict[str, Any],
    special_tokens_map: dict[str, Any] | None,
    added_tokens: dict[str, int] | None,
    in_json: list[tuple[str, bool, bool]] | None,
    lowercase: bool,
) -> None:
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("folder", numbered=True)
    files: dict[str, Any] = {"tokenizer_config.json": config}
    if special_tokens_map is not None:
        files["special_tokens_map.json"] = special_tokens_map
    if added_tokens is not None:
        files["added_tokens.json"] = added_tokens
    if in_json is None:
        vocab_folder(folder)
        reference = transformers.BertTokenizer
    else:
        tokens = []
        for content, normalized, special in in_json:
            new = [token["content"] for token in tokens if token["id"] >= len(VOCAB)]
            token_id = VOCAB.index(content) if content in VOCAB else len(VOCAB) + len(new)
            tokens.append(added_token(token_id, content, normalized=normalized, special=special))
        normalizer = tokenizer_json()["normalizer"] | {"lowercase": lowercase}
        files["tokenizer.json"] = tokenizer_json(added_tokens=tokens, normalizer=normalizer)
        reference = transformers.PreTrainedTokenizerFast
    make_folder(folder, files)
    theirs = reference.from_pretrained(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = wb.Tokenizer.from_pretrained(folder)
    assert ours.get_vocab() == theirs.get_vocab()
    assert ours.encode(TEXT, "b [MASK]", truncation=False, padding=False).ids == theirs(TEXT, "b [MASK]")["input_ids"]


# --- writing

TEXTS = [(TEXT, None), ("[CLS] éa <x>[PAD]x", "b [SEP] new b"), ("", "")]


def save(path: Path, file: dict[str, Any], settings: FolderSettings | None = None) -> str:
    """Write a folder, and return the class that its config names."""
    roles = FolderSettings(special_tokens=pretrained.SPECIAL_TOKEN_ROLES)
    with AtomicFolder(path) as output:
        output.begin()
        write_folder(output, _core.Tokenizer.from_json(json.dumps(file)), settings or roles)
        output.commit()
    name = json.loads((path / "tokenizer_config.json").read_text(encoding="utf-8"))["tokenizer_class"]
    assert isinstance(name, str)
    return name


def test_a_written_folder_is_read_back(tmp_path: Path) -> None:
    settings = FolderSettings(
        model_max_length=77,
        padding_side="left",
        truncation_side="left",
        special_tokens={**pretrained.SPECIAL_TOKEN_ROLES, "mask_token": "<m>"},
        model_input_names=("input_ids", "attention_mask"),
    )
    file = tokenizer_json(added_tokens=[*SPECIAL, added_token(16, "<m>", special=True, lstrip=True)])
    save(tmp_path, file, settings)
    loaded = load_folder(tmp_path)
    assert loaded.settings == settings
    assert loaded.warnings == ()
    assert loaded.json is not None
    assert json.loads(loaded.json) == file
    assert [token.content for token in loaded.added_tokens] == [*VOCAB[:5], "<m>"]
    assert pretrained.moved_tokens(loaded, {token: i for i, token in enumerate([*VOCAB, "<m>"])}.get) == []


def test_files_of_an_earlier_tokenizer_have_no_effect(tmp_path: Path) -> None:
    make_folder(tmp_path, {"added_tokens.json": {"old": 16}, "special_tokens_map.json": {"mask_token": "old"}})
    save(tmp_path, tokenizer_json(added_tokens=SPECIAL))
    loaded = load_folder(tmp_path)
    assert [token.content for token in loaded.added_tokens] == VOCAB[:5]
    assert loaded.settings.special_tokens == pretrained.SPECIAL_TOKEN_ROLES
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_bert_tokenizer_is_named_only_if_it_rebuilds_the_tokenizer(tmp_path: Path) -> None:
    bert = tokenizer_json(added_tokens=SPECIAL)
    assert save(tmp_path, bert) == "BertTokenizer"
    processing = {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}
    assert save(tmp_path, bert | {"post_processor": processing}) == "BertTokenizer"
    for change in (
        {"added_tokens": SPECIAL[:4]},
        {"normalizer": None},
        {"normalizer": bert["normalizer"] | {"clean_text": False}},
        {"pre_tokenizer": {"type": "Whitespace"}},
        {"post_processor": None},
        {"decoder": None},
        {"model": bert["model"] | {"max_input_chars_per_word": 7}},
        {"model": bert["model"] | {"continuing_subword_prefix": "@@"}},
    ):
        assert save(tmp_path, bert | change) == "PreTrainedTokenizerFast", change


@given(
    special=st.integers(0, 5),
    added=st.lists(st.tuples(st.sampled_from(["New b", "<x>", "éa"]), FLAGS, st.booleans()), unique_by=lambda t: t[0]),
    lowercase=st.booleans(),
    strip_accents=st.sampled_from([None, True, False]),
    chinese=st.booleans(),
    parts=st.fixed_dictionaries(
        {},
        optional={
            "normalizer": st.none(),
            "pre_tokenizer": st.just({"type": "Whitespace"}),
            "post_processor": st.none(),
            "padding": st.just(
                {
                    "strategy": "BatchLongest",
                    "direction": "Left",
                    "pad_to_multiple_of": None,
                    "pad_id": 0,
                    "pad_type_id": 0,
                    "pad_token": "[PAD]",
                }
            ),
        },
    ),
)
def test_transformers_and_tokenizers_load_written_folders_with_the_same_ids(
    tmp_path_factory: pytest.TempPathFactory,
    special: int,
    added: list[tuple[str, dict[str, bool], bool]],
    lowercase: bool,
    strip_accents: bool | None,
    chinese: bool,
    parts: dict[str, Any],
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    tokens = SPECIAL[:special]
    following = len(VOCAB)
    for content, flags, is_special in added:
        token_id = VOCAB.index(content) if content in VOCAB else following
        following += content not in VOCAB
        tokens = [*tokens, added_token(token_id, content, **{**flags, "special": is_special})]
    bert = tokenizer_json()["normalizer"]
    options = {"lowercase": lowercase, "strip_accents": strip_accents, "handle_chinese_chars": chinese}
    file = tokenizer_json(added_tokens=tokens, normalizer=bert | options) | parts
    folder = tmp_path_factory.mktemp("folder", numbered=True)
    readers = [transformers.AutoTokenizer]
    if save(folder, file) == "BertTokenizer":
        readers.append(transformers.BertTokenizerFast)
    plain = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    plain.no_padding()
    ours = wb.Tokenizer.from_pretrained(folder)
    for reader in readers:
        theirs = reader.from_pretrained(folder)
        for text, pair in TEXTS:
            expected = plain.encode(text, pair)
            assert ours.encode(text, pair, padding=False).ids == expected.ids
            got = theirs([text], [pair] if pair is not None else None, return_token_type_ids=True)
            assert got["input_ids"] == [expected.ids]
            assert got["token_type_ids"] == [expected.type_ids]
            assert theirs.decode(expected.ids, skip_special_tokens=True) == plain.decode(expected.ids)


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(InputError, match="is not a folder"):
        save(tmp_path / "taken", tokenizer_json())


def test_from_pretrained_restores_what_save_pretrained_wrote(tmp_path: Path) -> None:
    tokenizer = wb.Tokenizer.from_vocab(VOCAB, lowercase=False).with_added_tokens([wb.AddedToken("<x>", lstrip=True)])
    tokenizer.save_pretrained(tmp_path)
    again = wb.Tokenizer.from_pretrained(tmp_path)
    assert again == tokenizer
    assert again.encode(TEXT).ids == tokenizer.encode(TEXT).ids
    assert (tmp_path / "vocab.txt").read_text(encoding="utf-8").split("\n") == [*VOCAB, ""]


def test_special_tokens_missing_from_the_vocabulary_come_after_it(tmp_path: Path) -> None:
    make_folder(tmp_path, {"vocab.txt": "[PAD]\n[UNK]\na\n"})
    with pytest.warns(VocabWarning, match=r"no '\[CLS\]' and no '\[SEP\]': it is added after the other tokens"):
        tokenizer = wb.Tokenizer.from_pretrained(tmp_path)
    assert tokenizer.encode("a").ids == [4, 2, 3]
    assert tokenizer.encode("a", "a").ids == [4, 2, 3, 2, 3]


@pytest.mark.parametrize(
    ("tokens", "config", "remark"),
    [
        (["Paris", "paris"], None, r"'Paris' \(1 of 2\) .*write \"do_lower_case\": false into tokenizer_config.json"),
        (["Paris", "paris"], {"cls_token": "[CLS]"}, r"'Paris' \(1 of 2\) .*put into lower case"),
        (["café", "café"[:3]], None, r"'café' \(1 of 2\) .*accents are removed.*\"strip_accents\": false"),
        (["한"], None, r"'한' \(1 of 1\) .*accents are removed"),
        (["Paris"], UNCASED, None),
        (["Paris"], {"do_lower_case": False}, None),
        (["paris", "東", "##s", "[Q]"], None, None),
    ],
)
def test_a_vocabulary_that_the_default_options_make_unreachable_is_reported(
    tmp_path: Path, tokens: list[str], config: dict[str, Any] | None, remark: str | None
) -> None:
    files: dict[str, Any] = {"vocab.txt": "\n".join([*VOCAB[:5], *tokens]) + "\n"}
    make_folder(tmp_path, files | ({} if config is None else {"tokenizer_config.json": config}))
    if remark is None:
        wb.Tokenizer.from_pretrained(tmp_path)
        return
    with pytest.warns(VocabWarning, match=remark):
        wb.Tokenizer.from_pretrained(tmp_path)
    with pytest.warns(VocabWarning, match=remark.partition(" .*")[0] + " .*(lowercase|strip_accents)=False"):
        wb.Tokenizer.from_vocab(tmp_path / "vocab.txt")


@pytest.mark.parametrize(
    "config",
    [
        {"tokenizer_class": "PreTrainedTokenizerFast", "cls_token": "[CLS]", "additional_special_tokens": ["[SEP]"]},
        {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "[CLS]", "extra_special_tokens": ["[D]", "a"]},
        {"tokenizer_class": "PreTrainedTokenizerFast", "image_token": "[D]", "eos_token": "[SEP]"},
        {"tokenizer_class": "PreTrainedTokenizerFast"},
        {"tokenizer_class": "BertTokenizer", "additional_special_tokens": ["[D]"]},
        {"tokenizer_class": "BertTokenizer"},
    ],
    ids=str,
)
def test_all_special_tokens_are_those_with_a_name_and_the_extra_ones(tmp_path: Path, config: dict[str, Any]) -> None:
    transformers = pytest.importorskip("transformers")
    added = [*SPECIAL, added_token(7, "##b", special=True), added_token(len(VOCAB), "[D]", special=True)]
    make_folder(tmp_path, {"tokenizer.json": tokenizer_json(added_tokens=added), "tokenizer_config.json": config})
    wb.Tokenizer.from_pretrained(tmp_path).save_pretrained(tmp_path / "again")
    ids = list(range(len(VOCAB) + 1))
    for folder in (tmp_path, tmp_path / "again"):
        ours, theirs = wb.Tokenizer.from_pretrained(folder), transformers.AutoTokenizer.from_pretrained(folder)
        assert set(ours.all_special_tokens) == set(theirs.all_special_tokens)
        assert set(ours.all_special_ids) == set(theirs.all_special_ids)
        assert ours.get_special_tokens_mask(ids, None, True) == theirs.get_special_tokens_mask(ids, None, True)
        assert ours.convert_ids_to_tokens(ids, True) == theirs.convert_ids_to_tokens(ids, True)
        assert ours.all_special_tokens == pickle.loads(pickle.dumps(ours)).all_special_tokens
    assert ours.decode([7, len(VOCAB)]) == ""  # what the tokenizer marks special is omitted, as tokenizers does
    more = ours.with_added_tokens(["[E]"], special=True).with_added_tokens(["[F]"])
    assert set(more.all_special_tokens) == {*ours.all_special_tokens, "[E]"}
    plain = wb.Tokenizer.from_file(tmp_path / "tokenizer.json")
    assert set(plain.all_special_tokens) == {token["content"] for token in added}


def test_the_setting_of_cleaning_up_is_that_of_the_folder(tmp_path: Path) -> None:
    folder = vocab_folder(tmp_path / "first", tokenizer_config__json={"clean_up_tokenization_spaces": True, **UNCASED})
    tokenizer = wb.Tokenizer.from_pretrained(folder)
    tokenizer = wb.Tokenizer._build(tokenizer.with_added_tokens(["'", "s"])._inner, tokenizer._settings)
    ids = tokenizer.convert_tokens_to_ids(["a", "'", "s"])
    tokenizer.save_pretrained(tmp_path / "again")
    again = wb.Tokenizer.from_pretrained(tmp_path / "again")
    for one in (tokenizer, again):
        assert one.batch_decode([ids]) == ["a's"]
        assert one.batch_decode([ids], clean_up_tokenization_spaces=False) == [one.decode(ids)] == ["a ' s"]
    assert again == tokenizer
    plain = json.loads((tmp_path / "again" / "tokenizer_config.json").read_text())
    assert plain.pop("clean_up_tokenization_spaces") is True
    (tmp_path / "again" / "tokenizer_config.json").write_text(json.dumps(plain))
    assert wb.Tokenizer.from_pretrained(tmp_path / "again") != tokenizer
