"""Plans of any parts: what follows from a plan holds for each, not for the families alone.

Shapes, a row alone and in a batch, NumPy and the kernels, gradients, saving and loading. That outputs equal other
programs' is tested for recorded models, in test_heads.py and test_engines.py.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradient_checks import THREE, assert_gradients, batch_of, check_gradients, same_bits
from kernel_paths import available, forced_path
from random_models import check_engines, random_model
from wordpiece_bert import _core
from wordpiece_bert.bert import AutoModel, BertConfig, BertModel
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.bert.family_table import FAMILIES, Family, Training, register
from wordpiece_bert.bert.functional import ACTIVATIONS
from wordpiece_bert.bert.heads.kinds import TokenClassification
from wordpiece_bert.bert.plan.building import attention, gated_mlp, layer_name, mlp, tables
from wordpiece_bert.bert.plan.parts import (
    Attention,
    Convolution,
    Dense,
    Distances,
    Embeddings,
    Mlp,
    Norm,
    Plan,
    Relative,
    Residual,
    Slopes,
    Table,
)
from wordpiece_bert.bert.rotary import Rotary
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.finetune.dropout import KeyedDropout
from wordpiece_bert.finetune.engines import NumpyTraining, RustTraining
from wordpiece_bert.finetune.gradient import compute
from wordpiece_bert.finetune.memory import needed_memory
from wordpiece_bert.finetune.network import Network
from wordpiece_bert.finetune.passes import PassOptions


@dataclass(frozen=True, kw_only=True)
class DrawnConfig(BertConfig):
    """A configuration whose fields say which parts the plan has."""

    model_type: str = "drawn"
    embedding_size: int = 12
    head_dim: int = 8
    #: Norms before the sub-layers, after them, or both; and what they compute.
    norms: str = "last"
    norm_kind: str = "layer"
    norm_bias: bool = True
    biases: bool = True
    gate: bool = False
    gate_dropout: bool = False
    #: Before or after the norm of the embeddings, or "" for no projection.
    projection: str = ""
    embedding_norm: bool = True
    position_table: bool = True
    masked: bool = False
    masked_residual: bool = False
    last: bool = False
    #: What scores know of positions: "", "slopes", "distances", "keys", "queries" or "both".
    scores: str = ""
    rotary: bool = False
    window: int = 0
    query_key_norms: bool = False
    again: bool = False
    masked_sees_all: bool = False
    #: Half the rows of the table of relative positions, and the distance from which on all have the last; 0 for none.
    buckets: int = 4
    longest: int = 40
    relative_norm: bool = True
    convolution: int = 0

    has_pooler: ClassVar[bool] = False
    _may_be_0: ClassVar[tuple[str, ...]] = ("type_vocab_size",)
    buckets_of_distances: ClassVar[int] = 32

    def _check_heads(self) -> None:
        """Accept queries of any width."""

    @property
    def head_size(self) -> int:
        return self.head_dim

    @property
    def has_position_table(self) -> bool:
        return self.position_table

    def _norm(self, name: str, size: str = "hidden_size") -> Norm:
        return Norm(name, self.layer_norm_eps, size, self.norm_bias and self.norm_kind == "layer", self.norm_kind)  # type: ignore[arg-type]

    def _plan(self) -> Plan:
        then: list[Norm | Dense] = []
        columns = "embedding_size" if self.projection else "hidden_size"
        if self.embedding_norm:
            then.append(self._norm("embeddings.LayerNorm", columns if self.projection == "after" else "hidden_size"))
        if self.projection:
            place = len(then) if self.projection == "after" else 0
            then.insert(place, Dense("embeddings.projection", columns, bias=self.biases))
        layers = tuple(self._layer(layer) for layer in range(self.num_hidden_layers))
        first = Embeddings(tables(self, columns), tuple(then), self.masked)
        return Plan(first, layers, self._norm("encoder.ln") if self.last else None)

    def _layer(self, layer: int) -> tuple[Residual, ...]:
        name = layer_name(layer)
        before = self.norms != "last"
        after = self.norms != "first"

        def residual(body: Attention | Mlp, place: str, **more: Any) -> Residual:
            first = self._norm(f"{name}.{place}before") if before else None
            return Residual(body, first, self._norm(f"{name}.{place}after") if after else None, **more)

        again = self._norm(f"{name}.again") if self.again else None
        feed = (
            gated_mlp(self, layer, output_bias=self.biases, dropout="hidden_dropout_prob" if self.gate_dropout else "")
            if self.gate
            else mlp(self, layer)
        )
        parts = (
            residual(self._attention(layer), "attention.", again=again, masked=self.masked_residual),
            residual(feed, ""),
        )
        if not self.convolution or layer:
            return parts
        body = Convolution("encoder.conv", self.convolution, 2, self.hidden_size // 2, "tanh")
        return *parts, Residual(body, after=self._norm("encoder.conv.norm"), dropout="", masked=True)

    def _attention(self, layer: int) -> Attention:
        name, heads = f"{layer_name(layer)}.attention", self.num_attention_heads
        norms = tuple(self._norm(f"{name}.{one}_norm", "attention_size") for one in ("query", "key"))
        bias: Any = {
            "slopes": Slopes(tuple(2.0 ** -(i + 1) for i in range(heads))),
            "distances": Distances(Table("encoder.bias", "buckets_of_distances", columns="num_attention_heads")),
        }
        relative = None
        if self.scores in ("keys", "queries", "both"):
            rows = Dense(f"{name}.relative", outputs="attention_size", bias=self.biases)
            relative = Relative(
                Table("encoder.relative", 2 * self.buckets),
                self._norm("encoder.relative_norm") if self.relative_norm else None,
                self.buckets,
                self.longest,
                None
                if self.scores == "queries"
                else Dense(f"{name}.self.key", outputs="attention_size", bias=self.biases),
                None if self.scores == "keys" else rows,
            )
        return attention(
            self,
            layer,
            size="attention_size",
            biases=self.biases,
            rotary=Rotary(self.head_dim, 100.0) if self.rotary else None,
            window=self.window if self.window and layer % 2 == 0 else None,
            norms=norms if self.query_key_norms else None,
            bias=bias.get(self.scores),
            relative=relative,
            terms=1 + (relative is not None) + (self.scores == "both"),
            masked_sees_all=relative is not None or self.masked_sees_all,
        )


class DrawnModel(BertModel):
    """The encoder of a drawn plan."""

    config_class = DrawnConfig


class DrawnForTokenClassification(TokenClassification):
    """A drawn plan with a head."""

    _base_model_class = DrawnModel


@pytest.fixture(scope="module", autouse=True)
def family() -> Iterator[None]:
    """The family of drawn plans."""
    entry = Family(
        model_type="drawn", module=__name__, name="Drawn", heads=("TokenClassification",), training=Training()
    )
    register(entry)
    yield
    del FAMILIES["drawn"]


@st.composite
def configs(
    draw: st.DrawFn, largest: int = 64, activations: Any = ("gelu", "silu", "sigmoid", "gelu_new")
) -> DrawnConfig:
    """A configuration of any parts that go together, drawn evenly: Hypothesis' own choices seldom have rare parts."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))

    def one(*values: Any) -> Any:
        return values[random.integers(len(values))]

    flags = ("biases", "gate", "gate_dropout", "position_table", "masked_residual", "last", "rotary", "norm_bias")
    scores = one("", "", "slopes", "distances", "keys", "queries", "both")
    relative = scores in ("keys", "queries", "both")
    sees_all = relative or (scores == "" and one(False, True))
    # A convolution reads the input of the first layer, of which masked tokens are 0.
    convolution = one(0, 0, 1, 3)
    projection = one("", "before", *([] if convolution else ["after"]))
    norms, masked, embedding_norm = one("first", "last", "both"), one(False, True), one(False, True)
    heads, size = one(1, 2, 3), one(*[size for size in (2, 6, 8, 32, 34, 64) if size <= largest])
    return DrawnConfig(
        vocab_size=40,
        hidden_size=one(*[8, 12, 32, 40][: 2 if largest < 32 else 4]),
        num_hidden_layers=one(1, 2, 3),
        num_attention_heads=heads,
        head_dim=size,
        intermediate_size=int(random.integers(1, largest + 1)),
        type_vocab_size=one(0, 1, 2),
        max_position_embeddings=150,
        hidden_act=one(*activations),
        layer_norm_eps=one(1e-5, 1e-3),
        hidden_dropout_prob=0.2,
        attention_probs_dropout_prob=0.3,
        embedding_size=one(5, 12, 33),
        norms=norms,
        norm_kind=one("layer", "rms"),
        scores=scores,
        window=0 if sees_all else one(0, 1, 4, 40, 100),
        # The norm of two numbers is 1 and -1 whatever they are: its gradient is noise.
        query_key_norms=one(False, True) and heads * size > 2,
        again=one(False, True) and norms != "first",
        masked_sees_all=sees_all,
        convolution=convolution,
        masked=masked or convolution > 0,
        embedding_norm=embedding_norm or convolution > 0,
        projection=projection,
        **one({"buckets": 2}, {"buckets": 8}, {"buckets": 64, "longest": 66}, {"buckets": 150, "longest": 0}),
        relative_norm=one(False, True),
        id2label=THREE,
        **{flag: one(False, True) for flag in flags},
    )


