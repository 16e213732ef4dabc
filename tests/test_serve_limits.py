"""What a request can do to the server at most: memory, the time of others, and requests at the server's end."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import re
import threading
import time
import zlib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.hostile_bodies import HOSTILE, MB, PACKED, REQUESTS, filled, hostile_body, path_of
from serve_client import Answer, ask, assert_refused
from serve_fixtures import NAMES, PAIR_TOKENIZERS, bert, folders, ranker, server
from server_process import HEAD, Server, bounded, complaint_of, raw, start, stop
from wordpiece_bert import CrossEncoder, SentenceEncoder, Tokenizer
from wordpiece_bert.errors import ConfigError
from wordpiece_bert.serve import ServerSettings, create_app, requests
from wordpiece_bert.serve.errors import RequestError
from wordpiece_bert.serve.model_loading import load_model
from wordpiece_bert.serve.pair_encoder import PairEncoder
from wordpiece_bert.serve.requests import parse_object, unpacked
from wordpiece_bert.serve.routes import ROUTES

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install '.[serve]'")


# --- memory, and the time of others


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


@pytest.mark.parametrize("kind", PACKED)
def test_a_hostile_packed_body_takes_little_memory_and_holds_up_nobody(server: Server, kind: str) -> None:
    body = PACKED[kind]()
    assert len(body) <= 8 * MB
    with bounded(server):
        status, headers, found = server.post("/embed", body, **{"Content-Encoding": "gzip"})
    assert_refused(status, headers["content-type"], found)


@pytest.mark.parametrize("content", [b"", b" ", b"a" * 5000])
def test_the_work_of_unpacking_grows_with_the_body(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    work, make = [0], zlib.decompressobj

    class Counted:
        """A member that counts the bytes it is given, and those that it copies from behind its end."""

        def __init__(self, **options: int) -> None:
            self._member = make(**options)

        def decompress(self, data: bytes, most: int) -> bytes:
            work[0] += len(data)
            found = self._member.decompress(data, most)
            work[0] += len(self._member.unused_data)
            return found

        def __getattr__(self, name: str) -> Any:
            return getattr(self._member, name)

    monkeypatch.setattr(requests.zlib, "decompressobj", Counted)
    member = gzip.compress(content, mtime=0)
    counts = []
    for members in (1000, 2000):
        work[0] = 0
        assert unpacked(member * members, 1 << 30) == content * members
        counts.append(work[0])
    assert counts[1] < 2.1 * counts[0]
    with pytest.raises(RequestError, match="more than 4096 members"):
        unpacked(member * 4097, 1 << 30)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=3000), max_size=5), st.integers(0, 9), st.integers(1, 4))
def test_members_are_unpacked_as_gzip_unpacks_them(contents: list[bytes], level: int, times: int) -> None:
    packed = b"".join(gzip.compress(content * times, level) for content in contents)
    expected = gzip.decompress(packed)
    assert unpacked(packed, len(expected)) == expected
    if expected:
        with pytest.raises(RequestError, match="larger than the server's limit"):
            unpacked(packed, len(expected) - 1)
    if packed:
        with pytest.raises(RequestError, match="ends before its gzip data do"):
            unpacked(packed[:-1], 1 << 20)
        with pytest.raises(RequestError, match="not in the format of gzip"):
            unpacked(packed + b"rest of no member", 1 << 20)


def test_a_key_that_is_there_twice_is_found_among_many() -> None:
    keys = [f'"{index}": 1' for index in range(60_000)]
    start = time.monotonic()
    with pytest.raises(RequestError, match="the key '59999' twice"):
        parse_object(f"{{{', '.join([*keys, keys[-1]])}}}".encode(), 2048)
    assert time.monotonic() - start < 5  # with a search among the keys before each, a minute


def test_all_paths_have_hostile_bodies() -> None:
    paths = {route.path.replace("{model:path}", "words") for route in ROUTES if route.operations}
    same = {"/v1/score", "/infinity/embeddings", "/infinity/rerank"}  # as /score, /v1/embeddings and /v1/rerank
    assert {path_of(one) for one in REQUESTS} | same == paths | {"/models/entities"}


LONG = ["bread " * (4 * MB // 6), "a" * 4 * MB, "雨" * (4 * MB // 3)]


@pytest.mark.parametrize("query", LONG, ids=["words", "a word", "characters"])
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


@pytest.mark.parametrize("model", ["ranker", "sentences", "colbert"])
@pytest.mark.parametrize("text", LONG, ids=["words", "a word", "characters"])
def test_a_long_text_scored_with_many_is_tokenized_once(server: Server, model: str, text: str) -> None:
    body = json.dumps({"text_1": text, "text_2": ["a"] * 2048, "model": model}, ensure_ascii=False).encode()
    assert len(body) <= 8 * MB
    with bounded(server):
        status, _, found = server.post("/score", body)
    if status == 200:
        # Of equal documents, with as many equal texts: what the server made when it repeated the first.
        few = {"text_1": [text[:4096]] * 2, "text_2": ["a"] * 2, "model": model}
        expected = server.post("/score", few)[2]["data"]
        assert {item["score"] for item in found["data"]} == {item["score"] for item in expected}
    else:
        assert "more than the server's limit of 131072 tokens" in complaint_of(found)


@pytest.mark.parametrize("model", ["ranker", "sentences", "colbert", "static"])
def test_one_text_is_scored_as_if_it_was_repeated(folders: Path, model: str) -> None:
    app = create_app({model: load_model(str(folders / model))})
    right = ["to bake bread", "the oven", "bread oven flour " * 40, "a"] * 10

    async def scores(left: object) -> list[Any]:
        answer = await ask(app, "POST", "/score", json.dumps({"text_1": left, "text_2": right}).encode())
        return [json.loads(answer.body)[name] for name in ("data", "truncated")]

    async def all_scores() -> None:
        for left in ("the bread", "the bread and the oven " * 40):
            assert await scores(left) == await scores([left] * len(right)) == await scores([left] * len(right))
        await app.service.models.close()

    asyncio.run(all_scores())


@pytest.mark.parametrize("model", ["ranker", "sentences", "colbert"])
def test_the_work_of_one_text_does_not_grow_with_the_others(
    folders: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenized: list[int] = []
    for method in ("encode_batch", "encodings"):
        work = getattr(Tokenizer, method)

        def counted(self: Tokenizer, texts: list[str], *, work: Any = work, **options: Any) -> Any:
            tokenized.append(sum(map(len, texts)))
            return work(self, texts, **options)

        monkeypatch.setattr(Tokenizer, method, counted)
    text = "bread " * 10_000
    app = create_app({model: load_model(str(folders / model))}, ServerSettings(prompt="the "))

    async def characters(documents: int) -> int:
        tokenized.clear()
        body = {"text_1": text, "text_2": ["a"] * documents}
        assert (await ask(app, "POST", "/score", json.dumps(body).encode())).status == 200
        return sum(tokenized)

    async def both() -> list[int]:
        found = [await characters(1), await characters(500)]
        await app.service.models.close()
        return found

    few, many = asyncio.run(both())
    assert few >= len(text)
    assert many < 1.1 * few


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
        rows = PairEncoder(tokenizer, max_length).rows([query], documents)
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
            assert server.post("/tokenize", {"inputs": text})[0] in (status, 413 if status == 400 else status)
            assert server.post("/tokenize", {"inputs": [text, ""], "add_special_tokens": False})[0] == 200
        status, _, found = server.post("/tokenize", {"inputs": ["bread"] * 101, "add_special_tokens": False})
        assert status in (400, 413)
        assert "server's limit of 100 tokens" in complaint_of(found)
        many = ["bread " * 20] * 50
        values: dict[str, Any] = {"/predict": [[text] for text in many], "/decode": [[2] * 60] * 2}
        one = {name for name in REQUESTS if name.endswith((" query", " source")) or " text_1" in name}
        for request in REQUESTS.keys() - one:  # of one text, a row
            status, _, found = server.post(path_of(request), filled(request, values.get(request, many)))
            assert status in (400, 413), request
            assert "server's limit of 100 tokens" in complaint_of(found), request
    finally:
        stop(server)


# --- the end


def test_a_request_beyond_the_drain_time_is_503_in_json_and_counted(folders: Path) -> None:
    texts = 20_000  # seconds of work, where the server has one
    limits = ["--max-items", texts, "--max-tokens", 100 * texts, "--queue-tokens", 300 * texts, "--max-wait", 0]
    limits += ["--drain-timeout", 1]
    server = start(folders / "sentences", "--backend", "numpy", *limits)
    answers: dict[str, bytes] = {}
    chance = random.Random(0)  # equal texts would be computed once
    inputs = [" ".join(chance.choices(["the", "bread", "and", "oven"], k=60)) for _ in range(texts)]
    body = json.dumps({"input": inputs}).encode()
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
    batcher = app.service.models.find("a").batcher
    batcher._active, batcher._seconds = 2, 60  # so that it waits for another request

    async def given_up() -> tuple[Answer, Answer]:
        task = asyncio.create_task(ask(app, "POST", "/v1/embeddings", b'{"input": "bread"}'))
        await asyncio.sleep(0.2)
        task.cancel()
        return await task, await ask(app, "GET", "/metrics")

    answer, metrics = asyncio.run(given_up())
    assert (answer.status, answer.media_type) == (503, "application/json")
    assert b'requests_total{path="/v1/embeddings",status="503"} 1\n' in metrics.body
