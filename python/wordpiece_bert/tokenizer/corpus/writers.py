"""Writers of encoded rows: NumPy arrays, Arrow, Parquet and JSON lines.

A writer is a context manager. Inside it `begin` opens temporary files, `append` writes tables one after the other, and
`commit` renames the files to their final names. Without `commit` the temporary files are removed.
"""

from __future__ import annotations

import json
import stat
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from wordpiece_bert._internal.atomic_file import AtomicFile, check_replaceable
from wordpiece_bert._internal.checks import character_problem
from wordpiece_bert._internal.file_locks import exclusive
from wordpiece_bert._internal.owner import Owner
from wordpiece_bert._internal.signals import uninterrupted
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.arrow_writer import ArrowWriter
from wordpiece_bert.tokenizer.corpus.encoded_table import TOKEN_COLUMNS, Table
from wordpiece_bert.tokenizer.corpus.npy_writer import NpyWriter
from wordpiece_bert.tokenizer.corpus.row_writer import ArrowRowWriter, RowWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt


class TableWriter(Protocol):
    """Writes tables to one or several files.

    Attributes
    ----------
    files : list of Path
        The files, beginning with the file of the ids.
    """

    files: list[Path]

    def __enter__(self) -> Self: ...

    def begin(self) -> None:
        """Open the temporary files."""

    def append(self, table: Table) -> None:
        """Write the rows of a table. All tables must have the same columns."""

    def commit(self) -> None:
        """Rename the files to their final names."""

    def __exit__(self, *_: object) -> None: ...


def written_files(path: Path) -> list[Path]:
    """Return the files that an output may consist of: itself, and for a .npy the files of the other columns."""
    others = ("row_offsets", "truncated", "offsets", "word_ids", "sequence_ids", "overflow_to_sample", "n_tokens")
    return [path, *(path.with_suffix(f".{name}.npy") for name in others if path.suffix == ".npy")]


def _mode(path: Path) -> int | None:
    """Return what a path is, as `os.stat` says it; None if it does not exist or cannot be reached.

    Asked once, because another writer may delete or replace the file between two questions.
    """
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return None


def check_output(path: Path, suffixes: Sequence[str], what: str) -> None:
    """Check, before any work is done, that a file can be written.

    Parameters
    ----------
    path : Path
        The file to create or replace.
    suffixes : sequence of str
        The allowed suffixes.
    what : str
        What is written, for the message: ``"vectors"``.

    Raises
    ------
    InputError
        The path has another suffix, is a folder or a special file such as a device, or its folder does not exist.
    """
    mode = _mode(path)
    if path.suffix not in suffixes:
        listed = " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))
        message = f"{path}: {what} are written as {listed}; choose an output with such a suffix"
    elif mode is not None and stat.S_ISDIR(mode):
        message = f"{path}: is a folder; pass the path of a file"
    elif not path.parent.is_dir():
        message = f"{path}: the folder {path.parent.absolute()} does not exist; create it first"
    else:
        check_replaceable(path)
        return
    raise InputError(message)


class _NpyTable:
    """Writes one .npy file per column: ids to ``X.npy``, others to ``X.row_offsets.npy``, ``X.offsets.npy`` and so on.

    Parameters
    ----------
    path : Path
        The file for the ids.
    length : int or None
        The length of all rows: arrays are then [rows, length], without row offsets. None for flat ids [n].
    empty : Table
        A table without rows that has the columns to write.
    """

    def __init__(self, path: Path, length: int | None, empty: Table, ids_column: str) -> None:
        if ids_column != "ids":
            raise InputError(f"{path}: ids_column={ids_column!r} names a column of a table, and a .npy file has none")
        self.path = path
        self._length = length
        self._rows = ExitStack()
        self._files: dict[str, NpyWriter] = {}
        self._columns = dict(self._arrays(empty))
        self.files = [path, *(path.with_suffix(f".{name}.npy") for name in self._columns if name != "ids")]
        self._tokens = 0

    def __enter__(self) -> Self:
        with ExitStack() as stack:  # if one file fails, those before it are closed and removed
            for name, array in self._columns.items():
                path = self.path if name == "ids" else self.path.with_suffix(f".{name}.npy")
                check_output(path, [".npy"], "arrays")
                self._files[name] = stack.enter_context(NpyWriter(path, array.shape[1:], array.dtype))
            self._rows = stack.pop_all()
        return self

    def begin(self) -> None:
        for file in self._files.values():
            file.begin()
        if "row_offsets" in self._files:
            self._files["row_offsets"].append(np.zeros(1, np.int64))

    def _arrays(self, table: Table) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        for name, array in table.columns.items():
            if self._length is not None and name in TOKEN_COLUMNS:
                yield name, array.reshape(len(table), self._length, *array.shape[1:])
            else:
                yield name, array
        if self._length is None:
            yield "row_offsets", table.row_offsets[1:]

    def append(self, table: Table) -> None:
        for name, array in self._arrays(table):
            self._files[name].append(array + self._tokens if name == "row_offsets" else array)
        self._tokens += int(table.row_offsets[-1])

    def commit(self) -> None:
        owner = Owner()
        for file in self._files.values():
            file.finish()
        with exclusive(self.path.parent), uninterrupted():
            # The old ids are removed first and the new ids renamed last, so that ids never exist beside the wrong
            # columns, even if the process is killed in between.
            others = [path for path in written_files(self.path) if path not in self.files and path.is_file()]
            if len(self._files) > 1 or others:
                owner.do(self.path.unlink, missing_ok=True)
            for path in others:  # columns of an older output, which would not belong to these ids
                owner.do(path.unlink, missing_ok=True)
            for name in reversed(self._files):
                self._files[name].rename()

    def __exit__(self, *_: object) -> None:
        self._rows.close()


