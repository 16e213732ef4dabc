"""Every path of the server, for every kind of model: results equal to the library's."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from model_files import MODELS, sentence_folder
from serve_client import Client, ask
from serve_fixtures import TEXTS, _closing, client, colbert, encoder, folders, ranker, vectors
from wordpiece_bert import CrossEncoder, MultiVectorEncoder, SentenceEncoder, SparseEncoder, tasks
from wordpiece_bert.sentence import M3Encoder
from wordpiece_bert.sentence.metrics import similarity
from wordpiece_bert.serve import ServerSettings, create_app
from wordpiece_bert.serve.dialects.parts import packed
from wordpiece_bert.serve.kinds import served_model
from wordpiece_bert.serve.model_loading import load_model

if TYPE_CHECKING:
    from pathlib import Path

QUERY = "how to bake bread"


# --- vectors


@pytest.mark.parametrize("path", ["/embed", "/", "/models/sentences"])
def test_tei_has_the_vectors_of_encode_with_length_one_unless_asked_otherwise(
    client: Client, encoder: SentenceEncoder, path: str
) -> None:
    unit = encoder.encode(TEXTS, normalize_embeddings=True)
    np.testing.assert_array_equal(vectors(client.post(path, inputs=TEXTS)), unit)
    np.testing.assert_array_equal(vectors(client.post(path, inputs=TEXTS[0])), unit[:1])
    np.testing.assert_array_equal(vectors(client.post(path, inputs=TEXTS, normalize=True)), unit)
    np.testing.assert_array_equal(vectors(client.post(path, inputs=TEXTS, normalize=False)), encoder.encode(TEXTS))
    short = client.post(path, inputs=TEXTS, dimensions=5, truncate=True, truncation_direction="Right")
    expected = encoder.encode(TEXTS, truncate_dim=5, normalize_embeddings=True)
    np.testing.assert_array_equal(vectors(short), expected)


def test_vectors_that_the_encoder_cuts_have_length_one_where_they_are_asked_for(tmp_path: Path) -> None:
    encoder = SentenceEncoder(sentence_folder("sentence_mean_normalize", tmp_path), truncate_dim=5)
    client = Client(create_app({"a": encoder}))
    texts = ["bread", "oven"]
    unit = encoder.encode(texts, normalize_embeddings=True)
    np.testing.assert_array_equal(vectors(client.post("/embed", inputs=texts)), unit)
    np.testing.assert_array_equal(vectors(client.post("/embed", inputs=texts, normalize=False)), encoder.encode(texts))
    found = vectors(
        [one["embedding"] for one in client.post("/v1/embeddings", input=texts, late_chunking=True)["data"]]
    )
    np.testing.assert_array_equal(found, encoder.encode_chunks("bread oven", [(0, 5), (6, 10)]))


def test_a_query_that_is_cut_is_reported_or_refused(folders: Path) -> None:
    client = Client(create_app({"colbert": load_model(str(folders / "colbert"))}))
    long = "bread " * 99
    for path, status, texts in (("/rerank", 413, "texts"), ("/v1/rerank", 400, "documents")):
        given = {"query": long, "truncate": False, texts: ["flour"]}
        assert "text 0 has more than" in client.refused(path, status, **given)
    assert client.post("/v1/rerank", query=long, documents=["flour", "oven"])["truncated"] == [0, 1]


def test_a_side_of_truncation_that_the_tokenizer_has_not_is_refused(folders: Path, tmp_path: Path) -> None:
    shutil.copytree(folders / "sentences", tmp_path / "left")
    settings = json.loads((tmp_path / "left/tokenizer_config.json").read_text())
    (tmp_path / "left/tokenizer_config.json").write_text(json.dumps(settings | {"truncation_side": "left"}))
    client = Client(create_app({"left": SentenceEncoder(tmp_path / "left")}))
    for path, field, right, left in (
        ("/embed", "truncate", "END", "START"),
        ("/embed", "truncation_direction", "Right", "Left"),
        ("/v1/embeddings", "truncation_side", "right", "left"),
    ):
        given = {"inputs" if path == "/embed" else "input": ["bread " * 99]}
        assert client.post(path, **given, **{"truncate": True, field: left})
        assert f"{field} on the right is not served" in client.refused(path, **given, **{field: right})


@pytest.mark.parametrize("path", ["/v1/embed", "/v2/embed"])
def test_cohere_has_the_vectors_of_encode(client: Client, encoder: SentenceEncoder, path: str) -> None:
    expected = encoder.encode(TEXTS)
    types = ["float", "base64", "int8", "ubinary", "binary", "uint8"]
    found = client.post(path, texts=TEXTS, model="sentences", input_type="search_query", embedding_types=types)
    assert list(found["embeddings"]) == types
    assert found["response_type"] == "embeddings_by_type"
    np.testing.assert_array_equal(vectors(found["embeddings"]["float"]), expected)
    decoded = [np.frombuffer(base64.b64decode(one), "<f4") for one in found["embeddings"]["base64"]]
    np.testing.assert_array_equal(decoded, expected)
    bits = np.packbits(expected > 0, axis=1)
    np.testing.assert_array_equal(found["embeddings"]["ubinary"], bits)
    np.testing.assert_array_equal(found["embeddings"]["binary"], bits.astype(np.int16) - 128)
    found = client.post(path, texts=TEXTS)
    of_floats = found["embeddings"] if path == "/v1/embed" else found["embeddings"]["float"]
    np.testing.assert_array_equal(vectors(of_floats), expected)
    assert client.refused(path, texts=TEXTS, embedding_types=["float", "int4"]).startswith("embedding_types[1] must be")


@pytest.mark.parametrize("width", [8, 384, 1024])
@pytest.mark.parametrize(("form", "zero"), [("int8", 0), ("uint8", 128)])
def test_vectors_in_8_bits_have_the_same_cosines_whichever_are_sent_together(width: int, form: str, zero: int) -> None:
    x = np.random.default_rng(width).normal(size=(200, width)).astype(np.float32) * 3
    found = np.array(list(packed(x, form)))
    assert zero - 127 <= found.min() <= found.max() <= zero + 127
    np.testing.assert_array_equal(list(packed(x[7:8], form)), found[7:8])
    steps = (found - zero).astype(np.float32)
    np.testing.assert_allclose(similarity(steps, steps, "cosine"), similarity(x, x, "cosine"), atol=0.015)


def test_types_of_input_choose_the_prompts(tmp_path: Path, folders: Path) -> None:
    SentenceEncoder(folders / "sentences").save_pretrained(tmp_path / "model")
    file = tmp_path / "model" / "config_sentence_transformers.json"
    prompts = {"query": "the bread ", "document": "the oven "}
    file.write_text(json.dumps({**json.loads(file.read_text()), "prompts": prompts}))
    encoder = SentenceEncoder(tmp_path / "model")
    client = Client(create_app({"model": encoder}))
    for role, expected in (
        ("query", encoder.encode_query(["oven"])),
        ("document", encoder.encode_document(["oven"])),
        ("other", encoder.encode(["oven"])),
    ):
        task = {"query": "retrieval.query", "document": "retrieval.passage", "other": "text-matching"}[role]
        found = client.post("/v1/embeddings", input=["oven"], task=task)["data"][0]["embedding"]
        np.testing.assert_array_equal(vectors(found), expected[0])
        purpose = {"query": "search_query", "document": "search_document", "other": "clustering"}[role]
        found = client.post("/v2/embed", texts=["oven"], input_type=purpose)["embeddings"]["float"]
        np.testing.assert_array_equal(vectors(found), expected)


def test_an_empty_prompt_of_a_role_replaces_the_usual_prompt_but_not_a_given_text(folders: Path) -> None:
    encoder = SentenceEncoder(folders / "sentences", prompts={"query": "the bread ", "document": ""})
    for settings, of_documents in ((ServerSettings(prompt_name="query"), ""), (ServerSettings(prompt="a "), "a ")):
        client = Client(create_app({"model": encoder}, settings))
        for purpose, prompt in (("search_document", of_documents), ("search_query", "the bread ")):
            found = client.post("/v2/embed", texts=["oven"], input_type=purpose)["embeddings"]["float"]
            np.testing.assert_array_equal(vectors(found), encoder.encode(["oven"], prompt=prompt))


@pytest.mark.parametrize(
    ("path", "one", "other"),
    [
        ("/v1/embeddings", {"encoding_format": "float"}, {"embedding_type": "binary"}),
        ("/v1/embeddings", {"task": "retrieval.query"}, {"input_type": "document"}),
        ("/v1/embeddings", {"dimensions": 4}, {"output_dimension": 8}),
        ("/v1/embeddings", {"normalized": True}, {"normalize": False}),
        ("/v1/embeddings", {"truncation_side": "left"}, {"truncate": "END"}),
        ("/v1/rerank", {"truncation": True}, {"truncate": False}),
        ("/v1/rerank", {"use_activation": True}, {"softmax": False}),
    ],
)
def test_two_names_of_a_setting_may_not_differ(client: Client, path: str, one: Any, other: Any) -> None:
    body = {"input": "bread"} if path == "/v1/embeddings" else {"query": "bread", "documents": ["oven"]}
    assert f"{next(iter(one))} and {next(iter(other))} differ" in client.refused(path, **body, **one, **other)
    assert client.post(path, **body, **other)


def test_fields_of_jina_and_vllm_on_the_path_of_openai(client: Client, encoder: SentenceEncoder) -> None:
    def embeddings(**fields: Any) -> Any:
        return [item["embedding"] for item in client.post("/v1/embeddings", input=TEXTS, **fields)["data"]]

    np.testing.assert_array_equal(
        vectors(embeddings(normalized=True)), encoder.encode(TEXTS, normalize_embeddings=True)
    )
    np.testing.assert_array_equal(embeddings(embedding_type="ubinary"), np.packbits(encoder.encode(TEXTS) > 0, axis=1))
    np.testing.assert_array_equal(
        vectors(embeddings(truncate_prompt_tokens=4)), encoder.encode(TEXTS, max_length=4, return_truncated=True)[0]
    )
    np.testing.assert_array_equal(vectors(embeddings(late_chunking=False, priority=0)), encoder.encode(TEXTS))
    assert "from 3 to 64 tokens, not 65" in client.refused("/v1/embeddings", input="a", truncate_prompt_tokens=65)
    assert "token ids of another tokenizer" in client.refused("/v1/embeddings", input=[[2, 48, 3]])


IMITATED: dict[str, dict[str, Any]] = {
    # All fields of vLLM's requests, with values that ask for nothing, or for what is served.
    "vLLM": {
        "user": "me",
        "truncate_prompt_tokens": -1,
        "truncation_side": "right",
        "request_id": "an-id",
        "priority": 0,
        "padding": "max_length",
        "mm_processor_kwargs": {},
        "cache_salt": "salt",
        "add_special_tokens": True,
        "add_generation_prompt": False,
        "continue_final_message": False,
        "chat_template": None,
        "chat_template_kwargs": {},
        "media_io_kwargs": {},
    },
    "vLLM's vectors": {"encoding_format": "float", "embed_dtype": "float32", "endianness": "native"},
    "vLLM's rankings": {"top_n": 0, "max_tokens_per_query": 0, "max_tokens_per_doc": 0, "use_activation": True},
    "Jina's vectors": {
        "embedding_type": "float",
        "normalized": True,
        "truncate": False,
        "late_chunking": False,
        "return_multivector": False,
        "return_tokenized_input": False,
    },
}


@pytest.mark.parametrize(
    ("path", "groups"),
    [
        ("/v1/embeddings", ["vLLM", "vLLM's vectors", "Jina's vectors"]),
        ("/pooling", ["vLLM", "vLLM's vectors"]),
        ("/classify", ["vLLM"]),
        ("/score", ["vLLM"]),
        ("/v1/score", ["vLLM"]),
        ("/rerank", ["vLLM", "vLLM's rankings"]),
        ("/v1/rerank", ["vLLM", "vLLM's rankings"]),
        ("/v2/rerank", ["vLLM", "vLLM's rankings"]),
    ],
)
def test_fields_of_vllm_and_jina_are_known(client: Client, path: str, groups: list[str]) -> None:
    usual: dict[str, Any] = {"input": TEXTS, "model": "sentences"}
    if path == "/classify":
        usual["model"] = "reviews"
    elif path.endswith("score"):
        usual = {"text_1": QUERY, "text_2": TEXTS}
    elif path.endswith("rerank"):
        usual = {"query": QUERY, "documents": TEXTS}
    plain = client.post(path, **usual)
    for group in groups:
        found = client.post(path, **usual, **IMITATED[group])
        for part in ("data", "results"):
            same = found.get(part) == plain.get(part)
            assert same or group == "Jina's vectors"  # of length 1, which the toy model's vectors are not
    for field, wrong, reason in (
        ("mm_processor_kwargs", {"a": 1}, "the models take texts"),
        ("media_io_kwargs", {"a": {}}, "the models take texts"),
        ("add_generation_prompt", True, "no chats"),
        ("continue_final_message", True, "no chats"),
        ("chat_template_kwargs", {"a": 1}, "no chats"),
        ("messages", [], "no chats"),
        ("truncation_side", "left", "'(sentences|reviews|ranker)' are cut at their end"),
        ("priority", 1, "in the order in which they come"),
    ):
        assert re.fullmatch(rf"{field}.* is not served: .*{reason}.*", client.refused(path, **usual, **{field: wrong}))
    assert "padding must be one of do_not_pad, max_length" in client.refused(path, **usual, padding="longest")


def test_late_chunking_has_the_vectors_of_encode_chunks(client: Client, encoder: SentenceEncoder) -> None:
    text = " ".join(TEXTS)
    ends = [sum(len(one) + 1 for one in TEXTS[: index + 1]) - 1 for index in range(3)]
    chunks = [(end - len(one), end) for one, end in zip(TEXTS, ends, strict=True)]

    def embeddings(**fields: Any) -> Any:
        found = client.post("/v1/embeddings", late_chunking=True, **fields)
        return vectors([one["embedding"] for one in found["data"]])

    np.testing.assert_array_equal(embeddings(input=TEXTS), encoder.encode_chunks(text, chunks))
    np.testing.assert_array_equal(
        embeddings(input=TEXTS, dimensions=5, normalized=True),
        encoder.encode_chunks(text, chunks, truncate_dim=5, normalize_embeddings=True),
    )
    np.testing.assert_array_equal(embeddings(input=["", "bread", ""])[[0, 2]], np.zeros((2, encoder.dimension)))
    assert not np.array_equal(embeddings(input=TEXTS), encoder.encode(TEXTS))
    assert "is static: it has no late_chunking" in client.refused(
        "/v1/embeddings", input=TEXTS, model="static", late_chunking=True
    )
    assert "all texts are one row, and have more than 64 tokens" in client.refused(
        "/v1/embeddings", input=["bread " * 10] * 10, late_chunking=True
    )
    ids = Client(create_app({"a": encoder}, ServerSettings(accept_token_ids=True)))
    assert "takes texts, not token ids" in ids.refused("/v1/embeddings", input=[[2, 5, 3]], late_chunking=True)


def test_jinas_tasks_and_inputs(client: Client, encoder: SentenceEncoder) -> None:
    expected = encoder.encode(TEXTS)
    for task in ("code.query", "code.passage", "retrieval", "nl2code.query", "separation"):
        found = client.post("/v1/embeddings", input=[{"text": text} for text in TEXTS], task=task)
        np.testing.assert_array_equal(vectors([one["embedding"] for one in found["data"]]), expected)
    for value, complaint in (
        ({"image": "https://example.org/a.png"}, "input[1].image is not served: the models take texts"),
        ({"text": "a", "image": "a"}, "input[1].image is not served: the models take texts"),
        ({"text": "a", "title": "b"}, "unknown field 'input[1].title'"),
        ({}, "input[1] must be a string, not missing"),
    ):
        assert complaint in client.refused("/v1/embeddings", input=["a", value])
    for field in ("return_multivector", "return_tokenized_input"):
        assert f"{field} is not served: " in client.refused("/v1/embeddings", input="a", **{field: True})


def test_vllms_use_activation_is_the_length_of_vectors(client: Client, encoder: SentenceEncoder) -> None:
    expected = encoder.encode(TEXTS, normalize_embeddings=True)
    found = client.post("/v1/embeddings", input=TEXTS, use_activation=True)["data"]
    np.testing.assert_array_equal(vectors([one["embedding"] for one in found]), expected)
    found = client.post("/pooling", input=TEXTS, task="embed", use_activation=True)["data"]
    np.testing.assert_array_equal(vectors([one["data"] for one in found]), expected)
    assert "use_activation is not served for the vectors of tokens" in client.refused(
        "/pooling", input=TEXTS, use_activation=True
    )


def test_hugging_faces_forms_of_vectors(client: Client, encoder: SentenceEncoder) -> None:
    expected = encoder.encode(TEXTS, normalize_embeddings=True)
    for path in ("/embed", "/models/sentences"):
        found = client.post(path, inputs=TEXTS, encoding_format="base64")
        decoded = [np.frombuffer(base64.b64decode(one), "<f4") for one in found]
        np.testing.assert_array_equal(decoded, expected)
        found = client.post(path, inputs=TEXTS, encoding_format="float")
        np.testing.assert_array_equal(vectors(found), expected)


def test_vectors_of_tokens(client: Client, encoder: SentenceEncoder, colbert: MultiVectorEncoder) -> None:
    expected = encoder.encode(TEXTS, output_value="token_embeddings")
    for found in (
        client.post("/embed_all", inputs=TEXTS),
        [item["data"] for item in client.post("/pooling", input=TEXTS)["data"]],
    ):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(vectors(one), other)
    for prompt, of_prompt in ((None, colbert.encode(TEXTS)), ("query", colbert.encode_query(TEXTS))):
        found = client.post("/embed_all", inputs=TEXTS, model="colbert", prompt_name=prompt)
        for one, other in zip(found, of_prompt, strict=True):
            np.testing.assert_array_equal(vectors(one), other)
    found = Client(create_app({"a": colbert}, ServerSettings(prompt_name="query"))).post("/embed_all", inputs=TEXTS)
    np.testing.assert_array_equal(vectors(found[0]), colbert.encode_query(TEXTS)[0])
    assert "has no vectors of tokens" in client.refused("/embed_all", inputs="a", model="static")


def test_sparse_vectors_are_those_of_the_encoder(client: Client, folders: Path) -> None:
    expected = SparseEncoder(folders / "splade").encode(TEXTS).toarray()
    for path in ("/embed_sparse", "/models/splade"):
        found = np.zeros_like(expected)
        for row, numbers in zip(found, client.post(path, inputs=TEXTS), strict=True):
            row[[one["index"] for one in numbers]] = [one["value"] for one in numbers]
        np.testing.assert_array_equal(found, expected)


def test_queries_and_documents_of_a_model_with_two_routes() -> None:
    encoder = SparseEncoder(MODELS / "splade_inference_free")
    client = Client(create_app({"sparse": encoder}))
    for role, expected in (("query", encoder.encode_query(TEXTS)), ("document", encoder.encode_document(TEXTS))):
        found = client.post("/embed_sparse", inputs=TEXTS, prompt_name=role)
        for row, numbers in zip(expected.toarray(), found, strict=True):
            assert {one["index"]: one["value"] for one in numbers} == {i: row[i] for i in np.flatnonzero(row).tolist()}


def test_m3_makes_vectors_of_all_three_kinds() -> None:
    pytest.importorskip("tokenizers")
    folder = MODELS / "m3_colbert_dim"
    texts = ["the old house by the river", "a dog", "water " * 900]
    expected = M3Encoder(folder).encode(texts, return_truncated=True)[0]
    model = load_model(str(folder))
    assert isinstance(model, M3Encoder)
    assert isinstance(load_model(str(folder), kind="embedding"), SentenceEncoder)
    client = Client(create_app({"m3": model}))
    assert client.request("GET", "/v1/models/m3")[1]["kind"] == "m3"

    def same_sparse(found: Any) -> None:
        for row, numbers in zip(expected.sparse.toarray(), found, strict=True):
            assert {one["index"]: one["value"] for one in numbers} == {i: row[i] for i in np.flatnonzero(row).tolist()}

    def same_tokens(found: Any) -> None:
        for one, other in zip(found, expected.colbert, strict=True):
            np.testing.assert_array_equal(vectors(one), other)

    for path in ("/embed", "/models/m3"):
        np.testing.assert_array_equal(vectors(client.post(path, inputs=texts)), expected.dense)
    listed = client.post("/v1/embeddings", input=texts)
    np.testing.assert_array_equal(vectors([one["embedding"] for one in listed["data"]]), expected.dense)
    assert listed["truncated"] == [2]
    found = client.post("/v2/embed", texts=texts, output_dimension=3)["embeddings"]["float"]
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-6)
    same_sparse(client.post("/embed_sparse", inputs=texts))
    same_tokens(client.post("/embed_all", inputs=texts))
    same_tokens([one["data"] for one in client.post("/pooling", input=texts)["data"]])
    cosines = [one["score"] for one in client.post("/score", text_1=texts[0], text_2=texts)["data"]]
    np.testing.assert_allclose(cosines, expected.dense @ expected.dense[0], rtol=1e-5)

    async def together() -> list[Any]:  # in one batch
        bodies = [(path, json.dumps({"inputs": texts}).encode()) for path in ("/embed", "/embed_sparse", "/embed_all")]
        return await asyncio.gather(*(ask(client.app, "POST", path, body) for path, body in bodies * 2))

    answers = [json.loads(one.body) for one in client.runner.run(together())]
    for dense, sparse, tokens in (answers[:3], answers[3:]):
        np.testing.assert_array_equal(vectors(dense), expected.dense)
        same_sparse(sparse)
        same_tokens(tokens)
    assert "has more than the model's" in client.refused("/embed_sparse", 413, inputs=texts, truncate=False)
    assert "cross encoder or a multi-vector encoder" in client.refused("/rerank", query="a", texts=["b"])


def test_token_ids_are_accepted_as_an_option(encoder: SentenceEncoder) -> None:
    client = Client(create_app({"a": encoder}, ServerSettings(accept_token_ids=True)))
    rows = [list(encoder.tokenizer.encode(text).ids) for text in TEXTS]
    expected = encoder.encode(TEXTS)
    found = client.post("/v1/embeddings", input=rows)["data"]
    np.testing.assert_array_equal(vectors([item["embedding"] for item in found]), expected)
    np.testing.assert_array_equal(vectors(client.post("/embed", inputs=rows[0], normalize=False)), expected[:1])
    for wrong, complaint in (
        ([[2, 67]], "outside of the model's vocabulary, 0 to 66"),
        ([[2, -1]], "must be a list of token ids"),
        ([[2], ["a"]], "must be a list of token ids"),
        ([[2], []], "row 1 has 0 token ids"),
        ([[2] * 65], "row 0 has 65 token ids"),
        ([2, 1.5], "must be a list of token ids"),
        ([True], "input[0] must be a string, not a boolean"),
    ):
        assert complaint in client.refused("/v1/embeddings", input=wrong)


# --- scores and labels


def test_rankings_of_all_dialects(client: Client, ranker: CrossEncoder) -> None:
    scores = [float(score) for score in ranker.predict([(QUERY, text) for text in TEXTS])]
    order = sorted(range(3), key=lambda index: -scores[index])
    documents = [{"text": text, "id": str(i)} for i, text in enumerate(TEXTS)]
    for path, key in (
        ("/v1/rerank", "relevance_score"),
        ("/v2/rerank", "relevance_score"),
        ("/rerank", "relevance_score"),
    ):
        found = client.post(path, query=QUERY, documents=documents, return_documents=True, model="ranker")
        assert found["results"] == [{"index": i, key: scores[i], "document": documents[i]} for i in order]
    assert client.post("/rerank", query=QUERY, texts=TEXTS) == [{"index": i, "score": scores[i]} for i in order]
    assert client.post("/", query=QUERY, texts=TEXTS, model="ranker") == [
        {"index": i, "score": scores[i]} for i in order
    ]
    titles = [{"title": text} for text in TEXTS]
    found = client.post("/v1/rerank", query=QUERY, documents=titles, rank_fields=["title"], top_n=1)
    assert found["results"] == [{"index": order[0], "relevance_score": scores[order[0]], "document": titles[order[0]]}]
    parts = [{"title": text[:7], "year": None, "text": text[7:]} for text in TEXTS]
    joined = [f"{one['title']} {one['text']}" for one in parts]
    several = {"rank_fields": ["title", "text", "year"], "return_documents": False}
    for path in ("/v1/rerank", "/v2/rerank", "/rerank", "/infinity/rerank"):
        found = client.post(path, query=QUERY, documents=parts, **several)["results"]
        assert found == client.post(path, query=QUERY, documents=joined, return_documents=False)["results"]
        assert "documents[0] has no 'year' that is a string" in client.refused(
            path, query=QUERY, documents=parts, rank_fields=["year"]
        )
        for wrong, complaint in (
            ({"c": "a"}, "documents[1] has no 'a' or 'b' that is a string"),
            ({"a": "c", "b": 3}, "documents[1].b must be a string, not a number"),
        ):
            assert complaint in client.refused(path, query=QUERY, documents=[{"a": "c"}, wrong], rank_fields=["a", "b"])
    for path in ("/score", "/v1/score"):
        for names in (("text_1", "text_2"), ("queries", "documents"), ("queries", "items"), ("data_1", "data_2")):
            found = client.post(path, **dict(zip(names, (QUERY, TEXTS), strict=True)))
            assert [item["score"] for item in found["data"]] == scores


def test_infinity_returns_documents_as_strings_and_only_if_asked(client: Client, ranker: CrossEncoder) -> None:
    scores = [float(score) for score in ranker.predict([(QUERY, text) for text in TEXTS])]
    order = sorted(range(3), key=lambda index: -scores[index])
    plain = [{"index": i, "relevance_score": scores[i]} for i in order]
    assert client.post("/infinity/rerank", query=QUERY, documents=TEXTS)["results"] == plain
    found = client.post("/infinity/rerank", query=QUERY, documents=TEXTS, return_documents=True)
    assert found["results"] == [{**one, "document": TEXTS[one["index"]]} for one in plain]
    raw = client.post("/infinity/rerank", query=QUERY, documents=TEXTS, raw_scores=True)["results"]
    assert (
        raw
        == client.post("/rerank", query=QUERY, documents=TEXTS, use_activation=False, return_documents=False)["results"]
    )
    assert raw != plain


def test_scores_before_the_activation(client: Client, ranker: CrossEncoder) -> None:
    raw = {one["index"]: one["score"] for one in client.post("/rerank", query=QUERY, texts=TEXTS, raw_scores=True)}
    pairs = [(QUERY, text) for text in TEXTS]
    np.testing.assert_allclose(
        [raw[i] for i in range(3)], ranker.predict(pairs, activation_fn=lambda logits: logits), rtol=1e-6
    )
    scores = [float(score) for score in ranker.predict(pairs)]
    assert scores != [raw[i] for i in range(3)]
    for path in ("/rerank", "/v1/rerank", "/v2/rerank"):
        for name in ("use_activation", "activation", "softmax"):
            found = client.post(path, query=QUERY, documents=TEXTS, **{name: False})["results"]
            assert {one["index"]: one["relevance_score"] for one in found} == raw
    for path in ("/score", "/v1/score"):
        for asked, expected in ((False, [raw[i] for i in range(3)]), (True, scores)):
            found = client.post(path, text_1=QUERY, text_2=TEXTS, use_activation=asked)["data"]
            assert [one["score"] for one in found] == expected


def test_limits_of_tokens_in_rankings(client: Client, ranker: CrossEncoder) -> None:
    long = "bread oven flour"
    found = client.post("/v2/rerank", query=QUERY, documents=[long], max_tokens_per_doc=1)
    assert found["results"][0]["relevance_score"] == float(ranker.predict((QUERY, "bread")))
    assert found["truncated"] == [0]
    found = client.post("/rerank", query="bread oven", documents=[long], max_tokens_per_query=1)
    assert found["results"][0]["relevance_score"] == float(ranker.predict(("bread", long)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranker, "_max_length", 7)
        expected = float(ranker.predict((QUERY, long), return_truncated=True)[0])
    found = client.post("/rerank", query=QUERY, documents=[long], truncate_prompt_tokens=7)
    assert found["results"][0]["relevance_score"] == expected
    assert "at most 64 tokens, not 65" in client.refused(
        "/rerank", query=QUERY, documents=[long], truncate_prompt_tokens=65
    )


def test_late_interaction_ranks(client: Client, colbert: MultiVectorEncoder) -> None:
    expected = [(one["corpus_id"], one["score"]) for one in colbert.rank(QUERY, TEXTS)]
    found = client.post("/v2/rerank", query=QUERY, documents=TEXTS, model="colbert")
    assert [(one["index"], one["relevance_score"]) for one in found["results"]] == expected
    found = client.post("/score", queries=QUERY, documents=TEXTS, model="colbert")
    assert [(item["index"], item["score"]) for item in found["data"]] == sorted(expected)


def test_limits_of_scores(
    colbert: MultiVectorEncoder, encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_model, "_MOST_NUMBERS", 10)  # of an answer, which for scores is one for each document
    asked = Client(create_app({"a": colbert}))
    assert len(asked.post("/rerank", query=QUERY, texts=TEXTS)) == 3
    assert "more than the server's limit of 10" in asked.refused("/embed_all", 413, inputs=TEXTS)
    for model in (colbert, encoder):  # 5 tokens, 5 and 2
        asked = Client(create_app({"a": model}, ServerSettings(max_tokens=6)))
        assert "limit of 6 tokens" in asked.refused("/score", text_1="to bake bread", text_2=["to bake bread"])
        assert asked.post("/score", text_1="bread", text_2=["bread"])


def test_texts_of_static_models_are_counted(folders: Path) -> None:
    asked = Client(create_app({"a": load_model(str(folders / "static"))}))
    tokens = asked.post("/v1/embeddings", input=TEXTS)["usage"]["total_tokens"]
    metrics = asked.request("GET", "/metrics")[1]
    assert 'texts_total{model="a"} 3\n' in metrics
    assert f'tokens_total{{model="a"}} {tokens}\n' in metrics


def test_a_classifier_does_not_hide_an_encoder_whose_vectors_are_compared(folders: Path) -> None:
    asked = Client(create_app({name: load_model(str(folders / name)) for name in ("reviews", "sentences")}))
    named = asked.post("/score", text_1=QUERY, text_2=TEXTS, model="sentences")["data"]
    assert asked.post("/score", text_1=QUERY, text_2=TEXTS)["data"] == named


def test_cosines(client: Client, encoder: SentenceEncoder) -> None:
    query, documents = encoder.encode([QUERY]), encoder.encode(TEXTS)
    expected = encoder.similarity(query, documents)[0]
    inputs = {"source_sentence": QUERY, "sentences": TEXTS}
    for path in ("/similarity", "/models/sentences"):
        np.testing.assert_array_equal(vectors(client.post(path, inputs=inputs)), expected)
    found = client.post("/score", text_1=QUERY, text_2=TEXTS, model="sentences")
    np.testing.assert_allclose([item["score"] for item in found["data"]], expected, rtol=1e-6)


def test_labels_are_those_of_classify(client: Client, folders: Path) -> None:
    texts = ["a great film", "a dull story"]
    loaded = tasks.load(folders / "reviews")
    expected = [[dict(one) for one in answer] for answer in tasks.classify(loaded, texts, top_k=None)]

    def same(found: Any, wanted: Any) -> bool:
        return [[one["label"] for one in row] for row in found] == [
            [one["label"] for one in row] for row in wanted
        ] and np.allclose(
            [[one["score"] for one in row] for row in found],
            [[one["score"] for one in row] for row in wanted],
            atol=1e-7,
        )

    assert same(client.post("/predict", inputs=[[text] for text in texts], model="reviews"), expected)
    assert same([client.post("/predict", inputs=texts[0], model="reviews")], expected[:1])
    assert same(client.post("/models/reviews", inputs=texts[0], parameters={}), expected[:1])
    assert len(client.post("/predict", inputs=texts[0], parameters={"top_k": 1}, model="reviews")[0]) == 1
    pair = tasks.classify(loaded, [("a great film", "dull")], top_k=None)
    assert same([client.post("/predict", inputs=["a great film", "dull"], model="reviews")], pair)
    raw = tasks.classify(loaded, texts, top_k=None, function_to_apply="none")
    assert same(client.post("/predict", inputs=[[text] for text in texts], raw_scores=True, model="reviews"), raw)
    found = client.post("/classify", input=texts, model="reviews")["data"]
    assert [item["label"] for item in found] == [row[0]["label"] for row in expected]
    assert [max(item["probs"]) for item in found] == [pytest.approx(row[0]["score"]) for row in expected]
    assert "ask /predict" in client.refused("/rerank", query="a", texts=["b"], model="reviews")


def test_entities_and_masks_are_those_of_the_tasks(client: Client, folders: Path) -> None:
    text = "ada lovelace lived in london"
    loaded = tasks.load(folders / "entities")
    assert client.post("/models/entities", inputs=text) == list(tasks.ner(loaded, text))
    found = client.post("/models/entities", inputs=[text, text], parameters={"aggregation_strategy": "none"})
    assert found == [list(one) for one in tasks.ner(loaded, [text, text], aggregation_strategy="none")]
    assert client.post("/models/entities", inputs=[text]) == [list(tasks.ner(loaded, text))]
    text = "the capital of france is [MASK]"
    words = tasks.load(folders / "words")
    assert client.post("/models/words", inputs=text) == list(tasks.fill_mask(words, text))
    given = {"top_k": 1, "targets": ["london", "paris"]}
    assert client.post("/", inputs=text, model="words", parameters=given) == list(tasks.fill_mask(words, text, **given))
    given["targets"] = ["London", "PARIS"]
    assert client.post("/models/words", inputs=text, parameters=given) == list(tasks.fill_mask(words, text, **given))
    assert "text 1 has no [MASK]" in client.refused("/models/words", inputs=[text, "bread"])
    assert "targets[1] is no token" in client.refused(
        "/models/words", inputs=text, parameters={"targets": ["paris", "unheard"]}
    )
    assert "stride is not served" in client.refused("/models/entities", inputs=text, parameters={"stride": 2})


def test_a_token_classifier_makes_no_sentence_vectors(client: Client) -> None:
    for path, field in (("/embed", "inputs"), ("/v1/embeddings", "input"), ("/embed_all", "inputs")):
        assert "'entities' is not a sentence encoder" in client.refused(path, **{field: "a", "model": "entities"})


def test_tokens_to_text(client: Client, encoder: SentenceEncoder) -> None:
    rows = [list(encoder.tokenizer.encode(text).ids) for text in TEXTS]
    assert client.post("/decode", ids=rows) == [encoder.tokenizer.decode(row) for row in rows]
    kept = encoder.tokenizer.decode(rows[0], skip_special_tokens=False)
    assert client.post("/decode", ids=rows[0], skip_special_tokens=False) == [kept]
    assert "ids[0] has an id that is no token" in client.refused("/decode", ids=[[2, 10**6]])
