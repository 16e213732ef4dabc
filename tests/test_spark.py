"""Counting on Spark equals local counting. Skipped if pyspark or Java is missing."""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import wordpiece_bert as wb
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed: pip install '.[spark]'")
if not (shutil.which("java") or "JAVA_HOME" in os.environ):
    pytest.skip("Spark needs Java", allow_module_level=True)

from wordpiece_bert.training.spark import count_words  # noqa: E402 - pyspark first

# Spark's own warnings are not errors of these tests.
pytestmark = pytest.mark.filterwarnings("ignore")

WORDS = ["the", "The", "cat", "Ärger", "中文", "can't", "naïve", "x" * 300, "\u0000", "🤗", "##s"]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "3")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def texts(n: int) -> list[str]:
    rng = random.Random(0)
    return [" ".join(rng.choices(WORDS, k=rng.randrange(12))) for _ in range(n)]


@pytest.mark.parametrize("options", [{}, {"lowercase": False, "tokenize_chinese_chars": False}])
def test_spark_counts_equal_local_counts(spark: SparkSession, options: dict[str, bool], tmp_path: Path) -> None:
    given = texts(1000)
    frame = spark.createDataFrame([(i, text) for i, text in enumerate(given)], ["id", "a text"]).repartition(5)
    found = count_words(frame, "a text", **options)
    expected = wb.WordCounts.from_texts(given, **options)
    assert found == expected
    assert (found.texts, found.bytes, found.fingerprint) == (1000, expected.bytes, expected.fingerprint)
    found.save(tmp_path / "counts.parquet")
    assert wb.WordCounts.load(tmp_path / "counts.parquet") == expected


@pytest.mark.parametrize(
    ("least", "most"),
    [(1, 1), (1, 4), (300, None), (300, 3), (300, 100), (1, 9), (1, 10), (1, 100), (10**9, None), (10**9, 5)],
)
def test_the_driver_gets_the_words_that_are_kept(
    spark: SparkSession, least: int, most: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [*texts(500), "tie tied"]  # and ties of words that occur once
    frame = spark.createDataFrame([(text,) for text in given], ["text"]).repartition(5)
    received = []
    to_arrow = type(frame).toArrow

    def counted(self: Any) -> Any:
        table = to_arrow(self)
        received.append(len(table))
        return table

    monkeypatch.setattr(type(frame), "toArrow", counted)
    found = count_words(frame, min_count=least, max_distinct_words=most)
    every = wb.WordCounts.from_texts(given)
    kept = [(word, count) for word, count in every.most_common() if count >= least][:most]
    assert found.most_common() == kept
    assert received == [len(kept) + 1]  # a row has the numbers of texts and bytes
    gone = every.most_common()[len(kept) :]
    assert (found.dropped, found.undercount) == (len(gone), gone[0][1] if gone else 0)
    assert (found.texts, found.bytes, found.fingerprint) == (501, every.bytes, every.fingerprint)


def test_wrong_limits_are_refused_and_empty_frames_have_no_words(spark: SparkSession) -> None:
    empty = spark.createDataFrame([], "text string")
    found = count_words(empty, min_count=2, max_distinct_words=3)
    assert (len(found), found.dropped, found.undercount) == (0, 0, 0)
    with pytest.raises(InputError, match="min_count must be"):
        count_words(empty, min_count=0)
    with pytest.raises(InputError, match="max_distinct_words must be"):
        count_words(empty, max_distinct_words=0)


def test_nulls_and_empty_frames(spark: SparkSession) -> None:
    schema = "text string"
    assert count_words(spark.createDataFrame([("a",), (None,), ("b a",)], schema)).to_dict() == {"a": 2, "b": 1}
    assert len(count_words(spark.createDataFrame([], schema))) == 0
    two = spark.createDataFrame([("a", "b")], "one string, other string")
    with pytest.raises(InputError, match="one, other"):
        count_words(two)
    with pytest.raises(InputError, match="no column 'text'"):
        count_words(two, "text")
    with pytest.raises(TypeError, match="'errors'"):
        count_words(two, "one", errors="skip")  # type: ignore[call-arg]
