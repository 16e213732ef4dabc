"""``wordpiece-bert embed``: the vectors of the texts in files, as one NumPy array."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert._internal.same_file import refuse_input_as_output
from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.messages import counted, warn_skipped, warn_truncated
from wordpiece_bert.corpus.progress import progress
from wordpiece_bert.corpus.texts import TextReader
from wordpiece_bert.corpus.writers import NpyWriter, check_output
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence import SentenceEncoder

if TYPE_CHECKING:
    import argparse

__all__ = ["add_parser"]

# Texts go to the encoder in groups of this many batches: enough for sorting by length to pay off, few enough for steady
# progress.
BATCHES_PER_GROUP = 16


def add_parser(commands: arguments.Commands) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "embed",
        parents=[arguments.debug_option(), arguments.reading_arguments()],
        help="text files to vectors",
        description="Compute the vector of every text and write them as one NumPy array, float32 [texts, width].",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help=arguments.FILE_HELP)
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="VECTORS.npy", help="the file to write")
    parser.add_argument(
        "-m",
        "--model",
        default="minilm",
        help="minilm, a folder, or org/name in the Hugging Face cache (default: minilm)",
    )
    parser.add_argument(
        "--normalize", action="store_true", help="scale each vector to length 1 (minilm's have it already)"
    )
    parser.add_argument(
        "--batch-size", type=arguments.positive, default=32, metavar="N", help="texts per pass (default: 32)"
    )
    arguments.add_threads(parser)
    arguments.add_download(parser)
    arguments.add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Embed the files and report what was written."""
    start = time.perf_counter()
    check_output(options.output, [".npy"], "vectors")
    refuse_input_as_output([options.output], options.files)
    if len(options.jsonl_field) > 1 or len(options.parquet_column) > 1:
        message = "a vector belongs to one text: give one --jsonl-field or one --parquet-column"
        raise InputError(message)
    texts = TextReader(
        options.files,
        block_texts=BATCHES_PER_GROUP * options.batch_size,
        **arguments.reading_options(options),
    )
    encoder = SentenceEncoder.from_pretrained(options.model, threads=options.threads, download=options.download)
    truncated_locations: list[str] = []

    with (
        NpyWriter(options.output, (encoder.dimension,), np.float32) as rows,
        progress(texts, show=False if options.quiet else None) as show_progress,
    ):
        rows.begin()
        for block in texts:
            vectors, truncated = encoder.encode(
                block.texts(),
                batch_size=options.batch_size,
                normalize_embeddings=options.normalize,
                return_truncated=True,
            )
            rows.append(vectors)
            truncated_locations += map(block.location, np.flatnonzero(truncated).tolist())
            show_progress()
        rows.commit()
    warn_skipped(texts.skipped_count, texts.skipped)
    warn_truncated(
        len(truncated_locations),
        truncated_locations,
        f" of {counted(texts.count, 'text')} truncated to the model's {encoder.max_seq_length} tokens",
    )
    if not options.quiet:
        seconds = time.perf_counter() - start
        print(
            f"{options.output}: {counted(rows.shape[0], 'vector')} of {rows.shape[1]} {rows.dtype} ({seconds:.1f} s)",
            file=sys.stderr,
        )
