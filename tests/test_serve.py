"""The server: answers equal to the encoders', real clients, refusals, bad input, bad clients, and its end."""

from __future__ import annotations

import base64
import copy
import itertools
import json
import logging
import re
import shlex
import shutil
import signal
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pytest

from model_files import MODELS
from serve_fixtures import encoder, folders, ranker
from server_process import HEAD, Server, complaint_of, raw, start, stop
from test_docs import ROOT, blocks, commands, is_shown
from wordpiece_bert import CrossEncoder, SentenceEncoder
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.activations import identity
from wordpiece_bert.sentence.dense.parts import transformer_of
from wordpiece_bert.serve import ServerSettings, create_app, run
from wordpiece_bert.serve.access_log import DelayedHandler
from wordpiece_bert.serve.openapi import schema
from wordpiece_bert.serve.routes import DESCRIBED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install '.[serve]'")

TEXTS = ["to bake bread", "a bicycle wheel", "", "the dough in the oven", "naïve 中文 🤗"]
QUERY = "how to bake bread"
KEY = "a-key-of-the-test"
SECRET = "xylophonesecret"


@pytest.fixture(scope="module")
def server(folders: Path) -> Iterator[Server]:
    limits = ["--max-items", 50, "--max-bytes", 20_000, "--max-tokens", 500, "--receive-timeout", 1]
    found = start(folders / "sentences", f"ranker={folders / 'ranker'}", *limits)
    yield found
    stop(found)


# --- answers


