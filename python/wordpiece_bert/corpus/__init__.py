"""Corpora: texts out of files that may be larger than memory, and what becomes of them into files.

`Tokenizer.encode_files` and `Tokenizer.iter_files` are the ways in. `texts` (and `parquet`) read, `encode` encodes
block by block, `table` has the columns of what came out, `writers` puts them into files. Texts never become Python
objects on the way.
"""

from wordpiece_bert.corpus.encode import EncodeSummary, FileOptions

__all__ = ["EncodeSummary", "FileOptions"]
