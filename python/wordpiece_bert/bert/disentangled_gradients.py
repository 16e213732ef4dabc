"""The gradients of DeBERTa's arithmetic: the backward pass of the formulas of `wordpiece_bert.bert.disentangled`.

Notation and layout are as in `wordpiece_bert.bert.gradients`: one row of the batch at a time, its S tokens without
padding. 2K is the number of rows of the relative table.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wordpiece_bert.bert.disentangled import disentangled_scores, relative_rows
from wordpiece_bert.bert.functional import merge_heads, softmax, split_heads
from wordpiece_bert.bert.gradients import softmax_backward

if TYPE_CHECKING:
    from wordpiece_bert.bert.functional import Array, Ids, Mask, RelativeTerms
    from wordpiece_bert.bert.plan.parts import Attention


class Row(NamedTuple):
    """What the attention of one row reads. All of its S tokens may be attended to, except masked ones by others."""

    q: Array  # [N, S, d]
    k: Array  # [N, S, d]
    v: Array  # [N, S, d]
    positions: Ids  # [S] the places of the tokens in the padded row
    visible: Mask | None  # [S]; None if all tokens are
    dropout: Array | None  # [N, S, S], 0 or 1/(1 − P); None for no dropout

    def hidden(self) -> Mask | None:
        """Return the pairs of a query and a key that it does not see, [S, S]; None for no such pairs."""
        return None if self.visible is None else ~(self.visible[:, None] & self.visible)


def attention(row: Row, terms: RelativeTerms | None, part: Attention) -> tuple[Array, Array]:
    """Attention over `disentangled_scores`, c = (softmax(scores)·m)·v for each head -> c [N, S, d], p [N, S, S].

    A masked query has equal weights for all tokens.
    """
    scores = disentangled_scores(row.q[None], row.k[None], terms, part, row.positions)[0]  # [N, S, S]
    hidden = row.hidden()
    if hidden is not None:
        scores[:, hidden] = np.finfo(np.float32).min
    p = softmax(scores)
    kept: Array = p if row.dropout is None else p * row.dropout
    return kept @ row.v, p


def attention_backward(
    dc: Array, row: Row, c: Array, p: Array, terms: RelativeTerms | None, part: Attention
) -> tuple[Array, Array, Array, Array | None, Array | None]:
    """Return the gradients of `attention`: dq, dk, dv [N, S, d], and dK^r and dQ^r [2K, N·d], None without the term.

    With g = ds/√(d·f) and G[i, r] the sum of g[i, j] over the keys j whose distance from i has row r: dq = g·k + G·K^r
    and dK^r = Gᵀ·q; likewise with gᵀ for the term of the key's content.
    """
    q, k, v, positions = row.q, row.k, row.v, row.positions
    dv, g = softmax_backward(dc, v, c, p, row.dropout)
    hidden = row.hidden()
    if hidden is not None:
        g[:, hidden] = 0
    g *= np.float32(1.0 / math.sqrt(q.shape[-1] * part.terms))
    by_key = g.swapaxes(-1, -2)
    dq: Array = g @ k
    dk: Array = by_key @ q
    dkeys = dqueries = None
    if terms is not None and part.relative is not None:
        span, distances = part.relative.span, positions[:, None] - positions[None, :]
        rows = relative_rows(distances, span, part.relative.longest)  # [S, S]
        heads = len(q)
        if terms.keys is not None:
            sums = _sums(g, rows, 2 * span)  # [N, S, 2K]
            dq += sums @ split_heads(terms.keys[None], heads)[0]
            dkeys = merge_heads((sums.swapaxes(-1, -2) @ q)[None])[0]
        if terms.queries is not None:
            sums = _sums(by_key, rows.T, 2 * span)  # [N, S, 2K], by key
            dk += sums @ split_heads(terms.queries[None], heads)[0]
            dqueries = merge_heads((sums.swapaxes(-1, -2) @ k)[None])[0]
    return dq, dk, dv, dkeys, dqueries


def _sums(g: Array, rows: Ids, count: int) -> Array:
    """G[n, i, r] = Σ g[n, i, j] over the j with rows[i, j] = r; g [N, S, S] -> [N, S, count]."""
    length = len(rows)
    places = (np.arange(length)[:, None] * count + rows).reshape(-1)
    heads = [np.bincount(places, weights=head.reshape(-1), minlength=length * count) for head in g]
    return np.stack(heads).reshape(len(g), length, count).astype(g.dtype)


def convolve(x: Array, weight: Array, bias: Array, groups: int) -> Array:
    """Y = conv(x) over the tokens of each row, x [B, S, H] -> [B, S, H]; beyond the ends of a row x is 0.

    weight [H, H / groups, width], bias [H].
    """
    width = weight.shape[2]
    half, length = width // 2, x.shape[1]
    padded = np.pad(x, ((0, 0), (half, half), (0, 0)))
    y = np.zeros(x.shape, x.dtype)
    for columns, taps in _groups(weight, groups):
        for tap in range(width):
            y[:, :, columns] += padded[:, tap : tap + length, columns] @ taps[:, :, tap].T
    y += bias
    return y


def convolution_backward(dy: Array, x: Array, weight: Array, groups: int) -> tuple[Array, Array, Array]:
    """Gradients of `convolve`: dy and x [B, S, H] -> dx [B, S, H], dweight [H, H / groups, width], dbias [H]."""
    width = weight.shape[2]
    half, length = width // 2, x.shape[1]
    padded = np.pad(x, ((0, 0), (half, half), (0, 0)))
    dpadded, dweight = np.zeros_like(padded), np.zeros(weight.shape, dy.dtype)
    for columns, taps in _groups(weight, groups):
        part = dy[:, :, columns]
        for tap in range(width):
            dpadded[:, tap : tap + length, columns] += part @ taps[:, :, tap]
            near = padded[:, tap : tap + length, columns]
            dweight[columns, :, tap] = np.tensordot(part, near, axes=((0, 1), (0, 1)))
    return dpadded[:, half : half + length], dweight, dy.sum(axis=(0, 1))


def _groups(weight: Array, groups: int) -> list[tuple[slice, Array]]:
    """Return the columns of each group, and the weights of its outputs."""
    size = len(weight) // groups
    return [(part := slice(group * size, (group + 1) * size), weight[part]) for group in range(groups)]


def convolution_of_dense(dweight: Array, groups: int) -> Array:
    """Return the gradient of a convolution's weight for the gradient of `convolution_as_dense`.

    dweight [H, width · H] -> [H, H / groups, width].
    """
    hidden = len(dweight)
    by_neighbour = dweight.reshape(hidden, -1, hidden)  # [H, width, H]
    columns = hidden // groups
    parts = [slice(first, first + columns) for first in range(0, hidden, columns)]
    return np.ascontiguousarray(np.concatenate([by_neighbour[part, :, part] for part in parts]).swapaxes(1, 2))
