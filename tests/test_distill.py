"""Distilled static models against model2vec's numbers, and what may be asked for."""

from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model_files import MODELS
from wordpiece_bert.cli import main
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.sentence import SentenceEncoder, StaticEncoder, distill_static
from wordpiece_bert.sentence.dense.parts import body_of
from wordpiece_bert.sentence.dense.table import TableBody

FOLDER = MODELS / "distill"
REFERENCE = json.loads((FOLDER / "reference.json").read_text(encoding="utf-8"))
ARRAYS = np.load(FOLDER / "reference.npz")
TEXTS: list[str] = REFERENCE["texts"]


def table_of(encoder: SentenceEncoder) -> Any:
    body = body_of(encoder)
    assert isinstance(body, TableBody)
    return body.embeddings


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return SentenceEncoder(FOLDER)


@pytest.mark.parametrize("name", REFERENCE["runs"])
def test_tokens_table_and_vectors_are_those_of_model2vec(name: str, encoder: SentenceEncoder, tmp_path: Path) -> None:
    run = REFERENCE["runs"][name]
    static = distill_static(encoder, **run["options"])
    vocab = static.tokenizer.get_vocab()
    assert sorted(vocab, key=lambda token: vocab[token]) == run["tokens"]
    np.testing.assert_allclose(table_of(static).arrays()[0], ARRAYS[f"{name}.embedding"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(static.encode(TEXTS), ARRAYS[f"{name}.encode"], rtol=0, atol=1e-5)
    static.save_pretrained(tmp_path / name)
    saved = SentenceEncoder(tmp_path / name)
    assert isinstance(static, StaticEncoder)
    assert isinstance(body_of(saved), TableBody)
    assert np.array_equal(saved.encode(TEXTS), static.encode(TEXTS))


def test_the_numpy_engine_gives_the_same_table(encoder: SentenceEncoder) -> None:
    slow = SentenceEncoder(FOLDER, backend="numpy")
    for pooling in ("mean", "last"):
        first, second = (distill_static(one, pca_dims=None, pooling=pooling) for one in (encoder, slow))  # type: ignore[arg-type]
        np.testing.assert_allclose(table_of(first).arrays()[0], table_of(second).arrays()[0], rtol=0, atol=1e-6)


def test_a_saved_folder_says_how_it_was_made_and_model2vec_loads_it(tmp_path: Path) -> None:
    static = distill_static(FOLDER, pca_dims=8, sif_coefficient=1e-3)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(static)).encode(TEXTS), static.encode(TEXTS))
    static.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["model_type"] == "model2vec"
    assert (config["apply_pca"], config["sif_coefficient"], config["hidden_dim"]) == (8, 1e-3, 8)
    assert (config["normalize"], config["max_length"], config["pooling"]) == (True, 512, "mean")
    model2vec = pytest.importorskip("model2vec")
    vectors = model2vec.StaticModel.from_pretrained(tmp_path).encode(TEXTS)
    np.testing.assert_allclose(vectors, static.encode(TEXTS), rtol=0, atol=1e-6)


def test_words_of_several_pieces_become_tokens_in_their_normalized_form(encoder: SentenceEncoder) -> None:
    static = distill_static(encoder, vocabulary=["Rivér-Bank", "river-bank", "CATS", "", "the"], pca_dims=None)
    tokens = static.tokenizer.get_vocab()
    last = sorted(tokens, key=lambda token: tokens[token])[-2:]
    assert last == ["cats", "river-bank"]
    assert static.tokenizer.tokenize("The RIVER-bank cats") == ["the", "river-bank", "cats"]


def test_widths_that_do_not_fit_are_reported(encoder: SentenceEncoder) -> None:
    with pytest.warns(UserWarning, match="pca_dims is 64, but the encoder's vectors have 32 numbers"):
        assert distill_static(encoder, pca_dims=64).dimension == 32
    with pytest.warns(UserWarning, match="but there are 3 tokens: no principal component analysis"):
        assert distill_static(encoder, pca_dims=8, token_remove_pattern=r"(?!\[PAD|\[UNK|the$)").dimension == 32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pca_dims": 0}, "pca_dims must be"),
        ({"pca_dims": 1.5}, "pca_dims must be"),
        ({"pca_dims": "all"}, "pca_dims must be"),
        ({"pca_dims": True}, "pca_dims must be"),
        ({"sif_coefficient": 1.0}, "sif_coefficient must be"),
        ({"sif_coefficient": "much"}, "sif_coefficient must be"),
        ({"token_remove_pattern": "("}, "token_remove_pattern must be a regular expression"),
        ({"token_remove_pattern": "."}, "no token is left"),
        ({"pooling": "max"}, "pooling must be"),
        ({"vocabulary": "the"}, "vocabulary must be a list of str"),
        ({"vocabulary": ["ab" * 24]}, "longest row of the model is 48"),
    ],
)
def test_wrong_arguments_are_refused(encoder: SentenceEncoder, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        distill_static(encoder, **{"pca_dims": 8} | options)


def test_a_static_model_and_a_vocabulary_without_its_unknown_token_are_refused(encoder: SentenceEncoder) -> None:
    with pytest.raises(InputError, match="is a static model already"):
        distill_static(MODELS / "static_m2v")
    with pytest.raises(ConfigError, match=r"needs the unknown token '\[UNK\]'"):
        distill_static(encoder, pca_dims=8, token_remove_pattern=r"\[UNK\]")


def test_the_command_writes_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = tmp_path / "words.txt"
    words.write_text("\ufeffriverbank\r\nnight watch\n", encoding="utf-8")
    arguments = ["--pca-dims", "16", "--vocabulary", str(words), "--json", "-q"]
    assert main(["distill", "-m", str(FOLDER), "-o", str(tmp_path / "static"), *arguments]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["tokens"], summary["dimensions"]) == (132, 16)
    expected = distill_static(FOLDER, pca_dims=16, vocabulary=["riverbank", "night watch"])
    assert np.array_equal(SentenceEncoder(tmp_path / "static").encode(TEXTS), expected.encode(TEXTS))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main(["distill", "-m", str(FOLDER), "-o", str(tmp_path / "raw"), "--pca-dims", "none", "-q"]) == 0
    utf16 = tmp_path / "utf16.txt"
    utf16.write_text("riverbank\nnight watch\n", encoding="utf-16-le")
    assert main(["distill", "-m", str(FOLDER), "-o", str(tmp_path / "none"), "--vocabulary", str(utf16)]) == 2
    assert "it looks like UTF-16" in capsys.readouterr().err
    assert main(["distill", "-m", str(FOLDER), "-o", str(words)]) == 2
    assert "is a file; give a folder" in capsys.readouterr().err
