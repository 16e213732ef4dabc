"""``wordpiece-bert pretrain``: pre-training examples to a model, from random weights or from a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.messages import print_verbose
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import argparse

    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.bert.heads.base import HeadModel
    from wordpiece_bert.finetune import PretrainingRows, TrainingArguments
    from wordpiece_bert.pretraining import Masking, PretrainingDataset
    from wordpiece_bert.tokenizer import Tokenizer

__all__ = ["add_parser"]

_SIZES = {
    "hidden_size": (128, "length of a token's vector"),
    "layers": (2, "layers of the encoder"),
    "heads": (2, "attention heads of each layer"),
}


def add_parser(commands: arguments.Commands, summary: str) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "pretrain",
        parents=[arguments.common_options()],
        help=summary,
        description="Pre-train a model on the examples that pretrain-data has written (format npy): masked tokens, and "
        "the pairs' label where rows are pairs. The output is a folder that this package and transformers load.",
    )
    parser.add_argument("data", metavar="DATA", help="the folder of examples")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="the folder of the model")
    parser.add_argument("-v", "--vocab", required=True, help=f"{arguments.VOCAB_HELP}, with which DATA was made")
    parser.add_argument("--cased", action="store_true", help="with a vocab.txt: keep upper case and accents")
    _add_model(parser.add_argument_group("model"))
    masking = parser.add_argument_group("masking, unless DATA is masked")
    units = masking.add_mutually_exclusive_group()
    units.add_argument("--whole-words", action="store_true", help="choose all pieces of a word together")
    units.add_argument("--spans", action="store_true", help="choose runs of whole words")
    masking.add_argument(
        "--mask-probability", type=arguments.share, default=0.15, metavar="P", help="share of tokens chosen (0.15)"
    )
    _add_training(parser.add_argument_group("training"))
    arguments.add_download(parser)
    arguments.add_output_control(parser)
    parser.set_defaults(run=run)


def _add_model(group: argparse._ArgumentGroup) -> None:
    start = group.add_mutually_exclusive_group()
    start.add_argument("-m", "--model", metavar="MODEL", help="start from this model instead of random weights")
    start.add_argument("--config", type=Path, metavar="FILE", help="the sizes, as a config.json")
    for name, (default, what) in _SIZES.items():
        flag = f"--{name.replace('_', '-')}"
        group.add_argument(flag, type=arguments.positive, metavar="N", help=f"{what} (default: {default})")
    group.add_argument(
        "--intermediate-size", type=arguments.positive, metavar="N", help="width of the feed-forward network (4 H)"
    )
    group.add_argument(
        "--max-positions", type=arguments.positive, metavar="N", help="the longest row (default: that of DATA)"
    )
    group.add_argument("--dropout", type=arguments.share, metavar="P", help="all dropout rates (default: 0.1)")


def _add_training(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--epochs", type=arguments.above_zero, default=1.0, metavar="N", help="passes over DATA (1)")
    group.add_argument("--max-steps", type=arguments.positive, metavar="N", help="steps, instead of --epochs")
    group.add_argument("--batch-size", type=arguments.positive, default=32, metavar="N", help="rows of a batch (32)")
    group.add_argument(
        "--accumulation", type=arguments.positive, default=1, metavar="N", help="batches of a step (default: 1)"
    )
    group.add_argument("--learning-rate", type=arguments.above_zero, default=1e-3, metavar="RATE", help="(1e-3)")
    group.add_argument(
        "--warmup", type=arguments.not_negative, default=0.1, metavar="N", help="steps with a growing rate, or a share"
    )
    group.add_argument(
        "--schedule",
        choices=("linear", "cosine", "constant", "constant_with_warmup"),
        default="linear",
        help="how the rate changes afterwards (default: linear)",
    )
    group.add_argument("--weight-decay", type=arguments.not_negative, default=0.01, metavar="RATE", help="(0.01)")
    group.add_argument("--max-grad-norm", type=arguments.not_negative, default=1.0, metavar="N", help="clipping (1.0)")
    group.add_argument(
        "--eval-share",
        type=arguments.share,
        default=0.05,
        metavar="P",
        help="share of the rows, the last ones, to evaluate on (0.05)",
    )
    group.add_argument("--eval", metavar="FOLDER", help="examples to evaluate on instead")
    group.add_argument(
        "--eval-steps", type=arguments.positive, default=100, metavar="N", help="steps between evaluations (100)"
    )
    group.add_argument(
        "--save-steps", type=arguments.positive, default=100, metavar="N", help="steps between checkpoints (100)"
    )
    group.add_argument("--checkpointing", action="store_true", help="a tenth of the memory, a third more time")
    group.add_argument("--seed", type=arguments.natural, default=42, metavar="N", help="(default: 42)")
    arguments.add_training_run(group)


def run(options: argparse.Namespace) -> None:
    """Train, evaluate now and then, and write the folder."""
    from wordpiece_bert.cli.training_run import print_training, resumes, with_threads
    from wordpiece_bert.finetune import PretrainingTrainer, save_curve
    from wordpiece_bert.pretraining import Masking, PretrainingDataset
    from wordpiece_bert.pretraining.build import fingerprint_of

    if options.output.exists() and not options.output.is_dir():
        raise InputError(f"{options.output}: is a file; give a folder")
    if options.output.resolve() == Path(options.data).resolve():
        raise InputError(f"{options.output}: is the folder of examples; give another")
    resume = resumes(options)
    tokenizer = arguments.load_tokenizer(options.vocab, cased=options.cased, download=options.download)
    dataset = PretrainingDataset(options.data)
    if dataset.tokenizer_fingerprint != fingerprint_of(tokenizer):
        raise InputError(
            f"{options.data}: was made with another tokenizer than {options.vocab}; give that one with --vocab"
        )
    masking = None
    if not dataset.masked:
        masking = Masking(
            tokenizer,
            probability=options.mask_probability,
            whole_words=options.whole_words,
            spans=options.spans,
        )
    train, held_out = _rows(options, masking)
    model = _model(options, dataset, tokenizer)
    print_verbose(options, f"model: {model}")
    settings = _settings(options, evaluated=held_out is not None)
    trainer = PretrainingTrainer(model, settings, train, held_out, tokenizer=tokenizer)
    with with_threads(options):
        result = trainer.train(resume_from_checkpoint=resume)
    trainer.save_model(options.output)
    history = trainer.log_history
    curve = save_curve(_drawn(history), options.output / "training_curve.svg", title="Pre-training")
    evaluations = [entry for entry in history if "eval_loss" in entry]
    print_training(options, result, evaluations, _shown(evaluations), curve)


def _drawn(history: list[dict[str, float]]) -> list[dict[str, float]]:
    """Return a history without the entries that are not on the scale of losses or of shares."""
    left_out = ("eval_perplexity", "eval_mlm_loss", "eval_pair_loss")
    return [{name: value for name, value in entry.items() if name not in left_out} for entry in history]


def _rows(options: argparse.Namespace, masking: Masking | None) -> tuple[PretrainingRows, PretrainingRows | None]:
    """Return the rows to train on, and those to evaluate on."""
    from wordpiece_bert.finetune import PretrainingRows, held_out_rows
    from wordpiece_bert.pretraining import PretrainingDataset

    data = PretrainingDataset(options.data, masking=masking, seed=options.seed)
    if options.eval:
        other = PretrainingDataset(options.eval)
        if other.tokenizer_fingerprint != data.tokenizer_fingerprint:
            raise InputError(f"{options.eval}: was made with another tokenizer than {options.data}")
        if not other.masked:
            other = PretrainingDataset(options.eval, masking=masking, seed=options.seed)
        return PretrainingRows(data), PretrainingRows(other)
    train, held_out = held_out_rows(data, options.eval_share)
    if not len(held_out):
        return PretrainingRows(data), None
    # Another object, so that its masks stay those of epoch 0.
    return PretrainingRows(data, train), PretrainingRows(
        PretrainingDataset(options.data, masking=masking, seed=options.seed), held_out
    )


def _model(options: argparse.Namespace, dataset: PretrainingDataset, tokenizer: Tokenizer) -> HeadModel:
    """Return the model to start from."""
    from wordpiece_bert.bert.auto import read_config
    from wordpiece_bert.finetune import model_for, new_model
    from wordpiece_bert.hub import find_model
    from wordpiece_bert.pretraining.dataset import PAIR_LABELS

    given = [name for name in (*_SIZES, "intermediate_size", "max_positions") if getattr(options, name) is not None]
    if given and (options.model or options.config):
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise InputError(f"{flags}: the sizes are those of {options.model or options.config}; leave them out")
    pairs = dataset.objective in PAIR_LABELS
    if options.model:
        # Only BERT itself has a head for pairs here.
        kind = read_config(find_model(options.model, download=options.download)).model_type
        return model_for(
            options.model,
            "PreTraining" if pairs and kind == "bert" else "MaskedLM",
            seed=options.seed,
            download=options.download,
        )
    return new_model(_config(options, dataset, tokenizer), pairs=pairs, seed=options.seed)


def _config(options: argparse.Namespace, dataset: PretrainingDataset, tokenizer: Tokenizer) -> BertConfig:
    """Return the sizes of a new model."""
    from dataclasses import replace

    from wordpiece_bert.bert.config import BertConfig

    if options.config:
        config = BertConfig.from_file(options.config)
    else:
        sizes = {name: getattr(options, name) or default for name, (default, _) in _SIZES.items()}
        config = BertConfig(
            vocab_size=max(tokenizer.get_vocab().values()) + 1,
            hidden_size=sizes["hidden_size"],
            num_hidden_layers=sizes["layers"],
            num_attention_heads=sizes["heads"],
            intermediate_size=options.intermediate_size or 4 * sizes["hidden_size"],
            max_position_embeddings=options.max_positions or dataset.row_length,
            pad_token_id=tokenizer.pad_token_id,
        )
    if options.dropout is not None:
        config = replace(config, hidden_dropout_prob=options.dropout, attention_probs_dropout_prob=options.dropout)
    return config


def _settings(options: argparse.Namespace, *, evaluated: bool) -> TrainingArguments:
    from wordpiece_bert.cli.training_run import checkpoints_of, log_of
    from wordpiece_bert.finetune import TrainingArguments

    return TrainingArguments(
        checkpoints_of(options),
        learning_rate=options.learning_rate,
        per_device_train_batch_size=options.batch_size,
        gradient_accumulation_steps=options.accumulation,
        num_train_epochs=options.epochs,
        max_steps=options.max_steps or -1,
        warmup_steps=options.warmup,
        lr_scheduler_type=options.schedule,
        weight_decay=options.weight_decay,
        max_grad_norm=options.max_grad_norm,
        seed=options.seed,
        eval_strategy="steps" if evaluated else "no",
        eval_steps=options.eval_steps,
        save_strategy="steps",
        save_steps=options.save_steps,
        save_total_limit=1,
        gradient_checkpointing=options.checkpointing,
        bf16=options.bf16,
        show_progress_bar=not options.quiet,
        overwrite_output_dir=options.overwrite,
        log_file=log_of(options),
    )


def _shown(evaluations: list[dict[str, float]]) -> str:
    """Return the last evaluation as the end of a message, or nothing."""
    if not evaluations:
        return ""
    last = evaluations[-1]
    shown = f"; held out: perplexity {last['eval_perplexity']:.2f}, {last['eval_mlm_accuracy']:.1%} of tokens right"
    return shown + (f", {last['eval_pair_accuracy']:.1%} of pairs" if "eval_pair_accuracy" in last else "")
