"""Files of tokens and vectors that were written in parts, put together: the bytes of one run."""

from __future__ import annotations

import base64
import json
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.atomic_file import AtomicFile
from wordpiece_bert._internal.same_file import refuse_input_as_output
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.arrow_writer import ArrowWriter
from wordpiece_bert.tokenizer.corpus.encoded_table import TOKEN_COLUMNS, Table
from wordpiece_bert.tokenizer.corpus.file_formats import VECTOR_FORMATS
from wordpiece_bert.tokenizer.corpus.parquet import import_pyarrow
from wordpiece_bert.tokenizer.corpus.part_records import in_order, read_record, record_path
from wordpiece_bert.tokenizer.corpus.row_writer import GROUP_ROWS, ArrowRowWriter, open_output
from wordpiece_bert.tokenizer.corpus.vector_fingerprint import METADATA_KEY, Fingerprint, VectorsDigest, read_sidecar
from wordpiece_bert.tokenizer.corpus.vector_writers import COLUMN, vector_writer
from wordpiece_bert.tokenizer.corpus.writers import check_output, table_writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from wordpiece_bert.tokenizer.corpus.part_records import FileRecord
    from wordpiece_bert.tokenizer.corpus.row_writer import Output

_COPIED = 4 << 20


def merge_files(parts: Sequence[Path], output: Path) -> int:
    """Put files together that were written as parts of one call.

    Parameters
    ----------
    parts : sequence of Path
        The files, in any order, each with its record beside it.
    output : Path
        The file to write, of the same format.

    Returns
    -------
    int
        The number of rows.

    Raises
    ------
    InputError
        A file is not a complete part, the parts are of several calls, one is missing or there twice, an id is in two
        rows, or the output has another format.
    OSError
        A file cannot be read or written.
    """
    records = [read_record(path) for path in parts]
    order = in_order([record.part for record in records], [str(path) for path in parts])
    parts, records = [parts[i] for i in order], [records[i] for i in order]
    call = records[0].part.call
    kind = str(call.get("format"))
    own = output.suffix.removeprefix(".")
    if own != kind and own in VECTOR_FORMATS:
        raise InputError(f"{output}: the parts are {kind}; choose an output that ends in .{kind}")
    check_output(output, [output.suffix], "parts")
    used = [path.with_name(name) for path, record in zip(parts, records, strict=True) for name in record.files]
    refuse_input_as_output([output], [*used, *map(record_path, parts)])
    ids = _Ids(call.get("id_column"))
    if call.get("command") == "embed" and call["vectors"]["dense"]:
        _merge_vectors(parts, records, output, kind, ids)
    elif kind == "npy":
        _merge_arrays(parts, records, output)
    elif kind == "jsonl":
        _merge_lines(parts, output, ids)
    else:
        _merge_batches(parts, output, kind, ids)
    record_path(output).unlink(missing_ok=True)  # of a part that had this name
    return sum(record.rows for record in records)


class _Ids:
    """The ids of rows, which must be different.

    Parameters
    ----------
    column : str or None
        Their column; None if the rows have none.
    """

    def __init__(self, column: str | None) -> None:
        self.column = column
        self._found: list[Any] = []

    def add(self, values: Any) -> None:
        """Add an array of pyarrow, or a list."""
        self._found.append(values)

    def check(self) -> None:
        """Raise an `InputError` if two rows have the same id."""
        if self.column is not None:
            pyarrow = import_pyarrow("comparing ids")
            arrays = [pyarrow.array(one) if isinstance(one, list) else one for one in self._found]
            if arrays:
                check_no_id_twice(pyarrow.chunked_array(arrays), self.column)


