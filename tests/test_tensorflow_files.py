"""TensorFlow checkpoints, written by this module from the description of the format, intact and malformed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_files import MODELS, check_equal, reference_cases
from wordpiece_bert.bert import BertForPreTraining, BertModel
from wordpiece_bert.bert.checkpoint import find_weights, read_tensors
from wordpiece_bert.bert.half_precision import BFLOAT16, to_bfloat16
from wordpiece_bert.errors import CheckpointError

MAGIC = 0xDB4775248B80FB57
DTYPES = {
    np.dtype("<f4"): 1,
    np.dtype("<f8"): 2,
    np.dtype("<i4"): 3,
    np.dtype("<i8"): 9,
    BFLOAT16: 14,
    np.dtype("<f2"): 19,
}


# --- a writer


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value)


def message(array: Any, offset: int, *, shard: int = 0, **changes: Any) -> bytes:
    """A BundleEntryProto."""
    values = {"dtype": DTYPES[array.dtype], "shape": array.shape, "offset": offset, "size": array.nbytes} | changes
    shape = b"".join(field(2, field(1, size)) for size in values["shape"])
    parts = [
        field(1, values["dtype"]),
        field(2, shape),
        field(3, shard),
        field(4, values["offset"]),
        field(5, values["size"]),
    ]
    return b"".join(parts) + varint(6 << 3 | 5) + bytes(4) + changes.get("more", b"")


def block(entries: list[tuple[bytes, bytes]], interval: int = 4) -> bytes:
    """A block of a table: each key shares a prefix with the one before, except every `interval`-th."""
    out, restarts, before = b"", [], b""
    for number, (key, value) in enumerate(entries):
        shared = 0
        if number % interval == 0:
            restarts.append(len(out))
        else:
            while shared < min(len(key), len(before)) and key[shared] == before[shared]:
                shared += 1
        out += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        before = key
    return out + b"".join(r.to_bytes(4, "little") for r in restarts) + len(restarts).to_bytes(4, "little")


def table(entries: list[tuple[bytes, bytes]], per_block: int = 7) -> bytes:
    out, handles = b"", []

    def add(content: bytes) -> bytes:
        nonlocal out
        handle = varint(len(out)) + varint(len(content))
        out += content + b"\0" + bytes(4)
        return handle

    for start in range(0, len(entries), per_block):
        part = entries[start : start + per_block]
        handles.append((part[-1][0], add(block(part))))
    meta = add(block([]))
    footer = meta + add(block(handles))
    return out + footer.ljust(40, b"\0") + MAGIC.to_bytes(8, "little")


def write(
    folder: Path, tensors: dict[str, Any], *, name: str = "bert_model.ckpt", header: bytes = field(1, 1) + field(2, 0)
) -> Path:
    entries, data = [(b"", header)], b""
    for key in sorted(tensors):
        array = tensors[key]
        if isinstance(array, bytes):
            entries.append((key.encode(), array))
            continue
        entries.append((key.encode(), message(array, len(data))))
        data += array.tobytes()
    (folder / f"{name}.index").write_bytes(table(entries))
    (folder / f"{name}.data-00000-of-00001").write_bytes(data)
    return folder / f"{name}.index"


def google_names(tensors: dict[str, Any]) -> dict[str, Any]:
    """PyTorch's names -> names of google-research/bert, with dense layers transposed."""
    special = {
        "cls.predictions.bias": "cls/predictions/output_bias",
        "cls.seq_relationship.weight": "cls/seq_relationship/output_weights",
        "cls.seq_relationship.bias": "cls/seq_relationship/output_bias",
    }
    renamed = {}
    for name, array in tensors.items():
        new = special.get(name) or name.replace("layer.", "layer_").replace(".", "/")
        if name not in special:
            if "LayerNorm" in name:
                new = new.replace("/weight", "/gamma").replace("/bias", "/beta")
            elif "_embeddings" in name:
                new = new.removesuffix("/weight")
            elif new.endswith("/weight"):
                new, array = new.removesuffix("/weight") + "/kernel", np.ascontiguousarray(array.T)
        renamed[new] = array
    return renamed


