"""The command `pretraining`: text to rows, and rows to masked batches, beside other programs.

Everything runs in one process pinned to one core, and contestants alternate. Seconds are CPU seconds, so that other
programs on the machine count less. transformers' collators get rows as lists of ids, as a data set gives them, and return
NumPy arrays; with torch installed, also tensors. Google's script needs TensorFlow 1: its figure in the report is one
measured elsewhere, and says so.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.process import cores
from benchmarks.texts import QUICK_BYTES, Source

MB = 1_000_000
BATCH = 32
MAX_LENGTH = 128
#: Google's script, dupe_factor 1, its writer left out; 6 MB of English Wikipedia on one core.
GOOGLE_MB_PER_SECOND = 0.29
#: name -> the goal: MB/s of text, million tokens a second, or times another contestant.
GOALS = {
    "text to next-sentence rows": 100.0,
    "batches, tokens": 30.0,
    "batches, whole words": 15.0,
}
COLLATOR_TIMES = 40.0


@dataclass
class Timing:
    """A contestant and its CPU seconds for some amount of work."""

    label: str
    amount: float
    seconds: list[float] = field(default_factory=list)
    note: str = ""

    @property
    def speed(self) -> float:
        """Amount a second, of the median pass."""
        return self.amount / statistics.median(self.seconds)


def main(arguments: list[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="benchmarks pretraining", description=__doc__)
    parser.add_argument("--corpora", type=Path, help="folder of corpora and vocabularies")
    parser.add_argument("--quick", action="store_true", help="one megabyte and few passes")
    parser.add_argument("--record", type=Path, nargs="?", const=report.RECORDS, help="save the results in this folder")
    options = parser.parse_args(arguments)
    os.sched_setaffinity(0, set(cores(1)))
    passes = 1 if options.quick else 5
    source = Source(options.corpora, QUICK_BYTES if options.quick else None)
    parts = [report.heading("Pre-training data", source.describe())]
    print(parts[0], flush=True)
    with tempfile.TemporaryDirectory(prefix="wordpiece-bench-") as name:
        work = Work(Path(name), source)
        groups = {
            "text to next-sentence rows": building(work, passes),
            "batches, tokens": batches(work, passes, whole_words=False),
            "batches, whole words": batches(work, passes, whole_words=True),
        }
    for title, timings in groups.items():
        parts.append(_table(title, timings))
        print(parts[-1], flush=True)
    parts.append("## Goals\n\n" + "\n".join(_goals(groups)) + "\n")
    print(parts[-1])
    if options.record:
        content = {title: [vars(timing) for timing in timings] for title, timings in groups.items()}
        print(report.save("pretraining", "\n".join(parts), content, options.record))
    return 0


class Work:
    """The corpus as documents of some ten lines, its tokenizer, its store and its rows."""

    def __init__(self, folder: Path, source: Source) -> None:
        import wordpiece_bert as wb
        from wordpiece_bert.pretraining import PretrainingDataset, build_examples, build_token_store

        self.folder = folder
        self.corpus = folder / "corpus.txt"
        lines = source.lines("english")
        with self.corpus.open("w", encoding="utf-8") as file:
            for start in range(0, len(lines), 10):
                file.write("\n".join(lines[start : start + 10]) + "\n\n")
        self.megabytes = self.corpus.stat().st_size / MB
        tokens, lowercase = source.vocabulary("uncased")
        self.vocab = folder / "vocab.txt"
        self.vocab.write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.tokenizer = wb.Tokenizer.from_vocab(self.vocab, lowercase=lowercase)
        store = build_token_store(self.tokenizer, self.corpus, folder / "tokens", threads=1, show_progress_bar=False)
        build_examples(
            store, folder / "rows", self.tokenizer, max_length=MAX_LENGTH, threads=1, show_progress_bar=False
        )
        self.rows = folder / "rows"
        self.dataset = PretrainingDataset(self.rows)
        self.order = self.dataset.order()


def _alternate(contestants: list[tuple[Timing, Callable[[], object]]], passes: int) -> list[Timing]:
    for _ in range(passes):
        for timing, run in contestants:
            start = time.process_time()
            run()
            timing.seconds.append(time.process_time() - start)
    return [timing for timing, _ in contestants]


def building(work: Work, passes: int) -> list[Timing]:
    """Time text to finished next-sentence rows: the store, and the rows of it."""
    from wordpiece_bert.pretraining import build_examples, build_token_store

    number = iter(range(1 << 30))

    def ours() -> None:
        folder = work.folder / f"built-{next(number)}"
        store = build_token_store(work.tokenizer, work.corpus, folder / "tokens", threads=1, show_progress_bar=False)
        build_examples(
            store, folder / "rows", work.tokenizer, max_length=MAX_LENGTH, threads=1, show_progress_bar=False
        )

    timings = _alternate([(Timing("ours", work.megabytes), ours)], passes)
    theirs = Timing("Google's create_pretraining_data.py", work.megabytes)
    theirs.seconds.append(work.megabytes / GOOGLE_MB_PER_SECOND)
    theirs.note = (
        "not run here, because it needs TensorFlow 1: the figure of an earlier run on 6 MB of English Wikipedia"
    )
    return [*timings, theirs]


def batches(work: Work, passes: int, *, whole_words: bool) -> list[Timing]:
    """Time masked and padded batches of 32 shuffled rows."""
    from wordpiece_bert.pretraining import Masking, PretrainingDataset

    masking = Masking(work.tokenizer, whole_words=whole_words)
    dataset = PretrainingDataset(work.rows, masking=masking)
    groups = [work.order[start : start + BATCH] for start in range(0, len(work.order), BATCH)]
    some = groups[:64]
    lists = [_features(work.dataset, rows, offsets=whole_words) for rows in some]
    tokens_of_some = float(sum(work.dataset.lengths[rows].sum() for rows in some)) / MB
    contestants: list[tuple[Timing, Callable[[], object]]] = [
        (Timing("ours", float(work.dataset.lengths.sum()) / MB), lambda: [dataset.batch(rows) for rows in groups])
    ]
    for label, collator in _collators(work, whole_words=whole_words):
        run = lambda collator=collator: [collator([dict(one) for one in rows]) for rows in lists]  # noqa: E731
        try:
            run()
        except (ImportError, ValueError, RuntimeError, TypeError) as error:
            contestants.append((Timing(label, 1.0, note=f"{error}".splitlines()[0]), lambda: None))
        else:
            contestants.append((Timing(label, tokens_of_some), run))
    return _alternate(contestants, passes)


def _collators(work: Work, *, whole_words: bool) -> list[tuple[str, Any]]:
    """Return transformers' collators with its own tokenizer of the same vocabulary."""
    try:
        import transformers
    except ImportError:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer = transformers.BertTokenizer(vocab=str(work.vocab))
        found = []
        for kind in ("np", "pt"):
            label = f"transformers {transformers.__version__}, {'NumPy' if kind == 'np' else 'torch'}"
            if kind == "pt" and not _has_torch():
                continue
            arguments = {"mlm_probability": 0.15, "return_tensors": kind}
            if whole_words:
                arguments["whole_word_mask"] = True
            found.append((label, transformers.DataCollatorForLanguageModeling(tokenizer, **arguments)))
    return found


