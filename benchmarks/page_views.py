"""The views that the command `pages` measures: each of them at 512 tokens, twelve layers and twelve heads of a layer.

Run with the name of a view, the number of tokens and the path of a page, it writes the page, and prints the seconds and
the memory that this took: a process makes one page, so that the peak is its own.
"""

from __future__ import annotations

import csv
import functools
import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.engines.model_worker import peak, restart_peak
from wordpiece_bert import Tokenizer, inspect, tasks
from wordpiece_bert.bert import BertForMaskedLM
from wordpiece_bert.bert.parts import layout_of
from wordpiece_bert.hub import find_model
from wordpiece_bert.inspect import Trace, View
from wordpiece_bert.inspect.trace import encoder_of, stored_weight

LAYERS = 12


@functools.cache
def source() -> tasks.Loaded:
    """Return a model of MiniLM-L12's shape: the six layers of MiniLM, twice, and a language head of random weights."""
    minilm = tasks.load(find_model("minilm"))
    encoder = encoder_of(minilm.model)
    config = replace(encoder.config, num_hidden_layers=LAYERS)
    layout = layout_of(BertForMaskedLM, config)
    there = encoder.config.num_hidden_layers
    weights = {
        layout.prefix + name: stored_weight(
            encoder, re.sub(r"layer\.(\d+)\.", lambda at: f"layer.{int(at[1]) % there}.", name)
        )
        for name in layout.base
    }
    random = np.random.default_rng(0)
    for name, sizes in layout.head.items():
        if name not in layout.tied:
            shape = [getattr(config, size) if isinstance(size, str) else size for size in sizes]
            weights[name] = random.standard_normal(shape, np.float32) * np.float32(0.02)
            weights[name] += "LayerNorm.weight" in name
    return tasks.Loaded(BertForMaskedLM(config, weights), minilm.tokenizer)


def text(number: int = 0) -> str:
    """Return a text of more words than a row has tokens."""
    return " ".join(((Tokenizer.__doc__, csv.__doc__)[number] or "").split() * 20)


@functools.cache
def trace(tokens: int, number: int = 0) -> Trace:
    """Trace one of the two texts."""
    return inspect.trace(source(), text(number), max_length=tokens)


def _traces(tokens: int) -> None:
    trace(tokens), trace(tokens, 1)


def _points(tokens: int) -> View:
    random = np.random.default_rng(1)
    names = [f"text {i}" for i in range(4 * tokens)]
    vectors = random.standard_normal((len(names), 384), np.float32)
    return inspect.embedding_map(vectors, names, groups=[f"group {i % 9}" for i in range(len(names))])


def _steps(tokens: int) -> View:
    words = " ".join(text().split()[: tokens // 2])
    return inspect.tokens(source().tokenizer, words)


def _tokenizers(tokens: int) -> View:
    ours = source().tokenizer
    other = Tokenizer.from_vocab(
        ["[UNK]", *"abcdefghijklmnopqrstuvwxyz", *(f"##{a}" for a in "abcdefghijklmnopqrstuvwxyz")]
    )
    return inspect.tokenizers(inspect.compare_tokenizers(ours, other, " ".join(text().split()[: tokens // 2])))


def _interventions(tokens: int) -> View:
    # Whole layers: single heads make a page of the same form, and the model runs once for each.
    found = inspect.intervene(source(), f"[MASK] {text()}", heads=range(LAYERS), max_length=tokens)
    return inspect.interventions(found)


#: By the kind of a view: what it needs before, of which the time does not count, the view itself, and its main click.
VIEWS: dict[str, tuple[Callable[[int], object], Callable[[int], View], str]] = {
    "attention": (trace, lambda n: inspect.attention(trace(n)), '[data-head="7.5"]'),
    "neurons": (trace, lambda n: inspect.neurons(trace(n)), '[aria-label="Head"] button:nth-child(6)'),
    "patterns": (trace, lambda n: inspect.patterns(trace(n)), '[aria-label^="Layer 7, head 5:"]'),
    "tokens": (lambda _: source(), _steps, '.chip[aria-label$=", position 9"]'),
    "tokenizers": (lambda _: source(), _tokenizers, '[data-group="9"]'),
    "predictions": (
        lambda _: source(),
        lambda n: inspect.predictions(source(), text(), max_length=n),
        '.strip [aria-label$=", position 9"]',
    ),
    "lens": (
        lambda _: source(),
        lambda n: inspect.logit_lens(source(), text(), max_length=n),
        "td:nth-child(9) button >> nth=3",
    ),
    "saliency": (
        lambda _: source(),
        lambda n: inspect.saliency(
            source(), text(), token=9, label="the", method="gradient", layers=True, max_length=n
        ),
        '.strip [aria-label$=", position 9"]',
    ),
    "interventions": (lambda _: source(), _interventions, '[data-set="7"]'),
    "comparison": (
        _traces,
        lambda n: inspect.comparison(inspect.compare(trace(n), trace(n, 1))),
        '[data-head="7.5"]',
    ),
    "similarity": (_traces, lambda n: inspect.token_similarity(trace(n), trace(n, 1)), "canvas.matrix"),
    "map": (lambda _: None, _points, ".texts button >> nth=9"),
    "positions": (lambda _: source(), lambda n: inspect.positions(source().model, most=n), "canvas.matrix >> nth=0"),
}


def main(kind: str, tokens: int, path: Path) -> None:
    """Write the page of a view, and print what it took as JSON."""
    before, view, _ = VIEWS[kind]
    before(tokens)
    resident, start = restart_peak(), time.perf_counter()
    view(tokens).save(path)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "resident": resident, "peak": peak(), "bytes": path.stat().st_size}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
