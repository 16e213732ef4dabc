"""An encoded block as a table: the columns that files of every format have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.batch import RaggedBatch

__all__ = ["ID_DTYPES", "TOKEN_COLUMNS", "Table", "id_dtype"]

ID_DTYPES = ("uint16", "uint32", "int32", "int64")

#: Columns with one entry a token; the others have one a row.
TOKEN_COLUMNS = ("ids", "offsets", "word_ids", "sequence_ids")


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a block.

    Attributes
    ----------
    row_offsets
        Where each row begins in the columns that have one entry a token, int64 [rows + 1].
    columns
        By name: ``ids`` [n], ``offsets`` int64 [n, 2], ``word_ids`` and ``sequence_ids`` int32 [n], -1 for none; and of
        each row ``truncated`` (bool, whether its text was cut), ``n_tokens`` and ``overflow_to_sample`` (int64).
    """

    row_offsets: npt.NDArray[np.int64]
    columns: dict[str, npt.NDArray[Any]]

    def __len__(self) -> int:
        return len(self.row_offsets) - 1

    @classmethod
    def of(cls, batch: RaggedBatch, *, dtype: np.dtype[Any], first_text: int, truncated: bool) -> Table:
        """Make the table of a batch.

        Parameters
        ----------
        batch
            The batch.
        dtype
            Of the ids.
        first_text
            How many texts come before those of the batch.
        truncated
            With the column of that name.

        Raises
        ------
        InputError
            `dtype` does not hold an id.
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


def id_dtype(asked: npt.DTypeLike, vocabulary: int) -> np.dtype[Any]:
    """Check the number type of ids, and that it holds those of a vocabulary of that size."""
    try:
        dtype = np.dtype(asked)
    except TypeError:
        dtype = np.dtype(object)
    if dtype not in [np.dtype(name) for name in ID_DTYPES]:
        message = f"dtype must be one of {', '.join(map(repr, ID_DTYPES))}, not {asked!r}"
        raise InputError(message)
    if vocabulary - 1 > np.iinfo(dtype).max:
        message = (
            f"{dtype} holds ids up to {np.iinfo(dtype).max:,}, and the vocabulary has {vocabulary:,}: use 'uint32'"
        )
        raise InputError(message)
    return dtype


def _cast(ids: npt.NDArray[np.uint32], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    # A vocabulary may have gaps, and templates any id, so its size does not settle it.
    if dtype.itemsize <= ids.itemsize and dtype != ids.dtype and ids.size and ids.max() > np.iinfo(dtype).max:
        message = f"{dtype} does not hold the id {ids.max()}: use 'uint32'"
        raise InputError(message)
    return ids.astype(dtype, copy=False)
