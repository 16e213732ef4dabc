"""Masked-language heads whose logits are pooled over the tokens of a text, in NumPy and in Rust.

Formal et al., "SPLADE: Sparse Lexical and Expansion Model for First Stage Ranking" (2021), equations 1 and 2, and
"SPLADE v2" (2021), equation 6: w_j = Σ_i or max_i of ln(1 + ReLU(z_ij)), over the tokens i of a text, for each entry j
of the vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert import functional
from wordpiece_bert.bert.engines.packing import packed_layer
from wordpiece_bert.bert.parameters import PREPARING

if TYPE_CHECKING:
    from wordpiece_bert.bert.engines.engine_interface import CsrArrays, HeadLayers
    from wordpiece_bert.bert.functional import Array, Ids

#: The most logits that are in memory at once in NumPy, 32 MB of float32.
_MOST_LOGITS = 1 << 23


class NumpyVocabularyHead:
    """The formulas, for one block of the vocabulary after the other."""

    def __init__(self, layers: HeadLayers) -> None:
        self._layers = layers

    def encode(
        self,
        x: Array,
        ends: Ids,
        pooling: Literal["max", "sum"],
        *,
        twice: bool,
        max_values: int | None,
        threads: int | None,
    ) -> CsrArrays:
        """[tokens, H] -> the values other than 0 of [B, V], as `VocabularyHead.encode`."""
        del threads
        dense, activation, norm, eps, (weight, bias) = self._layers
        reduce = np.maximum.reduceat if pooling == "max" else np.add.reduceat
        pooled = np.empty((len(ends) - 1, len(bias)), np.float32)  # [B, V]
        with np.errstate(under="ignore"):
            t = functional.ACTIVATIONS[activation](functional.linear(x, *dense))  # [tokens, E]
            t = functional.layer_norm(t, *norm, eps=eps)
            step = max(1, _MOST_LOGITS // max(1, len(x)))
            for start in range(0, len(bias), step):
                block = slice(start, start + step)
                z = functional.linear(t, weight[block], bias[block])  # [tokens, step]
                w = np.log1p(np.maximum(z, 0))
                pooled[:, block] = reduce(np.log1p(w) if twice else w, ends[:-1], axis=0)
        rows, columns = np.nonzero(pooled)
        values = pooled[rows, columns]
        indptr = np.searchsorted(rows, np.arange(len(ends)))
        return greatest_values((indptr, columns.astype(np.int32), values), max_values)


@completed_by(PREPARING)
class RustVocabularyHead:
    """The kernels, which pool the logits of a few panels of the vocabulary while they are in the cache.

    Parameters
    ----------
    layers
        The layers, which are packed.
    dtype
        The number type of the products, as in the layers of the model. The dense layer before an int8 decoder, a small
        part of the work, is float32.
    """

    def __init__(self, layers: HeadLayers, dtype: str = "float32", instruction_set: str | None = None) -> None:
        (weight, bias), activation, (scale, shift), eps, (decoder, offset) = layers
        self.__setstate__(
            (
                packed_layer("dense", weight, bias, "float32" if dtype == "int8" else dtype, instruction_set),
                functional.ACTIVATIONS[activation].__name__,
                (np.ascontiguousarray(scale), np.ascontiguousarray(shift), eps),
                packed_layer("decoder", decoder, offset, dtype, instruction_set),
                instruction_set,
            )
        )

    def __getstate__(self) -> tuple[Any, ...]:
        return self._layers

    def __setstate__(self, layers: tuple[Any, ...]) -> None:
        self._layers = layers
        self._head = _core.VocabularyHead(*layers)

    def encode(
        self,
        x: Array,
        ends: Ids,
        pooling: Literal["max", "sum"],
        *,
        twice: bool,
        max_values: int | None,
        threads: int | None,
    ) -> CsrArrays:
        """[tokens, H] -> the values other than 0 of [B, V], as `VocabularyHead.encode`."""
        offsets = ends.astype(np.int64, copy=False)
        return self._head.encode(np.ascontiguousarray(x), offsets, pooling, twice, max_values, threads)


def greatest_values(rows: CsrArrays, count: int | None) -> CsrArrays:
    """Keep the `count` values of each row that are farthest from 0, of equal ones the first; None keeps all."""
    indptr, indices, values = rows
    lengths = np.diff(indptr)
    if count is None or not len(lengths) or int(lengths.max()) <= count:
        return rows
    row = np.repeat(np.arange(len(lengths)), lengths)
    distances = np.where(np.isnan(values), np.inf, np.abs(values))
    order = np.lexsort((indices, -distances, row))  # row by row, the greatest first
    rank = np.arange(len(values)) - np.repeat(indptr[:-1], lengths)
    kept = np.sort(order[rank < count])
    return np.concatenate([[0], np.cumsum(np.minimum(lengths, count))]), indices[kept], values[kept]
