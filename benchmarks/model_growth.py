"""How the speed of a model depends on the length of rows, the size of a batch and the number of threads."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.contests import Contest, Entry
from benchmarks.model_data import flop, read_config


def growth(
    folder: Path, engines: list[Entry], row: list[int], options: argparse.Namespace
) -> tuple[str, dict[str, Any]]:
    """Measure Gflop/s of these engines by length, batch and threads."""
    most = max(options.threads)
    config = read_config(folder)
    lengths = [length for length in (8, 16, 32, 64, 128, 256) if length <= config["max_position_embeddings"]]
    defaults = {"length": min(64, lengths[-1]), "batch": 16, "threads": most}
    sweeps = {"length": lengths, "batch": [1, 2, 4, 8, 16, 32, 64], "threads": range(1, most + 1)}
    fixed = {
        "length": "16 rows",
        "batch": f"rows of {defaults['length']} tokens",
        "threads": f"16 rows of {defaults['length']} tokens",
    }
    curves: dict[str, Any] = {}
    parts = ["## How cost grows, Gflop/s", ""]
    contests = {threads: Contest(folder, threads, engines) for threads in sweeps["threads"]}
    for what, points in sweeps.items():
        curve: dict[str, list[float]] = {}
        for point in points:
            case = defaults | {what: point}
            length, batch = case["length"], case["batch"]
            contest = contests[case["threads"]]
            contest.rows([[*(row * 8)[: length - 1], row[-1]]] * batch)
            for label, t in contest.time([list(range(batch))], options.rounds, batch, calls=5).items():
                curve.setdefault(label, []).append(flop(config, [length] * batch) / t.seconds / 1e9)
        cells = [[str(point), *(f"{y[i]:.0f}" for y in curve.values())] for i, point in enumerate(points)]
        parts += [f"{what}, {fixed[what]}:", "", *report.markdown([what, *curve], cells), ""]
        curves[what] = {"points": list(points), "gflops": curve}
    for contest in contests.values():
        contest.close()
    return "\n".join(parts), curves


def plot(curves: dict[str, Any], path: Path) -> None:
    """Plot the curves, if matplotlib is installed."""
    try:
        import matplotlib as mpl
    except ImportError:
        print("No plot: matplotlib is not installed.", file=sys.stderr)
        return
    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(curves), figsize=(4 * len(curves), 3.2), sharey=True)
    for axis, (what, curve) in zip(axes, curves.items(), strict=True):
        for label, y in curve["gflops"].items():
            axis.plot(curve["points"], y, marker="o", label=label)
        axis.set(xlabel=what, ylim=(0, None))
        if what != "threads":
            axis.set_xscale("log", base=2)
    axes[0].set_ylabel("Gflop/s")
    axes[0].legend()
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    print(path)
