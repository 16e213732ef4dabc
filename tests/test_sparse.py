"""Sparse encoders: vectors against sentence-transformers' numbers, the formulas, all forms of folders, and what is refused."""

from __future__ import annotations

import itertools
import json
import pickle
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wordpiece_bert as wb
from model_files import MODELS, copied, reference_vectors, write_safetensors
from wordpiece_bert import _core
from wordpiece_bert.bert import AutoModel
from wordpiece_bert.bert.engines.vocabulary_heads import NumpyVocabularyHead, RustVocabularyHead
from wordpiece_bert.errors import CheckpointError, ConfigError, InputError, TruncationWarning
from wordpiece_bert.sentence import SentenceEncoder, SparseEncoder, SparseVectors

FOLDERS = sorted(folder.name for folder in MODELS.glob("splade_*"))
TEXTS = ["New dog", "", "the river is good!", "☃", "people of the city on a day", "she x1y2", "water"] * 3

pytestmark = pytest.mark.filterwarnings("ignore::wordpiece_bert.errors.TruncationWarning")


@pytest.fixture(scope="module")
def encoder() -> SparseEncoder:
    return SparseEncoder(MODELS / "splade_max")


@pytest.mark.parametrize("backend", ["rust", "numpy"])
@pytest.mark.parametrize("name", FOLDERS)
def test_vectors_are_those_of_the_reference_program(name: str, backend: str) -> None:
    listing, expected = reference_vectors(name)
    encoder = SparseEncoder.from_pretrained(MODELS / name, backend)
    for call in listing["calls"]:
        vectors = getattr(encoder, call["method"])(listing["texts"], **call["options"])
        indptr, indices, values, shape = (
            expected[f"{call['key']}.{x}"] for x in ("indptr", "indices", "values", "shape")
        )
        assert vectors.shape == tuple(shape)
        assert np.array_equal(vectors.indptr, indptr)
        assert np.array_equal(vectors.indices, indices)
        np.testing.assert_allclose(vectors.values, values, rtol=1e-6, atol=1e-6)
    assert encoder.similarity_fn_name == listing["similarity_fn_name"]
    assert encoder.max_active_dims == listing["max_active_dims"]


@pytest.mark.parametrize("name", FOLDERS)
def test_scores_and_tokens_are_those_of_the_reference_program(name: str) -> None:
    listing, expected = reference_vectors(name)
    encoder = SparseEncoder(MODELS / name)
    documents = encoder.encode_document(listing["texts"])
    queries = encoder.encode_query(listing["texts"][: len(expected["similarity"])])
    scores = encoder.similarity(queries, documents)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected["similarity"], rtol=1e-5, atol=1e-5)
    pairs = encoder.similarity_pairwise(queries, documents[: len(queries)])
    np.testing.assert_allclose(pairs, np.diagonal(scores), rtol=1e-6)
    found = encoder.decode(encoder.encode(listing["texts"][: len(listing["decoded"])]), top_k=5)
    one = encoder.encode(listing["texts"][0])
    assert encoder.decode(one.toarray().tolist(), top_k=5) == found[0]
    assert encoder.intersection(one, one.toarray().tolist()).shape == one.shape
    for ours, theirs in zip(found, listing["decoded"], strict=True):
        assert [token for token, _ in ours] == [token for token, _ in theirs]
        assert [value for _, value in ours] == pytest.approx([value for _, value in theirs], abs=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["splade_max", "splade_sum"])
def test_a_text_has_the_same_bits_in_any_batch_and_with_any_threads(name: str, dtype: str) -> None:
    together = SparseEncoder(MODELS / name, dtype=dtype, threads=1).encode(TEXTS)
    for threads in (1, 2, 3):
        encoder = SparseEncoder(MODELS / name, dtype=dtype, threads=threads)
        assert encoder.encode(TEXTS) == together
        assert encoder.encode(TEXTS[::-1])[::-1] == together
        for i in range(7):
            assert encoder.encode(TEXTS[i]) == together[i]


