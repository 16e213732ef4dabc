"""`TrainingArguments`: the settings of a training, with the names and meanings of transformers."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from wordpiece_bert._internal.checks import checked_choice, checked_flag, finite_number, whole_number
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.optimizer import (
    get_constant_schedule,
    get_constant_schedule_with_warmup,
    get_cosine_schedule_with_warmup,
    get_linear_schedule_with_warmup,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

__all__ = ["TrainingArguments"]

_SCHEDULES = ("linear", "cosine", "constant", "constant_with_warmup")
_OPTIMIZERS = ("adamw", "adam_weight_decay")
_SAMPLING = ("random", "sequential", "group_by_length")
_WHEN = ("no", "steps", "epoch")

#: Settings that change no number of the training: a resumed one may have others.
_FREE = (
    "output_dir",
    "logging_steps",
    "save_total_limit",
    "show_progress_bar",
    "overwrite_output_dir",
    "log_file",
)


@dataclass(frozen=True)
class TrainingArguments:
    """The settings of a training.

    Parameters
    ----------
    output_dir : str or os.PathLike
        The folder of the checkpoints, ``checkpoint-STEP`` each.
    learning_rate : float, default 5e-5
        The largest learning rate.
    per_device_train_batch_size : int, default 16
        Rows of a micro-batch.
    per_device_eval_batch_size : int, default 32
        Rows of a batch in evaluation.
    num_train_epochs : float, default 3
        Passes over the data.
    max_steps : int, default -1
        Steps of the optimizer, instead of `num_train_epochs`; -1 for no limit.
    warmup_steps : float, default 0
        Steps in which the learning rate grows; below 1, a share of all steps.
    weight_decay : float, default 0.01
        λ, for all parameters but biases and norms.
    adam_beta1, adam_beta2, adam_epsilon : float
        β₁, β₂ and ε, 0.9, 0.999 and 1e-8 by default.
    max_grad_norm : float, default 1.0
        The norm to which gradients are clipped; 0 for none.
    lr_scheduler_type : {"linear", "cosine", "constant", "constant_with_warmup"}, default "linear"
        How the learning rate changes after the warm-up.
    gradient_accumulation_steps : int, default 1
        Micro-batches of a step; the gradient is that of the mean of their losses.
    optim : {"adamw", "adam_weight_decay"}, default "adamw"
        AdamW as in torch, or the optimizer of Google's BERT, which does not correct the bias of the moments.
    seed : int, default 42
        Determines the order of the data and dropout.
    train_sampling_strategy : {"random", "sequential", "group_by_length"}, default "random"
        The order of the rows in each epoch; by length, rows of about one length are together.
    eval_strategy : {"no", "steps", "epoch"}, default "no"
        When the model is evaluated.
    eval_steps : int, default 500
        Steps between two evaluations.
    save_strategy : {"no", "steps", "epoch"}, default "steps"
        When a checkpoint is saved.
    save_steps : int, default 500
        Steps between two checkpoints.
    save_total_limit : int or None, default None
        How many checkpoints stay; None for all. The best one stays in any case.
    logging_steps : int, default 10
        Steps between two entries of the history.
    load_best_model_at_end : bool, default False
        Whether the parameters of the best evaluation are restored at the end. It needs evaluations and checkpoints at
        the same steps.
    metric_for_best_model : str, default "loss"
        The metric that decides; of ``"loss"`` the lowest is best, of others the highest.
    early_stopping_patience : int or None, default None
        After how many evaluations without progress the training ends.
    gradient_checkpointing : bool, default False
        Keep only the input of each layer: a third more time, a tenth of the memory, the same numbers.
    bf16 : bool, default False
        Products of numbers rounded to bfloat16 in the encoder, with float32 parameters, gradients, moments and sums:
        faster on CPUs with instructions for it. Needs a model with ``backend="rust"``.
    freeze : tuple of str, default ()
        Parameters that are not trained, by parts of their names: ``"embeddings"``, ``"encoder.layer.0"``.
    show_progress_bar : bool or None, default None
        Whether to show progress: a bar on a terminal, lines elsewhere; None for a terminal only.
    overwrite_output_dir : bool, default False
        Whether a training that begins anew removes the checkpoints that are in `output_dir`; without it, they are an
        error.
    log_file : str or os.PathLike, optional
        A file to which each entry of the history is appended when it is made, a line of JSON. A training that begins
        anew, or resumes from a checkpoint, first replaces it by the history up to there.

    Raises
    ------
    InputError
        A setting is out of range, or two contradict each other.
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
    eval_strategy: Literal["no", "steps", "epoch"] = "no"
    eval_steps: int = 500
    save_strategy: Literal["no", "steps", "epoch"] = "steps"
    save_steps: int = 500
    save_total_limit: int | None = None
    logging_steps: int = 10
    load_best_model_at_end: bool = False
    metric_for_best_model: str = "loss"
    early_stopping_patience: int | None = None
    gradient_checkpointing: bool = False
    bf16: bool = False
    freeze: tuple[str, ...] = ()
    show_progress_bar: bool | None = None
    overwrite_output_dir: bool = False
    log_file: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
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
        checked_choice("lr_scheduler_type", self.lr_scheduler_type, _SCHEDULES)
        checked_choice("optim", self.optim, _OPTIMIZERS)
        checked_choice("train_sampling_strategy", self.train_sampling_strategy, _SAMPLING)
        checked_choice("eval_strategy", self.eval_strategy, _WHEN)
        checked_choice("save_strategy", self.save_strategy, _WHEN)
        checked_flag("gradient_checkpointing", self.gradient_checkpointing)
        checked_flag("bf16", self.bf16)
        checked_flag("overwrite_output_dir", self.overwrite_output_dir)
        object.__setattr__(self, "freeze", tuple(self.freeze))
        same = self.eval_strategy == self.save_strategy and self.eval_strategy != "no"
        if self.load_best_model_at_end and not (same and (self.eval_strategy == "epoch" or self._evaluates_at_saves())):
            raise InputError(
                "load_best_model_at_end needs an evaluation at every checkpoint: set eval_strategy and save_strategy "
                f"alike, not to {self.eval_strategy!r} and {self.save_strategy!r}, and save_steps to a multiple of "
                "eval_steps"
            )
        if self.early_stopping_patience is not None and self.eval_strategy == "no":
            raise InputError("early_stopping_patience needs evaluations: set eval_strategy to 'steps' or 'epoch'")

    def _evaluates_at_saves(self) -> bool:
        return self.save_steps % self.eval_steps == 0

    def schedule(self, steps: int) -> Callable[[int], float]:
        """Return the factor of the learning rate as a function of the step.

        Parameters
        ----------
        steps
            All steps of the training.
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
        """Return the settings that a resumed training must share, as JSON can hold them."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _FREE}
        return values | {"freeze": list(self.freeze)}
