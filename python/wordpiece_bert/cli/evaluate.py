"""``wordpiece-bert evaluate``: measures of encoders on labelled data."""

from __future__ import annotations

import math
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.json_text import json_text
from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.messages import print_verbose, warn_skipped
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import argparse

    from wordpiece_bert.evaluation.evaluator import BaseEvaluator

_TASKS = ("similarity", "classification", "retrieval")
_SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")


def add_parser(commands: arguments.Commands, summary: str) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "evaluate",
        parents=[arguments.common_options()],
        help=summary,
        description="Measure encoders on labelled data: pairs of texts with scores or labels in a table, or queries, "
        "documents and judgements in a folder in the form of BEIR. The measures are those of sentence-transformers.",
    )
    parser.add_argument(
        "data",
        type=Path,
        metavar="FILE|FOLDER",
        help="a table, .csv .tsv .jsonl .parquet, or a folder with corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv",
    )
    parser.add_argument(
        "-m",
        "--model",
        action="append",
        metavar="MODEL",
        help="the encoder: minilm, a folder, or org/name in the Hugging Face cache; give it again to compare several "
        "(default: minilm)",
    )
    parser.add_argument(
        "--task",
        choices=_TASKS,
        help="similarity: correlation with scores; classification: decisions about labels 0 and 1; retrieval "
        "(default: similarity for a file, retrieval for a folder)",
    )
    table = parser.add_argument_group("tables")
    table.add_argument("--text", default="sentence1", metavar="COLUMN", help="the first texts (default: sentence1)")
    table.add_argument("--pair", default="sentence2", metavar="COLUMN", help="the second texts (default: sentence2)")
    table.add_argument(
        "--label", metavar="COLUMN", help="the scores or labels (default: score, or label for classification)"
    )
    arguments.add_row_errors(table)
    folder = parser.add_argument_group("folders")
    folder.add_argument("--split", default="test", metavar="NAME", help="the judgements, qrels/NAME (default: test)")
    folder.add_argument(
        "--identical-ids",
        action="store_true",
        help="count a document with the id of the query as a hit (default: it is left out, as in BEIR)",
    )
    parser.add_argument(
        "--similarity",
        action="append",
        choices=_SIMILARITIES,
        help="for tables: how vectors are compared; give it again for several (default: as the model says)",
    )
    parser.add_argument("--truncate-dim", type=arguments.positive, metavar="N", help="keep the first N numbers")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FOLDER",
        help="add a line to the CSV file of the results in this folder; of several models, in a folder of each in it",
    )
    arguments.add_dtype(parser)
    arguments.add_running(parser, run)


def run(options: argparse.Namespace) -> None:
    """Evaluate the models, and print their measures as a table or as JSON."""
    from wordpiece_bert.hub import find_model
    from wordpiece_bert.sentence.encoder_loading import encoder_class

    models = options.model or ["minilm"]
    if options.output is not None and options.output.exists() and not options.output.is_dir():
        raise InputError(f"{options.output}: is a file; give a folder")
    evaluator, skipped = _evaluator(options)
    warn_skipped(len(skipped), skipped, "row")
    loading = arguments.loading_options(options)
    results = []
    owns = [re.sub(r"\W+", "-", name).strip("-") or "model" if len(models) > 1 else "" for name in models]
    if options.output is not None and len(set(owns)) < len(owns):
        raise InputError(f"-o has a folder for each model, by names: {', '.join(owns)}; evaluate equal ones alone")
    folders = [find_model(name, download=options.download) for name in models]
    try:
        for own, name, folder in zip(owns, models, folders, strict=True):
            print_verbose(options, f"{name}: {folder}")
            start = time.perf_counter()
            metrics = evaluator(encoder_class(folder)(folder, **loading), options.output and options.output / own)
            seconds = time.perf_counter() - start
            results.append({"model": name, "primary_metric": evaluator.primary_metric, "seconds": seconds})
            results[-1]["metrics"] = metrics
    finally:  # a model that fails leaves the measures of those before it
        if results and options.json:
            found = {"data": str(options.data), "skipped": len(skipped), "results": results}
            print(json_text(found, indent=2, ensure_ascii=False))
        elif results:
            print(*_table(results), sep="\n")


def _evaluator(options: argparse.Namespace) -> tuple[BaseEvaluator, list[str]]:
    """Read the data, and return the evaluator that has it, and the rows that were left out."""
    task = options.task or ("retrieval" if options.data.is_dir() else "similarity")
    if (task == "retrieval") != options.data.is_dir():
        needed = "a folder in the form of BEIR" if task == "retrieval" else "a table"
        raise InputError(f"{options.data}: --task {task} needs {needed}")
    shared: dict[str, Any] = {"show_progress_bar": not options.quiet, "truncate_dim": options.truncate_dim}
    if task == "retrieval":
        arguments.refuse(options, ["similarity"], "is for tables: documents are compared as the model says")
        arguments.refuse(options, ["errors"], "is for tables: every file of a folder is needed as it is")
        arguments.refuse(options, ("text", "pair", "label"), "names a column of a table, and a folder has none")
        from wordpiece_bert.evaluation import InformationRetrievalEvaluator, read_beir

        data = read_beir(options.data, options.split)
        return InformationRetrievalEvaluator(*data, **shared, ignore_identical_ids=not options.identical_ids), []
    arguments.refuse(options, ("split", "identical_ids"), "is for a folder in the form of BEIR")
    from wordpiece_bert._internal.texts import text_problem
    from wordpiece_bert.evaluation import BinaryClassificationEvaluator, EmbeddingSimilarityEvaluator
    from wordpiece_bert.finetune.labels import number_problem
    from wordpiece_bert.tokenizer.corpus.table_reader import read_table

    label = options.label or ("score" if task == "similarity" else "label")
    checks = {options.text: text_problem, options.pair: text_problem, label: number_problem}
    columns, skipped = read_table(options.data, list(checks), checks=checks, errors=options.errors)
    numbers = [float(value) for value in columns[label]]
    shared["similarity_fn_names"] = options.similarity
    kind = EmbeddingSimilarityEvaluator if task == "similarity" else BinaryClassificationEvaluator
    return kind(columns[options.text], columns[options.pair], numbers, **shared), skipped


def _table(results: list[dict[str, Any]]) -> list[str]:
    """Return a line for each measure, with a column for each model; the primary measure has a star."""
    names: list[str] = list(dict.fromkeys(name for result in results for name in result["metrics"]))
    primary = {result["primary_metric"] for result in results}
    rows = [["", *(result["model"] for result in results)]] if len(results) > 1 else []
    for name in names:
        values = [result["metrics"].get(name, "") for result in results]
        cells = [value if value == "" else f"{value:.6f}" if math.isfinite(value) else "-" for value in values]
        rows.append([name + "*" * (name in primary), *cells])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]
