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
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from wordpiece_bert._internal.safe_json import is_git_lfs_pointer, quoted
from wordpiece_bert.bert.checkpoint.pickles import View, read_pickle
from wordpiece_bert.bert.half_precision import native
from wordpiece_bert.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wordpiece_bert.bert.checkpoint.pickles import Storage
    from wordpiece_bert.bert.checkpoint.safetensors import AnyArray

__all__ = ["read_torch_file"]

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

_Bytes = npt.NDArray[np.uint8]


def read_torch_file(file: Path, *, keep_half: bool = False) -> dict[str, AnyArray]:
    """Read all tensors of one file that ``torch.save`` wrote.

    Parameters
    ----------
    file
        The file.
    keep_half
        Whether to keep float16 and bfloat16.

    Returns
    -------
    dict of str to array
        As from `read_safetensors`. Tensors that are views of one storage are copied into separate arrays.

    Raises
    ------
    CheckpointError
        The file is truncated or inconsistent, or has values other than tensors; the message quotes the name of a
        function that it would call.
    """
    try:
        data = np.fromfile(file, np.uint8)
    except (OSError, MemoryError) as cause:
        _refuse(file, f"cannot be read: {getattr(cause, 'strerror', None) or cause}", cause)
    head = data[:64].tobytes()
    if is_git_lfs_pointer(head):
        _refuse(file, "is a Git LFS pointer, not the file itself; fetch the file with `git lfs pull`")
    if data[_TAR[0] : _TAR[0] + len(_TAR[1])].tobytes() == _TAR[1]:
        _refuse(file, "is a tar archive, as PyTorch before 0.1.10 wrote it; load and save it with a newer PyTorch")
    if head.startswith(_ZIP) or zipfile.is_zipfile(file):
        state, read = _read_zip(file, data)
    else:
        state, read = _read_legacy(file, data)
    return _Gatherer(file, read, data.nbytes, keep_half=keep_half).tensors(state)


# --- the zip format


def _read_zip(file: Path, data: _Bytes) -> tuple[object, Callable[[Storage], AnyArray]]:
    """Return the unpickled object, and a function that reads a storage."""
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            comment = len(archive.comment)
    except (*_BadZip, OSError) as cause:
        _refuse(file, f"is a zip archive that is truncated or broken: {cause}", cause)
    if _declared_entries(data, len(data) - _END_SIZE - comment) != len(entries):
        _refuse(file, f"is a zip archive whose directory has {len(entries)} entries, not the number at its end")
    by_name = {entry.filename: entry for entry in entries}
    if len(by_name) != len(entries):
        _refuse(file, "is a zip archive with two entries of one name")
    pickles = [name for name in by_name if name.endswith("/data.pkl") and name.count("/") == 1]
    if len(pickles) != 1:
        _refuse(file, f"is a zip archive with {len(pickles)} entries X/data.pkl; torch writes one")
    top = pickles[0].removesuffix("data.pkl")
    if sum(entry.file_size for entry in entries) > len(data):
        _refuse(file, "is a zip archive whose entries are larger than the file: compressed, or overlapping")

    def content(name: str) -> _Bytes:
        """Return the bytes of an entry."""
        if name not in by_name:
            _refuse(file, f"has no entry {quoted(name)}")
        return _entry(file, data, by_name[name])

    order = content(f"{top}byteorder").tobytes().strip() if f"{top}byteorder" in by_name else b"little"
    if order not in (b"little", b"big"):
        _refuse(file, f"has byte order {quoted(order)}; it must be little or big")
    state, _ = read_pickle(memoryview(content(pickles[0]).data), 0, str(file))

    def read(storage: Storage) -> AnyArray:
        data = content(f"{top}data/{storage.key}")
        dtype = storage.dtype if order == b"little" else storage.dtype.newbyteorder(">")
        if len(data) < storage.length * dtype.itemsize:
            expected = f"{storage.length} numbers of {dtype.itemsize} bytes"
            _refuse(file, f"has {len(data)} bytes in storage {storage.key}, which should have {expected}")
        return data[: storage.length * dtype.itemsize].view(dtype)

    return state, read


def _declared_entries(data: _Bytes, end: int) -> int:
    """Return the number of entries in the record at offset `end` of a zip archive, or in its 64-bit record.

    Python's `zipfile` reads the directory and ignores this number, which another reader might rely on.
    """

    def number(offset: int, size: int) -> int:
        return int.from_bytes(data[max(offset, 0) : max(offset, 0) + size].tobytes(), "little")

    count = number(end + 10, 2)
    # The signature of the locator (20 bytes) that follows the 64-bit record (56 bytes).
    if count == 0xFFFF and number(end - 20, 4) == 0x07064B50:
        return number(end - 20 - 56 + 32, 8)
    return count


def _entry(file: Path, data: _Bytes, entry: zipfile.ZipInfo) -> _Bytes:
    """Return the bytes of one entry, at the offset on which the central directory and the entry's header agree."""
    name = quoted(entry.filename)
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size or entry.flag_bits & 1:
        _refuse(file, f"has a compressed or encrypted entry {name}; torch writes neither")
    start = entry.header_offset
    header = data[start : start + 30].tobytes() if start >= 0 else b""
    if len(header) < 30 or not header.startswith(_ZIP) or header[8:10] != b"\0\0":
        _refuse(file, f"has no entry {name} at the offset in its directory")
    begin = start + 30 + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    content = data[begin : begin + entry.file_size]
    if len(content) != entry.file_size:
        _refuse(file, f"has an entry {name} that ends after the end of the file")
    if zlib.crc32(content.data) != entry.CRC:
        _refuse(file, f"has an entry {name} whose checksum is wrong: the file is damaged")
    return content


