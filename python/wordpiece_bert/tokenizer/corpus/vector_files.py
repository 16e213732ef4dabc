"""Reads files of vectors, as `vector_writers` writes them: NumPy arrays memory-mapped, the others into memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from wordpiece_bert._internal.ordinary_file import require_ordinary_file
from wordpiece_bert._internal.safe_json import BYTE_ORDER_MARK
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.file_formats import VECTOR_FORMATS
from wordpiece_bert.tokenizer.corpus.parquet import import_pyarrow
from wordpiece_bert.tokenizer.corpus.vector_fingerprint import METADATA_KEY, read_sidecar
from wordpiece_bert.tokenizer.corpus.vector_writers import COLUMN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# So much of a value is in a message.
_SHOWN = 40


class StoredVectors(NamedTuple):
    """What a file of vectors has."""

    #: The vectors, [n, d].
    vectors: npt.NDArray[Any]
    #: Their fingerprint as it is stored, JSON; None if the file has none.
    record: bytes | None


def read_vectors(path: Path) -> npt.NDArray[Any]:
    """Read the vectors of a file, [n, d]; its suffix is the format, one of `VECTOR_FORMATS`.

    A ``.npy`` file is memory-mapped, and may have any real dtype. The others have a column or field ``vector``.

    Raises
    ------
    InputError
        The file has another format, is damaged, is not an ordinary file, or has no vectors of one width; the message
        has the row, counted from 0, or the line.
    OSError
        The file cannot be read.
    """
    return read_stored(path).vectors


def read_stored(path: Path) -> StoredVectors:
    """Read the vectors of a file and their fingerprint, as `read_vectors`."""
    kind = path.suffix.removeprefix(".")
    if kind not in VECTOR_FORMATS:
        raise InputError(
            f"{path}: vectors are read from files that end in {', '.join('.' + one for one in VECTOR_FORMATS)}"
        )
    require_ordinary_file(path)
    try:
        stored = _READERS.get(kind, _from_arrow)(path)
    except _ContentError as cause:
        raise InputError(f"{path}: {cause}") from None
    except InputError:
        raise
    except Exception as cause:  # NumPy and pyarrow raise errors of any class for a damaged file
        if isinstance(cause, OSError) and cause.errno is not None:
            raise
        raise InputError(f"{path}: is not a .{kind} file of vectors, or is damaged: {_first_line(cause)}") from cause
    vectors = stored.vectors
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
        raise InputError(f"{path}: has {vectors.dtype} of shape {list(vectors.shape)}, not vectors [n, d]")
    return stored


class _ContentError(Exception):
    """The file is well formed, but does not have vectors of one width."""


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).partition("\n")[0]


def _from_npy(path: Path) -> StoredVectors:
    # Not np.load, which also opens archives and pickles.
    return StoredVectors(np.lib.format.open_memmap(path, mode="r"), read_sidecar(path))


def _from_json_lines(path: Path) -> StoredVectors:
    rows: list[npt.NDArray[np.float32]] = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.isspace():
                continue
            row = _row_of_line(line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line, number)
            if rows and len(row) != len(rows[0]):
                raise _ContentError(f"line {number} has {len(row)} numbers, the first vector {len(rows[0])}")
            rows.append(row)
    return StoredVectors(np.stack(rows) if rows else np.zeros((0, 0), np.float32), read_sidecar(path))


def _row_of_line(line: bytes, number: int) -> npt.NDArray[np.float32]:
    """Return the vector of a line of JSON."""

    def refuse_constant(name: str) -> NoReturn:
        raise _ContentError(f"line {number} has {name}, which is not a JSON number")

    try:
        value = json.loads(line.decode("utf-8"), parse_constant=refuse_constant)
    except (ValueError, RecursionError) as cause:
        raise _ContentError(f"line {number} is not JSON: {_first_line(cause)}") from cause
    if not isinstance(value, dict) or COLUMN not in value:
        raise _ContentError(f"is not a .jsonl file of vectors: line {number} is no object with {COLUMN!r}")
    vector = value[COLUMN]
    if not isinstance(vector, list):
        raise _ContentError(f"line {number}: {COLUMN!r} is {str(vector)[:_SHOWN]!r}, not a list of numbers")
    # Not left to NumPy, which makes numbers of strings and booleans, and NaN of null.
    if not set(map(type, vector)) <= {int, float}:
        other = next(item for item in vector if type(item) not in (int, float))
        raise _ContentError(f"line {number}: {COLUMN!r} has {json.dumps(other)[:_SHOWN]}, which is not a number")
    try:
        with np.errstate(over="ignore"):
            row = np.array(vector, np.float32)
    except OverflowError:
        row = np.array([np.inf], np.float32)
    if not np.isfinite(row).all():
        raise _ContentError(f"line {number}: {COLUMN!r} has a number that is too large for float32")
    return row


def _from_arrow(path: Path) -> StoredVectors:
    pyarrow = import_pyarrow(f"reading {path.suffix} files")
    record: bytes | None = None
    if path.suffix == ".parquet":
        with pyarrow.parquet.ParquetFile(path) as file:
            _check_column(pyarrow, file.schema_arrow)
            chunks = file.read(columns=[COLUMN]).column(COLUMN).chunks
            record = (file.metadata.metadata or {}).get(METADATA_KEY.encode())
            kind = file.schema_arrow.field(COLUMN).type
    else:
        chunks = []
        # Read, not mapped: a mapped file that is truncated meanwhile ends the process.
        with pyarrow.OSFile(str(path)) as source:
            opened = pyarrow.ipc.open_file if path.suffix == ".arrow" else pyarrow.ipc.open_stream
            with opened(source) as reader:
                _check_column(pyarrow, reader.schema)
                kind = reader.schema.field(COLUMN).type
                for batch, metadata in _record_batches(reader):
                    chunks.append(batch.column(COLUMN))
                    record = record if metadata is None else dict(metadata).get(METADATA_KEY.encode(), record)
    for chunk in chunks:
        chunk.validate(full=True)  # offsets that lead out of a buffer would end the process
    return StoredVectors(_stacked(kind, chunks), record)


def read_fingerprint(path: Path, kind: str) -> bytes | None:
    """Return the stored fingerprint of a Parquet file, an Arrow file or an Arrow stream, without its vectors."""
    pyarrow = import_pyarrow(f"reading {kind} files")
    try:
        if kind == "parquet":
            found = pyarrow.parquet.read_metadata(path).metadata or {}
            return found.get(METADATA_KEY.encode())
        record: bytes | None = None
        with pyarrow.OSFile(str(path)) as source:
            opened = pyarrow.ipc.open_file if kind == "arrow" else pyarrow.ipc.open_stream
            with opened(source) as reader:
                for _, metadata in _record_batches(reader):
                    record = record if metadata is None else dict(metadata).get(METADATA_KEY.encode(), record)
    except pyarrow.ArrowException as cause:
        raise InputError(f"{path}: is damaged: {_first_line(cause)}") from cause
    return record


def _record_batches(reader: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the record batches of an Arrow file or stream, and the metadata of each."""
    if hasattr(reader, "num_record_batches"):
        yield from (reader.get_batch_with_custom_metadata(i) for i in range(reader.num_record_batches))
    else:
        yield from reader.iter_batches_with_custom_metadata()


