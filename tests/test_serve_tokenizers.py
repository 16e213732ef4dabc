"""What texts and token ids can do to a server whose tokenizers are of the package `tokenizers`, and who takes token ids."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from benchmarks.hostile_bodies import MB, REQUESTS, path_of
from model_files import MODELS, sentence_folder
from serve_client import ask, assert_refused
from serve_fixtures import PAIR_TOKENIZERS, folders, loaded
from server_process import Server, bounded, complaint_of, start, stop
from wordpiece_bert import CrossEncoder, SentenceEncoder
from wordpiece_bert.serve import ServerSettings, create_app
from wordpiece_bert.serve.model_loading import load_model
from wordpiece_bert.tokenizer import shared_core

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install '.[serve]'")


# --- tokenizers of the package `tokenizers`

#: Requests to models whose tokenizer is not WordPiece; where the texts stand, is None.
SUBWORD_REQUESTS: dict[str, dict[str, Any]] = {
    "/embed": {"inputs": None, "model": "xlmr"},
    "/embed bytes": {"inputs": None, "model": "bytes"},
    "/tokenize": {"inputs": None, "model": "bytes"},
    "/rerank": {"query": "a", "texts": None, "model": "ranker"},
    "/score text_1": {"text_1": None, "text_2": ["a"] * 2048, "model": "ranker"},
    "/score xlmr": {"text_1": None, "text_2": ["a"] * 2048, "model": "xlmr"},
    "/predict": {"inputs": None, "model": "classes"},
    "/models/entities": {"inputs": None},
}
LARGEST = 1 << 17
SUBWORD_TEXTS: dict[str, list[str]] = {
    "a text of many words": ["a " * (4 * MB - 9999)],
    "a text of many wide characters": ["雨" * (2 * MB)],
    "the longest text": ["🤗 " * (LARGEST // 2)],
    "many of the longest texts": ["a " * (LARGEST // 2)] * 4,
    "many of the longest wide texts": ["雨" * LARGEST] * 4,
}


def subword_folders(parent: Path) -> dict[str, Path]:
    """Return the folders of models with Unigram and byte-level tokenizers."""
    found = {"xlmr": sentence_folder("st_xlmr", parent), "bytes": sentence_folder("st_roberta", parent)}
    found["ranker"] = MODELS / "rerank_modernbert"
    for name, model in (("classes", "xlmr_seqcls"), ("entities", "xlmr_token_cls")):
        found[name] = parent / name
        found[name].mkdir()
        for file in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(MODELS / "st_xlmr" / file, found[name])
        shutil.copytree(MODELS / model, found[name], dirs_exist_ok=True)
    return found


@pytest.fixture(scope="module")
def subword_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    folders = subword_folders(tmp_path_factory.mktemp("subword"))
    found = start(*(f"{name}={folder}" for name, folder in folders.items()))
    yield found
    stop(found)
    assert "Traceback" not in "".join(found.log)


@pytest.mark.parametrize("request_", SUBWORD_REQUESTS)
@pytest.mark.parametrize("kind", SUBWORD_TEXTS)
def test_long_texts_take_other_tokenizers_little_memory(subword_server: Server, request_: str, kind: str) -> None:
    texts = SUBWORD_TEXTS[kind]
    given: list[Any] = [[text] for text in texts] if request_ == "/predict" else texts
    if "score" in request_:
        given = given[:1]
    fields = {name: given if value is None else value for name, value in SUBWORD_REQUESTS[request_].items()}
    body = json.dumps(fields, ensure_ascii=False).encode()
    assert len(body) <= 8 * MB
    with bounded(subword_server):
        status, headers, found = subword_server.post(path_of(request_), body)
    if len(texts[0]) > LARGEST:
        assert_refused(status, headers["content-type"], found)
        assert "for a text where the tokenizer is not WordPiece" in complaint_of(found)
    elif status != 200:
        assert "server's limit of 131072 tokens" in complaint_of(found)


def test_a_long_query_is_scored_as_by_predict_with_other_tokenizers(subword_server: Server) -> None:
    ranker = CrossEncoder(MODELS / "rerank_modernbert")
    query, documents = "bread " * 300, ["the oven", "a " * 90, "雨"]
    found = subword_server.post("/score", {"text_1": query, "text_2": documents, "model": "ranker"})[2]
    expected, truncated = ranker.predict([(query, document) for document in documents], return_truncated=True)
    assert truncated.all()
    assert [item["score"] for item in found["data"]] == [float(score) for score in expected]


@pytest.mark.parametrize("kind", ["byte-level", "unigram"])
def test_blocks_of_texts_change_no_token(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    tokenizer = PAIR_TOKENIZERS[kind]()
    texts = ["", "bread oven", ("a", "雨 é"), "", "a " * 40, ("bread " * 30, "oven"), "雨🤗"]
    calls: dict[str, dict[str, Any]] = {
        "plain": {},
        "truncated": {"truncation": True, "max_length": 9},
        "windows": {"truncation": True, "max_length": 16, "stride": 1, "return_overflowing_tokens": True},
        "offsets": {"return_offsets": True, "truncation": True, "max_length": 9, "return_overflowing_tokens": True},
    }

    def all_calls() -> list[Any]:
        rows = [tokenizer.encode_batch(texts, **options) for options in calls.values()]
        rows.append(tokenizer.encode_batch([], return_offsets=True, return_overflowing_tokens=True))
        arrays = [[row.ids, row.row_offsets, row.truncated, row.offsets, row.overflow_to_sample] for row in rows]
        return [[None if one is None else (one.dtype, one.tolist()) for one in found] for found in arrays]

    expected = all_calls()
    assert [len(found[1][1]) - 1 for found in expected[:2]] == [len(texts)] * 2
    for characters in (1, 30):
        monkeypatch.setattr(shared_core, "_BLOCK_CHARACTERS", characters)
        assert all_calls() == expected
    monkeypatch.setattr(shared_core, "_BLOCK", 2)
    assert all_calls() == expected


# --- token ids

#: Every path that takes texts, and where they stand.
PLACES = {
    "/v1/embeddings": "input",
    "/v1/embed": "texts",
    "/v2/embed": "texts",
    "/embed": "inputs",
    "/embed_all": "inputs",
    "/embed_sparse": "inputs",
    "/predict": "inputs",
    "/tokenize": "inputs",
    "/rerank": "texts",
    "/v1/rerank": "documents",
    "/v2/rerank": "documents",
    "/score": "text_1",
    "/classify": "input",
    "/pooling": "input",
    "/pooling embed": "input",
    "/pooling token_embed": "input",
    "/pooling classify": "input",
    "/similarity": "inputs",
    "/": "inputs",
    "/models/{model}": "inputs",
}
MORE: dict[str, dict[str, Any]] = {
    "/v1/embed": {"input_type": "classification"},
    "/v2/embed": {"input_type": "classification"},
    "/rerank": {"query": "a"},
    "/v1/rerank": {"query": "a"},
    "/v2/rerank": {"query": "a"},
    "/score": {"text_2": ["a"]},
}
#: The requests that take rows of ids; all others are refused.
TAKES_IDS = {
    (path, "sentences")
    for path in ("/v1/embeddings", "/embed", "/embed_all", "/pooling", "/pooling embed", "/pooling token_embed")
} | {("/", "sentences"), ("/models/{model}", "sentences")}


@pytest.fixture(scope="module")
def all_kinds(loaded: dict[str, Any], folders: Path) -> dict[str, Any]:
    found = {**loaded, "static": load_model(str(folders / "static"))}
    if importlib.util.find_spec("tokenizers"):
        found["m3"] = load_model(str(MODELS / "m3_colbert_dim"))
    return found


def test_token_ids_are_taken_or_refused_on_every_path_by_every_kind(all_kinds: dict[str, Any]) -> None:
    taken, paths = set(), {path_of(name) for name in PLACES}
    assert paths >= {path_of(name) for name in REQUESTS} - {"/decode", "/models/entities", "/models/words"}

    async def ask_all() -> None:
        app = create_app(all_kinds, ServerSettings(accept_token_ids=True))
        for name, place in PLACES.items():
            task = {"task": name.partition(" ")[2]} if " " in name else {}
            for model in all_kinds:
                path = path_of(name).format(model=model)
                named = {} if "{model}" in name else {"model": model}
                for ids, good in (
                    ([2, 5, 3], True),
                    ([[2, 5, 3], [2, 3]], True),
                    ([[2, 1 << 30]], False),
                    ([[]], False),
                ):
                    body = {place: ids, **MORE.get(name, {}), **named, **task}
                    answer = await ask(app, "POST", path, json.dumps(body).encode())
                    if good and answer.status == 200:
                        taken.add((name, model))
                    else:
                        assert answer.status in (400, 413), (body, path, answer)
                        assert complaint_of(json.loads(answer.body))
        await app.service.models.close()

    asyncio.run(ask_all())
    assert taken == TAKES_IDS


def test_a_prompt_for_token_ids_is_refused_by_name(folders: Path) -> None:
    encoder = SentenceEncoder(folders / "sentences", prompts={"query": "the bread "})
    ids = list(encoder.tokenizer.encode("oven").ids)

    async def check() -> None:
        app = create_app({"a": encoder}, ServerSettings(accept_token_ids=True, prompt="a "))

        async def post(**fields: Any) -> tuple[int, Any]:
            answer = await ask(app, "POST", "/v1/embeddings", json.dumps({"input": [ids], **fields}).encode())
            return answer.status, json.loads(answer.body)

        for field, value in (("input_type", "query"), ("task", "retrieval.query")):
            status, found = await post(**{field: value})
            assert status == 400
            assert "input_type (or task) chooses a prompt for 'query'" in complaint_of(found)
        status, found = await post(prompt_name="query")
        assert (status, "a prompt is put before texts" in complaint_of(found)) == (400, True)
        for more in ({}, {"input_type": "document"}):  # for which the model has no prompt
            status, found = await post(**more)
            assert status == 200
            np.testing.assert_array_equal(np.float32(found["data"][0]["embedding"]), encoder.encode("oven", prompt=""))
        await app.service.models.close()

    asyncio.run(check())
