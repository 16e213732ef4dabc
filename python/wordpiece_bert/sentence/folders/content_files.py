"""The files of a model's folder that decide about its vectors, except the tokenizer's."""

from __future__ import annotations

import os
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wordpiece_bert._internal.safe_json import inside, read_json, read_object
from wordpiece_bert.bert.checkpoint import find_weights
from wordpiece_bert.bert.config import find_config
from wordpiece_bert.errors import ConfigError, WordPieceError
from wordpiece_bert.sentence.folders.reading import (
    ROUTERS,
    TRANSFORMER_CONFIGS,
    list_modules,
    router_file,
    setting,
    token_weights_file,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: The suffixes of a model's settings, and of its tokenizer's files.
SETTINGS = (".json", ".txt", ".model", ".metadata")
#: The suffixes of all files of a model.
CONTENTS = (*SETTINGS, ".safetensors", ".bin", ".pt", ".h5", ".index", ".msgpack", ".ckpt")

# Settings beside the configuration: of the model, of a Transformer, of a router, and of ColBERT's own code.
_SETTINGS_FILES = (
    *("config_sentence_transformers.json", *TRANSFORMER_CONFIGS),
    *("router_config.json", "artifact.metadata"),
)

# The files of a tokenizer.
_TOKENIZER_FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "sentencepiece.bpe.model", "spm.model", "spiece.model"),
)

_LARGEST_INDEX = 10_000_000


class FileState(NamedTuple):
    """A file, and what changes when it is written again.

    Programs that copy files may set the time at which a file was modified, but not the time when its status changed.
    """

    path: str
    size: int
    modified: int
    changed: int
    inode: int

    @classmethod
    def of(cls, file: Path) -> FileState:
        """Return the state of a file."""
        status = file.stat()
        return cls(str(file), status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def content_states(folder: Path) -> tuple[FileState, ...]:
    """Return the states of the files whose contents decide about the vectors of a model; none if one cannot be read."""
    return _states(lambda: _content_files(folder, module_folders(folder)))


def loaded_states(folder: Path, heads: Iterable[str] = ()) -> tuple[FileState, ...]:
    """Return the states of all files that loading reads, of which `folder_contents` has digests.

    They are the files of `content_states`, settings, the tokenizer's files, and `heads`; none if one cannot be read.
    """

    def files() -> list[Path]:
        modules = module_folders(folder)
        homes = module_homes(folder, modules)
        settings = [file for home in homes for file in settings_files(home)]
        return [*_content_files(folder, modules), *settings, *tokenizer_files(homes), *files_of(homes, heads)]

    return _states(files)


def _states(files: Callable[[], Iterable[Path]]) -> tuple[FileState, ...]:
    try:
        return tuple(map(FileState.of, files()))
    except (OSError, WordPieceError):
        return ()


def _content_files(folder: Path, modules: Iterable[tuple[str, Path]]) -> list[Path]:
    listing = folder / "modules.json"
    files = [file for kind, home in modules for file in (*config_files(home), *weight_files(kind, home))]
    return [*([listing] if listing.is_file() else []), *files]


def folder_states(folder: Path) -> tuple[FileState, ...]:
    """Return the states of all files of a model, of its tokenizer, and of its modules.

    Modules are one folder below, and the modules of a router up to two.
    """
    folders = [folder, *(below := _folders_in(folder)), *(path for home in below for path in _folders_in(home))]
    files = (path for home in folders for path in sorted(home.iterdir()) if path.suffix in CONTENTS)
    return tuple(FileState.of(path) for path in files if path.is_file())


def _folders_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir())


def module_folders(folder: Path) -> list[tuple[str, Path]]:
    """Return the kinds and folders of the modules of a model, and of a router after it."""
    listing = folder / "modules.json"
    modules = list_modules(listing, None) if listing.is_file() else [("Transformer", folder)]
    return [found for kind, home in modules for found in [(kind, home), *(_routed(home) if kind in ROUTERS else [])]]


def module_homes(folder: Path, modules: Iterable[tuple[str, Path]]) -> list[Path]:
    """Return the folder of a model and the folders of its modules, each once."""
    return list(dict.fromkeys([folder, *(home for _, home in modules)]))


def files_of(homes: Iterable[Path], names: Iterable[str]) -> list[Path]:
    """Return the files of these names that some folders have."""
    names = tuple(names)
    # os.path takes a third of the time of pathlib, and every model that is loaded comes here.
    return [Path(file) for home in homes for name in names if os.path.isfile(file := os.path.join(home, name))]


def tokenizer_files(homes: Iterable[Path]) -> list[Path]:
    """Return the tokenizer's files in some folders."""
    return files_of(homes, _TOKENIZER_FILES)


def _routed(router: Path) -> list[tuple[str, Path]]:
    file = router_file(router)
    types = setting(read_object(file, ConfigError), "types", dict, file) or {}
    return [
        (str(kind).rpartition(".")[2], inside(router, member, str(file), ConfigError)) for member, kind in types.items()
    ]


def settings_files(folder: Path) -> list[Path]:
    """Return the settings of a model or a module beside its configuration."""
    return files_of([folder], _SETTINGS_FILES)


def config_files(folder: Path) -> list[Path]:
    """Return the configuration of a module; none if it has none."""
    try:
        return [find_config(folder)]
    except WordPieceError:
        return []


def weight_files(kind: str, folder: Path) -> list[Path]:
    """Return the weight files of a module; none if it has none."""
    if kind == "SparseStaticEmbedding" and (named := token_weights_file(folder)) is not None:
        return [named]
    try:
        file = find_weights(folder)
    except WordPieceError:
        return []
    if file.suffix == ".json":
        names = read_json(file, ConfigError, max_bytes=_LARGEST_INDEX)["weight_map"].values()
        return [folder / name for name in sorted(set(names))]
    if file.suffix == ".index":
        return [file, *sorted(folder.glob(f"{escape(file.stem)}.data-*"))]
    return [file]
