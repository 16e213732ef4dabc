"""What people do with BERT, each in one call.

`load` brings a model with its tokenizer; the others take what it gives, or a name or folder. Results have the form that
users of transformers know, and tell in ``truncated`` whether the text was cut.
"""

from wordpiece_bert.results import Answer, Answers
from wordpiece_bert.tasks.answers import question_answering
from wordpiece_bert.tasks.classification import classify
from wordpiece_bert.tasks.common import Loaded, load
from wordpiece_bert.tasks.entities import ner
from wordpiece_bert.tasks.features import FEATURE_CHOICES, Features, feature_extraction
from wordpiece_bert.tasks.masks import fill_mask

__all__ = [
    "FEATURE_CHOICES",
    "Answer",
    "Answers",
    "Features",
    "Loaded",
    "classify",
    "feature_extraction",
    "fill_mask",
    "load",
    "ner",
    "question_answering",
]
