"""Parts of a folder of vectors: Parquet files in which the vectors of a row group are one array that can be mapped.

Parquet stores the numbers of a column of fixed width as they are in memory, if it neither compresses them nor replaces
them by numbers of a dictionary (encoding PLAIN). `PartWriter` writes them so, in one page for each row group: then they
are the end of the column's chunk. It leaves a gap before each row group, such that the numbers of the first column
begin at a multiple of 64 bytes. Other programs read such files as any others. `MappedPart` finds the numbers again.
"""

from __future__ import annotations

import mmap
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from wordpiece_bert._internal.atomic_file import AtomicFile
from wordpiece_bert._internal.mapped_files import require_size
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.arrow_writer import ArrowWriter
from wordpiece_bert.tokenizer.corpus.parquet import import_pyarrow
from wordpiece_bert.vectors.layout import RECORD_KEY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

    from wordpiece_bert.vectors.layout import Part

#: The most rows of a row group, and its most bytes. pyarrow divides a group of more than 20,000 rows into pages.
GROUP_ROWS = 1 << 14
GROUP_BYTES = 1 << 26

# Where the numbers of the first column begin, for instructions on 64 bytes.
_ALIGNMENT = 64
# Larger than any page.
_PAGE_BYTES = 1 << 30
# A page's header has at most so many bytes: four numbers and the encodings.
_HEADER_BYTES = 64


class PartWriter:
    """Writes a part. A context manager: `begin` opens the file, `append` writes a row group, `commit` finishes it.

    Parameters
    ----------
    path : Path
        The file, which appears when it is complete.
    schema : pyarrow.Schema
        The columns; the vectors' column, which is aligned, comes first.
    plain : sequence of str
        The columns whose numbers are stored as they are in memory.

    Attributes
    ----------
    rows : int
        The number of rows written so far.
    """

    def __init__(self, path: Path, schema: Any, plain: tuple[str, ...]) -> None:
        self.path = path
        self.rows = 0
        self._schema, self._output, self._writer = schema, AtomicFile(path), ArrowWriter("parquet")
        leaves = [_leaf(schema.field(name)) for name in schema.names]
        others = [leaf for name, leaf in zip(schema.names, leaves, strict=True) if name not in plain]
        self._settings: dict[str, Any] = {
            "compression": {leaf: "zstd" if leaf in others else "none" for leaf in leaves},
            "use_dictionary": others,
            "write_statistics": others,
            "data_page_size": _PAGE_BYTES,
        }
        self._sink: Any = None
        self._known: dict[int, int] = {}

    def __enter__(self) -> Self:
        self._writer.__enter__()
        return self

    def begin(self) -> None:
        """Create the file."""
        self._output.begin()
        self._sink = self._writer.pyarrow.PythonFile(self._output.file, mode="w")
        with self._output.naming_errors():
            self._writer.begin(self._sink, self._schema, **self._settings)

    def append(self, batch: Any) -> None:
        """Write a row group, a record batch of at most `GROUP_ROWS` rows."""
        with self._output.naming_errors():
            self._sink.write(b"\0" * (-(self._sink.tell() + self._before_values(batch)) % _ALIGNMENT))
            self._writer.write(batch)
        self.rows += batch.num_rows

    def _before_values(self, batch: Any) -> int:
        """Return how many bytes the first column has before its numbers, which depends on the lengths of its lists."""
        fixed = self._schema.field(0).type.num_fields == 0 or hasattr(self._schema.field(0).type, "list_size")
        if fixed and batch.num_rows in self._known:
            return self._known[batch.num_rows]
        pyarrow = self._writer.pyarrow
        name = self._schema.names[0]
        alone = pyarrow.schema([self._schema.field(0)])
        settings = self._settings | {"compression": "none", "use_dictionary": False, "write_statistics": False}
        sink = pyarrow.BufferOutputStream()
        with pyarrow.parquet.ParquetWriter(sink, alone, **settings) as writer:
            writer.write_batch(pyarrow.RecordBatch.from_arrays([batch.column(name)], schema=alone))
        with pyarrow.parquet.ParquetFile(pyarrow.BufferReader(sink.getvalue())) as file:
            chunk = file.metadata.row_group(0).column(0)
        self._known[batch.num_rows] = before = int(chunk.total_compressed_size) - _values(batch.column(name)).nbytes
        return before

    def commit(self, record: str) -> None:
        """Finish the file, with what it is in its metadata."""
        with self._output.naming_errors():
            self._writer.close({RECORD_KEY: record})
            self._sink.flush()
        self._output.commit()

    def __exit__(self, *exception: object) -> None:
        self._writer.__exit__(*exception)
        self._output.__exit__(*exception)


def _leaf(field: Any) -> str:
    """Return the path of a column in Parquet, of a list the path of its numbers."""
    path, kind = field.name, field.type
    while hasattr(kind, "value_type") and hasattr(kind, "value_field"):
        path, kind = f"{path}.list.element", kind.value_type
    return str(path)


def _values(array: Any) -> npt.NDArray[Any]:
    """Return the numbers of a column of lists of any depth, or the bytes of one of a fixed width."""
    while hasattr(array, "flatten") and hasattr(array.type, "value_field"):
        array = array.flatten()
    if not hasattr(array.type, "byte_width"):
        return np.asarray(array)
    width = array.type.byte_width
    if str(array.type).startswith("fixed_size_binary"):
        return np.frombuffer(array.buffers()[1], np.uint8)[array.offset * width :][: len(array) * width]
    return np.asarray(array.to_numpy(zero_copy_only=False))


