"""NeoBERT: other shapes beside a slow reference that shares nothing with the package; files, and what is refused.

Outputs equal to the reference's are tested for the folders in test_heads.py and test_engines.py.
"""

from __future__ import annotations

import json
import pickle
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_files import MODELS, check_equal, copied, write_safetensors
from wordpiece_bert.bert import AutoModel, NeoBertConfig, NeoBertForMaskedLM, NeoBertModel
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.errors import CheckpointError, ConfigError, InputError

if TYPE_CHECKING:
    from pathlib import Path

    Weights = dict[str, np.ndarray[Any, Any]]


def drawn(config: NeoBertConfig, seed: int) -> Weights:
    """Random weights under the names of the remote code."""
    h, f = config.hidden_size, config.gated_size
    shapes: dict[str, tuple[int, ...]] = {"encoder.weight": (config.vocab_size, h), "layer_norm.weight": (h,)}
    for i in range(config.num_hidden_layers):
        layer = f"transformer_encoder.{i}."
        shapes |= {f"{layer}attention_norm.weight": (h,), f"{layer}ffn_norm.weight": (h,)}
        shapes |= {f"{layer}qkv.weight": (3 * h, h), f"{layer}wo.weight": (h, h)}
        shapes |= {f"{layer}ffn.w12.weight": (2 * f, h), f"{layer}ffn.w3.weight": (h, f)}
    random = np.random.default_rng(seed)
    return {name: random.normal(len(shape) == 1, 0.15, shape).astype("f4") for name, shape in shapes.items()}


