"""The picture of each kind of view: what a notebook without scripts, an SVG or a PNG shows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.drawing import INK, SOFT, Drawing, text_width
from wordpiece_bert.bert.functional import softmax
from wordpiece_bert.inspect.colours import HABIT_COLOURS, colour, group_mark, ink_on, mapped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wordpiece_bert.bert.functional import Array

    Data = Mapping[str, Any]
    Arrays = Mapping[str, Array]

EDGE = 24
TOP = 56  # below the title
WIDTH = 860
#: Rows of tokens, and rows and columns of a heat map with texts, that a picture shows; a page shows all.
MOST_TOKENS = 64
#: Groups that the picture of a map names.
MOST_GROUPS = 40
LINE = "#0072b2"


def begin(width: float, height: float, title: str) -> Drawing:
    """Return a drawing with a title."""
    drawing = Drawing(width, height, title)
    drawing.text(EDGE, 34, title, size=18, bold=True)
    return drawing


def short(text: str, most: int = 28) -> str:
    """Return a text, cut at so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


# --- tokens


def tokens(title: str, data: Data, arrays: Arrays) -> Drawing:
    """Return the picture of a view of the kind ``tokens``."""
    del arrays
    rows: list[list[tuple[float, dict[str, Any]]]] = []
    for entry in data["tokenizers"]:
        rows += _wrapped(entry["tokens"][: 4 * MOST_TOKENS])
        rows.append([])
    heights = [64 if row else 34 for row in rows]
    drawing = begin(WIDTH, TOP + sum(heights) + 20 * len(data["tokenizers"]), title)
    y = float(TOP)
    names = iter(data["tokenizers"])
    start = True
    for row, height in zip(rows, heights, strict=True):
        if start:
            entry = next(names)
            number = len(entry["tokens"])
            count = f"{number} token{'s' * (number != 1)}" + (f", {len(entry['cut'])} cut" if entry["cut"] else "")
            name = f"{entry['name']}: " if len(data["tokenizers"]) > 1 else ""
            drawing.text(EDGE, y + 8, name + count, size=13, fill=SOFT)
            y += 20
            start = False
        for x, token in row:
            _chip(drawing, x, y, token)
        start = not row
        y += height
    return drawing


def _wrapped(tokens: list[dict[str, Any]]) -> list[list[tuple[float, dict[str, Any]]]]:
    """Return lines of tokens, each with its place from the left."""
    lines: list[list[tuple[float, dict[str, Any]]]] = [[]]
    x = float(EDGE)
    for token in tokens:
        width = _chip_width(token)
        if x + width > WIDTH - EDGE and lines[-1]:
            lines.append([])
            x = EDGE
        lines[-1].append((x, token))
        x += width + 6
    return lines


def _chip_width(token: dict[str, Any]) -> float:
    return max(text_width(token["token"], 14), text_width(str(token["id"]), 11)) + 16


def _chip(drawing: Drawing, x: float, y: float, token: dict[str, Any]) -> None:
    fill = (
        "#e6eaee" if token["special"] else "#fbdcc8" if token["unknown"] else ["#d6e8f5", "#fbe6bf"][token["text"] or 0]
    )
    width = _chip_width(token)
    drawing.rectangle(x, y, width, 46, fill, radius=6)
    drawing.text(x + width / 2, y + 20, token["token"], size=14, anchor="middle", bold=True)
    drawing.text(x + width / 2, y + 38, str(token["id"]), size=11, anchor="middle", fill=SOFT)


# --- attention


def attention(title: str, data: Data, arrays: Arrays) -> Drawing:
    """Return the picture of a view of the kind ``attention``."""
    return _all_heads(title, arrays["thumbnails"]) if data["focus"] is None else _one_head(title, data, arrays)


