"""The command `integrations`: token ids of a column of texts, in each library, beside the plain call and beside what a user
would write without this package.

Three things take turns in one process, and the best of several rounds counts: the one line of this package; the plain call
`tokenizer.encode_batch(list)`; and the usual code around the fast tokenizer of transformers, of the same vocabulary. Before
anything is timed, the ids are compared. Spark runs on a local cluster of worker processes of its own, with one core each.
A library that is not installed is skipped with a message.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from benchmarks import report
from benchmarks.texts import Source
from wordpiece_bert import Tokenizer
from wordpiece_bert.integrations import arrow

TEXTS = 100_000


class Case(NamedTuple):
    """A library: our line and the usual code, each of which returns ids that `rows` turns into lists."""

    name: str
    line: str
    ours: Callable[[], Any]
    usual_line: str
    usual: Callable[[], Any]
    rows: Callable[[Any], list[list[int]]]


def main(arguments: list[str]) -> int:
    """Run the command; return 1 if ids differ."""
    parser = argparse.ArgumentParser(prog="benchmarks integrations", description=__doc__)
    parser.add_argument(
        "--corpora", type=Path, help="folder of corpora and vocabularies (default: the project's own texts)"
    )
    parser.add_argument("--texts", type=int, default=TEXTS, help=f"how many texts (default: {TEXTS:,})")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the best counts")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these libraries")
    parser.add_argument("--record", type=Path, nargs="?", const=report.RECORDS, help="save the results in this folder")
    options = parser.parse_args(arguments)
    source = Source(options.corpora)
    lines = source.lines("english")
    texts = [lines[i % len(lines)] for i in range(options.texts)]
    parts = [report.heading("Other libraries beside the plain call", f"{len(texts):,} texts of {source.describe()}")]
    with tempfile.TemporaryDirectory() as parent:
        tokenizer, theirs = _tokenizers(source, Path(parent))
        measured, wrong = [], False
        for make in LIBRARIES:
            name = make.__name__.lstrip("_")
            if options.only and name not in options.only:
                continue
            try:
                case = make(texts, tokenizer, theirs, Path(parent))
            except ImportError as error:
                print(f"{name}: skipped, {error}", file=sys.stderr)
                continue
            row, same = _measure(case, texts, tokenizer, options.rounds)
            wrong |= not same
            measured.append(row)
            print(row, file=sys.stderr)
        if measured:
            parts.append(_table(measured))
        if not options.only or "spark" in options.only:
            try:
                found = list(_spark(texts, Path(parent), options.rounds))
            except ImportError as error:
                print(f"spark: skipped, {error}", file=sys.stderr)
            else:
                parts.append(f"## Spark\n\n{_table(found)}")
                measured += found
    print("\n".join(parts))
    if options.record:
        print(report.save("integrations", "\n".join(parts), {"rows": measured}, options.record))
    return int(wrong)


def _tokenizers(source: Source, folder: Path) -> tuple[Tokenizer, Any]:
    """Return our tokenizer and transformers' fast one, of one folder, in which they are saved."""
    import transformers

    tokens, lowercase = source.vocabulary("uncased")
    tokenizer = Tokenizer.from_vocab(tokens, lowercase=lowercase)
    tokenizer.save_pretrained(folder / "tokenizer")
    (folder / "tokenizer" / "config.json").write_text('{"model_type": "bert"}')
    theirs = transformers.AutoTokenizer.from_pretrained(folder / "tokenizer")
    theirs.model_max_length = sys.maxsize  # no message about long rows
    return tokenizer, theirs


def _measure(case: Case, texts: list[str], tokenizer: Tokenizer, rounds: int) -> tuple[dict[str, Any], bool]:
    """Time a case, and return its row and whether the ids agree."""
    expected = tokenizer.encode_batch(texts[:500]).to_list()
    same = case.rows(case.ours())[:500] == expected
    plain, ours, usual = [], [], []
    for _ in range(rounds):
        plain.append(_seconds(lambda: tokenizer.encode_batch(texts)))
        ours.append(_seconds(case.ours))
        usual.append(_seconds(case.usual))
    return {
        "library": case.name,
        "line": f"`{case.line}`",
        "texts/s": f"{len(texts) / min(ours):,.0f}",
        "÷ plain call": f"{min(ours) / min(plain):.2f}",
        "instead of": f"`{case.usual_line}`",
        "times as fast": f"{min(usual) / min(ours):.1f}",
        "ids": "equal" if same else "DIFFERENT",
    }, same


