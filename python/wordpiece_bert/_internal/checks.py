"""Checks of arguments that calls all over the package share: each returns the value, or raises InputError."""

from __future__ import annotations

import math
import numbers
import operator
import os
from collections.abc import Callable, Iterable
from typing import Any, SupportsIndex, TypeGuard, TypeVar

from wordpiece_bert.errors import InputError

# The largest signed 64-bit integer, which every count and length in the core fits in.
_LARGEST = (1 << 63) - 1

Choice = TypeVar("Choice", bound=str)


def whole_number(
    name: str, value: SupportsIndex, least: int, most: int | None = None, *, meaning: str = "", others: str = ""
) -> int:
    """Check that an argument is a whole number from `least` to `most`.

    Parameters
    ----------
    name : str
        The argument's name, for the message.
    value : int or NumPy integer
        The argument. A bool is refused.
    least, most : int
        The limits, both included; by default the largest is 2⁶³ − 1.
    meaning : str, default ""
        What `most` is, as the message says it: ``"the model's longest row"``.
    others : str, default ""
        Further values the caller accepts, as the message lists them: ``"or None for all"``.

    Returns
    -------
    int
        The value as Python's int.
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    largest = _LARGEST if most is None else most
    if number is None or not least <= number <= largest:
        too_large = number is not None and number > largest
        limits = f", {least} or more" if most is None and not too_large else f" from {least} to {largest}"
        notes = "".join(f", {note}" for note in (meaning, others) if note)
        raise InputError(f"{name} must be a whole number{limits}{notes}, not {value!r}")
    return int(number)


def thread_count(value: int | None) -> int | None:
    """Check that an argument `threads` is a whole number from 1 to 1024, or None for the default."""
    return value if value is None else whole_number("threads", value, 1, 1024, others="or None for the default")


def real_number(value: object) -> float:
    """Return a number as a float, infinite if it is too large for one; NaN for a bool or another object."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]


def finite_number(
    name: str, value: object, *, least: float = -math.inf, above: float = -math.inf, below: float = math.inf
) -> float:
    """Check that an argument is a finite number, at least `least`, above `above` and below `below`; return a float."""
    number = real_number(value)
    if math.isfinite(number) and number >= least and above < number < below:
        return number
    limits = [f"of at least {least:g}"] if least > -math.inf else []
    limits += [f"above {above:g}"] if above > -math.inf else []
    limits += [f"below {below:g}"] if below < math.inf else []
    raise InputError(f"{name} must be a finite number{' ' if limits else ''}{' and '.join(limits)}, not {value!r}")


def finite_or_none(value: Any) -> float | None:
    """Return a number, or a string of one, as a float; None for what is not a number, NaN and infinity."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def checked_flag(name: str, value: object, *, or_none: bool = False) -> bool:
    """Check that an argument is True or False, or NumPy's; with `or_none` the message has None as a third choice."""
    if isinstance(value, bool):
        return value
    if type(value).__module__ == "numpy" and type(value).__name__ in ("bool", "bool_"):  # its name before NumPy 2
        return bool(value)
    raise InputError(f"{name} must be True or False{', or None' * or_none}, not {value!r}")


def check_flags(**flags: object) -> None:
    """Check arguments by name, each as `checked_flag` does."""
    for name, value in flags.items():
        checked_flag(name, value)


def shows_progress(show_progress_bar: object) -> bool:
    """Check the argument `show_progress_bar`: True, False, or None for False."""
    return show_progress_bar is not None and checked_flag("show_progress_bar", show_progress_bar, or_none=True)


def checked_probability(name: str, value: object) -> float:
    """Check that an argument is a number from 0 to 1; return it as Python's float."""
    number = real_number(value)
    if 0 <= number <= 1:
        return number
    raise InputError(f"{name} must be between 0 and 1, not {value!r}")


def check_instance(name: str, value: object, kind: type, what: str = "") -> None:
    """Check that an argument is an object of a class; `what` says in other words than its name what is needed."""
    if not (iterates(value) if kind is Iterable else isinstance(value, kind)):
        raise InputError(f"{name} must be {what or f'a {kind.__name__}'}, not {type(value).__name__}: {value!r:.80}")


def check_path(name: str, value: object) -> None:
    """Check that an argument is the path of a file or a folder."""
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{name} must be a path, not {type(value).__name__}: {value!r:.80}")


def check_function(name: str, value: object, what: str) -> None:
    """Check that an argument can be called; `what` says of what it is a function."""
    if not callable(value):
        raise InputError(f"{name} must be a function of {what}, not {type(value).__name__}: {value!r:.80}")


