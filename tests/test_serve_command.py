"""The command `serve`: options of single models, Unix sockets, files of keys, and its end."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tiny_models
from server_process import start, stop
from wordpiece_bert import SentenceEncoder
from wordpiece_bert.cli import main

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install '.[serve]'")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.make_all(tmp_path_factory.mktemp("models"))


class UnixConnection(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(str(self.path))


def test_models_have_options_of_their_own(folders: Path) -> None:
    folder = folders / "sentences"
    server = start(
        folder,
        f"short={folder},max_tokens=4,prompt=bread ",
        f"half={folder},dtype=bfloat16,backend=rust",
        f"fill={folders / 'words'}",
        f"vectors={folders / 'words'},kind=embedding",
        "--verbose",
    )
    try:
        listed = {one["id"]: one for one in server.get("/v1/models")[2]["data"]}
        assert [one["kind"] for one in listed.values()] == [*["embedding"] * 3, "fill-mask", "embedding"]
        assert {name: one["dtype"] for name, one in listed.items()}["half"] == "bfloat16"
        assert (listed["short"]["max_request_tokens"], listed["sentences"]["max_request_tokens"]) == (4, 131_072)
        found = server.post("/embed", {"inputs": "oven", "model": "short"})[2]
        expected = SentenceEncoder(folder).encode(["oven"], prompt="bread ")
        np.testing.assert_array_equal(np.array(found, np.float32), expected)
        assert server.post("/embed", {"inputs": ["oven", "a"], "model": "short"})[0] == 400
        assert server.post("/embed", {"inputs": ["oven", "a"]})[0] == 200
    finally:
        stop(server)


def test_a_model_of_several_names_is_loaded_once(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wordpiece_bert import serve
    from wordpiece_bert.serve import loading

    loaded: list[str] = []
    load, given = loading.load_model, {}

    def counting(name: str, **options: Any) -> Any:
        loaded.append(name)
        return load(name, **options)

    def run(models: Any, *_: Any, **__: Any) -> None:
        given.update(models)

    monkeypatch.setattr(loading, "load_model", counting)
    monkeypatch.setattr(serve, "run", run, raising=False)
    folder = str(folders / "sentences")
    assert main(["serve", f"a={folder}", f"b={folder},max_tokens=9", f"c={folder},dtype=bfloat16", "-q"]) == 0
    assert loaded == [folder, folder]
    assert given["a"] is given["b"]
    assert given["a"] is not given["c"]


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ("dtypes=int8", "'dtypes=int8' is no OPTION=VALUE; the options of a model are kind, dtype"),
        ("dtype", "'dtype' is no OPTION=VALUE"),
        ("max_tokens=0", "'0' is not a whole number above 0"),
        ("kind=encoder", "kind must be one of"),
        ("truncation=never", "truncation must be one of"),
    ],
)
def test_wrong_options_of_models(
    folders: Path, option: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", f"a={folders / 'sentences'},{option}"]) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no Unix sockets")
def test_a_unix_socket(folders: Path, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as left:  # by a server that was killed
        left.bind(str(path))
    server = start(folders / "sentences", "--uds", path)
    connection = UnixConnection(path)
    try:
        connection.request("POST", "/embed", json.dumps({"inputs": "bread"}), {"Content-Type": "application/json"})
        found = json.loads(connection.getresponse().read())
        expected = SentenceEncoder(folders / "sentences").encode(["bread"])
        np.testing.assert_array_equal(np.array(found, np.float32), expected)
        assert main(["serve", str(folders / "sentences"), "--uds", str(path)]) == 2  # it is taken
        assert path.exists()
    finally:
        connection.close()
        stop(server)
    assert not path.exists()


def test_several_files_of_keys(folders: Path, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("first\n")
    (tmp_path / "two").write_text("second third\n")
    files = ["--api-key-file", tmp_path / "one", "--api-key-file", tmp_path / "two", "--open-metrics"]
    server = start(folders / "sentences", *files)
    try:
        for key in ("first", "second", "third"):
            assert server.get("/info", **{"api-key": key})[0] == 200
            assert server.get("/info", Authorization=f"Bearer {key}")[0] == 200
        assert [server.get(path)[0] for path in ("/info", "/metrics", "/ready", "/none")] == [401, 200, 200, 401]
        assert server.get("/info", **{"api-key": "first second"})[0] == 401
    finally:
        stop(server)


def test_the_help_names_the_options_of_models_and_how_keys_are_split(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for part in ("NAME=MODEL,OPTION=VALUE", "split at commas", "--uds", "--accept-token-ids", "--open-metrics"):
        assert part in text


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")
def test_a_kept_connection_is_told_to_go_elsewhere_while_the_server_ends(folders: Path) -> None:
    server = start(folders / "sentences", "--backend", "numpy", "--max-tokens", 500_000, "--drain-timeout", 120)
    long = json.dumps({"inputs": ["the bread and the oven " * 12] * 1000})
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    kept = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    headers = {"Content-Type": "application/json"}
    try:
        connection.request("POST", "/embed", long, headers)
        kept.putrequest("POST", "/embed")
        for name, value in {**headers, "Content-Length": "19"}.items():
            kept.putheader(name, value)
        kept.endheaders(b'{"inputs": ')
        while 'queue_requests{model="sentences"} 1' not in server.get("/metrics")[2]:
            pass
        server.process.send_signal(signal.SIGTERM)
        assert len(json.loads(connection.getresponse().read())) == 1000
        kept.send(b'"bread"}')
        assert kept.getresponse().status == 200  # it had begun
    finally:
        connection.close()
        kept.close()
        stop(server)
