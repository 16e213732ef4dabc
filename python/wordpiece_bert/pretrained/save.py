"""Writing a folder that transformers and tokenizers load with the same ids."""

from __future__ import annotations

import json as json_module
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.atomic_file import write_text
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretrained.folder import (
    CONFIG_FILE,
    NO_LIMIT,
    SPECIAL_TOKEN_ROLES,
    SPECIAL_TOKENS_FILE,
    TOKENIZER_FILE,
    VOCAB_FILE,
    FolderSettings,
)

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["with_bert_template", "write_folder"]


def write_folder(folder: Path, *, json: str, vocab_txt: str | None, settings: FolderSettings) -> list[Path]:
    """Write a tokenizer as a model folder.

    ``tokenizer_config.json`` names ``BertTokenizer`` where transformers' class of that name, which rebuilds the
    tokenizer from the vocabulary and a few options, gives the same ids; else ``PreTrainedTokenizerFast``, which takes
    tokenizer.json as it is.

    Parameters
    ----------
    folder
        Made when it is not there. Each file is written beside its place and renamed, so that a reader finds the old one
        or the new one whole.
    json
        The whole tokenizer, as `Tokenizer.to_json` gives it.
    vocab_txt
        The vocabulary as the lines of a vocab.txt; None when it cannot be written so (then the file is left out).
    settings
        What goes to tokenizer_config.json and special_tokens_map.json.

    Returns
    -------
    list of Path
        The files written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as cause:
        message = f"{str(folder)!r} is not a folder, and none can be made there; name another"
        raise InputError(message) from cause
    file = json_module.loads(json)
    config = _config(file, settings)
    special_tokens = {
        key: config[key] for key in (*SPECIAL_TOKEN_ROLES, "additional_special_tokens") if config.get(key)
    }
    texts = {
        CONFIG_FILE: _dump(config),
        SPECIAL_TOKENS_FILE: _dump(special_tokens),
        TOKENIZER_FILE: json,
    }
    if vocab_txt is not None:
        texts[VOCAB_FILE] = vocab_txt
    return [write_text(folder / name, text) for name, text in texts.items()]


def with_bert_template(json: str, cls: tuple[str, int], sep: tuple[str, int]) -> str:
    """Put ``[CLS] A [SEP]`` and ``[CLS] A [SEP] B [SEP]`` into a tokenizer.json, in place of its post-processor."""
    file = json_module.loads(json)
    file["post_processor"] = _bert_template(cls, sep)
    return json_module.dumps(file, ensure_ascii=False, indent=2)


def _config(file: dict[str, Any], settings: FolderSettings) -> dict[str, Any]:
    """Return what tokenizer_config.json says."""
    added = {token["content"]: token for token in file["added_tokens"]}
    # transformers registers every token that it finds in a role; one that is not registered here has no place there.
    roles = {role: content for role, content in settings.special_tokens.items() if content in added}
    config: dict[str, Any] = {
        "added_tokens_decoder": {
            str(token["id"]): {key: value for key, value in token.items() if key != "id"} for token in added.values()
        },
        "model_input_names": list(settings.model_input_names),
        "model_max_length": settings.model_max_length or NO_LIMIT,
        **roles,
    }
    if file["padding"] is not None and "pad_token" not in roles:
        # Otherwise transformers registers the token that the padding names.
        config["pad_token"] = None
    others = [content for content, token in added.items() if token["special"] and content not in roles.values()]
    if others:
        config["additional_special_tokens"] = others
    if settings.padding_side is not None:
        config["padding_side"] = settings.padding_side
    if settings.truncation_side is not None:
        config["truncation_side"] = settings.truncation_side
    if _is_bert(file, roles):
        normalizer = file["normalizer"]
        config |= {
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": normalizer["lowercase"],
            "strip_accents": normalizer["strip_accents"],
            "tokenize_chinese_chars": normalizer["handle_chinese_chars"],
        }
    else:
        config["tokenizer_class"] = "PreTrainedTokenizerFast"
    return config


def _is_bert(file: dict[str, Any], roles: dict[str, str]) -> bool:
    """Tell whether transformers' BertTokenizer, which rebuilds all but the vocabulary, rebuilds this tokenizer."""
    model, normalizer = file["model"], file["normalizer"] or {}
    special = {token["content"]: token["id"] for token in file["added_tokens"] if token["special"]}
    if set(roles) != set(SPECIAL_TOKEN_ROLES) or not set(roles.values()) <= set(special):
        return False
    cls, sep = ((roles[role], special[roles[role]]) for role in ("cls_token", "sep_token"))
    processing = {"type": "BertProcessing", "sep": list(sep), "cls": list(cls)}
    return (
        (model["unk_token"], model["continuing_subword_prefix"]) == (roles["unk_token"], "##")
        and model["max_input_chars_per_word"] == 100
        and normalizer.get("type") == "BertNormalizer"
        and normalizer["clean_text"]
        and file["pre_tokenizer"] == {"type": "BertPreTokenizer"}
        and file["post_processor"] in (_bert_template(cls, sep), processing)
        and file["decoder"] == {"type": "WordPiece", "prefix": "##", "cleanup": True}
    )


def _bert_template(cls: tuple[str, int], sep: tuple[str, int]) -> dict[str, Any]:
    def special(token: tuple[str, int], type_id: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": token[0], "type_id": type_id}}

    def text(name: str, type_id: int) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": type_id}}

    single = [special(cls, 0), text("A", 0), special(sep, 0)]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, text("B", 1), special(sep, 1)],
        "special_tokens": {
            content: {"id": content, "ids": [token_id], "tokens": [content]} for content, token_id in (cls, sep)
        },
    }


def _dump(value: dict[str, Any]) -> str:
    return json_module.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
