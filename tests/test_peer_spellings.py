"""Names, arguments and results that users of transformers expect, compared with transformers."""

from __future__ import annotations

import itertools
import json
import pickle
import re
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wordpiece_bert as wb
from small_tokenizer import TEXTS, tokenizer, with_file_settings
from wordpiece_bert.errors import InputError

ROLES = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "mask_token": "[MASK]"}


def peer_of(tok: wb.Tokenizer, **options: Any) -> Any:
    """The tokenizer of transformers with the same definition."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    if transformers.__version__ != "5.23.0":
        pytest.skip(f"the reference is transformers 5.23.0, not {transformers.__version__}")
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer.from_str(tok.to_json()),
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **ROLES,
        **options,
    )


def lists(inputs: Any) -> dict[str, Any]:
    return {name: np.asarray(value).tolist() for name, value in inputs.items()}


# --- the call


@pytest.mark.parametrize("padding", [None, False, True, "longest", "max_length", "do_not_pad"])
@pytest.mark.parametrize("truncation", [None, False, True, "only_first", "do_not_truncate"])
@pytest.mark.parametrize("max_length", [None, 8, 9])
@pytest.mark.parametrize("multiple", [None, 4])
def test_every_combination_of_truncation_and_padding(
    padding: Any, truncation: Any, max_length: int | None, multiple: int | None
) -> None:
    tok = tokenizer()
    peer = peer_of(tok)
    options = {"truncation": truncation, "max_length": max_length, "pad_to_multiple_of": multiple}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            theirs = peer(TEXTS, padding=False if padding is None else padding, **options)
        except ValueError as error:
            with pytest.raises(InputError, match=re.escape(str(error).split("(", 1)[0])):
                tok(TEXTS, padding=padding, return_tensors=None, **options)
            return
        ours = tok(TEXTS, padding=padding, return_tensors=None, **options)
    assert dict(ours) == {name: theirs[name] for name in ours}


@pytest.mark.parametrize("words", [[], (), ["the"], ["the", "cat"], [[]], [["the"], []]])
@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("tensors", [None, "np"])
def test_an_empty_list_of_words_is_one_text(words: Any, special: bool, tensors: str | None) -> None:
    tok = tokenizer()
    options = {"is_split_into_words": True, "add_special_tokens": special, "padding": True}
    theirs = peer_of(tok)(words, return_tensors=tensors, **options)
    ours = tok(words, return_tensors=tensors, **options)
    assert lists(ours) == lists(theirs)
    for name, array in ours.items():
        assert np.shape(array) == np.shape(theirs[name])


def test_an_empty_batch_of_words_is_a_column() -> None:
    """Where only batches are possible, an empty list is one without rows."""
    tok = tokenizer()
    assert len(tok.encode_batch([], is_split_into_words=True)) == 0
    assert tok.encodings([], is_split_into_words=True) == []
    assert tok.map_function("words", is_split_into_words=True)({"words": []})["input_ids"] == []


def test_positional_arguments_are_those_of_transformers() -> None:
    tok = tokenizer()
    peer = peer_of(tok)
    texts = ["the cat", "a b c"], ["un", "mat"], None, None
    arguments = (*texts, True, "max_length", True, 8, 0, False, 8, "left", "np")
    ours, theirs = tok(*arguments), peer(*arguments)
    assert lists(ours) == {name: theirs[name].tolist() for name in ours}


@pytest.mark.parametrize(
    "options",
    [{}, {"max_target_length": 4}, {"text_pair_target": ["cat", "mat"]}, {"tokenizer_kwargs": {"max_length": 5}}],
    ids=str,
)
def test_targets_are_labels(options: dict[str, Any]) -> None:
    tok = tokenizer()
    peer = peer_of(tok)
    for text in (["the cat sat", "a"], None):
        ours = tok(text, text_target=["the mat on a b c", "un"], max_length=6, return_tensors=None, **options)
        theirs = peer(text, text_target=["the mat on a b c", "un"], max_length=6, **options)
        assert dict(ours) == {name: theirs[name] for name in ours}
        assert ("labels" in ours) == (text is not None)
    # A length of the targets counts where the tokenizer has none for the texts.
    options = {"text_target": "the mat on a b c", "max_target_length": 4, "truncation": True}
    with warnings.catch_warnings(action="error"):
        assert tok(**options)["input_ids"].shape == (1, 4)
    with pytest.warns(UserWarning, match="truncation=True needs a max_length"):
        assert tok("the mat on a b c", **options)["labels"].shape == (1, 4)


def test_an_empty_call_and_unknown_options_are_errors() -> None:
    tok = tokenizer()
    with pytest.raises(InputError, match="either `text` or `text_target`"):
        tok()
    with pytest.raises(InputError, match="unknown option 'max_len' in tokenizer_kwargs"):
        tok("a", tokenizer_kwargs={"max_len": 3})
    with pytest.raises(TypeError, match="max_len"):
        tok("a", max_len=3)  # type: ignore[call-arg]


def test_split_special_tokens() -> None:
    tok = tokenizer()
    peer = peer_of(tok)
    text = "the [SEP] cat [MASK]"
    ours = tok(text, split_special_tokens=True, return_tensors=None)
    assert ours["input_ids"] == peer(text, split_special_tokens=True)["input_ids"]
    assert ours["input_ids"] != tok(text, return_tensors=None)["input_ids"]


def test_without_a_maximum_the_call_warns_and_does_nothing() -> None:
    tok = tokenizer()
    peer = peer_of(tok)
    for options in (
        {"truncation": True},
        {"padding": "max_length"},
        {"truncation": "only_first", "padding": "max_length"},
    ):
        with pytest.warns(UserWarning, match="max_length: none is given"):
            ours = tok(TEXTS, return_tensors=None, **options)  # type: ignore[arg-type]
        assert ours["input_ids"] == peer(TEXTS, **options)["input_ids"]
        tok(TEXTS, return_tensors=None, verbose=False, **options)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="needs a max_length"):
            tok.encode_batch(TEXTS, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("padding", [True, "longest"])
@pytest.mark.parametrize("truncation", [None, False, "do_not_truncate"])
def test_a_maximum_without_effect_warns(padding: Any, truncation: Any) -> None:
    tok = tokenizer()
    options = {"padding": padding, "truncation": truncation, "max_length": 4}
    plain = tok(TEXTS, padding=True)
    expected = plain["input_ids"].tolist()
    assert peer_of(tok)(TEXTS, verbose=False, **options)["input_ids"] == expected
    with warnings.catch_warnings(action="error"):
        assert tok(TEXTS, verbose=False, **options)["input_ids"].tolist() == expected
        assert len(tok(TEXTS, **options | {"truncation": True})["input_ids"][0]) == 4
        assert max(map(len, tok.encode_batch(TEXTS, max_length=4, padding="max_length").to_list())) > 4
    with pytest.warns(UserWarning, match="max_length=4 has no effect"):
        assert tok(TEXTS, **options)["input_ids"].tolist() == expected
    with pytest.warns(UserWarning, match="max_length=4 has no effect"):
        assert tok.encode_batch(TEXTS, **options).to_list() == expected
    with pytest.warns(UserWarning, match="max_length=4 has no effect"):
        assert tok.pad(dict(plain), padding=padding, max_length=4)["input_ids"].tolist() == expected


def test_a_maximum_alone_truncates_everywhere(tmp_path: Path) -> None:
    tok = tokenizer()
    expected = tok(TEXTS, max_length=6, return_tensors=None)["input_ids"]
    assert tok.encode_batch(TEXTS, max_length=6).to_list() == expected
    assert [encoding.ids for encoding in tok.encodings(TEXTS, max_length=6)] == expected
    assert [tok.encode(text, max_length=6).ids for text in TEXTS] == expected
    file = tmp_path / "texts.txt"
    file.write_text("the cat sat on the mat\n", encoding="utf-8")
    assert [len(batch[0]) for batch in tok.iter_files(file, max_length=4)] == [4]
    # not with padding, as in the call
    with pytest.warns(UserWarning, match="max_length=6 has no effect"):
        assert max(tok.encode_batch(TEXTS, max_length=6, padding=True).lengths) > 6
    # with the strategy of a file
    filed = with_file_settings({"max_length": 5, "strategy": "OnlyFirst"})
    assert len(filed.encode("the cat sat on the mat", max_length=4).ids) == 4
    with pytest.raises(InputError, match=r"(?i)first"):
        filed.encode("a", "the cat sat on the mat", max_length=4)


def test_encode_takes_a_truncation_length_that_is_no_multiple() -> None:
    tok = tokenizer()
    options: Any = {"truncation": True, "padding": True, "max_length": 9, "pad_to_multiple_of": 4}
    with pytest.raises(InputError, match=r"use max_length=12"):
        tok(TEXTS, **options)
    assert set(tok.encode_batch(TEXTS, **options).lengths.tolist()) == {12}


# --- tensors of PyTorch


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """PyTorch if it is installed, else a stand-in with the few functions used here."""
    try:
        import torch  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        module = types.ModuleType("torch")

        class Tensor:
            def __init__(self, array: Any, device: str = "cpu") -> None:
                self.array, self.device = array, device

            def to(self, device: Any, non_blocking: bool = False) -> Tensor:
                return Tensor(self.array, str(device))

            def tolist(self) -> Any:
                return self.array.tolist()

        Tensor.__module__ = "torch"
        module.from_numpy = Tensor  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "torch", module)
        return module
    return torch


def test_tensors(torch: Any) -> None:
    tok = tokenizer()
    inputs = tok(TEXTS, padding=True, return_tensors="pt")
    arrays = tok(TEXTS, padding=True)
    assert {type(value).__module__.partition(".")[0] for value in inputs.values()} == {"torch"}
    assert {name: value.tolist() for name, value in inputs.items()} == lists(arrays)
    assert inputs.to("meta") is inputs
    assert {str(value.device) for value in inputs.values()} == {"meta"}


def test_without_pytorch_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match="pip install torch"):
        tokenizer()("a", return_tensors="pt")
    with pytest.raises(InputError, match="must be 'np', 'pt' or None"):
        tokenizer()("a", return_tensors="tf")  # type: ignore[arg-type]


# --- the result


@pytest.mark.parametrize("overflow", [False, True])
@pytest.mark.parametrize("pair", [None, TEXTS[::-1]])
def test_the_encodings_of_the_rows(overflow: bool, pair: list[str] | None) -> None:
    tok = tokenizer()
    options = {
        "max_length": 12,
        "truncation": True,
        "stride": 2,
        "padding": True,
        "return_overflowing_tokens": overflow,
    }
    ours = tok(TEXTS, pair, **options)  # type: ignore[arg-type]
    theirs = peer_of(tok)(TEXTS, pair, **options)
    rows = len(theirs["input_ids"])
    assert len(ours["input_ids"]) == rows == len(ours.encodings or [])
    assert ours.n_sequences == theirs.n_sequences
    assert ours.is_fast
    for row in range(rows):
        assert ours.tokens(row) == theirs.tokens(row)
        assert ours.word_ids(row) == theirs.word_ids(row)
        assert ours.sequence_ids(row) == theirs.sequence_ids(row)
        assert ours[row].ids == theirs[row].ids == ours["input_ids"][row].tolist()
        for i in range(12):
            for name in ("token_to_sequence", "token_to_word", "token_to_chars"):
                assert getattr(ours, name)(row, i) == getattr(theirs, name)(row, i)
        for i, sequence in itertools.product(range(12), range(1 if pair is None else 2)):
            for name in ("char_to_token", "char_to_word", "word_to_tokens"):
                assert getattr(ours, name)(row, i, sequence) == getattr(theirs, name)(row, i, sequence)
            if theirs.word_to_tokens(row, i, sequence) is not None:
                assert ours.word_to_chars(row, i, sequence) == theirs.word_to_chars(row, i, sequence)
    assert ours.token_to_chars(1) == theirs.token_to_chars(1)  # of row 0
    assert ours.token_to_chars(0, -2) == ours.token_to_chars(0, 10)
    assert [encoding.ids for encoding in ours[0:2]] == [encoding.ids for encoding in theirs[0:2]]


@pytest.mark.parametrize("pair", [None, "un mat the cat the cat the mat c b a"])
@pytest.mark.parametrize("template", [True, False])
@pytest.mark.parametrize(("longest", "stride"), [(7, 1), (9, 2)])
def test_places_in_windows_are_those_of_tokenizers(pair: str | None, template: bool, longest: int, stride: int) -> None:
    """Without a template, tokenizers does not know which tokens of the windows of a pair are from which text."""
    tokenizers = pytest.importorskip("tokenizers")
    content = json.loads(tokenizer().to_json()) | ({} if template else {"post_processor": None})
    ours, theirs = wb.Tokenizer.from_json(json.dumps(content)), tokenizers.Tokenizer.from_str(json.dumps(content))
    theirs.enable_truncation(longest, stride=stride)
    text = "the cat sat on the mat a b c"
    rows = [(ours.encode(text, pair, truncation=True, max_length=longest, stride=stride), theirs.encode(text, pair))]
    while rows:
        mine, other = rows.pop()
        for name in ("ids", "word_ids", "sequence_ids", "offsets", "n_sequences"):
            assert getattr(mine, name) == getattr(other, name)
        for place, sequence in itertools.product(range(14), range(2)):
            for name in ("char_to_token", "char_to_word", "word_to_tokens", "word_to_chars"):
                assert getattr(mine, name)(place, sequence) == getattr(other, name)(place, sequence), name
        rows += zip(mine.overflowing, other.overflowing, strict=True)


def test_the_encodings_of_iterators_and_of_lists_that_change() -> None:
    tok = tokenizer()
    inputs = tok(iter(["the cat", "a"]), padding=True)
    assert inputs.tokens(1) == ["[CLS]", "a", "[SEP]", "[PAD]"]
    texts = ["the cat", "a"]
    inputs = tok(texts, padding=True)
    texts[1] = "mat mat mat"
    assert inputs.tokens(1) == ["[CLS]", "a", "[SEP]", "[PAD]"]


def test_values_are_set_and_popped_as_in_a_dict() -> None:
    inputs = tokenizer()(["the cat", "a"], padding=True)
    inputs["labels"] = [0, 1]
    assert inputs.labels == [0, 1]
    assert inputs.pop("token_type_ids").shape == (2, 4)
    assert inputs.pop("absent", None) is None
    del inputs["labels"]
    assert list(inputs) == ["input_ids", "attention_mask"]
    inputs.update(extra=3)
    assert inputs.data["extra"] == 3
    with pytest.raises(InputError, match="a name must be a str"):
        inputs[0] = 1  # type: ignore[index]
    with pytest.raises(KeyError):
        inputs["absent"]


def test_copies_and_pickles_have_the_values_only() -> None:
    inputs = tokenizer()(["the cat", "a"], padding=True)
    for copy in (pickle.loads(pickle.dumps(inputs)), inputs.copy()):
        assert lists(copy) == lists(inputs)
        assert copy.encodings is None
        assert not copy.is_fast
        with pytest.raises(InputError, match="no encodings"):
            copy.word_ids(0)


def test_arrays_stay_on_the_cpu() -> None:
    inputs = tokenizer()("the cat")
    assert inputs.to("cpu") is inputs
    with pytest.raises(InputError, match="return_tensors='pt'"):
        inputs.to("cuda")


# --- pad


@pytest.mark.parametrize("padding", [True, False, "longest", "max_length", "do_not_pad"])
@pytest.mark.parametrize("multiple", [None, 8])
@pytest.mark.parametrize("side", [None, "left"])
@pytest.mark.parametrize("shape", ["columns", "rows", "single", "arrays"])
@pytest.mark.parametrize("mask", [None, False, True])
def test_pad(padding: Any, multiple: int | None, side: Any, shape: str, mask: bool | None) -> None:
    tok = tokenizer()
    peer = peer_of(tok)
    encoded = tok(TEXTS, return_tensors=None, return_special_tokens_mask=True)
    encoded["labels"] = list(range(len(TEXTS)))
    if mask is not False:
        encoded.pop("attention_mask")

    def given() -> Any:
        data = {name: list(value) for name, value in encoded.items()}
        rows = [{name: value[i] for name, value in data.items()} for i in range(len(TEXTS))]
        if shape == "single":
            return {name: value[0] for name, value in data.items() if name != "labels"}
        if shape == "arrays":
            return {name: [np.array(row) for row in value] for name, value in data.items() if name != "labels"}
        return data if shape == "columns" else rows

    if shape == "arrays" and (padding in (False, "do_not_pad") or mask is False):
        pytest.skip("rows of different lengths form no array")
    longest = max(map(len, encoded["input_ids"]))
    options = {
        "max_length": longest + 1,
        "pad_to_multiple_of": multiple,
        "padding_side": side,
        "return_attention_mask": mask,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = peer.pad(given(), padding, **options)
        ours = tok.pad(given(), padding, **options)
    assert {name: type(value) for name, value in ours.items()} == {name: type(value) for name, value in theirs.items()}
    assert {name: np.asarray(value).tolist() if shape == "arrays" else value for name, value in ours.items()} == {
        name: np.asarray(value).tolist() if shape == "arrays" else value for name, value in theirs.items()
    }


def test_pad_takes_results_of_calls_with_one_text() -> None:
    tok = tokenizer()
    for texts in (["a b", "a"], ["a", "b"]):
        padded, expected = tok.pad([tok(text) for text in texts]), tok(texts, padding=True)
        assert {name: padded[name].tolist() for name in padded} == {name: expected[name].tolist() for name in expected}


def test_what_pad_refuses() -> None:
    tok = tokenizer()
    with pytest.raises(InputError, match="includes input_ids"):
        tok.pad({"ids": [[1]]})
    with pytest.raises(InputError, match="token_type_ids has 1 rows, and input_ids 2"):
        tok.pad({"input_ids": [[1], [2]], "token_type_ids": [[0]]})
    with pytest.raises(InputError, match="item 1 of token_type_ids has 1 entries, and its input_ids 2"):
        tok.pad({"input_ids": [[1], [2, 3]], "token_type_ids": [[0], [0]]})
    with pytest.raises(InputError, match="item 1 of input_ids has 2 rows"):
        tok.pad([tok("a"), tok(["a", "b"])])
    with pytest.raises(InputError, match="item 1 has no 'labels'"):
        tok.pad([{"input_ids": [1], "labels": 1}, {"input_ids": [1]}])
    for wrong in ("abc", [], 3, [1, 2]):
        with pytest.raises(InputError, match="pad takes a dict"):
            tok.pad(wrong)  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match="needs a max_length"):
        assert tok.pad({"input_ids": [[1], [2, 3]]}, "max_length")["input_ids"] == [[1], [2, 3]]


# --- ids and tokens


def test_batch_decode_and_convert_tokens_to_string() -> None:
    tok = tokenizer()
    peer = peer_of(tok)
    rows = [tok.encode(text).ids for text in TEXTS]
    for skip in (False, True):
        expected = [peer.backend_tokenizer.decode(row, skip_special_tokens=skip) for row in rows]
        assert tok.batch_decode(rows, skip) == tok.decode_batch(rows, skip) == expected
        assert [tok.decode(row, skip) for row in rows] == expected
    assert tok.batch_decode(rows) == tok.batch_decode(rows, skip_special_tokens=False)
    for text in TEXTS:
        tokens = tok.tokenize(text, None, True)
        assert tok.convert_tokens_to_string(tokens) == peer.convert_tokens_to_string(tokens)
    with pytest.raises(InputError, match="tokens must be a list of str"):
        tok.convert_tokens_to_string("abc")


@pytest.mark.parametrize(
    "dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.intp]
)
def test_ids_of_every_numpy_integer(dtype: type) -> None:
    tok = tokenizer()
    cat = tok.convert_tokens_to_ids("cat")
    for ids in (dtype(cat), np.array(cat, dtype), np.array([cat], dtype), [dtype(cat)]):
        assert tok.decode(ids) == "cat"
    assert tok.decode_batch(np.array([[cat, cat]], dtype)) == ["cat cat"]
    with pytest.raises(InputError):
        tok.decode(np.float64(cat))  # type: ignore[arg-type]
    with pytest.raises(InputError):
        tok.decode(np.bool_(True))  # type: ignore[arg-type]


def test_special_tokens_mask() -> None:
    tok = tokenizer()
    peer = peer_of(tok)
    row = tok.encode("the [MASK] cat", "a").ids
    assert tok.get_special_tokens_mask(row, None, True) == peer.get_special_tokens_mask(row, None, True)
    first, second = (
        tok.encode("the cat sat", add_special_tokens=False).ids,
        tok.encode("a b", add_special_tokens=False).ids,
    )
    assert tok.get_special_tokens_mask(first) == [1, 0, 0, 0, 1]
    assert tok.get_special_tokens_mask(np.array(first), second) == [1, 0, 0, 0, 1, 0, 0, 1]
    assert tok.get_special_tokens_mask([]) == [1, 1]
    assert tok.get_special_tokens_mask([], []) == [1, 1, 1]
    with pytest.raises(InputError, match="second sequence"):
        tok.get_special_tokens_mask(row, second, already_has_special_tokens=True)
    with pytest.raises(InputError, match="id 0"):
        tok.get_special_tokens_mask(["a"])  # type: ignore[list-item]


def test_positional_arguments_of_the_vocabulary() -> None:
    tok = tokenizer()
    assert tok.num_special_tokens_to_add(True) == 3
    assert tok.get_vocab(False) == tok.get_vocab(with_added_tokens=False)
    assert tok.convert_ids_to_tokens(tok.encode("a").ids, True) == ["a"]
    assert tok.tokenize("a", None, True) == ["[CLS]", "a", "[SEP]"]


# --- slices


@pytest.mark.parametrize("overflow", [False, True])
@pytest.mark.parametrize(
    "part",
    [slice(0, 2), slice(None), slice(3, 1), slice(-2, None), slice(None, None, -1), slice(1, 99, 3), slice(50, 60)],
)
def test_slices_of_a_batch(overflow: bool, part: slice) -> None:
    batch = tokenizer().encode_batch(
        TEXTS,
        max_length=9,
        return_offsets=True,
        return_word_ids=True,
        return_sequence_ids=True,
        return_n_tokens=True,
        return_overflowing_tokens=overflow,
    )
    sliced = batch[part]
    rows = range(len(batch))[part]
    assert len(sliced) == len(rows)
    assert sliced.to_list() == [batch[row].tolist() for row in rows]
    starts, ends = batch.row_offsets[:-1], batch.row_offsets[1:]
    for name in ("offsets", "word_ids", "sequence_ids"):
        expected = [value for row in rows for value in getattr(batch, name)[starts[row] : ends[row]].tolist()]
        assert getattr(sliced, name).tolist() == expected
    samples = rows if batch.overflow_to_sample is None else batch.overflow_to_sample[list(rows)].tolist()
    for name in ("truncated", "n_tokens"):
        found = getattr(sliced, name)
        per_row = found if sliced.overflow_to_sample is None else found[sliced.overflow_to_sample]
        assert per_row.tolist() == [getattr(batch, name)[sample] for sample in samples]
    assert len(batch[np.int64(0)]) == batch.lengths[0]  # type: ignore[call-overload]
    pytest.importorskip("pyarrow")
    assert sliced.to_arrow().to_pylist() == sliced.to_list()


def test_a_pair_with_very_many_windows_warns() -> None:
    tok = tokenizer()
    long = "a b c d " * 150
    with pytest.warns(UserWarning, match=r"texts\[1\] has [\d,]+ windows"):
        tok.encode_batch(["a", (long, long)], truncation=True, max_length=12, return_overflowing_tokens=True)
