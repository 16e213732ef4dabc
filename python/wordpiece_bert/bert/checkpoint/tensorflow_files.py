"""Reads TensorFlow checkpoints, the format of Google's BERT releases: an ``.index`` file and its ``.data`` files.

The index is a sorted table of strings. Its keys, the names of the tensors, are stored in blocks, each as the length of
the prefix that it shares with the key before and the bytes that follow. Its values are small protocol buffers with the
dtype, the shape and the location of a tensor in a data file. The data files are the plain numbers. Dense layers are
stored as [in, out], and names contain slashes.

Both files are untrusted: every length is checked against the file, and every tensor against its shape.

Source: ``tensorflow/core/util/tensor_bundle`` and ``tensorflow/core/lib/io/table`` (LevelDB's format) for the files,
``tensorflow/core/protobuf/tensor_bundle.proto`` for the messages; ``modeling.py`` of google-research/bert for the
names.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wordpiece_bert._internal.safe_json import quoted
from wordpiece_bert.bert.half_precision import BFLOAT16
from wordpiece_bert.bert.stored_tensor import StoredTensor, TransposedTensor
from wordpiece_bert.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any

    from wordpiece_bert.bert.stored_tensor import NumbersFile

_MAGIC = 0xDB4775248B80FB57
_FOOTER = 48
_TRAILER = 5  # bytes after each block: its kind, and a checksum

#: Largest index, in bytes. For BERT-large with its training state it has about 50 kB.
_LARGEST_INDEX = 10_000_000
_MOST_SHARDS = 1000
_MOST_DIMENSIONS = 8

# TensorFlow's numbers for dtypes.
_DTYPES: dict[int, np.dtype[Any]] = {
    1: np.dtype("<f4"),
    2: np.dtype("<f8"),
    3: np.dtype("<i4"),
    9: np.dtype("<i8"),
    14: BFLOAT16,
    19: np.dtype("<f2"),
}

# Variables of the optimizer, one for each weight or one for all, by the last part of their names.
_TRAINING = ("adam_m", "adam_v", "global_step", "Adam", "Adam_1", "beta1_power", "beta2_power")

# Names that do not follow the rule of `_pytorch_name`.
_NAMES = {
    "cls/predictions/output_bias": "cls.predictions.bias",
    "cls/seq_relationship/output_weights": "cls.seq_relationship.weight",
    "cls/seq_relationship/output_bias": "cls.seq_relationship.bias",
    "cls/squad/output_weights": "qa_outputs.weight",
    "cls/squad/output_bias": "qa_outputs.bias",
    "output_weights": "classifier.weight",
    "output_bias": "classifier.bias",
}
_TABLES = ("word_embeddings", "position_embeddings", "token_type_embeddings")


class _IndexEntry(NamedTuple):
    """The dtype, shape and location of one tensor."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    shard: int  # number of the data file
    offset: int  # in bytes
    size: int  # in bytes


def tensorflow_tensors(index: Path, opened: Callable[[Path], NumbersFile]) -> dict[str, StoredTensor]:
    """Return the weights of a TensorFlow checkpoint, without the state of an optimizer; they are still in the files.

    Parameters
    ----------
    index : Path
        The ``.index`` file; the ``.data-00000-of-00001`` files are in the same folder.
    opened : callable
        Opens a data file.

    Returns
    -------
    dict of str to StoredTensor
        Tensors by the names and in the layout of PyTorch: ``bert.encoder.layer.0.output.dense.weight`` [out, in].

    Raises
    ------
    CheckpointError
        A file is missing, truncated or malformed, or has a dtype or a structure that is not supported.
    """
    try:
        with index.open("rb") as stream:
            data = stream.read(_LARGEST_INDEX + 1)
    except OSError as cause:
        raise CheckpointError(f"{index}: cannot be read: {cause.strerror or cause}") from cause
    if len(data) > _LARGEST_INDEX:
        raise CheckpointError(f"{index}: is longer than {_LARGEST_INDEX:,} bytes, the most that an index may have")
    table = _StringTable(data, index)
    shards, entries = 1, {}
    for key, value in table.items():
        if key == b"":
            shards = _shards(value, index)
        elif key.decode("utf-8", "replace").rpartition("/")[2] not in _TRAINING:
            entries[_text(key, index)] = _entry(value, _text(key, index), index)
    files = [_DataFile(index.with_suffix(f".data-{i:05}-of-{shards:05}"), index, opened) for i in range(shards)]
    tensors: dict[str, StoredTensor] = {}
    for name, entry in entries.items():
        if entry.shard >= shards:
            raise CheckpointError(f"{index}: locates {quoted(name)} in shard {entry.shard} of {shards}")
        stored = files[entry.shard].take(name, entry)
        new, transposed = _pytorch_name(name)
        if new in tensors:
            raise CheckpointError(f"{index}: has {quoted(new)} twice, also as {quoted(name)}")
        tensors[new] = TransposedTensor(stored) if transposed and stored.ndim == 2 else stored
    return tensors


