"""Sums of chosen scores of a head as a loss, whose gradient with respect to the inputs inspection asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.bert.gradients import normalize_backward
from wordpiece_bert.finetune.encoder_pass import EncoderPass
from wordpiece_bert.finetune.engines import NumpyTraining
from wordpiece_bert.finetune.head_kinds import head_of
from wordpiece_bert.finetune.heads import HeadInputs, HeadLoss, Scoring
from wordpiece_bert.finetune.network import Gradients, Network
from wordpiece_bert.finetune.passes import PassOptions
from wordpiece_bert.finetune.sentences import pool_rows, pool_rows_backward
from wordpiece_bert.finetune.tokens import lay_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordpiece_bert.bert.base_model import Model
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.bert.inputs import Inputs
    from wordpiece_bert.finetune.tokens import Tokens


class ScoreSum:
    """The sum, over the rows of a batch, of chosen scores of a model's head.

    Parameters
    ----------
    model : Model
        A model with a head for labels, answers or words.
    places : sequence of (int, int)
        The scores: the token's place in its row, which heads for sequences do not read, and the column.
    """

    def __init__(self, model: Model, places: Sequence[tuple[int, int]]) -> None:
        self.network = Network(model)
        self.parameters = self.network.parameters(model)
        self._head, self._places = head_of(type(model), self.network), places

    def run(self, given: HeadInputs) -> HeadLoss:
        """Compute the sum, and its gradient with respect to the encoder's output, [M, H]."""
        rows, length = given.tokens.shape
        # Of each row the first score, then of each row the second: heads for sequences return each row once.
        total, dx = 0.0, np.zeros_like(given.x)
        for token, column in self._places:
            scores, back = cast("Scoring", self._head).scores(given, np.arange(rows) * length + token)  # [rows, C]
            dscores = np.zeros_like(scores)
            dscores[:, column] = 1
            total += float(scores[:, column].sum(dtype=np.float64))
            dx += back(dscores)
        return HeadLoss(total, dx)


class CosineSum:
    """The sum, over the rows of a batch, of the cosines of their pooled vectors with a vector.

    Parameters
    ----------
    model : Model
        The encoder.
    modes : sequence of str
        The poolings.
    other : ndarray
        The vector, [modes · H].
    """

    def __init__(self, model: Model, modes: Sequence[str], other: Array) -> None:
        self.network = Network(model)
        self.parameters = self.network.parameters(model)
        self._modes, self._other = modes, normalize(other)

    def run(self, given: HeadInputs) -> HeadLoss:
        """Compute the sum, and its gradient with respect to the encoder's output, [M, H]."""
        pooled = pool_rows(given.x, given.tokens, np.ones(given.tokens.shape, np.bool_), self._modes)  # [rows, D]
        total = float((normalize(pooled) @ self._other).sum(dtype=np.float64))
        d = normalize_backward(np.broadcast_to(self._other, pooled.shape), pooled)
        return HeadLoss(total, pool_rows_backward(d, given.x, given.tokens, self._modes))


ScoreSums = ScoreSum | CosineSum


def input_gradients(sums: ScoreSums, inputs: Inputs, start: tuple[int, Array] | None = None) -> tuple[Array, Array]:
    """Return the gradients of a sum of scores with respect to the word vectors and to the vectors of each layer.

    Rows do not depend on each other, so these are the gradients of the score of each row.

    Parameters
    ----------
    sums : ScoreSum or CosineSum
        The sum.
    inputs : Inputs
        n rows without padding.
    start : (int, ndarray), optional
        A layer and its input, [n, S, H], from which the model runs; the number of layers, for the output itself.

    Returns
    -------
    ndarray
        [n, S, E] for the word vectors, or [n, S, H] for the vectors of `start`.
    ndarray
        For x_0 to x_L, [L + 1, n, S, H]; with `start`, 0 for lower layers.
    """
    tokens = lay_out(inputs, np.ones(inputs.shape, np.bool_))
    layers = sums.network.config.encoder_layers
    if start is not None and start[0] == layers:
        x = _flat(start[1])
        dx = _head(sums, tokens, x)
        found = np.zeros((layers + 1, *start[1].shape), np.float32)
        found[-1] = tokens.padded(dx)
        return found[-1], found
    begin = None if start is None else (start[0], _flat(start[1]))
    encoder = EncoderPass(sums.network, sums.parameters, tokens, PassOptions(), begin, inputs_only=True)
    dx = _head(sums, tokens, encoder.x)
    each = np.zeros((layers + 1, *inputs.shape, encoder.x.shape[1]), np.float32)
    each[-1] = tokens.padded(dx)

    def see(layer: int, d: Array) -> None:
        each[layer] = tokens.padded(d)

    de = encoder.backward(dx, Gradients(), see)
    assert de is not None, "every layer keeps what its gradient needs"
    return tokens.padded(de), each


def _head(sums: ScoreSums, tokens: Tokens, x: Array) -> Array:
    with np.errstate(under="ignore"):
        return sums.run(HeadInputs(x, tokens, {}, sums.parameters, None, Gradients(), NumpyTraining())).dx


def _flat(x: Array) -> Array:
    """[n, S, H] -> [M, H]; rows are not padded, so their tokens are in order."""
    return np.ascontiguousarray(x, np.float32).reshape(-1, x.shape[-1])
