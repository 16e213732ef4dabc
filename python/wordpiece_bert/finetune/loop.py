"""The loop of a training, with evaluation, checkpoints and resumption.

The names and meanings are as in transformers' Trainer where it has them. A trainer owns float32 copies of the
parameters; models and encoders never change.
"""

from __future__ import annotations

import math
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

import numpy as np

from wordpiece_bert._internal.atomic_file import write_text
from wordpiece_bert._internal.atomic_folder import written_folder
from wordpiece_bert._internal.checks import check_instance
from wordpiece_bert._internal.json_text import json_text
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.parts import write_files
from wordpiece_bert._internal.progress import Progress, shown_progress
from wordpiece_bert._internal.signals import telling
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import CheckpointError, InputError, NonFiniteError, TrainingWarning
from wordpiece_bert.finetune import checkpoints
from wordpiece_bert.finetune.arguments import TrainingArguments
from wordpiece_bert.finetune.batches import (
    Dataset,
    batches_of_epoch,
    check_dataset,
    check_rows,
    fingerprint,
    rows_of,
)
from wordpiece_bert.finetune.best import BestEvaluation
from wordpiece_bert.finetune.dropout import KeyedDropout
from wordpiece_bert.finetune.engines import engine_of
from wordpiece_bert.finetune.memory import check_memory
from wordpiece_bert.finetune.optimizer import clip_factor
from wordpiece_bert.finetune.outputs import StepOutput, TrainOutput
from wordpiece_bert.finetune.parameters import TRAINER
from wordpiece_bert.finetune.passes import PassOptions

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from wordpiece_bert._internal.atomic_folder import AtomicFolder
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.finetune.problem import TrainingProblem
    from wordpiece_bert.tokenizer.subword import AnyTokenizer

#: What is trained: a model, two of them, or a sentence encoder.
Trained = TypeVar("Trained")


