"""The texts and models that the commands `models` and `latency` measure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from wordpiece_bert import Tokenizer
from wordpiece_bert.bert import BertConfig, BertModel
from wordpiece_bert.bert.checkpoint import bert_shapes
from wordpiece_bert.bert.parts import layout_of

#: Texts for ranges of int8 inputs, which are not measured.
CALIBRATION = 48


def flop(config: dict[str, Any], lengths: list[int]) -> float:
    """Return the number of floating-point operations of the encoder for rows of these lengths."""
    hidden, inner, layers = config["hidden_size"], config["intermediate_size"], config["num_hidden_layers"]
    kind = config.get("model_type")
    is_gated, is_disentangled = kind == "modernbert", kind == "deberta-v2"
    dense = 2 * (4 * hidden**2 + (3 if is_gated else 2) * hidden * inner)
    sliding = config.get("layer_types", []).count("sliding_attention")
    window = 2 * (config.get("local_attention", 0) // 2) + 1
    total = 0.0
    for n in lengths:
        keys = (layers - sliding) * n + sliding * min(n, window)
        # DeBERTa's queries and keys are multiplied by the rows of relative positions that a row of n tokens has.
        relative = 2 * layers * min(2 * n, 2 * config.get("position_buckets", 0)) if is_disentangled else 0
        total += n * (layers * dense + 4 * keys * hidden + 2 * relative * hidden)
    return total


def paragraphs(path: Path | None, count: int) -> list[str]:
    """Return every twentieth line of at least 40 characters; without a corpus, random ones of similar lengths."""
    if path is None:
        random = np.random.default_rng(1)
        words = [
            "the",
            "of",
            "and",
            "in",
            "a",
            "to",
            "was",
            "is",
            "for",
            "on",
            "as",
            "by",
            "with",
            "at",
            "from",
            "it",
            "an",
            "his",
            "that",
            "were",
            "be",
        ]
        return [" ".join(random.choice(words, int(n))) for n in np.clip(random.lognormal(4.3, 0.7, count), 8, 300)]
    found = []
    with path.open(encoding="utf-8") as lines:
        for i, line in enumerate(lines):
            if i % 20 == 0 and len(line.strip()) >= 40:
                found.append(line.strip())
            if len(found) == count:
                break
    return found


def ids_of(folder: Path, texts: list[str]) -> list[list[int]]:
    """Return the ids of texts, of which none has more than 256 tokens or the model's limit."""
    longest = min(256, read_config(folder)["max_position_embeddings"])
    tokenizer = Tokenizer.from_pretrained(folder)
    return tokenizer.encode_batch(texts, truncation=True, max_length=longest, padding=False).to_list()


def random_model(folder: Path, size: tuple[int, int, int, int], vocabulary: int) -> Path:
    """Write a model of this size with random weights, unless it exists."""
    if not (folder / "model.safetensors").exists():
        hidden, inner, heads, layers = size
        config = BertConfig(
            vocab_size=vocabulary,
            hidden_size=hidden,
            intermediate_size=inner,
            num_attention_heads=heads,
            num_hidden_layers=layers,
        )
        random, weights = np.random.default_rng(0), {}
        for name, sizes in bert_shapes(config).items():
            shape = [getattr(config, size) if isinstance(size, str) else size for size in sizes]
            weights[name] = random.standard_normal(shape, np.float32) * np.float32(0.02)
            if "LayerNorm.weight" in name:
                weights[name] += 1
        BertModel(config, weights, backend="numpy").save_pretrained(folder)
    return folder


def random_encoder(folder: Path, kind: type[BertModel], config: BertConfig) -> Path:
    """Write an encoder of any family with random weights, unless it exists."""
    if not (folder / "model.safetensors").exists():
        random, weights = np.random.default_rng(0), {}
        for name, sizes in layout_of(kind, config).base.items():
            shape = [getattr(config, size) if isinstance(size, str) else size for size in sizes]
            weights[name] = random.standard_normal(shape, np.float32) * np.float32(0.02)
            if len(shape) == 1 and name.endswith("weight"):
                weights[name] += 1
        kind(config, weights, backend="numpy").save_pretrained(folder)
    return folder


def random_rows(vocabulary: int, lengths: list[int]) -> list[list[int]]:
    """Return rows of random ids."""
    random = np.random.default_rng(1)
    return [random.integers(5, vocabulary, length).tolist() for length in lengths]


def read_config(folder: Path) -> dict[str, Any]:
    """Return a model's config.json."""
    config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return config
