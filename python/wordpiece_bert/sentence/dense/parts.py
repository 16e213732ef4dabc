"""What encoders give to other modules of this package, besides `wordpiece_bert.sentence.parts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.sentence.dense.static_classifier import StaticClassifier

__all__ = ["labels_of", "outputs_of"]


def outputs_of(classifier: StaticClassifier, vectors: Array) -> Array:
    """Return what the layers of a classifier make of the vectors of texts, [n, d] -> [n, outputs]."""
    return classifier._outputs_of(vectors)


def labels_of(classifier: StaticClassifier) -> list[str]:
    """Return the names of the outputs of a classifier: its labels, or ``LABEL_0`` and so on for numbers."""
    if classifier.classes_ is None:
        return [f"LABEL_{index}" for index in range(len(classifier._layers[-1][1]))]
    return list(map(str, classifier.classes_.tolist()))
