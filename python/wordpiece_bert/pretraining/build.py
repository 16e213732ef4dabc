"""`build_token_store`: text files to a token store."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import check_instance, iterates, whole_number
from wordpiece_bert._internal.file_locks import only_writer
from wordpiece_bert._internal.numerics import versioned
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.progress import shown_progress
from wordpiece_bert._internal.signals import telling
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.document_ids import column_ids
from wordpiece_bert.pretraining.parameters import RUN, SHARD_TOKENS, STORING
from wordpiece_bert.pretraining.store import TokenStore
from wordpiece_bert.pretraining.store_writer import StoreWriter
from wordpiece_bert.pretraining.storing_options import StoringOptions
from wordpiece_bert.tokenizer.corpus.column_blocks import column_blocks, separated_blocks, separator_format
from wordpiece_bert.tokenizer.corpus.file_lists import STDIN, warn_repeated
from wordpiece_bert.tokenizer.corpus.text_reader import TextReader
from wordpiece_bert.tokenizer.parameters import READING
from wordpiece_bert.tokenizer.parts import plain_core
from wordpiece_bert.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert.pretraining.parameters import DocumentRule, OnError, SentenceRule, StoredIds
    from wordpiece_bert.tokenizer.corpus.text_reader import StrPath


def fingerprint_of(tokenizer: Tokenizer) -> str:
    """Return the SHA-256 of all that determines the ids of a text: vocabulary, added tokens, normalizer and so on."""
    return hashlib.sha256(versioned(plain_core(tokenizer, "a token store").identity()).encode()).hexdigest()


@completed_by(STORING, RUN, READING)
def build_token_store(
    tokenizer: Tokenizer,
    files: StrPath | Iterable[StrPath],
    output: StrPath,
    *,
    documents: DocumentRule = "blank-line",
    sentences: SentenceRule = "lines",
    abbreviations: Iterable[str] | None = None,
    field: str | None = None,
    column: str | None = None,
    id_field: str | None = None,
    id_column: str | None = None,
    dtype: StoredIds | None = None,
    shard_tokens: int = SHARD_TOKENS,
    part: tuple[int, int] | None = None,
    errors: OnError = "strict",
    threads: int | None = None,
    show_progress_bar: bool | None = None,
) -> TokenStore:
    """Tokenize files into a token store, in bounded memory.

    Files become documents, documents sentences, sentences ids. The store is written shard by shard, and ``index.json``
    last. A run that was killed resumes after its last complete shard when the same call is made again, and the bytes
    are the same as from an unbroken run; a finished store is returned as it is. A shard that is no longer as it was
    written is made again.

    Parameters
    ----------
    tokenizer : Tokenizer
        The tokenizer. Sentences are tokenized one by one, without special tokens, truncation and padding.
    files : path, or iterable of paths
        UTF-8 files, also compressed (``.gz``, ``.zst``); ``-`` is standard input.
    output : path
        The folder of the store, which is created.

    Returns
    -------
    TokenStore
        The store.

    Raises
    ------
    InputError
        An argument is wrong; a text cannot be read; no document has a token; an id does not fit `dtype`; or `output`
        holds something else, or a store begun with other arguments or with inputs of other sizes, or is being written
        by another process.
    OSError
        A file cannot be read or written.

    Examples
    --------
    >>> store = build_token_store(
    ...     tokenizer, ["wiki_0.txt", "wiki_1.txt.gz"], "wiki.tokens"
    ... )  # doctest: +SKIP
    >>> store.documents, store.tokens  # doctest: +SKIP
    (2093122, 1072344576)
    """
    check_instance("tokenizer", tokenizer, Tokenizer)
    options = StoringOptions(
        documents=documents,
        sentences=sentences,
        abbreviations=abbreviations,
        field=field,
        column=column,
        id_field=id_field,
        id_column=id_column,
        dtype=dtype,
        shard_tokens=shard_tokens,
        part=part,
        errors=errors,
    ).checked()
    numbers, names = _part_of(files, part)
    inputs = _Inputs(names, options)
    folder, recorded = Path(output), options.recorded(inputs.sizes)
    builder = options.builder(tokenizer, numbers, threads)
    with only_writer(folder), StoreWriter(folder, builder, tokenizer, fingerprint_of(tokenizer), recorded) as writer:
        if not writer.finished:
            with telling(writer.kept):
                inputs.write(writer, show=show_progress_bar)
        return TokenStore(folder)


def _part_of(files: StrPath | Iterable[StrPath], part: object) -> tuple[list[int], list[str]]:
    """Return the numbers and the names of the files of a part."""
    single = isinstance(files, str | bytes | os.PathLike) or not iterates(files)
    listed: list[Any] = [files] if single else list(files)  # type: ignore[arg-type]
    numbers = list(range(len(listed)))
    if part is not None:
        given: list[Any] = list(part) if isinstance(part, tuple | list) else []
        if len(given) != 2:
            raise InputError(f"part must be (i, n) with whole numbers i below n, not {part!r:.80}")
        first, count = whole_number("part[0]", given[0], 0), whole_number("part[1]", given[1], 1)
        if first >= count:
            raise InputError(f"part must be (i, n) with i below n, not {part!r:.80}")
        numbers = numbers[first::count]
        if not numbers and listed:
            raise InputError(f"part {first} of {count} has no file: there are {len(listed)}")
    return numbers, [listed[number] for number in numbers]


class _Inputs:
    """The files of a store, and how documents are read from them."""

    def __init__(self, files: list[str], options: StoringOptions) -> None:
        self._options = options
        # It checks the paths, and that JSON and Parquet are not read as text.
        reader = TextReader(files, field=options.field, column=options.column, errors=options.errors)
        self.files = list(reader.files)
        warn_repeated(self.files)
        self.sizes = [None if name == STDIN else Path(name).stat().st_size for name in self.files]

    def write(self, writer: StoreWriter, *, show: bool | None) -> None:
        """Read the files that are not in the store yet, and finish it."""
        first = writer.first_input
        done = sum(size or 0 for size in self.sizes[:first])
        total = None if None in self.sizes else sum(size or 0 for size in self.sizes)
        with shown_progress(total, "B", show) as bar:
            for block, bytes_read, number, ids in self._blocks(first):
                writer.add(block, input_index=number, ids=ids)
                bar.update(done + bytes_read, tokens=writer.counts["tokens"])
            writer.finish()

    def _blocks(self, first: int) -> Iterator[tuple[_core.TextBlock, int, int | None, npt.NDArray[np.uint64] | None]]:
        """Yield blocks of texts from a file on: the block, the bytes read, the number of its file, and document ids."""
        if self._options.column is not None:
            yield from self._table_blocks(first, self._options.column)
            return
        names = [None if name == STDIN else name for name in self.files[first:]]
        fields = [name for name in (self._options.field, self._options.id_field) if name is not None]
        reader = _core.TextReader(names, "\n", fields, self._options.errors, None, self._options.id_field is not None)
        while (block := reader.next_block()) is not None:
            yield block, block.bytes_read, None, None

    def _table_blocks(
        self, first: int, column: str
    ) -> Iterator[tuple[_core.TextBlock, int, int | None, npt.NDArray[np.uint64] | None]]:
        before = 0
        for number in range(first, len(self.files)):
            name, size = self.files[number], self.sizes[number] or 0
            if separator_format(name) is not None:
                columns = [column] if self._options.id_column is None else [column, self._options.id_column]
                has_ids = self._options.id_column is not None
                for block, bytes_read in separated_blocks([name], columns, self._options.errors, second_is_id=has_ids):
                    yield block, before + bytes_read, number, None
            elif self._options.id_column is None:
                for block, bytes_read in column_blocks([(name, size, None)], [column], self._options.errors):
                    yield block, before + bytes_read, number, None
            else:
                for block, share, ids in column_ids(name, column, self._options.id_column, self._options.errors):
                    yield block, before + round(share * size), number, ids
            before += size
