"""Weights as the kernels accept them, and those that they store packed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert.bert.half_precision import BFLOAT16, is_half, widen

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from wordpiece_bert import _core
    from wordpiece_bert.bert.checkpoint.safetensors import AnyArray
    from wordpiece_bert.bert.functional import Array

    #: Numbers as the kernels accept them, and the name of their dtype; those of 16 bits as uint16.
    Stored = tuple[npt.NDArray[np.generic], str]

__all__ = ["PackedLayerWeight", "stored", "stored_dense", "stored_norm"]


class PackedLayerWeight:
    """One matrix of a packed layer, unpacked on request."""

    def __init__(self, layer: _core.PackedLayer | _core.PackedDense, name: str, weight: AnyArray, dtype: str) -> None:
        self._layer, self._name = layer, name
        self.shape, self.dtype = weight.shape, BFLOAT16 if dtype == "bfloat16" else weight.dtype
        self.nbytes = weight.size * self.dtype.itemsize

    def unpack(self) -> AnyArray:
        """Return the weight [out, in]: the numbers that were packed, rounded to bfloat16 if the engine computes so."""
        return self._layer.weight(self._name).view(self.dtype)


def stored_dense(weights: Mapping[str, AnyArray], name: str) -> tuple[Stored, Array]:
    """Return a dense layer for the kernels; its bias is 0 where the model has none."""
    weight, bias = weights[f"{name}.weight"], weights.get(f"{name}.bias")
    if bias is None:
        return stored(weight), np.zeros(len(weight), np.float32)
    return stored(weight), np.ascontiguousarray(widen(bias))


def stored_norm(weights: Mapping[str, AnyArray], name: str) -> tuple[Array, Array]:
    """Return γ and β of a norm for the kernels."""
    weight, bias = widen(weights[f"{name}.weight"]), widen(weights[f"{name}.bias"])
    return np.ascontiguousarray(weight), np.ascontiguousarray(bias)


def stored(weight: AnyArray) -> Stored:
    """Return numbers for the kernels, those of 16 bits as uint16, and the name of their dtype."""
    weight = np.ascontiguousarray(weight)
    if not is_half(weight.dtype):
        return weight, "float32"
    return weight.view(np.uint16), "bfloat16" if weight.dtype == BFLOAT16 else "float16"
