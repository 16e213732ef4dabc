"""Links of Markdown pages to files of the repository that are not pages become links to the repository's address.

So the pages read the same in the repository, where such links are relative paths.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from sphinx.application import Sphinx

LINK = re.compile(r"(?<=\]\()(\.\.?/[^)#\s]*|[\w-]+\.py)(#[^)\s]*)?(?=\))")
BRANCH = "main"


def address(page: Path, target: str, root: Path, docs: Path, repository: str) -> str:
    """Return the address of a link's target, which stays as it is where it is in the documentation's folder."""
    path = (page.parent / target).resolve()
    if path.is_relative_to(docs) and path.suffix != ".py":
        return target
    kind = "tree" if path.is_dir() else "blob"
    return f"{repository}/{kind}/{BRANCH}/{path.relative_to(root).as_posix()}"


def rewrite(app: Sphinx, name: str, source: list[str]) -> None:
    """Rewrite the links of a page when it is read."""
    page, docs = app.env.doc2path(name), app.srcdir
    if page.suffix != ".md":
        return
    root = docs.parent

    def replaced(match: re.Match[str]) -> str:
        return address(page, match[1], root, docs, app.config.repository) + (match[2] or "")

    source[0] = LINK.sub(replaced, source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the setting and the event."""
    app.add_config_value("repository", "", "env")
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
