"""Docstrings that are completed with the descriptions of shared parameters."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from dataclasses import is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict, is_typeddict

import pytest

import wordpiece_bert
from test_surface import CALLABLES, FRAMEWORKS, MODULES
from wordpiece_bert._internal.parameters import Parameters, completed_by, described_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(wordpiece_bert.__file__).parent

TABLE = Parameters(
    """
    width : int, default 3
        The width. It counts
        columns.

        A second paragraph.
    colour, shade : str
        The colour and its shade.
    """
)


def test_a_docstring_is_completed_in_the_order_of_the_signature() -> None:
    @completed_by(TABLE)
    def draw(*shapes: str, first: int, width: int = 3, last: int = 0) -> None:
        """Draw.

        Parameters
        ----------
        last : int
            The last.
        *shapes : str
            The shapes.
        first : int
            The first.

        Returns
        -------
        None
        """

    doc = inspect.getdoc(draw)
    assert doc is not None
    assert described_parameters(doc) == ["first", "width", "last", "shapes"]
    assert (
        "width : int, default 3\n    The width. It counts\n    columns.\n\n    A second paragraph.\nlast : int" in doc
    )
    assert doc.endswith("shapes : str\n    The shapes.\n\nReturns\n-------\nNone")


def test_a_section_is_added_where_there_is_none() -> None:
    @completed_by(TABLE)
    class Drawing:
        """A drawing.

        Raises
        ------
        ValueError
            Never.
        """

        def __init__(self, width: int = 3) -> None: ...

    assert described_parameters(Drawing.__doc__ or "") == ["width"]
    assert (Drawing.__doc__ or "").index("Parameters") < (Drawing.__doc__ or "").index("Raises")


def test_own_descriptions_come_before_those_of_the_table() -> None:
    @completed_by(TABLE)
    def draw(width: int) -> None:
        """Draw.

        Parameters
        ----------
        width : int
            Another width.
        """

    assert "Another width" in (draw.__doc__ or "")
    assert "It counts" not in (draw.__doc__ or "")


def test_a_summary_is_the_first_sentence() -> None:
    assert TABLE.summary("width") == "the width"
    assert TABLE.summary("shade") == "the colour and its shade"
    assert (TABLE.default("width"), Parameters('kind : {"a", "b"}, default "a"\n    Which.').default("kind")) == (
        "3",
        "a",
    )


def test_a_joint_description_names_those_parameters_that_are_there() -> None:
    @completed_by(TABLE)
    def draw(shade: str, *, width: int) -> None:
        """Draw."""

    assert described_parameters(draw.__doc__ or "") == ["shade", "width"]
    assert "shade : str\n    The colour and its shade.\nwidth" in (draw.__doc__ or "")


def test_another_function_is_a_source_too() -> None:
    @completed_by(TABLE)
    def draw(width: int, edge: int) -> None:
        """Draw.

        Parameters
        ----------
        edge : int
            The edge.
        """

    @completed_by(draw)
    def paint(edge: int, width: int) -> None:
        """Paint."""

    assert described_parameters(paint.__doc__ or "") == ["edge", "width"]
    assert "edge : int\n    The edge.\nwidth" in (paint.__doc__ or "")
    assert "It counts" in (paint.__doc__ or "")


def test_the_keys_of_a_typed_dict_are_described() -> None:
    @completed_by(TABLE)
    class Options(TypedDict, total=False):
        """Options."""

        width: int

    assert described_parameters(Options.__doc__ or "") == ["width"]


#: Descriptions of this length stand in one place.
LONG = 60


class Described(NamedTuple):
    """An entry of a docstring or of a table."""

    names: list[str]
    text: str


def entries(docstring: str, section: str = "Parameters") -> list[Described]:
    """Return the entries of a section of a docstring."""
    text = inspect.cleandoc(docstring)
    found = re.search(rf"^{section}\n-+\n(.*?)(?=^\S[^\n]*\n-{{3,}}$|\Z)", text, re.MULTILINE | re.DOTALL)
    return listed(found[1]) if found else []


def listed(text: str) -> list[Described]:
    parts = [part.partition("\n") for part in re.split(r"\n+(?=\S)", text.strip("\n"))]
    return [
        Described([name.strip().lstrip("*") for name in re.split(" : ", head)[0].split(",")], " ".join(below.split()))
        for head, _, below in parts
    ]


@pytest.mark.parametrize("name", sorted(CALLABLES))
def test_every_parameter_is_described_once_and_nothing_else(name: str) -> None:
    if name.startswith(FRAMEWORKS):
        pytest.skip("the framework's base class decides the signature")
    value = CALLABLES[name]
    parameters = [
        parameter
        for parameter in inspect.signature(value).parameters.values()
        if parameter.name not in ("self", "cls") and not parameter.name.startswith("_")
    ]
    if not name.endswith(".set_params"):  # the protocol of scikit-learn: it takes the names of get_params
        hidden = [str(one) for one in parameters if one.kind is one.VAR_KEYWORD]
        assert not hidden, f"{name} hides its options in {hidden[0]}"
    if name.startswith("wordpiece_bert.bert.functional.") and len(parameters) == 1:
        return  # a formula of one array, which its line of documentation states
    described = entries(value.__doc__ or "")
    assert sorted(one for entry in described for one in entry.names) == sorted(one.name for one in parameters)
    elsewhere = [entry.names for entry in described if entry.text.startswith("As for") or not entry.text]
    assert not elsewhere, f"the docstring of {name} describes {elsewhere} elsewhere"


@pytest.mark.parametrize("name", sorted(CALLABLES))
def test_described_defaults_are_those_of_the_signature(name: str) -> None:
    if name.startswith(FRAMEWORKS):
        pytest.skip("the framework's base class decides the signature")
    table = Parameters.of(CALLABLES[name])
    for parameter in inspect.signature(CALLABLES[name]).parameters.values():
        if table.get(parameter.name) is None or parameter.default is None:
            continue  # None stands for the default that is described
        said = table.default(parameter.name)
        shown = parameter.default if isinstance(parameter.default, str) else repr(parameter.default)
        is_literal = re.fullmatch(r"[\w.,+-]+", said) and parameter.default is not parameter.empty
        if is_literal and isinstance(parameter.default, int | float) and not isinstance(parameter.default, bool):
            assert float(said.replace(",", "")) == parameter.default, parameter.name
        elif is_literal:
            assert said == shown, parameter.name


def records() -> dict[str, type]:
    """Every public dataclass, named tuple and typed dict of the package, by its name."""
    found = {}
    for module in MODULES:
        for name in importlib.import_module(module).__all__:
            value = getattr(importlib.import_module(module), name)
            is_record = inspect.isclass(value) and (
                is_dataclass(value) or is_typeddict(value) or hasattr(value, "_fields")
            )
            if is_record and value.__module__.startswith("wordpiece_bert"):
                found[f"{value.__module__}.{name}"] = value
    return found


RECORDS = records()


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_every_field_of_a_record_is_described(name: str) -> None:
    """A field is described in the docstring, or in a comment above it and others, or in the class it is inherited from."""
    if name.startswith("wordpiece_bert.bert.functional."):
        return  # weights by the names of a checkpoint, whose shapes stand beside them
    value = RECORDS[name]
    sections = ("Parameters", "Attributes")
    described = {one for section in sections for entry in entries(value.__doc__ or "", section) for one in entry.names}
    inherited = {one for base in value.__mro__[1:] for one in getattr(base, "__annotations__", {})}
    source, first = inspect.getsourcelines(value)
    [tree] = ast.parse(textwrap.dedent("".join(source))).body
    assert isinstance(tree, ast.ClassDef)
    last = 0
    for node in tree.body:
        if not isinstance(node, ast.AnnAssign) or ast.unparse(node.annotation).startswith("ClassVar"):
            continue
        field = ast.unparse(node.target)
        if field in described | inherited or field.startswith("_"):
            continue
        has_comment = source[node.lineno - 2].strip().startswith("#:") or node.lineno == last + 1
        assert has_comment, f"line {first + node.lineno - 1}: {name}.{field} is not described"
        last = node.end_lineno or node.lineno


def descriptions() -> Iterator[tuple[str, str]]:
    """Yield every description of a parameter in the sources of the package: of docstrings, and of tables."""
    for path in [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")]:
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found: list[Described] = []
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found = entries(ast.get_docstring(node) or "")
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Parameters":
                found = listed(inspect.cleandoc(ast.literal_eval(node.args[0])))
            yield from ((module, entry.text) for entry in found)


def test_no_description_names_another_and_no_long_one_stands_twice() -> None:
    places: dict[str, list[str]] = {}
    for module, text in descriptions():
        assert not text.startswith("As for"), f"{module}: complete the docstring from a table instead of {text!r}"
        if len(text) >= LONG:
            places.setdefault(text, []).append(module)
    assert {text: modules for text, modules in places.items() if len(modules) > 1} == {}
