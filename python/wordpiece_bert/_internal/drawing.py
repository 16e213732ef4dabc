"""A picture of simple shapes, written as SVG by this module and as PNG by matplotlib."""

from __future__ import annotations

import base64
import io
import re
import struct
import warnings
import zlib
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from wordpiece_bert._internal.figures import new_figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


INK, SOFT, GROUND = "#1f2328", "#59636e", "#ffffff"
FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
#: Pictures of cells are rectangles up to this many cells in one SVG; the scripts of a page have the same number.
MOST_CELLS = 20_000
# Characters that XML 1.0 does not allow, even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text_width(text: str, size: float) -> float:
    """Return about how wide a text is in the page's font, in pixels."""
    return sum(size if ord(c) > 0x2E80 else 0.57 * size for c in text)


class Drawing:
    """Shapes on a white ground, in pixels from the top left corner, drawn in the order in which they were added.

    Parameters
    ----------
    width, height
        The size in pixels.
    title
        What a screen reader says about the picture.
    """

    def __init__(self, width: float, height: float, title: str) -> None:
        self.width, self.height, self.title = float(width), float(height), title
        self._shapes: list[_Shape] = []

    def rectangle(self, x: float, y: float, width: float, height: float, fill: str, *, radius: float = 0) -> None:
        """Add a rectangle."""
        self._shapes.append(_Rectangle(x, y, width, height, fill, radius))

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 13,
        fill: str = INK,
        anchor: str = "start",
        bold: bool = False,
        turn: float = 0,
    ) -> None:
        """Add a line of text whose baseline is at y; `anchor` is start, middle or end, `turn` degrees clockwise."""
        line = _FORBIDDEN.sub("\ufffd", text).replace("\n", " ")
        self._shapes.append(_Text(x, y, line, size, fill, anchor, bold, turn))

    def curve(self, x1: float, y1: float, x2: float, y2: float, stroke: str, width: float, opacity: float = 1) -> None:
        """Add a curve that leaves and arrives horizontally."""
        self._shapes.append(_Curve(x1, y1, x2, y2, stroke, width, opacity))

    def line(self, points: Sequence[tuple[float, float]], stroke: str, width: float) -> None:
        """Add a line through points."""
        self._shapes.append(_Line(list(points), stroke, width))

    def circle(self, x: float, y: float, radius: float, fill: str, opacity: float = 1) -> None:
        """Add a filled circle."""
        self._shapes.append(_Circle(x, y, radius, fill, opacity))

    def polygon(self, points: Sequence[tuple[float, float]], fill: str, opacity: float = 1) -> None:
        """Add a filled polygon."""
        self._shapes.append(_Polygon(list(points), fill, opacity))

    def image(self, x: float, y: float, width: float, height: float, pixels: npt.NDArray[np.uint8]) -> None:
        """Add a picture of cells, uint8 [rows, columns, 3], each of which becomes a rectangle of its colour."""
        self._shapes.append(_Image(x, y, width, height, pixels))

    def to_svg(self, most_cells: int = MOST_CELLS) -> str:
        """Return the picture as SVG, with up to `most_cells` cells as rectangles.

        Pictures of cells are drawn the smallest first, all or none of one size; the others are embedded as PNG.
        """
        sizes = Counter(shape.cells for shape in self._shapes if isinstance(shape, _Image))
        left, drawn = most_cells, 0  # pictures up to `drawn` cells are rectangles
        for cells, count in sorted(sizes.items()):
            left -= cells * count
            if left < 0:
                break
            drawn = cells
        w, h = _n(self.width), _n(self.height)
        title = escape(_FORBIDDEN.sub("\ufffd", self.title))
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" '
            f'font-family="{FONT}"><title>{title}</title><rect width="{w}" height="{h}" fill="{GROUND}"/>'
        )
        shapes = (s.png_svg() if isinstance(s, _Image) and s.cells > drawn else s.svg() for s in self._shapes)
        return head + "".join(shapes) + "</svg>"

    def to_png(self, scale: float = 2) -> bytes:
        """Return the picture as PNG, `scale` pixels for each of its own.

        Raises
        ------
        InputError
            matplotlib is not installed.
        """
        size = (self.width / 100, self.height / 100)
        figure, canvas = new_figure(
            "a PNG picture", ", or save it as .svg", figsize=size, dpi=100 * scale, facecolor=GROUND
        )
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, self.width)
        axes.set_ylim(self.height, 0)
        axes.axis("off")
        for order, shape in enumerate(self._shapes):
            shape.draw(axes, order)
        content = io.BytesIO()
        with warnings.catch_warnings():
            # A character that the installed fonts do not have is drawn as a box.
            warnings.filterwarnings("ignore", message=r"(?s).*Glyph")
            canvas.print_png(content)
        return content.getvalue()


