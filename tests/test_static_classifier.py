"""Heads of model2vec on static models: numbers of the layers, and model2vec itself where it is installed."""

from __future__ import annotations

import json
import shutil
import time
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_files import MODELS
from wordpiece_bert import tasks
from wordpiece_bert._internal.atomic_file import write_bytes
from wordpiece_bert.bert.checkpoint.safetensors import safetensors_chunks
from wordpiece_bert.cli import main
from wordpiece_bert.errors import CheckpointError, ConfigError, InputError
from wordpiece_bert.finetune import FrozenClassifier
from wordpiece_bert.sentence import StaticClassifier, StaticEncoder

FOLDER = MODELS / "static_m2v"
TEXTS: list[str] = json.loads((FOLDER / "reference.json").read_text(encoding="utf-8"))["texts"]
WIDTH = StaticEncoder(FOLDER).dimension


def make_head(folder: Path, activation: str, widths: list[int], classes: Any) -> dict[str, Any]:
    """Write a static model with a head as model2vec 0.10 does, and return the tensors of the head."""
    shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
    random = np.random.default_rng(sum(widths))
    tensors = {}
    for number, (inputs, outputs) in enumerate(zip([WIDTH, *widths], widths, strict=False)):
        tensors[f"head.{number}.weight"] = random.normal(size=(outputs, inputs)).astype(np.float32)
        tensors[f"head.{number}.bias"] = random.normal(size=outputs).astype(np.float32)
    write_bytes(folder / "head.safetensors", b"".join(safetensors_chunks(tensors)))
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["head_config"] = {"n_layers": len(widths), "activation": activation, "classes": classes}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return tensors


KINDS = [
    ("softmax", [5, 3], ["bad", "fair", "good"]),
    ("softmax", [2], [0, 1]),
    ("sigmoid", [4, 4, 3], ["a", "b", "c"]),
    ("identity", [6, 2], None),
]


