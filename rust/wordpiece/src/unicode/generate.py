"""Generate tables.rs from char_classes.json.

    python generate.py            # writes tables.rs next to this file
    python generate.py --check    # compares instead; exits with 1 if they differ

Requires only Python. mod.rs, which reads the tables, documents their layout.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "char_classes.json"
TARGET = HERE / "tables.rs"
CODE_POINTS = 0x110000
HANGUL = range(0xAC00, 0xD7A4)

# The bits of a class, in the order of the constants of CharClass in mod.rs, with the key of each in the file.
FLAGS = (
    ("WHITESPACE", "whitespace"),
    ("REMOVED", "clean_removed"),
    ("PUNCTUATION", "punctuation"),
    ("CJK", "cjk"),
    ("NONSPACING_MARK", "mn"),
    ("COMBINING_MARK", "combining_mark"),
    ("WORD", "word_regex"),
    ("NUMERIC", "numeric"),
    ("CHANGES_IN_LOWERCASE", "lowercase"),
    ("DECOMPOSES", "nfd"),
    ("REORDERS", "combining_class"),
    ("LETTER", "letter_regex"),
    ("NUMBER", "number_regex"),
)


def members(data: dict, key: str) -> set[int]:
    """Return the code points that have a property, whichever form the file stores it in."""
    if key == "lowercase":
        return {int(k, 16) for k in data[key]}
    if key == "nfd":
        return {int(k, 16) for k in data[key]} | set(HANGUL)
    if key == "combining_class":
        return {c for c, _ in data[key]}
    return {c for first, last in data[key] for c in range(first, last + 1)}


def number(values: Sequence[int], *, signed: bool = False) -> str:
    """Return the smallest Rust integer type that can hold all values."""
    for bits in (8, 16, 32):
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        if low <= min(values) and max(values) <= high:
            return f"{'i' if signed else 'u'}{bits}"
    raise SystemExit("a value needs more than 32 bits")


def array(name: str, doc: str, kind: str, values: Sequence[int | str]) -> str:
    """Return the source of a static array, with lines filled to the line width of the project."""
    lines, line = [], "   "
    for value in values:
        item = f" {value},"
        if len(line) + len(item) > 120:
            lines.append(line)
            line = "   "
        line += item
    lines.append(line)
    body = "\n".join(lines)
    return f"/// {doc}\npub(super) static {name}: [{kind}; {len(values)}] = [\n{body}\n];\n"


def two_stages(values: Sequence[int]) -> tuple[int, list[int], list[int]]:
    """Divide one value per code point into blocks of equal size, and store each distinct block once.

    Returns the number of low bits that index into a block, the number of the block of each run of code points (up to
    the last run that is not all zero), and the concatenated blocks. The block size minimizes the total size in bytes.
    """
    best = None
    width = 1 if max(values) < 256 else 2
    for shift in range(4, 10):
        size = 1 << shift
        blocks: dict[tuple[int, ...], int] = {(0,) * size: 0}
        index = [blocks.setdefault(tuple(values[i : i + size]), len(blocks)) for i in range(0, CODE_POINTS, size)]
        while index and index[-1] == 0:
            index.pop()
        cost = len(index) * (1 if len(blocks) <= 256 else 2) + len(blocks) * size * width
        if best is None or cost < best[0]:
            best = cost, shift, index, [v for block in blocks for v in block]
    assert best is not None
    return best[1:]


def two_stage_arrays(name: str, what: str, values: Sequence[int]) -> str:
    """Return the source of a two-stage table; `what` documents its blocks."""
    shift, index, blocks = two_stages(values)
    return "\n".join(
        (
            f"/// Low bits of a code point that index into a block of [`{name}_BLOCKS`].\n"
            f"pub(super) const {name}_SHIFT: u32 = {shift};\n",
            array(f"{name}_INDEX", f"Block of each run of code points in [`{name}_BLOCKS`].", number(index), index),
            array(f"{name}_BLOCKS", what, number(blocks), blocks),
        )
    )


def render(data: dict) -> str:
    """Return the text of tables.rs."""
    classes = [0] * CODE_POINTS
    flags = []
    for bit, (name, key) in enumerate(FLAGS):
        flags.append(f"/// Bit of `CharClass::{name}`.\npub(super) const {name}: u16 = 1 << {bit};\n")
        for c in members(data, key):
            classes[c] |= 1 << bit

    combining = [0] * CODE_POINTS
    for c, k in data["combining_class"]:
        combining[c] = k

    # Lower case: the difference to the lower-case letter, of which there are few distinct values. mod.rs handles the
    # only expansion of Unicode (U+0130); the assertion fails if a new version adds another.
    steps: dict[int, int] = {0: 0}
    lower = [0] * CODE_POINTS
    expansions = []
    for key, target in data["lowercase"].items():
        c = int(key, 16)
        if len(target) > 1:
            expansions.append((c, target))
        lower[c] = steps.setdefault(target[0] - c, len(steps))
    assert expansions == [(0x130, [0x69, 0x307])], f"mod.rs knows one expansion, the measurement has {expansions}"

    assert data["nfd_hangul"] == [[HANGUL.start, HANGUL.stop - 1]], "Hangul syllables do not decompose by arithmetic"
    parts: list[int] = []
    starts = [0]
    decomposition = [0] * CODE_POINTS
    for key, target in data["nfd"].items():
        decomposition[int(key, 16)] = len(starts)
        starts.append(len(parts))
        parts.extend(target)
    starts.append(len(parts))

    version = data["_tokenizers"]
    return "\n".join(
        (
            "// Generated by `python generate.py` from char_classes.json; do not edit.\n"
            f"// Measured with tokenizers {version}: Unicode 8.0 (categories), 9.0 (decomposition, marks),\n"
            "// 16.0 (words, letters), 17.0 (lower case, numbers).\n",
            *flags,
            two_stage_arrays("CLASS", "Class bits, block after block.", classes),
            two_stage_arrays("COMBINING", "Canonical combining class, block after block.", combining),
            two_stage_arrays("LOWER", "Index into [`LOWER_STEPS`], block after block.", lower),
            array(
                "LOWER_STEPS",
                "What is added to a code point to make its (first) lower-case letter.",
                number(list(steps), signed=True),
                list(steps),
            ),
            two_stage_arrays("DECOMPOSITION", "Which decomposition, counted from 1, block after block.", decomposition),
            array(
                "DECOMPOSITION_STARTS",
                "Where decomposition n starts in [`DECOMPOSITION_PARTS`]; it ends where the next one starts.",
                number(starts),
                starts,
            ),
            array(
                "DECOMPOSITION_PARTS",
                "The full canonical decompositions, one after the other.",
                "char",
                [f"'\\u{{{c:x}}}'" for c in parts],
            ),
        )
    )


def main() -> int:
    text = render(json.loads(SOURCE.read_text(encoding="utf-8")))
    if "--check" in sys.argv[1:]:
        same = TARGET.exists() and text == TARGET.read_text(encoding="utf-8")
        print("tables.rs", "is up to date" if same else "is NOT what generate.py generates from char_classes.json")
        return 0 if same else 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
