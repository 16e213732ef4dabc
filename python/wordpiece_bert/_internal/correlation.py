"""Correlations of two columns of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert._internal.arrays import as_numbers
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt


def pearson(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Return Pearson's correlation of two columns of numbers; NaN if one is constant.

    Parameters
    ----------
    x, y : array_like
        Numbers [n].

    Returns
    -------
    float
        From −1 to 1, or NaN if a column is constant or has a number that is not finite.

    Raises
    ------
    InputError
        A column has no numbers, other values or more axes, or the lengths differ.

    Examples
    --------
    >>> from wordpiece_bert.finetune.metrics import pearson
    >>> round(pearson([1, 2, 3], [2, 4, 7]), 3)
    0.993
    """
    a, b = _columns(x, y)
    # The rounded mean of equal numbers may differ from them.
    if any((column == column[0]).all() or not np.isfinite(column).all() for column in (a, b)):
        return float("nan")
    a, b = _centered(a), _centered(b)
    found = float(a @ b) / float(np.sqrt((a @ a) * (b @ b)))
    return min(1.0, max(-1.0, found))


def spearman(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Return Spearman's rank correlation of two columns of numbers; equal numbers share the mean of their ranks.

    Parameters
    ----------
    x, y : array_like
        Numbers [n].

    Returns
    -------
    float
        From −1 to 1, or NaN if a column is constant or has a NaN.

    Raises
    ------
    InputError
        As for `pearson`.

    Examples
    --------
    >>> from wordpiece_bert.finetune.metrics import spearman
    >>> spearman([1, 2, 3], [2, 4, 70])
    1.0
    """
    a, b = _columns(x, y)
    if np.isnan(a).any() or np.isnan(b).any():  # which have no rank
        return float("nan")
    return pearson(_ranks(a), _ranks(b))


def _columns(x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return two columns of numbers of one length as float64."""
    a, b = equal_shapes(as_numbers("the first column", x), as_numbers("the second column", y))
    if a.ndim != 1:
        raise InputError(f"correlations are of two columns of numbers, not of arrays of shape {list(a.shape)}")
    return a.astype(np.float64), b.astype(np.float64)


def _centered(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the differences from the mean, times a power of two with which no square overflows or vanishes."""
    x = _scaled(x)
    return _scaled(x - x.mean())


def _scaled(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return numbers times a power of two with which the largest of them is from ½ to below 1."""
    scaled: npt.NDArray[np.float64] = np.ldexp(x, -np.frexp(np.abs(x).max())[1])
    return scaled


def _ranks(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
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
