"""Columns of tables as blocks of texts: CSV and TSV, which the core reads, and Parquet, which pyarrow reads."""

from __future__ import annotations

import csv
import io
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from wordpiece_bert import _core
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.parquet import import_pyarrow, parquet_blocks
from wordpiece_bert.tokenizer.parameters import READING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COMPRESSED = (".gz", ".zst")
# The formats of tables with separators, by the suffix of a file; the core knows them by these names.
SEPARATED = {".csv": "csv", ".tsv": "tsv"}
# Other suffixes that a file with columns may not have; none at all, or one like .pq, is taken for Parquet.
NO_TABLES = (".txt", ".text", ".json", ".jsonl", ".ndjson")


def suffix_of(name: str) -> str:
    """Return the last suffix of a file's name in lower case, a compression's left out."""
    suffixes = [suffix for suffix in map(str.lower, Path(name).suffixes[-2:]) if suffix not in COMPRESSED]
    return suffixes[-1] if suffixes else ""


def separator_format(name: str) -> str | None:
    """Return ``"csv"`` or ``"tsv"`` for a file with separators, None for another, judging by its name."""
    return SEPARATED.get(suffix_of(name))


@completed_by(READING)
def column_blocks(
    files: Sequence[tuple[str, int, range | None]], columns: Sequence[str], errors: str, block_texts: int | None = None
) -> Iterator[tuple[_core.TextBlock, int]]:
    """Read the same columns of several tables, one after the other.

    Parameters
    ----------
    files : sequence of (str, int, range or None)
        Paths, sizes in bytes, and the row groups to read; None for all.
    columns : sequence of str
        One column, or two for pairs.
    block_texts : int, optional
        The largest number of texts in a block; Parquet files have blocks of their own.

    Yields
    ------
    block : _core.TextBlock
        The texts.
    bytes_read : int
        How many bytes have been read, of Parquet files estimated from the number of rows.

    Raises
    ------
    InputError
        A file is not a table, pyarrow is needed and not installed, or as for `separated_blocks` and `parquet_blocks`.
    """
    for name, *_ in files:
        if suffix_of(name) in NO_TABLES:
            raise InputError(f"{name}: only .csv, .tsv and Parquet files have columns")
        if separator_format(name) is None:
            import_pyarrow("reading Parquet")
    return _column_blocks(files, columns, errors, block_texts)


def _column_blocks(
    files: Sequence[tuple[str, int, range | None]], columns: Sequence[str], errors: str, block_texts: int | None
) -> Iterator[tuple[_core.TextBlock, int]]:
    before = 0
    for form, some in groupby(files, key=lambda file: separator_format(file[0])):
        group = list(some)
        if form is None:
            blocks = parquet_blocks(group, columns, errors)
        else:
            blocks = separated_blocks([name for name, *_ in group], columns, errors, block_texts)
        for block, bytes_read in blocks:
            yield block, before + bytes_read
        before += sum(size for _, size, _ in group)


@completed_by(column_blocks)
def separated_blocks(
    names: Sequence[str],
    columns: Sequence[str],
    errors: str = "strict",
    block_texts: int | None = None,
    *,
    second_is_id: bool = False,
) -> Iterator[tuple[_core.TextBlock, int]]:
    """Read columns of CSV files, or of TSV files, as the name of the first says.

    The first record of a file has the names of its columns. The rules are as in Python's `csv` in its strict mode:
    a field of a CSV file that begins with a quotation mark may hold commas, line breaks and doubled quotation marks; in
    a TSV file a quotation mark is an ordinary character. Empty lines are ignored, and an empty field is an empty text.

    Parameters
    ----------
    names : sequence of str
        The paths; also compressed files.
    columns : sequence of str
        The columns, any number of them.
    second_is_id : bool, default False
        Whether the second column has the ids of documents.

    Yields
    ------
    block : _core.TextBlock
        The texts: str, or tuples of str for several columns.
    bytes_read : int
        How many bytes have been read.

    Raises
    ------
    InputError
        A column is missing, which the message lists, or a record cannot be read: it has the line.
    """
    reader = _core.TextReader(
        names,
        None,
        [],
        errors,
        block_texts,
        second_is_id,
        columns=columns,
        table=separator_format(names[0]) or "csv",
    )
    while (block := reader.next_block()) is not None:
        yield block, block.bytes_read


def separated_header(name: str) -> list[str]:
    """Return the names of the columns of a CSV or TSV file, which is opened for them alone.

    Raises
    ------
    InputError
        They are not UTF-8, or one is too long. Other mistakes are left to `separated_blocks`.
    """
    reader = _core.TextReader([name], "\n", [], "strict", 1)
    texts = (text for block in iter(reader.next_block, None) for text in block.texts())
    lines = (line for text in texts for line in io.StringIO(f"{text}\n", newline=""))
    is_tsv = separator_format(name) == "tsv"
    records = csv.reader(
        lines, delimiter="\t" if is_tsv else ",", quoting=csv.QUOTE_NONE if is_tsv else csv.QUOTE_MINIMAL
    )
    try:
        return next(filter(None, records), [])  # empty lines do not count
    except csv.Error as error:
        raise InputError(f"{name}: the names of the columns cannot be read: {error}") from None
