"""Token ids and sentence vectors as SQL functions of DuckDB. Needs duckdb and pyarrow.

Stability: provisional.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import InputError, TruncationWarning
from wordpiece_bert.integrations.arrow import embed_texts, encode_texts
from wordpiece_bert.integrations.named_models import encoder_of, import_package, tokenizer_of
from wordpiece_bert.integrations.options import NAMED, EmbeddingOptions, EncodingOptions
from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
from wordpiece_bert.tokenizer.parameters import ENCODING

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from wordpiece_bert.tokenizer.option_types import Strategy
    from wordpiece_bert.tokenizer.tokenizer import Tokenizer

__all__ = ["register"]


@completed_by(NAMED, ENCODING, SentenceEncoder.encode)
def register(
    connection: Any,
    *,
    tokenizer: Tokenizer | str | os.PathLike[str] | None = None,
    model: SentenceEncoder | str | os.PathLike[str] | None = None,
    max_length: int | None = None,
    truncation: bool | Strategy | None = None,
    add_special_tokens: bool = True,
    prompt_name: str | None = None,
    normalize_embeddings: bool = False,
    truncate_dim: int | None = None,
    dtype: str | None = None,
    encoder_options: Mapping[str, Any] | None = None,
    prefix: str = "wordpiece_",
) -> None:
    """Register SQL functions in a connection; functions of the same names are replaced.

    With a tokenizer, ``wordpiece_encode(text)`` is the ids, INTEGER[], and ``wordpiece_length(text)`` their number,
    INTEGER. With a model, ``wordpiece_embed(text)`` is the sentence vector, FLOAT[d]. The result of NULL is NULL.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        The connection; the module ``duckdb`` itself for its default connection.
    tokenizer, model : optional
        The tokenizer and the encoder, or their names or folders; one of them at least.
    prefix : str
        What the names of the functions begin with, ``"wordpiece_"`` by default.

    Raises
    ------
    MissingPackageError
        duckdb or pyarrow is not installed.
    InputError
        Neither a tokenizer nor a model is given, or an option of the one that is not.

    Warns
    -----
    TruncationWarning
        ``wordpiece_embed`` has truncated texts.

    Examples
    --------
    >>> import duckdb
    >>> from wordpiece_bert.integrations.duckdb import register
    >>> connection = duckdb.connect()
    >>> register(connection, tokenizer="models/words", model="models/static")
    >>> connection.sql("SELECT wordpiece_length('to bake bread') AS n").fetchall()
    [(5,)]
    """
    duckdb = import_package("duckdb", "duckdb")
    import_package("pyarrow", "arrow")
    if tokenizer is None and model is None:
        raise InputError("give a tokenizer, a model or both: they determine the functions")
    functions: dict[str, tuple[Any, str]] = {}
    encoding = EncodingOptions(max_length, truncation, add_special_tokens)
    embedding = EmbeddingOptions(prompt_name, normalize_embeddings, truncate_dim)
    if tokenizer is None and encoding != EncodingOptions():
        names = "max_length, truncation and add_special_tokens"
        raise InputError(f"{names} are for a tokenizer: for a model give encoder_options={{'max_seq_length': 128}}")
    if model is None and (embedding, dtype, encoder_options) != (EmbeddingOptions(), None, None):
        names = "prompt_name, normalize_embeddings, truncate_dim, dtype and encoder_options"
        raise InputError(f"{names} are for a model: give model, or leave them out")
    if tokenizer is not None:
        loaded = tokenizer_of(tokenizer)

        def encoded(texts: Any) -> Any:
            return encode_texts(texts, loaded, **vars(encoding))

        functions["encode"] = (lambda texts: encoded(texts)[0], "INTEGER[]")
        functions["length"] = (lambda texts: encoded(texts)[1], "INTEGER")
    if model is not None:
        encoder = encoder_of(model, dtype=dtype, encoder_options=encoder_options)

        def embedded(texts: Any) -> Any:
            vectors, truncated = embed_texts(texts, encoder, **vars(embedding))
            cut = int(np.sum(np.asarray(truncated.fill_null(False))))
            if cut:  # DuckDB calls with some rows at a time, whose places nobody knows
                message = f"{cut} texts were truncated to {encoder.max_seq_length} tokens; encode returns which"
                warn(message, TruncationWarning)
            return vectors

        functions["embed"] = embedded, f"FLOAT[{embedding.width(encoder)}]"
    for name, (function, kind) in functions.items():
        with contextlib.suppress(duckdb.InvalidInputException):  # there is none
            connection.remove_function(prefix + name)
        connection.create_function(prefix + name, function, ["VARCHAR"], kind, type="arrow", null_handling="special")
