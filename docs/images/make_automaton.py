"""Draw `automaton.svg`, the two tries with which words are matched, from a small vocabulary.

Run without arguments to write the picture, with `--check` to fail if the committed one differs.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

OUTPUT = Path(__file__).parent / "automaton.svg"
VOCABULARY = ["un", "##want", "##wa", "##ted", "##ed"]

STEP, ROW, RADIUS, LEFT, TOP = 92, 86, 15, 66, 66
INK, GREY, TOKEN, FAIL = "#1f2328", "#656d76", "#0b6e99", "#b35900"


@dataclass
class Node:
    """A node of a trie: what has been read, what is certain if the next letter does not match, and where to go on."""

    text: str
    token: bool = False
    children: dict[str, Node] = field(default_factory=dict)
    pops: list[str] = field(default_factory=list)
    fail: Node | None = None
    row: int = 0


def trie(tokens: list[str]) -> Node:
    """Return the root of a trie of the tokens."""
    root = Node("")
    for token in tokens:
        node = root
        for letter in token:
            node = node.children.setdefault(letter, Node(node.text + letter))
        node.token = True
    return root


def link(root: Node, inner: Node) -> None:
    """Compute pops and fail of the nodes below a root, level by level (Song et al. 2021, algorithm 2).

    Parameters
    ----------
    root : Node
        The root of a trie; the root of the continuations is linked first.
    inner : Node
        The root of the trie of the continuations.
    """
    level = [root]
    while level:
        for parent in level:
            for letter, node in parent.children.items():
                if node.token:
                    node.pops, node.fail = [node.text if root is not inner else f"##{node.text}"], inner
                    continue
                node.pops, start = list(parent.pops), parent.fail
                while start is not None and letter not in start.children:
                    node.pops += start.pops
                    start = start.fail
                if start is None:
                    node.pops = []
                else:
                    node.fail = start.children[letter]
        level = [node for parent in level for node in parent.children.values()]


def place(node: Node, row: int) -> int:
    """Give each leaf a row and each other node the row of its first child; return the next free row."""
    node.row = row
    for index, child in enumerate(node.children.values()):
        row = place(child, row if index == 0 else row + 1)
    return row


def drawn(root: Node, inner: Node, name: str) -> list[str]:
    """Return the shapes of a trie."""
    shapes = []

    def position(node: Node) -> tuple[int, int]:
        return LEFT + STEP * len(node.text), TOP + ROW * node.row

    def text(x: float, y: float, words: str, colour: str, size: int = 14) -> str:
        return f'<text x="{x}" y="{y}" fill="{colour}" font-size="{size}" text-anchor="middle">{escape(words)}</text>'

    def draw(node: Node) -> None:
        x, y = position(node)
        for letter, child in node.children.items():
            a, b = position(child)
            shapes.append(f'<path d="M{x + RADIUS} {y} L{a - RADIUS} {b}" stroke="{GREY}" fill="none"/>')
            shapes.append(text((x + a) / 2, (y + b) / 2 - 6, letter, INK))
            draw(child)
        fill = TOKEN if node.token else "#ffffff"
        shapes.append(f'<circle cx="{x}" cy="{y}" r="{RADIUS}" fill="{fill}" stroke="{INK}"/>')
        if node.fail is not None:
            target = "root of ##" if node.fail is inner else f"##{node.fail.text}"
            shapes.append(text(x, y + RADIUS + 15, "pops " + " ".join(node.pops), TOKEN, 12))
            shapes.append(text(x, y + RADIUS + 30, f"→ {target}", FAIL, 12))

    draw(root)
    x, y = position(root)
    shapes.append(text(x, y - RADIUS - 10, name, INK))
    return shapes


def picture() -> str:
    """Return the picture as SVG."""
    first = trie([token for token in VOCABULARY if not token.startswith("##")])
    inner = trie([token[2:] for token in VOCABULARY if token.startswith("##")])
    link(inner, inner)
    link(first, inner)
    rows = place(inner, place(first, 0) + 1) + 1
    shapes = [*drawn(first, inner, "words"), *drawn(inner, inner, "##")]
    height = TOP + ROW * rows - 20
    width = 2 * LEFT + STEP * max(len(token.removeprefix("##")) for token in VOCABULARY) + 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' font-family="system-ui, sans-serif">'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>' + "".join(shapes) + "</svg>\n"
    )


def main() -> int:
    """Write the picture or compare it."""
    if "--check" not in sys.argv[1:]:
        OUTPUT.write_text(picture(), encoding="utf-8")
    elif OUTPUT.read_text(encoding="utf-8") != picture():
        print(f"{OUTPUT} is not what the script draws: python {Path(__file__).name}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
