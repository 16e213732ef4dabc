"""What a folder of sentence-transformers may hold: its settings, modules and variants; and the names of that library."""

from __future__ import annotations

import json
import shutil
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_files import MODELS, sentence_folder, with_tokenizer, write_safetensors
from sentence_fixtures import REFERENCE, TEXTS, TOLERANCE, change, encoder, folder, folders
from wordpiece_bert.bert import AutoModel
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.errors import CheckpointError, ConfigError, InputError
from wordpiece_bert.sentence import SentenceEncoder
from wordpiece_bert.sentence.dense.parts import transformer_of

# The folders hold one text that is longer than their 12 tokens; only the tests that are about it look at the warning.
pytestmark = pytest.mark.filterwarnings("ignore::wordpiece_bert.errors.TruncationWarning")


# --- the folder


def test_max_seq_length_of_the_folder_overrides_the_tokenizers(folder: Path) -> None:
    assert SentenceEncoder.from_pretrained(folder).max_seq_length == 12
    change(folder / "sentence_bert_config.json", max_seq_length=7)
    assert SentenceEncoder.from_pretrained(folder).max_seq_length == 7
    change(folder / "sentence_bert_config.json", max_seq_length=None)
    assert SentenceEncoder.from_pretrained(folder).max_seq_length == 12


@pytest.mark.parametrize("limit", [10**30, 1e30, 512, None])
def test_no_row_is_longer_than_the_position_table(folder: Path, limit: Any) -> None:
    change(folder / "tokenizer_config.json", model_max_length=limit)
    assert SentenceEncoder.from_pretrained(folder).max_seq_length == 48
    change(folder / "sentence_bert_config.json", max_seq_length=514)
    assert SentenceEncoder.from_pretrained(folder).max_seq_length == 48


def test_old_names_of_modules_and_pooling_modes_are_read(folder: Path) -> None:
    expected = SentenceEncoder.from_pretrained(folder).encode(TEXTS)
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Dense": "Dense", "3_Normalize": "Normalize"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    old = {"word_embedding_dimension": 32, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(old))
    (folder / "3_Normalize" / "config.json").unlink()
    (folder / "sentence_bert_config.json").rename(folder / "sentence_distilbert_config.json")
    np.testing.assert_array_equal(SentenceEncoder.from_pretrained(folder).encode(TEXTS), expected)


def test_old_pooling_booleans_are_concatenated_in_their_fixed_order(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(folders["sentence_concat"], tmp_path / "model")
    modes = {"mean_tokens": True, "cls_token": True, "max_tokens": True}
    old = {f"pooling_mode_{mode}": value for mode, value in modes.items()}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32, **old}))
    vectors = SentenceEncoder.from_pretrained(folder).encode(TEXTS)
    np.testing.assert_allclose(vectors, REFERENCE["sentence_concat.embeddings"], rtol=0, atol=TOLERANCE)


def test_a_residual_is_added_to_a_dense_module(folder: Path) -> None:
    tensors = read_tensors(folder / "2_Dense" / "model.safetensors")
    residual = np.linspace(-1, 1, 16 * 32, dtype=np.float32).reshape(16, 32)
    write_safetensors(folder / "2_Dense" / "model.safetensors", {**tensors, "residual.weight": residual})
    change(folder / "2_Dense" / "config.json", use_residual=True)
    found = SentenceEncoder.from_pretrained(folder).encode("cat")
    pooled: Any = SentenceEncoder.from_pretrained(folder).encode("cat", output_value="token_embeddings")[0]
    expected = np.tanh(pooled @ tensors["linear.weight"].T + tensors["linear.bias"]) + pooled @ residual.T  # type: ignore[operator]
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected), atol=1e-6)


