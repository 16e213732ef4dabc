"""The arithmetic of DeBERTa: attention whose scores have terms for content and for relative positions of their own.

Source: He et al., "DeBERTa: Decoding-enhanced BERT with Disentangled Attention" (2021), section 3.1, equations 2 to 4;
He et al., "DeBERTaV3" (2023); the buckets and the convolution of version 2 are those of the released code.
Letters for shapes are those of `wordpiece_bert.bert.functional`; K is half the number of rows of the relative table.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert.bert.functional import (
    ACTIVATIONS,
    feed_forward,
    layer_norm,
    linear,
    merge_heads,
    queries_keys_values,
    softmax,
    split_heads,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Activation, Array, Ids, Layer, Mask, QueryKeyValue

    #: A part of the weights, by their names in a checkpoint.
    Weights = Mapping[str, Any]

__all__ = [
    "Convolution",
    "Disentangled",
    "RelativeTerms",
    "convolution",
    "convolution_as_dense",
    "disentangled_embeddings",
    "disentangled_layer",
    "disentangled_scores",
    "relative_rows",
    "relative_table",
    "relative_terms",
]


class Convolution(NamedTuple):
    """The convolution over the embeddings whose output is added after the first layer."""

    #: How many neighbouring tokens an output is computed from, an odd number.
    width: int
    #: Into how many groups the columns are divided.
    groups: int
    #: A name in `functional.ACTIVATIONS`.
    activation: str


class Disentangled(NamedTuple):
    """How a DeBERTa differs from BERT."""

    #: K, half the number of rows of the relative table; 0 without relative attention.
    span: int
    #: M, the distance from which on all pairs have the outermost bucket; 0 if every distance has its own row.
    longest: int
    #: Whether scores have a term of the query's content and the key's position.
    content_to_position: bool
    #: Whether scores have a term of the key's content and the query's position.
    position_to_content: bool
    #: Whether relative positions are projected by the weights of queries and keys.
    shared: bool
    #: By how much scores are scaled down besides d: 1 and one more for each term.
    terms: int
    #: Whether the relative table goes through a layer norm.
    normed: bool
    #: The convolution after the first layer, if there is one.
    convolution: Convolution | None

    @property
    def has_terms(self) -> bool:
        """Whether scores have a term of positions."""
        return self.content_to_position or self.position_to_content


class RelativeTerms(NamedTuple):
    """The projected relative positions of one layer."""

    keys: Array | None  # K^r [2K, N·d], for the term of the query's content
    queries: Array | None  # Q^r [2K, N·d], for the term of the key's content


def disentangled_embeddings(
    input_ids: Ids | None,
    token_type_ids: Ids,
    position_ids: Ids,
    mask: Mask | None,
    tables: Weights,
    eps: float,
    inputs_embeds: Array | None = None,
) -> Array:
    """The input of the first layer: LN(projection(word + position + type)), 0 where a token is masked.

    The arguments are those of `functional.embeddings`, and the mask [B, S] -> [B, S, H].
    """
    x = tables["word_embeddings"]["weight"][input_ids] if inputs_embeds is None else inputs_embeds  # [B, S, E]
    if "position_embeddings" in tables:
        x = x + tables["position_embeddings"]["weight"][position_ids]
    if "token_type_embeddings" in tables:
        x = x + tables["token_type_embeddings"]["weight"][token_type_ids]
    if "projection" in tables:
        x = linear(x, **tables["projection"])  # [B, S, H]
    x = layer_norm(x, **tables["LayerNorm"], eps=eps)
    return x if mask is None else x * mask[:, :, None]


def relative_rows(distance: npt.NDArray[np.int64], span: int, longest: int) -> npt.NDArray[np.int64]:
    """Return the row of the relative table, 0 to 2K − 1, for each distance query − key (equation 3).

    Without buckets each distance from −K to K − 1 has a row, and larger ones have the outermost. With buckets distances
    up to ⌊K/2⌋ have a row each, and those up to M − 1 share the other rows, whose widths grow logarithmically.

    Parameters
    ----------
    distance : ndarray of int
        Distances, of any shape.
    span : int
        K.
    longest : int
        M; 0 without buckets.
    """
    row = distance
    if longest:
        middle = span // 2
        magnitude = np.maximum(np.abs(distance), middle)
        steps = np.log(magnitude / middle) / math.log((longest - 1) / middle) * (middle - 1)
        row = np.where(
            np.abs(distance) <= middle, distance, np.sign(distance) * (np.ceil(steps).astype(np.int64) + middle)
        )
    return np.clip(row + span, 0, 2 * span - 1)


def relative_table(weights: Weights, kind: Disentangled, eps: float) -> Array:
    """Return R, the rows of relative positions, [2K, H]; through a layer norm if the model has one."""
    table: Array = weights["rel_embeddings"]["weight"]
    return layer_norm(table, **weights["LayerNorm"], eps=eps) if kind.normed else table


def relative_terms(table: Array, attention: Weights, kind: Disentangled) -> RelativeTerms:
    """Project the relative positions for one layer: K^r = W_k·R and Q^r = W_q·R, R [2K, H] -> [2K, N·d] each.

    Parameters
    ----------
    table : Array
        R, [2K, H].
    attention : mapping
        The dense layers of the layer's attention, by BERT's names.
    kind : Disentangled
        Which terms there are, and whether their layers are those of queries and keys.
    """
    key, query = ("key", "query") if kind.shared else ("pos_key_proj", "pos_query_proj")
    return RelativeTerms(
        keys=linear(table, **attention[key]) if kind.content_to_position else None,
        queries=linear(table, **attention[query]) if kind.position_to_content else None,
    )


def disentangled_scores(
    q: Array, k: Array, terms: RelativeTerms | None, kind: Disentangled, positions: Ids | None = None
) -> Array:
    """The scores of all pairs, q·k + q·K^r + k·Q^r over √(d·f), q and k [B, N, S, d] -> [B, N, S, S] (equation 4).

    Each term of positions has the row of the distance from query to key. f is `Disentangled.terms`. positions are those
    of the tokens in their row, [S]; by default 0 to S − 1.
    """
    scores: Array = q @ k.swapaxes(-1, -2)  # [B, N, S, S]
    if terms is not None and kind.has_terms:
        heads, length = q.shape[1:3]
        positions = np.arange(length) if positions is None else positions
        rows = relative_rows(positions[:, None] - positions[None, :], kind.span, kind.longest)  # [S, S]
        if terms.keys is not None:
            to_position = q @ split_heads(terms.keys[None], heads).swapaxes(-1, -2)  # [B, N, S, 2K]
            scores += np.take_along_axis(to_position, rows[None, None], axis=-1)
        if terms.queries is not None:
            to_content = k @ split_heads(terms.queries[None], heads).swapaxes(-1, -2)  # [B, N, S, 2K], by key
            scores += np.take_along_axis(to_content, rows.T[None, None], axis=-1).swapaxes(-1, -2)
    scores *= 1.0 / math.sqrt(q.shape[-1] * kind.terms)
    return scores


def disentangled_attention(
    x: Array, weights: Weights, heads: int, mask: Mask | None, terms: RelativeTerms | None, kind: Disentangled
) -> tuple[Array, Array]:
    """Self-attention over `disentangled_scores`: x [B, S, H] -> context [B, S, N·d] and weights [B, N, S, S].

    A masked query sees no key, not even masked ones: its scores are equal, and its weights 1/S.
    """
    projections: QueryKeyValue = {"query": weights["query"], "key": weights["key"], "value": weights["value"]}
    q, k, v = queries_keys_values(x, **projections, heads=heads)
    scores = disentangled_scores(q, k, terms, kind)
    if mask is not None:
        scores = np.where(mask[:, None, :, None] & mask[:, None, None, :], scores, np.finfo(np.float32).min)
    p = softmax(scores)  # [B, N, S, S]
    return merge_heads(p @ v), p


def disentangled_layer(
    x: Array,
    layer: Layer,
    mask: Mask | None,
    terms: RelativeTerms | None,
    kind: Disentangled,
    *,
    heads: int,
    activation: Activation,
    eps: float,
) -> tuple[Array, Array]:
    """One layer: that of `functional.encoder_layer` with `disentangled_attention`.

    x [B, S, H], mask [B, S] or None -> x' [B, S, H] and the attention weights [B, N, S, S].
    """
    attention, output = layer["attention"], layer["output"]
    context, p = disentangled_attention(x, attention["self"], heads, mask, terms, kind)
    a = layer_norm(x + linear(context, **attention["output"]["dense"]), **attention["output"]["LayerNorm"], eps=eps)
    x = a + feed_forward(a, layer["intermediate"], output["dense"], activation)  # [B, S, H]
    return layer_norm(x, **output["LayerNorm"], eps=eps), p


def convolution(x: Array, embedded: Array, mask: Mask | None, weights: Weights, kind: Convolution, eps: float) -> Array:
    """Add the convolution of the embeddings to the output of the first layer: LN(x + activation(conv(x₀))).

    x and x₀ [B, S, H], mask [B, S] or None -> [B, S, H], 0 where a token is masked. Beyond the ends of a row, and where
    a token is masked, x₀ is 0.

    Parameters
    ----------
    x : Array
        The output of the first layer.
    embedded : Array
        x₀, 0 where a token is masked.
    mask : Mask or None
        [B, S], true where a token is visible; None if all are.
    weights : mapping
        The weight [H, H / groups, width] and bias of the convolution, and the norm.
    kind : Convolution
        Its sizes.
    eps : float
        The ε of the norm.
    """
    weight, bias = weights["conv"]["weight"], weights["conv"]["bias"]
    half = kind.width // 2
    padded = np.pad(embedded, ((0, 0), (half, half), (0, 0)))  # [B, S + width − 1, H]
    length, outputs = x.shape[1], len(weight) // kind.groups
    parts = []
    for group, columns in enumerate(np.split(np.arange(x.shape[2]), kind.groups)):
        taps = weight[group * outputs : (group + 1) * outputs]  # [H / groups, H / groups, width]
        parts.append(sum(linear(padded[:, t : t + length, columns], taps[:, :, t]) for t in range(kind.width)))
    out = np.concatenate(parts, axis=-1) + bias  # [B, S, H]
    if mask is not None:
        out *= mask[:, :, None]
    x = layer_norm(x + ACTIVATIONS[kind.activation](out), **weights["LayerNorm"], eps=eps)
    return x if mask is None else x * mask[:, :, None]


def convolution_as_dense(weight: Array) -> Array:
    """Return the weight of a convolution as that of a dense layer over neighbours side by side; 0 between groups.

    weight [H, H / groups, width] -> [H, width · H], by neighbour from the first to the last.
    """
    hidden, columns, width = weight.shape
    dense = np.zeros((hidden, width, hidden), weight.dtype)
    for first in range(0, hidden, columns):
        part = slice(first, first + columns)
        dense[part, :, part] = weight[part].swapaxes(1, 2)
    return dense.reshape(hidden, -1)