class _TableFile(RowWriter):
    """Base class of writers of a single file."""

    def __init__(self, path: Path) -> None:
        super().__init__(AtomicFile(path))
        self.files = [path]

    def append(self, table: Table) -> None:
        with self._output.naming_errors():
            self._write(table)

    def _write(self, table: Table) -> None:
        raise NotImplementedError


class _ArrowTable(_TableFile, ArrowRowWriter):
    """Writes Arrow (IPC files or streams) and Parquet: one record batch or row group per table.

    Columns with one entry per token are lists; offsets are lists of two integers.
    """

    def __init__(self, path: Path, length: int | None, empty: Table, ids_column: str) -> None:
        self._writer = ArrowWriter(path.suffix.removeprefix("."))
        self._ids_column = ids_column
        super().__init__(path)
        self._schema = self._batch(empty).schema

    def _batch(self, table: Table) -> Any:
        pyarrow = self._writer.pyarrow
        if table.row_offsets[-1] > np.iinfo(np.int32).max:
            raise InputError(
                f"{self.files[0]}: one text has rows of {table.row_offsets[-1]:,} tokens, more than an Arrow list "
                "holds; divide the text, or use a smaller stride"
            )
        offsets = pyarrow.array(table.row_offsets.astype(np.int32))
        arrays = {}
        for name, column in table.columns.items():
            values = pyarrow.array(column.reshape(-1))
            if name in TOKEN_COLUMNS:
                if column.ndim == 2:
                    values = pyarrow.FixedSizeListArray.from_arrays(values, column.shape[1])
                values = pyarrow.ListArray.from_arrays(offsets, values)
            arrays[self._ids_column if name == "ids" else name] = values
        return pyarrow.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))

    def _write(self, table: Table) -> None:
        self.add_batch(self._batch(table))


class _JsonTable(_TableFile):
    """Writes JSON lines."""

    def __init__(self, path: Path, length: int | None, empty: Table, ids_column: str) -> None:
        self._ids_column = ids_column
        super().__init__(path)

    def _write(self, table: Table) -> None:
        self._output.file.write("".join(json_lines(table, ids_column=self._ids_column)).encode())


def json_lines(
    table: Table, tokens: Sequence[Sequence[str]] | None = None, *, ids_column: str = "ids"
) -> Iterator[str]:
    """Yield each row of a table as a line of JSON.

    Parameters
    ----------
    table : Table
        The rows.
    tokens : sequence of sequences of str, optional
        The tokens of each row, written after the ids.
    ids_column : str, default "ids"
        The name of the ids.
    """
    encode = json.JSONEncoder(ensure_ascii=False).encode
    columns: dict[str, Any] = {}
    bounds = list(pairwise(table.row_offsets.tolist()))
    for name, array in table.columns.items():
        values = array.tolist()
        if name in ("word_ids", "sequence_ids"):
            values = [None if value < 0 else value for value in values]
        key = ids_column if name == "ids" else name
        columns[key] = [values[start:end] for start, end in bounds] if name in TOKEN_COLUMNS else values
        if name == "ids" and tokens is not None:
            columns["tokens"] = tokens
    for row in zip(*columns.values(), strict=True):
        yield encode(dict(zip(columns, row, strict=True))) + "\n"


FORMATS: dict[str, Callable[[Path, int | None, Table, str], TableWriter]] = {
    ".npy": _NpyTable,
    ".arrow": _ArrowTable,
    ".arrows": _ArrowTable,
    ".parquet": _ArrowTable,
    ".jsonl": _JsonTable,
}


def check_ids_column(name: object, others: Iterable[str]) -> None:
    """Check the name of the column of the ids: a str that no other column has."""
    if not isinstance(name, str) or not name:
        raise InputError(f"ids_column must be the name of a column, not {name!r:.80}")
    if problem := character_problem(name):
        raise InputError(f"ids_column {problem}: {name!a:.80}")
    if name in set(others) - {"ids"}:
        raise InputError(f"ids_column is {name!r}, but another column has this name: choose another one")


def table_writer(path: Path, length: int | None, empty: Table, ids_column: str = "ids") -> TableWriter:
    """Return the writer for a path, by its suffix.

    Parameters
    ----------
    path : Path
        The file to create or replace.
    length : int or None
        The length of all rows if they are padded.
    empty : Table
        A table without rows that has the columns to write.
    ids_column : str, default "ids"
        The name of the column of the ids.

    Raises
    ------
    InputError
        As for `check_output`, pyarrow is needed and not installed, or `ids_column` cannot be the name.
    """
    check_output(path, list(FORMATS), "tokens")
    check_ids_column(ids_column, empty.columns)
    return FORMATS[path.suffix](path, length, empty, ids_column)
