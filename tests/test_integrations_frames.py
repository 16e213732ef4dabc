"""Polars, DuckDB, pandas and Hugging Face datasets: one line each, equal to the plain calls."""

from __future__ import annotations

import datetime
import io
import pickle
import re
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tiny_models
from processes import printed
from small_tokenizer import TEXTS, tokenizer
from wordpiece_bert import SentenceEncoder, Tokenizer
from wordpiece_bert.errors import InputError, TruncationWarning

NULLS: list[str | None] = ["the cat", None, "", "a b c d e f g", None]


def ids(texts: list[str | None], **options: Any) -> list[list[int] | None]:
    encode = tokenizer().encode
    return [None if text is None else encode(text, **options).ids for text in texts]


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
    renamed = lazy.select(text.encode_fields(tokenizer(), max_length=4, ids_column="input_ids")).collect(engine=engine)
    assert renamed["text"].struct.fields == ["input_ids", "length", "truncated"]
    cut = found["cut"].struct.unnest()
    expected = ids(chosen, max_length=4)
    assert cut["ids"].to_list() == expected
    assert cut["length"].to_list() == [None if one is None else len(one) for one in expected]
    encode = tokenizer().encode
    assert cut["truncated"].to_list() == [
        None if one is None else encode(one, max_length=4).truncated for one in chosen
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
    short = SentenceEncoder(folder, truncate_dim=3)
    assert frame["text"].wordpiece.embed(short, truncate_dim=8).dtype == pl.Array(pl.Float32, 8)
    with pytest.raises(InputError, match="truncate_dim must be a whole number from 1 to 67"):
        frame["text"].wordpiece.embed(short, truncate_dim=68)
    with pytest.warns(TruncationWarning, match="1 of 2 texts that are not null were truncated .* at index 1"):
        pl.Series(["the cat", None, "bread " * 999]).wordpiece.embed(folder)
    for texts in ([], [None, None]):
        empty = pl.Series("text", texts, pl.String)
        assert empty.wordpiece.embed(folder).dtype == pl.Array(pl.Float32, 67)
        assert empty.wordpiece.encode(tokenizer()).to_list() == texts
        assert empty.wordpiece.encode_fields(tokenizer()).len() == len(texts)


# --- columns of other types


#: Values of types that no library takes for texts.
def test_names_have_the_options_of_an_encoder_in_every_frame(folder: Path) -> None:
    pd, pl, duckdb = (pytest.importorskip(module) for module in ("pandas", "polars", "duckdb"))
    pytest.importorskip("sklearn")
    import wordpiece_bert.integrations.pandas
    import wordpiece_bert.integrations.polars  # noqa: F401
    from wordpiece_bert.integrations.duckdb import register
    from wordpiece_bert.integrations.sklearn import SentenceEmbedder

    options: dict[str, Any] = {"dtype": "int8", "encoder_options": {"truncate_dim": 8}}
    texts = ["bread dough", "a bicycle"]
    expected = SentenceEncoder(folder, dtype="int8", truncate_dim=8).encode(texts)
    found = [pl.Series(texts).wordpiece.embed(folder, **options).to_numpy()]
    lazy = pl.LazyFrame({"a": texts}).select(pl.col("a").wordpiece.embed(folder, **options))
    found += [lazy.collect()["a"].to_numpy(), np.stack(pd.Series(texts).wordpiece.embed(folder, **options))]
    found.append(np.stack(pd.Series(texts).wordpiece.embed_fields(folder, **options)["vector"]))
    connection = duckdb.connect()
    register(connection, model=folder, **options)
    rows = connection.sql("SELECT wordpiece_embed(a) FROM (VALUES ('bread dough'), ('a bicycle')) AS t(a)").fetchall()
    found.append(np.array([row[0] for row in rows], np.float32))
    found.append(SentenceEmbedder(folder, **options).transform(texts))
    for vectors in found:
        np.testing.assert_array_equal(vectors, expected)


OTHERS = {
    "integers": [1, None, 3],
    "floats": [1.5, None, 2.0],
    "booleans": [True, None, False],
    "bytes": [b"a", None, b"b"],
    "lists": [["a", "b"], None, ["c", "d"]],  # the core would take them for pairs
    "dates": [datetime.date(2026, 1, 1), None, datetime.date(2026, 1, 2)],
}


@pytest.mark.parametrize("kind", OTHERS)
def test_a_column_that_is_not_text_is_refused_by_arrow_and_pandas(kind: str, folder: Path) -> None:
    pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    import wordpiece_bert.integrations.pandas  # noqa: F401
    from wordpiece_bert.integrations import arrow

    column = pa.array(OTHERS[kind])
    table = pa.table({"a": ["x"] * 3, "n": column})
    said = re.escape(f"the column 'n' has the type {column.type}")
    for refused in (
        lambda: arrow.encode(table, "n", tokenizer()),
        lambda: arrow.encode(table, "a", tokenizer(), pair="n"),
        lambda: arrow.embed(table, "n", folder),
        lambda: arrow.encode(table.slice(0, 0), "n", tokenizer()),  # also without a row
    ):
        with pytest.raises(InputError, match=said):
            refused()
    with pytest.raises(InputError, match=re.escape(f"texts has the type {column.type}")):
        arrow.encode_texts(column, tokenizer())
    with pytest.raises(InputError, match=re.escape(f"texts has the type {column.type}")):
        arrow.embed_texts(column, folder)
    for series in (pd.Series(OTHERS[kind], name="n"), pd.Series(pd.arrays.ArrowExtensionArray(column), name="n")):
        for refused in (
            lambda series=series: series.wordpiece.encode(tokenizer()),
            lambda series=series: series.wordpiece.embed(folder),
        ):
            with pytest.raises(InputError, match=r"the series 'n' has (the type|values that are no texts)"):
                refused()


@pytest.mark.parametrize("kind", OTHERS)
def test_a_column_that_is_not_text_is_refused_by_polars(kind: str, folder: Path) -> None:
    pl = pytest.importorskip("polars")
    import wordpiece_bert.integrations.polars  # noqa: F401

    frame = pl.DataFrame({"n": OTHERS[kind]})
    said = re.escape(f"the column 'n' has the type {frame.schema['n']}")
    text = pl.col("n").wordpiece
    for expression in (text.encode(tokenizer()), text.encode_fields(tokenizer()), text.embed(folder)):
        for engine in ("in-memory", "streaming"):
            with pytest.raises(InputError, match=said):
                frame.lazy().select(expression).collect(engine=engine)
    with pytest.raises(InputError, match=said):
        frame["n"].wordpiece.encode(tokenizer())


def test_all_columns_of_strings_are_texts(folder: Path) -> None:
    """Of every type that a library has for texts; a column that has nulls alone is one."""
    pa, pd, pl = (pytest.importorskip(name) for name in ("pyarrow", "pandas", "polars"))
    import wordpiece_bert.integrations.pandas
    import wordpiece_bert.integrations.polars  # noqa: F401
    from wordpiece_bert.integrations import arrow

    texts = ["the cat", None, "the cat"]
    plain, expected = pa.array(texts), ids(texts)
    columns = [plain, plain.cast(pa.large_string()), pa.array(texts, pa.string_view()), plain.dictionary_encode()]
    for column in columns:
        assert arrow.encode(pa.table({"a": column}), "a", tokenizer())["ids"].to_pylist() == expected
        assert pd.Series(pd.arrays.ArrowExtensionArray(column)).wordpiece.encode(tokenizer())["length"].sum() == sum(
            len(row) for row in expected if row
        )
    nothing = pa.table({"a": pa.nulls(3)})
    assert arrow.encode(nothing, "a", tokenizer())["ids"].to_pylist() == [None] * 3
    assert arrow.embed(nothing, "a", folder)["vector"].to_pylist() == [None] * 3
    for dtype in (pl.String, pl.Categorical, pl.Enum(["the cat"])):
        frame = pl.DataFrame({"a": pl.Series(texts, dtype=dtype)})
        assert frame.select(pl.col("a").wordpiece.encode(tokenizer()))["a"].to_list() == expected
    assert pl.Series("a", [None, None]).wordpiece.encode(tokenizer()).to_list() == [None, None]
    assert pd.Series(["the cat", "the cat"], dtype="category").wordpiece.encode(tokenizer())["length"].nunique() == 1


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("INTEGER", "1"),
        ("DOUBLE", "1.5::DOUBLE"),
        ("BOOLEAN", "true"),
        ("BLOB", "'a'::BLOB"),
        ("VARCHAR[]", "['a']"),
        ("DATE", "DATE '2026-01-01'"),
    ],
)
def test_a_column_that_is_not_text_is_refused_by_duckdb(kind: str, value: str, folder: Path) -> None:
    """When the statement is bound, before a row is read; the error has the column and its type."""
    duckdb = pytest.importorskip("duckdb")
    from wordpiece_bert.integrations.duckdb import register

    with duckdb.connect() as connection:
        register(connection, tokenizer=tokenizer(), model=folder)
        connection.execute(f'CREATE TABLE t AS SELECT {value} AS "some column"')
        for name in ("encode", "length", "embed"):
            statement = f'SELECT wordpiece_{name}("some column") FROM t'
            with pytest.raises(duckdb.BinderException, match="some column") as caught:
                connection.execute(f"EXPLAIN {statement}")
            assert f"wordpiece_{name}({kind})" in str(caught.value)


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
        with pytest.warns(TruncationWarning, match="^4 texts were truncated to 64 tokens; encode returns which"):
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
        for given, message in (
            ({"model": folder, "max_length": 4}, "max_length, truncation and add_special_tokens are for a tokenizer"),
            ({"tokenizer": tokenizer(), "dtype": "int8"}, "dtype and encoder_options are for a model"),
            ({"tokenizer": tokenizer(), "truncate_dim": 3}, "truncate_dim, dtype and encoder_options are for a model"),
        ):
            with pytest.raises(InputError, match=message):
                register(connection, **given)


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
    renamed = series.wordpiece.encode(tokenizer(), max_length=4, ids_column="input_ids")
    assert renamed.rename(columns={"input_ids": "ids"}).equals(found)
    with pytest.raises(InputError, match="ids_column is 'length', but another column has this name"):
        series.wordpiece.encode(tokenizer(), ids_column="length")
    frame = pd.DataFrame({"text": series})
    frame["vector"] = frame["text"].wordpiece.embed(folder)  # a column, as the other accessors of pandas return
    assert frame["text"].wordpiece.embed(folder).name == "text"
    expected = SentenceEncoder(folder).encode([text for text in NULLS if text is not None])
    fields = series.wordpiece.embed_fields(folder)
    for vectors in (frame["vector"], fields["vector"]):
        assert vectors.isna().tolist() == [text is None for text in NULLS]
        np.testing.assert_array_equal(np.stack(vectors.dropna().tolist()), expected)
    assert fields["truncated"].fillna(False).tolist() == [False] * 5
    long = pd.Series(["the cat", None, "bread " * 999])
    with pytest.warns(TruncationWarning, match="1 of 3 texts were truncated .* at index 2; embed_fields returns which"):
        assert len(long.wordpiece.embed(folder)) == 3
    assert long.wordpiece.embed_fields(folder)["truncated"].tolist() == [False, pd.NA, True]
    assert len(pd.Series([], dtype=object).wordpiece.encode(tokenizer())) == 0
    with pytest.raises(InputError, match="values that are no texts"):
        pd.Series(["a", object()]).wordpiece.encode(tokenizer())
    with pytest.raises(InputError, match="item 1 has a lone surrogate at position 1"):
        pd.Series(["a", "a\ud800"], dtype=object).wordpiece.encode(tokenizer())


