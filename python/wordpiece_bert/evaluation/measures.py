"""Measures of rankings and of decisions by a threshold: arrays in, numbers out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Flags = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.floating[Any]]
Floats = npt.NDArray[np.float64]


# --- rankings: whether each hit of a query is relevant, [q, hits], and how many relevant documents it has, [q]


def accuracy_at(relevant: Flags, k: int) -> float:
    """Return the share of queries with a relevant document among the first k."""
    return float(relevant[:, :k].any(axis=1).mean())


def precision_at(relevant: Flags, k: int) -> float:
    """Return the mean share of the first k that is relevant; places without a hit count as irrelevant."""
    return float((relevant[:, :k].sum(axis=1) / k).mean())


def recall_at(relevant: Flags, totals: npt.NDArray[np.int64], k: int) -> float:
    """Return the mean share of the relevant documents that is among the first k."""
    return float((relevant[:, :k].sum(axis=1) / totals).mean())


def mrr_at(relevant: Flags, k: int) -> float:
    """Return the mean of 1 / rank of the first relevant document, 0 where it is not among the first k."""
    some = relevant[:, :k]
    return float(np.where(some.any(axis=1), 1 / (some.argmax(axis=1) + 1), 0.0).mean()) if some.size else 0.0


def map_at(relevant: Flags, totals: npt.NDArray[np.int64], k: int) -> float:
    """Return the mean average precision: the precision at each relevant hit, summed, by the most there could be."""
    some = relevant[:, :k]
    precisions = np.cumsum(some, axis=1) / np.arange(1, some.shape[1] + 1)
    return float(((precisions * some).sum(axis=1) / np.minimum(totals, k)).mean())


def ndcg_at(gains: Floats, ideal: list[Floats], k: int) -> float:
    """Return the mean normalized discounted cumulative gain (Järvelin and Kekäläinen 2002).

    Parameters
    ----------
    gains : array
        The grade of each hit, 0 for irrelevant ones, [q, hits].
    ideal : list of array
        The grades of all relevant documents of each query, the highest first.
    k : int
        How many hits count.
    """
    found = discounted_gain(gains[:, :k])
    best = np.array([discounted_gain(grades[:k]) for grades in ideal])
    return float((found / best).mean())


def discounted_gain(gains: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Return the sum of gainᵢ / log₂(i + 1) over the last axis, with i from 1."""
    found: npt.NDArray[np.float64] = (gains / np.log2(np.arange(2, gains.shape[-1] + 2))).sum(axis=-1)
    return found


# --- decisions: scores, the higher the surer, and whether each item is positive


class Decision(NamedTuple):
    """The threshold with the best value of a measure."""

    value: float
    threshold: float
    precision: float
    recall: float


class Steps(NamedTuple):
    """The distinct scores, falling: positives and items with at least that score."""

    scores: Scores
    positives: npt.NDArray[np.int64]
    items: npt.NDArray[np.int64]


def steps(scores: Scores, positive: Flags) -> Steps:
    """Return how many positives and items have at least each distinct score, [n], [n] -> [distinct]."""
    order = np.argsort(-scores, kind="stable")
    falling = scores[order]
    last = np.flatnonzero(np.append(falling[1:] != falling[:-1], True))  # of each group of equal scores
    return Steps(falling[last], np.cumsum(positive[order], dtype=np.int64)[last], last + 1)


def between(distinct: Scores, index: int) -> float:
    """Return a threshold that divides a score from the next one: their mean, or the score if the mean rounds down."""
    if index == len(distinct) - 1:
        return float(distinct[index])
    mean = (distinct[index] + distinct[index + 1]) / 2
    return float(distinct[index] if mean == distinct[index + 1] else mean)


def best_accuracy(scores: Scores, positive: Flags) -> Decision:
    """Return the highest accuracy of a threshold, of equal ones the highest threshold; precision and recall are NaN."""
    distinct, positives, items = steps(scores, positive)
    negatives = int((~positive).sum())
    right = positives + negatives - (items - positives)
    index = int(right.argmax())
    if right[index] <= negatives:  # nothing is better than to call all negative
        return Decision(
            negatives / len(scores),
            float(np.nextafter(distinct[0], np.asarray(np.inf, distinct.dtype))),
            np.nan,
            np.nan,
        )
    return Decision(float(right[index] / len(scores)), between(distinct, index), np.nan, np.nan)


def best_f1(scores: Scores, positive: Flags) -> Decision:
    """Return the highest F1 of a threshold, of equal ones the highest threshold, with its precision and recall."""
    distinct, positives, items = steps(scores, positive)
    total = int(positive.sum())
    if not total:
        return Decision(0.0, 0.0, 0.0, 0.0)
    precision, recall = positives / items, positives / total
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-300)
    index = int(f1.argmax())
    return Decision(float(f1[index]), between(distinct, index), float(precision[index]), float(recall[index]))


def average_precision(scores: Scores, positive: Flags) -> float:
    """Return Σₙ (Rₙ − Rₙ₋₁)·Pₙ over the distinct thresholds; 0 without positives."""
    _, positives, items = steps(scores, positive)
    total = int(positive.sum())
    return float((np.diff(positives, prepend=0) * (positives / items)).sum() / total) if total else 0.0


def matthews(predicted: Flags, positive: Flags) -> float:
    """Return the correlation of predictions with the truth (Matthews 1975); 0 where one of them is constant."""
    table = [float((predicted == p)[positive == t].sum()) for p, t in ((1, 1), (0, 0), (1, 0), (0, 1))]
    tp, tn, fp, fn = table
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tp * tn - fp * fn) / product**0.5 if product else 0.0
