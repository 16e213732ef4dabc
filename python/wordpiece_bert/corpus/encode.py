"""Files encoded block by block, in memory that does not grow with them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert.batch import RaggedBatch
from wordpiece_bert.corpus.progress import progress
from wordpiece_bert.corpus.table import Table, id_dtype
from wordpiece_bert.corpus.texts import ReadingOptions, StrPath, TextReader
from wordpiece_bert.corpus.writers import table_writer
from wordpiece_bert.errors import InputError
from wordpiece_bert.options import EncodeOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

    from wordpiece_bert.options import PaddingSettings

__all__ = ["EncodeSummary", "FileEncoder", "FileOptions", "write_encoded"]

# What an option asks for is called so in a batch.
COLUMNS = {
    "return_offsets": "offsets",
    "return_word_ids": "word_ids",
    "return_sequence_ids": "sequence_ids",
    "return_overflowing_tokens": "overflow_to_sample",
    "return_n_tokens": "n_tokens",
}
# Places of cut texts that a summary has; the rest it counts.
PLACES_TOLD = 20


class FileOptions(ReadingOptions, EncodeOptions, total=False):
    """How files are read and how texts are encoded, all by keyword."""

    #: What to work out beside ids, as for `Tokenizer.encode_batch`.
    return_offsets: bool
    return_word_ids: bool
    return_sequence_ids: bool
    return_overflowing_tokens: bool
    return_n_tokens: bool
    #: How many threads encode; None, the default: as for `Tokenizer.encode_batch`. One more reads.
    threads: int | None


@dataclass(frozen=True, slots=True)
class EncodeSummary:
    """What `Tokenizer.encode_files` did."""

    #: The files written, the one with the ids first.
    output: tuple[Path, ...]
    #: Texts read (a pair is one), rows written and the tokens in them, padding and special tokens included.
    texts: int
    rows: int
    tokens: int
    #: How many texts were cut, and where the first of them stand.
    truncated: int
    truncated_places: tuple[str, ...] = field(repr=False)
    #: How many texts were left out (only with ``errors="skip"``), and what was wrong with the first of them.
    skipped: int
    skipped_reasons: tuple[str, ...] = field(repr=False)
    #: Bytes of text encoded, and seconds taken.
    bytes: int
    seconds: float


class FileEncoder:
    """Encodes what a `TextReader` reads; iterated over, it yields blocks and their rows.

    Parameters
    ----------
    core
        The tokenizer.
    files
        As for `TextReader`.
    resolve
        Decides the options of an encoding call.
    options
        As in `FileOptions`.
    """

    def __init__(
        self,
        core: _core.Tokenizer,
        files: StrPath | Iterable[StrPath],
        resolve: Callable[[EncodeOptions], tuple[bool, _core.Options]],
        options: FileOptions,
    ) -> None:
        rest: Any = dict(options)
        reading = {name: rest.pop(name) for name in ReadingOptions.__annotations__ if name in rest}
        self._threads = rest.pop("threads", None)
        self._columns = [column for option, column in COLUMNS.items() if rest.pop(option, False)]
        self._core = core
        split, self._options = resolve(rest)
        if split:
            message = "is_split_into_words: files hold texts, not lists of words"
            raise InputError(message)
        self.row_length = _row_length(self._options.padding)
        self.truncates = self._options.truncation is not None
        self.texts = TextReader(files, **reading)

    def __iter__(self) -> Iterator[tuple[_core.TextBlock, RaggedBatch]]:
        for block in self.texts:
            yield block, self.encode(block)

    def encode(self, block: _core.TextBlock) -> RaggedBatch:
        """Encode the texts of a block."""
        rows = block.encode(self._core, self._options, self._columns, self._threads)
        batch = RaggedBatch(
            ids=rows.ids,
            row_offsets=rows.row_offsets,
            truncated=rows.truncated,
            offsets=rows.offsets,
            word_ids=rows.word_ids,
            sequence_ids=rows.sequence_ids,
            overflow_to_sample=rows.overflow_to_sample,
            n_tokens=rows.n_tokens,
        )
        if self.row_length is not None and (longer := np.flatnonzero(batch.lengths != self.row_length)).size:
            row = int(longer[0])
            text = row if batch.overflow_to_sample is None else int(batch.overflow_to_sample[row])
            message = (
                f"{block.location(text)}: {batch.lengths[row]} tokens, and rows are padded to {self.row_length}: "
                f"pass truncation=True, max_length={self.row_length}, or padding=False"
            )
            raise InputError(message)
        return batch


def _no_texts() -> _core.TextBlock:
    return _core.TextBlock.from_arrow("nothing", 0, [(np.empty(0, np.uint8), np.empty(0, np.int64), None)], "strict")


def _row_length(padding: PaddingSettings | None) -> int | None:
    """Read how long padded rows are; None where they are not padded."""
    if padding is None:
        return None
    if padding["length"] is None:
        message = (
            "padding to the longest row needs all rows at once, and files are read in blocks: pass "
            "padding='max_length' with a max_length, or padding=False"
        )
        raise InputError(message)
    multiple = padding["pad_to_multiple_of"] or 1
    return -(-padding["length"] // multiple) * multiple


def write_encoded(
    encoder: FileEncoder,
    output: StrPath,
    *,
    vocabulary: int,
    dtype: npt.DTypeLike = "uint32",
    show_progress_bar: bool | None = None,
) -> EncodeSummary:
    """Encode files into a file, which is there when all of it is.

    Parameters
    ----------
    encoder
        What to read and how to encode it.
    output
        The file to make or to replace; its suffix says the format.
    vocabulary
        The number of tokens.
    dtype
        Of ids: uint16, uint32, int32 or int64.
    show_progress_bar
        None: where standard error is a terminal and tqdm is installed.

    Raises
    ------
    InputError
        As for `FileEncoder`; a suffix that stands for no format, or `dtype` does not hold an id.
    OSError
        A file cannot be read or written.
    """
    start = time.perf_counter()
    id_type = id_dtype(dtype, vocabulary)
    texts = encoder.texts
    rows = tokens = size = cut = 0
    places: list[str] = []

    def table_of(batch: RaggedBatch, first_text: int) -> Table:
        return Table.of(batch, dtype=id_type, first_text=first_text, truncated=encoder.truncates)

    with (
        table_writer(Path(output), encoder.row_length, table_of(encoder.encode(_no_texts()), 0)) as writer,
        progress(texts, show=show_progress_bar) as show,
    ):
        writer.begin()
        for block, batch in encoder:
            table = table_of(batch, texts.count - len(block))
            writer.append(table)
            rows, tokens, size = rows + len(table), tokens + len(batch.ids), size + block.bytes
            cut += int(batch.truncated.sum())
            places += map(block.place, islice(np.flatnonzero(batch.truncated).tolist(), PLACES_TOLD - len(places)))
            show()
        written = writer.commit()
    return EncodeSummary(
        output=tuple(written),
        texts=texts.count,
        rows=rows,
        tokens=tokens,
        truncated=cut,
        truncated_places=tuple(places),
        skipped=texts.skipped_count,
        skipped_reasons=tuple(texts.skipped),
        bytes=size,
        seconds=time.perf_counter() - start,
    )
