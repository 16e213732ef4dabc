"""The layers of an encoder, forward and backward, in NumPy: the two sub-layers, and where their norms are.

Comments denote shapes as in `wordpiece_bert.finetune.encoder`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from wordpiece_bert.bert import functional, gradients
from wordpiece_bert.finetune.network import dropout_rate

if TYPE_CHECKING:
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.bert.gradients import Normalized
    from wordpiece_bert.finetune.dropout import Dropout
    from wordpiece_bert.finetune.network import Gradients, Network
    from wordpiece_bert.finetune.tokens import Tokens
    from wordpiece_bert.finetune.weights import EncoderWeights

__all__ = ["Layers", "NormFirst", "NormLast", "RowAttention", "SubLayers", "TokenDropout"]


class TokenDropout:
    """The dropout of token vectors, with the rates of a model's family.

    Parameters
    ----------
    network
        The model.
    tokens
        The batch.
    dropout
        The masks; None for no dropout.
    """

    def __init__(self, network: Network, tokens: Tokens, dropout: Dropout | None) -> None:
        self._tokens, self._dropout = tokens, dropout
        training, config = network.training, network.config
        self._rates = {
            "embeddings": dropout_rate(config, *training.embedding_rate),
            "attention.output": dropout_rate(config, *training.attention_output_rate),
            "intermediate": dropout_rate(config, *training.intermediate_rate),
            "output": dropout_rate(config, *training.output_rate),
            "convolution": dropout_rate(config, *training.output_rate),
        }

    def __call__(self, site: str, y: Array) -> Array:
        """Apply dropout at a site, or its gradient, which is the same product."""
        rate = self._rates[site.split(".", 2)[2] if site.startswith("layer.") else site]
        if self._dropout is None or not rate:
            return y
        mask = self._dropout.tokens(site, self._tokens, y.shape[1], rate)
        return y if mask is None else y * mask


class Attended(NamedTuple):
    """What self-attention keeps. The attention weights are computed again."""

    q: Array  # [M, H]
    k: Array  # [M, H]
    v: Array  # [M, H]
    c: Array  # [M, H] the context of all heads


#: What a feed-forward network keeps: z = W₁·x + b₁ [M, F]; with a gate, those of W_gate and W_up.
Inner = tuple["Array", ...]


class RowAttention(Protocol):
    """The attention of a batch."""

    def forward(self, index: int, q: Array, k: Array, v: Array) -> Array:
        """Return the context of all heads in layer number `index`; q, k and v [M, H] -> [M, H]."""

    def backward(
        self, index: int, dc: Array, q: Array, k: Array, v: Array, gradient: Gradients
    ) -> tuple[Array, Array, Array]:
        """Return dq, dk and dv [M, H] for dc [M, H]."""

    def finish(self, gradient: Gradients) -> None:
        """Add the gradients of what all layers read, after the lowest one."""


class SubLayers:
    """Self-attention and feed-forward network of each layer, without norms and residuals.

    Parameters
    ----------
    network, weights
        The model.
    attention
        The attention of the batch.
    dropout
        The dropout of its tokens.
    """

    def __init__(
        self, network: Network, weights: EncoderWeights, attention: RowAttention, dropout: TokenDropout
    ) -> None:
        self._weights, self._attention, self._drop = weights, attention, dropout
        self._activation = network.config.hidden_act
        self._inner = ("gate", "up") if network.training.gated else ("dense",)

    def attend(self, index: int, x: Array) -> tuple[Array, Attended]:
        """dropout(W·attention(x) + b), [M, H] -> [M, H]."""
        name = f"encoder.layer.{index}.attention"
        q, k, v = (self._weights.linear(f"{name}.self.{part}", x) for part in ("query", "key", "value"))
        c = self._attention.forward(index, q, k, v)
        y = self._weights.linear(f"{name}.output.dense", c)
        return self._drop(f"layer.{index}.attention.output", y), Attended(q, k, v, c)

    def attend_backward(self, index: int, dy: Array, x: Array, kept: Attended, gradient: Gradients) -> Array:
        """Return dx [M, H] for dy [M, H], the steps of `attend` in reverse."""
        name = f"encoder.layer.{index}.attention"
        dy = self._drop(f"layer.{index}.attention.output", dy)
        dc = self._weights.linear_backward(f"{name}.output.dense", dy, kept.c, gradient)
        dq, dk, dv = self._attention.backward(index, dc, kept.q, kept.k, kept.v, gradient)
        dx = self._weights.linear_backward(f"{name}.self.query", dq, x, gradient)
        for part, d in (("key", dk), ("value", dv)):
            dx += self._weights.linear_backward(f"{name}.self.{part}", d, x, gradient)
        return dx

    def feed_forward(self, index: int, x: Array) -> tuple[Array, Inner]:
        """dropout(W₂·h + b₂) with h = activation(W₁·x + b₁), or a gated h, [M, H] -> [M, H]."""
        name = f"encoder.layer.{index}"
        inner = tuple(self._weights.linear(f"{name}.intermediate.{part}", x) for part in self._inner)  # [M, F] each
        y = self._weights.linear(f"{name}.output.dense", self._hidden(index, inner))
        return self._drop(f"layer.{index}.output", y), inner

    def _hidden(self, index: int, inner: Inner) -> Array:
        """H = activation(z), or activation(z_gate)·z_up, with dropout, [M, F]."""
        h = functional.ACTIVATIONS[self._activation](inner[0])
        if len(inner) == 2:
            h = h * inner[1]
        return self._drop(f"layer.{index}.intermediate", h)

    def feed_forward_backward(self, index: int, dy: Array, x: Array, kept: Inner, gradient: Gradients) -> Array:
        """Return dx [M, H] for dy [M, H], the steps of `feed_forward` in reverse."""
        name = f"encoder.layer.{index}"
        dy = self._drop(f"layer.{index}.output", dy)
        dh = self._weights.linear_backward(f"{name}.output.dense", dy, self._hidden(index, kept), gradient)
        dh = self._drop(f"layer.{index}.intermediate", dh)
        if len(kept) == 1:
            dz = gradients.activation_backward(dh, kept[0], self._activation)
            return self._weights.linear_backward(f"{name}.intermediate.dense", dz, x, gradient)
        gate, up = kept
        dup = dh * functional.ACTIVATIONS[self._activation](gate)
        dgate = gradients.activation_backward(dh * up, gate, self._activation)
        dx = self._weights.linear_backward(f"{name}.intermediate.gate", dgate, x, gradient)
        dx += self._weights.linear_backward(f"{name}.intermediate.up", dup, x, gradient)
        return dx


class Layers(Protocol):
    """The layers of an encoder, one after the other."""

    def forward(self, index: int, x: Array) -> tuple[Array, Any]:
        """Return the output of layer number `index` [M, H] for its input [M, H], and what its backward pass needs."""

    def backward(self, index: int, dx: Array, kept: Any, gradient: Gradients) -> Array:
        """Return the gradient with respect to the input for that with respect to the output, [M, H] each."""


class _LastKept(NamedTuple):
    x: Array  # [M, H] the input
    attended: Attended
    attention: Normalized  # of the norm after the attention
    inner: Inner
    output: Normalized  # of the norm after the feed-forward network


class NormLast:
    """a = LN(x + attention(x)), x' = LN(a + FFN(a)), as in BERT.

    A layer keeps 7H + F numbers a token.
    """

    def __init__(self, weights: EncoderWeights, parts: SubLayers) -> None:
        self._weights, self._parts = weights, parts

    def forward(self, index: int, x: Array) -> tuple[Array, _LastKept]:
        """Return the output of a layer, as `Layers.forward`."""
        name = f"encoder.layer.{index}"
        y, attended = self._parts.attend(index, x)
        a, attention = self._weights.norm(f"{name}.attention.output.LayerNorm", y + x)
        y, inner = self._parts.feed_forward(index, a)
        x_next, output = self._weights.norm(f"{name}.output.LayerNorm", y + a)
        return x_next, _LastKept(x, attended, attention, inner, output)

    def backward(self, index: int, dx: Array, kept: _LastKept, gradient: Gradients) -> Array:
        """Return the gradient of the input, as `Layers.backward`."""
        name = f"encoder.layer.{index}"
        dy = self._weights.norm_backward(f"{name}.output.LayerNorm", dx, kept.output, gradient)
        a = self._weights.scaled(f"{name}.attention.output.LayerNorm", kept.attention)
        da = dy + self._parts.feed_forward_backward(index, dy, a, kept.inner, gradient)
        dy = self._weights.norm_backward(f"{name}.attention.output.LayerNorm", da, kept.attention, gradient)
        return dy + self._parts.attend_backward(index, dy, kept.x, kept.attended, gradient)


class _FirstKept(NamedTuple):
    x: Array | None  # [M, H] the input, where there is no norm before the attention
    before: Normalized | None  # of the norm before the attention
    attended: Attended
    middle: Normalized  # of the norm before the feed-forward network
    inner: Inner


class NormFirst:
    """a = x + attention(LN(x)), x' = a + FFN(LN(a)), as in ModernBERT, whose first layer has no first norm.

    A layer keeps 6H + F numbers a token, or 6H + 2F with a gate.
    """

    def __init__(self, weights: EncoderWeights, parts: SubLayers) -> None:
        self._weights, self._parts = weights, parts

    def forward(self, index: int, x: Array) -> tuple[Array, _FirstKept]:
        """Return the output of a layer, as `Layers.forward`."""
        name, before, normed = f"encoder.layer.{index}", None, x
        if f"{name}.attention.ln" in self._weights:
            normed, before = self._weights.norm(f"{name}.attention.ln", x)
        y, attended = self._parts.attend(index, normed)
        a = x + y
        normed, middle = self._weights.norm(f"{name}.ln", a)
        y, inner = self._parts.feed_forward(index, normed)
        return a + y, _FirstKept(x if before is None else None, before, attended, middle, inner)

    def backward(self, index: int, dx: Array, kept: _FirstKept, gradient: Gradients) -> Array:
        """Return the gradient of the input, as `Layers.backward`."""
        name = f"encoder.layer.{index}"
        normed = self._weights.scaled(f"{name}.ln", kept.middle)
        dy = self._parts.feed_forward_backward(index, dx, normed, kept.inner, gradient)
        da = dx + self._weights.norm_backward(f"{name}.ln", dy, kept.middle, gradient)
        if kept.before is None:
            assert kept.x is not None, "kept where there is no norm"
            return da + self._parts.attend_backward(index, da, kept.x, kept.attended, gradient)
        normed = self._weights.scaled(f"{name}.attention.ln", kept.before)
        dy = self._parts.attend_backward(index, da, normed, kept.attended, gradient)
        return da + self._weights.norm_backward(f"{name}.attention.ln", dy, kept.before, gradient)
