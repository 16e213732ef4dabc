"""Training of every family: central differences, and the kernels beside NumPy on each instruction set.

Families that have no layer of their own, and those whose layers are in test_finetune_gradients.py, are here too: what a
family trains is in its plan, and what is tested is the plan.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import wordpiece_bert.bert as bert
from gradient_checks import (
    SIZES,
    THREE,
    assert_gradients,
    assert_same_direction,
    batch_of,
    check_gradients,
    same_bits,
)
from kernel_paths import each_path
from random_models import random_model
from wordpiece_bert.bert.family_table import FAMILIES, trainable
from wordpiece_bert.finetune import value_and_grad
from wordpiece_bert.finetune.dropout import KeyedDropout
from wordpiece_bert.finetune.engines import RustTraining
from wordpiece_bert.finetune.gradient import compute
from wordpiece_bert.finetune.network import Network
from wordpiece_bert.finetune.passes import PassOptions

_RATES = {"hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.3, "classifier_dropout": 0.4}
_PLACES = {"max_position_embeddings": 160}
_WIDE = {"head_dim": 10, "hidden_act": "gelu"}

#: Configurations of each family, by what is particular in them; the first has dropout.
CASES: dict[str, dict[str, dict[str, Any]]] = {
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
    "ModernBert": {"plain": {"local_attention": 40, "hidden_act": "silu"}},
    "DebertaV2": {
        "plain": {
            **_PLACES,
            "relative_attention": True,
            "position_buckets": 16,
            "pos_att_type": ("p2c", "c2p"),
            "share_att_key": True,
            "norm_rel_ebd": "layer_norm",
            "position_biased_input": False,
            "conv_kernel_size": 3,
            "conv_act": "gelu",
        }
    },
    "NeoBert": {"plain": _PLACES | {"hidden_act": "silu"}},
}
NAMES = [(family, case) for family, cases in CASES.items() for case in cases]
HEADS = {entry.name: entry.heads for entry in FAMILIES.values()}


def config_of(family: str, case: str, **more: Any) -> Any:
    rates = _RATES if case == "plain" and family != "NeoBert" else dict.fromkeys(_RATES, 0.0)
    return getattr(bert, f"{family}Config")(**SIZES | CASES[family][case] | rates | more)


def dropout_of(case: str) -> KeyedDropout | None:
    return KeyedDropout(1, 2, 3) if case == "plain" else None


def test_all_families_with_token_vectors_are_trained() -> None:
    assert set(FAMILIES) - set(trainable()) == {"dpr"}


@pytest.mark.parametrize(("family", "case", "head"), [(*names, head) for names in NAMES for head in HEADS[names[0]]])
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
        "num_hidden_layers": 3,
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
    """With the same masks of dropout; and the same bits for any number of threads, and whatever is kept or trained."""
    network, parameters, batch, expected = long_rows(family, case)
    options = PassOptions(dropout_of(case))
    found = compute(network, parameters, batch, options, engine=RustTraining(path, 1))
    assert_gradients(found, expected, 1e-5)
    engine = RustTraining(path, 3)
    assert same_bits(compute(network, parameters, batch, options, engine=engine), found)
    again = compute(network, parameters, batch, options._replace(gradient_checkpointing=True), engine=engine)
    assert same_bits(again, found)
    for lowest in (0, 2):
        above = compute(network, parameters, batch, options._replace(trained_from=lowest), engine=engine)
        frozen = {network.name(name) for name in network.plan.shapes().keys() - network.plan.trained(lowest)}
        assert above.loss == found.loss
        assert above.gradients.keys() == found.gradients.keys() - frozen
        assert all(np.array_equal(g, found.gradients[name]) for name, g in above.gradients.items())


@pytest.mark.parametrize("path", each_path("bfloat16"))
@pytest.mark.parametrize(("family", "case"), NAMES)
def test_gradients_in_bfloat16_point_the_same_way(family: str, case: str, path: str) -> None:
    network, parameters, batch, expected = long_rows(family, case)
    options = PassOptions(dropout_of(case))
    found = compute(network, parameters, batch, options, engine=RustTraining(path, 1, "bfloat16"))
    assert same_bits(compute(network, parameters, batch, options, engine=RustTraining(path, 3, "bfloat16")), found)
    # The derivative of relu is 0 or 1: a number that is rounded to the other side of 0 changes it.
    assert_same_direction(found, expected, 0.97 if network.config.hidden_act == "relu" else 0.99)
