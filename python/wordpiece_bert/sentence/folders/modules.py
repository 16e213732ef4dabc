"""The folder layout of sentence-transformers: the modules that a model consists of, and its settings.

``modules.json`` lists the modules: a Transformer, optionally a WeightedLayerPooling, a Pooling, then any number of
Dense, LayerNorm, Normalize and Dropout (which has no effect after training). A folder without that file is a
Transformer with mean pooling. Names of Python classes are compared with these names; they are never imported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from wordpiece_bert._internal.safe_json import JsonObject, quoted, read_object
from wordpiece_bert.bert import functional
from wordpiece_bert.bert.auto import read_config
from wordpiece_bert.bert.checkpoint import find_weights, read_tensors
from wordpiece_bert.bert.config import LARGEST_SIZE, find_config
from wordpiece_bert.bert.poolings import POOLINGS
from wordpiece_bert.errors import CheckpointError, ConfigError
from wordpiece_bert.sentence.activations import TORCH_ACTIVATIONS
from wordpiece_bert.sentence.folders.kinds import check_class
from wordpiece_bert.sentence.folders.reading import (
    TRANSFORMER_CONFIGS,
    expect,
    list_modules,
    refuse,
    setting,
)
from wordpiece_bert.sentence.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.functional import Array

#: Which vectors a module changes.
VectorsOf = Literal["sentence_embedding", "token_embeddings"]

#: What the last module of a chain returns, if it is something else: the scores of a ranker.
Scores = Literal["scores"]

_MODULES = ("Transformer", "WeightedLayerPooling", "Pooling", "Dense", "LayerNorm", "Normalize", "Dropout")
_AFTER_POOLING = _MODULES[3:]

# As in sentence-transformers 6.2, every model has these prompts, empty by default.
_USUAL_PROMPTS = {"query": "", "document": ""}


@dataclass(frozen=True, eq=False)
class WeightedLayers:
    """The weighted mean of token vectors of several layers: Σ wᵢ·hᵢ / Σ wᵢ over layers `start` to L.

    Layer 0 is the embeddings.
    """

    start: int
    weights: Array  # [L + 1 − start]

    def __call__(self, states: tuple[Array, ...]) -> Array:
        """L + 1 arrays [B, S, H] -> [B, S, H]."""
        x = np.zeros_like(states[0])
        for weight, state in zip(self.weights, states[self.start :], strict=True):
            x += weight * state
        x /= self.weights.sum()
        return x


@dataclass(frozen=True)
class Pooling:
    """Pools token vectors to one vector: the results of all modes, concatenated."""

    modes: tuple[str, ...] = ("mean",)
    include_prompt: bool = True


@dataclass(frozen=True, eq=False)
class Dense:
    """y = activation(x·Wᵀ + b); with a residual plus x, or plus x·Rᵀ if the width changes."""

    weight: Array  # [out, in]
    bias: Array  # [out]
    activation: Callable[[Array], Array]
    use_residual: bool = False
    residual: Array | None = None  # [out, in]
    #: The function that computes x·Wᵀ + b: `functional.linear`, or the function of an engine.
    linear: Callable[[Array, Array, Array], Array] = functional.linear

    def __call__(self, x: Array) -> Array:
        """[n, in] -> [n, out]."""
        y = self.activation(self.linear(x, self.weight, self.bias))
        if not self.use_residual:
            return y
        return y + (x if self.residual is None else self.linear(x, self.residual, np.zeros_like(self.bias)))


@dataclass(frozen=True, eq=False)
class LayerNorm:
    """Layer normalization of sentence vectors, with torch's default ε, 1e-5."""

    weight: Array  # [d]
    bias: Array  # [d]

    def __call__(self, x: Array) -> Array:
        """[n, d] -> [n, d]."""
        return functional.layer_norm(x, self.weight, self.bias, eps=1e-5)


@dataclass(frozen=True)
class Normalize:
    """Scales vectors to length 1."""

    def __call__(self, x: Array) -> Array:
        """[n, d] -> [n, d]."""
        return functional.normalize(x)


#: Modules that change vectors, in order.
Modules: TypeAlias = tuple[Dense | LayerNorm | Normalize, ...]


