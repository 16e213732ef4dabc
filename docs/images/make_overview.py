"""Draw `overview.svg`, the picture at the top of README.md, from the benchmark records.

Run without arguments to write the picture, with `--check` to fail if the committed one differs.
"""

import json
import re
import sys
from pathlib import Path
from statistics import median
from typing import NamedTuple
from xml.sax.saxutils import escape

HERE = Path(__file__).parent
RECORDS = HERE.parents[1] / "tests" / "benchmarks" / "records"
RUN = "amd-epyc-family-25-model-17-2026-11-21"
MODELS_RUN = "amd-epyc-family-26-model-2-2026-11-22"

WIDTH, PANEL, BAR, TOP = 960, 300, 22, 74
INK, GREY, OURS, OTHERS = "#1f2328", "#656d76", "#0b6e99", "#b8c4cc"


class Panel(NamedTuple):
    """One group of bars."""

    title: str
    unit: str
    bars: list[tuple[str, float]]


def read(command: str, run: str = RUN) -> dict:
    """Return the record of a benchmark command."""
    return json.loads((RECORDS / f"{run}-{command}.json").read_text(encoding="utf-8"))


def tokenizing() -> Panel:
    """Megabytes of English a second on one core, repeated passes."""
    row = next(row for row in read("table")["rows"] if row["name"] == "English paragraphs, ragged ids")
    names = {"ours": "wordpiece-bert", "tokenizers-rc": "tokenizers 1.0 rc"}
    bars = [
        (names.get(one["label"], one["label"]), row["bytes"] / 1e6 / median(one["repeated"]))
        for one in row["results"]
        if one["repeated"] and one["label"] != "tokie"
    ]
    return Panel("Text to token ids", "MB of English per second, one core", sorted(bars, key=lambda bar: -bar[1]))


def embedding() -> Panel:
    """Sentences a second through all-MiniLM-L6-v2 on two cores, in the order given."""
    measured = next(one for one in read("models", MODELS_RUN)["measured"] if one["name"] == "minilm, 2 threads")
    times = measured["times"]["in the order given"]
    names = {
        "ours float32": "wordpiece-bert",
        "OpenVINO float32": "OpenVINO",
        "CTranslate2 float32": "CTranslate2",
        "ONNX Runtime float32, fused": "ONNX Runtime",
    }
    bars = [(name, len(measured["lengths"]) / times[label]["seconds"]) for label, name in names.items()]
    return Panel("Text to vectors", "MiniLM sentences per second, float32, two cores", bars)


def training() -> Panel:
    """Seconds to train a vocabulary of 30,522 tokens."""
    row = next(row for row in read("training")["rows"] if row["name"] == "bpe, English")
    names = {"ours": "wordpiece-bert"}
    bars = [(names.get(one["label"], one["label"]), median(one["seconds"])) for one in row["trainers"]]
    return Panel("Text to a vocabulary", "seconds for 34 MB of English (less is better)", bars)


def draw(panels: list[Panel]) -> str:
    """Return the picture as SVG."""
    height = TOP + 2 * BAR * max(len(panel.bars) for panel in panels) + 14
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="13">',
        "<title>Speed of wordpiece-bert compared with other libraries</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
    ]
    for number, panel in enumerate(panels):
        x = 20 + number * (WIDTH - 20) // len(panels)
        parts.append(f'<text x="{x}" y="30" font-size="17" font-weight="600" fill="{INK}">{escape(panel.title)}</text>')
        parts.append(f'<text x="{x}" y="50" font-size="12" fill="{GREY}">{escape(panel.unit)}</text>')
        longest = max(value for _, value in panel.bars)
        for i, (name, value) in enumerate(panel.bars):
            y = TOP + 2 * BAR * i
            width = max(2, (PANEL - 70) * value / longest)
            ours = name == "wordpiece-bert"
            shown = f"{value:.0f}" if value >= 10 else re.sub(r"0+$", "", f"{value:.2f}")
            parts.append(f'<text x="{x}" y="{y + 10}" fill="{INK}">{escape(name)}</text>')
            parts.append(
                f'<rect x="{x}" y="{y + 16}" width="{width:.1f}" height="14" rx="2" fill="{OURS if ours else OTHERS}"/>'
            )
            weight = ' font-weight="600"' if ours else ""
            parts.append(f'<text x="{x + width + 6:.1f}" y="{y + 28}"{weight} fill="{INK}">{shown}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Write the picture, or check the committed one."""
    picture = draw([tokenizing(), embedding(), training()])
    path = HERE / "overview.svg"
    if "--check" not in sys.argv[1:]:
        path.write_text(picture, encoding="utf-8")
    elif path.read_text(encoding="utf-8") != picture:
        sys.exit(f"{path} is not what {Path(__file__).name} draws: run it")


if __name__ == "__main__":
    main()
