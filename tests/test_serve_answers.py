"""Large answers of the server, which are made and sent in parts, and the limits of headers that uvicorn does not set."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.hostile_bodies import MB, path_of
from serve_client import Answer, ask, assert_refused
from serve_fixtures import folders, loaded, server
from server_process import HEAD, Server, bounded, complaint_of, raw, start, stop
from wordpiece_bert import _core
from wordpiece_bert.serve import create_app, json_answers
from wordpiece_bert.serve.errors import RequestError
from wordpiece_bert.serve.kinds import served_model as base
from wordpiece_bert.serve.requests import parse_object

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install '.[serve]'")


# --- large answers


class Pieces:
    """Counts the numbers, items and characters of the largest piece of an answer that is made at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, numbers: int, items: int) -> None:
        monkeypatch.setattr(json_answers, "_NUMBERS", numbers)
        monkeypatch.setattr(json_answers, "_ITEMS", items)
        monkeypatch.setattr(json_answers, "_BYTES", 4 * numbers // 3 * 3)
        monkeypatch.setattr(json_answers, "_text", self._counted)
        monkeypatch.setattr(json_answers, "json_of_floats", self._counted_floats)
        self.largest, self.count = 0, 0

    def _counted(self, value: Any) -> str:
        self.largest = max(self.largest, self._size(value))
        self.count += 1
        return json.dumps(value, separators=(",", ":"), allow_nan=False)

    def _counted_floats(self, array: Any) -> str:
        self._counted(array.tolist())
        return _core.json_of_floats(array)

    def _size(self, value: Any) -> int:
        if isinstance(value, list | dict):
            return sum(map(self._size, value.values() if isinstance(value, dict) else value))
        return 1 + len(value) // 4 if isinstance(value, str) else 1


LARGE = {
    "/embed": {"inputs": None},
    "/embed_all": {"inputs": None},
    "/embed_all colbert": {"inputs": None, "model": "colbert"},
    "/embed_sparse": {"inputs": None},
    "/pooling": {"input": None, "model": "sentences"},
    "/pooling base64": {"input": None, "model": "sentences", "encoding_format": "base64"},
    "/pooling colbert": {"input": None, "model": "colbert"},
    "/pooling embed": {"input": None, "task": "embed"},
    "/v1/embeddings": {"input": None},
    "/tokenize": {"inputs": None},
    "/predict": {"inputs": None},
    "/classify": {"input": None},
    "/score": {"text_1": "a", "text_2": None},
    "/rerank": {"query": "a", "texts": None},
    "/models/entities": {"inputs": None},
}


def test_the_numbers_of_answers_with_labels_are_limited(
    loaded: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = loaded["reviews"].num_labels
    monkeypatch.setattr(base, "_MOST_NUMBERS", 6 * labels)

    async def check() -> None:
        app = create_app({"reviews": loaded["reviews"]})
        for path, name, item in (
            ("/predict", "inputs", ["a"]),
            ("/classify", "input", "a"),
            ("/pooling", "input", "a"),
        ):
            for texts in (3, 4):
                answer = await ask(app, "POST", path, json.dumps({name: [item] * texts}).encode())
                complaint = "" if texts == 3 else complaint_of(json.loads(answer.body))
                assert (answer.status == 200) == (texts == 3)
                assert ("more than the server's limit of" in complaint) == (texts == 4)
        await app.service.models.close()

    asyncio.run(check())


@pytest.mark.filterwarnings("ignore::wordpiece_bert.errors.TruncationWarning")
@pytest.mark.parametrize("request_", LARGE)
def test_no_piece_of_an_answer_is_large(loaded: dict[str, Any], request_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[Any] = ["bread oven flour the and a " * 20] * 20
    given = [[text] for text in texts] if request_ == "/predict" else texts
    fields = {name: given if value is None else value for name, value in LARGE[request_].items()}

    async def both() -> tuple[Any, Any, Pieces]:
        app = create_app(loaded)
        usual = await ask(app, "POST", path_of(request_), json.dumps(fields).encode())
        pieces = Pieces(monkeypatch, 16, 4)
        found = await ask(app, "POST", path_of(request_), json.dumps(fields).encode())
        await app.service.models.close()
        assert usual.status == found.status == 200
        return json.loads(usual.body), json.loads(found.body), pieces

    usual, found, pieces = asyncio.run(both())
    for answer in (usual, found):
        if isinstance(answer, dict):
            assert len(answer.pop("id", "")) < 99
            answer.pop("created", 0)
    assert found == usual
    # A vector of a whole text, or a token, a label or the usage with its names.
    assert pieces.largest <= 4 * 16
    assert pieces.count >= 5


numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)


def float32_of(text: str) -> float:
    return float(np.float32(float(text)))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 5), min_size=1, max_size=3), st.integers(1, 20), st.data())
