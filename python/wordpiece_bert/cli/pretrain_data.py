"""``wordpiece-bert pretrain-data``: text files to a token store, and the store to pre-training examples."""

from __future__ import annotations

import argparse
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.owner import Owner
from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.messages import print_verbose, print_warning
from wordpiece_bert.cli.parts import part_of
from wordpiece_bert.errors import InputError, WordPieceError
from wordpiece_bert.pretraining.formats import FORMATS
from wordpiece_bert.pretraining.parameters import (
    DOCUMENTS,
    ERRORS,
    ID_TYPES,
    OBJECTIVES,
    ROWS,
    SENTENCES,
    STORING,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wordpiece_bert._internal.parameters import Parameters
    from wordpiece_bert.pretraining import ExamplesReport, TokenStore
    from wordpiece_bert.tokenizer.tokenizer import Tokenizer


def add_parser(commands: arguments.Commands, summary: str) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "pretrain-data",
        parents=[arguments.common_options()],
        help=summary,
        description="Tokenize text files into a token store, and make pre-training examples of it. Both are resumable: "
        "after an interruption the same command resumes where it was.",
    )
    parser.add_argument(
        "files", nargs="+", metavar="FILE|STORE", help="UTF-8 text files, also .gz or .zst; or folders of token stores"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="OUT",
        help="the examples: a folder (npy, mds), or a .arrow, .parquet, .jsonl or .tfrecord file",
    )
    parser.add_argument(
        "--tokens",
        type=Path,
        metavar="DIR",
        help="the folder of the token store (default: OUT.tokens); of several stores, where to merge them. "
        "Without --output, only the store is made",
    )
    arguments.add_vocab(parser, "default: minilm", default="minilm")
    _add_reading(parser.add_argument_group("documents"))
    _add_rows(parser.add_argument_group("rows"))
    _add_masking(parser.add_argument_group("masking"))
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the report as .svg, .png or .pdf")
    parser.add_argument("--megatron", metavar="PREFIX", help="also write the store as PREFIX.bin and PREFIX.idx")
    arguments.add_running(parser, run)


def _add_reading(group: argparse._ArgumentGroup) -> None:
    def add(flags: str, name: str, **more: Any) -> None:
        group.add_argument(*flags.split(), dest=name, help=arguments.described(STORING, name), **more)

    add("--documents", "documents", choices=DOCUMENTS)
    add("--sentences", "sentences", choices=SENTENCES)
    group.add_argument(
        "--abbreviation",
        dest="abbreviations",
        action="append",
        metavar="WORD",
        help="a word after which . ends no sentence; may be repeated",
    )
    add("--jsonl-field", "field", metavar="FIELD")
    add("--text-column --parquet-column", "column", metavar="COLUMN")
    add("--id-field", "id_field", metavar="FIELD")
    add("--id-column", "id_column", metavar="COLUMN")
    add("--errors", "errors", choices=ERRORS)
    add("--dtype", "dtype", choices=ID_TYPES)
    add("--shard-tokens", "shard_tokens", type=arguments.positive, metavar="N")
    group.add_argument(
        "--part", type=part_of, metavar="I/N", help="read files I, I + N, … of the list only, for one of N machines"
    )


def _add_rows(group: argparse._ArgumentGroup) -> None:
    def add(name: str, **more: Any) -> None:
        group.add_argument(f"--{name.replace('_', '-')}", **{"help": arguments.described(ROWS, name), **more})

    add("objective", choices=OBJECTIVES)
    add("max_length", type=arguments.positive, metavar="N")
    add("short_seq_prob", type=arguments.share, metavar="P")
    add("min_sentences", type=arguments.positive, metavar="N")
    packed = "several sequences a row, of LENGTH tokens (default: --max-length)"
    add("packing", nargs="?", type=arguments.positive, const=True, metavar="LENGTH", help=packed)
    add("packing_window", type=arguments.positive, metavar="N", help=argparse.SUPPRESS)
    add("max_sequences_per_row", type=arguments.positive, metavar="N")
    add("dupe_factor", type=arguments.positive, metavar="N")
    add("seed", type=arguments.natural)
    group.add_argument("--format", choices=FORMATS, help="the format of the output (default: by its suffix, or npy)")


