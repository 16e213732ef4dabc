"""``wordpiece-bert merge``: outputs that were written with ``--part``, put together."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.messages import counted, print_summary

if TYPE_CHECKING:
    import argparse


def add_parser(commands: arguments.Commands, summary: str) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "merge",
        parents=[arguments.common_options()],
        help=summary,
        description="Put together what 'embed' and 'encode' have written in parts. Files then have the bytes of "
        "one run. The files of folders of vectors are linked, not copied, where the file system can do that. Parts "
        "of other calls, missing and double parts, and double ids are errors.",
    )
    parser.add_argument("parts", nargs="+", metavar="PART", help="the outputs of all parts, in any order")
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        type=Path,
        metavar="OUT",
        help="the file to write, which appears once it is complete, or the folder, which must be new",
    )
    arguments.add_output_control(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Merge the parts, and report how many rows there are."""
    from wordpiece_bert.vectors.merging import merge_parts

    start = time.perf_counter()
    rows = merge_parts(options.parts, options.output)
    seconds = time.perf_counter() - start
    facts = {"output": str(options.output), "parts": len(options.parts), "rows": rows, "seconds": seconds}
    what = f"{counted(rows, 'row')} of {counted(len(options.parts), 'part')}"
    print_summary(options, f"{options.output}: {what} ({seconds:.1f} s)", facts)
