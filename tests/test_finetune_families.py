"""Training of every family: central differences, and the kernels beside NumPy on each instruction set.

Any plans, and what does not depend on the family, are in test_plans.py.
"""

from __future__ import annotations

import shutil
import tracemalloc
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wordpiece_bert.bert as bert
from gradient_checks import (
    SIZES,
    THREE,
    VOCABULARY,
    assert_gradients,
    assert_same_direction,
    batch_of,
    check_gradients,
    same_bits,
)
from kernel_paths import each_path
from model_files import MODELS
from random_models import random_model
from wordpiece_bert import SentenceEncoder
from wordpiece_bert.bert.family_table import FAMILIES, trainable
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune import SentenceTrainer, Trainer, TrainingArguments, losses, value_and_grad
from wordpiece_bert.finetune.dropout import KeyedDropout
from wordpiece_bert.finetune.engines import RustTraining
from wordpiece_bert.finetune.gradient import compute
from wordpiece_bert.finetune.memory import needed_memory
from wordpiece_bert.finetune.network import Network
from wordpiece_bert.finetune.passes import PassOptions

_RATES = {
    "embedding_dropout": 0.3,
    "hidden_dropout_prob": 0.2,
    "attention_probs_dropout_prob": 0.3,
    "pooler_dropout": 0.25,
    "cls_dropout": 0.4,
    "classifier_dropout": 0.4,
}
_PLACES = {"max_position_embeddings": 160}
_WIDE = {"head_dim": 10, "hidden_act": "gelu"}
_BIASES = dict.fromkeys(("norm_bias", "attention_bias", "mlp_bias", "classifier_bias"), True)
_DEBERTA = _PLACES | {
    "hidden_act": "gelu_new",
    "relative_attention": True,
    "position_buckets": 16,
    "pos_att_type": ("p2c", "c2p"),
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
    "position_biased_input": False,
}
_OWN_KEYS = {"share_att_key": False, "norm_rel_ebd": "none"}
_KINDS = ("sliding_attention", "full_attention", "sliding_attention")

#: Configurations of each family, by what is particular in them; the first has dropout.
CASES: dict[str, dict[str, dict[str, Any]]] = {
    "Bert": {"plain": _PLACES},
    "Albert": {"plain": _PLACES | {"embedding_size": 8, "num_hidden_layers": 4, "num_hidden_groups": 2}},
    "DistilBert": {"plain": _PLACES | {"type_vocab_size": 0}},
    "Electra": {"plain": _PLACES | {"embedding_size": 8}},
    "MPNet": {"plain": _PLACES},
    "Roberta": {"plain": _PLACES, "relu": _PLACES | {"hidden_act": "relu", "type_vocab_size": 1}},
    "XLMRoberta": {"plain": _PLACES},
    "XLMRobertaXL": {"plain": _PLACES | {"num_attention_heads": 2}, "silu": _PLACES | {"hidden_act": "silu"}},
    "Camembert": {"plain": _PLACES},
    "Data2VecText": {"plain": _PLACES},
    "Ernie": {"plain": _PLACES | {"use_task_id": True}, "no tasks": _PLACES},
    "MegatronBert": {"plain": _PLACES | {"num_attention_heads": 2}},
    "Gte": {"plain": {}, "wide heads": _WIDE | {"type_vocab_size": 0, "rope_factor": 2.0}},
    "NomicBert": {"plain": {}, "wide heads": _WIDE | {"type_vocab_size": 0}},
    "JinaBert": {"plain": {}, "norms of queries and keys": {"has_query_key_norms": True, "hidden_act": "relu"}},
    "ModernBert": {
        "plain": {"local_attention": 40, "hidden_act": "silu", "num_hidden_layers": 3},
        "biases": {"local_attention": 6, **_BIASES, "decoder_bias": False, "classifier_activation": "tanh"},
        "windows": {
            "local_attention": 1,
            "num_hidden_layers": 3,
            "layer_types": _KINDS,
            "classifier_pooling": "mean",
            "tie_word_embeddings": False,
        },
    },
    "DebertaV2": {
        "plain": _DEBERTA | {"conv_kernel_size": 3, "conv_act": "gelu"},
        "v2": _DEBERTA | {"conv_kernel_size": 3, "conv_groups": 2, "type_vocab_size": 2, "embedding_size": 8},
        "c2p": _DEBERTA | _OWN_KEYS | {"pos_att_type": ("c2p",), "legacy": False},
        "p2c": _DEBERTA | _OWN_KEYS | {"pos_att_type": ("p2c",), "position_buckets": -1, "conv_kernel_size": 5},
        "absolute": _PLACES | {"pooler_hidden_act": "tanh"},
    },
    "NeoBert": {"plain": _PLACES | {"hidden_act": "silu"}},
}
NAMES = [(family, case) for family, cases in CASES.items() for case in cases]
HEADS = {entry.name: entry.heads for entry in FAMILIES.values()}


