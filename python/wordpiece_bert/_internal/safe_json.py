"""Strict JSON and safe paths, for files of a model folder from an untrusted source.

JSON is parsed with limits (size, depth, no duplicate keys, no NaN). Every failure is raised as an error class that the
caller names, with the file's name in the message. A path that a file contains may not leave the model folder.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NoReturn

from wordpiece_bert._internal.lazy import numpy as np

if TYPE_CHECKING:
    from wordpiece_bert.errors import WordPieceError


JsonObject = dict[str, Any]

#: Largest configuration file that is read. The largest real ones hold a few thousand label names, about 100 kB.
MAX_CONFIG_BYTES = 1_000_000

#: Deepest nesting of arrays and objects. Real files of a model folder have at most eight levels.
MAX_DEPTH = 64

# Integers of as many digits are floats.
_FEW_DIGITS = 300

#: What some programs write before a text in UTF-8.
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_GIT_LFS = b"version https://git-lfs"

# A JSON string, or an unterminated one up to the end of the text: the optional closing quote keeps the scan linear.
_JSON_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89abAB-Fc-f]")


def quoted(value: object, limit: int = 80) -> str:
    """Return an untrusted value for a message: in ASCII with control characters escaped, at most `limit` characters."""
    text = ascii(value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def is_git_lfs_pointer(head: bytes) -> bool:
    """Return whether a file with this beginning is a Git LFS pointer: three lines of text in place of the file."""
    return head.startswith(_GIT_LFS)


def read_json(path: Path, error: type[WordPieceError], *, max_bytes: int = MAX_CONFIG_BYTES) -> Any:
    """Read and parse a JSON file within limits.

    Parameters
    ----------
    path : Path
        The file.
    error : type of WordPieceError
        The class of error to raise for every failure, a missing file included. The message begins with the path.
    max_bytes : int, default MAX_CONFIG_BYTES
        The largest file that is read.

    Returns
    -------
    dict, list, str, int, float, bool or None
        The value, as from `json.loads`.
    """
    try:
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as cause:
        raise error(f"{path}: cannot be read: {cause.strerror or cause}") from cause
    if len(data) > max_bytes:
        raise error(f"{path}: larger than {max_bytes:,} bytes, the limit for a file of this kind")
    return parse_json(data, str(path), error)


def read_object(path: Path, error: type[WordPieceError], *, max_bytes: int = MAX_CONFIG_BYTES) -> JsonObject:
    """Read a JSON file that must hold an object, with the limits and errors of `read_json`."""
    value = read_json(path, error, max_bytes=max_bytes)
    if not isinstance(value, dict):
        raise error(f"{path}: holds a JSON {_kind(value)}, expected an object")
    return value


def parse_json(data: bytes, where: str, error: type[WordPieceError]) -> Any:
    """Parse JSON strictly.

    It must be UTF-8, with at most `MAX_DEPTH` levels, no duplicate keys at any level, no NaN or infinity, and no lone
    surrogates. A byte order mark at the start is skipped, as transformers does for configurations.

    Parameters
    ----------
    data : bytes
        The text.
    where : str
        The file's name, with which every message begins.
    error : type of WordPieceError
        The class of error to raise.
    """

    def refuse(what: str, cause: Exception | None = None) -> NoReturn:
        raise error(f"{where}: {what}") from cause

    def without_duplicates(pairs: list[tuple[str, Any]]) -> JsonObject:
        found = dict(pairs)
        if len(found) != len(pairs):
            names = [name for name, _ in pairs]
            duplicate = next(name for i, name in enumerate(names) if name in names[:i])
            refuse(f"the key {quoted(duplicate)} occurs twice in one object")
        return found

    # What reads a file makes floats of its numbers.
    def finite(text: str) -> float:
        number = float(text)
        if not math.isfinite(number):
            refuse(f"the number {quoted(text)} is too large for a float")
        return number

    def whole(text: str) -> int:
        if len(text) > _FEW_DIGITS:
            finite(text)
        return int(text)

    if is_git_lfs_pointer(data):
        refuse("is a Git LFS pointer, not the file itself; fetch it with `git lfs pull`")
    data = data.removeprefix(BYTE_ORDER_MARK)
    depth = _depth(data)
    if depth > MAX_DEPTH:
        refuse(f"JSON nested {depth:,} levels deep; the limit is {MAX_DEPTH}")
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=without_duplicates,
            parse_float=finite,
            parse_int=whole,
            parse_constant=lambda name: refuse(f"{name} is not a JSON number"),
        )
    except UnicodeDecodeError as cause:
        refuse(f"not UTF-8: byte 0x{data[cause.start]:02x} at offset {cause.start}", cause)
    except json.JSONDecodeError as cause:
        refuse(f"not JSON: {cause.msg} at line {cause.lineno} column {cause.colno}", cause)
    if _SURROGATE_ESCAPE.search(data):
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as cause:
            refuse("a string holds a lone surrogate (\\ud800 to \\udfff), which is not a character", cause)
    return value


def inside(folder: Path, name: str, where: str, error: type[WordPieceError]) -> Path:
    """Append a path that a file contains to its folder, and refuse one that leaves the folder.

    A path is refused if it is absolute, has a part ``..``, a backslash, a colon (a drive on Windows) or a null
    character. Symbolic links are not resolved: the Hugging Face cache consists of them, and anyone who can create a
    link here can create its target too.

    Parameters
    ----------
    folder : Path
        The model folder.
    name : str
        The relative path.
    where : str
        The file that contains the path, for the message.
    error : type of WordPieceError
        The class of error to raise.
    """
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or any(character in name for character in "\\:\0"):
        raise error(f"{where}: the path {quoted(name)} leaves the model folder; only plain relative paths are followed")
    return folder.joinpath(*parts)


def _depth(data: bytes) -> int:
    """Return the depth to which brackets nest outside of strings, or any bound that is within the limit.

    For invalid JSON, this is at least the depth that a parser reaches before the first mistake.
    """
    opening = data.count(b"[") + data.count(b"{")
    if opening <= MAX_DEPTH:
        return opening  # for which NumPy need not be imported
    brackets = np.frombuffer(_JSON_STRING.sub(b"", data), dtype=np.uint8)
    brackets = brackets[np.isin(brackets, np.frombuffer(b"[]{}", dtype=np.uint8))]
    steps = np.where(np.isin(brackets, np.frombuffer(b"[{", dtype=np.uint8)), 1, -1)
    return int(np.cumsum(steps).max(initial=0))


def _kind(value: object) -> str:
    """Return JSON's name for the type of a value."""
    if value is None:
        return "null"
    return {dict: "object", list: "array", str: "string", bool: "boolean"}.get(type(value), "number")
