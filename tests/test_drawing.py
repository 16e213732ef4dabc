"""Drawings as SVG: cells are rectangles in their colours, up to a number of them."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from svg_cells import RECTANGLE, pictures, tag
from wordpiece_bert._internal.drawing import Drawing


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (40, 7)])
@pytest.mark.parametrize("colours", [1, 3, 300])
def test_cells_of_a_drawing_are_rectangles(shape: tuple[int, int], colours: int) -> None:
    rng = np.random.default_rng(7)
    pixels = rng.integers(0, 256, (colours, 3), dtype=np.uint8)[rng.integers(0, colours, shape)]
    drawing = Drawing(100, 100, "cells")
    drawing.image(10, 20, 50, 40, pixels)
    svg = ET.fromstring(drawing.to_svg())
    (cells,) = pictures(svg)
    np.testing.assert_array_equal(cells, pixels)
    if colours == 1:
        assert sum(len(RECTANGLE.findall(one.get("d", ""))) for one in svg.iter()) == 1


def test_a_drawing_has_so_many_cells_and_the_smallest_pictures_first() -> None:
    pixels = np.random.default_rng(2).integers(0, 256, (20, 10, 3), dtype=np.uint8)
    drawing = Drawing(300, 100, "cells")
    for x, part in ((0, pixels), (100, pixels), (200, pixels[:5])):
        drawing.image(x, 0, 50, 50, part)
    for most, drawn in ((450, 3), (449, 1), (50, 1), (49, 0)):
        svg = ET.fromstring(drawing.to_svg(most))
        assert len(list(pictures(svg))) == drawn
        assert len([one for one in svg.iter() if tag(one) == "image"]) == 3 - drawn
    assert len(list(pictures(ET.fromstring(drawing.to_svg())))) == 3