@pytest.mark.parametrize(("activation", "widths", "classes"), KINDS)
def test_the_command_predicts(
    activation: str, widths: list[int], classes: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "model"
    make_head(folder, activation, widths, classes)
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps({"a": text}) + "\n" for text in TEXTS))
    command = ["predict", str(folder), str(tmp_path / "texts.jsonl"), "--jsonl-field", "a"]
    assert main([*command, "--top-k", "all"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for row, expected in zip(found, tasks.classify(folder, TEXTS, top_k=None), strict=True):
        assert row == {name + "s": [label[name] for label in expected] for name in ("label", "score")}
    for more, message in (
        (["--jsonl-field", "a"], "of single texts: name one field"),
        (["--dtype", "bfloat16"], "is a head on vectors, in float32"),
        (["--stride", "3"], "--stride does not fit"),
    ):
        assert main([*command, *more]) == 2
        assert message in capsys.readouterr().err


def test_the_name_of_a_classifier_is_looked_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_head(tmp_path, "softmax", [2], ["a", "b"])
    looked_up = list[object]()
    for module in ("text_classification", "task_loading"):  # only a name, not the folder that it stands for, is counted
        monkeypatch.setattr(
            f"wordpiece_bert.tasks.{module}.find_model",
            lambda name: tmp_path if isinstance(name, PathLike) else looked_up.append(name) or tmp_path,
        )
    assert tasks.classify("org/name", TEXTS[0]) == tasks.classify(tmp_path, TEXTS[0])
    assert looked_up == ["org/name"]


@pytest.mark.parametrize(("activation", "widths", "classes"), KINDS)
def test_the_task_classifies(activation: str, widths: list[int], classes: Any, tmp_path: Path) -> None:
    make_head(tmp_path, activation, widths, classes)
    classifier = StaticClassifier(tmp_path)
    texts = [text for text in TEXTS if text.strip()]
    expected = classifier.predict(texts) if activation == "identity" else classifier.predict_proba(texts)
    names = [f"LABEL_{i}" for i in range(widths[-1])] if classes is None else [str(name) for name in classes]
    for source in (tmp_path, str(tmp_path), classifier):
        for row, scores in zip(tasks.classify(source, texts, top_k=None), expected, strict=True):
            found = {label["label"]: label["score"] for label in row}
            np.testing.assert_allclose([found[name] for name in names], scores, rtol=1e-5)
            assert [label["score"] for label in row] == sorted(found.values(), reverse=True)
    assert tasks.classify(classifier, texts[0]) == tasks.classify(classifier, texts[:1])[0]
    assert tasks.classify(classifier, []) == []
    with pytest.raises(InputError, match="takes texts, not pairs"):
        tasks.classify(classifier, [("a", "b")])


@pytest.mark.parametrize(("activation", "widths", "classes"), KINDS)
def test_predictions_are_those_of_the_layers(activation: str, widths: list[int], classes: Any, tmp_path: Path) -> None:
    tensors = make_head(tmp_path, activation, widths, classes)
    classifier = StaticClassifier(tmp_path)
    x = np.asarray(StaticEncoder(FOLDER).encode(TEXTS), np.float64)
    for number in range(len(widths)):
        x = np.maximum(x, 0) if number else x
        x = x @ tensors[f"head.{number}.weight"].astype(np.float64).T + tensors[f"head.{number}.bias"]
    found = classifier.predict(TEXTS)
    if activation == "identity":
        np.testing.assert_allclose(found, x, atol=1e-4)
        with pytest.raises(InputError, match="has no probabilities"):
            classifier.predict_proba(TEXTS)
        return
    names = np.array(classes)
    if activation == "softmax":
        expected = np.exp(x - x.max(axis=1, keepdims=True))
        expected /= expected.sum(axis=1, keepdims=True)
        np.testing.assert_array_equal(found, names[x.argmax(axis=1)])
    else:
        expected = 1 / (1 + np.exp(-x))
        assert [list(one) for one in found] == [list(names[row > 0.5]) for row in expected]
        least = float(np.median(expected))
        assert [list(one) for one in classifier.predict(TEXTS, threshold=least)] == [
            list(names[row > least]) for row in expected
        ]
    np.testing.assert_allclose(classifier.predict_proba(TEXTS), expected, atol=1e-5)
    assert len(classifier.predict(TEXTS[0])) == 1
    assert f"{len(classes)} labels" in repr(classifier)


@pytest.mark.parametrize(("activation", "widths", "classes"), KINDS)
def test_predictions_are_those_of_model2vec(activation: str, widths: list[int], classes: Any, tmp_path: Path) -> None:
    inference = pytest.importorskip("model2vec.inference", reason="model2vec is not installed: make test-torch")
    make_head(tmp_path, activation, widths, classes)
    theirs, ours = inference.StaticModelPipeline.from_pretrained(tmp_path), StaticClassifier(tmp_path)
    found, expected = ours.predict(TEXTS), theirs.predict(TEXTS)
    if activation == "identity":
        np.testing.assert_allclose(found, expected, atol=1e-4)
        return
    assert [np.asarray(one).tolist() for one in found] == [np.asarray(one).tolist() for one in expected]
    np.testing.assert_allclose(ours.predict_proba(TEXTS), theirs.predict_proba(TEXTS), atol=1e-5)
    theirs.save_pretrained(str(tmp_path / "saved"))
    np.testing.assert_allclose(
        StaticClassifier(tmp_path / "saved").predict_proba(TEXTS), ours.predict_proba(TEXTS), atol=1e-5
    )


def test_an_archive_of_skops_is_refused_unread(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    with pytest.raises(ConfigError, match=r"has no head\.safetensors"):
        StaticClassifier(tmp_path)
    (tmp_path / "pipeline.skops").write_bytes(b"not even an archive")
    with pytest.raises(ConfigError, match="an archive of skops names classes to construct, and is not read"):
        StaticClassifier(tmp_path)


def test_wrong_heads_are_named(tmp_path: Path) -> None:
    for number, (activation, widths, classes, error, message) in enumerate(
        [
            ("tanh", [2], ["a", "b"], ConfigError, "a known activation"),
            ("softmax", [2], None, ConfigError, "do not go with the activation 'softmax'"),
            ("identity", [2], ["a", "b"], ConfigError, "do not go with the activation 'identity'"),
            ("softmax", [2], [["a"], "b"], ConfigError, "do not go with"),
            ("softmax", [3], ["a", "b"], CheckpointError, "3 outputs, but 2 classes"),
        ]
    ):
        make_head(tmp_path / str(number), activation, widths, classes)
        with pytest.raises(error, match=message):
            StaticClassifier(tmp_path / str(number))
    tensors = make_head(tmp_path / "shapes", "softmax", [3, 2], ["a", "b"])
    tensors["head.1.weight"] = tensors["head.1.weight"][:, 1:]
    for broken, message in ((tensors, "do not follow"), ({"head.0.bias": tensors["head.0.bias"]}, "layer 0 of 2")):
        write_bytes(tmp_path / "shapes" / "head.safetensors", b"".join(safetensors_chunks(broken)))
        with pytest.raises(CheckpointError, match=message):
            StaticClassifier(tmp_path / "shapes")


def test_a_head_is_fitted_to_ten_thousand_texts_of_a_static_model() -> None:
    random = np.random.default_rng(0)
    words = [[f"{word}" for text in TEXTS for word in text.split()][k::3] for k in range(3)]
    labels = random.integers(3, size=10_000)
    texts = [" ".join(random.choice(words[label], 8)) for label in labels]
    start = time.perf_counter()
    classifier = FrozenClassifier(StaticEncoder(FOLDER)).fit(texts, labels)
    seconds = time.perf_counter() - start
    assert (classifier.predict(texts) == labels).mean() > 0.5  # of three labels
    assert seconds < 60  # some tenths on an idle machine
