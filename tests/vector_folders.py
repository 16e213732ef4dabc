"""Folders of vectors for tests: a quick stand-in for an encoder, and what a folder should have."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from wordpiece_bert.tokenizer.corpus.vector_fingerprint import Fingerprint
from wordpiece_bert.vectors.documents import Documents
from wordpiece_bert.vectors.folder_update import Encoded, UpdatePlan, write_folder
from wordpiece_bert.vectors.layout import DENSE, Layout
from wordpiece_bert.vectors.vector_folder import VectorFolder, open_vectors

pyarrow = pytest.importorskip("pyarrow")
WIDTH = 12

#: Words that the toy models of the examples know.
WORDS = [
    *["a", "the", "cat", "dog", "sat", "on", "mat", "bread", "dough", "oven"],
    *["flour", "water", "repair", "bicycle", "capital", "of", "Poland", "to", "in", "and"],
]

#: A document: its text, and a field.
Rows = dict[str, tuple[str, "int | None"]]


def vector_of(text: str) -> npt.NDArray[np.float32]:
    """A vector of length 1 that depends on the text alone."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
    vector = np.random.default_rng(seed).standard_normal(WIDTH).astype(np.float32)
    return vector / np.linalg.norm(vector)


def encoded(texts: list[str]) -> Encoded:
    """The vectors of texts, none of which was truncated."""
    return Encoded(np.stack([vector_of(text) for text in texts]), np.zeros(len(texts), np.bool_))


def layout(precisions: tuple[str, ...] = ("float32",), **others: Any) -> Layout:
    fingerprint = Fingerprint(
        model={"weights": "those"},
        dtype="float32",
        calibration=None,
        prompt="",
        max_seq_length=256,
        normalized=True,
        dimension=WIDTH,
        texts=None,
        count=None,
    )
    given: dict[str, Any] = {
        "kind": DENSE,
        "model": "that",
        "similarity": "cosine",
        "dimension": WIDTH,
        "id_column": "key",
        "text_column": "body",
        "keep": ("year",),
        "precisions": precisions,
        "chunks": None,
        "settings": {"normalize": False},
        "fingerprint": fingerprint,
    }
    return Layout(**given | others)


def table_of(rows: Rows) -> Any:
    columns = {"key": [*rows], "body": [text for text, _ in rows.values()], "year": [year for _, year in rows.values()]}
    schema = pyarrow.schema([("key", pyarrow.string()), ("body", pyarrow.string()), ("year", pyarrow.int32())])
    return pyarrow.table(columns, schema=schema)


def write(
    folder: Path,
    rows: Rows,
    *,
    update: bool = True,
    prune: bool = False,
    of: Layout | None = None,
    compact: bool = False,
) -> tuple[UpdatePlan, list[str]]:
    """Write documents; return the plan and the texts that were embedded."""
    embedded: list[str] = []
    plans: list[UpdatePlan] = []

    def embed(texts: list[str]) -> Encoded:
        embedded.extend(texts)
        return encoded(texts)

    of = of or layout()
    documents = Documents(table_of(rows), of.text_column, of.id_column, of.keep)
    write_folder(
        folder, documents, of, embed, update=update, prune=prune, compact=compact,
        planned=plans.append, done=lambda count, cut: None,
    )  # fmt: skip
    return plans[0], embedded


def contents(folder: Path | VectorFolder) -> dict[str, tuple[bytes, int | None, bytes]]:
    """What the rows of a folder are by their ids: the hash of the text, the field, and the vector."""
    opened = folder if not hasattr(folder, "iterdir") else open_vectors(folder)
    found: dict[str, tuple[bytes, int | None, bytes]] = {}
    for batch in opened.batches():
        vectors = batch.column("vector").flatten().to_numpy().reshape(-1, WIDTH)
        for row, vector in zip(batch.drop_columns(["vector"]).to_pylist(), vectors, strict=True):
            assert row["key"] not in found
            found[row["key"]] = row["text_sha256"], row["year"], vector.tobytes()
    # The mapped numbers are those that pyarrow reads.
    assert b"".join(block.tobytes() for block in opened.blocks()) == b"".join(one[2] for one in found.values())
    return found


def expected(rows: Rows) -> dict[str, tuple[bytes, int | None, bytes]]:
    """What `contents` should return."""
    return {
        key: (hashlib.sha256(text.encode()).digest(), year, vector_of(text).tobytes())
        for key, (text, year) in rows.items()
    }
