"""The pages of `wordpiece_bert.inspect` in a real browser: values, clicks, keys, speed, and no request to anywhere.

The tests need Debian's ``chromium``, or another Chromium named by CHROMIUM, and the package playwright, which drives it.
`make test-browser` installs playwright, and `.ci/run` chromium as well.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tiny_models
import wordpiece_bert as wb
from browser_pages import HOSTILE, Opened, every_view, open_page, ranking, settle, some_attention
from chromium import browser, needs_chromium
from wordpiece_bert import inspect
from wordpiece_bert.bert.functional import softmax

if TYPE_CHECKING:
    from pathlib import Path

    from wordpiece_bert.inspect import Page, View

pytestmark = needs_chromium


def test_a_click_on_a_head_and_a_token_shows_their_weights(open_page: Any) -> None:
    weights, names = some_attention(9), [f"t{i}" for i in range(9)]
    one = open_page(inspect.attention(weights, names))
    one.page.locator('[data-head="1.2"]').click()
    one.page.get_by_role("button", name="t4, position 4").click()
    settle(one, "weights 1 2 4")
    assert one.page.locator("h2").first.inner_text() == "Layer 1, head 2"
    for name, value in ranking(one).items():
        expected = weights[1, 2, 4, int(name[1:])]
        assert value == pytest.approx(expected, abs=float(weights[1, 2, 4].max()) / 255 + 5e-4)
    one.page.get_by_role("radio", name="to the token").click()
    one.page.wait_for_function("() => document.querySelector('.ranking h3').textContent.includes('look at')")
    assert ranking(one)["t4"] == pytest.approx(weights[1, 2, 4, 4], abs=float(weights[1, 2, 4].max()) / 255 + 5e-4)
    one.page.get_by_role("button", name="Layer 0, mean of all heads").click()
    settle(one, "weights 0 0+1+2 4")
    mean = weights[0].mean(axis=0)[:, 4]
    best = max(ranking(one).items(), key=lambda entry: entry[1])
    assert int(best[0][1:]) == mean.argmax()
    assert best[1] == pytest.approx(mean.max(), abs=0.006)


def test_weights_that_the_page_computes_from_queries_and_keys(open_page: Any) -> None:
    q, k = np.random.default_rng(8).normal(size=(2, 2, 3, 9, 16)).astype(np.float32)
    weights, names = softmax(q @ k.swapaxes(-1, -2) / np.float32(4)), [f"t{i}" for i in range(9)]
    page = inspect.page(inspect.attention(weights, names), inspect.neurons(None, names, queries=q, keys=k))
    assert '"encoding":"softmax"' in page.to_html().replace(" ", "")
    one = open_page(page)
    one.page.locator('[data-head="1.2"]').click()
    one.page.get_by_role("button", name="t4, position 4").click()
    settle(one, "weights 1 2 4")
    shown = ranking(one)
    assert shown
    for name, value in shown.items():
        assert value == pytest.approx(weights[1, 2, 4, int(name[1:])], abs=float(weights[1, 2, 4].max()) / 255 + 5e-4)


def test_rollout_norms_and_filters(open_page: Any) -> None:
    weights, names = some_attention(6), ["[CLS]", "a0", "a1", "[SEP]", "b0", "[SEP]2"]
    norms = np.random.default_rng(4).uniform(0.5, 2, size=(2, 3, 6))
    one = open_page(
        inspect.attention(
            weights, names, sentence_ids=[None, 0, 0, None, 1, None], value_norms=norms, layer=1, head=0, token=1
        )
    )
    settle(one, "weights 1 0 1")
    one.page.get_by_text("More controls").click()
    one.page.get_by_label("Sentences").select_option("AB")
    one.page.wait_for_function("() => document.querySelectorAll('.ranking .bars .token').length === 1")
    assert list(ranking(one)) == ["b0"]
    one.page.get_by_label("Sentences").select_option("BA")
    one.page.wait_for_function("() => document.querySelector('.ranking').textContent.includes('No weight')")
    one.page.get_by_label("Sentences").select_option("all")
    one.page.get_by_label("Show", exact=True).select_option("norms")
    settle(one, "norms 1 0 1")
    shown, expected = ranking(one), weights[1, 0, 1] * norms[1, 0]
    assert shown["b0"] == pytest.approx(expected[4], abs=0.01)
    one.page.get_by_label("Show", exact=True).select_option("rollout")
    settle(one, "rollout 1 0 1")
    assert ranking(one)["a0"] == pytest.approx(inspect.rollout(weights)[1, 1, 1], abs=0.004)
    one.page.get_by_label("Hide special tokens").check()
    one.page.wait_for_function("() => !document.querySelector('.ranking').textContent.includes('CLS')")


def test_heads_and_tokens_by_keyboard(open_page: Any) -> None:
    one = open_page(inspect.attention(some_attention(5), list("abcde"), layer=0))
    one.page.locator('[data-head="0.0"]').focus()
    one.page.keyboard.press("ArrowDown")
    one.page.keyboard.press("ArrowRight")
    one.page.keyboard.press("Enter")
    settle(one, "weights 1 1 null")
    one.page.get_by_role("button", name="a, position 0").focus()
    one.page.keyboard.press("End")
    one.page.keyboard.press("Space")
    settle(one, "weights 1 1 4")
    one.page.wait_for_function("() => document.getElementById('announcer').textContent.startsWith('Layer 1, head 1')")


def test_a_pair_of_tokens_has_its_score(open_page: Any) -> None:
    rng = np.random.default_rng(5)
    q, k = rng.normal(size=(2, 2, 3, 6, 8)).astype(np.float32)
    one = open_page(inspect.neurons(None, list("abcdef"), queries=q, keys=k))
    one.page.get_by_role("radiogroup", name="Layer").get_by_role("radio", name="1").click()
    one.page.get_by_role("radiogroup", name="Head").get_by_role("radio", name="2").click()
    one.page.get_by_label("Query token").get_by_role("button", name="c, position 2").click()
    one.page.get_by_label("Key token").get_by_role("button", name="e, position 4").click()
    one.page.wait_for_selector('[data-state="1 2 2 4"]')
    shown = one.page.locator("[data-equation]").inner_text()
    numbers = [float(number) for number in re.findall(r"= (-?[\d.]+)", shown)]
    product = float(q[1, 2, 2] @ k[1, 2, 4])
    scores = q[1, 2, 2] @ k[1, 2].T / np.sqrt(8)
    assert numbers == pytest.approx([product, product / np.sqrt(8), float(softmax(scores)[4])], abs=5e-3)


#: Delays, in milliseconds, of the parts of arrays that a page decompresses, one after the other.
SLOW = """
    const read = Response.prototype.arrayBuffer;
    window.delays = [];
    Response.prototype.arrayBuffer = async function () {
      const delay = window.delays.shift() ?? 0;
      const bytes = await read.call(this);
      await new Promise((done) => setTimeout(done, delay));
      return bytes;
    };
