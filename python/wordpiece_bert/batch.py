"""The results of encoding a batch: `RaggedBatch`, flat arrays, and `BatchEncoding`, model inputs by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from wordpiece_bert import _core
from wordpiece_bert.arrow import ArrowTable
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["BatchEncoding", "RaggedBatch"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RaggedBatch:
    """Rows of different lengths, stored one after the other in flat arrays.

    ``batch[i]`` is the ids of row *i*, ``ids[row_offsets[i]:row_offsets[i + 1]]``; the other arrays with one entry per
    token are sliced in the same way. Rows are in the order of the texts; with overflow, each text is followed by its
    further windows. The arrays are the memory that the tokenizer wrote to: nothing is copied.

    Examples
    --------
    >>> import wordpiece_bert as wb
    >>> tokenizer = wb.Tokenizer.from_vocab(["[UNK]", "a", "cat", "##s"])
    >>> batch = tokenizer.encode_batch(["a cat", "cats"])
    >>> batch.ids, batch.row_offsets
    (array([1, 2, 2, 3], dtype=uint32), array([0, 2, 4]))
    >>> batch[1]
    array([2, 3], dtype=uint32)
    """

    #: Ids of all rows, uint32 [n].
    ids: npt.NDArray[np.uint32]
    #: Index in `ids` at which each row begins, followed by the end of the last row, int64 [rows + 1].
    row_offsets: npt.NDArray[np.int64]
    #: Whether each text was truncated, bool [texts].
    truncated: npt.NDArray[np.bool_]
    #: Start and end of each token in its text, in units of ``offset_unit``, int64 [n, 2]; None unless
    #: ``return_offsets``.
    offsets: npt.NDArray[np.int64] | None = None
    #: Index of each token's word in its text, −1 for none, int32 [n]; None unless ``return_word_ids``.
    word_ids: npt.NDArray[np.int32] | None = None
    #: Which text of a pair each token is from, 0 or 1, and −1 for special tokens and padding, int32 [n]; None unless
    #: ``return_sequence_ids``.
    sequence_ids: npt.NDArray[np.int32] | None = None
    #: Index of the text that each row comes from, int64 [rows]; None unless ``return_overflowing_tokens``.
    overflow_to_sample: npt.NDArray[np.int64] | None = None
    #: Number of tokens of each text before truncation and padding, special tokens included, int64 [texts]; None unless
    #: ``return_n_tokens``.
    n_tokens: npt.NDArray[np.int64] | None = None

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The number of tokens of each row, int64 [rows]."""
        return np.diff(self.row_offsets)

    def __len__(self) -> int:
        return len(self.row_offsets) - 1

    def __getitem__(self, row: int) -> npt.NDArray[np.uint32]:
        """Return the ids of a row as a view, uint32 [length]. Negative indices count from the end."""
        rows = len(self)
        if not -rows <= row < rows:
            message = f"row {row} is out of range for a batch of {rows} rows"
            raise IndexError(message)
        row %= rows
        return self.ids[self.row_offsets[row] : self.row_offsets[row + 1]]

    def __iter__(self) -> Iterator[npt.NDArray[np.uint32]]:
        ends = self.row_offsets.tolist()
        return (self.ids[start:end] for start, end in pairwise(ends))

    def __repr__(self) -> str:
        optional = ("offsets", "word_ids", "sequence_ids", "overflow_to_sample", "n_tokens")
        more = "".join(f", {name}" for name in optional if getattr(self, name) is not None)
        return (
            f"RaggedBatch({len(self)} rows, {len(self.ids)} tokens, {int(self.truncated.sum())} texts truncated{more})"
        )

    def to_list(self) -> list[list[int]]:
        """Return the ids as a list of lists."""
        return _rows(self.ids, self.row_offsets)

    def __arrow_c_schema__(self) -> object:
        return _core._arrow_schema([("ids", self.ids)], self.row_offsets, single=True)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Export the ids without a copy, as large_list<uint32>; `requested_schema` is ignored."""
        return _core._arrow_array([("ids", self.ids)], self.row_offsets, single=True)

    def to_arrow(self) -> pyarrow.LargeListArray:
        """Return the ids as a pyarrow array, large_list<uint32> [rows], without a copy.

        Other libraries accept the batch itself: ``polars.Series(batch)``.

        Returns
        -------
        pyarrow.LargeListArray
            One list for each row.

        Raises
        ------
        InputError
            pyarrow is not installed.
        """
        try:
            import pyarrow
        except ImportError as cause:
            message = "to_arrow needs pyarrow: pip install 'wordpiece-bert[arrow]'"
            raise InputError(message) from cause
        return pyarrow.array(self)

    def to_arrow_table(self) -> ArrowTable:
        """Return the batch as a table for Arrow libraries. It needs no such library itself.

        Returns
        -------
        ArrowTable
            The columns ``ids``, large_list<uint32>; if requested ``offsets``,
            large_list<fixed_size_list<int64>[2]>, ``word_ids`` and ``sequence_ids``, large_list<int32> with null for
            none, ``overflow_to_sample`` and ``n_tokens``, int64; and ``truncated``, bool. Values of a text are repeated
            for each of its rows. Lists and int64 columns share the memory of the batch, except for ``n_tokens`` if
            windows are rows.
        """
        per_row = {"n_tokens": self.n_tokens, "truncated": self.truncated}
        if self.overflow_to_sample is not None:
            per_row = {name: None if a is None else a[self.overflow_to_sample] for name, a in per_row.items()}
        columns = {
            "ids": self.ids,
            "offsets": self.offsets,
            "word_ids": self.word_ids,
            "sequence_ids": self.sequence_ids,
            "overflow_to_sample": self.overflow_to_sample,
            **per_row,
        }
        return ArrowTable({name: array for name, array in columns.items() if array is not None}, self.row_offsets)


class BatchEncoding(Mapping[str, Any]):
    """Model inputs by name, as in transformers: ``model(**inputs)``.

    A value is ``inputs["input_ids"]`` or ``inputs.input_ids``: a C-contiguous array [rows, length] (``offset_mapping``
    [rows, length, 2]; ``length`` and ``overflow_to_sample_mapping`` [rows]), or a list with ``return_tensors=None``.

    Attributes
    ----------
    truncated : ndarray of bool
        Whether the text of each row was truncated, [rows].
    """

    __slots__ = ("_data", "truncated")

    truncated: npt.NDArray[np.bool_]

    def __init__(self, data: Mapping[str, Any], truncated: npt.NDArray[np.bool_]) -> None:
        self._data = dict(data)
        self.truncated = truncated

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401
        return self._data[name]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name.startswith("_"):  # during unpickling _data does not exist yet
            raise AttributeError(name)
        try:
            return self._data[name]
        except KeyError:
            message = f"no {name!r} in this BatchEncoding, which has {', '.join(self._data)}"
            raise AttributeError(message) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        return f"BatchEncoding({self._data!r})"


def model_inputs(rows: _core.Rows, *, dtype: np.dtype[Any] | None, single: bool, return_length: bool) -> BatchEncoding:
    """Return rows under the names and in the shapes of transformers.

    Parameters
    ----------
    rows : _core.Rows
        The encoded rows.
    dtype : numpy.dtype or None
        int32 or int64 for arrays of that type; None for lists.
    single : bool
        The input was one text, not a batch: lists are then those of its row, unless windows are rows.
    return_length : bool
        Include the length of each row, padding included.

    Raises
    ------
    InputError
        Arrays are requested and the rows differ in length, or a value does not fit int32.
    """
    per_token = {
        "input_ids": rows.ids,
        "token_type_ids": rows.type_ids,
        "attention_mask": rows.attention_mask,
        "special_tokens_mask": rows.special_tokens_mask,
        "offset_mapping": rows.offsets,
    }
    per_row = {
        "length": np.diff(rows.row_offsets) if return_length else None,
        "overflow_to_sample_mapping": rows.overflow_to_sample,
    }
    truncated = rows.truncated if rows.overflow_to_sample is None else rows.truncated[rows.overflow_to_sample]
    data: dict[str, Any] = {}
    if dtype is None:
        for name, flat in per_token.items():
            if flat is not None:
                listed = _rows(flat, rows.row_offsets)
                data[name] = listed[0] if single and rows.overflow_to_sample is None else listed
        data |= {name: array.tolist() for name, array in per_row.items() if array is not None}
        return BatchEncoding(data, truncated)
    shape = rows.shape
    if shape is None:
        lengths = np.diff(rows.row_offsets)
        message = (
            f"rows of {lengths.min()} to {lengths.max()} tokens do not form an array: pass padding=True (and "
            "truncation=True if padding='max_length' leaves longer rows), or return_tensors=None for lists"
        )
        raise InputError(message)
    for name, flat in per_token.items():
        if flat is not None:
            data[name] = _cast(name, flat, dtype).reshape(*shape, *flat.shape[1:])
    data |= {name: _cast(name, array, dtype) for name, array in per_row.items() if array is not None}
    return BatchEncoding(data, truncated)


def _cast(name: str, array: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if array.dtype == dtype:
        return array
    if dtype == np.int32 and array.size and array.max() > np.iinfo(np.int32).max:
        message = f"{name} has {array.max()}, which does not fit int32: use dtype='int64'"
        raise InputError(message)
    return array.astype(dtype, copy=False)


def _rows(flat: npt.NDArray[Any], row_offsets: npt.NDArray[np.int64]) -> list[list[Any]]:
    """Split a flat array [n] or [n, 2] into one list per row; pairs become tuples."""
    values = flat.tolist()
    if flat.ndim == 2:
        values = list(map(tuple, values))
    ends = row_offsets.tolist()
    return [values[start:end] for start, end in pairwise(ends)]
