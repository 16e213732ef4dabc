"""A small vocabulary, and texts whose tokens can be checked by eye."""

from __future__ import annotations

import json
from typing import Any

import wordpiece_bert as wb

TOKENS = [
    *["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
    *["un", "##want", "##ed", "run", "##ning", "the", "cat", "sat", "on", "mat", "a", "b", "c", "d", "e", "f", "g"],
    *[".", ",", "!", "'", "##s", "caf", "##e", "中", "国", "new", "york"],
]

TEXTS = [
    "Unwanted cats, running!",
    "",
    "The café's mat.",
    "中国 a b c d e f g",
    "   ",
    "zzz \U0001f600 \u00e9",
    "a" * 300,
    "the cat sat on the mat. " * 20,
]


def tokenizer(**options: Any) -> wb.Tokenizer:
    """The small tokenizer."""
    return wb.Tokenizer.from_vocab(TOKENS, **options)


def with_file_settings(truncation: dict[str, Any] | None = None, padding: dict[str, Any] | None = None) -> wb.Tokenizer:
    """The small tokenizer with the truncation and padding of a tokenizer.json; missing settings have the usual values."""
    content = json.loads(tokenizer().to_json())
    if truncation is not None:
        content["truncation"] = {"direction": "Right", "strategy": "LongestFirst", "stride": 0, **truncation}
    if padding is not None:
        usual = {"direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
        content["padding"] = {"strategy": "BatchLongest", **usual, **padding}
    return wb.Tokenizer.from_json(json.dumps(content))


FIELDS = (
    *("ids", "tokens", "offsets", "word_ids", "sequence_ids", "token_type_ids"),
    *("attention_mask", "special_tokens_mask", "truncated", "n_tokens"),
)


def fields(encoding: wb.Encoding) -> dict[str, Any]:
    """All fields of an encoding, windows included."""
    found = {name: getattr(encoding, name) for name in FIELDS}
    return {**found, "overflowing": [fields(window) for window in encoding.overflowing]}
