"""Errors for wrong arguments: their class, and messages with the argument or item, the value, and what to do."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wordpiece_bert as wb
from model_files import MODELS
from small_tokenizer import tokenizer, with_file_settings
from wordpiece_bert import _core, bert, evaluation, finetune, inspect, pretraining, sentence, training, util
from wordpiece_bert._internal.checks import checked_strings
from wordpiece_bert.errors import InputError, InternalError, VocabError
from wordpiece_bert.evaluation import InformationRetrievalEvaluator as Retrieval
from wordpiece_bert.evaluation import ParaphraseMiningEvaluator as Paraphrases
from wordpiece_bert.finetune import choices, data, held_out_rows, losses, metrics, questions
from wordpiece_bert.finetune.labels import class_labels
from wordpiece_bert.finetune.objectives import Tables, objective_class
from wordpiece_bert.sentence.arguments import prompt_text

Ask = Callable[[wb.Tokenizer], object]

SURROGATE = "ab\udc80c"


def ids_of(value: object) -> str:
    return re.sub(r"\W+", "_", ascii(value))[:40]


# --- texts


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "None"),
        (5, "int 5"),
        (b"bytes", "bytes b'bytes'"),
        (1.5, "float 1.5"),
        (["a"], r"list \['a'\]"),
        ({"a": 1}, "dict"),
        (SURROGATE, r"a lone surrogate, '\\udc80', at position 2"),
    ],
    ids=ids_of,
)
def test_values_that_are_not_texts_are_refused(value: object, message: str) -> None:
    tok = tokenizer()
    with pytest.raises(InputError, match=f"^text (is|has) {message}"):
        tok.encode(value)
    with pytest.raises(InputError, match=f"^text (is|has) {message}"):
        tok.encode_ids(value)  # type: ignore[arg-type]
    if value is not None:
        with pytest.raises(InputError, match=f"^pair (is|has) {message}"):
            tok.encode("a", value)
    calls: list[Ask] = [
        lambda tok: tok.encode_batch(["a", value, "b"]),
        lambda tok: tok.encodings(["a", value, "b"]),
        lambda tok: tok(["a", value, "b"]),
        lambda tok: tok.encode_batch(np.array(["a", value, "b"], dtype=object)),
    ]
    for call in calls:
        with pytest.raises(InputError, match=f"^item 1 (is|has) {message}"):
            call(tok)
    with pytest.raises(InputError, match=f"^item 2, second text (is|has) {message}"):
        tok.encode_batch(["a", "b", ("c", value)])
    with pytest.raises(InputError, match=f"^item 1, second text (is|has) {message}"):
        tok(["a", "b"], ["c", value])
    with pytest.raises(InputError, match=f"^text, word 1 (is|has) {message}"):
        tok.encode(["a", value], is_split_into_words=True)
    with pytest.raises(InputError, match=f"^item 1, word 1 (is|has) {message}"):
        tok.encode_batch([["a"], ["b", value]], is_split_into_words=True)


@pytest.mark.parametrize("value", ["a text", b"bytes", 5, None, {"a": 1}, {"a"}], ids=ids_of)
def test_values_that_are_not_batches_are_refused(value: object) -> None:
    tok = tokenizer()
    for call in (tok.encode_batch, tok.encodings):
        with pytest.raises(InputError, match="a batch is a list of texts"):
            call(value)
    if not isinstance(value, str | None):
        with pytest.raises(InputError, match="a batch is a list of texts"):
            tok(value)


def test_arrays_of_no_dimensions_and_with_masks_are_refused() -> None:
    """The first have the methods of a sequence, and the second had what is below the mask encoded."""
    encoder = wb.SentenceEncoder(MODELS / "sentence_plain_folder")
    model = bert.BertModel.from_pretrained(MODELS / "bert_small")
    calls: list[Callable[[Any], object]] = [
        *(lambda x, call=call: call(tokenizer(), x) for call in (wb.Tokenizer.encode_batch, wb.Tokenizer.encodings)),
        *(encoder.encode, wb.SentenceEncoder(MODELS / "static_st").encode, wb.WordCounts.from_texts),
        *(lambda x: wb.train_vocab(x, 7), lambda x: wb.vocab_report(tokenizer(), x)),
    ]
    for call in calls:
        for texts in (np.array("a"), np.ma.masked_array(["a", "b"], [False, True])):
            with pytest.raises(InputError, match="text"):
                call(texts)
        call(np.ma.masked_array(["a", "b"]))
    assert tokenizer().encode_batch(["a"], stride=np.array(0)).to_list() == tokenizer().encode_batch(["a"]).to_list()
    assert tokenizer().decode([2], skip_special_tokens=np.False_) == tokenizer().decode([2], skip_special_tokens=False)
    assert tokenizer().convert_ids_to_tokens(np.array(2)) == tokenizer().convert_ids_to_tokens(2)
    masked = np.ma.masked_array([[2, 5, 3]], [[False, True, False]])
    for options in ({"input_ids": masked}, {"input_ids": [[2, 5, 3]], "attention_mask": masked > 0}):
        with pytest.raises(
            InputError, match=r"numbers, not an array with masked values: \w+\.filled\(0\) replaces them"
        ):
            model(**options)


def test_malformed_pairs_are_refused() -> None:
    tok = tokenizer()
    for item in (["a", "b", "c"], ("a",), []):
        with pytest.raises(InputError, match=r"item 0 is .*a pair has two texts"):
            tok.encode_batch([item])
    with pytest.raises(InputError, match=r"with is_split_into_words=True a text is a list of words"):
        tok.encode("a b", is_split_into_words=True)
    with pytest.raises(InputError, match=r"item 0 is str 'a b'; with is_split_into_words=True"):
        tok.encode_batch(["a b"], is_split_into_words=True)


def test_errors_of_the_iterable_propagate() -> None:
    def broken() -> Iterator[str]:
        yield "a"
        message = "the disk is gone"
        raise OSError(message)

    with pytest.raises(OSError, match="the disk is gone"):
        tokenizer().encode_batch(broken())


# --- options


@pytest.mark.parametrize("given", [{}, {"text_target": "b"}])
@pytest.mark.parametrize(
    "flag",
    [
        "return_token_type_ids",
        "return_attention_mask",
        "return_overflowing_tokens",
        "return_special_tokens_mask",
        "return_offsets_mapping",
        "return_length",
        "verbose",
    ],
)
def test_flags_of_the_call_are_true_or_false(flag: str, given: dict[str, Any]) -> None:
    tok = tokenizer()
    for value in (True, False, np.True_, np.False_):
        tok("a", **given, **{flag: value})
    for value in ("x", 5):
        with pytest.raises(InputError, match=f"^{flag} must be True or False, not {value!r}$"):
            tok("a", truncation=flag == "verbose", **given, **{flag: value})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"truncation": "longest"},
            "truncation must be one of True, False, None, 'do_not_truncate', 'longest_first', 'only_first', 'only_second'",
        ),
        ({"truncation": 1}, "truncation must be one of .*, not 1$"),
        ({"padding": "right"}, "padding must be one of True, False, None, 'do_not_pad', 'longest', 'max_length', not"),
        ({"padding_side": "top"}, "padding_side must be one of 'right', 'left', not 'top'"),
        ({"truncation_side": True}, "truncation_side must be one of 'right', 'left', not True"),
        ({"offset_unit": "word"}, "offset_unit must be one of 'char', 'byte', 'utf16', not 'word'"),
        ({"offset_unit": None}, "offset_unit must be one of 'char', 'byte', 'utf16', not None"),
        ({"max_length": -1}, "max_length must be a whole number, 0 or more, not -1"),
        ({"max_length": 10**30}, "max_length must be a whole number from 0 to 9223372036854775807, not 1000"),
        ({"max_length": 5.0}, r"max_length must be a whole number, 0 or more, not 5\.0"),
        ({"max_length": "5"}, "max_length must be a whole number, 0 or more, not '5'"),
        ({"max_length": True}, "max_length must be a whole number"),
        ({"stride": -1}, "stride must be a whole number, 0 or more, not -1"),
        ({"pad_to_multiple_of": 0}, "pad_to_multiple_of must be a whole number from 1 to .*, not 0"),
        ({"pad_to_multiple_of": -8}, "pad_to_multiple_of must be a whole number from 1 to .*, not -8"),
        ({"add_special_tokens": "yes"}, "add_special_tokens must be True or False, not 'yes'"),
        ({"is_split_into_words": None}, "is_split_into_words must be True or False, not None"),
        ({"encode_special_tokens": 1}, "encode_special_tokens must be True or False, not 1"),
        ({"truncation": True}, "truncation=True needs a max_length"),
        ({"padding": "max_length"}, "padding='max_length' needs a max_length"),
        (
            {"padding": "max_length", "max_length": 10**12},
            "the length to pad to must be a whole number from 0 to 16777216",
        ),
        (
            {"truncation": True, "max_length": 1},
            "max_length is 1, but 2 special tokens are added.*add_special_tokens=False",
        ),
        ({"truncation": True, "max_length": 0}, "max_length is 0, but 2 special tokens are added"),
        ({"truncation": True, "max_length": 5, "stride": 3}, "stride is 3, but a window holds only 3 tokens"),
        ({"truncation": True, "max_length": 5, "stride": 9}, "stride is 9, but a window holds only 3 tokens"),
    ],
    ids=ids_of,
)
def test_wrong_options_are_reported_by_every_method(options: dict[str, Any], message: str) -> None:
    tok = tokenizer()
    calls: list[Ask] = [
        lambda tok: tok.encode("a", **options),
        lambda tok: tok.encode_batch(["a"], **options),
        lambda tok: tok.encode_batch([], **options),  # a wrong option is an error even without texts
        lambda tok: tok.encodings(["a"], **options),
    ]
    # As in transformers, a call only warns of an unknown maximum.
    if "needs a max_length" not in message:
        calls.append(lambda tok: tok(["a"], **options))
    for call in calls:
        with pytest.raises(InputError, match=message) as raised:
            call(tok)
        assert isinstance(raised.value, TypeError)


def test_options_that_only_a_pair_violates_are_reported_for_the_pair() -> None:
    tok = tokenizer()
    with pytest.raises(InputError, match="max_length is 2, but 3 special tokens are added"):
        tok.encode("a b", "c", truncation=True, max_length=2)
    with pytest.raises(InputError, match="item 1: max_length is 2, but 3 special tokens are added"):
        tok.encode_batch(["a", ("a b", "c")], truncation=True, max_length=2)
    with pytest.raises(InputError, match="stride is 2, but a window holds only 2 tokens of the text"):
        tok.encode("a b c", "d e f", truncation=True, max_length=7, stride=2)
    with pytest.raises(InputError, match="second sequence not provided"):
        tok.encode("a b c d", truncation="only_second", max_length=4)
    with pytest.raises(
        InputError, match="too short to respect the provided max_length: the first text has 1 tokens and 2"
    ):
        tok.encode("a", "c d e f", truncation="only_first", max_length=6)


def test_wrong_settings_of_a_file_are_reported_when_they_apply() -> None:
    tok = with_file_settings({"max_length": 1})
    with pytest.raises(InputError, match="max_length is 1, but 2 special tokens"):
        tok.encode("a")
    assert tok.encode("a", truncation=False).tokens == ["[CLS]", "a", "[SEP]"]
    huge = with_file_settings(None, {"strategy": {"Fixed": 10**15}})
    with pytest.raises(InputError, match="the length to pad to must be a whole number"):
        huge.encode("a")
    assert len(huge.encode("a", padding=False)) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"return_tensors": "tf"}, "return_tensors must be 'np', 'pt' or None, not 'tf'"),
        ({"dtype": "float32"}, "dtype must be 'int64' or 'int32', not 'float32'"),
        ({"dtype": "uint8"}, "dtype must be 'int64' or 'int32', not 'uint8'"),
        ({"dtype": "nonsense"}, "dtype must be 'int64' or 'int32', not 'nonsense'"),
    ],
    ids=ids_of,
)
def test_wrong_options_of_the_call_are_reported(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        tokenizer()("a", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lowercase": "yes"}, "lowercase must be True or False, not 'yes'"),
        ({"strip_accents": 1}, "strip_accents must be True or False, or None, not 1"),
        ({"unk_token": None}, "unk_token is None; a token is a str"),
        ({"cls_token": 5}, "cls_token is int 5; a token is a str"),
        ({"pad_token": SURROGATE}, "pad_token has a lone surrogate"),
        ({"continuing_subword_prefix": None}, "continuing_subword_prefix is None"),
        ({"max_input_chars_per_word": -1}, "max_input_chars_per_word must be a whole number, 0 or more"),
    ],
    ids=ids_of,
)
def test_wrong_options_of_from_vocab_are_reported(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        tokenizer(**options)


@pytest.mark.parametrize(
    ("vocab", "message"),
    [
        (["[UNK]", 5], "vocab item 1 is int 5; a token is a str"),
        (["[UNK]", SURROGATE], "vocab item 1 has a lone surrogate"),
        ({"[UNK]": 0, "a": -1}, "id of vocab item 1 is int -1"),
        ({"[UNK]": 0, "a": 2**32}, "id of vocab item 1 is int 4294967296"),
        ({"[UNK]": 0, "a": "1"}, "id of vocab item 1 is str '1'"),
        ({"[UNK]"}, "a vocabulary must be a path, a list of tokens or a dict of tokens and ids, not set"),
        (b"[UNK]", "a vocabulary must be a path.*not bytes"),
        (None, "a vocabulary must be a path.*not NoneType"),
    ],
    ids=ids_of,
)
def test_values_that_are_not_vocabularies_are_refused(vocab: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        wb.Tokenizer.from_vocab(vocab)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ("<e>", "tokens must be a list of tokens, not the single token '<e>'"),
        ([""], "the content of an added token must be a non-empty str"),
        (["<e>", 5], "token 1 must be a str or an AddedToken, not int: 5"),
        (["<e>", "\udc80"], "token 1 has a lone surrogate"),
        (["<e>", "\u0301"], r"added token .*: the normalizer turns it into nothing.*normalized=False"),
    ],
    ids=ids_of,
)
def test_values_that_are_not_added_tokens_are_refused(tokens: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tokenizer().with_added_tokens(tokens)  # type: ignore[arg-type]


def test_an_added_token_with_wrong_flags_is_refused() -> None:
    with pytest.raises(InputError, match="lstrip of the added token '<e>' must be True or False, not 'yes'"):
        wb.AddedToken("<e>", lstrip="yes")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="content of an added token must be"):
        wb.AddedToken(5)  # type: ignore[arg-type]


# --- ids and tokens


@pytest.mark.parametrize("value", [-1, 2**32, 10**30, "1", None, 1.5, True], ids=ids_of)
def test_what_is_no_id_is_refused(value: object) -> None:
    tok = tokenizer()
    message = "an id is a whole number from 0 to 4294967295"
    with pytest.raises(InputError, match=f"^token_id is .*{message}"):
        tok.id_to_token(value)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=f"^id 1 is .*{message}"):
        tok.decode([5, value])
    with pytest.raises(InputError, match=f"^item 1, id 0 is .*{message}"):
        tok.decode_batch([[5], [value]])


@pytest.mark.parametrize("value", ["ids", None, 1.5, {1, 2}], ids=ids_of)
def test_what_is_no_list_of_ids_is_refused(value: object) -> None:
    tok = tokenizer()
    with pytest.raises(InputError, match="ids"):
        tok.decode(value)
    with pytest.raises(InputError, match=r"^item 0 is"):
        tok.decode_batch([value])
    with pytest.raises(InputError, match=r"^ids has rows of ids: use decode_batch"):
        tok.decode(np.array([[1, 2]]))


@pytest.mark.parametrize("value", [5, None, b"cat", SURROGATE], ids=ids_of)
def test_what_is_no_token_is_refused(value: object) -> None:
    with pytest.raises(InputError, match=r"^token (is|has) "):
        tokenizer().token_to_id(value)  # type: ignore[arg-type]


# --- arguments of a plainly wrong kind


T, TOPS, IDS = {"a": "bread", "b": "dough"}, (None, 5, "x", ["a"]), ([["a"]], [{"a": 1}], [("a", ["b"])])
ROWS: dict[str, Any] = {"labels": [0], "max_length": 9}
TOK, CoSENT, ARGS = tokenizer(), losses.CoSENTLoss(), finetune.TrainingArguments("out")
TABLES = Tables(train="train.csv")


@pytest.mark.parametrize(
    ("call", "values", "message"),
    [
        (evaluation.SequentialEvaluator, (None, 5, "x", [None]), "evaluators must be a list of evaluators"),
        (lambda x: evaluation.SequentialEvaluator([len], x), TOPS[1:], "main_score_function must be a function of"),
        (lambda x: Retrieval(x, T, {"a": {"b"}}), TOPS, "queries must be a dict of texts by id, not"),
        (lambda x: Retrieval(T, x, {"a": {"b"}}), TOPS, "corpus must be a dict of texts by id, not"),
        (lambda x: Retrieval(T, T, x), TOPS, "relevant_docs must be a dict of sets of ids by the id of the query"),
        (lambda x: Retrieval(T, T, {"a": x}), IDS, r"relevant_docs\['a'\] has the id .*: an id must be hashable"),
        (lambda x: Retrieval(T, T, {"a": ["b"]}, score_functions=x), (5, {}, {"f": 5}), "score_functions"),
        (evaluation.RerankingEvaluator, (None, 5), "samples must be a list of samples, each a dict, not"),
        (lambda x: Paraphrases(T, x), (5, 1.5), "duplicates_list must be a list of pairs of ids, not"),
        (lambda x: Paraphrases(T, [("a", "b"), ("a", x[0])]), IDS, r"duplicates_list\[1\] has the id"),
        (lambda x: Paraphrases(T, None, x), TOPS[1:], "duplicates_dict must be a dict of dicts of True by id, not"),
        (sentence.reciprocal_rank_fusion, (None, 5, [None]), r"rankings(\[0\])? must be a list of"),
        (lambda x: sentence.reciprocal_rank_fusion([["a"], x]), IDS, r"rankings\[1\] has the id"),
        (lambda x: util.semantic_search(np.eye(2), np.eye(2), score_function=x), TOPS, "score_function must be a"),
        (sentence.MultiVectors.from_list, (None, 5), "arrays must be a list of arrays"),
        (wb.WordCounts.from_dict, TOPS, "counts must be a dict of numbers by word, not"),
        (pretraining.ExamplesReport.from_dict, TOPS, "content must be a dict of the fields of a report, not"),
        (bert.BertConfig.from_dict, TOPS, "values must be a dict of fields, as a config.json has them, not"),
        (bert.DebertaV2Config.from_dict, TOPS, "values must be a dict of fields, as a config.json has them, not"),
        (lambda x: training.vocab_contents(x, []), (None, 5, [5], [["a"]]), "vocab"),
        (lambda x: training.vocab_contents(["a"], x), (None, 5, [5], "a"), "special_tokens"),
        (lambda x: training.extend_embeddings(np.eye(2), x), TOPS, "vocab must be a Vocab, not"),
        (lambda x: wb.vocab_report(x, ["a"]), TOPS, "tokenizer must be a Tokenizer"),
        (lambda x: questions.question_windows(x, ["a"], ["b"], ["b"]), TOPS, "tokenizer must be a Tokenizer"),
        (lambda x: choices.choice_rows(x, ["a"], [["b", "c"]], **ROWS), TOPS, "tokenizer must be a Tokenizer"),
        (lambda x: data.sequence_rows(x, ["a"], None, names=None, **ROWS), TOPS, "tokenizer must be a Tokenizer"),
        (lambda x: tokenizer().with_added_tokens(x), (None, 5), "tokens must be a list of tokens, not"),
        (lambda x: tokenizer().convert_tokens_to_ids(x), (None, 5, [5], b"a"), "tokens must be a token, or a list"),
        (lambda x: prompt_text(None, x, {"q": ""}, None), (5, ["q"]), "prompt_name must be a str, not"),
        (lambda x: finetune.AdamW(x), (None, 5, "ab"), "parameters must be a Mapping, not"),
        (lambda x: finetune.AdamW({}, betas=x), (None, 5, "ab", [0.9]), "betas must be "),
        (lambda x: losses.MatryoshkaLoss(CoSENT, x), (None, 5, "ab"), "matryoshka_dims must be a list, not"),
        (lambda x: losses.MatryoshkaLoss(CoSENT, [2], x), (5, "a"), "matryoshka_weights must be a list, not"),
        (lambda x: losses.SoftmaxLoss(2, 2, seed=x), (None, -1, 1.5), "seed must be a whole number"),
        (lambda x: metrics.f1_by_label([0], [0], x), (None, 5, "ab"), "names must be a list of str, not"),
        (finetune.pad_collate, (None, 5, {"a": 1}, iter([])), "rows must be a sequence of rows, such as a list of"),
        (
            lambda x: finetune.pad_collate([{"input_ids": x}]),
            (None, 5, "ab", [1.5], [[1, 2], [3]]),
            "item 0 .* input_ids",
        ),
        (lambda x: finetune.pad_collate([{"input_ids": [1], "labels": x}]), (None, "a", [[1], []]), "item 0 .* labels"),
        (lambda x: finetune.pad_collate([{"input_ids": [1]}], x), (None, "a", 1.5), "pad_token_id must be a whole"),
        (lambda x: finetune.cached_vectors(x, ["a"], "cache"), TOPS, "encoder must be a SentenceEncoder, not"),
        (finetune.value_and_grad, TOPS, "a model of this package is needed, not"),
        (lambda x: finetune.Trainer(x, ARGS), TOPS, "a model of this package is needed, not"),
        (lambda x: finetune.Trainer(TOK, ARGS, compute_metrics=x), TOPS[1:], "compute_metrics must be a function of"),
        (lambda x: finetune.SentenceTrainer(x, ARGS, None, CoSENT), TOPS, "encoder must be a SentenceEncoder, not"),
        (lambda x: losses.MatryoshkaLoss(x, [2]), (*TOPS, losses.CoSENTLoss), "loss must be a loss of sentence"),
        (
            lambda x: objective_class("regress", "tables")(TABLES).fit_frozen("m", C=x),
            (None, "a", 0, -1),
            "C must be a",
        ),
        (lambda x: training.extend_model(x, None), (*TOPS, TOK), "model must be a model of wordpiece_bert.bert or a"),
        (lambda x: held_out_rows(TOPS, x), (None, "a", np.nan), "share must be between 0 and"),
        (
            lambda x: data.sequence_rows(TOK, ["a"], None, names=None, **ROWS | {"labels": x}),
            (None, 5, "a"),
            "labels must be a list",
        ),
        (lambda x: data.token_rows(TOK, x, [["O"]], names=["O"], max_length=9), (None, 5, "a"), "words must be a list"),
        (lambda x: data.token_rows(TOK, [["a"]], x, names=["O"], max_length=9), (None, 5, "a"), "tags must be a list"),
        (lambda x: choices.choice_rows(TOK, ["a"], x, **ROWS), (None, 5, "a"), "choices must be a list, not"),
        (lambda x: choices.choice_rows(TOK, ["a"], [x], **ROWS), (None, 5, "a"), "row 0, choices: must be a list, not"),
        (lambda x: questions.question_windows(TOK, ["a"], ["b"], x), (None, 5, "b"), "answers must be a list, not"),
        (lambda x: questions.question_windows(TOK, ["a"], ["b"], ["b"], x), (5, "b"), "starts must be a list, not"),
        (lambda x: inspect.sinusoids(x, 4), (None, -1, 1.5, np.nan), "count must be a whole number"),
        (lambda x: inspect.positions(np.eye(2), most=x), (None, 0, 1.5), "most must be a whole number"),
        (lambda x: inspect.similarity(np.eye(2), x), (5, "ab"), "tokens must be "),
        (lambda x: wb.vocab_report(TOK, ["a"], alpha=x), (None, "a", 0, np.inf), "alpha must be a finite number"),
        (lambda x: wb.train_vocab(["a"], 20, progress=x), (5, "a"), "progress must be a function of"),
        (lambda x: wb.train_vocab(x), ("a.jsonl", "b.CSV.gz"), r"\S+: its lines are not texts"),
        (lambda x: wb.WordCounts.from_texts(["a"], progress=x), (5, "a"), "progress must be a function of"),
        (lambda x: TOK.encode_files("a.txt", "b.npy", field=x), (5, [5], "abc".split), "field must be a name, or two"),
        (lambda x: TOK.build_inputs_with_special_tokens(x), (None, 5, "a"), "token_ids_0 must be a list, not"),
        (lambda x: TOK.convert_ids_to_tokens(x), (None, "12"), "ids must be a list, not"),
        (lambda x: TOK.convert_tokens_to_ids(x), (np.array(1), 5), "tokens must be a token, or a list of tokens, not"),
        (lambda x: TOK.with_added_tokens(x), (np.array(1), 5), "tokens must be a list of tokens, not"),
        (lambda x: TOK.decode([1], x), (None, 5, "x"), "skip_special_tokens must be True or False, not"),
        (lambda x: TOK.decode_batch([[1]], strict=x), (None, 5, "x"), "strict must be True or False, not"),
        (lambda x: TOK.decode_batch(x), (np.array(1), ""), "ids is"),
        (lambda x: TOK.num_special_tokens_to_add(x), (None, 5), "pair must be True or False, not"),
        (lambda x: TOK.get_vocab(x), (None, 5), "with_added_tokens must be True or False, not"),
        (lambda x: TOK(["a"], tokenizer_kwargs=x), (5, [], "x"), "tokenizer_kwargs must be a dict of options, not"),
        (lambda x: TOK(["a"], dtype=x), ("\ud800", 5), "dtype must be 'int64' or 'int32'"),
        (
            lambda x: wb.distill_static(None, token_remove_pattern=x),
            (b"x", "("),
            "token_remove_pattern must be a regul",
        ),
        (lambda x: util.truncate_embeddings(x, 3), (None, "a"), "embeddings must be an array of numbers"),
        (
            lambda x: training.vocab_contents(["a"], [], continuing_subword_prefix=x),
            (None, 5, ("a",)),
            "continuing_subword_prefix must be a str",
        ),
        (lambda x: finetune.AdamW({"a": x}), (None, 5), "parameter 'a' must be an array, not"),
        (
            lambda x: finetune.clip_grad_norm_(x, 1.0),
            (None, 5, "a"),
            "gradients must be a dict or a list of arrays, not",
        ),
        (lambda x: finetune.clip_grad_norm_([x], 1.0), (None, "a"), "gradient '0' must be an array, not"),
        (lambda x: held_out_rows(x, 0.5), (None, [{"a": 1}]), "dataset must be a PretrainingDataset, not"),
        (lambda x: inspect.neurons(x), (5, [], b"x"), "source must be a model, or what trace returns, not"),
        (lambda x: util.mine_hard_negatives(ROWS, None, anchor_column_name=x), ([], {}), "dataset has no column"),
        (
            lambda x: wb.train_vocab(["a"], 9, special_tokens=["a", x]),
            [SURROGATE],
            r"special_tokens\[1\] has a lone surr",
        ),
        (
            lambda x: wb.train_vocab(["a"], 9, initial_alphabet=[x]),
            [SURROGATE],
            r"initial_alphabet\[0\] has a lone surrog",
        ),
        (lambda x: wb.set_num_threads(x), (0, 1.5, True, "2"), "the number of threads must be a whole number from 1"),
    ],
)
def test_what_is_of_a_wrong_kind_is_refused(call: Callable[[Any], object], values: list[Any], message: str) -> None:
    """Each was one of Python's own errors, from deep inside."""
    for value in values:
        with pytest.raises(InputError, match=f"^{message}"):
            call(value)


