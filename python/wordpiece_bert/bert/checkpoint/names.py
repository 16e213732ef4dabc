"""Finds the weights of a model among the tensors of a checkpoint.

Checkpoints of different ages and classes have different names for the same tensor. `resolve` maps them to one set of
names, defined by a `Layout`, and compares every shape with the configuration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert._internal.checks import whole_number
from wordpiece_bert._internal.safe_json import quoted
from wordpiece_bert.bert.half_precision import is_half, widen
from wordpiece_bert.bert.plan.building import padding_row
from wordpiece_bert.bert.plan.parts import Shape
from wordpiece_bert.bert.quantized import Int8Weight, StoredInt8Weight, equal_weights
from wordpiece_bert.bert.stored_tensor import StoredTensor
from wordpiece_bert.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wordpiece_bert.bert.checkpoint.safetensors import AnyArray
    from wordpiece_bert.bert.config import BertConfig

__all__ = [
    "POOLER",
    "Layout",
    "Resolved",
    "Shape",
    "bert_shapes",
    "dense_shapes",
    "draw_weights",
    "drawn_weights",
    "listed",
    "norm_shapes",
    "present_names",
    "renamed",
    "resolve",
]

_DATA_PARALLEL_PREFIX = "module."

# Buffers of indices that old versions of transformers saved with the weights.
_BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")

# Numbers of rotary positions that programs have saved with the weights of a layer.
_LAYER_BUFFERS = ("inv_freq", "cos_cached", "sin_cached")

#: The pooler's weights, by BERT's names.
POOLER = ("pooler.dense.weight", "pooler.dense.bias")

#: How many names a message lists.
_LISTED = 8


class Layout(NamedTuple):
    """The names and shapes of a model's weights in its checkpoints.

    Examples
    --------
    >>> from wordpiece_bert.bert.checkpoint import Layout
    >>> layout = Layout(
    ...     {"dense.weight": ("hidden_size", "hidden_size")},
    ...     "bert.",
    ...     head={"classifier.bias": (2,)},
    ... )
    >>> layout.base["dense.weight"], layout.head["classifier.bias"]
    (('hidden_size', 'hidden_size'), (2,))
    """

    #: The base model's weights, without prefix.
    base: Mapping[str, Shape]
    #: The prefix of their names in the checkpoint of a model with a head.
    prefix: str = "bert."
    #: Weights of the base model that may be absent, all of them or none.
    optional: tuple[str, ...] = ()
    #: The head's weights.
    head: Mapping[str, Shape] = {}
    #: Weights of the head that equal another weight, by name; a file needs only one of each pair.
    tied: Mapping[str, str] = {}
    #: Prefixes of tensors that a model without a head ignores silently: the tensors of pre-training heads.
    dropped: tuple[str, ...] = ()
    #: Whether the base model's weights have the prefix even in a checkpoint without a head's.
    prefixed: bool = False
    #: What the names of the layers' weights begin with, before the number, in families whose layers may have no other
    #: tensors: which they have depends on options, and one that is left out would change the results.
    layers: str = ""


class Resolved(NamedTuple):
    """The weights of a model, and what else was in the file.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert import BertConfig
    >>> from wordpiece_bert.bert.checkpoint import Layout, resolve
    >>> tensors = {
    ...     "bert.norm.weight": np.ones(768, np.float32),
    ...     "other": np.zeros(3, np.float32),
    ... }
    >>> found = resolve(
    ...     tensors, Layout({"norm.weight": ("hidden_size",)}), BertConfig(), "a file"
    ... )
    >>> list(found.base), found.unused
    (['norm.weight'], ('other',))
    """

    #: The base model's weights, by the names of the layout: arrays, or tensors and int8 weights in a file.
    base: dict[str, Any]
    #: The head's weights, by the names of the layout.
    head: dict[str, Any]
    #: Names of tensors that belong to no part of the model.
    unused: tuple[str, ...]
    #: Names of weights of the head that were drawn, because the file has none.
    drawn: tuple[str, ...] = ()


def dense_shapes(name: str, size_in: str | int, size_out: str | int, *, bias: bool = True) -> dict[str, Shape]:
    """Return the names and shapes of a dense layer's weights."""
    shapes: dict[str, Shape] = {f"{name}.weight": (size_out, size_in)}
    return shapes | ({f"{name}.bias": (size_out,)} if bias else {})


