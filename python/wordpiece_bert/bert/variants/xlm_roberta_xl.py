"""XLM-RoBERTa-XL: XLM-RoBERTa whose norms come before the sub-layers, as in MegatronBERT.

Source: Goyal et al. 2021, "Larger-Scale Transformers for Multilingual Masked Language Modeling". The embeddings have no
norm, each sub-layer normalizes its input, and a last norm follows the last layer (`functional.norm_first_layer`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from wordpiece_bert.bert.plan.building import norm_first_plan
from wordpiece_bert.bert.variants.names import renamed
from wordpiece_bert.bert.variants.roberta import (
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaForQuestionAnswering,
    RobertaForSequenceClassification,
    RobertaForTokenClassification,
    RobertaModel,
)

if TYPE_CHECKING:
    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.plan.parts import Plan

__all__ = [
    "XLMRobertaXLConfig",
    "XLMRobertaXLForMaskedLM",
    "XLMRobertaXLForQuestionAnswering",
    "XLMRobertaXLForSequenceClassification",
    "XLMRobertaXLForTokenClassification",
    "XLMRobertaXLModel",
]

_NAMES = {
    ".attention.ln.": ".attention.self_attn_layer_norm.",
    "encoder.ln.": "encoder.LayerNorm.",
    ".ln.": ".LayerNorm.",
}


@dataclass(frozen=True, kw_only=True)
class XLMRobertaXLConfig(RobertaConfig):
    """Sizes and settings of an XLM-RoBERTa-XL model: the fields of `RobertaConfig`.

    Examples
    --------
    >>> from wordpiece_bert.bert import XLMRobertaConfig, XLMRobertaXLConfig
    >>> XLMRobertaConfig().plan().last, XLMRobertaXLConfig().plan().last.name
    (None, 'encoder.ln')
    >>> XLMRobertaXLConfig().num_hidden_layers
    36
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
        """Return the layers of the model: MegatronBERT's layers, without dropout after the feed-forward networks."""
        return norm_first_plan(self, output_dropout="")


class XLMRobertaXLModel(RobertaModel):
    """The XLM-RoBERTa-XL encoder; the last of the hidden_states is the one after the last norm."""

    config_class: ClassVar[type[BertConfig]] = XLMRobertaXLConfig

    @classmethod
    def _name_in_checkpoint(cls, name: str, config: BertConfig) -> str:
        """Return the name in a checkpoint of XLM-RoBERTa-XL for one of BERT's names."""
        del config
        return renamed(name, _NAMES)


class XLMRobertaXLForMaskedLM(RobertaForMaskedLM):
    """XLM-RoBERTa-XL that predicts masked tokens: logits [B, S, V]."""

    _base_model_class = XLMRobertaXLModel


class XLMRobertaXLForSequenceClassification(RobertaForSequenceClassification):
    """XLM-RoBERTa-XL that classifies texts or pairs: logits [B, labels]."""

    _base_model_class = XLMRobertaXLModel


class XLMRobertaXLForTokenClassification(RobertaForTokenClassification):
    """XLM-RoBERTa-XL that labels tokens: logits [B, S, labels]."""

    _base_model_class = XLMRobertaXLModel


class XLMRobertaXLForQuestionAnswering(RobertaForQuestionAnswering):
    """XLM-RoBERTa-XL that finds the answer to a question in a text: start_logits and end_logits [B, S]."""

    _base_model_class = XLMRobertaXLModel
