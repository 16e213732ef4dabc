"""DistilBERT: half of BERT's layers, without token types and without a pooler (Sanh et al. 2019).

Each layer computes what a layer of BERT computes; only the names differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from wordpiece_bert.bert.config import SIZES, BertConfig
from wordpiece_bert.bert.heads.kinds import (
    MaskedLM,
    MaskedLMNames,
    MultipleChoice,
    QuestionAnswering,
    SequenceClassification,
    TokenClassification,
)
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.bert.plan.building import attention, embeddings, mlp, norm_last
from wordpiece_bert.bert.plan.parts import Plan

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "DistilBertConfig",
    "DistilBertForMaskedLM",
    "DistilBertForMultipleChoice",
    "DistilBertForQuestionAnswering",
    "DistilBertForSequenceClassification",
    "DistilBertForTokenClassification",
    "DistilBertModel",
]

_NAMES = {
    "encoder.layer.": "transformer.layer.",
    ".attention.self.query.": ".attention.q_lin.",
    ".attention.self.key.": ".attention.k_lin.",
    ".attention.self.value.": ".attention.v_lin.",
    ".attention.output.dense.": ".attention.out_lin.",
    ".attention.output.LayerNorm.": ".sa_layer_norm.",
    ".intermediate.dense.": ".ffn.lin1.",
    ".output.dense.": ".ffn.lin2.",
    ".output.LayerNorm.": ".output_layer_norm.",
}


@dataclass(frozen=True, kw_only=True)
class DistilBertConfig(BertConfig):
    """Sizes and settings of a DistilBERT model: the fields of `BertConfig`, read from DistilBERT's names for them.

    There are no token types, and ε of the layer norms is always 1e-12.

    Attributes
    ----------
    seq_classif_dropout, qa_dropout : float
        The dropout rates of training before the classifiers of sequences and of question answering.

    Examples
    --------
    >>> from wordpiece_bert.bert import DistilBertConfig
    >>> config = DistilBertConfig()
    >>> config.num_hidden_layers, config.type_vocab_size, config.has_pooler
    (6, 0, False)
    >>> config.to_dict()["dim"]
    768
    """

    num_hidden_layers: int = 6
    type_vocab_size: int = 0
    seq_classif_dropout: float = 0.2
    qa_dropout: float = 0.1
    model_type: str = "distilbert"

    _names_in_file: ClassVar[Mapping[str, str]] = {
        "hidden_size": "dim",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "intermediate_size": "hidden_dim",
        "hidden_act": "activation",
        "hidden_dropout_prob": "dropout",
        "attention_probs_dropout_prob": "attention_dropout",
    }
    _fixed: ClassVar[tuple[str, ...]] = ("type_vocab_size", "layer_norm_eps")
    _unread: ClassVar[tuple[str, ...]] = ("classifier_dropout",)  # of a training alone
    _sizes: ClassVar[tuple[str, ...]] = SIZES[:-1]
    has_pooler: ClassVar[bool] = False

    def _plan(self) -> Plan:
        """Return the layers of the model: the layers of BERT, without dropout after the attention."""
        layers = [
            norm_last(self, layer, attention(self, layer), mlp(self, layer), dropout="")
            for layer in range(self.encoder_layers)
        ]
        return Plan(embeddings(self), tuple(layers))


class DistilBertModel(BertModel):
    """The DistilBERT encoder. token_type_ids are accepted and ignored, as in transformers."""

    config_class = DistilBertConfig
    _renames = _NAMES
    _prefix = "distilbert."
    _pretraining_heads = ("vocab_transform.", "vocab_layer_norm.", "vocab_projector.")


class DistilBertForMaskedLM(MaskedLM):
    """DistilBERT that predicts masked tokens: logits [B, S, V]."""

    _base_model_class = DistilBertModel
    _names = MaskedLMNames("vocab_transform", "vocab_layer_norm", "vocab_projector", "vocab_projector.bias")


class DistilBertForSequenceClassification(SequenceClassification):
    """DistilBERT that classifies texts or pairs: logits [B, labels], over relu(dense(first token))."""

    _base_model_class = DistilBertModel
    _hidden = ("pre_classifier", "relu")


class DistilBertForMultipleChoice(MultipleChoice):
    """DistilBERT that picks one of C choices: logits [B, C] for inputs [B, C, S], over relu(dense(first token))."""

    _base_model_class = DistilBertModel
    _hidden = ("pre_classifier", "relu")


class DistilBertForTokenClassification(TokenClassification):
    """DistilBERT that labels tokens: logits [B, S, labels]."""

    _base_model_class = DistilBertModel


class DistilBertForQuestionAnswering(QuestionAnswering):
    """DistilBERT that finds the answer to a question in a text: start_logits and end_logits [B, S]."""

    _base_model_class = DistilBertModel
