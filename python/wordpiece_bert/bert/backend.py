"""Which engine does a model's arithmetic.

`model.py` tells what BERT does; an engine does it. The engine here is NumPy: the composed functions of `functional.py`
over the weights as they are, step by step. The other, in `rust.py`, takes all steps in one call and keeps the weights
in a form of its own: that is what `Backend.prepare` is for, called once when a model is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from wordpiece_bert.bert import functional
from wordpiece_bert.bert.half_precision import is_half, widen
from wordpiece_bert.bert.rust import RustBackend
from wordpiece_bert.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wordpiece_bert.bert.checkpoint.safetensors import AnyArray
    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.functional import Affine, Array, Embeddings, Ids, Layer, Mask, PoolingMode, Table
    from wordpiece_bert.bert.inputs import Inputs

__all__ = ["Backend", "Dense", "Encoder", "PackedWeight", "Steps", "WholePass", "get_backend"]


class Steps(Protocol):
    """The weights of one model, and the steps of a forward pass over them; shapes as in `functional`.

    It never changes, so threads may share it.
    """

    def embeddings(
        self, input_ids: Ids | None, token_type_ids: Ids, position_ids: Ids, inputs_embeds: Array | None = None
    ) -> Array:
        """[B, S] ids, or word vectors [B, S, H] -> [B, S, H], as `functional.embeddings`."""

    def encoder_layer(self, x: Array, index: int, mask: Mask | None) -> tuple[Array, Array]:
        """[B, S, H] -> [B, S, H] and attention weights [B, N, S, S], as `functional.encoder_layer` of layer `index`."""

    def pooler(self, x: Array) -> Array | None:
        """[B, S, H] -> [B, H], as `functional.pooler`; None for a model without one."""

    def pool(self, x: Array, mask: Mask, mode: PoolingMode, skip: int = 0) -> Array:
        """[B, S, H] -> [B, H], as `functional.pool`."""


class PackedWeight(Protocol):
    """A weight that an engine keeps in its own form alone."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its dtype."""

    @property
    def nbytes(self) -> int:
        """The bytes of its numbers."""

    def unpack(self) -> AnyArray:
        """Return it in the form of a checkpoint."""


@runtime_checkable
class WholePass(Protocol):
    """The weights of one model, and a forward pass over them that is one step; shapes as in `functional`.

    It never changes, so threads may share it.
    """

    @property
    def packed(self) -> Mapping[str, PackedWeight]:
        """The weights that need not be kept beside it, by BERT's names."""

    def forward(
        self, inputs: Inputs, *, hidden_states: bool, attentions: bool, visible_only: bool, threads: int | None
    ) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Run all layers: hidden states [B, S, H], all of them or the last alone; and the attention weights, or none.

        With `visible_only` the places that the mask hides may stay 0, but for the first of each row.
        """

    def pooler(self, x: Array) -> Array | None:
        """[B, S, H] -> [B, H], as `functional.pooler`; None for a model without one."""

    def pool(self, x: Array, mask: Mask, mode: PoolingMode, skip: int = 0) -> Array:
        """[B, S, H] -> [B, H], as `functional.pool`."""

    def pooled(self, ids: Ids, ends: Ids, modes: Sequence[PoolingMode], skip: int, threads: int | None) -> Array:
        """Run all layers over rows of ids [tokens] that end at `ends` [B + 1], and pool each: [B, modes · H].

        Token types are 0.
        """


Encoder = Steps | WholePass


class Dense(Protocol):
    """A dense layer of a head, whose weights the engine keeps in whatever form suits it."""

    def __call__(self, x: Array) -> Array:
        """[..., in] -> [..., out], as `functional.linear`."""


class Backend(Protocol):
    """An engine: it takes in a model's weights."""

    def prepare(self, config: BertConfig, weights: Mapping[str, AnyArray]) -> Encoder:
        """Take in weights, named as in `checkpoint.bert_shapes` and of its shapes; float32, or half precision."""

    def dense(self, weight: AnyArray, bias: AnyArray) -> Dense:
        """Take in a dense layer of a head: weight [out, in], bias [out]."""

    def linear(self, x: Array, weight: Array, bias: Array) -> Array:
        """x·Wᵀ + b, as `functional.linear`."""


