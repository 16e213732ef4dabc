"""Weights as int8 numbers with scales, and the choice of the factors that keep their digits.

A weight [N, K] is stored by groups of 64 along K. Each group of each output has a scale: its greatest magnitude divided
by 127. Before that, the column of input j is divided by a factor fⱼ, and the input is multiplied by it when it is
quantized, by token and group, in the same way. The product stays the same, and with factors that make inputs and
weights about equally large, inputs that are much larger than others do not take the digits of their group (SmoothQuant,
Xiao et al. 2022, with the root of the mean square in place of the maximum, which a single token does not change).

One or two inputs of a layer may still be many times larger in a single token than all others: in trained models, one
column of the vector of ``[CLS]``, which all tokens then attend to. They would take the digits of their group in that
token, so such an input has the factor 0: it is not quantized, and its column of weights is kept in float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert._internal.safe_json import quoted
from wordpiece_bert.bert.stored_tensor import Stored, equal, loaded
from wordpiece_bert.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.bert.stored_tensor import Scratch

#: How many numbers along K share a scale; the same as in the kernels.
GROUP = 64

#: What the configuration of a quantized model says; transformers refuses a method that it does not know, by name.
QUANTIZATION = {"quant_method": "wordpiece_bert_int8", "group_size": GROUP}

#: What the names of the scales, factors and columns of a weight in a file end with, after the name of the weight.
_SCALES, _FACTORS, _COLUMNS = _PARTS = ".int8_scales", ".int8_factors", ".int8_columns"

#: Factors are rounded to these steps of a power of 2, so that they do not depend on the last bits of the observations.
_STEPS = 8

#: An input is not quantized if its greatest magnitude is more than so many times the median one, with their factors;
#: of a layer at most so many.
_LARGE, _MOST_LARGE = 2.0, 2


class Int8Weight(NamedTuple):
    """A weight [N, K] as int8 numbers: number i, j is ``values[i, j] * scales[i, j // 64] * factors[j]``.

    The columns whose factor is 0 are in `columns` instead, in order.
    """

    values: npt.NDArray[np.int8]  # [N, K], from −127 to 127
    scales: Array  # [N, ⌈K/64⌉]
    columns: Array  # [N, n] for n factors that are 0
    factors: Array  # [K]

    @property
    def shape(self) -> tuple[int, ...]:
        """[N, K]."""
        return self.values.shape

    @property
    def ndim(self) -> int:
        """2."""
        return 2

    @property
    def size(self) -> int:
        """N·K."""
        return self.values.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """int8."""
        return self.values.dtype

    @property
    def nbytes(self) -> int:
        """Size of all arrays in bytes."""
        return self.values.nbytes + self.scales.nbytes + self.columns.nbytes + self.factors.nbytes

    def rows(self, part: slice | npt.NDArray[np.integer[Any]]) -> Array:
        """Return some rows as float32, [n, K]."""
        columns = self.values.shape[1]
        scales = np.repeat(self.scales[part], GROUP, axis=-1)[..., :columns]
        found = np.asarray(self.values[part] * scales * self.factors, dtype=np.float32)
        found[..., self.factors == 0] = self.columns[part]
        return found

    def unpack(self) -> Int8Weight:
        """Return it, as other weights that an engine stores."""
        return self

    def widen(self) -> Array:
        """Return the weight as float32, [N, K]."""
        return self.rows(slice(None))


class StoredInt8Weight(Stored):
    """An int8 weight whose numbers, scales, columns and factors are still in a file.

    Parameters
    ----------
    name, file
        Its name in the file, for messages.
    parts
        Numbers, scales, columns and factors, as `wordpiece_bert.bert.stored_tensor.StoredTensor`; the columns may be an
        array.
    """

    ndim = 2
    dtype: np.dtype[Any] = np.dtype(np.int8)

    def __init__(self, name: str, file: str, parts: tuple[Any, Any, Any, Any]) -> None:
        self._name, self._file, self.parts = name, file, parts
        _check_shapes(name, parts, file)
        #: [N, K].
        self.shape: tuple[int, ...] = parts[0].shape

    @property
    def size(self) -> int:
        """N·K."""
        return self.shape[0] * self.shape[1]

    @property
    def nbytes(self) -> int:
        """Size of all arrays in bytes."""
        return sum(part.nbytes for part in self.parts)

    def read(self, scratch: Scratch | None = None) -> Int8Weight:
        """Read it into new arrays, or into scratch memory.

        Raises
        ------
        CheckpointError
            As `joined_tensors`, or as `StoredTensor.read`.
        """
        parts = (loaded(part, scratch) for part in self.parts)
        return _checked(self._name, Int8Weight(*parts), self._file)


def equal_weights(a: Any, b: Any) -> bool:
    """Return whether two weights have equal numbers; an int8 weight equals only one with the same parts."""
    parts = [w.parts if isinstance(w, StoredInt8Weight) else w if isinstance(w, Int8Weight) else (w,) for w in (a, b)]
    return len(parts[0]) == len(parts[1]) and all(map(equal, *parts))


def input_factors(
    rows: int, squares: npt.NDArray[np.float64], greatest: npt.NDArray[np.float32], weights: Sequence[Array]
) -> Array:
    """Return what the inputs of dense layers are multiplied by before they are quantized, [K].

    Parameters
    ----------
    rows
        How many rows of inputs were observed.
    squares
        The sum of the squares of each input over these rows, [K].
    greatest
        The greatest magnitude of each input in these rows, [K].
    weights
        The weights of the layers with this input, [N, K] each.

    Returns
    -------
    array
        √(r(Wⱼ) / r(Xⱼ)) with r the root of the mean square, rounded to eighths of a power of 2; float32. 0 for up to
        two inputs that should not be quantized: their greatest magnitude, with these factors, is more than twice the
        median one.
    """
    of_weights = sum(np.einsum("nk,nk->k", w, w, dtype=np.float64) for w in weights)
    mean = of_weights / sum(len(w) for w in weights)
    tiny = 1e-10  # a weight that is always 0 takes no digits, whatever its factor
    seen = squares / max(rows, 1)
    # An input that was 0 in all rows, as after a ReLU, may be large in another one. With the factor of a tiny input it
    # would then take all digits of its group.
    seen = np.where(seen == 0, seen.mean() if len(seen) else 0, seen)
    ratio = np.maximum(mean, tiny) / np.maximum(seen, tiny)
    steps = np.rint(np.log2(ratio) * (_STEPS / 4)).astype(np.int64)  # log₂ of the fourth root of the ratio, in steps
    exponents, eighths = np.divmod(steps, _STEPS)
    factors = np.ldexp((2.0 ** (np.arange(_STEPS) / _STEPS))[eighths], exponents).astype(np.float32)
    scaled = greatest * factors
    largest = np.argsort(-scaled, kind="stable")[:_MOST_LARGE]
    if np.isfinite(scaled).all():
        factors[largest[scaled[largest] > _LARGE * np.median(scaled)]] = 0
    return factors


def split_tensors(weights: Mapping[str, npt.NDArray[Any] | Int8Weight]) -> dict[str, npt.NDArray[Any]]:
    """Return weights as the tensors of a file: of an int8 weight the numbers, scales, factors and columns, if any."""
    tensors: dict[str, npt.NDArray[Any]] = {}
    for name, weight in weights.items():
        if isinstance(weight, Int8Weight):
            tensors |= {name: weight.values, name + _SCALES: weight.scales, name + _FACTORS: weight.factors}
            if weight.columns.size:
                tensors[name + _COLUMNS] = weight.columns
        else:
            tensors[name] = weight
    return tensors


def joined_tensors(tensors: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Reverse `split_tensors`: return the tensors of a file, the tensors of an int8 weight as one.

    It is an `Int8Weight`, or a `StoredInt8Weight` if its numbers are still in the file; then they are checked when they
    are read.

    Raises
    ------
    CheckpointError
        The numbers, scales, factors and columns of a weight do not fit together, or one is not a number, or negative
        where it may not be.
    """
    weights: dict[str, Any] = {}
    for name, tensor in tensors.items():
        suffix = next((suffix for suffix in _PARTS if name.endswith(suffix)), None)
        if suffix is not None:
            if name.removesuffix(suffix) not in tensors:
                raise CheckpointError(f"{file}: {quoted(name)} belongs to an int8 weight that the file does not have")
        elif name + _SCALES in tensors and name + _FACTORS in tensors:
            factors = tensors[name + _FACTORS]
            none = np.zeros((*tensor.shape[:1], 0), np.float32)  # a file without columns, as earlier versions wrote all
            parts = tensor, tensors[name + _SCALES], tensors.get(name + _COLUMNS, none), factors
            in_memory = all(isinstance(part, np.ndarray) for part in parts)
            weights[name] = (
                _checked(name, Int8Weight(*parts), file) if in_memory else StoredInt8Weight(name, file, parts)
            )
        else:
            weights[name] = tensor
    return weights


def _check_shapes(name: str, parts: Sequence[Any], file: str) -> None:
    """Refuse numbers, scales, columns and factors whose shapes or dtypes do not fit together."""
    values, scales, columns, factors = parts
    groups = -(-values.shape[1] // GROUP) if values.ndim == 2 else 0
    shapes = values.ndim == 2 and scales.shape == (len(values), groups) and factors.shape == (values.shape[1],)
    shapes = shapes and columns.ndim == 2 and len(columns) == len(values)
    if not shapes or values.dtype != np.int8 or any(part.dtype != np.float32 for part in parts[1:]):
        found = ", ".join(f"{part.dtype} {list(part.shape)}" for part in parts)
        raise CheckpointError(f"{file}: {quoted(name)} is not an int8 weight with scales, columns and factors: {found}")


def _checked(name: str, weight: Int8Weight, file: str) -> Int8Weight:
    _check_shapes(name, weight, file)
    values, scales, columns, factors = weight
    if not (all(np.isfinite(part).all() for part in weight[1:]) and (scales >= 0).all() and (factors >= 0).all()):
        raise CheckpointError(f"{file}: scales, columns or factors of {quoted(name)} are NaN, infinite or negative")
    zeros = int((factors == 0).sum())
    if columns.shape[1] != zeros:
        raise CheckpointError(
            f"{file}: {quoted(name)} has {zeros} factors that are 0, but {columns.shape[1]} columns of float32 weights"
        )
    if values.size and values.min() == -128:
        raise CheckpointError(f"{file}: {quoted(name)} has the number -128; int8 weights are from -127 to 127")
    return weight
