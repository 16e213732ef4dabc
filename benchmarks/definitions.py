"""Reads and checks the definitions in `table.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.texts import CORPORA, VOCABULARIES

TABLE = Path(__file__).with_name("table.toml")

#: The programs in `engines/`, by the names that definitions use.
ENGINES = {
    "ours": "ours.py",
    "nanotoken": "nanotoken_engine.py",
    "tokenizers": "tokenizers_engine.py",
    "tokenizers-rc": "tokenizers_rc_engine.py",
    "transformers": "transformers_engine.py",
    "kitoken": "kitoken_engine.py",
    "tokie": "tokie_engine.py",
}

WORKS = ("ragged", "padded", "one", "offsets", "pairs", "windows", "load", "memory")
_FIELDS = {"name", "texts", "vocabulary", "work", "options", "beside", "calls", "cores", "goals", "analysis"}
_TEXT_FIELDS = {"corpus", "first", "pairs", "document_bytes", "total_bytes"}
_GOAL_FIELDS = {"over", "first", "repeated", "milliseconds"}
#: A goal over this is over the fastest other engine.
OTHERS = "others"


class DefinitionError(ValueError):
    """A definition is invalid."""


@dataclass(frozen=True)
class Contestant:
    """An engine in one benchmark, with its work and options."""

    engine: str
    label: str
    work: str
    options: dict[str, Any]


@dataclass(frozen=True)
class Benchmark:
    """One row of the table."""

    name: str
    vocabulary: str
    work: str
    contestants: tuple[Contestant, ...]
    analysis: str
    texts: dict[str, Any] | None = None
    calls: int = 1
    cores: int = 1
    goals: dict[str, Any] = field(default_factory=dict)


def read_table(path: Path = TABLE) -> list[Benchmark]:
    """Read and check the definitions.

    Raises
    ------
    DefinitionError
        A field is unknown or missing, or has an unknown value; the message names the benchmark.
    """
    with path.open("rb") as file:
        entries = tomllib.load(file)["benchmark"]
    found = [_benchmark(entry) for entry in entries]
    names = [benchmark.name for benchmark in found]
    if len(set(names)) < len(names):
        raise DefinitionError(f"two benchmarks have the same name: {names}")
    return found


def _benchmark(entry: dict[str, Any]) -> Benchmark:
    name = entry.get("name", "a benchmark without a name")
    missing = {"name", "vocabulary", "work", "beside", "analysis"} - entry.keys()
    _require(name, not missing, f"lacks {sorted(missing)}")
    _require(name, entry.keys() <= _FIELDS, f"unknown fields {sorted(entry.keys() - _FIELDS)}")
    _require(name, entry["work"] in WORKS, f"work {entry['work']!r} is not one of {WORKS}")
    _require(name, entry["vocabulary"] in VOCABULARIES, f"vocabulary {entry['vocabulary']!r}")
    _require(name, entry["analysis"].endswith("."), "the analysis must end with a full stop")
    texts = entry.get("texts")
    _require(name, (texts is None) == (entry["work"] in ("load", "memory")), "texts, or none for load and memory")
    if texts is not None:
        _require(name, texts.keys() <= _TEXT_FIELDS, f"unknown fields of texts {sorted(texts.keys() - _TEXT_FIELDS)}")
        _require(name, texts["corpus"] in CORPORA, f"corpus {texts['corpus']!r} is not one of {sorted(CORPORA)}")
    contestants = tuple(_contestant(name, entry, beside) for beside in entry["beside"])
    labels = [contestant.label for contestant in contestants]
    _require(name, contestants[0].label == "ours", f"the first contestant must be ours, not {labels[0]!r}")
    _require(name, len(set(labels)) == len(labels), f"two contestants have the same label: {labels}")
    goals = entry.get("goals", {})
    _require(name, goals.keys() <= _GOAL_FIELDS, f"unknown fields of goals {sorted(goals.keys() - _GOAL_FIELDS)}")
    _require(
        name,
        goals.get("over", "ours") in {*labels, OTHERS},
        f"the goal refers to {goals.get('over')!r}, which is not a contestant",
    )
    return Benchmark(
        name=name,
        vocabulary=entry["vocabulary"],
        work=entry["work"],
        contestants=contestants,
        analysis=entry["analysis"],
        texts=texts,
        calls=entry.get("calls", 1),
        cores=entry.get("cores", 1),
        goals=goals,
    )


def _contestant(name: str, entry: dict[str, Any], beside: str | dict[str, Any]) -> Contestant:
    own = {"engine": beside} if isinstance(beside, str) else beside
    _require(name, own["engine"] in ENGINES, f"engine {own['engine']!r} is not one of {sorted(ENGINES)}")
    work = own.get("work", entry["work"])
    _require(name, work in WORKS, f"work {work!r} is not one of {WORKS}")
    return Contestant(
        engine=own["engine"],
        label=own.get("label", own["engine"]),
        work=work,
        options=own.get("options", entry.get("options", {})),
    )


def _require(name: str, holds: bool, message: str) -> None:
    if not holds:
        raise DefinitionError(f"{name}: {message}")
