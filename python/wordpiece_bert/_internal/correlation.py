"""Correlations of two columns of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["equal_shapes", "pearson", "spearman"]


def pearson(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Return Pearson's correlation of two columns of numbers; NaN if one is constant.

    Parameters
    ----------
    x, y : array_like
        Numbers [n].

    Returns
    -------
    float
        From −1 to 1, or NaN if a column is constant.

    Examples
    --------
    >>> from wordpiece_bert.finetune.metrics import pearson
    >>> round(pearson([1, 2, 3], [2, 4, 7]), 3)
    0.993
    """
    a, b = equal_shapes(x, y)
    a, b = a.astype(np.float64) - a.mean(), b.astype(np.float64) - b.mean()
    length = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / length if length else float("nan")


def spearman(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Return Spearman's rank correlation of two columns of numbers; equal numbers share the mean of their ranks.

    Parameters
    ----------
    x, y : array_like
        Numbers [n].

    Returns
    -------
    float
        From −1 to 1, or NaN if a column is constant.

    Examples
    --------
    >>> from wordpiece_bert.finetune.metrics import spearman
    >>> spearman([1, 2, 3], [2, 4, 70])
    1.0
    """
    a, b = equal_shapes(x, y)
    return pearson(_ranks(a), _ranks(b))


def _ranks(x: npt.NDArray[np.generic]) -> npt.NDArray[np.float64]:
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: npt.NDArray[np.float64] = ((ends - counts + ends - 1) / 2)[inverse]
    return ranks


def equal_shapes(x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.generic]]:
    """Return two arguments as arrays of one shape with at least one element; an `InputError` for others."""
    a, b = np.asarray(x), np.asarray(y)
    if a.shape != b.shape or a.size == 0:
        raise InputError(
            f"the arrays must have one shape and at least one element, not {list(a.shape)} and {list(b.shape)}"
        )
    return a, b
