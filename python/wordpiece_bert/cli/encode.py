"""``wordpiece-bert encode``: token ids of texts, printed as JSON lines or written to a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wordpiece_bert._internal.progress import reading_progress
from wordpiece_bert._internal.same_file import refuse_input_as_output
from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.messages import counted, print_summary, print_verbose, warn_skipped, warn_truncated
from wordpiece_bert.cli.parts import add_part, files_of_part, finish_part, is_complete, record_of_part
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.file_formats import ID_DTYPES

if TYPE_CHECKING:
    import argparse

    from wordpiece_bert.tokenizer.corpus import EncodeSummary
    from wordpiece_bert.tokenizer.option_types import EncodeOptions
    from wordpiece_bert.tokenizer.tokenizer import Tokenizer
    from wordpiece_bert.tokenizer.tokenizer_base import Item

TEXTS_PER_PRINTED_BLOCK = 1024
# The rows printed at a time have about this many tokens at most.
PRINTED_BLOCK_TOKENS = 1 << 20


def add_parser(commands: arguments.Commands, summary: str) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "encode",
        parents=[arguments.common_options(), arguments.reading_arguments("for pairs")],
        help=summary,
        description="Encode texts to token ids: printed as one JSON object per text, or written to a file with "
        "--output, for corpora larger than memory too. Nothing is truncated unless --max-length is given.",
    )
    arguments.add_files(parser)
    parser.add_argument("-t", "--text", action="append", default=[], help="a text; may be repeated")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write to this .npy, .arrow, .parquet or .jsonl file; it appears once it is complete; - prints JSON lines",
    )
    arguments.add_vocab(parser, "default: minilm", default="minilm")

    rows = parser.add_argument_group("rows")
    rows.add_argument("--tokens", action="store_true", help="add the tokens (only when printing)")
    rows.add_argument(
        "--offsets", action="store_true", help="add each token's start and end in the text, in characters"
    )
    rows.add_argument("--word-ids", action="store_true", help="add the index of the word that each token belongs to")
    rows.add_argument("--no-special-tokens", action="store_true", help="omit [CLS] and [SEP]")
    rows.add_argument(
        "--max-length",
        type=arguments.positive,
        metavar="N",
        help="truncate to N tokens and report which texts were truncated",
    )
    rows.add_argument("--padding", action="store_true", help="pad rows to --max-length: a .npy is then [rows, N]")
    rows.add_argument(
        "--dtype",
        choices=ID_DTYPES,
        default="uint32",
        help="number type of the ids in a file (default: uint32; uint16 holds vocabularies up to 65,536)",
    )
    rows.add_argument(
        "--ids-column",
        default="ids",
        metavar="NAME",
        help="the name of the ids in tables and JSON lines, such as input_ids, which datasets and transformers read "
        "(default: ids)",
    )
    add_part(parser)
    arguments.add_running(parser, run)


def run(options: argparse.Namespace) -> None:
    """Encode the texts or files, and report which were truncated or skipped."""
    if options.files and options.text:
        raise InputError("give either files or --text")
    if options.text:
        arguments.refuse(options, arguments.READING_OPTIONS, "is about files, and --text has none")
    else:
        options.files = arguments.input_files(options.files)
    if str(options.output) == arguments.STDIN:  # "-" is standard output here, where rows go without --output
        options.output = None
    if options.output and (options.text or options.tokens):
        raise InputError(
            "--output excludes --text and --tokens: print the rows, or redirect the printed rows into a file"
        )
    if not options.output:
        arguments.refuse(options, ["dtype", "part"], "is for files: give --output")
    if options.padding and options.max_length is None:
        raise InputError("--padding fills rows up to --max-length: give that too")
    if options.output:
        from wordpiece_bert.tokenizer.corpus.writers import written_files

        inputs = [*options.files, *arguments.files_of(options.vocab)]
        refuse_input_as_output(written_files(options.output), inputs)
    tokenizer = arguments.load_tokenizer(options.vocab, cased=options.cased, download=options.download)
    print_verbose(options, f"{options.vocab}: {len(tokenizer):,} tokens")
    encode_options: EncodeOptions = {
        "add_special_tokens": not options.no_special_tokens,
        "truncation": options.max_length is not None,
        "max_length": options.max_length,
        "padding": "max_length" if options.padding else False,
    }
    if options.text:
        truncated = _print_rows(tokenizer, options.text, encode_options, options)
        sys.stdout.flush()
        warn_truncated(len(truncated), [f"--text {options.text[i]!r}" for i in truncated], every=options.verbose)
    elif options.output:
        files = files_of_part(options, options.files)
        record = record_of_part(
            options,
            options.files,
            command="encode",
            format=options.output.suffix.removeprefix("."),
            tokenizer=tokenizer.fingerprint if options.part else None,
            columns=[options.offsets, options.word_ids],
            dtype=options.dtype,
            ids_column=options.ids_column,
            **encode_options,
        )
        if is_complete(options, record):
            return
        summary = tokenizer.encode_files(
            files,
            options.output,
            dtype=options.dtype,
            ids_column=options.ids_column,
            show_progress_bar=not options.quiet,
            return_offsets=options.offsets,
            return_word_ids=options.word_ids,
            threads=options.threads,
            **arguments.reading_options(options),
            **encode_options,
        )
        finish_part(record, options.output, summary.output, summary.rows)
        _report_summary(summary, options)
    else:
        _print_files(tokenizer, encode_options, options)


def _print_files(tokenizer: Tokenizer, encode_options: EncodeOptions, options: argparse.Namespace) -> None:
    from wordpiece_bert.tokenizer.corpus.text_reader import TextReader

    texts = TextReader(options.files, block_texts=TEXTS_PER_PRINTED_BLOCK, **arguments.reading_options(options))
    truncated_locations: list[str] = []
    least = options.max_length if options.padding else 1
    # A bar on the terminal that shows the rows would be in their way.
    with reading_progress(texts, show=not options.quiet and not sys.stdout.isatty()) as show:
        for block in texts:
            done = 0
            for part in block.parts(least, 1, PRINTED_BLOCK_TOKENS):
                truncated_locations += map(part.location, _print_rows(tokenizer, part.texts(), encode_options, options))
                done += len(part)
                show(of_block=done)
            show()
    sys.stdout.flush()
    warn_skipped(texts.skipped_count, texts.skipped)
    warn_truncated(len(truncated_locations), truncated_locations, every=options.verbose)


def _print_rows(
    tokenizer: Tokenizer, texts: list[Item], encode_options: EncodeOptions, options: argparse.Namespace
) -> list[int]:
    """Print one line of JSON per text, and return the indices of the texts that were truncated."""
    import numpy as np

    from wordpiece_bert.tokenizer.corpus.encoded_table import Table
    from wordpiece_bert.tokenizer.corpus.writers import check_ids_column, json_lines

    batch = tokenizer.encode_batch(
        texts,
        return_offsets=options.offsets,
        return_word_ids=options.word_ids,
        threads=options.threads,
        **encode_options,
    )
    table = Table.of(batch, dtype=np.dtype(options.dtype), first_text=0, truncated=options.max_length is not None)
    check_ids_column(options.ids_column, [*table.columns, "tokens"])
    tokens = [row.tokens for row in tokenizer.encodings(texts, **encode_options)] if options.tokens else None
    # JSON lines are UTF-8, whatever the terminal's encoding is.
    sys.stdout.buffer.write("".join(json_lines(table, tokens, ids_column=options.ids_column)).encode())
    return np.flatnonzero(batch.truncated).tolist()


def _report_summary(summary: EncodeSummary, options: argparse.Namespace) -> None:
    warn_skipped(summary.skipped, summary.skipped_reasons)
    warn_truncated(summary.truncated, summary.truncated_places, every=options.verbose)
    megabytes = summary.bytes / 1e6
    speed = megabytes / max(summary.seconds, 1e-9)
    print_summary(
        options,
        f"{options.output}: {counted(summary.tokens, 'token')} in {counted(summary.rows, 'row')} of "
        f"{counted(summary.texts, 'text')} ({megabytes:,.1f} MB in {summary.seconds:.1f} s, {speed:,.0f} MB/s)",
        {
            "output": [str(path) for path in summary.output],
            "texts": summary.texts,
            "rows": summary.rows,
            "tokens": summary.tokens,
            "truncated": summary.truncated,
            "skipped": summary.skipped,
            "bytes": summary.bytes,
            "seconds": summary.seconds,
        },
    )
