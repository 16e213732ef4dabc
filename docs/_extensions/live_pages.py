"""The live pages of the gallery, written with the page's scripts as they are now.

The repository has what each page shows, as `docs/images/make_gallery.py` packs it. The built documentation has the
pages themselves, beside the pictures.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def write_pages(app: Sphinx, error: Exception | None) -> None:
    """Write a page for each file of the gallery when the documentation is built."""
    if error is not None or app.builder.format != "html":
        return
    from wordpiece_bert.inspect.packed_page import PackedPage

    folder = app.outdir / "_static" / "gallery"
    for source in sorted((app.srcdir / "images" / "gallery").glob("*.json")):
        page = PackedPage(**json.loads(source.read_text(encoding="utf-8")))
        (folder / f"{source.stem}.html").write_text(page.to_html(), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the event."""
    app.connect("build-finished", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
