"""Write the list of the package's public names with their signatures, tests/data/public_names.txt.

The list has the names that the pages in ``docs/reference/`` list. A function is a line with its parameters and
their defaults. A class is a line with its bases, its own attributes on the next, and a line for each of its methods.
What a class inherits is listed with it, unless several public classes share the base: then it stands once, at the base.
A module that needs a package which is not installed keeps the lines that it has. Classes that derive from classes of a
framework are left out: what they have depends on its version.

The tests compare the list with the package, so that no public name changes unseen.

Usage: ``public_names.py``, or ``public_names.py --check`` to compare only, in the root of the repository.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import warnings
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
LIST = ROOT / "tests" / "data" / "public_names.txt"
PACKAGE = "wordpiece_bert"
#: Integrations whose classes derive from classes of a framework, on which their members depend.
DERIVED = ("bertopic", "chroma", "haystack", "keybert", "lancedb", "langchain", "llama_index")


def public_names() -> tuple[dict[str, Any], list[str]]:
    """Return the public objects by name, and the modules that need a package which is not installed."""
    from wordpiece_bert.errors import MissingPackageError

    pages = sorted((ROOT / "docs" / "reference").glob("*.rst"))
    reference = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    found: dict[str, Any] = {}
    missing = []
    modules = re.findall(rf"^\.\. currentmodule:: ({PACKAGE}[\w.]*)$", reference, re.MULTILINE)
    # A name is described where it is defined: integrations come last.
    for name in sorted(modules, key=lambda name: (".integrations" in name, name)):
        if name.removeprefix(f"{PACKAGE}.integrations.") in DERIVED:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # warnings of other packages
                module = importlib.import_module(name)
        except MissingPackageError:
            missing.append(name)
        else:
            found |= {f"{name}.{attribute}": getattr(module, attribute) for attribute in sorted(module.__all__)}
    return found, missing


def listed(names: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the list."""
    classes = {value for value in names.values() if inspect.isclass(value) and not issubclass(value, Exception)}
    uses = Counter(base for cls in classes for base in _bases(cls))
    shared = {base for base, count in uses.items() if count > 1 and base not in classes}
    first: dict[int, str] = {}
    for name, value in names.items():
        if isinstance(value, ModuleType):
            yield name
        elif (inspect.isclass(value) or inspect.isroutine(value)) and id(value) in first:
            yield f"{name} is {first[id(value)]}"
        elif not inspect.isclass(value):
            yield name + (_signature(value) if inspect.isroutine(value) else "")
        elif value in classes:
            yield from _class(name, value, [base for base in _bases(value) if base not in shared | classes - {value}])
        else:
            yield f"{name}({', '.join(base.__name__ for base in value.__bases__)})"
        first.setdefault(id(value), name)
    for base in sorted(shared, key=lambda base: (base.__module__, base.__qualname__)):
        yield from _class(f"{base.__module__}.{base.__qualname__}", base, [base])


def _bases(cls: type) -> list[type]:
    """Return a class and those that it derives from, as far as they are of this package."""
    return [base for base in cls.__mro__ if base.__module__.partition(".")[0] == PACKAGE]


def _class(name: str, cls: type, parts: list[type]) -> Iterator[str]:
    """Yield the lines of a class, with the members that some of its bases define."""
    derives = [base.__name__ for base in cls.__bases__ if base is not object]
    members: dict[str, Any] = {}
    for part in reversed(parts):
        members |= dict.fromkeys(vars(part).get("__annotations__", {})) | dict(vars(part))
    # Names of other packages that this one does not have are hints for their users.
    public = {one: raw for one, raw in members.items() if not one.startswith("_") and type(raw).__name__ != "PeerName"}
    public |= {one: raw for one, raw in members.items() if one == "__call__" and raw is not None}
    methods = {one: _function(raw) for one, raw in sorted(public.items()) if inspect.isroutine(_function(raw))}
    attributes = sorted(public.keys() - methods.keys())
    yield f"class {name}{_signature(cls)}{' of ' * bool(derives)}{', '.join(derives)}"
    if attributes:
        yield f"{name}: {', '.join(attributes)}"
    yield from (f"{name}.{one}{_signature(method)}" for one, method in methods.items())


def _function(raw: Any) -> Any:
    return raw.__func__ if isinstance(raw, classmethod | staticmethod) else raw


def _signature(value: Any) -> str:
    """Return the parameters of a function or a class with their defaults, without types."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # of the extension, or of Python's own
        return ""
    shown = [
        one.replace(annotation=inspect.Parameter.empty)
        for one in signature.parameters.values()
        if one.name not in ("self", "cls") and not one.name.startswith("_")
    ]
    text = str(signature.replace(parameters=shown, return_annotation=inspect.Signature.empty))
    return re.sub(r"=<[^>]*>", "=...", text)  # a default without a literal


def main() -> int:
    """Write the list or compare it."""
    before = LIST.read_text(encoding="utf-8").splitlines() if LIST.exists() else []
    names, missing = public_names()
    kept = [line for line in before if line.removeprefix("class ").startswith(tuple(f"{name}." for name in missing))]
    after = list(listed(names))
    for line in kept:
        previous = before[before.index(line) - 1]
        after.insert(after.index(previous) + 1 if previous in after else len(after), line)
    if "--check" not in sys.argv[1:]:
        LIST.write_text("\n".join(after) + "\n", encoding="utf-8")
        return 0
    changed = sorted(set(before) ^ set(after))
    for line in changed:
        print("-" if line in before else "+", line)
    if changed:
        print("If these changes are meant, write the list: scripts/public_names.py")
    return bool(changed)


if __name__ == "__main__":
    sys.exit(main())
