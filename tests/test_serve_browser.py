"""The description of the server in a browser: a phone, dark colours, the keyboard, copying, and its size."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from chromium import browser, needs_chromium
from serve_fixtures import folders, server
from test_serve_description import shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_process import Server

pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install '.[serve]'")
pytestmark = needs_chromium
#: The most bytes of the page, with a model of every kind.
SIZE = 120_000


@pytest.fixture
def open_docs(browser: Any, server: Server) -> Iterator[Any]:
    """A function that opens the description; afterwards nothing was fetched but it, and nothing failed."""
    contexts, problems, requests = [], [], []
    address = f"http://127.0.0.1:{server.port}/docs"

    def start(width: int = 1280, scheme: str = "light", **more: Any) -> Any:
        contexts.append(browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, **more))
        page = contexts[-1].new_page()
        page.on("console", lambda message: message.type == "error" and problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.route("**/favicon.ico", lambda route: route.fulfill(status=204))
        page.goto(address)
        return page

    yield start
    for context in contexts:
        context.close()
    assert problems == []
    assert {url.partition("#")[0] for url in requests} <= {address, address.replace("docs", "favicon.ico")}


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark"), (320, "light")])
def test_the_page_fits_and_is_readable(open_docs: Any, width: int, scheme: str) -> None:
    page = open_docs(width, scheme)
    # Wide commands and tables scroll by themselves, also when all fields are open.
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    colours = page.evaluate(
        "[getComputedStyle(document.documentElement).backgroundColor, getComputedStyle(document.body).color]"
    )
    text = sum(int(part) for part in re.findall(r"\d+", colours[1])[:3])
    assert (text > 600) == (scheme == "dark"), colours
    assert page.locator("h1").inner_text().startswith("wordpiece-bert ")


def test_a_path_is_found_in_the_list_and_its_fields_are_opened_by_keyboard(open_docs: Any) -> None:
    page = open_docs(390)
    page.get_by_role("link", name="/v1/embeddings").focus()
    page.keyboard.press("Enter")
    heading = page.locator("#post-v1-embeddings")
    assert 0 <= heading.bounding_box()["y"] < 800
    summary = page.locator("#post-v1-embeddings ~ details summary").first
    assert summary.inner_text().startswith("The fields: input")
    row = page.locator("#post-v1-embeddings ~ details").first.get_by_text("How many numbers of each vector to keep.")
    assert not row.is_visible()
    summary.focus()
    page.keyboard.press("Enter")
    assert row.is_visible()


def test_a_command_is_copied_by_keyboard_and_works(open_docs: Any) -> None:
    page = open_docs(permissions=["clipboard-read", "clipboard-write"])
    button = page.locator("#post-embed ~ .example button").first
    button.focus()
    page.keyboard.press("Enter")
    page.locator("button", has_text="Copied").wait_for()
    command = page.evaluate("navigator.clipboard.readText()")
    done = subprocess.run(["sh", "-c", command], capture_output=True, encoding="utf-8", check=True)
    assert shape(json.loads(done.stdout)) == [["number"]]


def test_without_scripts_there_is_everything_but_buttons(open_docs: Any) -> None:
    page = open_docs(java_script_enabled=False)
    assert page.locator("button").count() == 0
    assert "/v1/embeddings" in page.locator("#post-v1-embeddings ~ .example code").first.inner_text()


def test_the_page_is_small(server: Server) -> None:
    assert len(server.get("/docs")[2].encode()) < SIZE
