"""Tokenizers, models and attention weights for tests of `wordpiece_bert.inspect`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import tiny_models
import wordpiece_bert as wb
from wordpiece_bert import tasks
from wordpiece_bert.bert.functional import softmax

if TYPE_CHECKING:
    from pathlib import Path

    from wordpiece_bert.tasks import Loaded


VOCAB = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "un",
    "##afford",
    "##able",
    "caf",
    "##e",
    "cafe",
    "the",
    ",",
    "漢",
]


@pytest.fixture(scope="module")
def tok() -> wb.Tokenizer:
    return wb.Tokenizer.from_vocab(VOCAB)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    tiny_models.make_all(folder)
    return folder


@pytest.fixture(scope="module")
def reviews(folders: Path) -> Loaded:
    return tasks.load(folders / "reviews")


@pytest.fixture(scope="module")
def blanks(folders: Path) -> Loaded:
    return tasks.load(folders / "words")


def some_attention(length: int = 7, layers: int = 2, heads: int = 3, seed: int = 0) -> np.ndarray:
    scores = np.random.default_rng(seed).normal(size=(layers, heads, length, length)) * 3
    return softmax(scores.astype(np.float32))
