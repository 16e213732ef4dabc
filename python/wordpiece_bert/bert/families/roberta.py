"""RoBERTa: BERT's encoder with positions that count from the id of the padding on (Liu et al. 2019).

Its tokenizer is not WordPiece: `wordpiece_bert.tokenizer.subword` runs it through the package ``tokenizers``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wordpiece_bert.bert.config import BertConfig
from wordpiece_bert.bert.heads import kinds
from wordpiece_bert.bert.model import BertModel

__all__ = [
    "RobertaConfig",
    "RobertaForMaskedLM",
    "RobertaForQuestionAnswering",
    "RobertaForSequenceClassification",
    "RobertaForTokenClassification",
    "RobertaModel",
]


@dataclass(frozen=True, kw_only=True)
class RobertaConfig(BertConfig):
    """Sizes and settings of a RoBERTa model: the fields of `BertConfig`.

    Here `pad_token_id` changes results: positions count from it on, and so the longest row is
    `max_position_embeddings` − `pad_token_id` − 1.

    Examples
    --------
    The first two rows of the table of positions are never used for a token:

    >>> from wordpiece_bert.bert import RobertaConfig
    >>> RobertaConfig(max_position_embeddings=514).longest_row
    512
    """

    vocab_size: int = 50_265
    pad_token_id: int | None = 1
    model_type: str = "roberta"

    pads_positions: ClassVar[bool] = True


class RobertaModel(BertModel):
    """The RoBERTa encoder."""

    config_class: ClassVar[type[BertConfig]] = RobertaConfig
    _prefix = "roberta."
    _pretraining_heads = ("lm_head.",)


class RobertaForMaskedLM(kinds.MaskedLM):
    """RoBERTa that predicts masked tokens: logits [B, S, V]. The activation of its head is always GELU."""

    _base_model_class = RobertaModel
    _names = kinds.MaskedLMNames("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias", "gelu")


class RobertaForSequenceClassification(kinds.SequenceClassification):
    """RoBERTa that classifies texts or pairs: logits [B, labels], over tanh(dense(first token))."""

    _base_model_class = RobertaModel
    _hidden = ("classifier.dense", "tanh")
    _classifier = "classifier.out_proj"


class RobertaForTokenClassification(kinds.TokenClassification):
    """RoBERTa that labels tokens: logits [B, S, labels]."""

    _base_model_class = RobertaModel


class RobertaForQuestionAnswering(kinds.QuestionAnswering):
    """RoBERTa that finds the answer to a question in a text: start_logits and end_logits [B, S]."""

    _base_model_class = RobertaModel
