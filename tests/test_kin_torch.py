"""Models of random weights that transformers makes, beside its own numbers: the kin of BERT and RoBERTa."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_files import MODELS
from wordpiece_bert import CrossEncoder, tasks
from wordpiece_bert.bert import AutoModel

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


#: A class of tokenizers, the inputs that the file names, and how many token types a pair then has.
TOKENIZERS = [
    ("PreTrainedTokenizerFast", ["input_ids", "token_type_ids", "attention_mask"], 2),
    ("PreTrainedTokenizerFast", ["input_ids", "attention_mask"], 1),
    ("PreTrainedTokenizerFast", None, 1),
    ("DebertaV2TokenizerFast", None, 2),
]


@pytest.mark.parametrize(("tokenizer_class", "names", "types"), TOKENIZERS)
@pytest.mark.parametrize(("name", "sizes"), [("Albert", {"type_vocab_size": 2}), ("DebertaV2", {"type_vocab_size": 3})])
def test_pairs_of_other_tokenizers_have_the_token_types_of_transformers(
    name: str, sizes: dict[str, Any], tokenizer_class: str, names: Any, types: int, tmp_path: Path
) -> None:
    """Unigram tokenizers whose templates give the second text of a pair another type."""
    labels = ["contradiction", "neutral", "entailment"]
    sizes = {
        "vocab_size": 200,
        "hidden_size": 24,
        "embedding_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 30,
        "max_position_embeddings": 60,
        "id2label": dict(enumerate(labels)),
        "label2id": {label: index for index, label in enumerate(labels)},
        **sizes,
    }
    random_model(name, "ForSequenceClassification", sizes, 1).save_pretrained(tmp_path)
    shutil.copy(MODELS / "rerank_deberta" / "tokenizer.json", tmp_path)
    settings = json.loads((MODELS / "rerank_deberta" / "tokenizer_config.json").read_text())
    settings = {key: value for key, value in settings.items() if key not in ("backend", "model_input_names")}
    settings |= {"tokenizer_class": tokenizer_class} | ({} if names is None else {"model_input_names": names})
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))

    pairs = [("the city", "the old house by the river"), ("", "water"), ("people work", "a dog")]
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert len({*tokenizer(*pairs[0]).get("token_type_ids", [0])}) == types
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    given = tokenizer([list(pair) for pair in pairs], padding=True, return_tensors="pt")
    with torch.no_grad():
        expected = theirs(**given).logits.numpy()
    zero_shot = transformers.pipeline("zero-shot-classification", str(tmp_path), device="cpu")
    of_labels = zero_shot("people work", ["water", "a city"])
    for backend in ("rust", "numpy"):
        scores = CrossEncoder(tmp_path, backend).predict(pairs, activation_fn=lambda x: x)
        np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)
        found: Any = tasks.classify(tasks.load(tmp_path, backend), pairs, top_k=None, function_to_apply="none")
        for row, logits in zip(found, expected, strict=True):
            values = {one["label"]: one["score"] for one in row}
            np.testing.assert_allclose([values[label] for label in labels], logits, rtol=1e-5, atol=1e-5)
        ours = tasks.zero_shot(tasks.load(tmp_path, backend), "people work", ["water", "a city"])
        assert ours["labels"] == of_labels["labels"]
        np.testing.assert_allclose(ours["scores"], of_labels["scores"], rtol=0, atol=1e-5)
