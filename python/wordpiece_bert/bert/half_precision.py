"""Weights kept in 16 bits: half the memory, the same numbers.

A checkpoint in half precision can be computed in two ways: its weights are widened to float32 when it is loaded, or
each when it is used. Widening is exact, so both give the same results; the second keeps half the memory and takes a
little more time.

NumPy has float16 but no bfloat16. Here a bfloat16 array is one of the dtype `BFLOAT16`: 16 bits that are the upper half
of a float32, in a structure with one field, so that no arithmetic is done on them by mistake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from wordpiece_bert.bert.functional import Array

__all__ = ["BFLOAT16", "is_half", "native", "to_bfloat16", "widen"]

BFLOAT16 = np.dtype([("bfloat16", "<u2")])


def is_half(dtype: np.dtype[np.generic]) -> bool:
    """Tell whether numbers of this dtype are floats of 16 bits."""
    return dtype == BFLOAT16 or (dtype.kind == "f" and dtype.itemsize == 2)


def widen(x: npt.NDArray[np.generic]) -> Array:
    """Floats of any width -> float32, exactly if they have 16 bits; float32 is not copied."""
    if x.dtype == BFLOAT16:
        bits = x["bfloat16"].astype(np.uint32)  # type: ignore[call-overload]
        bits <<= np.uint32(16)
        return np.asarray(bits.view(np.float32))
    return x.astype(np.float32, copy=False)


def to_bfloat16(x: Array) -> npt.NDArray[np.void]:
    """float32 -> `BFLOAT16`, to the nearest, ties to even; NaN stays NaN."""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    rounded = np.where(np.isnan(x), np.uint32(0x7FC0), rounded)
    return rounded.astype("<u2").view(BFLOAT16)


def native(stored: npt.NDArray[np.generic], *, keep_half: bool) -> npt.NDArray[np.generic]:
    """Bring an array as a file stores it into the form to compute with; a view where that is possible.

    Floats become float32, but for 16-bit ones where `keep_half` says so; integers and booleans stay what they are. The
    result is aligned and in the byte order of this machine.
    """
    if is_half(stored.dtype) and keep_half:
        return np.require(stored, dtype=BFLOAT16 if stored.dtype == BFLOAT16 else np.float16, requirements="A")
    if is_half(stored.dtype) or stored.dtype.kind == "f":
        return np.require(widen(stored), requirements="A")
    return np.require(stored, dtype=stored.dtype.newbyteorder("="), requirements="A")
