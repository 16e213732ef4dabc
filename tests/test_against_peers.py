"""This package and the programs it has to agree with, on texts that Hypothesis makes and on every code point.

The reference is `tokenizers` 0.23.3 (and `transformers` 5.23.0 on top of it); without them these tests are skipped, with
another version too, for it may have changed. All fields are compared, also of all overflow windows.
"""

from __future__ import annotations

import itertools
import json
import os
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

import case_files
import strategies
import wordpiece_bert as wb
from wordpiece_bert.errors import InputError, TokenizerFormatError, VocabError

# Settings of the file that the tests follow on purpose: its truncation, and a padding id that is not its token's.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*by the truncation that the tokenizer's file sets"),
    pytest.mark.filterwarnings("ignore:padding. pad_id is"),
]

tokenizers = pytest.importorskip("tokenizers")
if tokenizers.__version__ != "0.23.3":
    pytest.skip(f"the reference is tokenizers 0.23.3, not {tokenizers.__version__}", allow_module_level=True)

FIELDS = ("ids", "tokens", "offsets", "word_ids", "type_ids", "sequence_ids", "attention_mask", "special_tokens_mask")
OURS = {"type_ids": "token_type_ids"}
TEXTS = (Path(__file__).parent / "data" / "texts" / "mixed.txt").read_bytes().decode().split("\n")
EXHAUSTIVE = os.environ.get("HYPOTHESIS_PROFILE") == "random"
NORMALIZERS = [
    dict(zip(("clean_text", "handle_chinese_chars", "strip_accents", "lowercase"), flags, strict=True))
    for flags in itertools.product((True, False), (True, False), (None, True, False), (True, False))
]


def fields(encoding: object, names: dict[str, str]) -> dict[str, Any]:
    """All fields of an encoding of either side, windows included."""
    found: dict[str, Any] = {name: list(getattr(encoding, names.get(name, name))) for name in FIELDS}
    found["overflowing"] = [fields(window, names) for window in encoding.overflowing]
    return found


def assert_same(ours: list[Any], theirs: list[Any]) -> None:
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert fields(mine, OURS) == fields(other, {})


def vocabulary() -> list[str]:
    """A vocabulary of the mixed texts: their characters, and their most frequent strings of two to five."""
    words = Counter(word for text in TEXTS for word in "".join(c if c.isalnum() else " " for c in text.lower()).split())
    strings: Counter[str] = Counter()
    for word in words:
        strings.update({word[i : i + n] for n in range(2, 6) for i in range(len(word) - n + 1)})
    characters = sorted({c for text in TEXTS for c in text + text.lower() if c.isprintable() and c != " "})
    pieces = characters + [string for string, n in strings.most_common(400)]
    return list(dict.fromkeys([*strategies.SPECIAL, *pieces, *("##" + piece for piece in pieces), *words]))


VOCABULARY = vocabulary()


def both(case: dict[str, Any]) -> tuple[wb.Tokenizer, Any]:
    text = case_files.tokenizer_json(case)
    return wb.Tokenizer.from_json(text), tokenizers.Tokenizer.from_str(text)


def bert(**more: object) -> dict[str, Any]:
    registered = [{"content": token, "special": True} for token in strategies.SPECIAL]
    return {"vocab": VOCABULARY, "post_processor": "bert", "added_tokens": registered, **more}


def normal_forms_are_distinct(case: dict[str, Any]) -> bool:
    """Of added tokens with one normal form, chance decides in the reference; with none, it matches everywhere."""
    found = []
    normalizer = case_files.normalizer_of(case)
    bare = json.loads(case_files.tokenizer_json({**case, "added_tokens": [], "truncation": None, "padding": None}))
    peer = tokenizers.Tokenizer.from_str(json.dumps(bare))
    for token in case_files.added_tokens_of(case):
        normalized = token["normalized"] and normalizer is not None
        form = peer.normalizer.normalize_str(token["content"]) if normalized else token["content"]
        if not form:
            return False
        found.append((token["normalized"], form))
    return len(found) == len(set(found))


def assert_equal_on(case: dict[str, Any]) -> None:
    """Encode the inputs of a case with both and compare, errors too."""
    ours, theirs = both(case)
    presplit = [isinstance(one[key], list) for one in case["inputs"] for key in ("text", "pair") if key in one]
    assume(len(set(presplit)) == 1)
    items = [(one["text"], one["pair"]) if "pair" in one else one["text"] for one in case["inputs"]]
    special = case.get("add_special_tokens", True)
    try:
        expected = theirs.encode_batch(items, is_pretokenized=presplit[0], add_special_tokens=special)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        # A panic is a deliberate difference (D24), an error has to be one here too.
        assume("Truncation error" in str(error))
        with pytest.raises(wb.WordPieceError):
            ours.encodings(items, is_split_into_words=presplit[0], add_special_tokens=special)
        return
    assert_same(ours.encodings(items, is_split_into_words=presplit[0], add_special_tokens=special), expected)


