"""Reads what ``torch.save`` writes, such as ``pytorch_model.bin``, in both of its formats.

Since torch 1.6 it is a zip archive: ``X/data.pkl`` is a pickle that describes the tensors, and ``X/data/0``,
``X/data/1`` … are the storages with their numbers. Before, it was a sequence of five pickles (a magic number, a
version, properties of the machine, the tensors, the list of storages) and then the storages. The pickles are
interpreted by `pickles`, which imports nothing. An archive is never unpacked; entries are read by their exact names.

Source: ``torch/serialization.py``.
"""

from __future__ import annotations

import math
import sys
import zipfile
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert._internal.safe_json import is_git_lfs_pointer, quoted
from wordpiece_bert.bert.checkpoint.pickles import View, read_pickle
from wordpiece_bert.bert.stored_tensor import StoredTensor
from wordpiece_bert.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable

    from wordpiece_bert.bert.checkpoint.pickles import Storage
    from wordpiece_bert.bert.checkpoint.safetensors import AnyArray
    from wordpiece_bert.bert.stored_tensor import NumbersFile, Source

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001

_ZIP = b"PK\x03\x04"
_END_SIZE = 22  # bytes of the record at the end of a zip archive, without the comment
_TAR = (257, b"ustar")  # offset and value of the format's name in a tar archive

#: Keys under which training programs store the state dict, next to other values.
_WRAPPERS = ("state_dict", "model_state_dict")

#: How many times larger than the file all tensors may be: half precision doubles, tied weights double again.
_MOST_GROWTH = 8

_BadZip = (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, KeyError, OverflowError)

#: Bytes at the beginning of an old file that are read to find its pickles; for a thousand tensors they have 100 kB.
_PICKLES = 1 << 22

#: Bytes whose checksum is computed at once.
_BLOCK = 1 << 20


def torch_tensors(file: NumbersFile) -> dict[str, StoredTensor]:
    """Return the tensors of one file that ``torch.save`` wrote; their numbers are still in the file.

    Parameters
    ----------
    file
        The open file.

    Returns
    -------
    dict of str to StoredTensor
        As from `stored_safetensors`. Those that are not stored row by row, such as transposed ones, are in memory.

    Raises
    ------
    CheckpointError
        The file is truncated or inconsistent, or has values other than tensors; the message quotes the name of a
        function that it would call.
    """
    head = file.read(0, _TAR[0] + len(_TAR[1]))
    if is_git_lfs_pointer(head):
        raise CheckpointError(
            f"{file.path}: is a Git LFS pointer, not the file itself; fetch the file with `git lfs pull`"
        )
    if head[_TAR[0] :] == _TAR[1]:
        raise CheckpointError(
            f"{file.path}: is a tar archive, as PyTorch before 0.1.10 wrote it; load and save it with a newer PyTorch"
        )
    if head.startswith(_ZIP) or zipfile.is_zipfile(file.path):
        state, find = _open_zip(file)
    else:
        state, find = _open_legacy(file)
    return _Gatherer(file, find).tensors(state)


class _Place(NamedTuple):
    """Where the numbers of a storage are."""

    source: Source
    offset: int  # of the first number, in bytes
    length: int  # in numbers
    dtype: np.dtype[Any]


# --- the zip format


