"""Exchange of columns with other libraries, through Arrow's PyCapsule interface.

Both directions are zero-copy: columns of texts come in from any library that implements `ArrowArray` or `ArrowStream`,
and encoded batches go out as an `ArrowTable`. Neither needs pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from wordpiece_bert import _core

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt


class ArrowArray(Protocol):
    """An object that exports one contiguous column, such as a pyarrow Array."""

    def __arrow_c_array__(self, requested_schema: Any = None, /) -> Any: ...


class ArrowStream(Protocol):
    """An object that exports a column in chunks, or a table: a series, a data frame, a DuckDB query."""

    def __arrow_c_stream__(self, requested_schema: Any = None, /) -> Any: ...


class ArrowTable:
    """An encoded batch as a table that every Arrow library can import, without a copy of what it has for each token.

    ``polars.DataFrame(table)``, ``pyarrow.table(table)`` and ``SELECT … FROM table`` in DuckDB all work. The table has
    one row for each row of the batch; `RaggedBatch.to_arrow_table` creates it and describes the columns.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        The columns.
    row_offsets : ndarray of int64
        The offsets at which rows begin, and the end of the last one, [rows + 1].

    Examples
    --------
    >>> import pyarrow
    >>> from wordpiece_bert import Tokenizer
    >>> tokenizer = Tokenizer.from_vocab(["[UNK]", "a", "cat", "##s"])
    >>> table = tokenizer.encode_batch(["a cat", "cats"]).to_arrow_table()
    >>> table
    ArrowTable(2 rows: ids, truncated)
    >>> pyarrow.table(table)["ids"].to_pylist()
    [[1, 2], [2, 3]]
    """

    __slots__ = ("_arrays", "_row_offsets")

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]], row_offsets: npt.NDArray[np.int64]) -> None:
        self._arrays = list(arrays.items())
        self._row_offsets = row_offsets

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return [name for name, _ in self._arrays]

    def __len__(self) -> int:
        return len(self._row_offsets) - 1

    def __repr__(self) -> str:
        return f"ArrowTable({len(self)} rows: {', '.join(self.column_names)})"

    # Arrow's PyCapsule interface. The specification lets a producer ignore `requested_schema`.

    def __arrow_c_schema__(self) -> object:
        return _core._arrow_schema(self._arrays, self._row_offsets, single=False)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return _core._arrow_array(self._arrays, self._row_offsets, single=False)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return _core._arrow_stream(self._arrays, self._row_offsets, single=False)