@pytest.mark.parametrize("name", ["splade_max", "splade_log1p"])
def test_bfloat16_is_close_to_float32(name: str) -> None:
    exact = SparseEncoder(MODELS / name).encode(TEXTS).toarray()
    half = SparseEncoder(MODELS / name, dtype="bfloat16").encode(TEXTS).toarray()
    assert 0 < np.abs(exact - half).max() < 0.03


HEADS = [
    "bert_masked_lm",
    "distilbert_masked_lm",
    "electra_generator",
    "gte_masked_lm",
    "megatron_masked_lm",
    "mpnet_masked_lm",
    "nomic_masked_lm",
    "roberta_masked_lm",
    "variant_untied",
]


@pytest.mark.parametrize("pooling", ["max", "sum"])
@pytest.mark.parametrize("name", [name for name in HEADS if (MODELS / name).is_dir()])
def test_pooled_heads_are_the_formula_over_the_logits_of_every_family(name: str, pooling: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [AutoModel.from_pretrained(MODELS / name, backend) for backend in ("rust", "numpy")]
    if not hasattr(models[0], "vocabulary_head"):
        pytest.skip(f"{name} has no masked-language head")
    rng = np.random.default_rng(5)
    x = rng.standard_normal((13, models[0].config.hidden_size)).astype(np.float32)
    ends = np.array([0, 4, 5, 13])
    logits = models[1].predict(x).astype(np.float64)
    for twice in (False, True):
        w = np.log1p(np.maximum(logits, 0))
        w = np.log1p(w) if twice else w
        rows = [getattr(w[a:b], pooling)(axis=0) for a, b in itertools.pairwise(ends)]
        for model in models:
            arrays = model.vocabulary_head().encode(x, ends, pooling, twice=twice, max_values=None, threads=None)
            dense = SparseVectors(*arrays, (3, logits.shape[1])).toarray()
            np.testing.assert_allclose(dense, np.stack(rows), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("instruction_set", _core.kernel_instruction_sets())
@given(
    seed=st.integers(0, 2**32 - 1),
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=12),
    vocabulary=st.sampled_from([1, 31, 32, 33, 255, 256, 257, 600]),
    pooling=st.sampled_from(["max", "sum"]),
    twice=st.booleans(),
    most=st.one_of(st.none(), st.integers(1, 50)),
)
def test_every_instruction_set_pools_as_numpy(
    instruction_set: str,
    seed: int,
    lengths: list[int],
    vocabulary: int,
    pooling: Any,
    twice: bool,
    most: int | None,
) -> None:
    from wordpiece_bert.bert.engines.engine_interface import HeadLayers

    rng = np.random.default_rng(seed)
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    layers = HeadLayers(
        (draw(20, 24), draw(20)), "gelu", (draw(20), draw(20)), 1e-12, (draw(vocabulary, 20), draw(vocabulary))
    )
    ends = np.concatenate([[0], np.cumsum(lengths)])
    x = draw(int(ends[-1]), 24)
    heads = NumpyVocabularyHead(layers), RustVocabularyHead(layers, instruction_set=instruction_set)
    options: Any = {"twice": twice, "threads": None}
    dense = []
    for head in heads:
        arrays = head.encode(x, ends, pooling, max_values=None, **options)
        dense.append(SparseVectors(*arrays, (len(lengths), vocabulary)).toarray())
    np.testing.assert_allclose(dense[1], dense[0], rtol=2e-5, atol=2e-5)
    everything = SparseVectors(
        *heads[1].encode(x, ends, pooling, max_values=None, **options), (len(lengths), vocabulary)
    )
    best = RustVocabularyHead(layers).encode(x, ends, pooling, max_values=None, **options)
    assert everything == SparseVectors(*best, (len(lengths), vocabulary))
    if most is not None:
        few = SparseVectors(*heads[1].encode(x, ends, pooling, max_values=most, **options), (len(lengths), vocabulary))
        assert few == everything.top(most)


@pytest.mark.parametrize("pooling", ["max", "sum"])
def test_not_a_number_is_kept(pooling: Any) -> None:
    from wordpiece_bert.bert.engines.engine_interface import HeadLayers

    rng = np.random.default_rng(1)
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    layers = HeadLayers((draw(9, 4), draw(9)), "gelu", (draw(9), draw(9)), 1e-12, (draw(70, 9), draw(70)))
    x, ends = np.array([[1, 2, 3, 4], [np.nan, 2, 3, 4]], np.float32), np.array([0, 2])
    for instruction_set in _core.kernel_instruction_sets():
        for head in (NumpyVocabularyHead(layers), RustVocabularyHead(layers, instruction_set=instruction_set)):
            arrays = head.encode(x, ends, pooling, max_values=None, twice=False, threads=None)
            assert np.isnan(SparseVectors(*arrays, (1, 70)).toarray()).all()
    layers.decoder[0][5] = np.float32(-np.nan)
    for head in (NumpyVocabularyHead(layers), RustVocabularyHead(layers)):
        assert 5 in head.encode(x[:1], ends - [0, 1], pooling, max_values=1, twice=False, threads=None)[1]


def test_empty_unknown_and_long_texts(encoder: SparseEncoder) -> None:
    vectors, truncated = encoder.encode(["", "☃", "the " * 100], return_truncated=True)
    assert truncated.tolist() == [False, False, True]
    assert (np.diff(vectors.indptr) > 0).all()  # [CLS] and [SEP] have logits too
    with pytest.warns(TruncationWarning, match="1 of 1 texts were truncated to 48 tokens"):
        encoder.encode(["the " * 100])
    nothing = encoder.encode([])
    assert nothing.shape == (0, encoder.dimension)
    assert nothing.toarray().shape == (0, encoder.dimension)
    one, cut = encoder.encode("the dog", return_truncated=True)
    assert one.shape == (encoder.dimension,)
    assert cut is False
    assert np.array_equal(one.toarray(), encoder.encode(["the dog"]).toarray()[0])


def test_inference_free_queries_weigh_each_token_once() -> None:
    encoder = SparseEncoder(MODELS / "splade_inference_free")
    weights = encoder._routes["query"].weights.weights  # type: ignore[attr-defined]
    once, thrice, empty, unknown = encoder.encode_query(["the dog", "dog the the dog the", "", "☃"])
    assert once == thrice
    assert once.indices.tolist() == sorted(encoder.tokenizer.convert_tokens_to_ids(["the", "dog"]))
    assert np.array_equal(once.values, weights[once.indices])
    assert len(empty.indices) == 0
    assert unknown.indices.tolist() in ([encoder.tokenizer.unk_token_id], [])
    assert encoder.encode(["the"]) == encoder.encode_document(["the"])  # the default route
    signed = weights * np.where(np.arange(len(weights)) % 2, -1, 1)
    route = encoder._routes["query"]
    encoder._routes["query"] = route._replace(weights=replace(route.weights, weights=signed))  # type: ignore[attr-defined]
    (few,) = encoder.encode_query(["the dog is good"], max_active_dims=2)
    (everything,) = encoder.encode_query(["the dog is good"])
    assert sorted(np.abs(few.values)) == sorted(np.abs(everything.values))[-2:]


@pytest.mark.parametrize("count", [1, 3, 20, 10_000])
def test_the_greatest_values_are_kept(encoder: SparseEncoder, count: int) -> None:
    everything = encoder.encode(TEXTS)
    kept = encoder.encode(TEXTS, max_active_dims=count)
    assert kept == everything.top(count)
    assert kept == SparseEncoder(MODELS / "splade_max", max_active_dims=count).encode(TEXTS)
    assert kept == SparseEncoder(MODELS / "splade_max", backend="rust").encode(TEXTS, max_active_dims=count)
    for few, all_values in zip(kept.toarray(), everything.toarray(), strict=True):
        assert sorted(few[few > 0]) == sorted(all_values[all_values > 0])[-count:]


@pytest.mark.parametrize("count", [0, -1, 1.5, True])
def test_a_number_of_values_below_1_is_refused(encoder: SparseEncoder, count: Any) -> None:
    with pytest.raises(InputError, match="max_active_dims must be a whole number"):
        encoder.encode(["a"], max_active_dims=count)
    with pytest.raises(InputError, match="max_active_dims must be a whole number"):
        SparseEncoder(MODELS / "splade_max", max_active_dims=count)


def test_prompts_go_before_the_text(tmp_path: Path) -> None:
    prompts = {"query": "what is ", "passage": "the "}
    folder = copied("splade_max", tmp_path, "config_sentence_transformers.json", prompts=prompts)
    encoder = SparseEncoder(folder)
    assert encoder.prompts["query"] == "what is "
    assert encoder.encode_query(["dog"]) == encoder.encode(["what is dog"])
    assert encoder.encode_document(["dog"]) == encoder.encode(["dog"])  # "document" comes first, and is empty
    assert encoder.encode(["dog"], "passage") == encoder.encode(["the dog"])
    assert encoder.encode(["dog"], prompt="a ") == encoder.encode(["a dog"])


def test_a_masked_language_model_is_a_sparse_encoder(tmp_path: Path) -> None:
    folder = copied("splade_max", tmp_path)
    for file in ("modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"):
        (folder / file).unlink()
    assert SparseEncoder(folder).encode(TEXTS) == SparseEncoder(MODELS / "splade_max").encode(TEXTS)
    with pytest.raises(ConfigError, match="no sparse encoder: architectures is"):
        SparseEncoder(MODELS / "bert_seqcls_single")


def test_vectors_are_pickled_and_an_encoder_is_shown(encoder: SparseEncoder) -> None:
    vectors = encoder.encode(TEXTS)
    assert pickle.loads(pickle.dumps(vectors)) == vectors
    assert "SparseEncoder(136 tokens" in repr(encoder)


@pytest.mark.parametrize(
    ("file", "fields", "match"),
    [
        ("1_SpladePooling/config.json", {"pooling_strategy": "mean"}, "pooling_strategy is 'mean'"),
        ("1_SpladePooling/config.json", {"activation_function": "gelu"}, "activation_function is 'gelu'"),
        ("1_SpladePooling/config.json", {"embedding_dimension": 7}, "embedding_dimension is 7, but the model's"),
        ("sentence_bert_config.json", {"transformer_task": "feature-extraction"}, "only 'fill-mask' is supported"),
        ("config_sentence_transformers.json", {"similarity_fn_name": "maxsim"}, "similarity_fn_name is 'maxsim'"),
        ("config_sentence_transformers.json", {"max_active_dims": 0}, "max_active_dims is 0"),
        ("config_sentence_transformers.json", {"model_type": "CrossEncoder"}, "only 'SparseEncoder' is supported"),
    ],
)
def test_settings_that_are_not_supported_are_refused(
    tmp_path: Path, file: str, fields: dict[str, Any], match: str
) -> None:
    with pytest.raises(ConfigError, match=match):
        SparseEncoder(copied("splade_max", tmp_path, file, **fields))


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"structure": {}}, "has no routes"),
        ({"structure": {"query": ["nothing"]}}, "expected names of types"),
        ({"parameters": {"default_route": "other"}}, "default_route is 'other'"),
        ({"parameters": {"route_mappings": {"(None, 'text')": "query"}}}, "route_mappings is"),
        ({"structure": {"query": ["document_1_SpladePooling"]}}, "has the modules"),
        ({"types": {"../x": "sentence_transformers.base.modules.transformer.Transformer"}, "structure": {"q": ["../x"]}}, "leaves"),
        ({"types": {"query_0_SparseStaticEmbedding": "other.Module"}, "structure": {"query": ["query_0_SparseStaticEmbedding"]}}, "other.Module"),
    ],
)  # fmt: skip
def test_routers_that_are_not_supported_are_refused(tmp_path: Path, fields: dict[str, Any], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        SparseEncoder(copied("splade_inference_free", tmp_path, "router_config.json", **fields))


def test_a_route_that_the_model_lacks_is_an_error(tmp_path: Path) -> None:
    listing = json.loads((MODELS / "splade_inference_free" / "router_config.json").read_text())
    structure = {"document": listing["structure"]["document"]}
    folder = copied("splade_inference_free", tmp_path, "router_config.json", structure=structure)
    encoder = SparseEncoder(folder)
    with pytest.raises(InputError, match=r"no route for task 'query'; its routes are \['document'\]"):
        encoder.encode_query(["dog"])
    assert encoder.encode_document(["dog"]) == encoder.encode(["dog"])


def test_the_oldest_router_has_another_name(tmp_path: Path) -> None:
    folder = copied("splade_inference_free", tmp_path)
    (folder / "router_config.json").rename(folder / "config.json")
    listing = json.loads((folder / "modules.json").read_text())
    listing[0]["type"] = "sentence_transformers.models.Asym"
    (folder / "modules.json").write_text(json.dumps(listing))
    expected = SparseEncoder(MODELS / "splade_inference_free")
    assert SparseEncoder(folder).encode_query(TEXTS) == expected.encode_query(TEXTS)


def test_weights_of_tokens_must_fit_the_tokenizer(tmp_path: Path) -> None:
    folder = copied("splade_inference_free", tmp_path)
    file = folder / "query_0_SparseStaticEmbedding" / "model.safetensors"
    write_safetensors(file, {"weight": np.ones(5, np.float32)})
    with pytest.raises(CheckpointError, match="weight has 5 numbers, but the tokenizer has 136 tokens"):
        SparseEncoder(folder)
    write_safetensors(file, {"weight": np.ones(200, np.float32)})
    with pytest.raises(ConfigError, match=r"the routes differ in width: \{'query': 200, 'document': 136}"):
        SparseEncoder(folder)
    write_safetensors(file, {"other": np.ones(136, np.float32)})
    with pytest.raises(CheckpointError, match="one number for each token"):
        SparseEncoder(folder)


def test_the_other_encoders_name_the_class() -> None:
    for name in FOLDERS:
        with pytest.raises(ConfigError, match=r"load it with SparseEncoder\.from_pretrained"):
            SentenceEncoder.from_pretrained(MODELS / name)


def test_wrong_arguments_are_refused(encoder: SparseEncoder) -> None:
    with pytest.raises(InputError, match=r"texts\[1\] must be a str"):
        encoder.encode(["a", 1])  # type: ignore[list-item]
    with pytest.raises(InputError, match="device must be"):
        encoder.encode(["a"], device="cuda")
    with pytest.raises(InputError, match="pool must be None"):
        encoder.encode(["a"], pool={})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no prompt 'x'"):
        encoder.encode(["a"], "x")
    with pytest.raises(InputError, match="batch_size"):
        encoder.encode(["a"], batch_size=0)
    with pytest.raises(InputError, match="names of one argument"):
        encoder.encode(["a"], sentences=["b"])
    with pytest.raises(InputError, match="top_k"):
        encoder.decode(encoder.encode(["a"]), top_k=0)
    with pytest.raises(InputError, match="the vocabulary 136 tokens"):
        encoder.decode(np.ones(7))


def test_encoders_are_found_under_their_names() -> None:
    assert wb.SparseEncoder is SparseEncoder
