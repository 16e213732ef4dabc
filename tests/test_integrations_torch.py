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
    with pytest.raises(InputError, match="item 1 has no 'b'; it has a"):
        pairs([{"a": "a", "b": "b"}, {"a": "a"}])
    with pytest.raises(InputError, match="1 of 2 items have a label: give each item one, or none"):
        collate([{"text": "a"}, {"text": "b", "label": 1}])
    with pytest.raises(InputError, match=r"item 0 must be a text or a mapping with 'text', not tuple: \('a', 1\)"):
        collate([("a", 1)])
    with pytest.raises(InputError, match="item 1 must be a mapping with input_ids, not list"):
        PaddingCollator(tok)([{"input_ids": [1]}, [1, 2]])  # type: ignore[list-item]


@pytest.mark.parametrize("side", ["right", "left"])
def test_labels_of_tokens_are_padded_with_the_ignored_label(side: str) -> None:
    tok = tokenizer().with_padding(padding_side=side)
    rows = [{**tok(text, return_tensors=None, padding=False)} for text in ("the cat", "a", "a b c d")]
    for row in rows:
        row["labels"] = list(range(len(row["input_ids"])))
    found = PaddingCollator(tok, pad_to_multiple_of=4, return_tensors="np")(rows)
    assert found["labels"].shape == found["input_ids"].shape == (3, 8)
    for row, labels, mask in zip(rows, found["labels"], found["attention_mask"], strict=True):
        assert labels[mask == 1].tolist() == row["labels"]
        assert set(labels[mask == 0].tolist()) <= {-100}
    targets = [[0.5, 0.9, 0.1, 1.0], [1.0, 0.0, 0.2, 0.3]]  # of a regression, as many as tokens
    some = PaddingCollator(tok, return_tensors="np")([{**rows[0], "labels": one} for one in targets])
    np.testing.assert_array_equal(some["labels"], targets)
    single = [{**row, "label_ids": 1} for row in rows]
    for row in single:
        del row["labels"]
    np.testing.assert_array_equal(PaddingCollator(tok, return_tensors="np")(single)["labels"], [1, 1, 1])


# --- with PyTorch: `make test-torch`


@pytest.fixture(scope="module")
def torch() -> Any:
    found = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
    found.set_num_threads(1)
    return found


def test_tensors_share_the_memory_of_arrays(torch: Any) -> None:
    tok = tokenizer()
    arrays = tok(list(TEXTS), padding=True)
    addresses = {name: array.ctypes.data for name, array in arrays.items()}
    tensors = arrays.convert_to_tensors("pt")
    assert {name: tensor.data_ptr() for name, tensor in tensors.items()} == addresses
    found = tok(list(TEXTS), padding=True, return_tensors="pt")
    expected = tok(list(TEXTS), padding=True)
    for name, array in expected.items():
        assert isinstance(found[name], torch.Tensor)
        assert found[name].dtype == torch.int64
        np.testing.assert_array_equal(found[name].numpy(), array)
        found[name] += 1  # a tensor of a read-only array would warn, and must not be written to
    vectors = torch.nn.functional.one_hot(tok("the cat", return_tensors="pt")["input_ids"])
    assert vectors.shape[:2] == (1, 4)


@pytest.mark.parametrize("start", [None, "fork", "spawn"])
def test_loaders_encode_in_their_workers(torch: Any, start: str | None) -> None:
    tok = tokenizer()
    texts = list(TEXTS) * 4
    options: dict[str, Any] = {} if start is None else {"num_workers": 2, "multiprocessing_context": start}
    loader = torch.utils.data.DataLoader(
        texts, batch_size=len(TEXTS), collate_fn=TextCollator(tok, max_length=8, pad_to_multiple_of=4), **options
    )
    expected = tok(list(TEXTS), padding=True, truncation=True, max_length=8, pad_to_multiple_of=4)
    batches = list(loader)
    assert len(batches) == 4
    for batch in batches:
        assert list(batch) == list(expected)
        for name, array in expected.items():
            assert batch[name].dtype == torch.int64
            np.testing.assert_array_equal(batch[name].numpy(), array)


@pytest.mark.parametrize("start", [None, "fork", "spawn"])
def test_loaders_pad_rows_in_their_workers(torch: Any, start: str | None) -> None:
    tok = tokenizer()
    rows = [{**tok(text, return_tensors=None), "label": index} for index, text in enumerate(TEXTS)]
    options: dict[str, Any] = {} if start is None else {"num_workers": 2, "multiprocessing_context": start}
    loader = torch.utils.data.DataLoader(rows, batch_size=4, collate_fn=PaddingCollator(tok), **options)
    batches = list(loader)
    for start_row, batch in zip(range(0, len(rows), 4), batches, strict=True):
        expected = tok(list(TEXTS[start_row : start_row + 4]), padding=True)
        np.testing.assert_array_equal(batch["input_ids"].numpy(), expected["input_ids"])
        assert batch["labels"].tolist() == list(range(start_row, start_row + 4))


def test_a_tokenizer_is_a_collator_of_transformers(torch: Any) -> None:
    """DataCollatorWithPadding needs a tokenizer's `pad`."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: make test-torch")
    tok = tokenizer()
    rows = [{**tok(text, return_tensors=None), "label": 1} for text in TEXTS[:3]]
    found = transformers.DataCollatorWithPadding(tok)(rows)
    np.testing.assert_array_equal(found["input_ids"].numpy(), tok(list(TEXTS[:3]), padding=True)["input_ids"])
    assert found["labels"].dtype == torch.int64
