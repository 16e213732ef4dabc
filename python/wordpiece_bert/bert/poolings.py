"""Ways of pooling: one entry for each, which engines, folders and training read.

A pooling turns the vectors of a row's tokens into one vector. The entry has its formula in NumPy, and what else knows
of it: the key in old configurations, the gradient for training, and whether the Rust engine computes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Array: TypeAlias = npt.NDArray[np.float32]
    Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class PoolingKind:
    """A way of pooling.

    Attributes
    ----------
    name : str
        ``pooling_mode`` in the ``1_Pooling/config.json`` of sentence-transformers.
    formula : callable
        From the vectors of tokens [B, S, H], which of them are pooled [B, S], and which are tokens [B, S] (a prompt may
        be left out of the pooling), to [B, H].
    gradient : callable, optional
        For one row without a prompt: from the gradient of its vector [H], the vectors of its tokens [n, H], and their
        positions from 1 on [n], to the gradients of these vectors [n, H]. None: such encoders cannot be trained here.
    old_key : str
        The key that is true in configurations of older versions; empty if they do not have this pooling.
    has_kernel : bool
        Whether the Rust engine computes it. For the others it computes the vectors of the tokens, and NumPy the rest.
    """

    name: str
    formula: Callable[[Array, Mask, Mask], Array]
    gradient: Callable[[Array, Array, Array], Array] | None = None
    old_key: str = ""
    has_kernel: bool = False


#: The ways of pooling by name. Old configurations concatenate several in this order.
POOLINGS: dict[str, PoolingKind] = {}


def register(kind: PoolingKind) -> None:
    """Add a way of pooling. Folders may then name it, in Python and in the commands.

    Parameters
    ----------
    kind : PoolingKind
        The entry. One of the same name is replaced.
    """
    POOLINGS[kind.name] = kind


def have_kernels(modes: Iterable[str]) -> bool:
    """Return whether the Rust engine computes all of these ways of pooling.

    Parameters
    ----------
    modes : iterable of str
        Their names.
    """
    return all(POOLINGS[mode].has_kernel for mode in modes)


def first_token(x: Array) -> Array:
    """[B, S, H] -> the vectors of the first tokens, [B, H]; a batch without rows may have rows of no tokens."""
    found: Array = x[:, 0] if x.shape[1] else np.zeros((len(x), x.shape[2]), x.dtype)
    return found


def _first(x: Array, counted: Mask, _: Mask) -> Array:
    pooled: Array = x[np.arange(len(x)), counted.argmax(axis=1)]
    return pooled


def _last(x: Array, counted: Mask, _: Mask) -> Array:
    rows = np.arange(len(x))  # [B]
    last = x.shape[1] - 1 - counted[:, ::-1].argmax(axis=1)  # [B]
    pooled: Array = x[rows, last] * counted[rows, last][:, None]
    return pooled


def _max(x: Array, counted: Mask, _: Mask) -> Array:
    pooled: Array = np.where(counted[:, :, None], x, np.float32(-np.inf)).max(axis=1)
    return pooled


def _max_gradient(dy: Array, x: Array, _: Array) -> Array:
    dx = np.zeros_like(x)
    dx[x.argmax(axis=0), np.arange(x.shape[1])] = dy
    return dx


def _at(index: int) -> Callable[[Array, Array, Array], Array]:
    """Return the gradient of taking one token."""

    def gradient(dy: Array, x: Array, _: Array) -> Array:
        dx = np.zeros_like(x)
        dx[index] = dy
        return dx

    return gradient


def _sums(x: Array, weights: Array) -> tuple[Array, Array]:
    """[B, S, H], [B, S] -> the weighted sums of the tokens [B, H], and the sums of their weights [B, 1].

    Padding is left out before the sum: with it, BLAS would add a row's tokens in the order of another batch.
    """
    total = np.zeros((len(x), x.shape[2]), x.dtype)
    sums = np.zeros((len(x), 1), np.float32)
    for i, own in enumerate(weights != 0):
        total[i] = weights[i, own] @ x[i, own]
        sums[i] = weights[i, own].sum()
    return total, np.maximum(sums, np.float32(1e-9))


def _shared(dy: Array, weights: Array, divisor: np.floating[Any]) -> Array:
    """[H], [n] -> the gradients of n tokens whose weighted sum is divided by a number, [n, H]."""
    gradient: Array = (weights / divisor)[:, None] * dy
    return gradient


def _mean(x: Array, counted: Mask, _: Mask) -> Array:
    total, count = _sums(x, counted.astype(np.float32))
    return total / count


def _mean_gradient(dy: Array, x: Array, _: Array) -> Array:
    weights = np.ones(len(x), x.dtype)
    return _shared(dy, weights, weights.sum())


def _mean_sqrt(x: Array, counted: Mask, _: Mask) -> Array:
    total, count = _sums(x, counted.astype(np.float32))
    root: Array = np.sqrt(count)
    return total / root


def _mean_sqrt_gradient(dy: Array, x: Array, _: Array) -> Array:
    weights = np.ones(len(x), x.dtype)
    return _shared(dy, weights, np.sqrt(weights.sum()))


def _weighted_mean(x: Array, counted: Mask, visible: Mask) -> Array:
    first = visible.argmax(axis=1)[:, None]  # [B, 1]
    # 1, 2, 3, … from the first visible position, pooled or not.
    weights = counted.astype(np.float32) * (np.arange(x.shape[1]) - first + 1)
    total, count = _sums(x, weights.astype(np.float32))
    return total / count


def _weighted_mean_gradient(dy: Array, x: Array, positions: Array) -> Array:
    weights = positions.astype(x.dtype)
    return _shared(dy, weights, weights.sum())


def _register_usual() -> None:
    usual = {
        "cls": ("cls_token", _first, _at(0)),
        "max": ("max_tokens", _max, _max_gradient),
        "mean": ("mean_tokens", _mean, _mean_gradient),
        "mean_sqrt_len_tokens": ("mean_sqrt_len_tokens", _mean_sqrt, _mean_sqrt_gradient),
        "weightedmean": ("weightedmean_tokens", _weighted_mean, _weighted_mean_gradient),
        "lasttoken": ("lasttoken", _last, _at(-1)),
    }
    for name, (key, formula, gradient) in usual.items():
        register(
            PoolingKind(name=name, formula=formula, gradient=gradient, old_key=f"pooling_mode_{key}", has_kernel=True)
        )


_register_usual()
