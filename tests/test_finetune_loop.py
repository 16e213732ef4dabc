"""The loop of a training: the best model, early stops, weights of tokens, batches, and what nothing is learned from."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import UserDict
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wordpiece_bert as wb
import wordpiece_bert.bert as bert
from model_files import MODELS
from test_finetune_trainer import DATA, arguments, bits, classifier, examples, model_folder, table
from wordpiece_bert._internal.json_text import json_text
from wordpiece_bert._internal.safe_json import parse_json
from wordpiece_bert.cli import main
from wordpiece_bert.errors import CheckpointError, InputError, TrainingWarning
from wordpiece_bert.evaluation import BaseEvaluator
from wordpiece_bert.finetune import SentenceTrainer, Trainer, TrainingArguments, checkpoints, losses, pad_collate
from wordpiece_bert.finetune.batches import batches_of_epoch, fingerprint
from wordpiece_bert.finetune.dropout import KeyedDropout
from wordpiece_bert.finetune.engines import RustTraining
from wordpiece_bert.finetune.objectives import new_pair
from wordpiece_bert.finetune.objectives.replaced_tokens import PairProblem
from wordpiece_bert.finetune.passes import PassOptions
from wordpiece_bert.finetune.problem import labelled_rows as rows_that_count
from wordpiece_bert.finetune.sequence_heads import sequence_head

ENCODER = DATA / "sentence_encoders" / "cls" / "model"


class Measured(Trainer):
    """A trainer whose evaluations find given values of ``eval_metric``, one after the other."""

    values: list[float]

    def _measured(self, dataset: Any) -> dict[str, float]:
        number = sum("eval_metric" in entry for entry in self.log_history)
        return {"eval_metric": self.values[number]}


def measured(folder: Path, values: list[float], **settings: Any) -> Measured:
    options = {"eval_strategy": "steps", "eval_steps": 1, "save_steps": 3, "metric_for_best_model": "metric"}
    trainer = Measured(classifier(folder.parent / "start"), arguments(folder, **(options | settings)), examples(), [0])
    trainer.values = values
    return trainer


# --- the best evaluation


def test_numbers_that_are_not_finite_are_null_in_json() -> None:
    assert json_text({"a": [math.nan, {"b": -math.inf}], "c": (1.5, "NaN", None)}) == (
        '{"a": [null, {"b": null}], "c": [1.5, "NaN", null]}'
    )


def test_a_metric_that_is_nan_is_never_the_best_and_leaves_files_that_are_read(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"max_steps": 4, "load_best_model_at_end": True, "log_file": tmp_path / "log.jsonl"}
    values = [math.nan, 0.5, math.inf, 0.7]
    whole = measured(tmp_path / "whole", values, **settings)
    whole.train()
    assert whole.best_step == 4
    for line in (tmp_path / "log.jsonl").read_text().splitlines():
        assert "step" in parse_json(line.encode(), "log", InputError)
    resumed = measured(tmp_path / "other", values, **settings)
    resumed.train(resume_from_checkpoint=tmp_path / "whole" / "checkpoint-3")
    assert bits(resumed) == bits(whole)
    assert math.isnan(resumed.log_history[0]["eval_metric"])
    state = "checkpoint-4/trainer_state.json"
    assert (tmp_path / "other" / state).read_bytes() == (tmp_path / "whole" / state).read_bytes()


def test_without_a_finite_metric_the_last_parameters_stay_with_a_warning(tmp_path: Path) -> None:
    trainer = measured(tmp_path / "run", [math.nan] * 9, load_best_model_at_end=True, early_stopping_patience=2)
    with pytest.warns(TrainingWarning, match="no eval_metric was finite"):
        assert trainer.train().global_step == 2
    assert trainer.best_step is None


@pytest.mark.parametrize("limit", [None, 1])
def test_the_best_evaluation_is_restored_wherever_checkpoints_are_due(limit: int | None, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"max_steps": 7, "load_best_model_at_end": True, "save_total_limit": limit}
    trainer = measured(tmp_path / "run", [1, 2, 0, 5, 4, 4, 4], **settings)
    trainer.train()
    assert trainer.best_step == 4
    plain = measured(tmp_path / "plain", [0] * 4, max_steps=4, lr_scheduler_type="constant")
    same = measured(tmp_path / "same", [1, 2, 0, 5, 4, 4, 4], lr_scheduler_type="constant", **settings)
    plain.train()
    same.train()
    assert bits(same) == bits(plain)
    kept = {path.name for path in checkpoints.folders(tmp_path / "run")}
    assert {"checkpoint-4", "checkpoint-7"} <= kept
    assert len(kept) == (2 if limit else 6)


def test_the_best_checkpoint_is_found_beside_the_one_that_is_resumed(tmp_path: Path) -> None:
    values = [1.0, 5.0, 2.0, 3.0, 3.0]
    settings: dict[str, Any] = {"max_steps": 5, "load_best_model_at_end": True}
    whole = measured(tmp_path / "whole", values, **settings)
    whole.train()
    resumed = measured(tmp_path / "other", values, **settings)
    resumed.train(resume_from_checkpoint=tmp_path / "whole" / "checkpoint-3")
    assert resumed.best_step == 2
    assert bits(resumed) == bits(whole)
    (tmp_path / "whole" / "checkpoint-2").rename(tmp_path / "elsewhere")
    again = measured(tmp_path / "again", values, **settings)
    with pytest.raises(CheckpointError, match=r"checkpoint-2: is missing, and has the best parameters so far"):
        again.train(resume_from_checkpoint=tmp_path / "whole" / "checkpoint-3")
    assert again.global_step == 3
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("save_steps", [1, 100])
def test_a_training_that_stopped_early_is_complete_when_it_is_resumed(save_steps: int, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"early_stopping_patience": 2, "save_steps": save_steps, "logging_steps": 100}
    first = measured(tmp_path / "run", [3, 2, 1, 9, 9, 9], **settings)
    result = first.train()
    assert result.global_step == first.train().global_step == 3
    again = measured(tmp_path / "run", [3, 2, 1, 9, 9, 9], **settings)
    found = again.train(resume_from_checkpoint=True)
    assert found.global_step == 3
    assert found.training_loss == pytest.approx(result.training_loss)
    assert found.metrics["train_samples_per_second"] == 0
    assert bits(again) == bits(first)


@pytest.mark.parametrize(
    ("greater", "name", "best"), [(None, "metric", 3), (True, "metric", 3), (False, "metric", 2), (None, "loss", 2)]
)
def test_the_best_value_is_the_greatest_or_the_least(
    greater: bool | None, name: str, best: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = measured(tmp_path / "run", [2, 1, 3], max_steps=3, greater_is_better=greater, metric_for_best_model=name)
    values = iter([2.0, 1.0, 3.0])
    monkeypatch.setattr(trainer, "_measured", lambda dataset: {f"eval_{name}": next(values)})
    trainer.train()
    assert trainer.best_step == best


@pytest.mark.parametrize(
    ("falling", "key", "greater", "best"),
    [(True, "distance", None, 2), (True, "distance", True, 3), (False, "score", None, 3), (False, "own_loss", None, 2)],
)
def test_an_evaluator_may_say_that_the_lowest_value_is_best(
    falling: bool, key: str, greater: bool | None, best: int, tmp_path: Path
) -> None:
    class Own(BaseEvaluator):
        greater_is_better = not falling

        def __call__(self, model: Any, output_path: Any = None, epoch: float = -1, steps: int = -1) -> dict[str, float]:
            self.primary_metric = key
            return {key: [2.0, 1.0, 3.0][steps - 1]}

    settings = arguments(tmp_path, max_steps=3, eval_strategy="steps", eval_steps=1, greater_is_better=greater)
    encoder = wb.SentenceEncoder(ENCODER)
    trainer = SentenceTrainer(encoder, settings, pairs(), losses.CoSENTLoss(), evaluator=Own())
    trainer.train()
    assert trainer.best_step == best


def test_a_checkpoint_without_newer_settings_is_resumed(tmp_path: Path) -> None:
    model = classifier(tmp_path / "start")
    whole = Trainer(model, arguments(tmp_path / "run", max_steps=8), examples())
    whole.train()
    file = tmp_path / "run" / "checkpoint-4" / "trainer_state.json"
    state = json.loads(file.read_text())
    for name in ("batch_sampler", "average_tokens_across_batches", "greater_is_better"):
        del state["arguments"][name]
    state["best"] = None
    file.write_text(json.dumps(state))
    resumed = Trainer(model, arguments(tmp_path / "other", max_steps=8), examples())
    resumed.train(resume_from_checkpoint=file.parent)
    assert bits(resumed) == bits(whole)
    other = Trainer(model, arguments(tmp_path / "third", max_steps=8, batch_sampler="no_duplicates"), examples())
    with pytest.raises(CheckpointError, match="batch_sampler 'batch_sampler', but this training has 'no_duplicates'"):
        other.load_checkpoint(file.parent)


def test_rows_that_were_there_count_for_the_speed(tmp_path: Path) -> None:
    settings = arguments(tmp_path, num_train_epochs=2, per_device_train_batch_size=8, gradient_accumulation_steps=2)
    found = Trainer(classifier(tmp_path / "start"), replace(settings, save_strategy="no"), examples(19)).train()
    assert found.metrics["train_samples_per_second"] * found.metrics["train_runtime"] == pytest.approx(2 * 19)


# --- each token counts the same


def labelled_rows(counts: list[int], classes: int, *, ignored: int = 0) -> list[dict[str, Any]]:
    """Rows of six tokens of which some have a label."""
    random = np.random.default_rng(len(counts))
    rows = []
    for number, count in enumerate(counts):
        ids = [2, *random.integers(5, 14, 4).tolist(), 3]
        labels = [*random.integers(0, classes, count).tolist(), *[-100] * (6 - count)]
        rows.append({"input_ids": ids, "labels": labels, "next_sentence_label": number % 2})
    return rows


def model_of(kind: str, folder: Path) -> Any:
    model_folder(folder, dropout=0.0)
    base = bert.BertModel.from_pretrained(folder)
    options = {"id2label": dict(enumerate("abc"))} if kind == "TokenClassification" else {}
    config = replace(base.config, **options)
    return getattr(bert, f"BertFor{kind}").from_config(config, seed=3)


def batch_of(rows: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    batch = pad_collate(rows)
    if kind != "PreTraining":
        del batch["next_sentence_label"]
    return batch


@pytest.mark.parametrize("backend", ["rust", "numpy"])
@pytest.mark.parametrize("kind", ["MaskedLM", "PreTraining", "TokenClassification"])
def test_micro_batches_of_3_and_1_rows_have_the_gradient_of_the_batch_of_4(
    kind: str, backend: str, tmp_path: Path
) -> None:
    model = model_of(kind, tmp_path / "start")
    model = type(model)(model.config, dict(model.named_parameters()), backend=backend)
    rows = labelled_rows([1, 2, 1, 5], 3)
    steps = {}
    for average in (True, False, None):
        settings = TrainingArguments(tmp_path / "run", average_tokens_across_batches=average)
        for sizes in ([4], [3, 1]):
            ends = np.cumsum(sizes)
            parts = [batch_of(rows[end - size : end], kind) for size, end in zip(sizes, ends, strict=True)]
            steps[average, len(sizes)] = Trainer(model, settings).training_step(parts)
    one = steps[True, 1]
    assert steps[False, 1] == steps[None, 1] == one  # bit for bit
    assert steps[True, 2].loss == pytest.approx(one.loss, rel=1e-5)
    assert steps[True, 2].grad_norm == pytest.approx(one.grad_norm, rel=1e-4)
    assert steps[False, 2].grad_norm != pytest.approx(one.grad_norm, rel=1e-4)
    assert steps[None, 2] == steps[kind != "TokenClassification", 2]


@pytest.mark.parametrize("kind", ["MaskedLM", "PreTraining", "TokenClassification"])
def test_the_loss_of_an_evaluation_does_not_depend_on_its_batches(kind: str, tmp_path: Path) -> None:
    rows = labelled_rows([1, 2, 1, 5, 0, 3], 3)
    found = []
    for size in (1, 2, 4, 6):
        settings = TrainingArguments(tmp_path, per_device_eval_batch_size=size)
        trainer = Trainer(
            model_of(kind, tmp_path / "start"), settings, data_collator=lambda some: batch_of(list(some), kind)
        )
        found.append(trainer.evaluate(rows)["eval_loss"])
    assert found == pytest.approx([found[0]] * 4, rel=1e-6)


def test_rows_without_a_label_count_for_nothing_in_an_evaluation(tmp_path: Path) -> None:
    model = classifier(tmp_path / "start", dropout=0.0)
    words = dict(model.named_parameters())["bert.embeddings.word_embeddings.weight"]
    rows = [row | {"labels": row["labels"] if n in (1, 4) else -100} for n, row in enumerate(examples(6))]

    def vectors(some: Any) -> dict[str, Any]:
        batch = pad_collate(some)
        return batch | {"inputs_embeds": words[batch.pop("input_ids")]}

    def own(network: Any) -> Any:
        head = sequence_head(type(model), network)
        head.losses = lambda output, labels: (2.0,)  # type: ignore[method-assign]
        return head

    found = [Trainer(model, TrainingArguments(tmp_path)).evaluate([rows[1], rows[4]])["eval_loss"]]
    for size in (1, 2, 4, 6):
        settings = TrainingArguments(tmp_path, per_device_eval_batch_size=size)
        found += [Trainer(model, settings, None, rows, given).evaluate()["eval_loss"] for given in (None, vectors)]
        assert Trainer(model, settings, loss_head=own).evaluate(rows) == {"eval_loss": 2}
    assert found == pytest.approx([found[0]] * 9, rel=1e-6)


def test_compute_metrics_may_unpack_what_it_gets_and_must_return_numbers(tmp_path: Path) -> None:
    def metrics(found: Any) -> Any:
        logits, labels = found
        return {"rows": np.float32(len(logits)), "mean": labels.mean()}

    model = classifier(tmp_path / "start")
    trainer = Trainer(model, TrainingArguments(tmp_path), eval_dataset=examples(6), compute_metrics=metrics)
    assert trainer.evaluate().items() >= {"eval_rows": 6, "eval_mean": 0.5}.items()
    for wrong in (None, 0.5, {"accuracy": None}, "ab"):
        trainer._compute_metrics = lambda _, wrong=wrong: wrong
        with pytest.raises(InputError, match="compute_metrics must return a dict of numbers, not"):
            trainer.evaluate()


def test_a_second_step_by_hand_needs_the_number_of_steps(tmp_path: Path) -> None:
    model, batch = classifier(tmp_path / "start"), [pad_collate(examples(4))]
    trainer = Trainer(model, TrainingArguments(tmp_path))
    trainer.training_step(batch)
    with pytest.raises(InputError, match=r"learning rate of step 1 depends on the number of steps.*: set max_steps"):
        trainer.training_step(batch)
    for settings in ({"max_steps": 2}, {"lr_scheduler_type": "constant"}):
        trainer = Trainer(model, TrainingArguments(tmp_path, **settings))
        assert all(trainer.training_step(batch).learning_rate for _ in range(2))


def test_the_two_losses_of_replaced_tokens_have_weights_of_their_own() -> None:
    config = bert.ElectraConfig(
        vocab_size=20, embedding_size=16, hidden_size=16, num_hidden_layers=1, num_attention_heads=2
    )
    problem = PairProblem(new_pair(config, config), 50.0)
    rows = [{name: row[name] for name in ("input_ids", "labels")} for row in labelled_rows([1, 2, 1, 3], 5)]
    batch = pad_collate(rows) | {"token_type_ids": np.zeros((4, 6), np.int64)}
    assert problem.counts(batch) == (7, 24)
    options, parameters = PassOptions(KeyedDropout(1, 2)), problem.parameters()

    def found(weights: tuple[float, float] | None) -> Any:
        return problem.gradients(parameters, batch, options._replace(weights=weights), RustTraining())

    first, second, both, plain = (found(weights) for weights in ((1, 0), (0, 1), (0.25, 0.75), None))
    assert plain[0] == pytest.approx(first[0] + second[0])
    assert both[0] == pytest.approx(0.25 * first[0] + 0.75 * second[0])
    for name, gradient in both[1].items():
        expected = 0.25 * first[1][name] + 0.75 * second[1][name]
        assert np.abs(gradient - expected).max() <= 1e-5 * (1 + np.abs(expected).max()), name


def test_a_micro_batch_without_labels_counts_for_nothing(tmp_path: Path) -> None:
    model = model_of("MaskedLM", tmp_path / "start")
    labelled, without = (batch_of(labelled_rows(counts, 3), "MaskedLM") for counts in ([2, 3], [0, 0]))
    steps = [
        Trainer(model, TrainingArguments(tmp_path)).training_step(parts) for parts in ([labelled], [labelled, without])
    ]
    assert steps[0] == steps[1]
    with pytest.raises(InputError, match="all 12 labels of the batch are ignored"):
        Trainer(model, TrainingArguments(tmp_path)).training_step([without, without])


def test_a_loss_of_rows_has_no_tokens_to_average(tmp_path: Path) -> None:
    settings = TrainingArguments(tmp_path, average_tokens_across_batches=True)
    batch = pad_collate(examples(4))
    with pytest.raises(InputError, match="average_tokens_across_batches=True needs a loss of tokens"):
        Trainer(classifier(tmp_path / "start"), settings).training_step([batch])


# --- batches without duplicates


def pairs(count: int = 12) -> list[dict[str, Any]]:
    words = ["house tree", "bird sings", "blue river", "old road", "dog and cat", "sun rain"]
    return [{"a": words[n % 6], "b": f"{words[n // 2 % 6]} small", "score": n % 4 / 4} for n in range(count)]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(5, 14)), min_size=1, max_size=60),
    st.integers(1, 8),
    st.sampled_from(["random", "sequential", "group_by_length"]),
)
def test_no_text_is_in_two_rows_of_a_batch(texts: list[tuple[int, int]], size: int, order: Any) -> None:
    rows = [{"a": str(a), "b": str(b), "label": 1} for a, b in texts]
    settings = TrainingArguments(
        "out", per_device_train_batch_size=size, batch_sampler="no_duplicates", train_sampling_strategy=order
    )
    for epoch in (0, 1):
        batches = list(batches_of_epoch(rows, settings, epoch))
        assert batches == list(batches_of_epoch(rows, settings, epoch))
        assert len(batches) == math.ceil(len(rows) / size)
        used = [row for batch in batches for row in batch]
        assert len(set(used)) == len(used)
        for batch in batches:
            found = [text for row in batch for text in {rows[row]["a"], rows[row]["b"]}]
            assert 0 < len(batch) <= size
            assert len(set(found)) == len(found)
        plain = list(batches_of_epoch(rows, replace(settings, batch_sampler="batch_sampler"), epoch))
        if len({text for row in texts for text in row}) == 2 * len(rows):
            assert batches == plain


def test_a_training_without_duplicates_in_batches_is_resumed_bit_for_bit(tmp_path: Path) -> None:
    encoder = wb.SentenceEncoder(ENCODER)
    settings: dict[str, Any] = {
        "batch_sampler": "no_duplicates",
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "save_steps": 2,
    }
    rows = [{"a": row["a"], "b": row["b"]} for row in pairs(30)]
    trainers = []
    for folder, resume in (("whole", None), ("other", tmp_path / "whole" / "checkpoint-4")):
        run = arguments(tmp_path / folder, **settings)
        trainers.append(SentenceTrainer(encoder, run, rows, losses.MultipleNegativesRankingLoss()))
        with pytest.warns(TrainingWarning, match=r"\d+ of 30 rows are left out of epoch [01]"):
            trainers[-1].train(resume_from_checkpoint=resume)
    assert trainers[0].log_history == trainers[1].log_history
    assert np.array_equal(trainers[0].model.encode("old road"), trainers[1].model.encode("old road"))


# --- rows


@pytest.mark.parametrize("name", ["label", "labels", "score", "scores"])
def test_the_label_of_a_pair_has_one_of_four_names(name: str, tmp_path: Path) -> None:
    rows = [{"a": row["a"], "b": row["b"], name: row["score"]} for row in pairs()]
    losses_ = []
    for data in (rows, [{name: row[name], "b": row["b"], "a": row["a"]} for row in rows]):
        trainer = SentenceTrainer(
            wb.SentenceEncoder(ENCODER),
            arguments(tmp_path / str(len(losses_)), max_steps=2),
            data,
            losses.CoSENTLoss(),
            rows,
        )
        trainer.train()
        losses_.append(trainer.evaluate()["eval_loss"])
    assert losses_[0] == pytest.approx(losses_[1], rel=1e-4)
    rows[3][name] = None
    trainer = SentenceTrainer(wb.SentenceEncoder(ENCODER), arguments(tmp_path / "x"), rows, losses.CoSENTLoss())
    with pytest.raises(InputError, match=f"row 3 of the data set, {name}: the label is missing"):
        trainer.train()


@pytest.mark.parametrize("part", ["train", "eval"])
def test_rows_with_other_columns_or_values_are_named_before_the_first_step(part: str, tmp_path: Path) -> None:
    good = pairs()
    for wrong, message in (
        ({"a": "x", "score": 0.5}, r"row 5 has the columns a, score, but the first one has a, b, score"),
        ({"a": "x", "b": None, "score": 0.5}, r"row 5: the column 'b' has None, which is no text"),
        (["x", "y", 0.5], "row 5 must be a dict of texts by column, not list"),
    ):
        bad = [*good[:5], wrong, *good[6:]]
        data = (bad, good) if part == "train" else (good, bad)
        trainer = SentenceTrainer(
            wb.SentenceEncoder(ENCODER), arguments(tmp_path / "run"), data[0], losses.CoSENTLoss(), data[1]
        )
        with pytest.raises(InputError, match=message):
            trainer.train()
        assert trainer.global_step == 0
        assert not (tmp_path / "run").exists()


def test_rows_that_do_not_count_in_a_loss_do_not_count_in_its_mean() -> None:
    rows, classes = np.zeros((3, 4), np.int64), bert.BertConfig()
    numbers = bert.BertConfig(problem_type="regression")
    ids = {"input_ids": rows}
    assert rows_that_count(ids | {"labels": [0, -100, 2]}, classes) == 2
    assert rows_that_count(ids | {"labels": [0, -100, 2]}, numbers) == 3
    assert rows_that_count(ids | {"labels": [0.0, -100.0, 2.0]}, classes) == 3
    assert rows_that_count(ids | {"start_positions": [0, 4, 1], "end_positions": [3, 9, 2]}, classes) == 2


def test_a_data_frame_is_refused_with_advice(tmp_path: Path) -> None:
    frame = pytest.importorskip("pandas").DataFrame(pairs(1))
    with pytest.raises(
        InputError, match="train_dataset must be a sequence of rows, such as a list of dicts, not DataF"
    ):
        SentenceTrainer(wb.SentenceEncoder(ENCODER), arguments(tmp_path), frame, losses.CoSENTLoss())


def test_batches_of_another_form_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="item 1 of the batch must be a dict, not int: 7"):
        pad_collate([examples()[0], 7])  # type: ignore[list-item]
    wrong: Any
    for wrong in (5, "ab", {"a": ["x"]}, iter(pairs(1))):
        for rows in ((wrong, None), (None, wrong)):
            with pytest.raises(InputError, match="_dataset must be a sequence of rows, such as a list of dicts, not"):
                SentenceTrainer(wb.SentenceEncoder(ENCODER), arguments(tmp_path), rows[0], losses.CoSENTLoss(), rows[1])
    trainer = SentenceTrainer(wb.SentenceEncoder(ENCODER), arguments(tmp_path), None, losses.CoSENTLoss())
    with pytest.raises(InputError, match="the data set must be a sequence of rows"):
        trainer.evaluate(5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"a batch of texts must have columns, .* but it has a, b, score"):
        trainer.training_step(pairs(1))


def test_the_columns_have_the_order_of_the_first_row(tmp_path: Path) -> None:
    rows = [{"a": row["a"], "b": row["b"]} for row in pairs(6)]
    turned = [rows[0], *({"b": row["b"], "a": row["a"]} for row in rows[1:])]
    found = []
    for data in (rows, turned):
        settings = arguments(tmp_path / str(len(found)), max_steps=2, per_device_train_batch_size=3)
        trainer = SentenceTrainer(wb.SentenceEncoder(ENCODER), settings, data, losses.TripletLoss())
        with pytest.raises(InputError, match="TripletLoss takes 3 columns"):
            trainer.train()
        trainer = SentenceTrainer(wb.SentenceEncoder(ENCODER), settings, data, losses.MultipleNegativesRankingLoss())
        trainer.train()
        found.append(trainer.model.encode("old road").tobytes())
    assert found[0] == found[1]


# --- what nothing is learned from


@pytest.mark.parametrize("loss", [losses.CosineSimilarityLoss(), losses.ContrastiveLoss()])
def test_labels_of_0_to_5_are_refused_by_losses_of_cosines(loss: Any, tmp_path: Path) -> None:
    rows = [row | {"score": 5 * row["score"]} for row in pairs()]
    for inner in (loss, losses.MatryoshkaLoss(loss, [16, 8])):
        trainer = SentenceTrainer(wb.SentenceEncoder(ENCODER), arguments(tmp_path / "run"), rows, inner)
        with pytest.raises(
            InputError, match=r"labels\[1\] is 1\.25, but this loss takes labels from -?[01] to 1: scale"
        ):
            trainer.train()
    with pytest.raises(InputError, match="takes labels from"):
        loss.value_and_grad([np.ones((1, 2)), np.ones((1, 2))], [4.0])
    SentenceTrainer(
        wb.SentenceEncoder(ENCODER), arguments(tmp_path / "run", max_steps=1), rows, losses.CoSENTLoss()
    ).train()


def test_losses_that_compare_rows_refuse_batches_of_one(tmp_path: Path) -> None:
    encoder = wb.SentenceEncoder(ENCODER)
    texts = [{"a": row["a"], "b": row["b"]} for row in pairs()]
    equal = [row | {"score": 0.5} for row in pairs()]
    ranking, order = losses.MultipleNegativesRankingLoss(), losses.CoSENTLoss()
    one_anchor = [{"a": "x", "b": row["b"]} for row in pairs()]
    settings: dict[str, Any]
    for rows, loss, settings, message in (
        (texts, ranking, {"per_device_train_batch_size": 1}, "compares each positive with those of the other rows"),
        (texts[:1], ranking, {}, "batches have one row, so that nothing is learned"),
        (one_anchor, ranking, {"batch_sampler": "no_duplicates"}, "rows with different texts"),
        (pairs(), order, {"per_device_train_batch_size": 1}, "CoSENTLoss compares pairs with different labels"),
        (equal, order, {}, "all 12 labels are 0.5"),
        (equal, losses.MatryoshkaLoss(order, [8]), {}, "all 12 labels are 0.5"),
    ):
        trainer = SentenceTrainer(encoder, arguments(tmp_path / "run", **settings), rows, loss)
        with pytest.raises(InputError, match=message):
            trainer.train()
        assert not (tmp_path / "run").exists()
    negatives = [row | {"c": f"{row['a']} not"} for row in texts]
    for row_count in (1, 12):
        run = arguments(tmp_path / str(row_count), per_device_train_batch_size=1, max_steps=2)
        assert SentenceTrainer(encoder, run, negatives[:row_count], ranking).train().training_loss > 0
    with pytest.warns(TrainingWarning, match=r"all 12 rows have the label 0\.5"):
        SentenceTrainer(
            encoder, arguments(tmp_path / "equal", max_steps=1), equal, losses.CosineSimilarityLoss()
        ).train()


def test_one_class_is_refused_and_one_label_warned_of(tmp_path: Path) -> None:
    model = classifier(tmp_path / "start")
    rows = [row | {"labels": 1} for row in examples()]
    with pytest.warns(TrainingWarning, match="all 48 rows have the label 1"):
        Trainer(model, arguments(tmp_path / "run", max_steps=1), rows).train()
    one = replace(model.config, id2label={0: "a"}, problem_type="single_label_classification")
    alone = bert.BertForSequenceClassification.from_config(one)
    with pytest.raises(InputError, match="there is one class for the labels: the loss is always 0"):
        Trainer(alone, TrainingArguments(tmp_path)).training_step([pad_collate([examples()[0]])])
    with pytest.raises(InputError, match="num_labels"):
        losses.SoftmaxLoss(24, 1)
    with pytest.raises(InputError, match="freeze has 'bert', 'classifier', which leaves no parameter to train"):
        Trainer(model, arguments(tmp_path, freeze=("bert", "classifier")), examples())


def test_a_first_gradient_of_0_is_warned_of(tmp_path: Path) -> None:
    rows = [{"a": row["a"], "b": row["a"], "c": row["b"]} for row in pairs()]
    trainer = SentenceTrainer(
        wb.SentenceEncoder(ENCODER), arguments(tmp_path, max_steps=2), rows, losses.TripletLoss(triplet_margin=0)
    )
    with pytest.warns(TrainingWarning, match="the gradient of the first step is 0"):
        trainer.train()


# --- settings and the command


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_sampler": "group_by_label"}, "batch_sampler must be .*'no_duplicates'"),
        ({"greater_is_better": "yes"}, "greater_is_better"),
        ({"average_tokens_across_batches": 1}, "average_tokens_across_batches"),
        ({"metric_for_best_model": None}, "metric_for_best_model must be a str"),
        ({"log_file": 5}, "log_file must be a path, not int: 5"),
        ({"output_dir": None}, "output_dir must be a path, not NoneType"),
        ({"load_best_model_at_end": True, "eval_strategy": "epoch", "save_strategy": "no"}, "checkpoints"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TrainingArguments(**{"output_dir": "out", **settings})


def test_the_command_writes_the_best_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = model_folder(tmp_path / "start")
    train, held_out = table(tmp_path / "train.jsonl", 40, "classify"), table(tmp_path / "eval.jsonl", 8, "classify")
    command = ["finetune", "-m", str(start), "--task", "classify", "--train", str(train), "--batch-size", "8"]
    command += ["--learning-rate", "0.3", "--epochs", "4", "--json", "-q"]
    best = ["--eval", str(held_out), "--eval-steps", "3", "--best"]
    assert main([*command, *best, "-o", str(tmp_path / "out")]) == 0
    evaluations = json.loads(capsys.readouterr().out)["evaluations"]
    step = min(evaluations, key=lambda entry: entry["eval_loss"])["step"]
    weights = (tmp_path / "out" / "model.safetensors").read_bytes()
    assert weights == (tmp_path / "out" / "checkpoints" / f"checkpoint-{step}" / "model.safetensors").read_bytes()
    more = ["--metric", "accuracy", "--patience", "1"]
    without_json = [part for part in command if part not in ("--json", "-q")]
    assert main([*without_json, *best, *more, "-o", str(tmp_path / "second")]) == 0
    assert "; the best model is of step" in capsys.readouterr().err
    for alone in (["--best"], ["--patience", "2"], ["--metric", "f1"]):
        for others in ([], ["--eval", str(held_out), "--frozen"]):
            assert main([*command, *alone, *others, "-o", str(tmp_path / "third")]) == 2
            assert f"{alone[0]} is for evaluations, which need --eval" in capsys.readouterr().err
    assert not (tmp_path / "third").exists()


def test_start_and_end_positions_keep_their_places_in_any_order_of_the_columns(tmp_path: Path) -> None:
    model = bert.BertForQuestionAnswering.from_pretrained(MODELS / "bert_question_answering")
    rows = [{"input_ids": [2, 7, 8, 3], "start_positions": 1, "end_positions": 2}]
    for order in (rows, [dict(sorted(row.items())) for row in rows]):
        assert np.ravel(Trainer(model, arguments(tmp_path)).predict(order).label_ids).tolist() == [1, 2]


def test_settings_may_be_numbers_of_numpy_and_instructions_stay(tmp_path: Path) -> None:
    start = classifier(tmp_path / "start")
    start = type(start)(start.config, dict(start.named_parameters()), instructions="scalar")
    settings = {
        "save_steps": np.int64(1),
        "seed": np.int64(3),
        "learning_rate": np.float32(0.5),
        "max_steps": np.int8(1),
    }
    trainer = Trainer(start, arguments(tmp_path / "run", **settings), examples())
    trainer.train()
    assert trainer.model.instructions == "scalar"
    assert json.loads((tmp_path / "run/checkpoint-1/trainer_state.json").read_text())["step"] == 1


def test_rows_of_any_mapping_and_with_any_values_have_a_fingerprint() -> None:
    rows = [{"input_ids": [2, n, 3], "when": date(2024, 1, n), "note": note} for n, note in ((5, None), (6, "b"))]
    assert fingerprint(rows) == fingerprint([UserDict(row) for row in rows])
    changed = [[{**rows[0], name: value}, rows[1]] for name, value in (("note", 1), ("when", date(2024, 1, 2)))]
    changed.append([UserDict({**rows[0], "input_ids": [2, 9, 3]}), rows[1]])
    assert len({fingerprint(one) for one in (rows, *changed)}) == 4
    program = (
        "from wordpiece_bert.finetune.batches import fingerprint; print(fingerprint([{'a': [1, None], 'b': None}]))"
    )
    found = {subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout for _ in range(2)}
    assert found == {f"{fingerprint([{'a': [1, None], 'b': None}])}\n".encode()}


def test_an_evaluation_has_neither_the_default_prompt_nor_the_cut_as_the_steps_have_not(tmp_path: Path) -> None:
    options: dict[str, Any] = {"prompts": {"query": "old road "}, "default_prompt_name": "query", "truncate_dim": 3}
    loss = losses.MatryoshkaLoss(losses.CosineSimilarityLoss(), [16, 8])
    found = [
        SentenceTrainer(wb.SentenceEncoder(ENCODER, **given), arguments(tmp_path), pairs(), loss, pairs()).evaluate()
        for given in ({}, options)
    ]
    assert found[0] == found[1]
