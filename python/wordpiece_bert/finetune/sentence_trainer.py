"""`SentenceTrainer`: the training of a sentence encoder with a loss over columns of texts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune import metrics
from wordpiece_bert.finetune.batches import Dataset, rows_of
from wordpiece_bert.finetune.engines import engine_of
from wordpiece_bert.finetune.loop import TrainingLoop
from wordpiece_bert.finetune.losses import SoftmaxLoss
from wordpiece_bert.finetune.sentences import LOSS_PREFIX, SentenceNetwork

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from wordpiece_bert._internal.atomic_folder import AtomicFolder
    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.finetune.arguments import TrainingArguments
    from wordpiece_bert.finetune.dropout import KeyedDropout
    from wordpiece_bert.finetune.losses import Loss
    from wordpiece_bert.sentence.encoder import SentenceEncoder

__all__ = ["SentenceTrainer"]


class SentenceTrainer(TrainingLoop["SentenceEncoder"]):
    """Trains a sentence encoder with a loss over columns of texts.

    Parameters
    ----------
    encoder
        The encoder to start from; it does not change.
    args
        The settings.
    train_dataset
        Rows by number: dicts of texts, and optionally a ``label``. The texts are the loss's columns, in the order of
        the keys.
    loss
        One of `wordpiece_bert.finetune.losses`. Its own parameters are trained in place.
    eval_dataset
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
        self._network = SentenceNetwork(encoder)
        self._encoder: SentenceEncoder | None = encoder
        self._loss = loss
        parameters = {name: array.copy() for name, array in self._network.parameters().items()}
        parameters |= {LOSS_PREFIX + name: array for name, array in loss.state_dict().items()}
        engine = engine_of(encoder._model.backend, bf16=args.bf16)
        super().__init__(args, parameters, self._network.network, train_dataset, eval_dataset, engine)

    @property
    def model(self) -> SentenceEncoder:
        """An encoder with the parameters of the moment."""
        if self._encoder is None:
            start, own = self._network.encoder, self._parameters
            weights = {name: array.copy() for name, array in own.items() if not name.startswith(LOSS_PREFIX)}
            model = start._model
            trained = type(model)(model.config, weights, backend=model.backend, dtype=model.dtype)
            self._encoder = start._with_vocabulary(lambda _: trained, lambda tokenizer: tokenizer)
        return self._encoder

    def evaluate(self, eval_dataset: Dataset | None = None) -> dict[str, float]:
        """Compute loss and correlations over a data set, without dropout, and add them to the history.

        Parameters
        ----------
        eval_dataset
            The rows; those of the trainer by default.

        Returns
        -------
        dict of str to float
            ``eval_loss``; for pairs whose labels order them ``eval_pearson_cosine`` and ``eval_spearman_cosine``, the
            correlations of the labels with the cosines, unless one of them is constant.
        """
        dataset = self.eval_dataset if eval_dataset is None else eval_dataset
        if dataset is None or len(dataset) == 0:
            raise InputError("there is nothing to evaluate: the data set is empty or missing")
        size, total = self.args.per_device_eval_batch_size, 0.0
        cosines, labels = list[float](), list[float]()
        for start in range(0, len(dataset), size):
            rows = rows_of(dataset, range(start, min(start + size, len(dataset))))
            batch = self._batch(rows)
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
        found = {name: value for name, value in found.items() if name == "eval_loss" or math.isfinite(value)}
        self._log(**found)
        return found

    def save_model(self, folder: str | os.PathLike[str]) -> None:
        """Write a folder that sentence-transformers and this package load.

        Parameters
        ----------
        folder
            The folder.
        """
        self.model.save_pretrained(folder)

    def _write_model(self, output: AtomicFolder) -> None:
        self.model._write_files(output)

    def _description(self) -> dict[str, Any]:
        kind = type(self._loss).__name__
        return {"class": "SentenceEncoder", "config": self._network.network.config.to_dict(), "loss": kind}

    def _config(self) -> BertConfig:
        return self._network.network.config

    def _sizes(self, rows: Sequence[Any]) -> tuple[int, int]:
        encoder = self._network.encoder
        texts = [text for column in self._batch(rows)["columns"] for text in column]
        encoded = encoder.tokenizer.encode_batch(texts, truncation=True, max_length=encoder.max_seq_length)
        return len(encoded.ids), 0

    def _changed(self) -> None:
        self._encoder = None

    def _batch(self, rows: Sequence[Any]) -> dict[str, Any]:
        labels = [row["label"] for row in rows] if "label" in rows[0] else None
        names = [name for name in rows[0] if name != "label"]
        return {"columns": [[row[name] for row in rows] for name in names], "labels": labels}

    def _gradients(self, batch: Any, dropout: KeyedDropout) -> tuple[float, Mapping[str, Array]]:
        return self._network.compute(
            self._parameters,
            batch["columns"],
            batch.get("labels"),
            self._loss,
            dropout,
            gradient_checkpointing=self.args.gradient_checkpointing,
            trained_from=self._trained_from,
            engine=self._engine,
        )
