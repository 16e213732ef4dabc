"""Answers as JSON, piece by piece: a large one does not hold up the event loop, and exists once."""

from __future__ import annotations

import asyncio
import json
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["encoded"]

# NaN is not a number in JSON, and the client could not read it.
_text = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode

# Seconds after which other requests may go on.
_TURN = 0.01


async def encoded(value: Any) -> bytes:
    """Return a value as JSON, and let other requests go on meanwhile.

    Parameters
    ----------
    value
        What `json.dumps` takes; also an iterator, alone or in dicts, which becomes a list whose items are made one by
        one.
    """
    buffer = bytearray()
    due = perf_counter() + _TURN
    for piece in _pieces(value):
        buffer += piece.encode()
        if perf_counter() > due:
            await asyncio.sleep(0)
            due = perf_counter() + _TURN
    return bytes(buffer)


def _is_iterator(value: Any) -> bool:
    # A fifth of the time of `isinstance` with `collections.abc.Iterator`.
    return hasattr(value, "__next__")


def _has_iterator(value: Any) -> bool:
    return any(map(_has_iterator, value.values())) if isinstance(value, dict) else _is_iterator(value)


def _pieces(value: Any) -> Iterator[str]:
    if _is_iterator(value):
        yield "["
        separator = ""
        for item in value:
            if _has_iterator(item):
                yield separator
                yield from _pieces(item)
            else:
                yield separator + _text(item)
            separator = ","
        yield "]"
    elif _has_iterator(value):
        separator, plain = "{", dict[str, Any]()
        for name, item in value.items():
            if not _has_iterator(item):
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
