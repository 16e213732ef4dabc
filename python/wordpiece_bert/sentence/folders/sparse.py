"""The folders of sparse encoders: SPLADE, queries without a model, and both behind a router.

``modules.json`` lists a Transformer with a masked-language head (``MLMTransformer`` up to version 5.3) and a
SpladePooling; or a SparseStaticEmbedding; or a Router (``Asym`` in old folders), whose ``router_config.json`` has such
lists by the name of a route. A folder without ``modules.json`` is a masked-language model whose logits are pooled by
their maximum. Names of Python classes are compared with these names; they are never imported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from wordpiece_bert._internal.safe_json import JsonObject, inside, quoted, read_object
from wordpiece_bert.bert.auto import read_config
from wordpiece_bert.bert.checkpoint import find_weights, read_tensors
from wordpiece_bert.bert.config import find_config
from wordpiece_bert.bert.half_precision import widen
from wordpiece_bert.errors import CheckpointError, ConfigError
from wordpiece_bert.sentence.folders.modules import longest_row, read_prompts, read_transformer_settings
from wordpiece_bert.sentence.folders.reading import (
    ROUTERS,
    expect,
    list_modules,
    refuse,
    router_file,
    setting,
    token_weights_file,
)
from wordpiece_bert.sentence.metrics import METRICS
from wordpiece_bert.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.tokenizer.word_splitter import WordSplitter

_TRANSFORMERS = ("Transformer", "MLMTransformer")
_MODULES = (*ROUTERS, *_TRANSFORMERS, "SpladePooling", "SparseStaticEmbedding")

#: The largest file of token weights that is read: 250,000 tokens need about 10 MB.
_LARGEST_WEIGHTS = 100_000_000


@dataclass(frozen=True, kw_only=True)
class SpladeFolder:
    """A masked-language model and how its logits are pooled."""

    #: The folder of the model.
    transformer: Path
    #: Whether the greatest value of the tokens is taken, or their sum.
    pooling: Literal["max", "sum"] = "max"
    #: Whether the logarithm is taken twice.
    twice: bool = False
    #: The longest row in tokens, with special tokens.
    max_seq_length: int
    #: Whether texts are converted to lower case before the tokenizer's normalizer.
    do_lower_case: bool = False


@dataclass(frozen=True, eq=False)
class StaticWeights:
    """A weight for each token: the vectors of queries without a model."""

    tokenizer: Tokenizer
    #: float32 [V].
    weights: Array
    #: The most tokens of a text that count; None for all.
    max_seq_length: int | None


Route = SpladeFolder | StaticWeights


@dataclass(frozen=True, kw_only=True)
class SparseFolder:
    """Everything in a folder of a sparse encoder except the models."""

    #: The routes by name; without a router one, which has the name "".
    routes: Mapping[str, Route]
    #: The route of texts that are neither queries nor documents; None if such texts are refused.
    default_route: str | None
    #: Prompts by name.
    prompts: dict[str, str] = field(default_factory=dict)
    #: The prompt that is used by default; None for none.
    default_prompt_name: str | None = None
    #: One of `metrics.METRICS`.
    similarity: str = "dot"
    #: How many values of a vector are kept by default; None for all.
    max_active_dims: int | None = None


def read_sparse_folder(folder: Path, word_splitter: WordSplitter | None = None) -> SparseFolder:
    """Read the settings of a sparse encoder; `word_splitter` is for the tokenizers of routes that only weigh tokens.

    Raises
    ------
    ConfigError
        A file is malformed, or names a module or a setting that is not supported; the message has the file and the
        name.
    CheckpointError
        The weights of the tokens of queries are malformed or do not fit the tokenizer.
    TokenizerFormatError
        The tokenizer of the queries cannot be read, or needs a `word_splitter`.
    InputError
        It needs no `word_splitter`, and there is one.
    """
    listing = folder / "modules.json"
    settings = _model_settings(folder)
    if not listing.is_file():
        names = read_object(find_config(folder), ConfigError).get("architectures")
        if not isinstance(names, list) or not any(isinstance(n, str) and n.endswith("ForMaskedLM") for n in names):
            refuse(find_config(folder), f"is no sparse encoder: architectures is {quoted(names)}, not …ForMaskedLM")
        return SparseFolder(routes={"": _splade(folder, None)}, default_route="", **settings)
    modules = list_modules(listing, _MODULES)
    if len(modules) == 1 and modules[0][0] in ROUTERS:
        routes, default = _router(modules[0][1], word_splitter)
        return SparseFolder(routes=routes, default_route=default, **settings)
    return SparseFolder(routes={"": _route(modules, listing, word_splitter)}, default_route="", **settings)


def _router(folder: Path, word_splitter: WordSplitter | None) -> tuple[dict[str, Route], str | None]:
    """Read the routes of a router by name, and the name of the default one."""
    file = router_file(folder)
    config = read_object(file, ConfigError)
    types = setting(config, "types", dict, file) or {}
    routes: dict[str, Route] = {}
    for name, members in (setting(config, "structure", dict, file) or {}).items():
        if not isinstance(members, list) or not all(isinstance(m, str) and m in types for m in members):
            refuse(file, f"the route {quoted(name)} is {quoted(members)}, expected names of types")
        routes[name] = _route([_typed(folder, member, types[member], file) for member in members], file, word_splitter)
    if not routes:
        refuse(file, "has no routes")
    parameters = setting(config, "parameters", dict, file) or {}
    if parameters.get("route_mappings"):
        refuse(file, f"route_mappings is {quoted(parameters['route_mappings'])}; only none are supported")
    default = setting(parameters, "default_route", str, file)
    if default is None and setting(parameters, "allow_empty_key", bool, file, default=True):
        default = next(iter(routes))
    if default is not None and default not in routes:
        refuse(file, f"default_route is {quoted(default)}, but the routes are {list(routes)}")
    return routes, default


def _typed(folder: Path, member: str, kind: object, file: Path) -> tuple[str, Path]:
    """Return the kind and the folder of a module of a router."""
    package, _, name = kind.rpartition(".") if isinstance(kind, str) else ("", "", "")
    if package.partition(".")[0] != "sentence_transformers" or name not in _MODULES:
        names = ", ".join(_MODULES)
        refuse(file, f"{quoted(member)} is a {quoted(kind)}; supported are sentence_transformers' {names}")
    return name, inside(folder, member, str(file), ConfigError)


def _route(modules: Sequence[tuple[str, Path]], where: Path, word_splitter: WordSplitter | None) -> Route:
    """Read the modules that turn texts into vectors."""
    kinds = [kind for kind, _ in modules]
    if kinds == ["SparseStaticEmbedding"]:
        return _static(modules[0][1], word_splitter)
    if len(kinds) == 2 and kinds[0] in _TRANSFORMERS and kinds[1] == "SpladePooling":
        return _splade(modules[0][1], modules[1][1])
    refuse(
        where, f"has the modules {kinds}; supported are a Transformer and a SpladePooling, or a SparseStaticEmbedding"
    )
    return None


def _splade(transformer: Path, pooling: Path | None) -> SpladeFolder:
    config = read_config(transformer)
    settings = read_transformer_settings(transformer, "fill-mask")
    chosen: JsonObject = {}
    if pooling is not None:
        file = pooling / "config.json"
        options = read_object(file, ConfigError)
        strategy = setting(options, "pooling_strategy", str, file, default="max")
        if strategy not in ("max", "sum"):
            refuse(file, f"pooling_strategy is {quoted(strategy)}; supported are max and sum")
        activation = setting(options, "activation_function", str, file, default="relu")
        if activation not in ("relu", "log1p_relu"):
            refuse(file, f"activation_function is {quoted(activation)}; supported are relu and log1p_relu")
        for key in ("embedding_dimension", "word_embedding_dimension"):
            width = setting(options, key, int, file)
            if width is not None and width != config.vocab_size:
                refuse(file, f"{key} is {width}, but the model's vocab_size is {config.vocab_size}")
        chosen = {"pooling": strategy, "twice": activation == "log1p_relu"}
    return SpladeFolder(
        transformer=transformer,
        max_seq_length=longest_row(transformer, settings, config),
        do_lower_case=setting(settings, "do_lower_case", bool, transformer, default=False),
        **chosen,
    )


def _static(folder: Path, word_splitter: WordSplitter | None) -> StaticWeights:
    """Read the weights of tokens, from a tensor or by their names."""
    tokenizer = Tokenizer.from_pretrained(folder, word_splitter=word_splitter)
    named = token_weights_file(folder)
    if named is not None:
        weights = _named_weights(named, tokenizer)
    else:
        source = find_weights(folder)
        tensor = read_tensors(source).get("weight")
        if tensor is None or tensor.ndim != 1 or not np.issubdtype(tensor.dtype, np.floating):
            raise CheckpointError(f"{source}: must have a tensor weight of one number for each token")
        weights = widen(tensor)
        if len(tokenizer) > len(weights):
            raise CheckpointError(
                f"{source}: weight has {len(weights)} numbers, but the tokenizer has {len(tokenizer)} tokens"
            )
    return StaticWeights(tokenizer, weights, tokenizer.model_max_length)


def _named_weights(file: Path, tokenizer: Tokenizer) -> Array:
    """Read the weights of tokens by name, 0 for the others; names that are not tokens count as the unknown token's."""
    ids, unknown = tokenizer.get_vocab(), tokenizer.unk_token_id
    weights = np.zeros(len(ids), np.float32)
    for token, weight in read_object(file, ConfigError, max_bytes=_LARGEST_WEIGHTS).items():
        if isinstance(weight, bool) or not isinstance(weight, int | float):
            refuse(file, f"the weight of {quoted(token)} is {quoted(weight)}, expected a number")
        index = ids.get(token, unknown)
        if index is not None:
            weights[index] = weight
    return weights


def _model_settings(folder: Path) -> dict[str, Any]:
    """Read prompts, similarity and the default of max_active_dims."""
    file = folder / "config_sentence_transformers.json"
    config = read_object(file, ConfigError) if file.is_file() else {}
    expect(config, "model_type", "SparseEncoder", file)
    prompts, default = read_prompts(folder)
    metric = setting(config, "similarity_fn_name", str, file) or "dot"
    if metric not in METRICS:
        refuse(file, f"similarity_fn_name is {quoted(metric)}; supported are {', '.join(METRICS)}")
    most = setting(config, "max_active_dims", int, file)
    if most is not None and most < 1:
        refuse(file, f"max_active_dims is {most}; it must be 1 or more")
    return {"prompts": prompts, "default_prompt_name": default, "similarity": metric, "max_active_dims": most}