@given(config=configs(activations=sorted(ACTIVATIONS)), data=st.data())
def test_both_engines_compute_any_plan(config: DrawnConfig, data: st.DataObject) -> None:
    check_engines(DrawnModel, config, data)


@given(config=configs(), seed=st.integers(0, 99), data=st.data())
def test_shapes_rows_and_files_of_any_plan(config: DrawnConfig, seed: int, data: st.DataObject) -> None:
    """In every dtype and by every path: a row has the same bits in any batch, and a model when it was saved."""
    dtype = data.draw(st.sampled_from(["float32", "bfloat16", "int8"]))
    model = random_model(DrawnModel, config, "rust", seed, dtype=dtype)
    with forced_path(data.draw(st.sampled_from(available(dtype)))):
        forced = random_model(DrawnModel, config, "rust", seed, dtype=dtype)
    shapes = {
        name: tuple(getattr(config, size) if isinstance(size, str) else size for size in shape)
        for name, shape in config.plan().shapes().items()
    }
    assert {name: array.shape for name, array in model.named_parameters()} == shapes
    assert config.plan().trained(None) == set(shapes)
    lengths = [110, 3, 1, 31]
    ids = np.random.default_rng(seed).integers(0, 40, (4, 110))
    mask = np.arange(110) < np.array(lengths)[:, None]
    together = forced(ids, mask, threads=2).last_hidden_state
    for row, length in enumerate(lengths):
        alone = forced(ids[row : row + 1, :length], threads=1).last_hidden_state
        np.testing.assert_array_equal(alone[0], together[row, :length])
    found = model(ids, mask).last_hidden_state
    exact = random_model(DrawnModel, config, "rust", seed)(ids, mask).last_hidden_state
    for other in (found, together):
        cosine = (exact[mask] * other[mask]).sum() / np.linalg.norm(exact[mask]) / np.linalg.norm(other[mask])
        assert cosine > {"float32": 0.99999, "bfloat16": 0.99, "int8": 0.98}[dtype]
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        stored = read_tensors(f"{folder}/model.safetensors").keys()
        assert stored == shapes.keys() if dtype != "int8" else stored > shapes.keys()
        for again in (AutoModel.from_pretrained(folder, dtype=dtype), pickle.loads(pickle.dumps(model))):
            assert again.config.plan() == config.plan()
            np.testing.assert_array_equal(again(ids, mask).last_hidden_state, found)
            for (name, x), (other, y) in zip(model.named_parameters(), again.named_parameters(), strict=True):
                assert name == other
                np.testing.assert_array_equal(x, y)


