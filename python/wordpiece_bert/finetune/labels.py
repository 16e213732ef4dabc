"""Labels as data has them, checked one by one: class labels, and numbers.

This is the only place that decides what a label is. `FrozenClassifier`, the heads on frozen vectors, the rows of
`wordpiece_bert.finetune.data`, the trainers and the command ``wordpiece-bert finetune`` all ask it, and add where the
label stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.checks import character_problem, finite_or_none, iterates
from wordpiece_bert._internal.texts import is_missing
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import InputError, TrainingWarning

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    #: A function from a value to what is wrong with it as a label; None if nothing is.
    Problem = Callable[[Any], str | None]

_SEVERAL = (
    "a row has one label; for several labels a row, train a model of problem_type='multi_label_classification' on rows "
    "of 0 and 1, and of one-hot rows pass the number of the class, argmax(axis=1)"
)
_KINDS = {bool: "a bool", int: "a number", float: "a number", str: "a str"}
#: The limits of int64.
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
#: The labels in the rows of trainers.
_OF_ROWS = ("label", "labels", "score", "scores", "next_sentence_label", "start_positions", "end_positions")
_INTEGER = re.compile(r"-?[0-9]{1,18}")


def class_problem(value: Any) -> str | None:
    """Return what is wrong with a value as the label of a class; None if nothing is.

    A label is a name, a whole number or a boolean. A whole number may be a float, as scikit-learn has it.

    Parameters
    ----------
    value : object
        The value, of Python, NumPy or a data frame.
    """
    value = _plain(value)
    if problem := _missing(value) or _several(value):
        return problem
    if isinstance(value, str) and (problem := character_problem(value)):
        return f"the label {value!a:.80} {problem}"
    if isinstance(value, bool | str):
        return None
    if isinstance(value, int):
        return None if _LEAST <= value <= _MOST else f"the label {value} does not fit int64: pass it as a str"
    if isinstance(value, float):
        if value.is_integer():
            return None
        return f"the label {value!r} is a fraction, and no class: fit a regression, or pass names as str"
    return f"the label {value!r:.80} is of type {type(value).__name__}: a class is a str, a whole number or a bool"


def number_problem(value: Any) -> str | None:
    """Return what is wrong with a value as the label of a regression; None if nothing is.

    A label is a finite number, or a string of one.

    Parameters
    ----------
    value : object
        The value.
    """
    value = _plain(value)
    if problem := _missing(value) or _several(value):
        return problem
    return None if finite_or_none(value) is not None else f"the label {value!r:.80} is no finite number"


def class_problem_among(names: Iterable[str]) -> Problem:
    """Return a function like `class_problem` that knows labels of these names alone.

    Parameters
    ----------
    names : iterable of str
        The names.
    """
    known = dict.fromkeys(names)

    def problem(value: Any) -> str | None:
        found = class_problem(value)
        if found is None and class_name(value) not in known:
            found = f"the label {class_name(value)!r} is none of {', '.join(known)}"
        return found

    return problem


def tags_problem(value: Any, problem_of: Problem | None = None) -> str | None:
    """Return what is wrong with the labels of a text's words; None if nothing is.

    Parameters
    ----------
    value : object
        A list of labels of classes, or a string of names with spaces between them.
    problem_of : callable, optional
        What finds a wrong label; `class_problem` by default.
    """
    if problem := _missing(_plain(value)):
        return problem
    if not iterates(value):
        return f"a list of labels, or a str of them, is needed, not {type(value).__name__}: {value!r:.80}"
    for word, tag in enumerate(value.split() if isinstance(value, str) else value):
        if problem := (problem_of or class_problem)(tag):
            return f"word {word}: {problem}"
    return None


def class_labels(labels: Any) -> npt.NDArray[Any]:
    """Return the labels of classes as an array that has the type they are given in.

    Parameters
    ----------
    labels : object
        One label for each row: a list, an array, or a column of pandas, Polars or Arrow. The types of scikit-learn's
        ``classes_`` result, but integers and booleans of pandas with their own missing values stay what they are.

    Returns
    -------
    ndarray
        [n], of strings, objects (strings of a data frame), integers, booleans or whole numbers as floats.

    Raises
    ------
    InputError
        A label is missing or no label of a class, or they are of several types; the message has the row.
    """
    if isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "biu":
        return labels  # nothing can be wrong with them
    values = _listed(labels)
    kinds: dict[str, int] = {}
    for row, value in enumerate(values):
        if problem := class_problem(value):
            raise InputError(f"row {row}: {problem}")
        kinds.setdefault(_KINDS.get(type(_plain(value)), "a str"), row)
        if len(kinds) > 1:
            (kind, first), (other, second) = kinds.items()
            raise InputError(
                f"row {second}: the label {values[second]!r:.80} is {other}, but that of row {first}, "
                f"{values[first]!r:.80}, is {kind}: labels must be of one type"
            )
    plain = np.array([_plain(value) for value in values])
    given = np.asarray(labels) if hasattr(labels, "__array__") else plain
    same = given.shape == plain.shape and given.dtype.kind == plain.dtype.kind
    if same or (given.dtype == object and plain.dtype.kind == "U"):
        return given
    return plain


def number_labels(labels: Any) -> npt.NDArray[np.float64]:
    """Return the labels of a regression, float64 [n].

    Parameters
    ----------
    labels : object
        One number for each row, as for `class_labels`.

    Raises
    ------
    InputError
        A label is missing, or no finite number; the message has the row.
    """
    values = _listed(labels)
    for row, value in enumerate(values):
        if problem := number_problem(value):
            raise InputError(f"row {row}: {problem}")
    return np.array([float(_plain(value)) for value in values], np.float64)


def class_name(value: Any) -> str:
    """Return the name of a class: 1 and 1.0 have the name ``"1"``.

    Parameters
    ----------
    value : object
        A label for which `class_problem` is None.
    """
    value = _plain(value)
    return str(int(value)) if isinstance(value, float) else str(value)


def sorted_names(names: Iterable[str]) -> list[str]:
    """Return the names of classes in the order of their ids: whole numbers by value, others by code point.

    Parameters
    ----------
    names : iterable of str
        The names, as often as they occur.
    """
    found = set(names)
    if all(_INTEGER.fullmatch(name) for name in found):
        return sorted(found, key=lambda name: (int(name), name))
    return sorted(found)


def warn_alike(names: Iterable[str]) -> None:
    """Emit a `TrainingWarning` if the names of two classes differ in white space alone.

    Parameters
    ----------
    names : iterable of str
        The names.
    """
    known: dict[str, str] = {}
    for name in names:
        plain = " ".join(name.split())
        if plain in known:
            warn(
                f"the labels {known[plain]!r} and {name!r} differ in white space alone, and are two classes",
                TrainingWarning,
            )
            return
        known[plain] = name


def check_row(row: Any, number: int) -> None:
    """Check that no label of a trainer's row is missing.

    Parameters
    ----------
    row : object
        A row of a data set: a mapping with labels, or anything else, which has none.
    number : int
        Its number.

    Raises
    ------
    InputError
        A label is None, NaN or empty, or one in a list or array of labels is.
    """
    if not isinstance(row, Mapping):
        return
    for name, value in row.items():
        if name not in _OF_ROWS:
            continue
        value = _plain(value)
        if problem := _missing(value):
            raise InputError(f"row {number} of the data set, {name}: {problem}")
        if not isinstance(value, str) and iterates(value):
            parts = np.asarray(value)
            if parts.dtype.kind in "fO":
                for index, part in enumerate(parts.reshape(-1).tolist()):
                    if problem := _missing(part):
                        raise InputError(f"row {number} of the data set, {name}, at {index}: {problem}")


def _missing(value: Any) -> str | None:
    """Return that a plain value stands for none: None, NaN, NaT, pandas' NA, or an empty cell."""
    missing = is_missing(value) or (isinstance(value, str) and not value.strip())
    return f"the label is missing ({value!r})" if missing else None


def _several(value: Any) -> str | None:
    """Return that a plain value is a list or an array instead of one label."""
    if iterates(value) and not isinstance(value, str | bytes):
        return f"the label {value!r:.80} is a {type(value).__name__}: {_SEVERAL}"
    return None


def _plain(value: Any) -> Any:
    """Return a scalar of NumPy, torch or Arrow as Python's own; anything else as it is."""
    if isinstance(value, np.generic) or (getattr(value, "ndim", None) == 0 and hasattr(value, "item")):
        return value.item()
    if hasattr(value, "as_py"):
        return value.as_py()
    return value


def _listed(labels: Any) -> list[Any]:
    """Return labels as a list with one entry for each row, which is not checked."""
    shape = getattr(labels, "shape", None)
    if isinstance(shape, tuple) and len(shape) > 1:
        raise InputError(f"labels have shape {list(shape)}: {_SEVERAL}")
    if isinstance(labels, str | bytes | Mapping | AbstractSet) or not iterates(labels):
        raise InputError(f"labels must be a list, an array or a column, not {type(labels).__name__}")
    if hasattr(labels, "to_pylist"):  # Arrow
        found: list[Any] = labels.to_pylist()
        return found
    return list(labels)
