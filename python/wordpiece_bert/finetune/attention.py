"""The attention of a batch, forward and backward, in NumPy: one row of the batch at a time.

The formulas are in `wordpiece_bert.bert.gradients`. Comments denote shapes as in `wordpiece_bert.finetune.encoder`; S
are the tokens of a row that are computed, K those that may be attended to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert.bert import functional, gradients
from wordpiece_bert.bert.rotary import Rotation, frequencies, rotate, rotation
from wordpiece_bert.finetune.network import dropout_rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wordpiece_bert.bert.functional import Array, Mask
    from wordpiece_bert.bert.rotary import Rotary
    from wordpiece_bert.finetune.dropout import Dropout
    from wordpiece_bert.finetune.network import Gradients, Network
    from wordpiece_bert.finetune.tokens import Tokens
    from wordpiece_bert.finetune.weights import EncoderWeights

__all__ = ["Attention", "AttentionMasks", "merged", "split"]

#: The fewest queries of a layer with a window whose scores are computed at once.
_QUERIES = 64


class Attention:
    """softmax(q·kᵀ/√d)·v of all layers, with MPNet's bias, rotary positions and windows where the model has them.

    Parameters
    ----------
    network, weights
        The model.
    tokens
        The batch.
    dropout
        Masks of the attention weights; None for no dropout.
    """

    def __init__(self, network: Network, weights: EncoderWeights, tokens: Tokens, dropout: Dropout | None) -> None:
        self._network, self._weights, self._tokens = network, weights, tokens
        self._masks = AttentionMasks(network, tokens, dropout)
        self._bias = self._position_bias()
        self._rotations: dict[Rotary, Rotation] = {}

    def forward(self, index: int, q: Array, k: Array, v: Array) -> Array:
        """Return the context of all heads in layer number `index`; q, k and v [M, H] -> [M, H]."""
        q, k = self._rotated(index, q), self._rotated(index, k)
        heads = self._network.config.num_attention_heads
        c = np.empty_like(q)
        for row in range(self._tokens.shape[0]):
            for queries, keys, visible in self._blocks(index, row):
                c_block, _ = gradients.attention(
                    split(q[queries], heads),
                    split(k[keys], heads),
                    split(v[keys], heads),
                    self._block_bias(queries, keys),
                    self._masks(index, row, queries, keys),
                    visible,
                )
                c[queries] = merged(c_block)
        return c

    def backward(
        self, index: int, dc: Array, q: Array, k: Array, v: Array, gradient: Gradients
    ) -> tuple[Array, Array, Array]:
        """Return dq, dk and dv [M, H] for dc [M, H]; the attention weights are computed again."""
        q, k = self._rotated(index, q), self._rotated(index, k)
        heads = self._network.config.num_attention_heads
        dq, dk, dv = np.empty_like(dc), np.zeros_like(dc), np.zeros_like(dc)
        for row in range(self._tokens.shape[0]):
            for queries, keys, visible in self._blocks(index, row):
                of_block = split(q[queries], heads), split(k[keys], heads), split(v[keys], heads)
                mask = self._masks(index, row, queries, keys)
                c, p = gradients.attention(*of_block, self._block_bias(queries, keys), mask, visible)
                dq_block, dk_block, dv_block, ds = gradients.attention_backward(
                    split(dc[queries], heads), *of_block, c, p, mask
                )
                dq[queries] = merged(dq_block)
                dk[keys] += merged(dk_block)
                dv[keys] += merged(dv_block)
                if self._bias is not None:
                    self._bias_backward(queries, keys, ds, gradient)
        return self._rotated(index, dq, back=True), self._rotated(index, dk, back=True), dv

    def finish(self, gradient: Gradients) -> None:
        """Add the gradients of what all layers read, after the lowest one."""

    def _blocks(self, index: int, row: int) -> Iterator[tuple[slice, slice, Mask | None]]:
        """Iterate over queries of a row, the keys near them, and which of these they see [S, K]; None for all."""
        tokens = self._tokens
        queries, keys, columns = tokens.queries(row), tokens.keys(row), tokens.columns
        window = self._network.config.layer_positions(index).window
        if window is None:
            yield queries, keys, None
            return
        step = max(_QUERIES, window)
        for start in range(queries.start, queries.stop, step):
            part = slice(start, min(start + step, queries.stop))
            places = columns[part]
            first, end = np.searchsorted(columns[keys], [places.min() - window, places.max() + window + 1])
            near = slice(keys.start + int(first), keys.start + int(end))
            yield part, near, np.abs(places[:, None] - columns[near][None, :]) <= window

    # --- rotary positions

    def _rotated(self, index: int, x: Array, *, back: bool = False) -> Array:
        """Rotate the heads of queries or keys [M, H]; or their gradients, which are rotated back."""
        rotary = self._network.config.layer_positions(index).rotary
        if rotary is None:
            return x
        if rotary not in self._rotations:
            self._rotations[rotary] = rotation(self._tokens.positions[None], frequencies(*rotary))
        by = self._rotations[rotary]
        if back:
            by = Rotation(by.cos, -by.sin)
        return merged(rotate(split(x, self._network.config.num_attention_heads)[None], by)[0])

    # --- MPNet's bias

    def _position_bias(self) -> Array | None:
        """Return MPNet's bias for all pairs of places, [N, S, S]; None for other models."""
        if not self._network.config.relative_attention_num_buckets:
            return None
        table = self._weights.table("encoder.relative_attention_bias")  # [32, N]
        bias: Array = functional.relative_position_bias(self._tokens.shape[1], table)[0]
        return bias

    def _block_bias(self, queries: slice, keys: slice) -> Array | None:
        if self._bias is None:
            return None
        columns = self._tokens.columns
        return self._bias[:, columns[queries][:, None], columns[keys][None, :]]  # [N, S, K]

    def _bias_backward(self, queries: slice, keys: slice, ds: Array, gradient: Gradients) -> None:
        """Add Σ ds over the pairs of places in each bucket of distances; ds [N, S, K]."""
        columns = self._tokens.columns
        distance = columns[queries][:, None] - columns[keys][None, :]  # [S, K]
        buckets = functional.distance_buckets(distance).reshape(-1)
        count = self._network.config.relative_attention_num_buckets
        sums = [np.bincount(buckets, weights=head.reshape(-1), minlength=count) for head in ds]
        self._weights.add(gradient, "encoder.relative_attention_bias", np.stack(sums, axis=1).astype(ds.dtype))


class AttentionMasks:
    """The masks of dropout of the attention weights."""

    def __init__(self, network: Network, tokens: Tokens, dropout: Dropout | None) -> None:
        self._tokens, self._dropout, self._heads = tokens, dropout, network.config.num_attention_heads
        self._rate = dropout_rate(network.config, "attention_probs_dropout_prob")

    def __call__(self, index: int, row: int, queries: slice, keys: slice) -> Array | None:
        """Return the mask of a layer for some tokens of a row, [N, queries, keys]; None for no dropout."""
        if self._dropout is None:
            return None
        site = f"layer.{index}.attention_probs"
        return self._dropout.attention(site, self._tokens, row, queries, keys, self._heads, self._rate)


def split(x: Array, heads: int) -> Array:
    """[S, H] -> [N, S, d]; S may be 0."""
    return x.reshape(len(x), heads, x.shape[1] // heads).swapaxes(0, 1)


def merged(x: Array) -> Array:
    """[N, S, d] -> [S, H]."""
    heads, length, size = x.shape
    return x.swapaxes(0, 1).reshape(length, heads * size)
