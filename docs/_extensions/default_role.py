"""Names in single backticks: each must be known, and links to its page where there is one.

A name refers to an object of the package, to a parameter or attribute of what is documented, or to another project,
listed in docs/foreign_names.txt. Anything else is a warning, so that a misspelled name is found; what is not a name
stands in double backticks. So is a line of the list that no docstring needs any more.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx import addnodes
from sphinx.ext.autodoc.mock import mock
from sphinx.ext.intersphinx._shared import InventoryAdapter
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from docutils.nodes import Element, reference
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

PACKAGE = "wordpiece_bert"
FOREIGN = Path(__file__).parents[1] / "foreign_names.txt"
#: Nothing, where None may be the value of a name.
MISSING = object()
#: An entry of a section of a docstring, such as ``a, b : float``.
ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : .*)?$", re.MULTILINE)

logger = logging.getLogger(__name__)


@cache
def found(path: str) -> Any:
    """Return the object of a dotted name, or `MISSING`."""
    parts = path.split(".")
    for depth in range(len(parts), 0, -1):  # a function may have the name of its module
        try:
            value: Any = importlib.import_module(".".join(parts[:depth]))
        except ImportError:
            continue
        for part in parts[depth:]:
            value = member(value, part)
        if value is not MISSING:
            return value
    return MISSING


def member(value: Any, name: str) -> Any:
    """Return what an object has under a name, or `MISSING`; of a class also a field without a value."""
    if not inspect.isclass(value):
        return getattr(value, name, MISSING)
    if any(name in vars(cls).get("__annotations__", {}) for cls in value.__mro__):
        return None
    inner = inspect.getattr_static(value, name, MISSING)
    return getattr(inner, "__func__", inner)


@cache
def own_names(path: str) -> frozenset[str]:
    """Return the names that the docstring of an object may use: parameters, attributes, and what it describes."""
    value = found(path)
    if value is MISSING:
        return frozenset()
    names = {name.lstrip("*") for entry in ENTRY.findall(inspect.getdoc(value) or "") for name in entry.split(", ")}
    if inspect.isclass(value):
        names |= set(dir(value)) | {name for cls in value.__mro__ for name in vars(cls).get("__annotations__", {})}
    for called in (value, getattr(value, "__call__", None)):  # noqa: B004 - the method, to read its parameters
        with suppress(TypeError, ValueError):  # it is not a function, or one without a signature
            names |= set(inspect.signature(called).parameters)  # type: ignore[arg-type]
    return frozenset(names)


def places(path: str, module: str) -> Iterator[str]:
    """Yield the objects and modules whose names the docstring of an object uses, the nearest first."""
    inner = path
    while inner and inner != module:
        yield inner
        written = getattr(found(inner), "__module__", None)
        if isinstance(written, str) and written.startswith(PACKAGE):
            yield written
        inner = inner.rpartition(".")[0]
    yield module
    yield PACKAGE


def is_known(name: str, path: str, module: str) -> bool:
    """Return whether the docstring of an object of a module may use a name."""
    if name.startswith(f"{PACKAGE}."):
        return found(name) is not MISSING
    first, _, rest = name.partition(".")
    for place in places(path, module):
        if found(f"{place}.{name}") is not MISSING or (not rest and first in own_names(place)):
            return True
    return False


def page_of(name: str, module: str, objects: Mapping[str, Any]) -> str | None:
    """Return the full name of the documented object that a name in a module means; None if there is none, or several.

    The name of a class may come from another module, alone or before the name of a member.
    """
    for full in (f"{PACKAGE}.{name}", f"{module}.{name}"):
        if full in objects:
            return full
    if not name[:1].isupper():
        return None
    several = [full for full in objects if full.endswith(f".{name}")]
    if len({id(found(full)) for full in several}) == 1:
        return several[0]
    owner, _, last = name.rpartition(".")
    page = page_of(owner, module, objects) if owner and not several else None  # a field is described with its class
    return page if page and last in own_names(page) else None


def documented(node: Element, module: str) -> str:
    """Return the object in whose description a node stands, or whose line in a table; empty if it stands in none."""
    above: Any = node
    while above is not None:
        if isinstance(above, addnodes.desc):
            signature = above.next_node(addnodes.desc_signature)
            if signature is not None and signature.get("fullname"):
                return f"{signature['module']}.{signature['fullname']}"
        if isinstance(above, nodes.row) and (name := above.next_node(nodes.literal)) is not None:
            return f"{module}.{name.astext()}"
        above = above.parent
    return ""


def import_integrations(app: Sphinx) -> None:
    """Import the modules that need other packages with stand-ins for these, as autodoc does."""
    with mock(app.config.autodoc_mock_imports):
        package = importlib.import_module(f"{PACKAGE}.integrations")
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)


class Names:
    """The names of other projects, and which of them were used."""

    def __init__(self) -> None:
        self.foreign = FOREIGN.read_text(encoding="utf-8").split()
        self.used: set[str] = set()

    def resolve(
        self, app: Sphinx, env: BuildEnvironment, node: pending_xref, content: Element
    ) -> reference | Element | None:
        """Return a link to the name in the package, or the name as code; None leaves other roles to Sphinx."""
        if node.get("reftype") != "obj":
            return None
        name = node["reftarget"].removesuffix("()")
        module = node.get("py:module") or PACKAGE
        objects, place = env.domains.python_domain.objects, documented(node, module)
        here = is_known(name, place, module)
        if (full := page_of(name, module, objects)) and not (here and "." not in name and name in own_names(place)):
            entry = objects[full]
            return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content, full)
        if any(name in entries for entries in InventoryAdapter(env).main_inventory.values()):
            return None  # its documentation is linked
        if name in self.foreign:
            self.used.add(name)
        elif not here:
            logger.warning("`%s` is no object, parameter or attribute; write code as ``%s``", name, name, location=node)
        return content

    def check(self, app: Sphinx, env: BuildEnvironment) -> None:
        """Warn of foreign names that no docstring has, once all pages are resolved."""
        for name in self.foreign:
            if name not in self.used:
                logger.warning("%s: `%s` is not needed any more", FOREIGN.name, name)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the events."""
    names = Names()
    app.connect("builder-inited", import_integrations)
    app.connect("missing-reference", names.resolve)
    app.connect("build-finished", lambda app, error: names.check(app, app.env) if error is None else None)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
