"""Warnings and counts on standard error, in the form that all subcommands share."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.log import say

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

PROGRAM = "wordpiece-bert"
# A warning lists this many truncated or skipped texts, and counts the rest.
LOCATIONS_SHOWN = 5
# A list that makes a warning longer than this has a line for each item.
LONGEST_LINE = 120


def _label(kind: str, color: str) -> str:
    """Return ``wordpiece-bert: error:``, coloured on a terminal unless NO_COLOR is set (no-color.org)."""
    colored = sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return f"{PROGRAM}: \x1b[{color}m{kind}:\x1b[0m" if colored else f"{PROGRAM}: {kind}:"


def print_error(message: str) -> None:
    """Print an error to standard error."""
    say(f"{_label('error', '1;31')} {message}")


def print_warning(message: str) -> None:
    """Print a warning to standard error."""
    say(f"{_label('warning', '1;33')} {message}")


def print_verbose(options: argparse.Namespace, message: str) -> None:
    """Print what is being done to standard error, with ``--verbose``."""
    if options.verbose:
        say(message)


def print_summary(options: argparse.Namespace, text: str, facts: dict[str, Any]) -> None:
    """Print what was done: a line on standard error, or with ``--json`` an object on standard output.

    If standard output is the output (``-o -``), the object goes to standard error as well.
    """
    if options.json:
        from wordpiece_bert._internal.json_text import json_text

        (say if str(getattr(options, "output", None)) == "-" else print)(json_text(facts, ensure_ascii=False))
    elif not options.quiet:
        say(text)


def closest(name: str, names: Iterable[str]) -> str:
    """Return ``; did you mean 'X'?`` for the name most like the one given, or nothing if none is like it.

    The dashes of options make no two alike.
    """
    import difflib  # only errors need it

    bare = {one.lstrip("-") or one: one for one in names}
    found = [bare[one] for one in difflib.get_close_matches(name.lstrip("-"), bare, n=1, cutoff=0.6)]
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
        Whether to list all locations, as with ``--verbose``, instead of the first five.
    """
    if count:
        what = f"{count:,}{detail}" if detail else f"{counted(count, 'text')} truncated"
        hint = "" if every or len(locations) < count else ": --verbose lists all"
        _warn_with_list(what, locations if every else locations[:LOCATIONS_SHOWN], count, hint)


def warn_skipped(count: int, reasons: Sequence[str], noun: str = "text") -> None:
    """Warn that texts were skipped; print nothing where none was.

    Parameters
    ----------
    count : int
        How many texts were skipped.
    reasons : sequence of str
        The file, location and problem of the first of them; may hold fewer than `count`.
    noun : str, default "text"
        What one of them is called.
    """
    if count and not reasons:
        print_warning(f"{counted(count, noun)} skipped, which cannot be read")
    elif count:
        _warn_with_list(f"{counted(count, noun)} skipped", reasons[:LOCATIONS_SHOWN], count, "")


def _warn_with_list(what: str, shown: Sequence[str], count: int, hint: str) -> None:
    """Print a warning about `count` things, of which the first are `shown`, in one line if it is short."""
    items = [*shown, f"and {count - len(shown):,} more{hint}"] if count > len(shown) else list(shown)
    line = f"{what}: {', '.join(items)}"
    print_warning(line if len(items) < 2 or len(line) <= LONGEST_LINE else "\n  ".join([f"{what}:", *items]))
