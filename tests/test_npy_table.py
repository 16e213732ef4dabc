"""A .npy output of several files is one output: killed writers and writers at the same time leave no mixture."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import wordpiece_bert as wb
from wordpiece_bert._internal.file_locks import HAS_LOCKS

needs_locks = pytest.mark.skipif(not HAS_LOCKS, reason="this platform has no flock")
VOCAB = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "a", "b", "c"]
COLUMNS = ("ids", "row_offsets", "offsets", "word_ids", "n_tokens")
OLD, NEW = ["a", "a a", "a"], ["b b b", "b"]

WRITE = """
import os, signal, sys
from pathlib import Path
import wordpiece_bert as wb
from wordpiece_bert._internal import atomic_file
source, output, renames, times = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
original = atomic_file.AtomicFile.rename
def rename(self):
    global renames
    if renames == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    renames -= 1
    original(self)
atomic_file.AtomicFile.rename = rename
tokenizer = wb.Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "[PAD]", "a", "b", "c"])
for _ in range(times):
    tokenizer.encode_files(source, output, return_offsets=True, return_word_ids=True, return_n_tokens=True)
"""


def command(folder: Path, texts: list[str], renames: int = -1, times: int = 1) -> list[str]:
    source = folder / f"{texts[0][0]}.txt"
    source.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return [sys.executable, "-c", WRITE, str(source), str(folder / "out.npy"), str(renames), str(times)]


def written(folder: Path) -> dict[str, np.ndarray]:
    names = {name: folder / ("out.npy" if name == "ids" else f"out.{name}.npy") for name in COLUMNS}
    return {name: np.load(path) for name, path in names.items() if path.is_file()}


def expected(texts: list[str]) -> dict[str, np.ndarray]:
    options = {"return_offsets": True, "return_word_ids": True, "return_n_tokens": True}
    batch = wb.Tokenizer.from_vocab(VOCAB).encode_batch(texts, **options)
    return {name: getattr(batch, name) for name in COLUMNS}


def equal(found: dict[str, np.ndarray], texts: list[str]) -> bool:
    wanted = expected(texts)
    return found.keys() == wanted.keys() and all(np.array_equal(found[name], wanted[name]) for name in wanted)


@needs_locks
@pytest.mark.parametrize("renames", range(len(COLUMNS)))
def test_a_killed_writer_leaves_no_ids_beside_the_columns_of_others(tmp_path: Path, renames: int) -> None:
    subprocess.run(command(tmp_path, OLD), check=True)
    assert equal(written(tmp_path), OLD)
    assert subprocess.run(command(tmp_path, NEW, renames), check=False).returncode == -9
    assert "ids" not in written(tmp_path)
    subprocess.run(command(tmp_path, OLD), check=True)
    assert equal(written(tmp_path), OLD)
    assert not list(tmp_path.glob(".*.part"))


@needs_locks
def test_of_two_writers_of_one_output_one_wins_whole(tmp_path: Path) -> None:
    writers = [subprocess.Popen(command(tmp_path, texts, times=40)) for texts in (OLD, NEW)]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0]
    found = written(tmp_path)
    assert equal(found, OLD) or equal(found, NEW)


def test_columns_of_an_older_output_do_not_stay_beside_new_ids(tmp_path: Path) -> None:
    subprocess.run(command(tmp_path, OLD), check=True)
    (tmp_path / "out.other.npy").write_text("of somebody else")
    tok = wb.Tokenizer.from_vocab(VOCAB)
    tok.encode_files(tmp_path / "a.txt", tmp_path / "out.npy")
    assert sorted(path.name for path in tmp_path.glob("*.npy")) == ["out.npy", "out.other.npy", "out.row_offsets.npy"]
    tok.encode_files(tmp_path / "a.txt", tmp_path / "out.npy", padding="max_length", truncation=True, max_length=4)
    assert np.load(tmp_path / "out.npy").shape == (3, 4)
    assert not (tmp_path / "out.row_offsets.npy").exists()
