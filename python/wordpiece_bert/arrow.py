"""Columns of Arrow: what passes texts on to us, and what passes batches on to others.

All go by the PyCapsule interface, which libraries speak to each other without knowing each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from wordpiece_bert import _core

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

__all__ = ["ArrowArray", "ArrowStream", "ArrowTable"]


class ArrowArray(Protocol):
    """What passes on a column in one part: an array of pyarrow."""

    def __arrow_c_array__(self, requested_schema: Any = None, /) -> Any: ...  # noqa: ANN401


class ArrowStream(Protocol):
    """What passes on a column in many parts, or a table: a series or data frame, a query of duckdb."""

    def __arrow_c_stream__(self, requested_schema: Any = None, /) -> Any: ...  # noqa: ANN401


class ArrowTable:
    """Columns that every library reads which knows Arrow, without a copy: ``polars.DataFrame(table)``.

    The same is ``pyarrow.table(table)``, and ``SELECT … FROM table`` in duckdb. One row for each row of a batch; see
    `RaggedBatch.to_arrow_table` for the columns. No Arrow library is needed to make one.
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

    # The PyCapsule interface of Arrow. A type that is asked for is a wish that need not be fulfilled.

    def __arrow_c_schema__(self) -> object:
        return _core._arrow_schema(self._arrays, self._row_offsets, alone=False)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return _core._arrow_array(self._arrays, self._row_offsets, alone=False)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return _core._arrow_stream(self._arrays, self._row_offsets, alone=False)
