"""Arrow columns: reading one equals reading the list of its texts; writing one equals the arrays of the batch."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arrow_producer as producer
import strategies
import wordpiece_bert as wb
from arrow_producer import Column, Columns, again, strings
from small_tokenizer import TEXTS, fields, tokenizer
from wordpiece_bert.errors import InputError

duckdb = pytest.importorskip("duckdb")
na = pytest.importorskip("nanoarrow")
pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

#: Strings of variable length came with NumPy 2.
NUMPY_STRINGS = hasattr(np.dtypes, "StringDType")
COLUMNS = ("ids", "row_offsets", "truncated", "offsets", "word_ids", "sequence_ids", "overflow_to_sample", "n_tokens")
EVERYTHING: dict[str, Any] = {
    f"return_{name}": True for name in ("offsets", "word_ids", "sequence_ids", "n_tokens", "overflowing_tokens")
} | {"truncation": True, "max_length": 7, "stride": 1}
OTHERS = [*TEXTS[3:], *TEXTS[:3]]

STRING_TYPES = {
    "string": pa.string(),
    "large_string": pa.large_string(),
    "string_view": pa.string_view(),
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
    "dictionary of large_string": pa.dictionary(pa.uint8(), pa.large_string()),
    "dictionary with wide indices": pa.dictionary(pa.int64(), pa.string()),
}


def assert_same(ours: wb.RaggedBatch, theirs: wb.RaggedBatch) -> None:
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)


def assert_reads(column: Callable[[], Any], texts: list[Any], *, split: bool = False) -> None:
    """Every call answers for a column as for the list; `column` makes a new one for each."""
    tok = tokenizer()
    options: dict[str, Any] = EVERYTHING | {"is_split_into_words": split}
    assert_same(tok.encode_batch(column(), **options), tok.encode_batch(texts, **options))
    some = {"truncation": True, "max_length": 6, "is_split_into_words": split}
    theirs = tok.encodings(texts, **some)
    for ours in (tok.encodings(column(), **some), tok.encodings(column(), threads=3, **some)):
        assert [fields(encoding) for encoding in ours] == [fields(encoding) for encoding in theirs]
    ours = tok(column(), padding=True, is_split_into_words=split)
    if split and not texts:  # an empty list is one text without words, an empty column has no text
        assert ours["input_ids"].shape == (0, 0)
        return
    theirs = tok(texts, padding=True, is_split_into_words=split)
    assert ours["input_ids"].tolist() == theirs["input_ids"].tolist()
    assert ours["token_type_ids"].tolist() == theirs["token_type_ids"].tolist()
    assert [ours.tokens(i) for i in range(len(texts))] == [theirs.tokens(i) for i in range(len(texts))]


def cast(texts: list[str | None], kind: Any) -> Any:
    plain = pa.array(texts, pa.string())
    if kind == pa.string_view():
        return pa.array(texts, kind)  # pyarrow 17 has no cast to it
    if pa.types.is_dictionary(kind):
        return plain.cast(kind.value_type).dictionary_encode().cast(kind)
    return plain.cast(kind)


# --- columns that libraries make


@pytest.mark.parametrize("kind", STRING_TYPES.values(), ids=STRING_TYPES)
def test_strings_of_every_type(kind: Any) -> None:
    whole = cast(TEXTS, kind)
    assert_reads(lambda: whole, TEXTS)
    assert_reads(lambda: whole.slice(2, 4), TEXTS[2:6])
    assert_reads(lambda: whole.slice(3), TEXTS[3:])
    assert_reads(lambda: whole.slice(0, 0), [])
    assert_reads(lambda: cast([], kind), [])
    parts = [whole.slice(0, 3), whole.slice(0, 0), whole.slice(3, 1), whole.slice(4)]
    assert_reads(lambda: pa.chunked_array(parts), TEXTS)
    assert_reads(lambda: pa.chunked_array([], type=kind), [])
    assert_reads(lambda: cast(["", "", ""], kind), ["", "", ""])


def frame() -> Any:
    return pa.table({"text": TEXTS})


def query(frame: Any) -> Any:
    """A query over the argument, which duckdb finds by its name."""
    return duckdb.connect().sql("SELECT text FROM frame")


LIBRARIES: dict[str, Callable[[], Any]] = {
    "pyarrow.RecordBatch": lambda: frame().to_batches()[0],
    "pyarrow.Table": frame,
    "pyarrow.RecordBatchReader": lambda: frame().to_reader(),
    "polars.Series": lambda: pl.Series(TEXTS),
    "polars.Series in parts": lambda: pl.concat([pl.Series(TEXTS[:2]), pl.Series(TEXTS[2:])], rechunk=False),
    "polars.Series, a slice": lambda: pl.Series(["x", *TEXTS, "y"])[1:-1],
    "polars.Series of Categorical": lambda: pl.Series(TEXTS).cast(pl.Categorical),
    "polars.Series of Enum": lambda: pl.Series(TEXTS).cast(pl.Enum(TEXTS)),
    "polars.DataFrame": lambda: pl.DataFrame({"text": TEXTS}),
    "duckdb": lambda: query(frame()),
    "pandas.Series": lambda: pd.Series(TEXTS),
    "pandas.Series of pyarrow": lambda: pd.Series(TEXTS, dtype=pd.ArrowDtype(pa.string())),
    "pandas.Series of Python's strings": lambda: pd.Series(TEXTS, dtype=pd.StringDtype("python")),
    "pandas.Series of object": lambda: pd.Series(TEXTS, dtype=object),
    "pandas.Series of categories": lambda: pd.Series(TEXTS, dtype="category"),
    "pandas.Series with an index": lambda: pd.Series(TEXTS, index=range(8, 0, -1)),
    "pandas.Index": lambda: pd.Index(TEXTS),
    "pandas.DataFrame": lambda: pd.DataFrame({"text": TEXTS}),
    "nanoarrow.Array": lambda: na.Array(pa.chunked_array([TEXTS[:3], TEXTS[3:]])),
    "nanoarrow.ArrayStream": lambda: na.ArrayStream(pa.chunked_array([TEXTS])),
    "nanoarrow.c_array": lambda: na.c_array(TEXTS, na.string()),
}


@pytest.mark.parametrize("make", LIBRARIES.values(), ids=LIBRARIES)
def test_columns_of_other_libraries(make: Callable[[], Any]) -> None:
    assert_reads(make, TEXTS)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pa.table({"a": TEXTS, "b": OTHERS}),
        lambda: pa.table({"a": pa.array(TEXTS).dictionary_encode(), "b": pa.array(OTHERS, pa.string_view())}),
        lambda: pa.StructArray.from_arrays([pa.array(TEXTS), pa.array(OTHERS, pa.large_string())], ["a", "b"]),
        lambda: pa.StructArray.from_arrays(
            [pa.array(["x", *TEXTS, "y"]), pa.array(["z", *OTHERS, "é"])], ["a", "b"]
        ).slice(1, len(TEXTS)),
        lambda: pa.StructArray.from_arrays(
            [pa.array(["x", "y", *TEXTS]).slice(2), pa.array(["z", *OTHERS]).slice(1)], ["a", "b"]
        ),
        lambda: pa.array([list(pair) for pair in zip(TEXTS, OTHERS, strict=True)]),
        lambda: pa.array([["x", "y"], *map(list, zip(TEXTS, OTHERS, strict=True))], pa.large_list(pa.string())).slice(
            1
        ),
        lambda: pa.array([["x", "y"], *map(list, zip(TEXTS, OTHERS, strict=True))], pa.list_(pa.string(), 2)).slice(1),
        lambda: pl.DataFrame({"a": TEXTS, "b": OTHERS}),
        lambda: pl.DataFrame({"a": TEXTS, "b": OTHERS}).to_struct("pair"),
        lambda: pd.DataFrame({"a": TEXTS, "b": OTHERS}),
        lambda: pd.Series(list(zip(TEXTS, OTHERS, strict=True))),
    ],
)
def test_pairs(make: Callable[[], Any]) -> None:
    assert_reads(make, list(zip(TEXTS, OTHERS, strict=True)))


WORDS = [["new", "york"], [], ["Unwanted", "", "café's mat"], ["a"]]
MORE_WORDS = [["the"], ["cat"], [], ["b", "c"]]


@pytest.mark.parametrize("lists", [pa.ListArray, pa.LargeListArray])
@pytest.mark.parametrize("kind", [*STRING_TYPES.values()], ids=STRING_TYPES)
def test_words(lists: Any, kind: Any) -> None:
    words = cast([word for text in [["x", "y"], *WORDS] for word in text], kind)
    whole = lists.from_arrays([0, 2, 4, 4, 7, 8], words)
    assert_reads(lambda: whole.slice(1), WORDS, split=True)
    assert_reads(lambda: pa.chunked_array([whole.slice(1, 2), whole.slice(3)]), WORDS, split=True)
    assert_reads(lambda: pa.table({"words": whole}).slice(1), WORDS, split=True)


@pytest.mark.parametrize("split", [True, False])
def test_empty_columns_of_unknown_type(split: bool) -> None:
    for make in (lambda: pa.array([]), lambda: pl.Series([]), lambda: pa.chunked_array([pa.array([])] * 3)):
        assert_reads(make, [], split=split)
    with pytest.raises(InputError, match=r"^item 0 is null"):
        tokenizer().encode_batch(pa.nulls(2), is_split_into_words=split)


def test_pairs_of_words() -> None:
    both = list(zip(WORDS, MORE_WORDS, strict=True))
    assert_reads(lambda: pa.table({"a": WORDS, "b": MORE_WORDS}), both, split=True)
    assert_reads(lambda: pa.array(both, pa.list_(pa.list_(pa.string()))), both, split=True)
    assert_reads(lambda: pl.DataFrame({"a": WORDS, "b": MORE_WORDS}), both, split=True)
    assert_reads(
        lambda: pa.array([["a", "b"], ["c", "d"]], pa.list_(pa.string(), 2)), [["a", "b"], ["c", "d"]], split=True
    )


def test_second_texts_in_a_separate_column() -> None:
    tok = tokenizer()
    expected = tok(TEXTS, OTHERS, padding=True)["input_ids"].tolist()
    firsts = [TEXTS, pa.array(TEXTS), pl.Series(TEXTS), np.array(TEXTS), pa.table({"a": TEXTS})]
    seconds = [OTHERS, pa.array(OTHERS), pl.Series(OTHERS), np.array(OTHERS), pa.table({"b": OTHERS})]
    for first in firsts:
        for second in seconds:
            assert tok(first, second, padding=True)["input_ids"].tolist() == expected
    words = tok(WORDS, MORE_WORDS, padding=True, is_split_into_words=True)["input_ids"].tolist()
    assert tok(pa.array(WORDS), MORE_WORDS, padding=True, is_split_into_words=True)["input_ids"].tolist() == words
    assert tok(WORDS, pa.array(MORE_WORDS), padding=True, is_split_into_words=True)["input_ids"].tolist() == words
    with pytest.raises(InputError, match="batch length of `text`: 8 does not match batch length of `text_pair`: 1"):
        tok(pa.array(TEXTS), pa.array(["a"]))


def test_the_words_of_one_text_may_be_an_array() -> None:
    tok = tokenizer()
    expected = tok.encode(["new", "york"], is_split_into_words=True)
    for words in (pa.array(["new", "york"]), pl.Series(["new", "york"]), np.array(["new", "york"])):
        assert tok.encode(words, is_split_into_words=True) == expected
        assert tok.encodings([words], is_split_into_words=True) == [expected]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_the_number_of_threads_changes_nothing(threads: int) -> None:
    tok, texts = tokenizer(), TEXTS * 300
    column = pa.chunked_array([pa.array(texts[i : i + 700]) for i in range(0, len(texts), 700)])
    assert_same(tok.encode_batch(column, threads=threads, **EVERYTHING), tok.encode_batch(texts, **EVERYTHING))


# --- random columns


@st.composite
def columns(draw: st.DrawFn, items: st.SearchStrategy[Any]) -> tuple[list[str | None], Any]:
    """Texts, and the same as a column of a random type, cut into random parts out of longer arrays."""
    kind = draw(st.sampled_from(list(STRING_TYPES.values())))
    parts, texts = [], []
    for _ in range(draw(st.integers(0, 4))):
        part = draw(st.lists(items, max_size=5))
        before, behind = draw(st.integers(0, 9)), draw(st.integers(0, 2))
        whole = cast([*["x", None, "é"][:before], *["y"] * (before - 3), *part, *[None] * behind], kind)
        parts.append(whole.slice(before, len(part)))
        texts += part
    return texts, pa.chunked_array(parts, type=kind)


@given(columns(strategies.texts))
def test_a_column_encodes_as_the_list_of_its_texts(drawn: tuple[list[str], Any]) -> None:
    texts, column = drawn
    tok = tokenizer()
    assert_same(tok.encode_batch(column, **EVERYTHING), tok.encode_batch(texts, **EVERYTHING))
    assert tok.encodings(pl.Series(column)) == tok.encodings(texts)


@given(columns(st.none() | strategies.texts))
def test_an_error_names_the_first_null(drawn: tuple[list[str | None], Any]) -> None:
    texts, column = drawn
    tok = tokenizer()
    if None in texts:
        with pytest.raises(InputError, match=f"^item {texts.index(None)} is null: fill nulls first"):
            tok.encode_batch(column)
    else:
        assert tok.encode_batch(column).to_list() == tok.encode_batch(texts).to_list()


@given(st.lists(st.none() | st.lists(st.none() | strategies.texts, max_size=3), max_size=5), st.integers(0, 2))
def test_a_column_of_words_encodes_as_the_lists(texts: list[Any], start: int) -> None:
    tok = tokenizer()
    column = pa.array(texts, pa.list_(pa.string())).slice(start)
    texts = texts[start:]
    wrong = [
        f"item {i} is null" if words is None else f"item {i}, word {words.index(None)} is null"
        for i, words in enumerate(texts)
        if words is None or None in words
    ]
    if wrong:
        with pytest.raises(InputError, match=f"^{wrong[0]}"):
            tok.encode_batch(column, is_split_into_words=True)
    else:
        options: dict[str, Any] = EVERYTHING | {"is_split_into_words": True}
        assert_same(tok.encode_batch(column, **options), tok.encode_batch(texts, **options))


@given(st.lists(strategies.texts, max_size=6), st.integers(0, 3))
def test_numpy_strings_encode_as_the_list(texts: list[str], start: int) -> None:
    tok = tokenizer()
    held = np.array(texts, dtype=np.str_)  # which drops zeros at the end
    expected = tok.encode_batch(held.tolist(), **EVERYTHING)
    columns = [held, held.astype(object), held.astype(held.dtype.newbyteorder())]
    if NUMPY_STRINGS:
        columns.append(held.astype(np.dtypes.StringDType()))
    for column in columns:
        assert_same(tok.encode_batch(column, **EVERYTHING), expected)
    assert tok.encodings(held[start:]) == tok.encodings(held[start:].tolist())
    assert tok.encodings(held[::-2]) == tok.encodings(held[::-2].tolist())


# --- refused columns


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array(["a", None, None]), "item 1 is null: fill nulls first (fill_null, fillna), or drop them"),
        (pa.array([None, None]), "item 0 is null"),
        (pa.chunked_array([["a", "b"], ["c", None]]), "item 3 is null"),
        (pl.Series(["a", "b", None]), "item 2 is null"),
        (pd.Series(["a", None]), "item 1 is null"),
        (pa.DictionaryArray.from_arrays([0, 1], ["a", None]), "item 1 is null"),
        (pa.DictionaryArray.from_arrays([0, None], ["a", "b"]), "item 1 is null"),
        (pa.array([{"a": "x", "b": "y"}, None]), "item 1 is null"),
        (pa.array([{"a": "x", "b": "y"}, {"a": "x", "b": None}]), "item 1, second text is null"),
        (pa.array([["x", "y"], ["x", None]]), "item 1, second text is null"),
        (pa.array([["x", "y"], ["x"]]), "item 1 is a list of 1 texts; a pair has two texts; for a list of words"),
        (pa.array([1, 2]), "text is an Arrow column of int64; a batch is a column of strings (string, large_string"),
        (pa.array([], pa.int8()), "text is an Arrow column of int8"),
        (pa.array([b"a"]), "text is an Arrow column of binary"),
        (pa.array([[1]]), "text is an Arrow column of list<int64>"),
        (pa.array([[["a"]]]), "text is an Arrow column of list<list<string>>"),
        (pa.array([[[[[["a"]]]]]]), "text is an Arrow column of list<list<"),
        (pa.array([1]).dictionary_encode(), "text is an Arrow column of a dictionary of int64"),
        (pa.RunEndEncodedArray.from_arrays([2], ["a"]), "text is an Arrow column of run_end_encoded"),
        (
            pa.table({"a": ["x"], "b": ["y"], "c": ["z"]}),
            "text is a table of 3 columns (a, b, c); choose one column of str",
        ),
        (pa.table({"a": ["x"], "b": [1]}), "text is an Arrow column of struct<a: string, b: int64>"),
        (pa.table({}), "text is a table of 0 columns ()"),
        (pl.Series([1.5]), "text is an Arrow column of float64"),
    ],
    ids=str,
)
def test_columns_of_other_types_are_refused(column: Any, message: str) -> None:
    tok = tokenizer()
    for call in (tok.encode_batch, tok.encodings, tok):
        with pytest.raises(InputError) as raised:
            call(column)
        assert str(raised.value).startswith(message)


def test_words_and_texts_are_not_confused() -> None:
    tok = tokenizer()
    message = "text is an Arrow column of string; a batch is a column of lists of strings, for is_split_into_words=True"
    for call in (tok.encode_batch, tok.encodings, tok):
        with pytest.raises(InputError, match=message):
            call(pa.array(["a"]), is_split_into_words=True)
    with pytest.raises(InputError, match=r"^text is a table of 2 columns \(a, b\); choose one column of strings"):
        tok(pa.table({"a": ["x"], "b": ["y"]}), ["z"])
    with pytest.raises(InputError, match=r"^text_pair is an Arrow column of list<string>"):
        tok(["z"], pa.array([["x", "y"]]))
    with pytest.raises(InputError, match=r"^item 1, second text is null"):
        tok(["z", "y"], pa.array(["x", None]))


def test_other_collections_with_items_that_are_not_texts_are_refused() -> None:
    tok = tokenizer()
    with pytest.raises(InputError, match=r"^item 1 is None"):
        tok.encode_batch(pd.Series(["a", None], dtype=object))
    if NUMPY_STRINGS:
        with pytest.raises(InputError, match=r"^item 1 is float nan"):
            tok.encode_batch(np.array(["a", np.nan], dtype=np.dtypes.StringDType(na_object=np.nan)))
    with pytest.raises(InputError, match=r"^item 0 is bytes b'a'"):
        tok.encode_batch(np.array([b"a"]))
    with pytest.raises(InputError, match=r"^item 1 has a lone surrogate, '\\udc80', at position 0"):
        tok.encode_batch(np.array(["a", "\udc80"]))
    with pytest.raises(InputError, match=r"^text is str_ .*a batch is a list of texts"):
        tok.encode_batch(np.str_("a"))
    for kind in (str, list, pa.Array, pl.Series):
        with pytest.raises(InputError, match=r"^text is \w+ <class .*a batch is a list of texts"):
            tok.encode_batch(kind)
    with pytest.raises(InputError, match=r"^text is ndarray .*a batch is a list of texts"):
        tok.encode_batch(np.array("a"))
    with pytest.raises(InputError, match=r"^text is Row .*a batch is a list of texts"):
        tok.encode_batch(
            type(
                "Row", (), {"keys": lambda _: ["a"], "__getitem__": lambda *_: "b", "__iter__": lambda _: iter(["a"])}
            )()
        )


def test_an_object_that_fails_to_pass_on_its_column() -> None:
    class Failing:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            message = "the library is not there"
            raise ImportError(message)

    class Listed(Failing):
        def tolist(self) -> list[str]:
            return ["a"]

    with pytest.raises(
        InputError, match="does not pass its columns on: ImportError: the library is not there"
    ) as raised:
        tokenizer().encode_batch(Failing())
    assert isinstance(raised.value.__cause__, ImportError)
    assert tokenizer().encode_batch(Listed()).to_list() == tokenizer().encode_batch(["a"]).to_list()


# --- ownership of memory


def test_a_column_is_released_once_and_as_soon_as_it_is_unused() -> None:
    tok = tokenizer()
    before = dict(producer.RELEASED)
    tok.encode_batch(Columns(again(b"u"), [strings(b"a"), strings(b"b")]))
    assert {kind: n - before[kind] for kind, n in producer.RELEASED.items()} == {"schema": 1, "array": 2, "stream": 1}
    before = dict(producer.RELEASED)
    encodings = tok.encodings(Column(again(b"u"), strings(b"a b c d e f", b"a")), truncation=True, max_length=4)
    assert producer.RELEASED["array"] == before["array"]
    assert [w.tokens[1:-1] for w in encodings[0].overflowing] == [["c", "d"], ["e", "f"]]
    del encodings[0]
    gc.collect()
    assert producer.RELEASED["array"] == before["array"] + 1


def test_a_reader_may_outlive_the_batch() -> None:
    batch = tokenizer().encode_batch(TEXTS, **EVERYTHING)
    rows, alive = batch.to_list(), weakref.ref(batch.ids)
    readers = [pa.array(batch), pl.Series(batch), pa.table(batch.to_arrow_table())]
    unread = (batch.__arrow_c_array__(), batch.to_arrow_table().__arrow_c_stream__(), batch.__arrow_c_schema__())
    del batch
    gc.collect()
    assert alive() is not None
    assert readers[0].to_pylist() == readers[1].to_list() == readers[2]["ids"].to_pylist() == rows
    del unread, readers[2], readers[0]
    gc.collect()
    assert alive() is not None
    # The last reader goes on another thread.
    thread = threading.Thread(target=readers.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert alive() is None


def test_no_references_leak() -> None:
    batch = tokenizer().encode_batch(TEXTS, **EVERYTHING)
    counted = (batch.ids, batch.row_offsets, batch.offsets, batch.word_ids, batch.overflow_to_sample)
    before = [sys.getrefcount(value) for value in counted]
    for _ in range(3):
        pa.array(batch)
        pa.table(batch.to_arrow_table())
        batch.__arrow_c_array__()
        batch.to_arrow_table().__arrow_c_stream__()
    gc.collect()
    assert [sys.getrefcount(value) for value in counted] == before


# --- batches as columns


def test_ids_are_a_column_of_lists() -> None:
    batch = tokenizer().encode_batch(TEXTS)
    column = pa.array(batch)
    column.validate(full=True)
    assert str(column.type) == str(pa.DataType._import_from_c_capsule(batch.__arrow_c_schema__()))
    assert str(column.type) == "large_list<item: uint32>"
    assert column.to_pylist() == batch.to_list()
    assert column.values.buffers()[1].address == batch.ids.ctypes.data
    assert column.buffers()[1].address != batch.row_offsets.ctypes.data, "what a reader follows is copied"
    assert pl.Series(batch).to_list() == pl.from_arrow(batch).to_list() == batch.to_list()
    assert na.Array(batch).to_pylist() == batch.to_list()
    assert batch.to_arrow().equals(column)


@given(st.lists(strategies.texts, max_size=5), st.sampled_from(["return_overflowing_tokens", "return_offsets"]))
def test_a_table_has_all_requested_fields(texts: list[str], less: str) -> None:
    batch = tokenizer().encode_batch(texts, **EVERYTHING | {less: False})
    made = batch.to_arrow_table()
    table = pa.table(made)
    table.validate(full=True)
    assert table.column_names == made.column_names
    assert len(table) == len(made) == len(batch)
    assert repr(made) == f"ArrowTable({len(batch)} rows: {', '.join(made.column_names)})"
    rows = range(len(batch)) if batch.overflow_to_sample is None else batch.overflow_to_sample.tolist()
    expected: dict[str, Any] = {"ids": batch.to_list()}
    cut = list(zip(batch.row_offsets[:-1], batch.row_offsets[1:], strict=True))
    if batch.offsets is not None:
        expected["offsets"] = [batch.offsets[a:b].tolist() for a, b in cut]
    for name, flat in (("word_ids", batch.word_ids), ("sequence_ids", batch.sequence_ids)):
        assert flat is not None
        expected[name] = [[None if number < 0 else number for number in flat[a:b].tolist()] for a, b in cut]
    if batch.overflow_to_sample is not None:
        expected["overflow_to_sample"] = list(rows)
    assert batch.n_tokens is not None
    expected["n_tokens"] = [batch.n_tokens.tolist()[i] for i in rows]
    expected["truncated"] = [batch.truncated.tolist()[i] for i in rows]
    assert table.to_pydict() == expected
    assert pa.record_batch(made).to_pydict() == expected
    assert pl.DataFrame(made).to_dict(as_series=False) == expected


def test_a_table_shares_the_memory_of_the_batch() -> None:
    batch = tokenizer().encode_batch(TEXTS, **EVERYTHING)
    table = pa.record_batch(batch.to_arrow_table())
    for name in ("ids", "word_ids", "sequence_ids"):
        assert table[name].values.buffers()[1].address == getattr(batch, name).ctypes.data
    assert table["offsets"].values.values.buffers()[1].address == batch.offsets.ctypes.data  # type: ignore[union-attr]
    assert table["overflow_to_sample"].buffers()[1].address == batch.overflow_to_sample.ctypes.data  # type: ignore[union-attr]


def test_duckdb_reads_a_table() -> None:
    batch = tokenizer().encode_batch(TEXTS, **EVERYTHING)
    made = batch.to_arrow_table()  # duckdb finds it by its name
    found = duckdb.connect().sql("SELECT count(*), sum(len(ids)), sum(list_sum(ids)) FROM made").fetchall()
    assert found == [(len(made), len(batch.ids), batch.ids.sum())]


def test_a_table_omits_fields_that_were_not_requested() -> None:
    made = tokenizer().encode_batch([]).to_arrow_table()
    assert made.column_names == ["ids", "truncated"]
    assert pa.table(made).to_pydict() == {"ids": [], "truncated": []}


@given(st.lists(strategies.texts, min_size=1, max_size=6), st.integers(0, 7))
def test_numpy_strings_may_stand_at_any_address(texts: list[str], offset: int) -> None:
    aligned = np.array(texts, dtype=np.str_)
    memory = np.empty(offset + aligned.nbytes, dtype=np.uint8)
    memory[offset:] = np.frombuffer(aligned.tobytes(), dtype=np.uint8)
    column = memory[offset:].view(aligned.dtype)
    assert column.flags.c_contiguous
    tok = tokenizer()
    assert tok.encode_batch(column).to_list() == tok.encode_batch(aligned.tolist()).to_list()


def misaligned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy of an array whose address is not a multiple of its item size."""
    memory = np.empty(array.nbytes + 1, dtype=np.uint8)
    memory[1:] = np.frombuffer(array.tobytes(), dtype=np.uint8)
    copy = memory[1:].view(array.dtype)
    assert copy.flags.c_contiguous
    assert not copy.flags.aligned
    return copy


