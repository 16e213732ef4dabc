"""Texts as arguments of models: one or many, checked, with a warning when they are truncated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import check_several, iterates
from wordpiece_bert._internal.lazy import numpy as np
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import InputError, TruncationWarning

if TYPE_CHECKING:
    import numpy.typing as npt


def one_or_many(texts: Any, *kinds: type, name: str = "texts") -> tuple[bool, list[Any]]:
    """Return whether an argument is a single item, and the items as a list.

    Parameters
    ----------
    texts
        An item, an iterable of items, or a column of strings (Arrow or NumPy).
    kinds
        The types of a single item. Without str among them, a str is refused: it is not a list of letters.
    name
        The name of the argument, for messages.

    Returns
    -------
    bool
        Whether it is a single item.
    list
        The items, which are not checked.

    Raises
    ------
    InputError
        It is neither an item nor an ordered collection of items.
    """
    if isinstance(texts, kinds):
        return True, [texts]
    if type(texts).__name__ == "LazyFrame":  # of polars; it raises errors of its own when it is iterated
        raise InputError(f"{name} is a LazyFrame, whose rows are not computed yet: pass {name}.collect()")
    column = _core._column_texts(texts)
    if column is not None:
        return False, column
    if isinstance(texts, str):
        check_several(name, texts)
    if not iterates(texts) or isinstance(texts, bytes | bytearray | Mapping | AbstractSet):
        raise InputError(f"{name} must be a str, a list of str or a column of strings, not {type(texts).__name__}")
    return False, list(texts)


def is_missing(value: Any) -> bool:
    """Return whether a value stands for none: None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    if isinstance(value, str | list | tuple | dict) or bool(getattr(value, "ndim", 0)):
        return False
    try:
        return bool(value != value)  # NaN and NaT are not equal to themselves
    except (TypeError, ValueError, ArithmeticError):
        return type(value).__name__ == "NAType"  # pandas' NA compares to itself


def text_problem(value: Any) -> str | None:
    """Return what is wrong with a value as a text, or None: only a str is one, also an empty one."""
    if isinstance(value, str):
        return None
    if is_missing(value):
        return f"the text is missing ({value!r})"
    return f"the text must be a str, not {type(value).__name__}: {value!r:.80}"


def texts_problem(value: Any) -> str | None:
    """Return what is wrong with a value as a list of texts, or None; a str is not a list of letters."""
    if isinstance(value, list | tuple):
        problems = ((place, text_problem(one)) for place, one in enumerate(value))
        return next((f"at {place}: {problem}" for place, problem in problems if problem), None)
    return f"the value is missing ({value!r})" if is_missing(value) else f"a list of str is needed, not {value!r:.80}"


def words_problem(value: Any) -> str | None:
    """Return what is wrong with a value as the words of a text, a str or a list of str, or None."""
    return None if isinstance(value, str) else texts_problem(value)


def row_texts(name: str, values: object) -> list[str]:
    """Return a column of texts as a list; an `InputError` with the row if one is not a str."""
    items = one_or_many(values, name=name)[1]
    for row, item in enumerate(items):
        if problem := text_problem(item):
            raise InputError(f"row {row}, {name}: {problem}")
    return items


def check_texts(texts: object) -> tuple[bool, list[str]]:
    """Return whether an argument is a single text, and the texts as a list; an `InputError` if one is not a str."""
    single, items = one_or_many(texts, str)
    for index, item in enumerate(items):
        if not isinstance(item, str):
            raise InputError(f"texts[{index}] must be a str, not {type(item).__name__}: {item!r}")
    return single, items


def check_tokens(
    texts: Sequence[object], lengths: npt.NDArray[np.integer], samples: npt.NDArray[np.integer] | None = None
) -> None:
    """Raise an `InputError` if a row has no token, which no model can run.

    Parameters
    ----------
    texts
        The texts, for the message.
    lengths
        The number of tokens of each row, [rows].
    samples
        The text of each row, [rows]; by default row i is text i.
    """
    if np.count_nonzero(lengths) < len(lengths):
        row = int(np.argmin(lengths))
        index = row if samples is None else int(samples[row])
        raise InputError(f"texts[{index}] is {texts[index]!r}: it has no token at all, and the tokenizer adds none")


def warn_file_truncated(truncated: npt.NDArray[np.bool_], truncation: Mapping[str, object] | None) -> None:
    """Emit a `TruncationWarning` if a truncation that the call did not ask for cut any text.

    Parameters
    ----------
    truncated
        Whether each text was cut, [texts].
    truncation
        The truncation of the tokenizer's file.
    """
    count = int(truncated.sum())
    if count and truncation is not None:
        first = f"index {int(truncated.argmax())}"
        warn_cut_by_file(count, len(truncated), first, truncation)


def warn_cut_by_file(count: int, texts: int, first: str, truncation: Mapping[str, object]) -> None:
    """Emit the `TruncationWarning` of `warn_file_truncated`, given the number of texts cut and where the first is."""
    message = (
        f"{count} of {texts} texts were cut at {truncation['max_length']} tokens, the first at {first}, by the "
        "truncation that the tokenizer's file sets; pass truncation=True to keep it, truncation=False to cut nothing, "
        "or use tokenizer.with_truncation(None)"
    )
    warn(message, TruncationWarning)


def warn_truncated(
    truncated: npt.NDArray[np.bool_],
    max_length: int,
    what: str = "texts",
    remedy: str = "return_truncated=True returns which",
) -> None:
    """Emit a `TruncationWarning` if any text was truncated, with their number and the index of the first.

    Parameters
    ----------
    truncated
        Whether each text was truncated, [texts].
    max_length
        The longest row in tokens.
    what, remedy
        What the message calls the texts, and how it says to find the others.
    """
    count = int(truncated.sum())
    if count:
        first = int(truncated.argmax())
        message = (
            f"{count} of {len(truncated)} {what} were truncated to {max_length} tokens, "
            f"the first at index {first}; {remedy}"
        )
        warn(message, TruncationWarning)
