"""Arguments of transformers' and tokenizers' methods that methods here do not have, and what to use instead."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, NoReturn, ParamSpec, TypeVar

from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., Any])

_CACHE = "the environment variables HF_HUB_CACHE and HF_HOME say where the cache is"
_OFFLINE = "nothing is downloaded without download=True: leave it out"
_TOKEN = "huggingface_hub reads HF_TOKEN and what hf auth login stored"
_NO_CODE = "code of a folder is never run: leave it out"
_FOLDER = "the name is that of a folder, or of a repository whose files are in its top folder"
_UPLOAD = "hf upload NAME FOLDER uploads a folder"
_CALL = "call the tokenizer, tokenizer(text, ...), which has it and returns arrays"
_TEXT_PAIR = "it is called pair"
_SPLIT = "it is called is_split_into_words"
_FORMAT = "a folder is written in one format: leave it out"
_SETTINGS = "the settings are those of the folder's tokenizer_config.json"
_NORMALIZER = (
    "the folder says it, in tokenizer.json or tokenizer_config.json; Tokenizer.from_vocab(vocab.txt, lowercase=..., "
    "strip_accents=..., tokenize_chinese_chars=...) does not read them"
)
_ROLE = "the folder says it; Tokenizer.from_vocab has arguments for special tokens, and with_added_tokens adds some"

#: The arguments with which transformers and tokenizers download.
_LOADING = {
    **dict.fromkeys(("pretrained_model_name_or_path", "identifier"), "it is called name"),
    "cache_dir": _CACHE,
    **dict.fromkeys(("local_files_only", "force_download", "resume_download", "proxies"), _OFFLINE),
    **dict.fromkeys(("token", "use_auth_token", "auth_token"), _TOKEN),
    **dict.fromkeys(("trust_remote_code", "code_revision"), _NO_CODE),
    "subfolder": _FOLDER,
}

#: What to use instead of an argument of a tokenizer's method, by method.
TOKENIZER_ARGUMENTS: Final[dict[str, dict[str, str]]] = {
    "from_pretrained": _LOADING
    | {
        "use_fast": "there is one kind of tokenizer: leave it out",
        **dict.fromkeys(("do_lower_case", "strip_accents", "tokenize_chinese_chars", "do_basic_tokenize"), _NORMALIZER),
        **dict.fromkeys(
            ("config", "tokenizer_type", "tokenizer_file", "vocab_file", "backend", "gguf_file"), _SETTINGS
        ),
        **dict.fromkeys(("model_input_names", "split_special_tokens", "clean_up_tokenization_spaces"), _SETTINGS),
        **dict.fromkeys(("model_max_length", "truncation_side"), "use with_truncation(max_length=..., ...)"),
        "padding_side": "use with_padding(padding_side=...), or pass it to a call",
        **dict.fromkeys(
            ("unk_token", "sep_token", "pad_token", "cls_token", "mask_token", "bos_token", "eos_token"), _ROLE
        ),
        **dict.fromkeys(("additional_special_tokens", "extra_special_tokens"), _ROLE),
        "add_prefix_space": "WordPiece does not look at spaces: leave it out",
    },
    "from_vocab": {
        "vocab_file": "it is called vocab",
        "do_lower_case": "it is called lowercase",
        "handle_chinese_chars": "it is called tokenize_chinese_chars",
        "wordpieces_prefix": "it is called continuing_subword_prefix",
        **dict.fromkeys(("never_split", "do_basic_tokenize"), "with_added_tokens(tokens) keeps words whole"),
    },
    "save_pretrained": {
        "save_directory": "it is called folder",
        **dict.fromkeys(("legacy_format", "save_format", "save_jinja_files"), _FORMAT),
        "filename_prefix": "the files have their usual names: choose a folder",
        **dict.fromkeys(
            ("push_to_hub", "repo_id", "token", "commit_message", "private", "revision", "create_pr"), _UPLOAD
        ),
    },
    "encode": {
        "text_pair": _TEXT_PAIR,
        "is_pretokenized": _SPLIT,
        "split_special_tokens": "it is called encode_special_tokens",
        **dict.fromkeys(
            ("return_tensors", "return_token_type_ids", "return_attention_mask", "return_overflowing_tokens"),
            f"encode returns an Encoding with all details; {_CALL}",
        ),
        **dict.fromkeys(
            ("return_special_tokens_mask", "return_offsets_mapping", "return_length", "verbose", "tokenizer_kwargs"),
            f"encode returns an Encoding with all details; {_CALL}",
        ),
    },
    "encode_batch": {
        "is_pretokenized": _SPLIT,
        "text_pair": "pairs are tuples, texts=[(text, pair), ...]; or call the tokenizer, tokenizer(texts, pairs)",
        "split_special_tokens": "it is called encode_special_tokens",
        "return_tensors": _CALL,
    },
    "decode": {
        "token_ids": "it is called ids; skip_special_tokens=False keeps special tokens, as transformers does",
    },
    "decode_batch": {
        "sequences": "it is called ids",
        "token_ids": "it is called ids",
    },
    "batch_decode": {"token_ids": "it is called sequences", "ids": "it is called sequences"},
    "num_special_tokens_to_add": {"is_pair": "it is called pair"},
    "save": {"pretty": "the text is the one that tokenizers writes: leave it out"},
}
#: What to use instead of an argument of ``SubwordTokenizer.encode``.
SUBWORD_ENCODE: Final = {
    "text_pair": _TEXT_PAIR,
    **dict.fromkeys(
        ("return_tensors", "return_token_type_ids", "return_attention_mask", "return_offsets_mapping"),
        "encode returns an encoding with all details; numpy.array([encoding.ids]) is an array of its ids",
    ),
}
TOKENIZER_ARGUMENTS["encodings"] = TOKENIZER_ARGUMENTS["encode_batch"]

#: What to use instead of an argument with which transformers makes a `BatchEncoding`.
BATCH_ENCODING_ARGUMENTS: Final = {
    **dict.fromkeys(("tensor_type", "prepend_batch_axis"), "use BatchEncoding(data).convert_to_tensors(...)"),
    **dict.fromkeys(("encoding", "n_sequences"), "calling a tokenizer makes one with encodings"),
}

_DTYPE = "it is called dtype: 'float32', 'bfloat16', 'int8' or 'auto'"
_CPU = "this package computes on the CPU: leave it out"
_CONFIG = "config.json of the folder says it; Model(config, weights) makes a model with another configuration"
_ENGINE = "backend= chooses the engine, which chooses its kernels: leave it out"
_SAFE = "weights are never unpickled without checks, and safetensors come first: leave it out"
_MAPPED = "weights are read when they are needed: leave it out"

#: What to use instead of an argument with which transformers loads a model.
MODEL_LOADING: Final = _LOADING | {
    "torch_dtype": _DTYPE,
    **dict.fromkeys(("device_map", "device_mesh", "tp_plan", "tp_size", "distributed_config", "max_memory"), _CPU),
    **dict.fromkeys(("offload_folder", "offload_buffers", "offload_state_dict", "low_cpu_mem_usage"), _MAPPED),
    "disable_mmap": _MAPPED,
    **dict.fromkeys(("attn_implementation", "experts_implementation", "use_kernels", "kernel_config"), _ENGINE),
    **dict.fromkeys(("allow_all_kernels", "fusion_config"), _ENGINE),
    **dict.fromkeys(("use_safetensors", "weights_only", "from_tf", "from_flax"), _SAFE),
    "quantization_config": "dtype='int8' quantizes when the model is loaded",
    **dict.fromkeys(("num_labels", "id2label", "label2id", "problem_type", "add_pooling_layer", "config"), _CONFIG),
    "ignore_mismatched_sizes": "weights that do not fit are an error; new_head=SEED draws those of a missing head",
    "output_loading_info": "what is not used or drawn is a CheckpointWarning",
    **dict.fromkeys(
        ("output_attentions", "output_hidden_states", "return_dict"), "pass it when the model is called, not here"
    ),
    **dict.fromkeys(("adapter_kwargs", "adapter_name"), "adapters are not read: merge them into the model first"),
    **dict.fromkeys(("state_dict", "key_mapping"), "Model(config, weights) makes a model from arrays"),
    **dict.fromkeys(("variant", "gguf_file", "tqdm_class"), "the files of the folder are read: leave it out"),
    "generation_config": "encoders generate no text: leave it out",
}
MODEL_LOADING["return_dict"] = "the result always has names: leave it out"

#: What to use instead of an argument with which transformers writes a model.
MODEL_SAVING: Final = TOKENIZER_ARGUMENTS["save_pretrained"] | {
    **dict.fromkeys(
        ("is_main_process", "max_shard_size", "variant", "save_peft_format", "save_original_format"),
        "the weights are one file, model.safetensors: leave it out",
    ),
    **dict.fromkeys(("safe_serialization", "distributed_checkpoint"), _FORMAT),
    "state_dict": "Model(config, weights) makes a model from arrays, which can be saved",
}

_DECODER = "encoders have no decoder's cache and no cross attention: leave it out"
_BATCHES = "rows are padded; attention_mask says where: leave it out"
#: What to use instead of an argument with which a model of transformers is called.
MODEL_CALL: Final = {
    "return_dict": "the result always has names: leave it out",
    **dict.fromkeys(("encoder_hidden_states", "encoder_attention_mask", "past_key_values", "cache"), _DECODER),
    **dict.fromkeys(("use_cache", "is_causal"), _DECODER),
    **dict.fromkeys(("cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k", "seq_idx"), _BATCHES),
    "head_mask": "wordpiece_bert.inspect.intervene replaces the outputs of heads",
    "output_router_logits": "there are no experts: leave it out",
    "num_items_in_batch": "wordpiece_bert.finetune.Trainer accumulates: leave it out",
}


class _Missing:
    """The default of an argument that is needed: a name of a peer may stand in its place, for a better message."""


# Flags of a function's code: it has ``*arguments``, ``**others`` (`inspect.CO_VARARGS`, `inspect.CO_VARKEYWORDS`).
CO_VARARGS, CO_VARKEYWORDS = 4, 8

#: The value of a required argument that a call does not give.
MISSING: Any = _Missing()


def refuse(function: str, given: Mapping[str, object], instead: Mapping[str, str]) -> NoReturn:
    """Raise for keyword arguments that a function does not have.

    Parameters
    ----------
    function : str
        The name of the function.
    given : mapping
        The arguments.
    instead : mapping of str to str
        What to use, by argument.

    Raises
    ------
    InputError
        One is an argument of a peer; the message says what to use.
    TypeError
        No peer has it.
    """
    _refuse_known(function, given, instead)
    raise TypeError(f"{function}() got an unexpected keyword argument {next(iter(given))!r}")


def without_others(function: Function) -> Function:
    """Show the signature of a function without what it takes only for messages: any others, and `MISSING`.

    The function refuses them itself, because `refusing` would take a tenth of the time of a short call.

    Parameters
    ----------
    function : callable
        The function.
    """
    # `inspect`, which takes long to import and would have to be imported here, reads the signature of `__wrapped__`.
    code = function.__code__
    flags = code.co_flags & ~(CO_VARARGS | CO_VARKEYWORDS)
    shown = FunctionType(code.replace(co_flags=flags), function.__globals__, closure=function.__closure__)
    shown.__defaults__ = tuple(one for one in function.__defaults__ or () if one is not MISSING)
    shown.__kwdefaults__ = function.__kwdefaults__
    shown.__annotations__ = function.__annotations__
    function.__wrapped__ = shown  # type: ignore[attr-defined]
    return function


def refusing(
    instead: Mapping[str, str], name: Callable[[Any], str] | None = None
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Make a function raise an `InputError`, with what to use instead, for an argument that only peers have.

    Parameters
    ----------
    instead : mapping of str to str
        What to use, by argument.
    name : callable, optional
        Returns the name of the function for the message, given the object that it is called on.
    """

    def decorate(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        @functools.wraps(function)
        def checked(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
            if options:
                _refuse_known(name(arguments[0]) if name else checked.__qualname__, options, instead)
            return function(*arguments, **options)

        return checked

    return decorate


def _refuse_known(function: str, given: Mapping[str, object], instead: Mapping[str, str]) -> None:
    for name in given:
        if name in instead:
            raise InputError(f"{function} has no argument {name!r}: {instead[name]}")
