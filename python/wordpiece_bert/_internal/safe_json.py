"""Reading small files out of a model folder that nobody vouches for.

A model folder comes from the internet. So its JSON is read with limits (size, depth, no key twice, no NaN), each
failure becomes the caller's own error class with the file's name in the message, and a path that a file names may not
leave the folder.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

if TYPE_CHECKING:
    from wordpiece_bert.errors import WordPieceError

__all__ = [
    "MAX_CONFIG_BYTES",
    "JsonObject",
    "inside",
    "is_git_lfs_pointer",
    "parse_json",
    "quoted",
    "read_json",
    "read_object",
]

JsonObject = dict[str, Any]

#: Largest configuration file that is read. The largest honest ones hold a few thousand label names: some 100 kB.
MAX_CONFIG_BYTES = 1_000_000

#: Deepest nesting of lists and objects. Honest files of a model folder have at most eight levels.
MAX_DEPTH = 64

_GIT_LFS = b"version https://git-lfs"

# A JSON string, or an unterminated one up to the end of the text: the optional last quote keeps the scan linear.
_JSON_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89abAB-Fc-f]")


def quoted(value: object, limit: int = 80) -> str:
    """Show an untrusted value in a message: control characters escaped, long ones cut."""
    text = ascii(value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def is_git_lfs_pointer(head: bytes) -> bool:
    """Tell whether a file that begins so is a Git LFS pointer: three lines of text in place of the file."""
    return head.startswith(_GIT_LFS)


def read_json(path: Path, error: type[WordPieceError], *, max_bytes: int = MAX_CONFIG_BYTES) -> Any:  # noqa: ANN401
    """Read one JSON file within limits.

    Parameters
    ----------
    path
        The file; a missing or unreadable one is an error as well.
    error
        Class of the error that every failure becomes; its message begins with the path.
    max_bytes
        Largest file that is read.

    Returns
    -------
    Any
        What `json.loads` gives: dict, list, str, int, float, bool or None.
    """
    try:
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as cause:
        message = f"{path}: cannot be read: {cause.strerror or cause}"
        raise error(message) from cause
    if len(data) > max_bytes:
        message = f"{path}: longer than {max_bytes:,} bytes, which no honest file of this kind is"
        raise error(message)
    return parse_json(data, str(path), error)


def read_object(path: Path, error: type[WordPieceError]) -> JsonObject:
    """Read one JSON file that must hold an object, as `read_json`."""
    value = read_json(path, error)
    if not isinstance(value, dict):
        message = f"{path}: holds a JSON {_kind(value)}, expected an object"
        raise error(message)
    return value


def parse_json(data: bytes, where: str, error: type[WordPieceError]) -> Any:  # noqa: ANN401
    """Parse JSON strictly: UTF-8, no key twice at any level, at most `MAX_DEPTH` levels, no NaN, no lone surrogates.

    A byte order mark at the start is skipped, as transformers does for configurations.
    """

    def refuse(what: str, cause: Exception | None = None) -> NoReturn:
        message = f"{where}: {what}"
        raise error(message) from cause

    def unique(pairs: list[tuple[str, Any]]) -> JsonObject:
        found = dict(pairs)
        if len(found) != len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            refuse(f"the key {quoted(twice)} stands twice in one object")
        return found

    def finite(text: str) -> float:
        number = float(text)
        if not math.isfinite(number):
            refuse(f"the number {quoted(text)} is beyond what a float holds")
        return number

    if is_git_lfs_pointer(data):
        refuse("is a Git LFS pointer, not the file itself; fetch it with `git lfs pull`")
    data = data.removeprefix(b"\xef\xbb\xbf")
    depth = _depth(data)
    if depth > MAX_DEPTH:
        refuse(f"JSON nested {depth:,} levels deep; at most {MAX_DEPTH} are read")
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=unique,
            parse_float=finite,
            parse_constant=lambda name: refuse(f"{name} is not a JSON number"),
        )
    except UnicodeDecodeError as cause:
        refuse(f"not UTF-8: byte 0x{data[cause.start]:02x} at offset {cause.start}", cause)
    except json.JSONDecodeError as cause:
        refuse(f"not JSON: {cause.msg} at line {cause.lineno} column {cause.colno}", cause)
    except ValueError as cause:  # an integer of thousands of digits, which Python will not convert
        if isinstance(cause, error):
            raise
        refuse("not usable JSON: an integer with too many digits", cause)
    if _SURROGATE_ESCAPE.search(data):
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as cause:
            refuse("a string holds a lone surrogate (\\ud800 to \\udfff), which is no text", cause)
    return value


def inside(folder: Path, name: str, where: str, error: type[WordPieceError]) -> Path:
    """Join a path which a file names to its folder; refuse one that is absolute, climbs out or hides a drive.

    Symbolic links are left alone: the Hugging Face cache is made of them, and who can write a link here can write its
    target too.
    """
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or any(character in name for character in "\\:\0"):
        message = f"{where}: the path {quoted(name)} leaves the model folder; only plain relative paths are followed"
        raise error(message)
    return folder.joinpath(*parts)


def _depth(data: bytes) -> int:
    """Return how deep brackets nest, strings left out; at least as deep as a parser gets before the first mistake."""
    brackets = np.frombuffer(_JSON_STRING.sub(b"", data), dtype=np.uint8)
    brackets = brackets[np.isin(brackets, np.frombuffer(b"[]{}", dtype=np.uint8))]
    steps = np.where(np.isin(brackets, np.frombuffer(b"[{", dtype=np.uint8)), 1, -1)
    return int(np.cumsum(steps).max(initial=0))


def _kind(value: object) -> str:
    """Name a JSON value's type as JSON does."""
    if value is None:
        return "null"
    return {dict: "object", list: "array", str: "string", bool: "boolean"}.get(type(value), "number")