def _pytorch_name(name: str) -> tuple[str, bool]:
    """Return PyTorch's name of a weight, and whether PyTorch stores its transpose.

    >>> from wordpiece_bert.bert.checkpoint.tensorflow_files import _pytorch_name
    >>> _pytorch_name("bert/encoder/layer_0/attention/self/query/kernel")
    ('bert.encoder.layer.0.attention.self.query.weight', True)
    """
    if name in _NAMES:
        return _NAMES[name], False
    *path, last = name.split("/")
    parts = [part for level in path for part in _layer(level)]
    leaf = {"kernel": "weight", "gamma": "weight", "beta": "bias"}.get(last, last)
    if last in _TABLES:
        parts, leaf = [*parts, last], "weight"
    return ".".join([*parts, leaf]), last == "kernel"


def _layer(level: str) -> list[str]:
    """Split ``layer_0`` into ``layer`` and ``0``; return other levels as they are."""
    kind, _, number = level.rpartition("_")
    return [kind, number] if kind == "layer" and number.isdecimal() else [level]


# --- the table of strings


class _StringTable:
    """A table in LevelDB's format: the footer locates an index block, whose entries locate the data blocks."""

    def __init__(self, data: bytes, file: Path) -> None:
        self._data = data
        self._file = file
        footer = data[-_FOOTER:]
        if len(footer) < _FOOTER or int.from_bytes(footer[-8:], "little") != _MAGIC:
            raise CheckpointError(
                f"{file}: is not an index of a TensorFlow checkpoint: it does not end in the magic number"
            )
        reader = _Reader(footer[:-8], file)
        reader.handle()  # of the block with metadata, which is empty
        self._blocks = list(self._entries(*reader.handle()))

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over keys and values in the order of the keys."""
        before: bytes | None = None
        for _, handle in self._blocks:
            for key, value in self._entries(*_Reader(handle, self._file).handle()):
                if before is not None and key <= before:
                    raise CheckpointError(f"{self._file}: has its keys out of order at {quoted(key)}")
                before = key
                yield key, value

    def _entries(self, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the entries of one block, expanding each key by the prefix that it shares with the last."""
        end = offset + size
        if end + _TRAILER > len(self._data):
            raise CheckpointError(f"{self._file}: has a block from byte {offset} to {end}, beyond its end")
        block, kind = self._data[offset:end], self._data[end]
        if kind != 0:
            raise CheckpointError(f"{self._file}: has a compressed block (kind {kind}); checkpoints have none")
        restarts = int.from_bytes(block[-4:], "little") if len(block) >= 4 else 0
        if len(block) < 4 + 4 * restarts:
            raise CheckpointError(f"{self._file}: has a block of {len(block)} bytes with {restarts} restarts")
        reader = _Reader(block[: len(block) - 4 - 4 * restarts], self._file)
        key = b""
        while reader.left:
            shared, added, length = reader.varint(), reader.varint(), reader.varint()
            if shared > len(key):
                raise CheckpointError(f"{self._file}: has a key that shares {shared} bytes with one of {len(key)}")
            key = key[:shared] + reader.take(added)
            yield key, reader.take(length)


