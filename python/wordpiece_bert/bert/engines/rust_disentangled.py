"""DeBERTa for the kernels: the projected relative positions of each layer, and the convolution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert.bert import functional
from wordpiece_bert.bert.disentangled import convolution_as_dense, relative_table
from wordpiece_bert.bert.engines.stored import stored_norm
from wordpiece_bert.bert.half_precision import widen
from wordpiece_bert.bert.stored_tensor import loaded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.disentangled import Disentangled
    from wordpiece_bert.bert.functional import Array

    _Terms = tuple[Array | None, Array | None]
    _Convolution = tuple[Array, Array, str, tuple[Array, Array]]

__all__ = ["disentangled_parts"]


def disentangled_parts(
    config: BertConfig,
    weights: Mapping[str, Any],
    numbers: Iterable[int],
    instruction_set: str | None,
    *,
    is_begun: bool,
) -> tuple[int, int, int, list[_Terms], _Convolution | None] | None:
    """Return what the kernels have for a DeBERTa besides the layers of BERT; None for other models.

    Parameters
    ----------
    config : BertConfig
        Sizes and settings.
    weights : mapping
        All weights, by BERT's names: arrays, in a file, or packed.
    numbers : iterable of int
        The numbers of the layers.
    instruction_set : str or None
        The instructions that multiply.
    is_begun : bool
        Whether the first of the layers is the model's.
    """
    kind = config.disentangled
    if kind is None:
        return None
    terms = [_terms(config, weights, kind, index, instruction_set) for index in numbers] if kind.has_terms else []
    convolved = None
    if kind.convolution is not None and is_begun:
        convolved = _convolution(weights, kind)
    return kind.span, kind.longest, kind.terms, terms, convolved


def _terms(
    config: BertConfig, weights: Mapping[str, Any], kind: Disentangled, index: int, instruction_set: str | None
) -> _Terms:
    """Return K^r and Q^r [2K, N·d] of a layer, computed from the weights as they are stored."""
    tables = {"rel_embeddings": {"weight": _widened(weights["encoder.rel_embeddings.weight"])}}
    if kind.normed:
        weight, bias = stored_norm(weights, "encoder.LayerNorm")
        tables["LayerNorm"] = {"weight": weight, "bias": bias}
    table = np.ascontiguousarray(relative_table(tables, kind, config.layer_norm_eps))

    def projected(name: str) -> Array:
        """Project R by a dense layer, in an order of operations that no number of threads changes."""
        layer = f"encoder.layer.{index}.attention.self.{name}"
        weight, bias = (np.ascontiguousarray(_widened(weights[f"{layer}.{part}"])) for part in ("weight", "bias"))
        return _core.dense(table, weight, bias, "identity", instruction_set=instruction_set)

    key, query = ("key", "query") if kind.shared else ("pos_key_proj", "pos_query_proj")
    return (
        projected(key) if kind.content_to_position else None,
        projected(query) if kind.position_to_content else None,
    )


def _convolution(weights: Mapping[str, Any], kind: Disentangled) -> _Convolution:
    """Return the convolution as a dense layer."""
    assert kind.convolution is not None, "checked by the caller"
    weight = convolution_as_dense(_widened(weights["encoder.conv.conv.weight"]))
    bias = np.ascontiguousarray(_widened(weights["encoder.conv.conv.bias"]))
    activation = functional.ACTIVATIONS[kind.convolution.activation].__name__
    return weight, bias, activation, stored_norm(weights, "encoder.conv.LayerNorm")


def _widened(weight: Any) -> Array:
    """Return a weight in float32, wherever it is."""
    weight = loaded(weight)
    return widen(weight if isinstance(weight, np.ndarray) else weight.unpack())
