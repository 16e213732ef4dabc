"""Measures a benchmark: compares the ids, then times first passes in fresh processes, then repeated passes.

Engines take turns, so that changes of the machine's speed affect all alike.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from benchmarks.definitions import Benchmark, Contestant
from benchmarks.process import Engine, EngineError, MissingError
from benchmarks.texts import Source, write_texts

#: Engines whose results are correct by definition, in this order. All others, this package included, are compared with
#: them.
REFERENCES = ("tokenizers", "transformers")


@dataclass(frozen=True)
class Effort:
    """Limits of the time spent on measuring.

    Every engine gets at least one pass of each kind, then more until its budget in seconds is spent or the limit of passes
    is reached.
    """

    first_passes: int = 5
    repeated_passes: int = 9
    budget: float = 5.0
    stream_megabytes: int = 60


QUICK = Effort(first_passes=2, repeated_passes=3, budget=0.5, stream_megabytes=10)


@dataclass
class Result:
    """The measurements of one contestant."""

    label: str
    version: str = ""
    #: Why there are no measurements.
    note: str = ""
    #: Whether its rows differ from the reference's.
    wrong: bool = False
    tokens: int = 0
    #: Seconds of each pass; for the work "load", of each load.
    first: list[float] = field(default_factory=list)
    repeated: list[float] = field(default_factory=list)
    #: Growth of resident memory in bytes: by loading, and from the first tenth of a stream to its end.
    loaded: int = 0
    growth: int = 0

    def seconds(self, kind: str) -> float | None:
        """Return the median of the passes of a kind, in seconds."""
        passes: list[float] = getattr(self, kind)
        return statistics.median(passes) if passes else None

    def spread(self, kind: str) -> float | None:
        """Return the difference between the slowest and the fastest pass, as a share of the median."""
        passes: list[float] = getattr(self, kind)
        return (max(passes) - min(passes)) / statistics.median(passes) if len(passes) > 1 else None


@dataclass
class Row:
    """The measurements of one benchmark."""

    benchmark: Benchmark
    texts: int
    size: int
    results: list[Result]

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        return {
            "name": self.benchmark.name,
            "texts": self.texts,
            "bytes": self.size,
            "results": [asdict(result) for result in self.results],
        }


class Bench:
    """Measures benchmarks. Tokenizer files for the engines are in a temporary folder, removed at the end."""

    def __init__(self, source: Source, effort: Effort, only: set[str] | None = None) -> None:
        self.source = source
        self.effort = effort
        self.only = only
        self._stack = contextlib.ExitStack()
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="wordpiece-bench-")))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def tokenizer(self, name: str) -> Path:
        """Return the tokenizer.json of a vocabulary, which all engines read."""
        path = self._folder / f"{name}.json"
        if not path.exists():
            write_tokenizer(*self.source.vocabulary(name), path)
        return path

    def run(self, benchmark: Benchmark) -> Row:
        """Measure one benchmark."""
        chosen = [one for one in benchmark.contestants if self.only is None or one.engine in self.only]
        results = {one.label: Result(one.label) for one in chosen}
        tokenizer = self.tokenizer(benchmark.vocabulary)
        if benchmark.texts is None:
            for contestant in chosen:
                with noted(results[contestant.label]):
                    self._alone(benchmark, contestant, tokenizer, results[contestant.label])
            return Row(benchmark, 0, 0, list(results.values()))
        texts = self._folder / "texts.json"
        items = self.source.texts(benchmark.texts)
        size = write_texts(items, texts)
        able = self.compare(chosen, tokenizer, texts, results, benchmark.cores)
        self.time(able, tokenizer, texts, results, benchmark.cores, benchmark.calls)
        return Row(benchmark, len(items), size, list(results.values()))

    def compare(
        self, chosen: list[Contestant], tokenizer: Path, texts: Path, results: dict[str, Result], core_count: int
    ) -> list[Contestant]:
        """Compare the results of all contestants, in processes that are not timed, and return those to time.

        The correct results come from the first of `REFERENCES` that does the same work, or else are ours.
        """
        answers: dict[str, dict[str, Any]] = {}
        for contestant in chosen:
            result = results[contestant.label]
            with noted(result), Engine(contestant.engine, core_count) as engine:
                result.version = engine.version
                engine.prepare(contestant, tokenizer, texts)
                answers[contestant.label] = engine.ask(do="check", rows=False)
                result.tokens = answers[contestant.label]["tokens"]
        able = []
        for contestant in chosen:
            if contestant.label not in answers:
                continue
            same_work = [one for one in chosen if one.work == contestant.work and one.label in answers]
            same_work.sort(key=lambda one: REFERENCES.index(one.label) if one.label in REFERENCES else len(REFERENCES))
            right, own = answers[same_work[0].label]["digests"], answers[contestant.label]["digests"]
            differing = [name for name in right.keys() & own.keys() if right[name] != own[name]]
            if not differing:
                able.append(contestant)
                continue
            result = results[contestant.label]
            result.wrong = True
            rows = "rows" if "ids" not in differing else self._differing(contestant, same_work[0], tokenizer, texts)
            result.note = f"{' and '.join(sorted(differing))} differ from {same_work[0].label}'s in {rows}"
        return able

    def _differing(self, one: Contestant, other: Contestant, tokenizer: Path, texts: Path) -> str:
        rows = []
        for contestant in (one, other):
            with Engine(contestant.engine) as engine:
                engine.prepare(contestant, tokenizer, texts)
                rows.append(engine.ask(do="check", rows=True)["rows"])
        if len(rows[0]) != len(rows[1]):
            return f"number: {len(rows[0]):,} rows, not {len(rows[1]):,}"
        return f"{sum(a != b for a, b in zip(*rows, strict=True)):,} of {len(rows[0]):,} rows"

    def time(
        self,
        able: list[Contestant],
        tokenizer: Path,
        texts: Path,
        results: dict[str, Result],
        core_count: int,
        calls: int,
    ) -> None:
        """Time passes, with engines taking turns. A first pass is one call in a fresh process."""
        effort = self.effort
        with contextlib.ExitStack() as stack:
            live: dict[str, Engine] = {}
            for _ in range(effort.first_passes):
                for contestant in able:
                    result = results[contestant.label]
                    if result.note or sum(result.first) > effort.budget:
                        continue
                    if contestant.label in live:
                        live.pop(contestant.label).close()
                    with noted(result):
                        engine = stack.enter_context(Engine(contestant.engine, core_count))
                        engine.prepare(contestant, tokenizer, texts)
                        result.first.append(self._pass(engine, result, 1))
                        live[contestant.label] = engine
            for _ in range(effort.repeated_passes):
                for contestant in able:
                    result = results[contestant.label]
                    if result.note or sum(result.repeated) * calls > effort.budget:
                        continue
                    with noted(result):
                        result.repeated.append(self._pass(live[contestant.label], result, calls))

    def _pass(self, engine: Engine, result: Result, calls: int) -> float:
        answer = engine.ask(do="pass", calls=calls)
        if answer["tokens"] != result.tokens:
            raise EngineError(
                f"{engine.engine} returned {answer['tokens']} tokens in a timed pass, not {result.tokens}"
            )
        return float(answer["seconds"])

    def _alone(self, benchmark: Benchmark, contestant: Contestant, tokenizer: Path, result: Result) -> None:
        """Measure loading or memory, which need no texts and no turns."""
        turns = self.effort.first_passes if benchmark.work == "load" else 1
        for _ in range(turns):
            with Engine(contestant.engine) as engine:
                result.version = engine.version
                loaded = engine.load(tokenizer)
                result.first.append(loaded.seconds)
                result.loaded = loaded.resident
                if benchmark.work == "memory":
                    found = engine.ask(do="random_words", megabytes=self.effort.stream_megabytes)
                    result.growth = found["late"] - found["early"]


@contextlib.contextmanager
def noted(result: Result) -> Iterator[None]:
    """Record why there are no measurements, and continue with other contestants. A failure of this package propagates."""
    try:
        yield
    except MissingError as error:
        result.note = str(error)
    except EngineError as error:
        if result.label.startswith("ours"):
            raise
        result.note = str(error)


def write_tokenizer(tokens: list[str], lowercase: bool, path: Path) -> None:
    """Write BERT's tokenizer.json for a vocabulary, with all fields of the format, so that every engine can read it."""
    ids = {token: index for index, token in enumerate(tokens)}
    special = [token for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]") if token in ids]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    cls, sep = ({"SpecialToken": {"id": token, "type_id": 0}} for token in ("[CLS]", "[SEP]"))
    first, second = ({"Sequence": {"id": name, "type_id": kind}} for name, kind in (("A", 0), ("B", 1)))
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": ids[token], "content": token, **flags} for token in special],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": lowercase,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [cls, first, sep],
            "pair": [cls, first, sep, second, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
            "special_tokens": {
                token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in ("[CLS]", "[SEP]")
            },
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": ids,
        },
    }
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
