"""An exact WordPiece tokenizer with a Rust core, and BERT on the CPU.

>>> import wordpiece_bert as wb
>>> tok = wb.Tokenizer.from_vocab(["[UNK]", "[CLS]", "[SEP]", "un", "##afford", "##able"])
>>> tok.encode("Unaffordable").tokens
['[CLS]', 'un', '##afford', '##able', '[SEP]']

`Tokenizer` converts texts to token ids, `BertModel` token ids to vectors, `SentenceEncoder` sentences to vectors, and
`CrossEncoder` pairs of texts to scores. `train_vocab` trains vocabularies. All errors derive from `WordPieceError`; the
specific classes are in `wordpiece_bert.errors`.
"""

from wordpiece_bert._core import Encoding, __version__, set_num_threads
from wordpiece_bert.added_token import AddedToken
from wordpiece_bert.arrow import ArrowTable
from wordpiece_bert.batch import BatchEncoding, RaggedBatch
from wordpiece_bert.bert import BertModel
from wordpiece_bert.errors import WordPieceError
from wordpiece_bert.sentence import CrossEncoder, SentenceEncoder
from wordpiece_bert.tokenizer import Tokenizer
from wordpiece_bert.training import Vocab, WordCounts, train_vocab, vocab_report

__all__ = [
    "AddedToken",
    "ArrowTable",
    "BatchEncoding",
    "BertModel",
    "CrossEncoder",
    "Encoding",
    "RaggedBatch",
    "SentenceEncoder",
    "Tokenizer",
    "Vocab",
    "WordCounts",
    "WordPieceError",
    "__version__",
    "set_num_threads",
    "train_vocab",
    "vocab_report",
]
