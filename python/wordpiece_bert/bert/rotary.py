"""Rotary position embeddings: queries and keys are rotated by angles that grow with their position.

Source: Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding" (2021), section 3.2. The score of a
query and a key then depends on the distance between their positions. Letters for shapes are as in
`wordpiece_bert.bert.functional`.

Transformers rounds frequencies and angles to float32, and so do these functions: at position 8000 an angle in float64
differs from it by 5e-4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    # As in `functional`, which imports this module.
    Array = npt.NDArray[np.float32]
    Ids = npt.NDArray[np.integer]


class Rotary(NamedTuple):
    """What the frequencies of rotary positions are computed from, as `frequencies` documents it."""

    size: int
    theta: float
    factor: float = 1.0


class LayerPositions(NamedTuple):
    """What the attention of one layer knows about positions, besides a bias."""

    #: By what queries and keys are rotated; None where they are not.
    rotary: Rotary | None = None
    #: The greatest distance from a query to a key that it sees; None if it sees all.
    window: int | None = None


class Rotation(NamedTuple):
    """The cosines and sines of all angles, [B, 1, S, d/2] each, or [1, 1, S, d/2] if all rows have the same positions.

    The second dimension is for the heads, which share them.
    """

    cos: Array
    sin: Array


def frequencies(size: int, theta: float, factor: float = 1.0) -> Array:
    """Return ω_j = θ^(−2j/d), the angles from one position to the next, for d = `size`, [d/2].

    With a factor f above 1, the NTK-aware scaling for texts that are f times as long: ω_j = (θ·f)^(−2j/d)·f^(−2/d).
    """
    exponents = np.arange(0, size, 2, dtype=np.float32) / np.float32(size)  # 2j/d
    powers = np.float64(theta * factor) ** exponents.astype(np.float64)
    scaled: Array = np.float32(1.0) / powers.astype(np.float32)
    return scaled if factor == 1.0 else (scaled * factor ** (-2.0 / size)).astype(np.float32)


def rotation(positions: Ids, frequencies: Array) -> Rotation:
    """Return the rotation of each position: the angles p·ω_j, positions [B, S] or [1, S]."""
    angles = positions.astype(np.float32)[:, None, :, None] * frequencies  # [B, 1, S, d/2]
    return Rotation(np.cos(angles), np.sin(angles))


def rotate(x: Array, by: Rotation) -> Array:
    """Rotate the pair (x_j, x_{j+d/2}) of each head by the angle of its position, x [B, N, S, d] -> [B, N, S, d].

    Pairs are taken from the two halves of a head, not from neighbours as in the paper.
    """
    half = x.shape[-1] // 2
    u, v = x[..., :half], x[..., half:]  # [B, N, S, d/2] each
    return np.concatenate([u * by.cos - v * by.sin, v * by.cos + u * by.sin], axis=-1)
