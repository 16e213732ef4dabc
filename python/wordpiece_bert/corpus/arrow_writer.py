"""Writing record batches with pyarrow: Parquet, Arrow files and Arrow streams, with Ctrl-C obeyed."""

from __future__ import annotations

import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from wordpiece_bert.corpus.parquet import import_pyarrow

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType

__all__ = ["ArrowWriter"]

_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class ArrowWriter:
    """Writes record batches to an open file. A context manager that closes pyarrow's writer if `close` was not called.

    Python runs signal handlers also inside pyarrow's callbacks, in destructors and in the garbage collector. An
    exception that a handler raises there, such as KeyboardInterrupt, can be printed and dropped, and the work would go
    on. Inside the context the exceptions of handlers are therefore remembered, and raised again after the call.

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
        self._previous: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self._raised: BaseException | None = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # Python runs handlers in the main thread only
            for number in _SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._previous[number] = handler
                    signal.signal(number, self._handle)
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        try:
            self._previous[number](number, frame)
        except BaseException as error:
            self._raised = error
            raise

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
        if self._kind == "parquet":
            self._writer = self.pyarrow.parquet.ParquetWriter(file, schema, **{"compression": "zstd", **settings})
        else:
            new = self.pyarrow.ipc.new_file if self._kind == "arrow" else self.pyarrow.ipc.new_stream
            self._writer = new(file, schema)
        self._schema = schema
        self._raise_again()

    def write(self, batch: Any) -> None:
        """Write a record batch: in Parquet, a row group."""
        self._writer.write_batch(batch)
        self._raise_again()

    def close(self, metadata: Mapping[str, str] | None = None) -> None:
        """Write what follows the batches. The file stays open.

        Parameters
        ----------
        metadata : mapping of str to str, optional
            Metadata that is known only now: in Parquet that of the file, in Arrow that of a last batch without rows.
        """
        if metadata and self._kind == "parquet":
            self._writer.add_key_value_metadata(metadata)
        elif metadata:
            empty = self.pyarrow.RecordBatch.from_pylist([], self._schema)
            self._writer.write_batch(empty, custom_metadata=metadata)
        self._writer.close()
        self._writer = None
        self._raise_again()

    def _raise_again(self) -> None:
        """Raise the exception of a signal handler that was dropped."""
        if self._raised is not None:
            raise self._raised

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        # An open writer would be closed by the garbage collector, and fail because its file is closed.
        if self._writer is not None:
            with suppress(OSError, self.pyarrow.ArrowException):
                self._writer.close()
