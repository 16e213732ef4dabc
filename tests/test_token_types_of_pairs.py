"""Pairs of WordPiece folders whose ``model_input_names`` leave token types out: the model is given type 0."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_files import with_tokenizer, write_safetensors
from serve_client import Client
from wordpiece_bert import CrossEncoder, Tokenizer, inspect, tasks
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.bert.functional import softmax
from wordpiece_bert.serve import ServerSettings, create_app
from wordpiece_bert.serve.model_loading import load_model
from wordpiece_bert.tokenizer.subword import model_encodings

TEXT, PAIR = "the city by night", "a dog in the park"
WITHOUT = ["input_ids", "attention_mask"]
WITH = ["input_ids", "token_type_ids", "attention_mask"]
#: What a tokenizer_config.json may say, and whether the model is given token types.
SETTINGS: dict[str, tuple[dict[str, Any], bool]] = {
    "left out": ({"model_input_names": WITHOUT}, False),
    "no class of a model": ({"tokenizer_class": "PreTrainedTokenizerFast"}, False),
    "no class of a model, but names": (
        {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": WITH},
        True,
    ),
    "named": ({"model_input_names": WITH}, True),
    "absent": ({}, True),
}


def tokenizer_files(name: str, parent: Path, settings: str) -> Path:
    """Copy a folder, with these settings of its tokenizer."""
    parent.mkdir(exist_ok=True)
    folder = with_tokenizer(name, parent)
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | SETTINGS[settings][0]))
    return folder


def row_of(folder: Path, text: str, pair: str, *, types: bool) -> dict[str, Any]:
    encoding = Tokenizer.from_pretrained(folder).encode(text, pair)
    assert any(encoding.token_type_ids)
    kinds = encoding.token_type_ids if types else [0] * len(encoding)
    return {"input_ids": [encoding.ids], "token_type_ids": [kinds]}


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_ranker_scores_as_its_model(settings: str, tmp_path: Path) -> None:
    folder, types = tokenizer_files("cross_encoder_score", tmp_path, settings), SETTINGS[settings][1]
    ranker = CrossEncoder(folder)
    model: Any = tasks.load(folder).model
    expected = model(**row_of(folder, TEXT, PAIR, types=types)).logits[0]
    other = model(**row_of(folder, TEXT, PAIR, types=not types)).logits[0]
    identity = {"activation_fn": lambda y: y}
    np.testing.assert_allclose(ranker.predict([(TEXT, PAIR)], **identity), expected, rtol=0, atol=1e-5)
    assert np.abs(expected - other).max() > 1e-2
    client = Client(create_app({"m": load_model(str(folder))}, ServerSettings()))
    found = client.post("/rerank", query=TEXT, texts=[PAIR])
    client.close()
    np.testing.assert_allclose(found[0]["score"], ranker.predict([(TEXT, PAIR)])[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("settings", SETTINGS)
def test_classes_and_traces_are_those_of_the_model(settings: str, tmp_path: Path) -> None:
    folder, types = tokenizer_files("bert_seqcls_multi", tmp_path, settings), SETTINGS[settings][1]
    loaded = tasks.load(folder)
    model: Any = loaded.model
    expected = model(**row_of(folder, TEXT, PAIR, types=types), output_hidden_states=True)
    found = tasks.classify(loaded, {"text": TEXT, "text_pair": PAIR}, top_k=None, function_to_apply="none")
    scores = {one["label"]: one["score"] for one in found}
    np.testing.assert_allclose(
        [scores[model.config.label(index)] for index in range(len(scores))], expected.logits[0], rtol=0, atol=1e-5
    )
    trace = inspect.trace(loaded, TEXT, PAIR)
    np.testing.assert_allclose(trace.hidden_states[-1], expected.hidden_states[-1][0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("settings", SETTINGS)
def test_answers_and_entailments_are_those_of_the_model(settings: str, tmp_path: Path) -> None:
    types = SETTINGS[settings][1]
    folder = tokenizer_files("bert_question_answering", tmp_path, settings)
    answer = tasks.question_answering(tasks.load(folder), "the city", PAIR)
    # A model to which both types are one is what computes without them.
    alike = tokenizer_files("bert_question_answering", tmp_path / "alike", "named")
    tensors = {name: np.asarray(value) for name, value in read_tensors(alike / "model.safetensors").items()}
    name = "bert.embeddings.token_type_embeddings.weight"
    tensors[name] = np.repeat(tensors[name][:1], 2, axis=0)
    write_safetensors(alike / "model.safetensors", tensors)
    without = tasks.question_answering(tasks.load(alike), "the city", PAIR)
    assert (answer["score"] == pytest.approx(without["score"], abs=1e-6)) == (not types)
    folder = tokenizer_files("zero_shot_bert", tmp_path, settings)
    loaded = tasks.load(folder)
    result = tasks.zero_shot(loaded, TEXT, ["park"], hypothesis_template="a dog in the {}")
    logits = loaded.model(**row_of(folder, TEXT, PAIR, types=types)).logits[0]  # type: ignore[operator]
    names = [loaded.model.config.label(index).lower() for index in range(len(logits))]
    entailment = next(index for index, name in enumerate(names) if name.startswith("entail"))
    contradiction = -1 if entailment == 0 else 0
    pair = softmax(np.array([[logits[contradiction], logits[entailment]]]))[0]
    assert result["scores"][0] == pytest.approx(float(pair[1]), abs=1e-5)


def test_encodings_keep_everything_else(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_pretrained(tokenizer_files("bert_seqcls_multi", tmp_path, "left out"))
    rows = tokenizer.encodings([(TEXT, PAIR * 9)], truncation=True, max_length=12, stride=2, padding=False)
    (found,) = model_encodings(tokenizer, rows)
    assert any(rows[0].token_type_ids)
    assert len(found.overflowing) == len(rows[0].overflowing) > 0
    for one, other in zip([found, *found.overflowing], [rows[0], *rows[0].overflowing], strict=True):
        assert one.token_type_ids == [0] * len(other)
        for name in ("ids", "tokens", "offsets", "special_tokens_mask", "word_ids", "sequence_ids", "truncated"):
            assert getattr(one, name) == getattr(other, name), name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("settings", SETTINGS)
def test_scores_are_those_of_transformers_and_sentence_transformers(settings: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transformers = pytest.importorskip("transformers")
        peer = pytest.importorskip("sentence_transformers")
    folder = tokenizer_files("cross_encoder_score", tmp_path, settings)
    expected = peer.CrossEncoder(str(folder), device="cpu").predict([(TEXT, PAIR)], activation_fn=torch.nn.Identity())
    found = CrossEncoder(folder).predict([(TEXT, PAIR)], activation_fn=lambda y: y)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    folder = tokenizer_files("bert_seqcls_multi", tmp_path, settings)
    pipeline = transformers.pipeline("text-classification", str(folder), top_k=None, function_to_apply="none")
    item = {"text": TEXT, "text_pair": PAIR}
    classes = tasks.classify(tasks.load(folder), item, top_k=None, function_to_apply="none")
    expected = {one["label"]: one["score"] for one in pipeline(item)}
    assert {one["label"]: one["score"] for one in classes} == pytest.approx(expected, abs=1e-5)
    folder = tokenizer_files("zero_shot_bert", tmp_path, settings)
    pipeline = transformers.pipeline("zero-shot-classification", str(folder))
    result = tasks.zero_shot(tasks.load(folder), TEXT, ["dog", "park"])
    scores = pipeline(TEXT, ["dog", "park"])
    ours = dict(zip(result["labels"], result["scores"], strict=True))
    assert ours == pytest.approx(dict(zip(scores["labels"], scores["scores"], strict=True)), abs=1e-5)
