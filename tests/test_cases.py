"""Every case of data/cases through the Python face: as a file that sets all options, and with the options of a call."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

import case_files
import wordpiece_bert as wb
from case_files import Case
from wordpiece_bert import _core, errors

# A file's truncation warns where it cuts, and a padding whose id is not its token's warns on loading: these cases
# follow files on purpose.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*by the truncation that the tokenizer's file sets"),
    pytest.mark.filterwarnings("ignore:padding. pad_id is"),
]


CASES = [pytest.param(case, id=f"{file}-{case['name']}") for file, case in case_files.load()]
FIELDS = ("ids", "tokens", "offsets", "word_ids", "type_ids", "sequence_ids", "attention_mask", "special_tokens_mask")


def as_case(encoding: wb.Encoding) -> dict[str, Any]:
    """An encoding as the files have it."""

    def numbers(values: list[int | None]) -> list[int]:
        return [-1 if value is None else value for value in values]

    found: dict[str, Any] = {
        "ids": list(encoding.ids),
        "tokens": list(encoding.tokens),
        "offsets": [list(pair) for pair in encoding.offsets],
        "word_ids": numbers(encoding.word_ids),
        "type_ids": list(encoding.token_type_ids),
        "sequence_ids": numbers(encoding.sequence_ids),
        "attention_mask": list(encoding.attention_mask),
        "special_tokens_mask": list(encoding.special_tokens_mask),
    }
    if encoding.overflowing:
        found["overflowing"] = [as_case(window) for window in encoding.overflowing]
    return found


def items_of(case: Case) -> list[Any]:
    """The inputs of a case as a batch."""
    return [(one["text"], one["pair"]) if "pair" in one else one["text"] for one in case["inputs"]]


def options_of(case: Case) -> dict[str, Any]:
    """The options of the call that no file has."""
    options: dict[str, Any] = {"add_special_tokens": case.get("add_special_tokens", True)}
    if isinstance(case["inputs"][0]["text"], list):
        options["is_split_into_words"] = True
    if case.get("encode_special_tokens"):
        options["encode_special_tokens"] = True
    return options


def call_of(case: Case) -> dict[str, Any] | None:
    """Truncation and padding as options of a call; None if a call cannot say that."""
    truncation, padding = case.get("truncation"), case.get("padding")
    options: dict[str, Any] = {}
    if truncation is not None:
        options["truncation"] = truncation.get("strategy", "longest_first")
        options["max_length"] = truncation["max_length"]
        options["stride"] = truncation.get("stride", 0)
        options["truncation_side"] = truncation.get("direction", "right")
    if padding is not None:
        vocab = case_files.vocab_of(case)
        if (padding.get("pad_token", "[PAD]"), padding.get("pad_type_id", 0)) != ("[PAD]", 0):
            return None
        if vocab.get("[PAD]") != padding.get("pad_id", 0):
            return None
        options["padding"] = "longest"
        if "length" in padding:
            if options.setdefault("max_length", padding["length"]) != padding["length"]:
                return None
            options["padding"] = "max_length"
        options["padding_side"] = padding.get("direction", "right")
        if "pad_to_multiple_of" in padding:
            options["pad_to_multiple_of"] = padding["pad_to_multiple_of"]
    return options or None


def ask(case: Case, tokenizer: wb.Tokenizer, **options: object) -> dict[str, Any]:
    """The answer to a case."""
    found: dict[str, Any] = {}
    if "inputs" in case:
        items = items_of(case)
        encodings = tokenizer.encodings(items, **options_of(case), **options)
        found["encodings"] = [as_case(encoding) for encoding in encodings]
        if len(items) == 1:
            text, pair = items[0] if isinstance(items[0], tuple) else (items[0], None)
            assert as_case(tokenizer.encode(text, pair, **options_of(case), **options)) == found["encodings"][0]
    if "decode" in case:
        given = {key: value for key, value in case["decode"].items() if key != "ids"}
        found["decoded"] = tokenizer.decode(case["decode"]["ids"], **given)
    if "lookup" in case:
        asked = case["lookup"]
        found["lookup"] = {
            "token_to_id": {token: tokenizer.token_to_id(token) for token in asked.get("token_to_id", {})},
            "id_to_token": {i: tokenizer.id_to_token(int(i)) for i in asked.get("id_to_token", {})},
            "no_token": [i for i in asked.get("no_token", []) if tokenizer.id_to_token(i) is None],
            "vocab_size": len(tokenizer),
        }
    return found


def expected(case: Case) -> dict[str, Any]:
    return {key: case[key] for key in ("encodings", "decoded", "lookup") if key in case}


@pytest.mark.parametrize("case", [param for param in CASES if "error" not in param.values[0]])
def test_the_answer_is_that_of_the_case(case: Case, tmp_path: Path) -> None:
    if "vocab_txt" in case:
        path = tmp_path / "vocab.txt"
        path.write_bytes(case["vocab_txt"].encode())
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            # Without these names it would also warn that there is no [CLS].
            tokenizer = wb.Tokenizer.from_vocab(path, cls_token="[UNK]", sep_token="[UNK]")
        assert tokenizer.get_vocab() == case["vocab_read"]
        assert bool(seen) == (case.get("differs") == "D7")
        return
    tokenizer = wb.Tokenizer.from_json(case_files.tokenizer_json(case))
    assert ask(case, tokenizer) == expected(case)


@pytest.mark.parametrize("instruction_set", [None, *_core.Tokenizer.instruction_sets()])
def test_every_instruction_set_gives_the_answer_of_the_case(instruction_set: str | None) -> None:
    for param in CASES:
        case = param.values[0]
        if "error" in case or "vocab_txt" in case:
            continue
        tokenizer = wb.Tokenizer.from_json(case_files.tokenizer_json(case))
        core = tokenizer._inner.with_instruction_set(instruction_set)
        assert core.instruction_set in (None, instruction_set)
        forced = wb.Tokenizer._build(core, tokenizer._settings)
        assert ask(case, forced) == expected(case), f"instruction set {instruction_set}: {param.id}"


def test_the_instruction_set_of_a_bert_tokenizer_can_be_forced() -> None:
    core = wb.Tokenizer.from_vocab(["[UNK]", "un", "##want", "##ed"])._inner
    available = core.instruction_sets()
    assert available[0] == "scalar"
    assert core.instruction_set == available[-1]
    assert [core.with_instruction_set(name).instruction_set for name in [None, *available]] == [None, *available]
    expected_message = f'no instruction set "mmx"; it has {", ".join(available)}'
    with pytest.raises(errors.InputError, match=expected_message):
        core.with_instruction_set("mmx")


@pytest.mark.parametrize(
    "case", [param for param in CASES if "error" not in param.values[0] and call_of(param.values[0])]
)
def test_options_of_a_call_do_the_same_as_those_of_a_file(case: Case) -> None:
    bare = {key: value for key, value in case.items() if key not in ("truncation", "padding")}
    tokenizer = wb.Tokenizer.from_json(case_files.tokenizer_json(bare))
    options = call_of(case)
    assert options is not None
    assert ask(case, tokenizer, **options) == expected(case)


@pytest.mark.parametrize(
    "case", [param for param in CASES if call_of(param.values[0]) and "error" not in param.values[0]]
)
def test_false_switches_off_what_a_file_sets(case: Case) -> None:
    bare = {key: value for key, value in case.items() if key not in ("truncation", "padding")}
    plain = wb.Tokenizer.from_json(case_files.tokenizer_json(bare))
    tokenizer = wb.Tokenizer.from_json(case_files.tokenizer_json(case))
    assert ask(case, tokenizer, truncation=False, padding=False) == ask(case, plain)


@pytest.mark.parametrize("case", [param for param in CASES if "error" in param.values[0]])
def test_the_error_is_typed_and_names_the_value(case: Case) -> None:
    allowed: tuple[type[Exception], ...] = (getattr(errors, case["error"]),)
    if case["error"] == "InputError":
        allowed = (*allowed, errors.TokenizerFormatError)
    with pytest.raises(allowed) as raised:
        ask(case, wb.Tokenizer.from_json(case_files.tokenizer_json(case)))
    for name in case["names"]:
        assert name in str(raised.value)


@pytest.mark.parametrize("case", [param for param in CASES if "error" in param.values[0] and call_of(param.values[0])])
def test_the_error_of_a_call_is_typed_too(case: Case) -> None:
    bare = {key: value for key, value in case.items() if key not in ("truncation", "padding")}
    tokenizer = wb.Tokenizer.from_json(case_files.tokenizer_json(bare))
    options = call_of(case)
    assert options is not None
    with pytest.raises(errors.InputError, match=".*".join(map(re.escape, case["names"][:1]))):
        ask(case, tokenizer, **options)


@pytest.mark.parametrize(
    "case", [param for param in CASES if "error" not in param.values[0] and "vocab" in param.values[0]]
)
def test_saved_and_loaded_again_it_answers_the_same(case: Case) -> None:
    tokenizer = wb.Tokenizer.from_json(case_files.tokenizer_json(case))
    again = wb.Tokenizer.from_json(tokenizer.to_json())
    assert again == tokenizer
    assert again.to_json() == tokenizer.to_json()
    assert ask(case, again) == expected(case)
