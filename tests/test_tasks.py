"""The tasks: equal to transformers' pipelines, and to the definitions in this file."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from make_models import make_answers, make_words

from model_files import MODELS, with_tokenizer
from wordpiece_bert import Tokenizer, tasks
from wordpiece_bert.bert import BertForQuestionAnswering
from wordpiece_bert.errors import InputError, NonFiniteError, TruncationWarning, VocabWarning
from wordpiece_bert.tasks import FEATURE_CHOICES, Answer, Answers, Loaded

REFERENCE = json.loads((MODELS / "pipeline_reference.json").read_text(encoding="utf-8"))
FOLDERS = [
    "bert_masked_lm",
    "bert_pretraining",
    "bert_token_cls",
    "bert_question_answering",
    "bert_multiple_choice",
    "bert_model",
    *sorted({case["folder"] for case in REFERENCE["text_classification"]}),
]
LONG = "the cat was in the house , " * 20


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Loaded]:
    parent = tmp_path_factory.mktemp("tasks")
    return {name: tasks.load(with_tokenizer(name, parent)) for name in FOLDERS}


def check_same(found: Any, expected: Any) -> None:
    """Equal, floats within 1e-5."""
    if isinstance(expected, float):
        assert found == pytest.approx(expected, abs=1e-5)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            check_same(found[key], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            check_same(one, other)
    else:
        assert found == expected


# --- equal to the pipelines


@pytest.mark.parametrize("case", REFERENCE["fill_mask"], ids=lambda case: case["text"])
def test_masks_are_filled_as_by_transformers(loaded: dict[str, Loaded], case: dict[str, Any]) -> None:
    found = tasks.fill_mask(loaded["bert_masked_lm"], case["text"], **case["options"])
    check_same(found, case["result"])
    assert found.truncated is False


@pytest.mark.parametrize("number", range(len(REFERENCE["text_classification"])))
def test_texts_are_classified_as_by_transformers(loaded: dict[str, Loaded], number: int) -> None:
    case = REFERENCE["text_classification"][number]
    expected = (
        case["result"] if isinstance(case["result"], list) else [case["result"]]
    )  # for a pair, transformers returns a dict without a list
    check_same(tasks.classify(loaded[case["folder"]], case["text"], **case["options"]), expected)


@pytest.mark.parametrize("number", range(len(REFERENCE["token_classification"])))
def test_entities_are_those_of_transformers(loaded: dict[str, Loaded], number: int) -> None:
    case = dict(REFERENCE["token_classification"][number])
    text, expected = case.pop("text"), case.pop("result")
    found = tasks.ner(loaded["bert_token_cls"], text, **case)
    check_same(found, expected)
    assert found.truncated is False


def test_every_strategy_is_in_the_reference() -> None:
    strategies = {case["aggregation_strategy"] for case in REFERENCE["token_classification"]}
    assert strategies == {"none", "simple", "first", "average", "max"}
    assert any("stride" in case for case in REFERENCE["token_classification"])


# --- common to all tasks


def test_a_list_gives_the_results_of_its_texts(loaded: dict[str, Loaded]) -> None:
    texts = ["a dog", "the cat was in the house", "", "paris"]
    for task, name in ((tasks.classify, "bert_seqcls_single"), (tasks.ner, "bert_token_cls")):
        for size in (1, 3):
            many = task(loaded[name], texts, batch_size=size)
            for one, text in zip(many, texts, strict=True):
                check_same(one, list(task(loaded[name], text)))
        assert task(loaded[name], []) == []


def test_a_name_or_a_folder_is_accepted(tmp_path: Path, loaded: dict[str, Loaded]) -> None:
    folder = with_tokenizer("bert_seqcls_single", tmp_path)
    assert tasks.classify(folder, "a dog") == tasks.classify(loaded["bert_seqcls_single"], "a dog")
    assert tasks.classify(str(folder), "a dog") == tasks.classify(tuple(loaded["bert_seqcls_single"]), "a dog")


def test_truncation_is_on_the_result_and_in_a_warning(loaded: dict[str, Loaded]) -> None:
    with pytest.warns(
        TruncationWarning, match=r"1 of 2 texts were truncated to 48 tokens, the first at index 1.*\.truncated"
    ) as warned:
        short, long = tasks.classify(loaded["bert_seqcls_single"], ["a dog", LONG])
    assert warned[0].filename == __file__
    assert (short.truncated, long.truncated) == (False, True)
    with pytest.warns(TruncationWarning):
        assert tasks.ner(loaded["bert_token_cls"], LONG).truncated
    with pytest.warns(TruncationWarning):
        assert tasks.fill_mask(loaded["bert_masked_lm"], f"[MASK] {LONG}").truncated
    with pytest.warns(TruncationWarning):
        assert tasks.feature_extraction(loaded["bert_model"], LONG).truncated


def test_results_equal_plain_lists_and_dicts() -> None:
    assert Answers([{"a": 1}], truncated=True) == [{"a": 1}]
    assert Answer({"a": 1}, truncated=True) == {"a": 1}
    assert json.dumps(Answers([Answer({"a": 1})])) == '[{"a": 1}]'


@pytest.mark.parametrize(
    ("task", "name", "message"),
    [
        (
            tasks.fill_mask,
            "bert_token_cls",
            "fill_mask needs a model with a head for it, not BertForTokenClassification",
        ),
        (tasks.classify, "bert_masked_lm", "classify needs .* not BertForMaskedLM"),
        (tasks.ner, "bert_model", "ner needs .* not BertModel"),
        (tasks.classify, "bert_multiple_choice", "classify needs .* not BertForMultipleChoice"),
    ],
)
def test_a_model_with_another_head_is_refused(loaded: dict[str, Loaded], task: Any, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        task(loaded[name], "a [MASK]")
    with pytest.raises(InputError, match="question_answering needs"):
        tasks.question_answering(loaded["bert_model"], "a", "b")
    with pytest.raises(InputError, match=r"what tasks\.load returns"):
        task((loaded[name].model, "tokenizer"), "a")


@pytest.mark.parametrize(
    ("task", "name", "texts", "options", "message"),
    [
        (tasks.classify, "bert_seqcls_single", 3, {}, "texts must be a str, a list of str or a column of strings, not int"),
        (tasks.classify, "bert_seqcls_single", {"a", "b"}, {}, "not set"),
        (tasks.classify, "bert_seqcls_single", {"txt": "a"}, {}, "the keys text and text_pair, not"),
        (tasks.classify, "bert_seqcls_single", "a", {"top_k": 0}, "top_k must be"),
        (tasks.classify, "bert_seqcls_single", "a", {"function_to_apply": "argmax"}, "function_to_apply must be one of"),
        (tasks.classify, "bert_seqcls_single", "a", {"batch_size": 0}, "batch_size must be"),
        (tasks.fill_mask, "bert_masked_lm", ["a [MASK]", "a dog"], {}, r"texts\[1\] has no \[MASK\]: 'a dog'"),
        (tasks.fill_mask, "bert_masked_lm", "a [MASK]", {"top_k": 0}, "top_k must be"),
        (tasks.fill_mask, "bert_masked_lm", "a [MASK]", {"targets": [3]}, r"targets\[0\] must be a str, not int"),
        (tasks.fill_mask, "bert_masked_lm", "a [MASK]", {"targets": []}, "no token to choose from"),
        (tasks.ner, "bert_token_cls", "a", {"aggregation_strategy": "best"}, "aggregation_strategy must be one of"),
        (tasks.ner, "bert_token_cls", "a", {"aggregation_strategy": "none", "stride": 2}, "stride needs"),
        (tasks.ner, "bert_token_cls", [["a", 1]], {"is_split_into_words": True}, r"texts\[0\] must be a list of words"),
        (tasks.feature_extraction, "bert_model", "a", {"choice": "best"}, "choice must be one of"),
        (tasks.feature_extraction, "bert_model", "a", {"words": "last"}, "words must be one of None"),
        (tasks.feature_extraction, "bert_model", "a", {"choice": "concat_last_four"}, "needs 4 layers, and the model has 3"),
        (tasks.feature_extraction, "bert_model", "a", {"weights": [1.0]}, "weights are for the weighted sums"),
        (
            tasks.feature_extraction,
            "bert_model",
            "a",
            {"choice": "weighted_sum_all", "weights": [1.0]},
            "weights must be 3 numbers",
        ),
        (tasks.feature_extraction, "bert_model", "a", {"choice": "weighted_sum_all", "weights": [None] * 3}, "weights must be a finite number, not None"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_reported(
    loaded: dict[str, Loaded], task: Any, name: str, texts: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        task(loaded[name], texts, **options)


# --- masks


def test_the_head_of_pre_training_fills_masks_too(loaded: dict[str, Loaded]) -> None:
    found = tasks.fill_mask(loaded["bert_pretraining"], "a [MASK] dog", top_k=2)
    model: Any = loaded["bert_pretraining"].model
    tokenizer = loaded["bert_pretraining"].tokenizer
    inputs = tokenizer(["a [MASK] dog"])
    logits = model(**inputs).prediction_logits[0, 2].astype(float)
    scores = np.exp(logits) / np.exp(logits).sum()
    assert [one["token"] for one in found] == np.argsort(-scores)[:2].tolist()
    check_same([one["score"] for one in found], np.sort(scores)[::-1][:2].tolist())


def test_a_mask_that_is_cut_off_is_reported(loaded: dict[str, Loaded]) -> None:
    with (
        pytest.warns(TruncationWarning),
        pytest.raises(InputError, match=r"has no \[MASK\] among the 48 tokens that are left of it"),
    ):
        tasks.fill_mask(loaded["bert_masked_lm"], f"{LONG} [MASK]")


def test_targets_outside_the_vocabulary_are_replaced_with_a_warning(loaded: dict[str, Loaded]) -> None:
    with pytest.warns(VocabWarning, match="'catx' is not in the vocabulary; its first piece 'cat' is used instead"):
        found = tasks.fill_mask(loaded["bert_masked_lm"], "a [MASK]", targets=["catx", "dog", "cat"])
    assert {one["token_str"] for one in found} == {"cat", "dog"}
    with pytest.warns(VocabWarning, match="has no token at all"):
        found = tasks.fill_mask(loaded["bert_masked_lm"], "a [MASK]", targets=["", "dog"])
    assert [one["token_str"] for one in found] == ["dog"]
    assert tasks.fill_mask(loaded["bert_masked_lm"], "a [MASK]", targets="dog") == found


def test_a_target_may_be_a_text_of_one_token(tmp_path: Path) -> None:
    words = tasks.load(make_words(tmp_path / "words"))
    text = "The capital of France is [MASK]."
    expected = tasks.fill_mask(words, text, targets=["paris", "london"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tasks.fill_mask(words, text, targets=["Paris", " LONDON"]) == expected
    with pytest.warns(VocabWarning, match=r"'xyz' is not in the vocabulary; its first piece '\[UNK\]' is used"):
        tasks.fill_mask(words, text, targets=["xyz"])


# --- entities


def test_spans_are_those_of_the_text(loaded: dict[str, Loaded]) -> None:
    text = "Paris and  the President's friend!"
    for strategy in ("simple", "first", "average", "max"):
        for entity in tasks.ner(loaded["bert_token_cls"], text, aggregation_strategy=strategy, ignore_labels=[]):
            part = text[entity["start"] : entity["end"]]
            assert "".join(entity["word"].split()) == "".join(part.lower().split())


def test_spans_of_split_words_count_in_the_joined_text(loaded: dict[str, Loaded]) -> None:
    words = ["Paris", "and", "London", "played"]
    text = " ".join(words)
    expected = tasks.ner(loaded["bert_token_cls"], text, ignore_labels=[])
    assert tasks.ner(loaded["bert_token_cls"], words, ignore_labels=[], is_split_into_words=True) == expected
    assert tasks.ner(loaded["bert_token_cls"], [words], ignore_labels=[], is_split_into_words=True) == [expected]


def test_windows_reach_the_end_of_a_long_text(loaded: dict[str, Loaded]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = tasks.ner(loaded["bert_token_cls"], LONG, stride=10, ignore_labels=[])
    assert found.truncated is False
    assert found[-1]["end"] == len(LONG.rstrip())
    for one, other in pairwise(found):
        assert one["end"] <= other["start"]


# --- answers


CONTEXT = (
    "the president of the team was in london . a river runs from the mountain to the city , and people work there ."
)
QUESTION = "who was in the city?"


def naive_answers(
    loaded: Loaded, question: str, context: str, longest: int
) -> tuple[list[tuple[float, int, int]], float, float]:
    """All spans of one window with their probability, the probability of no answer, and the lead of its logits."""
    model: Any = loaded.model
    enc = loaded.tokenizer.encode(question, context, truncation=False, padding=False)
    out = model([enc.ids], token_type_ids=[enc.token_type_ids])
    inside = [sequence == 1 for sequence in enc.sequence_ids]
    start, end = out.start_logits[0].astype(float), out.end_logits[0].astype(float)
    seen = [i for i in range(len(enc)) if inside[i] or i == 0]
    p, q = np.zeros(len(enc)), np.zeros(len(enc))
    p[seen] = np.exp(start[seen]) / np.exp(start[seen]).sum()
    q[seen] = np.exp(end[seen]) / np.exp(end[seen]).sum()
    spans = [
        (p[s] * q[e], enc.offsets[s][0], enc.offsets[e][1], start[s] + end[e])
        for s in range(len(enc))
        for e in range(s, min(s + longest, len(enc)))
        if inside[s] and inside[e]
    ]
    best = max(span[3] for span in spans)
    return sorted((span[:3] for span in spans), reverse=True), p[0] * q[0], start[0] + end[0] - best


@pytest.mark.parametrize("longest", [1, 3, 15])
def test_the_answer_is_the_best_span_of_the_context(loaded: dict[str, Loaded], longest: int) -> None:
    short = "the president was in london"
    spans, null, lead = naive_answers(loaded["bert_question_answering"], QUESTION, short, longest)
    options: dict[str, Any] = {"max_answer_len": longest, "align_to_words": False, "max_seq_len": 48}
    found = tasks.question_answering(loaded["bert_question_answering"], QUESTION, short, **options)
    assert isinstance(found, Answer)
    check_same(
        found,
        {"score": spans[0][0], "start": spans[0][1], "end": spans[0][2], "answer": short[spans[0][1] : spans[0][2]]},
    )
    many = tasks.question_answering(loaded["bert_question_answering"], QUESTION, short, top_k=5, **options)
    assert len(many) <= 5
    assert [one["score"] for one in many] == sorted((one["score"] for one in many), reverse=True)
    for one in many:
        same = [score for score, start, end in spans[:5] if short[start:end].lower() == one["answer"].lower()]
        check_same(one["score"], min(sum(same), 1.0))
    possible = tasks.question_answering(
        loaded["bert_question_answering"], QUESTION, short, top_k=100, handle_impossible_answer=True, **options
    )
    nothing = next(one for one in possible if one["answer"] == "")
    check_same(nothing, {"score": null, "start": 0, "end": 0, "answer": ""})
    for threshold in (lead - 0.01, lead + 0.01):
        answer = tasks.question_answering(
            loaded["bert_question_answering"], QUESTION, short, null_score_diff_threshold=threshold, **options
        )
        assert (answer["answer"] == "") == (lead > threshold)


def test_long_contexts_are_read_in_windows(loaded: dict[str, Loaded]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = tasks.question_answering(
            loaded["bert_question_answering"], QUESTION, CONTEXT * 3, top_k=200, max_seq_len=24, doc_stride=6
        )
    assert max(one["end"] for one in found) > 2 * len(CONTEXT)
    for one in found:
        assert one["answer"] == (CONTEXT * 3)[one["start"] : one["end"]]
        assert one.truncated is False
    answers = [one["answer"].lower() for one in found]
    assert len(answers) == len(set(answers))  # equal answers are returned once


def test_an_answer_is_extended_to_entire_words(loaded: dict[str, Loaded]) -> None:
    context = "unrelatedly runner unrelatedly"
    ends = {
        0,
        len(context),
        *(i for i, c in enumerate(context) if c == " "),
        *(i + 1 for i, c in enumerate(context) if c == " "),
    }
    for one in tasks.question_answering(loaded["bert_question_answering"], QUESTION, context, top_k=20):
        assert {one["start"], one["end"]} <= ends
        assert " " not in (one["answer"][0], one["answer"][-1])


def test_a_long_question_is_cut_with_a_warning(loaded: dict[str, Loaded]) -> None:
    with pytest.warns(TruncationWarning, match="the question has 80 tokens and was truncated to max_question_len, 8"):
        found = tasks.question_answering(loaded["bert_question_answering"], "who " * 80, CONTEXT, max_question_len=8)
    assert found.truncated is True
    expected = tasks.question_answering(loaded["bert_question_answering"], "who " * 8, CONTEXT)
    check_same(found, dict(expected))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"question": ""}, "question must be a text that is not empty"),
        ({"context": "  "}, "context must be a text that is not empty"),
        ({"context": ["a"]}, "context must be a text"),
        ({"top_k": 0}, "top_k must be"),
        ({"max_answer_len": 0}, "max_answer_len must be"),
        ({"max_seq_len": 49}, "max_seq_len must be a whole number from 1 to 48"),
        ({"max_seq_len": 8}, "leaves no room for the context in windows of 8"),
        ({"doc_stride": -1}, "doc_stride must be"),
        ({"handle_impossible_answer": "no"}, "handle_impossible_answer must be True or False"),
        ({"null_score_diff_threshold": float("nan")}, "null_score_diff_threshold must be a finite number"),
    ],
)
def test_wrong_questions_are_reported(loaded: dict[str, Loaded], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        tasks.question_answering(
            loaded["bert_question_answering"], **{"question": QUESTION, "context": CONTEXT, **options}
        )


@given(data=st.data())
def test_any_question_gives_an_answer_of_the_context(loaded: dict[str, Loaded], data: st.DataObject) -> None:
    words = st.lists(st.sampled_from(["the", "cat", "Runner", "é", "x", "42!", "[MASK]"]), min_size=1, max_size=40).map(
        " ".join
    )
    context = data.draw(words)
    question = data.draw(words.filter(lambda text: len(text.split()) <= 8))
    found = tasks.question_answering(loaded["bert_question_answering"], question, context, top_k=3, max_seq_len=48)
    assert found
    for one in found:
        assert context[one["start"] : one["end"]] == one["answer"] != ""
        assert 0 <= one["score"] <= 1


def test_the_score_of_an_answer_that_several_windows_share_is_at_most_1(tmp_path: Path) -> None:
    answers = make_answers(tmp_path / "answers")
    found = tasks.question_answering(answers, "where?", "she lived in London " * 3, max_seq_len=12, doc_stride=6)
    assert (found["answer"], found["score"]) == ("London", 1.0)


@pytest.mark.parametrize("options", [{}, {"align_to_words": False}, {"handle_impossible_answer": True}])
@pytest.mark.parametrize("context", ["\u200b", "\u00ad \u200b"])
def test_a_context_without_tokens_has_no_answer(loaded: dict[str, Loaded], context: str, options: Any) -> None:
    found = tasks.question_answering(loaded["bert_question_answering"], "who?", context, **options)
    assert (found["answer"], found["start"], found["end"]) == ("", 0, 0)
    assert found["score"] == (1.0 if "handle_impossible_answer" in options else 0.0)
    many = tasks.question_answering(loaded["bert_question_answering"], "who?", context, top_k=3)
    assert many == []


def test_a_question_is_cut_to_tokens_that_it_has_by_itself(loaded: dict[str, Loaded]) -> None:
    tokenizer = Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "[PAD]", "\u1112", "##\u1161", "##\u11ab", "a"])
    answers = Loaded(loaded["bert_question_answering"].model, tokenizer)
    with pytest.warns(TruncationWarning, match="has 10 tokens and was truncated to max_question_len, 8"):
        found = tasks.question_answering(answers, "\ud55c " * 3 + "a", "a a", max_question_len=8)
    assert found == tasks.question_answering(answers, "\ud55c " * 2, "a a")


ANSWERS = json.loads((MODELS / "question_answering_reference.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("number", range(len(ANSWERS)))
def test_answers_are_those_of_transformers_4(loaded: dict[str, Loaded], number: int) -> None:
    case = ANSWERS[number]
    found = tasks.question_answering(
        loaded["bert_question_answering"], case["question"], case["context"], **case["options"]
    )
    check_same(found, case["result"])


# --- features


def test_features_are_the_six_choices_of_the_paper(tmp_path: Path) -> None:
    import dataclasses

    base: Any = tasks.load(with_tokenizer("bert_model", tmp_path))
    config = dataclasses.replace(base.model.config, num_hidden_layers=6)
    weights = dict(base.model.named_parameters())
    for name in list(weights):
        if ".layer." in name:
            number = int(name.split(".layer.")[1].split(".")[0])
            weights[name.replace(f".layer.{number}.", f".layer.{number + 3}.")] = weights[name]
    deep = Loaded(type(base.model)(config, weights), base.tokenizer)
    inputs = base.tokenizer(["a river runs"])
    h = deep.model(**inputs, output_hidden_states=True).hidden_states
    h = [state[0] for state in h]
    w4, w6 = [0.1, 0.2, 0.3, 0.4], [1.0, 2, 3, 4, 5, 6]
    expected = {
        "embeddings": h[0],
        "second_to_last_hidden": h[5],
        "last_hidden": h[6],
        "weighted_sum_last_four": sum(w * x for w, x in zip(w4, h[3:], strict=True)),
        "concat_last_four": np.concatenate([h[3], h[4], h[5], h[6]], axis=-1),
        "weighted_sum_all": sum(w * x for w, x in zip(w6, h[1:], strict=True)),
    }
    assert set(expected) == set(FEATURE_CHOICES)
    for choice, reference in expected.items():
        given_weights = {"weighted_sum_last_four": w4, "weighted_sum_all": w6}.get(choice)
        found = tasks.feature_extraction(deep, "a river runs", choice, weights=given_weights)
        np.testing.assert_allclose(found.vectors, reference, atol=1e-5)
        assert found.vectors.dtype == np.float32
    plain = tasks.feature_extraction(deep, "a river runs", "weighted_sum_all").vectors
    np.testing.assert_allclose(plain, sum(h[1:]), atol=1e-5)


def test_features_of_words_are_their_first_pieces_or_the_mean(loaded: dict[str, Loaded]) -> None:
    text = "Runner unrelatedly, cat"
    tokens = tasks.feature_extraction(loaded["bert_model"], text)
    enc = loaded["bert_model"].tokenizer.encode(text, truncation=False, padding=False)
    assert (tokens.tokens, tokens.offsets) == (enc.tokens, enc.offsets)
    first = tasks.feature_extraction(loaded["bert_model"], text, words="first")
    mean = tasks.feature_extraction(loaded["bert_model"], text, words="mean")
    assert first.tokens == mean.tokens == ["Runner", "unrelatedly", ",", "cat"]
    assert [text[start:end] for start, end in first.offsets] == first.tokens
    for number in range(4):
        rows = [i for i, word in enumerate(enc.word_ids) if word == number]
        np.testing.assert_array_equal(first.vectors[number], tokens.vectors[rows[0]])
        np.testing.assert_allclose(mean.vectors[number], tokens.vectors[rows].mean(axis=0), atol=1e-6)
    split = tasks.feature_extraction(loaded["bert_model"], ["Runner", "cat"], words="first", is_split_into_words=True)
    assert split.tokens == ["Runner", "cat"]
    assert split.offsets == [(0, 6), (0, 3)]
    assert tasks.feature_extraction(loaded["bert_model"], "", words="mean").vectors.shape == (0, 48)


def test_features_come_from_the_encoder_of_any_model(loaded: dict[str, Loaded]) -> None:
    found = tasks.feature_extraction(loaded["bert_question_answering"], ["a dog", "paris"])
    model: Any = loaded["bert_question_answering"].model
    assert isinstance(model, BertForQuestionAnswering)
    inputs = loaded["bert_question_answering"].tokenizer(["a dog"])
    np.testing.assert_allclose(found[0].vectors, model.base_model(**inputs).last_hidden_state[0], atol=1e-6)
    assert len(found) == 2


# --- damaged models


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(
    ("folder", "run"),
    [
        ("bert_seqcls_multi", lambda source: tasks.classify(source, "a cat")),
        ("bert_seqcls_multi", lambda source: tasks.zero_shot(source, "a cat", ["a", "b"])),
        ("bert_token_cls", lambda source: tasks.ner(source, ["a cat", "a dog"])),
        ("bert_question_answering", lambda source: tasks.question_answering(source, "who", "a cat")),
        ("bert_masked_lm", lambda source: tasks.fill_mask(source, "a [MASK]")),
        ("bert_masked_lm", lambda source: tasks.score_sentences(source, "a cat")),
    ],
)
@pytest.mark.filterwarnings("ignore:no label of the model begins with 'entail'")
def test_logits_that_are_not_finite_are_no_answer(
    loaded: dict[str, Loaded], folder: str, run: Callable[[Loaded], object], value: float
) -> None:
    model: Any = loaded[folder].model
    weights = {name: np.array(weight) for name, weight in model.named_parameters()}
    bias = next(name for name in weights if name.endswith(("classifier.bias", "qa_outputs.bias", "predictions.bias")))
    weights[bias][-1] = value
    with pytest.raises(NonFiniteError, match=f"the largest logit is {value}: the model's weights are damaged"):
        run(Loaded(type(model)(model.config, weights), loaded[folder].tokenizer))
