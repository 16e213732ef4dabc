"""Examples as Arrow, Parquet and JSON lines."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from wordpiece_bert._internal.atomic_file import AtomicFile
from wordpiece_bert.corpus.parquet import import_pyarrow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    import numpy.typing as npt

    from wordpiece_bert import _core

__all__ = ["TableWriter", "example_schema", "record_batch"]

#: The columns with one entry for each token, in the order of the files.
_TOKENS = ("input_ids", "token_type_ids")


def example_schema(*, label: str | None, masked: bool, packed: bool) -> Any:  # noqa: ANN401
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


def record_batch(block: _core.ExampleBlock, schema: Any, label: str | None) -> Any:  # noqa: ANN401
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


class TableWriter:
    """Writes rows to an Arrow, Parquet or JSON lines file, which appears when it is complete. A context manager.

    Parameters
    ----------
    path : Path
        The file.
    kind : {"arrow", "parquet", "jsonl"}
        The format.
    label : str or None
        The name of the label of pairs.
    masked, packed : bool
        Whether rows have labels of tokens, and several sequences.
    """

    def __init__(self, path: Path, kind: str, *, label: str | None, masked: bool, packed: bool) -> None:
        self._kind, self._label = kind, label
        self._output = AtomicFile(path)
        self._pyarrow = None if kind == "jsonl" else import_pyarrow(f"writing {kind}")
        names = [*_TOKENS, label, "labels" if masked else None, *(("position_ids", "cu_seqlens") if packed else ())]
        self._names = [name for name in names if name is not None]
        if self._pyarrow is not None:
            self._schema = example_schema(label=label, masked=masked, packed=packed)
        self._writer: Any = None

    def __enter__(self) -> Self:
        self._output.begin()
        if self._pyarrow is not None and self._kind == "parquet":
            self._writer = self._pyarrow.parquet.ParquetWriter(self._output.file, self._schema, compression="zstd")
        elif self._pyarrow is not None:
            self._writer = self._pyarrow.ipc.new_file(self._output.file, self._schema)
        return self

    def write(self, block: _core.ExampleBlock) -> None:
        """Append the rows of a block.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        with self._output.naming_errors():
            if self._writer is not None:
                self._writer.write_batch(record_batch(block, self._schema, self._label))
            else:
                self._output.file.write("".join(_json_lines(block, self._names, self._label)).encode())

    def finish(self) -> None:
        """Complete the file and give it its name."""
        if self._writer is not None:
            with self._output.naming_errors():
                self._writer.close()
            self._writer = None
        self._output.commit()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None and self._pyarrow is not None:
            # An open writer would be closed by the garbage collector, and fail because its file is closed.
            with suppress(OSError, self._pyarrow.ArrowException):
                self._writer.close()
        self._output.__exit__(kind, error, trace)
