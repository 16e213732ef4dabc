"""The arithmetic of MobileBERT: narrow layers between wide hidden states, and embeddings of three neighbours.

Source: Sun et al., "MobileBERT: a Compact Task-Agnostic BERT for Resource-Limited Devices" (2020), section 3 and
figure 1c.
Letters for shapes are those of `wordpiece_bert.bert.functional`; h is the width within a layer, and d = h / N.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert.bert.functional import layer_norm, linear, self_attention

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wordpiece_bert.bert.functional import Activation, Array, Ids, Mask, QueryKeyValue

    #: A part of the weights, by their names in a checkpoint.
    Weights = Mapping[str, Any]

__all__ = ["Bottleneck", "attention_inputs", "bottleneck_embeddings", "bottleneck_layer", "neighbours"]

#: ε of the two norms that do not follow ``layer_norm_eps``: torch's default.
FIXED_EPS = 1e-5


class Bottleneck(NamedTuple):
    """How the layers of a MobileBERT differ from those of BERT."""

    #: Whether layers are narrower than the hidden states.
    narrow: bool
    #: Whether queries, keys and values are all computed from the narrow input.
    attention: bool
    #: Whether queries and keys are computed from a second narrow input.
    shared: bool
    #: Feed-forward networks of each layer.
    feed_forwards: int
    #: Whether the word vector of a token is joined with those of its neighbours.
    trigrams: bool
    #: Whether a dense layer maps word vectors to H.
    transformed: bool
    #: Whether norms are layer norms; else they only multiply by γ and add β.
    layer_norms: bool
    #: Whether the pooler is a dense layer and tanh; else it is the first token.
    pooler: bool


def norm(x: Array, weight: Array, bias: Array, eps: float, *, layer_norms: bool) -> Array:
    """Layer norm, or NoNorm(x) = x·γ + β (section 3.4), [..., H] -> [..., H]."""
    return layer_norm(x, weight, bias, eps=eps) if layer_norms else x * weight + bias


def neighbours(e: Array) -> Array:
    """Join each word vector with those of its neighbours: [e_{s+1}; e_s; e_{s−1}], zeros beyond the ends of the row.

    e [B, S, E] -> [B, S, 3E]. Neighbours are those of the padded row: the last token's is the vector of the padding.
    """
    zeros = np.zeros_like(e[:, :1])
    return np.concatenate(
        [np.concatenate([e[:, 1:], zeros], axis=1), e, np.concatenate([zeros, e[:, :-1]], axis=1)], axis=-1
    )


def bottleneck_embeddings(e: Array, token_type_ids: Ids, position_ids: Ids, tables: Weights, kind: Bottleneck) -> Array:
    """Norm(dense(trigram) + position + type): word vectors e [B, S, E] -> [B, S, H]."""
    x = neighbours(e) if kind.trigrams else e
    if kind.transformed:
        x = linear(x, **tables["embedding_transformation"])  # [B, S, H]
    x = x + tables["position_embeddings"]["weight"][position_ids]
    x = x + tables["token_type_embeddings"]["weight"][token_type_ids]
    return norm(x, **tables["LayerNorm"], eps=FIXED_EPS, layer_norms=kind.layer_norms)


def attention_inputs(x: Array, layer: Weights, kind: Bottleneck, eps: float) -> tuple[Array, Array, Array]:
    """Return what attention works on: b, to which its result is added, s for queries and keys, and that for values.

    x [B, S, H] -> b [B, S, h], s [B, S, h or H], [B, S, h or H].
    """

    def narrowed(name: str) -> Array:
        part = layer["bottleneck"][name]
        return norm(linear(x, **part["dense"]), **part["LayerNorm"], eps=eps, layer_norms=kind.layer_norms)

    b = narrowed("input") if kind.narrow else x
    values = b if kind.attention else x
    shared = kind.narrow and kind.shared and not kind.attention
    return b, narrowed("attention") if shared else values, values


def bottleneck_layer(
    x: Array, layer: Weights, mask: Mask | None, kind: Bottleneck, *, heads: int, activation: Activation, eps: float
) -> tuple[Array, Array]:
    """One layer: into the narrow width, attention, several feed-forward networks, and back (figure 1c).

        b = Norm(dense(x))            s = Norm(dense(x))
        a = Norm(attention(s, s, x) + b)
        a = Norm(FFN(a) + a)          once for each feed-forward network
        x' = Norm(dense(a) + x)

    x [B, S, H], mask [B, S] or None -> x' [B, S, H] and the attention weights [B, N, S, S].
    """

    def dense_norm(x: Array, part: Weights, residual: Array, eps: float = eps) -> Array:
        return norm(linear(x, **part["dense"]) + residual, **part["LayerNorm"], eps=eps, layer_norms=kind.layer_norms)

    def feed_forward(a: Array, part: Weights, eps: float = eps) -> Array:
        h = activation(linear(a, **part["intermediate"]["dense"]))  # [B, S, F]
        return dense_norm(h, part["output"], residual=a, eps=eps)

    b, queries, values = attention_inputs(x, layer, kind, eps)
    parts: QueryKeyValue = layer["attention"]["self"]
    context, p = self_attention(queries, **parts, heads=heads, mask=mask, values=values)  # [B, S, h], [B, N, S, S]
    a = dense_norm(context, layer["attention"]["output"], residual=b)  # [B, S, h]
    for index in range(kind.feed_forwards - 1):
        a = feed_forward(a, layer["ffn"][str(index)])
    a = feed_forward(a, layer, eps=FIXED_EPS)
    return dense_norm(a, layer["output"]["bottleneck"], residual=x) if kind.narrow else a, p
