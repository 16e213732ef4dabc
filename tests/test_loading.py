"""Loading a model: tensors are read when they are packed, and peak memory stays near the memory of the weights."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_files import MODELS
from processes import printed
from test_torch_files import state, storage, tensor
from wordpiece_bert.bert import AutoModel, BertConfig, BertForMaskedLM, BertModel
from wordpiece_bert.bert.checkpoint import find_weights, read_tensors, write_safetensors
from wordpiece_bert.bert.checkpoint.files import open_tensors
from wordpiece_bert.bert.checkpoint.names import bert_shapes
from wordpiece_bert.bert.engines.layer_inputs import LayerInputs
from wordpiece_bert.bert.engines.packing import DensePacker
from wordpiece_bert.bert.engines.rust_layers import (
    LayerPacker,
    build_kernels,
    layer_stages,
    part_of,
    row_columns,
    with_tables_loaded,
)
from wordpiece_bert.bert.half_precision import BFLOAT16, native, to_bfloat16
from wordpiece_bert.bert.plan.parts import Dense
from wordpiece_bert.bert.stored_tensor import NumbersFile, Scratch, StoredTensor, TransposedTensor, blocks, loaded_all
from wordpiece_bert.errors import CheckpointError

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")

#: A model of 213 MB, whose largest tensor has 63 MB and whose layers have 13 MB each.
CONFIG = BertConfig(
    vocab_size=30_522, hidden_size=512, num_hidden_layers=12, num_attention_heads=8, intermediate_size=2048
)
LARGEST = 4 * 30_522 * 512

#: The peak of loading over the process after its imports, and the size of the weights.
PEAK = """
import sys

from wordpiece_bert.bert import BertModel

def peak():
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) * 1024

