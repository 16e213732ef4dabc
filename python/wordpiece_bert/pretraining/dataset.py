"""`PretrainingDataset`: rows of example folders as batches, for torch's DataLoader or any other loop."""

from __future__ import annotations

import operator
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import check_instance, checked_choice, checked_flag, whole_number
from wordpiece_bert._internal.ignored_label import IGNORED
from wordpiece_bert._internal.notebook import table_html
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.index import (
    INDEX,
    check_file,
    ids_dtype,
    open_array,
    read_index,
    verify_file,
    whole,
)
from wordpiece_bert.pretraining.masking import Masking, checked_seed
from wordpiece_bert.pretraining.parameters import OBJECTIVES, PAIR_LABELS
from wordpiece_bert.pretraining.parts import lines_of, rules_of
from wordpiece_bert.pretraining.report import ExamplesReport
from wordpiece_bert.tokenizer.call_options import LONGEST_ROW

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import numpy.typing as npt

    from wordpiece_bert._internal.safe_json import JsonObject

__all__ = ["EXAMPLES_FORMAT", "PAIR_LABELS", "PretrainingDataset", "epoch_order"]

EXAMPLES_FORMAT = "wordpiece-bert examples"

Row = dict[str, Any]

_LARGEST = (1 << 64) - 1
_LARGEST_ID = (1 << 32) - 1

_TOGETHER = ({"masked_offsets", "masked_positions", "masked_ids"}, {"sequence_offsets", "sequence_lengths"})
_ARRAYS = ("input_ids", "row_offsets", "second_starts", "pair_labels", *_TOGETHER[0], *_TOGETHER[1])


def epoch_order(n: int, *, seed: int, epoch: int) -> npt.NDArray[np.int64]:
    """Return the order in which an epoch reads rows: a permutation that any position can be computed of alone.

    Parameters
    ----------
    n : int
        The number of rows.
    seed, epoch : int
        The seed of the training run and the number of the epoch, from 0 to 2⁶⁴ - 1.

    Returns
    -------
    ndarray of int64
        Row numbers [n]. A stopped run resumes at its position in the same order.

    Raises
    ------
    InputError
        An argument is out of range, or the array does not fit memory.

    Examples
    --------
    >>> from wordpiece_bert.pretraining import epoch_order
    >>> epoch_order(16, seed=1, epoch=0)
    array([ 3, 15,  4,  0,  5,  8,  9,  6, 11, 12,  7, 14, 10, 13,  1,  2])
    """
    n = whole_number("n", n, 0)
    epoch = whole_number("epoch", epoch, 0, _LARGEST)
    return _core.epoch_order(n, checked_seed(seed), epoch, 0, n)


class _Rows(list[Row]):
    """The rows of a batch, which carry the batch."""

    batch: dict[str, Any]


