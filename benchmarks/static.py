"""The command `static`: static models compared with model2vec and sentence-transformers, on the same texts.

All load one folder: the tokenizer of MiniLM and a random table 30,522 × 256. Every engine runs in this process, in turns, and
the best of several rounds counts, as wall-clock time and as CPU time of all threads. A peer that is not installed is
skipped. Before anything is timed, vectors are compared.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import wordpiece_bert as wb
from benchmarks.turns import least
from wordpiece_bert.bert.checkpoint.safetensors import write_safetensors

WIDTH = 256
TEXTS = 20_000


def main(arguments: list[str]) -> int:
    """Run the command; return 1 if vectors differ."""
    options = options_of(arguments, argparse.ArgumentParser(prog="benchmarks static", description=__doc__), 5, TEXTS)
    os.environ["RAYON_NUM_THREADS"] = str(options.threads)
    with tempfile.TemporaryDirectory() as parent, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = make_model(Path(parent) / "static")
        texts = read_texts(options.corpora, options.texts, wb.Tokenizer.from_file(folder / "tokenizer.json"))
        return _compare(folder, texts, options.threads, options.rounds)


def options_of(arguments: list[str], parser: argparse.ArgumentParser, rounds: int, texts: int) -> argparse.Namespace:
    """Return the options of a command that has these numbers by default, and set the threads of tokenizers."""
    parser.add_argument("--corpora", type=Path, help="folder with tweets.txt (default: words of the vocabulary)")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--texts", type=int, default=texts)
    options = parser.parse_args(arguments)
    os.environ["TOKENIZERS_PARALLELISM"] = "false" if options.threads == 1 else "true"
    return options


def make_model(folder: Path) -> Path:
    """Write a model2vec folder with random vectors."""
    folder.mkdir()
    tokenizer = wb.Tokenizer.from_pretrained("minilm")
    tokenizer.save(folder / "tokenizer.json")
    table = np.random.default_rng(1).normal(size=(len(tokenizer.get_vocab()), WIDTH)).astype(np.float32)
    write_safetensors(folder / "model.safetensors", {"embeddings": table})
    (folder / "config.json").write_text(json.dumps({"model_type": "model2vec", "normalize": True}))
    modules = [{"idx": 0, "name": "0", "path": ".", "type": "sentence_transformers.models.StaticEmbedding"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    return folder


def read_texts(corpora: Path | None, count: int, tokenizer: wb.Tokenizer) -> list[str]:
    """Return tweets, repeated as often as necessary; without a corpus, random words of the vocabulary."""
    if corpora is not None:
        lines = (corpora / "tweets.txt").read_text(encoding="utf-8").splitlines()
        return [lines[i % len(lines)] for i in range(count)]
    words = [token for token in tokenizer.get_vocab() if token.isalpha()]
    random = np.random.default_rng(2)
    lengths = random.integers(5, 30, count)
    return [" ".join(words[i] for i in random.zipf(1.2, length) % len(words)) for length in lengths]


def contestants(folder: Path, texts: list[str], threads: int) -> dict[str, Callable[[], Any]]:
    """Return the calls that are timed, ours first, then the tokenizer alone, then the peers that are installed."""
    encoder = wb.SentenceEncoder(folder, threads=threads)
    tokenizer = encoder.tokenizer
    calls: dict[str, Callable[[], Any]] = {
        "ours": lambda: encoder.encode(texts),
        "ours, ids only": lambda: tokenizer.encode_batch(texts, truncation=False, padding=False, threads=threads),
    }
    for name, label in (("model2vec", "model2vec"), ("sentence_transformers", "sentence-transformers")):
        try:
            module = importlib.import_module(name)
        except ImportError:
            print(f"{label}: not installed")
            continue
        if name == "model2vec":
            static = module.StaticModel.from_pretrained(folder)
            calls[label] = lambda static=static: static.encode(texts, use_multiprocessing=threads > 1)
        else:
            importlib.import_module("torch").set_num_threads(threads)
            peer = module.SentenceTransformer(str(folder), device="cpu")
            calls[label] = lambda peer=peer: peer.encode(texts, batch_size=1024, normalize_embeddings=True)
    return calls


def _compare(folder: Path, texts: list[str], threads: int, rounds: int) -> int:
    calls = contestants(folder, texts, threads)
    ours = calls["ours"]()
    if "model2vec" in calls and np.abs(ours - calls["model2vec"]()).max() > 1e-5:
        print("the vectors differ from model2vec's")
        return 1
    best = least(calls, rounds)
    characters = sum(map(len, texts))
    print(f"\n{len(texts):,} texts, {characters:,} characters, table 30,522 × {WIDTH} float32, {threads} thread(s)\n")
    print("| | seconds | CPU seconds | texts/s | ours × |\n|---|--:|--:|--:|--:|")
    for label, (wall, cpu) in best.items():
        print(f"| {label} | {wall:.4f} | {cpu:.4f} | {len(texts) / wall:,.0f} | {wall / best['ours'][0]:.1f} |")
    return 0