def test_vectors_have_the_bits_of_encode(server: Server, encoder: SentenceEncoder) -> None:
    expected = encoder.encode(TEXTS)
    status, _, found = server.post("/v1/embeddings", {"input": TEXTS, "model": "sentences"})
    assert status == 200
    np.testing.assert_array_equal(np.array([item["embedding"] for item in found["data"]], np.float32), expected)
    assert [item["index"] for item in found["data"]] == list(range(len(TEXTS)))
    tokens = sum(len(encoder.tokenizer.encode_ids(text)) for text in TEXTS)
    assert found["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}
    assert (found["model"], found["truncated"]) == ("sentences", [])

    _, _, found = server.post("/v1/embeddings", {"input": TEXTS, "encoding_format": "base64"})
    decoded = [np.frombuffer(base64.b64decode(item["embedding"]), "<f4") for item in found["data"]]
    np.testing.assert_array_equal(decoded, expected)

    _, _, found = server.post("/v1/embeddings", {"input": TEXTS[0], "dimensions": 7})
    assert len(found["data"]) == 1
    short = encoder.encode(TEXTS[0], truncate_dim=7)
    np.testing.assert_array_equal(np.array(found["data"][0]["embedding"], np.float32), short)


@pytest.mark.model
def test_shortened_vectors_of_a_model_that_normalizes_have_length_one() -> None:
    server = start("minilm")
    try:
        _, _, found = server.post("/v1/embeddings", {"input": ["A cat."], "dimensions": 64})
        expected = SentenceEncoder("minilm").encode(["A cat."], truncate_dim=64, normalize_embeddings=True)
        np.testing.assert_array_equal(np.array(found["data"][0]["embedding"], np.float32), expected[0])
    finally:
        stop(server)


def test_prompts_are_put_before_texts(tmp_path: Path, folders: Path) -> None:
    SentenceEncoder(folders / "sentences").save_pretrained(tmp_path / "model")
    file = tmp_path / "model" / "config_sentence_transformers.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "prompts": {"query": "the bread "}}))
    server = start(tmp_path / "model")
    try:
        expected = SentenceEncoder(tmp_path / "model").encode_query(["oven"])
        _, _, found = server.post("/v1/embeddings", {"input": ["oven"], "prompt_name": "query"})
        np.testing.assert_array_equal(np.array(found["data"][0]["embedding"], np.float32), expected[0])
        status, _, found = server.post("/v1/embeddings", {"input": ["oven"], "prompt_name": "other"})
        assert (status, "no prompt 'other'" in complaint_of(found)) == (400, True)
    finally:
        stop(server)


@pytest.mark.parametrize("name", ["static_m2v_max_length", "static_st_normalize"])
def test_static_models_are_served(name: str) -> None:
    encoder = SentenceEncoder(MODELS / name)
    texts = ["the cat", "a " * 900, ""]
    vectors, cut = encoder.encode(texts, return_truncated=True)
    server = start(MODELS / name)
    try:
        status, _, found = server.post("/v1/embeddings", {"input": texts})
        assert status == 200, found
        np.testing.assert_array_equal(np.array([item["embedding"] for item in found["data"]], np.float32), vectors)
        assert found["truncated"] == np.flatnonzero(cut).tolist()
        assert server.post("/v1/embeddings", {"input": texts, "truncate": False})[0] == (400 if cut.any() else 200)
        _, _, found = server.post("/v1/embeddings", {"input": texts[0], "dimensions": 2})
        assert len(found["data"][0]["embedding"]) == 2
        assert server.post("/tokenize", {"inputs": texts})[0] == 200
    finally:
        stop(server)


def test_many_clients_at_once_get_their_own_vectors(server: Server, encoder: SentenceEncoder) -> None:
    texts = [" ".join(TEXTS[i % 5] for i in range(k, k + 1 + k % 4)) for k in range(60)]
    expected = encoder.encode(texts)

    def ask(index: int) -> Any:
        _, _, found = server.post("/v1/embeddings", {"input": [texts[index], texts[index - 1]]})
        return [item["embedding"] for item in found["data"]]

    with ThreadPoolExecutor(16) as pool:
        for index, vectors in enumerate(pool.map(ask, range(60))):
            np.testing.assert_array_equal(np.array(vectors, np.float32), expected[[index, index - 1]])


def test_rankings_have_the_scores_of_predict(server: Server, ranker: CrossEncoder) -> None:
    documents = ["to repair a bicycle", "bread dough in the oven", "flour", ""]
    pairs = [(QUERY, document) for document in documents]
    scores = [float(score) for score in ranker.predict(pairs)]
    order = sorted(range(4), key=lambda index: -scores[index])
    body = {"query": QUERY, "documents": documents, "model": "ranker"}

    _, _, jina = server.post("/v1/rerank", body)
    assert jina["results"] == [
        {"index": i, "relevance_score": scores[i], "document": {"text": documents[i]}} for i in order
    ]
    assert jina["usage"]["total_tokens"] == sum(len(ranker.tokenizer.encode_ids(*pair)) for pair in pairs)
    _, _, cohere = server.post("/v2/rerank", {**body, "top_n": 2, "documents": [{"text": text} for text in documents]})
    assert cohere["results"] == [{"index": i, "relevance_score": scores[i]} for i in order[:2]]
    assert cohere["meta"]["api_version"] == {"version": "2"}
    _, _, tei = server.post("/rerank", {"query": QUERY, "texts": documents, "return_text": True})
    assert tei == [{"index": i, "score": scores[i], "text": documents[i]} for i in order]
    _, _, raw = server.post("/rerank", {"query": QUERY, "texts": documents, "raw_scores": True})
    logits = ranker.predict(pairs, activation_fn=identity)
    assert {item["index"]: item["score"] for item in raw} == {i: float(logits[i]) for i in range(4)}


def test_tokens_have_their_characters(server: Server, encoder: SentenceEncoder) -> None:
    text = "Baking naïve bread " * 30
    _, _, [tokens] = server.post("/tokenize", {"inputs": text, "model": "sentences"})
    encoding = encoder.tokenizer.encode(text)
    assert [(token["id"], token["text"]) for token in tokens] == list(zip(encoding.ids, encoding.tokens, strict=True))
    assert [(t["start"], t["stop"]) for t in tokens if not t["special"]] == encoding.offsets[1:-1]
    _, _, found = server.post("/tokenize", {"inputs": ["bread", ""], "add_special_tokens": False})
    assert [[token["text"] for token in row] for row in found] == [["bread"], []]


def test_truncation_is_reported_or_refused(server: Server, ranker: CrossEncoder) -> None:
    long = "bread " * 99
    status, _, found = server.post("/v1/embeddings", {"input": ["a", long]})
    assert (status, found["truncated"]) == (200, [1])
    for refusal in (False, "NONE"):
        status, _, found = server.post("/v1/embeddings", {"input": ["a", long], "truncate": refusal})
        assert status == 400
        assert "text 1 has more than the model's 64 tokens" in complaint_of(found)
    _, _, found = server.post("/rerank", {"query": QUERY, "texts": ["flour", long]})
    assert sorted((item["index"], item.get("truncated")) for item in found) == [(0, None), (1, True)]
    _, _, found = server.post("/v2/rerank", {"query": QUERY, "documents": [long, "flour"]})
    assert found["truncated"] == [0]


def test_truncation_can_be_refused_by_default(folders: Path) -> None:
    server = start(folders / "sentences", "--truncation", "error")
    try:
        assert server.post("/v1/embeddings", {"input": ["bread " * 99]})[0] == 400
        assert server.post("/v1/embeddings", {"input": ["bread " * 99], "truncate": True})[0] == 200
    finally:
        stop(server)


def test_the_package_openai_is_answered(server: Server, encoder: SentenceEncoder) -> None:
    openai = pytest.importorskip("openai", reason="openai is not installed: pip install openai")
    with openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0) as client:
        found = client.embeddings.create(model="sentences", input=TEXTS)  # base64 on the wire
        np.testing.assert_array_equal(
            np.array([item.embedding for item in found.data], np.float32), encoder.encode(TEXTS)
        )
        found = client.embeddings.create(model="sentences", input="bread", dimensions=3, encoding_format="float")
        assert len(found.data[0].embedding) == 3
        assert [model.id for model in client.models.list()] == ["sentences", "ranker"]
        with pytest.raises(openai.NotFoundError, match="no model 'gpt'"):
            client.embeddings.create(model="gpt", input="bread")
        with pytest.raises(openai.BadRequestError, match="token ids"):
            client.embeddings.create(model="sentences", input=[[1, 2, 3]])


