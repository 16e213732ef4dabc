"""`accelerate`: a tokenizer of transformers that answers as before."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from small_tokenizer import TEXTS, TOKENS, tokenizer
from wordpiece_bert.errors import InputError, TokenizerFormatError

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
tokenizers = pytest.importorskip("tokenizers")

from wordpiece_bert.integrations.transformers import accelerate  # noqa: E402


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizer().save_pretrained(folder)
    (folder / "config.json").write_text('{"model_type": "bert"}')
    found = transformers.AutoTokenizer.from_pretrained(folder)
    found.model_max_length = 30
    return found


def same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected) is transformers.BatchEncoding
    assert list(found) == list(expected)
    for name, values in expected.items():
        if isinstance(values, np.ndarray):
            np.testing.assert_array_equal(found[name], values)
            assert found[name].dtype == values.dtype
        else:
            assert found[name] == values, name


CALLS: list[dict[str, Any]] = [
    {},
    {"padding": True, "return_tensors": "np"},
    {"padding": "max_length", "truncation": True, "max_length": 8, "return_tensors": "np"},
    {"truncation": True},
    {"truncation": "only_first", "max_length": 6, "stride": 2, "return_overflowing_tokens": True},
    {"add_special_tokens": False, "return_attention_mask": False},
    {"return_offsets_mapping": True, "return_special_tokens_mask": True, "return_length": True},
    {"padding": True, "pad_to_multiple_of": 8, "padding_side": "left"},
    {"split_special_tokens": True},
    {"return_token_type_ids": False},
]


@pytest.mark.parametrize("options", CALLS, ids=str)
def test_calls_answer_as_theirs(theirs: Any, options: dict[str, Any]) -> None:
    fast = accelerate(theirs)
    texts = [*TEXTS, "a [SEP] b [MASK] c"]
    same(fast(texts, **options), theirs(texts, **options))
    for text in texts:
        same(fast(text, **options), theirs(text, **options))
    if "stride" in options:
        return  # with only_first a second text may leave no room, which both refuse in other words
    for second in ("the mat", ""):
        same(fast("the cat", second, **options), theirs("the cat", second, **options))
    same(fast(texts, texts[::-1], **options), theirs(texts, texts[::-1], **options))


@settings(max_examples=60)
@given(st.lists(st.text(max_size=20), min_size=1, max_size=4), st.sampled_from(CALLS))
def test_random_texts_are_encoded_as_theirs(theirs: Any, texts: list[str], options: dict[str, Any]) -> None:
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    same(accelerate(theirs)(texts, **options), theirs(texts, **options))


def test_other_methods_are_theirs(theirs: Any) -> None:
    fast = accelerate(theirs)
    assert isinstance(fast, type(theirs))
    assert type(fast).__name__ == type(theirs).__name__
    text = "The cat sat."
    assert fast.encode(text) == theirs.encode(text)
    assert fast.tokenize(text) == theirs.tokenize(text)
    assert fast.decode(fast(text)["input_ids"]) == theirs.decode(theirs(text)["input_ids"])
    assert fast.get_vocab() == theirs.get_vocab()
    assert fast.all_special_tokens == theirs.all_special_tokens
    same(fast.pad({"input_ids": [[1, 2], [3]]}), theirs.pad({"input_ids": [[1, 2], [3]]}))
    words = [["the", "cats"], ["a"]]
    same(fast(words, is_split_into_words=True), theirs(words, is_split_into_words=True))


def test_rows_have_encodings(theirs: Any) -> None:
    texts = ["the cats", "a mat"]
    found, expected = accelerate(theirs)(texts, padding=True), theirs(texts, padding=True)
    assert found.is_fast
    for row in range(2):
        assert found.tokens(row) == expected.tokens(row)
        assert found.word_ids(row) == expected.word_ids(row)
        assert found.sequence_ids(row) == expected.sequence_ids(row)
    assert found.char_to_token(0, 4) == expected.char_to_token(0, 4)
    assert found.token_to_chars(0, 2) == expected.token_to_chars(0, 2)
    assert found.n_sequences == expected.n_sequences == 1
    assert len(found.encodings) == 2


def test_later_changes_hold(theirs: Any) -> None:
    fast, slow = accelerate(theirs), copy.deepcopy(theirs)
    for one in (fast, slow):
        one("warm up", truncation=True, max_length=3, padding="max_length")
        one.add_tokens(["zzz"])
        one.add_special_tokens({"additional_special_tokens": ["<e>"]})
    same(fast(["a zzz <e> b", "a"]), slow(["a zzz <e> b", "a"]))
    for one in (fast, slow):
        one.truncation_side = "left"
        one.padding_side = "left"
    options = {"truncation": True, "max_length": 4, "padding": True}
    same(fast(["a b c d e", "a"], **options), slow(["a b c d e", "a"], **options))
    for one in (fast, slow):
        one.backend_tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    same(fast(["Été A"]), slow(["Été A"]))
    assert "zzz" not in theirs.get_vocab()  # it was copied


def test_copies_pickles_and_folders(theirs: Any, tmp_path: Path) -> None:
    fast = accelerate(theirs)
    for again in (pickle.loads(pickle.dumps(fast)), copy.deepcopy(fast), accelerate(fast)):
        assert type(again) is type(fast)
        same(again(list(TEXTS)), theirs(list(TEXTS)))
    fast.save_pretrained(tmp_path)
    same(transformers.AutoTokenizer.from_pretrained(tmp_path)(list(TEXTS)), theirs(list(TEXTS)))
    result = pickle.loads(pickle.dumps(fast(["the cat"])))
    assert result["input_ids"] == theirs(["the cat"])["input_ids"]
    assert result.tokens() == theirs(["the cat"]).tokens()


def test_what_is_not_supported_is_named(theirs: Any) -> None:
    with pytest.raises(InputError, match="takes a fast tokenizer of transformers, not str"):
        accelerate("bert-base-uncased")
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0}, []))
    with pytest.raises(TokenizerFormatError, match=r"cannot be accelerated: .*BPE"):
        accelerate(transformers.PreTrainedTokenizerFast(tokenizer_object=bpe))


def test_a_longer_row_than_the_models_is_logged(theirs: Any, caplog: pytest.LogCaptureFixture) -> None:
    import logging

    log = logging.getLogger("transformers")
    log.addHandler(caplog.handler)
    try:
        fast = accelerate(theirs)
        fast.deprecation_warnings = {}
        fast("a " * 99)
    finally:
        log.removeHandler(caplog.handler)
    assert "Token indices sequence length is longer than" in caplog.text


def test_the_vocabulary_is_whole(theirs: Any) -> None:
    assert len(theirs) == len(TOKENS)
    assert json.loads(theirs.backend_tokenizer.to_str())["model"]["type"] == "WordPiece"


def test_the_trainer_of_transformers_makes_the_same_steps(theirs: Any, tmp_path: Path) -> None:
    """Their Trainer pads, trains, evaluates and saves with the copy as with the tokenizer itself."""
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
    pytest.importorskip("accelerate", reason="accelerate, which their Trainer needs, is not installed: make test-torch")
    torch.set_num_threads(1)
    texts = [text for text in TEXTS if text.strip()] * 4
    config = transformers.BertConfig(
        vocab_size=len(TOKENS), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24
    )

    def train(tokenizer: Any, name: str) -> tuple[Any, Any]:
        rows = [
            {**tokenizer(text, truncation=True, max_length=12), "label": index % 2} for index, text in enumerate(texts)
        ]
        transformers.set_seed(0)
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path / name),
            max_steps=4,
            per_device_train_batch_size=4,
            logging_steps=1,
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
            seed=3,
        )
        trainer = transformers.Trainer(
            model=transformers.BertForSequenceClassification(config),
            args=arguments,
            train_dataset=rows,
            eval_dataset=rows[:8],
            processing_class=tokenizer,
        )
        trainer.train()
        losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        trainer.save_model(str(tmp_path / name / "model"))
        return losses, trainer.evaluate()["eval_loss"]

    found, expected = train(accelerate(theirs), "fast"), train(theirs, "slow")
    assert len(found[0]) == 4
    assert found == expected
    saved = transformers.AutoTokenizer.from_pretrained(tmp_path / "fast" / "model")
    same(saved(list(TEXTS)), theirs(list(TEXTS)))


def test_tensors_are_those_of_theirs(theirs: Any) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
    found = accelerate(theirs)(list(TEXTS), padding=True, truncation=True, return_tensors="pt")
    expected = theirs(list(TEXTS), padding=True, truncation=True, return_tensors="pt")
    assert list(found) == list(expected)
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)
