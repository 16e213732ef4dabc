"""``--part I/N``: how it is declared, and the record that a file which is a part gets."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from wordpiece_bert.cli.messages import print_summary
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from wordpiece_bert.tokenizer.corpus.part_records import PartRecord


def part_of(value: str) -> tuple[int, int]:
    """Convert an argument such as ``0/8`` to two numbers."""
    first, slash, count = value.partition("/")
    if not (slash and first.isascii() and first.isdigit() and count.isascii() and count.isdigit()):
        raise argparse.ArgumentTypeError(f"{value!r} is not I/N, such as 0/8")
    return int(first), int(count)


def add_part(parser: argparse._ActionsContainer) -> None:
    """Declare ``--part``."""
    parser.add_argument(
        "--part",
        type=part_of,
        metavar="I/N",
        help="do part I of N only, counted from 0, for N processes or machines, each with an output of its own, which "
        "'merge' puts together; files, and row groups of Parquet files, are divided by size",
    )


def files_of_part(options: argparse.Namespace, files: list[str]) -> Sequence[Any]:
    """Return what is to be read of files: all, or one part."""
    if options.part is None:
        return files
    from wordpiece_bert.tokenizer.corpus.file_parts import part_of_files

    return part_of_files(files, options.part, tables=bool(options.text_column))


def record_of_part(options: argparse.Namespace, files: list[str], **settings: Any) -> PartRecord | None:
    """Return the record of the part that the options name, with the settings that decide about it; None without."""
    if options.part is None:
        return None
    if options.output is None or str(options.output) == "-":
        raise InputError("--part writes a file that 'merge' reads: give --output")
    from wordpiece_bert.cli.arguments import reading_options
    from wordpiece_bert.tokenizer.corpus.part_records import PartRecord, call_of

    number, count = options.part
    return PartRecord(number, count, call_of(files, **settings, reading=dict(reading_options(options))))


def is_complete(options: argparse.Namespace, record: PartRecord | None) -> bool:
    """Return whether the output is the complete part already, and say so."""
    from wordpiece_bert.tokenizer.corpus.part_records import read_record, record_path

    if record is None:
        return False
    try:
        there = read_record(options.output)
    except (InputError, FileNotFoundError):
        there = None
    if there is None or (there.part.digest, there.part.number) != (record.digest, record.number):
        record_path(options.output).unlink(missing_ok=True)
        return False
    facts = {"output": str(options.output), "part": str(record), "rows": there.rows, "complete": True}
    print_summary(options, f"{options.output}: {record} is complete already", facts)
    return True


def finish_part(
    record: PartRecord | None, output: Path, files: Sequence[Path], rows: int, texts: tuple[str, int] | None = None
) -> None:
    """Write the record of an output that is complete."""
    from wordpiece_bert.tokenizer.corpus.part_records import FileRecord, record_path, write_record

    if record is None:
        record_path(output).unlink(missing_ok=True)  # the output was a part before
        return
    write_record(output, FileRecord(record, {path.name: path.stat().st_size for path in files}, rows, texts))
