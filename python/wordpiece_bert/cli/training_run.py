"""What ``finetune`` and ``pretrain`` share: checkpoints, the log, and the line at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from wordpiece_bert.cli.messages import print_summary, print_warning
from wordpiece_bert.cli.training_options import settings_of
from wordpiece_bert.finetune import TrainingArguments, checkpoints

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from wordpiece_bert.finetune import TrainOutput
    from wordpiece_bert.finetune.loop import TrainingLoop


def checkpoints_of(options: argparse.Namespace) -> Path:
    """Return the folder of the checkpoints."""
    folder: Path = options.output / "checkpoints"
    return folder


def log_of(options: argparse.Namespace) -> Path:
    """Return the file to which the history is written as it grows."""
    file: Path = options.output / "training_log.jsonl"
    return file


def arguments_of(
    options: argparse.Namespace, *, evaluated: bool, sampling: Literal["random", "group_by_length"] = "random"
) -> TrainingArguments:
    """Return the settings of a training; steps that are not given follow the epochs."""
    return TrainingArguments(
        checkpoints_of(options),
        train_sampling_strategy=sampling,
        eval_strategy=("steps" if options.eval_steps else "epoch") if evaluated else "no",
        save_strategy="steps" if options.save_steps else "epoch",
        save_total_limit=1,
        show_progress_bar=not options.quiet,
        overwrite_output_dir=options.overwrite,
        log_file=log_of(options),
        **settings_of(options),
    )


def resumes(options: argparse.Namespace) -> bool:
    """Return whether to resume from a checkpoint; to be called before anything is loaded.

    Raises
    ------
    CheckpointError
        The output has checkpoints, and neither ``--resume`` nor ``--overwrite`` says what to do with them.
    """
    folder = checkpoints_of(options)
    if not options.resume:
        if not options.overwrite:
            checkpoints.refuse_existing(folder)
        return False
    if checkpoints.folders(folder):
        return True
    print_warning(f"{folder}: there is no checkpoint to resume from; the training begins")
    return False


def final_evaluation(trainer: TrainingLoop[Any], evaluations: list[dict[str, float]]) -> dict[str, float]:
    """Return the evaluation of the model that is written: the best one with ``--best``, otherwise the last."""
    if trainer.args.load_best_model_at_end:
        best = [entry for entry in evaluations if entry["step"] == trainer.best_step]
        evaluations = best or evaluations
    return evaluations[-1] if evaluations else {}


def best_of(trainer: TrainingLoop[Any]) -> str:
    """Return which step the model that is written is of, for a message; nothing if it is the last."""
    if not trainer.args.load_best_model_at_end or trainer.best_step is None:
        return ""
    return f"; the best model is of step {trainer.best_step:,}"


def print_training(
    options: argparse.Namespace,
    result: TrainOutput,
    evaluations: list[dict[str, float]],
    shown: str,
    curve: Path,
    **facts: Any,
) -> None:
    """Print what a training did; `shown` are its metrics as the end of a message, `facts` what JSON has besides."""
    seconds, loss = result.metrics["train_runtime"], result.training_loss
    if result.metrics["train_steps_per_second"]:
        done = f"{result.global_step:,} steps in {seconds:.0f} s, mean loss {loss:.4f}"
    else:
        done = f"all {result.global_step:,} steps were made before, the last with loss {loss:.4f}"
    facts = {
        "output": str(options.output),
        "steps": result.global_step,
        "loss": loss,
        "seconds": seconds,
        "evaluations": evaluations,
        "log": str(log_of(options)),
        "curve": str(curve),
        **facts,
    }
    print_summary(options, f"{options.output}: {done}{shown}; curve: {curve}", facts)
