"""Bodies and headers of requests, settings and kinds of models, and the server inside another application."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from serve_client import Client, ask
from serve_fixtures import KINDS, TEXTS, _closing, client, encoder, folders, vectors
from wordpiece_bert import SentenceEncoder, Tokenizer, tasks
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.serve import ServerSettings, batching, create_app, exchange
from wordpiece_bert.serve.model_loading import load_model
from wordpiece_bert.serve.routes import ROUTES

if TYPE_CHECKING:
    from pathlib import Path

# --- bodies and headers


def test_packed_bodies(client: Client, encoder: SentenceEncoder) -> None:
    body = json.dumps({"inputs": TEXTS, "normalize": False}).encode()
    packed = gzip.compress(body[:9]) + gzip.compress(body[9:])
    status, found = client.request("POST", "/embed", packed, **{"content-encoding": "gzip"})
    assert status == 200
    np.testing.assert_array_equal(vectors(found), encoder.encode(TEXTS))
    bomb = gzip.compress(b" " * (9 << 20))
    for wrong, expected in ((bomb, 413), (packed[:-9], 400), (body, 400), (b"", 400)):
        assert client.request("POST", "/embed", wrong, **{"content-encoding": "gzip"})[0] == expected
    assert client.request("POST", "/embed", body, **{"content-encoding": "br"})[0] == 415


def test_ids_of_requests_come_back_and_are_logged(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with caplog.at_level("INFO", "wordpiece_bert.serve"):
        answer = client.runner.run(
            ask(client.app, "GET", "/health", b"", **{"x-request-id": "my-id", "traceparent": trace})
        )
    assert (answer.headers["x-request-id"], answer.headers["traceparent"]) == ("my-id", trace)
    assert caplog.messages[-1].endswith(" ms my-id 0af7651916cd43dd8448eb211c80319c")
    wrong = {"x-request-id": "two words", "traceparent": "00-0-0-0"}
    answer = client.runner.run(ask(client.app, "GET", "/health", b"", **wrong))
    assert len(answer.headers["x-request-id"]) == 32
    assert "traceparent" not in answer.headers


def test_a_server_that_ends_takes_no_more_requests(encoder: SentenceEncoder) -> None:
    client = Client(create_app({"a": encoder}))
    client.app.service.draining = True
    answer = client.runner.run(ask(client.app, "POST", "/embed", b'{"inputs": "a"}'))
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert client.request("GET", "/ready")[0] == 503
    assert client.request("GET", "/health")[0] == 200


def test_a_client_alone_waits_for_nobody_and_several_for_each_other(encoder: SentenceEncoder) -> None:
    client = Client(create_app({"a": encoder}, ServerSettings(fill_deadline=60, result_cache_bytes=0)))
    for _ in range(3):
        client.post("/embed", inputs="bread")

    async def together(count: int) -> float:
        start = time.monotonic()
        body = b'{"inputs": "bread"}'
        answers = await asyncio.gather(*(ask(client.app, "POST", "/embed", body) for _ in range(count)))
        assert {answer.status for answer in answers} == {200}
        return time.monotonic() - start

    assert client.runner.run(together(3)) + client.runner.run(together(3)) < 30
    metrics = client.request("GET", "/metrics")[1]
    assert 'queue_duration_seconds_count{model="a"} 9' in metrics
    batches = int(re.search(r'inference_duration_seconds_count\{model="a"\} (\d+)', metrics)[1])  # type: ignore[index]
    assert 5 <= batches <= 7


@pytest.mark.filterwarnings("ignore::wordpiece_bert.errors.TruncationWarning")
def test_the_work_runs_beside_the_event_loop(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: dict[str, set[threading.Thread]] = {}

    def watched(name: str, work: Any) -> Any:
        def run(*arguments: Any, **options: Any) -> Any:
            threads.setdefault(name, set()).add(threading.current_thread())
            return work(*arguments, **options)

        return run

    for model in client.app.service.models:
        monkeypatch.setattr(model.batcher, "_run", watched(model.name, model.batcher._run))
    for method in ("encode_batch", "encodings", "decode"):
        monkeypatch.setattr(Tokenizer, method, watched(method, getattr(Tokenizer, method)))
    monkeypatch.setattr(batching, "_IN_LOOP", -1.0)  # a model of one layer takes less than the limit
    monkeypatch.setattr(exchange, "unpacked", watched("unpacked", exchange.unpacked))
    long = ["the bread and the oven " * 60] * 16
    client.post("/embed", inputs=long)
    client.post("/embed_all", inputs=long)
    client.post("/embed_sparse", inputs=long)
    client.post("/embed_all", inputs=long, model="colbert")
    client.post("/embed", inputs=long, model="static")
    client.post("/rerank", query="bread", texts=long)
    client.post("/score", text_1="bread", text_2=long, model="ranker")
    client.post("/predict", inputs=[[text] for text in long], model="reviews")
    client.post("/models/entities", inputs=long)
    client.post("/models/words", inputs=["[MASK] " + text for text in long])
    client.post("/tokenize", inputs=long)
    client.post("/decode", ids=[[2, 3] * 500] * 20)
    # Bytes that gzip cannot shorten: the packed body is large, too.
    body = json.dumps({"inputs": long, "options": np.random.default_rng(0).bytes(40_000).hex()}).encode()
    packed = gzip.compress(body)
    assert client.request("POST", "/embed", packed, **{"content-encoding": "gzip"})[0] == 200
    expected = {*KINDS, "encode_batch", "encodings", "decode", "unpacked"} - {"static"}
    assert set(threads) == expected
    assert threading.main_thread() not in set().union(*threads.values())


# --- loading


def test_settings_of_single_models(encoder: SentenceEncoder, folders: Path) -> None:
    own = ServerSettings(prompt="the bread ", max_tokens=9)
    client = Client(create_app({"a": encoder, "b": encoder}, model_settings={"b": own}))
    for name, prompt in (("a", ""), ("b", "the bread ")):
        expected = encoder.encode(["oven"], prompt=prompt, normalize_embeddings=True)
        np.testing.assert_array_equal(vectors(client.post("/embed", inputs="oven", model=name)), expected)
    assert "limit of 9 tokens" in client.refused("/embed", 413, inputs=["oven"] * 9, model="b")
    with pytest.raises(InputError, match="model_settings has 'c'"):
        create_app({"a": encoder}, model_settings={"c": own})
    answers = tasks.load(folders / "answers")
    with pytest.raises(InputError, match="not BertForQuestionAnswering"):
        create_app({"a": answers})


def test_kinds_of_folders(folders: Path) -> None:
    assert isinstance(load_model(str(folders / "words")), tasks.Loaded)
    assert isinstance(load_model(str(folders / "words"), kind="embedding"), SentenceEncoder)
    with pytest.raises(ConfigError, match="nothing for a model of the class BertForQuestionAnswering"):
        load_model(str(folders / "answers"))
    with pytest.raises(InputError, match="kind must be one of"):
        load_model(str(folders / "words"), kind="words")


@pytest.mark.parametrize("path", [route.path.replace("{model:path}", "words") for route in ROUTES if route.operations])
def test_no_logger_gets_a_text_of_a_request(client: Client, path: str, caplog: pytest.LogCaptureFixture) -> None:
    secret = "xylophonesecret"
    route = next(route for route in ROUTES if route.path.replace("{model:path}", "words") == path)
    with caplog.at_level("DEBUG"):
        for operation in route.operations:
            for value in (secret, [secret], [[secret]], {secret: secret}, secret + "\ud800"):
                body = json.dumps(dict.fromkeys(operation.required, value)).encode()
                client.request("POST", path, body)
                client.request("POST", path, body[:-1])
        for method in ("GET", "DELETE", secret):
            client.request(method, path + secret)
    assert f"POST {route.path} " in caplog.text
    assert secret not in caplog.text


# --- as an application


def test_inside_another_application_and_other_kinds_of_scopes(encoder: SentenceEncoder) -> None:
    app = create_app({"a": encoder})

    async def talk(scope: dict[str, Any], *messages: str) -> list[Any]:
        given, sent = [{"type": message} for message in messages], []

        async def receive() -> dict[str, Any]:
            return given.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        await app(scope, receive, send)
        return sent

    mounted = {"type": "http", "method": "GET", "path": "/bert/health", "root_path": "/bert", "headers": []}
    assert asyncio.run(talk(mounted))[0]["status"] == 200
    assert asyncio.run(talk({"type": "websocket", "path": "/"})) == [{"type": "websocket.close"}]
    lived = asyncio.run(talk({"type": "lifespan"}, "lifespan.startup", "lifespan.shutdown"))
    assert [message["type"] for message in lived] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
