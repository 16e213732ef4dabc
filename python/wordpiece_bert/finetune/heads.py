"""The losses of BERT's heads and their gradients, head by head.

Each class here belongs to one kind of head in `wordpiece_bert.bert.heads` and knows three things of it: which positions
it reads, its loss, and the gradients of the loss with respect to its parameters and to the encoder's output x_L.

Comments denote shapes by the letters of `wordpiece_bert.bert.functional`; M are the tokens of the batch, n the labels
that are not ignored, C the classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from wordpiece_bert.bert import functional, gradients
from wordpiece_bert.bert.heads.bert import (
    MASKED_LM,
    NEXT_SENTENCE,
    BertForNextSentencePrediction,
    BertForPreTraining,
)
from wordpiece_bert.bert.heads.kinds import (
    MaskedLM,
    MaskedLMNames,
    MultipleChoice,
    QuestionAnswering,
    ScoreLayers,
    SequenceClassification,
    TokenClassification,
    problem_type,
)
from wordpiece_bert.bert.heads.parts import masked_lm_names, score_layers
from wordpiece_bert.bert.inputs import as_array, check_labels, check_targets
from wordpiece_bert.bert.losses import IGNORED, log_softmax
from wordpiece_bert.bert.variants.deberta_v2 import DebertaV2ForSequenceClassification
from wordpiece_bert.bert.variants.electra import DETECTOR_DENSE, DETECTOR_SCORES, ElectraForPreTraining
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.network import Gradients, Network, affine, dropout_rate

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from wordpiece_bert.bert.base import Model
    from wordpiece_bert.bert.functional import Array, Ids, Mask
    from wordpiece_bert.bert.gradients import Normalized
    from wordpiece_bert.finetune.dropout import Dropout
    from wordpiece_bert.finetune.engines import TrainingEngine
    from wordpiece_bert.finetune.tokens import Tokens

__all__ = ["DiscriminatorTraining", "Head", "HeadInputs", "HeadLoss", "HeadTraining", "MaskedLMTraining", "head_of"]


#: From logits and the labels of a call to the loss and its gradient with respect to the logits.
Loss = Callable[["Array", Any], "tuple[float, Array]"]


class HeadInputs(NamedTuple):
    """What every head is given."""

    x: Array  # [M, H] the encoder's output x_L
    tokens: Tokens
    labels: Mapping[str, npt.ArrayLike]
    parameters: Mapping[str, Array]
    dropout: Dropout | None
    gradient: Gradients  # receives the gradients of the head's parameters
    engine: TrainingEngine  # computes the dense layers


class HeadLoss(NamedTuple):
    """The loss of a batch, and its gradient with respect to the encoder's output."""

    loss: float
    dx: Array  # [M, H]


class Head(Protocol):
    """The training side of a head."""

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names of the labels in a call."""

    @property
    def scores_vocabulary(self) -> bool:
        """Whether it computes the scores of the vocabulary for labelled tokens, which need memory."""

    def read(self, mask: Mask, labels: Mapping[str, npt.ArrayLike]) -> Mask:
        """Return the positions that the head reads, booleans [B, S]; `mask` is the attention mask."""

    def run(self, given: HeadInputs) -> HeadLoss:
        """Compute the loss, and add the gradients of the head's parameters to `given.gradient`."""


def head_of(model_class: type[Model], network: Network) -> Head:
    """Return the training side of a class's head.

    Raises
    ------
    InputError
        The class has no head.
    """
    for kind, make in _HEADS.items():
        if issubclass(model_class, kind):
            return make(model_class, network)
    raise InputError(
        f"{model_class.__name__} has no head with a loss; train a model with a head, such as BertForMaskedLM"
    )


# --- losses and their gradients


def _cross_entropy(logits: Array, labels: Ids, name: str, ignored: int = IGNORED) -> tuple[float, Array]:
    """Mean of −ln p[label] over the n labels that are not ignored: dlogits = (p − onehot)/n.

    logits [..., C], labels [...] -> the loss, dlogits [..., C].
    """
    counted = labels != ignored
    n = int(counted.sum())
    if n == 0:
        raise InputError(f"all {labels.size} {name} of the batch are ignored ({ignored}): the loss is not defined")
    loss, rows = gradients.cross_entropy(logits[counted], labels[counted])
    dlogits = np.zeros_like(logits)
    dlogits[counted] = rows
    return loss, dlogits


