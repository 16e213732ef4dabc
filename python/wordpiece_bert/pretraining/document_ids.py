"""Documents of Arrow columns with their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus import parquet
from wordpiece_bert.tokenizer.parameters import READING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt


def ids_of_column(values: Any, where: str, first_row: int = 0) -> npt.NDArray[np.uint64]:
    """Return the document ids in an Arrow array: integers as they are, negative ones as 2⁶⁴ less; strings hashed.

    Parameters
    ----------
    values : pyarrow.Array
        Integers or strings, without nulls.
    where : str
        The file or column, for messages.
    first_row : int, default 0
        The number of rows before these.

    Returns
    -------
    ndarray of uint64
        The ids.

    Raises
    ------
    InputError
        They are of another type, or one is null.
    """
    import pyarrow as pa

    kind = values.type
    if pa.types.is_dictionary(kind):
        values, kind = values.dictionary_decode(), kind.value_type
    if values.null_count:
        row = int(np.flatnonzero(np.asarray(values.is_null()))[0])
        raise InputError(
            f"{where}: the id in row {first_row + row + 1} is null; give each document one, or leave the ids out"
        )
    if pa.types.is_unsigned_integer(kind):
        return values.cast(pa.uint64()).to_numpy(zero_copy_only=False).astype(np.uint64, copy=False)  # type: ignore[no-any-return]
    if pa.types.is_signed_integer(kind):
        return values.cast(pa.int64()).to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)  # type: ignore[no-any-return]
    if kind in (pa.string(), pa.large_string(), pa.string_view()):
        return np.array([_core.text_document_id(value) for value in values.to_pylist()], np.uint64)
    raise InputError(f"{where}: ids are {kind}, but must be integers or strings")


def block_with_ids(
    name: str, first_row: int, texts: Any, ids: Any, errors: str, where: str
) -> tuple[_core.TextBlock, npt.NDArray[np.uint64]]:
    """Return a block of the texts in an Arrow column, and the document ids of the texts that it has.

    Parameters
    ----------
    name : str
        The name of the file, for the places of texts.
    first_row : int
        The number of rows before these.
    texts, ids : pyarrow.Array
        The columns.
    errors : str
        What happens to a text that is null or not UTF-8: ``"strict"``, ``"replace"`` or ``"skip"``.
    where : str
        What messages call the column of ids.

    Raises
    ------
    InputError
        A text cannot be read, or as for `ids_of_column`.
    """
    block = _core.TextBlock.from_arrow(
        name, first_row, [parquet.strings_of(parquet.import_pyarrow("Arrow columns"), texts)], errors
    )
    numbers = ids_of_column(ids, where, first_row)
    if block.skipped_count:
        # The place of a text ends in the number of its row, from 1.
        rows = [int(block.location(i).rpartition(" ")[2]) - 1 - first_row for i in range(len(block))]
        numbers = numbers[np.array(rows, np.int64)]
    return block, numbers


@completed_by(READING)
def column_ids(
    name: str, column: str, id_column: str, errors: str
) -> Iterator[tuple[_core.TextBlock, float, npt.NDArray[np.uint64]]]:
    """Read the documents of a Parquet file with their ids.

    Parameters
    ----------
    name : str
        The path of the file.
    column, id_column : str
        The columns with the texts and the ids.

    Yields
    ------
    block : _core.TextBlock
        The texts.
    share : float
        How much of the file has been read.
    ids : ndarray of uint64
        The ids of the texts, without the ids of skipped ones.

    Raises
    ------
    InputError
        As for `parquet_blocks` and `ids_of_column`.
    """
    pyarrow = parquet.import_pyarrow("reading Parquet")
    rows = 0
    with parquet.opened(pyarrow, name, [column]) as file:
        if file.schema_arrow.names.count(id_column) != 1:
            raise InputError(f"{name}: {parquet.missing_column(id_column, file.schema_arrow.names)}")
        total = max(file.metadata.num_rows, 1)
        for batch in parquet.batches(file, [column, id_column]):
            where = f"{name}, column {id_column!r}"
            block, ids = block_with_ids(name, rows, batch.column(column), batch.column(id_column), errors, where)
            rows += batch.num_rows
            yield block, rows / total, ids
