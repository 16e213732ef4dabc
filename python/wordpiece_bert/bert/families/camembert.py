"""CamemBERT: RoBERTa of French texts, under a type of its own.

Source: Martin et al. 2020, "CamemBERT: a Tasty French Language Model".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from wordpiece_bert.bert.families.roberta import (
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaForQuestionAnswering,
    RobertaForSequenceClassification,
    RobertaForTokenClassification,
    RobertaModel,
)

if TYPE_CHECKING:
    from wordpiece_bert.bert.config import BertConfig

__all__ = [
    "CamembertConfig",
    "CamembertForMaskedLM",
    "CamembertForQuestionAnswering",
    "CamembertForSequenceClassification",
    "CamembertForTokenClassification",
    "CamembertModel",
]


@dataclass(frozen=True, kw_only=True)
class CamembertConfig(RobertaConfig):
    """Sizes and settings of a CamemBERT model: the fields of `RobertaConfig`.

    Examples
    --------
    >>> from wordpiece_bert.bert import CamembertConfig
    >>> config = CamembertConfig()
    >>> config.model_type, config.vocab_size, config.longest_row
    ('camembert', 30522, 510)
    """

    vocab_size: int = 30_522
    model_type: str = "camembert"


class CamembertModel(RobertaModel):
    """The CamemBERT encoder."""

    config_class: ClassVar[type[BertConfig]] = CamembertConfig


class CamembertForMaskedLM(RobertaForMaskedLM):
    """CamemBERT that predicts masked tokens: logits [B, S, V]."""

    _base_model_class = CamembertModel


class CamembertForSequenceClassification(RobertaForSequenceClassification):
    """CamemBERT that classifies texts or pairs: logits [B, labels]."""

    _base_model_class = CamembertModel


class CamembertForTokenClassification(RobertaForTokenClassification):
    """CamemBERT that labels tokens: logits [B, S, labels]."""

    _base_model_class = CamembertModel


class CamembertForQuestionAnswering(RobertaForQuestionAnswering):
    """CamemBERT that finds the answer to a question in a text: start_logits and end_logits [B, S]."""

    _base_model_class = CamembertModel