@given(strategies.cases())
@settings(suppress_health_check=[*settings().suppress_health_check, HealthCheck.filter_too_much])
def test_random_tokenizers_answer_the_same(case: dict[str, Any]) -> None:
    assume(normal_forms_are_distinct(case))
    assert_equal_on(case)


@given(strategies.cases(other_components=True, windows=False))
@settings(suppress_health_check=[*settings().suppress_health_check, HealthCheck.filter_too_much])
def test_random_tokenizers_of_other_components_answer_the_same(case: dict[str, Any]) -> None:
    assume(normal_forms_are_distinct(case))
    assert_equal_on(case)


@given(st.lists(strategies.texts, min_size=1, max_size=4), st.sampled_from(NORMALIZERS))
@example(["\u0130\u0301", "e\u0301\u0316", "\u0f73\u0f71"], NORMALIZERS[0])
def test_any_text_gives_the_same(texts: list[str], options: dict[str, Any]) -> None:
    case = bert(normalizer={"type": "BertNormalizer", **options})
    assert_equal_on({**case, "inputs": [{"text": text} for text in texts]})


@pytest.mark.parametrize(
    "options", NORMALIZERS, ids=lambda options: "".join("-01"[1 + v if v is not None else 0] for v in options.values())
)
def test_mixed_texts_give_the_same(options: dict[str, Any]) -> None:
    ours, theirs = both(bert(normalizer={"type": "BertNormalizer", **options}))
    assert_same(ours.encodings(TEXTS), theirs.encode_batch(TEXTS))
    pairs = list(itertools.pairwise(TEXTS))
    assert_same(ours.encodings(pairs), theirs.encode_batch(pairs))


@pytest.mark.parametrize("direction", ["left", "right"])
@pytest.mark.parametrize("strategy", ["longest_first", "only_first", "only_second"])
@pytest.mark.parametrize("stride", [0, 3])
@pytest.mark.parametrize("multiple", [None, 8])
def test_windows_of_mixed_texts_are_the_same(direction: str, strategy: str, stride: int, multiple: int | None) -> None:
    case = bert(
        truncation={"max_length": 32, "stride": stride, "strategy": strategy, "direction": direction},
        padding={"direction": direction} | ({"pad_to_multiple_of": multiple} if multiple else {}),
    )
    ours, theirs = both(case)
    _, whole = both(bert())
    # Not so long that the windows of a pair multiply beyond measure, and with something to cut.
    short = [text[:60] for text in TEXTS if len(whole.encode(text[:60]).ids) > 6]
    pairs = list(itertools.pairwise(short))
    for items in (pairs, short) if strategy == "longest_first" else (pairs,):
        expected = []
        for item in items:
            try:
                expected.append((item, theirs.encode(*item) if isinstance(item, tuple) else theirs.encode(item)))
            except BaseException as error:
                message = str(error)
                if "too short" not in message and "stride" not in message:
                    raise
                with pytest.raises(wb.WordPieceError, match="too short" if "too short" in message else "stride"):
                    ours.encodings([item])
        assert len(expected) > 5
        assert_same([ours.encodings([item])[0] for item, _ in expected], [encoding for _, encoding in expected])
        batch = [item for item, _ in expected]
        assert_same(ours.encodings(batch), theirs.encode_batch(batch))


@pytest.mark.parametrize(
    "options", NORMALIZERS if EXHAUSTIVE else NORMALIZERS[:1] + NORMALIZERS[-1:] + NORMALIZERS[5:6], ids=str
)
def test_every_code_point_alone_and_between_letters(options: dict[str, Any]) -> None:
    """All of the Basic Multilingual Plane and a part of the rest; in `make fuzz` all of Unicode.

    The planes that hold characters today are 1 to 3 and 14; of the others there are fewer.
    """
    ours, theirs = both(bert(normalizer={"type": "BertNormalizer", **options}))
    steps = [13 if plane in (1, 2, 3, 14) else 257 for plane in range(17)]
    rest = [
        c
        for c in range(0x10000, 0x110000)
        if EXHAUSTIVE or c % steps[c >> 16] == 0 or c % 0x10000 in (0, 1, 0xFFFE, 0xFFFF)
    ]
    code_points = [c for c in range(0x10000) if not 0xD800 <= c <= 0xDFFF] + rest
    for start in range(0, len(code_points), 20_000):
        chars = [chr(c) for c in code_points[start : start + 20_000]]
        for texts in (chars, [f"a{c}b" for c in chars]):
            mine, other = (
                ours.encodings(texts, add_special_tokens=False),
                theirs.encode_batch(texts, add_special_tokens=False),
            )
            wrong = [
                text
                for text, a, b in zip(texts, mine, other, strict=True)
                if (a.ids, a.tokens, a.offsets, a.word_ids) != (b.ids, b.tokens, b.offsets, b.word_ids)
            ]
            assert not wrong, [ascii(text) for text in wrong[:10]]


