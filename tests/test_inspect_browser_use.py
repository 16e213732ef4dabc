"""Use of the inspection pages: focus and stops of the tab key, addresses, drawings, paper, and what is taken away.

It needs what `test_inspect_browser` needs.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
import zlib
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import wordpiece_bert as wb
from browser_pages import every_view, open_page, settle, some_attention
from chromium import browser, needs_chromium
from test_inspect_trace import loaded
from wordpiece_bert import inspect

if TYPE_CHECKING:
    from browser_pages import Opened
    from wordpiece_bert.inspect import Page, View

pytestmark = needs_chromium

ARABIC = ["مرحبا", "يا", "صديقي"]
#: Replaces the clipboard by a list, without pictures if `write` is not wanted.
CLIPBOARD = """
    window.copied = [];
    Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => window.copied.push(text) } });
"""
#: The elements of a view that the tab key stops at.
STOPS = """
    () => [...document.querySelectorAll("#panel button, #panel input, #panel select, #panel summary, #panel [tabindex]")]
      .filter((one) => one.tabIndex >= 0 && !one.disabled && one.checkVisibility())
      .map((one) => `${one.tagName} ${one.className} ${one.getAttribute("aria-label") ?? one.textContent}`)
"""
#: Counts the pictures that are painted.
PAINTS = """
    window.paints = 0;
    const put = CanvasRenderingContext2D.prototype.putImageData;
    CanvasRenderingContext2D.prototype.putImageData = function (...values) {
      window.paints++;
      return put.apply(this, values);
    };
