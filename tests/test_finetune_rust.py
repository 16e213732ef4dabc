"""The backward pass in the kernels: equal to that in NumPy, on every instruction set, for any number of threads."""

from __future__ import annotations

import json
import math
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wordpiece_bert as wb
import wordpiece_bert.bert as bert
from gradient_checks import assert_gradients, assert_same_direction, same_bits
from wordpiece_bert import _core
from wordpiece_bert.bert import gradients as G  # noqa: N812
from wordpiece_bert.bert.functional import ACTIVATIONS
from wordpiece_bert.finetune import Trainer, TrainingArguments
from wordpiece_bert.finetune.dropout import KeyedDropout
from wordpiece_bert.finetune.engines import NumpyTraining, RustTraining
from wordpiece_bert.finetune.gradient import compute
from wordpiece_bert.finetune.network import Network
from wordpiece_bert.finetune.passes import PassOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

DATA = Path(__file__).parent / "data" / "training" / "gradients"
META: dict[str, Any] = json.loads((DATA / "gradients.json").read_text())

SETS = _core.kernel_instruction_sets()


def drawn(heads: int = 2, size: int = 8, layers: int = 2, **options: Any) -> tuple[Network, Any]:
    """A model for masked words, and its parameters, drawn."""
    kind = options.pop("kind", "Bert")
    if kind == "DistilBert":
        options |= {"type_vocab_size": 0}
    config = getattr(bert, f"{kind}Config")(
        vocab_size=60,
        hidden_size=heads * size,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=options.pop("intermediate_size", 40),
        max_position_embeddings=260,
        **options,
    )
    layout = getattr(bert, f"{kind}ForMaskedLM")._layout(config)
    shapes = {layout.prefix + name: shape for name, shape in layout.base.items()} | dict(layout.head)
    random = np.random.default_rng(11)
    weights = {}
    for name, shape in shapes.items():
        if name not in layout.tied or not config.tie_word_embeddings:
            sizes = [getattr(config, s) if isinstance(s, str) else s for s in shape]
            # Without norms after sub-layers, vectors and the errors of float32 would grow from layer to layer.
            deviation = 1.0 / math.sqrt(sizes[-1]) if config.plan().last is not None and len(sizes) == 2 else 0.3
            weights[name] = (deviation * random.standard_normal(sizes) + (name.endswith("norm.weight"))).astype(
                np.float32
            )
    model = getattr(bert, f"{kind}ForMaskedLM")(config, weights, backend="numpy")
    network = Network(model)
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


def without_types(batch: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in batch.items() if name != "token_type_ids"}


class Computed(NamedTuple):
    """A network, its parameters, and batches with what NumPy computes of them."""

    network: Network
    parameters: Any
    batches: list[tuple[dict[str, Any], PassOptions, Any]]

    def assert_equal(self, engine: RustTraining, tolerance: float) -> None:
        for batch, options, expected in self.batches:
            found = compute(self.network, self.parameters, batch, options, engine=engine)
            assert_gradients(found, expected, tolerance)


def computed(network: Network, parameters: Any, batches: Iterable[dict[str, Any]], options: PassOptions) -> Computed:
    results = [(batch, options, compute(network, parameters, batch, options)) for batch in batches]
    return Computed(network, parameters, results)


# What NumPy computes takes longer than what the kernels do: it is kept for the next instruction set.


@lru_cache(maxsize=1)
def of_a_stored_model(name: str) -> Computed:
    model = getattr(bert, META[name]["class"]).from_pretrained(DATA / name, backend="numpy")
    network = Network(model)
    with np.load(DATA / name / "reference.npz") as stored:
        case = sorted({key.split(".")[0] for key in stored.files})[0]
        batch = {key.split(".in.")[1]: stored[key] for key in stored.files if key.startswith(f"{case}.in.")}
    return computed(network, network.parameters(model), [batch], PassOptions())


@lru_cache(maxsize=1)
def with_dropout(heads: int, size: int) -> Computed:
    network, parameters = drawn(heads, size, hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.3)
    rows = (([1], False), ([3, 33, 14, 130, 85, 1], False), ([9, 40, 2], True))
    batches = [batch_of(lengths, left) for lengths, left in rows]
    return computed(network, parameters, batches, PassOptions(KeyedDropout(2**64 - 1, 7, 3)))


