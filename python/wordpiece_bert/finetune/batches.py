"""Rows of a data set to batches: their order in each epoch, and padding."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import whole_number
from wordpiece_bert._internal.ignored_label import IGNORED
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.labels import check_row

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    import numpy.typing as npt

    from wordpiece_bert.finetune.arguments import TrainingArguments

#: The columns of labels in rows of texts; of several the first counts, as in sentence-transformers.
_LABELS = ("label", "labels", "score", "scores")
#: Batches whose rows are sorted by length together.
_BATCHES_PER_GROUP = 50


class Dataset(Protocol):
    """Rows by number; a list of dicts is one."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def __getitem__(self, index: int) -> Any:
        """Return one row."""


def check_dataset(name: str, dataset: object, *, or_none: bool = False) -> None:
    """Check that an argument has rows by number, as a list of dicts has."""
    if dataset is None and or_none:
        return
    # A dict and a data frame of pandas have columns by name.
    by_name = isinstance(dataset, Mapping) or hasattr(dataset, "iloc")
    if by_name or isinstance(dataset, str) or not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
        kind = type(dataset).__name__
        raise InputError(f"{name} must be a sequence of rows, such as a list of dicts, not {kind}: {dataset!r:.80}")


def rows_of(dataset: Dataset, rows: Sequence[int]) -> list[Any]:
    """Return rows by number, all at once where the data set can (`__getitems__`, as torch's DataLoader asks)."""
    if (several := getattr(dataset, "__getitems__", None)) is not None:
        found = several(list(rows))
        return found if isinstance(found, list) else list(found)  # a list may carry its batch
    return [dataset[row] for row in rows]


def row_blocks(dataset: Dataset, size: int) -> Iterator[list[Any]]:
    """Yield all rows in order, `size` at a time."""
    for start in range(0, len(dataset), size):
        yield rows_of(dataset, range(start, min(start + size, len(dataset))))


def batches_of_epoch(dataset: Dataset, args: TrainingArguments, epoch: int) -> Iterator[list[int]]:
    """Return the rows of each micro-batch of an epoch, a function of the settings, the epoch and the rows.

    With the sampler ``"no_duplicates"`` rows may be left out, so that there are as many batches as with the other.

    Parameters
    ----------
    dataset : sequence of dict
        The rows.
    args : TrainingArguments
        The batch size, the order, and the seed.
    epoch : int
        Counted from 0.
    """
    count, size = len(dataset), args.per_device_train_batch_size
    if args.train_sampling_strategy == "sequential":
        order = np.arange(count)
    else:
        order = np.asarray(_core.epoch_order(count, args.seed, epoch, 0, count))
    if args.train_sampling_strategy == "group_by_length":
        lengths = np.array([_length(row) for row in rows_of(dataset, range(count))])
        group = size * _BATCHES_PER_GROUP
        parts = [order[start : start + group] for start in range(0, count, group)]
        order = np.concatenate([part[np.argsort(-lengths[part], kind="stable")] for part in parts])
    if args.batch_sampler == "no_duplicates":
        yield from _without_duplicates(dataset, order.tolist(), size)
        return
    for start in range(0, count, size):
        yield [int(row) for row in order[start : start + size]]


def _without_duplicates(dataset: Dataset, order: list[int], size: int) -> list[list[int]]:
    """Divide rows into batches in which no text occurs in two rows.

    Each row goes into the first batch that has room, after the last one that has a text of it. There are as many
    batches as the rows would fill; a row that finds no place in them is left out.
    """
    batches: list[list[int]] = [[] for _ in range(0, len(order), size)]
    free = list(range(len(batches) + 1))  # from a full batch towards the next that has room

    def with_room(batch: int) -> int:
        while free[batch] != batch:
            free[batch] = batch = free[free[batch]]
        return batch

    after: dict[Any, int] = {}  # by text
    for row, values in zip(order, map(_values, rows_of(dataset, order)), strict=True):
        batch = with_room(max((after.get(value, 0) for value in values), default=0))
        if batch == len(batches):
            continue
        batches[batch].append(row)
        if len(batches[batch]) == size:
            free[batch] = batch + 1
        after |= dict.fromkeys(values, batch + 1)
    return batches


