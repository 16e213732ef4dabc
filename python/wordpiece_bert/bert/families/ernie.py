"""ERNIE: BERT with a table of tasks among its embeddings.

Source: Sun et al. 2019, "ERNIE 2.0: A Continual Pre-training Framework for Language Understanding". A row of the table
is added to the vector of each token before the norm of the embeddings: the row of task 0, unless a call gives others.
Models without the table (`use_task_id` false) compute what BERT does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from wordpiece_bert._internal.parameters import Parameters, completed_by
from wordpiece_bert.bert.config import SIZES, BertConfig, refuse
from wordpiece_bert.bert.heads.bert import (
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)
from wordpiece_bert.bert.heads.head_model import HeadModel, LabelledModel
from wordpiece_bert.bert.inputs import as_array, check_inputs
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.bert.parameters import INPUTS
from wordpiece_bert.bert.plan.building import bert_plan, embeddings
from wordpiece_bert.bert.plan.parts import Table

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.bert.outputs import BertOutput, HeadOutput, PreTrainingOutput, QuestionAnsweringOutput
    from wordpiece_bert.bert.plan.parts import Plan

__all__ = [
    "ErnieConfig",
    "ErnieForMaskedLM",
    "ErnieForMultipleChoice",
    "ErnieForNextSentencePrediction",
    "ErnieForPreTraining",
    "ErnieForQuestionAnswering",
    "ErnieForSequenceClassification",
    "ErnieForTokenClassification",
    "ErnieModel",
]

AnyHead = TypeVar("AnyHead", bound=HeadModel)

_TASKS = Parameters(
    """
    task_type_ids : array_like, optional
        The task of each token, of the shape of the ids; 0 by default. A model without a table of tasks ignores them.
    """
)


@dataclass(frozen=True, kw_only=True)
class ErnieConfig(BertConfig):
    """Sizes and settings of an ERNIE model: the fields of `BertConfig`, and two more.

    Attributes
    ----------
    task_type_vocab_size : int
        The number of tasks.
    use_task_id : bool
        Whether there is a table of tasks.

    Examples
    --------
    >>> from wordpiece_bert.bert import ErnieConfig, ErnieModel
    >>> config = ErnieConfig(
    ...     vocab_size=100, hidden_size=48, num_hidden_layers=2, use_task_id=True
    ... )
    >>> model = ErnieModel.from_config(config)
    >>> model([[2, 17, 25, 3]], task_type_ids=[[1, 1, 1, 1]]).last_hidden_state.shape
    (1, 4, 48)
    """

    task_type_vocab_size: int = 3
    use_task_id: bool = False
    model_type: str = "ernie"

    _sizes: ClassVar[tuple[str, ...]] = (*SIZES, "task_type_vocab_size")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.use_task_id, bool):
            refuse("use_task_id", self.use_task_id, "it must be true or false")

    def _plan(self) -> Plan:
        """Return the layers of the model: the layers of BERT, with a table of tasks."""
        if not self.use_task_id:
            return super()._plan()
        first = embeddings(self)
        tasks = Table("embeddings.task_type_embeddings", "task_type_vocab_size", "tasks")
        return bert_plan(self, replace(first, tables=(*first.tables, tasks)))


class ErnieModel(BertModel):
    """The ERNIE encoder."""

    config_class = ErnieConfig
    _prefix = "ernie."

    @completed_by(_TASKS, INPUTS)
    def __call__(
        self,
        input_ids: npt.ArrayLike | None = None,
        attention_mask: npt.ArrayLike | None = None,
        token_type_ids: npt.ArrayLike | None = None,
        position_ids: npt.ArrayLike | None = None,
        inputs_embeds: npt.ArrayLike | None = None,
        *,
        task_type_ids: npt.ArrayLike | None = None,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        visible_only: bool = False,
        threads: int | None = None,
    ) -> BertOutput:
        """Run the encoder, as `BertModel`.

        Parameters
        ----------
        visible_only : bool, default False
            Whether masked positions may be skipped and left 0, except the first of each row, which heads read.

        Returns
        -------
        BertOutput
            As from `BertModel`.

        Raises
        ------
        InputError
            As for `BertModel`, or a task is outside the table.
        """
        inputs = check_inputs(
            self.config, input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, task_type_ids
        )
        return self._run(
            inputs,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
            visible_only=visible_only,
            threads=threads,
        )


class _EncoderWithTasks:
    """An encoder that is called with the tasks of the tokens, which the head that calls it does not know."""

    def __init__(self, encoder: ErnieModel, task_type_ids: npt.ArrayLike) -> None:
        self._encoder, self._tasks = encoder, task_type_ids

    def __call__(self, *inputs: Any, **options: Any) -> BertOutput:
        tasks = as_array("task_type_ids", self._tasks)
        if tasks.ndim == 3:  # the tasks of choices, [B, C, S], whose other inputs the head has flattened
            tasks = tasks.reshape(-1, tasks.shape[-1])
        return self._encoder(*inputs, task_type_ids=tasks, **options)


def _with_tasks(model: AnyHead, task_type_ids: npt.ArrayLike | None) -> AnyHead:
    """Return a model whose encoder gets the tasks of a call; threads share the model, so it is left as it is."""
    if task_type_ids is None:
        return model
    called = object.__new__(type(model))
    encoder: Any = _EncoderWithTasks(cast("ErnieModel", model.base_model), task_type_ids)
    called.__dict__.update(model.__dict__, base_model=encoder)
    return called


class _Labelled(LabelledModel):
    """A head of BERT whose call also takes the tasks of the tokens."""

    _base_model_class = ErnieModel

    @completed_by(_TASKS, LabelledModel.__call__, INPUTS)
    def __call__(
        self,
        input_ids: npt.ArrayLike | None = None,
        attention_mask: npt.ArrayLike | None = None,
        token_type_ids: npt.ArrayLike | None = None,
        position_ids: npt.ArrayLike | None = None,
        inputs_embeds: npt.ArrayLike | None = None,
        labels: npt.ArrayLike | None = None,
        *,
        task_type_ids: npt.ArrayLike | None = None,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
    ) -> HeadOutput:
        """Run encoder and head, as BERT's class, with the tasks of the tokens."""
        return super(_Labelled, _with_tasks(self, task_type_ids)).__call__(
            input_ids,
            attention_mask,
            token_type_ids,
            position_ids,
            inputs_embeds,
            labels=labels,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
        )


