"""``wordpiece-bert embed`` into a folder: vectors with the ids and fields of their documents, which can be updated."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.log import say
from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.messages import counted, print_summary, print_verbose, warn_skipped, warn_truncated
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.file_formats import VECTOR_FORMATS

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from wordpiece_bert.sentence.encoder_loading import Encoder
    from wordpiece_bert.vectors.folder_update import UpdatePlan
    from wordpiece_bert.vectors.layout import Layout
    from wordpiece_bert.vectors.write_call import WrittenVectors

#: The suffix of the name of a folder of vectors.
SUFFIX = ".vectors"
#: The most tokens of a chunk of a file, if the command does not say.
CHUNK_TOKENS = 200


def add_folder_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a folder of vectors."""
    group = parser.add_argument_group(
        f"folders (an output that ends in {SUFFIX}, or a folder that exists)",
    )
    group.add_argument(
        "--id-column",
        metavar="COLUMN",
        help="the column of the ids: texts or whole numbers; also of a .parquet, .arrow, .arrows or .jsonl file",
    )
    group.add_argument(
        "--keep",
        metavar="COLUMN,…",
        help="columns that hits of 'search' show; that of the texts too, if --rerank or --mode are to read them "
        "(default: none; with --whole the text)",
    )
    group.add_argument(
        "--precision",
        metavar="PRECISION,…",
        help="float32, int8 or binary, for dense vectors, or several of them (default: float32)",
    )
    group.add_argument(
        "--update",
        action="store_true",
        help="bring the folder up to date: embed only documents that are new or have another text; the model, columns "
        "and other options are by default those of the folder",
    )
    group.add_argument(
        "--prune",
        action="store_true",
        help="with --update: drop documents whose id is not in the files (default: keep)",
    )
    group.add_argument(
        "--compact",
        action="store_true",
        help="with --update: write the files without rows that were replaced or deleted, for other programs that read "
        "them (default: once these are a fifth of the folder)",
    )
    group.add_argument(
        "--chunk-tokens",
        type=_tokens_or_all,
        metavar="N",
        help="divide texts into chunks of at most N tokens, a row for each, with its place in the text; all is one row "
        f"for a text (default: all; with --whole {CHUNK_TOKENS}, of entire sentences, or as many as the model takes)",
    )
    group.add_argument(
        "--chunk-overlap",
        type=arguments.natural,
        default=0,
        metavar="N",
        help="how many of the last tokens of a chunk the next one repeats (default: 0)",
    )
    group.add_argument(
        "--chunk-by",
        choices=("tokens", "sentences"),
        help="what chunks are made of: tokens, or entire sentences (default: tokens; sentences with --whole)",
    )
    group.add_argument(
        "--late-chunking",
        action="store_true",
        help="compute the vectors of a chunk's tokens with the text around them; for models that pool by the mean",
    )


def _tokens_or_all(value: str) -> int:
    """Convert an argument to a number of tokens, or ``all`` to 0."""
    return 0 if value == "all" else arguments.positive(value)


def is_folder(options: argparse.Namespace) -> bool:
    """Return whether the output is a folder of vectors.

    Raises
    ------
    InputError
        It is not, and an option is given that only folders have.
    """
    path: Path = options.output
    if path.suffix == SUFFIX or (path.is_dir() and path.suffix.removeprefix(".") not in VECTOR_FORMATS):
        return True
    chunks = ("chunk_tokens", "chunk_overlap", "chunk_by", "late_chunking")
    why = f"is for a folder of vectors: give an output that ends in {SUFFIX}"
    arguments.refuse(options, ("keep", "precision", "update", "prune", "compact", *chunks), why)
    return False


def run_folder(options: argparse.Namespace) -> None:
    """Embed documents into a folder, and report what was done."""
    import warnings

    from wordpiece_bert._internal.progress import shown_progress
    from wordpiece_bert.errors import TruncationWarning
    from wordpiece_bert.vectors.layout import LISTING, read_listing
    from wordpiece_bert.vectors.write_call import write_vectors

    start = time.perf_counter()
    updates = options.update and (options.output / LISTING).exists()
    _check_inputs(options, updates=updates)
    before = read_listing(options.output).layout if updates else None
    name = options.model or (before.model if before else "minilm")
    encoder = _loaded(options, name, before)
    print_verbose(options, f"{encoder.engine}")
    with shown_progress(None, "text", not options.quiet) as bar:

        def planned(plan: UpdatePlan) -> None:
            bar.total = plan.to_embed
            if not options.quiet and not options.json:
                print_plan(plan)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TruncationWarning)  # they are counted below
            written = write_vectors(
                options.files,
                options.output,
                encoder,
                text_column=options.text_column[0] if options.text_column else None,
                id_column=options.id_column,
                precision=_names(options.precision),
                **_rows_of(options, encoder, before),
                chunk_overlap=options.chunk_overlap,
                late_chunking=options.late_chunking,
                whole=options.whole,
                errors=options.errors,
                update=options.update,
                prune=options.prune,
                compact=options.compact,
                part=options.part,
                model=None if updates and options.model is None else name,
                normalize_embeddings=True if options.normalize else None,
                prompt=options.prompt,
                prompt_name=options.prompt_name,
                batch_size=options.batch_size,
                planned=planned,
                progress=lambda count, _: bar.update(count),
            )
    _report(options, written, time.perf_counter() - start)


