"""data2vec for texts: RoBERTa that was trained to predict its own hidden states.

Source: Baevski et al. 2022, "data2vec: A General Framework for Self-supervised Learning in Speech, Vision and
Language".
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
    "Data2VecTextConfig",
    "Data2VecTextForMaskedLM",
    "Data2VecTextForQuestionAnswering",
    "Data2VecTextForSequenceClassification",
    "Data2VecTextForTokenClassification",
    "Data2VecTextModel",
]


@dataclass(frozen=True, kw_only=True)
class Data2VecTextConfig(RobertaConfig):
    """Sizes and settings of a data2vec model of texts: the fields of `RobertaConfig`.

    Examples
    --------
    >>> from wordpiece_bert.bert import Data2VecTextConfig
    >>> config = Data2VecTextConfig()
    >>> config.model_type, config.vocab_size, config.longest_row
    ('data2vec-text', 30522, 510)
    """

    vocab_size: int = 30_522
    model_type: str = "data2vec-text"


class Data2VecTextModel(RobertaModel):
    """The data2vec encoder of texts."""

    config_class: ClassVar[type[BertConfig]] = Data2VecTextConfig
    _prefix = "data2vec_text."


class Data2VecTextForMaskedLM(RobertaForMaskedLM):
    """data2vec that predicts masked tokens: logits [B, S, V]."""

    _base_model_class = Data2VecTextModel


class Data2VecTextForSequenceClassification(RobertaForSequenceClassification):
    """data2vec that classifies texts or pairs: logits [B, labels]."""

    _base_model_class = Data2VecTextModel


class Data2VecTextForTokenClassification(RobertaForTokenClassification):
    """data2vec that labels tokens: logits [B, S, labels]."""

    _base_model_class = Data2VecTextModel


class Data2VecTextForQuestionAnswering(RobertaForQuestionAnswering):
    """data2vec that finds the answer to a question in a text: start_logits and end_logits [B, S]."""

    _base_model_class = Data2VecTextModel
