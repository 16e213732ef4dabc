"""What tasks give: lists and dicts as people know them, which also tell whether the text was cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Answer", "Answers"]


class Answers(list[Any]):
    """A list of dicts about one text, with what happened to the text.

    It compares equal to a plain list of the same dicts.

    Attributes
    ----------
    truncated : bool
        Whether the text was longer than the model takes, and was cut.
    """

    truncated: bool

    def __init__(self, values: Iterable[Any] = (), *, truncated: bool = False) -> None:
        super().__init__(values)
        self.truncated = truncated


class Answer(dict[str, Any]):
    """A dict about one text, as `Answers` is a list.

    Attributes
    ----------
    truncated : bool
        Whether the text was longer than the model takes, and was cut.
    """

    truncated: bool

    def __init__(self, values: Mapping[str, Any], *, truncated: bool = False) -> None:
        super().__init__(values)
        self.truncated = truncated
