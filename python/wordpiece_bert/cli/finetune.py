"""``wordpiece-bert finetune``: a pre-trained model and labelled texts to a model for a task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.same_file import refuse_input_as_output
from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.messages import print_summary, print_verbose
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import argparse

    from wordpiece_bert.finetune import TrainingArguments

__all__ = ["add_parser"]

_TASKS = ("classify", "regress", "tokens", "similar")


def add_parser(commands: arguments.Commands, summary: str) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "finetune",
        parents=[arguments.common_options()],
        help=summary,
        description="Fine-tune a model on labelled texts in a CSV, TSV, JSON-lines or Parquet file. The output is a "
        "folder that this package, transformers and (for similar) sentence-transformers load.",
    )
    parser.add_argument("-m", "--model", default="minilm", help=arguments.VOCAB_HELP.removeprefix("vocab.txt, "))
    parser.add_argument(
        "--task",
        choices=_TASKS,
        required=True,
        help="classify: a label for each text or pair; regress: a number; tokens: a label for each word; similar: "
        "vectors whose cosines follow the labels of pairs",
    )
    parser.add_argument("--train", metavar="FILE", required=True, help="the labelled texts, .csv .tsv .jsonl .parquet")
    parser.add_argument("--eval", metavar="FILE", help="labelled texts to evaluate on after each epoch")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="the folder of the model")
    data = parser.add_argument_group("data")
    data.add_argument("--text", default="text", metavar="COLUMN", help="the texts, or lists of words (default: text)")
    data.add_argument("--pair", metavar="COLUMN", help="the second text of each pair")
    data.add_argument("--label", default="label", metavar="COLUMN", help="the labels (default: label)")
    data.add_argument("--max-length", type=arguments.positive, metavar="N", help="truncate texts to this many tokens")
    training = parser.add_argument_group("training")
    training.add_argument(
        "--epochs", type=_above_zero, default=3.0, metavar="N", help="passes over the data (default: 3)"
    )
    training.add_argument("--batch-size", type=arguments.positive, default=16, metavar="N", help="(default: 16)")
    training.add_argument("--learning-rate", type=_above_zero, default=5e-5, metavar="RATE", help="(default: 5e-5)")
    training.add_argument(
        "--warmup",
        type=_share,
        default=0.1,
        metavar="SHARE",
        help="share of the steps with a growing rate (default: 0.1)",
    )
    training.add_argument("--weight-decay", type=_share, default=0.01, metavar="RATE", help="(default: 0.01)")
    training.add_argument(
        "--freeze",
        action="append",
        default=[],
        metavar="NAME",
        help="train no parameter of this name, such as embeddings or encoder.layer.0",
    )
    training.add_argument("--seed", type=arguments.natural, default=42, metavar="N", help="(default: 42)")
    training.add_argument(
        "--resume", action="store_true", help="go on from the newest checkpoint of a run that was interrupted"
    )
    arguments.add_download(parser)
    arguments.add_output_control(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Train, evaluate after each epoch, and write the folder."""
    from wordpiece_bert.finetune import TrainingArguments

    files = [file for file in (options.train, options.eval) if file]
    refuse_input_as_output([options.output], files)
    if options.output.exists() and not options.output.is_dir():
        message = f"{options.output}: is a file; give a folder"
        raise InputError(message)
    settings = TrainingArguments(
        options.output / "checkpoints",
        learning_rate=options.learning_rate,
        per_device_train_batch_size=options.batch_size,
        num_train_epochs=options.epochs,
        warmup_steps=options.warmup,
        weight_decay=options.weight_decay,
        seed=options.seed,
        train_sampling_strategy="group_by_length",
        eval_strategy="epoch" if options.eval else "no",
        save_strategy="epoch",
        save_total_limit=1,
        freeze=tuple(options.freeze),
        show_progress_bar=False if options.quiet else None,
    )
    trainer = _sentence_trainer(options, settings) if options.task == "similar" else _trainer(options, settings)
    result = trainer.train(resume_from_checkpoint=True if options.resume else None)
    trainer.save_model(options.output)
    evaluations = [entry for entry in trainer.log_history if any(name.startswith("eval_") for name in entry)]
    facts: dict[str, Any] = {
        "output": str(options.output),
        "steps": result.global_step,
        "loss": result.training_loss,
        "seconds": result.metrics["train_runtime"],
        "evaluations": evaluations,
    }
    last = {name.removeprefix("eval_"): value for name, value in (evaluations[-1:] or [{}])[0].items()}
    shown = ", ".join(f"{name} {value:.4f}" for name, value in last.items() if name not in ("step", "epoch"))
    print_summary(
        options,
        f"{options.output}: {result.global_step:,} steps in {result.metrics['train_runtime']:.0f} s, mean loss "
        f"{result.training_loss:.4f}" + (f"; evaluation: {shown}" if shown else ""),
        facts,
    )


def _columns(options: argparse.Namespace, file: str) -> dict[str, list[Any]]:
    from wordpiece_bert.finetune.data import read_columns

    return read_columns(file, [name for name in (options.text, options.pair, options.label) if name])