"""


def shown(one: Opened, *parts: str) -> None:
    """Wait until the page shows a selection: its parts of the address, which is written then."""
    one.page.wait_for_function(
        "(all) => all.every((part) => panel.dataset.shown?.includes(part)) && location.hash === panel.dataset.shown",
        arg=list(parts),
    )


def a_map(count: int = 60, **more: Any) -> View:
    x = np.random.default_rng(2).normal(size=(count, 6))
    return inspect.embedding_map(x, [f"text {i}" for i in range(count)], **more)


def keys_view(length: int = 24) -> View:
    q, k = np.random.default_rng(5).normal(size=(2, 2, 2, length, 8)).astype(np.float32)
    return inspect.neurons(None, [f"t{i}" for i in range(length)], queries=q, keys=k)


# --- keys


def test_a_list_that_its_own_button_rebuilds_keeps_the_focus(open_page: Any) -> None:
    view = a_map()
    one = open_page(view)
    nearest = view.arrays["neighbours"]
    focused = "() => [...document.querySelectorAll('{} button')].indexOf(document.activeElement)"
    rows = one.page.locator(".texts tbody button")
    rows.nth(3).focus()
    one.page.keyboard.press("Enter")
    shown(one, "point=3")
    one.page.keyboard.press("ArrowDown")
    one.page.keyboard.press("Enter")
    shown(one, "point=4")
    assert one.page.evaluate(focused.format(".texts")) == 4
    one.page.locator(".neighbours li button").nth(2).focus()
    for point in (nearest[4, 2], nearest[nearest[4, 2], 2]):
        one.page.keyboard.press("Enter")
        shown(one, f"point={point}")
        assert one.page.evaluate(focused.format(".neighbours")) == 2
    one.page.get_by_role("searchbox").fill("text 5")
    shown(one, "map.find=text")
    one.page.get_by_role("button", name="Show all").press("Enter")
    one.page.wait_for_function("() => document.activeElement === document.querySelector('input[type=search]')")

    one = open_page(keys_view())
    table = one.page.locator("tbody button")
    table.nth(1).focus()
    one.page.keyboard.press("Enter")
    one.page.keyboard.press("ArrowDown")
    one.page.keyboard.press("Enter")
    name = table.nth(2).inner_text()
    shown(one, f"pair={name[1:]}")
    assert one.page.evaluate(focused.format("tbody")) == 2
    assert table.nth(2).get_attribute("aria-pressed") == "true"


def test_a_group_is_one_stop_of_the_tab_key(open_page: Any, every_view: Page) -> None:
    """However many tokens, heads and texts a view has, and whatever was chosen."""
    vocabulary = ["[UNK]", "[CLS]", "[SEP]", *(f"t{i}" for i in range(100))]
    text = " ".join(f"t{i}" for i in range(100))
    long = [
        inspect.tokens(wb.Tokenizer.from_vocab(vocabulary), text),
        inspect.attention(some_attention(100, 6, 2), [f"t{i}" for i in range(100)]),
        keys_view(100),
    ]
    for page, most in ((inspect.page(*long), 14), (every_view, 24)):
        one = open_page(page)
        for number, view in enumerate(page.views):
            one.page.locator(f"#tab-{number}").click()
            one.page.wait_for_selector(f'#panel[data-view="{view.kind}"] > [data-ready]')
            for place in (1, 4, 2):
                buttons = one.page.locator("#panel .strip button, #panel .chips .chip[aria-label], #panel .pair")
                if buttons.count() > place:
                    buttons.nth(place).click()
            one.page.wait_for_timeout(300)
            stops = one.page.evaluate(STOPS)
            assert len(stops) <= most, (view.kind, stops)
            strips = one.page.locator("#panel .strip, #panel .chips[role=group], #panel .aligned").evaluate_all(
                "all => all.map((one) => [...one.querySelectorAll('button')].filter((b) => b.tabIndex === 0).length)"
            )
            assert set(strips) <= {1}, view.kind


def test_keys_go_around_the_holes_of_a_grid(open_page: Any) -> None:
    found = inspect.intervene(loaded("bert_token_cls"), "w5 w6 w9", heads=[(0, 0), (1, 1), 1])
    one = open_page(inspect.interventions(found))
    one.page.locator('[data-set="0"]').focus()
    for key, expected in (
        ("ArrowDown", "0"),
        ("ArrowRight", "1"),
        ("ArrowRight", "2"),
        ("ArrowUp", "2"),
        ("Home", "0"),
    ):
        one.page.keyboard.press(key)
        assert one.page.evaluate("document.activeElement.dataset.set") == expected, key


def test_pictures_say_where_the_keys_are(open_page: Any) -> None:
    heads = inspect.attention(some_attention(64), [f"t{i}" for i in range(64)])
    page = inspect.page(
        inspect.similarity(np.random.default_rng(0).normal(size=(50, 6)), [f"text {i}" for i in range(50)]),
        inspect.comparison(
            inspect.compare(*(inspect.trace(loaded("bert_model"), t) for t in ("w5 w6 w7", "w5 w9 w7")))
        ),
        heads,
    )
    one = open_page(page)
    canvas = one.page.locator("canvas.matrix")
    canvas.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        one.page.keyboard.press(key)
    shown(one, "point=2", "similarity.column=1")
    box, frame = canvas.bounding_box(), one.page.locator(".heat .frame").bounding_box()
    assert frame["x"] - box["x"] == pytest.approx(box["width"] / 50, abs=1)
    assert frame["y"] - box["y"] == pytest.approx(2 * box["height"] / 50, abs=1)
    one.tab("Comparison")
    canvas = one.page.locator("canvas.matrix").last
    canvas.focus()
    one.page.keyboard.press("ArrowUp")
    shown(one, "layer=1", "comparison.layer=2")
    assert one.page.locator(".heat .frame").count() == 4
    one.tab("Attention")
    one.page.get_by_role("button", name="Zoom in").click()
    canvas = one.page.locator(".overview canvas")
    canvas.focus()
    one.page.keyboard.press("ArrowRight")
    shown(one, "attention.at=")
    top, left = map(int, re.search(r"attention.at=(\d+),(\d+)", one.page.url).groups())
    # Half of the part to the right, from the middle of the part around the pair that the view opens on.
    pair = [heads.data["telling"][name] for name in ("token", "pair")]
    rows, columns = (-(-(min(max(at - 16, 0), 32) + 8) // 8) * 8 for at in pair)
    assert (top, left) == (rows, min(columns + 8, 48))
    roles = one.page.locator("canvas[tabindex='0']").evaluate_all("all => all.map((one) => one.getAttribute('role'))")
    assert set(roles) == {"application"}


def test_a_key_moves_the_part_that_was_chosen_last_before_it_is_drawn(open_page: Any) -> None:
    one = open_page(inspect.attention(some_attention(64), [f"t{i}" for i in range(64)], layer=0))
    one.page.wait_for_selector(".overview canvas")
    one.page.evaluate("""
        () => {
          [...document.querySelectorAll("button")].find((one) => one.textContent === "Zoom in").click();
          document.querySelector(".overview canvas").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
        }
    """)
    shown(one, "attention.at=8,16")  # half of the part to the right


def test_what_is_chosen_is_seen_on_any_colour(open_page: Any) -> None:
    weights = np.zeros((1, 2, 3, 3), np.float32)
    weights[:, :, :, 1] = 1
    page = inspect.page(
        inspect.attention(weights, list("abc"), layer=0, head=0, token=1), inspect.patterns(weights, list("abc"))
    )
    one = open_page(page)
    style = (
        "one => { const s = getComputedStyle(one); return [s.backgroundColor, s.color, s.boxShadow, s.outlineStyle]; }"
    )
    ground, ink, shadow, _ = one.page.locator('.strip [aria-pressed="true"]').evaluate(style)
    assert ink in shadow
    dark = [sum(map(float, re.findall(r"[\d.]+", colour)[:3])) for colour in (ground, ink)]
    assert abs(dark[0] - dark[1]) > 250
    one.tab("Patterns")
    assert one.page.locator('.habit[aria-pressed="true"]').evaluate(style)[3] == "solid"
    assert one.page.locator('.habit[aria-pressed="false"]').first.evaluate(style)[3] == "none"


def test_tokens_stand_in_the_direction_of_their_writing(open_page: Any) -> None:
    tokens = ["[CLS]", *ARABIC, "[SEP]"]
    tok = wb.Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", *ARABIC])
    page = inspect.page(
        inspect.attention(some_attention(5), tokens),
        inspect.tokens(tok, " ".join(ARABIC)),
        inspect.tokenizers(inspect.compare_tokenizers(tok, tok, " ".join(ARABIC))),
        inspect.attention(some_attention(5), [*"abcd", ARABIC[0]]),
    )
    one = open_page(page)
    for number, group in enumerate((".strip", ".chips", ".aligned", ".strip")):
        one.page.locator(f"#tab-{number}").click()
        buttons = one.page.locator(f"#panel {group}").last.locator("button")
        buttons.first.wait_for()
        one.page.wait_for_timeout(200)
        lefts = [buttons.nth(i).bounding_box()["x"] for i in range(3)]
        assert lefts == sorted(lefts, reverse=number < 3), number
        buttons.first.focus()
        one.page.keyboard.press("ArrowLeft" if number < 3 else "ArrowRight")
        assert buttons.nth(1).evaluate("one => one === document.activeElement")
    one.page.locator("#tab-0").click()
    one.page.locator(".strip button").nth(1).hover()
    assert one.page.locator("#tip").inner_text().startswith(f"\u2068{ARABIC[0]}\u2069 · ")
    assert one.page.locator("#tip").evaluate("one => getComputedStyle(one).unicodeBidi") == "plaintext"


# --- addresses


def test_a_search_is_kept_as_it_was_written_and_is_one_step(open_page: Any) -> None:
    one = open_page(a_map())
    before = one.page.evaluate("history.length")
    search = one.page.get_by_role("searchbox")
    search.focus()
    for text in ("0", "00", "007"):
        search.press("End")
        search.press(text[-1])
        shown(one, f"map.find={text}")
    assert one.page.evaluate("history.length") == before + 1
    one.page.reload()
    one.requests.pop()
    one.ready()
    shown(one, "map.find=007")
    assert one.page.get_by_role("searchbox").input_value() == "007"
    one.page.locator("canvas.points").focus()
    one.page.get_by_role("button", name="Show all").click()
    one.page.wait_for_function("() => !location.hash.includes('find')")
    assert one.page.evaluate("history.length") == before + 2
    one.page.go_back()
    shown(one, "map.find=007")


def test_views_of_one_kind_have_choices_of_their_own(open_page: Any) -> None:
    page = inspect.page(a_map(title="first"), a_map(30, title="second"))
    one = open_page(page)
    one.page.get_by_role("searchbox").fill("text 12")
    shown(one, "map.find=text")
    one.tab("second")
    shown(one, "view=map.2")
    assert one.page.locator(".texts tbody tr").count() == 30
    one.page.get_by_role("searchbox").fill("text 2")
    shown(one, "map.2.find=text")
    assert one.page.locator(".texts tbody tr").count() == 11
    one.tab("first")
    assert one.page.locator(".texts tbody tr").count() == 1


def test_a_choice_that_was_taken_away_stays_away(open_page: Any) -> None:
    found = inspect.intervene(loaded("bert_token_cls"), "w5 w6 w9")
    layers, heads = found.shape
    trace = inspect.trace(loaded("bert_token_cls"), "w5 w6 w9")
    one = open_page(inspect.page(inspect.interventions(found), inspect.attention(trace, layer=0, head=heads - 1)))
    one.page.get_by_role("button", name=f"all heads of layer {layers - 1}").click()
    shown(one, "head=none", "interventions.of=layer")
    one.page.reload()
    one.requests.pop()
    one.ready()
    shown(one, "head=none")
    one.tab("Attention")
    settle(one, f"weights {layers - 1} 0 null")


def test_the_reader_s_theme_stays(open_page: Any) -> None:
    one = open_page(a_map(3))
    themes = []
    for is_chosen in (False, True):
        if is_chosen:
            one.page.get_by_label("Change between light and dark").click()
        for scheme in ("dark", "light"):
            one.page.emulate_media(color_scheme=scheme)
            one.page.wait_for_timeout(200)
            themes.append(one.page.evaluate("document.documentElement.dataset.theme"))
    assert themes == ["dark", "light", "dark", "dark"]


def test_a_text_that_was_cut_says_so(open_page: Any) -> None:
    model = loaded("bert_token_cls")
    trace = inspect.trace(model, "w5 w6 w7 w8 w9", max_length=5)
    page = inspect.page(inspect.attention(trace), inspect.neurons(trace), inspect.patterns(trace), a_map(3))
    one = open_page(page)
    for number, expected in enumerate((1, 1, 1, 0)):
        one.page.locator(f"#tab-{number}").click()
        one.page.wait_for_selector(f'#panel[data-view="{page.views[number].kind}"] > [data-ready]')
        assert one.page.get_by_text("its end was cut").count() == expected


# --- drawings


def test_only_what_changes_is_drawn(open_page: Any, every_view: Page) -> None:
    weights = some_attention(9, 3, 2)
    one = open_page(inspect.attention(weights, [f"t{i}" for i in range(9)]), script=PAINTS)
    one.page.wait_for_timeout(400)
    # Each thumbnail once, and few others: the matrix and the legends.
    assert one.page.evaluate("window.paints") <= 6 + 6
    one = open_page(every_view, script=PAINTS)
    for number, view in enumerate(every_view.views):
        one.page.locator(f"#tab-{number}").click()
        one.page.wait_for_selector(f'#panel[data-view="{view.kind}"] > [data-ready]')
    one.tab("Tokens")
    one.page.wait_for_timeout(500)
    height = one.page.locator("#panel").bounding_box()["height"]
    before = one.page.evaluate("window.paints")
    one.page.locator("#panel summary").first.click()
    one.page.wait_for_timeout(400)
    assert one.page.locator("#panel").bounding_box()["height"] > height
    assert one.page.evaluate("window.paints") == before
    one.page.set_viewport_size({"width": 900, "height": 900})
    one.page.wait_for_timeout(400)
    assert one.page.evaluate("window.paints") - before < 20


# --- paper


def colours_of(pdf: bytes) -> set[tuple[float, ...]]:
    """The colours that fill what a PDF draws."""
    found = set()
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL):
        try:
            text = zlib.decompress(stream)
        except zlib.error:
            continue
        for parts in re.findall(rb"([\d.]+) ([\d.]+) ([\d.]+) rg\b", text):
            found.add(tuple(round(255 * float(part)) for part in parts))
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_paper_is_light_and_has_the_colours_of_the_data(open_page: Any, scheme: str) -> None:
    vectors = np.array([[1.0, 0.0], [-1.0, 0.1], [0.5, 1.0]])
    one = open_page(inspect.similarity(vectors, ["a", "b", "c"]), scheme=scheme)
    pdf = one.page.pdf()
    assert one.page.evaluate("document.documentElement.dataset.theme") == scheme
    drawn = colours_of(pdf)
    assert (230, 237, 243) not in drawn  # the dark theme's ink
    assert (31, 35, 40) in drawn  # the light one's
    if scheme == "dark":
        one.page.get_by_label("Change between light and dark").click()
    grounds = one.page.locator("[data-cell], .bar").evaluate_all(
        "all => all.map((one) => getComputedStyle(one).backgroundColor)"
    )
    assert len(set(grounds)) >= 5
    for ground in grounds:
        assert tuple(map(int, re.findall(r"\d+", ground)[:3])) in drawn, ground


def test_paper_cuts_nothing_off_and_does_not_stay(open_page: Any, every_view: Page) -> None:
    tokens = [f"token{i}" for i in range(400)]
    page = inspect.page(
        inspect.attention(some_attention(400, 1, 1), tokens, layer=0), a_map(80), *every_view.views[-2:]
    )
    one = open_page(page, scheme="dark", script="window.print = () => dispatchEvent(new Event('beforeprint'));")
    cut = """
        () => [...document.querySelectorAll(".scroll, .strip, .aligned, .keys")]
          .filter((one) => one.scrollHeight > one.clientHeight + 1).map((one) => one.className)
    """
    one.page.locator(".take > summary").click()
    one.page.get_by_role("button", name="Print all tabs").click()
    one.page.wait_for_selector(".printing")
    one.page.wait_for_timeout(1300)
    assert one.page.locator(".printed").count() == len(page.views)
    assert one.page.evaluate("document.documentElement.dataset.theme") == "light"
    assert one.page.evaluate(cut) != []
    one.page.emulate_media(media="print")
    assert one.page.evaluate(cut) == []
    assert one.page.get_by_text("Positions 0 to 22 of 400 tokens.").is_visible()
    one.page.emulate_media(media="screen")
    one.page.evaluate("dispatchEvent(new Event('afterprint'))")
    one.page.wait_for_selector("#panel > [data-ready]")
    assert one.page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_page_that_may_not_print_comes_back(open_page: Any) -> None:
    one = open_page(inspect.page(a_map(5), keys_view()), scheme="dark", script="window.print = () => {};")
    one.page.locator(".take > summary").click()
    one.page.get_by_role("button", name="Print all tabs").click()
    one.page.wait_for_selector(".printed")
    one.page.wait_for_selector("#panel > [data-ready]", timeout=5000)
    assert one.page.locator(".printed, .printing").count() == 0
    assert one.page.evaluate("document.documentElement.dataset.theme") == "dark"


# --- taken away


def saved(one: Opened, name: str) -> bytes:
    if not one.page.locator(".take[open]").count():
        one.page.locator(".take > summary").click()
    with one.page.expect_download() as download:
        one.page.get_by_role("button", name=f"Save as {name}").click()
    one.page.keyboard.press("Escape")
    return bytes(download.value.path().read_bytes())


def test_the_svg_has_what_is_seen_and_no_more(open_page: Any, every_view: Page) -> None:
    one = open_page(every_view)
    kinds = [view.kind for view in every_view.views]

    def shapes(kind: str) -> list[tuple[str, dict[str, str], str]]:
        number = kinds.index(kind)
        one.page.locator(f"#tab-{number}").click()
        one.page.wait_for_selector(f'#panel[data-view="{kind}"] > [data-ready]')
        one.drawn()
        found = ET.fromstring(saved(one, "SVG")).iter()
        return [(each.tag.rpartition("}")[2], dict(each.attrib), each.text or "") for each in found]

    # Closed details are not drawn, open ones are.
    texts = [text for _, _, text in shapes("tokens")]
    assert "As\u00a0a\u00a0table:\u00a0positions,\u00a0characters,\u00a0words,\u00a0segments,\u00a0masks" in texts
    assert "position" not in texts
    one.page.locator("summary", has_text="As a table").first.click()
    assert "position" in [text for _, _, text in shapes("tokens")]

    # Letters that join are in one text for each token.
    assert max(len(text) for _, _, text in shapes("tokens") if text.startswith("capital")) == len("capital")

    # Lines below the groups of a comparison in their colours, and one frame.
    drawn = shapes("comparison")
    colours = one.page.locator("button.pair").evaluate_all(
        "all => all.map((one) => one.style.boxShadow.match(/rgb[^)]*\\)/)?.[0]).filter(Boolean)"
    )
    lines = [each["fill"] for tag, each, _ in drawn if tag == "rect" and each.get("height") == "4"]
    assert sorted(line.replace(",", "") for line in lines) == sorted(colour.replace(",", "") for colour in colours)
    ink = one.page.evaluate("getComputedStyle(document.body).color")
    frames = [each for tag, each, _ in drawn if tag == "rect" and each.get("stroke") == ink]
    assert len(frames) == one.page.locator('button.pair[aria-pressed="true"]').count() == 1

    focus = one.page.evaluate("""() => {
      const one = document.createElement("i");
      one.style.color = "var(--focus)";
      document.body.append(one);
      const colour = getComputedStyle(one).color;
      one.remove();
      return colour;
    }""")
    outlines = [each for tag, each, _ in shapes("attention") if tag == "rect" and each.get("stroke") == focus]
    assert len([each for each in outlines if each["stroke-width"] == "3"]) == 1
    assert {"▲\u00a0", "▼\u00a0"} & {text for _, _, text in shapes("interventions")}
    assert [tag for tag, _, _ in shapes("map")].count("polygon") + [tag for tag, _, _ in shapes("map")].count(
        "circle"
    ) >= 3
    middle = [each for tag, each, _ in shapes("saliency") if tag == "rect" and each.get("width") == "1"]
    assert len(middle) >= len(every_view.views[kinds.index("saliency")].data["tokens"])
    assert one.page.locator(".taking").count() == 0


#: The parts of arrays arrive late.
LATE = """
    const read = Response.prototype.arrayBuffer;
    Response.prototype.arrayBuffer = async function () {
      const bytes = await read.call(this);
      await new Promise((done) => setTimeout(done, 1000));
      return bytes;
    };
