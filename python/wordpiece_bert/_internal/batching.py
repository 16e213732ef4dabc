"""Rows of tokens as batches of padded arrays for a model, each distinct row once.

Rows are sorted by length first, so that the rows of a batch are about equally long and little of it is padding.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypedDict, TypeVar, cast

import numpy as np

from wordpiece_bert._internal.progress import notify, shown_progress

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    import numpy.typing as npt


AnyBatch = TypeVar("AnyBatch")

# So many results are copied at once to rows that are equal to computed ones.
_COPIED = 1 << 12


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


class Distinct:
    """Which rows of a call are equal.

    A result of a row does not depend on the others, so each distinct row is computed once.

    Parameters
    ----------
    keys : iterable of hashable
        What a row is computed from, of each row.
    """

    def __init__(self, keys: Iterable[Hashable]) -> None:
        seen: dict[Hashable, int] = {}
        #: The number of the first row that is equal to each row, [rows].
        self.first = np.array([seen.setdefault(key, row) for row, key in enumerate(keys)], np.intp)
        #: The numbers of the distinct rows, in order.
        self.rows = np.fromiter(seen.values(), np.intp, len(seen))
        #: For how many rows each of them stands; 0 for the others, [rows].
        self.times = np.bincount(self.first, minlength=len(self.first))
        self._order: npt.NDArray[np.intp] | None = None

    @property
    def has_repeats(self) -> bool:
        """Whether any two rows are equal."""
        return len(self.rows) < len(self.first)

    def sharing(self, batch: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return the numbers of all rows that the distinct rows of a batch stand for, and the place of each in it."""
        if not self.has_repeats:
            return batch, np.arange(len(batch))
        if self._order is None:
            self._order = np.argsort(self.first, kind="stable")  # equal rows beside each other
            self._starts = np.cumsum(self.times) - self.times
        times = self.times[batch]
        places = np.repeat(np.arange(len(batch)), times)
        within = np.arange(len(places)) - np.repeat(np.cumsum(times) - times, times)
        return self._order[self._starts[batch][places] + within], places


def distinct_rows(rows: Rows, also: npt.NDArray[np.integer] | None = None) -> Distinct:
    """Return which rows have the same ids, and the same number in `also`, [rows], if it is given."""
    ids, ends = rows.ids.tobytes(), (rows.row_offsets * rows.ids.itemsize).tolist()
    keys: Iterable[Hashable] = (ids[start:end] for start, end in pairwise(ends))
    return Distinct(keys if also is None else zip(keys, also.tolist(), strict=True))