@pytest.mark.parametrize(
    ("file", "values", "message"),
    [
        ("1_Pooling/config.json", {"pooling_mode": "median"}, r"pooling_mode is \['median'\]; the modes are cls, max"),
        ("1_Pooling/config.json", {"pooling_mode": [["mean"]]}, r"pooling_mode is \[\['mean'\]\]; the modes are cls"),
        ("1_Pooling/config.json", {"pooling_mode": []}, r"pooling_mode is \[\]"),
        ("1_Pooling/config.json", {"pooling_mode": ["cls", 3]}, "pooling_mode is"),
        ("1_Pooling/config.json", {"embedding_dimension": 31}, "vectors of 31 numbers.* hidden_size is 32"),
        ("1_Pooling/config.json", {"include_prompt": 1}, "include_prompt is 1, expected bool"),
        ("2_Dense/config.json", {"activation_function": "os.system"}, "activation_function is 'os.system'; supported"),
        ("2_Dense/config.json", {"activation_function": "torch.nn.modules.activation.SiLU"}, "SiLU"),
        ("2_Dense/config.json", {"in_features": 31}, "in_features is 31, but the module before returns vectors of 32"),
        ("2_Dense/config.json", {"module_input_name": "token_embeddings"}, "module_input_name is 'token_embeddings'"),
        ("3_Normalize/config.json", {"module_output_name": "x"}, "module_output_name is 'x'"),
        ("sentence_bert_config.json", {"max_seq_length": "12"}, "max_seq_length is '12', expected int"),
        ("sentence_bert_config.json", {"max_seq_length": 0}, "0 tokens"),
        ("sentence_bert_config.json", {"do_lower_case": "yes"}, "do_lower_case is 'yes', expected bool"),
        ("sentence_bert_config.json", {"transformer_task": "fill-mask"}, "transformer_task is 'fill-mask'"),
        ("tokenizer_config.json", {"model_max_length": "512"}, "model_max_length is '512'"),
        ("config_sentence_transformers.json", {"prompts": ["a"]}, r"prompts is \['a'\], expected dict"),
        ("config_sentence_transformers.json", {"prompts": {"a": 1}}, "the prompt 'a' is 1"),
        ("config_sentence_transformers.json", {"default_prompt_name": "a"}, "default_prompt_name is 'a'"),
        ("config_sentence_transformers.json", {"similarity_fn_name": "maxsim"}, "similarity_fn_name is 'maxsim'"),
        ("config_sentence_transformers.json", {"model_type": "SparseEncoder"}, "load it with SparseEncoder"),
        ("config_sentence_transformers.json", {"truncate_dim": 17}, "truncate_dim is 17, but the vectors have 16"),
    ],
)
def test_unsupported_settings_are_refused_with_the_file(folder: Path, file: str, values: Any, message: str) -> None:
    change(folder / file, **values)
    with pytest.raises(ConfigError, match=message) as caught:
        SentenceEncoder.from_pretrained(folder)
    assert str(caught.value).startswith(str(folder))


POOLING = {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
TRANSFORMER = {"path": "", "type": "sentence_transformers.models.Transformer"}


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        ({}, "must be a list of modules"),
        ([], "must begin with a Transformer and a Pooling"),
        ([POOLING, TRANSFORMER], r"not with \['Pooling', 'Transformer'\]"),
        ([TRANSFORMER, POOLING, POOLING], "has a second Pooling"),
        (
            [TRANSFORMER, {"type": "sentence_transformers.models.LSTM"}],
            "a 'sentence_transformers.models.LSTM'; supported",
        ),
        ([TRANSFORMER, POOLING, {"type": "evil.Normalize"}], "module 2 is a 'evil.Normalize'"),
        ([TRANSFORMER, {**POOLING, "path": "../1_Pooling"}], "leaves the model folder"),
        ([{**TRANSFORMER, "path": "/etc"}, POOLING], "leaves the model folder"),
        ([TRANSFORMER, {**POOLING, "path": 3}], "path is 3, expected str"),
        (["Transformer"], "module 0 must be an object with a type"),
        ([TRANSFORMER, {**POOLING, "path": "9_Pooling"}], "cannot be read"),
    ],
)
def test_other_modules_are_refused_by_name(folder: Path, modules: Any, message: str) -> None:
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ConfigError, match=message):
        SentenceEncoder.from_pretrained(folder)


def test_weights_of_a_dense_module_that_do_not_fit_are_refused(folder: Path) -> None:
    change(folder / "2_Dense" / "config.json", out_features=15)
    with pytest.raises(CheckpointError, match=r"linear\.weight has shape \(16, 32\).*\(15, 32\)"):
        SentenceEncoder.from_pretrained(folder)
    (folder / "2_Dense" / "model.safetensors").rename(folder / "2_Dense" / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"pytorch_model\.bin: is not a file of torch\.save"):
        SentenceEncoder.from_pretrained(folder)


# --- variants


