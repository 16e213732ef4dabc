"""Names in single backticks link to their page where there is one, and are code elsewhere.

A docstring names the parameters of its function in this way too, which have no page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sphinx.util.nodes import make_refnode

if TYPE_CHECKING:
    from docutils.nodes import Element, reference
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

PACKAGE = "wordpiece_bert"


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: Element) -> reference | Element | None:
    """Return a link to the name in the package, or the name as code; None leaves other roles to Sphinx."""
    if node.get("reftype") != "obj":
        return None
    name = node["reftarget"].removesuffix("()")
    objects = env.domains.python_domain.objects
    for full in (f"{PACKAGE}.{name}", f"{node.get('py:module')}.{name}"):
        if full in objects:
            entry = objects[full]
            return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content, full)
    return content


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the event."""
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
