"""Pre-training: the trainer of an objective on the rows of an example folder."""

from __future__ import annotations

import hashlib
import json
import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from wordpiece_bert._internal.checks import check_instance, checked_probability
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.batches import row_blocks
from wordpiece_bert.finetune.objectives import objective_class
from wordpiece_bert.finetune.objectives.examples import check_fits
from wordpiece_bert.finetune.parameters import TRAINER
from wordpiece_bert.finetune.trainer import Trainer
from wordpiece_bert.pretraining.dataset import PretrainingDataset
from wordpiece_bert.pretraining.parts import masking_options, shards_of

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import numpy.typing as npt

    from wordpiece_bert.finetune.arguments import TrainingArguments
    from wordpiece_bert.finetune.batches import Dataset
    from wordpiece_bert.finetune.objectives import ExamplesObjective
    from wordpiece_bert.finetune.problem import TrainingProblem
    from wordpiece_bert.tokenizer.tokenizer import Tokenizer


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

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.finetune import PretrainingRows
    >>> from wordpiece_bert.pretraining import (
    ...     Masking,
    ...     PretrainingDataset,
    ...     build_examples,
    ...     build_token_store,
    ... )
    >>> tokenizer = Tokenizer.from_pretrained("models/words")
    >>> _ = build_token_store(
    ...     tokenizer,
    ...     "examples/texts/documents.txt",
    ...     "corpus.tokens",
    ...     show_progress_bar=False,
    ... )
    >>> _ = build_examples(
    ...     "corpus.tokens", "pairs", tokenizer, max_length=32, show_progress_bar=False
    ... )
    >>> rows = PretrainingRows(PretrainingDataset("pairs", masking=Masking(tokenizer)))
    >>> rows.set_epoch(1)  # other masks than in epoch 0
    >>> len(rows), sorted(rows[0])
    (7, ['attention_mask', 'input_ids', 'labels', 'next_sentence_label', 'token_type_ids'])
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
        masking = masking_options(data)
        files = [sorted(entry["files"].items()) for entry in shards_of(data)]
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

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.finetune import held_out_rows
    >>> from wordpiece_bert.pretraining import (
    ...     PretrainingDataset,
    ...     build_examples,
    ...     build_token_store,
    ... )
    >>> tokenizer = Tokenizer.from_pretrained("models/words")
    >>> _ = build_token_store(
    ...     tokenizer,
    ...     "examples/texts/documents.txt",
    ...     "corpus.tokens",
    ...     show_progress_bar=False,
    ... )
    >>> _ = build_examples(
    ...     "corpus.tokens", "pairs", tokenizer, max_length=32, show_progress_bar=False
    ... )
    >>> train, held_out = held_out_rows(PretrainingDataset("pairs"), 0.1)
    >>> len(train), len(held_out)
    (6, 1)
    """
    checked_probability("share", share)
    check_instance("dataset", dataset, PretrainingDataset)
    held = np.zeros(len(dataset), np.bool_)
    counts: dict[int, int] = {}
    for entry in shards_of(dataset):  # in the order of rows: pass by pass
        counts[entry["pass"]] = counts.get(entry["pass"], 0) + int(entry["rows"])
    end = 0
    for count in counts.values():
        end += count
        held[end - math.ceil(share * count) : end] = True
    if held.all():
        raise InputError(f"{dataset.path}: {len(dataset):,} rows, of which {share:g} held out leaves none to train on")
    return np.flatnonzero(~held), np.flatnonzero(held)


@completed_by(TRAINER)
class PretrainingTrainer(Trainer):
    """Pre-trains a model on the rows of an example folder.

    `evaluate` returns what the objective measures: ``MaskedTokens`` or ``ReplacedTokens`` in
    `wordpiece_bert.finetune.objectives`.

    Parameters
    ----------
    model : Model or ElectraPair
        For masked tokens `BertForPreTraining`, `BertForMaskedLM`, or a variant's class; `new_model` makes one with
        random weights. Labels of pairs are used if it has a head for them. For replaced tokens an `ElectraPair`. It
        does not change.
    train_dataset, eval_dataset : PretrainingRows, optional
        The rows. Masks that are drawn on reading change with each epoch of training, and never in evaluation if the
        data set of `eval_dataset` is another object.
    objective : str or ExamplesObjective, default "masked-tokens"
        What the model is trained for: ``"masked-tokens"``, ``"replaced-tokens"``, or one of your own.

    Attributes
    ----------
    args, train_dataset, eval_dataset, log_history, global_step
        As for `Trainer`.
    objective : ExamplesObjective
        What the model is trained for.

    Raises
    ------
    InputError
        The rows are longer than the model's, have ids that it does not have, or no labels for its head for pairs; or
        there is no such objective.
    ConfigError
        The model does not suit the objective: it has no head for masked tokens, or is not a pair.

    Examples
    --------
    A store of token ids, examples of it, and two steps of a small BERT:

    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.bert import BertConfig
    >>> from wordpiece_bert.finetune import (
    ...     PretrainingRows,
    ...     PretrainingTrainer,
    ...     TrainingArguments,
    ...     new_model,
    ... )
    >>> from wordpiece_bert.pretraining import (
    ...     Masking,
    ...     PretrainingDataset,
    ...     build_examples,
    ...     build_token_store,
    ... )
    >>> tokenizer = Tokenizer.from_pretrained("models/words")
    >>> _ = build_token_store(
    ...     tokenizer,
    ...     "examples/texts/documents.txt",
    ...     "corpus.tokens",
    ...     show_progress_bar=False,
    ... )
    >>> _ = build_examples(
    ...     "corpus.tokens", "pairs", tokenizer, max_length=32, show_progress_bar=False
    ... )
    >>> rows = PretrainingRows(PretrainingDataset("pairs", masking=Masking(tokenizer)))
    >>> config = BertConfig(
    ...     vocab_size=len(tokenizer),
    ...     hidden_size=48,
    ...     num_hidden_layers=2,
    ...     intermediate_size=96,
    ... )
    >>> args = TrainingArguments("out", max_steps=2, show_progress_bar=False)
    >>> trainer = PretrainingTrainer(new_model(config, pairs=True), args, rows)
    >>> trainer.train().global_step
    2
    >>> trainer.save_checkpoint("out/checkpoint-2")
    >>> again = PretrainingTrainer.from_checkpoint(
    ...     "out/checkpoint-2", new_model(config, pairs=True), args, rows
    ... )
    >>> again.global_step
    2
    """

    objective: ExamplesObjective[Any]

    def __init__(
        self,
        model: Any,
        args: TrainingArguments,
        train_dataset: PretrainingRows | None = None,
        eval_dataset: PretrainingRows | None = None,
        *,
        tokenizer: Tokenizer | None = None,
        objective: str | ExamplesObjective[Any] = "masked-tokens",
    ) -> None:
        self.objective = objective_class(objective, "examples")() if isinstance(objective, str) else objective
        super().__init__(model, args, train_dataset, eval_dataset, tokenizer=tokenizer)
        needs_pairs = type(model).__name__ if self.objective.reads_pairs(model) else None
        for name, rows in (("train_dataset", train_dataset), ("eval_dataset", eval_dataset)):
            if rows is not None:
                check_instance(name, rows, PretrainingRows)
                check_fits(self._problem.config, rows.dataset, needs_pairs)

    def _new_problem(self, model: Any, *_: object) -> TrainingProblem[Any]:
        return self.objective.problem(model)

    @classmethod
    @completed_by(TRAINER)
    def from_checkpoint(  # type: ignore[override]
        cls,
        folder: str | os.PathLike[str],
        model: Any,
        args: TrainingArguments,
        train_dataset: PretrainingRows | None = None,
        eval_dataset: PretrainingRows | None = None,
        *,
        tokenizer: Tokenizer | None = None,
        objective: str | ExamplesObjective[Any] = "masked-tokens",
    ) -> Self:
        """Make a trainer and restore a checkpoint.

        Parameters
        ----------
        objective : str or ExamplesObjective, default "masked-tokens"
            What the model is trained for.

        Returns
        -------
        PretrainingTrainer
            The trainer.
        """
        trainer = cls(model, args, train_dataset, eval_dataset, tokenizer=tokenizer, objective=objective)
        trainer.load_checkpoint(folder)
        return trainer

    def _measured(self, dataset: Dataset) -> dict[str, float]:
        batches = (self._problem.batch(rows) for rows in row_blocks(dataset, self.args.per_device_eval_batch_size))
        return self.objective.measured(self.model, batches, self.args.seed)
