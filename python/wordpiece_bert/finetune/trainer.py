"""`Trainer`: the training of a model with a head."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from wordpiece_bert._internal.checks import check_function
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert.plan.building import padding_row
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.batches import Dataset, pad_collate, row_blocks
from wordpiece_bert.finetune.loop import TrainingLoop
from wordpiece_bert.finetune.parameters import TRAINER
from wordpiece_bert.finetune.problem import ModelProblem, labelled_rows

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.base_model import Model
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.finetune.arguments import TrainingArguments
    from wordpiece_bert.finetune.problem import Collate, HeadFactory, TrainingProblem
    from wordpiece_bert.tokenizer.subword import AnyTokenizer


@dataclass(frozen=True, eq=False)
class EvalPrediction:
    """What ``compute_metrics`` receives, and `Trainer.predict` returns.

    Attributes
    ----------
    predictions : array or tuple of arrays
        The logits of all rows; logits of tokens are padded with -100.
    label_ids : array, tuple of arrays or None
        The labels of all rows.
    metrics : dict of str to float
        The metrics; empty in ``compute_metrics``.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.finetune import EvalPrediction, metrics
    >>> def compute_metrics(found):
    ...     return {
    ...         "accuracy": metrics.accuracy(
    ...             found.predictions.argmax(axis=-1), found.label_ids
    ...         )
    ...     }
    >>> compute_metrics(
    ...     EvalPrediction(
    ...         predictions=np.array([[0.1, 0.9], [0.8, 0.2]]), label_ids=np.array([1, 1])
    ...     )
    ... )
    {'accuracy': 0.5}
    """

    predictions: Any
    label_ids: Any
    metrics: dict[str, float] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the predictions and the labels, as in transformers: ``logits, labels = found``."""
        return iter((self.predictions, self.label_ids))

    def __getitem__(self, index: int) -> Any:
        """Return the predictions, or the labels."""
        return (self.predictions, self.label_ids)[index]