def _values(row: Any) -> set[Any]:
    """Return what of a row shall not occur in another row of its batch: its texts, or its tokens."""
    if isinstance(row, Mapping) and "input_ids" in row:
        return {np.asarray(row["input_ids"], np.int64).tobytes()}
    texts: Any = row
    if isinstance(row, Mapping):
        label = label_column(row)
        texts = [text for name, text in row.items() if name != label]
    return {text if isinstance(text, str) else repr(text) for text in texts}


def label_column(names: Container[str]) -> str | None:
    """Return which of the columns of a row of texts has its label; None without one."""
    return next((name for name in _LABELS if name in names), None)


def _length(row: Any) -> int:
    """Return the number of tokens of a row, or of characters of its texts."""
    if isinstance(row, Mapping) and "input_ids" in row:
        return int(np.asarray(row["input_ids"]).shape[-1])
    texts = row.values() if isinstance(row, Mapping) else row
    return sum(len(text) for text in texts if isinstance(text, str))


def pad_collate(rows: Sequence[Mapping[str, Any]], pad_token_id: int = 0) -> dict[str, npt.NDArray[Any]]:
    """Pad rows to the longest of a batch.

    Parameters
    ----------
    rows : sequence of dict
        Dicts of lists or arrays: ``input_ids`` [n], or [choices, n] for multiple choice, other inputs and labels of the
        same shape, and labels of a row, which are numbers or lists of them.
    pad_token_id : int, default 0
        The id that pads ``input_ids``. Labels are padded with -100, all else with 0.

    Returns
    -------
    dict of str to array
        [B, S] or [B, choices, S], with an ``attention_mask``; labels of rows [B] or [B, labels].

    Raises
    ------
    InputError
        There are no rows, one is not a dict, they have different keys, a row has no ``input_ids``, or a value is not a
        number or an array of numbers.

    Examples
    --------
    >>> from wordpiece_bert.finetune import pad_collate
    >>> pad_collate(
    ...     [
    ...         {"input_ids": [2, 7, 8, 3], "labels": 1},
    ...         {"input_ids": [2, 9, 3], "labels": 0},
    ...     ]
    ... )
    {'input_ids': array([[2, 7, 8, 3],
           [2, 9, 3, 0]]), 'attention_mask': array([[1, 1, 1, 1],
           [1, 1, 1, 0]]), 'labels': array([1, 0])}
    """
    check_dataset("rows", rows)
    pad_token_id = whole_number("pad_token_id", pad_token_id, 0)
    if not len(rows):
        raise InputError("a batch needs at least one row")
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(f"item {index} of the batch must be a dict, not {type(row).__name__}: {row!r:.80}")
    keys = list(rows[0])
    for index, row in enumerate(rows):
        if list(row) != keys and set(row) != set(keys):
            raise InputError(
                f"item {index} of the batch has {', '.join(map(str, row))}, the first one {', '.join(keys)}"
            )
    if "input_ids" not in keys:
        raise InputError(f"rows have {', '.join(keys)}, but no input_ids")
    ids = [_array(index, row, "input_ids") for index, row in enumerate(rows)]
    for index, row_ids in enumerate(ids):
        if not row_ids.size:
            raise InputError(f"item {index} of the batch has no tokens: its input_ids are {row_ids.tolist()}")
        if not row_ids.ndim or row_ids.dtype.kind not in "iu":
            raise InputError(f"item {index} of the batch has input_ids {row_ids.tolist()!r:.80}: give a list of ids")
    batch: dict[str, npt.NDArray[Any]] = {"input_ids": _padded(ids, pad_token_id)}
    if "attention_mask" not in keys:
        batch["attention_mask"] = _padded([np.ones_like(row) for row in ids], 0)
    for key in keys:
        if key == "input_ids":
            continue
        values = [_array(index, row, key) for index, row in enumerate(rows)]
        same = all(value.shape == row.shape for value, row in zip(values, ids, strict=True))
        if same and values[0].ndim:
            batch[key] = _padded(values, IGNORED if key == "labels" else 0)
            continue
        for index, value in enumerate(values):
            if value.shape != values[0].shape:
                raise InputError(
                    f"item {index} of the batch has {key} of the shape {list(value.shape)}, the first one of "
                    f"{list(values[0].shape)}: give all rows the same, or one number for each of their input_ids"
                )
        batch[key] = np.stack(values)
    return batch