def _open_zip(file: NumbersFile) -> tuple[object, Callable[[Storage], _Place]]:
    """Return the unpickled object, and a function that finds a storage."""
    try:
        with zipfile.ZipFile(file.path) as archive:
            entries = archive.infolist()
            comment = len(archive.comment)
    except (*_BadZip, OSError) as cause:
        raise CheckpointError(f"{file.path}: is a zip archive that is truncated or broken: {cause}") from cause
    if _declared_entries(file, file.size - _END_SIZE - comment) != len(entries):
        raise CheckpointError(
            f"{file.path}: is a zip archive whose directory has {len(entries)} entries, not the number at its end"
        )
    by_name = {entry.filename: entry for entry in entries}
    if len(by_name) != len(entries):
        raise CheckpointError(f"{file.path}: is a zip archive with two entries of one name")
    pickles = [name for name in by_name if name.endswith("/data.pkl") and name.count("/") == 1]
    if len(pickles) != 1:
        raise CheckpointError(f"{file.path}: is a zip archive with {len(pickles)} entries X/data.pkl; torch writes one")
    top = pickles[0].removesuffix("data.pkl")
    if sum(entry.file_size for entry in entries) > file.size:
        raise CheckpointError(
            f"{file.path}: is a zip archive whose entries are larger than the file: compressed, or overlapping"
        )
    opened: dict[str, _Entry] = {}

    def entry(name: str) -> _Entry:
        """Return an entry, whose checksum is compared once."""
        if name not in by_name:
            raise CheckpointError(f"{file.path}: has no entry {quoted(name)}")
        if name not in opened:
            opened[name] = _Entry(file, by_name[name])
        return opened[name]

    order = entry(f"{top}byteorder").content().strip() if f"{top}byteorder" in by_name else b"little"
    if order not in (b"little", b"big"):
        raise CheckpointError(f"{file.path}: has byte order {quoted(order)}; it must be little or big")
    state, _ = read_pickle(memoryview(entry(pickles[0]).content()), 0, str(file.path))

    def find(storage: Storage) -> _Place:
        numbers = entry(f"{top}data/{storage.key}")
        dtype = storage.dtype if order == b"little" else storage.dtype.newbyteorder(">")
        if numbers.size < storage.length * dtype.itemsize:
            expected = f"{storage.length} numbers of {dtype.itemsize} bytes"
            raise CheckpointError(
                f"{file.path}: has {numbers.size} bytes in storage {storage.key}, which should have {expected}"
            )
        return _Place(numbers, numbers.begin, storage.length, dtype)

    return state, find


def _declared_entries(file: NumbersFile, end: int) -> int:
    """Return the number of entries in the record at offset `end` of a zip archive, or in its 64-bit record.

    Python's `zipfile` reads the directory and ignores this number, which another reader might rely on.
    """

    def number(offset: int, size: int) -> int:
        return int.from_bytes(file.read(max(offset, 0), size), "little")

    count = number(end + 10, 2)
    # The signature of the locator (20 bytes) that follows the 64-bit record (56 bytes).
    if count == 0xFFFF and number(end - 20, 4) == 0x07064B50:
        return number(end - 20 - 56 + 32, 8)
    return count


class _Entry:
    """The bytes of one entry, at the offset on which the central directory and the entry's header agree."""

    def __init__(self, file: NumbersFile, entry: zipfile.ZipInfo) -> None:
        self._file, self._name, self._sum = file, quoted(entry.filename), entry.CRC
        self._is_checked = False
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size or entry.flag_bits & 1:
            raise CheckpointError(
                f"{file.path}: has a compressed or encrypted entry {self._name}; torch writes neither"
            )
        start = entry.header_offset
        header = file.read(start, 30) if start >= 0 else b""
        if len(header) < 30 or not header.startswith(_ZIP) or header[8:10] != b"\0\0":
            raise CheckpointError(f"{file.path}: has no entry {self._name} at the offset in its directory")
        #: Offset of the first byte in the file, and the number of bytes.
        self.begin = start + 30 + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        self.size = entry.file_size
        if self.begin + self.size > file.size:
            raise CheckpointError(f"{file.path}: has an entry {self._name} that ends after the end of the file")

    def content(self) -> bytes:
        """Return all bytes."""
        self._check()
        return self._file.read(self.begin, self.size)

    def read_into(self, offset: int, to: memoryview) -> None:
        """Read bytes at an offset of the file, after the checksum of the entire entry was compared once."""
        self._check()
        self._file.read_into(offset, to)

    def _check(self) -> None:
        if self._is_checked:
            return
        found, block = 0, memoryview(bytearray(min(_BLOCK, self.size)))
        for offset in range(0, self.size, _BLOCK):
            part = block[: self.size - offset]
            self._file.read_into(self.begin + offset, part)
            found = zlib.crc32(part, found)
        if found != self._sum:
            raise CheckpointError(
                f"{self._file.path}: has an entry {self._name} whose checksum is wrong: the file is damaged"
            )
        self._is_checked = True


