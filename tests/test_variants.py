"""Encoders that differ from BERT in their arithmetic: equal to transformers, on both engines, in every naming.

Outputs and losses of all folders, and the equality of the engines for their inputs, are tested in test_heads.py and
test_engines.py; here are other shapes, the older namings of weights and configurations, and what is refused.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_files import MODELS, check_equal, reference_cases, write_safetensors
from random_models import EVERYTHING
from wordpiece_bert import SentenceEncoder
from wordpiece_bert.bert import (
    AutoModel,
    DPRConfig,
    DPRQuestionEncoder,
    GteConfig,
    NomicBertConfig,
    NomicBertModel,
    RobertaConfig,
)
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.bert.rotary import frequencies, rotate, rotation
from wordpiece_bert.errors import CheckpointError, ConfigError, InputError

# --- the engines, for other shapes


# --- DPR


@pytest.mark.parametrize("backend", ["rust", "numpy"])
@pytest.mark.parametrize("folder", ["dpr_question_encoder", "dpr_context_encoder", "dpr_reader"])
def test_dpr_equals_transformers(folder: str, backend: str, tmp_path: Path) -> None:
    model: Any = AutoModel.from_pretrained(MODELS / folder, backend)
    assert not hasattr(model([[5, 9]]), "last_hidden_state")
    model.save_pretrained(tmp_path)
    assert set(read_tensors(tmp_path / "model.safetensors")) == set(read_tensors(MODELS / folder / "model.safetensors"))
    again: Any = AutoModel.from_pretrained(tmp_path, backend)
    alone, every = (model([[5, 9]], [[1, 0]], **options) for options in ({"output_attentions": True}, EVERYTHING))
    np.testing.assert_array_equal(alone.attentions, every.attentions)
    for inputs, expected in reference_cases(folder).values():
        options = EVERYTHING if "hidden_states" in expected else {}
        check_equal(model(**inputs, **options), expected, inputs.get("attention_mask"))
        check_equal(again(**inputs, **options), expected, inputs.get("attention_mask"))


def test_the_pooler_of_old_dpr_files_is_dropped_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    file = MODELS / "dpr_question_encoder"
    tensors = dict(read_tensors(file / "model.safetensors"))
    tensors["question_encoder.bert_model.pooler.dense.weight"] = np.zeros((32, 32), np.float32)
    DPRQuestionEncoder(DPRConfig.from_folder(file), tensors)
    assert not recwarn.list


def test_a_dpr_model_has_no_token_vectors_for_sentences() -> None:
    with pytest.raises(ConfigError, match=r"type 'dpr' has no encoder of tokens; AutoModel"):
        AutoModel.base_from_pretrained(MODELS / "dpr_reader")


# --- positions that count from the padding on


def test_positions_count_tokens_that_are_not_padding() -> None:
    config = RobertaConfig(pad_token_id=3, max_position_embeddings=20)
    ids = np.array([[7, 3, 8, 9], [3, 3, 7, 7]])
    np.testing.assert_array_equal(config.default_positions(ids, 4), [[4, 3, 5, 6], [3, 3, 4, 5]])
    np.testing.assert_array_equal(config.default_positions(None, 3), [[4, 5, 6]])
    np.testing.assert_array_equal(
        config.packed_positions(ids.reshape(-1), np.array([0, 4, 8])), [4, 3, 5, 6, 3, 3, 4, 5]
    )
    assert config.longest_row == 16


def test_a_row_longer_than_the_positions_is_refused() -> None:
    model: Any = AutoModel.from_pretrained(MODELS / "roberta_model")
    assert model(np.full((1, 32), 9)).last_hidden_state.shape == (1, 32, 32)
    with pytest.raises(InputError, match=r"rows of 33 tokens are longer than .* less the 2 that it reserves, 32"):
        model(np.full((1, 33), 9))


@pytest.mark.parametrize("pad", [None, -1, 511, True])
def test_an_impossible_padding_id_is_refused(pad: Any) -> None:
    with pytest.raises(ConfigError, match="pad_token_id"):
        RobertaConfig(pad_token_id=pad, max_position_embeddings=512)


# --- rotary positions


def test_scores_depend_on_distances_only() -> None:
    q, k = np.random.default_rng(1).normal(size=(2, 1, 1, 1, 8)).astype("f4")
    omega = frequencies(8, 1000.0)
    scores = []
    for first in (0, 7, 100):
        turned = rotate(np.concatenate([q, k], axis=2), rotation(np.array([[first, first + 3]]), omega))
        scores.append(float(turned[0, 0, 0] @ turned[0, 0, 1]))
    np.testing.assert_allclose(scores, scores[0], rtol=1e-5)


def test_frequencies_follow_their_formula() -> None:
    j = np.arange(4)
    np.testing.assert_allclose(frequencies(8, 1000.0), 1000.0 ** (-2 * j / 8), rtol=1e-6)
    scaled = (160_000.0 * 2) ** (-2 * j / 8) * 2 ** (-2 / 8)
    np.testing.assert_allclose(frequencies(8, 160_000.0, 2.0), scaled, rtol=1e-6)


def test_no_table_limits_the_length_of_a_row() -> None:
    config = replace(NomicBertConfig.from_folder(MODELS / "nomic_model"), max_position_embeddings=8)
    tensors = read_tensors(MODELS / "nomic_model" / "model.safetensors")
    ids = np.arange(100)[None]
    outputs = [NomicBertModel(config, tensors, backend=backend)(ids).last_hidden_state for backend in ("numpy", "rust")]
    np.testing.assert_allclose(outputs[1], outputs[0], rtol=0, atol=1e-5)
    positions = np.arange(5000, 5100)[None]
    shifted = NomicBertModel(config, tensors)(ids, position_ids=positions).last_hidden_state
    np.testing.assert_allclose(shifted, outputs[1], rtol=0, atol=2e-3)  # only distances count


# --- the names of weights and settings in older code


@pytest.mark.parametrize(("older", "reference"), [("nomic_old_config", "nomic_model"), ("gte_old_names", "gte_model")])
@pytest.mark.parametrize("backend", ["rust", "numpy"])
def test_folders_of_remote_code_are_read(older: str, reference: str, backend: str) -> None:
    model: Any = AutoModel.from_pretrained(MODELS / older, backend)
    for inputs, expected in reference_cases(reference).values():
        check_equal(model(**inputs, **EVERYTHING), expected, inputs.get("attention_mask"))


@pytest.mark.parametrize("folder", ["nomic_model", "gte_masked_lm", "gte_ntk"])
def test_a_model_is_saved_under_the_names_of_the_modules(folder: str, tmp_path: Path) -> None:
    model: Any = AutoModel.from_pretrained(MODELS / folder)
    model.save_pretrained(tmp_path)
    names = set(read_tensors(tmp_path / "model.safetensors"))
    prefix = "gte." if folder == "gte_masked_lm" else ""
    for name in ("self_attn.q_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"):
        assert f"{prefix}layers.0.{name}.weight" in names
    assert f"{prefix}layers.0.post_attention_layernorm.bias" in names
    assert f"{prefix}layers.0.post_mlp_layernorm.weight" in names
    assert ("lm_head.layer_norm.weight" in names) == (folder == "gte_masked_lm")
    again: Any = AutoModel.from_pretrained(tmp_path)
    assert replace(again.config, architectures=()) == replace(model.config, architectures=())
    for (name, x), (other, y) in zip(model.named_parameters(), again.named_parameters(), strict=True):
        assert name == other
        np.testing.assert_array_equal(x, y)


def test_present_settings_count_beside_older_ones() -> None:
    values = json.loads((MODELS / "nomic_model" / "config.json").read_text())
    older = {"n_embd": 999, "n_layer": 7, "rotary_emb_base": 5, "activation_function": "geglu", "n_head": 1}
    assert NomicBertConfig.from_dict(values | older) == NomicBertConfig.from_dict(values)


def test_settings_of_rotary_positions_in_all_their_places() -> None:
    assert NomicBertConfig().rope_theta == 1000
    assert GteConfig().rope_theta == 160_000
    assert GteConfig.from_dict({"rope_theta": 7.0}).rope_theta == 7
    assert GteConfig.from_dict({"rope_theta": 7.0, "rope_parameters": {"rope_theta": 8.0}}).rope_theta == 8
    scaled = GteConfig.from_dict({"rope_theta": 7.0, "rope_scaling": {"type": "ntk", "factor": 2.0}})
    assert (scaled.rope_theta, scaled.rope_factor) == (7, 2)
    assert GteConfig.from_dict(scaled.to_dict()) == scaled
    assert NomicBertConfig.from_dict({"n_inner": None, "n_embd": 24}).intermediate_size == 96
    with pytest.raises(ConfigError, match="hidden_size is None: it must be an integer"):
        NomicBertConfig.from_dict({"n_inner": None, "n_embd": None})


def test_older_names_of_dropout_rates_are_read_and_the_defaults_are_those_of_transformers() -> None:
    rates = ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout")
    older = NomicBertConfig.from_dict({"resid_pdrop": 0.1, "attn_pdrop": 0.2, "embd_pdrop": 0.3})
    found = [[getattr(config, name) for name in rates] for config in (older, NomicBertConfig(), GteConfig())]
    assert found == [[0.1, 0.2, 0.3], [0, 0, None], [0.1, 0, None]]


def test_packed_tensors_of_another_shape_are_refused(tmp_path: Path) -> None:
    tensors = read_tensors(MODELS / "nomic_model" / "model.safetensors")
    tensors["encoder.layers.0.attn.Wqkv.weight"] = tensors["encoder.layers.0.attn.Wqkv.weight"][:-1]
    write_safetensors(tmp_path / "model.safetensors", tensors)
    shutil.copy(MODELS / "nomic_model" / "config.json", tmp_path)
    with pytest.raises(CheckpointError, match=r"qkv_proj.weight has shape \[95, 32\].*3 times 32 rows"):
        AutoModel.from_pretrained(tmp_path)


def test_a_weight_under_two_names_is_refused() -> None:
    tensors = dict(read_tensors(MODELS / "nomic_model" / "model.safetensors"))
    tensors["layers.0.self_attn.o_proj.weight"] = tensors["encoder.layers.0.attn.out_proj.weight"]
    config = NomicBertConfig.from_folder(MODELS / "nomic_model")
    with pytest.raises(CheckpointError, match=r"layers.0.self_attn.o_proj.weight.* occurs twice"):
        NomicBertModel(config, tensors)


# --- what is refused


@pytest.mark.parametrize(
    ("folder", "changed"),
    [
        ("nomic_old_config", {"rotary_emb_interleaved": True}),
        ("nomic_old_config", {"rotary_emb_fraction": 0.5}),
        ("nomic_old_config", {"rotary_scaling_factor": 2}),
        ("nomic_old_config", {"rotary_emb_scale_base": 512}),
        ("nomic_old_config", {"prenorm": True}),
        ("nomic_old_config", {"parallel_block": True}),
        ("nomic_old_config", {"causal": True}),
        ("nomic_old_config", {"use_rms_norm": True}),
        ("nomic_old_config", {"qkv_proj_bias": True}),
        ("nomic_old_config", {"mlp_fc1_bias": True}),
        ("nomic_old_config", {"mlp_fc2_bias": True}),
        ("nomic_old_config", {"num_experts": 8}),
        ("nomic_old_config", {"activation_function": "gelu"}),
        ("gte_old_names", {"logn_attention_scale": True}),
        ("gte_old_names", {"logn_attention_clip1": True}),
        ("gte_old_names", {"layer_norm_type": "rms_norm"}),
        ("gte_old_names", {"position_embedding_type": "absolute"}),
        ("gte_model", {"partial_rotary_factor": 0.5}),
        ("gte_model", {"head_dim": 7}),
        ("gte_model", {"is_decoder": True}),
    ],
)
def test_settings_that_need_other_arithmetic_are_refused_by_name(
    folder: str, changed: dict[str, Any], tmp_path: Path
) -> None:
    shutil.copytree(MODELS / folder, tmp_path, dirs_exist_ok=True)
    values = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(values | changed))
    with pytest.raises(ConfigError, match=next(iter(changed))):
        AutoModel.from_pretrained(tmp_path)


@pytest.mark.parametrize("kind", ["linear", "dynamic", "yarn", "longrope", "llama3", "proportional"])
@pytest.mark.parametrize("field", ["rope_parameters", "rope_scaling"])
def test_other_kinds_of_rotary_scaling_are_refused_by_name(kind: str, field: str) -> None:
    with pytest.raises(ConfigError, match=rf"rope_type is .{kind}"):
        GteConfig.from_dict({field: {"rope_type": kind, "factor": 2.0}})
    with pytest.raises(ConfigError, match="partial_rotary_factor"):
        GteConfig.from_dict({field: {"partial_rotary_factor": 0.5}})
    with pytest.raises(ConfigError, match=r"mixed_b is 0\.5: it must be null"):
        GteConfig.from_dict({field: {"rope_type": "ntk", "factor": 2.0, "mixed_b": 0.5}})


# --- sentence encoders


@pytest.mark.parametrize("backend", ["rust", "numpy"])
@pytest.mark.parametrize("folder", ["st_nomic", "st_gte", "st_megatron", "st_ernie", "st_jina", "st_neobert"])
def test_sentence_vectors_equal_sentence_transformers(folder: str, backend: str) -> None:
    encoder: Any = SentenceEncoder.from_pretrained(MODELS / folder, backend)
    reference = json.loads((MODELS / folder / "reference.json").read_text(encoding="utf-8"))
    expected = np.load(MODELS / folder / "embeddings.npz")
    for call in reference["calls"]:
        with pytest.warns(match="truncated"):  # one of the texts is too long
            found = getattr(encoder, call["method"])(reference["texts"], **call["options"])
        np.testing.assert_allclose(found, expected[call["key"]], rtol=0, atol=1e-5, err_msg=call["key"])


def test_prompts_that_a_folder_does_not_name_are_not_added() -> None:
    encoder = SentenceEncoder.from_pretrained(MODELS / "st_gte")
    assert encoder.prompts == {"document": "", "query": ""}
    np.testing.assert_array_equal(encoder.encode_query("the city"), encoder.encode("the city"))


def test_the_length_of_texts_is_that_of_the_tokenizer(tmp_path: Path) -> None:
    shutil.copytree(MODELS / "st_nomic", tmp_path, dirs_exist_ok=True)
    for limit, expected in ((1000, 1000), (10**30, 48)):  # no table limits a row; without a limit, the config's length
        values = json.loads((tmp_path / "tokenizer_config.json").read_text())
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(values | {"model_max_length": limit}))
        assert SentenceEncoder.from_pretrained(tmp_path).max_seq_length == expected