def norm_shapes(name: str, size: str = "hidden_size") -> dict[str, Shape]:
    """Return the names and shapes of a layer norm's weights."""
    return {f"{name}.weight": (size,), f"{name}.bias": (size,)}


def bert_shapes(config: BertConfig) -> dict[str, Shape]:
    """Return the names and shapes of a base model's weights.

    Variants of BERT have the names of BERT here; weights that BERT does not have are called ``embeddings.projection``
    (ELECTRA, ALBERT), ``encoder.relative_attention_bias`` (MPNet), and ``attention.ln``, ``ln`` and ``encoder.ln``
    where norms come first (MegatronBERT, XLM-RoBERTa-XL).

    Parameters
    ----------
    config : BertConfig
        The configuration of the model.

    Returns
    -------
    dict of str to tuple
        For each name its shape: sizes as whole numbers or as names of fields of the configuration.

    Examples
    --------
    >>> from wordpiece_bert.bert import BertConfig
    >>> from wordpiece_bert.bert.checkpoint import bert_shapes
    >>> shapes = bert_shapes(BertConfig(num_hidden_layers=1))
    >>> shapes["encoder.layer.0.intermediate.dense.weight"]
    ('intermediate_size', 'hidden_size')
    """
    return config.plan().shapes()


def resolve(
    tensors: Mapping[str, AnyArray], layout: Layout, config: BertConfig, where: str, new_head: int | None = None
) -> Resolved:
    """Find the weights of a model among the tensors of a checkpoint.

    Parameters
    ----------
    tensors : mapping of str to ndarray
        The tensors, as `read_tensors` returns them.
    layout : Layout
        The names and shapes of the model's weights.
    config : BertConfig
        The configuration, which determines the shapes.
    where : str
        The file, for messages.
    new_head : int, optional
        A seed to draw the weights of the head with, if the file has none of them.

    Returns
    -------
    Resolved
        The weights in float32, and in the file if they are there; optional ones may be absent.

    Raises
    ------
    CheckpointError
        Weights are missing, have a shape other than the configuration's, or are not floating-point numbers; or
        layers have tensors that are not known.

    Examples
    --------
    The name in the file has a prefix, and the name in the layout has none:

    >>> import numpy as np
    >>> from wordpiece_bert.bert import BertConfig
    >>> from wordpiece_bert.bert.checkpoint import Layout, resolve
    >>> tensors = {"bert.norm.weight": np.ones(768, np.float32)}
    >>> found = resolve(
    ...     tensors, Layout({"norm.weight": ("hidden_size",)}), BertConfig(), "a file"
    ... )
    >>> found.base["norm.weight"].shape
    (768,)
    """
    tensors = present_names(tensors, where)
    prefix = _prefix(tensors, layout)
    base = {name: prefix + name for name in layout.base}
    if not any(base[name] in tensors for name in layout.optional):
        base = {name: full for name, full in base.items() if name not in layout.optional}
    # The shape of every weight, by its name in the file.
    expected = {full: layout.base[name] for name, full in base.items()} | dict(layout.head)
    tied = {copy: base.get(original, original) for copy, original in layout.tied.items()}
    tensors = _tie(tensors, tied, shared=config.tie_word_embeddings)
    missing = [name for name in expected if name not in tensors]
    drawn: dict[str, AnyArray] = {}
    own = layout.head.keys() - tied.keys()  # the head's weights that the base model does not have
    if missing and new_head is not None and own <= set(missing) <= layout.head.keys():
        untied = () if config.tie_word_embeddings else [name for name in tied if name.endswith(".weight")]
        drawn = draw_weights([name for name in missing if name in own or name in untied], layout, config, new_head)
        tensors = _tie(tensors | drawn, tied, shared=config.tie_word_embeddings)
        missing = [name for name in expected if name not in tensors]
    if missing:
        raise CheckpointError(f"{where}: {_describe_missing(missing, expected, layout, tensors)}")
    checked: dict[int, Any] = {}  # a weight of two names stays one
    for name, shape in expected.items():
        weight = _checked(tensors[name], name, shape, config, where)
        checked.setdefault(id(tensors[name]), weight)
    weights = {name: checked[id(tensors[name])] for name in expected}
    known = {prefix + name for name in _BUFFERS} | expected.keys()
    unused = [name for name in tensors if name not in known]
    if not layout.head:
        unused = [name for name in unused if not name.startswith(layout.dropped)]
    if layout.layers:
        _refuse_in_layers(unused, prefix + layout.layers, config, where)
    return Resolved(
        {name: weights[full] for name, full in base.items()},
        {name: weights[name] for name in layout.head},
        tuple(unused),
        tuple(drawn),
    )