def _all_heads(title: str, thumbnails: Array) -> Drawing:

    layers, heads = thumbnails.shape[:2]
    cell = max(26.0, min(72.0, (WIDTH - 2 * EDGE - 40) / heads - 6))
    drawing = begin(2 * EDGE + 40 + heads * (cell + 6), TOP + 26 + layers * (cell + 6) + 30, title)
    for head in range(heads):
        drawing.text(EDGE + 40 + head * (cell + 6) + cell / 2, TOP + 12, str(head), size=11, anchor="middle", fill=SOFT)
    for layer in range(layers):
        y = TOP + 20 + layer * (cell + 6)
        drawing.text(EDGE + 30, y + cell / 2 + 4, str(layer), size=11, anchor="end", fill=SOFT)
        for head in range(heads):
            values = thumbnails[layer, head]
            scaled = np.sqrt(values / np.maximum(values.max(axis=-1, keepdims=True), 1e-12))
            drawing.image(EDGE + 40 + head * (cell + 6), y, cell, cell, mapped(scaled, "sequential"))
    foot = TOP + 26 + layers * (cell + 6) + 8
    text = "Rows of images: layers; columns: heads. In an image: query tokens downwards, key tokens to the right."
    drawing.text(EDGE, foot, text, size=11, fill=SOFT)
    return drawing


def _one_head(title: str, data: Data, arrays: Arrays) -> Drawing:
    focus = data["focus"]
    weights = arrays["attention"][focus["layer"], focus["head"]][:MOST_TOKENS, :MOST_TOKENS]
    tokens = data["tokens"][:MOST_TOKENS]
    row, left, right = 26, 190, 450
    drawing = begin(640, TOP + 40 + row * len(tokens), title)
    drawing.text(EDGE, TOP + 4, f"Layer {focus['layer']}, head {focus['head']}", size=13, fill=SOFT)
    chosen = focus["token"]
    for query in range(len(tokens)):
        if chosen is not None and query != chosen:
            continue
        for key in np.argsort(weights[query]).tolist():
            weight = float(weights[query, key])
            if weight >= 0.01:
                opacity = min(1.0, 0.08 + 0.92 * weight) * (1 if chosen is not None else 0.75)
                y1, y2 = TOP + 36 + query * row, TOP + 36 + key * row
                drawing.curve(left + 8, y1, right - 8, y2, LINE, 0.8 + 3.4 * weight, opacity)
    for i, token in enumerate(tokens):
        y = TOP + 36 + i * row
        strong = chosen == i
        if chosen is not None:
            share = float(weights[chosen, i])
            ground = colour(0.75 * math.sqrt(share))
            drawing.rectangle(right - 4, y - 11, 150, 22, ground, radius=4)
            if share >= 0.005:
                drawing.text(right + 154, y + 5, f"{share:.2f}", size=11, fill=SOFT)
            ink = ink_on(ground)
        else:
            ink = INK
        drawing.text(left, y + 5, short(token, 20), size=14, anchor="end", bold=strong)
        drawing.text(right + 4, y + 5, short(token, 18), size=14, fill=ink)
    return drawing


def neurons(title: str, data: Data, arrays: Arrays) -> Drawing:
    """Return the picture of a view of the kind ``neurons``."""
    focus = data["first"]
    q = arrays["queries"][focus["layer"], focus["head"], focus["query"]]
    keys = arrays["keys"][focus["layer"], focus["head"]]
    shown = list(range(min(len(keys), 16)))
    if focus["key"] not in shown:
        shown[-1] = focus["key"]
    scores = keys @ q / math.sqrt(len(q))
    if "bias" in arrays:
        scores = scores + arrays["bias"][focus["layer"], focus["head"], focus["query"]]
    weights = softmax(scores)
    drawing = begin(WIDTH, TOP + 62 + 34 * len(shown), title)
    tokens, layer = data["tokens"], data["layers"][focus["layer"]]
    name = f"Layer {layer}, head {focus['head']}, query “{tokens[focus['query']]}”"
    drawing.text(EDGE, TOP, name, size=13, fill=SOFT)
    heads = ((130, "query q"), (330, "key k"), (530, "q × k"), (735, "q·k/√d"), (800, "softmax"))
    for x, text in heads:
        drawing.text(x, TOP + 28, text, size=12, fill=SOFT)
    scale = max(float(np.abs(q).max()), float(np.abs(keys).max()), 1e-9)
    products = keys * q
    most = max(float(np.abs(products).max()), 1e-9)
    for line, key in enumerate(shown):
        y = TOP + 38 + 34 * line
        drawing.text(120, y + 18, short(tokens[key], 14), size=13, anchor="end", bold=key == focus["key"])
        for x, values in ((130, q / scale), (330, keys[key] / scale), (530, products[key] / most)):
            drawing.image(x, y, 190, 26, mapped(_cube(values)[None], "diverging"))
        drawing.text(770, y + 18, f"{scores[key]:.2f}", size=13, anchor="end")
        drawing.text(845, y + 18, f"{weights[key]:.3f}", size=13, anchor="end")
    return drawing


