"""Answers as JSON, piece by piece: a large one does not hold up the event loop, and exists once."""

from __future__ import annotations

import asyncio
import base64
import json
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._core import json_of_floats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

# NaN is not a number in JSON, and the client could not read it.
_text = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode

# Seconds after which other requests may go on.
_TURN = 0.01
# Numbers of an array, and items of a list, that become text at once: about 4 ms.
_NUMBERS = 4096
_ITEMS = 1024
# Bytes that become base64 at once: a multiple of 3.
_BYTES = 3 << 14
# Bytes of a part of an answer.
_PART = 1 << 18


async def encoded(value: Any, hold: Callable[[int], object] = int) -> list[bytes]:
    """Return a value as JSON in parts, and let other requests go on meanwhile.

    Parameters
    ----------
    value
        What `json.dumps` takes; also, alone or in dicts, an iterator, which becomes a list whose items are made one by
        one, an array of numbers, which becomes lists, and a memoryview of bytes, which becomes base64.
    hold : callable, optional
        Called with the size of each part; what it raises ends the work.
    """
    parts: list[bytes] = []
    buffer = bytearray()
    due = perf_counter() + _TURN
    for piece in _pieces(value):
        buffer += piece.encode()
        if len(buffer) >= _PART:
            hold(len(buffer))
            parts.append(bytes(buffer))
            buffer.clear()
        if perf_counter() > due:
            await asyncio.sleep(0)
            due = perf_counter() + _TURN
    if buffer:
        hold(len(buffer))
        parts.append(bytes(buffer))
    return parts


def _is_divided(value: Any) -> bool:
    """Whether a value is made in pieces: an iterator, an array, bytes, or a long list."""
    if type(value) is list:
        return len(value) > _ITEMS
    # A fifth of the time of `isinstance` with `collections.abc.Iterator`.
    return hasattr(value, "__next__") or isinstance(value, np.ndarray | memoryview)


def _has_divided(value: Any) -> bool:
    return any(map(_has_divided, value.values())) if isinstance(value, dict) else _is_divided(value)


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, np.ndarray):
        yield from _of_array(value)
    elif isinstance(value, memoryview):
        yield '"'
        for start in range(0, len(value), _BYTES):
            yield base64.b64encode(value[start : start + _BYTES]).decode()
        yield '"'
    elif type(value) is list and len(value) > _ITEMS:
        yield from _blocks(value, _ITEMS)
    elif _is_divided(value):
        yield "["
        separator = ""
        for item in value:
            if _has_divided(item):
                yield separator
                yield from _pieces(item)
            else:
                yield separator + _text(item)
            separator = ","
        yield "]"
    elif _has_divided(value):
        separator, plain = "{", dict[str, Any]()
        for name, item in value.items():
            if not _has_divided(item):
                plain[name] = item
                continue
            if plain:
                yield separator + _text(plain)[1:-1]
                separator, plain = ",", {}
            yield f"{separator}{_text(name)}:"
            separator = ","
            yield from _pieces(item)
        yield separator + _text(plain)[1:-1] + "}" if plain else "}"
    else:
        yield _text(value)


def _of_array(array: npt.NDArray[Any]) -> Iterator[str]:
    if array.size <= _NUMBERS:
        yield _text_of(array)
        return
    width = array.size // len(array)
    if width <= _NUMBERS:
        yield from _blocks(array, max(1, _NUMBERS // max(width, 1)))
        return
    separator = "["
    for row in array:
        yield separator
        yield from _of_array(row)
        separator = ","
    yield "]"


def _text_of(array: npt.NDArray[Any]) -> str:
    """Return the text of an array: of float32 with the fewest digits that read back as the same float32."""
    return json_of_floats(np.asarray(array, order="C")) if array.dtype == np.float32 else _text(array.tolist())


def _blocks(items: list[Any] | npt.NDArray[Any], size: int) -> Iterator[str]:
    """Yield the text of a list or of the rows of an array, so many items at once."""
    separator = "["
    for start in range(0, len(items), size):
        block = items[start : start + size]
        yield separator + (_text_of(block) if isinstance(block, np.ndarray) else _text(block))[1:-1]
        separator = ","
    yield "]"
