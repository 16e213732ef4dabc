"""How near the outputs of two models are, and how near they have to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.correlation import spearman
from wordpiece_bert.sentence.metrics import similarity

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array

#: What is measured, and what it means; a measure that a kind of model does not have is left out.
MEASURES = {
    "lowest_cosine": "lowest cosine",
    "median_cosine": "median cosine",
    "rank_correlation": "rank correlation",
    "top_10": "overlap of the top 10",
    "difference": "difference of scores",
    "flips": "flips",
}

#: The measures of which less is better.
AT_MOST = frozenset({"difference", "flips"})

#: The limits of a dtype.
LIMITS: dict[str, dict[str, float]] = {
    "float32": {
        "lowest_cosine": 0.9999,
        "median_cosine": 0.99999,
        "rank_correlation": 0.9999,
        "top_10": 0.99,
        "difference": 0.001,
        "flips": 0.002,
    },
    "bfloat16": {
        "lowest_cosine": 0.995,
        "median_cosine": 0.999,
        "rank_correlation": 0.999,
        "top_10": 0.95,
        "difference": 0.02,
        "flips": 0.01,
    },
    "int8": {
        "lowest_cosine": 0.99,
        "median_cosine": 0.999,
        "rank_correlation": 0.995,
        "top_10": 0.93,
        "difference": 0.05,
        "flips": 0.02,
    },
}

_TOP = 10
#: Where scores are ordered, differences below this share of the largest, or of 1, are none.
_ROUNDING = 1e-5


def holds(name: str, value: float, limit: float) -> bool:
    """Return whether a measure is within its limit; NaN is not."""
    return value <= limit if name in AT_MOST else value >= limit


def of_vectors(a: Array, b: Array, alike: tuple[Array, Array] | None = None) -> dict[str, float]:
    """Compare vectors [n, d], and which of their texts are near each other.

    Parameters
    ----------
    a, b : ndarray of float32
        The vectors of both, [n, d].
    alike : tuple of ndarray, optional
        The similarities of the texts in both, [m, m]; by default the cosines of the vectors.
    """
    found = _summary(_cosines(a, b))
    x, y = alike if alike is not None else (similarity(a, a), similarity(b, b))
    x, texts = _near(x, y), len(x)
    if texts > 2:  # of two texts there is one similarity, which has no order
        above = ~np.eye(texts, dtype=bool)
        found["rank_correlation"] = _correlation(x[above], y[above])
        pairs = ((one[keep], two[keep]) for one, two, keep in zip(x, y, above, strict=True))
        found["top_10"] = float(np.mean([_overlap(one, two) for one, two in pairs]))
    return found


def of_scores(a: Array, b: Array, groups: Sequence[npt.NDArray[np.intp]]) -> dict[str, float]:
    """Compare scores [n] and the order that they give to the texts of each group, which is one query's.

    The difference is the largest one, as a share of the largest score or of 1.
    """
    found = {"difference": float(np.abs(a - b).max() / max(1.0, float(np.abs(b).max())))}
    a = _near(a, b)
    if len(a) > 1:
        found["rank_correlation"] = _correlation(a, b)
    several = [group for group in groups if len(group) > 1]
    if several:
        found["top_10"] = float(np.mean([_overlap(a[group], b[group]) for group in several]))
        found["flips"] = float(np.mean([a[group].argmax() != b[group].argmax() for group in several]))
    return found


def of_labels(a: Sequence[Array], b: Sequence[Array]) -> dict[str, float]:
    """Compare logits, a row [labels] for each text, token or place; rows may have different lengths."""
    # Logits that are all near 0 have no direction.
    cosines = np.concatenate([_cosines(x[None], y[None], equal=_ROUNDING) for x, y in zip(a, b, strict=True)])
    flips = [_near(x, y).argmax() != y.argmax() for x, y in zip(a, b, strict=True)]
    return {**_summary(cosines), "flips": float(np.mean(flips))}


def _cosines(a: Array, b: Array, *, equal: float = 0.0) -> npt.NDArray[np.float64]:
    """[n, d] each -> [n]."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    product = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
    # Two vectors of zeros are equal; one beside another vector is as far from it as can be.
    same = (np.abs(x - y) <= equal).all(axis=1)
    cosines: npt.NDArray[np.float64] = np.where(
        same, 1.0, (x * y).sum(axis=1) / np.where(product == 0, np.inf, product)
    )
    return cosines


def _summary(cosines: npt.NDArray[np.float64]) -> dict[str, float]:
    return {"lowest_cosine": float(cosines.min()), "median_cosine": float(np.median(cosines))}


def _correlation(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> float:
    """Return the rank correlation; 1 if both are constant, and 0 if one is."""
    constant = [bool((one == one[0]).all()) for one in (a, b)]
    return float(all(constant)) if any(constant) else spearman(a, b)


def _overlap(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> float:
    """Return which share of the ten highest of one is among the ten highest of the other; of fewer, half of them."""
    count = min(_TOP, max(len(a) // 2, 1))
    first, second = (np.argsort(-one, kind="stable")[:count] for one in (a, b))
    return len(np.intersect1d(first, second)) / count


def _near(a: Array, b: Array) -> Array:
    """Return `a` with the numbers of `b` where they are nearer than rounding: they then have the same order."""
    near: Array = np.where(np.abs(a - b) <= _ROUNDING * max(1.0, float(np.abs(b).max())), b, a)
    return near
