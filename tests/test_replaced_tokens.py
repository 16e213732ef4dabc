"""Replaced-token detection (ELECTRA): gradients, draws, shared embeddings, training, resumption and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny_models
import wordpiece_bert as wb
from random_models import LossOnly
from small_corpus import write_corpus
from wordpiece_bert._internal.ignored_label import IGNORED
from wordpiece_bert.bert import AutoModel, ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining
from wordpiece_bert.cli import main
from wordpiece_bert.errors import CheckpointError, ConfigError, InputError
from wordpiece_bert.finetune import PretrainingRows, PretrainingTrainer, TrainingArguments, metrics
from wordpiece_bert.finetune.dropout import KeyedDropout
from wordpiece_bert.finetune.engines import NumpyTraining, RustTraining
from wordpiece_bert.finetune.objectives import ElectraPair, new_pair
from wordpiece_bert.finetune.objectives.replaced_tokens import PairProblem, generator_config, sampled
from wordpiece_bert.finetune.passes import PassOptions
from wordpiece_bert.pretraining import Masking, PretrainingDataset, build_examples, build_token_store

SIZES: dict[str, Any] = {
    "hidden_size": 16,
    "embedding_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 32,
}


def config(vocab_size: int = 40, **more: Any) -> ElectraConfig:
    return ElectraConfig(vocab_size=vocab_size, **SIZES, **more)


def without_dropout(**more: Any) -> ElectraConfig:
    return config(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, initializer_range=0.3, **more)


def batch_of(seed: int = 5) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    mask = np.array([[1] * 9, [1] * 5 + [0] * 4, [1] * 7 + [0] * 2])
    original = random.integers(5, 40, mask.shape) * mask
    labels = np.where((random.random(mask.shape) < 0.4) & (mask > 0), original, IGNORED)
    labels[:, 1] = original[:, 1]
    ids = np.where(labels == IGNORED, original, np.where(random.random(mask.shape) < 0.8, 4, original))
    return {
        "input_ids": ids,
        "attention_mask": mask,
        "token_type_ids": (np.arange(9) > 3) * mask,
        "labels": labels,
    }


@pytest.mark.parametrize("dropout", [False, True])
def test_gradients_against_central_differences(dropout: bool) -> None:
    """The drawn tokens are constants of the loss: a step is too small to change one."""
    pair = new_pair(config(initializer_range=0.3) if dropout else without_dropout(), seed=3, backend="numpy")
    problem, engine = PairProblem(pair, 50.0), NumpyTraining()
    parameters: Any = {name: array.astype(np.float64) for name, array in problem.parameters().items()}
    options, batch = PassOptions(KeyedDropout(7, 1)), batch_of()
    _, gradients = problem.gradients(parameters, batch, options, engine)
    assert gradients.keys() == parameters.keys()
    random = np.random.default_rng(0)
    for name, gradient in gradients.items():
        direction = random.standard_normal(gradient.shape)
        values = []
        for sign in (1, -1):
            moved = {**parameters, name: parameters[name] + sign * 1e-6 * direction}
            values.append(problem.gradients(moved, batch, options, LossOnly())[0])
        expected = (values[0] - values[1]) / 2e-6
        assert (gradient * direction).sum() == pytest.approx(expected, rel=1e-3, abs=1e-4), name


def test_both_engines_have_the_same_gradients() -> None:
    pair = new_pair(config(initializer_range=0.3), seed=3)
    problem, batch, options = PairProblem(pair, 50.0), batch_of(), PassOptions(KeyedDropout(7, 1))
    parameters = problem.parameters()
    one, expected = problem.gradients(parameters, batch, options, NumpyTraining())
    other, found = problem.gradients(parameters, batch, options, RustTraining(threads=2))
    assert one == pytest.approx(other, abs=1e-4)
    largest = max(float(np.abs(g).max()) for g in expected.values())
    for name, gradient in expected.items():
        assert np.abs(found[name] - gradient).max() <= 1e-5 * largest, name


def test_the_loss_is_that_of_the_models_calls() -> None:
    pair = new_pair(without_dropout(), seed=3)
    problem, batch, key = PairProblem(pair, 50.0), batch_of(), KeyedDropout(11, 2)
    loss, _ = problem.gradients(problem.parameters(), batch, PassOptions(key), RustTraining())
    first: Any = pair.generator(**batch)
    places = np.nonzero(batch["labels"] != IGNORED)
    ids = sampled(first.logits[places], key.uniform("sample", *places))
    original = np.where(batch["labels"] == IGNORED, batch["input_ids"], batch["labels"])
    corrupted = original.copy()
    corrupted[places] = ids
    second: Any = pair.discriminator(
        corrupted, batch["attention_mask"], batch["token_type_ids"], labels=(corrupted != original).astype(int)
    )
    assert loss == pytest.approx(float(first.loss) + 50 * float(second.loss), rel=1e-5)
    assert (corrupted != original).any()


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(1, 6))
def test_tokens_are_drawn_from_the_softmax(seed: int, size: int) -> None:
    random = np.random.default_rng(seed)
    logits = (3 * random.standard_normal(size)).astype(np.float32)
    p = np.exp(logits.astype(np.float64)) / np.exp(logits.astype(np.float64)).sum()
    n = 4000
    found = sampled(np.tile(logits, (n, 1)), (np.arange(n) + 0.5) / n)
    shares = np.bincount(found, minlength=size) / n
    assert np.abs(shares - p).max() <= 1.01 / n
    assert (np.diff(found) >= 0).all()


def test_draws_are_a_function_of_row_and_place() -> None:
    rows, places = np.repeat(np.arange(40), 50), np.tile(np.arange(50), 40)
    numbers = KeyedDropout(1, 2, 3).uniform("sample", rows, places)
    assert ((numbers >= 0) & (numbers < 1)).all()
    assert abs(numbers.mean() - 0.5) < 4 * (1 / 12 / len(numbers)) ** 0.5
    assert len(np.unique(numbers)) == len(numbers)
    part = KeyedDropout(1, 2, 3).uniform("sample", rows[77:99], places[77:99])
    np.testing.assert_array_equal(part, numbers[77:99])
    for other in (KeyedDropout(2, 2, 3), KeyedDropout(1, 3, 3), KeyedDropout(1, 2, 4)):
        assert not np.array_equal(other.uniform("sample", rows, places), numbers)
    assert KeyedDropout(1, 2, 3).of_part("generator").key[0] not in (0, 1)


def test_sizes_of_a_generator() -> None:
    base = ElectraConfig(vocab_size=9, hidden_size=768, num_attention_heads=12, intermediate_size=3072)
    small = generator_config(base)
    assert (small.hidden_size, small.num_attention_heads, small.intermediate_size) == (192, 3, 768)
    assert (small.num_hidden_layers, small.embedding_size) == (base.num_hidden_layers, base.embedding_size)
    least = generator_config(ElectraConfig(vocab_size=9, hidden_size=32, num_attention_heads=2))
    assert (least.hidden_size, least.num_attention_heads) == (16, 1)


def test_embeddings_are_shared_and_stay_so(tmp_path: Path) -> None:
    pair = new_pair(config(), seed=1)
    problem = PairProblem(pair, 50.0)
    names = problem.parameters().keys()
    shared = [name for name in names if name.startswith("electra.embeddings.")]
    assert len(shared) == 5  # three tables and the norm
    assert not any(name.startswith("generator.electra.embeddings.") for name in names)
    assert "generator.electra.embeddings_project.weight" in names
    trainer = PretrainingTrainer(
        pair, TrainingArguments(tmp_path, learning_rate=1e-2, save_strategy="no"), objective="replaced-tokens"
    )
    before = {name: array.copy() for name, array in pair.discriminator.named_parameters()}
    trainer.training_step([batch_of(1), batch_of(2)])
    generator = dict(trainer.model.generator.named_parameters())
    discriminator = dict(trainer.model.discriminator.named_parameters())
    for name in shared:
        np.testing.assert_array_equal(generator[name], discriminator[name])
        assert not np.array_equal(discriminator[name], before[name]), name
    assert all((array == before[name]).all() for name, array in pair.discriminator.named_parameters())


def test_frozen_parts_stay(tmp_path: Path) -> None:
    pair = new_pair(config(), seed=1)
    settings_ = TrainingArguments(tmp_path, save_strategy="no", freeze=("generator", "electra.embeddings"))
    trainer = PretrainingTrainer(pair, settings_, objective="replaced-tokens")
    trainer.training_step([batch_of(1)])
    for name, array in trainer.model.generator.named_parameters():
        np.testing.assert_array_equal(array, dict(pair.generator.named_parameters())[name])
    after = dict(trainer.model.discriminator.named_parameters())
    moved = {name for name, array in pair.discriminator.named_parameters() if not np.array_equal(after[name], array)}
    assert not any("electra.embeddings." in name for name in moved)
    assert any("encoder.layer.0" in name for name in moved)


# --- on a corpus


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("replaced")
    text = write_corpus(path / "text.txt", 60)
    assert main(["train", str(text), "-o", str(path / "vocab.txt"), "--vocab-size", "120", "-q"]) == 0
    tok = wb.Tokenizer.from_vocab(path / "vocab.txt")
    store = build_token_store(tok, text, path / "store")
    build_examples(store, path / "pairs", tok, max_length=32)
    return path


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> wb.Tokenizer:
    return wb.Tokenizer.from_vocab(folder / "vocab.txt")


def rows_of(folder: Path, tokenizer: wb.Tokenizer, numbers: Any = None) -> PretrainingRows:
    return PretrainingRows(PretrainingDataset(folder / "pairs", masking=Masking(tokenizer), seed=3), numbers)


def test_a_pair_learns_and_its_evaluation_is_exact(folder: Path, tokenizer: wb.Tokenizer, tmp_path: Path) -> None:
    args = TrainingArguments(
        tmp_path, per_device_train_batch_size=16, learning_rate=3e-3, max_steps=60, save_strategy="no"
    )
    pair = new_pair(config(len(tokenizer)), seed=1)
    held = rows_of(folder, tokenizer, np.arange(24))
    trainer = PretrainingTrainer(pair, args, rows_of(folder, tokenizer), held, objective="replaced-tokens")
    before = trainer.evaluate()
    assert trainer.evaluate() == before
    trainer.train()
    after = trainer.evaluate()
    assert after["eval_loss"] < before["eval_loss"]
    assert after["eval_mlm_loss"] < before["eval_mlm_loss"]
    assert after["eval_loss"] == pytest.approx(after["eval_mlm_loss"] + 50 * after["eval_replaced_loss"])
    batch = held.dataset.batch(range(24))
    inputs = batch["attention_mask"], batch["token_type_ids"]
    model = trainer.model
    places = np.nonzero(batch["labels"] != IGNORED)
    ids = sampled(
        model.generator(batch["input_ids"], *inputs).logits[places],
        KeyedDropout(args.seed, 0).uniform("sample", *places),
    )
    original = np.where(batch["labels"] == IGNORED, batch["input_ids"], batch["labels"])
    corrupted = original.copy()
    corrupted[places] = ids
    visible = batch["attention_mask"] > 0
    found = model.discriminator(corrupted, *inputs).logits[visible] > 0
    right = (corrupted != original)[visible]
    assert after["eval_replaced_accuracy"] == pytest.approx(metrics.accuracy(found, right))
    assert after["eval_replaced_f1"] == pytest.approx(metrics.f1(found, right))
    with pytest.raises(InputError, match="ElectraPair"):
        trainer.predict(held)


def test_a_resumed_training_has_the_same_bits(folder: Path, tokenizer: wb.Tokenizer, tmp_path: Path) -> None:
    args = TrainingArguments(tmp_path / "run", per_device_train_batch_size=8, max_steps=6, save_steps=3)
    whole = PretrainingTrainer(
        new_pair(config(len(tokenizer))), args, rows_of(folder, tokenizer), objective="replaced-tokens"
    )
    whole.train()
    part = PretrainingTrainer.from_checkpoint(
        tmp_path / "run" / "checkpoint-3",
        new_pair(config(len(tokenizer)), seed=9),
        args,
        rows_of(folder, tokenizer),
        objective="replaced-tokens",
    )
    assert part.global_step == 3
    part.train()
    for kind in ("generator", "discriminator"):
        expected = dict(getattr(whole.model, kind).named_parameters())
        for name, array in getattr(part.model, kind).named_parameters():
            np.testing.assert_array_equal(array, expected[name])
    checkpoint = tmp_path / "run" / "checkpoint-6"
    saved = ElectraPair.from_pretrained(checkpoint)
    for name, array in saved.generator.named_parameters():
        np.testing.assert_array_equal(array, dict(whole.model.generator.named_parameters())[name])
    with pytest.raises(CheckpointError, match="hidden_size"):
        PretrainingTrainer.from_checkpoint(
            checkpoint,
            ElectraPair(
                ElectraForMaskedLM.from_pretrained(checkpoint / "generator"),
                new_pair(ElectraConfig(vocab_size=len(tokenizer), **{**SIZES, "hidden_size": 32})).discriminator,
            ),
            args,
            rows_of(folder, tokenizer),
            objective="replaced-tokens",
        )


def command(folder: Path, output: Path, *more: str) -> list[str]:
    sizes = ["--hidden-size", "16", "--layers", "1", "--heads", "2", "--batch-size", "8"]
    own = [] if "-m" in more else sizes
    base = ["pretrain", str(folder / "pairs"), "-o", str(output), "-v", str(folder / "vocab.txt")]
    return [*base, "--objective", "replaced-tokens", *own, *more]


def test_the_command_writes_both_models(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = ["--max-steps", "6", "--eval-steps", "3", "--save-steps", "3"]
    assert main(command(folder, tmp_path / "model", *steps, "--json")) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [entry["step"] for entry in printed["evaluations"]] == [3, 6]
    assert "eval_replaced_accuracy" in printed["evaluations"][0]
    assert type(AutoModel.from_pretrained(tmp_path / "model")) is ElectraForPreTraining
    generator = ElectraForMaskedLM.from_pretrained(tmp_path / "model" / "generator")
    assert generator.config.architectures == ("ElectraForMaskedLM",)
    assert generator.config.hidden_size == 8
    assert generator.config.embedding_size == 16
    assert len(wb.Tokenizer.from_pretrained(tmp_path / "model")) == generator.config.vocab_size
    assert "eval_replaced_f1" in (tmp_path / "model" / "training_curve.svg").read_text()
    # What was interrupted resumes with the same bytes.
    assert main(command(folder, tmp_path / "part", "--max-steps", "6", *steps[2:], "-q")) == 0
    whole = (tmp_path / "model" / "generator" / "model.safetensors").read_bytes()
    assert (tmp_path / "part" / "generator" / "model.safetensors").read_bytes() == whole
    # From this pair on, and from an ELECTRA without a generator.
    more = ["-m", str(tmp_path / "model"), "--max-steps", "1"]
    assert main(command(folder, tmp_path / "more", *more)) == 0
    assert "F1 of replaced ones" in capsys.readouterr().err
    loaded = ElectraPair.from_pretrained(tmp_path / "more")
    assert loaded.generator.config.hidden_size == 8
    AutoModel.from_pretrained(tmp_path / "more").save_pretrained(tmp_path / "alone")
    drawn = ElectraPair.from_pretrained(tmp_path / "alone")
    words = "electra.embeddings.word_embeddings.weight"
    one, other = (dict(model.named_parameters())[words] for model in (drawn.generator, drawn.discriminator))
    np.testing.assert_array_equal(one, other)


def test_what_is_no_pair_is_refused(
    folder: Path, tokenizer: wb.Tokenizer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = TrainingArguments(tmp_path)
    pair = new_pair(config(len(tokenizer)))
    with pytest.raises(ConfigError, match="replaced tokens need an ElectraPair, not ElectraForMaskedLM"):
        PretrainingTrainer(pair.generator, args, objective="replaced-tokens")
    with pytest.raises(ConfigError, match="ElectraPair has no head for masked tokens"):
        PretrainingTrainer(pair, args)
    with pytest.raises(ConfigError, match="the generator must be ElectraForMaskedLM, not ElectraForPreTraining"):
        ElectraPair(pair.discriminator, pair.discriminator)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="embedding_size is 8 for the generator and 12 for the discriminator"):
        new_pair(config(), ElectraConfig(vocab_size=40, **{**SIZES, "embedding_size": 8}))
    with pytest.raises(InputError, match="objective is 'replaced'; those that read examples are masked-tokens, repl"):
        PretrainingTrainer(pair, args, objective="replaced")
    with pytest.raises(InputError, match="tokenizer of"):
        PretrainingTrainer(new_pair(config(20)), args, rows_of(folder, tokenizer), objective="replaced-tokens")
    words = tiny_models.make_words(tmp_path / "words")
    assert main(command(folder, tmp_path / "out", "-m", str(words), "--max-steps", "1")) == 2
    assert "replaced tokens are detected by an ELECTRA, not by a model of type 'bert'" in capsys.readouterr().err
