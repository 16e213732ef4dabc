"""RoBERTa and XLM-RoBERTa: BERT's encoder with positions that count from the id of the padding on.

Source: Liu et al. 2019, "RoBERTa"; Conneau et al. 2020, "Unsupervised Cross-lingual Representation Learning at Scale".
Their tokenizers are not WordPiece: `wordpiece_bert.tokenizer.subword` runs them through the package ``tokenizers``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from wordpiece_bert.bert.config import BertConfig, refuse
from wordpiece_bert.bert.families.counted_positions import counted_positions, packed_positions
from wordpiece_bert.bert.heads.kinds import (
    MaskedLM,
    MaskedLMNames,
    QuestionAnswering,
    SequenceClassification,
    TokenClassification,
)
from wordpiece_bert.bert.model import BertModel

if TYPE_CHECKING:
    from wordpiece_bert.bert.functional import Ids

__all__ = [
    "RobertaConfig",
    "RobertaForMaskedLM",
    "RobertaForQuestionAnswering",
    "RobertaForSequenceClassification",
    "RobertaForTokenClassification",
    "RobertaModel",
    "XLMRobertaConfig",
    "XLMRobertaForMaskedLM",
    "XLMRobertaForQuestionAnswering",
    "XLMRobertaForSequenceClassification",
    "XLMRobertaForTokenClassification",
    "XLMRobertaModel",
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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pad_token_id is None or not 0 <= self.pad_token_id < self.max_position_embeddings - 1:
            why = f"positions count from it on: it must be from 0 to {self.max_position_embeddings - 2}"
            refuse("pad_token_id", self.pad_token_id, why)

    @property
    def _pad(self) -> int:
        assert self.pad_token_id is not None, "checked by __post_init__"
        return self.pad_token_id

    @property
    def longest_row(self) -> int:
        """Return the longest row in tokens: P less the positions up to the padding's position."""
        return self.max_position_embeddings - self._pad - 1

    def default_positions(self, input_ids: Ids | None, length: int) -> Ids:
        """Return the positions of tokens: pad for padding, else counting from pad + 1, as do word vectors.

        Parameters
        ----------
        input_ids : ndarray of int, or None
            The ids [B, S]; None if the call has word vectors.
        length : int
            S, the number of positions.

        Returns
        -------
        ndarray of int
            The positions, [B, S] or [1, S].

        Examples
        --------
        Padding, here the id 1, has the position of its own id; tokens count on from there:

        >>> import numpy as np
        >>> from wordpiece_bert.bert import RobertaConfig
        >>> RobertaConfig().default_positions(np.array([[0, 8, 9, 2, 1, 1]]), 6)
        array([[2, 3, 4, 5, 1, 1]])
        """
        return counted_positions(input_ids, length, self._pad)

    def packed_positions(self, ids: Ids, ends: Ids) -> Ids:
        """Return the positions of rows of ids one after the other, [tokens].

        Parameters
        ----------
        ids : ndarray of int
            The ids of all rows, [tokens].
        ends : ndarray of int
            Row i is ``ids[ends[i]:ends[i + 1]]``, [B + 1].

        Returns
        -------
        ndarray of int
            The positions, [tokens].

        Examples
        --------
        >>> import numpy as np
        >>> from wordpiece_bert.bert import RobertaConfig
        >>> ids, ends = np.array([0, 9, 2, 0, 8, 9, 2]), np.array([0, 3, 7])  # rows of 3 and of 4 tokens
        >>> RobertaConfig().packed_positions(ids, ends)
        array([2, 3, 4, 2, 3, 4, 5])
        """
        return packed_positions(ids, ends, self._pad)


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


class RobertaModel(BertModel):
    """The RoBERTa encoder."""

    config_class: ClassVar[type[BertConfig]] = RobertaConfig
    _prefix = "roberta."
    _pretraining_heads = ("lm_head.",)


class RobertaForMaskedLM(MaskedLM):
    """RoBERTa that predicts masked tokens: logits [B, S, V]. The activation of its head is always GELU."""

    _base_model_class = RobertaModel
    _names = MaskedLMNames("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias", "gelu")


class RobertaForSequenceClassification(SequenceClassification):
    """RoBERTa that classifies texts or pairs: logits [B, labels], over tanh(dense(first token))."""

    _base_model_class = RobertaModel
    _hidden = ("classifier.dense", "tanh")
    _classifier = "classifier.out_proj"


class RobertaForTokenClassification(TokenClassification):
    """RoBERTa that labels tokens: logits [B, S, labels]."""

    _base_model_class = RobertaModel


class RobertaForQuestionAnswering(QuestionAnswering):
    """RoBERTa that finds the answer to a question in a text: start_logits and end_logits [B, S]."""

    _base_model_class = RobertaModel


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
