"""Atomic writes: a file appears under its name complete, or not at all."""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

from wordpiece_bert._internal.checks import checked_path
from wordpiece_bert._internal.file_locks import HAS_LOCKS, hold, remove_abandoned
from wordpiece_bert._internal.owner import Owner, own_file
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


# Bytes that a system call writes, and bytes after which a large file is flushed: 0.1 s for a disk with 160 MB/s.
_WRITTEN_AT_ONCE = 4 << 20
_SYNCED_AT_ONCE = 16 << 20

# Flushes contents without times; macOS and Windows do not have it.
_sync_data = getattr(os, "fdatasync", os.fsync)


def part_name(name: str) -> str:
    """Return a new name for the temporary file or folder of a name."""
    return f".{name}.{os.urandom(8).hex()}.part"


def part_pattern(name: str) -> re.Pattern[str]:
    """Return a pattern of the names that `part_name` returns for a name."""
    return re.compile(rf"\.{re.escape(name)}\.[0-9a-f]{{16}}\.part")


def in_real_folder(path: Path) -> Path:
    """Return a path with the symbolic links of its folder resolved, but not a link that it is itself."""
    checked_path(path)
    return Path(os.path.realpath(path.parent), path.name)


def check_replaceable(path: Path) -> None:
    """Check that a file to be replaced is not one that other programs read and write, such as ``/dev/stdout``.

    Raises
    ------
    InputError
        It is, or it is a link to such a file.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError(f"{path}: is not an ordinary file, so it is not replaced; choose another output")


class AtomicFile:
    """Writes a file atomically: to a temporary file in the same folder, which `commit` renames.

    A reader sees the old file or the new one, never a part of it. If the context ends with an error, or without
    `commit`, the temporary file is removed and the old file stays. A symbolic link is replaced: the file that it points
    to, such as a blob of the Hugging Face cache, which other folders share, stays as it is.

    The temporary file is created by `begin`, inside the context, and not by the constructor: a signal that arrives
    between opening a file and entering the context would leave the file on the disk.
    A process that is killed leaves it too; `begin` removes such files of the same output, if nothing holds their lock.
    In a child that is forked meanwhile, writing and `commit` are errors, and the file stays.

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
        #: The file to replace: `path`, in its folder with symbolic links resolved.
        self.target = in_real_folder(path)
        if not self.target.name:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        self._temporary = self.target.with_name(part_name(self.target.name))
        self._file: BinaryIO | None = None
        self.owner = Owner()

    def __enter__(self) -> Self:
        return self

    def begin(self) -> None:
        """Create the temporary file. Call it inside the context.

        Raises
        ------
        InputError
            There is something that is neither a file nor a folder, such as a device or a pipe, or a link to it.
        OSError
            The folder does not exist or is not writable.
        """
        with self.naming_errors():
            check_replaceable(self.path)
            remove_abandoned(self.target.parent, part_pattern(self.target.name))
            self._file = own_file(self._temporary.open("xb"))
            while not hold(self._file.fileno(), self._temporary):
                self._file.close()
                self._temporary = self.target.with_name(part_name(self.target.name))
                self._file = own_file(self._temporary.open("xb"))

    @property
    def file(self) -> BinaryIO:
        """The open temporary file."""
        assert self._file is not None, "begin() has not been called"
        self.owner.check(self.path)
        return self._file

    @contextmanager
    def naming_errors(self) -> Iterator[None]:
        """Add the path to an OSError of writing, which has none, or the name of the temporary file."""
        try:
            yield
        except OSError as error:
            if error.errno is None or error.filename not in (None, str(self._temporary)):
                raise
            raise OSError(error.errno, error.strerror, str(self.path)) from error

    def write(self, chunks: Iterable[bytes | memoryview]) -> None:
        """Write chunks of bytes, such that Ctrl-C is obeyed soon however large they are.

        Python runs signal handlers between system calls. So a call writes a few megabytes at most, and the file is
        flushed to the disk regularly: flushing gigabytes at the end can take seconds.

        Raises
        ------
        OSError
            The disk is full; the message names the path.
        """
        unsynced = 0
        with self.naming_errors():
            for chunk in chunks:
                view = memoryview(chunk)
                for start in range(0, len(view), _WRITTEN_AT_ONCE):
                    unsynced += self.file.write(view[start : start + _WRITTEN_AT_ONCE])
                    if unsynced >= _SYNCED_AT_ONCE:
                        self.file.flush()
                        _sync_data(self.file.fileno())
                        unsynced = 0

    def sync(self) -> None:
        """Flush the temporary file to the disk (fsync). Afterwards only `rename` is missing.

        Raises
        ------
        OSError
            The disk is full; the message names the path.
        """
        with self.naming_errors():
            self.file.flush()
            os.fsync(self.file.fileno())
            if not HAS_LOCKS:
                self.file.close()  # Windows renames no open file, and has no lock that closing would release

    def rename(self) -> None:
        """Rename the temporary file, which is synced, to its final name.

        Raises
        ------
        OSError
            The file cannot be renamed; the message names the path.
        """
        with self.naming_errors():
            self.owner.check(self.path)
            self._temporary.replace(self.target)

    def commit(self) -> None:
        """Flush the temporary file to the disk (fsync), and rename it to its final name.

        Raises
        ------
        OSError
            The disk is full, or the file cannot be renamed; the message names the path.
        """
        self.sync()
        self.rename()

    def __exit__(self, *_: object) -> None:
        # Removed before it is closed, because closing releases the lock. (Windows removes no open file.)
        if not HAS_LOCKS:
            self._close()
        with suppress(OSError):
            self.owner.do(self._temporary.unlink, missing_ok=True)
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # after a failed write the data is still buffered, and closing writes it again
                self._file.close()


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, where the system can do that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        with ExitStack() as stack:
            stack.callback(os.close, descriptor)
            os.fsync(descriptor)


def write_text(path: Path, text: str) -> Path:
    """Write a text as UTF-8, atomically, and return the path."""
    return write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> Path:
    """Write bytes to a file, atomically, and return the path."""
    with AtomicFile(path) as output:
        output.begin()
        output.write([content])
        output.commit()
    return path
