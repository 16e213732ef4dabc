"""From vectors to points in the plane: principal components, t-SNE, UMAP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert.bert.functional import normalize
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array

    Projection = Callable[[Array], Any]

#: UMAP and t-SNE place texts by their neighbours, and fail with fewer texts than this.
FEWEST_NEIGHBOURS = 4
#: With more texts than this, `tsne`, whose steps cost the square of their number, leaves the work to scikit-learn.
MOST_EXACT = 2000
PERPLEXITY = 30.0
#: t-SNE: steps with exaggerated attractions, which form groups, then steps that arrange them.
EARLY_STEPS, STEPS = 250, 500
EXAGGERATION = 12.0


def principal(x: Array) -> tuple[Array, list[float]]:
    """Return the points on the first two principal axes, and the share of the variance on each.

    Parameters
    ----------
    x : ndarray of float32
        Vectors, [n, H].

    Returns
    -------
    points : ndarray of float32
        [n, 2]; zeros for an axis that the vectors do not have.
    shares : list of float
        At most two.
    """
    if not x.shape[1]:
        return np.zeros((len(x), 2), np.float32), []
    centred = x - x.mean(axis=0, dtype=np.float64) if len(x) else x.astype(np.float64)
    values, axes = np.linalg.eigh(centred.T @ centred)  # ascending
    order = np.argsort(values)[::-1][:2]
    axes = axes[:, order]
    # The sign of an axis is arbitrary: the largest component is made positive, so that a map is the same every time.
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    points = np.zeros((len(x), 2), np.float32)
    points[:, : axes.shape[1]] = centred @ axes
    total = float(values.sum())
    return points, [float(values[i]) / total if total > 0 else 0.0 for i in order]


def projection(method: str, count: int) -> Projection:
    """Return the function that maps `count` vectors [n, H] to points [n, 2].

    Raises
    ------
    InputError
        There is no such method, its package is not installed, or it needs more texts.
    """
    if method == "umap":
        found = _umap()
    elif method == "tsne":
        found = tsne if count <= MOST_EXACT else _large_tsne()
    else:
        raise InputError(f"method must be 'pca', 'tsne', 'umap' or a function, not {method!r}")
    if count < FEWEST_NEIGHBOURS:
        raise InputError(
            f"method={method!r} needs at least {FEWEST_NEIGHBOURS} texts, not {count}; 'pca' takes any number"
        )
    return found


def _umap() -> Projection:
    try:
        import umap
    except ImportError as cause:
        raise InputError("method='umap' needs umap-learn: pip install umap-learn") from cause
    # One job, because a seed allows no more; neighbours, because umap warns of more than there are.
    return lambda x: umap.UMAP(random_state=0, n_jobs=1, n_neighbors=min(15, len(x) - 1)).fit_transform(x)


def _large_tsne() -> Projection:
    try:
        from sklearn.manifold import TSNE
    except ImportError as cause:
        raise InputError(
            f"method='tsne' of more than {MOST_EXACT:,} texts needs scikit-learn: pip install scikit-learn"
        ) from cause
    return lambda x: TSNE(random_state=0, perplexity=PERPLEXITY, init="pca").fit_transform(normalize(x))


def tsne(x: Array) -> Array:
    """Return points whose neighbours are the vectors' neighbours, as far as the plane has room.

    t-SNE (van der Maaten and Hinton 2008) with all pairs, from the principal components on, so that it is the same
    every time; the step size is as in Belkina et al. (2019). Vectors are compared by their cosine.

    Parameters
    ----------
    x : ndarray of float32
        Vectors, [n, H], at least `FEWEST_NEIGHBOURS`.

    Returns
    -------
    ndarray of float32
        Points, [n, 2].
    """
    attraction = _attractions(normalize(x))
    points, _ = principal(x)
    points *= 1e-4 / max(float(points[:, 0].std()), 1e-12)
    if not points.any():  # vectors that are all the same: they stay where they are
        return points
    rate = max(len(x) / EXAGGERATION, 50.0)
    velocity, gains = np.zeros_like(points), np.ones_like(points)
    for step in range(EARLY_STEPS + STEPS):
        early = step < EARLY_STEPS
        gradient = _gradient(points, attraction, EXAGGERATION if early else 1.0)
        # Where the gradient keeps its direction, the steps grow.
        gains = np.where(gradient * velocity < 0, gains + 0.2, np.maximum(gains * 0.8, 0.01))
        velocity = (0.5 if early else 0.8) * velocity - rate * gains * gradient
        points = points + velocity
    return np.asarray(points - points.mean(axis=0), np.float32)


def _attractions(x: Array) -> Array:
    """Return for each pair the probability of being neighbours, [n, n], which add up to 1.

    Each row is a Gaussian of the distances whose width is such that its perplexity is `PERPLEXITY`.
    """
    count = len(x)
    distances = np.maximum(2 - 2 * (x @ x.T), 0).astype(np.float64)  # squared
    np.fill_diagonal(distances, np.inf)
    distances -= distances.min(axis=1, keepdims=True)
    wanted = np.log(min(PERPLEXITY, (count - 1) / 3))
    low, high = np.zeros((count, 1)), np.full((count, 1), np.inf)
    sharpness = np.ones((count, 1))
    finite = np.where(np.isinf(distances), 0, distances)
    for _ in range(50):  # bisection
        weights = np.exp(-distances * sharpness)
        total = weights.sum(axis=1, keepdims=True)
        entropy = np.log(total) + sharpness * (weights * finite).sum(axis=1, keepdims=True) / total
        wide = entropy > wanted
        low, high = np.where(wide, sharpness, low), np.where(wide, high, sharpness)
        sharpness = np.where(np.isinf(high), sharpness * 2, (low + high) / 2)
    rows = weights / total
    return np.asarray((rows + rows.T) / (2 * count), np.float32)


def _gradient(points: Array, attraction: Array, exaggeration: float) -> Array:
    """Return the gradient of the divergence of the pairs' probabilities in the plane from `attraction`, [n, 2]."""
    squares = (points**2).sum(axis=1)
    near = points @ points.T  # becomes 1 / (1 + squared distance), in place
    near *= -2
    near += squares
    near += (squares + 1)[:, None]
    np.maximum(near, 1, out=near)
    np.reciprocal(near, out=near)
    np.fill_diagonal(near, 0)
    pull: npt.NDArray[np.float32] = near * (-1 / max(float(near.sum()), 1e-12))
    pull += attraction * exaggeration if exaggeration != 1 else attraction
    pull *= near
    return np.asarray(4 * (pull.sum(axis=1)[:, None] * points - pull @ points), np.float32)
