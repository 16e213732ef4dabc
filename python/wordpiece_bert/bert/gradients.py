"""The gradients of BERT's arithmetic: the backward pass, one small function for each formula of `functional`.

Read it beside `functional`, whose order it keeps; each docstring repeats the formula that it differentiates. For a
loss ℓ, ``dy`` denotes ∂ℓ/∂y, of y's shape. A function takes the gradient with respect to a result and what the forward
pass kept, and returns the gradients with respect to the arguments.

Tokens are laid out one row of the batch after the other, without padding. Comments denote shapes by the letters of
`functional` and by M, the tokens of the batch. Weights are [out, in].

Source: Rumelhart, Hinton and Williams, "Learning representations by back-propagating errors" (1986), applied to the
formulas of Vaswani et al. (2017) and Ba, Kiros and Hinton (2016); the attention recomputes its weights from q and k
(Dao et al., "FlashAttention", 2022, section 3.1).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wordpiece_bert.bert.functional import (
    ACTIVATIONS,
    erf,
    gelu,
    gelu_tanh,
    mish,
    quick_gelu,
    relu,
    sigmoid,
    silu,
    softmax,
    tanh,
)

if TYPE_CHECKING:
    from wordpiece_bert.bert.functional import Activation, Array, Ids, Mask

_ONE, _HALF = np.float32(1.0), np.float32(0.5)

# --- dense layers and norms


def linear_backward(dy: Array, x: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Gradients of `functional.linear`, y = x·Wᵀ + b.

    dy [M, out], x [M, in], weight [out, in] -> dx [M, in], dW [out, in], db [out].
    """
    return dy @ weight, dy.T @ x, dy.sum(axis=0)


class Normalized(NamedTuple):
    """What the forward pass of a layer norm keeps."""

    x_hat: Array  # [M, H] the standardized rows x̂
    r: Array  # [M, 1] 1/√(variance + ε)


def standardize(x: Array, eps: float) -> Normalized:
    """First half of a layer norm, x̂ = (x − mean(x))·r with r = 1/√(variance + ε). x [M, H]."""
    x_hat: Array = x - x.mean(axis=-1, keepdims=True)
    r = 1.0 / np.sqrt(np.square(x_hat).mean(axis=-1, keepdims=True) + np.float32(eps))  # [M, 1]
    x_hat *= r
    return Normalized(x_hat, r)


def standardize_backward(g: Array, kept: Normalized) -> Array:
    """Gradient of x̂ = (x − mean(x))·r; with g = ∂ℓ/∂x̂: dx = r·(g − mean(g) − x̂·mean(g·x̂)). g [M, H] -> dx [M, H]."""
    x_hat, r = kept
    dx: Array = g - g.mean(axis=-1, keepdims=True)
    dx -= x_hat * (g * x_hat).mean(axis=-1, keepdims=True)
    dx *= r
    return dx


def standardize_rms(x: Array, eps: float) -> Normalized:
    """First half of a norm by the root mean square, x̂ = x·r with r = 1/√(mean(x²) + ε). x [M, H]."""
    r = 1.0 / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + np.float32(eps))  # [M, 1]
    return Normalized(x * r, r)


def standardize_rms_backward(g: Array, kept: Normalized) -> Array:
    """Gradient of x̂ = x·r; with g = ∂ℓ/∂x̂: dx = r·(g − x̂·mean(g·x̂)). g [M, H] -> dx [M, H]."""
    x_hat, r = kept
    dx: Array = g - x_hat * (g * x_hat).mean(axis=-1, keepdims=True)
    dx *= r
    return dx


#: The first half of each kind of norm, and its gradient.
STANDARDIZE = {"layer": (standardize, standardize_backward), "rms": (standardize_rms, standardize_rms_backward)}


def scale_and_shift(x_hat: Array, weight: Array, bias: Array | None) -> Array:
    """Second half of a layer norm, y = x̂·γ + β. x̂ [M, H], weight (γ) and bias (β, None for none) [H] -> [M, H]."""
    y: Array = x_hat * weight
    if bias is not None:
        y += bias
    return y


