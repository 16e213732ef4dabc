"""What training knows of a model's head: the interface, and what the classes of heads share.

Each class belongs to one kind of head in `wordpiece_bert.bert.heads` and knows three things of it: which positions it
reads, its loss, and the gradients of the loss with respect to its parameters and to the encoder's output x_L. The
classes are in `sequence_heads` and `token_heads`, and `head_kinds` finds the one for a model.

Comments denote shapes by the letters of `wordpiece_bert.bert.functional`; M are the tokens of the batch, C the classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from wordpiece_bert.bert import functional, gradients
from wordpiece_bert.finetune.network import Gradients, Network, affine

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array, Mask
    from wordpiece_bert.bert.gradients import Normalized
    from wordpiece_bert.bert.heads.kinds import ScoreLayers
    from wordpiece_bert.finetune.dropout import Dropout
    from wordpiece_bert.finetune.engines import TrainingEngine
    from wordpiece_bert.finetune.tokens import Tokens

#: From the gradient of what a head's classifier reads to the gradient of what the head reads.
Back = Callable[["Array"], "Array"]


class HeadInputs(NamedTuple):
    """What every head is given."""

    x: Array  # [M, H] the encoder's output x_L
    tokens: Tokens
    labels: Mapping[str, npt.ArrayLike]
    parameters: Mapping[str, Array]
    dropout: Dropout | None
    gradient: Gradients  # receives the gradients of the head's parameters
    engine: TrainingEngine  # computes the dense layers
    weights: tuple[float, ...] | None = None  # what each part of the loss is multiplied by; None for 1

    def weighed(self, loss: float, gradient: Array) -> tuple[float, Array]:
        """Return a loss and its gradient times the weight of the first part; the gradient may be overwritten."""
        if self.weights is None:
            return loss, gradient
        gradient *= np.float32(self.weights[0])
        return loss * self.weights[0], gradient


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


class Scoring(Protocol):
    """A head whose scores can be computed without labels."""

    def scores(self, given: HeadInputs, chosen: npt.NDArray[np.intp]) -> tuple[Array, Back]:
        """Compute the scores.

        Parameters
        ----------
        given
            The inputs; the labels are not read.
        chosen
            The tokens whose scores are computed, of M; a head for sequences scores each row instead.

        Returns
        -------
        array
            The scores, [n, C].
        callable
            From the gradient with respect to the scores to that with respect to the encoder's output, [M, H].
        """


class HeadTraining:
    """What heads share."""

    scores_vocabulary = False

    def __init__(self, network: Network) -> None:
        self._network = network

    def counts(self, mask: Mask, labels: Mapping[str, npt.ArrayLike]) -> tuple[int, ...] | None:
        """Return over how many tokens, or rows, each part of the loss is a mean.

        None for a head whose loss is not computed from single tokens: its `run` need not heed `HeadInputs.weights`.

        Parameters
        ----------
        mask
            The attention mask, booleans [B, S].
        labels
            The labels by name.
        """
        del mask, labels
        return None

    def losses(self, output: Any, labels: Mapping[str, npt.ArrayLike]) -> tuple[float, ...]:
        """Return the parts of the loss of a model's output.

        Parameters
        ----------
        output
            What the model returned for a batch, with the loss.
        labels
            The labels by name.
        """
        del labels
        return (float(output.loss),)

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


class ScoreHead(HeadTraining):
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


def first_column(mask: Mask) -> Mask:
    """Return the first position of each row, booleans [B, S]."""
    first = np.zeros_like(mask)
    first[:, 0] = True
    return first
