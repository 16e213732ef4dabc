"""The command ``pretrain-data``."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from killed_runs import finish_after_kills
from pretraining_folders import tokenizer
from pretraining_readers import megatron
from processes import python
from test_pretraining_build import content_of, corpus_of
from test_pretraining_reference import DATA
from wordpiece_bert.cli import main
from wordpiece_bert.pretraining import Masking, PretrainingDataset, TokenStore, build_examples, build_token_store

VOCAB = ["-v", str(DATA / "vocab.txt")]
CORPUS = str(DATA / "corpus.txt")


def test_files_become_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "rows"
    assert main(["pretrain-data", CORPUS, "-o", str(out), *VOCAB, "--max-length", "48", "--mask", "--whole-words"]) == 0
    printed = capsys.readouterr().out
    assert "masked, of chosen tokens" in printed
    store = TokenStore(tmp_path / "rows.tokens")
    build_examples(store, tmp_path / "same", tokenizer(), max_length=48, masking=Masking(tokenizer(), whole_words=True))
    assert content_of(out) == content_of(tmp_path / "same")
    assert PretrainingDataset(out).masked


def test_stores_alone_merged_and_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for part in range(2):
        tokens = ["--tokens", str(tmp_path / f"part-{part}"), "--part", f"{part}/2"]
        assert main(["pretrain-data", CORPUS, CORPUS, *tokens, *VOCAB]) == 0
    parts = [str(tmp_path / f"part-{part}") for part in range(2)]
    merged = ["--tokens", str(tmp_path / "all"), "--megatron", str(tmp_path / "megatron")]
    rows = ["-o", str(tmp_path / "rows.jsonl"), "--objective", "doc-sentences", "--packing", "256", "--json"]
    capsys.readouterr()
    assert main(["pretrain-data", *parts, *merged, *rows, *VOCAB]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["rows"] == len((tmp_path / "rows.jsonl").read_text().splitlines())
    assert TokenStore(tmp_path / "all").documents == 24
    assert len(megatron(tmp_path / "megatron")[0]) == TokenStore(tmp_path / "all").sentences
    assert main(["pretrain-data", parts[0], "--tokens", str(tmp_path / "one"), *VOCAB]) == 0
    assert TokenStore(tmp_path / "one").documents == 12


def test_one_document_a_line_takes_one_advice_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.txt").write_text("Bami gu. Gu fi!\nFi bami. Ka gu. Bami\n" * 5)
    command = ["pretrain-data", "lines.txt", "-o", "rows", *VOCAB, "-q"]
    assert main(command) == 2
    assert "build the store with --documents line and --sentences split" in capsys.readouterr().err
    assert os.listdir() == ["lines.txt"]
    assert main([*command, "--documents", "line", "--sentences", "split"]) == 0
    assert PretrainingDataset("rows").objective == "nsp"


def test_one_sentence_a_line_takes_one_advice_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.txt").write_text("Bami gu\nFi bami\n" * 9)
    command = ["pretrain-data", "lines.txt", "-o", "rows", *VOCAB, "-q", "--megatron", "megatron"]
    assert main(command) == 2
    assert "with one sentence on each line, use --objective full-sentences" in capsys.readouterr().err
    assert os.listdir() == ["lines.txt"]
    assert main([*command, "--objective", "full-sentences"]) == 0
    assert PretrainingDataset("rows").objective == "full-sentences"


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (["--documents", "line"], "build the store with --sentences split"),
        (["--documents", "line", "--sentences", "split", "--format", "tfrecord"], "give --mask --max-predictions 20"),
        (["--max-length", "2"], "--max-length must be"),
        (["--errors", "strict", "--jsonl-field", "text"], "lines.txt"),
    ],
)
def test_a_refused_run_leaves_nothing_that_blocks_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str], advice: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.txt").write_text("Bami gu\nFi bami\n" * 5)
    assert main(["pretrain-data", "lines.txt", "-o", "rows", *VOCAB, *options]) == 2
    assert advice in capsys.readouterr().err
    assert os.listdir() == ["lines.txt"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([CORPUS], "nothing to write"),
        ([CORPUS, "-o", "rows", "--spans"], "is an option of --mask"),
        ([CORPUS, "-o", "rows", "--mask", "--spans", "--whole-words"], "not allowed with"),
        ([CORPUS, "-o", "rows", "--part", "1"], "is not I/N"),
        ([CORPUS, "-o", "rows", "--short-seq-prob", "2"], "is not a number from 0 to 1"),
        ([CORPUS, ".", "-o", "rows"], "is a folder, but others are files"),
        (["missing.txt", "-o", "rows"], "missing.txt"),
    ],
)
def test_mistakes_are_errors(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code = main(["pretrain-data", *arguments, *VOCAB])
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "rows").exists()


@pytest.mark.parametrize(
    ("method", "note"),
    [
        ("store_writer.StoreWriter.finish", "1 shard is kept in rows.tokens; run it again for the rest"),
        ("store_writer.StoreWriter.add", "no shard of rows.tokens was complete yet"),
        ("example_run.ExampleRun._keep", "nothing of rows was complete yet; rows.tokens is kept, so run it again"),
    ],
)
def test_an_interruption_says_what_is_kept(
    method: str, note: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.txt").write_text("bami gu\nfi gu\n\ngu fi\nbami\n" * 40)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"wordpiece_bert.pretraining.{method}", interrupted)
    assert main(["pretrain-data", "texts.txt", "-o", "rows", *VOCAB, "-q", "--shard-tokens", "200"]) == 130
    assert capsys.readouterr().err == f"wordpiece-bert: interrupted: {note}\n"
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert main(["pretrain-data", "texts.txt", "-o", "rows", *VOCAB, "-q", "--shard-tokens", "200"]) == 0


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_ends_the_command_and_the_same_command_goes_on(tmp_path: Path) -> None:
    files = [str(path) for path in corpus_of(tmp_path, 3)]
    command = [sys.executable, "-m", "wordpiece_bert", "pretrain-data", *files, *VOCAB, "-q", "--shard-tokens", "30000"]
    process = subprocess.Popen([*command, "-o", str(tmp_path / "rows")], stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "rows.tokens" / "journal.jsonl").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in (0, 130)
    assert "Traceback" not in errors
    assert subprocess.run([*command, "-o", str(tmp_path / "rows")], check=False).returncode == 0
    store = build_token_store(tokenizer(), files, tmp_path / "store", shard_tokens=30_000)
    build_examples(store, tmp_path / "whole", tokenizer())
    assert content_of(tmp_path / "rows") == content_of(tmp_path / "whole")


COMMAND = "import sys\nfrom wordpiece_bert.cli import main\nif code := main(sys.argv[1:]):\n    sys.exit(code)"


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["rows", "rows.jsonl"])
def test_the_command_goes_on_after_kills_at_any_moment(name: str, tmp_path: Path) -> None:
    files = [str(path) for path in corpus_of(tmp_path, 0.7)]

    def arguments(folder: str) -> list[str]:
        (tmp_path / folder).mkdir(exist_ok=True)
        output = ["-o", str(tmp_path / folder / name), "--mask", "--dupe-factor", "2"]
        return [COMMAND, "pretrain-data", *files, *VOCAB, "-q", "--shard-tokens", "30000", *output]

    rng = random.Random(name)
    finish_after_kills(arguments("whole"), arguments("killed"), [rng.uniform(0.1, 0.75) for _ in range(4)])
    found, expected = tmp_path / "killed", tmp_path / "whole"
    assert {path.name for path in found.iterdir()} == {path.name for path in expected.iterdir()}
    for path in (found / f"{name}.tokens", found / name):
        other = expected / path.name
        assert content_of(path) == content_of(other) if path.is_dir() else path.read_bytes() == other.read_bytes()


@pytest.mark.skipif(os.name == "nt", reason="terminals of POSIX")
def test_a_terminal_shows_the_progress_of_both_steps(tmp_path: Path) -> None:
    files = [str(path) for path in corpus_of(tmp_path, 3)]
    terminal, end = os.openpty()
    # Each state is shown, although the steps take less time than there is between two on a terminal.
    program = (
        "import sys\nfrom wordpiece_bert._internal import progress\nfrom wordpiece_bert.cli import main\n"
        "progress.BAR_INTERVAL = 0\nsys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "pretrain-data", *files, *VOCAB, "--mask", "--dupe-factor", "4"]
    process = subprocess.Popen(
        [*command, "-o", str(tmp_path / "rows.jsonl")],
        stderr=end,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "160"},
    )
    os.close(end)
    shown = b""
    with suppress(OSError):  # the terminal has no other end any more
        while part := os.read(terminal, 4096):
            shown += part
    os.close(terminal)
    assert process.wait() == 0
    states = shown.decode().split("\r")
    assert any("MB" in state and "tokens/s" in state and "%" in state for state in states)
    assert any("tokens, " in state and "left" in state and "%" in state for state in states)


@pytest.mark.skipif(os.name == "nt", reason="limits of POSIX")
@pytest.mark.parametrize("name", ["rows.jsonl", "rows.arrow", "rows.tfrecord", "rows.mds"])
def test_a_full_disk_leaves_no_output_that_looks_complete(name: str, tmp_path: Path) -> None:
    if name.endswith("arrow"):
        pytest.importorskip("pyarrow")
    program = (
        "import resource, sys\nfrom wordpiece_bert.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300_000,) * 2)\nsys.exit(main(sys.argv[1:]))"
    )
    [path, *_] = corpus_of(tmp_path, 1)
    build_token_store(tokenizer(), path, tmp_path / "store")
    rows = ["-o", str(tmp_path / name), "--mask", "--max-predictions", "20"]
    arguments = ["pretrain-data", str(tmp_path / "store"), *rows, *VOCAB, "-q"]
    done = python(program, *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert name in done.stderr
    if name.endswith("mds"):
        assert not (tmp_path / name / "index.json").exists()
    else:
        assert not list(tmp_path.glob(f"{name}*"))
    assert main(arguments) == 0
    build_examples(
        tmp_path / "store",
        tmp_path / f"whole-{name}",
        tokenizer(),
        masking=Masking(tokenizer(), max_predictions=20),
    )
    found, whole = tmp_path / name, tmp_path / f"whole-{name}"
    assert content_of(found) == content_of(whole) if found.is_dir() else found.read_bytes() == whole.read_bytes()


@pytest.mark.skipif(os.name == "nt", reason="limits of POSIX")
def test_a_full_disk_is_an_error_and_the_same_command_goes_on(tmp_path: Path) -> None:
    program = (
        "import resource, sys\nfrom wordpiece_bert.cli import main\n"
        "if sys.argv[1] != '0':\n    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)\n"
        "sys.exit(main(sys.argv[2:]))"
    )
    [path, *_] = corpus_of(tmp_path, 1)
    arguments = ["pretrain-data", str(path), "-o", str(tmp_path / "rows"), *VOCAB, "-q"]
    done = python(program, 20000, *arguments)
    assert done.returncode == 2
    assert "rows.tokens" in done.stderr
    assert "Traceback" not in done.stderr
    assert python(program, 0, *arguments).returncode == 0
    PretrainingDataset(tmp_path / "rows").verify()
