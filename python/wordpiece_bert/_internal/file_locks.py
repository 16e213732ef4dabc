"""Locks that end with the process that holds them, so that a later one can prove that their holder is dead.

`flock` locks belong to an open file. The operating system releases them when the process ends, however it ends. Where
there is no `flock` (Windows, some network file systems), nothing is locked, and no file counts as abandoned.
"""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from wordpiece_bert._internal.checks import checked_path
from wordpiece_bert._internal.owner import Owner
from wordpiece_bert.errors import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
    from pathlib import Path


#: Whether this platform has locks at all.
HAS_LOCKS = fcntl is not None


def hold(descriptor: int, path: Path) -> bool:
    """Lock an open file or folder that this process has just created.

    Returns
    -------
    bool
        Whether it is still at `path`. Between its creation and the lock, another process may have taken it for
        abandoned and removed it; then it must be created again.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False  # the process that is about to remove it holds the lock
    except OSError:
        return True  # no locks on this file system
    try:
        there, mine = path.stat(), os.fstat(descriptor)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)


def remove_abandoned(folder: Path, name: re.Pattern[str]) -> None:
    """Remove files and folders whose creators are provably dead: nobody holds their lock.

    Parameters
    ----------
    folder
        Where to search, not recursively.
    name
        The pattern of their names.
    """
    if fcntl is None:
        return
    with suppress(OSError):
        for found in [entry for entry in folder.iterdir() if name.fullmatch(entry.name)]:
            with suppress(OSError):
                _remove_if_abandoned(found)


def _remove_if_abandoned(path: Path) -> None:
    assert fcntl is not None
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
    finally:
        os.close(descriptor)


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Wait until no other writer exchanges files in a folder, and keep others out."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # no locks on this file system
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def locked(descriptor: int, path: Path) -> None:
    """Keep other writers out of an output, as long as this file or folder is open.

    Raises
    ------
    InputError
        Another process, or another thread of this one, writes it.
    """
    if not hold(descriptor, path):
        raise InputError(f"{path}: is being written by another process; wait for it, or choose another output")


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Keep other writers out of an output folder, which is created. If nothing was written, it is removed again.

    Raises
    ------
    InputError
        Another process, or another thread of this one, writes there.
    OSError
        The folder cannot be created.
    """
    checked_path(folder)
    owner, created = Owner(), not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        if HAS_LOCKS:
            descriptor = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            locked(descriptor, folder)
        try:
            yield
        finally:
            if created:
                with suppress(OSError):  # it has files
                    owner.do(folder.rmdir)
