"""``wordpiece-bert pretrain``: pre-training examples to a model, from random weights or from a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.messages import print_verbose
from wordpiece_bert.cli.training_options import add_settings, add_training_run, refuse_choice_of_best
from wordpiece_bert.errors import InputError
from wordpiece_bert.finetune.objectives import objective_class, objectives_for

if TYPE_CHECKING:
    import argparse

    from wordpiece_bert.bert.config import BertConfig
    from wordpiece_bert.finetune import PretrainingRows
    from wordpiece_bert.finetune.objectives import ExamplesObjective
    from wordpiece_bert.pretraining import Masking, PretrainingDataset
    from wordpiece_bert.tokenizer.tokenizer import Tokenizer

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
        description="Pre-train a model on the examples that pretrain-data has written (format npy). The output is a "
        "folder that this package and transformers load.",
    )
    objectives = objectives_for("examples")
    parser.add_argument("data", metavar="DATA", help="the folder of examples")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="the folder of the model")
    parser.add_argument("-v", "--vocab", required=True, help=f"{arguments.VOCAB_HELP}, with which DATA was made")
    arguments.add_cased(parser)
    parser.add_argument(
        "--objective",
        choices=objectives,
        default="masked-tokens",
        help="what is learned: "
        + "; ".join(f"{name}: {one.summary}" for name, one in objectives.items())
        + " (default: masked-tokens)",
    )
    _add_model(parser.add_argument_group("model"))
    arguments.add_masking(parser.add_argument_group("masking, unless DATA is masked"))
    _add_training(parser.add_argument_group("training"))
    arguments.add_running(parser, run, threads=False)


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
    rates = ["epochs", "max_steps", "batch_size", "accumulation", "learning_rate", "warmup", "schedule", "weight_decay"]
    add_settings(group, [*rates, "max_grad_norm"], epochs=1.0, batch_size=32, learning_rate=1e-3, warmup=0.1)
    group.add_argument(
        "--eval-share",
        type=arguments.share,
        default=0.05,
        metavar="P",
        help="share of the rows, the last ones, to evaluate on (default: 0.05)",
    )
    group.add_argument("--eval", metavar="FOLDER", help="examples to evaluate on instead")
    add_settings(group, ["eval_steps", "save_steps", "best", "metric", "patience"], eval_steps=100, save_steps=100)
    add_settings(group, ["checkpointing", "seed"])
    add_training_run(group)


def run(options: argparse.Namespace) -> None:
    """Train, evaluate now and then, and write the folder."""
    from wordpiece_bert.cli.training_run import (
        arguments_of,
        best_of,
        final_evaluation,
        print_training,
        resumes,
    )
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
    if dataset.masked:
        arguments.refuse(options, ("whole_words", "spans", "mask_probability"), "is not for rows that are masked")
    else:
        masking = Masking(
            tokenizer,
            probability=options.mask_probability,
            whole_words=options.whole_words,
            spans=options.spans,
        )
    train, held_out = _rows(options, masking)
    objective = objective_class(options.objective, "examples")()
    model = _model(options, objective, dataset, tokenizer)
    print_verbose(options, f"model: {model}")
    if held_out is None:
        refuse_choice_of_best(options, "--eval-share above 0 or --eval")
    settings = arguments_of(options, evaluated=held_out is not None)
    trainer = PretrainingTrainer(model, settings, train, held_out, tokenizer=tokenizer, objective=objective)
    with arguments.with_threads(options):
        result = trainer.train(resume_from_checkpoint=resume)
    trainer.save_model(options.output)
    history = trainer.log_history
    drawn = [{name: value for name, value in entry.items() if name not in objective.off_scale} for entry in history]
    curve = save_curve(drawn, options.output / "training_curve.svg", title="Pre-training")
    evaluations = [entry for entry in history if "eval_loss" in entry]
    shown = f"; held out: {objective.shown(final_evaluation(trainer, evaluations))}" if evaluations else ""
    print_training(options, result, evaluations, best_of(trainer) + shown, curve)


def _rows(options: argparse.Namespace, masking: Masking | None) -> tuple[PretrainingRows, PretrainingRows | None]:
    """Return the rows to train on, and those to evaluate on."""
    from wordpiece_bert.finetune import PretrainingRows, held_out_rows
    from wordpiece_bert.pretraining import PretrainingDataset

    data = PretrainingDataset(options.data, masking=masking, seed=options.seed)
    if options.eval:
        arguments.refuse(options, ["eval_share"], "is for rows of DATA: leave out --eval")
        other = PretrainingDataset(options.eval)
        if other.tokenizer_fingerprint != data.tokenizer_fingerprint:
            raise InputError(f"{options.eval}: was made with another tokenizer than {options.data}")
        if not other.masked:
            other = PretrainingDataset(options.eval, masking=masking, seed=options.seed)
        return PretrainingRows(data), PretrainingRows(other)
    train, held_out = held_out_rows(data, options.eval_share)
    if not len(held_out):
        return PretrainingRows(data), None
    # Another object, so that its masks stay the masks of epoch 0.
    return PretrainingRows(data, train), PretrainingRows(
        PretrainingDataset(options.data, masking=masking, seed=options.seed), held_out
    )


def _model(
    options: argparse.Namespace, objective: ExamplesObjective[Any], dataset: PretrainingDataset, tokenizer: Tokenizer
) -> Any:
    """Return the model to start from."""
    from wordpiece_bert.pretraining.dataset import PAIR_LABELS

    fixed = [*_SIZES, "intermediate_size", "max_positions", *["dropout"] * bool(options.model)]
    given = [name for name in fixed if getattr(options, name) is not None]
    if given and (options.model or options.config):
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise InputError(f"{flags}: the sizes and rates are those of {options.model or options.config}; leave them out")
    pairs = dataset.objective in PAIR_LABELS
    if options.model:
        return objective.load_model(options.model, pairs=pairs, seed=options.seed, download=options.download)
    return objective.new_model(_config(options, objective, dataset, tokenizer), pairs=pairs, seed=options.seed)


def _config(
    options: argparse.Namespace, objective: ExamplesObjective[Any], dataset: PretrainingDataset, tokenizer: Tokenizer
) -> BertConfig:
    """Return the sizes of a new model."""
    from dataclasses import replace

    if options.config:
        config = objective.config_from_file(options.config)
    else:
        sizes = {name: getattr(options, name) or default for name, (default, _) in _SIZES.items()}
        config = objective.new_config(
            {
                "vocab_size": max(tokenizer.get_vocab().values()) + 1,
                "hidden_size": sizes["hidden_size"],
                "num_hidden_layers": sizes["layers"],
                "num_attention_heads": sizes["heads"],
                "intermediate_size": options.intermediate_size or 4 * sizes["hidden_size"],
                "max_position_embeddings": options.max_positions or dataset.row_length,
                "pad_token_id": tokenizer.pad_token_id,
            }
        )
    if options.dropout is not None:
        config = replace(config, **dict.fromkeys(config.plan().rates(), options.dropout))
    return config
