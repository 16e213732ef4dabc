"""`tasks.zero_shot`: equal to its definition over the logits of pairs, whatever the labels of the model are called."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_files import MODELS, with_tokenizer
from wordpiece_bert import tasks
from wordpiece_bert.errors import CheckpointWarning, InputError, TruncationWarning
from wordpiece_bert.tasks import Loaded

TEXTS = ["the cat was in the house", "a dog", "she likes it, she said"]
LABELS = ["house", "a good dog", "not the cat"]
TEMPLATE = "This example is {}."


def named(names: list[str], parent: Path, backend: str = "rust", label2id: Any = None) -> Loaded:
    """Load the classifier of three labels with other names for them; by default both maps of a file have them."""
    folder = with_tokenizer("bert_seqcls_single", parent)
    config = json.loads((folder / "config.json").read_text())
    config["id2label"] = {str(index): name for index, name in enumerate(names)}
    config["label2id"] = label2id or {name: index for index, name in enumerate(names)}
    if label2id is ...:
        del config["label2id"]
    (folder / "config.json").write_text(json.dumps(config))
    return tasks.load(folder, backend)


@pytest.fixture(scope="module")
def nli(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    return named(["contradiction", "neutral", "ENTAILMENT"], tmp_path_factory.mktemp("nli"))


def expected(loaded: Loaded, text: str, entailment: int, contradiction: int, *, multi_label: bool) -> dict[str, float]:
    """The score of each label, in float64, from the logits of each pair by itself."""
    logits = []
    for label in LABELS:
        found: Any = tasks.classify(loaded, (text, TEMPLATE.format(label)), top_k=None, function_to_apply="none")
        by_name = {one["label"]: one["score"] for one in found}
        logits.append([by_name[loaded.model.config.id2label[i]] for i in range(3)])
    exponentials = np.exp(np.array(logits, np.float64))
    if multi_label:
        scores = exponentials[:, entailment] / (exponentials[:, entailment] + exponentials[:, contradiction])
    else:
        scores = exponentials[:, entailment] / exponentials[:, entailment].sum()
    return dict(zip(LABELS, scores.tolist(), strict=True))


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize(
    ("names", "entailment", "contradiction"),
    [
        (["contradiction", "neutral", "ENTAILMENT"], 2, 0),
        (["Entailed", "neutral", "contradiction"], 0, 2),
        (["no", "entail", "perhaps"], 1, 0),
    ],
)
@pytest.mark.parametrize("backend", ["rust", "numpy"])
def test_scores_are_those_of_the_definition(
    tmp_path: Path, names: list[str], entailment: int, contradiction: int, multi_label: bool, backend: str
) -> None:
    loaded = named(names, tmp_path, backend)
    found = tasks.zero_shot(loaded, TEXTS, LABELS, multi_label=multi_label)
    for text, one in zip(TEXTS, found, strict=True):
        scores = expected(loaded, text, entailment, contradiction, multi_label=multi_label)
        assert one["sequence"] == text
        assert one["scores"] == sorted(one["scores"], reverse=True)
        assert dict(zip(one["labels"], one["scores"], strict=True)) == pytest.approx(scores, abs=1e-5)
        assert multi_label or sum(one["scores"]) == pytest.approx(1.0, abs=1e-6)


def test_a_model_without_such_a_label_takes_the_last_one_and_warns(tmp_path: Path) -> None:
    loaded = named(["a", "b", "c"], tmp_path)
    with pytest.warns(CheckpointWarning, match="entail"):
        found = tasks.zero_shot(loaded, TEXTS[0], LABELS, multi_label=True)
    scores = expected(loaded, TEXTS[0], 2, 0, multi_label=True)
    assert dict(zip(found["labels"], found["scores"], strict=True)) == pytest.approx(scores, abs=1e-5)


@pytest.mark.parametrize(
    ("label2id", "entailment"),
    [
        ({"neutral": 1, "Entailment (weak)": 2, "entailment": 0}, 2),  # the first in the file
        ({"entail": 1, "neutral": 0}, 1),  # whatever id2label calls them
        (..., 0),
        (None, 0),
    ],
)
def test_the_first_label_of_the_file_is_entailment(tmp_path: Path, label2id: Any, entailment: int) -> None:
    loaded = named(["entailment", "neutral", "Entailment (weak)"], tmp_path, label2id=label2id)
    found = tasks.zero_shot(loaded, TEXTS[0], LABELS)
    scores = expected(loaded, TEXTS[0], entailment, 0, multi_label=False)
    assert dict(zip(found["labels"], found["scores"], strict=True)) == pytest.approx(scores, abs=1e-5)
    assert loaded.model.config.to_dict()["label2id"] == (
        label2id if isinstance(label2id, dict) else {"entailment": 0, "neutral": 1, "Entailment (weak)": 2}
    )


@pytest.mark.parametrize("index", [3, -1, "0", True, None, [0]])
def test_a_wrong_number_for_entailment_is_an_error(tmp_path: Path, index: object) -> None:
    loaded = named(["a", "b", "c"], tmp_path, label2id={"a": 0, "entailment": index})
    with pytest.raises(InputError, match=r"label2id of the model has .* for 'entailment': it must be an integer"):
        tasks.zero_shot(loaded, TEXTS[0], LABELS)


@pytest.mark.parametrize("backend", ["rust", "numpy"])
@pytest.mark.parametrize("name", ["zero_shot_bert", "zero_shot_bert_two", "zero_shot_roberta_no_names"])
def test_scores_equal_those_of_transformers(name: str, backend: str) -> None:
    if name == "zero_shot_roberta_no_names":
        pytest.importorskip("tokenizers")
    source = tasks.load(MODELS / name, backend)
    listing = json.loads((MODELS / name / "reference.json").read_text(encoding="utf-8"))
    for run in listing["runs"]:
        labels = run["options"].pop("candidate_labels")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = tasks.zero_shot(source, run["texts"], labels, **run["options"])
        unnamed = [CheckpointWarning] if name == "zero_shot_roberta_no_names" else []
        assert [one.category for one in caught] == [*unnamed, TruncationWarning]
        for one, result in zip(found, run["results"], strict=True):
            scores = dict(zip(result["labels"], result["scores"], strict=True))
            assert dict(zip(one["labels"], one["scores"], strict=True)) == pytest.approx(scores, abs=1e-5)


def test_a_single_label_is_compared_with_contradiction(nli: Loaded) -> None:
    one = tasks.zero_shot(nli, TEXTS[0], "house")
    assert one == tasks.zero_shot(nli, TEXTS[0], ["house"], multi_label=True)
    assert 0.0 < one["scores"][0] < 1.0


def test_a_string_of_labels_is_divided_at_commas(nli: Loaded) -> None:
    assert tasks.zero_shot(nli, TEXTS, " house, a good dog,, not the cat ,") == tasks.zero_shot(nli, TEXTS, LABELS)


def test_no_texts_have_no_results(nli: Loaded) -> None:
    assert tasks.zero_shot(nli, [], LABELS) == []
    assert tasks.zero_shot(nli, [], LABELS, multi_label=True) == []


@given(st.permutations(TEXTS), st.integers(1, 5))
def test_the_other_texts_and_the_size_of_batches_change_nothing(nli: Loaded, texts: list[str], size: int) -> None:
    found = tasks.zero_shot(nli, texts, LABELS, batch_size=size)
    for text, one in zip(texts, found, strict=True):
        alone = tasks.zero_shot(nli, text, LABELS)
        assert one["labels"] == alone["labels"]
        assert one["scores"] == pytest.approx(alone["scores"], abs=1e-6)


def test_the_text_is_truncated_and_never_the_label(nli: Loaded) -> None:
    long = "the cat was in the house " * 20
    with pytest.warns(TruncationWarning, match="1 of 2 texts were truncated to 48 tokens, the first at index 1"):
        short, cut = tasks.zero_shot(nli, [TEXTS[0], long], LABELS)
    assert (short.truncated, cut.truncated) == (False, True)
    with pytest.raises(InputError, match="none is left for a text"):
        tasks.zero_shot(nli, TEXTS[0], ["the cat " * 30])


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ([], {}, "at least one label"),
        (" , ,", {}, "at least one label"),
        (3, {}, "must be a list of str"),
        (["a", 3], {}, r"candidate_labels\[1\] must be a str, not int"),
        ("a", {"hypothesis_template": "no place"}, "the place of the label"),
        ("a", {"hypothesis_template": "{{}}"}, "the place of the label"),
        ("a", {"hypothesis_template": "{} and {}"}, "must have one {}"),
        ("a", {"hypothesis_template": "{label}"}, "must have one {}"),
        ("a", {"hypothesis_template": "{"}, "must have one {}"),
        ("a", {"hypothesis_template": None}, "hypothesis_template must be a str, not NoneType"),
        ("a", {"batch_size": 0}, "batch_size"),
    ],
)
def test_wrong_arguments_are_named(nli: Loaded, labels: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        tasks.zero_shot(nli, "a text", labels, **options)


def test_models_that_cannot_say_so_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="zero_shot needs a model with a head for it, not BertModel"):
        tasks.zero_shot(with_tokenizer("bert_model", tmp_path), "a", "b")
    with pytest.raises(InputError, match="not one with a single label"):
        tasks.zero_shot(with_tokenizer("bert_seqcls_regression", tmp_path), "a", "b")
