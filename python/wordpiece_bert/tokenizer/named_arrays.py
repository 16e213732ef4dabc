"""Rows under the names and in the shapes of transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.checks import checked_flag
from wordpiece_bert._internal.lazy import numpy as np
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.batch_encoding import BatchEncoding
from wordpiece_bert.tokenizer.ragged_batch import list_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from wordpiece_bert import _core
    from wordpiece_bert._core import Encoding


def named_arrays(
    rows: _core.Rows,
    *,
    dtype: np.dtype[Any] | None,
    single: bool,
    return_length: bool,
    encode: Callable[[], list[Encoding]],
) -> BatchEncoding:
    """Return rows under the names and in the shapes of transformers.

    Parameters
    ----------
    rows : _core.Rows
        The encoded rows; for arrays of int64 with wide columns.
    dtype : numpy.dtype or None
        int32 or int64 for arrays of that type; None for lists.
    single : bool
        The input was one text, not a batch: lists are then its row's, unless windows are rows.
    return_length : bool
        Include the length of each row, padding included.
    encode : callable
        Computes the encodings of the rows.

    Raises
    ------
    InputError
        Arrays are requested and the rows differ in length, or a value does not fit int32.
    """
    per_row = {}
    if return_length and checked_flag("return_length", return_length):
        per_row["length"] = np.diff(rows.row_offsets)
    truncated, samples = rows.truncated, rows.overflow_to_sample
    if samples is not None:
        per_row["overflow_to_sample_mapping"] = samples
        truncated = truncated[samples]
    data: dict[str, Any] = rows.model_inputs()
    if dtype is None:
        for name, flat in data.items():
            listed = list_rows(flat, rows.row_offsets)
            data[name] = listed[0] if single and samples is None else listed
        data |= {name: array.tolist() for name, array in per_row.items()}
        return BatchEncoding(data, truncated, _encode=encode)
    shape = rows.shape
    if shape is None:
        lengths = np.diff(rows.row_offsets)
        raise InputError(
            f"rows of {lengths.min()} to {lengths.max()} tokens do not form an array: pass padding=True (and "
            "truncation=True if padding='max_length' leaves longer rows), or return_tensors=None for lists"
        )
    for name, array in data.items():
        # Without a call where nothing is to be done: one text takes a few microseconds in all.
        if array.dtype is not dtype:
            cast = _cast(name, array, dtype)
            data[name] = cast.reshape((*shape, 2) if name == "offset_mapping" else shape)
    for name, array in per_row.items():
        data[name] = _cast(name, array, dtype)
    return BatchEncoding(data, truncated, _encode=encode)


def _cast(name: str, array: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if array.dtype == dtype:
        return array
    if dtype == np.int32 and array.size and array.max() > np.iinfo(np.int32).max:
        raise InputError(f"{name} has {array.max()}, which does not fit int32: use dtype='int64'")
    return array.astype(dtype, copy=False)
