"""The map of `wordpiece_bert.inspect` in Chromium: what it shows is compared with the arrays."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from browser_pages import open_page
from chromium import browser, needs_chromium
from wordpiece_bert import inspect
from wordpiece_bert.inspect import maps

if TYPE_CHECKING:
    from browser_pages import Opened
    from wordpiece_bert.inspect import View

pytestmark = needs_chromium

COUNT = 150


@pytest.fixture(scope="module")
def view() -> View:
    rng = np.random.default_rng(5)
    groups = [f"group {i % 13:02}" for i in range(COUNT)]
    x = rng.normal(size=(13, 16))[np.arange(COUNT) % 13] * 2 + rng.normal(size=(COUNT, 16))
    texts = [f"text {i}" for i in range(COUNT)]
    texts[3], texts[4] = "نص عربي", "a long text " * 40
    return inspect.embedding_map(x, texts, groups=groups, numbers={"year": np.arange(COUNT) + 1850}, method="tsne")


def followed(one: Opened, **values: object) -> None:
    """Wait until the page shows what its address then says."""
    parts = [f"{name}={value}" for name, value in values.items()]
    one.page.wait_for_function("all => all.every((part) => panel.dataset.shown.includes(part))", arg=parts)


def place(one: Opened, view: View, index: int) -> tuple[float, float]:
    """Where a point is on the screen, before the map was moved."""
    points = view.arrays["points"].astype(float)
    low, high = points.min(axis=0), points.max(axis=0)
    box = one.page.locator("canvas.points").bounding_box()
    unit = min(0.92 * box["width"] / (high - low)[0], 0.9 * box["height"] / (high - low)[1])
    x, y = (points[index] - (low + high) / 2) * unit
    return box["x"] + box["width"] / 2 + x, box["y"] + box["height"] / 2 - y


def neighbours(one: Opened) -> list[tuple[str, float, bool]]:
    """The texts of the list of neighbours, their cosines, and whether they are near on the map."""
    found = []
    for text in one.page.locator(".neighbours li").all_inner_texts():
        cosine, rest = text.split(maxsplit=1)
        found.append((rest.removesuffix(" · not near on the map"), float(cosine), rest.endswith("not near on the map")))
    return found


def picture(one: Opened) -> str:
    return str(one.page.locator("canvas.points").evaluate("(canvas) => canvas.toDataURL()"))


def settled_picture(one: Opened) -> str:
    one.drawn()
    return picture(one)


def isolated(view: View) -> int:
    """The point that is farthest from its nearest, which no click misses."""
    points = view.arrays["points"].astype(float)
    distances = np.linalg.norm(points[:, None] - points, axis=-1) + np.diag(np.full(len(points), np.inf))
    return int(distances.min(axis=1).argmax())


def test_a_click_shows_the_exact_neighbours_and_a_neighbour_is_the_next(open_page: Any, view: View) -> None:
    one = open_page(view)
    assert f"{view.data['kept']:.0%}".replace("%", " %") in one.page.locator(".view-map").inner_text()
    index = isolated(view)
    for step in range(3):
        if step == 0:
            one.page.mouse.click(*place(one, view, index))
        else:
            one.page.locator(".neighbours li button").nth(2).click()
            index = int(view.arrays["neighbours"][index, 2])
        followed(one, point=index)
        one.page.wait_for_function("() => location.hash === panel.dataset.shown")  # quick choices are one step back
        shown = neighbours(one)
        assert len(shown) == 10
        for (text, cosine, _), j, expected in zip(
            shown, view.arrays["neighbours"][index], view.arrays["similarities"][index], strict=True
        ):
            assert text.rstrip("…") in view.data["texts"][j].strip()
            assert cosine == pytest.approx(expected, abs=1 / 4000 + 5e-4)
        near = sum(not is_far for _, _, is_far in shown)
        assert near == round(10 * view.arrays["kept"][index])
    one.page.go_back()
    followed(one, point=view.arrays["neighbours"][isolated(view), 2])


def test_arrow_keys_go_from_point_to_point(open_page: Any, view: View) -> None:
    one = open_page(view)
    canvas = one.page.locator("canvas.points")
    canvas.focus()
    one.page.keyboard.press("ArrowRight")
    one.page.wait_for_function("() => panel.dataset.shown.includes('point=')")
    points = view.arrays["points"]

    def chosen() -> int:
        return int(one.page.evaluate("Number(/point=(\\d+)/.exec(panel.dataset.shown)[1])"))

    first = chosen()
    one.page.keyboard.press("ArrowUp")
    one.page.wait_for_function(f"() => !panel.dataset.shown.endsWith('point={first}')")
    second = chosen()
    assert points[second, 1] > points[first, 1]
    before = settled_picture(one)
    one.page.keyboard.press("Shift+ArrowLeft")
    assert settled_picture(one) != before
    assert chosen() == second


def test_search_group_and_area_choose_what_table_and_file_have(open_page: Any, view: View) -> None:
    one = open_page(view)
    page = one.page
    page.get_by_role("button", name="group 03", exact=True).click()
    followed(one, **{"map.group": 3})
    expected = [i for i in range(COUNT) if i % 13 == 3]
    assert page.locator(".texts tbody tr").count() == len(expected)
    page.get_by_label("Search the texts").fill("text 1")
    followed(one, **{"map.find": "text"})
    expected = [i for i in expected if "text 1" in view.data["texts"][i]]
    page.wait_for_function(f"() => document.querySelectorAll('.texts tbody tr').length === {len(expected)}")
    assert f"{len(expected)} of {COUNT} texts" in page.locator(".view-map").inner_text()
    page.get_by_role("button", name="Show all").click()
    page.wait_for_function("() => !panel.dataset.shown.includes('map.')")

    # The right half of the map, drawn with the pointer.
    page.get_by_role("radio", name="select").click()
    box = page.locator("canvas.points").bounding_box()
    left, right = box["x"] + box["width"] / 2, box["x"] + box["width"] - 2
    corners = [(left, box["y"] + 2), (right, box["y"] + 2), (right, box["y"] + box["height"] - 2)]
    page.mouse.move(*corners[0])
    page.mouse.down()
    for corner in [*corners[1:], (left, box["y"] + box["height"] - 2)]:
        page.mouse.move(*corner, steps=5)
    page.mouse.up()
    page.wait_for_function("() => panel.dataset.shown.includes('map.area=')")
    points = view.arrays["points"]
    middle = (points.min(axis=0) + points.max(axis=0))[0] / 2
    width = float(np.ptp(points[:, 0]))
    with page.expect_download() as saved:
        page.get_by_text("Take away", exact=True).click()
        page.get_by_role("button", name="Save as CSV").click()
    rows = list(csv.DictReader(io.StringIO(saved.value.path().read_text(encoding="utf-8-sig"))))
    found = {int(row["row"]) for row in rows}
    for i in range(COUNT):
        if abs(points[i, 0] - middle) > 0.01 * width:
            assert (i in found) == (points[i, 0] > middle)
    for row in rows:
        i = int(row["row"])
        assert row["text"].strip() == view.data["texts"][i].strip()
        assert (row["group"], float(row["year"])) == (view.data["groups"][i], 1850 + i)
        assert [float(row["x"]), float(row["y"])] == pytest.approx(points[i].tolist(), rel=1e-5)
        assert float(row["kept"]) == pytest.approx(float(view.arrays["kept"][i]))
        assert list(map(int, row["nearest rows"].split())) == view.arrays["neighbours"][i].tolist()


def test_colours_by_group_number_and_kept_share(open_page: Any, view: View) -> None:
    one = open_page(view)
    pictures = {settled_picture(one)}
    for name in ("year", "share of neighbours kept", "one colour"):
        one.page.get_by_label("Colour").select_option(label=name)
        followed(one, **{"map.colour": {"year": "number.year", "share of neighbours kept": "kept"}.get(name, "none")})
        pictures.add(settled_picture(one))
        if name == "year":
            assert one.page.locator(".view-map .legend").last.inner_text().split() == ["1850", "1999", "year"]
    assert len(pictures) == 4


def test_a_wheel_scrolls_the_page_and_zooms_with_ctrl(open_page: Any, view: View) -> None:
    one = open_page(view, height=500)
    before = settled_picture(one)
    one.page.mouse.move(*place(one, view, isolated(view)))
    one.page.mouse.wheel(0, 120)
    one.page.wait_for_function("() => scrollY > 60")
    assert settled_picture(one) == before
    scrolled = one.page.evaluate("scrollY")
    box = one.page.locator("canvas.points").bounding_box()
    one.page.mouse.move(box["x"] + 50, box["y"] + 150)
    one.page.keyboard.down("Control")
    one.page.mouse.wheel(0, -120)
    one.page.keyboard.up("Control")
    assert settled_picture(one) != before
    assert one.page.evaluate("scrollY") == scrolled


def touches(one: Opened, paths: list[list[tuple[float, float]]]) -> None:
    """Put down a finger for each path of places from the middle of the map, move them, and lift them."""
    client = one.page.context.new_cdp_session(one.page)
    box = one.page.locator("canvas.points").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    for step, places in enumerate(zip(*paths, strict=True)):
        points = [{"x": x + dx, "y": y + dy, "id": i} for i, (dx, dy) in enumerate(places)]
        client.send("Input.dispatchTouchEvent", {"type": "touchMove" if step else "touchStart", "touchPoints": points})
    client.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_one_finger_scrolls_the_page(open_page: Any, view: View) -> None:
    one = open_page(view, 390, has_touch=True, is_mobile=True)
    before = settled_picture(one)
    touches(one, [[(0, -15.0 * step) for step in range(12)]])
    one.page.wait_for_function("() => scrollY > 60")
    assert settled_picture(one) == before


def test_two_fingers_zoom_the_map_and_not_the_page(open_page: Any, view: View) -> None:
    one = open_page(view, 390, has_touch=True, is_mobile=True)
    before = settled_picture(one)
    touches(one, [[(side * (20.0 + 8 * step), 0.0) for step in range(8)] for side in (-1, 1)])
    assert settled_picture(one) != before
    assert one.page.evaluate("() => [visualViewport.scale, scrollY]") == [1, 0]
    zoomed = settled_picture(one)
    touches(one, [[(side * 60, 10.0 * step) for step in range(8)] for side in (-1.0, 1.0)])
    assert settled_picture(one) not in {before, zoomed}
    assert one.page.evaluate("() => [visualViewport.scale, scrollY]") == [1, 0]


def test_a_link_shows_the_same_map(open_page: Any, view: View) -> None:
    one = open_page(view)
    one.page.get_by_label("Colour").select_option(label="year")
    one.page.get_by_role("button", name="Take what is in view").click()
    one.page.get_by_role("button", name="group 07", exact=True).click()
    one.page.mouse.click(*place(one, view, isolated(view)))
    followed(one, **{"map.group": 7, "map.colour": "number.year"})
    one.page.wait_for_function("() => location.hash === panel.dataset.shown")
    texts = one.page.locator(".view-map").inner_text()
    before = settled_picture(one)
    one.page.reload()
    one.requests.pop()  # the page itself, again
    one.ready()
    one.page.wait_for_function("() => location.hash === panel.dataset.shown")
    assert one.page.locator(".view-map").inner_text() == texts
    assert settled_picture(one) == before


@pytest.mark.parametrize("count", [0, 1, 2, 3000])
def test_few_and_many_points(open_page: Any, count: int) -> None:
    x = np.random.default_rng(1).normal(size=(count, 8))
    one = open_page(inspect.embedding_map(x, [f"t{i}" for i in range(count)]))
    assert f"{count} text{'s' * (count != 1)}." in one.page.locator(".view-map").inner_text()
    if not count:
        return
    one.page.locator(".texts tbody button").first.click()
    followed(one, point=0)
    assert len(neighbours(one)) == min(10, count - 1)


def test_a_map_of_many_texts_says_which_have_neighbours(open_page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "MOST_EXACT", 30)
    x = np.random.default_rng(1).normal(size=(60, 8))
    view = inspect.embedding_map(x, [f"t{i}" for i in range(60)], neighbours=3)
    one = open_page(view)
    assert "They were looked for of 15 texts" in one.page.locator(".view-map").inner_text()
    buttons = one.page.locator(".texts tbody button")
    buttons.nth(1).click()
    followed(one, point=1)
    assert "The nearest texts of 15 texts were looked for" in one.page.locator(".neighbours").inner_text()
    assert neighbours(one) == []
    buttons.nth(4).click()
    followed(one, point=4)
    assert [text for text, _, _ in neighbours(one)] == [f"t{j}" for j in view.arrays["neighbours"][4]]
    with one.page.expect_download() as saved:
        one.page.get_by_text("Take away", exact=True).click()
        one.page.get_by_role("button", name="Save as CSV").click()
    rows = list(csv.DictReader(io.StringIO(saved.value.path().read_text(encoding="utf-8-sig"))))
    assert [row["kept"] != "" for row in rows] == [i % 4 == 0 for i in range(60)]
