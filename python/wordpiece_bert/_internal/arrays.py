"""Arrays of numbers as arguments: whatever `numpy.asarray` reads, or an `InputError` that says what to pass."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.mapped_files import require_whole
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt


#: What is shown of a message of NumPy or torch.
_CHARACTERS = 160


def as_numbers(name: str, value: object, what: str = "an array of numbers") -> npt.NDArray[Any]:
    """Return an argument as an array of real numbers, in its own dtype and without a copy where it is one.

    A column of arrays of one length, an array of objects as pandas has it, becomes an array of numbers.

    Parameters
    ----------
    name : str
        The name of the argument, for messages.
    value : array_like
        The argument.
    what : str, default "an array of numbers"
        What it must be, as the message says it: ``"vectors [n, d]"``.

    Raises
    ------
    InputError
        It is no such array: it is ragged, has strings, None, complex numbers or masked values, is sparse, or is a
        tensor of torch that NumPy cannot read; or it is mapped from a file that was shortened.
    """
    if hasattr(value, "toarray"):
        raise InputError(f"{name} must be {what}, not sparse ({type(value).__name__}): {name}.toarray() is dense")
    refuse_masked(name, value, what)
    try:
        array = np.asarray(value)
        if array.dtype == object:
            array = np.asarray(array.tolist())
    except (TypeError, ValueError, RuntimeError, OverflowError) as cause:
        raise InputError(f"{name} must be {what}: {str(cause)[:_CHARACTERS]}{_advice(value)}") from cause
    if array.dtype.kind not in "fiub":
        kind = type(value).__name__ if array.ndim == 0 else f"an array of {array.dtype}"
        raise InputError(f"{name} must be {what}, not {kind}")
    require_whole(array)
    return array


def refuse_masked(name: str, value: object, what: str) -> None:
    """Refuse an array with masked values, which NumPy would convert to what is below the mask."""
    if isinstance(value, np.ndarray) and np.any(getattr(value, "mask", False)):
        raise InputError(f"{name} must be {what}, not an array with masked values: {name}.filled(0) replaces them")


def as_float32(name: str, array: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return an array of numbers as float32, aligned; without a copy if it is so.

    Raises
    ------
    InputError
        A finite number is beyond the range of float32.
    """
    try:
        with np.errstate(over="raise"):
            return np.require(array, np.float32, "A")
    except FloatingPointError as cause:
        raise InputError(f"{name} has numbers beyond the range of float32, ±3.4e38") from cause


def as_vectors(name: str, value: object) -> npt.NDArray[Any]:
    """Return vectors [n, d], or one [d], as an array [n, d] of its own dtype.

    Parameters
    ----------
    name : str
        The name of the argument, for messages.
    value : array_like
        The argument.

    Raises
    ------
    InputError
        It is not an array of numbers, or has another number of dimensions.
    """
    what = "vectors [n, d] or one vector [d]"
    array = as_numbers(name, value, what)
    if array.ndim not in (1, 2):
        tokens = ": maxsim compares the token vectors of texts" * (array.ndim == 3)
        raise InputError(f"{name} must be {what}, not of shape {list(array.shape)}{tokens}")
    return np.atleast_2d(array)


def first_non_finite(vectors: npt.NDArray[Any]) -> tuple[int, int] | None:
    """Return the row and the column of the first number of vectors [n, d] that is NaN or infinite; None without one."""
    with np.errstate(over="ignore", invalid="ignore"):
        if vectors.dtype == np.float32 and vectors.flags.c_contiguous and math.isfinite(np.vdot(vectors, vectors)):
            return None  # the fastest pass over the numbers
        # By the sums of rows, which need no flag for each number. A sum may be infinite where no number is.
        suspects = np.flatnonzero(~np.isfinite(vectors.sum(axis=1)))
    for row in suspects.tolist():
        columns = np.flatnonzero(~np.isfinite(vectors[row]))
        if len(columns):
            return row, int(columns[0])
    return None


def check_finite(name: str, vectors: npt.NDArray[Any]) -> None:
    """Refuse vectors [n, d] with a number that is NaN or infinite; the message names the row."""
    bad = first_non_finite(vectors)
    if bad is not None:
        raise InputError(f"{name}[{bad[0]}] is not finite: it has {vectors[bad]} at index {bad[1]}")


def as_whole_numbers(name: str, value: object) -> npt.NDArray[np.int64]:
    """Return whole numbers as int64, aligned; an `InputError` for others."""
    array = as_numbers(name, value, "an array of whole numbers")
    with np.errstate(invalid="ignore"):  # NaN and infinity, which are refused below
        whole = np.require(array, np.int64, "A")
    if array.dtype.kind not in "iub" and not np.array_equal(array, whole):
        raise InputError(f"{name} must be an array of whole numbers, not of {array.dtype}")
    return whole


def _advice(value: object) -> str:
    """Return what to do with a tensor of torch that NumPy cannot read, or a list of such tensors."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    if type(value).__module__.partition(".")[0] != "torch":
        return ""
    dense = "" if str(getattr(value, "layout", "torch.strided")) == "torch.strided" else ".to_dense()"
    return f" (pass tensor.detach().cpu(){dense}.float())"
