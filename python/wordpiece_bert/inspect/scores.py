"""Attention weights of long texts as the factors of their scores, which take a fifth of the room of the weights.

The weights of a head are softmax(S), S = q·kᵀ/√d. Adding a number to a row of S changes no weight, so the mean of the
keys is taken away. The singular value decomposition S = A·Bᵀ then has its energy in few columns of A and B, and columns
are written as multiples of one step, so that columns of small numbers take few bits (a transform code). The multiples
are Golomb-Rice codes: of a number u = 2·n or −2·n − 1, u >> r ones, a zero, and the low r bits, with an r for each
column.

A head is, little-endian: the step as float32; for each of the 2·d columns, A's columns first, its mean as float32; for
each its r as one byte; then the bits, the highest of a byte first, column by column.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert.bert.functional import softmax
from wordpiece_bert.inspect.pack import Packed

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["SHORTEST", "TOLERANCE", "pack_scores"]

#: The largest error of a weight, as a share of the largest weight of its row.
TOLERANCE = 1 / 40
#: Weights of fewer tokens are stored as they are.
SHORTEST = 128
#: The steps that are tried, the largest first.
STEPS = [0.008 * 2 ** (-i / 4) for i in range(48)]


def pack_scores(
    weights: npt.NDArray[np.float32], queries: npt.NDArray[np.float32], keys: npt.NDArray[np.float32]
) -> Packed | None:
    """Encode the attention weights of queries and keys.

    Parameters
    ----------
    weights : ndarray of float32
        [L, N, S, S].
    queries, keys : ndarray of float32
        [L, N, S, d].

    Returns
    -------
    Packed or None
        None if the weights are not a softmax of the products, such as those with a bias for the distance.
    """
    parts = []
    place = 20  # the step of the head before is tried first
    for head in np.ndindex(*weights.shape[:2]):
        columns = _columns(queries[head], keys[head])
        coded, place = _with_step(columns, weights[head], place)
        if coded is None:
            return None
        parts.append(coded)
    packed = Packed("scores", weights.shape, parts)
    packed.spec["width"] = queries.shape[-1]
    return packed


def _columns(query: npt.NDArray[np.float32], key: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return A and B side by side, [S, 2 · d]: A·Bᵀ is q·kᵀ/√d, but for a number added to each row."""
    scale = query.shape[-1] ** -0.25
    first, left = _orthogonal(query.astype(np.float64) * scale)
    second, right = _orthogonal((key - key.mean(axis=0)).astype(np.float64) * scale)
    u, energy, v = np.linalg.svd(left @ right.T)
    root = np.sqrt(energy)
    columns: npt.NDArray[np.float32] = np.concatenate([first @ u * root, second @ v.T * root], axis=1).astype(
        np.float32
    )
    return columns


def _orthogonal(x: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return columns [S, d] at right angles, of length 1, and a matrix [d, d]; their product is x [S, d].

    By the eigenvectors of xᵀx, which is one product of matrices. A QR decomposition is many small ones, which the
    threads of a BLAS slow down tenfold on a busy machine. Columns in whose direction x is next to nothing are shorter.
    """
    squares, vectors = np.linalg.eigh(x.T @ x)
    lengths = np.sqrt(np.maximum(squares, squares[-1] * 1e-15))
    scale = np.where(lengths > 0, lengths, 1)
    return x @ vectors / scale, (vectors * lengths).T


def _with_step(
    columns: npt.NDArray[np.float32], weights: npt.NDArray[np.float32], place: int
) -> tuple[bytes | None, int]:
    """Return the columns in the largest step that keeps the tolerance, and the place of that step in `STEPS`."""
    means = columns.mean(axis=0).astype(np.float32)
    limit = TOLERANCE * weights.max(axis=-1, keepdims=True)
    half = columns.shape[1] // 2

    def numbers(at: int) -> npt.NDArray[np.int64] | None:
        step = np.float32(STEPS[at])
        found: npt.NDArray[np.int64] = np.rint((columns - means) / step).astype(np.int64)
        values = found.astype(np.float32) * step + means
        close = np.abs(softmax(values[:, :half] @ values[:, half:].T) - weights) <= limit
        return found if close.all() else None

    best = numbers(place)
    while best is None and place + 1 < len(STEPS):
        place += 1
        best = numbers(place)
    while best is not None and place > 0 and (larger := numbers(place - 1)) is not None:
        best, place = larger, place - 1
    if best is None:
        return None, place
    return np.float32(STEPS[place]).astype("<f4").tobytes() + means.astype("<f4").tobytes() + _rice(best), place


def _rice(numbers: npt.NDArray[np.int64]) -> bytes:
    """Return the r of each column and the codes of the columns [S, columns]."""
    folded = np.where(numbers >= 0, 2 * numbers, -2 * numbers - 1)
    low = [min(range(15), key=lambda r, u=column: int((u >> r).sum()) + len(u) * r) for column in folded.T]  # type: ignore[misc]
    high = folded >> low
    lengths = (high + 1 + low).T.reshape(-1)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    bits = np.ones(math.ceil(int(ends[-1]) / 8) * 8, np.uint8)
    zeros = starts + high.T.reshape(-1)
    bits[zeros] = 0
    for column, r in enumerate(low):
        part = slice(column * len(numbers), (column + 1) * len(numbers))
        for bit in range(r):
            bits[zeros[part] + 1 + bit] = (folded[:, column] >> (r - 1 - bit)) & 1
    return bytes(low) + np.packbits(bits).tobytes()
