"""The command line: embed, encode and info, their output and errors, and that no partial files are left behind."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import tiny_models
import wordpiece_bert as wb
from model_files import MODELS
from wordpiece_bert._internal.progress import line_interval
from wordpiece_bert.cli import main
from wordpiece_bert.hub import find_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODEL = "minilm"
pytestmark = pytest.mark.model


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


# --- embed


def test_embed_writes_the_vectors_of_the_library(
    encoder: wb.SentenceEncoder, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["The cat sat.", "", "  spaces stay inside  ", "Łódź 😀"]
    Path("texts.txt").write_bytes("\n".join(texts).encode() + b"\n")
    assert main(["embed", "--model", MODEL, "texts.txt", "-o", "vectors.npy"]) == 0
    vectors = np.load("vectors.npy")
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, encoder.encode(texts), atol=1e-6, rtol=0)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("vectors.npy: 4 vectors of 384 float32")
    assert sorted(os.listdir()) == ["texts.txt", "vectors.npy", "vectors.npy.fingerprint.json"]


def test_embed_does_not_depend_on_batch_size_and_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wordpiece_bert.cli.embed.BATCHES_PER_GROUP", 2)
    Path("texts.txt").write_text("".join(f"{'word ' * (i % 5)}{i}\n" for i in range(23)))
    main(["embed", "texts.txt", "-o", "a.npy", "--batch-size", "3"])
    main(["embed", "texts.txt", "-o", "b.npy", "--batch-size", "64", "--threads", "1"])
    np.testing.assert_allclose(np.load("a.npy"), np.load("b.npy"), atol=1e-6, rtol=0)


def test_embed_reads_several_files_and_standard_input_in_order(
    encoder: wb.SentenceEncoder, stdin: Callable[[bytes], None]
) -> None:
    Path("a.txt").write_text("first\nsecond")
    Path("b.txt").write_text("last\n")
    stdin(b"from a pipe\n")
    assert main(["embed", "a.txt", "-", "b.txt", "-o", "vectors.npy", "-q"]) == 0
    expected = encoder.encode(["first", "second", "from a pipe", "last"])
    np.testing.assert_allclose(np.load("vectors.npy"), expected, atol=1e-6, rtol=0)


def test_embed_whole_reads_a_file_as_one_text(encoder: wb.SentenceEncoder) -> None:
    Path("a.txt").write_text("one\ntwo\n")
    assert main(["embed", "--whole", "a.txt", "-o", "vectors.npy"]) == 0
    np.testing.assert_allclose(np.load("vectors.npy"), encoder.encode(["one\ntwo\n"]), atol=1e-6, rtol=0)


def test_embed_reads_fields_and_skips_invalid_texts(
    encoder: wb.SentenceEncoder, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("texts.jsonl").write_text('{"a": {"b": "one"}}\n{}\n{"a": {"b": "two"}}\n')
    assert main(["embed", "texts.jsonl", "--jsonl-field", "a.b", "--errors", "skip", "-o", "vectors.npy"]) == 0
    np.testing.assert_allclose(np.load("vectors.npy"), encoder.encode(["one", "two"]), atol=1e-6, rtol=0)
    assert "1 text skipped: texts.jsonl: line 2, byte offset 20: no field" in capsys.readouterr().err


def test_embed_of_no_texts_writes_an_empty_array_of_the_right_width(capsys: pytest.CaptureFixture[str]) -> None:
    Path("texts.txt").touch()
    assert main(["embed", "texts.txt", "-o", "vectors.npy"]) == 0
    assert np.load("vectors.npy").shape == (0, 384)
    assert "0 vectors" in capsys.readouterr().err


def test_embed_reports_truncated_texts(capsys: pytest.CaptureFixture[str]) -> None:
    Path("texts.txt").write_text("short\n" + "long " * 600 + "\nshort\n" + "long " * 254 + "\n" + "long " * 255 + "\n")
    assert main(["embed", "texts.txt", "-o", "vectors.npy"]) == 0
    err = capsys.readouterr().err
    assert "2 of 5 texts truncated to the model's 256 tokens: texts.txt line 2, texts.txt line 5\n" in err


def test_embed_counts_truncated_texts_that_it_does_not_list(capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tiny_models.make_sentences(Path("sentences")))
    Path("texts.txt").write_text(("bread " * 70 + "\n") * 22)
    assert main(["embed", "-m", folder, "texts.txt", "-o", "vectors.npy", "-q"]) == 0
    err = capsys.readouterr().err
    assert err.startswith("wordpiece-bert: warning: 22 of 22 texts truncated to the model's 64 tokens:\n")
    assert err.endswith("  texts.txt line 5\n  and 17 more: --verbose lists all\n")
    assert max(map(len, err.splitlines())) <= 120
    assert main(["embed", "-m", folder, "texts.txt", "-o", "vectors.npy", "--verbose"]) == 0
    assert capsys.readouterr().err.count("  texts.txt line ") == 22


def test_embed_normalize_writes_unit_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    # minilm has a module that normalizes; without it the option must do so.
    folder = shutil.copytree(find_model(MODEL), "model")
    modules = [m for m in json.loads(Path(folder, "modules.json").read_text()) if not m["type"].endswith("Normalize")]
    Path(folder, "modules.json").write_text(json.dumps(modules))
    Path("texts.txt").write_text("The cat sat.\n")
    main(["embed", "--model", "model", "texts.txt", "-o", "plain.npy"])
    main(["embed", "--model", "model", "texts.txt", "-o", "unit.npy", "--normalize"])
    plain, unit = np.load("plain.npy"), np.load("unit.npy")
    assert not np.isclose(np.linalg.norm(plain), 1, atol=1e-3)
    np.testing.assert_allclose(unit, plain / np.linalg.norm(plain), atol=1e-6)


def test_embed_replaces_the_target_of_a_link_and_keeps_the_link() -> None:
    Path("texts.txt").write_text("text\n")
    Path("real.npy").write_bytes(b"old")
    Path("link.npy").symlink_to("real.npy")
    assert main(["embed", "texts.txt", "-o", "link.npy"]) == 0
    assert Path("link.npy").is_symlink()
    assert np.load("real.npy").shape == (1, 384)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError, wb.WordPieceError("no")])
def test_an_interrupted_embed_keeps_the_old_output(
    interruption: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def encode(self: object, texts: list[str], **_: object) -> object:
        if "bad" in texts:
            raise interruption
        return np.zeros((len(texts), 384), np.float32), np.zeros(len(texts), bool)

    monkeypatch.setattr(wb.SentenceEncoder, "encode", encode)
    monkeypatch.setattr("wordpiece_bert.cli.embed.BATCHES_PER_GROUP", 1)
    Path("texts.txt").write_text("good\nbad\n")
    Path("vectors.npy").write_bytes(b"old")
    arguments = ["embed", "texts.txt", "-o", "vectors.npy", "--batch-size", "1"]
    if interruption is MemoryError:  # not an error that the command handles: it propagates
        with pytest.raises(MemoryError):
            main(arguments)
    else:
        assert main(arguments) == (130 if interruption is KeyboardInterrupt else 2)
        assert capsys.readouterr().err in {"wordpiece-bert: interrupted\n", "wordpiece-bert: error: no\n"}
    assert Path("vectors.npy").read_bytes() == b"old"
    assert sorted(os.listdir()) == ["texts.txt", "vectors.npy"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["embed", "none.txt", "-o", "v.npy"], "none.txt: No such file"),
        (["embed", "a.txt", "-o", "v.txt"], "v.txt: vectors are written as .npy"),
        (["embed", "a.txt", "-o", "nowhere/v.npy"], "nowhere does not exist"),
        (["embed", "a.txt", "-o", "folder.npy"], "folder.npy: is a folder"),
        (["embed", "folder.npy", "-o", "v.npy"], "folder.npy: is a folder"),
        (["embed", "-", "-", "-o", "v.npy"], "only once"),
        (["embed", "a.txt"], "-o/--output"),
        (["embed", "a.txt", "-o", "v.npy", "--batch-size", "0"], "'0' is not a whole number above 0"),
        (["embed", "a.txt", "-o", "v.npy", "--model", "no/such-model"], "no/such-model"),
        (["encode"], "no text to read: give files"),
        (["encode", "a.txt", "--text", "a"], "either files or --text"),
        (["encode", "--text", "a", "--cased"], "--cased applies to a vocab.txt"),
        (["encode", "--text", "a", "--max-length", "1"], "--max-length"),
        (["encode", "--text", "a", "--vocab", "broken.json"], "broken.json"),
        (["encode", "a.txt", "-o", "o.txt"], "o.txt: tokens are written as .npy"),
        (["encode", "a.txt", "-o", "nowhere/o.npy"], "nowhere does not exist"),
        (["encode", "a.txt", "-o", "o.npy", "--tokens"], "--output excludes --text and --tokens"),
        (["encode", "a.txt", "-o", "o.npy", "--padding"], "--padding fills rows up to --max-length"),
        (["encode", "a.txt", "-o", "o.npy", "--jsonl-field", "a"], "a.txt: line 1, byte offset 0: not JSON"),
        (["encode", "a.txt", *["--jsonl-field", "a"] * 3], "--jsonl-field is given 3 times"),
        (["encode", "a.txt", "--separator", ""], "to read each file as one text, use --whole"),
        (["encode", "a.txt", "--whole", "--separator", ";"], "--whole"),
        (["encode", "a.txt", "--dtype", "int8"], "--dtype"),
        (["info", "no/such-model"], "no/such-model"),
        (
            ["embed", "a.txt", "-o", "v.npy", "--jsonl-field", "a", "--jsonl-field", "b"],
            "give it once, as a vector belongs to one text",
        ),
        (["frobnicate"], "frobnicate"),
        (["embde", "a.txt"], "did you mean 'embed'?"),
        (["embed", "a.txt", "--ouput", "v.npy"], "unknown option --ouput; did you mean '--output'?"),
        (["--verison"], "unknown option --verison; did you mean '--version'?"),
        (["embed", "b.txt", "-o", "v.npy"], "b.txt: No such file or directory; did you mean 'a.txt'?"),
        (["embed", "./foldr.npy/a.txt", "-o", "v.npy"], "did you mean 'folder.npy'?"),
        (["embed", "a.txt", "-o", "v.npy", "--model", "minlm"], "did you mean 'minilm'?"),
        (["encode", "a.txt", "--errors", "skipp"], "did you mean 'skip'?"),
        (["embed", "a.jsonl", "-o", "v.npy"], "pass the field that holds the texts: --jsonl-field text"),
        (["--print-completion", "basch"], "did you mean 'bash'?"),
        ([], "COMMAND"),
    ],
    ids=" ".join,
)
def test_errors_are_one_line(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.txt").write_text("text\n")
    Path("broken.json").write_text('{"version": "1.0"')
    Path("folder.npy").mkdir()
    assert complaint in error_of(capsys, *arguments)
    assert sorted(os.listdir()) == ["a.txt", "broken.json", "folder.npy"]


def test_a_device_is_never_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.txt").write_text("text\n")
    Path("v.npy").symlink_to(os.devnull)
    assert "not an ordinary file" in error_of(capsys, "embed", "a.txt", "-o", "v.npy")


def test_debug_shows_the_traceback() -> None:
    with pytest.raises(wb.WordPieceError):
        main(["encode", "--debug"])


# --- encode


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


def test_encode_cased_keeps_case(capsys: pytest.CaptureFixture[str]) -> None:
    Path("vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\nÉ\ne\n")
    assert records(capsys, "--vocab", "vocab.txt", "--text", "É") == [{"ids": [1, 4, 2]}]
    assert records(capsys, "--vocab", "vocab.txt", "--cased", "--text", "É") == [{"ids": [1, 3, 2]}]


def test_warnings_of_the_library_are_one_line(
    capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    Path("vocab.txt").write_text("[UNK]\na\na\n")
    code = "import warnings; warnings.simplefilter('default'); from wordpiece_bert.cli import main; raise SystemExit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "encode", "--vocab", "vocab.txt", "--text", "a"],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
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


# --- info


def test_info_describes_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", MODEL]) == 0
    out = capsys.readouterr().out
    for fact in ("30,522", "[CLS] 101", "384", "256", "mean"):
        assert fact in out


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
        assert err == "" or command == "train"  # which may warn that the vocabulary is small
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
    Path("a.txt").write_text("word by word\n" * 10)
    token = line_interval.set(0)
    try:
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
    finally:
        line_interval.reset(token)


def test_the_share_that_is_done_follows_tokens(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Eight short texts, and two that have nine tenths of the tokens: one group, several passes.
    monkeypatch.setattr("wordpiece_bert.sentence.dense.transformer.TOKENS_PER_CALL", 10)
    Path("a.txt").write_text("a\n" * 8 + f"{'word ' * 120}\n" * 2)
    token = line_interval.set(0)
    try:
        assert main(["embed", "a.txt", "-o", "v.npy"]) == 0
    finally:
        line_interval.reset(token)
    lines = capsys.readouterr().err.splitlines()
    shown = [re.match(r" *(\d+)%, .* (\d+) texts?,", one) for one in lines]
    shares = {int(one[2]): int(one[1]) for one in shown if one}
    assert shares[8] < 20
    assert shares[9] in range(45, 60)
    assert shares[10] == 100


def test_progress_of_report_and_of_printed_rows(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.txt").write_text("word by word\n" * 600)
    token = line_interval.set(0)
    try:
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
    finally:
        line_interval.reset(token)


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
        "wordpiece_bert.tokenizer",
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


# --- embed with models whose vectors differ in length


@pytest.mark.parametrize("kind", ["jsonl", "arrow", "arrows", "parquet"])
@pytest.mark.parametrize("documents", [False, True])
@pytest.mark.parametrize("name", ["splade_max", "splade_inference_free", "colbert_st"])
def test_embed_writes_rows_of_various_lengths(
    name: str, documents: bool, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["New dog", "the river is good!", "☃"]
    Path("texts.txt").write_text("\n".join(texts), encoding="utf-8")
    more = ["--documents"] if documents else []
    folder = str(MODELS / name)
    assert main(["embed", "-m", folder, "texts.txt", "-o", f"x.{kind}", "--threads", "1", "--verbose", *more]) == 0
    assert ("multi-vector encoder" if name == "colbert_st" else "sparse encoder") in capsys.readouterr().err
    if kind == "jsonl":
        found = [json.loads(line) for line in Path("x.jsonl").read_text().splitlines()]
    else:
        if kind == "parquet":
            found = pyarrow.parquet.read_table("x.parquet").to_pylist()
        else:
            opened = pyarrow.ipc.open_file if kind == "arrow" else pyarrow.ipc.open_stream
            found = opened(Path(f"x.{kind}").read_bytes()).read_all().to_pylist()
    if name == "colbert_st":
        encoder = wb.MultiVectorEncoder(folder)
        vectors = encoder.encode_document(texts) if documents else encoder.encode(texts)
        assert [np.float32(row["vectors"]).tolist() for row in found] == [array.tolist() for array in vectors]
        return
    sparse = wb.SparseEncoder(folder)
    rows = sparse.encode_document(texts) if documents else sparse.encode(texts)
    assert [row["indices"] for row in found] == [row.indices.tolist() for row in rows]
    assert [np.float32(row["values"]).tolist() for row in found] == [row.values.tolist() for row in rows]


def test_embed_refuses_formats_and_options_of_dense_vectors(capsys: pytest.CaptureFixture[str]) -> None:
    Path("texts.txt").write_text("a\n")
    folder = str(MODELS / "splade_max")
    assert main(["embed", "-m", folder, "texts.txt", "-o", "x.npy"]) != 0
    assert "cannot be written as npy: the formats are parquet, arrow, arrows, jsonl" in capsys.readouterr().err
    assert not Path("x.npy").exists()
    assert main(["embed", "-m", folder, "texts.txt", "-o", "x.jsonl", "--normalize"]) != 0
    assert "--normalize is for dense vectors" in capsys.readouterr().err
