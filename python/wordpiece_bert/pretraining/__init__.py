"""Pre-training data for BERT and its relatives, from text files to masked batches.

`build_token_store` tokenizes a corpus once into a `TokenStore`. `build_examples` makes rows of it for an objective:
pairs of segments with next-sentence or sentence-order labels, or single segments, packed if asked for.
`PretrainingDataset` reads them as batches, which a `Masking` masks on the way; torch's DataLoader takes it as it is.

`next_sentence_pairs`, `Masking` and `collate` do the same with documents in memory.

The procedure is that of Devlin et al., "BERT" (2019), section 3.1 and appendices A.1 and A.2. All random choices are a
function of a seed and of what they are for, so that threads, processes and machines give the same bytes.
"""

from wordpiece_bert.pretraining.batches import example_batches, store_batches
from wordpiece_bert.pretraining.build import build_token_store
from wordpiece_bert.pretraining.dataset import PretrainingDataset, epoch_order
from wordpiece_bert.pretraining.examples import build_examples
from wordpiece_bert.pretraining.masking import MaskedTokens, Masking
from wordpiece_bert.pretraining.pairs import PairExample, collate, next_sentence_pairs
from wordpiece_bert.pretraining.report import ExamplesReport
from wordpiece_bert.pretraining.store import TokenStore, merge_token_stores

__all__ = [
    "ExamplesReport",
    "MaskedTokens",
    "Masking",
    "PairExample",
    "PretrainingDataset",
    "TokenStore",
    "build_examples",
    "build_token_store",
    "collate",
    "epoch_order",
    "example_batches",
    "merge_token_stores",
    "next_sentence_pairs",
    "store_batches",
]
