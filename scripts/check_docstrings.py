"""Check the docstrings of the public names by the rules of numpydoc, with a list of exceptions that can only shrink.

The names are those of tests/data/public_names.txt, members of classes included. An exception is a line of
scripts/docstring_exceptions.txt, with a rule and a name; one that is not needed any more is a complaint, too.

Usage: ``check_docstrings.py``, or ``check_docstrings.py --write`` after a docstring was completed.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpydoc.validate import get_doc_object, validate

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
LIST = ROOT / "tests" / "data" / "public_names.txt"
EXCEPTIONS = Path(__file__).parent / "docstring_exceptions.txt"
#: No docstring; parameters that are missing, unknown or out of order; no type or no description of a parameter; no
#: section Returns or Yields; a returned value without a description.
RULES = ("GL08", "PR01", "PR02", "PR03", "PR04", "PR07", "RT01", "RT03", "YD01")
#: tests/test_docstrings.py compares those of classes, where the fields of a record may be attributes.
OF_FUNCTIONS = ("PR01", "PR02", "PR03")


def names() -> Iterator[str]:
    """Yield the public names that are functions, classes and methods, as far as their modules can be imported here."""
    for line in LIST.read_text(encoding="utf-8").splitlines():
        found = re.match(r"(?:class )?([\w.]+)(?=[(]|$)", line)
        if found and " is " not in line and "._" not in found[1].replace(".__call__", ""):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # those of other packages
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
        rules = set(RULES) - set(OF_FUNCTIONS if inspect.isclass(value) else ())
        found |= {f"{code} {name}" for code, _ in validate(get_doc_object(value))["errors"] if code in rules}
    return found


def main() -> int:
    """Compare with the list, or write it."""
    found = complaints()
    if "--write" in sys.argv[1:]:
        EXCEPTIONS.write_text("".join(f"{line}\n" for line in sorted(found)), encoding="utf-8")
        return 0
    known = set(EXCEPTIONS.read_text(encoding="utf-8").splitlines())
    for line in sorted(found - known):
        print(f"{line}: complete the docstring")
    # What needs a package that is not installed cannot be checked here.
    fixed = {line for line in known - found if resolved(line.split()[1]) is not None}
    for line in sorted(fixed):
        print(f"{line}: is no exception any more; remove it from {EXCEPTIONS.name}")
    return bool(fixed or found - known)


if __name__ == "__main__":
    sys.exit(main())
