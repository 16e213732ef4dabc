"""Atomic writes: a file appears under its name complete, or not at all."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

__all__ = ["AtomicFile", "write_bytes", "write_text"]


class AtomicFile:
    """Writes a file atomically: to a temporary file in the same folder, which `commit` renames.

    A reader sees the old file or the new one, never a part of it. If the context ends with an error, or without
    `commit`, the temporary file is removed and the old file stays. A symbolic link is followed: the file it points to
    is replaced.

    The temporary file is created by `begin`, inside the context, and not by the constructor: a signal that arrives
    between opening a file and entering the context would leave the file on the disk.

    Parameters
    ----------
    path : Path
        The file to create or replace. The temporary file is named ``.<name>.<16 hex digits>.part``.

    Examples
    --------
    >>> with AtomicFile(Path("numbers.txt")) as output:  # doctest: +SKIP
    ...     output.begin()
    ...     output.file.write(b"1 2 3")
    ...     output.commit()
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._target = Path(os.path.realpath(path))
        self._temporary = self._target.with_name(f".{self._target.name}.{secrets.token_hex(8)}.part")
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        return self

    def begin(self) -> None:
        """Create the temporary file. Call it inside the context.

        Raises
        ------
        OSError
            The folder does not exist or is not writable.
        """
        self._file = self._temporary.open("xb")

    @property
    def file(self) -> BinaryIO:
        """The open temporary file."""
        assert self._file is not None, "begin() has not been called"
        return self._file

    @contextmanager
    def naming_errors(self) -> Iterator[None]:
        """Add the path to an OSError of writing, which the operating system reports without one."""
        try:
            yield
        except OSError as error:
            if error.errno is not None and error.filename is None:
                error.filename = str(self.path)
            raise

    def commit(self) -> None:
        """Flush the temporary file to the disk (fsync), close it, and rename it to its final name.

        Raises
        ------
        OSError
            The disk is full, or the file cannot be renamed; the message names the path.
        """
        with self.naming_errors():
            self.file.flush()
            os.fsync(self.file.fileno())
            self.file.close()
            self._temporary.replace(self._target)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            with suppress(OSError):  # after a failed write the data is still buffered, and closing writes it again
                self._file.close()
        with suppress(OSError):
            self._temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> Path:
    """Write a text as UTF-8, atomically, and return the path."""
    return write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> Path:
    """Write bytes to a file, atomically, and return the path."""
    with AtomicFile(path) as output:
        output.begin()
        with output.naming_errors():
            output.file.write(content)
        output.commit()
    return path
