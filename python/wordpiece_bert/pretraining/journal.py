"""Journals: lines of JSON that say which parts of an output are complete, so that a run that was killed resumes."""

from __future__ import annotations

import json
import os
import re
import zlib
from typing import TYPE_CHECKING, Any

from wordpiece_bert._internal.atomic_file import write_bytes
from wordpiece_bert._internal.owner import Owner
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.index import MAX_INDEX_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wordpiece_bert._internal.safe_json import JsonObject


class Journal:
    """A file whose first line is the identity of a call, and each other line a part of its output that is complete.

    A line is on the disk when `append` returns, and ends with a checksum. A run that was killed may leave an incomplete
    last line; that and what follows a damaged line is dropped. Only one process may use it: the caller holds a lock.

    Parameters
    ----------
    path : Path
        The file.
    header : dict
        What identifies the call, as JSON can hold it.
    """

    def __init__(self, path: Path, header: JsonObject) -> None:
        self.path, self._owner = path, Owner()
        #: The header as a journal returns it.
        self.header: JsonObject = json.loads(json.dumps(header))
        # Where each line ends, the header's first.
        self._ends: list[int] = []

    def read(self) -> tuple[JsonObject | None, list[JsonObject]]:
        """Return the header and the complete lines of an earlier run.

        The header is None if there is no journal, and empty if it is damaged.
        """
        self._ends = []
        if not self.path.exists():
            return None, []
        if not self.path.is_file() or self.path.stat().st_size > MAX_INDEX_BYTES:
            return {}, []
        found: list[JsonObject] = []
        with self.path.open("rb") as file:
            lines = file.readlines()
        for line in lines:
            entry = _opened(line)
            if entry is None:
                break
            found.append(entry)
            self._ends.append(len(line) + (self._ends[-1] if self._ends else 0))
        if found:
            return found[0], found[1:]
        return ({} if lines and lines[0].endswith(b"\n") else None), []

    def resume(
        self, output: Path, intact: Callable[[list[JsonObject]], int], *, replaces: bool = False
    ) -> list[JsonObject]:
        """Return the lines of an earlier run whose parts are on the disk, without the header; drop the others.

        The file has the header and these lines then, and is created if it was not there.

        Parameters
        ----------
        output : Path
            The output, for messages.
        intact : callable
            Called with the lines; returns how many of them, from the first on, are to be kept.
        replaces : bool, default False
            Whether to begin anew if another call has begun the output.

        Raises
        ------
        InputError
            Another call has begun the output, or the header is damaged.
        OSError
            The file cannot be written.
        """
        header, entries = self.read()
        if header is not None and not replaces:
            compare_headers(output, self.header, header)
        kept = intact(entries) if header == self.header else 0
        if kept == 0:
            self._ends = []
            self.path.unlink(missing_ok=True)
            self.append(self.header)
            return []
        del self._ends[kept + 1 :]
        with self.path.open("r+b") as file:
            file.truncate(self._ends[kept])
        return entries[:kept]

    def append(self, entry: JsonObject) -> None:
        """Add a line, which is synced.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        self._owner.check(self.path)
        line = _sealed(entry)
        with self.path.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._ends.append(len(line) + (self._ends[-1] if self._ends else 0))

    def write(self, entries: list[JsonObject]) -> None:
        """Write the header and all lines at once.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        write_bytes(self.path, b"".join(map(_sealed, [self.header, *entries])))

    def remove(self) -> None:
        """Remove the file."""
        self._owner.do(self.path.unlink, missing_ok=True)


_LINE = re.compile(rb"(.*), \"crc32\": \"([0-9a-f]{8})\"\}\n", re.DOTALL)


def _sealed(entry: JsonObject) -> bytes:
    """Return the line of an entry, whose last field is the checksum of the rest."""
    text = json.dumps(entry).encode()
    return text[:-1] + b', "crc32": "%08x"}\n' % zlib.crc32(text)


def _opened(line: bytes) -> JsonObject | None:
    """Return the entry of a line, or None if it is not as it was written."""
    parts = _LINE.fullmatch(line)
    if parts is None or zlib.crc32(parts[1] + b"}") != int(parts[2], 16):
        return None
    try:
        content: Any = json.loads(parts[1] + b"}")
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def compare_headers(folder: Path, header: JsonObject, found: JsonObject) -> None:
    """Check that an output was begun by the same call.

    Raises
    ------
    InputError
        It was not; the message names what differs.
    """
    for name, value in json.loads(json.dumps(header)).items():
        if found.get(name) == value:
            continue
        old = found.get(name)
        what = "another token store" if name == "store" else f"another {name}"
        if name == "options" and isinstance(old, dict):
            different = next((one for one in {**value, **old} if old.get(one) != value.get(one)), name)
            what = f"{different}={old.get(different)!r:.80}, not {value.get(different)!r:.80}"
        raise InputError(f"{folder}: has an output that was begun with {what}; choose another output, or delete it")
