"""The command `sparse`: a SPLADE model compared with sentence-transformers' SparseEncoder, on the same texts.

The model has the size of MiniLM and random weights; the bias of its decoder leaves about as many values in a vector as
trained models do. Both engines run in this process, in turns, and the best of several rounds counts, as wall-clock time and
as CPU time of all threads. Before anything is timed, vectors are compared. If sentence-transformers is not installed, only
ours are timed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import wordpiece_bert as wb
from benchmarks.static import options_of, read_texts
from benchmarks.turns import least
from wordpiece_bert.bert import BertConfig, BertForMaskedLM
from wordpiece_bert.bert.checkpoint import bert_shapes

TEXTS = 512
LAYERS = 6
WIDTH = 384


def main(arguments: list[str]) -> int:
    """Run the command; return 1 if vectors differ."""
    parser = argparse.ArgumentParser(prog="benchmarks sparse", description=__doc__)
    parser.add_argument("--layers", type=int, default=LAYERS)
    options = options_of(arguments, parser, 3, TEXTS)
    with tempfile.TemporaryDirectory() as parent, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = make_model(Path(parent) / "splade", options.layers)
        texts = read_texts(options.corpora, options.texts, wb.Tokenizer.from_pretrained(folder))
        return _compare(folder, texts, options.threads, options.rounds)


def make_model(folder: Path, layers: int) -> Path:
    """Write a SPLADE folder with random weights."""
    tokenizer = wb.Tokenizer.from_pretrained("minilm")
    config = BertConfig.from_dict({
        "model_type": "bert",
        "vocab_size": len(tokenizer.get_vocab()),
        "hidden_size": WIDTH,
        "num_hidden_layers": layers,
        "num_attention_heads": 12,
        "intermediate_size": 4 * WIDTH,
        "max_position_embeddings": 256,
        "type_vocab_size": 2,
    })  # fmt: skip
    rng = np.random.default_rng(1)

    def draw(name: str, *shape: int) -> Any:
        if name.endswith("LayerNorm.weight"):
            return np.ones(shape, np.float32)
        return rng.normal(0, 0.04 if len(shape) == 2 else 0.01, shape).astype(np.float32)

    weights = {
        f"bert.{name}": draw(name, *(getattr(config, size) if isinstance(size, str) else size for size in shape))
        for name, shape in bert_shapes(config).items()
        if not name.startswith("pooler.")
    }
    head = "cls.predictions"
    weights[f"{head}.transform.dense.weight"] = draw("", WIDTH, WIDTH)
    weights[f"{head}.transform.dense.bias"] = draw("", WIDTH)
    weights[f"{head}.transform.LayerNorm.weight"] = np.ones(WIDTH, np.float32)
    weights[f"{head}.transform.LayerNorm.bias"] = np.zeros(WIDTH, np.float32)
    # A logit has the standard deviation 0.04·√384, and one of some thousands reaches 3.5 times that.
    weights[f"{head}.bias"] = np.full(config.vocab_size, -3.5 * 0.04 * WIDTH**0.5, np.float32)
    BertForMaskedLM(config, weights).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    kinds = ("base.modules.transformer.Transformer", "sparse_encoder.modules.splade_pooling.SpladePooling")
    modules = [
        {"idx": i, "name": str(i), "path": "" if i == 0 else "1_SpladePooling", "type": f"sentence_transformers.{kind}"}
        for i, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_SpladePooling").mkdir()
    pooling = {"pooling_strategy": "max", "activation_function": "relu", "embedding_dimension": None}
    (folder / "1_SpladePooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"transformer_task": "fill-mask"}))
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"model_type": "SparseEncoder"}))
    return folder


def contestants(folder: Path, texts: list[str], threads: int) -> dict[str, Callable[[], Any]]:
    """Return the calls that are timed, ours first."""
    calls: dict[str, Callable[[], Any]] = {}
    for dtype in ("float32", "bfloat16"):
        encoder = wb.SparseEncoder(folder, dtype=dtype, threads=threads)
        calls["ours" if dtype == "float32" else f"ours, {dtype}"] = lambda encoder=encoder: encoder.encode(texts)
    try:
        module = importlib.import_module("sentence_transformers")
    except ImportError:
        print("sentence-transformers: not installed")
        return calls
    importlib.import_module("torch").set_num_threads(threads)
    peer = module.SparseEncoder(str(folder), device="cpu")
    calls["sentence-transformers"] = lambda: peer.encode(texts, batch_size=32)
    return calls


def _compare(folder: Path, texts: list[str], threads: int, rounds: int) -> int:
    calls = contestants(folder, texts, threads)
    ours = calls["ours"]()
    if "sentence-transformers" in calls:
        theirs = calls["sentence-transformers"]().to_dense().numpy()
        if np.abs(ours.toarray() - theirs).max() > 1e-4:
            print("the vectors differ from sentence-transformers'")
            return 1
    best = least(calls, rounds)
    print(
        f"\n{len(texts):,} texts, {sum(map(len, texts)):,} characters, {len(ours.values) / len(texts):.0f} values a text, "
    )
    print(f"{threads} thread(s)\n\n| | seconds | CPU seconds | texts/s | ours × |\n|---|--:|--:|--:|--:|")
    for label, (wall, cpu) in best.items():
        print(f"| {label} | {wall:.3f} | {cpu:.3f} | {len(texts) / wall:,.0f} | {wall / best['ours'][0]:.2f} |")
    return 0
