"""Files that are whole or not there."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

__all__ = ["PartFile", "write_bytes", "write_text"]


class PartFile:
    """A file that is written beside its place: whoever looks there finds what was there before, or the whole new one.

    Links are followed, so that they stay links. After an error, or without `commit`, nothing remains of it. The file is
    opened by `begin` and not sooner: a signal that comes between opening it and entering the context would leave it.

    Parameters
    ----------
    path
        The file to make or to replace.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._place = Path(os.path.realpath(path))
        self._part = self._place.with_name(f".{self._place.name}.{secrets.token_hex(8)}.part")
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        return self

    def begin(self) -> None:
        """Open the file, within the context."""
        self._file = self._part.open("xb")

    @property
    def file(self) -> BinaryIO:
        """The file to write to."""
        assert self._file is not None, "begin comes first"
        return self._file

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Put the file's name into an error of writing it, which the operating system gives without."""
        try:
            yield
        except OSError as error:
            if error.errno is not None and error.filename is None:
                error.filename = str(self.path)
            raise

    def commit(self) -> None:
        """Move the file to its place, with all that was written to it on the disk."""
        with self.naming():
            self.file.flush()
            os.fsync(self.file.fileno())
            self.file.close()
            self._part.replace(self._place)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            with suppress(OSError):  # what a full disk did not take stays in the buffer, and closing tries it once more
                self._file.close()
        with suppress(OSError):
            self._part.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> Path:
    """Write a text as UTF-8, as `write_bytes` does."""
    return write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> Path:
    """Write a file beside its place, then move it there: a reader finds the old file or the new one whole."""
    with PartFile(path) as part:
        part.begin()
        with part.naming():
            part.file.write(content)
        part.commit()
    return path
