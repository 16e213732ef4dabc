"""``wordpiece-bert count``: word counts of text files, which can be added and passed to ``train --counts``."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.progress import stage_progress
from wordpiece_bert._internal.same_file import refuse_input_as_output
from wordpiece_bert.cli import arguments
from wordpiece_bert.cli.messages import counted, print_summary, warn_skipped
from wordpiece_bert.errors import InputError, TrainingError
from wordpiece_bert.training.parameters import COUNTING

if TYPE_CHECKING:
    from collections.abc import Callable

    from wordpiece_bert.training import WordCounts

FORMATS = ("parquet", "arrow", "tsv")


def counting_arguments() -> argparse.ArgumentParser:
    """Return a parent parser with the options on how words are counted."""
    parent = argparse.ArgumentParser(add_help=False)
    group = parent.add_argument_group("counting")
    group.add_argument("--cased", action="store_true", help="keep upper case and accents")
    accents = group.add_mutually_exclusive_group()
    accents.add_argument(
        "--strip-accents", action="store_true", default=None, help="strip accents, with or without --cased"
    )
    accents.add_argument("--keep-accents", dest="strip_accents", action="store_false", help="keep accents")
    group.add_argument("--no-clean-text", action="store_true", help="keep control characters")
    group.add_argument(
        "--no-chinese-chars", action="store_true", help="do not split Chinese ideographs into words of one character"
    )
    group.add_argument(
        "--max-distinct-words",
        type=arguments.positive,
        metavar="N",
        help=arguments.described(
            COUNTING, "max_distinct_words", "no bound", ": after every 64 MiB, drop the rarest words"
        ),
    )
    arguments.add_threads(parent)
    arguments.add_output_control(parent)
    return parent


def add_parser(commands: arguments.Commands, summary: str) -> None:
    """Declare the subcommand."""
    parser = commands.add_parser(
        "count",
        parents=[arguments.common_options(), arguments.reading_arguments("to read both"), counting_arguments()],
        help=summary,
        description="Count the words of text files. Counts of several files, machines or days can be added up: "
        "train --counts accepts any number of them.",
    )
    arguments.add_files(parser)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        type=Path,
        metavar="OUT",
        help="a .parquet, .arrow or .tsv file for the counts of all files; or a folder with one file of counts for "
        "each, where files that were counted before in the same way are not counted again",
    )
    parser.add_argument(
        "--format", choices=FORMATS, default="parquet", help="format of the files in a folder (default: parquet)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Count the words, write the counts, and report how many there are."""
    start = time.perf_counter()
    options.files = arguments.input_files(options.files)
    one_file = options.output.suffix in (".parquet", ".arrow", ".feather", ".tsv")
    if one_file:
        arguments.refuse(options, ["format"], "is for counts in a folder; a file has the format of its name")
        refuse_input_as_output([options.output], options.files)
    else:
        folder, suffix = options.output, options.format
        refuse_input_as_output([folder / f"{Path(name).name}.{suffix}" for name in options.files], options.files)
    with stage_progress(quiet=options.quiet) as progress:
        if one_file:
            counts, reasons = count_files(options.files, options, progress)
            counts.save(options.output)
            new, kept = len(options.files), 0
        else:
            counts, reasons, new, kept = _count_into_folder(options, progress)
    warn_skipped(counts.skipped, reasons)
    seconds = time.perf_counter() - start
    files = f"{counted(new, 'file')} counted{f', {kept:,} counted before' if kept else ''}"
    print_summary(
        options,
        f"{options.output}: {len(counts):,} words that occur {counts.total:,} times in {counts.texts:,} texts "
        f"({files}; {seconds:.1f} s)",
        {
            "output": str(options.output),
            "words": len(counts),
            "occurrences": counts.total,
            "texts": counts.texts,
            "skipped": counts.skipped,
            "files_counted": new,
            "files_reused": kept,
            "seconds": seconds,
        },
    )


