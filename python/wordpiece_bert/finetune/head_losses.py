"""The losses of heads as functions of their scores, and their gradients.

Comments denote shapes by the letters of `wordpiece_bert.bert.functional`; n the labels that are not ignored, C the
classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert._internal.ignored_label import IGNORED
from wordpiece_bert.bert import functional, gradients
from wordpiece_bert.bert.losses import log_softmax
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from wordpiece_bert.bert.functional import Array, Ids


def cross_entropy(logits: Array, labels: Ids, name: str, ignored: int = IGNORED) -> tuple[float, Array]:
    """Mean of −ln p[label] over the n labels that are not ignored: dlogits = (p − onehot)/n.

    logits [..., C], labels [...] -> the loss, dlogits [..., C].
    """
    counted = labels != ignored
    n = int(counted.sum())
    if logits.shape[-1] < 2:
        raise InputError(f"there is one class for the {name}: the loss is always 0, and nothing is learned")
    if n == 0:
        raise InputError(f"all {labels.size} {name} of the batch are ignored ({ignored}): the loss is not defined")
    loss, rows = gradients.cross_entropy(logits[counted], labels[counted])
    dlogits = np.zeros_like(logits)
    dlogits[counted] = rows
    return loss, dlogits


def binary_cross_entropy(logits: Array, targets: Array) -> tuple[float, Array]:
    """Mean of the binary cross entropies: dlogits = (σ(x) − t)/count. logits and targets of the same shape."""
    terms = np.maximum(logits, 0) - logits * targets + np.log1p(np.exp(-np.abs(logits)))
    return float(terms.mean(dtype=np.float64)), (functional.sigmoid(logits) - targets) / np.float32(logits.size)


def soft_cross_entropy(logits: Array, targets: Array) -> tuple[float, Array]:
    """Mean over B rows of −Σ t·ln p: dlogits = (p·Σt − t)/B. logits and targets [B, C]."""
    log_p = log_softmax(logits)
    loss = float(-(targets * log_p).sum(axis=1).mean(dtype=np.float64))
    dlogits: Array = (np.exp(log_p) * targets.sum(axis=1, keepdims=True) - targets) / np.float32(len(logits))
    return loss, dlogits


def mean_squared_error(predictions: Array, targets: Array) -> tuple[float, Array]:
    """Mean of (x − t)²: dx = 2(x − t)/count. Both of the same shape."""
    difference = predictions - targets
    return float(np.square(difference).mean(dtype=np.float64)), difference * np.float32(2.0 / difference.size)