def check_no_id_twice(ids: Any, column: str) -> None:
    """Raise an `InputError` that names an id which two rows have; `ids` is a chunked array of pyarrow."""
    codes = ids.combine_chunks().dictionary_encode()
    codes = codes.combine_chunks() if hasattr(codes, "chunks") else codes
    numbers = codes.indices.to_numpy(zero_copy_only=False)
    if len(codes.dictionary) < len(numbers):
        often = int(np.argmax(np.bincount(numbers)))
        raise InputError(
            f"two rows have the same {column}, {codes.dictionary[often].as_py()!r}: ids must be different in all parts"
        )


def _merge_arrays(parts: Sequence[Path], records: Sequence[FileRecord], output: Path) -> None:
    """Merge the arrays of encoded rows, a file for each column."""
    writer: Any = None
    with ExitStack() as stack:
        for path, record in zip(parts, records, strict=True):
            arrays = {
                _column(path, name): np.lib.format.open_memmap(path.with_name(name), mode="r") for name in record.files
            }
            offsets = arrays.pop("row_offsets", None)
            length = None if offsets is not None else int(arrays["ids"].shape[1])
            if writer is None:
                writer = stack.enter_context(table_writer(output, length, _rows(arrays, offsets, length, 0, 0)))
                writer.begin()
            rows = len(arrays["ids"]) if offsets is None else len(offsets) - 1
            for start in range(0, rows, GROUP_ROWS):
                writer.append(_rows(arrays, offsets, length, start, min(start + GROUP_ROWS, rows)))
        writer.commit()


def _column(path: Path, name: str) -> str:
    """Return the column of which a file of a part has the array."""
    return "ids" if name == path.name else name.removeprefix(path.stem + ".").removesuffix(".npy")


def _rows(
    arrays: dict[str, Any], offsets: npt.NDArray[np.int64] | None, length: int | None, start: int, end: int
) -> Table:
    """Return some rows of arrays as a table."""
    bounds = np.arange(start, end + 1) * (length or 0) if offsets is None else np.array(offsets[start : end + 1])
    columns = {}
    for name, array in arrays.items():
        if name not in TOKEN_COLUMNS:
            columns[name] = array[start:end]
        elif length is None:
            columns[name] = array[int(bounds[0]) : int(bounds[-1])]
        else:
            columns[name] = array[start:end].reshape(-1, *array.shape[2:])
    return Table(bounds - bounds[0], columns)


def _merge_lines(parts: Sequence[Path], output: Path, ids: _Ids) -> None:
    """Merge JSON lines, of which nothing is read but the ids."""
    with AtomicFile(output) as written:
        written.begin()
        for path in parts:
            with path.open("rb") as file:
                written.write(iter(partial(file.read, _COPIED), b""))
            if ids.column is not None:
                with path.open("rb") as file:
                    ids.add([json.loads(line)[ids.column] for line in file])
        ids.check()
        written.commit()


class _Batches(ArrowRowWriter):
    """Writes record batches as they are read."""

    def __init__(self, output: Output, kind: str, schema: Any) -> None:
        super().__init__(output)
        self._writer, self._schema = ArrowWriter(kind), schema
        self.metadata: dict[str, str] | None = None

    def _finish(self) -> None:
        self._end(self.metadata)


def _merge_batches(
    parts: Sequence[Path], output: Path, kind: str, ids: _Ids, fingerprint: Fingerprint | None = None
) -> None:
    """Merge Parquet files, Arrow files or Arrow streams; with a fingerprint they have dense vectors."""
    digest = VectorsDigest()
    width = 0
    with ExitStack() as stack:
        writer: _Batches | None = None
        for path in parts:
            schema, batches = _read_batches(stack, path, kind)
            if writer is None:
                writer = stack.enter_context(_Batches(open_output(output, collect=True), kind, schema))
                writer.begin()
                width = schema.field(COLUMN).type.list_size if fingerprint else 0
            for batch in batches:
                if ids.column is not None:
                    ids.add(batch.column(ids.column))
                if fingerprint is not None:
                    numbers = batch.column(COLUMN).flatten().to_numpy(zero_copy_only=False)
                    digest.append(numbers.reshape(len(batch), width))
                writer.add_batch(batch)
        assert writer is not None
        ids.check()
        if fingerprint is not None:
            writer.metadata = {METADATA_KEY: replace(fingerprint, vectors=digest.hexdigest(width)).to_json()}
        writer.commit()


