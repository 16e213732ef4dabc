"""``wordpiece-bert inspect``: one offline page about a text in a tokenizer or a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wordpiece_bert._internal.choices import SALIENCY_METHODS, VIEWS
from wordpiece_bert.cli import arguments

if TYPE_CHECKING:
    import argparse


def add_parser(commands: arguments.Commands, summary: str) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "inspect",
        parents=[arguments.common_options()],
        help=summary,
        description="Write one HTML page that shows how a text becomes tokens and what a model does with them. "
        "The page needs no network.",
    )
    parser.add_argument("text", metavar="TEXT", help="the text; - reads it from standard input")
    parser.add_argument("--pair", metavar="TEXT", help="the second text of a pair")
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="PAGE.html", help="the file to write")
    parser.add_argument(
        "-m",
        "--model",
        default="minilm",
        metavar="NAME",
        help="minilm, a folder, or org/name in the Hugging Face cache; a vocab.txt or tokenizer.json, or a folder "
        "without weights, shows the tokens only (default: minilm)",
    )
    parser.add_argument("--beside", metavar="NAME", help="a second vocabulary or model, whose tokens are shown too")
    parser.add_argument(
        "--views",
        metavar="LIST",
        help=f"which views, separated by commas, of {', '.join(VIEWS)} (default: all that the model "
        "allows but interventions, which run it once for each head)",
    )
    parser.add_argument(
        "--saliency",
        choices=SALIENCY_METHODS,
        metavar="METHOD",
        help=f"how the view saliency measures a token: {', '.join(SALIENCY_METHODS)} (default: occlusion)",
    )
    parser.add_argument(
        "--max-length",
        type=arguments.positive,
        metavar="N",
        help="cut at this many tokens (default: the model's limit)",
    )
    arguments.add_running(parser, run, threads=False)


def run(options: argparse.Namespace) -> None:
    """Write the page and report what it shows."""
    from wordpiece_bert.cli import inspect_page

    inspect_page.run(options)
