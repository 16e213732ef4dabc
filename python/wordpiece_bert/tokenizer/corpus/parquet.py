"""Reads columns of Parquet files as blocks of texts, in bounded memory. Needs pyarrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wordpiece_bert import _core
from wordpiece_bert._internal.lazy import numpy as np
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.parameters import READING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

# The size of a block, about as for other files. The sizes in a file's metadata are its encodings' sizes: a text that
# is repeated in a million rows is stored once, but decoded a million times. Therefore the rows are limited as well.
BLOCK_BYTES = 4 << 20
BLOCK_ROWS = 1 << 14

#: The UTF-8 bytes of a column, the end of each string in them, and which strings are not null (None if all).
Strings = tuple["npt.NDArray[np.uint8]", "npt.NDArray[np.int64]", "npt.NDArray[np.uint8] | None"]


def import_pyarrow(what: str) -> Any:
    """Import pyarrow, or raise InputError with the command that installs it."""
    try:
        import pyarrow.parquet
    except ImportError as cause:
        raise InputError(f"{what} needs pyarrow: pip install 'wordpiece-bert[arrow]'") from cause
    return pyarrow


@completed_by(READING)
def parquet_blocks(
    files: Sequence[tuple[str, int, range | None]], columns: Sequence[str], errors: str
) -> Iterator[tuple[_core.TextBlock, int]]:
    """Read Parquet files one after the other.

    Parameters
    ----------
    files : sequence of (str, int, range or None)
        Each with its size in bytes and the row groups to read, or None for all of them.
    columns : sequence of str
        One column, or two for pairs.

    Yields
    ------
    block : _core.TextBlock
        The texts.
    bytes_read : int
        How many bytes have been read, estimated from the number of rows.

    Raises
    ------
    InputError
        pyarrow is not installed, a file is not Parquet, a column is missing or not text, or a text is null.
    """
    pyarrow = import_pyarrow("reading Parquet")
    before = 0
    for name, size, groups in files:
        with opened(pyarrow, name, columns) as file:
            start = rows = first_row(file, groups)
            read = range(file.metadata.num_row_groups) if groups is None else groups
            total = sum(file.metadata.row_group(i).num_rows for i in read)
            for batch in batches(file, columns, groups):
                strings = [strings_of(pyarrow, batch.column(column)) for column in columns]
                block = _core.TextBlock.from_arrow(name, rows, strings, errors)
                rows += batch.num_rows
                yield block, before + size * (rows - start) // max(total, 1)
        before += size


def opened(pyarrow: Any, name: str, columns: Sequence[str]) -> Any:
    """Open a Parquet file, a context, and check its columns of texts.

    Parameters
    ----------
    pyarrow : module
        pyarrow.
    name : str
        The path.
    columns : sequence of str
        The columns that must be there and hold texts.

    Raises
    ------
    InputError
        The file is not Parquet, or a column is missing or not text.
    """
    try:
        # A small buffer instead of an entire row group, which may be of any size.
        file = pyarrow.parquet.ParquetFile(name, buffer_size=1 << 20, pre_buffer=False)
    except pyarrow.ArrowInvalid as cause:
        raise InputError(f"{name}: not a Parquet file: {cause}") from cause
    try:
        _check_columns(pyarrow, name, file.schema_arrow, columns)
    except InputError:
        file.close()
        raise
    return file


def batches(file: Any, columns: Sequence[str], groups: range | None = None) -> Iterator[Any]:
    """Yield some columns of an open Parquet file, or of row groups of it, as record batches of the size of a block."""
    more = {} if groups is None else {"row_groups": list(groups)}
    size = _rows_per_block(file.metadata, columns)
    if groups is None or len(groups):
        yield from file.iter_batches(size, columns=list(dict.fromkeys(columns)), **more)


def first_row(file: Any, groups: range | None) -> int:
    """Return how many rows an open Parquet file has before some row groups."""
    return sum(file.metadata.row_group(i).num_rows for i in range(groups.start if groups else 0))


def missing_column(column: str, names: Sequence[str]) -> str:
    """Return the message that a table has no column of a name, or several."""
    return f"{'several columns' if column in names else 'no column'} {column!r}; the columns are " + (
        ", ".join(map(repr, names)) or "none"
    )


def _check_columns(pyarrow: Any, name: str, schema: Any, columns: Sequence[str]) -> None:
    for column in columns:
        if schema.names.count(column) != 1:
            raise InputError(f"{name}: {missing_column(column, schema.names)}")
        kind = schema.field(column).type
        if pyarrow.types.is_dictionary(kind):
            kind = kind.value_type
        if kind not in (pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()):
            raise InputError(f"{name}: the column {column!r} is {kind}, not text")


def _rows_per_block(metadata: Any, columns: Sequence[str]) -> int:
    """Return how many rows fill a block, by the average row of the row group with the longest rows."""
    most = 1.0
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        chunks = [group.column(j) for j in range(group.num_columns)]
        size = sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema in columns)
        most = max(most, size / max(group.num_rows, 1))
    return max(1, min(BLOCK_ROWS, int(BLOCK_BYTES / most)))


def strings_of(pyarrow: Any, array: Any) -> Strings:
    """Return the buffers of an Arrow array of strings, of any string type."""
    array = array.cast(pyarrow.large_string())
    if not len(array):
        return np.empty(0, np.uint8), np.empty(0, np.int64), None
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    valid = None if array.null_count == 0 else np.asarray(array.is_valid()).view(np.uint8)
    start, end = int(bounds[0]), int(bounds[-1])
    return np.frombuffer(data, np.uint8)[start:end] if end else np.empty(0, np.uint8), bounds[1:] - start, valid
