"""Pre-training examples: masked tokens and pairs of segments, against the rules of the paper and of its released code."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wordpiece_bert as wb
from small_tokenizer import TOKENS, tokenizer
from wordpiece_bert.bert import BertConfig, BertForPreTraining
from wordpiece_bert.bert.checkpoint import bert_shapes
from wordpiece_bert.bert.heads.head_model import HeadModel
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.pretraining import Masking, PairExample, collate, next_sentence_pairs

TOK = tokenizer()
MASK = TOKENS.index("[MASK]")
SPECIAL = [TOKENS.index(token) for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")]
ORDINARY = [i for i in range(len(TOKENS)) if i not in SPECIAL]

rows = st.lists(st.integers(0, len(TOKENS) - 1), max_size=60)
seeds = st.integers(0, 2**32)


@given(rows, seeds, st.floats(0, 1), st.none() | st.integers(1, 20))
def test_the_requested_share_of_tokens_is_chosen(row: list[int], seed: int, share: float, limit: int | None) -> None:
    ids, labels = Masking(TOK, probability=share, max_predictions=limit)(row, seed)
    chosen = labels != -100
    n = sum(i in ORDINARY for i in row)
    target = 0 if n == 0 or share == 0 else max(1, round(share * n))
    assert chosen.sum() == min(target, limit or target)
    # No special token is chosen, labels are the original ids, and all other ids are unchanged.
    assert not set(np.array(row)[chosen]) & set(SPECIAL) if row else True
    assert labels[chosen].tolist() == np.array(row, int)[chosen].tolist()
    assert ids[~chosen].tolist() == np.array(row, int)[~chosen].tolist()
    assert set(ids[chosen].tolist()) <= {MASK, *ORDINARY}
    again = Masking(TOK, probability=share, max_predictions=limit)(row, seed)
    assert (again.input_ids.tolist(), again.labels.tolist()) == (ids.tolist(), labels.tolist())


@pytest.mark.parametrize("prefix", ["##", "@@"])
@given(rows, seeds, st.floats(0, 1))
def test_pieces_of_a_word_are_masked_together(prefix: str, row: list[int], seed: int, share: float) -> None:
    _, labels = Masking(with_prefix(prefix), probability=share, whole_words=True)(row, seed)
    words: list[list[int]] = []
    for position, token in enumerate(row):
        if token in SPECIAL:
            continue
        continues = TOKENS[token].startswith("##") and words and words[-1][-1] == position - 1
        if continues:
            words[-1].append(position)
        else:
            words.append([position])
    chosen = labels != -100
    assert all(chosen[word].all() or not chosen[word].any() for word in words)
    n = sum(map(len, words))
    target = 0 if n == 0 or share == 0 else max(1, round(share * n))
    assert chosen.sum() <= target
    # A word is skipped only if it would have exceeded the target.
    assert all(chosen.sum() + len(word) > target for word in words if not chosen[word].any())


@lru_cache
def with_prefix(prefix: str) -> wb.Tokenizer:
    """The small tokenizer, with another prefix in place of ``##`` in its vocabulary."""
    return wb.Tokenizer.from_vocab([token.replace("##", prefix) for token in TOKENS], continuing_subword_prefix=prefix)


def test_whole_words_need_a_prefix() -> None:
    tok = wb.Tokenizer.from_vocab([*TOKENS[:5], "a", "b"], continuing_subword_prefix="")
    with pytest.raises(ConfigError, match="continuing_subword_prefix is empty: use whole_words=False"):
        Masking(tok, whole_words=True)
    assert Masking(tok, probability=1.0)([5, 6], 0).labels.tolist() == [5, 6]


