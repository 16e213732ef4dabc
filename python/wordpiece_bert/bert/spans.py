"""Spans of tokens as answers to questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


def allowed_spans(context: npt.NDArray[np.bool_], longest: int) -> npt.NDArray[np.bool_]:
    """Return which spans, first token by last token, lie in the context and are short enough.

    Parameters
    ----------
    context : ndarray of bool
        Which tokens are of the context, [S].
    longest : int
        The longest answer, in tokens.

    Returns
    -------
    ndarray of bool
        [S, S].
    """
    inside = context[:, None] & context[None, :]
    return np.tril(np.triu(inside), longest - 1)