PRETRAINING: dict[str, Any] = dict(read_tensors(MODELS / "bert_small_pretraining" / "model.safetensors"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """BERT as Google released it: with the pre-training heads and the optimizer's variables."""
    shutil.copy(MODELS / "bert_small_pretraining" / "config.json", tmp_path / "bert_config.json")
    tensors = google_names(PRETRAINING)
    training = {f"{name}/adam_m": array for name, array in tensors.items()} | {"global_step": np.array(7, "<i8")}
    write(tmp_path, tensors | training)
    return tmp_path


# --- reading


def test_a_checkpoint_of_tensorflow_is_read() -> None:
    found = read_tensors(MODELS / "variant_tensorflow" / "bert_model.ckpt.index")
    assert set(found) == set(PRETRAINING)
    for name, array in PRETRAINING.items():
        np.testing.assert_array_equal(found[name], array)
    model = BertForPreTraining.from_pretrained(MODELS / "variant_tensorflow")
    for case in reference_cases("bert_small_pretraining").values():
        check_equal(model(**case[0]), case[1], case[0]["attention_mask"])


def test_a_release_of_google_gives_the_numbers_of_transformers(folder: Path) -> None:
    assert find_weights(folder).name == "bert_model.ckpt.index"
    for case in reference_cases("bert_small_pretraining").values():
        check_equal(BertForPreTraining.from_pretrained(folder)(**case[0]), case[1], case[0]["attention_mask"])


def test_names_and_layouts_become_those_of_pytorch(folder: Path) -> None:
    found = read_tensors(folder / "bert_model.ckpt.index")
    assert set(found) == set(PRETRAINING)
    for name, array in PRETRAINING.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].flags.c_contiguous
    encoder = BertModel.from_pretrained(folder)
    assert encoder.has_pooler


def test_heads_of_fine_tuning_have_their_names(tmp_path: Path) -> None:
    weights = np.arange(6, dtype="<f4").reshape(2, 3)
    found = read_tensors(write(tmp_path, {"output_weights": weights, "output_bias": weights[0]}))
    assert set(found) == {"classifier.weight", "classifier.bias"}
    np.testing.assert_array_equal(found["classifier.weight"], weights)
    found = read_tensors(
        write(tmp_path, {"cls/squad/output_weights": weights, "cls/squad/output_bias": weights[:, 0].copy()})
    )
    assert set(found) == {"qa_outputs.weight", "qa_outputs.bias"}


@pytest.mark.parametrize("dtype", ["<f4", "<f8", "<f2", "<i4", "<i8", "bfloat16"])
def test_every_dtype_is_read(tmp_path: Path, dtype: str) -> None:
    plain = np.array([[1.5, -2.0], [0.0, 3.0]], np.float32)
    array: Any = to_bfloat16(plain) if dtype == "bfloat16" else plain.astype(dtype)
    index = write(tmp_path, {"a": array})
    found = read_tensors(index)["a"]
    np.testing.assert_array_equal(found, plain.astype(array.dtype) if array.dtype.kind == "i" else plain)
    assert found.dtype == (array.dtype if array.dtype.kind == "i" else np.float32)


@given(data=st.data())
def test_any_names_survive_writing_and_reading(tmp_path_factory: Any, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.text("abc_/", min_size=1, max_size=8), max_size=40, unique=True))
    names = [name for name in names if name.rpartition("/")[2] not in ("kernel", "gamma", "beta")]
    tensors = {name: np.full(number % 3, number, "<f4") for number, name in enumerate(names)}
    found = read_tensors(write(tmp_path_factory.mktemp("names"), tensors))
    assert {tuple(array.tolist()) for array in found.values()} == {tuple(array.tolist()) for array in tensors.values()}
    assert len(found) == len(names)


def test_shards_are_separate_files(tmp_path: Path) -> None:
    a, b = np.ones(2, "<f4"), np.full(3, 2, "<f4")
    entries = [(b"", field(1, 2)), (b"a", message(a, 0)), (b"b", message(b, 0, shard=1))]
    (tmp_path / "m.ckpt.index").write_bytes(table(entries))
    (tmp_path / "m.ckpt.data-00000-of-00002").write_bytes(a.tobytes())
    (tmp_path / "m.ckpt.data-00001-of-00002").write_bytes(b.tobytes())
    assert {name: array.tolist() for name, array in read_tensors(tmp_path / "m.ckpt.index").items()} == {
        "a": [1, 1],
        "b": [2, 2, 2],
    }
    (tmp_path / "m.ckpt.data-00001-of-00002").unlink()
    with pytest.raises(CheckpointError, match="data-00001-of-00002: cannot be read"):
        read_tensors(tmp_path / "m.ckpt.index")


# --- the choice of the file


