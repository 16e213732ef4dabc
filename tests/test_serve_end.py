"""The end of the server under load: every request that was sent gets an answer, and no connection is reset."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

import pytest

from serve_fixtures import folders
from server_process import Server, start

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install '.[serve]'")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")

BODY = json.dumps({"inputs": "the bread and the oven"}).encode()
#: Bodies of a packet, and of more than the server reads at once.
BODIES = (BODY, BODY + b" " * 400_000)


class Sent(NamedTuple):
    """A request that a server has accepted the connection of, and what came back."""

    status: int
    headers: bytes
    error: str


async def connect(address: int | str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if isinstance(address, str):
        return await asyncio.open_unix_connection(address)
    return await asyncio.open_connection("127.0.0.1", address)


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> Sent:
    head = b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    try:
        writer.write(head % len(body) + body)
        await writer.drain()
        headers = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", headers)
        assert length
        await reader.readexactly(int(length[1]))
    except (OSError, asyncio.IncompleteReadError) as error:
        return Sent(0, b"", repr(error))
    return Sent(int(headers.split(b" ", 2)[1]), headers, "")


async def client(address: int | str, body: bytes, *, keep: bool, found: list[Sent]) -> None:
    """Send a request after the other, until connections are refused."""
    while True:
        try:
            reader, writer = await connect(address)
        except (ConnectionRefusedError, FileNotFoundError):
            return
        try:
            while True:
                found.append(await exchange(reader, writer, body))
                if not keep or not found[-1].status or b"connection: close" in found[-1].headers or reader.at_eof():
                    break
        finally:
            writer.close()


async def load(server: Server, address: int | str, seconds: float) -> list[Sent]:
    """Load a server with clients of all kinds, send it SIGTERM meanwhile, and return all that was sent."""
    found: list[Sent] = []
    clients = [
        asyncio.create_task(client(address, body, keep=keep, found=found))
        for body in BODIES
        for keep in (True, False)
        for _ in range(6)
    ]
    await asyncio.sleep(seconds)
    server.process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(60):
        await asyncio.gather(*clients)
    return found


@pytest.mark.parametrize("kind", ["port", "socket"])
def test_no_request_is_lost_when_the_server_ends_under_load(folders: Path, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "socket"
    server = start(folders / "sentences", *(["--uds", path] if kind == "socket" else []))
    found = asyncio.run(load(server, str(path) if kind == "socket" else server.port, 0.5))
    assert server.process.wait(30) == 0
    assert [one.error for one in found if one.error] == []
    assert {one.status for one in found} == {200, 503}
    refused = [one for one in found if one.status == 503]
    assert all(b"retry-after: " in one.headers and b"connection: close" in one.headers for one in refused)
    server.reader.join(10)
    assert "Traceback" not in "".join(server.log)


def test_connections_that_nobody_uses_do_not_hold_up_the_end(folders: Path) -> None:
    server = start(folders / "sentences")
    with socket.create_connection(("127.0.0.1", server.port)) as idle:
        assert server.get("/health")[0] == 200
        begin = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert idle.recv(1) == b""
        assert server.process.wait(30) == 0
    assert time.monotonic() - begin < 10
    server.reader.join(10)


@pytest.mark.skipif(sys.platform != "linux", reason="the filter is Linux'")
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_nobody_is_let_in_any_more_but_those_who_wait_are(address: str) -> None:
    from wordpiece_bert.serve.ending import _has_visitors, _let_nobody_in

    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        listener = socket.create_server((address, 0), family=family)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with listener, socket.create_connection(listener.getsockname()[:2]) as waiting, socket.socket(family) as late:
        _let_nobody_in(listener)
        assert _has_visitors(listener)
        accepted, _ = listener.accept()
        with accepted:
            waiting.sendall(b"request")
            assert accepted.recv(7) == b"request"
        late.settimeout(0.2)
        with pytest.raises(TimeoutError):
            late.connect(listener.getsockname()[:2])
        assert not _has_visitors(listener)
        listener.close()
        with socket.socket(family) as later, pytest.raises(ConnectionRefusedError):
            later.connect(waiting.getpeername()[:2])