@given(st.data())
def test_decoding_gives_the_same(data: st.DataObject) -> None:
    decoder = data.draw(
        st.sampled_from(
            [
                "none",
                {"type": "WordPiece", "prefix": "##", "cleanup": False},
                {"type": "WordPiece", "prefix": "##", "cleanup": True},
            ]
        )
    )
    tokens = ["it", "'", "s", ".", " .", "n't", "do", "not", "do not", "##s", "####s", "'ve", "##!", "?", ",", "\u00e9"]
    ours, theirs = both({**bert(decoder=decoder), "vocab": [*strategies.SPECIAL, *tokens]})
    ids = data.draw(st.lists(st.integers(0, len(tokens) + 8), max_size=12))
    skip = data.draw(st.booleans())
    assert ours.decode(ids, skip_special_tokens=skip) == theirs.decode(ids, skip_special_tokens=skip)


@given(st.data())
def test_cleaning_up_is_that_of_transformers(data: st.DataObject) -> None:
    transformers = pytest.importorskip("transformers", reason="the option is one of its methods")
    cleanup = data.draw(st.booleans())
    tokens = [
        "it",
        "'",
        "s",
        ".",
        " .",
        "n't",
        "do",
        "not",
        "do not",
        "##s",
        "'ve",
        "isn",
        "t",
        "m",
        "re",
        "?",
        ",",
        "!",
    ]
    decoder = data.draw(st.sampled_from(["none", {"type": "WordPiece", "prefix": "##", "cleanup": cleanup}]))
    ours, theirs = both({**bert(decoder=decoder), "vocab": [*strategies.SPECIAL, *tokens]})
    default = data.draw(st.booleans())
    peer = transformers.PreTrainedTokenizerFast(tokenizer_object=theirs, clean_up_tokenization_spaces=default)
    ids = data.draw(st.lists(st.integers(0, len(tokens) + 5), max_size=16))
    skip = data.draw(st.booleans())
    for asked in (True, False):
        expected = peer.decode(ids, skip_special_tokens=skip, clean_up_tokenization_spaces=asked)
        assert ours.decode(ids, skip, asked) == expected
        assert ours.decode_batch([ids], skip, asked) == ours.batch_decode([ids], skip, asked) == [expected]
    assert ours.decode(ids, skip) == theirs.decode(ids, skip_special_tokens=skip)
    folder_says = wb.Tokenizer._build(ours._inner, ours._settings._replace(clean_up_tokenization_spaces=default))
    assert folder_says.batch_decode([ids], skip) == [peer.decode(ids, skip_special_tokens=skip)]


# The file's ids of added tokens, in a vocabulary with gaps


@st.composite
def files_with_added_ids(draw: st.DrawFn) -> dict[str, Any]:
    """A tokenizer.json whose vocabulary may have gaps, and whose added tokens have ids of several origins."""
    tokens = ["[UNK]", *draw(st.lists(st.sampled_from(["a", "b", "c", "##d", "[X]", "<y>"]), unique=True))]
    ids = draw(st.lists(st.integers(0, 12), min_size=len(tokens), max_size=len(tokens), unique=True))
    vocab = dict(zip(tokens, ids, strict=True))
    json_file = json.loads(case_files.tokenizer_json(bert(vocab=tokens, post_processor=None, added_tokens=[])))
    json_file["model"]["vocab"] = vocab
    contents = draw(st.lists(st.sampled_from(["a", "c", "[X]", "<y>", "<z>", "(new)", "w"]), max_size=5))
    json_file["added_tokens"] = [
        {
            "id": 0,
            "content": content,
            "special": draw(st.booleans()),
            "normalized": draw(st.booleans()),
            **dict.fromkeys(("single_word", "lstrip", "rstrip"), False),
        }
        for content in contents
    ]
    theirs = tokenizers.Tokenizer.from_str(json.dumps(json_file))
    for token in json_file["added_tokens"]:
        read = theirs.token_to_id(token["content"])
        token["id"] = draw(st.one_of(st.just(read), st.just(read), st.just(read), st.integers(0, 20)))
    return json_file


