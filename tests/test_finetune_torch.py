"""Training of random models that transformers makes, beside torch's own gradients and steps."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wordpiece_bert.bert import AutoModel, ModernBertForMaskedLM
from wordpiece_bert.bert.family_table import FAMILIES as BY_TYPE
from wordpiece_bert.finetune import Trainer, TrainingArguments, pad_collate, value_and_grad

torch = pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.filterwarnings("ignore")

HEADS = ("MaskedLM", "SequenceClassification", "TokenClassification", "QuestionAnswering", "MultipleChoice")
SIZES = {
    "vocab_size": 60,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 20,
    "max_position_embeddings": 40,
    "pad_token_id": 0,
}
MODERNBERT: dict[str, dict[str, Any]] = {
    "plain": {"local_attention": 6},
    "biases": {
        "local_attention": 3,
        "hidden_activation": "silu",
        "classifier_pooling": "mean",
        **dict.fromkeys(("norm_bias", "attention_bias", "mlp_bias", "classifier_bias"), True),
    },
}
_V3 = {
    "type_vocab_size": 0,
    "relative_attention": True,
    "position_buckets": 8,
    "pos_att_type": ["p2c", "c2p"],
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
    "position_biased_input": False,
}
DEBERTA: dict[str, dict[str, Any]] = {
    "v3": _V3,
    "v2": _V3 | {"conv_kernel_size": 3, "conv_act": "gelu", "conv_groups": 2, "embedding_size": 16},
    "own": _V3 | {"share_att_key": False, "position_buckets": -1, "norm_rel_ebd": "none", "type_vocab_size": 2},
    "absolute": {"type_vocab_size": 0},
}
_ROTARY = {"head_dim": 8, "hidden_act": "silu"}
#: Families whose layers are BERT's, or have parts of the others: what is theirs is the plan and the names of weights.
OTHERS: dict[str, dict[str, dict[str, Any]]] = {
    "Roberta": {"plain": {"pad_token_id": 1}},
    "XLMRoberta": {"plain": {"pad_token_id": 1, "type_vocab_size": 1}},
    "XLMRobertaXL": {"plain": {"pad_token_id": 1}},
    "Camembert": {"plain": {"pad_token_id": 1, "hidden_act": "relu"}},
    "Data2VecText": {"plain": {"pad_token_id": 1}},
    "Ernie": {"plain": {}, "tasks": {"use_task_id": True}},
    "MegatronBert": {"plain": {}},
    "NomicBert": {"plain": {}, "wide": _ROTARY},
    "Gte": {"plain": {"head_dim": 12}, "wide": _ROTARY | {"type_vocab_size": 0}},
}
FAMILIES = {"ModernBert": MODERNBERT, "DebertaV2": DEBERTA, **OTHERS}
CASES = [(family, case, options) for family, cases in FAMILIES.items() for case, options in cases.items()]
RATES = {
    "ModernBert": {
        "embedding_dropout": 0.3,
        "attention_dropout": 0.2,
        "mlp_dropout": 0.25,
        "classifier_dropout": 0.4,
    },
    "DebertaV2": {
        "hidden_dropout_prob": 0.3,
        "attention_probs_dropout_prob": 0.2,
        "pooler_dropout": 0.25,
        "cls_dropout": 0.4,
    },
    **{
        family: {"hidden_dropout_prob": 0.3, "attention_probs_dropout_prob": 0.2, "classifier_dropout": 0.4}
        for family in OTHERS
    },
}


def has_head(family: str, head: str) -> bool:
    return head in next(entry.heads for entry in BY_TYPE.values() if entry.name == family)


def random_model(family: str, head: str, options: dict[str, Any], rates: dict[str, float] | None = None) -> Any:
    """A model of transformers, every parameter of which is drawn; without dropout unless rates are given."""
    torch.manual_seed(7)
    labels = {} if head == "QuestionAnswering" else {"num_labels": 3}
    none = dict.fromkeys(RATES[family], 0.0)
    attention = {} if rates is None else {"attn_implementation": "eager"}
    config = getattr(transformers, f"{family}Config")(**SIZES | none | labels | (rates or {}) | attention | options)
    model = getattr(transformers, f"{family}For{head}")(config).train()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_norm = parameter.ndim == 1 and name.endswith("weight")
            parameter.copy_(torch.randn(parameter.shape) * 0.15 + is_norm)
    return model


def batch_of(head: str, *, padded: bool, pad: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(5)
    shape = (2, 3, 13) if head == "MultipleChoice" else (4, 13)
    mask = np.ones((shape[0] * (3 if len(shape) == 3 else 1), 13), np.int64)
    if padded:
        mask[1, 6:] = mask[2, :5] = mask[3, [2, 3, 9]] = 0
    mask = mask.reshape(shape)
    ids = np.where(mask > 0, random.integers(2, 60, shape), pad)
    batch = {"input_ids": ids, "attention_mask": mask}
    if head == "QuestionAnswering":
        return batch | {"start_positions": np.array([1, 0, 5, 13]), "end_positions": np.array([2, 3, 9, 1])}
    if head in ("MultipleChoice", "SequenceClassification"):
        return batch | {"labels": random.integers(0, 3, shape[0])}
    count = 60 if head == "MaskedLM" else 3
    chosen = (random.random(shape) < 0.5) & (mask > 0)
    return batch | {"labels": np.where(chosen, random.integers(0, count, shape), -100)}


def tensors(batch: dict[str, Any]) -> dict[str, Any]:
    return {name: torch.from_numpy(array) for name, array in batch.items()}


def parameters_of(theirs: Any, names: Collection[str]) -> dict[str, Any]:
    """The parameters of transformers, those with several names under the one that is used here."""
    found: dict[int, tuple[str, Any]] = {}
    for name, parameter in theirs.named_parameters(remove_duplicate=False):
        if id(parameter) not in found or name in names:
            found[id(parameter)] = name, parameter
    return dict(found.values())


def assert_gradients(found: Any, theirs: Any) -> None:
    """Every gradient agrees to 2e-5 of its size; those that vanish are noise beside the largest."""
    parameters = parameters_of(theirs, found.gradients)
    expected = {name: p.grad.numpy() for name, p in parameters.items() if p.grad is not None}
    largest = max(float(np.abs(g).max()) for g in expected.values())
    assert found.gradients.keys() <= expected.keys()
    for name, g in expected.items():
        if name not in found.gradients:
            assert not g.any(), name
            continue
        limit = 2e-5 * (float(np.abs(g).max()) + 0.05 * largest)
        assert float(np.abs(found.gradients[name] - g).max()) <= limit, name


@pytest.mark.parametrize(
    ("family", "case", "options", "head"),
    [(*one, head) for one in CASES for head in HEADS if has_head(one[0], head)],
    ids=[f"{family}-{case}-{head}" for family, case, _ in CASES for head in HEADS if has_head(family, head)],
)
def test_gradients_and_a_step_equal_those_of_torch(
    family: str, case: str, options: dict[str, Any], head: str, tmp_path: Path
) -> None:
    theirs = random_model(family, head, options)
    theirs.save_pretrained(tmp_path / "model")
    batch = batch_of(head, padded=True, pad=theirs.config.pad_token_id)
    loss = theirs(**tensors(batch)).loss
    loss.backward()
    forbidden = transformers.trainer_pt_utils.get_parameter_names(
        theirs, [torch.nn.LayerNorm], ["bias", "layernorm", "rmsnorm", r"(?:^|\.)norm(?:$|\.)", r"_norm(?:$|\.)"]
    )
    for backend in ("numpy", "rust"):
        model: Any = AutoModel.from_pretrained(tmp_path / "model", backend)
        assert type(model).__name__ == f"{family}For{head}"
        found = value_and_grad(model, **batch)
        assert found.loss == pytest.approx(float(loss), abs=1e-5)
        assert_gradients(found, theirs)
        settings = TrainingArguments(tmp_path / backend, learning_rate=1e-3, weight_decay=0.1, max_steps=1)
        trainer = Trainer(model, settings)
        step = trainer.training_step([batch])
        assert step.loss == pytest.approx(float(loss), abs=1e-5)
        weights = {name: array.copy() for name, array in trainer.model.named_parameters()}
        trainer.save_model(tmp_path / f"trained-{backend}")
        getattr(transformers, f"{family}For{head}").from_pretrained(tmp_path / f"trained-{backend}")
        if backend == "numpy":
            ours, gradients = weights, found.gradients
    named = parameters_of(theirs, ours)
    groups = [
        {"params": [p for n, p in named.items() if n in forbidden], "weight_decay": 0.1},
        {"params": [p for n, p in named.items() if n not in forbidden], "weight_decay": 0.0},
    ]
    torch.nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
    largest = max(float(p.grad.abs().max()) for p in theirs.parameters() if p.grad is not None)
    their_gradients = {n: p.grad for n, p in named.items()}
    torch.optim.AdamW(groups, lr=1e-3).step()
    for name, parameter in named.items():
        gradient = their_gradients[name]
        if gradient is None:
            continue
        # AdamW divides by the size of a gradient: where it vanishes, the sign of the noise decides.
        certain = (gradient.abs() > 1e-4 * largest).numpy()
        if name in gradients:  # rows of tables that are not read decay, and nothing else
            certain |= (gradient.numpy() == 0) & (gradients[name] == 0)
        assert np.abs(ours[name] - parameter.detach().numpy())[certain].max(initial=0.0) < 2e-5, name


class Recorded:
    """The masks of dropout that torch draws, in the order of its calls."""

    def __init__(self) -> None:
        self.masks: list[Any] = []
        self._random = np.random.default_rng(9)

    def __call__(self, x: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        if not training or p == 0:
            return x
        mask = (self._random.random(tuple(x.shape)) >= p).astype(np.float32)
        self.masks.append(mask)
        return x * torch.from_numpy(mask) / (1 - p)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorded]:
    """Dropout whose masks are drawn and kept here."""
    record = Recorded()
    monkeypatch.setattr(torch.nn.functional, "dropout", record)
    return record


#: The sites of a layer in the order of torch's calls, and the sites of the heads for sequences.
_BERT = ("attention_probs", "attention.output", "output")
LAYER_SITES = {
    "ModernBert": ("attention_probs", "attention.output", "intermediate"),
    "DebertaV2": ("relative", *_BERT),
    "XLMRobertaXL": ("attention_probs", "attention.output"),
    "Gte": ("attention_probs", "attention.output", "intermediate", "output"),
}
TWICE = ("Roberta", "XLMRoberta", "XLMRobertaXL", "Camembert", "Data2VecText", "DebertaV2")


def sites_of(family: str, head: str) -> list[str]:
    """The sites of dropout in the order of torch's calls."""
    deberta = family == "DebertaV2"
    sites = ["embeddings"]
    for layer in range(SIZES["num_hidden_layers"]):
        sites += [f"layer.{layer}.{site}" for site in LAYER_SITES.get(family, _BERT)]
        sites += ["layer.0.convolution"] * (deberta and layer == 0)
    if head == "SequenceClassification" and family in TWICE:
        return [*sites, "head", "head2"]
    if head == "MultipleChoice" and deberta:
        return [*sites, "head", "head2"]
    return sites if head == "MaskedLM" or (head == "QuestionAnswering" and family != "ModernBert") else [*sites, "head"]


