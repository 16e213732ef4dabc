"""A map of many texts: points in the plane, and the nearest texts, which no plane can show exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.arrays import as_numbers
from wordpiece_bert._internal.checks import whole_number
from wordpiece_bert.errors import InputError
from wordpiece_bert.inspect.attention import checked_tokens
from wordpiece_bert.inspect.pack import as_finite
from wordpiece_bert.inspect.projections import principal, projection
from wordpiece_bert.inspect.view import View
from wordpiece_bert.sentence.nearest_rows import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array

#: Of more texts, the neighbours of a sample are looked for: so many that no more pairs are compared.
MOST_EXACT = 10_000


def embedding_map(
    vectors: npt.ArrayLike,
    texts: Sequence[str],
    *,
    groups: Sequence[str] | None = None,
    numbers: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
    method: str | Callable[[Array], npt.ArrayLike] = "pca",
    neighbours: int = 10,
    title: str = "Map",
) -> View:
    """Show many texts as points in the plane, with their exact nearest neighbours, search and selection.

    No plane keeps all neighbours of vectors of hundreds of numbers, so the view has the nearest texts of each text,
    found by the cosine of the whole vectors, and the share of them that are also its nearest points in the plane. Among
    more than 10,000 texts a sample has them, rows at equal distances, because all pairs take time with the square of
    their number: 2,000 of 50,000 texts.

    Parameters
    ----------
    vectors : array_like
        One vector for each text, [n, H].
    texts : sequence of str
        n texts.
    groups : sequence of str, optional
        The group of each text, shown by colour and shape.
    numbers : array_like or mapping of str to array_like, optional
        A number for each text, or several by name, to colour the points by.
    method : str or callable, default "pca"
        ``"pca"``, the two directions of largest variance; ``"tsne"``, which keeps neighbours together, and with more
        than 2,000 texts needs scikit-learn; ``"umap"``, where umap-learn is installed; or a function from vectors
        [n, H] to points [n, 2].
    neighbours : int, default 10
        How many nearest texts to find, k; at most n − 1.
    title : str, default "Map"
        A line above the view.

    Returns
    -------
    View
        The arrays ``points``, [n, 2]; ``neighbours``, int32 [n, k], and ``similarities``, [n, k], the nearest texts and
        their cosines, the nearest first; ``kept``, [n], the share of them among the k nearest points. Where only a
        sample has neighbours, ``data["sampled"]`` is its size, and the other rows are −1, 0 and −1. ``data["kept"]`` is
        the mean, None for fewer than two texts. For ``"pca"``, ``data["explained"]`` has the share
        of the variance that each axis shows.

    Raises
    ------
    InputError
        The method is unknown, its package is not installed, or needs more texts; or an array has the wrong shape.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert import inspect
    >>> view = inspect.embedding_map(
    ...     [[1, 0, 0], [9, 1, 0], [0, 0, 1]], ["a", "b", "c"], neighbours=1
    ... )
    >>> view.arrays["neighbours"].ravel().tolist()
    [1, 0, 0]
    """
    x = as_finite("vectors", vectors, (2,))
    names = checked_tokens(texts, len(x))
    explained = None
    if method == "pca":
        points, explained = principal(x)
    else:
        project = method if callable(method) else projection(method, len(x))
        points = as_finite("the result of method", project(x), (2,))
    if points.shape != (len(x), 2):
        raise InputError(f"method must give {len(x)} points in the plane, not {list(points.shape)}")
    count = min(whole_number("neighbours", neighbours, 1), max(len(x) - 1, 0))
    if not x.shape[1]:
        count = 0  # nothing to compare
    sampled = len(x) if len(x) <= MOST_EXACT else max(MOST_EXACT**2 // len(x), 1)
    asked = np.arange(sampled) * len(x) // max(sampled, 1)
    rows, similarities = _neighbours(x, asked, count, "cosine")
    # Points of equal scale, so that a plane of large or tiny numbers is compared as exactly.
    scale = float(np.abs(points).max(initial=0)) or 1.0
    in_plane, _ = _neighbours(points / scale, asked, count, "euclidean")
    kept = (rows[:, :, None] == in_plane[:, None]).any(axis=2).mean(axis=1) if count else np.zeros(sampled)
    data = {
        "texts": names,
        "groups": None if groups is None else checked_tokens(groups, len(x)),
        "numbers": _numbers(numbers, len(x)),
        "method": method if isinstance(method, str) else getattr(method, "__name__", "points"),
        "explained": explained,
        "width": x.shape[1],
        "neighbours": count,
        "kept": float(kept.mean()) if count else None,
        "sampled": None if sampled == len(x) else sampled,
    }
    arrays: dict[str, Any] = {
        "points": points,
        "neighbours": _of_all(rows.astype(np.int32), asked, len(x), -1),
        "similarities": _of_all(similarities.astype(np.float32), asked, len(x), 0),
        "kept": _of_all(kept.astype(np.float32), asked, len(x), -1),
    }
    return View("map", title, data, arrays, {"similarities": "unit"})


def _of_all(values: npt.NDArray[Any], asked: npt.NDArray[np.int64], count: int, other: int) -> npt.NDArray[Any]:
    """Return the values of `count` rows: the given ones in the rows that are `asked`, `other` in the rest."""
    found = np.full((count, *values.shape[1:]), other, values.dtype)
    found[asked] = values
    return found


def _neighbours(
    x: Array, asked: npt.NDArray[np.int64], count: int, metric: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return for each of the m vectors `asked` among [n, H] the `count` nearest others and their scores, [m, count]."""
    shape = len(asked), count
    if not count:
        return np.zeros(shape, np.int64), np.zeros(shape)
    rows, scores = nearest(x[asked], x, metric, count + 1, None)
    # Each vector finds itself, unless count + 1 others are equal to it: then the last hit is left out.
    itself = rows == asked[:, None]
    itself[~itself.any(axis=1), -1] = True
    return rows[~itself].reshape(shape), scores[~itself].reshape(shape)


def _numbers(numbers: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None, count: int) -> dict[str, list[float]]:
    """Return the numbers of the texts by name.

    Raises
    ------
    InputError
        They are not `count` finite numbers.
    """
    if numbers is None:
        return {}
    named = numbers if isinstance(numbers, Mapping) else {"number": numbers}
    found = {}
    for name, values in named.items():
        array = as_numbers(f"numbers[{name!r}]", values)
        if array.shape != (count,) or not np.isfinite(array).all():
            raise InputError(f"numbers[{name!r}] must be {count} finite numbers, one for each text")
        found[str(name)] = array.astype(np.float64).tolist()
    return found
