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
# How many bytes of a file are looked at, and how many control characters there must be.
_HEAD, _FEWEST = 4096, 16
# Control characters but white space. In UTF-16, the first or the second byte of each Latin letter is NUL, of a Greek
# one 3, of a Cyrillic one 4, of a Hebrew one 5, of an Arabic one 6; with the other byte they are valid UTF-8.
_CONTROLS = bytes([*range(9), *range(14, 32)])
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
        One is not a path, there is none, standard input is given twice, or a file is in UTF-16 without a mark.
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
    controls = [len(half) - len(half.translate(None, _CONTROLS)) for half in halves]
    for side, order in ((1, "UTF-16-LE"), (0, "UTF-16-BE")):
        most = controls[side] >= _FEWEST and controls[side] * 2 > len(halves[side])
        if most and controls[1 - side] * 8 <= controls[side]:
            raise InputError(
                f"{path}: it looks like {order} without a byte order mark, as every other byte is a control "
                f"character, such as NUL; texts are read as UTF-8: convert the file, iconv -f {order} -t UTF-8"
            )
