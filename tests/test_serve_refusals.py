"""Refusals that arrive although the client has not sent all of its request, and names of the server that it answers to."""

from __future__ import annotations

import http.client
import os
from typing import TYPE_CHECKING

import pytest

from serve_client import Client
from serve_fixtures import folders
from server_process import Server, complaint_of, start, stop
from wordpiece_bert.errors import InputError
from wordpiece_bert.serve import ServerSettings, create_app
from wordpiece_bert.serve.model_loading import load_model

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


# --- names of the server


LOCAL_NAMES = ("localhost:{port}", "LOCALHOST.", "127.0.0.1:{port}", "[::1]:{port}", "192.0.2.1", "a.localhost:1", "")


def answers_to(server: Server, name: str, path: str = "/health") -> bool:
    status, _, found = server.get(path, Host=name.format(port=server.port))
    assert status in (200, 403), found
    if status == 403:
        assert f"does not answer to the host {name!r}" in complaint_of(found)
    return status == 200


def test_without_a_key_a_server_on_this_machine_answers_to_names_that_no_site_has(folders: Path) -> None:
    open_one = start(folders / "sentences")
    try:
        assert all(answers_to(open_one, name) for name in LOCAL_NAMES)
        for path in ("/health", "/", "/v1/models", "/metrics", "/none"):
            assert not answers_to(open_one, "rebound.example:80", path)
            assert not answers_to(open_one, "localhost.example", path)
    finally:
        stop(open_one)


def test_names_are_checked_if_they_are_given_and_else_not_where_keys_are_needed(folders: Path, server: Server) -> None:
    assert answers_to(server, "bert.example")
    options = ["--allowed-host", "bert.example", "--allowed-host", "*.inside.example"]
    named = start(folders / "sentences", *options, WORDPIECE_BERT_API_KEYS="key")
    try:
        assert all(answers_to(named, name) for name in (*LOCAL_NAMES, "Bert.Example:8000", "a.b.inside.example"))
        assert not any(answers_to(named, name) for name in ("inside.example", "a.bert.example", "bert.example.org"))
    finally:
        stop(named)
    free = start(folders / "sentences", "--allowed-host", "*")
    try:
        assert answers_to(free, "rebound.example")
    finally:
        stop(free)


def test_a_name_is_refused_in_the_form_of_the_path_before_anything_else(folders: Path) -> None:
    found = Client(create_app({"a": load_model(str(folders / "sentences"))}, ServerSettings(allowed_hosts=("a.b",))))
    for path, keys in (
        ("/v1/embeddings", {"error", "detail"}),
        ("/v2/embed", {"message", "detail"}),
        ("/embed", {"error", "error_type"}),
        ("/classify", {"error"}),
    ):
        status, refusal = found.request("POST", path, b"{}", host="c.d")
        assert (status, set(refusal)) == (403, keys)
        assert found.request("POST", path, b"{}", host="a.b")[0] == 400
    found.close()


@pytest.mark.parametrize("name", ["a.b:80", "http://a.b", "", "a b", "*a", "a..b"])
def test_names_with_a_port_are_no_names(name: str) -> None:
    with pytest.raises(InputError, match="allowed_hosts has"):
        ServerSettings(allowed_hosts=(name,))
