"""MegatronBERT: BERT whose norms come before the sub-layers (Shoeybi et al. 2019, section 5.3), as GatorTron.

The embeddings have no norm, each sub-layer normalizes its input, and a last norm follows the last layer
(`functional.norm_first_layer`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wordpiece_bert.bert.config import BertConfig
from wordpiece_bert.bert.heads.bert import BertForMaskedLM, BertForSequenceClassification
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.bert.plan.building import norm_first_plan

if TYPE_CHECKING:
    from wordpiece_bert.bert.plan.parts import Plan

__all__ = [
    "MegatronBertConfig",
    "MegatronBertForMaskedLM",
    "MegatronBertForSequenceClassification",
    "MegatronBertModel",
]


@dataclass(frozen=True, kw_only=True)
class MegatronBertConfig(BertConfig):
    """Sizes and settings of a MegatronBERT model: the fields of `BertConfig`.

    Examples
    --------
    >>> from wordpiece_bert.bert import BertConfig, MegatronBertConfig
    >>> BertConfig().plan().last, MegatronBertConfig().plan().last.name
    (None, 'encoder.ln')
    """

    vocab_size: int = 29_056
    hidden_size: int = 1024
    num_hidden_layers: int = 24
    num_attention_heads: int = 16
    intermediate_size: int = 4096
    model_type: str = "megatron-bert"

    def _plan(self) -> Plan:
        """Return the layers of the model: BERT's layers, with norms before the sub-layers and after the last layer."""
        return norm_first_plan(self)


class MegatronBertModel(BertModel):
    """The MegatronBERT encoder; the last of the hidden_states is the one after the last norm."""

    config_class = MegatronBertConfig


class MegatronBertForMaskedLM(BertForMaskedLM):
    """MegatronBERT that predicts masked tokens: logits [B, S, V]."""

    _base_model_class = MegatronBertModel


class MegatronBertForSequenceClassification(BertForSequenceClassification):
    """MegatronBERT that classifies texts or pairs: logits [B, labels], over the pooler."""

    _base_model_class = MegatronBertModel
