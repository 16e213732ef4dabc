"""The chosen text in the pages of `wordpiece_bert.inspect`: one choice for all tabs, kept in the address.

It needs what `test_inspect_browser` needs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from browser_pages import open_page
from chromium import browser, needs_chromium
from test_inspect_attribution import sentences
from test_inspect_trace import loaded
from wordpiece_bert import inspect

if TYPE_CHECKING:
    from browser_pages import Opened
    from wordpiece_bert.inspect import Page

pytestmark = needs_chromium

TEXTS = ["w5 w6 w7", "w8 w9", "w9 w7 w6 w5"]


@pytest.fixture(scope="module")
def page() -> Page:
    traces = [inspect.trace(loaded("bert_model"), text) for text in TEXTS]
    vectors = np.random.default_rng(4).normal(size=(5, 6))
    labels = ["another", TEXTS[2], TEXTS[0], "one more", TEXTS[1]]
    return inspect.page(
        [inspect.attention(one, layer=1, head=1) for one in traces],
        [inspect.neurons(one) for one in traces],
        [inspect.patterns(one) for one in traces[:2]],
        inspect.similarity(vectors, labels),
        inspect.embedding_map(vectors, labels, neighbours=2),
        inspect.comparison(inspect.compare(traces[0], traces[2])),
    )


def shown(one: Opened, *parts: str) -> None:
    """Wait until the page shows a selection: its parts of the address, which is written then."""
    one.page.wait_for_function(
        "(all) => all.every((part) => panel.dataset.shown?.split(/[#&]/).includes(part))"
        " && location.hash === panel.dataset.shown",
        arg=list(parts),
    )


def tokens(one: Opened) -> list[str]:
    return list(one.page.locator("#panel .strip").first.locator("button").all_inner_texts())


def chosen_text(one: Opened) -> str:
    return str(one.page.get_by_label("Text", exact=True).evaluate("(list) => list.selectedOptions[0].textContent"))


def expected(text: str) -> list[str]:
    return ["[CLS]", *text.split(), "[SEP]"]


def test_a_text_is_chosen_for_all_tabs(open_page: Any, page: Page) -> None:
    one = open_page(page)
    assert [len(names) for names in (one.page.get_by_role("tab").all(), page.views)] == [6, 11]
    assert tokens(one) == expected(TEXTS[0])
    one.page.get_by_label("Text", exact=True).select_option(TEXTS[1])
    shown(one, "text=1", "point=4")
    assert tokens(one) == expected(TEXTS[1])
    one.tab("Queries and keys")
    shown(one, "text=1", "view=neurons")
    assert tokens(one) == expected(TEXTS[1])
    assert chosen_text(one) == TEXTS[1]
    # The head is chosen for all texts, too.
    one.page.get_by_role("radio", name="0", exact=True).last.click()
    shown(one, "head=0", "text=1")
    one.page.get_by_label("Text", exact=True).select_option(TEXTS[2])
    shown(one, "head=0", "text=2", "point=1")
    assert one.page.locator("#panel h2").first.inner_text().startswith("Layer 1, head 0:")
    # A tab that has not the text shows its first.
    one.tab("Patterns")
    shown(one, "text=2", "view=patterns")
    assert chosen_text(one) == TEXTS[0]


def test_a_row_chooses_its_text_and_a_text_its_row(open_page: Any, page: Page) -> None:
    one = open_page(page)
    one.tab("Similarity")
    assert not one.page.get_by_label("Text", exact=True).is_visible()
    one.page.get_by_role("button", name=TEXTS[2], exact=True).click()
    shown(one, "point=1", "text=2")
    one.tab("Attention")
    shown(one, "text=2", "view=attention")
    assert tokens(one) == expected(TEXTS[2])
    one.page.get_by_label("Text", exact=True).select_option(TEXTS[0])
    shown(one, "point=2", "text=0")
    one.tab("Map")
    shown(one, "view=map")
    assert one.page.locator(".neighbours h3").inner_text() == TEXTS[0]
    # A row that no other tab is about leaves the text.
    one.page.locator(".texts tbody button").first.click()
    shown(one, "point=0", "text=0")


def test_the_text_is_kept_by_reload_back_and_a_link(open_page: Any, page: Page) -> None:
    one = open_page(page)
    for text in (1, 2):
        one.page.get_by_label("Text", exact=True).select_option(TEXTS[text])
        shown(one, f"text={text}")
    one.page.reload()
    one.requests.pop()
    one.ready()
    shown(one, "text=2")
    assert tokens(one) == expected(TEXTS[2])
    address = one.page.url
    one.page.go_back()
    shown(one, "text=1")
    assert tokens(one) == expected(TEXTS[1])
    assert chosen_text(one) == TEXTS[1]
    one.page.goto("about:blank")
    one.page.goto(address)
    one.ready()
    shown(one, "text=2")
    assert tokens(one) == expected(TEXTS[2])
    one.requests[:] = one.requests[:1]


def test_tokens_of_a_comparison_are_of_the_chosen_text(open_page: Any, page: Page) -> None:
    one = open_page(page)
    groups, units = (page.views[-1].data[name] for name in ("groups", "units"))
    one.tab("Comparison")
    alone = next(number for number, (left, right) in enumerate(groups) if right and not left)
    one.page.locator(f'[data-group="{alone}"]').click()
    shown(one, "text=2", f"token={groups[alone][1][0]}")
    assert one.page.locator('[data-group][aria-pressed="true"]').get_attribute("data-group") == str(alone)
    assert "Only in the second" in one.page.locator('[data-role="pair"]').inner_text()
    # Choices stay in the second text.
    both = next(number for number in units if groups[number][0] != groups[number][1])
    one.page.locator(f'[data-group="{both}"]').click()
    shown(one, "text=2", f"token={groups[both][1][0]}")
    one.tab("Attention")
    shown(one, "view=attention")
    place = groups[both][1][0]
    assert one.page.locator('.strip [aria-pressed="true"]').inner_text() == expected(TEXTS[2])[place]
    one.page.get_by_label("Text", exact=True).select_option(TEXTS[0])
    one.tab("Comparison")
    shown(one, "text=0", "view=comparison")
    first = next(number for number, (left, _) in enumerate(groups) if place in left)
    assert one.page.locator('[data-group][aria-pressed="true"]').get_attribute("data-group") == str(first)


def test_answers_of_several_texts_are_chosen_by_text(open_page: Any) -> None:
    encoder = sentences()
    pairs = [("w5 w6", "w7"), ("w5 w6", "w8 w9")]
    found = [inspect.attribute(encoder, *pairs[0])]
    found += [inspect.attribute(encoder, *pairs[1]), inspect.attribute(encoder, *pairs[1], method="gradient")]
    one = open_page(inspect.saliency(found))
    assert one.page.get_by_role("radiogroup", name="Explained").count() == 0
    one.page.get_by_label("Text", exact=True).select_option("w5 w6 · w8 w9")
    shown(one, "text=1")
    one.page.get_by_role("radio", name="cosine, gradient").click()
    shown(one, "text=1", "saliency.of=1")
    numbers = one.page.locator(".bars .number").all_inner_texts()[-len(found[2].effect) :]
    assert [float(number) for number in numbers] == pytest.approx(found[2].effect.tolist(), abs=6e-4)
    one.page.get_by_label("Text", exact=True).select_option("w5 w6 · w7")
    shown(one, "text=0", "saliency.of=1")
    numbers = one.page.locator(".bars .number").all_inner_texts()[-len(found[0].effect) :]
    assert [float(number) for number in numbers] == pytest.approx(found[0].effect.tolist(), abs=6e-4)


def test_what_is_taken_names_the_text(open_page: Any, page: Page) -> None:
    one = open_page(page)
    one.page.get_by_label("Text", exact=True).select_option(TEXTS[1])
    shown(one, "text=1")
    one.page.locator(".take > summary").click()
    with one.page.expect_download() as download:
        one.page.get_by_role("button", name="Save as JSON").click()
    taken = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert taken["text"] == TEXTS[1]
    assert taken["selection"]["text"] == 1
    assert len(taken["rows"]) == len(expected(TEXTS[1]))
