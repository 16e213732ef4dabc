"""The command `latency`: one sentence, by length, threads and engine, each engine alone on the machine.

The threads of some engines wait busily for the next call, so an engine is measured in a process of its own, without
others beside it. The least of many calls counts. What is not arithmetic is measured for this package: the time of
`SentenceEncoder.encode` beyond that of the encoder's pass over the same ids.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks import models, report
from wordpiece_bert import SentenceEncoder
from wordpiece_bert.hub import find_model

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LENGTHS = (8, 32, 128, 256)


def row_of(tokens: int) -> list[int]:
    """Return ids of the usual vocabulary: [CLS], words, [SEP]."""
    return [101, *(1996 + 7 * i for i in range(tokens - 2)), 102]


def beside_others(folder: Path, labels: list[str], threads: int, rounds: int) -> str:
    """Measure each engine in turn and return milliseconds for one row of each length."""
    cells, notes = [], []
    for label in labels:
        contest = models.Contest(folder, threads, [label])
        try:
            if label in contest.notes:
                notes.append(f"- {label}: not measured: {contest.notes[label]}")
                continue
            found = []
            for length in LENGTHS:
                contest.rows([row_of(length)])
                times = contest.time([[0]], rounds, calls=10)
                found.append(f"{1e3 * times[label].seconds:.2f}")
            cells.append([label, *found])
        finally:
            contest.close()
    title = f"## One sentence, {threads} thread{'s' * (threads != 1)}, milliseconds by tokens"
    return "\n".join([title, "", *report.markdown(["", *map(str, LENGTHS)], cells), *notes, ""])


def least(call: Callable[[], object], calls: int) -> float:
    """Return the least milliseconds of a call."""
    best = float("inf")
    for _ in range(calls):
        start = perf_counter()
        call()
        best = min(best, perf_counter() - start)
    return 1e3 * best


def parts_of_a_call(folder: Path, dtype: str, threads: int, calls: int) -> list[list[str]]:
    """Measure a call of this package, its tokenizer, its encoder, and the rest, in milliseconds."""
    encoder = SentenceEncoder(folder, dtype=dtype, threads=threads)
    cells = []
    for length in LENGTHS:
        text = " ".join(["the"] * (length - 2))
        rows = encoder._tokenize([text])
        assert rows.lengths.tolist() == [min(length, encoder.max_seq_length)]
        few = max(calls * LENGTHS[0] // length, 5)
        whole = least(partial(encoder.encode, text), few)
        tokenizer = least(partial(encoder._tokenize, [text]), few)
        run = partial(encoder._model._encoder.pooled, rows.ids, rows.row_offsets, ["mean"], 0, threads)
        products = least(run, few)
        times = [whole, products, tokenizer, whole - products - tokenizer]
        cells.append([dtype, str(threads), str(length), *(f"{time:.3f}" for time in times)])
    return cells


def main(arguments: list[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="benchmarks latency", description=__doc__)
    parser.add_argument("--model", default="minilm", help="name or folder of the model (default: minilm)")
    known = [*models.OURS, *models.THEIRS]
    parser.add_argument("--engines", nargs="+", choices=known, default=known, help="run only these engines")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads (default: 1 2)")
    parser.add_argument("--quick", action="store_true", help="fewer calls, to check that the benchmark works")
    options = parser.parse_args(arguments)
    folder = find_model(options.model)
    calls, rounds = (5, 1) if options.quick else (1000, 20)
    cells = []
    for threads in options.threads:
        for dtype in ("float32", "bfloat16"):
            cells += parts_of_a_call(folder, dtype, threads, calls)
    header = ["dtype", "threads", "tokens", "encode", "its products", "its tokenizer", "the rest"]
    print("\n".join(["## Parts of a call, milliseconds", "", *report.markdown(header, cells), ""]))
    for threads in options.threads:
        print(beside_others(folder, options.engines, threads, rounds))
    print(json.dumps({"engine": str(SentenceEncoder(folder, dtype="auto").engine)}))
    return 0
