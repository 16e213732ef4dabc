"""BERT with a head for one task.

`base` has what all heads share, `kinds` the heads for any encoder, `bert` the classes of BERT itself; those of its
variants are in `wordpiece_bert.bert.variants`.
"""

from wordpiece_bert.bert.heads.bert import (
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)

__all__ = [
    "BertForMaskedLM",
    "BertForMultipleChoice",
    "BertForNextSentencePrediction",
    "BertForPreTraining",
    "BertForQuestionAnswering",
    "BertForSequenceClassification",
    "BertForTokenClassification",
]
