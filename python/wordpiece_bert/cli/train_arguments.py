"""The options of ``wordpiece-bert train``: output, special tokens, and what each algorithm needs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.arguments import described
from wordpiece_bert.training.parameters import (
    ALGORITHMS,
    DEFAULT_SIZE,
    MERGING,
    SPECIAL_TOKENS,
    TOP_DOWN,
    TRAINING,
    UNUSED,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``train`` to its parser."""
    arguments.add_files(parser)
    parser.add_argument(
        "-o", "--output", required=True, type=Path, metavar="FOLDER", help="a folder for a tokenizer, or a vocab.txt"
    )
    parser.add_argument("--counts", action="store_true", help="the files are word counts, made by the command count")
    parser.add_argument(
        "-n",
        "--vocab-size",
        type=arguments.positive,
        metavar="N",
        help=described(TRAINING, "vocab_size", DEFAULT_SIZE),
    )
    parser.add_argument(
        "-a",
        "--algorithm",
        choices=ALGORITHMS,
        default=ALGORITHMS[0],
        help="bpe: as Hugging Face tokenizers; top_down: as TensorFlow Text; likelihood: Schuster & Nakajima's score "
        f"(default: {ALGORITHMS[0]})",
    )
    parser.add_argument(
        "--max-word-chars", type=arguments.positive, metavar="N", help=described(TRAINING, "max_word_chars")
    )
    parser.add_argument("--token-counts", type=Path, metavar="FILE.tsv", help="write how often each token is used")
    arguments.add_download(parser)
    _add_start_arguments(parser)
    _add_merge_arguments(parser)
    _add_top_down_arguments(parser)


def _add_start_arguments(parser: argparse.ArgumentParser) -> None:
    start = parser.add_argument_group("special tokens and existing vocabularies")
    start.add_argument(
        "--special-token",
        action="append",
        metavar="TOKEN",
        help=f"may be repeated (default: {' '.join(SPECIAL_TOKENS)})",
    )
    start.add_argument("--reserved", choices=["bert"], help=described(TRAINING, "reserved"))
    start.add_argument(
        "--unused", type=arguments.natural, metavar="N", help=described(TRAINING, "unused", UNUSED, ", for --reserved")
    )
    start.add_argument("--base", metavar="VOCAB", help=described(TRAINING, "base"))
    start.add_argument("--fill-unused", action="store_true", help=described(TRAINING, "fill_unused"))
    start.add_argument("--pieces", type=Path, metavar="FILE.tsv", help="write the pieces of new tokens under --base")


def _add_merge_arguments(parser: argparse.ArgumentParser) -> None:
    merging = parser.add_argument_group("bpe and likelihood")
    _add_numbers(merging, MERGING, ["min_frequency"])
    _add_numbers(merging, MERGING, ["limit_alphabet"], or_all=True)
    merging.add_argument("--initial-alphabet", metavar="CHARS", help="characters to keep in any case")


def _add_top_down_arguments(parser: argparse.ArgumentParser) -> None:
    top_down = parser.add_argument_group("top_down")
    _add_numbers(top_down, TOP_DOWN, ["lower_thresh", "upper_thresh"], or_all=True)
    _add_numbers(top_down, TOP_DOWN, ["num_iterations"])
    slack = TOP_DOWN["slack_ratio"]
    top_down.add_argument("--slack-ratio", type=float, metavar="X", help=described(TRAINING, "slack_ratio", slack))
    _add_numbers(top_down, TOP_DOWN, ["max_token_length", "max_unique_chars"])
    _add_numbers(top_down, TOP_DOWN, ["max_input_words"], or_all=True)
    top_down.add_argument("--no-joiner", action="store_true", help="do not mark pieces inside words with ##")


def _add_numbers(
    group: argparse._ArgumentGroup, defaults: Mapping[str, Any], names: Iterable[str], *, or_all: bool = False
) -> None:
    """Declare options that are whole numbers; with `or_all`, the word ``all`` is None."""
    for name in names:
        group.add_argument(
            "--" + name.replace("_", "-"),
            type=arguments.natural_or_all if or_all else arguments.natural,
            default=argparse.SUPPRESS if or_all else None,
            metavar="N|all" if or_all else "N",
            help=described(TRAINING, name, defaults[name]),
        )
