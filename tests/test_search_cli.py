"""The command `search`: what it finds, the vectors it keeps, where queries come from, and its errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import error_of
from tiny_models import make_ranker, make_sentences, make_words
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence import CrossEncoder, SentenceEncoder, retrieve_and_rerank
from wordpiece_bert.tokenizer.corpus.vector_files import read_vectors

TEXTS = ["to repair a bicycle", "bread dough in the oven", "", "the capital of Poland", "flour and  water"]
QUERIES = ["how to bake bread", "a city in Poland"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    make_sentences(folder / "sentences")
    make_ranker(folder / "ranker")
    return folder


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("texts.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return tmp_path


def search(models: Path, capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, Any]]:
    """Run the command with the queries and ``--json``; return what it prints."""
    asked = [part for query in QUERIES for part in ("--query", query)]
    assert main(["search", "texts.txt", "-m", str(models / "sentences"), *asked, "--json", "-q", *options]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_hits_are_those_of_the_library(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    encoder, ranker = SentenceEncoder(models / "sentences"), CrossEncoder(models / "ranker")
    for options, expected in [
        (("-k", "2"), retrieve_and_rerank(QUERIES, TEXTS, encoder, top_k=2)),
        (
            ("--rerank", str(models / "ranker"), "--candidates", "3"),
            retrieve_and_rerank(QUERIES, TEXTS, encoder, ranker, retrieve_top_k=3),
        ),
    ]:
        found = search(models, capsys, *options)
        assert [one["query"] for one in found] == QUERIES
        for one, hits in zip(found, expected, strict=True):
            assert [hit["location"] for hit in one["hits"]] == [f"texts.txt line {h['corpus_id'] + 1}" for h in hits]
            for hit, other in zip(one["hits"], hits, strict=True):
                assert hit["text"] == other["text"]
                np.testing.assert_allclose(hit["score"], other["score"], atol=1e-6)
                assert ("retrieval_score" in hit) == ("--rerank" in options)


@pytest.mark.parametrize("kind", ["npy", "parquet", "arrow", "arrows", "jsonl"])
def test_vectors_are_made_once_and_are_those_of_embed(
    models: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    made = search(models, capsys, "--vectors", f"made.{kind}")
    model = str(models / "sentences")
    assert main(["embed", "texts.txt", "-m", model, "--documents", "-o", f"embedded.{kind}", "-q"]) == 0
    assert Path(f"made.{kind}").read_bytes() == Path(f"embedded.{kind}").read_bytes()
    np.testing.assert_allclose(
        read_vectors(Path(f"made.{kind}")), SentenceEncoder(model).encode_document(TEXTS), rtol=0, atol=1e-6
    )
    before = os.stat(f"made.{kind}").st_mtime_ns
    assert search(models, capsys, "--vectors", f"made.{kind}") == made
    assert os.stat(f"made.{kind}").st_mtime_ns == before


def test_locations_are_those_of_several_files_and_fields(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        Path(f"{name}.jsonl").write_text("".join(json.dumps({"t": f"{name} {text}"}) + "\n" for text in TEXTS))
    model = str(models / "sentences")
    options = ["--jsonl-field", "t", "-m", model, "--query", "two", "-k", "100", "--batch-size", "1", "--json", "-q"]
    assert main(["search", "one.jsonl", "two.jsonl", *options]) == 0
    hits = json.loads(capsys.readouterr().out)["hits"]
    assert len(hits) == 2 * len(TEXTS)
    for hit in hits:
        file, line = hit["location"].removesuffix(".").split(".jsonl line ")
        assert hit["text"] == f"{file} {TEXTS[int(line) - 1]}"


def test_the_table_has_a_line_for_each_hit(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(models / "sentences")
    assert main(["search", "texts.txt", "-m", model, "--query", "flour", "-k", "4", "-q"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "flour"
    assert len(lines) == 6
    assert sum(line.endswith("  texts.txt line 5  flour and water") for line in lines) == 1  # without the second space
    assert lines[5] == ""


@pytest.mark.parametrize("option", [[], ["--queries", "-"], ["--interactive"], ["--queries", "queries.txt"]])
def test_queries_come_from_standard_input_or_a_file(models: Path, option: list[str]) -> None:
    given = "".join(f"{query}\n\n" for query in QUERIES)
    Path("queries.txt").write_text(given)
    command = [sys.executable, "-m", "wordpiece_bert", "search", "texts.txt", "-m", str(models / "sentences"), "--json"]
    done = subprocess.run([*command, *option, "-q"], input=given, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(line)["query"] for line in done.stdout.splitlines()] == QUERIES


def test_a_static_model_and_a_prompt_for_documents(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from wordpiece_bert.sentence import distill_static

    folder = tmp_path / "static"
    distill_static(models / "sentences", pca_dims=None).save_pretrained(folder)
    for prompts in ({}, {"document": "bread "}):
        (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
        found = search(folder.parent, capsys, "-m", str(folder), "--vectors", f"{len(prompts)}.npy")
        encoder = SentenceEncoder(folder)
        np.testing.assert_allclose(np.load(f"{len(prompts)}.npy"), encoder.encode_document(TEXTS), atol=1e-6)
        expected = retrieve_and_rerank(QUERIES, TEXTS, encoder)
        assert [[hit["corpus_id"] for hit in one["hits"]] for one in found] == [
            [hit["corpus_id"] for hit in hits] for hits in expected
        ]


def test_errors_say_what_to_do(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = ["-m", str(models / "sentences")]
    np.save("few.npy", np.ones((2, 3), np.float32))
    np.save("narrow.npy", np.ones((len(TEXTS), 3), np.float32))
    np.save("flat.npy", np.ones(3, np.float32))
    Path("broken.npy").write_bytes(b"no array")
    Path("broken.jsonl").write_text('{"other": 1}\n')
    make_words(models / "words")
    for options, message in [
        (["--vectors", "few.npy"], "few.npy has 2 vectors, but there are 5 texts"),
        (["--vectors", "narrow.npy"], "has vectors of 3 numbers, the model of"),
        (["--vectors", "flat.npy"], "has float32 of shape [3], not vectors [n, d]"),
        (["--vectors", "broken.npy"], "is not a .npy file of vectors"),
        (["--vectors", "broken.jsonl"], "is not a .jsonl file of vectors"),
        (["--vectors", "v.txt"], "--vectors ends in .npy"),
        (["--rerank", str(models / "sentences")], "sequence classification"),
        (["--jsonl-field", "a", "--jsonl-field", "b"], "give it once, as a vector belongs to one text"),
        (["--queries", "texts.txt"], "not allowed with argument"),
    ]:
        assert message in error_of(capsys, "search", "texts.txt", *model, "--query", "a", *options), options
    Path("same.jsonl").write_text('{"t": "a"}\n')
    arguments = ["same.jsonl", "--jsonl-field", "t", "--vectors", "same.jsonl", "--query", "a"]
    assert "is one of the inputs" in error_of(capsys, "search", *model, *arguments)
    assert "no query: texts are read from standard input" in error_of(capsys, "search", "-", *model)


def test_a_file_of_vectors_has_a_known_suffix(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"read from files that end in \.npy, \.parquet"):
        read_vectors(tmp_path / "vectors.bin")


def test_vectors_are_not_left_half_written(models: Path) -> None:
    Path("texts.txt").write_bytes(b"good\n" * 100 + b"\xff\n")
    assert main(["search", "texts.txt", "-m", str(models / "sentences"), "--query", "a", "--vectors", "v.npy"]) == 2
    assert os.listdir() == ["texts.txt"]
