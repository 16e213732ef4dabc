"""Texts that are longer than a model accepts, as overlapping windows whose vectors are combined."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from wordpiece_bert._internal.checks import whole_number
from wordpiece_bert._internal.texts import check_tokens
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch
    from wordpiece_bert.tokenizer.subword import AnyTokenizer

Combination = Literal["mean", "max"]

#: How the vectors of a text's windows are combined, element by element.
COMBINATIONS: tuple[Combination, ...] = ("mean", "max")


def cut_into_windows(
    tokenizer: AnyTokenizer, texts: list[str], prompt: str, longest_row: int, stride: int, threads: int | None
) -> RaggedBatch:
    """Tokenize texts into windows of at most `longest` tokens, each with the prompt's tokens after [CLS].

    Parameters
    ----------
    tokenizer, texts
        The tokenizer, and the texts to tokenize.
    prompt : str
        A text that each window begins with; empty for none.
    longest : int
        The most tokens of a window, with special tokens and prompt.
    stride : int
        How many tokens a window shares with the one before.
    threads : int
        Number of threads; None for the default.

    Returns
    -------
    RaggedBatch
        A row for each window, with ``overflow_to_sample``; ``truncated`` is all false.

    Raises
    ------
    InputError
        The prompt leaves no room for text, `stride` is not smaller than a window, or a text has no token.
    """
    inserted: list[int] = []
    if prompt:
        inserted = tokenizer.encode(prompt, add_special_tokens=False, truncation=False, padding=False).ids
    room = longest_row - len(inserted) - tokenizer.num_special_tokens_to_add()
    stride = whole_number("stride", stride, 0, max(room, 1) - 1, meaning="one less than the text tokens of a window")
    if room < 1:
        raise InputError(
            f"windows of {longest_row} tokens leave no room for text after a prompt of {len(inserted)} tokens"
        )
    rows = tokenizer.encode_batch(
        texts,
        truncation=True,
        max_length=longest_row - len(inserted),
        stride=stride,
        padding=False,
        return_overflowing_tokens=True,
        threads=threads,
    )
    check_tokens(texts, rows.lengths, rows.overflow_to_sample)
    if inserted:
        rows = _insert(rows, np.array(inserted, np.uint32), _opening(tokenizer))
    return replace(rows, truncated=np.zeros(len(texts), np.bool_))


def combine(vectors: Array, samples: npt.NDArray[np.int64], how: Combination, texts: int) -> Array:
    """Combine vectors of windows [windows, d] into vectors of texts [n, d], given the text of each window [windows].

    Every text has at least one window, and the windows of a text are consecutive.
    """
    if texts == 0:
        return vectors
    starts = np.searchsorted(samples, np.arange(texts))  # [n] the first window of each text
    if how == "max":
        return np.asarray(np.maximum.reduceat(vectors, starts, axis=0))
    sums: Array = np.add.reduceat(vectors, starts, axis=0)
    return sums / np.bincount(samples, minlength=texts).astype(np.float32)[:, None]


def _opening(tokenizer: AnyTokenizer) -> int:
    """Return how many special tokens precede a text: usually one, [CLS]."""
    special = tokenizer.encode("a", truncation=False, padding=False).special_tokens_mask
    return special.index(0) if 0 in special else len(special)


def _insert(rows: RaggedBatch, inserted: npt.NDArray[np.uint32], at: int) -> RaggedBatch:
    """Insert the same ids into every row, at index `at`."""
    ids = [part for row in rows for part in (row[:at], inserted, row[at:])]
    offsets = rows.row_offsets + len(inserted) * np.arange(len(rows.row_offsets))
    flat = np.concatenate(ids) if ids else rows.ids
    return replace(rows, ids=flat, row_offsets=offsets)
