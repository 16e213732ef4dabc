"""Vocabulary training: word counts, three training algorithms, reports, and extended embeddings."""

from wordpiece_bert._internal.lazy import lazy_names
from wordpiece_bert.training.contents import VocabContents, vocab_contents
from wordpiece_bert.training.counts import WordCounts
from wordpiece_bert.training.embeddings import extend_embeddings, extend_model
from wordpiece_bert.training.options import CountOptions, NormalizerOptions, NormalizerSettings, TrainOptions
from wordpiece_bert.training.report import VocabReport, vocab_report
from wordpiece_bert.training.train import train_vocab
from wordpiece_bert.training.vocab import Vocab

__all__ = [
    "CountOptions",
    "NormalizerOptions",
    "NormalizerSettings",
    "TrainOptions",
    "Vocab",
    "VocabContents",
    "VocabReport",
    "WordCounts",
    "extend_embeddings",
    "extend_model",
    "train_vocab",
    "vocab_contents",
    "vocab_report",
]

__getattr__, __dir__ = lazy_names(globals(), {}, ("spark",))
