"""A single str where several are wanted is refused: it would be taken as a list of its letters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny_models
from wordpiece_bert import SentenceEncoder, evaluation, finetune, sentence, tasks, training, util
from wordpiece_bert import inspect as views
from wordpiece_bert.errors import InputError
from wordpiece_bert.evaluation import (
    BinaryClassificationEvaluator,
    EmbeddingSimilarityEvaluator,
    InformationRetrievalEvaluator,
    ParaphraseMiningEvaluator,
    SequentialEvaluator,
    TripletEvaluator,
)
from wordpiece_bert.finetune import FrozenClassifier, TrainingArguments, data, losses, metrics, model_for
from wordpiece_bert.finetune.choices import choice_rows
from wordpiece_bert.finetune.frozen_classifier import cached_vectors
from wordpiece_bert.finetune.objectives import Columns
from wordpiece_bert.finetune.questions import question_windows
from wordpiece_bert.sentence import CrossEncoder, open_vectors, reciprocal_rank_fusion, write_vectors

Call = Callable[["Given"], object]


class Given:
    """What the calls are given besides the str."""

    def __init__(self, folder: Path) -> None:
        tiny_models.make_all(folder / "models")
        self.models = folder / "models"
        self.encoder = SentenceEncoder(self.models / "sentences")
        self.tok: Any = self.encoder.tokenizer
        self.folder = folder
        (folder / "a.csv").write_text("a,b\nx,y\n")
        (folder / "docs.csv").write_text("id,text,title\n1,bread,a\n2,dough,b\n")
        write_vectors(
            folder / "docs.csv",
            folder / "docs.vectors",
            self.encoder,
            id_column="id",
            text_column="text",
            keep=["title"],
        )
        self.vectors = open_vectors(folder / "docs.vectors")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Given:
    return Given(tmp_path_factory.mktemp("given"))


def _rows(**changed: Any) -> Call:
    given = {"texts": ["a", "b"], "pairs": None, "labels": ["x", "y"], "names": ["x", "y"]} | changed
    return lambda made: data.sequence_rows(made.tok, **given, max_length=9)


def _words(**changed: Any) -> Call:
    given: dict[str, Any] = {"words": [["a", "b"]], "tags": [["x", "y"]], "names": ["x", "y"]} | changed
    return lambda made: data.token_rows(made.tok, **given, max_length=9)


#: The parameter, and a call that has one str for it; letters would fit everything else.
CALLS: list[tuple[str, Call]] = [
    ("texts", _rows(texts="ab")),
    ("pairs", _rows(pairs="ab")),
    ("labels", _rows(labels="xy")),
    ("names", _rows(names="xy")),
    ("row 0, words", _words(words=["ab"])),
    ("words", _words(words="ab", tags=[["x"], ["y"]])),
    ("row 0, tags", _words(tags=["xy"])),
    ("names", _words(names="xy")),
    ("texts", lambda made: choice_rows(made.tok, "ab", [["x", "y"]] * 2, [0, 1], max_length=9)),
    ("row 0, choices", lambda made: choice_rows(made.tok, ["a"], ["xy"], [0], max_length=9)),
    ("labels", lambda made: choice_rows(made.tok, ["a", "b"], [["x", "y"]] * 2, "01", max_length=9)),
    ("choices", lambda made: choice_rows(made.tok, ["a", "b"], "ab", [0, 1], max_length=9)),
    ("questions", lambda made: question_windows(made.tok, "ab", ["a", "b"], ["a", "b"])),
    ("contexts", lambda made: question_windows(made.tok, ["a", "b"], "ab", ["a", "b"])),
    ("answers", lambda made: question_windows(made.tok, ["a", "b"], ["a", "b"], "ab")),
    ("labels", lambda _: data.label_names("ab")),
    ("columns", lambda made: data.read_columns(made.folder / "a.csv", "ab")),
    ("choices", lambda _: Columns(choices="ab")),  # type: ignore[arg-type]
    ("freeze", lambda _: TrainingArguments("out", freeze="embeddings")),  # type: ignore[arg-type]
    ("labels", lambda made: model_for(made.models / "sentences", "SequenceClassification", labels="ab")),
    ("directions", lambda _: losses.MultipleNegativesRankingLoss(directions="query_to_doc")),
    ("texts", lambda made: FrozenClassifier(made.encoder).fit("ab", ["x", "y"])),
    ("texts", lambda made: cached_vectors(made.encoder, "ab", made.folder)),
    ("predictions", lambda _: metrics.exact_match("ab", [["a"], ["b"]])),
    (r"answers\[0\]", lambda _: metrics.exact_match(["a"], ["a"])),
    (r"answers\[0\]", lambda _: metrics.answer_f1(["a"], ["a"])),
    (r"predictions\[0\]", lambda _: metrics.entity_f1(["BO"], [["B", "O"]])),
    (r"labels\[0\]", lambda _: metrics.entity_f1_by_type([["B", "O"]], ["BO"])),
    ("sentences1", lambda _: EmbeddingSimilarityEvaluator("ab", ["a", "b"], [0, 1])),
    ("similarity_fn_names", lambda _: EmbeddingSimilarityEvaluator(["a"], ["b"], [1], similarity_fn_names="cosine")),
    ("sentences2", lambda _: BinaryClassificationEvaluator(["a", "b"], "ab", [0, 1])),
    ("anchors", lambda _: TripletEvaluator("ab", ["a", "b"], ["c", "d"])),
    ("positives", lambda _: TripletEvaluator(["a", "b"], "ab", ["c", "d"])),
    ("negatives", lambda _: TripletEvaluator(["a", "b"], ["c", "d"], "ab")),
    ("mrr_at_k", lambda _: InformationRetrievalEvaluator({"1": "a"}, {"2": "b"}, {"1": {"2"}}, mrr_at_k="10")),  # type: ignore[arg-type]
    (
        "score_functions",
        lambda _: InformationRetrievalEvaluator({"1": "a"}, {"2": "b"}, {"1": {"2"}}, score_functions="cosine"),  # type: ignore[arg-type]
    ),
    ("evaluators", lambda _: SequentialEvaluator("ab")),  # type: ignore[arg-type]
    ("tokens", lambda _: training.Vocab("abc", [1, 2, 3], "bpe", [], None)),  # type: ignore[arg-type]
    ("special_tokens", lambda _: training.Vocab(["a", "x"], [1, 0], "bpe", "x", None)),  # type: ignore[arg-type]
    ("sentences", lambda made: sentence.paraphrase_mining(made.encoder, "ab")),
    ("sentences", lambda made: util.paraphrase_mining(made.encoder, "ab")),  # type: ignore[arg-type]
    ("documents", lambda made: CrossEncoder(made.models / "ranker").rank("a", "ab")),
    (r"rankings\[0\]", lambda _: reciprocal_rank_fusion(["ab", "bc"])),
    (
        r"duplicates_list\[0\]",
        lambda _: ParaphraseMiningEvaluator({"a": "x", "b": "y"}, ["ab"]),  # type: ignore[list-item]
    ),
    ("fields", lambda made: made.vectors.search("bread", fields="title")),
    ("columns", lambda made: list(made.vectors.batches("id"))),
    (
        "keep",
        lambda made: write_vectors(
            made.folder / "docs.csv", made.folder / "v", made.encoder, id_column="id", text_column="text", keep="title"
        ),
    ),
    ("ignore_labels", lambda made: tasks.ner(made.models / "entities", "ada", ignore_labels="PER")),
    ("texts", lambda made: tasks.ner(made.models / "entities", "ada", is_split_into_words=True)),
    ("texts", lambda made: tasks.feature_extraction(made.models / "sentences", "ada", is_split_into_words=True)),
    ("tokens", lambda made: made.tok.convert_tokens_to_string("ab")),
    ("tokens", lambda made: made.tok.with_added_tokens("ab")),
    ("tokens", lambda _: views.attention(np.full((1, 1, 2, 2), 0.5, np.float32), "ab")),
    ("tokens", lambda _: views.similarity(np.eye(2), "ab")),
    ("tokens", lambda _: views.similarity(np.eye(2), ["a", "b"], np.eye(2), "ab")),
    ("tokens", lambda _: views.embedding_map(np.eye(2), ["a", "b"], groups="ab")),
    ("names", lambda made: views.tokens(made.tok, "a", beside=made.tok, names="ab")),  # type: ignore[arg-type]
    ("names", lambda made: views.compare_tokenizers(made.tok, made.tok, "a", names="ab")),  # type: ignore[arg-type]
    ("names", lambda made: views.compare(*[views.trace(made.models / "words", "a city")] * 2, names="ab")),  # type: ignore[arg-type]
    ("without", lambda _: views.similarity(np.eye(2), ["a", "b"]).packed("similarity")),
    ("beside", lambda made: views.intervene(made.encoder, "bread", beside="ab")),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_one_str_is_not_taken_for_several(number: int, made: Given) -> None:
    name, call = CALLS[number]
    with pytest.raises(InputError, match=rf"^{name}(?!\w)"):
        call(made)


#: Parameters of several str that have no call above, and why.
ELSEWHERE = {
    "one str is one text, file or name": {
        "targets",
        "candidate_labels",
        "sentences",
        "queries",
        "documents",
        "precision",
        "folder",
        "parts",
    },
    "results, which functions make": {"rows"},
    "calls above that speak of tokens": {"groups", "other_labels"},
    "other tests": {"calibrate", "vocabulary", "corpus", "stop_words"},
}


def test_every_parameter_of_several_str_has_a_call() -> None:
    """By the annotations of what the packages of models and their training show."""
    several = re.compile(r"\b(Sequence|Iterable|Collection|list|tuple)\[(str\b|tuple\[str)")
    known = {re.sub(r"^row 0,? ?|\\\[0\\\]", "", name) for name, _ in CALLS}.union(*ELSEWHERE.values())
    missing = set()
    for module in (finetune, data, losses, metrics, evaluation, sentence, tasks, views):
        for name in module.__all__:
            shown = getattr(module, name)
            for function in [shown, *vars(shown).values()] if inspect.isclass(shown) else [shown]:
                if inspect.isfunction(function) and (function.__name__ == "__init__" or function.__name__[0] != "_"):
                    parameters = inspect.signature(function).parameters.values()
                    missing |= {(name, p.name) for p in parameters if several.search(str(p.annotation))}
    assert {(name, parameter) for name, parameter in missing if parameter not in known} == set()
