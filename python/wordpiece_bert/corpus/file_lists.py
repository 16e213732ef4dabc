"""Files of texts as arguments: what is found before any of them is read."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import InputError, TrainingWarning

__all__ = ["STDIN", "check_encoding", "listed_files", "warn_repeated"]

STDIN = "-"
# The bytes of a file that are looked at. Of UTF-16 without a mark, every other byte of ASCII letters is 0; no text in
# UTF-8 has a NUL for every fourth character.
_HEAD = 4096
# A shorter file is not judged: a few NULs may be the texts of a test.
_FEWEST = 4
# Parquet, which has NULs, and the byte order marks of UTF-16, which the readers refuse by themselves.
_OTHERS = (b"PAR1", b"\xff\xfe", b"\xfe\xff")


def listed_files(files: object, *, advice: str = "") -> list[str]:
    """Check paths of files and return them as a list of str.

    Parameters
    ----------
    files : object
        A path or an iterable of paths.
    advice : str, default ""
        What the message for something else ends with.

    Raises
    ------
    InputError
        One is no path, there is none, standard input is given twice, or a file is in UTF-16 without a mark.
    """
    given: Any = files
    if isinstance(files, str | bytes | os.PathLike) or not isinstance(files, Iterable):
        given = [files]
    listed = []
    for file in given:
        path = os.fspath(file) if isinstance(file, str | os.PathLike) else None
        if not isinstance(path, str):
            raise InputError(
                f"files must be paths, or - for standard input, not {type(file).__name__}: {repr(file)[:80]}{advice}"
            )
        listed.append(path)
    if not listed:
        raise InputError("files is empty: pass at least one path")
    if listed.count(STDIN) > 1:
        raise InputError("standard input (-) can be read only once")
    for path in listed:
        check_encoding(path)
    return listed


def warn_repeated(listed: Sequence[str]) -> None:
    """Emit a `TrainingWarning` if a file is given several times, by the same name or by another one."""
    known: dict[str, str] = {}
    for path in listed:
        place = os.path.realpath(path)
        if place in known:
            same = "" if known[place] == path else f", which is {known[place]!r},"
            warn(f"the file {path!r}{same} is given more than once: its texts count as often", TrainingWarning)
            return
        known[place] = path


def check_encoding(path: str) -> None:
    """Raise an `InputError` if a file begins like text in UTF-16 without a byte order mark, which passes as UTF-8."""
    if path == STDIN or not Path(path).is_file():
        return
    opened: Any = gzip.open if path.lower().endswith(".gz") else open
    try:
        with opened(path, "rb") as file:
            head = file.read(_HEAD)
    except (OSError, EOFError):  # the reader of the file says what is wrong
        return
    if head.startswith(_OTHERS) or len(head) % 2:
        return
    halves = [head[side::2] for side in (0, 1)]
    nuls = [half.count(0) for half in halves]
    for side, order in ((1, "UTF-16-LE"), (0, "UTF-16-BE")):
        if nuls[side] >= _FEWEST and nuls[side] * 2 > len(halves[side]) and nuls[1 - side] * 8 <= nuls[side]:
            raise InputError(
                f"{path}: every other byte is NUL, as in {order} without a byte order mark; texts are read as UTF-8: "
                f"convert the file, iconv -f {order} -t UTF-8"
            )
