"""Collators: rows and texts to padded batches; tensors need PyTorch and are checked where it is installed."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from small_tokenizer import TEXTS, tokenizer
from wordpiece_bert.errors import InputError
from wordpiece_bert.integrations.torch import PaddingCollator, TextCollator


def test_rows_are_padded() -> None:
    tok = tokenizer()
    rows = [{**tok(text, return_tensors=None), "label": index} for index, text in enumerate(TEXTS[:4])]
    collate = pickle.loads(pickle.dumps(PaddingCollator(tok, pad_to_multiple_of=8, return_tensors="np")))
    found = collate(rows)
    expected = tok(TEXTS[:4], padding=True, pad_to_multiple_of=8)
    assert list(found) == [*expected, "labels"]
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])
    np.testing.assert_array_equal(found["labels"], range(4))
    assert found["input_ids"].shape[1] % 8 == 0


def test_texts_are_encoded() -> None:
    tok = tokenizer()
    collate = pickle.loads(pickle.dumps(TextCollator(tok, max_length=6, return_tensors="np")))
    expected = tok(list(TEXTS), padding=True, truncation=True, max_length=6)
    for examples in (list(TEXTS), [{"text": text, "other": 1} for text in TEXTS]):
        found = collate(examples)
        assert list(found) == list(expected)
        np.testing.assert_array_equal(found["input_ids"], expected["input_ids"])
    pairs = TextCollator(tok, "a", "b", max_length=9, return_tensors="np")
    found = pairs([{"a": "the cat", "b": "sat", "label": 0.5}, {"a": "a", "b": "b", "label": 1.0}])
    np.testing.assert_array_equal(found["input_ids"], tok(["the cat", "a"], ["sat", "b"], padding=True)["input_ids"])
    np.testing.assert_array_equal(found["labels"], [0.5, 1.0])
    with pytest.raises(InputError, match="example 1 has no 'b'; it has a"):
        pairs([{"a": "a", "b": "b"}, {"a": "a"}])


def test_tensors_share_the_memory_of_arrays_and_loaders_have_workers() -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    tok = tokenizer()
    expected = tok(list(TEXTS), padding=True, truncation=True, max_length=6)
    for workers in (0, 2):
        loader = torch.utils.data.DataLoader(
            list(TEXTS), batch_size=8, collate_fn=TextCollator(tok, max_length=6), num_workers=workers
        )
        [batch] = loader
        assert batch["input_ids"].dtype == torch.int64
        np.testing.assert_array_equal(batch["input_ids"].numpy(), expected["input_ids"])
