"""What a step and a training return."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class StepOutput:
    """One step of the optimizer.

    Attributes
    ----------
    loss : float
        The mean loss of its micro-batches, or of their tokens (`TrainingArguments.average_tokens_across_batches`),
        before the step.
    grad_norm : float
        The norm of the gradient before clipping.
    learning_rate : float
        The learning rate of the step.

    Examples
    --------
    >>> from wordpiece_bert.bert import BertForSequenceClassification
    >>> from wordpiece_bert.finetune import Trainer, TrainingArguments
    >>> model = BertForSequenceClassification.from_pretrained("models/reviews")
    >>> trainer = Trainer(model, TrainingArguments("out", max_steps=4, learning_rate=1e-4))
    >>> step = trainer.training_step([{"input_ids": [[2, 7, 3]], "labels": [1]}])
    >>> step.learning_rate, step.loss > 0, step.grad_norm > 0
    (0.0001, True, True)
    """

    loss: float
    grad_norm: float
    learning_rate: float


@dataclass(frozen=True)
class TrainOutput:
    """The result of a training.

    Attributes
    ----------
    global_step : int
        Steps of the optimizer, including the ones before a resumption.
    training_loss : float
        The mean loss of the steps of this call. If there were none left, the mean of the last steps in the history, or
        NaN if that is empty too.
    metrics : dict of str to float
        ``train_runtime`` in seconds, ``train_samples_per_second``, ``train_steps_per_second``.

    Examples
    --------
    >>> from wordpiece_bert.bert import BertForSequenceClassification
    >>> from wordpiece_bert.finetune import Trainer, TrainingArguments
    >>> model = BertForSequenceClassification.from_pretrained("models/reviews")
    >>> args = TrainingArguments("out", max_steps=2, show_progress_bar=False)
    >>> done = Trainer(model, args, [{"input_ids": [2, 7, 3], "labels": 1}]).train()
    >>> done.global_step, sorted(done.metrics)
    (2, ['train_runtime', 'train_samples_per_second', 'train_steps_per_second'])
    """

    global_step: int
    training_loss: float
    metrics: dict[str, float] = field(default_factory=dict)
