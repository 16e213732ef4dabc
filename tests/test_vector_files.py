"""Files of vectors: what is read is what was written, and every other file is refused with the place of the fault."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence import MultiVectors, SparseVectors
from wordpiece_bert.tokenizer.corpus.file_formats import VECTOR_FORMATS
from wordpiece_bert.tokenizer.corpus.vector_files import read_stored, read_vectors
from wordpiece_bert.tokenizer.corpus.vector_writers import vector_writer

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

COLUMNAR = ["parquet", "arrow", "arrows"]
LISTS: dict[str, Callable[[Any], Any]] = {"list": pa.list_, "large_list": pa.large_list}


def write_table(path: Path, table: Any) -> None:
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=2)
        return
    with (pa.ipc.new_file if path.suffix == ".arrow" else pa.ipc.new_stream)(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


def refusal(path: Path) -> str:
    """Return the message with which a file is refused."""
    with pytest.raises(InputError) as caught:
        read_vectors(path)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value)


@pytest.mark.parametrize("kind", VECTOR_FORMATS)
@pytest.mark.parametrize("rows", [0, 1, 7])
def test_what_is_written_is_read(tmp_path: Path, kind: str, rows: int) -> None:
    vectors = np.random.default_rng(rows).normal(size=(rows, 5)).astype(np.float32)
    path = tmp_path / f"v.{kind}"
    with vector_writer(path, 5, kind) as writer:
        writer.begin()
        for start in range(0, rows, 3):
            writer.append(vectors[start : start + 3])
        writer.commit()
    assert os.listdir(tmp_path) == [path.name]
    found = read_stored(path)
    assert found.record is None
    np.testing.assert_array_equal(found.vectors, vectors if rows or kind != "jsonl" else np.zeros((0, 0)))


@given(
    rows=st.lists(st.lists(st.one_of(st.integers(-9, 9), st.none()), max_size=3) | st.none(), max_size=6),
    kind=st.sampled_from(COLUMNAR),
    of=st.sampled_from(sorted(LISTS)),
    item=st.sampled_from(["float32", "float64", "int8"]),
)
def test_rows_of_one_length_are_read_and_any_other_row_is_named(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[int | None] | None], kind: str, of: str, item: str
) -> None:
    path = tmp_path_factory.mktemp("lists") / f"v.{kind}"
    write_table(path, pa.table({"vector": pa.array(rows, LISTS[of](getattr(pa, item)()))}))
    bad = {
        row
        for row, vector in enumerate(rows)
        if vector is None or None in vector or (rows[0] is not None and len(vector) != len(rows[0]))
    }
    if bad:
        message = refusal(path)
        assert any(f"row {row} of the column 'vector'" in message for row in bad)
    else:
        width = len(rows[0]) if rows and rows[0] is not None else 0
        found = read_vectors(path)
        np.testing.assert_array_equal(found, np.array(rows, item).reshape(len(rows), width))
        assert found.dtype == (np.dtype(item) if rows else np.float32)


@pytest.mark.parametrize("kind", COLUMNAR)
def test_fixed_lists_with_nulls_are_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"v.{kind}"
    column = pa.list_(pa.float32(), 2)
    for rows, message in [
        ([[1, 2], [3, 4], None], "row 2 of the column 'vector' is null"),
        ([[1, 2], [3, 4], [None, 6]], "row 2 of the column 'vector' has a null"),
    ]:
        write_table(path, pa.table({"vector": pa.array(rows, column)}))
        assert message in refusal(path)


@pytest.mark.parametrize("kind", COLUMNAR)
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"vectors": pa.array([[1.0]])}, "has no column 'vector'"),
        ({"vector": pa.array([1.0])}, "is double, not lists of numbers"),
        ({"vector": pa.array([["a"]])}, ": string>, not lists of numbers"),
        ({"vector": pa.array([[True]])}, ": bool>, not lists of numbers"),
        ({"vector": pa.array([[[1.0]]])}, "not lists of numbers"),
        ({"vector": pa.array([{"a": 1.0}])}, "not lists of numbers"),
    ],
)
def test_other_columns_are_refused(tmp_path: Path, kind: str, columns: dict[str, Any], message: str) -> None:
    path = tmp_path / f"v.{kind}"
    write_table(path, pa.table(columns))
    assert message in refusal(path)


def test_json_lines_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text('\ufeff{"vector": [1, 2]}\n{"vector": [3, 4]}\n', encoding="utf-8")
    assert read_vectors(file).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"vector": [1, null]}', "'vector' has null, which is not a number"),
        ('{"vector": ["1", "2"]}', "'vector' has \"1\", which is not a number"),
        ('{"vector": [true, 2]}', "'vector' has true, which is not a number"),
        ('{"vector": [[1], [2]]}', "'vector' has [1], which is not a number"),
        ('{"vector": [NaN, 2]}', "has NaN, which is not a JSON number"),
        ('{"vector": [1, 1e999]}', "too large for float32"),
        ('{"vector": [1, 1e39]}', "too large for float32"),
        ('{"vector": [1, ' + "9" * 400 + "]}", "too large for float32"),
        ('{"vector": [1, ' + "9" * 5000 + "]}", "is not JSON"),
        ('{"vector": "12"}', "not a list of numbers"),
        ('{"vector": 5}', "not a list of numbers"),
        ('{"vectors": [1, 2]}', "is no object with 'vector'"),
        ("[1, 2]", "is no object with 'vector'"),
        ("5", "is no object with 'vector'"),
        ('{"vector": [1, 2]', "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ('{"vector": [1, 2], "t": "\udcff"}', "is not JSON"),
        ('{"vector": [1]}', "has 1 numbers, the first vector 2"),
        ('{"vector": [1, 2, 3, 4]}', "has 4 numbers, the first vector 2"),
    ],
)
def test_json_lines_name_the_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "v.jsonl"
    path.write_bytes(f'{{"vector": [1, 2]}}\n\n{line}\n'.encode(errors="surrogateescape"))
    found = refusal(path)
    assert "line 3" in found
    assert message in found


def npy(header: str, data: bytes = b"") -> bytes:
    """Return a .npy file with any header."""
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode("latin-1") + data


ODD = {
    "empty": b"",
    "text": b"no vectors\n",
    "zip": b"PK\x03\x04" + bytes(30),
    "npz": None,
    "pickle": b"\x80\x04]\x94.",
    "magic": b"\x93NUMPY",
    "version": b"\x93NUMPY\x09\x09",
    "tokens": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2"),
    "nested": npy("(" * 400),
    "negative": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 2), }", bytes(16)),
    "huge": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 4), }", bytes(16)),
    "objects": npy("{'descr': '|O', 'fortran_order': False, 'shape': (2, 2), }", bytes(32)),
    "fields": npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", bytes(8)),
    "strings": npy("{'descr': '<U1', 'fortran_order': False, 'shape': (2, 2), }", bytes(16)),
    "no descr": npy("{'descr': 5, 'fortran_order': False, 'shape': (2, 2), }", bytes(16)),
    "short": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", bytes(15)),
    "arrow magic": b"ARROW1\x00\x00" + b"\xff" * 64 + b"ARROW1",
    "parquet magic": b"PAR1" + bytes(64) + b"\xff\xff\xff\x7fPAR1",
}


@pytest.mark.parametrize("kind", VECTOR_FORMATS)
@pytest.mark.parametrize("odd", ODD)
def test_odd_files_are_refused(tmp_path: Path, kind: str, odd: str) -> None:
    path = tmp_path / f"v.{kind}"
    content = ODD[odd]
    if content is None:
        np.savez(tmp_path / "v.npz", np.ones((2, 2)))
        content = (tmp_path / "v.npz").read_bytes()
    path.write_bytes(content)
    if (kind, odd) == ("jsonl", "empty"):
        assert read_vectors(path).shape == (0, 0)
    else:
        refusal(path)


@pytest.mark.parametrize("kind", VECTOR_FORMATS)
def test_a_pipe_or_a_folder_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    pipe, folder = tmp_path / f"pipe.{kind}", tmp_path / f"folder.{kind}"
    os.mkfifo(pipe)
    folder.mkdir()
    assert "is a pipe or a device" in refusal(pipe)
    assert "is a folder" in refusal(folder)
    with pytest.raises(FileNotFoundError):
        read_vectors(tmp_path / f"missing.{kind}")
    if kind in ("npy", "jsonl"):
        path = tmp_path / f"v.{kind}"
        path.write_bytes(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 2), }\n") if kind == "npy" else b"")
        os.mkfifo(f"{path}.fingerprint.json")
        with pytest.raises(InputError, match="is a pipe or a device"):
            read_vectors(path)


def test_sparse_and_token_vectors_refuse_pipes_and_damaged_files(tmp_path: Path) -> None:
    sparse, tokens = tmp_path / "v.npz", tmp_path / "tokens"
    SparseVectors.from_dense(np.eye(3, dtype=np.float32)).save(sparse)
    MultiVectors(np.ones((3, 2), np.float32), np.array([0, 3])).save(tokens)
    rng = random.Random(5)
    for path, load in [
        (sparse, lambda: SparseVectors.load(sparse)),
        (tokens / "vectors.npy", lambda: MultiVectors.load(tokens)),
        (tokens / "offsets.npy", lambda: MultiVectors.load(tokens, mmap=False)),
    ]:
        content = path.read_bytes()
        for _ in range(100):
            path.write_bytes(damaged(content, rng))
            try:
                load()  # some bytes may have any value
            except InputError:
                continue
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(InputError, match="is a pipe or a device"):
            load()
        path.unlink()
        path.write_bytes(content)
        load()


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Return a file of which some bytes were changed, or the end is missing."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 16))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data[: rng.randrange(len(data))] if rng.random() < 0.2 else data)


# It runs in a process of its own, which a fault inside pyarrow would end.
READ_DAMAGED = """
import random, sys
from pathlib import Path
from test_vector_files import damaged
from wordpiece_bert.tokenizer.corpus.vector_files import read_vectors
from wordpiece_bert.errors import InputError

