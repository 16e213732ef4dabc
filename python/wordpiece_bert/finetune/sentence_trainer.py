"""`SentenceTrainer`: the training of a sentence encoder with a loss over columns of texts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.finetune import metrics
from wordpiece_bert.finetune.batches import Dataset, row_blocks
from wordpiece_bert.finetune.loop import TrainingLoop
from wordpiece_bert.finetune.losses import SoftmaxLoss
from wordpiece_bert.finetune.sentences import SentenceProblem

if TYPE_CHECKING:
    from wordpiece_bert.finetune.arguments import TrainingArguments
    from wordpiece_bert.finetune.losses import Loss
    from wordpiece_bert.sentence.dense.encoder import SentenceEncoder

__all__ = ["SentenceTrainer"]


class SentenceTrainer(TrainingLoop["SentenceEncoder"]):
    """Trains a sentence encoder with a loss over columns of texts.

    `evaluate` computes without dropout. It returns ``eval_loss``, and for pairs whose labels order them
    ``eval_pearson_cosine`` and ``eval_spearman_cosine``, the correlations of the labels with the cosines, unless one of
    them is constant.

    Parameters
    ----------
    encoder : SentenceEncoder
        The encoder to start from; it does not change.
    args : TrainingArguments
        The settings.
    train_dataset : sequence of dict
        Rows by number: dicts of texts, and optionally a ``label``. The texts are the loss's columns, in the order of
        the keys.
    loss : loss of sentence vectors
        One of `wordpiece_bert.finetune.losses`. Its own parameters are trained in place.
    eval_dataset : sequence of dict, optional
        Rows for `evaluate`.

    Attributes
    ----------
    args, train_dataset, eval_dataset
        As passed.
    log_history : list of dict
        As for `Trainer`.
    global_step : int
        How many steps have been made.
    """

    def __init__(
        self,
        encoder: SentenceEncoder,
        args: TrainingArguments,
        train_dataset: Dataset | None,
        loss: Loss,
        eval_dataset: Dataset | None = None,
    ) -> None:
        self._loss = loss
        super().__init__(SentenceProblem(encoder, loss), args, train_dataset, eval_dataset)

    def _measured(self, dataset: Dataset) -> dict[str, float]:
        total, cosines, labels = 0.0, list[float](), list[float]()
        for rows in row_blocks(dataset, self.args.per_device_eval_batch_size):
            batch = self._problem.batch(rows)
            columns = [self.model.encode(list(column)) for column in batch["columns"]]
            total += self._loss.value_and_grad(columns, batch["labels"]).loss * len(rows)
            if len(columns) == 2 and batch["labels"] is not None and not isinstance(self._loss, SoftmaxLoss):
                a, b = (normalize(column) for column in columns)
                cosines += (a * b).sum(axis=1).tolist()
                labels += [float(label) for label in batch["labels"]]
        found = {"eval_loss": total / len(dataset)}
        if labels:
            found["eval_pearson_cosine"] = metrics.pearson(cosines, labels)
            found["eval_spearman_cosine"] = metrics.spearman(cosines, labels)
        return {name: value for name, value in found.items() if name == "eval_loss" or math.isfinite(value)}