@given(config=configs(largest=8), first=st.integers(0, 3))
def test_gradients_of_any_plan_against_central_differences(config: DrawnConfig, first: int) -> None:
    """Of every fourth parameter: two passes for each of all would take most of the time of these tests."""
    model = random_model(DrawnForTokenClassification, config, "numpy")
    batch = batch_of("TokenClassification", np.random.default_rng(4))
    check_gradients(model, batch, KeyedDropout(1, 2, 3), slice(first, None, 4))


@given(config=configs(), data=st.data())
def test_the_kernels_compute_the_gradients_of_any_plan(config: DrawnConfig, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(_core.kernel_instruction_sets()))
    model = random_model(DrawnForTokenClassification, config, "numpy")
    network = Network(model)
    random = np.random.default_rng(3)
    batch = batch_of("TokenClassification", random, (3, 70, 1, 130), 131)
    exact = {name: array.astype(np.float64) for name, array in network.parameters(model).items()}
    lowest = data.draw(st.sampled_from([None, None, 0, 1]))
    options = PassOptions(KeyedDropout(5, 6), trained_from=lowest)
    expected = compute(network, exact, batch, options)
    if lowest is not None:  # layers below the lowest trained one need no backward pass, and change nothing above them
        everything = compute(network, exact, batch, PassOptions(KeyedDropout(5, 6)))
        frozen = {network.name(name) for name in network.plan.shapes().keys() - network.plan.trained(lowest)}
        assert network.lowest_trained(frozen) == min(lowest, config.num_hidden_layers)
        assert expected.gradients.keys() == everything.gradients.keys() - frozen
        assert all(np.array_equal(g, everything.gradients[name]) for name, g in expected.gradients.items())
    engine = RustTraining(path, 2)
    found = compute(network, network.parameters(model), batch, options, engine=engine)
    assert_gradients(found, expected, 2e-5)
    # The same bits by any number of threads, whatever is kept, and after other batches.
    again = options._replace(gradient_checkpointing=True)
    compute(network, network.parameters(model), batch_of("TokenClassification", random), options, engine=engine)
    for other in (engine, RustTraining(path, 1)):
        assert same_bits(compute(network, network.parameters(model), batch, again, engine=other), found)


