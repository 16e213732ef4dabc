"""ModernBERT: windows, configurations, files, and the encoders and rankers that are built on it.

Outputs and losses of the reference models are compared in test_heads.py and test_engines.py, all number types in
test_dtypes_of_variants.py.
"""

from __future__ import annotations

import json
import pickle
import shutil
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_files import MODELS, copied, reference_cases, reference_vectors, write_safetensors
from random_models import random_model
from wordpiece_bert import CrossEncoder, MultiVectorEncoder, SentenceEncoder, SparseEncoder
from wordpiece_bert.bert import AutoModel, ModernBertConfig, ModernBertForMaskedLM, ModernBertModel, functional
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.bert.rotary import frequencies, rotate, rotation
from wordpiece_bert.errors import CheckpointError, CheckpointWarning, ConfigError
from wordpiece_bert.tokenizer.subword import SubwordTokenizer

SLIDING, FULL = "sliding_attention", "full_attention"


def small(**fields: Any) -> ModernBertConfig:
    """A configuration of a small model."""
    values = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2}
    return ModernBertConfig(**{**values, "intermediate_size": 20, "pad_token_id": 0, "local_attention": 4, **fields})


# --- what it computes


def test_attention_with_a_window_is_that_of_each_query_alone() -> None:
    random = np.random.default_rng(7)
    x = random.normal(size=(2, 11, 12)).astype("f4")
    layers = [{"weight": random.normal(size=(12, 12)).astype("f4")} for _ in range(3)]
    mask = np.array([[True] * 11, [False] * 5 + [True] * 3 + [False] * 2 + [True]])
    by = rotation(np.arange(11)[None], frequencies(4, 100.0))
    context, p = functional.self_attention(x, *layers, heads=3, mask=mask, rotation=by, window=2)
    q, k, v = (functional.split_heads(functional.linear(x, **layer), 3) for layer in layers)
    q, k = rotate(q, by), rotate(k, by)
    for b, head, i in np.ndindex(2, 3, 11):
        seen = np.array([j for j in range(11) if mask[b, j] and abs(i - j) <= 2], np.int64)
        expected, weights = np.zeros(4), np.zeros(11)
        if len(seen):
            weights[seen] = functional.softmax(k[b, head, seen] @ q[b, head, i] / 2)
            expected = weights[seen] @ v[b, head, seen]
        np.testing.assert_allclose(p[b, head, i], weights, atol=1e-6)
        np.testing.assert_allclose(context[b, i, head * 4 : head * 4 + 4], expected, atol=1e-5)


def test_memory_of_layers_with_a_window_grows_linearly() -> None:
    """The scores of all pairs of 4,000 positions would take 64 MB a head."""
    config = small(layer_types=(SLIDING, SLIDING, SLIDING), local_attention=64)
    model = random_model(ModernBertModel, config, "numpy")
    ids = np.random.default_rng(0).integers(0, 50, (1, 4000))
    model(ids[:, :10])
    tracemalloc.start()
    model(ids)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000


@pytest.mark.parametrize("backend", ["rust", "numpy"])
def test_token_types_are_ignored_and_rows_have_no_limit(backend: str) -> None:
    model = random_model(ModernBertModel, small(max_position_embeddings=8), backend)
    ids = np.arange(40)[None]
    found = model(ids, token_type_ids=np.ones((1, 40), np.int64))
    assert found.pooler_output is None
    np.testing.assert_array_equal(found.last_hidden_state, model(ids).last_hidden_state)


# --- configurations


def test_an_empty_configuration_has_the_defaults_of_the_released_model() -> None:
    config = ModernBertConfig.from_dict({"model_type": "modernbert"})
    assert config == ModernBertConfig()
    assert (config.vocab_size, config.hidden_size, config.intermediate_size) == (50_368, 768, 1152)
    assert (config.num_hidden_layers, config.num_attention_heads, config.hidden_act) == (22, 12, "gelu")
    assert (config.max_position_embeddings, config.layer_norm_eps, config.pad_token_id) == (8192, 1e-5, 50_283)
    assert (config.classifier_pooling, config.classifier_activation, config.decoder_bias) == ("cls", "gelu", True)
    biases = (config.norm_bias, config.attention_bias, config.mlp_bias, config.classifier_bias)
    assert biases == (False, False, False, False)
    assert [i for i, kind in enumerate(config.kinds_of_layers) if kind == FULL] == [0, 3, 6, 9, 12, 15, 18, 21]
    assert config.layer_positions(0) == ((64, 160_000.0, 1.0), None)
    assert config.layer_positions(1) == ((64, 10_000.0, 1.0), 64)


