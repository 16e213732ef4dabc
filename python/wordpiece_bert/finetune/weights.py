"""The layers of an encoder by BERT's names: dense layers, norms and tables, forward and backward.

All families have their weights under BERT's names here, whatever their checkpoints call them, and whichever of them a
checkpoint keeps in one tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordpiece_bert.bert import functional, gradients

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wordpiece_bert.bert.functional import Array, Ids
    from wordpiece_bert.bert.gradients import Normalized
    from wordpiece_bert.finetune.network import Gradients, Network

__all__ = ["EncoderWeights"]


class EncoderWeights:
    """The weights of an encoder in one pass.

    Parameters
    ----------
    network
        The model.
    parameters
        Its parameters, by the names of its checkpoint.
    trained
        Whether backward passes compute the gradients of dense layers.
    """

    def __init__(self, network: Network, parameters: Mapping[str, Array], *, trained: bool = True) -> None:
        self._network, self._parameters, self._trained = network, parameters, trained
        self._eps = network.config.layer_norm_eps

    def __contains__(self, layer: str) -> bool:
        """Return whether there is a layer of this name."""
        return f"{layer}.weight" in self._network

    def table(self, name: str) -> Array:
        """Return the weight of a layer."""
        return self._weight(f"{name}.weight")

    def affine(self, name: str) -> tuple[Array, Array | None]:
        """Return weight and bias of a dense layer or a norm; None for a bias that it does not have."""
        bias = f"{name}.bias"
        return self.table(name), self._weight(bias) if bias in self._network else None

    def _weight(self, name: str) -> Array:
        place = self._network.place(name)
        whole = self._parameters[place.tensor]
        rows = len(whole) // place.parts
        return whole[place.part * rows : (place.part + 1) * rows]

    def add(self, gradient: Gradients, name: str, weight: Array, bias: Array | None = None) -> None:
        """Add the gradients of a layer; that of a bias only if the layer has one."""
        gradient.add_part(self._network.place(f"{name}.weight"), weight)
        if bias is not None and f"{name}.bias" in self._network:
            gradient.add_part(self._network.place(f"{name}.bias"), bias)

    def linear(self, name: str, x: Array) -> Array:
        """Y = x·Wᵀ + b, x [M, in] -> [M, out]."""
        return functional.linear(x, *self.affine(name))

    def linear_backward(self, name: str, dy: Array, x: Array, gradient: Gradients) -> Array:
        """Return dx [M, in] for dy [M, out], and add the gradients of the layer."""
        if not self._trained:
            dx_alone: Array = dy @ self.table(name)
            return dx_alone
        dx, dw, db = gradients.linear_backward(dy, x, self.table(name))
        self.add(gradient, name, dw, db)
        return dx

    def norm(self, name: str, x: Array) -> tuple[Array, Normalized]:
        """Y = LN(x), and what its backward pass needs; x [M, H]."""
        kept = gradients.standardize(x, self._eps)
        return self.scaled(name, kept), kept

    def scaled(self, name: str, kept: Normalized) -> Array:
        """Return y = LN(x) again, for what `norm` kept."""
        return gradients.scale_and_shift(kept.x_hat, *self.affine(name))

    def norm_backward(self, name: str, dy: Array, kept: Normalized, gradient: Gradients) -> Array:
        """Return dx [M, H] for dy [M, H], and add the gradients of the norm."""
        g, dweight, dbias = gradients.scale_and_shift_backward(dy, kept.x_hat, self.table(name))
        self.add(gradient, name, dweight, dbias)
        return gradients.standardize_backward(g, kept)

    def lookup_backward(self, name: str, dy: Array, ids: Ids, gradient: Gradients, without: int | None = None) -> None:
        """Add the gradient of y = table[ids], without that of one row; dy [M, E], ids [M]."""
        self.add(gradient, name, gradients.lookup_backward(dy, ids, len(self.table(name)), without))
