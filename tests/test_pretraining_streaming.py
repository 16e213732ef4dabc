"""MDS is read by mosaicml-streaming, its own reader. Skipped if that or torch is not installed."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pretraining_folders import LABELS, tokenizer
from test_pretraining_reference import DATA
from wordpiece_bert.pretraining import (
    Masking,
    PretrainingDataset,
    build_examples,
    build_token_store,
)
from wordpiece_bert.pretraining.sinks import mds

pytest.importorskip("torch", reason="torch is not installed")
try:
    streaming: Any = importlib.import_module("streaming")
except (ImportError, RuntimeError) as error:  # RuntimeError: a torchvision of another torch
    pytest.skip(f"mosaicml-streaming cannot be imported: {error}", allow_module_level=True)

# Its own warnings, and the warnings of what it imports, are not errors of these tests.
pytestmark = pytest.mark.filterwarnings("ignore")

TOK = tokenizer()
FLAVOURS: list[dict[str, Any]] = [
    {"objective": "nsp"},
    {"objective": "sop", "masking": Masking(TOK, whole_words=True)},
    {"objective": "doc-sentences", "packing": 96},
    {"objective": "nsp", "packing": 96, "masking": Masking(TOK)},
]


@pytest.mark.parametrize("flavour", FLAVOURS, ids=lambda flavour: "-".join(sorted(flavour)) + flavour["objective"])
def test_samples_are_the_rows(flavour: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mds, "SHARD_BYTES", 4000)  # several shards
    store = build_token_store(TOK, DATA / "corpus.txt", tmp_path / "store")
    options = {"max_length": 48, "seed": 3, "dupe_factor": 2, **flavour}
    build_examples(store, tmp_path / "rows", TOK, **options)
    build_examples(store, tmp_path / "mds", TOK, format="mds", **options)
    rows = PretrainingDataset(tmp_path / "rows")
    label = LABELS.get(flavour["objective"])
    samples = streaming.LocalDataset(str(tmp_path / "mds"))
    assert len(samples) == len(rows)
    assert len(list((tmp_path / "mds").glob("*.mds"))) > 2
    for i in range(len(rows)):
        row, sample = rows[i], samples[i]
        names = ["input_ids", "token_type_ids", *(["labels"] if "masking" in flavour else [])]
        names += ["position_ids"] if "packing" in flavour else []
        for name in names:
            np.testing.assert_array_equal(sample[name], row[name], err_msg=name)
        if label is not None:
            np.testing.assert_array_equal(sample[label], row[label])


def test_a_streaming_data_set_yields_every_row_once(tmp_path: Path) -> None:
    store = build_token_store(TOK, DATA / "corpus.txt", tmp_path / "store")
    build_examples(store, tmp_path / "mds", TOK, format="mds", max_length=48)
    build_examples(store, tmp_path / "rows", TOK, max_length=48)
    rows = PretrainingDataset(tmp_path / "rows")
    streaming.base.util.clean_stale_shared_memory()
    found = streaming.StreamingDataset(local=str(tmp_path / "mds"), batch_size=1, shuffle=True, shuffle_seed=1)
    ids = sorted(sample["input_ids"].tolist() for sample in found)
    assert ids == sorted(rows[i]["input_ids"].tolist() for i in range(len(rows)))
