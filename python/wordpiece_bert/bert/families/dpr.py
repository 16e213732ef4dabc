"""DPR: two BERTs, for questions and for passages, whose vectors are compared, and a reader (Karpukhin et al. 2020).

Source: "Dense Passage Retrieval for Open-Domain Question Answering". The vector of a text is its first token's in
the last layer, without a pooler, through a dense layer where the configuration has one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.bert.checkpoint.names import Shape, dense_shapes
from wordpiece_bert.bert.config import SIZES, BertConfig
from wordpiece_bert.bert.heads.head_model import HeadModel, HeadWeights
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.bert.outputs import DPREncoderOutput, DPRReaderOutput
from wordpiece_bert.bert.parameters import INPUTS
from wordpiece_bert.bert.parts import prefix_of
from wordpiece_bert.bert.poolings import first_token

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from wordpiece_bert.bert.checkpoint import Layout

__all__ = ["DPRConfig", "DPRContextEncoder", "DPRQuestionEncoder", "DPRReader"]


@dataclass(frozen=True, kw_only=True)
class DPRConfig(BertConfig):
    """Sizes and settings of a DPR model: the fields of `BertConfig`, and one more.

    Attributes
    ----------
    projection_dim : int
        Width of the vectors of texts, to which a dense layer maps them; 0 for none, and the width H.

    Examples
    --------
    >>> from wordpiece_bert.bert import DPRConfig, DPRQuestionEncoder
    >>> config = DPRConfig(
    ...     vocab_size=100, hidden_size=48, num_hidden_layers=2, projection_dim=16
    ... )
    >>> DPRQuestionEncoder.from_config(config)([[2, 17, 25, 3]]).pooler_output.shape
    (1, 16)
    """

    projection_dim: int = 0
    model_type: str = "dpr"

    _sizes: ClassVar[tuple[str, ...]] = (*SIZES, "projection_dim")
    _may_be_0: ClassVar[tuple[str, ...]] = ("projection_dim",)
    has_pooler: ClassVar[bool] = False


class _QuestionBert(BertModel):
    """The BERT of a question encoder."""

    config_class = DPRConfig
    _prefix = "question_encoder.bert_model."


class _ContextBert(BertModel):
    """The BERT of a passage encoder."""

    config_class = DPRConfig
    _prefix = "ctx_encoder.bert_model."


class _ReaderBert(BertModel):
    """The BERT of a reader."""

    config_class = DPRConfig
    _prefix = "span_predictor.encoder.bert_model."


class _DPRModel(HeadModel):
    """What all DPR models have in common."""

    @classmethod
    def _renamed(
        cls, weights: Mapping[str, npt.NDArray[np.generic]], config: BertConfig, source: str
    ) -> Mapping[str, npt.NDArray[np.generic]]:
        """Leave out the pooler that old files have, and that is never used."""
        del config, source
        return {name: tensor for name, tensor in weights.items() if ".bert_model.pooler." not in name}

    @classmethod
    def _layout(cls, config: BertConfig) -> Layout:
        return super()._layout(config)._replace(prefixed=True)


class _DPREncoder(_DPRModel):
    """A text to a vector."""

    @classmethod
    def _projection(cls) -> str:
        return prefix_of(cls._base_model_class).replace(".bert_model.", ".encode_proj")

    @classmethod
    def _head_shapes(cls, config: BertConfig) -> dict[str, Shape]:
        assert isinstance(config, DPRConfig)
        return dense_shapes(cls._projection(), "hidden_size", "projection_dim") if config.projection_dim else {}

    def _set_up_head(self, head: HeadWeights) -> None:
        assert isinstance(self.config, DPRConfig)
        self._project = head.dense(self._projection()) if self.config.projection_dim else None

    @completed_by(INPUTS)
    def __call__(
        self,
        input_ids: npt.ArrayLike | None = None,
        attention_mask: npt.ArrayLike | None = None,
        token_type_ids: npt.ArrayLike | None = None,
        inputs_embeds: npt.ArrayLike | None = None,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        threads: int | None = None,
    ) -> DPREncoderOutput:
        """Run the encoder.

        Returns
        -------
        DPREncoderOutput
            The vectors of the texts.
        """
        out = self.base_model(
            input_ids,
            attention_mask,
            token_type_ids,
            None,
            inputs_embeds,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
            visible_only=not (output_hidden_states or output_attentions),
            threads=threads,
        )
        vectors = np.ascontiguousarray(first_token(out.last_hidden_state))  # [B, H]
        with np.errstate(under="ignore"):
            return DPREncoderOutput(
                pooler_output=vectors if self._project is None else self._project(vectors),
                hidden_states=out.hidden_states,
                attentions=out.attentions,
            )


class DPRQuestionEncoder(_DPREncoder):
    """The encoder of questions: pooler_output [B, projection_dim or H].

    Examples
    --------
    A question and passages become vectors, whose products rank the passages; weights are drawn here:

    >>> from wordpiece_bert.bert import DPRConfig, DPRContextEncoder, DPRQuestionEncoder
    >>> config = DPRConfig(
    ...     vocab_size=100, hidden_size=48, num_hidden_layers=2, intermediate_size=96
    ... )
    >>> question = DPRQuestionEncoder.from_config(config)([[2, 17, 25, 3]]).pooler_output
    >>> passages = DPRContextEncoder.from_config(config)(
    ...     [[2, 30, 31, 3], [2, 40, 41, 3]]
    ... ).pooler_output
    >>> (question @ passages.T).shape
    (1, 2)
    """

    _base_model_class = _QuestionBert


class DPRContextEncoder(_DPREncoder):
    """The encoder of passages: pooler_output [B, projection_dim or H].

    Examples
    --------
    Vectors of passages, as wide as the vectors of `DPRQuestionEncoder`; weights are drawn here:

    >>> from wordpiece_bert.bert import DPRConfig, DPRContextEncoder
    >>> config = DPRConfig(
    ...     vocab_size=100, hidden_size=48, num_hidden_layers=2, intermediate_size=96
    ... )
    >>> model = DPRContextEncoder.from_config(config)
    >>> model([[2, 30, 31, 3], [2, 40, 41, 3]]).pooler_output.shape
    (2, 48)
    """

    _base_model_class = _ContextBert


class DPRReader(_DPRModel):
    """Finds answers in passages, each in a row with the question, and scores the passages.

    start_logits and end_logits [B, S] over x_L, relevance_logits [B] over its first token.

    Examples
    --------
    One question with two passages, a row each; weights are drawn here:

    >>> from wordpiece_bert.bert import DPRConfig, DPRReader
    >>> config = DPRConfig(
    ...     vocab_size=100, hidden_size=48, num_hidden_layers=2, intermediate_size=96
    ... )
    >>> model = DPRReader.from_config(config)
    >>> output = model([[2, 17, 3, 25, 26, 3], [2, 17, 3, 30, 31, 3]])
    >>> output.relevance_logits.shape, output.start_logits.shape, output.end_logits.shape
    ((2,), (2, 6), (2, 6))
    """

    _base_model_class = _ReaderBert

    @classmethod
    def _head_shapes(cls, config: BertConfig) -> dict[str, Shape]:
        del config
        outputs = dense_shapes("span_predictor.qa_outputs", "hidden_size", 2)
        return outputs | dense_shapes("span_predictor.qa_classifier", "hidden_size", 1)

    def _set_up_head(self, head: HeadWeights) -> None:
        self._spans = head.dense("span_predictor.qa_outputs")
        self._relevance = head.dense("span_predictor.qa_classifier")

    @completed_by(INPUTS)
    def __call__(
        self,
        input_ids: npt.ArrayLike | None = None,
        attention_mask: npt.ArrayLike | None = None,
        inputs_embeds: npt.ArrayLike | None = None,
        *,
        token_type_ids: npt.ArrayLike | None = None,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        threads: int | None = None,
    ) -> DPRReaderOutput:
        """Run the reader.

        Parameters
        ----------
        token_type_ids : array_like, optional
            Ignored, as in transformers: all token types are 0.

        Returns
        -------
        DPRReaderOutput
            The scores of tokens and passages.
        """
        del token_type_ids
        out = self.base_model(
            input_ids,
            attention_mask,
            None,
            None,
            inputs_embeds,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
            threads=threads,
        )
        x = out.last_hidden_state  # [B, S, H]
        with np.errstate(under="ignore"):
            spans = self._spans(x)  # [B, S, 2]
            return DPRReaderOutput(
                start_logits=np.ascontiguousarray(spans[..., 0]),
                end_logits=np.ascontiguousarray(spans[..., 1]),
                relevance_logits=self._relevance(np.ascontiguousarray(first_token(x)))[:, 0],
                hidden_states=out.hidden_states,
                attentions=out.attentions,
            )
