"""Retrieval frameworks with their real packages: each gets the vectors of the plain call."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny_models
from processes import python
from wordpiece_bert import SentenceEncoder
from wordpiece_bert.bert.checkpoint import read_tensors, write_safetensors
from wordpiece_bert.errors import InputError

os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")
os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")

# The warnings of these packages, and sockets that they leave open, are not errors of these tests.
pytestmark = pytest.mark.filterwarnings("ignore")

DOCUMENTS = ["to repair a bicycle", "bread dough in the oven", "a wonderful film", "the wheel and the tire"]
QUERY = "bread in the oven"


def package(module: str, install: str) -> Any:
    return pytest.importorskip(
        module,
        reason=f"not run: {module} is not installed, or does not import: pip install {install}",
        exc_type=ImportError,
    )


def equal(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(np.array(found, np.float32), expected)


#: The classes of frameworks by module, and the attribute or method that shows which model one has.
CLASSES = {
    "langchain": ("langchain_core", "WordPieceEmbeddings"),
    "llama_index": ("llama_index.core", "WordPieceEmbedding"),
    "haystack": ("haystack", "WordPieceDocumentEmbedder"),
    "chroma": ("chromadb", "WordPieceEmbeddingFunction"),
    "lancedb": ("lancedb", "WordPieceFunction"),
    "bertopic": ("bertopic", "WordPieceEmbedder"),
    "keybert": ("keybert", "WordPieceEmbedder"),
}


@pytest.mark.parametrize("name", [*CLASSES, "haystack text"])
def test_every_class_takes_model_name(name: str, folder: Path) -> None:
    module, called = CLASSES[name.partition(" ")[0]]
    package(module, module)
    found = importlib.import_module(f"wordpiece_bert.integrations.{name.partition(' ')[0]}")
    cls = getattr(found, "WordPieceTextEmbedder" if name == "haystack text" else called)
    first = "name" if name == "lancedb" else "model"
    for given in (str(folder), folder):
        assert vectors_of(cls(model_name=given)) == vectors_of(cls(**{first: given}))
    with pytest.raises(InputError, match="two names of one argument"):
        cls(model_name="minilm", **{first: "minilm"})
    with pytest.raises(InputError, match="not int"):
        vectors_of(cls(model_name=3))


@pytest.mark.parametrize("name", [*CLASSES, "haystack text"])
def test_every_class_takes_the_options_of_an_encoder(name: str, folder: Path) -> None:
    module, called = CLASSES[name.partition(" ")[0]]
    package(module, module)
    found = importlib.import_module(f"wordpiece_bert.integrations.{name.partition(' ')[0]}")
    cls = getattr(found, "WordPieceTextEmbedder" if name == "haystack text" else called)
    made = cls(model_name=folder, dtype="int8", encoder_options={"truncate_dim": 8})
    assert vectors_of(made) == SentenceEncoder(folder, dtype="int8", truncate_dim=8).encode(QUERY).tolist()
    with pytest.raises(InputError, match="encoder_options has 'width'"):
        vectors_of(cls(model_name=folder, encoder_options={"width": 8}))


def vectors_of(embedding: Any) -> list[float]:
    """The vector of a text by an object of any of the classes."""
    haystack = sys.modules.get("haystack")
    calls = {
        "WordPieceEmbeddings": lambda: embedding.embed_query(QUERY),
        "WordPieceEmbedding": lambda: embedding.get_query_embedding(QUERY),
        "WordPieceDocumentEmbedder": lambda: (
            embedding.run(documents=[haystack.Document(content=QUERY)])["documents"][0].embedding
        ),
        "WordPieceTextEmbedder": lambda: embedding.run(text=QUERY)["embedding"],
        "WordPieceEmbeddingFunction": lambda: embedding([QUERY])[0].tolist(),
        "WordPieceFunction": lambda: embedding.generate_embeddings([QUERY])[0].tolist(),
        "WordPieceEmbedder": lambda: embedding.embed([QUERY])[0].tolist(),
    }
    return list(calls[type(embedding).__name__]())


def test_langchain(folder: Path, encoder: SentenceEncoder) -> None:
    package("langchain_core", "langchain-core")
    from langchain_core.vectorstores import InMemoryVectorStore

    from wordpiece_bert.integrations.langchain import WordPieceEmbeddings

    embeddings = WordPieceEmbeddings(folder)
    equal(embeddings.embed_documents(DOCUMENTS), encoder.encode(DOCUMENTS))
    equal(asyncio.run(embeddings.aembed_query(QUERY)), encoder.encode(QUERY))
    with pytest.raises(InputError, match="texts must be a list, not the single str 'bread'"):
        embeddings.embed_documents("bread")
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


def test_llama_index_restores_what_it_stored(folder: Path, encoder: SentenceEncoder) -> None:
    package("llama_index.core", "llama-index-core")
    from llama_index.core.embeddings.loading import load_embed_model

    from wordpiece_bert.integrations.llama_index import WordPieceEmbedding

    embedding = WordPieceEmbedding(folder, embed_batch_size=7, num_workers=2)
    stored = embedding.to_dict()
    for again in (
        WordPieceEmbedding.from_dict(stored),
        WordPieceEmbedding.from_json(embedding.to_json()),
        load_embed_model(stored),
    ):
        assert isinstance(again, WordPieceEmbedding)
        assert again.to_dict() == stored
        assert (again.model_name, again.embed_batch_size, again.num_workers) == (str(folder), 7, 2)
        equal(again.get_text_embedding_batch(DOCUMENTS), encoder.encode(DOCUMENTS))
    unnamed = WordPieceEmbedding(encoder).to_dict()
    with pytest.raises(InputError, match="made of an encoder, which a dict does not hold"):
        WordPieceEmbedding.from_dict(unnamed)


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


#: A saved pipeline of argument 1 is loaded as soon as the module is imported that argument 2 names.
LOADS = """
import sys
import haystack
if sys.argv[2]:
    __import__(sys.argv[2])