@given(st.lists(st.none() | st.text(alphabet="the cat sat", max_size=20), min_size=1, max_size=12), st.booleans())
def test_results_of_pandas_survive_parquet(texts: list[str | None], named: bool) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    import wordpiece_bert.integrations.pandas  # noqa: F401

    index = pd.Index([f"row {i}" for i in range(len(texts))], name="row") if named else None
    series = pd.Series(texts, index=index, dtype="str")
    tok = tokenizer()
    for found in (series.wordpiece.encode(tok, max_length=5), series.wordpiece.embed_fields(static_folder())):
        file = io.BytesIO()
        found.to_parquet(file)
        again = pd.read_parquet(file)
        assert list(again.index) == list(found.index)
        for name in found.columns:
            missing = [text is None for text in texts]
            assert again[name].isna().tolist() == found[name].isna().tolist() == missing
            for value, other in zip(found[name].dropna(), again[name].dropna(), strict=True):
                np.testing.assert_array_equal(value, other)
                assert np.asarray(value).dtype == np.asarray(other).dtype
        if not all(missing):
            assert again.dtypes.equals(found.dtypes)
        arrow_types = pd.read_parquet(file, dtype_backend="pyarrow")
        assert arrow_types.iloc[:, 0].isna().tolist() == missing


@lru_cache
def static_folder() -> Any:
    """An encoder, made once: hypothesis has no fixtures of a module."""
    return SentenceEncoder(tiny_models.make_sentences(Path(tempfile.mkdtemp()) / "sentences"))


