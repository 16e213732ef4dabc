"""The tokens of a training batch, one row after the other without padding, as a plan's interpreter reads them.

The formulas are in `wordpiece_bert.bert.gradients` and, for DeBERTa, in `wordpiece_bert.bert.disentangled_gradients`:
one row of the batch at a time. Comments denote shapes by their letters; M are the tokens of the batch, S the tokens of
a row that are computed, and K the tokens of a row that may be attended to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from wordpiece_bert.bert import disentangled_gradients, functional, gradients
from wordpiece_bert.bert.disentangled_gradients import Row
from wordpiece_bert.bert.engines.numpy import position_bias
from wordpiece_bert.bert.functional import RelativeTerms
from wordpiece_bert.bert.plan.parts import Distances
from wordpiece_bert.bert.rotary import Rotation, frequencies, rotate, rotation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from wordpiece_bert.bert.functional import Array, Ids, Mask
    from wordpiece_bert.bert.plan.parts import Attention, Convolution
    from wordpiece_bert.bert.rotary import Rotary
    from wordpiece_bert.finetune.dropout import Dropout
    from wordpiece_bert.finetune.tokens import Tokens

#: The fewest queries of a layer with a window whose scores are computed at once.
_QUERIES = 64


class PackedRows:
    """The tokens of one pass, [M]; the methods are as in `interpreter.Rows`.

    Parameters
    ----------
    rates
        The rates of dropout, by the names that parts have for them.
    tokens
        The batch.
    dropout
        The masks of dropout; None for no dropout.
    """

    def __init__(self, rates: Mapping[str, float], tokens: Tokens, dropout: Dropout | None) -> None:
        self._rates, self._tokens, self._dropout = rates, tokens, dropout
        self._rotations: dict[Rotary, Rotation] = {}
        self._bias: Array | None = None
        self.vectors: Array | None = tokens.vectors
        self.seen: Mask | None = tokens.seen()[:, None]

    def column(self, reads: str) -> Ids:
        """Return the rows of the tables that tokens read, [M]."""
        tokens = self._tokens
        columns = {"ids": tokens.ids, "types": tokens.types, "positions": tokens.positions, "tasks": tokens.tasks}
        found = columns[reads]
        assert found is not None, "word vectors are not read from a table"
        return found

    # --- dropout

    def _rate(self, name: str) -> float:
        return self._rates[name] if name else 0.0

    def dropped(self, rate: str, site: str, y: Array) -> Array:
        """Apply dropout to token vectors, or its gradient, which is the same product."""
        if self._dropout is None or not self._rate(rate):
            return y
        mask = self._dropout.tokens(site, self._tokens, y.shape[1], self._rate(rate))
        return y if mask is None else y * mask

    def dropped_rows(self, rate: str, site: str, table: Array) -> Array:
        """Apply dropout to the rows of a table, or its gradient."""
        if self._dropout is None or not self._rate(rate):
            return table
        mask = self._dropout.vectors(site, len(table), table.shape[1], self._rate(rate))
        return table if mask is None else table * mask

    def _attention_mask(self, part: Attention, layer: int, row: int, queries: slice, keys: slice) -> Array | None:
        """Return the mask of the attention weights of some tokens of a row, [N, queries, keys]; None for no dropout."""
        if self._dropout is None:
            return None
        site = f"layer.{layer}.attention_probs"
        return self._dropout.attention(site, self._tokens, row, queries, keys, part.heads, self._rate(part.dropout))

    # --- attention

    def attend(
        self, part: Attention, layer: int, q: Array, k: Array, v: Array, terms: RelativeTerms | None, bias: Array | None
    ) -> tuple[Array, Array | None]:
        """Return the context of all heads, [M, N·d]; q, k and v [M, N·d]."""
        q, k = self._rotated(part, q), self._rotated(part, k)
        c = np.empty_like(q)
        for row in range(self._tokens.shape[0]):
            if part.masked_sees_all:
                c_row, _ = disentangled_gradients.attention(self._whole_row(part, layer, row, q, k, v), terms, part)
                c[self._tokens.queries(row)] = merged(c_row)
                continue
            for queries, keys, visible in self._blocks(part, row):
                c_block, _ = gradients.attention(
                    split(q[queries], part.heads),
                    split(k[keys], part.heads),
                    split(v[keys], part.heads),
                    self._block_bias(part, bias, queries, keys),
                    self._attention_mask(part, layer, row, queries, keys),
                    visible,
                )
                c[queries] = merged(c_block)
        return c, None

    def attend_backward(
        self,
        part: Attention,
        layer: int,
        dc: Array,
        qkv: tuple[Array, Array, Array],
        terms: RelativeTerms | None,
        bias: Array | None,
        add_bias: Callable[[Array], None],
    ) -> tuple[Array, Array, Array, RelativeTerms]:
        """Return dq, dk and dv [M, N·d] for dc [M, N·d]; the attention weights are computed again."""
        q, k, v = self._rotated(part, qkv[0]), self._rotated(part, qkv[1]), qkv[2]
        if part.masked_sees_all:
            return self._whole_rows_backward(part, layer, dc, (q, k, v), terms)
        dq, dk, dv = np.empty_like(dc), np.zeros_like(dc), np.zeros_like(dc)
        for row in range(self._tokens.shape[0]):
            for queries, keys, visible in self._blocks(part, row):
                of_block = split(q[queries], part.heads), split(k[keys], part.heads), split(v[keys], part.heads)
                mask = self._attention_mask(part, layer, row, queries, keys)
                c, p = gradients.attention(*of_block, self._block_bias(part, bias, queries, keys), mask, visible)
                dq_block, dk_block, dv_block, ds = gradients.attention_backward(
                    split(dc[queries], part.heads), *of_block, c, p, mask
                )
                dq[queries] = merged(dq_block)
                dk[keys] += merged(dk_block)
                dv[keys] += merged(dv_block)
                if isinstance(part.bias, Distances):
                    add_bias(self._of_buckets(ds, queries, keys, len(cast("Array", bias))))
        back = RelativeTerms(None, None)
        return self._rotated(part, dq, back=True), self._rotated(part, dk, back=True), dv, back

    def _blocks(self, part: Attention, row: int) -> Iterator[tuple[slice, slice, Mask | None]]:
        """Iterate over queries of a row, the keys near them, and which of these they see [S, K]; None for all."""
        tokens, window = self._tokens, part.window
        queries, keys, columns = tokens.queries(row), tokens.keys(row), tokens.columns
        if window is None:
            yield queries, keys, None
            return
        step = max(_QUERIES, window)
        for start in range(queries.start, queries.stop, step):
            part_of = slice(start, min(start + step, queries.stop))
            places = columns[part_of]
            first, end = np.searchsorted(columns[keys], [places.min() - window, places.max() + window + 1])
            near = slice(keys.start + int(first), keys.start + int(end))
            yield part_of, near, np.abs(places[:, None] - columns[near][None, :]) <= window

    def _rotated(self, part: Attention, x: Array, *, back: bool = False) -> Array:
        """Rotate the heads of queries or keys [M, N·d]; or their gradients, which are rotated back."""
        if part.rotary is None:
            return x
        if part.rotary not in self._rotations:
            self._rotations[part.rotary] = rotation(self._tokens.positions[None], frequencies(*part.rotary))
        by = self._rotations[part.rotary]
        if back:
            by = Rotation(by.cos, -by.sin)
        return merged(rotate(split(x, part.heads)[None], by)[0])

    def _block_bias(self, part: Attention, table: Array | None, queries: slice, keys: slice) -> Array | None:
        """Return what is added to the scores of some tokens, [N, S, K]; None where nothing is."""
        if part.bias is None:
            return None
        if self._bias is None:
            self._bias = position_bias(part, self._tokens.shape[1], table)[0]  # of all pairs of places
        columns = self._tokens.columns
        return self._bias[:, columns[queries][:, None], columns[keys][None, :]]

    def _of_buckets(self, ds: Array, queries: slice, keys: slice, count: int) -> Array:
        """Return Σ ds over the pairs of places in each bucket of distances; ds [N, S, K] -> [buckets, N]."""
        columns = self._tokens.columns
        distance = columns[queries][:, None] - columns[keys][None, :]  # [S, K]
        buckets = functional.distance_buckets(distance).reshape(-1)
        sums = [np.bincount(buckets, weights=head.reshape(-1), minlength=count) for head in ds]
        return np.stack(sums, axis=1).astype(ds.dtype)

    # --- where masked queries see all tokens of their row

    def _whole_row(self, part: Attention, layer: int, row: int, q: Array, k: Array, v: Array) -> Row:
        """Return what the attention of one row reads."""
        rows, count = self._tokens.queries(row), int(self._tokens.visible[row])
        length = rows.stop - rows.start
        return Row(
            split(q[rows], part.heads),
            split(k[rows], part.heads),
            split(v[rows], part.heads),
            self._tokens.columns[rows],
            None if count == length else np.arange(length) < count,
            self._attention_mask(part, layer, row, rows, rows),
        )

    def _whole_rows_backward(
        self, part: Attention, layer: int, dc: Array, qkv: tuple[Array, Array, Array], terms: RelativeTerms | None
    ) -> tuple[Array, Array, Array, RelativeTerms]:
        dq, dk, dv = (np.empty_like(dc) for _ in range(3))
        dterms: list[Array | None] = [None, None]  # with respect to K^r and Q^r
        for row in range(self._tokens.shape[0]):
            rows, operands = self._tokens.queries(row), self._whole_row(part, layer, row, *qkv)
            c, p = disentangled_gradients.attention(operands, terms, part)
            dq_row, dk_row, dv_row, *of_terms = disentangled_gradients.attention_backward(
                split(dc[rows], part.heads), operands, c, p, terms, part
            )
            dq[rows], dk[rows], dv[rows] = merged(dq_row), merged(dk_row), merged(dv_row)
            for i, found in enumerate(of_terms):
                if found is not None:
                    dterms[i] = found if (before := dterms[i]) is None else before + found
        return self._rotated(part, dq, back=True), self._rotated(part, dk, back=True), dv, RelativeTerms(*dterms)

    # --- convolutions

    def convolve(self, part: Convolution, x: Array, weight: Array, bias: Array) -> Array:
        """Return the convolution over the tokens of each row, 0 for masked tokens, [M, H]."""
        z = disentangled_gradients.convolve(self._tokens.padded(x), weight, bias, part.groups)
        return z[self._tokens.rows, self._tokens.columns] * cast("Mask", self.seen)

    def convolve_backward(self, part: Convolution, dz: Array, x: Array, weight: Array) -> tuple[Array, Array, Array]:
        """Return dx [M, H], dweight and dbias."""
        tokens = self._tokens
        padded = tokens.padded(dz * cast("Mask", self.seen))
        dx, dweight, dbias = disentangled_gradients.convolution_backward(padded, tokens.padded(x), weight, part.groups)
        return dx[tokens.rows, tokens.columns], dweight, dbias


def split(x: Array, heads: int) -> Array:
    """[S, N·d] -> [N, S, d]; S may be 0."""
    return x.reshape(len(x), heads, x.shape[1] // heads).swapaxes(0, 1)


def merged(x: Array) -> Array:
    """[N, S, d] -> [S, N·d]."""
    heads, length, size = x.shape
    return x.swapaxes(0, 1).reshape(length, heads * size)
