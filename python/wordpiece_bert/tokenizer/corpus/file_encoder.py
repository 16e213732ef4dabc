"""Encodes files block by block, in memory that does not grow with their size."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, fields
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._internal.notebook import fields_html
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.progress import reading_progress
from wordpiece_bert._internal.same_file import refuse_input_as_output
from wordpiece_bert._internal.texts import warn_cut_by_file
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.encoded_table import Table, id_dtype
from wordpiece_bert.tokenizer.corpus.text_reader import ReadingOptions, StrPath, TextReader
from wordpiece_bert.tokenizer.corpus.writers import table_writer, written_files
from wordpiece_bert.tokenizer.option_types import EncodeOptions
from wordpiece_bert.tokenizer.parameters import ENCODING, READING
from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch, ragged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from wordpiece_bert.tokenizer.option_types import PaddingSettings

# The rows of a block have about this many tokens at most, however they are padded: 16 MB of ids.
BLOCK_TOKENS = 1 << 22
# A summary has the locations of this many truncated texts, and the number of all.
LOCATIONS_KEPT = 20


@completed_by(READING, ENCODING)
class FileOptions(ReadingOptions, EncodeOptions, total=False):
    """The options of `Tokenizer.encode_files` and `Tokenizer.iter_files` by keyword, for a dict that has some of them.

    Parameters
    ----------
    threads : int, optional
        Number of threads that encode; one more thread reads.
    """

    return_offsets: bool
    return_word_ids: bool
    return_sequence_ids: bool
    return_overflowing_tokens: bool
    return_n_tokens: bool
    threads: int | None


@dataclass(frozen=True, slots=True)
class EncodeSummary:
    """The result of `Tokenizer.encode_files`: counts of texts, rows and tokens, and the files written.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> tokenizer = Tokenizer.from_pretrained("models/words")
    >>> summary = tokenizer.encode_files("examples/texts/sentences.txt", "ids.npy")
    >>> summary.texts, summary.rows, summary.tokens, summary.truncated
    (60, 60, 936, 0)
    """

    #: The files written, beginning with the one that holds the ids.
    output: tuple[Path, ...]
    #: Number of texts read (a pair counts once), of rows written, and of tokens in the rows, padding and special tokens
    #: included.
    texts: int
    rows: int
    tokens: int
    #: Number of texts truncated, and the locations of the first of them: file and line, or row.
    truncated: int
    truncated_places: tuple[str, ...] = field(repr=False)
    #: Number of texts skipped (only with ``errors="skip"``), and the location and problem of the first of them.
    skipped: int
    skipped_reasons: tuple[str, ...] = field(repr=False)
    #: UTF-8 bytes of text encoded, and elapsed seconds.
    bytes: int
    seconds: float

    def _repr_html_(self) -> str:
        return fields_html("EncodeSummary", {one.name: getattr(self, one.name) for one in fields(self)})


@completed_by(READING)
class FileEncoder:
    """Encodes the texts that a `TextReader` reads. Iteration yields each block with its rows.

    A block whose rows would have many more tokens than its texts have bytes, because they are padded or overlap, is
    divided first.

    Parameters
    ----------
    core : _core.Tokenizer
        The tokenizer.
    options : _core.Options
        How to encode.
    columns : list of str
        The fields of `RaggedBatch` to compute besides the ids.
    threads : int or None
        Number of threads that encode.
    reading : ReadingOptions
        The options of `TextReader`.
    warns : bool, default False
        Whether to warn about truncated texts, because the truncation comes from the tokenizer's file.

    Attributes
    ----------
    row_length : int or None
        The length of all rows if they are padded.
    truncates : bool
        Whether truncation is on.
    texts : TextReader
        The reader, with its counts of texts, bytes and skipped texts.

    Raises
    ------
    InputError
        An option is wrong, or one that needs all texts at once: padding to the longest row.
    """

    def __init__(
        self,
        core: _core.Tokenizer,
        files: StrPath | Iterable[StrPath],
        options: _core.Options,
        *,
        columns: list[str],
        threads: int | None,
        reading: ReadingOptions,
        warns: bool = False,
    ) -> None:
        self.warns = warns
        self._threads = threads
        self._columns = columns
        self._core = core
        self._options = options
        self.row_length = _row_length(self._options.padding)
        truncation = self._options.truncation
        self.truncates = truncation is not None
        # How often a token can be repeated in the rows of a text: in each window that overlaps it.
        self._copies = 1
        if truncation is not None and "overflow_to_sample" in self._columns:
            length = truncation["max_length"]
            self._copies = -(-length // max(1, length - core.special_tokens_added(pair=True) - truncation["stride"]))
        self.texts = TextReader(files, **reading)

    def __iter__(self) -> Iterator[tuple[_core.TextBlock, RaggedBatch]]:
        for block in self.texts:
            for part in block.parts(self.row_length or 1, self._copies, BLOCK_TOKENS):
                yield part, self.encode(part)

    def batches(self) -> Iterator[RaggedBatch]:
        """Iterate over the rows of the blocks, and warn at the end if a setting of the tokenizer's file cut texts."""
        count, first = 0, ""
        for block, batch in self:
            if self.warns and batch.truncated.any():
                first = first or block.location(int(batch.truncated.argmax()))
                count += int(batch.truncated.sum())
            yield batch
        self.warn(count, first)

    def warn(self, count: int, first: str) -> None:
        """Warn if a setting of the tokenizer's file cut texts and no row has what was cut off."""
        truncation = self._options.truncation
        if self.warns and count and truncation is not None and "overflow_to_sample" not in self._columns:
            warn_cut_by_file(count, self.texts.count, first, truncation)

    def encode(self, block: _core.TextBlock) -> RaggedBatch:
        """Encode the texts of a block.

        Raises
        ------
        InputError
            Rows are padded and one is longer than the padded length; the message has the location of its text.
        """
        if isinstance(self._core, _core.Tokenizer):
            rows = block.encode(self._core, self._options, self._columns, self._threads)
        else:  # a function of the caller finds the words
            rows = self._core.encode_batch(
                block.texts(), None, False, self._options, self._columns, False, self._threads
            )
        batch = ragged(rows)
        if self.row_length is not None and (longer := np.flatnonzero(batch.lengths != self.row_length)).size:
            row = int(longer[0])
            text = row if batch.overflow_to_sample is None else int(batch.overflow_to_sample[row])
            raise InputError(
                f"{block.location(text)}: {batch.lengths[row]} tokens, but rows are padded to {self.row_length}: "
                f"pass truncation=True, max_length={self.row_length}, or padding=False"
            )
        return batch


