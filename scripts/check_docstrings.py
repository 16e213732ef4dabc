"""Check the docstrings of the public names by the rules of numpydoc, without an exception.

The names are listed in tests/data/public_names.txt, members of classes included.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import textwrap
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpydoc.validate import get_doc_object, validate

from wordpiece_bert import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
LIST = ROOT / "tests" / "data" / "public_names.txt"
#: No docstring; parameters that are missing, unknown or out of order; no type or no description of a parameter; no
#: section Returns or Yields; a returned value without a description; no example.
RULES = ("GL08", "PR01", "PR02", "PR03", "PR04", "PR07", "RT01", "RT03", "YD01", "EX01")
#: An error that a function raises itself is not in its section Raises.
RAISES = "RS01"
#: tests/test_docstrings.py compares the names of classes, where the fields of a record may be attributes.
OF_FUNCTIONS = ("PR01", "PR02", "PR03")
#: Formulas of one array, which their first line states.
FORMULAS = "wordpiece_bert.bert.functional."
#: Errors that need no words: protocols of Python, and methods that a class leaves to those that derive from it.
UNDERSTOOD = {"AttributeError", "NotImplementedError", "StopIteration"}


def names() -> Iterator[str]:
    """Yield the public names that are functions, classes and methods, as far as their modules can be imported here."""
    for line in LIST.read_text(encoding="utf-8").splitlines():
        found = re.match(r"(?:class )?([\w.]+)(?=[(]|$)", line)
        if found and " is " not in line and "._" not in found[1].replace(".__call__", ""):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # warnings of other packages
                value = resolved(found[1])
            if inspect.isroutine(value) or inspect.isclass(value):
                yield found[1]


def resolved(name: str) -> Any:
    """Return the object of a name, or None if its module needs a package that is not installed."""
    parts = name.split(".")
    value: Any = importlib.import_module(parts[0])
    for depth, part in enumerate(parts[1:], 2):
        if not hasattr(value, part):
            try:
                importlib.import_module(".".join(parts[:depth]))
            except ImportError:
                return None
        value = getattr(value, part, None)
    return value


def complaints() -> set[str]:
    """Return a rule and a name for each rule that a docstring breaks."""
    found = set()
    for name in names():
        value = resolved(name)
        is_class = inspect.isclass(value)
        value = getattr(value, "__func__", value)  # numpydoc takes a bound method of a class for no function
        rules = set(RULES) - set(OF_FUNCTIONS if is_class else ())
        if name.startswith(FORMULAS) and not is_class and len(inspect.signature(value).parameters) == 1:
            rules -= {"PR01", "RT01"}
        if "\nYields\n---" in (inspect.getdoc(value) or ""):
            rules -= {"RT01"}
        if (is_class and issubclass(value, Exception)) or is_shown_by_class(name):
            rules -= {"EX01"}
        codes = {code for code, _ in validate(get_doc_object(value))["errors"]} & rules
        if inspect.isfunction(value) and raised(value) - documented_errors(value):
            codes.add(RAISES)
        found |= {f"{code} {name}" for code in codes}
    return found


def is_shown_by_class(name: str) -> bool:
    """Return whether the examples of its class call a method; ``__call__``, whether they call an object of it."""
    owner, _, method = name.rpartition(".")
    cls = resolved(owner)
    examples = (inspect.getdoc(cls) or "").partition("\nExamples\n--------\n")[2]
    if method == "__call__":
        made = re.findall(rf"^>>> (\w+) = \w*{owner.rpartition('.')[2]}\b", examples, re.MULTILINE)
        return any(re.search(rf"(?<!\.)\b{one}\(", examples) for one in made)
    return inspect.isclass(cls) and re.search(rf"\.{method}\(", examples) is not None


def raised(function: Any) -> set[str]:
    """Return the names of the errors that the statements of a function raise."""
    function = inspect.unwrap(function)
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            found |= {error.id} if isinstance(error, ast.Name) and error.id[0].isupper() else set()
    return found - UNDERSTOOD


def documented_errors(function: Any) -> set[str]:
    """Return the errors in the section Raises of a docstring, with the public errors that derive from them."""
    named = {name.strip() for entry in get_doc_object(function)["Raises"] for name in entry.type.split(",")}
    classes = [cls for cls in vars(errors).values() if inspect.isclass(cls)]
    return named | {cls.__name__ for cls in classes for base in cls.__mro__ if base.__name__ in named}


def main() -> int:
    """Print what is to be completed."""
    found = complaints()
    for line in sorted(found):
        print(f"{line}: complete the docstring")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
