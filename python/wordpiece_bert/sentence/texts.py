"""Texts on their way into a model: checked, batched, reported when they are cut."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert.errors import InputError, TruncationWarning
from wordpiece_bert.tokenizer import Tokenizer

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Mask
    from wordpiece_bert.tokenizer import RaggedBatch

__all__ = [
    "check_batch_size",
    "check_texts",
    "make_batches",
    "padded",
    "parts_of",
    "warn_truncated",
    "with_lowercase",
    "with_progress",
]


def check_texts(texts: object) -> tuple[bool, list[str]]:
    """Return whether it is one text, and the texts as a list."""
    if isinstance(texts, str):
        return True, [texts]
    column = _core._column_texts(texts)
    if column is not None:
        return False, column
    if not isinstance(texts, Iterable) or isinstance(texts, bytes | bytearray | Mapping | AbstractSet):
        message = f"texts must be a str, a list of str or a column of strings, not {type(texts).__name__}"
        raise InputError(message)
    items = list(texts)
    for index, item in enumerate(items):
        if not isinstance(item, str):
            message = f"texts[{index}] must be a str, not {type(item).__name__}: {item!r}"
            raise InputError(message)
    return False, items


AnyBatch = TypeVar("AnyBatch")


def check_batch_size(batch_size: object) -> None:
    """Raise an `InputError` unless it is a number of texts."""
    if type(batch_size) is not int or batch_size < 1:
        message = f"batch_size must be an integer, 1 or more, not {batch_size!r}"
        raise InputError(message)


def padded(rows: RaggedBatch, batch: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.int64], Mask]:
    """Lay some rows side by side: ids [B, S], 0 behind the ends, and which of them are tokens, [B, S]."""
    lengths = rows.lengths[batch]  # [B]
    places = np.arange(lengths.max())  # [S]
    mask = places < lengths[:, None]  # [B, S]
    ids = np.zeros(mask.shape, np.int64)  # [B, S]; behind the mask any id will do
    ids[mask] = rows.ids[(rows.row_offsets[batch][:, None] + places)[mask]]
    return ids, mask


def parts_of(rows: RaggedBatch, tokens: int) -> list[slice]:
    """Cut rows into runs of at most so many tokens, or of one row."""
    offsets = rows.row_offsets
    parts = []
    start = 0
    while start < len(offsets) - 1:
        end = max(int(np.searchsorted(offsets, offsets[start] + tokens, side="right")) - 1, start + 1)
        parts.append(slice(start, end))
        start = end
    return parts


def make_batches(
    lengths: npt.NDArray[np.int64], size: int, *, show_progress_bar: bool
) -> Iterable[npt.NDArray[np.intp]]:
    """Sort rows by length, longest first, and cut them into batches; each is an array of row numbers.

    A batch ends after `size` rows, or before a row that would be padding for a quarter and by more than 8 tokens.
    """
    order = np.argsort(-lengths, kind="stable")
    batches = []
    start = 0
    while start < len(order):
        longest = int(lengths[order[start]])
        batch = order[start : start + size]
        batch = batch[lengths[batch] >= longest - max(8, longest // 4)]
        batches.append(batch)
        start += len(batch)
    return with_progress(batches, show=show_progress_bar)


def with_progress(batches: Sequence[AnyBatch], *, show: bool) -> Iterable[AnyBatch]:
    """Show a bar while batches are worked on, if wanted."""
    if not show:
        return batches
    try:
        from tqdm import tqdm
    except ImportError as cause:
        message = "show_progress_bar needs tqdm: pip install 'wordpiece-bert[progress]'"
        raise InputError(message) from cause
    bar: Iterable[AnyBatch] = tqdm(batches, desc="Batches")
    return bar


def warn_truncated(truncated: Mask, longest: int, what: str = "texts") -> None:
    """Warn of texts that were cut, with their number and the index of the first, in the name of the caller's caller."""
    count = int(truncated.sum())
    if count:
        first = int(truncated.argmax())
        message = (
            f"{count} of {len(truncated)} {what} were cut at {longest} tokens, the first at index {first}; "
            "return_truncated=True tells which"
        )
        warnings.warn(message, TruncationWarning, stacklevel=3)


def with_lowercase(tokenizer: Tokenizer) -> Tokenizer:
    """Put a lower-casing step before the tokenizer's normalizer, unless it has one; special tokens keep their case."""
    content = json.loads(tokenizer.to_json())
    normalizer = content.get("normalizer")
    steps = [] if normalizer is None else normalizer.get("normalizers", [normalizer])
    if any(step["type"] == "Lowercase" for step in steps):
        return tokenizer
    content["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "Lowercase"}, *steps]}
    return Tokenizer.from_json(json.dumps(content))
