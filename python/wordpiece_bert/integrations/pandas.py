"""Token ids and sentence vectors of series of pandas. Needs pandas and pyarrow.

The import of this module registers the accessor ``wordpiece`` of series: ``frame["text"].wordpiece.encode(tokenizer)``.
``tokenizer.encode_batch(frame["text"])`` and ``encoder.encode(frame["text"])`` need no import, and return arrays.

Stability: provisional.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.texts import warn_truncated
from wordpiece_bert.errors import InputError
from wordpiece_bert.integrations.arrow import checked_texts, embed_texts, encode_texts, encoded_columns
from wordpiece_bert.integrations.named_models import encoder_of, import_package
from wordpiece_bert.integrations.options import COLUMNS, NAMED, EmbeddingOptions, EncodingOptions
from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
from wordpiece_bert.tokenizer.parameters import ENCODING

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from wordpiece_bert.tokenizer.option_types import Strategy
    from wordpiece_bert.tokenizer.tokenizer import Tokenizer

__all__ = ["WordPieceAccessor"]

_pandas = import_package("pandas", "pandas")


class WordPieceAccessor:
    """The accessor ``wordpiece`` of series of texts. A missing text has missing results.

    Parameters
    ----------
    series : pandas.Series
        The texts.

    Examples
    --------
    >>> import pandas as pd
    >>> import wordpiece_bert.integrations.pandas
    >>> texts = pd.Series(["to bake bread", "a bicycle"])
    >>> texts.wordpiece.encode("models/words")["length"].tolist()
    [5, 4]
    >>> frame = texts.to_frame("text")
    >>> frame["vector"] = frame["text"].wordpiece.embed("models/static")
    >>> frame["vector"][0].shape
    (67,)
    >>> texts.wordpiece.embed_fields("models/static")["truncated"].tolist()
    [False, False]
    """

    def __init__(self, series: Any) -> None:
        self._series = series

    @completed_by(COLUMNS, ENCODING)
    def encode(
        self,
        tokenizer: Tokenizer | str | os.PathLike[str],
        *,
        max_length: int | None = None,
        truncation: bool | Strategy | None = None,
        add_special_tokens: bool = True,
        threads: int | None = None,
        ids_column: str = "ids",
    ) -> Any:
        """Encode texts to ids.

        Returns
        -------
        pandas.DataFrame
            The columns ``ids``, an int32 array for each text; ``length``, ``int32[pyarrow]``; and ``truncated``,
            ``bool[pyarrow]``; with the index of the series. ``to_parquet`` writes lists and numbers.

        Raises
        ------
        InputError
            The series has values that are not texts, or an option is wrong.
        """
        names = encoded_columns(ids_column)
        options = EncodingOptions(max_length, truncation, add_special_tokens, threads)
        fields = encode_texts(self._texts(), tokenizer, **vars(options))
        return self._frame(dict(zip(names, fields, strict=True)))

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
        pandas.Series
            A float32 array [d] for each text, None for a missing one; with the name and the index of the series.

        Raises
        ------
        InputError
            As for `encode`.

        Warns
        -----
        TruncationWarning
            Texts were truncated; `embed_fields` returns which.
        """
        encoder = encoder_of(model, dtype=dtype, encoder_options=encoder_options)
        vectors, truncated = self._embedded(encoder, EmbeddingOptions(prompt_name, normalize_embeddings, truncate_dim))
        cut = np.array([bool(one) for one in truncated.to_pylist()], np.bool_)  # a missing text has None
        warn_truncated(cut, encoder.max_seq_length, remedy="embed_fields returns which")
        return _pandas.Series(_column(vectors), self._series.index, name=self._series.name)

    @completed_by(COLUMNS, NAMED, SentenceEncoder.encode)
    def embed_fields(
        self,
        model: SentenceEncoder | str | os.PathLike[str] = "minilm",
        *,
        prompt_name: str | None = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        dtype: str | None = None,
        encoder_options: Mapping[str, Any] | None = None,
    ) -> Any:
        """Turn texts into sentence vectors, and return whether each text was truncated.

        Returns
        -------
        pandas.DataFrame
            The columns ``vector``, a float32 array [d] for each text, and ``truncated``, ``bool[pyarrow]``; with the
            index of the series.

        Raises
        ------
        InputError
            As for `encode`.
        """
        encoder = encoder_of(model, dtype=dtype, encoder_options=encoder_options)
        fields = self._embedded(encoder, EmbeddingOptions(prompt_name, normalize_embeddings, truncate_dim))
        return self._frame(dict(zip(("vector", "truncated"), fields, strict=True)))

    def _embedded(self, encoder: SentenceEncoder, options: EmbeddingOptions) -> tuple[Any, Any]:
        return embed_texts(self._texts(), encoder, **vars(options))

    def _texts(self) -> Any:
        pa = import_package("pyarrow", "arrow")
        called = f"the series {self._series.name!r}"
        try:
            texts = pa.array(self._series, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as cause:
            raise InputError(f"{called} has values that are no texts: {cause}") from cause
        except UnicodeEncodeError as cause:
            item = list(self._series).index(cause.object)
            raise InputError(
                f"{called}: item {item} has a lone surrogate at position {cause.start}: clean it"
            ) from cause
        return checked_texts(texts, called)

    def _frame(self, columns: dict[str, Any]) -> Any:
        return _pandas.DataFrame({name: _column(values) for name, values in columns.items()}, index=self._series.index)


def _column(values: Any) -> Any:
    """Return an Arrow array as a column: of lists as a NumPy array for each row, which share the memory of the lists.

    A column of Arrow's own lists would be written to Parquet, but pandas cannot read its type again from the file.
    """
    if not hasattr(values.type, "value_type"):  # no lists
        return _pandas.arrays.ArrowExtensionArray(values)
    return values.to_numpy(zero_copy_only=False)


_pandas.api.extensions.register_series_accessor("wordpiece")(WordPieceAccessor)
