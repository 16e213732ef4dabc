"""The options of ``wordpiece-bert train``: output, special tokens, and what each algorithm needs."""

from __future__ import annotations

import argparse
from pathlib import Path

from wordpiece_bert.cli import arguments

__all__ = ["declare"]


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
        help="number of tokens, special tokens included (default: 30522)",
    )
    parser.add_argument(
        "-a",
        "--algorithm",
        choices=arguments.ALGORITHMS,
        default="bpe",
        help="bpe: as Hugging Face tokenizers; top_down: as TensorFlow Text; likelihood: Schuster & Nakajima's score "
        "(default: bpe)",
    )
    parser.add_argument(
        "--max-word-chars", type=arguments.positive, metavar="N", help="skip words longer than N characters"
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
        help="may be repeated (default: [PAD] [UNK] [CLS] [SEP] [MASK])",
    )
    start.add_argument(
        "--reserved", choices=["bert"], help="special tokens at BERT's ids, with the ids between as [unusedN]"
    )
    start.add_argument("--unused", type=arguments.natural, metavar="N", help="number of [unusedN] (default: 99)")
    start.add_argument("--base", metavar="VOCAB", help="extend this vocabulary: its tokens keep their ids")
    start.add_argument("--fill-unused", action="store_true", help="put new tokens at the [unusedN] ids of --base")
    start.add_argument("--pieces", type=Path, metavar="FILE.tsv", help="write the pieces of new tokens under --base")


def _add_merge_arguments(parser: argparse.ArgumentParser) -> None:
    merging = parser.add_argument_group("bpe and likelihood")
    merging.add_argument(
        "--min-frequency",
        type=arguments.natural,
        metavar="N",
        help="merge only pairs that occur at least N times (default: 2)",
    )
    merging.add_argument(
        "--limit-alphabet",
        type=arguments.natural_or_all,
        default=argparse.SUPPRESS,
        metavar="N|all",
        help="keep the N most frequent characters (default: 1000)",
    )
    merging.add_argument("--initial-alphabet", metavar="CHARS", help="characters to keep in any case")


def _add_top_down_arguments(parser: argparse.ArgumentParser) -> None:
    top_down = parser.add_argument_group("top_down")
    top_down.add_argument(
        "--lower-thresh",
        type=arguments.natural_or_all,
        default=argparse.SUPPRESS,
        metavar="N|all",
        help="lower end of the search for a threshold (default: 10)",
    )
    top_down.add_argument(
        "--upper-thresh",
        type=arguments.natural_or_all,
        default=argparse.SUPPRESS,
        metavar="N|all",
        help="upper end (default: 10000000)",
    )
    top_down.add_argument(
        "--num-iterations", type=arguments.natural, metavar="N", help="passes for each threshold (default: 4)"
    )
    top_down.add_argument(
        "--slack-ratio",
        type=float,
        metavar="X",
        help="share of --vocab-size by which the vocabulary may be smaller (default: 0.05)",
    )
    top_down.add_argument(
        "--max-token-length", type=arguments.natural, metavar="N", help="skip words longer than this (default: 50)"
    )
    top_down.add_argument(
        "--max-unique-chars",
        type=arguments.natural,
        metavar="N",
        help="keep the N most frequent characters (default: 1000)",
    )
    top_down.add_argument(
        "--max-input-words",
        type=arguments.natural_or_all,
        default=argparse.SUPPRESS,
        metavar="N|all",
        help="keep the N most frequent words (default: 5000000)",
    )
    top_down.add_argument("--no-joiner", action="store_true", help="do not mark pieces inside words with ##")
