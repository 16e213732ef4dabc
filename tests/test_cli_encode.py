"""The command `encode`: what it prints and writes, and what ends it early."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import wordpiece_bert as wb
from command_line import MODEL, desk, error_of, stdin
from processes import python
from wordpiece_bert.cli import main
from wordpiece_bert.hub import find_model

pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.model


def records(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    assert main(["encode", *arguments]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_encode_prints_ids(capsys: pytest.CaptureFixture[str]) -> None:
    assert records(capsys, "--text", "Unaffordable!", "--text", "") == [
        {"ids": [101, 14477, 4246, 8551, 3085, 999, 102]},
        {"ids": [101, 102]},
    ]


def test_encode_prints_requested_fields(capsys: pytest.CaptureFixture[str]) -> None:
    Path("texts.txt").write_text("Cafés\n中\n")
    assert records(capsys, "texts.txt", "--tokens", "--offsets", "--no-special-tokens") == [
        {"ids": [23812], "tokens": ["cafes"], "offsets": [[0, 5]]},
        {"ids": [1746], "tokens": ["中"], "offsets": [[0, 1]]},
    ]


def test_encode_names_the_ids_as_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["encode", "--text", "the cat", "-v", "minilm", "--ids-column", "input_ids", "--tokens"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == ["input_ids", "tokens"]
    assert main(["encode", "--text", "the cat", "-v", "minilm", "--ids-column", "tokens"]) == 2
    assert "--ids-column is 'tokens', but another column has this name" in capsys.readouterr().err


def test_encode_truncates_only_on_request_and_reports_it(capsys: pytest.CaptureFixture[str]) -> None:
    Path("texts.txt").write_text("a\n" + "a " * 600 + "\n")
    assert [len(r["ids"]) for r in records(capsys, "texts.txt")] == [3, 602]
    assert main(["encode", "texts.txt", "--max-length", "4"]) == 0
    out, err = capsys.readouterr()
    assert [json.loads(line)["truncated"] for line in out.splitlines()] == [False, True]
    assert err == "wordpiece-bert: warning: 1 text truncated: texts.txt line 2\n"


def test_encode_loads_vocab_txt_tokenizer_json_and_folder_alike(capsys: pytest.CaptureFixture[str]) -> None:
    folder = find_model(MODEL)
    sources = [str(folder), str(folder / "vocab.txt"), str(folder / "tokenizer.json")]
    answers = [records(capsys, "--vocab", source, "--text", "Ünaffordable [MASK]") for source in sources]
    assert answers[0] == answers[1] == answers[2]


def test_encode_cased_keeps_case(capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder) -> None:
    Path("vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\nÉ\ne\n")
    assert main(["encode", "--vocab", "vocab.txt", "--text", "É"]) == 0
    output = capsys.readouterr()
    assert json.loads(output.out) == {"ids": [1, 4, 2]}
    assert "tokens such as 'É' (1 of 2) are in no text because texts are put into lower case" in output.err
    assert records(capsys, "--vocab", "vocab.txt", "--cased", "--text", "É") == [{"ids": [1, 3, 2]}]


def test_warnings_of_the_library_are_one_line(
    capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    Path("vocab.txt").write_text("[UNK]\na\na\n")
    code = "import warnings; warnings.simplefilter('default'); from wordpiece_bert.cli import main; raise SystemExit(main())"
    done = python(code, "encode", "--vocab", "vocab.txt", "--text", "a")
    assert json.loads(done.stdout) == {"ids": [2]}
    assert done.stderr.startswith("wordpiece-bert: warning: ")
    assert done.stderr.count("\n") == 1


def test_a_closed_pipe_ends_the_command_silently() -> None:
    Path("texts.txt").write_text("text\n" * 20_000)
    with subprocess.Popen(
        [sys.executable, "-m", "wordpiece_bert", "encode", "texts.txt"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b'{"ids": [101, 3793, 102]}\n'
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_encode_prints_texts_of_any_separator_field_or_column(
    stdin: Callable[[bytes], None], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("texts.txt").write_bytes(b"a\r\nb\0\nc\0")
    [first, second] = records(capsys, "texts.txt", "--separator", r"\0", "--tokens", "--word-ids")
    assert first["tokens"] == ["[CLS]", "a", "b", "[SEP]"]
    assert second == {"ids": [101, 1039, 102], "tokens": ["[CLS]", "c", "[SEP]"], "word_ids": [None, 0, None]}
    assert records(capsys, "texts.txt", "--whole") == [{"ids": [101, 1037, 1038, 1039, 102]}]
    Path("texts.jsonl").write_text('{"q": {"a": "a"}, "b": "b"}\n')
    pair = [{"ids": [101, 1037, 102, 1038, 102]}]
    assert records(capsys, "texts.jsonl", "--jsonl-field", "q.a", "--jsonl-field", "b") == pair
    pyarrow.parquet.write_table(pyarrow.table({"x": ["a"], "y": ["b"]}), "texts.parquet")
    assert records(capsys, "texts.parquet", "--parquet-column", "x", "--parquet-column", "y") == pair
    stdin(gzip.compress(b"a\n\nb"))
    assert [row["ids"] for row in records(capsys, "-")] == [[101, 1037, 102], [101, 102], [101, 1038, 102]]


def test_encode_replaces_or_skips_invalid_texts(capsys: pytest.CaptureFixture[str]) -> None:
    Path("texts.txt").write_bytes(b"a\xff\nb\n")
    assert "line 1, byte offset 1: not UTF-8" in error_of(capsys, "encode", "texts.txt")
    assert [row["ids"] for row in records(capsys, "texts.txt", "--errors", "replace")] == [
        [101, 1037, 102],
        [101, 1038, 102],
    ]
    for arguments in ([], ["-o", "out.npy", "-q"]):
        assert main(["encode", "texts.txt", "--errors", "skip", *arguments]) == 0
        err = capsys.readouterr().err
        assert err.startswith("wordpiece-bert: warning: 1 text skipped: texts.txt: line 1, byte offset 1: not UTF-8")
        assert err.count("\n") == 1
    assert np.load("out.npy").tolist() == [101, 1038, 102]


@pytest.mark.parametrize("suffix", [".npy", ".arrow", ".parquet", ".jsonl"])
def test_encode_writes_what_the_library_writes(suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("texts.txt").write_text("one\ntwo three\n" + "many " * 50 + "\n")
    options = [
        "--max-length",
        "6",
        "--offsets",
        "--word-ids",
        "--no-special-tokens",
        "--dtype",
        "uint16",
        "--threads",
        "2",
    ]
    assert main(["encode", "texts.txt", "-o", f"a{suffix}", *options]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    cut, summary = err.splitlines()
    assert cut == "wordpiece-bert: warning: 1 text truncated: texts.txt line 3"
    assert summary.startswith(f"a{suffix}: 9 tokens in 3 rows of 3 texts (0.0 MB in ")
    wb.Tokenizer.from_pretrained(MODEL).encode_files(
        "texts.txt",
        f"b{suffix}",
        truncation=True,
        max_length=6,
        padding=False,
        add_special_tokens=False,
        return_offsets=True,
        return_word_ids=True,
        dtype="uint16",
    )
    written = sorted(path.name for path in Path().glob("a*"))
    assert [name.replace("a", "b", 1) for name in written] == sorted(path.name for path in Path().glob("b*"))
    for name in written:
        assert Path(name).read_bytes() == Path(name.replace("a", "b", 1)).read_bytes()


def test_encode_prints_and_writes_the_same_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    Path("texts.txt").write_text("one\ntwo three\n")
    options = ["--max-length", "3", "--offsets", "--word-ids"]
    assert main(["encode", "texts.txt", "-o", "out.jsonl", "-q", *options]) == 0
    assert main(["encode", "texts.txt", *options]) == 0
    assert Path("out.jsonl").read_text() == capsys.readouterr().out


def test_encode_pads_to_one_array() -> None:
    Path("texts.txt").write_text("one\ntwo three\n")
    assert main(["encode", "texts.txt", "-o", "out.npy", "--max-length", "4", "--padding", "-q"]) == 0
    assert np.load("out.npy").tolist() == [[101, 2028, 102, 0], [101, 2048, 2093, 102]]


SIGNALS = [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "ended by SIGTERM"), ("SIGHUP", 129, "ended by SIGHUP")]


@pytest.mark.thorough
@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
@pytest.mark.parametrize(("name", "code", "message"), SIGNALS)
@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
@pytest.mark.parametrize("silent", [False, True], ids=["busy", "waiting"])
def test_a_signal_ends_encode_quickly_without_leftover_files(
    name: str, code: int, message: str, suffix: str, silent: bool
) -> None:
    output = Path(f"out{suffix}")
    output.write_bytes(b"old")
    command = [sys.executable, "-m", "wordpiece_bert", "encode", "-", "-o", str(output)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None

        def feed() -> None:
            with suppress(BrokenPipeError):
                while process.poll() is None:
                    process.stdin.write(b"some words and then some more of them\n" * 10_000)  # type: ignore[union-attr]

        feeder = threading.Thread(target=feed)
        if not silent:
            feeder.start()
        try:
            deadline = time.monotonic() + 60
            # Wait for the temporary file and, if there are texts, for more than the header, which is buffered.
            while not any(silent or part.stat().st_size for part in Path().glob(".out*.part")):
                assert time.monotonic() < deadline
                assert process.poll() is None
                time.sleep(0.02)
            process.send_signal(getattr(signal, name))
            start = time.monotonic()
            assert process.wait(timeout=30) == code
            assert time.monotonic() - start < 5  # normally within a second; five allow for a busy machine
        finally:
            process.kill()
            if not silent:
                feeder.join()
        assert process.stderr.read() == f"wordpiece-bert: {message}\n".encode()
        with suppress(BrokenPipeError):
            process.stdin.close()
    assert output.read_bytes() == b"old"
    assert os.listdir() == [output.name]
