"""BertModel: equal to transformers, for every kind of input, and its errors."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_files import MODELS, SMALL, reference_cases, write_safetensors
from wordpiece_bert.bert import BertConfig, BertModel
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.errors import CheckpointError, ConfigError, InputError, ModelNotFoundError

TOLERANCE = 1e-5  # absolute; the actual error is about 2e-6

FOLDERS = [
    "bert_model",
    "bert_small",
    "bert_act_gelu_new",
    "bert_act_gelu_pytorch_tanh",
    "bert_act_relu",
    "bert_eps_1e-3",
]
CASES = [(folder, case) for folder in FOLDERS for case in reference_cases(folder)]


@pytest.fixture(scope="module")
def model() -> BertModel:
    return BertModel.from_pretrained(MODELS / "bert_small")


# --- equal to the reference


@pytest.mark.parametrize(("folder", "case"), CASES)
def test_outputs_equal_transformers(folder: str, case: str) -> None:
    inputs, expected = reference_cases(folder)[case]
    out = BertModel.from_pretrained(MODELS / folder)(**inputs, output_hidden_states=True, output_attentions=True)
    mask = inputs.get("attention_mask", np.ones(expected["last_hidden_state"].shape[:2])) != 0
    assert out.hidden_states is not None
    assert out.attentions is not None
    found: dict[str, Any] = {
        "last_hidden_state": out.last_hidden_state[mask],
        "pooler_output": out.pooler_output,
        "hidden_states": np.stack(out.hidden_states)[:, mask],
        "attentions": np.stack(out.attentions).swapaxes(2, 3)[:, mask],  # queries at masked positions are meaningless
    }
    reference = dict(expected)
    reference["last_hidden_state"] = reference["last_hidden_state"][mask]
    if "hidden_states" in reference:
        reference["hidden_states"] = reference["hidden_states"][:, mask]
        reference["attentions"] = reference["attentions"].swapaxes(2, 3)[:, mask]
    for name, array in reference.items():
        assert found[name].dtype == np.float32
        np.testing.assert_allclose(found[name], array, rtol=0, atol=TOLERANCE, err_msg=name)


def test_all_kinds_of_input_are_in_the_reference() -> None:
    cases = reference_cases("bert_model")
    assert set(cases) == {"pairs", "left", "plain", "one", "full", "holes", "position_ids", "inputs_embeds"}
    assert {"hidden_states", "attentions"} <= set(cases["pairs"][1])


# --- masks and padding


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int64, np.uint8, np.float32, np.float64])
def test_any_number_but_zero_in_a_mask_means_visible(model: BertModel, dtype: Any) -> None:
    ids = np.array([[5, 17, 42, 9]])
    expected = model(ids, attention_mask=[[1, 1, 1, 0]]).last_hidden_state
    np.testing.assert_array_equal(model(ids, np.array([[1, 1, 1, 0]], dtype)).last_hidden_state, expected)
    np.testing.assert_array_equal(model(ids, [[0.5, -2, 1e-9, 0]]).last_hidden_state, expected)


def test_masked_keys_weigh_exactly_0_and_rows_sum_to_1(model: BertModel) -> None:
    mask = np.array([[1, 0, 1, 0], [0, 0, 0, 1]])
    out = model([[1, 2, 3, 4], [5, 6, 7, 8]], mask, output_attentions=True)
    for p in out.attentions or ():
        assert p.shape == (2, 3, 4, 4)
        assert (p.swapaxes(1, 3)[mask == 0] == 0).all()
        np.testing.assert_allclose(p.sum(axis=-1), 1, atol=1e-6)


def test_a_row_without_a_visible_token_is_refused(model: BertModel) -> None:
    with pytest.raises(InputError, match=r"attention_mask\[1\] is all 0"):
        model([[1, 2], [3, 4]], [[1, 1], [0, 0]])


# --- outputs


def test_states_and_attentions_are_returned_only_on_request(model: BertModel) -> None:
    out = model([[1, 2, 3]])
    assert out.hidden_states is None
    assert out.attentions is None
    out = model([[1, 2, 3]], output_hidden_states=True, output_attentions=True)
    assert [x.shape for x in out.hidden_states or ()] == [(1, 3, 24)] * 3
    assert [p.shape for p in out.attentions or ()] == [(1, 3, 3, 3)] * 2
    assert out.hidden_states is not None
    np.testing.assert_array_equal(out.hidden_states[-1], out.last_hidden_state)


@pytest.mark.parametrize("length", [0, 1, 5])
def test_an_empty_batch_gives_empty_arrays(model: BertModel, length: int) -> None:
    out = model(np.zeros((0, length), np.int64), output_hidden_states=True, output_attentions=True)
    assert out.last_hidden_state.shape == (0, length, 24)
    assert out.pooler_output is not None
    assert out.pooler_output.shape == (0, 24)
    assert [x.shape for x in out.hidden_states or ()] == [(0, length, 24)] * 3
    assert [p.shape for p in out.attentions or ()] == [(0, 3, length, length)] * 2


def test_a_checkpoint_without_pooler_gives_none() -> None:
    tensors = read_tensors(MODELS / "bert_small" / "model.safetensors")
    tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith("pooler")}
    out = BertModel(BertConfig.from_dict(SMALL), tensors)([[1, 2, 3]])
    assert out.pooler_output is None
    inputs, expected = reference_cases("bert_small")["pairs"]
    out = BertModel(BertConfig.from_dict(SMALL), tensors)(**inputs)
    seen = inputs["attention_mask"] != 0
    np.testing.assert_allclose(out.last_hidden_state[seen], expected["last_hidden_state"][seen], atol=TOLERANCE)


# --- inputs


def test_lists_and_every_integer_type_are_ids(model: BertModel) -> None:
    expected = model([[1, 2, 109]]).last_hidden_state
    for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
        np.testing.assert_array_equal(model(np.array([[1, 2, 109]], dtype)).last_hidden_state, expected)
    fortran = np.asfortranarray([[1, 2, 109], [1, 2, 109]])
    np.testing.assert_allclose(model(fortran).last_hidden_state[1], expected[0], atol=1e-6)


def test_defaults_are_type_0_and_positions_from_0(model: BertModel) -> None:
    ids = [[1, 2, 3], [4, 5, 6]]
    expected = model(ids).last_hidden_state
    zeros, positions = np.zeros((2, 3), int), np.array([[0, 1, 2], [0, 1, 2]])
    for given_ in ({"token_type_ids": zeros}, {"position_ids": positions}, {"position_ids": positions[:1]}):
        np.testing.assert_array_equal(model(ids, **given_).last_hidden_state, expected)


def test_inputs_are_not_modified(model: BertModel) -> None:
    vectors = np.ones((1, 3, 24), np.float32)
    model(inputs_embeds=vectors)
    assert (vectors == 1).all()


IDS = [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "pass either input_ids or inputs_embeds$"),
        ({"input_ids": IDS, "inputs_embeds": np.zeros((2, 3, 24), np.float32)}, "not both"),
        ({"input_ids": [[1, 2], [3, 110]]}, r"input_ids\[1, 1\] is 110, outside 0 to 109 \(vocab_size is 110\)"),
        ({"input_ids": [[1, -1]]}, r"input_ids\[0, 1\] is -1, outside 0 to 109"),
        ({"input_ids": [[2**70]]}, "input_ids must be integers, not object"),
        ({"input_ids": [1, 2]}, r"input_ids must have 2 dimensions.* not 1 \(shape \[2\]\)"),
        ({"input_ids": [[[1]]]}, "input_ids must have 2 dimensions"),
        ({"input_ids": 1}, "input_ids must have 2 dimensions"),
        ({"input_ids": [[1, 2], [3]]}, "input_ids is not an array.*padded"),
        ({"input_ids": [[1.0, 2.0]]}, "input_ids must be integers, not float64"),
        ({"input_ids": [[True, False]]}, "input_ids must be integers, not bool"),
        ({"input_ids": [["a"]]}, "input_ids must be integers, not <U1"),
        ({"input_ids": [[None]]}, "input_ids must be integers, not object"),
        ({"input_ids": [[]]}, "1 rows of 0 tokens"),
        (
            {"input_ids": np.ones((2, 25), int)},
            "rows of 25 tokens are longer than the model's max_position_embeddings, 24",
        ),
        ({"input_ids": IDS, "token_type_ids": [[0, 1, 2], [0, 0, 0]]}, r"token_type_ids\[0, 2\] is 2, outside 0 to 1"),
        ({"input_ids": IDS, "token_type_ids": [[0, 1, 1]]}, r"token_type_ids has shape \[1, 3\].*\[2, 3\]"),
        ({"input_ids": IDS, "position_ids": [[0, 1, 24]]}, r"position_ids\[0, 2\] is 24, outside 0 to 23"),
        ({"input_ids": IDS, "position_ids": [[0, 1]]}, r"position_ids has shape \[1, 2\]"),
        ({"input_ids": IDS, "position_ids": [0, 1, 2]}, "position_ids must have 2 dimensions"),
        ({"input_ids": IDS, "attention_mask": [[1, 1, 1]]}, r"attention_mask has shape \[1, 3\].*\[2, 3\]"),
        ({"input_ids": IDS, "attention_mask": np.ones((2, 3, 3))}, r"attention_mask must have shape \[batch, length\]"),
        ({"input_ids": IDS, "attention_mask": np.ones((2, 1, 3, 3))}, r"not \[2, 1, 3, 3\]"),
        ({"input_ids": IDS, "attention_mask": [["1"] * 3] * 2}, "attention_mask must be booleans or numbers"),
        ({"inputs_embeds": np.zeros((2, 3, 23), np.float32)}, r"\[batch, length, 24\], not \[2, 3, 23\]"),
        ({"inputs_embeds": np.zeros((3, 24), np.float32)}, r"\[batch, length, 24\], not \[3, 24\]"),
        ({"inputs_embeds": np.zeros((1, 3, 24), int)}, "inputs_embeds must be floating-point"),
    ],
)
def test_wrong_input_is_reported_with_value_and_index(model: BertModel, inputs: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        model(**inputs)


@given(
    ids=st.lists(st.lists(st.integers(-3, 115), max_size=26), max_size=3),
    mask=st.none() | st.lists(st.lists(st.integers(0, 1), max_size=26), max_size=3),
)
def test_any_ids_give_finite_numbers_or_an_input_error(model: BertModel, ids: Any, mask: Any) -> None:
    try:
        out = model(ids, mask)
    except InputError:
        return
    assert np.isfinite(out.last_hidden_state).all()


# --- loading


def copy_model(parent: Path) -> Path:
    return Path(shutil.copytree(MODELS / "bert_small", parent / "model"))


@pytest.mark.parametrize("backend", ["numpy", "rust"])
def test_backend_and_dtype_are_named(backend: str) -> None:
    model = BertModel.from_pretrained(MODELS / "bert_small", backend)
    assert (model.backend, model.dtype) == (backend, "float32")
    for part in ("2 layers", "hidden size 24", "3 heads", f"{backend} float32", "model.safetensors"):
        assert part in repr(model)


def test_the_backend_is_rust_by_default(model: BertModel) -> None:
    assert model.backend == "rust"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"backend": "torch"}, InputError, "backend must be one of 'numpy', 'rust', not 'torch'"),
        ({"dtype": "int4"}, InputError, "dtype must be one of 'float32', 'bfloat16', .*'auto', not 'int4'"),
        ({"backend": "numpy", "dtype": "bfloat16"}, ConfigError, "backend 'numpy' computes in 'float32', 'auto' only"),
        ({"dtype": "float16"}, InputError, "dtype must be one of 'float32', 'bfloat16', .*'auto', not 'float16'"),
    ],
)
def test_other_backends_and_dtypes_are_refused(options: dict[str, str], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        BertModel.from_pretrained(MODELS / "bert_small", **options)
    with pytest.raises(error, match=message):  # before the model is searched for
        BertModel.from_pretrained("no/such", **options)


def test_configuration_and_weights_that_do_not_fit_name_the_file(tmp_path: Path) -> None:
    folder = copy_model(tmp_path)
    text = (folder / "config.json").read_text().replace('"vocab_size": 110', '"vocab_size": 111')
    (folder / "config.json").write_text(text)
    with pytest.raises(
        CheckpointError, match=r"word_embeddings\.weight has shape \[110, 24\].*vocab_size is 111"
    ) as caught:
        BertModel.from_pretrained(folder)
    assert str(folder / "model.safetensors") in str(caught.value)


def test_a_truncated_weight_file_is_refused(tmp_path: Path) -> None:
    folder = copy_model(tmp_path)
    os.truncate(folder / "model.safetensors", 20_000)
    with pytest.raises(CheckpointError, match="truncated"):
        BertModel.from_pretrained(folder)


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    folder = copy_model(tmp_path)
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelNotFoundError, match="has no weights"):
        BertModel.from_pretrained(folder)


def test_the_encoder_of_a_model_with_a_head_is_loaded(tmp_path: Path, model: BertModel) -> None:
    folder = copy_model(tmp_path)
    tensors = read_tensors(folder / "model.safetensors")
    head = {"cls.predictions.bias": np.zeros(110, np.float32)}
    write_safetensors(folder / "model.safetensors", {f"bert.{name}": t for name, t in tensors.items()} | head)
    np.testing.assert_array_equal(
        BertModel.from_pretrained(folder)([[1, 2, 3]]).last_hidden_state, model([[1, 2, 3]]).last_hidden_state
    )


# --- sharing


def test_threads_may_share_a_model(model: BertModel) -> None:
    rows = [np.full((2, 4 + i), 7 * i + 3) for i in range(8)]
    expected = [model(ids).last_hidden_state for ids in rows]
    found: list[Any] = [None] * len(rows)

    def run(i: int) -> None:
        for _ in range(20):
            found[i] = model(rows[i]).last_hidden_state

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(rows))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_strict_floating_point_errors_of_the_caller_have_no_effect(model: BertModel) -> None:
    with np.errstate(all="raise"):
        model([[1, 2, 3, 4]], [[1, 1, 0, 0]])
