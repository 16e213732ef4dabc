"""Writes a model folder that transformers and tokenizers load with the same ids."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.pretrained.folder_contents import (
    CONFIG_FILE,
    NO_LIMIT,
    SPECIAL_TOKENS_FILE,
    TOKENIZER_FILE,
    VOCAB_FILE,
    WordRules,
)
from wordpiece_bert.tokenizer.pretrained.kept_settings import SPECIAL_TOKEN_ROLES, FolderSettings

if TYPE_CHECKING:
    from wordpiece_bert import _core
    from wordpiece_bert._internal.atomic_folder import AtomicFolder

# The fields of an added token, in the order of the core's tuples.
_TOKEN_FIELDS = ("content", "single_word", "lstrip", "rstrip", "normalized", "special")


def write_folder(
    output: AtomicFolder, core: _core.Tokenizer, settings: FolderSettings, words: WordRules | None = None
) -> None:
    """Write a tokenizer as the files of a model folder.

    ``tokenizer_config.json`` names the class with which transformers loads the folder. It is ``BertTokenizer`` if that
    class, which rebuilds the tokenizer from the vocabulary and a few options, yields the same ids, and otherwise
    ``PreTrainedTokenizerFast``, which uses tokenizer.json as it is.

    Parameters
    ----------
    output : AtomicFolder
        The folder; the caller commits it.
    core : _core.Tokenizer
        The tokenizer. vocab.txt is omitted if that format cannot represent its vocabulary, and an older one is removed.
    settings : FolderSettings
        The contents of tokenizer_config.json and special_tokens_map.json.
    words : WordRules, optional
        How words are treated that a function of the caller finds. There is then no tokenizer.json, which cannot have
        such a function, and the class is ``BertJapaneseTokenizer``.

    Raises
    ------
    InputError
        No tokenizer.json gives an added token its id in tokenizers too; with `words`, no vocab.txt can have the
        vocabulary.
    OSError
        A file cannot be written.
    """
    definition = core.to_json() if words is None else None
    config = _config(core, settings) | ({} if words is None else _word_settings(words))
    special_tokens = {
        key: config[key] for key in (*SPECIAL_TOKEN_ROLES, "additional_special_tokens") if config.get(key)
    }
    output.write_text(CONFIG_FILE, _dump(config))
    output.write_text(SPECIAL_TOKENS_FILE, _dump(special_tokens))
    vocab_txt = core.to_vocab_txt()
    if definition is not None:
        output.write_text(TOKENIZER_FILE, definition)
    elif vocab_txt is None:
        raise InputError("no vocab.txt can have this vocabulary, which a tokenizer with a word_splitter needs")
    else:
        output.discard(TOKENIZER_FILE)
    if vocab_txt is None:
        output.discard(VOCAB_FILE)
    else:
        output.write_text(VOCAB_FILE, vocab_txt)


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
    listed = settings.listed_special_tokens
    if listed is None:
        listed = tuple(str(token["content"]) for _, token in added if token["special"])
    others = [token for token in listed if token in contents and token not in roles.values()]
    if others:
        config["additional_special_tokens"] = others
    if settings.padding_side is not None:
        config["padding_side"] = settings.padding_side
    if settings.truncation_side is not None:
        config["truncation_side"] = settings.truncation_side
    if settings.clean_up_tokenization_spaces:
        config["clean_up_tokenization_spaces"] = True
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


def _word_settings(words: WordRules) -> dict[str, Any]:
    """Return what tokenizer_config.json has of a tokenizer whose words a function of the caller finds."""
    own = {} if words.program_settings is None else {f"{words.program}_kwargs": dict(words.program_settings)}
    return {
        "tokenizer_class": "BertJapaneseTokenizer",
        "word_tokenizer_type": words.program,
        "subword_tokenizer_type": "character" if words.characters else "wordpiece",
        "do_lower_case": words.lowercase,
        "never_split": list(words.never_split) or None,
        **own,
    }


def _dump(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
