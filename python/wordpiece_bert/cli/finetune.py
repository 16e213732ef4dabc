"""``wordpiece-bert finetune``: a pre-trained model and labelled texts to a model for a task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wordpiece_bert._internal.same_file import refuse_input_as_output
from wordpiece_bert.cli import arguments
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import argparse

__all__ = ["add_parser"]

_TASKS = ("classify", "regress", "tokens", "answers", "choose", "similar")
#: The default columns of texts, second texts and labels, where they are not text, none and label.
_COLUMNS = {"answers": ("context", "question", "answers")}


def add_parser(commands: arguments.Commands, summary: str) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "finetune",
        parents=[arguments.common_options()],
        help=summary,
        description="Fine-tune a model on labelled texts in a CSV, TSV, JSON-lines or Parquet file. The output is a "
        "folder that this package, transformers and (for similar) sentence-transformers load.",
    )
    parser.add_argument(
        "-m",
        "--model",
        metavar="MODEL",
        default="minilm",
        help="the model to train: minilm, a folder, or org/name in the Hugging Face cache (default: minilm)",
    )
    parser.add_argument(
        "--task",
        choices=_TASKS,
        required=True,
        help="classify: a label for each text or pair; regress: a number; tokens: a label for each word; answers: the "
        "part of a text that answers a question; choose: the right one of several continuations; similar: vectors "
        "whose cosines follow the labels of pairs",
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
        default="choices",
        metavar="COLUMN[,COLUMN…]",
        help="for choose: a column of lists, or a column for each choice (default: choices)",
    )
    data.add_argument(
        "--answer-start",
        metavar="COLUMN",
        help="for answers: the first character of each answer (default: as SQuAD has it, or where the answer occurs)",
    )
    data.add_argument("--max-length", type=arguments.positive, metavar="N", help="truncate texts to this many tokens")
    training = parser.add_argument_group("training")
    training.add_argument(
        "--epochs", type=_above_zero, default=3.0, metavar="N", help="passes over the data (default: 3)"
    )
    training.add_argument("--batch-size", type=arguments.positive, default=16, metavar="N", help="(default: 16)")
    training.add_argument("--learning-rate", type=_above_zero, default=5e-5, metavar="RATE", help="(default: 5e-5)")
    training.add_argument(
        "--warmup",
        type=_share,
        default=0.1,
        metavar="SHARE",
        help="share of the steps with a growing rate (default: 0.1)",
    )
    training.add_argument("--weight-decay", type=_share, default=0.01, metavar="RATE", help="(default: 0.01)")
    training.add_argument(
        "--freeze",
        action="append",
        default=[],
        metavar="NAME",
        help="train no parameter of this name, such as embeddings or encoder.layer.0",
    )
    training.add_argument("--seed", type=arguments.natural, default=42, metavar="N", help="(default: 42)")
    training.add_argument(
        "--save-steps", type=arguments.positive, metavar="N", help="steps between checkpoints (default: an epoch)"
    )
    training.add_argument(
        "--eval-steps", type=arguments.positive, metavar="N", help="steps between evaluations (default: an epoch)"
    )
    arguments.add_training_run(training)
    frozen = parser.add_argument_group("heads on frozen vectors")
    frozen.add_argument(
        "--frozen",
        action="store_true",
        help="fit only a head, on vectors that the model computes once: logistic or ridge regression, in seconds",
    )
    frozen.add_argument("--cache", type=Path, metavar="DIR", help="keep the vectors in this folder, for the next run")
    frozen.add_argument(
        "--inverse-penalty",
        type=_above_zero,
        default=1.0,
        metavar="C",
        help="the larger, the closer the head follows the labels (default: 1)",
    )
    arguments.add_download(parser)
    arguments.add_output_control(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Check the options and train."""
    from wordpiece_bert.cli import finetune_frozen, finetune_run
    from wordpiece_bert.cli.training_run import with_threads

    text, pair, label = _COLUMNS.get(options.task, ("text", None, "label"))
    options.text, options.pair = options.text or text, options.pair or pair
    options.label = options.label or label
    files = [file for file in (options.train, options.eval) if file]
    refuse_input_as_output([options.output], files)
    if options.output.exists() and not options.output.is_dir():
        raise InputError(f"{options.output}: is a file; give a folder")
    if options.cache and not options.frozen:
        raise InputError("--cache keeps the vectors of --frozen, which is missing")
    if options.eval_steps and not options.eval:
        raise InputError("--eval-steps is how often to evaluate on --eval, which is missing")
    with with_threads(options):
        (finetune_frozen if options.frozen else finetune_run).run(options)


def _above_zero(value: str) -> float:
    return _checked(value, above=0.0)


def _share(value: str) -> float:
    return _checked(value, above=-1e-300)


def _checked(value: str, above: float) -> float:
    import argparse

    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not above < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{value!r} is not a number {'above 0' if above == 0 else 'of at least 0'}")
    return number