def _add_masking(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--mask", action="store_true", help="mask now, once for each pass (default: when reading)")
    arguments.add_masking(group)
    group.add_argument("--max-predictions", type=arguments.positive, metavar="N", help="most tokens chosen in a row")


def run(options: argparse.Namespace) -> None:
    """Make the store unless stores are given, then the examples, and print the report."""
    if options.output is None and options.tokens is None:
        raise InputError("nothing to write: give --output for examples, or --tokens for a token store alone")
    if not options.mask:
        of_masking = ("whole_words", "spans", "mask_probability", "max_predictions")
        arguments.refuse(options, of_masking, "is an option of --mask: give that too")
    if options.output is None:
        of_rows = [name for name in ROWS if name != "masking"]
        arguments.refuse(options, [*of_rows, "mask", "format", "plot"], "is for examples: give --output too")
    tokenizer = arguments.load_tokenizer(options.vocab, cased=options.cased, download=options.download)
    print_verbose(options, f"{options.vocab}: {len(tokenizer):,} tokens")
    rows = None if options.output is None else _rows(tokenizer, options)
    with _removed_if_refused(_own_store(options)):
        store = _store(tokenizer, options)
        print_verbose(options, repr(store))
        report = None if rows is None else _examples(store, tokenizer, rows, options)
        if options.megatron:
            store.to_megatron(options.megatron)
    if report is not None and options.plot:
        report.plot(options.plot)
    _print(store, report, options)


def _own_store(options: argparse.Namespace) -> Path | None:
    """Return the folder of the token store that is made on the way to the examples; None with other stores."""
    if options.tokens is not None or any(Path(name).is_dir() for name in options.files):
        return None
    output: Path = options.output.resolve() if options.output == Path() else options.output
    return output.with_name(f"{output.name}.tokens")


@contextmanager
def _removed_if_refused(folder: Path | None) -> Iterator[None]:
    """Remove a folder that this run has made, if it ends with an error about its input.

    With what the error advises to change, another store is made, and that folder would be in its way.
    """
    owner, is_new = Owner(), folder is not None and not folder.exists()
    try:
        yield
    except WordPieceError:
        if is_new and folder is not None:
            owner.do(shutil.rmtree, folder, ignore_errors=True)
        raise


def _rows(tokenizer: Tokenizer, options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of rows, which are checked before files are read."""
    import warnings

    from wordpiece_bert.pretraining import Masking
    from wordpiece_bert.pretraining.formats import format_of
    from wordpiece_bert.pretraining.row_options import RowOptions

    given, kind = _given(options, ROWS), format_of(options.output, options.format)
    if kind.name == "tfrecord" and not (options.mask and options.max_predictions):
        raise InputError(
            "a tfrecord has the features of BERT's own script, which are masked: give --mask --max-predictions 20, or "
            "choose another --format"
        )
    if options.mask:
        given["masking"] = Masking(
            tokenizer,
            probability=options.mask_probability,
            whole_words=options.whole_words,
            spans=options.spans,
            max_predictions=options.max_predictions,
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are shown when the rows are made
        kind.load().check(RowOptions(**given).checked(tokenizer))
    return given


def _store(tokenizer: Tokenizer, options: argparse.Namespace) -> TokenStore:
    """Open the given store, merge the given stores, or tokenize the given files."""
    from wordpiece_bert.pretraining import TokenStore, build_token_store, merge_token_stores

    folders = [Path(name).is_dir() for name in options.files]
    if any(folders) and not all(folders):
        name = options.files[folders.index(True)]
        raise InputError(f"{name}: is a folder, but others are files: give text files, or token stores")
    if any(folders):
        arguments.refuse(options, STORING, "is for text files; a token store is made already")
    if all(folders) and options.tokens is not None:
        return merge_token_stores(options.files, options.tokens)
    if all(folders):
        if len(folders) > 1:
            raise InputError("several stores are merged into the folder --tokens: give that too")
        return TokenStore(options.files[0])
    output = _own_store(options) or options.tokens
    store = build_token_store(
        tokenizer,
        options.files,
        output,
        **_given(options, STORING),
        threads=options.threads,
        show_progress_bar=not options.quiet,
    )
    if store.skipped:
        print_warning(f"{store.skipped:,} texts that cannot be read were skipped")
    return store


def _examples(
    store: TokenStore, tokenizer: Tokenizer, rows: dict[str, Any], options: argparse.Namespace
) -> ExamplesReport:
    from wordpiece_bert.pretraining import build_examples

    return build_examples(
        store,
        options.output,
        tokenizer,
        **rows,
        format=options.format,
        threads=options.threads,
        show_progress_bar=not options.quiet,
    )


def _given(options: argparse.Namespace, table: Parameters) -> dict[str, Any]:
    """Return the options of a table that were given; the library has the defaults of the others."""
    return {name: value for name in table if (value := getattr(options, name, None)) is not None}


def _print(store: TokenStore, report: ExamplesReport | None, options: argparse.Namespace) -> None:
    if options.json:
        import json

        counts = {"store": str(store.path), "documents": store.documents, "tokens": store.tokens}
        print(report.to_json(indent=None) if report is not None else json.dumps(counts))
    elif not options.quiet:
        print(report.text() if report is not None else repr(store))
