"""Pre-training: the losses of torch, masks by epoch, held-out rows, evaluation, and resumption after kill -9."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wordpiece_bert as wb
from small_corpus import write_corpus
from wordpiece_bert._internal.ignored_label import IGNORED
from wordpiece_bert._internal.progress import Progress, lines_every
from wordpiece_bert.bert import (
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    DPRConfig,
    ElectraConfig,
    ErnieConfig,
    ModernBertConfig,
    ModernBertForMaskedLM,
    RobertaConfig,
)
from wordpiece_bert.cli import main
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.finetune import (
    PretrainingRows,
    PretrainingTrainer,
    Trainer,
    TrainingArguments,
    held_out_rows,
    new_model,
)
from wordpiece_bert.pretraining import Masking, PretrainingDataset, build_examples, build_token_store

CURVE = Path(__file__).parent / "data" / "training" / "mlm_curve.npz"
SIZES: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vocabulary, a token store, and examples of pairs (two passes) and of sentences."""
    path = tmp_path_factory.mktemp("pretrain")
    text = write_corpus(path / "text.txt", 120)
    assert main(["train", str(text), "-o", str(path / "vocab.txt"), "--vocab-size", "120", "-q"]) == 0
    tok = wb.Tokenizer.from_vocab(path / "vocab.txt")
    store = build_token_store(tok, text, path / "store")
    build_examples(store, path / "pairs", tok, max_length=32, dupe_factor=2)
    build_examples(store, path / "sentences", tok, max_length=32, objective="full-sentences")
    return path


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> wb.Tokenizer:
    return wb.Tokenizer.from_vocab(folder / "vocab.txt")


def rows_of(folder: Path, tokenizer: wb.Tokenizer, name: str = "pairs") -> PretrainingDataset:
    return PretrainingDataset(folder / name, masking=Masking(tokenizer), seed=3)


def small(tokenizer: wb.Tokenizer, *, pairs: bool = True) -> Any:
    return new_model(BertConfig(vocab_size=len(tokenizer), **SIZES), pairs=pairs, seed=1)


def arguments(folder: Path, **given: Any) -> TrainingArguments:
    return TrainingArguments(folder, per_device_train_batch_size=8, learning_rate=1e-3, **given)


