"""Texts of tables with their ids, in blocks, for ``wordpiece-bert embed`` into a file that keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert import _core
from wordpiece_bert.cli import arguments
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.parquet import import_pyarrow, strings_of
from wordpiece_bert.vectors.documents import Documents

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from wordpiece_bert.tokenizer.corpus.text_reader import StrPath


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
        self._block_texts = block_texts
        self._total = self._documents.count
        self.field = self._documents.schema.field(0)
        self.ids: Any = None
        self.size: int | None = sum(Path(name).stat().st_size for name in files)
        self._bytes = self.size or 0
        self.bytes_read = self.count = self.skipped_count = 0
        self.skipped: list[str] = []

    def __iter__(self) -> Iterator[_core.TextBlock]:
        for name, first, table in self._documents.located(texts=True):
            step = self._block_texts or max(1, len(table))
            for start in range(0, len(table), step):
                some = table.slice(start, step)
                texts = some.column("").combine_chunks()
                block = _core.TextBlock.from_arrow(name, first + start, [strings_of(self._pyarrow, texts)], "strict")
                self.ids = some.column(self.field.name)
                self.count += len(block)
                self.bytes_read = self._bytes * self.count // max(self._total, 1)
                yield block


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
