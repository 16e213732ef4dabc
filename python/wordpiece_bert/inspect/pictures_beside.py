"""The pictures of views that show two things beside each other: comparisons, tokenizers, interventions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from wordpiece_bert._internal.drawing import SOFT, text_width
from wordpiece_bert.inspect.colours import colour, ink_on, mapped
from wordpiece_bert.inspect.pictures import EDGE, LINE, MOST_TOKENS, TOP, WIDTH, begin, short

if TYPE_CHECKING:
    from wordpiece_bert._internal.drawing import Drawing
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.inspect.pictures import Arrays, Data

_ALIKE, _OTHER, _ALONE = "#e6eaee", "#fbe6bf", "#fbd3bd"
#: The height of a line of groups, which has one token above the other.
_LINE = 70

#: Groups beside each other: left edge, width, the tokens above and below, and the colour.
_Line: TypeAlias = "list[tuple[float, float, list[str], str]]"


def comparison(title: str, data: Data, arrays: Arrays) -> Drawing:
    """Return the picture of a view of the kind ``comparison``."""
    focus, units = data["first"], data["units"][: MOST_TOKENS // 2]
    pairs = [
        arrays[name][layer, head]
        for name, layer, head in zip(("first", "second"), focus["layers"], focus["heads"], strict=True)
    ]
    first, second = (weights[: len(units), : len(units)] for weights in pairs)
    lines = _wrapped([_columns(data, group) for group in data["groups"][: 2 * MOST_TOKENS]])
    size = (WIDTH - 2 * EDGE - 40) / 3
    drawing = begin(WIDTH, TOP + 32 + _LINE * len(lines) + size + EDGE, title)
    drawing.text(EDGE, TOP + 4, short(f"{data['names'][0]} above, {data['names'][1]} below", 110), size=13, fill=SOFT)
    y = _draw_groups(drawing, lines, TOP + 16)
    most = max(float(np.abs(second - first).max(initial=0)), 1e-9)
    for i, (name, values, scale) in enumerate(
        (
            (_head(focus, 0), np.sqrt(first), "sequential"),
            (_head(focus, 1), np.sqrt(second), "sequential"),
            (f"second − first, up to ±{most:.2f}", (second - first) / most, "diverging"),
        )
    ):
        x = EDGE + i * (size + 20)
        drawing.text(x, y + 8, name, size=12, fill=SOFT)
        drawing.image(x, y + 16, size, size, mapped(values.astype(np.float32), scale))
    return drawing


def _head(focus: Data, side: int) -> str:
    return f"{('first', 'second')[side]}: layer {focus['layers'][side]}, head {focus['heads'][side]}"


def _columns(data: Data, group: list[list[int]]) -> tuple[list[str], str]:
    """Return the tokens of a group, above and below, and its colour."""
    tokens = [" ".join(data["tokens"][side][i] for i in group[side]) for side in (0, 1)]
    fill = _ALONE if not all(tokens) else _ALIKE if tokens[0] == tokens[1] else _OTHER
    return [short(token, 40) for token in tokens], fill


def _wrapped(columns: list[tuple[list[str], str]]) -> list[_Line]:
    lines: list[_Line] = [[]]
    x = float(EDGE)
    for tokens, fill in columns:
        width = max(text_width(token, 12) for token in tokens) + 12
        if x + width > WIDTH - EDGE and lines[-1]:
            lines.append([])
            x = EDGE
        lines[-1].append((x, width, tokens, fill))
        x += width + 5
    return lines


def _draw_groups(drawing: Drawing, lines: list[_Line], top: float) -> float:
    """Draw lines of groups; returns where they end."""
    for number, line in enumerate(lines):
        for x, width, tokens, fill in line:
            for side, token in enumerate(tokens):
                if token:
                    y = top + _LINE * number + 26 * side
                    drawing.rectangle(x, y, width, 22, fill, radius=4)
                    drawing.text(x + width / 2, y + 15, token, size=12, anchor="middle")
    return top + _LINE * len(lines)


def tokenizers(title: str, data: Data, arrays: Arrays) -> Drawing:
    """Return the picture of a view of the kind ``tokenizers``."""
    del arrays
    lines = _wrapped([_columns(data, group) for group in data["groups"][: 4 * MOST_TOKENS]])
    drawing = begin(WIDTH, TOP + 50 + _LINE * len(lines), title)
    for i, name in enumerate(data["names"]):
        text = f"{('above', 'below')[i]}: {short(name, 60)}, {data['perWord'][i]:.2f} tokens a word"
        drawing.text(EDGE, TOP + 2 + 18 * i, text, size=13, fill=SOFT)
    _draw_groups(drawing, lines, TOP + 36)
    return drawing


def interventions(title: str, data: Data, arrays: Arrays) -> Drawing:
    """Return the picture of a view of the kind ``interventions``."""
    layers, heads = data["shape"]
    moved = arrays["moved"]
    grid = np.full((layers, heads + 1), np.nan, np.float32)
    for index, changed in enumerate(data["heads"]):
        if len(changed) == 1:
            grid[changed[0][0], changed[0][1]] = moved[index]
        elif len(changed) == heads and len({layer for layer, _ in changed}) == 1:
            grid[changed[0][0], heads] = moved[index]
    best = int(moved.argmax())
    shown = _largest(data, arrays["before"], arrays["after"][best])
    cell = max(26.0, min(58.0, (WIDTH - 2 * EDGE - 60) / (heads + 1)))
    drawing = begin(WIDTH, TOP + 60 + 30 * layers + 60 + 26 * len(shown), title)
    done = "switched off" if data["change"] == "off" else f"taken from “{short(data['change'], 50)}”"
    drawing.text(EDGE, TOP, f"How far the answer moves when a head is {done}", size=13, fill=SOFT)
    most = max(float(np.nanmax(grid)) if not np.isnan(grid).all() else 0.0, 1e-9)
    for head in range(heads + 1):
        name = "all" if head == heads else str(head)
        drawing.text(EDGE + 40 + cell * (head + 0.5), TOP + 24, name, size=11, anchor="middle", fill=SOFT)
    for layer in range(layers):
        y = TOP + 30 + 30 * layer
        drawing.text(EDGE + 30, y + 18, str(layer), size=11, anchor="end", fill=SOFT)
        for head in range(heads + 1):
            value = float(grid[layer, head])
            if not np.isnan(value):
                share = value / most
                ground = colour(share)
                drawing.rectangle(EDGE + 40 + cell * head, y, cell - 3, 27, ground, radius=3)
                if cell > 34:
                    place = EDGE + 40 + cell * (head + 0.5) - 1.5
                    drawing.text(place, y + 18, f"{value:.2f}", size=10, anchor="middle", fill=ink_on(ground))
    y = TOP + 30 + 30 * layers + 30
    changed = data["heads"][best]
    one = f"layer {changed[0][0]}, head {changed[0][1]}" if len(changed) == 1 else f"{len(changed)} heads together"
    drawing.text(EDGE, y, f"Moved most by {one}; before, then after:", size=13, fill=SOFT)
    for i, (name, old, new) in enumerate(shown):
        row = y + 12 + 26 * i
        drawing.text(330, row + 15, short(name, 44), size=12, anchor="end")
        for part, (value, fill) in enumerate(((old, "#8d99a6"), (new, LINE))):
            drawing.rectangle(340, row + 11 * part, max(1.0, 380 * abs(value) / _scale(shown)), 9, fill, radius=2)
        drawing.text(WIDTH - EDGE, row + 15, f"{old:.3f} → {new:.3f}", size=12, anchor="end", fill=SOFT)
    return drawing


def _largest(data: Data, before: Array, after: Array, most: int = 8) -> list[tuple[str, float, float]]:
    """Return the outputs that moved most, by name, before and after."""
    order = np.argsort(-np.abs(after - before), axis=None, kind="stable")[:most]
    found = []
    for row, column in zip(*np.unravel_index(np.sort(order), before.shape), strict=True):
        where = f" at {data['rows'][row]}" if data["rows"][row] else ""
        found.append((f"{data['columns'][column]}{where}", float(before[row, column]), float(after[row, column])))
    return found


def _scale(shown: list[tuple[str, float, float]]) -> float:
    return max(max(abs(old), abs(new)) for _, old, new in shown) or 1.0
