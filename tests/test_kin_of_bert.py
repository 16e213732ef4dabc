"""ERNIE, CamemBERT, data2vec and XLM-RoBERTa-XL: what they have that BERT and RoBERTa have not.

Outputs equal to transformers' are tested in test_heads.py and test_engines.py for the folders, other shapes of models
whose norms come first in test_variants.py, and models that transformers makes in test_kin_torch.py.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_files import MODELS, check_equal, reference_cases
from random_models import random_model
from wordpiece_bert.bert import (
    AutoModel,
    CamembertConfig,
    Data2VecTextConfig,
    ErnieConfig,
    ErnieModel,
    XLMRobertaXLConfig,
)
from wordpiece_bert.errors import ConfigError, InputError

if TYPE_CHECKING:
    from pathlib import Path


def small_ernie(**fields: Any) -> ErnieConfig:
    sizes = {"hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 20, "max_position_embeddings": 30}
    return ErnieConfig(**{"vocab_size": 50, "num_hidden_layers": 2, "use_task_id": True, **sizes, **fields})


@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_both_engines_add_the_task_of_each_token(data: st.DataObject) -> None:
    tasks, types = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    config = small_ernie(task_type_vocab_size=tasks, type_vocab_size=types)
    random = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    shape = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 30))
    mask = random.random(shape) < 0.7
    mask[:, 0] = True
    inputs = {
        "attention_mask": mask,
        "token_type_ids": random.integers(0, types, shape),
        "task_type_ids": random.integers(0, tasks, shape),
    }
    ids = random.integers(0, 50, shape)
    numpy, rust = (random_model(ErnieModel, config, backend) for backend in ("numpy", "rust"))
    expected = numpy(ids, **inputs, output_hidden_states=True)
    found = rust(ids, **inputs, output_hidden_states=True)
    check_equal(found, {"hidden_states": np.stack(expected.hidden_states)}, mask)
    # The word vectors of a call may have the rows of the other tables in them.
    weights = dict(numpy.named_parameters())
    words, rows = (weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "task_type"))
    moved = words[ids] + rows[inputs["task_type_ids"]] - rows[0]
    again = numpy(inputs_embeds=moved, attention_mask=mask, token_type_ids=inputs["token_type_ids"])
    check_equal(again, {"last_hidden_state": expected.last_hidden_state}, mask)


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
    model: Any = AutoModel.from_pretrained(MODELS / "ernie_model", dtype=dtype, keep_half=True)
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