@pytest.mark.parametrize("name", ["distilbert_model", "electra_model", "albert_model"])
def test_variants_are_sentence_encoders_too(name: str, tmp_path: Path) -> None:
    folder = with_tokenizer(name, tmp_path)
    model = SentenceEncoder.from_pretrained(folder)
    base = AutoModel.base_from_pretrained(folder)
    vectors = model.encode(["cat", "the cat was in the house"])
    inputs = model.tokenizer(["the cat was in the house"])
    np.testing.assert_allclose(vectors[1], base(**inputs).last_hidden_state[0].mean(axis=0), atol=1e-5)


def test_the_padding_id_does_not_matter_to_mpnet(tmp_path: Path) -> None:
    model = SentenceEncoder.from_pretrained(MODELS / "mpnet_model")
    assert model.max_seq_length == 46
    together = model.encode(["cat", "the cat was in the house"])
    np.testing.assert_allclose(together[0], model.encode("cat"), atol=1e-6)


# --- more modules


def test_layer_norm_and_dropout_follow_the_pooling(tmp_path: Path) -> None:
    folder = sentence_folder("sentence_max", tmp_path)
    plain: Any = SentenceEncoder.from_pretrained(folder).encode(TEXTS)
    modules = json.loads((folder / "modules.json").read_text())
    for number, kind in enumerate(["LayerNorm", "Dropout"], 2):
        modules.append(
            {
                "idx": number,
                "name": str(number),
                "path": f"{number}_{kind}",
                "type": f"sentence_transformers.models.{kind}",
            }
        )
        (folder / f"{number}_{kind}").mkdir()
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "3_Dropout" / "config.json").write_text('{"dropout": 0.2}')
    (folder / "2_LayerNorm" / "config.json").write_text('{"dimension": 32}')
    weight, bias = np.linspace(0.5, 2, 32, dtype=np.float32), np.linspace(-1, 1, 32, dtype=np.float32)
    write_safetensors(folder / "2_LayerNorm" / "model.safetensors", {"norm.weight": weight, "norm.bias": bias})
    mean, variance = plain.mean(axis=1, keepdims=True), plain.var(axis=1, keepdims=True)
    expected = (plain - mean) / np.sqrt(variance + 1e-5) * weight + bias
    np.testing.assert_allclose(SentenceEncoder.from_pretrained(folder).encode(TEXTS), expected, atol=1e-5)
    change(folder / "2_LayerNorm" / "config.json", dimension=31)
    with pytest.raises(ConfigError, match="dimension must be 32"):
        SentenceEncoder.from_pretrained(folder)


