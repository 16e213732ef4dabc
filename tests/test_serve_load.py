"""The server under load: short requests beside long ones, deadlines, and memory with any number of clients."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from serve_client import ask
from serve_fixtures import folders  # noqa: F401
from server_process import HEAD, megabytes, raw, start, stop
from wordpiece_bert import SentenceEncoder
from wordpiece_bert.errors import InputError
from wordpiece_bert.serve import ServerSettings, create_app
from wordpiece_bert.serve.batching import Batcher
from wordpiece_bert.serve.errors import RequestError
from wordpiece_bert.serve.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from server_process import Server

MB = 1 << 20
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the memory of a process in /proc")


# --- batches


def tokens_of(parts: Any) -> int:
    return int(sum(part.rows[part.start : part.stop].sum() for part in parts))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time for batches, which passes only when they are computed, and a little whenever it is read."""
    now = [0.0]

    def read() -> float:
        now[0] += 1e-3
        return now[0]

    monkeypatch.setattr("wordpiece_bert.serve.batching.perf_counter", read)
    return now


def batches(clock: list[float], settings: ServerSettings, second: int) -> list[int]:
    """Return the tokens of batches: of a long request, and of others of so many tokens during its second batch.

    The model computes 20,000 tokens in a second.
    """
    found: list[int] = []
    began, submitted = threading.Event(), threading.Event()

    def run(_: object, parts: Any) -> list[int]:
        found.append(tokens_of(parts))
        if len(found) == 2:
            began.set()
            assert submitted.wait(60)
        clock[0] += found[-1] / 20_000
        return [0] * sum(part.stop - part.start for part in parts)

    async def load() -> None:
        batcher = Batcher(run, settings, Metrics(), "a")
        rows, others = np.full(1200, 10), np.full(second // 10, 10)
        task = asyncio.create_task(batcher.submit(rows, rows))
        assert await asyncio.to_thread(began.wait, 60)
        other = asyncio.create_task(batcher.submit(others, others))
        await asyncio.sleep(0)  # it waits in the queue
        submitted.set()
        await other
        assert not task.done() or second > 1000
        await task
        await batcher.close()

    asyncio.run(load())
    return found


def test_a_batch_is_short_while_a_short_request_is_there_beside_a_long_one(clock: list[float]) -> None:
    sizes = batches(clock, ServerSettings(batch_seconds=0.0125), 10)
    # The speed is not known; then twelve times 0.0125 s of the request that is alone, by a speed that is never exact.
    assert (sizes[0], sizes[2]) == (4100, 10)
    assert 2500 < sizes[1] <= 3500
    assert max(sizes[3:]) <= 300
    assert sum(sizes) == 12_010


@pytest.mark.parametrize(("seconds", "second"), [(0.0, 10), (0.02, 6000)], ids=["no limit", "long ones alone"])
def test_batches_are_full_where_nobody_waits_for_less(clock: list[float], seconds: float, second: int) -> None:
    sizes = batches(clock, ServerSettings(batch_seconds=seconds), second)
    assert max(sizes[2:]) > 1500


def test_the_queue_is_bounded_in_seconds(clock: list[float]) -> None:
    began, refused = threading.Event(), threading.Event()

    def run(_: object, parts: Any) -> list[int]:
        if clock[0] > 0.2:  # the second batch
            began.set()
            assert refused.wait(60)
        clock[0] += tokens_of(parts) / 20_000
        return [0] * sum(part.stop - part.start for part in parts)

    async def load() -> None:
        batcher = Batcher(run, ServerSettings(max_wait=0.5), Metrics(), "a")
        rows = np.full(2400, 10)
        task = asyncio.create_task(batcher.submit(rows, rows))  # its speed is not known: any number of tokens may wait
        assert await asyncio.to_thread(began.wait, 60)
        with pytest.raises(RequestError, match=r"queue of a is full \(\d+ tokens wait\); try again in 1 s") as caught:
            await batcher.submit(rows[:1], rows[:1])
        assert (caught.value.status, caught.value.retry_after) == (429, 1)
        refused.set()
        await task
        assert len(await batcher.submit(rows, rows)) == 2400  # an idle server takes a request of any length
        await batcher.close()

    asyncio.run(load())


@pytest.mark.parametrize("what", ["a deadline", "a client that has left"])
def test_what_nobody_waits_for_is_not_computed(
    what: str,
    folders: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit = 0.5 if what == "a deadline" else 60.0
    app = create_app(
        {"a": SentenceEncoder(folders / "sentences")}, ServerSettings(request_timeout=limit, batch_tokens=16)
    )
    batcher = app.service.models.find("a").batcher
    run, computed = batcher._run, [0]

    def slow(key: Any, parts: Any) -> Any:
        computed[0] += sum(part.stop - part.start for part in parts)
        time.sleep(0.1)
        return run(key, parts)

    monkeypatch.setattr(batcher, "_run", slow)
    body = json.dumps({"input": ["bread oven"] * 200}).encode()

    async def load() -> None:
        if what == "a deadline":
            answer = await ask(app, "POST", "/v1/embeddings", body)
            assert answer.status == 503
            assert b"the request was not answered within 0.5 s; send it again, or divide it" in answer.body
        else:
            messages = [{"type": "http.request", "body": body}]

            async def receive() -> Any:
                if messages:
                    return messages.pop()
                await asyncio.sleep(0.2)
                return {"type": "http.disconnect"}

            sent: list[Any] = []

            async def send(message: Any) -> None:
                sent.append(message)

            headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
            scope = {"type": "http", "method": "POST", "path": "/v1/embeddings", "headers": headers}
            await app(scope, receive, send)
            assert not sent
        done = computed[0]
        await asyncio.sleep(0.5)
        assert computed[0] - done <= 8  # the batch that was computed, and at most one more
        assert done < 100
        assert app.service.memory.used == 0
        assert (await ask(app, "POST", "/v1/embeddings", b'{"input": "bread"}')).status == 200
        await app.service.models.close()

    asyncio.run(load())


def test_a_request_must_fit_the_memory() -> None:
    with pytest.raises(InputError, match="a request of max_bytes would never be taken; make inflight_bytes larger"):
        ServerSettings(inflight_bytes=1000)


# --- memory and connections


@contextlib.contextmanager
def running(*arguments: object) -> Iterator[Server]:
    server = start(*arguments)
    try:
        yield server
    finally:
        stop(server)
        assert "Traceback" not in "".join(server.log)


def gauge(server: Server, name: str) -> float:
    found = re.search(rf"^wordpiece_bert_{name} (\S+)$", server.get("/metrics")[2], re.MULTILINE)
    assert found
    return float(found[1])


def wait_for(done: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)


@LINUX
def test_200_stalled_clients_take_no_more_memory_than_the_limit(folders: Path) -> None:  # noqa: F811
    with (
        running(folders / "sentences", "--inflight-bytes", 40 * MB, "--receive-timeout", 600) as server,
        contextlib.ExitStack() as opened,
    ):
        head = HEAD + b"Content-Length: %d\r\n\r\n" % (8 * MB)
        part = b'{"input": "' + b"a" * (7 * MB + 900_000)
        before = megabytes(server, "VmRSS")
        refused = 0
        for _ in range(200):
            client = opened.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60))
            with contextlib.suppress(ConnectionError):
                client.sendall(head + part)
            client.settimeout(0.01)
            with contextlib.suppress(TimeoutError, ConnectionError):
                refused += client.recv(1000).startswith(b"HTTP/1.1 503 ")
        assert megabytes(server, "VmHWM") - before < 120
        assert 0 < gauge(server, "inflight_bytes") <= 40 * MB
        assert refused > 100
        status, headers, found = server.post("/v1/embeddings", json.dumps({"input": "a" * 7 * MB}).encode())
        assert (status, found["error"]["code"], headers["retry-after"]) == (503, "out_of_memory", "1")
        assert server.get("/health")[0] == 200
        opened.close()
        wait_for(lambda: gauge(server, "inflight_bytes") == 0)
        assert server.post("/v1/embeddings", {"input": "bread"})[0] == 200


