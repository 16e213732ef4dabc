"""What `Tokenizer.encode_files` takes and returns; `wordpiece_bert.tokenizer.corpus` has the code.

Stability: stable.
"""

from wordpiece_bert._internal.lazy import lazy_names

TYPE_CHECKING = False  # as in the package `wordpiece_bert`
if TYPE_CHECKING:
    from wordpiece_bert.tokenizer.corpus.file_encoder import EncodeSummary as EncodeSummary
    from wordpiece_bert.tokenizer.corpus.file_encoder import FileOptions as FileOptions

# The module of each name, imported when the name is first used.
_MODULES = {
    "EncodeSummary": "wordpiece_bert.tokenizer.corpus.file_encoder",
    "FileOptions": "wordpiece_bert.tokenizer.corpus.file_encoder",
}

__getattr__, __dir__ = lazy_names(globals(), _MODULES)