def test_layers_are_weighted_before_the_pooling_if_the_transformer_returns_them(tmp_path: Path) -> None:
    folder = with_tokenizer("bert_model", tmp_path)
    kinds = ["Transformer", "WeightedLayerPooling", "Pooling"]
    modules = [
        {"idx": i, "name": str(i), "path": f"{i}_{kind}" if i else "", "type": f"sentence_transformers.models.{kind}"}
        for i, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    for module in modules[1:]:
        (folder / module["path"]).mkdir()
    (folder / "1_WeightedLayerPooling" / "config.json").write_text('{"layer_start": 2, "num_hidden_layers": 3}')
    (folder / "2_Pooling" / "config.json").write_text('{"embedding_dimension": 48, "pooling_mode": "max"}')
    write_safetensors(folder / "1_WeightedLayerPooling" / "model.safetensors", {"layer_weights": np.array([0.5, -2.0])})
    base = AutoModel.base_from_pretrained(folder)
    model = SentenceEncoder.from_pretrained(folder)  # sentence-transformers ignores the module here
    states: Any = base(**model.tokenizer(["the cat"]), output_hidden_states=True).hidden_states
    np.testing.assert_allclose(model.encode("the cat"), states[3][0].max(axis=0), atol=1e-6)
    change(folder / "config.json", output_hidden_states=True)
    model = SentenceEncoder.from_pretrained(folder)
    expected = (0.5 * states[2][0] - 2 * states[3][0]) / -1.5
    np.testing.assert_allclose(model.encode("the cat"), expected.max(axis=0), atol=1e-5)
    np.testing.assert_allclose(model.encode_tokens("the cat").vectors, expected, atol=1e-5)
    change(folder / "1_WeightedLayerPooling" / "config.json", layer_start=4)
    with pytest.raises(ConfigError, match="layer_start is 4, but the Transformer has 3 layers"):
        SentenceEncoder.from_pretrained(folder)
    change(folder / "1_WeightedLayerPooling" / "config.json", layer_start=1)
    with pytest.raises(CheckpointError, match=r"layer_weights has shape \(2,\).*\(3,\)"):
        SentenceEncoder.from_pretrained(folder)


# --- the names of sentence-transformers


def test_an_encoder_is_made_of_a_name(folder: Path) -> None:
    loaded = SentenceEncoder.from_pretrained(folder)
    named = SentenceEncoder(folder, device="cpu", threads=1)
    np.testing.assert_array_equal(named.encode(TEXTS), loaded.encode(TEXTS))
    assert named.get_sentence_embedding_dimension() == named.dimension
    with pytest.raises(InputError, match="the CPU only"):
        SentenceEncoder(folder, device="cuda")
    with pytest.raises(InputError, match="named by a str or a path, not BertModel"):
        SentenceEncoder(transformer_of(loaded).model)  # type: ignore[arg-type]


def test_arguments_of_encode(encoder: SentenceEncoder) -> None:
    texts = ["a b", "c"]
    expected = encoder.encode(texts)
    np.testing.assert_array_equal(encoder.encode(sentences=texts), expected)
    np.testing.assert_array_equal(encoder.encode(inputs=texts, device="cpu"), expected)
    positional = encoder.encode(
        texts, None, None, 32, False, "sentence_embedding", "float32", True, False, "cpu", True, 8
    )
    np.testing.assert_array_equal(positional, encoder.encode(texts, normalize_embeddings=True, truncate_dim=8))
    listed: Any = encoder.encode(texts, convert_to_numpy=False)
    assert isinstance(listed, list)
    np.testing.assert_array_equal(np.stack(listed), expected)
    assert encoder.encode(texts[0], convert_to_numpy=False).shape == expected[0].shape
    with pytest.raises(InputError, match="texts and sentences are names of one argument"):
        encoder.encode(texts, sentences=texts)
    with pytest.raises(InputError, match="texts must not be None"):
        encoder.encode()
    with pytest.raises(InputError, match="the CPU only"):
        encoder.encode(texts, device="cuda:0")
    with pytest.raises(InputError, match="one process uses all CPUs"):
        encoder.encode(texts, pool={})  # type: ignore[call-overload]


def test_all_values_of_a_text(encoder: SentenceEncoder) -> None:
    texts = ["a b", "c"]
    features = encoder.encode(texts, output_value=None)
    vectors, tokens = encoder.encode(texts), encoder.encode(texts, output_value="token_embeddings")
    for index, item in enumerate(features):
        assert list(item) == ["input_ids", "attention_mask", "token_embeddings", "sentence_embedding"]
        assert item["input_ids"].tolist() == encoder.tokenizer.encode(texts[index]).ids
        assert item["attention_mask"].tolist() == [1] * len(item["input_ids"])
        np.testing.assert_array_equal(item["sentence_embedding"], vectors[index])
        np.testing.assert_array_equal(item["token_embeddings"], tokens[index])
    one = encoder.encode(texts[0], output_value=None)
    np.testing.assert_array_equal(one["sentence_embedding"], vectors[0])
    with pytest.raises(InputError, match="are for sentence vectors"):
        encoder.encode(texts, output_value=None, normalize_embeddings=True)


def test_tensors_need_pytorch(encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match="pip install torch"):
        encoder.encode(["a"], convert_to_tensor=True)
    torch = types.ModuleType("torch")
    torch.from_numpy = lambda array: ("tensor", array)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    kind, array = encoder.encode("a", convert_to_tensor=True)
    assert kind == "tensor"
    np.testing.assert_array_equal(array, encoder.encode("a"))
    for kind, array in encoder.encode(["a"], convert_to_tensor=True, output_value="token_embeddings"):
        assert (kind, array.ndim) == ("tensor", 2)
    assert {kind for kind, _ in encoder.encode("a", convert_to_tensor=True, output_value=None).values()} == {"tensor"}


def test_every_model_has_the_usual_prompts(encoder: SentenceEncoder) -> None:
    encoder._folder.prompts.clear()
    for name in ("query", "document"):
        np.testing.assert_array_equal(encoder.encode(TEXTS, prompt_name=name), encoder.encode(TEXTS))
    with pytest.raises(InputError, match="no prompt 'other'"):
        encoder.encode(TEXTS, prompt_name="other")