class Passes:
    """Rows divided into passes of a model, each distinct row in one of them.

    Parameters
    ----------
    rows : Rows
        The rows.
    size : int
        The most rows of a pass, which are sorted by length.
    tokens : int or None
        Instead, the most tokens of a pass, for a model that takes rows of any lengths.
    bound_padding : bool
        Whether short rows do not share a pass of `size` rows with far longer ones.
    also : array, optional
        What rows are computed from beside their ids, [rows].
    known : array of bool, optional
        Which rows have results already, and are in no pass, [rows]; of equal rows all or none.
    """

    def __init__(
        self,
        rows: Rows,
        size: int,
        tokens: int | None = None,
        *,
        bound_padding: bool = False,
        also: npt.NDArray[np.integer] | None = None,
        known: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        self._lengths = lengths = rows.lengths
        self._distinct = distinct = distinct_rows(rows, also)
        self._known = np.zeros(len(lengths), np.bool_) if known is None else known
        computed = distinct.rows[~self._known[distinct.rows]]
        #: Row numbers, or slices of rows if all are computed.
        self.parts: list[slice | npt.NDArray[np.intp]]
        if tokens is None:
            batches = sorted_batches(lengths[computed], size, bound_padding=bound_padding)
            self.parts = [computed[batch] for batch in batches]
        elif len(computed) < len(lengths):
            ends = np.concatenate([[0], np.cumsum(lengths[computed])])
            self.parts = [computed[run] for run in token_runs(ends, tokens)]
        else:
            self.parts = [*token_runs(rows.row_offsets, tokens)]

    def shown(self, *, show: bool) -> Iterator[Any]:
        """Yield the passes, and report all rows that each stands for."""
        known = int(self._known.sum()), int(self._lengths[self._known].sum())
        return with_progress(self.parts, show=show, lengths=self._lengths, times=self._distinct.times, done=known)

    def order(self) -> npt.NDArray[np.intp] | None:
        """Return the indices that make results of all rows, in order, from the joined results of the passes.

        None if these are in the order of the rows, none of which is repeated. There are no rows with results already.
        """
        batches = [part for part in self.parts if not isinstance(part, slice)]
        if not batches:
            return None
        place = np.zeros(len(self._lengths), np.intp)
        computed = np.concatenate(batches)
        place[computed] = np.arange(len(computed))
        return place[self._distinct.first]

    def repeat(self, results: npt.NDArray[np.generic]) -> None:
        """Copy results of the rows that were computed, [rows, ...], to the rows that are equal to them."""
        first = self._distinct.first
        again = np.flatnonzero(first != np.arange(len(first)))
        for start in range(0, len(again), _COPIED):  # in bounded memory
            rows = again[start : start + _COPIED]
            results[rows] = results[first[rows]]

    def sharing(self, part: npt.NDArray[np.intp]) -> Iterator[tuple[int, int]]:
        """Yield the number of each row that a pass stands for, and its place in the pass."""
        numbers, places = self._distinct.sharing(part)
        return zip(numbers.tolist(), places.tolist(), strict=True)


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


def token_runs(offsets: npt.NDArray[np.int64], tokens: int) -> list[slice]:
    """Divide rows, in their order, into runs of at most `tokens` tokens; a longer row is a run by itself.

    `offsets` has the number of tokens before each row, and that of all, [rows + 1].
    """
    runs = []
    start = 0
    while start < len(offsets) - 1:
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


class Batch(NamedTuple):
    """Padded rows of encodings that are all distinct."""

    #: The indices of all encodings that the rows stand for, [n] with n ≥ B.
    encodings: npt.NDArray[np.intp]
    #: The row of each of them, [n].
    rows: npt.NDArray[np.intp]
    #: The number of tokens of all of them.
    tokens: int
    #: The rows, [B, S].
    inputs: ModelInputs


def encoding_batches(encodings: Sequence[Encoded], size: int) -> Iterator[Batch]:
    """Yield batches of at most `size` rows, each distinct row once."""
    lengths = np.array([len(encoding) for encoding in encodings], np.int64)
    distinct = Distinct((tuple(encoding.ids), tuple(encoding.token_type_ids)) for encoding in encodings)
    for chosen in sorted_batches(lengths[distinct.rows], size):
        batch = distinct.rows[chosen]
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
        numbers, places = distinct.sharing(batch)
        yield Batch(numbers, places, int(lengths[numbers].sum()), inputs)


def with_progress(
    batches: Sequence[AnyBatch],
    *,
    show: bool,
    lengths: npt.NDArray[np.integer] | None = None,
    times: npt.NDArray[np.integer] | None = None,
    done: tuple[int, int] = (0, 0),
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
    times
        For how many rows each one stands; by default for itself.
    done
        The rows and tokens that are in no batch, because they are done already.
    """
    rows, tokens = done
    total = len(batches) if lengths is None else len(lengths)
    of_tokens = 0 if lengths is None else int(lengths.sum())
    with shown_progress(total, "batch" if lengths is None else "row", show) as bar:
        if rows:
            notify(rows, tokens, of_tokens)
            bar.update(rows, tokens=tokens)
        for batch in batches:
            yield batch
            if lengths is None:
                rows += 1
            else:
                own = lengths[cast("slice", batch)]
                count, size = len(own), int(own.sum())
                if times is not None:
                    repeats = times[cast("slice", batch)]
                    count, size = int(repeats.sum()), int((own * repeats).sum())
                rows, tokens = rows + count, tokens + size
                notify(count, size, of_tokens)
            bar.update(rows, tokens=None if lengths is None else tokens)
