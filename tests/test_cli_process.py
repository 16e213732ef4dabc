"""The command as a process, and what commands have in common: pipes, formats, JSON, progress, completion, interruption."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import wordpiece_bert as wb
from command_line import MODEL, desk, encoder, error_of, stdin
from wordpiece_bert._internal.progress import line_interval, lines_every
from wordpiece_bert.cli import main
from wordpiece_bert.hub import find_model

pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.model


# --- the process


def test_the_command_is_installed() -> None:
    script = Path(sysconfig.get_path("scripts")) / ("wordpiece-bert.exe" if os.name == "nt" else "wordpiece-bert")
    for command in ([str(script)], [sys.executable, "-m", "wordpiece_bert"]):
        done = subprocess.run([*command, "-V"], capture_output=True, encoding="utf-8", check=True)
        assert done.stdout == f"wordpiece-bert {wb.__version__}\n"


def piped(*arguments: str, text: bytes = b"The cat sat.\nA dog ran.\n") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "wordpiece_bert", *arguments]
    return subprocess.run(command, input=text, capture_output=True, check=False)


def test_text_from_a_pipe_needs_no_dash() -> None:
    assert piped("encode", text=b"a\n").stdout == b'{"ids": [101, 1037, 102]}\n'
    assert piped("encode", "-o", "-", text=b"a\n").stdout == b'{"ids": [101, 1037, 102]}\n'
    for command in (["embed", "-o", "v.npy"], ["count", "-o", "c.tsv"], ["train", "-o", "v", "-n", "100"]):
        assert piped(*command).returncode == 0
    assert np.load("v.npy").shape == (2, 384)
    assert wb.WordCounts.load("c.tsv")["cat"] == 1
    assert piped("report", "-v", "v", "--json").returncode == 0
    with Path(os.devnull).open("rb") as nothing:
        command = [sys.executable, "-m", "wordpiece_bert", "embed", "-o", "v.npy"]
        done = subprocess.run(command, stdin=nothing, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"no text to read" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="redirections of Unix")
@pytest.mark.parametrize(
    ("arguments", "redirection"),
    [("embed a.txt -o v.npy --verbose", end) for end in ("", ">&-", "2>&-")] + [("search a.txt", "<&-")],
)
def test_streams_that_are_closed_do_not_end_the_work(arguments: str, redirection: str) -> None:
    Path("a.txt").write_text("text\n")
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "wordpiece_bert", *arguments.split()]
    subprocess.run(["sh", "-c", f'exec "$@" {redirection}', "sh", *command], stderr=writer, check=True)
    os.close(writer)
    assert Path("v.npy").exists() == ("embed" in arguments)


def test_standard_streams_are_utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1:strict")
    Path("a.txt").write_text("中文\n", encoding="utf-8")
    for form in ([], ["--json"]):
        assert "中文" in piped("search", "a.txt", *form, text="中文\n".encode()).stdout.decode()
    for command in (["inspect", "-", "-o", "v.html"], ["search", "a.txt", "-i"]):
        done = piped(*command, text=b"caf\xe9\n")
        assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
        assert rb"has a lone surrogate, '\udce9', at position 3" in done.stderr


def vectors_of(content: bytes, kind: str) -> np.ndarray:
    """Read vectors with the format's own library."""
    if kind == "npy":
        return np.load(io.BytesIO(content))
    if kind == "jsonl":
        return np.array([json.loads(line)["vector"] for line in content.splitlines()], np.float32)
    source = pyarrow.BufferReader(content)
    if kind == "parquet":
        table = pyarrow.parquet.read_table(source)
    else:
        table = (pyarrow.ipc.open_file if kind == "arrow" else pyarrow.ipc.open_stream)(source).read_all()
    assert table.schema.field("vector").type == pyarrow.list_(pyarrow.float32(), 384)
    return np.array(table["vector"].to_pylist(), np.float32)


