"""The results of tasks and of `CrossEncoder.rank`: plain lists and dicts that also record truncation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Answer", "Answers"]


class Answers(list[Any]):
    """A list of dicts about one text.

    It compares equal to a plain list of the same dicts, and is written as one by `json`.

    Parameters
    ----------
    values : iterable of dict
        The dicts.
    truncated : bool, default False
        Whether the text was truncated.

    Attributes
    ----------
    truncated : bool
        Whether the text was longer than the model accepts, and was truncated.
    """

    truncated: bool

    def __init__(self, values: Iterable[Any] = (), *, truncated: bool = False) -> None:
        super().__init__(values)
        self.truncated = truncated


class Answer(dict[str, Any]):
    """A dict about one text.

    It compares equal to a plain dict of the same items, and is written as one by `json`.

    Parameters
    ----------
    values : mapping
        The items.
    truncated : bool, default False
        Whether the text was truncated.

    Attributes
    ----------
    truncated : bool
        Whether the text was longer than the model accepts, and was truncated.
    """

    truncated: bool

    def __init__(self, values: Mapping[str, Any], *, truncated: bool = False) -> None:
        super().__init__(values)
        self.truncated = truncated
