"""Commands on every kind of model folder that this package and its examples write, and their prompts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny_models
from command_line import error_of
from wordpiece_bert import Tokenizer
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence import (
    CrossEncoder,
    MultiVectorEncoder,
    SentenceEncoder,
    SparseEncoder,
    StaticEncoder,
    retrieve_and_rerank,
)
from wordpiece_bert.serve import ServerSettings
from wordpiece_bert.serve.kinds.outputs import MakesVectors
from wordpiece_bert.serve.kinds.served_model import Options
from wordpiece_bert.serve.metrics import Metrics
from wordpiece_bert.serve.models import Models

TEXTS = ["to repair a bicycle", "bread dough in the oven", "the capital of poland", "flour and water"]
QUERIES = ["how to bake bread", "a city in poland"]
#: Of each kind of encoder, the folder of an example and the class that loads it.
ENCODERS = {
    "sentences": SentenceEncoder,
    "static": StaticEncoder,
    "splade": SparseEncoder,
    "colbert": MultiVectorEncoder,
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    tiny_models.make_all(folder)
    return tiny_models.make_all(folder)  # a second time into the same folder


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("texts.txt").write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    return tmp_path


def folders(models: Path) -> Iterator[Path]:
    yield from sorted(path for path in models.iterdir() if path.is_dir())


def test_info_describes_every_folder(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = {}
    for folder in folders(models):
        assert main(["info", str(folder), "--json"]) == 0, folder
        found[folder.name] = facts = json.loads(capsys.readouterr().out)
        assert facts["tokenizer"]["with_added_tokens"] == len(Tokenizer.from_pretrained(folder))
        assert ("model" in facts) == (folder.name != "static")
        assert main(["info", str(folder)]) == 0
        capsys.readouterr()
    assert found["static"]["static_encoder"]["vector_width"] == StaticEncoder(models / "static").dimension
    assert found["splade"]["sparse_encoder"]["longest_text"] == {"all texts": 64}
    colbert = MultiVectorEncoder(models / "colbert")
    assert found["colbert"]["multi_vector_encoder"]["vector_width"] == colbert.dimension


def test_info_describes_what_distill_writes(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["distill", "-m", str(models / "sentences"), "-o", "out", "--pca-dims", "4", "-q"]) == 0
    assert main(["info", "out", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["static_encoder"]["row_width"] == 4


@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize("rerank", [False, True])
def test_search_finds_what_the_library_finds(
    kind: str,
    rerank: bool,
    models: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    encoder, ranker = ENCODERS[kind](models / kind), CrossEncoder(models / "ranker") if rerank else None
    asked = [part for query in QUERIES for part in ("--query", query)]
    options = ["--rerank", str(models / "ranker")] if rerank else []
    for prompts in ({}, {"prompt": "bread "}, {"prompt_name": "query"}):
        flags = [part for name, text in prompts.items() for part in (f"--{name.replace('_', '-')}", text)]
        assert main(["search", "texts.txt", "-m", str(models / kind), *asked, *options, *flags, "--json", "-q"]) == 0
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        expected = retrieve_and_rerank(QUERIES, TEXTS, encoder, ranker, **prompts)  # type: ignore[arg-type]
        for one, hits in zip(found, expected, strict=True):
            assert [hit["corpus_id"] for hit in one["hits"]] == [hit["corpus_id"] for hit in hits]
            np.testing.assert_allclose([h["score"] for h in one["hits"]], [h["score"] for h in hits], atol=1e-5)


@pytest.mark.parametrize("kind", ENCODERS)
def test_nothing_is_found_where_there_are_no_texts(kind: str, models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("texts.txt").write_text("")
    assert main(["search", "texts.txt", "-m", str(models / kind), "--query", "x", "--json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["hits"] == []


@pytest.mark.parametrize("kind", ENCODERS)
def test_document_prompts_of_search_are_prompts_of_embed(
    kind: str, models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    encoder: Any = ENCODERS[kind](models / kind)
    documents = encoder.encode_document(TEXTS, prompt="bread ")
    expected = retrieve_and_rerank(QUERIES[:1], TEXTS, encoder, document_embeddings=documents)
    command = ["search", "texts.txt", "-m", str(models / kind), "--query", QUERIES[0], "--json", "-q"]
    assert main([*command, "--document-prompt", "bread "]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [hit["corpus_id"] for hit in found["hits"]] == [hit["corpus_id"] for hit in expected[0]]


@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize("flags", [["--prompt", "bread "], ["--prompt-name", "query"], ["--prompt", ""]])
def test_prompts_of_embed_are_those_of_the_library(
    kind: str, flags: list[str], models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / kind
    folder.symlink_to(models / kind)
    encoder: Any = ENCODERS[kind](folder)
    expected = encoder.encode(TEXTS, **{flags[0][2:].replace("-", "_"): flags[1]})
    assert main(["embed", "texts.txt", "-m", str(folder), *flags, "-o", "-", "-q"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for row, vectors in zip(rows, expected, strict=True):
        if kind == "splade":
            np.testing.assert_allclose(row["values"], vectors.values, rtol=1e-5)
        else:
            np.testing.assert_allclose(row["vectors" if kind == "colbert" else "vector"], vectors, atol=1e-5)
    assert "the model has no prompt 'x'" in error_of(
        capsys, "embed", "texts.txt", "-m", str(folder), "--prompt-name", "x", "-o", "v.jsonl"
    )


def test_a_default_prompt_of_a_static_model_is_used(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    StaticEncoder(models / "static").save_pretrained("static")
    settings = {"prompts": {"mine": "bread "}, "default_prompt_name": "mine"}
    Path("static/config_sentence_transformers.json").write_text(json.dumps(settings))
    assert main(["embed", "texts.txt", "-m", "static", "-o", "v.npy", "-q"]) == 0
    expected = StaticEncoder("static").encode(TEXTS)
    np.testing.assert_allclose(np.load("v.npy"), expected, atol=1e-6)
    assert not np.allclose(expected, StaticEncoder("static").encode(TEXTS, prompt=""))


@pytest.mark.parametrize("kind", ["sentences", "static"])
def test_a_server_puts_its_prompt_before_texts(kind: str, models: Path) -> None:
    import asyncio

    encoder = ENCODERS[kind](models / kind)

    def served(asked: str | None = None, **settings: str) -> Any:
        async def answer() -> Any:
            all_models = Models({"m": encoder}, ServerSettings(**settings), {}, Metrics())  # type: ignore[arg-type]
            found = await all_models.of_kind(MakesVectors, None).embed(TEXTS, Options(prompt_name=asked))
            await all_models.close()
            return found.values

        return asyncio.run(answer())

    np.testing.assert_array_equal(served(prompt="bread "), encoder.encode(TEXTS, prompt="bread "))
    np.testing.assert_array_equal(served("query", prompt="bread "), encoder.encode(TEXTS, prompt_name="query"))
    with pytest.raises(InputError, match="the model has no prompt 'x'"):
        served(prompt_name="x")
    with pytest.raises(InputError, match="prompt must be a str or None"):
        ServerSettings(prompt=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("command", ["distill", "finetune", "search", "embed"])
def test_a_model_of_another_kind_is_refused_in_words_of_the_shell(
    command: str, models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(models / ("splade" if command in ("distill", "finetune") else "colbert"))
    Path("t.csv").write_text("text,pair,label\nx,y,1\nz,w,0\n")
    more = {
        "distill": ["-m", model, "-o", "out"],
        "finetune": ["-m", model, "--task", "similar", "--pair", "pair", "--train", "t.csv", "-o", "out"],
        "search": ["texts.txt", "-m", model, "--query", "x", "--vectors", "v.npy"],
        "embed": ["texts.txt", "-m", model, "-o", "v.npy"],
    }
    error = error_of(capsys, command, *more[command])
    assert "from_pretrained" not in error
    expected = "--vectors does not keep" if command == "search" else "embed" if command != "embed" else "npy"
    assert expected in error
