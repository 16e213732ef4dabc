"""`Trainer`: the training of a model with a head."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from wordpiece_bert.bert.heads.bert import BertForPreTraining
from wordpiece_bert.bert.heads.kinds import MaskedLM
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.batches import Dataset, pad_collate, rows_of
from wordpiece_bert.finetune.engines import engine_of
from wordpiece_bert.finetune.gradient import compute
from wordpiece_bert.finetune.loop import TrainingLoop
from wordpiece_bert.finetune.memory import row_sizes
from wordpiece_bert.finetune.network import Network

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from wordpiece_bert._internal.atomic_folder import AtomicFolder
    from wordpiece_bert.bert.base import Model
    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.finetune.arguments import TrainingArguments
    from wordpiece_bert.finetune.dropout import KeyedDropout
    from wordpiece_bert.tokenizer import Tokenizer

__all__ = ["EvalPrediction", "Trainer"]


@dataclass(frozen=True, eq=False)
class EvalPrediction:
    """What `compute_metrics` receives, and `predict` returns.

    Attributes
    ----------
    predictions : array or tuple of arrays
        The logits of all rows; those of tokens are padded with -100.
    label_ids : array, tuple of arrays or None
        The labels of all rows.
    metrics : dict of str to float
        The metrics; empty in `compute_metrics`.
    """

    predictions: Any
    label_ids: Any
    metrics: dict[str, float] = field(default_factory=dict)


class Trainer(TrainingLoop["Model"]):
    """Trains a model with a head.

    Parameters
    ----------
    model
        The model to start from; it does not change.
    args
        The settings.
    train_dataset, eval_dataset
        Rows by number, such as a list of dicts with ``input_ids`` and labels. If the training rows have a method
        `set_epoch`, it is called before each epoch with its number.
    data_collator
        A function from a list of rows to a batch; `pad_collate` by default.
    compute_metrics
        A function from an `EvalPrediction` to a dict of metrics.
    tokenizer
        Written with the model by `save_model` and into checkpoints.

    Attributes
    ----------
    args : TrainingArguments
        As passed.
    train_dataset, eval_dataset : Dataset or None
        As passed.
    log_history : list of dict
        Step, epoch, loss, norm of the gradient and learning rate every `logging_steps`, and the evaluations.
    global_step : int
        How many steps have been made.

    Raises
    ------
    InputError
        The model has no head, or a setting is wrong.
    ConfigError
        A dropout rate is out of range, or the model's backward pass is not here.
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
        tokenizer: Tokenizer | None = None,
    ) -> None:
        self._network = Network(model)
        self._model: Model | None = model
        self._backend, self._dtype = model.backend, model.dtype
        self._tokenizer = tokenizer
        parameters = {name: array.copy() for name, array in self._network.parameters(model).items()}
        engine = engine_of(model.backend, bf16=args.bf16)
        super().__init__(args, parameters, self._network, train_dataset, eval_dataset, engine)
        pad = model.config.pad_token_id or 0
        self._collate = data_collator or (lambda rows: pad_collate(rows, pad))
        self._compute_metrics = compute_metrics

    @classmethod
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
        tokenizer: Tokenizer | None = None,
    ) -> Self:
        """Make a trainer and restore a checkpoint.

        Parameters
        ----------
        folder
            The checkpoint.
        model, args, train_dataset, eval_dataset, data_collator, compute_metrics, tokenizer
            As for the class.
        """
        trainer = cls(model, args, train_dataset, eval_dataset, data_collator, compute_metrics, tokenizer=tokenizer)
        trainer.load_checkpoint(folder)
        return trainer

    @property
    def model(self) -> Model:
        """A model with the parameters of the moment."""
        if self._model is None:
            weights = {name: array.copy() for name, array in self._parameters.items()}
            make = self._network.model_class
            self._model = make(self._network.config, weights, backend=self._backend, dtype=self._dtype)
        return self._model

    def evaluate(self, eval_dataset: Dataset | None = None) -> dict[str, float]:
        """Compute loss and metrics over a data set, and add them to the history.

        Parameters
        ----------
        eval_dataset
            The rows; those of the trainer by default.

        Returns
        -------
        dict of str to float
            ``eval_loss``, and what `compute_metrics` returned, each with the prefix ``eval_``.
        """
        metrics = self.predict(self.eval_dataset if eval_dataset is None else eval_dataset, "eval").metrics
        self._log(**metrics)
        return metrics

    def predict(self, test_dataset: Dataset | None, metric_key_prefix: str = "test") -> EvalPrediction:
        """Run the model over a data set.

        Parameters
        ----------
        test_dataset
            The rows, with labels.
        metric_key_prefix
            The prefix of the metrics' names.

        Returns
        -------
        EvalPrediction
            Logits, labels and metrics.

        Raises
        ------
        InputError
            There are no rows.
        """
        if test_dataset is None or len(test_dataset) == 0:
            raise InputError("there is nothing to evaluate: the data set is empty or missing")
        model, size = self.model, self.args.per_device_eval_batch_size
        losses, weights, logits, labels = [], [], [], []
        for start in range(0, len(test_dataset), size):
            batch = dict(self._collate(rows_of(test_dataset, range(start, min(start + size, len(test_dataset))))))
            out = model(**batch)
            if out.loss is not None:
                losses.append(float(out.loss))
                weights.append(len(np.asarray(batch["input_ids"])))
            logits.append(_logits(out))
            names = [name for name in batch if "label" in name or name.endswith("_positions")]
            labels.append([np.asarray(batch[name]) for name in names])
        found = EvalPrediction(_one(_joined(logits)), _one(_joined(labels)))
        metrics = {"loss": float(np.average(losses, weights=weights))} if losses else {}
        if self._compute_metrics is not None:
            metrics |= {name: float(value) for name, value in self._compute_metrics(found).items()}
        named = {f"{metric_key_prefix}_{name}": value for name, value in metrics.items()}
        return EvalPrediction(found.predictions, found.label_ids, named)

    def save_model(self, folder: str | os.PathLike[str]) -> None:
        """Write a folder that transformers and this package load.

        Parameters
        ----------
        folder
            The folder.
        """
        from wordpiece_bert._internal.atomic_folder import AtomicFolder

        with AtomicFolder(Path(folder)) as output:
            output.begin()
            self._write_model(output)
            output.commit()

    def _write_model(self, output: AtomicFolder) -> None:
        self.model._write_files(output)
        if self._tokenizer is not None:
            self._tokenizer._write_files(output)

    def _description(self) -> dict[str, Any]:
        return {"class": self._network.model_class.__name__, "config": self._network.config.to_dict()}

    def _config(self) -> BertConfig:
        return self._network.config

    def _sizes(self, rows: Sequence[Any]) -> tuple[int, int]:
        return row_sizes(rows, scores=issubclass(self._network.model_class, MaskedLM | BertForPreTraining))

    def _changed(self) -> None:
        self._model = None

    def _batch(self, rows: Sequence[Any]) -> Mapping[str, npt.ArrayLike]:
        return self._collate(rows)

    def _gradients(self, batch: Any, dropout: KeyedDropout) -> tuple[float, Mapping[str, Array]]:
        found = compute(
            self._network,
            self._parameters,
            batch,
            dropout,
            gradient_checkpointing=self.args.gradient_checkpointing,
            trained_from=self._trained_from,
            engine=self._engine,
        )
        return found.loss, found.gradients


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
