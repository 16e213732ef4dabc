"""Jina-BERT: its slopes, its two forms, and what is refused.

Outputs equal to the reference's are tested for the folders in test_heads.py and test_engines.py.
"""

from __future__ import annotations

import json
import math
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_files import MODELS, copied, write_safetensors
from wordpiece_bert import SentenceEncoder, inspect, tasks
from wordpiece_bert.bert import AutoModel, BertModel, JinaBertConfig, JinaBertModel
from wordpiece_bert.bert.auto import read_config
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.bert.plan.parts import Slopes
from wordpiece_bert.errors import CheckpointError, CheckpointWarning, ConfigError


def small(**fields: Any) -> JinaBertConfig:
    sizes = {"hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 20, "num_hidden_layers": 2}
    return JinaBertConfig(**{"vocab_size": 50, **sizes, **fields})


def test_slopes_of_heads_that_are_no_power_of_two() -> None:
    def slopes(heads: int) -> tuple[float, ...]:
        bias = small(hidden_size=heads, num_attention_heads=heads).plan().attention(0).bias
        assert isinstance(bias, Slopes)
        return bias.slopes

    assert slopes(12) == pytest.approx([2.0**-i for i in range(1, 9)] + [2.0 ** -(i + 0.5) for i in range(4)])
    for heads in range(1, 40):  # a geometric sequence, and between its numbers the slopes of twice as many heads
        power = 2 ** (heads.bit_length() - 1)
        between = [2.0 ** (-4 * (2 * i + 1) / power) for i in range(heads - power)]
        expected = [2.0 ** (-8 * (i + 1) / power) for i in range(power)] + between
        np.testing.assert_allclose(slopes(heads), expected, rtol=1e-6)


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
