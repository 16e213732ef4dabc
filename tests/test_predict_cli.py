"""``predict``: what it writes is what the functions of the library return, and nothing is half-written."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from make_models import make_entities, make_ranker, make_reviews, make_static, make_words

import tiny_models
from command_line import desk, error_of, stdin
from model_files import MODELS, with_tokenizer
from wordpiece_bert import CrossEncoder, SentenceEncoder, tasks
from wordpiece_bert.cli import main
from wordpiece_bert.cli.predictors import JsonLines
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune import FrozenClassifier, Ridge

pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")
TEXTS = [
    "A wonderful film!",
    "",
    "The story was dull.",
    "Ada Lovelace lived in London.",
    "a great film",
    "é \U0001f600",
]
PAIRS = [("bread", "bread dough"), ("bread", "a bicycle"), ("repair a tire", "the wheel of a bicycle")]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name, make in (
        ("reviews", make_reviews),
        ("entities", make_entities),
        ("ranker", make_ranker),
        ("words", make_words),
    ):
        make(folder / name)
    return folder


def lines(file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]


def write_texts(name: str = "texts.txt") -> str:
    Path(name).write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    return name


def write_pairs() -> list[str]:
    rows = [json.dumps({"query": query, "text": {"body": text}}) for query, text in PAIRS]
    Path("pairs.jsonl").write_text("\n".join(rows))
    return ["pairs.jsonl", "--jsonl-field", "query", "--jsonl-field", "text.body"]


def test_a_classifier_gives_a_label_for_each_text(
    models: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wordpiece_bert.cli.predict.BATCHES_PER_GROUP", 1)  # several blocks
    arguments = [str(models / "reviews"), write_texts()]
    assert main(["predict", *arguments, "-o", "found.jsonl", "--batch-size", "2"]) == 0
    expected = tasks.classify(models / "reviews", TEXTS)
    assert lines("found.jsonl") == [one[0] for one in expected]
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("found.jsonl: 6 predictions (")
    assert sorted(os.listdir()) == ["found.jsonl", "texts.txt"]
    for top_k in ("all", "2"):
        assert main(["predict", *arguments, "-o", "all.jsonl", "--top-k", top_k, "--function", "none"]) == 0
        every = tasks.classify(models / "reviews", TEXTS, top_k=None, function_to_apply="none")
        assert lines("all.jsonl") == [
            {"labels": [label["label"] for label in one], "scores": [label["score"] for label in one]} for one in every
        ]


def test_a_token_classifier_gives_the_entities_of_each_text(models: Path) -> None:
    command = ["predict", str(models / "entities"), write_texts(), "-q"]
    for options, expected in (
        ([], tasks.ner(models / "entities", TEXTS)),
        (["--aggregation-strategy", "none"], tasks.ner(models / "entities", TEXTS, aggregation_strategy="none")),
    ):
        assert main([*command, "-o", "found.jsonl", *options]) == 0
        assert lines("found.jsonl") == [{"entities": one} for one in expected]
    [ada] = [row["entities"] for row in lines("found.jsonl") if row["entities"]]
    assert TEXTS[3][ada[0]["start"] : ada[0]["end"]] == "Ada"


def test_a_ranker_gives_the_scores_of_pairs(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(models / "ranker"), *write_pairs(), "-o", "found.jsonl", "--json"]) == 0
    expected = CrossEncoder(models / "ranker").predict(PAIRS)
    np.testing.assert_array_equal(np.array([row["score"] for row in lines("found.jsonl")], np.float32), expected)
    facts = json.loads(capsys.readouterr().out)
    assert (facts["kind"], facts["predictions"], facts["truncated"]) == ("reranker", 3, 0)
    assert facts["tokens"] > 3 * 3
    # A classifier reads pairs, too.
    assert main(["predict", str(models / "reviews"), *write_pairs(), "-o", "found.jsonl", "-q"]) == 0
    assert lines("found.jsonl") == [one[0] for one in tasks.classify(models / "reviews", PAIRS)]


@pytest.mark.parametrize("name", ["cross_encoder_score", "cross_encoder_classes", "rerank_modernbert"])
def test_cross_encoders_of_sentence_transformers_are_read(tmp_path: Path, name: str) -> None:
    folder = with_tokenizer(name, tmp_path) if not (MODELS / name / "tokenizer.json").is_file() else MODELS / name
    ranker = CrossEncoder(folder)
    assert main(["predict", str(folder), *write_pairs(), "-o", "found.jsonl", "-q"]) == 0
    found = lines("found.jsonl")
    if ranker.num_labels == 1:
        np.testing.assert_allclose([row["score"] for row in found], ranker.predict(PAIRS), rtol=1e-6)
    else:
        scores = ranker.predict(PAIRS, apply_softmax=True)
        np.testing.assert_allclose([row["score"] for row in found], scores.max(axis=1), rtol=1e-6)


def test_heads_on_frozen_vectors_predict(tmp_path: Path) -> None:
    encoder = SentenceEncoder(tiny_models.make_sentences(tmp_path / "sentences"))
    texts = ["the cat sat", "how to bake bread", "a cat", "bread dough"]
    Path("texts.txt").write_text("\n".join(texts))
    classifier = FrozenClassifier(encoder).fit(texts, ["animal", "food", "animal", "food"])
    classifier.save_pretrained("frozen")
    assert main(["predict", "frozen", "texts.txt", "-o", "found.jsonl", "-q"]) == 0
    assert [row["label"] for row in lines("found.jsonl")] == ["animal", "food", "animal", "food"]
    regression = FrozenClassifier(encoder, Ridge()).fit(texts, [0.5, 2.0, 0.5, 2.0])
    regression.save_pretrained("numbers")
    assert main(["predict", "numbers", "texts.txt", "-o", "found.jsonl", "-q"]) == 0
    np.testing.assert_allclose([row["score"] for row in lines("found.jsonl")], regression.predict(texts), rtol=1e-5)


def test_texts_come_from_files_of_all_kinds(
    models: Path, capsys: pytest.CaptureFixture[str], stdin: Callable[[bytes], None]
) -> None:
    table = pyarrow.table({"id": range(len(TEXTS)), "text": TEXTS})
    pyarrow.parquet.write_table(table, "texts.parquet")
    Path("texts.csv").write_text("id,text\n" + "".join(f'{i},"{text}"\n' for i, text in enumerate(TEXTS)))
    Path("texts.txt.gz").write_bytes(gzip.compress("".join(f"{text}\n" for text in TEXTS).encode()))
    stdin(Path(write_texts()).read_bytes())
    expected = [one[0] for one in tasks.classify(models / "reviews", TEXTS)]
    for arguments in (
        ["texts.parquet", "--text-column", "text"], ["texts.csv", "--text-column", "text"], ["texts.txt.gz"], ["-"],
        ["texts.txt", "--threads", "1"],
    ):  # fmt: skip
        assert main(["predict", str(models / "reviews"), *arguments, "-q"]) == 0
        assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == expected


def test_truncated_and_skipped_texts_are_reported_with_their_lines(
    models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("long.txt").write_bytes(b"dull\n" + b"dull " * 80 + b"\n\xff\nshort\n")
    assert main(["predict", str(models / "reviews"), "long.txt", "-o", "found.jsonl", "--errors", "skip"]) == 0
    err = capsys.readouterr().err
    assert "warning: 1 text skipped: long.txt: line 3" in err
    assert "warning: 1 of 3 texts truncated to the model's 64 tokens: long.txt line 2" in err
    assert len(lines("found.jsonl")) == 3
    long = "Ada Lovelace lived in London. " * 20
    Path("long.txt").write_text(long)
    assert main(["predict", str(models / "entities"), "long.txt", "-o", "found.jsonl", "--stride", "8"]) == 0
    assert "truncated" not in capsys.readouterr().err
    assert lines("found.jsonl") == [{"entities": tasks.ner(models / "entities", long, stride=8)}]


def test_a_run_that_fails_leaves_the_old_file(
    models: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wordpiece_bert.cli.predict.BATCHES_PER_GROUP", 1)
    Path("found.jsonl").write_text("old")
    Path("bad.txt").write_bytes(b"dull\n" * 4 + b"\xff\n")
    message = error_of(
        capsys, "predict", str(models / "reviews"), "bad.txt", "-o", "found.jsonl", "--batch-size", "2", "-q"
    )
    assert "bad.txt: line 5" in message
    assert Path("found.jsonl").read_text() == "old"
    assert sorted(os.listdir()) == ["bad.txt", "found.jsonl"]


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_run_that_is_ended_leaves_nothing(models: Path) -> None:
    os.mkfifo("pipe")
    command = [sys.executable, "-m", "wordpiece_bert", "predict", str(models / "reviews"), "pipe", "-o", "found.jsonl"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    with process, Path("pipe").open("wb", buffering=0) as pipe:  # waits until the command reads
        pipe.write(b"dull\n" * 10)
        while not [name for name in os.listdir() if name.endswith(".part")]:
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
    assert sorted(os.listdir()) == ["pipe"]


def test_what_does_not_fit_is_refused_in_one_line(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts, pairs = write_texts(), write_pairs()
    for model, arguments, message in (
        ("words", [texts], "is a BertForMaskedLM: predict needs a classifier of texts or of tokens, or a ranker"),
        ("reviews", [texts, "--stride", "3"], "--stride does not fit"),
        ("reviews", [texts, "--aggregation-strategy", "max"], "--aggregation-strategy does not fit"),
        ("reviews", [texts, "--top-k", "0"], "'0' is not a whole number above 0"),
        ("reviews", [texts, "-o", "found.csv"], "predictions are written as .jsonl"),
        ("reviews", ["pairs.jsonl"], "pass the field that holds the texts"),
        ("reviews", [*pairs, "-o", "pairs.jsonl"], "pairs.jsonl"),
        ("entities", [texts, "--top-k", "2"], "--top-k does not fit"),
        ("entities", [texts, "--function", "none"], "--function does not fit"),
        ("entities", pairs, "classifies tokens, of single texts"),
        ("ranker", [*pairs, "--top-k", "2"], "--top-k does not fit"),
        ("ranker", [*pairs, "--stride", "2"], "--stride does not fit"),
    ):
        assert message in error_of(capsys, "predict", str(models / model), *arguments)
    make_static(Path("static"))
    assert "is a static encoder, which makes vectors: use embed" in error_of(capsys, "predict", "static", texts)


def test_a_single_label_for_single_texts_is_pointed_out(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(models / "ranker"), write_texts(), "-o", "found.jsonl"]) == 0
    assert "if it ranks texts for queries, name two columns" in " ".join(capsys.readouterr().err.split())
    loaded = tasks.load(models / "ranker")
    regression = type(loaded.model)(
        dataclasses.replace(loaded.model.config, problem_type="regression"), dict(loaded.model.named_parameters())
    )
    regression.save_pretrained("regression")
    loaded.tokenizer.save_pretrained("regression")
    assert main(["predict", "regression", "texts.txt", "-o", "found.jsonl"]) == 0
    assert "warning" not in capsys.readouterr().err
    expected = tasks.classify("regression", TEXTS)
    assert lines("found.jsonl") == [{"score": one[0]["score"]} for one in expected]


def test_a_score_that_is_nan_is_an_error_with_its_place() -> None:
    with JsonLines(Path("p.jsonl")) as output, pytest.raises(InputError, match="prediction 2: a score is not finite"):
        output.append([{"score": 0.5}, {"score": float("nan")}])