def _binary_cross_entropy(logits: Array, targets: Array) -> tuple[float, Array]:
    """Mean of the binary cross entropies: dlogits = (σ(x) − t)/count. logits and targets of the same shape."""
    terms = np.maximum(logits, 0) - logits * targets + np.log1p(np.exp(-np.abs(logits)))
    return float(terms.mean(dtype=np.float64)), (functional.sigmoid(logits) - targets) / np.float32(logits.size)


def _soft_cross_entropy(logits: Array, targets: Array) -> tuple[float, Array]:
    """Mean over B rows of −Σ t·ln p: dlogits = (p·Σt − t)/B. logits and targets [B, C]."""
    log_p = log_softmax(logits)
    loss = float(-(targets * log_p).sum(axis=1).mean(dtype=np.float64))
    dlogits: Array = (np.exp(log_p) * targets.sum(axis=1, keepdims=True) - targets) / np.float32(len(logits))
    return loss, dlogits


def _mean_squared_error(predictions: Array, targets: Array) -> tuple[float, Array]:
    """Mean of (x − t)²: dx = 2(x − t)/count. Both of the same shape."""
    difference = predictions - targets
    return float(np.square(difference).mean(dtype=np.float64)), difference * np.float32(2.0 / difference.size)


# --- heads


class HeadTraining:
    """What heads share."""

    scores_vocabulary = False

    def __init__(self, network: Network) -> None:
        self._network = network

    def linear(self, given: HeadInputs, name: str, x: Array) -> Array:
        """Return x·Wᵀ + b of a dense layer by its name, [n, out]."""
        return given.engine.linear(x, *affine(given.parameters, name))

    def linear_backward(self, given: HeadInputs, name: str, dy: Array, x: Array) -> Array:
        """Return dx [n, in], and add the gradients of the layer."""
        weight, bias = affine(given.parameters, name)
        dx, dw, db = given.engine.linear_backward(dy, x, weight)
        given.gradient.add_affine(name, dw, None if bias is None else db)
        return dx

    def norm(self, given: HeadInputs, name: str, x: Array) -> tuple[Array, Normalized]:
        """Return LN(x) of a norm by its name, [n, H], and what its backward pass needs."""
        kept = gradients.standardize(x, self._network.config.layer_norm_eps)
        return gradients.scale_and_shift(kept.x_hat, *affine(given.parameters, name)), kept

    def norm_backward(self, given: HeadInputs, name: str, dy: Array, kept: Normalized) -> Array:
        """Return dx [n, H], and add the gradients of the norm."""
        weight, bias = affine(given.parameters, name)
        g, dweight, dbias = gradients.scale_and_shift_backward(dy, kept.x_hat, weight)
        given.gradient.add_affine(name, dweight, None if bias is None else dbias)
        return gradients.standardize_backward(g, kept)


