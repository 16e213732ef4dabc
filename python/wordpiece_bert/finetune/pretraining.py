"""Pre-training: BERT's masked-language objective, with or without that of pairs, on the rows of an example folder.

The objectives are those of Devlin et al., "BERT" (2019), section 3.1: the loss is the mean cross entropy of the masked
tokens plus, where rows are pairs, that of the next sentence (or, for pairs of ALBERT, of the sentences' order).
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from wordpiece_bert.bert.checkpoint.names import Layout, draw_weights
from wordpiece_bert.bert.heads.base import pooler_output
from wordpiece_bert.bert.heads.bert import BertForMaskedLM, BertForPreTraining
from wordpiece_bert.bert.inputs import as_array, check_labels
from wordpiece_bert.bert.losses import IGNORED, log_softmax
from wordpiece_bert.errors import ConfigError, InputError
from wordpiece_bert.finetune.batches import rows_of
from wordpiece_bert.finetune.trainer import Trainer
from wordpiece_bert.pretraining.dataset import PAIR_LABELS, PretrainingDataset

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.base import Model
    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.heads.base import HeadModel
    from wordpiece_bert.finetune.arguments import TrainingArguments
    from wordpiece_bert.tokenizer import Tokenizer

__all__ = ["PretrainingRows", "PretrainingTrainer", "held_out_rows", "new_model"]


def new_model(config: BertConfig, *, pairs: bool, seed: int = 42, backend: str = "rust") -> HeadModel:
    """Return BERT with the heads of pre-training and weights drawn for it.

    Weights are N(0, initializer_range²), biases 0, norms 1, and the row of the padding token 0.

    Parameters
    ----------
    config : BertConfig
        The sizes.
    pairs : bool
        Whether it has the head for pairs too: `BertForPreTraining`, otherwise `BertForMaskedLM`.
    seed : int, default 42
        Determines the weights.
    backend : {"rust", "numpy"}, default "rust"
        The engine that evaluates.
    """
    model_class: type[HeadModel] = BertForPreTraining if pairs else BertForMaskedLM
    layout = model_class._layout(config)
    shapes = {layout.prefix + name: shape for name, shape in layout.base.items()} | dict(layout.head)
    names = sorted(name for name in shapes if name not in layout.tied)
    drawn = draw_weights(names, Layout({}, head=shapes), config, seed, config.initializer_range)
    if config.pad_token_id is not None and config.pad_token_id < config.vocab_size:
        drawn[f"{layout.prefix}embeddings.word_embeddings.weight"][config.pad_token_id] = 0.0
    return model_class(config, drawn, backend=backend, source="new weights")


class PretrainingRows:
    """Some rows of a `PretrainingDataset`, for a trainer.

    Parameters
    ----------
    dataset : PretrainingDataset
        The data set.
    rows : array of int64, optional
        The numbers of the rows; all by default.

    Attributes
    ----------
    dataset : PretrainingDataset
        As passed.
    rows : array of int64
        The numbers of the rows.

    Raises
    ------
    InputError
        The rows have no masks, or they are packed, for which a model would need masks of attention between pairs of
        tokens; training here computes nothing for padding, so packing saves nothing.
    """

    dataset: PretrainingDataset
    rows: npt.NDArray[np.int64]

    def __init__(self, dataset: PretrainingDataset, rows: npt.NDArray[np.int64] | None = None) -> None:
        if not dataset.masked and dataset.masking is None:
            raise InputError(f"{dataset.path}: its rows are not masked; pass masking= to PretrainingDataset")
        if dataset.packed:
            raise InputError(
                f"{dataset.path}: its rows are packed; build examples with packing=False, which costs nothing here"
            )
        self.dataset = dataset
        self.rows = np.arange(len(dataset)) if rows is None else rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return one row."""
        return self.dataset[int(self.rows[index])]

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        """Return several rows, padded to one length; the list carries the batch."""
        return self.dataset.__getitems__(self.rows[np.asarray(indices, np.int64)].tolist())

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch: masks that are drawn on reading depend on it.

        Parameters
        ----------
        epoch : int
            Counted from 0.
        """
        self.dataset.set_epoch(epoch)

    @property
    def fingerprint(self) -> str:
        """A hash of the rows and of what their masks depend on."""
        data = self.dataset
        masking = None if data.masking is None else data.masking._options
        files = [sorted(entry["files"].items()) for entry in data._shards]
        known = json.dumps([data.objective, data.options, files, masking, data.seed], sort_keys=True, default=str)
        return hashlib.sha256(known.encode() + np.ascontiguousarray(self.rows).tobytes()).hexdigest()[:32]


def held_out_rows(dataset: PretrainingDataset, share: float) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Divide the rows of a data set into those to train on and those to evaluate on.

    The last rows of each pass are held out, which come from the last documents of the corpus: with several passes
    (``dupe_factor``) no document is in both parts, but for one or two at the border.

    Parameters
    ----------
    dataset : PretrainingDataset
        The data set.
    share : float
        The share to hold out, from 0 to below 1; of a share above 0, one row at least.

    Returns
    -------
    tuple of two arrays of int64
        The numbers of the rows to train on, and of those to evaluate on, ascending.

    Raises
    ------
    InputError
        No row would be left to train on.
    """
    held = np.zeros(len(dataset), np.bool_)
    counts: dict[int, int] = {}
    for entry in dataset._shards:  # in the order of rows: pass by pass
        counts[entry["pass"]] = counts.get(entry["pass"], 0) + int(entry["rows"])
    end = 0
    for count in counts.values():
        end += count
        held[end - math.ceil(share * count) : end] = True
    if held.all():
        raise InputError(f"{dataset.path}: {len(dataset):,} rows, of which {share:g} held out leaves none to train on")
    return np.flatnonzero(~held), np.flatnonzero(held)


