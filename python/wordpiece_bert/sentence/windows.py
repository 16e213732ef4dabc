"""Texts that are longer than a model takes, as windows whose vectors are combined."""

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
    from wordpiece_bert.tokenizer import RaggedBatch, Tokenizer

__all__ = ["COMBINATIONS", "Combination", "combine", "cut_into_windows"]

Combination = Literal["mean", "max"]

#: How the vectors of a text's windows become one: number by number.
COMBINATIONS: tuple[Combination, ...] = ("mean", "max")


def cut_into_windows(
    tokenizer: Tokenizer, texts: list[str], prompt: str, longest: int, stride: int, threads: int | None
) -> RaggedBatch:
    """Tokenize texts into windows of at most `longest` tokens, each with the prompt's tokens after [CLS].

    Parameters
    ----------
    tokenizer, texts
        What is tokenized with what.
    prompt
        A text to be put before each window; empty for none.
    longest
        Tokens in a window, special tokens and prompt included.
    stride
        How many tokens a window shares with the one before.
    threads
        How many threads work.

    Returns
    -------
    RaggedBatch
        A row for each window, with ``overflow_to_sample``; ``truncated`` is all false.

    Raises
    ------
    InputError
        The prompt leaves no room, the windows would share all their tokens, or a text has no token at all.
    """
    inserted: list[int] = []
    if prompt:
        inserted = tokenizer.encode(prompt, add_special_tokens=False, truncation=False, padding=False).ids
    room = longest - len(inserted) - tokenizer.num_special_tokens_to_add()
    stride = whole_number("stride", stride, 0, max(room, 1) - 1, meaning="less than a window holds")
    if room < 1:
        message = f"windows of {longest} tokens have no room for text beside a prompt of {len(inserted)} tokens"
        raise InputError(message)
    rows = tokenizer.encode_batch(
        texts,
        truncation=True,
        max_length=longest - len(inserted),
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
    """One vector a window [windows, d], and the text of each [windows] -> one vector a text [n, d].

    Every text has a window; the windows of a text stand side by side.
    """
    if texts == 0:
        return vectors
    starts = np.searchsorted(samples, np.arange(texts))  # [n] the first window of each text
    if how == "max":
        return np.asarray(np.maximum.reduceat(vectors, starts, axis=0))
    sums: Array = np.add.reduceat(vectors, starts, axis=0)
    return sums / np.bincount(samples, minlength=texts).astype(np.float32)[:, None]


def _opening(tokenizer: Tokenizer) -> int:
    """Return how many special tokens stand before a text: [CLS]."""
    special = tokenizer.encode("a", truncation=False, padding=False).special_tokens_mask
    return special.index(0) if 0 in special else len(special)


def _insert(rows: RaggedBatch, inserted: npt.NDArray[np.uint32], at: int) -> RaggedBatch:
    """Put the same ids into every row, after its first few."""
    ids = [part for row in rows for part in (row[:at], inserted, row[at:])]
    offsets = rows.row_offsets + len(inserted) * np.arange(len(rows.row_offsets))
    flat = np.concatenate(ids) if ids else rows.ids
    return replace(rows, ids=flat, row_offsets=offsets)
