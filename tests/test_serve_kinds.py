"""Every kind of folder that the package writes or reads, on every path: what each answers, and what it refuses by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from serve_client import Client
from serve_fixtures import folders
from test_static_classifier import make_head
from wordpiece_bert import CrossEncoder, SentenceEncoder, Tokenizer, tasks
from wordpiece_bert.bert import AutoModel, BertModel
from wordpiece_bert.cli import main
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.finetune import FrozenClassifier, LogisticRegression, Ridge, fit_token_head, model_for
from wordpiece_bert.finetune.data import token_rows
from wordpiece_bert.sentence import M3Encoder, StaticClassifier
from wordpiece_bert.serve import ServerSettings, create_app
from wordpiece_bert.serve.model_loading import load_model
from wordpiece_bert.serve.routes import ROUTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TEXTS = ["a great film", "a dull film", "a wonderful story", "a boring story"]
LABELS = ["praise", "blame", "praise", "blame"]
PAIRS = [(a, b) for a in TEXTS for b in TEXTS]
TEXT = "she lived in paris [MASK]"

#: What a request sends, by its path and what else tells it from others on the path.
REQUESTS: dict[str, dict[str, Any]] = {
    "/v1/embeddings": {"input": TEXT},
    "/infinity/embeddings": {"input": TEXT},
    "/v1/embed": {"texts": [TEXT]},
    "/v2/embed": {"texts": [TEXT]},
    "/embed": {"inputs": TEXT},
    "/similarity": {"inputs": {"source_sentence": TEXT, "sentences": TEXTS}},
    "/pooling embed": {"input": TEXT, "task": "embed"},
    "/embed_all": {"inputs": TEXT},
    "/pooling token_embed": {"input": TEXT, "task": "token_embed"},
    "/embed_sparse": {"inputs": TEXT},
    "/v1/rerank": {"query": TEXT, "documents": TEXTS},
    "/v2/rerank": {"query": TEXT, "documents": TEXTS},
    "/rerank texts": {"query": TEXT, "texts": TEXTS},
    "/rerank documents": {"query": TEXT, "documents": TEXTS},
    "/infinity/rerank": {"query": TEXT, "documents": TEXTS},
    "/score": {"text_1": TEXT, "text_2": TEXTS},
    "/v1/score": {"text_1": TEXT, "text_2": TEXTS},
    "/predict": {"inputs": TEXT},
    "/predict pair": {"inputs": [[TEXT, TEXT]]},
    "/classify": {"input": TEXT},
    "/classify inputs": {"inputs": TEXT, "parameters": {}},
    "/pooling classify": {"input": TEXT, "task": "classify"},
    "/tokenize": {"inputs": TEXT},
    "/decode": {"ids": [5]},
    "/": {"inputs": TEXT},
    "/models/": {"inputs": TEXT},
}
VECTORS = {
    *("/v1/embeddings", "/infinity/embeddings", "/v1/embed", "/v2/embed", "/embed", "/similarity", "/pooling embed"),
    *("/score", "/v1/score"),
}
TOKENS = {"/embed_all", "/pooling token_embed"}
RANKS = {
    *("/v1/rerank", "/v2/rerank", "/rerank texts", "/rerank documents", "/infinity/rerank", "/score", "/v1/score"),
}
OF_TEXTS = {"/predict", "/classify", "/classify inputs", "/pooling classify"}
OF_PAIRS = {"/predict pair"}
ALWAYS = {"/tokenize", "/decode", "/", "/models/"}

#: What each kind of folder answers, besides `ALWAYS`.
ANSWERED = {
    "sentences": VECTORS | TOKENS,
    "bare": VECTORS | TOKENS,
    "static": VECTORS,
    "splade": {"/embed_sparse"},
    "colbert": TOKENS | RANKS,
    "m3": VECTORS | TOKENS | {"/embed_sparse"},
    "ranker": RANKS | OF_TEXTS | OF_PAIRS,
    "reviews": OF_TEXTS | OF_PAIRS,
    "entities": set(),
    "words": set(),
    "frozen": OF_TEXTS,
    "frozen static": OF_TEXTS,
    "frozen numbers": OF_TEXTS,
    "frozen pairs": OF_PAIRS,
    "frozen tokens": set(),
    "static head": OF_TEXTS,
    "static labels": OF_TEXTS,
    "static numbers": OF_TEXTS,
}


def write_frozen(folder: Path, encoder: Path, texts: list[Any], labels: list[Any], head: Any = None) -> None:
    FrozenClassifier(SentenceEncoder(encoder), head).fit(texts, labels).save_pretrained(folder)


def write_frozen_tokens(folder: Path, encoder: Path) -> None:
    tokenizer, names = Tokenizer.from_pretrained(encoder), ["O", "B-LOC"]
    words, tags = [["she", "lived", "in", "paris"]], [["O", "O", "O", "B-LOC"]]
    rows = token_rows(tokenizer, words, tags, names=names, max_length=32)
    model = model_for(encoder, "TokenClassification", labels=names)
    fit_token_head(model, rows, show_progress_bar=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def write_bare(folder: Path, encoder: Path) -> None:
    BertModel.from_pretrained(encoder).save_pretrained(folder)
    Tokenizer.from_pretrained(encoder).save_pretrained(folder)


def rewritten(name: str) -> Callable[[Path, Path], object]:
    """Return what writes the model of a toy folder again, with the class that loads it."""

    def write(folder: Path, toys: Path) -> None:
        toy = toys / name
        if name in ("sentences", "static"):
            SentenceEncoder(toy).save_pretrained(folder)
        elif name == "m3":
            M3Encoder(toy).save_pretrained(folder)
        else:
            AutoModel.from_pretrained(toy).save_pretrained(folder)
            Tokenizer.from_pretrained(toy).save_pretrained(folder)

    return write


WRITERS: dict[str, Callable[[Path, Path], object]] = {
    **{name: rewritten(name) for name in ("sentences", "static", "m3", "reviews", "entities", "words")},
    "bare": lambda folder, toys: write_bare(folder, toys / "sentences"),
    "frozen": lambda folder, toys: write_frozen(folder, toys / "sentences", TEXTS, LABELS),
    "frozen static": lambda folder, toys: write_frozen(folder, toys / "static", TEXTS, LABELS),
    "frozen numbers": lambda folder, toys: write_frozen(folder, toys / "sentences", TEXTS, [1, 0, 2, 0.5], Ridge()),
    "frozen pairs": lambda folder, toys: write_frozen(
        folder, toys / "sentences", PAIRS, [str(a == b) for a, b in PAIRS], LogisticRegression(C=100)
    ),
    "frozen tokens": lambda folder, toys: write_frozen_tokens(folder, toys / "sentences"),
    "static head": lambda folder, _: make_head(folder, "softmax", [5, 3], ["bad", "fair", "good"]),
    "static labels": lambda folder, _: make_head(folder, "sigmoid", [4, 3], [1, 2, 3]),
    "static numbers": lambda folder, _: make_head(folder, "identity", [4, 2], None),
}


@pytest.fixture(scope="module")
def written(folders: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    top = tmp_path_factory.mktemp("written")
    found = {}
    for name in ANSWERED:
        if name in WRITERS:
            WRITERS[name](top / name, folders)
        found[name] = top / name if name in WRITERS else folders / name  # the package writes none of these
    return found


@pytest.fixture(scope="module")
def client(written: dict[str, Path]) -> Iterator[Client]:
    # With a prompt for vectors, which no classifier may get.
    settings = ServerSettings(prompt="a boring story ")
    found = Client(create_app({name: load_model(str(folder)) for name, folder in written.items()}, settings))
    yield found
    found.close()


def test_the_table_has_every_path() -> None:
    assert {request.partition(" ")[0] for request in REQUESTS} == {
        route.path.removesuffix("{model:path}") for route in ROUTES if route.operations
    }


@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("name", ANSWERED)
def test_each_kind_of_model_answers_its_paths_and_refuses_the_others_by_name(
    client: Client, name: str, request_: str
) -> None:
    path, body = request_.partition(" ")[0], dict(REQUESTS[request_])
    if path == "/models/":
        path += name
    else:
        body["model"] = name
    if path in ("/", f"/models/{name}") and name == "frozen pairs":
        body["inputs"] = [[TEXT, TEXT]]
    if request_ in ANSWERED[name] | ALWAYS:
        assert client.post(path, **body)
    else:
        assert repr(name) in client.refused(path, **body)


def scores_of(answer: list[dict[str, Any]]) -> dict[str, float]:
    return {one["label"]: pytest.approx(one["score"], abs=1e-6) for one in answer}


@pytest.mark.parametrize("name", [name for name in ANSWERED if OF_TEXTS.issubset(ANSWERED[name])])
def test_a_classifier_has_the_same_scores_on_each_path(client: Client, written: dict[str, Path], name: str) -> None:
    if name.startswith("static"):
        static = StaticClassifier(written[name])
        rows = static.predict(TEXTS) if static.classes_ is None else static.predict_proba(TEXTS)
        names = ["LABEL_0", "LABEL_1"] if static.classes_ is None else [str(one) for one in static.classes_]
        expected = [
            scores_of([{"label": label, "score": float(score)} for label, score in zip(names, row, strict=True)])
            for row in rows
        ]
    else:
        expected = [scores_of(answer) for answer in tasks.classify(written[name], TEXTS, top_k=None)]
    inputs = [[text] for text in TEXTS]
    for path, body in (
        ("/predict", {"inputs": inputs, "model": name}),
        ("/classify", {"inputs": inputs, "parameters": {}, "model": name}),
        ("/", {"inputs": inputs, "model": name}),
        (f"/models/{name}", {"inputs": inputs}),
    ):
        answers = client.post(path, **body)
        assert [{one["label"]: one["score"] for one in answer} for answer in answers] == expected
        assert all(answer == sorted(answer, key=lambda one: -one["score"]) for answer in answers)
    described = client.request("GET", f"/v1/models/{name}")[1]
    assert described["kind"] == ("reranker" if name == "ranker" else "classifier")
    found = client.post("/classify", input=TEXTS, model=name)["data"]
    assert [one["probs"] for one in found] == [[row[label] for label in described["labels"]] for row in expected]
    pooled = client.post("/pooling", input=TEXTS, task="classify", model=name)["data"]
    # Arrays have the fewest digits, which as float32 are the same numbers.
    assert [np.float32(one["data"]).tolist() for one in pooled] == [one["probs"] for one in found]


def test_a_classifier_of_pairs_takes_pairs(client: Client, written: dict[str, Path]) -> None:
    expected = [scores_of(answer) for answer in tasks.classify(written["frozen pairs"], PAIRS, top_k=None)]
    found = client.post("/predict", inputs=[list(pair) for pair in PAIRS], model="frozen pairs")
    assert [{one["label"]: one["score"] for one in answer} for answer in found] == expected
    refused = client.refused("/predict", inputs=[[*PAIRS[0]], ["a"]], model="frozen pairs")
    assert "takes pairs of texts, which item 1 is not" in refused
    refused = client.refused("/predict", inputs=[["a"], [*PAIRS[0]]], model="frozen")
    assert "takes texts, which item 1 is not" in refused


def test_texts_that_a_head_on_vectors_gets_are_limited_and_reported(written: dict[str, Path]) -> None:
    models = {"frozen": load_model(str(written["frozen"])), "pairs": load_model(str(written["frozen pairs"]))}
    client = Client(create_app(models, ServerSettings(max_tokens=100)))
    long = "a dull film " * 60
    found = client.post("/classify", input=["a", long], model="frozen")
    assert (found["truncated"], found["usage"]["prompt_tokens"]) == ([1], 3 + 64)
    assert "has more than the model's 64 tokens" in client.refused(
        "/predict", 413, inputs=long, truncate=False, model="frozen"
    )
    assert "limit of 100 tokens" in client.refused("/predict", 413, inputs=[long, long], model="pairs")
    client.close()


def test_options_of_a_folder_with_a_head(written: dict[str, Path]) -> None:
    assert isinstance(load_model(str(written["frozen"])), FrozenClassifier)
    assert isinstance(load_model(str(written["static head"])), StaticClassifier)
    assert isinstance(load_model(str(written["reviews"]), kind="sequence-classifier"), CrossEncoder)
    for name in ("frozen", "static head"):
        assert isinstance(load_model(str(written[name]), kind="embedding"), SentenceEncoder)
        assert isinstance(
            load_model(str(written[name]), kind="sequence-classifier"), type(load_model(str(written[name])))
        )
    assert load_model(str(written["frozen"]), dtype="int8").encoder.engine.dtype == "int8"
    assert load_model(str(written["frozen"]), backend="numpy").encoder.engine.backend == "numpy"
    with pytest.raises(InputError, match="dtype must be 'float32' for a static model"):
        load_model(str(written["static head"]), dtype="int8")


def test_a_head_that_the_package_does_not_read_is_no_embedding_model(written: dict[str, Path], tmp_path: Path) -> None:
    SentenceEncoder(written["static"]).save_pretrained(tmp_path)
    (tmp_path / "pipeline.skops").write_bytes(b"PK")
    with pytest.raises(ConfigError, match="an archive of skops"):
        load_model(str(tmp_path))
    with pytest.raises(InputError, match="is not fitted yet"):
        create_app({"a": FrozenClassifier(written["static"])})


def test_info_says_that_a_folder_has_a_head(written: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    for name, head, labels in (
        ("frozen", "LogisticRegression", ["blame", "praise"]),
        ("frozen numbers", "Ridge", ["LABEL_0"]),
        ("static head", "2 layers", ["bad", "fair", "good"]),
        ("static numbers", "2 layers", None),
    ):
        assert main(["info", str(written[name]), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)["classifier"]
        assert (found["head"], found["labels"]) == (head, labels)
    assert main(["info", str(written["sentences"]), "--json"]) == 0
    assert "classifier" not in json.loads(capsys.readouterr().out)