def test_arrays_and_lists_are_written_as_lists(shape: list[int], size: int, data: st.DataObject) -> None:
    count = int(np.prod(shape))
    array = np.array(data.draw(st.lists(numbers, min_size=count, max_size=count)), np.float32).reshape(shape)
    octets = data.draw(st.binary(max_size=40))
    plain = {"a": array.tolist(), "b": [1, {"c": array.tolist(), "d": "e"}], "f": [], "g": [0] * 12}

    async def text() -> bytes:
        value = {"a": array, "b": iter([1, {"c": array, "d": "e"}]), "f": iter(()), "g": [0] * 12}
        return b"".join(await json_answers.encoded({**value, "h": memoryview(octets)}))

    with pytest.MonkeyPatch.context() as patch:
        for name, most in (("_NUMBERS", size), ("_ITEMS", size), ("_BYTES", 3 * size), ("_PART", size)):
            patch.setattr(json_answers, name, most)
        found = asyncio.run(text())
    expected = {**plain, "h": base64.b64encode(octets).decode()}
    assert json.loads(found, parse_float=float32_of) == expected
    assert re.search(rb"\s", found) is None


@given(st.lists(st.integers(0, (1 << 32) - 1), max_size=50))
def test_float32_has_the_fewest_digits_that_read_back(bits: list[int]) -> None:
    array = np.array(bits, np.uint32).view(np.float32)
    array = array[np.isfinite(array)]
    text = asyncio.run(json_answers.encoded(array))[0].decode()
    found = np.array([float(number) for number in text[1:-1].split(",") if number], np.float64).astype(np.float32)
    assert found.tobytes() == array.tobytes()
    digits = [len(np.format_float_scientific(number, unique=True, trim="-")) for number in array]
    shown = [
        len(np.format_float_scientific(np.float64(number), trim="-")) for number in text[1:-1].split(",") if number
    ]
    assert shown == digits


def test_what_json_has_no_number_for_is_not_sent() -> None:
    for number in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="JSON"):
            asyncio.run(json_answers.encoded(np.array([0, number], np.float32)))


def test_an_answer_is_sent_in_parts_and_begins_once(loaded: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_answers, "_PART", 1000)
    sent: list[dict[str, Any]] = []

    async def slow(message: dict[str, Any]) -> None:
        sent.append(message)
        if len(sent) == 3:  # a client that reads no more
            await asyncio.Event().wait()

    async def given_up() -> Answer:
        app = create_app({"sentences": loaded["sentences"]})
        body = json.dumps({"inputs": ["bread"] * 500}).encode()
        whole = await ask(app, "POST", "/embed", body)
        task = asyncio.create_task(ask(app, "POST", "/embed", body, send=slow))
        while len(sent) < 3:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await app.service.models.close()
        return whole

    whole = asyncio.run(given_up())
    assert int(whole.headers["content-length"]) == len(whole.body)
    assert [message["type"] for message in sent] == ["http.response.start", *["http.response.body"] * 2]
    assert [message["more_body"] for message in sent[1:]] == [True, True]
    assert sent[1]["body"] + sent[2]["body"] == whole.body[: len(sent[1]["body"] + sent[2]["body"])]


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
        [b"GET /", *[b"a" * MB] * 36, b" HTTP/1.1\r\nHost: localhost\r\n\r\n"],
        [b"GET /?q=" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"],
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
    connection = b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    body = json.dumps({"inputs": "bread " * 900}).encode()
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    padding = b"x: " + b"a" * 60_000 + b"\r\n"
    request = connection + padding + b"Transfer-Encoding: chunked\r\n\r\n" + chunks
    received = raw(
        server, request, request, request + b"GET /health HTTP/1.1\r\nConnection: close\r\nHost: localhost\r\n\r\n"
    )
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
