"""Reference models of tests/data/models, and checkpoint files made by hand."""

from __future__ import annotations

import json
import re
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np

from wordpiece_bert.bert.checkpoint.files import open_tensors

MODELS = Path(__file__).parent / "data" / "models"

#: The fields of config.json of bert_small that are not defaults.
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


def reference_vectors(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the texts and settings, and the arrays, that the reference program gave for an encoder."""
    listing = json.loads((MODELS / name / "reference.json").read_text(encoding="utf-8"))
    return listing, dict(np.load(MODELS / name / "reference.npz"))


def stored_dtypes(file: Path) -> dict[str, np.dtype[Any]]:
    """Return the dtypes that tensors have in a file, by name."""
    with open_tensors(file) as tensors:
        return {name: tensor.stored for name, tensor in tensors.items()}


def copied(name: str, parent: Path, file: str = "", **fields: Any) -> Path:
    """Copy a model's folder and change fields of one of its files; the value ... removes a field."""
    folder = parent / name
    shutil.copytree(MODELS / name, folder)
    if file:
        merged = json.loads((folder / file).read_text()) | fields
        (folder / file).write_text(json.dumps({key: value for key, value in merged.items() if value is not ...}))
    return folder


def sentence_folder(name: str, parent: Path) -> Path:
    """Copy a sentence_* folder over sentence_plain_folder, from which it has its weights and vocabulary."""
    folder = parent / name
    shutil.copytree(MODELS / "sentence_plain_folder", folder)
    shutil.copytree(MODELS / name, folder, dirs_exist_ok=True)
    if (folder / "0_Transformer").is_dir():  # the old layout has the Transformer in a separate folder
        for file in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
            (folder / file).rename(folder / "0_Transformer" / file)
    return folder


def safetensors_bytes(header: object, data: bytes = b"", *, length: int | None = None) -> bytes:
    """A safetensors file with any header (an object to be written as JSON, or raw bytes) and any header length."""
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


def with_tokenizer(name: str, parent: Path) -> Path:
    """Copy a model over the tokenizer of sentence_plain_folder, which all models but MPNet share."""
    folder = parent / name
    folder.mkdir()
    for file in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(MODELS / "sentence_plain_folder" / file, folder)
    shutil.copytree(MODELS / name, folder, dirs_exist_ok=True)
    return folder


def split_words(text: str) -> list[str]:
    """Words as runs of characters of one script: a `word_splitter` that needs no dictionary, and can be pickled."""
    return re.findall(r"[a-zA-Z\[\]]+|[0-9]+|[ぁ-ん]+|[ァ-ン]+|[一-龥]+|[^\s]", text)


def make_japanese(folder: Path) -> Path:
    """Replace the tokenizer of a folder by a Japanese one whose words another program finds."""
    for file in ("vocab.txt", "tokenizer_config.json"):
        (folder / file).write_bytes((MODELS / "japanese_wordpiece" / file).read_bytes())
    for file in ("tokenizer.json", "special_tokens_map.json"):
        (folder / file).unlink(missing_ok=True)
    return folder


def check_equal(out: Any, expected: dict[str, Any], mask: Any, tolerance: float = 1e-5) -> None:
    """Compare an output with the reference at visible positions; queries at masked positions are meaningless."""
    for name, reference in expected.items():
        value = getattr(out, name)
        found = np.stack(value) if isinstance(value, tuple) else np.asarray(value)
        reference = np.asarray(reference)
        assert found.dtype == np.float32, name
        assert found.shape == reference.shape, name
        if mask is not None:
            seen = np.asarray(mask).reshape(-1, np.shape(mask)[-1]) != 0
            if name == "attentions":
                found, reference = found.swapaxes(2, 3)[:, seen], reference.swapaxes(2, 3)[:, seen]
            elif name == "hidden_states":
                found, reference = found[:, seen], reference[:, seen]
            elif found.shape[:2] == np.shape(mask):
                found, reference = found[np.asarray(mask) != 0], reference[np.asarray(mask) != 0]
        np.testing.assert_allclose(found, reference, rtol=0, atol=tolerance, err_msg=name)
