"""Where rows of vectors are written: a file that appears when it is complete, or standard output."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, Self

import numpy as np

from wordpiece_bert._internal.atomic_file import AtomicFile
from wordpiece_bert._internal.owner import own_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    import numpy.typing as npt

    from wordpiece_bert.tokenizer.corpus.arrow_writer import ArrowWriter

#: A record batch or row group has at most so many rows, and numbers in all columns together: 8 MB of float32.
GROUP_ROWS = 1 << 14
GROUP_VALUES = 1 << 21


class Output(Protocol):
    """Where bytes go: `AtomicFile` or standard output."""

    @property
    def file(self) -> BinaryIO:
        """The open file."""

    def begin(self) -> None:
        """Open it."""

    def naming_errors(self) -> AbstractContextManager[None]:
        """Return a context whose errors name the file."""

    def commit(self) -> None:
        """Finish it."""

    def __exit__(self, *_: object) -> None: ...


class _StandardOutput:
    """Standard output with the interface of `AtomicFile`.

    Parameters
    ----------
    collect : bool
        Whether to collect the bytes in a temporary file first, for formats that go back to their beginning.
    """

    def __init__(self, *, collect: bool) -> None:
        self._collect = collect
        self._stack = ExitStack()
        self._temporary: BinaryIO | None = None

    def begin(self) -> None:
        if self._collect:
            self._temporary = self._stack.enter_context(own_file(tempfile.TemporaryFile()))  # noqa: SIM115

    @property
    def file(self) -> BinaryIO:
        return self._temporary or sys.stdout.buffer

    @contextmanager
    def naming_errors(self) -> Iterator[None]:
        yield

    def commit(self) -> None:
        if self._temporary is not None:
            self._temporary.seek(0)
            shutil.copyfileobj(self._temporary, sys.stdout.buffer)
        sys.stdout.buffer.flush()

    def __exit__(self, *_: object) -> None:
        self._stack.close()


class RowWriter:
    """Writes rows. A context manager: `begin` opens the output, `append` of the class writes rows, `commit` finishes.

    Parameters
    ----------
    output : AtomicFile or standard output
        Where to write.

    Attributes
    ----------
    rows : int
        The number of rows written so far.
    ids : pyarrow.Field or None
        The column of ids, which comes first; None without ids.
    """

    def __init__(self, output: Output, ids: Any = None) -> None:
        self._output = output
        self.rows = 0
        self.ids = ids
        # Of the rows that are being written, a pyarrow array.
        self._row_ids: Any = None

    def _take_ids(self, ids: Any, count: int) -> None:
        """Keep the ids of the next rows; there must be one for each if there is a column of ids, and else none."""
        given = 0 if ids is None else len(ids)
        assert given == (0 if self.ids is None else count), "ids do not fit the rows"
        self._row_ids = ids

    def _json_ids(self, count: int) -> list[str]:
        """Return how the next lines of JSON begin: with the id, or with nothing."""
        if self.ids is None:
            return ["{"] * count
        name = json.dumps(self.ids.name, ensure_ascii=False)
        return [f"{{{name}: {json.dumps(value, ensure_ascii=False)}, " for value in self._row_ids.to_pylist()]

    def __enter__(self) -> Self:
        return self

    def begin(self) -> None:
        """Open the output. Call it inside the context."""
        self._output.begin()
        self._head()

    def commit(self) -> None:
        """Finish the output; a file appears under its name."""
        with self._output.naming_errors():
            self._finish()
        self._output.commit()

    def __exit__(self, *exception: object) -> None:
        self._output.__exit__(*exception)

    def _head(self) -> None:
        """Write what precedes the rows."""

    def _finish(self) -> None:
        """Write what follows the rows."""


class _Room:
    """How many rows and values a record batch can still take; a row with more values than fit has one of its own."""

    def __init__(self) -> None:
        self._rows, self._values = GROUP_ROWS, GROUP_VALUES

    def take(self, batch: Any) -> int:
        """Take rows from the beginning of a record batch; return how many."""
        values = sum((_values_of(column) for column in batch.columns), np.zeros(batch.num_rows, np.int64))
        ends = np.cumsum(values)
        count = min(self._rows, int(np.searchsorted(ends, self._values, side="right")))
        if count == 0 and self._rows == GROUP_ROWS:
            count = 1
        if count:
            self._rows, self._values = self._rows - count, self._values - int(ends[count - 1])
        return count


def _values_of(column: Any) -> npt.NDArray[np.int64]:
    """Return how many numbers each row of a column has."""
    kind, width = column.type, 1
    rows = np.ones(len(column), np.int64)
    while hasattr(kind, "value_field"):
        if hasattr(kind, "list_size"):
            width *= kind.list_size
        else:
            rows = column.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
        kind = kind.value_type
    return rows * width


class ArrowRowWriter(RowWriter):
    """Writes rows in Parquet, an Arrow file or an Arrow stream. A class derived from it sets the schema.

    Row groups and record batches depend on the rows alone, not on the calls that bring them: then files that are
    written in parts and merged are the same. Standard output gets rows as they come.
    """

    _writer: ArrowWriter
    _schema: Any
    # What is not written yet.
    _waiting: list[Any]
    _room: _Room

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return super().__enter__()

    def _head(self) -> None:
        self._waiting, self._room = [], _Room()
        self._writer.begin(self._output.file, self._schema)

    def add_batch(self, batch: Any) -> None:
        """Write the rows of a record batch."""
        if isinstance(self._output, _StandardOutput):
            self._writer.write(batch)
            return
        while batch.num_rows:
            count = self._room.take(batch)
            if count:
                self._waiting.append(batch.slice(0, count))
            batch = batch.slice(count)
            if batch.num_rows:
                self._write_waiting()

    def _write_waiting(self) -> None:
        """Write the rows that are waiting as one record batch."""
        pyarrow = self._writer.pyarrow
        table = pyarrow.Table.from_batches(self._waiting, self._schema)
        arrays = [pyarrow.concat_arrays(column.chunks) for column in table.columns]
        self._writer.write(pyarrow.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._waiting, self._room = [], _Room()

    def _schema_of(self, fields: list[Any]) -> Any:
        """Return the schema of the id, if there is one, and other fields."""
        return self._writer.pyarrow.schema([*([] if self.ids is None else [self.ids]), *fields])

    def _write_columns(self, arrays: list[Any]) -> None:
        """Write rows of the columns after the id."""
        if self.ids is not None:
            ids = self._row_ids
            arrays = [ids.combine_chunks() if hasattr(ids, "combine_chunks") else ids, *arrays]
        self.add_batch(self._writer.pyarrow.RecordBatch.from_arrays(arrays, schema=self._schema))

    def _finish(self) -> None:
        self._end()

    def _end(self, metadata: dict[str, str] | None = None) -> None:
        """Write the last rows, and what follows them."""
        if self._waiting:
            self._write_waiting()
        self._writer.close(metadata)

    def __exit__(self, *exception: object) -> None:
        self._writer.__exit__(*exception)
        super().__exit__(*exception)


def open_output(path: Path | None, *, collect: bool) -> Output:
    """Return where to write: a file that appears when it is complete, or standard output if `path` is None.

    Parameters
    ----------
    path : Path or None
        The file to create or replace.
    collect : bool
        Whether the format goes back to its beginning, so that standard output needs a temporary file.
    """
    return _StandardOutput(collect=collect) if path is None else AtomicFile(path)