def scale_and_shift_backward(dy: Array, x_hat: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Gradients of y = x̂·γ + β. dy and x̂ [M, H], weight (γ) [H] -> dx̂ [M, H], dγ [H], dβ [H]."""
    return dy * weight, (dy * x_hat).sum(axis=0), dy.sum(axis=0)


def normalize_backward(dy: Array, x: Array, least: float = 1e-12) -> Array:
    """Gradient of y = x / max(‖x‖₂, least): dx = (dy − y·(y·dy)) / max(‖x‖₂, least). dy and x [M, H] -> dx [M, H].

    Below `least` the divisor is a constant, and dx = dy / least.
    """
    length = np.sqrt(np.square(x).sum(axis=-1, keepdims=True))  # [M, 1]
    y = x / np.maximum(length, least)
    inside = np.where(length > least, y * (y * dy).sum(axis=-1, keepdims=True), 0)
    dx: Array = (dy - inside) / np.maximum(length, least)
    return dx


# --- activations: f′(x), [...] -> [...]


def _gelu_slope(x: Array) -> Array:
    """(x·Φ(x))′ = Φ(x) + x·φ(x), φ(x) = exp(−x²/2)/√(2π)."""
    y = erf(x * math.sqrt(0.5))
    y += 1.0
    y *= 0.5  # Φ(x)
    y += x * np.exp(-_HALF * x * x) * np.float32(1.0 / math.sqrt(2.0 * math.pi))
    return y


def _gelu_tanh_slope(x: Array) -> Array:
    """½(1 + t) + ½x(1 − t²)·√(2/π)·(1 + 0.134145x²), t = tanh(√(2/π)·(x + 0.044715x³))."""
    c = np.float32(math.sqrt(2.0 / math.pi))
    t: Array = np.tanh(c * (x + np.float32(0.044715) * x * x * x))
    slope: Array = np.add(_HALF * (_ONE + t), _HALF * x * (_ONE - t * t) * c * (_ONE + np.float32(0.134145) * x * x))
    return slope


def _swish_slope(x: Array, factor: float) -> Array:
    """(x·σ(cx))′ = σ·(1 + cx·(1 − σ)), σ = σ(cx)."""
    z = np.float32(factor) * x
    s = sigmoid(z)
    slope: Array = np.multiply(s, _ONE + z * (_ONE - s))
    return slope


def _quick_gelu_slope(x: Array) -> Array:
    """`_swish_slope` with c = 1.702."""
    return _swish_slope(x, 1.702)


def _silu_slope(x: Array) -> Array:
    """`_swish_slope` with c = 1."""
    return _swish_slope(x, 1.0)


def _mish_slope(x: Array) -> Array:
    """(x·t)′ = t + x·σ(x)·(1 − t²), t = tanh(ln(1 + exp(x)))."""
    t = np.tanh(np.logaddexp(np.float32(0.0), x))
    slope: Array = np.add(t, x * sigmoid(x) * (_ONE - t * t))
    return slope


def _tanh_slope(x: Array) -> Array:
    """1 − tanh(x)²."""
    t: Array = np.tanh(x)
    slope: Array = np.subtract(_ONE, t * t)
    return slope


def _sigmoid_slope(x: Array) -> Array:
    """σ(x)·(1 − σ(x))."""
    s = sigmoid(x)
    return s * (_ONE - s)


def _relu_slope(x: Array) -> Array:
    """1 where x > 0, else 0."""
    return (x > 0).astype(x.dtype)


#: The derivative of each function in `ACTIVATIONS`.
_SLOPES: dict[Activation, Activation] = {
    gelu: _gelu_slope,
    gelu_tanh: _gelu_tanh_slope,
    quick_gelu: _quick_gelu_slope,
    relu: _relu_slope,
    silu: _silu_slope,
    tanh: _tanh_slope,
    sigmoid: _sigmoid_slope,
    mish: _mish_slope,
}


def activation_backward(dy: Array, x: Array, name: str) -> Array:
    """Gradient of y = f(x), dx = dy·f′(x), for an activation by its name in `ACTIVATIONS`.

    dy and x [..., F] -> dx [..., F].
    """
    dx = _SLOPES[ACTIVATIONS[name]](x)
    dx *= dy
    return dx


# --- attention, for one row of the batch


def attention(
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None = None,
    dropout: Array | None = None,
    visible: Mask | None = None,
) -> tuple[Array, Array]:
    """Attention, c = (softmax(q·kᵀ/√d + bias)·m)·v for each head (Vaswani et al. 2017, equation 1).

    q [N, S, d], k and v [N, K, d]; bias [N, S, K] and dropout [N, S, K], which is 0 or 1/(1 − P), or None; visible
    [S, K], which keys each query sees, or None for all -> c [N, S, d], p [N, S, K]. Keys that are masked are left out,
    so K may be less than S. A query that sees no key has weights and context 0.
    """
    scores = q @ k.swapaxes(-1, -2)  # [N, S, K]
    scores *= np.float32(1.0 / math.sqrt(q.shape[-1]))
    if bias is not None:
        scores += bias
    if visible is not None:
        scores[:, ~visible] = np.finfo(np.float32).min
    p = softmax(scores)
    if visible is not None:
        p *= visible
    kept: Array = p if dropout is None else p * dropout
    return kept @ v, p


def attention_backward(
    dc: Array, q: Array, k: Array, v: Array, c: Array, p: Array, dropout: Array | None = None
) -> tuple[Array, Array, Array, Array]:
    """Return the gradients of `attention`.

    dv = p̃ᵀ·dc, dp = (dc·vᵀ)·m, ds = p·(dp − Σ p·dp), dq = ds·k/√d, dk = dsᵀ·q/√d, where p̃ = p·m. The sum over keys
    Σ p·dp of a query equals dc·c, with dropout too, because c = Σ p̃·v.

    dc, q and c [N, S, d], k and v [N, K, d], p and dropout [N, S, K] -> dq, dk, dv, and ds [N, S, K], the gradient of
    the bias.
    """
    dv, ds = softmax_backward(dc, v, c, p, dropout)
    scale = np.float32(1.0 / math.sqrt(q.shape[-1]))
    dq: Array = (ds @ k) * scale  # [N, S, d]
    dk: Array = (ds.swapaxes(-1, -2) @ q) * scale  # [N, K, d]
    return dq, dk, dv, ds


def softmax_backward(dc: Array, v: Array, c: Array, p: Array, dropout: Array | None) -> tuple[Array, Array]:
    """Gradients of c = (p·m)·v with p = softmax(s), the part of `attention_backward` that all scores share.

    dc and c [N, S, d], v [N, K, d], p and dropout [N, S, K] -> dv [N, K, d], ds [N, S, K].
    """
    kept: Array = p if dropout is None else p * dropout  # [N, S, K]
    dv: Array = kept.swapaxes(-1, -2) @ dc  # [N, K, d]
    ds: Array = dc @ v.swapaxes(-1, -2)  # [N, S, K]
    if dropout is not None:
        ds *= dropout
    ds -= (dc * c).sum(axis=-1, keepdims=True)
    ds *= p
    return dv, ds


# --- cross entropy


def cross_entropy(logits: Array, labels: Ids) -> tuple[float, Array]:
    """Mean of −ln p[label] over n rows, p = softmax(logits), and its gradient, dlogits = (p − onehot)/n.

    logits [n, C], labels [n] -> the loss, dlogits [n, C].
    """
    from wordpiece_bert.bert.losses import log_softmax  # a forward pass needs the rest of this module, but no losses

    n = len(labels)
    log_p = log_softmax(logits)  # [n, C]
    index = np.arange(n), labels
    loss = float(-log_p[index].mean(dtype=np.float64))
    dlogits = np.exp(log_p)
    dlogits[index] -= 1.0
    dlogits /= n
    return loss, dlogits


# --- tables and the pooler


def lookup_backward(dy: Array, ids: Ids, rows: int, without: int | None = None) -> Array:
    """Gradient of y = table[ids]: row i of the gradient is the sum of dy over the tokens with id i, in their order.

    dy [M, E], ids [M] -> [rows, E]. The row `without` gets no gradient (``padding_idx`` in torch).
    """
    table = np.zeros((rows, dy.shape[1]), dy.dtype)
    if len(ids):
        order = np.argsort(ids, kind="stable")  # [M]
        found, starts = np.unique(ids[order], return_index=True)
        table[found] = np.add.reduceat(dy[order], starts, axis=0)
        if without is not None and 0 <= without < rows:
            table[without] = 0
    return table


def tanh_backward(dy: Array, y: Array) -> Array:
    """Gradient of y = tanh(z), as in `functional.pooler`: dz = dy·(1 − y²). dy and y [B, H] -> [B, H]."""
    dz: Array = dy * (_ONE - y * y)
    return dz
