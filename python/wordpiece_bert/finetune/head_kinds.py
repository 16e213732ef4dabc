"""The training side of each kind of head, and which one a model's class has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.ignored_label import IGNORED
from wordpiece_bert.bert.families.electra import ElectraForPreTraining
from wordpiece_bert.bert.heads.bert import MASKED_LM, BertForNextSentencePrediction, BertForPreTraining
from wordpiece_bert.bert.heads.kinds import (
    MaskedLM,
    MultipleChoice,
    QuestionAnswering,
    SequenceClassification,
    TokenClassification,
)
from wordpiece_bert.bert.heads.parts import masked_lm_names, score_layers
from wordpiece_bert.bert.inputs import as_array
from wordpiece_bert.bert.losses import cross_entropy
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.heads import HeadLoss, HeadTraining, first_column
from wordpiece_bert.finetune.sequence_heads import choice_head, next_sentence_head, sequence_head
from wordpiece_bert.finetune.token_heads import (
    DiscriminatorTraining,
    MaskedLMTraining,
    QuestionAnsweringHead,
    TokenHead,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from wordpiece_bert.bert.base_model import Model
    from wordpiece_bert.bert.functional import Array, Mask
    from wordpiece_bert.finetune.heads import Back, Head, HeadInputs
    from wordpiece_bert.finetune.network import Network


def head_of(model_class: type[Model], network: Network) -> Head:
    """Return the training side of a class's head.

    Raises
    ------
    InputError
        The class has no head.
    """
    for kind, make in _HEADS.items():
        if issubclass(model_class, kind):
            return make(model_class, network)
    raise InputError(
        f"{model_class.__name__} has no head with a loss; train a model with a head, such as BertForMaskedLM"
    )


class _PreTrainingHead(HeadTraining):
    """Masked-language and next-sentence head together; the loss is the sum."""

    label_names = ("labels", "next_sentence_label")
    scores_vocabulary = True

    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self._words = MaskedLMTraining(network, MASKED_LM)
        self._next = next_sentence_head(network)

    def read(self, mask: Mask, labels: Mapping[str, npt.ArrayLike]) -> Mask:
        return self._words.read(mask, labels) | first_column(mask)

    def scores(self, given: HeadInputs, chosen: npt.NDArray[np.intp]) -> tuple[Array, Back]:
        """Compute the scores of words, [n, V], as `Scoring.scores`."""
        return self._words.scores(given, chosen)

    def counts(self, mask: Mask, labels: Mapping[str, npt.ArrayLike]) -> tuple[int, ...]:
        pairs = int((as_array("next_sentence_label", labels["next_sentence_label"]) != IGNORED).sum())
        return (*self._words.counts(mask, labels), pairs)

    def losses(self, output: Any, labels: Mapping[str, npt.ArrayLike]) -> tuple[float, ...]:
        words, pairs = (np.asarray(labels[name]) for name in self.label_names)
        return (
            float(cross_entropy(output.prediction_logits, words)),
            float(cross_entropy(output.seq_relationship_logits, pairs)),
        )

    def run(self, given: HeadInputs) -> HeadLoss:
        words = self._words.run(given)
        weights = None if given.weights is None else given.weights[1:]
        labels = {"labels": given.labels["next_sentence_label"]}
        second = self._next.run(given._replace(labels=labels, weights=weights))
        return HeadLoss(words.loss + second.loss, words.dx + second.dx)


#: The training side of each kind of head, a kind before those that it derives from.
_HEADS: dict[type[Model], Callable[[Any, Network], Head]] = {
    MaskedLM: lambda kind, network: MaskedLMTraining(network, masked_lm_names(kind, network.config)),
    BertForPreTraining: lambda _, network: _PreTrainingHead(network),
    BertForNextSentencePrediction: lambda _, network: next_sentence_head(network),
    SequenceClassification: sequence_head,
    MultipleChoice: choice_head,
    TokenClassification: lambda kind, network: TokenHead(network, score_layers(kind, network.config)),
    QuestionAnswering: lambda kind, network: QuestionAnsweringHead(network, score_layers(kind, network.config)),
    ElectraForPreTraining: lambda _, network: DiscriminatorTraining(network),
}
