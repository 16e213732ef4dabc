"""Encoding of corpora: texts are read from files and rows are written to files, both possibly larger than memory.

`Tokenizer.encode_files` and `Tokenizer.iter_files` are the public entry points. `texts` and `parquet` read blocks of
texts, `encode` encodes them, `table` has the columns of the result, and `writers` writes them. Texts never become
Python objects. These modules work on the core's tokenizer and do not import the class `Tokenizer`.
"""

from wordpiece_bert.corpus.encode import EncodeSummary, FileOptions

__all__ = ["EncodeSummary", "FileOptions"]
