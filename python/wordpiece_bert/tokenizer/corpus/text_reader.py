"""Reads the texts of files, block by block."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import iterates, whole_number
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.column_blocks import column_blocks, suffix_of
from wordpiece_bert.tokenizer.corpus.file_lists import STDIN, listed_files
from wordpiece_bert.tokenizer.corpus.file_parts import groups_of
from wordpiece_bert.tokenizer.parameters import READING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

StrPath = str | os.PathLike[str]
#: The name of a field or column; two names make pairs.
Fields = str | tuple[str, str]
Errors = Literal["strict", "replace", "skip"]


@completed_by(READING)
class ReadingOptions(TypedDict, total=False):
    """The options for reading files, for a dict that holds some of them."""

    separator: str | None
    field: Fields | None
    column: Fields | None
    errors: Errors


# Suffixes of files whose lines are not texts -> the argument that selects their texts.
HOLDERS = {".jsonl": "field", ".ndjson": "field", ".csv": "column", ".tsv": "column", ".parquet": "column"}
# The reasons for this many skipped texts are kept; the rest is counted.
REASONS_KEPT = 20


@completed_by(READING)
class TextReader:
    r"""Reads the texts of files: lines or other separated parts, entire files, fields of JSON lines, columns of tables.

    Iteration yields blocks of a few megabytes. A block holds complete texts and knows the location of each. Except for
    Parquet, a background thread reads one or two blocks ahead. Gzip and Zstandard are decompressed, and a byte order
    mark at the start of a file is skipped. An empty text counts as a text; the part after the last separator counts
    only if it is not empty.

    Parameters
    ----------
    block_texts : int, optional
        The largest number of texts in a block.

    Attributes
    ----------
    files : tuple of str
        The files.
    size : int or None
        The size of all files in bytes; None if it is unknown, as for standard input.
    bytes_read, count, skipped_count : int
        The bytes and texts read, and the texts skipped, so far.
    skipped : list of str
        The locations and problems of the first texts that were skipped.

    Raises
    ------
    InputError
        A file is a folder, standard input is given twice, or `field` or `column` do not fit the files; during
        iteration, a text cannot be read.
    OSError
        A file does not exist or cannot be read.
    """

    def __init__(
        self,
        files: StrPath | Iterable[StrPath],
        *,
        separator: str | None = "\n",
        field: Fields | None = None,
        column: Fields | None = None,
        errors: Errors = "strict",
        block_texts: int | None = None,
    ) -> None:
        given = [files] if isinstance(files, str | bytes | os.PathLike) or not iterates(files) else [*files]
        self.files = tuple(listed_files(given))
        parts = [groups_of(file) for file in given]
        if separator is not None and not isinstance(separator, str):
            raise InputError(f"separator must be a str, or None to read each file as one text, not {separator!r}")
        if block_texts is not None:
            block_texts = whole_number("block_texts", block_texts, 1, others="or None")
        fields, columns = _names("field", field), _names("column", column)
        if fields and columns:
            raise InputError("pass either field, for JSON lines, or column, for tables")
        if separator != "\n" and (fields or columns):
            argument, holders = ("field", "JSON lines") if fields else ("column", "tables")
            raise InputError(f"separator={separator!r} is for plain text: {argument} reads {holders}, a text each")
        for name in self.files:
            _check_holder(name, given="field" if fields else "column" if columns else None)
        # Without files it only checks the arguments: what is read of standard input is lost to another reader.
        _core.TextReader([], separator, fields, errors, block_texts)
        sizes = [_size(name) for name in self.files]
        self.size = sum(size for size in sizes if size is not None) if None not in sizes else None
        self.bytes_read = 0
        self.count = 0
        self.skipped_count = 0
        self.skipped: list[str] = []
        read = [
            (name, size or 0, groups)
            for name, size, groups in zip(self.files, sizes, parts, strict=True)
            if groups is None or len(groups)
        ]
        self._blocks = (
            column_blocks(read, columns, errors, block_texts)
            if columns
            else self._text_blocks([name for name, *_ in read], separator, fields, errors, block_texts)
        )

    def _text_blocks(
        self, files: list[str], separator: str | None, fields: list[str], errors: str, block_texts: int | None
    ) -> Iterator[tuple[_core.TextBlock, int]]:
        paths = [None if name == STDIN else name for name in files]
        reader = _core.TextReader(paths, separator, fields, errors, block_texts)
        while (block := reader.next_block()) is not None:
            yield block, block.bytes_read

    def __iter__(self) -> Iterator[_core.TextBlock]:
        for block, bytes_read in self._blocks:
            self.bytes_read = bytes_read
            self.count += len(block)
            self.skipped_count += block.skipped_count
            self.skipped += block.skipped[: REASONS_KEPT - len(self.skipped)]
            yield block


def _names(argument: str, given: Fields | None) -> list[str]:
    """Check the value of `field` or `column` and return its names."""
    if given is None:
        return []
    names: list[Any] = [given] if isinstance(given, str) or not iterates(given) else list(given)
    if not 1 <= len(names) <= 2 or not all(isinstance(name, str) for name in names):
        raise InputError(f"{argument} must be a name, or two names for pairs, not {given!r}")
    return names


def _check_holder(name: str, given: str | None) -> None:
    """Refuse to read JSON or a table as plain text, or the reverse, judging by a file's name."""
    needed = HOLDERS.get(suffix_of(name)) if name != STDIN else None
    if needed is not None and needed != given:
        message = f"{name}: pass the {needed} that holds the texts: {needed}='text'"
    elif given == "column" and name == STDIN:
        message = "a table cannot be read from standard input: pass the path of a file"
    else:
        return
    raise InputError(message)


def _size(name: str) -> int | None:
    """Return the size of a file in bytes, or None for standard input and pipes."""
    if name == STDIN:
        return None
    path = Path(name)
    if path.is_dir():
        raise InputError(f"{name}: is a folder; pass the files in it")
    size = path.stat().st_size
    return size if path.is_file() else None
