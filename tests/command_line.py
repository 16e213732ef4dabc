"""The command line in this process: a folder to work in, standard input, and the error of a command."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import wordpiece_bert as wb
from wordpiece_bert.cli import main

MODEL = "minilm"


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def encoder() -> wb.SentenceEncoder:
    return wb.SentenceEncoder.from_pretrained(MODEL)


@pytest.fixture
def stdin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[bytes], None]]:
    """Replace the standard input of the process at the level of file descriptors, because the core does not use sys.stdin."""
    before = os.dup(0)

    def give(content: bytes) -> None:
        path = tmp_path_factory.mktemp("stdin") / "content"
        path.write_bytes(content)
        with path.open("rb") as file:
            os.dup2(file.fileno(), 0)

    yield give
    os.dup2(before, 0)
    os.close(before)


def error_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run the command, which must fail with an error of one line, and return that line."""
    try:
        code = main(arguments)
    except SystemExit as usage:  # argparse
        code = usage.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("wordpiece-bert: error: ")
    assert err.count("\n") == 1
    return err
