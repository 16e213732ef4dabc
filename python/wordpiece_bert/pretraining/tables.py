"""Examples as Arrow, Parquet and JSON lines, written atomically from an example folder."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.atomic_file import AtomicFile
from wordpiece_bert.corpus.parquet import import_pyarrow
from wordpiece_bert.pretraining.columns import column_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from wordpiece_bert.pretraining.columns import ExampleColumns, ShardArrays

__all__ = ["TABLE_SUFFIXES", "example_schema", "record_batch", "write_table"]

#: The formats that are tables, by suffix.
TABLE_SUFFIXES = {".arrow": "arrow", ".parquet": "parquet", ".jsonl": "jsonl"}


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


def record_batch(columns: ExampleColumns, schema: Any, label: str | None) -> Any:  # noqa: ANN401
    """Return rows as an Arrow record batch of this schema; columns that it does not name are left out."""
    pa = import_pyarrow("writing examples")
    arrays = {}
    for name, values in columns.tokens.items():
        arrays[name] = pa.ListArray.from_arrays(pa.array(columns.offsets), pa.array(values))
    if columns.pair_labels is not None and label is not None:
        arrays[label] = pa.array(columns.pair_labels)
        if columns.sequence_offsets is not None:
            arrays[label] = pa.ListArray.from_arrays(pa.array(columns.sequence_offsets), arrays[label])
    if columns.cu_seqlens is not None and columns.sequence_offsets is not None:
        offsets = columns.sequence_offsets + np.arange(len(columns.sequence_offsets), dtype=np.int32)
        arrays["cu_seqlens"] = pa.ListArray.from_arrays(pa.array(offsets), pa.array(columns.cu_seqlens))
    return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


def _json_lines(columns: ExampleColumns, label: str | None) -> Iterator[str]:
    """Yield each row as a line of JSON, with the columns in the order of the schema."""
    bounds = list(pairwise(columns.offsets.tolist()))

    def lists(values: Any) -> list[list[int]]:  # noqa: ANN401
        flat = values.tolist()
        return [flat[start:end] for start, end in bounds]

    found: dict[str, list[Any]] = {name: lists(columns.tokens[name]) for name in ("input_ids", "token_type_ids")}
    if columns.pair_labels is not None and label is not None:
        found[label] = columns.pair_labels.tolist()
        if columns.sequence_offsets is not None:
            found[label] = [found[label][a:b] for a, b in pairwise(columns.sequence_offsets.tolist())]
    found.update({name: lists(columns.tokens[name]) for name in ("labels", "position_ids") if name in columns.tokens})
    if columns.cu_seqlens is not None and columns.sequence_offsets is not None:
        flat = columns.cu_seqlens.tolist()
        starts = (columns.sequence_offsets + np.arange(len(columns.sequence_offsets))).tolist()
        found["cu_seqlens"] = [flat[a:b] for a, b in pairwise(starts)]
    for row in zip(*found.values(), strict=True):
        yield json.dumps(dict(zip(found, row, strict=True)), separators=(", ", ": ")) + "\n"


def write_table(
    path: Path,
    kind: str,
    shards: Iterable[ShardArrays],
    *,
    label: str | None,
    masked: bool,
    packed: bool,
    show: Callable[[int], object],
) -> None:
    """Write the rows of shards to a file, which appears when it is complete.

    Parameters
    ----------
    path : Path
        The file.
    kind : {"arrow", "parquet", "jsonl"}
        The format.
    shards : iterable of ShardArrays
        The rows.
    label : str or None
        The name of the label of pairs.
    masked, packed : bool
        Whether rows have labels of tokens, and several sequences.
    show : callable
        Called with the number of rows written so far.

    Raises
    ------
    InputError
        pyarrow is needed and not installed.
    OSError
        The file cannot be written.
    """
    with AtomicFile(path) as output:
        output.begin()
        rows = 0
        if kind == "jsonl":
            with output.naming_errors():
                for columns in (columns for shard in shards for columns in column_blocks(shard)):
                    output.file.write("".join(_json_lines(columns, label)).encode())
                    rows += len(columns)
                    show(rows)
            output.commit()
            return
        pa = import_pyarrow(f"writing {kind}")
        schema = example_schema(label=label, masked=masked, packed=packed)
        with output.naming_errors():
            if kind == "parquet":
                writer = pa.parquet.ParquetWriter(output.file, schema, compression="zstd")
            else:
                writer = pa.ipc.new_file(output.file, schema)
            try:
                for columns in (columns for shard in shards for columns in column_blocks(shard)):
                    writer.write_batch(record_batch(columns, schema, label))
                    rows += len(columns)
                    show(rows)
                writer.close()
            except BaseException:
                with suppress(OSError, pa.ArrowException):  # its destructor would write to a closed file
                    writer.close()
                raise
        output.commit()