def test_rows_of_pandas_share_memory(folder: Path) -> None:
    """A row is a view of all ids or vectors: a column of arrays costs no copy of them."""
    pd = pytest.importorskip("pandas")
    import wordpiece_bert.integrations.pandas  # noqa: F401

    series = pd.Series(["the cat", None, "a b c", ""] * 50)
    for found in (series.wordpiece.encode(tokenizer())["ids"], series.wordpiece.embed(folder)):
        rows = found.dropna().tolist()
        assert all(not row.flags.owndata for row in rows)
        starts = [row.__array_interface__["data"][0] for row in rows]
        assert starts == sorted(starts)
        assert max(starts) - min(starts) <= sum(row.nbytes for row in rows) + 50 * rows[0].nbytes


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
def test_a_call_of_one_text_makes_nested_rows_and_lists_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the page on other libraries says beside `map_function`."""
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    datasets = pytest.importorskip("datasets", reason="datasets is not installed: pip install '.[datasets]'")
    data, tok = datasets.Dataset.from_dict({"text": list(TEXTS)}), tokenizer()
    nested = data.map(lambda row: tok(row["text"]))["input_ids"][:]
    flat = data.map(tok.map_function(), batched=True)["input_ids"][:]
    assert nested == [[row] for row in flat]
    assert data.map(lambda row: tok(row["text"], return_tensors=None))["input_ids"][:] == flat


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

    arguments = folder, tmp_path / "texts.txt", tmp_path / "cache"
    first = printed(PROGRAM, *arguments)
    written = {file: file.stat().st_mtime_ns for file in (tmp_path / "cache").rglob("cache-*.arrow")}
    assert len(written) == 1
    assert printed(PROGRAM, *arguments) == first
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
