"""Tokenizers that are not WordPiece: sentence vectors, scores and classes of RoBERTa and XLM-RoBERTa."""

# ruff: noqa: ANN401 (encoders of any model)

from __future__ import annotations

import json
import pickle
import shutil
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from model_files import MODELS
from wordpiece_bert import CrossEncoder, SentenceEncoder, Tokenizer, tasks
from wordpiece_bert.errors import InputError, ModelNotFoundError, TokenizerFormatError
from wordpiece_bert.subword import SubwordTokenizer, is_subword

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("tokenizers")

FOLDERS = ["st_roberta", "st_xlmr", "st_xlmr_cls"]


def reference(folder: str) -> Any:
    return json.loads((MODELS / folder / "reference.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_ids_equal_transformers(folder: str) -> None:
    tokenizer, expected = SubwordTokenizer(MODELS / folder), reference(folder)
    rows = tokenizer.encode_batch(expected["texts"], truncation=True, max_length=tokenizer.model_max_length)
    assert [rows[i].tolist() for i in range(len(rows))] == expected["ids"]
    whole = tokenizer.encode_batch(expected["texts"])
    np.testing.assert_array_equal(rows.truncated, whole.lengths > rows.lengths)
    assert rows.truncated.any()
    assert not whole.truncated.any()


@pytest.mark.parametrize("backend", ["rust", "numpy"])
@pytest.mark.parametrize("folder", FOLDERS)
def test_sentence_vectors_equal_sentence_transformers(folder: str, backend: str) -> None:
    encoder: Any = SentenceEncoder.from_pretrained(MODELS / folder, backend)
    vectors = np.load(MODELS / folder / "embeddings.npz")
    expected = reference(folder)
    for call in expected["calls"]:
        with pytest.warns(match="truncated"):
            found = getattr(encoder, call["method"])(expected["texts"], **call["options"])
        np.testing.assert_allclose(found, vectors[call["key"]], rtol=0, atol=1e-5, err_msg=call["key"])


def test_offsets_are_those_of_characters() -> None:
    encoding = SubwordTokenizer(MODELS / "st_roberta").encode("a cat")
    assert encoding.tokens == ["<s>", "a", "Ġc", "a", "t", "</s>"]
    assert encoding.offsets[1:-1] == [(0, 1), (2, 3), (3, 4), (4, 5)]
    assert encoding.special_tokens_mask == [1, 0, 0, 0, 0, 1]
    tokens = SentenceEncoder.from_pretrained(MODELS / "st_roberta").encode_tokens("a cat")
    assert tokens.offsets == encoding.offsets


def test_an_encoder_is_saved_and_pickled_with_its_tokenizer(tmp_path: Path) -> None:
    encoder = SentenceEncoder.from_pretrained(MODELS / "st_xlmr")
    encoder.save_pretrained(tmp_path)
    expected = encoder.encode(["the city", "☃"])
    np.testing.assert_array_equal(SentenceEncoder.from_pretrained(tmp_path).encode(["the city", "☃"]), expected)
    tokenizer = pickle.loads(pickle.dumps(SubwordTokenizer(MODELS / "st_xlmr")))
    assert tokenizer.encode("the city").ids == SubwordTokenizer(MODELS / "st_xlmr").encode("the city").ids


def test_lower_case_is_applied_before_the_tokenizer() -> None:
    tokenizer = SubwordTokenizer(MODELS / "st_roberta")
    assert tokenizer.lowercased().encode("A CAT", "DOG").ids == tokenizer.encode("a cat", "dog").ids


def test_classes_and_scores_run_over_pairs() -> None:
    folder = MODELS / "roberta_seqcls"
    ranker: Any = CrossEncoder(folder)
    pairs = [("the river", "the old city"), ("a", "b")]
    found = ranker.predict(pairs)
    tokenizer = SubwordTokenizer(folder)
    for (first, second), scores in zip(pairs, found, strict=True):
        encoding = tokenizer.encode(first, second)
        assert encoding.sequence_ids.count(1) > 0
        np.testing.assert_allclose(ranker._model([encoding.ids]).logits[0], scores, rtol=0, atol=1e-5)
    result = tasks.classify(tasks.load(folder), "the river")
    assert result[0]["label"].startswith("LABEL_")


def test_tasks_that_read_words_refuse_the_tokenizer_by_name() -> None:
    loaded = tasks.load(MODELS / "roberta_seqcls")
    with pytest.raises(InputError, match="ner reads words from WordPiece tokens"):
        tasks.ner(loaded, "a cat")


def test_windows_are_refused() -> None:
    with pytest.raises(InputError):
        SentenceEncoder.from_pretrained(MODELS / "st_roberta").encode("a " * 100, windows="mean")


def test_the_wordpiece_tokenizer_refuses_the_file_and_names_the_classes_that_run_it() -> None:
    for folder, kind in (("st_roberta", "BPE"), ("st_xlmr", "Unigram")):
        assert is_subword(MODELS / folder)
        with pytest.raises(TokenizerFormatError, match=rf"{kind}.*SentenceEncoder, CrossEncoder"):
            Tokenizer.from_pretrained(MODELS / folder)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ImportError, match=r"pip install 'wordpiece-bert\[tokenizers\]'"):
        SentenceEncoder.from_pretrained(MODELS / "st_roberta")


def test_a_sentencepiece_model_alone_is_refused_with_a_remedy(tmp_path: Path) -> None:
    shutil.copytree(MODELS / "st_xlmr", tmp_path, dirs_exist_ok=True)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "sentencepiece.bpe.model").write_bytes(b"\n")
    with pytest.raises(ModelNotFoundError, match=r"no tokenizer.json.*\n.*AutoTokenizer"):
        SentenceEncoder.from_pretrained(tmp_path)


def test_a_file_that_tokenizers_cannot_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "BPE"}}')
    with pytest.raises(TokenizerFormatError, match=r"tokenizer.json: the package tokenizers cannot read it"):
        SubwordTokenizer(tmp_path)


def test_masks_are_filled_with_the_words_of_the_model() -> None:
    model, tokenizer = loaded = tasks.load(MODELS / "roberta_masked_lm")
    found: Any = tasks.fill_mask(loaded, "the <mask> city", top_k=3)
    encoding = tokenizer.encode("the <mask> city")
    mask = encoding.ids.index(tokenizer.mask_token_id)
    logits = model([encoding.ids]).logits[0, mask]
    assert [row["token"] for row in found] == np.argsort(-logits)[:3].tolist()


def test_features_have_a_vector_for_each_token() -> None:
    model, tokenizer = loaded = tasks.load(MODELS / "roberta_masked_lm")
    ids = tokenizer.encode("the city").ids
    expected = model.base_model([ids]).last_hidden_state[0]
    found: Any = tasks.feature_extraction(loaded, "the city")
    np.testing.assert_allclose(found.vectors, expected, rtol=0, atol=1e-5)
