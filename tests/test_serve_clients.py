"""Real clients against the real server: vectors equal to `encode`, scores to `CrossEncoder` and the tasks.

Each is skipped where its package is not installed; ``make test-integrations`` installs them.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from serve_fixtures import folders
from server_process import Server, start, stop
from wordpiece_bert import CrossEncoder, MultiVectorEncoder, SentenceEncoder, SparseEncoder, tasks
from wordpiece_bert.finetune import FrozenClassifier

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install '.[serve]'")

# Of the clients, about packages that they use.
pytestmark = pytest.mark.filterwarnings("ignore")

TEXTS = ["to bake bread", "a bicycle wheel", "the dough in the oven"]
QUERY = "how to bake bread"
#: LlamaIndex' client of Cohere takes Cohere's names of models only.
COHERES_NAME = "embed-english-v3.0"


@pytest.fixture(scope="module", autouse=True)
def event_loops_of_clients() -> Iterator[None]:
    """Some clients leave their event loop to the garbage collector, whose warning would be an error of a later test."""
    yield
    asyncio.set_event_loop(None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="module")
def server(folders: Path) -> Iterator[Server]:
    names = ("sentences", "ranker", "reviews", "entities", "words", "splade", "colbert")
    found = start(*(folders / name for name in names), f"{COHERES_NAME}={folders / 'sentences'}")
    yield found
    stop(found)


@pytest.fixture(scope="module")
def base(server: Server) -> str:
    return f"http://127.0.0.1:{server.port}"


@pytest.fixture(scope="module")
def vectors(folders: Path) -> Any:
    return SentenceEncoder(folders / "sentences").encode(TEXTS)


@pytest.fixture(scope="module")
def scores(folders: Path) -> list[float]:
    return [float(one) for one in CrossEncoder(folders / "ranker").predict([(QUERY, text) for text in TEXTS])]


def client_of(module: str, package: str | None = None) -> Any:
    """Import a client, or skip the test."""
    name = package or module.partition(".")[0].replace("_", "-")
    pytest.importorskip(module.partition(".")[0], reason=f"{name} is not installed: pip install {name}")
    try:
        return importlib.import_module(module)
    except ImportError:
        pytest.skip(f"{name} is not installed: pip install {name}")


@pytest.fixture(scope="module")
def unit_vectors(folders: Path) -> Any:
    """Of length 1, as text-embeddings-inference returns them."""
    return SentenceEncoder(folders / "sentences").encode(TEXTS, normalize_embeddings=True)


def same_vectors(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(np.array(found, np.float32), expected)


def same_ranking(found: list[tuple[int, float]], scores: list[float]) -> None:
    assert found == sorted(enumerate(scores), key=lambda one: -one[1])[: len(found)]


def test_cohere(base: str, vectors: Any, scores: list[float]) -> None:
    cohere = client_of("cohere")
    second = cohere.ClientV2(base_url=base, api_key="none")
    found = second.embed(
        model="sentences", texts=TEXTS, input_type="search_document", embedding_types=["float", "int8", "ubinary"]
    )
    same_vectors(found.embeddings.float_, vectors)
    in_8_bits = np.array(found.embeddings.int8, np.float32)
    assert (in_8_bits.min() >= -128, in_8_bits.max() <= 127, in_8_bits.shape) == (True, True, vectors.shape)
    np.testing.assert_array_equal(found.embeddings.ubinary, np.packbits(vectors > 0, axis=1))
    ranked = second.rerank(model="ranker", query=QUERY, documents=TEXTS, top_n=2, max_tokens_per_doc=100)
    same_ranking([(one.index, one.relevance_score) for one in ranked.results], scores)
    with pytest.raises(cohere.NotFoundError, match="no model 'gpt'"):
        second.rerank(model="gpt", query=QUERY, documents=TEXTS)
    with pytest.raises(cohere.BadRequestError, match="output_dimension"):
        second.embed(model="sentences", texts=TEXTS, input_type="clustering", output_dimension=0)

    first = cohere.Client(base_url=base, api_key="none")
    same_vectors(first.embed(model="sentences", texts=TEXTS, input_type="clustering").embeddings, vectors)
    found = first.embed(model="sentences", texts=TEXTS, input_type="search_document", embedding_types=["float", "int8"])
    same_vectors(found.embeddings.float_, vectors)
    same_vectors(found.embeddings.int8, in_8_bits)
    ranked = first.rerank(model="ranker", query=QUERY, documents=TEXTS, return_documents=True)
    same_ranking([(one.index, one.relevance_score) for one in ranked.results], scores)
    assert [one.document.text for one in ranked.results] == [TEXTS[one.index] for one in ranked.results]
    ranked = first.rerank(model="ranker", query=QUERY, documents=TEXTS, return_documents=False)
    assert [one.document for one in ranked.results] == [None] * len(TEXTS)
    parts = [{"title": text[:4], "text": text[4:]} for text in TEXTS]
    ranked = first.rerank(model="ranker", query=QUERY, documents=parts, rank_fields=["title", "text"])
    joined = [f"{text[:4]} {text[4:]}" for text in TEXTS]
    expected = first.rerank(model="ranker", query=QUERY, documents=joined)
    same_ranking(
        [(one.index, one.relevance_score) for one in ranked.results],
        [one.relevance_score for one in sorted(expected.results, key=lambda one: one.index)],
    )


def test_langchains_client_of_cohere(base: str, vectors: Any, scores: list[float]) -> None:
    langchain = client_of("langchain_cohere")
    embeddings = langchain.CohereEmbeddings(base_url=base, cohere_api_key="none", model="sentences")
    same_vectors(embeddings.embed_documents(TEXTS), vectors)
    same_vectors(embeddings.embed_query(TEXTS[0]), vectors[0])
    ranker = langchain.CohereRerank(base_url=base, cohere_api_key="none", model="ranker")
    same_ranking([(one["index"], one["relevance_score"]) for one in ranker.rerank(TEXTS, QUERY)], scores)


def reranked(ranker: Any) -> list[tuple[int, float]]:
    """Rank the texts with a ranker of LlamaIndex."""
    schema = importlib.import_module("llama_index.core.schema")
    nodes = [schema.NodeWithScore(node=schema.TextNode(text=text)) for text in TEXTS]
    return [(TEXTS.index(one.text), one.score) for one in ranker.postprocess_nodes(nodes, query_str=QUERY)]


def test_llama_indexs_client_of_tei(base: str, unit_vectors: Any, scores: list[float]) -> None:
    name = "llama_index.embeddings.text_embeddings_inference"
    module = client_of(name, "llama-index-embeddings-text-embeddings-inference")
    client = module.TextEmbeddingsInference(model_name="sentences", base_url=base)
    same_vectors(client.get_text_embedding_batch(TEXTS), unit_vectors)
    ranker = client_of("llama_index.postprocessor.tei_rerank", "llama-index-postprocessor-tei-rerank")
    same_ranking(reranked(ranker.TextEmbeddingInference(base_url=base, top_n=3)), scores)


def test_llama_indexs_client_of_cohere(base: str, vectors: Any, scores: list[float]) -> None:
    module = client_of("llama_index.embeddings.cohere", "llama-index-embeddings-cohere")
    client = module.CohereEmbedding(
        api_key="none", base_url=base, model_name=COHERES_NAME, input_type="search_document"
    )
    same_vectors(client.get_text_embedding_batch(TEXTS), vectors)
    ranker = client_of("llama_index.postprocessor.cohere_rerank", "llama-index-postprocessor-cohere-rerank")
    same_ranking(reranked(ranker.CohereRerank(api_key="none", base_url=base, model="ranker", top_n=2)), scores)


def test_llama_indexs_client_of_jina(base: str, vectors: Any, scores: list[float]) -> None:
    module = client_of("llama_index.embeddings.jinaai", "llama-index-embeddings-jinaai")
    client = module.JinaEmbedding(api_key="none", model="sentences", task="text-matching")
    client._api.api_url = f"{base}/v1/embeddings"  # the class has no argument for it
    same_vectors(client.get_text_embedding_batch(TEXTS), vectors)
    client._api.model = "gpt"
    with pytest.raises(RuntimeError, match="no model 'gpt'"):
        client.get_text_embedding_batch(TEXTS)
    ranker = client_of("llama_index.postprocessor.jinaai_rerank", "llama-index-postprocessor-jinaai-rerank")
    same_ranking(reranked(ranker.JinaRerank(api_key="none", base_url=f"{base}/v1", model="ranker", top_n=2)), scores)


def test_llama_indexs_client_of_servers_like_openai(base: str, vectors: Any) -> None:
    module = client_of("llama_index.embeddings.openai_like", "llama-index-embeddings-openai-like")
    client = module.OpenAILikeEmbedding(model_name="sentences", api_base=f"{base}/v1", api_key="none")
    same_vectors(client.get_text_embedding_batch(TEXTS), vectors)


def test_chromas_functions_for_servers(base: str, vectors: Any, unit_vectors: Any) -> None:
    functions = client_of("chromadb.utils.embedding_functions", "chromadb")
    same_vectors(functions.HuggingFaceEmbeddingServer(url=f"{base}/embed")(TEXTS), unit_vectors)
    client_of("openai")
    client = functions.OpenAIEmbeddingFunction(api_key="none", api_base=f"{base}/v1", model_name="sentences")
    same_vectors(client(TEXTS), vectors)


def test_hugging_faces_client(base: str, vectors: Any, unit_vectors: Any, folders: Path) -> None:
    client = client_of("huggingface_hub").InferenceClient
    for path in ("/embed", "/models/sentences", "/"):
        same_vectors(client(base + path).feature_extraction(TEXTS[0]), unit_vectors[:1])
        same_vectors(client(base + path).feature_extraction(TEXTS[0], encoding_format="float"), unit_vectors[:1])
        same_vectors(client(base + path).feature_extraction(TEXTS[0], normalize=False), vectors[:1])
    expected = SentenceEncoder(folders / "sentences").similarity(vectors[:1], vectors[1:])[0]
    same_vectors(client(f"{base}/similarity").sentence_similarity(TEXTS[0], TEXTS[1:]), expected)

    text = "a great film"
    [label, *_] = tasks.classify(folders / "reviews", text)
    found = client(f"{base}/models/reviews").text_classification(text)
    assert (found[0].label, found[0].score) == (label["label"], pytest.approx(label["score"]))
    text = "ada lovelace lived in london"
    entities = client(f"{base}/models/entities").token_classification(text)
    named = tasks.ner(folders / "entities", text)
    assert [(one.entity_group, one.word, one.start) for one in entities] == [
        (one["entity_group"], one["word"], one["start"]) for one in named
    ]
    text = "the capital of france is [MASK]"
    filled = client(f"{base}/models/words").fill_mask(text, top_k=3)
    assert [one.token_str for one in filled] == [one["token_str"] for one in tasks.fill_mask(folders / "words", text)][
        :3
    ]


@pytest.mark.parametrize("name", ["reviews", "frozen"])
def test_hugging_faces_client_sends_parameters_to_any_url_of_a_classifier(
    name: str, folders: Path, tmp_path: Path
) -> None:
    client = client_of("huggingface_hub").InferenceClient
    folder = folders / "reviews" if name == "reviews" else tmp_path / "frozen"
    if name == "frozen":
        texts = ["a great film", "a dull film", "a wonderful story", "a boring story"]
        encoder = SentenceEncoder(folders / "sentences")
        FrozenClassifier(encoder).fit(texts, ["praise", "blame"] * 2).save_pretrained(folder)
    text = "a wonderful film"
    server = start(folder)
    try:
        for path in ("/", "/predict", "/classify", f"/models/{name}"):
            ask = client(f"http://127.0.0.1:{server.port}{path}").text_classification
            for options in (
                {},
                {"top_k": 1},
                {"function_to_apply": "none"},
                {"top_k": 2, "function_to_apply": "sigmoid"},
            ):
                wanted = tasks.classify(folder, text, **{"top_k": None, **options})
                found = [(one.label, pytest.approx(one.score, abs=1e-6)) for one in ask(text, **options)]
                assert found == [(one["label"], one["score"]) for one in wanted]
    finally:
        stop(server)


EMBEDDING_ROUTES = {
    "openai": "/v1",
    "hosted_vllm": "/v1",
    "infinity": "/infinity",
    "cohere": "/v2/embed",
    "jina_ai": "/v1",
}
RANKING_ROUTES = {"hosted_vllm": "", "infinity": "/infinity", "cohere": "", "jina_ai": "/v1", "huggingface": ""}


@pytest.mark.parametrize("provider", EMBEDDING_ROUTES)
def test_litellms_routes_of_embeddings(base: str, vectors: Any, provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it would ask for prices
    litellm = client_of("litellm")
    found = litellm.embedding(
        model=f"{provider}/sentences", input=TEXTS, api_base=base + EMBEDDING_ROUTES[provider], api_key="none"
    )
    same_vectors([item["embedding"] for item in found.data], vectors)


@pytest.mark.parametrize("provider", RANKING_ROUTES)
def test_litellms_routes_of_rankings(
    base: str, scores: list[float], provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm = client_of("litellm")
    found = litellm.rerank(
        model=f"{provider}/ranker",
        query=QUERY,
        documents=TEXTS,
        top_n=2,
        return_documents=True,
        api_base=base + RANKING_ROUTES[provider],
        api_key="none",
    )
    same_ranking([(one["index"], one["relevance_score"]) for one in found.results], scores)
    assert [one["document"] for one in found.results] == [{"text": TEXTS[one["index"]]} for one in found.results]


def test_haystacks_client_of_openai(base: str, vectors: Any) -> None:
    embedders = client_of("haystack.components.embedders", "haystack-ai")
    secret = importlib.import_module("haystack.utils").Secret.from_token("none")
    client = embedders.OpenAITextEmbedder(api_base_url=f"{base}/v1", model="sentences", api_key=secret)
    same_vectors(client.run(TEXTS[0])["embedding"], vectors[0])


def same_sparse(found: Any, expected: Any) -> None:
    rows = np.zeros_like(expected)
    for row, numbers in zip(rows, found, strict=True):
        row[[one["index"] for one in numbers]] = [one["value"] for one in numbers]
    np.testing.assert_array_equal(rows, expected)


def same_tokens(found: Any, expected: Any) -> None:
    for one, other in zip(found, expected, strict=True):
        same_vectors(one, other)


def test_aiohttp(base: str, unit_vectors: Any, folders: Path) -> None:
    aiohttp = client_of("aiohttp")

    async def ask() -> tuple[Any, ...]:
        async with aiohttp.ClientSession(base) as session:

            async def post(path: str, **fields: Any) -> Any:
                async with session.post(path, json=fields) as answer:
                    assert answer.status == 200
                    return await answer.json()

            return await asyncio.gather(
                post("/embed", inputs=TEXTS),
                post("/embed_sparse", inputs=TEXTS),
                post("/embed_all", inputs=TEXTS, model="colbert"),
                post("/embed_all", inputs=TEXTS),
            )

    dense, sparse, tokens, of_sentences = asyncio.run(ask())
    same_vectors(dense, unit_vectors)
    same_sparse(sparse, SparseEncoder(folders / "splade").encode(TEXTS).toarray())
    same_tokens(tokens, MultiVectorEncoder(folders / "colbert").encode(TEXTS))
    same_tokens(of_sentences, SentenceEncoder(folders / "sentences").encode(TEXTS, output_value="token_embeddings"))


def test_sparse_and_multi_vectors_over_http(server: Server, folders: Path) -> None:
    # With the standard library's client, so that it runs everywhere.
    def post(path: str, **fields: Any) -> Any:
        status, _, found = server.post(path, fields)
        assert status == 200, found
        return found

    splade, colbert = SparseEncoder(folders / "splade"), MultiVectorEncoder(folders / "colbert")
    same_sparse(post("/embed_sparse", inputs=TEXTS), splade.encode(TEXTS).toarray())
    same_sparse(post("/models/splade", inputs=TEXTS), splade.encode(TEXTS).toarray())
    same_tokens(post("/embed_all", inputs=TEXTS, model="colbert"), colbert.encode(TEXTS))
    same_tokens(post("/embed_all", inputs=TEXTS, model="colbert", prompt_name="query"), colbert.encode_query(TEXTS))
    pooled = post("/pooling", input=TEXTS, model="colbert")["data"]
    same_tokens([one["data"] for one in pooled], colbert.encode(TEXTS))
    expected = [(one["corpus_id"], one["score"]) for one in colbert.rank(QUERY, TEXTS)]
    found = post("/rerank", query=QUERY, texts=TEXTS, model="colbert")
    assert [(one["index"], one["score"]) for one in found] == expected