def _refuse_in_layers(unused: list[str], start: str, config: BertConfig, where: str) -> None:
    """Raise a `CheckpointError` if one of the tensors that are not used belongs to a layer that is."""
    for name in unused:
        number, _, rest = name.removeprefix(start).partition(".")
        in_layer = name.startswith(start) and number.isdecimal() and int(number) < config.num_hidden_layers
        if in_layer and not rest.endswith(_LAYER_BUFFERS):
            raise CheckpointError(
                f"{where}: the tensor {quoted(name)} belongs to a layer, which with these settings has none of this "
                "name; results would be wrong without it"
            )


def present_names(tensors: Mapping[str, AnyArray], where: str) -> dict[str, AnyArray]:
    """Return tensors without the names of norms in TensorFlow and the prefix of torch's DataParallel.

    Raises
    ------
    CheckpointError
        A tensor has both an old name and the present one.
    """
    return _strip_data_parallel(_rename_norms(tensors, where))


def _rename_norms(tensors: Mapping[str, AnyArray], where: str) -> dict[str, AnyArray]:
    """Rename TensorFlow's LayerNorm.gamma and LayerNorm.beta to LayerNorm.weight and LayerNorm.bias."""
    renamed: dict[str, AnyArray] = {}
    for name, tensor in tensors.items():
        new = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
        if new in renamed:
            raise CheckpointError(f"{where}: {quoted(new)} occurs twice, also by its old name (gamma or beta)")
        renamed[new] = tensor
    return renamed


def _strip_data_parallel(tensors: dict[str, AnyArray]) -> dict[str, AnyArray]:
    """Remove the prefix "module." if every name has it: the checkpoint was saved from torch's DataParallel."""
    if all(name.startswith(_DATA_PARALLEL_PREFIX) for name in tensors):
        return {name.removeprefix(_DATA_PARALLEL_PREFIX): tensor for name, tensor in tensors.items()}
    return tensors


def _prefix(tensors: Mapping[str, AnyArray], layout: Layout) -> str:
    """Return the prefix of the base model's weights: "bert." in the checkpoint of a model with a head, else "".

    It is chosen for the entire file, by the form that more weights have. Choosing it for each tensor could mix the
    weights of two models.
    """
    with_prefix = sum(layout.prefix + name in tensors for name in layout.base)
    without = sum(name in tensors for name in layout.base)
    return layout.prefix if with_prefix > without else ""


def _tie(tensors: dict[str, AnyArray], tied: Mapping[str, str], *, shared: bool) -> dict[str, AnyArray]:
    """Fill in the missing one of each pair: the word table and the decoder's weight, both names of the decoder's bias.

    Two that differ are both kept, even if the configuration ties them, as in transformers. Without `shared` the decoder
    has separate weights, and a file without them is incomplete. Its bias, however, had only one name for years, so
    either name is accepted, as a copy.
    """
    tensors = dict(tensors)
    for copy, original in tied.items():
        both = copy in tensors and original in tensors
        if shared and copy in tensors and (not both or equal_weights(tensors[copy], tensors[original])):
            tensors[original] = tensors.get(original, tensors[copy])
            tensors[copy] = tensors[original]
        elif not both and original in tensors and (shared or copy.endswith(".bias")):
            tensors[copy] = tensors[original] if shared else tensors[original].copy()
        elif not both and copy in tensors and copy.endswith(".bias"):
            tensors[original] = tensors[copy].copy()
    return tensors


