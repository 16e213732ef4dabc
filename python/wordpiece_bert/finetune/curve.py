"""The learning curve of a training as a picture: SVG without any package, PNG with matplotlib."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from wordpiece_bert._internal.atomic_file import write_bytes, write_text
from wordpiece_bert._internal.checks import finite_or_none
from wordpiece_bert._internal.drawing import INK, SOFT, Drawing
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    #: Step and value of each entry that has the value.
    Points = list[tuple[float, float]]

WIDTH, LEFT, RIGHT, HEIGHT, TOP, GAP = 720.0, 64.0, 24.0, 240.0, 64.0, 64.0
#: Colours that are told apart by the colour-blind (Okabe and Ito 2008).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
GRID = "#dfe4ea"


def draw_curve(history: Sequence[Mapping[str, float]], title: str = "Training") -> Drawing:
    """Draw the losses, and below them the other metrics of the evaluations, over the steps.

    Parameters
    ----------
    history : sequence of mapping
        `Trainer.log_history`.
    title : str, default "Training"
        A line above the picture.

    Returns
    -------
    Drawing
        A picture with ``to_svg`` and ``to_png``.

    Raises
    ------
    InputError
        The history has no finite loss.

    Examples
    --------
    >>> from wordpiece_bert.finetune import draw_curve
    >>> history = [
    ...     {"step": 10, "loss": 2.1},
    ...     {"step": 20, "loss": 1.4},
    ...     {"step": 20, "eval_loss": 1.6},
    ... ]
    >>> draw_curve(history).to_svg()[:4]
    '<svg'
    """
    names = list(dict.fromkeys(name for entry in history for name in entry))
    series = {name: points for name in names if (points := _points(history, name))}
    losses = {name: points for name, points in series.items() if name in ("loss", "eval_loss")}
    # A metric of a single label, such as eval_f1/good, has no line of its own: there may be a hundred of them.
    measured = [name for name in series if name.startswith("eval_") and "/" not in name]
    others = {name: series[name] for name in measured if name != "eval_loss"}
    if not losses and not others:
        raise InputError(f"the history has {len(history)} entries, and none with a loss: there is nothing to draw")
    panels = [(text, lines) for text, lines in (("loss", losses), ("evaluation", others)) if lines]
    drawing = Drawing(WIDTH, TOP + len(panels) * (HEIGHT + GAP), title)
    drawing.text(24, 34, title, size=18, bold=True)
    last = max(step for lines in (losses, others) for points in lines.values() for step, _ in points)
    for number, (text, lines) in enumerate(panels):
        _panel(drawing, TOP + number * (HEIGHT + GAP), text, lines, last)
    return drawing


def save_curve(
    history: Sequence[Mapping[str, float]], path: str | os.PathLike[str], *, title: str = "Training"
) -> Path:
    """Write the learning curve, atomically, and return its path.

    Parameters
    ----------
    history : sequence of mapping
        `Trainer.log_history`.
    path : str or os.PathLike
        A name that ends in ``.svg``, or in ``.png``, which needs matplotlib, the extra ``plot``.
    title : str, default "Training"
        A line above the picture.

    Returns
    -------
    Path
        The path.

    Raises
    ------
    InputError
        The name ends otherwise, the history has no finite loss, or matplotlib is not installed.
    OSError
        The file cannot be written.

    Examples
    --------
    >>> from wordpiece_bert.finetune import save_curve
    >>> history = [
    ...     {"step": 10, "loss": 2.1},
    ...     {"step": 20, "loss": 1.4},
    ...     {"step": 20, "eval_loss": 1.6},
    ... ]
    >>> save_curve(history, "curve.svg", title="Reviews").name
    'curve.svg'
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (".svg", ".png"):
        raise InputError(f"{path}: the name must end in .svg or .png")
    drawing = draw_curve(history, title)
    return write_text(path, drawing.to_svg()) if suffix == ".svg" else write_bytes(path, drawing.to_png())


def _points(history: Sequence[Mapping[str, float]], name: str) -> Points:
    found = ((float(entry["step"]), finite_or_none(entry.get(name))) for entry in history)
    return [(step, value) for step, value in found if value is not None]


def _panel(drawing: Drawing, top: float, text: str, lines: Mapping[str, Points], last: float) -> None:
    """Draw one panel: axes with numbers, a line for each series, and their names."""
    values = [value for points in lines.values() for _, value in points]
    ticks = _ticks(min(values), max(values))
    low, high = ticks[0], ticks[-1]
    width = WIDTH - LEFT - RIGHT

    def place(step: float, value: float) -> tuple[float, float]:
        return LEFT + width * step / max(last, 1), top + HEIGHT - HEIGHT * (value - low) / (high - low)

    for tick in ticks:
        _, y = place(0, tick)
        drawing.line([(LEFT, y), (WIDTH - RIGHT, y)], GRID, 1)
        drawing.text(LEFT - 8, y + 4, f"{tick:.4g}", size=11, anchor="end", fill=SOFT)
    for tick in _ticks(0, last):
        if tick <= last:
            x, y = place(tick, low)
            drawing.text(x, y + 18, f"{tick:,.6g}", size=11, anchor="middle", fill=SOFT)
    drawing.text(WIDTH - RIGHT, top + HEIGHT + 36, "step", size=11, anchor="end", fill=SOFT)
    drawing.text(LEFT, top - 10, text, size=13, fill=INK)
    at = LEFT + 90
    for number, (name, points) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        drawing.rectangle(at, top - 19, 14, 4, colour)
        drawing.text(at + 20, top - 12, name, size=12, fill=INK)
        at += 34 + 7 * len(name)
        drawing.line([place(*point) for point in points], colour, 2)
        if len(points) <= 40:
            for point in points:
                drawing.circle(*place(*point), 3, colour)


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers, at most seven, of which the first is at most `low` and the last at least `high`."""
    span = high - low if high > low else max(abs(high), 1.0) * 0.1
    unit = 10.0 ** math.floor(math.log10(span / 5))
    step = next(unit * factor for factor in (1, 2, 5, 10, 20) if span / (unit * factor) <= 5)
    first = math.floor(low / step)
    count = max(1, math.ceil(high / step - 1e-9) - first)
    return [(first + index) * step for index in range(count + 1)]
