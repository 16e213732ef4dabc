"""``wordpiece-bert distill``: a static model from an encoder."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from wordpiece_bert._internal.same_file import refuse_input_as_output
from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.messages import counted, print_summary
from wordpiece_bert.errors import InputError


def add_parser(commands: arguments.Commands, summary: str) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "distill",
        parents=[arguments.common_options()],
        help=summary,
        description="Make a static model from an encoder: a vector for each token of its vocabulary, and nothing else. "
        "The folder is one of model2vec; 'embed', model2vec and sentence-transformers load it.",
    )
    arguments.add_model(parser, "the encoder: ")
    parser.add_argument(
        "-o", "--output", required=True, type=Path, metavar="FOLDER", help="the folder, which appears when complete"
    )
    parser.add_argument(
        "--vocabulary", type=Path, metavar="FILE", help="a text file with words to add, one per line (default: none)"
    )
    parser.add_argument(
        "--pca-dims",
        type=_dims,
        default=256,
        metavar="N",
        help="the width of the vectors; a share of the variance to keep, such as 0.9; auto for the encoder's width; "
        "none for no principal component analysis (default: 256)",
    )
    parser.add_argument(
        "--sif-coefficient",
        type=_coefficient,
        default=1e-4,
        metavar="A",
        help="how much frequent tokens are scaled down, between 0 and 1, or none (default: 0.0001)",
    )
    parser.add_argument(
        "--pooling",
        choices=["mean", "first", "last", "pooler"],
        default="mean",
        help="the vector of a token: the mean of those of [CLS], the token and [SEP], the first, the last, or the "
        "model's pooler (default: mean)",
    )
    arguments.add_running(parser, run)


def run(options: argparse.Namespace) -> None:
    """Distill the model, write its folder, and print a summary."""
    from wordpiece_bert.sentence import SentenceEncoder, distill_static

    start = time.perf_counter()
    if options.output.exists() and not options.output.is_dir():
        raise InputError(f"{options.output}: is a file; give a folder")
    refuse_input_as_output(options.output.glob("*"), arguments.files_of(options.model))
    words = None if options.vocabulary is None else arguments.lines_of(options.vocabulary, "--vocabulary")
    encoder = SentenceEncoder.from_pretrained(options.model, threads=options.threads, download=options.download)
    static = distill_static(
        encoder,
        vocabulary=words,
        pca_dims=options.pca_dims,
        sif_coefficient=options.sif_coefficient,
        pooling=options.pooling,
        show_progress_bar=not options.quiet,
    )
    static.save_pretrained(options.output)
    tokens = len(static.tokenizer.get_vocab())
    seconds = time.perf_counter() - start
    print_summary(
        options,
        f"{options.output}: {counted(tokens, 'token')}, vectors of {static.dimension} float32 ({seconds:.1f} s)",
        {
            "output": str(options.output),
            "model": options.model,
            "tokens": tokens,
            "dimensions": static.dimension,
            "seconds": seconds,
        },
    )


def _dims(value: str) -> Any:
    """Convert an argument to a width, a share of the variance, "auto" or None."""
    if value in ("auto", "none"):
        return None if value == "none" else value
    try:
        return arguments.positive(value) if value.isdigit() else float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{value!r} is not a whole number, a number between 0 and 1, auto or none"
        ) from None


def _coefficient(value: str) -> float | None:
    """Convert an argument to a number or None."""
    if value == "none":
        return None
    try:
        return float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{value!r} is not a number between 0 and 1, or none") from None
