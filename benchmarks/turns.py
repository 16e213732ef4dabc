"""Calls in this process that take turns, so that changes of the machine's speed affect all alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter, process_time
from typing import TypeVar

Label = TypeVar("Label")


def least(calls: Mapping[Label, Callable[[], object]], rounds: int) -> dict[Label, tuple[float, float]]:
    """Return the least seconds and the least CPU seconds of each call."""
    best = dict.fromkeys(calls, (float("inf"), float("inf")))
    for _ in range(rounds):
        for label, call in calls.items():
            wall, cpu = perf_counter(), process_time()
            call()
            wall, cpu = perf_counter() - wall, process_time() - cpu
            best[label] = min(best[label][0], wall), min(best[label][1], cpu)
    return best
