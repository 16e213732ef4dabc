"""Models of random weights that transformers makes, beside its own numbers: the kin of BERT and RoBERTa."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from wordpiece_bert.bert import AutoModel

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.filterwarnings("ignore")

HEADS = ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
FAMILIES = {
    "Ernie": {"use_task_id": True, "task_type_vocab_size": 4},
    "Camembert": {},
    "Data2VecText": {},
    "XLMRobertaXL": {},
}


KEYS = (
    "last_hidden_state",
    "pooler_output",
    "logits",
    "start_logits",
    "end_logits",
    "prediction_logits",
    "seq_relationship_logits",
)


def random_model(name: str, head: str, sizes: dict[str, Any], seed: int) -> Any:
    """A model of transformers, every parameter of which is drawn."""
    torch.manual_seed(seed)
    config = getattr(transformers, f"{name}Config")(**sizes)
    model = getattr(transformers, name + head)(config).eval()
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            is_norm = parameter.ndim == 1 and parameter_name.endswith("weight")
            parameter.copy_(torch.randn(parameter.shape) * 0.15 + is_norm)
    return model


#: The heads that ERNIE alone has.
OF_ERNIE = [("Ernie", head) for head in ("ForMultipleChoice", "ForNextSentencePrediction", "ForPreTraining")]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "head"), [(name, head) for name in FAMILIES for head in HEADS] + OF_ERNIE)
def test_outputs_equal_those_of_transformers(name: str, head: str, seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    heads = int(random.integers(1, 5))
    sizes = {
        "vocab_size": 60,
        "hidden_size": heads * int(random.choice([8, 12, 32])),
        "num_hidden_layers": int(random.integers(1, 4)),
        "num_attention_heads": heads,
        "intermediate_size": int(random.integers(5, 60)),
        "max_position_embeddings": 40,
        "type_vocab_size": 2,
        "hidden_act": str(random.choice(["gelu", "relu", "gelu_new"])),
        "num_labels": 2 if head == "ForQuestionAnswering" else 3,
        **FAMILIES[name],
    }
    theirs = random_model(name, head, sizes, seed)
    theirs.save_pretrained(tmp_path)
    ids = random.integers(2, 60, (3, 21))
    lengths = random.integers(1, 22, 3)
    mask = np.arange(21) < lengths[:, None]
    ids[~mask] = 1
    inputs = {"input_ids": ids, "attention_mask": mask.astype(int), "token_type_ids": random.integers(0, 2, (3, 21))}
    if name == "Ernie":
        inputs["task_type_ids"] = random.integers(0, 4, (3, 21))
    if head == "ForMultipleChoice":
        inputs = {key: np.stack([value, np.roll(value, 1, axis=0)], axis=1) for key, value in inputs.items()}
    given = {key: torch.from_numpy(value) for key, value in inputs.items()}
    if head == "ForMultipleChoice":  # transformers does not flatten the tasks of choices
        given["task_type_ids"] = given["task_type_ids"].flatten(0, 1)
    with torch.no_grad():
        expected = theirs(**given, output_hidden_states=True)
    for backend in ("numpy", "rust"):
        model: Any = AutoModel.from_pretrained(tmp_path, backend)
        assert type(model).__name__ == name + head
        found = model(**inputs, output_hidden_states=True)
        for key in KEYS:
            if getattr(expected, key, None) is None:
                continue
            theirs_of_key, ours = getattr(expected, key).numpy(), getattr(found, key)
            if ours.shape[:2] == mask.shape:
                theirs_of_key, ours = theirs_of_key[mask], ours[mask]
            scale = np.maximum(1.0, np.abs(theirs_of_key))
            assert (np.abs(ours - theirs_of_key) / scale).max() < 1e-5, key
        if head == "ForMultipleChoice":
            continue
        for state, their_state in zip(found.hidden_states, expected.hidden_states, strict=True):
            np.testing.assert_allclose(state[mask], their_state.numpy()[mask], rtol=1e-5, atol=1e-5)