@pytest.mark.parametrize(
    ("family", "head"), [(family, head) for family in RATES for head in HEADS if has_head(family, head)]
)
def test_dropout_has_the_sites_of_transformers(family: str, head: str, recorded: Recorded, tmp_path: Path) -> None:
    options = FAMILIES[family]["v2" if family == "DebertaV2" else "plain"]
    theirs = random_model(family, head, options, RATES[family])
    theirs.save_pretrained(tmp_path)
    batch = batch_of(head, padded=False)
    loss = theirs(**tensors(batch)).loss
    loss.backward()
    masks = dict(zip(sites_of(family, head), recorded.masks, strict=True))
    model: Any = AutoModel.from_pretrained(tmp_path, "numpy")
    found = value_and_grad(model, **batch, dropout_masks=masks)
    assert found.loss == pytest.approx(float(loss), abs=1e-5)
    assert_gradients(found, theirs)


@pytest.mark.parametrize("average", [None, True])
def test_masked_tokens_of_micro_batches_count_as_in_transformers(average: bool | None, tmp_path: Path) -> None:
    theirs = random_model("ModernBert", "MaskedLM", MODERNBERT["plain"])
    theirs.save_pretrained(tmp_path / "model")
    random = np.random.default_rng(3)
    rows = []
    for count in (1, 2, 1, 7):  # labelled tokens
        labels = [*random.integers(5, 60, count).tolist(), *[-100] * (9 - count)]
        rows.append({"input_ids": random.integers(5, 60, 9).tolist(), "attention_mask": [1] * 9, "labels": labels})
    shared: dict[str, Any] = {"per_device_train_batch_size": 3, "gradient_accumulation_steps": 2, "max_grad_norm": 1e9}
    args = transformers.TrainingArguments(
        str(tmp_path / "theirs"),
        **shared,
        max_steps=1,
        logging_steps=1,
        save_strategy="no",
        train_sampling_strategy="sequential",
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
    )
    trainer = transformers.Trainer(theirs, args, train_dataset=rows)
    trainer.train()
    expected = trainer.state.log_history[0]
    settings = TrainingArguments(tmp_path / "run", **shared, average_tokens_across_batches=average)
    model = ModernBertForMaskedLM.from_pretrained(tmp_path / "model")
    found = Trainer(model, settings).training_step([pad_collate(rows[:3]), pad_collate(rows[3:])])
    assert found.loss == pytest.approx(expected["loss"], rel=1e-5)
    assert found.grad_norm == pytest.approx(expected["grad_norm"], rel=1e-4)
