"""Retrieval frameworks with their real packages: each gets the vectors of the plain call."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tiny_models
from wordpiece_bert import SentenceEncoder
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")
os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")

# The warnings of these packages, and sockets that they leave open, are not errors of these tests.
pytestmark = pytest.mark.filterwarnings("ignore")

DOCUMENTS = ["to repair a bicycle", "bread dough in the oven", "a wonderful film", "the wheel and the tire"]
QUERY = "bread in the oven"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.make_sentences(tmp_path_factory.mktemp("models") / "sentences")


@pytest.fixture(scope="module")
def encoder(folder: Path) -> SentenceEncoder:
    return SentenceEncoder(folder)


def package(module: str, install: str) -> Any:  # noqa: ANN401
    return pytest.importorskip(
        module,
        reason=f"not run: {module} is not installed, or does not import: pip install {install}",
        exc_type=ImportError,
    )


def equal(found: Any, expected: Any) -> None:  # noqa: ANN401
    np.testing.assert_array_equal(np.array(found, np.float32), expected)


def test_langchain(folder: Path, encoder: SentenceEncoder) -> None:
    package("langchain_core", "langchain-core")
    from langchain_core.vectorstores import InMemoryVectorStore

    from wordpiece_bert.integrations.langchain import WordPieceEmbeddings

    embeddings = WordPieceEmbeddings(folder)
    equal(embeddings.embed_documents(DOCUMENTS), encoder.encode(DOCUMENTS))
    equal(asyncio.run(embeddings.aembed_query(QUERY)), encoder.encode(QUERY))
    store = InMemoryVectorStore.from_texts(DOCUMENTS, WordPieceEmbeddings(encoder))
    assert store.similarity_search(QUERY, k=1)[0].page_content == DOCUMENTS[1]


def test_llama_index(folder: Path, encoder: SentenceEncoder) -> None:
    package("llama_index.core", "llama-index-core")
    from llama_index.core import Document, VectorStoreIndex

    from wordpiece_bert.integrations.llama_index import WordPieceEmbedding

    embedding = WordPieceEmbedding(folder, embed_batch_size=3)
    equal(embedding.get_text_embedding_batch(DOCUMENTS), encoder.encode(DOCUMENTS))
    equal(embedding.get_query_embedding(QUERY), encoder.encode(QUERY))
    equal(asyncio.run(embedding.aget_text_embedding(QUERY)), encoder.encode(QUERY))
    index = VectorStoreIndex.from_documents(
        [Document(text=text) for text in DOCUMENTS], embed_model=WordPieceEmbedding(encoder), transformations=[]
    )
    retriever = index.as_retriever(similarity_top_k=1, embed_model=embedding)
    assert retriever.retrieve(QUERY)[0].text == DOCUMENTS[1]


def test_haystack(folder: Path, encoder: SentenceEncoder) -> None:
    haystack = package("haystack", "haystack-ai")
    from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    from wordpiece_bert.integrations.haystack import WordPieceDocumentEmbedder, WordPieceTextEmbedder

    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    documents = [haystack.Document(content=text) for text in DOCUMENTS]
    found = WordPieceDocumentEmbedder(encoder).run(documents=documents)["documents"]
    equal([document.embedding for document in found], encoder.encode(DOCUMENTS))
    assert documents[0].embedding is None
    store.write_documents(found)
    pipeline = haystack.Pipeline()
    pipeline.add_component("embedder", WordPieceTextEmbedder(str(folder)))
    pipeline.add_component("retriever", InMemoryEmbeddingRetriever(store, top_k=1))
    pipeline.connect("embedder.embedding", "retriever.query_embedding")
    answer = pipeline.run({"embedder": {"text": QUERY}})
    assert answer["retriever"]["documents"][0].content == DOCUMENTS[1]
    again = WordPieceTextEmbedder.from_dict(WordPieceTextEmbedder(str(folder)).to_dict())
    again.warm_up()
    equal(again.run(text=QUERY)["embedding"], encoder.encode(QUERY))
    with pytest.raises(InputError, match="only a component with the name"):
        WordPieceTextEmbedder(encoder).to_dict()


def test_chroma(folder: Path, encoder: SentenceEncoder, tmp_path: Path) -> None:
    chromadb = package("chromadb", "chromadb")
    from wordpiece_bert.integrations.chroma import WordPieceEmbeddingFunction

    client = chromadb.PersistentClient(str(tmp_path / "db"))
    collection = client.create_collection("texts", embedding_function=WordPieceEmbeddingFunction(encoder))
    collection.add(ids=list("abcd"), documents=DOCUMENTS)
    again = client.get_collection("texts")  # made again of the stored name and folder
    assert again.query(query_texts=[QUERY], n_results=1)["documents"] == [[DOCUMENTS[1]]]
    equal(WordPieceEmbeddingFunction(encoder)(DOCUMENTS), encoder.encode(DOCUMENTS))
    # For the cosine, Chroma stores directions and lengths, which it multiplies again.
    np.testing.assert_allclose(again.get(include=["embeddings"])["embeddings"], encoder.encode(DOCUMENTS), rtol=1e-6)
    changed = encoder._with_vocabulary(lambda model: model, lambda tokenizer: tokenizer)
    with pytest.raises(InputError, match="comes from no folder"):
        WordPieceEmbeddingFunction(changed).get_config()


def test_lancedb(folder: Path, encoder: SentenceEncoder, tmp_path: Path) -> None:
    lancedb = package("lancedb", "lancedb")
    from lancedb.embeddings import get_registry
    from lancedb.pydantic import LanceModel, Vector

    import wordpiece_bert.integrations.lancedb  # noqa: F401 - registers the function

    function = get_registry().get("wordpiece-bert").create(name=str(folder))

    class Entry(LanceModel):
        text: str = function.SourceField()
        vector: Vector(function.ndims()) = function.VectorField()  # type: ignore[valid-type]

    table = lancedb.connect(tmp_path / "db").create_table("a", schema=Entry)
    table.add([{"text": text} for text in DOCUMENTS])
    again = lancedb.connect(tmp_path / "db").open_table("a")
    assert again.search(QUERY).limit(1).to_list()[0]["text"] == DOCUMENTS[1]
    equal(np.stack(again.to_arrow()["vector"].to_pylist()), encoder.encode(DOCUMENTS))


def test_qdrant_takes_the_arrays_of_encode(encoder: SentenceEncoder) -> None:
    qdrant_client = package("qdrant_client", "qdrant-client")
    client = qdrant_client.QdrantClient(":memory:")
    size = qdrant_client.models.VectorParams(size=encoder.dimension, distance=qdrant_client.models.Distance.COSINE)
    client.create_collection("a", vectors_config=size)
    client.upload_collection("a", vectors=encoder.encode(DOCUMENTS), payload=[{"text": text} for text in DOCUMENTS])
    found = client.query_points("a", query=encoder.encode(QUERY), limit=1).points
    assert found[0].payload["text"] == DOCUMENTS[1]
    client.close()


def test_bertopic(folder: Path, encoder: SentenceEncoder) -> None:
    bertopic = package("bertopic", "--no-deps bertopic")
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA

    from wordpiece_bert.integrations.bertopic import WordPieceEmbedder

    equal(WordPieceEmbedder(folder).embed(DOCUMENTS), encoder.encode(DOCUMENTS))
    model = bertopic.BERTopic(
        embedding_model=WordPieceEmbedder(encoder),
        umap_model=PCA(2, random_state=0),
        hdbscan_model=KMeans(2, random_state=0, n_init=1),
    )
    kitchen, workshop = "bread dough oven flour bake", "bicycle wheel tire repair"
    topics, _ = model.fit_transform([kitchen, workshop] * 10)
    assert len(set(topics[::2])) == len(set(topics[1::2])) == 1
    assert topics[0] != topics[1]
    assert isinstance(model.embedding_model, WordPieceEmbedder)  # no other model was loaded


def test_keybert(encoder: SentenceEncoder) -> None:
    keybert = package("keybert", "--no-deps keybert")
    from wordpiece_bert.integrations.keybert import WordPieceEmbedder

    model = keybert.KeyBERT(model=WordPieceEmbedder(encoder))
    assert isinstance(model.model, WordPieceEmbedder)  # no other model was loaded
    words = model.extract_keywords("bread bread dough and a film", top_n=2)
    assert words[0][0] == "bread"
    assert words[0][1] == pytest.approx(
        encoder.similarity(encoder.encode("bread bread dough and a film"), encoder.encode("bread")).item(), abs=1e-4
    )


def test_txtai_takes_a_function(encoder: SentenceEncoder) -> None:
    txtai = package("txtai", "--no-deps txtai")
    embeddings = txtai.Embeddings({"transform": lambda texts: encoder.encode(texts), "backend": "numpy"})
    embeddings.index(DOCUMENTS)
    assert embeddings.search(QUERY, 1)[0][0] == 1