@pytest.mark.parametrize("kind", ["npy", "parquet", "arrow", "arrows", "jsonl"])
def test_embed_writes_every_format_to_a_file_and_to_standard_output(
    kind: str,
    encoder: wb.SentenceEncoder,
    stdin: Callable[[bytes], None],
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    texts = [f"text number {i}" for i in range(5)]
    lines = "".join(f"{text}\n" for text in texts).encode()
    expected = encoder.encode(texts)
    assert expected.shape == (5, 384)

    def embed(*arguments: str, text: bytes = lines) -> tuple[bytes, bytes]:
        stdin(text)
        assert main(["embed", *arguments]) == 0
        out, err = capfdbinary.readouterr()
        return out, err

    # A batch of one, so that there are several groups.
    embed("-o", f"v.{kind}", "--batch-size", "1")
    done = piped("embed", "-o", "-", "--format", kind, text=lines)
    assert done.stderr.startswith(b"standard output: 5 vectors of 384 float32")
    # Any name goes with --format.
    assert embed("-o", "plain", "--format", kind, "-q") == (b"", b"")
    for content in (Path(f"v.{kind}").read_bytes(), done.stdout, Path("plain").read_bytes()):
        np.testing.assert_array_equal(vectors_of(content, kind), expected)
    assert vectors_of(embed("-o", "-", "--format", kind, text=b"")[0], kind).size == 0


@pytest.mark.filterwarnings("ignore::wordpiece_bert.errors.TrainingWarning")
def test_every_command_has_json(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.txt").write_text("the cat sat\nthe cat\n")
    commands = {
        "embed": (["a.txt", "-o", "v.npy"], {"vectors": 2, "dimensions": 384, "tokens": 9}),
        "encode": (["a.txt", "-o", "t.npy"], {"rows": 2, "tokens": 9, "truncated": 0}),
        "count": (["a.txt", "-o", "c.tsv"], {"words": 3, "occurrences": 5, "texts": 2}),
        "train": (["a.txt", "-o", "vocab", "-n", "30"], {"algorithm": "bpe", "words": 3}),
    }
    for command, (arguments, facts) in commands.items():
        assert main([command, *arguments, "--json"]) == 0
        out, err = capsys.readouterr()
        assert facts.items() <= json.loads(out).items()
        # train may warn that the vocabulary is small, and on a busy machine a line of progress appears.
        assert command == "train" or re.fullmatch(r"(\d+%, .*\n)*", err)
    for arguments in (["report", "a.txt", "-v", "vocab"], ["info", "vocab"], ["encode", "a.txt"]):
        assert main([*arguments, "--json"]) == 0
        assert [
            json.loads(line) for line in capsys.readouterr().out.replace("\n ", "").replace("\n}", "}").splitlines()
        ]
    assert main(["embed", "a.txt", "-o", "-", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(err)["vectors"] == 2


def test_errors_of_writing_name_the_output(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.txt").write_text("text\n")

    for method in ("open", "replace"):
        original = getattr(Path, method)

        def refuse(self: Path, *a: object, original: Callable[..., object] = original, **k: object) -> object:
            if self.suffix == ".part":
                raise PermissionError(errno.EACCES, "Permission denied", str(self))
            return original(self, *a, **k)

        with monkeypatch.context() as patch:
            patch.setattr(Path, method, refuse)
            assert error_of(capsys, "embed", "a.txt", "-o", "v.npy").strip() == (
                "wordpiece-bert: error: v.npy: Permission denied"
            )


def test_colors_only_on_a_terminal_without_no_color(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "\x1b" not in error_of(capsys, "encode", "none.txt")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert main(["encode", "none.txt"]) == 2
    assert capsys.readouterr().err.startswith("wordpiece-bert: \x1b[1;31merror:\x1b[0m ")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in error_of(capsys, "encode", "none.txt")


def test_progress_is_shown_within_a_group_of_texts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # 10 texts are one group, but several passes of the model.
    monkeypatch.setattr("wordpiece_bert.sentence.dense.transformer.TOKENS_PER_CALL", 10)
    Path("a.txt").write_text("".join(f"word by word {number}\n" for number in range(10)))
    with lines_every(0):
        assert main(["embed", "a.txt", "-o", "v.npy"]) == 0
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) > 3
        # After each pass, with the share of the texts that are done.
        shown = [re.fullmatch(r" *(\d+)%, .* of .*, (\d+) texts?, [\d,]+ tokens/s, .* left", one) for one in lines[:-1]]
        done = [(int(one[1]), int(one[2])) for one in shown if one]
        assert len(done) == len(shown)
        assert done == sorted(done)
        assert 0 < done[0][0] < 50
        assert done[0][1] < 5
        assert done[-1] == (100, 10)
        assert lines[-1].startswith("v.npy: 10 vectors")
        assert main(["embed", "a.txt", "-o", "v.npy", "-q"]) == 0
        assert capsys.readouterr().err == ""


def test_the_share_that_is_done_follows_tokens(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Eight short texts, and two that have nine tenths of the tokens: one group, several passes.
    monkeypatch.setattr("wordpiece_bert.sentence.dense.transformer.TOKENS_PER_CALL", 10)
    Path("a.txt").write_text("".join(f"{letter}\n" for letter in "abcdefgh") + f"{'word ' * 120}\n{'bread ' * 120}\n")
    with lines_every(0):
        assert main(["embed", "a.txt", "-o", "v.npy"]) == 0
    lines = capsys.readouterr().err.splitlines()
    shown = [re.match(r" *(\d+)%, .* (\d+) texts?,", one) for one in lines]
    shares = {int(one[2]): int(one[1]) for one in shown if one}
    assert shares[8] < 20
    assert shares[9] in range(45, 60)
    assert shares[10] == 100


def test_progress_of_report_and_of_printed_rows(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.txt").write_text("word by word\n" * 600)
    with lines_every(0):
        assert main(["report", "a.txt", "--vocab", MODEL]) == 0
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) > 2
        assert re.fullmatch(r"minilm: +\d+%, .* of 7.8 kB, 256 texts, .*/s, .* left", lines[1])
        assert lines[-1].startswith("minilm: 100%, 7.8 kB of 7.8 kB, 600 texts, ")
        assert main(["encode", "a.txt"]) == 0
        assert capsys.readouterr().err.splitlines()[-1].startswith("100%, 7.8 kB of 7.8 kB, 600 texts, ")
        for command in (["report", "a.txt", "--vocab", MODEL], ["encode", "a.txt"], ["info", MODEL]):
            assert main([*command, "-q"]) == 0
            assert capsys.readouterr().err == ""
        assert main(["report", "a.txt", "--vocab", MODEL, "--verbose"]) == 0
        assert capsys.readouterr().err.startswith("minilm: 30,522 tokens\n")
        assert main(["info", MODEL, "--verbose"]) == 0
        assert capsys.readouterr().err == f"minilm: {find_model(MODEL)}\n"


@pytest.mark.parametrize(
    "command",
    [
        "train a.txt -o base.txt --base base.txt",
        "train a.txt -o link.txt --base base.txt",
        "train a.txt -o folder --base folder",
        "train a.txt -o new.txt --base base.txt --token-counts base.txt",
        "train a.txt -o new.txt --base base.txt --pieces a.txt",
        "encode a.txt -o link.jsonl --vocab base.txt",
        "embed a.txt -o folder/weights.npy -m folder",
        "report a.txt --vocab base.txt --plot picture.svg",
        "report picture.svg --vocab folder --plot picture.svg",
        "inspect a -m folder -o folder/tokenizer.json",
        "distill -m folder -o folder",
        "inspect a -m minilm --beside folder -o folder/tokenizer.json",
    ],
)
def test_an_output_that_is_a_vocabulary_model_or_text_is_refused(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.txt").write_text("a b c\n")
    Path("base.txt").write_text("[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\na\nb\n")
    for link in ("link.txt", "link.jsonl", "picture.svg"):
        Path(link).hardlink_to("base.txt")
    wb.Tokenizer.from_vocab("base.txt").save_pretrained("folder")
    Path("folder/weights.npy").write_text("w")
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    assert "is one of the inputs" in error_of(capsys, *command.split())
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


def test_verbose_says_what_is_loaded_and_lists_all_truncated_texts(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.txt").write_text(("long " * 300 + "\n") * 7)
    assert main(["embed", "a.txt", "-o", "v.npy", "--verbose"]) == 0
    assert line_interval.get() > 1  # the option ends with the command
    err = capsys.readouterr().err
    assert err.startswith("minilm: 384 dimensions, at most 256 tokens a text, loaded in ")
    assert "a.txt line 7\n" in err


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh", "fish"])
def test_completion_knows_commands_options_and_files(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    shtab = pytest.importorskip("shtab", reason="shtab is not installed: pip install '.[completion]'")
    with pytest.raises(SystemExit) as done:
        main(["--print-completion", shell])
    assert done.value.code == 0
    script = capsys.readouterr().out
    for word in ("embed", "report", "jsonl-field", "slack-ratio"):
        assert word in script
    assert str(shtab.FILE[shell]).strip("()") in script


def test_completion_without_shtab_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert "pip install 'wordpiece-bert[completion]'" in error_of(capsys, "--print-completion", "bash")


INTERRUPTED_AT = """
import os, signal, sys
module = sys.argv.pop(1)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from wordpiece_bert.cli import main
code = main()
assert not any(isinstance(finder, Finder) for finder in sys.meta_path), "was not imported"
raise SystemExit(code)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
@pytest.mark.parametrize(
    "module",
    [
        "wordpiece_bert.cli.program",
        "wordpiece_bert.cli.embed",
        "numpy",
        "numpy._core",
        "wordpiece_bert._core",
        "wordpiece_bert.tokenizer.tokenizer",
        "wordpiece_bert.sentence",
        "wordpiece_bert.bert.config",
    ],
)
def test_ctrl_c_during_imports_ends_the_command_at_once(module: str) -> None:
    Path("a.txt").write_text("text\n")
    command = [sys.executable, "-c", INTERRUPTED_AT, module, "embed", "a.txt", "-o", "v.npy"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "wordpiece-bert: interrupted\n")
    assert os.listdir() == ["a.txt"]


def test_help_of_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ([], ["embed"], ["encode"], ["info"]):
        with pytest.raises(SystemExit) as done:
            main([*command, "--help"])
        assert done.value.code == 0
        assert "usage: wordpiece-bert" in capsys.readouterr().out
