"""NeoBERT: its files, and what is refused.

Outputs equal to the reference's are tested for the folders in test_heads.py and test_engines.py.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_files import MODELS, copied, write_safetensors
from wordpiece_bert.bert import AutoModel, NeoBertConfig, NeoBertForMaskedLM, NeoBertModel
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.errors import CheckpointError, ConfigError, InputError


def small(**fields: Any) -> NeoBertConfig:
    sizes = {"hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 20, "num_hidden_layers": 2}
    return NeoBertConfig(**{"vocab_size": 50, **sizes, **fields})


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
    model = NeoBertModel.from_config(small(max_position_embeddings=7))
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
