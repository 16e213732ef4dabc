"""The backward pass in the kernels: equal to that in NumPy, on every instruction set, for any number of threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wordpiece_bert as wb
import wordpiece_bert.bert as bert
from gradient_checks import same_bits
from random_models import random_model
from wordpiece_bert import _core
from wordpiece_bert.bert import gradients as G  # noqa: N812
from wordpiece_bert.finetune import Trainer, TrainingArguments
from wordpiece_bert.finetune.engines import NumpyTraining, RustTraining
from wordpiece_bert.finetune.gradient import compute
from wordpiece_bert.finetune.network import Network
from wordpiece_bert.finetune.passes import PassOptions

SETS = _core.kernel_instruction_sets()


def drawn(heads: int = 2, size: int = 8) -> tuple[Network, Any]:
    """A model for masked words, and its parameters, drawn."""
    sizes = {"hidden_size": heads * size, "num_attention_heads": heads, "intermediate_size": 40, "num_hidden_layers": 2}
    config = bert.BertConfig(vocab_size=60, max_position_embeddings=260, **sizes)
    network = Network(model := random_model(bert.BertForMaskedLM, config, "numpy"))
    return network, network.parameters(model)


def batch_of(lengths: list[int], left: bool = False, seed: int = 5) -> dict[str, Any]:
    """Rows of these lengths; the last label of each is on a masked place, which is computed but not attended to."""
    random = np.random.default_rng(seed)
    longest = max(lengths) + 1
    mask = np.arange(longest)[None, :] < np.array(lengths)[:, None]
    if left:
        mask = mask[:, ::-1]
    ids = np.where(mask, random.integers(1, 60, mask.shape), 0)
    labels = np.where(random.random(mask.shape) < 0.4, random.integers(0, 60, mask.shape), -100)
    labels[0, 0] = 7
    return {
        "input_ids": ids,
        "attention_mask": mask.astype(np.int64),
        "token_type_ids": random.integers(0, 2, mask.shape),
        "labels": labels,
    }


@pytest.mark.parametrize("bf16", [False, True])
def test_a_training_has_the_same_bits_on_any_number_of_threads(bf16: bool, tmp_path: Path) -> None:
    batches = [batch_of([40, 7, 90, 130, 25], seed=seed) for seed in range(6)]
    results = []
    for threads in (1, 2, 3):
        network, parameters = drawn(3, 32)
        model = network.model_class(network.config, parameters, backend="rust")
        wb.set_num_threads(threads)
        try:
            trainer = Trainer(model, TrainingArguments(tmp_path, max_steps=3, learning_rate=1e-3, bf16=bf16))
            for step in range(3):
                trainer.training_step(batches[2 * step : 2 * step + 2])
        finally:
            wb.set_num_threads(None)
        results.append({name: array.tobytes() for name, array in trainer.model.named_parameters()})
    assert results[0] == results[1] == results[2]


def test_a_forward_pass_without_a_backward_pass_does_not_disturb_another() -> None:
    network, parameters = drawn()
    engine, batch = RustTraining(), batch_of([5, 6])
    expected = compute(network, parameters, batch, engine=engine)
    from wordpiece_bert.bert.inputs import check_inputs
    from wordpiece_bert.finetune.network import Gradients
    from wordpiece_bert.finetune.tokens import lay_out

    def encode(batch: dict[str, Any]) -> Any:
        inputs = check_inputs(network.config, batch["input_ids"], batch["attention_mask"], None, None, None)
        tokens = lay_out(inputs, np.zeros(inputs.shape, np.bool_))
        return engine.encode(network, parameters, tokens, PassOptions())

    one, other = encode(batch), encode(batch_of([9, 3, 4], seed=2))
    ones, others = Gradients(), Gradients()
    one.backward(np.ones_like(one.x), ones)
    other.backward(np.ones_like(other.x), others)
    again = Gradients()
    encode(batch).backward(np.ones_like(one.x), again)
    assert all(np.array_equal(g, again[name]) for name, g in ones.items())
    assert same_bits(compute(network, parameters, batch, engine=engine), expected)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_gradients_of_a_dense_layer(data: st.DataObject) -> None:
    rows, inputs, outputs = (data.draw(st.integers(1, 150)) for _ in range(3))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    dy, x, weight = (
        random.standard_normal(shape).astype(np.float32)
        for shape in ((rows, outputs), (rows, inputs), (outputs, inputs))
    )
    engine = RustTraining(data.draw(st.sampled_from(SETS)), data.draw(st.integers(1, 3)))
    for own, expected in zip(engine.linear_backward(dy, x, weight), G.linear_backward(dy, x, weight), strict=True):
        assert np.abs(own - expected).max() <= 1e-4
    assert np.abs(engine.linear(x, weight, dy[0]) - NumpyTraining().linear(x, weight, dy[0])).max() <= 1e-4


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_cross_entropy(data: st.DataObject) -> None:
    rows, classes = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 200))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    logits = (data.draw(st.sampled_from([1.0, 30.0])) * random.standard_normal((rows, classes))).astype(np.float32)
    labels = random.integers(0, classes, rows)
    loss, expected = G.cross_entropy(logits.astype(np.float64), labels)
    engine = RustTraining(data.draw(st.sampled_from(SETS)), data.draw(st.integers(1, 3)))
    found, dlogits = engine.cross_entropy(logits, labels)
    assert found == pytest.approx(loss, rel=1e-6, abs=1e-6)
    assert np.abs(dlogits - expected).max() <= 1e-6