# --- the format before torch 1.6


def _open_legacy(file: NumbersFile) -> tuple[object, Callable[[Storage], _Place]]:
    """Return the unpickled object, and a function that finds a storage."""
    if file.read(0, 1) != b"\x80":
        raise CheckpointError(
            f"{file.path}: is not a file of torch.save: it begins neither as a zip archive nor as a pickle"
        )
    try:
        state, keys, offset = _legacy_pickles(file, file.read(0, _PICKLES))
    except CheckpointError:
        if file.size <= _PICKLES:
            raise
        state, keys, offset = _legacy_pickles(file, file.read(0, file.size))  # the pickles are longer, or malformed
    dtypes = {view.storage.key: view.storage.dtype for view in _views(state)}
    places: dict[str, _Place] = {}
    for key in keys:
        if key not in dtypes:
            raise CheckpointError(
                f"{file.path}: has a storage {quoted(key)} that no tensor uses, so its dtype is unknown"
            )
        if file.size - offset < 8:
            raise CheckpointError(f"{file.path}: ends before storage {quoted(key)}")
        count = int.from_bytes(file.read(offset, 8), "little", signed=True)
        size = count * dtypes[key].itemsize
        offset += 8
        if not 0 <= size <= file.size - offset:
            raise CheckpointError(
                f"{file.path}: says that storage {quoted(key)} has {count} numbers; {file.size - offset} bytes are left"
            )
        places[key] = _Place(file, offset, count, dtypes[key])
        offset += size

    def find(storage: Storage) -> _Place:
        place = places.get(storage.key)
        if place is None:
            raise CheckpointError(f"{file.path}: has no storage {quoted(storage.key)}")
        if place.dtype != storage.dtype or place.length < storage.length:
            raise CheckpointError(
                f"{file.path}: has {place.length} numbers in storage {storage.key}, which should have {storage.length}"
            )
        return place

    return state, find


def _legacy_pickles(file: NumbersFile, data: bytes) -> tuple[object, list[str], int]:
    """Return the state and the keys of the storages from the beginning of a file, and where the storages begin."""
    stream, name = memoryview(data), str(file.path)
    magic, offset = read_pickle(stream, 0, name)
    if type(magic) is not int or magic != _MAGIC:
        raise CheckpointError(
            f"{file.path}: is not a file of torch.save: it is a pickle, but does not begin with torch's magic number"
        )
    protocol, offset = read_pickle(stream, offset, name)
    if type(protocol) is not int or protocol != _PROTOCOL:
        raise CheckpointError(f"{file.path}: has another protocol of torch.save than {_PROTOCOL}")
    machine, offset = read_pickle(stream, offset, name)
    if type(machine) is not dict or machine.get("little_endian") is not True:
        raise CheckpointError(
            f"{file.path}: was written on a big-endian machine; load and save it with a newer PyTorch"
        )
    state, offset = read_pickle(stream, offset, name)
    keys, offset = read_pickle(stream, offset, name)
    if type(keys) is not list or not all(type(key) is str for key in keys) or len(set(keys)) != len(keys):
        raise CheckpointError(f"{file.path}: does not list its storages")
    return state, keys, offset


def _views(state: object) -> list[View]:
    """Return the tensors of a state dict, or of one inside a wrapping dict; nothing is checked yet."""
    found = [state, *(state.get(key) for key in _WRAPPERS)] if isinstance(state, dict) else []
    return [value for level in found if isinstance(level, dict) for value in level.values() if type(value) is View]


# --- from storages to tensors


