"""The documentation in a browser, from the disk: the search, anchors, a phone, dark colours, and no request to anywhere.

The tests need the site (`make docs`), Debian's ``chromium`` or another Chromium named by CHROMIUM, and playwright;
`make test-browser` brings all but the browser. scripts/check_site.py checks every link of every page without a browser.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from browser_pages import wait_for_view
from chromium import browser, needs_chromium

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "docs"
pytestmark = [
    needs_chromium,
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built: make docs"),
]

#: Pages of every kind: written by hand in both formats, and generated from a class, a method and a module's table.
PAGES = [
    "index.html",
    "start/first-tokens.html",
    "start/first-vectors.html",
    "tutorials/search-your-texts.html",
    "coming-from/sentence-transformers.html",
    "how-to/command-line.html",
    "how-to/search.html",
    "explanation/wordpiece-matching.html",
    "comparison.html",
    "reference/package.html",
    "reference/generated/wordpiece_bert.Tokenizer.html",
    "reference/generated/wordpiece_bert.train_vocab.html",
]


@pytest.fixture
def open_page(browser: Any) -> Iterator[Any]:
    """A function that opens a page of the site; afterwards nothing was fetched but files of it, and nothing failed."""
    contexts, problems, requests = [], [], []

    def start(name: str, width: int = 1280, scheme: str = "light") -> Any:
        contexts.append(browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme))
        page = contexts[-1].new_page()
        page.on("console", lambda message: message.type == "error" and problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(f"{SITE.as_uri()}/{name}")
        return page

    yield start
    for context in contexts:
        context.close()
    assert problems == []
    foreign = [url for url in requests if not url.startswith((SITE.as_uri(), "data:", "blob:"))]
    assert foreign == []
    assert requests


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_page_opens(open_page: Any, name: str, width: int, scheme: str) -> None:
    page = open_page(name, width, scheme)
    assert page.locator("h1").first.inner_text()
    # Nothing is wider than a phone: wide tables and blocks of code scroll by themselves.
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in background.removeprefix("rgb(").rstrip(")").split(",")[:3])
    assert (brightness < 300) == (scheme == "dark"), background
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")


def test_the_search_finds_a_name_and_a_word(open_page: Any) -> None:
    page = open_page("index.html")
    page.keyboard.press("Control+k")
    field = page.locator("input[type=search]:visible")
    field.fill("encode_batch")
    field.press("Enter")
    page.wait_for_url("**/search.html?q=encode_batch*")
    found = page.locator("#search-results a")
    found.first.wait_for()
    target = page.locator("#search-results a[href*='wordpiece_bert.Tokenizer.html']").first
    target.click()
    page.wait_for_url("**/wordpiece_bert.Tokenizer.html*")
    page = open_page("search.html?q=truncation")
    page.locator("#search-results a[href*='how-to/truncation.html']").first.wait_for()


@pytest.mark.parametrize("word", ["padding", "truncation", "pairs", "offsets"])
def test_the_search_finds_the_calls_that_do_it(open_page: Any, word: str) -> None:
    page = open_page(f"search.html?q={word}")
    page.get_by_text("Search finished").wait_for()
    found = page.locator("#search-results li > a").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    of_others = [place for place, one in enumerate(found) if "integrations" in one]
    assert not of_others or [one for one in found[: of_others[0]] if one.startswith("how-to/")]
    name, _, place = found[0].partition("#")
    assert name == "reference/generated/wordpiece_bert.Tokenizer.html", found[:3]
    # The row of the methods that do it is what the link leads to.
    page.goto(f"{SITE.as_uri()}/{name}#{place}")
    row = page.locator("tr", has=page.locator(f"[id='{place}']"))
    assert row.is_visible()
    call = "__call__" if word != "offsets" else "encode"
    assert row.locator(f"a[href='#wordpiece_bert.Tokenizer.{call}']").count() == 1


def test_a_word_that_occurs_nowhere_is_not_found(open_page: Any) -> None:
    page = open_page("search.html?q=zzyzxqqq")
    page.get_by_text("did not match any documents").wait_for()
    assert page.locator("#search-results li").count() == 0


def test_an_anchor_scrolls_to_its_place(open_page: Any) -> None:
    page = open_page("reference/generated/wordpiece_bert.Tokenizer.html#wordpiece_bert.Tokenizer.encode_batch")
    place = page.locator("[id='wordpiece_bert.Tokenizer.encode_batch']")
    assert place.is_visible()
    assert 0 <= place.bounding_box()["y"] < 800


def test_the_first_page_has_claim_command_code_picture_and_doors_before_the_cards(open_page: Any) -> None:
    page = open_page("index.html")
    parts = [
        page.locator("article strong", has_text="WordPiece tokenizer with a Rust core"),
        page.locator("article .highlight-sh", has_text="pip install"),
        page.locator("article .highlight-python", has_text="import wordpiece_bert as wb"),
        page.locator("article img[src*='overview']"),
        *(page.locator(".door", has_text=name).first for name in ("Tokens", "Vectors", "Training")),
        page.locator(".sd-card:not(.door)").first,
    ]
    tops = [one.bounding_box()["y"] for one in parts]
    assert tops == sorted(tops)
    assert page.locator(".door").count() == 3
    for name in ("Tokens", "Vectors", "Training"):
        page = open_page("index.html")
        page.locator(".door", has_text=name).first.click()
        page.wait_for_url(f"**/start/first-{name.lower()}.html*")


@pytest.mark.parametrize("name", PAGES)
def test_no_code_is_cut_and_no_list_at_the_side_is_empty(open_page: Any, name: str) -> None:
    page = open_page(name)
    assert (
        page.evaluate(
            "[...document.querySelectorAll('article pre')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
        )
        == 0
    )
    for side in page.locator(".bd-sidebar-primary:visible, .bd-sidebar-secondary:visible").all():
        assert side.locator("a").count() > 0


def test_code_is_copied_without_prompts_and_what_is_printed_is_not(open_page: Any) -> None:
    page = open_page("reference/generated/wordpiece_bert.train_vocab.html")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    block = page.locator(".highlight", has=page.locator(".gp")).first
    block.hover()
    block.locator("button.copybtn").click()
    page.locator("button.copybtn.success").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("from wordpiece_bert import")
    assert ">>>" not in copied
    page = open_page("start/first-vectors.html")
    assert page.locator(".highlight-sh button.copybtn").count() == page.locator(".highlight-sh").count() > 0
    assert page.locator(".highlight-output button.copybtn").count() == 0 < page.locator(".highlight-output").count()


def test_the_page_of_a_tokenizer_begins_with_its_methods_by_task(open_page: Any) -> None:
    page = open_page("reference/generated/wordpiece_bert.Tokenizer.html")
    tasks = page.locator("article table").first
    assert page.locator("article p.rubric").first.inner_text() == "Methods by task"
    assert tasks.bounding_box()["y"] < page.locator("article dl.class").bounding_box()["y"]
    tasks.get_by_role("link", name="encode_batch").click()
    page.wait_for_url("**#wordpiece_bert.Tokenizer.encode_batch")


def test_links_are_followed_by_clicks(open_page: Any) -> None:
    page = open_page("index.html")
    page.locator(".bd-header").get_by_role("link", name="Reference").first.click()
    page.wait_for_url("**/reference/index.html*")
    page.locator("article").get_by_role("link", name="wordpiece_bert", exact=True).first.click()
    page.wait_for_url("**/reference/package.html*")
    page.locator("article").get_by_role("link", name="Tokenizer", exact=True).first.click()
    page.wait_for_url("**/wordpiece_bert.Tokenizer.html*")


def test_the_menu_of_a_phone(open_page: Any) -> None:
    page = open_page("how-to/search.html", 390)
    assert not page.locator(".bd-sidebar-primary").is_visible()
    page.locator("button.primary-toggle").click()
    page.get_by_role("link", name="Reference").last.wait_for()
    assert page.locator(".bd-sidebar-primary, dialog .sidebar-primary-items").first.is_visible()


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "docs" / "images" / "gallery").glob("*.json")))
def test_every_tab_of_a_live_page_opens(open_page: Any, name: str) -> None:
    page = open_page("gallery.html")
    page.locator(f"article a[href$='gallery/{name}.html']").click()
    wait_for_view(page)
    tabs = page.get_by_role("tab")
    assert tabs.count() >= 3
    for index in range(tabs.count()):
        tabs.nth(index).click()
        wait_for_view(page, tabs.nth(index).get_attribute("id"))
        assert page.locator("#panel").inner_text().strip()
