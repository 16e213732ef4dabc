"""The folder layout of sentence-transformers: the modules that a model consists of, and its settings.

``modules.json`` lists the modules: a Transformer, optionally a WeightedLayerPooling, a Pooling, then any number of
Dense, LayerNorm, Normalize and Dropout (which has no effect after training). A folder without that file is a
Transformer with mean pooling. Names of Python classes are compared with these names; they are never imported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from wordpiece_bert._internal.safe_json import JsonObject, inside, quoted, read_json, read_object
from wordpiece_bert.bert import functional
from wordpiece_bert.bert.auto import read_config
from wordpiece_bert.bert.checkpoint import find_weights, read_tensors
from wordpiece_bert.bert.config import LARGEST_SIZE, find_config
from wordpiece_bert.bert.functional import POOLING_MODES, Array, PoolingMode
from wordpiece_bert.errors import CheckpointError, ConfigError
from wordpiece_bert.sentence.activations import TORCH_ACTIVATIONS
from wordpiece_bert.sentence.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from wordpiece_bert.bert.config import BertConfig

__all__ = [
    "OLD_POOLING",
    "Dense",
    "LayerNorm",
    "Normalize",
    "Pooling",
    "SentenceFolder",
    "WeightedLayers",
    "expect",
    "list_modules",
    "longest_row",
    "other_class",
    "read_dense",
    "read_folder",
    "read_layer_norm",
    "read_model_settings",
    "read_normalize",
    "read_prompts",
    "read_transformer_settings",
    "refuse",
    "setting",
]

#: Which vectors a module changes.
VectorsOf = Literal["sentence_embedding", "token_embeddings"]

_MODULES = ("Transformer", "WeightedLayerPooling", "Pooling", "Dense", "LayerNorm", "Normalize", "Dropout")
_AFTER_POOLING = _MODULES[3:]

# The old format of a pooling configuration: one boolean for each mode. Several modes are concatenated in this order.
OLD_POOLING: dict[str, PoolingMode] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}

# As in sentence-transformers 6.2, every model has these prompts, empty by default.
_USUAL_PROMPTS = {"query": "", "document": ""}

# The classes for models that sentence-transformers and PyLate save under other types.
_OTHER_CLASSES = {
    "SparseEncoder": "SparseEncoder",
    "MultiVectorEncoder": "MultiVectorEncoder",
    "ColBERT": "MultiVectorEncoder",
    "CrossEncoder": "CrossEncoder",
}

# Files with the settings of a Transformer; the first that exists is read. Old versions named them after the model type.
_TRANSFORMER_CONFIGS = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)


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

    modes: tuple[PoolingMode, ...] = ("mean",)
    include_prompt: bool = True


@dataclass(frozen=True, eq=False)
class Dense:
    """y = activation(x·Wᵀ + b); with a residual plus x, or plus x·Rᵀ if the width changes."""

    weight: Array  # [out, in]
    bias: Array  # [out]
    activation: Callable[[Array], Array]
    use_residual: bool = False
    residual: Array | None = None  # [out, in]
    #: The function that computes x·Wᵀ + b: `functional.linear`, or that of an engine.
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
    modules: tuple[Dense | LayerNorm | Normalize, ...] = ()
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
    if (other := other_class(folder)) is not None:
        refuse(folder, f"is a model for {other}: load it with {other}.from_pretrained")
    listing = folder / "modules.json"
    if not listing.is_file():
        config = read_config(folder)
        longest = longest_row(folder, {}, config)
        return SentenceFolder(
            transformer=folder, dimension=config.hidden_size, max_seq_length=longest, prompts=dict(_USUAL_PROMPTS)
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
    pooling = _pooling(modules[1][1] / "config.json", config.hidden_size)
    width = config.hidden_size * len(pooling.modes)
    rest: list[Dense | LayerNorm | Normalize] = []
    for kind, module_folder in modules[2:]:
        if kind == "Dense":
            rest.append(dense := read_dense(module_folder, width))
            width = len(dense.weight)
        elif kind == "LayerNorm":
            rest.append(read_layer_norm(module_folder, width))
        elif kind == "Normalize":
            rest.append(read_normalize(module_folder))
        elif kind != "Dropout":
            refuse(listing, f"has a second {kind}; only {', '.join(_AFTER_POOLING)} may follow the Pooling")
    return SentenceFolder(
        transformer=transformer,
        layers=layers,
        pooling=pooling,
        modules=tuple(rest),
        dimension=width,
        max_seq_length=longest_row(transformer, settings, config),
        do_lower_case=setting(settings, "do_lower_case", bool, transformer, default=False),
        **read_model_settings(folder / "config_sentence_transformers.json", width),
    )


def list_modules(listing: Path, supported: Sequence[str] | None, others: Sequence[str] = ()) -> list[tuple[str, Path]]:
    """Read ``modules.json``: the kind and the folder of each module.

    Parameters
    ----------
    listing
        The file.
    supported
        The kinds of sentence-transformers that are supported; None accepts any.
    others
        Classes of other packages that are supported, by their complete names.

    Raises
    ------
    ConfigError
        The file is malformed, or a module is of another kind.
    """
    entries = read_json(listing, ConfigError)
    if not isinstance(entries, list):
        refuse(listing, "must be a list of modules")
    modules = []
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get("type"), str):
            refuse(listing, f"module {i} must be an object with a type, not {quoted(entry)}")
        package, _, kind = entry["type"].rpartition(".")
        known = package.partition(".")[0] == "sentence_transformers" and (supported is None or kind in supported)
        if supported is not None and not known and entry["type"] not in others:
            names = ", ".join(supported)
            refuse(listing, f"module {i} is a {quoted(entry['type'])}; supported are sentence_transformers' {names}")
        path = setting(entry, "path", str, listing, default="")
        modules.append((kind, inside(listing.parent, path, str(listing), ConfigError)))
    return modules


def other_class(folder: Path) -> str | None:
    """Return the class that loads a folder which is not that of a `SentenceEncoder`; None for any other folder.

    Raises
    ------
    ConfigError
        A configuration is not a JSON object.
    """
    settings = folder / "config_sentence_transformers.json"
    if settings.is_file():
        kind = read_object(settings, ConfigError).get("model_type")
        if isinstance(kind, str) and kind in _OTHER_CLASSES:
            return _OTHER_CLASSES[kind]
    config = folder / "config.json"
    names = read_object(config, ConfigError).get("architectures") if config.is_file() else None
    return "MultiVectorEncoder" if isinstance(names, list) and "HF_ColBERT" in names else None


def read_transformer_settings(transformer: Path, task: str = "feature-extraction") -> JsonObject:
    """Read the settings of the Transformer; empty if the folder has none.

    Parameters
    ----------
    transformer
        The folder of the Transformer.
    task
        What the Transformer must be made for, if the settings have that.

    Raises
    ------
    ConfigError
        The settings are malformed, or those of a Transformer for another task.
    """
    for name in _TRANSFORMER_CONFIGS:
        file = transformer / name
        if file.is_file():
            settings = read_object(file, ConfigError)
            expect(settings, "transformer_task", task, file)
            expect(settings, "module_output_name", "token_embeddings", file)
            return settings
    return {}


def longest_row(transformer: Path, settings: JsonObject, config: BertConfig) -> int:
    """Return the longest row in tokens: max_seq_length, or the tokenizer's model_max_length, limited by the model's."""
    longest: int | None = setting(settings, "max_seq_length", int, transformer)
    file = transformer / "tokenizer_config.json"
    if longest is None and file.is_file():
        # A tokenizer without a limit has 1e30 here, as an integer or as a float.
        value = read_object(file, ConfigError).get("model_max_length")
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, int | float):
                refuse(file, f"model_max_length is {quoted(value)}, expected a number")
            longest = int(value)
    if longest is not None and longest < 1:
        refuse(transformer, f"the longest row is {longest} tokens; it must be 1 or more")
    if longest is None or longest > LARGEST_SIZE:
        return config.usual_longest_row
    return min(longest, config.longest_row)


def _weighted_layers(folder: Path, config: BertConfig) -> WeightedLayers:
    file = folder / "config.json"
    start = setting(read_object(file, ConfigError), "layer_start", int, file, default=4)
    count = config.encoder_layers + 1 - start
    if start < 0 or count < 1:
        refuse(file, f"layer_start is {start}, but the Transformer has {config.encoder_layers} layers")
    return WeightedLayers(start, _weights(folder, {"layer_weights": (count,)}, file)["layer_weights"])


def _pooling(file: Path, hidden_size: int) -> Pooling:
    config = read_object(file, ConfigError)
    width = config.get("embedding_dimension", config.get("word_embedding_dimension", hidden_size))
    if width != hidden_size:
        refuse(file, f"pools vectors of {quoted(width)} numbers, but the Transformer's hidden_size is {hidden_size}")
    modes = config.get("pooling_mode")
    if modes is None:
        chosen = [mode for key, mode in OLD_POOLING.items() if setting(config, key, bool, file, default=False)]
        modes = chosen or ["mean"]
    elif isinstance(modes, str):
        modes = [modes]
    if not isinstance(modes, list) or not modes or not all(mode in POOLING_MODES for mode in modes):
        refuse(file, f"pooling_mode is {quoted(modes)}; the modes are {', '.join(POOLING_MODES)}")
    return Pooling(tuple(modes), setting(config, "include_prompt", bool, file, default=True))


def read_dense(folder: Path, width: int, of: VectorsOf | None = "sentence_embedding") -> Dense:
    """Read a Dense module that takes vectors of `width` numbers.

    Parameters
    ----------
    folder
        The folder of the module.
    width
        Width of the vectors that it takes.
    of
        Which vectors these must be; None for a folder whose configuration is older than this setting.
    """
    file = folder / "config.json"
    config = read_object(file, ConfigError)
    if of is not None:
        _expect_vectors_of(config, file, of)
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


def read_layer_norm(folder: Path, width: int) -> LayerNorm:
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


def read_normalize(folder: Path, of: VectorsOf = "sentence_embedding") -> Normalize:
    """Read a Normalize module, for sentence vectors or for token vectors."""
    file = folder / "config.json"
    if file.is_file():  # written since version 6
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


def setting(config: JsonObject, key: str, kind: type, file: Path, *, default: Any = None) -> Any:
    """Return a field, checked to have exactly this type; the default if it is absent or null."""
    value = config.get(key)
    if value is None:
        return default
    if type(value) is not kind:  # isinstance would accept a bool as an int
        refuse(file, f"{key} is {quoted(value)}, expected {kind.__name__}")
    return value


def expect(config: JsonObject, key: str, only: str, file: Path) -> None:
    """Raise a `ConfigError` if a field is present and is not the only value that is supported."""
    value = config.get(key)
    if value is not None and value != only:
        refuse(file, f"{key} is {quoted(value)}; only {only!r} is supported")


def _expect_vectors_of(config: JsonObject, file: Path, of: VectorsOf) -> None:
    for key in ("module_input_name", "module_output_name"):
        if of != "sentence_embedding" and config.get(key) is None and key == "module_input_name":
            refuse(file, f"has no {key}; it must be {of!r}")
        expect(config, key, of, file)


def refuse(file: Path, what: str) -> NoReturn:
    """Raise a `ConfigError` about a file."""
    raise ConfigError(f"{file}: {what}")