def _check_column(pyarrow: Any, schema: Any) -> None:
    """Check that a schema has one column of vectors, which is a list of numbers."""
    if schema.names.count(COLUMN) != 1:
        names = ", ".join(map(repr, schema.names))
        raise _ContentError(f"has no column {COLUMN!r}, or several; its columns are {names}"[:500])
    kind, types = schema.field(COLUMN).type, pyarrow.types
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    if not is_list or not (types.is_floating(kind.value_type) or types.is_integer(kind.value_type)):
        raise _ContentError(f"the column {COLUMN!r} is {str(kind)[:_SHOWN]}, not lists of numbers")


def _stacked(kind: Any, chunks: list[Any]) -> npt.NDArray[Any]:
    """Return the lists of a column as an array, [n, d]."""
    width = getattr(kind, "list_size", None)
    count = 0
    parts = []
    for chunk in chunks:
        if chunk.null_count:
            raise _ContentError(f"row {count + _first(chunk.is_null())} of the column {COLUMN!r} is null")
        if len(chunk):
            lengths = chunk.value_lengths().to_numpy(zero_copy_only=False)
            width = int(lengths[0]) if width is None else width
            if (lengths != width).any():
                row = int(np.flatnonzero(lengths != width)[0])
                raise _ContentError(
                    f"row {count + row} of the column {COLUMN!r} has {lengths[row]} numbers, row 0 has {width}"
                )
            flat = chunk.flatten()
            if flat.null_count:
                raise _ContentError(
                    f"row {count + _first(flat.is_null()) // max(1, width)} of the column {COLUMN!r} has a null"
                )
            parts.append(flat.to_numpy(zero_copy_only=False))
        count += len(chunk)
    if not parts:
        return np.zeros((0, width or 0), np.float32)
    return (parts[0] if len(parts) == 1 else np.concatenate(parts)).reshape(count, width or 0)


def _first(mask: Any) -> int:
    """Return the position of the first true value of an Arrow array of booleans."""
    return int(np.flatnonzero(mask.to_numpy(zero_copy_only=False))[0])


_READERS = {"npy": _from_npy, "jsonl": _from_json_lines}
