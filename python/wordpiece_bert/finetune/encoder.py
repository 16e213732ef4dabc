"""The encoder's forward pass, keeping what its backward pass needs, and the backward pass, in NumPy.

The formulas are in `wordpiece_bert.bert.functional` and `wordpiece_bert.bert.gradients`; here they are called in order.
Comments denote shapes by their letters: M tokens of the batch, E width of the word table, H hidden size, F intermediate
size, N heads, d size of a head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert.bert import functional, gradients
from wordpiece_bert.finetune.network import Gradients, Network, affine, dropout_rate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wordpiece_bert.bert.functional import Array, Ids
    from wordpiece_bert.bert.gradients import Normalized
    from wordpiece_bert.finetune.passes import PassOptions
    from wordpiece_bert.finetune.tokens import Tokens

__all__ = ["EncoderPass"]


@dataclass
class _Layer:
    """What one layer keeps: 7H + F numbers a token. The attention weights are computed again."""

    x: Array  # [M, H] its input
    q: Array  # [M, H]
    k: Array  # [M, H]
    v: Array  # [M, H]
    c: Array  # [M, H] the context of all heads
    attention: Normalized  # x̂ [M, H] and r [M, 1] of the norm after the attention
    z: Array  # [M, F] before the activation
    output: Normalized  # of the norm after the feed-forward network


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
    ) -> None:
        self._network, self._parameters, self._tokens = network, parameters, tokens
        self._dropout, self._trained_from = options.dropout, options.trained_from
        config = network.config
        self._rate = dropout_rate(config, "hidden_dropout_prob")
        self._attention_rate = dropout_rate(config, "attention_probs_dropout_prob")
        self._bias = self._position_bias()
        with np.errstate(under="ignore"):
            x = self._embed()
            self._layers: list[_Layer | Array | None] = []
            for index in range(config.encoder_layers):
                y, kept = self._layer(index, x)
                if self._trained_from is not None and index < self._trained_from:
                    self._layers.append(None)
                else:
                    self._layers.append(x if options.gradient_checkpointing else kept)
                x = y
        self.x = x

    # --- forward

    def _weights(self, name: str) -> tuple[Array, Array]:
        """Return weight and bias of one of BERT's dense layers or norms."""
        return affine(self._parameters, self._network.layer(name))

    def _table(self, name: str) -> Array:
        return self._parameters[self._network.name(f"{name}.weight")]

    def _embed(self) -> Array:
        """Input of the first layer, x₀ = projection(dropout(LN(word + type + position))), [M, H]."""
        tokens, config = self._tokens, self._network.config
        words = self._table("embeddings.word_embeddings")
        e = words[tokens.ids] if tokens.vectors is None else tokens.vectors  # [M, E]
        if config.type_vocab_size:
            e = e + self._table("embeddings.token_type_embeddings")[tokens.types]
        e = e + self._table("embeddings.position_embeddings")[tokens.positions]
        self._embedded = gradients.standardize(e, config.layer_norm_eps)
        y = gradients.scale_and_shift(self._embedded.x_hat, *self._weights("embeddings.LayerNorm"))
        y = self._drop("embeddings", y)
        if config.has_projection:
            self._projected = y  # [M, E]
            y = functional.linear(y, *self._weights("embeddings.projection"))
        return y

    def _drop(self, site: str, y: Array) -> Array:
        """Apply dropout at a site, or its gradient, which is the same product."""
        mask = None if self._dropout is None else self._dropout.tokens(site, self._tokens, y.shape[1], self._rate)
        return y if mask is None else y * mask

    def _layer(self, index: int, x: Array) -> tuple[Array, _Layer]:
        """One layer, a = LN(x + dropout(attention(x))), x' = LN(a + dropout(FFN(a))): [M, H] -> [M, H]."""
        name, config = f"encoder.layer.{index}", self._network.config
        q, k, v = (
            functional.linear(x, *self._weights(f"{name}.attention.self.{part}")) for part in ("query", "key", "value")
        )  # [M, H] each
        c = np.empty_like(q)  # [M, H]
        for row in range(self._tokens.shape[0]):
            c_row, _ = self._attend(index, row, q, k, v)
            c[self._tokens.queries(row)] = _merged(c_row)
        y = functional.linear(c, *self._weights(f"{name}.attention.output.dense"))
        if self._network.training.attention_output:
            y = self._drop(f"layer.{index}.attention.output", y)
        y += x
        attention = gradients.standardize(y, config.layer_norm_eps)
        a = gradients.scale_and_shift(attention.x_hat, *self._weights(f"{name}.attention.output.LayerNorm"))
        z = functional.linear(a, *self._weights(f"{name}.intermediate.dense"))  # [M, F]
        h = functional.ACTIVATIONS[config.hidden_act](z)
        y = self._drop(f"layer.{index}.output", functional.linear(h, *self._weights(f"{name}.output.dense")))
        y = y + a
        output = gradients.standardize(y, config.layer_norm_eps)
        x_next = gradients.scale_and_shift(output.x_hat, *self._weights(f"{name}.output.LayerNorm"))
        return x_next, _Layer(x, q, k, v, c, attention, z, output)

    def _attend(self, index: int, row: int, q: Array, k: Array, v: Array) -> tuple[Array, Array]:
        """Return context [N, S, d] and weights [N, S, K] of one row."""
        tokens, heads = self._tokens, self._network.config.num_attention_heads
        queries, keys = tokens.queries(row), tokens.keys(row)
        return gradients.attention(
            _split(q[queries], heads),
            _split(k[keys], heads),
            _split(v[keys], heads),
            self._row_bias(row),
            self._attention_mask(index, row),
        )

    def _attention_mask(self, index: int, row: int) -> Array | None:
        if self._dropout is None:
            return None
        heads = self._network.config.num_attention_heads
        return self._dropout.attention(f"layer.{index}.attention_probs", self._tokens, row, heads, self._attention_rate)

    def _position_bias(self) -> Array | None:
        """Return MPNet's bias for all pairs of places, [N, S, S]; None for other models."""
        if not self._network.config.relative_attention_num_buckets:
            return None
        table = self._table("encoder.relative_attention_bias")  # [32, N]
        bias: Array = functional.relative_position_bias(self._tokens.shape[1], table)[0]
        return bias

    def _row_bias(self, row: int) -> Array | None:
        if self._bias is None:
            return None
        columns = self._tokens.columns
        queries, keys = columns[self._tokens.queries(row)], columns[self._tokens.keys(row)]
        return self._bias[:, queries[:, None], keys[None, :]]  # [N, S, K]

    # --- backward

    def backward(self, dx: Array, gradient: Gradients) -> Array | None:
        """Add the gradients of all trained parameters of the encoder.

        Parameters
        ----------
        dx : ndarray
            The gradient of the loss with respect to `x`, [M, H].
        gradient
            Receives the gradients.

        Returns
        -------
        array or None
            The gradient with respect to the word vectors, [M, E]; None if the embeddings are not trained.
        """
        with np.errstate(under="ignore"):
            for index in reversed(range(len(self._layers))):
                stored = self._layers[index]
                if stored is None:
                    return None
                kept = stored if isinstance(stored, _Layer) else self._layer(index, stored)[1]
                self._layers[index] = None
                dx = self._layer_backward(index, dx, kept, gradient)
            if self._trained_from is not None:
                return None
            return self._embed_backward(dx, gradient)

    def _dense_backward(self, name: str, dy: Array, x: Array, gradient: Gradients) -> Array:
        weight, _ = self._weights(name)
        dx, dw, db = gradients.linear_backward(dy, x, weight)
        gradient.add_affine(self._network.layer(name), dw, db)
        return dx

    def _norm_backward(self, name: str, dy: Array, kept: Normalized, gradient: Gradients) -> Array:
        weight, _ = self._weights(name)
        g, dweight, dbias = gradients.scale_and_shift_backward(dy, kept.x_hat, weight)
        gradient.add_affine(self._network.layer(name), dweight, dbias)
        return gradients.standardize_backward(g, kept)

    def _layer_backward(self, index: int, dx: Array, kept: _Layer, gradient: Gradients) -> Array:
        """The steps of `_layer` in reverse: [M, H] -> [M, H]."""
        name, config = f"encoder.layer.{index}", self._network.config
        # x' = LN(dropout(W₂·h + b₂) + a), h = activation(z), z = W₁·a + b₁
        dy = self._norm_backward(f"{name}.output.LayerNorm", dx, kept.output, gradient)  # [M, H]
        h = functional.ACTIVATIONS[config.hidden_act](kept.z)  # [M, F]
        dh = self._dense_backward(f"{name}.output.dense", self._drop(f"layer.{index}.output", dy), h, gradient)
        dz = gradients.activation_backward(dh, kept.z, config.hidden_act)
        norm = self._weights(f"{name}.attention.output.LayerNorm")
        a = gradients.scale_and_shift(kept.attention.x_hat, *norm)
        da = dy + self._dense_backward(f"{name}.intermediate.dense", dz, a, gradient)
        # a = LN(dropout(W·c + b) + x)
        dy = self._norm_backward(f"{name}.attention.output.LayerNorm", da, kept.attention, gradient)
        dropped = self._drop(f"layer.{index}.attention.output", dy) if self._network.training.attention_output else dy
        dc = self._dense_backward(f"{name}.attention.output.dense", dropped, kept.c, gradient)
        # c = softmax(q·kᵀ/√d)·v
        dq, dk, dv = self._attention_backward(index, dc, kept, gradient)
        dx = dy
        for part, d in (("query", dq), ("key", dk), ("value", dv)):
            dx = dx + self._dense_backward(f"{name}.attention.self.{part}", d, kept.x, gradient)
        return dx

    def _attention_backward(
        self, index: int, dc: Array, kept: _Layer, gradient: Gradients
    ) -> tuple[Array, Array, Array]:
        """Return dq, dk, dv [M, H] for dc [M, H]; the weights p are computed again, a row of the batch at a time."""
        heads, tokens = self._network.config.num_attention_heads, self._tokens
        dq, dk, dv = np.empty_like(dc), np.zeros_like(dc), np.zeros_like(dc)
        for row in range(tokens.shape[0]):
            queries, keys = tokens.queries(row), tokens.keys(row)
            q, k, v = _split(kept.q[queries], heads), _split(kept.k[keys], heads), _split(kept.v[keys], heads)
            mask = self._attention_mask(index, row)
            c, p = gradients.attention(q, k, v, self._row_bias(row), mask)
            dq_row, dk_row, dv_row, ds = gradients.attention_backward(_split(dc[queries], heads), q, k, v, c, p, mask)
            dq[queries], dk[keys], dv[keys] = _merged(dq_row), _merged(dk_row), _merged(dv_row)
            if self._bias is not None:
                self._bias_backward(row, ds, gradient)
        return dq, dk, dv

    def _bias_backward(self, row: int, ds: Array, gradient: Gradients) -> None:
        """Add Σ ds over the pairs of places in each bucket of distances; ds [N, S, K]."""
        columns = self._tokens.columns
        distance = columns[self._tokens.queries(row)][:, None] - columns[self._tokens.keys(row)][None, :]  # [S, K]
        buckets = functional.distance_buckets(distance).reshape(-1)
        count = self._network.config.relative_attention_num_buckets
        sums = [np.bincount(buckets, weights=head.reshape(-1), minlength=count) for head in ds]
        name = self._network.name("encoder.relative_attention_bias.weight")
        gradient.add(name, np.stack(sums, axis=1).astype(ds.dtype))  # [32, N]

    def _embed_backward(self, dx: Array, gradient: Gradients) -> Array:
        """The steps of `_embed` in reverse: [M, H] -> the gradient with respect to the word vectors, [M, E]."""
        tokens, config = self._tokens, self._network.config
        if config.has_projection:
            dx = self._dense_backward("embeddings.projection", dx, self._projected, gradient)
        dx = self._drop("embeddings", dx)
        de = self._norm_backward("embeddings.LayerNorm", dx, self._embedded, gradient)  # [M, E]
        if tokens.ids is not None:
            self._table_backward("embeddings.word_embeddings", de, tokens.ids, gradient, config.pad_token_id)
        if config.type_vocab_size:
            self._table_backward("embeddings.token_type_embeddings", de, tokens.types, gradient)
        # MPNet's position table has a row for padding, which torch does not train.
        padding = config.pad_token_id if config.relative_attention_num_buckets else None
        self._table_backward("embeddings.position_embeddings", de, tokens.positions, gradient, padding)
        return de

    def _table_backward(self, name: str, de: Array, ids: Ids, gradient: Gradients, without: int | None = None) -> None:
        rows = len(self._table(name))
        gradient.add(self._network.name(f"{name}.weight"), gradients.lookup_backward(de, ids, rows, without))


def _split(x: Array, heads: int) -> Array:
    """[S, H] -> [N, S, d]."""
    return x.reshape(len(x), heads, -1).swapaxes(0, 1)


def _merged(x: Array) -> Array:
    """[N, S, d] -> [S, H]."""
    return x.swapaxes(0, 1).reshape(x.shape[1], -1)