pipeline = haystack.Pipeline.loads(open(sys.argv[1], encoding="utf-8").read())
pipeline.warm_up()
print(len(pipeline.run({"documents": {"documents": [haystack.Document(content="bread")]}})["documents"]["documents"]))
"""


def test_haystack_saves_and_loads_pipelines(folder: Path, tmp_path: Path) -> None:
    haystack = package("haystack", "haystack-ai")
    from wordpiece_bert.integrations.haystack import WordPieceDocumentEmbedder, WordPieceTextEmbedder

    options: dict[str, Any] = {
        "prefix": "p ",
        "suffix": " s",
        "batch_size": 5,
        "progress_bar": False,
        "meta_fields_to_embed": ["title"],
        "embedding_separator": " | ",
    }
    pipeline = haystack.Pipeline()
    pipeline.add_component("documents", WordPieceDocumentEmbedder(folder, **options))
    pipeline.add_component("query", WordPieceTextEmbedder(str(folder), prefix="q ", suffix=" t"))
    again = haystack.Pipeline.loads(pipeline.dumps())
    assert again.to_dict() == pipeline.to_dict()
    documents = again.get_component("documents")
    assert {name: getattr(documents, name) for name in options} == options
    assert (again.get_component("query").prefix, again.get_component("query").suffix) == ("q ", " t")
    file = tmp_path / "pipeline.yaml"
    single = haystack.Pipeline()
    single.add_component("documents", WordPieceDocumentEmbedder(str(folder)))
    file.write_text(single.dumps(), encoding="utf-8")
    done = python(LOADS, file, "wordpiece_bert.integrations.haystack")
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    done = python(LOADS, file, "")
    assert "wordpiece_bert.integrations.haystack" in done.stderr  # what to import, or to allow


def test_haystack_embeds_what_it_is_told(folder: Path, encoder: SentenceEncoder) -> None:
    """The texts are the same as for the embedders of Haystack itself, in the order of documents, in threads too."""
    haystack = package("haystack", "haystack-ai")
    from wordpiece_bert.integrations.haystack import WordPieceDocumentEmbedder, WordPieceTextEmbedder

    documents = [
        haystack.Document(content="bread", meta={"title": "the oven", "year": 1999}),
        haystack.Document(content="bread", meta={"title": None, "year": 0}),
        haystack.Document(content=None, meta={"title": ""}),
        haystack.Document(content="a film"),
    ]
    embedder = WordPieceDocumentEmbedder(
        encoder, prefix="a ", suffix=" b", meta_fields_to_embed=["year", "title"], progress_bar=False, batch_size=1
    )
    texts = ["a 1999\nthe oven\nbread b", "a 0\nbread b", "a \n b", "a a film b"]
    for found in (embedder.run(documents=documents), asyncio.run(embedder.run_async(documents=documents))):
        equal([one.embedding for one in found["documents"]], encoder.encode_document(texts))
        assert [(one.content, one.meta) for one in found["documents"]] == [(one.content, one.meta) for one in documents]
    theirs = pytest.importorskip("haystack.components.embedders").OpenAIDocumentEmbedder(
        api_key=haystack.utils.Secret.from_token("none"),
        prefix="a ",
        suffix=" b",
        meta_fields_to_embed=["year", "title"],
    )
    if hasattr(theirs, "_prepare_texts_to_embed"):
        assert list(theirs._prepare_texts_to_embed(documents).values()) == texts
    query = WordPieceTextEmbedder(folder, prefix="a ", suffix=" b")
    for answer in (query.run(text=QUERY), asyncio.run(query.run_async(text=QUERY))):
        equal(answer["embedding"], encoder.encode_query(f"a {QUERY} b"))
    with pytest.raises(InputError, match="documents must be a list of Haystack's documents"):
        embedder.run(documents="a text")
    with pytest.raises(InputError, match="text must be a text, not list"):
        query.run(text=documents)
    with pytest.raises(InputError, match="batch_size"):
        WordPieceDocumentEmbedder(encoder, batch_size=0)
    with pytest.raises(InputError, match="meta_fields_to_embed must be a list of str, not 'title'"):
        WordPieceDocumentEmbedder(encoder, meta_fields_to_embed="title")


#: Open a collection or table, without or with the module that its error names.
CHROMA = """
import sys
import chromadb
if sys.argv[2]:
    __import__(sys.argv[2])
