"""Training of the families with layers of their own, ModernBERT and DeBERTa: central differences, trainers, the command."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import wordpiece_bert.bert as bert
from gradient_checks import SIZES, THREE, VOCABULARY, batch_of, check_gradients
from model_files import MODELS
from random_models import random_model
from wordpiece_bert import SentenceEncoder
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune import SentenceTrainer, Trainer, TrainingArguments, losses, value_and_grad
from wordpiece_bert.finetune.dropout import KeyedDropout
from wordpiece_bert.finetune.engines import NumpyTraining, RustTraining
from wordpiece_bert.finetune.gradient import compute
from wordpiece_bert.finetune.memory import needed_memory
from wordpiece_bert.finetune.network import Network
from wordpiece_bert.finetune.passes import PassOptions

if TYPE_CHECKING:
    from pathlib import Path

    from wordpiece_bert.finetune.engines import TrainingEngine

HEADS = ("MaskedLM", "SequenceClassification", "TokenClassification", "QuestionAnswering", "MultipleChoice")
BIASES = dict.fromkeys(("norm_bias", "attention_bias", "mlp_bias", "classifier_bias"), True)
SLIDING, FULL = "sliding_attention", "full_attention"
RATES = {
    "embedding_dropout": 0.3,
    "attention_probs_dropout_prob": 0.2,
    "hidden_dropout_prob": 0.25,
    "classifier_dropout": 0.4,
}

#: Configurations of each family, by what is particular in them.
MODERNBERT: dict[str, dict[str, Any]] = {
    "plain": {"local_attention": 4, "hidden_act": "silu", "num_hidden_layers": 3},
    "biases": {"local_attention": 6, **BIASES, "decoder_bias": False, "classifier_activation": "tanh"},
    "windows": {
        "local_attention": 1,
        "layer_types": (SLIDING, FULL),
        "classifier_pooling": "mean",
        "tie_word_embeddings": False,
    },
    "dropout": {"local_attention": 4, **RATES},
}


_V3 = {
    "hidden_act": "gelu_new",
    "relative_attention": True,
    "position_buckets": 4,
    "max_position_embeddings": 16,
    "pos_att_type": ("p2c", "c2p"),
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
    "position_biased_input": False,
}
DEBERTA: dict[str, dict[str, Any]] = {
    "v3": _V3,
    "v2": _V3 | {"conv_kernel_size": 3, "conv_groups": 2, "type_vocab_size": 2, "embedding_size": 8},
    "c2p": _V3 | {"pos_att_type": ("c2p",), "share_att_key": False, "norm_rel_ebd": "none", "legacy": False},
    "p2c": _V3 | {"pos_att_type": ("p2c",), "share_att_key": False, "position_buckets": -1, "conv_kernel_size": 5},
    "absolute": {"max_position_embeddings": 16, "pooler_hidden_act": "tanh"},
    "dropout": _V3
    | {
        "conv_kernel_size": 3,
        "conv_act": "gelu",
        "hidden_dropout_prob": 0.2,
        "attention_probs_dropout_prob": 0.3,
        "pooler_dropout": 0.25,
        "cls_dropout": 0.4,
    },
}
FAMILIES = {"ModernBert": MODERNBERT, "DebertaV2": DEBERTA}
#: What the names of layers begin with.
LAYERS = {"ModernBert": "layers.", "DebertaV2": "encoder.layer."}


def config_of(family: str, options: dict[str, Any]) -> Any:
    return getattr(bert, f"{family}Config")(**SIZES | options)


CASES = [(family, case) for family, cases in FAMILIES.items() for case in cases]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize(("family", "case"), CASES)
def test_gradients_against_central_differences(family: str, case: str, head: str) -> None:
    config = config_of(family, FAMILIES[family][case] | {"id2label": THREE})
    model = random_model(getattr(bert, f"{family}For{head}"), config, "numpy")
    batch = batch_of(head, np.random.default_rng(4))
    check_gradients(model, batch, KeyedDropout(1, 2, 3) if case == "dropout" else None)
    assert value_and_grad(model, **batch).loss == pytest.approx(float(model(**batch).loss), abs=2e-6)


# --- trainers


def settings(folder: Path, **options: Any) -> TrainingArguments:
    return TrainingArguments(folder, **{"per_device_train_batch_size": 2, "learning_rate": 1e-2} | options)


def rows_of(count: int) -> list[dict[str, Any]]:
    random = np.random.default_rng(8)
    lengths = random.integers(2, 9, count)
    return [
        {"input_ids": random.integers(1, VOCABULARY, length).tolist(), "labels": int(random.integers(0, 3))}
        for length in lengths
    ]


@pytest.mark.parametrize("backend", ["numpy", "rust"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_training_resumes_with_the_same_bits_and_its_folder_loads(family: str, backend: str, tmp_path: Path) -> None:
    config = config_of(family, FAMILIES[family]["dropout"] | {"id2label": THREE})
    model = random_model(getattr(bert, f"{family}ForSequenceClassification"), config, backend)
    rows = rows_of(8)
    whole = Trainer(model, settings(tmp_path / "whole", max_steps=6), rows)
    whole.train()
    Trainer(model, settings(tmp_path / "half", max_steps=6, save_steps=3), rows).train()
    shutil.rmtree(tmp_path / "half" / "checkpoint-6", ignore_errors=True)
    again = Trainer(model, settings(tmp_path / "half", max_steps=6, save_steps=3), rows)
    again.train(resume_from_checkpoint=tmp_path / "half" / "checkpoint-3")
    trained = dict(whole.model.named_parameters())
    for name, array in again.model.named_parameters():
        np.testing.assert_array_equal(array, trained[name])
    changed = [name for name, array in model.named_parameters() if not np.array_equal(array, trained[name])]
    assert set(changed) == set(trained)
    whole.save_model(tmp_path / "saved")
    loaded: Any = bert.AutoModel.from_pretrained(tmp_path / "saved", backend)
    ids = [rows[0]["input_ids"]]
    np.testing.assert_array_equal(loaded(ids).logits, whole.model(ids).logits)


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize(
    ("family", "case"), [("ModernBert", "dropout"), ("DebertaV2", "dropout"), ("DebertaV2", "v2"), ("DebertaV2", "p2c")]
)
def test_both_engines_train_alike(family: str, case: str, checkpointing: bool, tmp_path: Path) -> None:
    config = config_of(family, FAMILIES[family][case] | {"id2label": THREE})
    histories, trained = [], []
    for backend in ("numpy", "rust"):
        model = random_model(getattr(bert, f"{family}ForSequenceClassification"), config, backend)
        options = {"learning_rate": 1e-3, "max_steps": 12, "logging_steps": 1, "gradient_checkpointing": checkpointing}
        trainer = Trainer(model, settings(tmp_path / backend, **options), rows_of(10))
        trainer.train()
        histories.append([entry["loss"] for entry in trainer.log_history if "loss" in entry])
        trained.append(dict(trainer.model.named_parameters()))
    assert len(histories[0]) == 12
    assert histories[0] == pytest.approx(histories[1], abs=1e-5)
    for name, array in trained[0].items():
        # AdamW makes steps of full length for gradients that vanish, and their sign comes from the noise.
        noise = name.endswith((".key_proj.bias", ".key.bias"))
        assert np.abs(trained[1][name] - array).max() < (2.4e-2 if noise else 1e-4), name


@pytest.mark.parametrize("engine", [NumpyTraining(), RustTraining()], ids=["numpy", "rust"])
@pytest.mark.parametrize("family", FAMILIES)
def test_frozen_layers_need_no_backward_pass(family: str, engine: TrainingEngine) -> None:
    config = config_of(family, next(iter(FAMILIES[family].values())) | {"id2label": THREE})
    model = random_model(getattr(bert, f"{family}ForTokenClassification"), config, "numpy")
    batch = batch_of("TokenClassification", np.random.default_rng(4))
    network, layers = Network(model), LAYERS[family]
    names = dict(model.named_parameters())
    everything = compute(network, network.parameters(model), batch, engine=engine).gradients
    # The relative table and the norm over it are read by all layers.
    others = "|encoder.rel_embeddings|encoder.LayerNorm" if family == "DebertaV2" else ""
    for pattern, lowest in (
        ("embeddings", 0),
        (f"embeddings{others}|{layers}0.", 1),
        (f"embeddings{others}|{layers}", config.num_hidden_layers),
    ):
        frozen = [name for name in names if any(part in name for part in pattern.split("|"))]
        assert network.lowest_trained(frozen) == lowest
        options = PassOptions(trained_from=lowest)
        found = compute(network, network.parameters(model), batch, options, engine=engine)
        assert set(names) - set(frozen) <= found.gradients.keys()
        for name, gradient in found.gradients.items():
            np.testing.assert_array_equal(gradient, everything[name])


def test_the_estimated_memory_counts_the_gate() -> None:
    sizes = {"hidden_size": 16, "intermediate_size": 100, "num_hidden_layers": 2, "num_attention_heads": 2}
    plain, gated = bert.BertConfig(**sizes), bert.ModernBertConfig(**sizes)
    more = needed_memory(gated, 0, 1000) - needed_memory(plain, 0, 1000)
    assert more == 4 * 1000 * (2 + 4) * 100


def test_a_sentence_encoder_is_trained_with_another_tokenizer(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    encoder = SentenceEncoder.from_pretrained(MODELS / "st_modernbert_mean", backend="numpy")
    rows = [{"anchor": f"text {i}", "positive": f"the text number {i}"} for i in range(4)]
    loss = losses.MultipleNegativesRankingLoss()
    trainer = SentenceTrainer(encoder, settings(tmp_path, max_steps=4, per_device_train_batch_size=4), rows, loss=loss)
    trainer.train()
    history = [entry["loss"] for entry in trainer.log_history if "loss" in entry]
    vectors = [encoder.encode([row[name] for row in rows]) for name in ("anchor", "positive")]
    first = losses.MultipleNegativesRankingLoss().value_and_grad(vectors).loss
    after = [trainer.model.encode([row[name] for row in rows]) for name in ("anchor", "positive")]
    assert losses.MultipleNegativesRankingLoss().value_and_grad(after).loss < first, history
    trainer.save_model(tmp_path / "saved")
    again = SentenceEncoder.from_pretrained(tmp_path / "saved", backend="numpy")
    np.testing.assert_array_equal(again.encode(["text 1"]), trainer.model.encode(["text 1"]))


@pytest.mark.parametrize(
    "labels", [[2, 0, -1, 1], [[2], [0], [-1], [1]], [[0.2, 0.3, 0.5], [0, 1, 0], [0.5, 0.5, 1], [1, 0, 0]]]
)
def test_losses_of_deberta_without_a_problem_type(labels: Any) -> None:
    model = random_model(bert.DebertaV2ForSequenceClassification, config_of("DebertaV2", {"id2label": THREE}), "numpy")
    batch = batch_of("SequenceClassification", np.random.default_rng(4)) | {"labels": np.array(labels)}
    check_gradients(model, batch)
    assert value_and_grad(model, **batch).loss == pytest.approx(float(model(**batch).loss), abs=2e-6)


def test_labels_of_deberta_that_are_all_left_out_are_refused() -> None:
    model = random_model(bert.DebertaV2ForSequenceClassification, config_of("DebertaV2", {"id2label": THREE}), "numpy")
    with pytest.raises(InputError, match="are ignored"):
        value_and_grad(model, [[1, 2]], labels=[-1])
