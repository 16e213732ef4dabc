"""What models with a head give to other modules of this package, besides `wordpiece_bert.bert.parts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.bert.heads.bert import BertForPreTraining
    from wordpiece_bert.bert.heads.kinds import (
        MaskedLM,
        MaskedLMNames,
        MultipleChoice,
        QuestionAnswering,
        ScoreLayers,
        SequenceClassification,
        TokenClassification,
    )

__all__ = ["masked_lm_names", "next_sentence_scores", "score_layers"]


def masked_lm_names(kind: type[MaskedLM], config: BertConfig) -> MaskedLMNames:
    """Return the names of the layers of a class's masked-language head."""
    return kind._head_names(config)


def score_layers(
    kind: type[SequenceClassification | MultipleChoice | TokenClassification | QuestionAnswering], config: BertConfig
) -> ScoreLayers:
    """Return the layers of a class's head for labels, choices or answers."""
    return kind._score_layers(config)


def next_sentence_scores(model: BertForPreTraining, pooled: Array) -> Array:
    """Run the head for pairs only, over pooled first tokens: [B, H] -> [B, 2]."""
    return model._next_sentence(pooled)
