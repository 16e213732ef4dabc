"""Communities in a collection of vectors: groups around a vector to which all others are similar."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert._internal.arrays import as_float32, as_vectors, check_finite
from wordpiece_bert._internal.checks import whole_number
from wordpiece_bert._internal.progress import shown_progress
from wordpiece_bert.sentence.metrics import least_score, normalized

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array

#: The most scores that are in memory at once, 4 MB of float32: they stay in the processor's cache.
_BLOCK = 1 << 20

#: So many centers are compared with all vectors at once. Those that an earlier one of them takes are compared in vain.
_CENTERS = 32


def community_detection(
    embeddings: npt.ArrayLike,
    threshold: float = 0.75,
    min_community_size: int = 10,
    batch_size: int = 1024,
    show_progress_bar: bool = False,
) -> list[list[int]]:
    """Find groups of similar vectors: the fast clustering of sentence-transformers, with its result.

    A vector is near another if their cosine reaches `threshold`, and near itself. The candidates are all vectors with
    at least `min_community_size` near vectors, the largest number first. A candidate that is not yet in a community
    makes one of its near vectors that are not in one either, if they are enough. Vectors in no community are left out.

    Parameters
    ----------
    embeddings : array_like
        Vectors [n, d].
    threshold : float, default 0.75
        The least cosine to the center, from −1 to 1, which equal vectors reach.
    min_community_size : int, default 10
        The fewest vectors of a community.
    batch_size : int, default 1024
        How many vectors are compared with all others at once, at most.
    show_progress_bar : bool, default False
        Whether to show a progress bar on standard error.

    Returns
    -------
    list of list of int
        The rows of each community, the largest community first: its center, then the others by falling cosine, of equal
        ones the lower row first.

    Raises
    ------
    InputError
        A vector has NaN or infinity, or an argument is wrong: no cosine reaches a threshold of 95.

    Notes
    -----
    Every pair is compared once, n²·d multiplications, and only the numbers of similar vectors are kept. A center is
    compared with all vectors again when its turn comes. Memory does not grow with the number of similar pairs.

    Examples
    --------
    >>> from wordpiece_bert.util import community_detection
    >>> community_detection([[1, 0], [0, 1], [1, 0.1], [0.9, 0]], min_community_size=2)
    [[0, 3, 2]]
    """
    least = least_score("threshold", threshold)
    fewest = whole_number("min_community_size", min_community_size, 1)
    rows = whole_number("batch_size", batch_size, 1)
    if isinstance(embeddings, list | tuple) and not embeddings:
        return []
    vectors = as_float32("embeddings", as_vectors("embeddings", embeddings))
    check_finite("embeddings", vectors)
    if len(vectors) < fewest:
        return []
    vectors = normalized(vectors)
    counts = _counts(vectors, least, rows, show=show_progress_bar)
    candidates = np.argsort(-counts, kind="stable")
    candidates = candidates[counts[candidates] >= fewest]
    used = np.zeros(len(vectors), np.bool_)
    communities: list[list[int]] = []
    while len(candidates):
        candidates = candidates[~used[candidates]]
        centers, candidates = candidates[:_CENTERS], candidates[_CENTERS:]
        scores = vectors[centers] @ vectors.T  # [centers, n]
        for center, row in zip(centers.tolist(), scores, strict=True):
            if used[center]:
                continue
            near = np.flatnonzero((row >= least) & ~used)
            if len(near) < fewest:
                continue
            near = near[np.argsort(-row[near], kind="stable")]
            communities.append([center, *near[near != center].tolist()])
            used[communities[-1]] = True
    return sorted(communities, key=len, reverse=True)


def _counts(vectors: Array, least: np.float32, rows: int, *, show: bool) -> npt.NDArray[np.int64]:
    """Return for each vector how many have at least this dot product with it, [n]; each pair is compared once."""
    count = len(vectors)
    found = np.zeros(count, np.int64)
    rows = max(1, min(rows, _BLOCK // 1024))
    columns = max(1, _BLOCK // rows)
    with shown_progress(count, "vectors", show) as bar:
        for top in range(0, count, rows):
            some = vectors[top : top + rows]
            for left in range(top, count, columns):
                others = vectors[left : left + columns]
                near = np.flatnonzero(some @ others.T >= least)
                first, second = np.divmod(near, len(others))
                found[top : top + len(some)] += np.bincount(first, minlength=len(some))
                # Pairs within the rows are met twice, those with later rows once.
                later = second[second + left >= top + len(some)]
                found[left : left + len(others)] += np.bincount(later, minlength=len(others))
            bar.update(top + len(some))
    return found
