"""The work of ``wordpiece-bert finetune --frozen``: heads on vectors that are computed once."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.atomic_folder import AtomicFolder
from wordpiece_bert.cli.finetune_run import lists_of, read_table, shown_metrics, token_metrics
from wordpiece_bert.cli.messages import print_summary, print_verbose
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune import (
    FrozenClassifier,
    LogisticRegression,
    Ridge,
    Trainer,
    TrainingArguments,
    fit_token_head,
    metrics,
    model_for,
)
from wordpiece_bert.finetune.data import label_names, token_rows
from wordpiece_bert.finetune.labels import class_name
from wordpiece_bert.sentence import SentenceEncoder
from wordpiece_bert.tokenizer import Tokenizer

if TYPE_CHECKING:
    import argparse

__all__ = ["run"]


def run(options: argparse.Namespace) -> None:
    """Compute the vectors, fit the head, evaluate it, and write the folder."""
    if options.task not in ("classify", "regress", "tokens"):
        raise InputError(f"--frozen has no heads for --task {options.task}, only for classify, regress and tokens")
    for flag in ("resume", "overwrite", "save_steps", "eval_steps", "bf16"):
        if getattr(options, flag):
            raise InputError(
                f"--{flag.replace('_', '-')} is for a training in steps; a head on frozen vectors has none"
            )
    if options.cache and options.task == "tokens":
        raise InputError("--cache keeps vectors of texts; --task tokens has none")
    start = perf_counter()
    count, found = _tokens(options) if options.task == "tokens" else _texts(options)
    seconds = perf_counter() - start
    print_summary(
        options,
        f"{options.output}: a head on the vectors of {count:,} rows in {seconds:.0f} s{shown_metrics(found)}",
        {"output": str(options.output), "rows": count, "seconds": seconds, "evaluations": [found] if found else []},
    )


def _texts(options: argparse.Namespace) -> tuple[int, dict[str, float]]:
    """Fit a classifier or a regressor of texts or pairs; return the number of rows and the metrics."""
    C = options.inverse_penalty
    head = Ridge(1 / C) if options.task == "regress" else LogisticRegression(C=C)
    classifier = FrozenClassifier(SentenceEncoder(options.model, download=options.download), head)
    if options.max_length:
        classifier.encoder.max_seq_length = min(options.max_length, classifier.encoder.max_seq_length)
    print_verbose(options, f"encoder: {classifier.encoder}")
    texts, labels = _examples(options, options.train)
    classifier.fit(texts, labels, cache=options.cache, show_progress_bar=not options.quiet)
    found: dict[str, float] = {}
    if options.eval:
        texts_too, right = _examples(options, options.eval)
        found = _measured(classifier, classifier.predict(texts_too, cache=options.cache).tolist(), right)
    classifier.save_pretrained(options.output)
    return len(labels), found


def _measured(classifier: FrozenClassifier, predicted: list[Any], right: list[Any]) -> dict[str, float]:
    if classifier.is_regression:
        numbers = [float(label) for label in right]
        return {"pearson": metrics.pearson(predicted, numbers), "spearman": metrics.spearman(predicted, numbers)}
    # By name: a CSV file has the strings of the numbers that a Parquet file has.
    predicted, right = ([class_name(label) for label in labels] for labels in (predicted, right))
    found = {"accuracy": metrics.accuracy(predicted, right)}
    if len(classifier.labels) == 2:
        second = classifier.labels[1]
        pair = (np.array([label == second for label in labels], np.int64) for labels in (predicted, right))
        found["f1"] = metrics.f1(*pair)
    return found


def _examples(options: argparse.Namespace, file: str) -> tuple[list[Any], list[Any]]:
    table = read_table(options, file)
    texts: list[Any] = [str(text) for text in table[options.text]]
    if options.pair:
        texts = list(zip(texts, map(str, table[options.pair]), strict=True))
    return texts, table[options.label]


def _tokens(options: argparse.Namespace) -> tuple[int, dict[str, float]]:
    """Fit a head for token classification; return the number of rows and the metrics."""

    def rows(file: str) -> tuple[list[list[str]], list[list[str]]]:
        table = read_table(options, file)
        return lists_of(file, options.text, table[options.text]), lists_of(file, options.label, table[options.label])

    words, tags = rows(options.train)
    names = label_names([tag for row in tags for tag in row])
    model = model_for(options.model, "TokenClassification", labels=names, download=options.download)
    tokenizer = Tokenizer.from_pretrained(options.model, download=options.download)
    longest = min(options.max_length or model.config.longest_row, model.config.longest_row)
    data = token_rows(tokenizer, words, tags, names=names, max_length=longest)
    fitted = fit_token_head(model, data, C=options.inverse_penalty, show_progress_bar=not options.quiet)
    found: dict[str, float] = {}
    if options.eval:
        held_out = token_rows(tokenizer, *rows(options.eval), names=names, max_length=longest)
        trainer = Trainer(fitted, TrainingArguments(options.output), compute_metrics=lambda p: token_metrics(p, names))
        metrics_found = trainer.predict(held_out, "eval").metrics
        found = {name.removeprefix("eval_"): value for name, value in metrics_found.items()}
    with AtomicFolder(options.output) as output:
        output.begin()
        fitted._write_files(output)
        tokenizer._write_files(output)
        output.commit()
    return len(data), found