@dataclass(frozen=True, kw_only=True)
class SentenceFolder:
    """Everything in a folder of a sentence encoder except the weights and the tokenizer of its Transformer."""

    #: The folder of the Transformer, with config.json, weights and tokenizer.
    transformer: Path
    #: The layers whose vectors are pooled; None for the last one.
    layers: WeightedLayers | None = None
    #: How token vectors are pooled.
    pooling: Pooling = Pooling()
    #: The modules after the pooling, in order.
    modules: Modules = ()
    #: Width of a sentence vector.
    dimension: int
    #: Longest row in tokens, with special tokens.
    max_seq_length: int
    #: Whether texts are converted to lower case before the tokenizer's normalizer.
    do_lower_case: bool = False
    #: Prompts by name.
    prompts: dict[str, str] = field(default_factory=dict)
    #: The prompt that is used by default; None for none.
    default_prompt_name: str | None = None
    #: One of `metrics.METRICS`.
    similarity: str = "cosine"
    #: How many of the first numbers of a vector are kept by default; None for all.
    truncate_dim: int | None = None


def read_folder(folder: Path) -> SentenceFolder:
    """Read the settings of a sentence encoder.

    Raises
    ------
    ConfigError
        A file is malformed, or names a module or a setting that is not supported; the message has the file and the
        name.
    CheckpointError
        The weights of a module are malformed or do not fit its configuration.
    """
    check_class(folder, "SentenceEncoder")
    listing = folder / "modules.json"
    if not listing.is_file():
        config = read_config(folder)
        max_seq_length = longest_row(folder, {}, config)
        return SentenceFolder(
            transformer=folder,
            dimension=config.hidden_size,
            max_seq_length=max_seq_length,
            prompts=dict(_USUAL_PROMPTS),
        )

    modules = list_modules(listing, _MODULES)
    weighted = modules.pop(1) if len(modules) > 1 and modules[1][0] == "WeightedLayerPooling" else None
    if [kind for kind, _ in modules[:2]] != ["Transformer", "Pooling"]:
        refuse(listing, f"must begin with a Transformer and a Pooling, not with {[kind for kind, _ in modules[:2]]}")
    transformer = modules[0][1]
    config = read_config(transformer)
    layers = None
    if weighted and read_object(find_config(transformer), ConfigError).get("output_hidden_states") is True:
        layers = _weighted_layers(weighted[1], config)  # sentence-transformers ignores it without that setting
    settings = read_transformer_settings(transformer)
    pooling = read_pooling(modules[1][1] / "config.json", config.hidden_size)
    width = config.hidden_size * len(pooling.modes)
    after, width = read_modules_after("Pooling", modules[2:], width, listing)
    return SentenceFolder(
        transformer=transformer,
        layers=layers,
        pooling=pooling,
        modules=after,
        dimension=width,
        max_seq_length=longest_row(transformer, settings, config),
        do_lower_case=setting(settings, "do_lower_case", bool, transformer, default=False),
        **read_model_settings(folder / "config_sentence_transformers.json", width),
    )


def read_transformer_settings(
    transformer: Path, task: str = "feature-extraction", output: str = "token_embeddings"
) -> JsonObject:
    """Read the settings of the Transformer; empty if the folder has none.

    Parameters
    ----------
    transformer
        The folder of the Transformer.
    task
        What the Transformer must be made for, if the settings have that.
    output
        What it must return, if the settings have that.

    Raises
    ------
    ConfigError
        The settings are malformed, or belong to a Transformer for another task.
    """
    for name in TRANSFORMER_CONFIGS:
        file = transformer / name
        if file.is_file():
            settings = read_object(file, ConfigError)
            expect(settings, "transformer_task", task, file)
            expect(settings, "module_output_name", output, file)
            return settings
    return {}


def longest_row(transformer: Path, settings: JsonObject, config: BertConfig) -> int:
    """Return the longest row in tokens: max_seq_length, or the tokenizer's model_max_length, limited by the model's."""
    max_seq_length: int | None = setting(settings, "max_seq_length", int, transformer)
    file = transformer / "tokenizer_config.json"
    if max_seq_length is None and file.is_file():
        # A tokenizer without a limit has 1e30 here, as an integer or as a float.
        value = read_object(file, ConfigError).get("model_max_length")
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, int | float):
                refuse(file, f"model_max_length is {quoted(value)}, expected a number")
            max_seq_length = int(value)
    if max_seq_length is not None and max_seq_length < 1:
        refuse(transformer, f"the longest row is {max_seq_length} tokens; it must be 1 or more")
    if max_seq_length is None or max_seq_length > LARGEST_SIZE:
        return config.usual_longest_row
    return min(max_seq_length, config.longest_row)


