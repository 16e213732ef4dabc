"""Folders that this package writes, loaded by transformers, sentence-transformers, model2vec and txtai themselves.

`make test-torch` installs them; without torch these tests are skipped.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny_models
from model_files import MODELS, reference_cases
from small_tokenizer import TEXTS, TOKENS, tokenizer
from wordpiece_bert import CrossEncoder, SentenceEncoder, tasks
from wordpiece_bert.bert import AutoModel
from wordpiece_bert.finetune import SentenceTrainer, Trainer, TrainingArguments, losses, model_for
from wordpiece_bert.sentence.dense.parts import body_of
from wordpiece_bert.sentence.dense.table import TableBody

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
transformers: Any = pytest.importorskip("transformers", reason="transformers is not installed: make test-torch")

torch.set_num_threads(1)

# The warnings of these packages are not errors of these tests; neither is a text that is cut.
pytestmark = pytest.mark.filterwarnings("ignore")

#: Of each kind of model that transformers has: the folder, and the class that loads it there.
LOADED = [
    *(
        (name, "AutoModel")
        for name in ("bert_model", "distilbert_model", "electra_model", "mpnet_model", "albert_model")
    ),
    *((name, "AutoModel") for name in ("megatron_model", "roberta_model", "xlmr_model")),
    *((name, "AutoModel") for name in ("ernie_model", "xlmr_xl_model", "deberta_conv_groups", "deberta_own_keys")),
    ("deberta_masked_lm_new", "AutoModelForMaskedLM"),
    ("deberta_multiple_choice", "AutoModelForMultipleChoice"),
    ("deberta_seqcls", "AutoModelForSequenceClassification"),
    ("camembert_seqcls", "AutoModelForSequenceClassification"),
    ("data2vec_masked_lm", "AutoModelForMaskedLM"),
    *((name, "AutoModelForMaskedLM") for name in ("bert_masked_lm", "distilbert_masked_lm")),
    ("bert_pretraining", "AutoModelForPreTraining"),
    ("electra_discriminator", "AutoModelForPreTraining"),
    ("bert_next_sentence", "AutoModelForNextSentencePrediction"),
    ("bert_multiple_choice", "AutoModelForMultipleChoice"),
    *(
        (name, "AutoModelForSequenceClassification")
        for name in ("bert_seqcls_single", "electra_seqcls", "roberta_seqcls")
    ),
    *(
        (name, "AutoModelForTokenClassification")
        for name in ("bert_token_cls", "distilbert_token_cls", "xlmr_token_cls")
    ),
    *((name, "AutoModelForQuestionAnswering") for name in ("bert_question_answering", "electra_question_answering")),
]


@pytest.mark.parametrize(("name", "loader"), LOADED)
def test_transformers_computes_the_same_with_a_folder_that_was_saved(name: str, loader: str, tmp_path: Path) -> None:
    model = AutoModel.from_pretrained(MODELS / name)
    model.save_pretrained(tmp_path)
    theirs = getattr(transformers, loader).from_pretrained(tmp_path).eval()
    cases = reference_cases(name)
    for inputs, _ in list(cases.values())[:3]:
        given = {
            key: value for key, value in inputs.items() if key in ("input_ids", "attention_mask", "token_type_ids")
        }
        if "input_ids" not in given:
            continue
        found = model(**given)
        with torch.no_grad():
            expected = theirs(**{key: torch.from_numpy(np.asarray(value)) for key, value in given.items()})
        for key, value in expected.items():
            if not torch.is_tensor(value) or getattr(found, key, None) is None:
                continue
            np.testing.assert_allclose(getattr(found, key), value.numpy(), rtol=0, atol=2e-5, err_msg=key)


@pytest.mark.parametrize("name", sorted(folder.name for folder in MODELS.glob("static_*")))
def test_static_models_have_the_same_vectors_elsewhere(name: str, tmp_path: Path) -> None:
    encoder = SentenceEncoder(MODELS / name)
    assert isinstance(body_of(encoder), TableBody)
    encoder.save_pretrained(tmp_path)
    texts = json.loads((MODELS / name / "reference.json").read_text(encoding="utf-8"))["texts"]
    sentence_transformers = pytest.importorskip("sentence_transformers")
    model2vec = pytest.importorskip("model2vec")
    expected = encoder.encode(texts)
    atol = 1e-3 if "float16" in name else 1e-6
    loaders = [lambda: sentence_transformers.SentenceTransformer(str(tmp_path), device="cpu").encode(texts)]
    if name.startswith("static_m2v"):
        loaders = [lambda: model2vec.StaticModel.from_pretrained(tmp_path).encode(texts)]
    for load in loaders:
        np.testing.assert_allclose(np.asarray(load(), np.float32), expected, rtol=0, atol=atol)


def test_a_trained_classifier_is_loaded_by_transformers(tmp_path: Path) -> None:
    tiny_models.make_reviews(tmp_path / "reviews")
    model = model_for(tmp_path / "reviews", "SequenceClassification", labels=["no", "yes", "unknown"], seed=1)
    tok = tasks.load(tmp_path / "reviews").tokenizer
    texts = ["a wonderful film", "a dull story", "the city", "bread and oven"] * 3
    rows = [{**tok(text, return_tensors=None), "labels": index % 3} for index, text in enumerate(texts)]
    arguments = TrainingArguments(tmp_path / "run", max_steps=3, save_strategy="no", learning_rate=1e-3)
    trainer = Trainer(model, arguments, rows, tokenizer=tok)
    trainer.train()
    trainer.save_model(tmp_path / "saved")
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved").eval()
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert theirs.config.id2label == {0: "no", 1: "yes", 2: "unknown"}
    with torch.no_grad():
        expected = theirs(**their_tokenizer(texts, padding=True, return_tensors="pt")).logits.numpy()
    found = trainer.model(**tok(texts, padding=True)).logits
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
    answers = transformers.pipeline("text-classification", str(tmp_path / "saved"), device="cpu")(texts[:2])
    ours = tasks.classify(tmp_path / "saved", texts[:2])
    assert [one["label"] for one in answers] == [one[0]["label"] for one in ours]


def test_a_trained_encoder_is_loaded_by_sentence_transformers(tmp_path: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    encoder = SentenceEncoder(tiny_models.make_sentences(tmp_path / "sentences"))
    texts = ["bread in the oven", "a dull film", "the wheel and the tire", "to bake bread"]
    rows = [{"a": texts[i], "b": texts[j], "label": float(i == j)} for i in range(4) for j in range(4)]
    arguments = TrainingArguments(tmp_path / "run", max_steps=2, save_strategy="no", per_device_train_batch_size=8)
    trainer = SentenceTrainer(encoder, arguments, rows, losses.CosineSimilarityLoss())
    trainer.train()
    trainer.save_model(tmp_path / "saved")
    theirs = sentence_transformers.SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    np.testing.assert_allclose(theirs.encode(texts), trainer.model.encode(texts), rtol=0, atol=1e-5)
    assert np.abs(trainer.model.encode(texts) - encoder.encode(texts)).max() > 0


def test_a_cross_encoder_is_loaded_by_sentence_transformers(tmp_path: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    folder = tiny_models.make_ranker(tmp_path / "ranker")
    pairs = [("bake bread", "bread dough in the oven"), ("bake bread", "repair a bicycle")]
    theirs = sentence_transformers.CrossEncoder(str(folder), device="cpu")
    np.testing.assert_allclose(theirs.predict(pairs), CrossEncoder(folder).predict(pairs), rtol=0, atol=1e-5)


def test_a_tokenizer_is_loaded_by_transformers_with_the_same_tensors(tmp_path: Path) -> None:
    tok = tokenizer()
    tok.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", "vocab_size": len(TOKENS)}))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    options: dict[str, Any] = {"padding": True, "truncation": True, "max_length": 16, "return_tensors": "pt"}
    found, expected = tok(list(TEXTS), **options), theirs(list(TEXTS), **options)
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name


def test_txtai_takes_a_function_and_a_folder(tmp_path: Path) -> None:
    txtai = pytest.importorskip("txtai", reason="txtai is not installed, or does not import: make test-torch")
    encoder = SentenceEncoder(tiny_models.make_sentences(tmp_path / "sentences"))
    texts = ["to repair a bicycle", "bread dough in the oven", "a wonderful film", "the wheel and the tire"]
    for settings in (
        {"transform": lambda given: encoder.encode(given), "backend": "numpy"},
        {"path": str(tmp_path / "sentences"), "backend": "numpy"},
    ):
        embeddings = txtai.Embeddings(settings)
        embeddings.index(texts)
        found = embeddings.search("bread in the oven", 4)
        assert found[0][0] == 1
        vectors = encoder.encode(texts, normalize_embeddings=True)
        scores = dict(found)
        query = encoder.encode("bread in the oven", normalize_embeddings=True)
        for row, score in scores.items():
            assert score == pytest.approx(float(vectors[row] @ query), abs=1e-4)