@pytest.mark.parametrize("instruction_set", SETS)
@pytest.mark.parametrize("name", sorted(META))
def test_gradients_of_every_model_equal_those_in_numpy(name: str, instruction_set: str) -> None:
    of_a_stored_model(name).assert_equal(RustTraining(instruction_set, threads=2), 3e-6)


@pytest.mark.parametrize("instruction_set", SETS)
@pytest.mark.parametrize(("heads", "size"), [(2, 8), (3, 32), (2, 64), (1, 20)])
def test_gradients_of_heads_of_every_width_with_dropout(heads: int, size: int, instruction_set: str) -> None:
    with_dropout(heads, size).assert_equal(RustTraining(instruction_set, threads=2), 1e-5)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("DistilBert", {}),
        ("Electra", {"embedding_size": 12}),
        ("Albert", {"embedding_size": 12, "num_hidden_groups": 2, "layers": 4}),
        ("MPNet", {}),
    ],
)
def test_gradients_of_variants_with_dropout(kind: str, options: dict[str, Any]) -> None:
    network, parameters = drawn(kind=kind, **options)
    batch = without_types(batch_of([5, 70, 33, 64]))
    dropout = KeyedDropout(1, 2, 3)
    expected = compute(network, parameters, batch, PassOptions(dropout))
    for instruction_set in SETS:
        found = compute(network, parameters, batch, PassOptions(dropout), engine=RustTraining(instruction_set))
        assert_gradients(found, expected, 1e-5)


@pytest.mark.parametrize("name", sorted(set(ACTIVATIONS)))
def test_gradients_of_every_activation(name: str) -> None:
    network, parameters = drawn(hidden_act=name)
    batch = batch_of([20, 9])
    expected = compute(network, parameters, batch)
    for instruction_set in SETS:
        assert_gradients(compute(network, parameters, batch, engine=RustTraining(instruction_set)), expected, 1e-5)


def test_bits_do_not_depend_on_threads_checkpointing_or_earlier_batches() -> None:
    network, parameters = drawn(3, 32, 3)
    dropout, batch = KeyedDropout(4, 5), batch_of([60, 7, 128, 200, 31, 1, 90, 64, 64, 30])
    first = compute(network, parameters, batch, PassOptions(dropout), engine=RustTraining(threads=1))
    engine = RustTraining(threads=3)
    for checkpointing in (False, True, False):
        compute(network, parameters, batch_of([50, 140], seed=9), PassOptions(dropout), engine=engine)
        found = compute(network, parameters, batch, PassOptions(dropout, checkpointing), engine=engine)
        assert same_bits(found, first)


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


@pytest.mark.parametrize("trained_from", [0, 1, 2])
def test_layers_below_the_lowest_trained_one_have_no_gradients(trained_from: int) -> None:
    network, parameters = drawn()
    batch, dropout = batch_of([12, 30]), KeyedDropout(1, 0)
    expected = compute(network, parameters, batch, PassOptions(dropout, trained_from=trained_from))
    found = compute(network, parameters, batch, PassOptions(dropout, trained_from=trained_from), engine=RustTraining())
    assert_gradients(found, expected)
    assert not any("embeddings.position" in name for name in found.gradients)


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


@pytest.mark.parametrize("instruction_set", [*SETS, "amx-emulated"])
def test_gradients_in_bfloat16_point_the_same_way(instruction_set: str) -> None:
    """Each product rounds its factors to 8 bits; the direction of a gradient stays, and so do the bits."""
    network, parameters = drawn(3, 32)
    batch = batch_of([9, 33, 30, 64])
    exact = compute(network, parameters, batch)
    found = compute(network, parameters, batch, engine=RustTraining(instruction_set, 1, "bfloat16"))
    assert same_bits(compute(network, parameters, batch, engine=RustTraining(instruction_set, 3, "bfloat16")), found)
    assert_same_direction(found, exact)
