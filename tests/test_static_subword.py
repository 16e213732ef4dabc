"""Static models whose tokenizer is byte-level BPE or Unigram: vectors against model2vec's, and what encoders do."""

from __future__ import annotations

import asyncio
import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_files import MODELS, copied, write_safetensors
from wordpiece_bert import SentenceEncoder, distill_static
from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.cli import main
from wordpiece_bert.errors import CheckpointError, InputError
from wordpiece_bert.sentence import StaticEncoder
from wordpiece_bert.sentence.dense import table
from wordpiece_bert.serve import ServerSettings
from wordpiece_bert.serve.kinds.served_model import USUAL
from wordpiece_bert.serve.metrics import Metrics
from wordpiece_bert.serve.models import Models
from wordpiece_bert.tokenizer.subword import SubwordTokenizer

pytest.importorskip("tokenizers")
pytestmark = pytest.mark.filterwarnings("ignore::wordpiece_bert.errors.TruncationWarning")

NAMES = ("m2v_unigram", "m2v_bpe")


def listing(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    folder = MODELS / name
    return json.loads((folder / "reference.json").read_text(encoding="utf-8")), dict(np.load(folder / "reference.npz"))


@pytest.mark.parametrize("name", NAMES)
def test_vectors_are_those_of_model2vec(name: str) -> None:
    reference, expected = listing(name)
    encoder = SentenceEncoder(MODELS / name)
    assert isinstance(encoder.tokenizer, SubwordTokenizer)
    for call in reference["calls"]:
        found = encoder.encode(reference["texts"], **call["options"])
        assert found.dtype == np.float32
        # model2vec sums up to 1,800 vectors of a text in float32.
        np.testing.assert_allclose(found, expected[call["key"]], rtol=0, atol=1e-5)
    again = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_array_equal(again.encode(reference["texts"]), encoder.encode(reference["texts"]))


@pytest.mark.parametrize("name", NAMES)
def test_token_vectors_and_ids_are_those_of_model2vec(name: str) -> None:
    reference, _ = listing(name)
    encoder = StaticEncoder(MODELS / name)
    weights = read_tensors(MODELS / name / "model.safetensors")
    factors = weights.get("weights")
    rows = encoder.encode(reference["texts"], output_value="token_embeddings")
    for row, ids in zip(rows, reference["ids"], strict=True):
        vectors = weights["embeddings"][ids] * (1 if factors is None else np.asarray(factors)[ids][:, None])
        assert len(row) == len(ids) or len(row) > len(ids) == 512  # the reference's ids are cut
        np.testing.assert_allclose(row[: len(ids)], vectors, rtol=0, atol=1e-6)


@given(
    texts=st.lists(st.text(alphabet="the city \U0001f600猫é", max_size=60), max_size=12),
    longest=st.sampled_from([None, 1, 3, 20]),
    step=st.sampled_from([1, 4, 1 << 15]),
)
@settings(max_examples=40, deadline=None)
def test_means_are_those_of_the_definition(texts: list[str], longest: int | None, step: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "_TOKENS_PER_STEP", step)
        for name in NAMES:
            encoder = StaticEncoder(MODELS / name)
            tokens = encoder.encode(texts, output_value="token_embeddings", max_length=longest) if texts else []
            found, truncated = encoder.encode(texts, max_length=longest, return_truncated=True)
            assert found.shape == (len(texts), 16)
            for vector, rows, cut, text in zip(found, tokens, truncated, texts, strict=True):
                mean = rows.astype(np.float64).mean(axis=0) if len(rows) else np.zeros(16)
                np.testing.assert_allclose(vector, mean / max(np.linalg.norm(mean), 1e-32), rtol=0, atol=1e-6)
                assert longest is not None or not cut, text


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_folder_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    reference, _ = listing(name)
    encoder = SentenceEncoder(MODELS / name)
    encoder.save_pretrained(tmp_path)
    again = SentenceEncoder(tmp_path)
    np.testing.assert_array_equal(again.encode(reference["texts"]), encoder.encode(reference["texts"]))
    assert json.loads((tmp_path / "tokenizer.json").read_text()) == json.loads(
        (MODELS / name / "tokenizer.json").read_text()
    )


def sentence_transformers_folder(parent: Path) -> Path:
    """The table in the layout of sentence-transformers, whose longest text is the one in tokenizer.json."""
    folder = parent / "static"
    home = folder / "0_StaticEmbedding"
    home.mkdir(parents=True)
    definition = json.loads((MODELS / "m2v_unigram" / "tokenizer.json").read_text(encoding="utf-8"))
    definition["truncation"] = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    (home / "tokenizer.json").write_text(json.dumps(definition), encoding="utf-8")
    tensors = read_tensors(MODELS / "m2v_unigram" / "model.safetensors")
    write_safetensors(home / "model.safetensors", {"embedding.weight": np.asarray(tensors["embeddings"])})
    kind = "sentence_transformers.models.StaticEmbedding"
    modules = [{"idx": 0, "name": "0", "path": "0_StaticEmbedding", "type": kind}]
    (folder / "modules.json").write_text(json.dumps(modules))
    return folder


def test_the_layout_of_sentence_transformers_cuts_as_its_tokenizer_says(tmp_path: Path) -> None:
    encoder = SentenceEncoder(sentence_transformers_folder(tmp_path))
    assert encoder.max_seq_length == 3
    weights = np.asarray(read_tensors(MODELS / "m2v_unigram" / "model.safetensors")["embeddings"])
    found, truncated = encoder.encode(["the city by night", "猫"], return_truncated=True)
    for vector, text in zip(found, ["the city by night", "猫"], strict=True):
        ids = encoder.tokenizer.encode(text, add_special_tokens=False).ids[:3]  # the unknown token counts here
        np.testing.assert_allclose(vector, weights[ids].mean(axis=0), rtol=0, atol=1e-6)
    assert truncated[0]
    encoder.max_seq_length = 2
    encoder.save_pretrained(tmp_path / "saved")
    again = SentenceEncoder(tmp_path / "saved")
    assert again.max_seq_length == 2
    np.testing.assert_array_equal(again.encode(["the city by night"]), encoder.encode(["the city by night"]))


def test_files_are_embedded(tmp_path: Path) -> None:
    reference, expected = listing("m2v_unigram")
    texts = [text for text in reference["texts"] if "\n" not in text]
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    arguments = ["embed", str(tmp_path / "texts.txt"), "-m", str(MODELS / "m2v_unigram"), "-o", str(tmp_path / "v.npy")]
    assert main([*arguments, "-q"]) == 0
    kept = [i for i, text in enumerate(reference["texts"]) if "\n" not in text]
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), expected["call0"][kept], rtol=0, atol=1e-5)


