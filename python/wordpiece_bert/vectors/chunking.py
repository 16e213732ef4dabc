"""Chunks of long texts: of tokens or of entire sentences, with overlap, each by its place in its text."""

from __future__ import annotations

import itertools
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.checks import checked_choice, checked_flag, whole_number
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.dividing import divided, units_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from wordpiece_bert.tokenizer.dividing import Borders, Count, Units
    from wordpiece_bert.tokenizer.subword import AnyTokenizer

# The end of a sentence: marks that end one, with what closes a quotation or bracket, before white space; the marks of
# Chinese and Japanese also without; and an empty line.
_SENTENCE_END = re.compile(r"""(?:(?<![.!?…])[.!?…]++["'”’“‘»)\]]*+(?=\s)|[。！？]++[”’」』）]*|\n\s*\n)\s*""")


@dataclass(frozen=True)
class Chunking:
    """How long texts are divided.

    Parameters
    ----------
    size : int
        The most tokens of a chunk, without special tokens: by itself, too, unless `late`.
    overlap : int, default 0
        How many of the last tokens of a chunk the next one begins with; with sentences at most so many.
    by : {"tokens", "sentences"}, default "tokens"
        What a chunk is made of. A sentence of more than `size` tokens is divided by tokens.
    late : bool, default False
        Whether the vectors of the tokens of the entire text are computed and then pooled for each chunk.

    Raises
    ------
    InputError
        `overlap` is not smaller than `size`, or an argument is wrong.
    """

    size: int
    overlap: int = 0
    by: str = "tokens"
    late: bool = False

    def __post_init__(self) -> None:
        whole_number("size", self.size, 1)
        whole_number("overlap", self.overlap, 0, self.size - 1, meaning="one less than the size of a chunk")
        checked_choice("by", self.by, ("tokens", "sentences"))
        checked_flag("late", self.late)

    def record(self) -> dict[str, Any]:
        """Return what is kept of it beside the vectors."""
        return asdict(self)


def token_borders(tokenizer: AnyTokenizer, texts: Sequence[str], threads: int | None) -> list[Borders]:
    """Return where each token of some texts begins and ends, in characters, [tokens, 2] for each; none is special."""
    rows = tokenizer.encode_batch(list(texts), return_offsets=True, truncation=False, padding=False, threads=threads)
    assert rows.offsets is not None
    borders = rows.offsets.astype(np.int64)
    bounds = rows.row_offsets.tolist()
    found = [borders[start:end] for start, end in itertools.pairwise(bounds)]
    return [one[one[:, 1] > one[:, 0]] for one in found]  # special tokens have no characters


def spans_of(
    texts: Sequence[str], borders: Sequence[Borders], chunking: Chunking, count: Count | None
) -> list[npt.NDArray[np.int64]]:
    """Return the chunks of texts, [chunks, 2] for each, at least one.

    Parameters
    ----------
    texts : sequence of str
        The texts.
    borders : sequence of ndarray
        What `token_borders` returns for them.
    chunking : Chunking
        How they are divided.
    count : callable, optional
        What `token_counts` returns; None where chunks are not tokenized by themselves.
    """
    if chunking.by == "sentences":
        units = [_sentences(text, tokens, chunking.size) for text, tokens in zip(texts, borders, strict=True)]
    else:
        units = [units_of(tokens) for tokens in borders]
    found = divided(texts, borders, units, chunking.size, chunking.overlap, count)
    return [np.array(places or [(0, len(text))], np.int64) for text, places in zip(texts, found, strict=True)]


def _sentences(text: str, tokens: Borders, size: int) -> Units:
    """Return the sentences of a text as units, [units, 2]; sentences of more than `size` tokens in pieces."""
    ends = [found.end() for found in _SENTENCE_END.finditer(text)]
    borders = np.searchsorted(tokens[:, 0], ends)  # the first token that begins at the end of each or after it
    borders = np.unique(np.concatenate([[0], borders, [len(tokens)]]))
    units = []
    for first, last in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        if last - first <= size:
            units.append((first, last))
            continue
        parts = first + units_of(tokens[first:last])
        start = 0
        while start < len(parts):
            end = max(int(np.searchsorted(parts[:, 1], parts[start, 0] + size, side="right")), start + 1)
            units.append((int(parts[start, 0]), int(parts[end - 1, 1])))
            start = end
    return np.array(units, np.int64).reshape(-1, 2)


def check_room(chunking: Chunking, longest_row: int, taken: int) -> None:
    """Raise an `InputError` if chunks would not fit into rows of `longest` tokens, of which `taken` are not text's."""
    if chunking.size > longest_row - taken:
        raise InputError(
            f"chunks of {chunking.size} tokens do not fit: the model takes {longest_row} tokens, of which special "
            f"tokens and the prompt are {taken}; make chunks of at most {longest_row - taken}"
        )
