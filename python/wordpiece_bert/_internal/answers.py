"""The results of tasks, of search and of `CrossEncoder.rank`: lists and dicts that show themselves in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from wordpiece_bert._internal.notebook import fields_html, records_html

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


Item = TypeVar("Item")


class Results(list[Item]):
    """A list that shows itself as a table in a notebook.

    It compares equal to a plain list of the same items, and is written as one by `json`.
    """

    def _repr_html_(self) -> str:
        count = f"{len(self):,} result{'s' if len(self) != 1 else ''}"
        return records_html(count, self)


class SearchResults(Results[Item]):
    """`Results` of which `repr` shows the first ones, and of long texts the beginning."""

    def __repr__(self) -> str:
        return _short(self)


#: What `repr` shows of search results: items of a list, and characters of a text.
_ITEMS = 5
_CHARACTERS = 60


def _short(value: object) -> str:
    """Return the `repr` of nested lists and dicts, with what is long shortened."""
    if isinstance(value, list):
        shown = [_short(item) for item in value[:_ITEMS]]
        return f"[{', '.join(shown)}{f', … {len(value) - _ITEMS} more' * (len(value) > _ITEMS)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name!r}: {_short(item)}' for name, item in value.items())}}}"
    if isinstance(value, str) and len(value) > _CHARACTERS:
        return repr(value[:_CHARACTERS] + "…")
    return repr(value)


class Answers(Results[Item]):
    """A list of dicts about one text, which shows itself as a table in a notebook.

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

    Examples
    --------
    >>> from wordpiece_bert.tasks import classify
    >>> found = classify("models/reviews", "A wonderful film!")
    >>> type(found).__name__, [one["label"] for one in found], found.truncated
    ('Answers', ['positive'], False)
    """

    truncated: bool

    def __init__(self, values: Iterable[Item] = (), *, truncated: bool = False) -> None:
        super().__init__(values)
        self.truncated = truncated


class Answer(dict[str, Any]):
    """A dict about one text, which shows itself as a table in a notebook.

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

    Examples
    --------
    >>> from wordpiece_bert.tasks import question_answering
    >>> found = question_answering(
    ...     "models/answers", "Where was he born?", "He was born in London."
    ... )
    >>> type(found).__name__, found["answer"], found.truncated
    ('Answer', 'London', False)
    """

    truncated: bool

    def __init__(self, values: Mapping[str, Any], *, truncated: bool = False) -> None:
        super().__init__(values)
        self.truncated = truncated

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, name: Literal["score"], /) -> float: ...

        @overload
        def __getitem__(self, name: Literal["start", "end", "corpus_id"], /) -> int: ...

        @overload
        def __getitem__(self, name: Literal["answer", "text"], /) -> str: ...

        @overload
        def __getitem__(self, name: str, /) -> Any: ...

        def __getitem__(self, name: str, /) -> Any: ...

    def _repr_html_(self) -> str:
        return fields_html("1 result" + ", of a truncated text" * self.truncated, self)
