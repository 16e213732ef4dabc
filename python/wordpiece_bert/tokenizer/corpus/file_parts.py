"""Files divided among several processes: each gets entire files, and of Parquet files row groups."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.column_blocks import suffix_of
from wordpiece_bert.tokenizer.corpus.file_lists import STDIN, listed_files
from wordpiece_bert.tokenizer.corpus.parquet import import_pyarrow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Files with these suffixes have columns, and are not Parquet.
_OTHER_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson")


@dataclass(frozen=True)
class FilePart(os.PathLike[str]):
    """A file, or some row groups of a Parquet file; readers of files take it in the place of a path."""

    path: str
    #: The row groups; None for the entire file, and an empty range for nothing of it.
    groups: range | None = None

    def __fspath__(self) -> str:
        return self.path


def groups_of(file: object) -> range | None:
    """Return the row groups that are read of a file; None for all."""
    return file.groups if isinstance(file, FilePart) else None


def checked_part(part: Any) -> tuple[int, int]:
    """Return which part of how many is meant, counted from 0; an `InputError` unless it is one of them."""
    try:
        number, count = part
        whole = type(number) is int and type(count) is int
    except (TypeError, ValueError):
        whole = False
    if not whole:
        raise InputError(f"part must be two whole numbers, which part of how many, such as (0, 8), not {part!r}")
    if not 0 <= number < count:
        raise InputError(
            f"part {number}/{count}: parts are counted from 0, so of {count} there "
            + (f"are 0/{count} to {count - 1}/{count}" if count > 0 else "is none")
        )
    return number, count


def part_of_files(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], part: tuple[int, int], *, tables: bool
) -> list[FilePart]:
    """Return one part of files, of about the same size as the others; all parts one after the other are the files.

    Parameters
    ----------
    files : path or iterable of paths
        The files, in the same order for all parts.
    part : (int, int)
        Which part, counted from 0, of how many.
    tables : bool
        Whether files whose names do not end in .csv, .tsv or .jsonl are Parquet, which is divided at row groups. Any
        other file is in one part.

    Returns
    -------
    list of FilePart
        At least one; of an empty part it has nothing.

    Raises
    ------
    InputError
        There is no such part, or a file is standard input or no Parquet file.
    OSError
        A file cannot be read.
    """
    number, count = checked_part(part)
    names = listed_files(files)
    if STDIN in names:
        raise InputError("standard input cannot be divided into parts: give files")
    pieces: list[tuple[str, int | None, int]] = []
    for name in names:
        if tables and suffix_of(name) not in _OTHER_TABLES:
            pieces += [(name, group, size) for group, size in enumerate(_group_sizes(name))]
        else:
            pieces.append((name, None, Path(name).stat().st_size))
    chosen = _chosen([size for *_, size in pieces], number, count)
    found: list[FilePart] = []
    for name, group, _ in (pieces[i] for i in chosen):
        before = found[-1] if found else None
        if group is None:
            found.append(FilePart(name))
        elif before is not None and before.path == name and before.groups is not None and before.groups.stop == group:
            found[-1] = FilePart(name, range(before.groups.start, group + 1))
        else:
            found.append(FilePart(name, range(group, group + 1)))
    return found or [FilePart(names[0], range(0))]


def _chosen(sizes: Sequence[int], number: int, count: int) -> list[int]:
    """Return the pieces of a part: those whose middle is in its share of the bytes, so that they follow each other."""
    # A byte more each, so that pieces without any are divided too.
    total = sum(sizes) + len(sizes)
    found = []
    before = 0
    for i, size in enumerate(sizes):
        if (2 * before + size + 1) * count // (2 * total) == number:
            found.append(i)
        before += size + 1
    return found


def _group_sizes(name: str) -> list[int]:
    """Return the bytes of each row group of a Parquet file."""
    pyarrow = import_pyarrow("reading Parquet")
    try:
        metadata = pyarrow.parquet.read_metadata(name)
    except pyarrow.ArrowInvalid as cause:
        raise InputError(f"{name}: not a Parquet file: {cause}") from cause
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    return [sum(group.column(j).total_compressed_size for j in range(group.num_columns)) for group in groups]