def _cube(values: Array) -> Array:
    """Return values between −1 and 1 with small ones made larger, so that their colours can be told apart."""
    return np.sign(values) * np.sqrt(np.abs(values))


def patterns(title: str, data: Data, arrays: Arrays) -> Drawing:
    """Return the picture of a view of the kind ``patterns``."""
    del arrays
    labels = data["labels"]
    cell = max(46.0, min(66.0, (WIDTH - 2 * EDGE - 30) / len(labels[0])))
    width = max(560.0, 2 * EDGE + 30 + cell * len(labels[0]))
    drawing = begin(width, TOP + 60 + 34 * len(labels) + 30, title)
    for layer, row in enumerate(labels):
        y = TOP + 16 + 34 * layer
        drawing.text(EDGE + 20, y + 20, str(layer), size=11, anchor="end", fill=SOFT)
        for head, label in enumerate(row):
            x = EDGE + 30 + cell * head
            drawing.rectangle(x, y, cell - 4, 30, HABIT_COLOURS[label], radius=4)
            ink = ink_on(HABIT_COLOURS[label])
            drawing.text(x + cell / 2 - 2, y + 19, _ABBREVIATED.get(label, label), size=10, anchor="middle", fill=ink)
    for head in range(len(labels[0])):
        x = EDGE + 30 + cell * head + cell / 2 - 2
        drawing.text(x, TOP + 8, str(head), size=11, anchor="middle", fill=SOFT)
    foot = TOP + 16 + 34 * len(labels) + 24
    below = "Rows: layers; columns: heads; the first habit whose threshold each head reaches."
    drawing.text(EDGE, foot, below, size=11, fill=SOFT)
    return drawing


_ABBREVIATED = {
    "previous": "previous",
    "separator": "[SEP]",
    "first": "[CLS]",
    "same sentence": "sentence",
    "same word": "word",
}


# --- language


def predictions(title: str, data: Data, arrays: Arrays) -> Drawing:
    """Return the picture of a view of the kind ``predictions``."""
    tokens, words = data["tokens"][:MOST_TOKENS], data["words"]
    p, own = arrays["probabilities"], arrays["own"]
    most = min(6, p.shape[1])
    drawing = begin(WIDTH, TOP + 44 + 28 * len(tokens), title)
    drawing.text(140, TOP + 10, "token", size=12, anchor="end", fill=SOFT)
    drawing.text(160, TOP + 10, "its probability", size=12, fill=SOFT)
    drawing.text(260, TOP + 10, "most probable", size=12, fill=SOFT)
    for i, token in enumerate(tokens):
        y = TOP + 20 + 28 * i
        drawing.text(140, y + 17, short(token, 16), size=13, anchor="end", bold=True)
        drawing.text(210, y + 17, f"{own[i]:.3f}", size=12, anchor="end", fill=SOFT)
        for k in range(most):
            value = float(p[i, k])
            _word_cell(drawing, 260 + 96 * k, y, 92, words[i][k], value)
    return drawing


def _word_cell(drawing: Drawing, x: float, y: float, width: float, word: str, value: float) -> None:
    ground = colour(value)
    drawing.rectangle(x, y, width, 24, ground, radius=3)
    ink = ink_on(ground)
    drawing.text(x + 5, y + 16, short(word, 9), size=12, fill=ink)
    drawing.text(x + width - 4, y + 16, f"{value:.2f}", size=9, anchor="end", fill=ink)