class MaskedLMTraining(HeadTraining):
    """logits = decoder(LN(activation(dense(x)))), only at the labelled positions."""

    label_names = ("labels",)
    scores_vocabulary = True

    def __init__(self, network: Network, names: MaskedLMNames) -> None:
        super().__init__(network)
        self._names = names

    def read(self, mask: Mask, labels: Mapping[str, npt.ArrayLike]) -> Mask:
        """Return the positions that the head reads."""
        labelled: Mask = self._labels(labels["labels"], mask.shape) != IGNORED
        return labelled

    def _labels(self, value: npt.ArrayLike, shape: tuple[int, ...]) -> Ids:
        return check_labels("labels", value, shape, self._network.config.vocab_size, IGNORED)

    def run(self, given: HeadInputs) -> HeadLoss:
        """Compute the loss and the gradients."""
        x, tokens, parameters, gradient = given.x, given.tokens, given.parameters, given.gradient
        names, config = self._names, self._network.config
        name = names.activation or config.head_activation
        targets = self._labels(given.labels["labels"], tokens.shape)[tokens.rows, tokens.columns]  # [M]
        chosen = np.flatnonzero(targets != IGNORED)  # [n]
        z = self.linear(given, names.dense, x[chosen])  # [n, H]
        t, kept = self.norm(given, names.norm, functional.ACTIVATIONS[name](z))  # [n, H]
        decoder = f"{names.decoder}.weight"
        if decoder not in parameters:  # it is the word table
            decoder = self._network.name("embeddings.word_embeddings.weight")
        decoder_bias = f"{names.decoder}.bias" if f"{names.decoder}.bias" in parameters else names.bias
        bias = parameters.get(decoder_bias)
        logits = given.engine.linear(t, parameters[decoder], bias)  # [n, V]
        if not len(chosen):
            raise InputError(f"all {targets.size} labels of the batch are ignored ({IGNORED}): the loss is not defined")
        self.see(given, chosen, logits)
        loss, dlogits = given.engine.cross_entropy(logits, targets[chosen])
        dt, dw, db = given.engine.linear_backward(dlogits, t, parameters[decoder])
        gradient.add(decoder, dw)
        if bias is not None:
            gradient.add(decoder_bias, db)
        dz = gradients.activation_backward(self.norm_backward(given, names.norm, dt, kept), z, name)
        dx = np.zeros_like(x)
        dx[chosen] = self.linear_backward(given, names.dense, dz, x[chosen])
        return HeadLoss(loss, dx)

    def see(self, given: HeadInputs, chosen: npt.NDArray[np.intp], logits: Array) -> None:
        """Take note of the scores [n, V] of the tokens `chosen` [n] of M; they are overwritten afterwards."""


#: From the gradient of what a head's classifier reads to that of what the head reads.
Back = Callable[["Array"], "Array"]


class _ScoreHead(HeadTraining):
    """A classifier over what a head reads, with a layer between them in some families."""

    def __init__(self, network: Network, layers: ScoreLayers) -> None:
        super().__init__(network)
        self._layers = layers

    def _hidden(self, given: HeadInputs, x: Array) -> tuple[Array, Back]:
        """LN(activation(dense(x))), as far as the head has it, [n, H] -> [n, H]; and its backward pass."""
        dense, activation, norm = self._layers.dense, self._layers.activation, self._layers.norm
        if dense is None:
            return x, lambda dy: dy
        z = self.linear(given, dense, x)
        y, kept = functional.ACTIVATIONS[activation](z), None
        if norm is not None:
            y, kept = self.norm(given, norm, y)

        def back(dy: Array) -> Array:
            if norm is not None and kept is not None:
                dy = self.norm_backward(given, norm, dy, kept)
            return self.linear_backward(given, dense, gradients.activation_backward(dy, z, activation), x)

        return y, back


class _SequenceHead(_ScoreHead):
    """Scores from one vector of each sequence: next sentence, sequence classification, multiple choice."""

    label_names = ("labels",)

    def __init__(self, network: Network, layers: ScoreLayers, loss: Loss, *, dropout: bool = True) -> None:
        super().__init__(network, layers)
        self._loss, self._has_dropout = loss, dropout

    def read(self, mask: Mask, labels: Mapping[str, npt.ArrayLike]) -> Mask:
        del labels
        return _first_column(mask) if self._layers.pooling == "first" else np.zeros_like(mask)

    def run(self, given: HeadInputs) -> HeadLoss:
        pooled, to_tokens = self._pool(given)  # [B, H]
        vector, back = self._classified(pooled, given)  # [B, H]
        logits = self.linear(given, self._layers.classifier, vector)  # [B, C]
        loss, dlogits = self._loss(logits, given.labels["labels"])
        dvector = self.linear_backward(given, self._layers.classifier, dlogits, vector)
        return HeadLoss(loss, to_tokens(back(dvector)))

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


def _next_sentence_head(network: Network) -> _SequenceHead:
    def loss(logits: Array, labels: npt.ArrayLike) -> tuple[float, Array]:
        return _cross_entropy(logits, check_labels("labels", labels, (len(logits),), 2, IGNORED), "labels")

    return _SequenceHead(network, ScoreLayers(NEXT_SENTENCE), loss, dropout=False)