"""
#: Click elements one after the other without waiting, while parts arrive in another order than they were asked for.
CLICKS = """
    async ([selectors, delays]) => {
      window.delays.push(...delays);
      for (const selector of selectors) document.querySelector(selector).click();
      await new Promise((done) => setTimeout(done, Math.max(...delays) + 200));
    }
"""


def slow_page(start: Any, shown: View | Page) -> Opened:
    """Open a page whose parts arrive late where a test says so."""
    return start(shown, script=SLOW)


@pytest.mark.parametrize("seed", range(4))
def test_the_last_of_quick_choices_is_shown_whatever_arrives_last(open_page: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, k = rng.normal(size=(2, 3, 3, 6, 8)).astype(np.float32)
    one = slow_page(open_page, inspect.neurons(None, list("abcdef"), queries=q, keys=k))
    # Every part is new, so that each is waited for; the first arrives after the last.
    places = [(int(i) // 3, int(i) % 3) for i in rng.permutation(np.arange(1, 9))[:4]]
    clicks = [
        f'[aria-label="{group}"] button:nth-child({index + 1})'
        for layer, head in places
        for group, index in (("Layer", layer), ("Head", head))
    ]
    one.call(CLICKS, [clicks, [600, 600, *rng.integers(0, 500, 20).tolist()]])
    layer, head = places[-1]
    assert one.page.locator(".grid[data-state]").get_attribute("data-state") == f"{layer} {head} 0 0"
    shown = one.page.locator("[data-equation]").inner_text()
    product = float(re.search(r"q·k = (-?[\d.]+)", shown.replace("−", "-"))[1])
    assert product == pytest.approx(float(q[layer, head, 0] @ k[layer, head, 0]), abs=5e-3)


@pytest.mark.parametrize("seed", range(3))
def test_quick_choices_of_heads(open_page: Any, seed: int) -> None:
    """In the views attention and patterns, too."""
    rng = np.random.default_rng(seed)
    weights, names = some_attention(9, 4, 3), [f"t{i}" for i in range(9)]
    places = [(int(i), int(rng.integers(3))) for i in rng.permutation(np.arange(1, 4))]
    delays = [600, *rng.integers(0, 500, 20).tolist()]
    one = slow_page(open_page, inspect.attention(weights, names, layer=0, head=0, token=2))
    one.page.wait_for_timeout(400)  # until the thumbnails are read, whose parts would use up the delays
    one.call(CLICKS, [[f'[data-head="{layer}.{head}"]' for layer, head in places], delays])
    layer, head = places[-1]
    settle(one, f"weights {layer} {head} 2")
    for name, value in ranking(one).items():
        assert value == pytest.approx(weights[layer, head, 2, int(name[1:])], abs=1 / 255 + 5e-4)
    view = inspect.patterns(weights, names)
    one = slow_page(open_page, view)
    one.call(CLICKS, [[f'.chip[aria-label^="Layer {layer}, head {head}:"]' for layer, head in places], delays])
    numbers = [float(text) for text in one.page.locator("#panel [aria-live=polite] .bars .number").all_inner_texts()]
    kept = [i for i, name in enumerate(inspect.HABITS) if name != "same sentence"]  # which needs a pair
    assert numbers == pytest.approx(view.arrays["measures"][layer, head, kept].tolist(), abs=5.1e-4)
    assert one.page.locator("#panel [aria-live=polite] h2").inner_text().startswith(f"Layer {layer}, head {head}")


def test_quick_choices_of_tabs(open_page: Any) -> None:
    """A tab whose data are packed opens late: it does not replace the tab that was chosen after it."""
    tok = wb.Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "a"])
    page = inspect.page(
        inspect.similarity(np.eye(2), ["a", "b"]),
        inspect.tokens(tok, "a " * 2000),
        inspect.similarity(np.eye(3), [*"abc"]),
    )
    one = slow_page(open_page, page)
    one.call(CLICKS, [["#tab-1", "#tab-2"], [500]])
    assert one.page.locator("#panel").get_attribute("data-view") == "similarity"
    assert one.page.locator('[data-cell="2.2"]').count() == 1
    assert one.page.locator('[role="tab"][aria-selected="true"]').get_attribute("id") == "tab-2"
    one.tab("Tokens")
    assert one.page.locator(".text .piece").count() == 2000


def test_a_choice_before_the_numbers_are_there(open_page: Any, every_view: Page) -> None:
    """Nothing fails, and the choice is shown as soon as it can be."""
    for kind, click in (("predictions", 4), ("saliency", 2), ("map", None)):
        (view,) = (view for view in every_view.views if view.kind == kind)
        one = open_page(view, script=SLOW + "window.delays = Array(20).fill(400);", ready=False)
        one.page.wait_for_selector("#panel > *")
        if click is None:
            one.page.locator("canvas.plot").dispatch_event("pointermove")
        else:
            one.page.locator(".strip button").nth(click).dispatch_event("pointermove")
            one.page.locator(".strip button").nth(click).dispatch_event("click")
        one.ready()
        if kind == "predictions":
            assert one.page.locator("#panel [aria-live=polite] h2").inner_text().startswith(f"Position {click}:")


def test_a_long_word_lists_the_ends_of_what_was_tried(open_page: Any) -> None:
    tok = wb.Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "a", "##a"], max_input_chars_per_word=100_000)
    one = open_page(inspect.tokens(tok, "a" * 60))
    tried = one.page.locator(".note p").nth(1).inner_text()
    assert "… 35 more …" in tried
    assert one.page.locator(".note p").nth(1).locator(".tried").count() == 24


def test_tokens_show_what_was_tried(open_page: Any) -> None:
    tok = wb.Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "un", "##afford", "##able", "a"])
    one = open_page(inspect.tokens(tok, "A unaffordable z"))
    one.page.get_by_role("button", name="unaffordable un ##afford ##able").click()
    note = one.page.locator(".note").inner_text()
    assert "unaffordable unaffordabl unaffordab" in note
    assert "##affordable" in note
    one.page.get_by_role("button", name="z [UNK]").click()
    assert "becomes [UNK]" in one.page.locator(".note").inner_text()
    assert one.page.locator(".text .piece").count() >= 5


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_every_view_opens_with_hostile_texts(open_page: Any, every_view: Page, width: int, scheme: str) -> None:
    one = open_page(every_view, width, scheme)
    tabs = one.page.get_by_role("tab")
    assert tabs.count() == len(every_view.views)
    for index, view in enumerate(every_view.views):
        tabs.nth(index).click()
        one.page.wait_for_selector(f'#panel[data-view="{view.kind}"] > [data-ready]')
        # Nothing is wider than a phone: wide tables scroll by themselves.
        assert one.page.evaluate("document.documentElement.scrollWidth") <= width
    assert one.page.title() == HOSTILE
    assert one.page.locator("#app img, #app script").count() == 0
    one.page.get_by_label("Change between light and dark").click()
    assert one.page.evaluate("document.documentElement.dataset.theme") == ("light" if scheme == "dark" else "dark")


def test_values_of_the_other_views(open_page: Any, every_view: Page) -> None:
    one = open_page(every_view)
    by_kind = {view.kind: view for view in every_view.views}
    one.tab("Similarity")
    cell = one.page.locator('[data-cell="1.3"]').inner_text()
    assert float(cell) == pytest.approx(by_kind["similarity"].arrays["similarity"][1, 3], abs=0.0055)
    one.tab("Predictions")
    row = one.page.locator("tbody tr").nth(5).locator("td").nth(1).inner_text()
    assert float(row) == pytest.approx(by_kind["predictions"].arrays["own"][5], abs=5.1e-4)
    one.tab("Map")
    one.page.get_by_role("searchbox").fill(" 2999")
    one.page.wait_for_function("() => document.querySelectorAll('.texts tbody button').length === 1")
    one.page.locator(".texts tbody button").click()
    one.page.locator(".note", has_text=HOSTILE).wait_for(timeout=5000)
    one.tab("Saliency")
    numbers = [float(text) for text in one.page.locator(".pivot + .number").all_inner_texts()]
    assert numbers == pytest.approx(by_kind["saliency"].arrays["effect"].tolist(), abs=5.1e-4)


def test_a_negative_similarity_has_no_bar(open_page: Any) -> None:
    one = open_page(inspect.similarity(np.array([[1.0, 0.0], [-1.0, 0.1], [1.0, 1.0]]), ["a", "b", "c"]))
    one.page.locator('[data-cell="0.1"]').click()
    bars = one.page.locator(".bars .bar")
    assert [bars.nth(i).bounding_box()["width"] > 5 for i in range(2)] == [True, False]


def test_the_policy_stops_a_request_and_a_script(open_page: Any) -> None:
    one = open_page(inspect.similarity(np.eye(2), ["a", "b"]))
    blocked = one.call("""
        async () => {
          const seen = [];
          document.addEventListener("securitypolicyviolation", (event) => seen.push(event.effectiveDirective));
          const script = document.createElement("script");
          script.textContent = "window.ran = true";
          document.body.append(script);
          await fetch("data:text/plain,a").catch(() => {});
          const image = document.createElement("img");
          image.src = "https://example.invalid/a.png";
          document.body.append(image);
          await new Promise((done) => setTimeout(done, 200));
          return [seen, window.ran ?? false];
        }
    """)
    assert set(blocked[0]) >= {"script-src-elem", "connect-src", "img-src"}
    assert blocked[1] is False
    assert all("Content Security Policy" in problem or "violates" in problem for problem in one.problems)
    one.problems.clear()
    one.requests[:] = [url for url in one.requests if url.startswith("file:")]


@pytest.mark.parametrize("method", ["gradient", "integrated_gradients"])
def test_saliency_by_gradients_names_its_method_and_has_bars_of_its_sign(
    open_page: Any, tmp_path: Path, method: Any
) -> None:
    reviews = tiny_models.make_reviews(tmp_path / "reviews")
    view = inspect.saliency(reviews, "a wonderful film and a dull film", label="positive", method=method)
    one = open_page(view)
    text = one.page.locator("#app").inner_text()
    assert view.data["heading"] in text
    assert view.data["note"] in text
    signed = method != "gradient"
    assert one.page.locator(".pivot").count() == (len(view.data["tokens"]) if signed else 0)
    numbers = [float(one) for one in one.page.locator(".bars").last.locator(".number").all_inner_texts()]
    assert numbers == pytest.approx(view.arrays["effect"].tolist(), rel=2e-3, abs=5.1e-4)
    dull = view.data["tokens"].index("dull")
    colours = one.page.locator(".strip .token").evaluate_all("all => all.map((x) => x.style.backgroundColor)")
    assert colours[dull] != colours[view.data["tokens"].index("wonderful")] or not signed
