"""Reading texts and writing arrays."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import wordpiece_bert as wb
from wordpiece_bert.files import NpyWriter, TextReader


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)


# --- reading texts


def read(content: bytes, **options: bool) -> list[tuple[str, str]]:
    Path("t").write_bytes(content)
    return list(TextReader(["t"], **options))


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


def test_a_whole_file_is_one_text_and_stays_as_it_is() -> None:
    assert read(b"a\r\nb\n", whole=True) == [("a\r\nb\n", "t")]
    assert read(b"", whole=True) == [("", "t")]


@pytest.mark.parametrize("whole", [False, True])
def test_not_utf8_is_told_with_line_and_offset(whole: bool) -> None:
    with pytest.raises(
        wb.WordPieceError, match=r"t: not UTF-8: byte 0xe9 in line 3, byte offset 9 of the file"
    ) as error:
        read(b"one\ntwo\nx\xe9y\n", whole=whole)
    assert error.type is wb.errors.InputError
    with pytest.raises(wb.WordPieceError, match="UTF-16"):
        read("a\n".encode("utf-16"), whole=whole)


def test_reader_knows_how_far_it_is() -> None:
    Path("a").write_bytes(b"one\ntwo\n")
    reader = TextReader(["a", "a"])
    assert reader.size == 16
    assert [len(texts) for texts, _ in reader.groups(3)] == [3, 1]
    assert (reader.bytes_read, reader.count) == (16, 4)


# --- writing arrays


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_written_rows_are_read_back(dtype: type) -> None:
    parts = [np.arange(i * 6).reshape(-1, 3).astype(dtype) for i in (1, 0, 7)]
    with NpyWriter(Path("v.npy")) as rows:
        for part in parts:
            rows.append(part[:, ::-1])
        assert not Path("v.npy").exists()
    np.testing.assert_array_equal(np.load("v.npy"), np.concatenate(parts)[:, ::-1])
    assert os.listdir() == ["v.npy"]


def test_written_file_has_the_usual_permissions() -> None:
    with NpyWriter(Path("v.npy")) as rows:
        rows.append(np.zeros((1, 2), np.float32))
    Path("other").touch()
    assert Path("v.npy").stat().st_mode == Path("other").stat().st_mode
