"""Late chunking: a text goes through the model once, and the vectors of its tokens are pooled chunk by chunk.

So the vector of a chunk depends on the text around it, which a chunk encoded by itself lacks (Günther et al. 2024).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

import numpy as np
import numpy.typing as npt

from wordpiece_bert._internal.checks import iterates
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.tokenizer.subword import AnyEncoding, AnyTokenizer

#: The (start, end) of each chunk of a text, in characters.
Chunks = Iterable[tuple[SupportsIndex, SupportsIndex]]


@dataclass(frozen=True, eq=False)
class TextTokens:
    """The tokens of entire texts, and where in its text each begins."""

    rows: RaggedBatch
    #: For each text, the character at which each token begins, [tokens]; −1 for special tokens and the prompt's tokens.
    starts: list[npt.NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Sections:
    """Texts as rows of bounded length, each with entire chunks."""

    rows: RaggedBatch
    starts: list[npt.NDArray[np.int64]]  # as of `TextTokens`, of each row
    chunks: list[npt.NDArray[np.int64]]  # of each row, [chunks, 2]
    firsts: npt.NDArray[np.int64]  # text i has the rows firsts[i] to firsts[i + 1]


def check_chunks(chunks: object, texts: int) -> list[npt.NDArray[np.int64]]:
    """Check the chunks of some texts, an iterable for each; return them as arrays [chunks, 2].

    Raises
    ------
    InputError
        There are not as many as texts, or a chunk is not (start, end) with 0 ≤ start ≤ end.
    """
    listed = list(chunks) if iterates(chunks) else None
    if listed is None or len(listed) != texts:
        raise InputError(f"chunks must have the chunks of {texts} texts, one list for each, not {chunks!r:.80}")
    return [_spans(one, f"[{index}]" * (texts > 1)) for index, one in enumerate(listed)]


def _spans(chunks: Any, where: str) -> npt.NDArray[np.int64]:
    """Check the chunks of one text; `where` is for the message."""
    if not iterates(chunks) or isinstance(chunks, str | bytes):
        raise InputError(f"chunks{where} must be pairs (start, end) of characters, not {chunks!r:.80}")
    spans = []
    for number, chunk in enumerate(chunks):
        try:
            start, end = (_index(bound) for bound in chunk)
        except (TypeError, ValueError):
            start, end = 0, -1
        if not 0 <= start <= end:
            raise InputError(
                f"chunks{where}[{number}] must be (start, end) with 0 ≤ start ≤ end, in characters, not {chunk!r}"
            )
        spans.append((start, end))
    return np.array(spans, np.int64).reshape(len(spans), 2)


def _index(value: SupportsIndex) -> int:
    if isinstance(value, bool):
        raise TypeError
    return operator.index(value)


def tokens_of_texts(
    tokenizer: AnyTokenizer, texts: Sequence[str], prompt: str, longest_row: int | None, threads: int | None
) -> TextTokens:
    """Tokenize entire texts, each after the prompt.

    Raises
    ------
    InputError
        A text has more than `longest` tokens with the prompt and special tokens (None: any number), or none.
    """
    encodings: Sequence[AnyEncoding] = tokenizer.encodings(
        [prompt + text for text in texts], truncation=False, padding=False, threads=threads
    )
    starts = []
    for index, encoding in enumerate(encodings):
        if not len(encoding):
            raise InputError(f"texts[{index}] has no token, not even a special one: late chunking needs one")
        if longest_row is not None and len(encoding) > longest_row:
            raise InputError(
                f"texts[{index}] has {len(encoding)} tokens, but late chunking runs an entire text at once, here of 1 "
                f"to {longest_row} tokens (max_seq_length): divide it into texts of this size at the bounds of chunks"
            )
        begin = np.array([start for start, _ in encoding.offsets], np.int64) - len(prompt)
        begin[(begin < 0) | np.array(encoding.special_tokens_mask, np.bool_)] = -1
        starts.append(begin)
    return TextTokens(_rows([np.array(encoding.ids, np.uint32) for encoding in encodings]), starts)


def _rows(ids: list[npt.NDArray[np.uint32]]) -> RaggedBatch:
    ends = np.cumsum([0, *map(len, ids)], dtype=np.int64)
    flat = np.concatenate(ids) if ids else np.zeros(0, np.uint32)
    return RaggedBatch(ids=flat, row_offsets=ends, truncated=np.zeros(len(ids), np.bool_))


def sections_of(tokens: TextTokens, chunks: list[npt.NDArray[np.int64]], longest_row: int) -> Sections:
    """Divide texts into rows of at most `longest` tokens: as many entire chunks as fit, and the tokens around texts.

    Raises
    ------
    InputError
        A chunk of a text that is longer than a row does not fit into one.
    """
    ids, starts, spans, firsts = [], [], [], [0]
    for text, (row, begins, places) in enumerate(zip(tokens.rows, tokens.starts, chunks, strict=True)):
        if len(row) <= longest_row:
            parts = [(np.arange(len(row)), places)]
        else:
            parts = list(_sections(begins, places, longest_row, text))
        for kept, own in parts:
            ids.append(row[kept])
            starts.append(begins[kept])
            spans.append(own)
        firsts.append(len(ids))
    return Sections(_rows(ids), starts, spans, np.array(firsts, np.int64))


def _sections(
    starts: npt.NDArray[np.int64], places: npt.NDArray[np.int64], longest_row: int, text: int
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Yield the tokens of each section of a text by their positions, and its chunks, which are in the text's order."""
    own = np.flatnonzero(starts >= 0)
    before, after = np.arange(own[0]), np.arange(own[-1] + 1, len(starts))
    room = longest_row - len(before) - len(after)
    begins, ends = np.searchsorted(starts[own], places.T)
    first = 0
    while first < len(places):
        begin = int(begins[first])
        last = int(np.searchsorted(ends, begin + room, side="right"))
        if last <= first:
            raise InputError(
                f"texts[{text}]: a chunk of {ends[first] - begin} tokens does not fit into a row of {longest_row}, of "
                f"which {longest_row - room} are special tokens and the prompt: make smaller chunks"
            )
        yield np.concatenate([before, own[begin : int(ends[last - 1])], after]), places[first:last]
        first = last


def mean_of_chunks(x: Array, starts: npt.NDArray[np.int64], chunks: npt.NDArray[np.int64]) -> Array:
    """Return the mean of the vectors [tokens, H] that begin in each chunk, [chunks, H]; zeros where none does."""
    means = np.zeros((len(chunks), x.shape[1]), np.float32)
    for mean, (start, end) in zip(means, chunks.tolist(), strict=True):
        inside = (starts >= start) & (starts < end)
        if inside.any():
            mean[:] = x[inside].mean(axis=0)
    return cast("Array", means)
