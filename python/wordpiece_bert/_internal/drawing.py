"""A picture of simple shapes, written as SVG by this module and as PNG by matplotlib."""

from __future__ import annotations

import base64
import io
import re
import struct
import warnings
import zlib
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from wordpiece_bert._internal.figures import new_figure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

__all__ = ["INK", "SOFT", "Drawing", "png", "text_width"]

INK, SOFT, GROUND = "#1f2328", "#59636e", "#ffffff"
FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
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
        self._shapes: list[tuple[str, dict[str, Any]]] = []

    def rectangle(
        self, x: float, y: float, width: float, height: float, fill: str, *, radius: float = 0, stroke: str = "none"
    ) -> None:
        """Add a rectangle."""
        shape = {"x": x, "y": y, "width": width, "height": height, "fill": fill, "radius": radius, "stroke": stroke}
        self._shapes.append(("rectangle", shape))

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
        shape = {"x": x, "y": y, "text": _FORBIDDEN.sub("\ufffd", text).replace("\n", " "), "size": size, "fill": fill}
        self._shapes.append(("text", shape | {"anchor": anchor, "bold": bold, "turn": turn}))

    def curve(self, x1: float, y1: float, x2: float, y2: float, stroke: str, width: float, opacity: float = 1) -> None:
        """Add a curve that leaves and arrives horizontally."""
        shape = {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "stroke": stroke, "width": width, "opacity": opacity}
        self._shapes.append(("curve", shape))

    def line(self, points: Sequence[tuple[float, float]], stroke: str, width: float) -> None:
        """Add a line through points."""
        self._shapes.append(("line", {"points": list(points), "stroke": stroke, "width": width}))

    def circle(self, x: float, y: float, radius: float, fill: str, opacity: float = 1) -> None:
        """Add a filled circle."""
        self._shapes.append(("circle", {"x": x, "y": y, "radius": radius, "fill": fill, "opacity": opacity}))

    def image(self, x: float, y: float, width: float, height: float, pixels: npt.NDArray[np.uint8]) -> None:
        """Add an image, uint8 [rows, columns, 3], each of whose pixels becomes a rectangle."""
        self._shapes.append(("image", {"x": x, "y": y, "width": width, "height": height, "pixels": pixels}))

    def to_svg(self) -> str:
        """Return the picture as SVG."""
        w, h = _n(self.width), _n(self.height)
        title = escape(_FORBIDDEN.sub("\ufffd", self.title))
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" '
            f'font-family="{FONT}"><title>{title}</title><rect width="{w}" height="{h}" fill="{GROUND}"/>'
        )
        return head + "".join(_SVG[kind](**shape) for kind, shape in self._shapes) + "</svg>"

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
        for order, (kind, shape) in enumerate(self._shapes):
            _AXES[kind](axes, order, **shape)
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


# --- SVG


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _svg_rectangle(*, x: float, y: float, width: float, height: float, fill: str, radius: float, stroke: str) -> str:
    place = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
    more = (f' rx="{_n(radius)}"' if radius else "") + (f' stroke="{stroke}"' if stroke != "none" else "")
    return f'<rect {place} fill="{fill}"{more}/>'


def _svg_text(*, x: float, y: float, text: str, size: float, fill: str, anchor: str, bold: bool, turn: float) -> str:
    more = ' font-weight="600"' * bold + (f' transform="rotate({_n(turn)} {_n(x)} {_n(y)})"' if turn else "")
    place = f'x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}" fill="{fill}" text-anchor="{anchor}"'
    return f"<text {place}{more}>{escape(text)}</text>"


def _svg_curve(*, x1: float, y1: float, x2: float, y2: float, stroke: str, width: float, opacity: float) -> str:
    if y1 == y2 or x1 == x2:
        path = f"M{_n(x1)} {_n(y1)}L{_n(x2)} {_n(y2)}"
    else:
        middle = _n((x1 + x2) / 2)
        path = f"M{_n(x1)} {_n(y1)}C{middle} {_n(y1)} {middle} {_n(y2)} {_n(x2)} {_n(y2)}"
    more = f' stroke-opacity="{_n(opacity)}"' if opacity < 1 else ""
    return f'<path d={quoteattr(path)} fill="none" stroke="{stroke}" stroke-width="{_n(width)}"{more}/>'


