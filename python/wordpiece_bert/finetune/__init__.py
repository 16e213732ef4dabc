"""Training of BERT models on the CPU, in NumPy: gradients, losses, optimizers, and heads on frozen features.

`FrozenClassifier` fits a head, `LogisticRegression` or `Ridge`, to vectors that an encoder computes once.
`value_and_grad` computes the loss of a model and its gradient with respect to every parameter, from the formulas of
`wordpiece_bert.bert.gradients`; `Trainer` and `SentenceTrainer` train.
"""

from wordpiece_bert._internal.lazy import lazy_names
from wordpiece_bert.finetune import losses, metrics
from wordpiece_bert.finetune.arguments import TrainingArguments
from wordpiece_bert.finetune.batches import pad_collate
from wordpiece_bert.finetune.curve import draw_curve, save_curve
from wordpiece_bert.finetune.frozen_classifier import FrozenClassifier, cached_vectors
from wordpiece_bert.finetune.frozen_heads import LogisticRegression, Ridge
from wordpiece_bert.finetune.frozen_tokens import fit_token_head
from wordpiece_bert.finetune.gradient import ValueAndGrad, value_and_grad
from wordpiece_bert.finetune.loop import StepOutput, TrainOutput
from wordpiece_bert.finetune.optimizer import (
    AdamW,
    clip_grad_norm_,
    decayed,
    get_constant_schedule,
    get_constant_schedule_with_warmup,
    get_cosine_schedule_with_warmup,
    get_linear_schedule_with_warmup,
)
from wordpiece_bert.finetune.pretraining import PretrainingRows, PretrainingTrainer, held_out_rows, new_model
from wordpiece_bert.finetune.sentence_trainer import SentenceTrainer
from wordpiece_bert.finetune.start import model_for
from wordpiece_bert.finetune.trainer import EvalPrediction, Trainer

__all__ = [
    "AdamW",
    "EvalPrediction",
    "FrozenClassifier",
    "LogisticRegression",
    "PretrainingRows",
    "PretrainingTrainer",
    "Ridge",
    "SentenceTrainer",
    "StepOutput",
    "TrainOutput",
    "Trainer",
    "TrainingArguments",
    "ValueAndGrad",
    "cached_vectors",
    "clip_grad_norm_",
    "decayed",
    "draw_curve",
    "fit_token_head",
    "get_constant_schedule",
    "get_constant_schedule_with_warmup",
    "get_cosine_schedule_with_warmup",
    "get_linear_schedule_with_warmup",
    "held_out_rows",
    "losses",
    "metrics",
    "model_for",
    "new_model",
    "pad_collate",
    "save_curve",
    "value_and_grad",
]

__getattr__, __dir__ = lazy_names(globals(), {}, ("choices", "data", "questions"))
