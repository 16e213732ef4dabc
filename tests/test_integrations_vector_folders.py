"""Folders of vectors in FAISS, usearch, LanceDB and Qdrant: each takes one in one call, and finds what the folder finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vector_folders import WIDTH, vector_of, write
from wordpiece_bert.sentence import VectorFolder, open_vectors
from wordpiece_bert.vectors import part_collector as collecting
from wordpiece_bert.vectors import part_files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VectorFolder:
    """A folder of several parts and row groups."""
    monkeypatch.setattr(collecting, "PART_ROWS", 100)
    monkeypatch.setattr(collecting, "GROUP_ROWS", 30)
    monkeypatch.setattr(part_files, "GROUP_ROWS", 30)
    write(tmp_path / "v", {f"d{i}": (f"text {i}", i % 7) for i in range(300)}, update=False)
    return open_vectors(tmp_path / "v")


@pytest.fixture
def query() -> Any:
    return vector_of("a query")


def nearest(folder: VectorFolder, query: Any, count: int = 5) -> list[str]:
    return [hit["id"] for hit in folder.search_vectors(query, count)[0]]


def test_faiss(folder: VectorFolder, query: Any) -> None:
    faiss = pytest.importorskip("faiss")
    index = faiss.IndexFlatIP(folder.dimension)
    for block in folder.blocks():
        index.add(block)
    ids = folder.ids()
    assert [ids[row] for row in index.search(query[None], 5)[1][0]] == nearest(folder, query)


def test_usearch(folder: VectorFolder, query: Any) -> None:
    index = pytest.importorskip("usearch.index").Index(ndim=folder.dimension, metric="ip", dtype="f32")
    index.add(np.arange(len(folder)), folder.vectors())
    ids = folder.ids()
    assert [ids[row] for row in index.search(query, 5, exact=True).keys.tolist()] == nearest(folder, query)


def test_lancedb(folder: VectorFolder, query: Any, tmp_path: Path) -> None:
    lancedb = pytest.importorskip("lancedb")
    table = lancedb.connect(tmp_path / "lance").create_table("docs", folder.batches())
    assert table.count_rows() == 300
    found = table.search(query, vector_column_name="vector").distance_type("dot").limit(5).to_list()
    assert [row["key"] for row in found] == nearest(folder, query)
    assert found[0]["year"] == folder.search_vectors(query, 1)[0][0]["year"]


def test_qdrant(folder: VectorFolder, query: Any) -> None:
    qdrant = pytest.importorskip("qdrant_client")
    client = qdrant.QdrantClient(":memory:")
    size = qdrant.models.VectorParams(size=WIDTH, distance=qdrant.models.Distance.DOT)
    client.create_collection("docs", vectors_config=size)
    fields = (row for batch in folder.batches(["key", "year"]) for row in batch.to_pylist())
    client.upload_collection("docs", folder.vectors(), payload=fields)
    found = client.query_points("docs", query=query.tolist(), limit=5).points
    assert [point.payload["key"] for point in found] == nearest(folder, query)
