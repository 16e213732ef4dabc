"""Heads on frozen vectors: fitted, saved, loaded by `tasks.classify`, and vectors kept in memory maps."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_files import MODELS
from wordpiece_bert import SentenceEncoder, tasks
from wordpiece_bert._internal.progress import lines_every
from wordpiece_bert.bert import BertForTokenClassification, ModernBertConfig, ModernBertForTokenClassification
from wordpiece_bert.cli import main
from wordpiece_bert.errors import CheckpointError, ConfigError, InputError, TrainingWarning, TruncationWarning
from wordpiece_bert.finetune import FrozenClassifier, LogisticRegression, Ridge, fit_token_head, model_for
from wordpiece_bert.finetune.choices import choice_rows
from wordpiece_bert.finetune.data import label_names, sequence_rows, token_rows
from wordpiece_bert.finetune.frozen_classifier import cached_vectors
from wordpiece_bert.finetune.objectives import Tables, objective_class

TEXTS = [
    *["a wonderful film", "a great story", "moving actors", "brilliant"],
    *["a dull film", "a boring story", "poor actors", "silly"],
    *["bread in the oven", "to bake dough", "flour and bread", "baking"],
]
LABELS = ["praise"] * 4 + ["blame"] * 4 + ["kitchen"] * 4


@pytest.mark.parametrize("labels", [LABELS, ["no" if label == "blame" else "yes" for label in LABELS]])
def test_the_scores_are_those_of_the_head_on_the_vectors(encoder: SentenceEncoder, labels: list[str]) -> None:
    classifier = FrozenClassifier(encoder, LogisticRegression(C=10)).fit(TEXTS, labels)
    head = LogisticRegression(C=10).fit(encoder.encode(TEXTS), np.array(labels))
    np.testing.assert_allclose(classifier.predict_proba(TEXTS), head.predict_proba(encoder.encode(TEXTS)), atol=1e-12)
    assert classifier.predict(TEXTS).tolist() == labels
    assert classifier.labels == sorted(set(labels))


def test_a_head_may_be_given_to_several_classifiers(encoder: SentenceEncoder) -> None:
    head = LogisticRegression(C=10)
    first, second = FrozenClassifier(encoder, head).fit(TEXTS, LABELS), FrozenClassifier(encoder, head)
    second.fit(TEXTS, ["no" if label == "blame" else "yes" for label in LABELS])
    assert first.predict(TEXTS).tolist() == LABELS
    assert not hasattr(head, "coef_")


def test_predictions_use_the_cache_too(encoder: SentenceEncoder, tmp_path: Path) -> None:
    classifier = FrozenClassifier(encoder).fit(TEXTS, LABELS, cache=tmp_path)
    before = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    found = classifier.predict_proba(TEXTS, cache=tmp_path)
    assert {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == before
    np.testing.assert_array_equal(found, classifier.predict_proba(TEXTS))
    assert classifier.predict(TEXTS[:2], cache=tmp_path).tolist() == LABELS[:2]
    assert len(list(tmp_path.iterdir())) == 2


def test_classify_loads_the_folder(encoder: SentenceEncoder, tmp_path: Path) -> None:
    given = {"C": np.float32(5), "class_weight": "balanced"}
    classifier = FrozenClassifier(encoder, LogisticRegression(**given)).fit(TEXTS, LABELS)
    classifier.save_pretrained(tmp_path)
    assert SentenceEncoder(tmp_path).encode(TEXTS).tolist() == encoder.encode(TEXTS).tolist()
    again = FrozenClassifier.from_pretrained(tmp_path)
    assert again.head.get_params() == given
    np.testing.assert_allclose(again.scores(TEXTS), classifier.scores(TEXTS), rtol=0, atol=1e-5)
    expected = classifier.predict_proba(TEXTS)
    for source in (tmp_path, str(tmp_path), again):
        found = tasks.classify(source, TEXTS, top_k=None)
        for answers, row in zip(found, expected, strict=True):
            by_label = {answer["label"]: answer["score"] for answer in answers}
            assert list(by_label.values()) == sorted(by_label.values(), reverse=True)
            assert [by_label[name] for name in classifier.labels] == pytest.approx(row.tolist(), abs=1e-6)
    assert tasks.classify(tmp_path, "a dull film")[0]["label"] == "blame"
    logits = tasks.classify(again, "a dull film", top_k=None, function_to_apply="none")
    assert sorted(one["score"] for one in logits) == pytest.approx(sorted(again.scores(["a dull film"])[0]), abs=1e-6)
    assert tasks.classify(again, []) == []
    with pytest.raises(InputError, match="head on frozen vectors, which classify takes by the folder's name"):
        tasks.classify(tasks.load(tmp_path), TEXTS)


def test_a_text_that_is_cut_is_reported(encoder: SentenceEncoder, tmp_path: Path) -> None:
    classifier = FrozenClassifier(encoder).fit(TEXTS, LABELS)
    with pytest.warns(
        TruncationWarning, match="1 of 2 texts were truncated to 64 tokens, the first at index 1"
    ) as seen:
        found = tasks.classify(classifier, ["a film", "a dull film " * 60])
    assert [answers.truncated for answers in found] == [False, True]
    assert seen[0].filename == __file__


def test_pairs(encoder: SentenceEncoder, tmp_path: Path) -> None:
    pairs = [(a, b) for a in TEXTS for b in TEXTS]
    same = [str(LABELS[i] == LABELS[j]) for i in range(12) for j in range(12)]
    classifier = FrozenClassifier(encoder, LogisticRegression(C=100)).fit(pairs, same)
    u, v = (encoder.encode([pair[side] for pair in pairs]) for side in (0, 1))
    features = np.concatenate([u, v, np.abs(u - v), u * v], axis=1)
    head = LogisticRegression(C=100).fit(features, np.array(same))
    np.testing.assert_allclose(classifier.predict_proba(pairs), head.predict_proba(features), atol=1e-12)
    classifier.save_pretrained(tmp_path)
    given = {"text": TEXTS[0], "text_pair": TEXTS[1]}
    first, second = tasks.classify(tmp_path, [(TEXTS[0], TEXTS[1]), given])
    assert first == second
    assert first[0]["label"] == classifier.predict([pairs[1]])[0]
    with pytest.raises(InputError, match="was fitted to pairs of texts, not to texts"):
        tasks.classify(tmp_path, "alone")


def test_regression(encoder: SentenceEncoder, tmp_path: Path) -> None:
    numbers = np.linspace(-1, 3, len(TEXTS))
    classifier = FrozenClassifier(encoder, Ridge(0.1)).fit(TEXTS, [str(number) for number in numbers])
    expected = Ridge(0.1).fit(encoder.encode(TEXTS), numbers).predict(encoder.encode(TEXTS))
    np.testing.assert_allclose(classifier.predict(TEXTS), expected, atol=1e-12)
    classifier.save_pretrained(tmp_path)
    found = tasks.classify(tmp_path, TEXTS)
    assert [answers[0]["score"] for answers in found] == pytest.approx(expected.tolist(), abs=1e-5)
    assert found[0][0]["label"] == "LABEL_0"
    with pytest.raises(InputError, match="no probabilities"):
        classifier.predict_proba(TEXTS)
    with pytest.warns(TrainingWarning, match=f"all {len(TEXTS)} rows have the label 0.5"):
        FrozenClassifier(encoder, Ridge()).fit(TEXTS, [0.5] * len(TEXTS))


def test_static_models_have_heads_too(tmp_path: Path) -> None:
    encoder = SentenceEncoder(MODELS / "static_m2v")
    texts = json.loads((MODELS / "static_m2v" / "reference.json").read_text(encoding="utf-8"))["texts"]
    texts = [text for text in texts if len(text) < 60][:6]
    labels = [str(len(text) % 2) for text in texts]
    classifier = FrozenClassifier(encoder).fit(texts, labels, cache=tmp_path / "cache")
    classifier.save_pretrained(tmp_path / "saved")
    again = FrozenClassifier.from_pretrained(tmp_path / "saved")
    np.testing.assert_allclose(again.scores(texts), classifier.scores(texts), rtol=0, atol=1e-5)


def test_vectors_are_kept_by_a_fingerprint(
    encoder: SentenceEncoder, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = cached_vectors(encoder, TEXTS, tmp_path)
    assert isinstance(first, np.memmap)
    np.testing.assert_array_equal(first, encoder.encode(TEXTS))
    [file] = tmp_path.iterdir()
    other = SentenceEncoder(folder)
    monkeypatch.setattr(type(other), "encode", lambda *_, **__: pytest.fail("the vectors are computed again"))
    np.testing.assert_array_equal(cached_vectors(other, tuple(TEXTS), tmp_path), first)  # the file, in another encoder
    monkeypatch.undo()
    file.write_bytes(file.read_bytes()[:-8])  # a file that was cut is made again
    np.testing.assert_array_equal(cached_vectors(encoder, TEXTS, tmp_path), encoder.encode(TEXTS))
    cached_vectors(encoder, [*TEXTS[:-1], "other"], tmp_path)
    cached_vectors(encoder, ["".join(TEXTS)], tmp_path)
    other.max_seq_length = 60
    cached_vectors(other, TEXTS, tmp_path)
    assert len(list(tmp_path.iterdir())) == 4


def test_wrong_uses_are_refused(encoder: SentenceEncoder, tmp_path: Path) -> None:
    classifier = FrozenClassifier(encoder)
    with pytest.raises(InputError, match="not fitted yet"):
        classifier.predict(TEXTS)
    with pytest.raises(InputError, match="not fitted yet"):
        classifier.save_pretrained(tmp_path / "a")
    with pytest.raises(InputError, match="12 texts, but 1 labels"):
        classifier.fit(TEXTS, ["a"])
    with pytest.raises(InputError, match="all 12 labels are 'a'"):
        classifier.fit(TEXTS, ["a"] * 12)
    with pytest.raises(InputError, match=r"texts\[1\] is a text, others are pairs"):
        classifier.fit([("a", "b"), "a"], ["a", "b"])
    with pytest.raises(InputError, match=r"texts\[0\] must be a str or a pair"):
        classifier.fit([("a", "b", "c"), "a"], ["a", "b"])  # type: ignore[list-item]
    with pytest.raises(InputError, match="no texts"):
        classifier.fit([], [])
    with pytest.raises(InputError, match="row 0: the label 'praise' is no finite number"):
        FrozenClassifier(encoder, Ridge()).fit(TEXTS, LABELS)
    with pytest.raises(InputError, match="head must be"):
        FrozenClassifier(encoder, "logistic")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="encoder must be"):
        FrozenClassifier(7)  # type: ignore[arg-type]


def test_damaged_folders_are_refused(encoder: SentenceEncoder, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"there is no frozen_head\.json"):
        FrozenClassifier.from_pretrained(folder)
    FrozenClassifier(encoder).fit(TEXTS, LABELS).save_pretrained(tmp_path / "saved")
    for name, change in {
        "version": {"version": 7},
        "labels": {"labels": ["a", "b"]},
        "kind": {"labels": [1, 2, 3]},
        "pairs": {"pairs": True},
        "numbers": {"dtype": "int64"},
        "type": {"dtype": "datetime64"},
        "parameters": {"parameters": {"C": -1}},
        "names": {"parameters": {"alpha": 1}},
    }.items():
        shutil.copytree(tmp_path / "saved", tmp_path / name)
        file = tmp_path / name / "frozen_head.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | change))
        with pytest.raises(
            CheckpointError,
            match={
                "version": "version",
                "numbers": "type",
                "type": "type",
                "parameters": "parameters",
                "names": "parameters",
            }.get(name, "do not fit"),
        ):
            tasks.classify(tmp_path / name, "a film")


# --- labels, as scikit-learn has them


def columns(module: str) -> Any:
    return pytest.importorskip(module)


#: Labels of two classes for eight texts, in every form that a user has them in.
FORMS: dict[str, Any] = {
    "strings": lambda: ["a", "b"] * 4,
    "a tuple": lambda: ("a", "b") * 4,
    "integers": lambda: [10, 9] * 4,
    "booleans": lambda: [True, False] * 4,
    "whole floats": lambda: [1.0, 2.0] * 4,
    "NumPy strings": lambda: np.array(["a", "b"] * 4),
    "NumPy objects": lambda: np.array(["a", "b"] * 4, object),
    "NumPy int8": lambda: np.array([-1, 1] * 4, np.int8),
    "NumPy bool": lambda: np.array([True, False] * 4),
    "NumPy float32": lambda: np.array([0, 1] * 4, np.float32),
    "NumPy scalars": lambda: [np.int64(3), np.int64(4)] * 4,
    "pandas strings": lambda: columns("pandas").Series(["a", "b"] * 4, index=range(8, 0, -1)),
    "pandas categories": lambda: columns("pandas").Series(["a", "b"] * 4, dtype="category"),
    "pandas int": lambda: columns("pandas").Series([1, 2] * 4),
    "pandas bool": lambda: columns("pandas").Series([True, False] * 4),
    "Polars strings": lambda: columns("polars").Series(["a", "b"] * 4),
    "Polars int": lambda: columns("polars").Series([1, 2] * 4),
    "Polars bool": lambda: columns("polars").Series([True, False] * 4),
}


@pytest.mark.parametrize("form", FORMS)
def test_predictions_have_the_type_of_scikit_learns(encoder: SentenceEncoder, form: str, tmp_path: Path) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    labels = FORMS[form]()
    peer = linear_model.LogisticRegression(C=10).fit(encoder.encode(TEXTS[:8]), labels)
    classifier = FrozenClassifier(encoder, LogisticRegression(C=10)).fit(TEXTS[:8], labels)
    expected = peer.predict(encoder.encode(TEXTS[:8]))
    classifier.save_pretrained(tmp_path)
    for one in (classifier, FrozenClassifier.from_pretrained(tmp_path)):
        found = one.predict(TEXTS[:8])
        assert isinstance(found, np.ndarray)
        assert found.dtype == expected.dtype
        assert found.tolist() == expected.tolist()
        assert one.classes_.dtype == peer.classes_.dtype
        assert one.classes_.tolist() == peer.classes_.tolist()
    names = [str(int(one) if isinstance(one, float) else one) for one in peer.classes_.tolist()]
    assert classifier.labels == names
    assert tasks.classify(tmp_path, TEXTS[0])[0]["label"] == names[peer.classes_.tolist().index(expected[0])]


@pytest.mark.parametrize("form", ["Int64", "boolean"])
def test_integers_and_booleans_of_pandas_stay_what_they_are(encoder: SentenceEncoder, form: str) -> None:
    pandas = pytest.importorskip("pandas")
    values = [True, False] * 4 if form == "boolean" else [1, 2] * 4
    classifier = FrozenClassifier(encoder).fit(TEXTS[:8], pandas.Series(values, dtype=form))
    assert classifier.classes_.dtype == np.array(values).dtype


def missing_labels() -> list[Any]:
    found: list[Any] = [None, float("nan"), np.float32("nan"), "", "  ", np.datetime64("NaT")]
    try:
        import pandas
    except ImportError:
        return found
    return [*found, pandas.NA, pandas.NaT]


#: What is not a label of a class, and what the message says of it.
WRONG: list[tuple[Any, str]] = [
    *((value, "the label is missing") for value in missing_labels()),
    (["a", "b"], "problem_type='multi_label_classification'"),
    (("a",), "problem_type="),
    (np.array([0.0, 1.0]), "problem_type="),
    ({"a": 1}, "problem_type="),
    (0.5, "is a fraction"),
    (np.float32(0.25), "is a fraction"),
    (float("inf"), "is a fraction"),
    (b"a", "of type bytes"),
    (1j, "of type complex"),
    (1 << 70, "does not fit int64"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG, ids=[repr(value)[:20] for value, _ in WRONG])
@pytest.mark.parametrize("row", [0, 3, 11])
def test_what_is_no_label_is_refused_with_its_row(
    encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch, wrong: Any, message: str, row: int
) -> None:
    tok = encoder.tokenizer
    labels: list[Any] = [*LABELS[:row], wrong, *LABELS[row + 1 :]]
    expected = rf"row {row}: .*{re.escape(message)}"
    monkeypatch.setattr(SentenceEncoder, "encode", lambda *_, **__: pytest.fail("vectors were computed first"))
    with pytest.raises(InputError, match=expected):
        FrozenClassifier(encoder).fit(TEXTS, labels)
    with pytest.raises(InputError, match=expected):
        LogisticRegression().fit(np.zeros((12, 2)), labels)
    with pytest.raises(InputError, match=expected):
        label_names(labels)
    with pytest.raises(InputError, match=expected):
        sequence_rows(tok, TEXTS, None, labels, names=sorted({*LABELS}), max_length=9)
    with pytest.raises(InputError, match=rf"row 1, word {row}: .*{re.escape(message)}"):
        token_rows(tok, [["a"] * 12] * 2, [LABELS, labels], names=sorted({*LABELS}), max_length=9)
    with pytest.raises(InputError, match=expected):
        choice_rows(tok, TEXTS, [["praise", "blame", "kitchen"]] * 12, labels, max_length=9)


@pytest.mark.parametrize("wrong", [*missing_labels(), [1.0], np.ones(2), "x", float("inf"), b"a b"])
def test_what_is_no_number_is_refused_with_its_row(encoder: SentenceEncoder, wrong: Any) -> None:
    labels = [*range(4), wrong, *range(5, 12)]
    with pytest.raises(InputError, match="row 4: the label "):
        FrozenClassifier(encoder, Ridge()).fit(TEXTS, labels)
    with pytest.raises(InputError, match="row 4: the label "):
        sequence_rows(encoder.tokenizer, TEXTS, None, labels, names=None, max_length=9)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.eye(3)[[0, 1, 2] * 4], r"labels have shape \[12, 3\].*problem_type"),
        (np.array(LABELS)[:, None], r"shape \[12, 1\]"),
        (["a", 1] * 6, "row 1: the label 1 is a number, but that of row 0, 'a', is a str"),
        ([1, True] * 6, "row 1: the label True is a bool"),
        ("abcdefghijkl", "must be a list"),
        ({"a", "b"}, "must be a list"),
        (7, "must be a list"),
    ],
)
def test_labels_of_another_form_are_refused(encoder: SentenceEncoder, labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        FrozenClassifier(encoder).fit(TEXTS, labels)
    with pytest.raises(InputError, match=message):
        label_names(labels)


def test_it_is_an_estimator_of_scikit_learn(encoder: SentenceEncoder, folder: Path) -> None:
    base, selection = pytest.importorskip("sklearn.base"), pytest.importorskip("sklearn.model_selection")
    for given in (encoder, folder, str(folder)):
        fitted = FrozenClassifier(given, LogisticRegression(C=7, class_weight="balanced")).fit(TEXTS, LABELS)
        copy = base.clone(fitted)
        assert copy.get_params()["head__C"] == 7
        assert copy.get_params(deep=False).keys() == {"encoder", "head"}
        assert not hasattr(copy, "classes_")
        with pytest.raises(InputError, match="not fitted"):
            copy.predict(TEXTS)
        copy.fit(TEXTS, LABELS)
        np.testing.assert_array_equal(copy.predict_proba(TEXTS), fitted.predict_proba(TEXTS))
    assert base.is_classifier(fitted)
    assert base.is_regressor(FrozenClassifier(encoder, Ridge()))
    assert not hasattr(FrozenClassifier(encoder, Ridge()), "classes_")
    assert base.clone(Ridge(2)).alpha == 2
    fitted.set_params(head__C=3)
    assert fitted.head.get_params() == {"C": 3, "class_weight": "balanced"}
    assert fitted.set_params(head=Ridge(4)).is_regression
    for wrong in ({"C": 1}, {"head__alfa": 1}, {"encoder__x": 1}, {"head__alpha": -1}):
        with pytest.raises(InputError):
            fitted.set_params(**wrong)
    with pytest.raises(InputError):
        fitted.fit(TEXTS, range(12)).set_params(encoder=5, head__alpha=1)
    assert fitted.head.get_params() == {"alpha": 4}
    assert len(fitted.predict(TEXTS)) == 12
    pipeline = pytest.importorskip("sklearn.pipeline").make_pipeline(FrozenClassifier(encoder))
    assert list(pipeline.fit(TEXTS, LABELS).predict(TEXTS)) == list(
        FrozenClassifier(encoder).fit(TEXTS, LABELS).predict(TEXTS)
    )
    assert selection.cross_val_score(pipeline, TEXTS, LABELS, cv=2).mean() > 0
    search = selection.GridSearchCV(FrozenClassifier(encoder), {"head__C": [0.01, 10.0]}, scoring="accuracy", cv=2)
    search.fit(TEXTS, np.array(LABELS))
    assert search.best_estimator_.predict(["dough and flour"])[0] in LABELS
    peer = pytest.importorskip("sklearn.linear_model").LogisticRegression
    vectors = encoder.encode(TEXTS)
    expected = selection.GridSearchCV(peer(tol=1e-8), {"C": [0.01, 10.0]}, scoring="accuracy", cv=2).fit(
        vectors, LABELS
    )
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])


# --- tokens


@pytest.mark.parametrize("binary", [False, True])
def test_a_head_for_tokens_is_logistic_regression_on_their_vectors(folder: Path, tmp_path: Path, binary: bool) -> None:
    words = [["ada", "lovelace", "lived", "in", "london"], ["marie", "curie", "worked", "in", "paris"]]
    tags = [["B-PER", "I-PER", "O", "O", "B-LOC"]] * 2
    if binary:
        tags = [["X" if tag != "O" else "O" for tag in row] for row in tags]
    names = sorted({tag for row in tags for tag in row})
    model = model_for(folder, "TokenClassification", labels=names)
    assert isinstance(model, BertForTokenClassification)
    tokenizer = SentenceEncoder(folder).tokenizer
    rows = token_rows(tokenizer, words, tags, names=names, max_length=64)
    fitted = fit_token_head(model, rows, C=5)
    features, right = [], []
    for row in rows:
        vectors = model.base_model([row["input_ids"]]).last_hidden_state[0]
        for vector, label in zip(vectors, row["labels"], strict=True):
            if label != -100:
                features.append(vector)
                right.append(label)
    head = LogisticRegression(C=5).fit(np.stack(features), np.array(right))
    found = np.concatenate([fitted([row["input_ids"]]).logits[0][np.array(row["labels"]) != -100] for row in rows])
    expected = head.decision_function(np.stack(features))
    if binary:
        np.testing.assert_allclose(found[:, 1] - found[:, 0], expected, rtol=0, atol=1e-4)
    else:
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
    fitted.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    if not binary:
        entities = tasks.ner(tmp_path, "ada lovelace lived in london", aggregation_strategy="simple")
        assert [(one["entity_group"], one["word"]) for one in entities] == [("PER", "ada lovelace"), ("LOC", "london")]


def test_a_head_needs_every_label(folder: Path) -> None:
    model = model_for(folder, "TokenClassification", labels=["O", "A", "B"])
    rows = [{"input_ids": [2, 8, 9, 3], "labels": [-100, 0, 1, -100]}]
    with pytest.raises(InputError, match="no token has the label 'B'"):
        fit_token_head(model, rows)
    with pytest.raises(InputError, match="no rows"):
        fit_token_head(model, [])
    with pytest.raises(InputError, match="rows from 0 on need labels, one for each of their input_ids"):
        fit_token_head(model, [{"input_ids": [2, 8, 3]}])
    with pytest.raises(InputError, match="batch_size must be a whole number"):
        fit_token_head(model, rows, batch_size=0)
    with pytest.raises(InputError, match="a model for token classification"):
        fit_token_head(model_for(folder, "SequenceClassification", labels=["a", "b"]), rows)


def test_a_head_with_a_hidden_layer_is_fitted_to_what_its_classifier_reads() -> None:
    sizes = {"vocab_size": 60, "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4}
    config = ModernBertConfig(**sizes, intermediate_size=64, pad_token_id=-1, id2label={0: "a", 1: "b", 2: "c"})
    model = ModernBertForTokenClassification.from_config(config)
    rows = [{"input_ids": row, "labels": row % 3} for row in np.split(np.arange(3, 60), [5, 20, 25])]
    fitted = fit_token_head(model, rows, C=1000)
    assert all((fitted.infer([row["input_ids"]]).argmax(axis=-1) == row["labels"]).all() for row in rows)
    with pytest.raises(ConfigError, match="has int8 weights"):
        fit_token_head(type(model)(config, dict(model.named_parameters()), dtype="int8"), rows)


# --- the command


@pytest.mark.parametrize("task", ["classify", "pairs", "regress", "tokens"])
def test_the_command_fits_heads_on_frozen_vectors(
    folder: Path, tmp_path: Path, task: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[dict[str, Any]] = [{"text": text, "label": label} for text, label in zip(TEXTS, LABELS, strict=True)]
    if task == "pairs":
        rows = [{**row, "other": row["text"]} for row in rows]
    elif task == "regress":
        rows = [{**row, "label": index / 3} for index, row in enumerate(rows)]
    elif task == "tokens":
        rows = [{"text": row["text"].split(), "label": [row["label"]] * len(row["text"].split())} for row in rows]
    file = tmp_path / "train.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["finetune", "--frozen", "-m", str(folder), "--train", str(file), "--eval", str(file)]
    command += ["--task", "classify" if task == "pairs" else task, "-o", str(tmp_path / "out")]
    command += ["--pair", "other"] if task == "pairs" else []
    command += ["--cache", str(tmp_path / "cache")] if task != "tokens" else []
    with lines_every(0):
        assert main(command) == 0
    shown = capsys.readouterr().err
    assert re.search(r"12 of 12 \w+s,", shown)  # lines of progress: there is no terminal
    assert ("accuracy" if task != "regress" else "spearman") in shown
    if task == "tokens":
        assert tasks.ner(tmp_path / "out", "dull film")[0]["entity_group"] == "blame"
        return
    assert len(list((tmp_path / "cache").glob("*.npy"))) == 1  # the evaluation has the same texts
    given = (TEXTS[4], TEXTS[4]) if task == "pairs" else TEXTS[4]
    [answer] = tasks.classify(tmp_path / "out", given)
    assert answer["label"] == ("LABEL_0" if task == "regress" else "blame")


def test_the_command_refuses_what_frozen_vectors_cannot_do(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.csv"
    file.write_text("text,label\na,b\n")
    command = ["finetune", "-m", str(folder), "--train", str(file), "-o", str(tmp_path / "out")]
    assert main([*command, "--frozen", "--task", "similar"]) == 2
    assert "--frozen" in capsys.readouterr().err
    for alone in (["--cache", "c"], ["--inverse-penalty", "1"]):
        assert main([*command, *alone, "--task", "classify"]) == 2
        assert f"{alone[0]} " in (error := capsys.readouterr().err)
        assert "--frozen, which is missing" in error
    with pytest.raises(InputError, match="cache keeps vectors of texts"):
        objective_class("tokens", "tables")(Tables(train=file)).fit_frozen(folder, cache=tmp_path)


#: What a training in steps has, also with the value that it has by default.
STEPS = {
    "--epochs": "3",
    "--batch-size": "16",
    "--learning-rate": "5e-5",
    "--warmup": "0.1",
    "--weight-decay": "0",
    "--freeze": "embeddings",
    "--seed": "0",
    "--save-steps": "1",
    "--eval-steps": "1",
    "--bf16": None,
    "--resume": None,
    "--overwrite": None,
}


def test_the_command_refuses_settings_of_steps_with_frozen_vectors(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.csv"
    file.write_text("text,label\na,b\n")
    command = ["finetune", "-m", str(folder), "--train", str(file), "--eval", str(file), "-o", str(tmp_path / "out")]
    command += ["--task", "classify", "--frozen"]

    def refused(given: list[str]) -> str:
        assert main([*command, *given]) == 2
        assert not (tmp_path / "out").exists()
        return capsys.readouterr().err

    for option, value in STEPS.items():
        error = refused([option] if value is None else [option, value])
        assert error.endswith(
            f"{option} is for a training in steps; a head on frozen vectors has none: leave out {option}, or --frozen\n"
        )
    assert "leave out --epochs, --seed, or --frozen" in refused(["--epochs", "2", "--seed", "1"])
    for given in (["--best"], ["--metric", "loss"], ["--patience", "1"]):
        assert f"{given[0]} is for evaluations, which need --eval, and a training in steps" in refused(given)
    with pytest.raises(SystemExit):
        main(["finetune", "--help-all"])
    help_text = capsys.readouterr().out
    known = set(re.findall(r"--[a-z0-9-]+", help_text[help_text.index("\ntraining:") : help_text.index("\nheads on")]))
    assert known - {"--threads", "--eval", "--best", "--metric", "--patience"} == STEPS.keys()
