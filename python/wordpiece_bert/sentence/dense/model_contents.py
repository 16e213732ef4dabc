"""Digests of what a sentence encoder consists of: weights, configuration, modules and tokenizer.

They are digests of the files that it was loaded from, wherever these are. For an encoder made in memory, or loaded from
files that have changed since, they are digests of the files that `save_pretrained` would write.
"""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from wordpiece_bert import _core
from wordpiece_bert._internal.parts import core_of, write_files
from wordpiece_bert._internal.safe_json import read_json
from wordpiece_bert._tokenizer.word_splitter import word_core
from wordpiece_bert.errors import ConfigError
from wordpiece_bert.sentence.folders.content_files import (
    FileState,
    config_files,
    content_states,
    module_folders,
    weight_files,
)
from wordpiece_bert.sentence.parts import source_of
from wordpiece_bert.subword import SubwordTokenizer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wordpiece_bert.sentence.dense.base import DenseEncoder
    from wordpiece_bert.subword import AnyTokenizer

__all__ = ["file_digest", "model_digests"]

# Fields of a config.json that change no vector: where it came from, and what wrote it.
_WITHOUT_EFFECT = ("_name_or_path", "architectures", "dtype", "torch_dtype", "transformers_version")

# Files are hashed in blocks of this size.
_BLOCK = 1 << 23


class _Module(NamedTuple):
    """A module of a model: its kind, its configuration, and the digests of its weight files."""

    kind: str
    configuration: Any
    weights: list[str]


def model_digests(encoder: DenseEncoder) -> dict[str, str]:
    """Return the digests of the contents of an encoder by part: weights, configuration, modules and tokenizer."""
    source = source_of(encoder)
    if source is not None and source.files and content_states(Path(source.folder)) == source.files:
        modules = _modules_of_folder(Path(source.folder))
    else:
        modules = _modules_in_memory(encoder)
    first, *rest = modules
    return {
        "weights": _digest(first.weights),
        "configuration": _digest(first.configuration),
        "modules": _digest(rest),
        "tokenizer": _tokenizer_digest(encoder.tokenizer),
    }


def _modules_of_folder(folder: Path) -> list[_Module]:
    return [
        _Module(
            kind,
            [_effective(read_json(file, ConfigError)) for file in config_files(home)],
            [file_digest(FileState.of(file)) for file in weight_files(home)],
        )
        for kind, home in module_folders(folder)
    ]


def _modules_in_memory(encoder: DenseEncoder) -> list[_Module]:
    files = _Digests()
    write_files(encoder, files)  # type: ignore[arg-type]
    listing = files.texts.get("modules.json")
    entries = [{"type": "Transformer", "path": ""}] if listing is None else json.loads(listing)
    modules = []
    for entry in entries:
        home = PurePosixPath(entry["path"])
        config = files.texts.get(str(home / "config.json"))
        weights = files.digests.get(str(home / "model.safetensors"))
        modules.append(
            _Module(
                entry["type"].rpartition(".")[2],
                [] if config is None else [_effective(json.loads(config))],
                [] if weights is None else [weights],
            )
        )
    return modules


def _effective(config: Any) -> Any:
    """Return a configuration without the fields that change no vector."""
    if not isinstance(config, dict):
        return config
    return {key: value for key, value in config.items() if key not in _WITHOUT_EFFECT}


def _digest(value: object) -> str:
    """Return the digest of a value of JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


@lru_cache(maxsize=256)
def file_digest(state: FileState) -> str:
    """Return the digest of the bytes of a file, which is computed once for each of its states."""

    def of_block(start: int) -> bytes:
        with Path(state.path).open("rb", buffering=0) as file:
            file.seek(start)
            return hashlib.sha256(file.read(_BLOCK)).digest()

    starts = range(0, state.size, _BLOCK)
    with ThreadPoolExecutor(max(1, min(len(starts), _core.num_threads(None)))) as pool:
        return _joined(pool.map(of_block, starts))


def _bytes_digest(chunks: Iterable[bytes | memoryview]) -> str:
    """Return the digest that a file of these bytes would have."""
    digests, block, size = [], hashlib.sha256(), 0
    for chunk in chunks:
        rest = memoryview(chunk).cast("B")
        while len(rest):
            part, rest = rest[: _BLOCK - size], rest[_BLOCK - size :]
            block.update(part)
            size += len(part)
            if size == _BLOCK:
                digests.append(block.digest())
                block, size = hashlib.sha256(), 0
    return _joined([*digests, *([block.digest()] if size else [])])


def _joined(digests: Iterable[bytes]) -> str:
    """Return the digest of a file from its blocks' digests, which threads can compute at once."""
    return hashlib.sha256(b"".join(digests)).hexdigest()


def _tokenizer_digest(tokenizer: AnyTokenizer) -> str:
    """Return the fingerprint of a tokenizer; of one that has none, the digest of its files.

    A function that finds the words of texts cannot be compared, and is left out.
    """
    if isinstance(tokenizer, SubwordTokenizer):
        more: object = tokenizer.lowercase
    elif (words := word_core(core_of(tokenizer))) is not None:
        more = words.pipeline
    else:
        return tokenizer.fingerprint
    files = _Digests()
    write_files(tokenizer, files)  # type: ignore[arg-type]
    return _digest([more, files.texts])


class _Digests:
    """Takes files as an `AtomicFolder` does; keeps texts, and the digests of other files."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.digests: dict[str, str] = {}

    def write(self, name: str, chunks: Iterable[bytes | memoryview]) -> None:
        self.digests[name] = _bytes_digest(chunks)

    def write_text(self, name: str, text: str) -> None:
        self.texts[name] = text

    def discard(self, name: str) -> None:
        """Do nothing: no file is there."""
