"""The common part of the programs that train, which answer requests in JSON lines as in `worker.py`.

A program gives a class with `version`, `load` and `step`. This module runs in environments that have another engine's
packages only: it needs nothing but NumPy.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Protocol

import numpy as np


class Learner(Protocol):
    """What trains a classifier."""

    def version(self) -> str:
        """Return the version, and what it computes with."""

    def load(self, folder: Path, dtype: str, threads: int, backend: str) -> None:
        """Load a model with a new head for two classes; `dtype` is for products, `backend` is this package's engine."""

    def step(self, batch: dict[str, Any]) -> float:
        """Make one step on ids, attention mask and labels: forward, backward, clipping and AdamW. Return the loss."""


def serve(learner: Learner) -> None:
    """Answer requests until the input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = _answer(learner, request)
        except ImportError as error:
            answer = {"missing": f"not installed: {error}"}
        except Exception as error:  # noqa: BLE001 - another engine may raise anything; the driver reports it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def _answer(learner: Learner, request: dict[str, Any]) -> dict[str, Any]:
    match request["do"]:
        case "pin":
            if hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(0, request["cores"])
            return {"version": learner.version()}
        case "load":
            learner.load(Path(request["folder"]), request["dtype"], request["threads"], request["backend"])
            return {"resident": _status("VmRSS"), "peak": _status("VmHWM")}
        case "step":
            batch = batch_of(request["lengths"], request["vocabulary"])
            used, start = time.process_time(), time.perf_counter()
            loss = learner.step(batch)
            seconds, busy = time.perf_counter() - start, time.process_time() - used
            return {"seconds": seconds, "cpu_seconds": busy, "loss": loss, "peak": _status("VmHWM")}
        case unknown:
            message = f"no such request: {unknown}"
            raise ValueError(message)


def batch_of(lengths: list[int], vocabulary: int) -> dict[str, Any]:
    """Return random rows of these lengths, of ids below `vocabulary`, padded to the longest, and labels."""
    random = np.random.default_rng(3)
    mask = np.arange(max(lengths)) < np.array(lengths)[:, None]
    ids = np.where(mask, random.integers(vocabulary // 20 + 1, vocabulary, mask.shape), 0)
    return {"input_ids": ids, "attention_mask": mask.astype(np.int64), "labels": random.integers(0, 2, len(lengths))}


def _status(field: str) -> int:
    """Return a number of bytes from /proc; 0 where there is none."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return int(next(line for line in lines if line.startswith(field)).split()[1]) * 1024
