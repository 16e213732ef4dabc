"""How pages of `wordpiece_bert.inspect` look: contrast, the size of targets, odd texts, and what is taken away."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import wordpiece_bert as wb
from browser_pages import every_view, open_page, some_attention
from chromium import browser, needs_chromium
from wordpiece_bert import inspect

if TYPE_CHECKING:
    from browser_pages import Opened
    from wordpiece_bert.inspect import Page

pytestmark = needs_chromium

ARABIC, HEBREW = "مرحبا", "שלום"
HINDI, FAMILY = "नमस्ते", "👩‍👩‍👧"

#: Texts of the page whose contrast with what is behind them is below 4.5, with the contrast.
CONTRAST = """
    () => {
      const parts = (colour) => (colour.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
      const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
      const rgb = (colour) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const data = canvas.getImageData(0, 0, 1, 1).data;
        return [data[0], data[1], data[2], data[3] / 255];
      };
      const light = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map((v) => (v / 255 <= 0.03928 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4));
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
      };
      const over = (front, back) => [0, 1, 2].map((i) => front[i] * front[3] + back[i] * (1 - front[3])).concat(1);
      const found = [];
      const walker = document.createTreeWalker(document.getElementById("app"), NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const node = walker.currentNode;
        const element = node.parentElement;
        if (!node.data.trim() || !element.checkVisibility() || element.closest(".visually-hidden, #tip")) continue;
        let ground = [0, 0, 0, 0];
        let opacity = 1;
        for (let one = element; one; one = one.parentElement) {
          const style = getComputedStyle(one);
          opacity *= Number(style.opacity);
          ground = over(ground, rgb(style.backgroundColor)).slice(0, 3).concat(ground[3] + (1 - ground[3]) * rgb(style.backgroundColor)[3]);
          if (ground[3] >= 0.999) break;
        }
        const ink = over(rgb(getComputedStyle(element).color).slice(0, 3).concat(opacity), ground);
        const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x);
        const contrast = (a + 0.05) / (b + 0.05);
        if (contrast < 4.5) found.push([node.data.slice(0, 30), element.className, Math.round(contrast * 100) / 100]);
      }
      return found;
    }