def test_langchains_client_of_openai_is_answered(server: Server, encoder: SentenceEncoder) -> None:
    reason = "langchain-openai is not installed: pip install langchain-openai"
    langchain = pytest.importorskip("langchain_openai", reason=reason)
    client = langchain.OpenAIEmbeddings(
        base_url=f"http://127.0.0.1:{server.port}/v1",
        api_key="none",
        model="sentences",
        check_embedding_ctx_length=False,
    )
    np.testing.assert_array_equal(np.array(client.embed_documents(TEXTS[:2]), np.float32), encoder.encode(TEXTS[:2]))
    np.testing.assert_array_equal(np.array(client.embed_query(TEXTS[0]), np.float32), encoder.encode(TEXTS[0]))
    client.client._client.close()


@pytest.mark.filterwarnings("ignore")  # of llama-index about pydantic
def test_llama_indexs_client_of_openai_is_answered(server: Server, encoder: SentenceEncoder) -> None:
    reason = "llama-index-embeddings-openai is not installed: pip install llama-index-embeddings-openai"
    llama_index = pytest.importorskip("llama_index.embeddings.openai", reason=reason)
    client = llama_index.OpenAIEmbedding(
        api_base=f"http://127.0.0.1:{server.port}/v1", api_key="none", model_name="sentences"
    )
    found = client.get_text_embedding_batch(TEXTS[:2])
    np.testing.assert_array_equal(np.array(found, np.float32), encoder.encode(TEXTS[:2]))


@pytest.mark.model
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize(("name", "count"), [("how-to/http-server.md", 5), ("tutorials/serving.md", 1)])
def test_the_commands_of_the_page_are_answered(folders: Path, name: str, count: int) -> None:
    found = blocks(ROOT / "docs" / name)
    of_console = [
        (line, following.code if following.language == "output" else "…")
        for block, following in itertools.pairwise(found)
        if block.language == "console"
        for line in commands(block.code)
    ]
    serve, *_ = (line for line, _ in of_console if line.startswith("wordpiece-bert serve"))
    curls = [(line, shown) for line, shown in of_console if line.startswith("curl")]
    server = start(*(model.replace("models/", f"{folders}/") for model in shlex.split(serve)[2:-2]))
    try:
        for line, shown in curls:
            arguments = shlex.split(line.replace(":8000/", f":{server.port}/"))
            done = subprocess.run(
                [*arguments, "-sS", "--fail-with-body"], capture_output=True, encoding="utf-8", check=False
            )
            assert done.returncode == 0, (line, done.stdout, done.stderr)
            assert done.stdout[0] in "[{#", line
            assert is_shown(shown, done.stdout), done.stdout
    finally:
        stop(server)
    assert len(curls) == count


def test_other_paths(server: Server) -> None:
    assert server.get("/health")[2] == {"status": "ok", "models": ["sentences", "ranker"]}
    status, headers, page = server.get("/docs")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "<code>POST /v1/embeddings</code>" in page
    assert server.get("/elsewhere")[0] == 404
    assert server.get("/v1/embeddings")[0] == 405