def _weighted_layers(folder: Path, config: BertConfig) -> WeightedLayers:
    file = folder / "config.json"
    start = setting(read_object(file, ConfigError), "layer_start", int, file, default=4)
    count = config.encoder_layers + 1 - start
    if start < 0 or count < 1:
        refuse(file, f"layer_start is {start}, but the Transformer has {config.encoder_layers} layers")
    return WeightedLayers(start, _weights(folder, {"layer_weights": (count,)}, file)["layer_weights"])


def old_poolings() -> dict[str, str]:
    """Return the poolings that the old format of a configuration has, by their keys: one boolean for each."""
    return {kind.old_key: name for name, kind in POOLINGS.items() if kind.old_key}


def read_pooling(file: Path, hidden_size: int) -> Pooling:
    """Read the configuration of a Pooling over token vectors of `hidden_size` numbers."""
    config = read_object(file, ConfigError)
    width = config.get("embedding_dimension", config.get("word_embedding_dimension", hidden_size))
    if width != hidden_size:
        refuse(file, f"pools vectors of {quoted(width)} numbers, but the Transformer's hidden_size is {hidden_size}")
    modes = config.get("pooling_mode")
    if modes is None:
        chosen = [mode for key, mode in old_poolings().items() if setting(config, key, bool, file, default=False)]
        modes = chosen or ["mean"]
    elif isinstance(modes, str):
        modes = [modes]
    if not isinstance(modes, list) or not modes or not all(isinstance(one, str) and one in POOLINGS for one in modes):
        refuse(file, f"pooling_mode is {quoted(modes)}; the modes are {', '.join(POOLINGS)}")
    return Pooling(tuple(modes), setting(config, "include_prompt", bool, file, default=True))


def read_modules_after(
    first: str,
    listed: Sequence[tuple[str, Path]],
    width: int,
    listing: Path,
    of: VectorsOf | None = "sentence_embedding",
    last: Scores | None = None,
) -> tuple[Modules, int]:
    """Read the modules after the one that makes the vectors, and the width of what the last one returns.

    Parameters
    ----------
    first
        The kind of the module before them, for the message.
    listed
        The kind and the folder of each.
    width
        Width of the vectors that the first one takes.
    listing
        The file that lists them, for the message.
    of
        Which vectors they take; None for folders whose configurations are older than this setting.
    last
        What the last module returns, a Dense, if not such vectors.

    Raises
    ------
    ConfigError
        A module is of a kind that changes no vectors, or its configuration is malformed.
    CheckpointError
        The weights of a module are malformed or do not fit its configuration.
    """
    modules: list[Dense | LayerNorm | Normalize] = []
    for i, (kind, folder) in enumerate(listed):
        if kind == "Dense":
            to = of if last is None or i + 1 < len(listed) else last
            modules.append(dense := _read_dense(folder, width, of, to))
            width = len(dense.weight)
        elif kind == "LayerNorm":
            modules.append(_read_layer_norm(folder, width))
        elif kind == "Normalize":
            modules.append(_read_normalize(folder, of))
        elif kind != "Dropout":
            refuse(listing, f"has a second {kind}; only {', '.join(_AFTER_POOLING)} may follow the {first}")
    return tuple(modules), width


def _read_dense(folder: Path, width: int, of: VectorsOf | None, to: VectorsOf | Scores | None) -> Dense:
    """Read a Dense module that takes vectors of `width` numbers.

    Parameters
    ----------
    folder
        The folder of the module.
    width
        Width of the vectors that it takes.
    of
        Which vectors these must be; None for a folder whose configuration is older than this setting.
    to
        What it returns.
    """
    file = folder / "config.json"
    config = read_object(file, ConfigError)
    if of is not None:
        _expect_vectors_of(config, file, of, to)
    size_in, size_out = (setting(config, key, int, file, default=0) for key in ("in_features", "out_features"))
    if size_in != width:
        refuse(file, f"in_features is {size_in}, but the module before returns vectors of {width} numbers")
    name = setting(config, "activation_function", str, file, default="torch.nn.modules.activation.Tanh")
    if name not in TORCH_ACTIVATIONS:
        refuse(file, f"activation_function is {quoted(name)}; supported are {', '.join(TORCH_ACTIVATIONS)}")
    has_bias = setting(config, "bias", bool, file, default=True)
    use_residual = setting(config, "use_residual", bool, file, default=False)

    shapes: dict[str, tuple[int, ...]] = {"linear.weight": (size_out, size_in)}
    if has_bias:
        shapes["linear.bias"] = (size_out,)
    if use_residual and size_in != size_out:
        shapes["residual.weight"] = (size_out, size_in)
    arrays = _weights(folder, shapes, file)
    return Dense(
        weight=arrays["linear.weight"],
        bias=arrays.get("linear.bias", np.zeros(size_out, np.float32)),
        activation=TORCH_ACTIVATIONS[name],
        use_residual=use_residual,
        residual=arrays.get("residual.weight"),
    )


