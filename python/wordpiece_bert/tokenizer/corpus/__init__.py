"""Encoding of corpora: texts are read from files and rows are written to files, both possibly larger than memory.

`Tokenizer.encode_files` and `Tokenizer.iter_files` are the public entry points. `text_reader` and `parquet` read
blocks of texts, `file_encoder` encodes them, `encoded_table` has the columns of the result, and `writers` writes them.
Texts never become Python objects. These modules work on the core's tokenizer and do not import the class `Tokenizer`.
"""

from wordpiece_bert._internal.lazy import lazy_names

TYPE_CHECKING = False  # as in the package `wordpiece_bert`
if TYPE_CHECKING:
    from wordpiece_bert.tokenizer.corpus.file_encoder import EncodeSummary as EncodeSummary
    from wordpiece_bert.tokenizer.corpus.file_encoder import FileOptions as FileOptions

# The module of each name, imported when the name is first used.
_MODULES = {
    "EncodeSummary": "file_encoder",
    "FileOptions": "file_encoder",
}

__getattr__, __dir__ = lazy_names(globals(), _MODULES)
