"""Files whose entire contents are documents, each with its path as id."""

from __future__ import annotations

import os
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import checked_choice, iterates
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.file_lists import STDIN
from wordpiece_bert.tokenizer.corpus.parquet import BLOCK_BYTES, import_pyarrow
from wordpiece_bert.tokenizer.corpus.text_reader import TextReader
from wordpiece_bert.vectors.layout import LISTING, UNFINISHED, part_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: The columns of the paths and the texts.
PATH, TEXT = "path", "text"
#: The suffix of the name of a folder of vectors, which has no documents.
SUFFIX = ".vectors"


class TextFiles:
    """The texts of files as the table that `Documents` reads.

    Parameters
    ----------
    given : path or iterable of paths
        Files, folders, or patterns such as ``docs/**/*.md``, as for `files_below`.
    errors : {"strict", "replace", "skip"}, default "strict"
        Whether a file that is not UTF-8 is an error, has its invalid bytes replaced, or is left out.

    Attributes
    ----------
    paths : list of str
        The files.
    skipped : dict
        The problem of each file that was left out, by its path.

    Raises
    ------
    InputError
        There is no file, or the path of one is not UTF-8.
    """

    def __init__(self, given: Any, errors: str = "strict") -> None:
        self._errors = checked_choice("errors", errors, ("strict", "replace", "skip"))
        self._pyarrow = pyarrow = import_pyarrow("a folder of vectors")
        found = files_below(given)
        odd = [path for path in found if path.encode(errors="ignore").decode() != path]
        self.skipped = {path: f"{path!r}: the path, which is the id of the document, is not UTF-8" for path in odd}
        if odd and errors != "skip":
            raise InputError(f"{self.skipped[odd[0]]}: rename the file, or leave it out by errors='skip'")
        self.paths = [path for path in found if path not in self.skipped]
        self.schema = pyarrow.schema([(PATH, pyarrow.string()), (TEXT, pyarrow.string())])

    @property
    def num_rows(self) -> int:
        """The number of files."""
        return len(self.paths)

    def iter_batches(self, rows: int, *, columns: Sequence[str], use_threads: bool) -> Iterator[Any]:
        """Yield record batches of at most so many rows, as a file of Parquet does."""
        del use_threads
        paths: list[str] = []
        texts: list[str] = []
        size = 0
        for path in self.paths:
            text = self._text(path)
            if text is None:
                continue
            paths.append(path)
            texts.append(text)
            size += len(text)
            if len(paths) >= rows or size >= BLOCK_BYTES:
                yield self._batch(paths, texts, columns)
                paths, texts, size = [], [], 0
        if paths:
            yield self._batch(paths, texts, columns)

    def _batch(self, paths: list[str], texts: list[str], columns: Sequence[str]) -> Any:
        batch = self._pyarrow.RecordBatch.from_pydict({PATH: paths, TEXT: texts}, schema=self.schema)
        return batch.select(list(columns))

    def _text(self, path: str) -> str | None:
        """Return the text of a file; None if it is left out."""
        reader = _core.TextReader([path], None, [], self._errors, None)
        found: list[str] = []
        while (block := reader.next_block()) is not None:
            found += block.texts()
            if block.skipped_count:
                self.skipped[path] = block.skipped[0]
        # An empty file has no text, and is a document without words.
        return None if path in self.skipped else "".join(found)


def files_below(given: Any) -> list[str]:
    """Return files, each once.

    Parameters
    ----------
    given : path or iterable of paths
        A file; a folder, which stands for all files in it and in folders below, in the order of their paths, except
        hidden ones and folders of vectors, by their names or files; or a pattern with ``*``, ``?`` and ``**``, unless a
        file has that name.

    Returns
    -------
    list of str
        Their paths, with ``/`` between the parts.

    Raises
    ------
    InputError
        There is no file, or a file is a table.
    FileNotFoundError
        A path does not exist.
    """
    listed = list(given) if iterates(given) and not isinstance(given, str | os.PathLike) else [given]
    found: dict[str, None] = {}
    named: list[str] = []
    for one in listed:
        if not isinstance(one, str | os.PathLike):
            raise InputError(f"documents must be paths of files and folders, not {type(one).__name__}")
        name = os.fspath(one)
        if os.path.isdir(name):
            found.update(dict.fromkeys(_below(name)))
        elif not os.path.exists(name) and has_magic(name):
            for match in sorted(glob(name, recursive=True)):
                if os.path.isfile(match):
                    found[_plain(match)] = None
        else:
            named.append(name)
            found[_plain(name)] = None
    if STDIN in named:
        raise InputError("standard input has no path, which is the id of a document: give files and folders")
    if named:
        TextReader(named, separator=None)  # it refuses tables, and what is not a file
    if not found:
        shown = ", ".join(map(str, listed[:3])) or "the list"
        raise InputError(f"{shown}: there is no file; give files, folders, or patterns such as 'docs/**/*.md'")
    return list(found)


def _below(folder: str) -> Iterator[str]:
    """Yield the files of a folder and of folders below."""
    for home, folders, names in os.walk(folder):
        if UNFINISHED in folders or (LISTING in names and any(part_number(name) is not None for name in names)):
            names, folders[:] = [], []
        folders[:] = sorted(name for name in folders if not name.startswith(".") and not name.endswith(SUFFIX))
        for name in sorted(names):
            if not name.startswith("."):
                yield _plain(os.path.join(home, name))


def _plain(path: str) -> str:
    return Path(os.path.normpath(path)).as_posix()