@completed_by(TRAINER)
class TrainingLoop(Generic[Trained]):
    """The loop of a training, of which `Trainer`, `PretrainingTrainer` and `SentenceTrainer` are kinds.

    Parameters
    ----------
    problem : TrainingProblem
        What is trained, and the loss.

    Examples
    --------
    The loop of a `Trainer`, by hand: steps, an evaluation, a checkpoint, and the model that comes of it.

    >>> from wordpiece_bert.bert import BertForSequenceClassification
    >>> from wordpiece_bert.finetune import Trainer, TrainingArguments
    >>> model = BertForSequenceClassification.from_pretrained("models/reviews")
    >>> args = TrainingArguments("out", max_steps=3, show_progress_bar=False)
    >>> rows = [{"input_ids": [2, 7, 3], "labels": 1}]
    >>> trainer = Trainer(model, args, rows, rows)
    >>> step = trainer.training_step([{"input_ids": [[2, 7, 3]], "labels": [1]}])
    >>> trainer.save_checkpoint("out/checkpoint-1")
    >>> trainer.load_checkpoint("out/checkpoint-1")
    >>> trainer.train().global_step
    3
    >>> list(trainer.evaluate())
    ['eval_loss']
    >>> trainer.save_model("trained")
    """

    args: TrainingArguments
    train_dataset: Dataset | None
    eval_dataset: Dataset | None
    log_history: list[dict[str, float]]
    global_step: int

    def __init__(
        self,
        problem: TrainingProblem[Trained],
        args: TrainingArguments,
        train_dataset: Dataset | None,
        eval_dataset: Dataset | None,
        *,
        tokenizer: AnyTokenizer | None = None,
    ) -> None:
        check_instance("args", args, TrainingArguments)
        check_dataset("train_dataset", train_dataset, or_none=True)
        check_dataset("eval_dataset", eval_dataset, or_none=True)
        self.args = args
        self._problem, self._tokenizer = problem, tokenizer
        self._model: Trained | None = problem.start
        self._engine = engine_of(problem.backend, bf16=args.bf16)
        self.train_dataset, self.eval_dataset = train_dataset, eval_dataset
        self.log_history = []
        self.global_step = 0
        self._parameters = parameters = problem.parameters()
        self._frozen = {name for name in parameters if _matches(name, args.freeze)}
        problem.freeze(self._frozen)
        unmatched = [pattern for pattern in args.freeze if not any(_matches(name, [pattern]) for name in parameters)]
        if unmatched:
            raise InputError(f"freeze has {unmatched[0]!r}, but no parameter has this in its name")
        if len(self._frozen) == len(parameters):
            raise InputError(f"freeze has {', '.join(map(repr, args.freeze))}, which leaves no parameter to train")
        self._optimizer = self._engine.optimizer(
            {name: array for name, array in parameters.items() if name not in self._frozen},
            lr=args.learning_rate,
            betas=(args.adam_beta1, args.adam_beta2),
            eps=args.adam_epsilon,
            weight_decay=args.weight_decay,
            correct_bias=args.optim == "adamw",
        )
        self._schedule = args.schedule(self._total_steps())
        self._best = BestEvaluation()
        self._recent: list[float] = []  # the losses since the last entry of the history
        self._data: str | None = None
        self._checkpoint: Path | None = None  # the one that was read or written last
        self._logs = False  # whether entries of the history go to args.log_file

    @property
    def best_step(self) -> int | None:
        """The step of the best evaluation so far, by `TrainingArguments.metric_for_best_model`; None before one."""
        return self._best.step

    @property
    def model(self) -> Trained:
        """What is trained, with the parameters of the moment."""
        if self._model is None:
            self._model = self._problem.model(self._parameters)
        return self._model

    def evaluate(self, eval_dataset: Dataset | None = None) -> dict[str, float]:
        """Compute loss and metrics over a data set, and add them to the history.

        Parameters
        ----------
        eval_dataset : sequence of dict, optional
            The rows; the trainer's by default.

        Returns
        -------
        dict of str to float
            ``eval_loss`` and the metrics, as the class describes them.

        Raises
        ------
        InputError
            There are no rows.
        """
        metrics = self._measured(self._some_rows(self.eval_dataset if eval_dataset is None else eval_dataset))
        self._log(**metrics)
        return metrics

    def _check_evaluates(self) -> None:
        """Refuse settings that ask for evaluations where there is nothing to evaluate, before the first step."""
        self._some_rows(self.eval_dataset)

    def _measured(self, dataset: Dataset) -> dict[str, float]:
        """Return the loss and the metrics of a data set, each with the prefix ``eval_``."""
        raise NotImplementedError

    @staticmethod
    def _some_rows(dataset: Dataset | None) -> Dataset:
        check_dataset("the data set", dataset, or_none=True)
        if dataset is None or len(dataset) == 0:
            raise InputError("there is nothing to evaluate: the data set is empty or missing")
        return dataset

    def _batch(self, rows: Sequence[Any]) -> Any:
        """Make a micro-batch of rows."""
        return self._problem.batch(rows)

    def save_model(self, folder: str | os.PathLike[str]) -> None:
        """Write a folder that transformers and this package load; for sentence encoders, sentence-transformers.

        Parameters
        ----------
        folder : str or PathLike
            The folder.
        """
        with written_folder(folder) as output:
            self._write_model(output)

    def _write_model(self, output: AtomicFolder) -> None:
        self._problem.write(self.model, output)
        if self._tokenizer is not None:
            write_files(self._tokenizer, output)

    # --- steps

    def training_step(self, micro_batches: Sequence[Any]) -> StepOutput:
        """Make one step of the optimizer.

        Parameters
        ----------
        micro_batches : sequence
            Batches; the gradient is of the mean of their losses, or of the mean over all their tokens
            (`TrainingArguments.average_tokens_across_batches`).

        Returns
        -------
        StepOutput
            The loss, the norm of the gradient and the learning rate.

        Raises
        ------
        InputError
            There are no batches, or, without ``max_steps`` and rows to train on, a second step has no learning rate.
        NonFiniteError
            A loss or a gradient is NaN or infinite; the message names the step and the parameter. Nothing has changed.
        """
        if not micro_batches:
            raise InputError("a step needs at least one micro-batch")
        args = self.args
        by_length = not args.lr_scheduler_type.startswith("constant") or 0 < args.warmup_steps < 1
        if by_length and self.global_step and args.max_steps < 1 and not self._rows():
            raise InputError(
                f"the learning rate of step {self.global_step} depends on the number of steps, which is not known: set "
                "max_steps, or lr_scheduler_type='constant'"
            )
        step, count = self.global_step, len(micro_batches)
        total, gradients = 0.0, dict[str, Any]()
        shares = self._shares(micro_batches)
        for number, (batch, weights) in enumerate(zip(micro_batches, shares, strict=True)):
            if weights is not None:
                if not any(weights):  # nothing in it is labelled
                    continue
                count = 1
            dropout = KeyedDropout(self.args.seed, step, number)
            options = PassOptions(dropout, self.args.gradient_checkpointing, weights=weights)
            loss, found = self._problem.gradients(self._parameters, batch, options, self._engine)
            if not math.isfinite(loss):
                raise NonFiniteError(
                    f"step {step}, micro-batch {number}: the loss is {loss}; the last checkpoint is kept"
                )
            total += loss / count
            for name, gradient in found.items():
                if name in self._frozen:
                    continue
                part = gradient if count == 1 else gradient * np.float32(1 / count)
                gradients[name] = gradients[name] + part if name in gradients else part
        try:
            norm = self._engine.norm({name: gradients[name] for name in sorted(gradients)})
        except NonFiniteError as error:
            raise NonFiniteError(f"step {step}: {error}; the last checkpoint is kept") from None
        rate = self.args.learning_rate * self._schedule(step)
        self._optimizer.step(gradients, lr=rate, scale=clip_factor(norm, self.args.max_grad_norm))
        self.global_step += 1
        self._model = None
        return StepOutput(total, norm, rate)

    def _shares(self, micro_batches: Sequence[Any]) -> list[tuple[float, ...] | None]:
        """Return which share of the tokens of a step each micro-batch has, for each part of the loss.

        None means that each micro-batch has the same share of the loss, whatever is in it.
        """
        given = self.args.average_tokens_across_batches
        by_token = self._problem.averages_tokens if given is None else given
        none: list[tuple[float, ...] | None] = [None] * len(micro_batches)
        if not by_token or (len(micro_batches) == 1 and given is None):
            return none
        found = [self._problem.counts(batch) for batch in micro_batches]
        counts = [count for count in found if count is not None]
        if len(counts) < len(found):
            if given is None:
                return none
            raise InputError(
                "average_tokens_across_batches=True needs a loss of tokens that are labelled one by one; that of this "
                "training is of rows: leave the argument out"
            )
        totals = np.sum(counts, axis=0)
        if len(micro_batches) == 1 or not totals.any():
            return none
        return [tuple((np.array(count) / np.maximum(totals, 1)).tolist()) for count in counts]

    def train(self, resume_from_checkpoint: str | os.PathLike[str] | bool | None = None) -> TrainOutput:
        """Train to the end.

        Parameters
        ----------
        resume_from_checkpoint : str, PathLike or bool, optional
            The folder of a checkpoint, or True for the newest in `TrainingArguments.output_dir`. The training resumes
            from it with the same bits as if it had not been interrupted.

        Returns
        -------
        TrainOutput
            The number of steps, the mean loss and the speed.

        Raises
        ------
        CheckpointError
            There is no complete checkpoint, or it is of other settings, another model or other data; or the checkpoint
            of the best evaluation is missing, which is to be restored at the end. Or the training begins anew, and the
            folder has the checkpoints of an earlier one.
        NonFiniteError
            A loss or a gradient is NaN or infinite; the last checkpoint is kept.
        InputError
            There is no data, a row has no label or other columns than the first, nothing can be learned from the data,
            or a batch needs more memory than is free.

        Warns
        -----
        TrainingWarning
            All labels are the same, the gradient of the first step is 0, rows are left out of an epoch, or no
            evaluation was finite, so that there is no best model to restore.
        """
        if self.train_dataset is None or len(self.train_dataset) == 0:
            raise InputError("there is nothing to train on: train_dataset is empty or missing")
        output = Path(self.args.output_dir)
        if resume_from_checkpoint:
            known = isinstance(resume_from_checkpoint, bool)
            self.load_checkpoint(checkpoints.newest(output) if known else Path(resume_from_checkpoint))  # type: ignore[arg-type]
        begins = self.args.save_strategy != "no" and not self._goes_on(output)
        if begins and not self.args.overwrite_output_dir:
            checkpoints.refuse_existing(output)
        self._read_rows()
        self._problem.check(self.train_dataset, self.args)
        if self.eval_dataset is not None:
            deque(check_rows(self.eval_dataset), maxlen=0)
            self._problem.check(self.eval_dataset, None)
        if self.args.eval_strategy != "no":
            self._check_evaluates()
        self._check_best()
        trained = sum(array.size for name, array in self._parameters.items() if name not in self._frozen)
        check_memory(self._problem.config, trained, self.train_dataset, self.args, self._problem.sizes)
        if begins:
            checkpoints.remove_all(output)
        self._begin_log()
        start, first, losses, rows = time.perf_counter(), self.global_step, [], 0
        with telling(self._kept), self._progress() as bar:
            for micro_batches, ends_epoch in self._steps():
                batches = [self._batch(rows_of(self.train_dataset, numbers)) for numbers in micro_batches]
                result = self.training_step(batches)
                if self.global_step == 1 and result.grad_norm == 0:
                    warn("the gradient of the first step is 0: the model learns nothing from its rows", TrainingWarning)
                rows += sum(map(len, micro_batches))
                losses.append(result.loss)
                self._recent.append(result.loss)
                bar.label = f"epoch {self._epoch():.2f}, loss {np.mean(self._recent):.4f}"
                bar.update(self.global_step)
                last = self.global_step == self._total_steps()
                if self.global_step % self.args.logging_steps == 0 or last:
                    self._log_steps(result)
                better = False
                if self._due(self.args.eval_strategy, self.args.eval_steps, ends_epoch=ends_epoch, last=last):
                    better = self._evaluated(self.evaluate())
                if self._stopped():
                    last = True
                    if self._recent:
                        self._log_steps(result)
                if (better and self.args.load_best_model_at_end) or self._due(
                    self.args.save_strategy, self.args.save_steps, ends_epoch=ends_epoch, last=last
                ):
                    self._save()
        if self.args.load_best_model_at_end:
            self._restore_best()
        seconds = time.perf_counter() - start
        metrics = {
            "train_runtime": seconds,
            "train_samples_per_second": rows / max(seconds, 1e-9),
            "train_steps_per_second": (self.global_step - first) / max(seconds, 1e-9),
        }
        logged = [entry["loss"] for entry in self.log_history if "loss" in entry]
        loss = float(np.mean(losses)) if losses else logged[-1] if logged else math.nan
        return TrainOutput(self.global_step, loss, metrics)

    def _kept(self) -> str:
        """Return what an interruption leaves of the training, and how to go on."""
        output, kept = Path(self.args.output_dir), self._checkpoint
        if kept is None and self.args.save_strategy == "no":
            return f"nothing of {self.global_step:,} steps is kept, as save_strategy is 'no'"
        if kept is None:
            return f"no checkpoint was complete yet, so that nothing of the training is kept in {output}; run it again"
        newest = [folder.resolve() for folder in checkpoints.folders(output)[-1:]]
        given = True if newest == [kept.resolve()] else str(kept)
        return f"{kept} is kept; go on from there with resume_from_checkpoint={given!r}"

    def _goes_on(self, output: Path) -> bool:
        """Return whether the steps made so far are of the training whose checkpoints are in a folder."""
        if self.global_step == 0 or self._checkpoint is None:
            return self.global_step > 0
        return self._checkpoint.resolve().parent == output.resolve()

    def _steps_per_epoch(self) -> int:
        batches = math.ceil(self._rows() / self.args.per_device_train_batch_size)
        return math.ceil(batches / self.args.gradient_accumulation_steps)

    def _total_steps(self) -> int:
        if self.args.max_steps > 0:
            return self.args.max_steps
        return max(1, math.ceil(self.args.num_train_epochs * self._steps_per_epoch()))

    def _steps(self) -> Iterator[tuple[list[list[int]], bool]]:
        """Yield the rows of each step's micro-batches from `global_step` on, and whether the step ends an epoch."""
        assert self.train_dataset is not None
        per_epoch, total = self._steps_per_epoch(), self._total_steps()
        done, warned = self.global_step, False
        while done < total and not self._stopped():
            epoch, skipped = divmod(done, per_epoch)
            if (set_epoch := getattr(self.train_dataset, "set_epoch", None)) is not None:
                set_epoch(epoch)  # rows may be masked anew in each epoch
            batches = list(batches_of_epoch(self.train_dataset, self.args, epoch))
            if (left := self._rows() - sum(map(len, batches))) and not warned:
                warned = True
                warn(
                    f"{left:,} of {self._rows():,} rows are left out of epoch {epoch}, others of later ones: too many "
                    "have the same texts for batches without duplicates",
                    TrainingWarning,
                )
            count = self.args.gradient_accumulation_steps
            for start in range(skipped * count, len(batches), count):
                if done == total or self._stopped():
                    return
                done += 1
                yield batches[start : start + count], done % per_epoch == 0

    def _due(self, when: str, steps: int, *, ends_epoch: bool, last: bool) -> bool:
        if when == "no":
            return False
        return last or (ends_epoch if when == "epoch" else self.global_step % steps == 0)

    def _progress(self) -> Progress:
        return shown_progress(self._total_steps(), "step", self.args.show_progress_bar, done=self.global_step)

    def _epoch(self) -> float:
        return self.global_step / max(1, self._steps_per_epoch())

    def _log_steps(self, result: StepOutput) -> None:
        """Add the mean loss since the last entry, and the last step, to the history."""
        loss = float(np.mean(self._recent))
        self._log(loss=loss, grad_norm=result.grad_norm, learning_rate=result.learning_rate)
        self._recent = []

    def _log(self, **values: float) -> None:
        self.log_history.append({"step": self.global_step, "epoch": self._epoch(), **values})
        if self._logs and self.args.log_file is not None:
            with Path(self.args.log_file).open("a", encoding="utf-8") as file:
                file.write(json_text(self.log_history[-1]) + "\n")

    def _begin_log(self) -> None:
        """Write the history so far; later entries are appended."""
        if self.args.log_file is not None:
            path = Path(self.args.log_file)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, "".join(json_text(entry) + "\n" for entry in self.log_history))
            self._logs = True

    # --- the best evaluation

    def _evaluated(self, metrics: dict[str, float]) -> bool:
        """Record an evaluation; return whether it is the best so far."""
        key = self._best_metric()
        if key not in metrics:
            raise InputError(
                f"metric_for_best_model is {self.args.metric_for_best_model!r}, but the metrics are "
                f"{', '.join(metrics)}"
            )
        value = metrics[key] if self._greater_is_better(key) else -metrics[key]
        return self._best.record(value, self.global_step, Path(self.args.output_dir))

    def _best_metric(self) -> str:
        """Return the metric by which models are compared, with the prefix ``eval_``."""
        name = self.args.metric_for_best_model
        return name if name.startswith("eval_") else f"eval_{name}"

    def _greater_is_better(self, key: str) -> bool:
        given = self.args.greater_is_better
        return not key.endswith("loss") if given is None else given

    def _stopped(self) -> bool:
        """Return whether the training has ended early, for want of progress."""
        patience = self.args.early_stopping_patience
        return patience is not None and self._best.evaluations_since >= patience

    def _check_best(self) -> None:
        """Check before the first step that the checkpoint which may be restored at the end is there."""
        found = self._best.checkpoint
        if self.args.load_best_model_at_end and found is not None and not checkpoints.is_complete(found):
            raise CheckpointError(
                f"{found}: is missing, and has the best parameters so far, which load_best_model_at_end restores; put "
                "it back, or resume from an earlier checkpoint"
            )

    def _restore_best(self) -> None:
        if self._best.checkpoint is None:
            message = f"no {self._best_metric()} was finite: the parameters stay those of the last step"
            warn(message, TrainingWarning)
            return
        self._set_parameters(checkpoints.read(self._best.checkpoint).parameters)

    # --- parameters

    def _set_parameters(self, values: Mapping[str, Array]) -> None:
        if values.keys() != self._parameters.keys():
            raise CheckpointError("the checkpoint has other parameters than the model")
        for name, array in values.items():
            if array.shape != self._parameters[name].shape:
                raise CheckpointError(f"the checkpoint's {name} has shape {list(array.shape)}, the model's another")
            self._parameters[name][...] = array
        self._model = None

    # --- checkpoints

    def save_checkpoint(self, folder: str | os.PathLike[str]) -> None:
        """Write everything that the next step depends on; the folder appears only when it is complete.

        Parameters
        ----------
        folder : str or PathLike
            The folder.

        Raises
        ------
        OSError
            A file cannot be written; then no folder of this name has appeared.
        """
        self._read_rows()
        state = {
            "step": self.global_step,
            "arguments": self.args.fixed(),
            "model": self._problem.description(),
            "data": self._data,
            "rows": self._rows(),
            "best": self._best.state(),
            "recent_losses": self._recent,
            "history": self.log_history,
        }
        optimizer = self._optimizer.state_dict()
        checkpoints.write(Path(folder), state, self._parameters, optimizer["moments"], self._write_model)

    def load_checkpoint(self, folder: str | os.PathLike[str]) -> None:
        """Restore what `save_checkpoint` wrote.

        Parameters
        ----------
        folder : str or PathLike
            The folder.

        Raises
        ------
        CheckpointError
            It is incomplete, or of other settings, another model or other data; the message names the difference.
        """
        found = checkpoints.read(Path(folder))
        self._read_rows()
        settings, model = self.args.fixed(), self._problem.description()
        # A checkpoint of an earlier version lacks settings that are new, which had their defaults.
        known = TrainingArguments("").fixed() | found.state["arguments"]
        for part, stored, own in (("arguments", known, settings), ("model", found.state.get("model"), model)):
            _compare(folder, part, stored, own)
        if found.state.get("data") != self._data:
            self._refuse_data(folder, found.state.get("rows"))
        self._set_parameters(found.parameters)
        self.global_step = int(found.state["step"])
        self._optimizer.load_state_dict({"steps": self.global_step, "moments": found.moments})
        self._best = BestEvaluation.from_state(found.state["best"], Path(folder), self.global_step)
        self._recent = list(found.state["recent_losses"])
        self.log_history = list(found.state["history"])
        self._checkpoint = Path(folder)

    def _read_rows(self) -> None:
        """Compute the fingerprint of the rows to train on, which finds those without a label before the first step."""
        if self._data is None and self.train_dataset is not None:
            self._data = fingerprint(self.train_dataset)

    def _rows(self) -> int:
        return 0 if self.train_dataset is None else len(self.train_dataset)

    def _refuse_data(self, folder: str | os.PathLike[str], rows: int | None) -> NoReturn:
        own = self._rows()
        change = f"{rows:,} rows then, {own:,} now" if rows not in (None, own) else f"{own:,} rows with other content"
        raise CheckpointError(
            f"{folder}: the checkpoint is of other training data: {change}; to resume from it, give the data of then, "
            "with the same tokenizer, columns, lengths and masks; to train on these, begin again with "
            "overwrite_output_dir=True"
        )

    def _save(self) -> None:
        output = Path(self.args.output_dir)
        checkpoint = output / f"checkpoint-{self.global_step}"
        self.save_checkpoint(checkpoint)
        self._checkpoint = checkpoint
        if self.args.save_total_limit is not None:
            checkpoints.remove_old(output, self.args.save_total_limit, self._best.checkpoint)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether a parameter's name has one of the patterns as whole parts between dots."""
    return any(f".{pattern}." in f".{name}." for pattern in patterns)


def _compare(folder: str | os.PathLike[str], part: str, stored: Any, own: Any) -> None:
    """Raise an error that names the first difference."""
    if isinstance(stored, dict) and isinstance(own, dict):
        for name in [*own, *stored]:
            _compare(folder, f"{part}.{name}" if part != "arguments" else name, stored.get(name), own.get(name))
        return
    if stored != own:
        raise CheckpointError(f"{folder}: the checkpoint has {part} {stored!r}, but this training has {own!r}")
