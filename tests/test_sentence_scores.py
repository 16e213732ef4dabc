"""Pseudo-log-likelihoods of texts, against a slow computation and a model that knows the right word."""

from __future__ import annotations

import json
import math
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from make_models import make_words

from model_files import MODELS, with_tokenizer
from wordpiece_bert import Tokenizer, tasks
from wordpiece_bert.errors import InputError, TruncationWarning
from wordpiece_bert.tasks import Answer, Loaded

pyarrow = pytest.importorskip("pyarrow")
WORDS = st.lists(st.sampled_from(["the", "cat", "Runner", "unrelatedly", "é", "☃", "42!", "paris"]), max_size=5)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    return tasks.load(with_tokenizer("bert_masked_lm", tmp_path_factory.mktemp("models")))


def slow(loaded: Loaded, text: str) -> tuple[list[str], list[float]]:
    """The tokens of a text and their scores: one row, one token and one call at a time."""
    model: Any = loaded.model
    encoding = loaded.tokenizer.encode(text, truncation=True, max_length=48)
    tokens, scores = [], []
    for place, special in enumerate(encoding.special_tokens_mask):
        if special or encoding.ids[place] == loaded.tokenizer.mask_token_id:
            continue
        ids = list(encoding.ids)
        ids[place] = loaded.tokenizer.mask_token_id  # type: ignore[call-overload]
        output = model([ids], token_type_ids=[encoding.token_type_ids])
        logits = getattr(output, "prediction_logits", getattr(output, "logits", None))[0, place].astype(float)
        tokens.append(encoding.tokens[place])
        scores.append(logits[encoding.ids[place]] - math.log(np.exp(logits).sum()))
    return tokens, scores


def check(found: Answer, expected: tuple[list[str], list[float]]) -> None:
    tokens, scores = expected
    assert found["tokens"] == tokens
    np.testing.assert_allclose(found["scores"], scores, rtol=0, atol=1e-5)
    np.testing.assert_allclose(found["score"], sum(scores), rtol=0, atol=1e-4)
    mean = sum(scores) / len(scores) if scores else 0.0
    np.testing.assert_allclose(found["perplexity"], math.exp(-mean), rtol=1e-4)


@given(texts=st.lists(WORDS.map(" ".join), max_size=4), size=st.sampled_from([1, 3, 64]))
def test_each_token_is_masked_in_turn(loaded: Loaded, texts: list[str], size: int) -> None:
    found = tasks.score_sentences(loaded, texts, batch_size=size)
    for one, text in zip(found, texts, strict=True):
        check(one, slow(loaded, text))
        assert one.truncated is False


@pytest.mark.parametrize("backend", ["rust", "numpy"])
@pytest.mark.parametrize("name", ["bert_masked_lm", "bert_pretraining", "distilbert_masked_lm"])
def test_models_with_a_masked_language_head_score_texts(tmp_path: Path, name: str, backend: str) -> None:
    loaded = tasks.load(with_tokenizer(name, tmp_path), backend)
    check(tasks.score_sentences(loaded, "the cat runs"), slow(loaded, "the cat runs"))


def test_tokens_of_other_tokenizers_are_scored(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(MODELS / "roberta_masked_lm", folder)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(MODELS / "st_roberta" / file, folder)
    loaded = tasks.load(folder)
    check(tasks.score_sentences(loaded, "the cat"), slow(loaded, "the cat"))


def test_the_likely_text_has_the_higher_score(tmp_path: Path) -> None:
    words = make_words(tmp_path / "words")
    right, wrong = tasks.score_sentences(words, [f"The capital of France is {city}." for city in ("Paris", "London")])
    assert right["score"] > wrong["score"]
    assert right["perplexity"] < wrong["perplexity"]
    place = right["tokens"].index("paris")
    assert right["scores"][place] > wrong["scores"][place]


def test_texts_come_as_for_other_tasks(loaded: Loaded, tmp_path: Path) -> None:
    texts = ["a dog", "", "the cat was in the house"]
    expected = tasks.score_sentences(loaded, texts)
    assert tasks.score_sentences(loaded, pyarrow.array(texts)) == expected
    assert tasks.score_sentences(with_tokenizer("bert_masked_lm", tmp_path), texts) == expected
    assert tasks.score_sentences(loaded, "a dog") == expected[0]
    assert tasks.score_sentences(loaded, []) == []
    assert expected[1] == {"score": 0.0, "perplexity": 1.0, "tokens": [], "scores": []}
    assert json.loads(json.dumps(expected)) == expected


def test_masks_of_a_text_stay_and_have_no_score(loaded: Loaded) -> None:
    found = tasks.score_sentences(loaded, "a [MASK] dog")
    check(found, slow(loaded, "a [MASK] dog"))
    assert found["tokens"] == ["a", "dog"]


def test_a_long_text_is_truncated_with_a_warning(loaded: Loaded) -> None:
    with pytest.warns(TruncationWarning, match="1 of 2 texts were truncated to 48 tokens") as warned:
        found = tasks.score_sentences(loaded, ["the cat " * 40, "a dog"])
    assert warned[0].filename == __file__
    assert [one.truncated for one in found] == [True, False]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(found[0], slow(loaded, "the cat " * 40))


def test_what_cannot_be_scored_is_refused(loaded: Loaded, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="batch_size must be"):
        tasks.score_sentences(loaded, "a", batch_size=0)
    with pytest.raises(InputError, match="score_sentences needs a model with a head for it, not BertModel"):
        tasks.score_sentences(with_tokenizer("bert_model", tmp_path), "a")
    without = Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "[PAD]", "a"])
    with pytest.raises(InputError, match="a tokenizer with a mask token"):
        tasks.score_sentences(Loaded(loaded.model, without), "a")
