"""The steps that all tasks share: tokenizing texts, and computing logits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.batching import encoding_batches
from wordpiece_bert._internal.progress import notify
from wordpiece_bert._internal.texts import check_tokens, warn_truncated
from wordpiece_bert.errors import NonFiniteError
from wordpiece_bert.tokenizer.subword import model_encodings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.bert.heads.head_model import LogitsModel
    from wordpiece_bert.tokenizer.subword import AnyEncoding, AnyTokenizer


def encode(
    tokenizer: AnyTokenizer, texts: Sequence[Any], max_length: int, *, is_split_into_words: bool = False
) -> Sequence[AnyEncoding]:
    """Tokenize texts or pairs without padding, truncated to `max_length` tokens.

    Raises
    ------
    InputError
        A text has no token.

    Warns
    -----
    TruncationWarning
        Texts were truncated. The message has their number and the index of the first; the warning points to the caller
        of the task.
    """
    rows = tokenizer.encodings(
        texts, truncation=True, max_length=max_length, stride=0, padding=False, is_split_into_words=is_split_into_words
    )
    encodings = model_encodings(tokenizer, rows)
    truncated = np.array([encoding.truncated for encoding in encodings], np.bool_)
    warn_truncated(truncated, max_length, remedy="see .truncated of each result")
    check_tokens(texts, np.array([len(encoding) for encoding in encodings], np.int64))
    return encodings


def finite(logits: Array) -> Array:
    """Return logits; a `NonFiniteError` for those that have no softmax, since every answer would be made up."""
    largest = logits.max(initial=-np.inf)  # NaN if any is
    if logits.size and not np.isfinite(largest):
        raise NonFiniteError(f"the largest logit is {largest}: the model's weights are damaged, or training diverged")
    return logits


def infer(model: LogitsModel, encodings: Sequence[AnyEncoding], batch_size: int) -> list[Array]:
    """Return the logits of each encoding, in order: [labels], or [tokens, labels] for a head over tokens."""
    found: dict[int, Array] = {}
    tokens = sum(map(len, encodings))
    for batch in encoding_batches(encodings, batch_size):
        logits = finite(model.infer(**batch.inputs))  # [B, labels] or [B, S, labels]
        notify(len(batch.encodings), batch.tokens, tokens)
        for index, place in zip(batch.encodings.tolist(), batch.rows.tolist(), strict=True):
            row = logits[place]
            found[index] = row[: len(encodings[index])] if row.ndim == 2 else row
    return [found[index] for index in range(len(encodings))]
