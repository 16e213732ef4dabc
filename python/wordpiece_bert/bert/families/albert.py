"""ALBERT: BERT whose layers share their weights, with narrow embedding tables (Lan et al. 2020).

A layer is a group of inner layers, and several layers share a group. The arithmetic is BERT's: with g groups of n
inner layers each, it is an encoder of L·n layers with the weights of g·n.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from wordpiece_bert.bert.checkpoint.names import renamed
from wordpiece_bert.bert.config import MOST_LAYERS, SIZES, BertConfig
from wordpiece_bert.bert.heads.kinds import (
    MaskedLM,
    MaskedLMNames,
    MultipleChoice,
    QuestionAnswering,
    SequenceClassification,
    TokenClassification,
)
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.bert.plan.building import bert_plan, embeddings
from wordpiece_bert.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wordpiece_bert.bert.plan.parts import Plan

__all__ = [
    "AlbertConfig",
    "AlbertForMaskedLM",
    "AlbertForMultipleChoice",
    "AlbertForQuestionAnswering",
    "AlbertForSequenceClassification",
    "AlbertForTokenClassification",
    "AlbertModel",
]

_NAMES: Mapping[str, str] = {
    "embeddings.projection.": "encoder.embedding_hidden_mapping_in.",
    ".attention.self.": ".attention.",
    ".attention.output.": ".attention.",
    ".intermediate.dense.": ".ffn.",
    ".output.dense.": ".ffn_output.",
    ".output.LayerNorm.": ".full_layer_layer_norm.",
    "pooler.dense.": "pooler.",
}

_LAYER = re.compile(r"^encoder\.layer\.(\d+)")


@dataclass(frozen=True, kw_only=True)
class AlbertConfig(BertConfig):
    """Sizes and settings of an ALBERT model: the fields of `BertConfig`, and three more.

    Attributes
    ----------
    embedding_size : int
        E, width of the embedding tables; a dense layer maps it to H.
    num_hidden_groups : int
        How many groups of weights the layers share.
    inner_group_num : int
        How many inner layers a group has.

    Examples
    --------
    The layers share the weights of one group:

    >>> from wordpiece_bert.bert import AlbertConfig, AlbertModel
    >>> sizes = {
    ...     "vocab_size": 100,
    ...     "hidden_size": 64,
    ...     "num_attention_heads": 2,
    ...     "intermediate_size": 128,
    ... }
    >>> [
    ...     AlbertModel.from_config(
    ...         AlbertConfig(num_hidden_layers=n, **sizes)
    ...     ).num_parameters()
    ...     for n in (1, 12)
    ... ]
    [124736, 124736]
    """

    vocab_size: int = 30_000
    hidden_size: int = 4096
    num_attention_heads: int = 64
    intermediate_size: int = 16_384
    hidden_act: str = "gelu_new"
    embedding_size: int = 128
    num_hidden_groups: int = 1
    inner_group_num: int = 1
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    classifier_dropout: float | None = 0.1
    model_type: str = "albert"

    _names_in_file: ClassVar[Mapping[str, str]] = {"classifier_dropout": "classifier_dropout_prob"}

    _sizes: ClassVar[tuple[str, ...]] = (*SIZES, "embedding_size", "num_hidden_groups", "inner_group_num")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.encoder_layers > MOST_LAYERS:
            raise ConfigError(
                f"{self.num_hidden_layers} layers of {self.inner_group_num} each are more than {MOST_LAYERS}"
            )

    def _plan(self) -> Plan:
        """Return the layers of the model: the layers of BERT, over embeddings with a dense layer from E to H."""
        columns = "hidden_size" if self.embedding_size == self.hidden_size else "embedding_size"
        return bert_plan(self, embeddings(self, columns, projected=True))

    @property
    def encoder_layers(self) -> int:
        """Return how many layers are run, counting the inner layers of each group."""
        return self.num_hidden_layers * self.inner_group_num


class AlbertModel(BertModel):
    """The ALBERT encoder; hidden_states and attentions have an array for every inner layer."""

    config_class = AlbertConfig
    _prefix = "albert."
    _pretraining_heads = ("predictions.", "sop_classifier.")

    @classmethod
    def _name_in_checkpoint(cls, name: str, config: BertConfig) -> str:
        """Return the name in a checkpoint of ALBERT for one of BERT's names; the layers of a group share a name."""
        name = renamed(name, _NAMES)
        found = _LAYER.match(name)
        if not found:
            return name
        c = cast("AlbertConfig", config)
        layer, inner = divmod(int(found[1]), c.inner_group_num)
        group = int(layer / (c.num_hidden_layers / c.num_hidden_groups))  # in floating point, as in transformers
        return f"encoder.albert_layer_groups.{group}.albert_layers.{inner}{name[found.end() :]}"


class AlbertForMaskedLM(MaskedLM):
    """ALBERT that predicts masked tokens: logits [B, S, V]."""

    _base_model_class = AlbertModel
    _names = MaskedLMNames("predictions.dense", "predictions.LayerNorm", "predictions.decoder", "predictions.bias")


class AlbertForSequenceClassification(SequenceClassification):
    """ALBERT that classifies texts or pairs: logits [B, labels], over the pooler."""

    _base_model_class = AlbertModel
    _reads_pooler = True


class AlbertForMultipleChoice(MultipleChoice):
    """ALBERT that picks one of C choices: logits [B, C] for inputs [B, C, S], over the pooler."""

    _base_model_class = AlbertModel
    _reads_pooler = True


class AlbertForTokenClassification(TokenClassification):
    """ALBERT that labels tokens: logits [B, S, labels]."""

    _base_model_class = AlbertModel


class AlbertForQuestionAnswering(QuestionAnswering):
    """ALBERT that finds the answer to a question in a text: start_logits and end_logits [B, S]."""

    _base_model_class = AlbertModel
