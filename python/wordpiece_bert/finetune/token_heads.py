"""The training side of heads with scores of each token: words, labels, answers, and ELECTRA's replaced tokens.

Comments denote shapes by the letters of `wordpiece_bert.bert.functional`; M are the tokens of the batch, n the labels
that are not ignored, C the classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert._internal.ignored_label import IGNORED
from wordpiece_bert.bert.families.electra import ElectraForPreTraining
from wordpiece_bert.bert.heads.kinds import ScoreLayers
from wordpiece_bert.bert.heads.parts import score_layers
from wordpiece_bert.bert.inputs import as_array, check_labels, check_positions, check_targets
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.head_losses import binary_cross_entropy, cross_entropy
from wordpiece_bert.finetune.heads import HeadLoss, HeadTraining, ScoreHead
from wordpiece_bert.finetune.network import dropout_rate

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array, Ids, Mask
    from wordpiece_bert.bert.heads.kinds import MaskedLMNames
    from wordpiece_bert.finetune.heads import Back, HeadInputs
    from wordpiece_bert.finetune.network import Network


class _LabelledTokens(HeadTraining):
    """A head whose labels are one number for each token, of which it reads those that have one."""

    label_names = ("labels",)

    def _labels(self, value: npt.ArrayLike, shape: tuple[int, ...]) -> Ids:
        raise NotImplementedError

    def read(self, mask: Mask, labels: Mapping[str, npt.ArrayLike]) -> Mask:
        """Return the positions that the head reads."""
        labelled: Mask = self._labels(labels["labels"], mask.shape) != IGNORED
        return labelled

    def counts(self, mask: Mask, labels: Mapping[str, npt.ArrayLike]) -> tuple[int, ...]:
        """Return the number of labelled tokens."""
        del mask
        return (_labelled(labels),)


class MaskedLMTraining(_LabelledTokens, ScoreHead):
    """logits = decoder(LN(activation(dense(x)))), or decoder(x), only at the labelled positions."""

    scores_vocabulary = True

    def __init__(self, network: Network, names: MaskedLMNames) -> None:
        activation = names.activation or network.config.head_activation
        super().__init__(network, ScoreLayers(names.decoder, names.dense, activation, names.norm))
        self._bias = names.bias

    def _labels(self, value: npt.ArrayLike, shape: tuple[int, ...]) -> Ids:
        return check_labels("labels", value, shape, self._network.config.vocab_size, IGNORED)

    def run(self, given: HeadInputs) -> HeadLoss:
        """Compute the loss and the gradients."""
        tokens = given.tokens
        targets = self._labels(given.labels["labels"], tokens.shape)[tokens.rows, tokens.columns]  # [M]
        chosen = np.flatnonzero(targets != IGNORED)  # [n]
        if not len(chosen):
            raise InputError(f"all {targets.size} labels of the batch are ignored ({IGNORED}): the loss is not defined")
        logits, back = self.scores(given, chosen)
        self.see(given, chosen, logits)
        loss, dlogits = given.weighed(*given.engine.cross_entropy(logits, targets[chosen]))
        return HeadLoss(loss, back(dlogits))

    def scores(self, given: HeadInputs, chosen: npt.NDArray[np.intp]) -> tuple[Array, Back]:
        """Compute the scores of the chosen tokens, [n, V], as `Scoring.scores`."""
        x, parameters, gradient = given.x, given.parameters, given.gradient
        t, back_to_tokens = self._hidden(given, x[chosen])  # [n, H], or E where the word table is narrower
        name = self._layers.classifier
        decoder = f"{name}.weight"
        if decoder not in parameters:  # it is the word table
            decoder = self._network.name("embeddings.word_embeddings.weight")
        decoder_bias = f"{name}.bias" if f"{name}.bias" in parameters else self._bias
        bias = parameters.get(decoder_bias)

        def back(dlogits: Array) -> Array:
            dt, dw, db = given.engine.linear_backward(dlogits, t, parameters[decoder])
            gradient.add(decoder, dw)
            if bias is not None:
                gradient.add(decoder_bias, db)
            dx = np.zeros_like(x)
            dx[chosen] = back_to_tokens(dt)
            return dx

        return given.engine.linear(t, parameters[decoder], bias), back

    def see(self, given: HeadInputs, chosen: npt.NDArray[np.intp], logits: Array) -> None:
        """Take note of the scores [n, V] of the tokens `chosen` [n] of M; they are overwritten afterwards."""


class _TokensHead(ScoreHead):
    """Scores of each token."""

    #: The rate of dropout before the classifier.
    _rate: tuple[str, ...]

    def scores(self, given: HeadInputs, chosen: npt.NDArray[np.intp]) -> tuple[Array, Back]:
        """Compute the scores of the chosen tokens, [n, C], as `Scoring.scores`."""
        found, back = self._scores(given)

        def through(dscores: Array) -> Array:
            padded = np.zeros_like(found)
            padded[chosen] = dscores
            return back(padded)

        return found[chosen], through

    def _scores(self, given: HeadInputs) -> tuple[Array, Back]:
        """Return the scores [M, C], with dropout before the classifier, and their backward pass."""
        rate = self._rate
        hidden, back = self._hidden(given, given.x)  # [M, H]
        mask = None
        if given.dropout is not None and rate:
            dropped_share = dropout_rate(self._network.config, *rate)
            mask = given.dropout.tokens("head", given.tokens, hidden.shape[1], dropped_share)
        dropped = hidden if mask is None else hidden * mask
        classifier = self._layers.classifier

        def through(dscores: Array) -> Array:
            dhidden = self.linear_backward(given, classifier, dscores, dropped)
            return back(dhidden if mask is None else dhidden * mask)

        return self.linear(given, classifier, dropped), through


class TokenHead(_LabelledTokens, _TokensHead):
    """Token classification: scores of every labelled token."""

    def __init__(self, network: Network, layers: ScoreLayers) -> None:
        super().__init__(network, layers)
        self._rate = network.training.token_rate

    def _labels(self, value: npt.ArrayLike, shape: tuple[int, ...]) -> Ids:
        return check_labels("labels", value, shape, self._network.config.num_labels, IGNORED)

    def run(self, given: HeadInputs) -> HeadLoss:
        """Compute the loss and the gradients."""
        tokens = given.tokens
        targets = self._labels(given.labels["labels"], tokens.shape)[tokens.rows, tokens.columns]  # [M]
        logits, back = self._scores(given)  # [M, C]
        loss, dlogits = given.weighed(*cross_entropy(logits, targets, "labels"))
        return HeadLoss(loss, back(dlogits))


class QuestionAnsweringHead(_TokensHead):
    """Scores of each token as the first and as the last of the answer; the loss is the mean of both."""

    label_names = ("start_positions", "end_positions")

    def __init__(self, network: Network, layers: ScoreLayers) -> None:
        super().__init__(network, layers)
        self._rate = network.training.answer_rate

    def read(self, mask: Mask, labels: Mapping[str, npt.ArrayLike]) -> Mask:
        """Return the positions that the head reads."""
        del labels
        return np.ones_like(mask)  # the softmax runs over all places, padding included

    def run(self, given: HeadInputs) -> HeadLoss:
        """Compute the loss and the gradients."""
        tokens = given.tokens
        flat, back = self._scores(given)  # [M, 2]
        scores = tokens.padded(flat)  # [B, S, 2]
        loss, parts = 0.0, []
        for index, name in enumerate(self.label_names):
            positions = check_positions(name, given.labels[name], tokens.shape)
            answer = np.ascontiguousarray(scores[..., index])
            part, dpart = cross_entropy(answer, positions, name, ignored=tokens.shape[1])
            loss += part / 2
            parts.append(dpart * np.float32(0.5))
        dscores = np.stack(parts, axis=-1)[tokens.rows, tokens.columns]  # [M, 2]
        return HeadLoss(loss, back(dscores))


class DiscriminatorTraining(ScoreHead):
    """ELECTRA's discriminator: binary cross entropy over the visible tokens, times a weight."""

    label_names = ("labels",)

    def __init__(self, network: Network, weight: float = 1.0) -> None:
        super().__init__(network, score_layers(ElectraForPreTraining, network.config))
        self._weight = weight

    def read(self, mask: Mask, labels: Mapping[str, npt.ArrayLike]) -> Mask:
        """Return the positions that the head reads."""
        del labels
        return np.zeros_like(mask)

    def counts(self, mask: Mask, labels: Mapping[str, npt.ArrayLike]) -> tuple[int, ...]:
        """Return the number of visible tokens."""
        del labels
        return (int(mask.sum()),)

    def run(self, given: HeadInputs) -> HeadLoss:
        """Compute the loss and the gradients."""
        x, tokens = given.x, given.tokens
        targets = check_targets("labels", given.labels["labels"], tokens.shape)[tokens.rows, tokens.columns]  # [M]
        t, back = self._hidden(given, x)  # [M, H]
        logits = self.linear(given, self._layers.classifier, t)  # [M, 1]
        loss, dlogits = given.weighed(*binary_cross_entropy(logits[:, 0], targets))
        dlogits *= np.float32(self._weight)
        dx = back(self.linear_backward(given, self._layers.classifier, dlogits[:, None], t))
        return HeadLoss(self._weight * loss, dx)


def _labelled(labels: Mapping[str, npt.ArrayLike]) -> int:
    return int((as_array("labels", labels["labels"]) != IGNORED).sum())