class _Rows:
    """The bytes of a tensor that was gathered row by row."""

    def __init__(self, numbers: AnyArray) -> None:
        self._bytes = numbers.reshape(-1).view(np.uint8).data

    def read_into(self, offset: int, to: memoryview) -> None:
        """Copy bytes from an offset on."""
        to[:] = self._bytes[offset : offset + len(to)]


class _Gatherer:
    """Finds the tensors that views are; a view that occurs twice is one tensor."""

    def __init__(self, file: NumbersFile, find: Callable[[Storage], _Place]) -> None:
        self._file = file
        self._find = find
        self._left = _MOST_GROWTH * file.size  # bytes that the remaining tensors may have in total
        self._places: dict[str, _Place] = {}
        self._numbers: dict[str, AnyArray] = {}  # storages that were read
        self._tensors: dict[View, StoredTensor] = {}

    def tensors(self, state: object) -> dict[str, StoredTensor]:
        """Return the tensors of the unpickled object, a dict from names to views, which may be inside another dict."""
        if type(state) is dict:
            inner = [state[key] for key in _WRAPPERS if type(state.get(key)) is dict]
            state = inner[0] if len(inner) == 1 else state
        if type(state) is not dict:
            raise CheckpointError(
                f"{self._file.path}: holds a {type(state).__name__}, not a dict from names to tensors"
            )
        for name, value in state.items():
            if type(value) is not View:
                what = f"the value of {quoted(name)} is a {type(value).__name__}, not a tensor"
                raise CheckpointError(
                    f"{self._file.path}: {what}. Save only the model's state_dict, best as safetensors"
                )
        return {name: self._tensor(view) for name, view in state.items()}

    def _tensor(self, view: View) -> StoredTensor:
        if view not in self._tensors:
            self._left -= math.prod(view.shape) * max(view.storage.dtype.itemsize, 4)
            if self._left < 0:
                raise CheckpointError(
                    f"{self._file.path}: has tensors of more than {_MOST_GROWTH} times the size of the file"
                )
            self._tensors[view] = self._found(view)
        return self._tensors[view]

    def _found(self, view: View) -> StoredTensor:
        """Return a view's numbers; `pickles` has checked that its sizes and strides stay inside the storage."""
        place = self._place(view.storage)
        if math.prod(view.shape) == 0:
            # Numbers of 2 bytes become float32.
            if math.prod(max(size, 1) for size in view.shape) * max(place.dtype.itemsize, 4) > sys.maxsize:
                raise CheckpointError(
                    f"{self._file.path}: has an empty tensor of shape {list(view.shape)}, larger than an array can have"
                )
            return StoredTensor(place.source, place.offset, place.dtype, view.shape)
        itemsize = place.dtype.itemsize
        if _is_by_rows(view):
            offset = place.offset + view.offset * itemsize
            return StoredTensor(place.source, offset, place.dtype, view.shape)
        numbers = self._read(view.storage.key, place)
        strides = [stride * numbers.itemsize for stride in view.strides]
        strided = np.lib.stride_tricks.as_strided(numbers[view.offset :], view.shape, strides, writeable=False)
        return StoredTensor(_Rows(np.ascontiguousarray(strided)), 0, place.dtype, view.shape)

    def _read(self, key: str, place: _Place) -> Any:
        if key not in self._numbers:
            numbers = np.empty(place.length, place.dtype)
            place.source.read_into(place.offset, numbers.view(np.uint8).data)
            self._numbers[key] = numbers
        return self._numbers[key]

    def _place(self, storage: Storage) -> _Place:
        place = self._places.get(storage.key)
        if place is None:
            place = self._places[storage.key] = self._find(storage)
        if place.dtype.newbyteorder("=") != storage.dtype.newbyteorder("=") or place.length < storage.length:
            raise CheckpointError(f"{self._file.path}: describes storage {storage.key} in two ways")
        return place


def _is_by_rows(view: View) -> bool:
    """Return whether the numbers of a view follow each other, the last index first."""
    expected = 1
    for size, stride in reversed(list(zip(view.shape, view.strides, strict=True))):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True