def draw_weights(names: Iterable[str], layout: Layout, config: BertConfig, seed: int) -> dict[str, AnyArray]:
    """Draw weights of a head as before training: N(0, initializer_range²), biases 0, layer norms 1."""
    random = np.random.default_rng(whole_number("seed", seed, 0))
    drawn: dict[str, AnyArray] = {}
    for name in names:
        shape = _expected(layout.head[name], config)
        if name.endswith(".bias"):
            drawn[name] = np.zeros(shape, np.float32)
        elif len(shape) == 1:
            drawn[name] = np.ones(shape, np.float32)
        else:
            drawn[name] = random.normal(0.0, config.initializer_range, shape).astype(np.float32)
    return drawn


def drawn_weights(layout: Layout, config: BertConfig, seed: int) -> dict[str, AnyArray]:
    """Draw all weights of a new model: N(0, initializer_range²), biases 0, norms 1, and 0 for the padding token."""
    shapes = {layout.prefix + name: shape for name, shape in layout.base.items()} | dict(layout.head)
    given = {name for name in layout.tied if config.tie_word_embeddings or name.endswith(".bias")}
    drawn = draw_weights(sorted(shapes.keys() - given), Layout({}, head=shapes), config, seed)
    words = next(layout.prefix + name for name, shape in layout.base.items() if shape[0] == "vocab_size")
    if (pad := padding_row(config)) is not None:
        drawn[words][pad] = 0.0
    return drawn


def _describe_missing(
    missing: list[str], expected: Mapping[str, Shape], layout: Layout, tensors: Mapping[str, AnyArray]
) -> str:
    count = f"{len(missing)} of {len(expected)} weights are missing"
    message = f"{count}: {listed(missing)}; the file has {listed(tensors)}"
    if all(name in layout.head for name in missing):
        message += ". They belong to the head, so this is a checkpoint of another class; new_head=SEED draws them"
    return message


def _expected(shape: Shape, config: BertConfig) -> tuple[int, ...]:
    return tuple(int(getattr(config, size)) if isinstance(size, str) else size for size in shape)


def _checked(tensor: Any, name: str, shape: Shape, config: BertConfig, where: str) -> Any:
    expected = _expected(shape, config)
    if tensor.shape != expected:
        wrong = [i for i in range(len(shape)) if tensor.ndim != len(shape) or tensor.shape[i] != expected[i]]
        meaning = ", ".join(dict.fromkeys(_meaning(shape[i], expected[i]) for i in wrong))
        found = f"{name} has shape {list(tensor.shape)}"
        raise CheckpointError(f"{where}: {found}, but the configuration requires {list(expected)}: {meaning}")
    if isinstance(tensor, Int8Weight | StoredInt8Weight):
        return tensor
    if tensor.dtype.kind != "f" and not is_half(tensor.dtype):
        raise CheckpointError(
            f"{where}: {name} holds {tensor.dtype} numbers; weights must be floating-point, not quantized"
        )
    return tensor if isinstance(tensor, StoredTensor) else widen(tensor)


def _meaning(size: str | int, value: int) -> str:
    return f"{size} is {value}" if isinstance(size, str) else f"always {value} in such a model"


def listed(names: Iterable[str]) -> str:
    """Return untrusted names for a message: quoted, and only the first few.

    Parameters
    ----------
    names : iterable of str
        The names, from a file.

    Returns
    -------
    str
        The names, separated by commas.

    Examples
    --------
    >>> from wordpiece_bert.bert.checkpoint import listed
    >>> listed(f"x.{i}" for i in range(10))
    "'x.0', 'x.1', 'x.2', 'x.3', 'x.4', 'x.5', 'x.6', 'x.7' and 2 more"
    """
    names = list(names)
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(map(quoted, names[:_LISTED])) + more if names else "nothing"


def renamed(name: str, names: Mapping[str, str]) -> str:
    """Rename a weight: replace the first part of `names` that occurs in it, and the prefix of the layers.

    >>> from wordpiece_bert.bert.checkpoint.names import renamed
    >>> renamed(
    ...     "encoder.layer.0.output.dense.bias",
    ...     {"encoder.layer.": "layers.", ".output.dense.": ".out."},
    ... )
    'layers.0.out.bias'
    """
    layers = "encoder.layer."
    for part, other in names.items():
        if part != layers and part in name:
            name = name.replace(part, other, 1)
            break
    return name.replace(layers, names.get(layers, layers), 1)