def _no_texts() -> _core.TextBlock:
    """Return a block without texts; encoding it shows which columns a file will have, and their types."""
    return _core.TextBlock.from_arrow("nothing", 0, [(np.empty(0, np.uint8), np.empty(0, np.int64), None)], "strict")


def _row_length(padding: PaddingSettings | None) -> int | None:
    """Return the length of padded rows, or None if they are not padded."""
    if padding is None:
        return None
    if padding["length"] is None:
        raise InputError(
            "padding to the longest row needs all rows at once, but files are read in blocks: pass "
            "padding='max_length' with a max_length, or padding=False"
        )
    multiple = padding["pad_to_multiple_of"] or 1
    return -(-padding["length"] // multiple) * multiple


@completed_by(READING)
def write_encoded(
    encoder: FileEncoder,
    output: StrPath,
    *,
    vocabulary: int,
    dtype: npt.DTypeLike = "uint32",
    ids_column: str = "ids",
    show_progress_bar: bool | None = None,
) -> EncodeSummary:
    """Encode files and write the rows atomically: the output appears when it is complete.

    Parameters
    ----------
    encoder : FileEncoder
        The texts and the options for encoding them.
    output : path
        The file to create or replace. Its suffix determines the format.
    vocabulary : int
        The number of tokens of the tokenizer, added tokens included.
    dtype : dtype_like, default "uint32"
        The type of ids: uint16, uint32, int32 or int64.
    ids_column : str, default "ids"
        The name of the column of the ids in a table.

    Returns
    -------
    EncodeSummary
        Counts of texts, rows, tokens and bytes, and the texts that were truncated or skipped.

    Raises
    ------
    InputError
        As for `FileEncoder`, and if no format has the suffix, or an id does not fit `dtype`.
    OSError
        A file cannot be read or written.
    """
    start = time.perf_counter()
    refuse_input_as_output(written_files(Path(output)), encoder.texts.files)
    id_type = id_dtype(dtype, vocabulary)
    texts = encoder.texts
    count = rows = tokens = size = truncated = 0
    locations: list[str] = []

    def table_of(batch: RaggedBatch, first_text: int) -> Table:
        return Table.of(batch, dtype=id_type, first_text=first_text, truncated=encoder.truncates)

    with (
        table_writer(Path(output), encoder.row_length, table_of(encoder.encode(_no_texts()), 0), ids_column) as writer,
        reading_progress(texts, show=show_progress_bar) as show,
    ):
        writer.begin()
        for block, batch in encoder:
            table = table_of(batch, count)
            count += len(block)
            writer.append(table)
            rows, tokens, size = rows + len(table), tokens + len(batch.ids), size + block.bytes
            truncated += int(batch.truncated.sum())
            locations += map(
                block.location, islice(np.flatnonzero(batch.truncated).tolist(), LOCATIONS_KEPT - len(locations))
            )
            show(tokens)
        writer.commit()
    encoder.warn(truncated, locations[0] if locations else "")
    return EncodeSummary(
        output=tuple(writer.files),
        texts=texts.count,
        rows=rows,
        tokens=tokens,
        truncated=truncated,
        truncated_places=tuple(locations),
        skipped=texts.skipped_count,
        skipped_reasons=tuple(texts.skipped),
        bytes=size,
        seconds=time.perf_counter() - start,
    )
