"""Packages whose names are imported when they are first used (PEP 562), and modules, NumPy among them."""

import importlib
import os
import sys
from _thread import RLock, get_ident

TYPE_CHECKING = False  # type checkers take it as true; importing `typing` for it would take longer than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    import numpy as numpy

#: Held while a name is imported. A fork waits for it: in the child, nobody would release what the import system holds
#: for a thread that imports in the parent, and the first import of the same module would wait without end.
_importing = RLock()
#: The threads that hold it because they fork.
_forking: list[int] = []
#: A fork waits so many seconds. Longer, it may be an import that waits for one of the forking thread.
_LONGEST_WAIT = 10.0


def _before_fork() -> None:
    if _importing.acquire(timeout=_LONGEST_WAIT):
        _forking.append(get_ident())


def _after_fork_in_parent() -> None:
    if get_ident() in _forking:
        _forking.remove(get_ident())
        _importing.release()


def _after_fork_in_child() -> None:
    global _importing
    _forking.clear()
    _importing = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)

#: The modules in which a name is looked up that another package does not have, for the message.
_searched: list[str] = []


def lazy_names(
    namespace: dict[str, object],
    modules: "Mapping[str, str]",
    submodules: "Iterable[str]" = (),
    searched: "Iterable[str]" = (),
) -> "tuple[Callable[[str], object], Callable[[], list[str]]]":
    """Return the ``__getattr__`` and ``__dir__`` of a package that imports its names when they are first used.

    ``__all__`` is set to the names, unless the package lists them itself. A submodule is an attribute of the package,
    too, without an import of its own. ``dir()`` lists the names of ``__all__`` and the public submodules, whatever has
    been imported so far.

    Parameters
    ----------
    namespace
        The package's ``globals()``. A name is stored there when it has been imported.
    modules
        Name -> the module that defines it, relative to the package or from `wordpiece_bert` on.
    submodules
        The public submodules.
    searched
        The submodules whose names are suggested, besides the package's own, where any package lacks a name.
    """
    package = str(namespace["__name__"])
    if searched:
        _searched[:] = [package, *(f"{package}.{submodule}" for submodule in searched)]
    namespace.setdefault("__all__", sorted(modules))

    def load(name: str) -> object:
        """Import a name when it is first used; later uses find it in the package."""
        with _importing:
            return imported(name)

    def imported(name: str) -> object:
        if name in modules:
            value = getattr(importlib.import_module(in_full(package, modules[name])), name)
            namespace[name] = value
            return value
        submodule = f"{package}.{name}"
        if not name.startswith("_"):
            try:
                return importlib.import_module(submodule)
            except ModuleNotFoundError as error:
                if error.name != submodule:
                    raise
        message = f"module {package!r} has no attribute {name!r}"
        if instead := _instead(package, name):
            message = f"{message}: {instead}"
            if sys._getframe(2).f_globals.get("__name__") == "importlib._bootstrap":
                # `from package import name`, which would replace the message of an AttributeError by its own.
                raise ImportError(message, name=package)
        raise AttributeError(message, name=name, obj=sys.modules[package])  # Python suggests names like it

    def names() -> list[str]:
        # Not what the package itself imports, and not the modules of its implementation.
        public: list[str] = namespace["__all__"]  # type: ignore[assignment]
        return sorted({*(name for name in namespace if name.startswith("__")), *public, *submodules})

    return load, names


class _LazyModule:
    """A module that is imported when one of its names is used; from then on its attributes are here, too."""

    def __init__(self, load_module: "Callable[[], object]") -> None:
        self._load_module = load_module

    def __getattr__(self, name: str) -> object:
        module = self._load_module()
        value = getattr(module, name)
        vars(self).update(vars(module))
        return value


def lazy_module(name: str) -> "Any":
    """Return what stands for a module until one of its names is used.

    For what takes long to import and is not needed where a program only encodes texts. Type checkers see an import.

    Parameters
    ----------
    name
        The name of the module in full.
    """

    def load() -> object:
        with _importing:
            return importlib.import_module(name)

    return _LazyModule(load)


def load_numpy(fetch: "Callable[[], object] | None" = None) -> object:
    """Import NumPy and return it.

    Parameters
    ----------
    fetch
        Called when it is imported: the extension's, which fetches NumPy's functions before the first call that makes or
        takes an array.

    Raises
    ------
    MissingPackageError
        NumPy cannot be imported or used. A later call tries again.
    """
    with _importing:
        try:
            module = importlib.import_module("numpy")
            if fetch is not None:
                fetch()
        except ImportError as cause:
            from wordpiece_bert.errors import MissingPackageError

            raise MissingPackageError(
                f"arrays need NumPy, which cannot be imported here ({cause}): pip install 'numpy>=1.26'"
            ) from cause
        return module


if not TYPE_CHECKING:
    #: NumPy for modules whose functions do not all need it: ``from wordpiece_bert._internal.lazy import numpy as np``.
    numpy = _LazyModule(load_numpy)


def in_full(package: str, module: str) -> str:
    """Return the name of a module in full."""
    return module if module.startswith("wordpiece_bert.") else f"{package}.{module}"


def _instead(package: str, name: str) -> "str | None":
    """Return what to import instead of a name that peers have, or that is elsewhere in this package."""
    if name.startswith("_"):
        return None
    from wordpiece_bert._internal.peer_imports import instead

    return instead(package, name, _searched)
