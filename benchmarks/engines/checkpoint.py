"""Reads a BERT encoder's folder, for the programs that write it in another engine's format. It needs nothing but NumPy."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def read_config(folder: Path) -> dict[str, Any]:
    """Return config.json, with the default epsilon."""
    return {"layer_norm_eps": 1e-12} | json.loads((folder / "config.json").read_text(encoding="utf-8"))


def read_weights(file: Path) -> dict[str, Any]:
    """Return the float32 tensors of a trusted safetensors file, writable."""
    with file.open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        entries = json.loads(stream.read(length))
        tensors = {}
        for name, entry in entries.items():
            if name != "__metadata__" and entry["dtype"] == "F32":
                begin, end = entry["data_offsets"]
                stream.seek(8 + length + begin)
                tensor = np.fromfile(stream, "<f4", (end - begin) // 4).reshape(entry["shape"])
                tensors[name.removeprefix("bert.")] = tensor
    return tensors


def read_vocabulary(folder: Path, size: int) -> list[str]:
    """Return the tokens in the order of their ids; of a model without a tokenizer, placeholders."""
    file = folder / "vocab.txt"
    tokens = file.read_text(encoding="utf-8").split("\n")[:size] if file.exists() else list(SPECIAL)
    tokens = [token for token in tokens if token]
    return [*tokens, *(f"[unused-{index}]" for index in range(len(tokens), size))]
