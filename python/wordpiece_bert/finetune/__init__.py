"""Training of BERT models on the CPU, in NumPy: gradients, losses, optimizers, and heads on frozen features.

`FrozenClassifier` fits a head, `LogisticRegression` or `Ridge`, to vectors that an encoder computes once.
`value_and_grad` computes the loss of a model and its gradient with respect to every parameter, from the formulas of
`wordpiece_bert.bert.gradients`; `Trainer` and `SentenceTrainer` train.

Stability: provisional.
"""

from wordpiece_bert._internal.lazy import lazy_names

TYPE_CHECKING = False  # as in the package `wordpiece_bert`
if TYPE_CHECKING:
    from wordpiece_bert.finetune import losses as losses
    from wordpiece_bert.finetune import metrics as metrics
    from wordpiece_bert.finetune import objectives as objectives
    from wordpiece_bert.finetune.arguments import TrainingArguments as TrainingArguments
    from wordpiece_bert.finetune.batches import pad_collate as pad_collate
    from wordpiece_bert.finetune.curve import draw_curve as draw_curve
    from wordpiece_bert.finetune.curve import save_curve as save_curve
    from wordpiece_bert.finetune.frozen_classifier import FrozenClassifier as FrozenClassifier
    from wordpiece_bert.finetune.frozen_classifier import cached_vectors as cached_vectors
    from wordpiece_bert.finetune.frozen_heads import LogisticRegression as LogisticRegression
    from wordpiece_bert.finetune.frozen_heads import Ridge as Ridge
    from wordpiece_bert.finetune.frozen_tokens import fit_token_head as fit_token_head
    from wordpiece_bert.finetune.gradient import ValueAndGrad as ValueAndGrad
    from wordpiece_bert.finetune.gradient import value_and_grad as value_and_grad
    from wordpiece_bert.finetune.objectives.masked_tokens import new_model as new_model
    from wordpiece_bert.finetune.optimizer import AdamW as AdamW
    from wordpiece_bert.finetune.optimizer import clip_grad_norm_ as clip_grad_norm_
    from wordpiece_bert.finetune.optimizer import decayed as decayed
    from wordpiece_bert.finetune.outputs import StepOutput as StepOutput
    from wordpiece_bert.finetune.outputs import TrainOutput as TrainOutput
    from wordpiece_bert.finetune.pretraining import PretrainingRows as PretrainingRows
    from wordpiece_bert.finetune.pretraining import PretrainingTrainer as PretrainingTrainer
    from wordpiece_bert.finetune.pretraining import held_out_rows as held_out_rows
    from wordpiece_bert.finetune.schedules import get_constant_schedule as get_constant_schedule
    from wordpiece_bert.finetune.schedules import get_constant_schedule_with_warmup as get_constant_schedule_with_warmup
    from wordpiece_bert.finetune.schedules import get_cosine_schedule_with_warmup as get_cosine_schedule_with_warmup
    from wordpiece_bert.finetune.schedules import get_linear_schedule_with_warmup as get_linear_schedule_with_warmup
    from wordpiece_bert.finetune.sentence_trainer import SentenceTrainer as SentenceTrainer
    from wordpiece_bert.finetune.start import model_for as model_for
    from wordpiece_bert.finetune.trainer import EvalPrediction as EvalPrediction
    from wordpiece_bert.finetune.trainer import Trainer as Trainer

# The module of each name, imported when the name is first used: the commands read the objectives without NumPy.
_MODULES = {
    "AdamW": "optimizer",
    "EvalPrediction": "trainer",
    "FrozenClassifier": "frozen_classifier",
    "LogisticRegression": "frozen_heads",
    "PretrainingRows": "pretraining",
    "PretrainingTrainer": "pretraining",
    "Ridge": "frozen_heads",
    "SentenceTrainer": "sentence_trainer",
    "StepOutput": "outputs",
    "TrainOutput": "outputs",
    "Trainer": "trainer",
    "TrainingArguments": "arguments",
    "ValueAndGrad": "gradient",
    "cached_vectors": "frozen_classifier",
    "clip_grad_norm_": "optimizer",
    "decayed": "optimizer",
    "draw_curve": "curve",
    "fit_token_head": "frozen_tokens",
    "get_constant_schedule": "schedules",
    "get_constant_schedule_with_warmup": "schedules",
    "get_cosine_schedule_with_warmup": "schedules",
    "get_linear_schedule_with_warmup": "schedules",
    "held_out_rows": "pretraining",
    "model_for": "start",
    "new_model": "objectives.masked_tokens",
    "pad_collate": "batches",
    "save_curve": "curve",
    "value_and_grad": "gradient",
}

__all__ = [*_MODULES, "losses", "metrics", "objectives"]

__getattr__, __dir__ = lazy_names(
    globals(), _MODULES, ("choices", "data", "losses", "metrics", "objectives", "questions")
)
