"""Replaced-token detection beside transformers' two models of ELECTRA. Skipped if torch is not installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test_replaced_tokens import batch_of, config, without_dropout
from wordpiece_bert._internal.ignored_label import IGNORED
from wordpiece_bert.finetune import PretrainingTrainer, TrainingArguments
from wordpiece_bert.finetune.dropout import KeyedDropout
from wordpiece_bert.finetune.engines import RustTraining
from wordpiece_bert.finetune.objectives import new_pair
from wordpiece_bert.finetune.objectives.replaced_tokens import PairProblem, sampled
from wordpiece_bert.finetune.passes import PassOptions

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
transformers: Any = pytest.importorskip("transformers", reason="transformers is not installed: make test-torch")

torch.set_num_threads(1)

# The warnings of these packages are not errors of these tests.
pytestmark = pytest.mark.filterwarnings("ignore")


def theirs(folder: Path) -> tuple[Any, Any]:
    """Their generator and discriminator of a folder that was saved here, with one module of embeddings."""
    discriminator = transformers.ElectraForPreTraining.from_pretrained(folder).double().eval()
    generator = transformers.ElectraForMaskedLM.from_pretrained(folder / "generator").double().eval()
    generator.electra.embeddings = discriminator.electra.embeddings
    generator.generator_lm_head.weight = discriminator.electra.embeddings.word_embeddings.weight
    return generator, discriminator


def their_loss(generator: Any, discriminator: Any, batch: dict[str, Any], key: KeyedDropout) -> Any:
    """L_generator + 50 · L_discriminator, with the tokens drawn from their logits by the numbers of our generator."""
    tensors = {name: torch.from_numpy(np.asarray(value, np.int64)) for name, value in batch.items()}
    first = generator(**tensors)
    places = np.nonzero(batch["labels"] != IGNORED)
    ids = sampled(first.logits.detach().numpy()[places], key.uniform("sample", *places))
    original = np.where(batch["labels"] == IGNORED, batch["input_ids"], batch["labels"])
    corrupted = original.copy()
    corrupted[places] = ids
    tensors["input_ids"] = torch.from_numpy(corrupted)
    second = discriminator(**tensors | {"labels": torch.from_numpy(np.int64(corrupted != original))})
    return first.loss + 50 * second.loss


def save(pair: Any, folder: Path) -> None:
    args = TrainingArguments(folder / "run", save_strategy="no")
    PretrainingTrainer(pair, args, objective="replaced-tokens").save_model(folder)


def test_loss_and_gradients_are_those_of_transformers(tmp_path: Path) -> None:
    pair, batch, key = new_pair(without_dropout(), seed=3), batch_of(), KeyedDropout(11, 2)
    save(pair, tmp_path)
    generator, discriminator = theirs(tmp_path)
    problem = PairProblem(pair, 50.0)
    found, gradients = problem.gradients(problem.parameters(), batch, PassOptions(key), RustTraining())
    loss = their_loss(generator, discriminator, batch, key)
    loss.backward()
    assert found == pytest.approx(float(loss), rel=1e-5)
    expected = {f"generator.{name}": one.grad for name, one in generator.named_parameters()}
    expected |= {name: one.grad for name, one in discriminator.named_parameters()}
    largest = max(float(np.abs(g).max()) for g in gradients.values())
    compared = {name for name in gradients if expected.get(name) is not None}
    assert compared == set(gradients)
    for name, gradient in gradients.items():
        limit = 1e-5 * (float(expected[name].abs().max()) + 0.05 * largest)
        assert float(np.abs(gradient - expected[name].numpy()).max()) <= limit, name


def test_steps_are_those_of_torch(tmp_path: Path) -> None:
    pair = new_pair(without_dropout(), seed=4)
    save(pair, tmp_path)
    generator, discriminator = theirs(tmp_path)
    args = TrainingArguments(
        tmp_path, learning_rate=1e-3, max_steps=8, save_strategy="no", lr_scheduler_type="constant", weight_decay=0
    )
    trainer = PretrainingTrainer(pair, args, objective="replaced-tokens")
    parameters = [*dict.fromkeys([*generator.parameters(), *discriminator.parameters()])]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.0)
    for step in range(8):
        batch = batch_of(step)
        found = trainer.training_step([batch])
        loss = their_loss(generator, discriminator, batch, KeyedDropout(args.seed, step))
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        assert found.loss == pytest.approx(float(loss), rel=1e-4)
        assert found.grad_norm == pytest.approx(float(norm), rel=1e-4)


def test_what_is_saved_is_loaded_by_transformers(tmp_path: Path) -> None:
    pair = new_pair(config(), seed=5)
    args = TrainingArguments(tmp_path / "run", learning_rate=1e-3, save_strategy="no")
    trainer = PretrainingTrainer(pair, args, objective="replaced-tokens")
    trainer.training_step([batch_of(1)])
    trainer.save_model(tmp_path / "saved")
    model, batch = trainer.model, batch_of(2)
    del batch["labels"]
    tensors = {name: torch.from_numpy(np.asarray(value, np.int64)) for name, value in batch.items()}
    for loader, folder, own in (
        ("AutoModelForPreTraining", tmp_path / "saved", model.discriminator),
        ("AutoModelForMaskedLM", tmp_path / "saved" / "generator", model.generator),
    ):
        loaded = getattr(transformers, loader).from_pretrained(folder).eval()
        with torch.no_grad():
            expected = loaded(**tensors).logits.numpy()
        np.testing.assert_allclose(own(**batch).logits, expected, rtol=0, atol=2e-5)
