"""The command `vector_folder`: a folder of vectors written, updated, searched, and handed over to other programs.

The vectors are random, of length 1, and made by a stand-in for an encoder, whose time is left out: what is measured is
the folder. Each step runs in a process of its own, and reports its time by the clock, the CPU time of all its threads,
and the most memory that it had; mapped files count as far as they are in memory. Programs that are not installed are
skipped.
"""

from __future__ import annotations

import argparse
import importlib
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

import wordpiece_bert as wb
from benchmarks.turns import least
from wordpiece_bert.sentence import open_vectors
from wordpiece_bert.tokenizer.corpus.vector_fingerprint import Fingerprint
from wordpiece_bert.vectors.documents import Documents
from wordpiece_bert.vectors.folder_update import Encoded, write_folder
from wordpiece_bert.vectors.layout import DENSE, PRECISIONS, Layout

TOP_K = 10
ROUNDS = 5
#: What is measured, each in a process of its own.
STEPS = ("write", "update", "nothing", "search", "duckdb", "faiss", "lancedb", "usearch", "qdrant")


def main(arguments: list[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="benchmarks vector_folder", description=__doc__)
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--folder", type=Path, help="where to write, some 5 kB for a vector; by default a temporary one"
    )
    parser.add_argument("--only", nargs="+", choices=STEPS, default=STEPS, help="steps; all begin with write")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.step:
        wb.set_num_threads(options.threads)
        globals()[f"_{options.step}"](options)
        return 0
    print(f"{options.vectors:,} vectors of {options.width}, {options.threads} thread(s)\n")
    print("| | seconds | CPU seconds | memory, MB |\n|---|--:|--:|--:|", flush=True)
    with tempfile.TemporaryDirectory() as parent:
        home = options.folder or Path(parent)
        home.mkdir(exist_ok=True)
        table = {
            "id": np.arange(options.vectors),
            "body": [f"text {i}" for i in range(options.vectors)],
            "title": [f"title {i}" for i in range(options.vectors)],
        }
        pyarrow.parquet.write_table(pyarrow.table(table), home / "docs.parquet")
        for step in options.only:
            own = ["--vectors", str(options.vectors), "--width", str(options.width), "--threads", str(options.threads)]
            command = [sys.executable, "-m", "benchmarks", "vector_folder", *own, "--folder", str(home), "--step", step]
            subprocess.run(command, check=True)
    return 0


@contextmanager
def _measured(label: str, *, without: list[float] | None = None) -> Iterator[None]:
    """Time a block, and print a row of the table; `without` are seconds of the clock and the CPU that do not count."""
    start, cpu = time.perf_counter(), time.process_time()
    yield
    seconds, used = time.perf_counter() - start, time.process_time() - cpu
    if without is not None:
        seconds, used = seconds - without[0], used - without[1]
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| {label} | {seconds:,.3f} | {used:,.3f} | {most:,.0f} |", flush=True)


def layout(width: int, precisions: tuple[str, ...] = tuple(PRECISIONS)) -> Layout:
    """Return the layout of a folder of vectors that no model made."""
    fingerprint = Fingerprint(
        model={}, dtype="float32", calibration=None, prompt="", max_seq_length=0, normalized=True, dimension=width,
        texts=None, count=None,
    )  # fmt: skip
    return Layout(
        kind=DENSE, model="none", similarity="cosine", dimension=width, id_column="id", text_column="body",
        keep=("title",), precisions=precisions, chunks=None, settings={}, fingerprint=fingerprint,
    )  # fmt: skip


