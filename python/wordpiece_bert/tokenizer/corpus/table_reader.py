"""Columns of tables in memory: CSV, TSV, JSON lines and Parquet files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import checked_choice, checked_strings
from wordpiece_bert._internal.texts import is_missing
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import InputError, TrainingWarning
from wordpiece_bert.tokenizer.corpus.column_blocks import separated_blocks, separated_header, separator_format
from wordpiece_bert.tokenizer.corpus.parquet import import_pyarrow, missing_column

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    #: For columns by name, a function from a value to what is wrong with it; None if nothing is.
    Checks = Mapping[str, Callable[[Any], str | None]]

#: What happens to a row with a value that is missing or wrong.
RowErrors = Literal["strict", "skip"]


def read_columns(
    file: str | os.PathLike[str],
    columns: Sequence[str],
    *,
    checks: Checks | None = None,
    errors: RowErrors = "strict",
) -> dict[str, list[Any]]:
    r"""Read columns of a table.

    Parameters
    ----------
    file : str or PathLike
        A file whose name ends in ``.csv``, ``.tsv``, ``.jsonl``, ``.ndjson`` or ``.parquet``. Files with separators
        have a header line, are UTF-8, and may be compressed (``.csv.gz``, ``.tsv.zst``).
    columns : sequence of str
        The names of the columns.
    checks : mapping of str to callable, optional
        For some columns, a function from a value to what is wrong with it, or None, such as
        `wordpiece_bert.finetune.labels.class_problem`. Such a function also gets values that are missing (None, NaN).
    errors : {"strict", "skip"}, default "strict"
        What happens to a row with a value that is missing or wrong: an error, or the row is left out and counted.

    Returns
    -------
    dict of str to list
        The values of each column: str from files with separators, else what the file holds.

    Raises
    ------
    InputError
        The file has another format, no such column or no rows, or a value is missing or wrong; the message has the
        line.

    Warns
    -----
    TrainingWarning
        Rows were left out; the message has their number, and the line and the problem of the first.

    Examples
    --------
    >>> from pathlib import Path
    >>> from wordpiece_bert.finetune.data import read_columns
    >>> _ = Path("reviews.csv").write_text(
    ...     "text,label,date\na great film,good,2024\na dull film,bad,2025\n"
    ... )
    >>> read_columns("reviews.csv", ["text", "label"])
    {'text': ['a great film', 'a dull film'], 'label': ['good', 'bad']}
    """
    found, skipped = read_table(file, columns, checks=checks, errors=errors)
    if skipped:
        count = len(skipped) + len(next(iter(found.values())))
        warn(f"{len(skipped):,} of {count:,} rows were skipped, the first at {skipped[0]}", TrainingWarning)
    return found


def read_table(
    file: str | os.PathLike[str],
    columns: Sequence[str],
    *,
    checks: Checks | None = None,
    errors: RowErrors = "strict",
    optional: Sequence[str] = (),
) -> tuple[dict[str, list[Any]], list[str]]:
    """Return what `read_columns` does, and the place and the problem of each row that was left out.

    Columns that are `optional` have None where a row, or the table, has none.
    """
    columns = checked_strings("columns", columns)
    checked_choice("errors", errors, ("strict", "skip"))
    path = Path(file)
    suffix = path.suffix.lower()
    if separator_format(str(path)) is not None:
        names = separated_header(str(path)) if optional else []
        rows = separated_rows(path, [*columns, *(name for name in optional if name in names)])
    elif suffix in (".jsonl", ".ndjson"):
        rows = json_rows(path)
    elif suffix == ".parquet":
        rows = _parquet(path, columns, optional)
    else:
        raise InputError(f"{path}: the name must end in .csv, .tsv, .jsonl, .ndjson or .parquet")
    found: dict[str, list[Any]] = {name: [] for name in (*columns, *optional)}
    skipped: list[str] = []
    kept = 0
    for where, row in rows:
        if absent := [name for name in columns if name not in row]:
            problem: str | None = f": {missing_column(absent[0], list(map(str, row)))}"
        else:
            problem = _problem(row, found, checks or {}, optional)
        if problem is None:
            kept += 1
            for name, values in found.items():
                values.append(row.get(name))
        elif errors == "strict":
            raise InputError(f"{path}, {where}{problem}")
        else:
            skipped.append(f"{path}, {where}{problem}")
    if not kept:
        raise InputError(f"{path}: there are no rows{f' without a problem: {skipped[0]}' if skipped else ''}")
    return found, skipped


def _problem(row: Mapping[str, Any], columns: Iterable[str], checks: Checks, optional: Sequence[str]) -> str | None:
    """Return what is wrong with a row, and in which column, as the end of a message."""
    for name in columns:
        if name not in checks:
            if name not in optional and is_missing(row[name]):
                return f": the column {name!r} has no value"
        elif problem := checks[name](row.get(name)):
            return f", column {name!r}: {problem}"
    return None


def separated_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a CSV or TSV file, each with its place in the file.

    Raises
    ------
    InputError
        As for `separated_blocks`.
    """
    for block, _ in separated_blocks([str(path)], columns):
        for number, row in enumerate(block.texts()):
            values = row if isinstance(row, tuple) else (row,)
            where = block.location(number).removeprefix(f"{path} ")
            yield where, dict(zip(columns, values, strict=True))


def json_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of a file of JSON lines, which may be compressed, each with its place in the file.

    Raises
    ------
    InputError
        A line is not UTF-8, or no JSON object.
    """
    reader = _core.TextReader([str(path)], "\n", [], "strict", None)
    while (block := reader.next_block()) is not None:
        for number, line in enumerate(block.texts()):
            if not line.strip():
                continue
            where = block.location(number).removeprefix(f"{path} ")
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}, {where}: {error}") from None
            if not isinstance(row, dict):
                raise InputError(f"{path}, {where}: a JSON object is needed, not {line.strip()[:40]!r}")
            yield where, row


def _parquet(path: Path, columns: Sequence[str], optional: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    pyarrow = import_pyarrow(f"{path}: reading Parquet")
    try:
        file = pyarrow.parquet.ParquetFile(path)
    except pyarrow.ArrowInvalid as error:
        raise InputError(f"{path}: {error}") from None
    known = file.schema_arrow.names
    named = [*columns, *(name for name in optional if name in known)]
    for name in named:
        if known.count(name) != 1:
            raise InputError(f"{path}: {missing_column(name, known)}")
    for number, row in enumerate(file.read(columns=named).to_pylist(), 1):
        yield f"row {number}", row