before = peak()
model = BertModel.from_pretrained(sys.argv[1], dtype=sys.argv[2])
# Where the products of bfloat16 are those of float32, the rounded weights of the layers are stored as float32.
rounded = model.dtype == "bfloat16" and not model.engine.instructions.endswith("-bf16")
print(peak() - before, sum(w.nbytes * (2 if rounded and w.dtype.itemsize == 2 else 1) for w in model._weights.values()))
"""


def random_weights(config: BertConfig) -> dict[str, Any]:
    random = np.random.default_rng(0)
    weights = {}
    for name, sizes in bert_shapes(config).items():
        shape = [getattr(config, size) if isinstance(size, str) else size for size in sizes]
        weights[name] = random.standard_normal(shape, np.float32) * np.float32(0.02)
        if name.endswith("LayerNorm.weight"):
            weights[name] += 1
    return weights


def write_shards(folder: Path, weights: dict[str, Any]) -> None:
    parts = {name: f"model-{i % 3}.safetensors" for i, name in enumerate(weights)}
    for file in set(parts.values()):
        write_safetensors(folder / file, {name: weights[name] for name in weights if parts[name] == file})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": parts}))


def write_bin(folder: Path, weights: dict[str, Any]) -> None:
    """Write a file as torch.save does."""
    views = {}
    for i, (name, weight) in enumerate(weights.items()):
        strides = tuple(math.prod(weight.shape[axis + 1 :]) for axis in range(weight.ndim))
        views[name] = tensor(storage(str(i), count=weight.size), 0, weight.shape, strides)
    with zipfile.ZipFile(folder / "pytorch_model.bin", "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", state(**views))
        for i, weight in enumerate(weights.values()):
            archive.writestr(f"archive/data/{i}", weight.tobytes())


FORMS: dict[str, Any] = {
    "safetensors": lambda folder, weights: write_safetensors(folder / "model.safetensors", weights),
    "bfloat16": lambda folder, weights: write_safetensors(
        folder / "model.safetensors", {name: to_bfloat16(weight) for name, weight in weights.items()}
    ),
    "shards": write_shards,
    "bin": write_bin,
}


@pytest.fixture(scope="module")
def weights() -> dict[str, Any]:
    return random_weights(CONFIG)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that is removed at once: pytest keeps the folders of three runs."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def peak_and_size(folder: Path, dtype: str) -> tuple[int, int]:
    peak, size = map(int, " ".join(printed(PEAK, folder, dtype)).split())
    return peak, size


@LINUX
@pytest.mark.parametrize("form", FORMS)
def test_the_peak_of_loading_is_near_the_size_of_the_weights(form: str, weights: dict[str, Any], folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps(CONFIG.to_dict()))
    FORMS[form](folder, weights)
    allowed = {"float32": 45_000_000, "bfloat16": LARGEST + 30_000_000, "int8": LARGEST + 30_000_000}
    if form == "bfloat16":
        allowed |= {"bfloat16": LARGEST // 2 + 30_000_000, "int8": LARGEST // 2 + 30_000_000}
    for dtype, more in allowed.items():
        peak, size = peak_and_size(folder, dtype)
        assert peak <= size + more, f"{dtype}: {peak / 1e6:.0f} MB for weights of {size / 1e6:.0f}"


@LINUX
def test_the_peak_of_loading_an_int8_folder_is_near_the_size_of_the_weights(
    weights: dict[str, Any], folder: Path
) -> None:
    model = BertModel(CONFIG, weights, dtype="int8")
    model.save_pretrained(folder)
    del model
    peak, size = peak_and_size(folder, "int8")
    assert peak <= size + LARGEST // 4 + 30_000_000, f"{peak / 1e6:.0f} MB for weights of {size / 1e6:.0f}"


# --- what is read when


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("form", FORMS)
def test_a_model_from_a_file_has_the_weights_of_one_from_arrays(form: str, dtype: str, tmp_path: Path) -> None:
    config = BertConfig(
        vocab_size=300, hidden_size=48, num_hidden_layers=3, num_attention_heads=3, intermediate_size=80
    )
    weights = random_weights(config)
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict()))
    FORMS[form](tmp_path, weights)
    loaded = BertModel.from_pretrained(tmp_path, dtype=dtype)
    made = BertModel(config, read_tensors(find_weights(tmp_path)), dtype=dtype)
    expected = dict(made.named_parameters())
    found = dict(loaded.named_parameters())
    assert found.keys() == expected.keys()
    for name, weight in expected.items():
        np.testing.assert_array_equal(found[name], weight, err_msg=name)
    ids = np.arange(40).reshape(2, 20)
    np.testing.assert_array_equal(loaded(ids).last_hidden_state, made(ids).last_hidden_state)


@pytest.mark.parametrize("backend", ["rust", "numpy"])
def test_nothing_of_a_loaded_model_stays_in_the_file(backend: str) -> None:
    for folder in ("bert_small_masked_lm", "albert_model", "dpr_reader", "variant_bin_legacy", "variant_tensorflow"):
        model: Any = AutoModel.from_pretrained(MODELS / folder, backend)
        assert not [name for name, weight in model._weights.items() if isinstance(weight, StoredTensor)], folder


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_tied_decoder_is_the_word_table(dtype: str) -> None:
    model = BertForMaskedLM.from_pretrained(MODELS / "bert_small_masked_lm", dtype=dtype)
    table = model.base_model._weights["embeddings.word_embeddings.weight"]
    assert model._weights["bert.embeddings.word_embeddings.weight"] is table
    assert "cls.predictions.decoder.weight" not in model._weights
    assert model._head._decoder._weight is table  # type: ignore[attr-defined]


def test_wrong_shapes_are_refused_before_a_number_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(MODELS / "bert_small", tmp_path, dirs_exist_ok=True)
    tensors = read_tensors(tmp_path / "model.safetensors")
    name = "encoder.layer.1.output.dense.weight"
    reads = []
    monkeypatch.setattr(NumbersFile, "read_into", record(NumbersFile.read_into, reads))
    for wrong, message in (({name: tensors[name][:-1]}, f"{name} has shape"), ({}, f"1 of 39 weights.*{name}")):
        changed = {key: value for key, value in tensors.items() if key != name} | wrong
        write_safetensors(tmp_path / "model.safetensors", changed)
        header = len(json.dumps({})) + (tmp_path / "model.safetensors").read_bytes().index(b"}}") + 64
        for dtype in ("float32", "int8"):
            reads.clear()
            with pytest.raises(CheckpointError, match=message):
                BertModel.from_pretrained(tmp_path, dtype=dtype)
            assert max(reads) < header


def record(method: Any, offsets: list[int]) -> Any:
    def read_into(self: NumbersFile, offset: int, to: memoryview) -> None:
        offsets.append(offset)
        method(self, offset, to)

    return read_into


@pytest.mark.parametrize("folder", ["bert_small", "variant_bin_zip", "variant_bin_legacy", "variant_tensorflow"])
def test_opening_a_checkpoint_reads_no_tensor(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StoredTensor, "read", lambda *_: pytest.fail("read"))
    with open_tensors(find_weights(MODELS / folder)) as tensors:
        assert len(tensors) > 30
        assert all(isinstance(tensor, StoredTensor) for tensor in tensors.values())


# --- files that change


def write_numbers(file: Path, value: float) -> None:
    write_safetensors(file, {"a": np.full((64, 5), value, np.float32), "b": np.zeros(3, np.float32)})


def test_a_file_that_was_truncated_or_changed_since_it_was_opened_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    write_numbers(file, 1.0)
    with open_tensors(file) as tensors:
        with file.open("r+b") as stream:
            stream.truncate(file.stat().st_size - 400)
        with pytest.raises(CheckpointError, match=r"model\.safetensors: was shortened while it was read"):
            loaded_all(tensors)
    write_numbers(file, 1.0)
    with open_tensors(file) as tensors:
        with file.open("r+b") as stream:
            stream.write(b"\0")
        os.utime(file, ns=(1, 1))
        with pytest.raises(CheckpointError, match=r"model\.safetensors: was changed while it was read"):
            tensors["a"].read()  # type: ignore[union-attr]


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be replaced")
def test_a_file_that_was_replaced_since_it_was_opened_stays_the_same(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    write_numbers(file, 1.0)
    with open_tensors(file) as tensors:
        write_numbers(file, 2.0)  # atomically
        np.testing.assert_array_equal(tensors["a"].read(), np.ones((64, 5)))  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["embeddings.word_embeddings.weight", "encoder.layer.1.output.dense.weight"])
@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_int8_names_the_tensor_of_a_file_that_is_not_finite(name: str, bad: float, tmp_path: Path) -> None:
    shutil.copytree(MODELS / "bert_small", tmp_path, dirs_exist_ok=True)
    tensors = {key: value.copy() for key, value in read_tensors(tmp_path / "model.safetensors").items()}
    tensors[name][1, 2] = bad  # type: ignore[index]
    write_safetensors(tmp_path / "model.safetensors", tensors)
    with pytest.raises(CheckpointError, match=f"1 weights are NaN or infinite, which int8.*{name}"):
        BertModel.from_pretrained(tmp_path, dtype="int8")


# --- parts


DTYPES = [np.dtype(kind) for kind in ("<f4", ">f4", "<f8", "<f2", "<i4", "i1")] + [BFLOAT16]


@given(
    st.sampled_from(DTYPES),
    st.lists(st.integers(0, 6), max_size=3),
    st.integers(0, 9),
    st.integers(0, 7),
    st.integers(0, 7),
)
def test_stored_tensors_are_arrays_that_are_read_later(
    tmp_path_factory: Any, stored: Any, shape: list[int], before: int, start: int, stop: int
) -> None:
    numbers = np.random.default_rng(1).integers(0, 100, shape)
    array = to_bfloat16(numbers.astype(np.float32)) if stored == BFLOAT16 else numbers.astype(stored)
    array = np.asarray(array).reshape(shape)
    file = tmp_path_factory.mktemp("numbers") / "numbers"
    file.write_bytes(b"\0" * before + array.tobytes())
    expected = native(array)
    with NumbersFile(file) as source:
        tensor = StoredTensor(source, before, stored, tuple(shape))
        assert (tensor.shape, tensor.dtype, tensor.ndim) == (expected.shape, expected.dtype, expected.ndim)
        assert (tensor.size, tensor.nbytes) == (expected.size, expected.nbytes)
        np.testing.assert_array_equal(tensor.read(), expected)
        scratch = Scratch()
        for _ in range(2):  # the second time in the memory of the first
            scratch.clear()
            first, second = tensor.read(scratch), tensor.copy().read(scratch)
            np.testing.assert_array_equal(first, expected)
            np.testing.assert_array_equal(second, expected)
            assert not np.shares_memory(first, second)
        if shape:
            np.testing.assert_array_equal(tensor[start:stop].read(), expected[start:stop])
            joined = [expected[:0], *blocks(tensor)]
            np.testing.assert_array_equal(np.concatenate(joined), expected)
        if len(shape) == 2:
            transposed = TransposedTensor(tensor)
            assert transposed.shape == expected.T.shape
            assert len(list(blocks(transposed))) == 1
            for found in (transposed.read(), transposed.copy().read(Scratch()), transposed[:]):
                assert found.flags.c_contiguous
                np.testing.assert_array_equal(found, expected.T)


KINDS = [
    "bert_model",
    "albert_model",
    "deberta_conv_groups",
    "deberta_own_keys",
    "distilbert_model",
    "electra_model",
    "ernie_model",
    "gte_model",
    "jina_qk_norm",
    "megatron_model",
    "modernbert_biases",
    "modernbert_local_first",
    "mpnet_model",
    "neobert_model",
    "nomic_model",
    "roberta_model",
    "xlmr_model",
    "xlmr_xl_model",
]


@pytest.mark.parametrize("folder", KINDS)
def test_layers_observe_the_same_inputs_alone_as_in_the_whole_model(folder: str) -> None:
    model: Any = AutoModel.from_pretrained(MODELS / folder)
    config = model.config
    weights = with_tables_loaded(config.plan(), {name: unpacked(w) for name, w in model._encoder.weights.items()})
    random = np.random.default_rng(2)
    longest = min(config.usual_longest_row, 60)
    rows = [random.integers(2, config.vocab_size, random.integers(1, longest + 1)) for _ in range(40)]
    shared = shared_layers(config, weights)

    whole = DensePacker(shared, "float32", None, observed=True)
    layers = LayerPacker(config, shared, whole)
    for part in config.plan().embeddings.then:
        if isinstance(part, Dense):
            whole.pack(part.name)
    for index in range(config.encoder_layers):
        layers.pack(index)
    kernels = build_kernels(
        part_of(config.plan(), range(config.encoder_layers), begun=False), shared, whole.dense, config, None
    )
    ends = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    kernels.pooled(row_columns(config, np.concatenate(rows), ends), ["cls"], 0, 1)
    expected = whole.observed()

    first = DensePacker(shared, "float32", None)
    inputs = LayerInputs(config, shared, first, rows)
    stages = layer_stages(config, shared)
    assert len(stages) == (2 if folder == "albert_model" else config.encoder_layers)
    found = {name: seen for stage in stages for name, seen in inputs.observe(stage).items()}
    assert found.keys() == expected.keys()
    for name, (count, squares, greatest) in expected.items():
        assert found[name][0] == count
        np.testing.assert_array_equal(found[name][1], squares, err_msg=name)
        np.testing.assert_array_equal(found[name][2], greatest, err_msg=name)


def unpacked(weight: Any) -> Any:
    return weight if isinstance(weight, np.ndarray) else weight.unpack()


def shared_layers(config: Any, weights: dict[str, Any]) -> dict[str, Any]:
    """Make equal layers one, as they are in a file of ALBERT."""
    one: dict[bytes, Any] = {}
    names = [name for name in weights if name.startswith("encoder.layer.")] if config.model_type == "albert" else []
    return {**weights, **{name: one.setdefault(weights[name].tobytes(), weights[name]) for name in names}}


def test_layers_that_share_weights_run_together() -> None:
    config = BertConfig(num_hidden_layers=7)
    a, b, c, d = (np.zeros(1) for _ in range(4))
    for keys, expected in (
        ([a, b, c, d, *[np.zeros(1) for _ in range(3)]], [range(i, i + 1) for i in range(7)]),
        ([a] * 7, [range(7)]),
        ([a, a, a, b, b, c, d], [range(3), range(3, 5), range(5, 6), range(6, 7)]),
        ([a, b, a, b, c, d, c], [range(4), range(4, 7)]),
    ):
        weights = {f"encoder.layer.{i}.attention.self.query.weight": key for i, key in enumerate(keys)}
        assert layer_stages(config, weights) == expected  # type: ignore[arg-type]
