"""What a view of an inspection page shows, compared with its arrays: numbers, names, and colours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import pytest

from page_colours import check_cells, check_grounds, check_legends, check_shares, probe, rgb, scale, shares, theme_of
from wordpiece_bert.inspect.colours import CATEGORIES, HABIT_COLOURS

if TYPE_CHECKING:
    from collections.abc import Callable

    from browser_pages import Opened
    from wordpiece_bert.inspect import View


def selection_of(one: Opened) -> dict[str, Any]:
    """Wait until the page shows its last choice, and return it."""
    one.page.wait_for_timeout(250)  # the address is written a little later than it is shown
    for _ in range(600):
        shown, is_last = one.page.evaluate("""
            () => {
              const { shown } = document.getElementById("panel").dataset;
              const isPrinting = document.querySelector(".printed") !== null;
              return [shown, !isPrinting && (!location.hash || shown === location.hash)];
            }
        """)
        if is_last:
            break
        one.page.wait_for_timeout(50)
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


def numbers(one: Opened, selector: str, pattern: str = "(.*)") -> list[float]:
    """The numbers that elements show; `pattern` finds each in its text."""
    texts = [text.replace("−", "-") for text in one.page.locator(selector).all_inner_texts()]
    return [float(re.search(pattern, text, re.DOTALL)[1]) for text in texts]  # type: ignore[index]


def pressed_of(one: Opened, selector: str) -> list[int]:
    """Which of these elements are pressed."""
    return one.page.locator(selector).evaluate_all(
        "all => all.flatMap((one, i) => one.ariaPressed === 'true' ? [i] : [])"
    )


def hex_parts(colour: str) -> list[int]:
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


#: The colours of a canvas's pixels, row by row.
PIXELS = """
    (one) => {
      const copy = new OffscreenCanvas(one.width, one.height).getContext("2d", { willReadFrequently: true });
      copy.drawImage(one, 0, 0);
      const { data } = copy.getImageData(0, 0, one.width, one.height);
      return Array.from({ length: data.length / 4 }, (_, i) => [...data.slice(4 * i, 4 * i + 3)]);
    }
