"""Jina-BERT: other shapes and both forms, beside a slow reference that shares nothing with the package.

Outputs equal to the reference's are tested for the folders in test_heads.py and test_engines.py.
"""

from __future__ import annotations

import json
import math
import pickle
import shutil
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_files import MODELS, check_equal, copied, write_safetensors
from wordpiece_bert import SentenceEncoder, inspect, tasks
from wordpiece_bert.bert import AutoModel, BertModel, JinaBertConfig, JinaBertModel
from wordpiece_bert.bert.auto import read_config
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.bert.plan.parts import Slopes
from wordpiece_bert.errors import CheckpointError, CheckpointWarning, ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    Weights = dict[str, np.ndarray[Any, Any]]

FORMS = ["plain", "qk"]


def drawn(config: JinaBertConfig, form: str, seed: int) -> Weights:
    """Random weights under the names of the remote code."""
    h, f = config.hidden_size, config.intermediate_size
    random = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (config.vocab_size, h),
        "embeddings.token_type_embeddings.weight": (config.type_vocab_size, h),
        "pooler.dense.weight": (h, h),
    }
    norms = ["embeddings.LayerNorm"]
    for i in range(config.num_hidden_layers):
        layer = f"encoder.layer.{i}."
        for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            shapes[f"{layer}{name}.weight"] = (h, h)
        norms.append(f"{layer}attention.output.LayerNorm")
        if form == "plain":
            shapes |= {f"{layer}mlp.gated_layers.weight": (2 * f, h), f"{layer}mlp.wo.weight": (h, f)}
            norms.append(f"{layer}mlp.layernorm")
        else:
            shapes |= {f"{layer}mlp.up_gated_layer.weight": (2 * f, h), f"{layer}mlp.down_layer.weight": (h, f)}
            inner = ("attention.self.layer_norm_q", "attention.self.layer_norm_k", "layer_norm_1", "layer_norm_2")
            norms += [layer + name for name in inner]
    weights = {name: random.normal(0, 0.15, shape).astype("f4") for name, shape in shapes.items()}
    for name in [name for name in weights if "embeddings" not in name and "gated_layer" not in name]:
        weights[name.replace(".weight", ".bias")] = random.normal(0, 0.15, shapes[name][0]).astype("f4")
    for name in norms:
        weights[f"{name}.weight"] = random.normal(1, 0.15, h).astype("f4")
        weights[f"{name}.bias"] = random.normal(0, 0.15, h).astype("f4")
    return weights


def slope(head: int, heads: int) -> float:
    """The slope of a head: a geometric sequence, and between its numbers the slopes of twice as many heads."""
    power = 1
    while 2 * power <= heads:
        power *= 2
    if head < power:
        return float(2 ** (-8 * (head + 1) / power))
    return float(2 ** (-8 * (2 * (head - power) + 1) / (2 * power)))


def reference(config: JinaBertConfig, w: Weights, ids: Any, mask: Any) -> Any:
    """The last hidden state of one row in float64, a loop for each head and query."""
    w = {name: weight.astype(float) for name, weight in w.items()}

    def norm(x: Any, name: str) -> Any:
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + config.layer_norm_eps)
        return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]

    def dense(x: Any, name: str) -> Any:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def gate(x: Any) -> Any:
        return np.maximum(x, 0) if config.hidden_act == "relu" else x * 0.5 * (1 + np.vectorize(math.erf)(x / 2**0.5))

    n, f = config.num_attention_heads, config.intermediate_size
    d = config.hidden_size // n
    x = norm(
        w["embeddings.word_embeddings.weight"][ids] + w["embeddings.token_type_embeddings.weight"][0],
        "embeddings.LayerNorm",
    )
    for i in range(config.num_hidden_layers):
        layer = f"encoder.layer.{i}."
        q, k, v = (dense(x, f"{layer}attention.self.{name}") for name in ("query", "key", "value"))
        if f"{layer}layer_norm_1.weight" in w:
            q, k = norm(q, f"{layer}attention.self.layer_norm_q"), norm(k, f"{layer}attention.self.layer_norm_k")
        context = np.zeros_like(x)
        for head in range(n):
            part = slice(head * d, (head + 1) * d)
            for row in range(len(ids)):
                keys = np.flatnonzero(mask)
                scores = k[keys, part] @ q[row, part] / math.sqrt(d) - slope(head, n) * np.abs(keys - row)
                p = np.exp(scores - scores.max())
                context[row, part] = p / p.sum() @ v[keys, part]
        y = norm(dense(context, f"{layer}attention.output.dense") + x, f"{layer}attention.output.LayerNorm")
        if f"{layer}layer_norm_1.weight" in w:
            y = norm(x + y, f"{layer}layer_norm_1")
            h = y @ w[f"{layer}mlp.up_gated_layer.weight"].T
            x = norm(y + dense(h[:, :f] * gate(h[:, f:]), f"{layer}mlp.down_layer"), f"{layer}layer_norm_2")
        else:
            h = y @ w[f"{layer}mlp.gated_layers.weight"].T
            x = norm(dense(gate(h[:, :f]) * h[:, f:], f"{layer}mlp.wo") + y, f"{layer}mlp.layernorm")
    return x


