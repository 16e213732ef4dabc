"""``wordpiece-bert verify``: a tokenizer or a model beside the library that you come from, on your own texts."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.messages import counted, warn_skipped
from wordpiece_bert.cli.parser import add_model_option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wordpiece_bert.verify import Difference, ModelReport, TokenizerReport

_REFERENCES = ("sentence-transformers", "transformers", "model2vec", "onnx", "ours")
_MEASURES = ("lowest_cosine", "median_cosine", "rank_correlation", "top_10", "difference", "flips")
#: The characters of a text that are shown on each side of a difference.
_AROUND = 40


def add_parser(commands: arguments.Commands, summary: str) -> None:
    """Declare the subcommand, and what it verifies."""
    parser = commands.add_parser(
        "verify",
        help=summary,
        description="Compare a tokenizer or a model with what is installed beside this package, on your own texts. The "
        "exit status is 0 if it passes, 1 if it does not, and 2 after an error.",
    )
    kinds = parser.add_subparsers(required=True, metavar="tokenizer|model", dest="verified")
    _add_tokenizer(kinds)
    _add_model(kinds)


def _add_tokenizer(kinds: arguments.Commands) -> None:
    parser = kinds.add_parser(
        "tokenizer",
        parents=[arguments.common_options(), arguments.reading_arguments("for pairs")],
        help="ids, offsets, masks and windows beside the package tokenizers",
        description="Encode every text of the files here and with the installed package tokenizers, whole and in "
        "padded windows, and compare ids, offsets, word ids, token types, masks and the number of windows. The first "
        "difference is printed with its text.",
    )
    parser.add_argument("model", metavar="VOCAB|MODEL", help=arguments.VOCAB_HELP)
    add_model_option(parser, "VOCAB|MODEL")
    arguments.add_files(parser)
    arguments.add_cased(parser)
    parser.add_argument(
        "--max-length",
        type=arguments.positive,
        metavar="N",
        help="the tokens of a window (default: 128, or the tokenizer's longest row if that is less)",
    )
    parser.add_argument(
        "--stride",
        type=arguments.natural,
        metavar="N",
        help="the tokens that a window shares with the one before (default: a quarter of --max-length)",
    )
    arguments.add_running(parser, run_tokenizer)


def _add_model(kinds: arguments.Commands) -> None:
    parser = kinds.add_parser(
        "model",
        parents=[arguments.common_options(), arguments.reading_arguments("for pairs")],
        help="vectors, scores and labels beside sentence-transformers and others",
        description="Run a model here and with what is installed, and compare vectors, the order of their cosines, "
        "scores and labels. Each measure has a limit, which depends on --dtype.",
    )
    parser.add_argument("model", metavar="MODEL", help="minilm, a folder, or org/name in the Hugging Face cache")
    add_model_option(parser, "MODEL")
    arguments.add_files(parser)
    arguments.add_dtype(parser)
    parser.add_argument(
        "--reference",
        choices=_REFERENCES,
        metavar="NAME",
        help=f"what to compare with, of {', '.join(_REFERENCES)}: onnx is the ONNX file in the model's folder, and "
        "ours this package in float32 (default: the first that is installed and takes the model)",
    )
    parser.add_argument(
        "--max-texts",
        type=arguments.positive,
        default=500,
        metavar="N",
        help="compare N texts or pairs at most, a random choice that is the same each time (default: 500)",
    )
    parser.add_argument(
        "--limit",
        type=_limit,
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help=f"another limit; NAME is one of {', '.join(_MEASURES)}; may be repeated",
    )
    arguments.add_running(parser, run_model)


def _limit(value: str) -> tuple[str, float]:
    name, _, number = value.partition("=")
    if name not in _MEASURES:
        raise argparse.ArgumentTypeError(f"{value!r} does not begin with one of {', '.join(_MEASURES)} and =")
    return name, arguments.share(number)


def run_tokenizer(options: argparse.Namespace) -> int:
    """Compare the tokenizers; return 1 if they differ."""
    from wordpiece_bert.verify import verify_tokenizer

    arguments.check_cased(options.model, cased=options.cased)
    report = verify_tokenizer(
        options.model,
        arguments.input_files(options.files),
        max_length=options.max_length,
        stride=options.stride,
        lowercase=not options.cased,
        show_progress_bar=not options.quiet,
        download=options.download,
        threads=options.threads,
        **arguments.reading_options(options),
    )
    warn_skipped(report.skipped, [])
    _print(options, report, _tokenizer_lines(options.model, report))
    return int(not report.passed)


def run_model(options: argparse.Namespace) -> int:
    """Compare the models; return 1 if a measure is beyond its limit."""
    from wordpiece_bert.verify import verify_model

    report = verify_model(
        options.model,
        arguments.input_files(options.files),
        reference=options.reference,
        limits=dict(options.limit),
        max_texts=options.max_texts,
        download=options.download,
        **arguments.loading_options(options),
        **arguments.reading_options(options),
    )
    warn_skipped(report.skipped, [])
    _print(options, report, _model_lines(options.model, report))
    return int(not report.passed)


def _print(options: argparse.Namespace, report: TokenizerReport | ModelReport, lines: list[str]) -> None:
    if options.json:
        from wordpiece_bert._internal.json_text import json_text

        facts: Mapping[str, Any] = {"model": options.model, **report.to_dict()}
        print(json_text(facts, indent=2, ensure_ascii=False))
    elif not (options.quiet and report.passed):
        print(*lines, sep="\n")


def _tokenizer_lines(name: str, report: TokenizerReport) -> list[str]:
    speed = f"{report.bytes / 1e6:,.1f} MB in {report.seconds:.1f} s"
    if report.first is not None:
        return [
            f"{name}: {report.differing:,} of {counted(report.texts, 'text')} differ from {report.reference} ({speed})",
            *_difference_lines(report.first),
        ]
    cut = f"{counted(report.windows, 'window')} of {report.max_length} tokens"
    if not report.windows:
        cut = f"no windows, as no text has more than {report.max_length} tokens (--max-length)"
    return [
        f"{name}: passed, the same as {report.reference}",
        f"{counted(report.texts, 'text')}, {counted(report.tokens, 'token')}, {cut} ({speed})",
    ]


def _difference_lines(first: Difference) -> list[str]:
    place = f"{first.place}, window {first.row + 1}" if first.cut else first.place
    token = "" if first.token is None else f", token {first.token}"
    named = ["", ""] if first.tokens is None else [f"  {one!r}" for one in first.tokens]
    return [
        f"first: {place}{token}: {first.field}",
        f"  text    {_excerpt(first)}",
        f"  ours    {first.ours}{named[0]}",
        f"  theirs  {first.theirs}{named[1]}",
    ]


def _excerpt(first: Difference) -> str:
    """Return the text around a difference, or the beginnings of both texts of a pair."""
    if not isinstance(first.text, str):
        return ", ".join(repr(text[: 2 * _AROUND]) for text in first.text)
    start = max((first.start or 0) - _AROUND, 0)
    part = first.text[start : start + 3 * _AROUND]
    return f"{'…' * (start > 0)}{part!r}{'…' * (start + len(part) < len(first.text))}"


def _model_lines(name: str, report: ModelReport) -> list[str]:
    from wordpiece_bert.verify.measures import AT_MOST, MEASURES

    unread = f", and {report.skipped:,} that cannot be read" if report.skipped else ""
    lines = [
        f"{name}: a {report.kind} in {report.dtype}, beside {report.reference}",
        f"{report.compared:,} compared, of {counted(report.texts, 'text')} in the files{unread}",
    ]
    for measure, one in report.measures.items():
        bound = "at most" if measure in AT_MOST else "at least"
        said = "passed" if one.passed else "FAILED"
        lines.append(f"  {MEASURES[measure]:<22}{one.value:>9.6f}  {bound:<8} {one.limit:<8g} {said}")
    return [*lines, "passed" if report.passed else "failed"]
