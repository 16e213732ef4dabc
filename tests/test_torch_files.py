"""Files of torch.save in both formats: torch's files are read exactly, and all others are refused.

The payloads of hostile files would print a line if they were executed.
"""

from __future__ import annotations

import io
import pickle
import struct
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_files import MODELS, stored_dtypes
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.bert.half_precision import to_bfloat16
from wordpiece_bert.errors import CheckpointError

PAYLOAD = "HOSTILE PAYLOAD RAN"
FOUR = np.arange(4, dtype="<f4").tobytes()


# --- pickles by hand


def name(module: str, attribute: str) -> bytes:
    return f"c{module}\n{attribute}\n".encode()


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def number(value: int) -> bytes:
    if -(2**31) <= value < 2**31:
        return b"J" + struct.pack("<i", value)
    return b"\x8a\x09" + value.to_bytes(9, "little", signed=True)


def items(*parts: bytes) -> bytes:
    return b"(" + b"".join(parts) + b"t"


ORDERED_DICT = name("collections", "OrderedDict") + b")R"


def storage(key: str = "0", kind: str = "FloatStorage", count: int = 4, view: bytes = b"") -> bytes:
    return items(text("storage"), name("torch", kind), text(key), text("cpu"), number(count), view) + b"Q"


def tensor(
    of: bytes = storage(), offset: int = 0, size: tuple[int, ...] = (4,), stride: tuple[int, ...] = (1,)
) -> bytes:
    sizes = items(*map(number, size)) + items(*map(number, stride))
    return name("torch._utils", "_rebuild_tensor_v2") + items(of, number(offset), sizes, b"\x89", ORDERED_DICT) + b"R"


def state(**tensors: bytes) -> bytes:
    return b"\x80\x02}(" + b"".join(text(key) + value for key, value in tensors.items()) + b"u."


def zipped(
    content: bytes, storages: Any = None, *, top: str = "archive", how: int = zipfile.ZIP_STORED, **more: bytes
) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as archive:
        archive.writestr(f"{top}/data.pkl", content)
        for entry, data in more.items():
            archive.writestr(f"{top}/{entry}", data)
        for key, data in ({"0": FOUR} if storages is None else storages).items():
            archive.writestr(f"{top}/data/{key}", data)
    return out.getvalue()


MACHINE = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}


def legacy(
    content: bytes, keys: list[str], data: bytes, *, magic: int = 0x1950A86A20F9469CFC6C, machine: Any = None
) -> bytes:
    parts = [pickle.dumps(part, 2) for part in (magic, 1001, MACHINE if machine is None else machine)]
    return b"".join(parts) + content + pickle.dumps(keys, 2) + data


OLD = state(a=tensor(storage(view=b"N")))
COUNT = struct.pack("<q", 4)


class Call:
    def __init__(self, function: Any, *arguments: Any) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.function, self.arguments


def read(folder: Path, data: bytes) -> dict[str, Any]:
    file = folder / "pytorch_model.bin"
    file.write_bytes(data)
    return read_tensors(file)


# --- files that torch wrote


SMALL = read_tensors(MODELS / "bert_small" / "model.safetensors")


@pytest.mark.parametrize(
    ("folder", "reference"),
    [
        ("variant_bin_legacy", "bert_small/model.safetensors"),
        ("variant_bin_views", "bert_small/model.safetensors"),
        ("variant_bin_ordereddict_half", "variant_float16/model.safetensors"),
        ("variant_bin_bfloat16_legacy", "variant_bfloat16/model.safetensors"),
    ],
)
def test_files_of_torch_have_the_numbers_of_the_safetensors_file(folder: str, reference: str) -> None:
    found = read_tensors(MODELS / folder / "pytorch_model.bin")
    expected = read_tensors(MODELS / reference)
    assert set(found) == set(expected)
    for key, array in expected.items():
        assert found[key].dtype == np.float32
        assert found[key].flags.c_contiguous
        assert found[key].flags.aligned
        np.testing.assert_array_equal(found[key], array)


