"""The second stage of a search: scores of pairs of a query and a candidate, by a cross encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.checks import check_instance
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.cross_encoder import CrossEncoder

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

#: So many pairs of a query and a candidate are scored in one call of the cross encoder: enough to sort them by length.
_PAIRS = 4096


def check_reranker(reranker: Any, name: str = "reranker") -> None:
    """Raise an `InputError` unless an argument is a cross encoder with one label."""
    check_instance(name, reranker, CrossEncoder)
    if reranker.num_labels != 1:
        raise InputError(f"{name} must be a cross encoder with one label; this one has {reranker.num_labels}")


def scores_of_pairs(
    reranker: CrossEncoder, pairs: Sequence[tuple[str, str]], *, batch_size: int, show: bool | None = None
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Return the scores of pairs of texts, [pairs], and which of them were truncated."""
    scores, truncated = np.zeros(len(pairs), np.float32), np.zeros(len(pairs), np.bool_)
    for start in range(0, len(pairs), _PAIRS):
        part = slice(start, start + _PAIRS)
        scores[part], truncated[part] = reranker.predict(
            list(pairs[part]), batch_size, show_progress_bar=show, return_truncated=True
        )
    return scores, truncated
