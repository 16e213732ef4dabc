"""Small readers of the formats of other programs, written from their descriptions and not from our writers."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

# --- TFRecord files of tf.train.Example


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked_crc(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def tfrecords(path: Path) -> Iterator[dict[str, list[Any]]]:
    """The features of each record; both checksums are checked."""
    data = path.read_bytes()
    at = 0
    while at < len(data):
        length, crc = struct.unpack_from("<QI", data, at)
        assert crc == masked_crc(data[at : at + 8])
        content = data[at + 12 : at + 12 + length]
        assert len(content) == length
        [crc] = struct.unpack_from("<I", data, at + 12 + length)
        assert crc == masked_crc(content)
        yield example(content)
        at += 16 + length


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a protocol buffer: number and value (int, or bytes)."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
            yield tag >> 3, value
        elif tag & 7 == 2:
            length, at = varint(data, at)
            yield tag >> 3, data[at : at + length]
            at += length
        else:
            assert tag & 7 == 5
            yield tag >> 3, data[at : at + 4]
            at += 4


def example(data: bytes) -> dict[str, list[Any]]:
    # Example {features = 1}, Features {map<string, Feature> feature = 1}, Feature {bytes = 1, float = 2, int64 = 3}
    found: dict[str, list[Any]] = {}
    for _, features in fields(data):
        for _, entry in fields(features):
            parts = dict(fields(entry))
            [(kind, values)] = list(fields(parts[2]))
            name = parts[1].decode()
            if kind == 3:
                found[name] = []
                for _, packed in fields(values):
                    if isinstance(packed, int):
                        found[name].append(packed)
                        continue
                    at = 0
                    while at < len(packed):
                        value, at = varint(packed, at)
                        found[name].append(value - (1 << 64) if value >= 1 << 63 else value)
            else:
                assert kind == 2
                found[name] = [one for _, packed in fields(values) for one in np.frombuffer(packed, "<f4").tolist()]
    return found


# --- shards of mosaicml-streaming (MDS)


def mds(folder: Path) -> Iterator[dict[str, Any]]:
    """The samples of a folder of shards."""
    index = json.loads((folder / "index.json").read_text())
    assert index["version"] == 2
    for shard in index["shards"]:
        assert shard["format"] == "mds"
        data = (folder / shard["raw_data"]["basename"]).read_bytes()
        assert len(data) == shard["raw_data"]["bytes"] <= shard["size_limit"]
        [n] = struct.unpack_from("<I", data)
        assert n == shard["samples"]
        offsets = np.frombuffer(data, "<u4", n + 1, 4)
        config = json.loads(data[4 * (n + 2) : offsets[0]])
        names, encodings, sizes = (config[f"column_{what}"] for what in ("names", "encodings", "sizes"))
        assert names == sorted(names) == shard["column_names"]
        assert (encodings, sizes) == (shard["column_encodings"], shard["column_sizes"])
        for first, end in pairwise(offsets.tolist()):
            sample = data[first:end]
            variable = sum(size is None for size in sizes)
            given = iter(np.frombuffer(sample, "<u4", variable).tolist())
            at = 4 * variable
            row = {}
            for name, encoding, size in zip(names, encodings, sizes, strict=True):
                length = next(given) if size is None else size
                row[name] = mds_value(encoding, sample[at : at + length])
                at += length
            assert at == len(sample)
            yield row


def mds_value(encoding: str, data: bytes) -> Any:
    if not encoding.startswith("ndarray"):
        return np.frombuffer(data, encoding)[0]
    dtype = np.dtype(encoding.split(":")[1])
    ndim, width = data[0] >> 2, 1 << (data[0] & 3)
    shape = np.frombuffer(data, f"<u{width}", ndim, 1)
    return np.frombuffer(data, dtype, offset=1 + ndim * width).reshape(shape)


# --- indexed datasets of Megatron-LM


def megatron(prefix: Path) -> tuple[list[list[int]], list[int]]:
    """The sequences, and the bounds of documents among them."""
    index, ids = (
        prefix.with_name(f"{prefix.name}.idx").read_bytes(),
        prefix.with_name(f"{prefix.name}.bin").read_bytes(),
    )
    assert index[:9] == b"MMIDIDX\x00\x00"
    version, code, sequences, documents = struct.unpack_from("<QBQQ", index, 9)
    assert version == 1
    dtype = {8: np.dtype("<u2"), 4: np.dtype("<i4")}[code]
    at = 9 + 25
    lengths = np.frombuffer(index, "<i4", sequences, at)
    pointers = np.frombuffer(index, "<i8", sequences, at + 4 * sequences)
    bounds = np.frombuffer(index, "<i8", documents, at + 12 * sequences)
    assert len(index) == at + 12 * sequences + 8 * documents
    rows = [np.frombuffer(ids, dtype, n, start).tolist() for n, start in zip(lengths, pointers, strict=True)]
    assert sum(map(len, rows)) * dtype.itemsize == len(ids)
    return rows, bounds.tolist()