def test_tensors_that_share_a_storage_share_their_memory() -> None:
    found = read_tensors(MODELS / "variant_bin_zip" / "pytorch_model.bin")
    assert found["cls.predictions.decoder.weight"] is found["bert.embeddings.word_embeddings.weight"]


@pytest.mark.parametrize("data", [zipped(state(a=tensor())), legacy(OLD, ["0"], COUNT + FOUR)], ids=["zip", "legacy"])
def test_a_small_file_is_read(tmp_path: Path, data: bytes) -> None:
    found = read(tmp_path, data)
    assert list(found) == ["a"]
    assert found["a"].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_views_are_copied(tmp_path: Path) -> None:
    views = {
        "transposed": tensor(size=(2, 2), stride=(1, 2)),
        "slice": tensor(offset=1, size=(2,), stride=(2,)),
        "scalar": tensor(offset=3, size=(), stride=()),
        "repeated": tensor(size=(2, 2), stride=(0, 1)),
        "empty": tensor(size=(0, 3), stride=(3, 1)),
    }
    found = read(tmp_path, zipped(state(**views)))
    assert found["transposed"].tolist() == [[0, 2], [1, 3]]
    assert found["slice"].tolist() == [1, 3]
    assert found["scalar"].tolist() == 3
    assert found["repeated"].tolist() == [[0, 1], [0, 1]]
    assert found["empty"].shape == (0, 3)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kind", ["HalfStorage", "BFloat16Storage", "DoubleStorage", "LongStorage"])
def test_views_of_every_width_are_copied(tmp_path: Path, kind: str, order: str) -> None:
    dtypes = {"HalfStorage": "f2", "DoubleStorage": "f8", "LongStorage": "i8"}
    numbers = np.array([1, 2, 3, 4, 5, 6], np.float32)
    data = to_bfloat16(numbers).view("<u2") if kind == "BFloat16Storage" else numbers.astype(dtypes[kind])
    of = storage(kind=kind, count=6)
    views = {"transposed": tensor(of, size=(3, 2), stride=(1, 3)), "empty": tensor(of, size=(2, 0), stride=(3, 1))}
    file = tmp_path / "pytorch_model.bin"
    stored = {"0": data.astype(data.dtype.newbyteorder(order)).tobytes()}
    file.write_bytes(zipped(state(**views), stored, byteorder=b"little" if order == "<" else b"big"))
    found = read_tensors(file)
    assert found["transposed"].tolist() == [[1, 4], [2, 5], [3, 6]]
    assert found["empty"].shape == (2, 0)
    assert {array.dtype for array in found.values()} == {np.dtype(np.int64 if kind == "LongStorage" else np.float32)}
    assert {dtype.itemsize for dtype in stored_dtypes(file).values()} == {data.itemsize}


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("DoubleStorage", "<f8"),
        ("HalfStorage", "<f2"),
        ("LongStorage", "<i8"),
        ("IntStorage", "<i4"),
        ("ShortStorage", "<i2"),
        ("CharStorage", "i1"),
        ("ByteStorage", "u1"),
        ("BoolStorage", "?"),
    ],
)
def test_every_dtype_of_storage_is_read(tmp_path: Path, kind: str, dtype: str) -> None:
    numbers = np.array([0, 1, 1, 0], dtype)
    for data in (
        zipped(state(a=tensor(storage(kind=kind))), {"0": numbers.tobytes()}),
        zipped(
            state(a=tensor(storage(kind=kind))),
            {"0": numbers.astype(numbers.dtype.newbyteorder(">")).tobytes()},
            byteorder=b"big",
        ),
        legacy(state(a=tensor(storage(kind=kind, view=b"N"))), ["0"], COUNT + numbers.tobytes()),
    ):
        found = read(tmp_path, data)["a"]
        assert found.tolist() == numbers.tolist()
        assert found.dtype == (np.float32 if numbers.dtype.kind == "f" else numbers.dtype)


