"""Each picture of the gallery has a link that opens its state in a live page.

The pages are made of what the repository has, as `make docs` makes them. It needs what `test_inspect_browser` needs.
"""

from __future__ import annotations

import html
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chromium import browser, needs_chromium
from wordpiece_bert.inspect.packed_page import PackedPage

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).resolve().parent.parent / "docs"
PICTURES = DOCS / "images" / "gallery"
#: The pictures of the gallery, each with the page and the selection of the link below it.
LINKS = {
    name: (page, html.unescape(selection))
    for name, page, selection in re.findall(
        r'!\[.*\]\(images/gallery/(\w+)\.svg\)\n\n<p><a href="_static/gallery/(\w+)\.html#(.*?)">Open this state</a></p>',
        (DOCS / "gallery.md").read_text(encoding="utf-8"),
    )
}


@pytest.fixture(scope="module")
def pages(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Path]]:
    folder = tmp_path_factory.mktemp("gallery")
    for source in PICTURES.glob("*.json"):
        page = PackedPage(**json.loads(source.read_text(encoding="utf-8")))
        (folder / f"{source.stem}.html").write_text(page.to_html(), encoding="utf-8")
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield context, folder
    context.close()


def test_every_picture_has_a_link() -> None:
    assert set(LINKS) == {path.stem for path in PICTURES.glob("*.svg")}


@needs_chromium
@pytest.mark.parametrize("name", LINKS)
def test_a_link_opens_the_state_of_the_picture(pages: tuple[Any, Path], name: str) -> None:
    context, folder = pages
    stem, selection = LINKS[name]
    opened = context.new_page()
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.goto(f"{(folder / f'{stem}.html').as_uri()}#{selection}")
    opened.wait_for_function("() => panel.dataset.shown && document.querySelector('#panel > [data-ready]')")
    shown = opened.evaluate("() => panel.dataset.shown")
    assert set(selection.split("&")) <= set(shown.removeprefix("#").split("&"))

    # The tab has the title of the picture, and the address of the tab is taken.
    picture = ET.parse(PICTURES / f"{name}.svg").getroot()
    (title,) = [one.text for one in picture if one.tag.endswith("title")]
    tab = opened.get_by_role("tab", selected=True).inner_text()
    assert title in (tab, opened.locator("#panel > .intro").inner_text() if tab != title else title)

    # The head of the picture, and the numbers of the page that the selection names, are those that are shown.
    said = " ".join(one.text or "" for one in picture.iter() if one.tag.endswith("text"))
    text = opened.locator("#panel").inner_text()
    for head in re.findall(r"[Ll]ayer \d+, head \d+", said):
        assert head.lower() in text.lower()
    chosen = dict(part.split("=") for part in selection.split("&"))
    if {"layer", "head"} <= set(chosen):
        assert re.search(rf"layer {chosen['layer']}, head {chosen['head']}\b", text, re.IGNORECASE)
    if "text" in chosen:
        assert opened.get_by_label("Text", exact=True).input_value() == chosen["text"]
    opened.reload()
    opened.wait_for_function("(shown) => panel.dataset.shown === shown", arg=shown)
    assert problems == []
    opened.close()
