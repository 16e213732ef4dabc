"""Tasks for models with a head, each as one function.

`load` returns a model with its tokenizer; every task accepts that pair, or the name or folder of a model. Results have
the form of transformers' pipelines, and their attribute ``truncated`` is whether the text was truncated.
A model whose logits are NaN is a `NonFiniteError`: its weights are damaged, or its training diverged.

Stability: provisional.
"""

from wordpiece_bert._internal.answers import Answer, Answers
from wordpiece_bert.tasks.answer_extraction import question_answering
from wordpiece_bert.tasks.mask_filling import fill_mask
from wordpiece_bert.tasks.results import Entity, FilledMask, Label
from wordpiece_bert.tasks.sentence_scores import score_sentences
from wordpiece_bert.tasks.task_loading import Loaded, load
from wordpiece_bert.tasks.text_classification import classify
from wordpiece_bert.tasks.token_classification import ner
from wordpiece_bert.tasks.token_features import FEATURE_CHOICES, feature_extraction
from wordpiece_bert.tasks.zero_shot_classification import zero_shot

__all__ = [
    "FEATURE_CHOICES",
    "Answer",
    "Answers",
    "Entity",
    "FilledMask",
    "Label",
    "Loaded",
    "classify",
    "feature_extraction",
    "fill_mask",
    "load",
    "ner",
    "question_answering",
    "score_sentences",
    "zero_shot",
]
