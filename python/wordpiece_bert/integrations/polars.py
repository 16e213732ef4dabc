"""Token ids and sentence vectors as expressions of polars. Needs polars.

The import of this module registers the namespace ``wordpiece`` of expressions and series::

    import wordpiece_bert.integrations.polars

    frame.with_columns(ids=pl.col("text").wordpiece.encode(tokenizer))

Expressions work in lazy frames and in the streaming engine, which calls them part by part. A null text has null
results.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from wordpiece_bert.errors import InputError
from wordpiece_bert.integrations.arrow import not_text
from wordpiece_bert.integrations.loading import encoder_of, import_package, tokenizer_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from wordpiece_bert.options import Strategy
    from wordpiece_bert.sentence.encoder import SentenceEncoder
    from wordpiece_bert.tokenizer import Tokenizer

__all__ = ["WordPieceNamespace"]

_polars = import_package("polars", "polars")


class WordPieceNamespace:
    """The namespace ``wordpiece`` of ``pl.Expr`` and ``pl.Series``.

    Parameters
    ----------
    texts : polars.Expr or polars.Series
        A column of texts.
    """

    def __init__(self, texts: Any) -> None:
        self._texts = texts

    def encode(
        self,
        tokenizer: Tokenizer | str | os.PathLike[str],
        *,
        max_length: int | None = None,
        truncation: bool | Strategy | None = None,
        add_special_tokens: bool = True,
        threads: int | None = None,
    ) -> Any:
        """Encode texts to ids.

        Parameters
        ----------
        tokenizer : Tokenizer, str or os.PathLike
            The tokenizer, or the name or folder of a model.
        max_length, truncation, add_special_tokens, threads
            As for `Tokenizer.encode_batch`.

        Returns
        -------
        polars.Expr or polars.Series
            List(UInt32).
        """
        options = {
            "max_length": max_length,
            "truncation": truncation,
            "add_special_tokens": add_special_tokens,
            "threads": threads,
        }
        function = partial(_encode, tokenizer=tokenizer_of(tokenizer), options=options)
        return self._map(function, _polars.List(_polars.UInt32))

    def encode_fields(
        self,
        tokenizer: Tokenizer | str | os.PathLike[str],
        *,
        max_length: int | None = None,
        truncation: bool | Strategy | None = None,
        add_special_tokens: bool = True,
        threads: int | None = None,
    ) -> Any:
        """Encode texts to ids, with their number and whether the text was truncated.

        Parameters
        ----------
        tokenizer : Tokenizer, str or os.PathLike
            The tokenizer, or the name or folder of a model.
        max_length, truncation, add_special_tokens, threads
            As for `Tokenizer.encode_batch`.

        Returns
        -------
        polars.Expr or polars.Series
            Struct of ``ids``, List(UInt32), ``length``, UInt32, and ``truncated``, Boolean.
        """
        options = {
            "max_length": max_length,
            "truncation": truncation,
            "add_special_tokens": add_special_tokens,
            "threads": threads,
        }
        function = partial(_encode_fields, tokenizer=tokenizer_of(tokenizer), options=options)
        ids = _polars.List(_polars.UInt32)
        return self._map(function, _polars.Struct({"ids": ids, "length": _polars.UInt32, "truncated": _polars.Boolean}))

    def embed(
        self,
        model: SentenceEncoder | str | os.PathLike[str] = "minilm",
        *,
        prompt_name: str | None = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
    ) -> Any:
        """Turn texts into sentence vectors.

        Parameters
        ----------
        model : SentenceEncoder, str or os.PathLike, default "minilm"
            The encoder, or its name or folder.
        prompt_name, normalize_embeddings, truncate_dim
            As for `SentenceEncoder.encode`.

        Returns
        -------
        polars.Expr or polars.Series
            Array(Float32, d).
        """
        encoder = encoder_of(model)
        width = encoder.dimension if truncate_dim is None else truncate_dim
        options = {
            "prompt_name": prompt_name,
            "normalize_embeddings": normalize_embeddings,
            "truncate_dim": truncate_dim,
        }
        function = partial(_embed, encoder=encoder, width=width, options=options)
        return self._map(function, _polars.Array(_polars.Float32, width))

    def _map(self, function: Callable[[Any], Any], dtype: Any) -> Any:
        """Apply a function of texts without null: to a series now, to an expression when it is computed."""
        with_nulls = partial(_with_nulls, function=function)
        if isinstance(self._texts, _polars.Series):
            return with_nulls(self._texts)
        return self._texts.map_batches(with_nulls, return_dtype=dtype, is_elementwise=True)


def _with_nulls(texts: Any, function: Callable[[Any], Any]) -> Any:
    """Apply a function to the texts that are not null.

    Raises
    ------
    InputError
        The type of the column is not text. An expression learns its type when it is computed.
    """
    if texts.dtype not in (_polars.String, _polars.Categorical, _polars.Enum, _polars.Null):
        raise InputError(not_text(f"the column {texts.name!r}", texts.dtype))
    texts = texts.cast(_polars.String)
    if not texts.null_count():
        return function(texts).alias(texts.name)
    valid = texts.is_not_null()
    found = function(texts.filter(valid))
    if not len(found):
        return found.extend_constant(None, len(texts)).alias(texts.name)
    place = valid.cum_sum().cast(_polars.Int64) - 1
    return found.gather(_polars.select(_polars.when(valid).then(place)).to_series()).alias(texts.name)


def _encode(texts: Any, tokenizer: Tokenizer, options: dict[str, Any]) -> Any:
    return _polars.Series(tokenizer.encode_batch(texts, **options))


def _encode_fields(texts: Any, tokenizer: Tokenizer, options: dict[str, Any]) -> Any:
    rows = tokenizer.encode_batch(texts, **options)
    columns = {
        "ids": _polars.Series(rows),
        "length": _polars.Series(rows.lengths, dtype=_polars.UInt32),
        "truncated": _polars.Series(rows.truncated, dtype=_polars.Boolean),
    }
    return _polars.DataFrame(columns).to_struct()


def _embed(texts: Any, encoder: SentenceEncoder, width: int, options: dict[str, Any]) -> Any:
    vectors = encoder.encode(texts, **options)
    return _polars.Series(vectors, dtype=_polars.Array(_polars.Float32, width))


_polars.api.register_expr_namespace("wordpiece")(WordPieceNamespace)
_polars.api.register_series_namespace("wordpiece")(WordPieceNamespace)
