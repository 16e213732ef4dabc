"""Writers of rows that differ in length, such as sparse vectors and token vectors: Arrow, Parquet and JSON lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.arrow_writer import ArrowWriter
from wordpiece_bert.tokenizer.corpus.file_formats import LIST_FORMATS, WRITING
from wordpiece_bert.tokenizer.corpus.row_writer import ArrowRowWriter, RowWriter, open_output

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from wordpiece_bert.tokenizer.corpus.row_writer import Output


class ListColumn(NamedTuple):
    """A column whose values are lists."""

    name: str
    #: Their dtype, a name of NumPy and Arrow.
    dtype: str
    #: The width of a value that is a vector; None for numbers.
    width: int | None = None


class ListWriter(RowWriter):
    """Writes rows of lists. A context manager: `begin` opens the output, `append` writes rows, `commit` finishes.

    Parameters
    ----------
    output : AtomicFile or standard output
        Where to write.
    columns : sequence of ListColumn
        The columns.

    Attributes
    ----------
    rows, values : int
        The numbers of rows and of values of a column written so far.
    """

    def __init__(self, output: Output, columns: Sequence[ListColumn], ids: Any = None) -> None:
        super().__init__(output, ids)
        self._columns = columns
        self.values = 0

    def append(self, offsets: npt.NDArray[np.int64], values: Mapping[str, npt.NDArray[Any]], ids: Any = None) -> None:
        """Write rows, with their ids if there is a column of them.

        Row i has the values ``offsets[i]`` to ``offsets[i + 1]`` of each column.
        """
        self._take_ids(ids, len(offsets) - 1)
        with self._output.naming_errors():
            self._write(offsets, values)
        self.rows += len(offsets) - 1
        self.values += int(offsets[-1])

    def _write(self, offsets: npt.NDArray[np.int64], values: Mapping[str, npt.NDArray[Any]]) -> None:
        raise NotImplementedError


class _JsonLines(ListWriter):
    """A line with an object of lists for each row, in decimals that read back as the same float32."""

    def _write(self, offsets: npt.NDArray[np.int64], values: Mapping[str, npt.NDArray[Any]]) -> None:
        if not all(np.isfinite(array).all() for array in values.values()):
            raise InputError("a value is not finite, which JSON cannot hold: choose another format")
        lines = []
        begins = self._json_ids(len(offsets) - 1)
        for begin, start, end in zip(begins, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            lists = (f"{json.dumps(column.name)}: {_json(values[column.name][start:end])}" for column in self._columns)
            lines.append(begin + ", ".join(lists) + "}\n")
        self._output.file.write("".join(lines).encode())


def _json(array: npt.NDArray[Any]) -> str:
    """Return an array as JSON."""
    if array.ndim > 1:
        return "[" + ", ".join(map(_json, array)) + "]"
    if array.dtype == np.float32:
        return "[" + ", ".join(["%.9g"] * len(array)) % tuple(array.tolist()) + "]"
    return json.dumps(array.tolist())


class _Arrow(ListWriter, ArrowRowWriter):
    """Columns of lists, in Parquet, an Arrow file or an Arrow stream."""

    def __init__(self, output: Output, columns: Sequence[ListColumn], kind: str, ids: Any = None) -> None:
        super().__init__(output, columns, ids)
        self._writer = ArrowWriter(kind)
        pyarrow = self._writer.pyarrow

        def item(column: ListColumn) -> Any:
            number = getattr(pyarrow, column.dtype)()
            return number if column.width is None else pyarrow.list_(number, column.width)

        self._schema = self._schema_of([pyarrow.field(one.name, pyarrow.list_(item(one))) for one in columns])

    def _write(self, offsets: npt.NDArray[np.int64], values: Mapping[str, npt.NDArray[Any]]) -> None:
        pyarrow = self._writer.pyarrow
        if int(offsets[-1]) >= 2**31:
            raise InputError(
                f"a block has {offsets[-1]} values, more than an Arrow list holds: use a smaller batch_size"
            )
        starts = pyarrow.array(offsets.astype(np.int32))
        arrays = []
        for column in self._columns:
            flat = pyarrow.array(values[column.name].reshape(-1))
            if column.width is not None:
                flat = pyarrow.FixedSizeListArray.from_arrays(flat, column.width)
            arrays.append(pyarrow.ListArray.from_arrays(starts, flat))
        self._write_columns(arrays)


@completed_by(WRITING)
def list_writer(path: Path | None, columns: Sequence[ListColumn], kind: str, ids: Any = None) -> ListWriter:
    """Return the writer for a file, or for standard output if `path` is None.

    Parameters
    ----------
    columns : sequence of ListColumn
        The columns.
    kind : str
        One of `LIST_FORMATS`.
    ids : pyarrow.Field, optional
        A column of ids before the others.

    Raises
    ------
    InputError
        The format is another one, or pyarrow is needed and not installed.
    """
    if kind not in LIST_FORMATS:
        raise InputError(
            f"vectors of various lengths cannot be written as {kind}: the formats are {', '.join(LIST_FORMATS)}"
        )
    output = open_output(path, collect=kind in ("arrow", "parquet"))
    return _JsonLines(output, columns, ids) if kind == "jsonl" else _Arrow(output, columns, kind, ids)
