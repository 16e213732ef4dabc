"""Pages of texts in Arabic, Hebrew, Chinese, Hindi and emoji: light, dark and on paper, wide and on a phone.

What is checked is geometry and colour, so it holds whichever fonts there are. The folder of the test keeps a picture of each
page, which a person can look at: ``pytest --basetemp=FOLDER``.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

import wordpiece_bert as wb
from browser_pages import open_page, some_attention
from chromium import browser, needs_chromium
from test_inspect_looks import CONTRAST, visit
from wordpiece_bert import inspect

if TYPE_CHECKING:
    from pathlib import Path

    from browser_pages import Opened
    from wordpiece_bert.inspect import Page

pytestmark = needs_chromium

#: Of each: words that the vocabulary has, pieces of a word, and a text with these, a word that is unknown and a token that
#: was added. The letters of some have marks.
SCRIPTS = {
    "arabic": (["مرحبا", "كَيْفَ", "العا", "##لَم"], "مرحبا العالَم كَيْفَ مجهول <user> (2024) مرحبا"),
    "hebrew": (["שָׁלוֹם", "עולם", "טו", "##ב"], "שָׁלוֹם עולם טוב לאידוע <user> (2024) שָׁלוֹם"),
    "chinese": (list("我喜欢北京的天气"), "我喜欢北京的天气霾 <user> 2024，我喜欢"),
    "hindi": (["नमस्ते", "दुनि", "##या", "क्षत्रिय"], "नमस्ते दुनिया क्षत्रिय अज्ञात <user> (2024) नमस्ते"),
    "emoji": (["👩‍👩‍👧", "👍🏽", "ok", "❤️", "##👩‍👩‍👧"], "👩‍👩‍👧 ok 👍🏽 🇫🇷 ❤️ <user> 👩‍👩‍👧👩‍👩‍👧 ok"),
}
RIGHT_TO_LEFT = {"arabic", "hebrew"}

#: Texts on canvases: what is below each, and whether it is within the canvas.
DRAWN = """
    window.drawn = new Map();
    const proto = CanvasRenderingContext2D.prototype;
    const { clearRect, fillRect, fillText } = proto;
    const at = (context, x, y) => {
      const p = context.getTransform().transformPoint({ x, y });
      return [p.x, p.y];
    };
    const of = (context) => {
      if (!drawn.has(context.canvas)) drawn.set(context.canvas, { rects: [], texts: [] });
      return drawn.get(context.canvas);
    };
    proto.clearRect = function (...box) {
      drawn.set(this.canvas, { rects: [], texts: [] });
      return clearRect.apply(this, box);
    };
    proto.fillRect = function (x, y, width, height) {
      of(this).rects.push([...at(this, x, y), ...at(this, x + width, y + height), this.fillStyle]);
      return fillRect.call(this, x, y, width, height);
    };
    proto.fillText = function (text, x, y) {
      const { actualBoundingBoxLeft: left, actualBoundingBoxRight: right } = this.measureText(text);
      const ends = [at(this, x - left, y), at(this, x + right, y)];
      const [px, py] = at(this, x + (right - left) / 2, y);
      const below = of(this).rects.filter(([x1, y1, x2, y2]) => px >= x1 && px <= x2 && py >= y1 && py <= y2);
      of(this).texts.push({ text, ends, ink: this.fillStyle, ground: below.at(-1)?.[4] ?? null });
      return fillText.call(this, text, x, y);
    };