class ErnieForMaskedLM(_Labelled, BertForMaskedLM):
    """ERNIE that predicts masked tokens: logits [B, S, V]."""


class ErnieForMultipleChoice(_Labelled, BertForMultipleChoice):
    """ERNIE that picks one of C choices: logits [B, C] for inputs [B, C, S]."""


class ErnieForNextSentencePrediction(_Labelled, BertForNextSentencePrediction):
    """ERNIE that predicts whether the second text follows the first: logits [B, 2]."""


class ErnieForPreTraining(BertForPreTraining):
    """ERNIE with the heads of `ErnieForMaskedLM` and `ErnieForNextSentencePrediction`."""

    _base_model_class = ErnieModel

    @completed_by(_TASKS, BertForPreTraining.__call__, INPUTS)
    def __call__(
        self,
        input_ids: npt.ArrayLike | None = None,
        attention_mask: npt.ArrayLike | None = None,
        token_type_ids: npt.ArrayLike | None = None,
        position_ids: npt.ArrayLike | None = None,
        inputs_embeds: npt.ArrayLike | None = None,
        labels: npt.ArrayLike | None = None,
        next_sentence_label: npt.ArrayLike | None = None,
        *,
        task_type_ids: npt.ArrayLike | None = None,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
    ) -> PreTrainingOutput:
        """Run encoder and head, as BERT's class, with the tasks of the tokens.

        Returns
        -------
        PreTrainingOutput
            The logits of both heads, and with labels the loss.
        """
        return super(ErnieForPreTraining, _with_tasks(self, task_type_ids)).__call__(
            input_ids,
            attention_mask,
            token_type_ids,
            position_ids,
            inputs_embeds,
            labels=labels,
            next_sentence_label=next_sentence_label,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
        )


class ErnieForQuestionAnswering(BertForQuestionAnswering):
    """ERNIE that finds the answer to a question in a text: start_logits and end_logits [B, S]."""

    _base_model_class = ErnieModel

    @completed_by(_TASKS, BertForQuestionAnswering.__call__, INPUTS)
    def __call__(
        self,
        input_ids: npt.ArrayLike | None = None,
        attention_mask: npt.ArrayLike | None = None,
        token_type_ids: npt.ArrayLike | None = None,
        position_ids: npt.ArrayLike | None = None,
        inputs_embeds: npt.ArrayLike | None = None,
        start_positions: npt.ArrayLike | None = None,
        end_positions: npt.ArrayLike | None = None,
        *,
        task_type_ids: npt.ArrayLike | None = None,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
    ) -> QuestionAnsweringOutput:
        """Run encoder and head, as BERT's class, with the tasks of the tokens.

        Returns
        -------
        QuestionAnsweringOutput
            The logits of the first and the last token, [B, S] each, and with positions the loss.
        """
        return super(ErnieForQuestionAnswering, _with_tasks(self, task_type_ids)).__call__(
            input_ids,
            attention_mask,
            token_type_ids,
            position_ids,
            inputs_embeds,
            start_positions=start_positions,
            end_positions=end_positions,
            output_hidden_states=output_hidden_states,
            output_attentions=output_attentions,
        )


class ErnieForSequenceClassification(_Labelled, BertForSequenceClassification):
    """ERNIE that classifies texts or pairs: logits [B, labels]."""


class ErnieForTokenClassification(_Labelled, BertForTokenClassification):
    """ERNIE that labels tokens: logits [B, S, labels]."""
