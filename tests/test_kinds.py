"""The kinds of folders: which files say what, and the class that loads each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from model_files import MODELS
from wordpiece_bert.errors import ConfigError
from wordpiece_bert.sentence.encoder_loading import encoder_class
from wordpiece_bert.sentence.folders.kinds import (
    CROSS,
    KINDS,
    MULTI_VECTOR,
    SENTENCE,
    SPARSE,
    STATIC,
    Kind,
    kind_of,
)

TABLE = [{"type": "sentence_transformers.models.StaticEmbedding", "path": ""}]
POOLED = [{"type": f"sentence_transformers.models.{kind}", "path": ""} for kind in ("Transformer", "Pooling")]
FOLDERS = [
    ({}, SENTENCE),
    ({"modules": POOLED}, SENTENCE),
    ({"config_sentence_transformers": {"model_type": "SentenceTransformer"}, "modules": POOLED}, SENTENCE),
    ({"config_sentence_transformers": {"model_type": ["SparseEncoder"]}}, SENTENCE),
    ({"config": {"architectures": ["BertForMaskedLM"]}}, SENTENCE),
    ({"config": {"architectures": "HF_ColBERT"}}, SENTENCE),
    ({"config_sentence_transformers": {"model_type": "SparseEncoder"}, "modules": TABLE}, SPARSE),
    ({"config_sentence_transformers": {"model_type": "CrossEncoder"}, "modules": POOLED}, CROSS),
    ({"config_sentence_transformers": {"model_type": "MultiVectorEncoder"}}, MULTI_VECTOR),
    ({"config_sentence_transformers": {"model_type": "ColBERT"}}, MULTI_VECTOR),
    ({"config": {"architectures": ["HF_ColBERT"]}}, MULTI_VECTOR),
    ({"config": {"architectures": ["HF_ColBERT"]}, "modules": POOLED}, SENTENCE),
    ({"modules": TABLE}, STATIC),
    ({"config": {"model_type": "model2vec"}}, STATIC),
    ({"config": {"architectures": ["StaticModel"]}}, STATIC),
    ({"config": {"model_type": "model2vec"}, "modules": POOLED}, SENTENCE),
]


def written(folder: Path, files: dict[str, Any]) -> Path:
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize(("files", "kind"), FOLDERS)
def test_files_say_what_kind_a_folder_is(files: dict[str, Any], kind: Kind, tmp_path: Path) -> None:
    assert kind_of(written(tmp_path, files)) is kind
    if kind is CROSS:
        with pytest.raises(ConfigError, match="is a model for CrossEncoder, which makes no vectors"):
            encoder_class(tmp_path)
    else:
        assert encoder_class(tmp_path).__name__ == kind.class_name


def test_every_kind_is_tested_and_has_a_name_of_its_own() -> None:
    assert {kind for _, kind in FOLDERS} == set(KINDS)
    assert len({kind.name for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("name", sorted(folder.name for folder in MODELS.glob("static_*")))
def test_every_static_model_is_one(name: str) -> None:
    assert kind_of(MODELS / name) is STATIC


def test_a_file_that_is_no_json_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text("[")
    with pytest.raises(ConfigError, match=r"modules\.json"):
        kind_of(tmp_path)
