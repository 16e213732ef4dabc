"""Pre-training data for BERT and its relatives.

`next_sentence_pairs`, `Masking` and `collate` make examples of documents in memory. `TokenStore` is a tokenized corpus
on disk, as memory-mapped arrays.
"""

from wordpiece_bert.pretraining.masking import MaskedTokens, Masking, PairExample, collate, next_sentence_pairs
from wordpiece_bert.pretraining.report import ExamplesReport
from wordpiece_bert.pretraining.store import TokenStore, merge_token_stores

__all__ = [
    "ExamplesReport",
    "MaskedTokens",
    "Masking",
    "PairExample",
    "TokenStore",
    "collate",
    "merge_token_stores",
    "next_sentence_pairs",
]
