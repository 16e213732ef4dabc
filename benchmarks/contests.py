"""Engines that run one model, each in a process of its own, which take turns with the same rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from benchmarks.process import Engine, EngineError, MissingError
from benchmarks.texts import ROOT
from wordpiece_bert.finetune.metrics import spearman

BUILD = ROOT / "build" / "bench"
GROUP = 192  # rows in a turn: several batches for each stream
PAIRS = 10_000  # whose similarities are ranked

#: An engine in float32 whose vectors differ more than this from ours computes something else.
LEAST_COSINE = 0.999


@dataclass(frozen=True)
class Entry:
    """One line of a table: an engine, and what it loads.

    `beside` are the labels of the engines of which the fastest is compared with this one; `goals` are the ratios to reach
    with rows sorted by length and in the order given.
    """

    label: str
    engine: str
    kind: str
    dtype: str
    beside: tuple[str, ...] = ()
    goals: tuple[float, float] | None = None
    variables: dict[str, str] = field(default_factory=dict)
    #: Whether as many batches as there are threads run side by side, each on one thread.
    streams: bool = False
    #: The engine that writes what this one loads, one of `EXPORTERS`, or itself.
    written_by: str | None = None

    @property
    def ours(self) -> bool:
        """Whether the engine is this package."""
        return self.engine == "ours"


PROGRAMS = {
    "ours": "model_ours.py",
    "onnxruntime": "model_onnx.py",
    "openvino": "model_openvino.py",
    "ctranslate2": "model_ctranslate2.py",
    "torch": "model_torch.py",
    "llama.cpp": "model_llama.py",
}

#: Programs that write graphs for engines.
EXPORTERS = {"optimum": "model_optimum.py"}

THEIRS = (
    Entry("OpenVINO float32", "openvino", "float32", "float32"),
    Entry("OpenVINO bfloat16", "openvino", "bfloat16", "bfloat16"),
    Entry("OpenVINO int8", "openvino", "int8", "int8"),
    Entry("ONNX Runtime float32, fused", "onnxruntime", "fused", "float32"),
    Entry("ONNX Runtime int8, fused", "onnxruntime", "fused-int8", "int8"),
    Entry("ONNX Runtime float32, optimum", "onnxruntime", "optimum", "float32", written_by="optimum"),
    Entry("ONNX Runtime int8, optimum", "onnxruntime", "optimum-int8", "int8", written_by="optimum"),
    Entry("CTranslate2 float32", "ctranslate2", "float32", "float32"),
    Entry("CTranslate2 int8", "ctranslate2", "int8", "int8"),
    Entry("torch float32", "torch", "float32", "float32"),
    Entry("torch bfloat16", "torch", "bfloat16", "bfloat16"),
    Entry("llama.cpp f16", "llama.cpp", "f16", "float16"),
    Entry("llama.cpp q8_0", "llama.cpp", "q8_0", "int8"),
)


def with_streams(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Return engines, and the other way in which they use several threads, often the faster one.

    OpenVINO is compiled for throughput; ONNX Runtime and CTranslate2 have a run or a worker for each thread.
    """
    able = [entry for entry in entries if entry.engine in ("openvino", "onnxruntime", "ctranslate2")]
    return (*entries, *(replace(e, label=streaming(e.label), streams=True) for e in able))


def streaming(label: str) -> str:
    """Return the label of an engine with streams."""
    return f"{label}, a stream a thread"


def both_ways(*labels: str) -> tuple[str, ...]:
    """Return the labels of engines without and with streams."""
    return (*labels, *map(streaming, labels))


def others(dtype: str) -> tuple[str, ...]:
    """Return the labels of the other engines that compute in this type."""
    return both_ways(*(entry.label for entry in THEIRS if entry.dtype == dtype))


OURS = (
    Entry("ours float32", "ours", "float32", "float32", others("float32"), (1.4, 3)),
    Entry("ours bfloat16", "ours", "bfloat16", "bfloat16", others("bfloat16")),
    Entry("ours int8", "ours", "int8", "int8", others("int8"), (1.3, 3)),
    Entry("ours auto", "ours", "auto", "bfloat16", others("bfloat16")),
)


