"""Classifiers on the vectors of a sentence encoder behind a queue: labels of texts, or of pairs of texts."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from wordpiece_bert.finetune.parts import frozen_logits
from wordpiece_bert.sentence.dense.parts import labels_of, outputs_of
from wordpiece_bert.sentence.dense.sentence_encoder import sentence_encoder
from wordpiece_bert.sentence.dense.static_classifier import StaticClassifier
from wordpiece_bert.serve.errors import RequestError
from wordpiece_bert.serve.kinds.dense import dense_model
from wordpiece_bert.serve.kinds.outputs import Classifies
from wordpiece_bert.serve.kinds.served_model import Answer, Options, check_tokens
from wordpiece_bert.tasks.text_classification import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from wordpiece_bert.bert.engines import EngineInfo
    from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
    from wordpiece_bert.serve.fields import TokenRows
    from wordpiece_bert.serve.metrics import Metrics
    from wordpiece_bert.serve.settings import ServerSettings


class Head(NamedTuple):
    """A head, and the encoder whose vectors it takes."""

    encoder: SentenceEncoder
    #: The names of the labels.
    labels: list[str]
    #: The name of the function from logits to scores.
    function: str
    #: Whether it takes pairs of texts, instead of texts.
    takes_pairs: bool
    #: Takes the vectors of texts [n, d], and of the second texts of pairs, and returns logits [n, labels].
    logits: Callable[[npt.NDArray[Any], npt.NDArray[Any] | None], npt.NDArray[Any]]


def head_of(model: object) -> Head | None:
    """Return the head of a `FrozenClassifier` or a `StaticClassifier`; None for another model."""
    from wordpiece_bert.finetune.frozen_classifier import FrozenClassifier  # most servers have none

    if isinstance(model, FrozenClassifier):
        frozen, function = model, "none" if model.is_regression else "softmax"
        return Head(
            frozen.encoder, frozen.labels, function, frozen.takes_pairs, lambda u, v: frozen_logits(frozen, u, v)
        )
    if isinstance(model, StaticClassifier):
        static, function = model, "none" if model.activation == "identity" else model.activation
        encoder, labels = sentence_encoder(static.encoder), labels_of(static)
        return Head(encoder, labels, function, False, lambda u, _: outputs_of(static, u))
    return None


class HeadModel(Classifies):
    """A classifier on vectors; its texts go through the encoder as a sentence encoder's do."""

    kind: ClassVar[str] = "classifier"

    def __init__(self, name: str, head: Head, settings: ServerSettings, metrics: Metrics) -> None:
        # The head was fitted to vectors of texts with the model's own prompt, if it has one.
        self._dense = dense_model(name, head.encoder, replace(settings, prompt=None, prompt_name=None), metrics)
        super().__init__(name, head.encoder.tokenizer, settings, metrics, self._dense)
        self._head = head
        self.labels = head.labels

    @property
    def longest_row(self) -> int:
        """The longest row in tokens."""
        return self._dense.longest_row

    @property
    def engine(self) -> EngineInfo:
        """How the encoder computes on this machine."""
        return self._dense.engine

    async def classify(
        self, texts: list[str | tuple[str, str]] | TokenRows, options: Options, function: str | None = None
    ) -> Answer:
        """Return the scores of the labels for each text or pair, [n, labels], as `tasks.classify`."""
        plain = self.texts_of(texts, "send the texts")
        self.check_numbers(2 * len(plain) * len(self.labels))  # scores, and the names of labels
        kinds = ("texts", "pairs of texts")
        for index, text in enumerate(plain):
            if isinstance(text, str) == self._head.takes_pairs:
                message = f"the model {self.name!r} takes {kinds[self._head.takes_pairs]}, which item {index} is not"
                raise RequestError(400, message)
        pairs = [(text, "") if isinstance(text, str) else text for text in plain]
        one = await self._dense.embed([first for first, _ in pairs], options)
        second, truncated, tokens = None, one.truncated, one.tokens
        if self._head.takes_pairs:
            other = await self._dense.embed([text for _, text in pairs], options)
            second, truncated, tokens = other.values, truncated | other.truncated, tokens + other.tokens
            check_tokens(tokens, self.settings.max_tokens)
        logits = await asyncio.to_thread(self._head.logits, one.values, second)
        return Answer(FUNCTIONS[function or self._head.function](logits.astype(np.float32)), truncated, tokens)
