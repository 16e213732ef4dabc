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

from wordpiece_bert.errors import InputError
from wordpiece_bert.ragged_batch import RaggedBatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.subword import AnyEncoding, AnyTokenizer

__all__ = ["Chunks", "TextTokens", "check_chunks", "mean_of_chunks", "tokens_of_texts"]

#: The (start, end) of each chunk of a text, in characters.
Chunks = Iterable[tuple[SupportsIndex, SupportsIndex]]


@dataclass(frozen=True, eq=False)
class TextTokens:
    """The tokens of entire texts, and where in its text each begins."""

    rows: RaggedBatch
    #: For each text, the character at which each token begins, [tokens]; −1 for special tokens and those of the prompt.
    starts: list[npt.NDArray[np.int64]]


def check_chunks(chunks: object, texts: int) -> list[npt.NDArray[np.int64]]:
    """Check the chunks of some texts, an iterable for each; return them as arrays [chunks, 2].

    Raises
    ------
    InputError
        There are not as many as texts, or a chunk is not (start, end) with 0 ≤ start ≤ end.
    """
    listed = list(chunks) if isinstance(chunks, Iterable) else None
    if listed is None or len(listed) != texts:
        raise InputError(f"chunks must have the chunks of {texts} texts, one list for each, not {chunks!r:.80}")
    return [_spans(one, f"[{index}]" * (texts > 1)) for index, one in enumerate(listed)]


def _spans(chunks: Any, where: str) -> npt.NDArray[np.int64]:
    """Check the chunks of one text; `where` is for the message."""
    if not isinstance(chunks, Iterable) or isinstance(chunks, str | bytes):
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
    tokenizer: AnyTokenizer, texts: Sequence[str], prompt: str, longest: int, threads: int | None
) -> TextTokens:
    """Tokenize entire texts, each after the prompt.

    Raises
    ------
    InputError
        A text has more than `longest` tokens with the prompt and special tokens, or none.
    """
    encodings: Sequence[AnyEncoding] = tokenizer.encodings(
        [prompt + text for text in texts], truncation=False, padding=False, threads=threads
    )
    starts = []
    for index, encoding in enumerate(encodings):
        if not 0 < len(encoding) <= longest:
            raise InputError(
                f"texts[{index}] has {len(encoding)} tokens, but late chunking runs an entire text at once, here of 1 "
                f"to {longest} tokens (max_seq_length): divide it into texts of this size at the bounds of chunks"
            )
        begin = np.array([start for start, _ in encoding.offsets], np.int64) - len(prompt)
        begin[(begin < 0) | np.array(encoding.special_tokens_mask, np.bool_)] = -1
        starts.append(begin)
    ids = [np.array(encoding.ids, np.uint32) for encoding in encodings]
    ends = np.cumsum([0, *map(len, ids)], dtype=np.int64)
    flat = np.concatenate(ids) if ids else np.zeros(0, np.uint32)
    return TextTokens(RaggedBatch(ids=flat, row_offsets=ends, truncated=np.zeros(len(ids), np.bool_)), starts)


def mean_of_chunks(x: Array, starts: npt.NDArray[np.int64], chunks: npt.NDArray[np.int64]) -> Array:
    """Return the mean of the vectors [tokens, H] that begin in each chunk, [chunks, H]; zeros where none does."""
    means = np.zeros((len(chunks), x.shape[1]), np.float32)
    for mean, (start, end) in zip(means, chunks.tolist(), strict=True):
        inside = (starts >= start) & (starts < end)
        if inside.any():
            mean[:] = x[inside].mean(axis=0)
    return cast("Array", means)