class _Reader:
    """Reads bytes, variable-length integers and the fields of protocol buffers from a buffer."""

    def __init__(self, data: bytes, file: Path) -> None:
        self._data = data
        self._position = 0
        self._file = file

    @property
    def left(self) -> int:
        return len(self._data) - self._position

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise CheckpointError(f"{self._file}: is truncated: {count} bytes are needed, and {self.left} are left")
        self._position += count
        return self._data[self._position - count : self._position]

    def varint(self) -> int:
        number = shift = 0
        while (byte := self.take(1)[0]) >= 0x80:
            number |= (byte & 0x7F) << shift
            shift += 7
            if shift == 70:
                raise CheckpointError(f"{self._file}: has a number of more than ten bytes")
        return number | byte << shift

    def handle(self) -> tuple[int, int]:
        """Read the offset and the size of a block, in bytes."""
        return self.varint(), self.varint()

    def fields(self) -> Iterator[tuple[int, int | bytes]]:
        """Iterate over the fields of a message: their numbers and values."""
        while self.left:
            tag = self.varint()
            kind = tag & 7
            if kind == 0:
                yield tag >> 3, self.varint()
            elif kind == 2:
                yield tag >> 3, self.take(self.varint())
            elif kind in (1, 5):
                yield tag >> 3, int.from_bytes(self.take(8 if kind == 1 else 4), "little")
            else:
                raise CheckpointError(f"{self._file}: has a message with a field of wire type {kind}")


# --- the messages


def _shards(message: bytes, file: Path) -> int:
    """Return the number of shards in the header: field 1 is that number, field 2 the byte order (0: little)."""
    header = dict(_Reader(message, file).fields())
    shards, order = header.get(1, 0), header.get(2, 0)
    if order != 0:
        raise CheckpointError(f"{file}: was written on a big-endian machine, which is not supported")
    if not isinstance(shards, int) or not 1 <= shards <= _MOST_SHARDS:
        raise CheckpointError(f"{file}: says that it has {quoted(shards)} shards")
    return shards


def _entry(message: bytes, name: str, file: Path) -> _IndexEntry:
    """Parse the entry of a tensor: fields 1 dtype, 2 shape, 3 shard, 4 offset, 5 size, 7 slices."""
    numbers = {1: 0, 3: 0, 4: 0, 5: 0}
    shape: list[int] = []
    for field, value in _Reader(message, file).fields():
        if field == 2 and isinstance(value, bytes):
            shape = [_dimension(dim, file) for number, dim in _Reader(value, file).fields() if number == 2]
        elif field == 7:
            raise CheckpointError(f"{file}: has {quoted(name)} in slices, which are not supported")
        elif field in numbers and isinstance(value, int):
            numbers[field] = value
    dtype = _DTYPES.get(numbers[1])
    if dtype is None:
        raise CheckpointError(
            f"{file}: has {quoted(name)} in a dtype that is not supported, TensorFlow's number {numbers[1]}"
        )
    if len(shape) > _MOST_DIMENSIONS:
        raise CheckpointError(f"{file}: has {quoted(name)} in {len(shape)} dimensions; {_MOST_DIMENSIONS} is the most")
    if math.prod(shape) * dtype.itemsize != numbers[5]:
        raise CheckpointError(f"{file}: has {quoted(name)}, {dtype} {shape}, in {numbers[5]} bytes")
    return _IndexEntry(dtype, tuple(shape), numbers[3], numbers[4], numbers[5])


def _dimension(message: int | bytes, file: Path) -> int:
    """Parse one dimension: field 1 is its size."""
    size = dict(_Reader(message, file).fields()).get(1, 0) if isinstance(message, bytes) else -1
    if not isinstance(size, int) or not 0 <= size < 2**31:
        raise CheckpointError(f"{file}: has a dimension of {quoted(size)}")
    return size


def _text(key: bytes, file: Path) -> str:
    try:
        return key.decode("utf-8")
    except UnicodeDecodeError:
        raise CheckpointError(f"{file}: has a name that is not UTF-8: {quoted(key)}") from None


class _DataFile:
    """One data file, opened when the first tensor in it is requested."""

    def __init__(self, path: Path, index: Path, opened: Callable[[Path], NumbersFile]) -> None:
        self._path, self._index, self._opened = path, index, opened
        self._file: NumbersFile | None = None
        self._taken = 0

    def take(self, name: str, entry: _IndexEntry) -> StoredTensor:
        """Return a tensor, which is still in the file."""
        if self._file is None:
            self._file = self._opened(self._path)
        size, end = self._file.size, entry.offset + entry.size
        if end > size:
            raise CheckpointError(
                f"{self._path}: has {size:,} bytes, but {quoted(name)} ends at byte {end:,}: truncated"
            )
        self._taken += entry.size
        if self._taken > size:
            raise CheckpointError(f"{self._index}: has overlapping tensors in {self._path.name}")
        return StoredTensor(self._file, entry.offset, entry.dtype, entry.shape)