def _read_batches(stack: ExitStack, path: Path, kind: str) -> tuple[Any, Iterator[Any]]:
    """Return the schema with which a file was written, and its record batches."""
    pyarrow = import_pyarrow(f"reading {kind} files")
    try:
        if kind == "parquet":
            file = stack.enter_context(pyarrow.parquet.ParquetFile(path, pre_buffer=False))
            # What pyarrow reads has other names for the items of lists.
            stored = base64.b64decode(file.metadata.metadata[b"ARROW:schema"])
            schema = pyarrow.ipc.read_schema(pyarrow.py_buffer(stored)).remove_metadata()
            read = file.iter_batches(GROUP_ROWS, use_threads=False)
            tables = (pyarrow.Table.from_batches([batch]).cast(schema) for batch in read)
            return schema, (batch for table in tables for batch in table.to_batches())
        source = stack.enter_context(pyarrow.OSFile(str(path)))
        opened = pyarrow.ipc.open_file if kind == "arrow" else pyarrow.ipc.open_stream
        reader = stack.enter_context(opened(source))
    except (pyarrow.ArrowException, KeyError) as cause:
        raise InputError(f"{path}: is damaged: {cause}; make the part again") from cause
    if kind == "arrow":
        return reader.schema, (reader.get_batch(i) for i in range(reader.num_record_batches))
    return reader.schema, iter(reader)


def _merge_vectors(parts: Sequence[Path], records: Sequence[FileRecord], output: Path, kind: str, ids: _Ids) -> None:
    """Merge dense vectors, with a fingerprint of all texts."""
    texts = records[-1].texts
    if texts is None:
        raise InputError(f"{record_path(parts[-1])}: lacks the digest of the texts: make the part again")
    fingerprint = replace(_fingerprint(parts[0], kind), texts=texts[0], count=texts[1])
    rows = sum(record.rows for record in records)
    if rows != texts[1]:
        raise InputError(f"the parts have {rows:,} vectors, and their inputs {texts[1]:,} texts: they have changed")
    if kind not in ("npy", "jsonl"):
        _merge_batches(parts, output, kind, ids, fingerprint)
        return
    if kind == "npy":
        arrays = [np.lib.format.open_memmap(path, mode="r") for path in parts]
        with vector_writer(output, arrays[0].shape[1], kind) as writer:
            writer.begin()
            for array in arrays:
                for start in range(0, len(array), GROUP_ROWS):
                    writer.append(array[start : start + GROUP_ROWS])
            writer.commit(fingerprint)
        return
    with vector_writer(output, fingerprint.dimension, kind) as writer:
        writer.begin()
        for path in parts:
            with path.open("rb") as file:
                while lines := file.readlines(_COPIED):
                    # Not written from its numbers, but copied: the sign of 0 is lost in JSON's whole numbers.
                    found = [json.loads(line, parse_int=float)[COLUMN] for line in lines]
                    writer.append_encoded(b"".join(lines), np.array(found, np.float32))
                    if ids.column is not None:
                        ids.add([json.loads(line)[ids.column] for line in lines])
        ids.check()
        writer.commit(fingerprint)


def _fingerprint(path: Path, kind: str) -> Fingerprint:
    """Return the fingerprint of the vectors of a part."""
    from wordpiece_bert.tokenizer.corpus.vector_files import read_fingerprint

    record = read_sidecar(path) if kind in ("npy", "jsonl") else read_fingerprint(path, kind)
    if record is None:
        raise InputError(f"{path}: has no fingerprint: make the part again")
    return Fingerprint.from_json(record, str(path))
