"""Corpora: reading texts from files, writing rows to files, and that no partial files are left behind."""

from __future__ import annotations

import functools
import gzip
import itertools
import json
import os
import re
import subprocess
import sys
import textwrap
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wordpiece_bert as wb
from small_tokenizer import TEXTS, tokenizer, with_file_settings
from wordpiece_bert._internal.progress import lines_every
from wordpiece_bert.tokenizer.corpus import file_encoder as corpus_encode
from wordpiece_bert.tokenizer.corpus.npy_writer import NpyWriter
from wordpiece_bert.tokenizer.corpus.text_reader import TextReader

pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit blocks to three texts, so that few texts make several blocks."""
    monkeypatch.setattr(corpus_encode, "TextReader", functools.partial(TextReader, block_texts=3))


Placed = tuple[Any, str]


def read_all(reader: TextReader) -> list[Placed]:
    return [(text, block.location(i)) for block in reader for i, text in enumerate(block.texts())]


def read(content: bytes, **options: Any) -> list[Placed]:
    Path("t").write_bytes(content)
    return read_all(TextReader("t", **options))


# --- reading texts


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\nb", ["a", "", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\r", ["a\rb\r"]),
        (b"a\r\r\nb", ["a\r", "b"]),
        (" a\u2028b\x0bc\x0cd\x85 \n".encode(), [" a\u2028b\x0bc\x0cd\x85 "]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
    ],
)
def test_lines_end_at_newline_only(content: bytes, lines: list[str]) -> None:
    assert read(content) == [(line, f"t line {number}") for number, line in enumerate(lines, 1)]


def test_without_separator_a_file_is_one_unchanged_text() -> None:
    assert read(b"a\r\nb\n", separator=None) == [("a\r\nb\n", "t")]
    assert read(b"", separator=None) == [("", "t")]


@pytest.mark.parametrize("separator", ["\n", None])
def test_invalid_utf8_is_reported_with_line_and_offset(separator: str | None) -> None:
    with pytest.raises(wb.WordPieceError, match=r"t: line 3, byte offset 9: not UTF-8: byte 0xe9; it may be") as error:
        read(b"one\ntwo\nx\xe9y\n", separator=separator)
    assert error.type is wb.errors.InputError
    with pytest.raises(wb.WordPieceError, match="UTF-16"):
        read("a\n".encode("utf-16"), separator=separator)


def test_reader_counts_bytes_and_texts() -> None:
    Path("a").write_bytes(b"one\ntwo\n")
    reader = TextReader(["a", Path("a")], block_texts=3)
    assert reader.size == 16
    assert [block.texts() for block in reader] == [["one", "two", "one"], ["two"]]
    assert (reader.bytes_read, reader.count) == (16, 4)


def obvious(content: bytes, separator: str | None, errors: str) -> list[str]:
    """Read everything into memory and split it in Python."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    parts = [content] if separator is None else content.split(separator.encode())
    if separator is not None and not parts[-1]:
        del parts[-1]
    if separator == "\n":
        last = [] if content.endswith(b"\n") else parts[-1:]
        parts = [part.removesuffix(b"\r") for part in parts[: len(parts) - len(last)]] + last
    texts = []
    for part in parts:
        try:
            texts.append(part.decode("utf-8", "replace" if errors == "replace" else "strict"))
        except UnicodeDecodeError:
            if errors == "strict":
                raise
    return texts


SEPARATORS = ["\n", "\n\n", "\r\n", "\0", "ab", "aa", "\u2014", None]
pieces = st.sampled_from(
    [
        b"\n",
        b"\r",
        b"\n\n",
        b"\0",
        b"a",
        b"b",
        b"ab",
        b"\xef\xbb\xbf",
        "\u2014".encode(),
        "\U0001f600".encode(),
        b"\xe2",
        b"\x80",
    ]
)
contents = st.one_of(st.lists(pieces, max_size=20).map(b"".join), st.binary(max_size=20))


