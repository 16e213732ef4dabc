"""``wordpiece-bert train``: a vocabulary from text files or from word counts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.progress import stage_progress
from wordpiece_bert._internal.same_file import refuse_input_as_output
from wordpiece_bert.cli import arguments, count, train_arguments
from wordpiece_bert.cli.messages import print_summary
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from wordpiece_bert.tokenizer.tokenizer import Tokenizer
    from wordpiece_bert.training import Vocab, WordCounts


def add_parser(commands: arguments.Commands, summary: str) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "train",
        parents=[arguments.common_options(), arguments.reading_arguments("to read both"), count.counting_arguments()],
        help=summary,
        description="Train a vocabulary from text files, or from word counts.",
    )
    train_arguments.declare(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Train a vocabulary, write it, and print a summary of the training."""
    from wordpiece_bert._internal.atomic_file import write_text
    from wordpiece_bert.training import train_vocab

    start = time.perf_counter()
    options.files = arguments.input_files(options.files)
    as_file = options.output.suffix == ".txt"
    if not as_file and options.output.exists() and not options.output.is_dir():
        raise InputError(f"{options.output}: is a file; give a folder, or a file that ends in .txt")
    names = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")
    written = [options.output] if as_file else [options.output / name for name in names]
    written += [path for path in (options.token_counts, options.pieces) if path]
    refuse_input_as_output(written, [*options.files, *arguments.files_of(options.base)])
    training = _training_options(options)
    with stage_progress(quiet=options.quiet) as progress:
        # `train_vocab` says how many texts were skipped.
        counts = _load_counts(options) if options.counts else count.count_files(options.files, options, progress)[0]
        counted = time.perf_counter()
        vocab = train_vocab(counts, progress=progress, **training)
    if as_file:
        vocab.save(options.output)
    else:
        vocab.save_pretrained(options.output, unk_token=_unknown_token(vocab))
    if options.token_counts:
        rows = zip(vocab.tokens, vocab.counts, strict=True)
        write_text(options.token_counts, "".join(f"{token}\t{n}\n" for token, n in rows))
    if options.pieces:
        _write_pieces(options.pieces, vocab, training["base"])
    _print_summary(options, vocab, counts, counted - start, time.perf_counter() - counted)


def _training_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `train_vocab` that were given on the command line."""
    from wordpiece_bert.training.options import refuse_options_of_other_algorithms

    given: dict[str, Any] = {"algorithm": options.algorithm}
    if options.cased or options.no_clean_text or options.no_chinese_chars or options.strip_accents is not None:
        given |= count.normalizer_options(options)
    if options.vocab_size is not None:
        given["vocab_size"] = options.vocab_size
    if options.special_token is not None:
        given["special_tokens"] = options.special_token
    if options.initial_alphabet is not None:
        given["initial_alphabet"] = list(options.initial_alphabet)
    if options.no_joiner:
        given["include_joiner"] = False
    if options.fill_unused:
        given["fill_unused"] = True
    if options.base is not None:
        cased = options.cased and arguments.is_vocabulary(options.base)
        given["base"] = arguments.load_tokenizer(options.base, cased=cased, download=options.download)
    elif options.pieces:
        raise InputError("--pieces writes the pieces of new tokens under --base: give that too")
    for name in (
        "max_word_chars",
        "reserved",
        "unused",
        "min_frequency",
        "num_iterations",
        "slack_ratio",
        "max_token_length",
        "max_unique_chars",
    ):
        if getattr(options, name) is not None:
            given[name] = getattr(options, name)
    # For these None means all, so argparse sets them only where they were given.
    for name in ("limit_alphabet", "lower_thresh", "upper_thresh", "max_input_words"):
        if hasattr(options, name):
            given[name] = getattr(options, name)
    refuse_options_of_other_algorithms(options.algorithm, given)  # also one that is given its default
    return given


def _load_counts(options: argparse.Namespace) -> WordCounts:
    """Load and add up files of counts; `train_vocab` checks the normalizer options against theirs."""
    counting = ("max_distinct_words", *arguments.READING_OPTIONS)
    arguments.refuse(options, counting, "applies to counting, and with --counts the words are counted already")
    from wordpiece_bert.tokenizer.corpus.file_lists import warn_repeated
    from wordpiece_bert.training import WordCounts

    warn_repeated(options.files)
    parts = [WordCounts.load(path) for path in options.files]
    return sum(parts[1:], parts[0])


def _unknown_token(vocab: Vocab) -> str:
    """Find the unknown token of a vocabulary whose special tokens have names of the user's choice."""
    if "[UNK]" in set(vocab.tokens):
        return "[UNK]"
    return next((token for token in vocab.special_tokens if "unk" in token.lower()), "[UNK]")


def _write_pieces(path: Path, vocab: Vocab, base: Tokenizer) -> None:
    from wordpiece_bert._internal.atomic_file import write_text

    old = {number: token for token, number in base.get_vocab().items()}
    rows = ((vocab.tokens[new], " ".join(old[piece] for piece in pieces)) for new, pieces in vocab.pieces.items())
    write_text(path, "".join(f"{token}\t{pieces}\n" for token, pieces in rows))


def _print_summary(
    options: argparse.Namespace, vocab: Vocab, counts: WordCounts, counting: float, training: float
) -> None:
    used = sum(n > 0 for n in vocab.counts)
    size = f"{counts.bytes / 1e6:,.1f} MB, " if counts.bytes else ""
    print_summary(
        options,
        f"{options.output}: {len(vocab):,} tokens by {vocab.algorithm}, {used:,} of them used, from "
        f"{len(counts):,} words that occur {counts.total:,} times ({size}{counts.texts:,} texts; "
        f"counted in {counting:.1f} s, trained in {training:.1f} s)",
        {
            "output": str(options.output),
            "tokens": len(vocab),
            "used": used,
            "algorithm": vocab.algorithm,
            "words": len(counts),
            "occurrences": counts.total,
            "bytes": counts.bytes,
            "texts": counts.texts,
            "seconds_counting": counting,
            "seconds_training": training,
        },
    )
