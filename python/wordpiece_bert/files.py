"""Texts out of files, and arrays into files: what the command reads and writes."""

from __future__ import annotations

import os
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

import numpy as np

from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

__all__ = ["NpyWriter", "TextReader"]

STDIN = "-"


class TextReader:
    r"""Reads texts out of UTF-8 files: one a line, or one a file.

    A line ends at ``\n``; one ``\r`` before it goes with it; no other character ends a line. The last line need not
    be ended. Empty lines are texts too, so text *i* is line *i*. A byte order mark at the start of a file is left out.

    Parameters
    ----------
    names
        Paths; ``-`` is standard input.
    whole
        Take each file as one text, as it is.

    Raises
    ------
    InputError
        A name is a folder, or standard input is named twice; while reading: bytes that are not UTF-8.
    FileNotFoundError
        There is no such file.
    """

    def __init__(self, names: Sequence[str], *, whole: bool = False) -> None:
        self.names = list(names)
        self.whole = whole
        self.count = 0
        self.bytes_read = 0
        self.size: int | None = 0
        """Bytes to be read in all; None where nobody can know."""
        if self.names.count(STDIN) > 1:
            message = "standard input (-) can be read only once"
            raise InputError(message)
        for name in self.names:
            if name == STDIN:
                self.size = None
                continue
            if Path(name).is_dir():
                message = f"{name}: is a folder; name the text files in it"
                raise InputError(message)
            bytes_here = Path(name).stat().st_size
            self.size = self.size + bytes_here if self.size is not None and Path(name).is_file() else None

    def groups(self, size: int) -> Iterator[tuple[list[str], list[str]]]:
        """Read up to ``size`` texts at a time: the texts, and for each the place where it stands."""
        texts = iter(self)
        while group := list(islice(texts, size)):
            yield [text for text, _ in group], [place for _, place in group]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for name in self.names:
            if name == STDIN:
                yield from self._read(sys.stdin.buffer, "standard input")
            else:
                with Path(name).open("rb") as file:
                    yield from self._read(file, name)

    def _read(self, file: BinaryIO, name: str) -> Iterator[tuple[str, str]]:
        start = 0
        pieces: Iterator[bytes] = iter([file.read()]) if self.whole else iter(file)
        for line, raw in enumerate(pieces, 1):
            text = raw if self.whole else raw.removesuffix(b"\r\n" if raw.endswith(b"\r\n") else b"\n")
            try:
                decoded = text.decode("utf-8")
            except UnicodeDecodeError as error:
                raise InputError(_not_utf8(name, raw, error.start, start, line)) from None
            if line == 1:
                decoded = decoded.removeprefix("\ufeff")
            start += len(raw)
            self.bytes_read += len(raw)
            self.count += 1
            yield decoded, name if self.whole else f"{name} line {line}"


def _not_utf8(name: str, raw: bytes, at: int, start: int, line: int) -> str:
    """Word the error: where the first wrong byte is, and what the file may be instead."""
    line += raw.count(b"\n", 0, at)
    where = f"byte 0x{raw[at]:02x} in line {line}, byte offset {start + at} of the file"
    utf16 = start == 0 and raw.startswith((b"\xff\xfe", b"\xfe\xff"))
    guess = "it looks like UTF-16" if utf16 else "it may be Latin-1 or Windows-1252"
    return f"{name}: not UTF-8: {where}; {guess}: convert it to UTF-8 first"


class NpyWriter:
    """Writes the rows of one array as they come, beside ``path``, and puts the file in its place when all are there.

    Whoever reads ``path`` sees what was there before or the whole result, never a part. After an error nothing remains.

    Parameters
    ----------
    path
        The .npy file to make or to replace.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shape = (0, 0)
        self.dtype = np.dtype(np.float32)
        self._partial = path.with_name(f".{path.name}.{os.getpid()}.part")

    def __enter__(self) -> Self:
        self._file: BinaryIO = self._partial.open("xb")
        return self

    def append(self, rows: np.ndarray[Any, Any]) -> None:
        """Add rows [n, width] at the end."""
        if not self._file.tell():
            self.shape, self.dtype = (0, rows.shape[1]), rows.dtype
            self._write_header()
        self._file.write(np.ascontiguousarray(rows).data)
        self.shape = (self.shape[0] + len(rows), self.shape[1])

    def _write_header(self) -> None:
        # The header of the .npy format is padded so that the first axis can grow without moving the data.
        header = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": self.shape}
        np.lib.format.write_array_header_1_0(self._file, header)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._file.seek(0)
                self._write_header()
                self._file.flush()
                os.fsync(self._file.fileno())
                self._file.close()
                self._partial.replace(self.path)
        finally:
            self._file.close()
            self._partial.unlink(missing_ok=True)