class PretrainingTrainer(Trainer):
    """Pre-trains a model on the rows of an example folder.

    Parameters
    ----------
    model : Model
        `BertForPreTraining`, `BertForMaskedLM`, or a variant's class for masked tokens; `new_model` makes one with
        random weights. It does not change. Labels of pairs are used if it has a head for them.
    args : TrainingArguments
        The settings.
    train_dataset, eval_dataset : PretrainingRows, optional
        The rows. Masks that are drawn on reading change with each epoch of training, and never in evaluation if the
        data set of `eval_dataset` is another object.
    tokenizer : Tokenizer, optional
        Written with the model.

    Attributes
    ----------
    args, train_dataset, eval_dataset, log_history, global_step
        As for `Trainer`.

    Raises
    ------
    InputError
        The rows are longer than the model's, have ids that it does not have, or no labels for its head for pairs.
    ConfigError
        The model has no head for masked tokens.
    """

    def __init__(
        self,
        model: Model,
        args: TrainingArguments,
        train_dataset: PretrainingRows | None = None,
        eval_dataset: PretrainingRows | None = None,
        *,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        if not hasattr(model, "predict"):
            raise ConfigError(
                f"{type(model).__name__} has no head for masked tokens; use BertForPreTraining or BertForMaskedLM"
            )
        self._pairs = isinstance(model, BertForPreTraining)
        for rows in (train_dataset, eval_dataset):
            if rows is not None:
                _check_fits(model, rows.dataset, pairs=self._pairs)
        super().__init__(model, args, train_dataset, eval_dataset, self._inputs, tokenizer=tokenizer)

    @classmethod
    def from_checkpoint(  # type: ignore[override]
        cls,
        folder: str | os.PathLike[str],
        model: Model,
        args: TrainingArguments,
        train_dataset: PretrainingRows | None = None,
        eval_dataset: PretrainingRows | None = None,
        *,
        tokenizer: Tokenizer | None = None,
    ) -> Self:
        """Make a trainer and restore a checkpoint.

        Parameters
        ----------
        folder : path
            The checkpoint.
        model, args, train_dataset, eval_dataset, tokenizer
            As for the class.
        """
        trainer = cls(model, args, train_dataset, eval_dataset, tokenizer=tokenizer)
        trainer.load_checkpoint(folder)
        return trainer

    def _inputs(self, rows: Sequence[Any]) -> Mapping[str, npt.ArrayLike]:
        """Return the arguments of the model for rows as `PretrainingRows` returns them."""
        batch: dict[str, Any] = dict(rows.batch) if hasattr(rows, "batch") else _stacked(rows)
        label = next((batch.pop(name) for name in PAIR_LABELS.values() if name in batch), None)
        if self._pairs:
            batch["next_sentence_label"] = label
        return batch

    def evaluate(self, eval_dataset: Any = None) -> dict[str, float]:
        """Compute the loss of masked tokens and its parts over a data set, and add them to the history.

        The head for masked tokens runs at masked positions only, so that memory is bounded by a batch.

        Parameters
        ----------
        eval_dataset : PretrainingRows, optional
            The rows; those of the trainer by default.

        Returns
        -------
        dict of str to float
            ``eval_loss``, the sum of the parts; ``eval_mlm_loss``, the mean over all masked tokens;
            ``eval_perplexity``, its exponential; ``eval_mlm_accuracy``; and with a head for pairs ``eval_pair_loss``
            and ``eval_pair_accuracy``.

        Raises
        ------
        InputError
            There are no rows.
        """
        dataset = self.eval_dataset if eval_dataset is None else eval_dataset
        if dataset is None or len(dataset) == 0:
            raise InputError("there is nothing to evaluate: the data set is empty or missing")
        words, pairs = _Sums(), _Sums()
        model: Any = self.model
        size = self.args.per_device_eval_batch_size
        for start in range(0, len(dataset), size):
            batch = dict(self._collate(rows_of(dataset, range(start, min(start + size, len(dataset))))))
            shape = np.shape(batch["input_ids"])
            labels = check_labels("labels", batch["labels"], shape, model.config.vocab_size, IGNORED)
            out = model.base_model(batch["input_ids"], batch["attention_mask"], batch["token_type_ids"])
            chosen = labels != IGNORED
            with np.errstate(under="ignore"):
                words.add(model.predict(out.last_hidden_state[chosen]), labels[chosen])  # [n, V], [n]
                if self._pairs:
                    pairs.add(
                        model._next_sentence(pooler_output(out)), as_array("labels", batch["next_sentence_label"])
                    )
        metrics = {"eval_loss": words.loss + (pairs.loss if self._pairs else 0.0), "eval_mlm_loss": words.loss}
        metrics |= {"eval_perplexity": math.exp(min(words.loss, 700.0)), "eval_mlm_accuracy": words.accuracy}
        if self._pairs:
            metrics |= {"eval_pair_loss": pairs.loss, "eval_pair_accuracy": pairs.accuracy}
        self._log(**metrics)
        return metrics


class _Sums:
    """Cross entropy and accuracy over batches."""

    def __init__(self) -> None:
        self._loss, self._right, self._count = 0.0, 0, 0

    def add(self, logits: npt.NDArray[Any], labels: npt.NDArray[Any]) -> None:
        """Add logits [n, C] and labels [n]."""
        log_p = log_softmax(logits)
        self._loss -= float(log_p[np.arange(len(labels)), labels].sum(dtype=np.float64))
        self._right += int((logits.argmax(axis=-1) == labels).sum())
        self._count += len(labels)

    @property
    def loss(self) -> float:
        """The mean cross entropy."""
        return self._loss / max(self._count, 1)

    @property
    def accuracy(self) -> float:
        """The share of labels with the largest logit."""
        return self._right / max(self._count, 1)


def _check_fits(model: Model, dataset: PretrainingDataset, *, pairs: bool) -> None:
    config = model.config
    if dataset.row_length > config.longest_row:
        raise InputError(
            f"{dataset.path}: rows have up to {dataset.row_length} tokens, the model's at most {config.longest_row}; "
            "choose a model with more positions, or build examples with a smaller max_length"
        )
    if dataset.vocab_size > config.vocab_size:
        raise InputError(
            f"{dataset.path}: was made with a tokenizer of {dataset.vocab_size:,} tokens, but the model has "
            f"{config.vocab_size:,}; build it with the model's tokenizer, or extend the model"
        )
    if pairs and dataset.objective not in PAIR_LABELS:
        raise InputError(
            f"{dataset.path}: its objective is {dataset.objective!r}, without labels of pairs, which "
            f"{type(model).__name__} needs; use BertForMaskedLM"
        )


def _stacked(rows: Sequence[Any]) -> dict[str, npt.NDArray[Any]]:
    """Return the batch of rows of one length."""
    return {name: np.stack([np.asarray(row[name]) for row in rows]) for name in rows[0]}
