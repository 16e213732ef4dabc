"""The results of models; the names of the fields are the same as in transformers.

All arrays are float32: B sequences, S positions, H hidden size, N heads, L layers. At masked positions (where the mask
is 0) token vectors and logits come from a query that attends to the visible tokens: finite and meaningless.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.notebook import arrays_html, arrays_text

if TYPE_CHECKING:
    import numpy as np

    from wordpiece_bert.bert.functional import Array

__all__ = [
    "BertOutput",
    "DPREncoderOutput",
    "DPRReaderOutput",
    "HeadOutput",
    "PreTrainingOutput",
    "QuestionAnsweringOutput",
]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class _Layers:
    """Fields of every output that are filled on request."""

    #: x_0 (the embeddings) to x_L, L + 1 arrays [B, S, H]; None unless requested.
    hidden_states: tuple[Array, ...] | None = None
    #: The weights after the softmax, L arrays [B, N, S, S], query by key; None unless requested.
    attentions: tuple[Array, ...] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({arrays_text(self._arrays())})"

    def _repr_html_(self) -> str:
        return arrays_html(type(self).__name__, self._arrays())

    def _arrays(self) -> dict[str, Any]:
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class BertOutput(_Layers):
    """The output of a model without a head.

    Examples
    --------
    >>> from wordpiece_bert import BertModel
    >>> output = BertModel.from_pretrained("models/sentences")(
    ...     [[2, 7, 3]], output_hidden_states=True
    ... )
    >>> output.last_hidden_state.shape, len(output.hidden_states), output.attentions is None
    ((1, 3, 67), 2, True)
    """

    #: x_L, the output of the last layer, [B, S, H].
    last_hidden_state: Array
    #: tanh of a dense layer over the first token, [B, H]; None if the checkpoint has no pooler.
    pooler_output: Array | None = None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class HeadOutput(_Layers):
    """The output of a model with one head.

    Examples
    --------
    >>> from wordpiece_bert.bert import BertForSequenceClassification
    >>> model = BertForSequenceClassification.from_pretrained("models/reviews")
    >>> output = model([[2, 7, 3]], labels=[1])
    >>> output.logits.shape, output.loss.dtype
    ((1, 2), dtype('float32'))
    """

    #: Scores before any softmax; each class documents their shape.
    logits: Array
    #: The mean loss, if labels were passed; NaN if every label is ignored.
    loss: np.float32 | None = None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PreTrainingOutput(_Layers):
    """The output of `BertForPreTraining`.

    Examples
    --------
    >>> from wordpiece_bert.bert import BertConfig
    >>> from wordpiece_bert.finetune import new_model
    >>> config = BertConfig(
    ...     vocab_size=100, hidden_size=48, num_hidden_layers=2, intermediate_size=96
    ... )
    >>> output = new_model(config, pairs=True)([[2, 17, 3, 4, 3]])
    >>> (
    ...     output.prediction_logits.shape,
    ...     output.seq_relationship_logits.shape,
    ...     output.loss is None,
    ... )
    ((1, 5, 100), (1, 2), True)
    """

    #: Scores of the vocabulary at each token, [B, S, V].
    prediction_logits: Array
    #: Scores of "B follows A" and "B is random", [B, 2].
    seq_relationship_logits: Array
    #: The sum of both losses, if both kinds of labels were passed.
    loss: np.float32 | None = None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class QuestionAnsweringOutput(_Layers):
    """The output of a model for question answering.

    Examples
    --------
    >>> from wordpiece_bert.bert import BertForQuestionAnswering
    >>> output = BertForQuestionAnswering.from_pretrained("models/answers")(
    ...     [[2, 7, 3, 9, 8, 3]]
    ... )
    >>> output.start_logits.shape, output.end_logits.shape
    ((1, 6), (1, 6))
    """

    #: Scores of each token as the first of the answer, [B, S].
    start_logits: Array
    #: Scores of each token as the last of the answer, [B, S].
    end_logits: Array
    #: The mean of the losses of start and end, if both positions were passed.
    loss: np.float32 | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class DPREncoderOutput(_Layers):
    """The output of `DPRQuestionEncoder` and `DPRContextEncoder`.

    Examples
    --------
    >>> from wordpiece_bert.bert import DPRConfig, DPRQuestionEncoder
    >>> config = DPRConfig(
    ...     vocab_size=100, hidden_size=48, num_hidden_layers=2, intermediate_size=96
    ... )
    >>> DPRQuestionEncoder.from_config(config)([[2, 17, 25, 3]]).pooler_output.shape
    (1, 48)
    """

    #: The vector of each text, [B, projection_dim or H].
    pooler_output: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class DPRReaderOutput(_Layers):
    """The output of `DPRReader`.

    Examples
    --------
    >>> from wordpiece_bert.bert import DPRConfig, DPRReader
    >>> config = DPRConfig(
    ...     vocab_size=100, hidden_size=48, num_hidden_layers=2, intermediate_size=96
    ... )
    >>> output = DPRReader.from_config(config)(
    ...     [[2, 17, 3, 25, 26, 3], [2, 17, 3, 30, 31, 3]]
    ... )
    >>> output.start_logits.shape, output.relevance_logits.shape
    ((2, 6), (2,))
    """

    #: Scores of each token as the first of the answer, [B, S].
    start_logits: Array
    #: Scores of each token as the last of the answer, [B, S].
    end_logits: Array
    #: The score of each passage, [B].
    relevance_logits: Array