"""

#: Texts on the canvases that are shown: contrast, ends in the canvas.
ON_CANVASES = """
    () => {
      const parts = (colour) => {
        const one = new OffscreenCanvas(1, 1).getContext("2d");
        one.fillStyle = colour;
        one.fillRect(0, 0, 1, 1);
        return [...one.getImageData(0, 0, 1, 1).data].slice(0, 3);
      };
      const light = (colour) => {
        const [r, g, b] = parts(colour).map((v) => (v / 255 <= 0.03928 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const found = [];
      for (const [canvas, { texts }] of drawn) {
        if (!canvas.isConnected || !canvas.checkVisibility()) continue;
        const card = getComputedStyle(canvas.closest(".card")).backgroundColor;
        for (const { text, ends, ink, ground } of texts) {
          const [a, b] = [light(ink), light(ground ?? card)].sort((x, y) => y - x);
          const isIn = ends.every(([x, y]) => x >= -2 && x <= canvas.width + 2 && y >= -30 && y <= canvas.height + 30);
          found.push({ text, contrast: (a + 0.05) / (b + 0.05), isIn });
        }
      }
      return found;
    }
"""

#: What is wrong with the places of texts: an empty list where nothing is.
PLACES = """
    () => {
      const found = [];
      const wrong = (what, one, more = "") => found.push([what, (one.textContent ?? one.data).slice(0, 40), one.className ?? "", String(more)]);
      const root = document.documentElement;
      if (root.scrollWidth > innerWidth) wrong("the page is wider than the window", document.body, root.scrollWidth);
      const lines = (node) => {
        const range = document.createRange();
        range.selectNodeContents(node);
        return [...range.getClientRects()].filter((box) => box.width > 0.5);
      };
      const clips = (one, axis) => ["hidden", "clip"].includes(getComputedStyle(one)[`overflow${axis}`]);
      const walker = document.createTreeWalker(document.getElementById("app"), NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const node = walker.currentNode;
        const element = node.parentElement;
        if (!node.data.trim() || !element.checkVisibility() || element.closest(".visually-hidden, #tip")) continue;
        const boxes = lines(node);
        if (!boxes.length) wrong("not drawn", element);
        for (let one = element; one.id !== "app"; one = one.parentElement) {
          const frame = one.getBoundingClientRect();
          const isShortened = getComputedStyle(one).textOverflow === "ellipsis" && element.title;
          for (const box of boxes) {
            if (clips(one, "X") && !isShortened && (box.left < frame.left - 1 || box.right > frame.right + 1)) wrong("cut at a side", element);
            if (clips(one, "Y") && (box.top < frame.top - 1 || box.bottom > frame.bottom + 1)) wrong("cut above or below", element);
          }
        }
      }
      // The characters of a token stand together, on one line, and are isolated from what is beside them.
      for (const one of document.querySelectorAll("#panel .token")) {
        if (!one.checkVisibility()) continue;
        const tops = lines(one).map((box) => box.top);
        if (Math.max(...tops) - Math.min(...tops) > 12) wrong("a token on two lines", one, tops);
        const isolates = ["isolate", "plaintext", "isolate-override"].includes(getComputedStyle(one).unicodeBidi);
        if (!isolates && !one.matches("td, bdi")) wrong("not isolated", one, getComputedStyle(one).unicodeBidi);
      }
      // Nothing is between the characters of a piece of a text.
      for (const text of document.querySelectorAll("#panel .text")) {
        const boxes = [...text.children].flatMap((one, i) => lines(one).map((box) => ({ i, box })));
        for (const { i, box } of boxes) {
          for (const next of boxes) {
            if (next.i !== i || next.box.left <= box.left || Math.abs(next.box.top - box.top) > 3) continue;
            for (const other of boxes) {
              const middle = (other.box.left + other.box.right) / 2;
              const isBetween = middle > box.right - 1 && middle < next.box.left + 1 && Math.abs(other.box.top - box.top) < 3;
              if (other.i !== i && isBetween) wrong("a piece is divided", text.children[i], text.children[other.i].textContent);
            }
          }
        }
        const whole = text.textContent;
        const starts = new Set([...new Intl.Segmenter().segment(whole)].map((one) => one.index));
        let at = 0;
        for (const one of text.childNodes) {
          if (!starts.has(at)) wrong("a character is divided", one);
          at += one.textContent.length;
        }
      }
      return found;
    }
"""

#: The places of elements from left to right, line after line: [line, left] of each.
ORDER = """
    all => all.map((one) => {
      const box = one.getBoundingClientRect();
      return [one.textContent, Math.round((box.top + box.height / 2) / 14), box.left];
    })
"""


def page_of(script: str) -> Page:
    words, text = SCRIPTS[script]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    # Nothing is lowered, stripped or removed, so that letters keep their marks, and emoji what joins them.
    tokenizer = wb.Tokenizer.from_vocab([*special, *words, "2024", "(", ")", ","], lowercase=False, clean_text=False)
    tokenizer = tokenizer.with_added_tokens(["<user>"])
    letters = sorted({*text.replace(" ", ""), "2", "0", "4"})
    other = wb.Tokenizer.from_vocab(
        [*special, *letters, *(f"##{one}" for one in letters)], lowercase=False, clean_text=False
    )
    encoding = tokenizer.encode(text)
    assert {"[UNK]", "<user>"} <= set(encoding.tokens)
    return inspect.page(
        inspect.tokens(tokenizer, text, beside=other),
        inspect.attention(some_attention(len(encoding)), encoding.tokens, token=1),
        inspect.similarity(some_attention(6)[0, 0], [text, *encoding.tokens[1:6]]),
        inspect.tokenizers(inspect.compare_tokenizers(tokenizer, other, text)),
        title=text,
    )


def check_look(one: Opened) -> None:
    one.drawn()
    assert one.page.evaluate(PLACES) == []
    assert one.page.evaluate(CONTRAST) == []
    drawn = one.page.evaluate(ON_CANVASES)
    assert [text for text in drawn if text["contrast"] < 4.5 or not text["isIn"]] == []


def check_order(one: Opened, selector: str, *, to_the_left: bool) -> None:
    """Elements of one line follow each other in the direction of their writing."""
    places = one.page.locator(selector).evaluate_all(ORDER)
    assert len(places) > 4
    pairs = [(a, b) for a, b in pairwise(places) if a[1] == b[1]]
    assert pairs
    for a, b in pairs:
        assert (a[2] > b[2]) == to_the_left, (a, b)


@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("script", SCRIPTS)
def test_texts_of_a_script(open_page: Any, tmp_path: Path, script: str, width: int) -> None:
    page, words = page_of(script), SCRIPTS[script][0]
    one = open_page(page, width, script=DRAWN)
    assert one.page.evaluate("document.fonts.status") == "loaded"
    for view in visit(one, page):
        for look in ("light", "dark", "paper"):
            if look == "paper":
                # Dark pages are printed, too. The paper of a phone is as wide as any other: A4 within its margins.
                one.page.evaluate("dispatchEvent(new Event('beforeprint'))")
                one.page.emulate_media(media="print")
                one.page.set_viewport_size({"width": 726, "height": 1050})
            else:
                one.page.emulate_media(media="screen", color_scheme=look)
            theme = "dark" if look == "dark" else "light"
            one.page.wait_for_selector(f':root[data-theme="{theme}"]')
            one.page.screenshot(path=tmp_path / f"{script}-{width}-{view.kind}-{look}.png", full_page=True)
            check_look(one)
        one.page.evaluate("dispatchEvent(new Event('afterprint'))")
        one.page.emulate_media(media="screen", color_scheme="light")
        one.page.set_viewport_size({"width": width, "height": 900})
        is_left = script in RIGHT_TO_LEFT
        if view.kind == "tokens":
            if script == "emoji":  # what joins emoji is seen by its code where it joins nothing
                assert "##[U+200D]" in one.page.locator("#panel .card").last.locator(".chip .token").all_inner_texts()
            chips = one.page.locator("#panel .card").first.locator(".chips").last
            assert {"[UNK]", "<user>", words[0]} <= set(chips.locator(".token").all_inner_texts())
            check_order(one, "#panel .card:first-child .step:last-of-type .chip", to_the_left=is_left)
            pieces = one.page.locator("#panel .card").first.locator(".text .piece")
            assert pieces.locator("xpath=self::*[contains(@class, 'unknown')]").count() >= 1
            assert words[0] in pieces.all_inner_texts()
        if view.kind == "attention":
            check_order(one, "#panel .strip .token", to_the_left=is_left)
        if view.kind == "tokenizers":
            check_order(one, "#panel .aligned .pair", to_the_left=is_left)
