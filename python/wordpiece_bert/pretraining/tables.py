"""Examples as Arrow, Parquet and JSON lines."""

from __future__ import annotations

import io
import json
from contextlib import ExitStack
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from wordpiece_bert.corpus.arrow_writer import ArrowWriter
from wordpiece_bert.corpus.parquet import import_pyarrow
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

    import numpy.typing as npt

    from wordpiece_bert import _core

__all__ = ["ArrowRows", "JsonRows", "ParquetRows", "example_schema", "record_batch"]

#: The columns with one entry for each token, in the order of the files.
_TOKENS = ("input_ids", "token_type_ids")


def example_schema(*, label: str | None, masked: bool, packed: bool) -> Any:
    """Return the Arrow schema of examples.

    Parameters
    ----------
    label : str or None
        The name of the label of pairs.
    masked, packed : bool
        Whether rows have labels of tokens, and several sequences.
    """
    pa = import_pyarrow("the schema of examples")
    fields = [("input_ids", pa.list_(pa.int32())), ("token_type_ids", pa.list_(pa.int8()))]
    if label is not None:
        fields.append((label, pa.list_(pa.int8()) if packed else pa.int8()))
    if masked:
        fields.append(("labels", pa.list_(pa.int32())))
    if packed:
        fields += [("position_ids", pa.list_(pa.int32())), ("cu_seqlens", pa.list_(pa.int32()))]
    return pa.schema(fields)


def record_batch(block: _core.ExampleBlock, schema: Any, label: str | None) -> Any:
    """Return rows as an Arrow record batch of a schema that `example_schema` returned."""
    pa = import_pyarrow("writing examples")
    arrays = block.arrays()
    offsets = _Offsets(arrays)
    columns = []
    for name in schema.names:
        values = pa.array(arrays["pair_labels" if name == label else name])
        bounds = offsets.of(name, label)
        columns.append(values if bounds is None else pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), values))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class _Offsets:
    """Where the entries of each row begin in the flat columns of a block."""

    def __init__(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        self._rows = arrays["row_offsets"]
        self._sequences = arrays.get("sequence_offsets")

    def of(self, name: str, label: str | None) -> npt.NDArray[np.int64] | None:
        """Return the offsets of a column, or None if it has one value a row."""
        if name == label:
            return self._sequences
        if name == "cu_seqlens" and self._sequences is not None:  # one more than sequences
            return self._sequences + np.arange(len(self._sequences))
        return self._rows


def _json_lines(block: _core.ExampleBlock, names: list[str], label: str | None) -> Iterator[str]:
    """Yield each row as a line of JSON."""
    arrays = block.arrays()
    offsets = _Offsets(arrays)
    columns: list[list[Any]] = []
    for name in names:
        values = arrays["pair_labels" if name == label else name].tolist()
        bounds = offsets.of(name, label)
        columns.append(values if bounds is None else [values[a:b] for a, b in pairwise(bounds.tolist())])
    for row in zip(*columns, strict=True):
        yield json.dumps(dict(zip(names, row, strict=True))) + "\n"


class _Rows:
    """What the writers of tables share.

    Parameters
    ----------
    label : str or None
        The name of the label of pairs.
    masked, packed : bool
        Whether rows have labels of tokens, and several sequences.
    """

    #: Whether a file can be continued.
    resumes = True

    def __init__(self, *, label: str | None, masked: bool, packed: bool) -> None:
        self._label, self._masked, self._packed = label, masked, packed


class JsonRows(_Rows):
    """Writes rows as JSON lines."""

    def begin(self, file: BinaryIO, path: Path, offset: int) -> None:
        """Begin the file, or continue it."""
        del path, offset
        self._file = file
        names = [*_TOKENS, self._label, "labels" if self._masked else None]
        names += ["position_ids", "cu_seqlens"] if self._packed else []
        self._names = [name for name in names if name is not None]

    def write(self, block: _core.ExampleBlock, first: int) -> None:
        """Write the rows of a block from row `first` on."""
        self._file.write("".join(islice(_json_lines(block, self._names, self._label), first, None)).encode())

    def finish(self) -> None:
        """Do nothing: lines need no end."""

    def close(self) -> None:
        """Do nothing: the caller owns the file."""


class ArrowRows(_Rows):
    """Writes rows as an Arrow file, a record batch for each block."""

    _kind = "arrow"

    def __init__(self, *, label: str | None, masked: bool, packed: bool) -> None:
        super().__init__(label=label, masked=masked, packed=packed)
        self._schema = example_schema(label=label, masked=masked, packed=packed)
        self._stack = ExitStack()
        self._writer = ArrowWriter(self._kind)

    def begin(self, file: BinaryIO, path: Path, offset: int) -> None:
        """Begin the file, or continue it at an offset at which `write` had returned before.

        An Arrow file ends with the positions of its batches, which only its writer knows. So the batches that are there
        are read from the file, without copying them, and given to a new writer whose bytes are skipped so far.
        """
        self._stack.enter_context(self._writer)
        if offset == 0:
            self._writer.begin(file, self._schema)
            return
        pyarrow = self._writer.pyarrow
        file.seek(0)
        self._writer.begin(cast("BinaryIO", _Continued(file, offset)), self._schema)
        try:
            with (
                pyarrow.memory_map(str(path)) as mapped,
                pyarrow.ipc.open_stream(mapped.read_buffer(offset)[8:]) as batches,
            ):
                for batch in batches:  # what follows the first eight bytes of a file is a stream
                    batch.validate(full=True)  # offsets that lead out of a buffer would end the process
                    self._writer.write(batch)
        except (pyarrow.ArrowException, OSError) as cause:
            if isinstance(cause, OSError) and cause.errno is not None:
                raise  # the disk is full, not the file damaged
            raise InputError(
                f"{path}: is damaged, so it cannot be continued: {cause}; delete it and begin again"
            ) from cause

    def write(self, block: _core.ExampleBlock, first: int) -> None:
        """Write the rows of a block from row `first` on."""
        self._writer.write(record_batch(block, self._schema, self._label).slice(first))

    def finish(self) -> None:
        """Write the end of the file."""
        self._writer.close()

    def close(self) -> None:
        """Give up the writer, after an error too."""
        self._stack.close()


class ParquetRows(ArrowRows):
    """Writes rows as a Parquet file, a row group for each block. It cannot be continued."""

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
