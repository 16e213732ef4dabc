"""Names of tokenizers, transformers and sentence-transformers that this package does not have, and what to use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar

from wordpiece_bert._internal.peer_arguments import refusing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


Made = TypeVar("Made")
Arguments = ParamSpec("Arguments")

_PIPELINE = "its steps are options of Tokenizer.from_vocab; to_json() shows them"
_CHANGES = "a Tokenizer never changes; "
_CHAT = "BERT has no chat template"
_NO_NAME = "a Tokenizer keeps no name and no paths: keep what from_pretrained is given, or use fingerprint"
_TEMPLATE = "the special tokens of a row are those of the template; add_special_tokens=False leaves them out"
_ONE_KIND = "there is one kind of tokenizer, in Rust"
_INTERNAL = "it belongs to transformers' own files and classes"
_TRAINING = "wordpiece_bert.train_vocab(texts, ...).tokenizer()"

#: What to use instead of an attribute of a tokenizer, by name.
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
    "create_token_type_ids_from_sequences": "encode(text, pair).token_type_ids has them",
    "special_tokens_map": "use cls_token, sep_token and so on, or all_special_tokens",
    "save_vocabulary": "use save_pretrained(folder), which writes vocab.txt too",
    "train_new_from_iterator": f"use {_TRAINING}",
    "vocab": "use get_vocab()",
    "model_input_names": "use list(tokenizer('')), the arrays that a call returns",
    "max_len_single_sentence": "use model_max_length - num_special_tokens_to_add()",
    "max_len_sentences_pair": "use model_max_length - num_special_tokens_to_add(pair=True)",
    **dict.fromkeys(
        ("async_encode", "async_encode_batch", "async_encode_batch_fast", "async_decode_batch"),
        "use asyncio.to_thread(tokenizer.encode_batch, texts): other threads run meanwhile",
    ),
    "encode_special_tokens": "pass encode_special_tokens=True to a call",
    **dict.fromkeys(("from_str", "from_buffer"), "use Tokenizer.from_json(text)"),
    **dict.fromkeys(
        ("apply_chat_template", "chat_template", "chat_control_tokens", "encode_message_with_chat_template"), _CHAT
    ),
    **dict.fromkeys(("get_chat_template", "save_chat_templates", "parse_response", "response_template"), _CHAT),
    "get_response_parser": _CHAT,
    **dict.fromkeys(("name_or_path", "init_inputs", "init_kwargs"), _NO_NAME),
    **dict.fromkeys(("vocab_file", "files_loaded", "vocab_files_names", "pretrained_vocab_files_map"), _NO_NAME),
    **dict.fromkeys(("do_lower_case", "strip_accents", "tokenize_chinese_chars"), _PIPELINE),
    **dict.fromkeys(("add_bos_token", "add_eos_token", "update_post_processor"), _TEMPLATE),
    "add_prefix_space": "WordPiece does not look at spaces",
    **dict.fromkeys(
        (
            "clean_up_tokenization",
            "clean_up_tokenization_spaces",
            "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output",
        ),
        "pass clean_up_tokenization_spaces= to decode; batch_decode has the folder's setting by default",
    ),
    "split_special_tokens": "pass split_special_tokens=True to the call tokenizer(...)",
    "set_truncation_and_padding": f"{_CHANGES}with_truncation and with_padding return others",
    "pad_token_type_id": "padding has the token type 0, or in from_file the pad_type_id of the file: see padding",
    "push_to_hub": "use save_pretrained(folder); hf upload NAME FOLDER uploads it",
    "verbose": "pass verbose=False to a call",
    "SPECIAL_TOKENS_ATTRIBUTES": "use all_special_tokens",
    **dict.fromkeys(("backend", "slow_tokenizer_class", "can_save_slow_tokenizer"), _ONE_KIND),
    **dict.fromkeys(("convert_added_tokens", "convert_to_native_format", "deprecation_warnings"), _INTERNAL),
    "register_for_auto_class": _INTERNAL,
}

#: What to use instead of an attribute of a `BatchEncoding`.
INSTEAD_IN_BATCHES = {"fromkeys": "use BatchEncoding(dict.fromkeys(names, value))"}

_FILES = "save_pretrained of a model or an encoder writes its tokenizer too; or copy the files of folder"
_ROWS_OF_IDS = "use encode or encode_batch: encode_batch(texts).ids has the ids"

#: What to use instead of an attribute of a `SubwordTokenizer`.
INSTEAD_IN_SUBWORD = {
    **dict.fromkeys(("encode_plus", "batch_encode_plus", "prepare_for_model", "tokenize", "pad"), _ROWS_OF_IDS),
    **dict.fromkeys(("batch_decode", "decode_batch"), "call decode for each row"),
    **dict.fromkeys(("save_pretrained", "save", "save_vocabulary", "push_to_hub"), _FILES),
    **dict.fromkeys(("is_fast", "backend_tokenizer"), "tokenizers runs the file tokenizer.json of folder"),
    "name_or_path": "use folder",
    **dict.fromkeys(("vocab", "get_vocab_size"), "use get_vocab()"),
    **dict.fromkeys(("from_file", "from_json"), "SubwordTokenizer(folder) reads a model's folder"),
    "from_pretrained": "SubwordTokenizer(find_model(name)) reads a model's folder",
    **dict.fromkeys(("apply_chat_template", "chat_template"), _CHAT),
    **dict.fromkeys(("add_tokens", "add_special_tokens"), "use with_special_tokens(tokens), which returns another one"),
}

#: The same for names that transformers has in its ``__getattr__`` alone, and BertWordPieceTokenizer of tokenizers.
INSTEAD_OF_MORE = {
    "save_model": "use save_pretrained(folder), which writes vocab.txt too",
    **dict.fromkeys(("bos_token", "bos_token_id"), "BERT's rows begin with cls_token"),
    **dict.fromkeys(("eos_token", "eos_token_id"), "BERT's rows end with sep_token"),
    # transformers 4
    **dict.fromkeys(("all_special_tokens_extended", "special_tokens_map_extended"), "use added_tokens"),
    **dict.fromkeys(("as_target_tokenizer", "prepare_seq2seq_batch"), "encoders have no target texts"),
    **dict.fromkeys(("max_model_input_sizes", "pretrained_init_configuration"), _NO_NAME),
    "truncate_sequences": f"{_CHANGES}with_truncation(max_length=...) returns one that truncates",
    "default_chat_template": _CHAT,
    **dict.fromkeys(
        (
            "extra_special_tokens",
            "extra_special_tokens_ids",
            "additional_special_tokens",
            "additional_special_tokens_ids",
        ),
        "use all_special_tokens, which has the extra ones after those with a role",
    ),
}

_SETTINGS = "the settings are those of the model's folder"
_MODEL = "dtype= and backend= are arguments of their own"
_DTYPE = "the number type is chosen when the encoder is made: dtype='float32', 'bfloat16', 'int8' or 'auto'"
_CPU = "this package computes on the CPU"
_TRAINER = "wordpiece_bert.finetune.SentenceTrainer trains a copy"
_POOL = "encode uses all CPUs in one process; threads= of the encoder sets their number"
_ROWS = "encoder.tokenizer makes rows: encoder.tokenizer(texts, padding=True, truncation=True, max_length=...)"
_NOT_WRITTEN = "only SentenceEncoder and M3Encoder write folders: copy that of the model"
_EVERY_ENCODER = {
    "train": _TRAINER,
    "fit": _TRAINER,
    **dict.fromkeys(("half", "float", "bfloat16", "double", "type"), _DTYPE),
    **dict.fromkeys(("cuda", "xpu"), _CPU),
    **dict.fromkeys(("tokenize", "preprocess", "processor"), _ROWS),
    **dict.fromkeys(("encode_multi_process", "start_multi_process_pool", "stop_multi_process_pool"), _POOL),
    **dict.fromkeys(("push_to_hub", "save_to_hub"), "hf upload NAME FOLDER uploads a folder"),
    **dict.fromkeys(
        ("parameters", "named_parameters", "state_dict", "transformers_model", "auto_model"),
        "wordpiece_bert.BertModel.from_pretrained(name) has the weights",
    ),
    "compile": "nothing has to be compiled",
    "set_pooling_include_prompt": _SETTINGS,
}
#: What to use instead of an attribute of an encoder that makes vectors.
INSTEAD_IN_ENCODERS = {
    **_EVERY_ENCODER,
    "forward": "use encode",
    "predict": "use encode; CrossEncoder has predict",
    "get_max_seq_length": "use max_seq_length",
    **dict.fromkeys(
        ("truncate_embeddings", "truncate_sentence_embeddings"),
        "pass truncate_dim= to encode, or when the encoder is made",
    ),
}
#: What to use instead of an attribute of a cross encoder.
INSTEAD_IN_RANKERS = {
    **_EVERY_ENCODER,
    "forward": "use predict",
    "encode": "use predict(pairs) or rank(query, documents); SentenceEncoder makes vectors",
    "max_seq_length": "use max_length",
    **dict.fromkeys(
        ("activation_fn", "default_activation_function"), "pass activation_fn= to predict, or when the encoder is made"
    ),
}
#: What to use instead of saving an encoder that this package does not write.
NOT_WRITTEN = dict.fromkeys(("save", "save_pretrained"), _NOT_WRITTEN)

#: What to use instead of an argument with which sentence-transformers makes an encoder.
ARGUMENTS = {
    "model_name_or_path": "the name is the first argument",
    "modules": "an encoder is loaded from a folder",
    **dict.fromkeys(("model_kwargs", "automodel_args", "torch_dtype"), _MODEL),
    **dict.fromkeys(("config_kwargs", "config_args"), _SETTINGS),
    **dict.fromkeys(
        ("processor_kwargs", "tokenizer_kwargs", "tokenizer_args"),
        "the tokenizer is that of the folder; max_seq_length of a SentenceEncoder may be set, and CrossEncoder has "
        "max_length=",
    ),
    **dict.fromkeys(
        ("cache_folder", "cache_dir"), "the environment variables HF_HUB_CACHE and HF_HOME say where the cache is"
    ),
    "trust_remote_code": "code of a folder is never run: leave it out",
    "local_files_only": "nothing is downloaded without download=True: leave it out",
    **dict.fromkeys(("token", "use_auth_token"), "huggingface_hub reads HF_TOKEN and what hf auth login stored"),
    "model_card_data": "no model card is written: leave it out",
    **dict.fromkeys(("default_activation_function", "activation_fct"), "it is called activation_fn"),
    "max_seq_length": "max_seq_length of a SentenceEncoder may be set, and CrossEncoder has max_length=",
}


def refusing_peer_arguments(
    init: Callable[Concatenate[Made, Arguments], None],
) -> Callable[Concatenate[Made, Arguments], None]:
    """Make an ``__init__`` raise an `InputError`, with what to use instead, for an argument of sentence-transformers.

    Parameters
    ----------
    init : callable
        The ``__init__``.
    """
    return refusing(ARGUMENTS, lambda made: type(made).__name__)(init)


class PeerName:
    """An attribute that only a peer of this package has: reading it raises an AttributeError with what to use.

    A ``__getattr__`` would do the same, but CPython reads every attribute of a class that has one more slowly.

    Parameters
    ----------
    name : str
        The name of the attribute.
    instead : str
        What to use instead.
    """

    def __init__(self, name: str, instead: str) -> None:
        self._name, self._instead = name, instead
        self.__doc__ = f"Not in this package: {instead}."

    def _fail(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(
            f"{owner.__name__} has no attribute {self._name!r}: {self._instead}", name=self._name, obj=instance
        )

    def __get__(self, instance: object, owner: type) -> NoReturn:
        self._fail(instance, owner)

    def __set__(self, instance: object, value: object) -> NoReturn:
        self._fail(instance, type(instance))


def add_peer_names(owner: type, instead: Mapping[str, str]) -> None:
    """Give a class attributes that say what to use instead of them."""
    for name, use in instead.items():
        setattr(owner, name, PeerName(name, use))


def without_peer_names(owner: type, names: Iterable[str]) -> list[str]:
    """Return the names of which a class has more than the answer what to use instead."""
    found: dict[str, Any] = {}
    for base in reversed(owner.__mro__):
        found |= vars(base)
    return [name for name in names if not isinstance(found.get(name), PeerName)]
