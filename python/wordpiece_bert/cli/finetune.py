"""``wordpiece-bert finetune``: a pre-trained model and labelled texts to a model for a task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wordpiece_bert._internal.same_file import refuse_input_as_output
from wordpiece_bert.cli import arguments, training_options
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.objectives import objectives_for

if TYPE_CHECKING:
    import argparse

_SETTINGS = ["epochs", "batch_size", "learning_rate", "warmup", "weight_decay", "freeze", "seed"]
_EVALUATING = ["save_steps", "eval_steps", "best", "metric", "patience"]
_WARMUP = 0.1


def add_parser(commands: arguments.Commands, summary: str) -> None:
    """Declare the subcommand."""
    tasks = objectives_for("tables")
    parser = commands.add_parser(
        "finetune",
        parents=[arguments.common_options()],
        help=summary,
        description="Fine-tune a model on labelled texts in a CSV, TSV, JSON-lines or Parquet file. The output is a "
        "folder that this package, transformers and (for similar) sentence-transformers load; with --frozen, only this "
        "package reads the head of classify and regress.",
    )
    arguments.add_model(parser, "the model to train: ")
    parser.add_argument(
        "--task",
        choices=tasks,
        required=True,
        help="; ".join(f"{name}: {objective.summary}" for name, objective in tasks.items()),
    )
    parser.add_argument(
        "--train",
        metavar="FILE",
        required=True,
        help="the labelled texts, .csv .tsv .jsonl .parquet; for answers also .json as SQuAD has it",
    )
    parser.add_argument("--eval", metavar="FILE", help="labelled texts to evaluate on after each epoch (--eval-steps)")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="the folder of the model")
    data = parser.add_argument_group("data")
    data.add_argument(
        "--text", metavar="COLUMN", help="the texts, or lists of words (default: text; for answers, context)"
    )
    data.add_argument(
        "--pair", metavar="COLUMN", help="the second text of each pair; for answers the questions (default: question)"
    )
    data.add_argument("--label", metavar="COLUMN", help="the labels (default: label; for answers, answers)")
    data.add_argument(
        "--choices",
        metavar="COLUMN[,COLUMN…]",
        help="for choose: a column of lists, or a column for each choice (default: choices)",
    )
    data.add_argument(
        "--answer-start",
        metavar="COLUMN",
        help="for answers: the first character of each answer (default: as SQuAD has it, or where the answer occurs)",
    )
    data.add_argument("--max-length", type=arguments.positive, metavar="N", help="truncate texts to this many tokens")
    arguments.add_row_errors(data)
    training = parser.add_argument_group("training")
    training_options.add_settings(training, _SETTINGS, warmup=_WARMUP)
    training_options.add_settings(training, _EVALUATING, save_steps=None, eval_steps=None)
    training_options.add_training_run(training)
    frozen = parser.add_argument_group("heads on frozen vectors")
    frozen.add_argument(
        "--frozen",
        action="store_true",
        help="fit only a head, on vectors that the model computes once: logistic or ridge regression, in seconds",
    )
    frozen.add_argument("--cache", type=Path, metavar="DIR", help="keep the vectors in this folder, for the next run")
    frozen.add_argument(
        "--inverse-penalty",
        type=arguments.above_zero,
        metavar="C",
        help="the larger, the closer the head follows the labels (default: 1)",
    )
    arguments.add_running(parser, run, threads=False)
    # None where an option is not given, so that one which does not apply can be refused.
    parser.set_defaults(**dict.fromkeys(_SETTINGS))


def run(options: argparse.Namespace) -> None:
    """Check the options and train."""
    from wordpiece_bert.cli import finetune_run

    files = [file for file in (options.train, options.eval) if file]
    _refuse_columns_of_squad(options, files)
    columns = objectives_for("tables")[options.task].columns
    options.text, options.pair = options.text or columns.text, options.pair or columns.pair
    options.label = options.label or columns.label
    refuse_input_as_output([options.output], files)
    if options.output.exists() and not options.output.is_dir():
        raise InputError(f"{options.output}: is a file; give a folder")
    if options.cache and not options.frozen:
        raise InputError("--cache keeps the vectors of --frozen, which is missing")
    if options.inverse_penalty is not None and not options.frozen:
        raise InputError("--inverse-penalty is for the head of --frozen, which is missing")
    if options.eval_steps and not options.eval:
        raise InputError("--eval-steps is how often to evaluate on --eval, which is missing")
    if not options.eval or options.frozen:
        training_options.refuse_choice_of_best(options, "--eval, and a training in steps")
    if options.frozen:
        _refuse_steps(options)
    if options.warmup is None:
        options.warmup = _WARMUP
    with arguments.with_threads(options):
        finetune_run.run(options)


def _refuse_columns_of_squad(options: argparse.Namespace, files: list[str]) -> None:
    """Refuse the names of columns where no file has columns: a file of SQuAD has its own names."""
    if options.task == "answers" and all(file.lower().endswith(".json") for file in files):
        why = f"names a column of a table; {files[0]} is a file of SQuAD, which has none: leave it out"
        arguments.refuse(options, ("text", "pair", "label", "answer_start"), why)


def _refuse_steps(options: argparse.Namespace) -> None:
    """Refuse the options of a training in steps, which a head on frozen vectors would ignore."""
    names = [*_SETTINGS, "save_steps", "eval_steps", "bf16", "resume", "overwrite"]
    given = [name for name in names if (value := getattr(options, name)) is not None and value is not False]
    if given:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        verb = "is" if len(given) == 1 else "are"
        raise InputError(
            f"{flags} {verb} for a training in steps; a head on frozen vectors has none: leave out {flags}, or --frozen"
        )
