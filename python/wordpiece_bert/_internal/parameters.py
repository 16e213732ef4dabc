"""Parameters that several functions share: each is described once, and the docstrings that need it are completed here.

A function has its signature in full. Its docstring describes the parameters that are its own, and the decorator
`completed_by` names where the others are described: tables, or functions that have them too. ``help()`` then describes
all of them, in the order of the signature. Commands take the first sentence of a description for their help texts
(`Parameters.summary`).
"""

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType, MappingProxyType
from typing import Any, NamedTuple, Self, TypeVar, cast

from wordpiece_bert._internal.peer_arguments import CO_VARARGS, CO_VARKEYWORDS, refuse

Documented = TypeVar("Documented", bound=Callable[..., Any] | type[Any])
Function = TypeVar("Function", bound=Callable[..., Any])

_HEADING = "Parameters\n----------\n"
# The heading of the section that follows, or the end.
_NEXT_HEADING = re.compile(r"^\w[\w ]*\n-{3,}$", re.MULTILINE)


class Entry(NamedTuple):
    """The description of one parameter, or of several together."""

    names: tuple[str, ...]
    #: What follows the names in their line: the type, and the default.
    kind: str
    #: The lines below, indented.
    description: str

    def of(self, names: list[str]) -> Self:
        """Return the description of its parameters that are among `names`."""
        return self._replace(names=tuple(name for name in self.names if name.lstrip("*") in names))

    def __str__(self) -> str:
        return f"{', '.join(self.names)}{self.kind}\n{self.description}".rstrip()


class Parameters:
    """Descriptions of parameters by name.

    Parameters
    ----------
    text : str
        Entries as in the section "Parameters" of a docstring: a line ``name : type``, and below it the description,
        indented.
    """

    def __init__(self, text: str) -> None:
        self._entries = {name.lstrip("*"): entry for entry in _entries(cleaned("\n" + text)) for name in entry.names}

    @classmethod
    def of(cls, documented: Callable[..., Any]) -> Self:
        """Return what the docstring of a function or a class describes.

        Parameters
        ----------
        documented : callable
            The function or the class. With ``python -OO`` it has no docstring, and nothing is described.
        """
        text = cleaned(documented.__doc__ or "")
        start, end = _section(text)
        return cls(text[start:end])

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def get(self, name: str) -> Entry | None:
        """Return the description of a parameter; None if there is none.

        Parameters
        ----------
        name : str
            The name of the parameter.
        """
        return self._entries.get(name)

    def summary(self, name: str) -> str:
        """Return the first sentence of a description, as the help texts of commands are: without an initial capital.

        Other parameters are in single back quotes, as in the description.

        Parameters
        ----------
        name : str
            The name of the parameter.
        """
        description = " ".join(self._entries[name].description.split())
        found = re.match(r"(.+?)[.:;](?=\s|$)", description)
        sentence = (found[1] if found else description).replace("``", "").replace('"', "")
        return sentence[:1].lower() + sentence[1:]

    def default(self, name: str) -> str:
        """Return the default of a parameter as its line says it, without quotation marks; empty if it says none.

        Parameters
        ----------
        name : str
            The name of the parameter.
        """
        return self._entries[name].kind.partition("default ")[2].strip('"')


def cleaned(docstring: str) -> str:
    """Return a docstring without the indentation of its lines, as `inspect.cleandoc` does, which takes long to import.

    Parameters
    ----------
    docstring : str
        The docstring.
    """
    first, *lines = docstring.expandtabs().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join([first.lstrip(), *(line[margin:] for line in lines)]).strip("\n")


def completed_by(*sources: Parameters | Callable[..., Any]) -> Callable[[Documented], Documented]:
    """Complete the docstring of a function or a class with the parameters that it does not describe itself.

    Parameters
    ----------
    *sources : Parameters or callable
        Where they are described: tables, and functions or classes whose docstrings do. The first that has a name
        counts.
    """
    tables = [source if isinstance(source, Parameters) else Parameters.of(source) for source in sources]

    def complete(documented: Documented) -> Documented:
        if documented.__doc__:  # None with python -OO
            documented.__doc__ = _completed(cleaned(documented.__doc__), _parameters(documented), tables)
        return documented

    return complete


def taking(
    options: type[Any] | Callable[..., Any],
    defaults: Mapping[str, Any] = MappingProxyType({}),
    instead: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[Function], Function]:
    """Show in the signature of a function what it takes as ``**options: Unpack[...]``.

    Type checkers and editors read the typed dict; `inspect.signature`, ``help()`` and the documentation read this.
    Other names raise a TypeError.

    Parameters
    ----------
    options : type or callable
        The typed dict, or a function that has the options as arguments by keyword.
    defaults : mapping
        The defaults of the keys of a typed dict; None for others.
    instead : mapping of str to str
        What to use instead of an argument that only peers have, for an `InputError`.
    """
    if isinstance(options, type):
        types = {name: getattr(hint, "__forward_arg__", hint) for name, hint in options.__annotations__.items()}
        values = {name: defaults.get(name) for name in types}
    else:
        found = _unwrapped(options)
        types = {name: found.__annotations__[name] for name in _arguments(found.__code__)[1]}
        values = found.__kwdefaults__ or {}

    def decorate(function: Function) -> Function:
        own = _unwrapped(function)
        positional, by_keyword, _ = _arguments(own.__code__)
        added = [name for name in types if name not in positional + by_keyword]
        own.__wrapped__ = _shown(own, {name: types[name] for name in added}, values)
        return _with_names(function, {*positional, *by_keyword, *added}, instead)

    return decorate


