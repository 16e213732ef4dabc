"""Sentence vectors with 8 bits or 1 bit for each number, in the formats of sentence-transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.arrays import as_float32, as_numbers, check_finite
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

PRECISIONS = ("float32", "int8", "uint8", "binary", "ubinary")


def quantize_embeddings(
    embeddings: npt.ArrayLike | Sequence[npt.ArrayLike],
    precision: str,
    ranges: npt.ArrayLike | None = None,
    calibration_embeddings: npt.ArrayLike | None = None,
) -> Any:
    """Quantize vectors to 8 bits or 1 bit for each number.

    Parameters
    ----------
    embeddings : array_like, MultiVectors, or list of array_like
        Vectors, floats [n, d] or one [d]; or the vectors of texts' tokens, an array [tokens, d] for each.
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
    array or list of array
        uint8 or int8 [n, d]; uint8 or int8 [n, ⌈d/8⌉] for the binary ones; float32 [n, d]. For token vectors a list of
        such arrays, one for each text, quantized with the same ranges; for one vector an array without n.

    Raises
    ------
    InputError
        An array has the wrong shape or dtype, a vector that is to be quantized or the ranges come from has NaN or
        infinity, a range has no width in float32 (NaN, infinite, or its highest value below the lowest), the ranges
        would come from a single vector, or the precision is unknown.

    Examples
    --------
    >>> from wordpiece_bert.sentence import quantize_embeddings
    >>> x = [[-1.0, 0.5, 0.0], [1.0, -0.5, 0.25]]
    >>> quantize_embeddings(x, "int8")
    array([[-128,  126, -128],
           [ 126, -128,  126]], dtype=int8)
    >>> quantize_embeddings(
    ...     x, "ubinary"
    ... )  # the sign of each number as a bit, from the highest on
    array([[ 64],
           [160]], dtype=uint8)
    """
    check_precision(precision)
    texts = _token_vectors(embeddings)
    if texts is not None:
        if precision != "float32":
            for i, x in enumerate(texts):
                check_finite(f"embeddings[{i}]", x)
        bounds = None
        if precision in ("int8", "uint8") and texts:
            bounds = _ranges(np.concatenate(texts), ranges, calibration_embeddings)
        return [_quantized(x, precision, bounds) for x in texts]
    array = as_numbers("embeddings", embeddings, "floating-point vectors [n, d]")
    x = _vectors("embeddings", array[None] if array.ndim == 1 else array)
    if precision != "float32":
        check_finite("embeddings", x)
    bounds = _ranges(x, ranges, calibration_embeddings) if precision in ("int8", "uint8") and len(x) else None
    found = _quantized(x, precision, bounds)
    return found[0] if array.ndim == 1 else found


def _quantized(
    x: npt.NDArray[np.float32], precision: str, bounds: tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]] | None
) -> npt.NDArray[Any]:
    """Quantize vectors [n, d]; `bounds` are the lowest and the highest value of each dimension, for 8 bits."""
    if precision == "float32":
        return x
    if precision in ("binary", "ubinary"):
        bits = np.packbits(x > 0, axis=-1)  # [n, ⌈d/8⌉]
        return bits if precision == "ubinary" else (bits - np.uint8(128)).view(np.int8)
    if bounds is None:
        return np.zeros(x.shape, precision)
    lowest, highest = bounds  # [d], [d]
    step = (highest - lowest) / np.float32(255)
    step[step == 0] = 1
    q = np.clip(np.floor((x - lowest) / step), 0, 255).astype(np.uint8)
    return q if precision == "uint8" else (q - np.uint8(128)).view(np.int8)


def check_precision(precision: str) -> None:
    """Raise an `InputError` unless `precision` is one of `PRECISIONS`."""
    if precision not in PRECISIONS:
        raise InputError(f"precision must be one of {', '.join(PRECISIONS)}, not {precision!r}")


def _token_vectors(embeddings: Any) -> list[npt.NDArray[np.float32]] | None:
    """Return the vectors of the tokens of texts, [tokens, d] each; None for an argument that is not of this kind."""
    if not isinstance(embeddings, Sequence) or isinstance(embeddings, str | bytes) or not len(embeddings):
        return None
    if getattr(embeddings[0], "ndim", 0) != 2:
        return None
    texts = [_vectors(f"embeddings[{i}]", x) for i, x in enumerate(embeddings)]
    for i, x in enumerate(texts):
        if x.shape[1] != texts[0].shape[1]:
            raise InputError(
                f"embeddings[{i}] has vectors of {x.shape[1]} numbers, embeddings[0] of {texts[0].shape[1]}: they are "
                "not from the same model"
            )
    return texts


def _ranges(
    x: npt.NDArray[np.float32], ranges: npt.ArrayLike | None, calibration: npt.ArrayLike | None
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return the lowest and the highest value of each dimension, [d] each."""
    if ranges is not None:
        lowest, highest = checked_ranges(ranges, x.shape[1])
        return lowest, highest
    sample = x
    if calibration is not None:
        sample = _vectors("calibration_embeddings", calibration)
        check_finite("calibration_embeddings", sample)
    if sample.shape[1] != x.shape[1] or len(sample) < 2:
        raise InputError(
            f"8-bit precision needs at least 2 vectors for the ranges of the {x.shape[1]} dimensions, not an array of "
            f"shape {list(sample.shape)}: pass ranges or calibration_embeddings"
        )
    return _checked_ranges("the ranges of the vectors", sample.min(axis=0), sample.max(axis=0))


def checked_ranges(ranges: npt.ArrayLike, width: int) -> npt.NDArray[np.float32]:
    """Return ranges as float32 [2, width]; an `InputError` unless their widths are finite numbers of 0 or more."""
    given = as_float32("ranges", as_numbers("ranges", ranges))
    if given.shape != (2, width):
        raise InputError(f"ranges must have shape [2, {width}], lowest and highest, not {list(given.shape)}")
    _checked_ranges("ranges", given[0], given[1])
    return given


def _checked_ranges(
    name: str, lowest: npt.NDArray[np.float32], highest: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return ranges whose widths are finite numbers of 0 or more."""
    with np.errstate(over="ignore", invalid="ignore"):
        width = highest - lowest
    if len(width) and not (width.min() >= 0 and width.max() < np.inf):  # of NaN both are NaN
        i = int(np.argmin((width >= 0) & (width < np.inf)))
        raise InputError(
            f"{name} go from {lowest[i]} to {highest[i]} in dimension {i}: the first row of ranges has the lowest "
            "values, the second the highest, and their difference must be a finite number"
        )
    return lowest, highest


def _vectors(name: str, value: npt.ArrayLike) -> npt.NDArray[np.float32]:
    vectors = as_numbers(name, value, "floating-point vectors [n, d]")
    if vectors.ndim != 2 or not np.issubdtype(vectors.dtype, np.floating):
        raise InputError(
            f"{name} must be floating-point vectors [n, d], not {vectors.dtype} of shape {list(vectors.shape)}"
        )
    return as_float32(name, vectors)