path, rng = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
content, refused = path.read_bytes(), 0
for _ in range(int(sys.argv[3])):
    path.write_bytes(damaged(content, rng))
    try:
        read_vectors(path).tobytes()
    except InputError:
        refused += 1
print(refused)
"""


@pytest.mark.parametrize("kind", VECTOR_FORMATS)
def test_damaged_files_are_read_or_refused_and_end_no_process(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"v.{kind}"
    rng = np.random.default_rng(3)
    if kind in ("npy", "jsonl"):
        with vector_writer(path, 5, kind) as writer:
            writer.begin()
            writer.append(rng.normal(size=(20, 5)).astype(np.float32))
            writer.commit()
    else:
        rows = pa.array(rng.normal(size=(20, 5)).tolist(), pa.list_(pa.float32()))
        write_table(path, pa.table({"vector": rows}))
    done = subprocess.run(
        [sys.executable, "-c", READ_DAMAGED, str(path), "1", "400"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert 20 < int(done.stdout) <= 400


@pytest.mark.parametrize("kind", ["arrow", "arrows"])
@pytest.mark.parametrize("of", sorted(LISTS))
def test_offsets_that_lead_out_of_the_numbers_are_refused(tmp_path: Path, kind: str, of: str) -> None:
    """All lists have one length, so that only the validation sees it."""
    path = tmp_path / f"v.{kind}"
    write_table(path, pa.table({"vector": pa.array([[1.0, 2.0]] * 2, LISTS[of](pa.float32()))}))
    offsets = np.array([0, 2, 4], np.int32 if of == "list" else np.int64)
    content = path.read_bytes()
    assert content.count(offsets.tobytes()) == 1
    path.write_bytes(content.replace(offsets.tobytes(), (offsets + (1 << 20)).tobytes()))
    refusal(path)


def test_the_columns_of_other_programs_are_read(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    vectors = np.arange(12, dtype=np.float32).reshape(4, 3)
    for column in (vectors.tolist(), polars.Series(vectors, dtype=polars.Array(polars.Float32, 3))):
        frame = polars.DataFrame({"text": list("abcd"), "vector": column})
        frame.write_parquet(tmp_path / "v.parquet")
        frame.write_ipc(tmp_path / "v.arrow")
        frame.write_ipc_stream(tmp_path / "v.arrows")
        for kind in COLUMNAR:
            np.testing.assert_array_equal(read_vectors(tmp_path / f"v.{kind}"), vectors)
    (tmp_path / "v.jsonl").write_text("".join(json.dumps({"vector": row, "a": 1}) + "\r\n" for row in vectors.tolist()))
    np.testing.assert_array_equal(read_vectors(tmp_path / "v.jsonl"), vectors)