collection = chromadb.PersistentClient(sys.argv[1]).get_collection("texts")
print(collection.query(query_texts=["bread in the oven"], n_results=1)["documents"][0][0])
"""
LANCEDB = """
import sys
import lancedb
if sys.argv[2]:
    __import__(sys.argv[2])
print(lancedb.connect(sys.argv[1]).open_table("texts").search("bread in the oven").limit(1).to_list()[0]["text"])
"""


@pytest.mark.parametrize("library", ["chroma", "lancedb"])
def test_a_collection_names_the_module_that_opens_it(library: str, folder: Path, tmp_path: Path) -> None:
    module = f"wordpiece_bert.integrations.{library}"
    path = tmp_path / "db"
    if library == "chroma":
        chromadb = package("chromadb", "chromadb")
        from wordpiece_bert.integrations.chroma import WordPieceEmbeddingFunction

        client = chromadb.PersistentClient(str(path))
        collection = client.create_collection("texts", embedding_function=WordPieceEmbeddingFunction(folder))
        collection.add(ids=list("abcd"), documents=DOCUMENTS)
    else:
        lancedb = package("lancedb", "lancedb")
        from lancedb.pydantic import LanceModel, Vector

        from wordpiece_bert.integrations.lancedb import WordPieceFunction

        function = WordPieceFunction.create(model_name=str(folder))

        class Entry(LanceModel):
            text: str = function.SourceField()
            vector: Vector(function.ndims()) = function.VectorField()  # type: ignore[valid-type]

        table = lancedb.connect(path).create_table("texts", schema=Entry)
        table.add([{"text": text} for text in DOCUMENTS])
    program = CHROMA if library == "chroma" else LANCEDB
    failed = python(program, path, "")
    assert failed.returncode != 0
    assert module in failed.stderr.splitlines()[-1]
    done = python(program, path, module)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == DOCUMENTS[1]


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

    from wordpiece_bert.integrations.lancedb import WordPieceFunction

    assert get_registry().get("wordpiece_bert.integrations.lancedb") is WordPieceFunction
    function = WordPieceFunction.create(name=str(folder))

    class Entry(LanceModel):
        text: str = function.SourceField()
        vector: Vector(function.ndims()) = function.VectorField()  # type: ignore[valid-type]

    table = lancedb.connect(tmp_path / "db").create_table("a", schema=Entry)
    table.add([{"text": text} for text in DOCUMENTS])
    again = lancedb.connect(tmp_path / "db").open_table("a")
    assert again.search(QUERY).limit(1).to_list()[0]["text"] == DOCUMENTS[1]
    equal(np.stack(again.to_arrow()["vector"].to_pylist()), encoder.encode(DOCUMENTS))


def stored_by_chroma(parent: Path, **options: Any) -> Callable[[], Any]:
    chromadb = package("chromadb", "chromadb")
    from wordpiece_bert.integrations.chroma import WordPieceEmbeddingFunction

    client = chromadb.PersistentClient(str(parent / "chroma"))
    client.create_collection("texts", embedding_function=WordPieceEmbeddingFunction("model", **options))

    def again() -> Any:
        collection = client.get_collection("texts")
        collection.add(ids=["a"], documents=[QUERY])
        return collection.get(include=["embeddings"])["embeddings"][0]

    return again


def stored_by_haystack(parent: Path, **options: Any) -> Callable[[], Any]:
    haystack = package("haystack", "haystack-ai")
    from wordpiece_bert.integrations.haystack import WordPieceTextEmbedder

    pipeline = haystack.Pipeline()
    pipeline.add_component("query", WordPieceTextEmbedder("model", **options))
    stored = pipeline.dumps()
    return lambda: haystack.Pipeline.loads(stored).run({"query": {"text": QUERY}})["query"]["embedding"]


def stored_by_llama_index(parent: Path, **options: Any) -> Callable[[], Any]:
    package("llama_index.core", "llama-index-core")
    from wordpiece_bert.integrations.llama_index import WordPieceEmbedding

    stored = WordPieceEmbedding("model", **options).to_json()
    return lambda: WordPieceEmbedding.from_json(stored).get_query_embedding(QUERY)


def stored_by_lancedb(parent: Path, **options: Any) -> Callable[[], Any]:
    lancedb = package("lancedb", "lancedb")
    from lancedb.pydantic import LanceModel, Vector

    from wordpiece_bert.integrations.lancedb import WordPieceFunction

    function = WordPieceFunction.create(name="model", max_retries=0, **options)

    class Entry(LanceModel):
        text: str = function.SourceField()
        vector: Vector(function.ndims()) = function.VectorField()  # type: ignore[valid-type]

    lancedb.connect(parent / "lance").create_table("a", schema=Entry)

    def again() -> Any:
        table = lancedb.connect(parent / "lance").open_table("a")
        table.add([{"text": QUERY}])
        return table.to_arrow()["vector"].to_pylist()[0]

    return again


STORES = {
    "chroma": stored_by_chroma,
    "haystack": stored_by_haystack,
    "llama_index": stored_by_llama_index,
    "lancedb": stored_by_lancedb,
}


@pytest.mark.parametrize("name", STORES)
def test_what_is_stored_means_the_same_model_everywhere_and_no_other(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    weights = tiny_models.make_sentences(tmp_path / "here" / "model") / "model.safetensors"
    expected = SentenceEncoder(tmp_path / "here" / "model").encode(QUERY)
    monkeypatch.chdir(tmp_path / "here")
    again = STORES[name](tmp_path)
    monkeypatch.chdir(tmp_path / "there")
    np.testing.assert_allclose(again(), expected, rtol=1e-6)
    tensors = dict(read_tensors(weights))
    write_safetensors(weights, {name: np.roll(array, 1, axis=0) for name, array in tensors.items()})
    with pytest.raises(Exception, match="is not the model with which the stored vectors were made: other weights"):
        again()


def used_with_haystack(folder: Path) -> Callable[[], Any]:
    package("haystack", "haystack-ai")
    from wordpiece_bert.integrations.haystack import WordPieceTextEmbedder

    embedder = WordPieceTextEmbedder(folder)
    embedder.run(text=QUERY)
    return lambda: WordPieceTextEmbedder.from_dict(embedder.to_dict()).run(text=QUERY)


def used_with_lancedb(folder: Path) -> Callable[[], Any]:
    package("lancedb", "lancedb")
    from wordpiece_bert.integrations.lancedb import WordPieceFunction

    function = WordPieceFunction.create(name=str(folder))
    function.compute_query_embeddings(QUERY)
    return lambda: WordPieceFunction.create(**function.safe_model_dump()).compute_query_embeddings(QUERY)


@pytest.mark.parametrize("used", [used_with_haystack, used_with_lancedb])
def test_what_was_used_is_stored_with_the_model_that_made_its_vectors(
    used: Callable[[Path], Callable[[], Any]], tmp_path: Path
) -> None:
    folder = tiny_models.make_sentences(tmp_path / "model")
    again = used(folder)
    tensors = dict(read_tensors(folder / "model.safetensors"))
    write_safetensors(folder / "model.safetensors", {name: np.roll(array, 1, 0) for name, array in tensors.items()})
    with pytest.raises(InputError, match="is not the model with which the stored vectors were made: other weights"):
        again()


@pytest.mark.parametrize("name", STORES)
def test_what_is_stored_has_the_options_of_the_encoder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_models.make_sentences(tmp_path / "model")
    expected = SentenceEncoder(folder, dtype="int8", truncate_dim=8).encode(QUERY)
    monkeypatch.chdir(tmp_path)
    again = STORES[name](tmp_path, dtype="int8", encoder_options={"truncate_dim": 8})
    np.testing.assert_array_equal(np.array(again(), np.float32), expected)


def test_chroma_stores_the_options_of_an_encoder(folder: Path) -> None:
    package("chromadb", "chromadb")
    from wordpiece_bert.integrations.chroma import WordPieceEmbeddingFunction

    settings: dict[str, Any] = {"prompts": {"one": "a prompt: "}, "default_prompt_name": "one", "truncate_dim": 8}
    encoder = SentenceEncoder(folder, dtype="int8", calibrate=["bread"], threads=1, **settings)
    encoder.max_seq_length = 7
    config = json.loads(json.dumps(WordPieceEmbeddingFunction(encoder).get_config()))
    assert "threads" not in config["encoder_options"]
    again = WordPieceEmbeddingFunction.build_from_config(config)
    equal(again(DOCUMENTS), encoder.encode_document(DOCUMENTS))


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
