"""Entities by words: which tokens are one word, and what classes are called."""

from __future__ import annotations

import dataclasses
import itertools
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from make_models import make_entities

from model_files import MODELS
from wordpiece_bert import tasks
from wordpiece_bert.bert import BertForTokenClassification
from wordpiece_bert.tasks import Loaded

STRATEGIES = ["simple", "first", "average", "max"]


@pytest.fixture(scope="module")
def entities(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    return tasks.load(make_entities(tmp_path_factory.mktemp("models") / "entities"))


def with_labels(loaded: Loaded, *labels: str) -> Loaded:
    """The model with other names of its labels, which are O, B-PER, I-PER, B-LOC."""
    config = dataclasses.replace(loaded.model.config, id2label=dict(enumerate(labels)), label2id=None)
    return tasks.Loaded(BertForTokenClassification(config, dict(loaded.model.named_parameters())), loaded.tokenizer)


def found(loaded: Loaded, text: str, **options: Any) -> list[tuple[Any, ...]]:
    return [(one["entity_group"], text[one["start"] : one["end"]]) for one in tasks.ner(loaded, text, **options)]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", ["Lon\u00addon", "Lon\u200bdon", "Lo\u0301ndo\u0301n", "\u00adLondon", "L\u00f3ndon"])
def test_characters_that_are_no_tokens_neither_end_nor_join_words(entities: Loaded, strategy: str, name: str) -> None:
    text = f"Ada Lovelace lived in {name} , Paris"
    expected = [("PER", "Ada Lovelace"), ("LOC", name.lstrip("\u00ad")), ("LOC", "Paris")]
    assert found(entities, text, aggregation_strategy=strategy) == expected


@pytest.mark.parametrize("strategy", STRATEGIES[1:])
@given(st.lists(st.sampled_from(["Ada", "Lovelace", "London", "films", "lived", "."]), max_size=8), st.data())
def test_words_are_those_of_the_text_without_what_the_tokenizer_drops(
    entities: Loaded, strategy: str, words: list[str], data: st.DataObject
) -> None:
    def spoiled(word: str) -> str:
        place = data.draw(st.integers(1, len(word)))
        return word[:place] + data.draw(st.sampled_from(["", "\u00ad", "\u200b", "\u0301"])) + word[place:]

    def named(text: str) -> list[tuple[str, str, float]]:
        entities_found: Any = tasks.ner(entities, text, aggregation_strategy=strategy, ignore_labels=[])
        return [(one["entity_group"], one["word"], one["score"]) for one in entities_found]

    assert named(" ".join(map(spoiled, words))) == named(" ".join(words))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_classes_may_have_hyphens(entities: Loaded, strategy: str) -> None:
    text = "Ada lived in London Paris Lovelace"
    plain = with_labels(entities, "O", "X-RAY", "GAMMA-RAY", "T-CELL")
    assert found(plain, text, aggregation_strategy=strategy) == [
        ("X-RAY", "Ada"), ("T-CELL", "London Paris"), ("GAMMA-RAY", "Lovelace"),
    ]  # fmt: skip
    begun = with_labels(entities, "O", "B-X-RAY", "I-X-RAY", "B-GAMMA-RAY")
    assert found(begun, "Ada Lovelace London", aggregation_strategy=strategy) == [
        ("X-RAY", "Ada Lovelace"), ("GAMMA-RAY", "London"),
    ]  # fmt: skip
    # In other schemes labels of one class begin with other letters.
    single = with_labels(entities, "O", "B-PER", "E-PER", "S-PER")
    assert {name for name, _ in found(single, text, aggregation_strategy=strategy)} == {"PER"}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_class_may_be_called_o(entities: Loaded, strategy: str) -> None:
    loaded = with_labels(entities, "O", "B-O", "I-O", "B-LOC")
    text = "lived in Ada Lovelace lived London"
    assert found(loaded, text, aggregation_strategy=strategy) == [("O", "Ada Lovelace"), ("LOC", "London")]
    everything = found(loaded, text, aggregation_strategy=strategy, ignore_labels=[])
    assert everything == [("O", "lived in"), ("O", "Ada Lovelace"), ("O", "lived"), ("LOC", "London")]
    assert found(loaded, text, aggregation_strategy=strategy, ignore_labels=["O", "B-O", "LOC"]) == []


def test_other_white_space_ends_words_as_a_space_does(tmp_path: Path) -> None:
    folder = tmp_path / "model"  # of a tokenizer whose tokens have no mark within words
    shutil.copytree(MODELS / "roberta_token_cls", folder)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(MODELS / "st_roberta" / file, folder)
    model, tokenizer = loaded = tasks.load(folder)
    for text in ("Ada\nin\nthe city", "Ada\u00a0in\u00a0the city"):
        encoding = tokenizer.encode(text)
        logits = model([encoding.ids]).logits[0].astype(float)  # type: ignore[operator]
        words: dict[int, list[int]] = {}
        for position in range(1, len(encoding) - 1):
            start, end = encoding.offsets[position]
            part = text[start:end].lstrip()
            spaces = sum(map(str.isspace, text[: end - len(part)]))
            key = spaces if part else -position  # white space may be a token
            words.setdefault(key, []).append(position)
        scores = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        labels = [model.config.label(int(scores[tokens].mean(axis=0).argmax())) for tokens in words.values()]
        groups = [
            encoding.offsets[tokens[0]][0]
            for (before, label), tokens in zip(itertools.pairwise(["", *labels]), words.values(), strict=True)
            if label[:2] == "B-" or label.removeprefix("I-") != before[2 * (before[1:2] == "-") :]
        ]
        named: Any = tasks.ner(loaded, text, aggregation_strategy="average", ignore_labels=[])
        assert [one["start"] for one in named] == groups
