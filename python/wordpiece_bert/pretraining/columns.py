"""Rows of example folders as columns: the features that Arrow, Parquet and JSON lines hold, and what Spark returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert.bert.losses import IGNORED

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

__all__ = ["ExampleColumns", "ShardArrays", "column_blocks"]

# A block has about this many tokens.
_BLOCK_TOKENS = 1 << 19


class ShardArrays(NamedTuple):
    """The arrays of one pass over one shard of examples; see the layout of example folders."""

    input_ids: npt.NDArray[Any]
    row_offsets: npt.NDArray[np.int64]
    second_starts: npt.NDArray[Any] | None = None
    pair_labels: npt.NDArray[np.uint8] | None = None
    masked_offsets: npt.NDArray[np.int64] | None = None
    masked_positions: npt.NDArray[Any] | None = None
    masked_ids: npt.NDArray[Any] | None = None
    sequence_offsets: npt.NDArray[np.int64] | None = None
    sequence_lengths: npt.NDArray[Any] | None = None


@dataclass(frozen=True, slots=True)
class ExampleColumns:
    """Some rows as flat columns.

    Attributes
    ----------
    offsets : ndarray of int32
        Where each row begins in `tokens`, and the end of the last [rows + 1].
    tokens : dict of str to ndarray
        One entry for each token: ``input_ids`` (int32), ``token_type_ids`` (int8), ``labels`` (int32) if rows are
        masked, ``position_ids`` (int32) if they are packed.
    sequence_offsets : ndarray of int32 or None
        Where the sequences of each packed row begin in `pair_labels` [rows + 1].
    cu_seqlens : ndarray of int32 or None
        The bounds of sequences of packed rows, one more than sequences for each row, from 0 to the row's length.
    pair_labels : ndarray of int8 or None
        The label of each row, or of each sequence.
    """

    offsets: npt.NDArray[np.int32]
    tokens: dict[str, npt.NDArray[Any]]
    sequence_offsets: npt.NDArray[np.int32] | None
    cu_seqlens: npt.NDArray[np.int32] | None
    pair_labels: npt.NDArray[np.int8] | None

    def __len__(self) -> int:
        return len(self.offsets) - 1


def column_blocks(shard: ShardArrays) -> Iterator[ExampleColumns]:
    """Yield the rows of a shard as columns, about half a million tokens at a time."""
    offsets = shard.row_offsets
    first, count = 0, len(offsets) - 1
    while first < count:
        end = int(np.searchsorted(offsets, offsets[first] + _BLOCK_TOKENS))
        end = min(max(end, first + 1), count)
        yield _columns(shard, first, end)
        first = end


def _columns(shard: ShardArrays, first: int, end: int) -> ExampleColumns:
    bounds = shard.row_offsets[first : end + 1]
    start, stop = int(bounds[0]), int(bounds[-1])
    ids = shard.input_ids[start:stop].astype(np.int32)
    # The sequences: those of packed rows, or the rows themselves.
    sequence_offsets = None
    lengths = np.diff(bounds)
    items = slice(first, end)
    if shard.sequence_offsets is not None and shard.sequence_lengths is not None:
        of_rows = shard.sequence_offsets[first : end + 1]
        items = slice(int(of_rows[0]), int(of_rows[-1]))
        sequence_offsets = (of_rows - of_rows[0]).astype(np.int32)
        lengths = shard.sequence_lengths[items].astype(np.int64)
    begins = np.concatenate([[0], np.cumsum(lengths)])[:-1]
    positions = np.arange(len(ids)) - np.repeat(begins, lengths)
    tokens: dict[str, npt.NDArray[Any]] = {"input_ids": ids, "token_type_ids": np.zeros(len(ids), np.int8)}
    if shard.second_starts is not None:
        seconds = np.repeat(shard.second_starts[items].astype(np.int64), lengths)
        tokens["token_type_ids"] = ((seconds > 0) & (positions >= seconds)).astype(np.int8)
    if shard.masked_offsets is not None and shard.masked_positions is not None and shard.masked_ids is not None:
        labels = np.full(len(ids), IGNORED, np.int32)
        of_rows = shard.masked_offsets[first : end + 1]
        masks = slice(int(of_rows[0]), int(of_rows[-1]))
        places = np.repeat(bounds[:-1] - start, np.diff(of_rows)) + shard.masked_positions[masks]
        labels[places] = shard.masked_ids[masks]
        tokens["labels"] = labels
    cu_seqlens = None
    if sequence_offsets is not None:
        tokens["position_ids"] = positions.astype(np.int32)
        cu_seqlens = _bounds_of_sequences(lengths, sequence_offsets)
    labels_of_pairs = None if shard.pair_labels is None else shard.pair_labels[items].astype(np.int8)
    return ExampleColumns((bounds - start).astype(np.int32), tokens, sequence_offsets, cu_seqlens, labels_of_pairs)


def _bounds_of_sequences(
    lengths: npt.NDArray[np.int64], sequence_offsets: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """Return 0 and the end of each sequence, for each row: one number more than sequences."""
    rows = len(sequence_offsets) - 1
    ends = np.cumsum(lengths)
    begins = np.concatenate([[0], ends])[sequence_offsets[:-1]]
    found = np.zeros(len(lengths) + rows, np.int32)
    row_of = np.repeat(np.arange(rows), np.diff(sequence_offsets))
    found[np.arange(len(lengths)) + row_of + 1] = ends - begins[row_of]
    return found
