"""ELECTRA: BERT's encoder, trained to detect replaced tokens (Clark et al. 2020).

Its embedding tables may be narrower than the encoder, and it has no pooler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from wordpiece_bert.bert.config import SIZES, BertConfig
from wordpiece_bert.bert.heads.head_model import LabelledModel
from wordpiece_bert.bert.heads.kinds import (
    MaskedLM,
    MaskedLMNames,
    QuestionAnswering,
    ScoreModel,
    SequenceClassification,
    TokenClassification,
)
from wordpiece_bert.bert.inputs import check_targets
from wordpiece_bert.bert.losses import binary_cross_entropy
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.bert.plan.building import bert_plan, embeddings

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.bert.outputs import BertOutput
    from wordpiece_bert.bert.plan.parts import Plan

__all__ = [
    "ElectraConfig",
    "ElectraForMaskedLM",
    "ElectraForPreTraining",
    "ElectraForQuestionAnswering",
    "ElectraForSequenceClassification",
    "ElectraForTokenClassification",
    "ElectraModel",
]


@dataclass(frozen=True, kw_only=True)
class ElectraConfig(BertConfig):
    """Sizes and settings of an ELECTRA model: the fields of `BertConfig`, and one more.

    Attributes
    ----------
    embedding_size : int
        E, width of the embedding tables; if it is not H, a dense layer maps it to H.

    Examples
    --------
    >>> from wordpiece_bert.bert import ElectraConfig
    >>> dense = ElectraConfig().plan().embeddings.then[1]
    >>> dense.name, dense.inputs, dense.outputs
    ('embeddings.projection', 'embedding_size', 'hidden_size')
    """

    hidden_size: int = 256
    num_attention_heads: int = 4
    intermediate_size: int = 1024
    embedding_size: int = 128
    model_type: str = "electra"

    _sizes: ClassVar[tuple[str, ...]] = (*SIZES, "embedding_size")
    has_pooler: ClassVar[bool] = False

    def _plan(self) -> Plan:
        """Return the layers of the model: BERT's layers, with a dense layer after embeddings whose width is not H."""
        if self.embedding_size == self.hidden_size:
            return super()._plan()
        return bert_plan(self, embeddings(self, "embedding_size", projected=True))


class ElectraModel(BertModel):
    """The ELECTRA encoder; hidden_states[0] is the input of the first layer, after the projection, [B, S, H]."""

    config_class = ElectraConfig
    _renames: ClassVar = {"embeddings.projection.": "embeddings_project."}
    _prefix = "electra."
    _pretraining_heads = ("discriminator_predictions.", "generator_predictions.", "generator_lm_head.")


class ElectraForPreTraining(ScoreModel, LabelledModel):
    """ELECTRA's discriminator: logits [B, S], above 0 where a token was replaced.

    labels: 1 for a replaced token, else 0, [B, S]; binary cross entropy over the visible tokens.

    Examples
    --------
    The discriminator scores each token; weights are drawn here.

    >>> from wordpiece_bert.bert import ElectraConfig, ElectraForPreTraining
    >>> config = ElectraConfig(
    ...     vocab_size=100, hidden_size=64, num_hidden_layers=2, intermediate_size=128
    ... )
    >>> model = ElectraForPreTraining.from_config(config)
    >>> output = model([[2, 17, 25, 3]], labels=[[0, 1, 0, 0]])
    >>> output.logits.shape, round(float(output.loss), 1)
    ((1, 4), 0.7)
    """

    _base_model_class = ElectraModel

    _classifier = "discriminator_predictions.dense_prediction"
    _hidden = ("discriminator_predictions.dense", "hidden_act")
    _score_count = 1

    def logits(self, output: BertOutput, attention_mask: npt.ArrayLike | None = None) -> Array:
        """Run the head only, over an output of the encoder -> [B, S].

        Parameters
        ----------
        output : BertOutput
            The output of the encoder.
        attention_mask : array_like, optional
            Which positions are tokens, [B, S]; all by default.

        Returns
        -------
        ndarray of float32
            The logits, [B, S]; above 0 for a token that was replaced.

        Examples
        --------
        >>> from wordpiece_bert.bert import ElectraConfig, ElectraForPreTraining
        >>> config = ElectraConfig(
        ...     vocab_size=100, hidden_size=64, num_hidden_layers=2, intermediate_size=128
        ... )
        >>> model = ElectraForPreTraining.from_config(config)
        >>> output = model.base_model([[2, 17, 25, 3]])
        >>> model.logits(output).shape
        (1, 4)
        """
        return super().logits(output, attention_mask)[..., 0]

    def _loss(self, logits: Array, labels: npt.ArrayLike, attention_mask: npt.ArrayLike | None) -> np.float32:
        targets = check_targets("labels", labels, logits.shape)
        if attention_mask is None:
            return binary_cross_entropy(logits, targets)
        visible = np.asarray(attention_mask) != 0  # [B, S]
        return binary_cross_entropy(logits[visible], targets[visible])


class ElectraForMaskedLM(MaskedLM):
    """ELECTRA's generator: logits [B, S, V]. The activation of its head is always GELU."""

    _base_model_class = ElectraModel
    _names = MaskedLMNames(
        "generator_predictions.dense",
        "generator_predictions.LayerNorm",
        "generator_lm_head",
        "generator_lm_head.bias",
        "gelu",
    )


class ElectraForSequenceClassification(SequenceClassification):
    """ELECTRA that classifies texts or pairs: logits [B, labels], over gelu(dense(first token))."""

    _base_model_class = ElectraModel
    _hidden = ("classifier.dense", "gelu")
    _classifier = "classifier.out_proj"


class ElectraForTokenClassification(TokenClassification):
    """ELECTRA that labels tokens: logits [B, S, labels]."""

    _base_model_class = ElectraModel


class ElectraForQuestionAnswering(QuestionAnswering):
    """ELECTRA that finds the answer to a question in a text: start_logits and end_logits [B, S]."""

    _base_model_class = ElectraModel
