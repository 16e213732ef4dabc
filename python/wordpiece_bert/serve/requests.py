"""The bodies of requests: JSON objects whose fields are checked one by one."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from wordpiece_bert.serve.errors import RequestError

__all__ = ["Fields", "parse_object"]

# Strings, lists and objects that a body may have: at least so many, and for each text some, since documents may be
# objects with fields of their own. Each takes about 100 bytes.
_VALUES = 1 << 16
_VALUES_PER_TEXT = 16

# All of a JSON text up to a lone surrogate, if there is one: half of a pair such as \\ud83e\\udd17.
_UPTO_LONE_SURROGATE = re.compile(
    r"(?:[^\\]++|\\(?:[^u]|u(?:(?![dD][89a-fA-F])|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F])))*+(?=\\u)"
)


def parse_object(body: bytes, max_items: int) -> dict[str, Any]:
    """Return the JSON object of a body.

    Parameters
    ----------
    body : bytes
        The body.
    max_items : int
        The most texts that a request may have. A body with far more strings, lists and objects is refused before it is
        parsed, since they would take 30 times its size.

    Raises
    ------
    RequestError
        With status 400: the body is no JSON object in UTF-8, has a lone surrogate, or has too many values.
    """
    most = max(_VALUES, _VALUES_PER_TEXT * max_items)
    if _has_more_values(body, most):
        message = f"the body has more than {most} strings, lists and objects; a request may have {max_items} texts"
        raise RequestError(400, message, code="too_many_items")
    try:
        text = body.decode("utf-8-sig")
        value = json.loads(text)
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


def _has_more_values(body: bytes, most: int) -> bool:
    """Whether a body has more strings, lists and objects than a number."""
    brackets = body.count(b"[") + body.count(b"{")
    if brackets + body.count(b'"') // 2 <= most:
        return False
    # Without the escaped quotes, each quote begins or ends a string.
    plain = np.frombuffer(body.replace(b"\\\\", b"").replace(b'\\"', b""), np.uint8)
    quotes = plain == ord('"')
    if int(np.count_nonzero(quotes)) // 2 > most:
        return True
    inside = np.cumsum(quotes.view(np.uint8), dtype=np.uint8)  # the lowest bit is 1 in strings
    outside = plain[inside & 1 == 0]
    return int(np.count_nonzero((outside == ord("[")) | (outside == ord("{")))) + int(quotes.sum()) // 2 > most


class Fields:
    """The fields of a request, each checked when it is read.

    Parameters
    ----------
    values : dict
        The JSON object.
    known : str
        The names of all fields that the endpoint knows; another one is refused.
    """

    def __init__(self, values: dict[str, Any], *known: str) -> None:
        self._values = values
        unknown = values.keys() - set(known)
        if unknown:
            name = min(unknown)
            message = f"unknown field {name!r:.100}; the fields are {', '.join(known)}"
            raise RequestError(400, message, param=f"{name:.100}", code="unknown_field")

    def text(self, name: str) -> str:
        """Return a field that must be a text."""
        value = self._values.get(name)
        if not isinstance(value, str):
            raise RequestError(400, f"{name} must be a string, not {_kind(value)}", param=name)
        return value

    def optional_text(self, name: str) -> str | None:
        """Return a field that may be a text, or missing."""
        return None if self._values.get(name) is None else self.text(name)

    def texts(self, name: str, most: int, *, objects: bool = False) -> list[str]:
        """Return a field that must be a text or a list of texts, not more than `most`.

        With `objects`, a text may be ``{"text": ...}``.
        """
        value = self._values.get(name)
        if isinstance(value, str):
            return [value]
        if not isinstance(value, list):
            raise RequestError(400, f"{name} must be a string or a list of strings, not {_kind(value)}", param=name)
        if not value:
            raise RequestError(400, f"{name} must not be empty", param=name)
        if len(value) > most:
            message = f"{name} has {len(value)} items, more than the server's limit of {most}"
            raise RequestError(400, message, param=name, code="too_many_items")
        if objects:
            value = [item.get("text") if isinstance(item, dict) else item for item in value]
        for index, item in enumerate(value):
            if isinstance(item, int | list):
                message = (
                    f"{name}[{index}] is {_kind(item)}: token ids of another tokenizer would get wrong vectors; send "
                    "texts (OpenAIEmbeddings of LangChain: check_embedding_ctx_length=False)"
                )
                raise RequestError(400, message, param=name, code="token_ids")
            if not isinstance(item, str):
                raise RequestError(400, f"{name}[{index}] must be a string, not {_kind(item)}", param=name)
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a field that may be true, false or missing."""
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise RequestError(400, f"{name} must be true or false, not {_kind(value)}", param=name)
        return value

    def whole(self, name: str, least: int) -> int | None:
        """Return a field that may be a whole number, or missing."""
        value = self._values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise RequestError(400, f"{name} must be a whole number, {least} or more", param=name)
        return value

    def choice(self, name: str, *choices: str) -> str:
        """Return a field that must be one of some texts; the first if it is missing."""
        value = self._values.get(name)
        if value is None:
            return choices[0]
        if value not in choices:
            raise RequestError(400, f"{name} must be one of {', '.join(choices)}", param=name)
        return str(value)

    def truncate(self, *, default: bool) -> bool:
        """Return whether texts may be truncated: true or "END", false or "NONE", or the server's default."""
        value = self._values.get("truncate")
        if isinstance(value, str) and value in ("END", "NONE"):
            return value == "END"
        if value is None or isinstance(value, bool):
            return default if value is None else value
        raise RequestError(400, 'truncate must be true, false, "END" or "NONE"', param="truncate")


def _kind(value: object) -> str:
    """Return the type of a JSON value in words."""
    if value is None:
        return "missing or null"
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)
