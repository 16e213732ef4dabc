"""``wordpiece-bert report``: how well vocabularies fit texts, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wordpiece_bert._internal.progress import reading_progress
from wordpiece_bert._internal.same_file import refuse_input_as_output
from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.messages import print_verbose, warn_skipped
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import argparse


def add_parser(commands: arguments.Commands, summary: str) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "report",
        parents=[arguments.common_options(), arguments.reading_arguments("to read both")],
        help=summary,
        description="Measure how well vocabularies fit texts, side by side.",
    )
    arguments.add_files(parser)
    arguments.add_vocab(parser, "may be repeated", action="append", required=True)
    parser.add_argument(
        "--min-count",
        type=arguments.positive,
        default=1,
        metavar="N",
        help="a token counts as used if it occurs at least N times (default: 1)",
    )
    parser.add_argument("--plot", type=Path, metavar="PICTURE", help="plot the reports to a .svg, .png or .pdf file")
    arguments.add_running(parser, run)


def run(options: argparse.Namespace) -> None:
    """Measure each vocabulary on the texts, and print the reports."""
    from wordpiece_bert.tokenizer.corpus.file_lists import warn_repeated
    from wordpiece_bert.tokenizer.corpus.text_reader import TextReader
    from wordpiece_bert.training import vocab_report

    files = arguments.input_files(options.files)
    warn_repeated(files)
    if arguments.STDIN in files and len(options.vocab) > 1:
        raise InputError(
            "standard input can be read only once, and each vocabulary reads the texts: save them to a file"
        )
    if options.plot:
        vocabularies = (path for name in options.vocab for path in arguments.files_of(name))
        refuse_input_as_output([options.plot], [*files, *vocabularies])
    reading = arguments.reading_options(options)
    reports = []
    for name in options.vocab:
        tokenizer = arguments.load_tokenizer(name, cased=options.cased, download=options.download)
        print_verbose(options, f"{name}: {len(tokenizer):,} tokens")
        reader = TextReader(files, **reading)
        with reading_progress(reader, show=not options.quiet, label=name) as show:
            texts = arguments.single_texts(reader, show)
            reports.append(
                vocab_report(tokenizer, texts, name=name, min_count=options.min_count, threads=options.threads)
            )
    warn_skipped(reader.skipped_count, reader.skipped)  # the same for each vocabulary
    first, *others = reports
    if options.plot:
        first.plot(options.plot, *others)
    if options.json:
        print(f"[{', '.join(report.to_json() for report in reports)}]")
    else:
        print(first.text(*others))
