"""Folders of sentence-transformers with its numbers, and encoders of them, for tests of `SentenceEncoder`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_files import MODELS, sentence_folder
from wordpiece_bert.sentence import SentenceEncoder

TOLERANCE = 1e-5  # absolute; what is reached is about 1e-6

LISTING = json.loads((MODELS / "sentence_reference.json").read_text(encoding="utf-8"))
REFERENCE = np.load(MODELS / "sentence_reference.npz")
FOLDERS = sorted(folder.name for folder in MODELS.glob("sentence_*") if (folder / "modules.json").is_file())
TEXTS: list[str] = LISTING["sentence_max"]["texts"]
LONG = "the " * 60


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    parent = tmp_path_factory.mktemp("sentence")
    return {name: sentence_folder(name, parent) for name in FOLDERS}


@pytest.fixture(scope="module")
def encoder(folders: dict[str, Path]) -> SentenceEncoder:
    return SentenceEncoder.from_pretrained(folders["sentence_max"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with Dense and Normalize that a test may change."""
    return sentence_folder("sentence_cls_dense_normalize", tmp_path)


def change(file: Path, **values: Any) -> None:
    content = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**content, **values}), encoding="utf-8")