@completed_by(TRAINER)
class Trainer(TrainingLoop["Model"]):
    """Trains a model with a head.

    `evaluate` returns ``eval_loss``, in which each labelled row or token counts the same, and what
    `compute_metrics` returned, each with the prefix ``eval_``. A metric may be NaN: in files of JSON it is null.

    Attributes
    ----------
    args : TrainingArguments
        As passed.
    train_dataset, eval_dataset : Dataset or None
        As passed.
    log_history : list of dict
        Step, epoch, loss, norm of the gradient and learning rate every `TrainingArguments.logging_steps`, and the
        evaluations.
    global_step : int
        How many steps have been made.

    Raises
    ------
    InputError
        The model has no head, or a setting is wrong.
    ConfigError
        A dropout rate is out of range, the model's backward pass is not here, or its weights are int8.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.finetune import Trainer, TrainingArguments, model_for
    >>> from wordpiece_bert.finetune.data import sequence_rows
    >>> tokenizer = Tokenizer.from_pretrained("models/sentences")
    >>> texts, names = ["a great film", "a dull film"], ["bad", "good"]
    >>> rows = sequence_rows(
    ...     tokenizer, texts, None, ["good", "bad"], names=names, max_length=32
    ... )
    >>> model = model_for("models/sentences", "SequenceClassification", labels=names)
    >>> args = TrainingArguments(
    ...     "out", max_steps=6, learning_rate=0.02, show_progress_bar=False
    ... )
    >>> trainer = Trainer(model, args, rows, tokenizer=tokenizer)
    >>> trainer.train().global_step
    6
    >>> trainer.predict(rows).predictions.argmax(axis=1)
    array([1, 0])
    """

    def __init__(
        self,
        model: Model,
        args: TrainingArguments,
        train_dataset: Dataset | None = None,
        eval_dataset: Dataset | None = None,
        data_collator: Callable[[Sequence[Any]], Mapping[str, npt.ArrayLike]] | None = None,
        compute_metrics: Callable[[EvalPrediction], Mapping[str, float]] | None = None,
        *,
        tokenizer: AnyTokenizer | None = None,
        loss_head: HeadFactory | None = None,
    ) -> None:
        if compute_metrics is not None:
            check_function("compute_metrics", compute_metrics, "an EvalPrediction")
        problem = self._new_problem(model, data_collator, loss_head)
        super().__init__(problem, args, train_dataset, eval_dataset, tokenizer=tokenizer)
        self._compute_metrics = compute_metrics

    def _new_problem(
        self, model: Model, collate: Collate | None, loss_head: HeadFactory | None
    ) -> TrainingProblem[Any]:
        return ModelProblem(
            model, collate or (lambda rows: pad_collate(rows, padding_row(model.config) or 0)), loss_head
        )

    @classmethod
    @completed_by(TRAINER)
    def from_checkpoint(
        cls,
        folder: str | os.PathLike[str],
        model: Model,
        args: TrainingArguments,
        train_dataset: Dataset | None = None,
        eval_dataset: Dataset | None = None,
        data_collator: Callable[[Sequence[Any]], Mapping[str, npt.ArrayLike]] | None = None,
        compute_metrics: Callable[[EvalPrediction], Mapping[str, float]] | None = None,
        *,
        tokenizer: AnyTokenizer | None = None,
        loss_head: HeadFactory | None = None,
    ) -> Self:
        """Make a trainer and restore a checkpoint.

        Returns
        -------
        Trainer
            The trainer.

        Examples
        --------
        >>> from wordpiece_bert.bert import BertForSequenceClassification
        >>> from wordpiece_bert.finetune import Trainer, TrainingArguments
        >>> model = BertForSequenceClassification.from_pretrained("models/reviews")
        >>> args = TrainingArguments("out", max_steps=4, show_progress_bar=False)
        >>> trainer = Trainer(model, args)
        >>> step = trainer.training_step([{"input_ids": [[2, 7, 3]], "labels": [1]}])
        >>> trainer.save_checkpoint("out/checkpoint-1")
        >>> Trainer.from_checkpoint("out/checkpoint-1", model, args).global_step
        1
        """
        datasets = train_dataset, eval_dataset
        trainer = cls(model, args, *datasets, data_collator, compute_metrics, tokenizer=tokenizer, loss_head=loss_head)
        trainer.load_checkpoint(folder)
        return trainer

    def _measured(self, dataset: Dataset) -> dict[str, float]:
        return self.predict(dataset, "eval").metrics

    def predict(self, test_dataset: Dataset | None, metric_key_prefix: str = "test") -> EvalPrediction:
        """Run the model over a data set.

        Parameters
        ----------
        test_dataset : sequence of dict
            The rows, with labels.
        metric_key_prefix : str, default "test"
            The prefix of the metrics' names.

        Returns
        -------
        EvalPrediction
            Logits, labels and metrics.

        Raises
        ------
        InputError
            There are no rows, or ``compute_metrics`` returned no dict of numbers.
        """
        dataset, model = self._some_rows(test_dataset), self.model
        if not callable(model):
            raise InputError(f"predict() runs one model, and {type(model).__name__} has two: call one of them")
        problem, parts, logits, labels = self._problem, [], [], []
        for rows in row_blocks(dataset, self.args.per_device_eval_batch_size):
            batch = dict(problem.batch(rows))
            out = model(**batch)
            if out.loss is not None:
                whole = [(float(out.loss), labelled_rows(batch, problem.config))]
                parts.append(problem.loss_parts(out, batch) if isinstance(problem, ModelProblem) else whole)
            logits.append(_logits(out))
            labels.append([np.asarray(batch[name]) for name in self._label_names(batch)])
        found = EvalPrediction(_one(_joined(logits)), _one(_joined(labels)))
        metrics = {}
        if parts:
            metrics["loss"] = sum(map(_mean, zip(*parts, strict=True)))
        if self._compute_metrics is not None:
            measured: Any = self._compute_metrics(found)
            try:
                metrics |= {name: float(value) for name, value in dict(measured).items()}
            except (TypeError, ValueError):
                raise InputError(f"compute_metrics must return a dict of numbers, not {measured!r:.200}") from None
        named = {f"{metric_key_prefix}_{name}": value for name, value in metrics.items()}
        return EvalPrediction(found.predictions, found.label_ids, named)

    def _label_names(self, batch: Mapping[str, Any]) -> list[str]:
        """Return the names of the labels of a batch: first the head's, in its order, then the other ones."""
        names = [name for name in batch if "label" in name or name.endswith("_positions")]
        own = self._problem.head.label_names if isinstance(self._problem, ModelProblem) else ()
        return sorted(names, key=lambda name: own.index(name) if name in own else len(own))


def _mean(parts: Iterable[tuple[float, int]]) -> float:
    """Return the mean loss of batches; NaN if nothing is labelled."""
    found = [(loss, count) for loss, count in parts if count]
    if not found:
        return math.nan
    losses, counts = zip(*found, strict=True)
    return float(np.average(losses, weights=counts))


def _logits(out: Any) -> list[Array]:
    for names in (("logits",), ("start_logits", "end_logits"), ("prediction_logits", "seq_relationship_logits")):
        if hasattr(out, names[0]):
            return [getattr(out, name) for name in names]
    raise InputError(f"{type(out).__name__} has no logits")


def _joined(batches: list[list[npt.NDArray[Any]]]) -> list[npt.NDArray[Any]]:
    """Join the arrays of all batches; second axes of different lengths are padded with -100."""
    joined = []
    for parts in zip(*batches, strict=True):
        if parts[0].ndim > 1:
            longest = max(part.shape[1] for part in parts)
            wide = [(0, 0)] * parts[0].ndim
            padded = []
            for part in parts:
                wide[1] = (0, longest - part.shape[1])
                padded.append(np.pad(part, wide, constant_values=-100))
            joined.append(np.concatenate(padded))
        else:
            joined.append(np.concatenate(parts))
    return joined


def _one(arrays: list[npt.NDArray[Any]]) -> Any:
    return arrays[0] if len(arrays) == 1 else tuple(arrays) or None
