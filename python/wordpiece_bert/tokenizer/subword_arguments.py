"""Checks of arguments of a `SubwordTokenizer`, which the package ``tokenizers`` takes otherwise or refuses untyped."""

from __future__ import annotations

from typing import Any

from wordpiece_bert._internal.checks import iterates, whole_number
from wordpiece_bert._internal.texts import one_or_many
from wordpiece_bert.errors import InputError

_LARGEST_ID = (1 << 32) - 1


def check_text(name: str, value: object) -> None:
    """Raise an `InputError` if a text is not a str."""
    if not isinstance(value, str):
        raise InputError(f"{name} is {type(value).__name__} {value!r:.80}; a text is a str")


def checked_items(texts: Any, *, split: bool) -> list[Any]:
    """Return a batch as a list of texts and pairs of them, or of lists of words if `split`."""
    items = one_or_many(texts)[1]
    if not split and all(type(item) is str for item in items):
        return items
    for index, item in enumerate(items):
        if isinstance(item, list | tuple):
            if not split and len(item) != 2:
                raise InputError(f"item {index} is {item!r:.80}; a pair has two texts, (text, pair)")
            for place, part in enumerate(item):
                check_text(f"item {index}[{place}]", part)
        elif split or not isinstance(item, str):
            kinds = "a text is a list of words" if split else "a text is a str, or a pair of them: (text, pair)"
            raise InputError(f"item {index} is {type(item).__name__} {item!r:.80}; {kinds}")
    return items


def checked_id(name: str, value: Any) -> int:
    """Return an id as an int."""
    return whole_number(name, value, 0, _LARGEST_ID, meaning="as ids are")


def checked_ids(ids: Any) -> list[int]:
    """Return ids, or a single one, as a list of int."""
    if isinstance(ids, int):
        ids = [ids]
    if isinstance(ids, str | bytes) or not iterates(ids):
        raise InputError(f"ids is {type(ids).__name__} {ids!r:.80}; ids are a list of whole numbers")
    return [checked_id(f"ids[{place}]", value) for place, value in enumerate(ids)]