ROPE = {FULL: {"rope_type": "default", "rope_theta": 7.0}, SLIDING: {"rope_type": "default", "rope_theta": 5.0}}


@pytest.mark.parametrize(
    ("values", "thetas"),
    [
        ({"global_rope_theta": 7.0, "local_rope_theta": 5}, (7.0, 5)),
        ({"rope_parameters": ROPE, "global_rope_theta": 1.0, "rope_theta": 2.0}, (7.0, 5.0)),
        ({"rope_parameters": {FULL: {"rope_theta": 7.0}}, "local_rope_theta": 3.0}, (7.0, 3.0)),
        ({"rope_parameters": None, "rope_scaling": {"type": "default"}, "rope_theta": 2.0}, (160_000.0, 10_000.0)),
        ({"rope_parameters": {FULL: None, SLIDING: {}}, "global_rope_theta": 9.0}, (9.0, 10_000.0)),
    ],
)
def test_theta_is_read_in_either_form(values: Any, thetas: Any) -> None:
    config = ModernBertConfig.from_dict(values)
    assert (config.global_rope_theta, config.local_rope_theta) == thetas
    assert ModernBertConfig.from_dict(config.to_dict()).layer_positions(1) == config.layer_positions(1)


def test_kinds_of_layers_that_are_given_win_over_the_number() -> None:
    values = {"num_hidden_layers": 2, "layer_types": [SLIDING, FULL], "global_attn_every_n_layers": 1}
    config = ModernBertConfig.from_dict(values)
    assert config.kinds_of_layers == (SLIDING, FULL)
    assert ModernBertConfig.from_dict({"num_hidden_layers": 4, "global_attn_every_n_layers": 2}).to_dict()[
        "layer_types"
    ] == [FULL, SLIDING, FULL, SLIDING]


