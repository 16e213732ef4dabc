"""The colours of pages and pictures: maps and categories that people with any colour vision can tell apart."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array

#: Stops of the maps, evenly spaced: ``sequential`` from 0 to 1, ``diverging`` from −1 to 1. Sources: ColorBrewer's
#: Blues, and its orange and blue arms joined; the dark forms have the same order of lightness, reversed.
PALETTE = {
    "light": {
        "sequential": ["#f7fbff", "#d6e6f4", "#a6cee4", "#60a7d2", "#2a7ab9", "#0b4d94", "#08306b"],
        "diverging": ["#8c4306", "#d9741a", "#f6b26b", "#f7f7f7", "#8fc1e0", "#2f7fbd", "#0b4481"],
    },
    "dark": {
        "sequential": ["#161b22", "#14324a", "#165077", "#1d72a8", "#3c9ad6", "#83c5f0", "#dff2ff"],
        "diverging": ["#ffc68a", "#d9812f", "#74420f", "#1b2028", "#134a70", "#2f8fcf", "#a8dcff"],
    },
}

#: Okabe and Ito (2008), with the yellow darkened for a white ground.
CATEGORIES = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#a08a00", "#6e7781"]

#: The shapes of groups in a map, as corners around 0; the first, without corners, is a circle.
MARKS: list[list[tuple[float, float]]] = [
    [],
    [(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)],
    [(0, -1.15), (1.05, 0.85), (-1.05, 0.85)],
    [(0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)],
    [(0, 1.15), (1.05, -0.85), (-1.05, -0.85)],
    [
        *((-0.4, -1.1), (0.4, -1.1), (0.4, -0.4), (1.1, -0.4), (1.1, 0.4), (0.4, 0.4)),
        *((0.4, 1.1), (-0.4, 1.1), (-0.4, 0.4), (-1.1, 0.4), (-1.1, -0.4), (-0.4, -0.4)),
    ],
]

HABIT_COLOURS = {
    "previous": "#0072b2",
    "next": "#56b4e9",
    "itself": "#a08a00",
    "first": "#e69f00",
    "separator": "#d55e00",
    "same word": "#cc79a7",
    "same sentence": "#009e73",
    "broad": "#8d99a6",
    "mixed": "#d8dee4",
}


@cache
def _table(name: str) -> npt.NDArray[np.uint8]:
    """Return 256 colours of a map in its light form, uint8 [256, 3]: the same as in a page."""
    stops = np.array([[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in PALETTE["light"][name]], np.float64)
    place = np.arange(256) / 255 * (len(stops) - 1)
    low = np.minimum(place.astype(int), len(stops) - 2)
    colours = stops[low] + (stops[low + 1] - stops[low]) * (place - low)[:, None]
    table: npt.NDArray[np.uint8] = np.floor(colours + 0.5).astype(np.uint8)
    return table


def mapped(values: Array, name: str) -> npt.NDArray[np.uint8]:
    """Return the colours of values in the light form of a map, uint8 [..., 3]."""
    share = np.clip(values if name == "sequential" else (values.astype(np.float64) + 1) / 2, 0, 1)
    found: npt.NDArray[np.uint8] = _table(name)[np.floor(share.astype(np.float64) * 255 + 0.5).astype(int)]
    return found


def colour(value: float, name: str = "sequential") -> str:
    """Return the colour of one value as #rrggbb."""
    return "#" + "".join(f"{part:02x}" for part in mapped(np.array([value], np.float32), name)[0].tolist())


def luminance(colour: str) -> float:
    """Return the relative luminance of #rrggbb, as WCAG 2 defines it."""
    parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def ink_on(ground: str) -> str:
    """Return the colour of text that reads on #rrggbb: a contrast of 4.5 at least."""
    light = luminance(ground)
    return "#1f2328" if light > 0.26 else "#000000" if light > 0.179 else "#ffffff"


def group_mark(index: int) -> tuple[str, list[tuple[float, float]]]:
    """Return the colour and the shape of the group with this number; 48 differ."""
    colours = len(CATEGORIES)
    return CATEGORIES[index % colours], MARKS[(index % colours + index // colours) % len(MARKS)]
