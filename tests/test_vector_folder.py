"""Folders of vectors: what `search` finds, what other programs read, chunks, the commands, damage and bad input."""

from __future__ import annotations

import datetime
import hashlib
import json
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from make_models import make_colbert, make_splade, make_static

import vector_folders
from tiny_models import make_ranker, make_sentences
from vector_folders import WORDS
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError, TruncationWarning, VectorsWarning, WordPieceError
from wordpiece_bert.sentence import (
    CrossEncoder,
    MultiVectorEncoder,
    SentenceEncoder,
    SparseEncoder,
    merge_parts,
    open_vectors,
    retrieve_and_rerank,
    similarity,
    write_vectors,
)
from wordpiece_bert.sentence.encoder_loading import load_encoder
from wordpiece_bert.vectors import folder_update as writing
from wordpiece_bert.vectors import part_collector as collecting
from wordpiece_bert.vectors import part_files
from wordpiece_bert.vectors.part_files import MappedPart

duckdb = pytest.importorskip("duckdb")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")
KINDS = ("static", "sentences", "splade", "colbert")
QUERIES = ["how to bake bread", "a city in Poland", "the cat"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name, make in (
        ("static", make_static),
        ("sentences", make_sentences),
        ("splade", make_splade),
        ("colbert", make_colbert),
        ("ranker", make_ranker),
    ):
        make(folder / name)
    return folder


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several parts of several row groups each."""
    monkeypatch.setattr(collecting, "PART_ROWS", 24)
    monkeypatch.setattr(collecting, "GROUP_ROWS", 10)
    monkeypatch.setattr(part_files, "GROUP_ROWS", 10)


def documents(count: int = 57) -> Any:
    random = np.random.default_rng(1)
    texts = [" ".join(random.choice(WORDS, random.integers(0, 9))) for _ in range(count)]
    return pyarrow.table(
        {
            "key": [f"d{i}" for i in range(count)],
            "body": texts,
            "title": [None if i % 4 == 0 else f"title {i}" for i in range(count)],
            "date": [datetime.date(2024, 1, 1) + datetime.timedelta(i) for i in range(count)],
        }
    )


def written(table: Any, folder: Path, model: Path, **options: Any) -> Path:
    options = {"text_column": "body", "id_column": "key", "keep": ["title", "date", "body"]} | options
    write_vectors(table, folder, model, **options)
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_hits_are_those_of_an_exact_search(models: Path, tmp_path: Path, kind: str) -> None:
    table = documents()
    folder = open_vectors(written(table, tmp_path / "v", models / kind))
    assert len(folder.files) > 1
    encoder, texts = load_encoder(models / kind), table.column("body").to_pylist()
    found = folder.search(QUERIES, 7)
    other = retrieve_and_rerank(QUERIES, texts, encoder, top_k=7)
    ids = folder.ids()
    assert sorted(ids) == sorted(table.column("key").to_pylist())
    for hits, expected in zip(found, other, strict=True):
        assert [hit["id"] for hit in hits] == [f"d{hit['corpus_id']}" for hit in expected]
        np.testing.assert_allclose([hit["score"] for hit in hits], [hit["score"] for hit in expected], atol=1e-5)
        for hit, row in zip(hits, expected, strict=True):
            assert {name: hit[name] for name in folder.columns} == {
                name: table.column(name)[row["corpus_id"]].as_py() for name in ("title", "date", "body")
            }
    assert folder.search(QUERIES[0], 7, fields=[]) == [{"id": h["id"], "score": h["score"]} for h in found[0]]
    assert folder.search([], 3) == []
    # A cross encoder sorts the candidates.
    ranker = CrossEncoder(models / "ranker")
    ranked = folder.search(QUERIES, 4, reranker=ranker, candidates=9, fields=["title"])
    expected = retrieve_and_rerank(QUERIES, texts, encoder, ranker, retrieve_top_k=9, top_k=4)
    for hits, others in zip(ranked, expected, strict=True):
        assert [hit["id"] for hit in hits] == [f"d{hit['corpus_id']}" for hit in others]
        for name in ("score", "retrieval_score"):
            np.testing.assert_allclose([hit[name] for hit in hits], [hit[name] for hit in others], atol=1e-5)


@pytest.mark.parametrize(("metric", "length"), [("cosine", 1), ("dot", 1), ("cosine", 8)])
def test_quantized_vectors_are_rescored(
    metric: str, length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded = vector_folders.encoded
    monkeypatch.setattr(
        vector_folders, "encoded", lambda texts: replace(encoded(texts), vectors=encoded(texts).vectors * length)
    )
    rows: vector_folders.Rows = {f"d{i}": (f"text {i}", None) for i in range(300)}
    every = ("float32", "int8", "binary")
    queries = np.stack([vector_folders.vector_of(f"query {i}") for i in range(5)])
    vectors = np.stack([vector_folders.vector_of(text) for text, _ in rows.values()])
    scores = similarity(queries, vectors, metric)
    for stored in (every, ("int8",), ("binary",)):
        home = tmp_path / "_".join(stored)
        vector_folders.write(home, rows, update=False, of=vector_folders.layout(stored, similarity=metric))
        folder = open_vectors(home)
        assert folder.precisions == stored
        for precision in stored:
            # All rows are candidates: the order comes from the float32 vectors, or from what the numbers stand for.
            hits = folder.search_vectors(queries, 10, precision=precision, rescore_multiplier=30)
            found = [[int(hit["id"][1:]) for hit in one] for one in hits]
            if "float32" in stored:
                assert found == np.argsort(-scores, axis=1, kind="stable")[:, :10].tolist()
                continue
            values = np.concatenate([*folder.blocks(precision)])
            if precision == "int8":
                # 255 steps between the ends of each range: no number is farther from its vector than one step.
                low, high = np.array(json.loads((home / "vectors.json").read_text())["ranges"])
                assert (high - low).max() <= 2
                meant = low + (values.astype(np.float64) + 128) * (high - low) / 255
                assert np.abs(meant - vectors).max() <= (high - low).max() / 255 + 1e-6
            else:
                meant = np.unpackbits(values, axis=1)[:, : vector_folders.WIDTH].astype(np.float64)
                assert (meant == (vectors > 0)).all()
            slow = queries.astype(np.float64) @ meant.T
            for row, one, hit in zip(slow, found, hits, strict=True):
                np.testing.assert_allclose(row[one], np.sort(row)[::-1][:10], atol=1e-5)
                np.testing.assert_allclose([h["score"] for h in hit], row[one], atol=1e-5)
            assert folder.search_vectors(queries[:0], 10, precision=precision) == []
    with pytest.raises(InputError, match="has no vectors in int8; it has binary"):
        folder.search_vectors(queries, precision="int8")


def test_other_programs_read_the_files(models: Path, tmp_path: Path) -> None:
    table = documents()
    folder = open_vectors(written(table, tmp_path / "v", models / "static", precision=["float32", "int8", "binary"]))
    encoder = SentenceEncoder(models / "static")
    texts = table.column("body").to_pylist()
    vectors = encoder.encode_document(texts)
    np.testing.assert_array_equal(folder.vectors(), vectors)
    for path in map(Path, folder.files):
        part = MappedPart(path)
        assert part.groups > 1
        for group in range(part.groups):
            rows = int(part.starts[group + 1] - part.starts[group])
            mapped = part.mapped(group, "vector", np.float32, rows * encoder.dimension)
            assert mapped.flags.aligned
            assert int(np.asarray(mapped).ctypes.data) % 64 == 0
    width = encoder.dimension
    rows = duckdb.read_parquet(folder.files).order("key").fetchall()  # type: ignore[arg-type]
    assert len(rows) == len(table)
    order = sorted(range(len(texts)), key=lambda i: f"d{i}")
    columns = [column[0] for column in duckdb.read_parquet(folder.files).description]  # type: ignore[arg-type]
    for i, values in zip(order, rows, strict=True):
        row = dict(zip(columns, values, strict=True))
        assert row["text_sha256"] == hashlib.sha256(texts[i].encode()).digest()
        assert (row["body"], row["title"]) == (texts[i], table.column("title")[i].as_py())
        assert np.array_equal(np.array(row["vector"], np.float32), vectors[i])
    query = encoder.encode_query(QUERIES[1]).tolist()
    nearest = duckdb.sql(
        f"SELECT key FROM read_parquet({folder.files!r}) WHERE date < DATE '2024-02-01' AND body <> '' "
        f"ORDER BY list_cosine_similarity(vector, {query}::FLOAT[]) DESC, key LIMIT 1"
    ).fetchall()
    own = similarity(np.array(query), vectors[:31])[0]
    assert own[int(nearest[0][0][1:])] == pytest.approx(own.max(), abs=1e-6)
    assert polars.read_parquet(folder.files).schema["vector"] == polars.Array(polars.Float32, width)
    together = pyarrow.Table.from_batches(folder.batches(["key", "vector"]))
    assert together.column("vector").combine_chunks().flatten().to_numpy().tobytes() == vectors.tobytes()
    with pytest.raises(InputError, match="has no column 'nope'; its columns are vector, "):
        next(folder.batches(["key", "nope"]))


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_have_their_places(models: Path, tmp_path: Path, kind: str) -> None:
    table = documents()
    texts = dict(zip(table.column("key").to_pylist(), table.column("body").to_pylist(), strict=True))
    options: dict[str, Any] = {"chunk_size": 3, "chunk_overlap": 1}
    folder = open_vectors(written(table, tmp_path / "v", models / kind, **options))
    assert len(folder) > len(table)
    encoder = load_encoder(models / kind)
    hits = folder.search(QUERIES, len(folder))
    places: dict[str, list[tuple[int, int, int]]] = {}
    for hit in hits[0]:
        assert hit["body"] == texts[hit["id"]][hit["start"] : hit["end"]]
        places.setdefault(hit["id"], []).append((hit["chunk"], hit["start"], hit["end"]))
    assert places.keys() == texts.keys()
    for key, chunks in places.items():
        assert [chunk for chunk, *_ in sorted(chunks)] == list(range(len(chunks)))
        covered = {i for _, start, end in chunks for i in range(start, end)}
        assert {i for i, character in enumerate(texts[key]) if not character.isspace()} <= covered
    # The score of a chunk is the score of its text.
    pieces = [hit["body"] for hit in hits[0]]
    expected: Any = encoder.similarity(encoder.encode_query(QUERIES[:1]), encoder.encode_document(pieces))
    np.testing.assert_allclose([hit["score"] for hit in hits[0]], np.asarray(expected)[0], atol=2e-5)
    # An update with the options of the folder leaves it as it is; another text has other chunks.
    assert write_vectors(table, tmp_path / "v", update=True).plan.unchanged == len(table)
    changed = table.set_column(
        1, "body", pyarrow.array(["the cat sat on the mat", *table.column("body").to_pylist()[1:]])
    )
    plan = write_vectors(changed, tmp_path / "v", update=True).plan
    assert (plan.changed, plan.unchanged) == (1, len(table) - 1)
    own = [hit for hit in open_vectors(tmp_path / "v").search("cat", 1000) if hit["id"] == "d0"]
    assert sorted((hit["start"], hit["body"]) for hit in own) == [
        (0, "the cat sat"),
        (8, "sat on the"),
        (15, "the mat"),
    ]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_run_leaves_no_document_without_its_last_chunks(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    monkeypatch.setattr(writing, "TEXTS", 3)
    table = pyarrow.table({"key": [*range(12)], "body": [" ".join(WORDS[: 1 + 7 * i % 20] * 9) for i in range(12)]})
    options: dict[str, Any] = {"keep": [], "chunk_size": 3}
    chunks = sorted(open_vectors(written(table, tmp_path / "whole", models / "static", **options)).ids())
    done: list[int] = []

    def stop(count: int, total: int) -> None:
        done.append(total)
        if count > len(done):
            raise error

    while True:
        try:
            written(table, tmp_path / "v", models / "static", progress=stop, **options)
        except error:
            continue
        break
    assert len(done) > 3
    assert sorted(open_vectors(tmp_path / "v").ids()) == chunks


def test_late_chunks_are_those_of_the_encoder(models: Path, tmp_path: Path) -> None:
    encoder = SentenceEncoder(models / "sentences")
    room = (encoder.max_seq_length or 0) - 2
    long = " ".join(WORDS * (2 * room // len(WORDS)))  # more than a row of the model
    table = pyarrow.table({"key": [1, 2], "body": ["the cat sat on the mat in the oven", long]})
    folder = open_vectors(
        written(table, tmp_path / "v", models / "sentences", keep=["body"], chunk_size=4, chunk_overlap=1,
                late_chunking=True)
    )  # fmt: skip
    rows = [row for batch in folder.batches(["key", "start", "end", "vector"]) for row in batch.to_pylist()]
    first = [row for row in rows if row["key"] == 1]
    spans = [(row["start"], row["end"]) for row in first]
    expected = encoder.encode_chunks("the cat sat on the mat in the oven", spans)
    np.testing.assert_allclose([row["vector"] for row in first], expected, atol=1e-6)
    # The long text goes through the model in sections of entire chunks; no vector is zero.
    second = [row for row in rows if row["key"] == 2]
    assert second[-1]["end"] == len(long)
    assert all(np.any(row["vector"]) for row in second)
    with pytest.raises(InputError, match="late chunking is for models of one vector"):
        written(table, tmp_path / "w", models / "splade", keep=[], chunk_size=4, late_chunking=True)
    with pytest.raises(InputError, match=rf"chunks of {room + 1} tokens do not fit"):
        written(table, tmp_path / "w", models / "sentences", keep=[], chunk_size=room + 1)


# --- commands


@pytest.fixture
def desk(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    pyarrow.parquet.write_table(documents(), "docs.parquet")
    return tmp_path  # type: ignore[return-value]


EMBED = ["embed", "docs.parquet", "--text-column", "body", "--id-column", "key", "-o", "docs.vectors/"]


def test_commands_from_a_table_to_an_updated_and_reranked_answer(
    models: Path, desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(models / "static")
    assert main([*EMBED, "-m", model, "--keep", "title,body,date", "--precision", "float32,int8"]) == 0
    said = capsys.readouterr().err
    assert "57 texts to embed: 57 new, 0 changed, 0 unchanged" in said
    table = documents()
    changed = table.slice(2).set_column(1, "body", pyarrow.array(["bread", *table.column("body").to_pylist()[3:]]))
    pyarrow.parquet.write_table(changed, "docs.parquet")
    assert main(["embed", "docs.parquet", "--update", "-o", "docs.vectors"]) == 0
    said = capsys.readouterr().err
    assert "1 text to embed: 0 new, 1 changed, 54 unchanged; 2 of the folder not in the files (kept; --prune" in said
    assert len(open_vectors("docs.vectors")) == 57
    assert main(["embed", "docs.parquet", "--update", "--prune", "-o", "docs.vectors", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rows"], facts["pruned"], facts["unchanged"], facts["new"]) == (55, 2, 55, 0)

    asked = ["search", "docs.vectors/", "--query", "bread", "--query", "the cat", "-k", "3", "-q"]
    folder = open_vectors("docs.vectors")
    for options, arguments in [
        (["--json"], {}),
        (["--json", "--precision", "int8", "--fields", "title"], {"precision": "int8", "fields": ["title"]}),
        (["--json", "--rerank", str(models / "ranker")], {"reranker": models / "ranker"}),
    ]:
        assert main([*asked, *options]) == 0
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [line["query"] for line in lines] == ["bread", "the cat"]
        found: Any = folder.search(["bread", "the cat"], 3, **arguments)
        assert [line["hits"] for line in lines] == json.loads(json.dumps(found, default=str))
    assert main(asked) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "bread"
    assert shown[1].split()[1] == folder.search("bread", 1)[0]["id"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["embed", "docs.parquet", "-o", "docs.vectors"], "--text-column is missing"),
        (["embed", "docs.parquet", "--text-column", "body", "-o", "d.vectors"], "--id-column is missing"),
        (["embed", "docs.parquet", "--text-column", "body", "--id-column", "key", "-o", "v.npy"], "a .npy has vectors alone, without ids"),
        (["embed", "-", "--text-column", "body", "--id-column", "key", "-o", "d.vectors"], "is made of files of tables"),
        ([*EMBED, "--format", "npy"], "--format is not for folders"),
        ([*EMBED, "--precision", "float16"], "precision must be of float32, int8, binary"),
        ([*EMBED, "--keep", "none"], "no column 'none'; the columns are 'key', 'body'"),
        ([*EMBED, "--prune"], "prune is for an update"),
        ([*EMBED, "--chunk-overlap", "2"], "chunk_size"),
        (["search", "docs.parquet", "--fields", "title", "--query", "a"], "--fields is for a folder"),
        (["search", "folder", "--query", "a"], "folder: has no vectors.json"),
        (["search", "folder", "docs.parquet", "--query", "a"], "give one folder, and no other files"),
    ],
)  # fmt: skip
def test_commands_refuse(
    models: Path, desk: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    Path("folder").mkdir()
    more = ["-m", str(models / "static")] if options[0] == "embed" else []
    assert main([*options, *more]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "status", "said"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "ended by SIGTERM")]
)
def test_an_interrupted_command_says_what_it_keeps_and_goes_on(
    models: Path,
    desk: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    status: int,
    said: str,
) -> None:
    monkeypatch.setattr(writing, "TEXTS", 8)
    model = ["-m", str(models / "static")]

    def interrupted(*_: object) -> None:
        signal.raise_signal(number)

    with monkeypatch.context() as context:
        context.setattr("wordpiece_bert._internal.progress.Progress.update", interrupted)
        assert main([*EMBED, *model]) == status
    assert capsys.readouterr().err.endswith(
        f"wordpiece-bert: {said}: 8 of 57 texts are embedded and kept in docs.vectors; run it again for the rest\n"
    )
    assert main([*EMBED, *model]) == 0
    assert "49 texts to embed: 49 new, 0 changed, 8 unchanged" in capsys.readouterr().err
    assert len(open_vectors("docs.vectors")) == 57


# --- bad input


def test_bad_documents_are_refused(models: Path, tmp_path: Path) -> None:
    table = documents()
    keys = table.column("key").to_pylist()

    def refused(given: Any, message: str, **options: Any) -> None:
        with pytest.raises(InputError, match=message):
            written(given, tmp_path / "v", models / "static", **options)
        assert not (tmp_path / "v").exists()

    refused(table.set_column(0, "key", pyarrow.array([*keys[:-1], keys[3]])), "two documents have the same key, 'd3'")
    refused(
        table.set_column(0, "key", pyarrow.array([*keys[:5], None, *keys[6:]])), "row 5 of the column 'key' is null"
    )
    refused(table.set_column(0, "key", pyarrow.array([0.5] * 57)), "ids are texts or whole numbers")
    refused(table.set_column(1, "body", pyarrow.array([1] * 57)), "'body' is int64, not text")
    refused(
        table.append_column("score", table.column("title")),
        "'score' has the name of a column of the folder",
        keep=["score"],
    )
    refused(
        table.append_column("id", table.column("title")), "'id' has the name of a column of the folder", keep=["id"]
    )
    other = pyarrow.array([b"caf\xe9"] * 57).view(pyarrow.string())
    refused(table.set_column(1, "body", other), "the column 'body': Invalid UTF8")
    refused(table, "a column is named twice: text key, id and kept ones key", text_column="key")
    refused(table, "a column is named twice", keep=["title", "title"])
    refused(table, "no column 'none'", text_column="none")
    refused(table, "text_column must be the name of a column, not None", text_column=None)
    mixed = table.to_pandas().astype({"body": object})
    mixed.loc[3, "body"] = 5
    refused(mixed, r"the table cannot be read: .*Conversion failed for column body")
    refused([], "documents is empty")
    refused(7, "must be paths of tables, or a table, not int")
    refused(table, "precision must be of", precision="float16")
    refused(table, "chunk_overlap, chunk_by and late_chunking need chunk_size", chunk_overlap=3)
    refused(table, "overlap", chunk_size=3, chunk_overlap=3)
    with pytest.raises(InputError, match=r"folder must be a path, not list: \['a text'\]"):
        write_vectors(tmp_path / "v", ["a text"], models / "static")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="encoder must be an encoder"):
        write_vectors(table, tmp_path / "v", text_column="body", id_column="key")
    with pytest.raises(InputError, match=r"encoder must be a SentenceEncoder, .* not CrossEncoder"):
        write_vectors(table, tmp_path / "v", CrossEncoder(models / "ranker"), text_column="body", id_column="key")  # type: ignore[arg-type]
    (tmp_path / "x.parquet").write_bytes(b"no table")
    refused(tmp_path / "x.parquet", "cannot be read as Parquet")
    with pytest.raises(FileNotFoundError):
        written(tmp_path / "none.parquet", tmp_path / "v", models / "static")


def test_tables_of_other_formats_and_libraries(models: Path, tmp_path: Path) -> None:
    table = documents(9).drop_columns(["date"])
    ids = table.column("key").to_pylist()
    polars.from_arrow(table).write_csv(tmp_path / "d.csv")  # type: ignore[union-attr]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    frame: Any = polars.from_arrow(table)
    for number, given in enumerate((frame, tmp_path / "d.csv", tmp_path / "d.jsonl", frame.to_pandas())):
        folder = written(given, tmp_path / f"v{number}", models / "static", keep=["title"])
        assert open_vectors(folder).ids() == ids


def test_kept_columns_of_any_type_are_written_and_compared(models: Path, tmp_path: Path) -> None:
    day = datetime.datetime(2024, 1, 2)
    kept: dict[str, Any] = {
        "seconds": pyarrow.array([day], pyarrow.timestamp("s", "UTC")),
        "day": pyarrow.array([day], pyarrow.date64()),
        "time": pyarrow.array([day.time()], pyarrow.time32("s")),
        "tags": pyarrow.array([["a"]], pyarrow.large_list(pyarrow.string_view())),
        "pair": pyarrow.array([["a", "b"]], pyarrow.list_(pyarrow.string_view(), 2)),
        "pieces": pyarrow.array([{"a": [b"a"], "b": day}]).cast(
            pyarrow.struct([("a", pyarrow.list_(pyarrow.binary_view())), ("b", pyarrow.timestamp("s"))])
        ),
    }
    table = pyarrow.table({"key": [1], "body": ["a cat"]} | kept)
    written(table, tmp_path / "v", models / "static", keep=[*kept])
    assert write_vectors(table, tmp_path / "v", update=True).plan.unchanged == 1
    (hit,) = open_vectors(tmp_path / "v").search("cat")
    assert (hit["tags"], hit["pair"], hit["pieces"]) == (["a"], ["a", "b"], {"a": [b"a"], "b": day})


def test_parts_whose_files_have_other_types_are_not_joined(models: Path, tmp_path: Path) -> None:
    for name, keys in (("a", [1, 2]), ("b", ["x", "y"])):
        (tmp_path / f"{name}.csv").write_text("key,body\n" + "".join(f"{key},a cat\n" for key in keys))
    parts = [
        written(iter(sorted(tmp_path.glob("*.csv"))), tmp_path / f"p{i}", models / "static", keep=[], part=(i, 2))
        for i in range(2)
    ]
    for call in (lambda: open_vectors(parts), lambda: merge_parts(parts, tmp_path / "v")):
        with pytest.raises(InputError, match="the column 'key' is string, but int64 in another part"):
            call()


def test_truncated_texts_are_named(models: Path, tmp_path: Path) -> None:
    table = pyarrow.table({"key": [7, 8], "body": ["the cat", "the cat " * 500]})
    with pytest.warns(TruncationWarning, match="1 of 2 texts truncated, first 8"):
        result = write_vectors(table, tmp_path / "v", models / "sentences", text_column="body", id_column="key")
    assert result.truncated == [8]


def test_a_folder_is_searched_by_its_own_model(models: Path, tmp_path: Path) -> None:
    folder = written(documents(), tmp_path / "v", models / "static", keep=["title"])
    with pytest.raises(InputError, match="has the vectors of another model; what differs: the configuration"):
        open_vectors(folder).search("cat", encoder=models / "sentences")
    stale = open_vectors(folder, allow_stale=True)
    for other in (SentenceEncoder(models / "static", truncate_dim=33), models / "splade", models / "colbert"):
        with pytest.raises(
            InputError, match=r"has dense vectors of 67 numbers, the encoder makes .* cannot be compared"
        ):
            stale.search("cat", encoder=other)
    with pytest.warns(VectorsWarning, match="the vectors of another model"):
        open_vectors(folder, allow_stale=True).search("cat", encoder=models / "sentences")
    opened = open_vectors(folder)
    with pytest.raises(InputError, match="reranker needs the texts"):
        opened.search("cat", reranker=models / "ranker")
    with pytest.raises(InputError, match=r"encoder must be a SentenceEncoder, .* not int: 5"):
        opened.search("cat", encoder=5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="has no field 'body'; its fields are title"):
        opened.search("cat", fields=["body"])
    with pytest.raises(InputError, match="the queries have 3 numbers"):
        opened.search_vectors([1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="cannot be brought up to date"):
        write_vectors(documents(), folder, models / "sentences", update=True)


def test_damaged_folders_are_refused(models: Path, tmp_path: Path) -> None:
    whole = written(documents(), tmp_path / "v", models / "static")
    file = Path(open_vectors(whole).files[0])
    damaged = tmp_path / "w"

    def refused(message: str) -> None:
        with pytest.raises(InputError, match=message):
            open_vectors(damaged).search("cat")
        shutil.rmtree(damaged)

    shutil.copytree(whole, damaged)
    (damaged / file.name).unlink()
    refused("is missing; restore it")
    shutil.copytree(whole, damaged)
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(file), damaged / file.name)
    refused("another program has changed it")
    shutil.copytree(whole, damaged)
    (damaged / file.name).write_bytes(b"x" * file.stat().st_size)
    refused("not a Parquet file")
    listing = json.loads((whole / "vectors.json").read_text())
    for change, message in [
        ({"version": 3}, "has the version 3, not 1 or 2"),
        ({"replaced": {"file": "../x.npy", "rows": 1, "digest": ""}}, "are no replaced rows"),
        ({"replaced": {"file": "replaced-000000.npy", "rows": "x", "digest": ""}}, "are no replaced rows"),
        ({"replaced": {"file": "replaced-000000.npy", "rows": 999, "digest": ""}}, "are no replaced rows"),
        ({"replaced": [1]}, "is malformed"),
        ({"part": {"number": 3, "count": 2, "call": {}, "digest": ""}}, "is not the record of a part"),
        ({"part": 7}, "is not the record of a part"),
        ({"parts": [{"file": "../x", "rows": 1, "bytes": 1, "footer": ""}]}, "is no part"),
        ({"parts": 3}, "is malformed"),
        ({"ranges": [[0.0], "x"]}, "are no ranges"),
        ({"ranges": [[0.0], [1.0]]}, "ranges without 8-bit numbers"),
        ({"layout": {**listing["layout"], "chunks": {"size": 3}}}, "is not a description of vectors"),
        ({"layout": {**listing["layout"], "dimension": 0}}, "is not a description of vectors"),
        ({"layout": {**listing["layout"], "kind": "other"}}, "is not a description of vectors"),
        ({"layout": 3}, "is not a description of vectors"),
    ]:
        shutil.copytree(whole, damaged)
        (damaged / "vectors.json").write_text(json.dumps(listing | change))
        refused(message)
    # A listed file that another program has written is found by its pages.
    shutil.copytree(whole, damaged)
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(file), damaged / file.name, compression="none")
    other = MappedPart(damaged / file.name)
    part = {"file": file.name, "rows": other.rows, "bytes": other.size, "footer": other.footer}
    (damaged / "vectors.json").write_text(json.dumps(listing | {"parts": [part, *listing["parts"][1:]]}))
    refused("is not stored as wordpiece-bert writes it")
    with pytest.raises(InputError, match="is not a folder of vectors"):
        open_vectors(tmp_path / "nothing")
    (tmp_path / "killed" / ".unfinished").mkdir(parents=True)
    with pytest.raises(InputError, match="its vectors were not finished: run the same"):
        open_vectors(tmp_path / "killed")


def test_any_changed_byte_is_an_answer_or_a_named_error(models: Path, tmp_path: Path) -> None:
    whole = written(documents(), tmp_path / "v", models / "static", precision=["float32", "int8"])
    random = np.random.default_rng(3)
    for path in sorted(whole.iterdir()):
        content = path.read_bytes()
        for _ in range(150):
            damaged = bytearray(content)
            damaged[random.integers(len(content))] ^= 1 << int(random.integers(8))
            path.write_bytes(damaged)
            try:
                folder = open_vectors(whole)
                with np.errstate(all="ignore"):  # a changed exponent
                    folder.search("cat", 60)
                    folder.search("cat", 60, precision="int8")
                folder.ids()
            except WordPieceError:
                continue
        path.write_bytes(content)
    assert len(open_vectors(whole).search("cat", 60)) == 57


def test_many_queries_are_those_one_by_one(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in KINDS:
        options = {"precision": "int8"} if kind == "static" else {}
        folder = open_vectors(written(documents(), tmp_path / kind, models / kind, **options))
        together = folder.search(QUERIES * 3, 4)
        monkeypatch.setattr("wordpiece_bert.vectors.vector_folder._QUERIES", 2)
        assert [[hit["id"] for hit in one] for one in folder.search(QUERIES * 3, 4)] == [
            [hit["id"] for hit in one] for one in together
        ]
        monkeypatch.undo()


def made(model: Path, **options: Any) -> SentenceEncoder:
    """An encoder with every setting that a folder remembers."""
    prompts = {"query": "a query: ", "document": "a text: "}
    encoder = SentenceEncoder(
        model, dtype="int8", calibrate=["to bake bread"], prompts=prompts, truncate_dim=8, **options
    )
    encoder.max_seq_length = 12
    return encoder


@pytest.mark.filterwarnings("ignore::wordpiece_bert.errors.TruncationWarning")
def test_a_folder_remembers_how_its_encoder_was_loaded(models: Path, tmp_path: Path) -> None:
    encoder = made(models / "sentences")
    folder = written(documents(), tmp_path / "v", encoder)
    opened = open_vectors(folder)
    for given in ({}, {"encoder": models / "sentences"}):
        assert opened.search(QUERIES, 5, **given) == opened.search(QUERIES, 5, encoder=encoder)
    assert opened.encoder.prompts == encoder.prompts
    # A new folder of the changed documents has the rows of the updated one.
    table = (
        documents().slice(3).set_column(1, "body", pyarrow.array(["bread dough", *documents()["body"].to_pylist()[4:]]))
    )
    expected = open_vectors(written(table, tmp_path / "new", encoder))
    for given in ((), (models / "sentences",)):
        write_vectors(table, folder, *given, update=True, prune=True)
        found = open_vectors(folder)
        rows = [dict(zip(one.ids(), one.vectors().tolist(), strict=True)) for one in (found, expected)]
        assert rows[0] == rows[1]
    for other, message in (
        (SentenceEncoder(models / "sentences", dtype="int8"), r"truncate_dim, the dimension \(8 in the file, 67 now\)"),
        (SentenceEncoder(models / "sentences", truncate_dim=8), r"dtype \('int8' in the file, 'float32' now\)"),
        (SentenceEncoder(models / "sentences", dtype="int8", truncate_dim=8), "calibrate, the texts of the int8"),
    ):
        with pytest.raises(InputError, match=message):
            opened.search("cat", encoder=other)
        with pytest.raises(InputError, match=message):
            write_vectors(table, folder, other, update=True)
    with pytest.raises(InputError, match=r"prompt \('a text: ' in the file, 'other: ' now\)"):
        write_vectors(table, folder, update=True, prompt="other: ")


def test_an_update_keeps_the_prompts_of_queries(models: Path, tmp_path: Path) -> None:
    """They are not in the fingerprint: the vectors of documents do not depend on them."""
    prompts = {"query": "a query: ", "document": ""}
    folder = written(documents(9), tmp_path / "v", SentenceEncoder(models / "sentences", prompts=prompts))
    before = open_vectors(folder).search(QUERIES, 3)
    plain = SentenceEncoder(models / "sentences")
    assert open_vectors(folder).search(QUERIES, 3, encoder=plain) != before
    for count in (9, 12):
        write_vectors(documents(count), folder, plain, update=True)
        assert open_vectors(folder).encoder.prompts == prompts
    other = SentenceEncoder(models / "sentences", prompts={"query": "other: ", "document": ""})
    with pytest.raises(InputError, match=r'prompts \(\{"query": "a query: ", .* in the folder, \{"query": "other: '):
        write_vectors(documents(12), folder, other, update=True)


@pytest.mark.parametrize("kind", ["splade", "colbert"])
def test_folders_of_other_kinds_remember_it_too(kind: str, models: Path, tmp_path: Path) -> None:
    cls = {"splade": SparseEncoder, "colbert": MultiVectorEncoder}[kind]
    encoder = cls(models / kind, dtype="int8", prompts={"query": "a query: "})
    folder = written(documents(9), tmp_path / "v", encoder)
    assert open_vectors(folder).search(QUERIES, 3) == open_vectors(folder).search(QUERIES, 3, encoder=encoder)
    assert write_vectors(documents(), folder, update=True).plan.new == 48


@pytest.mark.parametrize("kind", ["splade", "colbert"])
def test_vectors_of_an_encoder_whose_files_have_changed_are_refused(kind: str, models: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(models / kind, tmp_path / "model")
    encoder = load_encoder(folder)
    (folder / "config.json").touch()
    with pytest.raises(InputError, match="the files have changed since the model was loaded: load it again"):
        written(documents(9), tmp_path / "v", encoder)
    assert not (tmp_path / "v").exists()


@pytest.mark.filterwarnings("always")
def test_commands_use_what_a_folder_remembers(models: Path, desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(models / "sentences")
    options = ["--dtype", "int8", "--prompt", "a text: "]
    assert main([*EMBED, "-m", model, "--keep", "title", *options]) == 0
    search = ["search", "docs.vectors", "--query", "bread", "-q", "--json"]
    update = ["embed", "docs.parquet", "--update", "-o", "docs.vectors", "-q"]
    capsys.readouterr()
    answers = []
    for more in ([], ["--dtype", "int8"], ["-m", model]):
        assert main([*search, *more]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1] == answers[2] != ""
    for more in ([], options, ["-m", model]):
        assert main([*update, *more]) == 0
    for command in (search, update):
        assert main([*command, "--dtype", "float32"]) == 2
        assert "dtype ('int8' in the file, 'float32' now)" in capsys.readouterr().err
    assert main([*update, "--prompt", "other: "]) == 2
    assert "prompt ('a text: ' in the file, 'other: ' now)" in capsys.readouterr().err
    assert main([*search, "--dtype", "float32", "--allow-stale"]) == 0
    assert "warning: docs.vectors has the vectors of another model; what differs: dtype" in capsys.readouterr().err
    # A description with an argument that encoders do not have is damaged.
    listing = Path("docs.vectors") / "vectors.json"
    listing.write_text(listing.read_text().replace('"dtype": "int8"\n', '"dtype": "int8", "width": 3\n'))
    capsys.readouterr()
    assert main(search) == 2
    assert "is not a description of vectors" in capsys.readouterr().err


def test_a_folder_remembers_the_revision_of_a_cached_model(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    repository = tmp_path / "cache" / "models--org--name"
    for commit, reference, model in (("a" * 40, "main", "static"), ("b" * 40, "v2", "sentences")):
        (repository / "refs").mkdir(parents=True, exist_ok=True)
        (repository / "refs" / reference).write_text(commit)
        shutil.copytree(models / model, repository / "snapshots" / commit)
    folder = written(documents(9), tmp_path / "v", SentenceEncoder("org/name", revision="v2"))
    opened = open_vectors(folder)
    assert opened.encoder.engine == SentenceEncoder("org/name", revision="v2").engine
    assert len(opened.search(QUERIES[0], 3)) == 3
    assert write_vectors(documents(9), folder, update=True).plan.unchanged == 9
    # Another model has no such revision, and is refused by what it contains.
    with pytest.raises(InputError, match="what differs"):
        opened.search(QUERIES[0], 3, encoder=models / "static")


def test_a_file_of_vectors_is_searched_with_its_dtype(
    models: Path, desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("texts.txt").write_text("bread dough\na bicycle\nflour and water\n")
    model = ["-m", str(models / "sentences")]
    for kind in ("npy", "parquet", "arrow", "jsonl"):
        assert main(["embed", "texts.txt", "-o", f"v.{kind}", *model, "--dtype", "int8", "--documents", "-q"]) == 0
        search = ["search", "texts.txt", "--vectors", f"v.{kind}", *model, "--query", "bread", "-q", "--json"]
        capsys.readouterr()
        assert main(search) == 0
        answer = capsys.readouterr().out
        assert main([*search, "--dtype", "int8"]) == 0
        assert capsys.readouterr().out == answer
        assert main([*search, "--dtype", "float32"]) == 2
        assert "dtype" in capsys.readouterr().err
