"""Reads the cases of data/cases/*.toml, and makes a tokenizer.json for each.

data/cases/README.md has the schema.
"""

import json
import tomllib
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "data" / "cases"

Case = dict[str, Any]


def load(folder: Path = FOLDER) -> list[tuple[str, Case]]:
    """All cases with the names of their files; vocabularies given by name are replaced by their tokens."""
    found = []
    for path in sorted(folder.glob("*.toml")):
        file = tomllib.loads(path.read_text(encoding="utf-8"))
        for case in file["case"]:
            if isinstance(case.get("vocab"), str):
                case["vocab"] = file["vocabs"][case["vocab"]]
            found.append((path.stem, case))
    return found


def vocab_of(case: Case) -> dict[str, int]:
    """Token -> id."""
    vocab = case["vocab"]
    return vocab if isinstance(vocab, dict) else {token: i for i, token in enumerate(vocab)}


def normalizer_of(case: Case) -> dict[str, Any] | None:
    """The normalizer as in a tokenizer.json."""
    given = case.get("normalizer", {"type": "BertNormalizer"})
    if given == "none":
        return None
    if given["type"] == "BertNormalizer":
        return {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True, **given}
    return given


def post_processor_of(case: Case) -> dict[str, Any] | None:
    """The post-processor as in a tokenizer.json."""
    given = case.get("post_processor")
    vocab = vocab_of(case)
    if given is None:
        return None
    if given == "bert":
        return {"type": "BertProcessing", "sep": ["[SEP]", vocab["[SEP]"]], "cls": ["[CLS]", vocab["[CLS]"]]}
    special = {name: {"id": name, **token} for name, token in given.get("special_tokens", {}).items()}

    def piece(text: str) -> dict[str, Any]:
        name, type_id = text.rsplit(":", 1)
        if name.startswith("$"):
            return {"Sequence": {"id": name[1:], "type_id": int(type_id)}}
        if "special_tokens" not in given:
            special[name] = {"id": name, "ids": [vocab[name]], "tokens": [name]}
        return {"SpecialToken": {"id": name, "type_id": int(type_id)}}

    single, pair = ([piece(text) for text in given[key]] for key in ("single", "pair"))
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special}


def added_tokens_of(case: Case) -> list[dict[str, Any]]:
    """The added tokens as in a tokenizer.json, with the ids of the case or else the next free ones."""
    ids = dict(vocab_of(case))
    following = len(ids)
    tokens = []
    for token in case.get("added_tokens", []):
        content = token["content"]
        if content and content not in ids:
            if following in ids.values():
                following = max(ids.values()) + 1
            ids[content] = following
            following += 1
        special = token.get("special", False)
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": not special, "special": special}
        tokens.append({"id": ids.get(content, following), **flags, **token})  # no content: ignored
    return tokens


def tokenizer_json(case: Case) -> str:
    """The tokenizer.json of a case, truncation and padding included."""
    truncation, padding = case.get("truncation"), case.get("padding")
    if truncation is not None:
        strategy = truncation.get("strategy", "longest_first")
        truncation = {
            "direction": truncation.get("direction", "right").capitalize(),
            "max_length": truncation["max_length"],
            "strategy": "".join(word.capitalize() for word in strategy.split("_")),
            "stride": truncation.get("stride", 0),
        }
    if padding is not None:
        padding = {
            "strategy": {"Fixed": padding["length"]} if "length" in padding else "BatchLongest",
            "direction": padding.get("direction", "right").capitalize(),
            "pad_to_multiple_of": padding.get("pad_to_multiple_of"),
            "pad_id": padding.get("pad_id", 0),
            "pad_type_id": padding.get("pad_type_id", 0),
            "pad_token": padding.get("pad_token", "[PAD]"),
        }
    pre_tokenizer = case.get("pre_tokenizer", {"type": "BertPreTokenizer"})
    decoder = case.get("decoder", {"type": "WordPiece", "prefix": "##", "cleanup": True})
    model = {"unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    return json.dumps(
        {
            "version": "1.0",
            "truncation": truncation,
            "padding": padding,
            "added_tokens": added_tokens_of(case),
            "normalizer": normalizer_of(case),
            "pre_tokenizer": None if pre_tokenizer == "none" else pre_tokenizer,
            "post_processor": post_processor_of(case),
            "decoder": None if decoder == "none" else decoder,
            "model": {"type": "WordPiece", **model, **case.get("model", {}), "vocab": vocab_of(case)},
        },
        ensure_ascii=True,
    )