def test_the_description_has_the_fields_that_are_accepted(server: Server) -> None:
    document = server.get("/openapi.json")[2]
    settings = ServerSettings(max_items=50, max_bytes=20_000, max_tokens=500, receive_timeout=1)
    assert document == json.loads(json.dumps(schema(DESCRIBED, settings)))
    for path, methods in document["paths"].items():
        if "post" in methods and "{" not in path:
            body = methods["post"]["requestBody"]["content"]["application/json"]["schema"]
            for one in body.get("oneOf", [body]):
                fields = dict.fromkeys(one["required"], "a") | {"": 1}
                message = complaint_of(server.post(path, fields)[2])
                if path != "/":  # there, the model decides
                    assert message.partition("the fields are ")[2].split(", ") == list(one["properties"]), path


def test_metrics_are_in_prometheus_format(server: Server) -> None:
    parser = pytest.importorskip("prometheus_client.parser", reason="prometheus-client is not installed")
    server.post("/v1/embeddings", {"input": ["bread"]})
    status, headers, text = server.get("/metrics")
    assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    families = {family.name: family for family in parser.text_string_to_metric_families(text)}
    requests = families["wordpiece_bert_requests"].samples
    assert sum(s.value for s in requests if s.labels == {"path": "/v1/embeddings", "status": "200"}) >= 1
    assert {s.labels["model"]: s.value for s in families["wordpiece_bert_queue_tokens"].samples} == {
        "sentences": 0,
        "ranker": 0,
    }
    seconds = families["wordpiece_bert_request_duration_seconds"].samples
    of_path = [s for s in seconds if s.labels["path"] == "/v1/embeddings"]
    counts = [s.value for s in of_path if s.name.endswith("_bucket")]
    assert counts == sorted(counts)
    assert counts[-1] == next(s.value for s in of_path if s.name.endswith("_count"))


# --- refusals and bad input


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b'{"input": "\xff"}', "not valid JSON"),
        (b'{"input": ' + b"[" * 9000, "not valid JSON"),
        (b'{"input": ' + b"9" * 9000 + b"}", "not valid JSON"),
        (b"[]", "must be a JSON object"),
        ({}, "input must be a string or a list of strings, not missing"),
        ({"input": []}, "input must not be empty"),
        ({"input": [1, 2]}, "token ids"),
        ({"input": [["a"]]}, "token ids"),
        ({"input": ["a", None]}, r"input[1] must be a string, not missing or null"),
        ({"input": {"a": 1}}, "not an object"),
        ({"input": ["a"] * 51}, "input has 51 items, more than the server's limit of 50"),
        ({"input": ["a " * 60] * 40}, "more than the server's limit of 500"),
        ({"input": "a\ud800"}, "surrogate"),
        (b'{"input": "a", "input": "b"}', "an object with the key 'input' twice"),
        (b'{"input": [{"text": "a", "text": "b"}]}', "an object with the key 'text' twice"),
        ({"input": "a", "dimensions": 0}, "dimensions must be a whole number, 1 or more"),
        ({"input": "a", "dimensions": True}, "dimensions"),
        ({"input": "a", "dimensions": 10**30}, "dimensions must be from 1 to 67"),
        ({"input": "a", "encoding_format": ["float"]}, "encoding_format must be one of float, base64"),
        ({"input": "a", "truncate": "LEFT"}, "truncate must be"),
        ({"input": "a", "model": 3}, "model must be a string"),
        ({"input": "a", "model": "ranker"}, "the model 'ranker' is not a sentence encoder"),
        ({"input": "a", "dimension": 3}, "unknown field 'dimension'"),
    ],
)
def test_bad_bodies_are_refused_by_name(server: Server, body: object, complaint: str) -> None:
    status, _, found = server.post("/v1/embeddings", body)
    assert status == 400
    assert complaint in complaint_of(found)
    assert found["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("path", "body", "complaint"),
    [
        ("/v1/rerank", {"documents": ["a"]}, "query must be a string"),
        ("/v1/rerank", {"query": "a", "documents": [{"title": "a"}]}, r"documents[0] has no 'text' that is a string"),
        ("/v1/rerank", {"query": "a", "documents": ["a"], "top_n": -1}, "top_n"),
        ("/v2/rerank", {"query": "a", "documents": ["a"], "model": "sentences"}, "is not a cross encoder"),
        ("/rerank", {"query": "a", "texts": ["a"], "truncation_direction": "Left"}, "truncation_direction"),
        ("/tokenize", {"inputs": ["a"], "add_special_tokens": "no"}, "must be true or false"),
    ],
)
def test_bad_bodies_of_other_paths(server: Server, path: str, body: object, complaint: str) -> None:
    status, _, found = server.post(path, body)
    assert (status, complaint in complaint_of(found)) == (400, True)