@LINUX
def test_readers_that_take_nothing_take_no_more_memory_than_the_limit(folders: Path) -> None:  # noqa: F811
    with (
        running(folders / "sentences", "--inflight-bytes", 24 * MB, "--receive-timeout", 3) as server,
        contextlib.ExitStack() as opened,
    ):
        body = json.dumps({"input": ["bread oven"] * 2048}).encode()
        size = len(json.dumps(server.post("/v1/embeddings", body)[2]))
        assert size > MB // 2
        before = megabytes(server, "VmRSS")
        for _ in range(200):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            opened.enter_context(client)
            client.connect(("127.0.0.1", server.port))
            client.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        wait_for(lambda: re.search(r'status="503"', server.get("/metrics")[2]) or gauge(server, "inflight_bytes") == 0)
        # They take nothing for 3 s, and are ended.
        wait_for(lambda: gauge(server, "inflight_bytes") == 0)
        assert megabytes(server, "VmHWM") - before < 120
        assert server.post("/v1/embeddings", body)[0] == 200


def test_a_slow_reader_gets_the_whole_answer(folders: Path) -> None:  # noqa: F811
    with running(folders / "sentences", "--receive-timeout", 3) as server:
        body = json.dumps({"input": ["bread oven"] * 2048}).encode()
        expected = server.post("/v1/embeddings", body)[2]
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", server.port))
            client.sendall(HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            received = b""
            while part := client.recv(1 << 14):
                received += part
                time.sleep(0.001)
        assert json.loads(received.partition(b"\r\n\r\n")[2]) == expected


def test_a_connection_too_many_is_refused(folders: Path) -> None:  # noqa: F811
    with running(folders / "sentences", "--max-connections", 2) as server:
        with contextlib.ExitStack() as opened:
            for _ in range(2):
                opened.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            time.sleep(0.1)
            received = raw(server, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            head, _, found = received.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
            assert json.loads(found)["error"]["code"] == "too_many_connections"
            assert b"the server has 2 open connections, its limit" in found
        wait_for(lambda: server.get("/health")[0] == 200)