def _array(index: int, row: Mapping[str, Any], key: str) -> npt.NDArray[Any]:
    """Return a value of a row, a number or an array of numbers, as an array."""
    try:
        array = np.asarray(row[key])
    except ValueError:  # lists of different lengths
        array = None
    if array is None or array.dtype.kind not in ("biuf" if key in ("input_ids", "labels") else "biufUS"):
        raise InputError(f"item {index} of the batch has {key} {row[key]!r:.80}: give a number, or an array of numbers")
    return array


def _padded(rows: list[npt.NDArray[Any]], value: int) -> npt.NDArray[Any]:
    """[..., n] for each row -> [B, ..., S]."""
    if len({row.shape[:-1] for row in rows}) != 1:
        raise InputError(
            f"rows have {sorted({row.shape[0] for row in rows})} choices; a batch needs one number of choices"
        )
    longest = max(row.shape[-1] for row in rows)
    padded = np.full((len(rows), *rows[0].shape[:-1], longest), value, rows[0].dtype)
    for index, row in enumerate(rows):
        padded[index, ..., : row.shape[-1]] = row
    return padded


def check_rows(dataset: Dataset) -> Iterator[Any]:
    """Yield all rows, and refuse one whose label is missing; the rows of a data set with a fingerprint are not read.

    Parameters
    ----------
    dataset : sequence of dict
        The rows.

    Raises
    ------
    InputError
        A label is None, NaN or empty; the message has the row.
    """
    if getattr(dataset, "fingerprint", None) is not None:
        return
    for number, row in enumerate(chain.from_iterable(row_blocks(dataset, 1024))):
        check_row(row, number)
        yield row


def fingerprint(dataset: Dataset) -> str:
    """Return a hash of all rows, by which a resumed training recognizes its data.

    A data set with an attribute ``fingerprint`` has its own.

    Parameters
    ----------
    dataset : sequence of dict
        The rows: dicts of numbers, strings, lists and arrays.

    Raises
    ------
    InputError
        As for `check_rows`, which reads them.
    """
    own = getattr(dataset, "fingerprint", None)
    if own is not None:
        return str(own() if callable(own) else own)
    digest = hashlib.sha256(f"{len(dataset)} rows".encode())
    for row in check_rows(dataset):
        _update(digest, row)
    return digest.hexdigest()[:32]


def _update(digest: Any, value: Any) -> None:
    if isinstance(value, Mapping):
        for key in sorted(value):
            digest.update(json.dumps(str(key)).encode())
            _update(digest, value[key])
    elif isinstance(value, str):
        digest.update(json.dumps(value).encode())
    elif isinstance(value, list | tuple) and any(isinstance(part, str | list | tuple | Mapping) for part in value):
        digest.update(f"[{len(value)}]".encode())
        for part in value:
            _update(digest, part)
    elif (array := np.asarray(value)).dtype.hasobject:
        if array.ndim == 0:
            digest.update(_pickled(array.item()))
            return
        digest.update(f"O{array.shape}".encode())
        for part in array.ravel().tolist():
            _update(digest, part)
    else:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())


def _pickled(value: Any) -> bytes:
    """Return None, a date or another object as bytes, which are the same in every process."""
    try:
        return pickle.dumps(value, protocol=5)
    except Exception as error:
        message = f"rows with a {type(value).__name__} have no fingerprint, by which a resumed training knows them"
        raise InputError(f"{message}: give the data set an attribute `fingerprint`, a str") from error
