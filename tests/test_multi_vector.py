"""Multi-vector encoders: token vectors and scores against sentence-transformers' numbers, and all forms of folders."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wordpiece_bert as wb
from model_files import MODELS, copied, reference_vectors, write_safetensors
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.errors import CheckpointError, ConfigError, InputError, TruncationWarning
from wordpiece_bert.sentence import MultiVectorEncoder, MultiVectors, SentenceEncoder, SparseEncoder

FOLDERS = sorted(folder.name for folder in MODELS.glob("colbert_*"))
TEXTS = ["New dog", "", "the river is good!", "☃", "people of the city on a day", "she x1y2", "water"] * 3

pytestmark = pytest.mark.filterwarnings("ignore::wordpiece_bert.errors.TruncationWarning")


@pytest.fixture(scope="module")
def encoder() -> MultiVectorEncoder:
    return MultiVectorEncoder(MODELS / "colbert_st")


@pytest.mark.parametrize("backend", ["rust", "numpy"])
@pytest.mark.parametrize("name", FOLDERS)
def test_vectors_are_those_of_the_reference_program(name: str, backend: str) -> None:
    listing, expected = reference_vectors(name)
    encoder = MultiVectorEncoder.from_pretrained(MODELS / name, backend)
    few = listing["documents"][: len(expected["encode.offsets"]) - 1]
    for key, vectors in (
        ("query", encoder.encode_query(listing["queries"])),
        ("document", encoder.encode_document(listing["documents"])),
        ("encode", encoder.encode(few)),
    ):
        assert np.array_equal(vectors.offsets, expected[f"{key}.offsets"]), key
        np.testing.assert_allclose(vectors.vectors, expected[f"{key}.values"], rtol=0, atol=2e-6)
    assert encoder.prompts == listing["prompts"]
    assert encoder.similarity_fn_name == listing["similarity_fn_name"]
    assert encoder.dimension == 12


@pytest.mark.parametrize("name", FOLDERS)
def test_scores_are_those_of_the_reference_program(name: str) -> None:
    listing, expected = reference_vectors(name)
    encoder = MultiVectorEncoder(MODELS / name)
    queries, documents = encoder.encode_query(listing["queries"]), encoder.encode_document(listing["documents"])
    scores = encoder.similarity(queries, documents)
    np.testing.assert_allclose(scores, expected["similarity"], rtol=1e-6, atol=1e-5)
    pairs = encoder.similarity_pairwise(queries, documents[: len(queries)])
    np.testing.assert_allclose(pairs, expected["pairwise"], rtol=1e-6, atol=1e-5)
    best = encoder.rank(listing["queries"][0], documents, top_k=3)
    assert [hit["corpus_id"] for hit in best] == np.argsort(-scores[0], kind="stable")[:3].tolist()
    assert best == encoder.rank(queries[0], documents, 3)
    texts = encoder.rank(listing["queries"][0], listing["documents"], 3, return_documents=True)
    assert [hit["text"] for hit in texts] == [listing["documents"][hit["corpus_id"]] for hit in best]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["colbert_st", "colbert_st_attend"])
def test_a_text_has_the_same_bits_in_any_batch_and_with_any_threads(name: str, dtype: str) -> None:
    first = MultiVectorEncoder(MODELS / name, dtype=dtype, threads=1)
    queries, documents = first.encode_query(TEXTS), first.encode_document(TEXTS)
    scores = first.similarity(queries, documents)
    for threads in (2, 3):
        encoder = MultiVectorEncoder(MODELS / name, dtype=dtype, threads=threads)
        assert encoder.encode_query(TEXTS) == queries
        assert encoder.encode_document(TEXTS[::-1])[::-1] == documents
        assert np.array_equal(encoder.similarity(queries, documents), scores)
        for i in range(7):
            assert np.array_equal(encoder.encode_query(TEXTS[i]), queries[i])
            assert np.array_equal(encoder.encode_document([TEXTS[i]])[0], documents[i])


def test_queries_are_filled_up_and_cut(encoder: MultiVectorEncoder) -> None:
    queries, cut = encoder.encode_query(["", "☃", "the " * 100], return_truncated=True)
    assert queries.lengths.tolist() == [14, 14, 14]
    assert cut.tolist() == [False, False, True]
    assert encoder.query_length == 14
    assert encoder.document_length == 20
    assert encoder.max_seq_length == 48
    with pytest.warns(TruncationWarning, match="1 of 1 texts were truncated to 14 tokens"):
        encoder.encode_query(["the " * 100])
    with pytest.warns(TruncationWarning, match="truncated to 20 tokens"):
        encoder.encode_document(["the " * 100])
    np.testing.assert_allclose(np.linalg.norm(queries.vectors, axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("backend", ["rust", "numpy"])
def test_tokens_that_are_filled_in_are_seen_only_where_the_model_says_so(tmp_path: Path, backend: str) -> None:
    """Whether the first vector, of [CLS], depends on how many tokens are filled in."""
    for attend in (False, True):
        first = []
        for length in (12, 20):
            expansion = {"strategy": "min", "attend": attend, "length": length}
            folder = copied(
                "colbert_st", tmp_path / f"{attend}{length}", "sentence_bert_config.json", query_expansion=expansion
            )
            query = MultiVectorEncoder.from_pretrained(folder, backend).encode_query("dog")
            assert len(query) == length
            first.append(query[0])
        assert (np.abs(first[0] - first[1]).max() < 1e-6) is not attend


def test_at_least_a_length_leaves_long_queries_long(tmp_path: Path) -> None:
    expansion = {"strategy": "min", "length": 10, "token": "the"}
    settings = {"query_expansion": expansion, "query_length": 16}
    encoder = MultiVectorEncoder(copied("colbert_st", tmp_path, "sentence_bert_config.json", **settings))
    assert encoder.encode_query(["", "the " * 100], prompt="").lengths.tolist() == [10, 16]
    filled = encoder.encode_query([""], prompt="")[0]
    seen = encoder._rows([""], "query")
    assert seen.rows.ids.tolist()[2:] == [encoder.tokenizer.token_to_id("the")] * 8
    assert len(filled) == 10


def test_the_skip_list_is_left_out_of_documents_alone(encoder: MultiVectorEncoder, tmp_path: Path) -> None:
    plain, marked = encoder.encode_document(["the dog", "the dog!"]).lengths
    assert plain == marked
    assert encoder.encode(["!"]).lengths.tolist() == [2]
    assert encoder.encode(["!"], task="query").lengths.tolist() == [14]
    file = "2_MultiVectorMask/config.json"
    both = MultiVectorEncoder(copied("colbert_st", tmp_path / "a", file, skiplist_tasks=["query", "document"]))
    assert both.encode_query(["!"], prompt="").lengths.tolist() == [13]
    ids = encoder.tokenizer.convert_tokens_to_ids(["dog", "the"])
    some = MultiVectorEncoder(copied("colbert_st", tmp_path / "b", file, keep_only_token_ids=ids))
    assert some.encode_document(["the dog is good", "city"], prompt="").lengths.tolist() == [2, 0]
    assert some.encode_query(["city"], prompt="").lengths.tolist() == [14]
    assert some.encode_document("city", prompt="").shape == (0, 12)
    scores = some.similarity(some.encode_query(["dog"]), some.encode_document(["city", "the dog"]))
    assert scores[0, 0] == np.float32(-1e9)
    assert scores[0, 1] > -100


def test_markers_are_one_token_where_the_vocabulary_has_them() -> None:
    stanford = MultiVectorEncoder(MODELS / "colbert_stanford")
    assert stanford.tokenizer.encode("[unused0] dog").tokens[:3] == ["[CLS]", "[unused0]", "dog"]
    pylate = MultiVectorEncoder(MODELS / "colbert_pylate")
    assert pylate.tokenizer.encode("[Q] dog").tokens[:3] == ["[CLS]", "[Q] ", "dog"]
    native = MultiVectorEncoder(MODELS / "colbert_st")
    assert "[unused0]" not in native.tokenizer.encode("[unused0] dog").tokens


def test_defaults_of_colberts_own_folders(tmp_path: Path) -> None:
    folder = copied("colbert_stanford", tmp_path)
    (folder / "artifact.metadata").unlink()
    encoder = MultiVectorEncoder(folder)
    assert encoder.prompts == {"query": "[unused0] ", "document": "[unused1] "}
    assert encoder.query_length == 32
    assert encoder.document_length == encoder.max_seq_length
    assert len(encoder.encode_document("!")) == 3


def test_other_folders_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is a model for SentenceEncoder.*needs a projection"):
        MultiVectorEncoder(MODELS / "bert_model")
    with pytest.raises(ConfigError, match=r"is a model for SparseEncoder: load it with SparseEncoder\.from_pretrained"):
        MultiVectorEncoder(MODELS / "splade_max")
    for name in FOLDERS:
        with pytest.raises(ConfigError, match=r"load it with MultiVectorEncoder\.from_pretrained"):
            SentenceEncoder.from_pretrained(MODELS / name)
    with pytest.raises(ConfigError, match="only 'SparseEncoder' is supported"):
        SparseEncoder(MODELS / "colbert_st")
    folder = copied("colbert_stanford", tmp_path)
    tensors = dict(read_tensors(folder / "model.safetensors"))
    del tensors["linear.weight"]
    write_safetensors(folder / "model.safetensors", tensors)
    with pytest.raises(CheckpointError, match=r"linear\.weight, the projection, must have shape \[d, 32\], not None"):
        MultiVectorEncoder(folder)


@pytest.mark.parametrize(
    ("name", "file", "fields", "match"),
    [
        ("colbert_st", "sentence_bert_config.json", {"query_expansion": {"strategy": "x", "length": 3}}, "strategy 'x'"),
        ("colbert_st", "sentence_bert_config.json", {"query_expansion": {"strategy": "min"}}, "has no length"),
        ("colbert_st", "sentence_bert_config.json", {"query_expansion": {"strategy": "min", "length": 0}}, "length is 0"),
        ("colbert_st", "sentence_bert_config.json", {"query_expansion": {"strategy": "min", "length": 3, "x": 1}}, "'x'"),
        ("colbert_st", "sentence_bert_config.json", {"query_expansion": {"strategy": "min", "length": 99}}, "longest row has 48"),
        ("colbert_st", "sentence_bert_config.json", {"query_expansion": {"strategy": "min", "length": 9, "token": "zzz"}}, "'zzz', which"),
        ("colbert_st", "sentence_bert_config.json", {"query_length": 9}, "query_length is 9, less than"),
        ("colbert_st", "sentence_bert_config.json", {"document_length": 0}, "document_length is 0"),
        ("colbert_st", "sentence_bert_config.json", {"transformer_task": "fill-mask"}, "only 'feature-extraction'"),
        ("colbert_st", "1_Dense/config.json", {"module_input_name": "sentence_embedding"}, "only 'token_embeddings'"),
        ("colbert_st", "1_Dense/config.json", {"module_input_name": ...}, "has no module_input_name"),
        ("colbert_st", "2_MultiVectorMask/config.json", {"skiplist_words": "abc"}, "expected a list of strings"),
        ("colbert_st", "2_MultiVectorMask/config.json", {"keep_only_token_ids": [-1]}, "expected ids"),
        ("colbert_st", "config_sentence_transformers.json", {"similarity_fn_name": "xtr"}, "similarity_fn_name is 'xtr'"),
        ("colbert_pylate", "config_sentence_transformers.json", {"query_length": -3}, "query_length is -3"),
        ("colbert_pylate", "config_sentence_transformers.json", {"query_prefix": 3}, "query_prefix is 3"),
        ("colbert_stanford", "artifact.metadata", {"similarity": "l2"}, "only 'cosine' is supported"),
        ("colbert_stanford", "artifact.metadata", {"query_maxlen": "x"}, "query_maxlen is 'x'"),
    ],
)  # fmt: skip
def test_settings_that_are_not_supported_are_refused(
    tmp_path: Path, name: str, file: str, fields: dict[str, Any], match: str
) -> None:
    with pytest.raises(ConfigError, match=match):
        MultiVectorEncoder(copied(name, tmp_path, file, **fields))


@pytest.mark.parametrize(
    ("kind", "match"),
    [
        ("sentence_transformers.multi_vector_encoder.modules.token_pooling.TokenPooling", "TokenPooling"),
        ("os.system", "os.system"),
    ],
)
def test_modules_that_are_not_supported_are_refused(tmp_path: Path, kind: str, match: str) -> None:
    folder = copied("colbert_st", tmp_path)
    listing = json.loads((folder / "modules.json").read_text())
    listing.append({"idx": 4, "name": "4", "path": "4_X", "type": kind})
    (folder / "modules.json").write_text(json.dumps(listing))
    with pytest.raises(ConfigError, match=match):
        MultiVectorEncoder(folder)


def test_pylate_without_expansion(tmp_path: Path) -> None:
    fields = {"do_query_expansion": False, "query_length": 7, "skiplist_words": ..., "query_prefix": ...}
    encoder = MultiVectorEncoder(copied("colbert_pylate", tmp_path, "config_sentence_transformers.json", **fields))
    assert encoder.encode_query(["dog", "the " * 30]).lengths.tolist() == [3, 7]
    assert encoder.prompts["query"] == ""
    assert len(encoder.encode_document("!", prompt="")) == 2  # punctuation, by default


def test_wrong_arguments_are_refused(encoder: MultiVectorEncoder) -> None:
    with pytest.raises(InputError, match=r"texts\[1\] must be a str"):
        encoder.encode(["a", 1])  # type: ignore[list-item]
    with pytest.raises(InputError, match="task must be"):
        encoder.encode(["a"], task="passage")
    with pytest.raises(InputError, match="device must be"):
        encoder.encode(["a"], device="cuda")
    with pytest.raises(InputError, match="pool must be None"):
        encoder.encode(["a"], pool={})  # type: ignore[arg-type]
    vectors = encoder.encode_document(["a", "the"])
    with pytest.raises(InputError, match="return_documents needs the texts"):
        encoder.rank("a", vectors, return_documents=True)
    with pytest.raises(InputError, match="top_k"):
        encoder.rank("a", vectors, 0)
    with pytest.raises(InputError, match="query must be one text"):
        encoder.rank(np.zeros((2, 3, 12)), vectors)
    with pytest.raises(InputError, match="not from one model"):
        encoder.rank(np.zeros((2, 3)), vectors)


def test_nothing_is_encoded_and_ranked(encoder: MultiVectorEncoder) -> None:
    assert encoder.encode([]).vectors.shape == (0, 12)
    assert len(encoder.encode_query([])) == 0
    assert encoder.rank("dog", []) == []
    assert encoder.similarity(encoder.encode_query(["dog"]), encoder.encode_document([])).shape == (1, 0)


def test_an_encoder_is_shown(encoder: MultiVectorEncoder) -> None:
    assert "MultiVectorEncoder(dimension 12, queries of 14" in repr(encoder)
    assert wb.MultiVectorEncoder is MultiVectorEncoder


def test_normalization_on_request(tmp_path: Path) -> None:
    folder = copied("colbert_st", tmp_path)
    listing = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps(listing[:-1]))
    encoder = MultiVectorEncoder(folder)
    raw = encoder.encode_document(TEXTS)
    assert np.abs(np.linalg.norm(raw.vectors, axis=1) - 1).max() > 0.01
    scaled = encoder.encode_document(TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose(
        scaled.vectors, MultiVectorEncoder(MODELS / "colbert_st").encode_document(TEXTS).vectors, atol=1e-6
    )


def test_an_index_is_saved_and_mapped(encoder: MultiVectorEncoder, tmp_path: Path) -> None:
    vectors = encoder.encode_document(TEXTS)
    vectors.save(tmp_path / "index")
    mapped = MultiVectors.load(tmp_path / "index")
    assert mapped == vectors
    assert isinstance(mapped.vectors.base, np.memmap) or isinstance(mapped.vectors, np.memmap)
    assert encoder.rank("dog", mapped, 4) == encoder.rank("dog", vectors, 4)
    assert MultiVectors.load(tmp_path / "index", mmap=False) == vectors


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("name", ["vectors.npy", "offsets.npy"])
def test_a_saved_index_that_was_cut_is_refused_by_name(name: str, mmap: bool, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    MultiVectors(np.ones((50, 4), np.float32), [0, 20, 50]).save(folder)
    content = (folder / name).read_bytes()
    for length in (0, 40, 128, len(content) - 1):
        (folder / name).write_bytes(content[:length])
        with pytest.raises(InputError, match=f"^{re.escape(str(folder))}: cannot be read as token vectors"):
            MultiVectors.load(folder, mmap=mmap)