"""


def test_the_matrix_is_taken_and_no_other_than_the_heading_says(open_page: Any) -> None:
    weights, names = some_attention(6), [f"t{i}" for i in range(6)]
    one = open_page(inspect.attention(weights, names, layer=0, head=0, token=2), script=LATE, ready=False)
    one.page.locator(".take > summary").click()

    def check(layer: int, head: int) -> None:
        rows = list(csv.reader(io.StringIO(saved(one, "CSV").decode("utf-8-sig"), newline="")))
        assert rows[0][2] == f"Layer {layer}, head {head}: from 2 t2"
        assert rows[0][3:] == [f"matrix: to {i} t{i}" for i in range(6)]
        matrix = np.array([row[3:] for row in rows[1:]], float)
        np.testing.assert_allclose(matrix, weights[layer, head], atol=4e-3)
        np.testing.assert_allclose([float(row[2]) for row in rows[1:]], weights[layer, head, 2], atol=4e-3)

    check(0, 0)  # before the first numbers are there
    one.page.locator('[data-head="1.2"]').click()
    check(1, 2)
    shown_now = json.loads(saved(one, "JSON"))
    assert len(shown_now["columns"]) == len(shown_now["rows"][0]) == 9


def test_a_frame_of_a_notebook_copies_what_it_has(open_page: Any) -> None:
    inner = html.escape(inspect.attention(some_attention(4), list("abcd")).to_html(), quote=True)
    one = open_page(a_map(3), script=CLIPBOARD)
    frame_page = one.page.context.new_page()
    frame_page.set_content(f'<iframe srcdoc="{inner}" style="width:100%;height:800px"></iframe>')
    frame = frame_page.frames[1]
    frame.wait_for_selector("#panel > [data-ready]")
    frame.locator('[data-head="1.2"]').click()
    frame.locator(".take > summary").click()
    frame.get_by_role("button", name="Copy link").click()
    frame.get_by_text("the end of a link to the saved page").wait_for()
    assert frame.evaluate("window.copied") == ["#head=2&layer=1"]
    frame.get_by_role("button", name="Copy as PNG").click()
    frame.get_by_text("Not done: the browser lets this page copy no pictures; save it instead").wait_for()
    frame_page.close()