def _read_layer_norm(folder: Path, width: int) -> LayerNorm:
    """Read a LayerNorm module that takes vectors of `width` numbers."""
    file = folder / "config.json"
    if setting(read_object(file, ConfigError), "dimension", int, file, default=0) != width:
        refuse(file, f"dimension must be {width}, the width of the module before")
    arrays = _weights(folder, {"norm.weight": (width,), "norm.bias": (width,)}, file)
    return LayerNorm(arrays["norm.weight"], arrays["norm.bias"])


def _weights(folder: Path, shapes: dict[str, tuple[int, ...]], file: Path) -> dict[str, Any]:
    """Read the weights of a module, checked to have the shapes that its configuration requires."""
    weights = find_weights(folder)
    tensors = read_tensors(weights)
    for name, shape in shapes.items():
        found = tensors[name].shape if name in tensors else None
        if found != shape or tensors[name].dtype != np.float32:
            raise CheckpointError(f"{weights}: {name} has shape {found}, but {file} requires floating-point {shape}")
    return {name: tensors[name] for name in shapes}


def _read_normalize(folder: Path, of: VectorsOf | None) -> Normalize:
    """Read a Normalize module, for sentence vectors or for token vectors."""
    file = folder / "config.json"
    if of is not None and file.is_file():  # written since version 6
        _expect_vectors_of(read_object(file, ConfigError), file, of)
    return Normalize()


def read_model_settings(file: Path, width: int) -> JsonObject:
    """Read prompts, similarity and the default of truncate_dim; the oldest folders do not have this file."""
    config = read_object(file, ConfigError) if file.is_file() else {}
    expect(config, "model_type", "SentenceTransformer", file)
    prompts, default = _prompts(config, file)
    metric = setting(config, "similarity_fn_name", str, file) or "cosine"
    if metric not in METRICS:
        refuse(file, f"similarity_fn_name is {quoted(metric)}; supported are {', '.join(METRICS)}")
    truncate_dim = setting(config, "truncate_dim", int, file)
    if truncate_dim is not None and not 1 <= truncate_dim <= width:
        refuse(file, f"truncate_dim is {truncate_dim}, but the vectors have {width} numbers")
    return {
        "prompts": prompts,
        "default_prompt_name": default,
        "similarity": metric,
        "truncate_dim": truncate_dim,
    }


def read_prompts(folder: Path) -> tuple[dict[str, str], str | None]:
    """Read the prompts of a model's folder by name, and the name of the default one."""
    file = folder / "config_sentence_transformers.json"
    return _prompts(read_object(file, ConfigError) if file.is_file() else {}, file)


def _prompts(config: JsonObject, file: Path) -> tuple[dict[str, str], str | None]:
    prompts = dict(_USUAL_PROMPTS)
    for name, text in (setting(config, "prompts", dict, file) or {}).items():
        if text is not None and not isinstance(text, str):
            refuse(file, f"the prompt {quoted(name)} is {quoted(text)}, expected a string")
        prompts[name] = text or ""
    default = setting(config, "default_prompt_name", str, file)
    if default is not None and default not in prompts:
        refuse(file, f"default_prompt_name is {quoted(default)}, but the prompts are {list(prompts)}")
    return prompts, default


def _expect_vectors_of(config: JsonObject, file: Path, of: VectorsOf, to: VectorsOf | Scores | None = None) -> None:
    if of != "sentence_embedding" and config.get("module_input_name") is None:
        refuse(file, f"has no module_input_name; it must be {of!r}")
    expect(config, "module_input_name", of, file)
    expect(config, "module_output_name", to or of, file)
