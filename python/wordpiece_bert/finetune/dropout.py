"""Dropout as a pure function of seed, step and place, so that nothing of it has to be kept or restored.

Each number is kept with probability 1 − P and then scaled by 1/(1 − P) (Srivastava et al. 2014). The random numbers
come from the keyed SplitMix64 generator that the pre-training data use: the key is (seed, stream, step, micro-batch,
layer), where the stream denotes the site, and the counter is (row of the batch, place in the row, column), which does
not depend on padding. The backward pass draws a mask again instead of keeping it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.finetune.tokens import Tokens

_U64 = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]

_GAMMA = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1

#: The streams of the sites; those below 16 belong to the pre-training data.
_STREAMS = {
    "embeddings": 16,
    "attention_probs": 17,
    "attention.output": 18,
    "output": 19,
    "head": 20,
    "head2": 21,
    "sample": 22,
    "intermediate": 23,
    "convolution": 24,
    "relative": 25,
}


class Dropout(Protocol):
    """Masks of dropout, already divided by 1 − P."""

    def tokens(self, site: str, tokens: Tokens, width: int, rate: float) -> Array | None:
        """Return the mask of token vectors, [M, width]; None for no dropout."""

    def attention(
        self, site: str, tokens: Tokens, row: int, queries: slice, keys: slice, heads: int, rate: float
    ) -> Array | None:
        """Return the mask of the attention weights of some tokens of a row, [N, queries, keys]; None for no dropout."""

    def vectors(self, site: str, rows: int, width: int, rate: float) -> Array | None:
        """Return the mask of one vector for each row, [B, width]; None for no dropout."""


class GivenDropout:
    """Masks that the caller gives, by site: 1 where a number is kept, [B, S, H], [B, N, S, S] or [B, H]."""

    def __init__(self, masks: Mapping[str, npt.ArrayLike]) -> None:
        self._masks = {site: np.asarray(mask) for site, mask in masks.items()}

    def tokens(self, site: str, tokens: Tokens, width: int, rate: float) -> Array | None:
        """Return the mask of token vectors, as `Dropout.tokens`."""
        mask = self._mask(site, (*tokens.shape, width))
        return None if mask is None else _scaled(mask[tokens.rows, tokens.columns], rate)

    def attention(
        self, site: str, tokens: Tokens, row: int, queries: slice, keys: slice, heads: int, rate: float
    ) -> Array | None:
        """Return the mask of attention weights, as `Dropout.attention`."""
        batch, length = tokens.shape
        mask = self._mask(site, (batch, heads, length, length))
        if mask is None:
            return None
        of_queries, of_keys = tokens.columns[queries], tokens.columns[keys]
        return _scaled(mask[row][:, of_queries[:, None], of_keys[None, :]], rate)

    def vectors(self, site: str, rows: int, width: int, rate: float) -> Array | None:
        """Return the mask of one vector for each row, as `Dropout.vectors`."""
        mask = self._mask(site, (rows, width))
        return None if mask is None else _scaled(mask, rate)

    def _mask(self, site: str, shape: tuple[int, ...]) -> npt.NDArray[np.generic] | None:
        mask = self._masks.get(site)
        if mask is not None and mask.shape != shape:
            raise InputError(f"dropout_masks[{site!r}] has shape {list(mask.shape)}, but the site has {list(shape)}")
        return mask


class KeyedDropout:
    """Masks drawn from (seed, step, micro-batch).

    Parameters
    ----------
    seed : int
        From 0 to 2⁶⁴ − 1.
    step, micro_batch : int
        The number of the optimizer's step, and of the batch that is accumulated in it.
    """

    def __init__(self, seed: int, step: int, micro_batch: int = 0) -> None:
        self._seed, self._step, self._micro_batch = seed, step, micro_batch

    @property
    def key(self) -> tuple[int, int, int]:
        """Seed, step and micro-batch."""
        return self._seed, self._step, self._micro_batch

    def tokens(self, site: str, tokens: Tokens, width: int, rate: float) -> Array | None:
        """Return the mask of token vectors, as `Dropout.tokens`."""
        if rate == 0:
            return None
        places = np.arange(len(tokens.rows)) - tokens.starts[tokens.rows]  # [M]
        keys = self._row_keys(site, np.arange(tokens.shape[0]))[tokens.rows]  # [M]
        return _kept(keys[:, None], _counter(places[:, None], np.arange(width)[None, :]), rate)

    def attention(
        self, site: str, tokens: Tokens, row: int, queries: slice, keys: slice, heads: int, rate: float
    ) -> Array | None:
        """Return the mask of attention weights, as `Dropout.attention`."""
        if rate == 0:
            return None
        first = int(tokens.starts[row])
        places = np.arange(queries.start - first, queries.stop - first)[None, :, None]
        of_keys = np.arange(keys.start - first, keys.stop - first)[None, None, :]
        column = (np.arange(heads)[:, None, None] << 20) | of_keys  # [N, 1, keys]
        return _kept(self._row_keys(site, np.array([row])), _counter(places, column), rate)

    def vectors(self, site: str, rows: int, width: int, rate: float) -> Array | None:
        """Return the mask of one vector for each row, as `Dropout.vectors`."""
        if rate == 0:
            return None
        keys = self._row_keys(site, np.arange(rows))
        return _kept(keys[:, None], _counter(np.zeros((1, 1), np.int64), np.arange(width)[None, :]), rate)

    def of_part(self, name: str) -> KeyedDropout:
        """Return the masks of one of several encoders that are trained together, as independent of these as a seed."""
        key = self._seed
        for letter in name.encode():
            key = int(_mix(np.array([((key ^ letter) + _GAMMA) & _WORD], np.uint64))[0])
        return KeyedDropout(key, self._step, self._micro_batch)

    def uniform(self, site: str, rows: Places, places: Places) -> npt.NDArray[np.float64]:
        """Return a number from 0 to below 1 for each token, by the row of the batch and the place in it, [n] each."""
        keys = self._row_keys(site, rows)
        draws = _mix(keys + (places.astype(np.uint64) + np.uint64(1)) * np.uint64(_GAMMA))
        return (draws >> np.uint64(11)).astype(np.float64) * np.float64(2.0**-53)

    def _row_keys(self, site: str, rows: npt.NDArray[np.int64]) -> _U64:
        """Return the key of each row at this site."""
        layer, name = 0, site
        if site.startswith("layer."):
            number, name = site.removeprefix("layer.").split(".", 1)
            layer = int(number)
        key = 0
        for word in (self._seed, _STREAMS[name], self._step, self._micro_batch, layer):
            key = int(_mix(np.array([((key ^ word) + _GAMMA) & _WORD], np.uint64))[0])
        return _mix((np.uint64(key) ^ rows.astype(np.uint64)) + np.uint64(_GAMMA))


def _counter(places: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]) -> _U64:
    """Return the number of a draw within its row."""
    return (places.astype(np.uint64) << np.uint64(32)) | columns.astype(np.uint64)


def _kept(keys: _U64, counters: _U64, rate: float) -> Array:
    """Return 1/(1 − P) where a draw in 0 … 1 is at least P, else 0."""
    draws = _mix(keys + (counters + np.uint64(1)) * np.uint64(_GAMMA))
    kept = (draws >> np.uint64(11)) >= np.uint64(np.ceil(rate * 2.0**53))
    return _scaled(kept, rate)


def _scaled(kept: npt.NDArray[np.generic], rate: float) -> Array:
    return kept.astype(np.float32) * np.float32(1.0 / (1.0 - rate))


def _mix(z: _U64) -> _U64:
    """Return the output function of SplitMix64 (Steele, Lea and Flood 2014), modulo 2⁶⁴."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
