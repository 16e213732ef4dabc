"""The options of a training, which ``finetune`` and ``pretrain`` share: one for each setting of `TrainingArguments`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wordpiece_bert.cli import arguments
from wordpiece_bert.finetune.arguments import SCHEDULES, TrainingArguments
from wordpiece_bert.finetune.parameters import ARGUMENTS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable


class _Option(NamedTuple):
    #: Its name in `TrainingArguments`, where it is described.
    setting: str
    #: Converts the argument.
    kind: Callable[[str], Any] = str
    metavar: str = "N"
    #: What is added to the description.
    more: str = ""


#: By the names that `argparse` gives to the options: ``--batch-size`` is ``batch_size``.
SETTINGS = {
    "epochs": _Option("num_train_epochs", arguments.above_zero),
    "max_steps": _Option("max_steps", arguments.positive, more=", instead of --epochs"),
    "batch_size": _Option("per_device_train_batch_size", arguments.positive),
    "accumulation": _Option("gradient_accumulation_steps", arguments.positive),
    "learning_rate": _Option("learning_rate", arguments.above_zero, "RATE"),
    "warmup": _Option("warmup_steps", arguments.not_negative, more=", or a share below 1"),
    "schedule": _Option("lr_scheduler_type"),
    "weight_decay": _Option("weight_decay", arguments.not_negative, "RATE"),
    "max_grad_norm": _Option("max_grad_norm", arguments.not_negative),
    "freeze": _Option("freeze", metavar="NAME", more=", such as embeddings or encoder.layer.0; may be repeated"),
    "eval_steps": _Option("eval_steps", arguments.positive),
    "save_steps": _Option("save_steps", arguments.positive),
    "best": _Option("load_best_model_at_end"),
    "metric": _Option("metric_for_best_model", metavar="NAME", more=", such as accuracy"),
    "patience": _Option("early_stopping_patience", arguments.positive),
    "checkpointing": _Option("gradient_checkpointing", more=": a tenth of the memory, a third more time"),
    "seed": _Option("seed", arguments.natural),
    "bf16": _Option("bf16", more=": faster on CPUs with instructions for it"),
}


def add_settings(group: argparse._ArgumentGroup, names: Iterable[str], **defaults: Any) -> None:
    """Declare options of `SETTINGS`.

    Parameters
    ----------
    group : argument group
        Where.
    names : iterable of str
        Which.
    **defaults
        Defaults other than in `TrainingArguments`; None for steps that follow the epochs.
    """
    for name in names:
        option, flag = SETTINGS[name], f"--{name.replace('_', '-')}"
        default = defaults.get(name, getattr(TrainingArguments, option.setting))
        missing = "an epoch" if name.endswith("_steps") else ""
        shown = missing if default is None else f"{default:g}" if isinstance(default, float) else default
        text = arguments.described(ARGUMENTS, option.setting, shown if shown and shown != -1 else "", option.more)
        if isinstance(default, bool):
            group.add_argument(flag, action="store_true", help=text)
        elif isinstance(default, tuple):
            group.add_argument(flag, action="append", default=[], metavar=option.metavar, help=text)
        elif name == "schedule":
            group.add_argument(flag, choices=SCHEDULES, default=default, help=text)
        else:
            default = None if default == -1 or name == "metric" else default  # None: as in TrainingArguments
            group.add_argument(flag, type=option.kind, default=default, metavar=option.metavar, help=text)


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that the options of a command stand for."""
    given = {option.setting: getattr(options, name, None) for name, option in SETTINGS.items()}
    return {setting: value for setting, value in given.items() if value is not None}


def refuse_choice_of_best(options: argparse.Namespace, needed: str) -> None:
    """Refuse ``--best``, ``--metric`` and ``--patience`` where nothing is evaluated.

    Parameters
    ----------
    options : argparse.Namespace
        The options.
    needed : str
        What they need, as the message says it.

    Raises
    ------
    InputError
        One of them is given.
    """
    arguments.refuse(options, ("best", "metric", "patience"), f"is for evaluations, which need {needed}")


def add_training_run(group: argparse._ArgumentGroup) -> None:
    """Declare ``--bf16``, ``--threads``, ``--resume`` and ``--overwrite`` of a training."""
    add_settings(group, ["bf16"])
    arguments.add_threads(group)
    either = group.add_mutually_exclusive_group()
    either.add_argument(
        "--resume", action="store_true", help="resume from the newest checkpoint of a run that was interrupted, if any"
    )
    either.add_argument(
        "--overwrite", action="store_true", help="begin again, and remove the checkpoints that the output has"
    )