@given(files_with_added_ids())
def test_the_ids_of_added_tokens_are_those_that_tokenizers_reads_or_refused(file: dict[str, Any]) -> None:
    theirs = tokenizers.Tokenizer.from_str(json.dumps(file))
    read = {token["content"]: theirs.token_to_id(token["content"]) for token in file["added_tokens"]}
    moved = [token for token in file["added_tokens"] if token["id"] != read[token["content"]]]
    if moved:
        content, stated = moved[0]["content"], moved[0]["id"]
        with pytest.raises(TokenizerFormatError) as raised:
            wb.Tokenizer.from_json(json.dumps(file))
        for part in (
            f'"{content}" has id {stated} in the file, but tokenizers gives it id {read[content]}',
            f'set "{content}" to {stated} in model.vocab',
            f"set its id in added_tokens to {read[content]}",
        ):
            assert part in str(raised.value)
        return
    if len(set(read.values())) < len(read):
        with pytest.raises(VocabError, match="is given to two tokens"):
            wb.Tokenizer.from_json(json.dumps(file))
        return
    ours = wb.Tokenizer.from_json(json.dumps(file))
    assert {token["content"]: token["id"] for token in file["added_tokens"]} == read
    for token in [*file["model"]["vocab"], *read]:
        assert ours.token_to_id(token) == theirs.token_to_id(token)
    for text in ("a b c", "a[X]<y> <z>(new) w ad", "ab w"):
        assert ours.encode(text).ids == theirs.encode(text).ids


@given(files_with_added_ids(), st.lists(st.sampled_from(["a", "<v>", "<y>", "new", "<u>"]), max_size=3))
def test_a_written_file_is_read_with_the_same_ids_there(file: dict[str, Any], more: list[str]) -> None:
    try:
        ours = wb.Tokenizer.from_json(json.dumps(file)).with_added_tokens(more)
    except (TokenizerFormatError, VocabError):
        assume(False)
    ids = {token.content: number for number, token in ours.added_tokens.items()}
    assert len(ids) == len(ours.added_tokens)
    assert {token: number for token, number in ids.items() if token in file["model"]["vocab"]}.items() <= (
        file["model"]["vocab"].items()
    )
    again = pickle.loads(pickle.dumps(ours))
    assert again == ours
    assert again.added_tokens == ours.added_tokens
    try:
        text = ours.to_json()
    except InputError:  # no file gives a token its id without changing the pieces of words
        return
    theirs, mine = tokenizers.Tokenizer.from_str(text), wb.Tokenizer.from_json(text)
    for token, number in ids.items():
        assert theirs.token_to_id(token) == mine.token_to_id(token) == number
    for text in ("a b c", "a[X]<y> <z>(new) w ad", "new <v>"):
        assert ours.encode(text).ids == theirs.encode(text).ids == mine.encode(text).ids


@given(strategies.cases(windows=False))
def test_what_is_saved_loads_there_and_answers_the_same(case: dict[str, Any]) -> None:
    assume(normal_forms_are_distinct(case))
    ours, theirs = both(case)
    again = tokenizers.Tokenizer.from_str(ours.to_json())
    for token in [*case_files.vocab_of(case), *(token["content"] for token in case.get("added_tokens", []))]:
        assert again.token_to_id(token) == theirs.token_to_id(token) == ours.token_to_id(token)
    texts = [one["text"] for one in case["inputs"] if isinstance(one["text"], str)]
    assume(texts)
    try:
        expected = theirs.encode_batch(texts)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        assume(False)
    for a, b in zip(again.encode_batch(texts), expected, strict=True):
        assert fields(a, {}) == fields(b, {})


@pytest.mark.parametrize(("padding", "max_length"), [(True, None), ("longest", None), (True, 24), ("max_length", 24)])
@pytest.mark.parametrize("pairs", [False, True])
def test_the_call_equals_that_of_transformers(padding: bool | str, max_length: int | None, pairs: bool) -> None:
    transformers = pytest.importorskip("transformers", reason="its call is what this one is like")
    if transformers.__version__ != "5.23.0":
        pytest.skip(f"the reference is transformers 5.23.0, not {transformers.__version__}")
    ours, theirs = both(bert())
    names = {
        "unk_token": "[UNK]",
        "sep_token": "[SEP]",
        "pad_token": "[PAD]",
        "cls_token": "[CLS]",
        "mask_token": "[MASK]",
    }
    peer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=theirs, model_input_names=["input_ids", "token_type_ids", "attention_mask"], **names
    )
    texts = [text for text in TEXTS if text]
    second = texts[1:] + texts[:1] if pairs else None
    options: dict[str, Any] = {"padding": padding, "return_special_tokens_mask": True, "return_offsets_mapping": True}
    if max_length is not None:
        options |= {"truncation": True, "max_length": max_length}
    expected = peer(texts, second, return_tensors="np", **options)
    found = ours(texts, second, return_tensors="np", **options)
    assert set(found) == set(expected)
    for key, array in expected.items():
        assert found[key].dtype == np.int64
        np.testing.assert_array_equal(found[key], array, err_msg=key)
