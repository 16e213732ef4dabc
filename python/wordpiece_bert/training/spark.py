"""Counting words on Spark: our code inside each task, Spark's own sum, and what it comes to on the driver.

Needs pyspark (``pip install 'wordpiece-bert[spark]'``) on the driver, and this package and pyarrow on every worker.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from wordpiece_bert import _core
from wordpiece_bert.errors import InputError
from wordpiece_bert.training.counts import WordCounts
from wordpiece_bert.training.counts_file import CountsInfo, columns_of
from wordpiece_bert.training.options import NormalizerOptions, NormalizerSettings, known_options, settings_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

__all__ = ["count_words"]

# One row a word. The row of the empty word, which no text has, holds how many texts and bytes a task has read.
SCHEMA = "word string, count bigint, texts bigint, bytes bigint"
TOTALS = ""

# Bytes of texts that a task holds at a time.
_GROUP = 64 << 20
# Rows that a task hands back at a time.
_ROWS = 1 << 16


def count_words(frame: DataFrame, column: str | None = None, **options: Unpack[NormalizerOptions]) -> WordCounts:
    """Count the words of a column of texts on Spark.

    Each task counts its partition (``mapInArrow``), Spark adds the counts up (``groupBy("word")``), and the distinct
    words come to the driver. They are what `WordCounts.from_texts` would give for all texts on one machine.

    Parameters
    ----------
    frame
        A data frame; a null is no text and is left out.
    column
        The column with the texts; may be left out where there is one column only.
    **options
        The normalizer: `lowercase`, `strip_accents`, `clean_text`, `tokenize_chinese_chars`.

    Returns
    -------
    WordCounts
        For `train_vocab`, or to save: ``count_words(frame).save("counts.parquet")``.

    Raises
    ------
    InputError
        No such column, or a wrong option.
    """
    from pyspark.sql import functions

    known_options(options, NormalizerOptions.__annotations__, "count_words")
    settings = settings_of(options)
    if column is None and len(frame.columns) != 1:
        message = f"the frame has the columns {', '.join(frame.columns)}: say which one holds the texts"
        raise InputError(message)
    chosen = frame.columns[0] if column is None else column
    if chosen not in frame.columns:
        message = f"no column {chosen!r}; the frame has {', '.join(frame.columns)}"
        raise InputError(message)
    # By name in a struct of its own, so that dots in a name are no path.
    texts = frame.select(frame[f"`{chosen}`"].cast("string").alias("text")).dropna()
    parts = texts.mapInArrow(partial(_count_partition, settings=settings), SCHEMA)
    sums = [functions.sum(name).alias(name) for name in ("count", "texts", "bytes")]
    return _collected(parts.groupBy("word").agg(*sums).toArrow(), settings)


def _count_partition(batches: Iterable[Any], settings: NormalizerSettings) -> Iterator[Any]:
    """Count the texts of a task: record batches in, record batches out."""
    import pyarrow as pa

    counts: WordCounts | None = None
    for column in _grouped(batches):
        # Spark runs a task on every core already.
        part = WordCounts.from_texts(pa.chunked_array(column), threads=1, **settings.as_dict())
        counts = part if counts is None else counts + part
    if counts is None:
        return
    text, ends, numbers = counts._inner.columns()
    words = pa.Array.from_buffers(
        pa.large_string(), len(counts), [None, pa.py_buffer(b"\0" * 8 + ends.tobytes()), pa.py_buffer(text)]
    )
    totals = ([TOTALS], [0], [counts.texts], [counts.bytes])
    names = ["word", "count", "texts", "bytes"]
    yield pa.RecordBatch.from_arrays([pa.array(values) for values in totals], names=names)
    for start in range(0, len(counts), _ROWS):
        part = words.slice(start, _ROWS).cast(pa.string())
        zeros = pa.array([0] * len(part), pa.int64())
        count = pa.array(numbers[start : start + _ROWS]).cast(pa.int64())
        yield pa.RecordBatch.from_arrays([part, count, zeros, zeros], names=names)


def _grouped(batches: Iterable[Any]) -> Iterator[list[Any]]:
    """Gather the columns of record batches until they are worth counting."""
    group: list[Any] = []
    size = 0
    for batch in batches:
        group.append(batch.column(0))
        size += batch.nbytes
        if size > _GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group


def _collected(table: Any, settings: NormalizerSettings) -> WordCounts:  # noqa: ANN401
    """Make counts of the sums that Spark has collected."""
    import pyarrow.compute as pc

    is_total = pc.equal(table["word"], TOTALS)
    totals = table.filter(is_total).to_pylist()
    text, ends, counts, _ = columns_of(table.filter(pc.invert(is_total)).select(["word", "count"]))
    info = CountsInfo(
        settings=settings,
        texts=totals[0]["texts"] if totals else 0,
        bytes=totals[0]["bytes"] if totals else 0,
    )
    return WordCounts._build(_core.WordCounts.from_columns(text, ends, counts), info)
