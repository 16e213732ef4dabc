"""Four measures of similarity between vectors; for each, higher means more similar."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert._internal.arrays import as_float32, as_numbers, as_vectors
from wordpiece_bert._internal.checks import finite_number
from wordpiece_bert.bert.functional import Array, normalize
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

#: Cosine of the angle, dot product, negative Euclidean distance, negative sum of absolute differences.
METRICS = ("cosine", "dot", "euclidean", "manhattan")

#: The lowest and the highest value of each measure.
_LIMITS = {
    "cosine": (-1.0, 1.0),
    "dot": (-math.inf, math.inf),
    "euclidean": (-math.inf, 0.0),
    "manhattan": (-math.inf, 0.0),
}

#: By how much the cosine of equal vectors may be rounded below 1 in float32: 5 units in the last place were measured
#: with up to 16,384 numbers.
_ROUNDING = 8 * float(np.finfo(np.float32).eps)

# Of a shorter vector, float32 squares have lost digits, or are 0.
_LEAST_LENGTH = 1e-12

# NumPy runs signal handlers only between its calls, so each call is given at most this many numbers, 16 MB, or
# multiplications: some 10 ms, and below 0.1 s on a slow and busy machine.
BLOCK_NUMBERS = 1 << 22
BLOCK_PRODUCTS = 1 << 28


def similarity(a: npt.ArrayLike, b: npt.ArrayLike, metric: str = "cosine") -> Array:
    """Compare every vector of `a` with every vector of `b`.

    Parameters
    ----------
    a, b : array_like
        Vectors, [n, d] and [m, d]; one vector [d] counts as [1, d].
    metric : str, default "cosine"
        ``"cosine"``, ``"dot"``, ``"euclidean"`` (the negative distance) or ``"manhattan"`` (the negative L1 distance).

    Returns
    -------
    array
        float32 [n, m].

    Raises
    ------
    InputError
        The vectors of `a` and `b` differ in length, or the metric is unknown.

    Examples
    --------
    >>> from wordpiece_bert.sentence import similarity
    >>> similarity([[1.0, 0.0]], [[2.0, 0.0], [0.0, 3.0]])
    array([[1., 0.]], dtype=float32)
    >>> similarity([1.0, 0.0], [[2.0, 0.0], [0.0, 3.0]], "dot")
    array([[2., 0.]], dtype=float32)
    """
    check_metric(metric)
    # In C order: which products the library of NumPy computes, and so the last bits, depends on the order.
    x = np.ascontiguousarray(as_float32("a", as_vectors("a", a)))  # [n, d]
    y = np.ascontiguousarray(as_float32("b", as_vectors("b", b)))  # [m, d]
    _match(x.shape[1], y.shape[1])
    if metric == "cosine":
        return _products(normalized(x), normalized(y))
    if metric == "dot":
        return _products(x, y)
    # One row at a time, differences [m, d]: the formula |x|² − 2xy + |y|² loses half the digits if x is close to y.
    rows = [_negative_distance(row, y, metric) for row in x]
    return np.stack(rows) if rows else np.zeros((0, len(y)), np.float32)


def pairwise_similarity(a: npt.ArrayLike, b: npt.ArrayLike, metric: str = "cosine") -> Array:
    """Compare the vectors of `a` and `b` pair by pair, [n, d] and [n, d] -> float32 [n].

    Metrics and errors are as for `similarity`.

    Parameters
    ----------
    a, b : array_like
        Vectors [n, d] each.
    metric : {"cosine", "dot", "euclidean", "manhattan"}, default "cosine"
        The measure, as in `similarity`.

    Returns
    -------
    ndarray of float32
        The similarities, [n].

    Raises
    ------
    InputError
        The numbers of vectors differ, or as for `similarity`.

    Examples
    --------
    >>> from wordpiece_bert.sentence import pairwise_similarity
    >>> pairwise_similarity([[1.0, 0.0], [3.0, 4.0]], [[2.0, 0.0], [0.0, 0.0]], "euclidean")
    array([-1., -5.], dtype=float32)
    """
    check_metric(metric)
    x, y = as_float32("a", as_vectors("a", a)), as_float32("b", as_vectors("b", b))  # [n, d]
    _match(x.shape[1], y.shape[1])
    if len(x) != len(y):
        raise InputError(f"pairs need equal numbers of vectors, not {len(x)} and {len(y)}")
    if metric == "cosine":
        x, y = normalized(x), normalized(y)
    if metric in ("cosine", "dot"):
        products: Array = (x * y).sum(axis=-1)  # [n]
        return products
    return _negative_distance(x, y, metric)


def check_metric(metric: str) -> None:
    """Raise an `InputError` unless `metric` is one of `METRICS`."""
    if metric not in METRICS:
        raise InputError(f"similarity must be one of {', '.join(METRICS)}, not {metric!r}")


def similarity_limit(name: str, value: object, metric: str) -> float:
    """Check a limit of similarities: a finite number that a measure can have, from −1 to 1 for the cosine.

    Parameters
    ----------
    name : str
        The argument's name, for the message.
    value : float
        The argument.
    metric : str
        One of `METRICS`.

    Raises
    ------
    InputError
        It is not a finite number, or no similarity can have it: a percentage as a limit of cosines finds nothing.
    """
    number = finite_number(name, value)
    lowest, highest = _LIMITS[metric]
    if not lowest <= number <= highest:
        what = "from -1 to 1, a cosine" if metric == "cosine" else f"0 or less, a negative {metric} distance"
        raise InputError(f"{name} must be {what}, not {value!r}")
    return number


def least_score(name: str, value: object, metric: str = "cosine") -> np.float32:
    """Check a threshold of similarity, as `similarity_limit`, and return the least score that reaches it.

    A cosine of 1 is reached by equal vectors, although it may be rounded to a lower number.
    """
    number = similarity_limit(name, value, metric)
    return np.float32(min(number, 1 - _ROUNDING) if metric == "cosine" else number)


def checked_scores(name: str, found: object, rows: int, columns: int) -> Array:
    """Return what a function of two sets of vectors returned as scores, a new float32 array [rows, columns].

    Raises
    ------
    InputError
        It has another shape, or a score is NaN, which is neither higher nor lower than others.
    """
    scores = np.array(as_numbers(f"the result of {name}", found), np.float32)
    if scores.shape != (rows, columns):
        raise InputError(
            f"{name} must return an array of shape {[rows, columns]} for {rows} and {columns} vectors, not of shape "
            f"{list(scores.shape)}"
        )
    bad = np.argwhere(np.isnan(scores))
    if len(bad):
        raise InputError(f"{name} returned NaN for the vectors {bad[0, 0]} and {bad[0, 1]} it was given")
    return scores


def normalized(x: Array) -> Array:
    """Divide vectors [n, d] by their lengths, or leave zeros, a block at a time: Ctrl-C is obeyed in between."""
    step = max(1, BLOCK_NUMBERS // max(1, x.shape[1]))
    if len(x) <= step:
        return _unit(x)
    result = np.empty_like(x)
    for start in range(0, len(x), step):
        result[start : start + step] = _unit(x[start : start + step])
    return result


def _unit(x: Array) -> Array:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        length: Array = np.sqrt(np.square(x).sum(axis=-1))  # [n]
        unit = normalize(x)
        if len(odd := np.flatnonzero(~_holds(length))):
            wide = x[odd].astype(np.float64)
            unit[odd] = wide / np.maximum(np.linalg.norm(wide, axis=-1, keepdims=True), np.finfo(np.float64).tiny)
    return unit


def _holds(length: Array) -> npt.NDArray[np.bool_]:
    """Return which lengths come from float32 squares that are neither beyond the range nor near 0."""
    return (length >= _LEAST_LENGTH) & (length < np.inf)


def _products(x: Array, y: Array) -> Array:
    """Compute the dot products of vectors [n, d] and [m, d], a block at a time: Ctrl-C is obeyed in between."""
    width = max(1, x.shape[1])
    rows = max(1, min(len(x), 1024))
    columns = max(1, min(BLOCK_NUMBERS // width, BLOCK_PRODUCTS // (rows * width)))
    if len(x) <= rows and len(y) <= columns:
        return x @ y.T
    scores = np.empty((len(x), len(y)), np.float32)
    for i in range(0, len(x), rows):
        for j in range(0, len(y), columns):
            np.matmul(x[i : i + rows], y[j : j + columns].T, out=scores[i : i + rows, j : j + columns])
    return scores


def _negative_distance(x: Array, y: Array, metric: str) -> Array:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        difference = x - y  # [..., d]
        if metric == "manhattan":
            distance: Array = np.abs(difference).sum(axis=-1)
        else:
            distance = np.linalg.norm(difference, axis=-1)
            if len(odd := np.flatnonzero(~_holds(distance))):
                distance[odd] = np.linalg.norm(difference[odd].astype(np.float64), axis=-1)
    return -distance


def _match(left: int, right: int) -> None:
    if left != right:
        raise InputError(f"the vectors of a have {left} numbers, those of b {right}: they are not from the same model")
