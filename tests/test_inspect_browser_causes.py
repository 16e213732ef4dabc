"""Attribution, interventions and comparisons in a real browser: what is shown beside the arrays, clicks, keys, reloads.

It needs what `test_inspect_browser` needs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import wordpiece_bert as wb
from browser_pages import HOSTILE, open_page
from chromium import browser, needs_chromium
from test_inspect_attribution import sentences
from test_inspect_trace import loaded
from wordpiece_bert import inspect

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = needs_chromium

TEXT = "w5 w6 [MASK] w9"


def shown(one: Any, *parts: str) -> None:
    """Wait until the page shows a selection: its parts of the address."""
    for part in parts:
        one.page.wait_for_function("(part) => document.getElementById('panel').dataset.shown?.includes(part)", arg=part)


def bars_of(one: Any, heading: str) -> list[float]:
    """The numbers of the bars below a heading, once it is there."""
    one.page.get_by_role("heading", name=heading).wait_for()
    found = one.page.evaluate(
        "(name) => [...document.querySelectorAll('h3')].find((h) => h.textContent.startsWith(name)).parentElement"
        ".querySelectorAll('.bars .number').values().map((e) => e.textContent).toArray()",
        heading,
    )
    return [float(text) for text in found]


def close(found: Sequence[float], expected: Any, atol: float = 5.1e-4) -> None:
    np.testing.assert_allclose(found, expected, atol=atol)


def test_every_attribution_and_layer_shows_its_numbers(open_page: Any) -> None:
    one = loaded("bert_seqcls_single")
    found = [
        inspect.attribute(one, TEXT, method=method, layers=True)  # type: ignore[arg-type]
        for method in ("occlusion", "gradient", "input_x_gradient", "integrated_gradients")
    ]
    page = open_page(inspect.saliency(found))
    for index, each in enumerate(found):
        page.page.get_by_role("radio", name=f"{each.target}, {each.method.replace('_', ' ')}").click()
        if index:
            shown(page, f"saliency.of={index}")
        close(bars_of(page, "Effect of each token:"), each.effect)
        assert each.layers is not None
        for layer in range(len(each.layers)):
            page.page.get_by_role("button", name=re.compile(f"^Layer {layer}, w6")).click()
            shown(page, "saliency.at=layer", f"layer={layer - 1}", "token=2")
            name = "vectors of layer 0 (embeddings)" if layer == 0 else f"vectors of layer {layer}"
            close(bars_of(page, f"Effect of each token, {name}"), each.layers[layer])
            assert each.layer_gaps is None or f"{each.layer_gaps[layer, 0]:.1e}"[:4] in page.page.locator(
                "[data-role=gap]"
            ).inner_text().replace("e-0", "e-")
        page.page.get_by_role("radio", name="words", exact=True).click()
    last = found[-1]
    assert "Gap to completeness" in page.page.locator("[data-role=gap]").inner_text()
    page.page.get_by_role("button", name=re.compile("^Layer 1, w9")).press("Enter")
    shown(page, "layer=0", "token=4")
    page.page.wait_for_function("() => location.hash.includes('token=4')")
    page.page.reload()
    page.ready()
    page.requests.pop()  # the page itself, again
    shown(page, "saliency.of=3", "layer=0", "token=4")
    assert last.layers is not None
    close(bars_of(page, "Effect of each token, vectors of layer 1"), last.layers[1])
    assert page.page.locator('.strip [aria-pressed="true"]').all_inner_texts() == ["w9"]


def test_the_cosine_of_two_sentences_has_both(open_page: Any) -> None:
    found = inspect.attribute(sentences(), "w5 w6", "w9 w5 w6", method="integrated_gradients")
    page = open_page(inspect.saliency(found))
    close(bars_of(page, "Effect of each token:"), found.effect)
    lines = page.page.locator(".strip")
    assert [line.locator("button").count() for line in lines.all()] == [4, 5]
    assert f"cosine {found.score:.3f}" in page.page.locator("h2").first.inner_text()
    assert page.page.locator("[data-role=gap]").inner_text().count("e") >= 2
    page.page.get_by_role("button", name="w9, position 1").click()
    shown(page, "token=5")


@pytest.mark.parametrize(
    "folder", ["bert_seqcls_single", "bert_token_cls", "bert_question_answering", "bert_masked_lm"]
)
def test_every_head_shows_what_the_model_says(open_page: Any, folder: str) -> None:
    found = inspect.intervene(loaded(folder), TEXT)
    page = open_page(inspect.interventions(found))
    ofs = {tuple(heads[0]) if len(heads) == 1 else (heads[0][0], "all"): i for i, heads in enumerate(found.heads)}
    for (layer, head), index in ofs.items():
        page.page.locator(f'[data-set="{index}"]').click()
        shown(page, f"layer={layer}", "interventions.of=layer" if head == "all" else f"head={head}")
        row = int(np.abs(found.after[index] - found.before).sum(axis=1).argmax()) if len(found.rows) > 1 else 0
        page.page.wait_for_function(
            "(text) => document.querySelector('[data-role=moved]').textContent.includes(text)",
            arg=f"position {row}, " if len(found.rows) > 1 else "moves by",
        )
        cells = page.page.locator("td:nth-child(3), td:nth-child(4)").filter(has=page.page.locator("span.number"))
        numbers = np.array([float(text) for text in cells.all_inner_texts()]).reshape(-1, 2)
        close(numbers[:, 0], found.before[row])
        close(numbers[:, 1], found.after[index, row])
        title = page.page.locator("[data-role=moved]").locator("xpath=preceding-sibling::h2").inner_text()
        assert (f"all heads of layer {layer}" if head == "all" else f"layer {layer}, head {head}") in title


def test_neighbours_move_and_keys_choose(open_page: Any) -> None:
    beside = ["w5 w6 w9", "w8 w9", "w7"]
    found = inspect.intervene(sentences(), "w5 w6 w7", beside=beside, heads=[(0, 0), [(0, 0), (1, 1)], 1])
    page = open_page(inspect.interventions(found))
    page.page.locator('[data-set="1"]').click()
    shown(page, "interventions.set=1")
    rows = page.page.locator("tbody").last.locator("tr").all()
    order = np.argsort(-found.after[1, 0, 1:], kind="stable")
    names = [row.locator("bdi").inner_text() for row in rows]
    assert names == ["itself:␣w5␣w6␣w7", *(beside[i].replace(" ", "␣") for i in order)]
    before = {beside[i]: place + 1 for place, i in enumerate(np.argsort(-found.before[0, 1:], kind="stable"))}
    for place, (row, i) in enumerate(zip(rows[1:], order, strict=True), 1):
        was = before[beside[i]]
        assert row.locator("td").last.inner_text() == (str(place) if was == place else f"{was} → {place}")
    page.page.locator('[data-set="0"]').focus()
    page.page.keyboard.press("Enter")
    shown(page, "head=0")
    assert "layer 0, head 0" in page.page.locator("h2").last.inner_text()


def test_two_texts_are_compared_cell_by_cell(open_page: Any) -> None:
    one = loaded("bert_model")
    found = inspect.compare(inspect.trace(one, "w5 w6 w7 w8"), inspect.trace(one, "w5 w9 w7"))
    page = open_page(inspect.page(inspect.comparison(found), inspect.attention(inspect.trace(one, "w5 w6 w7 w8"))))
    layers, heads = found.attentions[0].shape[:2]
    assert page.page.locator(".pair.other").locator("visible=true").count() >= 1
    assert page.page.locator("button.pair.alone").all_inner_texts() == ["w8\n–"]
    for layer in range(layers):
        for head in range(heads):
            page.page.locator(f'[data-head="{layer}.{head}"]').click()
            page.page.locator('button.pair[data-group="2"]').click()
            shown(page, f"layer={layer}", f"head={head}", "token=2")
            change = found.attentions[1][layer, head, 2] - found.attentions[0][layer, head, 2]
            order = np.argsort(-np.abs(change), kind="stable")[:8]
            # A byte for each weight.
            close(sorted(bars_of(page, "From \u2068w6 / w9\u2069")), sorted(change[order].tolist()), 5e-3)
    # The second may show another layer; the keys move in the picture of the difference.
    page.page.get_by_label("layer of the second").select_option("0")
    shown(page, "comparison.layer=0")
    canvas = page.page.locator("canvas.matrix").nth(2)
    canvas.focus()
    page.page.keyboard.press("ArrowRight")
    shown(page, "token=2", "pair=1")
    layer, head = layers - 1, heads - 1
    a, b = found.attentions[0][layer, head, 2, 1], found.attentions[1][0, head, 2, 1]
    text = page.page.locator("[data-role=pair]").inner_text()
    assert [float(value) for value in re.findall(r"-?\d\.\d{3}", text)] == pytest.approx([a, b, b - a], abs=5e-3)
    # The same head and token in the other tab.
    page.tab("Attention")
    page.page.locator("h2", has_text=f"Layer {layer}, head {head}").first.wait_for()


def test_two_tokenizers_word_by_word(open_page: Any) -> None:
    whole = wb.Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "new", "yorker", "in"])
    pieces = wb.Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "new", "york", "##er"])
    page = open_page(inspect.tokenizers(inspect.compare_tokenizers(whole, pieces, "New Yorker in", names=("a", "b"))))
    assert "1.00 a word" in page.page.locator("[data-role=counts]").inner_text()
    assert "1.33 a word, 1 unknown" in page.page.locator("[data-role=counts]").inner_text()
    assert page.page.locator("tr.differs").all_inner_texts() == ["Yorker\t1\t2\t+1"]
    page.page.locator('[data-group="1"]').click()
    shown(page, "tokenizers.group=1")
    page.page.get_by_text("\u2068a\u2069: \u2068yorker\u2069 · \u2068b\u2069: \u2068york ##er\u2069").wait_for()
    page.page.keyboard.press("ArrowRight")
    page.page.keyboard.press("Enter")
    page.page.get_by_text("\u2068[UNK] (unknown)\u2069").wait_for()


@pytest.mark.parametrize("width", [390, 1400])
def test_any_text_stays_text_and_fits(open_page: Any, width: int) -> None:
    tok = wb.Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "سلام", "שלום", "你", "नमस्ते"])
    text = f"سلام שלום 你好 नमस्ते 🙂 {HOSTILE}"
    found = inspect.compare_tokenizers(tok, tok, text, names=("سلام", HOSTILE))
    page = open_page(inspect.tokenizers(found), width=width)
    assert page.page.title() != "broken"
    assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
