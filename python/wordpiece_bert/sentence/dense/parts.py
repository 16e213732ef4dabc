"""What encoders give to other modules of this package, besides `wordpiece_bert.sentence.parts`."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.sentence.dense.body import Body
    from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
    from wordpiece_bert.sentence.dense.static_classifier import StaticClassifier
    from wordpiece_bert.sentence.dense.transformer import TransformerBody
    from wordpiece_bert.sentence.source import Source

AnyEncoder = TypeVar("AnyEncoder", bound="SentenceEncoder")


def with_threads(encoder: SentenceEncoder, source: Source, threads: int) -> SentenceEncoder:
    """Return an encoder, given where it was loaded from, of which the pickle computes on a number of threads."""
    again = copy(encoder)
    again._source = replace(source, options=tuple({**dict(source.options), "threads": threads}.items()))
    return again


def body_of(encoder: SentenceEncoder) -> Body:
    """Return what makes the vectors of an encoder."""
    return encoder._body


def width_of(encoder: SentenceEncoder, truncate_dim: int | None) -> int:
    """Return how many numbers a vector of a call with this option has; an `InputError` if there are fewer."""
    return encoder._width(truncate_dim)


def transformer_of(encoder: SentenceEncoder) -> TransformerBody:
    """Return the model of an encoder with what belongs to it.

    Raises
    ------
    InputError
        It is a static model, which has none.
    """
    return encoder._transformer()


def encoder_of(kind: type[AnyEncoder], body: Body) -> AnyEncoder:
    """Make an encoder of what makes its vectors."""
    encoder = object.__new__(kind)
    encoder._set_up(body, None)
    return encoder


def outputs_of(classifier: StaticClassifier, vectors: Array) -> Array:
    """Return what the layers of a classifier make of the vectors of texts, [n, d] -> [n, outputs]."""
    return classifier._outputs_of(vectors)


def labels_of(classifier: StaticClassifier) -> list[str]:
    """Return the names of the outputs of a classifier: its labels, or ``LABEL_0`` and so on for numbers."""
    if classifier.classes_ is None:
        return [f"LABEL_{index}" for index in range(len(classifier._layers[-1][1]))]
    return list(map(str, classifier.classes_.tolist()))