def test_a_table_that_frozen_layers_read_too_is_frozen() -> None:
    sizes = {"hidden_size": 12, "num_attention_heads": 2, "intermediate_size": 10, "num_hidden_layers": 2}
    config = DrawnConfig(vocab_size=40, id2label=THREE, scores="distances", **sizes)
    model = random_model(DrawnForTokenClassification, config, "numpy")
    network = Network(model)
    batch = batch_of("TokenClassification", np.random.default_rng(3))
    for engine in (NumpyTraining(), RustTraining(None, 1)):
        options = PassOptions(KeyedDropout(5, 6), trained_from=1)
        found = compute(network, network.parameters(model), batch, options, engine=engine)
        assert not [name for name in found.gradients if "encoder.bias" in name or "layer.0" in name]
        assert [name for name in found.gradients if "layer.1" in name]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"convolution": 3}, "layer 0 of a plan: a Convolution reads masked neighbours, which must be 0"),
        ({"convolution": 3, "masked": True, "projection": "after"}, "a Convolution reads masked neighbours"),
        ({"masked_sees_all": True, "window": 4}, "an Attention whose masked queries see all has no window and no bias"),
        ({"masked_sees_all": True, "scores": "slopes"}, "an Attention whose masked queries see all has no window"),
    ],
)
def test_parts_that_do_not_go_together_are_refused_by_name(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DrawnConfig(**fields).plan()
    with pytest.raises(ConfigError, match=r"encoder\.ln: a Norm of the kind 'rms' has no bias"):
        Norm("encoder.ln", 1e-5, kind="rms")


def test_a_layer_without_attention_is_run_and_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = DrawnConfig._layer
    without = lambda config, layer: whole(config, layer)[layer % 2 :]  # noqa: E731
    monkeypatch.setattr(DrawnConfig, "_layer", without)
    sizes = {"hidden_size": 12, "num_attention_heads": 2, "intermediate_size": 10, "num_hidden_layers": 2}
    config = DrawnConfig(vocab_size=40, id2label=THREE, **sizes)
    numpy, rust = (random_model(DrawnModel, config, backend) for backend in ("numpy", "rust"))
    np.testing.assert_allclose(
        rust([[1, 2, 3]]).last_hidden_state, numpy([[1, 2, 3]]).last_hidden_state, rtol=0, atol=1e-5
    )
    network = Network(model := random_model(DrawnForTokenClassification, config, "numpy"))
    batch = batch_of("TokenClassification", np.random.default_rng(3))
    expected = compute(network, network.parameters(model), batch)
    assert_gradients(compute(network, network.parameters(model), batch, engine=RustTraining()), expected, 2e-5)
    assert needed_memory(config, 0, 1) > 0
    with pytest.raises(ConfigError, match="layer 1 of a plan has no Attention"):
        config.plan().attention(1)


def test_a_layer_without_norms_is_not_trained_by_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DrawnConfig, "_norm", lambda *_: None)
    model = random_model(
        DrawnForTokenClassification, DrawnConfig(vocab_size=40, id2label=THREE, embedding_norm=False), "numpy"
    )
    network = Network(model)
    batch = batch_of("TokenClassification", np.random.default_rng(3))
    with pytest.raises(InputError, match="no gradients of a part Mlp without a norm before it: use backend='numpy'"):
        compute(network, network.parameters(model), batch, PassOptions(), engine=RustTraining())
