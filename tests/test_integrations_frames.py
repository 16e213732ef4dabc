"""Polars, DuckDB, pandas and Hugging Face datasets: one line each, equal to the plain calls."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tiny_models
from small_tokenizer import TEXTS, tokenizer
from wordpiece_bert import SentenceEncoder, Tokenizer
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

NULLS: list[str | None] = ["the cat", None, "", "a b c d e f g", None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.make_sentences(tmp_path_factory.mktemp("models") / "sentences")


def ids(texts: list[str | None], **options: Any) -> list[list[int] | None]:  # noqa: ANN401
    return [None if text is None else tokenizer().encode(text, **options).ids for text in texts]


# --- polars


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_polars_expressions(engine: str, folder: Path, tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    import wordpiece_bert.integrations.polars  # noqa: F401 - registers the namespace

    many = (NULLS + list(TEXTS)) * 500
    pl.DataFrame({"id": range(len(many)), "text": many}).write_parquet(tmp_path / "texts.parquet", row_group_size=1000)
    text = pl.col("text").wordpiece
    lazy = pl.scan_parquet(tmp_path / "texts.parquet").with_columns(
        ids=text.encode(tokenizer()), cut=text.encode_fields(tokenizer(), max_length=4)
    )
    found = lazy.filter(pl.col("id") % 7 == 0).collect(engine=engine)
    assert found.schema["ids"] == pl.List(pl.UInt32)
    chosen = many[::7]
    assert found["ids"].to_list() == ids(chosen)
    assert lazy.collect_schema()["cut"] == found.schema["cut"]
    cut = found["cut"].struct.unnest()
    assert cut["ids"].to_list() == ids(chosen, max_length=4)
    assert cut["length"].to_list() == [None if one is None else len(one) for one in ids(chosen, max_length=4)]
    assert cut["truncated"].to_list() == [
        None if one is None else tokenizer().encode(one, max_length=4).truncated for one in chosen
    ]


def test_polars_vectors(folder: Path) -> None:
    pl = pytest.importorskip("polars")
    import wordpiece_bert.integrations.polars  # noqa: F401

    frame = pl.DataFrame({"text": NULLS})
    found = frame.lazy().select(pl.col("text").wordpiece.embed(folder, truncate_dim=3)).collect()["text"]
    assert found.dtype == pl.Array(pl.Float32, 3)
    expected = SentenceEncoder(folder).encode([text for text in NULLS if text is not None], truncate_dim=3)
    np.testing.assert_array_equal(found.drop_nulls().to_numpy(), expected)
    assert found.is_null().to_list() == [text is None for text in NULLS]
    series = frame["text"].wordpiece.embed(SentenceEncoder(folder), truncate_dim=3)
    assert series.to_list() == found.to_list()
    for texts in ([], [None, None]):
        empty = pl.Series("text", texts, pl.String)
        assert empty.wordpiece.embed(folder).dtype == pl.Array(pl.Float32, 67)
        assert empty.wordpiece.encode(tokenizer()).to_list() == texts
        assert empty.wordpiece.encode_fields(tokenizer()).len() == len(texts)


# --- DuckDB


def test_duckdb_functions(folder: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    from wordpiece_bert.integrations.duckdb import register

    with duckdb.connect() as connection:
        for _ in range(2):  # a second time replaces the first
            register(connection, tokenizer=tokenizer(), model=folder, max_length=4, truncate_dim=3)
        many = (NULLS + list(TEXTS)) * 500
        connection.execute("CREATE TABLE texts (id INTEGER, text VARCHAR)")
        connection.executemany("INSERT INTO texts VALUES (?, ?)", list(enumerate(many[:60])))
        query = "SELECT wordpiece_encode(text), wordpiece_length(text), wordpiece_embed(text) FROM texts ORDER BY id"
        rows = connection.execute(query).fetchall()
        expected = ids(many[:60], max_length=4)
        assert [row[0] for row in rows] == expected
        assert [row[1] for row in rows] == [None if one is None else len(one) for one in expected]
        texts = [text for text in many[:60] if text is not None]
        vectors = SentenceEncoder(folder).encode(texts, truncate_dim=3, return_truncated=True)[0]
        np.testing.assert_array_equal(np.array([row[2] for row in rows if row[2] is not None], np.float32), vectors)
        total = connection.execute("SELECT sum(wordpiece_length(t)) FROM (SELECT 'a cat' AS t FROM range(20000))")
        assert total.fetchone() == (20_000 * 4,)
        with pytest.raises(InputError, match="give a tokenizer, a model or both"):
            register(connection)


# --- pandas


def test_pandas_accessor(folder: Path) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    import wordpiece_bert.integrations.pandas  # noqa: F401 - registers the accessor

    series = pd.Series(NULLS, index=[5, 4, 3, 2, 1])
    found = series.wordpiece.encode(tokenizer(), max_length=4)
    assert list(found.index) == [5, 4, 3, 2, 1]
    assert [None if value is None or value is pd.NA else list(value) for value in found["ids"]] == ids(
        NULLS, max_length=4
    )
    assert found["truncated"].fillna(False).tolist() == [False, False, False, True, False]
    vectors = series.wordpiece.embed(folder)["vector"].dropna()
    expected = SentenceEncoder(folder).encode([text for text in NULLS if text is not None])
    np.testing.assert_array_equal(np.array([list(value) for value in vectors], np.float32), expected)
    assert len(pd.Series([], dtype=object).wordpiece.encode(tokenizer())) == 0
    with pytest.raises(InputError, match="values that are no texts"):
        pd.Series(["a", object()]).wordpiece.encode(tokenizer())


# --- Hugging Face datasets

PROGRAM = """
import sys, warnings
import datasets
from wordpiece_bert import Tokenizer
datasets.disable_progress_bars()
tokenizer = Tokenizer.from_pretrained(sys.argv[1])
data = datasets.load_dataset("text", data_files=sys.argv[2], cache_dir=sys.argv[3])["train"]
found = data.map(tokenizer.map_function(max_length=9), batched=True)
print(found._fingerprint, len(found.cache_files), found[0]["input_ids"])
"""


def test_a_map_function_returns_what_the_call_returns() -> None:
    tok = tokenizer()
    function = tok.map_function(padding="max_length", max_length=9, truncation=True, dtype="int32")
    found = function({"text": list(TEXTS)})
    expected = tok(list(TEXTS), padding="max_length", max_length=9, truncation=True, dtype="int32")
    assert list(found) == list(expected)
    for name, values in found.items():
        np.testing.assert_array_equal(values, expected[name])
        assert values.dtype == np.int32
    ragged = tok.map_function("a", "b", return_token_type_ids=True)({"a": ["the cat", "a"], "b": ["sat", "b c d"]})
    lists = tok(["the cat", "a"], ["sat", "b c d"], return_tensors=None)
    assert {name: [row.tolist() for row in rows] for name, rows in ragged.items()} == dict(lists)
    assert pickle.loads(pickle.dumps(tok.map_function("a"))) == tok.map_function("a") != tok.map_function("b")
    with pytest.raises(InputError, match="no column 'text'; the examples have a"):
        tok.map_function()({"a": ["b"]})
    with pytest.raises(InputError, match="batched=True"):
        tok.map_function()({"text": "a text"})
    with pytest.raises(InputError, match="truncation"):
        tok.map_function(truncation="some")  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore")
def test_datasets_are_mapped(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    datasets = pytest.importorskip("datasets", reason="datasets is not installed: pip install '.[datasets]'")
    from datasets.fingerprint import Hasher

    texts = [f"the bread {i} bake" for i in range(50)]
    tok = Tokenizer.from_pretrained(folder)
    same = pickle.loads(pickle.dumps(tok))
    assert Hasher.hash(same.map_function()) == Hasher.hash(tok.map_function())
    assert Hasher.hash(tok.map_function(max_length=3)) != Hasher.hash(tok.map_function())
    data = datasets.Dataset.from_dict({"text": texts, "label": list(range(50))})
    expected = tok(texts, return_tensors=None)["input_ids"]
    for options in ({}, {"num_proc": 2}):
        found = data.map(tok.map_function(threads=1), batched=True, batch_size=8, **options)
        assert found["input_ids"][:] == expected
        assert found["label"][:] == list(range(50))
    padded = data.with_format("arrow").map(tok.map_function(padding="max_length", max_length=8), batched=True)
    assert padded.with_format("numpy")["input_ids"][:].shape == (50, 8)


def test_datasets_find_results_of_other_processes(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="datasets is not installed: pip install '.[datasets]'")
    (tmp_path / "texts.txt").write_text("bake bread\nthe oven\n")

    def run() -> list[str]:
        command = [sys.executable, "-c", PROGRAM, str(folder), str(tmp_path / "texts.txt"), str(tmp_path / "cache")]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    first = run()
    written = {file: file.stat().st_mtime_ns for file in (tmp_path / "cache").rglob("cache-*.arrow")}
    assert len(written) == 1
    assert run() == first
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "cache").rglob("cache-*.arrow")} == written


def test_datasets_in_the_arrow_format_have_the_same_rows() -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed: pip install '.[datasets]'")
    data = datasets.Dataset.from_dict({"text": list(TEXTS), "number": range(len(TEXTS))})
    for options in ({}, {"padding": "max_length", "max_length": 9, "truncation": True}):
        function = tokenizer().map_function(**options)
        plain = data.map(function, batched=True, batch_size=3)
        found = data.with_format("arrow").map(function, batched=True, batch_size=3)
        assert found.features == plain.features
        assert found.with_format(None)[:] == plain[:]
        again = found.map(function, batched=True)  # columns of these names are replaced
        assert again.with_format(None)[:] == plain[:]
