"""Writers of vectors, rows at a time: NumPy, Arrow, Parquet and JSON lines, to a file or to standard output."""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, BinaryIO, Protocol, Self

import numpy as np

from wordpiece_bert._internal.atomic_file import AtomicFile
from wordpiece_bert.corpus.arrow_writer import ArrowWriter
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path
    from types import TracebackType

    import numpy.typing as npt

__all__ = ["FORMATS", "Output", "VectorWriter", "open_output", "vector_writer"]

#: The formats. A file has its format as its suffix.
FORMATS = ("npy", "parquet", "arrow", "arrows", "jsonl")
# The column of vectors in Arrow and Parquet files, and the key in JSON lines.
COLUMN = "vector"


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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


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
            self._temporary = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


class VectorWriter:
    """Writes float32 vectors. A context manager: `begin` opens the output, `append` writes rows, `commit` finishes.

    Parameters
    ----------
    output : AtomicFile or standard output
        Where to write.
    width : int
        The number of dimensions of a vector.

    Attributes
    ----------
    rows : int
        The number of vectors written so far.
    """

    def __init__(self, output: Output, width: int) -> None:
        self._output = output
        self.width = width
        self.rows = 0

    def __enter__(self) -> Self:
        return self

    def begin(self) -> None:
        """Open the output. Call it inside the context."""
        self._output.begin()
        self._head()

    def append(self, vectors: npt.NDArray[np.float32]) -> None:
        """Write vectors [n, width]."""
        with self._output.naming_errors():
            self._write(np.ascontiguousarray(vectors, np.float32))
        self.rows += len(vectors)

    def commit(self) -> None:
        """Finish the output; a file appears under its name."""
        with self._output.naming_errors():
            self._finish()
        self._output.commit()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._output.__exit__(kind, error, trace)

    def _head(self) -> None:
        """Write what precedes the vectors."""

    def _write(self, vectors: npt.NDArray[np.float32]) -> None:
        raise NotImplementedError

    def _finish(self) -> None:
        """Write what follows the vectors."""


class _Npy(VectorWriter):
    """One array, float32 [rows, width]."""

    def _head(self) -> None:
        # NumPy pads the header, so that it can be rewritten with a larger first axis without moving the data.
        header = {"descr": "<f4", "fortran_order": False, "shape": (self.rows, self.width)}
        np.lib.format.write_array_header_1_0(self._output.file, header)

    def _write(self, vectors: npt.NDArray[np.float32]) -> None:
        self._output.file.write(vectors.astype("<f4", copy=False).data)

    def _finish(self) -> None:
        self._output.file.seek(0)
        self._head()


class _JsonLines(VectorWriter):
    """A line ``{"vector": [...]}`` for each vector, in decimals that read back as the same float32."""

    def _write(self, vectors: npt.NDArray[np.float32]) -> None:
        line = f'{{"{COLUMN}": [' + ", ".join(["%.9g"] * self.width) + "]}\n"
        if not np.isfinite(vectors).all():
            message = "a vector has a number that is not finite, which JSON cannot hold: choose another format"
            raise InputError(message)
        self._output.file.write("".join(line % tuple(row) for row in vectors.tolist()).encode())


class _Arrow(VectorWriter):
    """A column ``vector`` of fixed-size lists, in Parquet, an Arrow file or an Arrow stream."""

    def __init__(self, output: Output, width: int, kind: str) -> None:
        super().__init__(output, width)
        self._writer = ArrowWriter(kind)
        pyarrow = self._writer.pyarrow
        self._schema = pyarrow.schema([(COLUMN, pyarrow.list_(pyarrow.float32(), width))])

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return super().__enter__()

    def _head(self) -> None:
        self._writer.begin(self._output.file, self._schema)

    def _write(self, vectors: npt.NDArray[np.float32]) -> None:
        pyarrow = self._writer.pyarrow
        column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.reshape(-1)), self.width)
        self._writer.write(pyarrow.RecordBatch.from_arrays([column], schema=self._schema))

    def _finish(self) -> None:
        self._writer.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.__exit__(kind, error, trace)
        super().__exit__(kind, error, trace)


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


def vector_writer(path: Path | None, width: int, kind: str) -> VectorWriter:
    """Return the writer for a file, or for standard output if `path` is None.

    Parameters
    ----------
    path : Path or None
        The file to create or replace; it appears when it is complete.
    width : int
        The number of dimensions of a vector.
    kind : str
        One of `FORMATS`.

    Raises
    ------
    InputError
        pyarrow is needed and not installed.
    """
    output = open_output(path, collect=kind in ("npy", "arrow", "parquet"))
    if kind == "npy":
        return _Npy(output, width)
    return _JsonLines(output, width) if kind == "jsonl" else _Arrow(output, width, kind)