def reference(config: NeoBertConfig, w: Weights, ids: Any, mask: Any) -> tuple[Any, list[Any]]:
    """The last hidden state and the outputs of the layers of one row, in float64; pairs are complex numbers."""
    w = {name: weight.astype(float) for name, weight in w.items()}
    n, d, f = config.num_attention_heads, config.head_size, config.gated_size

    def norm(x: Any, name: str) -> Any:
        return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + config.layer_norm_eps) * w[f"{name}.weight"]

    turns = np.exp(1j * np.arange(len(ids))[:, None] * 10_000.0 ** (-2 * np.arange(d // 2) / d))

    def turned(x: Any) -> Any:
        return (x[:, 0::2] + 1j * x[:, 1::2]) * turns

    x, states = w["encoder.weight"][ids], []
    for i in range(config.num_hidden_layers):
        layer = f"transformer_encoder.{i}."
        qkv = norm(x, f"{layer}attention_norm") @ w[f"{layer}qkv.weight"].T
        context = []
        for head in range(n):
            q, k, v = (qkv[:, (3 * head + part) * d :][:, :d] for part in range(3))
            scores = (turned(q) @ turned(k).conj().T).real / d**0.5
            p = np.exp(scores - scores.max(axis=-1, keepdims=True)) * mask
            context.append(p / p.sum(axis=-1, keepdims=True) @ v)
        x = x + np.concatenate(context, axis=1) @ w[f"{layer}wo.weight"].T
        y = norm(x, f"{layer}ffn_norm") @ w[f"{layer}ffn.w12.weight"].T
        gate, up = y[:, :f], y[:, f:]
        x = x + gate / (1 + np.exp(-gate)) * up @ w[f"{layer}ffn.w3.weight"].T
        states.append(x)
    return norm(x, "layer_norm"), states


def small(**fields: Any) -> NeoBertConfig:
    sizes = {"hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 20, "num_hidden_layers": 2}
    return NeoBertConfig(**{"vocab_size": 50, **sizes, **fields})


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_both_engines_equal_the_reference(data: st.DataObject) -> None:
    heads = data.draw(st.integers(1, 4))
    config = small(
        hidden_size=heads * data.draw(st.sampled_from([2, 6, 8, 32, 64])),
        num_attention_heads=heads,
        intermediate_size=data.draw(st.integers(2, 70)),
        num_hidden_layers=data.draw(st.integers(1, 3)),
        layer_norm_eps=data.draw(st.sampled_from([1e-6, 1e-3])),
    )
    weights = drawn(config, data.draw(st.integers(0, 999)))
    random = np.random.default_rng(data.draw(st.integers(0, 999)))
    length = data.draw(st.integers(1, 70))
    ids, mask = random.integers(0, 50, length), random.random(length) < 0.7
    mask[random.integers(0, length)] = True
    last, states = reference(config, weights, ids, mask)
    expected = {
        "last_hidden_state": last[None].astype("f4"),
        "hidden_states": np.stack(states)[:, None].astype("f4"),
    }
    scale = max(1.0, float(np.abs(expected["hidden_states"]).max()))
    for backend in ("numpy", "rust"):
        model = NeoBertModel(config, weights, backend=backend)
        check_equal(model(ids[None], mask[None], output_hidden_states=True), expected, mask[None], 1e-5 * scale)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_a_model_is_saved_as_the_remote_code_has_it(dtype: str, tmp_path: Path) -> None:
    weights = drawn(small(), 3)
    model = NeoBertModel(small(), weights, dtype=dtype)
    model.save_pretrained(tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    assert (values["hidden_act"], values["norm_eps"], values["max_length"]) == ("swiglu", 1e-6, 1024)
    if dtype == "float32":
        stored = read_tensors(tmp_path / "model.safetensors")
        assert stored.keys() == weights.keys()
        for name, weight in weights.items():
            np.testing.assert_array_equal(stored[name], weight)
    again: Any = AutoModel.from_pretrained(tmp_path, dtype=dtype)
    expected = model([[5, 9, 33]]).last_hidden_state
    for other in (again, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other([[5, 9, 33]]).last_hidden_state, expected)


def test_the_released_file_has_a_decoder_beside_the_encoder(recwarn: pytest.WarningsRecorder, tmp_path: Path) -> None:
    folder = copied("neobert_masked_lm", tmp_path)
    assert type(AutoModel.from_pretrained(folder)) is NeoBertForMaskedLM
    base = AutoModel.base_from_pretrained(folder)
    assert type(base) is NeoBertModel
    assert not [str(one.message) for one in recwarn]


@pytest.mark.parametrize(
    "changed",
    [
        {"hidden_act": "gelu"},
        {"hidden_act": 3},
        {"rms_norm": False},
        {"rope": False},
        {"ngpt": True},
        {"norm_eps": -1},
        {"max_length": 0},
        {"hidden_size": 36},
    ],
)
def test_other_settings_are_refused_by_name(changed: dict[str, Any], tmp_path: Path) -> None:
    folder = copied("neobert_seqcls", tmp_path, "config.json", **changed)
    with pytest.raises(ConfigError, match=next(iter(changed))):
        AutoModel.from_pretrained(folder)


def test_wrong_tensors_and_rows_are_refused(tmp_path: Path) -> None:
    model = NeoBertModel(small(max_position_embeddings=7), drawn(small(), 1))
    with pytest.raises(InputError, match="rows of 8 tokens are longer"):
        model(np.ones((1, 8), int))
    assert len(model(np.ones((0, 5), int), output_hidden_states=True).hidden_states or ()) == 2
    shutil.copytree(MODELS / "neobert_seqcls", tmp_path / "model")
    tensors = dict(read_tensors(tmp_path / "model" / "model.safetensors"))
    name = "model.transformer_encoder.0.qkv.weight"
    write_safetensors(tmp_path / "model" / "model.safetensors", tensors | {name: tensors[name][:-1]})
    with pytest.raises(CheckpointError, match=r"qkv\.weight has shape \[95, 32\]"):
        AutoModel.from_pretrained(tmp_path / "model")


def test_a_head_without_a_hidden_layer_makes_no_sparse_vectors() -> None:
    model: Any = AutoModel.from_pretrained(MODELS / "neobert_masked_lm")
    with pytest.raises(ConfigError, match="head of NeoBERT has no hidden layer"):
        model.vocabulary_head()
