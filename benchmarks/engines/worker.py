"""The common part of all engines' programs: pinning to cores, requests and answers in JSON lines.

A request is ``{"do": NAME, ...}``, an answer an object with the results, or ``{"error": MESSAGE}``. An engine provides a
function `load` and, for each kind of work that it supports, a `Work`: `run` is timed, `count` returns the number of tokens
of a result (to check that a timed pass did all the work), and `answers` converts a result to flat arrays for comparison.

This module runs in environments with only the packages of another engine, so it imports nothing but NumPy.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

#: A column of an answer: all values one after another, and how many of them each row has.
Column = tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]

KIB = 1024


@dataclass(frozen=True)
class Work:
    """One kind of work, with its options bound."""

    run: Callable[[list[Any]], Any]
    count: Callable[[Any], int]
    answers: Callable[[Any], dict[str, Column]]


def from_lists(rows: Iterable[Iterable[int]]) -> Column:
    """Flatten a column of lists."""
    rows = [list(row) for row in rows]
    flat = np.fromiter((value for row in rows for value in row), np.int64, sum(map(len, rows)))
    return flat, np.array([len(row) for row in rows], np.int64)


def from_matrix(matrix: np.ndarray[Any, Any]) -> Column:
    """Flatten a column that is an array [rows, length]."""
    return np.asarray(matrix, np.int64).ravel(), np.full(matrix.shape[0], matrix.shape[1], np.int64)


def padded(run: Callable[[list[Any]], Any]) -> Work:
    """Return the work of a call that returns arrays [rows, length] by the names that transformers gives them."""
    keys = {"ids": "input_ids", "types": "token_type_ids", "mask": "attention_mask"}
    return Work(
        run=run,
        count=lambda batch: int(batch["attention_mask"].sum()),
        answers=lambda batch: {name: from_matrix(batch[key]) for name, key in keys.items()},
    )


def from_ragged(flat: np.ndarray[Any, Any], row_offsets: np.ndarray[Any, Any]) -> Column:
    """Flatten a column that is a flat array with row offsets."""
    return np.asarray(flat, np.int64).ravel(), np.diff(np.asarray(row_offsets, np.int64))


class UnsupportedError(Exception):
    """The engine does not support the work."""


def serve(load: Callable[[dict[str, Any]], Callable[[str, dict[str, Any]], Work]], version: Callable[[], str]) -> None:
    """Answer requests until the input ends.

    `load` receives the fields of the first request, and returns a function from the name and options of a work to `Work`.
    """
    state: dict[str, Any] = {}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = _answer(request, state, load, version)
        except ImportError as error:
            answer = {"missing": f"not installed: {error}"}
        except UnsupportedError as error:
            answer = {"missing": str(error)}
        except Exception as error:  # noqa: BLE001 - another engine may raise anything; the driver reports it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def _answer(
    request: dict[str, Any],
    state: dict[str, Any],
    load: Callable[[dict[str, Any]], Callable[[str, dict[str, Any]], Work]],
    version: Callable[[], str],
) -> dict[str, Any]:
    match request["do"]:
        case "pin":
            if hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(0, request["cores"])
            return {"version": version()}
        case "load":
            before = resident()
            start = time.perf_counter()
            state["works"] = load(request)
            return {"seconds": time.perf_counter() - start, "resident": resident() - before}
        case "texts":
            content = json.loads(Path(request["path"]).read_text(encoding="utf-8"))
            state["texts"] = [tuple(text) if isinstance(text, list) else text for text in content]
            return {"texts": len(content)}
        case "work":
            state["work"] = state["works"](request["work"], request["options"])
            return {}
        case "check":
            return _check(state, rows=request["rows"])
        case "pass":
            return _timed(state, calls=request["calls"])
        case "random_words":
            return _random_words(state, megabytes=request["megabytes"])
        case unknown:
            message = f"no such request: {unknown}"
            raise ValueError(message)


def _check(state: dict[str, Any], *, rows: bool) -> dict[str, Any]:
    """Return digests of the results; with `rows` also a short one of each row, to count those that differ."""
    work, texts = state["work"], state["texts"]
    result = work.run(texts)
    columns = work.answers(result)
    digests = {}
    for name, (flat, lengths) in columns.items():
        whole = hashlib.blake2b(np.ascontiguousarray(lengths), digest_size=16)
        whole.update(np.ascontiguousarray(flat))
        digests[name] = whole.hexdigest()
    found: dict[str, Any] = {"digests": digests, "tokens": work.count(result)}
    if rows:
        flat, lengths = columns["ids"]
        ends = np.cumsum(lengths)
        bounds = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
        found["rows"] = [zlib.crc32(flat[start:end].tobytes()) for start, end in bounds]
    return found


def _timed(state: dict[str, Any], *, calls: int) -> dict[str, Any]:
    """Run one pass: `calls` calls with the same texts, timed together. Results are counted and freed outside of the timing."""
    run, texts = state["work"].run, state["texts"]
    gc.collect()
    gc.disable()
    start = time.perf_counter()
    for _ in range(calls):
        result = run(texts)
    seconds = time.perf_counter() - start
    gc.enable()
    return {"seconds": seconds / calls, "tokens": state["work"].count(result), "resident": resident()}


def _random_words(state: dict[str, Any], *, megabytes: int) -> dict[str, Any]:
    """Encode a stream of random words, and return the memory after its first tenth and at its end."""
    work = state["works"]("ragged", {})
    draw = np.random.default_rng(20240229)
    early, tenth = 0, max(1, megabytes // 10)
    for index in range(megabytes):
        letters = draw.integers(ord("a"), ord("z") + 1, 1_000_000, dtype=np.uint8)
        letters[draw.random(letters.size) < 0.15] = ord(" ")
        whole = letters.tobytes().decode("ascii")
        work.run([whole[start : start + 1000] for start in range(0, len(whole), 1000)])
        if index + 1 == tenth:
            early = resident()
    return {"early": early, "late": resident()}


def resident() -> int:
    """Return the resident memory of this process in bytes, or 0 if the system does not report it."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return 0
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * KIB
