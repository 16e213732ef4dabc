"""Reads and writes ``.safetensors``: 8 bytes of header length, a header in JSON, then the data of all tensors.

Files are untrusted. Every size in the header is checked against the file before memory is allocated for it. Python's
integers do not overflow, so the products below are exact.

Source: the format's description at https://github.com/huggingface/safetensors.
"""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from wordpiece_bert._internal.atomic_file import AtomicFile
from wordpiece_bert._internal.safe_json import is_git_lfs_pointer, parse_json, quoted
from wordpiece_bert.bert.half_precision import BFLOAT16
from wordpiece_bert.bert.stored_tensor import StoredTensor
from wordpiece_bert.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from wordpiece_bert.bert.stored_tensor import NumbersFile

AnyArray = npt.NDArray[np.generic]

#: Longest header that the format allows, in bytes.
_LONGEST_HEADER = 100_000_000

#: Most dimensions of a tensor. BERT's tensors have one or two.
_MOST_DIMENSIONS = 8

# Little-endian, as the format requires.
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


class _HeaderEntry(NamedTuple):
    """The description of one tensor in the header."""

    name: str
    dtype: str  # a key of _DTYPES
    shape: tuple[int, ...]
    begin: int  # bytes from the start of the data
    end: int


def stored_safetensors(source: NumbersFile) -> dict[str, StoredTensor]:
    """Read the header of a file, and return its tensors, whose numbers are still in the file.

    Parameters
    ----------
    source
        The open file.

    Returns
    -------
    dict of str to StoredTensor
        Floating-point tensors (F64, F32, F16, BF16) as float32; integers and booleans in their dtype.

    Raises
    ------
    CheckpointError
        The file is truncated or inconsistent, or has a dtype that is not supported (such as the 8-bit floats).
    """
    header, start = _read_header(source)
    entries = _check_entries(header, source.size - start, source.path)
    return {
        entry.name: StoredTensor(source, start + entry.begin, _DTYPES[entry.dtype], entry.shape) for entry in entries
    }


def safetensors_chunks(tensors: Mapping[str, AnyArray]) -> Iterator[bytes | memoryview]:
    """Yield the contents of a file of tensors, in their order, that transformers and the safetensors library read.

    Half-precision arrays (float16, `half_precision.BFLOAT16`) are written in half precision.
    """
    kinds = {dtype: name for name, dtype in _DTYPES.items()}
    stored = {name: np.require(array, array.dtype.newbyteorder("<"), "C") for name, array in tensors.items()}
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    begin = 0
    for name, array in stored.items():
        end = begin + array.nbytes
        header[name] = {"dtype": kinds[array.dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)  # aligned to 8 bytes, so that the data can be memory-mapped
    yield len(text).to_bytes(8, "little") + text
    for array in stored.values():
        yield array.reshape(-1).view(np.uint8).data


def write_safetensors(file: Path, tensors: Mapping[str, AnyArray]) -> None:
    """Write tensors as a safetensors file, which appears when it is complete.

    Parameters
    ----------
    file : Path
        The file to create or replace.
    tensors : mapping of str to ndarray
        The tensors by name.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from wordpiece_bert.bert.checkpoint import read_tensors, write_safetensors
    >>> write_safetensors(
    ...     Path("model.safetensors"), {"bias": np.arange(3, dtype=np.float32)}
    ... )
    >>> read_tensors("model.safetensors")
    {'bias': array([0., 1., 2.], dtype=float32)}
    """
    with AtomicFile(file) as part:
        part.begin()
        part.write(safetensors_chunks(tensors))
        part.commit()


def _read_header(source: NumbersFile) -> tuple[dict[str, object], int]:
    """Return the parsed header, and the offset of the data in the file."""
    file, size = source.path, source.size
    head = source.read(0, 40)
    if is_git_lfs_pointer(head):
        raise CheckpointError(f"{file}: is a Git LFS pointer, not the file itself; fetch the file with `git lfs pull`")
    if len(head) < 8:
        raise CheckpointError(f"{file}: has {size} bytes; a safetensors file begins with 8 bytes of header length")
    length = int.from_bytes(head[:8], "little")
    if length > min(size - 8, _LONGEST_HEADER):
        raise CheckpointError(
            f"{file}: says its header has {length:,} bytes, but the file has {size - 8:,} after the length "
            f"(and {_LONGEST_HEADER:,} is the most): truncated, or not a safetensors file"
        )
    text = source.read(8, length)
    if not text.startswith(b"{"):
        raise CheckpointError(f"{file}: has a header that begins with {quoted(text[:1])}, not with '{{'")
    header = parse_json(text.rstrip(b" "), f"{file}: header", CheckpointError)
    return header, 8 + length


def _check_entries(header: dict[str, object], data_size: int, file: Path) -> list[_HeaderEntry]:
    """Return the tensors in the order of their data, checked to cover it without gap, overlap or remainder."""
    header = dict(header)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise CheckpointError(f"{file}: has a __metadata__ that is not an object of strings")
    entries = [_entry(name, value, file) for name, value in header.items()]
    entries.sort(key=lambda entry: (entry.begin, entry.end))
    end = 0
    for entry in entries:
        if entry.begin != end:
            what = "overlaps the one before" if entry.begin < end else "leaves a gap before it"
            raise CheckpointError(
                f"{file}: tensor {quoted(entry.name)} begins at byte {entry.begin}, expected {end}: it {what}"
            )
        end = entry.end
    if end != data_size:
        what = "it is truncated" if end > data_size else "the rest belongs to no tensor"
        raise CheckpointError(f"{file}: its tensors need {end:,} bytes of data, the file has {data_size:,}: {what}")
    return entries


def _entry(name: str, value: object, file: Path) -> _HeaderEntry:
    """Check the description of one tensor: exactly a dtype, a shape and two offsets, which agree."""
    where = f"tensor {quoted(name)}"
    if not isinstance(value, dict) or value.keys() != {"dtype", "shape", "data_offsets"}:
        raise CheckpointError(
            f"{file}: {where} must be described by dtype, shape and data_offsets, not by {quoted(value)}"
        )
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        known = ", ".join(_DTYPES)
        raise CheckpointError(
            f"{file}: {where} has dtype {quoted(dtype)}; supported are {known}. Save the model in float32 first"
        )
    if not _are_sizes(shape) or len(shape) > _MOST_DIMENSIONS:
        raise CheckpointError(
            f"{file}: {where} has shape {quoted(shape)}; a list of at most {_MOST_DIMENSIONS} integers, 0 or above"
        )
    if not _are_sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise CheckpointError(f"{file}: {where} has data_offsets {quoted(offsets)}; expected [begin, end]")
    begin, end = offsets
    itemsize = _DTYPES[dtype].itemsize
    if math.prod(shape) * itemsize != end - begin:
        raise CheckpointError(
            f"{file}: {where}, {dtype} {shape}, needs {math.prod(shape) * itemsize} bytes but has {end - begin}"
        )
    if math.prod(max(length, 1) for length in shape) * itemsize > sys.maxsize:
        raise CheckpointError(
            f"{file}: {where} is empty, but its other dimensions {shape} are larger than an array can have"
        )
    return _HeaderEntry(name, dtype, tuple(shape), begin, end)


def _are_sizes(value: object) -> bool:
    return isinstance(value, list) and all(type(number) is int and number >= 0 for number in value)
