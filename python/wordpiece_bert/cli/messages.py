"""Warnings and counts on standard error, in the form that all subcommands share."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PROGRAM", "counted", "warn_skipped", "warn_truncated"]

PROGRAM = "wordpiece-bert"
# A warning lists this many truncated texts, or the reasons for this many skipped ones, and counts the rest.
LOCATIONS_SHOWN = 20
REASONS_SHOWN = 5


def counted(number: int, noun: str) -> str:
    """Return a number and its noun: ``1 text``, ``2,000 texts``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def warn_truncated(count: int, locations: Sequence[str], detail: str = "") -> None:
    """Warn that texts were truncated; print nothing where none was.

    Parameters
    ----------
    count : int
        How many texts were truncated.
    locations : sequence of str
        Where the first of them are, such as ``texts.txt line 2``; may hold fewer than `count`.
    detail : str, optional
        What follows the number. By default ``text truncated`` or ``texts truncated``.
    """
    if count:
        shown = locations[:LOCATIONS_SHOWN]
        more = f" and {count - len(shown):,} more" * (count > len(shown))
        what = f"{count:,}{detail}" if detail else f"{counted(count, 'text')} truncated"
        print(f"{PROGRAM}: warning: {what}: {', '.join(shown)}{more}", file=sys.stderr)


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
        print(f"{PROGRAM}: warning: {counted(count, 'text')} skipped: {shown}", file=sys.stderr)
