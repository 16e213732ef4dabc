"""Refusals that arrive although the client has not sent all of its request, and names of the server that it answers to."""

from __future__ import annotations

import http.client
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from serve_fixtures import folders
from server_process import Server, complaint_of, start, stop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install '.[serve]'")

MB = 1 << 20


@pytest.fixture(scope="module", params=["with httptools and uvloop", "without"])
def server(folders: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server with a key, of both protocols of uvicorn, and both event loops."""
    hidden = tmp_path_factory.mktemp("modules")
    if request.param == "without":
        for name in ("httptools", "uvloop"):
            (hidden / f"{name}.py").write_text("raise ImportError")
    paths = os.pathsep.join([str(hidden), os.environ.get("PYTHONPATH", "")])
    found = start(folders / "sentences", PYTHONPATH=paths, WORDPIECE_BERT_API_KEYS="key")
    yield found
    stop(found)


KEY = {"Authorization": "Bearer key"}
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1/embeddings", KEY | JSON, 413),
        ("/v2/embed", KEY | JSON, 413),
        ("/embed", KEY | JSON, 413),
        ("/classify", KEY | JSON, 413),
        ("/embed", JSON, 401),
        ("/none", KEY | JSON, 404),
        ("/info", KEY | JSON, 405),
        ("/embed", KEY, 415),
    ],
)
def test_a_refusal_arrives_while_the_client_sends_a_large_body(
    server: Server, path: str, headers: dict[str, str], status: int
) -> None:
    # Within the limit, where something else is wrong; but more than the buffers of both ends take.
    body = b" " * (20 * MB if status == 413 else 8 * MB)
    found_status, answered, found = server.request("POST", path, body, headers)
    assert (found_status, answered["connection"]) == (status, "close")
    assert complaint_of(found)


def test_a_refusal_of_a_body_in_chunks_arrives(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request("POST", "/embed", iter([b" " * MB] * 20), KEY | JSON, encode_chunked=True)
        assert connection.getresponse().status == 413
    finally:
        connection.close()


def test_a_refusal_of_headers_that_are_too_large_arrives(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request("POST", "/embed", b" " * 8 * MB, KEY | JSON | {"X-Long": "a" * MB})
        assert connection.getresponse().status in (400, 431)  # h11 says 400
    finally:
        connection.close()
