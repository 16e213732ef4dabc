"""Warnings and counts on standard error, in the form that all subcommands share."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

__all__ = [
    "PROGRAM",
    "closest",
    "closest_file",
    "counted",
    "flags_for_arguments",
    "print_error",
    "print_summary",
    "print_verbose",
    "print_warning",
    "warn_skipped",
    "warn_truncated",
]

PROGRAM = "wordpiece-bert"
# A warning lists this many truncated texts, or the reasons for this many skipped ones, and counts the rest.
LOCATIONS_SHOWN = 20
REASONS_SHOWN = 5


# What the library's messages call an option -> what the command calls it, where `flags_for_arguments` cannot derive it.
FLAGS = {
    "field": "--jsonl-field",
    "column": "--parquet-column",
    "special_tokens": "--special-token",
    "lowercase=False": "--cased",
    "clean_text=False": "--no-clean-text",
    "tokenize_chinese_chars=False": "--no-chinese-chars",
    "strip_accents=True": "--strip-accents",
    "strip_accents=False": "--keep-accents",
    "include_joiner=False": "--no-joiner",
    "add_special_tokens=False": "--no-special-tokens",
    "separator=None": "--whole",
    "resume_from_checkpoint=True": "--resume",
    "overwrite_output_dir=True": "--overwrite",
    "num_train_epochs": "--epochs",
    "per_device_train_batch_size": "--batch-size",
    "gradient_accumulation_steps": "--accumulation",
    "gradient_checkpointing": "--checkpointing",
    "warmup_steps": "--warmup",
    "lr_scheduler_type": "--schedule",
    "eval_strategy": "--eval",
    "max_seq_length": "the model's maximum length",
}


def _label(kind: str, color: str) -> str:
    """Return ``wordpiece-bert: error:``, coloured on a terminal unless NO_COLOR is set (no-color.org)."""
    colored = sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return f"{PROGRAM}: \x1b[{color}m{kind}:\x1b[0m" if colored else f"{PROGRAM}: {kind}:"


def print_error(message: str) -> None:
    """Print an error to standard error."""
    print(f"{_label('error', '1;31')} {message}", file=sys.stderr)


def print_warning(message: str) -> None:
    """Print a warning to standard error."""
    print(f"{_label('warning', '1;33')} {message}", file=sys.stderr)


def print_verbose(options: argparse.Namespace, message: str) -> None:
    """Print what is being done to standard error, with ``--verbose``."""
    if options.verbose:
        print(message, file=sys.stderr)


def print_summary(options: argparse.Namespace, text: str, facts: dict[str, Any]) -> None:
    """Print what was done: a line on standard error, or with ``--json`` an object on standard output.

    If standard output is the output (``-o -``), the object goes to standard error as well.
    """
    if options.json:
        import json

        to_stdout = str(getattr(options, "output", None)) != "-"
        print(json.dumps(facts, ensure_ascii=False), file=sys.stdout if to_stdout else sys.stderr)
    elif not options.quiet:
        print(text, file=sys.stderr)


def closest(name: str, names: Iterable[str]) -> str:
    """Return ``; did you mean 'X'?`` for the name most like the one given, or nothing if none is like it."""
    import difflib  # only errors need it

    found = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
    return f"; did you mean {found[0]!r}?" if found else ""


def closest_file(path: str) -> str:
    """Return ``; did you mean 'X'?`` for a file that does not exist, from the files beside where it should be."""
    missing = Path(path)
    while not missing.parent.exists():
        missing = missing.parent
    try:
        names = os.listdir(missing.parent)
    except OSError:
        return ""
    found = closest(missing.name, names)
    if not found or missing.parent == Path():
        return found
    name = found.removeprefix("; did you mean '").removesuffix("'?")
    return f"; did you mean {str(missing.parent / name)!r}?"


def flags_for_arguments(message: str, parser: argparse.ArgumentParser) -> str:
    """Replace the names of Python arguments in a message of the library with the flags of a subcommand.

    A name of several words, such as ``vocab_size``, is replaced anywhere; a single word only with a value, as in
    ``errors='skip'``. Parts of paths are left alone.
    """
    message = re.sub(r"\w+='[^']*' \((--[\w-]+ [^)]*)\)", r"\1", message)
    flags = dict(FLAGS)
    for action in parser._actions:
        long = [option for option in action.option_strings if option.startswith("--")]
        if long and action.dest not in flags:
            flags[action.dest] = long[0]
    for name, flag in sorted(flags.items(), key=lambda pair: -len(pair[0])):
        value = r"(?:=(?P<quote>['\"]?)(?P<value>[\w.+-]*\w)(?P=quote))"
        needed = "" if "=" in name else value + ("?" if "_" in name else "")
        pattern = rf"(?<![\w/\\.'\"-]){re.escape(name)}{needed}(?![\w/\\='\"-]|\.\w)"
        message = re.sub(pattern, lambda found, flag=flag: _with_value(found, flag), message)  # type: ignore[misc]
    return message


def _with_value(found: re.Match[str], flag: str) -> str:
    value = found.groupdict().get("value")
    return flag if value in (None, "True") else f"{flag} {value}"


def counted(number: int, noun: str) -> str:
    """Return a number and its noun: ``1 text``, ``2,000 texts``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def warn_truncated(count: int, locations: Sequence[str], detail: str = "", *, every: bool = False) -> None:
    """Warn that texts were truncated; print nothing where none was.

    Parameters
    ----------
    count : int
        How many texts were truncated.
    locations : sequence of str
        Where the first of them are, such as ``texts.txt line 2``; may hold fewer than `count`.
    detail : str, optional
        What follows the number. By default ``text truncated`` or ``texts truncated``.
    every : bool, default False
        Whether to list all locations instead of the first 20.
    """
    if count:
        shown = locations if every else locations[:LOCATIONS_SHOWN]
        more = f" and {count - len(shown):,} more" * (count > len(shown))
        what = f"{count:,}{detail}" if detail else f"{counted(count, 'text')} truncated"
        print_warning(f"{what}: {', '.join(shown)}{more}")


def warn_skipped(count: int, reasons: Sequence[str]) -> None:
    """Warn that texts were skipped; print nothing where none was.

    Parameters
    ----------
    count : int
        How many texts were skipped.
    reasons : sequence of str
        The file, location and problem of the first of them; may hold fewer than `count`.
    """
    if count:
        shown = "; ".join(reasons[:REASONS_SHOWN]) + f"; and {count - REASONS_SHOWN:,} more" * (count > REASONS_SHOWN)
        print_warning(f"{counted(count, 'text')} skipped: {shown}")
