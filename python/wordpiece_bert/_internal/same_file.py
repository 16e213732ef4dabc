"""Refuses outputs that are inputs of the same call."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable


def refuse_input_as_output(outputs: Iterable[Path], inputs: Iterable[str | os.PathLike[str]]) -> None:
    """Refuse to replace a file that is to be read. Files are compared by device and inode, so links are found too.

    Parameters
    ----------
    outputs
        The files to create or replace.
    inputs
        The files to read. Names that are not files, such as ``-``, are ignored.

    Raises
    ------
    InputError
        An output is one of the inputs.
    """
    read: dict[tuple[int, int], str | os.PathLike[str]] = {}
    for name in inputs:
        if (identity := _identity(Path(name))) is not None:
            read.setdefault(identity, name)
    for output in outputs:
        identity = _identity(output)
        if identity in read:
            same = "" if str(output) == os.fspath(read[identity]) else f", {os.fspath(read[identity])}"
            raise InputError(f"{output}: is one of the inputs{same}, which would be lost; choose another output")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino)
