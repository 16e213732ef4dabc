"""SentenceEncoder.save_pretrained: what is loaded again, here and in sentence-transformers, gives the same vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_files import MODELS, sentence_folder, write_safetensors
from wordpiece_bert.sentence import SentenceEncoder

LISTING = json.loads((MODELS / "sentence_reference.json").read_text(encoding="utf-8"))
REFERENCE = np.load(MODELS / "sentence_reference.npz")
FOLDERS = sorted(folder.name for folder in MODELS.glob("sentence_*") if (folder / "modules.json").is_file())
TEXTS: list[str] = LISTING["sentence_max"]["texts"]

pytestmark = pytest.mark.filterwarnings("ignore::wordpiece_bert.errors.TruncationWarning")


def change(file: Path, **values: Any) -> None:
    content = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    file.write_text(json.dumps({**content, **values}), encoding="utf-8")


def add_module(folder: Path, kind: str, config: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Append a module to a folder."""
    listing = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    number = len(listing)
    path = f"{number}_{kind}"
    listing.append({"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"})
    (folder / "modules.json").write_text(json.dumps(listing), encoding="utf-8")
    (folder / path).mkdir()
    change(folder / path / "config.json", **config)
    write_safetensors(folder / path / "model.safetensors", arrays)


def everything(folder: Path) -> Path:
    """Add to a folder every kind of module, prompts, and settings that are not the defaults."""
    random = np.random.default_rng(5)

    def array(*shape: int) -> Any:
        return random.normal(size=shape).astype(np.float32)

    config = {"in_features": 96, "out_features": 20, "activation_function": "torch.nn.modules.activation.GELU"}
    residual = {"bias": False, "use_residual": True}
    arrays = {"linear.weight": array(20, 96), "residual.weight": array(20, 96)}
    add_module(folder, "Dense", config | residual, arrays)
    add_module(folder, "LayerNorm", {"dimension": 20}, {"norm.weight": array(20), "norm.bias": array(20)})
    config = {"in_features": 20, "out_features": 20, "activation_function": "torch.nn.modules.linear.Identity"}
    arrays = {"linear.weight": array(20, 20), "linear.bias": array(20)}
    add_module(folder, "Dense", config | {"use_residual": True}, arrays)
    change(
        folder / "config_sentence_transformers.json",
        prompts={"query": "a b: ", "document": "", "title": "the "},
        default_prompt_name="title",
        similarity_fn_name="manhattan",
        truncate_dim=15,
    )
    change(folder / "sentence_bert_config.json", max_seq_length=9)
    return folder


def assert_equal(first: SentenceEncoder, second: SentenceEncoder) -> None:
    for options in ({}, {"truncate_dim": 7}, {"normalize_embeddings": True}, {"output_value": "token_embeddings"}):
        for one, other in zip(first.encode(TEXTS, **options), second.encode(TEXTS, **options), strict=True):
            np.testing.assert_array_equal(one, other)
    for name in first.prompts:
        one, other = (model.encode(TEXTS, prompt_name=name) for model in (first, second))
        np.testing.assert_array_equal(one, other)
    for attribute in ("prompts", "similarity_fn_name", "dimension", "max_seq_length", "tokenizer"):
        assert getattr(first, attribute) == getattr(second, attribute)
    np.testing.assert_array_equal(first.encode_query(TEXTS), second.encode_query(TEXTS))
    np.testing.assert_array_equal(first.encode_document(TEXTS), second.encode_document(TEXTS))


@pytest.mark.parametrize("name", [*FOLDERS, "everything", "sentence_plain_folder"])
def test_what_is_saved_and_loaded_gives_the_same_vectors(tmp_path: Path, name: str) -> None:
    if name == "everything":
        folder = everything(sentence_folder("sentence_concat", tmp_path))
    else:
        folder = MODELS / name if name == "sentence_plain_folder" else sentence_folder(name, tmp_path)
    model = SentenceEncoder(folder)
    model.save_pretrained(tmp_path / "saved")
    again = SentenceEncoder(tmp_path / "saved")
    assert_equal(model, again)
    again.save_pretrained(tmp_path / "twice")
    files = sorted(path.relative_to(tmp_path / "saved") for path in (tmp_path / "saved").rglob("*") if path.is_file())
    for file in files:
        assert (tmp_path / "saved" / file).read_bytes() == (tmp_path / "twice" / file).read_bytes(), file
    # The numbers of sentence-transformers with the folder that was saved.
    if name != "everything":
        np.testing.assert_allclose(again.encode(TEXTS), REFERENCE[f"{name}.embeddings"], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", [*FOLDERS, "everything"])
def test_sentence_transformers_reads_what_is_saved(tmp_path: Path, name: str) -> None:
    peer = pytest.importorskip("sentence_transformers", reason="needs sentence-transformers, and with it torch")
    base = sentence_folder("sentence_concat" if name == "everything" else name, tmp_path)
    model = SentenceEncoder(everything(base) if name == "everything" else base)
    model.save_pretrained(tmp_path / "saved")
    theirs = peer.SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    np.testing.assert_allclose(theirs.encode(TEXTS), model.encode(TEXTS), rtol=0, atol=1e-5)
    assert theirs.prompts == model.prompts
    assert theirs.max_seq_length == model.max_seq_length


def test_a_maximum_that_was_set_is_saved(tmp_path: Path) -> None:
    model = SentenceEncoder(sentence_folder("sentence_concat", tmp_path))
    model.max_seq_length = 5
    model.save_pretrained(tmp_path / "saved")
    assert_equal(model, SentenceEncoder(tmp_path / "saved"))


def test_lower_case_keeps_the_settings_of_the_tokenizer(tmp_path: Path) -> None:
    folder = sentence_folder("sentence_max", tmp_path)
    change(folder / "sentence_bert_config.json", do_lower_case=True, max_seq_length=7)
    config = {"model_max_length": 11, "padding_side": "left", "truncation_side": "left"}
    change(folder / "tokenizer_config.json", **config, model_input_names=["input_ids", "attention_mask"])
    file = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    file["normalizer"]["lowercase"] = False
    (folder / "tokenizer.json").write_text(json.dumps(file), encoding="utf-8")
    change(folder / "tokenizer_config.json", do_lower_case=False)
    model = SentenceEncoder(folder)
    model.save_pretrained(tmp_path / "saved")
    for tokenizer in (model.tokenizer, SentenceEncoder(tmp_path / "saved").tokenizer):
        assert tokenizer.encode("THE").ids == tokenizer.encode("the").ids
        assert tokenizer.model_max_length == 11
        assert (tokenizer.padding_side, tokenizer.truncation_side) == ("left", "left")
        assert list(tokenizer("the")) == ["input_ids", "attention_mask"]
    assert_equal(model, SentenceEncoder(tmp_path / "saved"))
