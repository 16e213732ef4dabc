"""The encoder's forward pass, keeping what its backward pass needs, and the backward pass, in NumPy.

The formulas are in `wordpiece_bert.bert.functional` and `wordpiece_bert.bert.gradients`; here they are called in order.
Comments denote shapes by their letters: M tokens of the batch, E width of the word table, H hidden size, F intermediate
size, N heads, d size of a head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert.finetune.attention import Attention
from wordpiece_bert.finetune.disentangled import DisentangledAttention, WithConvolution
from wordpiece_bert.finetune.encoder_layers import NormFirst, NormLast, SubLayers, TokenDropout
from wordpiece_bert.finetune.weights import EncoderWeights

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.finetune.dropout import Dropout
    from wordpiece_bert.finetune.encoder_layers import Layers, RowAttention
    from wordpiece_bert.finetune.network import Gradients, Network
    from wordpiece_bert.finetune.passes import PassOptions
    from wordpiece_bert.finetune.tokens import Tokens

__all__ = ["EncoderPass"]

_PROJECTION = "embeddings.projection"


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
        self._network, self._tokens = network, tokens
        self._weights = EncoderWeights(network, parameters, trained=not inputs_only)
        self._drop = TokenDropout(network, tokens, options.dropout)
        self._trained_from = options.trained_from
        self._attention = self._attention_of(network, options.dropout)
        self._layers = self._layers_of(network)
        with np.errstate(under="ignore"):
            self._first: int | None = None if start is None else start[0]
            x = self._embed() if start is None else start[1]
            #: What each layer keeps; None for those that are not run, or whose gradient is not needed.
            self._kept: list[Any] = [None] * (self._first or 0)
            for index in range(len(self._kept), network.config.encoder_layers):
                y, kept = self._layers.forward(index, x)
                if self._trained_from is not None and index < self._trained_from:
                    self._kept.append(None)
                else:
                    self._kept.append(x if options.gradient_checkpointing else kept)
                x = y
            if "encoder.ln" in self._weights:
                x, self._last = self._weights.norm("encoder.ln", x)
        self.x = x

    def _attention_of(self, network: Network, dropout: Dropout | None) -> RowAttention:
        kind = network.config.disentangled
        if kind is None:
            return Attention(network, self._weights, self._tokens, dropout)
        return DisentangledAttention(network, kind, self._weights, self._tokens, dropout)

    def _layers_of(self, network: Network) -> Layers:
        parts = SubLayers(network, self._weights, self._attention, self._drop)
        layers = (NormFirst if network.config.norm_first else NormLast)(self._weights, parts)
        kind = network.config.disentangled
        if kind is None or kind.convolution is None:
            return layers
        return WithConvolution(kind, self._weights, self._tokens, self._drop, layers)

    def _embed(self) -> Array:
        """Input of the first layer, [M, H].

        x₀ = projection(dropout(LN(word + type + position))); in DeBERTa dropout(LN(projection(…))·mask).
        """
        tokens, weights = self._tokens, self._weights
        words = weights.table("embeddings.word_embeddings")
        e = words[tokens.ids] if tokens.vectors is None else tokens.vectors  # [M, E]
        for name, ids in (("token_type", tokens.types), ("position", tokens.positions)):
            if f"embeddings.{name}_embeddings" in weights:
                e = e + weights.table(f"embeddings.{name}_embeddings")[ids]
        disentangled = self._network.config.disentangled is not None
        if disentangled:
            e = self._project(e)
        y, self._embedded = weights.norm("embeddings.LayerNorm", e)
        if disentangled:
            y = y * tokens.seen()[:, None]
        y = self._drop("embeddings", y)
        return y if disentangled else self._project(y)

    def _project(self, x: Array) -> Array:
        """The dense layer from E to H, in models that have one, [M, E] -> [M, H]."""
        if _PROJECTION not in self._weights:
            return x
        self._projected = x
        return self._weights.linear(_PROJECTION, x)

    def _project_backward(self, dy: Array, gradient: Gradients) -> Array:
        if _PROJECTION not in self._weights:
            return dy
        return self._weights.linear_backward(_PROJECTION, dy, self._projected, gradient)

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
        with np.errstate(under="ignore"):
            if "encoder.ln" in self._weights:
                dx = self._weights.norm_backward("encoder.ln", dx, self._last, gradient)
            for index in reversed(range(self._first or 0, len(self._kept))):
                kept = self._kept[index]
                if kept is None:
                    return None
                if isinstance(kept, np.ndarray):  # the input alone
                    kept = self._layers.forward(index, kept)[1]
                self._kept[index] = None
                dx = self._layers.backward(index, dx, kept, gradient)
                if see is not None:
                    see(index, dx)
            if self._first is not None:
                return dx
            self._attention.finish(gradient)
            return None if self._trained_from is not None else self._embed_backward(dx, gradient)

    def _embed_backward(self, dx: Array, gradient: Gradients) -> Array:
        """The steps of `_embed` in reverse: [M, H] -> the gradient with respect to the word vectors, [M, E]."""
        tokens, weights, config = self._tokens, self._weights, self._network.config
        disentangled = config.disentangled is not None
        if not disentangled:
            dx = self._project_backward(dx, gradient)
        dx = self._drop("embeddings", dx)
        if disentangled:
            dx = dx * tokens.seen()[:, None]
        de = weights.norm_backward("embeddings.LayerNorm", dx, self._embedded, gradient)
        if disentangled:
            de = self._project_backward(de, gradient)  # [M, E]
        if tokens.ids is not None:
            weights.lookup_backward("embeddings.word_embeddings", de, tokens.ids, gradient, config.pad_token_id)
        # MPNet's position table has a row for padding, which torch does not train.
        padding = config.pad_token_id if config.relative_attention_num_buckets else None
        for name, ids, without in (("token_type", tokens.types, None), ("position", tokens.positions, padding)):
            if f"embeddings.{name}_embeddings" in weights:
                weights.lookup_backward(f"embeddings.{name}_embeddings", de, ids, gradient, without)
        return de
