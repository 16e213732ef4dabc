"""Spark on a cluster of two workers: the rows of one machine, also after a task or an executor was killed. Skipped without pyspark or Java."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from small_tokenizer import tokenizer
from wordpiece_bert import SentenceEncoder, WordCounts
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed: pip install '.[spark]'")
pytest.importorskip("pyarrow")
if not (shutil.which("java") or "JAVA_HOME" in os.environ):
    pytest.skip("Spark needs Java", allow_module_level=True)

from wordpiece_bert.integrations import spark as ours  # noqa: E402 - pyspark first

# Spark's own warnings are not errors of these tests.
pytestmark = pytest.mark.filterwarnings("ignore")

TEXTS = [None if i % 17 == 0 else f"to bake bread {'and the oven ' * (i % 30)}{i}" for i in range(300)]
GIVEN = [text for text in TEXTS if text is not None]
FOLDERS = ":".join({str(Path(__file__).parent), str(Path(ours.__file__).parents[2])})


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    """A cluster of two worker processes with one core each."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    found = (
        sql.SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.executorEnv.PYTHONPATH", FOLDERS + ":" + ":".join(filter(None, sys.path)))
        .config("spark.executorEnv.PYSPARK_PYTHON", sys.executable)
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "20")
        .config("spark.executor.memory", "512m")
        .config("spark.task.maxFailures", "4")
        .getOrCreate()
    )
    found.sparkContext.setLogLevel("OFF")
    yield found
    found.stop()


@pytest.fixture(scope="module")
def frame(session: SparkSession) -> DataFrame:
    return session.createDataFrame(list(enumerate(TEXTS)), "id int, `a text` string").repartition(4)


def rows(found: DataFrame) -> list[Any]:
    return sorted(found.collect(), key=lambda row: row["id"])


def test_ids_are_those_of_one_machine(frame: DataFrame, folder: Path) -> None:
    found = ours.encode(frame, "a text", folder, max_length=20)
    assert found.dtypes == [
        *frame.dtypes,
        ("ids", "array<int>"),
        ("length", "int"),
        ("truncated", "boolean"),
    ]
    batch = SentenceEncoder(folder).tokenizer.encode_batch(GIVEN, max_length=20)
    expected = iter(zip(batch.to_list(), batch.truncated.tolist(), strict=True))
    for index, row in enumerate(rows(found)):
        assert (row["id"], row["a text"]) == (index, TEXTS[index])
        ids, truncated = (None, None) if TEXTS[index] is None else next(expected)
        assert (row["ids"], row["truncated"]) == (ids, truncated)
        assert row["length"] == (None if ids is None else len(ids))
    mine = ours.encode(frame.dropna(), "a text", tokenizer())
    assert [row["ids"] for row in rows(mine)] == tokenizer().encode_batch(GIVEN).to_list()
    renamed = ours.encode(frame.dropna(), "a text", tokenizer(), ids_column="input_ids")
    assert [row["input_ids"] for row in rows(renamed)] == [row["ids"] for row in rows(mine)]


def test_vectors_are_those_of_one_machine(frame: DataFrame, folder: Path) -> None:
    encoder = SentenceEncoder(folder)
    expected, cut = encoder.encode(GIVEN, truncate_dim=9, return_truncated=True)
    for model in (folder, encoder):
        found = rows(ours.embed(frame, "a text", model, truncate_dim=9))
        vectors = [row["vector"] for row in found if row["vector"] is not None]
        np.testing.assert_array_equal(np.array(vectors, np.float32), expected)
        assert [row["truncated"] for row in found if row["truncated"] is not None] == cut.tolist()
        assert [row["vector"] is None for row in found] == [text is None for text in TEXTS]


def test_an_encoder_is_sent_with_its_settings(frame: DataFrame, folder: Path) -> None:
    settings = {"prompts": {"one": "a prompt: "}, "default_prompt_name": "one", "truncate_dim": 8}
    encoder = SentenceEncoder(folder, dtype="int8", calibrate=["to bake bread"], **settings)
    encoder.max_seq_length = 6
    expected, cut = encoder.encode(GIVEN, return_truncated=True)
    found = [row for row in rows(ours.embed(frame, "a text", encoder)) if row["vector"] is not None]
    np.testing.assert_array_equal(np.array([row["vector"] for row in found], np.float32), expected)
    assert [row["truncated"] for row in found] == cut.tolist()
    assert not np.array_equal(expected, SentenceEncoder(folder, truncate_dim=8).encode(GIVEN, return_truncated=True)[0])


def test_a_name_is_sent_with_options(frame: DataFrame, folder: Path) -> None:
    expected = SentenceEncoder(folder, dtype="int8", truncate_dim=8).encode(GIVEN, return_truncated=True)[0]
    found = ours.embed(frame, "a text", folder, dtype="int8", encoder_options={"truncate_dim": 8})
    vectors = [row["vector"] for row in rows(found) if row["vector"] is not None]
    np.testing.assert_array_equal(np.array(vectors, np.float32), expected)
    with pytest.raises(InputError, match="threads is given twice"):  # a task has one
        ours.embed(frame, "a text", folder, encoder_options={"threads": 2})