# --- the format before torch 1.6


def _read_legacy(file: Path, data: _Bytes) -> tuple[object, Callable[[Storage], AnyArray]]:
    """Return the unpickled object, and a function that reads a storage."""
    if not len(data) or data[0] != 0x80:
        _refuse(file, "is not a file of torch.save: it begins neither as a zip archive nor as a pickle")
    stream = memoryview(data.data)
    magic, offset = read_pickle(stream, 0, str(file))
    if type(magic) is not int or magic != _MAGIC:
        _refuse(file, "is not a file of torch.save: it is a pickle, but does not begin with torch's magic number")
    protocol, offset = read_pickle(stream, offset, str(file))
    if type(protocol) is not int or protocol != _PROTOCOL:
        _refuse(file, f"has another protocol of torch.save than {_PROTOCOL}")
    machine, offset = read_pickle(stream, offset, str(file))
    if type(machine) is not dict or machine.get("little_endian") is not True:
        _refuse(file, "was written on a big-endian machine; load and save it with a newer PyTorch")
    state, offset = read_pickle(stream, offset, str(file))
    keys, offset = read_pickle(stream, offset, str(file))
    if type(keys) is not list or not all(type(key) is str for key in keys) or len(set(keys)) != len(keys):
        _refuse(file, "does not list its storages")
    dtypes = {view.storage.key: view.storage.dtype for view in _views(state)}
    storages: dict[str, AnyArray] = {}
    for key in keys:
        if key not in dtypes:
            _refuse(file, f"has a storage {quoted(key)} that no tensor uses, so its dtype is unknown")
        if len(data) - offset < 8:
            _refuse(file, f"ends before storage {quoted(key)}")
        count = int.from_bytes(data[offset : offset + 8].tobytes(), "little", signed=True)
        size = count * dtypes[key].itemsize
        offset += 8
        if not 0 <= size <= len(data) - offset:
            _refuse(file, f"says that storage {quoted(key)} has {count} numbers; {len(data) - offset} bytes are left")
        storages[key] = data[offset : offset + size].view(dtypes[key])
        offset += size

    def read(storage: Storage) -> AnyArray:
        numbers = storages.get(storage.key)
        if numbers is None:
            _refuse(file, f"has no storage {quoted(storage.key)}")
        if numbers.dtype != storage.dtype or len(numbers) < storage.length:
            _refuse(file, f"has {len(numbers)} numbers in storage {storage.key}, which should have {storage.length}")
        return numbers

    return state, read


def _views(state: object) -> list[View]:
    """Return the tensors of a state dict, or of one inside a wrapping dict; nothing is checked yet."""
    found = [state, *(state.get(key) for key in _WRAPPERS)] if isinstance(state, dict) else []
    return [value for level in found if isinstance(level, dict) for value in level.values() if type(value) is View]


# --- from storages to tensors


class _Gatherer:
    """Copies views into arrays; reads each storage once and copies each view once."""

    def __init__(self, file: Path, read: Callable[[Storage], AnyArray], size: int, *, keep_half: bool) -> None:
        self._file = file
        self._read = read
        self._keep_half = keep_half
        self._left = _MOST_GROWTH * size  # bytes that the remaining tensors may have in total
        self._storages: dict[str, AnyArray] = {}
        self._arrays: dict[View, AnyArray] = {}

    def tensors(self, state: object) -> dict[str, AnyArray]:
        """Return the arrays of the unpickled object, a dict from names to views, which may be inside another dict."""
        if type(state) is dict:
            inner = [state[key] for key in _WRAPPERS if type(state.get(key)) is dict]
            state = inner[0] if len(inner) == 1 else state
        if type(state) is not dict:
            _refuse(self._file, f"holds a {type(state).__name__}, not a dict from names to tensors")
        for name, value in state.items():
            if type(value) is not View:
                what = f"the value of {quoted(name)} is a {type(value).__name__}, not a tensor"
                _refuse(self._file, f"{what}. Save only the model's state_dict, best as safetensors")
        return {name: self._array(view) for name, view in state.items()}

    def _array(self, view: View) -> AnyArray:
        if view not in self._arrays:
            self._left -= math.prod(view.shape) * max(view.storage.dtype.itemsize, 4)
            if self._left < 0:
                _refuse(self._file, f"has tensors of more than {_MOST_GROWTH} times the size of the file")
            self._arrays[view] = native(self._gathered(view), keep_half=self._keep_half)
        return self._arrays[view]

    def _gathered(self, view: View) -> AnyArray:
        """Copy a view's numbers; `pickles` has checked that its sizes and strides stay inside the storage."""
        numbers: Any = self._storage(view.storage)
        if math.prod(view.shape) == 0:
            if math.prod(max(size, 1) for size in view.shape) * numbers.itemsize > sys.maxsize:
                _refuse(self._file, f"has an empty tensor of shape {list(view.shape)}, larger than an array can have")
            return np.zeros(view.shape, numbers.dtype)
        strides = [stride * numbers.itemsize for stride in view.strides]
        strided = np.lib.stride_tricks.as_strided(numbers[view.offset :], view.shape, strides, writeable=False)
        return np.require(strided, requirements="C")

    def _storage(self, storage: Storage) -> AnyArray:
        numbers = self._storages.get(storage.key)
        if numbers is None:
            numbers = self._storages[storage.key] = self._read(storage)
        if numbers.dtype.newbyteorder("=") != storage.dtype.newbyteorder("=") or len(numbers) < storage.length:
            _refuse(self._file, f"describes storage {storage.key} in two ways")
        return numbers


def _refuse(file: Path, what: str, cause: BaseException | None = None) -> NoReturn:
    message = f"{file}: {what}"
    raise CheckpointError(message) from cause
