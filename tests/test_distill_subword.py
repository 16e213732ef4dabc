"""Static models of encoders whose tokenizer is byte-level BPE or Unigram, against model2vec's."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_files import MODELS
from wordpiece_bert import Tokenizer
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence import SentenceEncoder, distill_static
from wordpiece_bert.sentence.dense.parts import body_of
from wordpiece_bert.sentence.dense.table import TableBody

pytest.importorskip("tokenizers")

REFERENCE = json.loads((MODELS / "distill_subword" / "reference.json").read_text(encoding="utf-8"))
ARRAYS = np.load(MODELS / "distill_subword" / "reference.npz")
TEXTS: list[str] = REFERENCE["texts"]

pytestmark = pytest.mark.filterwarnings("ignore::wordpiece_bert.errors.TruncationWarning")


def made(name: str) -> Any:
    run = REFERENCE["runs"][name]
    return distill_static(MODELS / run["folder"], **run["options"])


@pytest.mark.parametrize("name", REFERENCE["runs"])
def test_tokens_table_and_vectors_are_those_of_model2vec(name: str, tmp_path: Path) -> None:
    static = made(name)
    vocab = static.tokenizer.get_vocab()
    assert sorted(vocab, key=lambda token: vocab[token]) == REFERENCE["runs"][name]["tokens"]
    body = body_of(static)
    assert isinstance(body, TableBody)
    # The signs of principal components are free.
    table, expected = body.embeddings.arrays()[0], ARRAYS[f"{name}.embedding"]
    signs = np.sign((table * expected).sum(axis=0))
    np.testing.assert_allclose(table * signs, expected, rtol=0, atol=1e-5)
    vectors = static.encode(TEXTS)
    np.testing.assert_allclose(vectors * signs, ARRAYS[f"{name}.encode"], rtol=0, atol=1e-5)
    static.save_pretrained(tmp_path)
    saved = SentenceEncoder(tmp_path)
    assert np.array_equal(saved.encode(TEXTS), vectors)
    saved.save_pretrained(tmp_path / "again")
    assert np.array_equal(SentenceEncoder(tmp_path / "again").encode(TEXTS), vectors)


def test_model2vec_loads_the_folder(tmp_path: Path) -> None:
    model2vec = pytest.importorskip("model2vec")
    for name in REFERENCE["runs"]:
        static = made(name)
        static.save_pretrained(tmp_path / name)
        found = model2vec.StaticModel.from_pretrained(tmp_path / name).encode(TEXTS)
        np.testing.assert_allclose(found, static.encode(TEXTS), rtol=0, atol=1e-6)


def test_a_static_model_is_pickled_and_its_tokenizer_changed() -> None:
    static = made("st_xlmr")
    again = pickle.loads(pickle.dumps(static))
    assert np.array_equal(again.encode(TEXTS), static.encode(TEXTS))
    assert static.tokenizer.lowercased().encode("THE CITY").ids == static.tokenizer.encode("the city").ids
    assert "post_processor" in static.tokenizer.definition()


def test_words_need_wordpiece() -> None:
    with pytest.raises(InputError, match="vocabulary needs an encoder with a WordPiece tokenizer, not SubwordToken"):
        distill_static(MODELS / "st_roberta", vocabulary=["riverbank"])
    with pytest.raises(InputError, match="no token is left"):
        distill_static(MODELS / "st_roberta", token_remove_pattern=".")


def test_the_command_writes_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = MODELS / "st_roberta"
    assert main(["distill", "-m", str(folder), "-o", str(tmp_path / "out"), "--pca-dims", "8", "--json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["dimensions"] == 8
    expected = distill_static(folder, pca_dims=8).encode(TEXTS)
    assert np.array_equal(SentenceEncoder(tmp_path / "out").encode(TEXTS), expected)
    assert not isinstance(SentenceEncoder(tmp_path / "out").tokenizer, Tokenizer)