def _write_documents(
    options: argparse.Namespace, documents: Any, label: str, *, update: bool, compact: bool = False
) -> None:
    encoding = [0.0, 0.0]
    rng = np.random.default_rng(1)

    def embed(texts: list[str]) -> Encoded:
        start, cpu = time.perf_counter(), time.process_time()
        vectors = rng.standard_normal((len(texts), options.width), dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        encoding[0] += time.perf_counter() - start
        encoding[1] += time.process_time() - cpu
        return Encoded(vectors, np.zeros(len(texts), np.bool_))

    with _measured(label, without=encoding):
        write_folder(
            options.folder / "docs.vectors", Documents(documents, "body", "id", ["title"]), layout(options.width),
            embed, update=update, prune=False, compact=compact, planned=lambda plan: None, done=lambda count, cut: None,
        )  # fmt: skip


def _write(options: argparse.Namespace) -> None:
    _write_documents(options, options.folder / "docs.parquet", "write: float32, int8 and bits", update=False)
    size = sum(path.stat().st_size for path in (options.folder / "docs.vectors").iterdir())
    print(f"| bytes on the disk: {size:,} | | | |", flush=True)


def _update(options: argparse.Namespace) -> None:
    table = pyarrow.parquet.read_table(options.folder / "docs.parquet")
    texts = table.column("body").to_pylist()
    texts[len(texts) // 2] = "another text"
    pyarrow.parquet.write_table(table.set_column(1, "body", pyarrow.array(texts)), options.folder / "docs.parquet")
    del table, texts
    _write_documents(options, options.folder / "docs.parquet", "update one row", update=True)


def _nothing(options: argparse.Namespace) -> None:
    _write_documents(options, options.folder / "docs.parquet", "update without a change", update=True)


def _queries(options: argparse.Namespace, count: int) -> Any:
    queries = np.random.default_rng(2).standard_normal((count, options.width), dtype=np.float32)
    return queries / np.linalg.norm(queries, axis=1, keepdims=True)


def _search(options: argparse.Namespace) -> None:
    with _measured("open"):
        folder = open_vectors(options.folder / "docs.vectors", threads=options.threads)
    for precision in folder.precisions:
        for count in (1, 64):
            search = partial(folder.search_vectors, _queries(options, count), TOP_K, precision=precision)
            label = f"search, {precision}, {count} quer{'y' if count == 1 else 'ies'}"
            seconds, used = least({label: search}, ROUNDS + 1)[label]
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"| {label} | {seconds:,.3f} | {used:,.3f} | {most:,.0f} |", flush=True)


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"| {name}: not installed | | | |", flush=True)
        return None


def _duckdb(options: argparse.Namespace) -> None:
    duckdb = _package("duckdb")
    if duckdb is None:
        return
    label = "update: the files without the row that was replaced"
    _write_documents(options, options.folder / "docs.parquet", label, update=True, compact=True)
    folder = open_vectors(options.folder / "docs.vectors")
    query = _queries(options, 1)[0].tolist()
    with _measured("DuckDB: a filter on the titles, and the nearest by inner product, from the files"):
        near = f"list_dot_product(vector, {query}::FLOAT[])"
        rows = duckdb.read_parquet(folder.files).filter("title LIKE '%7'").order(f"{near} DESC").limit(TOP_K)
        rows.project("id, title").fetchall()


def _faiss(options: argparse.Namespace) -> None:
    faiss = _package("faiss")
    if faiss is None:
        return
    faiss.omp_set_num_threads(options.threads)
    folder = open_vectors(options.folder / "docs.vectors")
    index = faiss.IndexFlatIP(options.width)
    with _measured("FAISS: IndexFlatIP made"):
        for block in folder.blocks():
            index.add(block)
    with _measured("FAISS: IndexFlatIP, a query"):
        index.search(_queries(options, 1), TOP_K)


def _usearch(options: argparse.Namespace) -> None:
    usearch = _package("usearch.index")
    if usearch is None:
        return
    folder = open_vectors(options.folder / "docs.vectors")
    index = usearch.Index(ndim=options.width, metric="ip", dtype="f16")
    with _measured("usearch: a graph made, half precision"):
        row = 0
        for block in folder.blocks():
            index.add(np.arange(row, row + len(block)), block, threads=options.threads)
            row += len(block)
    with _measured("usearch: a query"):
        index.search(_queries(options, 1)[0], TOP_K)


def _lancedb(options: argparse.Namespace) -> None:
    lancedb = _package("lancedb")
    if lancedb is None:
        return
    folder = open_vectors(options.folder / "docs.vectors")
    with tempfile.TemporaryDirectory(dir=options.folder) as parent:
        with _measured("LanceDB: create_table"):
            table = lancedb.connect(parent).create_table("docs", folder.batches(["id", "title", "vector"]))
        with _measured("LanceDB: a query without an index"):
            table.search(_queries(options, 1)[0]).distance_type("dot").limit(TOP_K).to_list()


def _qdrant(options: argparse.Namespace) -> None:
    """In the memory of the client, which Qdrant means for tests: for fewer vectors."""
    qdrant = _package("qdrant_client")
    if qdrant is None or options.vectors > 20_000:
        return
    folder = open_vectors(options.folder / "docs.vectors")
    client = qdrant.QdrantClient(":memory:")
    size = qdrant.models.VectorParams(size=options.width, distance=qdrant.models.Distance.DOT)
    client.create_collection("docs", vectors_config=size)
    with _measured("Qdrant's client in memory: upload_collection"):
        fields = (row for batch in folder.batches(["id", "title"]) for row in batch.to_pylist())
        client.upload_collection("docs", folder.vectors(), payload=fields)
    with _measured("Qdrant's client in memory: a query"):
        client.query_points("docs", query=_queries(options, 1)[0].tolist(), limit=TOP_K)
