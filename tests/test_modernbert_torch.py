"""ModernBERT models of random weights that transformers makes, beside its own numbers."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wordpiece_bert.bert import AutoModel

torch = pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.filterwarnings("ignore")

SLIDING, FULL = "sliding_attention", "full_attention"
HEADS = (
    "Model",
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
)


def random_config(random: Any, head: str) -> dict[str, Any]:
    """The fields of a configuration: any sizes, any layers, any biases."""
    heads, layers = int(random.integers(1, 5)), int(random.integers(1, 5))
    switches = ("norm_bias", "attention_bias", "mlp_bias", "classifier_bias", "decoder_bias")
    thetas = {
        kind: {"rope_type": "default", "rope_theta": float(random.choice([10.0, 1e4, 1.6e5]))}
        for kind in (FULL, SLIDING)
    }
    return {
        "vocab_size": 60,
        "hidden_size": heads * int(random.choice([2, 8, 12, 32])),
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": int(random.integers(1, 60)),
        "max_position_embeddings": 16,  # rows are longer
        "hidden_activation": str(random.choice(["gelu", "silu", "relu"])),
        "norm_eps": float(random.choice([1e-5, 1e-3])),
        "local_attention": int(random.choice([1, 2, 5, 8, 64])),
        "layer_types": [str(kind) for kind in random.choice([SLIDING, FULL], layers)],
        "rope_parameters": thetas,
        "classifier_pooling": str(random.choice(["cls", "mean"])),
        "classifier_activation": str(random.choice(["gelu", "tanh"])),
        "tie_word_embeddings": bool(random.integers(2)),
        "num_labels": 2 if head == "ForQuestionAnswering" else 3,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 1,
        "cls_token_id": 1,
        "sep_token_id": 1,
        **{name: bool(random.integers(2)) for name in switches},
    }


def random_model(head: str, fields: dict[str, Any], seed: int) -> Any:
    """A model of transformers, every parameter of which is drawn."""
    torch.manual_seed(seed)
    config = transformers.ModernBertConfig(**fields)
    model = getattr(transformers, "ModernBert" + head)(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_norm = parameter.ndim == 1 and name.endswith("norm.weight")
            parameter.copy_(torch.randn(parameter.shape) * 0.15 + is_norm)
    return model.eval()


@pytest.mark.parametrize("padding", ["right", "left"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("head", HEADS)
def test_outputs_equal_those_of_transformers(head: str, seed: int, padding: str, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    theirs = random_model(head, random_config(random, head), seed)
    theirs.save_pretrained(tmp_path)
    length = 37
    ids = random.integers(2, 60, (3, length))
    lengths = [length, int(random.integers(1, length)), int(random.integers(1, 12))]
    mask = np.arange(length) < np.array(lengths)[:, None]
    mask = mask if padding == "right" else mask[:, ::-1].copy()
    ids[~mask] = 0
    inputs: dict[str, Any] = {"input_ids": ids, "attention_mask": mask.astype(int)}
    if head == "ForMultipleChoice":
        inputs = {key: np.stack([value, value[::-1]], axis=1) for key, value in inputs.items()}
    with torch.no_grad():
        given = {key: torch.from_numpy(np.ascontiguousarray(value)) for key, value in inputs.items()}
        expected = theirs(**given, output_hidden_states=True)
    rows = inputs["attention_mask"].reshape(-1, length) != 0
    for backend in ("numpy", "rust"):
        model: Any = AutoModel.from_pretrained(tmp_path, backend)
        assert type(model).__name__ == "ModernBert" + head
        found = model(**inputs, output_hidden_states=True)
        compared = 0
        for key in ("last_hidden_state", "logits", "start_logits", "end_logits"):
            if getattr(expected, key, None) is None:
                continue
            compared += 1
            theirs_of_key, ours = getattr(expected, key).numpy(), getattr(found, key)
            if ours.shape[:2] == mask.shape:
                theirs_of_key, ours = theirs_of_key[mask], ours[mask]
            scale = np.maximum(1.0, np.abs(theirs_of_key))
            assert (np.abs(ours - theirs_of_key) / scale).max() < 2e-5, key
        assert compared
        for state, their_state in zip(found.hidden_states, expected.hidden_states, strict=True):
            found_rows, their_rows = state[rows], their_state.numpy()[rows]
            # By the largest number of a vector: its sums round by that, in the small numbers too.
            scale = np.maximum(1.0, np.abs(their_rows).max(axis=-1, keepdims=True))
            assert (np.abs(found_rows - their_rows) / scale).max() < 2e-5


@pytest.mark.parametrize("seed", range(3))
def test_losses_equal_those_of_transformers(seed: int, tmp_path: Path) -> None:
    """The loss of masked tokens, with ``sparse_prediction``, which returns other logits there and has no effect here."""
    random = np.random.default_rng(seed)
    fields = random_config(random, "ForMaskedLM") | {"sparse_prediction": bool(seed % 2)}
    theirs = random_model("ForMaskedLM", fields, seed)
    theirs.save_pretrained(tmp_path)
    ids = random.integers(2, 60, (2, 20))
    labels = np.where(random.random((2, 20)) < 0.4, ids, -100)
    with torch.no_grad():
        expected = theirs(input_ids=torch.from_numpy(ids), labels=torch.from_numpy(labels)).loss
    for backend in ("numpy", "rust"):
        model: Any = AutoModel.from_pretrained(tmp_path, backend)
        found = model(ids, labels=labels)
        assert found.loss == pytest.approx(float(expected), abs=1e-5)
        assert found.logits.shape == (2, 20, 60)
