"""BERT with a head for one task.

`base` has what all heads share, `kinds` the heads for any encoder, `bert` the classes of BERT itself; those of its
variants are in `wordpiece_bert.bert.variants`.
"""

from wordpiece_bert._internal.lazy import lazy_names

TYPE_CHECKING = False  # as in the package `wordpiece_bert`
if TYPE_CHECKING:
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

# The module of each name above, imported when the name is first used.
_MODULES = {
    "BertForMaskedLM": "bert",
    "BertForMultipleChoice": "bert",
    "BertForNextSentencePrediction": "bert",
    "BertForPreTraining": "bert",
    "BertForQuestionAnswering": "bert",
    "BertForSequenceClassification": "bert",
    "BertForTokenClassification": "bert",
}

__getattr__, __dir__ = lazy_names(globals(), _MODULES)
