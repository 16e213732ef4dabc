"""The command line: embed and info, their output and errors, and that no partial files are left behind."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tiny_models
import wordpiece_bert as wb
from command_line import MODEL, desk, encoder, error_of, stdin
from model_files import MODELS
from wordpiece_bert.cli import main
from wordpiece_bert.hub import find_model

pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.model


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
        (["--json"], "unknown option --json"),
        # As of a variable of the shell that is not set.
        (["distill", "-o", ""], "argument -o/--output: is empty"),
        (["encode", "a.txt", "-o", ""], "argument -o/--output: is empty"),
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


# --- info


def test_info_describes_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", MODEL]) == 0
    out = capsys.readouterr().out
    for fact in ("30,522", "[CLS] 101", "384", "256", "mean"):
        assert fact in out


def test_info_says_what_a_vocabulary_does_to_texts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    cased, uncased = tmp_path / "cased.txt", tmp_path / "uncased.txt"
    cased.write_text("[UNK]\n[CLS]\nParis\nparis\n")
    uncased.write_text("[UNK]\n[CLS]\n[SEP]\nparis\n")
    for path, lost, added in ((cased, True, 0), (uncased, False, 2)):
        assert main(["info", str(path), "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)["tokenizer"]
        assert (facts["lower_case"], facts["special_tokens_of_a_row"]) == (True, added)
        assert ("remarks" in facts) == lost
        assert not lost or "'Paris' (1 of 2) are in no text" in facts["remarks"][0]
    assert main(["info", str(cased)]) == 0
    output = capsys.readouterr()
    assert re.search(r"lower case +yes\n", output.out)
    assert "no '[SEP]', so no special tokens are added" in output.err


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
