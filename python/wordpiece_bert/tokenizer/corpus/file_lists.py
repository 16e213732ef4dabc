"""Files of texts as arguments: what is found before any of them is read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.checks import checked_path, iterates
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.errors import InputError, TrainingWarning

if TYPE_CHECKING:
    from collections.abc import Sequence

STDIN = "-"


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
        One is not a path, there is none, or standard input is given twice.
    """
    given: Any = files
    if isinstance(files, str | bytes | os.PathLike) or not iterates(files):
        given = [files]
    listed = []
    for file in given:
        path = os.fspath(file) if isinstance(file, str | os.PathLike) else None
        if not isinstance(path, str):
            raise InputError(
                f"files must be paths, or - for standard input, not {type(file).__name__}: {repr(file)[:80]}{advice}"
            )
        listed.append(checked_path(path))
    if not listed:
        raise InputError("files is empty: pass at least one path")
    if listed.count(STDIN) > 1:
        raise InputError("standard input (-) can be read only once")
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
