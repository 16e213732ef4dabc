"""What a DeBERTa has besides the layers of BERT, for the kernels: relative positions and the convolution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert.bert import functional
from wordpiece_bert.bert.disentangled import convolution_as_dense
from wordpiece_bert.bert.disentangled_gradients import convolution_of_dense
from wordpiece_bert.finetune.rust_pairs import gradient_of, pair

if TYPE_CHECKING:
    from wordpiece_bert.bert.disentangled import Disentangled
    from wordpiece_bert.finetune.network import Gradients
    from wordpiece_bert.finetune.weights import EncoderWeights

__all__ = ["DisentangledArrays"]

_TABLE, _TABLE_NORM = "encoder.rel_embeddings", "encoder.LayerNorm"
_CONVOLUTION, _CONVOLUTION_NORM = "encoder.conv.conv", "encoder.conv.LayerNorm"


class DisentangledArrays:
    """The parameters of a DeBERTa that are of no layer, and their gradients.

    Parameters
    ----------
    kind
        How the model differs from BERT.
    weights
        The weights of the encoder.

    Attributes
    ----------
    parameters : tuple
        What `EncoderTraining` takes: by how much scores are scaled down besides d, the relative positions, and the
        convolution as a dense layer.
    """

    def __init__(self, kind: Disentangled, weights: EncoderWeights) -> None:
        self._kind, self._weights = kind, weights
        relative = convolved = None
        if kind.has_terms:
            terms = [kind.content_to_position, kind.position_to_content]
            norm = pair(weights, _TABLE_NORM) if kind.normed else None
            relative = kind.span, kind.longest, terms, weights.table(_TABLE), norm
        if kind.convolution is not None:
            weight, bias = pair(weights, _CONVOLUTION)
            activation = functional.ACTIVATIONS[kind.convolution.activation].__name__
            convolved = (convolution_as_dense(weight), bias), activation, pair(weights, _CONVOLUTION_NORM)
        self.parameters: Any = kind.terms, relative, convolved

    def gradients(self) -> Any:
        """Return arrays for the gradients, in the order of the kernels."""
        _, relative, convolved = self.parameters
        return (
            None if relative is None else (np.empty(relative[3].shape, np.float32), gradient_of(relative[4])),
            None if convolved is None else [gradient_of(convolved[0]), gradient_of(convolved[2])],
        )

    def add(self, found: Any, gradient: Gradients) -> None:
        """Add the gradients that the kernels wrote to the arrays of `gradients`."""
        relative, convolved = found
        if relative is not None:
            self._weights.add(gradient, _TABLE, relative[0])
            if relative[1] is not None:
                self._weights.add(gradient, _TABLE_NORM, *relative[1])
        if convolved is not None:
            (dweight, dbias), dnorm = convolved
            assert self._kind.convolution is not None, "there are gradients of it"
            self._weights.add(
                gradient, _CONVOLUTION, convolution_of_dense(dweight, self._kind.convolution.groups), dbias
            )
            self._weights.add(gradient, _CONVOLUTION_NORM, *dnorm)
