"""What an SVG of a page has: the cells, lines and points of the drawings as shapes, as many and in the colours of the data.

It needs what `test_inspect_browser` needs.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from browser_pages import open_page, some_attention
from chromium import browser, needs_chromium
from svg_cells import pictures, tag
from wordpiece_bert import inspect
from wordpiece_bert._internal.drawing import MOST_CELLS
from wordpiece_bert.inspect.colours import group_mark, mapped

if TYPE_CHECKING:
    from browser_pages import Opened

pytestmark = needs_chromium


def saved(one: Opened) -> ET.Element:
    one.page.wait_for_function("() => panel.dataset.shown !== undefined")
    one.drawn()
    one.page.locator(".take > summary").click()
    with one.page.expect_download() as download:
        one.page.get_by_role("button", name="Save as SVG").click()
    one.page.keyboard.press("Escape")
    return ET.fromstring(download.value.path().read_bytes())


def of_size(svg: ET.Element, rows: int, columns: int) -> list[np.ndarray]:
    return [one for one in pictures(svg) if one.shape[:2] == (rows, columns)]


def close(found: np.ndarray, expected: np.ndarray, steps: int) -> bool:
    """Whether colours are equal, up to so many of the 256 steps of a map: pages round what they store."""
    ramp = mapped(np.linspace(-1, 1, 256, dtype=np.float32), "diverging").astype(int)
    return int(np.abs(found.astype(int) - expected.astype(int)).max()) <= steps * int(
        np.abs(np.diff(ramp, axis=0)).max()
    )


def test_the_cells_of_a_heat_map_have_the_colours_of_its_array(open_page: Any) -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 6))
    view = inspect.similarity(vectors, [f"text {i}" for i in range(50)])
    svg = saved(open_page(view))
    (cells,) = of_size(svg, 50, 50)
    assert close(cells, mapped(view.arrays["similarity"], "diverging"), 1)
    assert not [one for one in svg.iter() if tag(one) == "image"]


def test_matrix_lines_and_heads_of_attention_are_shapes(open_page: Any) -> None:
    weights, names = some_attention(12, 2, 3), [f"t{i}" for i in range(12)]
    view = inspect.attention(weights, names, layer=1, head=2, token=4)
    one = open_page(view)
    svg = saved(one)
    found = of_size(svg, 12, 12)
    assert len(found) == 6 + 1  # each head, and the matrix
    shares = np.sqrt(weights / weights.max(axis=-1, keepdims=True))
    for number, cells in enumerate(found[:6]):
        assert close(cells, mapped(shares[divmod(number, 3)], "sequential"), 3), number
    assert close(found[6], mapped(shares[1, 2], "sequential"), 3)
    # A line from the chosen token to each key, the thicker the larger its weight.
    curves = [each for each in svg.iter() if tag(each) == "path" and "C" in each.get("d", "")]
    widths = sorted(float(each.get("stroke-width", "0")) for each in curves)
    row = weights[1, 2, 4] / weights[1, 2, 4].max()
    assert widths == pytest.approx(sorted(0.7 + 3.3 * share for share in row.tolist() if share >= 0.004), abs=0.03)
    assert {each.get("stroke") for each in curves} == {"#0b6ba8"}
    texts = [each.text for each in svg.iter() if tag(each) == "text"]
    assert all(
        texts.count(name) >= 5 for name in names
    )  # on both sides of the lines and of the matrix, and in the strip
    assert not [each for each in svg.iter() if tag(each) == "image"]


def test_the_points_of_a_map_are_shapes_in_the_colours_of_their_groups(open_page: Any) -> None:
    points = np.random.default_rng(3).normal(size=(60, 5))
    groups = [f"group {i % 3}" for i in range(60)]
    svg = saved(open_page(inspect.embedding_map(points, [f"text {i}" for i in range(60)], groups=groups)))
    marks = [one for one in svg.iter() if one.get("fill-opacity") == "0.88"]
    assert len(marks) == 60
    for number, kind in enumerate(("circle", "path", "path")):
        colour, shape = group_mark(number)
        mine = [one for one in marks if one.get("fill") == colour]
        assert len(mine) == 20
        assert {tag(one) for one in mine} == {kind}
        assert all(len(re.findall("[ML]", one.get("d", ""))) == len(shape) for one in mine)

    years = inspect.embedding_map(points, [f"text {i}" for i in range(60)], numbers={"year": list(range(60))})
    svg = saved(open_page(years))
    circles = [one for one in svg.iter() if tag(one) == "circle"]
    assert len(circles) == 60
    expected = mapped(np.arange(60, dtype=np.float32) / 59, "sequential")
    assert sorted(one.get("fill", "") for one in circles) == sorted("#" + bytes(one).hex() for one in expected)
    assert all(one.get("stroke") for one in circles)


def test_a_page_and_a_picture_of_python_have_the_same_cells(open_page: Any) -> None:
    """Values that a page stores exactly: of a text in which each head looks at whole shares of its row."""
    weights = np.zeros((2, 2, 4, 4), np.float32)
    for number in range(16):
        weights[number // 8, number // 4 % 2, number % 4, number % 4] = 1
    view = inspect.attention(weights, list("abcd"))
    of_page = of_size(saved(open_page(view)), 4, 4)[:4]
    of_picture = list(pictures(ET.fromstring(view.to_svg())))
    assert len(of_picture) == 4
    for one, other in zip(of_page, of_picture, strict=True):
        np.testing.assert_array_equal(one, other)


def test_more_cells_than_an_svg_draws_are_png(open_page: Any) -> None:
    """The part of the matrix that is large is drawn; the whole of it, and the heads, are images."""
    length = 260
    assert length**2 > MOST_CELLS
    one = open_page(inspect.attention(some_attention(length, 2, 10), [f"t{i}" for i in range(length)], layer=0))
    svg = saved(one)
    assert len(of_size(svg, 32, 32)) == 1
    images = [(each.get("width"), each.get("height")) for each in svg.iter() if tag(each) == "image"]
    assert images.count(("260", "260")) == 1
    assert images.count(("48", "48")) == 20  # 46,080 cells together
    count = one.page.evaluate(
        "() => document.scripts[document.scripts.length - 1].textContent.match(/MOST_DRAWN_CELLS = ([0-9_]+)/)[1]"
    )
    assert int(count.replace("_", "")) == MOST_CELLS
