"""`TrainingArguments`: the settings of a training, with the names and meanings of transformers."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from wordpiece_bert._internal.checks import (
    check_path,
    checked_choice,
    checked_flag,
    checked_strings,
    finite_number,
    whole_number,
)
from wordpiece_bert._internal.lazy import numpy as np
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.parameters import ARGUMENTS
from wordpiece_bert.finetune.schedules import (
    get_constant_schedule,
    get_constant_schedule_with_warmup,
    get_cosine_schedule_with_warmup,
    get_linear_schedule_with_warmup,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

#: The schedules of the learning rate.
SCHEDULES = ("linear", "cosine", "constant", "constant_with_warmup")
_OPTIMIZERS = ("adamw", "adam_weight_decay")
_SAMPLING = ("random", "sequential", "group_by_length")
_WHEN = ("no", "steps", "epoch")
_SAMPLERS = ("batch_sampler", "no_duplicates")

#: Settings that change no number of the training: a resumed one may have others.
_FREE = (
    "output_dir",
    "logging_steps",
    "save_total_limit",
    "show_progress_bar",
    "overwrite_output_dir",
    "log_file",
)


@completed_by(ARGUMENTS)
@dataclass(frozen=True)
class TrainingArguments:
    """The settings of a training.

    Raises
    ------
    InputError
        A setting is out of range, or two contradict each other.

    Examples
    --------
    >>> from wordpiece_bert.finetune import TrainingArguments
    >>> args = TrainingArguments(
    ...     "out", learning_rate=3e-5, num_train_epochs=2, warmup_steps=0.1
    ... )
    >>> factor = args.schedule(100)
    >>> [factor(step) for step in (0, 5, 10, 100)]
    [0.0, 0.5, 1.0, 0.0]
    >>> "output_dir" in args.fixed(), args.fixed()["learning_rate"]
    (False, 3e-05)
    """

    output_dir: str | os.PathLike[str]
    learning_rate: float = 5e-5
    per_device_train_batch_size: int = 16
    per_device_eval_batch_size: int = 32
    num_train_epochs: float = 3.0
    max_steps: int = -1
    warmup_steps: float = 0
    weight_decay: float = 0.01
    adam_beta1: float = 0.9
    adam_beta2: float = 0.999
    adam_epsilon: float = 1e-8
    max_grad_norm: float = 1.0
    lr_scheduler_type: Literal["linear", "cosine", "constant", "constant_with_warmup"] = "linear"
    gradient_accumulation_steps: int = 1
    optim: Literal["adamw", "adam_weight_decay"] = "adamw"
    seed: int = 42
    train_sampling_strategy: Literal["random", "sequential", "group_by_length"] = "random"
    batch_sampler: Literal["batch_sampler", "no_duplicates"] = "batch_sampler"
    average_tokens_across_batches: bool | None = None
    eval_strategy: Literal["no", "steps", "epoch"] = "no"
    eval_steps: int = 500
    save_strategy: Literal["no", "steps", "epoch"] = "steps"
    save_steps: int = 500
    save_total_limit: int | None = None
    logging_steps: int = 10
    load_best_model_at_end: bool = False
    metric_for_best_model: str = "loss"
    greater_is_better: bool | None = None
    early_stopping_patience: int | None = None
    gradient_checkpointing: bool = False
    bf16: bool = False
    freeze: tuple[str, ...] = ()
    show_progress_bar: bool | None = None
    overwrite_output_dir: bool = False
    log_file: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            if isinstance(
                value := getattr(self, field.name), np.generic
            ):  # which the JSON of a checkpoint does not have
                object.__setattr__(self, field.name, value.item())
        for name in ("learning_rate", "weight_decay", "adam_epsilon", "max_grad_norm", "warmup_steps"):
            finite_number(name, getattr(self, name), least=0)
        finite_number("num_train_epochs", self.num_train_epochs, above=0)
        for name in ("adam_beta1", "adam_beta2"):
            finite_number(name, getattr(self, name), least=0, below=1)
        for name in (
            "per_device_train_batch_size",
            "per_device_eval_batch_size",
            "gradient_accumulation_steps",
            "eval_steps",
            "save_steps",
            "logging_steps",
        ):
            whole_number(name, getattr(self, name), 1)
        for name in ("save_total_limit", "early_stopping_patience"):
            if getattr(self, name) is not None:
                whole_number(name, getattr(self, name), 1, others="or None")
        if self.max_steps != -1:
            whole_number("max_steps", self.max_steps, 1, others="or -1 for no limit")
        whole_number("seed", self.seed, 0)
        checked_choice("lr_scheduler_type", self.lr_scheduler_type, SCHEDULES)
        checked_choice("optim", self.optim, _OPTIMIZERS)
        checked_choice("train_sampling_strategy", self.train_sampling_strategy, _SAMPLING)
        sampler = getattr(self.batch_sampler, "value", self.batch_sampler)  # sentence-transformers has an Enum
        object.__setattr__(self, "batch_sampler", checked_choice("batch_sampler", sampler, _SAMPLERS))
        for name in ("average_tokens_across_batches", "greater_is_better"):
            if getattr(self, name) is not None:
                checked_flag(name, getattr(self, name))
        if not isinstance(self.metric_for_best_model, str):
            raise InputError(f"metric_for_best_model must be a str, not {self.metric_for_best_model!r:.80}")
        check_path("output_dir", self.output_dir)
        check_path("log_file", self.output_dir if self.log_file is None else self.log_file)
        checked_flag("load_best_model_at_end", self.load_best_model_at_end)
        checked_choice("eval_strategy", self.eval_strategy, _WHEN)
        checked_choice("save_strategy", self.save_strategy, _WHEN)
        checked_flag("gradient_checkpointing", self.gradient_checkpointing)
        checked_flag("bf16", self.bf16)
        checked_flag("overwrite_output_dir", self.overwrite_output_dir)
        object.__setattr__(self, "freeze", tuple(checked_strings("freeze", self.freeze)))
        if self.load_best_model_at_end and "no" in (self.eval_strategy, self.save_strategy):
            raise InputError(
                "load_best_model_at_end needs evaluations and checkpoints: set eval_strategy and save_strategy to "
                f"'steps' or 'epoch', not to {self.eval_strategy!r} and {self.save_strategy!r}"
            )
        if self.early_stopping_patience is not None and self.eval_strategy == "no":
            raise InputError("early_stopping_patience needs evaluations: set eval_strategy to 'steps' or 'epoch'")

    def schedule(self, steps: int) -> Callable[[int], float]:
        """Return the factor of the learning rate as a function of the step.

        Parameters
        ----------
        steps : int
            All steps of the training.

        Returns
        -------
        callable
            A function from the number of the step, from 0, to the factor.
        """
        warmup = math.ceil(self.warmup_steps * steps) if self.warmup_steps < 1 else int(self.warmup_steps)
        if self.lr_scheduler_type == "linear":
            return get_linear_schedule_with_warmup(warmup, steps)
        if self.lr_scheduler_type == "cosine":
            return get_cosine_schedule_with_warmup(warmup, steps)
        if self.lr_scheduler_type == "constant":
            return get_constant_schedule()
        return get_constant_schedule_with_warmup(warmup)

    def fixed(self) -> dict[str, Any]:
        """Return the settings that a resumed training must share, as JSON can hold them.

        Returns
        -------
        dict
            The settings by name.
        """
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _FREE}
        return values | {"freeze": list(self.freeze)}
