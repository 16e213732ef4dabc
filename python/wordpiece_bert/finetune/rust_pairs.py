"""Weights and biases as the kernels borrow them, and the arrays for their gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.finetune.weights import EncoderWeights

    #: Weight and bias of a dense layer, or γ and β of a norm.
    Pair = tuple[Array, Array]

__all__ = ["gradient_of", "pair", "pair_if_any"]


def pair(weights: EncoderWeights, name: str) -> Pair:
    """Return weight and bias of a dense layer or a norm, 0 for a bias that it does not have."""
    weight, bias = weights.affine(name)
    return weight, np.zeros(len(weight), np.float32) if bias is None else bias


def pair_if_any(weights: EncoderWeights, name: str) -> Pair | None:
    """Return weight and bias as `pair`; None if the model does not have the layer."""
    return pair(weights, name) if name in weights else None


def gradient_of(parameters: Any, *, written: bool = True) -> Any:
    """Return arrays for the gradients of a weight and a bias, or a list of them; empty if they are not written."""
    if isinstance(parameters, list):
        return [gradient_of(pair, written=written) for pair in parameters]
    return None if parameters is None else tuple(np.empty(x.shape if written else 0, np.float32) for x in parameters)
