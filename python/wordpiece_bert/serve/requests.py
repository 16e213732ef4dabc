"""The bodies of requests: JSON objects, parsed within limits, packed or not."""

from __future__ import annotations

import json
import math
import re
import zlib
from collections import Counter
from typing import Any

import numpy as np

from wordpiece_bert.serve.errors import RequestError

# Strings, lists and objects that a body may have: at least so many, and for each text some, since documents may be
# objects with fields of their own. Each takes about 100 bytes.
_VALUES = 1 << 16
_VALUES_PER_TEXT = 16

# Bytes of a packed body that are unpacked at once, at the start of each of its members; then twice as many each time.
_PACKED_BYTES = 256
# Members that a packed body may have; most have one, and each takes microseconds even if it is empty.
_MEMBERS = 4096

# All of a JSON text up to a lone surrogate, if there is one: half of a pair such as \\ud83e\\udd17.
_UPTO_LONE_SURROGATE = re.compile(
    r"(?:[^\\]++|\\(?:[^u]|u(?:(?![dD][89a-fA-F])|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F])))*+(?=\\u)"
)


def _no_number(_: str) -> None:
    """Refuse NaN and the infinities, which are not JSON."""
    raise ValueError


def _finite(text: str) -> float:
    """Return a number; refuse one that is too large for a float, which could not be sent back."""
    number = float(text)
    if math.isinf(number):
        raise RequestError(400, f"the body has the number {text:.50}, too large for a float", code="invalid_json")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; refuse a key that it has twice, of which readers differ in the value that counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        message = f"the body has an object with the key {twice!r:.100} twice: send it once"
        raise RequestError(400, message, param=twice[:100], code="invalid_json")
    return found


# `json.loads` with these options makes a decoder for each call, which takes as long as a small body.
_decode = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite, object_pairs_hook=_object).decode


def parse_object(body: bytes, max_items: int, max_numbers: int = 1 << 17) -> dict[str, Any]:
    """Return the JSON object of a body.

    Parameters
    ----------
    body : bytes
        The body.
    max_items : int
        The most texts that a request may have. A body with far more strings, lists and objects is refused before it is
        parsed, since they would take 30 times its size.
    max_numbers : int, default 131072
        The most numbers, such as token ids, that it may have besides; parsing millions takes half a second.

    Raises
    ------
    RequestError
        With status 400: the body is not a JSON object in UTF-8, has a lone surrogate, a key twice, or too many values.
    """
    most = max(_VALUES, _VALUES_PER_TEXT * max_items)
    if _has_more_values(body, most, most + max_numbers):
        message = (
            f"the body has more than {most} strings, lists and objects, or {most + max_numbers} values in all; a "
            f"request may have {max_items} texts"
        )
        raise RequestError(400, message, code="too_many_items")
    try:
        text = body.decode("utf-8-sig")
        value = _decode(text)
    except (ValueError, RecursionError) as cause:
        # Not the parser's own message, which can quote the body.
        where = f" (at character {cause.pos})" if isinstance(cause, json.JSONDecodeError) else ""
        where = ": it is not UTF-8" if isinstance(cause, UnicodeDecodeError) else where
        raise RequestError(400, f"the body is not valid JSON{where}", code="invalid_json") from None
    if "\\u" in text and (lone := _UPTO_LONE_SURROGATE.match(text)):
        message = f"the body has a lone surrogate (at character {lone.end()}): half of a pair, which is no character"
        raise RequestError(400, message, code="invalid_json")
    if not isinstance(value, dict):
        raise RequestError(400, "the body must be a JSON object", code="invalid_json")
    return value


def _has_more_values(body: bytes, most: int, most_commas: int) -> bool:
    """Whether a body has more strings, lists and objects than a number, or more commas between values."""
    brackets = body.count(b"[") + body.count(b"{")
    if brackets + body.count(b'"') // 2 <= most and body.count(b",") <= most_commas:
        return False
    # Without the escaped quotes, each quote begins or ends a string.
    plain = np.frombuffer(body.replace(b"\\\\", b"").replace(b'\\"', b""), np.uint8)
    quotes = plain == ord('"')
    if int(np.count_nonzero(quotes)) // 2 > most:
        return True
    inside = np.cumsum(quotes.view(np.uint8), dtype=np.uint8)  # the lowest bit is 1 in strings
    outside = plain[inside & 1 == 0]
    brackets = int(np.count_nonzero((outside == ord("[")) | (outside == ord("{"))))
    commas = int(np.count_nonzero(outside == ord(",")))
    return brackets + int(quotes.sum()) // 2 > most or commas > most_commas


def unpacked(body: bytes, most: int) -> bytes:
    """Return what a body in gzip's format has, of at most so many bytes.

    Raises
    ------
    RequestError
        With status 413: it has more. With status 400: it is not in the format, ends early, or has too many members.
    """
    parts: list[bytes] = []
    left = most + 1
    rest, members = memoryview(body), 0
    try:
        while rest:
            members += 1
            if members > _MEMBERS:
                raise RequestError(400, f"the body has more than {_MEMBERS} members of gzip", code="invalid_gzip")
            member = zlib.decompressobj(wbits=31)
            # What follows a member is copied when it ends: at most as much as the member has, or a small piece.
            size = _PACKED_BYTES
            while not member.eof:
                if not rest:
                    raise RequestError(400, "the body ends before its gzip data do", code="invalid_gzip")
                part = member.decompress(rest[:size], left)
                rest = rest[min(size, len(rest)) - len(member.unused_data) :]
                if part:
                    parts.append(part)
                    left -= len(part)
                    if left <= 0:
                        raise RequestError(413, f"the unpacked body is larger than the server's limit of {most} bytes")
                size *= 2
    except zlib.error:
        raise RequestError(400, "the body is not in the format of gzip", code="invalid_gzip") from None
    return b"".join(parts)
