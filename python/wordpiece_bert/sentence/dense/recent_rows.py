"""Vectors of rows that earlier calls have computed, for programs that hand over many texts some at a time."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert._internal.context import value_within

if TYPE_CHECKING:
    from collections.abc import Hashable
    from contextlib import AbstractContextManager

    import numpy.typing as npt

    from wordpiece_bert._internal.recent import Recent
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch

#: The most memory of the vectors that are kept, with their ids.
RECENT_BYTES = 64 << 20

_kept: ContextVar[Recent | None] = ContextVar("recent_vectors", default=None)


def recent_vectors(kept: Recent) -> AbstractContextManager[None]:
    """Inside this context, models of dense encoders take vectors from a table, and put the ones they compute there."""
    return value_within(_kept, kept)


class RecentVectors:
    """The rows of a call whose vectors are in the table of this context, if there is one.

    Parameters
    ----------
    rows : RaggedBatch
        The rows.
    of_model : hashable
        The model and the options that vectors depend on.
    vectors : array
        Where the vectors go, [rows, d].
    """

    def __init__(self, rows: RaggedBatch, of_model: Hashable, vectors: Array) -> None:
        self._table, self._vectors = _kept.get(), vectors
        #: Which rows have vectors, [rows]; None without a table.
        self.known: npt.NDArray[np.bool_] | None = None
        if self._table is None:
            return
        self._keys = [(of_model, ids.tobytes()) for ids in rows]
        self.known = np.zeros(len(rows), np.bool_)
        for row, key in enumerate(self._keys):
            if (vector := self._table.get(key)) is not None:
                vectors[row], self.known[row] = vector, True

    def keep(self) -> None:
        """Keep the vectors that were computed."""
        if self._table is None or self.known is None:
            return
        for row in np.flatnonzero(~self.known).tolist():
            key, vector = self._keys[row], self._vectors[row]
            self._table.keep(key, vector.copy(), len(key[1]) + vector.nbytes)
