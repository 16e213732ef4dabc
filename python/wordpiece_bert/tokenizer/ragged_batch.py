"""`RaggedBatch`: the rows of a batch as flat arrays."""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, overload

from wordpiece_bert import _core
from wordpiece_bert._internal.lazy import numpy as np
from wordpiece_bert._internal.notebook import rows_html
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.arrow_table import ArrowTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    import pyarrow


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RaggedBatch:
    """Rows of different lengths, stored one after the other in flat arrays.

    ``batch[i]`` is the ids of row *i*, ``ids[row_offsets[i]:row_offsets[i + 1]]``; the other arrays with one entry per
    token are sliced in the same way. ``batch[i:j]`` is a batch of these rows. Rows are in the order of the texts; with
    overflow, each text is followed by its further windows. An array of more than 4 KiB is the memory that the tokenizer
    wrote to, not a copy.

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
        return self.row_offsets[1:] - self.row_offsets[:-1]  # a sixth of the time of np.diff for one row

    def __len__(self) -> int:
        return len(self.row_offsets) - 1

    @overload
    def __getitem__(self, row: int) -> npt.NDArray[np.uint32]: ...

    @overload
    def __getitem__(self, row: slice) -> RaggedBatch: ...

    def __getitem__(self, row: int | slice) -> npt.NDArray[np.uint32] | RaggedBatch:
        """Return the ids of a row as a view, uint32 [length], or a batch of the rows of a slice.

        Negative indices count from the end. The batch of a slice with step 1 has views of this batch's arrays, except
        for ``row_offsets``; with another step, copies.

        Raises
        ------
        IndexError
            There is no such row.
        """
        if isinstance(row, slice):
            return self._slice(range(*row.indices(len(self))))
        rows = len(self)
        row = operator.index(row)
        if not -rows <= row < rows:
            raise IndexError(f"index {row} is out of range for a batch of {rows} rows")
        row %= rows
        return self.ids[self.row_offsets[row] : self.row_offsets[row + 1]]

    def _slice(self, rows: range) -> RaggedBatch:
        """Return a batch of some rows. With overflow, the arrays with one entry per text keep all texts."""
        per_row: slice | npt.NDArray[np.intp]
        per_token: slice | npt.NDArray[np.int64]
        if rows.step == 1:
            stop = max(rows.stop, rows.start)
            per_row = slice(rows.start, stop)
            row_offsets = self.row_offsets[rows.start : stop + 1] - self.row_offsets[rows.start]
            per_token = slice(int(self.row_offsets[rows.start]), int(self.row_offsets[stop]))
        else:
            per_row = np.array(rows, np.intp)
            lengths = self.lengths[per_row]
            row_offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
            within_row = np.arange(row_offsets[-1]) - np.repeat(row_offsets[:-1], lengths)
            per_token = np.repeat(self.row_offsets[per_row], lengths) + within_row
        texts = per_row if self.overflow_to_sample is None else slice(None)
        return replace(
            self,
            ids=self.ids[per_token],
            row_offsets=row_offsets,
            truncated=self.truncated[texts],
            offsets=None if self.offsets is None else self.offsets[per_token],
            word_ids=None if self.word_ids is None else self.word_ids[per_token],
            sequence_ids=None if self.sequence_ids is None else self.sequence_ids[per_token],
            overflow_to_sample=None if self.overflow_to_sample is None else self.overflow_to_sample[per_row],
            n_tokens=None if self.n_tokens is None else self.n_tokens[texts],
        )

    def __iter__(self) -> Iterator[npt.NDArray[np.uint32]]:
        ends = self.row_offsets.tolist()
        return (self.ids[start:end] for start, end in pairwise(ends))

    def __repr__(self) -> str:
        optional = ("offsets", "word_ids", "sequence_ids", "overflow_to_sample", "n_tokens")
        more = "".join(f", {name}" for name in optional if getattr(self, name) is not None)
        return (
            f"RaggedBatch({len(self)} rows, {len(self.ids)} tokens, {int(self.truncated.sum())} texts truncated{more})"
        )

    def _repr_html_(self) -> str:
        return rows_html(repr(self), self.ids, self.row_offsets)

    def to_list(self) -> list[list[int]]:
        """Return the ids as a list of lists.

        Returns
        -------
        list of list of int
            A list for each row.

        Examples
        --------
        >>> import wordpiece_bert as wb
        >>> tokenizer = wb.Tokenizer.from_vocab(["[UNK]", "a", "cat", "##s"])
        >>> batch = tokenizer.encode_batch(["a cat", "cats"])
        >>> batch.to_list()
        [[1, 2], [2, 3]]
        """
        return list_rows(self.ids, self.row_offsets)

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

        Examples
        --------
        >>> import wordpiece_bert as wb
        >>> tokenizer = wb.Tokenizer.from_vocab(["[UNK]", "a", "cat", "##s"])
        >>> batch = tokenizer.encode_batch(["a cat", "cats"])
        >>> batch.to_arrow().type
        LargeListType(large_list<item: uint32>)
        """
        try:
            import pyarrow
        except ImportError as cause:
            raise InputError("to_arrow needs pyarrow: pip install 'wordpiece-bert[arrow]'") from cause
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

        Examples
        --------
        >>> import wordpiece_bert as wb
        >>> tokenizer = wb.Tokenizer.from_vocab(["[UNK]", "a", "cat", "##s"])
        >>> batch = tokenizer.encode_batch(["a cat", "cats"], return_offsets=True)
        >>> batch.to_arrow_table()
        ArrowTable(2 rows: ids, offsets, truncated)
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


def ragged(rows: _core.Rows) -> RaggedBatch:
    """Return rows of the extension as a batch, without a copy."""
    # `__init__` of a frozen dataclass would add a quarter to the time of encoding one text.
    batch = object.__new__(RaggedBatch)
    rows.fill(batch)
    return batch


def list_rows(flat: npt.NDArray[Any], row_offsets: npt.NDArray[np.int64]) -> list[list[Any]]:
    """Split a flat array [n] or [n, 2] into one list per row; pairs become tuples."""
    values = flat.tolist()
    if flat.ndim == 2:
        values = list(map(tuple, values))
    ends = row_offsets.tolist()
    return [values[start:end] for start, end in pairwise(ends)]
