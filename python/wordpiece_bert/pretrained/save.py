"""Writes a model folder that transformers and tokenizers load with the same ids."""

from __future__ import annotations

import json
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

    from wordpiece_bert import _core

__all__ = ["write_folder"]

# The fields of an added token, in the order of the core's tuples.
_TOKEN_FIELDS = ("content", "single_word", "lstrip", "rstrip", "normalized", "special")


def write_folder(folder: Path, core: _core.Tokenizer, settings: FolderSettings) -> list[Path]:
    """Write a tokenizer as a model folder.

    ``tokenizer_config.json`` names the class with which transformers loads the folder. It is ``BertTokenizer`` if that
    class, which rebuilds the tokenizer from the vocabulary and a few options, yields the same ids, and otherwise
    ``PreTrainedTokenizerFast``, which uses tokenizer.json as it is.

    Parameters
    ----------
    folder : Path
        The folder; it is created if need be. Each file is written atomically.
    core : _core.Tokenizer
        The tokenizer. vocab.txt is omitted if that format cannot represent its vocabulary.
    settings : FolderSettings
        The contents of tokenizer_config.json and special_tokens_map.json.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    InputError
        `folder` is a file, or is inside one.
    OSError
        A file cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as cause:
        message = f"{str(folder)!r} is not a folder, and none can be created there; choose another path"
        raise InputError(message) from cause
    config = _config(core, settings)
    special_tokens = {
        key: config[key] for key in (*SPECIAL_TOKEN_ROLES, "additional_special_tokens") if config.get(key)
    }
    texts = {
        CONFIG_FILE: _dump(config),
        SPECIAL_TOKENS_FILE: _dump(special_tokens),
        TOKENIZER_FILE: core.to_json(),
    }
    vocab_txt = core.to_vocab_txt()
    if vocab_txt is not None:
        texts[VOCAB_FILE] = vocab_txt
    return [write_text(folder / name, text) for name, text in texts.items()]


def _config(core: _core.Tokenizer, settings: FolderSettings) -> dict[str, Any]:
    """Return the contents of tokenizer_config.json."""
    # By ascending id, as in tokenizer.json.
    added = [(token_id, dict(zip(_TOKEN_FIELDS, fields, strict=True))) for token_id, fields in core.added_tokens()]
    added.sort(key=lambda item: item[0])
    contents = {token["content"] for _, token in added}
    # transformers registers every token that the file gives a role, so a role is written only if its token is
    # registered here as well.
    roles = {role: content for role, content in settings.special_tokens.items() if content in contents}
    config: dict[str, Any] = {
        "added_tokens_decoder": {str(token_id): token for token_id, token in added},
        "model_input_names": list(settings.model_input_names),
        "model_max_length": settings.model_max_length or NO_LIMIT,
        **roles,
    }
    if core.padding is not None and "pad_token" not in roles:
        # Otherwise transformers registers the token that the padding names.
        config["pad_token"] = None
    others = [token["content"] for _, token in added if token["special"] and token["content"] not in roles.values()]
    if others:
        config["additional_special_tokens"] = others
    if settings.padding_side is not None:
        config["padding_side"] = settings.padding_side
    if settings.truncation_side is not None:
        config["truncation_side"] = settings.truncation_side
    normalizer = core.bert_options(roles)
    if normalizer is None:
        config["tokenizer_class"] = "PreTrainedTokenizerFast"
    else:
        config |= {
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": normalizer.lowercase,
            "strip_accents": normalizer.strip_accents,
            "tokenize_chinese_chars": normalizer.tokenize_chinese_chars,
        }
    return config


def _dump(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
