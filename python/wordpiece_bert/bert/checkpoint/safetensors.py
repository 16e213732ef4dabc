"""Reads and writes ``.safetensors``: 8 bytes of length, a header in JSON, then the numbers of all tensors.

A file that is read is untrusted. Every claim of the header is checked against the file before anything of its size is
allocated; Python's integers do not overflow, so the products below are exact.

Source: the format's description at https://github.com/huggingface/safetensors.
"""

from __future__ import annotations

import json
import math
import os
import sys
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from wordpiece_bert._internal.atomic_file import AtomicFile
from wordpiece_bert._internal.safe_json import is_git_lfs_pointer, parse_json, quoted
from wordpiece_bert.bert.half_precision import BFLOAT16, native
from wordpiece_bert.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from io import BufferedReader
    from pathlib import Path

__all__ = ["AnyArray", "read_safetensors", "write_safetensors"]

AnyArray = npt.NDArray[np.generic]

#: Longest header that the format allows, in bytes.
_LONGEST_HEADER = 100_000_000

#: Most dimensions of one tensor. Those of BERT have one or two.
_MOST_DIMENSIONS = 8

# Little-endian, as the format says.
_DTYPES = {
    "BOOL": np.dtype("?"),
    "U8": np.dtype("u1"),
    "I8": np.dtype("i1"),
    "I16": np.dtype("<i2"),
    "U16": np.dtype("<u2"),
    "F16": np.dtype("<f2"),
    "BF16": BFLOAT16,
    "I32": np.dtype("<i4"),
    "U32": np.dtype("<u4"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "U64": np.dtype("<u8"),
    "F64": np.dtype("<f8"),
}


class _Entry(NamedTuple):
    """One tensor as the header describes it: bytes `begin` to `end` of the data."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def read_safetensors(file: Path, *, keep_half: bool = False) -> dict[str, AnyArray]:
    """Read all tensors of one file.

    Parameters
    ----------
    file
        The file.
    keep_half
        Whether to leave F16 and BF16 as they are, as float16 and `half.BFLOAT16`.

    Returns
    -------
    dict of str to array
        Floating-point tensors (F64, F32, F16, BF16) as float32; integers and booleans as they are stored.

    Raises
    ------
    CheckpointError
        The file is cut short, contradicts itself, or holds a dtype that is not read (the eight-bit floats).
    """
    try:
        with file.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            header, start = _read_header(stream, size, file)
            entries = _check_entries(header, size - start, file)
            # A buffer for each, so that one which is no longer needed gives back its memory.
            tensors = {entry.name: _read_tensor(stream, entry, file, keep_half=keep_half) for entry in entries}
    except OSError as cause:
        if isinstance(cause, CheckpointError):
            raise
        _refuse(file, f"cannot be read: {cause.strerror or cause}", cause)
    return tensors


def write_safetensors(file: Path, tensors: Mapping[str, AnyArray]) -> None:
    """Write tensors in the order given, so that transformers and the safetensors library read them.

    Half-precision arrays (float16, `half.BFLOAT16`) stay what they are. The file is put in place when all is written.
    """
    kinds = {dtype: name for name, dtype in _DTYPES.items()}
    stored = {name: np.require(array, array.dtype.newbyteorder("<"), "C") for name, array in tensors.items()}
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    place = 0
    for name, array in stored.items():
        entry = {"dtype": kinds[array.dtype], "shape": list(array.shape), "data_offsets": [place, place + array.nbytes]}
        header[name] = entry
        place += array.nbytes
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)  # data that begins at a multiple of 8 can be mapped
    with AtomicFile(file) as part:
        part.begin()
        with part.naming_errors():
            part.file.write(len(text).to_bytes(8, "little") + text)
            for array in stored.values():
                part.file.write(array.tobytes())
        part.commit()


def _read_header(stream: BinaryIO, size: int, file: Path) -> tuple[dict[str, object], int]:
    """Read and parse the header; return it and the offset where the data begins."""
    head = stream.read(8)
    if is_git_lfs_pointer(head + stream.read(32)):
        _refuse(file, "is a Git LFS pointer, a text that stands for the model; fetch the file with `git lfs pull`")
    if len(head) < 8:
        _refuse(file, f"has {size} bytes; a safetensors file begins with 8 bytes of header length")
    length = int.from_bytes(head, "little")
    if length > min(size - 8, _LONGEST_HEADER):
        _refuse(
            file,
            f"says its header has {length:,} bytes, but the file has {size - 8:,} after the length "
            f"(and {_LONGEST_HEADER:,} is the most): cut short, or no safetensors file",
        )
    stream.seek(8)
    text = stream.read(length)
    if len(text) != length:
        _refuse(file, "became shorter while it was read")
    if not text.startswith(b"{"):
        _refuse(file, f"has a header that begins with {quoted(text[:1])}, not with '{{'")
    header = parse_json(text.rstrip(b" "), f"{file}: header", CheckpointError)
    return header, 8 + length


def _check_entries(header: dict[str, object], data_size: int, file: Path) -> list[_Entry]:
    """Check that the header's tensors tile the data: no hole, no overlap, nothing left over; return them in order."""
    header = dict(header)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        _refuse(file, "has a __metadata__ that is not an object of strings")
    entries = [_entry(name, value, file) for name, value in header.items()]
    entries.sort(key=lambda entry: (entry.begin, entry.end))
    place = 0
    for entry in entries:
        if entry.begin != place:
            what = "overlaps the one before" if entry.begin < place else "leaves a hole before it"
            _refuse(file, f"tensor {quoted(entry.name)} begins at byte {entry.begin}, expected {place}: it {what}")
        place = entry.end
    if place != data_size:
        what = "it was cut short" if place > data_size else "the rest belongs to no tensor"
        _refuse(file, f"its tensors need {place:,} bytes of data, the file has {data_size:,}: {what}")
    return entries


def _entry(name: str, value: object, file: Path) -> _Entry:
    """Check one tensor's description: exactly a dtype, a shape and two offsets that agree."""
    where = f"tensor {quoted(name)}"
    if not isinstance(value, dict) or value.keys() != {"dtype", "shape", "data_offsets"}:
        _refuse(file, f"{where} must be described by dtype, shape and data_offsets, not by {quoted(value)}")
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        known = ", ".join(_DTYPES)
        _refuse(file, f"{where} has dtype {quoted(dtype)}; read are {known}. Save the model in float32 first")
    if not _are_sizes(shape) or len(shape) > _MOST_DIMENSIONS:
        _refuse(file, f"{where} has shape {quoted(shape)}; a list of at most {_MOST_DIMENSIONS} integers, 0 or above")
    if not _are_sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        _refuse(file, f"{where} has data_offsets {quoted(offsets)}; expected [begin, end]")
    begin, end = offsets
    itemsize = _DTYPES[dtype].itemsize
    if math.prod(shape) * itemsize != end - begin:
        _refuse(file, f"{where}, {dtype} {shape}, needs {math.prod(shape) * itemsize} bytes but has {end - begin}")
    if math.prod(max(length, 1) for length in shape) * itemsize > sys.maxsize:
        _refuse(file, f"{where} is empty, but its other dimensions {shape} are beyond what an array can have")
    return _Entry(name, dtype, tuple(shape), begin, end)


def _are_sizes(value: object) -> bool:
    return isinstance(value, list) and all(type(number) is int and number >= 0 for number in value)


def _read_tensor(stream: BufferedReader, entry: _Entry, file: Path, *, keep_half: bool) -> AnyArray:
    """Read the bytes of the next tensor into an array, floating-point ones into float32."""
    data = np.empty(entry.end - entry.begin, np.uint8)
    if stream.readinto(data.data) != data.nbytes:
        _refuse(file, "became shorter while it was read")
    stored = data.view(_DTYPES[entry.dtype]).reshape(entry.shape)
    return native(stored, keep_half=keep_half)


def _refuse(file: Path, what: str, cause: Exception | None = None) -> NoReturn:
    message = f"{file}: {what}"
    raise CheckpointError(message) from cause
