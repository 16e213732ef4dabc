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


def assert_equal(found: Any, expected: Any, tolerance: float = 3e-6) -> None:
    """Losses and gradients of `compute` agree; gradients relative to the largest of each, and of all."""
    assert found.loss == pytest.approx(expected.loss, abs=2e-6)
    assert found.gradients.keys() == expected.gradients.keys()
    largest = max(float(np.abs(g).max()) for g in expected.gradients.values())
    for name, g in expected.gradients.items():
        own = found.gradients[name]
        assert own.shape == g.shape
        assert own.dtype == np.float32
        # Those that vanish, such as that of a key bias, are noise beside the largest.
        limit = max(tolerance * (float(np.abs(g).max()) + 0.05 * largest), 1e-6 * largest)
        assert float(np.abs(own - g).max()) <= limit, name
    assert (found.de is None) == (expected.de is None)
    if found.de is not None:
        assert np.abs(found.de - expected.de).max() <= tolerance * max(1.0, float(np.abs(expected.de).max()))


def same_bits(a: Any, b: Any) -> bool:
    return a.loss == b.loss and all(np.array_equal(g, b.gradients[name]) for name, g in a.gradients.items())


def drawn(heads: int = 2, size: int = 8, layers: int = 2, **options: Any) -> tuple[Network, Any]:
    """A model for masked words, and its parameters, drawn."""
    kind = options.pop("kind", "Bert")
    if kind in ("DistilBert", "ModernBert"):
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
            deviation = 1.0 / math.sqrt(sizes[-1]) if config.norm_first and len(sizes) == 2 else 0.3
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
            assert_equal(found, expected, tolerance)


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
        assert_equal(found, expected, 1e-5)


