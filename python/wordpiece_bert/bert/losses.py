"""The losses of BERT's heads: means over all labels that are not ignored, as in torch.

Means are summed in double precision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert._internal.ignored_label import IGNORED

if TYPE_CHECKING:
    from wordpiece_bert.bert.functional import Array, Ids


def log_softmax(x: Array) -> Array:
    """Return ln softmax(x) = x − ln Σ exp(x) over the last axis; the maximum is subtracted first, against overflow."""
    y: Array = x - x.max(axis=-1, keepdims=True)
    y -= np.log(np.exp(y).sum(axis=-1, keepdims=True))
    return y


def cross_entropy(logits: Array, labels: Ids, ignored: int = IGNORED) -> np.float32:
    """Mean of −ln softmax(logits)[label] over the labels that are not `ignored`; NaN if all are.

    logits [..., C], labels [...] -> one number.
    """
    counted = labels != ignored
    if not counted.any():
        return np.float32(np.nan)
    rows = log_softmax(logits[counted])  # [n, C]
    return _mean(-rows[np.arange(len(rows)), labels[counted]])


def soft_cross_entropy(logits: Array, targets: Array) -> np.float32:
    """Mean of −Σ t·ln softmax(x) over the rows; logits x and targets t [B, C] -> one number."""
    return _mean(-(targets * log_softmax(logits)).sum(axis=-1))


def binary_cross_entropy(logits: Array, targets: Array) -> np.float32:
    """Mean of −t·ln σ(x) − (1 − t)·ln(1 − σ(x)), computed as max(x, 0) − x·t + ln(1 + e^−|x|), which cannot overflow.

    logits x and targets t of the same shape -> one number.
    """
    return _mean(np.maximum(logits, 0) - logits * targets + np.log1p(np.exp(-np.abs(logits))))


def mean_squared_error(predictions: Array, targets: Array) -> np.float32:
    """Mean of (x − t)²; predictions x and targets t of the same shape -> one number."""
    return _mean(np.square(predictions - targets))


def _mean(x: Array) -> np.float32:
    """Return the mean, summed in double precision; NaN for no numbers, as in torch."""
    return np.float32(x.mean(dtype=np.float64)) if x.size else np.float32(np.nan)
