"""ERNIE, CamemBERT, data2vec and XLM-RoBERTa-XL: what they have that BERT and RoBERTa have not.

Outputs equal to transformers' are tested in test_heads.py and test_engines.py for the folders, other shapes of models
whose norms come first in test_plans.py, and models that transformers makes in test_kin_torch.py.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_files import MODELS, reference_cases
from random_models import random_model
from wordpiece_bert import bert
from wordpiece_bert.bert import (
    AutoModel,
    CamembertConfig,
    Data2VecTextConfig,
    ErnieConfig,
    ErnieModel,
    XLMRobertaXLConfig,
)
from wordpiece_bert.errors import ConfigError, InputError


def small_ernie(**fields: Any) -> ErnieConfig:
    sizes = {"hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 20, "max_position_embeddings": 30}
    return ErnieConfig(**{"vocab_size": 50, "num_hidden_layers": 2, "use_task_id": True, **sizes, **fields})


#: The heads of ERNIE, and what their outputs are called.
HEADS = {
    "MaskedLM": ["logits"],
    "NextSentencePrediction": ["logits"],
    "PreTraining": ["prediction_logits", "seq_relationship_logits"],
    "QuestionAnswering": ["start_logits", "end_logits"],
    "SequenceClassification": ["logits"],
    "TokenClassification": ["logits"],
}


@pytest.mark.parametrize("backend", ["rust", "numpy"])
@pytest.mark.parametrize("head", HEADS)
def test_heads_pass_the_tasks_to_their_encoder(head: str, backend: str) -> None:
    """Their logits equal those from the encoder whose word vectors have the rows of the tasks in them."""
    random = np.random.default_rng(1)
    model = random_model(getattr(bert, f"ErnieFor{head}"), small_ernie(), backend)
    weights = dict(model.named_parameters())
    ids, mask, tasks = random.integers(0, 50, (2, 7)), np.arange(7) < [[7], [4]], random.integers(0, 3, (2, 7))
    words, rows = (weights[f"ernie.embeddings.{name}_embeddings.weight"] for name in ("word", "task_type"))
    expected = model(inputs_embeds=words[ids] + rows[tasks] - rows[0], attention_mask=mask)
    found, without = model(ids, mask, task_type_ids=tasks), model(ids, mask)
    for name in HEADS[head]:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=0, atol=2e-4)
        assert np.abs(getattr(found, name) - getattr(without, name)).max() > 0.01
    np.testing.assert_array_equal(
        getattr(model(ids, mask, task_type_ids=np.zeros((2, 7), np.int64)), HEADS[head][0]),
        getattr(without, HEADS[head][0]),
    )
    with pytest.raises(InputError, match="task_type_ids"):
        model(ids, mask, task_type_ids=tasks + 2)


def test_choices_have_tasks_too() -> None:
    model = random_model(bert.ErnieForMultipleChoice, small_ernie(), "rust")
    random = np.random.default_rng(2)
    ids, tasks = random.integers(0, 50, (2, 3, 5)), random.integers(0, 3, (2, 3, 5))
    found = model(ids, task_type_ids=tasks, labels=[0, 2])
    for row, choice in np.ndindex(2, 3):
        one = model(ids[row : row + 1, choice : choice + 1], task_type_ids=tasks[row : row + 1, choice : choice + 1])
        np.testing.assert_allclose(found.logits[row, choice], one.logits[0, 0], rtol=0, atol=1e-6)
    assert found.loss > 0
    with pytest.raises(InputError, match=r"task_type_ids has shape \[6, 4\]"):
        model(ids, task_type_ids=tasks[:, :, :4])


@pytest.mark.parametrize("backend", ["rust", "numpy"])
def test_without_a_table_tasks_are_ignored(backend: str) -> None:
    model = random_model(ErnieModel, small_ernie(use_task_id=False), backend)
    assert "embeddings.task_type_embeddings.weight" not in dict(model.named_parameters())
    found, expected = model([[5, 9]], task_type_ids=[[7, 1]]), model([[5, 9]])
    np.testing.assert_array_equal(found.last_hidden_state, expected.last_hidden_state)


def test_tasks_are_checked() -> None:
    model = random_model(ErnieModel, small_ernie(), "rust")
    with pytest.raises(InputError, match=r"task_type_ids\[0, 1\] is 3, outside 0 to 2 \(task_type_vocab_size is 3\)"):
        model([[5, 9]], task_type_ids=[[0, 3]])
    with pytest.raises(InputError, match=r"task_type_ids has shape \[1, 1\], but the input has \[1, 2\]"):
        model([[5, 9]], task_type_ids=[[0]])
    with pytest.raises(ConfigError, match="use_task_id"):
        small_ernie(use_task_id=1)
    with pytest.raises(ConfigError, match="task_type_vocab_size"):
        small_ernie(task_type_vocab_size=0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_the_tables_are_saved_apart(dtype: str, tmp_path: Path) -> None:
    """The kernels have the sums of token types and tasks; what is saved has both tables."""
    model: Any = AutoModel.from_pretrained(MODELS / "ernie_model", dtype=dtype)
    model.save_pretrained(tmp_path)
    again: Any = AutoModel.from_pretrained(tmp_path, dtype=dtype)
    inputs, _ = reference_cases("ernie_model")["task_type_ids"]
    expected = model(**inputs).last_hidden_state
    for other in (again, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other(**inputs).last_hidden_state, expected)
        assert other.config.use_task_id
        table = dict(other.named_parameters())["embeddings.task_type_embeddings.weight"]
        assert table.shape == (3, 32)


def test_defaults_are_those_of_transformers() -> None:
    assert (CamembertConfig().vocab_size, CamembertConfig().type_vocab_size, CamembertConfig().pad_token_id) == (
        30_522,
        2,
        1,
    )
    assert Data2VecTextConfig().longest_row == 510
    config = XLMRobertaXLConfig()
    assert (config.hidden_size, config.longest_row, config.layer_norm_eps) == (2560, 512, 1e-5)
