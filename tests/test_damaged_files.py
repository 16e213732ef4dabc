"""Files that were damaged: reading them, and using what was read, raises nothing but the package's errors.

`WORDPIECE_DAMAGED_FILES` sets how many damaged copies of each kind are read (40).
"""

from __future__ import annotations

import json
import os
import random
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny_models
from model_files import MODELS
from wordpiece_bert import SentenceEncoder
from wordpiece_bert.bert import AutoModel
from wordpiece_bert.errors import InternalError, WordPieceError
from wordpiece_bert.finetune import FrozenClassifier
from wordpiece_bert.sentence import MultiVectors, SparseVectors, maxsim
from wordpiece_bert.sentence.sparse.sparse_vectors import sparse_similarity

COPIES = int(os.environ.get("WORDPIECE_DAMAGED_FILES", "40"))

# What a value of a JSON file is replaced by.
VALUES = (
    *(None, True, False, 0, -1, 1, 7, 2**31, 2**63, 2**64, -(2**63), 10**30, 0.5, 1e308, float("inf"), float("nan")),
    *("", "x", "../x", "\0", "é" * 300, [], {}, [[]], [0], {"a": 0}, [None], [-1, 2**63], {"type": "x"}),
)
# What a piece of a binary file is replaced by: numbers that lengths, offsets and shapes go wrong with.
PIECES = (
    *(b"", b"\0", b"\xff" * 8, b"\0" * 8, (2**31).to_bytes(8, "little"), (2**62).to_bytes(8, "little"), b"\xff" * 4),
    *(b"(", b"{", b"'", b"9" * 19, b"-1", b"<f8", b"|O", b"<i8", b"True", b"1" * 5000, b"\xc3", b"\n", b"[" * 3000),
)


