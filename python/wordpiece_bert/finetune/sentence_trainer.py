"""`SentenceTrainer`: the training of a sentence encoder with a loss over columns of texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.checks import iterates
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.errors import InputError
from wordpiece_bert.evaluation.evaluator import results_of
from wordpiece_bert.finetune import metrics
from wordpiece_bert.finetune.batches import Dataset, row_blocks
from wordpiece_bert.finetune.loop import TrainingLoop
from wordpiece_bert.finetune.losses import SoftmaxLoss
from wordpiece_bert.finetune.sentences import SentenceProblem
from wordpiece_bert.sentence.dense.parts import transformer_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from wordpiece_bert.finetune.arguments import TrainingArguments
    from wordpiece_bert.finetune.losses import Loss
    from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder


class SentenceTrainer(TrainingLoop["SentenceEncoder"]):
    """Trains a sentence encoder with a loss over columns of texts.

    `evaluate` computes without dropout. It returns ``eval_loss``, the mean of the losses of its batches, of which a
    loss that compares the rows of a batch depends on their size; for pairs whose labels order them
    ``eval_pearson_cosine`` and ``eval_spearman_cosine``, the correlations of the labels with the cosines, NaN if one of
    them is constant; and what the evaluators measure, with ``eval_`` before the keys.

    Parameters
    ----------
    encoder : SentenceEncoder
        The encoder to start from; it does not change.
    args : TrainingArguments
        The settings.
    train_dataset : sequence of dict
        Rows by number: dicts of texts, with the same keys in each, and optionally a ``label``, ``labels``, ``score`` or
        ``scores``, of which the first is the label. The texts are the loss's columns, in the order of the first row's
        keys.
    loss : loss of sentence vectors
        One of `wordpiece_bert.finetune.losses`. Its own parameters are trained in place.
    eval_dataset : sequence of dict, optional
        Rows for `evaluate`.
    evaluator : evaluator, or list of them, optional
        Evaluators of `wordpiece_bert.evaluation`, or other functions of an encoder, a folder, the epoch and the step
        that return a dict of measures or one number. `evaluate` calls them with the encoder of the moment and the
        folder ``eval`` of `TrainingArguments.output_dir`, where they add to their files of results. Their keys may be
        `TrainingArguments.metric_for_best_model`; without `eval_dataset` it is the primary measure of the first, unless
        it is given. Of the primary measure of an evaluator whose ``greater_is_better`` is False the lowest is best.

    Attributes
    ----------
    args, train_dataset, eval_dataset
        As passed.
    log_history : list of dict
        As for `Trainer`.
    global_step : int
        How many steps have been made.

    Examples
    --------
    >>> from wordpiece_bert import SentenceEncoder
    >>> from wordpiece_bert.finetune import SentenceTrainer, TrainingArguments
    >>> from wordpiece_bert.finetune.losses import CosineSimilarityLoss
    >>> rows = [
    ...     {"a": "bread", "b": "dough", "label": 1.0},
    ...     {"a": "bread", "b": "wheel", "label": 0.0},
    ... ]
    >>> args = TrainingArguments(
    ...     "out", max_steps=10, learning_rate=0.05, show_progress_bar=False
    ... )
    >>> trainer = SentenceTrainer(
    ...     SentenceEncoder("models/sentences"), args, rows, CosineSimilarityLoss(), rows
    ... )
    >>> before = trainer.evaluate()["eval_loss"]
    >>> trainer.train().global_step
    10
    >>> trainer.evaluate()["eval_loss"] < before
    True
    """

    def __init__(
        self,
        encoder: SentenceEncoder,
        args: TrainingArguments,
        train_dataset: Dataset | None,
        loss: Loss,
        eval_dataset: Dataset | None = None,
        evaluator: Callable[..., Any] | Iterable[Callable[..., Any]] | None = None,
    ) -> None:
        self._loss = loss
        self._evaluators = _listed(evaluator)
        self._primary: dict[str, bool] = {}  # of each evaluator, and whether a greater value is better
        problem = SentenceProblem(encoder, loss)
        super().__init__(problem, args, train_dataset, eval_dataset)
        if train_dataset is not None and len(train_dataset) and isinstance(train_dataset[0], Mapping):
            problem.columns = list(train_dataset[0])

    @completed_by(TrainingLoop.evaluate)
    def evaluate(self, eval_dataset: Dataset | None = None) -> dict[str, float]:
        """Compute loss and metrics over a data set, call the evaluators, and add all to the history.

        Returns
        -------
        dict of str to float
            ``eval_loss``, if there are rows, and the measures of the evaluators.

        Raises
        ------
        InputError
            There are neither rows nor evaluators, or an evaluator returned something else than measures.
        """
        dataset = self.eval_dataset if eval_dataset is None else eval_dataset
        measured = {} if dataset is None and self._evaluators else self._measured(self._some_rows(dataset))
        folder = Path(self.args.output_dir) / "eval"
        for number, evaluator in enumerate(self._evaluators):
            found = evaluator(self.model, folder, self._epoch(), self.global_step)
            results, primary = results_of(evaluator, found, "evaluator" if number == 0 else f"evaluator_{number}")
            measured |= {f"eval_{key}": float(value) for key, value in results.items()}
            self._primary[f"eval_{primary}"] = bool(getattr(evaluator, "greater_is_better", True))
        self._log(**measured)
        return measured

    def _check_evaluates(self) -> None:
        if self.eval_dataset is not None or not self._evaluators:
            super()._check_evaluates()

    def _best_metric(self) -> str:
        given = super()._best_metric()
        if given == "eval_loss" and self.eval_dataset is None and self._primary:
            return next(iter(self._primary))
        return given

    def _greater_is_better(self, key: str) -> bool:
        falls = self.args.greater_is_better is None and self._primary.get(key) is False
        return not falls and super()._greater_is_better(key)

    def _measured(self, dataset: Dataset) -> dict[str, float]:
        self._problem.check(dataset, None)
        total, cosines, labels = 0.0, list[float](), list[float]()
        width = transformer_of(self.model).folder.dimension
        for rows in row_blocks(dataset, self.args.per_device_eval_batch_size):
            batch = self._problem.batch(rows)
            # As they are trained: with neither the default prompt nor the cut of the encoder's settings.
            columns = [self.model.encode(list(column), prompt="", truncate_dim=width) for column in batch["columns"]]
            total += self._loss.value_and_grad(columns, batch["labels"]).loss * len(rows)
            if len(columns) == 2 and batch["labels"] is not None and not isinstance(self._loss, SoftmaxLoss):
                a, b = (normalize(column) for column in columns)
                cosines += (a * b).sum(axis=1).tolist()
                labels += [float(label) for label in batch["labels"]]
        found = {"eval_loss": total / len(dataset)}
        if labels:
            found["eval_pearson_cosine"] = metrics.pearson(cosines, labels)
            found["eval_spearman_cosine"] = metrics.spearman(cosines, labels)
        return found


def _listed(evaluators: Any) -> list[Callable[..., Any]]:
    """Return the evaluators as a list, checked."""
    listed = list(evaluators) if iterates(evaluators) else [] if evaluators is None else [evaluators]
    for evaluator in listed:
        if not callable(evaluator):
            raise InputError(f"evaluator must be an evaluator or a list of them, not {type(evaluator).__name__}")
    return listed
