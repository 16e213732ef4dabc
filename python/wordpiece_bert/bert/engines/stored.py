"""Weights as the kernels accept them, and those that they store packed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert.bert.half_precision import BFLOAT16, widen
from wordpiece_bert.bert.quantized import Int8Weight
from wordpiece_bert.bert.stored_tensor import loaded

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from wordpiece_bert import _core
    from wordpiece_bert.bert.checkpoint.safetensors import AnyArray
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.bert.stored_tensor import Scratch

    #: Numbers as the kernels accept them, and the name of their dtype; int8 with scales and columns.
    Stored = tuple[npt.NDArray[np.generic] | tuple[npt.NDArray[np.int8], Array, Array], str]

#: The dtypes of weights that are stored in another one than they came in, by the dtype of the products.
_DTYPES = {"bfloat16": BFLOAT16, "int8": np.dtype(np.int8)}


class PackedLayerWeight:
    """One matrix of a packed layer, unpacked on request."""

    def __init__(self, layer: _core.PackedDense, name: str, weight: AnyArray, dtype: str) -> None:
        self._layer, self._name = layer, name
        self.shape, self.dtype = weight.shape, _DTYPES.get(dtype, weight.dtype)
        self.nbytes = weight.size * self.dtype.itemsize

    def unpack(self) -> AnyArray | Int8Weight:
        """Return the weight [out, in] as it was packed: rounded to bfloat16 or int8 if the engine computes so."""
        weight = self._layer.weight(self._name)
        if isinstance(weight, tuple):
            factors = self._layer.factors()
            assert factors is not None, "int8 layers have factors"
            return Int8Weight(*weight, factors)
        return weight.view(self.dtype)


def stored_dense(weights: Mapping[str, AnyArray], name: str, scratch: Scratch | None = None) -> tuple[Stored, Array]:
    """Return a dense layer for the kernels, read into scratch memory if it is in a file; without a bias, that is 0."""
    weight, bias = loaded(weights[f"{name}.weight"], scratch), weights.get(f"{name}.bias")
    if isinstance(weight, Int8Weight):
        weight = weight.widen()
    if bias is None:
        return stored(weight), np.zeros(len(weight), np.float32)
    return stored(weight), np.ascontiguousarray(bias)


def stored(weight: AnyArray | Int8Weight) -> Stored:
    """Return numbers for the kernels and the name of their dtype: float32, or int8 with scales and columns."""
    if isinstance(weight, Int8Weight):
        return (weight.values, weight.scales, weight.columns), "int8"
    return np.ascontiguousarray(widen(weight)), "float32"
