"""The command line: train, count and report, and what info prints about a vocabulary."""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path

import pytest

import wordpiece_bert as wb
from wordpiece_bert.cli import main

pytest.importorskip("pyarrow")

# Small corpora make smaller vocabularies than requested, which raises a warning.
pytestmark = pytest.mark.filterwarnings("ignore::wordpiece_bert.errors.TrainingWarning")

TEXTS = ["The quick brown fox jumped", "over the lazy dog. The dog slept", "Ärger über Öl, the dog"] * 4


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    return path


def test_train_writes_the_folder_of_a_tokenizer(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "vocab"
    counts = tmp_path / "used.tsv"
    assert main(["train", str(corpus), "-n", "70", "-o", str(folder), "--token-counts", str(counts)]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "70 tokens by bpe" in captured.err
    assert "12 texts" in captured.err
    expected = wb.train_vocab(corpus, 70)
    tokenizer = wb.Tokenizer.from_pretrained(folder)
    assert tokenizer == expected.tokenizer()
    assert counts.read_text(encoding="utf-8").splitlines()[-1] == f"{expected.tokens[-1]}\t{expected.counts[-1]}"


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["--cased"], {"lowercase": False}),
        (["--keep-accents"], {"strip_accents": False}),
        (["-a", "likelihood", "--min-frequency", "5"], {"algorithm": "likelihood", "min_frequency": 5}),
        (
            ["--limit-alphabet", "all", "--initial-alphabet", "xyz"],
            {"limit_alphabet": None, "initial_alphabet": ["x", "y", "z"]},
        ),
        (["-a", "top_down", "--lower-thresh", "1"], {"algorithm": "top_down", "lower_thresh": 1}),
        (
            ["-a", "top_down", "--lower-thresh", "all", "--no-joiner"],
            {"algorithm": "top_down", "lower_thresh": None, "include_joiner": False},
        ),
        (["--special-token", "[UNK]", "--special-token", "<x>"], {"special_tokens": ["[UNK]", "<x>"]}),
        (["--reserved", "bert", "--unused", "3"], {"reserved": "bert", "unused": 3}),
        (["--max-word-chars", "4"], {"max_word_chars": 4}),
    ],
)
def test_command_line_options_reach_the_library(
    arguments: list[str], options: dict[str, object], corpus: Path, tmp_path: Path
) -> None:
    output = tmp_path / "vocab.txt"
    assert main(["train", str(corpus), "-q", "-n", "60", "-o", str(output), *arguments]) == 0
    expected = wb.train_vocab(corpus, 60, **options)  # type: ignore[arg-type]
    assert output.read_text(encoding="utf-8").splitlines() == expected.tokens


def test_texts_are_read_from_all_kinds_of_files(corpus: Path, tmp_path: Path) -> None:
    zipped, lines = tmp_path / "corpus.txt.gz", tmp_path / "corpus.jsonl"
    zipped.write_bytes(gzip.compress(corpus.read_bytes()))
    lines.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    outputs = []
    for i, arguments in enumerate(([str(corpus)], [str(zipped)], [str(lines), "--jsonl-field", "text"])):
        output = tmp_path / f"{i}.tsv"
        assert main(["count", "-q", "-o", str(output), *arguments]) == 0
        outputs.append(wb.WordCounts.load(output).to_dict())
    assert outputs[0] == outputs[1] == outputs[2] == wb.WordCounts.from_texts(TEXTS).to_dict()
    assert main(["count", "-q", "-o", str(tmp_path / "x.tsv"), str(lines)]) == 2


def test_counts_by_file_are_reused_and_can_be_trained_from(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.txt"
    other.write_text("more words for the dog\n")
    folder = tmp_path / "counts"
    command = ["count", str(corpus), str(other), "-o", str(folder), "--format", "tsv"]
    assert main(command) == 0
    assert "2 files counted;" in capsys.readouterr().err
    first = (folder / "corpus.txt.tsv").read_bytes()
    other.write_text("more words for the dog and the fox\n")
    assert main(command) == 0
    assert "1 file counted, 1 counted before" in capsys.readouterr().err
    assert (folder / "corpus.txt.tsv").read_bytes() == first
    files = sorted(map(str, folder.glob("*.tsv")))
    output = tmp_path / "vocab.txt"
    assert main(["train", "--counts", *files, "-n", "60", "-o", str(output)]) == 0
    expected = wb.train_vocab([corpus, other], 60).tokens
    assert output.read_text(encoding="utf-8").splitlines() == expected
    assert main(["train", "--counts", *files, "--cased", "-o", str(output)]) == 2
    assert "contradict" in capsys.readouterr().err


def test_counts_of_other_texts_are_not_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("a.jsonl", "cat"), ("b/a.jsonl", "fox")):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(json.dumps({"title": f"the {text}", "body": "a dog sat"}))

    def words(file: str, field: str, *options: str) -> list[str]:
        assert main(["count", file, "--jsonl-field", field, "-o", "counts", "--format", "tsv", *options]) == 0
        return list(wb.WordCounts.load("counts/a.jsonl.tsv"))

    assert words("a.jsonl", "title") == ["cat", "the"]
    assert words("a.jsonl", "body") == ["a", "dog", "sat"]
    assert words("a.jsonl", "body", "--max-distinct-words", "3") == ["a", "dog", "sat"]
    Path("a.jsonl").write_text(Path("a.jsonl").read_text().replace("dog", "cow"))  # of the same size
    assert words("a.jsonl", "body") == ["a", "cow", "sat"]
    assert "counted before" not in capsys.readouterr().err
    assert main(["count", "b/a.jsonl", "--jsonl-field", "body", "-o", "counts", "--format", "tsv"]) == 2
    assert "counts/a.jsonl.tsv has the counts of" in capsys.readouterr().err
    Path("a.jsonl").unlink()
    assert words("b/a.jsonl", "title") == ["fox", "the"]


