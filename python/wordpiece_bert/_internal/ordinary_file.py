"""Refuses what is not an ordinary file where a file is read from its beginning to its end."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from wordpiece_bert._internal.checks import checked_path
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def require_ordinary_file(path: Path) -> None:
    """Raise an `InputError` for a folder, a pipe or a device: opening a pipe that nobody writes to waits forever.

    Raises
    ------
    InputError
        The path is one of these.
    OSError
        There is no such file.
    """
    checked_path(path)
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        what = "is a folder" if stat.S_ISDIR(mode) else "is a pipe or a device, not an ordinary file"
        raise InputError(f"{path}: {what}; pass the path of a file")
