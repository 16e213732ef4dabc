"""Heads compute visible positions only: masked ones reach neither the layers nor the head, and results are the same."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from model_files import MODELS
from wordpiece_bert.bert import AutoModel
from wordpiece_bert.bert.engines.rust import PackedRustDense
from wordpiece_bert.bert.heads.head_model import HeadModel, LogitsModel

#: Masks of a batch of 4 rows: padding right, left, both, and holes.
MASK = np.zeros((4, 12), np.int64)
MASK[0, :7] = MASK[1, 5:] = MASK[2, 2:9] = MASK[3, ::3] = 1


def folders(kind: type[Any]) -> list[str]:
    """The folders of models of a kind."""
    found = []
    for config in sorted(MODELS.glob("*/config.json")):
        architectures = json.loads(config.read_text()).get("architectures") or []
        if "variant" in config.parent.name or not any("For" in name or "DPR" in name for name in architectures):
            continue
        if isinstance(AutoModel.from_pretrained(config.parent), kind):
            found.append(config.parent.name)
    return found


HEADS = folders(HeadModel)
LOGITS = folders(LogitsModel)


class Spy:
    """The kernels of an encoder, which note how many tokens they are given."""

    def __init__(self, kernels: Any) -> None:
        self.kernels, self.counts = kernels, list[int]()

    def forward(self, tokens: Any, *rest: Any) -> Any:
        self.counts.append(len(tokens.ids))
        return self.kernels.forward(tokens, *rest)


class HeadSpy:
    """A dense layer of a head, which notes how many rows it is given."""

    def __init__(self, layer: Any) -> None:
        self.layer, self.rows = layer, list[int]()

    def __call__(self, x: Any) -> Any:
        self.rows.append(int(np.prod(x.shape[:-1])))
        return self.layer(x)


def inputs(model: Any) -> Any:
    return np.random.default_rng(4).integers(5, model.config.vocab_size, MASK.shape)


def spied(model: Any) -> Spy:
    encoder = model.base_model._encoder
    encoder._kernels = Spy(encoder._kernels)
    spy: Spy = encoder._kernels
    return spy


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("folder", LOGITS)
def test_logits_without_masked_positions_have_the_same_bits(folder: str, dtype: str) -> None:
    model: Any = AutoModel.from_pretrained(MODELS / folder, dtype=dtype)
    ids = inputs(model)
    out = model(ids[:, None], MASK[:, None]) if "multiple_choice" in folder else model(ids, MASK)
    every = (
        np.stack([out.start_logits, out.end_logits], axis=-1)
        if "start_logits" in out.__dataclass_fields__
        else out.logits
    )
    spy = spied(model)
    layers = {name: HeadSpy(layer) for name, layer in vars(model).items() if isinstance(layer, PackedRustDense)}
    vars(model).update(layers)
    if hasattr(model, "_head"):
        model._head._decoder = layers["_decoder"] = HeadSpy(model._head._decoder)
    found = model.infer(ids, MASK)
    # The first position of a row is computed even if it is masked: some heads read it.
    assert spy.counts == [MASK.sum() + (MASK[:, 0] == 0).sum()]
    rows = [row for layer in layers.values() for row in layer.rows]
    assert rows
    if model._reads_tokens:
        assert set(rows) == {MASK.sum()}
        np.testing.assert_array_equal(found[MASK != 0], every[MASK != 0])
        np.testing.assert_array_equal(found[MASK == 0], 0)
        # Without a mask, and with one that hides nothing, nothing is left out.
        np.testing.assert_array_equal(model.infer(ids), model.infer(ids, np.ones_like(MASK)))
    else:
        assert set(rows) == {len(MASK)}
        np.testing.assert_array_equal(found, every.reshape(found.shape))


# The names that the families have for the word vectors; the second is NeoBERT's.
WORD_TABLES = ("word_embeddings.weight", "model.encoder.weight", "tok_embeddings.weight")


@pytest.mark.parametrize("folder", HEADS)
def test_poison_at_masked_positions_reaches_no_result(folder: str) -> None:
    """The word vector of id 3 is NaN, and masked positions have it: whatever computes them becomes NaN."""
    plain: Any = AutoModel.from_pretrained(MODELS / folder)
    weights = {name: weight.copy() for name, weight in plain.named_parameters()}
    poisoned: Any = None
    ids = inputs(plain)
    clean = ids.copy()
    clean[MASK == 0] = 4
    masked = np.where(MASK == 0, 3, ids)
    masked[:, 0] = clean[:, 0]
    table = next(name for name in weights if name.endswith(WORD_TABLES))
    weights[table][3] = np.nan
    poisoned = type(plain)(plain.config, weights)
    states = poisoned.base_model(masked, MASK, visible_only=True).last_hidden_state
    assert np.isfinite(states).all()
    if plain.config.model_type != "deberta-v2":  # whose embeddings of masked positions are zeros
        assert np.isnan(poisoned.base_model(masked, MASK).last_hidden_state).any()
    if not isinstance(plain, LogitsModel):
        return
    expected, found = plain.infer(clean, MASK), poisoned.infer(masked, MASK)
    if found.ndim == 3 and found.shape[2] == plain.config.vocab_size:
        expected, found = np.delete(expected, 3, axis=2), np.delete(found, 3, axis=2)  # the tied decoder has the NaN
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("folder", [folder for folder in HEADS if folder not in LOGITS or "multiple" in folder])
def test_heads_that_read_the_first_token_skip_masked_positions_in_every_call(folder: str) -> None:
    model: Any = AutoModel.from_pretrained(MODELS / folder)
    ids = inputs(model)
    given = (ids[:, None], MASK[:, None]) if "multiple_choice" in folder else (ids, MASK)
    exact = model(*given, output_hidden_states=True)
    spy = spied(model)
    found = model(*given)
    reads_first = "multiple" in folder or "encoder" in folder
    assert spy.counts == [MASK.sum() + (MASK[:, 0] == 0).sum() if reads_first else MASK.size]
    for name in ("logits", "pooler_output"):
        if getattr(exact, name, None) is not None:
            np.testing.assert_array_equal(getattr(found, name), getattr(exact, name))


@pytest.mark.parametrize("folder", [f for f in LOGITS if "seqcls" in f or "next_sentence" in f])
def test_a_call_of_a_classifier_skips_masked_positions_unless_they_are_returned(folder: str) -> None:
    model: Any = AutoModel.from_pretrained(MODELS / folder)
    ids = inputs(model)
    exact = model(ids, MASK, output_hidden_states=True)
    spy = spied(model)
    found = model(ids, MASK)
    assert spy.counts == [MASK.sum() + (MASK[:, 0] == 0).sum()]
    np.testing.assert_array_equal(found.logits, exact.logits)
    with_states = model(ids, MASK, output_hidden_states=True)
    assert spy.counts[1:] == [MASK.size]
    np.testing.assert_array_equal(np.stack(with_states.hidden_states), np.stack(exact.hidden_states))