def png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Return an image, uint8 [rows, columns, 3], as a PNG file."""
    rows, columns, _ = pixels.shape

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)  # 8 bits, RGB
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), pixels.reshape(rows, -1)], axis=1)  # filter 0 in each line
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


# --- shapes, as SVG and as PNG by matplotlib


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


class _Shape(Protocol):
    def svg(self) -> str:
        """Return the element."""

    def draw(self, axes: Any, order: int) -> None:
        """Add the shape to matplotlib's axes."""


class _Rectangle(NamedTuple):
    x: float
    y: float
    width: float
    height: float
    fill: str
    radius: float

    def svg(self) -> str:
        place = f'x="{_n(self.x)}" y="{_n(self.y)}" width="{_n(self.width)}" height="{_n(self.height)}"'
        more = f' rx="{_n(self.radius)}"' if self.radius else ""
        return f'<rect {place} fill="{self.fill}"{more}/>'

    def draw(self, axes: Any, order: int) -> None:
        from matplotlib.patches import FancyBboxPatch

        radius = min(self.radius, self.width / 2, self.height / 2)
        patch = FancyBboxPatch(
            (self.x, self.y),
            self.width,
            self.height,
            boxstyle=f"round,pad=0,rounding_size={radius}" if self.radius else "square,pad=0",
            facecolor=self.fill,
            edgecolor="none",
        )
        patch.set_zorder(order)
        axes.add_patch(patch)


class _Text(NamedTuple):
    x: float
    y: float
    text: str
    size: float
    fill: str
    anchor: str
    bold: bool
    turn: float

    def svg(self) -> str:
        x, y = _n(self.x), _n(self.y)
        more = ' font-weight="600"' * self.bold
        more += f' transform="rotate({_n(self.turn)} {x} {y})"' if self.turn else ""
        look = f'font-size="{_n(self.size)}" fill="{self.fill}" text-anchor="{self.anchor}"'
        return f'<text x="{x}" y="{y}" {look}{more}>{escape(self.text)}</text>'

    def draw(self, axes: Any, order: int) -> None:
        axes.text(
            self.x,
            self.y,
            self.text,
            fontsize=self.size * 0.72 * 0.92,  # pixels to points; matplotlib's font is wider
            color=self.fill,
            ha={"start": "left", "middle": "center", "end": "right"}[self.anchor],
            va="baseline",
            rotation=-self.turn,
            rotation_mode="anchor",
            fontweight="bold" if self.bold else "normal",
            parse_math=False,
            zorder=order,
        )


class _Curve(NamedTuple):
    x1: float
    y1: float
    x2: float
    y2: float
    stroke: str
    width: float
    opacity: float

    def svg(self) -> str:
        x1, y1, x2, y2, middle = map(_n, (self.x1, self.y1, self.x2, self.y2, (self.x1 + self.x2) / 2))
        is_straight = self.y1 == self.y2 or self.x1 == self.x2
        path = f"M{x1} {y1}L{x2} {y2}" if is_straight else f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}"
        more = f' stroke-opacity="{_n(self.opacity)}"' if self.opacity < 1 else ""
        return f'<path d={quoteattr(path)} fill="none" stroke="{self.stroke}" stroke-width="{_n(self.width)}"{more}/>'

    def draw(self, axes: Any, order: int) -> None:
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        start, end, middle = (self.x1, self.y1), (self.x2, self.y2), (self.x1 + self.x2) / 2
        path = Path([start, (middle, self.y1), (middle, self.y2), end], [Path.MOVETO, *[Path.CURVE4] * 3])
        if self.x1 == self.x2:
            path = Path([start, end])
        width = self.width * 0.72
        shape = PathPatch(path, facecolor="none", edgecolor=self.stroke, linewidth=width, alpha=self.opacity)
        shape.set_zorder(order)
        axes.add_patch(shape)


class _Line(NamedTuple):
    points: list[tuple[float, float]]
    stroke: str
    width: float

    def svg(self) -> str:
        places = " ".join(f"{_n(x)},{_n(y)}" for x, y in self.points)
        return f'<polyline points="{places}" fill="none" stroke="{self.stroke}" stroke-width="{_n(self.width)}"/>'

    def draw(self, axes: Any, order: int) -> None:
        x, y = zip(*self.points, strict=True)
        axes.plot(x, y, color=self.stroke, linewidth=self.width * 0.72, zorder=order)