@pytest.mark.parametrize("program", ["python", "java"], ids=["task", "executor"])
def test_what_was_killed_is_computed_again(frame: DataFrame, folder: Path, tmp_path: Path, program: str) -> None:
    """The Python process of a task, or the executor that started it, is killed in the middle of a partition."""
    killed = tmp_path / "killed"

    def name_and_parent(process: int) -> tuple[str, int]:
        name, _, rest = Path(f"/proc/{process}/stat").read_text().partition("(")[2].rpartition(")")
        return name, int(rest.split()[1])

    def kill(batches: Any) -> Any:
        process = os.getpid()
        while not name_and_parent(process)[0].startswith(program):
            process = name_and_parent(process)[1]
        for number, batch in enumerate(batches):
            if number == 1:
                try:
                    killed.touch(exist_ok=False)
                except FileExistsError:
                    pass
                else:
                    os.kill(process, 9)
            yield batch

    found = ours.embed(frame, "a text", folder).mapInArrow(kill, ours.embed(frame, "a text", folder).schema)
    vectors = [row["vector"] for row in rows(found) if row["vector"] is not None]
    assert killed.exists()
    np.testing.assert_array_equal(
        np.array(vectors, np.float32), SentenceEncoder(folder).encode(GIVEN, return_truncated=True)[0]
    )


def test_words_are_counted(frame: DataFrame) -> None:
    assert ours.count_words(frame, "a text") == WordCounts.from_texts(GIVEN)


def test_pairs_and_the_longest_batches(session: SparkSession) -> None:
    given = [("the cat", "sat"), ("a " * 300_000, "b"), ("a", None)]
    found = ours.encode(session.createDataFrame(given, "a string, b string"), "a", tokenizer(), pair="b").collect()
    assert [row["ids"] for row in found] == [*tokenizer().encode_batch(given[:2]).to_list(), None]


@pytest.mark.parametrize("kind", ["int", "double", "boolean", "binary", "array<string>", "date", "struct<a: string>"])
def test_a_column_that_is_not_text_is_refused_before_a_job_starts(
    session: SparkSession, folder: Path, kind: str
) -> None:
    frame = session.createDataFrame([], f"id int, `some text` string, `a.number` {kind}")
    written = next(field.dataType.simpleString() for field in frame.schema.fields if field.name == "a.number")
    said = re.escape(f"the column 'a.number' has the type {written}, which is not text")
    for refused in (
        lambda: ours.encode(frame, "a.number", tokenizer()),
        lambda: ours.encode(frame, "some text", tokenizer(), pair="a.number"),
        lambda: ours.embed(frame, "a.number", folder),
        lambda: ours.count_words(frame, "a.number"),
        lambda: ours.pretraining_examples(frame, "a.number", tokenizer(), id_column="id"),
    ):
        with pytest.raises(InputError, match=said):
            refused()
    if kind != "int":
        with pytest.raises(InputError, match=re.escape(f"the column 'a.number' has the type {written}, which is")):
            ours.pretraining_examples(frame, "some text", tokenizer(), id_column="a.number")


def test_columns_of_every_type_of_strings_are_texts(session: SparkSession) -> None:
    frame = session.sql("SELECT CAST('the cat' AS VARCHAR(20)) AS v, CAST('the cat' AS CHAR(7)) AS c, NULL AS n")
    expected = tokenizer().encode("the cat").ids
    assert [ours.encode(frame.select(name), name, tokenizer()).first()["ids"] for name in "vcn"] == [
        expected,
        expected,
        None,
    ]


def test_a_frame_of_another_library_is_refused() -> None:
    pd = pytest.importorskip("pandas")
    for refused in (ours.encode, ours.embed):
        with pytest.raises(InputError, match="frame must be"):
            refused(pd.DataFrame({"text": ["a"]}), "text", tokenizer())


def test_tasks_have_no_weights_and_wrong_arguments_are_named(frame: DataFrame, folder: Path) -> None:
    encoder = SentenceEncoder(folder)
    changed = encoder._with_vocabulary(lambda model: model, lambda tokenizer: tokenizer)
    with pytest.raises(InputError, match="comes from no folder"):
        ours.embed(frame, "a text", changed)
    with pytest.raises(InputError, match="no column 'text'"):
        ours.encode(frame, "text", tokenizer())
    with pytest.raises(InputError, match="have a column 'ids' already"):
        ours.encode(ours.encode(frame, "a text", tokenizer()), "a text", tokenizer())
    with pytest.raises(InputError, match="truncation"):
        ours.encode(frame, "a text", tokenizer(), truncation="some")  # type: ignore[arg-type]
