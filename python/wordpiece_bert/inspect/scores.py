"""Numbers in as few bits as what is shown of them needs: attention weights by the factors of their scores, and others.

Attention weights of long texts take a fifth of the room as factors. The weights of a head are softmax(S), S = q·kᵀ/√d.
Adding a number to a row of S changes no weight, so the mean of the keys is taken away. The singular value
decomposition S = A·Bᵀ then has its energy in few columns of A and B, and columns are written as multiples of one step,
so that columns of small numbers take few bits (a transform code). The multiples are Golomb-Rice codes: of a number u =
2·n or −2·n − 1, u >> r ones, a zero, and the low r bits, with an r for each column.

A head is, little-endian: the step as float32; for each of the 2·d columns, A's columns first, its mean as float32; for
each its r as one byte; then the bits, the highest of a byte first, column by column.

Queries and keys that are shown themselves are coded so, too, without the decomposition, in the largest step that keeps
their scores. Cosines of one set of vectors are M = A·Aᵀ, and few columns of A.
"""

from __future__ import annotations

import math
import zlib
from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert.bert.functional import softmax
from wordpiece_bert.inspect.pack import LONG, Packed

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Matrix = npt.NDArray[np.float32]

#: The largest error of a weight, as a share of the largest weight of its row.
TOLERANCE = 1 / 40
#: The largest error of a score q·kᵀ/√d of queries and keys that are shown: its weight is right to this share of itself.
SCORE_TOLERANCE = 1 / 40
#: The largest error of a cosine.
COSINE_TOLERANCE = 1 / 40
#: Weights of fewer tokens are stored as they are.
SHORTEST = LONG
#: The step at place 0; the next is a fourth root of 2 smaller.
FIRST_STEP = 0.008
#: The places of the steps of weights, and of other numbers: from 8 to a few billionths.
PLACES, ALL_PLACES = range(48), range(-40, 81)


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
        largest = _largest_of_weights(columns, weights[head], place)
        if largest is None:
            return None
        place = largest
        parts.append(_multiples(columns, _step(place), columns.mean(axis=0)))
    packed = Packed("scores", weights.shape, parts)
    packed.spec["width"] = queries.shape[-1]
    return packed


def pack_factors(
    array: npt.NDArray[np.float32], queries: npt.NDArray[np.float32], keys: npt.NDArray[np.float32]
) -> Packed | None:
    """Encode queries or keys, one of two arrays [L, N, S, d], so that their scores stay right to `SCORE_TOLERANCE`.

    None if no step does that.
    """
    parts = []
    place = 20
    for head in np.ndindex(*array.shape[:2]):
        # In units in which both are of one size, they are rounded alike.
        sizes = [float(np.sqrt(np.square(one[head]).mean())) or 1.0 for one in (queries, keys)]
        unit = np.float32(math.sqrt(sizes[0] / sizes[1]))
        q, k = queries[head] / unit, keys[head] * unit
        exact: Matrix = (q @ k.T / math.sqrt(q.shape[-1])).astype(np.float32)

        def close(step: np.float32, q: Matrix = q, k: Matrix = k, exact: Matrix = exact) -> bool:
            found = (np.rint(q / step) * step) @ (np.rint(k / step) * step).T / math.sqrt(q.shape[-1])
            return bool((np.abs(found - exact) <= SCORE_TOLERANCE).all())

        largest = _largest(close, place)
        if largest is None:
            return None
        place = largest
        parts.append(_coded(array[head], _step(place) * (unit if array is queries else 1 / unit)))
    return Packed("coded", array.shape, parts)


def pack_cosines(matrix: npt.NDArray[np.float32]) -> Packed | None:
    """Encode the cosines of vectors with each other, [S, S]; None if they are not right to `COSINE_TOLERANCE`."""
    energy, vectors = np.linalg.eigh(matrix.astype(np.float64))
    factor: Matrix = (vectors * np.sqrt(np.maximum(energy, 0)))[:, ::-1].astype(np.float32)

    def close(step: np.float32) -> bool:
        found = np.rint(factor / step) * step
        return bool((np.abs(found @ found.T - matrix) <= COSINE_TOLERANCE).all())

    place = _largest(close, 20)
    if place is None:
        return None
    used = np.rint(factor / _step(place)).any(axis=0).nonzero()[0]
    kept = factor[:, : 1 + int(used.max(initial=0))]
    packed = Packed("cosines", matrix.shape, [_coded(kept, _step(place))])
    packed.spec["width"] = kept.shape[-1]
    return packed


def pack_table(array: npt.NDArray[np.float32]) -> Packed:
    """Encode numbers [rows, columns] that are shown by colours: to 1/128 of all but the few largest."""
    step = np.float32(float(np.quantile(np.abs(array), 0.995)) / 64 or 1.0)
    return Packed("coded", array.shape, [_coded(array, step)])


def _step(place: int) -> np.float32:
    return np.float32(FIRST_STEP * 2 ** (-place / 4))


def _largest(close: Callable[[np.float32], bool], place: int, places: range = ALL_PLACES) -> int | None:
    """Return the place of the largest step that is close enough, looked for from a place on; None if there is none."""
    while not close(_step(place)):
        place += 1
        if place not in places:
            return None
    while place - 1 in places and close(_step(place - 1)):
        place -= 1
    return place


def _multiples(columns: Matrix, step: np.float32, means: Matrix) -> bytes:
    """Return columns as multiples of a step beyond their means."""
    numbers: npt.NDArray[np.int64] = np.rint((columns - means) / step).astype(np.int64)
    start: bytes = step.astype("<f4").tobytes()
    return start + means.astype("<f4").tobytes() + _rice(numbers)


def _coded(columns: Matrix, step: np.float32) -> bytes:
    """Return columns as multiples of a step, without means. A code takes a bit at least: zlib shortens many zeros."""
    return zlib.compress(_multiples(columns, step, np.zeros(columns.shape[1], np.float32)), 9)


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


def _largest_of_weights(columns: Matrix, weights: Matrix, place: int) -> int | None:
    """Return the place of the largest step of A and B that keeps the tolerance of their weights, as `_largest` does."""
    means = columns.mean(axis=0)
    limit = TOLERANCE * weights.max(axis=-1, keepdims=True)
    half = columns.shape[1] // 2

    def close(step: np.float32) -> bool:
        values = np.rint((columns - means) / step) * step + means
        found = softmax(values[:, :half] @ values[:, half:].T)
        return bool((np.abs(found - weights) <= limit).all())

    return _largest(close, place, PLACES)


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
