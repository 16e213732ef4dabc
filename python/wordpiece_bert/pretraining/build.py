"""`build_token_store`: text files to a token store."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import check_instance, checked_choice, checked_strings, whole_number
from wordpiece_bert._internal.file_locks import only_writer
from wordpiece_bert._internal.progress import Progress, shows_bars
from wordpiece_bert.corpus.columns import column_blocks, separated_blocks, separator_format
from wordpiece_bert.corpus.texts import STDIN, TextReader
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.document_ids import column_ids
from wordpiece_bert.pretraining.store import TokenStore
from wordpiece_bert.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert.corpus.texts import Errors, StrPath

__all__ = ["SHARD_TOKENS", "build_token_store", "fingerprint_of"]

#: The default of `shard_tokens`: 2²⁸ tokens, half a gigabyte of uint16.
SHARD_TOKENS = 1 << 28

_DOCUMENTS = ("blank-line", "line", "file")
_SENTENCES = ("lines", "split")
# Parts of a tokenizer.json that do not change the ids of a text.
_WITHOUT_EFFECT = ("version", "truncation", "padding", "post_processor", "decoder")


def fingerprint_of(tokenizer: Tokenizer) -> str:
    """Return the SHA-256 of all that determines the ids of a text: vocabulary, added tokens, normalizer and so on."""
    content = json.loads(tokenizer._inner.snapshot())
    for name in _WITHOUT_EFFECT:
        content.pop(name, None)
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def build_token_store(
    tokenizer: Tokenizer,
    files: StrPath | Iterable[StrPath],
    output: StrPath,
    *,
    documents: Literal["blank-line", "line", "file"] = "blank-line",
    sentences: Literal["lines", "split"] = "lines",
    abbreviations: Iterable[str] | None = None,
    field: str | None = None,
    column: str | None = None,
    id_field: str | None = None,
    id_column: str | None = None,
    dtype: Literal["uint16", "uint32"] | None = None,
    shard_tokens: int = SHARD_TOKENS,
    part: tuple[int, int] | None = None,
    errors: Errors = "strict",
    threads: int | None = None,
    show_progress_bar: bool | None = None,
) -> TokenStore:
    """Tokenize files into a token store, in bounded memory.

    Files become documents, documents sentences, sentences ids. The store is written shard by shard, and ``index.json``
    last. A run that was killed resumes after its last complete shard when the same call is made again, and the bytes
    are those of an unbroken run; a finished store is returned as it is. A shard that is no longer as it was written is
    made again.

    Parameters
    ----------
    tokenizer : Tokenizer
        The tokenizer. Sentences are tokenized one by one, without special tokens, truncation and padding.
    files : path, or iterable of paths
        UTF-8 files, also compressed (``.gz``, ``.zst``); ``-`` is standard input.
    output : path
        The folder of the store, which is created.
    documents : {"blank-line", "line", "file"}, default "blank-line"
        What a document is: the lines up to a blank one or the end of the file, one line, or one file.
    sentences : {"lines", "split"}, default "lines"
        What a sentence is: a line, or what ends in a line with ``.``, ``!``, ``?`` or a character like them. Splitting
        knows English abbreviations only, never ends a sentence after ``No.``, and cuts ``U.S. Army``.
    abbreviations : iterable of str, optional
        Words after which a full stop ends no sentence, in lower case without the stop; they replace the built-in list.
    field : str, optional
        The files are JSON lines with a document in this field (``"text"``, ``"meta.title"``); its lines are sentences.
    column : str, optional
        The files are CSV, TSV or Parquet with a document in this column. Parquet needs pyarrow.
    id_field, id_column : str, optional
        The field or column with the id of each document: a whole number or a string. By default ids are made of the
        numbers of the file and of the document in it.
    dtype : {"uint16", "uint32"}, optional
        The type of ids; by default uint16 if all ids of the tokenizer fit it.
    shard_tokens : int, default 2**28
        A shard ends after the document with which it has this many tokens.
    part : (int, int), optional
        ``(i, n)`` takes the files i, i + n, i + 2n, … of the list, with the document ids of the whole: for n machines,
        whose stores `merge_token_stores` joins.
    errors : {"strict", "replace", "skip"}, default "strict"
        What to do with a text that cannot be read, as in `Tokenizer.encode_files`. Skipped ones are counted.
    threads : int, optional
        Number of threads; by default all CPUs that this process may use. The bytes do not depend on it.
    show_progress_bar : bool, optional
        By default a bar is shown if standard error is a terminal. True shows plain lines elsewhere.

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
    >>> store = build_token_store(tokenizer, ["wiki_0.txt", "wiki_1.txt.gz"], "wiki.tokens")  # doctest: +SKIP
    >>> store.documents, store.tokens  # doctest: +SKIP
    (2093122, 1072344576)
    """
    check_instance("tokenizer", tokenizer, Tokenizer)
    checked_choice("documents", documents, _DOCUMENTS)
    checked_choice("sentences", sentences, _SENTENCES)
    checked_choice("errors", errors, ("strict", "replace", "skip"))
    if dtype is not None:
        checked_choice("dtype", dtype, ("uint16", "uint32"), "None, ")
    words = None if abbreviations is None else checked_strings("abbreviations", abbreviations)
    shard_tokens = whole_number("shard_tokens", shard_tokens, 1)
    _check_fields(field, column, id_field, id_column)
    numbers, names = _part_of(files, part)
    inputs = _Inputs(names, documents, field, column, id_field, id_column, errors)
    options = {
        "documents": documents,
        "sentences": sentences,
        "abbreviations": words,
        "field": field,
        "column": column,
        "id_field": id_field,
        "id_column": id_column,
        "shard_tokens": shard_tokens,
        "part": None if part is None else list(part),
        "errors": errors,
        "input_bytes": inputs.sizes,
    }
    folder = Path(output)
    with only_writer(folder):
        writer = _core.TokenStoreWriter(
            tokenizer._inner,
            str(folder),
            fingerprint=fingerprint_of(tokenizer),
            vocab_size=len(tokenizer),
            options=json.dumps(options),
            file_numbers=numbers,
            documents="value" if field or column else documents,
            split=sentences == "split",
            abbreviations=words,
            dtype=dtype,
            shard_tokens=shard_tokens,
            threads=threads,
        )
        if not writer.finished:
            inputs.write(writer, show=show_progress_bar)
        return TokenStore(folder)


def _check_fields(field: object, column: object, id_field: object, id_column: object) -> None:
    for name, value in (("field", field), ("column", column), ("id_field", id_field), ("id_column", id_column)):
        if value is not None and not isinstance(value, str):
            raise InputError(f"{name} must be a name, not {value!r:.80}")
    if id_field is not None and field is None:
        raise InputError(f"id_field={id_field!r} is for JSON lines: pass field, the one with the texts, too")
    if id_column is not None and column is None:
        raise InputError(f"id_column={id_column!r} is for tables: pass column, the one with the texts, too")


def _part_of(files: StrPath | Iterable[StrPath], part: object) -> tuple[list[int], list[str]]:
    """Return the numbers and the names of the files of a part."""
    single = isinstance(files, str | bytes | os.PathLike) or not isinstance(files, Iterable)
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

    def __init__(
        self,
        files: list[str],
        documents: str,
        field: str | None,
        column: str | None,
        id_field: str | None,
        id_column: str | None,
        errors: Errors,
    ) -> None:
        self._column, self._id_column, self._errors = column, id_column, errors
        self._field, self._id_field = field, id_field
        self._documents = documents
        # It checks the paths, and that JSON and Parquet are not read as text.
        reader = TextReader(files, field=field, column=column, errors=errors)
        self.files = list(reader.files)
        self.sizes = [None if name == STDIN else Path(name).stat().st_size for name in self.files]

    def write(self, writer: _core.TokenStoreWriter, *, show: bool | None) -> None:
        """Read the files that are not in the store yet, and finish it."""
        first = writer.first_input
        done = sum(size or 0 for size in self.sizes[:first])
        total = None if None in self.sizes else sum(size or 0 for size in self.sizes)
        visible = show is not False and (show or shows_bars(sys.stderr))
        with Progress(total, "B") as bar:
            for block, bytes_read, number, ids in self._blocks(first):
                writer.add(block, input_index=number, ids=ids)
                if visible:
                    counts = writer.counts
                    bar.update(done + bytes_read, tokens=counts["tokens"])
            writer.finish()

    def _blocks(self, first: int) -> Iterator[tuple[_core.TextBlock, int, int | None, npt.NDArray[np.uint64] | None]]:
        """Yield blocks of texts from a file on: the block, the bytes read, the number of its file, and document ids."""
        if self._column is not None:
            yield from self._table_blocks(first, self._column)
            return
        names = [None if name == STDIN else name for name in self.files[first:]]
        fields = [name for name in (self._field, self._id_field) if name is not None]
        reader = _core.TextReader(names, "\n", fields, self._errors, None, self._id_field is not None)
        while (block := reader.next_block()) is not None:
            yield block, block.bytes_read, None, None

    def _table_blocks(
        self, first: int, column: str
    ) -> Iterator[tuple[_core.TextBlock, int, int | None, npt.NDArray[np.uint64] | None]]:
        before = 0
        for number in range(first, len(self.files)):
            name, size = self.files[number], self.sizes[number] or 0
            if separator_format(name) is not None:
                columns = [column] if self._id_column is None else [column, self._id_column]
                has_ids = self._id_column is not None
                for block, bytes_read in separated_blocks([name], columns, self._errors, second_is_id=has_ids):
                    yield block, before + bytes_read, number, None
            elif self._id_column is None:
                for block, bytes_read in column_blocks([(name, size)], [column], self._errors):
                    yield block, before + bytes_read, number, None
            else:
                for block, share, ids in column_ids(name, column, self._id_column, self._errors):
                    yield block, before + round(share * size), number, ids
            before += size
