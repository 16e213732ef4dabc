"""Folders of arrays: ``index.json``, which is written last, and the ``.npy`` files that it names."""

from __future__ import annotations

import mmap
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.safe_json import read_object
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert._internal.safe_json import JsonObject

__all__ = ["INDEX", "JOURNAL", "check_file", "open_array", "path_of", "read_index", "release_pages", "verify_file"]

INDEX = "index.json"
JOURNAL = "journal.jsonl"
VERSION = 1

# An entry of a shard takes about 500 bytes: enough for a million shards.
_MAX_INDEX_BYTES = 512 << 20
_CHUNK = 1 << 24


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
        message = f"{folder}: no such folder; pass the folder of {_WHAT[kind]}"
        raise InputError(message)
    if not path.is_file():
        unfinished = (folder / JOURNAL).exists()
        problem = "its making was interrupted: run the same call again to finish it" if unfinished else "pass another"
        message = f"{folder}: no {INDEX}, so this is no finished folder of {_WHAT[kind]}; {problem}"
        raise InputError(message)
    index = read_object(path, InputError, max_bytes=_MAX_INDEX_BYTES)
    if index.get("format") != kind:
        message = f"{path}: its format is {index.get('format')!r:.80}, but {kind!r} is needed"
        raise InputError(message)
    if index.get("version") != VERSION:
        message = (
            f"{path}: version {index.get('version')!r:.20} was written by a newer release; this one reads {VERSION}"
        )
        raise InputError(message)
    shards = index.get("shards")
    if not isinstance(shards, list) or not all(isinstance(one, dict) and _files(one) is not None for one in shards):
        message = f"{path}: shards must be a list of objects, each with its files"
        raise InputError(message)
    return index


_WHAT = {"wordpiece-bert tokens": "a token store", "wordpiece-bert examples": "examples"}


def _files(shard: JsonObject) -> JsonObject | None:
    """Return the files of a shard if each has a name, a size and a checksum."""
    files = shard.get("files")
    if not isinstance(files, dict):
        return None
    for file in files.values():
        if (
            not isinstance(file, dict)
            or not isinstance(file.get("name"), str)
            or not isinstance(file.get("bytes"), int)
        ):
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
        size = path.stat().st_size
    except OSError as cause:
        message = f"{path}: {cause.strerror}, but {folder / INDEX} names it; restore it, or make the folder again"
        raise InputError(message) from cause
    if size != file["bytes"]:
        message = f"{path}: {size:,} bytes, but {folder / INDEX} says {file['bytes']:,}; the file is cut or was changed"
        raise InputError(message)


def verify_file(folder: Path, file: JsonObject) -> None:
    """Check the size and the checksum of a file.

    Raises
    ------
    InputError
        They are not those of the index.
    """
    check_file(folder, file)
    path, crc = path_of(folder, file), 0
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            crc = zlib.crc32(chunk, crc)
    if f"{crc:08x}" != file.get("crc32"):
        message = (
            f"{path}: its CRC-32 is {crc:08x}, but {folder / INDEX} says {file.get('crc32')}; the file was changed"
        )
        raise InputError(message)


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
    path = path_of(folder, file)
    array: npt.NDArray[Any]
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as cause:
        try:  # NumPy maps no array without elements
            array = np.load(path, allow_pickle=False)
        except (OSError, ValueError):
            message = f"{path}: cannot be read: {cause}"
            raise InputError(message) from cause
    if array.dtype != np.dtype(dtype) or array.ndim != 1 or (length is not None and len(array) != length):
        needed = f"{np.dtype(dtype)} [{'n' if length is None else length}]"
        message = f"{path}: {array.dtype} {list(array.shape)}, but {folder / INDEX} promises {needed}"
        raise InputError(message)
    return array


def release_pages(array: npt.NDArray[Any]) -> None:
    """Take the pages of a mapped array out of the memory of this process; the next read maps them again.

    Does nothing for other arrays, and where the system cannot do it.
    """
    mapped = getattr(array, "_mmap", None)
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
