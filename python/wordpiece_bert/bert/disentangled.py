"""The arithmetic of DeBERTa: attention whose scores have terms for content and for relative positions of their own.

Source: He et al., "DeBERTa: Decoding-enhanced BERT with Disentangled Attention" (2021), section 3.1, equations 2 to 4;
He et al., "DeBERTaV3" (2023); the buckets and the convolution of version 2 are as in the released code.
Letters for shapes are as in `wordpiece_bert.bert.functional`; K is half the number of rows of the relative table.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert.bert.functional import linear, merge_heads, softmax, split_heads

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array, Ids, Mask, RelativeTerms
    from wordpiece_bert.bert.plan.parts import Attention


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


def disentangled_scores(
    q: Array, k: Array, terms: RelativeTerms | None, part: Attention, positions: Ids | None = None
) -> Array:
    """The scores of all pairs, q·k + q·K^r + k·Q^r over √(d·f), q and k [B, N, S, d] -> [B, N, S, S] (equation 4).

    Each term of positions has the row of the distance from query to key. f is `Attention.terms`. positions are the
    tokens' positions in their row, [S]; by default 0 to S − 1.
    """
    scores: Array = q @ k.swapaxes(-1, -2)  # [B, N, S, S]
    if terms is not None and part.relative is not None:
        heads, length = q.shape[1:3]
        places = np.arange(length) if positions is None else positions
        distances = places[:, None] - places[None, :]
        rows = relative_rows(distances, part.relative.span, part.relative.longest)  # [S, S]
        if terms.keys is not None:
            to_position = q @ split_heads(terms.keys[None], heads).swapaxes(-1, -2)  # [B, N, S, 2K]
            scores += np.take_along_axis(to_position, rows[None, None], axis=-1)
        if terms.queries is not None:
            to_content = k @ split_heads(terms.queries[None], heads).swapaxes(-1, -2)  # [B, N, S, 2K], by key
            scores += np.take_along_axis(to_content, rows.T[None, None], axis=-1).swapaxes(-1, -2)
    scores *= 1.0 / math.sqrt(q.shape[-1] * part.terms)
    return scores


def disentangled_attention(
    q: Array, k: Array, v: Array, mask: Mask | None, terms: RelativeTerms | None, part: Attention
) -> tuple[Array, Array]:
    """Attention over `disentangled_scores`: q, k and v [B, N, S, d] -> context [B, S, N·d], weights [B, N, S, S].

    A masked query sees no key, not even masked ones: its scores are equal, and its weights 1/S.
    """
    scores = disentangled_scores(q, k, terms, part)
    if mask is not None:
        scores = np.where(mask[:, None, :, None] & mask[:, None, None, :], scores, np.finfo(np.float32).min)
    p = softmax(scores)  # [B, N, S, S]
    return merge_heads(p @ v), p


def convolution(x: Array, mask: Mask | None, weight: Array, bias: Array, groups: int) -> Array:
    """The convolution of the tokens of each row, x [B, S, H], mask [B, S] or None -> [B, S, H], 0 where masked.

    Beyond the ends of a row, and where a token is masked, x is 0. weight [H, H / groups, width], bias [H].
    """
    width = weight.shape[2]
    half = width // 2
    padded = np.pad(x, ((0, 0), (half, half), (0, 0)))  # [B, S + width − 1, H]
    length, outputs = x.shape[1], len(weight) // groups
    parts = []
    for group, columns in enumerate(np.split(np.arange(x.shape[2]), groups)):
        taps = weight[group * outputs : (group + 1) * outputs]  # [H / groups, H / groups, width]
        parts.append(sum(linear(padded[:, t : t + length, columns], taps[:, :, t]) for t in range(width)))
    out = np.concatenate(parts, axis=-1) + bias  # [B, S, H]
    if mask is not None:
        out *= mask[:, :, None]
    return out


def convolution_as_dense(weight: Array) -> Array:
    """Return the weight of a convolution as the weight of a dense layer over neighbours side by side; 0 between groups.

    weight [H, H / groups, width] -> [H, width · H], by neighbour from the first to the last.
    """
    hidden, columns, width = weight.shape
    dense = np.zeros((hidden, width, hidden), weight.dtype)
    for first in range(0, hidden, columns):
        part = slice(first, first + columns)
        dense[part, :, part] = weight[part].swapaxes(1, 2)
    return dense.reshape(hidden, -1)