def lens(title: str, data: Data, arrays: Arrays) -> Drawing:
    """Return the picture of a view of the kind ``lens``."""
    p = arrays["probabilities"][:, : MOST_TOKENS // 4, 0]  # [L + 1, S]
    layers, length = p.shape
    drawing = begin(2 * EDGE + 40 + 92 * length, TOP + 60 + 28 * layers, title)
    for i, token in enumerate(data["tokens"][:length]):
        drawing.text(EDGE + 40 + 92 * i + 4, TOP + 10, short(token, 12), size=12, bold=True)
    for layer in range(layers):
        y = TOP + 18 + 28 * (layers - 1 - layer)
        drawing.text(EDGE + 30, y + 16, str(layer), size=11, anchor="end", fill=SOFT)
        for i in range(length):
            _word_cell(drawing, EDGE + 40 + 92 * i, y, 88, data["words"][layer][i][0], float(p[layer, i]))
    foot = TOP + 18 + 28 * layers + 22
    drawing.text(EDGE, foot, "Rows: layers, the last on top; 0: the embeddings.", size=11, fill=SOFT)
    return drawing


def saliency(title: str, data: Data, arrays: Arrays) -> Drawing:
    """Return the picture of a view of the kind ``saliency``."""
    effect = arrays["effect"]
    tokens = data["tokens"][:MOST_TOKENS]
    signed = data["signed"]
    middle = 370 if signed else 180
    scale = max(float(np.abs(effect).max(initial=0)), 1e-9)
    layers = arrays.get("layers")  # [L + 1, S]
    below = 0 if layers is None else 60 + 16 * len(layers)
    drawing = begin(640, TOP + 50 + 26 * len(tokens) + below, title)
    drawing.text(EDGE, TOP, f"{short(data['target'], 30)}, {data['measure']} {data['score']:.3f}", size=13, fill=SOFT)
    drawing.text(616, TOP, short(data["heading"], 58), size=11, anchor="end", fill=SOFT)
    for i, token in enumerate(tokens):
        y, value = TOP + 16 + 26 * i, float(effect[i])
        drawing.text(160, y + 16, short(token, 18), size=13, anchor="end")
        width = abs(value) / scale * (180 if signed else 370)
        x = middle if value >= 0 else middle - width
        drawing.rectangle(x, y + 2, width, 19, "#2f7fbd" if value >= 0 else "#d9741a", radius=2)
        drawing.text(616, y + 16, f"{value:+.3f}" if signed else f"{value:.3f}", size=12, anchor="end", fill=SOFT)
    drawing.curve(middle, TOP + 12, middle, TOP + 20 + 26 * len(tokens), "#8d99a6", 1)
    if layers is not None:
        y = TOP + 50 + 26 * len(tokens)
        drawing.text(EDGE, y, "The same for the vectors of each layer, the last on top; tokens to the right:", size=11)
        shown = layers[::-1, :MOST_TOKENS] / max(float(np.abs(layers).max()), 1e-9)
        drawing.image(EDGE, y + 10, 592, 16 * len(layers), mapped(shown, "diverging" if signed else "sequential"))
    return drawing


# --- vectors


def similarity(title: str, data: Data, arrays: Arrays) -> Drawing:
    """Return the picture of a view of the kind ``similarity``."""
    values = arrays["similarity"][: MOST_TOKENS // 2, : MOST_TOKENS // 2]
    rows, columns = values.shape
    labels = [short(text, 34) for text in data["rows"][:rows]]
    heads = [short(text, 34) for text in data["columns"][:columns]]
    cell = 52 if columns <= 12 else 30
    left = EDGE + max((text_width(text, 12) for text in labels), default=0) + 12
    top = TOP + max((text_width(text, 12) for text in heads), default=0) * 0.72 + 14
    drawing = begin(max(400.0, left + cell * columns + EDGE + 90), top + cell * rows + EDGE, title)
    for j, text in enumerate(heads):
        drawing.text(left + cell * j + cell / 2, top - 8, text, size=12, turn=-45)
    for i, text in enumerate(labels):
        drawing.text(left - 10, top + cell * i + cell / 2 + 4, text, size=12, anchor="end")
        for j in range(columns):
            value = float(values[i, j])
            ground = colour(value, "diverging")
            drawing.rectangle(left + cell * j, top + cell * i, cell - 2, cell - 2, ground, radius=3)
            ink = ink_on(ground)
            size = 13 if cell > 40 else 9
            place = left + cell * j + cell / 2 - 1, top + cell * i + cell / 2 + size / 3
            drawing.text(*place, f"{value:.2f}", size=size, anchor="middle", fill=ink)
    return drawing


def embedding_map(title: str, data: Data, arrays: Arrays) -> Drawing:
    """Return the picture of a view of the kind ``map``."""
    points = arrays["points"]
    names = sorted(set(data["groups"] or []))
    shown = names[:MOST_GROUPS]
    lines = -(-len(shown) // 5)
    top, side = TOP + 20 * lines, 540.0
    drawing = begin(WIDTH, top + side + 30, title)
    if not len(points):
        return drawing
    few = len(points) <= 40
    room = WIDTH - 2 * EDGE - (220 if few else 20)  # texts stand at the right of their points
    low, high = points.min(axis=0), points.max(axis=0)
    # One scale for both axes: distances mean the same in every direction.
    scale = float(min(room / max(high[0] - low[0], 1e-9), (side - 20) / max(high[1] - low[1], 1e-9)))
    middle = (low + high) / 2
    for i, point in enumerate(points):
        x = EDGE + 10 + room / 2 + float(point[0] - middle[0]) * scale
        y = top + side / 2 - float(point[1] - middle[1]) * scale
        _mark(drawing, x, y, 4.5 if few else 3, *_colour_and_shape(data, names, i), 0.85 if few else 0.7)
        if few:
            drawing.text(x + 8, y + 4, short(data["texts"][i], 34), size=11)
    for i, name in enumerate(shown):
        x, y = EDGE + 6 + 164 * (i % 5), TOP + 2 + 20 * (i // 5)
        _mark(drawing, x, y, 5, *group_mark(i), 1)
        drawing.text(x + 10, y + 4, short(name, 21), size=12)
    foot = f"and {len(names) - len(shown)} more groups. " if len(names) > len(shown) else ""
    if data["kept"] is not None:
        count = data["neighbours"]
        foot += (
            f"Of the {count} nearest texts by all {data['width']} numbers, {data['kept']:.0%} are among the {count} "
            f"nearest points{f', in a sample of {sampled:,} texts' if (sampled := data['sampled']) else ''}."
        )
    drawing.text(EDGE, top + side + 16, foot, size=11, fill=SOFT)
    return drawing


def _colour_and_shape(data: Data, names: list[str], i: int) -> tuple[str, list[tuple[float, float]]]:
    """Return how a point looks: by its group, or by the first of its numbers."""
    if data["groups"]:
        return group_mark(names.index(data["groups"][i]))
    if not data["numbers"]:
        return group_mark(0)
    values = next(iter(data["numbers"].values()))
    low, high = min(values), max(values)
    # The lightest colours cannot be seen on white.
    return colour(0.2 + 0.8 * (values[i] - low) / (high - low) if high > low else 0.6), []


def _mark(
    drawing: Drawing, x: float, y: float, size: float, fill: str, shape: list[tuple[float, float]], opacity: float
) -> None:
    if shape:
        drawing.polygon([(x + size * dx, y + size * dy) for dx, dy in shape], fill, opacity)
    else:
        drawing.circle(x, y, size, fill, opacity)


def positions(title: str, data: Data, arrays: Arrays) -> Drawing:
    """Return the picture of a view of the kind ``positions``."""
    drawing = begin(WIDTH, TOP + 2 * 330 + 16, title)
    panels = (
        ("learned", "Learned: cosine of positions"),
        ("sinusoid", "Sinusoids: cosine of positions"),
        ("table", "Learned: values"),
        ("waves", "Sinusoids: values"),
    )
    for i, (name, text) in enumerate(panels):
        x, y = EDGE + (i % 2) * 420, TOP + (i // 2) * 330
        values = (arrays[name] / (data["scale"] if name == "table" else 1)).astype(np.float32)
        step = max(1, -(-max(values.shape) // 256))
        drawing.text(x, y + 6, text, size=13, fill=SOFT)
        drawing.image(x, y + 16, 380, 290, mapped(values[::step, ::step], "diverging"))
    drawing.text(
        EDGE, TOP + 2 * 330 + 6, f"{data['count']} positions, {data['width']} numbers each", size=11, fill=SOFT
    )
    return drawing