def _seconds(call: Callable[[], Any]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def _pyarrow(texts: list[str], tokenizer: Tokenizer, theirs: Any, folder: Path) -> Case:
    import pyarrow as pa

    table = pa.table({"text": texts})

    def usual() -> Any:
        return table.append_column(
            "ids", pa.array(theirs(table["text"].to_pylist())["input_ids"], pa.list_(pa.int32()))
        )

    return Case(
        "pyarrow",
        'arrow.encode(table, "text", tok)',
        lambda: arrow.encode(table, "text", tokenizer),
        'pa.array(theirs(table["text"].to_pylist())["input_ids"])',
        usual,
        lambda found: found["ids"].slice(0, 500).to_pylist(),
    )


def _pandas(texts: list[str], tokenizer: Tokenizer, theirs: Any, folder: Path) -> Case:
    import pandas as pd

    import wordpiece_bert.integrations.pandas  # noqa: F401 - registers the accessor

    series = pd.Series(texts)
    return Case(
        "pandas",
        "series.wordpiece.encode(tok)",
        lambda: series.wordpiece.encode(tokenizer),
        'series.apply(lambda text: theirs(text)["input_ids"])',
        lambda: series.apply(lambda text: theirs(text)["input_ids"]),
        lambda found: [list(row) for row in found["ids"].head(500)],
    )


def _polars(texts: list[str], tokenizer: Tokenizer, theirs: Any, folder: Path) -> Case:
    import polars as pl

    import wordpiece_bert.integrations.polars  # noqa: F401 - registers the namespace

    frame = pl.DataFrame({"text": texts})
    mapped = pl.col("text").map_elements(lambda text: theirs(text)["input_ids"], return_dtype=pl.List(pl.UInt32))
    return Case(
        "Polars",
        'pl.col("text").wordpiece.encode(tok)',
        lambda: frame.with_columns(ids=pl.col("text").wordpiece.encode(tokenizer)),
        'pl.col("text").map_elements(lambda text: theirs(text)["input_ids"], …)',
        lambda: frame.with_columns(ids=mapped),
        lambda found: found["ids"].head(500).to_list(),
    )


def _duckdb(texts: list[str], tokenizer: Tokenizer, theirs: Any, folder: Path) -> Case:
    import duckdb
    import pyarrow as pa

    from wordpiece_bert.integrations.duckdb import register

    connection = duckdb.connect()
    register(connection, tokenizer=tokenizer)

    def encode(text: str) -> list[int]:
        found: list[int] = theirs(text)["input_ids"]
        return found

    connection.create_function("usual", encode, ["VARCHAR"], "INTEGER[]")
    connection.register("given", pa.table({"text": texts}))
    connection.execute("CREATE TABLE texts AS SELECT text FROM given")
    return Case(
        "DuckDB",
        "SELECT wordpiece_encode(text)",
        lambda: connection.execute("SELECT wordpiece_encode(text) AS ids FROM texts").to_arrow_table(),
        'create_function("encode", lambda text: theirs(text)["input_ids"], …)',
        lambda: connection.execute("SELECT usual(text) AS ids FROM texts").to_arrow_table(),
        lambda found: found["ids"].slice(0, 500).to_pylist(),
    )


def _datasets(texts: list[str], tokenizer: Tokenizer, theirs: Any, folder: Path) -> Case:
    import datasets

    datasets.disable_progress_bars()
    datasets.disable_caching()
    data = datasets.Dataset.from_dict({"text": texts})
    return Case(
        "datasets",
        'data.with_format("arrow").map(tok.map_function(), batched=True)',
        lambda: data.with_format("arrow").map(
            tokenizer.map_function(), batched=True, cache_file_name=str(folder / "ours.arrow")
        ),
        'data.map(lambda batch: theirs(batch["text"]), batched=True)',
        lambda: data.map(
            lambda batch: theirs(batch["text"]), batched=True, cache_file_name=str(folder / "usual.arrow")
        ),
        lambda found: found.with_format(None)[:500]["input_ids"],
    )


#: The libraries in this process, by functions that are named after them.
LIBRARIES = (_pyarrow, _pandas, _polars, _duckdb, _datasets)


def _spark(texts: list[str], folder: Path, rounds: int) -> Iterator[dict[str, Any]]:
    """Yield the rows a second of encoding and of sentence vectors with one and with two worker processes."""
    from pyspark.sql import SparkSession, functions
    from pyspark.sql.types import ArrayType, IntegerType

    from wordpiece_bert.integrations import spark

    tokenizer_folder = str(folder / "tokenizer")
    # Rows of each work: many where a row is quick, so that starting the tasks is a small part.
    given = {
        "ids": texts * 5,
        "usual": texts[: max(64, len(texts) // 5)],
        "vectors": texts[: max(64, len(texts) // 20)],
    }

    def usual(text: str) -> list[int]:
        from transformers import AutoTokenizer

        if not kept:
            kept.append(AutoTokenizer.from_pretrained(tokenizer_folder))
        found: list[int] = kept[0](text)["input_ids"]
        return found

    kept: list[Any] = []  # in each worker process its own
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    for workers in (1, 2):
        session = (
            SparkSession.builder.master(f"local-cluster[{workers},1,1024]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.execution.arrow.pyspark.enabled", "true")
            .config("spark.pyspark.python", sys.executable)
            .config("spark.executorEnv.TOKENIZERS_PARALLELISM", "false")
            .getOrCreate()
        )
        try:
            session.sparkContext.setLogLevel("ERROR")
            frames = {}
            for name, rows in given.items():
                path = str(folder / f"{name}.parquet")
                if workers == 1:
                    import pyarrow as pa
                    import pyarrow.parquet as pq

                    pq.write_table(pa.table({"text": rows}), path, row_group_size=max(1, len(rows) // 8))
                frames[name] = session.read.parquet(path).repartition(8).cache()
                frames[name].count()
            plain = functions.udf(usual, ArrayType(IntegerType()))
            calls = {
                "ids": lambda frame: spark.encode(frame, "text", tokenizer_folder),
                "ids, by udf(theirs)": lambda frame, plain=plain: frame.withColumn("ids", plain("text")),
                "vectors of MiniLM": lambda frame: spark.embed(frame, "text", "minilm"),
            }
            for name, call in calls.items():
                rows = {"vectors of MiniLM": "vectors", "ids, by udf(theirs)": "usual"}.get(name, "ids")
                frame, count = frames[rows], len(given[rows])
                result = call(frame)
                result.write.format("noop").mode("overwrite").save()  # the workers have started and loaded
                best = min(
                    _seconds(lambda result=result: result.write.format("noop").mode("overwrite").save())  # type: ignore[misc]
                    for _ in range(rounds)
                )
                yield {"work": name, "workers": workers, "rows": f"{count:,}", "rows/s": f"{count / best:,.0f}"}
        finally:
            session.stop()


def _table(rows: list[dict[str, Any]]) -> str:
    """Return rows as a table in Markdown."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
