"""Parts that are written one after the other, and the rows on their way to them."""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.owner import Owner
from wordpiece_bert._internal.signals import uninterrupted
from wordpiece_bert.tokenizer.corpus.parquet import import_pyarrow
from wordpiece_bert.vectors.layout import UNFINISHED, part_name, record_of
from wordpiece_bert.vectors.part_files import GROUP_BYTES, GROUP_ROWS, MappedPart, PartWriter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from wordpiece_bert.vectors.layout import Layout

#: A part ends once it has so many rows, or bytes: what an update of a row writes again.
PART_ROWS = 1 << 16
PART_BYTES = 1 << 28
# A part that is made slowly ends after so many seconds, so that a process that is killed loses no more.
_SECONDS = 30.0


def is_small(part: MappedPart) -> bool:
    """Return whether a part is worth joining with others."""
    return part.rows < PART_ROWS // 2 and part.size < PART_BYTES // 2


class Collector:
    """Writes rows to new parts, in the folder of those that are not listed yet.

    Parameters
    ----------
    folder : Path
        The folder of vectors.
    schema : pyarrow.Schema
        The columns.
    plain : tuple of str
        The columns whose numbers are stored as they are in memory.
    layout : Layout
        What the vectors are, for the metadata of the parts.
    ranges : sequence of sequence of float or None
        The ranges of their 8-bit numbers; None without such.
    number : int
        The number of the first part.
    """

    def __init__(
        self,
        folder: Path,
        schema: Any,
        plain: tuple[str, ...],
        layout: Layout,
        ranges: Sequence[Sequence[float]] | None,
        number: int,
    ) -> None:
        self._pyarrow = import_pyarrow("writing a folder of vectors")
        self._folder, self._schema, self._plain = folder / UNFINISHED, schema, plain
        self._layout, self._ranges = layout, ranges
        self.number = number
        self._waiting: list[Any] = []
        self._rows = self._bytes = 0
        self._group_rows = GROUP_ROWS
        self._writer: PartWriter | None = None
        #: Ends the writer of the part that is being written.
        self._part = ExitStack()
        self._owner = Owner()
        #: Whether all rows that were added are written or waiting.
        self._is_whole = True
        self._written = 0
        self._start = time.monotonic()
        #: The parts that are complete.
        self.parts: list[MappedPart] = []

    def append(self, table: Any, *, slow: bool = False) -> None:
        """Add rows, a table; `slow` if they took time, so that a part ends after some seconds.

        A signal takes effect afterwards, so that it leaves no part that cannot be finished.
        """
        if not table.num_rows:
            return
        with uninterrupted():
            self._is_whole = False
            self._waiting.append(table)
            self._rows += table.num_rows
            self._bytes += table.nbytes
            while self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
                self._write_group()
                if self._writer is not None and (self._writer.rows >= PART_ROWS or self._written >= PART_BYTES):
                    self._finish_part(ends=False)
            if slow and time.monotonic() - self._start > _SECONDS:
                self.flush()
            self._is_whole = True

    def flush(self) -> None:
        """Write the rows that are waiting, and finish the part; a signal takes effect afterwards."""
        with uninterrupted():
            self._is_whole = False
            while self._rows:
                self._write_group()
            self._finish_part(ends=True)
            self._is_whole = True

    def _write_group(self) -> None:
        """Write a row group of the rows that are waiting."""
        self._owner.check(self._folder)
        table = self._pyarrow.concat_tables(self._waiting)
        per_row = max(1, self._bytes // max(1, self._rows))
        count = max(1, min(GROUP_ROWS, GROUP_BYTES // per_row, len(table)))
        if self._writer is None:
            self._writer = self._part.enter_context(
                PartWriter(self._folder / part_name(self.number), self._schema, self._plain)
            )
            self._writer.begin()
            self._written = 0
        batches = table.slice(0, count).combine_chunks().to_batches()
        self._writer.append(batches[0])
        self._written += batches[0].nbytes
        rest = table.slice(count)
        self._waiting = [rest] if len(rest) else []
        self._rows -= count
        self._bytes = rest.nbytes if len(rest) else 0

    def _finish_part(self, *, ends: bool) -> None:
        writer, self._writer = self._writer, None
        self._start = time.monotonic()
        if writer is None:
            return
        with self._part:
            writer.commit(record_of(self._layout, self._ranges, ends=ends))
        self.parts.append(MappedPart(writer.path))
        self.number += 1

    def keep(self) -> bool:
        """Finish the part with the rows so far, after an interruption; return whether that was possible."""
        if self._is_whole:
            with suppress(BaseException):  # the disk is full, or a second signal: the first interruption is on its way
                self.flush()
        return self._is_whole

    def close(self) -> None:
        """Remove a part that is not complete, after an error."""
        self._writer = None
        self._part.close()