def _trainer(options: argparse.Namespace, settings: TrainingArguments) -> Any:  # noqa: ANN401
    """Return the trainer of a model with a head."""
    from wordpiece_bert.finetune import Trainer, metrics
    from wordpiece_bert.finetune.data import label_names, sequence_rows, token_rows
    from wordpiece_bert.finetune.start import model_for
    from wordpiece_bert.tokenizer import Tokenizer

    train = _columns(options, options.train)
    held_out = _columns(options, options.eval) if options.eval else None
    if options.task == "tokens":
        tags = _lists(options.train, options.label, train[options.label])
        names = label_names([tag for row in tags for tag in row])
    else:
        names = [] if options.task == "regress" else label_names(train[options.label])
    model = model_for(
        options.model,
        "TokenClassification" if options.task == "tokens" else "SequenceClassification",
        labels=names or ["LABEL_0"],
        problem_type={"regress": "regression", "classify": "single_label_classification"}.get(options.task),  # type: ignore[arg-type]
        seed=options.seed,
        download=options.download,
    )
    print_verbose(options, f"model: {model}")
    tokenizer = Tokenizer.from_pretrained(options.model, download=options.download)
    longest = min(options.max_length or model.config.longest_row, model.config.longest_row)

    def rows(columns: dict[str, list[Any]], file: str) -> list[dict[str, Any]]:
        if options.task == "tokens":
            texts, labels = (_lists(file, name, columns[name]) for name in (options.text, options.label))
            return token_rows(tokenizer, texts, labels, names=names, max_length=longest)
        pairs = columns[options.pair] if options.pair else None
        return sequence_rows(
            tokenizer, columns[options.text], pairs, columns[options.label], names=names or None, max_length=longest
        )

    def measured(found: Any) -> dict[str, float]:  # noqa: ANN401
        if options.task == "regress":
            scores, right = found.predictions[:, 0], found.label_ids
            return {"pearson": metrics.pearson(scores, right), "spearman": metrics.spearman(scores, right)}
        best = found.predictions.argmax(axis=-1)
        result = {"accuracy": metrics.accuracy(best, found.label_ids)}
        if options.task == "tokens":
            counted = found.label_ids != -100
            tagged = [[names[i] for i in row[keep]] for row, keep in zip(best, counted, strict=True)]
            right = [[names[i] for i in row[keep]] for row, keep in zip(found.label_ids, counted, strict=True)]
            result["entity_f1"] = metrics.entity_f1(tagged, right)
        elif len(names) == 2:
            result["f1"] = metrics.f1(best, found.label_ids)
        return result

    return Trainer(
        model,
        settings,
        rows(train, options.train),
        rows(held_out, options.eval) if held_out else None,
        compute_metrics=measured,
        tokenizer=tokenizer,
    )


def _sentence_trainer(options: argparse.Namespace, settings: TrainingArguments) -> Any:  # noqa: ANN401
    """Return the trainer of a sentence encoder."""
    from wordpiece_bert.finetune import SentenceTrainer, losses
    from wordpiece_bert.sentence import SentenceEncoder

    if not options.pair:
        message = "--task similar needs pairs of texts: give --pair COLUMN, the second text of each"
        raise InputError(message)
    encoder = SentenceEncoder(options.model, download=options.download)
    if options.max_length:
        encoder.max_seq_length = min(options.max_length, encoder.max_seq_length)

    def rows(file: str) -> list[dict[str, Any]]:
        columns = _columns(options, file)
        triples = zip(columns[options.text], columns[options.pair], columns[options.label], strict=True)
        return [{"a": str(a), "b": str(b), "label": _score(file, label)} for a, b, label in triples]

    return SentenceTrainer(
        encoder, settings, rows(options.train), losses.CoSENTLoss(), rows(options.eval) if options.eval else None
    )


def _score(file: str, value: Any) -> float:  # noqa: ANN401
    try:
        return float(value)
    except (TypeError, ValueError):
        message = f"{file}: the label {value!r} is no number; --task similar orders pairs by numbers"
        raise InputError(message) from None


def _lists(file: str, column: str, values: list[Any]) -> list[list[str]]:
    """Return lists of words or labels; a string is divided at white space."""
    rows = [value.split() if isinstance(value, str) else value for value in values]
    if wrong := next((value for value in rows if not isinstance(value, list)), None):
        message = f"{file}: the column {column!r} must hold lists of strings, or strings of words, not {wrong!r:.40}"
        raise InputError(message)
    return rows


def _above_zero(value: str) -> float:
    return _checked(value, above=0.0)


def _share(value: str) -> float:
    return _checked(value, above=-1e-300)


def _checked(value: str, above: float) -> float:
    import argparse

    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not above < number < float("inf"):
        message = f"{value!r} is not a number {'above 0' if above == 0 else 'of at least 0'}"
        raise argparse.ArgumentTypeError(message)
    return number