def _check_inputs(options: argparse.Namespace, *, updates: bool) -> None:
    """Refuse options and files of which no folder can be made."""
    others = ("format", "jsonl_field", "separator")
    arguments.refuse(options, others, "is not for folders of vectors, which are made of tables with --text-column")
    if not options.files or arguments.STDIN in options.files:
        raise InputError(
            "a folder of vectors is made of files of tables: give .parquet, .csv, .tsv or .jsonl files, or files and "
            "folders with --whole"
        )
    if len(options.text_column) > 1:
        raise InputError("--text-column is given several times: a vector belongs to one text")
    if options.whole:
        if options.text_column or options.id_column:
            raise InputError("--whole has paths as ids and files as texts: leave out --text-column and --id-column")
        return
    arguments.refuse(options, ["errors"], "is for files that are documents: give --whole, too")
    _check_tables(options.files)
    for option in () if updates else ("text_column", "id_column"):
        if not getattr(options, option):
            raise InputError(f"--{option.replace('_', '-')} is missing: a folder of vectors has an id for each text")


def _loaded(options: argparse.Namespace, name: str, before: Layout | None) -> Encoder:
    """Load the encoder: of a folder that is brought up to date as it was loaded for it."""
    from wordpiece_bert.vectors.reloading import load_again

    loading = arguments.loading_options(options) | {"dtype": options.dtype}
    return load_again(name, before.loading_of(name) if before else {}, download=options.download, **loading)


def _rows_of(options: argparse.Namespace, encoder: Encoder, before: Layout | None) -> dict[str, Any]:
    """Return which columns and chunks the rows have: with ``--whole`` entire sentences and their texts by default."""
    from wordpiece_bert.vectors.document_vectors import room_of

    size, by, keep = options.chunk_tokens or None, options.chunk_by, _names(options.keep)
    own = before.chunks if before and before.chunks else {}
    if options.whole and before is None:
        keep = ["text"] if keep is None else keep
        if options.chunk_tokens is None:
            size = min(CHUNK_TOKENS, room_of(encoder, options.prompt, options.prompt_name))
        if size is not None:
            by = by or "sentences"
    if size is None and ((own and options.chunk_tokens == 0) or by not in (None, own.get("by"))):
        rows = f"chunks of at most {own['size']} tokens, made of {own['by']}" if own else "a row for each text"
        raise InputError(f"{options.output} has {rows}: leave out --chunk-tokens and --chunk-by, or make another")
    return {"keep": keep, "chunk_size": size, "chunk_by": "tokens" if size is None else by or own.get("by", "tokens")}


def _report(options: argparse.Namespace, written: WrittenVectors, seconds: float) -> None:
    """Report what was written, skipped and truncated."""
    plan = written.plan
    warn_skipped(len(written.skipped), list(written.skipped.values()))
    cut = f" of {counted(plan.to_embed, 'text')} truncated to the model's longest row"
    warn_truncated(len(written.truncated), [str(one) for one in written.truncated], cut, every=options.verbose)
    facts: dict[str, Any] = {
        "output": str(options.output),
        "rows": written.rows,
        **{name: getattr(plan, name) for name in plan.__dataclass_fields__ if name != "prune"},
        "pruned": plan.gone if plan.prune else 0,
        "truncated": len(written.truncated),
        "skipped": len(written.skipped),
        "seconds": seconds,
    }
    print_summary(options, f"{options.output}: {counted(written.rows, 'row')} ({seconds:.1f} s)", facts)


def _check_tables(names: list[str]) -> None:
    """Refuse folders, and files with a suffix of plain texts, and say which option reads them as documents."""
    from pathlib import Path

    from wordpiece_bert.tokenizer.corpus.column_blocks import suffix_of

    for name in names:
        if Path(name).is_dir() or suffix_of(name) in (".txt", ".text", ".md", ".rst", ".html"):
            raise InputError(f"{name}: is no table; give --whole, and each file is a text with its path as id")


def print_plan(plan: UpdatePlan) -> None:
    """Print what will be done to standard error, before it is done."""
    parts = [f"{plan.new:,} new", f"{plan.changed:,} changed", f"{plan.unchanged:,} unchanged"]
    if plan.other_fields:
        parts.insert(2, f"{plan.other_fields:,} with other fields")
    line = f"{counted(plan.to_embed, 'text')} to embed: {', '.join(parts)}"
    if plan.gone:
        what = "dropped" if plan.prune else "kept; --prune drops them"
        line += f"; {plan.gone:,} of the folder not in the files ({what})"
    say(line)


def _names(given: str | None) -> list[str] | None:
    """Return the names of an option that are separated by commas."""
    return None if given is None else [name for name in given.split(",") if name]