def test_80_percent_become_mask_10_percent_random_and_10_percent_stay() -> None:
    row = np.random.default_rng(0).choice(ORDINARY, 100_000)
    ids, labels = Masking(TOK, probability=1.0)(row, 0)
    assert (labels == row).all()
    masked = (ids == MASK).mean()
    same = (ids == row).mean()
    assert abs(masked - 0.8) < 0.01
    assert abs(same - (0.1 + 0.1 / len(ORDINARY))) < 0.01
    others = Counter(ids[(ids != MASK) & (ids != row)].tolist())
    assert set(others) == set(ORDINARY)
    assert max(others.values()) < 1.5 * min(others.values())


def test_masked_and_random_shares_are_respected() -> None:
    row = np.full(1000, ORDINARY[0])
    ids, _ = Masking(TOK, probability=1.0, masked=0.0, random=0.0)(row, 1)
    assert (ids == row).all()
    ids, _ = Masking(TOK, probability=1.0, masked=1.0, random=0.0)(row, 1)
    assert (ids == MASK).all()
    ids, _ = Masking(TOK, probability=1.0, masked=0.0, random=1.0)(row, 1)
    assert set(ids.tolist()) == set(ORDINARY)


def test_a_batch_is_masked_row_by_row() -> None:
    batch = TOK(["the cat sat on the mat.", "running cats"], padding=True)["input_ids"]
    before = batch.copy()
    ids, labels = Masking(TOK)(batch, 7)
    assert ids.shape == labels.shape == batch.shape
    assert ((labels != -100).sum(axis=1) == 1).all()
    assert (batch == before).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"probability": 1.5}, "probability must be between 0 and 1, not 1.5"),
        ({"masked": -0.1}, "masked must be between 0 and 1, not -0.1"),
        ({"masked": 0.8, "random": 0.3}, r"0\.8 \+ 0\.3 is more than 1"),
        ({"max_predictions": 0}, "max_predictions must be a whole number, 1 or more, or None, not 0"),
    ],
)
def test_wrong_shares_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(wb.WordPieceError, match=message):
        Masking(TOK, **options)


def test_a_tokenizer_without_a_mask_is_refused() -> None:
    tok = wb.Tokenizer.from_vocab(["[UNK]", "a"])
    with pytest.raises(wb.WordPieceError, match="has no mask token"):
        Masking(tok)
    with pytest.raises(wb.WordPieceError, match=r"no \[CLS\] or no \[SEP\]"):
        next_sentence_pairs([["a"], ["a"]], tok)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1.5], "must be integers"),
        ([[[1]]], "must be integers"),
        (5, "must be integers"),
        ([[1, 2], [3]], "rows of one length"),
        ([[1, 2], [3, 1000]], r"input_ids\[1, 1\] is 1000"),
        ([-1], r"input_ids\[0\] is -1"),
    ],
)
def test_invalid_ids_are_refused(ids: Any, message: str) -> None:
    with pytest.raises(wb.WordPieceError, match=message):
        Masking(TOK)(ids, 0)


# --- pairs: documents in which each token identifies its document

LETTERS = ["a", "b", "c", "d", "e", "f", "g"]
documents_of_letters = st.lists(
    st.lists(st.integers(0, 9), min_size=0, max_size=12), min_size=2, max_size=len(LETTERS)
).filter(lambda documents: sum(any(document) for document in documents) != 1)


