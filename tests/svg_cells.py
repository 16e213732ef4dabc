"""The pictures of cells in an SVG, which `wordpiece_bert` draws as rectangles, a path for each colour."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import xml.etree.ElementTree as ET
    from collections.abc import Iterator

RECTANGLE = re.compile(r"M(\d+) (\d+)h(\d+)v(\d+)h-(\d+)z")


def tag(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def pictures(svg: ET.Element) -> Iterator[np.ndarray]:
    """The pictures of cells, uint8 [rows, columns, 3]; each cell must be covered once."""
    for group in svg.iter("{http://www.w3.org/2000/svg}g"):
        if group.get("shape-rendering") != "crispEdges":
            continue
        boxes = [
            (path.get("fill"), *map(int, numbers[:4]))
            for path in group
            for numbers in RECTANGLE.findall(path.get("d", ""))
        ]
        assert all(not RECTANGLE.sub("", path.get("d", "")) for path in group)
        rows = max(y + height for _, _, y, _, height in boxes)
        columns = max(x + width for _, x, _, width, _ in boxes)
        pixels = np.zeros((rows, columns, 3), np.uint8)
        covered = np.zeros((rows, columns), int)
        for fill, x, y, width, height in boxes:
            pixels[y : y + height, x : x + width] = [int(fill[i : i + 2], 16) for i in (1, 3, 5)]
            covered[y : y + height, x : x + width] += 1
        assert covered.min() == covered.max() == 1
        yield pixels
