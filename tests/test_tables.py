"""Columns of tables: what is read of CSV and TSV is what Python's csv reads, and every command reads it alike."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wordpiece_bert as wb
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.data import read_columns
from wordpiece_bert.tokenizer.corpus.text_reader import TextReader

#: What CSV is made of, and a character of several bytes.
CHARACTERS = 'ab",\n\r\t é'
FORMS = {"csv": {"delimiter": ",", "quoting": csv.QUOTE_MINIMAL}, "tsv": {"delimiter": "\t", "quoting": csv.QUOTE_NONE}}


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the files of property tests."""
    return tmp_path_factory.mktemp("tables")


def texts_of(path: Path | str, column: str | tuple[str, str], **options: object) -> list[object]:
    """Return the texts of a column."""
    return [text for block in TextReader(path, column=column, **options) for text in block.texts()]  # type: ignore[arg-type]


def by_python(text: str, form: str, column: str) -> list[str] | None:
    """Return the texts of a column as Python's csv reads them; None for a table that is refused."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, **FORMS[form])  # type: ignore[arg-type]
    try:
        header, *rows = [row for row in reader if row] or [[column]]
    except csv.Error:
        return None
    if header.count(column) != 1:
        return None
    at = header.index(column)
    if any(len(row) > len(header) or len(row) <= at for row in rows):
        return None
    return [row[at] for row in rows]


@given(
    body=st.text(CHARACTERS, max_size=40),
    header=st.sampled_from(["a,b\n", "b\r\n", '"a","b"\r', "a\tb\n", "\nb,\n", "b,b\n", '"b\n', ""]),
    form=st.sampled_from(["csv", "tsv"]),
    most=st.sampled_from([None, 1, 2]),
)
def test_any_file_is_read_as_python_reads_it(folder: Path, body: str, header: str, form: str, most: int | None) -> None:
    path = folder / f"t.{form}"
    path.write_bytes((header + body).encode())
    expected = by_python(header + body, form, "b")
    if expected is None:
        with pytest.raises(InputError):
            texts_of(path, "b", block_texts=most)
    else:
        assert texts_of(path, "b", block_texts=most) == expected


@given(
    # Python's csv does not quote \r before a line end of \n, and cannot read it back itself.
    cells=st.lists(st.tuples(*[st.text(CHARACTERS.replace("\r", ""), max_size=6)] * 3), max_size=6),
    end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
)
def test_a_table_that_python_writes_is_read_back(
    folder: Path, cells: list[tuple[str, str, str]], end: str, quoting: int
) -> None:
    path = folder / "t.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator=end, quoting=quoting)  # type: ignore[arg-type]
        writer.writerows([("id", "text", "label"), *cells])
    assert texts_of(path, "text") == [text for _, text, _ in cells]
    assert texts_of(path, ("label", "id")) == [(label, id_) for id_, _, label in cells]
    if cells:
        table = read_columns(path, ["label", "id", "text"])  # any number of columns, in any order
        assert table == {name: [row[i] for row in cells] for name, i in (("label", 2), ("id", 0), ("text", 1))}


@pytest.mark.parametrize("suffix", [".csv", ".CSV", ".csv.gz"])
def test_locations_are_lines_of_the_file(suffix: str) -> None:
    content = b'\xef\xbb\xbfid,text\n1,"two\nlines"\n\n2,last\n3,"never closed\n'
    path = Path(f"t{suffix}")
    path.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
    with pytest.raises(InputError, match=r"line 6, byte offset 33: the quotation mark .* never closed"):
        texts_of(path, "text")
    reader = TextReader(path, column="text", errors="skip")
    [block] = reader
    assert block.texts() == ["two\nlines", "last"]
    assert [block.location(i) for i in range(2)] == [f"{path} line 2", f"{path} line 5"]
    assert (reader.skipped_count, len(reader.skipped)) == (1, 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"id,Text,a b\n1,x,y\n", 'no column "text"; the columns are "id", "Text", "a b"'),
        (b"text,text\n1,x\n", 'several columns "text"; the columns are "text", "text"'),
        (b"id,text\n1,one, two\n", "line 2, byte offset 8: the number of fields is 3, but the header has 2"),
        (b"id,text\n1\n", "line 2, byte offset 8: the number of fields is 1, but the header has 2"),
        (b'text\n"a"b\n', "line 2, byte offset 5: a field continues after its closing quotation mark"),
        (b"text\nx\n\xff\n", "line 3, byte offset 7: not UTF-8"),
        (b"te\xffxt\nx\n", "line 1, byte offset 2: not UTF-8"),
    ],
)
def test_errors_say_what_is_wrong_and_where(content: bytes, message: str) -> None:
    Path("t.csv").write_bytes(content)
    with pytest.raises(InputError, match=message):
        texts_of("t.csv", "text")


def test_a_wrong_row_can_be_skipped_but_not_a_wrong_header() -> None:
    Path("t.csv").write_bytes(b"text,id\nx,1\n\xff,2\ny,3,4\nz\n")
    assert texts_of("t.csv", "text", errors="skip") == ["x", "z"]
    Path("t.csv").write_bytes(b"te\xffxt\ntext\n")
    with pytest.raises(InputError, match="line 1"):
        texts_of("t.csv", "text", errors="skip")
    Path("t.csv").write_bytes(b"text\n\xff\n")
    assert texts_of("t.csv", "text", errors="replace") == ["\ufffd"]


def test_files_of_several_forms_are_read_in_order() -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    Path("a.csv").write_text("id,text\n1,one\n")
    Path("b.csv").write_text('text,id\n"two, three",1\n')
    Path("c.tsv").write_text('text\tid\n"four\t1\n')
    parquet.write_table(pyarrow.table({"text": ["five"]}), "d.parquet")
    reader = TextReader(["a.csv", "b.csv", "d.parquet", "c.tsv"], column="text")
    assert [text for block in reader for text in block.texts()] == ["one", "two, three", "five", '"four']
    assert reader.bytes_read == reader.size
    with pytest.raises(InputError, match=r"a\.txt: only \.csv, \.tsv and Parquet files have columns"):
        TextReader("a.txt", column="text") if Path("a.txt").write_text("x") else None


def test_blocks_are_bounded() -> None:
    row = f"{'x' * 1000},{'y' * 1000}\n"
    Path("t.csv").write_text("text,other\n" + row * 12_000)
    sizes = [(len(block), block.bytes) for block in TextReader("t.csv", column="text")]
    assert sum(rows for rows, _ in sizes) == 12_000
    assert max(size for _, size in sizes) < 6 << 20


# --- commands


@pytest.fixture
def table() -> list[str]:
    """A CSV and a TSV file with the same texts, and a text file of them."""
    texts = ["The cat sat, on the mat.", 'She said "no".', "two words"]
    with Path("t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "text"), *enumerate(texts)])
    Path("t.tsv").write_text("text\tid\n" + "".join(f"{text}\t{i}\n" for i, text in enumerate(texts)))
    Path("t.csv.gz").write_bytes(gzip.compress(Path("t.csv").read_bytes()))
    Path("t.txt").write_text("".join(f"{text}\n" for text in texts))
    return texts


@pytest.mark.model
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz"])
def test_every_command_reads_the_column(name: str, table: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    def outputs(*arguments: str) -> str:
        assert main(arguments) == 0
        return capsys.readouterr().out

    column = ["--text-column", "text"]
    assert outputs("encode", name, *column) == outputs("encode", "t.txt")
    assert outputs("encode", name, "--parquet-column", "text") == outputs("encode", "t.txt")
    main(["embed", name, *column, "-o", "a.npy", "-q"])
    main(["embed", "t.txt", "-o", "b.npy", "-q"])
    np.testing.assert_array_equal(np.load("a.npy"), np.load("b.npy"))
    [line] = outputs("search", name, *column, "--query", "a cat", "--json", "-k", "1").splitlines()
    [hit] = json.loads(line)["hits"]
    assert (hit["text"], hit["location"]) == (table[0], f"{name} line 2")
    assert outputs("report", name, *column, "-v", "minilm", "-q") == outputs("report", "t.txt", "-v", "minilm", "-q")
    main(["count", name, *column, "-o", "a.tsv", "-q"])
    main(["count", "t.txt", "-o", "b.tsv", "-q"])
    counts = [[one for one in Path(f).read_text().splitlines() if not one.startswith("#")] for f in ("a.tsv", "b.tsv")]
    assert counts[0] == counts[1] != []


@pytest.mark.model
@pytest.mark.parametrize("command", ["encode", "embed", "search", "count", "train", "report", "pretrain-data"])
def test_no_command_reads_the_lines_of_a_table(
    command: str, table: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    more: dict[str, list[str]] = {
        "embed": ["-o", "v.npy"],
        "search": ["--query", "x"],
        "count": ["-o", "c.tsv"],
        "train": ["-o", "v", "--vocab-size", "100"],
        "report": ["-v", "minilm"],
        "pretrain-data": ["--tokens", "store"],
    }
    assert main([command, "t.csv", *more.get(command, [])]) == 2
    assert "t.csv: pass the column that holds the texts: --text-column text" in capsys.readouterr().err
    assert main([command, "t.csv", "--text-column", "body", *more.get(command, [])]) == 2
    assert 'no column "body"; the columns are "id", "text"' in capsys.readouterr().err


@pytest.mark.parametrize("with_ids", [False, True])
def test_documents_of_a_table_become_a_store(with_ids: bool, table: list[str]) -> None:
    from wordpiece_bert.pretraining import build_token_store

    tokenizer = wb.Tokenizer.from_pretrained("minilm")
    Path("t.jsonl").write_text("".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(table)))
    ids: Callable[[str], dict[str, str]] = lambda kind: {f"id_{kind}": "id"} if with_ids else {}  # noqa: E731
    ours = build_token_store(tokenizer, ["t.csv"], "a", column="text", **ids("column"))  # type: ignore[arg-type]
    theirs = build_token_store(tokenizer, ["t.jsonl"], "b", field="text", **ids("field"))  # type: ignore[arg-type]
    assert (ours.documents, ours.tokens) == (theirs.documents, theirs.tokens) == (3, theirs.tokens)
    for file in Path("b").rglob("*.npy"):
        np.testing.assert_array_equal(np.load(Path("a") / file.relative_to("b")), np.load(file))


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".tsv"])
def test_rows_for_training_may_begin_with_a_byte_order_mark(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"rows{suffix}"
    separator = "," if suffix == ".csv" else "\t"
    content = '{"text": "a", "label": "b"}\n' if suffix == ".jsonl" else f"text{separator}label\na{separator}b\n"
    file.write_text("\ufeff" + content, encoding="utf-8")
    assert read_columns(file, ["text", "label"]) == {"text": ["a"], "label": ["b"]}
