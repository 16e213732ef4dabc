"""An encoded block as a table, with the same columns for every file format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.file_formats import ID_DTYPES

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch

#: Columns with one entry per token; the others have one per row.
TOKEN_COLUMNS = ("ids", "offsets", "word_ids", "sequence_ids")


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a block.

    Attributes
    ----------
    row_offsets : ndarray of int64
        The index at which each row begins in columns with one entry per token, and the end of the last, [rows + 1].
    columns : dict of str to ndarray
        Per token ``ids`` [n], ``offsets`` int64 [n, 2], ``word_ids`` and ``sequence_ids`` int32 [n], -1 for none. Per
        row ``truncated`` (bool, whether its text was truncated), ``n_tokens`` and ``overflow_to_sample`` (int64).
    """

    row_offsets: npt.NDArray[np.int64]
    columns: dict[str, npt.NDArray[Any]]

    def __len__(self) -> int:
        return len(self.row_offsets) - 1

    @classmethod
    def of(cls, batch: RaggedBatch, *, dtype: np.dtype[Any], first_text: int, truncated: bool) -> Table:
        """Return the table of a batch.

        Parameters
        ----------
        batch : RaggedBatch
            The rows.
        dtype : numpy.dtype
            The type of the column ``ids``.
        first_text : int
            The number of texts before the batch, which is added to ``overflow_to_sample``.
        truncated : bool
            Include the column ``truncated``.

        Raises
        ------
        InputError
            An id does not fit `dtype`.
        """
        columns: dict[str, npt.NDArray[Any]] = {"ids": _cast(batch.ids, dtype)}
        for name in TOKEN_COLUMNS[1:]:
            if getattr(batch, name) is not None:
                columns[name] = getattr(batch, name)
        texts = batch.overflow_to_sample
        if truncated:
            columns["truncated"] = batch.truncated if texts is None else batch.truncated[texts]
        if batch.n_tokens is not None:
            columns["n_tokens"] = batch.n_tokens if texts is None else batch.n_tokens[texts]
        if texts is not None:
            columns["overflow_to_sample"] = texts + first_text
        return cls(batch.row_offsets, columns)


def id_dtype(dtype_like: npt.DTypeLike, vocabulary: int) -> np.dtype[Any]:
    """Return the type for ids of a vocabulary with `vocabulary` tokens.

    Raises
    ------
    InputError
        The type is not one of `ID_DTYPES`, or is too small for the largest id.
    """
    try:
        dtype = np.dtype(dtype_like)
    except TypeError:
        dtype = np.dtype(object)
    if dtype not in [np.dtype(name) for name in ID_DTYPES]:
        raise InputError(f"dtype must be one of {', '.join(map(repr, ID_DTYPES))}, not {dtype_like!r}")
    if vocabulary - 1 > np.iinfo(dtype).max:
        raise InputError(
            f"{dtype} holds ids up to {np.iinfo(dtype).max:,}, but the vocabulary has {vocabulary:,}: use 'uint32'"
        )
    return dtype


def _cast(ids: npt.NDArray[np.uint32], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    # The size of the vocabulary is not enough: its ids may have gaps, and a template may have any id.
    if dtype.itemsize <= ids.itemsize and dtype != ids.dtype and ids.size and ids.max() > np.iinfo(dtype).max:
        raise InputError(f"the id {ids.max()} does not fit {dtype}: use 'uint32'")
    return ids.astype(dtype, copy=False)
