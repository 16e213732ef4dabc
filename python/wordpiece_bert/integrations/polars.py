"""Token ids and sentence vectors as expressions of polars. Needs polars.

The import of this module registers the namespace ``wordpiece`` of expressions and series::

    import wordpiece_bert.integrations.polars

    frame.with_columns(ids=pl.col("text").wordpiece.encode(tokenizer))

Expressions work in lazy frames and in the streaming engine, which calls them part by part. A null text has null
results.

Stability: provisional.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.texts import warn_truncated
from wordpiece_bert.errors import InputError
from wordpiece_bert.integrations.arrow import encoded_columns, not_text
from wordpiece_bert.integrations.named_models import encoder_of, import_package, tokenizer_of
from wordpiece_bert.integrations.options import COLUMNS, NAMED, EmbeddingOptions, EncodingOptions
from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
from wordpiece_bert.tokenizer.parameters import ENCODING

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from wordpiece_bert.tokenizer.option_types import Strategy
    from wordpiece_bert.tokenizer.tokenizer import Tokenizer

__all__ = ["WordPieceNamespace"]

_polars = import_package("polars", "polars")


class WordPieceNamespace:
    """The namespace ``wordpiece`` of ``pl.Expr`` and ``pl.Series``.

    Parameters
    ----------
    texts : polars.Expr or polars.Series
        A column of texts.

    Examples
    --------
    >>> import polars as pl
    >>> import wordpiece_bert.integrations.polars
    >>> frame = pl.DataFrame({"text": ["to bake bread", "a bicycle"]})
    >>> frame.select(pl.col("text").wordpiece.encode("models/words").list.len())[
    ...     "text"
    ... ].to_list()
    [5, 4]
    >>> frame["text"].wordpiece.embed("models/static").dtype
    Array(Float32, shape=(67,))
    >>> frame["text"].wordpiece.encode_fields("models/words").struct.fields
    ['ids', 'length', 'truncated']
    """

    def __init__(self, texts: Any) -> None:
        self._texts = texts

    @completed_by(COLUMNS, ENCODING)
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

        Returns
        -------
        polars.Expr or polars.Series
            List(UInt32).
        """
        options = EncodingOptions(max_length, truncation, add_special_tokens, threads)
        function = partial(_encode, tokenizer=tokenizer_of(tokenizer), options=options)
        return self._map(function, _polars.List(_polars.UInt32))

    @completed_by(COLUMNS, ENCODING)
    def encode_fields(
        self,
        tokenizer: Tokenizer | str | os.PathLike[str],
        *,
        max_length: int | None = None,
        truncation: bool | Strategy | None = None,
        add_special_tokens: bool = True,
        threads: int | None = None,
        ids_column: str = "ids",
    ) -> Any:
        """Encode texts to ids, with their number and whether the text was truncated.

        Returns
        -------
        polars.Expr or polars.Series
            Struct of ``ids``, List(UInt32), ``length``, UInt32, and ``truncated``, Boolean.
        """
        options = EncodingOptions(max_length, truncation, add_special_tokens, threads)
        names = encoded_columns(ids_column)
        function = partial(_encode_fields, tokenizer=tokenizer_of(tokenizer), options=options, names=names)
        types = (_polars.List(_polars.UInt32), _polars.UInt32, _polars.Boolean)
        return self._map(function, _polars.Struct(dict(zip(names, types, strict=True))))

    @completed_by(COLUMNS, NAMED, SentenceEncoder.encode)
    def embed(
        self,
        model: SentenceEncoder | str | os.PathLike[str] = "minilm",
        *,
        prompt_name: str | None = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        dtype: str | None = None,
        encoder_options: Mapping[str, Any] | None = None,
    ) -> Any:
        """Turn texts into sentence vectors.

        Returns
        -------
        polars.Expr or polars.Series
            Array(Float32, d).

        Warns
        -----
        TruncationWarning
            Texts were truncated, when they are computed.
        """
        encoder = encoder_of(model, dtype=dtype, encoder_options=encoder_options)
        options = EmbeddingOptions(prompt_name, normalize_embeddings, truncate_dim)
        width = options.width(encoder)
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


def _encode(texts: Any, tokenizer: Tokenizer, options: EncodingOptions) -> Any:
    return _polars.Series(options.encode(tokenizer, texts))


def _encode_fields(texts: Any, tokenizer: Tokenizer, options: EncodingOptions, names: tuple[str, str, str]) -> Any:
    rows = options.encode(tokenizer, texts)
    columns = (
        _polars.Series(rows),
        _polars.Series(rows.lengths, dtype=_polars.UInt32),
        _polars.Series(rows.truncated, dtype=_polars.Boolean),
    )
    return _polars.DataFrame(dict(zip(names, columns, strict=True))).to_struct()


def _embed(texts: Any, encoder: SentenceEncoder, width: int, options: EmbeddingOptions) -> Any:
    vectors, truncated = options.encode(encoder, texts)
    remedy = "SentenceEncoder.encode returns which"
    warn_truncated(truncated, encoder.max_seq_length, "texts that are not null", remedy)
    return _polars.Series(vectors, dtype=_polars.Array(_polars.Float32, width))


_polars.api.register_expr_namespace("wordpiece")(WordPieceNamespace)
_polars.api.register_series_namespace("wordpiece")(WordPieceNamespace)