# --- the rest


def test_errors_are_caught_as_people_catch_them() -> None:
    tok = tokenizer()
    for kind in (wb.WordPieceError, ValueError, TypeError):
        with pytest.raises(kind):
            tok.encode(None)
    with pytest.raises(ValueError, match="empty"):
        wb.Tokenizer.from_vocab([])
    assert issubclass(VocabError, wb.WordPieceError)


#: Where a panic is caught: in a call, without the interpreter, where signals are heard, on a thread of the pool and on the
#: thread that it helps, on a thread of the call's own, and in what hears signals.
PLACES = ["call", "detached", "interruptible", "helper", "caller", "thread", "poll"]


@pytest.mark.parametrize("place", PLACES)
def test_a_panic_is_an_internal_error_and_the_next_call_works(place: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InternalError, match=r"a bug in wordpiece_bert, please report it.*: what it said"):
        _core._panic(b"what it said", place)
    assert "what it said" in capfd.readouterr().err
    assert tokenizer().encode("cat").tokens == ["[CLS]", "cat", "[SEP]"]


@pytest.mark.parametrize(
    "message", [b"\xff\xfe a", b"\xed\xa0\x80", b"cut \xf0\x9f\x98", b"\0 %s {} \n", b""], ids=ascii
)
@pytest.mark.parametrize("place", [*PLACES, "error"])
def test_a_message_that_is_not_utf8_is_an_exception(place: str, message: bytes) -> None:
    kind = InputError if place == "error" else InternalError
    with pytest.raises(kind) as caught:
        _core._panic(message, place)
    assert str(caught.value).endswith(message.decode(errors="replace"))


