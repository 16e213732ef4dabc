"""``wordpiece-bert embed``: the vectors of the texts in files."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.log import say
from wordpiece_bert._internal.same_file import refuse_input_as_output
from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.blocks import encode_blocks
from wordpiece_bert.cli.embed_folder import add_folder_options, is_folder, run_folder
from wordpiece_bert.cli.messages import counted, print_summary, print_verbose, warn_skipped, warn_truncated
from wordpiece_bert.cli.parts import add_part, files_of_part, finish_part, is_complete, record_of_part
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.file_formats import VECTOR_FORMATS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert import _core
    from wordpiece_bert.cli.embed_ids import TextsWithIds
    from wordpiece_bert.sentence.encoder_loading import Encoder
    from wordpiece_bert.tokenizer.corpus.text_reader import TextReader
    from wordpiece_bert.tokenizer.corpus.vector_fingerprint import TextsDigest

# Texts go to the encoder in groups of this many batches: enough for sorting by length to pay off. Progress is shown
# after each pass of the model within them.
BATCHES_PER_GROUP = 16
# Inputs of so many bytes take minutes, or hours.
LONG_RUN_BYTES = 20_000_000


def add_parser(commands: arguments.Commands, summary: str) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "embed",
        parents=[arguments.common_options(), arguments.reading_arguments()],
        help=summary,
        description="Compute the vector of every text, float32: as one NumPy array [texts, width], as the column "
        "'vector' of a Parquet or Arrow file, or as one JSON object per text. A sparse model has the columns 'indices' "
        "and 'values' instead, and a multi-vector model a column 'vectors'; neither is written as .npy. Files of dense "
        "vectors have a fingerprint of the texts and the model, which 'search' compares, in "
        "FILE.npy.fingerprint.json or FILE.jsonl.fingerprint.json for these. With --id-column the output has the ids "
        "of a table too, except .npy. An output that ends in .vectors is a folder of Parquet files that 'search' "
        "reads, with the ids and fields of a table, or of files with --whole, in chunks. After a kill a folder is "
        "continued; a file begins again.",
    )
    arguments.add_files(parser)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        type=Path,
        metavar="FILE",
        help="write to this .npy, .parquet, .arrow, .arrows or .jsonl file, or .vectors folder; it appears once it is "
        "complete; - is standard output",
    )
    parser.add_argument(
        "--format",
        choices=VECTOR_FORMATS,
        help="the format of the output (default: that of its suffix; jsonl for standard output; arrows is Arrow's "
        "stream, which needs no end)",
    )
    arguments.add_model(parser, default=None)
    parser.add_argument("--normalize", action="store_true", help="scale each vector to length 1 (minilm's have it)")
    arguments.add_batch_size(parser)
    parser.add_argument(
        "--outputs",
        choices=("dense", "sparse", "colbert"),
        default="dense",
        help="which vectors of BGE-M3, which makes all three: one for a text, the weights of its tokens, or a vector "
        "for each token (default: dense)",
    )
    parser.add_argument(
        "--documents",
        action="store_true",
        help="put the model's prompt for documents before each text, as 'search' does",
    )
    arguments.add_prompts(parser, "each text")
    arguments.add_dtype(parser, of_folders=True)
    add_part(parser)
    arguments.add_running(parser, run)
    add_folder_options(parser)


def run(options: argparse.Namespace) -> None:
    """Embed the files and report what was written."""
    if is_folder(options):
        if options.outputs != "dense":
            raise InputError(f"--outputs {options.outputs}: a folder of vectors keeps dense ones; write them to a file")
        run_folder(options)
        return
    options.model = options.model or "minilm"
    from wordpiece_bert.cli.embed_outputs import check_normalize, output_of
    from wordpiece_bert.hub import find_model
    from wordpiece_bert.sentence.folders.kinds import kind_of
    from wordpiece_bert.tokenizer.corpus.vector_fingerprint import sidecar_of

    start = time.perf_counter()
    path, kind = _output(options)
    files = arguments.input_files(options.files)
    if path is not None:
        refuse_input_as_output([path, sidecar_of(path)], [*files, *arguments.files_of(options.model)])
    folder = find_model(options.model, download=options.download)
    block = block_texts(folder, options.batch_size)
    texts = _texts(options, files_of_part(options, files), block)
    check_normalize(kind_of(folder), normalize=options.normalize, outputs=options.outputs)
    encoder = _encoder(options, folder)
    prompt = {"prompt": options.prompt, "prompt_name": options.prompt_name}
    is_dense = options.outputs == "dense"
    before = prompt_text(encoder, prompt, as_documents=options.documents) if is_dense else ""
    loaded = time.perf_counter()
    output = output_of(encoder, path, kind, normalize=options.normalize, ids=getattr(texts, "field", None))
    record = record_of_part(
        options,
        files,
        command="embed",
        format=kind,
        id_column=options.id_column,
        outputs=options.outputs,
        prompt=before,
        vectors=output.contents(folder, before),
    )
    if is_complete(options, record):
        return
    print_verbose(
        options,
        f"{options.model}: {output.model}{encoder.dimension} dimensions{output.at_most}, loaded in "
        f"{loaded - start:.2f} s",
    )
    print_verbose(options, str(encoder.engine))
    if path is not None and not options.quiet and not options.json:
        _say_what_resumes(texts.size)
    with output.writer:
        output.writer.begin()
        truncated, tokens = embed_texts(
            texts,
            encoder,
            lambda vectors: output.append(vectors, getattr(texts, "ids", None)),
            options,
            as_documents=options.documents,
            prompt=prompt,
            digest=output.digest,
        )
        output.commit(before)
    if path is not None:
        is_last = record is not None and record.number == record.count - 1 and output.digest is not None
        of_all = _digest(_texts(options, files, block)) if is_last else None
        finish_part(record, path, [path], output.writer.rows, of_all)
    warn_skipped(texts.skipped_count, texts.skipped)
    cut = f" of {counted(texts.count, 'text')} truncated to the {output.most}"
    warn_truncated(len(truncated), truncated, cut, every=options.verbose)
    seconds = time.perf_counter() - start
    written, fields = output.summary()
    shown = "standard output" if path is None else str(path)
    print_summary(
        options,
        f"{shown}: {written} ({seconds:.1f} s, {tokens / max(time.perf_counter() - loaded, 1e-9):,.0f} tokens/s)",
        {
            "output": str(options.output),
            "format": kind,
            **fields,
            "tokens": tokens,
            "truncated": len(truncated),
            "skipped": texts.skipped_count,
            "seconds": seconds,
        },
    )


def _texts(options: argparse.Namespace, files: Sequence[Any], block: int | None) -> TextReader | TextsWithIds:
    """Return what reads the texts of files."""
    from wordpiece_bert.tokenizer.corpus.text_reader import TextReader

    if options.id_column is None:
        return TextReader(files, block_texts=block, **arguments.reading_options(options))
    from wordpiece_bert.cli.embed_ids import texts_with_ids

    return texts_with_ids(options, files, block)


def _encoder(options: argparse.Namespace, folder: Path) -> Any:
    """Load the encoder, or the output of BGE-M3, that the options name."""
    loading = arguments.loading_options(options)
    if options.outputs == "dense":
        from wordpiece_bert.sentence.encoder_loading import encoder_class

        return encoder_class(folder).from_pretrained(folder, **loading)
    from wordpiece_bert.sentence.m3.m3_encoder import M3Encoder
    from wordpiece_bert.sentence.m3.one_output import OneOutput

    return OneOutput(M3Encoder(folder, **loading), options.outputs)


def _digest(texts: TextReader | TextsWithIds) -> tuple[str, int]:
    """Return the digest of texts, and how many there are."""
    from wordpiece_bert.tokenizer.corpus.vector_fingerprint import TextsDigest

    digest = TextsDigest()
    for block in texts:
        digest.add_utf8(*block.utf8())
    return digest.hexdigest(), digest.count


def _say_what_resumes(size: int | None) -> None:
    """Say before a long run that a file is not resumed."""
    if size is None or size >= LONG_RUN_BYTES:
        say(
            "a run that is killed begins again, because a file is written at once; a .vectors folder is resumed, and "
            "--part I/N makes smaller files"
        )


def _output(options: argparse.Namespace) -> tuple[Path | None, str]:
    """Return the file to write, None for standard output, and its format."""
    from wordpiece_bert.tokenizer.corpus.writers import check_output

    path: Path = options.output
    if str(path) == "-":
        kind = options.format or "jsonl"
        if kind != "jsonl" and sys.stdout.isatty():
            raise InputError(
                f"standard output is a terminal, and {kind} is not text: redirect it, or use --format jsonl"
            )
        return None, kind
    suffixes = [path.suffix] if options.format else [f".{kind}" for kind in VECTOR_FORMATS]
    check_output(path, suffixes, "vectors")
    return path, options.format or path.suffix.removeprefix(".")


def block_texts(folder: Path, batch_size: int) -> int | None:
    """Return the most texts of a block that is read; None for the usual size, which static models take."""
    from wordpiece_bert.sentence.folders.kinds import STATIC, kind_of

    return None if kind_of(folder) is STATIC else BATCHES_PER_GROUP * batch_size


def prompt_text(encoder: Encoder, prompt: dict[str, str | None], *, as_documents: bool) -> str:
    """Return what `embed_texts` puts before each text, which is part of the fingerprint of the vectors."""
    from wordpiece_bert.sentence.dense.encoder_fingerprint import default_prompt, document_prompt
    from wordpiece_bert.sentence.parts import prompt_of

    if any(given is not None for given in prompt.values()):
        return prompt_of(encoder, prompt.get("prompt"), prompt.get("prompt_name"))
    return document_prompt(encoder) if as_documents else default_prompt(encoder)


def embed_texts(
    texts: TextReader | TextsWithIds,
    encoder: Encoder,
    append: Callable[[Any], object],
    options: argparse.Namespace,
    *,
    as_documents: bool,
    prompt: dict[str, str | None],
    digest: TextsDigest | None = None,
    blocks: list[_core.TextBlock] | None = None,
) -> tuple[list[str], int]:
    """Make the vectors of all texts; return the locations of truncated texts and the number of tokens.

    Parameters
    ----------
    texts, encoder
        What is read and computed with.
    append : callable
        Takes the vectors of the texts of each block.
    options : argparse.Namespace
        ``batch_size``, ``normalize`` and ``quiet``.
    as_documents : bool
        Whether the model's prompt for documents is put before each text, unless `prompt` says otherwise.
    prompt : dict
        ``prompt`` and ``prompt_name``, as for `SentenceEncoder.encode`.
    digest : TextsDigest, optional
        A digest to which the texts are added.
    blocks : list, optional
        A list to which the blocks that are read are added.
    """
    from wordpiece_bert._internal.recent import Recent
    from wordpiece_bert.bert import functional
    from wordpiece_bert.sentence.dense.parts import body_of
    from wordpiece_bert.sentence.dense.recent_rows import RECENT_BYTES, recent_vectors
    from wordpiece_bert.sentence.dense.sentence_encoder import SentenceEncoder
    from wordpiece_bert.sentence.dense.table import TableBody

    recent = Recent(RECENT_BYTES)
    encode: Callable[..., Any] = encoder.encode_document if as_documents else encoder.encode
    more: dict[str, Any] = {"normalize_embeddings": True} if options.normalize else {}
    # Without a prompt a static model takes the texts where the file has them.
    table: TableBody | None = None
    if isinstance(encoder, SentenceEncoder) and not prompt_text(encoder, prompt, as_documents=as_documents):
        body = body_of(encoder)
        table = body if isinstance(body, TableBody) else None

    def encode_block(block: _core.TextBlock) -> tuple[npt.NDArray[np.bool_], int]:
        if blocks is not None:
            blocks.append(block)
        if digest is not None:
            digest.add_utf8(*block.utf8())
        tokens = 0
        if table is not None:
            vectors, cut, tokens = table.block_vectors(block, encoder.max_seq_length or 0)
            vectors = functional.normalize(vectors) if options.normalize else vectors
        else:
            with recent_vectors(recent):
                vectors, cut = encode(
                    block.texts(), **prompt, batch_size=options.batch_size, return_truncated=True, **more
                )
        append(vectors)
        return cut, tokens

    return encode_blocks(texts, encode_block, show_progress=not options.quiet)
