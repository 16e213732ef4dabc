"""Corpora: texts out of files that may be larger than memory, and what becomes of them into files.

`TextReader` reads, `FileEncoder` encodes what it reads, `write_encoded` puts that into a file; `Tokenizer.encode_files`
and `Tokenizer.iter_files` are the two ways in. Texts never become Python objects on the way.
"""

from wordpiece_bert.corpus.encode import EncodeSummary, FileEncoder, FileOptions, write_encoded
from wordpiece_bert.corpus.progress import progress
from wordpiece_bert.corpus.table import ID_DTYPES, Table
from wordpiece_bert.corpus.texts import TextReader
from wordpiece_bert.corpus.writers import NpyWriter, check_output, json_lines

__all__ = [
    "ID_DTYPES",
    "EncodeSummary",
    "FileEncoder",
    "FileOptions",
    "NpyWriter",
    "Table",
    "TextReader",
    "check_output",
    "json_lines",
    "progress",
    "write_encoded",
]
