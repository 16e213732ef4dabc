"""Packs the dense layers of a model for the kernels, in the dtype of its products."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert.bert.engines.stored import PackedLayerWeight, stored, stored_dense
from wordpiece_bert.bert.half_precision import widen
from wordpiece_bert.bert.quantized import GROUP, Int8Weight, StoredInt8Weight, input_factors
from wordpiece_bert.bert.stored_tensor import Scratch, blocks, loaded
from wordpiece_bert.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array

    #: For each packed layer the number of rows of inputs that were observed, and of each input the sum of the squares
    #: and the greatest magnitude.
    Observations = Mapping[str, tuple[int, npt.NDArray[np.float64], npt.NDArray[np.float32]]]


class DensePacker:
    """Packs dense layers by name, and remembers which weights are packed.

    A weight that is still in its file is read when it is packed, and not kept. Float weights are quantized with the
    inputs that `observations` has for them.

    Parameters
    ----------
    weights
        The weights of the model, by BERT's names.
    dtype
        ``"float32"``, ``"bfloat16"`` or ``"int8"``.
    instruction_set
        The instructions that will multiply; None for the best.
    observed
        Whether the layers remember their inputs.
    scratch
        Memory for weights while they are packed; by default some of its own.
    """

    def __init__(
        self,
        weights: Mapping[str, Array],
        dtype: str,
        instruction_set: str | None,
        *,
        observed: bool = False,
        scratch: Scratch | None = None,
    ) -> None:
        self._weights = weights
        #: The dtype of the products.
        self.dtype = dtype
        self._instruction_set = instruction_set
        #: What the layers had as inputs, by the first of their names.
        self.observations: Observations = {}
        self._observed = observed
        #: What holds weights while they are packed.
        self.scratch = Scratch() if scratch is None else scratch
        #: The packed layers, by the first of their names.
        self.dense: dict[str, _core.PackedDense] = {}
        #: The weights that are stored packed, by name.
        self.packed: dict[str, PackedLayerWeight] = {}

    def pack(self, *names: str, dtype: str | None = None) -> _core.PackedDense:
        """Pack dense layers with the same input as one."""
        dtype = self.dtype if dtype is None else dtype
        key = names[0]
        self.scratch.clear()
        if dtype == "int8":
            layer = self._quantized(key, names)
        else:
            layers = [stored_dense(self._weights, name, self.scratch) for name in names]
            layer = _core.PackedDense(list(names), layers, dtype, self._instruction_set, observed=self._observed)
        self.dense[key] = layer
        for name in names:
            weight = self._weights[f"{name}.weight"]
            self.packed[f"{name}.weight"] = PackedLayerWeight(layer, name, weight, dtype)
        return layer

    def observed(self) -> Observations:
        """Return what the float layers that observe had as inputs since they were packed."""
        found = {key: layer.observations() for key, layer in self.dense.items()}
        return {key: seen for key, seen in found.items() if seen is not None}

    def _quantized(self, key: str, names: Sequence[str]) -> _core.PackedDense:
        stored_weights: list[Array | Int8Weight] = [
            loaded(self._weights[f"{name}.weight"], self.scratch) for name in names
        ]
        if all(isinstance(weight, Int8Weight) for weight in stored_weights):
            factors = stored_weights[0].factors  # type: ignore[union-attr]
            if any(not np.array_equal(weight.factors, factors) for weight in stored_weights[1:]):  # type: ignore[union-attr]
                raise CheckpointError(
                    f"{key}.weight has other factors than {names[-1]}.weight, which has the same input"
                )
        else:
            factors = input_factors(*self.observations[key], [widen(weight) for weight in stored_weights])
        layers = []
        for name, weight in zip(names, stored_weights, strict=True):
            numbers = stored(weight)[0] if isinstance(weight, Int8Weight) else quantized(name, weight, factors)
            bias = self._weights.get(f"{name}.bias")
            given = np.zeros(len(numbers[0]), np.float32) if bias is None else np.ascontiguousarray(bias)
            layers.append(((numbers, "int8"), given))
        return _core.PackedDense(list(names), layers, "int8", self._instruction_set, factors)


def quantized(
    name: str, weight: Array, factors: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return a weight as int8 numbers, scales, and the columns whose factor is 0.

    Raises
    ------
    CheckpointError
        A number is NaN or infinite.
    """
    found = _core.quantize(stored(weight), factors)
    if found is None:
        raise CheckpointError(f"{name}.weight has numbers that are NaN or infinite, which int8 does not have")
    return found


def quantized_table(
    table: npt.NDArray[np.generic] | Int8Weight, name: str = "embeddings.word_embeddings"
) -> Int8Weight:
    """Return a table [V, E], of words or of a decoder, as int8 numbers; one that is quantized already as it is."""
    if isinstance(table, Int8Weight | StoredInt8Weight):
        return loaded(table)  # type: ignore[no-any-return]
    factors = np.ones(table.shape[1], np.float32)
    values = np.empty(table.shape, np.int8)
    scales = np.empty((table.shape[0], -(-table.shape[1] // GROUP)), np.float32)
    start = 0
    for rows in blocks(table):
        part = slice(start, start + len(rows))
        values[part], scales[part], _ = quantized(name, rows, factors)
        start += len(rows)
    return Int8Weight(values, scales, np.zeros((len(values), 0), np.float32), factors)


def packed_layer(
    name: str, weight: Array | Int8Weight, bias: Array, dtype: str, instruction_set: str | None = None
) -> _core.PackedDense:
    """Pack one dense layer of a head, weight [out, in] and bias [out], for products of `dtype`.

    Raises
    ------
    CheckpointError
        With int8, a number is NaN or infinite.
    """
    offset = np.ascontiguousarray(bias)
    if dtype == "int8":
        weight = quantized_table(weight, name)
        return _core.PackedDense([name], [(stored(weight), offset)], dtype, instruction_set, weight.factors)
    return _core.PackedDense([name], [(stored(weight), offset)], dtype, instruction_set)
