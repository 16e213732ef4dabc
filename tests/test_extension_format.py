"""A format of pre-training data is an entry in a table: a toy of one is added here, from outside the package."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pretraining_folders import tokenizer
from processes import python
from test_pretraining_build import corpus_of
from test_pretraining_reference import DATA
from wordpiece_bert import _core
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining import build_examples, build_token_store, formats
from wordpiece_bert.pretraining.formats import RowFormat
from wordpiece_bert.pretraining.sinks import FileSink


class IdLines(FileSink):
    """A line of ids for each row."""

    def add(self, rows: _core.ExampleBlock) -> None:
        for row in self.schema.dicts(rows):
            self.file.write(" ".join(map(str, row["input_ids"])).encode() + b"\n")


ID_LINES = RowFormat(name="id-lines", module=__name__, sink="IdLines", suffixes=(".ids",))

# It ends itself after some blocks of rows, as a process that is killed.
KILLED = """
import os, signal, sys
import test_extension_format as toy
from pretraining_folders import tokenizer
from wordpiece_bert.pretraining import build_examples, formats
from wordpiece_bert.pretraining.sinks import row_sink as base

formats.register(toy.ID_LINES)
base.CHECKPOINT_BYTES = 20_000
add, blocks = toy.IdLines.add, []

def add_or_die(self, rows):
    blocks.append(rows)
    if len(blocks) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    add(self, rows)

toy.IdLines.add = add_or_die
build_examples(sys.argv[1], sys.argv[2], tokenizer(), dupe_factor=3)
"""


@pytest.fixture
def toy_format() -> Iterator[None]:
    formats.register(ID_LINES)
    yield
    del formats.FORMATS["id-lines"]


@pytest.mark.usefixtures("toy_format")
def test_a_format_of_examples_is_written_from_python_and_by_the_command(tmp_path: Path) -> None:
    store = build_token_store(tokenizer(), DATA / "corpus.txt", tmp_path / "store")
    report = build_examples(store, tmp_path / "rows.ids", tokenizer(), max_length=40)
    build_examples(store, tmp_path / "rows.jsonl", tokenizer(), max_length=40)
    lines = (tmp_path / "rows.ids").read_text().splitlines()
    expected = [json.loads(line)["input_ids"] for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [list(map(int, line.split())) for line in lines] == expected
    assert report.rows == len(lines)
    command = ["pretrain-data", str(store.path), "-v", str(DATA / "vocab.txt"), "--max-length", "40", "-q"]
    assert main([*command, "-o", str(tmp_path / "by-name"), "--format", "id-lines"]) == 0
    assert main([*command, "-o", str(tmp_path / "by-suffix.ids")]) == 0
    for name in ("by-name", "by-suffix.ids"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "rows.ids").read_bytes()


@pytest.mark.usefixtures("toy_format")
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_format_resumes_after_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = build_token_store(tokenizer(), corpus_of(tmp_path, 0.4), tmp_path / "store", shard_tokens=40_000).path
    whole = build_examples(store, tmp_path / "whole.ids", tokenizer(), dupe_factor=3)
    assert python(KILLED, store, tmp_path / "rows.ids").returncode == -signal.SIGKILL
    assert not (tmp_path / "rows.ids").exists()
    add, written = IdLines.add, []

    def counted(self: IdLines, rows: _core.ExampleBlock) -> None:
        written.append(len(rows))
        add(self, rows)

    monkeypatch.setattr(IdLines, "add", counted)
    for _ in range(2):  # the second call writes nothing
        report = build_examples(store, tmp_path / "rows.ids", tokenizer(), dupe_factor=3)
        assert report.rows == whole.rows
        assert 0 < sum(written) < whole.rows
    assert (tmp_path / "rows.ids").read_bytes() == (tmp_path / "whole.ids").read_bytes()


def test_without_its_entry_the_format_is_refused(tmp_path: Path) -> None:
    store = build_token_store(tokenizer(), DATA / "corpus.txt", tmp_path / "store")
    unknown: Any = "id-lines"
    with pytest.raises(InputError, match=r"format must be one of 'npy', .*, not 'id-lines'"):
        build_examples(store, tmp_path / "rows", tokenizer(), format=unknown)
