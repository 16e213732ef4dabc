"""A head for token classification on frozen vectors: logistic regression over the encoder's token vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.checks import whole_number
from wordpiece_bert._internal.ignored_label import IGNORED
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.progress import shown_progress
from wordpiece_bert.bert.heads.head_model import HeadModel
from wordpiece_bert.bert.heads.kinds import TokenClassification
from wordpiece_bert.bert.heads.parts import classified
from wordpiece_bert.bert.plan.building import padding_row
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.batches import Dataset, pad_collate, row_blocks
from wordpiece_bert.finetune.frozen_heads import LogisticRegression
from wordpiece_bert.finetune.network import refuse_int8
from wordpiece_bert.finetune.parameters import FITTING

if TYPE_CHECKING:
    from wordpiece_bert.bert.base_model import Model


@completed_by(FITTING)
def fit_token_head(
    model: Model, dataset: Dataset, *, C: float = 1.0, batch_size: int = 32, show_progress_bar: bool | None = None
) -> HeadModel:
    """Return a model for token classification whose head is logistic regression on the vectors that it reads.

    It returns what its class returns: transformers and `wordpiece_bert.tasks.ner` load what it saves.

    Parameters
    ----------
    model : Model
        A model for token classification, as `model_for` makes one. It does not change.
    dataset : Dataset
        Rows with ``input_ids`` and ``labels``, as `wordpiece_bert.finetune.data.token_rows` makes them; the label -100
        does not count.

    Returns
    -------
    HeadModel
        A new model of the same class.

    Raises
    ------
    InputError
        The model is of another class, there are no rows, or a label of the configuration has no token.
    ConfigError
        The model's weights are int8.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.finetune import fit_token_head, model_for
    >>> from wordpiece_bert.finetune.data import token_rows
    >>> tokenizer, names = Tokenizer.from_pretrained("models/sentences"), ["O", "B-LOC"]
    >>> words, tags = [["she", "lived", "in", "Paris"]], [["O", "O", "O", "B-LOC"]]
    >>> rows = token_rows(tokenizer, words, tags, names=names, max_length=32)
    >>> model = model_for("models/sentences", "TokenClassification", labels=names)
    >>> fitted = fit_token_head(model, rows, show_progress_bar=False)
    >>> fitted.infer([tokenizer.encode_ids("Paris is in France")]).argmax(axis=-1)
    array([[0, 1, 0, 0, 0, 0]])
    """
    if not isinstance(model, TokenClassification) or not isinstance(model, HeadModel):
        raise InputError(f"fit_token_head needs a model for token classification, not {type(model).__name__}")
    if len(dataset) == 0:
        raise InputError("there are no rows")
    refuse_int8(model)
    batch_size = whole_number("batch_size", batch_size, 1)
    features, labels, done = [], [], 0
    with shown_progress(len(dataset), "row", show_progress_bar) as bar:
        for rows in row_blocks(dataset, batch_size):
            batch: dict[str, Any] = pad_collate(rows, padding_row(model.config) or 0)
            right = batch.pop("labels", None)
            if right is None or right.shape != batch["input_ids"].shape:
                raise InputError(f"rows from {done} on need labels, one for each of their input_ids")
            x = classified(model, model.base_model(**batch, visible_only=True))  # [B, S, H]
            counted = right != IGNORED
            features.append(x[counted])
            labels.append(right[counted])
            done += len(rows)
            bar.update(done)
    found = np.concatenate(labels)
    for index in range(model.config.num_labels):
        if not (found == index).any():
            raise InputError(f"no token has the label {model.config.label(index)!r}")
    head = LogisticRegression(C=C).fit(np.concatenate(features), found)
    weight, bias = head.coef_, head.intercept_
    if len(weight) == 1:  # two labels: softmax([0, z]) = [1 − σ(z), σ(z)]
        weight, bias = np.concatenate([0 * weight, weight]), np.concatenate([0 * bias, bias])
    tensors = dict(model.named_parameters())
    tensors |= {"classifier.weight": weight.astype(np.float32), "classifier.bias": bias.astype(np.float32)}
    make = type(model)
    return make(
        model.config,
        tensors,
        backend=model.backend,
        dtype=model.dtype,
        instructions=model.instructions,
        source=model.source,
    )
