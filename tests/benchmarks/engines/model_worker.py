"""The common part of the model engines' programs, which answer requests in JSON lines as in `worker.py`.

An engine gives a class with `load`, `forward` (rows of ids -> pooled vectors), `texts` (texts -> vectors) and `version`.
This module runs in environments that have another engine's packages only: it needs nothing but NumPy.
"""

# ruff: noqa: ANN401 (arrays of other packages, and JSON)

from __future__ import annotations

import gc
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Protocol

import numpy as np


class ModelEngine(Protocol):
    """An engine that runs a model."""

    def version(self) -> str:
        """Return the version, and what the engine computes with."""

    def load(self, folder: Path, kind: str, threads: int) -> None:
        """Load a model."""

    def forward(self, rows: list[list[int]], batch: int) -> Any:
        """Return the mean-pooled vectors [n, H] of rows of ids, which are processed in the given order."""

    def texts(self, texts: list[str]) -> Any:
        """Return unit vectors [n, d] of texts, by the engine's usual interface."""


def serve(engine: ModelEngine) -> None:
    """Answer requests until the input ends."""
    state: dict[str, Any] = {}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = _answer(engine, request, state)
        except ImportError as error:
            answer = {"missing": f"not installed: {error}"}
        except Exception as error:  # noqa: BLE001 - another engine may raise anything; the driver reports it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def _answer(engine: ModelEngine, request: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    match request["do"]:
        case "pin":
            if hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(0, request["cores"])
            return {"version": engine.version()}
        case "load":
            engine.load(Path(request["folder"]), request["kind"], request["threads"])
            return {}
        case "rows":
            state["rows"] = json.loads(Path(request["path"]).read_text(encoding="utf-8"))
            return {}
        case "forward":
            rows = [state["rows"][i] for i in request["rows"]]
            return _timed(lambda: engine.forward(rows, request["batch"]), request)
        case "texts":
            texts = json.loads(Path(request["path"]).read_text(encoding="utf-8"))
            return _timed(lambda: engine.texts([texts[i] for i in request["rows"]]), request)
        case unknown:
            message = f"no such request: {unknown}"
            raise ValueError(message)


def _timed(run: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Return wall-clock and CPU seconds of the best of several runs, and the vectors if requested."""
    gc.collect()
    seconds, busy = [], []
    for _ in range(request.get("calls", 1)):
        used, start = time.process_time(), time.perf_counter()
        vectors = run()
        seconds.append(time.perf_counter() - start)
        busy.append(time.process_time() - used)
    found: dict[str, Any] = {"seconds": min(seconds), "cpu_seconds": min(busy)}
    if request.get("vectors"):
        found["vectors"] = np.asarray(vectors, np.float32).tolist()
    return found