"""


def visit(one: Opened, page: Page) -> Any:
    """Open tab after tab."""
    for number, view in enumerate(page.views):
        one.page.locator(f"#tab-{number}").click()
        one.page.wait_for_selector(f'#panel[data-view="{view.kind}"] > [data-ready]')
        one.drawn()
        yield view


#: Coloured texts that can be chosen.
CHOICES = ", ".join(
    f"#panel {one}" for one in (".chip.special", ".chip.unknown", ".strip .token", ".pair", "button.number")
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_a_contrast_of_4_5(open_page: Any, every_view: Page, scheme: str) -> None:
    one = open_page(every_view, scheme=scheme)
    for view in visit(one, every_view):
        assert one.page.evaluate(CONTRAST) == [], view.kind
        # What is chosen is readable, too: chips, tokens, groups of tokens and numbers, one after the other.
        for chip in one.page.locator(CHOICES).all()[:12]:
            if chip.is_visible():
                chip.click()
                assert one.page.evaluate(CONTRAST) == [], view.kind


def luminance(colour: str) -> float:
    parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return float(np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722])


def test_texts_of_pictures_have_a_contrast_of_4_5(every_view: Page) -> None:
    """Each text on the last rectangle below its place, or on the white ground."""
    for view in every_view.views:
        rectangles: list[tuple[float, float, float, float, str]] = []
        for shape in ET.fromstring(view.to_svg()).iter():
            name = shape.tag.rpartition("}")[2]
            if name == "rect" and re.fullmatch("#[0-9a-f]{6}", shape.get("fill", "")):
                x, y, w, h = (float(shape.get(side, 0)) for side in ("x", "y", "width", "height"))
                rectangles.append((x, y, x + w, y + h, shape.get("fill", "")))
            if name == "text":
                x, y = float(shape.get("x", 0)), float(shape.get("y", 0)) - 3
                below = [one[4] for one in rectangles if one[0] <= x <= one[2] and one[1] <= y <= one[3]]
                ground = below[-1] if below else "#ffffff"
                a, b = sorted([luminance(shape.get("fill", "#000000")), luminance(ground)])
                assert (b + 0.05) / (a + 0.05) >= 4.5, (view.kind, "".join(shape.itertext()), ground)


def test_targets_have_24_pixels(open_page: Any, every_view: Page) -> None:
    for width in (1280, 390):
        one = open_page(every_view, width)
        for view in visit(one, every_view):
            small = one.page.locator("button, summary, select, input").evaluate_all("""
                all => all.filter((one) => one.checkVisibility()).map((one) => [one, one.getBoundingClientRect()])
                  .filter(([, box]) => box.width < 23.9 || box.height < 23.9)
                  .map(([one, box]) => [one.outerHTML.slice(0, 80), box.width, box.height])
            """)
            assert small == [], (view.kind, width)


def test_heads_of_numbers_are_aligned_as_their_numbers(open_page: Any, every_view: Page) -> None:
    one = open_page(every_view)
    found = {"right": 0, "center": 0}
    for view in visit(one, every_view):
        columns = one.page.locator("#panel table").evaluate_all("""
            all => all.flatMap((table) => [...table.tHead.rows[0].cells].map((head, i) => {
              const cells = [...table.tBodies[0].rows].map((row) => row.cells[i]);
              const align = (cell) => getComputedStyle(cell).textAlign;
              const numbers = cells.filter((cell) => cell.matches(".number") || cell.querySelector(":scope > .number"));
              const areNumbers = numbers.length && cells.every((cell) => numbers.includes(cell) || ["", "–"].includes(cell.textContent));
              return [head.textContent, align(head), [...new Set(cells.map(align))], areNumbers];
            }))
        """)
        for head, own, cells, are_numbers in columns:
            assert not are_numbers or [own] == cells, (view.kind, head, own, cells)
            assert are_numbers or own not in found, (view.kind, head)
            if are_numbers:
                found[own] += 1
    assert min(found.values()) >= 5


def test_texts_of_every_direction_stay_whole(open_page: Any) -> None:
    tok = wb.Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", *"नमसतdeé", "##म", "##स", "##त", FAMILY[0], "del", "##e"])
    one = open_page(inspect.tokens(tok, f"{HINDI} {FAMILY} de\u200ble\u0301 {HEBREW}"))
    pieces = one.page.locator(".text .piece, .text > span").all_inner_texts()
    text = "".join(pieces)
    # Letters with marks and emoji of several are in one piece each, and what was removed is not spelled out.
    assert "U+" not in text
    for whole in ("स्ते", FAMILY):
        assert any(whole in piece for piece in pieces), pieces
    # A character that cannot be seen is a dot inside of its token, and does not divide it.
    assert any(re.fullmatch("d?e·.*", piece) or "·" in piece for piece in pieces)
    assert one.page.locator(".text .unseen").count() == 1
    assert one.page.locator(".text .unseen").evaluate("one => one.parentElement.classList.contains('piece')")
    assert one.page.locator(".text").get_attribute("dir") == "auto"
    assert one.page.locator(".text .removed:not(.unseen)").count() == 0


def test_tokens_of_another_direction_are_isolated(open_page: Any) -> None:
    one = open_page(inspect.attention(some_attention(3), [ARABIC, HEBREW, "c"]))
    one.page.locator(".strip button").first.click()
    for selector in (".strip .token", ".bars .token"):
        styles = one.page.locator(selector).evaluate_all("all => all.map((one) => getComputedStyle(one).unicodeBidi)")
        assert set(styles) <= {"isolate", "plaintext"}
    assert f"\u2068{ARABIC}\u2069" in one.page.locator(".ranking h3").inner_text()


#: Replaces the clipboard by a list.
CLIPBOARD = """
    window.copied = [];
    Object.defineProperty(navigator, "clipboard", { value: {
      writeText: async (text) => window.copied.push(text),
      write: async (items) => window.copied.push(items[0].types.join()),
    } });
