"""What a request can do to the server at most: memory, the time of others, and errors that are always JSON."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from make_models import SPECIAL

import tiny_models
from hostile_bodies import HOSTILE, MB, REQUESTS, filled, hostile_body, path_of
from model_files import MODELS
from server_process import HEAD, Server, complaint_of, raw, start, stop
from wordpiece_bert import CrossEncoder, SentenceEncoder, Tokenizer
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.serve import ServerSettings, create_app
from wordpiece_bert.serve.errors import RequestError
from wordpiece_bert.serve.pairs import PairEncoder
from wordpiece_bert.serve.requests import parse_object
from wordpiece_bert.serve.routes import ROUTES
from wordpiece_bert.subword import tokenizer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install '.[serve]'")

#: What a request may add to the memory of the server, and how long it may hold up others on a busy machine.
MOST_MEGABYTES, MOST_SECONDS = 200, 5
NAMES = ("sentences", "ranker", "reviews", "entities", "words", "splade", "colbert")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.make_all(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def server(folders: Path) -> Iterator[Server]:
    found = start(*(folders / name for name in NAMES))
    yield found
    stop(found)
    log = "".join(found.log)
    assert "POST /" in log
    assert "Traceback" not in log
    # The log has no text of a request.
    assert not re.search(r"bread|oven|[\[{🤗中]|a a|\\u", log.replace("{model:path}", ""))


@pytest.fixture(scope="module")
def app(folders: Path) -> Any:
    models = {"sentences": SentenceEncoder(folders / "sentences"), "ranker": CrossEncoder(folders / "ranker")}
    return create_app(models)


@pytest.fixture(scope="module")
def ranker(folders: Path) -> CrossEncoder:
    return CrossEncoder(folders / "ranker")


class Answer(NamedTuple):
    status: int
    media_type: str
    body: bytes
    headers: dict[str, str]


async def ask(app: Any, method: str, path: str, body: bytes = b"", **more: str) -> Answer:
    """Send a request to an application in this process."""
    given_body = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return given_body.pop() if given_body else await asyncio.Event().wait()  # type: ignore[return-value]

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json"), (b"host", b"a")]
    headers += [(name.encode(), value.encode()) for name, value in more.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": headers, "query_string": b"", "root_path": ""}
    await app(scope, receive, send)
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], found["content-type"], b"".join(part.get("body", b"") for part in sent[1:]), found)


def assert_refused(status: int, media_type: str, found: Any) -> None:
    assert 400 <= status < 500, (status, found)
    assert media_type == "application/json"
    assert complaint_of(found)


# --- memory, and the time of others


def megabytes(server: Server, key: str) -> float:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(rf"{key}:\s+(\d+) kB", status)[1]) / 1024  # type: ignore[index]


@contextmanager
def bounded(server: Server) -> Iterator[None]:
    """Check that the server keeps within its memory, and answers others meanwhile."""
    if not sys.platform.startswith("linux"):
        yield
        return
    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")  # the peak begins anew
    before, done, waits = megabytes(server, "VmRSS"), threading.Event(), [0.0]

    def others() -> None:
        while not done.is_set():
            begin = time.monotonic()
            assert server.get("/health")[0] == 200
            waits.append(time.monotonic() - begin)
            time.sleep(0.02)

    thread = threading.Thread(target=others)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    assert megabytes(server, "VmHWM") - before < MOST_MEGABYTES
    assert max(waits) < MOST_SECONDS


@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_body_takes_little_memory_and_holds_up_nobody(server: Server, request_: str, kind: str) -> None:
    body = hostile_body(request_, kind)
    assert len(body) <= 8 * MB
    with bounded(server):
        status, headers, found = server.post(path_of(request_), body)
    assert headers["content-type"] == "application/json"
    if status != 200:
        assert_refused(status, headers["content-type"], found)


def test_all_paths_have_hostile_bodies() -> None:
    paths = {route.path.replace("{model:path}", "words") for route in ROUTES if route.operations}
    assert {path_of(one) for one in REQUESTS} | {"/v1/score"} == paths | {"/models/entities"}  # /v1/score is /score


@pytest.mark.parametrize("query", ["bread " * (4 * MB // 6), "a" * 4 * MB, "雨" * (4 * MB // 3)])
@pytest.mark.parametrize("document", ["a", "bread " * 300])
def test_a_long_query_with_many_documents(server: Server, ranker: CrossEncoder, query: str, document: str) -> None:
    body = json.dumps({"query": query, "texts": [document] * 2048}, ensure_ascii=False).encode()
    assert len(body) <= 8 * MB
    with bounded(server):
        status, _, found = server.post("/rerank", body)
    if status == 200:
        expected, _ = ranker.predict((query, document), return_truncated=True)
        assert {item["score"] for item in found} == {float(expected)}
    else:
        assert "more than the server's limit of 131072 tokens" in complaint_of(found)


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
words = st.lists(st.sampled_from(["bread", "ovens", "a", "zz", "é雨", "[SEP]"]), max_size=12).map(" ".join)


@pytest.mark.parametrize("kind", PAIR_TOKENIZERS)
def test_rows_of_pairs_are_those_of_the_tokenizer(kind: str) -> None:
    if kind in ("byte-level", "unigram"):
        pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    tokenizer = PAIR_TOKENIZERS[kind]()

    @settings(deadline=None)
    @given(words, st.lists(words, min_size=1, max_size=4), st.integers(5, 24))
    def check(query: str, documents: list[str], max_length: int) -> None:
        pairs = [(query, document) for document in documents]
        expected = tokenizer.encodings(pairs, truncation="longest_first", max_length=max_length, padding=False)
        rows = PairEncoder(tokenizer, max_length).rows(query, documents)
        found = rows[0 : len(documents)]
        assert [row.ids.tolist() for row in found] == [list(one.ids) for one in expected]
        assert [row.token_type_ids.tolist() for row in found] == [list(one.token_type_ids) for one in expected]
        assert rows.lengths.tolist() == [len(one) for one in expected]
        assert rows.truncated.tolist() == [one.truncated for one in expected]

    check()


def test_rows_without_room_for_texts_are_refused() -> None:
    with pytest.raises(ConfigError, match="rows of 3 tokens have no room for texts: 3 tokens are special"):
        PairEncoder(bert("right"), 3)


def test_tokens_are_limited_for_every_path(folders: Path) -> None:
    server = start(*(folders / name for name in NAMES), "--max-tokens", 100)
    try:
        for count, status in [(98, 200), (99, 400)]:  # with two special tokens
            text = " ".join(["bread"] * count)
            assert server.post("/tokenize", {"inputs": text})[0] == status
            assert server.post("/tokenize", {"inputs": [text, ""], "add_special_tokens": False})[0] == 200
        status, _, found = server.post("/tokenize", {"inputs": ["bread"] * 101, "add_special_tokens": False})
        assert (status, "server's limit of 100 tokens" in complaint_of(found)) == (400, True)
        many = ["bread " * 20] * 50
        values: dict[str, Any] = {"/predict": [[text] for text in many], "/decode": [[2] * 60] * 2}
        for request in REQUESTS.keys() - {"/rerank query", "/similarity source"}:  # of one text, a row
            status, _, found = server.post(path_of(request), filled(request, values.get(request, many)))
            assert (status, "server's limit of 100 tokens" in complaint_of(found)) == (400, True), request
    finally:
        stop(server)


# --- what uvicorn does not limit


def lines_of(size: int) -> list[bytes]:
    return [b"abcd: efgh\r\n" * (MB // 12)] * (size // MB)


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "parts",
    [
        [HEAD, *lines_of(36 * MB), b"\r\n"],
        [HEAD, b"x: ", *[b"a" * MB] * 36, b"\r\n\r\n"],
        [HEAD, *[b"x" * MB] * 36],
        [b"GET /", *[b"a" * MB] * 36, b" HTTP/1.1\r\nHost: a\r\n\r\n"],
        [b"GET /?q=" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n"],
        [b"\r\n" * MB, *[b"\r\n" * MB] * 17],
        [CHUNKED, b"2\r\n{}\r\n0\r\n", *lines_of(36 * MB), b"\r\n"],
        [CHUNKED, b"2\r\n{}\r\n0\r\nx: ", *[b"a" * MB] * 36],
        [CHUNKED, b"2;", *[b"a" * MB] * 36],
    ],
    ids=["lines", "value", "name", "path", "query", "blank lines", "trailers", "trailer", "extension of a chunk"],
)
def test_headers_are_limited_before_the_key_is_checked(folders: Path, parts: list[bytes]) -> None:
    pytest.importorskip("httptools", reason="httptools is not installed: pip install '.[serve]'")
    server = start(folders / "sentences", WORDPIECE_BERT_API_KEYS="key")
    try:
        with bounded(server):
            received = raw(server, *parts)
        if received:  # a client that still sends may lose the answer
            head, _, body = received.partition(b"\r\n\r\n")
            assert head.split(b" ")[1] in (b"431", b"401"), head
            assert b"content-type: application/json" in head.lower()
            assert json.JSONDecoder().raw_decode(body.decode())[0]["error"]["code"] in (
                "headers_too_large",
                "invalid_api_key",
            )
    finally:
        stop(server)


def test_headers_and_chunks_of_ordinary_size_are_accepted(server: Server) -> None:
    connection = b"POST /tokenize HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    body = json.dumps({"inputs": "bread " * 900}).encode()
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    padding = b"x: " + b"a" * 60_000 + b"\r\n"
    request = connection + padding + b"Transfer-Encoding: chunked\r\n\r\n" + chunks
    received = raw(server, request, request, request + b"GET /health HTTP/1.1\r\nConnection: close\r\nHost: a\r\n\r\n")
    assert received.count(b"HTTP/1.1 200 OK") == 4


def test_what_is_not_http_is_refused_in_json(server: Server) -> None:
    received = raw(server, b"\x16\x03\x01\x02\x00 hello\r\n\r\n")
    head, _, body = received.partition(b"\r\n\r\n")
    assert b" 400 " in head.split(b"\r\n")[0]
    assert_refused(400, "application/json", json.loads(body))


def test_paths_and_methods_that_do_not_exist_are_refused_in_json(server: Server) -> None:
    for method, path, status in [("GET", "/elsewhere", 404), ("GET", "/tokenize", 405), ("DELETE", "/health", 405)]:
        found_status, headers, found = server.request(method, path, None, {})
        assert found_status == status
        assert_refused(status, headers["content-type"], found)
        assert (status == 405) == ("allow" in headers)


def test_numbers_and_commas_are_counted_outside_of_texts() -> None:
    def body(numbers: int, text: str = "") -> bytes:
        return json.dumps({"ids": [0] * numbers, "text": text}).encode()

    most = (1 << 16) + 1000
    assert len(parse_object(body(most, ',\\",[' * most), 10, 1000)["ids"]) == most
    with pytest.raises(RequestError, match=f"or {most} values in all"):
        parse_object(body(most + 1), 10, 1000)


# --- surrogates

LONE = "\ud800"
FRAGMENTS = [
    "\\ud83e",
    "\\udd17",
    "\\uD800",
    "\\uDfff",
    "\\\\",
    "\\\\ud800",
    "\\u0041",
    '\\"',
    "\\n",
    "a",
    "🤗",
    "ud800",
]


def is_text(value: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in value)


@settings(deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join))
def test_lone_surrogates_are_found(content: str) -> None:
    text = f'{{"a": "{content}"}}'
    value = json.loads(text)["a"]
    if not is_text(value):
        with pytest.raises(RequestError, match=r"lone surrogate \(at character (\d+)\)") as caught:
            parse_object(text.encode(), 10)
        at = int(re.search(r"character (\d+)", caught.value.message)[1])  # type: ignore[index]
        assert re.match(r"\\u[dD][89a-fA-F]", text[at:])
        assert is_text(json.loads(text[:at] + '"}')["a"])
    else:
        assert parse_object(text.encode(), 10) == {"a": value}


def places(value: Any) -> list[tuple[Any, ...]]:
    """Return the way to every string in a value; the name of a field ends with None."""
    if isinstance(value, str):
        return [()]
    if isinstance(value, dict):
        return [(name, None) for name in value] + [(n, *rest) for n, v in value.items() for rest in places(v)]
    return [(i, *rest) for i, v in enumerate(value) for rest in places(v)] if isinstance(value, list) else []


def changed(value: Any, way: tuple[Any, ...], change: Callable[[str], str]) -> Any:
    """Return a value in which one string is another."""
    if not way:
        return change(value)
    if way[1:] == (None,):
        return {change(name) if name == way[0] else name: item for name, item in value.items()}
    if isinstance(value, dict):
        return {**value, way[0]: changed(value[way[0]], way[1:], change)}
    return [changed(item, way[1:], change) if i == way[0] else item for i, item in enumerate(value)]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_surrogate_is_refused_in_every_place_of_every_request(app: Any, data: st.DataObject) -> None:
    request = data.draw(st.sampled_from(list(REQUESTS)))
    path = path_of(request)
    nested = {"deep": [{"er": ["text"]}], "text": "a"}
    fields: dict[str, Any] = {**filled(request, ["bread"]), "encoding_format": "float", "user": "me", "other": nested}
    fields["documents" if "rank" in path else "other"] = ["a", nested]
    way = data.draw(st.sampled_from(places(fields)))
    at = data.draw(st.integers(0, 3))
    body = changed(fields, way, lambda text: text[:at] + LONE + text[at:])
    escaped = json.dumps(body).encode()
    bare = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
    for sent in (escaped, bare):
        answer = asyncio.run(ask(app, "POST", path, sent))
        assert_refused(answer.status, answer.media_type, json.loads(answer.body))
        assert answer.status == 400


def test_models_have_names_that_can_be_shown(folders: Path) -> None:
    with pytest.raises(InputError, match="give the model another name"):
        create_app({"a\udc80": SentenceEncoder(folders / "sentences")})


# --- the end


def test_a_request_beyond_the_drain_time_is_503_in_json_and_counted(folders: Path) -> None:
    texts = 20_000  # seconds of work, where the server has one
    limits = ["--max-items", texts, "--max-tokens", 100 * texts, "--queue-tokens", 300 * texts, "--drain-timeout", 1]
    server = start(folders / "sentences", "--backend", "numpy", *limits)
    answers: dict[str, bytes] = {}
    body = json.dumps({"input": ["the bread and the oven " * 12] * texts}).encode()
    requests = {
        "computing": [HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body],
        "waiting": [HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body],
        "arriving": [HEAD + b"Content-Length: 99\r\n\r\n{"],
    }
    threads = [
        threading.Thread(target=lambda name=name, parts=parts: answers.update({name: raw(server, *parts)}))
        for name, parts in requests.items()
    ]
    for thread in threads:
        thread.start()
    while not re.search(r"queue_requests\{.*\} 2\n", server.get("/metrics")[2]):
        time.sleep(0.01)
    stop(server)
    for thread in threads:
        thread.join()
    assert set(answers) == set(requests)
    for received in answers.values():
        head, _, found = received.partition(b"\r\n\r\n")
        assert b" 503 " in head.split(b"\r\n")[0]
        assert b"content-type: application/json" in head
        assert json.loads(found)["error"] == {
            "message": "the server is shutting down, and had no time left for this request; send it again",
            "type": "server_error",
            "param": None,
            "code": "shutting_down",
        }
    log = "".join(server.log)
    assert len(re.findall(r"POST /v1/embeddings 503 ", log)) == 3
    assert "Traceback" not in log


def test_a_request_that_the_server_gives_up_is_counted(folders: Path) -> None:
    app = create_app({"a": SentenceEncoder(folders / "sentences")}, ServerSettings(fill_deadline=30))
    batcher = app.service.models.find("a")._batcher
    batcher._active, batcher._seconds = 2, 60  # so that it waits for another request

    async def given_up() -> tuple[Answer, Answer]:
        task = asyncio.create_task(ask(app, "POST", "/v1/embeddings", b'{"input": "bread"}'))
        await asyncio.sleep(0.2)
        task.cancel()
        return await task, await ask(app, "GET", "/metrics")

    answer, metrics = asyncio.run(given_up())
    assert (answer.status, answer.media_type) == (503, "application/json")
    assert b'requests_total{path="/v1/embeddings",status="503"} 1\n' in metrics.body
