"""The work of ``wordpiece-bert finetune``; apart from its options, so that ``--help`` needs no NumPy."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from wordpiece_bert._internal.warn import warn
from wordpiece_bert.cli.messages import print_summary, print_verbose, warn_skipped
from wordpiece_bert.cli.training_run import arguments_of, best_of, final_evaluation, print_training, resumes
from wordpiece_bert.errors import InputError, TrainingWarning
from wordpiece_bert.finetune import save_curve
from wordpiece_bert.finetune.objectives import Columns, Tables, objective_class, objectives_for
from wordpiece_bert.finetune.objectives.columns import OPTIONAL_COLUMNS

if TYPE_CHECKING:
    import argparse

    from wordpiece_bert.finetune.objectives import TableObjective


def run(options: argparse.Namespace) -> None:
    """Train, or fit a head on frozen vectors."""
    _refuse_unread(options)
    columns = Columns(
        text=options.text,
        pair=options.pair,
        label=options.label,
        choices=tuple(options.choices.split(",")) if options.choices else Columns().choices,
        answer_start=options.answer_start,
    )
    tables = Tables(
        train=options.train,
        eval=options.eval or None,
        columns=columns,
        max_length=options.max_length,
        errors=options.errors,
    )
    objective = objective_class(options.task, "tables")(tables)
    (_fit_frozen if options.frozen else _train)(options, objective)


def _refuse_unread(options: argparse.Namespace) -> None:
    """Refuse the name of a column that the task does not read."""
    readers = {name: entry.load().optional_columns for name, entry in objectives_for("tables").items()}
    for column in OPTIONAL_COLUMNS:
        if getattr(options, column) is not None and column not in readers[options.task]:
            flag = f"--{column.replace('_', '-')}"
            tasks = _listed([name for name, read in readers.items() if column in read])
            raise InputError(f"{flag} names a column that --task {options.task} does not read, only {tasks}")


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _train(options: argparse.Namespace, objective: TableObjective) -> None:
    """Train, evaluate now and then, and write the folder with its log and curve."""
    settings = arguments_of(options, evaluated=options.eval is not None, sampling="group_by_length")
    resume = resumes(options)
    trainer = objective.trainer(options.model, settings, download=options.download)
    skipped = _warn_skipped(objective)
    print_verbose(options, f"model: {trainer.model}")
    count = len(trainer.train_dataset or ())
    if count < (size := settings.per_device_train_batch_size):
        message = f"{options.train} has {count} rows, fewer than a batch of {size}"
        warn(message, TrainingWarning)
    result = trainer.train(resume_from_checkpoint=resume)
    trainer.save_model(options.output)
    history = trainer.log_history
    curve = save_curve(history, options.output / "training_curve.svg")
    evaluations = [entry for entry in history if any(name.startswith("eval_") for name in entry)]
    final = final_evaluation(trainer, evaluations)
    shown = _shown({name[5:]: value for name, value in final.items() if name.startswith("eval_")})
    print_training(options, result, evaluations, best_of(trainer) + shown, curve, skipped=skipped)


def _warn_skipped(objective: TableObjective) -> int:
    """Warn about the rows of the tables that were left out, and return how many there are."""
    reasons = [reason for some in objective.skipped.values() for reason in some]
    warn_skipped(len(reasons), reasons, "row")
    return len(reasons)


def _shown(found: dict[str, float]) -> str:
    """Return metrics as the end of a message, or nothing; metrics of single labels after the others."""
    parts = {"; evaluation": {name: value for name, value in found.items() if "/" not in name}}
    for name, value in found.items():
        metric, _, label = name.partition("/")
        if label:
            parts.setdefault(f"; {metric} of each label", {})[label] = value
    listed = {head: ", ".join(f"{name} {value:.4f}" for name, value in some.items()) for head, some in parts.items()}
    return "".join(f"{head}: {some}" for head, some in listed.items() if some)


def _fit_frozen(options: argparse.Namespace, objective: TableObjective) -> None:
    """Compute the vectors, fit the head, evaluate it, and write the folder."""
    if not objective.has_frozen_heads:
        known = [name for name, entry in objectives_for("tables").items() if entry.load().has_frozen_heads]
        raise InputError(f"--frozen has no heads for --task {options.task}, only for {_listed(known)}")
    if options.cache and not objective.caches_vectors:
        raise InputError(f"--cache keeps vectors of texts; --task {options.task} has none")
    start = perf_counter()
    fit = objective.fit_frozen(
        options.model,
        C=options.inverse_penalty or 1.0,
        cache=options.cache,
        download=options.download,
        show_progress_bar=not options.quiet,
    )
    skipped = _warn_skipped(objective)
    fit.save(options.output)
    seconds, found = perf_counter() - start, fit.metrics
    print_summary(
        options,
        f"{options.output}: a head on the vectors of {fit.rows:,} rows in {seconds:.0f} s{_shown(found)}",
        {
            "output": str(options.output),
            "rows": fit.rows,
            "skipped": skipped,
            "seconds": seconds,
            "evaluations": [found] if found else [],
        },
    )