def test_losses_follow_torch(tmp_path: Path) -> None:
    config = BertConfig(
        vocab_size=4000,
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=512,
        max_position_embeddings=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    rng = np.random.default_rng(12345)
    weights = {}
    for name, array in sorted(new_model(config, pairs=False).named_parameters()):
        plain = np.zeros(array.shape) if name.endswith("bias") else np.ones(array.shape)
        drawn = name.endswith("weight") and "LayerNorm" not in name
        weights[name] = np.float32(rng.standard_normal(array.shape, np.float32) * np.float32(0.02) if drawn else plain)
    settings = TrainingArguments(tmp_path, learning_rate=1e-3, max_steps=200, warmup_steps=20)
    trainer = PretrainingTrainer(BertForMaskedLM(config, weights), settings)
    with np.load(CURVE) as data:
        ids = data["input_ids"].astype(np.int64)
        labels = np.full(ids.shape, IGNORED)
        labels[np.unpackbits(data["chosen"])[: ids.size].reshape(ids.shape) == 1] = data["labels"]
        for i in range(len(ids)):
            step = trainer.training_step([{"input_ids": ids[i], "labels": labels[i]}])
            assert step.loss == pytest.approx(data["loss"][i], abs=1e-4)
            assert step.grad_norm == pytest.approx(data["grad_norm"][i], rel=1e-4)


def test_new_weights_are_those_of_bert(tokenizer: wb.Tokenizer) -> None:
    config = BertConfig(vocab_size=5000, **{**SIZES, "hidden_size": 64}, pad_token_id=3, initializer_range=0.05)
    model = new_model(config, pairs=True, seed=7)
    assert isinstance(model, BertForPreTraining)
    weights = dict(model.named_parameters())
    words = weights["bert.embeddings.word_embeddings.weight"]
    assert not words[3].any()
    assert np.delete(words, 3, 0).std() == pytest.approx(0.05, rel=0.01)
    for name, array in weights.items():
        if name.endswith("bias"):
            assert not array.any(), name
        elif "LayerNorm" in name:
            assert (array == 1).all(), name
        else:
            assert array.std() == pytest.approx(0.05, rel=0.2), name
    again = dict(new_model(config, pairs=True, seed=7).named_parameters())
    assert all((again[name] == array).all() for name, array in weights.items())
    other = dict(new_model(config, pairs=True, seed=8).named_parameters())
    assert not (other["bert.embeddings.word_embeddings.weight"] == words).all()
    assert isinstance(small(tokenizer, pairs=False), BertForMaskedLM)


def test_the_last_rows_of_each_pass_are_held_out(folder: Path, tokenizer: wb.Tokenizer) -> None:
    dataset = rows_of(folder, tokenizer)
    first = dataset._shards[0]["rows"]
    train, held = held_out_rows(dataset, 0.1)
    a, b = math.ceil(0.1 * first), math.ceil(0.1 * (len(dataset) - first))
    assert held.tolist() == [*range(first - a, first), *range(len(dataset) - b, len(dataset))]
    assert sorted([*train, *held]) == list(range(len(dataset)))
    assert len(held_out_rows(dataset, 0.0)[1]) == 0
    with pytest.raises(InputError, match="leaves none to train on"):
        held_out_rows(dataset, 1.0)


def test_masks_change_with_the_epoch_and_the_held_out_ones_do_not(
    folder: Path, tokenizer: wb.Tokenizer, tmp_path: Path
) -> None:
    dataset = rows_of(folder, tokenizer, "sentences")
    held = PretrainingRows(rows_of(folder, tokenizer, "sentences"), np.arange(3))
    seen: list[tuple[int, Any]] = []

    class Watched(PretrainingTrainer):
        def _batch(self, rows: Any) -> Any:
            batch = super()._batch(rows)
            seen.append((self.train_dataset.dataset.epoch, np.asarray(batch["labels"])))  # type: ignore[union-attr]
            return batch

    steps = math.ceil(len(dataset) / 8)
    settings = arguments(tmp_path, num_train_epochs=2, save_strategy="no", train_sampling_strategy="sequential")
    trainer = Watched(small(tokenizer, pairs=False), settings, PretrainingRows(dataset), held)
    before = trainer.evaluate()
    trainer.train()
    assert [epoch for epoch, _ in seen] == [0] * steps + [1] * steps
    assert not np.array_equal(seen[0][1], seen[steps][1])
    dataset.set_epoch(1)
    np.testing.assert_array_equal(seen[steps][1], dataset.batch(range(8))["labels"])
    fresh = PretrainingTrainer(small(tokenizer, pairs=False), settings, PretrainingRows(dataset), held)
    assert fresh.evaluate() == before


@pytest.mark.parametrize("name", ["pairs", "sentences"])
def test_the_evaluation_is_the_loss_of_the_model(
    name: str, folder: Path, tokenizer: wb.Tokenizer, tmp_path: Path
) -> None:
    pairs = name == "pairs"
    dataset = rows_of(folder, tokenizer, name)
    rows = PretrainingRows(dataset, np.arange(24))
    trainer = PretrainingTrainer(small(tokenizer, pairs=pairs), arguments(tmp_path), eval_dataset=rows)
    found = trainer.evaluate()
    batch = dataset.batch(range(24))
    out: Any = trainer.model(**batch)
    assert found["eval_loss"] == pytest.approx(float(out.loss), rel=1e-5)
    assert found["eval_perplexity"] == pytest.approx(math.exp(found["eval_mlm_loss"]))
    chosen = batch["labels"] != IGNORED
    words = out.prediction_logits if pairs else out.logits
    assert found["eval_mlm_accuracy"] == np.mean(words[chosen].argmax(-1) == batch["labels"][chosen])
    if pairs:
        right = out.seq_relationship_logits.argmax(-1) == batch["next_sentence_label"]
        assert found["eval_pair_accuracy"] == right.mean()
    assert ("eval_pair_loss" in found) == pairs


def test_what_does_not_fit_is_refused(folder: Path, tokenizer: wb.Tokenizer, tmp_path: Path) -> None:
    settings = arguments(tmp_path)
    rows = PretrainingRows(rows_of(folder, tokenizer))
    with pytest.raises(InputError, match="its rows are not masked"):
        PretrainingRows(PretrainingDataset(folder / "pairs"))
    build_examples(folder / "store", tmp_path / "packed", tokenizer, max_length=32, packing=64)
    with pytest.raises(InputError, match="its rows are packed"):
        PretrainingRows(PretrainingDataset(tmp_path / "packed", masking=Masking(tokenizer)))
    narrow = {**SIZES, "max_position_embeddings": 16}
    with pytest.raises(InputError, match="rows have up to 32 tokens, the model's at most 16"):
        PretrainingTrainer(new_model(BertConfig(vocab_size=120, **narrow), pairs=True), settings, rows)
    with pytest.raises(InputError, match=r"tokenizer of \d+ tokens, but the model has 20"):
        PretrainingTrainer(new_model(BertConfig(vocab_size=20, **SIZES), pairs=True), settings, rows)
    sentences = PretrainingRows(rows_of(folder, tokenizer, "sentences"))
    with pytest.raises(InputError, match="without labels of pairs"):
        PretrainingTrainer(small(tokenizer), settings, sentences)
    with pytest.raises(InputError, match="eval_dataset must be a PretrainingRows, not PretrainingDataset"):
        PretrainingTrainer(small(tokenizer), settings, eval_dataset=rows.dataset)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="no head for masked tokens"):
        PretrainingTrainer(wb.BertModel.from_pretrained("minilm"), settings)
    with pytest.raises(InputError, match="nothing to evaluate"):
        PretrainingTrainer(small(tokenizer), settings, rows).evaluate()


