"""Weights in 16 bits: float16 and bfloat16 arrays, and their conversion to float32.

Weights in half precision are widened to float32 when a model is made of them, which is exact; weights that an engine
rounded are, when they are used.

NumPy has float16 but no bfloat16. Here a bfloat16 array has the dtype `BFLOAT16`: 16 bits, the upper half of a float32,
in a structured dtype with one field, so that NumPy refuses arithmetic on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from wordpiece_bert.bert.functional import Array

BFLOAT16 = np.dtype([("bfloat16", "<u2")])


class Widened(Protocol):
    """Numbers in another form than an array, such as an int8 weight with its scales, that know how to become one."""

    def widen(self) -> Array:
        """Return the numbers as a float32 array."""


def is_half(dtype: np.dtype[np.generic]) -> bool:
    """Return whether a dtype is float16 or `BFLOAT16`, in either byte order."""
    return dtype == BFLOAT16 or (dtype.kind == "f" and dtype.itemsize == 2)


def widen(x: npt.NDArray[np.generic] | Widened) -> Array:
    """Convert floats of any width to float32, exactly if they have 16 bits; a float32 array is returned unchanged."""
    if not isinstance(x, np.ndarray):
        return x.widen()
    if x.dtype == BFLOAT16:
        bits = x["bfloat16"].astype(np.uint32)  # type: ignore[call-overload]
        bits <<= np.uint32(16)
        return np.asarray(bits.view(np.float32))
    return x.astype(np.float32, copy=False)


def to_bfloat16(x: Array) -> npt.NDArray[np.void]:
    """Round float32 to `BFLOAT16`, to the nearest value, ties to even; NaN remains NaN."""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    rounded = np.where(np.isnan(x), np.uint32(0x7FC0), rounded)
    return rounded.astype("<u2").view(BFLOAT16)


def native(stored: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Convert an array from a file for use in memory; without a copy where possible.

    Floats become float32; integers and booleans keep their dtype. The result is aligned and in the byte order of this
    machine.
    """
    array = np.require(stored, dtype=stored.dtype.newbyteorder("="), requirements="A")
    return widen(array) if is_half(array.dtype) or array.dtype.kind == "f" else array
