"""Question answering and multiple choice in training: rows, metrics, the command; and the curve of a training."""

from __future__ import annotations

import json
import math
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tiny_models
from wordpiece_bert import SentenceEncoder, Tokenizer, tasks
from wordpiece_bert.cli import main
from wordpiece_bert.errors import InputError, TrainingWarning
from wordpiece_bert.evaluation import EmbeddingSimilarityEvaluator
from wordpiece_bert.finetune import (
    SentenceTrainer,
    Trainer,
    TrainingArguments,
    draw_curve,
    losses,
    memory,
    metrics,
    model_for,
    save_curve,
)
from wordpiece_bert.finetune.choices import choice_rows
from wordpiece_bert.finetune.questions import question_windows, read_squad

CONTEXT = "ada lovelace lived in london , and marie curie worked in paris . she was born in warsaw ."


# --- windows


@pytest.mark.parametrize("length", [64, 14, 13])
def test_windows_are_labelled_with_the_answer_or_the_first_token(tok: Tokenizer, length: int) -> None:
    answers = [("paris", CONTEXT.index("paris")), ("marie curie", CONTEXT.index("marie")), ("", 0)]
    windows = question_windows(
        tok,
        ["where did she work ?", "who ?", "how ?"],
        [CONTEXT] * 3,
        [text for text, _ in answers],
        max_length=length,
        doc_stride=3,
    )
    seen: list[list[str]] = [[], [], []]
    covered: list[set[int]] = [set(), set(), set()]
    for index in range(len(windows)):
        row, example = windows[index], windows.examples[index]
        assert len(row["input_ids"]) <= length
        tokens = tok.convert_ids_to_tokens(row["input_ids"].tolist())
        first, last = row["start_positions"], row["end_positions"]
        if first:
            seen[example].append(" ".join(tokens[first : last + 1]))  # type: ignore[arg-type]
            assert row["token_type_ids"][first] == 1
        else:
            assert last == 0
        offsets = windows._offsets[index]
        covered[example] |= {place for begin, end in offsets[offsets[:, 0] >= 0] for place in range(begin, end)}
    letters = {place for place, letter in enumerate(CONTEXT) if letter != " "}
    assert all(found == letters for found in covered)  # no part of the context is lost
    assert set(seen[0]) == {"paris"}
    assert set(seen[1]) == {"marie curie"}
    assert seen[2] == []
    assert windows.answers == [["paris"], ["marie curie"], []]
    if length == 64:
        assert len(windows) == 3


@pytest.mark.parametrize("length", [64, 12])
@pytest.mark.parametrize("answer", ["pari\u0301s\u0301", "\u00adparis", "pa\u200bris\u200b", "marie\u00ad curie\u0301"])
def test_characters_of_an_answer_that_are_no_tokens_lose_it_nowhere(tok: Tokenizer, length: int, answer: str) -> None:
    context = CONTEXT.replace("marie curie" if "marie" in answer else "paris", answer)
    windows = question_windows(tok, ["who ?"], [context], [answer], max_length=length, doc_stride=3)
    seen = set()
    for row in (windows[index] for index in range(len(windows))):
        if row["start_positions"]:
            ids = row["input_ids"][row["start_positions"] : row["end_positions"] + 1]
            seen.add(" ".join(tok.convert_ids_to_tokens(ids.tolist())))  # type: ignore[arg-type]
    assert seen == {"marie curie" if "marie" in answer else "paris"}


def test_the_forms_of_answers(tok: Tokenizer) -> None:
    place = CONTEXT.rindex("in")
    given: list[Any] = [
        {"text": ["in", "lived in"], "answer_start": [place, CONTEXT.index("lived")]},
        {"text": [], "answer_start": []},
        {"text": "in", "answer_start": place},
        ["in", "lived in"],
        "in",
    ]
    windows = question_windows(tok, ["where ?"] * 5, [CONTEXT] * 5, given)
    assert windows.answers == [["in", "lived in"], [], ["in"], ["in", "lived in"], ["in"]]
    starts = [windows[index]["start_positions"] for index in range(5)]
    assert starts[0] == starts[2] > starts[3] == starts[4] > 0 == starts[1]
    own = question_windows(tok, ["where ?"], [CONTEXT], ["in"], [str(place)])
    assert own[0]["start_positions"] == starts[0]


