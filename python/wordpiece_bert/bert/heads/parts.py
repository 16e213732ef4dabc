"""What models with a head give to other modules of this package, besides `wordpiece_bert.bert.parts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.bert.heads.bert import BertForPreTraining
    from wordpiece_bert.bert.heads.kinds import MaskedLM, MaskedLMNames, MultipleChoice, SequenceClassification

__all__ = ["first_token_layers", "masked_lm_names", "next_sentence_scores"]


def masked_lm_names(kind: type[MaskedLM]) -> MaskedLMNames:
    """Return the names of the layers of a class's masked-language head."""
    return kind._names


def first_token_layers(kind: type[SequenceClassification | MultipleChoice]) -> tuple[str, tuple[str, str] | None]:
    """Return the classifier of a class that scores first tokens, and the layer and activation before it, if any."""
    return kind._classifier, kind._hidden


def next_sentence_scores(model: BertForPreTraining, pooled: Array) -> Array:
    """Run the head for pairs only, over pooled first tokens: [B, H] -> [B, 2]."""
    return model._next_sentence(pooled)