class _Circle(NamedTuple):
    x: float
    y: float
    radius: float
    fill: str
    opacity: float

    def svg(self) -> str:
        more = f' fill-opacity="{_n(self.opacity)}"' if self.opacity < 1 else ""
        return f'<circle cx="{_n(self.x)}" cy="{_n(self.y)}" r="{_n(self.radius)}" fill="{self.fill}"{more}/>'

    def draw(self, axes: Any, order: int) -> None:
        from matplotlib.patches import Circle

        look = {"facecolor": self.fill, "edgecolor": "none", "alpha": self.opacity}
        axes.add_patch(Circle((self.x, self.y), self.radius, zorder=order, **look))


class _Polygon(NamedTuple):
    points: list[tuple[float, float]]
    fill: str
    opacity: float

    def svg(self) -> str:
        places = " ".join(f"{_n(x)},{_n(y)}" for x, y in self.points)
        more = f' fill-opacity="{_n(self.opacity)}"' if self.opacity < 1 else ""
        return f'<polygon points="{places}" fill="{self.fill}"{more}/>'

    def draw(self, axes: Any, order: int) -> None:
        from matplotlib.patches import Polygon

        look = {"facecolor": self.fill, "edgecolor": "none", "alpha": self.opacity}
        axes.add_patch(Polygon(self.points, closed=True, zorder=order, **look))


class _Image(NamedTuple):
    x: float
    y: float
    width: float
    height: float
    pixels: npt.NDArray[np.uint8]

    @property
    def cells(self) -> int:
        """The number of cells."""
        return int(self.pixels.shape[0] * self.pixels.shape[1])

    def svg(self) -> str:
        rows, columns, _ = self.pixels.shape
        scale = f"scale({self.width / max(columns, 1):.6g} {self.height / max(rows, 1):.6g})"
        paths = "".join(f'<path fill="{fill}" d="{path}"/>' for fill, path in _cell_paths(self.pixels).items())
        place = f"translate({_n(self.x)} {_n(self.y)}) {scale}"
        return f'<g transform="{place}" shape-rendering="crispEdges">{paths}</g>'

    def png_svg(self) -> str:
        """Return the element with the cells as a PNG file."""
        data = base64.b64encode(png(self.pixels)).decode("ascii")
        place = f'x="{_n(self.x)}" y="{_n(self.y)}" width="{_n(self.width)}" height="{_n(self.height)}"'
        more = 'preserveAspectRatio="none" image-rendering="pixelated"'
        return f'<image {place} {more} href="data:image/png;base64,{data}"/>'

    def draw(self, axes: Any, order: int) -> None:
        extent = (self.x, self.x + self.width, self.y + self.height, self.y)
        axes.imshow(self.pixels, extent=extent, interpolation="nearest", aspect="auto", zorder=order)
        # imshow sets the limits to the image's.
        axes.set_xlim(0, axes.figure.bbox.width / axes.figure.dpi * 100)
        axes.set_ylim(axes.figure.bbox.height / axes.figure.dpi * 100, 0)


def _cell_paths(pixels: npt.NDArray[np.uint8]) -> dict[str, str]:
    """Return a path for each colour of uint8 [rows, columns, 3]: rectangles of equal cells.

    Cells are joined that are equal in a row, and such runs that are equal below each other.
    """
    red, green, blue = (pixels[..., channel].astype(np.int64) for channel in range(3))
    boxes: dict[int, list[list[int]]] = {}
    above: dict[int, tuple[int, list[int]]] = {}  # the boxes that end at this row, by their first column
    for y, row in enumerate((red << 16 | green << 8 | blue).tolist()):
        here, x = {}, 0
        for code, run in groupby(row):
            columns = sum(1 for _ in run)
            before, box = above.get(x, (-1, [0, 0, 0, 0]))
            if before != code or box[2] != columns:
                box = [x, y, columns, 0]
                boxes.setdefault(code, []).append(box)
            box[3] += 1
            here[x] = code, box
            x += columns
        above = here
    return {
        f"#{code:06x}": "".join(f"M{x} {y}h{columns}v{rows}h-{columns}z" for x, y, columns, rows in found)
        for code, found in boxes.items()
    }