def test_unknown_models_are_not_found(server: Server) -> None:
    status, _, found = server.post("/v1/embeddings", {"input": "a", "model": "x" * 1000})
    assert (status, found["error"]["code"]) == (404, "model_not_found")
    assert len(complaint_of(found)) < 500


def test_bodies_must_be_json_by_their_type(server: Server) -> None:
    for media_type in ("text/plain", "application/x-www-form-urlencoded", ""):
        status, _, found = server.post("/v1/embeddings", {"input": "a"}, **{"Content-Type": media_type})
        assert (status, "Content-Type: application/json" in complaint_of(found)) == (415, True)


def test_bodies_that_are_too_large_are_refused_before_they_are_read(server: Server) -> None:
    assert b" 413 " in raw(server, HEAD + b"Content-Length: 99999999999\r\n\r\n").split(b"\r\n")[0]
    chunks = b"1000\r\n" + b" " * 0x1000 + b"\r\n"
    assert b" 413 " in raw(server, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[chunks] * 9).split(b"\r\n")[0]
    assert server.post("/v1/embeddings", b" " * 20_001)[0] == 413


def test_slow_clients_are_refused_and_hold_up_nobody(server: Server) -> None:
    with ThreadPoolExecutor(3) as pool:
        body = pool.submit(raw, server, HEAD + b"Content-Length: 90\r\n\r\n{", *[b" "] * 3, pause=0.5)
        head = pool.submit(raw, server, b"POST /v1/emb", *[b"e"] * 3, pause=0.5)
        silent = pool.submit(raw, server)
        seconds = []
        for _ in range(3):  # the machine may be busy
            begin = time.monotonic()
            assert server.post("/v1/embeddings", {"input": "bread"})[0] == 200
            seconds.append(time.monotonic() - begin)
        assert min(seconds) < 1
        assert b" 408 " in body.result().split(b"\r\n")[0]
        assert head.result() == silent.result() == b""


def test_bytes_that_are_not_http_are_refused(server: Server) -> None:
    assert b" 400 " in raw(server, b"\x16\x03\x01\x02\x00 hello\r\n\r\n").split(b"\r\n")[0]
    assert server.get("/health")[0] == 200


def test_clients_that_go_away_leave_nothing(server: Server) -> None:
    body = json.dumps({"input": ["bread and the oven " * 2] * 40}).encode()
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body[:100])
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        text = server.get("/metrics")[2]
        if 'queue_requests{model="sentences"} 0' in text and 'queue_tokens{model="sentences"} 0' in text:
            break
        time.sleep(0.05)
    else:
        pytest.fail(text)
    assert server.post("/v1/embeddings", {"input": "bread"})[0] == 200


def test_keys_are_needed_and_compared(folders: Path, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"other\n{KEY}\n")
    server = start(folders / "sentences", "--api-key-file", tmp_path / "keys", WORDPIECE_BERT_API_KEYS="third, fourth")
    try:
        body = {"input": "bread"}
        for header in ("", "Bearer ", f"Bearer {KEY}x", f"Basic {KEY}", KEY, "Bearer \xff"):
            status, headers, found = server.post("/v1/embeddings", body, Authorization=header)
            assert (status, headers["www-authenticate"], found["error"]["code"]) == (401, "Bearer", "invalid_api_key")
        for key in ("other", KEY, "third", "fourth"):
            assert server.post("/v1/embeddings", body, Authorization=f"Bearer {key}")[0] == 200
        assert [server.get(path)[0] for path in ("/metrics", "/docs", "/v1/models", "/health")] == [401, 401, 401, 200]
    finally:
        stop(server)
    assert KEY not in "".join(server.log)


