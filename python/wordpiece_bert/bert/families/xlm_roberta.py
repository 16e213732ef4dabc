"""XLM-RoBERTa: RoBERTa of a hundred languages, under a type of its own.

Source: Conneau et al. 2020, "Unsupervised Cross-lingual Representation Learning at Scale".
"""

from __future__ import annotations

from dataclasses import dataclass

from wordpiece_bert.bert.families.roberta import (
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaForQuestionAnswering,
    RobertaForSequenceClassification,
    RobertaForTokenClassification,
    RobertaModel,
)

__all__ = [
    "XLMRobertaConfig",
    "XLMRobertaForMaskedLM",
    "XLMRobertaForQuestionAnswering",
    "XLMRobertaForSequenceClassification",
    "XLMRobertaForTokenClassification",
    "XLMRobertaModel",
]


@dataclass(frozen=True, kw_only=True)
class XLMRobertaConfig(RobertaConfig):
    """Sizes and settings of an XLM-RoBERTa model: the fields of `RobertaConfig`.

    Examples
    --------
    >>> from wordpiece_bert.bert import XLMRobertaConfig
    >>> config = XLMRobertaConfig()
    >>> config.model_type, config.vocab_size, config.longest_row
    ('xlm-roberta', 250002, 510)
    """

    vocab_size: int = 250_002
    model_type: str = "xlm-roberta"


class XLMRobertaModel(RobertaModel):
    """The XLM-RoBERTa encoder."""

    config_class = XLMRobertaConfig


class XLMRobertaForMaskedLM(RobertaForMaskedLM):
    """XLM-RoBERTa that predicts masked tokens: logits [B, S, V]."""

    _base_model_class = XLMRobertaModel


class XLMRobertaForSequenceClassification(RobertaForSequenceClassification):
    """XLM-RoBERTa that classifies texts or pairs: logits [B, labels]."""

    _base_model_class = XLMRobertaModel


class XLMRobertaForTokenClassification(RobertaForTokenClassification):
    """XLM-RoBERTa that labels tokens: logits [B, S, labels]."""

    _base_model_class = XLMRobertaModel


class XLMRobertaForQuestionAnswering(RobertaForQuestionAnswering):
    """XLM-RoBERTa that finds the answer to a question in a text: start_logits and end_logits [B, S]."""

    _base_model_class = XLMRobertaModel
