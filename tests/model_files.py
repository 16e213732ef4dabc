"""Reference models of tests/data/models, and checkpoint files made by hand."""

# ruff: noqa: ANN401 (arrays, and values of a wrong type)

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np

MODELS = Path(__file__).parent / "data" / "models"

#: What config.json of bert_small says, in short.
SMALL = {
    "model_type": "bert",
    "vocab_size": 110,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 24,
    "type_vocab_size": 2,
}


def reference_cases(folder: str) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """{case: (inputs, outputs)} of a model's reference.npz."""
    arrays = np.load(MODELS / folder / "reference.npz")
    cases: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for key in arrays:
        case, side, name = key.split(".")
        cases.setdefault(case, ({}, {}))[side == "out"][name] = arrays[key]
    return cases


def sentence_folder(name: str, place: Path) -> Path:
    """Lay the files of a sentence_* folder over those of sentence_plain_folder, whose weights and vocabulary they share."""
    folder = place / name
    shutil.copytree(MODELS / "sentence_plain_folder", folder)
    shutil.copytree(MODELS / name, folder, dirs_exist_ok=True)
    if (folder / "0_Transformer").is_dir():  # the old layout has all of the Transformer in a folder of its own
        for file in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
            (folder / file).rename(folder / "0_Transformer" / file)
    return folder


def safetensors_bytes(header: object, data: bytes = b"", *, length: int | None = None) -> bytes:
    """A safetensors file with any header (an object to write as JSON, or raw bytes) and any header length."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype: str, shape: list[Any], begin: Any, end: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def write_safetensors(file: Path, tensors: dict[str, Any], dtype: str = "F32") -> Path:
    """Write float32 arrays as F32, F16, F64 or BF16 (the upper half of each float32); integers as I64."""
    header, data = {}, b""
    for name, array in tensors.items():
        stored, kind = np.asarray(array), dtype
        if np.issubdtype(stored.dtype, np.integer):
            stored, kind = stored.astype("<i8"), "I64"
        elif dtype == "BF16":
            stored = (stored.astype("<f4").view("<u4") >> 16).astype("<u2")
        else:
            stored = stored.astype({"F16": "<f2", "F32": "<f4", "F64": "<f8"}[dtype])
        header[name] = entry(kind, list(stored.shape), len(data), len(data) + stored.nbytes)
        data += stored.tobytes()
    file.write_bytes(safetensors_bytes(header, data))
    return file


def with_tokenizer(name: str, place: Path) -> Path:
    """Lay a model over the tokenizer of sentence_plain_folder, which all but MPNet share."""
    folder = place / name
    folder.mkdir()
    for file in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(MODELS / "sentence_plain_folder" / file, folder)
    shutil.copytree(MODELS / name, folder, dirs_exist_ok=True)
    return folder


def check_equal(out: Any, expected: dict[str, Any], mask: Any, tolerance: float = 1e-5) -> None:
    """Compare what a model gave with the reference, at visible places; queries at padding places do not count."""
    for name, wanted in expected.items():
        value = getattr(out, name)
        found = np.stack(value) if isinstance(value, tuple) else np.asarray(value)
        wanted = np.asarray(wanted)
        assert found.dtype == np.float32, name
        assert found.shape == wanted.shape, name
        if mask is not None:
            seen = np.asarray(mask).reshape(-1, np.shape(mask)[-1]) != 0
            if name == "attentions":
                found, wanted = found.swapaxes(2, 3)[:, seen], wanted.swapaxes(2, 3)[:, seen]
            elif name == "hidden_states":
                found, wanted = found[:, seen], wanted[:, seen]
            elif found.shape[:2] == np.shape(mask):
                found, wanted = found[np.asarray(mask) != 0], wanted[np.asarray(mask) != 0]
        np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance, err_msg=name)
