"""Models, servers, clients and tokenizers for tests of `wordpiece_bert.serve`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from make_models import SPECIAL

import tiny_models
from model_files import MODELS
from serve_client import Client
from server_process import Server, start, stop
from wordpiece_bert import CrossEncoder, MultiVectorEncoder, SentenceEncoder, Tokenizer
from wordpiece_bert.serve import ServerSettings, create_app
from wordpiece_bert.serve.model_loading import load_model
from wordpiece_bert.tokenizer.subword import tokenizer_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KINDS = {
    "sentences": "embedding",
    "ranker": "reranker",
    "reviews": "classifier",
    "entities": "token-classifier",
    "words": "fill-mask",
    "splade": "sparse",
    "colbert": "multi-vector",
    "static": "embedding",
}
NAMES = tuple(name for name in KINDS if name != "static")
TEXTS = ["to bake bread", "a bicycle wheel", "the dough in the oven"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.make_all(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def server(folders: Path) -> Iterator[Server]:
    found = start(*(folders / name for name in NAMES))
    yield found
    # So that the log has a request, whichever tests this process runs.
    assert found.request("POST", "/v1/embeddings", b"{}", {})[0] >= 400
    stop(found)
    log = "".join(found.log)
    assert "POST /" in log
    assert "Traceback" not in log
    # The log has no text of a request.
    assert not re.search(r"bread|oven|[\[{🤗中]|a a|\\u", log.replace("{model:path}", ""))


@pytest.fixture(scope="module")
def ranker(folders: Path) -> CrossEncoder:
    return CrossEncoder(folders / "ranker")


@pytest.fixture(scope="module")
def loaded(folders: Path) -> dict[str, Any]:
    return {name: load_model(str(folders / name)) for name in NAMES}


@pytest.fixture(scope="module")
def client(folders: Path) -> Iterator[Client]:
    models = {name: load_model(str(folders / name)) for name in KINDS}
    found = Client(create_app(models, ServerSettings(max_items=20)))
    yield found
    found.close()


@pytest.fixture(autouse=True)
def _closing(client: Client) -> Iterator[None]:
    """Close the clients of a test, but not the client of the module, which is made before."""
    before = list(Client.opened)
    yield
    for client in Client.opened[len(before) :]:
        client.close()


@pytest.fixture(scope="module")
def encoder(folders: Path) -> SentenceEncoder:
    return SentenceEncoder(folders / "sentences")


@pytest.fixture(scope="module")
def colbert(folders: Path) -> MultiVectorEncoder:
    return MultiVectorEncoder(folders / "colbert")


def vectors(found: Any) -> Any:
    return np.array(found, np.float32)


def bert(side: str) -> Tokenizer:
    vocabulary = [*SPECIAL, "bread", "oven", "##s", "a"]
    core = json.loads(Tokenizer.from_vocab(vocabulary).to_json())
    core["truncation"] = {"direction": side.title(), "max_length": 512, "strategy": "LongestFirst", "stride": 0}
    return Tokenizer.from_json(json.dumps(core)).with_truncation(None, truncation_side=side)


PAIR_TOKENIZERS = {
    "right": lambda: bert("right"),
    "left": lambda: bert("left"),
    "byte-level": lambda: tokenizer_of(MODELS / "st_roberta"),
    "unigram": lambda: tokenizer_of(MODELS / "st_xlmr"),
}
