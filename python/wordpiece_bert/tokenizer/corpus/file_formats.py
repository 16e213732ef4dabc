"""The formats and types of files of ids and vectors, by name; nothing here imports NumPy."""

from __future__ import annotations

from wordpiece_bert._internal.parameters import Parameters

#: The types of token ids.
ID_DTYPES = ("uint16", "uint32", "int32", "int64")
#: The formats of files of vectors, one for each text, by the suffix of the file.
VECTOR_FORMATS = ("npy", "parquet", "arrow", "arrows", "jsonl")
#: The formats of files of sparse vectors, and of several vectors for each text.
LIST_FORMATS = ("parquet", "arrow", "arrows", "jsonl")

#: How files are written.
WRITING = Parameters(
    """
    path : path
        The file to create or replace; it appears when it is complete.
    """
)