def test_the_server_answers_with_the_same_vectors() -> None:
    encoder = SentenceEncoder(MODELS / "m2v_unigram")
    texts = ["the city by night", "a dog"]
    served = next(iter(Models({"a": encoder}, ServerSettings(), {}, Metrics())))
    answer = asyncio.run(served.embed(texts, USUAL))  # type: ignore[attr-defined]
    np.testing.assert_array_equal(answer.values, encoder.encode(texts))


@pytest.mark.parametrize("name", ["st_jina", "st_neobert", "st_ernie"])
def test_newer_encoders_with_wordpiece_are_distilled(name: str) -> None:
    encoder = SentenceEncoder(MODELS / name)
    static = distill_static(encoder, pca_dims=None, sif_coefficient=None, pooling="mean")
    for token in ("the", "city"):
        index = static.tokenizer.token_to_id(token)
        assert index is not None
        row = encoder.encode(token, output_value="token_embeddings")
        mean = np.asarray(row).mean(axis=0)
        np.testing.assert_allclose(static.encode(token), mean / np.linalg.norm(mean), rtol=0, atol=1e-5)


def test_a_table_of_another_number_of_tokens_is_refused(tmp_path: Path) -> None:
    folder = copied("m2v_unigram", tmp_path)
    tensors = dict(read_tensors(folder / "model.safetensors"))
    write_safetensors(folder / "model.safetensors", {"embeddings": np.asarray(tensors["embeddings"])[:-5]})
    with pytest.raises(CheckpointError, match=r"embeddings has 180 rows, but tokenizer\.json 185 tokens"):
        SentenceEncoder(folder)
    shutil.copy(MODELS / "static_m2v" / "tokenizer.json", folder)
    with pytest.raises(CheckpointError, match="rows"):
        SentenceEncoder(folder)


def test_texts_are_checked() -> None:
    encoder = SentenceEncoder(MODELS / "m2v_bpe")
    with pytest.raises(InputError, match=r"texts\[1\]"):
        encoder.encode(["a", 3])  # type: ignore[list-item]
    assert encoder.encode([]).shape == (0, 16)
    assert not encoder.encode("").any()
