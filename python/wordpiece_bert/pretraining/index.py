"""Folders of arrays: ``index.json``, which is written last, and the ``.npy`` files that it names."""

from __future__ import annotations

import mmap
import os
import re
import stat
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.safe_json import quoted, read_object
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from typing import BinaryIO

    import numpy.typing as npt

    from wordpiece_bert._internal.safe_json import JsonObject

INDEX = "index.json"
JOURNAL = "journal.jsonl"
VERSION = 1

#: The largest index or journal that is read. An entry of a shard takes about 500 bytes: enough for a million shards.
MAX_INDEX_BYTES = 512 << 20
_CHUNK = 1 << 24

# What this package and `numpy.save` write for an array of one dimension. NumPy's own reader evaluates the text, and
# allocates what the shape says before it looks at the size of the file.
_NPY_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(..)"
    rb"\{'descr': '([<>|]?[a-z]\d)', 'fortran_order': (?:True|False), 'shape': \((\d{1,19}),\), \} *\n",
    re.DOTALL,
)
_CHECKSUM = re.compile(r"[0-9a-f]{8}")


def read_index(folder: Path, kind: str) -> JsonObject:
    """Read the ``index.json`` of a folder.

    Parameters
    ----------
    folder : Path
        The folder.
    kind : str
        The `format` that it must have: ``"wordpiece-bert tokens"`` or ``"wordpiece-bert examples"``.

    Returns
    -------
    dict
        The content. Its shards name files with sizes and checksums.

    Raises
    ------
    InputError
        There is no such folder, it was not finished, or it is of another kind or version.
    """
    path = folder / INDEX
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; pass the folder of {_WHAT[kind]}")
    if not path.is_file():
        unfinished = (folder / JOURNAL).exists()
        problem = "its making was interrupted: run the same call again to finish it" if unfinished else "pass another"
        raise InputError(f"{folder}: no {INDEX}, so this is no finished folder of {_WHAT[kind]}; {problem}")
    index = read_object(path, InputError, max_bytes=MAX_INDEX_BYTES)
    if index.get("format") != kind:
        raise InputError(f"{path}: its format is {index.get('format')!r:.80}, but {kind!r} is needed")
    if index.get("version") != VERSION:
        raise InputError(
            f"{path}: version {index.get('version')!r:.20} was written by a newer release; this one reads {VERSION}"
        )
    shards = index.get("shards")
    if not isinstance(shards, list) or not all(isinstance(one, dict) and _files(one) is not None for one in shards):
        raise InputError(f"{path}: shards must be a list of objects, each with its files: their names, bytes and crc32")
    return index


def whole(path: Path, content: JsonObject, name: str, most: int = (1 << 63) - 1) -> int:
    """Return a field of an index that must be a whole number, 0 or more.

    Raises
    ------
    InputError
        It is missing, or something else.
    """
    value = content.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise InputError(
            f"{path}: {name} must be a whole number from 0 to {most}, not {quoted(value)}; the index is damaged"
        )
    return value


def ids_dtype(path: Path, index: JsonObject) -> np.dtype[Any]:
    """Return the type of ids that an index names.

    Raises
    ------
    InputError
        It is neither uint16 nor uint32.
    """
    name = index.get("dtype")
    if name not in ("uint16", "uint32"):
        raise InputError(f"{path}: dtype {quoted(name)} is none of uint16, uint32")
    return np.dtype(str(name))


_WHAT = {"wordpiece-bert tokens": "a token store", "wordpiece-bert examples": "examples"}


def _files(shard: JsonObject) -> JsonObject | None:
    """Return the files of a shard if each has a name, a size and a checksum."""
    files = shard.get("files")
    if not isinstance(files, dict):
        return None
    for file in files.values():
        if not isinstance(file, dict):
            return None
        name, size, checksum = file.get("name"), file.get("bytes"), file.get("crc32")
        if not isinstance(name, str) or not name or "\0" in name:
            return None
        if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size < 1 << 63:
            return None
        if not isinstance(checksum, str) or not _CHECKSUM.fullmatch(checksum):
            return None
    return files


def path_of(folder: Path, file: JsonObject) -> Path:
    """Return the path of a file that an index names, relative to its folder. Merged stores name files outside of it."""
    return Path(os.path.normpath(folder / file["name"]))


