"""DeBERTa's attention over relative positions and its convolution, forward and backward, in NumPy.

The formulas are in `wordpiece_bert.bert.disentangled` and `wordpiece_bert.bert.disentangled_gradients`. Comments denote
shapes as in `wordpiece_bert.finetune.encoder`; 2K is the number of rows of the relative table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert.bert import disentangled_gradients, functional, gradients
from wordpiece_bert.bert.disentangled import RelativeTerms
from wordpiece_bert.bert.disentangled_gradients import Row
from wordpiece_bert.finetune.attention import AttentionMasks, merged, split
from wordpiece_bert.finetune.network import dropout_rate

if TYPE_CHECKING:
    from wordpiece_bert.bert.disentangled import Disentangled
    from wordpiece_bert.bert.functional import Array, Mask
    from wordpiece_bert.bert.gradients import Normalized
    from wordpiece_bert.finetune.dropout import Dropout
    from wordpiece_bert.finetune.encoder_layers import Layers, TokenDropout
    from wordpiece_bert.finetune.network import Gradients, Network
    from wordpiece_bert.finetune.tokens import Tokens
    from wordpiece_bert.finetune.weights import EncoderWeights

__all__ = ["DisentangledAttention", "WithConvolution"]

_RELATIVE, _RELATIVE_NORM = "encoder.rel_embeddings", "encoder.LayerNorm"


class DisentangledAttention:
    """softmax of disentangled scores, times v, of all layers; the arguments are those of `attention.Attention`.

    All tokens of a row that are computed may be attended to, except by visible tokens the masked ones.
    """

    def __init__(
        self,
        network: Network,
        kind: Disentangled,
        weights: EncoderWeights,
        tokens: Tokens,
        dropout: Dropout | None,
    ) -> None:
        self._kind, self._weights, self._tokens, self._dropout = kind, weights, tokens, dropout
        self._heads = network.config.num_attention_heads
        self._masks = AttentionMasks(network, tokens, dropout)
        self._rate = dropout_rate(network.config, "hidden_dropout_prob")
        self._table: Array | None = None  # [2K, H] R, the rows of relative positions
        self._normed: Normalized | None = None
        if kind.has_terms:
            self._table = weights.table(_RELATIVE)
            if kind.normed:
                self._table, self._normed = weights.norm(_RELATIVE_NORM, self._table)
        self._dtable: Array | None = None  # [2K, H] the gradient of R so far

    def forward(self, index: int, q: Array, k: Array, v: Array) -> Array:
        """Return the context of all heads in layer number `index`; q, k and v [M, H] -> [M, H]."""
        terms = self._terms(index)
        c = np.empty_like(q)
        for row in range(self._tokens.shape[0]):
            c_row, _ = disentangled_gradients.attention(self._row(index, row, q, k, v), terms, self._kind)
            c[self._tokens.queries(row)] = merged(c_row)
        return c

    def backward(
        self, index: int, dc: Array, q: Array, k: Array, v: Array, gradient: Gradients
    ) -> tuple[Array, Array, Array]:
        """Return dq, dk and dv [M, H] for dc [M, H]; the attention weights are computed again."""
        terms, heads = self._terms(index), self._heads
        dq, dk, dv = (np.empty_like(dc) for _ in range(3))
        dterms: list[Array | None] = [None, None]  # with respect to K^r and Q^r
        for row in range(self._tokens.shape[0]):
            rows, operands = self._tokens.queries(row), self._row(index, row, q, k, v)
            c, p = disentangled_gradients.attention(operands, terms, self._kind)
            dq_row, dk_row, dv_row, *of_terms = disentangled_gradients.attention_backward(
                split(dc[rows], heads), operands, c, p, terms, self._kind
            )
            dq[rows], dk[rows], dv[rows] = merged(dq_row), merged(dk_row), merged(dv_row)
            for i, part in enumerate(of_terms):
                if part is not None:
                    dterms[i] = part if (before := dterms[i]) is None else before + part
        self._terms_backward(index, dterms, gradient)
        return dq, dk, dv

    def finish(self, gradient: Gradients) -> None:
        """Add the gradients of the relative table and its norm, which all layers read."""
        if self._dtable is not None:
            dtable = self._dtable
            if self._normed is not None:
                dtable = self._weights.norm_backward(_RELATIVE_NORM, dtable, self._normed, gradient)
            self._weights.add(gradient, _RELATIVE, dtable)

    def _row(self, index: int, row: int, q: Array, k: Array, v: Array) -> Row:
        """Return what the attention of one row reads."""
        rows, heads = self._tokens.queries(row), self._heads
        return Row(
            split(q[rows], heads),
            split(k[rows], heads),
            split(v[rows], heads),
            self._tokens.columns[rows],
            self._visible(row),
            self._masks(index, row, rows, rows),
        )

    def _visible(self, row: int) -> Mask | None:
        """Return which of the tokens of a row are visible, [S]; None if all are."""
        rows, count = self._tokens.queries(row), int(self._tokens.visible[row])
        length = rows.stop - rows.start
        return None if count == length else np.arange(length) < count

    def _mask(self, index: int) -> Array | None:
        """Return the mask of dropout of the relative table in a layer, [2K, H]; None for no dropout."""
        if self._dropout is None or self._table is None or not self._rate:
            return None
        rows, width = self._table.shape
        return self._dropout.vectors(f"layer.{index}.relative", rows, width, self._rate)

    def _dropped(self, index: int) -> Array:
        assert self._table is not None, "only asked for where there are terms of positions"
        mask = self._mask(index)
        return self._table if mask is None else self._table * mask

    def _projections(self, index: int) -> tuple[str, str]:
        """Return the dense layers from R to K^r and to Q^r."""
        name = f"encoder.layer.{index}.attention.self"
        return (
            (f"{name}.key", f"{name}.query")
            if self._kind.shared
            else (
                f"{name}.pos_key_proj",
                f"{name}.pos_query_proj",
            )
        )

    def _terms(self, index: int) -> RelativeTerms | None:
        """Return K^r and Q^r of a layer, [2K, H] each."""
        if self._table is None:
            return None
        kind, table = self._kind, self._dropped(index)
        key, query = self._projections(index)
        return RelativeTerms(
            self._weights.linear(key, table) if kind.content_to_position else None,
            self._weights.linear(query, table) if kind.position_to_content else None,
        )

    def _terms_backward(self, index: int, dterms: list[Array | None], gradient: Gradients) -> None:
        """Add the gradients of the dense layers of `_terms`, and sum up that of R."""
        for name, d in zip(self._projections(index), dterms, strict=True):
            if d is not None:
                dtable = self._weights.linear_backward(name, d, self._dropped(index), gradient)
                mask = self._mask(index)
                dtable = dtable if mask is None else dtable * mask
                self._dtable = dtable if self._dtable is None else self._dtable + dtable


class _ConvolutionKept(NamedTuple):
    layer: Any  # what the layer itself keeps
    x: Array  # [M, H] its input
    z: Array  # [M, H] the convolution, before the activation
    output: Normalized


class WithConvolution:
    """Layers of which the first has the convolution of its input added: x' = LN(layer(x) + f(dropout(conv(x)))).

    Masked tokens have a convolution of 0, and an output of 0.
    """

    def __init__(
        self, kind: Disentangled, weights: EncoderWeights, tokens: Tokens, drop: TokenDropout, layers: Layers
    ) -> None:
        assert kind.convolution is not None, "only made for models with a convolution"
        self._kind, self._weights, self._tokens = kind.convolution, weights, tokens
        self._drop, self._layers = drop, layers
        self._seen = tokens.seen()[:, None]  # [M, 1]

    def forward(self, index: int, x: Array) -> tuple[Array, Any]:
        """Return the output of a layer, as `encoder_layers.Layers.forward`."""
        y, kept = self._layers.forward(index, x)
        if index:
            return y, kept
        weight, bias = self._weights.affine("encoder.conv.conv")
        assert bias is not None, "a convolution has a bias"
        z = disentangled_gradients.convolve(self._tokens.padded(x), weight, bias, self._kind.groups)
        z = self._drop("layer.0.convolution", self._flat(z))
        h = functional.ACTIVATIONS[self._kind.activation](z)
        out, normed = self._weights.norm("encoder.conv.LayerNorm", y + h)
        return out * self._seen, _ConvolutionKept(kept, x, z, normed)

    def _flat(self, x: Array) -> Array:
        """[B, S, H] -> [M, H], 0 for masked tokens."""
        return x[self._tokens.rows, self._tokens.columns] * self._seen

    def backward(self, index: int, dx: Array, kept: Any, gradient: Gradients) -> Array:
        """Return the gradient of the input, as `encoder_layers.Layers.backward`."""
        if index:
            return self._layers.backward(index, dx, kept, gradient)
        dy = self._weights.norm_backward("encoder.conv.LayerNorm", dx * self._seen, kept.output, gradient)
        dz = gradients.activation_backward(dy, kept.z, self._kind.activation)
        dz = self._tokens.padded(self._drop("layer.0.convolution", dz) * self._seen)
        padded = self._tokens.padded(kept.x)
        weight, _ = self._weights.affine("encoder.conv.conv")
        dx_conv, dweight, dbias = disentangled_gradients.convolution_backward(dz, padded, weight, self._kind.groups)
        self._weights.add(gradient, "encoder.conv.conv", dweight, dbias)
        dx = self._layers.backward(index, dy, kept.layer, gradient)
        return dx + dx_conv[self._tokens.rows, self._tokens.columns]