@given(st.lists(contents, min_size=1, max_size=3), st.sampled_from(SEPARATORS), st.integers(1, 4))
def test_texts_equal_those_of_a_naive_reader(files: list[bytes], separator: str | None, block_texts: int) -> None:
    magic = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
    files = [content for content in files if not content.startswith(magic)] or [b""]
    # NULs, and UTF-16's mark, make a file UTF-16, unless it begins with the mark of UTF-8.
    decides = (b"\0", b"\xff\xfe", b"\xfe\xff")
    files = [b"\xef\xbb\xbf" * any(mark in content for mark in decides) + content for content in files]
    for i, content in enumerate(files):
        Path(f"f{i}").write_bytes(content)
    names = [f"f{i}" for i in range(len(files))]
    for errors in ("replace", "skip", "strict"):
        reader = TextReader(names, separator=separator, errors=errors, block_texts=block_texts)  # type: ignore[arg-type]
        try:
            expected = [text for content in files for text in obvious(content, separator, errors)]
        except UnicodeDecodeError:
            with pytest.raises(wb.errors.InputError, match="not UTF-8"):
                read_all(reader)
        else:
            assert [text for text, _ in read_all(reader)] == expected
            everything = sum(len(obvious(content, separator, "replace")) for content in files)
            assert reader.count + reader.skipped_count == everything


@given(
    st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=6),
    st.booleans(),
    st.integers(1, 4),
)
def test_fields_equal_those_that_python_reads(pairs: list[tuple[str, str]], ascii_only: bool, block_texts: int) -> None:
    lines = [
        json.dumps({"id": i, "a": {"x": [None, first]}, "b.c": second, "more": {"a": [i]}}, ensure_ascii=ascii_only)
        for i, (first, second) in enumerate(pairs)
    ]
    Path("t.jsonl").write_text("\n\n".join(lines), encoding="utf-8", newline="\n")
    reader = TextReader("t.jsonl", field=("a.x.1", r"b\.c"), block_texts=block_texts)
    assert read_all(reader) == [(pair, f"t.jsonl line {2 * i + 1}") for i, pair in enumerate(pairs)]


@pytest.mark.parametrize("compress", [gzip.compress, functools.partial(pyarrow.compress, codec="zstd", asbytes=True)])
def test_compressed_files_are_read_as_they_were(compress: Any) -> None:
    content = "".join(f"line {i}\n" for i in range(1000)).encode()
    assert read(compress(content)) == read(content)
    Path("t.jsonl.gz").write_bytes(compress(b'{"a": "text"}\n'))
    assert read_all(TextReader("t.jsonl.gz", field="a")) == [("text", "t.jsonl.gz line 1")]
    with pytest.raises(wb.errors.InputError, match=r"^t: "):
        read(compress(content)[:-6])


@pytest.mark.parametrize(
    ("files", "options", "complaint"),
    [
        ([], {}, "files is empty"),
        (["-", "-"], {}, "only once"),
        ("folder", {}, "folder: is a folder"),
        (b"t", {}, "files must be paths, or - for standard input, not bytes: b't'"),
        (["t", 5], {}, "not int: 5"),
        ("t", {"separator": b"\n"}, "separator must be a str"),
        ("t", {"separator": ""}, "the separator is empty"),
        ("t", {"field": ("a", "b", "c")}, "field must be a name, or two names for pairs"),
        ("t", {"field": "a..b"}, "empty key"),
        ("t", {"field": "a", "column": "b"}, "either field, for JSON lines, or column"),
        ("t", {"errors": "ignore"}, "errors must be 'strict', 'replace' or 'skip', not \"ignore\""),
        ("x.jsonl", {}, "x.jsonl: pass the field that holds the texts: field='text'"),
        ("x.ndjson.gz", {"column": "a"}, "field='text'"),
        ("x.parquet", {}, "column='text'"),
        ("-", {"column": "a"}, "a table cannot be read from standard input"),
        ("t", {"column": "a"}, "t: not a Parquet file"),
    ],
)
def test_unreadable_input_is_refused(files: Any, options: dict[str, Any], complaint: str) -> None:
    Path("folder").mkdir()
    for name in ("t", "x.jsonl", "x.ndjson.gz", "x.parquet"):
        Path(name).write_bytes(b"text\n")
    with pytest.raises(wb.errors.InputError, match=re.escape(complaint)):
        read_all(TextReader(files, **options))
    with pytest.raises(wb.errors.InputError, match=re.escape(complaint)):
        tokenizer().encode_files(files, "out.npy", **options)
    assert not list(Path().glob("*out*"))