SLIDING, FULL = "sliding_attention", "full_attention"
#: Configurations of ModernBERT: windows smaller and larger than a tile, or than a row; with biases and without.
MODERNBERT: dict[str, dict[str, Any]] = {
    "plain": {"local_attention": 8},
    "one key": {"local_attention": 1, "layer_types": (SLIDING, FULL, SLIDING)},
    "wide": {"local_attention": 129, "hidden_act": "silu", "layer_types": (SLIDING, SLIDING, FULL)},
    "biases": {
        "local_attention": 70,
        "hidden_act": "sigmoid",
        "tie_word_embeddings": False,
        **dict.fromkeys(("norm_bias", "attention_bias", "mlp_bias", "classifier_bias"), True),
    },
    "dropout": {
        "local_attention": 40,
        "embedding_dropout": 0.3,
        "attention_probs_dropout_prob": 0.2,
        "hidden_dropout_prob": 0.25,
    },
}
_V3 = {
    "hidden_act": "gelu",
    "type_vocab_size": 0,
    "relative_attention": True,
    "position_buckets": 16,
    "pos_att_type": ("p2c", "c2p"),
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
    "position_biased_input": False,
}
#: Configurations of DeBERTa: buckets, or a row of the table for each distance; terms of either kind; version 2 with its
#: convolution; and nothing relative.
DEBERTA: dict[str, dict[str, Any]] = {
    "v3": _V3,
    "v2": _V3 | {"conv_kernel_size": 3, "type_vocab_size": 2, "embedding_size": 12, "position_biased_input": True},
    "c2p": _V3 | {"pos_att_type": ("c2p",), "share_att_key": False, "norm_rel_ebd": "none", "position_buckets": 256},
    "p2c": _V3
    | {
        "pos_att_type": ("p2c",),
        "share_att_key": False,
        "position_buckets": -1,
        "conv_kernel_size": 5,
        "conv_act": "sigmoid",
    },
    "absolute": {"hidden_act": "silu"},
    "dropout": _V3
    | {"conv_kernel_size": 3, "conv_act": "gelu", "hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.3},
}
FAMILIES = {"ModernBert": MODERNBERT, "DebertaV2": DEBERTA}


@lru_cache(maxsize=1)
def of_a_family(kind: str, case: str, heads: int, size: int) -> Computed:
    network, parameters = drawn(heads, size, 3, kind=kind, **FAMILIES[kind][case])
    batches = []
    for lengths, left in (([1], False), ([3, 33, 14, 230, 85, 1], False), ([9, 140, 2], True)):
        batch = batch_of(lengths, left)
        batch = batch if network.config.type_vocab_size else without_types(batch)
        batch["attention_mask"][0, 1:3] = 0  # a hole, or padding that a window may see alone
        batch["attention_mask"][0, -1] = 1
        batches.append(batch)
    options = PassOptions(KeyedDropout(3, 4, 5)) if case == "dropout" else PassOptions()
    # In float64, since the errors of NumPy's float32 are larger than those of the kernels.
    exact = computed(network, {name: array.astype(np.float64) for name, array in parameters.items()}, batches, options)
    return exact._replace(parameters=parameters)


@pytest.mark.parametrize("instruction_set", SETS)
@pytest.mark.parametrize(("heads", "size"), [(2, 8), (3, 32), (1, 20)])
@pytest.mark.parametrize(("kind", "case"), [(kind, case) for kind, cases in FAMILIES.items() for case in cases])
def test_gradients_of_other_layers(kind: str, case: str, heads: int, size: int, instruction_set: str) -> None:
    of_a_family(kind, case, heads, size).assert_equal(RustTraining(instruction_set, threads=2), 1e-5)


@pytest.mark.parametrize("trained_from", [None, 0, 2, 3])
@pytest.mark.parametrize("kind", FAMILIES)
def test_other_layers_have_the_same_bits_for_any_number_of_threads_and_layers_below(
    kind: str, trained_from: int | None
) -> None:
    network, parameters = drawn(3, 32, 3, kind=kind, **FAMILIES[kind]["dropout"])
    batch = without_types(batch_of([60, 7, 128, 200, 31, 1, 90, 64, 64, 30]))
    options = PassOptions(KeyedDropout(4, 5), trained_from=trained_from)
    first = compute(network, parameters, batch, options, engine=RustTraining(threads=1))
    assert_equal(first, compute(network, parameters, batch, options), 1e-5)
    engine = RustTraining(threads=3)
    for checkpointing in (True, False):
        found = compute(
            network, parameters, batch, options._replace(gradient_checkpointing=checkpointing), engine=engine
        )
        assert same_bits(found, first)


@pytest.mark.parametrize("name", sorted(set(ACTIVATIONS)))
def test_gradients_of_every_activation(name: str) -> None:
    network, parameters = drawn(hidden_act=name)
    batch = batch_of([20, 9])
    expected = compute(network, parameters, batch)
    for instruction_set in SETS:
        assert_equal(compute(network, parameters, batch, engine=RustTraining(instruction_set)), expected, 1e-5)


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
    assert_equal(found, expected)
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


@pytest.mark.parametrize(
    ("kind", "options"), [("Bert", {}), ("ModernBert", {}), ("DebertaV2", DEBERTA["v3"] | {"conv_kernel_size": 3})]
)
@pytest.mark.parametrize("instruction_set", [*SETS, "amx-emulated"])
def test_gradients_in_bfloat16_point_the_same_way(instruction_set: str, kind: str, options: dict[str, Any]) -> None:
    """Each product rounds its factors to 8 bits; the direction of a gradient stays, and so do the bits."""
    network, parameters = drawn(3, 32, kind=kind, **options)
    batch = batch_of([9, 33, 30, 64])
    exact = compute(network, parameters, batch)
    found = compute(network, parameters, batch, engine=RustTraining(instruction_set, 1, "bfloat16"))
    assert same_bits(compute(network, parameters, batch, engine=RustTraining(instruction_set, 3, "bfloat16")), found)
    assert found.loss == pytest.approx(exact.loss, rel=2e-2)
    largest = max(float(np.abs(g).max()) for g in exact.gradients.values())
    for name, g in exact.gradients.items():
        if float(np.abs(g).max()) > 1e-3 * largest:
            own = found.gradients[name]
            cosine = float((own * g).sum()) / float(np.linalg.norm(own) * np.linalg.norm(g))
            assert cosine > 0.99, (name, cosine)
