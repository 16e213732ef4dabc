"""Pre-training data for BERT and its relatives, from text files to masked batches.

`build_token_store` tokenizes a corpus once into a `TokenStore`. `build_examples` makes rows of it for an objective:
pairs of segments with next-sentence or sentence-order labels, or single segments, packed if asked for.
`PretrainingDataset` reads them as batches, which a `Masking` masks on the way; torch's DataLoader takes it as it is.

`next_sentence_pairs`, `Masking` and `collate` do the same with documents in memory.

The procedure is as in Devlin et al., "BERT" (2019), section 3.1 and appendices A.1 and A.2. All random choices are a
function of a seed and of what they are for, so that threads, processes and machines give the same bytes.

Stability: provisional.
"""

from wordpiece_bert._internal.lazy import lazy_names

TYPE_CHECKING = False  # as in the package `wordpiece_bert`
if TYPE_CHECKING:
    from wordpiece_bert.pretraining.batches import example_batches as example_batches
    from wordpiece_bert.pretraining.batches import store_batches as store_batches
    from wordpiece_bert.pretraining.build import build_token_store as build_token_store
    from wordpiece_bert.pretraining.dataset import PretrainingDataset as PretrainingDataset
    from wordpiece_bert.pretraining.dataset import epoch_order as epoch_order
    from wordpiece_bert.pretraining.examples import build_examples as build_examples
    from wordpiece_bert.pretraining.masking import MaskedTokens as MaskedTokens
    from wordpiece_bert.pretraining.masking import Masking as Masking
    from wordpiece_bert.pretraining.pairs import PairExample as PairExample
    from wordpiece_bert.pretraining.pairs import collate as collate
    from wordpiece_bert.pretraining.pairs import next_sentence_pairs as next_sentence_pairs
    from wordpiece_bert.pretraining.report import ExamplesReport as ExamplesReport
    from wordpiece_bert.pretraining.store import TokenStore as TokenStore
    from wordpiece_bert.pretraining.store import merge_token_stores as merge_token_stores

# The module of each name, imported when the name is first used: the command reads the options before it needs NumPy.
_MODULES = {
    "ExamplesReport": "report",
    "MaskedTokens": "masking",
    "Masking": "masking",
    "PairExample": "pairs",
    "PretrainingDataset": "dataset",
    "TokenStore": "store",
    "build_examples": "examples",
    "build_token_store": "build",
    "collate": "pairs",
    "epoch_order": "dataset",
    "example_batches": "batches",
    "merge_token_stores": "store",
    "next_sentence_pairs": "pairs",
    "store_batches": "batches",
}

__getattr__, __dir__ = lazy_names(globals(), _MODULES)
