"""Training of BERT models on the CPU, in NumPy: gradients, losses, optimizers, and heads on frozen features.

`LogisticRegression` and `Ridge` fit a head to vectors that an encoder computed once. `value_and_grad` computes the loss
of a model and its gradient with respect to every parameter, from the formulas of `wordpiece_bert.bert.gradients`.
"""

from wordpiece_bert.finetune import losses, metrics
from wordpiece_bert.finetune.arguments import TrainingArguments
from wordpiece_bert.finetune.batches import pad_collate
from wordpiece_bert.finetune.frozen_heads import LogisticRegression, Ridge
from wordpiece_bert.finetune.gradient import ValueAndGrad, value_and_grad
from wordpiece_bert.finetune.optimizer import (
    AdamW,
    clip_grad_norm_,
    decayed,
    get_constant_schedule,
    get_constant_schedule_with_warmup,
    get_cosine_schedule_with_warmup,
    get_linear_schedule_with_warmup,
)
from wordpiece_bert.finetune.start import model_for
from wordpiece_bert.finetune.trainer import EvalPrediction, SentenceTrainer, StepOutput, Trainer, TrainOutput

__all__ = [
    "AdamW",
    "EvalPrediction",
    "LogisticRegression",
    "Ridge",
    "SentenceTrainer",
    "StepOutput",
    "TrainOutput",
    "Trainer",
    "TrainingArguments",
    "ValueAndGrad",
    "clip_grad_norm_",
    "decayed",
    "get_constant_schedule",
    "get_constant_schedule_with_warmup",
    "get_cosine_schedule_with_warmup",
    "get_linear_schedule_with_warmup",
    "losses",
    "metrics",
    "model_for",
    "pad_collate",
    "value_and_grad",
]
