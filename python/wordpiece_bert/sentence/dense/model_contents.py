"""Digests of what a sentence encoder consists of: weights, configuration, modules and tokenizer.

They are digests of the files that it was loaded from, wherever these are. For an encoder made in memory, or loaded from
files that have changed since, they are digests of the files that `save_pretrained` would write.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from wordpiece_bert._internal.parts import core_of, write_files
from wordpiece_bert.sentence.folders.content_files import content_states
from wordpiece_bert.sentence.folders.contents import (
    BLOCK,
    Module,
    effective,
    joined,
    json_digest,
    modules_of_folder,
)
from wordpiece_bert.sentence.parts import source_of
from wordpiece_bert.tokenizer.subword import SubwordTokenizer
from wordpiece_bert.tokenizer.tokenizer_base import word_core

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
    from wordpiece_bert.tokenizer.subword import AnyTokenizer


def model_digests(encoder: SentenceEncoder) -> dict[str, str]:
    """Return the digests of the contents of an encoder by part: weights, configuration, modules and tokenizer."""
    source = source_of(encoder)
    states = () if source is None else content_states(Path(source.folder))
    if source is not None and states and set(states) <= set(source.files):
        modules = modules_of_folder(Path(source.folder))
    else:
        modules = _modules_in_memory(encoder)
    first, *rest = modules
    return {
        "weights": json_digest(first.weights),
        "configuration": json_digest(first.configuration),
        "modules": json_digest(rest),
        "tokenizer": _tokenizer_digest(encoder.tokenizer),
    }


def _modules_in_memory(encoder: SentenceEncoder) -> list[Module]:
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
            Module(
                entry["type"].rpartition(".")[2],
                [] if config is None else [effective(json.loads(config))],
                [] if weights is None else [weights],
            )
        )
    return modules


def _bytes_digest(chunks: Iterable[bytes | memoryview]) -> str:
    """Return the digest that a file of these bytes would have."""
    digests, block, size = [], hashlib.sha256(), 0
    for chunk in chunks:
        rest = memoryview(chunk).cast("B")
        while len(rest):
            part, rest = rest[: BLOCK - size], rest[BLOCK - size :]
            block.update(part)
            size += len(part)
            if size == BLOCK:
                digests.append(block.digest())
                block, size = hashlib.sha256(), 0
    return joined([*digests, *([block.digest()] if size else [])])


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
    return json_digest([more, files.texts])


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
