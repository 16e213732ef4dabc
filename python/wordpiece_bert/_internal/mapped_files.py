"""Files that arrays are mapped from: whether they are still as long as when they were mapped.

Reading a page of a map that the file no longer has ends the process with SIGBUS, which Python cannot turn into an
error. So the length of the file is compared before a map is read. A file that is shortened while it is read still ends
the process.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

from wordpiece_bert.errors import InputError


def map_of(array: Any) -> tuple[mmap.mmap, int, str] | None:
    """Return the map that the numbers of an array are in, the least size of its file, and the file's name for messages.

    None for an array in memory.
    """
    end, name = 0, "the file that the vectors are mapped from"
    found: Any = array
    while found is not None and not isinstance(found, mmap.mmap):
        if isinstance(found, np.memmap) and isinstance(found.base, mmap.mmap):  # the map itself, not a part of it
            end = found.offset + found.nbytes
            name = str(found.filename or name)
        found = found.obj if isinstance(found, memoryview) else getattr(found, "base", None)
    return None if found is None else (found, end or len(found), name)


def require_whole(array: Any) -> None:
    """Raise an `InputError` if an array is mapped from a file that has been shortened."""
    if (found := map_of(array)) is not None:
        require_size(*found)


def require_size(mapped: mmap.mmap, size: int, name: object) -> None:
    """Raise an `InputError` if the file of a map has less than `size` bytes; `name` is for the message.

    Raises
    ------
    InputError
        The file was shortened.
    """
    try:
        found = mapped.size()
    except (OSError, ValueError):  # there is no file, as for memory that processes share
        return
    if found < size:
        raise InputError(
            f"{name}: has {found:,} bytes, but had {size:,} when it was opened: another program has shortened it; "
            "restore the file and open it again"
        )