def _has_torch() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.__version__)


def _features(dataset: Any, rows: np.ndarray, *, offsets: bool) -> list[dict[str, Any]]:
    """Return rows as a data set of transformers gives them: lists. With whole words, padded and with offsets."""
    batch = dataset.batch(rows)
    found = []
    for i in range(len(rows)):
        n = batch["input_ids"].shape[1] if offsets else int(batch["attention_mask"][i].sum())
        one = {name: batch[name][i, :n].tolist() for name in ("input_ids", "token_type_ids", "attention_mask")}
        if offsets:  # each token is a word of its own; how many there are does not change the work
            one["offset_mapping"] = [[3 * place, 3 * place + 2] for place in range(n)]
        found.append(one)
    return found


def _table(title: str, timings: list[Timing]) -> str:
    unit = "MB/s" if title.startswith("text") else "million tokens/s"
    ours = timings[0]
    cells = []
    for timing in timings:
        if timing.note and timing.amount == 1.0:
            continue
        spread = (max(timing.seconds) - min(timing.seconds)) / statistics.median(timing.seconds)
        ratio = "" if timing is ours else f"{ours.speed / timing.speed:.1f}"
        cells.append([timing.label, f"{timing.speed:.2f}", f"{spread:.0%}", ratio])
    lines = [f"### {title}", "", *report.markdown(["", unit, "spread", "ours ×"], cells)]
    lines += [f"- {timing.label}: {timing.note}" for timing in timings if timing.note]
    return "\n".join([*lines, ""])


def _goals(groups: dict[str, list[Timing]]) -> list[str]:
    lines = []
    for title, goal in GOALS.items():
        ours, *others = groups[title]
        reached = "reached" if ours.speed >= goal else "NOT reached"
        lines.append(f"- {title}: {ours.speed:.1f}, at least {goal:g}: {reached}")
        wanted = 300.0 if title.startswith("text") else COLLATOR_TIMES
        for other in others:
            if other.amount != 1.0:
                times = ours.speed / other.speed
                verdict = "reached" if times >= wanted else "NOT reached"
                lines.append(f"- {title}: {times:.0f}× {other.label}, at least {wanted:g}×: {verdict}")
    return lines
