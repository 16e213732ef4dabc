"""Weight files: reading, malformed files, and the resolution of names."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_files import MODELS, SMALL, entry, safetensors_bytes, write_safetensors
from wordpiece_bert.bert import BertConfig, BertModel
from wordpiece_bert.bert.checkpoint import Layout, Resolved, bert_shapes, find_weights, read_tensors
from wordpiece_bert.bert.checkpoint import resolve as resolve_layout
from wordpiece_bert.bert.checkpoint.names import POOLER
from wordpiece_bert.errors import CheckpointError, CheckpointWarning, ModelNotFoundError

CONFIG = BertConfig.from_dict(SMALL)
TENSORS = read_tensors(MODELS / "bert_small" / "model.safetensors")


def resolve(tensors: Any, config: BertConfig, where: str) -> Resolved:
    """The weights of a BertModel in a checkpoint."""
    return resolve_layout(tensors, Layout(bert_shapes(config), optional=POOLER, dropped=("cls.",)), config, where)


# --- safetensors


def test_tensors_are_float32_and_complete() -> None:
    assert set(TENSORS) == set(bert_shapes(CONFIG))
    assert {tensor.dtype for tensor in TENSORS.values()} == {np.dtype(np.float32)}
    assert TENSORS["embeddings.word_embeddings.weight"].shape == (110, 24)


@pytest.mark.parametrize(("dtype", "tolerance"), [("F32", 0.0), ("F64", 0.0), ("F16", 1e-3), ("BF16", 1e-2)])
def test_all_float_types_become_float32(tmp_path: Path, dtype: str, tolerance: float) -> None:
    array = np.array([[0.0, -0.0, 1.5, -2.25], [np.inf, -np.inf, 3.14159, 1e-3]], np.float32)
    read = read_tensors(write_safetensors(tmp_path / "m.safetensors", {"a": array}, dtype))["a"]
    assert read.dtype == np.float32
    assert read.flags.aligned
    np.testing.assert_allclose(read, array, rtol=tolerance)
    np.testing.assert_array_equal(np.signbit(read), np.signbit(array))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("BOOL", "?"),
        ("U8", "u1"),
        ("I8", "i1"),
        ("I16", "<i2"),
        ("U16", "<u2"),
        ("I32", "<i4"),
        ("U32", "<u4"),
        ("I64", "<i8"),
        ("U64", "<u8"),
    ],
)
def test_integers_and_booleans_keep_their_dtype(tmp_path: Path, name: str, dtype: str) -> None:
    array = np.array([0, 1, 1, 0], dtype)
    file = tmp_path / "m.safetensors"
    file.write_bytes(safetensors_bytes({"a": entry(name, [2, 2], 0, array.nbytes)}, array.tobytes()))
    read = read_tensors(file)["a"]
    assert read.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(read, array.reshape(2, 2))


def test_an_unaligned_tensor_is_read(tmp_path: Path) -> None:
    file = tmp_path / "m.safetensors"
    header = {"flag": entry("U8", [1], 0, 1), "a": entry("F32", [2], 1, 9), "none": entry("F32", [0, 3], 9, 9)}
    file.write_bytes(safetensors_bytes(header, b"\1" + np.array([1.0, 2.0], "<f4").tobytes()))
    tensors = read_tensors(file)
    assert tensors["a"].tolist() == [1.0, 2.0]
    assert tensors["a"].flags.aligned
    assert tensors["none"].shape == (0, 3)


def test_metadata_and_padding_of_the_header_are_allowed(tmp_path: Path) -> None:
    file = tmp_path / "m.safetensors"
    header = b'{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}   '
    file.write_bytes(safetensors_bytes(header, np.float32(2.5).tobytes()))
    assert read_tensors(file)["a"].shape == ()


OK = {"a": entry("F32", [2], 0, 8), "b": entry("F32", [2], 8, 16)}
F32_PAIR = '"dtype":"F32","shape":[2]'

HOSTILE: dict[str, tuple[bytes, str]] = {
    "empty file": (b"", "has 0 bytes"),
    "seven bytes": (b"\0" * 7, "has 7 bytes"),
    "header length 0": (safetensors_bytes(b""), "begins with b''"),
    "header length 2^63": (safetensors_bytes(OK, bytes(16), length=2**63), "9,223,372,036,854,775,808 bytes"),
    "header length 2^64 - 1": (safetensors_bytes(OK, bytes(16), length=2**64 - 1), "18,446,744,073,709,551,615"),
    "header past the end": (safetensors_bytes(OK, bytes(16), length=5000), "5,000 bytes"),
    "header cut": (safetensors_bytes(OK, bytes(16), length=20), "not JSON"),
    "no JSON": (safetensors_bytes(b"hello", bytes(16)), "begins with b'h'"),
    "a list": (safetensors_bytes([1, 2]), r"begins with b'\['"),
    "text after the object": (safetensors_bytes(b"{} x"), "not JSON: Extra data"),
    "tab after the object": (safetensors_bytes(b"{}\t{}"), "not JSON: Extra data"),
    "NaN": (safetensors_bytes(b'{"a":{%s,"data_offsets":[0,NaN]}}' % F32_PAIR.encode()), "NaN"),
    "deep": (safetensors_bytes(b'{"a":' + b"[" * 60_000 + b"]" * 60_000 + b"}"), "60,001 levels deep"),
    "not UTF-8": (safetensors_bytes(b'{"\xff":{}}'), "not UTF-8"),
    "lone surrogate": (safetensors_bytes(b'{"\\ud800":{%s,"data_offsets":[0,8]}}' % F32_PAIR.encode()), "surrogate"),
    "a name twice": (safetensors_bytes(b'{"a":{},"a":{}}'), "'a' occurs twice"),
    "a field twice": (safetensors_bytes(b'{"a":{"dtype":"F32","dtype":"F16"}}'), "'dtype' occurs twice"),
    "overlap": (safetensors_bytes(OK | {"b": entry("F32", [2], 4, 12)}, bytes(12)), "'b' begins at byte 4, expected 8"),
    "same range": (safetensors_bytes(OK | {"b": entry("F32", [2], 0, 8)}, bytes(8)), "overlaps"),
    "gap": (safetensors_bytes(OK | {"b": entry("F32", [2], 12, 20)}, bytes(20)), "leaves a gap"),
    "gap at the start": (
        safetensors_bytes({"a": entry("F32", [2], 4, 12)}, bytes(12)),
        "begins at byte 4, expected 0",
    ),
    "bytes left over": (safetensors_bytes(OK, bytes(20)), "need 16 bytes of data, the file has 20"),
    "data cut": (safetensors_bytes(OK, bytes(12)), "need 16 bytes of data, the file has 12: it is truncated"),
    "range past the end": (safetensors_bytes({"a": entry("F32", [2**40], 0, 2**42)}, bytes(8)), "truncated"),
    "end before begin": (safetensors_bytes({"a": entry("F32", [2], 8, 0)}, bytes(8)), r"data_offsets \[8, 0\]"),
    "negative offset": (safetensors_bytes({"a": entry("F32", [2], -8, 0)}, bytes(8)), r"data_offsets \[-8, 0\]"),
    "float offset": (safetensors_bytes({"a": entry("F32", [2], 0, 8.0)}, bytes(8)), r"data_offsets \[0, 8\.0\]"),
    "huge offset": (safetensors_bytes({"a": entry("F32", [2], 0, 2**70)}, bytes(8)), "needs 8 bytes but has"),
    "three offsets": (
        safetensors_bytes({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4, 8]}}, bytes(8)),
        "data_offsets",
    ),
    "no offsets": (safetensors_bytes({"a": {"dtype": "F32", "shape": [2]}}, bytes(8)), "must be described by"),
    "another field": (safetensors_bytes({"a": {**OK["a"], "more": 1}}, bytes(8)), "must be described by"),
    "entry is a list": (safetensors_bytes({"a": [1]}, bytes(8)), "must be described by"),
    "unknown dtype": (safetensors_bytes({"a": entry("Q99", [2], 0, 8)}, bytes(8)), "dtype 'Q99'"),
    "8-bit floats": (safetensors_bytes({"a": entry("F8_E4M3", [8], 0, 8)}, bytes(8)), "F8_E4M3.* float32 first"),
    "dtype is a number": (safetensors_bytes({"a": {**OK["a"], "dtype": 7}}, bytes(8)), "dtype 7"),
    "shape and range differ": (safetensors_bytes({"a": entry("F16", [2], 0, 8)}, bytes(8)), "needs 4 bytes but has 8"),
    "negative dimension": (safetensors_bytes({"a": entry("F32", [-2], 0, 8)}, bytes(8)), r"shape \[-2\]"),
    "two negative dimensions": (safetensors_bytes({"a": entry("F32", [-1, -2], 0, 8)}, bytes(8)), "shape"),
    "product overflows": (safetensors_bytes({"a": entry("F32", [2**32, 2**32], 0, 0)}), "needs 73786976294838206464"),
    "empty but huge": (safetensors_bytes({"a": entry("F32", [0, 2**63], 0, 0)}), "larger than an array can have"),
    "dimension is a string": (safetensors_bytes({"a": entry("F32", ["2"], 0, 8)}, bytes(8)), r"shape \['2'\]"),
    "dimension is a boolean": (safetensors_bytes({"a": entry("F32", [True, 2], 0, 8)}, bytes(8)), "shape"),
    "5,001 dimensions": (safetensors_bytes({"a": entry("F32", [1] * 5000 + [2], 0, 8)}, bytes(8)), "at most 8"),
    "metadata is a number": (safetensors_bytes({"__metadata__": 3, **OK}, bytes(16)), "__metadata__"),
    "metadata with a number": (safetensors_bytes({"__metadata__": {"a": 1}, **OK}, bytes(16)), "__metadata__"),
    "a Git LFS pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git lfs pull"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_malformed_file_is_refused_quickly_with_its_name(tmp_path: Path, name: str) -> None:
    data, message = HOSTILE[name]
    file = tmp_path / "model.safetensors"
    file.write_bytes(data)
    start = time.process_time()
    with pytest.raises(CheckpointError, match=message) as caught:
        read_tensors(file)
    assert time.process_time() - start < 1.0
    assert str(caught.value).startswith(f"{file}")


def test_control_characters_of_a_name_are_escaped_in_messages(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(safetensors_bytes({"a\n\x1b[31m": entry("F32", [2], 0, 4)}, bytes(4)))
    with pytest.raises(CheckpointError) as caught:
        read_tensors(file)
    assert "'a\\n\\x1b[31m'" in str(caught.value)


def test_every_truncation_of_a_file_is_refused(tmp_path: Path) -> None:
    content = safetensors_bytes(OK, bytes(range(16)))
    file = tmp_path / "model.safetensors"
    for length in range(len(content)):
        file.write_bytes(content[:length])
        with pytest.raises(CheckpointError):
            read_tensors(file)
    file.write_bytes(content)
    assert set(read_tensors(file)) == {"a", "b"}


@given(data=st.data())
def test_a_changed_byte_gives_tensors_or_a_checkpoint_error(tmp_path_factory: Any, data: st.DataObject) -> None:
    content = bytearray(safetensors_bytes(OK, bytes(range(16))))
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    file = tmp_path_factory.mktemp("changed") / "model.safetensors"
    file.write_bytes(content)
    try:
        tensors = read_tensors(file)
    except CheckpointError:
        return
    assert sum(tensor.nbytes for tensor in tensors.values()) <= 64


# --- the choice of the file


@pytest.mark.parametrize(
    "name",
    [
        "tf_model.h5",
        "flax_model.msgpack",
        "bert_model.ckpt.data-00000-of-00001",
        "model.ckpt-1000.meta",
        "model.onnx",
        "model.gguf",
    ],
)
def test_another_format_is_refused_with_its_name_and_a_remedy(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(CheckpointError, match=name) as caught:
        find_weights(tmp_path)
    assert "save_pretrained" in str(caught.value)
    with pytest.raises(CheckpointError):
        read_tensors(tmp_path / name)


def test_formats_are_preferred_in_the_order_of_transformers(tmp_path: Path) -> None:
    names = [
        "pytorch_model.bin.index.json",
        "pytorch_model.bin",
        "model.safetensors.index.json",
        "model.safetensors",
    ]
    (tmp_path / "tf_model.h5").touch()
    for name in names:
        (tmp_path / name).touch()
        assert find_weights(tmp_path) == tmp_path / name


def test_a_folder_without_weights_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="has no weights"):
        find_weights(tmp_path)


def test_a_missing_or_unknown_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_tensors(tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"must end in \.safetensors"):
        read_tensors(tmp_path / "notes.txt")


# --- names


def check_same(tensors: dict[str, Any]) -> None:
    found = resolve(tensors, CONFIG, "file")
    assert found.unused == ()
    assert set(found.base) == set(bert_shapes(CONFIG))
    for name, weight in found.base.items():
        np.testing.assert_array_equal(weight, TENSORS[name])


def test_names_with_and_without_prefix_are_the_same_weights() -> None:
    check_same(TENSORS)
    check_same({f"bert.{name}": tensor for name, tensor in TENSORS.items()})


def test_the_prefix_of_data_parallel_training_is_stripped_when_all_names_have_it() -> None:
    check_same({f"module.bert.{name}": tensor for name, tensor in TENSORS.items()})
    mixed = {f"module.{name}": tensor for name, tensor in TENSORS.items()} | {"cls.x": np.zeros(1, np.float32)}
    with pytest.raises(CheckpointError, match="37 of 37 weights are missing"):
        resolve(mixed, CONFIG, "file")


def test_gamma_and_beta_are_weight_and_bias_of_a_layer_norm() -> None:
    renamed = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in TENSORS.items()
    }
    assert "embeddings.LayerNorm.gamma" in renamed
    check_same(renamed)
    with pytest.raises(CheckpointError, match=r"'embeddings\.LayerNorm\.weight' occurs twice"):
        resolve(TENSORS | {"embeddings.LayerNorm.gamma": TENSORS["embeddings.LayerNorm.weight"]}, CONFIG, "file")


def test_index_buffers_and_pretraining_heads_are_dropped_silently() -> None:
    extra = {"embeddings.position_ids": np.arange(24)[None], "cls.predictions.bias": np.zeros(110, np.float32)}
    check_same(TENSORS | extra)
    prefixed = {f"bert.{name}": tensor for name, tensor in TENSORS.items()}
    check_same(prefixed | {"bert.embeddings.position_ids": np.arange(24)[None], "cls.x": np.zeros(1, np.float32)})


def test_other_tensors_are_reported() -> None:
    extra = {"classifier.weight": np.zeros((2, 24), np.float32), "bert.scalar": np.float32(1)}
    prefixed = {f"bert.{name}": tensor for name, tensor in TENSORS.items()} | extra
    assert resolve(prefixed, CONFIG, "file").unused == ("classifier.weight", "bert.scalar")
    with pytest.warns(CheckpointWarning, match=r"2 tensors are not used: 'classifier\.weight', 'bert\.scalar'"):
        BertModel(CONFIG, prefixed)


def test_the_prefix_is_chosen_for_the_entire_file() -> None:
    """A weight under the other prefix counts as missing: it may belong to another model."""
    mixed = {f"bert.{name}": tensor for name, tensor in TENSORS.items()}
    mixed["embeddings.LayerNorm.bias"] = mixed.pop("bert.embeddings.LayerNorm.bias")
    with pytest.raises(CheckpointError, match=r"1 of 39 weights are missing: 'bert\.embeddings\.LayerNorm\.bias'"):
        resolve(mixed, CONFIG, "file")


@pytest.mark.parametrize("name", [name for name in TENSORS if not name.startswith("pooler")])
def test_a_missing_weight_is_named(name: str) -> None:
    with pytest.raises(CheckpointError, match=f"^file: 1 of 39 weights are missing: '{name}'"):
        resolve({key: tensor for key, tensor in TENSORS.items() if key != name}, CONFIG, "file")


def test_a_pooler_may_be_absent_but_not_in_part() -> None:
    no_pooler = {name: tensor for name, tensor in TENSORS.items() if not name.startswith("pooler")}
    assert not any(name.startswith("pooler") for name in resolve(no_pooler, CONFIG, "file").base)
    half = no_pooler | {"pooler.dense.bias": TENSORS["pooler.dense.bias"]}
    with pytest.raises(CheckpointError, match=r"'pooler\.dense\.weight'"):
        resolve(half, CONFIG, "file")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (
            "vocab_size",
            200,
            r"word_embeddings\.weight has shape \[110, 24\].* requires \[200, 24\]: vocab_size is 200$",
        ),
        ("hidden_size", 48, r"\[110, 24\].*\[110, 48\]: hidden_size is 48$"),
        ("type_vocab_size", 3, r"token_type_embeddings\.weight has shape \[2, 24\].*: type_vocab_size is 3$"),
        ("max_position_embeddings", 25, r"position_embeddings\.weight .*: max_position_embeddings is 25$"),
        ("intermediate_size", 21, r"intermediate\.dense\.weight .*: intermediate_size is 21$"),
        ("num_hidden_layers", 3, r"16 of 55 weights are missing: 'encoder\.layer\.2\."),
    ],
)
def test_a_shape_that_does_not_fit_names_tensor_shapes_and_field(field: str, value: int, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        resolve(TENSORS, BertConfig.from_dict({**SMALL, field: value}), "file")


def test_unused_layers_are_reported() -> None:
    found = resolve(TENSORS, BertConfig.from_dict({**SMALL, "num_hidden_layers": 1}), "file")
    assert len(found.unused) == 16
    assert all(name.startswith("encoder.layer.1.") for name in found.unused)


def test_quantized_weights_are_refused() -> None:
    name = "encoder.layer.0.output.dense.weight"
    with pytest.raises(CheckpointError, match=f"{name} holds int8 numbers"):
        resolve(TENSORS | {name: TENSORS[name].astype(np.int8)}, CONFIG, "file")


def test_the_stored_precision_changes_only_the_rounding(tmp_path: Path) -> None:
    for dtype in ("F64", "F16", "BF16"):
        tensors = read_tensors(write_safetensors(tmp_path / "model.safetensors", TENSORS, dtype))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            out = BertModel(CONFIG, tensors)([[1, 2, 3]])
        expected = BertModel(CONFIG, TENSORS)([[1, 2, 3]])
        np.testing.assert_allclose(
            out.last_hidden_state, expected.last_hidden_state, atol={"F64": 0, "F16": 5e-3, "BF16": 5e-2}[dtype]
        )
