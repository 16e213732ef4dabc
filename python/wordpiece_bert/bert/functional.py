"""The arithmetic of BERT: one small function for each formula, over NumPy arrays.

Read it from top to bottom with the papers at hand: Devlin et al., "BERT" (2019), and Vaswani et al., "Attention is all
you need" (2017), whose section 3 defines the encoder. The last third composes the small functions into the steps of a
forward pass: `embeddings`, then `encoder_layer` once for each layer, then `pooler` or `pool`. It is there to be read
and to compare with: models run the steps of their plan (``bert/plan/interpreter.py``), which call the small functions.

Comments denote shapes by these letters:

    B  sequences in the batch     H  hidden size                    V  tokens in the vocabulary
    S  positions in a padded row  N  attention heads                P  rows of the position table
    F  intermediate size          d  size of one head, d = H / N    T  token types (segments)

Weights are plain dicts whose keys are the parameter names of a checkpoint, so that ``linear(x, **layer["query"])``
reads as the formula. All floating-point arrays are float32, and so are all results.

Stability: stable.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Literal, NamedTuple, NotRequired, TypedDict

import numpy as np
import numpy.typing as npt

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert.poolings import POOLINGS
from wordpiece_bert.bert.rotary import Rotation, rotate

__all__ = [
    "ACTIVATIONS",
    "POOLING_MODES",
    "Activation",
    "Affine",
    "Array",
    "Embeddings",
    "Ids",
    "Layer",
    "Mask",
    "PoolingMode",
    "QueryKeyNorm",
    "attention",
    "distance_buckets",
    "embeddings",
    "encoder_layer",
    "erf",
    "feed_forward",
    "gelu",
    "gelu_tanh",
    "layer_norm",
    "linear",
    "linear_bias",
    "mish",
    "norm_first_layer",
    "normalize",
    "pool",
    "pooler",
    "queries_keys_values",
    "query_key_norm",
    "quick_gelu",
    "relative_position_bias",
    "relu",
    "rms_norm",
    "self_attention",
    "sigmoid",
    "silu",
    "softmax",
    "tanh",
    "window_attention",
]

Array = npt.NDArray[np.float32]
Ids = npt.NDArray[np.integer]
Mask = npt.NDArray[np.bool_]
Activation = Callable[[Array], Array]


# --- weights, by their names in a checkpoint


class Affine(TypedDict):
    """A dense layer, weight [out, in] and bias [out]; or a layer norm, weight (γ) and bias (β) [H]."""

    weight: Array
    bias: Array


class Linear(TypedDict):
    """A dense layer that has no bias in some models."""

    weight: Array
    bias: NotRequired[Array]


class EmbeddingTable(TypedDict):
    """An embedding table, weight [rows, H]."""

    weight: Array


class Embeddings(TypedDict):
    """The three tables whose rows are summed, and the norm after the sum.

    Variants of BERT differ: DistilBERT and MPNet have no token types; models with rotary positions have no table of
    positions, and those with norms before the sub-layers no norm here; the tables of ELECTRA and ALBERT have another
    width, E, and a dense layer [H, E] maps it to H.
    """

    word_embeddings: EmbeddingTable  # [V, E]
    position_embeddings: NotRequired[EmbeddingTable]  # [P, E]
    token_type_embeddings: NotRequired[EmbeddingTable]  # [T, E]
    task_type_embeddings: NotRequired[EmbeddingTable]  # [tasks, E], in ERNIE
    LayerNorm: NotRequired[Norm]  # [E]
    projection: NotRequired[Affine]


class Projection(TypedDict):
    """The dense layer that ends a sub-layer, and the norm after its residual, unless norms come before sub-layers."""

    dense: Linear
    LayerNorm: NotRequired[Affine]


class QueryKeyValue(TypedDict):
    """The three dense layers [N·d, H] of self-attention; head n has rows n·d to (n + 1)·d."""

    query: Linear
    key: Linear
    value: Linear


class Norm(TypedDict):
    """A layer norm, γ and β [H]; some models have no β."""

    weight: Array
    bias: NotRequired[Array]


class Attention(TypedDict):
    """The first sub-layer: self-attention."""

    ln: NotRequired[Norm]  # the norm before it, in models that have it there
    query_norm: NotRequired[Affine]  # the norms of queries and keys, in some of Jina-BERT's models
    key_norm: NotRequired[Affine]
    second_norm: NotRequired[Affine]  # the norm after a second residual, in the same models
    self: QueryKeyValue
    output: Projection  # dense [H, N·d]


class Intermediate(TypedDict):
    """The first half of the feed-forward network: one dense layer [F, H], or two in a gated network."""

    dense: NotRequired[Linear]
    gate: NotRequired[Linear]
    up: NotRequired[Linear]


class Layer(TypedDict):
    """One layer of the encoder."""

    attention: Attention
    ln: NotRequired[Norm]  # the norm before the feed-forward network, in models that have it there
    intermediate: Intermediate
    output: Projection  # dense [H, F]


# --- the small functions


def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """Dense layer: y = x·Wᵀ + b over the last axis.

    x [..., in], weight [out, in], bias [out] or None for none -> [..., out].

    Parameters
    ----------
    x : Array
        [..., in].
    weight : Array
        [out, in].
    bias : Array, optional
        [out]; none by default.

    Returns
    -------
    Array
        The result, with the rows of `weight` as the last axis.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import linear
    >>> linear(
    ...     np.array([1, 2], np.float32),
    ...     np.array([[3, 4], [5, 6]], np.float32),
    ...     np.array([0, 10], np.float32),
    ... )
    array([11., 27.], dtype=float32)
    """
    rows = x.reshape(-1, x.shape[-1])  # [..., in] -> [tokens, in]: one matrix product for the whole batch
    y = rows @ weight.T  # [tokens, out]
    if bias is not None:
        y += bias
    return y.reshape(*x.shape[:-1], len(weight))


def layer_norm(x: Array, weight: Array, bias: Array | None = None, *, eps: float) -> Array:
    """Layer normalization: (x − mean) / √(variance + ε) · γ + β over the last axis (Ba, Kiros and Hinton, 2016).

    x [..., H], weight [H], bias [H] or None for none -> [..., H]. The variance is the biased one (divided by H). It is
    computed from the centred values, because BERT's ε, 1e-12, is too small to cover the cancellation in mean(x²) −
    mean(x)².

    Parameters
    ----------
    x : Array
        [..., H].
    weight : Array
        γ, [H].
    bias : Array, optional
        β, [H]; none by default.
    eps : float
        ε.

    Returns
    -------
    Array
        The result, of the shape of `x`.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import layer_norm
    >>> layer_norm(
    ...     np.array([3, 5], np.float32),
    ...     np.ones(2, np.float32),
    ...     np.zeros(2, np.float32),
    ...     eps=0.0,
    ... )
    array([-1.,  1.], dtype=float32)
    """
    y: Array = x - x.mean(axis=-1, keepdims=True)
    variance = np.square(y).mean(axis=-1, keepdims=True)  # [..., 1]
    y /= np.sqrt(variance + np.float32(eps))
    y *= weight
    if bias is not None:
        y += bias
    return y


def rms_norm(x: Array, weight: Array, eps: float) -> Array:
    """Root mean square normalization: x / √(mean(x²) + ε) · γ over the last axis (Zhang and Sennrich, 2019).

    Parameters
    ----------
    x : Array
        [..., H].
    weight : Array
        γ, [H].
    eps : float
        ε.

    Returns
    -------
    Array
        [..., H].

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import rms_norm
    >>> rms_norm(np.array([1, 7], np.float32), np.ones(2, np.float32), eps=0.0).round(3)
    array([0.2, 1.4], dtype=float32)
    """
    y: Array = x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + np.float32(eps))
    y *= weight
    return y


def softmax(x: Array) -> Array:
    """exp(x) / Σ exp(x) over the last axis. The maximum is subtracted first, so that nothing overflows.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import softmax
    >>> softmax(np.log(np.array([1, 3], np.float32)))
    array([0.25, 0.75], dtype=float32)
    """
    e: Array = x - x.max(axis=-1, keepdims=True, initial=np.finfo(np.float32).min)  # the axis may be empty
    np.exp(e, out=e)
    e /= e.sum(axis=-1, keepdims=True)
    return e


def normalize(x: Array) -> Array:
    """Scale rows to length 1: x / max(‖x‖₂, 1e-12) over the last axis, [..., H] -> [..., H].

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import normalize
    >>> normalize(np.array([[3, 4]], np.float32))
    array([[0.6, 0.8]], dtype=float32)
    """
    length: Array = np.sqrt(np.square(x).sum(axis=-1, keepdims=True))  # [..., 1]
    np.maximum(length, 1e-12, out=length)
    return x / length


# --- activations, [...] -> [...]


def _in_blocks(function: Activation) -> Activation:
    """Apply an element-wise function block by block, so that its temporaries stay in the cache."""
    block = 32_768  # numbers, 128 KiB: several such temporaries fit into the second-level cache of most CPUs

    @wraps(function)
    def blocked(x: Array) -> Array:
        flat = np.ascontiguousarray(x).reshape(-1)
        y = np.empty_like(flat)
        for start in range(0, len(flat), block):
            y[start : start + block] = function(flat[start : start + block])
        return y.reshape(x.shape)

    return blocked


# erf(z) = tanh(z + z·P(z²)/Q(z²)) to within 3e-9 for |z| <= 4: P/Q is the minimax fit of artanh(erf(z))/z − 1, weighted
# by the slope of tanh. In float32 the total error is below 1e-7, most of it the rounding of tanh. Between 4, where erf
# is 1 − 1.5e-8, and _ERF_END the argument of tanh grows from 9 to 14, so the result there is exactly 1.
_ERF_P = (0.128379188, 0.122908954, 0.0189431112, 0.00184474066)
_ERF_Q = (1.0, 0.156852795, 0.0236129504, 0.000322666351)
_ERF_END = 5.0


def erf(z: Array) -> Array:
    """Error function, 2/√π ∫₀ᶻ exp(−t²) dt, to within 1e-7 (1.2e-7 on CPUs where NumPy uses the C library's tanh).

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import erf
    >>> erf(np.array([-1, 0, 2], np.float32)).round(3)
    array([-0.843,  0.   ,  0.995], dtype=float32)
    """
    z = np.clip(z, -_ERF_END, _ERF_END)
    s = z * z
    p = _polynomial(s, _ERF_P)
    p /= _polynomial(s, _ERF_Q)
    p *= z
    p += z
    return np.tanh(p, out=p)


def _polynomial(x: Array, coefficients: tuple[float, ...]) -> Array:
    """c₀ + c₁x + c₂x² + … by Horner's rule."""
    y = x * coefficients[-1]
    for c in coefficients[-2:0:-1]:
        y += c
        y *= x
    y += coefficients[0]
    return y


@_in_blocks
def gelu(x: Array) -> Array:
    """x·Φ(x) = x·½(1 + erf(x/√2)): the GELU of BERT (Hendrycks and Gimpel, 2016).

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import gelu
    >>> gelu(np.array([-1, 0, 2], np.float32)).round(3)
    array([-0.159,  0.   ,  1.954], dtype=float32)
    """
    y = erf(x * math.sqrt(0.5))
    y += 1.0
    y *= x
    y *= 0.5
    return y


@_in_blocks
def gelu_tanh(x: Array) -> Array:
    """½x(1 + tanh(√(2/π)·(x + 0.044715x³))): an approximation of GELU to within 5e-4 (the same paper).

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import gelu_tanh
    >>> gelu_tanh(np.array([-1, 0, 2], np.float32)).round(3)
    array([-0.159,  0.   ,  1.955], dtype=float32)
    """
    y = x * x
    y *= 0.044715
    y += 1.0
    y *= x
    y *= math.sqrt(2.0 / math.pi)
    np.tanh(y, out=y)
    y += 1.0
    y *= x
    y *= 0.5
    return y


@_in_blocks
def sigmoid(x: Array) -> Array:
    """σ(x) = 1/(1 + exp(−x)). Below −88, where exp(−x) would overflow, x counts as −88: σ is about 6e-39.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import sigmoid
    >>> sigmoid(np.array([-1, 0, 2], np.float32)).round(3)
    array([0.269, 0.5  , 0.881], dtype=float32)
    """
    y = np.exp(-np.maximum(x, np.float32(-88.0)))
    y += 1.0
    return np.reciprocal(y, out=y)


def quick_gelu(x: Array) -> Array:
    """x·σ(1.702x).

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import quick_gelu
    >>> quick_gelu(np.array([-1, 0, 2], np.float32)).round(3)
    array([-0.154,  0.   ,  1.936], dtype=float32)
    """
    return x * sigmoid(1.702 * x)


def silu(x: Array) -> Array:
    """x·σ(x), also called swish.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import silu
    >>> silu(np.array([-1, 0, 2], np.float32)).round(3)
    array([-0.269,  0.   ,  1.762], dtype=float32)
    """
    return x * sigmoid(x)


@_in_blocks
def mish(x: Array) -> Array:
    """x·tanh(ln(1 + exp(x))).

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import mish
    >>> mish(np.array([-1, 0, 2], np.float32)).round(3)
    array([-0.303,  0.   ,  1.944], dtype=float32)
    """
    return x * np.tanh(np.logaddexp(np.float32(0.0), x))


def tanh(x: Array) -> Array:
    """Hyperbolic tangent.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import tanh
    >>> tanh(np.array([-1, 0, 2], np.float32)).round(3)
    array([-0.762,  0.   ,  0.964], dtype=float32)
    """
    return np.tanh(x)


def relu(x: Array) -> Array:
    """max(x, 0).

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import relu
    >>> relu(np.array([-1, 0, 2], np.float32)).round(3)
    array([0., 0., 2.], dtype=float32)
    """
    return np.maximum(x, 0.0)


#: The activations that ``hidden_act`` of a configuration may name; any other name is an error, and is never imported.
#: This is the only list of activations: the Rust kernels know the same functions by their ``__name__``.
ACTIVATIONS: dict[str, Activation] = {
    "gelu": gelu,
    "gelu_python": gelu,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "gelu_fast": gelu_tanh,
    "gelu_accurate": gelu_tanh,
    "quick_gelu": quick_gelu,
    "relu": relu,
    "silu": silu,
    "swish": silu,
    "tanh": tanh,
    "sigmoid": sigmoid,
    "mish": mish,
}


# --- attention

#: Blocks of fewer queries than this would be slower.
_LEAST_QUERIES = 64


def split_heads(x: Array, heads: int) -> Array:
    """[B, S, H] -> [B, N, S, d]: head n is columns n·d to (n+1)·d."""
    batch, length, hidden = x.shape
    return x.reshape(batch, length, heads, hidden // heads).swapaxes(1, 2)


def merge_heads(x: Array) -> Array:
    """[B, N, S, d] -> [B, S, H]: the inverse of `split_heads`."""
    batch, heads, length, size = x.shape
    return x.swapaxes(1, 2).reshape(batch, length, heads * size)


def visible_keys(length: int, mask: Mask | None, window: int | None) -> Mask | None:
    """Return which keys each query sees: [B or 1, 1, S or 1, S], query by key; None if every query sees all keys.

    Parameters
    ----------
    length : int
        S.
    mask : Mask or None
        [B, S], true where a token is visible; None if all are.
    window : int or None
        The greatest distance |query − key| in a row of S positions, padding included; None for any.
    """
    visible = None if mask is None else mask[:, None, None, :]  # [B, 1, 1, S]
    if window is None:
        return visible
    positions = np.arange(length)
    near: Mask = (np.abs(positions[:, None] - positions) <= window)[None, None]  # [1, 1, S, S]
    return near if visible is None else near & visible


def additive_mask(visible: Mask) -> Array:
    """[...], true where a key is visible -> what is added to its scores, of all heads.

    0 where true, else the lowest float32, which the softmax turns into a weight of exactly 0 if any key is visible.
    """
    return np.where(visible, np.float32(0.0), np.finfo(np.float32).min)


def relative_position_bias(length: int, table: Array) -> Array:
    """MPNet's position bias: one number for each head and bucket of distances, table [32, N] -> [1, N, S, S].

    Source: Song et al. 2020; the buckets are as in `distance_buckets`.

    Parameters
    ----------
    length : int
        S.
    table : Array
        The biases [32, N].

    Returns
    -------
    Array
        What is added to the scores, [1, N, S, S].

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import relative_position_bias
    >>> table = np.arange(32, dtype=np.float32)[
    ...     :, None
    ... ]  # the number of each bucket, for one head
    >>> relative_position_bias(3, table)
    array([[[[ 0., 17., 18.],
             [ 1.,  0., 17.],
             [ 2.,  1.,  0.]]]], dtype=float32)
    """
    positions = np.arange(length)
    buckets = distance_buckets(positions[:, None] - positions[None, :])  # [S, S]
    bias: Array = table[buckets]  # [S, S, N]
    return bias.transpose(2, 0, 1)[None]


def linear_bias(length: int, slopes: Array) -> Array:
    """ALiBi: −m · distance(i, j) for query i and key j, with a slope m for each head, slopes [N] -> [1, N, S, S].

    The distance is the number of positions between them. Source: Press et al. 2022, section 3, for keys on both sides.

    Parameters
    ----------
    length : int
        S.
    slopes : Array
        m of each head, [N].

    Returns
    -------
    Array
        What is added to the scores, [1, N, S, S].

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import linear_bias
    >>> linear_bias(3, np.array([0.5], np.float32))
    array([[[[-0. , -0.5, -1. ],
             [-0.5, -0. , -0.5],
             [-1. , -0.5, -0. ]]]], dtype=float32)
    """
    positions = np.arange(length)
    distances = np.abs(positions[:, None] - positions[None, :]).astype(np.float32)  # [S, S]
    bias: Array = -slopes[None, :, None, None] * distances
    return bias


def distance_buckets(distance: Ids) -> Ids:
    """Return the bucket, 0 to 31, of each distance query − key.

    Keys at or before the query have buckets 0 to 15, keys after it 16 to 31. In each half, distances 0 to 7 have one
    bucket each, distances 8 to 127 share eight buckets whose widths grow logarithmically, and larger distances fall
    into the last one (Raffel et al. 2020, T5, section 2.1).

    Parameters
    ----------
    distance : Ids
        Whole numbers, any shape.

    Returns
    -------
    Ids
        The buckets, of the same shape.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import distance_buckets
    >>> distance_buckets(np.array([0, 5, 20, 1000, -5]))
    array([ 0,  5, 10, 15, 21])
    """
    after = np.where(distance < 0, 16, 0)
    distance = np.abs(distance)
    logarithmic = 8 + np.log(np.maximum(distance, 1).astype(np.float32) / 8) / np.float32(math.log(128 / 8)) * 8
    return after + np.where(distance < 8, distance, np.minimum(logarithmic.astype(np.int64), 15))


class RelativeTerms(NamedTuple):
    """The projected relative positions of one layer of DeBERTa, whose formulas are in `bert.disentangled`."""

    keys: Array | None  # K^r [2K, N·d], for the term of the query's content
    queries: Array | None  # Q^r [2K, N·d], for the term of the key's content


class QueryKeyNorm(NamedTuple):
    """The norms over all heads of the queries and of the keys of a token.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import QueryKeyNorm
    >>> unit = {"weight": np.ones(4, np.float32), "bias": np.zeros(4, np.float32)}
    >>> QueryKeyNorm(unit, unit, eps=1e-12).eps
    1e-12
    """

    query: Affine
    key: Affine
    eps: float


def queries_keys_values(
    x: Array,
    query: Linear,
    key: Linear,
    value: Linear,
    heads: int,
    rotation: Rotation | None = None,
    norms: QueryKeyNorm | None = None,
) -> tuple[Array, Array, Array]:
    """Return the queries, keys and values of each head: x [B, S, H] -> q, k, v [B, N, S, d].

    Parameters
    ----------
    x : Array
        [B, S, H].
    query, key, value : Linear
        The dense layers [N·d, H].
    heads : int
        N.
    rotation : Rotation, optional
        By what queries and keys are rotated, in models with rotary positions.
    norms : QueryKeyNorm, optional
        The norms of queries and keys, in models that have them.

    Returns
    -------
    Array
        The queries, [B, N, S, d].
    Array
        The keys, of the same shape.
    Array
        The values, of the same shape.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import queries_keys_values
    >>> layer = {"weight": np.eye(2, dtype=np.float32), "bias": np.zeros(2, np.float32)}
    >>> q, k, v = queries_keys_values(
    ...     np.zeros((1, 3, 2), np.float32), layer, layer, layer, heads=2
    ... )
    >>> q.shape
    (1, 2, 3, 1)
    """
    q, k = linear(x, **query), linear(x, **key)  # [B, S, N·d]
    if norms is not None:
        q, k = layer_norm(q, **norms.query, eps=norms.eps), layer_norm(k, **norms.key, eps=norms.eps)
    q, k = split_heads(q, heads), split_heads(k, heads)
    v = split_heads(linear(x, **value), heads)
    if rotation is not None:
        q, k = rotate(q, rotation), rotate(k, rotation)
    return q, k, v


@completed_by(queries_keys_values)
def self_attention(
    x: Array,
    query: Linear,
    key: Linear,
    value: Linear,
    heads: int,
    mask: Mask | None,
    position_bias: Array | None = None,
    rotation: Rotation | None = None,
    norms: QueryKeyNorm | None = None,
    window: int | None = None,
    in_blocks: bool = False,
) -> tuple[Array, Array]:
    """Multi-head self-attention: softmax(q·kᵀ/√d + mask)·v for each head (Vaswani et al. 2017, equation 1).

    x [B, S, H], mask [B, S] or None if every token is visible -> context [B, S, N·d], weights p [B, N, S, S]. MPNet
    and models with ALiBi add a bias [1, N, S, S] to the scores; models with rotary positions rotate queries and keys.
    With a window, a query sees the keys near it; one that sees none, because they are all masked, has weights and
    context 0.

    Parameters
    ----------
    mask : Mask or None
        [B, S], true where a token is visible; None if all are.
    position_bias : Array, optional
        What is added to the scores, [1, N, S, S].
    window : int, optional
        The greatest distance from a query to a key that it sees, in positions of the row; by default it sees all.
    in_blocks : bool, default False
        Whether attention with a window is `window_attention`, whose memory grows linearly with S. There are then no
        weights: p is [B, N, S, 0].

    Returns
    -------
    Array
        The context, [B, S, N·d].
    Array
        The weights, [B, N, S, S].

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import self_attention
    >>> layer = {"weight": np.eye(2, dtype=np.float32), "bias": np.zeros(2, np.float32)}
    >>> x = np.array([[[1, 0], [1, 0], [9, 9]]], np.float32)
    >>> context, weights = self_attention(
    ...     x, layer, layer, layer, heads=1, mask=np.array([[True, True, False]])
    ... )
    >>> weights[0, 0, 0]
    array([0.5, 0.5, 0. ], dtype=float32)
    """
    q, k, v = queries_keys_values(x, query, key, value, heads, rotation, norms)
    return attention(q, k, v, mask, position_bias, window, in_blocks)


@completed_by(self_attention)
def attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Mask | None,
    position_bias: Array | None = None,
    window: int | None = None,
    in_blocks: bool = False,
) -> tuple[Array, Array]:
    """The attention of `self_attention` for queries, keys and values, [B, N, S, d] each.

    Parameters
    ----------
    q, k, v : Array
        The queries, keys and values of each head, [B, N, S, d].

    Returns
    -------
    Array
        The context, [B, S, N·d].
    Array
        The weights, [B, N, S, S].

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import attention
    >>> q = k = np.zeros((1, 1, 2, 1), np.float32)
    >>> v = np.array([2, 6], np.float32).reshape(1, 1, 2, 1)
    >>> attention(q, k, v, None)[0].ravel()
    array([4., 4.], dtype=float32)
    """
    if in_blocks and window is not None and position_bias is None:
        return merge_heads(window_attention(q, k, v, mask, window)), np.empty((*q.shape[:3], 0), np.float32)
    scores = q @ k.swapaxes(-1, -2)  # [B, N, S, S]
    scores *= 1.0 / math.sqrt(q.shape[-1])
    if position_bias is not None:
        scores += position_bias
    visible = visible_keys(q.shape[2], mask, window)  # [B or 1, 1, S or 1, S]
    if visible is not None:
        scores += additive_mask(visible)
    p = softmax(scores)  # [B, N, S, S]
    if window is not None and visible is not None:
        p *= visible.any(axis=-1, keepdims=True)
    return merge_heads(p @ v), p  # [B, S, N·d]


def window_attention(q: Array, k: Array, v: Array, mask: Mask | None, window: int) -> Array:
    """The context of attention with a window, for one block of queries after the other.

    q, k and v [B, N, S, d], mask [B, S] or None -> [B, N, S, d]. A block has the scores of its queries with the keys
    that one of them can see, at most [B, N, c, c + 2·window] for blocks of c queries; the scores of all pairs are never
    in memory.

    Parameters
    ----------
    q, k, v : Array
        The queries, keys and values of each head, [B, N, S, d].
    mask : Mask or None
        [B, S], true where a token is visible; None if all are.
    window : int
        The greatest distance from a query to a key that it sees.

    Returns
    -------
    Array
        The context, [B, N, S, d]; 0 where a query sees no token.

    Examples
    --------
    A query sees itself and its neighbours, here all with equal weights:

    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import window_attention
    >>> q = k = np.zeros((1, 1, 4, 1), np.float32)
    >>> v = np.arange(4, dtype=np.float32).reshape(1, 1, 4, 1)
    >>> window_attention(q, k, v, None, window=1).ravel()
    array([0.5, 1. , 2. , 2.5], dtype=float32)
    """
    length, scale = q.shape[2], 1.0 / math.sqrt(q.shape[-1])
    context = np.empty_like(q)
    block = max(window + 1, _LEAST_QUERIES)
    for start in range(0, length, block):
        queries = slice(start, min(start + block, length))
        keys = slice(max(start - window, 0), min(queries.stop + window, length))
        scores = q[:, :, queries] @ k[:, :, keys].swapaxes(-1, -2)  # [B, N, c, keys]
        scores *= scale
        distances = np.arange(queries.start, queries.stop)[:, None] - np.arange(keys.start, keys.stop)
        visible: Mask = (np.abs(distances) <= window)[None, None]  # [1, 1, c, keys]
        if mask is not None:
            visible = visible & mask[:, None, None, keys]  # [B, 1, c, keys]
        scores += additive_mask(visible)
        p = softmax(scores)
        p *= visible.any(axis=-1, keepdims=True)
        context[:, :, queries] = p @ v[:, :, keys]
    return context


# --- the steps of a forward pass


def embeddings(
    input_ids: Ids | None,
    token_type_ids: Ids,
    position_ids: Ids,
    tables: Embeddings,
    eps: float,
    inputs_embeds: Array | None = None,
    task_type_ids: Ids | None = None,
) -> Array:
    """The input of the first layer: LN(word + type + position) (Devlin et al. 2019, figure 2); ERNIE adds a task.

    input_ids [B, S], or instead word vectors inputs_embeds [B, S, E]; token_type_ids and position_ids [B, S], or [1, S]
    if all rows have the same -> [B, S, H]. E is H unless the tables have a projection.

    Parameters
    ----------
    input_ids : Ids or None
        [B, S]; None with `inputs_embeds`.
    token_type_ids, position_ids : Ids
        [B, S], or [1, S] if all rows have the same.
    tables : Embeddings
        The tables and the norm.
    eps : float
        The ε of the norm.
    inputs_embeds : Array, optional
        Word vectors [B, S, E].
    task_type_ids : Ids, optional
        The tasks of ERNIE, [B, S]; 0 by default.

    Returns
    -------
    Array
        The vectors of the tokens, [B, S, H].

    Examples
    --------
    Two tokens, whose vectors are rows of the word table plus rows of the other tables, with mean 0 and variance 1:

    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import embeddings
    >>> tables = {
    ...     "word_embeddings": {"weight": np.array([[0, 0], [1, 3], [7, 5]], np.float32)},
    ...     "position_embeddings": {"weight": np.zeros((8, 2), np.float32)},
    ...     "LayerNorm": {
    ...         "weight": np.ones(2, np.float32),
    ...         "bias": np.zeros(2, np.float32),
    ...     },
    ... }
    >>> embeddings(
    ...     np.array([[1, 2]]), np.array([[0, 0]]), np.array([[0, 1]]), tables, 1e-12
    ... )
    array([[[-1.,  1.],
            [ 1., -1.]]], dtype=float32)
    """
    x = tables["word_embeddings"]["weight"][input_ids] if inputs_embeds is None else inputs_embeds  # [B, S, E]
    if "token_type_embeddings" in tables:
        x = x + tables["token_type_embeddings"]["weight"][token_type_ids]
    if "position_embeddings" in tables:
        x = x + tables["position_embeddings"]["weight"][position_ids]
    if "task_type_embeddings" in tables:
        x = x + tables["task_type_embeddings"]["weight"][0 if task_type_ids is None else task_type_ids]
    if "LayerNorm" in tables:
        x = layer_norm(x, **tables["LayerNorm"], eps=eps)
    return linear(x, **tables["projection"]) if "projection" in tables else x


def feed_forward(x: Array, intermediate: Intermediate, output: Linear, activation: Activation) -> Array:
    """FFN(x) = W₂·activation(W₁·x + b₁) + b₂ (Vaswani et al. 2017, equation 2), x [B, S, H] -> [B, S, H].

    With a gate, FFN(x) = W₂·(activation(W_gate·x) ⊙ W_up·x) + b₂ (Shazeer 2020, "GLU Variants Improve Transformer").

    Parameters
    ----------
    x : Array
        [B, S, H].
    intermediate : Intermediate
        W₁, or W_gate and W_up, [F, H].
    output : Linear
        W₂, [H, F].
    activation : Activation
        The function after W₁ or W_gate.

    Returns
    -------
    Array
        The result, [B, S, H].

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import feed_forward, relu
    >>> layer = {"weight": np.eye(2, dtype=np.float32), "bias": np.zeros(2, np.float32)}
    >>> feed_forward(np.array([[[-1, 2]]], np.float32), {"dense": layer}, layer, relu)
    array([[[0., 2.]]], dtype=float32)
    """
    if "gate" in intermediate:
        h = activation(linear(x, **intermediate["gate"]))  # [B, S, F]
        h *= linear(x, **intermediate["up"])
    else:
        h = activation(linear(x, **intermediate["dense"]))  # [B, S, F]
    return linear(h, **output)


def query_key_norm(attention: Attention, eps: float) -> QueryKeyNorm | None:
    """Return the norms of queries and keys of a layer; None if it has none.

    Parameters
    ----------
    attention : Attention
        The weights of the sub-layer.
    eps : float
        The ε of the norms.

    Returns
    -------
    QueryKeyNorm or None
        The norms.

    Examples
    --------
    >>> from wordpiece_bert.bert.functional import query_key_norm
    >>> query_key_norm({}, 1e-12) is None  # as in BERT, whose layers have none
    True
    """
    if "query_norm" not in attention or "key_norm" not in attention:
        return None
    return QueryKeyNorm(attention["query_norm"], attention["key_norm"], eps)


@completed_by(self_attention)
def encoder_layer(
    x: Array,
    layer: Layer,
    mask: Mask | None,
    *,
    heads: int,
    activation: Activation,
    eps: float,
    position_bias: Array | None = None,
    rotation: Rotation | None = None,
) -> tuple[Array, Array]:
    """One layer of the encoder; the norm comes after each residual (Vaswani et al. 2017, section 3.1).

        a = LN(x + attention(x))      x' = LN(a + FFN(a))

    x [B, S, H], mask [B, S] or None -> x' [B, S, H] and the attention weights [B, N, S, S]. Some models of Jina-BERT
    normalize queries and keys, and add x a second time: a = LN(x + LN(x + attention(x))).

    Parameters
    ----------
    layer : Layer
        The weights.
    activation : Activation
        The function between W₁ and W₂.
    eps : float
        The ε of the norms.

    Returns
    -------
    Array
        The vectors after the layer, [B, S, H].
    Array
        The weights of the attention, [B, N, S, S].

    Examples
    --------
    One token, in a layer whose dense weights are 0: what is left is the norm of the residual.

    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import encoder_layer, gelu
    >>> dense = {"weight": np.zeros((2, 2), np.float32), "bias": np.zeros(2, np.float32)}
    >>> norm = {"weight": np.ones(2, np.float32), "bias": np.zeros(2, np.float32)}
    >>> output = {"dense": dense, "LayerNorm": norm}
    >>> attention = {
    ...     "self": {"query": dense, "key": dense, "value": dense},
    ...     "output": output,
    ... }
    >>> layer = {"attention": attention, "intermediate": {"dense": dense}, "output": output}
    >>> encoder_layer(
    ...     np.array([[[3, 5]]], np.float32),
    ...     layer,
    ...     None,
    ...     heads=1,
    ...     activation=gelu,
    ...     eps=1e-12,
    ... )
    (array([[[-1.,  1.]]], dtype=float32), array([[[[1.]]]], dtype=float32))
    """
    attention, output = layer["attention"], layer["output"]
    context, p = self_attention(
        x,
        **attention["self"],
        heads=heads,
        mask=mask,
        position_bias=position_bias,
        rotation=rotation,
        norms=query_key_norm(attention, eps),
    )  # [B, S, N·d], [B, N, S, S]
    a = x + linear(context, **attention["output"]["dense"])  # [B, S, H]
    a = layer_norm(a, **attention["output"]["LayerNorm"], eps=eps)
    if "second_norm" in attention:
        a = layer_norm(x + a, **attention["second_norm"], eps=eps)
    x = a + feed_forward(a, layer["intermediate"], output["dense"], activation)  # [B, S, H]
    return layer_norm(x, **output["LayerNorm"], eps=eps), p


@completed_by(encoder_layer)
def norm_first_layer(
    x: Array,
    layer: Layer,
    mask: Mask | None,
    *,
    heads: int,
    activation: Activation,
    eps: float,
    rotation: Rotation | None = None,
    norm: Callable[..., Array] = layer_norm,
    window: int | None = None,
    in_blocks: bool = False,
) -> tuple[Array, Array]:
    """One layer of an encoder whose norms come before the sub-layers (Xiong et al. 2020, figure 1b).

        a = x + attention(LN(x))      x' = a + FFN(LN(a))

    Results are as in `encoder_layer`; a last norm follows the last layer. The first layer of ModernBERT has no norm
    before attention.

    Parameters
    ----------
    norm : callable, optional
        The norm: `layer_norm` by default, or `rms_norm`.
    window : int, optional
        The greatest distance from a query to a key that it sees; by default it sees all.
    in_blocks : bool, default False
        Whether layers with a window compute no attention weights, as for `self_attention`.

    Returns
    -------
    Array
        The vectors after the layer, [B, S, H].
    Array
        The weights of the attention, [B, N, S, S].

    Examples
    --------
    One token, in a layer whose dense weights are 0: both residuals leave it as it is.

    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import gelu, norm_first_layer
    >>> dense = {"weight": np.zeros((2, 2), np.float32), "bias": np.zeros(2, np.float32)}
    >>> norm = {"weight": np.ones(2, np.float32), "bias": np.zeros(2, np.float32)}
    >>> output = {"dense": dense}
    >>> attention = {
    ...     "ln": norm,
    ...     "self": {"query": dense, "key": dense, "value": dense},
    ...     "output": output,
    ... }
    >>> layer = {
    ...     "attention": attention,
    ...     "ln": norm,
    ...     "intermediate": {"dense": dense},
    ...     "output": output,
    ... }
    >>> norm_first_layer(
    ...     np.array([[[3, 5]]], np.float32),
    ...     layer,
    ...     None,
    ...     heads=1,
    ...     activation=gelu,
    ...     eps=1e-12,
    ... )
    (array([[[3., 5.]]], dtype=float32), array([[[[1.]]]], dtype=float32))
    """
    attention = layer["attention"]
    y = norm(x, **attention["ln"], eps=eps) if "ln" in attention else x  # [B, S, H]
    context, p = self_attention(
        y, **attention["self"], heads=heads, mask=mask, rotation=rotation, window=window, in_blocks=in_blocks
    )  # [B, S, N·d], [B, N, S, S]
    a = x + linear(context, **attention["output"]["dense"])  # [B, S, H]
    h = feed_forward(norm(a, **layer["ln"], eps=eps), layer["intermediate"], layer["output"]["dense"], activation)
    return a + h, p


def pooler(x: Array, dense: Affine) -> Array:
    """BERT's pooler: tanh of a dense layer over the first token, [B, S, H] -> [B, H].

    Parameters
    ----------
    x : Array
        [B, S, H].
    dense : Affine
        [H, H].

    Returns
    -------
    Array
        The vectors of the rows, [B, H].

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import pooler
    >>> x = np.zeros((1, 3, 2), np.float32)
    >>> pooler(
    ...     x, {"weight": np.eye(2, dtype=np.float32), "bias": np.ones(2, np.float32)}
    ... ).round(3)
    array([[0.762, 0.762]], dtype=float32)
    """
    return np.tanh(linear(x[:, 0], **dense))


PoolingMode = Literal["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]

#: The ways to pool token vectors, by their names in sentence-transformers.
POOLING_MODES: tuple[PoolingMode, ...] = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")


def pool(x: Array, mask: Mask, mode: str, skip: int = 0) -> Array:
    """Pool the vectors of each row's visible tokens, [CLS] and [SEP] among them, to one vector.

    x [B, S, H], mask [B, S] -> [B, H]. The first `skip` positions from the first visible one on, a prompt's, are
    skipped. Source: module Pooling of sentence-transformers 6.2, also for a row that has no tokens left: sums are 0,
    the maximum is −∞.

    Parameters
    ----------
    x : Array
        [B, S, H].
    mask : Mask
        [B, S], true for tokens.
    mode : str
        One of `POOLING_MODES`, or another name in `wordpiece_bert.bert.poolings.POOLINGS`, which has the formulas.
    skip : int, default 0
        How many tokens at the start of each row are left out.

    Returns
    -------
    Array
        The vectors of the rows, [B, H].

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.bert.functional import pool
    >>> x = np.array([[[1, 4], [3, 2], [9, 9]]], np.float32)
    >>> pool(x, np.array([[True, True, False]]), "mean")
    array([[2., 3.]], dtype=float32)
    """
    if not len(x):
        return np.zeros((0, x.shape[2]), np.float32)
    first = mask.argmax(axis=1)[:, None]  # [B, 1] the first visible position
    counted = mask & (np.arange(x.shape[1]) >= first + skip)  # [B, S]
    return POOLINGS[mode].formula(x, counted, mask)