def test_the_log_has_no_text_of_a_request(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = start(folders / "sentences")
    for body in (
        {"input": SECRET},
        {"input": [SECRET, 3]},
        {"input": SECRET + "\ud800"},
        {"input": "a", SECRET: 1},
        {"input": "a", "model": SECRET},
        f'{{"input": "{SECRET}'.encode(),
    ):
        server.post(f"/v1/embeddings?q={SECRET}", body)
    server.get(f"/{SECRET}")
    raw(server, f"{SECRET} / HTTP/1.1\r\n{SECRET}\r\n\r\n".encode())
    stop(server)
    log = "".join(server.log)
    assert log.count("POST /v1/embeddings") == 6
    assert SECRET not in log


def test_lines_of_the_log_are_written_together_and_errors_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    handler = DelayedHandler(delay=0.05)
    log = logging.Logger("delayed")
    log.addHandler(handler)
    for number in range(3):
        log.info("line %d", number)
    assert capfd.readouterr().err == ""
    deadline = time.monotonic() + 10
    written = ""
    while not written and time.monotonic() < deadline:
        time.sleep(0.01)
        written = capfd.readouterr().err
    assert written == "line 0\nline 1\nline 2\n"
    log.info("before")
    log.error("now")
    assert capfd.readouterr().err == "before\nnow\n"
    log.info("last")
    handler.close()
    assert capfd.readouterr().err == "last\n"


# --- load, errors inside, and the end


class Held:
    """An encoder whose model waits until it is released, behind a server in this process."""

    def __init__(self, encoder: SentenceEncoder, **settings: Any) -> None:
        import uvicorn

        self.encoder = SentenceEncoder.__copy__(encoder)
        self.started, self.released = threading.Event(), threading.Event()
        self.batches: list[int] = []
        compute = transformer_of(encoder).pooled

        def wait(rows: Any, *arguments: Any, **options: Any) -> Any:
            self.batches.append(len(rows))
            self.started.set()
            assert self.released.wait(30)
            return compute(rows, *arguments, **options)

        body = copy.copy(transformer_of(encoder))
        body.__dict__["pooled"] = wait
        self.encoder.__dict__["_body"] = body
        app = create_app({"held": self.encoder}, ServerSettings(**settings))
        self.uvicorn = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="on"))
        self.thread = threading.Thread(target=self.uvicorn.run)

    def __enter__(self) -> Self:
        self.thread.start()
        while not self.uvicorn.started:
            assert self.thread.is_alive()
            time.sleep(0.01)
        port = self.uvicorn.servers[0].sockets[0].getsockname()[1]
        self.server = Server(None, port, [], self.thread)  # type: ignore[arg-type]
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self.uvicorn.should_exit = True
        self.thread.join(30)
        assert not self.thread.is_alive()

    def waiting(self) -> int:
        text = self.server.get("/metrics")[2]
        return int(re.search(r'queue_requests\{model="held"\} (\d+)', text)[1])  # type: ignore[index]

    def wait_for(self, count: int) -> None:
        deadline = time.monotonic() + 20
        while self.waiting() != count:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_full_queue_is_429_with_retry_after(encoder: SentenceEncoder) -> None:
    with Held(encoder, queue_tokens=20, max_tokens=20) as held, ThreadPoolExecutor(4) as pool:
        first = pool.submit(held.server.post, "/v1/embeddings", {"input": "bread"})
        assert held.started.wait(20)
        second = pool.submit(held.server.post, "/v1/embeddings", {"input": ["the bread is good"] * 2})
        held.wait_for(1)
        status, headers, found = held.server.post("/v1/embeddings", {"input": ["the bread is good"] * 2})
        assert (status, found["error"]["type"], found["error"]["code"]) == (429, "rate_limit_error", "queue_full")
        assert 1 <= int(headers["retry-after"]) <= 600
        assert held.server.post("/tokenize", {"inputs": "bread"})[0] == 200  # others are not held up
        held.released.set()
        assert (first.result()[0], second.result()[0]) == (200, 200)
        assert held.server.post("/v1/embeddings", {"input": "bread"})[0] == 200


def test_rows_that_wait_go_through_the_model_together(encoder: SentenceEncoder) -> None:
    with Held(encoder) as held, ThreadPoolExecutor(9) as pool:
        first = pool.submit(held.server.post, "/v1/embeddings", {"input": "bread"})
        assert held.started.wait(20)
        others = [pool.submit(held.server.post, "/v1/embeddings", {"input": TEXTS[:2]}) for _ in range(8)]
        held.wait_for(8)
        held.released.set()
        assert {one.result()[0] for one in [first, *others]} == {200}
        assert held.batches == [1, 16]