"""


def as_stored(weights: Any) -> Any:
    """Weights as a page has them, in steps of 1/255 of the largest of their row."""
    most = np.maximum(weights.max(axis=-1, keepdims=True), 1e-30)
    return np.floor(weights / most * 255 + 0.5) * most / 255


def check_attention(one: Opened, view: View, selection: dict[str, Any]) -> None:
    weights = view.arrays["attention"].astype(np.float64)
    layers, heads, length, _ = weights.shape
    opening = {"layer": 0, "head": 0, "token": None} | (view.data["telling"] or {})
    layer = index(selection, "layer", layers, opening["layer"])
    token = None if selection.get("token") == "none" else index(selection, "token", length, opening["token"])
    first = opening["head"] if index(selection, "layer", layers, None) is None else 0
    head = selection.get("head", first)
    listed = (
        range(heads) if head == "all" else [h for h in np.atleast_1d(head).tolist() if h in range(heads)] or [first]
    )
    kind = selection.get("attention.show", "weights")

    def shown_of(store: Callable[[Any], Any]) -> Any:
        if kind == "rollout":
            return store(view.arrays["rollout"][layer])
        norms = view.arrays["value_norms"][layer][list(listed)][:, None, :] if kind == "norms" else 1
        return (store(weights[layer][list(listed)]) * norms).mean(axis=0)

    matrix, stored = shown_of(lambda exact: exact), shown_of(as_stored)
    sentences = np.array(view.data["sentences"])
    allowed = np.ones((length, length), bool)
    if selection.get("attention.special") == "hidden":
        allowed &= (sentences >= 0)[:, None] & (sentences >= 0)
    which = selection.get("attention.sentences", "all")
    if which != "all":
        allowed &= (sentences == "AB".index(which[0]))[:, None] & (sentences == "AB".index(which[1]))
    whole = matrix
    matrix = matrix * allowed
    towards = selection.get("attention.direction") == "to"
    values, told = (
        x.mean(axis=0) if token is None else x[:, token] if towards else x[token] for x in (matrix, stored * allowed)
    )
    named = [listed[0]] if len(listed) == 1 else listed
    title = f"head {named[0]}" if len(named) == 1 else f"mean of heads {', '.join(map(str, named))}"
    title = "mean of all heads" if len(named) == heads > 1 else title
    title = f"Rollout through layers 0 to {layer}" if kind == "rollout" else f"Layer {layer}, {title}"
    assert one.page.locator("#attention-heading").inner_text() == title
    assert pressed_of(one, ".view-attention .strip .token") == ([] if token is None else [token])
    by_matrix = selection.get("attention.scale") == "matrix"
    check_attention_colours(one, view, values, whole, allowed, told, by_matrix=by_matrix)
    is_opening = selection.get("token") != "none" and index(selection, "token", length, None) is None
    pair = index(selection, "pair", length, opening.get("pair") if is_opening else None)
    is_link = None not in (token, pair) and not towards and kind != "rollout"
    if not is_link or selection.get("attention.grid") == "matrices":  # else the heads have colours of the link
        check_thumbnails(one, view, by_matrix=by_matrix)
    shown = numbers(one, ".ranking .bars .number")
    expected = np.sort(values)[::-1][: len(shown)]
    # Norms are stored in steps of the largest of a row, which a filter may hide.
    assert shown == pytest.approx(expected.tolist(), abs=0.006 * (1 if kind != "norms" else float(whole.max())))
    rest = np.sort(values)[::-1][len(shown) : 16]
    assert rest.max(initial=0) <= float(whole.max()) / 400  # stored as nothing


def check_attention_colours(
    one: Opened, view: View, values: Any, whole: Any, allowed: Any, told: Any, *, by_matrix: bool
) -> None:
    """`values` are those shown of the matrix `whole`, and `told` the same as the page has them."""
    most = np.maximum(whole.max() if by_matrix else whole.max(axis=1, keepdims=True), 1e-30)
    largest = (whole.max() if by_matrix else values.max()) or 1
    # Stored in steps of 1/255 of the largest weight of a row, which a filter may hide.
    slack = float(whole.max() / 500 / largest)
    check_grounds(one, ".view-attention .strip .token", "sequential", values / largest, root=True, slack=slack)
    end = whole.max() if by_matrix else told.max()
    assert numbers(one, ".view-attention .main > .card .legend", r"^0\s*([\d.e-]+)") == pytest.approx(
        [end], rel=0.02, abs=6e-4
    )
    cell = r"\((?P<i>\d+)\) → .* \((?P<j>\d+)\): (?P<value>[\d.e-]+)$"
    check_cells(one, "canvas.cells", 0, cell, "sequential", whole, whole * allowed / most, root=True)
    if one.page.locator(".overview canvas").is_visible():
        pixels = one.page.locator(".overview canvas").evaluate(PIXELS)
        found = shares(theme_of(one), "sequential", pixels) ** 2
        expected = np.ravel(whole * allowed / most)
        assert np.mean(np.abs(found - expected) < 0.03) > 0.3  # the others are below the frame


def check_thumbnails(one: Opened, view: View, *, by_matrix: bool) -> None:
    small = view.arrays["thumbnails"].astype(float)
    scaled = small / np.maximum(small.max(axis=(-2, -1) if by_matrix else -1, keepdims=True), 1e-30)
    for _ in range(100):  # they are drawn one after the other, and nothing waits for them
        pixels = one.page.locator(".heads canvas").evaluate_all(f"all => all.map({PIXELS})")
        found = shares(theme_of(one), "sequential", pixels) ** 2
        if np.isfinite(found).all() and np.abs(found - scaled.ravel()).max() < 0.05:
            break
        one.page.wait_for_timeout(50)
    assert np.abs(found - scaled.ravel()).max() < 0.05


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
    assert one.page.locator("#panel h2").inner_text().startswith(f"Layer {layer}, head {head}: ")
    strips = "#panel .strip >> nth={} >> .token"
    assert [pressed_of(one, strips.format(place)) for place in (0, 1)] == [[query], [key]]
    weights = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    check_grounds(one, strips.format(1), "sequential", weights, root=True)
    vectors = [q[layer, head, query], k[layer, head, key], q[layer, head, query] * k[layer, head, key]]
    for place, vector in enumerate(vectors):
        drawn = (vector / np.abs(vector).max())[None]
        text = r"\[(?P<j>\d+)\] = (?P<value>-?[\d.e-]+)$"
        check_cells(one, "#panel .vector canvas", place, text, "diverging", vector[None], drawn, root=True)
    table = np.array(numbers(one, "#panel td.number")).reshape(-1, 3)
    products = k[layer, head] @ q[layer, head, query]
    assert table == pytest.approx(np.stack([products, products / np.sqrt(size), weights], axis=1), rel=2e-2, abs=6e-3)


def check_patterns(one: Opened, view: View, selection: dict[str, Any]) -> None:
    layers, heads, _ = view.arrays["measures"].shape
    layer, head = index(selection, "layer", layers, 0), index(selection, "head", heads, 0)
    assert numbers(one, "#panel [aria-live=polite] .bars .number") == pytest.approx(
        view.arrays["measures"][layer, head].tolist(), rel=2e-2, abs=6e-4
    )
    labels = view.data["labels"]
    assert one.page.locator("#panel h2").last.inner_text() == f"Layer {layer}, head {head}: {labels[layer][head]}"
    assert pressed_of(one, "#panel .habit") == [layer * heads + head]
    habits = one.page.locator("#panel .habit")
    assert habits.all_inner_texts() == [name for row in labels for name in row]
    grounds = habits.evaluate_all(
        "all => all.filter((one) => one.ariaPressed !== 'true').map((one) => getComputedStyle(one).backgroundColor)"
    )
    others = [
        name for place, name in enumerate(name for row in labels for name in row) if place != layer * heads + head
    ]
    np.testing.assert_array_equal(
        rgb(grounds), np.array([hex_parts(HABIT_COLOURS[name]) for name in others]).reshape(-1, 3)
    )
    measures = view.arrays["measures"].reshape(-1)
    cells = "#panel table:not(.tight) td:nth-child(n+4)"
    assert numbers(one, cells) == pytest.approx(measures.tolist(), rel=2e-2, abs=6e-4)
    check_grounds(one, cells, "sequential", 0.8 * measures)


def check_predictions(one: Opened, view: View, selection: dict[str, Any]) -> None:
    tokens = view.data["tokens"]
    first = tokens.index(view.data["mask"]) if view.data["mask"] in tokens else 0
    token = index(selection, "token", len(tokens), first)
    assert numbers(one, "#panel [aria-live=polite] .bars .number") == pytest.approx(
        view.arrays["probabilities"][token].tolist(), rel=3e-2, abs=6e-4
    )
    assert one.page.locator("#panel h2").last.inner_text().startswith(f"Position {token}: ")
    assert pressed_of(one, "#panel .strip .token") == [token]
    check_grounds(one, "#panel .strip .token", "sequential", view.arrays["own"].ravel())
    check_words(one, view.data["words"], view.arrays["probabilities"])


def check_lens(one: Opened, view: View, selection: dict[str, Any]) -> None:
    layers, length, _ = view.arrays["probabilities"].shape
    layer = selection.get("layer", layers)
    layer = min(max(layer + 1, 0), layers - 1) if isinstance(layer, int) else layers - 1
    names, mask = view.data["tokens"], view.data.get("mask")
    token = index(selection, "token", length, names.index(mask) if mask in names else 0)
    shown = numbers(one, "#panel [aria-live=polite] .bars .number")
    expected = [*view.arrays["probabilities"][layer, token], *view.arrays["own"][:, token]]
    assert shown == pytest.approx([float(value) for value in expected], rel=3e-2, abs=6e-4)
    assert (
        one.page.locator("#panel .card")
        .last.locator("h3")
        .first.inner_text()
        .startswith(f"After layer {layer}, position {token}: ")
    )
    check_words(
        one, [[[at[0]] for at in row] for row in view.data["words"][::-1]], view.arrays["probabilities"][::-1, :, :1]
    )
    chosen = one.page.locator("#panel td").evaluate_all(
        "all => all.flatMap((one, i) => one.matches('.chosen') ? [i] : [])"
    )
    assert chosen == [(layers - 1 - layer) * (length + 1) + 1 + token]


def check_words(one: Opened, words: Any, values: Any) -> None:
    """Words of a table: names, numbers and grounds."""
    texts = one.page.locator("#panel .word .token").all_inner_texts()
    assert texts == np.ravel(words).tolist()
    assert numbers(one, "#panel .word .number") == pytest.approx(np.ravel(values).tolist(), abs=6e-3)
    check_grounds(one, "#panel .word", "sequential", np.ravel(values))


def check_saliency(one: Opened, view: View, selection: dict[str, Any]) -> None:
    entries = [view.data, *view.data["others"]]
    of = index(selection, "saliency.of", len(entries), 0)
    entry, suffix = entries[of], str(of + 1) if of else ""
    layers = view.arrays.get(f"layers{suffix}")
    layer = None
    if layers is not None and selection.get("saliency.at") == "layer":
        chosen = selection.get("layer", len(layers))
        layer = min(max(chosen + 1, 0), len(layers) - 1) if isinstance(chosen, int) else len(layers) - 1
    values = view.arrays[f"effect{suffix}"] if layer is None or layers is None else layers[layer]
    token = index(selection, "token", len(entry["tokens"]), None)
    assert pressed_of(one, "#panel .strip .token") == ([] if token is None else [token])
    name = "diverging" if entry["signed"] else "sequential"
    check_grounds(one, "#panel .strip .token", name, 0.85 * values / max(1e-9, np.abs(values).max()))
    bars = "#panel [aria-live=polite] .bars"
    assert one.page.locator(f"{bars} .token").all_inner_texts() == entry["tokens"]
    assert numbers(one, f"{bars} .number") == pytest.approx(values.tolist(), rel=3e-2, abs=6e-4)
    if layers is not None:
        assert numbers(one, "#panel td.number button") == pytest.approx(layers[::-1].ravel().tolist(), abs=6e-3)
        check_grounds(
            one, "#panel td.number button", name, 0.85 * layers[::-1].ravel() / max(1e-9, np.abs(layers).max())
        )


def check_similarity(one: Opened, view: View, selection: dict[str, Any]) -> None:
    matrix = view.arrays["similarity"]
    row = index(selection, "point", len(matrix), 0)
    expected = np.sort(np.delete(matrix[row], row))[::-1][:8]
    assert numbers(one, "#panel [aria-live=polite] .bars .number") == pytest.approx(expected.tolist(), abs=2e-3)
    rows = view.data["rows"]
    assert (
        one.page.locator("#panel h3").last.inner_text().replace("\u2068", "").replace("\u2069", "")
        == f"Nearest to “{rows[row]}”"
    )
    if one.page.locator("#panel canvas.matrix").count():
        cell = r"^\D*(?P<i>\d+)\n\D*(?P<j>\d+)\n(?P<value>-?[\d.e-]+)$"
        check_cells(one, "#panel canvas.matrix", 0, cell, "diverging", matrix, matrix)
    else:
        assert pressed_of(one, "#panel .plain") == [row]
        assert numbers(one, "#panel td.number") == pytest.approx(matrix.ravel().tolist(), abs=6e-3)
        check_grounds(one, "#panel td.number", "diverging", matrix)


def check_positions(one: Opened, view: View, selection: dict[str, Any]) -> None:
    count = view.data["count"]
    at = index(selection, "positions.at", count, min(count - 1, count // 4))
    assert one.page.locator(".card h2").last.inner_text() == f"Position {at}: similarity to the others"
    assert one.page.locator("#panel input").input_value() == str(at)
    columns = view.data["columns"]
    for place, name in enumerate(("learned", "sinusoid", "table", "waves")):
        array = view.arrays[name]
        square = place < 2
        cell = r"positions? (?P<i>\d+)" + (" and " if square else ", number ") + r"(?P<j>\d+): (?P<value>-?[\d.e-]+)$"
        if not square:  # lines name the number of a column, of which only some are shown
            whole = np.zeros((count, max(columns) + 1), np.float32)
            whole[:, columns] = array
            array = whole
        drawn = array / (view.data["scale"] if name == "table" else 1)
        check_cells(one, "#panel canvas.matrix", place, cell, "diverging", array, drawn)


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
        chips = card.locator(".chips").last.locator("button.chip")
        visible = [one for one in entry["tokens"] if one["mask"]]
        assert chips.locator(".token").all_inner_texts() == [one["token"] for one in visible]
        assert chips.locator("small").all_inner_texts() == [str(one["id"]) for one in visible]


def check_map(one: Opened, view: View, selection: dict[str, Any]) -> None:
    texts, groups = view.data["texts"], view.data["groups"]
    point = index(selection, "point", len(texts), None)
    expected = [] if point is None else view.arrays["similarities"][point].tolist()
    assert numbers(one, ".neighbours li .number") == pytest.approx(expected, abs=1e-3)
    if point is not None:
        names = [f"{texts[i]}" for i in view.arrays["neighbours"][point].astype(int)]
        assert one.page.locator(".neighbours li bdi").all_inner_texts() == names
    group = index(selection, "map.group", len(set(groups)), None)
    shown = range(len(texts))
    if "map.area" not in selection:
        words, kinds = str(selection.get("map.find", "")).strip().lower(), sorted(set(groups))
        shown = [i for i in shown if words in texts[i].lower() and (group is None or groups[i] == kinds[group])]
        assert one.page.locator(".texts tbody tr").count() == len(shown)
        assert one.page.locator(".texts td:first-child").all_inner_texts() == [texts[i] for i in shown]
    check_points(one, view, selection.get("map.colour", "group"), set(shown))


def check_points(one: Opened, view: View, colour: Any, shown: set[int]) -> None:
    """Points have the colours of their groups or numbers; places beside a point have none, and some are below rings."""
    texts, groups = view.data["texts"], view.data["groups"]
    if colour == "group":
        table = [hex_parts(one) for one in CATEGORIES]
        values: Any = [sorted(set(groups)).index(group) for group in groups]
    elif colour == "kept" or str(colour).startswith("number."):
        table = scale(theme_of(one), "sequential")
        of = view.arrays["kept"].ravel() if colour == "kept" else np.array(view.data["numbers"][colour[7:]], float)
        low, high = (0, 1) if colour == "kept" else (of.min(), of.max())
        values = 255 * (of - low) / (high - low)
    else:
        return
    hits = []
    for text, pixel in probe(one, "canvas.points", count=1500):
        assert texts.index(text) in shown
        far = np.abs(np.array(table) - pixel).max(axis=1)
        if far.min() <= 6:
            hits.append(abs(far.argmin() - values[texts.index(text)]) <= (0.5 if colour == "group" else 8))
    # Zoomed in, there may be few or none, and one of a few may be below the ring of another point.
    assert len(hits) < 6 or np.mean(hits) > 0.7, (colour, hits)


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
    shades = 0.85 * np.maximum(moved, 0) / max(1e-9, float(np.abs(moved).max()))
    order = [int(button.get_attribute("data-set")) for button in one.page.locator("#panel [data-set]").all()]
    check_grounds(one, "#panel [data-set]", "sequential", shades[order])
    shown_moved = numbers(one, "#panel [data-set]", r"(-?[\d.]+)$")
    assert shown_moved == pytest.approx(moved[order].tolist(), abs=6e-3)
    if len(before) > 1:
        assert pressed_of(one, "#panel .strip .token") == [row]
        check_grounds(one, "#panel .strip .token", "sequential", 0.85 * far / max(far.max(), 1e-9))
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
    # Tokens are positions in the chosen text: the second, if it is another text of the page.
    content = one.page.evaluate("() => JSON.parse(document.getElementById('content').textContent)")
    texts = next(shown["texts"] for shown in content["views"] if shown["kind"] == "comparison")
    side = int(len(texts) == 2 and texts[0] != texts[1] and selection.get("text") == texts[1])
    units = [data["groups"][unit][side] for unit in data["units"]]

    def unit_of(token: int) -> int:
        return next((unit for unit, places in enumerate(units) if token in places), -1)

    length = len(data["tokens"][side])
    token = index(selection, "token", length, 0)
    query = unit_of(token)
    if query < 0 and any(token in group[side] for group in data["groups"]):
        assert "nothing to compare" in one.page.locator("[data-role=pair]").inner_text()
        return
    query = max(0, query)
    key = unit_of(index(selection, "pair", length, -1))
    a, b = (array[layer, head, query] for array, layer, head in zip(weights, layers, heads, strict=True))
    shown = numbers(one, "#panel [aria-live=polite] .bars .number")
    # A byte for each weight, so half a step for each of the two.
    np.testing.assert_allclose(np.abs(shown), np.sort(np.abs(b - a))[::-1][: len(shown)], atol=6e-3)
    text = one.page.locator("[data-role=pair]").inner_text()
    found = [float(number) for number in re.findall(r"(-?\d[\d.]*(?:e-\d+)?)(?= in the|\.$)", text)]
    assert found == pytest.approx([] if key < 0 else [a[key], b[key], b[key] - a[key]], abs=6e-3)
    drawn = [array[layer, head] for array, layer, head in zip(weights, layers, heads, strict=True)]
    change = drawn[1] - drawn[0]
    names = [
        f"{side}: layer {layer}, head {head}"
        for side, layer, head in zip(("First", "Second"), layers, heads, strict=True)
    ]
    assert one.page.locator("#panel .thirds h3").all_inner_texts()[:2] == names
    called = [
        " / ".join(dict.fromkeys(data["tokens"][side][i[side][0]] for side in (0, 1)))
        for i in (data["groups"][u] for u in data["units"])
    ]
    for place, (part, told) in enumerate(((r"first", drawn[0]), (r"second", drawn[1]), (r"difference", change))):
        for text, colour in probe(one, "#panel .thirds canvas", place, seed=place):
            match = re.search(rf"^(.*) → (.*)\n.*{part} (-?[\d.e-]+)", text)
            assert match, text
            i, j = called.index(match[1]), called.index(match[2])
            assert float(match[3]) == pytest.approx(told[i, j], abs=5e-3)
            share = shares(theme_of(one), "diverging" if place == 2 else "sequential", [colour])
            if place == 2:
                assert share[0] == pytest.approx(change[i, j] / np.abs(change).max(), abs=0.05)
            else:
                check_shares(share, [told[i, j]], root=True, of=text)
    alike = view.arrays["layers"]
    cell = r"layer (?P<i>\d+) and layer (?P<j>\d+): (?P<value>[\d.e-]+)"
    check_cells(one, "#panel .card:last-child canvas", 0, cell, "sequential", alike, alike)
    if "heads" in view.arrays:
        heads_far = view.arrays["heads"].ravel()
        assert numbers(one, "#panel [data-head]") == pytest.approx(heads_far.tolist(), abs=6e-3)
        check_grounds(one, "#panel [data-head]", "sequential", 0.8 * heads_far / heads_far.max())


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
    cells = one.page.locator("#panel tbody tr").evaluate_all(
        "all => all.map((row) => [...row.cells].map((one) => one.textContent))"
    )
    assert [row[0] for row in cells] == view.data["words"]
    assert [[float(row[1]), float(row[2])] for row in cells] == view.arrays["counts"].tolist()


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


def own_names(selection: dict[str, Any], name: str, kind: str) -> dict[str, Any]:
    """The choices that a view alone has begin with its name in the address; here with its kind, as the first's."""
    others = {key: value for key, value in selection.items() if not re.match(rf"{kind}\.", key)}
    own = {kind + key.removeprefix(name): value for key, value in selection.items() if key.startswith(f"{name}.")}
    if name == kind:  # not the choices of the second
        own = {key: value for key, value in own.items() if not re.match(rf"{kind}\.\d", key)}
    return others | own


def check_view(one: Opened, view: View, selection: dict[str, Any]) -> None:
    """What the page shows of a view is what its arrays and the choices say."""
    check_legends(one)
    CHECKS[view.kind](one, view, selection)
