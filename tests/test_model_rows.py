"""Tokenizers with tokens that the table of words of their model does not have: found when the model is loaded."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiny_models import make_ranker, make_reviews, make_sentences
from wordpiece_bert import tasks
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.finetune import TrainingArguments
from wordpiece_bert.finetune.objectives import Tables, objective_class
from wordpiece_bert.sentence import CrossEncoder, SentenceEncoder


def tune(folder: Path) -> object:
    table = folder.parent / "table.csv"
    table.write_text("text,label\na great film,good\na dull film,bad\n")
    arguments = TrainingArguments(str(folder.parent / "out"))
    return objective_class("classify", "tables")(Tables(train=str(table))).trainer(folder, arguments)


LOADERS: dict[str, tuple[Callable[[Path], object], Callable[[Path], object]]] = {
    "encoder": (make_sentences, SentenceEncoder),
    "ranker": (make_ranker, CrossEncoder),
    "task": (make_reviews, tasks.load),
    "training": (make_sentences, tune),
}


def tokens_of(folder: Path, change: Callable[[dict[str, Any]], None]) -> int:
    """Change the tokenizer of a folder; return the number of rows of its model."""
    (file,) = folder.rglob("tokenizer.json")
    definition = json.loads(file.read_text())
    change(definition)
    file.write_text(json.dumps(definition))
    return int(json.loads((file.parent / "config.json").read_text())["vocab_size"])


@pytest.mark.parametrize("kind", LOADERS)
@pytest.mark.parametrize("far", [None, 2**32 - 2], ids=["next", "far"])
def test_a_vocabulary_beyond_the_table_is_refused_on_loading(kind: str, far: int | None, tmp_path: Path) -> None:
    make, load = LOADERS[kind]
    make(tmp_path / "model")
    load(tmp_path / "model")
    ids: list[int] = []

    def change(definition: dict[str, Any]) -> None:
        vocab = definition["model"]["vocab"]
        ids.append(max(vocab.values()) + 1 if far is None else far)
        vocab["beyond"] = ids[0]

    rows = tokens_of(tmp_path / "model", change)
    assert ids[0] >= rows
    message = rf"the token 'beyond' has the id {ids[0]}, but the model has {rows:,} rows"
    with pytest.raises(ConfigError, match=message):
        load(tmp_path / "model")


def test_an_added_token_beyond_the_table_is_a_warning_and_its_texts_are_refused(tmp_path: Path) -> None:
    make_sentences(tmp_path / "model")

    def change(definition: dict[str, Any]) -> None:
        flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        token = {"id": len(definition["model"]["vocab"]), "content": "<new>", "special": True, **flags}
        definition["added_tokens"].append(token)

    rows = tokens_of(tmp_path / "model", change)
    with pytest.warns(
        UserWarning, match=rf"the added token '<new>' has the id {rows}, but the model has {rows:,} rows"
    ):
        encoder = SentenceEncoder(tmp_path / "model")
    assert encoder.encode(["a text"]).shape[0] == 1
    with pytest.raises(InputError, match=f"is {rows}, outside 0 to {rows - 1}"):
        encoder.encode(["a <new> text"])


def test_a_table_with_more_rows_than_there_are_tokens_is_right(tmp_path: Path) -> None:
    make_sentences(tmp_path / "model")

    def change(definition: dict[str, Any]) -> None:
        vocab = definition["model"]["vocab"]
        del vocab[max(vocab, key=lambda token: vocab[token])]

    tokens_of(tmp_path / "model", change)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SentenceEncoder(tmp_path / "model")


@pytest.mark.parametrize("token", ["[CLS]", "[END]"])
@pytest.mark.parametrize("number", [10**6, 2**32 - 1])
def test_an_id_of_the_template_beyond_the_table_is_refused_on_loading(number: int, token: str, tmp_path: Path) -> None:
    make_sentences(tmp_path / "model")

    def change(definition: dict[str, Any]) -> None:
        template = definition["post_processor"]
        template["special_tokens"][token] = {"id": token, "ids": [number], "tokens": [token]}
        if token == "[END]":
            template["pair"].append({"SpecialToken": {"id": token, "type_id": 1}})

    tokens_of(tmp_path / "model", change)
    with pytest.raises(ConfigError, match=rf"the token '\{token}' has the id {number}, but the model has"):
        SentenceEncoder(tmp_path / "model")