"""


def test_what_is_shown_is_saved_and_copied(open_page: Any, every_view: Page) -> None:
    one = open_page(every_view, script=CLIPBOARD)
    for view in visit(one, every_view):
        one.page.locator(".take > summary").click()
        one.page.wait_for_timeout(200)  # the menu hides what this view does not have
        saved = {}
        names = [
            "SVG",
            "PNG",
            *(["CSV", "JSON"] if one.page.get_by_role("button", name="Save as CSV").is_visible() else []),
        ]
        assert len(names) == 4
        for name in names:
            with one.page.expect_download() as download:
                one.page.get_by_role("button", name=f"Save as {name}").click()
            saved[name] = download.value.path().read_bytes()
            suggested = download.value.suggested_filename
            assert suggested == "view.json" if name == "JSON" else suggested.endswith(name.lower())
        one.page.keyboard.press("Escape")
        root = ET.fromstring(saved["SVG"])
        assert root.tag.endswith("svg")
        assert not [
            shape for shape in root.iter() if shape.tag.rpartition("}")[2] in {"script", "img", "foreignObject"}
        ]
        assert saved["PNG"].startswith(b"\x89PNG")
        if len(names) < 4:
            continue
        rows = list(csv.reader(io.StringIO(saved["CSV"].decode("utf-8-sig"), newline="")))
        shown = json.loads(saved["JSON"])
        assert shown["kind"] == view.kind
        assert len(rows) == len(shown["rows"]) + 1 > 1
        assert all(len(row) == len(rows[0]) for row in rows)


def test_the_values_and_the_link_that_are_taken(open_page: Any) -> None:
    weights, names = some_attention(5), ["=1+1", 'a"b', "c,d", "e\nf", ARABIC]
    one = open_page(inspect.attention(weights, names), script=CLIPBOARD)
    one.page.locator('[data-head="1.2"]').click()
    one.page.locator(".strip button").nth(3).click()
    one.page.locator(".take > summary").click()
    for button in ("Copy as CSV", "Copy as SVG", "Copy as PNG", "Copy as JSON", "Copy link"):
        one.page.get_by_role("button", name=button).click()
        what = "The link" if button == "Copy link" else button.split()[-1]
        one.page.get_by_text(f"{what} is in the clipboard.", exact=True).wait_for()
    table, svg, png, state, link = one.page.evaluate("window.copied")
    rows = list(csv.reader(io.StringIO(table, newline="")))
    assert [row[1] for row in rows[1:]] == [" =1+1", *names[1:]]
    assert [float(row[2]) for row in rows[1:]] == pytest.approx(weights[1, 2, 3].tolist(), abs=0.003)
    assert ET.fromstring(svg.encode()).tag.endswith("svg")
    assert ARABIC in svg
    assert png == "image/png"
    assert json.loads(state)["selection"] == {"layer": 1, "head": 2, "token": 3}
    assert link.endswith("#head=2&layer=1&token=3")
    other = one.page.context.new_page()
    other.goto(link)
    other.wait_for_selector('.view-attention[data-state="weights 1 2 3"]')
    other.reload()
    other.wait_for_selector('.view-attention[data-state="weights 1 2 3"]')
    other.close()


def test_back_and_a_hostile_address(open_page: Any) -> None:
    view = inspect.attention(some_attention(5), list("abcde"))
    page = inspect.page(view, inspect.patterns(some_attention(5), list("abcde")))
    opening = "weights {layer} {head} {token}".format(**view.data["telling"])
    one = open_page(page)
    one.page.locator('[data-head="1.2"]').click()
    one.page.wait_for_timeout(300)
    one.tab("Patterns")
    assert "Layer 1, head 2" in one.page.locator("#panel h2").nth(1).inner_text()
    one.page.wait_for_timeout(300)
    one.page.go_back()
    one.page.wait_for_selector(f'.view-attention[data-state="weights 1 2 {view.data["telling"]["token"]}"]')
    one.page.go_back()
    one.page.wait_for_selector(f'.view-attention[data-state="{opening}"]')
    hostile = "layer=99&head=-1&token=<img src=x onerror=alert(1)>&view=__proto__&__proto__=1&constructor=2&attention.show=%E0%A4%A"
    one.page.evaluate("hash => { location.hash = hash; }", hostile)
    one.page.wait_for_timeout(300)
    assert one.page.locator(f'.view-attention[data-state="{opening}"]').count() == 1
    assert one.page.locator("#app img").count() == 0


def test_keys_choose(open_page: Any) -> None:
    one = open_page(inspect.attention(some_attention(12), [f"t{i}" for i in range(12)], layer=0))
    one.page.get_by_role("radio", name="from the token").focus()
    one.page.keyboard.press("ArrowRight")
    assert one.page.get_by_role("radio", name="to the token").get_attribute("aria-checked") == "true"
    one.page.locator(".scroller").focus()
    one.page.keyboard.press("ArrowDown")
    one.page.keyboard.press("ArrowDown")
    one.page.wait_for_selector('.view-attention[data-state="weights 0 0 1"]')
    one.page.locator("canvas.cells").focus()
    one.page.keyboard.press("ArrowDown")
    one.page.keyboard.press("ArrowRight")
    one.page.wait_for_selector('.view-attention[data-state="weights 0 0 2"]')
    assert (
        one.page.locator("[data-cell-shown]")
        .inner_text()
        .replace("\u2068", "")
        .replace("\u2069", "")
        .startswith("t2 (2) → t1 (1)")
    )


def test_all_tabs_print_on_few_pages(open_page: Any, every_view: Page) -> None:
    # Without the event the page takes printing as not allowed, and comes back after a second.
    one = open_page(every_view, script="window.print = () => dispatchEvent(new Event('beforeprint'));")
    one.page.locator(".take > summary").click()
    one.page.get_by_role("button", name="Print all tabs").click()
    one.page.wait_for_selector(".printing")
    assert one.page.locator(".printed").count() == len(every_view.views)
    pdf = one.page.pdf(prefer_css_page_size=True)
    pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))
    print("pages:", pages)
    assert pages <= 1.3 * len(every_view.views)
    one.page.evaluate("dispatchEvent(new Event('afterprint'))")
    one.page.wait_for_selector("#panel > [data-ready]")
    assert one.page.locator(".printed").count() == 0


@pytest.mark.model
def test_a_page_of_twelve_layers_of_512_tokens_has_less_than_7_megabytes() -> None:
    """The layers of MiniLM for two texts stand for a model of twelve layers and heads."""
    from wordpiece_bert import tasks
    from wordpiece_bert.hub import find_model

    loaded = tasks.load(find_model("minilm"))
    texts = [" ".join(((text or "").split() * 600)[:600]) for text in (wb.Tokenizer.__doc__, csv.__doc__)]
    traces = [inspect.trace(loaded, text, max_length=512) for text in texts]
    names = ("attentions", "queries", "keys", "value_norms")
    both = {name: np.concatenate([getattr(trace, name) for trace in traces]) for name in names}
    view = inspect.attention(dataclasses.replace(traces[0], **both))
    assert view.arrays["attention"].shape == (12, 12, 512, 512)
    assert len(view.to_html()) < 7_000_000
