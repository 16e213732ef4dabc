"""Examples made on Spark equal one machine's, given the same shards, also after a killed and retried task."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pretraining_folders import tokenizer
from test_pretraining_reference import TOKENS
from wordpiece_bert.pretraining import (
    Masking,
    TokenStore,
    build_examples,
    build_token_store,
    example_batches,
    store_batches,
)

pa = pytest.importorskip("pyarrow")

TOK = tokenizer()
OPTIONS: dict[str, Any] = {"max_length": 48, "seed": 9, "masking": Masking(TOK, whole_words=True)}


def documents(n: int) -> list[tuple[int, str]]:
    rng = random.Random(3)
    pieces = [token.removeprefix("##") for token in TOKENS[5:]]
    sentence = lambda: " ".join("".join(rng.choices(pieces, k=2)) for _ in range(rng.randrange(1, 9)))  # noqa: E731
    return [(7 * i, "\n".join(sentence() for _ in range(rng.randrange(6)))) for i in range(n)]


def local(rows: list[tuple[int, str]], folder: Path) -> tuple[TokenStore, list[dict[str, Any]]]:
    """The store and the examples that one machine makes of a shard."""
    folder.mkdir()
    path = folder / "shard.jsonl"
    path.write_text("".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in rows))
    store = build_token_store(TOK, path, folder / "store", field="text", id_field="id")
    build_examples(store, folder / "rows.jsonl", TOK, **OPTIONS)
    return store, [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]


def batches(rows: list[tuple[int, str]], size: int) -> list[Any]:
    ids, texts = zip(*rows, strict=True)
    table = pa.table({"id": pa.array(ids, pa.int64()), "text": pa.array(texts)})
    return table.to_batches(max_chunksize=size)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_batches_are_those_of_one_machine(size: int, tmp_path: Path) -> None:
    rows = documents(60)
    store, expected = local(rows, tmp_path / "local")
    examples = pickle.loads(pickle.dumps(example_batches(TOK, **OPTIONS)))
    found = [row for batch in examples(iter(batches(rows, size))) for row in batch.to_pylist()]
    assert found == expected
    tokens = [row for batch in store_batches(TOK)(batches(rows, size)) for row in batch.to_pylist()]
    [shard] = store.shards
    assert [row["id"] for row in tokens] == shard.document_ids.tolist()
    assert [row["sentences"] for row in tokens] == [
        [ids.tolist() for ids in shard.document(i)] for i in range(shard.documents)
    ]
    assert list(examples(iter([]))) == []
    assert list(examples(iter(batches([(1, ""), (2, " ")], 5)))) == []


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if not (shutil.which("java") or "JAVA_HOME" in os.environ):
        pytest.skip("Spark needs Java")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = sql.SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.mark.filterwarnings("ignore")
def test_a_killed_and_retried_task_gives_the_same(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions

    examples = example_batches(TOK, **OPTIONS)
    marker = str(tmp_path / "killed")

    def map_and_die_once(parts: Iterator[Any]) -> Iterator[Any]:
        for number, batch in enumerate(examples(parts)):
            yield batch
            if number == 0 and not Path(marker).exists():
                Path(marker).touch()
                os.kill(os.getpid(), signal.SIGKILL)

    frame = (
        spark.createDataFrame(documents(80), "id bigint, text string").repartition(4, "id").sortWithinPartitions("id")
    )
    numbered = frame.withColumn("part", functions.spark_partition_id()).collect()
    expected = []
    for part in sorted({row.part for row in numbered}):
        rows = [(row.id, row.text) for row in numbered if row.part == part]
        expected += local(rows, tmp_path / f"part-{part}")[1]
    found = [row.asDict() for row in frame.mapInArrow(map_and_die_once, examples.schema).collect()]
    assert Path(marker).exists()
    assert found == expected


@pytest.mark.filterwarnings("ignore")
def test_the_integration_makes_the_examples_of_one_machine(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions

    from wordpiece_bert.errors import InputError
    from wordpiece_bert.integrations.spark import pretraining_examples

    frame = spark.createDataFrame(documents(80), "`doc.id` bigint, text string")
    parts = frame.repartition(3, "`doc.id`").sortWithinPartitions("`doc.id`")
    numbered = parts.withColumn("part", functions.spark_partition_id()).collect()
    expected = []
    for part in sorted({row.part for row in numbered}):
        rows = [(row["doc.id"], row.text) for row in numbered if row.part == part]
        expected += local(rows, tmp_path / f"part-{part}")[1]
    made = pretraining_examples(frame, "text", TOK, id_column="doc.id", partitions=3, **OPTIONS)
    assert [row.asDict() for row in made.collect()] == expected
    shuffled = frame.orderBy(functions.rand(seed=1)).repartition(7)
    again = pretraining_examples(shuffled, "text", TOK, id_column="doc.id", partitions=3, **OPTIONS)
    assert [row.asDict() for row in again.collect()] == expected
    with pytest.raises(InputError, match="no column 'nothing'"):
        pretraining_examples(frame, "nothing", TOK, id_column="doc.id")
    with pytest.raises(InputError, match="objective must be one of"):
        pretraining_examples(frame, "text", TOK, id_column="doc.id", objective="mlm")  # type: ignore[arg-type]