def paths_of(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where the values of a JSON document are, the document itself included."""
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    return [path, *(found for key, item in items for found in paths_of(item, (*path, key)))]


def with_value_changed(text: bytes, chance: random.Random) -> bytes:
    """Replace, remove or repeat one value of a JSON document."""
    document = json.loads(text)
    path = chance.choice(paths_of(document))
    if not path:
        return json.dumps(chance.choice(VALUES)).encode()
    parent = document
    for key in path[:-1]:
        parent = parent[key]
    if chance.random() < 0.2:
        del parent[path[-1]]
    else:
        parent[path[-1]] = chance.choice(VALUES)
    return json.dumps(document).encode()


def with_bytes_changed(data: bytes, chance: random.Random) -> bytes:
    """Cut a file, change some bytes, or replace a piece; more often near its beginning, where the headers are."""
    # The position of a zip's directory is at the end.
    at = min(int(chance.expovariate(1 / 100)), len(data)) if chance.random() < 0.7 else chance.randint(0, len(data))
    at = len(data) - at if chance.random() < 0.25 else at
    way = chance.randrange(4)
    if way == 0:
        return data[:at]
    if way == 1:
        changed = bytearray(data)
        for _ in range(chance.choice((1, 1, 2, 8))):
            if changed:
                changed[min(at + chance.randrange(16), len(changed) - 1)] = chance.randrange(256)
        return bytes(changed)
    if way == 2:
        return data[:at] + chance.choice(PIECES) + data[at + chance.choice((0, 1, 4, 8, 100)) :]
    other = chance.randint(0, len(data))
    return data[:at] + data[other : other + chance.choice((1, 8, 64))] + data[at:]


def damaged(file: Path, data: bytes, chance: random.Random) -> bytes:
    """Damage the content of a file once or twice."""
    for _ in range(chance.choice((1, 1, 1, 2))):
        is_json = file.suffix == ".json" and chance.random() < 0.7
        try:
            data = with_value_changed(data, chance) if is_json else with_bytes_changed(data, chance)
        except ValueError:  # it was JSON before it was damaged
            data = with_bytes_changed(data, chance)
    return data


def read_damaged(
    folder: Path, use: Callable[[], object], files: list[Path] | None = None, *, refuses: bool = True
) -> None:
    """Damage one file of a folder at a time and call `use`, which reads them all."""
    use()
    files = sorted(file for file in folder.rglob("*") if file.is_file()) if files is None else files
    whole = {file: file.read_bytes() for file in files}
    refused = 0
    for seed in range(COPIES):
        chance = random.Random(f"{folder.name} {seed}")
        file = chance.choice(files)
        file.write_bytes(damaged(file, whole[file], chance))
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                use()
        except InternalError as error:
            pytest.fail(f"{file.name}, damaged with seed {seed}: {error!r}")
        except WordPieceError:
            refused += 1
        except BaseException as error:
            message = f"{file.name}, damaged with seed {seed}: {type(error).__name__}: {error}"
            raise AssertionError(message) from error
        file.write_bytes(whole[file])
    assert (refused > COPIES // 10) == refuses, "otherwise hardly anything is damaged"


def test_token_vectors(tmp_path: Path) -> None:
    folder = tmp_path / "token vectors"
    rows = np.random.default_rng(1).normal(size=(9, 4)).astype(np.float32)
    MultiVectors(rows, np.array([0, 2, 2, 9])).save(folder)

    def use() -> None:
        for mmap in (True, False):
            found = MultiVectors.load(folder, mmap=mmap)
            maxsim(found, found)
            del found

    read_damaged(folder, use)


@pytest.mark.parametrize("compressed", [False, True])
def test_sparse_vectors(tmp_path: Path, compressed: bool) -> None:
    dense = np.random.default_rng(2).random((5, 30)) * (np.arange(150).reshape(5, 30) % 7 == 0)
    file = tmp_path / "vectors.npz"
    vectors = SparseVectors.from_dense(dense)
    vectors.save(file)
    if compressed:
        with np.load(file) as arrays:
            np.savez_compressed(file, **dict(arrays))

    def use() -> None:
        found = SparseVectors.load(file)
        sparse_similarity(found, found)

    read_damaged(tmp_path, use)


def test_int8_models(tmp_path: Path) -> None:
    folder = tmp_path / "int8"
    model: Any = AutoModel.from_pretrained(MODELS / "bert_model", dtype="int8")
    model.save_pretrained(folder)

    def use() -> None:
        AutoModel.from_pretrained(folder, dtype="int8")(np.array([[1, 2, 3]]))

    read_damaged(folder, use)


def test_int8_sentence_encoders(tmp_path: Path) -> None:
    folder = tmp_path / "int8 sentences"
    SentenceEncoder(MODELS / "sentence_plain_folder", dtype="int8").save_pretrained(folder)
    read_damaged(folder, lambda: SentenceEncoder(folder, dtype="int8").encode(["a text", ""]))


def test_frozen_classifiers(tmp_path: Path) -> None:
    encoder = SentenceEncoder(tiny_models.make_sentences(tmp_path / "model"))
    folder = tmp_path / "frozen"
    FrozenClassifier(encoder).fit(["good", "bad", "worse", "best"], ["yes", "no", "no", "yes"]).save_pretrained(folder)
    shutil.rmtree(tmp_path / "model")
    own = [folder / "frozen_head.json", *sorted(folder.glob("frozen*")), folder / "config.json"]
    read_damaged(folder, lambda: FrozenClassifier.from_pretrained(folder).predict_proba(["good", "bad"]), own)


def test_vectors_that_frozen_classifiers_keep(tmp_path: Path) -> None:
    encoder = SentenceEncoder(tiny_models.make_sentences(tmp_path / "model"))
    texts = ["good", "bad", "worse", "best"]
    cache = tmp_path / "cache"

    def use() -> None:
        FrozenClassifier(encoder).fit(texts, ["yes", "no", "no", "yes"], cache=cache)

    use()
    read_damaged(cache, use, refuses=False)
