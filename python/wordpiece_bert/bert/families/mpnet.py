"""MPNet: BERT's encoder with a relative position bias in its attention (Song et al. 2020).

Positions count from 2. There are no token types, and the vocabulary begins with ``<s> <pad> </s>``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from wordpiece_bert.bert.config import MUST_BE, SIZES, BertConfig
from wordpiece_bert.bert.heads.kinds import (
    MaskedLM,
    MaskedLMNames,
    MultipleChoice,
    QuestionAnswering,
    SequenceClassification,
    TokenClassification,
)
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.bert.plan.building import bert_plan
from wordpiece_bert.bert.plan.parts import Distances, Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wordpiece_bert.bert.plan.parts import Plan

__all__ = [
    "MPNetConfig",
    "MPNetForMaskedLM",
    "MPNetForMultipleChoice",
    "MPNetForQuestionAnswering",
    "MPNetForSequenceClassification",
    "MPNetForTokenClassification",
    "MPNetModel",
]

# The id of the padding token, and its position, in every MPNet: transformers has it in its code, not in config.json.
_PAD = 1

_NAMES = {
    ".attention.self.query.": ".attention.attn.q.",
    ".attention.self.key.": ".attention.attn.k.",
    ".attention.self.value.": ".attention.attn.v.",
    ".attention.output.dense.": ".attention.attn.o.",
    ".attention.output.LayerNorm.": ".attention.LayerNorm.",
}


@dataclass(frozen=True, kw_only=True)
class MPNetConfig(BertConfig):
    """Sizes and settings of an MPNet model: the fields of `BertConfig`, and one more. There are no token types.

    Attributes
    ----------
    relative_attention_num_buckets : int
        The number of buckets of distances in the attention: 32.

    Examples
    --------
    >>> from wordpiece_bert.bert import MPNetConfig
    >>> config = MPNetConfig(max_position_embeddings=514)
    >>> config.longest_row, config.relative_attention_num_buckets
    (512, 32)
    """

    vocab_size: int = 30_527
    type_vocab_size: int = 0
    pad_token_id: int | None = _PAD
    relative_attention_num_buckets: int = 32
    model_type: str = "mpnet"

    pads_positions: ClassVar[bool] = True
    _fixed: ClassVar[tuple[str, ...]] = ("type_vocab_size",)
    _sizes: ClassVar[tuple[str, ...]] = SIZES[:-1]
    _must_be: ClassVar[Mapping[str, Any]] = {**MUST_BE, "relative_attention_num_buckets": 32}

    @property
    def _counted_from(self) -> int:
        """Return 1, whatever `pad_token_id` is."""
        return _PAD

    def _plan(self) -> Plan:
        """Return the layers of the model: the layers of BERT, with a bias of the scores by distance."""
        buckets, heads = "relative_attention_num_buckets", "num_attention_heads"
        bias = Distances(Table("encoder.relative_attention_bias", buckets, columns=heads))
        return bert_plan(self, bias=bias)


class MPNetModel(BertModel):
    """The MPNet encoder. token_type_ids are accepted and ignored."""

    config_class = MPNetConfig
    _renames = _NAMES
    _prefix = "mpnet."
    _pretraining_heads = ("lm_head.",)


class MPNetForMaskedLM(MaskedLM):
    """MPNet that predicts masked tokens: logits [B, S, V]."""

    _base_model_class = MPNetModel
    _names = MaskedLMNames("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias", "gelu")


class MPNetForSequenceClassification(SequenceClassification):
    """MPNet that classifies texts or pairs: logits [B, labels], over tanh(dense(first token))."""

    _base_model_class = MPNetModel
    _hidden = ("classifier.dense", "tanh")
    _classifier = "classifier.out_proj"


class MPNetForMultipleChoice(MultipleChoice):
    """MPNet that picks one of C choices: logits [B, C] for inputs [B, C, S], over the pooler."""

    _base_model_class = MPNetModel
    _reads_pooler = True


class MPNetForTokenClassification(TokenClassification):
    """MPNet that labels tokens: logits [B, S, labels]."""

    _base_model_class = MPNetModel


class MPNetForQuestionAnswering(QuestionAnswering):
    """MPNet that finds the answer to a question in a text: start_logits and end_logits [B, S]."""

    _base_model_class = MPNetModel
