"""The tokens of a training batch, laid out one row after the other without padding."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array, Ids, Mask
    from wordpiece_bert.bert.inputs import Inputs


class Tokens(NamedTuple):
    """M tokens of B rows: in each row the visible ones first, then masked ones that a head reads.

    A masked token is a query but no key, as in a padded batch.
    """

    shape: tuple[int, int]  # B, S of the padded batch
    rows: npt.NDArray[np.int64]  # [M] the row of each token
    columns: npt.NDArray[np.int64]  # [M] its place in the padded row
    starts: npt.NDArray[np.int64]  # [B + 1] row b has tokens starts[b] to starts[b + 1] - 1
    visible: npt.NDArray[np.int64]  # [B] how many tokens of each row are visible
    types: Ids  # [M]
    positions: Ids  # [M]
    tasks: Ids  # [M]
    ids: Ids | None  # [M]; None if word vectors are given
    vectors: Array | None  # [M, E] word vectors, instead of ids

    def padded(self, x: Array) -> Array:
        """[M, ...] -> [B, S, ...], 0 where a position was not computed."""
        y = np.zeros((*self.shape, *x.shape[1:]), x.dtype)
        y[self.rows, self.columns] = x
        return y

    def firsts(self) -> npt.NDArray[np.int64]:
        """Return the index of each row's token at place 0, [B]; it is one that was asked for."""
        at_zero = np.flatnonzero(self.columns == 0)
        assert len(at_zero) == self.shape[0], "place 0 of every row is laid out where a head reads it"
        return at_zero

    def seen(self) -> npt.NDArray[np.bool_]:
        """Return which tokens are visible, [M]."""
        places: npt.NDArray[np.int64] = np.arange(len(self.rows)) - self.starts[self.rows]
        return places < self.visible[self.rows]

    def keys(self, row: int) -> slice:
        """Return the tokens of a row that are visible."""
        start = int(self.starts[row])
        return slice(start, start + int(self.visible[row]))

    def queries(self, row: int) -> slice:
        """Return all tokens of a row that are computed."""
        return slice(int(self.starts[row]), int(self.starts[row + 1]))


def lay_out(inputs: Inputs, read: Mask) -> Tokens:
    """Lay out the tokens of a batch that are visible, or that a head reads.

    Parameters
    ----------
    inputs
        What `check_inputs` returned.
    read
        The positions that a head reads, booleans [B, S].
    """
    batch, length = inputs.shape
    mask = np.ones((batch, length), np.bool_) if inputs.mask is None else inputs.mask  # [B, S]
    order = np.argsort(~mask, axis=1, kind="stable")  # [B, S] the visible places first
    kept = np.take_along_axis(mask | read, order, axis=1)  # [B, S]
    rows = np.nonzero(kept)[0]  # [M]
    columns = order[kept]  # [M]

    def flat(values: Ids) -> Ids:
        return np.broadcast_to(values, (batch, length))[rows, columns]

    return Tokens(
        shape=(batch, length),
        rows=rows,
        columns=columns,
        starts=np.concatenate([[0], np.cumsum(kept.sum(axis=1))]).astype(np.int64),
        visible=mask.sum(axis=1).astype(np.int64),
        types=flat(inputs.token_type_ids),
        positions=flat(inputs.position_ids),
        tasks=flat(np.zeros((1, 1), np.int64) if inputs.task_type_ids is None else inputs.task_type_ids),
        ids=None if inputs.input_ids is None else flat(inputs.input_ids),
        vectors=None if inputs.inputs_embeds is None else inputs.inputs_embeds[rows, columns],
    )