def test_a_client_that_goes_away_leaves_the_queue(encoder: SentenceEncoder) -> None:
    with Held(encoder) as held, ThreadPoolExecutor(2) as pool:
        first = pool.submit(held.server.post, "/v1/embeddings", {"input": "bread"})
        assert held.started.wait(20)
        body = json.dumps({"input": TEXTS}).encode()
        with socket.create_connection(("127.0.0.1", held.server.port)) as connection:
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            held.wait_for(1)
        held.wait_for(0)
        held.released.set()
        assert first.result()[0] == 200
        assert held.batches == [1]


def test_an_error_inside_is_500_and_the_log_leaves_out_its_message(
    encoder: SentenceEncoder, caplog: pytest.LogCaptureFixture
) -> None:
    with Held(encoder) as held, caplog.at_level(logging.INFO, "wordpiece_bert.serve"):

        def fail(*_: object, **__: object) -> None:
            raise RuntimeError(SECRET)

        transformer_of(held.encoder).__dict__["pooled"] = fail
        status, _, found = held.server.post("/v1/embeddings", {"input": "bread"})
        assert (status, found["error"]["type"]) == (500, "server_error")
        assert SECRET not in json.dumps(found)
    assert "RuntimeError at" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains(folders: Path, number: signal.Signals) -> None:
    limits = ["--max-tokens", 500_000, "--drain-timeout", 120]
    server = start(folders / "sentences", "--backend", "numpy", *limits)
    body = {"input": ["the bread and the oven " * 12] * 2000}
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(server.post, "/v1/embeddings", body)
        while not re.search(r"queue_requests\{.*\} 1\n", server.get("/metrics")[2]):
            assert not answer.done()
        server.process.send_signal(number)
        status, _, found = answer.result()
    assert (status, len(found["data"])) == (200, 2000)
    assert server.process.wait(30) == 0
    server.reader.join(10)
    with pytest.raises(ConnectionRefusedError):
        server.get("/health")


# --- settings and the command


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"batch_tokens": 0}, "batch_tokens must be a whole number"),
        ({"fill_deadline": -1}, "fill_deadline must be a number of seconds"),
        ({"drain_timeout": float("nan")}, "drain_timeout must be"),
        ({"max_tokens": 10, "queue_tokens": 9}, "would never fit the queue"),
        ({"truncation": "silent"}, "truncation must be one of"),
        ({"api_keys": ("a", "")}, "api_keys must be non-empty"),
        ({"api_keys": "abc"}, "api_keys must be a list"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        ServerSettings(**settings)


def test_keys_are_not_in_the_repr() -> None:
    assert KEY not in repr(ServerSettings(api_keys=(KEY,)))


def test_wrong_models(encoder: SentenceEncoder) -> None:
    with pytest.raises(InputError, match="needs a model"):
        create_app({})
    with pytest.raises(InputError, match=r"models\['a'\] must be a sentence, sparse, .* not str"):
        create_app({"a": "minilm"})  # type: ignore[dict-item]
    wrong: Any
    for wrong in (None, 5, "minilm", [encoder]):
        with pytest.raises(InputError, match="models must be a dict of names and encoders, not"):
            create_app(wrong)
    for wrong in (5, {"batch_tokens": 5}):
        with pytest.raises(InputError, match="settings must be a ServerSettings, not"):
            create_app({"a": encoder}, wrong)
        with pytest.raises(InputError, match=r"model_settings(\['a'\])? must be a "):
            create_app({"a": encoder}, model_settings={"a": wrong})
    with pytest.raises(InputError, match="a name in models must be a str, not int: 5"):
        create_app({5: encoder})  # type: ignore[dict-item]
    with pytest.raises(InputError, match="port must be"):
        run({"a": encoder}, port=70_000)


def test_errors_of_the_command(folders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(folders / "sentences")
    assert main(["serve", model, model]) == 2
    assert "two models are named 'sentences'" in capsys.readouterr().err
    for content, message in ((b"\n", "has no key"), (b"caf\xe9", "not UTF-8: byte 0xe9")):
        (tmp_path / "keys").write_bytes(content)
        assert main(["serve", model, "--api-key-file", str(tmp_path / "keys")]) == 2
        assert message in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["serve", model, "--port", str(taken.getsockname()[1])]) == 2
    assert "cannot listen on 127.0.0.1" in capsys.readouterr().err