def test_a_list_of_words_has_the_normalizer_of_the_call(tmp_path: Path) -> None:
    (tmp_path / "words.tsv").write_text("The\t5\nthe\t3\n")
    command = ["train", "--counts", str(tmp_path / "words.tsv"), "-q", "-n", "20", "-o", str(tmp_path / "out")]
    for option, normalized in ((["--cased"], "The\u0301"), (["--keep-accents"], "the\u0301"), ([], "the")):
        assert main([*command, *option]) == 0
        assert wb.Tokenizer.from_pretrained(tmp_path / "out").normalize("The\u0301") == normalized


def test_skipped_texts_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad, vocab = tmp_path / "bad.csv", tmp_path / "vocab.txt"
    bad.write_bytes(b"text\nthe cat\n\xff\nthe dog\n")
    vocab.write_text("[UNK]\n[CLS]\n[SEP]\nthe\n")
    options = [str(bad), "--text-column", "text", "--errors", "skip"]
    for command, said in (
        (["count", "-o", str(tmp_path / "c.tsv")], f"1 text skipped: {bad}: line 3"),
        (["train", "-n", "20", "-o", str(tmp_path / "v")], "1 texts could not be read and were skipped"),
        (["report", "-v", str(vocab)], f"1 text skipped: {bad}: line 3"),
    ):
        with warnings.catch_warnings(action="always"):
            assert main([command[0], *options, *command[1:]]) == 0
        assert said in capsys.readouterr().err
    counts = wb.WordCounts.load(tmp_path / "c.tsv")
    assert (counts.texts, counts.skipped) == (2, 1)


def test_a_vocabulary_is_extended(corpus: Path, tmp_path: Path) -> None:
    base = tmp_path / "base.txt"
    tokens = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", *"thedogqu", "##h", "##e", "##o", "##g"]
    base.write_text("".join(f"{token}\n" for token in tokens))
    output, pieces = tmp_path / "vocab.txt", tmp_path / "pieces.tsv"
    common = ["train", str(corpus), "-q", "--base", str(base), "--limit-alphabet", "0", "-o", str(output)]
    assert main([*common, "--fill-unused", "--pieces", str(pieces)]) == 0
    found = output.read_text(encoding="utf-8").splitlines()
    assert len(found) == len(tokens)
    assert [found[i] == tokens[i] for i in range(len(tokens))].count(False) == 2
    rows = [row.split("\t") for row in pieces.read_text(encoding="utf-8").splitlines()]
    assert [row[0] for row in rows] == found[1:3]
    assert all(piece in tokens for row in rows for piece in row[1].split())


def test_reports_of_vocabularies(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    small, large = tmp_path / "small.txt", tmp_path / "large.txt"
    main(["train", str(corpus), "-q", "-n", "50", "-o", str(small)])
    main(["train", str(corpus), "-q", "-n", "70", "-o", str(large)])
    capsys.readouterr()
    picture = tmp_path / "both.png"
    assert main(["report", str(corpus), "-v", str(small), "-v", str(large), "--plot", str(picture)]) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0].split() == [str(small), str(large)]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["report", str(corpus), "-v", str(small), "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["fertility"] == wb.vocab_report(wb.Tokenizer.from_vocab(small), TEXTS).fertility
    assert main(["report", "-", "-v", str(small), "-v", str(large)]) == 2


def test_info_describes_the_contents_of_a_vocabulary(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "vocab.txt"
    main(["train", str(corpus), "-q", "-n", "70", "-o", str(path)])
    capsys.readouterr()
    assert main(["info", str(path), "--json"]) == 0
    contents = json.loads(capsys.readouterr().out)["contents"]
    assert contents["special"]["[MASK]"] == 4
    ((token, number),) = contents["first_whole_word"].items()
    assert path.read_text(encoding="utf-8").splitlines()[number] == token
    assert main(["info", str(path)]) == 0
    assert f"{token} {number}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "missing.txt", "-o", "out"], "missing.txt"),
        (["train", "{corpus}", "-o", "{corpus}.d/x/vocab.txt"], "No such file"),
        (["train", "{corpus}", "-o", "out", "--pieces", "p.tsv"], "--base"),
        (["train", "{corpus}", "-o", "out", "-a", "top_down", "--min-frequency", "2"], "--min-frequency"),
        (["train", "{corpus}", "-o", "out", "--fill-unused"], "--fill-unused"),
        (["count", "-", "-o", "folder"], "standard input"),
        (["count", "{corpus}", "{corpus}", "-o", "folder"], "same name"),
        (["report", "{corpus}", "-v", "nowhere"], "nowhere"),
    ],
)
def test_errors_of_training_commands_are_one_line(
    arguments: list[str],
    message: str,
    corpus: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([argument.format(corpus=corpus) for argument in arguments]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("wordpiece-bert: error: ")
    assert message in error


def test_invalid_utf8_is_reported_with_its_location(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "latin1.txt"
    path.write_bytes("first\nzweite Zeile für alle\n".encode("latin-1"))
    assert main(["train", str(path), "-o", str(tmp_path / "out")]) == 2
    assert f"{path}: not UTF-8: byte 0xfc in line 2, byte offset 20" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main(["train", str(path), "-q", "--errors", "replace", "-o", str(tmp_path / "out")]) == 0
