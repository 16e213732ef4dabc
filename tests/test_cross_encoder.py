"""CrossEncoder: equal to sentence-transformers, and its errors."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_files import MODELS, with_tokenizer
from wordpiece_bert import CrossEncoder
from wordpiece_bert.errors import CheckpointWarning, ConfigError, InputError, TruncationWarning

LISTING = json.loads((MODELS / "sentence_reference.json").read_text(encoding="utf-8"))
REFERENCE = np.load(MODELS / "sentence_reference.npz")
NAMES = ["cross_encoder_score", "cross_encoder_classes", "cross_encoder_identity"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    parent = tmp_path_factory.mktemp("cross")
    return {name: with_tokenizer(name, parent) for name in NAMES}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return with_tokenizer("cross_encoder_score", tmp_path)


def change(file: Path, **values: Any) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


@pytest.mark.parametrize("name", NAMES)
def test_scores_equal_sentence_transformers(folders: dict[str, Path], name: str) -> None:
    encoder = CrossEncoder.from_pretrained(folders[name])
    pairs = LISTING[name]["pairs"]
    assert encoder.max_length == LISTING[name]["max_length"]
    assert encoder.num_labels == LISTING[name]["num_labels"]
    scores, truncated = encoder.predict(pairs, return_truncated=True)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, REFERENCE[f"{name}.predict"], rtol=0, atol=1e-5)
    assert truncated.tolist() == [False] * 6 + [True]
    with pytest.warns(TruncationWarning, match="1 of 7 pairs were truncated to 48 tokens, the first at index 6"):
        raw = encoder.predict(pairs, 3, activation_fn=lambda x: x)
    np.testing.assert_allclose(raw, REFERENCE[f"{name}.predict_raw"], rtol=0, atol=1e-5)
    if f"{name}.softmax" in REFERENCE:
        found = encoder.predict(pairs[:6], apply_softmax=True)
        np.testing.assert_allclose(found, REFERENCE[f"{name}.softmax"][:6], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["cross_encoder_score", "cross_encoder_identity"])
def test_ranking_equals_sentence_transformers(folders: dict[str, Path], name: str) -> None:
    encoder = CrossEncoder.from_pretrained(folders[name])
    case = LISTING[name]["rank"]
    ranked = encoder.rank(case["query"], case["documents"])
    assert [one["corpus_id"] for one in ranked] == [one["corpus_id"] for one in case["result"]]
    np.testing.assert_allclose([one["score"] for one in ranked], [one["score"] for one in case["result"]], atol=1e-5)
    assert all(set(one) == {"corpus_id", "score"} and one.truncated is False for one in ranked)
    two = encoder.rank(case["query"], case["documents"], top_k=2, return_documents=True)
    assert [one["text"] for one in two] == [case["documents"][one["corpus_id"]] for one in ranked[:2]]


def test_one_pair_gives_one_score(folders: dict[str, Path]) -> None:
    score = CrossEncoder.from_pretrained(folders["cross_encoder_score"])
    one = score.predict(("good morning", "the city"))
    assert one.shape == ()
    assert one == score.predict([("good morning", "the city")])[0]
    assert score.predict(["good morning", "the city"]) == one
    value, cut = score.predict(("good morning", "the city"), return_truncated=True)
    assert (value, cut) == (one, False)
    assert score.predict([]).shape == (0,)
    assert CrossEncoder.from_pretrained(folders["cross_encoder_classes"]).predict(("a", "b")).shape == (3,)


def test_a_document_that_is_cut_is_reported(folders: dict[str, Path]) -> None:
    encoder = CrossEncoder.from_pretrained(folders["cross_encoder_score"])
    with pytest.warns(TruncationWarning):
        ranked = encoder.rank("good morning", ["the city", "the dog " * 60])
    assert {one["corpus_id"]: one.truncated for one in ranked} == {0: False, 1: True}


def test_max_length_can_be_lowered(folders: dict[str, Path]) -> None:
    encoder = CrossEncoder.from_pretrained(folders["cross_encoder_score"], max_length=6)
    assert encoder.max_length == 6
    assert encoder.predict([("the city was", "a good dog")], return_truncated=True)[1].tolist() == [True]
    with pytest.raises(InputError, match="max_length must be a whole number from 1 to 48"):
        CrossEncoder.from_pretrained(folders["cross_encoder_score"], max_length=49)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ("ab", "pairs must be a list of pairs"),
        (3, "pairs must be a list of pairs"),
        ([("a", "b"), ("a",)], r"pairs\[1\] must be two texts"),
        ([("a", "b"), "ab"], r"pairs\[1\] must be two texts"),
        ([("a", 1)], r"pairs\[0\] must be two texts"),
    ],
)
def test_wrong_pairs_are_reported_with_their_index(folders: dict[str, Path], pairs: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        CrossEncoder.from_pretrained(folders["cross_encoder_score"]).predict(pairs)


def test_rank_needs_one_label(folders: dict[str, Path]) -> None:
    with pytest.raises(InputError, match="rank needs a model with one label; this one has 3"):
        CrossEncoder.from_pretrained(folders["cross_encoder_classes"]).rank("a", ["b"])
    with pytest.raises(InputError, match="top_k must be"):
        CrossEncoder.from_pretrained(folders["cross_encoder_score"]).rank("a", ["b"], top_k=0)


def test_the_activation_of_the_folder_is_used(folder: Path) -> None:
    pairs = [("good morning", "the city"), ("a dog", "the cat")]
    raw = CrossEncoder.from_pretrained(folder).predict(pairs, activation_fn=lambda x: x)
    change(folder / "config.json", sbert_ce_default_activation_function="torch.nn.modules.activation.Tanh")
    np.testing.assert_allclose(CrossEncoder.from_pretrained(folder).predict(pairs), np.tanh(raw), atol=1e-6)
    change(folder / "config.json", sentence_transformers={"activation_fn": "torch.nn.modules.linear.Identity"})
    np.testing.assert_array_equal(CrossEncoder.from_pretrained(folder).predict(pairs), raw)


def test_an_activation_may_return_one_score_for_each_pair(folders: dict[str, Path]) -> None:
    encoder = CrossEncoder(folders["cross_encoder_classes"], activation_fn=lambda y: y[:, 1] - y[:, 0])
    pairs = LISTING["cross_encoder_classes"]["pairs"][:3]
    raw = REFERENCE["cross_encoder_classes.predict_raw"][:3]
    np.testing.assert_allclose(encoder.predict(pairs, 2, apply_softmax=True), raw[:, 1] - raw[:, 0], atol=1e-5)
    np.testing.assert_allclose(encoder.predict(pairs[0]), raw[0, 1] - raw[0, 0], atol=1e-5)
    for function, message in (
        ("sigmoid", "must be a function from logits"),
        (lambda y: y[:, :2], r"\[B, labels\] or \[B\], here \[2, 3\] or 2, not \[2, 2\]"),
        (lambda y: None, r"not \[\]"),
        (math.exp, "does not take logits as a NumPy array"),
    ):
        with pytest.raises(InputError, match=message):
            encoder.predict(pairs, 2, activation_fn=function)
    with pytest.raises(InputError, match="must be a function"):
        CrossEncoder(folders["cross_encoder_score"], activation_fn=0.5)  # type: ignore[arg-type]


def test_an_activation_outside_torch_is_a_warning_and_never_imported(folder: Path) -> None:
    expected = CrossEncoder.from_pretrained(folder).predict([("a dog", "the cat")])
    change(folder / "config.json", sentence_transformers={"activation_fn": "os.abort"})
    with pytest.warns(CheckpointWarning, match="'os.abort' is code of another package, which is not run"):
        encoder = CrossEncoder.from_pretrained(folder)
    np.testing.assert_array_equal(encoder.predict([("a dog", "the cat")]), expected)


@pytest.mark.parametrize("name", ["torch.nn.modules.activation.SiLU", 3])
def test_another_activation_is_refused_and_never_imported(folder: Path, name: Any) -> None:
    change(folder / "config.json", sentence_transformers={"activation_fn": name})
    with pytest.raises(ConfigError, match="the activation is"):
        CrossEncoder.from_pretrained(folder)


def test_a_model_of_another_class_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not BertForTokenClassification"):
        CrossEncoder.from_pretrained(with_tokenizer("bert_token_cls", tmp_path))


def test_batches_change_nothing(folders: dict[str, Path]) -> None:
    encoder = CrossEncoder.from_pretrained(folders["cross_encoder_score"])
    pairs = LISTING["cross_encoder_score"]["pairs"][:6]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = encoder.predict(pairs)
        for size in (1, 2, 5):
            np.testing.assert_allclose(encoder.predict(pairs, size), expected, atol=1e-6)
    with pytest.raises(InputError, match="batch_size must be"):
        encoder.predict(pairs, 0)
    assert repr(encoder).startswith("CrossEncoder(1 labels, at most 48 tokens, BertForSequenceClassification(")


# --- the names of sentence-transformers


def test_an_encoder_is_made_of_a_name(folder: Path) -> None:
    loaded = CrossEncoder.from_pretrained(folder)
    named = CrossEncoder(folder, device="cpu")
    pairs = [("a b", "c"), ("d", "e")]
    np.testing.assert_array_equal(named.predict(pairs), loaded.predict(pairs))
    assert named.tokenizer == loaded.tokenizer
    with pytest.raises(InputError, match="named by a str or a path, not BertForSequenceClassification"):
        CrossEncoder(loaded._model)
    with pytest.raises(InputError, match="the CPU only"):
        CrossEncoder(folder, device="cuda")


def test_arguments_of_predict_and_rank(folder: Path) -> None:
    settings = folder / "config_sentence_transformers.json"
    settings.write_text('{"prompts": {"ask": "the "}, "default_prompt_name": "ask"}', encoding="utf-8")
    encoder = CrossEncoder(folder)
    assert encoder.prompts["ask"] == "the "
    pairs = [("a b", "c"), ("d", "e")]
    prefixed = encoder.predict([("the " + first, second) for first, second in pairs], prompt="")
    assert not np.array_equal(prefixed, encoder.predict(pairs, prompt=""))
    np.testing.assert_array_equal(encoder.predict(pairs), prefixed)
    for options in ({"prompt": "the "}, {"prompt_name": "ask"}):
        np.testing.assert_array_equal(encoder.predict(sentences=pairs, **options), prefixed)
    np.testing.assert_array_equal(encoder.predict(inputs=pairs, prompt_name="query"), encoder.predict(pairs, prompt=""))
    assert isinstance(encoder.predict(pairs, 32, False, None, False, False), list)
    if encoder.num_labels == 1:
        ranked = encoder.rank("a b", ["c", "e"], 1, True, 32, False, prompt="the ")
        assert ranked == encoder.rank("the a b", ["c", "e"], top_k=1, return_documents=True, prompt="")
    with pytest.raises(InputError, match="no prompt 'other'"):
        encoder.predict(pairs, prompt_name="other")