def test_other_formats_are_preferred(folder: Path) -> None:
    shutil.copy(MODELS / "bert_small_pretraining" / "model.safetensors", folder)
    assert find_weights(folder).name == "model.safetensors"


def test_several_checkpoints_in_one_folder_are_refused(folder: Path) -> None:
    shutil.copy(folder / "bert_model.ckpt.index", folder / "model.ckpt-1000.index")
    with pytest.raises(
        CheckpointError, match=r"several TensorFlow checkpoints: 'bert_model\.ckpt\.index', 'model\.ckpt-1000"
    ):
        find_weights(folder)


# --- malformed files


FOUR = np.arange(4, dtype="<f4")


@pytest.mark.parametrize(
    ("entry", "message_part"),
    [
        (message(FOUR, 0, size=12), "in 12 bytes"),
        (message(FOUR, 0, shape=(2**20, 2**20)), "in 16 bytes"),
        (message(FOUR, 0, shape=(2**40,)), "a dimension of"),
        (message(FOUR, 0, shape=(1,) * 9 + (4,)), "in 10 dimensions"),
        (message(FOUR, 4), "'a' ends at byte 20: truncated"),
        (message(FOUR, 2**60), "ends at byte 1,152,921,504,606,846,992"),
        (message(FOUR, 0, dtype=7), "a dtype that is not supported, TensorFlow's number 7"),
        (message(FOUR, 0, shard=1), "in shard 1 of 1"),
        (message(FOUR, 0, more=field(7, b"")), "in slices"),
        (message(FOUR, 0)[:-1], "truncated"),
        (message(FOUR, 0) + b"\x0b", "a field of wire type 3"),
        (message(FOUR, 0) + b"\x80" * 11, "more than ten bytes"),
    ],
)
def test_a_malformed_entry_is_refused(tmp_path: Path, entry: bytes, message_part: str) -> None:
    index = write(tmp_path, {"a": entry})
    (tmp_path / "bert_model.ckpt.data-00000-of-00001").write_bytes(FOUR.tobytes())
    with pytest.raises(CheckpointError, match=message_part):
        read_tensors(index)


def test_overlapping_tensors_are_refused(tmp_path: Path) -> None:
    index = write(tmp_path, {f"t{i}": message(FOUR, 0) for i in range(9)})
    (tmp_path / "bert_model.ckpt.data-00000-of-00001").write_bytes(FOUR.tobytes())
    with pytest.raises(CheckpointError, match="overlapping tensors"):
        read_tensors(index)


@pytest.mark.parametrize(
    ("header", "message_part"),
    [(field(1, 0), "0 shards"), (field(1, 10**6), "1000000 shards"), (field(1, 1) + field(2, 1), "big-endian")],
)
def test_a_malformed_header_is_refused(tmp_path: Path, header: bytes, message_part: str) -> None:
    with pytest.raises(CheckpointError, match=message_part):
        read_tensors(write(tmp_path, {"a": FOUR}, header=header))


def test_a_repeated_or_unordered_name_is_refused(tmp_path: Path) -> None:
    index = tmp_path / "m.ckpt.index"
    for names in ([b"b", b"a"], [b"a", b"a"]):
        index.write_bytes(table([(b"", field(1, 1)), *((name, message(FOUR, 0)) for name in names)]))
        with pytest.raises(CheckpointError, match="out of order"):
            read_tensors(index)
    with pytest.raises(CheckpointError, match=r"'x\.weight' twice"):
        read_tensors(write(tmp_path, {"x/gamma": FOUR, "x/kernel": FOUR}))


def test_another_file_is_refused(tmp_path: Path) -> None:
    index = tmp_path / "m.ckpt.index"
    for content in (b"", b"hello", bytes(48), table([])[:-1] + b"\0"):
        index.write_bytes(content)
        with pytest.raises(CheckpointError, match="magic number"):
            read_tensors(index)
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_tensors(tmp_path / "none.ckpt.index")


@given(data=st.data())
def test_changed_bytes_give_tensors_or_a_checkpoint_error(tmp_path_factory: Any, data: st.DataObject) -> None:
    index = write(tmp_path_factory.mktemp("changed"), {f"layer_{i}/kernel": FOUR for i in range(12)})
    content = bytearray(index.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    index.write_bytes(content)
    try:
        tensors = read_tensors(index)
    except CheckpointError:
        return
    assert sum(array.nbytes for array in tensors.values()) <= 2 * 12 * 16
