"""Answers as JSON, piece by piece: a large one does not hold up the event loop, and exists once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from time import perf_counter
from typing import Any

__all__ = ["encoded"]

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


def _has_iterator(value: dict[str, Any]) -> bool:
    return any(
        isinstance(item, Iterator) or (isinstance(item, dict) and _has_iterator(item)) for item in value.values()
    )


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, Iterator):
        yield "["
        for number, item in enumerate(value):
            if number:
                yield ","
            yield from _pieces(item)
        yield "]"
    elif isinstance(value, dict) and _has_iterator(value):
        yield "{"
        for number, (name, item) in enumerate(value.items()):
            yield f"{',' if number else ''}{json.dumps(name)}:"
            yield from _pieces(item)
        yield "}"
    else:
        # NaN is not a number in JSON, and the client could not read it.
        yield json.dumps(value, separators=(",", ":"), allow_nan=False)
