"""Batches of every kind of head, and the comparison of gradients: with central differences, and of two engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from random_models import LossOnly
from wordpiece_bert.finetune.dropout import KeyedDropout
from wordpiece_bert.finetune.gradient import compute
from wordpiece_bert.finetune.network import Network
from wordpiece_bert.finetune.passes import PassOptions

__all__ = [
    "LENGTH",
    "ROWS",
    "SIZES",
    "THREE",
    "VOCABULARY",
    "assert_gradients",
    "assert_same_direction",
    "batch_of",
    "check_gradients",
    "same_bits",
]

ROWS, LENGTH, VOCABULARY = 4, 11, 40
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 10,
    "pad_token_id": 0,
}
THREE = {0: "a", 1: "b", 2: "c"}


def batch_of(
    head: str, random: Any, lengths: tuple[int, ...] | None = None, longest: int = LENGTH, labels: str = ""
) -> dict[str, Any]:
    """Rows that are padded on the right and on the left, or have holes, and labels for a head."""
    if lengths is None:
        mask = np.ones((ROWS, LENGTH), np.int64)
        mask[1, 5:] = mask[2, :4] = mask[3, [2, 3, 7]] = 0
    else:
        mask = (np.arange(longest) < np.array(lengths)[:, None]).astype(np.int64)
        mask[-1] = mask[-1, ::-1]  # padding on the left
        mask[1, 2:5] = 0
    ids = np.where(mask > 0, random.integers(1, VOCABULARY, mask.shape), 0)
    ids[0, 3 if mask[0, 3] else 0] = 0  # the id of padding at a visible place
    rows = len(mask)
    batch = {"input_ids": ids, "attention_mask": mask}
    if head == "MultipleChoice":
        batch = {name: array.reshape(rows // 2, 2, -1) for name, array in batch.items()}
        return batch | {"labels": random.integers(0, 2, rows // 2)}
    if head == "QuestionAnswering":
        return batch | {"start_positions": np.array([1, 0, 5, LENGTH]), "end_positions": np.array([2, 3, 9, 1])}
    if head == "NextSentencePrediction":
        return batch | {"labels": random.integers(0, 2, rows)}
    if head == "SequenceClassification":
        return batch | {"labels": random.random((rows, 3)) if labels else random.integers(0, 3, rows)}
    count = 3 if head == "TokenClassification" else VOCABULARY
    # Places that are masked may have labels: their vectors are computed, but nothing attends to them.
    words = np.where(random.random(mask.shape) < 0.5, random.integers(0, count, mask.shape), -100)
    more = {"next_sentence_label": random.integers(0, 2, rows)} if head == "PreTraining" else {}
    return batch | {"labels": words} | more


def check_gradients(
    model: Any, batch: dict[str, Any], dropout: KeyedDropout | None = None, part: slice = slice(None)
) -> None:
    """The gradient of every parameter, or of a part of them, agrees with central differences in float64."""
    network = Network(model)
    parameters: Any = {name: array.astype(np.float64) for name, array in model.named_parameters()}
    found = compute(network, parameters, batch, PassOptions(dropout))
    again = compute(network, parameters, batch, PassOptions(dropout, gradient_checkpointing=True))
    assert found.loss == again.loss
    assert found.gradients.keys() == parameters.keys()
    fixed = {network.name(f"{table.name}.weight"): table for table in network.plan.embeddings.tables}
    scores_words = type(model).__name__.endswith(("MaskedLM", "PreTraining"))
    random = np.random.default_rng(2)
    for name, gradient in found.gradients.items():
        np.testing.assert_array_equal(gradient, again.gradients[name])
        assert gradient.shape == parameters[name].shape, name
    for name, gradient in list(found.gradients.items())[part]:
        direction = random.standard_normal(gradient.shape)
        table = fixed.get(name)
        if table is not None and table.fixed is not None:
            direction[table.fixed] = 0  # the lookup of padding adds nothing, a tied decoder does
            if not (scores_words and table.reads == "ids"):
                assert not gradient[table.fixed].any(), "the row of padding is not trained"
        moved = [parameters | {name: parameters[name] + sign * 1e-5 * direction} for sign in (1, -1)]
        losses = [compute(network, one, batch, PassOptions(dropout), engine=LossOnly()).loss for one in moved]
        expected = (losses[0] - losses[1]) / 2e-5
        assert (gradient * direction).sum() == pytest.approx(expected, rel=1e-4, abs=1e-6), name


def assert_gradients(found: Any, expected: Any, tolerance: float = 3e-6) -> None:
    """Losses and gradients of `compute` agree; gradients relative to the largest of each, and of all."""
    assert found.loss == pytest.approx(expected.loss, abs=2e-6)
    assert found.gradients.keys() == expected.gradients.keys()
    largest = max(float(np.abs(g).max()) for g in expected.gradients.values())
    for name, g in expected.gradients.items():
        own = found.gradients[name]
        assert own.shape == g.shape
        assert own.dtype == np.float32
        # Gradients that vanish, such as the gradient of a key bias, are noise beside the largest.
        limit = max(tolerance * (float(np.abs(g).max()) + 0.05 * largest), 1e-6 * largest)
        assert float(np.abs(own - g).max()) <= limit, name
    assert (found.de is None) == (expected.de is None)
    if found.de is not None:
        assert np.abs(found.de - expected.de).max() <= tolerance * max(1.0, float(np.abs(expected.de).max()))


def assert_same_direction(found: Any, expected: Any, least: float = 0.99) -> None:
    """Losses and gradients of products of rounded numbers: each gradient that does not vanish has its direction."""
    assert found.loss == pytest.approx(expected.loss, rel=2e-2)
    largest = max(float(np.abs(g).max()) for g in expected.gradients.values())
    for name, g in expected.gradients.items():
        if float(np.abs(g).max()) > 1e-3 * largest:
            own = found.gradients[name]
            cosine = float((own * g).sum()) / float(np.linalg.norm(own) * np.linalg.norm(g))
            assert cosine > least, (name, cosine)


def same_bits(a: Any, b: Any) -> bool:
    """Return whether losses and gradients are equal to the last bit."""
    same = all(np.array_equal(g, b.gradients[name]) for name, g in a.gradients.items())
    return bool(a.loss == b.loss and a.gradients.keys() == b.gradients.keys() and same)
