"""Counting words on Spark: each task counts its partition, Spark adds the counts up, the driver gets those kept.

Needs pyspark (``pip install 'wordpiece-bert[spark]'``) on the driver, and this package and pyarrow on every worker.

Stability: provisional.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.checks import whole_number
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.parts import core_of
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.parameters import NORMALIZING
from wordpiece_bert.training.counts import WordCounts, restored
from wordpiece_bert.training.counts_file import CountsInfo, columns_of
from wordpiece_bert.training.options import NormalizerSettings, normalizer_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

__all__ = ["count_words"]

# One row per word. No text has the empty word, so its row holds the number of texts and bytes that a task has read.
SCHEMA = "word string, count bigint, texts bigint, bytes bigint"
TOTALS = ""

# A task counts this many bytes of texts at a time, and returns this many rows at a time.
_GROUP_BYTES = 64 << 20
_ROWS_PER_BATCH = 1 << 16


@completed_by(NORMALIZING)
def count_words(
    frame: DataFrame,
    column: str | None = None,
    *,
    lowercase: bool = True,
    strip_accents: bool | None = None,
    clean_text: bool = True,
    tokenize_chinese_chars: bool = True,
    min_count: int = 1,
    max_distinct_words: int | None = None,
) -> WordCounts:
    """Count the words of a column of texts on Spark.

    Each task counts its partition (``mapInArrow``), Spark adds the counts up (``groupBy("word")``), and the driver
    collects the distinct words. The result is the same as from `WordCounts.from_texts` for all texts on one machine.

    With `min_count` and `max_distinct_words` the executors also drop rare words, by their counts in all texts, and the
    driver gets the others alone. Then `WordCounts.dropped` says how many words were dropped, and
    `WordCounts.undercount` how often the most frequent of them occurred.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        A data frame. Nulls are skipped.
    column : str, optional
        The column of texts. It may be omitted if the frame has only one.
    min_count : int, default 1
        Words that occur less often are dropped.
    max_distinct_words : int, optional
        The most words that are kept: the most frequent, and of equally frequent ones the first by their bytes.

    Returns
    -------
    WordCounts
        The counts, for `train_vocab` or to save: ``count_words(frame).save("counts.parquet")``.

    Raises
    ------
    InputError
        There is no such column, or its type is not text, or an option is wrong.

    Examples
    --------
    >>> from wordpiece_bert.training.spark import count_words
    >>> counts = count_words(spark.read.text("wiki/*.txt"))  # doctest: +SKIP
    >>> counts.save("counts.parquet")  # doctest: +SKIP
    """
    from pyspark.sql import functions

    settings = normalizer_settings(lowercase, strip_accents, clean_text, tokenize_chinese_chars)
    least = whole_number("min_count", min_count, 1)
    most = None if max_distinct_words is None else whole_number("max_distinct_words", max_distinct_words, 1)
    if column is None and len(frame.columns) != 1:
        raise InputError(f"the frame has the columns {', '.join(frame.columns)}: pass column=, the one with the texts")
    chosen = frame.columns[0] if column is None else column
    if chosen not in frame.columns:
        raise InputError(f"no column {chosen!r}; the frame has {', '.join(frame.columns)}")
    check_text_columns(frame, [chosen])
    # In backticks, so that Spark does not read dots in the name as a path.
    texts = frame.select(frame[f"`{chosen}`"].cast("string").alias("text")).dropna()
    parts = texts.mapInArrow(partial(_count_partition, settings=settings), SCHEMA)
    sums = [functions.sum(name).alias(name) for name in ("count", "texts", "bytes")]
    words = parts.groupBy("word").agg(*sums)
    if least == 1 and most is None:
        return _counts_of(words.toArrow(), settings)
    words = words.persist()  # counted once, read twice
    try:
        return _kept_counts(words, least, most, settings)
    finally:
        words.unpersist()


def _kept_counts(words: DataFrame, least: int, most: int | None, settings: NormalizerSettings) -> WordCounts:
    """Return the counts of the words that are kept of a frame with all words."""
    from pyspark.sql import functions

    word, count = words["word"], words["count"]
    kept = words.where((count >= least) | (word == TOTALS))
    if most is not None:
        # The row of totals comes first. Spark takes the first rows of each partition, and joins them on one executor.
        kept = kept.orderBy((word == TOTALS).desc(), count.desc(), word).limit(most + 1)
    table = kept.toArrow()
    rare = count < least
    if most is not None and len(table) == most + 1:
        [last] = table.slice(most).to_pylist()
        lowest = last["count"]
        rare = rare | (count < lowest) | ((count == lowest) & (word > last["word"]))
    numbers = (functions.count("*"), functions.max("count"))
    [(dropped, undercount)] = words.where(rare & (word != TOTALS)).agg(*numbers).collect()
    return _counts_of(table, settings, dropped=dropped, undercount=undercount or 0)


def check_text_columns(frame: DataFrame, names: Iterable[str | None], others: tuple[str, ...] = ()) -> None:
    """Check, before a job starts, that columns of a data frame are texts.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        The data frame.
    names : iterable of str or None
        Columns that it has; None is skipped.
    others : tuple of str
        Further types that are accepted, by Spark's names for them.

    Raises
    ------
    InputError
        The type of one is not text.
    """
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    for name in names:
        # "void" is the type of a column that has nulls alone; "char(3)", "string collate UTF8_LCASE" are strings, too.
        if name is None or types[name].startswith(("string", "char", "varchar")) or types[name] in ("void", *others):
            continue
        allowed = "not text" if not others else f"neither text nor {' nor '.join(others)}"
        raise InputError(f"the column {name!r} has the type {types[name]}, which is {allowed}: cast it to string first")


def _count_partition(batches: Iterable[Any], settings: NormalizerSettings) -> Iterator[Any]:
    """Count the texts of a task: record batches of texts to record batches of words."""
    import pyarrow as pa

    counts: WordCounts | None = None
    for column in _grouped(batches):
        # One thread, because Spark runs one task per core.
        part = WordCounts.from_texts(pa.chunked_array(column), threads=1, **settings.as_dict())
        counts = part if counts is None else counts + part
    if counts is None:
        return
    text, ends, numbers = core_of(counts).columns()
    words = pa.Array.from_buffers(
        pa.large_string(), len(counts), [None, pa.py_buffer(b"\0" * 8 + ends.tobytes()), pa.py_buffer(text)]
    )
    totals = ([TOTALS], [0], [counts.texts], [counts.bytes])
    names = ["word", "count", "texts", "bytes"]
    yield pa.RecordBatch.from_arrays([pa.array(values) for values in totals], names=names)
    for start in range(0, len(counts), _ROWS_PER_BATCH):
        part = words.slice(start, _ROWS_PER_BATCH).cast(pa.string())
        zeros = pa.array([0] * len(part), pa.int64())
        count = pa.array(numbers[start : start + _ROWS_PER_BATCH]).cast(pa.int64())
        yield pa.RecordBatch.from_arrays([part, count, zeros, zeros], names=names)


def _grouped(batches: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield the columns of record batches in groups of about `_GROUP_BYTES`."""
    group: list[Any] = []
    size = 0
    for batch in batches:
        group.append(batch.column(0))
        size += batch.nbytes
        if size > _GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _counts_of(table: Any, settings: NormalizerSettings, **dropped: int) -> WordCounts:
    """Return the counts in a table that Spark has collected."""
    import pyarrow.compute as pc

    is_total = pc.equal(table["word"], TOTALS)
    totals = table.filter(is_total).to_pylist()
    text, ends, counts, _ = columns_of(table.filter(pc.invert(is_total)).select(["word", "count"]))
    info = CountsInfo(
        settings=settings,
        texts=totals[0]["texts"] if totals else 0,
        bytes=totals[0]["bytes"] if totals else 0,
        **dropped,
    )
    return restored(WordCounts, text, ends, counts, info)
