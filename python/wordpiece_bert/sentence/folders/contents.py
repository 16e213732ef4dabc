"""Digests of a model's folder: of the files that decide about its vectors."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wordpiece_bert import _core
from wordpiece_bert._internal.safe_json import read_json
from wordpiece_bert.errors import ConfigError
from wordpiece_bert.sentence.folders.content_files import (
    FileState,
    config_files,
    files_of,
    module_folders,
    module_homes,
    settings_files,
    tokenizer_files,
    weight_files,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

# Fields of a configuration that change no vector: where it came from, and what wrote it.
_WITHOUT_EFFECT = ("__version__", "_name_or_path", "architectures", "dtype", "torch_dtype", "transformers_version")

# Files are hashed in blocks of this size.
BLOCK = 1 << 23


class Module(NamedTuple):
    """A module of a model: its kind, its configuration, and the digests of its weight files."""

    kind: str
    configuration: Any
    weights: list[str]


def folder_contents(folder: Path, heads: Iterable[str] = ()) -> dict[str, str]:
    """Return short digests of a model's folder by part, for a pickle.

    The parts are weights, configuration, modules, settings and tokenizer: together all files that loading reads.

    Parameters
    ----------
    folder : Path
        The folder.
    heads : iterable of str
        The names of further files of weights, if any: another part.
    """
    first, *rest = modules_of_folder(folder)
    homes = module_homes(folder, module_folders(folder))

    def digests(files: Iterable[Path]) -> list[tuple[str, str]]:
        return [(file.relative_to(folder).as_posix(), file_digest(FileState.of(file))) for file in files]

    parts: dict[str, object] = {
        "weights": first.weights,
        "configuration": first.configuration,
        "modules": rest,
        "settings": [
            (file.relative_to(folder).as_posix(), effective(read_json(file, ConfigError)))
            for home in homes
            for file in settings_files(home)
        ],
        "tokenizer": digests(tokenizer_files(homes)),
    }
    if found := digests(files_of(homes, heads)):
        parts["heads"] = found
    return {part: json_digest(value)[:16] for part, value in parts.items()}


def modules_of_folder(folder: Path) -> list[Module]:
    """Return the modules of a model's folder."""
    return [
        Module(
            kind,
            [effective(read_json(file, ConfigError)) for file in config_files(home)],
            [file_digest(FileState.of(file)) for file in weight_files(kind, home)],
        )
        for kind, home in module_folders(folder)
    ]


def effective(config: Any) -> Any:
    """Return a configuration without the fields that change no vector."""
    if not isinstance(config, dict):
        return config
    return {key: value for key, value in config.items() if key not in _WITHOUT_EFFECT}


def json_digest(value: object) -> str:
    """Return the digest of a value of JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


@lru_cache(maxsize=256)
def file_digest(state: FileState) -> str:
    """Return the digest of the bytes of a file, which is computed once for each of its states."""

    def of_block(start: int) -> bytes:
        with Path(state.path).open("rb", buffering=0) as file:
            file.seek(start)
            return hashlib.sha256(file.read(BLOCK)).digest()

    starts = range(0, state.size, BLOCK)
    with ThreadPoolExecutor(max(1, min(len(starts), _core.num_threads(None)))) as pool:
        return joined(pool.map(of_block, starts))


def joined(digests: Iterable[bytes]) -> str:
    """Return the digest of a file from its blocks' digests, which threads can compute at once."""
    return hashlib.sha256(b"".join(digests)).hexdigest()