def _choice_head(model_class: type[MultipleChoice], network: Network) -> _SequenceHead:
    def loss(logits: Array, labels: npt.ArrayLike) -> tuple[float, Array]:
        rows = len(as_array("labels", labels))
        if rows == 0 or len(logits) % rows:
            raise InputError(f"labels has {rows} entries for {len(logits)} choices in total")
        scores = logits.reshape(rows, -1)  # [B, choices]
        classes = check_labels("labels", labels, (rows,), scores.shape[1], IGNORED)
        value, dscores = _cross_entropy(scores, classes, "labels")
        return value, dscores.reshape(logits.shape)

    return _SequenceHead(network, score_layers(model_class, network.config), loss)


def _sequence_loss(network: Network) -> Loss:
    def loss(logits: Array, labels: npt.ArrayLike) -> tuple[float, Array]:
        problem = problem_type(network.config, labels)
        if problem == "regression":
            return _mean_squared_error(logits, check_targets("labels", labels, logits.shape))
        if problem == "multi_label_classification":
            return _binary_cross_entropy(logits, check_targets("labels", labels, logits.shape))
        classes = check_labels("labels", labels, logits.shape[:1], logits.shape[1], IGNORED)
        return _cross_entropy(logits, classes, "labels")

    return loss


def _sequence_head(model_class: type[SequenceClassification], network: Network) -> _SequenceHead:
    return _SequenceHead(network, score_layers(model_class, network.config), _sequence_loss(network))


def _deberta_sequence_head(model_class: type[SequenceClassification], network: Network) -> _SequenceHead:
    """DeBERTa's head, whose losses without a problem type are of their own, as its class documents them."""
    usual = _sequence_loss(network)

    def loss(logits: Array, labels: npt.ArrayLike) -> tuple[float, Array]:
        given = as_array("labels", labels)
        if network.config.problem_type is not None or network.config.num_labels == 1:
            return usual(logits, given)
        if given.ndim > 1 and given.shape[1:] != (1,):
            return _soft_cross_entropy(logits, check_targets("labels", given, logits.shape))
        if np.issubdtype(given.dtype, np.integer):
            given = np.where(given < 0, IGNORED, given)
        classes = check_labels("labels", given, logits.shape[:1], logits.shape[1], IGNORED)
        return _cross_entropy(logits, classes, "labels")

    return _SequenceHead(network, score_layers(model_class, network.config), loss)


class _PreTrainingHead(HeadTraining):
    """Masked-language and next-sentence head together; the loss is the sum."""

    label_names = ("labels", "next_sentence_label")
    scores_vocabulary = True

    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self._words = MaskedLMTraining(network, MASKED_LM)
        self._next = _next_sentence_head(network)

    def read(self, mask: Mask, labels: Mapping[str, npt.ArrayLike]) -> Mask:
        return self._words.read(mask, labels) | _first_column(mask)

    def run(self, given: HeadInputs) -> HeadLoss:
        words = self._words.run(given)
        second = self._next.run(given._replace(labels={"labels": given.labels["next_sentence_label"]}))
        return HeadLoss(words.loss + second.loss, words.dx + second.dx)


class _TokensHead(_ScoreHead):
    """Scores of each token."""

    def _scores(self, given: HeadInputs, rate: tuple[str, ...]) -> tuple[Array, Back]:
        """Return the scores [M, C], with dropout of this rate before the classifier, and their backward pass."""
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


class _TokenHead(_TokensHead):
    """Token classification: scores of every labelled token."""

    label_names = ("labels",)

    def read(self, mask: Mask, labels: Mapping[str, npt.ArrayLike]) -> Mask:
        labelled: Mask = self._labels(labels["labels"], mask.shape) != IGNORED
        return labelled

    def _labels(self, value: npt.ArrayLike, shape: tuple[int, ...]) -> Ids:
        return check_labels("labels", value, shape, self._network.config.num_labels, IGNORED)

    def run(self, given: HeadInputs) -> HeadLoss:
        tokens = given.tokens
        targets = self._labels(given.labels["labels"], tokens.shape)[tokens.rows, tokens.columns]  # [M]
        logits, back = self._scores(given, self._network.training.token_rate)  # [M, C]
        loss, dlogits = _cross_entropy(logits, targets, "labels")
        return HeadLoss(loss, back(dlogits))


