"""The encoder's forward pass, keeping what its backward pass needs, and the backward pass, in NumPy.

The layers come from the model's plan, run by `wordpiece_bert.bert.plan.interpreter`; here is what a pass keeps of
them. Comments denote shapes by their letters: M tokens of the batch, E width of the word table, H hidden size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert.bert.plan.interpreter import Interpreter
from wordpiece_bert.finetune.packed_rows import PackedRows
from wordpiece_bert.finetune.weights import EncoderWeights

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.finetune.network import Gradients, Network
    from wordpiece_bert.finetune.passes import PassOptions
    from wordpiece_bert.finetune.tokens import Tokens


class EncoderPass:
    """One forward pass over a batch, and its backward pass.

    Parameters
    ----------
    network, parameters
        The model.
    tokens
        The batch.
    options
        Dropout, and what is kept for the backward pass.
    start
        The number of a layer and its input, [M, H], from which the pass begins; by default the embeddings.
    inputs_only
        Whether the backward pass leaves out the gradients of dense layers, which take half of its time.

    Attributes
    ----------
    x : array
        The output x_L of the last layer, [M, H].
    """

    def __init__(
        self,
        network: Network,
        parameters: Mapping[str, Array],
        tokens: Tokens,
        options: PassOptions,
        start: tuple[int, Array] | None = None,
        *,
        inputs_only: bool = False,
    ) -> None:
        self._weights = EncoderWeights(network, parameters, options.trained_from)
        rows = PackedRows(network.rates, tokens, options.dropout)
        self._steps = steps = Interpreter(
            network.plan, self._weights, rows, training=True, dense_gradients=not inputs_only
        )
        self._trained_from = options.trained_from
        self._first: int | None = None if start is None else start[0]
        with np.errstate(under="ignore"):
            steps.keeps = self._trained_from is None
            embedded = None if start is not None else steps.embed()
            self._embedded = None if embedded is None else embedded.back
            x = start[1] if start is not None else embedded.y.now  # type: ignore[union-attr]
            #: For each layer what takes a gradient back through it, or its input; None for one that is not run, or
            #: whose gradient is not needed.
            self._kept: list[Any] = [None] * (self._first or 0)
            for index in range(len(self._kept), len(network.plan.layers)):
                trained = self._trained_from is None or index >= self._trained_from
                steps.keeps = trained and not options.gradient_checkpointing
                step = steps.layer(index, x)
                self._kept.append(x if trained and options.gradient_checkpointing else step.back)
                x = step.y.now
            steps.keeps = True
            self._last = steps.last(x)
        self.x = self._last.y.now

    def backward(self, dx: Array, gradient: Gradients, see: Callable[[int, Array], None] | None = None) -> Array | None:
        """Add the gradients of all trained parameters of the encoder.

        Parameters
        ----------
        dx : ndarray
            The gradient of the loss with respect to `x`, [M, H].
        gradient
            Receives the gradients.
        see
            Is called with the number of each layer and the gradient with respect to its input, [M, H].

        Returns
        -------
        array or None
            The gradient with respect to the word vectors, [M, E], or to the `start` of the pass, [M, H]; None if the
            embeddings are not trained.
        """
        self._weights.gradient = gradient
        with np.errstate(under="ignore"):
            dx = self._last.backward(dx)
            for index in reversed(range(self._first or 0, len(self._kept))):
                kept = self._kept[index]
                if kept is None:
                    return None
                back = self._steps.layer(index, kept).backward if isinstance(kept, np.ndarray) else kept
                self._kept[index] = None
                dx = back(dx)
                if see is not None:
                    see(index, dx)
            if self._first is not None:
                return dx
            self._steps.finish()
            return None if self._embedded is None else self._embedded(dx)