@given(documents_of_letters, st.integers(5, 30), st.floats(0, 1), seeds)
def test_labels_and_segments_of_pairs_are_consistent(
    sizes: list[list[int]], max_length: int, short: float, seed: int
) -> None:
    """Document i consists only of its letter; its sentence j has `sizes[i][j]` of them."""
    documents = [[" ".join([letter] * n) for n in document] for letter, document in zip(LETTERS, sizes, strict=False)]
    pairs = list(next_sentence_pairs(documents, TOK, max_length=max_length, short_seq_prob=short, seed=seed))
    assert {TOKENS[pair.input_ids[1]] for pair in pairs} == {
        letter for letter, document in zip(LETTERS, sizes, strict=False) if any(document)
    }
    for pair in pairs:
        tokens = [TOKENS[i] for i in pair.input_ids]
        assert 5 <= len(tokens) <= max_length
        assert (tokens[0], tokens[-1], tokens.count("[SEP]")) == ("[CLS]", "[SEP]", 2)
        middle = tokens.index("[SEP]")
        a, b = set(tokens[1:middle]), set(tokens[middle + 1 : -1])
        assert len(a) == len(b) == 1
        assert pair.next_sentence_label == (a != b)
        assert pair.token_type_ids.tolist() == [0] * (middle + 1) + [1] * (len(tokens) - middle - 1)
    again = next_sentence_pairs(documents, TOK, max_length=max_length, short_seq_prob=short, seed=seed)
    assert [pair.input_ids.tolist() for pair in again] == [pair.input_ids.tolist() for pair in pairs]


@given(seeds)
def test_a_second_segment_follows_the_first_or_is_from_another_document(seed: int) -> None:
    """Sentences are single tokens in a known order and nothing is truncated, so segments are runs of that order."""
    order = ORDINARY[:16]
    one, other = [TOKENS[i].removeprefix("##") for i in order], ["york"] * 5
    tok = wb.Tokenizer.from_vocab([*TOKENS[:5], *one, "york"])
    position = {tok.token_to_id(token): i for i, token in enumerate(one)}
    used: list[int] = []
    for pair in next_sentence_pairs([one, other], tok, max_length=12, short_seq_prob=0.5, seed=seed):
        middle = pair.input_ids.tolist().index(tok.sep_token_id)
        a, b = pair.input_ids[1:middle].tolist(), pair.input_ids[middle + 1 : -1].tolist()
        if a[0] not in position:
            continue
        follows = pair.next_sentence_label == 0
        used.extend(position[i] for i in a)
        if follows:
            used.extend(position[i] for i in b)
        else:
            assert set(b) == {tok.token_to_id("york")}
    # Sentences that a random segment displaced begin the next pair: each is used once, in order.
    assert used == list(range(len(one)))


def test_about_half_of_the_second_segments_are_random() -> None:
    documents = [["the cat sat on the mat."] * 400, ["new york"] * 400, ["a b c d"] * 400]
    labels = [pair.next_sentence_label for pair in next_sentence_pairs(documents, TOK, max_length=32, seed=3)]
    assert len(labels) > 200
    assert 0.4 < np.mean(labels) < 0.6


