"""The files of a model's folder that decide about its vectors, except the tokenizer's."""

from __future__ import annotations

from glob import escape
from typing import TYPE_CHECKING, NamedTuple

from wordpiece_bert._internal.safe_json import read_json
from wordpiece_bert.bert.checkpoint import find_weights
from wordpiece_bert.bert.config import find_config
from wordpiece_bert.errors import ConfigError, WordPieceError
from wordpiece_bert.sentence.folders.reading import list_modules

if TYPE_CHECKING:
    from pathlib import Path

# The files of a model and its tokenizer, by suffix.
_CONTENTS = (".json", ".safetensors", ".bin", ".pt", ".h5", ".txt", ".model", ".index", ".msgpack", ".ckpt")

_LARGEST_INDEX = 10_000_000


class FileState(NamedTuple):
    """A file, and what changes when it is written again."""

    path: str
    size: int
    modified: int
    inode: int

    @classmethod
    def of(cls, file: Path) -> FileState:
        """Return the state of a file."""
        status = file.stat()
        return cls(str(file), status.st_size, status.st_mtime_ns, status.st_ino)


def content_states(folder: Path) -> tuple[FileState, ...]:
    """Return the states of the files whose contents decide about the vectors of a model; none if one cannot be read."""
    try:
        files = [file for _, home in module_folders(folder) for file in (*config_files(home), *weight_files(home))]
        listing = folder / "modules.json"
        return tuple(FileState.of(file) for file in [*([listing] if listing.is_file() else []), *files])
    except (OSError, WordPieceError):
        return ()


def folder_states(folder: Path) -> tuple[FileState, ...]:
    """Return the states of all files of a model, of its tokenizer and of its modules, which are one folder below."""
    folders = [folder, *sorted(path for path in folder.iterdir() if path.is_dir())]
    files = (path for home in folders for path in sorted(home.iterdir()) if path.suffix in _CONTENTS)
    return tuple(FileState.of(path) for path in files if path.is_file())


def module_folders(folder: Path) -> list[tuple[str, Path]]:
    """Return the kinds and folders of the modules of a model."""
    listing = folder / "modules.json"
    return list_modules(listing, None) if listing.is_file() else [("Transformer", folder)]


def config_files(folder: Path) -> list[Path]:
    """Return the configuration of a module; none if it has none."""
    try:
        return [find_config(folder)]
    except WordPieceError:
        return []


def weight_files(folder: Path) -> list[Path]:
    """Return the weight files of a module; none if it has none."""
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
