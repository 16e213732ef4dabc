"""Training vocabularies: counting words, three learners, reports."""

from wordpiece_bert.training.counts import WordCounts
from wordpiece_bert.training.embeddings import extend_embeddings
from wordpiece_bert.training.options import CountOptions, NormalizerSettings, TrainOptions
from wordpiece_bert.training.train import train_vocab
from wordpiece_bert.training.vocab import Vocab

__all__ = [
    "CountOptions",
    "NormalizerSettings",
    "TrainOptions",
    "Vocab",
    "WordCounts",
    "extend_embeddings",
    "train_vocab",
]
