"""Token ids, sentence vectors, word counts and pre-training examples of data frames of Spark.

Needs pyspark, and pyarrow on every worker.

Each function is one ``mapInArrow``: a task reads record batches and returns them with new columns, on one thread. Every
worker must have the files of a model; each worker process loads it once.

Stability: provisional.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from wordpiece_bert._internal.checks import check_instance, whole_number
from wordpiece_bert._internal.parameters import completed_by, taking
from wordpiece_bert._internal.recent import Recent
from wordpiece_bert.errors import InputError
from wordpiece_bert.integrations import arrow
from wordpiece_bert.integrations.named_models import checked_options, encoder_of, import_package
from wordpiece_bert.integrations.options import COLUMNS, NAMED, EmbeddingOptions, EncodingOptions
from wordpiece_bert.pretraining.batches import example_batches
from wordpiece_bert.sentence.dense.parts import with_threads
from wordpiece_bert.sentence.dense.recent_rows import RECENT_BYTES, recent_vectors
from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
from wordpiece_bert.sentence.parts import source_of
from wordpiece_bert.sentence.source import lasting_name
from wordpiece_bert.tokenizer.parameters import ENCODING
from wordpiece_bert.tokenizer.tokenizer import Tokenizer
from wordpiece_bert.training.spark import check_text_columns, count_words

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from wordpiece_bert.pretraining.batches import BatchArguments
    from wordpiece_bert.tokenizer.option_types import Strategy

__all__ = ["count_words", "embed", "encode", "pretraining_examples"]

# The most rows that a task encodes together; Spark's own batches have 10,000 rows of any size.
_ROWS = 1024
# The most characters, unless a single text has more: about 64 thousand tokens.
_CHARACTERS = 1 << 18


@completed_by(COLUMNS, ENCODING)
def encode(
    frame: DataFrame,
    column: str,
    tokenizer: Tokenizer | str | os.PathLike[str],
    *,
    pair: str | None = None,
    max_length: int | None = None,
    truncation: bool | Strategy | None = None,
    add_special_tokens: bool = True,
    ids_column: str = "ids",
) -> DataFrame:
    """Add the token ids of a column of texts.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        The data frame.
    tokenizer : Tokenizer, str or os.PathLike
        The tokenizer, which is sent to the workers once, or the name or folder of a model that they have.

    Returns
    -------
    pyspark.sql.DataFrame
        The frame and three columns: ``ids``, array<int>; ``length``, int; ``truncated``, boolean.

    Raises
    ------
    MissingPackageError
        pyspark is not installed.
    InputError
        There is no such column, or its type is not text, or there is one of these names already, or an option is wrong.

    Examples
    --------
    >>> from wordpiece_bert.integrations.spark import encode
    >>> rows = encode(
    ...     spark.read.parquet("texts"), "text", "minilm", max_length=128
    ... )  # doctest: +SKIP
    >>> rows.write.parquet("ids")  # doctest: +SKIP
    """
    names = arrow.encoded_columns(ids_column)
    _check_frame(frame, [column, pair], names)
    options = EncodingOptions(max_length, truncation, add_special_tokens, threads=1)  # Spark runs one task per core
    given = tokenizer if isinstance(tokenizer, Tokenizer) else lasting_name(tokenizer)
    if isinstance(given, Tokenizer):
        options.encode(given, [])  # reports wrong options here, not in a task
    function = partial(_encode_batches, column=column, pair=pair, tokenizer=given, options=options, name=ids_column)
    return _mapped(frame, function, dict(zip(names, ("array<int>", "int", "boolean"), strict=True)))


@completed_by(COLUMNS, NAMED, SentenceEncoder.encode)
def embed(
    frame: DataFrame,
    column: str,
    model: SentenceEncoder | str | os.PathLike[str] = "minilm",
    *,
    prompt_name: str | None = None,
    normalize_embeddings: bool = False,
    truncate_dim: int | None = None,
    dtype: str | None = None,
    encoder_options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """Add the sentence vectors of a column of texts.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        The data frame.
    model : SentenceEncoder, str or os.PathLike, default "minilm"
        The name or folder of a model, which every worker must have; or an encoder that was loaded from one, which is
        sent with its settings: dtype, prompts, longest row and dimension.

    Returns
    -------
    pyspark.sql.DataFrame
        The frame and two columns: ``vector``, array<float>; ``truncated``, boolean.

    Raises
    ------
    MissingPackageError
        pyspark is not installed.
    InputError
        There is no such column, or its type is not text, or there is one of these names already, or the encoder comes
        from no folder.

    Examples
    --------
    >>> from wordpiece_bert.integrations.spark import embed
    >>> vectors = embed(spark.read.parquet("texts"), "text", "minilm")  # doctest: +SKIP
    >>> vectors.write.parquet("vectors")  # doctest: +SKIP
    """
    _check_frame(frame, [column], arrow.EMBEDDED)
    loading = checked_options(model, dtype, encoder_options, threads=1)  # Spark runs one task per core
    sent: SentenceEncoder | str
    if isinstance(model, SentenceEncoder):
        source = source_of(model)
        if source is None:
            raise InputError(
                "the encoder comes from no folder, and tasks have none of its weights: save it, and pass the folder"
            )
        source.check_contents()
        sent, loading = with_threads(model, source, 1), {}
    else:
        sent = lasting_name(model)
    options = EmbeddingOptions(prompt_name, normalize_embeddings, truncate_dim)
    function = partial(_embed_batches, column=column, model=sent, loading=loading, options=options)
    return _mapped(frame, function, {"vector": "array<float>", "truncated": "boolean"})


@completed_by(example_batches)
@taking(example_batches)
def pretraining_examples(
    frame: DataFrame,
    column: str,
    tokenizer: Tokenizer,
    *,
    id_column: str,
    partitions: int | None = None,
    **options: Unpack[BatchArguments],
) -> DataFrame:
    """Make pre-training examples of a column of documents, deterministically by the ids of the documents.

    The frame is divided by id, and each partition is sorted by it and is one shard: its rows and masks are the same
    as from `wordpiece_bert.pretraining.build_examples` for a store whose shard has the same documents, also after a
    task was killed and retried.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        The data frame.
    column : str
        The column of documents; their lines are sentences.
    tokenizer : Tokenizer
        The tokenizer, which is sent to the workers once.
    id_column : str
        The column of the documents' ids: integers or strings, each once.
    partitions : int, optional
        The number of partitions, by default as for Spark's shuffles (``spark.sql.shuffle.partitions``). Random second
        segments are of the same partition, so it is part of what determines the rows.

    Returns
    -------
    pyspark.sql.DataFrame
        The examples: ``input_ids``, ``token_type_ids``, ``next_sentence_label`` or ``sentence_order_label``, with
        `masking` ``labels``, and with `packing` ``position_ids`` and ``cu_seqlens``.

    Raises
    ------
    MissingPackageError
        pyspark is not installed.
    InputError
        There is no such column, or an option is wrong.
    ConfigError
        The tokenizer has no [CLS] or no [SEP] token.

    Examples
    --------
    >>> rows = pretraining_examples(
    ...     frame, "text", tokenizer, id_column="id", partitions=64
    ... )  # doctest: +SKIP
    >>> rows.write.parquet("examples")  # doctest: +SKIP
    """
    examples = example_batches(tokenizer, **options)
    _check_frame(frame, [column], ())
    arrow.check_columns(frame.columns, [id_column], ())
    check_text_columns(frame, [id_column], others=("tinyint", "smallint", "int", "bigint"))
    shuffle = "spark.sql.shuffle.partitions"
    if partitions is None:
        count = int(frame.sparkSession.conf.get(shuffle) or 1)
    else:
        count = whole_number("partitions", partitions, 1)
    # In backticks, so that Spark does not read dots in a name as a path.
    documents = frame.select(frame[f"`{id_column}`"].alias("id"), frame[f"`{column}`"].alias("text"))
    return documents.repartition(count, "id").sortWithinPartitions("id").mapInArrow(examples, examples.schema)


def _check_frame(frame: DataFrame, texts: Sequence[str | None], added: Sequence[str]) -> None:
    """Check, before a job starts, that a frame has columns of texts, and none of those that are added."""
    check_instance("frame", frame, import_package("pyspark.sql", "spark").DataFrame)
    arrow.check_columns(frame.columns, texts, added)
    check_text_columns(frame, texts)


def _mapped(frame: DataFrame, function: Any, columns: dict[str, str]) -> DataFrame:
    """Map the batches of a frame to batches with more columns."""
    types = import_package("pyspark.sql.types", "spark")
    schema = types.StructType(list(frame.schema.fields))
    for name, kind in columns.items():
        schema = schema.add(name, types._parse_datatype_string(kind), nullable=True)
    return frame.mapInArrow(function, schema)


def _encode_batches(
    batches: Iterable[Any],
    column: str,
    pair: str | None,
    tokenizer: Tokenizer | str,
    options: EncodingOptions,
    name: str,
) -> Iterator[Any]:
    for batch in _slices(batches, column):
        yield arrow.encode(batch, column, tokenizer, pair=pair, **vars(options), ids_column=name)


def _embed_batches(
    batches: Iterable[Any],
    column: str,
    model: SentenceEncoder | str,
    loading: dict[str, Any],
    options: EmbeddingOptions,
) -> Iterator[Any]:
    import pyarrow as pa

    encoder, recent = encoder_of(model, encoder_options=loading), Recent(RECENT_BYTES)
    for batch in _slices(batches, column):
        with recent_vectors(recent):
            found = arrow.embed(batch, column, encoder, **vars(options))
        # Spark reads lists, and none of a fixed size.
        index = found.schema.get_field_index("vector")
        yield found.set_column(index, "vector", found.column("vector").cast(pa.list_(pa.float32())))


def _slices(batches: Iterable[Any], column: str) -> Iterator[Any]:
    """Divide record batches into ones with a bounded number of rows and characters."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for batch in batches:
        index = batch.schema.get_field_index(column)
        texts = batch.column(index)
        if texts.type not in (pa.string(), pa.large_string()):
            batch = batch.set_column(index, column, texts.cast(pa.string()))
            texts = batch.column(index)
        sizes = pc.fill_null(pc.utf8_length(texts), 0).to_numpy(zero_copy_only=False)
        start = characters = 0
        for row, size in enumerate(sizes.tolist()):
            if row > start and (characters + size > _CHARACTERS or row - start == _ROWS):
                yield batch.slice(start, row - start)
                start, characters = row, 0
            characters += size
        if batch.num_rows:
            yield batch.slice(start)
