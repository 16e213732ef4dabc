"""Every control of every view of a page, used in random order and without waiting: what is shown then is right."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import pytest

from browser_pages import every_view, open_page, settle, some_attention
from chromium import browser, needs_chromium
from wordpiece_bert import inspect
from wordpiece_bert.inspect import packed_page
from wordpiece_bert.inspect.packed_page import page_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from browser_pages import Opened
    from wordpiece_bert.inspect import Page, View

pytestmark = needs_chromium

#: Parts of arrays arrive late, in any order, and those that are asked for while there is a promise `held`, when it is kept.
LATE = """
    const read = Response.prototype.arrayBuffer;
    Response.prototype.arrayBuffer = async function () {
      const held = window.held;
      const bytes = await read.call(this);
      await held;
      await new Promise((done) => setTimeout(done, Math.random() * (window.latest ?? 0)));
      return bytes;
    };
    window.print = () => {};
"""

#: Use controls of the page at random; the tabs now and then. Returns how many controls the view that is shown has.
USE = """
    async ([seed, count]) => {
      let state = seed;
      const random = () => {  // mulberry32
        state = (state + 0x6d2b79f5) | 0;
        let t = Math.imul(state ^ (state >>> 15), 1 | state);
        t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
        return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
      };
      const pick = (list) => list[Math.floor(random() * list.length)];
      const keys = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "+", "-", "Enter"];
      for (let i = 0; i < count; i++) {
        const tabs = document.querySelectorAll("[role=tab]");
        const inside = [...document.querySelectorAll("#panel button, #panel summary, #panel input, #panel select, #panel canvas, #panel [tabindex='0']")];
        if (random() < 0.06 || !inside.length) pick(tabs).click();
        else if (random() < 0.02) document.querySelector("header.top > button").click();
        else if (random() < 0.02 && location.hash) {  // the first entry, without one, is never left
          history.back();
          await new Promise((done) => setTimeout(done, 60));
        }
        else {
          const fresh = inside.filter((one) => !one.isUsed);
          const one = fresh.length && random() < 0.7 ? pick(fresh) : pick(inside);
          one.isUsed = true;
          const box = one.getBoundingClientRect();
          const place = { bubbles: true, clientX: box.left + random() * box.width, clientY: box.top + random() * box.height, pointerId: 1 };
          if (one.matches("select")) {
            one.value = pick([...one.options]).value;
            one.dispatchEvent(new Event("change", { bubbles: true }));
          } else if (one.matches("input[type=range]")) {
            one.value = String(Number(one.min) + Math.floor(random() * (Number(one.max) - Number(one.min) + 1)));
            one.dispatchEvent(new Event("input", { bubbles: true }));
          } else if (one.matches("canvas, .scroller")) {
            one.dispatchEvent(new PointerEvent("pointermove", place));
            one.dispatchEvent(new MouseEvent("click", place));
            one.dispatchEvent(new KeyboardEvent("keydown", { key: pick(keys), bubbles: true, cancelable: true }));
          } else if (random() < 0.2) {
            one.focus();
            one.dispatchEvent(new KeyboardEvent("keydown", { key: pick(keys), bubbles: true, cancelable: true }));
          } else one.click();
        }
        if (random() < 0.3) await new Promise((done) => setTimeout(done, random() * 25));
      }
      return document.querySelectorAll("#panel button").length;
    }
