"""Names of tokenizers and transformers that `Tokenizer` does not have, and what to use instead."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["INSTEAD", "PeerName"]

_PIPELINE = "its steps are options of Tokenizer.from_vocab; to_json() shows them"
_CHANGES = "a Tokenizer never changes; "
_TRAINING = "wordpiece_bert.train_vocab(texts, ...).tokenizer()"

#: What to use instead, by name.
INSTEAD = {
    # tokenizers
    "enable_padding": f"{_CHANGES}with_padding(...) returns one that pads",
    "no_padding": f"{_CHANGES}with_padding(None) returns one that does not pad",
    "enable_truncation": f"{_CHANGES}with_truncation(max_length=...) returns one that truncates",
    "no_truncation": f"{_CHANGES}with_truncation(None) returns one that does not truncate",
    "add_tokens": f"{_CHANGES}with_added_tokens(tokens) returns one with more tokens",
    "add_special_tokens": f"{_CHANGES}with_added_tokens(tokens, special=True) returns one with more special tokens",
    "encode_batch_fast": "use encode_batch, which computes no offsets unless they are asked for",
    "get_added_tokens_decoder": "use added_tokens",
    "get_vocab_size": "use len(tokenizer), or vocab_size without the added tokens",
    "to_str": "use to_json()",
    "train": f"use {_TRAINING}",
    "train_from_iterator": f"use {_TRAINING}",
    "post_process": "encode adds the special tokens, and truncates and pads",
    **dict.fromkeys(("model", "normalizer", "pre_tokenizer", "post_processor", "decoder"), _PIPELINE),
    # transformers
    "added_tokens_decoder": "use added_tokens",
    "added_tokens_encoder": "use added_tokens, which is by id",
    "get_added_vocab": "use added_tokens, which is by id",
    "backend_tokenizer": "use to_json(), which tokenizers.Tokenizer.from_str reads",
    "batch_encode_plus": "call the tokenizer: tokenizer(texts, ...)",
    "encode_plus": "call the tokenizer: tokenizer(text, ...)",
    "prepare_for_model": "use pad for rows of ids, or call the tokenizer with the texts",
    "build_inputs_with_special_tokens": "encode adds the special tokens",
    "create_token_type_ids_from_sequences": "encode(text, pair).token_type_ids has them",
    "special_tokens_map": "use cls_token, sep_token and so on, or all_special_tokens",
    "save_vocabulary": "use save_pretrained(folder), which writes vocab.txt too",
    "train_new_from_iterator": f"use {_TRAINING}",
    "vocab": "use get_vocab()",
    "model_input_names": "use list(tokenizer('')), the arrays that a call returns",
    "max_len_single_sentence": "use model_max_length - num_special_tokens_to_add()",
    "max_len_sentences_pair": "use model_max_length - num_special_tokens_to_add(pair=True)",
    "apply_chat_template": "BERT has no chat template",
}


class PeerName:
    """An attribute that only tokenizers or transformers have: reading it raises an AttributeError with what to use.

    A ``__getattr__`` would do the same, but CPython reads every attribute of a class that has one more slowly.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.__doc__ = f"Not in this package: {INSTEAD[name]}."

    def _fail(self, instance: object) -> NoReturn:
        message = f"Tokenizer has no attribute {self._name!r}: {INSTEAD[self._name]}"
        raise AttributeError(message, name=self._name, obj=instance)

    def __get__(self, instance: object, owner: type) -> NoReturn:
        self._fail(instance)

    def __set__(self, instance: object, value: object) -> NoReturn:
        self._fail(instance)