def test_a_missing_file_raises_file_not_found_error() -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.txt"):
        TextReader("none.txt")
    # It reads ahead, but not by a hundred blocks.
    Path("first").write_text("a\n" * 100)
    Path("gone").touch()
    reader = TextReader(["first", "gone"], block_texts=1)
    Path("gone").unlink()
    with pytest.raises(FileNotFoundError, match="gone") as error:
        read_all(reader)
    assert error.value.filename == "gone"


def test_a_reader_belongs_to_its_process() -> None:
    code = """
        import os, pathlib, wordpiece_bert as wb
        from wordpiece_bert.tokenizer.corpus.text_reader import TextReader
        pathlib.Path("t").write_text("a\\n" * 10)
        blocks = iter(TextReader("t", block_texts=1))
        next(blocks)
        if os.fork() == 0:
            try:
                list(blocks)
            except wb.errors.InputError as error:
                os._exit(7 if "fork" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
        assert len(list(blocks)) == 9
    """
    if hasattr(os, "fork"):
        subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)], check=True, timeout=60)


# --- Parquet

STRINGS = [
    pyarrow.string(),
    pyarrow.large_string(),
    pyarrow.dictionary(pyarrow.int32(), pyarrow.string()),
]
if int(pyarrow.__version__.partition(".")[0]) >= 18:  # pyarrow 17 writes none
    STRINGS.append(pyarrow.string_view())


