"""The work of ``wordpiece-bert finetune``; apart from its options, so that ``--help`` needs no NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.warn import warn
from wordpiece_bert.cli.messages import print_verbose
from wordpiece_bert.cli.training_run import checkpoints_of, log_of, print_training, resumes
from wordpiece_bert.errors import InputError, TrainingWarning
from wordpiece_bert.finetune import SentenceTrainer, Trainer, TrainingArguments, losses, metrics
from wordpiece_bert.finetune.choices import choice_rows
from wordpiece_bert.finetune.curve import save_curve
from wordpiece_bert.finetune.data import label_names, read_columns, sequence_rows, token_rows
from wordpiece_bert.finetune.labels import class_problem, number_problem, tags_problem
from wordpiece_bert.finetune.questions import LONGEST_WINDOW, QuestionWindows, question_windows, read_squad
from wordpiece_bert.finetune.start import model_for
from wordpiece_bert.sentence import SentenceEncoder
from wordpiece_bert.tokenizer import Tokenizer

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from wordpiece_bert.finetune import EvalPrediction
    from wordpiece_bert.finetune.batches import Dataset

    Measure = Callable[[EvalPrediction], dict[str, float]]

#: What a label of each task is. An answer may be empty: there is none then.
_LABELS = {
    "classify": class_problem,
    "regress": number_problem,
    "similar": number_problem,
    "tokens": tags_problem,
    "choose": class_problem,
}

__all__ = [
    "columns_of",
    "lists_of",
    "read_table",
    "run",
    "shown_metrics",
    "token_metrics",
]


def run(options: argparse.Namespace) -> None:
    """Train, evaluate now and then, and write the folder with its log and curve."""
    every = ("eval_steps", "save_steps")
    settings = TrainingArguments(
        checkpoints_of(options),
        learning_rate=options.learning_rate,
        per_device_train_batch_size=options.batch_size,
        num_train_epochs=options.epochs,
        warmup_steps=options.warmup,
        weight_decay=options.weight_decay,
        seed=options.seed,
        train_sampling_strategy="group_by_length",
        eval_strategy=("steps" if options.eval_steps else "epoch") if options.eval else "no",
        save_strategy="steps" if options.save_steps else "epoch",
        save_total_limit=1,
        freeze=tuple(options.freeze),
        bf16=options.bf16,
        show_progress_bar=not options.quiet,
        overwrite_output_dir=options.overwrite,
        log_file=log_of(options),
        **{name: getattr(options, name) for name in every if getattr(options, name)},
    )
    resume = resumes(options)
    trainer = _sentence_trainer(options, settings) if options.task == "similar" else _trainer(options, settings)
    count = len(trainer.train_dataset or ())
    if count < options.batch_size:
        message = f"{options.train} has {count} rows, fewer than a batch of {options.batch_size}"
        warn(message, TrainingWarning)
    result = trainer.train(resume_from_checkpoint=resume)
    trainer.save_model(options.output)
    history = trainer.log_history
    curve = save_curve(history, options.output / "training_curve.svg")
    evaluations = [entry for entry in history if any(name.startswith("eval_") for name in entry)]
    last = {name.removeprefix("eval_"): value for name, value in (evaluations[-1:] or [{}])[0].items()}
    shown = shown_metrics({name: value for name, value in last.items() if name not in ("step", "epoch")})
    print_training(options, result, evaluations, shown, curve)


def shown_metrics(found: dict[str, float]) -> str:
    """Return metrics as the end of a message, or nothing."""
    listed = ", ".join(f"{name} {value:.4f}" for name, value in found.items())
    return f"; evaluation: {listed}" if listed else ""


def read_table(options: argparse.Namespace, file: str, *others: str | None) -> dict[str, list[Any]]:
    """Read the columns of texts, second texts and labels, and others."""
    checks = {options.label: _LABELS[options.task]} if options.task in _LABELS else None
    return read_columns(file, columns_of(options.text, options.pair, options.label, *others), checks=checks)


def columns_of(*names: str | None) -> list[str]:
    """Return the names that are given."""
    return [name for name in names if name]


def _trainer(options: argparse.Namespace, settings: TrainingArguments) -> Trainer:
    """Return the trainer of a model with a head."""
    tokenizer = Tokenizer.from_pretrained(options.model, download=options.download)
    make = {"tokens": _tokens, "answers": _answers, "choose": _choose}.get(options.task, _sequences)
    kind, names, rows, measure = make(options, tokenizer)
    model = model_for(
        options.model,
        kind,  # type: ignore[arg-type]
        labels=names,
        problem_type={"regress": "regression", "classify": "single_label_classification"}.get(options.task),  # type: ignore[arg-type]
        seed=options.seed,
        download=options.download,
    )
    print_verbose(options, f"model: {model}")
    longest = min(options.max_length or model.config.longest_row, model.config.longest_row)
    held_out = rows(options.eval, longest) if options.eval else None
    return Trainer(
        model,
        settings,
        rows(options.train, longest),
        held_out,
        compute_metrics=None if held_out is None else measure(held_out),
        tokenizer=tokenizer,
    )


#: A task: its head, the names of its labels, a function from a file and the longest row to rows, and one from the rows
#: of an evaluation to its metrics.
Task = tuple[str, "list[str] | None", "Callable[[str, int], Dataset]", "Callable[[Dataset], Measure]"]


def _sequences(options: argparse.Namespace, tokenizer: Tokenizer) -> Task:
    """Texts or pairs with a label or a number each."""
    is_regression = options.task == "regress"
    names = None if is_regression else label_names(read_table(options, options.train)[options.label])

    def rows(file: str, longest: int) -> Dataset:
        table = read_table(options, file)
        pairs = table[options.pair] if options.pair else None
        return sequence_rows(
            tokenizer, table[options.text], pairs, table[options.label], names=names, max_length=longest
        )

    def measured(found: EvalPrediction) -> dict[str, float]:
        if is_regression:
            scores, right = found.predictions[:, 0], found.label_ids
            return {"pearson": metrics.pearson(scores, right), "spearman": metrics.spearman(scores, right)}
        best = found.predictions.argmax(axis=-1)
        result = {"accuracy": metrics.accuracy(best, found.label_ids)}
        return result | ({"f1": metrics.f1(best, found.label_ids)} if len(names or ()) == 2 else {})

    return "SequenceClassification", names or ["LABEL_0"], rows, lambda _: measured


def _tokens(options: argparse.Namespace, tokenizer: Tokenizer) -> Task:
    """Words with a label each."""
    tags = lists_of(options.train, options.label, read_table(options, options.train)[options.label])
    names = label_names([tag for row in tags for tag in row])

    def rows(file: str, longest: int) -> Dataset:
        table = read_table(options, file)
        texts, labels = (lists_of(file, name, table[name]) for name in (options.text, options.label))
        return token_rows(tokenizer, texts, labels, names=names, max_length=longest)

    return "TokenClassification", names, rows, lambda _: lambda found: token_metrics(found, names)


def token_metrics(found: EvalPrediction, names: list[str]) -> dict[str, float]:
    """Return the accuracy of tokens and the F1 of entities."""
    best, counted = found.predictions.argmax(axis=-1), found.label_ids != -100
    tagged, right = (
        [[names[i] for i in row[keep]] for row, keep in zip(rows, counted, strict=True)]
        for rows in (best, found.label_ids)
    )
    return {"accuracy": metrics.accuracy(best, found.label_ids), "entity_f1": metrics.entity_f1(tagged, right)}


def _answers(options: argparse.Namespace, tokenizer: Tokenizer) -> Task:
    """Questions, contexts, and answers that are spans of them."""

    def rows(file: str, longest: int) -> Dataset:
        length = longest if options.max_length else min(longest, LONGEST_WINDOW)
        if file.lower().endswith(".json"):
            questions, contexts, answers = read_squad(file).values()
            return question_windows(tokenizer, questions, contexts, answers, max_length=length)
        table = read_table(options, file, options.answer_start)
        starts = table[options.answer_start] if options.answer_start else None
        questions, contexts, answers = (table[name] for name in (options.pair, options.text, options.label))
        return question_windows(tokenizer, questions, contexts, answers, starts, max_length=length)

    def measure(windows: Dataset) -> Measure:
        assert isinstance(windows, QuestionWindows)

        def measured(found: EvalPrediction) -> dict[str, float]:
            predicted = windows.predicted(*found.predictions)
            return {
                "exact_match": metrics.exact_match(predicted, windows.answers),
                "f1": metrics.answer_f1(predicted, windows.answers),
            }

        return measured

    return "QuestionAnswering", None, rows, measure


def _choose(options: argparse.Namespace, tokenizer: Tokenizer) -> Task:
    """Texts with several choices each."""
    names = options.choices.split(",")

    def rows(file: str, longest: int) -> Dataset:
        table = read_table(options, file, *names)
        if len(names) == 1:
            choices = table[names[0]]
            if wrong := next((value for value in choices if not isinstance(value, list)), None):
                message = f"{file}: the column {names[0]!r} must hold lists of strings, not {wrong!r:.40}; a column for"
                message += " each choice is named as --choices a,b,c"
                raise InputError(message)
        else:
            choices = [list(row) for row in zip(*(table[name] for name in names), strict=True)]
        texts = table[options.text]
        if options.pair:  # SWAG: the beginning of the sentence that every choice continues
            choices = [
                [f"{begin} {choice}" for choice in row] for begin, row in zip(table[options.pair], choices, strict=True)
            ]
        return choice_rows(tokenizer, texts, choices, table[options.label], max_length=longest)

    def measured(found: EvalPrediction) -> dict[str, float]:
        return {"accuracy": metrics.accuracy(found.predictions.argmax(axis=-1), found.label_ids)}

    return "MultipleChoice", None, rows, lambda _: measured


def _sentence_trainer(options: argparse.Namespace, settings: TrainingArguments) -> SentenceTrainer:
    """Return the trainer of a sentence encoder."""
    if not options.pair:
        raise InputError("--task similar needs pairs of texts: give --pair COLUMN, the second text of each")
    encoder = SentenceEncoder(options.model, download=options.download)
    if options.max_length:
        encoder.max_seq_length = min(options.max_length, encoder.max_seq_length)

    def rows(file: str) -> list[dict[str, Any]]:
        columns = read_table(options, file)
        triples = zip(columns[options.text], columns[options.pair], columns[options.label], strict=True)
        return [{"a": str(a), "b": str(b), "label": float(label)} for a, b, label in triples]

    return SentenceTrainer(
        encoder, settings, rows(options.train), losses.CoSENTLoss(), rows(options.eval) if options.eval else None
    )


def lists_of(file: str, column: str, values: list[Any]) -> list[list[str]]:
    """Return lists of words or labels; a string is divided at white space."""
    rows = [value.split() if isinstance(value, str) else value for value in values]
    if wrong := next((value for value in rows if not isinstance(value, list)), None):
        raise InputError(
            f"{file}: the column {column!r} must hold lists of strings, or strings of words, not {wrong!r:.40}"
        )
    return rows
