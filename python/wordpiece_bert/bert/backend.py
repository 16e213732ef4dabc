"""Which engine does a model's arithmetic.

`model.py` tells what BERT does; an engine does it. The engine here is NumPy: the composed functions of `functional.py`
over the weights as they are. Another one replaces exactly those functions, by the same names, and keeps the weights in
whatever form suits it: that is what `Backend.prepare` is for, called once when a model is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from wordpiece_bert.bert import functional
from wordpiece_bert.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.functional import Affine, Array, Embeddings, Ids, Layer, Mask, PoolingMode

__all__ = ["Backend", "Encoder", "get_backend"]


class Encoder(Protocol):
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


class Backend(Protocol):
    """An engine: it takes in a model's weights."""

    name: str
    dtypes: tuple[str, ...]

    def prepare(self, config: BertConfig, weights: Mapping[str, Array]) -> Encoder:
        """Take in weights, named as in `checkpoint.bert_shapes` and of its shapes."""


class NumpyEncoder:
    """The steps of a forward pass in NumPy: each a call of the function of its name."""

    def __init__(self, config: BertConfig, weights: Mapping[str, Array]) -> None:
        tree = _tree(weights)
        self._embeddings: Embeddings = tree["embeddings"]
        self._layers: list[Layer] = [tree["encoder"]["layer"][str(i)] for i in range(config.num_hidden_layers)]
        self._pooler: Affine | None = tree["pooler"]["dense"] if "pooler" in tree else None
        self._eps = config.layer_norm_eps
        self._heads = config.num_attention_heads
        self._activation = functional.ACTIVATIONS[config.hidden_act]

    def embeddings(
        self, input_ids: Ids | None, token_type_ids: Ids, position_ids: Ids, inputs_embeds: Array | None = None
    ) -> Array:
        return functional.embeddings(
            input_ids, token_type_ids, position_ids, self._embeddings, eps=self._eps, inputs_embeds=inputs_embeds
        )

    def encoder_layer(self, x: Array, index: int, mask: Mask | None) -> tuple[Array, Array]:
        return functional.encoder_layer(
            x, self._layers[index], mask, heads=self._heads, activation=self._activation, eps=self._eps
        )

    def pooler(self, x: Array) -> Array | None:
        return None if self._pooler is None else functional.pooler(x, self._pooler)

    def pool(self, x: Array, mask: Mask, mode: PoolingMode, skip: int = 0) -> Array:
        return functional.pool(x, mask, mode, skip)


class NumpyBackend:
    """NumPy in float32. Its threads are those of the BLAS library that NumPy was built with."""

    name = "numpy"
    dtypes: tuple[str, ...] = ("float32",)

    def prepare(self, config: BertConfig, weights: Mapping[str, Array]) -> Encoder:
        return NumpyEncoder(config, weights)


_BACKENDS: dict[str, Backend] = {"numpy": NumpyBackend()}

# Names that are planned: asking for them is no slip of the pen, so the answer says more than "unknown".
_PLANNED_BACKENDS = ("rust",)
_PLANNED_DTYPES = ("bfloat16", "int8")


def get_backend(name: str, dtype: str) -> Backend:
    """Return the engine of this name, for numbers of this type.

    Parameters
    ----------
    name
        ``"numpy"``.
    dtype
        ``"float32"``, what the arithmetic is done in.

    Raises
    ------
    ConfigError
        The engine, or the engine in this dtype, is planned but not in this version.
    InputError
        There is no engine or dtype of this name.
    """
    backend = _BACKENDS.get(name)
    if backend is None:
        known = ", ".join(map(repr, _BACKENDS))
        if name in _PLANNED_BACKENDS:
            message = f"backend={name!r} is not in this version yet; use one of {known}"
            raise ConfigError(message)
        message = f"backend must be one of {known}, not {name!r}"
        raise InputError(message)
    if dtype not in backend.dtypes:
        known = ", ".join(map(repr, backend.dtypes))
        if dtype in _PLANNED_DTYPES:
            message = f"dtype={dtype!r}: backend {name!r} computes in {known} only"
            raise ConfigError(message)
        message = f"dtype must be one of {known}, not {dtype!r}"
        raise InputError(message)
    return backend


def _tree(weights: Mapping[str, Array]) -> dict[str, Any]:
    """{"a.b.weight": w} -> {"a": {"b": {"weight": w}}}."""
    tree: dict[str, Any] = {}
    for name, weight in weights.items():
        *path, leaf = name.split(".")
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        node[leaf] = weight
    return tree
