"""Writing record batches with pyarrow: Parquet, Arrow files and Arrow streams, with Ctrl-C obeyed."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from wordpiece_bert._internal.signals import call_keeping_interrupts
from wordpiece_bert.tokenizer.corpus.parquet import import_pyarrow

if TYPE_CHECKING:
    from collections.abc import Mapping


class ArrowWriter:
    """Writes record batches to an open file. A context manager that closes pyarrow's writer if `close` was not called.

    An exception of a signal handler, such as KeyboardInterrupt, that arrives inside pyarrow ends the call.

    Parameters
    ----------
    kind : {"parquet", "arrow", "arrows"}
        Parquet, an Arrow file, or an Arrow stream.

    Raises
    ------
    InputError
        pyarrow is not installed.
    """

    def __init__(self, kind: str) -> None:
        self.pyarrow = import_pyarrow(f"writing {kind} files")
        self._kind = kind
        self._writer: Any = None
        self._schema: Any = None

    def __enter__(self) -> Self:
        return self

    def begin(self, file: BinaryIO, schema: Any, **settings: Any) -> None:
        """Write what precedes the batches.

        Parameters
        ----------
        file : binary file
            Where to write.
        schema : pyarrow.Schema
            The columns.
        **settings
            For Parquet: arguments of ``pyarrow.parquet.ParquetWriter``.
        """
        self._schema = schema
        new = {
            "parquet": partial(self.pyarrow.parquet.ParquetWriter, **{"compression": "zstd", **settings}),
            "arrow": self.pyarrow.ipc.new_file,
            "arrows": self.pyarrow.ipc.new_stream,
        }[self._kind]
        self._writer = call_keeping_interrupts(lambda: new(file, schema))

    def write(self, batch: Any) -> None:
        """Write a record batch: in Parquet, a row group."""
        call_keeping_interrupts(lambda: self._writer.write_batch(batch))

    def close(self, metadata: Mapping[str, str] | None = None) -> None:
        """Write what follows the batches. The file stays open.

        Parameters
        ----------
        metadata : mapping of str to str, optional
            Metadata that is known only now: in Parquet for the file, in Arrow for a last batch without rows.
        """

        def finish() -> None:
            if metadata and self._kind == "parquet":
                self._writer.add_key_value_metadata(metadata)
            elif metadata:
                empty = self.pyarrow.RecordBatch.from_pylist([], self._schema)
                self._writer.write_batch(empty, custom_metadata=metadata)
            self._writer.close()
            self._writer = None

        call_keeping_interrupts(finish)

    def __exit__(self, *_: object) -> None:
        # An open writer would be closed by the garbage collector, and fail because its file is closed.
        if self._writer is not None:
            with suppress(OSError, self.pyarrow.ArrowException):
                self._writer.close()
