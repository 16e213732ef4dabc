"""Examples as Arrow, Parquet and JSON lines."""

from __future__ import annotations

import io
import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, cast

from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.sinks.row_sink import FileSink
from wordpiece_bert.tokenizer.corpus.arrow_writer import ArrowWriter
from wordpiece_bert.tokenizer.corpus.parquet import import_pyarrow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import BinaryIO

    from wordpiece_bert import _core
    from wordpiece_bert.pretraining.schema import RowSchema


def arrow_schema(schema: RowSchema) -> Any:
    """Return the Arrow schema of examples."""
    pa = import_pyarrow("the schema of examples")
    fields = []
    for name in schema.columns:
        entry = pa.int8() if name in ("token_type_ids", schema.label) else pa.int32()
        fields.append((name, entry if name == schema.label and not schema.packed else pa.list_(entry)))
    return pa.schema(fields)


def record_batch(rows: _core.ExampleBlock, schema: RowSchema, arrow: Any) -> Any:
    """Return rows as an Arrow record batch; `arrow` is the schema that `arrow_schema` returned."""
    pa = import_pyarrow("writing examples")
    columns = []
    for array, offsets in schema.flat(rows).values():
        values = pa.array(array)
        if offsets is not None:
            values = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)
        columns.append(values)
    return pa.RecordBatch.from_arrays(columns, schema=arrow)


class JsonRows(FileSink):
    """Rows as JSON lines."""

    def add(self, rows: _core.ExampleBlock) -> None:
        """Write a line for each row."""
        self.file.write("".join(json.dumps(row) + "\n" for row in self.schema.dicts(rows)).encode())


class ArrowRows(FileSink):
    """Rows as an Arrow file, a record batch for each block."""

    _kind = "arrow"

    def __init__(self, path: Path, schema: RowSchema, steps: Sequence[tuple[int, int]] = ()) -> None:
        super().__init__(path, schema, steps)
        self._arrow = arrow_schema(schema)
        self._stack = ExitStack()
        self._writer = ArrowWriter(self._kind)

    def start(self, offset: int) -> None:
        """Begin the file, or continue it.

        An Arrow file ends with the positions of its batches, which only its writer knows. So the batches that are there
        are read from the file, one at a time, and given to a new writer whose bytes are skipped so far.
        """
        self._stack.enter_context(self._writer)
        if offset == 0:
            self._writer.begin(self.file, self._arrow)
            return
        pyarrow = self._writer.pyarrow
        self.file.seek(0)
        self._writer.begin(cast("BinaryIO", _Continued(self.file, offset)), self._arrow)
        try:
            with pyarrow.OSFile(str(self.part)) as stored:
                stored.seek(8)  # what follows the first eight bytes of a file is a stream
                batches = pyarrow.ipc.open_stream(stored)
                while stored.tell() < offset:
                    batch = batches.read_next_batch()
                    batch.validate(full=True)  # offsets that lead out of a buffer would end the process
                    self._writer.write(batch)
        except (pyarrow.ArrowException, OSError, StopIteration) as cause:
            if isinstance(cause, OSError) and cause.errno is not None:
                raise  # the disk is full, not the file damaged
            raise InputError(
                f"{self.part}: is damaged, so it cannot be continued: {cause}; delete it and begin again"
            ) from cause

    def add(self, rows: _core.ExampleBlock) -> None:
        """Write a record batch."""
        self._writer.write(record_batch(rows, self.schema, self._arrow))

    def end(self) -> None:
        """Write the end of the file."""
        self._writer.close()

    def close(self) -> None:
        """Give up the writer and the file."""
        self._stack.close()
        super().close()


class ParquetRows(ArrowRows):
    """Rows as a Parquet file, a row group for each block. It cannot be continued."""

    _kind = "parquet"
    resumes = False


class _Continued(io.RawIOBase):
    """A file whose first bytes are there already: they are skipped when they are written.

    Parameters
    ----------
    file : binary file
        The file, at its start.
    there : int
        The number of bytes that it has.
    """

    def __init__(self, file: BinaryIO, there: int) -> None:
        self._file, self._there = file, there

    def writable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._file.tell()

    def write(self, content: Any) -> int:
        """Write the bytes that are not there."""
        view = memoryview(content).cast("B")
        skipped = min(max(self._there - self._file.tell(), 0), len(view))
        self._file.seek(skipped, io.SEEK_CUR)
        self._file.write(view[skipped:])
        return len(view)

    def flush(self) -> None:
        """Flush the file."""
        if not self._file.closed:
            self._file.flush()
