"""Names of groups of texts."""

from __future__ import annotations

import re

import numpy as np
import pytest

from model_files import MODELS
from tiny_models import make_words
from wordpiece_bert import Tokenizer
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence import cluster_words
from wordpiece_bert.tokenizer.subword import SubwordTokenizer

CountVectorizer = pytest.importorskip("sklearn.feature_extraction.text").CountVectorizer
TEXTS = [
    "Interest rates rose; rates of banks too.",
    "The bank keeps its rates of interest.",
    "A cat sat on the mat.",
    "The cat's mat is on the floor.",
    "The sea is warm",
    "Crème brûlée, the best",
]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return Tokenizer.from_pretrained(make_words(tmp_path_factory.mktemp("models") / "words"))


def weights(texts: list[str], groups: list[list[int]]) -> list[dict[str, float]]:
    """The formula of BERTopic, with the words of scikit-learn."""
    rest = [row for row in range(len(texts)) if not any(row in group for group in groups)]
    joined = [" ".join(texts[row] for row in group) for group in [*groups, rest] if group]
    counter = CountVectorizer(token_pattern=r"\w+")
    counts = counter.fit_transform(joined).toarray()
    found = counts * np.log(1 + counts.sum(axis=1).mean() / counts.sum(axis=0))
    names = counter.get_feature_names_out()
    return [{word: x for word, x in zip(names, row, strict=True) if x} for row in found[: len(groups)]]


@pytest.mark.parametrize("groups", [[[0, 1], [2, 3]], [[2, 3], [0, 1], [4, 5]], [[0, 2, 4]], [[0, 1], []]])
def test_words_are_those_with_the_highest_weight(tokenizer: Tokenizer, groups: list[list[int]]) -> None:
    found = cluster_words(TEXTS, groups, tokenizer, top_k=4)
    for words, expected in zip(found, weights(TEXTS, [group for group in groups if group]), strict=False):
        assert words == sorted(expected, key=lambda word: (-round(expected[word], 9), word))[:4]
    assert [len(words) for words in found] == [4 if group else 0 for group in groups]


def test_names_are_words_of_the_text_whatever_the_tokenizer(tokenizer: Tokenizer) -> None:
    assert cluster_words(TEXTS, [[0, 1], [5]], tokenizer, top_k=3) == [
        ["rates", "interest", "of"],
        ["best", "brûlée", "crème"],
    ]
    without = cluster_words(TEXTS, [[0, 1], [5]], tokenizer, top_k=3, stop_words=["of", "best"])
    assert without == [["rates", "interest", "bank"], ["brûlée", "crème", "the"]]
    for folder in ("st_xlmr", "st_roberta"):
        pytest.importorskip("tokenizers")
        subword = SubwordTokenizer(MODELS / folder)
        assert cluster_words(["Rates, rates; (rates)!", "--- a.b"], [[0]], subword) == [["rates"]]


def test_groups_that_are_not_rows_of_the_texts_are_refused(tokenizer: Tokenizer) -> None:
    assert cluster_words(TEXTS, [], tokenizer) == cluster_words([], [], tokenizer) == []
    for groups, message in (
        ([[0, 6]], "clusters[0] must be a whole number from 0 to 5, the last text, not 6"),
        ([[0], [-1]], "clusters[1] must be a whole number"),
        (5, "clusters must be a list of groups of rows, not 5"),
        ([0, 0, 1, 1, 2, 2], "clusters[0] must be a list of the rows of one group, not 0"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            cluster_words(TEXTS, groups, tokenizer)
    with pytest.raises(InputError, match="stop_words must be a list of str, not 'the'"):
        cluster_words(TEXTS, [[0]], tokenizer, stop_words="the")
    with pytest.raises(InputError, match="top_k"):
        cluster_words(TEXTS, [[0]], tokenizer, top_k=0)