class PretrainingDataset:
    """The rows of an example folder, mapped into memory, masked and padded when they are read.

    torch's DataLoader takes it as it is: it has a length, ``d[i]``, and `__getitems__` for whole batches. Masks are a
    function of (seed, epoch, row), so that any number of workers gives a row the same bytes. NumPy is all it needs. It
    is pickled as its path and arguments. While it is in use, files of the folder must not be cut, as for `TokenStore`.

    Parameters
    ----------
    path : path
        The folder that `build_examples` wrote (format ``"npy"``).
    masking : Masking, optional
        Mask rows when they are read. Not for rows that `build_examples` has masked already.
    seed, epoch : int, default 0
        What masks and `order` depend on, from 0 to 2⁶⁴ - 1.
    pad_to : {"max_length"}, optional
        Pad batches to the row length; by default to their longest row.
    pad_to_multiple_of : int, default 1
        Round the padded length up to a multiple.
    flatten : bool, default False
        Batches are one row without padding, [1, tokens], with the bounds of sequences under transformers' names:
        ``cu_seq_lens_q``, ``cu_seq_lens_k`` (int32), ``max_length_q`` and ``max_length_k``.

    Attributes
    ----------
    path : Path
        The folder.
    objective : str
        How rows were made: ``"nsp"``, ``"sop"``, ``"full-sentences"``, ``"doc-sentences"``, ``"blocks"`` or ``"text"``.
    row_length : int
        The largest number of tokens of a row.
    packed : bool
        Whether rows have several sequences.
    masked : bool
        Whether `build_examples` has masked the rows.
    masking, seed, epoch, pad_to, pad_to_multiple_of, flatten
        As given; `set_epoch` changes the epoch.
    options : dict
        The arguments of `build_examples`.
    report : ExamplesReport
        What the folder consists of.
    vocab_size : int
        The number of tokens of the tokenizer, added tokens included.
    tokenizer_fingerprint : str
        The fingerprint of the tokenizer, as `TokenStore.fingerprint`.

    Raises
    ------
    InputError
        The folder has no finished examples, a file is missing or cut, an argument is out of range, or `masking` is
        given for rows that are masked already.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.pretraining import (
    ...     Masking,
    ...     PretrainingDataset,
    ...     build_examples,
    ...     build_token_store,
    ... )
    >>> tokenizer = Tokenizer.from_pretrained("models/words")
    >>> _ = build_token_store(
    ...     tokenizer,
    ...     "examples/texts/documents.txt",
    ...     "corpus.tokens",
    ...     show_progress_bar=False,
    ... )
    >>> _ = build_examples(
    ...     "corpus.tokens", "pairs", tokenizer, max_length=32, show_progress_bar=False
    ... )
    >>> dataset = PretrainingDataset("pairs", masking=Masking(tokenizer))
    >>> dataset.verify()
    >>> dataset.set_epoch(1)
    >>> batch = dataset.batch(dataset.order()[:4])
    >>> sorted(batch)
    ['attention_mask', 'input_ids', 'labels', 'next_sentence_label', 'token_type_ids']
    >>> batch["input_ids"].shape
    (4, 32)
    >>> dataset.collate([dataset[0], dataset[1]])["labels"].shape
    (2, 32)
    """

    path: Path
    objective: str
    row_length: int
    packed: bool
    masked: bool
    seed: int
    epoch: int
    masking: Masking | None
    pad_to: Literal["max_length"] | None
    pad_to_multiple_of: int
    flatten: bool
    options: dict[str, Any]
    report: ExamplesReport
    vocab_size: int
    tokenizer_fingerprint: str

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        masking: Masking | None = None,
        seed: int = 0,
        epoch: int = 0,
        pad_to: Literal["max_length"] | None = None,
        pad_to_multiple_of: int = 1,
        flatten: bool = False,
    ) -> None:
        self.path = Path(path)
        index = read_index(self.path, EXAMPLES_FORMAT)
        if masking is not None:
            check_instance("masking", masking, Masking)
        self.masking = masking
        self.seed = checked_seed(seed)
        self.epoch = whole_number("epoch", epoch, 0, _LARGEST)
        if pad_to is not None:
            checked_choice("pad_to", pad_to, ("max_length",), "None, ")
        self.pad_to = pad_to
        self.pad_to_multiple_of = whole_number("pad_to_multiple_of", pad_to_multiple_of, 1, 1 << 20)
        self.flatten = checked_flag("flatten", flatten)
        self._shards: list[JsonObject] = index["shards"]
        where = self.path / INDEX
        try:
            self.objective = checked_choice("objective", index.get("objective"), OBJECTIVES)
            self.options = dict(index["options"])
            self.row_length = whole(where, index, "row_length", LONGEST_ROW)
            known = {"objective": self.objective, "row_length": self.row_length, "options": self.options}
            self.report = ExamplesReport.from_dict({"output": str(self.path), **index["report"], **known})
            self.tokenizer_fingerprint = str(index.get("tokenizer", ""))
        except (InputError, KeyError, TypeError, ValueError) as cause:
            raise InputError(f"{where}: {cause} is missing or has the wrong type; make the examples again") from cause
        self._ids = ids_dtype(where, index)
        counts = [whole(where, entry, "rows") for entry in self._shards]
        pad_id = None if index.get("pad_token_id") is None else whole(where, index, "pad_token_id", _LARGEST_ID)
        self.vocab_size = whole(where, {"vocab_size": 0} | index, "vocab_size")
        for entry, rows in zip(self._shards, counts, strict=True):
            _check_names(where, entry["files"], rows)
        names = {name for entry in self._shards for name in entry["files"]}
        self.packed = "sequence_offsets" in names
        self.masked = "masked_offsets" in names
        if masking is not None and self.masked:
            raise InputError(
                f"{self.path}: its rows are masked already (masking= of build_examples); leave masking out"
            )
        for entry in self._shards:
            for file in entry["files"].values():
                check_file(self.path, file)
        self._pad_id = pad_id if pad_id is not None else masking.pad_id if masking is not None else 0
        # The arrays of a shard are opened when the first of its rows is read.
        load = partial(_open_shard, self.path, self._shards, self._ids)
        self._reader = _core.ExampleReader(counts, load, self._pad_id)
        self._lengths: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self._reader)

    def __getitem__(self, row: SupportsIndex) -> Row:
        """Return one row, without padding.

        Parameters
        ----------
        row : int
            The number of the row; negative ones count from the end.

        Returns
        -------
        dict
            The arrays of `batch` without their first axis. The label of a pair is a number; of a packed row there are
            several.

        Raises
        ------
        IndexError
            There is no such row.
        InputError
            It is not a whole number.
        """
        try:
            number = operator.index(row)
        except TypeError:
            raise InputError(f"a row is selected by its number, not {row!r:.80}; batch() takes several") from None
        if not -len(self) <= number < len(self):
            raise IndexError(f"index {number} is out of range for {len(self)} rows")
        batch = self._batch(np.array([number % len(self)]), None, 1, flatten=False)
        batch.pop("cu_seqlens", None)
        batch.pop("max_seqlen", None)
        name = PAIR_LABELS.get(self.objective)
        return {key: value if key == name and self.packed else value[0] for key, value in batch.items()}

    def batch(self, rows: npt.ArrayLike) -> dict[str, Any]:
        """Return rows as padded arrays.

        Parameters
        ----------
        rows : array_like of int
            The numbers of the rows [B], in any order.

        Returns
        -------
        dict of str to ndarray
            C-ordered int64: ``input_ids``, ``token_type_ids``, ``attention_mask`` [B, S]; ``labels`` [B, S] if rows are
            masked; and ``next_sentence_label`` or ``sentence_order_label`` [B]. Padding has the id of the padding token
            (0 if there is none), 0, 0 and -100.

            Packed rows have ``position_ids`` [B, S] that restart with each sequence, an ``attention_mask`` of bool
            [B, 1, S, S] with which sequences see only themselves, the labels of all pairs in one axis, and
            ``cu_seqlens`` (int32).

        Raises
        ------
        InputError
            There is no such row, or the batch does not fit memory.
        """
        numbers = np.asarray(rows)
        if numbers.size == 0 and numbers.ndim <= 1:
            numbers = np.empty(0, np.int64)
        if numbers.ndim != 1 or not np.issubdtype(numbers.dtype, np.integer):
            raise InputError(f"rows must be a list of row numbers, not {numbers.dtype} {list(numbers.shape)}")
        length = (
            None if self.pad_to is None else -(-self.row_length // self.pad_to_multiple_of) * self.pad_to_multiple_of
        )
        return self._batch(numbers, length, self.pad_to_multiple_of, flatten=self.flatten)

    def _batch(self, rows: npt.NDArray[Any], length: int | None, multiple_of: int, *, flatten: bool) -> dict[str, Any]:
        batch = self._reader.batch(
            np.ascontiguousarray(rows, np.int64),
            length=length,
            multiple_of=multiple_of,
            flatten=flatten,
            masking=None if self.masking is None else rules_of(self.masking),
            seed=self.seed,
            epoch=self.epoch,
        )
        labels = batch.pop("pair_labels")
        if (name := PAIR_LABELS.get(self.objective)) is not None:
            batch[name] = labels
        if flatten:
            batch["cu_seq_lens_q"] = batch["cu_seq_lens_k"] = batch.pop("cu_seqlens")
            batch["max_length_q"] = batch["max_length_k"] = batch.pop("max_seqlen")
        else:
            batch.pop("max_seqlen", None)
        return batch

    def __getitems__(self, rows: Sequence[int]) -> _Rows:
        """Return several rows at once, as torch's DataLoader requests them: padded to one length.

        The list carries the batch that `collate` returns. Of packed rows, the labels of pairs are padded with -100 to
        one number a row. With `flatten` the batch is one row.
        """
        batch = self.batch(rows)
        found = _Rows()
        found.batch = batch
        per_row = {name: value for name, value in batch.items() if isinstance(value, np.ndarray)}
        for name in ("cu_seqlens", "cu_seq_lens_q", "cu_seq_lens_k"):
            per_row.pop(name, None)
        label = PAIR_LABELS.get(self.objective)
        if self.packed and label is not None and not self.flatten:
            per_row[label] = _padded_labels(per_row["position_ids"], per_row["attention_mask"], per_row[label])
        if self.flatten:
            found.append({key: value if key == label else value[0] for key, value in per_row.items()})
        else:
            found.extend({key: value[i] for key, value in per_row.items()} for i in range(len(rows)))
        return found

    def collate(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Return the batch of rows, for ``DataLoader(collate_fn=dataset.collate)``.

        Parameters
        ----------
        rows : sequence of dict
            What `__getitems__` returned: the batch that it carries is returned, and nothing is copied. Or a list of
            rows ``d[i]``, which are padded now.

        Returns
        -------
        dict
            As from `batch`. Arrays are tensors that share their memory if torch has been imported.
        """
        batch = rows.batch if isinstance(rows, _Rows) else self._stacked(list(rows))
        torch = sys.modules.get("torch")
        if torch is None:
            return batch
        return {
            name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value for name, value in batch.items()
        }

    def _stacked(self, rows: list[Row]) -> dict[str, Any]:
        """Pad rows to one length and stack them."""
        if not rows:
            return self.batch([])
        multiple = self.pad_to_multiple_of
        longest = self.row_length if self.pad_to is not None else max(len(row["input_ids"]) for row in rows)
        length = -(-longest // multiple) * multiple
        label = PAIR_LABELS.get(self.objective)
        batch: dict[str, Any] = {}
        for name in rows[0]:
            parts = [np.asarray(row[name]) for row in rows]
            if name == label:
                batch[name] = np.concatenate([part.reshape(-1) for part in parts])
                continue
            fill = {"input_ids": self._pad_id, "labels": IGNORED}.get(name, 0)
            padded = [
                np.pad(p, [(0, 0 if n == 1 else length - n) for n in p.shape], constant_values=fill) for p in parts
            ]
            batch[name] = np.stack(padded)
        return batch

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which masks and `order` depend on.

        Workers that a DataLoader keeps (``persistent_workers=True``) do not notice: they have a copy.

        Parameters
        ----------
        epoch : int
            The number of the epoch, from 0 to 2⁶⁴ - 1.

        Raises
        ------
        InputError
            It is out of range.
        """
        self.epoch = whole_number("epoch", epoch, 0, _LARGEST)

    def order(self) -> npt.NDArray[np.int64]:
        """Return the order in which this epoch reads rows: ``epoch_order(len(self), seed=seed, epoch=epoch)``.

        Returns
        -------
        ndarray of int64
            The numbers of the rows, [rows].
        """
        return epoch_order(len(self), seed=self.seed, epoch=self.epoch)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The number of tokens of each row [rows].

        Raises
        ------
        InputError
            A file is damaged.
        """
        if self._lengths is None:
            parts = [np.empty(0, np.int64)]
            for entry in self._shards:
                file = entry["files"]["row_offsets"]
                offsets = open_array(self.path, file, np.int64, entry["rows"] + 1)
                if offsets[0] or (offsets[1:] < offsets[:-1]).any():
                    raise InputError(f"{self.path / file['name']}: is damaged: a row ends before its start")
                parts.append(np.diff(offsets))
            self._lengths = np.concatenate(parts)
        return self._lengths

    def verify(self) -> None:
        """Read all files and check their checksums.

        Raises
        ------
        InputError
            A file is not as it was written; the message names it.
        """
        for entry in self._shards:
            for file in entry["files"].values():
                verify_file(self.path, file)

    def __reduce__(self) -> tuple[Any, ...]:
        names = ("masking", "seed", "epoch", "pad_to", "pad_to_multiple_of", "flatten")
        return _restored, (self.path, {name: getattr(self, name) for name in names})

    def __repr__(self) -> str:
        kind = "packed " * self.packed + "masked " * self.masked
        return (
            f"PretrainingDataset({str(self.path)!r}: {len(self):,} {kind}{self.objective} rows of at most "
            f"{self.row_length} tokens, seed={self.seed}, epoch={self.epoch})"
        )

    def _repr_html_(self) -> str:
        return table_html(repr(self), ("", ""), lines_of(self.report))


def _restored(path: Path, arguments: dict[str, Any]) -> PretrainingDataset:
    """Return a data set out of a pickle."""
    return PretrainingDataset(path, **arguments)


def _check_names(path: Path, files: JsonObject, rows: int) -> None:
    """Check that a shard has files that go together, and that its rows fit them."""
    names = files.keys()
    fit = names >= {"input_ids", "row_offsets"} and names <= set(_ARRAYS)
    fit = fit and all(len(names & group) in (0, len(group)) for group in _TOGETHER)
    if not fit:
        raise InputError(
            f"{path}: the files of a shard do not go together: {', '.join(files):.200}; make the examples again"
        )
    if rows >= files["row_offsets"]["bytes"] // 8:
        raise InputError(f"{path}: {rows:,} rows do not fit {files['row_offsets']['name']}; make the examples again")


def _open_shard(folder: Path, shards: list[JsonObject], ids: np.dtype[Any], number: int) -> _core.ExampleShard:
    """Map the arrays of a shard into memory."""
    files: JsonObject = shards[number]["files"]

    def array(name: str, *dtypes: npt.DTypeLike) -> npt.NDArray[Any]:
        for dtype in dtypes[:-1]:
            try:
                return open_array(folder, files[name], dtype)
            except InputError:
                continue
        return open_array(folder, files[name], dtypes[-1])

    masks = sequences = None
    if "masked_offsets" in files:
        positions = array("masked_positions", np.uint16, np.uint32)
        masks = (array("masked_offsets", np.int64), positions, array("masked_ids", ids))
    if "sequence_offsets" in files:
        sequences = (array("sequence_offsets", np.int64), array("sequence_lengths", np.uint16, np.uint32))
    return _core.ExampleShard(
        array("input_ids", ids),
        open_array(folder, files["row_offsets"], np.int64, shards[number]["rows"] + 1),
        second_starts=array("second_starts", np.uint16, np.uint32) if "second_starts" in files else None,
        pair_labels=array("pair_labels", np.uint8) if "pair_labels" in files else None,
        masks=masks,
        sequences=sequences,
    )


def _padded_labels(
    position_ids: npt.NDArray[np.int64], attention_mask: npt.NDArray[np.bool_], labels: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the labels of packed pairs, which are in one axis, as [B, sequences], padded with -100."""
    is_token = attention_mask[:, 0].diagonal(axis1=1, axis2=2)
    counts = ((position_ids == 0) & is_token).sum(axis=1)
    padded = np.full((len(counts), counts.max(initial=0)), IGNORED, np.int64)
    padded[np.arange(padded.shape[1]) < counts[:, None]] = labels
    return padded