def forced() -> tuple[Entry, ...]:
    """Return ours and OpenVINO, limited to the same instruction sets. OpenVINO's kernels obey oneDNN's variable."""
    found = []
    for dtype, theirs, ours in (
        ("float32", "AVX2", "avx2"),
        ("int8", "AVX512_CORE", "avx512-plain"),
        ("int8", "AVX2_VNNI", "avx-vnni"),
        ("int8", "AVX2", "avx2-plain"),
    ):
        limited = {"ONEDNN_MAX_CPU_ISA": theirs}
        peer = Entry(f"OpenVINO {dtype}, {theirs}", "openvino", dtype, dtype, variables=limited)
        goals = (1.4, 3) if dtype == "float32" else (1.3, 3)
        found += [Entry(f"ours {dtype}, {ours}", "ours", f"{dtype} {ours}", dtype, (peer.label,), goals), peer]
    return tuple(found)


@dataclass
class Timing:
    """Time of an engine for some rows: the best of each group, summed."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    #: All that was spent on measuring.
    spent: float = 0.0


@dataclass(frozen=True)
class Agreement:
    """How near an engine's vectors are to the first engine's: cosines, and the correlation of similarities of pairs."""

    lowest: float
    median: float
    correlation: float


class Contest:
    """Engines with one model loaded, each in a separate process. A context manager that ends the processes.

    Parameters
    ----------
    folder
        The model.
    threads
        Threads of each engine.
    entries
        The engines, of which those with streams take part with several threads. Of one that cannot run, `notes` says why.
    calibration
        Rows of ids that are not measured.
    torch
        A Python interpreter that has torch and transformers, instead of an environment of its own.
    """

    #: The program of each engine.
    programs = PROGRAMS

    def __init__(
        self,
        folder: Path,
        threads: int,
        entries: Iterable[Entry],
        calibration: list[list[int]] | None = None,
        torch: Path | None = None,
    ) -> None:
        self.folder, self.threads = folder, threads
        self.entries = {entry.label: entry for entry in entries if threads > 1 or not entry.streams}
        self.engines: dict[str, Engine] = {}
        self.notes: dict[str, str] = {}
        self.loads: dict[str, dict[str, Any]] = {}
        self._place = place_of(folder)
        if calibration is not None:
            self._calibrate(json.dumps(calibration))
        for label, entry in self.entries.items():
            python = torch if entry.engine == "torch" else None
            request = {"folder": str(folder), "place": str(self._place), "kind": entry.kind, "streams": entry.streams}
            try:
                self._prepare(entry, python, request)
                engine = Engine(entry.engine, threads, self.programs[entry.engine], python, entry.variables)
                self.engines[label] = engine
                self.loads[label] = {"version": engine.version} | engine.ask(do="load", threads=threads, **request)
            except (MissingError, EngineError) as error:
                self.exclude(label, str(error))

    def _calibrate(self, rows: str) -> None:
        """Write the rows of calibration; models quantized with others, as by --quick, are made again."""
        path = self._place / "calibration.json"
        if not path.exists() or path.read_text(encoding="utf-8") != rows:
            for stamp in self._place.glob("*int8*.stamp"):
                stamp.unlink()
            path.write_text(rows, encoding="utf-8")

    def _prepare(self, entry: Entry, python: Path | None, request: dict[str, Any]) -> None:
        """Write the model in the engine's format, by a process of its own; what an interrupted one left is written again."""
        done = self._place / f"{entry.engine}-{entry.kind.replace(' ', '-')}.stamp"
        if done.exists() or (entry.ours and not entry.kind.endswith("stored")):
            return
        writer = entry.written_by or entry.engine
        with Engine(writer, 1, (self.programs | EXPORTERS)[writer], python) as engine:
            engine.ask(do="prepare", **request)
        done.touch()

    def exclude(self, label: str, why: str) -> None:
        """Measure an engine no further."""
        self.notes[label] = why
        if label in self.engines:
            self.engines.pop(label).close()

    def rows(self, rows: list[list[int]]) -> None:
        """Pass the rows to all engines."""
        path = self._place / "rows.json"
        path.write_text(json.dumps(rows), encoding="utf-8")
        for engine in self.engines.values():
            engine.ask(do="rows", path=str(path))

    def texts(self, texts: Sequence[str | tuple[str, str]]) -> Path:
        """Write texts, or pairs of texts, for requests, and return the file."""
        path = self._place / "texts.json"
        path.write_text(json.dumps(texts), encoding="utf-8")
        return path

    def time(
        self,
        groups: list[list[int]],
        rounds: int,
        batch: int = 32,
        calls: int = 1,
        budget: float = np.inf,
        **ask: Any,
    ) -> dict[str, Timing]:
        """Time all engines in turns; one that has spent its budget in seconds has its turns in the first two rounds only."""
        request: dict[str, Any] = {"do": "forward", "batch": batch, "calls": calls} | ask
        found = {label: Timing() for label in self.engines}
        for group in groups:
            best: dict[str, list[tuple[float, float]]] = {label: [] for label in self.engines}
            for turn in range(rounds):
                for label, engine in self.engines.items():
                    if turn > 1 and found[label].spent > budget:
                        continue
                    answer = engine.ask(rows=group, **request)
                    best[label].append((answer["seconds"], answer["cpu_seconds"]))
                    found[label].spent += answer["seconds"]
            for label, times in best.items():
                found[label].seconds += min(t[0] for t in times)
                found[label].cpu_seconds += min(t[1] for t in times)
        return found

    def unit_vectors(self, groups: list[list[int]], **ask: Any) -> dict[str, Any]:
        """Return the vectors [n, d] that each engine gives for rows or texts, in the order of the groups, with length 1."""
        units = {}
        for label, engine in self.engines.items():
            answers = [engine.ask(rows=group, vectors=True, **ask)["vectors"] for group in groups]
            x = np.concatenate([np.array(answer, np.float32) for answer in answers])
            units[label] = x / np.linalg.norm(x, axis=1, keepdims=True)
        return units

    def agreement(self, order: list[int], batch: int = 32) -> dict[str, Agreement]:
        """Compare the vectors of rows, in this order, with the first engine's.

        An engine in float32 that differs is excluded, because it computes something else.
        """
        units = self.unit_vectors(in_groups(order), do="forward", batch=batch)
        first = next(iter(units.values()))
        a, b = np.triu_indices(len(order), 1)
        if len(a) > PAIRS:
            chosen = np.random.default_rng(0).choice(len(a), PAIRS, replace=False)
            a, b = a[chosen], b[chosen]
        right = (first[a] * first[b]).sum(axis=1)
        found = {}
        for label, x in units.items():
            cosines = (x * first).sum(axis=1)
            correlation = spearman((x[a] * x[b]).sum(axis=1), right) if len(a) > 1 else 1.0
            found[label] = Agreement(float(cosines.min()), float(np.median(cosines)), correlation)
            if self.entries[label].dtype == "float32" and found[label].lowest < LEAST_COSINE:
                self.exclude(label, f"WRONG: the lowest cosine to {next(iter(units))} is {found[label].lowest:.6f}")
        return found

    @property
    def wrong(self) -> bool:
        """Whether an engine was excluded because of its results."""
        return any(note.startswith("WRONG") for note in self.notes.values())

    def close(self) -> None:
        """End all processes."""
        for engine in self.engines.values():
            engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def place_of(folder: Path) -> Path:
    """Return the folder for a model's files in the formats of engines; another one if the model has changed."""
    state = (folder / "model.safetensors").stat()
    name = f"{folder.resolve()} {state.st_size} {state.st_mtime_ns}"
    place = BUILD / "models" / hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()[:8]
    place.mkdir(parents=True, exist_ok=True)
    return place


def in_groups(order: list[int]) -> list[list[int]]:
    """Split an order of rows into turns."""
    return [order[start : start + GROUP] for start in range(0, len(order), GROUP)]
