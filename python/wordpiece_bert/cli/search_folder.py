"""``wordpiece-bert search`` in a folder of vectors: hits with the ids and fields of documents."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.messages import print_verbose
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from wordpiece_bert.sentence.encoder_loading import Encoder


def add_folder_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a search in a folder of vectors."""
    group = parser.add_argument_group("folders of vectors")
    group.add_argument(
        "--precision",
        choices=("float32", "int8", "binary"),
        help="the vectors that are compared (default: the first of these that the folder has)",
    )
    group.add_argument("--fields", metavar="COLUMN,…", help="the fields of a hit (default: all that the folder keeps)")


def check_no_folder_options(options: argparse.Namespace) -> None:
    """Raise an `InputError` if an option is given that only folders of vectors have."""
    arguments.refuse(options, ["precision", "fields"], "is for a folder of vectors, which 'embed' writes")


def folder_search(options: argparse.Namespace) -> tuple[Callable[[list[str]], list[Any]], str]:
    """Open the folder of vectors that is given; return what answers queries from it, and the column of texts.

    Raises
    ------
    InputError
        Other files are given too, or an option that is for files of texts.
    """
    from wordpiece_bert.sentence import CrossEncoder
    from wordpiece_bert.vectors.layout import read_listing
    from wordpiece_bert.vectors.reloading import load_again
    from wordpiece_bert.vectors.vector_folder import open_vectors

    if len(options.files) != 1:
        raise InputError("a folder of vectors is searched alone: give one folder, and no other files")
    of_texts = ("vectors", "document_prompt", *arguments.READING_OPTIONS)
    arguments.refuse(options, of_texts, "is for files of texts; a folder of vectors has its own")
    vectors = open_vectors(options.files[0], allow_stale=options.allow_stale, threads=options.threads)
    loading = arguments.loading_options(options)
    layout = read_listing(Path(options.files[0])).layout
    given = loading | {"dtype": options.dtype, "download": options.download}
    name = options.model or layout.model
    encoder = load_again(name, layout.loading_of(name), **given)
    ranker = None
    if options.rerank is not None:
        ranker = CrossEncoder.from_pretrained(options.rerank, download=options.download, **loading)
    print_verbose(options, f"{vectors!r}; {encoder.engine}")
    fields = None if options.fields is None else [name for name in options.fields.split(",") if name]
    column = layout.text_column

    def answer(queries: list[str]) -> list[Any]:
        found: list[Any] = vectors.search(
            queries,
            options.top_k,
            mode=options.mode,
            precision=options.precision,
            reranker=ranker,
            candidates=options.candidates,
            fields=fields,
            encoder=encoder,
            prompt=options.prompt,
            prompt_name=options.prompt_name,
            batch_size=options.batch_size,
        )
        for query, hits in zip(queries, found, strict=True):
            if hits and "chunk" not in hits[0] and isinstance(hits[0].get(column), str):
                add_passages(options, encoder, query, hits, column)
        return found

    return answer, column


def add_passages(
    options: argparse.Namespace, encoder: Encoder, query: str, hits: list[dict[str, Any]], column: str
) -> None:
    """Add to the hits of a query, whose texts are in a column, the part of each long text that fits, and its place."""
    from wordpiece_bert.vectors.passages import best_passages

    texts = [hit[column] or "" for hit in hits]
    prompt = {"prompt_name": options.prompt_name, "prompt": options.prompt, "batch_size": options.batch_size}
    places = best_passages(encoder, query, texts, entire=options.mode != "vectors", **prompt)
    for hit, text, (start, end) in zip(hits, texts, places, strict=True):
        if end - start < len(text):
            hit |= {"start": start, "end": end, "passage": text[start:end]}


def folder_table(query: str, hits: list[dict[str, Any]], column: str) -> str:
    """Return the hits of a query as lines: score, id and fields; of a long text, in a column, the part that fits."""

    def fields(hit: dict[str, Any]) -> str:
        left_out = {"id", "score", "retrieval_score", *([column] if "passage" in hit else [])}
        shown = {name: value for name, value in hit.items() if name not in left_out and value is not None}
        return "  ".join(f"{name}={' '.join(str(value).split())}" for name, value in shown.items())

    return hit_table(query, hits, "id", fields)


def hit_table(query: str, hits: list[dict[str, Any]], place: str, shown: Callable[[dict[str, Any]], str]) -> str:
    """Return the hits of a query as lines: score, the field that says where it is, and what is shown of it."""
    lines = [" ".join(query.split())]
    widest = max((len(str(hit[place])) for hit in hits), default=0)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    for hit in hits:
        line = f"{hit['score']:9.4f}  {hit[place]!s:{widest}}  {shown(hit)}".rstrip()
        lines.append(line if len(line) <= width else line[: width - 1] + "…")
    return "\n".join([*lines, ""])
