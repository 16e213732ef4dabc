"""Writes a page of bertviz from an array of attention weights, and prints the seconds and the memory that this took.

The arguments are the name of the view (``model_view`` or ``head_view``), a file of weights [layers, heads, tokens, tokens]
as NumPy writes it, a file with the tokens as JSON, and the path of the page. It runs in an environment that has bertviz.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys
import time
from pathlib import Path

import numpy as np
from model_worker import peak, restart_peak


def main(view: str, weights: Path, tokens: Path, path: Path) -> None:
    """Write the page."""
    show = getattr(importlib.import_module("bertviz"), view)
    torch = importlib.import_module("torch")
    attention = list(torch.from_numpy(np.load(weights))[:, None])  # of each layer [1, heads, tokens, tokens]
    names = json.loads(tokens.read_text(encoding="utf-8"))
    resident, start = restart_peak(), time.perf_counter()
    with path.open("w", encoding="utf-8") as file:
        file.write(f"<!doctype html><meta charset=utf-8>{show(attention, names, html_action='return').data}")
    seconds = time.perf_counter() - start
    version = importlib.metadata.version("bertviz")
    found = {"seconds": seconds, "resident": resident, "peak": peak(), "bytes": path.stat().st_size, "version": version}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], *map(Path, sys.argv[2:]))
