"""Whether a training can learn something from its rows: what would end with a loss of 0 is refused, or warned of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.ignored_label import IGNORED
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import InputError, TrainingWarning
from wordpiece_bert.finetune.batches import batches_of_epoch, label_column, row_blocks
from wordpiece_bert.finetune.losses import (
    ContrastiveLoss,
    CoSENTLoss,
    CosineSimilarityLoss,
    MatryoshkaLoss,
    MultipleNegativesRankingLoss,
    SoftmaxLoss,
    checked_labels,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from wordpiece_bert.finetune.arguments import TrainingArguments
    from wordpiece_bert.finetune.batches import Dataset
    from wordpiece_bert.finetune.losses import Loss


def columns_of(rows: Sequence[Any], first: int = 0, names: Sequence[str] | None = None) -> dict[str, list[Any]]:
    """Return the columns of rows of texts.

    Parameters
    ----------
    rows : sequence of dict
        The rows.
    first : int, default 0
        The number of the first of them, for messages.
    names : sequence of str, optional
        Their columns in order; by default the columns of the first row.

    Raises
    ------
    InputError
        A row has other columns.
    """
    if names is None:
        _check_mapping(rows[0], first)
        names = list(rows[0])
    for number, row in enumerate(rows, first):
        _check_mapping(row, number)
        if row.keys() != set(names):
            raise InputError(
                f"row {number} has the columns {', '.join(map(str, row))}, but the first one has {', '.join(names)}: "
                "all rows need the same"
            )
    return {name: [row[name] for row in rows] for name in names}


def _check_mapping(row: Any, number: int) -> None:
    if not isinstance(row, Mapping):
        raise InputError(f"row {number} must be a dict of texts by column, not {type(row).__name__}: {row!r:.80}")


def check_sentence_rows(dataset: Dataset, loss: Loss, args: TrainingArguments | None) -> None:
    """Check rows of texts, and that a loss can learn from them; a data set with a fingerprint is not read.

    Parameters
    ----------
    dataset : sequence of dict
        The rows.
    loss : Loss
        The loss.
    args : TrainingArguments, optional
        The settings, by which batches are made; None for rows that are not trained on.

    Raises
    ------
    InputError
        A row has other columns than the first, or a value that is not a text; a label is out of the range of the loss;
        or the loss compares the rows of a batch, and there is nothing to compare.

    Warns
    -----
    TrainingWarning
        All rows have one label.
    """
    while isinstance(loss, MatryoshkaLoss):
        loss = loss.loss
    labels = list(_read(dataset))
    if isinstance(loss, ContrastiveLoss | CosineSimilarityLoss) and labels:
        checked_labels(loss, labels, len(labels))
    if args is None:
        return
    names = columns_of([dataset[0]]).keys()
    compares = _compares(loss, len(names - {label_column(names)}))
    if compares and len(next(batches_of_epoch(dataset, args, 0))) < 2:
        raise InputError(
            f"{type(loss).__name__} {compares}, but batches have one row, so that nothing is learned: set "
            "per_device_train_batch_size to 2 or more, and give more rows with different texts"
        )
    if len(labels) > 1 and all(label == labels[0] for label in labels):
        if isinstance(loss, CoSENTLoss):
            raise InputError(f"{type(loss).__name__} {compares}, but all {len(labels):,} labels are {labels[0]!r}")
        if isinstance(loss, ContrastiveLoss | CosineSimilarityLoss | SoftmaxLoss):
            warn_equal_labels(len(labels), labels[0])


def _compares(loss: Loss, columns: int) -> str | None:
    """Return how a loss compares the rows of a batch, if it learns nothing from a single one."""
    if isinstance(loss, CoSENTLoss):
        return "compares pairs with different labels"
    if isinstance(loss, MultipleNegativesRankingLoss) and columns == 2:
        return "compares each positive with those of the other rows of a batch"
    return None


def _read(dataset: Dataset) -> Iterator[Any]:
    """Check the rows of a data set, and yield their labels, if they have any."""
    if getattr(dataset, "fingerprint", None) is not None:
        return
    names, start = list(dataset[0]), 0
    for rows in row_blocks(dataset, 1024):
        columns = columns_of(rows, start, names)
        label = label_column(columns)
        for name, values in columns.items():
            if (
                name != label
                and (wrong := next((n for n, text in enumerate(values) if not isinstance(text, str)), None)) is not None
            ):
                raise InputError(
                    f"row {start + wrong}: the column {name!r} has {values[wrong]!r:.80}, which is no text"
                )
        yield from columns.get(label, ()) if label else ()
        start += len(rows)


def warn_of_one_label(dataset: Dataset) -> None:
    """Warn if all ``labels`` of the rows of a data set are the same; one with a fingerprint is not read.

    Parameters
    ----------
    dataset : sequence of dict
        The rows.

    Warns
    -----
    TrainingWarning
        They are.
    """
    if getattr(dataset, "fingerprint", None) is not None or len(dataset) < 2:
        return
    found: set[Any] = set()
    for rows in row_blocks(dataset, 64):
        for row in rows:
            if not isinstance(row, Mapping) or "labels" not in row:
                return
            found.update(np.asarray(row["labels"]).reshape(-1).tolist())
        if len(found - {IGNORED}) > 1:
            return
    warn_equal_labels(len(dataset), next(iter(found - {IGNORED}), IGNORED))


def warn_equal_labels(rows: int, label: Any) -> None:
    """Emit a `TrainingWarning` that all rows have a label."""
    warn(f"all {rows:,} rows have the label {label!r}: the model learns to give it to every text", TrainingWarning)