def bad_name(number: int, ending: str = "") -> str:
    """A name with a number above all characters, as NumPy makes it of numbers."""
    return str(np.array([97, number, *map(ord, ending)], np.uint32).view(f"<U{2 + len(ending)}").tolist()[0])


def vectors_of(model: str, output: str) -> None:
    table = pytest.importorskip("pyarrow").table({"id": [1], "text": ["a"]})
    wb.write_vectors(table, output, model, id_column="id", text_column="text")


TOK = tokenizer()
NAMED: dict[str, Callable[[str], object]] = {
    "from_file": wb.Tokenizer.from_file,
    "from_vocab": wb.Tokenizer.from_vocab,
    "from_pretrained": wb.Tokenizer.from_pretrained,
    "save": TOK.save,
    "save_pretrained": TOK.save_pretrained,
    "from_files": wb.WordCounts.from_files,
    "load counts": lambda name: wb.WordCounts.load(f"{name}.tsv"),
    "save counts": lambda name: wb.WordCounts.from_texts(["a"]).save(f"{name}.tsv"),
    "train_vocab": lambda name: wb.train_vocab(Path(name), 50),
    "a file of texts": lambda name: TOK.encode_files(name, "output.npy"),
    "an output": lambda name: TOK.encode_files(__file__, f"{name}.jsonl"),
    "SentenceEncoder": wb.SentenceEncoder,
    "BertModel": bert.BertModel.from_pretrained,
    "a model of vectors": lambda name: vectors_of(name, "vectors"),
    "open_vectors": wb.open_vectors,
    "build_token_store": lambda name: pretraining.build_token_store(TOK, __file__, name),
}