class NumpyEncoder:
    """The steps of a forward pass in NumPy: each a call of the function of its name.

    Weights in half precision are widened when they are used, a layer at a time.
    """

    def __init__(self, config: BertConfig, weights: Mapping[str, AnyArray]) -> None:
        tree = _tree(weights)
        self._word_table: AnyArray = tree["embeddings"]["word_embeddings"]["weight"]
        self._embeddings: Embeddings = tree["embeddings"]
        self._layers: list[Layer] = [tree["encoder"]["layer"][str(i)] for i in range(config.encoder_layers)]
        self._pooler: Affine | None = tree["pooler"]["dense"] if "pooler" in tree else None
        self._distances: Table | None = tree["encoder"].get("relative_attention_bias")
        self._eps = config.layer_norm_eps
        self._heads = config.num_attention_heads
        self._activation = functional.ACTIVATIONS[config.hidden_act]
        self._half = any(is_half(weight.dtype) for weight in weights.values())
        self._bias: Array | None = None  # of the last length seen; a length gives the same array in every thread

    def embeddings(
        self, input_ids: Ids | None, token_type_ids: Ids, position_ids: Ids, inputs_embeds: Array | None = None
    ) -> Array:
        tables = self._embeddings
        if self._half:
            if inputs_embeds is None:
                inputs_embeds = widen(self._word_table[input_ids])  # some rows of a table too large to widen as a whole
            tables = _widened({name: table for name, table in tables.items() if name != "word_embeddings"})
        return functional.embeddings(
            input_ids, token_type_ids, position_ids, tables, eps=self._eps, inputs_embeds=inputs_embeds
        )

    def encoder_layer(self, x: Array, index: int, mask: Mask | None) -> tuple[Array, Array]:
        layer: Layer = _widened(self._layers[index]) if self._half else self._layers[index]
        return functional.encoder_layer(
            x,
            layer,
            mask,
            heads=self._heads,
            activation=self._activation,
            eps=self._eps,
            position_bias=self._position_bias(x.shape[1]),
        )

    def pooler(self, x: Array) -> Array | None:
        return None if self._pooler is None else functional.pooler(x, _widened(self._pooler))

    def pool(self, x: Array, mask: Mask, mode: PoolingMode, skip: int = 0) -> Array:
        return functional.pool(x, mask, mode, skip)

    def _position_bias(self, length: int) -> Array | None:
        if self._distances is None:
            return None
        bias = self._bias
        if bias is None or bias.shape[-1] != length:
            bias = self._bias = functional.relative_position_bias(length, widen(self._distances["weight"]))
        return bias


class NumpyDense:
    """`functional.linear` over weights as they are."""

    #: Rows of a half-precision weight that are widened at once: 24 MB of a masked-language decoder of 768 columns.
    _BLOCK = 8192

    def __init__(self, weight: AnyArray, bias: AnyArray) -> None:
        self._weight, self._bias = weight, widen(bias)

    def __call__(self, x: Array) -> Array:
        if not is_half(self._weight.dtype):
            return functional.linear(x, widen(self._weight), self._bias)
        blocks = range(0, len(self._weight), self._BLOCK)
        rows = [slice(start, start + self._BLOCK) for start in blocks]
        return np.concatenate([functional.linear(x, widen(self._weight[r]), self._bias[r]) for r in rows], axis=-1)


class NumpyBackend:
    """NumPy in float32. Its threads are those of the BLAS library that NumPy was built with."""

    def prepare(self, config: BertConfig, weights: Mapping[str, AnyArray]) -> Encoder:
        return NumpyEncoder(config, weights)

    def dense(self, weight: AnyArray, bias: AnyArray) -> Dense:
        return NumpyDense(weight, bias)

    def linear(self, x: Array, weight: Array, bias: Array) -> Array:
        """x·Wᵀ + b."""
        return functional.linear(x, weight, bias)


#: The engines, by name and by what they compute in.
_BACKENDS: dict[str, dict[str, Backend]] = {
    "numpy": {"float32": NumpyBackend()},
    "rust": {"float32": RustBackend(), "bfloat16": RustBackend("bfloat16")},
}


def get_backend(name: str, dtype: str) -> Backend:
    """Return the engine of this name, for numbers of this type.

    Parameters
    ----------
    name
        ``"rust"`` or ``"numpy"``.
    dtype
        ``"float32"``, what the arithmetic is done in; or ``"bfloat16"``, which the engine in Rust has: the products of
        the layers are then those of numbers rounded to 8 bits, and their sums float32.

    Raises
    ------
    ConfigError
        The engine does not compute in this dtype, but another does.
    InputError
        There is no engine or dtype of this name.
    """
    dtypes = _BACKENDS.get(name)
    if dtypes is None:
        known = ", ".join(map(repr, _BACKENDS))
        message = f"backend must be one of {known}, not {name!r}"
        raise InputError(message)
    backend = dtypes.get(dtype)
    if backend is None:
        known = ", ".join(map(repr, dtypes))
        if any(dtype in others for others in _BACKENDS.values()):
            message = f"dtype={dtype!r}: backend {name!r} computes in {known} only"
            raise ConfigError(message)
        message = f"dtype must be one of {known}, not {dtype!r}"
        raise InputError(message)
    return backend


def _widened(tree: Any) -> Any:  # noqa: ANN401 (any part of a model's weights)
    """Bring every array of a tree of weights to float32."""
    return {name: _widened(part) for name, part in tree.items()} if isinstance(tree, dict) else widen(tree)


def _tree(weights: Mapping[str, AnyArray]) -> dict[str, Any]:
    """{"a.b.weight": w} -> {"a": {"b": {"weight": w}}}."""
    tree: dict[str, Any] = {}
    for name, weight in weights.items():
        *path, leaf = name.split(".")
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        node[leaf] = weight
    return tree