def config_of(family: str, case: str, **more: Any) -> Any:
    kind = getattr(bert, f"{family}Config")
    rates = {name: rate if case == "plain" and family != "NeoBert" else 0.0 for name, rate in _RATES.items()}
    known = {name: rate for name, rate in rates.items() if name in kind.__dataclass_fields__}
    return kind(**SIZES | CASES[family][case] | known | more)


def dropout_of(case: str) -> KeyedDropout | None:
    return KeyedDropout(1, 2, 3) if case == "plain" else None


def test_all_families_with_token_vectors_are_trained() -> None:
    assert set(FAMILIES) - set(trainable()) == {"dpr"}


def test_a_table_that_no_term_reads_has_no_gradient() -> None:
    config = config_of("DebertaV2", "c2p", pos_att_type=(), norm_rel_ebd="layer_norm")
    names = []
    for backend in ("numpy", "rust"):
        model = bert.DebertaV2ForMaskedLM.from_config(config, backend=backend)
        names.append(value_and_grad(model, [[2, 7, 3]], labels=[[2, 7, 3]]).gradients.keys())
    assert names[0] == names[1]
    assert not [name for name in names[0] if "rel_embeddings" in name or name.endswith("encoder.LayerNorm.weight")]


#: Each head of a family, and its other cases with the first; replaced tokens are in test_replaced_tokens.py.
WITH_HEADS = [
    (family, case, head)
    for family, case in NAMES
    for head in (HEADS[family] if case == "plain" else HEADS[family][:1])
    if (family, head) != ("Electra", "PreTraining")
]


@pytest.mark.parametrize(("family", "case", "head"), WITH_HEADS)
def test_gradients_against_central_differences(family: str, case: str, head: str) -> None:
    config = config_of(family, case, id2label={0: "a", 1: "b"} if head == "NextSentencePrediction" else THREE)
    model = random_model(getattr(bert, f"{family}For{head}"), config, "numpy")
    batch = batch_of(head, np.random.default_rng(4))
    if family == "Ernie" and case == "plain":
        batch["task_type_ids"] = np.random.default_rng(5).integers(0, 3, batch["input_ids"].shape)
    check_gradients(model, batch, dropout_of(case))
    assert value_and_grad(model, **batch).loss == pytest.approx(float(model(**batch).loss), abs=2e-6)


@cache
def long_rows(family: str, case: str) -> tuple[Network, Any, dict[str, Any], Any]:
    """A model with rows of several tiles and holes, and what NumPy computes of it in float64."""
    sizes = {
        "hidden_size": 32,
        "num_attention_heads": 2,
        "intermediate_size": 40,
        "num_hidden_layers": 4 if family == "Albert" else 3,
        "tie_word_embeddings": False,
    }
    config = config_of(family, case, **sizes)
    model = random_model(getattr(bert, f"{family}ForMaskedLM"), config, "numpy")
    network = Network(model)
    batch = batch_of("MaskedLM", np.random.default_rng(3), (3, 70, 1, 130, 33), 131)
    exact = {name: array.astype(np.float64) for name, array in network.parameters(model).items()}
    options = PassOptions(dropout_of(case))
    return network, network.parameters(model), batch, compute(network, exact, batch, options)


