"""Texts out of files, block by block."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

from wordpiece_bert import _core
from wordpiece_bert.corpus.parquet import parquet_blocks
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Errors", "Fields", "ReadingOptions", "StrPath", "TextReader"]

StrPath = str | os.PathLike[str]
#: The name of a field or column; two names make pairs.
Fields = str | tuple[str, str]
Errors = Literal["strict", "replace", "skip"]


class ReadingOptions(TypedDict, total=False):
    """How files are read, as in `TextReader`."""

    #: What texts end with; None: each file is one text. ``"\\n"`` by default, and ``\\r\\n`` is one as well.
    separator: str | None
    #: The files hold JSON lines, with the text in this field (``"text"``, ``"meta.title"``); two fields make pairs.
    field: Fields | None
    #: The files are Parquet, with the texts in this column; two columns make pairs.
    column: Fields | None
    #: What to do about a text that cannot be read; "strict" by default.
    errors: Errors


STDIN = "-"
# Files whose lines are no texts, and what takes the texts out of them: an argument, an option of the command.
FIELD = ("field", "--jsonl-field")
COLUMN = ("column", "--parquet-column")
HOLDERS = {".jsonl": FIELD, ".ndjson": FIELD, ".parquet": COLUMN}
COMPRESSED = (".gz", ".zst")
# Texts left out whose reasons are kept; the others are counted.
SKIPPED_TOLD = 20


class TextReader:
    r"""Reads texts out of files: lines, parts between separators, whole files, fields of JSON lines, Parquet columns.

    Iterated over, it yields blocks: some megabytes of whole texts, each with the place it comes from. All but Parquet
    is read on a thread of its own, a block or two ahead. Gzip and Zstandard are decompressed, a byte order mark at the
    start of a file is left out. An empty text is a text; what follows the last separator is one where it is not empty.

    Parameters
    ----------
    files
        A path, or paths; ``-`` is standard input.
    separator
        What texts end with. Of ``"\n"`` a ``\r`` before it goes with it, and no other character ends a line; any other
        separator is taken as it is. None: each file is one text.
    field
        The files hold JSON lines, and the text stands in this field: a key, or keys with dots between (``meta.title``,
        ``answers.0``; a dot inside a key is written ``\.``). Two fields make pairs. Blank lines hold nothing.
    column
        The files are Parquet, and the texts are this column; two make pairs. Needs pyarrow.
    errors
        ``"strict"``: a text that cannot be read (bytes that are no UTF-8; a line that is no JSON; a field or value that
        is missing or no text) is an error with its file, line and byte offset, or row. ``"replace"``: bytes that are no
        UTF-8 become U+FFFD. ``"skip"``: such texts are left out and counted.
    block_texts
        The most texts in a block.

    Attributes
    ----------
    size
        Bytes to be read in all; None where nobody can know.
    bytes_read, count, skipped_count
        Bytes and texts read so far, texts left out.
    skipped
        What was wrong with the first texts left out, and where.

    Raises
    ------
    InputError
        A file is a folder, standard input is named twice, or files and what to read from them do not fit; while
        reading, a text that cannot be read.
    OSError
        A file that is not there or cannot be read.
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
        self._files = _listed(files)
        if separator is not None and not isinstance(separator, str):
            message = f"separator must be a str, or None to take each file as one text, not {separator!r}"
            raise InputError(message)
        fields, columns = _names("field", field), _names("column", column)
        if fields and columns:
            message = "give either field, for JSON lines, or column, for Parquet"
            raise InputError(message)
        for name in self._files:
            _check_holder(name, given="field" if fields else "column" if columns else None)
        sizes = [_size(name) for name in self._files]
        self.size = sum(size for size in sizes if size is not None) if None not in sizes else None
        self.bytes_read = 0
        self.count = 0
        self.skipped_count = 0
        self.skipped: list[str] = []
        self._blocks = (
            parquet_blocks([(name, size or 0) for name, size in zip(self._files, sizes, strict=True)], columns, errors)
            if columns
            else self._text_blocks(separator, fields, errors, block_texts)
        )

    def _text_blocks(
        self, separator: str | None, fields: list[str], errors: str, block_texts: int | None
    ) -> Iterator[tuple[_core.TextBlock, int]]:
        paths = [None if name == STDIN else name for name in self._files]
        reader = _core.TextReader(paths, separator, fields, errors, block_texts)

        def blocks() -> Iterator[tuple[_core.TextBlock, int]]:
            while (block := reader.next_block()) is not None:
                yield block, block.bytes_read

        return blocks()

    def __iter__(self) -> Iterator[_core.TextBlock]:
        for block, bytes_read in self._blocks:
            self.bytes_read = bytes_read
            self.count += len(block)
            self.skipped_count += block.skipped_count
            self.skipped += block.skipped[: SKIPPED_TOLD - len(self.skipped)]
            yield block


def _listed(files: object) -> list[str]:
    if isinstance(files, str | bytes | os.PathLike) or not isinstance(files, Iterable):
        files = [files]
    listed = []
    for file in files:
        path = os.fspath(file) if isinstance(file, str | os.PathLike) else None
        if not isinstance(path, str):
            message = f"files are paths, or - for standard input, not {type(file).__name__}: {repr(file)[:80]}"
            raise InputError(message)
        listed.append(path)
    if not listed:
        message = "no file to read: files is empty"
        raise InputError(message)
    if listed.count(STDIN) > 1:
        message = "standard input (-) can be read only once"
        raise InputError(message)
    return listed


def _names(argument: str, given: Fields | None) -> list[str]:
    names = [] if given is None else [given] if isinstance(given, str) else list(given)
    if given is not None and (not 1 <= len(names) <= 2 or not all(isinstance(name, str) for name in names)):
        message = f"{argument} must be a name, or two names for pairs, not {given!r}"
        raise InputError(message)
    return names


def _check_holder(name: str, given: str | None) -> None:
    """Refuse to take JSON or Parquet for text, and the reverse, where a file's name tells what it is."""
    suffixes = [suffix for suffix in Path(name).suffixes[-2:] if suffix not in COMPRESSED]
    needed = HOLDERS.get(suffixes[-1]) if suffixes and name != STDIN else None
    if needed is not None and needed[0] != given:
        message = f"{name}: name the {needed[0]} that has the texts: {needed[0]}='text' ({needed[1]} text)"
    elif given == "column" and name == STDIN:
        message = "Parquet cannot be read from standard input: give its path"
    else:
        return
    raise InputError(message)


def _size(name: str) -> int | None:
    if name == STDIN:
        return None
    path = Path(name)
    if path.is_dir():
        message = f"{name}: is a folder; name the files in it"
        raise InputError(message)
    size = path.stat().st_size
    return size if path.is_file() else None
