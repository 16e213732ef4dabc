"""Columns of tables in memory: CSV, TSV, JSON lines and Parquet files."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert.corpus.columns import separated_blocks, separator_format
from wordpiece_bert.corpus.parquet import import_pyarrow, missing_column
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["read_columns"]


def read_columns(
    file: str | os.PathLike[str],
    columns: Sequence[str],
    *,
    checks: Mapping[str, Callable[[Any], str | None]] | None = None,
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
        `wordpiece_bert.finetune.labels.class_problem`.

    Returns
    -------
    dict of str to list
        The values of each column: str from files with separators, else what the file holds.

    Raises
    ------
    InputError
        The file has another format, no such column or no rows, or a value is missing or wrong; the message has the
        line.

    Examples
    --------
    >>> from pathlib import Path
    >>> from wordpiece_bert.finetune.data import read_columns
    >>> _ = Path("reviews.csv").write_text("text,label,date\na great film,good,2024\na dull film,bad,2025\n")
    >>> read_columns("reviews.csv", ["text", "label"])
    {'text': ['a great film', 'a dull film'], 'label': ['good', 'bad']}
    """
    path = Path(file)
    suffix = path.suffix.lower()
    if separator_format(str(path)) is not None:
        rows = _separated(path, columns)
    elif suffix in (".jsonl", ".ndjson"):
        rows = _json_lines(path)
    elif suffix == ".parquet":
        rows = _parquet(path, columns)
    else:
        raise InputError(f"{path}: the name must end in .csv, .tsv, .jsonl, .ndjson or .parquet")
    found: dict[str, list[Any]] = {name: [] for name in columns}
    for where, row in rows:
        for name in columns:
            if name not in row:
                raise InputError(f"{path}, {where}: {missing_column(name, list(map(str, row)))}")
            value = row[name]
            if value is None or (isinstance(value, float) and math.isnan(value)):
                raise InputError(f"{path}, {where}: the column {name!r} has no value")
            if checks and name in checks and (problem := checks[name](value)):
                raise InputError(f"{path}, {where}, column {name!r}: {problem}")
            found[name].append(value)
    if not rows:
        raise InputError(f"{path}: there are no rows")
    return found


def _separated(path: Path, columns: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    rows = []
    for block, _ in separated_blocks([str(path)], columns):
        for number, row in enumerate(block.texts()):
            values = row if isinstance(row, tuple) else (row,)
            where = block.location(number).removeprefix(f"{path} ")
            rows.append((where, dict(zip(columns, values, strict=True))))
    return rows


def _json_lines(path: Path) -> list[tuple[str, dict[str, Any]]]:
    rows = []
    with path.open(encoding="utf-8") as file:
        try:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise InputError(f"{path}, line {number}: a JSON object is needed, not {line.strip()[:40]!r}")
                rows.append((f"line {number}", row))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path}, line {len(rows) + 1}: {error}") from None
    return rows


def _parquet(path: Path, columns: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    pyarrow = import_pyarrow(f"{path}: reading Parquet")
    try:
        file = pyarrow.parquet.ParquetFile(path)
    except pyarrow.ArrowInvalid as error:
        raise InputError(f"{path}: {error}") from None
    known = file.schema_arrow.names
    rows = file.read(columns=[name for name in columns if name in known]).to_pylist()
    if rows and not rows[0]:
        raise InputError(f"{path}: {missing_column(columns[0], known)}")
    return [(f"row {number}", row) for number, row in enumerate(rows, 1)]