def _unwrapped(function: Any) -> Any:
    """Return the function with the signature, as `inspect.unwrap` does; `inspect` takes long to import."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def _arguments(code: CodeType) -> tuple[list[str], list[str], list[str]]:
    """Return the names of arguments by position, by keyword only, and of others: ``*arguments``, ``**options``."""
    names, count, end = code.co_varnames, code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    others = bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    return list(names[:count]), list(names[count:end]), list(names[end : end + others])


def _shown(function: Any, types: Mapping[str, Any], values: Mapping[str, Any]) -> FunctionType:
    """Return a function, never called, with more keyword arguments in its signature, and without ``**options``.

    `inspect.signature` reads the signature of ``__wrapped__``, if a function has it.
    """
    code = function.__code__
    positional, by_keyword, others = _arguments(code)
    if code.co_flags & CO_VARKEYWORDS:
        others.pop()
    names = (*positional, *by_keyword, *types, *others)
    nothing = (lambda: None).__code__
    arguments = nothing.replace(
        co_filename=code.co_filename,  # `inspect.getsource` finds the function by them
        co_firstlineno=code.co_firstlineno,
        co_argcount=code.co_argcount,
        co_posonlyargcount=code.co_posonlyargcount,
        co_kwonlyargcount=len(by_keyword) + len(types),
        co_flags=nothing.co_flags | code.co_flags & CO_VARARGS,
        co_nlocals=len(names),
        co_varnames=names,
    )
    shown = FunctionType(arguments, function.__globals__, function.__name__, function.__defaults__)
    added = {name: values[name] for name in types if name in values}
    shown.__kwdefaults__ = (function.__kwdefaults__ or {}) | added
    shown.__annotations__ = function.__annotations__ | dict(types)
    return shown


def _with_names(function: Function, names: set[str], instead: Mapping[str, str]) -> Function:
    """Return a function that refuses keywords with other names, as Python does."""

    @functools.wraps(function)
    def checked(*arguments: Any, **options: Any) -> Any:
        for name in options:
            if name not in names:
                refuse(checked.__qualname__, {name: options[name]}, instead)
        return function(*arguments, **options)

    return cast("Function", checked)


def described_parameters(docstring: str) -> list[str]:
    """Return the names that the section "Parameters" of a docstring describes, in its order.

    Parameters
    ----------
    docstring : str
        The docstring.
    """
    text = cleaned(docstring)
    start, end = _section(text)
    return [name.lstrip("*") for entry in _entries(text[start:end]) for name in entry.names]


def changed_parameters(docstring: str, entries: Mapping[str, str | None]) -> str:
    """Return a docstring with other descriptions of some parameters.

    Parameters
    ----------
    docstring : str
        The docstring.
    entries : mapping
        The new entry of each, as in a table of `Parameters`; None leaves the parameter out.
    """
    text = cleaned(docstring)
    start, end = _section(text)
    kept = [entries.get(entry.names[0], str(entry)) for entry in _entries(text[start:end])]
    rest = text[end:]
    return text[:start] + "\n".join(entry for entry in kept if entry) + ("\n\n" + rest if rest else "")


def _parameters(documented: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters of a function or a class; the keys of a typed dict."""
    function = _unwrapped(documented.__init__ if isinstance(documented, type) else documented)  # type: ignore[misc]
    code = getattr(function, "__code__", None)
    if code is None:
        return list(documented.__annotations__)
    positional, by_keyword, _ = _arguments(code)
    return [name for name in positional + by_keyword if name not in ("self", "cls")]


def _section(text: str) -> tuple[int, int]:
    """Return where the entries of the section "Parameters" begin and end."""
    heading = text.find(_HEADING)
    if heading < 0:
        return 0, 0
    start = heading + len(_HEADING)
    following = _NEXT_HEADING.search(text, start)
    return start, following.start() if following else len(text)


def _entries(section: str) -> Iterator[Entry]:
    """Yield the entries of a section."""
    for entry in re.split(r"\n+(?=\S)", section.strip("\n")):
        if entry:
            line, _, description = entry.partition("\n")
            names, separator, kind = line.partition(" : ")
            yield Entry(tuple(name.strip() for name in names.split(",")), separator + kind, description)


def _completed(text: str, parameters: list[str], tables: list[Parameters]) -> str:
    if _HEADING not in text:
        following = _NEXT_HEADING.search(text)
        before, after = (text[: following.start()], text[following.start() :]) if following else (text, "")
        text = f"{before.rstrip()}\n\n{_HEADING}\n{after}"
    start, end = _section(text)
    own = {name.lstrip("*"): entry for entry in _entries(text[start:end]) for name in entry.names}
    missing = [name for name in parameters if name not in own]
    described = dict(own)
    for name in missing:
        found = next((entry for table in tables if (entry := table.get(name))), None)
        if found:
            described[name] = found.of(missing)
    # An entry may describe several parameters; an entry of *args is in no list of names.
    entries = dict.fromkeys(described[name] for name in [*parameters, *own] if name in described)
    rest = text[end:]
    return (text[:start] + "\n".join(map(str, entries)) + ("\n\n" + rest if rest else "")).rstrip()
