"""``wordpiece-bert embed`` for models whose vectors differ in length: sparse encoders and multi-vector encoders."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.blocks import encode_blocks
from wordpiece_bert.cli.messages import counted, print_summary, print_verbose, warn_skipped, warn_truncated
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert import _core
    from wordpiece_bert.corpus.texts import TextReader
    from wordpiece_bert.sentence import MultiVectorEncoder, MultiVectors, SparseEncoder, SparseVectors

__all__ = ["embed_lists", "run_lists"]


def run_lists(
    options: argparse.Namespace, folder: Path, texts: TextReader, path: Path | None, kind: str, model: str
) -> None:
    """Embed files with the class `model`, and report what was written.

    Parameters
    ----------
    options : argparse.Namespace
        The options of ``embed``.
    folder : Path
        The folder of the model.
    texts : TextReader
        What is read.
    path : Path or None
        The file to write; None for standard output.
    kind : str
        Its format.
    model : {"SparseEncoder", "MultiVectorEncoder"}
        The class that loads the model.
    """
    from wordpiece_bert.corpus.list_vectors import ListColumn, list_writer
    from wordpiece_bert.sentence import MultiVectorEncoder, MultiVectors, SparseEncoder

    start = time.perf_counter()
    settings = arguments.loading_options(options)
    encoder: SparseEncoder | MultiVectorEncoder
    if model == "SparseEncoder":
        if options.normalize:
            raise InputError(
                "--normalize is for dense vectors: the vectors of a sparse model are compared by their dot product"
            )
        encoder = SparseEncoder.from_pretrained(folder, **settings)
        columns, what = [ListColumn("indices", "int32"), ListColumn("values", "float32")], "sparse encoder"
    else:
        encoder = MultiVectorEncoder.from_pretrained(folder, **settings)
        columns, what = [ListColumn("vectors", "float32", encoder.dimension)], "multi-vector encoder"
    loaded = time.perf_counter()
    print_verbose(options, f"{options.model}: {what}, {encoder.dimension} dimensions, loaded in {loaded - start:.2f} s")
    print_verbose(options, str(encoder.engine))
    with list_writer(path, columns, kind) as writer:
        writer.begin()
        prompt = {"prompt": options.prompt, "prompt_name": options.prompt_name}

        def write(vectors: SparseVectors | MultiVectors) -> None:
            if isinstance(vectors, MultiVectors):
                writer.append(vectors.offsets, {"vectors": vectors.vectors})
            else:
                writer.append(vectors.indptr, {"indices": vectors.indices, "values": vectors.values})

        truncated, tokens = embed_lists(texts, encoder, write, options, as_documents=options.documents, prompt=prompt)
        writer.commit()
    warn_skipped(texts.skipped_count, texts.skipped)
    cut = f" of {counted(texts.count, 'text')} truncated to the longest row of the model"
    warn_truncated(len(truncated), truncated, cut, every=options.verbose)
    seconds = time.perf_counter() - start
    shown = "standard output" if path is None else str(path)
    print_summary(
        options,
        f"{shown}: {counted(writer.rows, 'text')}, {counted(writer.values, 'value' if columns[1:] else 'vector')} "
        f"({seconds:.1f} s, {tokens / max(time.perf_counter() - loaded, 1e-9):,.0f} tokens/s)",
        {
            "output": str(options.output),
            "format": kind,
            "model": what,
            "texts": writer.rows,
            "values" if columns[1:] else "vectors": writer.values,
            "dimensions": encoder.dimension,
            "tokens": tokens,
            "truncated": len(truncated),
            "skipped": texts.skipped_count,
            "seconds": seconds,
        },
    )


def embed_lists(
    texts: TextReader,
    encoder: SparseEncoder | MultiVectorEncoder,
    write: Callable[[SparseVectors | MultiVectors], object],
    options: argparse.Namespace,
    *,
    as_documents: bool,
    prompt: dict[str, str | None],
    blocks: list[_core.TextBlock] | None = None,
) -> tuple[list[str], int]:
    """Make the vectors of all texts; return the locations of truncated texts and the number of tokens.

    Parameters
    ----------
    texts, encoder
        What is read and computed with.
    write : callable
        Takes the vectors of the texts of each block.
    options, as_documents, prompt, blocks
        As for `embed_texts`.
    """
    encode: Callable[..., Any] = encoder.encode_document if as_documents else encoder.encode
    more: dict[str, Any] = {"normalize_embeddings": True} if options.normalize else {}

    def encode_block(block: _core.TextBlock) -> tuple[npt.NDArray[np.bool_], int]:
        if blocks is not None:
            blocks.append(block)
        vectors, cut = encode(block.texts(), **prompt, batch_size=options.batch_size, return_truncated=True, **more)
        write(vectors)
        return cut, 0

    return encode_blocks(texts, encode_block, show_progress=not options.quiet)