def test_any_trainer_takes_a_data_set(folder: Path, tokenizer: wb.Tokenizer, tmp_path: Path) -> None:
    dataset = rows_of(folder, tokenizer)
    trainer = Trainer(
        small(tokenizer), arguments(tmp_path, max_steps=2, save_strategy="no"), dataset, data_collator=dataset.collate
    )
    own = PretrainingTrainer(
        small(tokenizer), arguments(tmp_path, max_steps=2, save_strategy="no"), PretrainingRows(dataset)
    )
    assert trainer.train().training_loss == own.train().training_loss


def test_a_trainer_is_restored_from_a_checkpoint(folder: Path, tokenizer: wb.Tokenizer, tmp_path: Path) -> None:
    def rows() -> PretrainingRows:
        return PretrainingRows(rows_of(folder, tokenizer))

    settings = arguments(tmp_path, max_steps=6, save_steps=3)
    whole = PretrainingTrainer(small(tokenizer), settings, rows())
    whole.train()
    part = PretrainingTrainer.from_checkpoint(tmp_path / "checkpoint-3", small(tokenizer), settings, rows())
    assert part.global_step == 3
    part.train()
    expected = dict(whole.model.named_parameters())
    assert all((array == expected[name]).all() for name, array in part.model.named_parameters())


def command(folder: Path, output: Path, *more: str, data: str = "pairs") -> list[str]:
    sizes = ["--hidden-size", "16", "--layers", "1", "--heads", "2", "--batch-size", "8"]
    return ["pretrain", str(folder / data), "-o", str(output), "-v", str(folder / "vocab.txt"), *sizes, *more]