@pytest.mark.parametrize(
    ("documents", "options", "message"),
    [
        ([["a"], ["b"]], {"max_length": 4}, "max_length must be a whole number, 5 or more"),
        ([["a"], ["b"]], {"short_seq_prob": 2}, "short_seq_prob must be between 0 and 1, not 2"),
        (["a", "b"], {}, r"documents\[0\] is a str"),
        ([["a"], [""], []], {}, "only one of documents is not empty"),
    ],
)
def test_inputs_without_pairs_are_refused(documents: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(wb.WordPieceError, match=message):
        list(next_sentence_pairs(documents, TOK, **options))


def test_no_documents_make_no_pairs() -> None:
    assert list(next_sentence_pairs([], TOK)) == []
    assert {name: array.shape for name, array in collate([], Masking(TOK), 0).items()} == {
        "input_ids": (0, 0),
        "token_type_ids": (0, 0),
        "attention_mask": (0, 0),
        "labels": (0, 0),
        "next_sentence_label": (0,),
    }


def test_a_model_accepts_a_batch_of_pairs() -> None:
    documents = [["the cat sat", "on the mat."], ["new york", "run, running!"]]
    pairs = list(next_sentence_pairs(documents, TOK, max_length=16, seed=5))
    batch = collate([*pairs, PairExample(np.array([2, 9, 3, 10, 3]), np.array([0, 0, 0, 1, 1]), 1)], Masking(TOK), 5)
    last = batch["attention_mask"][-1]
    assert last.sum() == 5
    assert (batch["input_ids"][-1, 5:] == TOK.pad_token_id).all()
    config = BertConfig.from_dict(
        {
            "model_type": "bert",
            "vocab_size": len(TOKENS),
            "hidden_size": 8,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "intermediate_size": 16,
            "max_position_embeddings": 16,
        }
    )
    out = model_of(BertForPreTraining, config)(**batch)
    assert out.loss is not None
    # With weights near 0 all outcomes are equally likely: the losses are log(vocabulary size) and log(2).
    assert abs(out.loss - (np.log(len(TOKENS)) + np.log(2))) < 0.1


def model_of(cls: type[HeadModel], config: BertConfig) -> HeadModel:
    rng = np.random.default_rng(0)
    shapes = {f"bert.{name}": shape for name, shape in bert_shapes(config).items()} | cls._head_shapes(config)
    weights = {
        name: rng.normal(0, 0.02, [getattr(config, n) if isinstance(n, str) else n for n in shape]).astype(np.float32)
        for name, shape in shapes.items()
    }
    return cls(config, weights)


# --- arguments of wrong types


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"probability": "half"}, "probability must be between 0 and 1, not 'half'"),
        ({"masked": None}, "masked must be between 0 and 1, not None"),
        ({"random": True}, "random must be between 0 and 1, not True"),
        ({"probability": float("nan")}, "probability must be between 0 and 1, not nan"),
        ({"whole_words": 1}, "whole_words must be True or False, not 1"),
        ({"max_predictions": 2.5}, r"max_predictions must be a whole number, 1 or more, or None, not 2\.5"),
    ],
)
def test_wrong_types_of_masking(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Masking(wb.Tokenizer.from_vocab(["[UNK]", "[MASK]", "a"]), **options)
    with pytest.raises(InputError, match="tokenizer must be a Tokenizer, not str"):
        Masking("minilm")  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", ["one", -1, 1.5, [-1]])
def test_wrong_seeds(seed: object) -> None:
    tok = wb.Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])
    documents = [["a"], ["a"]]
    for call in (
        lambda: Masking(tok)([4], seed),  # type: ignore[arg-type]
        lambda: next_sentence_pairs(documents, tok, seed=seed),  # type: ignore[arg-type]
        lambda: collate(list(next_sentence_pairs(documents, tok)), Masking(tok), seed),  # type: ignore[arg-type]
    ):
        with pytest.raises(InputError, match="seed must be a whole number"):
            call()


def test_wrong_types_of_pairs_and_examples() -> None:
    tok = wb.Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])
    for documents, message in (
        (5, "documents must be a list of documents, not int"),
        ("text", "documents must be a list of documents, not str"),
        ([["a"], 5], r"documents\[1\] must be the sentences of a document, not int"),
        ([["a"], b"a"], r"documents\[1\] is a bytes"),
        ([["a"], ["a", None]], r"documents\[1\]\[1\] must be a str, not NoneType"),
    ):
        with pytest.raises(InputError, match=message):
            next_sentence_pairs(documents, tok)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="max_length must be a whole number, 5 or more"):
        next_sentence_pairs([["a"], ["a"]], tok, max_length="128")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="short_seq_prob must be between 0 and 1, not '0'"):
        next_sentence_pairs([["a"], ["a"]], tok, short_seq_prob="0")  # type: ignore[arg-type]
    examples = list(next_sentence_pairs([["a"], ["a"]], tok))
    with pytest.raises(InputError, match="masking must be a Masking, not int"):
        collate(examples, 3, 0)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"examples\[2\] must be a PairExample, not int"):
        collate([*examples, 7], Masking(tok), 0)  # type: ignore[list-item]
    for wrong in (5, examples[0]):
        with pytest.raises(InputError, match="examples must be a list of PairExample"):
            collate(wrong, Masking(tok), 0)  # type: ignore[arg-type]
