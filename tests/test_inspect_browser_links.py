"""Links of attention in a browser: what a page opens on and why, which heads link two words, and names in lists and axes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from browser_pages import Opened, open_page, settle, some_attention
from chromium import browser, needs_chromium
from test_inspect_trace import loaded
from wordpiece_bert import inspect
from wordpiece_bert.bert.functional import softmax

pytestmark = needs_chromium

ARABIC = ["مرحبا", "العالم", "كيف", "الحال", "مرحبا"]


def plain(text: str) -> str:
    return text.replace("\u2068", "").replace("\u2069", "")


def coloured(one: Opened) -> dict[tuple[int, int], float]:
    """The weight that each head of the grid says, once all are coloured."""
    one.page.wait_for_selector(".heads.linked")
    one.page.wait_for_function(
        "() => [...document.querySelectorAll('[data-head]')].every((one) => one.style.backgroundColor && /: /.test(one.ariaLabel))"
    )
    labels = one.page.locator("[data-head]").evaluate_all("all => all.map((one) => [one.dataset.head, one.ariaLabel])")
    return {(int(h.split(".")[0]), int(h.split(".")[1])): float(label.split(": ")[1]) for h, label in labels}


def luminance(one: Opened, head: str) -> float:
    colour = one.page.locator(f'[data-head="{head}"]').evaluate("one => getComputedStyle(one).backgroundColor")
    return sum(map(int, re.findall(r"\d+", colour)[:3]))


def test_the_page_opens_on_a_link_and_says_why(open_page: Any) -> None:
    weights, names = some_attention(9), [f"t{i}" for i in range(9)]
    view = inspect.attention(weights, names)
    layer, head, query, key = (view.data["telling"][name] for name in ("layer", "head", "token", "pair"))
    one = open_page(view)
    settle(one, f"weights {layer} {head} {query}")
    why = plain(one.page.locator("[data-why]").inner_text())
    others = np.delete(weights[layer, head, :, key], query)
    assert why.startswith("The view opens here, on the link that stands out most. ")
    given = re.findall(r"“(t\d)” gives (?:“t\d”|it) (\d\.\d+)", why)
    assert given[0][0] == f"t{query}"
    assert float(given[0][1]) == pytest.approx(weights[layer, head, query, key], abs=0.006)
    assert float(given[1][1]) == pytest.approx(others.max(), abs=0.006)
    assert "more than any other token does" in why
    # What is chosen replaces it, and another token has no pair.
    one.page.get_by_role("button", name=f"t{(query + 1) % 9}, position {(query + 1) % 9}").click()
    settle(one, f"weights {layer} {head} {(query + 1) % 9}")
    assert one.page.locator("[data-why]").is_hidden()
    assert one.page.locator(".heads.linked").count() == 0


def test_a_pair_colours_the_heads_by_what_they_give(open_page: Any) -> None:
    weights, names = some_attention(9, layers=3, heads=4), [f"t{i}" for i in range(9)]
    one = open_page(inspect.attention(weights, names, layer=0, head=0, token=2))
    one.page.locator(".ranking .bars button").first.click()
    key = int(weights[0, 0, 2].argmax())
    found = coloured(one)
    for (layer, head), value in found.items():
        assert value == pytest.approx(
            weights[layer, head, 2, key], abs=float(weights[layer, head, 2].max()) / 255 + 5e-4
        )
    best = max(found, key=found.__getitem__)
    least = min(found, key=found.__getitem__)
    assert luminance(one, "{}.{}".format(*best)) < luminance(one, "{}.{}".format(*least))
    # Outlined are the heads in which no token gives the key more.
    first = one.page.locator(".heads button.first").evaluate_all("all => all.map((one) => one.dataset.head)")
    for layer, head in found:
        column = weights[layer, head, :, key]
        if column[2] == column.max() and column[2] > max(found.values()) / 10:
            assert f"{layer}.{head}" in first
        elif column[2] < 0.9 * column.max():
            assert f"{layer}.{head}" not in first
    rows = one.page.locator('section[aria-label="All heads"] table tbody tr').all_inner_texts()
    assert rows[0].split("\t")[0] == "layer {}, head {}".format(*best)
    one.page.get_by_role("button", name="layer {}, head {}".format(*best), exact=True).click()
    settle(one, "weights {} {} 2".format(*best))
    assert coloured(one) == found
    one.page.get_by_role("radio", name="their matrices").click()
    one.page.wait_for_function("() => !document.querySelector('.heads.linked')")
    assert one.page.locator('[data-head="0.0"]').evaluate("one => one.style.backgroundColor") == ""
    one.page.get_by_role("radio", name="the chosen link").click()
    assert coloured(one) == found


@pytest.mark.parametrize("with_vectors", [False, True])
def test_a_pair_of_a_long_text_colours_the_heads(open_page: Any, with_vectors: bool) -> None:
    from test_inspect_attention import trace_of

    rng = np.random.default_rng(11)
    q, k = rng.normal(size=(2, 2, 3, 140, 16)).astype(np.float32)
    weights, names = softmax(q @ k.swapaxes(-1, -2) / np.float32(2)), [f"t{i}" for i in range(140)]
    q, k = q * np.sqrt(np.float32(2)), k * np.sqrt(np.float32(2))
    trace = trace_of(weights, names, list(range(140)))
    trace = type(trace)(**{**vars(trace), "queries": q, "keys": k})
    views = [inspect.attention(trace), *([inspect.neurons(trace)] if with_vectors else [])]
    page = inspect.page(*views)
    assert f'"encoding":"{"softmax" if with_vectors else "scores"}"' in page.to_html().replace(" ", "")
    one = open_page(page)
    query, key = (views[0].data["telling"][name] for name in ("token", "pair"))
    for (layer, head), value in coloured(one).items():
        assert value == pytest.approx(
            weights[layer, head, query, key], abs=float(weights[layer, head, query].max()) / 35 + 5e-4
        )


def test_heads_of_a_pair_by_keyboard_on_a_phone_and_in_the_dark(open_page: Any) -> None:
    one = open_page(inspect.attention(some_attention(6), list("abcdef"), layer=0, head=1, token=0), 390, "dark")
    one.page.locator(".ranking .bars button").first.focus()
    one.page.keyboard.press("Enter")
    coloured(one)
    assert one.page.evaluate("document.activeElement.closest('.ranking') !== null")
    one.page.locator('section[aria-label="All heads"] table button').first.focus()
    one.page.keyboard.press("ArrowDown")
    one.page.keyboard.press("Enter")
    one.page.wait_for_selector(".view-attention[data-state]")
    assert one.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_lists_have_positions_where_a_token_occurs_twice(open_page: Any) -> None:
    names = ["the", "cat", "the", "mat", "!"]
    weights = (some_attention(5) + 0.2) / 2
    rng = np.random.default_rng(12)
    q, k = rng.normal(size=(2, 2, 3, 5, 8)).astype(np.float32)
    one = open_page(
        inspect.page(
            inspect.attention(weights, names, layer=0, head=0, token=1), inspect.neurons(None, names, queries=q, keys=k)
        )
    )
    shown = set(one.page.locator(".ranking .bars .token").all_inner_texts())
    assert {"the (0)", "the (2)", "cat", "mat"} <= shown
    assert "the" not in shown
    one.tab("Queries and keys")
    keys = one.page.locator("#panel table tbody tr > td:first-child").all_inner_texts()
    assert keys == ["the (0)", "cat", "the (2)", "mat", "!"]


def test_the_axes_of_a_comparison_have_tokens(open_page: Any) -> None:
    model = loaded("bert_model")
    one = open_page(inspect.comparison(inspect.compare(model, model, text="w5 w6 w5 w8", other="w5 w9 w5")))
    found = one.page.locator(".axes").evaluate_all(
        "all => all.map((one) => [...one.querySelectorAll('.axis')].map((axis) => [...axis.children].map((name) => name.textContent)))"
    )
    assert len(found) == 3
    assert found[0] == [["[CLS]", "w5 (1)", "w6", "w5 (3)", "[SEP]"]] * 2
    assert found[1] == [["[CLS]", "w5 (1)", "w9", "w5 (3)", "[SEP]"]] * 2
    assert found[2][0][2] == "w6 / w9"
    # Each name stands beside the middle of its row, and above the middle of its column.
    for side, middle in (("beside", "y"), ("above", "x")):
        boxes = one.page.locator(f".axes >> nth=0 >> .axis.{side} > span").evaluate_all(
            "all => all.map((one) => one.getBoundingClientRect())"
        )
        picture = one.page.locator(".axes canvas").first.bounding_box()
        size = "height" if middle == "y" else "width"
        for i, box in enumerate(boxes):
            assert box[middle] + box[size] / 2 == pytest.approx(picture[middle] + picture[size] * (i + 0.5) / 5, abs=3)


def test_tables_of_tokens_from_right_to_left(open_page: Any) -> None:
    view = inspect.View(
        "lens",
        "Lens",
        {"tokens": ARABIC, "words": [[["a"]] * 5] * 2, "mask": None, "truncated": False},
        {"probabilities": np.full((2, 5, 1), 0.5, np.float32), "own": np.full((2, 5), 0.25, np.float32)},
    )
    one = open_page(view)
    heads = one.page.locator("#panel thead th").evaluate_all(
        "all => all.map((one) => [one.textContent, one.getBoundingClientRect().x])"
    )
    assert [name for name, _ in heads] == ["layer", "مرحبا (0)", *ARABIC[1:4], "مرحبا (4)"]
    places = [x for _, x in heads]
    assert places == sorted(places, reverse=True)
    one.page.locator("#panel td button").first.focus()
    one.page.keyboard.press("ArrowLeft")
    one.page.keyboard.press("Enter")
    one.page.wait_for_function("() => document.querySelector('h3').textContent.includes('position 1')")


def test_a_page_of_predictions_opens_on_the_mask(open_page: Any, tmp_path: Any) -> None:
    import tiny_models

    folder = tiny_models.make_words(tmp_path / "words")
    text = "the capital of france is [MASK]"
    one = open_page(inspect.page(inspect.logit_lens(folder, text), inspect.predictions(folder, text)))
    assert "position 6" in one.page.locator("#panel h3").first.inner_text()
    one.tab("Predictions")
    assert "Position 6" in plain(one.page.locator("#panel h2").nth(1).inner_text())


def test_patterns_of_one_text_have_no_measure_of_a_pair(open_page: Any) -> None:
    names = ["[CLS]", "a", "[SEP]", "b", "[SEP]"]
    for pair, count in ((None, 0), ([None, 0, None, 1, None], 2)):
        one = open_page(inspect.patterns(some_attention(5), names, sentence_ids=pair))
        said = one.page.locator("#panel").inner_text()
        assert said.count("same sentence") >= count
        assert ("same sentence" in said) == bool(count)
        assert ("is measured of a pair of texts" in said) != bool(count)
        assert "No habit reaches its threshold." in said
    rows = np.full((5, 5), 0.125)
    rows[np.arange(1, 5), np.arange(4)] = 0.5
    one = open_page(inspect.patterns(rows[None, None] / rows.sum(axis=1, keepdims=True), names, word_ids=range(5)))
    assert "of the weight goes to the token before, a mean over" in one.page.locator("#panel").inner_text()


def test_one_of_a_thing_is_in_the_singular(open_page: Any, tmp_path: Any) -> None:
    import wordpiece_bert as wb

    tok = wb.Tokenizer.from_vocab(["[UNK]", "cafe"])
    one = open_page(
        inspect.page(inspect.tokens(tok, "café"), inspect.tokenizers(inspect.compare_tokenizers(tok, tok, "cafe")))
    )
    said = one.page.locator("#panel").inner_text()
    assert "1 token " in said
    assert "1 character was changed or removed" in said
    one.tab("Tokenizers")
    assert "1 token, 1.00 a word" in one.page.locator("[data-role=counts]").inner_text()
    assert not re.search(r"\b1 (tokens|characters|texts|units)\b", said)


def test_rare_controls_are_folded(open_page: Any) -> None:
    one = open_page(inspect.attention(some_attention(5), list("abcde")))
    for label in ("Show", "Hide special tokens", "Combine heads"):
        assert not one.page.get_by_label(label, exact=True).is_visible()
    assert one.page.get_by_role("radio", name="to the token").is_visible()
    one.page.get_by_text("More controls").focus()
    one.page.keyboard.press("Enter")
    assert one.page.get_by_label("Show", exact=True).is_visible()
