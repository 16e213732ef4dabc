"""What a model says of a text, as logits and as probabilities: what attribution explains and interventions move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from wordpiece_bert.bert.functional import sigmoid, softmax
from wordpiece_bert.bert.heads.bert import BertForPreTraining
from wordpiece_bert.bert.heads.kinds import MaskedLM, QuestionAnswering, SequenceClassification, TokenClassification
from wordpiece_bert.bert.outputs import BertOutput
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordpiece_bert.bert.base_model import Model
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.inspect.stack import Stack
    from wordpiece_bert.tokenizer.subword import AnyTokenizer

#: Logits by their places: (token, column) pairs. A head for sequences has the token 0 alone.
Places = list[tuple[int, int]]


class Outputs(Protocol):
    """The outputs of a head: logits and probabilities for each token, or for token 0 if it scores sequences."""

    #: Whether the head scores each token.
    of_tokens: bool
    #: Whether its numbers are probabilities; the scores of a regression are not.
    probable: bool

    def logits(self, x: Array, tokens: Sequence[int]) -> Array:
        """Return the logits at tokens for the encoder's output x_L [n, S, H]: [n, tokens, C]."""

    def probabilities(self, logits: Array) -> Array:
        """Return the probabilities for logits of all the tokens that compete, [n, tokens, C]."""

    def column(self, index: int) -> str:
        """Return the name of a column."""


class _Labels:
    """What heads for labels share."""

    of_tokens = False
    probable = True

    def __init__(self, model: Any, stack: Stack) -> None:
        self._model, self._stack = model, stack

    def column(self, index: int) -> str:
        name: str = self._model.config.label(index)
        return name

    def probabilities(self, logits: Array) -> Array:
        return softmax(logits)


class _SequenceLabels(_Labels):
    def __init__(self, model: SequenceClassification, stack: Stack) -> None:
        super().__init__(model, stack)
        self.probable = model.config.problem_type != "regression"

    def logits(self, x: Array, tokens: Sequence[int]) -> Array:
        del tokens
        found: Array = self._model.logits(self._stack.bert_output(x))
        return found[:, None]

    def probabilities(self, logits: Array) -> Array:
        problem = self._model.config.problem_type
        if problem == "regression":
            return logits
        one = problem == "multi_label_classification" or logits.shape[-1] == 1
        return sigmoid(logits) if one else softmax(logits)


class _TokenLabels(_Labels):
    of_tokens = True

    def logits(self, x: Array, tokens: Sequence[int]) -> Array:
        return _at(self._model.logits(BertOutput(last_hidden_state=x)), tokens)


class _Answers(_Labels):
    """The first and the last token of an answer: tokens compete."""

    of_tokens = True

    def logits(self, x: Array, tokens: Sequence[int]) -> Array:
        return _at(self._model.logits(BertOutput(last_hidden_state=x)), tokens)

    def probabilities(self, logits: Array) -> Array:
        return softmax(logits.swapaxes(1, 2)).swapaxes(1, 2)

    def column(self, index: int) -> str:
        return ("start", "end")[index]


class _Words(_Labels):
    of_tokens = True

    def __init__(self, model: MaskedLM | BertForPreTraining, stack: Stack, tokenizer: AnyTokenizer) -> None:
        super().__init__(model, stack)
        self._tokenizer = tokenizer

    def logits(self, x: Array, tokens: Sequence[int]) -> Array:
        found: Array = self._model.predict(np.ascontiguousarray(_at(x, tokens)))
        return found

    def probabilities(self, logits: Array) -> Array:
        with np.errstate(under="ignore"):
            return softmax(logits)

    def column(self, index: int) -> str:
        return self._tokenizer.id_to_token(index) or f"#{index}"


def outputs_of(model: Model, stack: Stack, tokenizer: AnyTokenizer, task: str) -> Outputs:
    """Return the outputs of a model's head.

    Raises
    ------
    InputError
        The model has no head that is known here; the message has what does.
    """
    if isinstance(model, SequenceClassification):
        return _SequenceLabels(model, stack)
    if isinstance(model, TokenClassification):
        return _TokenLabels(model, stack)
    if isinstance(model, QuestionAnswering):
        return _Answers(model, stack)
    if isinstance(model, MaskedLM | BertForPreTraining):
        return _Words(model, stack, tokenizer)
    raise InputError(
        f"{task} needs a SentenceEncoder, or a model for labels of texts or tokens, for answers or for masked words, "
        f"not {type(model).__name__}"
    )


def _at(values: Array, tokens: Sequence[int]) -> Array:
    """[n, S, ...] -> [n, tokens, ...]."""
    chosen: Array = values[:, list(tokens)]
    return chosen