@pytest.mark.parametrize(
    ("answer", "start", "message"),
    [
        ("rome", None, "row 0: the answer 'rome' does not occur in its context"),
        ("london", 3, "row 0: the answer 'london' is not at character 3 of its context"),
        ("london", "x", "row 0: the start of an answer is 'x'"),
        (7, None, "row 0: an answer is a str, a list of str or a dict"),
        ({"text": ["a"], "answer_start": []}, None, "row 0: answers need a list text"),
    ],
)
def test_answers_that_do_not_fit_are_refused(tok: Tokenizer, answer: Any, start: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        question_windows(tok, ["where ?"], [CONTEXT], [answer], None if start is None else [start])


def test_a_question_that_is_too_long_is_cut(tok: Tokenizer) -> None:
    with pytest.warns(TrainingWarning, match="1 of 2 questions are longer than 5 tokens"):
        windows = question_windows(tok, ["who " * 30, "who ?"], [CONTEXT] * 2, ["ada"] * 2, max_length=14)
    assert windows[0]["input_ids"].tolist().count(tok.token_to_id("who")) == 5
    with pytest.raises(InputError, match="max_length must be a whole number"):
        question_windows(tok, ["who ?"], [CONTEXT], ["ada"], max_length=4)
    with pytest.raises(InputError, match="2 questions, 1 contexts"):
        question_windows(tok, ["a", "b"], [CONTEXT], ["ada"])


def test_the_best_span_of_all_windows_is_the_answer(tok: Tokenizer) -> None:
    """Logits that point at the answers give the answers, whatever the windows."""
    answers = ["london", "marie curie", "warsaw"]
    for length in (64, 14):
        windows = question_windows(tok, ["where ?"] * 3, [CONTEXT] * 3, answers, max_length=length, doc_stride=4)
        start, end = np.full((2, len(windows), 64), -100.0, np.float32)
        for index in range(len(windows)):
            row = windows[index]
            size = len(row["input_ids"])
            start[index, :size] = end[index, :size] = 0
            if row["start_positions"]:
                start[index, row["start_positions"]] = end[index, row["end_positions"]] = 5
        assert windows.predicted(start, end) == answers
        assert metrics.exact_match(windows.predicted(start, end), windows.answers) == 1
    # A span of more tokens than allowed, or one that ends before it begins, is none.
    windows = question_windows(tok, ["where ?"], [CONTEXT], ["london"])
    size = len(windows[0]["input_ids"])
    start, end = np.zeros((2, 1, size), np.float32)
    start[0, 4], end[0, 12] = 3, 3
    assert len(windows.predicted(start, end, max_answer_len=2)[0].split()) <= 2
    assert len(windows.predicted(end, start, max_answer_len=9)[0].split()) <= 9
    with pytest.raises(InputError, match="there are 1 windows, but logits of 2 and 1"):
        windows.predicted(np.zeros((2, size)), np.zeros((1, size)))


def test_no_answer_is_predicted_only_where_some_question_has_none(tok: Tokenizer) -> None:
    for answers, expected in ((["london", ""], ["london", ""]), (["london", "london"], ["london", "ada"])):
        windows = question_windows(tok, ["where ?"] * 2, [CONTEXT] * 2, answers)
        start, end = np.zeros((2, 2, len(windows[0]["input_ids"])), np.float32)
        [first] = {windows[0]["start_positions"]}
        start[0, first] = end[0, first] = 3
        start[1, 0] = end[1, 0] = 3  # [CLS]
        begin = windows._offsets[1][:, 0].tolist().index(0)
        start[1, begin] = end[1, begin] = 1
        assert windows.predicted(start, end) == expected


# --- metrics of answers


def test_the_metrics_of_answers_are_those_of_squad() -> None:
    """Numbers of the definition: F1 of words without case, punctuation and articles, the best of the answers."""
    found = ["The Eiffel Tower!", "in Paris, France", "", "a cat", ""]
    right = [["eiffel tower"], ["Paris", "Paris in France"], [], ["dog", "the"], ["yes"]]
    assert metrics.exact_match(found, right) == pytest.approx(2 / 5)
    assert metrics.answer_f1(found, right) == pytest.approx((1 + 1 + 1 + 0 + 0) / 5)
    assert metrics.answer_f1(["new york city"], [["york"]]) == pytest.approx(2 * (1 / 3) * 1 / (1 / 3 + 1))
    assert metrics.answer_f1(["b b c"], [["b c c"]]) == pytest.approx(2 / 3)
    with pytest.raises(InputError, match="1 predictions for 2 questions"):
        metrics.exact_match(["a"], [["a"], ["b"]])


@given(st.lists(st.tuples(st.text("ab ", max_size=6), st.lists(st.text("ab ,", max_size=6), max_size=3)), min_size=1))
def test_an_exact_match_has_an_f1_of_one(rows: list[tuple[str, list[str]]]) -> None:
    found, right = [prediction for prediction, _ in rows], [accepted for _, accepted in rows]
    exact, f1 = metrics.exact_match(found, right), metrics.answer_f1(found, right)
    assert 0 <= exact <= f1 + 1e-12 <= 1 + 1e-9
    assert metrics.exact_match([accepted[0] if accepted else "" for accepted in right], right) >= exact - 1


# --- multiple choice


def test_rows_of_choices(tok: Tokenizer) -> None:
    choices = [["in london", "bread"], ["the oven and the dough", "a film"]]
    rows = choice_rows(tok, ["ada lived", "to bake bread"], choices, ["1", "a film"], max_length=20)
    assert [row["labels"] for row in rows] == [1, 1]
    for row, text, options in zip(rows, ["ada lived", "to bake bread"], choices, strict=True):
        expected = tok([(text, option) for option in options], padding=True)
        for name, array in expected.items():
            np.testing.assert_array_equal(row[name], array)
    with pytest.warns(TrainingWarning, match="2 of 2 rows have pairs longer than 6 tokens"):
        choice_rows(tok, ["ada lived", "to bake bread"], choices, [0, 0], max_length=6)


@pytest.mark.parametrize(
    ("choices", "label", "message"),
    [
        ([["a", "an"], ["a"]], 0, r"row 1 has the choices \['a'\]: each row needs 2"),
        ([["a"], ["a"]], 0, "each row needs 2"),
        ([["a", "an"], "an"], 0, "row 1, choices: must be a list, not the single str 'an'"),
        ([["a", "an"], ["a", "an"]], 2, "row 0 has the label 2: it must be a number from 0 to 1"),
        ([["a", "an"], ["a", "an"]], "the", "row 0 has the label 'the'"),
        ([["a", "an"], ["a", "an"]], 0.5, r"row 0: the label 0\.5 is a fraction"),
        ([["a", "an"], ["a", "an"]], np.float32(0.5), r"row 0: the label 0\.5 is a fraction"),
        ([["a", "an"], ["a", "an"]], None, "row 0: the label is missing"),
        ([["a", "an"], ["a", "an"]], [1, 0], "problem_type"),
        ([["a", "an"], ["a", "an"]], True, "row 0 has the label True"),
    ],
)
def test_choices_that_do_not_fit_are_refused(tok: Tokenizer, choices: Any, label: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        choice_rows(tok, ["a film"] * 2, choices, [label] * 2, max_length=20)


# --- training


def test_a_model_learns_to_answer_and_to_choose(folder: Path, tok: Tokenizer, tmp_path: Path) -> None:
    places = ["london", "paris", "warsaw", "manchester"]
    contexts = [f"she lived in {place} , a city ." for place in places] * 4
    windows = question_windows(tok, ["where ?"] * 16, contexts, places * 4, max_length=20, doc_stride=4)
    model = model_for(folder, "QuestionAnswering", seed=1)
    arguments = TrainingArguments(
        tmp_path / "qa", learning_rate=1e-2, max_steps=30, per_device_train_batch_size=8, save_strategy="no"
    )
    trainer = Trainer(model, arguments, windows, windows, tokenizer=tok)
    trainer.train()
    found = trainer.predict(windows)
    assert metrics.exact_match(windows.predicted(*found.predictions), windows.answers) == 1
    trainer.save_model(tmp_path / "saved")
    assert tasks.question_answering(tmp_path / "saved", "where ?", contexts[1])["answer"] == "paris"

    rows = choice_rows(tok, ["a city"] * 8, [["bread", "london"], ["paris", "dough"]] * 4, [1, 0] * 4, max_length=20)
    chooser = Trainer(model_for(folder, "MultipleChoice", seed=1), arguments, rows, rows)
    chooser.train()
    predicted = chooser.predict(rows)
    assert predicted.predictions.argmax(axis=-1).tolist() == [1, 0] * 4


def test_a_pooler_that_the_folder_lacks_is_drawn(folder: Path, tmp_path: Path) -> None:
    """A checkpoint that was trained on masked words alone has none, and a classifier needs it."""
    words = tiny_models.make_words(tmp_path / "words")
    drawn = [
        model_for(name, "SequenceClassification", labels=["a", "b"], seed=seed)
        for name in (folder, words)
        for seed in (1, 1, 2)
    ]
    weights = [dict(model.named_parameters())["bert.pooler.dense.weight"] for model in drawn]
    for one, again, other in (weights[:3], weights[3:]):
        np.testing.assert_array_equal(one, again)
        assert not np.array_equal(one, other)
        assert one.std() == pytest.approx(0.02, rel=0.05)
    assert not dict(drawn[0].named_parameters())["bert.pooler.dense.bias"].any()
    reviews = tiny_models.make_reviews(tmp_path / "reviews")  # it has a pooler, which stays
    kept = dict(model_for(reviews, "SequenceClassification", labels=["a", "b"]).named_parameters())
    np.testing.assert_array_equal(kept["bert.pooler.dense.weight"], np.eye(len(one), dtype=np.float32))


# --- memory


def test_a_batch_that_does_not_fit_is_refused_before_the_training(
    folder: Path, tok: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ("a film", "bread and dough")
    rows = [{**tok(texts[label], return_tensors=None), "labels": label} for label in (0, 1) * 8]
    arguments = TrainingArguments(tmp_path / "run", max_steps=1, save_strategy="no", per_device_train_batch_size=8)
    trainer = Trainer(model_for(folder, "SequenceClassification", labels=["a", "b"]), arguments, rows)
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    with pytest.raises(
        InputError, match=r"a batch of 8 rows and \d+ tokens needs about .* GB .*gradient_checkpointing"
    ):
        trainer.train()
    assert trainer.global_step == 0
    pairs = [{"a": "a film", "b": "bread", "label": label} for label in (1.0, 0.0) * 2]
    sentences = SentenceTrainer(SentenceEncoder(folder), arguments, pairs, losses.CosineSimilarityLoss())
    with pytest.raises(InputError, match="a batch of 4 rows and 28 tokens"):
        sentences.train()
    monkeypatch.setattr(memory, "available_memory", lambda: None)  # a system that does not tell
    assert trainer.train().global_step == 1


def test_free_memory_is_that_of_the_kernel_and_of_the_control_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 5000 kB\n")
    monkeypatch.setattr(memory, "_PROC", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    assert memory.available_memory() == 5_120_000
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("2000000\n")
    assert memory.available_memory() == 5_120_000
    (tmp_path / "memory.max").write_text("3000000\n")
    (tmp_path / "memory.stat").write_text("anon 7\ninactive_file 100\nactive_file 5\n")
    assert memory.available_memory() == 1_000_100
    monkeypatch.setattr(memory, "_PROC", tmp_path / "none")
    monkeypatch.setattr(memory, "_CGROUP", tmp_path / "none")
    assert memory.available_memory() is None


# --- sentence vectors


def test_pairs_are_evaluated_by_the_correlation_of_their_cosines(folder: Path, tmp_path: Path) -> None:
    encoder = SentenceEncoder(folder)
    pairs = [("a film", "a story"), ("bread", "bread"), ("bread", "a film"), ("the oven", "the oven and the dough")]
    rows = [{"a": a, "b": b, "label": label} for (a, b), label in zip(pairs, [0.3, 1.0, 0.1, 0.4], strict=True)]
    arguments = TrainingArguments(tmp_path, per_device_eval_batch_size=3)
    trainer = SentenceTrainer(encoder, arguments, rows, losses.CoSENTLoss(), rows)
    found = trainer.evaluate()
    cosines = [encoder.similarity(encoder.encode(a), encoder.encode(b)).item() for a, b in pairs]
    labels = [row["label"] for row in rows]
    assert found["eval_pearson_cosine"] == pytest.approx(np.corrcoef(cosines, labels)[0, 1], abs=1e-5)
    order = [np.argsort(np.argsort(values)) for values in (cosines, labels)]
    assert found["eval_spearman_cosine"] == pytest.approx(np.corrcoef(*order)[0, 1], abs=1e-6)
    constant = [{**row, "label": 1.0} for row in rows]
    found = trainer.evaluate(constant)
    assert math.isnan(found["eval_pearson_cosine"])
    assert math.isnan(found["eval_spearman_cosine"])
    classes = losses.SoftmaxLoss(encoder.dimension, 2)
    split = [{**row, "label": index % 2} for index, row in enumerate(rows)]
    assert set(SentenceTrainer(encoder, arguments, split, classes).evaluate(split)) == {"eval_loss"}


def test_evaluators_are_called_as_an_encoder_is_trained(folder: Path, tmp_path: Path) -> None:
    first, second = (
        ["a film", "bread", "the city", "the oven"],
        ["a story", "bread", "a film", "the oven and the dough"],
    )
    rows = [{"a": a, "b": b, "label": label} for a, b, label in zip(first, second, [0.3, 1.0, 0.1, 0.4], strict=True)]
    seen = []

    def length(encoder: SentenceEncoder, output_path: Path, epoch: float, steps: int) -> float:
        seen.append((output_path, epoch, steps, encoder))
        return -steps

    evaluator = EmbeddingSimilarityEvaluator(first, second, [0.3, 1.0, 0.1, 0.4], name="dev")
    arguments = TrainingArguments(
        tmp_path / "run",
        max_steps=4,
        per_device_train_batch_size=2,
        learning_rate=1e-2,
        eval_strategy="steps",
        eval_steps=2,
        save_strategy="steps",
        save_steps=2,
        load_best_model_at_end=True,
    )
    loss = losses.CosineSimilarityLoss()
    trainer = SentenceTrainer(SentenceEncoder(folder), arguments, rows, loss, evaluator=[evaluator, length])
    trainer.train()
    evaluations = [entry for entry in trainer.log_history if "eval_dev_spearman_cosine" in entry]
    assert [entry["step"] for entry in evaluations] == [2, 4]
    assert [entry["eval_evaluator_1"] for entry in evaluations] == [-2, -4]
    assert [one[:3] for one in seen] == [(tmp_path / "run" / "eval", 1.0, 2), (tmp_path / "run" / "eval", 2.0, 4)]
    # The measures are taken with the encoder of the moment, and the best encoder is chosen by the first evaluator.
    for entry, (*_, encoder) in zip(evaluations, seen, strict=True):
        assert evaluator(encoder)["dev_spearman_cosine"] == entry["eval_dev_spearman_cosine"]
    best = max(evaluations, key=lambda entry: entry["eval_dev_spearman_cosine"])
    assert evaluator(trainer.model)["dev_spearman_cosine"] == best["eval_dev_spearman_cosine"]
    written = (tmp_path / "run" / "eval" / evaluator.csv_file).read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[1] for line in written] == ["steps", "2", "4"]
    both = SentenceTrainer(SentenceEncoder(folder), arguments, rows, loss, rows, evaluator).evaluate()
    assert {"eval_loss", "eval_dev_spearman_cosine"} <= set(both)
    with pytest.raises(InputError, match="evaluator must be an evaluator or a list of them, not int"):
        SentenceTrainer(SentenceEncoder(folder), arguments, rows, loss, evaluator=[3])
    with pytest.raises(InputError, match="nothing to evaluate"):
        SentenceTrainer(SentenceEncoder(folder), arguments, rows, loss).evaluate()


# --- the curve

NAMESPACE = "{http://www.w3.org/2000/svg}"


def test_the_curve_has_a_line_for_each_series(tmp_path: Path) -> None:
    history: list[dict[str, float]] = [{"step": step, "loss": 2 / step, "grad_norm": 1.0} for step in range(1, 31)]
    history += [{"step": 10 * k, "eval_loss": 1.0 / k, "eval_accuracy": k / 3} for k in (1, 2, 3)]
    picture = ET.fromstring(save_curve(history, tmp_path / "curve.svg").read_text(encoding="utf-8"))
    texts = [node.text for node in picture.iter(f"{NAMESPACE}text")]
    assert {"loss", "eval_loss", "eval_accuracy", "Training"} <= set(texts)
    assert "grad_norm" not in texts
    lines = [node for node in picture.iter(f"{NAMESPACE}polyline") if node.get("stroke") != "#dfe4ea"]
    points = [[tuple(map(float, pair.split(","))) for pair in line.get("points", "").split()] for line in lines]
    assert [len(line) for line in points] == [30, 3, 3]
    xs, ys = zip(*points[0], strict=True)
    assert list(xs) == sorted(xs)
    assert list(ys) == sorted(ys)  # the loss falls: down the picture
    heights = np.array(ys)
    values = np.array([entry["loss"] for entry in history[:30]])
    np.testing.assert_allclose(np.polyval(np.polyfit(values, heights, 1), values), heights, atol=0.1)


def test_curves_of_any_numbers_are_drawn() -> None:
    for values in ([0.0], [1.0, 1.0], [-3.0, 5e9], [1e-12, 2e-12], [float("nan"), 1.0, float("inf"), None]):
        history: Any = [{"step": step, "loss": value} for step, value in enumerate(values, 1)]
        svg = draw_curve(history).to_svg()
        ET.fromstring(svg)
        assert "nan" not in svg
        assert "inf" not in svg


def test_a_curve_as_png_and_what_cannot_be_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = save_curve([{"step": 1, "loss": 1.0}, {"step": 2, "loss": 0.5}], tmp_path / "curve.png")
    assert path.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match="must end in"):
        save_curve([{"step": 1, "loss": 1.0}], tmp_path / "curve.pdf")
    with pytest.raises(InputError, match="nothing to draw"):
        draw_curve([{"step": 1, "loss": float("nan")}])


# --- the command


def write(file: Path, rows: list[dict[str, Any]]) -> str:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(file)


def test_the_command_answers_questions(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = ["london", "paris", "warsaw", "manchester"] * 3
    rows = [
        {
            "question": "where ?",
            "context": (context := f"she lived in {place} , a city ."),
            "answers": {"text": [place], "answer_start": [context.index(place)]},
        }
        for place in places
    ]
    file = write(tmp_path / "train.jsonl", rows)
    out = tmp_path / "out"
    command = ["finetune", "-m", str(folder), "--task", "answers", "--train", file, "--eval", file, "-o", str(out)]
    assert main([*command, "--epochs", "14", "--learning-rate", "0.01", "--batch-size", "4"]) == 0
    shown = capsys.readouterr().err
    assert "exact_match 1.0000, f1 1.0000" in shown
    assert tasks.question_answering(out, "where ?", rows[1]["context"])["answer"] == "paris"
    log = [json.loads(line) for line in (out / "training_log.jsonl").read_text().splitlines()]
    assert log[-1]["eval_exact_match"] == 1
    assert "eval_f1" in (out / "training_curve.svg").read_text(encoding="utf-8")
    assert "training_curve.svg" in shown


def test_files_of_squad_are_read(
    folder: Path, tok: Tokenizer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "squad.json"
    asked = [
        {"id": "1", "question": "where ?", "answers": [{"text": "london", "answer_start": CONTEXT.index("london")}]},
        {"id": "2", "question": "how ?", "answers": [], "is_impossible": True},
    ]
    content: dict[str, Any] = {
        "version": "v2.0",
        "data": [{"title": "a", "paragraphs": [{"context": CONTEXT, "qas": asked}]}],
    }
    file.write_text(json.dumps(content))
    windows = question_windows(tok, *read_squad(file).values())
    assert windows.answers == [["london"], []]
    start = windows[0]["start_positions"]
    assert tok.id_to_token(int(windows[0]["input_ids"][start])) == "london"
    command = ["finetune", "-m", str(folder), "--task", "answers", "--train", str(file), "--eval", str(file)]
    assert main([*command, "-o", str(tmp_path / "out"), "--epochs", "1", "--batch-size", "2"]) == 0
    assert "exact_match" in capsys.readouterr().err
    del asked[0]["question"]
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match="question 0 is not as in SQuAD's files: KeyError: 'question'"):
        read_squad(file)
    file.write_text('{"data": []}')
    with pytest.raises(InputError, match="there are no questions"):
        read_squad(file)
    file.write_text('{"data": 3}')
    with pytest.raises(InputError, match="is not as in SQuAD's files"):
        read_squad(file)


@pytest.mark.parametrize("form", ["lists", "columns"])
def test_the_command_chooses(form: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    triples = [("a city", "bread", "london"), ("a city", "dough", "paris"), ("to bake", "bread", "film")] * 4
    labels = [1, 1, 0] * 4
    out = tmp_path / "out"
    command = ["finetune", "-m", str(folder), "--task", "choose", "-o", str(out), "--epochs", "1", "--batch-size", "4"]
    if form == "lists":
        rows = [{"text": t, "choices": [a, b], "label": n} for (t, a, b), n in zip(triples, labels, strict=True)]
        file = write(tmp_path / "train.jsonl", rows)
        command += ["--train", file, "--eval", file]
    else:
        lines = ["text,first,second,label", *(f"{t},{a},{b},{n}" for (t, a, b), n in zip(triples, labels, strict=True))]
        (tmp_path / "train.csv").write_text("\n".join(lines) + "\n")
        command += ["--train", str(tmp_path / "train.csv"), "--eval", str(tmp_path / "train.csv")]
        command += ["--choices", "first,second"]
    assert main(command) == 0
    assert "accuracy" in capsys.readouterr().err
    assert json.loads((out / "config.json").read_text())["architectures"] == ["BertForMultipleChoice"]
    if form == "columns":
        assert main([*command[:-1], "text", "--overwrite"]) == 2
        assert "column 'text': a list of str is needed" in capsys.readouterr().err


def test_fewer_rows_than_a_batch_are_warned_about(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "train.jsonl", [{"text": "a film", "label": "a"}, {"text": "bread", "label": "b"}])
    command = ["finetune", "-m", str(folder), "--task", "classify", "--train", file, "-o", str(tmp_path / "out")]
    assert main([*command, "--epochs", "1", "--batch-size", "2"]) == 0
    assert "fewer than a batch" not in capsys.readouterr().err
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert main([*command, "--epochs", "1", "--overwrite"]) == 0
    assert "2 rows, fewer than a batch of 16" in capsys.readouterr().err
