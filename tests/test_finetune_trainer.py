"""Trainers: trajectories of torch, resumption bit for bit, kills, evaluation, data and the command."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wordpiece_bert as wb
import wordpiece_bert.bert as bert
from wordpiece_bert import tasks
from wordpiece_bert._core import num_threads
from wordpiece_bert._internal.progress import lines_every
from wordpiece_bert.bert.checkpoint import bert_shapes
from wordpiece_bert.cli import main
from wordpiece_bert.errors import CheckpointError, ConfigError, InputError, NonFiniteError, TrainingWarning
from wordpiece_bert.finetune import (
    EvalPrediction,
    SentenceTrainer,
    Trainer,
    TrainingArguments,
    losses,
    metrics,
    model_for,
    pad_collate,
    value_and_grad,
)
from wordpiece_bert.finetune.data import label_names, read_columns, sequence_rows, token_rows
from wordpiece_bert.finetune.engines import NumpyTraining, RustTraining, TrainingEngine
from wordpiece_bert.finetune.loop import TrainingLoop
from wordpiece_bert.finetune.passes import PassOptions
from wordpiece_bert.finetune.sentences import SentenceProblem

DATA = Path(__file__).parent / "data" / "training"
ENCODERS: dict[str, Any] = json.loads((DATA / "sentence_encoders" / "encoders.json").read_text())
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "fine", "nice", "bad", "poor", "dull", "film", "a", "so"]


def arrays(file: Path) -> dict[str, Any]:
    with np.load(file) as stored:
        return {name: stored[name] for name in stored.files}


def model_folder(folder: Path, *, dropout: float = 0.1, **sizes: int) -> Path:
    """A tiny BERT with a tokenizer of WORDS."""
    config = bert.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=sizes.get("hidden_size", 16),
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=16,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    random = np.random.default_rng(0)
    weights = {}
    for name, shape in bert_shapes(config).items():
        size = [getattr(config, part) if isinstance(part, str) else part for part in shape]
        weights[name] = (0.2 * random.standard_normal(size) + name.endswith("LayerNorm.weight")).astype(np.float32)
    bert.BertModel(config, weights).save_pretrained(folder)
    wb.Tokenizer.from_vocab(WORDS).save_pretrained(folder)
    return folder


def classifier(folder: Path, **settings: Any) -> Any:
    model_folder(folder, **settings)
    weights = dict(bert.BertModel.from_pretrained(folder).named_parameters())
    config = bert.BertConfig.from_folder(folder)
    with pytest.warns(match="were drawn"):
        return bert.BertForSequenceClassification(config, weights, new_head=1)


def examples(count: int = 48) -> list[dict[str, Any]]:
    """Texts whose words say which label they have."""
    random = np.random.default_rng(4)
    rows = []
    for number in range(count):
        label = number % 2
        words = random.choice([5, 6, 7] if label else [8, 9, 10], random.integers(1, 4))
        rows.append({"input_ids": [2, *words.tolist(), 11, *random.choice([12, 13], 2).tolist(), 3], "labels": label})
    return rows


def arguments(folder: Path, **settings: Any) -> TrainingArguments:
    options: dict[str, Any] = {
        "learning_rate": 5e-3,
        "per_device_train_batch_size": 8,
        "num_train_epochs": 3,
        "save_steps": 4,
        "logging_steps": 2,
    }
    return TrainingArguments(folder, **(options | settings))


def bits(trainer: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in trainer.model.named_parameters()}


# --- equal to the reference programs


@pytest.mark.parametrize("backend", ["numpy", "rust"])
@pytest.mark.parametrize("name", ["seqcls_single", "pretraining", "token_cls"])
def test_twenty_steps_equal_those_of_torch(name: str, backend: str, tmp_path: Path) -> None:
    folder = DATA / "trajectories" / name
    stored, described = arrays(folder / "reference.npz"), json.loads((folder / "settings.json").read_text())
    s = described["settings"]
    args = TrainingArguments(
        tmp_path,
        learning_rate=s["lr"],
        max_steps=s["steps"],
        warmup_steps=s["warmup"],
        weight_decay=s["weight_decay"],
        adam_beta1=s["betas"][0],
        adam_beta2=s["betas"][1],
        adam_epsilon=s["eps"],
        max_grad_norm=s["max_grad_norm"],
        optim="adamw" if s["correct_bias"] else "adam_weight_decay",
        average_tokens_across_batches=False,  # the reference takes the mean of the micro-batches
    )
    trainer = Trainer(getattr(bert, described["class"]).from_pretrained(folder, backend=backend), args)
    inputs = {key[3:]: array for key, array in stored.items() if key.startswith("in.")}
    for step in range(s["steps"]):
        parts = range(step * s["accumulate"], (step + 1) * s["accumulate"])
        result = trainer.training_step([{key: array[part] for key, array in inputs.items()} for part in parts])
        assert result.loss == pytest.approx(float(stored["loss"][step]), abs=1e-4)
        assert result.grad_norm == pytest.approx(float(stored["grad_norm"][step]), abs=1e-4)
        assert result.learning_rate == pytest.approx(float(stored["learning_rate"][step]), abs=1e-12)
    for key, array in trainer.model.named_parameters():
        limit = 5e-3 if key.endswith("key.bias") else 1e-4
        assert np.abs(array - stored[f"final.{key}"]).max() < limit, key


def make_loss(options: dict[str, Any]) -> Any:
    options = dict(options)
    kind, inner = options.pop("loss"), options.pop("inner", None)
    if inner is not None:
        options["loss"] = make_loss(inner)
    if kind == "SoftmaxLoss":
        options["embedding_dimension"] = 24
    return getattr(losses, kind)(**options)


@pytest.mark.parametrize("engine", [NumpyTraining(), RustTraining()], ids=["numpy", "rust"])
@pytest.mark.parametrize("name", ENCODERS)
def test_gradients_of_sentence_encoders_equal_those_of_sentence_transformers(name: str, engine: TrainingEngine) -> None:
    folder, described = DATA / "sentence_encoders" / name, ENCODERS[name]
    stored = arrays(folder / "reference.npz")
    loss = make_loss(described["loss"])
    if state := {key[3:]: array for key, array in stored.items() if key.startswith("in.classifier")}:
        loss.load_state_dict(state)
    labels = stored.get("in.labels")
    problem = SentenceProblem(wb.SentenceEncoder(folder / "model"), loss)
    batch = {"columns": described["columns"], "labels": labels}
    value, found = problem.gradients(problem.parameters(), batch, PassOptions(), engine)
    assert value == pytest.approx(float(stored["out.loss"]), abs=1e-5)
    expected = {key[5:]: array for key, array in stored.items() if key.startswith("grad.")}
    own = {key.removeprefix("loss."): array for key, array in found.items()}
    largest = max(float(np.abs(array).max()) for array in expected.values())
    for key, gradient in expected.items():
        if key not in own:
            assert not gradient.any(), key
            continue
        limit = 1e-6 * largest if key.endswith("key.bias") else 1e-5 * (np.abs(gradient).max() + 0.05 * largest)
        assert np.abs(own[key] - gradient).max() <= limit, key


def test_ten_steps_of_a_sentence_encoder_equal_those_of_sentence_transformers(tmp_path: Path) -> None:
    folder, described = DATA / "sentence_encoders" / "mean_normalize", ENCODERS["mean_normalize"]
    stored, s = arrays(folder / "reference.npz"), described["trajectory"]["settings"]
    args = TrainingArguments(
        tmp_path, learning_rate=s["lr"], max_steps=s["steps"], warmup_steps=s["warmup"], weight_decay=s["weight_decay"]
    )
    encoder = wb.SentenceEncoder(folder / "model")
    trainer = SentenceTrainer(encoder, args, None, make_loss(described["loss"]))
    for step, columns in enumerate(described["trajectory"]["columns"]):
        result = trainer.training_step([{"columns": columns}])
        assert result.loss == pytest.approx(float(stored["trajectory.loss"][step]), abs=1e-4)
        assert result.grad_norm == pytest.approx(float(stored["trajectory.grad_norm"][step]), abs=1e-4)
    assert not np.array_equal(trainer.model.encode("house"), encoder.encode("house"))


# --- the loop


def test_a_model_learns_and_the_start_does_not_change(tmp_path: Path) -> None:
    model = classifier(tmp_path / "start")
    before = {name: array.tobytes() for name, array in model.named_parameters()}
    trainer = Trainer(
        model,
        arguments(tmp_path / "run", num_train_epochs=10, eval_strategy="epoch", save_strategy="epoch"),
        examples(),
        examples(16),
        compute_metrics=lambda found: {"accuracy": metrics.accuracy(found.predictions.argmax(axis=1), found.label_ids)},
    )
    result = trainer.train()
    assert result.global_step == 60
    assert trainer.evaluate()["eval_accuracy"] == 1.0
    assert {name: array.tobytes() for name, array in model.named_parameters()} == before
    found = trainer.predict(examples(5))
    assert isinstance(found, EvalPrediction)
    assert found.predictions.shape == (5, 2)
    assert found.label_ids.tolist() == [0, 1, 0, 1, 0]
    assert found.metrics.keys() == {"test_loss", "test_accuracy"}
    trainer.save_model(tmp_path / "model")
    loaded = bert.BertForSequenceClassification.from_pretrained(tmp_path / "model")
    assert {name: array.tobytes() for name, array in loaded.named_parameters()} == bits(trainer)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("step", None),
        ("step", -1),
        ("arguments", []),
        ("history", [1]),
        ("recent_losses", ["a"]),
        ("best", True),
        ("best", {"value": "x", "step": 2, "checkpoint": "checkpoint-2", "evaluations_since": 0}),
        ("best", {"value": 1.0, "step": 2, "checkpoint": "../checkpoint-2", "evaluations_since": 0}),
        ("best", {"value": 1.0, "step": None}),
        ("best", {"other": 1}),
    ],
)
def test_a_state_that_no_training_writes_is_refused(tmp_path: Path, name: str, value: object) -> None:
    model = classifier(tmp_path / "start")
    Trainer(model, arguments(tmp_path / "run", num_train_epochs=1), examples()).train()
    file = max((tmp_path / "run").glob("checkpoint-*")) / "trainer_state.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {name: value}))
    again = Trainer(model, arguments(tmp_path / "other", num_train_epochs=1), examples())
    with pytest.raises(CheckpointError, match=rf"trainer_state\.json: {name} is .*the file was changed"):
        again.train(resume_from_checkpoint=file.parent)


@pytest.mark.parametrize(
    "settings", [{}, {"gradient_accumulation_steps": 2}, {"train_sampling_strategy": "group_by_length"}]
)
def test_a_resumed_training_has_the_same_bits(settings: dict[str, Any], tmp_path: Path) -> None:
    model = classifier(tmp_path / "start")
    whole = Trainer(model, arguments(tmp_path / "whole", **settings), examples())
    whole.train()
    last = max((tmp_path / "whole").glob("checkpoint-*"), key=lambda path: int(path.name[11:]))
    first = tmp_path / "whole" / "checkpoint-4"
    assert first != last
    resumed = Trainer(model, arguments(tmp_path / "other", **settings), examples())
    resumed.train(resume_from_checkpoint=first)
    assert bits(resumed) == bits(whole)
    assert resumed.log_history == whole.log_history
    for name in ("training.safetensors", "trainer_state.json", "model.safetensors"):
        assert (tmp_path / "other" / last.name / name).read_bytes() == (last / name).read_bytes(), name


def test_gradient_checkpointing_changes_no_bit(tmp_path: Path) -> None:
    model = classifier(tmp_path / "start")
    runs = []
    for checkpointing in (False, True):
        settings = arguments(tmp_path / str(checkpointing), max_steps=3, gradient_checkpointing=checkpointing)
        runs.append(Trainer(model, settings, examples()))
        runs[-1].train()
    assert bits(runs[0]) == bits(runs[1])


@pytest.mark.parametrize(
    "freeze", [("embeddings",), ("embeddings", "encoder.layer.0"), ("bert",), ("classifier", "encoder.layer.1")]
)
def test_frozen_parameters_stay_and_the_others_follow_the_same_gradients(
    freeze: tuple[str, ...], tmp_path: Path
) -> None:
    model = classifier(tmp_path / "start", dropout=0.0)
    trainer = Trainer(model, arguments(tmp_path / "run", freeze=freeze, max_grad_norm=0, weight_decay=0), examples())
    batch = pad_collate(examples(8))
    trainer.training_step([batch])
    full = value_and_grad(model, **batch).gradients
    before = dict(model.named_parameters())
    for name, array in trainer.model.named_parameters():
        frozen = any(f".{part}." in f".{name}." for part in freeze)
        moved = not np.array_equal(array, before[name])
        assert moved == (not frozen and bool(np.any(full[name]))), name


def test_other_settings_data_or_models_are_refused_on_resumption(tmp_path: Path) -> None:
    model = classifier(tmp_path / "start")
    Trainer(model, arguments(tmp_path / "run", max_steps=4), examples()).train()
    folder = tmp_path / "run" / "checkpoint-4"
    with pytest.raises(CheckpointError, match=r"learning_rate 0\.005, but this training has 0\.001"):
        Trainer(model, arguments(tmp_path, max_steps=4, learning_rate=1e-3), examples()).load_checkpoint(folder)
    with pytest.raises(CheckpointError, match="is of other training data: 48 rows then, 47 now;"):
        Trainer(model, arguments(tmp_path, max_steps=4), examples(47)).load_checkpoint(folder)
    with pytest.raises(CheckpointError, match="is of other training data: 48 rows with other content;"):
        Trainer(model, arguments(tmp_path, max_steps=4), examples()[::-1]).load_checkpoint(folder)
    other = classifier(tmp_path / "wide", hidden_size=32)
    with pytest.raises(CheckpointError, match="hidden_size"):
        Trainer(other, arguments(tmp_path, max_steps=4), examples()).load_checkpoint(folder)
    (folder / "training.safetensors").write_bytes((folder / "training.safetensors").read_bytes()[:-9])
    with pytest.raises(CheckpointError, match="training"):
        Trainer(model, arguments(tmp_path, max_steps=4), examples()).load_checkpoint(folder)
    with pytest.raises(CheckpointError, match="no checkpoint to resume from"):
        Trainer(model, arguments(tmp_path / "none"), examples()).train(resume_from_checkpoint=True)


def test_old_checkpoints_go_and_the_best_stays(tmp_path: Path) -> None:
    settings = arguments(
        tmp_path / "run",
        eval_strategy="steps",
        eval_steps=2,
        save_steps=2,
        save_total_limit=2,
        load_best_model_at_end=True,
        max_steps=12,
        learning_rate=0.2,
    )
    trainer = Trainer(classifier(tmp_path / "start"), settings, examples(), examples(16))
    trainer.train()
    losses_ = {entry["step"]: entry["eval_loss"] for entry in trainer.log_history if "eval_loss" in entry}
    best = min(losses_, key=lambda step: losses_[step])
    kept = {int(path.name[11:]) for path in (tmp_path / "run").glob("checkpoint-*")}
    assert kept == {10, 12, best}
    assert trainer.evaluate()["eval_loss"] == pytest.approx(losses_[best])


def test_training_stops_early_without_progress(tmp_path: Path) -> None:
    settings = arguments(
        tmp_path / "run", eval_strategy="steps", eval_steps=1, early_stopping_patience=2, learning_rate=0.0
    )
    trainer = Trainer(classifier(tmp_path / "start"), settings, examples(), examples(8))
    assert trainer.train().global_step == 3


def test_a_loss_that_is_not_finite_stops_and_the_last_checkpoint_stays(tmp_path: Path) -> None:
    settings = arguments(tmp_path / "run", learning_rate=1e30, save_steps=1, warmup_steps=1)
    trainer = Trainer(classifier(tmp_path / "start"), settings, examples())
    with np.errstate(all="ignore"), pytest.raises(NonFiniteError, match=r"step [1-9]"):
        trainer.train()
    assert (tmp_path / "run" / "checkpoint-1" / "trainer_state.json").exists()


KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_finetune_trainer import arguments, examples
import wordpiece_bert.bert as bert
from wordpiece_bert.finetune import Trainer
model = bert.BertForSequenceClassification.from_pretrained({start!r})
trainer = Trainer(model, arguments(Path({run!r}), save_steps=1, num_train_epochs=6), examples())
resume = any(Path({run!r}).glob("checkpoint-*/trainer_state.json"))
print("ready", flush=True)
trainer.train(resume_from_checkpoint=resume)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_training_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    classifier(tmp_path / "base").save_pretrained(tmp_path / "start")
    start = bert.BertForSequenceClassification.from_pretrained(tmp_path / "start")
    whole = Trainer(start, arguments(tmp_path / "whole", save_steps=1, num_train_epochs=6), examples())
    whole.train()
    code = KILLED.format(tests=str(Path(__file__).parent), start=str(tmp_path / "start"), run=str(tmp_path / "run"))
    for seconds in (0.05, 0.3):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(seconds)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    last = f"checkpoint-{whole.global_step}"
    for name in ("training.safetensors", "trainer_state.json"):
        assert (tmp_path / "run" / last / name).read_bytes() == (tmp_path / "whole" / last / name).read_bytes()
    assert not [path for path in (tmp_path / "run").iterdir() if not path.name.startswith("checkpoint-")]


def test_a_sentence_encoder_is_trained_saved_and_resumed(tmp_path: Path) -> None:
    encoder = wb.SentenceEncoder(DATA / "sentence_encoders" / "cls" / "model")
    texts = ["house tree", "bird sings", "blue river", "old road", "dog and cat", "sun rain"]
    rows = [{"a": text, "b": text + " small", "label": n % 3} for n, text in enumerate(texts)]
    settings = arguments(tmp_path / "run", per_device_train_batch_size=3, save_steps=2, num_train_epochs=4)
    loss = losses.SoftmaxLoss(24, 3)
    trainer = SentenceTrainer(encoder, settings, rows, loss, rows)
    first = trainer.evaluate()["eval_loss"]
    trainer.train()
    assert trainer.evaluate()["eval_loss"] < first
    trainer.save_model(tmp_path / "model")
    assert np.array_equal(wb.SentenceEncoder(tmp_path / "model").encode(texts), trainer.model.encode(texts))
    resumed = SentenceTrainer(encoder, settings, rows, losses.SoftmaxLoss(24, 3))
    resumed.train(resume_from_checkpoint=tmp_path / "run" / "checkpoint-2")
    assert np.array_equal(resumed.model.encode(texts), trainer.model.encode(texts))
    assert np.array_equal(resumed._loss.state_dict()["classifier.weight"], loss.state_dict()["classifier.weight"])
    for other in (losses.SoftmaxLoss(24, 3, True, False, True), losses.CoSENTLoss()):
        with pytest.raises(CheckpointError, match="but this training has"):
            SentenceTrainer(encoder, settings, rows, other).load_checkpoint(tmp_path / "run" / "checkpoint-2")
    problem = SentenceProblem(encoder, losses.MatryoshkaLoss(losses.CoSENTLoss(3), [8, 4]))
    ranked = {"class": "CoSENTLoss", "scale": 3}
    own = {"class": "MatryoshkaLoss", "loss": ranked, "matryoshka_dims": [8, 4], "matryoshka_weights": [1, 1]}
    found = {"loss": own, "pooling": ["cls"], "normalizations": 0, "max_seq_length": encoder.max_seq_length}
    assert problem.description().items() >= found.items()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rate": -1}, "learning_rate"),
        ({"adam_beta2": 1.0}, "adam_beta2"),
        ({"gradient_accumulation_steps": 0}, "gradient_accumulation_steps"),
        ({"optim": "sgd"}, "'sgd'"),
        ({"lr_scheduler_type": "step"}, "'step'"),
        ({"bf16": 1.5}, "bf16"),
        ({"max_steps": 0}, "max_steps"),
        ({"load_best_model_at_end": True}, "eval_strategy"),
        ({"early_stopping_patience": 1}, "evaluations"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TrainingArguments("x", **settings)


def test_bfloat16_needs_the_kernels(tmp_path: Path) -> None:
    model = bert.BertForSequenceClassification.from_pretrained(DATA / "trajectories" / "seqcls_single", backend="numpy")
    with pytest.raises(InputError, match="backend='rust'"):
        Trainer(model, TrainingArguments(tmp_path, bf16=True))


def test_a_model_without_a_padding_token_is_trained(tmp_path: Path) -> None:
    config = replace(classifier(tmp_path / "start").config, pad_token_id=-1)
    model = bert.BertForSequenceClassification.from_config(config)
    assert Trainer(model, arguments(tmp_path, max_steps=1, save_strategy="no"), examples()).train().global_step == 1


def test_wrong_trainings_are_refused(tmp_path: Path) -> None:
    model = classifier(tmp_path / "start")
    with pytest.raises(InputError, match=r"freeze has 'encoder\.layer\.7'"):
        Trainer(model, arguments(tmp_path, freeze=("encoder.layer.7",)), examples())
    with pytest.raises(InputError, match="nothing to train on"):
        Trainer(model, arguments(tmp_path), []).train()
    with pytest.raises(InputError, match="nothing to evaluate"):
        Trainer(model, arguments(tmp_path), examples()).evaluate()
    with pytest.raises(InputError, match="nothing to evaluate"):
        Trainer(model, arguments(tmp_path / "run", eval_strategy="epoch"), examples()).train()
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match="labels"):
        Trainer(model, arguments(tmp_path), [{"input_ids": [2, 5, 3], "labels": 7}]).train()
    int8 = type(model)(model.config, dict(model.named_parameters()), dtype="int8")
    with pytest.raises(ConfigError, match="has int8 weights, and cannot be trained: load it with dtype='float32'"):
        Trainer(int8, arguments(tmp_path), examples())
    with pytest.raises(InputError, match="no input_ids"):
        Trainer(model, arguments(tmp_path), [{"ids": [2, 5, 3], "labels": 1}]).train()
    config = bert.DPRConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    with pytest.raises(ConfigError, match="DPRQuestionEncoder cannot be trained here; models that can: bert, albert,"):
        Trainer(bert.DPRQuestionEncoder.from_config(config), arguments(tmp_path), examples())


@pytest.mark.parametrize("wrong", [None, float("nan"), np.float32("nan"), "", [1, None], [0.0, float("nan")]])
@pytest.mark.parametrize("part", ["train", "eval"])
def test_rows_without_a_label_are_refused_before_the_first_step(tmp_path: Path, wrong: Any, part: str) -> None:
    rows = examples()
    wrong_rows = [*rows[:7], {**rows[7], "labels": wrong}, *rows[8:]]
    data = (wrong_rows, rows) if part == "train" else (rows, wrong_rows)
    trainer = Trainer(classifier(tmp_path / "start"), arguments(tmp_path / "run"), *data)
    with pytest.raises(InputError, match=r"row 7 of the data set, labels.*: the label is missing"):
        trainer.train()
    assert trainer.global_step == 0
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("kind", [float, bool, np.float32])
def test_classes_of_other_types_train_as_their_numbers_do(tmp_path: Path, kind: Any) -> None:
    model_folder(tmp_path / "start")

    def loss(rows: Any) -> float:
        model = model_for(tmp_path / "start", "SequenceClassification", labels=["a", "b"])
        return Trainer(model, arguments(tmp_path / "run", max_steps=2, save_strategy="no"), rows).train().training_loss

    assert loss([{**row, "labels": kind(row["labels"])} for row in examples()]) == loss(examples())


@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("problem", ["single_label_classification", None])
def test_several_labels_of_a_row_need_the_problem_type(tmp_path: Path, kind: type, problem: Any) -> None:
    model_folder(tmp_path / "start")
    rows = [{**row, "labels": [kind(1 - row["labels"]), kind(row["labels"])]} for row in examples()]

    def trainer(problem: Any) -> Trainer:
        model = model_for(tmp_path / "start", "SequenceClassification", labels=["a", "b"], problem_type=problem)
        return Trainer(model, arguments(tmp_path / "run", max_steps=2, save_strategy="no"), rows)

    assert trainer("multi_label_classification").train().global_step == 2
    if kind is float and problem is None:  # as in transformers: several labels, by the type of the numbers
        assert trainer(problem).train().global_step == 2
    else:
        with pytest.raises(InputError, match="problem_type is 'single_label_classification'"):
            trainer(problem).train()


def test_a_training_does_not_overwrite_the_checkpoints_of_another(tmp_path: Path) -> None:
    model, rows = classifier(tmp_path / "start"), examples()
    run = tmp_path / "run"
    first = Trainer(model, arguments(run, max_steps=8), rows)
    first.train()
    first.train()  # nothing is left to do
    before = (run / "checkpoint-8" / "trainer_state.json").read_bytes()
    for resume in (None, False):
        with pytest.raises(CheckpointError, match=r"run: it has checkpoints .* resume_from_checkpoint=True.*overwrite"):
            Trainer(model, arguments(run, max_steps=4), rows).train(resume_from_checkpoint=resume)
    Trainer(model, arguments(tmp_path / "other", max_steps=8), rows).train()
    with pytest.raises(CheckpointError, match="it has checkpoints of an earlier training, up to checkpoint-8"):
        Trainer(model, arguments(run, max_steps=8), rows).train(tmp_path / "other" / "checkpoint-4")
    assert (run / "checkpoint-8" / "trainer_state.json").read_bytes() == before
    result = Trainer(model, arguments(run, max_steps=8), rows).train(resume_from_checkpoint=True)
    assert result.global_step == 8
    assert result.training_loss == first.log_history[-1]["loss"]
    Trainer(model, arguments(run, max_steps=8, save_strategy="no"), rows).train()
    Trainer.from_checkpoint(run / "checkpoint-4", model, arguments(run, max_steps=8), rows).train()
    assert (run / "checkpoint-8" / "trainer_state.json").read_bytes() == before
    Trainer(model, arguments(run, max_steps=4, overwrite_output_dir=True), rows).train()
    assert [path.name for path in run.iterdir()] == ["checkpoint-4"]


def test_the_log_grows_and_is_that_of_the_history_after_a_resumption(tmp_path: Path) -> None:
    model, log = classifier(tmp_path / "start"), tmp_path / "run" / "log.jsonl"
    seen: list[int] = []

    def collate(rows: Any) -> Any:
        seen.append(len(log.read_text().splitlines()))
        return pad_collate(rows)

    settings = arguments(tmp_path / "run", max_steps=8, logging_steps=2, log_file=log)
    whole = Trainer(model, settings, examples(), data_collator=collate)
    whole.train()
    assert seen == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [json.loads(line) for line in log.read_text().splitlines()] == whole.log_history
    resumed = Trainer.from_checkpoint(tmp_path / "run" / "checkpoint-4", model, settings, examples())
    resumed.train()
    assert [json.loads(line) for line in log.read_text().splitlines()] == whole.log_history


# --- data and metrics


def test_padding_of_rows_and_labels() -> None:
    batch = pad_collate([{"input_ids": [5, 6, 7], "labels": [1, 2, 3]}, {"input_ids": [8], "labels": [4]}], 9)
    assert batch["input_ids"].tolist() == [[5, 6, 7], [8, 9, 9]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert batch["labels"].tolist() == [[1, 2, 3], [4, -100, -100]]
    choices = pad_collate([{"input_ids": [[5, 6], [7, 8]], "labels": 1}, {"input_ids": [[5], [6]], "labels": 0}])
    assert choices["input_ids"].tolist() == [[[5, 6], [7, 8]], [[5, 0], [6, 0]]]
    assert choices["labels"].tolist() == [1, 0]
    with pytest.raises(InputError, match="item 1 of the batch"):
        pad_collate([{"input_ids": [5], "labels": 1}, {"input_ids": [5]}])
    with pytest.raises(InputError, match=r"item 1 of the batch has no tokens: its input_ids are \[\]"):
        pad_collate([{"input_ids": [5]}, {"input_ids": []}])
    with pytest.raises(InputError, match="at least one row"):
        pad_collate([])
    with pytest.raises(InputError, match=r"item 1 of the batch has labels of the shape \[3\], the first one of \[2\]"):
        pad_collate([{"input_ids": [5, 6, 7], "labels": [0, 1]}, {"input_ids": [5, 6, 7, 8], "labels": [0, 1, 0]}])


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_tables_are_read(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"data{suffix}"
    rows = [{"text": 'a "good" film, so', "label": "yes"}, {"text": "dull", "label": "no"}]
    if suffix == ".csv":
        file.write_text('text,label\n"a ""good"" film, so",yes\ndull,no\n', encoding="utf-8")
    elif suffix == ".tsv":
        file.write_text('text\tlabel\na "good" film, so\tyes\ndull\tno\n', encoding="utf-8")
    elif suffix == ".jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        arrow = pytest.importorskip("pyarrow")
        parquet.write_table(arrow.Table.from_pylist(rows), file)
    found = read_columns(file, ["label", "text"])
    assert found == {"label": ["yes", "no"], "text": ['a "good" film, so', "dull"]}
    with pytest.raises(InputError, match=r"no column ['\"]score['\"]; the columns are"):
        read_columns(file, ["text", "score"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "text,label\n", "no rows"),
        ("a.csv", "text,label\nx,y,z\n", "line 2, .* the number of fields is 3, but the header has 2"),
        ("a.csv", "text,label\nx\n", "line 2, .* the number of fields is 1, but the header has 2"),
        ("a.jsonl", '{"text": "x", "label": 1}\n{"text"\n', "line 2"),
        ("a.jsonl", "[1]\n", "a JSON object is needed"),
        ("a.jsonl", f'{{"text": {"1" * 5000}}}\n', "line 1: .*digits"),
        ("a.jsonl", f'{{"text": {"[" * 100_000}}}\n', "line 1: .*recursion"),
        ("a.txt", "x", "must end in"),
    ],
)
def test_wrong_tables_are_refused(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_columns(tmp_path / name, ["text", "label"])


def test_rows_of_texts_and_of_words() -> None:
    tokenizer = wb.Tokenizer.from_vocab(WORDS)
    assert label_names(["b", "a", "b"]) == ["a", "b"]
    assert label_names([10, 9, 10]) == ["9", "10"]
    with pytest.raises(InputError, match="at least two"):
        label_names(["a", "a"])
    rows = sequence_rows(tokenizer, ["good film"], ["so"], ["b"], names=["b"], max_length=16)
    assert rows == [{"input_ids": [2, 5, 11, 3, 13, 3], "token_type_ids": [0, 0, 0, 0, 1, 1], "labels": 0}]
    with pytest.warns(TrainingWarning, match="1 of 1 texts are longer than 3 tokens"):
        sequence_rows(tokenizer, ["good film"], None, [0.5], names=None, max_length=3)
    with pytest.raises(InputError, match="row 0 has the label 'c'"):
        sequence_rows(tokenizer, ["good"], None, ["c"], names=["a", "b"], max_length=16)
    with pytest.raises(InputError, match="no finite number"):
        sequence_rows(tokenizer, ["good"], None, ["x"], names=None, max_length=16)
    words = token_rows(tokenizer, [["good", "film"]], [["B", "O"]], names=["B", "O"], max_length=16)
    assert words[0]["labels"] == [-100, 0, 1, -100]
    with pytest.raises(InputError, match="2 words, but 1 labels"):
        token_rows(tokenizer, [["good", "film"]], [["B"]], names=["B", "O"], max_length=16)


def test_metrics() -> None:
    assert metrics.accuracy([1, 0, 2, 2], [1, 1, 2, -100]) == pytest.approx(2 / 3)
    assert metrics.f1([1, 1, 0, 0], [1, 0, 1, 0]) == 0.5
    assert metrics.f1([0, 0], [0, 0]) == 0.0
    tags = [["B-PER", "I-PER", "O", "B-LOC"], ["I-ORG", "O"]]
    assert metrics.entity_f1(tags, tags) == 1.0
    assert metrics.entity_f1([["B-PER", "O", "O", "B-LOC"], ["O", "O"]], tags) == pytest.approx(2 / 5)
    plain = [["X-RAY", "X-RAY", "O", "GAMMA-RAY"], ["B-O", "I-O", "O"]]
    assert metrics.entity_f1(plain, plain) == 1.0
    assert metrics.entity_f1([["GAMMA-RAY", "X-RAY", "O", "X-RAY"], ["B-O", "O", "O"]], plain) == 0.0
    assert metrics.entity_f1([["X-RAY", "X-RAY", "O", "O"], ["B-O", "I-O", "O"]], plain) == pytest.approx(4 / 5)
    assert metrics.spearman([1, 2, 2, 4], [10, 20, 20, 30]) == pytest.approx(1)
    assert metrics.spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert np.isnan(metrics.pearson([1, 1], [1, 2]))
    with pytest.raises(InputError, match="one shape"):
        metrics.accuracy([1], [1, 2])


def test_metrics_leave_out_the_same_labels() -> None:
    found, right = [1, 0, 1, 0, 7], [1, 1, 0, 0, -100]
    assert metrics.accuracy(found, right) == metrics.f1(found, right) == 0.5
    assert metrics.f1_by_label(found, right, ["a", "b"]) == metrics.f1_by_label(found[:4], right[:4], ["a", "b"])
    assert metrics.f1([1, 0], [1, 5], ignored=5) == 1.0
    for metric in (metrics.accuracy, metrics.f1):
        with pytest.raises(InputError, match="all 2 labels are ignored"):
            metric([1, 0], [-100, -100])


@pytest.mark.parametrize("metric", [metrics.accuracy, metrics.f1])
def test_metrics_of_labels_that_cannot_be_compared_are_refused(metric: Callable[..., float]) -> None:
    for pair in (([1, np.nan], [1, 1]), ([1, 1], np.array([1, np.nan], object))):
        with pytest.raises(InputError, match=r"\[1\] is nan"):
            metric(*pair)
    for found in (["1", "0"], np.array(["1", "0"], object), [1, None]):
        with pytest.raises(InputError, match="must be both numbers or both str, not"):
            metric(found, [1, 0])
    assert metric(np.array(["a", "b"], object), ["a", "b"]) == (metric is metrics.accuracy)


def test_a_class_is_a_number_of_a_name() -> None:
    one, names = {"f1_macro": 1.0, "f1_micro": 1.0, "f1/a": 1.0, "f1/b": 1.0}, ["a", "b"]
    assert metrics.f1_by_label(np.float32([1, 0]), np.uint8([1, 0]), names) == one
    for found, message in (
        ([5, 0], r"predictions\[0\] is 5, outside 0 to 1$"),
        ([0.7, 0], r"predictions\[0\] is 0.7, but a class is a whole number"),
        ([0, np.nan], r"predictions\[1\] is nan, but"),
        ([-100, 0], r"predictions\[0\] is -100"),
        (["1", "0"], "predictions must be integers, not"),
    ):
        with pytest.raises(InputError, match=message):
            metrics.f1_by_label(found, [1, 0], names)
    with pytest.raises(InputError, match=r"labels\[1\] is 2, outside 0 to 1 \(or -100"):
        metrics.f1_by_label([1, 0], [1, 2], names)


# --- the command


def table(file: Path, rows: int, task: str) -> Path:
    random = np.random.default_rng(rows)
    lines = []
    for number in range(rows):
        good = number % 2 == 0
        words = [*random.choice(["good", "fine", "nice"] if good else ["bad", "poor", "dull"], 2), "film"]
        row: dict[str, Any] = {"text": " ".join(words), "label": "praise" if good else "blame"}
        if task == "regress":
            row["label"] = 1.0 if good else -1.0
        elif task == "tokens":
            row = {"text": words, "label": ["WORD" if word != "film" else "FILM" for word in words]}
        elif task == "similar":
            row |= {"other": "so good a film", "label": int(good)}
        lines.append(json.dumps(row) + "\n")
    file.write_text("".join(lines), encoding="utf-8")
    return file


@pytest.mark.parametrize("task", ["classify", "regress", "tokens", "similar"])
def test_the_command(task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start, out = model_folder(tmp_path / "start"), tmp_path / "out"
    train, held_out = table(tmp_path / "train.jsonl", 40, task), table(tmp_path / "eval.jsonl", 12, task)
    command = ["finetune", "--model", str(start), "--task", task, "--train", str(train), "--eval", str(held_out)]
    command += ["--epochs", "4", "--batch-size", "8", "--learning-rate", "0.005", "--json", "-o", str(out)]
    if task == "similar":
        command += ["--pair", "other"]
    assert main(command) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["steps"] == 20
    last = summary["evaluations"][-1]
    if task == "classify":
        assert last["eval_accuracy"] == 1.0
        answers = tasks.classify(out, ["good nice film", "a dull film"])
        assert [answer[0]["label"] for answer in answers] == ["praise", "blame"]
    elif task == "regress":
        assert last["eval_spearman"] > 0.8
    elif task == "tokens":
        assert last["eval_accuracy"] == 1.0
        assert bert.AutoModel.from_pretrained(out).config.id2label == {0: "FILM", 1: "WORD"}
    else:
        assert last["eval_loss"] < summary["evaluations"][0]["eval_loss"]
        assert wb.SentenceEncoder(out).encode("a film").shape == (16,)


def test_the_command_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = model_folder(tmp_path / "start")
    train = table(tmp_path / "train.jsonl", 40, "classify")
    command = [
        "finetune",
        "--model",
        str(start),
        "--task",
        "classify",
        "--train",
        str(train),
        "--batch-size",
        "8",
        "-q",
    ]
    assert main([*command, "-o", str(tmp_path / "whole")]) == 0
    checkpoint = tmp_path / "whole" / "checkpoints"
    part = tmp_path / "part"
    part.mkdir()
    os.rename(checkpoint, part / "checkpoints")
    assert main([*command, "--resume", "-o", str(part)]) == 0
    assert (part / "model.safetensors").read_bytes() == (tmp_path / "whole" / "model.safetensors").read_bytes()
    capsys.readouterr()
    assert main([*command, "--resume", "-o", str(tmp_path / "none")]) == 0
    assert "no checkpoint to resume from; the training begins" in capsys.readouterr().err
    assert (tmp_path / "none" / "model.safetensors").read_bytes() == (part / "model.safetensors").read_bytes()


def test_a_repeated_command_does_not_overwrite_checkpoints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start, out = model_folder(tmp_path / "start"), tmp_path / "out"
    train = table(tmp_path / "train.jsonl", 40, "classify")
    command = ["finetune", "-m", str(start), "--task", "classify", "--train", str(train), "--batch-size", "8"]
    command += ["-o", str(out), "--epochs", "2"]
    assert main([*command, "-q"]) == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    (tmp_path / "no model").mkdir()
    assert main([*command, "-m", str(tmp_path / "no model")]) == 2  # before the model is looked for
    message = capsys.readouterr().err
    assert "up to checkpoint-10; resume from there with --resume, begin again with --overwrite" in message
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert main([*command, "--resume", "--json"]) == 0
    assert math.isfinite(json.loads(capsys.readouterr().out)["loss"])
    assert main([*command, "--overwrite", "-q", "--epochs", "1"]) == 0
    assert [path.name for path in (out / "checkpoints").iterdir()] == ["checkpoint-5"]
    with pytest.raises(SystemExit):
        main([*command, "--overwrite", "--resume"])


def test_the_command_sets_steps_threads_and_products(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start = model_folder(tmp_path / "start")
    train, held_out = table(tmp_path / "train.jsonl", 40, "classify"), table(tmp_path / "eval.jsonl", 8, "classify")
    command = ["finetune", "-m", str(start), "--task", "classify", "--train", str(train), "--batch-size", "8"]
    command += ["--eval", str(held_out), "--epochs", "2", "--json"]
    saved: list[int] = []
    threads: list[int] = []
    save = TrainingLoop._save

    def recorded(self: Any) -> None:
        saved.append(self.global_step)
        threads.append(num_threads())
        save(self)

    monkeypatch.setattr(TrainingLoop, "_save", recorded)
    before = num_threads()
    given = ["--save-steps", "3", "--eval-steps", "4", "--threads", "1"]
    assert main([*command, *given, "-o", str(tmp_path / "a")]) == 0
    assert saved == [3, 6, 9, 10]
    assert set(threads) == {1}
    assert num_threads() == before
    evaluations = json.loads(capsys.readouterr().out)["evaluations"]
    assert [entry["step"] for entry in evaluations] == [4, 8, 10]
    assert main([*command, *given[:4], "-o", str(tmp_path / "b")]) == 0
    assert main([*command, *given, "--bf16", "-o", str(tmp_path / "c")]) == 0
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in "abc"]
    assert weights[0] == weights[1] != weights[2]
    capsys.readouterr()
    assert main([*command[:-5], "--eval-steps", "2", "-o", str(tmp_path / "d")]) == 2
    assert "--eval" in capsys.readouterr().err
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("quiet", [False, True])
def test_progress_is_printed_without_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], quiet: bool
) -> None:
    start, train = model_folder(tmp_path / "start"), table(tmp_path / "train.jsonl", 16, "classify")
    command = ["finetune", "-m", str(start), "--task", "classify", "--train", str(train), "--batch-size", "8"]
    command += ["--epochs", "2", "-o", str(tmp_path / "out")] + ["-q"] * quiet
    with lines_every(0):
        assert main(command) == 0
    lines = capsys.readouterr().err.splitlines()
    found = [line for line in lines if re.search(r"epoch \d\.\d\d, loss \d+\.\d{4}: .* of 4 steps", line)]
    assert len(found) == (0 if quiet else 4)


@pytest.mark.parametrize("task", ["classify", "regress", "tokens", "similar"])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("frozen", [False, True])
def test_a_missing_label_is_reported_with_its_line(
    task: str, suffix: str, frozen: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if task == "similar" and frozen:
        pytest.skip("there is no such head")
    start = model_folder(tmp_path / "start")
    labels = {"classify": ["a", "b"], "tokens": ["A B", "B A"]}.get(task, ["1", "2"])
    for missing in ("", " ") if suffix == ".csv" else (None, "", float("nan")):
        if suffix == ".parquet" and missing != "":
            missing = None
        rows = [{"text": "good film", "other": "so", "label": labels[n % 2] if n != 2 else missing} for n in range(4)]
        file = tmp_path / f"data{suffix}"
        if suffix == ".csv":
            lines = [",".join(str(value) for value in row.values()) for row in rows]
            file.write_text("\n".join(["text,other,label", *lines]) + "\n", encoding="utf-8")
        elif suffix == ".jsonl":
            file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        else:
            parquet, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
            parquet.write_table(arrow.Table.from_pylist(rows), file)
        command = ["finetune", "-m", str(start), "--task", task, "--train", str(file), "-o", str(tmp_path / "out")]
        command += ["--pair", "other"] * (task == "similar") + ["--frozen"] * frozen
        assert main(command) == 2
        message = capsys.readouterr().err
        where = {".csv": "line 4", ".jsonl": "line 3", ".parquet": "row [23]"}[suffix]
        assert re.search(rf"data\{suffix}, {where}[,:].*column 'label'", message), message
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("label", [["a", "b"], [1, 0, 0], 0.5])
def test_lists_and_fractions_are_no_classes_for_the_command(
    label: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start, file = model_folder(tmp_path / "start"), tmp_path / "data.jsonl"
    rows = [{"text": "good film", "label": "a"}, {"text": "bad film", "label": label}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    command = ["finetune", "-m", str(start), "--task", "classify", "--train", str(file), "-o", str(tmp_path / "out")]
    for more in ([], ["--frozen"]):
        assert main([*command, *more]) == 2
        message = capsys.readouterr().err
        assert "data.jsonl, line 2, column 'label': " in message
        assert ("problem_type=" if isinstance(label, list) else "is a fraction") in message


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--task", "classify", "--label", "stars"], "no column 'stars'"),
        (["--task", "similar"], "--pair"),
        (["--task", "regress"], "no finite number"),
    ],
)
def test_wrong_commands_are_refused(
    extra: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = model_folder(tmp_path / "start")
    train = table(tmp_path / "train.jsonl", 8, "classify")
    command = ["finetune", "--model", str(start), "--train", str(train), "-o", str(tmp_path / "out"), *extra]
    assert main(command) == 2
    assert message in capsys.readouterr().err
