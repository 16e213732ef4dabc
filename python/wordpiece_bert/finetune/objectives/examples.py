"""Objectives of pre-training: what a model learns from the rows of an example folder."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert.losses import log_softmax
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.parameters import FITTING
from wordpiece_bert.pretraining.dataset import PAIR_LABELS

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.finetune.problem import TrainingProblem
    from wordpiece_bert.pretraining.dataset import PretrainingDataset

Trained = TypeVar("Trained")


class ExamplesObjective(Generic[Trained]):
    """What a model is pre-trained for. `PretrainingTrainer` and the command ``pretrain`` call these methods.

    Examples
    --------
    ``MaskedTokens`` is one: what it makes, needs and measures.

    >>> from wordpiece_bert.finetune.objectives import objective_class
    >>> objective = objective_class("masked-tokens", "examples")()
    >>> sizes = {
    ...     "vocab_size": 100,
    ...     "hidden_size": 48,
    ...     "num_hidden_layers": 2,
    ...     "intermediate_size": 96,
    ... }
    >>> model = objective.new_model(objective.new_config(sizes), pairs=True)
    >>> type(model).__name__, objective.reads_pairs(model)
    ('BertForPreTraining', True)
    >>> row = {
    ...     "input_ids": [[2, 4, 3]],
    ...     "attention_mask": [[1, 1, 1]],
    ...     "token_type_ids": [[0, 0, 0]],
    ... }
    >>> batch = {**row, "labels": [[-100, 17, -100]], "next_sentence_label": [0]}
    >>> sorted(objective.measured(model, [batch], seed=0))[:4]
    ['eval_loss', 'eval_mlm_accuracy', 'eval_mlm_loss', 'eval_pair_accuracy']
    >>> objective.shown({"eval_perplexity": 12.5, "eval_mlm_accuracy": 0.4})
    'perplexity 12.50, 40.0% of tokens right'
    """

    #: Metrics that are not on the scale of losses or of shares, and are left out of the picture of a training.
    off_scale: ClassVar[tuple[str, ...]] = ()

    def new_config(self, sizes: Mapping[str, Any]) -> BertConfig:
        """Return the configuration of a new model.

        Parameters
        ----------
        sizes : mapping
            Values of fields of `BertConfig`.
        """
        raise NotImplementedError

    def config_from_file(self, file: str | os.PathLike[str]) -> BertConfig:
        """Read the configuration of a new model.

        Parameters
        ----------
        file : path
            A ``config.json``.

        Examples
        --------
        >>> from wordpiece_bert.finetune.objectives import objective_class
        >>> objective = objective_class("masked-tokens", "examples")()
        >>> objective.config_from_file("models/words/config.json").hidden_size
        67
        """
        raise NotImplementedError

    @completed_by(FITTING)
    def new_model(self, config: BertConfig, *, pairs: bool, seed: int = 42, backend: str = "rust") -> Trained:
        """Return a model with random weights."""
        raise NotImplementedError

    @completed_by(FITTING)
    def load_model(
        self, name: str | os.PathLike[str], *, pairs: bool, seed: int = 42, download: bool = False
    ) -> Trained:
        """Load a model to start from; what it lacks is drawn.

        Examples
        --------
        >>> from wordpiece_bert.finetune.objectives import objective_class
        >>> objective = objective_class("masked-tokens", "examples")()
        >>> type(objective.load_model("models/words", pairs=False)).__name__
        'BertForMaskedLM'
        """
        raise NotImplementedError

    def problem(self, model: Trained) -> TrainingProblem[Trained]:
        """Return the loss and the parameters of a model.

        Parameters
        ----------
        model : model
            The model to start from.

        Raises
        ------
        ConfigError
            The model has another class than the objective needs.

        Examples
        --------
        >>> from wordpiece_bert.finetune.objectives import objective_class
        >>> objective = objective_class("masked-tokens", "examples")()
        >>> model = objective.load_model("models/words", pairs=False)
        >>> "bert.embeddings.word_embeddings.weight" in objective.problem(model).parameters()
        True
        """
        raise NotImplementedError

    def reads_pairs(self, model: Trained) -> bool:
        """Return whether a model needs the labels of pairs.

        Parameters
        ----------
        model : model
            The model.

        Returns
        -------
        bool
            True if it does.
        """
        del model
        return False

    def measured(self, model: Trained, batches: Iterable[Mapping[str, Any]], seed: int) -> dict[str, float]:
        """Return the loss and the metrics of batches, by names that begin with ``eval_``.

        Parameters
        ----------
        model : model
            The model of the moment.
        batches : iterable of dict
            The batches of the problem.
        seed : int
            Determines what is random in an evaluation.
        """
        raise NotImplementedError

    def shown(self, metrics: Mapping[str, float]) -> str:
        """Return the metrics that matter, for the last line of the command.

        Parameters
        ----------
        metrics : mapping of str to float
            What `measured` returned.
        """
        raise NotImplementedError


def collated(rows: Sequence[Any]) -> tuple[dict[str, Any], Any]:
    """Return the arguments of a model for rows as `PretrainingRows` returns them, and the labels of pairs or None."""
    if hasattr(rows, "batch"):
        batch = dict(rows.batch)
    else:  # rows of one length
        batch = {name: np.stack([np.asarray(row[name]) for row in rows]) for name in rows[0]}
    return batch, next((batch.pop(name) for name in PAIR_LABELS.values() if name in batch), None)


def check_fits(config: BertConfig, dataset: PretrainingDataset, needs_pairs: str | None) -> None:
    """Check that a model can read the rows of a data set.

    Parameters
    ----------
    config : BertConfig
        The configuration of the model.
    dataset : PretrainingDataset
        The data set.
    needs_pairs : str, optional
        The class of the model, if it needs labels of pairs.

    Raises
    ------
    InputError
        Rows are too long, have ids that the model does not have, or no labels of pairs.
    """
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
    if needs_pairs and dataset.objective not in PAIR_LABELS:
        raise InputError(
            f"{dataset.path}: its objective is {dataset.objective!r}, without labels of pairs, which "
            f"{needs_pairs} needs; use BertForMaskedLM"
        )


def metrics_of_words(words: Sums) -> dict[str, float]:
    """Return the metrics of masked tokens. The perplexity of a loss above 700 does not fit a float."""
    perplexity = math.exp(min(words.loss, 700.0))
    return {"eval_mlm_loss": words.loss, "eval_perplexity": perplexity, "eval_mlm_accuracy": words.accuracy}


class Sums:
    """Cross entropy and accuracy over batches."""

    def __init__(self) -> None:
        self._loss, self._right, self._count = 0.0, 0, 0

    def add(self, logits: Array, labels: npt.NDArray[Any]) -> None:
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
        """The share of labels that the logits are right about."""
        return self._right / max(self._count, 1)
