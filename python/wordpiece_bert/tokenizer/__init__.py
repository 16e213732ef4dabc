"""The tokenizer: the class `Tokenizer`, what it returns, what it reads and what it writes."""

from wordpiece_bert._internal.lazy import lazy_names

TYPE_CHECKING = False  # as in the package `wordpiece_bert`
if TYPE_CHECKING:
    from wordpiece_bert._core import Encoding as Encoding
    from wordpiece_bert.tokenizer.added_token import AddedToken as AddedToken
    from wordpiece_bert.tokenizer.batch_encoding import BatchEncoding as BatchEncoding
    from wordpiece_bert.tokenizer.dividing import TextPart as TextPart
    from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch as RaggedBatch
    from wordpiece_bert.tokenizer.tokenizer import Tokenizer as Tokenizer

# The module of each name, imported when the name is first used.
_MODULES = {
    "AddedToken": "added_token",
    "BatchEncoding": "batch_encoding",
    "Encoding": "wordpiece_bert._core",
    "RaggedBatch": "ragged_batch",
    "TextPart": "dividing",
    "Tokenizer": "tokenizer",
}

__getattr__, __dir__ = lazy_names(globals(), _MODULES)
