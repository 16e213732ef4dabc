"""ERNIE: BERT with a table of tasks among its embeddings.

Source: Sun et al. 2019, "ERNIE 2.0: A Continual Pre-training Framework for Language Understanding". A row of the table
is added to the vector of each token before the norm of the embeddings: the row of task 0, unless a call gives others.
Models without the table (`use_task_id` false) compute what BERT does.
"""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from wordpiece_bert._internal.parameters import Parameters, changed_parameters, completed_by
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
from wordpiece_bert.bert.inputs import as_array, check_inputs
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.bert.parameters import INPUTS
from wordpiece_bert.bert.plan.building import bert_plan, embeddings
from wordpiece_bert.bert.plan.parts import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from wordpiece_bert.bert.outputs import BertOutput
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

Output = TypeVar("Output")

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


def _with_tasks(call: Callable[..., Output]) -> Callable[..., Output]:
    """Return the call of a head of BERT that also takes the tasks of the tokens."""

    @functools.wraps(call)
    def with_tasks(model: Any, *inputs: Any, task_type_ids: npt.ArrayLike | None = None, **options: Any) -> Output:
        if task_type_ids is None:
            return call(model, *inputs, **options)
        called = object.__new__(type(model))  # threads share the model, so it is left as it is
        called.__dict__ |= model.__dict__ | {"base_model": _EncoderWithTasks(model.base_model, task_type_ids)}
        return call(called, *inputs, **options)

    signature = inspect.signature(call)
    parameters = [*signature.parameters.values()]
    first = next(place for place, one in enumerate(parameters) if one.kind is one.KEYWORD_ONLY)
    tasks = inspect.signature(ErnieModel.__call__).parameters["task_type_ids"]
    with_tasks.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*parameters[:first], tasks, *parameters[first:]]
    )
    if call.__doc__:  # None with python -OO
        option = parameters[first].name
        entry = f"{_TASKS.get('task_type_ids')}\n{Parameters.of(call).get(option)}"
        with_tasks.__doc__ = changed_parameters(call.__doc__, {option: entry})
    return with_tasks


class ErnieForMaskedLM(BertForMaskedLM):
    """ERNIE that predicts masked tokens: logits [B, S, V]."""

    _base_model_class = ErnieModel
    __call__ = _with_tasks(BertForMaskedLM.__call__)


class ErnieForMultipleChoice(BertForMultipleChoice):
    """ERNIE that picks one of C choices: logits [B, C] for inputs [B, C, S]."""

    _base_model_class = ErnieModel
    __call__ = _with_tasks(BertForMultipleChoice.__call__)


class ErnieForNextSentencePrediction(BertForNextSentencePrediction):
    """ERNIE that predicts whether the second text follows the first: logits [B, 2]."""

    _base_model_class = ErnieModel
    __call__ = _with_tasks(BertForNextSentencePrediction.__call__)


class ErnieForPreTraining(BertForPreTraining):
    """ERNIE with the heads of `ErnieForMaskedLM` and `ErnieForNextSentencePrediction`."""

    _base_model_class = ErnieModel
    __call__ = _with_tasks(BertForPreTraining.__call__)


class ErnieForQuestionAnswering(BertForQuestionAnswering):
    """ERNIE that finds the answer to a question in a text: start_logits and end_logits [B, S]."""

    _base_model_class = ErnieModel
    __call__ = _with_tasks(BertForQuestionAnswering.__call__)


class ErnieForSequenceClassification(BertForSequenceClassification):
    """ERNIE that classifies texts or pairs: logits [B, labels]."""

    _base_model_class = ErnieModel
    __call__ = _with_tasks(BertForSequenceClassification.__call__)


class ErnieForTokenClassification(BertForTokenClassification):
    """ERNIE that labels tokens: logits [B, S, labels]."""

    _base_model_class = ErnieModel
    __call__ = _with_tasks(BertForTokenClassification.__call__)
