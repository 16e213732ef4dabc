"""`embed FILE --id-column`: the ids of a table beside its vectors, in every format that has columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wordpiece_bert import SentenceEncoder, open_vectors
from wordpiece_bert.cli import main

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

TEXTS = ["bread in the oven", "a bicycle", "flour and water", "to repair a wheel", "a wonderful film"]
IDS: dict[str, list[Any]] = {"number": [7, 3, 2**40, 0, -1], "name": ["x", "ä", "", 'quo"te', "z\u2028z"]}


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = pyarrow.table({**IDS, "text": TEXTS})
    parquet.write_table(table, "texts.parquet", row_group_size=2)
    Path("texts.jsonl").write_text("".join(json.dumps(row) + "\n\n" for row in table.to_pylist()))
    rows = zip(*IDS.values(), TEXTS, strict=True)
    Path("texts.tsv").write_text("number\tname\ttext\n" + "".join("\t".join(map(str, row)) + "\n" for row in rows))


def read(path: str) -> Any:
    kind = path.rpartition(".")[2]
    if kind == "jsonl":
        return pyarrow.Table.from_pylist(
            [json.loads(line) for line in Path(path).read_text("utf-8").split("\n") if line]
        )
    if kind == "parquet":
        return parquet.read_table(path)
    opened = pyarrow.ipc.open_file if kind == "arrow" else pyarrow.ipc.open_stream
    return opened(pyarrow.memory_map(path)).read_all()


@pytest.mark.parametrize("column", IDS)
@pytest.mark.parametrize("given", ["texts.parquet", "texts.jsonl", "texts.tsv"])
@pytest.mark.parametrize("kind", ["parquet", "arrow", "arrows", "jsonl"])
def test_the_ids_are_beside_the_vectors(models: Path, kind: str, given: str, column: str) -> None:
    model = ["-m", str(models / "static"), "--batch-size", "1"]
    assert main(["embed", given, "--text-column", "text", "--id-column", column, *model, "-o", f"v.{kind}", "-q"]) == 0
    found = read(f"v.{kind}")
    assert found.column_names == [column, "vector"]
    assert found.column(column).to_pylist() == IDS[column]
    expected = SentenceEncoder(models / "static").encode(TEXTS)
    np.testing.assert_array_equal(np.array(found.column("vector").to_pylist(), np.float32), expected)
    search = ["search", "texts.parquet", "--text-column", "text", "--vectors", f"v.{kind}", "--query", "bread"]
    assert main([*search, *model[:2]]) == 0


def test_cells_of_tables_stay_as_they_are(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`007` is no number; a text that looks like a date, or has more bytes than a block of pyarrow, is a text."""
    Path("t.csv").write_text(f'id,text,zip\n007,"2024\n",01234\n7,{"bread " * 400_000},\n')
    Path("t.jsonl").write_text(
        '{"id": "2024-01-01", "text": "2024", "zip": "2024-01-01"}\n\n{"id": "7", "text": "a"}\n'
    )
    columns = ["--text-column", "text", "--id-column", "id"]
    Path("y.csv").write_text("id,text,zip\na,b,2024\n")
    for given, expected in (
        ("t.csv", [("007", "01234"), ("7", "")]),
        ("t.jsonl", [("2024-01-01",) * 2, ("7", None)]),
        ("y.csv", [("a", 2024)]),
    ):
        model = ["-m", str(models / "static"), *columns]
        assert main(["embed", given, *model, "--keep", "zip", "-o", f"{given}.vectors"]) == 0
        hits: Any = open_vectors(f"{given}.vectors").search("bread", 2)
        assert sorted((hit["id"], hit["zip"]) for hit in hits) == expected
        assert main(["embed", given, *model, "-o", "v.jsonl"]) == 0
        assert read("v.jsonl").column("id").to_pylist() == [key for key, _ in expected]
    assert "1 of 2 texts truncated to the model's 512 tokens: t.csv line 4" in capsys.readouterr().err
    Path("t.jsonl").write_text('{"id": "a", "text": "b"}\n\n{"id": "c", "text": null}\n')
    parquet.write_table(pyarrow.table({"id": ["a", None], "text": ["b", "c"]}), "t.parquet")
    parquet.write_table(pyarrow.table({"id": ["a"], "text": pyarrow.array([None], pyarrow.string())}), "n.parquet")
    assert main(["embed", "n.parquet", *columns, "-m", str(models / "static"), "-o", "v.jsonl"]) == 2
    assert capsys.readouterr().err.endswith("row 1: null, which is not text\n")
    for given, place in (("t.jsonl", "t.jsonl, line 3: the column 'text'"), ("t.parquet", "row 2 of the column 'id'")):
        assert main(["embed", given, *columns, "-m", str(models / "static"), "-o", "v.jsonl"]) == 2
        assert f"{place} is null" in capsys.readouterr().err


@pytest.mark.parametrize(("model", "columns"), [("splade", ["indices", "values"]), ("colbert", ["vectors"])])
@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_lists_have_ids_too(models: Path, kind: str, model: str, columns: list[str]) -> None:
    asked = ["--text-column", "text", "--id-column", "number", "-m", str(models / model)]
    assert main(["embed", "texts.parquet", *asked, "-o", f"v.{kind}", "-q"]) == 0
    assert main(["embed", "texts.parquet", *asked[:2], *asked[4:], "-o", f"plain.{kind}", "-q"]) == 0
    found = read(f"v.{kind}")
    assert found.column_names == ["number", *columns]
    assert found.column("number").to_pylist() == IDS["number"]
    assert found.select(columns).to_pylist() == read(f"plain.{kind}").to_pylist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["texts.parquet", "--text-column", "text", "-o", "v.npy"], "a .npy has vectors alone, without ids"),
        (["texts.parquet", "-o", "v.parquet"], "--id-column needs the column of the texts as well"),
        (["-", "--text-column", "text", "-o", "v.parquet"], "--id-column reads files of tables"),
        (["texts.parquet", "--text-column", "text", "--errors", "skip", "-o", "v.parquet"], "--errors is not for"),
        (["texts.parquet", "--text-column", "none", "-o", "v.parquet"], "no column 'none'"),
    ],
)
def test_what_has_no_ids_is_refused(
    models: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert main(["embed", *options, "--id-column", "number", "-m", str(models / "static")]) == 2
    assert message in capsys.readouterr().err
    assert not list(Path().glob("v.*"))