@pytest.mark.parametrize("path", each_path("float32"))
@pytest.mark.parametrize(("family", "case"), NAMES)
def test_the_kernels_compute_the_gradients_of_numpy(family: str, case: str, path: str) -> None:
    """With the same masks of dropout; and the same bits for any number of threads, and whatever is kept."""
    network, parameters, batch, expected = long_rows(family, case)
    options = PassOptions(dropout_of(case))
    found = compute(network, parameters, batch, options, engine=RustTraining(path, 1))
    assert_gradients(found, expected, 1e-5)
    engine = RustTraining(path, 3)
    assert same_bits(compute(network, parameters, batch, options, engine=engine), found)
    again = compute(network, parameters, batch, options._replace(gradient_checkpointing=True), engine=engine)
    assert same_bits(again, found)


@pytest.mark.parametrize("path", each_path("bfloat16"))
@pytest.mark.parametrize(("family", "case"), NAMES)
def test_gradients_in_bfloat16_point_the_same_way(family: str, case: str, path: str) -> None:
    network, parameters, batch, expected = long_rows(family, case)
    options = PassOptions(dropout_of(case))
    found = compute(network, parameters, batch, options, engine=RustTraining(path, 1, "bfloat16"))
    assert same_bits(compute(network, parameters, batch, options, engine=RustTraining(path, 3, "bfloat16")), found)
    # The derivative of relu is 0 or 1: a number that is rounded to the other side of 0 changes it.
    assert_same_direction(found, expected, 0.97 if network.config.hidden_act == "relu" else 0.99)


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize(("family", "case"), NAMES)
def test_the_memory_of_a_step_is_estimated(family: str, case: str, checkpointing: bool) -> None:
    """The estimate, which is read off the plan, is near the peak of what NumPy allocates."""
    sizes = {"hidden_size": 48, "num_attention_heads": 4, "intermediate_size": 120, "num_hidden_layers": 4}
    config = (
        config_of(family, case, id2label=THREE, **sizes, layer_types=_KINDS[:2] * 2)
        if case == "windows"
        else (config_of(family, case, id2label=THREE, **sizes))
    )
    model = random_model(getattr(bert, f"{family}ForMaskedLM"), config, "numpy")
    network, random = Network(model), np.random.default_rng(0)
    parameters = network.parameters(model)
    ids = random.integers(1, VOCABULARY, (24, 64))
    batch = {"input_ids": ids, "labels": np.where(random.random(ids.shape) < 0.1, ids, -100)}
    options = PassOptions(dropout_of(case), gradient_checkpointing=checkpointing)
    tracemalloc.start()
    try:
        compute(network, parameters, batch, options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    labelled = int((batch["labels"] >= 0).sum())
    estimate = needed_memory(
        config, model.num_parameters(), ids.size, gradient_checkpointing=checkpointing, labelled=labelled
    )
    assert 0.75 * peak < estimate < 1.5 * peak


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
@pytest.mark.parametrize("family", ["Roberta", "ModernBert", "DebertaV2"])
def test_a_training_resumes_with_the_same_bits_and_its_folder_loads(family: str, backend: str, tmp_path: Path) -> None:
    model = random_model(
        getattr(bert, f"{family}ForSequenceClassification"), config_of(family, "plain", id2label=THREE), backend
    )
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
    model = random_model(
        bert.DebertaV2ForSequenceClassification, config_of("DebertaV2", "absolute", id2label=THREE), "numpy"
    )
    batch = batch_of("SequenceClassification", np.random.default_rng(4)) | {"labels": np.array(labels)}
    check_gradients(model, batch)
    assert value_and_grad(model, **batch).loss == pytest.approx(float(model(**batch).loss), abs=2e-6)


def test_labels_of_deberta_that_are_all_left_out_are_refused() -> None:
    model = random_model(
        bert.DebertaV2ForSequenceClassification, config_of("DebertaV2", "absolute", id2label=THREE), "numpy"
    )
    with pytest.raises(InputError, match="are ignored"):
        value_and_grad(model, [[1, 2]], labels=[-1])