def test_wrapped_state_dicts_are_read(tmp_path: Path) -> None:
    parameter = name("torch._utils", "_rebuild_parameter") + items(tensor(), b"\x88", ORDERED_DICT) + b"R"
    metadata = b"}(" + text("_metadata") + ORDERED_DICT + b"ub"
    for content in (
        b"\x80\x02" + ORDERED_DICT + b"(" + text("a") + parameter + b"u" + metadata + b".",
        b"\x80\x02" + name("collections", "OrderedDict") + items(b"](" + items(text("a"), tensor()) + b"e") + b"R.",
        b"\x80\x02}(" + text("epoch") + number(3) + text("state_dict") + state(a=tensor())[2:-1] + b"u.",
        b"\x80\x04}\x94\x8c\x01a"
        + tensor().replace(name("torch", "FloatStorage"), b"\x8c\x05torch\x8c\x0cFloatStorage\x93")
        + b"s.",
    ):
        assert read(tmp_path, zipped(content))["a"].tolist() == [0, 1, 2, 3]


# --- files that torch would not write


HOSTILE: dict[str, tuple[bytes, str]] = {
    "a call of print": (zipped(pickle.dumps(Call(print, PAYLOAD), 2)), r"names .*print.* not among the names"),
    "a call of print, old form": (pickle.dumps(Call(print, PAYLOAD), 2), "print"),
    "os.system": (zipped(b"\x80\x02" + name("os", "system") + items(text("true")) + b"R."), r"names 'os\.system'"),
    "eval": (zipped(b"\x80\x02" + name("builtins", "eval") + items(text("1")) + b"R."), r"'builtins\.eval'"),
    "torch.load": (zipped(b"\x80\x02" + name("torch", "load") + b")R."), r"'torch\.load'"),
    "an attribute of an allowed name": (
        zipped(b"\x80\x04\x8c\x0ctorch._utils\x8c\x1c_rebuild_tensor_v2.__class__\x93."),
        "_rebuild_tensor_v2.__class__",
    ),
    "a global that is no string": (zipped(b"\x80\x04K\x01K\x02\x93."), "whose name is not a string"),
    "INST": (zipped(b"\x80\x02(" + text(PAYLOAD) + b"ibuiltins\nprint\n."), "instruction 0x69"),
    "OBJ": (zipped(b"\x80\x02(" + name("builtins", "print") + b"o."), "builtins.print"),
    "NEWOBJ": (zipped(b"\x80\x02" + ORDERED_DICT + b")\x81."), "instruction 0x81"),
    "EXT1": (zipped(b"\x80\x02\x82\x01."), "instruction 0x82"),
    "PERSID": (zipped(b"\x80\x02P0\n."), "instruction 0x50"),
    "BINBYTES8": (zipped(b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"abc."), "instruction 0x8e"),
    "BUILD of a class": (
        zipped(b"\x80\x02" + ORDERED_DICT + b"}(" + text("__class__") + text("x") + b"ub."),
        "sets attributes",
    ),
    "BUILD of nothing": (zipped(b"\x80\x02K\x01}b."), "adds to a value that is not a dict"),
    "a storage called": (zipped(b"\x80\x02" + name("torch", "FloatStorage") + items(number(2**40)) + b"R."), "calls 'torch F"),
    "a number called": (zipped(b"\x80\x02K\x01)R."), "calls a value that is not a function"),
    "not a storage": (zipped(state(a=tensor(text("storage") + b"Q"))), "not a storage"),
    "another outside thing": (
        zipped(state(a=tensor(items(text("module"), name("torch", "FloatStorage"), text("0"), text("cpu"), number(4)) + b"Q"))),
        "not a storage",
    ),
    "an unknown kind": (zipped(state(a=tensor(storage(kind="QuantumStorage")))), "QuantumStorage"),
    "a path as key": (zipped(state(a=tensor(storage("../../0")))), "key is not a number"),
    "a missing entry": (zipped(state(a=tensor(storage("7")))), "no entry 'archive/data/7'"),
    "a short entry": (zipped(state(a=tensor()), {"0": FOUR[:10]}), "has 10 bytes in storage 0"),
    "a huge storage": (zipped(state(a=tensor(storage(count=2**60)))), "has 16 bytes in storage 0"),
    "a negative storage": (zipped(state(a=tensor(storage(count=-4)))), "impossible length"),
    "past the end": (zipped(state(a=tensor(size=(5,)))), "ends at number 4 of a storage of 4"),
    "a stride past the end": (zipped(state(a=tensor(size=(2, 2), stride=(1000, 1)))), "ends at number 1001"),
    "a negative offset": (zipped(state(a=tensor(offset=-4))), "not a number from 0"),
    "a negative stride": (zipped(state(a=tensor(stride=(-1,)))), "not a number from 0"),
    "a negative size": (zipped(state(a=tensor(size=(-4,)))), "not a number from 0"),
    "a product beyond 64 bits": (zipped(state(a=tensor(size=(2**40,) * 3, stride=(0,) * 3))), "spread over a storage of 4"),
    "8 TiB out of 16 bytes": (zipped(state(a=tensor(size=(2**31, 2**10), stride=(0, 0)))), "spread over a storage of 4"),
    "an empty array beyond 64 bits": (zipped(state(a=tensor(size=(0, 2**62), stride=(1, 1)))), "larger than an array can have"),
    "an empty array of halves": (
        zipped(state(a=tensor(storage(kind="HalfStorage"), size=(0, 2**61), stride=(1, 1))), {"0": bytes(8)}),
        "larger than an array can have",
    ),
    "sizes without strides": (zipped(state(a=tensor(size=(2, 2)))), "a different number of sizes and strides"),
    "nine dimensions": (zipped(state(a=tensor(size=(1,) * 9, stride=(1,) * 9))), "9 dimensions"),
    "a boolean as size": (
        zipped(state(a=name("torch._utils", "_rebuild_tensor_v2") + items(storage(), number(0), b"\x88\x85", b"K\x01\x85") + b"R")),
        "not a number from 0",
    ),
    "wrong arguments": (zipped(state(a=name("torch._utils", "_rebuild_tensor_v2") + items(number(1)) + b"R")), "wrong arguments"),
    "a parameter of nothing": (zipped(state(a=name("torch._utils", "_rebuild_parameter") + items(b"N", b"N", b"N") + b"R")), "not a tensor"),
    "no dict": (zipped(b"\x80\x02" + text("hello") + b"."), "holds a str"),
    "no tensor": (zipped(state(a=text("hello"))), "the value of 'a' is a str"),
    "a key that is no string": (zipped(b"\x80\x02}(" + number(3) + tensor() + b"u."), "not a string, but int"),
    "a deep tuple as key": (zipped(b"\x80\x02})" + b"\x85" * 120_000 + b"Ns."), "not a string, but tuple"),
    "a key twice": (zipped(b"\x80\x02}(" + text("a") + tensor() + text("a") + tensor() + b"u."), "key 'a' twice"),
    "a key without a value": (zipped(b"\x80\x02}(" + text("a") + b"u."), "a key and no value"),
    "a dict of no pairs": (zipped(b"\x80\x02" + name("collections", "OrderedDict") + items(b"](K\x01e") + b"R."), "that are not pairs"),
    "a slot never kept": (zipped(b"\x80\x02h\x09."), "memo entry 9, which does not exist"),
    "an empty stack": (zipped(b"\x80\x02R."), "pops from an empty stack"),
    "no mark": (zipped(b"\x80\x02K\x01t."), "no mark"),
    "a mark taken": (zipped(b"\x80\x02(R."), "pops from an empty stack"),
    "nothing to keep": (zipped(b"\x80\x02q\x00."), "stores a value of an empty stack"),
    "no end": (zipped(b"\x80\x02}"), "truncated"),
    "an unknown instruction": (zipped(b"\x80\x02\xf7."), "instruction 0xf7"),
    "a string beyond the end": (zipped(b"\x80\x02X\xff\xff\xff\x7fabc."), "truncated"),
    "a frame beyond the end": (zipped(b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"}."), "frame"),
    "a string that is not UTF-8": (zipped(b"\x80\x02X\x01\0\0\0\xff."), "not UTF-8"),
    "a long integer": (zipped(b"\x80\x02\x8a\x20" + bytes(32) + b"."), "integer of 32 bytes"),
    "a name without an end": (zipped(b"\x80\x02c" + b"a" * 1000), "a name without a line break"),
    "120,000 nested tuples": (zipped(b"\x80\x02)" + b"\x85" * 120_000 + b"."), "holds a tuple"),
    "a dict that holds itself": (zipped(b"\x80\x02}q\0(" + text("a") + b"h\0u."), "the value of 'a' is a dict"),
    "2^100 tuples": (zipped(b"\x80\x02)" + b"".join(b"q%ch%c\x86" % (i, i) for i in range(100)) + b"."), "holds a tuple"),
    "protocol 99": (zipped(b"\x80\x63}."), "protocol 99"),
    "more tensors than the file could hold": (
        zipped(state(**{f"t{i}": tensor(storage(count=50_000), i, (40_000,)) for i in range(100)}), {"0": bytes(200_000)}),
        "more than 8 times the size of the file",
    ),
    "one storage in two ways": (
        zipped(state(a=tensor(), b=tensor(storage(kind="IntStorage")))),
        "storage 0 in two ways",
    ),
    "an unknown byte order": (zipped(state(a=tensor()), byteorder=b"middle"), "byte order b'middle'"),
    "no data.pkl": (zipped(b"").replace(b"data.pkl", b"dota.pkl"), "0 entries X/data.pkl"),
    "a compressed entry": (zipped(state(a=tensor()), {"0": bytes(50)}, how=zipfile.ZIP_DEFLATED), "compressed"),
    "a bomb": (zipped(state(a=tensor(storage(count=2**22), size=(2**22,))), {"0": bytes(2**24)}, how=zipfile.ZIP_DEFLATED), "larger than the file"),
    "nothing": (b"", "begins neither as a zip archive nor as a pickle"),
    "a text": (b"hello, world", "begins neither"),
    "a Git LFS pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git lfs pull"),
    "a tar archive": (bytes(257) + b"ustar" + bytes(250), "tar archive"),
    "no magic number": (legacy(OLD, ["0"], COUNT + FOUR, magic=12345), "magic number"),
    "old, big-endian": (legacy(OLD, ["0"], COUNT + FOUR, machine={"little_endian": False}), "big-endian"),
    "old, cut": (legacy(OLD, ["0"], COUNT + FOUR)[:-1], "4 numbers; 15 bytes are left"),
    "old, a huge storage": (legacy(OLD, ["0"], struct.pack("<q", 2**60) + FOUR), "1152921504606846976 numbers"),
    "old, a negative storage": (legacy(OLD, ["0"], struct.pack("<q", -1) + FOUR), "has -1 numbers"),
    "old, a short storage": (legacy(OLD, ["0"], struct.pack("<q", 3) + FOUR), "has 3 numbers in storage 0"),
    "old, no storage": (legacy(OLD, [], b""), "has no storage '0'"),
    "old, a storage nobody uses": (legacy(OLD, ["0", "1"], (COUNT + FOUR) * 2), "'1' that no tensor uses"),
    "old, a storage twice": (legacy(OLD, ["0", "0"], (COUNT + FOUR) * 2), "does not list its storages"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_a_malformed_or_hostile_file_is_refused_quickly(
    tmp_path: Path, case: str, capfd: pytest.CaptureFixture[str]
) -> None:
    data, message = HOSTILE[case]
    start = time.process_time()
    with pytest.raises(CheckpointError, match=message) as caught:
        read(tmp_path, data)
    assert time.process_time() - start < 2.0
    assert str(caught.value).startswith(str(tmp_path / "pytorch_model.bin"))
    assert PAYLOAD not in "".join(capfd.readouterr())


def patched(data: bytes, offset: int, new: bytes) -> bytes:
    return data[:offset] + new + data[offset + len(new) :]


GOOD = zipped(state(a=tensor()))
END, CENTRAL = GOOD.rfind(b"PK\x05\x06"), GOOD.find(b"PK\x01\x02")


@pytest.mark.parametrize(
    "data",
    [
        patched(GOOD, END + 8, b"\xff\xff\xff\xff"),
        patched(GOOD, END + 10, b"\x07"),
        patched(GOOD, END + 16, struct.pack("<I", 0x7FFFFFFF)),
        patched(GOOD, CENTRAL + 42, struct.pack("<I", 0x7FFFFFFF)),
        patched(GOOD, CENTRAL + 42, struct.pack("<I", 4)),
        patched(GOOD, CENTRAL + 20, struct.pack("<II", 10**9, 10**9)),
        patched(GOOD, CENTRAL + 16, bytes(4)),
        patched(GOOD, CENTRAL + 8, b"\1"),
        patched(GOOD, 8, b"\x08"),
        patched(GOOD, 26, b"\xff\xff"),
    ],
    ids=["counts", "count", "directory", "entry", "header", "size", "sum", "encrypted", "method", "name"],
)
def test_an_inconsistent_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(CheckpointError, match=r"entr|zip archive"):
        read(tmp_path, data)


def test_entries_of_one_name_and_two_pickles_are_refused(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a/data.pkl", state(a=tensor()))
        archive.writestr("b/data.pkl", pickle.dumps(Call(print, PAYLOAD), 2))
    with pytest.raises(CheckpointError, match=r"2 entries X/data\.pkl"):
        read(tmp_path, out.getvalue())
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a/data.pkl", state(a=tensor()))
        archive.writestr("a/data/0", FOUR)
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a/data/0", FOUR[::-1])
    with pytest.raises(CheckpointError, match="two entries of one name"):
        read(tmp_path, out.getvalue())


@pytest.mark.parametrize("content", [GOOD, legacy(OLD, ["0"], COUNT + FOUR)], ids=["zip", "legacy"])
def test_every_truncation_is_refused(tmp_path: Path, content: bytes) -> None:
    for length in range(0, len(content), 3):
        with pytest.raises(CheckpointError):
            read(tmp_path, content[:length])


@given(data=st.data())
@pytest.mark.parametrize("content", [GOOD, legacy(OLD, ["0"], COUNT + FOUR)], ids=["zip", "legacy"])
def test_changed_bytes_give_tensors_or_a_checkpoint_error(
    tmp_path_factory: Any, content: bytes, data: st.DataObject
) -> None:
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        tensors = read(tmp_path_factory.mktemp("changed"), bytes(changed))
    except CheckpointError:
        return
    assert sum(array.nbytes for array in tensors.values()) <= 8 * len(content)


# The instructions of a pickle of tensors, and a few that are not allowed, to be drawn in any order.
INSTRUCTIONS = [
    b"(", b"0", b"1", b"2", b"N", b"\x88", b"K\x01", b")", b"t", b"\x85", b"\x86", b"\x87", b"]", b"a", b"e", b"}", b"s", b"u",
    b"h\x00", b"q\x00", b"\x94", b"Q", b"R", b"b", b"\x81", b"\x93", b"o", b"\x8f", b"\x90", b"\x91",
    text("a"), text("storage"), ORDERED_DICT, tensor(), storage(), name("builtins", "print"), name("torch", "FloatStorage"),
    name("torch._utils", "_rebuild_tensor_v2"), name("collections", "OrderedDict"),
]  # fmt: skip


@given(parts=st.lists(st.sampled_from(INSTRUCTIONS), max_size=30))
def test_any_program_gives_tensors_or_a_checkpoint_error(tmp_path_factory: Any, parts: list[bytes]) -> None:
    file = tmp_path_factory.mktemp("program") / "m.bin"
    file.write_bytes(zipped(b"\x80\x02" + b"".join(parts) + b"."))
    try:
        read_tensors(file)
    except CheckpointError:
        return


@given(data=st.binary(max_size=300), start=st.sampled_from([b"", b"PK\x03\x04", b"\x80\x02", GOOD[:40]]))
def test_any_bytes_give_a_checkpoint_error(tmp_path_factory: Any, data: bytes, start: bytes) -> None:
    with pytest.raises(CheckpointError):
        read(tmp_path_factory.mktemp("bytes"), start + data)