def check_file(folder: Path, file: JsonObject) -> None:
    """Check that a file has the size that the index states.

    Raises
    ------
    InputError
        The file is missing or has another size.
    """
    path = path_of(folder, file)
    try:
        found = path.stat()
    except OSError as cause:
        raise InputError(
            f"{path}: {cause.strerror}, but {folder / INDEX} names it; restore it, or make the folder again"
        ) from cause
    if not stat.S_ISREG(found.st_mode):  # reading a pipe would wait for ever
        raise InputError(
            f"{path}: is no regular file, but {folder / INDEX} names it; restore it, or make the folder again"
        )
    size = found.st_size
    if size != file["bytes"]:
        raise InputError(
            f"{path}: {size:,} bytes, but {folder / INDEX} says {file['bytes']:,}; the file is cut or was changed"
        )


def verify_file(folder: Path, file: JsonObject) -> None:
    """Check the size and the checksum of a file.

    Raises
    ------
    InputError
        They are not as the index says.
    """
    check_file(folder, file)
    path = path_of(folder, file)
    try:
        with path.open("rb") as stream:
            found = f"{checksum(stream, file['bytes']) or 0:08x}"
    except OSError as cause:
        raise InputError(f"{path}: cannot be read: {cause.strerror}") from cause
    if found != file["crc32"]:
        raise InputError(
            f"{path}: its CRC-32 is {found}, but {folder / INDEX} says {file['crc32']}; the file was changed"
        )


def is_intact(folder: Path, file: object, name: str) -> bool:
    """Whether what a journal says of a file is about the file of this name, and the file is as it was written."""
    if not isinstance(file, dict) or file.get("name") != name:
        return False
    try:
        verify_file(folder, file)
    except (InputError, KeyError, TypeError, ValueError):
        return False
    return True


def checksum(stream: BinaryIO, size: int, before: int = 0) -> int | None:
    """Return the CRC-32 of the next bytes of a file, or None if there are fewer.

    Parameters
    ----------
    stream : binary file
        The file.
    size : int
        The number of bytes.
    before : int, default 0
        The checksum of what precedes them.
    """
    crc = before
    while size > 0:
        chunk = stream.read(min(size, _CHUNK))
        if not chunk:
            return None
        crc, size = zlib.crc32(chunk, crc), size - len(chunk)
    return crc


def open_array(folder: Path, file: JsonObject, dtype: npt.DTypeLike, length: int | None = None) -> npt.NDArray[Any]:
    """Map a ``.npy`` file into memory.

    Parameters
    ----------
    folder : Path
        The folder of the index.
    file : dict
        The entry of the file in the index.
    dtype : dtype_like
        The type that the array must have.
    length : int, optional
        The number of elements that it must have.

    Raises
    ------
    InputError
        The file cannot be read, or is not the array that the index promises.
    """
    check_file(folder, file)
    path, needed = path_of(folder, file), np.dtype(dtype)
    try:
        with path.open("rb") as stream:
            head = stream.read(256)
    except OSError as cause:
        raise InputError(f"{path}: cannot be read: {cause.strerror}") from cause
    header = _NPY_HEADER.match(head)
    offset = 0 if header is None else 10 + int.from_bytes(header[1], "little")
    if header is None or header.end() != offset:
        raise InputError(f"{path}: is no .npy file with one dimension; the file was changed")
    found, count = header[2].decode(), int(header[3])
    if found not in (needed.str, needed.newbyteorder("<").str) or (length is not None and count != length):
        promised = f"{needed} [{'n' if length is None else length}]"
        raise InputError(f"{path}: {found} [{count}], but {folder / INDEX} promises {promised}")
    if offset + count * needed.itemsize != file["bytes"]:
        raise InputError(
            f"{path}: {count:,} elements and {file['bytes']:,} bytes do not fit together; the file was changed"
        )
    if count == 0:  # nothing can be mapped
        return np.empty(0, needed)
    try:
        return np.memmap(path, needed.newbyteorder("<"), "r", offset, (count,))
    except (OSError, ValueError) as cause:
        raise InputError(f"{path}: cannot be mapped into memory: {cause}") from cause


def release_pages(array: npt.NDArray[Any]) -> None:
    """Take the pages of a mapped array out of the memory of this process; the next read maps them again.

    Does nothing for other arrays, and where the system cannot do it.
    """
    mapped = getattr(array, "_mmap", None)
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