def normalizer_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the normalizer options of `WordCounts` for what `counting_arguments` declared."""
    given: dict[str, Any] = {
        "lowercase": not options.cased,
        "clean_text": not options.no_clean_text,
        "tokenize_chinese_chars": not options.no_chinese_chars,
    }
    if options.strip_accents is not None:
        given["strip_accents"] = options.strip_accents
    return given


def count_files(
    files: list[str], options: argparse.Namespace, progress: Callable[..., None]
) -> tuple[WordCounts, list[str]]:
    """Count the words of files of any kind: plain text, JSON lines or tables.

    Returns
    -------
    WordCounts
        The counts.
    list of str
        The places and problems of the first texts that were skipped; none of plain lines.
    """
    from wordpiece_bert.training import WordCounts

    reading = arguments.reading_options(options)
    counting = normalizer_options(options) | {
        "threads": options.threads,
        "max_distinct_words": options.max_distinct_words,
        "progress": progress,
    }
    plain = reading == {"separator": "\n", "field": None, "column": None, "errors": reading["errors"]}
    from wordpiece_bert.tokenizer.corpus.column_blocks import suffix_of
    from wordpiece_bert.tokenizer.corpus.file_lists import warn_repeated
    from wordpiece_bert.tokenizer.corpus.text_reader import HOLDERS, TextReader
    from wordpiece_bert.training.parts import with_skipped

    if plain and HOLDERS.keys().isdisjoint(map(suffix_of, files)):
        return WordCounts.from_files(files, errors=reading["errors"], **counting), []
    warn_repeated(files)
    reader = TextReader(files, **reading)
    counts = WordCounts.from_texts(arguments.single_texts(reader), **counting)
    return with_skipped(counts, reader.skipped_count), reader.skipped


def _count_into_folder(
    options: argparse.Namespace, progress: Callable[..., None]
) -> tuple[WordCounts, list[str], int, int]:
    """Count file by file into a folder, and reuse the counts of files that were counted before in the same way.

    Returns
    -------
    counts, reasons, new, reused
        The sum of all counts, the problems of the first skipped texts, the number of files counted now, and of those
        counted before.
    """
    from wordpiece_bert._internal.atomic_file import write_text

    folder: Path = options.output
    sources: dict[Path, str] = {}
    for name in options.files:
        if name == arguments.STDIN:
            raise InputError("standard input has no name for its counts in a folder: give a file as --output")
        path = folder / f"{Path(name).name}.{options.format}"
        if path in sources:
            raise InputError(f"{sources[path]} and {name} have the same name, and so would their counts in {folder}")
        sources[path] = name
    folder.mkdir(parents=True, exist_ok=True)
    parts, reasons, reused = [], [], 0
    for path, name in sources.items():
        # Hidden, so that a pattern such as counts/* names the counts alone.
        beside = path.with_name(f".{path.name}.json")
        record = _record(name, options)
        counts = _reusable_counts(path, beside, record)
        if counts is None:
            beside.unlink(missing_ok=True)
            counts, skipped = count_files([name], options, progress)
            counts.save(path)
            write_text(beside, json.dumps(record) + "\n")
            reasons += skipped
        else:
            reused += 1
        parts.append(counts)
    return sum(parts[1:], parts[0]), reasons, len(sources) - reused, reused


def _record(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return what decides about the counts of a file, as JSON has it."""
    from wordpiece_bert import _core
    from wordpiece_bert.training.options import normalizer_settings

    status = Path(name).stat()
    found: dict[str, Any] = json.loads(
        json.dumps(
            {
                "file": os.path.realpath(name),
                "size": status.st_size,
                "mtime_ns": status.st_mtime_ns,
                "reading": arguments.reading_options(options),
                "max_distinct_words": options.max_distinct_words,
                "normalizer": normalizer_settings(**normalizer_options(options)).fingerprint,
                "version": _core.__version__,
            }
        )
    )
    return found


def _reusable_counts(path: Path, beside: Path, record: dict[str, Any]) -> WordCounts | None:
    """Load the counts of a file if they were made as a record says.

    Raises
    ------
    InputError
        They are the counts of another file, which is still there.
    """
    from wordpiece_bert._internal.safe_json import read_object
    from wordpiece_bert.training import WordCounts

    try:
        before = read_object(beside, InputError)
        if before == record:
            return WordCounts.load(path)
    except (FileNotFoundError, InputError, TrainingError):
        return None
    other = before.get("file")
    if other != record["file"] and isinstance(other, str) and Path(other).exists():
        raise InputError(f"{path} has the counts of {other}: give another folder for those of {record['file']}")
    return None
