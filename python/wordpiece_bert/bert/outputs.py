"""The results of models; the names of the fields are those of transformers.

All arrays are float32: B sequences, S positions, H hidden size, N heads, L layers. At masked positions (where the mask
is 0) token vectors and logits are those of a query that attends to the visible tokens: finite and meaningless.
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
    """The output of a model without a head."""

    #: x_L, the output of the last layer, [B, S, H].
    last_hidden_state: Array
    #: tanh of a dense layer over the first token, [B, H]; None if the checkpoint has no pooler.
    pooler_output: Array | None = None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class HeadOutput(_Layers):
    """The output of a model with one head."""

    #: Scores before any softmax; each class documents their shape.
    logits: Array
    #: The mean loss, if labels were passed; NaN if every label is ignored.
    loss: np.float32 | None = None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PreTrainingOutput(_Layers):
    """The output of `BertForPreTraining`."""

    #: Scores of the vocabulary at each token, [B, S, V].
    prediction_logits: Array
    #: Scores of "B follows A" and "B is random", [B, 2].
    seq_relationship_logits: Array
    #: The sum of both losses, if both kinds of labels were passed.
    loss: np.float32 | None = None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class QuestionAnsweringOutput(_Layers):
    """The output of a model for question answering."""

    #: Scores of each token as the first of the answer, [B, S].
    start_logits: Array
    #: Scores of each token as the last of the answer, [B, S].
    end_logits: Array
    #: The mean of the losses of start and end, if both positions were passed.
    loss: np.float32 | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class DPREncoderOutput(_Layers):
    """The output of `DPRQuestionEncoder` and `DPRContextEncoder`."""

    #: The vector of each text, [B, projection_dim or H].
    pooler_output: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class DPRReaderOutput(_Layers):
    """The output of `DPRReader`."""

    #: Scores of each token as the first of the answer, [B, S].
    start_logits: Array
    #: Scores of each token as the last of the answer, [B, S].
    end_logits: Array
    #: The score of each passage, [B].
    relevance_logits: Array
