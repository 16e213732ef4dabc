"""Texts of tables with their ids, in blocks, for ``wordpiece-bert embed`` into a file that keeps them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert.cli import arguments
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.column_blocks import suffix_of
from wordpiece_bert.tokenizer.corpus.parquet import import_pyarrow
from wordpiece_bert.tokenizer.corpus.text_reader import TextReader
from wordpiece_bert.vectors.documents import Documents

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from wordpiece_bert import _core
    from wordpiece_bert.tokenizer.corpus.text_reader import ReadingOptions, StrPath


class TextsWithIds:
    """Reads texts and ids of tables. What it yields and counts is as of a `TextReader`.

    Parameters
    ----------
    files : sequence of path
        Parquet, .csv, .tsv or .jsonl files.
    text_column, id_column : str
        The columns.
    block_texts : int or None
        The largest number of texts in a block.

    Attributes
    ----------
    field : pyarrow.Field
        The name and type of the ids.
    ids : pyarrow.ChunkedArray
        The ids of the block that was yielded last.
    """

    def __init__(self, files: Sequence[StrPath], text_column: str, id_column: str, block_texts: int | None) -> None:
        self._pyarrow = import_pyarrow("reading texts with their ids")
        self._documents = Documents(files, text_column, id_column, ())
        # The texts, with their places, come from the reader of every command, in the same order.
        self._readers = []
        for one in files:
            holder: ReadingOptions = (
                {"field": text_column}
                if suffix_of(os.fspath(one)) in (".jsonl", ".ndjson")
                else {"column": text_column}
            )
            self._readers.append(TextReader(one, block_texts=block_texts, **holder))
        self.field = self._documents.schema.field(0)
        self.ids: Any = None
        self.size: int | None = sum(Path(name).stat().st_size for name in files)
        self.bytes_read = self.count = self.skipped_count = 0
        self.skipped: list[str] = []

    def __iter__(self) -> Iterator[_core.TextBlock]:
        tables = self._documents.tables(texts=False)
        before = 0
        waiting = self._documents.schema.empty_table()
        for reader in self._readers:
            for block in reader:
                while len(waiting) < len(block):
                    waiting = self._pyarrow.concat_tables([waiting, next(tables)])
                self.ids = waiting.column(0).slice(0, len(block))
                waiting = waiting.slice(len(block))
                self.count += len(block)
                self.bytes_read = before + reader.bytes_read
                yield block
            before += reader.bytes_read


def texts_with_ids(options: argparse.Namespace, files: Sequence[StrPath], block_texts: int | None) -> TextsWithIds:
    """Return the reader of what the options of a command name.

    Raises
    ------
    InputError
        They name no column of texts, or do not go together.
    """
    names = [*options.text_column, *options.jsonl_field]
    if len(names) != 1:
        raise InputError("--id-column needs the column of the texts as well: give --text-column once")
    if "-" in files:
        raise InputError("--id-column reads files of tables: give .parquet, .csv, .tsv or .jsonl files")
    arguments.refuse(options, ("whole", "separator", "errors"), "is not for texts with ids: leave it out")
    return TextsWithIds(files, names[0], options.id_column, block_texts)
