"""``wordpiece-bert predict``: what a classifier, a token classifier or a ranker says of the texts in files."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from wordpiece_bert._internal.same_file import refuse_input_as_output
from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.blocks import encode_blocks
from wordpiece_bert.cli.messages import counted, print_summary, print_verbose, warn_skipped, warn_truncated
from wordpiece_bert.cli.parser import add_model_option

if TYPE_CHECKING:
    import argparse

    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert import _core

# Texts go to the model in groups of this many batches: enough for sorting by length to pay off.
BATCHES_PER_GROUP = 16


def add_parser(commands: arguments.Commands, summary: str) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "predict",
        parents=[arguments.common_options(), arguments.reading_arguments("for pairs")],
        help=summary,
        description="Run a classifier, a token classifier or a ranker over texts or pairs of texts: one JSON object "
        "per text, in their order. A classifier gives 'label' and 'score', or with --top-k 'labels' and 'scores'; a "
        "model with a single label and a ranker 'score'; a token classifier 'entities', with their places in the text. "
        "A ranker needs pairs of a query and a text: two columns.",
    )
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a folder that 'finetune' wrote, another folder, or org/name in the Hugging Face cache",
    )
    add_model_option(parser, "MODEL")
    arguments.add_files(parser)
    parser.add_argument(
        "-o",
        "--output",
        default=Path(arguments.STDIN),
        type=Path,
        metavar="FILE",
        help="write to this .jsonl file, which appears once it is complete (default: -, standard output)",
    )
    classifiers = parser.add_argument_group("classifiers")
    classifiers.add_argument(
        "--top-k",
        type=arguments.positive_or_all,
        metavar="N",
        help="the N best labels of each text, or all (default: the best one)",
    )
    classifiers.add_argument(
        "--function",
        choices=("sigmoid", "softmax", "none"),
        help="the function from logits to scores (default: as the model says)",
    )
    tokens = parser.add_argument_group("token classifiers")
    tokens.add_argument(
        "--aggregation-strategy",
        choices=("none", "simple", "first", "average", "max"),
        help="how labels of tokens become entities (default: simple)",
    )
    tokens.add_argument(
        "--stride",
        type=arguments.natural,
        metavar="N",
        help="read texts that are too long in windows that share N tokens (default: truncate them)",
    )
    arguments.add_batch_size(parser)
    arguments.add_dtype(parser)
    arguments.add_running(parser, run)


def run(options: argparse.Namespace) -> None:
    """Predict, and report what was written."""
    from wordpiece_bert.tokenizer.corpus.text_reader import TextReader
    from wordpiece_bert.tokenizer.corpus.writers import check_output

    start = time.perf_counter()
    path = None if str(options.output) == arguments.STDIN else options.output
    files = arguments.input_files(options.files)
    if path is not None:
        check_output(path, [".jsonl"], "predictions")
        refuse_input_as_output([path], [*files, *arguments.files_of(options.model)])
    block_texts = BATCHES_PER_GROUP * options.batch_size
    texts = TextReader(files, block_texts=block_texts, **arguments.reading_options(options))
    with arguments.with_threads(options):
        from wordpiece_bert.cli.predictors import JsonLines, predictor_of

        pairs = len(options.jsonl_field or options.text_column) == 2
        predictor = predictor_of(options, pairs=pairs)
        loaded = time.perf_counter()
        print_verbose(options, f"{options.model}: {predictor.described}, loaded in {loaded - start:.2f} s")
        with JsonLines(path) as output:
            output.begin()

            def predict_block(block: _core.TextBlock) -> tuple[npt.NDArray[np.bool_], int]:
                rows, truncated = predictor.predict(block.texts())
                output.append(rows)
                return truncated, 0

            # A bar on the terminal that shows the rows would be in their way.
            show = not options.quiet and not (path is None and sys.stdout.isatty())
            truncated, tokens = encode_blocks(texts, predict_block, show_progress=show)
            output.commit()
    warn_skipped(texts.skipped_count, texts.skipped)
    cut = f" of {counted(texts.count, 'text')} truncated to the model's {predictor.longest_row} tokens"
    warn_truncated(len(truncated), truncated, cut, every=options.verbose)
    seconds = time.perf_counter() - start
    shown = "standard output" if path is None else str(path)
    speed = tokens / max(time.perf_counter() - loaded, 1e-9)
    print_summary(
        options,
        f"{shown}: {counted(output.rows, 'prediction')} ({seconds:.1f} s, {speed:,.0f} tokens/s)",
        {
            "output": str(options.output),
            "kind": predictor.kind,
            "predictions": output.rows,
            "tokens": tokens,
            "truncated": len(truncated),
            "skipped": texts.skipped_count,
            "seconds": seconds,
        },
    )