@pytest.mark.parametrize("call", NAMED.values(), ids=NAMED)
def test_a_name_that_no_file_can_have_is_refused(
    call: Callable[[str], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (bad_name(0x20AC01), bad_name(0x110000, "b"), bad_name(0x1010041)):
        with pytest.raises(InputError, match=r"has the number 0x.* at position .*, which is not a character: no file"):
            call(name)
    with pytest.raises(InputError, match=r"the path '.*a\\ud800.*' has a lone surrogate, '\\ud800', at position"):
        call("a\ud800")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="names that are not UTF-8 exist on Linux")
def test_a_name_that_is_not_utf8_is_one_that_a_file_can_have(tmp_path: Path) -> None:
    folder = tmp_path / "a\udcff"
    TOK.save_pretrained(folder)
    TOK.save(folder / "\udcc3\udca9.json")
    assert wb.Tokenizer.from_file(folder / "\udcc3\udca9.json") == wb.Tokenizer.from_pretrained(folder) == TOK


def test_a_name_of_a_column_or_of_a_class_has_characters(tmp_path: Path) -> None:
    for name, message in (
        (bad_name(0x110000), "has the number 0x110000 at position 1"),
        ("a\ud800", "has a lone surrogate"),
    ):
        with pytest.raises(InputError, match=f"ids_column {message}"):
            TOK.encode_files(__file__, tmp_path / "output.jsonl", ids_column=name)
        with pytest.raises(InputError, match=f"row 1: the label .* {message}"):
            class_labels(["b", name])
        with pytest.raises(InputError, match=rf"tokens\[1\] {message}"):
            checked_strings("tokens", ["b", name])
