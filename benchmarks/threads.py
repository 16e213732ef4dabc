"""The command `threads`: two threads of one call beside two processes, and more threads than cores.

Two processes, each on a core of its own, share nothing: what two threads reach of their speed is what dividing a call costs
in all, with collecting the texts, handing out runs, and putting results together. Processes take turns; medians count. A
turn is a call or, of few texts, several in a row, as in a loop over batches: after a pause all tables are out of the caches.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import statistics
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.definitions import Contestant
from benchmarks.measure import write_tokenizer
from benchmarks.process import Engine, cores
from benchmarks.report import MB
from benchmarks.texts import QUICK_BYTES, Item, Source, write_texts

#: Kinds of texts: their corpus and vocabulary.
KINDS = {
    "English paragraphs": ("english", "uncased"),
    "tweets": ("tweets", "uncased"),
    "many languages": ("many", "multilingual-cased"),
}

PAD = {"padding": "max_length", "max_length": 128}

#: Kinds of work: the name for engines, its options, the most texts of a call, and whether they are pairs.
WORKS: dict[str, tuple[str, dict[str, Any], int | None, bool]] = {
    "ids": ("ragged", {}, None, False),
    "ids, offsets and word ids": ("offsets", {}, 16_384, False),
    "padded to 128, 4,096 texts": ("padded", PAD, 4096, False),
    "pairs padded to 128, 4,096 pairs": ("pairs", PAD, 8192, True),
}

#: Numbers of threads of one call on two cores.
THREADS = (1, 2, 8, 16, 64)
CORES = 2

#: About the least seconds of a turn.
TURN_SECONDS = 0.1


@dataclass
class Measured:
    """The seconds of passes over some texts: of one call by its threads, and of two processes at once."""

    texts: str
    work: str
    rows: int
    size: int
    threads: dict[int, list[float]] = field(default_factory=dict)
    processes: list[float] = field(default_factory=list)

    def speed(self, threads: int) -> float:
        """Return the MB/s of one call."""
        return self.size / MB / statistics.median(self.threads[threads])

    def both(self) -> float:
        """Return the MB/s of two processes together."""
        return CORES * self.size / MB / statistics.median(self.processes)

    def cells(self) -> list[str]:
        """Return the cells of its row."""
        one, two = self.speed(1), self.speed(2)
        more = (f"{self.speed(count) / two:.2f}" for count in THREADS[2:])
        label = f"{self.texts}, {self.work}"
        return [label, f"{one:.0f}", f"{two:.0f}", f"{two / one:.2f}", f"{two / self.both():.2f}", *more]


def measure(source: Source, texts: str, work: str, rounds: int, folder: Path) -> Measured:
    """Measure one kind of work on one kind of texts."""
    corpus, vocabulary = KINDS[texts]
    name, options, first, pairs = WORKS[work]
    items: list[Item] = list(source.texts({"corpus": corpus, "pairs": pairs} | ({"first": first} if first else {})))
    file, tokenizer = folder / "texts.json", folder / f"{vocabulary}.json"
    found = Measured(texts, work, len(items), write_texts(items, file))
    write_tokenizer(*source.vocabulary(vocabulary), tokenizer)

    def prepared(stack: contextlib.ExitStack, threads: int, on: list[int]) -> Engine:
        engine = stack.enter_context(Engine("ours"))
        engine.ask(do="pin", cores=on)
        engine.prepare(Contestant("ours", "ours", name, options | {"threads": threads}), tokenizer, file)
        engine.ask(do="pass", calls=1)
        return engine

    def seconds(engine: Engine, calls: int = 1) -> float:
        return float(engine.ask(do="pass", calls=calls)["seconds"])

    with contextlib.ExitStack() as stack:
        calls = {threads: prepared(stack, threads, cores(CORES)) for threads in THREADS}
        pair = [prepared(stack, 1, [core]) for core in cores(CORES)]
        pool = stack.enter_context(ThreadPoolExecutor(CORES))
        in_a_row = max(1, round(TURN_SECONDS / seconds(calls[1])))
        for _ in range(rounds):
            for threads, engine in calls.items():
                found.threads.setdefault(threads, []).append(seconds(engine, in_a_row))
            found.processes.append(statistics.mean(pool.map(seconds, pair, itertools.repeat(in_a_row))))
    return found


def main(arguments: list[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="benchmarks threads", description=__doc__)
    parser.add_argument("--corpora", type=Path, help="folder of corpora and vocabularies")
    parser.add_argument("--quick", action="store_true", help="less text and fewer passes")
    parser.add_argument(
        "--only", nargs="+", metavar="WORDS", default=[""], help="only texts and work with one of these"
    )
    parser.add_argument("--record", type=Path, nargs="?", const=report.RECORDS, help="save the results in this folder")
    options = parser.parse_args(arguments)
    source = Source(options.corpora, QUICK_BYTES if options.quick else None)
    head = report.heading("Threads of one call", source.describe())
    print(head, flush=True)
    found = []
    with tempfile.TemporaryDirectory(prefix="wordpiece-bench-") as folder:
        for texts, work in itertools.product(KINDS, WORKS):
            if any(word in f"{texts}, {work}" for word in options.only):
                found.append(measure(source, texts, work, 2 if options.quick else 9, Path(folder)))
                print(*found[-1].cells(), flush=True)
    header = ["", "one thread, MB/s", "two", "two ÷ one", "two threads ÷ two processes"]
    header += [f"{count} threads ÷ two" for count in THREADS[2:]]
    text = "\n".join([head, *report.markdown(header, [one.cells() for one in found]), ""])
    print(text)
    if options.record:
        print(report.save("threads", text, {"rows": [asdict(one) for one in found]}, options.record))
    return 0
