"""The command `latency`: one sentence, by length, threads and engine, each engine alone on the machine.

The threads of some engines wait busily for the next call, so an engine is measured in a process of its own, without
others beside it. The least of many calls counts. How long a number takes from one core to the other, on which two threads
depend, is measured before and after each engine: on some virtual machines it changes by the minute. What is not arithmetic
is measured for this package: the time of `SentenceEncoder.encode` beyond the encoder's pass over the same ids.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
from functools import cache, partial
from pathlib import Path

from benchmarks import contests, report
from benchmarks.contests import Contest, Entry, Timing
from benchmarks.model_data import CALIBRATION, ids_of, paragraphs
from benchmarks.turns import least
from wordpiece_bert import SentenceEncoder
from wordpiece_bert.hub import find_model
from wordpiece_bert.sentence.dense.body import Call
from wordpiece_bert.sentence.dense.parts import transformer_of

LENGTHS = (8, 16, 32, 64, 128, 256)


@cache
def core_distance_program() -> Path:
    """Compile what measures the distance of two cores."""
    program = contests.BUILD / "core_distance"
    program.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-O2", "-pthread", Path(__file__).with_name("core_distance.c"), "-o", program], check=True)
    return program


def core_distance() -> str:
    """Return the nanoseconds from the first core of this process to the second; "" where they cannot be measured."""
    cores = sorted(os.sched_getaffinity(0))[:2] if hasattr(os, "sched_getaffinity") else []
    if shutil.which("cc") is None or len(cores) < 2:
        return ""
    command = [core_distance_program(), *map(str, cores)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def row_of(tokens: int) -> list[int]:
    """Return ids of the usual vocabulary: [CLS], words, [SEP]."""
    return [101, *(1996 + 7 * i for i in range(tokens - 2)), 102]


def of_engines(
    folder: Path, entries: list[Entry], threads: int, budget: float, options: argparse.Namespace
) -> tuple[str, dict[str, list[float]], dict[str, list[str]]]:
    """Measure each engine alone; return a table for one row of each length, the seconds, and the distances of the cores."""
    found: dict[str, list[Timing]] = {}
    distances: dict[str, list[str]] = {}
    notes = []
    texts = paragraphs(options.corpora and options.corpora / "wiki_en.txt", CALIBRATION)
    calibration = ids_of(folder, texts)
    for entry in entries:
        with Contest(folder, threads, [entry], calibration, options.torch) as contest:
            notes += [f"- {label}: not measured: {note}" for label, note in contest.notes.items()]
            if contest.engines:
                contest.rows([row_of(length) for length in LENGTHS])
                before = core_distance()
                found[entry.label] = [
                    contest.time([[place]], 2, calls=10_000, limit=budget)[entry.label] for place in range(len(LENGTHS))
                ]
                distances[entry.label] = [before, core_distance()]
    cells = [
        [label, *(f"{1e3 * t.seconds:.2f}" for t in times), " to ".join(filter(None, distances[label]))]
        for label, times in found.items()
    ]
    for entry in entries:
        able = [one.label for one in entries if one.dtype == entry.dtype and not one.ours and one.label in found]
        if able and entry.ours and entry.label in found:
            best = [min(times) for times in zip(*([t.seconds for t in found[label]] for label in able), strict=True)]
            shares = [t.seconds / least for t, least in zip(found[entry.label], best, strict=True)]
            what = f"{entry.label} ÷ the fastest other {entry.dtype}"
            cells.append([what, *(f"{share:.2f}" for share in shares), ""])
    title = f"## One sentence, {threads} thread{'s' * (threads != 1)}, milliseconds by tokens"
    text = "\n".join([title, "", *report.markdown(["", *map(str, LENGTHS), "ns between cores"], cells), "", *notes, ""])
    return text, {label: [t.seconds for t in times] for label, times in found.items()}, distances


def parts_of_a_call(folder: Path, dtype: str, threads: int, calls: int) -> list[list[str]]:
    """Measure a call of this package, its tokenizer, its encoder, and the rest, in milliseconds."""
    encoder = SentenceEncoder(folder, dtype=dtype, threads=threads)
    body = transformer_of(encoder)
    tokenize = partial(body.rows, call=Call(max_seq_length=encoder.max_seq_length))
    cells = []
    for length in LENGTHS:
        text = " ".join(["the"] * (length - 2))
        rows = tokenize([text])
        assert rows.lengths.tolist() == [min(length, encoder.max_seq_length)]
        few = max(calls * LENGTHS[0] // length, 5)
        run = partial(body.model._encoder.pooled, rows.ids, rows.row_offsets, ["mean"], 0, threads)
        parts = {"whole": partial(encoder.encode, text), "products": run, "tokenizer": partial(tokenize, [text])}
        whole, products, tokenizer = (1e3 * seconds for seconds, _ in least(parts, few).values())
        times = [whole, products, tokenizer, whole - products - tokenizer]
        cells.append([dtype, str(threads), str(length), *(f"{time:.3f}" for time in times)])
    return cells


def main(arguments: list[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="benchmarks latency", description=__doc__)
    parser.add_argument(
        "--corpora", type=Path, help="folder with wiki_en.txt, for ranges of int8 (default: random texts)"
    )
    parser.add_argument("--model", default="minilm", help="name or folder of the model (default: minilm)")
    engines = tuple(contests.PROGRAMS)
    parser.add_argument(
        "--engines", nargs="+", choices=engines, default=engines, help="compare only with these engines"
    )
    parser.add_argument(
        "--torch", type=Path, help="a Python that has torch and transformers, instead of installing them"
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads (default: 1 2)")
    parser.add_argument("--quick", action="store_true", help="fewer calls, to check that the benchmark works")
    parser.add_argument("--record", type=Path, nargs="?", const=report.RECORDS)
    options = parser.parse_args(arguments)
    folder = find_model(options.model)
    entries = [entry for entry in (*contests.OURS, *contests.THEIRS) if entry.ours or entry.engine in options.engines]
    lines = [report.heading("One sentence", "ids of one row of each length")]
    lines.append(f"dtype=auto: {SentenceEncoder(folder, dtype='auto').engine}\n")
    print(*lines, sep="\n", flush=True)
    found, distances, budget = {}, {}, 0.01 if options.quick else 0.5
    for threads in options.threads:
        part, found[threads], distances[threads] = of_engines(folder, entries, threads, budget, options)
        lines.append(part)
        print(part, flush=True)
    calls = 5 if options.quick else 1000
    parts = [
        cells
        for threads in options.threads
        for dtype in ("float32", "bfloat16", "int8")
        for cells in parts_of_a_call(folder, dtype, threads, calls)
    ]
    header = ["dtype", "threads", "tokens", "encode", "its products", "its tokenizer", "the rest"]
    lines.append("\n".join(["## Parts of a call, milliseconds", "", *report.markdown(header, parts), ""]))
    print(lines[-1])
    if options.record:
        content = {
            "lengths": LENGTHS,
            "seconds": found,
            "nanoseconds between cores": distances,
            "parts": [dict(zip(header, one, strict=True)) for one in parts],
        }
        print(report.save("latency", "\n".join(lines), content, options.record))
    return 0