def test_fields_without_a_meaning_are_not_refused() -> None:
    values = {"position_embedding_type": "absolute", "layer_norm_eps": 7, "reference_compile": True}
    values |= {"sparse_prediction": True, "sparse_pred_ignore_index": 3, "deterministic_flash_attn": True}
    assert ModernBertConfig.from_dict(values) == ModernBertConfig()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"layer_types": [FULL]}, "layer_types is .*there must be one for each of the 22 layers"),
        ({"layer_types": [], "num_hidden_layers": 2}, "layer_types"),
        ({"layer_types": ["chunked_attention"], "num_hidden_layers": 1}, "layer_types is 'chunked_attention'"),
        ({"layer_types": "full_attention"}, "layer_types is 'full_attention': it must be a list"),
        ({"rope_parameters": {FULL: {"rope_type": "yarn"}}}, "full_attention.rope_type is 'yarn'"),
        ({"rope_scaling": {"type": "linear", "factor": 2}}, "rope_scaling.type is 'linear'"),
        ({"rope_scaling": 3}, "rope_scaling is 3"),
        (
            {"rope_parameters": {"rope_theta": 5.0, "rope_type": "default"}},
            "rope_parameters is .*must be an object with",
        ),
        ({"rope_parameters": {SLIDING: {"partial_rotary_factor": 0.5}}}, "partial_rotary_factor is 0.5"),
        ({"rope_parameters": {SLIDING: {"rope_theta": None}}}, "local_rope_theta is None"),
        ({"global_rope_theta": None}, "global_rope_theta is None"),
        ({"global_rope_theta": 0}, "global_rope_theta is 0"),
        ({"local_attention": 0}, "local_attention is 0"),
        ({"local_attention": 2.5}, "local_attention is 2.5"),
        ({"global_attn_every_n_layers": 0}, "global_attn_every_n_layers is 0"),
        ({"classifier_pooling": "max"}, "classifier_pooling is 'max'"),
        ({"classifier_activation": "swiglu"}, "classifier_activation is 'swiglu'"),
        ({"hidden_activation": "swiglu"}, "hidden_activation is 'swiglu'"),
        ({"norm_bias": 1}, "norm_bias is 1"),
        ({"norm_eps": -1}, "norm_eps is -1"),
        ({"hidden_size": 12, "num_attention_heads": 4}, "heads of 3 columns cannot be rotated"),
        ({"hidden_size": 13, "num_attention_heads": 4}, "hidden_size is 13"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(values: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ModernBertConfig.from_dict(values)


# --- files


@pytest.mark.parametrize("folder", sorted(file.parent.name for file in MODELS.glob("modernbert_*/reference.npz")))
def test_a_saved_folder_has_the_tensors_of_the_original(folder: str, tmp_path: Path) -> None:
    model: Any = AutoModel.from_pretrained(MODELS / folder)
    model.save_pretrained(tmp_path)
    expected = dict(read_tensors(MODELS / folder / "model.safetensors"))
    found = dict(read_tensors(tmp_path / "model.safetensors"))
    expected.pop("decoder.weight", None) if model.config.tie_word_embeddings else None
    assert {name: x.shape for name, x in found.items()} == {name: x.shape for name, x in expected.items()}
    for name, x in expected.items():
        np.testing.assert_array_equal(np.asarray(found[name], np.float32), np.asarray(x, np.float32))
    written = json.loads((tmp_path / "config.json").read_text())
    original = json.loads((MODELS / folder / "config.json").read_text())
    for name in ("layer_types", "rope_parameters", "local_attention", "norm_eps", "hidden_activation", "norm_bias"):
        assert written[name] == original[name]
    inputs = next(iter(reference_cases(folder).values()))[0]
    again: Any = AutoModel.from_pretrained(tmp_path)
    names = [name for name in ("logits", "last_hidden_state", "start_logits") if hasattr(model(**inputs), name)]
    np.testing.assert_array_equal(getattr(again(**inputs), names[0]), getattr(model(**inputs), names[0]))


def test_an_encoder_is_loaded_from_names_with_and_without_the_prefix(tmp_path: Path) -> None:
    expected: Any = AutoModel.base_from_pretrained(MODELS / "modernbert_masked_lm")
    tensors = read_tensors(MODELS / "modernbert_masked_lm" / "model.safetensors")
    encoder = {name.removeprefix("model."): x for name, x in tensors.items() if name.startswith("model.")}
    shutil.copy(MODELS / "modernbert_masked_lm" / "config.json", tmp_path)
    write_safetensors(tmp_path / "model.safetensors", encoder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ModernBertModel.from_pretrained(tmp_path)
    np.testing.assert_array_equal(found([[5, 9]]).last_hidden_state, expected([[5, 9]]).last_hidden_state)


def test_a_tensor_of_three_weights_has_rows_for_each() -> None:
    config = small(num_hidden_layers=1)
    weights = dict(random_model(ModernBertModel, config, "numpy").named_parameters())
    weights["layers.0.attn.Wqkv.weight"] = np.zeros((47, 16), np.float32)
    with pytest.raises(CheckpointError, match=r"Wqkv.weight has shape \[47, 16\], but holds 3 weights"):
        ModernBertModel(config, weights)
    weights["layers.0.attn.Wqkv.weight"] = np.zeros((45, 16), np.float32)
    with pytest.raises(CheckpointError, match=r"Wqkv.query.weight has shape \[15, 16\].*requires \[16, 16\]"):
        ModernBertModel(config, weights)


# --- encoders and rankers


@pytest.mark.parametrize("backend", ["rust", "numpy"])
@pytest.mark.parametrize("name", ["st_modernbert_mean", "st_modernbert_cls", "st_deberta"])
def test_sentence_vectors_equal_sentence_transformers(name: str, backend: str) -> None:
    pytest.importorskip("tokenizers")
    listing, expected = reference_vectors(name)
    encoder = SentenceEncoder(MODELS / name, backend)
    rows = encoder.tokenizer.encode_batch(listing["texts"], truncation=True, max_length=encoder.max_seq_length)
    assert [rows[i].tolist() for i in range(len(rows))] == listing["ids"]
    for call in listing["calls"]:
        with pytest.warns(match="truncated"):
            found = getattr(encoder, call["method"])(listing["texts"], **call["options"])
        np.testing.assert_allclose(found, expected[call["key"]], rtol=0, atol=1e-5)


@pytest.mark.filterwarnings("ignore::wordpiece_bert.errors.TruncationWarning")
@pytest.mark.parametrize("backend", ["rust", "numpy"])
@pytest.mark.parametrize(
    "name",
    ["rerank_deberta", "rerank_modernbert", "rerank_modules_ettin", "rerank_modules_mean", "rerank_modules_sigmoid"],
)
def test_scores_of_pairs_equal_sentence_transformers(name: str, backend: str) -> None:
    pytest.importorskip("tokenizers")
    listing, expected = reference_vectors(name)
    ranker = CrossEncoder(MODELS / name, backend)
    for call in listing["calls"]:
        options = dict(call["options"])
        if options.pop("raw", False):
            options["activation_fn"] = lambda x: x
        found = ranker.predict(listing["pairs"], **options)
        np.testing.assert_allclose(found, expected[call["key"]], rtol=0, atol=1e-5)
    again = pickle.loads(pickle.dumps(ranker))
    np.testing.assert_array_equal(again.predict(listing["pairs"]), ranker.predict(listing["pairs"]))


@pytest.mark.filterwarnings("ignore::wordpiece_bert.errors.TruncationWarning")
@pytest.mark.parametrize("backend", ["rust", "numpy"])
@pytest.mark.parametrize("name", ["multi_vector_modernbert", "multi_vector_modernbert_pylate"])
def test_token_vectors_equal_those_of_the_reference_programs(name: str, backend: str) -> None:
    pytest.importorskip("tokenizers")
    listing, expected = reference_vectors(name)
    encoder = MultiVectorEncoder(MODELS / name, backend)
    queries, documents = encoder.encode_query(listing["queries"]), encoder.encode_document(listing["documents"])
    for key, vectors in (("query", queries), ("document", documents)):
        np.testing.assert_array_equal(vectors.offsets, expected[f"{key}.offsets"])
        np.testing.assert_allclose(vectors.vectors, expected[f"{key}.values"], rtol=0, atol=1e-5)
    scores = encoder.similarity(queries, documents)
    np.testing.assert_allclose(scores, expected["similarity"], rtol=1e-5, atol=1e-5)
    assert encoder.prompts == listing["prompts"]


def test_markers_of_a_vocabulary_are_not_split(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    folder = copied("multi_vector_modernbert_pylate", tmp_path)
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    markers = {
        token["content"]: token["id"] for token in content["added_tokens"] if token["content"] in ("[Q] ", "[D] ")
    }
    content["added_tokens"] = [token for token in content["added_tokens"] if token["content"] not in markers]
    content["model"]["vocab"] |= markers
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    tokenizer, plain = MultiVectorEncoder(folder).tokenizer, SubwordTokenizer(folder)
    for marker in markers:
        index = plain.token_to_id(marker)
        assert len(plain.encode(marker + "the city").ids) > len(tokenizer.encode(marker + "the city").ids)
        assert tokenizer.encode(marker + "the city").ids == [
            *tokenizer.encode("").ids[:1],
            index,
            *tokenizer.encode("the city").ids[1:],
        ]


def scores_folder(parent: Path, change: dict[str, Any] | None = None, **settings: Any) -> Path:
    """Copy a reranker of modules, with changed files."""
    folder = copied("rerank_modules_ettin", parent, "config_sentence_transformers.json", **settings)
    for file, values in (change or {}).items():
        if isinstance(values, list):
            (folder / file).write_text(json.dumps(values))
        else:
            (folder / file).write_text(json.dumps(json.loads((folder / file).read_text()) | values))
    return folder


PAIRS = [("the city", "a dog by night"), ("the city", "")]


def test_the_activation_is_the_first_that_is_named(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    raw = CrossEncoder(MODELS / "rerank_modules_ettin").predict(PAIRS, activation_fn=lambda x: x)
    newer = {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Tanh"}}
    older = {"sbert_ce_default_activation_function": "torch.nn.modules.activation.ReLU"}
    cases = [
        (newer | older, "torch.nn.modules.activation.GELU", functional.gelu),
        (newer | older, None, np.tanh),
        (older, None, functional.relu),
        ({}, None, functional.sigmoid),
    ]
    for i, (config, name, function) in enumerate(cases):
        folder = scores_folder(tmp_path / str(i), {"config.json": config}, activation_fn=name)
        np.testing.assert_allclose(CrossEncoder(folder).predict(PAIRS), function(raw), rtol=0, atol=1e-6)
    folder = scores_folder(tmp_path / "other", {"config.json": newer}, activation_fn="my_package.Scale")
    with pytest.warns(CheckpointWarning, match="'my_package.Scale' is code of another package"):
        ranker = CrossEncoder(folder)
    np.testing.assert_allclose(ranker.predict(PAIRS), functional.sigmoid(raw), rtol=0, atol=1e-6)
    given = CrossEncoder(MODELS / "rerank_modules_ettin", activation_fn=np.tanh)
    np.testing.assert_allclose(given.predict(PAIRS), np.tanh(raw), rtol=0, atol=1e-6)


def module(kind: str, path: str) -> dict[str, Any]:
    return {"idx": 0, "name": "0", "path": path, "type": f"sentence_transformers.models.{kind}"}


TRANSFORMER, POOLING = module("Transformer", ""), module("Pooling", "1_Pooling")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"modules.json": [TRANSFORMER, POOLING]}, "does not end in a Dense whose module_output_name is 'scores'"),
        ({"modules.json": [TRANSFORMER, POOLING, module("Dense", "2_Dense")]}, "does not end in a Dense"),
        ({"modules.json": [TRANSFORMER, module("LogitScore", "1_LogitScore")]}, "LogitScore"),
        ({"modules.json": [TRANSFORMER, module("Dense", "4_Dense")]}, "must begin with a Transformer and a Pooling"),
        ({"modules.json": []}, "must begin with a Transformer and a Pooling"),
        ({"2_Dense/config.json": {"module_output_name": "scores"}}, "module_output_name is 'scores'"),
        ({"4_Dense/config.json": {"in_features": 31}}, "in_features is 31"),
        ({"1_Pooling/config.json": {"include_prompt": False}}, "include_prompt is false"),
        ({"sentence_bert_config.json": {"transformer_task": "text-generation"}}, "transformer_task"),
    ],
)
def test_other_chains_of_modules_are_no_rankers(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        CrossEncoder(scores_folder(tmp_path, change))


def test_a_ranker_of_modules_is_no_sentence_encoder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="CrossEncoder"):
        SentenceEncoder(MODELS / "rerank_modules_ettin")
    with pytest.raises(ConfigError, match="module_output_name is 'scores'"):
        SentenceEncoder(scores_folder(tmp_path, model_type=...))


def test_a_classifier_may_be_listed_as_the_only_module(tmp_path: Path) -> None:
    """As sentence-transformers 6 saves it."""
    pytest.importorskip("tokenizers")
    folder = copied("rerank_modernbert", tmp_path)
    (folder / "modules.json").write_text(json.dumps([TRANSFORMER]))
    task = {"transformer_task": "sequence-classification", "module_output_name": "scores"}
    (folder / "sentence_bert_config.json").write_text(json.dumps(task))
    settings = {"model_type": "CrossEncoder", "activation_fn": "torch.nn.modules.activation.Tanh"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    raw = CrossEncoder(MODELS / "rerank_modernbert").predict(PAIRS, activation_fn=lambda x: x)
    np.testing.assert_allclose(CrossEncoder(folder).predict(PAIRS), np.tanh(raw), rtol=0, atol=1e-6)


@pytest.mark.parametrize("backend", ["rust", "numpy"])
def test_a_masked_language_head_makes_sparse_vectors(backend: str, tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    folder = copied("modernbert_masked_lm_untied", tmp_path)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(MODELS / "st_modernbert_mean" / file, folder)
    for file in ("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"):
        shutil.copy(MODELS / "splade_max" / file, folder)
    shutil.copytree(MODELS / "splade_max" / "1_SpladePooling", folder / "1_SpladePooling")
    encoder = SparseEncoder(folder, backend)
    texts = ["the city by night", "a dog", ""]
    model = ModernBertForMaskedLM.from_pretrained(folder, "numpy")
    for text, vector in zip(texts, encoder.encode(texts).toarray(), strict=True):
        logits = model([encoder.tokenizer.encode(text).ids]).logits[0]  # [S, V]
        expected = np.log1p(np.maximum(logits, 0)).max(axis=0)
        np.testing.assert_allclose(vector, expected, rtol=0, atol=1e-5)
