"""XLM-RoBERTa-XL: XLM-RoBERTa with MegatronBERT's layers, whose norms come before the sub-layers.

Source: Goyal et al. 2021, "Larger-Scale Transformers for Multilingual Masked Language Modeling".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from wordpiece_bert.bert.families import roberta
from wordpiece_bert.bert.plan.building import norm_first_plan

if TYPE_CHECKING:
    from wordpiece_bert.bert.plan.parts import Plan

__all__ = [
    "XLMRobertaXLConfig",
    "XLMRobertaXLForMaskedLM",
    "XLMRobertaXLForQuestionAnswering",
    "XLMRobertaXLForSequenceClassification",
    "XLMRobertaXLForTokenClassification",
    "XLMRobertaXLModel",
]


@dataclass(frozen=True, kw_only=True)
class XLMRobertaXLConfig(roberta.RobertaConfig):
    """Sizes and settings of an XLM-RoBERTa-XL model: the fields of `RobertaConfig`.

    Examples
    --------
    >>> from wordpiece_bert.bert import XLMRobertaConfig, XLMRobertaXLConfig
    >>> XLMRobertaConfig().plan().last, XLMRobertaXLConfig().plan().last.name
    (None, 'encoder.ln')
    """

    vocab_size: int = 250_880
    hidden_size: int = 2560
    num_hidden_layers: int = 36
    num_attention_heads: int = 32
    intermediate_size: int = 10_240
    max_position_embeddings: int = 514
    type_vocab_size: int = 1
    layer_norm_eps: float = 1e-5
    model_type: str = "xlm-roberta-xl"

    def _plan(self) -> Plan:
        return norm_first_plan(self, output_dropout="")


class XLMRobertaXLModel(roberta.RobertaModel):
    """The XLM-RoBERTa-XL encoder; the last of the hidden_states is the one after the last norm."""

    config_class = XLMRobertaXLConfig
    _renames: ClassVar = {".attention.ln.": ".attention.self_attn_layer_norm.", ".ln.": ".LayerNorm."}


class XLMRobertaXLForMaskedLM(roberta.RobertaForMaskedLM):
    """XLM-RoBERTa-XL that predicts masked tokens: logits [B, S, V]."""

    _base_model_class = XLMRobertaXLModel


class XLMRobertaXLForSequenceClassification(roberta.RobertaForSequenceClassification):
    """XLM-RoBERTa-XL that classifies texts or pairs: logits [B, labels]."""

    _base_model_class = XLMRobertaXLModel


class XLMRobertaXLForTokenClassification(roberta.RobertaForTokenClassification):
    """XLM-RoBERTa-XL that labels tokens: logits [B, S, labels]."""

    _base_model_class = XLMRobertaXLModel


class XLMRobertaXLForQuestionAnswering(roberta.RobertaForQuestionAnswering):
    """XLM-RoBERTa-XL that finds the answer to a question in a text: start_logits and end_logits [B, S]."""

    _base_model_class = XLMRobertaXLModel
