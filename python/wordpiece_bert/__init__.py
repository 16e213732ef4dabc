"""An exact WordPiece tokenizer with a Rust core, and BERT on the CPU.

>>> import wordpiece_bert as wb
>>> tok = wb.Tokenizer.from_vocab(
...     ["[UNK]", "[CLS]", "[SEP]", "un", "##afford", "##able"]
... )
>>> tok.encode("Unaffordable").tokens
['[CLS]', 'un', '##afford', '##able', '[SEP]']

`Tokenizer` converts texts to token ids, `BertModel` token ids to vectors, `SentenceEncoder` sentences to vectors, and
`CrossEncoder` pairs of texts to scores. `train_vocab` trains vocabularies. All errors derive from `WordPieceError`; the
specific classes are in `wordpiece_bert.errors`.

A name is imported when it is first used: ``import wordpiece_bert`` alone imports neither NumPy nor the extension.

Stability: stable.
"""

from wordpiece_bert._internal.lazy import lazy_names

TYPE_CHECKING = False  # type checkers take it as true; importing `typing` for it would take longer than all the rest
if TYPE_CHECKING:
    from wordpiece_bert import bert as bert
    from wordpiece_bert import corpus as corpus
    from wordpiece_bert import errors as errors
    from wordpiece_bert import evaluation as evaluation
    from wordpiece_bert import finetune as finetune
    from wordpiece_bert import hub as hub
    from wordpiece_bert import inspect as inspect
    from wordpiece_bert import integrations as integrations
    from wordpiece_bert import pretraining as pretraining
    from wordpiece_bert import sentence as sentence
    from wordpiece_bert import serve as serve
    from wordpiece_bert import tasks as tasks
    from wordpiece_bert import tokenizer as tokenizer
    from wordpiece_bert import training as training
    from wordpiece_bert import util as util
    from wordpiece_bert import verify as verify
    from wordpiece_bert._core import Encoding as Encoding
    from wordpiece_bert._core import __version__ as __version__
    from wordpiece_bert._core import set_num_threads as set_num_threads
    from wordpiece_bert.bert import BertModel as BertModel
    from wordpiece_bert.errors import WordPieceError as WordPieceError
    from wordpiece_bert.sentence import CrossEncoder as CrossEncoder
    from wordpiece_bert.sentence import MultiVectorEncoder as MultiVectorEncoder
    from wordpiece_bert.sentence import SentenceEncoder as SentenceEncoder
    from wordpiece_bert.sentence import SparseEncoder as SparseEncoder
    from wordpiece_bert.sentence import distill_static as distill_static
    from wordpiece_bert.sentence import merge_parts as merge_parts
    from wordpiece_bert.sentence import open_vectors as open_vectors
    from wordpiece_bert.sentence import write_vectors as write_vectors
    from wordpiece_bert.tokenizer.added_token import AddedToken as AddedToken
    from wordpiece_bert.tokenizer.arrow_table import ArrowTable as ArrowTable
    from wordpiece_bert.tokenizer.batch_encoding import BatchEncoding as BatchEncoding
    from wordpiece_bert.tokenizer.dividing import TextPart as TextPart
    from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch as RaggedBatch
    from wordpiece_bert.tokenizer.tokenizer import Tokenizer as Tokenizer
    from wordpiece_bert.training import Vocab as Vocab
    from wordpiece_bert.training import WordCounts as WordCounts
    from wordpiece_bert.training import train_vocab as train_vocab
    from wordpiece_bert.training import vocab_report as vocab_report

# The module of each public name. The module, not the folder around it: `Tokenizer` alone does not import the models.
_MODULES = {
    "AddedToken": "tokenizer.added_token",
    "ArrowTable": "tokenizer.arrow_table",
    "BatchEncoding": "tokenizer.batch_encoding",
    "BertModel": "bert.model",
    "CrossEncoder": "sentence.cross_encoder",
    "Encoding": "_core",
    "MultiVectorEncoder": "sentence.multi_vector.multi_vector_encoder",
    "RaggedBatch": "tokenizer.ragged_batch",
    "SentenceEncoder": "sentence.dense.sentence_encoder",
    "SparseEncoder": "sentence.sparse.sparse_encoder",
    "TextPart": "tokenizer.dividing",
    "Tokenizer": "tokenizer.tokenizer",
    "Vocab": "training.vocab",
    "WordCounts": "training.counts",
    "WordPieceError": "errors",
    "__version__": "_core",
    "distill_static": "sentence.dense.distill",
    "merge_parts": "vectors.merging",
    "open_vectors": "vectors.vector_folder",
    "set_num_threads": "_core",
    "train_vocab": "training.train",
    "vocab_report": "training.report",
    "write_vectors": "vectors.write_call",
}
# The public modules, which users reach as attributes, as in ``wb.errors.InputError``.
_SUBMODULES = (
    "bert",
    "corpus",
    "errors",
    "evaluation",
    "finetune",
    "hub",
    "inspect",
    "integrations",
    "pretraining",
    "sentence",
    "serve",
    "tasks",
    "training",
    "util",
    "verify",
)

__getattr__, __dir__ = lazy_names(globals(), _MODULES, _SUBMODULES, searched=("sentence", "bert", "errors"))
