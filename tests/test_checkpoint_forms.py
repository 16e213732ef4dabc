"""All formats of a checkpoint give the same model; saving and loading again changes nothing."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wordpiece_bert.bert as bert_package
from model_files import MODELS, check_equal, reference_cases, stored_dtypes, write_safetensors
from wordpiece_bert.bert import AutoModel, BertConfig, BertForMaskedLM, BertForPreTraining, BertModel
from wordpiece_bert.bert.checkpoint import find_weights, non_finite, read_tensors
from wordpiece_bert.bert.checkpoint import write_safetensors as write
from wordpiece_bert.bert.half_precision import native, to_bfloat16, widen
from wordpiece_bert.errors import CheckpointError, CheckpointWarning, ConfigError

FORMS = {
    "variant_bin_zip": ("BertForMaskedLM", "bert_small_masked_lm"),
    "variant_bin_legacy": ("BertModel", "bert_small"),
    "variant_bin_views": ("BertModel", "bert_small"),
    "variant_bin_sharded": ("BertModel", "bert_small"),
    "variant_sharded": ("BertModel", "bert_small"),
    "variant_bin_ordereddict_half": ("BertModel", "variant_float16"),
    "variant_float16": ("BertModel", "variant_float16"),
    "variant_bin_bfloat16_legacy": ("BertModel", "variant_bfloat16"),
    "variant_bfloat16": ("BertModel", "variant_bfloat16"),
    "variant_original_names": ("BertForPreTraining", "bert_small_pretraining"),
    "variant_untied": ("BertForMaskedLM", "variant_untied"),
    "variant_untied_by_value": ("BertForMaskedLM", "variant_untied_by_value"),
    "variant_decoder_bias_only": ("BertForMaskedLM", "bert_small_masked_lm"),
    "variant_word_embeddings_absent": ("BertForMaskedLM", "bert_small_masked_lm"),
}


def check_form(model: Any, reference: str) -> None:
    for inputs, expected in reference_cases(reference).values():
        check_equal(model(**inputs), expected, inputs["attention_mask"])


@pytest.mark.parametrize("folder", FORMS)
def test_every_format_gives_the_numbers_of_transformers(folder: str) -> None:
    cls, reference = FORMS[folder]
    check_form(getattr(bert_package, cls).from_pretrained(MODELS / folder), reference)


@pytest.mark.parametrize("folder", FORMS)
def test_a_saved_model_is_loaded_unchanged(folder: str, tmp_path: Path) -> None:
    cls, reference = FORMS[folder]
    model = getattr(bert_package, cls).from_pretrained(MODELS / folder)
    model.save_pretrained(tmp_path / "again")
    again = AutoModel.from_pretrained(tmp_path / "again")
    assert type(again) is type(model)
    for (name, one), (other_name, other) in zip(model.named_parameters(), again.named_parameters(), strict=True):
        assert name == other_name
        np.testing.assert_array_equal(one, other)
    check_form(again, reference)


# --- half precision


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_model_of_half_precision_arrays_is_one_of_float32(dtype: str, tmp_path: Path) -> None:
    """Widened once: what is tied stays one weight, and what is saved is float32."""
    model = BertForMaskedLM.from_pretrained(MODELS / "bert_small_masked_lm")
    weights = {
        name: to_bfloat16(array) if dtype == "bfloat16" else array.astype(dtype)
        for name, array in model.named_parameters()
    }
    half, full = (
        BertForMaskedLM(model.config, arrays) for arrays in (weights, {name: widen(x) for name, x in weights.items()})
    )
    for (name, one), (other_name, other) in zip(half.named_parameters(), full.named_parameters(), strict=True):
        assert name == other_name
        np.testing.assert_array_equal(one, other)
    inputs = reference_cases("bert_small_masked_lm")["pairs"][0]
    np.testing.assert_array_equal(half(**inputs).logits, full(**inputs).logits)
    half.save_pretrained(tmp_path)
    assert set(stored_dtypes(tmp_path / "model.safetensors").values()) == {np.dtype(np.float32)}
    assert json.loads((tmp_path / "config.json").read_text())["dtype"] == "float32"


@given(bits=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=50))
def test_bfloat16_is_the_nearest_and_widening_is_exact(bits: list[int]) -> None:
    x = np.array(bits, np.uint32).view(np.float32)
    with np.errstate(invalid="ignore"):
        near = widen(to_bfloat16(x))
    assert near.dtype == np.float32
    np.testing.assert_array_equal(np.isnan(near), np.isnan(x))
    np.testing.assert_array_equal(widen(to_bfloat16(near)), near)
    finite = np.isfinite(x) & np.isfinite(near)
    x64, near64 = x[finite].astype(float), near[finite].astype(float)
    assert (np.abs(near64 - x64) <= np.abs(x64) * 2.0**-8 + 2.0**-133).all()


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f2", ">f2", "<f8", ">i4", "?"])
def test_arrays_of_files_get_the_byte_order_of_this_machine(dtype: str) -> None:
    stored = np.array([0, 1, 1], dtype)
    array = native(stored)
    assert array.tolist() == [0, 1, 1]
    assert array.dtype.isnative
    assert array.dtype == (np.float32 if stored.dtype.kind == "f" else stored.dtype.newbyteorder("="))


# --- the decoder and the word table


DECODER, BIAS = "cls.predictions.decoder.weight", "cls.predictions.decoder.bias"
TABLE, PLAIN_BIAS = "bert.embeddings.word_embeddings.weight", "cls.predictions.bias"
MASKED_LM = dict(read_tensors(MODELS / "bert_small_masked_lm" / "model.safetensors"))
CONFIG = BertConfig.from_folder(MODELS / "bert_small_masked_lm")


@pytest.mark.parametrize(
    "removed", [(), (TABLE,), (DECODER,), (BIAS,), (PLAIN_BIAS,), (TABLE, BIAS), (DECODER, PLAIN_BIAS)]
)
def test_one_of_a_tied_pair_is_sufficient(removed: tuple[str, ...]) -> None:
    tensors = MASKED_LM | {DECODER: MASKED_LM[TABLE].copy(), BIAS: MASKED_LM[PLAIN_BIAS].copy()}
    for name in removed:
        del tensors[name]
    model = BertForMaskedLM(CONFIG, tensors)
    assert {DECODER, BIAS}.isdisjoint(dict(model.named_parameters()))
    check_form(model, "bert_small_masked_lm")


def test_a_missing_pair_is_an_error() -> None:
    for name in (TABLE, PLAIN_BIAS):
        tensors = {key: tensor for key, tensor in MASKED_LM.items() if key != name}
        with pytest.raises(CheckpointError, match=f"missing: .*'{name}'"):
            BertForMaskedLM(CONFIG, tensors)


def test_an_untied_decoder_is_required_but_one_name_of_its_bias_suffices() -> None:
    untied = BertConfig.from_dict(CONFIG.to_dict() | {"tie_word_embeddings": False})
    with pytest.raises(CheckpointError, match=f"missing: '{DECODER}'"):
        BertForMaskedLM(untied, MASKED_LM)
    model = BertForMaskedLM(untied, MASKED_LM | {DECODER: MASKED_LM[TABLE].copy()})
    check_form(model, "bert_small_masked_lm")
    assert {DECODER, BIAS} <= set(dict(model.named_parameters()))  # so that both are saved for transformers


def test_an_untied_model_is_saved_with_its_decoder(tmp_path: Path) -> None:
    BertForMaskedLM.from_pretrained(MODELS / "variant_untied").save_pretrained(tmp_path)
    assert {DECODER, BIAS} <= set(read_tensors(tmp_path / "model.safetensors"))
    check_form(BertForMaskedLM.from_pretrained(tmp_path), "variant_untied")
    model = BertForMaskedLM.from_pretrained(MODELS / "variant_untied_by_value", dtype="int8")
    model.save_pretrained(tmp_path)
    again = BertForMaskedLM.from_pretrained(tmp_path, dtype="int8")
    np.testing.assert_array_equal(again([[2, 9, 3]]).logits, model([[2, 9, 3]]).logits)


# --- saving


@pytest.mark.parametrize(
    "folder", ["bert_seqcls_single", "distilbert_seqcls", "electra_generator", "mpnet_model", "albert_model"]
)
def test_transformers_reads_the_saved_configuration(folder: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    AutoModel.from_pretrained(MODELS / folder).save_pretrained(tmp_path)
    saved = transformers.AutoConfig.from_pretrained(tmp_path).to_dict()
    original = transformers.AutoConfig.from_pretrained(MODELS / folder).to_dict()
    # Fields for training, such as dropout, may differ; fields of the arithmetic and the labels may not.
    read = {"architectures", "model_type", "dtype", *json.loads((tmp_path / "config.json").read_text())}
    for key in read & original.keys():
        assert saved[key] == original[key], key
    assert type(AutoModel.from_pretrained(tmp_path).config) is type(AutoModel.from_pretrained(MODELS / folder).config)


def test_the_safetensors_library_reads_saved_files(tmp_path: Path) -> None:
    from safetensors import safe_open

    model = BertForPreTraining.from_pretrained(MODELS / "bert_pretraining")
    model.save_pretrained(tmp_path)
    with safe_open(tmp_path / "model.safetensors", "np") as file:
        assert file.metadata() == {"format": "pt"}  # required by transformers
        for name, array in model.named_parameters():
            np.testing.assert_array_equal(file.get_tensor(name), array)


@given(data=st.data())
def test_tensors_survive_writing_and_reading(tmp_path_factory: Any, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=4, unique=True))
    tensors = {}
    for name in names:
        if name != "__metadata__":
            shape = data.draw(st.lists(st.integers(0, 4), max_size=3))
            dtype = data.draw(st.sampled_from([np.float32, np.float16, np.int64, np.uint8, np.bool_]))
            tensors[name] = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    file = tmp_path_factory.mktemp("written") / "model.safetensors"
    write(file, tensors)
    found = read_tensors(file)
    assert set(found) == set(tensors)
    assert stored_dtypes(file) == {name: tensor.dtype for name, tensor in tensors.items()}
    for name, tensor in tensors.items():
        assert found[name].dtype == (np.float32 if tensor.dtype.kind == "f" else tensor.dtype)
        np.testing.assert_array_equal(found[name], tensor)


# --- shards


def sharded(folder: Path, **changes: Any) -> Path:
    for file in (MODELS / "variant_sharded").iterdir():
        shutil.copy(file, folder)
    index = folder / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    content["weight_map"] |= changes
    index.write_text(json.dumps(content))
    return folder


def test_shards_are_one_checkpoint() -> None:
    file = find_weights(MODELS / "variant_sharded")
    assert file.name == "model.safetensors.index.json"
    found, expected = read_tensors(file), read_tensors(MODELS / "bert_small" / "model.safetensors")
    assert set(found) == set(expected)
    assert find_weights(MODELS / "variant_bin_sharded").name == "pytorch_model.bin.index.json"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../../secret.safetensors", "names the file '../../secret.safetensors'"),
        ("/etc/hostname", "names the file '/etc/hostname'"),
        ("..\\secret.safetensors", r"leaves the model folder"),
        ("..", "names the file"),
        ("config.json", "names the file 'config.json'"),
        ("model-00009-of-00003.safetensors", "cannot be read"),
        ("model-00001-of-00003.safetensors", "says that 'made.up' is in"),
        (3, "must have a weight_map"),
    ],
)
def test_an_index_that_names_files_elsewhere_is_refused(tmp_path: Path, name: Any, message: str) -> None:
    folder = sharded(tmp_path, **{"made.up": name})
    with pytest.raises(CheckpointError, match=message):
        BertModel.from_pretrained(folder)


@pytest.mark.parametrize("content", [[], {}, {"weight_map": ["a"]}, {"weight_map": None}])
def test_an_index_without_a_map_is_refused(tmp_path: Path, content: Any) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match="must have a weight_map"):
        read_tensors(tmp_path / "model.safetensors.index.json")


def test_a_tensor_in_two_files_is_refused(tmp_path: Path) -> None:
    folder = sharded(tmp_path)
    first = read_tensors(folder / "model-00001-of-00003.safetensors")
    second = read_tensors(folder / "model-00002-of-00003.safetensors")
    write_safetensors(folder / "model-00002-of-00003.safetensors", second | dict(list(first.items())[:1]))
    with pytest.raises(CheckpointError, match="in two files"):
        BertModel.from_pretrained(folder)


# --- NaN and infinity


def test_nan_and_infinity_are_counted_on_request(tmp_path: Path) -> None:
    tensors = dict(read_tensors(MODELS / "bert_small" / "model.safetensors"))
    assert non_finite(tensors) == {}
    bad = tensors["pooler.dense.bias"].copy()
    bad[:3] = [np.nan, np.inf, -np.inf]
    tensors["pooler.dense.bias"] = bad
    assert non_finite(tensors) == {"pooler.dense.bias": 3}
    assert non_finite({"half": np.array([np.inf, 1], np.float16), "ids": np.array([1, 2])}) == {"half": 1}
    assert non_finite({"half": to_bfloat16(np.array([np.nan, 1], np.float32))}) == {"half": 1}
    shutil.copy(MODELS / "bert_small" / "config.json", tmp_path)
    write_safetensors(tmp_path / "model.safetensors", tensors)
    with pytest.raises(CheckpointError, match=r"3 weights are NaN or infinite: 3 in 'pooler\.dense\.bias'"):
        BertModel.from_pretrained(tmp_path, check_finite=True)
    assert np.isnan(BertModel.from_pretrained(tmp_path)([[1, 2]]).pooler_output).any()  # type: ignore[arg-type]


# --- from a damaged folder to a model


@given(data=st.data())
def test_a_changed_model_folder_gives_a_model_or_one_of_our_errors(tmp_path_factory: Any, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("changed")
    name = data.draw(st.sampled_from(["config.json", "pytorch_model.bin"]))
    for file in (MODELS / "variant_bin_legacy").iterdir():
        shutil.copy(file, folder)
    content = bytearray((folder / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, min(len(content), 6000) - 1))] = data.draw(st.integers(0, 255))
    (folder / name).write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CheckpointWarning)
        try:
            BertModel.from_pretrained(folder)
        except (ConfigError, CheckpointError):
            return