def test_flags_may_have_any_byte() -> None:
    truncated = np.array([0, 1, 2, 255, 0, 128, 3, 0, 64], dtype=np.uint8).view(np.bool_)
    batch = wb.RaggedBatch(ids=np.arange(9, dtype=np.uint32), row_offsets=np.arange(10), truncated=truncated)
    assert pa.table(batch.to_arrow_table())["truncated"].to_pylist() == [
        False, True, True, True, False, True, True, False, True,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"ids": misaligned(np.arange(3, dtype=np.uint32))}, "ids is not a contiguous, aligned array"),
        ({"row_offsets": misaligned(np.array([0, 3]))}, "row_offsets must be a contiguous array int64"),
        ({"word_ids": misaligned(np.arange(3, dtype=np.int32))}, "word_ids is not a contiguous, aligned array"),
        ({"ids": np.arange(3, dtype=np.int16)}, "ids is not a contiguous, aligned array of one of the types"),
        ({"ids": np.arange(6, dtype=np.uint32)[::2]}, "ids is not a contiguous, aligned array"),
        ({"ids": [1, 2, 3]}, "ids is not a contiguous, aligned array"),
        ({"ids": np.arange(2, dtype=np.uint32)}, "ids has 2 items, but row_offsets requires 3"),
        ({"row_offsets": np.array([0, 2, 1, 3])}, "row_offsets must be a contiguous array int64"),
        ({"row_offsets": np.array([-1, 3])}, "row_offsets must be"),
        ({"row_offsets": np.array([], dtype=np.int64)}, "row_offsets must be"),
        ({"row_offsets": np.array([0, 3], dtype=np.int32)}, "row_offsets must be"),
        ({"row_offsets": [0, 3]}, "row_offsets must be"),
        ({"truncated": np.array([False, True])}, "truncated has 2 items, but row_offsets requires 1"),
        ({"offsets": np.zeros((2, 2), dtype=np.int64)}, "offsets has 2 items, but row_offsets requires 3"),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(arrays: dict[str, Any], message: str) -> None:
    usual = {"ids": np.arange(3, dtype=np.uint32), "row_offsets": np.array([0, 3]), "truncated": np.array([False])}
    assert pa.table(wb.RaggedBatch(**usual).to_arrow_table())["ids"].to_pylist() == [[0, 1, 2]]
    batch = wb.RaggedBatch(**usual | arrays)
    for passed_on in (batch.to_arrow_table().__arrow_c_stream__, batch.to_arrow_table().__arrow_c_array__):
        with pytest.raises(InputError, match=message):
            passed_on()


def test_a_lazy_frame_must_be_collected() -> None:
    tok = tokenizer()
    lazy = pl.LazyFrame({"text": TEXTS})
    for call in (tok.encode_batch, tok.encodings, tok):
        with pytest.raises(InputError, match=r"collect\(\)"):
            call(lazy)