class _QuestionAnsweringHead(_TokensHead):
    """Scores of each token as the first and as the last of the answer; the loss is the mean of both."""

    label_names = ("start_positions", "end_positions")

    def read(self, mask: Mask, labels: Mapping[str, npt.ArrayLike]) -> Mask:
        del labels
        return np.ones_like(mask)  # the softmax runs over all places, padding included

    def run(self, given: HeadInputs) -> HeadLoss:
        tokens = given.tokens
        flat, back = self._scores(given, self._network.training.answer_rate)  # [M, 2]
        scores = tokens.padded(flat)  # [B, S, 2]
        loss, parts = 0.0, []
        for index, name in enumerate(self.label_names):
            part, dpart = self._position_loss(np.ascontiguousarray(scores[..., index]), given.labels[name], name)
            loss += part / 2
            parts.append(dpart * np.float32(0.5))
        dscores = np.stack(parts, axis=-1)[tokens.rows, tokens.columns]  # [M, 2]
        return HeadLoss(loss, back(dscores))

    @staticmethod
    def _position_loss(logits: Array, value: npt.ArrayLike, name: str) -> tuple[float, Array]:
        """Cross entropy over the places; positions are clipped to 0 … S, of which S is ignored."""
        batch, length = logits.shape
        positions = as_array(name, value)
        if not np.issubdtype(positions.dtype, np.integer) or positions.shape not in ((batch,), (batch, 1)):
            raise InputError(
                f"{name} must be integers [{batch}], not {positions.dtype} of shape {list(positions.shape)}"
            )
        return _cross_entropy(logits, np.clip(positions.reshape(batch), 0, length), name, ignored=length)


class DiscriminatorTraining(HeadTraining):
    """ELECTRA's discriminator: binary cross entropy over the visible tokens, times a weight."""

    label_names = ("labels",)

    def __init__(self, network: Network, weight: float = 1.0) -> None:
        super().__init__(network)
        self._weight = weight

    def read(self, mask: Mask, labels: Mapping[str, npt.ArrayLike]) -> Mask:
        """Return the positions that the head reads."""
        del labels
        return np.zeros_like(mask)

    def run(self, given: HeadInputs) -> HeadLoss:
        """Compute the loss and the gradients."""
        x, tokens = given.x, given.tokens
        targets = check_targets("labels", given.labels["labels"], tokens.shape)[tokens.rows, tokens.columns]  # [M]
        name = self._network.config.hidden_act
        z = self.linear(given, DETECTOR_DENSE, x)  # [M, H]
        t = functional.ACTIVATIONS[name](z)
        logits = self.linear(given, DETECTOR_SCORES, t)  # [M, 1]
        loss, dlogits = _binary_cross_entropy(logits[:, 0], targets)
        dlogits *= np.float32(self._weight)
        dt = self.linear_backward(given, DETECTOR_SCORES, dlogits[:, None], t)
        dz = gradients.activation_backward(dt, z, name)
        dx = self.linear_backward(given, DETECTOR_DENSE, dz, x)
        return HeadLoss(self._weight * loss, dx)


def _first_column(mask: Mask) -> Mask:
    first = np.zeros_like(mask)
    first[:, 0] = True
    return first


#: The training side of each kind of head, a kind before those that it derives from.
_HEADS: dict[type[Model], Callable[[Any, Network], Head]] = {
    MaskedLM: lambda kind, network: MaskedLMTraining(network, masked_lm_names(kind, network.config)),
    BertForPreTraining: lambda _, network: _PreTrainingHead(network),
    BertForNextSentencePrediction: lambda _, network: _next_sentence_head(network),
    DebertaV2ForSequenceClassification: _deberta_sequence_head,
    SequenceClassification: _sequence_head,
    MultipleChoice: _choice_head,
    TokenClassification: lambda kind, network: _TokenHead(network, score_layers(kind, network.config)),
    QuestionAnswering: lambda kind, network: _QuestionAnsweringHead(network, score_layers(kind, network.config)),
    ElectraForPreTraining: lambda _, network: DiscriminatorTraining(network),
}