def check_ids(name: str, ids: Iterable[object]) -> None:
    """Check that ids can be found again: that they are hashable."""
    for one in ids:
        try:
            hash(one)
        except TypeError:
            raise InputError(
                f"{name} has the id {one!r:.80}: an id must be hashable, such as a str or an int"
            ) from None


def checked_choice(name: str, value: object, choices: tuple[Choice, ...], others: str = "") -> Choice:
    """Check that an argument is one of some strings.

    Parameters
    ----------
    name : str
        The argument's name, for the message.
    value : object
        The argument.
    choices : tuple of str
        What it may be.
    others : str, default ""
        Further values the caller accepts, as the message lists them: ``"True, False, None, "``.
    """
    for choice in choices:
        if isinstance(value, str) and value == choice:
            return choice
    raise InputError(f"{name} must be one of {others}{', '.join(map(repr, choices))}, not {value!r}")


def iterates(value: object) -> TypeGuard[Iterable[Any]]:
    """Return whether a value can be iterated; an array or a tensor of no dimensions has the method, and cannot."""
    return isinstance(value, Iterable) and getattr(value, "ndim", None) != 0


def check_several(name: str, value: object, what: str = "a list", *, or_none: bool = False) -> None:
    """Raise an `InputError` if an argument for several things is a single one: a str is not a list of letters."""
    if value is None and or_none:
        return
    if isinstance(value, str | bytes):
        raise InputError(f"{name} must be {what}, not the single str {value!r:.80}: put it into a list")
    if not iterates(value):
        raise InputError(f"{name} must be {what}, not {type(value).__name__} {value!r:.80}")


def checked_strings(name: str, value: object, count: int | None = None) -> list[str]:
    """Check that an argument is an iterable of str, and not a single str or bytes; return it as a list.

    Parameters
    ----------
    name : str
        The argument's name, for the message.
    value : object
        The argument.
    count : int, optional
        How many are needed; any number by default.
    """
    if iterates(value) and not isinstance(value, str | bytes):
        listed = list(value)
        if all(isinstance(item, str) for item in listed) and count in (None, len(listed)):
            _check_characters(name, listed)
            return listed
        if wrong := next(((i, item) for i, item in enumerate(listed) if not isinstance(item, str)), None):
            raise InputError(f"{name}[{wrong[0]}] must be a str, not {type(wrong[1]).__name__}: {wrong[1]!r:.80}")
    advice = f": for one, pass [{value!r:.80}]" if isinstance(value, str) and count is None else ""
    many = "" if count is None else f"{count} "
    raise InputError(f"{name} must be a list of {many}str, not {value!r:.200}{advice}")


def _check_characters(name: str, texts: list[str]) -> None:
    """Refuse a str with surrogates, which the core does not take: a file name or option that was not UTF-8 has them."""
    for i, text in enumerate(texts):
        if not text.isascii() and (problem := character_problem(text)):
            raise InputError(f"{name}[{i}] {problem}")


def character_problem(text: str, encode: Callable[[str], bytes] = str.encode) -> str:
    """Return what is wrong with the characters of a str that `encode` must take; an empty str if nothing is."""
    try:
        encode(text)
        # NumPy makes a str of any numbers. Their bytes are invalid, or the bytes of another character.
        if text.isascii() or text.encode(errors="surrogatepass").decode(errors="surrogatepass") == text:
            return ""
    except UnicodeEncodeError as e:
        return f"has a lone surrogate, {text[e.start]!r}, at position {e.start}"
    except UnicodeDecodeError:
        pass
    numbers = memoryview(text.encode("utf-32", "surrogatepass")).cast("I")[1:]  # the first is a byte order mark
    at, number = next((at, number) for at, number in enumerate(numbers) if number > 0x10FFFF)
    return f"has the number {number:#x} at position {at}, which is not a character"


def checked_path(path: str | os.PathLike[str]) -> str:
    """Check that a path can name a file, whether there is one or not; return it as a str."""
    text = os.fsdecode(path)
    problem = "has a null character" if "\0" in text else character_problem(text, os.fsencode)
    if problem:
        raise InputError(f"the path {text!a:.80} {problem}: no file can have this name")
    return text


def check_device(device: object) -> None:
    """Check that a `device` argument is None or names the CPU."""
    if device is not None and str(device) != "cpu":
        raise InputError(f"device must be 'cpu' or None, not {device!r}: this package computes on the CPU only")
