"""``wordpiece-bert serve`` as a process, and requests to it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What a request may add to the memory of the server, and how long it may hold up others on a busy machine.
MOST_MEGABYTES, MOST_SECONDS = 200, 5


class Server(NamedTuple):
    """A running server."""

    process: subprocess.Popen[str]
    port: int
    log: list[str]
    reader: threading.Thread

    def post(self, path: str, body: object, **headers: str) -> tuple[int, dict[str, str], Any]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request("POST", path, data, {"Content-Type": "application/json", **headers})

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, str], Any]:
        return self.request("GET", path, None, headers)

    def request(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, dict[str, str], Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            data = response.read()
            found = {name.lower(): value for name, value in response.getheaders()}
            is_json = found.get("content-type", "").startswith("application/json")
            return response.status, found, json.loads(data) if is_json else data.decode()
        finally:
            connection.close()


def complaint_of(found: Any) -> str:
    """Return the message of a refusal, in whichever dialect it is."""
    error = found.get("error")
    if isinstance(error, dict):  # OpenAI and vLLM
        message: str = error["message"]
        return message
    text: str = found["message"] if error is None else error  # Cohere and Jina, and TEI
    return text


def read_on(stream: IO[str], log: list[str]) -> None:
    with stream:
        log.extend(stream)


def start(*arguments: object, **environment: str) -> Server:
    """Start ``wordpiece-bert serve`` on a free port."""
    command = [sys.executable, "-m", "wordpiece_bert", "serve", "--port", "0", *map(str, arguments)]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, encoding="utf-8", env={**os.environ, "NO_COLOR": "1", **environment}
    )
    assert process.stderr is not None
    log = []
    for line in process.stderr:
        log.append(line)
        if found := re.search(r"at (?:http://127\.0\.0\.1:(\d+)|unix:.*) \(", line):
            # Somebody has to read on, or the server would block when the pipe is full.
            reader = threading.Thread(target=read_on, args=(process.stderr, log), daemon=True)
            reader.start()
            return Server(process, int(found[1] or 0), log, reader)
    pytest.fail("the server did not start: " + "".join(log))


def stop(server: Server) -> None:
    server.process.send_signal(signal.SIGTERM)
    code = server.process.wait(60)
    server.reader.join(10)
    assert code == 0, "".join(server.log)


def raw(server: Server, *parts: bytes, pause: float = 0.0) -> bytes:
    """Send bytes to the server, with pauses between them, and return all that comes back."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        for part in parts:
            try:
                connection.sendall(part)
            except (BrokenPipeError, ConnectionResetError):
                break
            time.sleep(pause)
        received = b""
        try:
            while part := connection.recv(65536):
                received += part
        except ConnectionResetError:
            pass
        return received


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


HEAD = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
