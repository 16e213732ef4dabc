"""Token ids and sentence vectors as SQL functions of DuckDB. Needs duckdb and pyarrow."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from wordpiece_bert.errors import InputError
from wordpiece_bert.integrations.arrow import embed_texts, encode_texts
from wordpiece_bert.integrations.loading import encoder_of, import_package, tokenizer_of

if TYPE_CHECKING:
    import os

    from wordpiece_bert.options import Strategy
    from wordpiece_bert.sentence.encoder import SentenceEncoder
    from wordpiece_bert.tokenizer import Tokenizer

__all__ = ["register"]


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
    prefix: str = "wordpiece_",
) -> None:
    """Register SQL functions in a connection; those of the same names are replaced.

    With a tokenizer, ``wordpiece_encode(text)`` is the ids, INTEGER[], and ``wordpiece_length(text)`` their number,
    INTEGER. With a model, ``wordpiece_embed(text)`` is the sentence vector, FLOAT[d]. The result of NULL is NULL.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        The connection; the module ``duckdb`` itself for its default connection.
    tokenizer : Tokenizer, str or os.PathLike, optional
        The tokenizer, or the name or folder of a model.
    model : SentenceEncoder, str or os.PathLike, optional
        The encoder, or its name or folder.
    max_length, truncation, add_special_tokens
        As for `Tokenizer.encode_batch`.
    prompt_name, normalize_embeddings, truncate_dim
        As for `SentenceEncoder.encode`.
    prefix : str, default "wordpiece_"
        What the names of the functions begin with.

    Raises
    ------
    MissingPackageError
        duckdb or pyarrow is not installed.
    InputError
        Neither a tokenizer nor a model is given.
    """
    duckdb = import_package("duckdb", "duckdb")
    import_package("pyarrow", "arrow")
    if tokenizer is None and model is None:
        raise InputError("give a tokenizer, a model or both: they determine the functions")
    functions: dict[str, tuple[Any, str]] = {}
    if tokenizer is not None:
        loaded = tokenizer_of(tokenizer)

        def encoded(texts: Any) -> Any:
            return encode_texts(
                texts,
                loaded,
                max_length=max_length,
                truncation=truncation,
                add_special_tokens=add_special_tokens,
            )

        functions["encode"] = (lambda texts: encoded(texts)[0], "INTEGER[]")
        functions["length"] = (lambda texts: encoded(texts)[1], "INTEGER")
    if model is not None:
        encoder = encoder_of(model)
        width = encoder.dimension if truncate_dim is None else truncate_dim

        def embedded(texts: Any) -> Any:
            return embed_texts(
                texts,
                encoder,
                prompt_name=prompt_name,
                normalize_embeddings=normalize_embeddings,
                truncate_dim=truncate_dim,
            )[0]

        functions["embed"] = (embedded, f"FLOAT[{width}]")
    for name, (function, kind) in functions.items():
        with contextlib.suppress(duckdb.InvalidInputException):  # there is none
            connection.remove_function(prefix + name)
        connection.create_function(prefix + name, function, ["VARCHAR"], kind, type="arrow", null_handling="special")