def small(**fields: Any) -> JinaBertConfig:
    sizes = {"hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 20, "num_hidden_layers": 2}
    return JinaBertConfig(**{"vocab_size": 50, **sizes, **fields})


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_both_engines_equal_the_reference(data: st.DataObject) -> None:
    heads = data.draw(st.integers(1, 7))
    config = small(
        hidden_size=heads * data.draw(st.sampled_from([4, 9, 32, 40])),
        num_attention_heads=heads,
        intermediate_size=data.draw(st.integers(1, 70)),
        num_hidden_layers=data.draw(st.integers(1, 2)),
        hidden_act=data.draw(st.sampled_from(["gelu", "relu"])),
        layer_norm_eps=data.draw(st.sampled_from([1e-12, 1e-5])),
    )
    weights = drawn(config, data.draw(st.sampled_from(FORMS)), data.draw(st.integers(0, 999)))
    random = np.random.default_rng(data.draw(st.integers(0, 999)))
    length = data.draw(st.integers(1, 70))
    ids, mask = random.integers(0, 50, length), random.random(length) < 0.7
    mask[random.integers(0, length)] = True
    expected = reference(config, weights, ids, mask)[None].astype("f4")
    for backend in ("numpy", "rust"):
        out = JinaBertModel(config, weights, backend=backend)(ids[None], mask[None])
        check_equal(out, {"last_hidden_state": expected}, mask[None])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_a_model_is_saved_under_the_names_of_its_form(form: str, dtype: str, tmp_path: Path) -> None:
    config = small(hidden_act="relu", head_act="gelu_new")
    weights = drawn(config, form, 3)
    model = JinaBertModel(config, weights, dtype=dtype)
    model.save_pretrained(tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    assert (values["model_type"], values["position_embedding_type"]) == ("bert", "alibi")
    assert (values["feed_forward_type"], values["hidden_act"]) == ("reglu", "gelu_new")
    if dtype == "float32":
        stored = read_tensors(tmp_path / "model.safetensors")
        assert stored.keys() == weights.keys()
        for name, weight in weights.items():
            np.testing.assert_array_equal(stored[name], weight)
    again: Any = AutoModel.from_pretrained(tmp_path, dtype=dtype)
    assert type(again) is JinaBertModel
    assert again.config.has_query_key_norms == (form == "qk")
    assert again.config.head_act == "gelu_new"
    expected = model([[5, 9, 33]]).last_hidden_state
    for other in (again, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other([[5, 9, 33]]).last_hidden_state, expected)


def test_slopes_of_heads_that_are_no_power_of_two() -> None:
    def slopes(heads: int) -> tuple[float, ...]:
        bias = small(hidden_size=heads, num_attention_heads=heads).plan().attention(0).bias
        assert isinstance(bias, Slopes)
        return bias.slopes

    assert slopes(12) == pytest.approx([2.0**-i for i in range(1, 9)] + [2.0 ** -(i + 0.5) for i in range(4)])
    for heads in range(1, 40):
        np.testing.assert_allclose(slopes(heads), [slope(head, heads) for head in range(heads)], rtol=1e-6)


@pytest.mark.parametrize(
    "changed",
    [
        {"feed_forward_type": "original"},
        {"feed_forward_type": ...},
        {"feed_forward_type": 3},
        {"alibi_scaling": 8},
        {"is_decoder": True},
        {"add_cross_attention": True},
    ],
)
def test_other_settings_are_refused_by_name(changed: dict[str, Any], tmp_path: Path) -> None:
    folder = copied("jina_seqcls", tmp_path, "config.json", **changed)
    with pytest.raises(ConfigError, match=next(iter(changed))):
        AutoModel.from_pretrained(folder)


@pytest.mark.parametrize("activation", ["swish_of_a_fork", 3, ["gelu"], None])
def test_an_unknown_activation_of_the_head_is_refused_where_it_is_used(activation: object, tmp_path: Path) -> None:
    folder = copied("jina_masked_lm", tmp_path, "config.json", hidden_act=activation)
    with pytest.raises(ConfigError, match=r"jina_masked_lm.*hidden_act is .*must be one of gelu"):
        AutoModel.from_pretrained(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CheckpointWarning)  # the head is not used
        found: Any = AutoModel.base_from_pretrained(folder)
        expected: Any = AutoModel.base_from_pretrained(MODELS / "jina_masked_lm")
    np.testing.assert_array_equal(found([[5, 9]]).last_hidden_state, expected([[5, 9]]).last_hidden_state)


def test_bert_itself_is_not_read_as_jina_bert(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="position_embedding_type is 'alibi'"):
        BertModel.from_pretrained(MODELS / "jina_model")
    with pytest.raises(ConfigError, match="feed_forward_type is 'original'"):
        JinaBertModel.from_pretrained(MODELS / "bert_model")
    assert read_config(MODELS / "bert_model").model_type == "bert"
    values = json.loads((MODELS / "jina_model" / "config.json").read_text())
    with pytest.raises(ConfigError, match="position_embedding_type"):
        JinaBertConfig.from_dict(values | {"position_embedding_type": "rope"})
    (tmp_path / "config.json").write_text(json.dumps(values | {"position_embedding_type": "rope"}))
    with pytest.raises(ConfigError, match="position_embedding_type is 'rope'"):
        read_config(tmp_path)


def test_tensors_of_other_forms_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(MODELS / "jina_qk_norm", folder)
    tensors = dict(read_tensors(folder / "model.safetensors"))
    other = {name.replace("up_gated_layer", "gated"): tensor for name, tensor in tensors.items()}
    write_safetensors(folder / "model.safetensors", other)
    with pytest.raises(CheckpointError, match=r"neither of the tensors mlp\.gated_layers and mlp\.up_gated_layer"):
        AutoModel.from_pretrained(folder)
    more = tensors | {"encoder.layer.0.attention.self.layer_norm_v.weight": np.ones(32, np.float32)}
    write_safetensors(folder / "model.safetensors", more)
    with pytest.raises(CheckpointError, match=r"layer_norm_v\.weight.*form of Jina-BERT that is not known"):
        AutoModel.from_pretrained(folder)
    odd = tensors | {"encoder.layer.0.mlp.up_gated_layer.weight": np.ones((87, 32), np.float32)}
    write_safetensors(folder / "model.safetensors", odd)
    with pytest.raises(CheckpointError, match="up_gated_layer"):
        AutoModel.from_pretrained(folder)


@pytest.mark.parametrize("folder", ["jina_model", "jina_qk_norm"])
def test_a_trace_has_the_scores_of_the_model(folder: str, tmp_path: Path) -> None:
    shutil.copytree(MODELS / "st_jina", tmp_path / "model")
    shutil.copytree(MODELS / folder, tmp_path / "model", dirs_exist_ok=True)
    trace = inspect.trace(tasks.load(tmp_path / "model"), "the old house by the river")
    assert trace.position_bias is not None
    scores = trace.queries @ trace.keys.swapaxes(-1, -2) / math.sqrt(trace.queries.shape[-1]) + trace.position_bias
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    np.testing.assert_allclose(p / p.sum(axis=-1, keepdims=True), trace.attentions, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_long_texts_are_encoded(dtype: str) -> None:
    text, vectors = "the old house " * 300, []
    for encoder in (SentenceEncoder(MODELS / "st_jina", dtype=dtype), SentenceEncoder(MODELS / "st_jina", "numpy")):
        encoder.max_seq_length = 1000
        vectors.append(encoder.encode(text))
    vector, exact = vectors
    assert vector @ exact / np.linalg.norm(vector) / np.linalg.norm(exact) > {"int8": 0.999}.get(dtype, 0.9999)