def test_the_command_writes_a_model(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = ["--max-steps", "30", "--eval-steps", "10", "--save-steps", "10", "--learning-rate", "3e-3"]
    assert main(command(folder, tmp_path / "model", *steps, "--json")) == 0
    printed = json.loads(capsys.readouterr().out)
    losses = [entry["eval_loss"] for entry in printed["evaluations"]]
    assert [entry["step"] for entry in printed["evaluations"]] == [10, 20, 30]
    assert losses[-1] < losses[0]
    model = BertForPreTraining.from_pretrained(tmp_path / "model")
    assert model.config.architectures == ("BertForPreTraining",)
    assert len(wb.Tokenizer.from_pretrained(tmp_path / "model")) == model.config.vocab_size
    assert wb.BertModel.from_pretrained(tmp_path / "model").config.hidden_size == 16
    curve = (tmp_path / "model" / "training_curve.svg").read_text()
    assert printed["curve"] == str(tmp_path / "model" / "training_curve.svg")
    log = [json.loads(line) for line in (tmp_path / "model" / "training_log.jsonl").read_text().splitlines()]
    assert [entry for entry in log if "eval_loss" in entry] == printed["evaluations"]
    assert "eval_mlm_accuracy" in curve
    assert "eval_perplexity" not in curve
    # From this checkpoint on, with the other objective.
    again = ["pretrain", str(folder / "sentences"), "-o", str(tmp_path / "more"), "-v", str(folder / "vocab.txt")]
    assert main([*again, "-m", str(tmp_path / "model"), "--max-steps", "2", "--whole-words", "-q"]) == 0
    more = BertForMaskedLM.from_pretrained(tmp_path / "more")
    assert more.config.hidden_size == 16
    (tmp_path / "config.json").write_text(json.dumps({**model.config.to_dict(), "hidden_size": 8}))
    given = ["pretrain", str(folder / "pairs"), "-o", str(tmp_path / "given"), "-v", str(folder / "vocab.txt"), "-q"]
    assert main([*given, "--config", str(tmp_path / "config.json"), "--max-steps", "1", "--eval-share", "0"]) == 0
    assert BertForPreTraining.from_pretrained(tmp_path / "given").config.hidden_size == 8


@pytest.mark.parametrize("data", ["sentences", "pairs"])
def test_the_command_trains_a_model_of_another_family(data: str, folder: Path, tmp_path: Path) -> None:
    """From its configuration, with random weights, and then from the model; labels of pairs are for BERT's head."""
    sizes = SIZES | {"num_hidden_layers": 2, "local_attention": 8, "hidden_act": "silu"}
    vocabulary = len(wb.Tokenizer.from_vocab(folder / "vocab.txt"))
    config = ModernBertConfig(vocab_size=vocabulary, pad_token_id=0, layer_types=("sliding_attention",) * 2, **sizes)
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict()))
    given = ["pretrain", str(folder / data), "-v", str(folder / "vocab.txt"), "-q", "--dropout", "0.1"]
    given += ["--batch-size", "8", "--learning-rate", "3e-3"]
    start = ["--config", str(tmp_path / "config.json"), "-o", str(tmp_path / "model"), "--max-steps", "30"]
    assert main([*given, *start, "--eval-steps", "10"]) == 0
    log = [json.loads(line) for line in (tmp_path / "model" / "training_log.jsonl").read_text().splitlines()]
    losses = [entry["eval_loss"] for entry in log if "eval_loss" in entry]
    assert losses[-1] < losses[0]
    model = ModernBertForMaskedLM.from_pretrained(tmp_path / "model")
    assert (model.config.local_attention, model.config.hidden_dropout_prob) == (8, 0.1)
    assert model.config.embedding_dropout == 0.1
    again = ["-m", str(tmp_path / "model"), "-o", str(tmp_path / "more"), "--max-steps", "2"]
    assert main([*given[:-6], *again]) == 0
    assert ModernBertForMaskedLM.from_pretrained(tmp_path / "more").config.local_attention == 8


