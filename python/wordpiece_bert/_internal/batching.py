"""Rows of tokens as batches of padded arrays for a model.

Rows are sorted by length first, so that the rows of a batch are about equally long and little of it is padding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypedDict, TypeVar, cast

import numpy as np

from wordpiece_bert._internal.progress import notify, shown_progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt


AnyBatch = TypeVar("AnyBatch")


class Rows(Protocol):
    """Rows of token ids, one after the other, as in a `RaggedBatch`."""

    @property
    def ids(self) -> npt.NDArray[np.uint32]: ...

    @property
    def row_offsets(self) -> npt.NDArray[np.int64]: ...

    @property
    def lengths(self) -> npt.NDArray[np.int64]: ...

    def __len__(self) -> int: ...


class Encoded(Protocol):
    """What is read of an encoded text: its ids and token types, and how many they are."""

    @property
    def ids(self) -> Sequence[int]:
        """The ids."""

    @property
    def token_type_ids(self) -> Sequence[int]:
        """The token types."""

    def __len__(self) -> int: ...


class ModelInputs(TypedDict):
    """The arguments that every model accepts, [B, S] each."""

    input_ids: npt.NDArray[np.int64]
    attention_mask: npt.NDArray[np.int64]
    token_type_ids: npt.NDArray[np.int64]


def sorted_batches(
    lengths: npt.NDArray[np.integer], size: int, *, bound_padding: bool = False
) -> list[npt.NDArray[np.intp]]:
    """Sort rows by length, longest first, and divide them into batches.

    Parameters
    ----------
    lengths
        The number of tokens of each row, [rows].
    size
        The most rows in a batch.
    bound_padding
        Whether a batch also ends before a row that is shorter than its longest by more than a quarter and by more than
        8 tokens.

    Returns
    -------
    list of arrays
        The row numbers of each batch.
    """
    order = np.argsort(-lengths, kind="stable")
    batches = []
    start = 0
    while start < len(order):
        batch = order[start : start + size]
        if bound_padding:
            longest = int(lengths[batch[0]])
            batch = batch[lengths[batch] >= longest - max(8, longest // 4)]
        batches.append(batch)
        start += len(batch)
    return batches


def token_runs(rows: Rows, tokens: int) -> list[slice]:
    """Divide rows, in their order, into runs of at most `tokens` tokens; a longer row is a run by itself."""
    offsets = rows.row_offsets
    runs = []
    start = 0
    while start < len(rows):
        end = max(int(np.searchsorted(offsets, offsets[start] + tokens, side="right")) - 1, start + 1)
        runs.append(slice(start, end))
        start = end
    return runs


def pad_rows(rows: Rows, batch: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return some rows as ids [B, S], padded with 0 on the right, and which of these are tokens, [B, S]."""
    lengths = rows.lengths[batch]  # [B]
    columns = np.arange(lengths.max())  # [S]
    mask = columns < lengths[:, None]  # [B, S]
    ids = np.zeros(mask.shape, np.int64)  # [B, S]
    ids[mask] = rows.ids[(rows.row_offsets[batch][:, None] + columns)[mask]]
    return ids, mask


def encoding_batches(encodings: Sequence[Encoded], size: int) -> Iterator[tuple[npt.NDArray[np.intp], ModelInputs]]:
    """Yield batches of at most `size` rows: the indices of their encodings [B], and padded inputs."""
    lengths = np.array([len(encoding) for encoding in encodings], np.int64)
    for batch in sorted_batches(lengths, size):
        shape = len(batch), int(lengths[batch[0]])
        inputs = ModelInputs(
            input_ids=np.zeros(shape, np.int64),
            attention_mask=np.zeros(shape, np.int64),
            token_type_ids=np.zeros(shape, np.int64),
        )
        for row, index in enumerate(batch):
            encoding, n = encodings[index], lengths[index]
            inputs["input_ids"][row, :n] = encoding.ids
            inputs["token_type_ids"][row, :n] = encoding.token_type_ids
            inputs["attention_mask"][row, :n] = 1
        yield batch, inputs


def with_progress(
    batches: Sequence[AnyBatch], *, show: bool, lengths: npt.NDArray[np.integer] | None = None
) -> Iterator[AnyBatch]:
    """Yield the batches, and after each report its rows and tokens to a progress bar and to the observer.

    Parameters
    ----------
    batches
        The batches: row numbers or slices of rows if `lengths` is given.
    show
        Whether to show a bar.
    lengths
        The number of tokens of each row. Without it batches are counted instead of rows and tokens.
    """
    rows = tokens = 0
    total = len(batches) if lengths is None else len(lengths)
    of_tokens = 0 if lengths is None else int(lengths.sum())
    with shown_progress(total, "batch" if lengths is None else "row", show) as bar:
        for batch in batches:
            yield batch
            if lengths is None:
                rows += 1
            else:
                counts = lengths[cast("slice", batch)]
                rows, tokens = rows + len(counts), tokens + int(counts.sum())
                notify(len(counts), int(counts.sum()), of_tokens)
            bar.update(rows, tokens=None if lengths is None else tokens)
