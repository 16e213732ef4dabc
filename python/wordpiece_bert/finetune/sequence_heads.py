"""The training side of heads with scores of each row: sequence classification, next sentence, multiple choice.

Comments denote shapes by the letters of `wordpiece_bert.bert.functional`; M are the tokens of the batch, C the classes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.ignored_label import IGNORED
from wordpiece_bert.bert import functional, gradients
from wordpiece_bert.bert.heads.bert import NEXT_SENTENCE
from wordpiece_bert.bert.heads.kinds import MultipleChoice, ScoreLayers, SequenceClassification
from wordpiece_bert.bert.heads.parts import score_layers, targets_of
from wordpiece_bert.bert.inputs import as_array, check_labels
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.head_losses import (
    binary_cross_entropy,
    cross_entropy,
    mean_squared_error,
    soft_cross_entropy,
)
from wordpiece_bert.finetune.heads import HeadLoss, ScoreHead, first_column
from wordpiece_bert.finetune.network import dropout_rate

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array, Mask
    from wordpiece_bert.finetune.heads import Back, HeadInputs
    from wordpiece_bert.finetune.network import Network

#: From logits and the labels of a call to the loss and its gradient with respect to the logits.
Loss = Callable[["Array", Any], "tuple[float, Array]"]


class SequenceHead(ScoreHead):
    """Scores from one vector of each sequence: next sentence, sequence classification, multiple choice."""

    label_names = ("labels",)

    def __init__(self, network: Network, layers: ScoreLayers, loss: Loss, *, dropout: bool = True) -> None:
        super().__init__(network, layers)
        self._loss, self._has_dropout = loss, dropout

    def read(self, mask: Mask, labels: Mapping[str, npt.ArrayLike]) -> Mask:
        """Return the positions that the head reads."""
        del labels
        return first_column(mask) if self._layers.pooling == "first" else np.zeros_like(mask)

    def run(self, given: HeadInputs) -> HeadLoss:
        """Compute the loss and the gradients."""
        logits, back = self.scores(given)
        loss, dlogits = given.weighed(*self._loss(logits, given.labels["labels"]))
        return HeadLoss(loss, back(dlogits))

    def scores(self, given: HeadInputs, chosen: npt.NDArray[np.intp] | None = None) -> tuple[Array, Back]:
        """Compute the scores of each row, [B, C], as `Scoring.scores`."""
        del chosen
        pooled, to_tokens = self._pool(given)  # [B, H]
        vector, back = self._classified(pooled, given)  # [B, H]

        def through(dlogits: Array) -> Array:
            return to_tokens(back(self.linear_backward(given, self._layers.classifier, dlogits, vector)))

        return self.linear(given, self._layers.classifier, vector), through

    def _pool(self, given: HeadInputs) -> tuple[Array, Back]:
        """Return the vector of each sequence that the head reads, [B, H], and its backward pass, to [M, H]."""
        x, tokens = given.x, given.tokens
        if self._layers.pooling != "mean":
            chosen = tokens.firsts() if self._layers.pooling == "first" else tokens.starts[:-1]

            def to_chosen(dy: Array) -> Array:
                dx = np.zeros_like(x)
                dx[chosen] = dy
                return dx

            return x[chosen], to_chosen
        rows = [tokens.keys(row) for row in range(tokens.shape[0])]

        def to_rows(dy: Array) -> Array:
            dx = np.zeros_like(x)
            for row, d in zip(rows, dy, strict=True):
                dx[row] = d / (row.stop - row.start)
            return dx

        return np.stack([x[row].mean(axis=0) for row in rows]), to_rows

    def _classified(self, x: Array, given: HeadInputs) -> tuple[Array, Back]:
        """Return the vectors that the classifier reads, [B, H], and their backward pass."""
        training = self._network.training

        def mask(site: str, rate: tuple[str, ...]) -> Array | np.float32:
            drawn = None
            if self._has_dropout and rate and given.dropout is not None:
                drawn = given.dropout.vectors(site, len(x), x.shape[1], dropout_rate(self._network.config, *rate))
            return np.float32(1.0) if drawn is None else drawn

        if self._layers.dense is None:  # the pooler, then dropout
            name = self._network.layer("pooler.dense")
            y = functional.tanh(self.linear(given, name, x))  # [B, H]
            m = mask("head", training.sequence_rate)

            def through_pooler(dy: Array) -> Array:
                return self.linear_backward(given, name, gradients.tanh_backward(dy * m, y), x)

            return y * m, through_pooler
        before: Array | np.float32 = np.float32(1.0)
        site = "head"
        if training.classifier_input_rate:
            before, site = mask("head", training.classifier_input_rate), "head2"
        behind = mask(site, training.sequence_rate)
        hidden, back = self._hidden(given, x * before)
        return hidden * behind, lambda dy: back(dy * behind) * before


def next_sentence_head(network: Network) -> SequenceHead:
    """Return the head that tells whether the second text follows the first."""

    def loss(logits: Array, labels: npt.ArrayLike) -> tuple[float, Array]:
        return cross_entropy(logits, check_labels("labels", labels, (len(logits),), 2, IGNORED), "labels")

    return SequenceHead(network, ScoreLayers(NEXT_SENTENCE), loss, dropout=False)


def choice_head(model_class: type[MultipleChoice], network: Network) -> SequenceHead:
    """Return the head that scores choices: the rows of a batch are the choices of each question, in turn."""

    def loss(logits: Array, labels: npt.ArrayLike) -> tuple[float, Array]:
        rows = len(as_array("labels", labels))
        if rows == 0 or len(logits) % rows:
            raise InputError(f"labels has {rows} entries for {len(logits)} choices in total")
        scores = logits.reshape(rows, -1)  # [B, choices]
        classes = check_labels("labels", labels, (rows,), scores.shape[1], IGNORED)
        value, dscores = cross_entropy(scores, classes, "labels")
        return value, dscores.reshape(logits.shape)

    return SequenceHead(network, score_layers(model_class, network.config), loss)


#: By the problem that labels are, as the classes of models name it.
_LOSSES: dict[str, Loss] = {
    "regression": mean_squared_error,
    "multi_label_classification": binary_cross_entropy,
    "single_label_classification": partial(cross_entropy, name="labels"),
    "probabilities": soft_cross_entropy,
    "labels_or_none": partial(cross_entropy, name="labels"),
}


def sequence_head(model_class: type[SequenceClassification], network: Network) -> SequenceHead:
    """Return the head for labels of sequences, with the loss of the problem type."""

    def loss(logits: Array, labels: npt.ArrayLike) -> tuple[float, Array]:
        problem, targets = targets_of(model_class, network.config, labels, logits.shape)
        return _LOSSES[problem](logits, targets)

    return SequenceHead(network, score_layers(model_class, network.config), loss)
