"""The weights of an encoder in training, by BERT's names, and what receives their gradients.

All families have their weights under BERT's names here, whatever their checkpoints call them, and whichever of them a
checkpoint keeps in one tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wordpiece_bert.finetune.network import Gradients

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wordpiece_bert.bert.functional import Array, Ids
    from wordpiece_bert.finetune.network import Network


class EncoderWeights:
    """The weights of an encoder in one pass, as a plan's interpreter reads them.

    Parameters
    ----------
    network
        The model.
    parameters
        Its parameters, by the names of its checkpoint.
    trained_from
        The lowest layer whose gradients are computed; None for the embeddings. What layers below it read too, such as a
        table of relative positions, gets no gradient: it would be that of some of its uses.

    Attributes
    ----------
    gradient : Gradients
        What receives the gradients, by the names of the checkpoint.
    """

    def __init__(self, network: Network, parameters: Mapping[str, Array], trained_from: int | None = None) -> None:
        self._network, self._parameters = network, parameters
        self._trained = None if trained_from is None else network.plan.trained(trained_from)
        self.gradient = Gradients()

    def get(self, name: str) -> Array | None:
        """Return a weight, in the type of the parameters; None if the model has none of this name."""
        if name not in self._network:
            return None
        place = self._network.place(name)
        whole = self._parameters[place.tensor]
        return whole[place.rows(len(whole))]

    def table(self, name: str) -> Array:
        """Return the weight of a layer that the model has."""
        found = self.get(f"{name}.weight")
        assert found is not None, "named by the model's plan"
        return found

    def rows(self, name: str, ids: Ids) -> Array:
        """Return rows of a table, [M] -> [M, E]."""
        found: Array = self.table(name)[ids]
        return found

    def add(self, name: str, weight: Array, bias: Array | None = None) -> None:
        """Add the gradients of a layer; the bias's only if the layer has one."""
        self.add_one(f"{name}.weight", weight)
        if bias is not None and f"{name}.bias" in self._network:
            self.add_one(f"{name}.bias", bias)

    def add_one(self, name: str, gradient: Array) -> None:
        """Add the gradient of one weight, if it is trained."""
        if self._trained is None or name in self._trained:
            self.gradient.add_part(self._network.place(name), gradient)