class MappedPart:
    """A part that is read where it lies, in memory that the system can take back.

    Parameters
    ----------
    path : Path
        The file.

    Attributes
    ----------
    rows : int
        The number of its rows.
    size : int
        The number of its bytes.
    footer : str
        The SHA-256 of the end of the file, which says where everything is.
    record : bytes or None
        What it is, from its metadata.

    Raises
    ------
    InputError
        It is not a Parquet file.
    FileNotFoundError
        It does not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pyarrow = pyarrow = import_pyarrow("reading a folder of vectors")
        with path.open("rb") as file:
            try:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                self._bytes = np.frombuffer(self._map, np.uint8)
                self._file = pyarrow.parquet.ParquetFile(
                    pyarrow.BufferReader(pyarrow.py_buffer(self._bytes)), pre_buffer=False
                )
            except (pyarrow.ArrowException, ValueError, OSError) as cause:
                raise InputError(f"{path}: not a Parquet file: {cause}") from cause
        length = int.from_bytes(self._bytes[-8:-4].tobytes(), "little")
        self.footer = sha256(self._bytes[-8 - length :].tobytes()).hexdigest()
        metadata = self._file.metadata
        self.rows = int(metadata.num_rows)
        self.size = len(self._bytes)
        self.record = (metadata.metadata or {}).get(RECORD_KEY.encode())
        self.schema = self._file.schema_arrow
        #: The number of the first row of each row group, and of all rows at the end.
        self.starts = np.cumsum([0, *(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))])

    @property
    def groups(self) -> int:
        """The number of row groups."""
        return len(self.starts) - 1

    def table(self, columns: list[str]) -> Any:
        """Read columns of all rows, as a pyarrow Table."""
        self._require_whole()
        with self._naming_damage():
            return self._file.read(columns=columns, use_threads=False)

    def group(self, number: int, columns: list[str] | None = None) -> Any:
        """Read columns of a row group, as a pyarrow Table."""
        self._require_whole()
        # Without pyarrow's threads, which are slower for a few columns, and can be alive when the process ends.
        with self._naming_damage():
            return self._file.read_row_group(number, columns=columns, use_threads=False)

    def _require_whole(self) -> None:
        """Refuse a file that has been shortened, before it is read."""
        require_size(self._map, self.size, self.path)

    @contextmanager
    def _naming_damage(self) -> Iterator[None]:
        """Turn errors of pyarrow about damaged contents into one that names the file."""
        try:
            yield
        except (self._pyarrow.ArrowException, OSError) as cause:
            raise InputError(f"{self.path}: is damaged: {cause}; make the folder again") from cause

    def mapped(self, number: int, column: str, dtype: npt.DTypeLike, count: int) -> npt.NDArray[Any]:
        """Return the numbers of a column in a row group, in place.

        Parameters
        ----------
        number : int
            The row group.
        column : str
            The column.
        dtype : dtype
            What it has: float32, int32 or uint8.
        count : int
            How many numbers it has.

        Raises
        ------
        InputError
            They are not stored as `PartWriter` does, or the file was shortened.
        """
        self._require_whole()
        group = self._file.metadata.row_group(number)
        chunks = (group.column(i) for i in range(group.num_columns))
        chunk = next((one for one in chunks if one.path_in_schema.split(".")[0] == column), None)
        size = count * np.dtype(dtype).itemsize
        if chunk is None or not self._is_one_page(chunk, size):
            raise InputError(
                f"{self.path}: the column {column!r} of row group {number} is not stored as wordpiece-bert writes it; "
                "another program has written the file: make the folder again"
            )
        end = chunk.data_page_offset + chunk.total_compressed_size
        return self._bytes[end - size : end].view(np.dtype(dtype).newbyteorder("<"))

    def _is_one_page(self, chunk: Any, size: int) -> bool:
        """Return whether a column chunk is one plain page that ends with `size` bytes of numbers."""
        start, total = int(chunk.data_page_offset), int(chunk.total_compressed_size)
        if chunk.compression != "UNCOMPRESSED" or chunk.has_dictionary_page or start + total > self.size:
            return False
        # The header is in Thrift's compact protocol: the type 0, a page of data; its bytes uncompressed and compressed;
        # and in a structure of its own (0x2C) its number of values and their encoding, 0 for PLAIN.
        header = bytes(self._bytes[start : start + _HEADER_BYTES])
        kind, at = _number(header, 0)
        uncompressed, at = _number(header, at)
        compressed, at = _number(header, at)
        if header[at : at + 1] != b"\x2c":
            return False
        values, at = _number(header, at + 1)
        encoding, _ = _number(header, at)
        return (
            (kind, encoding, values) == (0, 0, chunk.num_values)
            and uncompressed == compressed >= size
            and 0 < total - compressed <= _HEADER_BYTES
        )


def opened_part(path: Path, expected: Part) -> MappedPart:
    """Open a part that a list has; an `InputError` if the file is another one."""
    part = MappedPart(path)
    if (part.rows, part.size, part.footer) != (expected.rows, expected.bytes, expected.footer):
        raise InputError(f"{path}: another program has changed it: make the folder again")
    return part


def _number(header: bytes, at: int) -> tuple[int, int]:
    """Read a field of Thrift that is a number of 32 bits; return it, −1 if there is none, and where the next begins."""
    if header[at : at + 1] != b"\x15":
        return -1, at
    value = shift = 0
    for position in range(at + 1, min(at + 6, len(header))):
        value |= (header[position] & 0x7F) << shift
        if header[position] < 0x80:
            return (value >> 1) ^ -(value & 1), position + 1
        shift += 7
    return -1, at
