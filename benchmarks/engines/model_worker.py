"""The common part of the model engines' programs, which answer requests in JSON lines as in `worker.py`.

This module runs in environments that have another engine's packages only: it needs nothing but NumPy.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np


class Model(NamedTuple):
    """A model, and what an engine is to make of it."""

    #: The folder with config.json, model.safetensors and, of a sentence encoder, tokenizer.json.
    folder: Path
    #: The folder for files in the formats of engines.
    place: Path
    #: The number type, and other options of an engine.
    kind: str
    #: Whether as many batches as there are threads run side by side, each on one thread.
    streams: bool = False

    @property
    def calibration(self) -> Path:
        """Rows of ids that are not measured, as JSON, for ranges of int8 inputs."""
        return self.place / "calibration.json"


class ModelEngine(Protocol):
    """An engine that runs a model."""

    def version(self) -> str:
        """Import the packages, and return the version and what the engine computes with."""

    def prepare(self, model: Model) -> None:
        """Write the model in the engine's format. A process that prepares a model does nothing else."""

    def load(self, model: Model, threads: int) -> dict[str, Any] | None:
        """Load a prepared model; return what is to be reported about it."""

    def forward(self, rows: list[list[int]], batch: int) -> Any:
        """Return the mean-pooled vectors [n, H] of rows of ids, which are processed in the given order."""

    def texts(self, texts: list[str]) -> Any:
        """Return unit vectors [n, d] of texts, by the engine's usual interface."""


def serve(engine: ModelEngine) -> None:
    """Answer requests until the input ends."""
    state: dict[str, Any] = {}
    # Answers go to the original standard output; what the engine prints goes to standard error.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = _answer(engine, request, state)
        except ImportError as error:
            answer = {"missing": f"not installed: {error}"}
        except Exception as error:  # noqa: BLE001 - another engine may raise anything; the driver reports it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def _answer(engine: ModelEngine, request: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    match request["do"]:
        case "pin":
            if hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(0, request["cores"])
            return {"version": engine.version()}
        case "prepare":
            engine.prepare(_model(request))
            return {}
        case "load":
            start, before = time.perf_counter(), restart_peak()
            told = engine.load(_model(request), request["threads"]) or {}
            state["before"] = before
            return {"seconds": time.perf_counter() - start, "bytes": peak() - before} | told
        case "restart":
            state["before"] = restart_peak()
            return {}
        case "memory":
            return {"bytes": peak() - state["before"]}
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


def _model(request: dict[str, Any]) -> Model:
    return Model(Path(request["folder"]), Path(request["place"]), request["kind"], request.get("streams", False))


def _timed(run: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Return wall-clock and CPU seconds of the best of several runs, and the vectors if requested.

    Runs end with the number of `calls`, or when they have taken the `limit` in seconds, but not before the third.
    """
    gc.collect()
    seconds: list[float] = []
    busy = []
    while len(seconds) < request.get("calls", 1) and (len(seconds) < 3 or sum(seconds) < request.get("limit", np.inf)):
        used, start = time.process_time(), time.perf_counter()
        vectors = run()
        seconds.append(time.perf_counter() - start)
        busy.append(time.process_time() - used)
    found: dict[str, Any] = {"seconds": min(seconds), "cpu_seconds": min(busy)}
    if request.get("vectors"):
        found["vectors"] = np.asarray(vectors, np.float32).tolist()
    return found


def restart_peak() -> int:
    """Set the peak of resident memory to the present size, where the system can, and return it in bytes."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return peak()
    return _status("VmRSS")


def peak() -> int:
    return _status("VmHWM")


def _status(field: str) -> int:
    """Return a size of this process in bytes; 0 on a system that does not say."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))
