"""Gradients of models: equal to torch's, and to finite differences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wordpiece_bert.bert as bert
from random_models import random_model
from wordpiece_bert.bert import gradients as G  # noqa: N812
from wordpiece_bert.bert.functional import ACTIVATIONS
from wordpiece_bert.bert.inputs import check_inputs
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.finetune import value_and_grad
from wordpiece_bert.finetune.dropout import KeyedDropout
from wordpiece_bert.finetune.tokens import lay_out

DATA = Path(__file__).parent / "data" / "training"
META: dict[str, Any] = json.loads((DATA / "gradients" / "gradients.json").read_text())


def arrays(file: Path) -> dict[str, Any]:
    with np.load(file) as stored:
        return {name: stored[name] for name in stored.files}


def part(stored: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): array for name, array in stored.items() if name.startswith(prefix)}


def assert_gradients(found: Any, expected: dict[str, Any], vanishing: tuple[str, ...] = ()) -> None:
    """Gradients equal to 1e-5 of their size; those that should be 0 to 1e-6 of the largest."""
    own = dict(found.gradients, inputs_embeds=found.inputs_embeds)
    largest = max(float(np.abs(g).max()) for name, g in expected.items() if name != "inputs_embeds")
    for name, g in expected.items():
        if name not in own:  # a parameter that the loss does not depend on
            assert not g.any(), name
            continue
        limit = 1e-6 * largest if name in vanishing else 1e-5 * (float(np.abs(g).max()) + 0.05 * largest)
        assert own[name].shape == g.shape, name
        assert float(np.abs(own[name] - g).max()) <= limit, name
    assert own.keys() <= expected.keys() | {"inputs_embeds"}


CASES = [
    (name, case)
    for name in META
    for case in sorted({key.split(".")[0] for key in arrays(DATA / "gradients" / name / "reference.npz")})
]


@pytest.mark.parametrize("backend", ["numpy", "rust"])
@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize(("name", "case"), CASES)
def test_gradients_equal_those_of_torch(name: str, case: str, checkpointing: bool, backend: str) -> None:
    folder = DATA / "gradients" / name
    model = getattr(bert, META[name]["class"]).from_pretrained(folder, backend=backend)
    stored = arrays(folder / "reference.npz")
    found = value_and_grad(model, **part(stored, f"{case}.in."), gradient_checkpointing=checkpointing)
    assert found.loss == pytest.approx(float(stored[f"{case}.out.loss"]), abs=1e-5)
    assert_gradients(found, part(stored, f"{case}.grad."), tuple(META[name]["vanishing"]))


@pytest.mark.parametrize("backend", ["numpy", "rust"])
@pytest.mark.parametrize("name", ["seqcls_single", "token_cls", "pretraining"])
def test_gradients_with_given_dropout_masks_equal_those_of_torch(name: str, backend: str) -> None:
    folder = DATA / "dropout" / name
    config = json.loads((folder / "config.json").read_text())
    model = getattr(bert, config["architectures"][0]).from_pretrained(folder, backend=backend)
    stored = arrays(folder / "reference.npz")
    found = value_and_grad(model, **part(stored, "in."), dropout_masks=part(stored, "mask."))
    assert found.loss == pytest.approx(float(stored["out.loss"]), abs=1e-5)
    vanishing = tuple(n for n in found.gradients if n.endswith("attention.self.key.bias"))
    assert_gradients(found, part(stored, "grad."), vanishing)


@pytest.mark.parametrize("name", sorted(set(ACTIVATIONS)))
def test_activations_against_central_differences(name: str) -> None:
    x = np.linspace(-6, 6, 401)
    x = x[np.abs(x) > 1e-2]  # not at the corner of relu
    step = 1e-4
    slope = (ACTIVATIONS[name](x + step) - ACTIVATIONS[name](x - step)) / (2 * step)
    assert np.abs(G.activation_backward(np.ones_like(x), x, name) - slope).max() < 1e-4


def small_model(**settings_: Any) -> Any:
    """A model of two layers with other sizes than the reference, drawn."""
    config = bert.BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=32,
        id2label={0: "a", 1: "b", 2: "c"},
        **settings_,
    )
    return random_model(bert.BertForTokenClassification, config, "numpy")


def keyed(seed: int = 1, step: int = 0, micro: int = 0, rate: float = 0.3, site: str = "layer.0.output") -> Any:
    ids = np.ones((8, 12), np.int64)
    config = small_model().config
    inputs = check_inputs(config, ids, None, None, None, None)
    tokens = lay_out(inputs, np.zeros((8, 12), np.bool_))
    return KeyedDropout(seed, step, micro).tokens(site, tokens, 64, rate)


def test_keyed_dropout_is_a_function_of_its_key() -> None:
    assert np.array_equal(keyed(), keyed())
    for other in ({"seed": 2}, {"step": 1}, {"micro": 1}, {"site": "layer.1.output"}, {"site": "embeddings"}):
        assert not np.array_equal(keyed(), keyed(**other)), other
    assert keyed(rate=0.0) is None


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_keyed_dropout_keeps_its_share_and_its_mean(rate: float) -> None:
    mask = keyed(rate=rate)
    kept = mask > 0
    sigma = (rate * (1 - rate) / mask.size) ** 0.5
    assert abs(kept.mean() - (1 - rate)) < 4 * sigma
    assert np.allclose(mask[kept], 1 / (1 - rate))


def test_keyed_dropout_does_not_depend_on_padding() -> None:
    config = small_model().config
    short = lay_out(check_inputs(config, [[5, 6, 7]], None, None, None, None), np.zeros((1, 3), np.bool_))
    left = check_inputs(config, [[0, 0, 5, 6, 7]], [[0, 0, 1, 1, 1]], None, None, None)
    long = lay_out(left, np.zeros((1, 5), np.bool_))
    for dropout in (KeyedDropout(7, 3), KeyedDropout(7, 3, 1)):
        a = dropout.tokens("embeddings", short, 16, 0.4)
        b = dropout.tokens("embeddings", long, 16, 0.4)
        assert a is not None
        assert b is not None
        assert np.array_equal(a, b)
        p, q = (
            dropout.attention("layer.1.attention_probs", rows, 0, rows.queries(0), rows.keys(0), 2, 0.4)
            for rows in (short, long)
        )
        assert p is not None
        assert q is not None
        assert np.array_equal(p, q)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"labels": [[1, 5, 0]]}, InputError, "5"),
        ({"labels": [[0.5, 1.0, 0.0]]}, InputError, "integers"),
        ({"labels": [[-100, -100, -100]]}, InputError, "all 3 labels of the batch are ignored"),
        ({}, InputError, "needs labels"),
        ({"labels": [[1, 1, 1]], "next_sentence_label": [0]}, InputError, "takes no next_sentence_label"),
        ({"labels": [[1, 1]]}, InputError, "labels"),
        ({"labels": [[1, 1, 1]], "dropout_masks": {"embeddings": np.ones((1, 3, 5))}}, InputError, "has shape"),
    ],
)
def test_wrong_labels_are_refused(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        value_and_grad(small_model(), [[2, 7, 3]], **arguments)


def test_an_empty_batch_and_a_model_without_a_head_are_refused() -> None:
    with pytest.raises(InputError, match="no rows"):
        value_and_grad(small_model(), np.zeros((0, 3), np.int64), labels=np.zeros((0, 3), np.int64))
    with pytest.raises(InputError, match="BertModel has no head"):
        value_and_grad(small_model().base_model, [[2, 7, 3]], labels=[[1, 1, 1]])


@pytest.mark.parametrize("rate", [1.0, -0.1, float("nan"), "0.1", True])
def test_wrong_dropout_rates_are_refused(rate: Any) -> None:
    with pytest.raises(ConfigError, match="hidden_dropout_prob"):
        value_and_grad(small_model(hidden_dropout_prob=rate), [[2, 7, 3]], labels=[[1, 1, 1]])
