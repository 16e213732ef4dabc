"""The highest of many scores, without sorting all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


def highest(scores: npt.NDArray[Any], count: int) -> npt.NDArray[np.int64]:
    """Return the indices of the `count` highest scores [n], the highest first, of equal ones the lower index first.

    NaN counts as lower than all numbers. With fewer than `count` scores, all indices are returned.
    """
    negative = -scores
    if count >= len(scores):
        return np.argsort(negative, kind="stable")
    last = np.partition(negative, count - 1)[count - 1]
    # All that equal the last are candidates; the stable sort chooses the lower ones. NaN is sorted to the end.
    candidates = np.flatnonzero(~(negative > last))
    return candidates[np.argsort(negative[candidates], kind="stable")[:count]]