def test_heads_for_pairs_are_of_bert_and_ernie() -> None:
    sizes = SIZES | {"vocab_size": 40}
    assert type(new_model(ErnieConfig(**sizes), pairs=True)).__name__ == "ErnieForPreTraining"
    for config in (ElectraConfig(**sizes), RobertaConfig(**sizes)):
        with pytest.raises(ConfigError, match=f"models of type {config.model_type!r} have no head for pairs"):
            new_model(config, pairs=True)
    with pytest.raises(ConfigError, match="models of type 'dpr' have no head for masked tokens"):
        new_model(DPRConfig(**sizes), pairs=False)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--config", "x.json"], "leave them out"),
        (["-v", "minilm"], "was made with another tokenizer"),
        (["--whole-words", "--spans"], "not allowed with"),
        (["--dropout", "2"], "is not a number from 0 to 1"),
        (["--learning-rate", "0"], "is not a number above 0"),
        (["--eval-share", "1"], "leaves none to train on"),
        (["--eval", "nowhere"], "no such folder"),
        (["--eval", "nowhere", "--eval-share", "0.5"], "--eval-share is for rows of DATA"),
    ],
)
def test_mistakes_of_the_command(
    more: list[str], message: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(command(folder, tmp_path / "model", *more))
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


def newest_step(checkpoints: Path) -> int:
    """Return the step of the newest checkpoint; 0 if there is none."""
    return max((int(path.name.rpartition("-")[2]) for path in checkpoints.glob("checkpoint-*")), default=0)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_killed_run_goes_on_bit_for_bit(folder: Path, tmp_path: Path) -> None:
    more = ["--max-steps", "60", "--eval-steps", "20", "--save-steps", "7", "-q"]
    program = [sys.executable, "-m", "wordpiece_bert"]
    subprocess.run([*program, *command(folder, tmp_path / "whole", *more)], check=True)
    saved = tmp_path / "killed" / "checkpoints"
    killed = 0
    for step in (7, 28, 42):
        process = subprocess.Popen([*program, *command(folder, tmp_path / "killed", *more, "--resume")])
        while process.poll() is None and newest_step(saved) < step:
            time.sleep(0.01)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            killed += 1
        process.wait()
    subprocess.run([*program, *command(folder, tmp_path / "killed", *more, "--resume")], check=True)
    assert killed
    for name in ("model.safetensors", "checkpoints/checkpoint-60/training.safetensors"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    history = [
        json.loads((tmp_path / run / "checkpoints" / "checkpoint-60" / "trainer_state.json").read_text())["history"]
        for run in ("killed", "whole")
    ]
    assert history[0] == history[1]


def test_an_interrupted_run_says_what_is_kept(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = command(folder, tmp_path / "out", "--max-steps", "4", "--save-steps", "2", "-q")

    def interrupted_at(last: int) -> str:
        made = PretrainingTrainer.training_step

        def training_step(self: Any, batches: Any) -> Any:
            if self.global_step == last:
                raise KeyboardInterrupt
            return made(self, batches)

        with monkeypatch.context() as context:
            context.setattr(PretrainingTrainer, "training_step", training_step)
            assert main(given) == 130
        return capsys.readouterr().err

    assert f"nothing of the training is kept in {tmp_path / 'out' / 'checkpoints'}; run it again" in interrupted_at(1)
    assert "checkpoint-2 is kept; go on from there with --resume\n" in interrupted_at(3)
    assert main([*given, "--resume"]) == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["-m", "minilm", "--dropout", "0.9"], "--dropout: the sizes and rates are those of minilm"),
        (["--whole-words"], "--whole-words is not for rows that are masked"),
        (["--mask-probability", "0.9"], "--mask-probability is not for rows that are masked"),
    ],
)
def test_options_that_the_data_or_the_model_decide_are_refused(
    more: list[str],
    message: str,
    folder: Path,
    tokenizer: wb.Tokenizer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    masking = None if "-m" in more else Masking(tokenizer)
    build_examples(folder / "store", tmp_path / "rows", tokenizer, max_length=32, masking=masking)
    given = ["pretrain", str(tmp_path / "rows"), "-o", str(tmp_path / "out"), "-v", str(folder / "vocab.txt")]
    assert main([*given, *more]) == 2
    assert message in capsys.readouterr().err


def test_a_resumed_run_of_other_data_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = ["--max-steps", "2", "--save-steps", "1", "-q"]
    assert main(command(folder, tmp_path / "model", *steps)) == 0
    assert main(command(folder, tmp_path / "model", *steps, "--resume", "--eval-share", "0.2")) == 2
    message = capsys.readouterr().err
    assert re.search(r"is of other training data: \d+ rows then, \d+ now", message)
    assert not re.search(r"\b[0-9a-f]{16,}\b", message)
    assert main(command(folder, tmp_path / "model", *steps, "--resume", "--mask-probability", "0.2")) == 2
    assert "rows with other content" in capsys.readouterr().err
    assert main(command(folder, tmp_path / "model", *steps, "--resume", "--accumulation", "2")) == 2
    assert "the checkpoint has --accumulation 1, but this training has 2" in capsys.readouterr().err
    assert main(command(folder, tmp_path / "model", *steps, "--resume", "--hidden-size", "32")) == 2
    assert "hidden_size" in capsys.readouterr().err


def test_a_repeated_run_does_not_overwrite_checkpoints(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = ["--max-steps", "4", "--save-steps", "2"]
    assert main(command(folder, tmp_path / "model", *steps, "--json")) == 0
    first = json.loads(capsys.readouterr().out)
    state = (tmp_path / "model" / "checkpoints" / "checkpoint-4" / "trainer_state.json").read_bytes()
    assert main(command(folder, tmp_path / "model", "--max-steps", "2")) == 2
    message = capsys.readouterr().err
    assert "checkpoint-4" in message
    assert "--resume" in message
    assert "--overwrite" in message
    assert (tmp_path / "model" / "checkpoints" / "checkpoint-4" / "trainer_state.json").read_bytes() == state
    with pytest.raises(SystemExit):
        main(command(folder, tmp_path / "model", *steps, "--resume", "--overwrite"))
    capsys.readouterr()
    # What was finished is finished: the last loss, and no NaN.
    assert main(command(folder, tmp_path / "model", *steps, "--resume", "--json")) == 0
    log = [json.loads(line) for line in (tmp_path / "model" / "training_log.jsonl").read_text().splitlines()]
    again = json.loads(capsys.readouterr().out)
    assert again["loss"] == [entry["loss"] for entry in log if "loss" in entry][-1]
    assert again["evaluations"] == first["evaluations"]
    assert main(command(folder, tmp_path / "model", *steps, "--resume")) == 0
    assert "all 4 steps were made before" in capsys.readouterr().err
    assert main(command(folder, tmp_path / "model", "--max-steps", "2", "--overwrite", "--threads", "1", "-q")) == 0
    assert [path.name for path in (tmp_path / "model" / "checkpoints").iterdir()] == ["checkpoint-2"]


@pytest.mark.parametrize("quiet", [False, True])
def test_progress_is_printed_without_a_terminal(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], quiet: bool
) -> None:
    with lines_every(0):
        more = ["--max-steps", "3", "--batch-size", "8"] + ["-q"] * quiet
        assert main(command(folder, tmp_path / "model", *more)) == 0
    lines = capsys.readouterr().err.splitlines()
    found = [line for line in lines if re.search(r"epoch 0\.\d\d, loss \d+\.\d{4}: .* of 3 steps", line)]
    assert len(found) == (0 if quiet else 3)
    assert not (quiet and lines)


def test_the_speed_of_a_resumed_run_is_its_own() -> None:
    text = Progress(100, "step", done=90)
    text.update(95)
    assert text.text(10.0) == " 95%, 95 of 100 steps, 0.50 steps/s, 0:10 left"
    assert Progress(100, "step", done=90).text(10.0) == " 90%, 90 of 100 steps, 0.00 steps/s, 0:10"