@pytest.mark.parametrize("kind", STRINGS, ids=str)
def test_columns_of_parquet_are_read(kind: pyarrow.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wordpiece_bert.tokenizer.corpus.parquet.BLOCK_ROWS", 4)
    texts = [*TEXTS, "", "last"]
    column = (
        pyarrow.array(texts, kind)
        if not pyarrow.types.is_dictionary(kind)
        else pyarrow.array(texts).dictionary_encode()
    )
    others = pyarrow.array([f"other {i}" for i in range(len(texts))])
    table = pyarrow.table({"id": range(len(texts)), "text": column, "other": others})
    pyarrow.parquet.write_table(table, "t.parquet", row_group_size=7)
    reader = TextReader(["t.parquet", "t.parquet"], column="text")
    assert read_all(reader) == [(text, f"t.parquet row {i}") for i, text in enumerate(texts, 1)] * 2
    assert reader.bytes_read == reader.size == 2 * Path("t.parquet").stat().st_size
    pairs = TextReader("t.parquet", column=("other", "text"))
    assert [pair for pair, _ in read_all(pairs)] == list(zip(others.to_pylist(), texts, strict=True))


def test_a_null_is_an_error_or_skipped() -> None:
    pyarrow.parquet.write_table(
        pyarrow.table({"a": ["x", None, "y", None], "b": ["1", "2", None, "4"], "n": [1, 2, 3, 4]}), "t"
    )
    with pytest.raises(wb.errors.InputError, match=r"^t: row 2: null"):
        read_all(TextReader("t", column="a"))
    reader = TextReader("t", column="a", errors="skip")
    assert read_all(reader) == [("x", "t row 1"), ("y", "t row 3")]
    assert reader.skipped_count == 2
    assert [pair for pair, _ in read_all(TextReader("t", column=("a", "b"), errors="skip"))] == [("x", "1")]
    with pytest.raises(wb.errors.InputError, match=r"^t: no column 'text'; the columns are 'a', 'b', 'n'"):
        read_all(TextReader("t", column="text"))
    with pytest.raises(wb.errors.InputError, match=r"^t: the column 'n' is int64, not text"):
        read_all(TextReader("t", column="n"))


# --- encoding files


def write_texts(name: str = "texts.txt") -> list[str]:
    texts = [text for text in TEXTS * 3 if "\n" not in text]
    Path(name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return texts


COLUMNS = ("offsets", "word_ids", "sequence_ids", "overflow_to_sample", "n_tokens")
EVERYTHING: dict[str, Any] = {
    f"return_{name}": True for name in ("offsets", "word_ids", "sequence_ids", "overflowing_tokens", "n_tokens")
}
CALLS: list[dict[str, Any]] = [
    {},
    {"add_special_tokens": False, "offset_unit": "byte"},
    {"truncation": True, "max_length": 7, "stride": 2},
    {"truncation": True, "max_length": 7, **EVERYTHING},
    EVERYTHING,
]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("options", CALLS, ids=str)
def test_iter_files_yields_the_rows_of_encode_batch(options: dict[str, Any]) -> None:
    tok, texts = tokenizer(), write_texts()
    batches = list(tok.iter_files("texts.txt", threads=2, **options))
    assert len(batches) == -(-len(texts) // 3)
    expected = tok.encode_batch(texts, **options)
    assert [row.tolist() for batch in batches for row in batch] == expected.to_list()
    np.testing.assert_array_equal(np.concatenate([batch.truncated for batch in batches]), expected.truncated)
    for name in COLUMNS:
        parts = [getattr(batch, name) for batch in batches]
        if getattr(expected, name) is None:
            assert parts == [None] * len(parts)
            continue
        if name == "overflow_to_sample":
            parts = [part + 3 * i for i, part in enumerate(parts)]
        np.testing.assert_array_equal(np.concatenate(parts), getattr(expected, name), err_msg=name)


def written(path: str) -> dict[str, npt.NDArray[Any]]:
    """The contents of a file of any format, as the flat arrays of a batch."""
    output = Path(path)
    if output.suffix == ".npy":
        files = output.parent.glob(f"{output.stem}*.npy")
        return {file.stem.partition(".")[2] or "ids": np.load(file) for file in files}
    if output.suffix == ".jsonl":
        records = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
        columns = {name: [record[name] for record in records] for name in records[0]}
        flat: dict[str, npt.NDArray[Any]] = {"row_offsets": np.cumsum([0, *map(len, columns["ids"])])}
        for name, values in columns.items():
            one_a_token = name in ("ids", "offsets", "word_ids", "sequence_ids")
            joined = list(itertools.chain(*values)) if one_a_token else values
            flat[name] = np.array([-1 if value is None else value for value in joined])
        return flat
    if output.suffix == ".parquet":
        table = pyarrow.parquet.read_table(output)
    else:
        with pyarrow.OSFile(path) as file:
            reader = pyarrow.ipc.open_file(file) if output.suffix == ".arrow" else pyarrow.ipc.open_stream(file)
            table = reader.read_all()
    table = table.combine_chunks()
    arrays = {}
    for name in table.column_names:
        chunk = table.column(name).combine_chunks()
        if isinstance(chunk, pyarrow.ListArray):
            arrays.setdefault("row_offsets", np.asarray(chunk.offsets))
            values = chunk.flatten()
            arrays[name] = np.asarray(values.flatten()).reshape(-1, 2) if name == "offsets" else np.asarray(values)
        else:
            arrays[name] = chunk.to_numpy(zero_copy_only=False)
    return arrays


SUFFIXES = [".npy", ".arrow", ".arrows", ".parquet", ".jsonl"]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("options", CALLS, ids=str)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_encode_files_writes_the_rows_of_encode_batch(suffix: str, options: dict[str, Any]) -> None:
    tok, texts = tokenizer(), write_texts()
    summary = tok.encode_files(["texts.txt"], Path(f"out{suffix}"), show_progress_bar=False, **options)
    batch = tok.encode_batch(texts, **options)
    expected: dict[str, Any] = {"ids": batch.ids, "row_offsets": batch.row_offsets}
    expected |= {name: getattr(batch, name) for name in COLUMNS if getattr(batch, name) is not None}
    if "truncation" in options:
        expected["truncated"] = batch.truncated
    if batch.overflow_to_sample is not None:
        for name in {"truncated", "n_tokens"} & expected.keys():
            expected[name] = expected[name][batch.overflow_to_sample]
    found = written(f"out{suffix}")
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
        assert suffix == ".jsonl" or name == "row_offsets" or found[name].dtype == array.dtype, name
    assert (summary.texts, summary.rows, summary.tokens) == (len(texts), len(batch), len(batch.ids))
    assert summary.bytes == sum(len(text.encode()) for text in texts)
    assert summary.truncated == int(batch.truncated.sum())
    cut = np.flatnonzero(batch.truncated).tolist()
    assert list(summary.truncated_places) == [f"texts.txt line {i + 1}" for i in cut[:20]]
    assert summary.output[0] == Path(f"out{suffix}")
    assert sorted(map(str, [*summary.output, "texts.txt"])) == sorted(os.listdir())


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("dtype", ["uint16", "uint32", "int32", np.int64])
def test_ids_are_of_the_type_that_was_asked_for(suffix: str, dtype: Any) -> None:
    tok, texts = tokenizer(), write_texts()
    tok.encode_files("texts.txt", f"out{suffix}", dtype=dtype)
    ids = written(f"out{suffix}")["ids"]
    np.testing.assert_array_equal(ids, tok.encode_batch(texts).ids)
    assert suffix == ".jsonl" or ids.dtype == dtype


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_column_of_the_ids_has_the_name_that_was_asked_for(suffix: str) -> None:
    tok, _ = tokenizer(), write_texts()
    if suffix == ".npy":
        with pytest.raises(wb.errors.InputError, match="'input_ids' names a column of a table"):
            tok.encode_files("texts.txt", "out.npy", ids_column="input_ids")
        return
    for name, output in (("ids", f"a{suffix}"), ("input_ids", f"b{suffix}")):
        tok.encode_files("texts.txt", output, truncation=True, max_length=4, ids_column=name, return_offsets=True)
    if suffix == ".jsonl":
        assert Path("b.jsonl").read_text().replace('"input_ids"', '"ids"') == Path("a.jsonl").read_text()
    else:
        expected, found = written(f"a{suffix}"), written(f"b{suffix}")
        assert [{"input_ids": "ids"}.get(name, name) for name in found] == list(expected)
        np.testing.assert_array_equal(found["input_ids"], expected["ids"])
    for wrong, message in (("truncated", "another column has this name"), ("", "the name of a column"), (3, "not 3")):
        with pytest.raises(wb.errors.InputError, match=message):
            tok.encode_files("texts.txt", f"c{suffix}", truncation=True, max_length=4, ids_column=wrong)  # type: ignore[arg-type]
    assert not Path(f"c{suffix}").exists()


def test_a_type_too_small_for_the_ids_is_refused() -> None:
    Path("t").write_text("far\n")
    large = wb.Tokenizer.from_vocab(["[UNK]", *(f"t{i}" for i in range(1 << 16))])
    with pytest.raises(wb.errors.InputError, match=r"uint16 holds ids up to 65,535, but the vocabulary has 65,537"):
        large.encode_files("t", "out.npy", dtype="uint16")
    gaps = wb.Tokenizer.from_vocab({"[UNK]": 0, "far": 70_000})
    with pytest.raises(wb.errors.InputError, match="the id 70000 does not fit uint16"):
        gaps.encode_files("t", "out.npy", dtype="uint16")
    for dtype in ("int8", "float32", "no", None):
        with pytest.raises(wb.errors.InputError, match="dtype must be one of 'uint16'"):
            gaps.encode_files("t", "out.npy", dtype=dtype)
    assert os.listdir() == ["t"]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("content", ["the cat\n\nsat\n\n\n", ""])
def test_padded_rows_are_one_array(content: str) -> None:
    tok = tokenizer()
    Path("t").write_text(content)
    options: dict[str, Any] = {"padding": "max_length", "max_length": 5, "truncation": True, "pad_to_multiple_of": 4}
    tok.encode_files("t", "out.npy", dtype="int64", return_offsets=True, return_n_tokens=True, **options)
    texts = content.splitlines()
    expected = tok.encode_batch(texts, return_offsets=True, return_n_tokens=True, **options)
    found = written("out.npy")
    assert found.keys() == {"ids", "offsets", "n_tokens", "truncated"}
    assert found["ids"].dtype == np.int64
    np.testing.assert_array_equal(found["ids"], expected.ids.reshape(-1, 8))
    np.testing.assert_array_equal(found["offsets"], expected.offsets.reshape(-1, 8, 2))  # type: ignore[union-attr]
    np.testing.assert_array_equal(found["n_tokens"], expected.n_tokens)  # type: ignore[arg-type]


def test_rows_longer_than_the_padding_are_an_error() -> None:
    tok = tokenizer()
    Path("t").write_text("a\nb\na b c d e\n")
    with pytest.raises(
        wb.errors.InputError, match=r"^t line 3: 7 tokens, but rows are padded to 4: pass truncation=True"
    ):
        tok.encode_files("t", "out.npy", padding="max_length", max_length=4)
    for longest, options in [(tok, {"padding": True}), (with_file_settings(padding={}), {})]:
        with pytest.raises(wb.errors.InputError, match="files are read in blocks: pass padding='max_length'"):
            longest.encode_files("t", "out.npy", **options)  # type: ignore[arg-type]
    assert os.listdir() == ["t"]


@pytest.mark.parametrize("suffix", SUFFIXES[:4])
def test_no_texts_make_an_empty_result(suffix: str) -> None:
    Path("t").touch()
    summary = tokenizer().encode_files("t", f"out{suffix}", return_offsets=True)
    found = written(f"out{suffix}")
    assert {name: array.shape for name, array in found.items()} == {"ids": (0,), "row_offsets": (1,), "offsets": (0, 2)}
    assert found["ids"].dtype == np.uint32
    assert (summary.texts, summary.rows, summary.tokens) == (0, 0, 0)


def test_pairs_come_from_two_fields_or_columns() -> None:
    tok = tokenizer()
    pairs = [("the cat", "sat"), ("", "on"), ("mat", "")]
    Path("t.jsonl").write_text("".join(json.dumps({"q": q, "a": {"b": a}}) + "\n" for q, a in pairs))
    pyarrow.parquet.write_table(pyarrow.table({"q": [q for q, _ in pairs], "a": [a for _, a in pairs]}), "t.parquet")
    expected = tok.encode_batch(pairs, return_sequence_ids=True)
    for batches in (
        tok.iter_files("t.jsonl", field=("q", "a.b"), return_sequence_ids=True),
        tok.iter_files("t.parquet", column=("q", "a"), return_sequence_ids=True),
    ):
        [batch] = batches
        assert batch.to_list() == expected.to_list()
        np.testing.assert_array_equal(batch.sequence_ids, expected.sequence_ids)  # type: ignore[arg-type]


def test_an_error_in_a_text_names_its_location() -> None:
    Path("t.jsonl").write_text("".join(json.dumps({"a": "a " * 9, "b": "b" * (i != 2)}) + "\n" for i in range(4)))
    with pytest.raises(wb.errors.InputError, match=r"^t.jsonl line 1: .*too short"):
        list(tokenizer().iter_files("t.jsonl", field=("b", "a"), truncation="only_first", max_length=6))


def test_skipped_texts_are_counted() -> None:
    Path("t").write_bytes(b"a\n\xff\n" * 30)
    summary = tokenizer().encode_files("t", "out.npy", errors="skip")
    assert (summary.texts, summary.skipped, len(summary.skipped_reasons)) == (30, 30, 20)
    assert summary.skipped_reasons[1].startswith("t: line 4, byte offset 6: not UTF-8")


@pytest.mark.parametrize(
    ("output", "options", "complaint"),
    [
        ("out.txt", {}, "out.txt: tokens are written as .npy, .arrow, .arrows, .parquet or .jsonl"),
        ("out", {}, "tokens are written as"),
        ("folder.npy", {}, "is a folder"),
        ("none/out.npy", {}, "does not exist"),
        ("out.npy", {"truncation": True}, "needs a max_length"),
        ("out.npy", {"threads": 0}, "threads must be"),
    ],
)
def test_invalid_outputs_are_refused(output: str, options: dict[str, Any], complaint: str) -> None:
    Path("t").write_text("text\n")
    Path("folder.npy").mkdir()
    with pytest.raises(wb.errors.InputError, match=re.escape(complaint)):
        tokenizer().encode_files("t", output, **options)
    assert sorted(os.listdir()) == ["folder.npy", "t"]


def test_without_pyarrow_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    Path("t").write_text("text\n")
    for call in (
        lambda: tokenizer().encode_files("t", "out.parquet"),
        lambda: tokenizer().encode_files("t", "out.arrow"),
        lambda: tokenizer().iter_files("t", column="text"),
    ):
        with pytest.raises(wb.errors.InputError, match=r"needs pyarrow: pip install 'wordpiece-bert\[arrow\]'"):
            call()
    assert os.listdir() == ["t"]


def test_progress_is_shown_on_request(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    write_texts()
    with lines_every(0):
        tokenizer().encode_files("texts.txt", "out.npy", show_progress_bar=True)
        assert re.match(r"100%, 2.6 kB of 2.6 kB, \d+ texts, [\d,]+ tokens/s, 0:00 left\n", capsys.readouterr().err)
        tokenizer().encode_files("texts.txt", "out.npy")
        assert capsys.readouterr().err == ""
    monkeypatch.setattr("wordpiece_bert._internal.progress.BAR_INTERVAL", 0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    tokenizer().encode_files("texts.txt", "out.npy")
    assert "\r100% [########################], 2.6 kB" in capsys.readouterr().err


# --- no partial files


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError, OSError])
def test_an_interruption_keeps_the_old_output_and_nothing_else(
    suffix: str, interruption: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_texts()
    Path(f"out{suffix}").write_bytes(b"old")
    encode, calls = corpus_encode.FileEncoder.encode, itertools.count()

    def third_fails(self: Any, block: Any) -> Any:
        if next(calls) == 3:
            raise interruption
        return encode(self, block)

    monkeypatch.setattr(corpus_encode.FileEncoder, "encode", third_fails)
    with pytest.raises(interruption):
        tokenizer().encode_files("texts.txt", f"out{suffix}", **EVERYTHING)
    assert Path(f"out{suffix}").read_bytes() == b"old"
    assert sorted(os.listdir()) == sorted(["texts.txt", f"out{suffix}"])


@pytest.mark.skipif(os.name == "nt", reason="no limit on the size of files")
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("limit", [10, 2000])
def test_a_full_disk_leaves_nothing(suffix: str, limit: int) -> None:
    Path("t").write_text("a b c d e f g\n" * 300_000)
    code = f"""
        import resource, signal, wordpiece_bert as wb
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write fails, as on a full disk
        tok = wb.Tokenizer.from_vocab(["[UNK]", *"abcdefg"])
        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
        try:
            tok.encode_files("t", "out{suffix}", return_offsets=True)
        except OSError as error:
            print(error.filename)
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)], capture_output=True, encoding="utf-8", check=True
    )
    assert re.fullmatch(rf"out(\.offsets|\.row_offsets)?{re.escape(suffix)}\n", done.stdout), done.stdout
    assert done.stderr == ""
    assert os.listdir() == ["t"]


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as Linux does")
def test_memory_does_not_grow_with_the_corpus() -> None:
    chunk = (" ".join(f"word{i}" for i in range(5000)) + "\n").encode() * 20  # nearly a megabyte
    code = """
        import resource, wordpiece_bert as wb
        tok = wb.Tokenizer.from_vocab(["[UNK]", "word", *(f"##{i}" for i in range(10))])
        tok.encode_files("-", "out.npy", dtype="uint16", threads=2)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
    """

    def peak(megabytes: int) -> int:
        command = [sys.executable, "-c", textwrap.dedent(code)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for _ in range(megabytes):
                process.stdin.write(chunk)
            process.stdin.close()
            mebibytes = int(process.stdout.read())
        Path("out.npy").unlink()
        return mebibytes

    assert peak(80) < peak(20) + 16


# --- writing arrays


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_written_rows_are_read_back(dtype: type) -> None:
    parts = [np.arange(i * 6).reshape(-1, 3).astype(dtype) for i in (1, 0, 7)]
    with NpyWriter(Path("v.npy"), (3,), dtype) as rows:
        rows.begin()
        for part in parts:
            rows.append(part[:, ::-1])
        assert not Path("v.npy").exists()
        rows.commit()
    np.testing.assert_array_equal(np.load("v.npy"), np.concatenate(parts)[:, ::-1])
    content = Path("v.npy").read_bytes()
    assert (rows.bytes, rows.crc32) == (len(content), zlib.crc32(content))
    assert os.listdir() == ["v.npy"]


def test_written_file_has_the_usual_permissions() -> None:
    with NpyWriter(Path("v.npy"), (2,), np.float32) as rows:
        rows.begin()
        rows.commit()
    Path("other").touch()
    assert np.load("v.npy").shape == (0, 2)
    assert Path("v.npy").stat().st_mode == Path("other").stat().st_mode
