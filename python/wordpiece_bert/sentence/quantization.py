"""Sentence vectors with 8 bits or 1 bit for each number, in the formats of sentence-transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.arrays import as_float32, as_numbers
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["PRECISIONS", "check_precision", "quantize_embeddings"]

PRECISIONS = ("float32", "int8", "uint8", "binary", "ubinary")


def quantize_embeddings(
    embeddings: npt.ArrayLike,
    precision: str,
    ranges: npt.ArrayLike | None = None,
    calibration_embeddings: npt.ArrayLike | None = None,
) -> npt.NDArray[Any]:
    """Quantize vectors to 8 bits or 1 bit for each number.

    Parameters
    ----------
    embeddings : array_like
        Vectors, floats [n, d].
    precision : str
        ``"uint8"``, ``"int8"``: 256 steps between the lowest and the highest value of each dimension; int8 is uint8
        − 128. ``"ubinary"``: one bit for each number, 1 if it is above 0, the first dimension in the highest bit of a
        byte, padded with 0 to entire bytes; ``"binary"``: the same bytes − 128. ``"float32"``: not quantized.
    ranges : array_like, optional
        [2, d], the lowest and the highest value of each dimension.
    calibration_embeddings : array_like, optional
        Vectors [k, d] that determine the ranges if `ranges` is None; by default `embeddings`. Only vectors that were
        quantized with the same ranges can be compared.

    Returns
    -------
    array
        uint8 or int8 [n, d]; uint8 or int8 [n, ⌈d/8⌉] for the binary ones; float32 [n, d].

    Raises
    ------
    InputError
        An array has the wrong shape or dtype, the ranges would come from a single vector, or the precision is unknown.
    """
    check_precision(precision)
    x = _vectors("embeddings", embeddings)
    if precision == "float32":
        return x
    if precision in ("binary", "ubinary"):
        bits = np.packbits(x > 0, axis=-1)  # [n, ⌈d/8⌉]
        return bits if precision == "ubinary" else (bits - np.uint8(128)).view(np.int8)
    if len(x) == 0:
        return np.zeros(x.shape, precision)
    lowest, highest = _ranges(x, ranges, calibration_embeddings)  # [d], [d]
    step = (highest - lowest) / np.float32(255)
    step[step == 0] = 1
    q = np.clip(np.floor((x - lowest) / step), 0, 255).astype(np.uint8)
    return q if precision == "uint8" else (q - np.uint8(128)).view(np.int8)


def check_precision(precision: str) -> None:
    """Raise an `InputError` unless `precision` is one of `PRECISIONS`."""
    if precision not in PRECISIONS:
        raise InputError(f"precision must be one of {', '.join(PRECISIONS)}, not {precision!r}")


def _ranges(
    x: npt.NDArray[np.float32], ranges: npt.ArrayLike | None, calibration: npt.ArrayLike | None
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return the lowest and the highest value of each dimension, [d] each."""
    if ranges is not None:
        given = as_float32("ranges", as_numbers("ranges", ranges))
        if given.shape != (2, x.shape[1]):
            raise InputError(f"ranges must have shape [2, {x.shape[1]}], lowest and highest, not {list(given.shape)}")
        return given[0], given[1]
    sample = x if calibration is None else _vectors("calibration_embeddings", calibration)
    if sample.shape[1] != x.shape[1] or len(sample) < 2:
        raise InputError(
            f"8-bit precision needs at least 2 vectors for the ranges of the {x.shape[1]} dimensions, not an array of "
            f"shape {list(sample.shape)}: pass ranges or calibration_embeddings"
        )
    return sample.min(axis=0), sample.max(axis=0)


def _vectors(name: str, value: npt.ArrayLike) -> npt.NDArray[np.float32]:
    vectors = as_numbers(name, value, "floating-point vectors [n, d]")
    if vectors.ndim != 2 or not np.issubdtype(vectors.dtype, np.floating):
        raise InputError(
            f"{name} must be floating-point vectors [n, d], not {vectors.dtype} of shape {list(vectors.shape)}"
        )
    return as_float32(name, vectors)
