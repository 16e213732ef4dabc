"""Fine-tuning by the command: models whose tokenizers are not WordPiece, killed and gone on with; and any naming of files."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny_models
from killed_runs import finish_after_kills
from model_files import MODELS
from wordpiece_bert import tasks
from wordpiece_bert.bert import AutoModel
from wordpiece_bert.bert.family_table import family_of
from wordpiece_bert.cli import main
from wordpiece_bert.finetune import Trainer, TrainingArguments, model_for
from wordpiece_bert.finetune.loop import TrainingLoop

COMMAND = "import sys\nfrom wordpiece_bert.cli import main\nif code := main(sys.argv[1:]):\n    sys.exit(code)"


def table_of(folder: Path) -> str:
    lines = ["text\tlabel", *(f"a fine film {i}\tgood" for i in range(8)), *(f"dull {i}\tbad" for i in range(8))]
    (folder / "table.tsv").write_text("\n".join(lines))
    return str(folder / "table.tsv")


@pytest.mark.parametrize("name", ["rerank_modernbert", "st_deberta", "st_jina", "st_neobert", "st_nomic", "st_gte"])
def test_the_command_trains_a_model_of_any_family(name: str, tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    output, train = str(tmp_path / "trained"), table_of(tmp_path)
    arguments = ["finetune", "--task", "classify", "--model", str(MODELS / name), "--train", train, "-o", output]
    assert main([*arguments, "--epochs", "2", "--batch-size", "4"]) == 0
    found = tasks.classify(output, ["a fine film", "dull"])
    assert {one[0]["label"] for one in found} <= {"good", "bad"}


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["roberta_seqcls", "st_xlmr"])
def test_a_killed_command_goes_on_with_the_same_bits(name: str, tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    model, train = str(MODELS / name), table_of(tmp_path)

    def arguments(folder: str) -> list[str]:
        steps = ["--epochs", "4", "--batch-size", "4", "--save-steps", "1", "--resume", "-q"]
        output = str(tmp_path / folder)
        return [COMMAND, "finetune", "--task", "classify", "--model", model, "--train", train, "-o", output, *steps]

    finish_after_kills(arguments("whole"), arguments("killed"), [0.4, 0.5])
    for file in ("model.safetensors", "config.json", "tokenizer.json"):
        assert (tmp_path / "killed" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes(), file
    found = tasks.classify(tmp_path / "killed", ["a fine film"])
    assert found == tasks.classify(tmp_path / "whole", ["a fine film"])


@pytest.mark.parametrize(
    ("number", "status", "said"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "ended by SIGTERM")]
)
def test_an_interrupted_command_names_the_checkpoint_that_it_keeps(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: int,
    status: int,
    said: str,
) -> None:
    train = table_of(tmp_path)
    monkeypatch.chdir(tmp_path)
    model = [
        "--model",
        str(tiny_models.make_sentences(tmp_path / "sentences")),
        "--train",
        train,
        "-o",
        "out",
        "--task",
        "classify",
    ]
    command = ["finetune", *model, "--epochs", "2", "--batch-size", "4", "--save-steps", "2", "-q"]

    def interrupted_at(last: int, *more: str) -> str:
        made = TrainingLoop.training_step

        def training_step(self: Any, batches: Any) -> Any:
            found = made(self, batches)
            if self.global_step == last:
                signal.raise_signal(number)
            return found

        with monkeypatch.context() as context:
            context.setattr(TrainingLoop, "training_step", training_step)
            assert main([*command, *more]) == status
        return capsys.readouterr().err

    nothing = "no checkpoint was complete yet, so that nothing of the training is kept in out/checkpoints; run it again"
    assert interrupted_at(2) == f"wordpiece-bert: {said}: {nothing}\n"  # before the step is saved
    for step, kept in ((5, 4), (6, 4), (8, 6)):
        more = ["--resume"] * (step > 5)
        assert interrupted_at(step, *more) == (
            f"wordpiece-bert: {said}: out/checkpoints/checkpoint-{kept} is kept; go on from there with --resume\n"
        )
    assert main([*command, "--resume"]) == 0
    assert (tmp_path / "out" / "model.safetensors").is_file()


def test_an_interrupted_trainer_says_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = model_for(MODELS / "bert_small", "SequenceClassification", labels=["bad", "good"])
    rows = [{"input_ids": [2, 5 + n, 3], "labels": n % 2} for n in range(8)]

    def note(save: str, resumed: Path | None = None) -> str:
        settings: Any = {"save_strategy": save, "save_steps": 1, "per_device_train_batch_size": 4}
        output = tmp_path / ("again" if resumed else save)
        trainer = Trainer(model, TrainingArguments(output, **settings, show_progress_bar=False), rows)
        step = trainer.training_step

        def training_step(batches: Any) -> Any:
            if trainer.global_step == 2:
                raise KeyboardInterrupt
            return step(batches)

        monkeypatch.setattr(trainer, "training_step", training_step)
        with pytest.raises(KeyboardInterrupt) as caught:
            trainer.train(resume_from_checkpoint=resumed)
        [found] = caught.value.__notes__
        return found

    assert note("no") == "nothing of 2 steps is kept, as save_strategy is 'no'"
    kept = tmp_path / "steps" / "checkpoint-2"
    assert note("steps") == f"{kept} is kept; go on from there with resume_from_checkpoint=True"
    assert note("steps", kept) == f"{kept} is kept; go on from there with resume_from_checkpoint={str(kept)!r}"


#: Files with the names that programs gave to weights over the years, joined tensors, and forms that only names tell.
FILES = ("variant_original_names", "gte_old_names", "nomic_old_config", "jina_qk_norm", "neobert_model", "st_roberta")


@pytest.mark.parametrize("name", FILES)
def test_a_head_is_put_on_the_encoder_of_any_file(name: str) -> None:
    base: Any = AutoModel.base_from_pretrained(MODELS / name, "numpy")
    ids = [[2, 7, 9, 3]]
    expected = base(ids).last_hidden_state
    for kind in {"MaskedLM", "SequenceClassification"} & set(family_of(base.config).heads):
        labels = None if kind == "MaskedLM" else ["good", "fair", "bad"]
        model: Any = model_for(MODELS / name, kind, labels=labels, backend="numpy")  # type: ignore[arg-type]
        np.testing.assert_array_equal(model.base_model(ids).last_hidden_state, expected)
        assert np.isfinite(model(ids).logits).all()
