"""Arrow batches with a column of texts to the same batches with token ids or vectors. Needs pyarrow.

These functions are the core of the other modules, and what users of pyarrow call. A null text has null results.

Stability: provisional.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError
from wordpiece_bert.integrations.named_models import encoder_of, import_package, tokenizer_of
from wordpiece_bert.integrations.options import COLUMNS, NAMED, EmbeddingOptions, EncodingOptions
from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
from wordpiece_bert.tokenizer.corpus.writers import check_ids_column
from wordpiece_bert.tokenizer.parameters import ENCODING

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    import pyarrow

    from wordpiece_bert.tokenizer.option_types import Strategy
    from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch
    from wordpiece_bert.tokenizer.tokenizer import Tokenizer

__all__ = ["embed", "embed_texts", "encode", "encode_texts", "ids_to_arrow", "vectors_to_arrow"]

Data = TypeVar("Data", "pyarrow.Table", "pyarrow.RecordBatch")

# The offsets of a list<int32> have 32 bits.
_MOST_VALUES = (1 << 31) - 1


@completed_by(COLUMNS, ENCODING)
def encode(
    data: Data,
    column: str,
    tokenizer: Tokenizer | str | os.PathLike[str],
    *,
    pair: str | None = None,
    max_length: int | None = None,
    truncation: bool | Strategy | None = None,
    add_special_tokens: bool = True,
    threads: int | None = None,
    ids_column: str = "ids",
) -> Data:
    """Add the token ids of a column of texts to a table or a record batch.

    Parameters
    ----------
    data : pyarrow.Table or pyarrow.RecordBatch
        The data.

    Returns
    -------
    pyarrow.Table or pyarrow.RecordBatch
        The data and three columns: ``ids``, list<int32>; ``length``, int32, the number of ids; ``truncated``, bool.

    Raises
    ------
    MissingPackageError
        pyarrow is not installed.
    InputError
        There is no such column, or its type is not text, or there is one of these names already, or an option is wrong.

    Examples
    --------
    >>> import pyarrow
    >>> from wordpiece_bert.integrations.arrow import encode
    >>> table = pyarrow.table({"text": ["to bake bread", "a bicycle"]})
    >>> encode(table, "text", "models/words").column_names
    ['text', 'ids', 'length', 'truncated']
    """
    names = encoded_columns(ids_column)
    _check_data(data, [column, pair], names)
    for name in (column, pair):
        if name is not None:
            checked_texts(data.column(name), f"the column {name!r}")
    options = EncodingOptions(max_length, truncation, add_special_tokens, threads)
    pairs = None if pair is None else data.column(pair)
    fields = encode_texts(data.column(column), tokenizer, pairs, **vars(options))
    for name, values in zip(names, fields, strict=True):
        data = data.append_column(name, values)
    return data


@completed_by(COLUMNS, NAMED, SentenceEncoder.encode)
def embed(
    data: Data,
    column: str,
    model: SentenceEncoder | str | os.PathLike[str] = "minilm",
    *,
    prompt_name: str | None = None,
    normalize_embeddings: bool = False,
    truncate_dim: int | None = None,
    dtype: str | None = None,
    encoder_options: Mapping[str, Any] | None = None,
) -> Data:
    """Add the sentence vectors of a column of texts to a table or a record batch.

    Parameters
    ----------
    data : pyarrow.Table or pyarrow.RecordBatch
        The data.

    Returns
    -------
    pyarrow.Table or pyarrow.RecordBatch
        The data and two columns: ``vector``, fixed_size_list<float32>[d]; ``truncated``, bool.

    Raises
    ------
    MissingPackageError
        pyarrow is not installed.
    InputError
        As for `encode`.

    Examples
    --------
    >>> import pyarrow
    >>> from wordpiece_bert.integrations.arrow import embed
    >>> table = pyarrow.table({"text": ["bread dough", None]})
    >>> found = embed(table, "text", "models/static")
    >>> found.column_names
    ['text', 'vector', 'truncated']
    >>> found["vector"].null_count
    1
    """
    _check_data(data, [column], EMBEDDED)
    checked_texts(data.column(column), f"the column {column!r}")
    options = EmbeddingOptions(prompt_name, normalize_embeddings, truncate_dim)
    encoder = encoder_of(model, dtype=dtype, encoder_options=encoder_options)
    fields = embed_texts(data.column(column), encoder, **vars(options))
    for name, values in zip(EMBEDDED, fields, strict=True):
        data = data.append_column(name, values)
    return data


#: The columns that `embed` adds.
EMBEDDED = ("vector", "truncated")


def encoded_columns(ids_column: str) -> tuple[str, str, str]:
    """Return the names of the columns that `encode` adds.

    Parameters
    ----------
    ids_column : str
        The name of the ids.

    Raises
    ------
    InputError
        It is not a str, or it is the name of another of the columns.
    """
    check_ids_column(ids_column, ["length", "truncated"])
    return ids_column, "length", "truncated"


@completed_by(COLUMNS, ENCODING)
def encode_texts(
    texts: pyarrow.Array | pyarrow.ChunkedArray,
    tokenizer: Tokenizer | str | os.PathLike[str],
    pairs: pyarrow.Array | pyarrow.ChunkedArray | None = None,
    *,
    max_length: int | None = None,
    truncation: bool | Strategy | None = None,
    add_special_tokens: bool = True,
    threads: int | None = None,
) -> tuple[pyarrow.Array, pyarrow.Array, pyarrow.Array]:
    """Return the ids, lengths and truncation of texts.

    Parameters
    ----------
    texts : pyarrow.Array or pyarrow.ChunkedArray
        The texts.
    pairs : pyarrow.Array or pyarrow.ChunkedArray, optional
        The second texts of pairs.

    Returns
    -------
    ids : pyarrow.Array
        list<int32>, null for a null text.
    lengths : pyarrow.Array
        int32.
    truncated : pyarrow.Array
        bool.

    Examples
    --------
    >>> import pyarrow
    >>> from wordpiece_bert.integrations.arrow import encode_texts
    >>> ids, lengths, truncated = encode_texts(
    ...     pyarrow.array(["to bake bread", None]), "models/words", max_length=4
    ... )
    >>> lengths.to_pylist(), truncated.to_pylist()
    ([4, None], [True, None])
    """
    pa = import_package("pyarrow", "arrow")
    columns = [checked_texts(texts, "texts")]
    if pairs is not None:
        columns.append(checked_texts(pairs, "pairs"))
    valid, given = _valid(columns)
    items = given[0] if pairs is None else pa.table(dict(zip("ab", given, strict=True)))
    options = EncodingOptions(max_length, truncation, add_special_tokens, threads)
    rows = options.encode(tokenizer_of(tokenizer), items)
    lengths = _spread(rows.lengths.astype(np.int32), valid)
    null = None if valid is None else ~valid
    ids = _lists(rows.ids.view(np.int32), lengths, null)
    return ids, pa.array(lengths, mask=null), pa.array(_spread(rows.truncated, valid), mask=null)


@completed_by(COLUMNS, NAMED, SentenceEncoder.encode)
def embed_texts(
    texts: pyarrow.Array | pyarrow.ChunkedArray,
    model: SentenceEncoder | str | os.PathLike[str] = "minilm",
    *,
    prompt_name: str | None = None,
    normalize_embeddings: bool = False,
    truncate_dim: int | None = None,
    dtype: str | None = None,
    encoder_options: Mapping[str, Any] | None = None,
) -> tuple[pyarrow.Array, pyarrow.Array]:
    """Return the vectors and truncation of texts.

    Parameters
    ----------
    texts : pyarrow.Array or pyarrow.ChunkedArray
        The texts.

    Returns
    -------
    vectors : pyarrow.Array
        fixed_size_list<float32>[d], null for a null text.
    truncated : pyarrow.Array
        bool.

    Examples
    --------
    >>> import pyarrow
    >>> from wordpiece_bert.integrations.arrow import embed_texts
    >>> vectors, truncated = embed_texts(
    ...     pyarrow.array(["bread dough", None]), "models/static"
    ... )
    >>> vectors.type, truncated.to_pylist()
    (FixedSizeListType(fixed_size_list<item: float>[67]), [False, None])
    """
    pa = import_package("pyarrow", "arrow")
    encoder = encoder_of(model, dtype=dtype, encoder_options=encoder_options)
    valid, [given] = _valid([checked_texts(texts, "texts")])
    options = EmbeddingOptions(prompt_name, normalize_embeddings, truncate_dim)
    vectors, truncated = options.encode(encoder, given)
    null = None if valid is None else ~valid
    return vectors_to_arrow(_spread(vectors, valid), null), pa.array(_spread(truncated, valid), mask=null)


def ids_to_arrow(rows: RaggedBatch) -> pyarrow.Array:
    """Return the ids of a batch as list<int32>, the only type of lists that Spark reads; the ids are not copied.

    `RaggedBatch.to_arrow` has no limit to the number of ids, and returns large_list<uint32>.

    Parameters
    ----------
    rows : RaggedBatch
        The rows.

    Returns
    -------
    pyarrow.Array
        One list for each row.

    Raises
    ------
    InputError
        There are 2³¹ ids or more.

    Examples
    --------
    >>> from wordpiece_bert import Tokenizer
    >>> from wordpiece_bert.integrations.arrow import ids_to_arrow
    >>> ids_to_arrow(
    ...     Tokenizer.from_pretrained("models/words").encode_batch(["to bake bread"])
    ... ).type
    ListType(list<item: int32>)
    """
    return _lists(rows.ids.view(np.int32), rows.lengths, None)


def vectors_to_arrow(vectors: npt.NDArray[Any], null: npt.NDArray[np.bool_] | None = None) -> pyarrow.Array:
    """Return vectors as lists of a fixed size, without a copy.

    Parameters
    ----------
    vectors : ndarray
        The vectors, [n, d].
    null : ndarray of bool, optional
        Which of them are null, [n].

    Returns
    -------
    pyarrow.Array
        fixed_size_list[d] of the type of the vectors.

    Raises
    ------
    InputError
        The array has not two dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.integrations.arrow import vectors_to_arrow
    >>> vectors_to_arrow(
    ...     np.ones((2, 3), np.float32), null=np.array([False, True])
    ... ).to_pylist()
    [[1.0, 1.0, 1.0], None]
    """
    pa = import_package("pyarrow", "arrow")
    if np.ndim(vectors) != 2:
        raise InputError(f"vectors must be an array [n, d], not one of shape {np.shape(vectors)}")
    values = pa.array(np.ascontiguousarray(vectors).reshape(-1))
    mask = None if null is None or not null.any() else pa.array(null)
    if not vectors.shape[1]:
        raise InputError("vectors must have at least one number each")
    return pa.FixedSizeListArray.from_arrays(values, vectors.shape[1], mask=mask)


def _check_data(data: object, needed: Sequence[str | None], added: Sequence[str]) -> None:
    """Check the type and the columns of data."""
    pa = import_package("pyarrow", "arrow")
    if not isinstance(data, pa.Table | pa.RecordBatch):
        raise InputError(
            f"data must be a pyarrow.Table or RecordBatch, not {type(data).__name__}: pyarrow.table makes one"
        )
    check_columns(data.schema.names, needed, added)


def check_columns(names: Sequence[str], needed: Sequence[str | None], added: Sequence[str]) -> None:
    """Check the names of columns.

    Parameters
    ----------
    names : sequence of str
        The columns that there are.
    needed : sequence of str or None
        Columns that must be among them.
    added : sequence of str
        Columns that must not be.

    Raises
    ------
    InputError
        A column is missing or there twice, or exists already.
    """
    for name in needed:
        if name is not None and list(names).count(name) != 1:
            what = "several columns" if name in names else "no column"
            raise InputError(f"{what} {name!r}; the data have {', '.join(names) or 'none'}")
    for name in added:
        if name in names:
            raise InputError(
                f"the data have a column {name!r} already, which the result would have twice: rename it first"
            )


def checked_texts(column: Any, called: str) -> Any:
    """Return a column of texts; one that has nulls alone, and so no type, as a column of strings.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray
        The column.
    called : str
        What a message calls it: ``"the column 'text'"``.

    Raises
    ------
    InputError
        It is not a column of Arrow, or its type is not text.
    """
    pa = import_package("pyarrow", "arrow")
    if not isinstance(column, pa.Array | pa.ChunkedArray):
        raise InputError(f"{called} must be a column of Arrow, not {type(column).__name__}: pyarrow.array makes one")
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_null(kind):
        return column.cast(pa.string())
    if kind not in (pa.string(), pa.large_string(), pa.string_view()):
        raise InputError(not_text(called, column.type))
    return column


def not_text(called: str, kind: object) -> str:
    """Return the message for a column whose type is not text.

    Parameters
    ----------
    called : str
        What the message calls the column.
    kind : object
        Its type, as its library writes it.
    """
    return f"{called} has the type {kind}, which is not text: name a column of strings, or cast it to strings first"


def _valid(columns: list[Any]) -> tuple[npt.NDArray[np.bool_] | None, list[Any]]:
    """Return which rows have no null, or None if all, and the columns without the other rows."""
    if not any(column.null_count for column in columns):
        return None, columns
    valid = np.ones(len(columns[0]), np.bool_)
    for column in columns:
        valid &= np.asarray(column.is_valid())
    return valid, [_filterable(column).filter(valid) for column in columns]


def _filterable(column: Any) -> Any:
    """Return a column that pyarrow can filter, which it cannot for string views."""
    pa = import_package("pyarrow", "arrow")
    if column.type != pa.string_view():
        return column
    try:
        return column.cast(pa.large_string())
    except pa.ArrowNotImplementedError:  # pyarrow 17
        return pa.array(column.to_pylist(), pa.large_string())


def _spread(values: npt.NDArray[Any], valid: npt.NDArray[np.bool_] | None) -> npt.NDArray[Any]:
    """Return values of the rows without null at their places among all rows, with zeros between them."""
    if valid is None:
        return values
    spread = np.zeros((len(valid), *values.shape[1:]), values.dtype)
    spread[valid] = values
    return spread


def _lists(values: npt.NDArray[Any], lengths: npt.NDArray[Any], null: npt.NDArray[np.bool_] | None) -> Any:
    """Return consecutive lists of some lengths as list<...>."""
    pa = import_package("pyarrow", "arrow")
    if len(values) > _MOST_VALUES:
        raise InputError(f"{len(values)} ids do not fit one column of list<int32>: encode the rows in several batches")
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    mask = None if null is None or not null.any() else pa.array(null)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values), mask=mask)
