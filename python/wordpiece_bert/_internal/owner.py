"""What a process has under way is its own: a child that is forked meanwhile removes, renames and writes none of it.

A signal handler may fork while a file is written. The child has the same objects, and if it ends with an error, its
clean-up would remove the parent's files.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import BinaryIO

# Files that only the process that opened them may write.
_files: WeakSet[BinaryIO] = WeakSet()


class Owner:
    """The process that makes this object."""

    def __init__(self) -> None:
        self._process = os.getpid()

    def do(self, call: Callable[..., object], *arguments: Any, **named: Any) -> None:
        """Call a function, or do nothing in another process."""
        if os.getpid() == self._process:
            call(*arguments, **named)

    def check(self, path: Path) -> None:
        """Raise an `InputError` in another process; `path` is what is being written."""
        if os.getpid() != self._process:
            raise InputError(
                f"{path}: is being written by the process that this one was forked from; choose another output"
            )


def own_file(file: BinaryIO) -> BinaryIO:
    """Return an open file, whose position and buffered bytes a child that is forked from now on leaves alone."""
    _files.add(file)
    return file


def _after_fork_in_child() -> None:
    # Closing a file writes what is buffered, and its position is shared with the parent.
    for file in [file for file in _files if not file.closed]:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, file.fileno(), inheritable=False)
        os.close(null)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