"""


def selection_of(one: Opened) -> dict[str, Any]:
    """Wait until the page shows its last choice, and return it."""
    one.page.wait_for_timeout(250)  # the address is written a little later than it is shown
    shown = one.page.evaluate("""
        async () => {
          const panel = document.getElementById("panel");
          for (let i = 0; i < 600 && location.hash && panel.dataset.shown !== location.hash; i++) {
            await new Promise((done) => setTimeout(done, 50));
          }
          return panel.dataset.shown;
        }
    """)
    found: dict[str, Any] = {}
    for part in shown.lstrip("#").split("&"):
        name, _, value = part.partition("=")
        text = unquote(value)
        whole = re.fullmatch(r"-?\d+", text)
        found[name] = int(text) if whole else [*map(int, text.split(","))] if re.fullmatch(r"[\d,]+", text) else text
    return found


def index(selection: dict[str, Any], name: str, count: int, otherwise: Any) -> Any:
    value = selection.get(name)
    value = value[0] if isinstance(value, list) else value
    return value if isinstance(value, int) and 0 <= value < count else otherwise


def numbers(one: Opened, selector: str) -> list[float]:
    return [float(text.replace("−", "-")) for text in one.page.locator(selector).all_inner_texts()]


def check_attention(one: Opened, view: View, selection: dict[str, Any]) -> None:
    weights = view.arrays["attention"].astype(np.float64)
    layers, heads, length, _ = weights.shape
    layer, token = index(selection, "layer", layers, 0), index(selection, "token", length, None)
    head = selection.get("head", 0)
    listed = range(heads) if head == "all" else [h for h in np.atleast_1d(head).tolist() if h in range(heads)] or [0]
    kind = selection.get("attention.show", "weights")
    matrix = weights[layer][list(listed)]
    if kind == "norms":
        matrix = matrix * view.arrays["value_norms"][layer][list(listed)][:, None, :]
    matrix = view.arrays["rollout"][layer] if kind == "rollout" else matrix.mean(axis=0)
    sentences = np.array(view.data["sentences"])
    allowed = np.ones((length, length), bool)
    if selection.get("attention.special") == "hidden":
        allowed &= (sentences >= 0)[:, None] & (sentences >= 0)
    which = selection.get("attention.sentences", "all")
    if which != "all":
        allowed &= (sentences == "AB".index(which[0]))[:, None] & (sentences == "AB".index(which[1]))
    matrix = matrix * allowed
    towards = selection.get("attention.direction") == "to"
    values = matrix.mean(axis=0) if token is None else matrix[:, token] if towards else matrix[token]
    shown = numbers(one, ".ranking .bars .number")
    expected = np.sort(values)[::-1][: len(shown)]
    assert shown == pytest.approx(expected.tolist(), abs=0.006 * (1 if kind != "norms" else float(matrix.max())))
    rest = np.sort(values)[::-1][len(shown) : 16]
    assert rest.max(initial=0) <= 1e-3 * max(1.0, float(matrix.max()))


def check_neurons(one: Opened, view: View, selection: dict[str, Any]) -> None:
    q, k = view.arrays["queries"], view.arrays["keys"]
    layers, heads, length, size = q.shape
    layer, head = index(selection, "layer", layers, 0), index(selection, "head", heads, 0)
    query, key = index(selection, "token", length, 0), index(selection, "pair", length, 0)
    equation = one.page.locator("[data-equation]").inner_text().replace("−", "-")
    shown = [float(number) for number in re.findall(r"= (-?[\d.e-]+)", equation)]
    product = float(q[layer, head, query] @ k[layer, head, key])
    scores = q[layer, head, query] @ k[layer, head].T / np.sqrt(size)
    weight = float(np.exp(scores[key] - scores.max()) / np.exp(scores - scores.max()).sum())
    assert shown == pytest.approx([product, product / np.sqrt(size), weight], rel=3e-3, abs=5e-3)


def check_patterns(one: Opened, view: View, selection: dict[str, Any]) -> None:
    layers, heads, _ = view.arrays["measures"].shape
    layer, head = index(selection, "layer", layers, 0), index(selection, "head", heads, 0)
    assert numbers(one, "#panel [aria-live=polite] .bars .number") == pytest.approx(
        view.arrays["measures"][layer, head].tolist(), rel=2e-2, abs=6e-4
    )


def check_predictions(one: Opened, view: View, selection: dict[str, Any]) -> None:
    tokens = view.data["tokens"]
    first = tokens.index(view.data["mask"]) if view.data["mask"] in tokens else 0
    token = index(selection, "token", len(tokens), first)
    assert numbers(one, "#panel [aria-live=polite] .bars .number") == pytest.approx(
        view.arrays["probabilities"][token].tolist(), rel=3e-2, abs=6e-4
    )


def check_lens(one: Opened, view: View, selection: dict[str, Any]) -> None:
    layers, length, _ = view.arrays["probabilities"].shape
    layer = selection.get("layer", layers)
    layer = min(max(layer + 1, 0), layers - 1) if isinstance(layer, int) else layers - 1
    token = index(selection, "token", length, 0)
    shown = numbers(one, "#panel [aria-live=polite] .bars .number")
    expected = [*view.arrays["probabilities"][layer, token], *view.arrays["own"][:, token]]
    assert shown == pytest.approx([float(value) for value in expected], rel=3e-2, abs=6e-4)


def check_saliency(one: Opened, view: View, selection: dict[str, Any]) -> None:
    token = index(selection, "token", len(view.data["tokens"]), None)
    pressed = one.page.locator(".strip [aria-pressed=true]").evaluate_all(
        "all => all.map((one) => [...one.parentElement.children].indexOf(one))"
    )
    assert pressed == ([] if token is None else [token])


def check_similarity(one: Opened, view: View, selection: dict[str, Any]) -> None:
    matrix = view.arrays["similarity"]
    row = index(selection, "point", len(matrix), 0)
    expected = np.sort(np.delete(matrix[row], row))[::-1][:8]
    assert numbers(one, "#panel [aria-live=polite] .bars .number") == pytest.approx(expected.tolist(), abs=2e-3)


def check_positions(one: Opened, view: View, selection: dict[str, Any]) -> None:
    count = view.data["count"]
    at = index(selection, "positions.at", count, min(count - 1, count // 4))
    assert one.page.locator(".card h2").last.inner_text() == f"Position {at}: similarity to the others"


def check_tokens(one: Opened, view: View, selection: dict[str, Any]) -> None:
    for number, entry in enumerate(view.data["tokenizers"]):
        token = selection.get("token")
        card = one.page.locator("#panel .card").nth(number)
        shown = card.locator(".chips").last.locator("[aria-pressed=true]")
        has = isinstance(token, int) and token < len([one for one in entry["tokens"] if one["mask"]])
        names = (
            [f"{entry['tokens'][token]['token']}, id {entry['tokens'][token]['id']}, position {token}"] if has else []
        )
        assert [one.get_attribute("aria-label") for one in shown.all()] == names


def check_map(one: Opened, view: View, selection: dict[str, Any]) -> None:
    texts, groups = view.data["texts"], view.data["groups"]
    point = index(selection, "point", len(texts), None)
    expected = [] if point is None else view.arrays["similarities"][point].tolist()
    assert numbers(one, ".neighbours li .number") == pytest.approx(expected, abs=1e-3)
    group = index(selection, "map.group", len(set(groups)), None)
    if "map.area" not in selection and "map.find" not in selection:
        count = len(texts) if group is None else groups.count(sorted(set(groups))[group])
        assert re.search(rf"\b{count}( of {len(texts)})? texts", one.page.locator(".view-map").inner_text())


def check_interventions(one: Opened, view: View, selection: dict[str, Any]) -> None:
    sets, (layers, heads) = view.data["heads"], view.data["shape"]
    before, after, moved = (view.arrays[name].astype(np.float64) for name in ("before", "after", "moved"))
    chosen = int(moved.argmax())
    of, together = selection.get("interventions.of"), index(selection, "interventions.set", len(sets), None)
    layer, head = index(selection, "layer", layers, 0), index(selection, "head", heads, 0)
    wanted = [[layer, i] for i in range(heads)] if of == "layer" else [[layer, head]]
    if of == "set" and together is not None:
        chosen = together
    elif "layer" in selection and wanted in sets:
        chosen = sets.index(wanted)
    pressed = one.page.locator("#panel [data-set][aria-pressed=true]")
    assert [button.get_attribute("data-set") for button in pressed.all()] == [str(chosen)]
    far = np.abs(after[chosen] - before).sum(axis=1)
    row = index(selection, "token", len(before), int(far.argmax())) if len(before) > 1 else 0
    pairs = np.stack([before[row], after[chosen, row]], axis=-1)
    if view.data["measure"] == "cosine":  # the neighbours in their new order
        pairs[1:] = pairs[1:][np.argsort(-pairs[1:, 1], kind="stable")]
    cells = "#panel [aria-live=polite] td:nth-child({})"
    shown = [numbers(one, cells.format(column)) for column in (3, 4)]
    np.testing.assert_allclose(np.transpose(shown), pairs, rtol=5e-2, atol=6e-4)


def check_comparison(one: Opened, view: View, selection: dict[str, Any]) -> None:
    weights, data = [view.arrays[name].astype(np.float64) for name in ("first", "second")], view.data
    chosen: list[list[int]] = []
    for name, axis in (("layer", 0), ("head", 1)):
        counts, first = [array.shape[axis] for array in weights], data["first"][f"{name}s"]
        a = index(selection, name, counts[0], first[0])
        chosen.append([a, index(selection, f"comparison.{name}", counts[1], min(a, counts[1] - 1))])
    selects = one.page.locator("#panel .controls select").evaluate_all("all => all.map((one) => Number(one.value))")
    (layers, heads) = chosen
    assert selects == [layers[0], heads[0], layers[1], heads[1]]
    units = [data["groups"][unit][0] for unit in data["units"]]

    def unit_of(token: int) -> int:
        return next((unit for unit, places in enumerate(units) if token in places), -1)

    length = len(data["tokens"][0])
    query = max(0, unit_of(index(selection, "token", length, 0)))
    key = unit_of(index(selection, "pair", length, -1))
    a, b = (array[layer, head, query] for array, layer, head in zip(weights, layers, heads, strict=True))
    shown = numbers(one, "#panel [aria-live=polite] .bars .number")
    np.testing.assert_allclose(np.abs(shown), np.sort(np.abs(b - a))[::-1][: len(shown)], atol=2e-3)  # half precision
    text = one.page.locator("[data-role=pair]").inner_text()
    found = [float(number) for number in re.findall(r"(-?\d[\d.]*(?:e-\d+)?)(?= in the|\.$)", text)]
    assert found == pytest.approx([] if key < 0 else [a[key], b[key], b[key] - a[key]], abs=2e-3)


def check_tokenizers(one: Opened, view: View, selection: dict[str, Any]) -> None:
    groups = view.data["groups"]
    group = index(selection, "tokenizers.group", len(groups), None)
    pressed = one.page.locator("#panel .pair[aria-pressed=true]")
    assert [button.get_attribute("data-group") for button in pressed.all()] == ([] if group is None else [str(group)])
    text = one.page.locator("#panel p[aria-live=polite]").inner_text()
    if group is None:
        assert text == ""
    for side in range(2 if group is not None else 0):
        for place in groups[group][side]:
            assert view.data["tokens"][side][place] in text


CHECKS: dict[str, Callable[[Opened, View, dict[str, Any]], None]] = {
    "attention": check_attention,
    "comparison": check_comparison,
    "interventions": check_interventions,
    "lens": check_lens,
    "map": check_map,
    "neurons": check_neurons,
    "patterns": check_patterns,
    "positions": check_positions,
    "predictions": check_predictions,
    "saliency": check_saliency,
    "similarity": check_similarity,
    "tokenizers": check_tokenizers,
    "tokens": check_tokens,
}


def use_and_check(one: Opened, page: Page, seed: int, rounds: int, actions: int) -> None:
    kinds = [view.kind for view in page.views]
    # The second of a kind has a number in the address.
    names = [kind if (n := kinds[: i + 1].count(kind)) == 1 else f"{kind}.{n}" for i, kind in enumerate(kinds)]
    for turn in range(rounds):
        # Each view is the first of a round.
        one.page.evaluate(f"document.getElementById('tab-{turn % len(kinds)}').click()")
        one.page.evaluate(USE, [seed * 1000 + turn, actions])
        selection = selection_of(one)
        view = page.views[names.index(selection.get("view", names[0]))]
        assert one.page.locator("#panel").get_attribute("data-view") == view.kind
        CHECKS[view.kind](one, view, own_names(selection, selection.get("view", names[0]), view.kind))


def own_names(selection: dict[str, Any], name: str, kind: str) -> dict[str, Any]:
    """The choices that a view alone has begin with its name in the address; here with its kind, as those of the first."""
    others = {key: value for key, value in selection.items() if not re.match(rf"{kind}\.", key)}
    own = {kind + key.removeprefix(name): value for key, value in selection.items() if key.startswith(f"{name}.")}
    if name == kind:  # not those of the second
        own = {key: value for key, value in own.items() if not re.match(rf"{kind}\.\d", key)}
    return others | own


@pytest.mark.parametrize(("slower", "seed"), [(1, 1), (6, 2)])
def test_every_control_in_random_order(open_page: Any, every_view: Page, slower: int, seed: int) -> None:
    one = open_page(every_view, script=LATE + "window.latest = 60;")
    one.page.context.new_cdp_session(one.page).send("Emulation.setCPUThrottlingRate", {"rate": slower})
    use_and_check(one, every_view, seed, rounds=2 * len(every_view.views), actions=40)
    assert one.problems == []


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_race_is_found(open_page: Any, monkeypatch: pytest.MonkeyPatch, is_broken: bool) -> None:
    """The test above fails where an earlier choice may be shown after a later one."""

    def broken(name: str) -> str:
        text = page_file(name)
        return text.replace("return () => mine === last;", "return () => true;") if name == "core.js" else text

    if is_broken:
        assert broken("core.js") != page_file("core.js")
        monkeypatch.setattr(packed_page, "page_file", broken)
    view = inspect.attention(some_attention(4), list("abcd"))
    hold = "window.held = new Promise((keep) => { window.keep = keep; });"
    one = open_page(inspect.page(view), script=LATE + hold, ready=False)
    one.page.wait_for_selector(".heads [data-head]")
    one.page.evaluate("() => { window.held = null; }")
    one.page.locator(".heads [data-head]").last.click()
    settle(one, "weights 1 2 null")
    one.page.evaluate("() => window.keep()")  # what was to be shown first arrives last
    one.page.wait_for_timeout(500)

    def check() -> None:
        CHECKS["attention"](one, view, selection_of(one))

    if is_broken:
        with pytest.raises(AssertionError):
            check()
    else:
        check()
