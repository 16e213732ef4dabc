"""The ids and fields of rows of a folder of vectors, read where they are needed."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wordpiece_bert.vectors.part_files import MappedPart

#: The most bytes of columns that are kept after they were read.
_KEPT = 1 << 28


class Fields:
    """Reads fields of rows; the columns of row groups that were read last stay in memory.

    Parameters
    ----------
    parts : sequence of MappedPart
        The parts.
    """

    def __init__(self, parts: Sequence[MappedPart]) -> None:
        self._parts = parts
        self._starts = np.cumsum([0, *(part.rows for part in parts)])
        self._read: OrderedDict[tuple[int, int, str], Any] = OrderedDict()
        self._bytes = 0

    def of_rows(self, rows: Iterable[int], columns: Sequence[str]) -> list[dict[str, Any]]:
        """Return the values of columns for each of some rows, as Python's objects."""
        return [self._of_row(row, columns) for row in rows]

    def _of_row(self, row: int, columns: Sequence[str]) -> dict[str, Any]:
        number = int(np.searchsorted(self._starts, row, side="right")) - 1
        part = self._parts[number]
        row -= int(self._starts[number])
        group = int(np.searchsorted(part.starts, row, side="right")) - 1
        row -= int(part.starts[group])
        missing = [name for name in columns if (number, group, name) not in self._read]
        if missing:
            table = part.group(group, missing)
            for name in missing:
                column = table.column(name)
                self._read[number, group, name] = column
                self._bytes += column.nbytes
        found = {}
        for name in columns:
            self._read.move_to_end((number, group, name))
            try:
                found[name] = self._read[number, group, name][row].as_py()
            except (ValueError, OverflowError) as cause:  # no UTF-8, a date out of range
                raise InputError(f"{part.path}: is damaged: {cause}; make the folder again") from cause
        while self._bytes > _KEPT and len(self._read) > len(columns):
            _, column = self._read.popitem(last=False)
            self._bytes -= column.nbytes
        return found