def _svg_line(*, points: Sequence[tuple[float, float]], stroke: str, width: float) -> str:
    places = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
    return f'<polyline points="{places}" fill="none" stroke="{stroke}" stroke-width="{_n(width)}"/>'


def _svg_circle(*, x: float, y: float, radius: float, fill: str, opacity: float) -> str:
    more = f' fill-opacity="{_n(opacity)}"' if opacity < 1 else ""
    return f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" fill="{fill}"{more}/>'


def _svg_image(*, x: float, y: float, width: float, height: float, pixels: npt.NDArray[np.uint8]) -> str:
    data = base64.b64encode(png(pixels)).decode("ascii")
    place = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
    more = 'preserveAspectRatio="none" image-rendering="pixelated"'
    return f'<image {place} {more} href="data:image/png;base64,{data}"/>'


_SVG: dict[str, Callable[..., str]] = {
    "rectangle": _svg_rectangle,
    "text": _svg_text,
    "curve": _svg_curve,
    "line": _svg_line,
    "circle": _svg_circle,
    "image": _svg_image,
}


# --- PNG, by matplotlib


def _axes_rectangle(
    axes: Any,
    order: int,
    *,
    x: float,
    y: float,
    width: float,
    height: float,
    fill: str,
    radius: float,
    stroke: str,
) -> None:
    from matplotlib.patches import FancyBboxPatch

    style = f"round,pad=0,rounding_size={min(radius, width / 2, height / 2)}" if radius else "square,pad=0"
    patch = FancyBboxPatch((x, y), width, height, boxstyle=style, facecolor=fill, edgecolor=stroke, linewidth=0.7)
    patch.set_zorder(order)
    axes.add_patch(patch)


def _axes_text(
    axes: Any,
    order: int,
    *,
    x: float,
    y: float,
    text: str,
    size: float,
    fill: str,
    anchor: str,
    bold: bool,
    turn: float,
) -> None:
    align = {"start": "left", "middle": "center", "end": "right"}[anchor]
    axes.text(
        x,
        y,
        text,
        fontsize=size * 0.72 * 0.92,  # pixels to points; matplotlib's font is wider
        color=fill,
        ha=align,
        va="baseline",
        rotation=-turn,
        rotation_mode="anchor",
        fontweight="bold" if bold else "normal",
        parse_math=False,
        zorder=order,
    )


def _axes_curve(
    axes: Any,
    order: int,
    *,
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    stroke: str,
    width: float,
    opacity: float,
) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    middle = (x1 + x2) / 2
    path = Path([(x1, y1), (middle, y1), (middle, y2), (x2, y2)], [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
    if x1 == x2:
        path = Path([(x1, y1), (x2, y2)])
    shape = PathPatch(path, facecolor="none", edgecolor=stroke, linewidth=width * 0.72, alpha=opacity)
    shape.set_zorder(order)
    axes.add_patch(shape)


def _axes_line(
    axes: Any,
    order: int,
    *,
    points: Sequence[tuple[float, float]],
    stroke: str,
    width: float,
) -> None:
    x, y = zip(*points, strict=True)
    axes.plot(x, y, color=stroke, linewidth=width * 0.72, zorder=order)


def _axes_circle(
    axes: Any,
    order: int,
    *,
    x: float,
    y: float,
    radius: float,
    fill: str,
    opacity: float,
) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(Circle((x, y), radius, facecolor=fill, edgecolor="none", alpha=opacity, zorder=order))


def _axes_image(
    axes: Any,
    order: int,
    *,
    x: float,
    y: float,
    width: float,
    height: float,
    pixels: npt.NDArray[np.uint8],
) -> None:
    extent = (x, x + width, y + height, y)
    axes.imshow(pixels, extent=extent, interpolation="nearest", aspect="auto", zorder=order)
    # imshow sets the limits to the image's.
    axes.set_xlim(0, axes.figure.bbox.width / axes.figure.dpi * 100)
    axes.set_ylim(axes.figure.bbox.height / axes.figure.dpi * 100, 0)


_AXES: dict[str, Callable[..., None]] = {
    "rectangle": _axes_rectangle,
    "text": _axes_text,
    "curve": _axes_curve,
    "line": _axes_line,
    "circle": _axes_circle,
    "image": _axes_image,
}
