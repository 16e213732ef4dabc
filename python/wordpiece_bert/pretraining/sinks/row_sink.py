"""The interface of a format of examples, and what formats of one file and of a folder share.

A run calls a sink in this order: `begin`, then `begin_step`, `write` for each block of rows and `commit` for each pass
over each shard, then `finish`. Rows that are on the disk are a *part*: `write` and `commit` return an entry for each,
which the journal of the run keeps. A run that was killed begins again with the parts that are as they were written.
"""

from __future__ import annotations

import os
import stat
from abc import ABC, abstractmethod
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, ClassVar, Self

from wordpiece_bert._internal.atomic_file import check_replaceable, in_real_folder, sync_folder
from wordpiece_bert._internal.file_locks import HAS_LOCKS, locked, only_writer
from wordpiece_bert._internal.owner import Owner, own_file
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.array_files import remove_parts
from wordpiece_bert.pretraining.index import INDEX, JOURNAL, checksum
from wordpiece_bert.pretraining.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import BinaryIO

    from wordpiece_bert import _core
    from wordpiece_bert._internal.safe_json import JsonObject
    from wordpiece_bert.pretraining.row_options import RowOptions
    from wordpiece_bert.pretraining.schema import RowSchema

#: Bytes of a file after which it is synced and its rows are a part.
CHECKPOINT_BYTES = 64 << 20


class RowSink(ABC):
    """Where rows are written in a format. A context manager, inside which no other process writes the same output.

    Parameters
    ----------
    path : Path
        The output.
    schema : RowSchema
        What columns rows have.
    steps : sequence of (int, int)
        The passes and shards of the token store in the order of their rows.

    Attributes
    ----------
    journal : Path
        The file of the journal.
    step : (int, int)
        The pass and the shard whose rows are written.
    """

    #: Whether an unfinished output of another call is replaced; otherwise it is refused.
    replaces: ClassVar[bool] = False
    journal: Path
    step: tuple[int, int]

    def __init__(self, path: Path, schema: RowSchema, steps: Sequence[tuple[int, int]] = ()) -> None:
        self.path, self.schema, self.steps = path, schema, steps
        self._owner = Owner()

    @classmethod
    def check(cls, options: RowOptions) -> None:
        """Check that the format holds such rows; by default it holds all.

        Raises
        ------
        InputError
            It does not.
        """
        del options

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...

    def header(self, header: JsonObject, name: str) -> JsonObject:
        """Return what identifies the call that writes this output, given what identifies its rows and its format."""
        return {**header, "output": name}

    @abstractmethod
    def finished(self, journal: Journal) -> list[JsonObject] | None:
        """Return the counts of all rows, if this call has finished the output before; else None.

        Raises
        ------
        InputError
            Another call has finished it, and it is not to be replaced.
        """

    @abstractmethod
    def intact(self, parts: Sequence[JsonObject]) -> int:
        """Return how many parts, from the first on, are on the disk as they were written."""

    @abstractmethod
    def begin(self, parts: Sequence[JsonObject]) -> None:
        """Begin the output, or resume after these parts."""

    def begin_step(self, pass_number: int, shard: int) -> None:
        """Begin the rows of a pass over a shard of the token store."""
        self.step = pass_number, shard

    @abstractmethod
    def write(self, rows: _core.ExampleBlock) -> list[JsonObject]:
        """Write rows; return the parts that have become complete, each with ``rows``, the number of rows up to its end.

        Raises
        ------
        OSError
            A file cannot be written.
        """

    def commit(self) -> JsonObject | None:
        """End the rows of a pass over a shard; return a part, if all rows up to here are on the disk."""
        return None

    @abstractmethod
    def finish(self, journal: Journal, tallies: list[JsonObject], report: JsonObject) -> None:
        """Complete the output.

        Parameters
        ----------
        journal : Journal
            The journal of the run, whose header identifies the call.
        tallies : list of dict
            The counts of rows of each step, which `finished` returns later.
        report : dict
            The counts of all rows, as `ExamplesReport` has them.
        """

    @abstractmethod
    def discard(self) -> None:
        """Remove what has been written and is in no part."""


class FileSink(RowSink):
    """A file that is written under the name of a part, and renamed when it is complete.

    A format defines `add`, and what else it needs of `start` and `end`. The lock of the part keeps other processes out.
    A finished file has a hidden record beside it, by which the same call knows it.

    Attributes
    ----------
    file : binary file
        The open file.
    """

    replaces = True
    #: Whether a file can be continued.
    resumes: ClassVar[bool] = True
    file: BinaryIO

    def __init__(self, path: Path, schema: RowSchema, steps: Sequence[tuple[int, int]] = ()) -> None:
        super().__init__(path, schema, steps)
        self._target = in_real_folder(path)
        self.part = self._target.with_name(f"{self._target.name}.part")
        self.journal = self._target.with_name(f"{self._target.name}.{JOURNAL}")
        self._rows = self._safe = self._crc = 0

    def start(self, offset: int) -> None:
        """Write what precedes the rows. With an offset, the file has that many bytes already, up to the end of rows."""

    @abstractmethod
    def add(self, rows: _core.ExampleBlock) -> None:
        """Write rows to `file`."""

    def end(self) -> None:
        """Write what follows the rows."""

    def close(self) -> None:
        """Give up what is open, after an error too."""
        with suppress(OSError):  # after a failed write the data is still buffered, and closing writes it again
            self.file.close()

    def __enter__(self) -> Self:
        check_replaceable(self.path)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
        with ExitStack() as stack:
            self.file = stack.enter_context(own_file(os.fdopen(os.open(self.part, flags, 0o666), "r+b")))
            if not stat.S_ISREG(os.fstat(self.file.fileno()).st_mode):
                raise InputError(f"{self.part}: is no regular file; remove it, or choose another output")
            locked(self.file.fileno(), self.part)
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def finished(self, journal: Journal) -> list[JsonObject] | None:
        """Whether the file is the one that the record is about, by its size and the time of its last change."""
        header, entries = self._record(journal).read()
        if header != journal.header or not entries or not self._target.is_file():
            return None
        if entries[-1] != _identity(self._target.stat()):
            return None
        return [entry["tally"] for entry in entries[:-1]]

    def _record(self, journal: Journal) -> Journal:
        return Journal(self._target.with_name(f".{self._target.name}.{JOURNAL}"), journal.header)

    def intact(self, parts: Sequence[JsonObject]) -> int:
        """All, if the file begins with the bytes that they are about."""
        if not self.resumes:
            return 0
        crc: int | None = 0
        at = 0
        self.file.seek(0)
        for number, part in enumerate(parts):
            crc = checksum(self.file, part["bytes"] - at, crc or 0)
            if crc != part["crc"]:
                return number
            at = part["bytes"]
        return len(parts)

    def begin(self, parts: Sequence[JsonObject]) -> None:
        """Begin the file, or cut it after the last part."""
        if parts:
            self._rows, self._safe, self._crc = (parts[-1][name] for name in ("rows", "bytes", "crc"))
        self.file.truncate(self._safe)
        self.file.seek(self._safe)
        self.start(self._safe)

    def write(self, rows: _core.ExampleBlock) -> list[JsonObject]:
        """Write rows; they are a part when enough bytes of the file are on the disk."""
        self.add(rows)
        self._rows += len(rows)
        end = self.file.tell()
        if not self.resumes or end - self._safe < CHECKPOINT_BYTES:
            return []
        self._sync()
        self.file.seek(self._safe)
        self._crc = checksum(self.file, end - self._safe, self._crc) or 0
        self.file.seek(end)
        self._safe = end
        return [{"rows": self._rows, "bytes": end, "crc": self._crc}]

    def _sync(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())

    def finish(self, journal: Journal, tallies: list[JsonObject], report: JsonObject) -> None:
        """Complete the file, and record what made it."""
        del report
        self._owner.check(self.path)
        self.end()
        self._sync()
        identity = _identity(os.fstat(self.file.fileno()))
        self._record(journal).write([*({"tally": tally} for tally in tallies), identity])
        if not HAS_LOCKS:
            self.file.close()  # Windows renames no open file
        self._owner.do(self.part.replace, self._target)
        sync_folder(self._target.parent)
        journal.remove()

    def discard(self) -> None:
        """Remove the file that is not complete."""
        self._owner.do(self.part.unlink, missing_ok=True)


def _identity(status: os.stat_result) -> JsonObject:
    """Return what changes when a file is written again."""
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns}


class FolderSink(RowSink):
    """A folder whose files are complete under their names or not there, and whose ``index.json`` is written last.

    A format returns an entry for each part, the files that are complete together, and names them in `part_is_intact`.
    """

    def __init__(self, path: Path, schema: RowSchema, steps: Sequence[tuple[int, int]] = ()) -> None:
        super().__init__(path, schema, steps)
        self.journal = path / JOURNAL
        self._stack = ExitStack()

    @property
    def index(self) -> Path:
        """The file that is written last."""
        return self.path / INDEX

    def __enter__(self) -> Self:
        self._stack.enter_context(only_writer(self.path))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @abstractmethod
    def part_is_intact(self, number: int, part: JsonObject) -> bool:
        """Whether a part is the one of this number, and its files are as they were written."""

    def intact(self, parts: Sequence[JsonObject]) -> int:
        """Return how many parts are on the disk, by the files that they name."""
        return next((n for n, part in enumerate(parts) if not self.part_is_intact(n, part)), len(parts))

    def begin(self, parts: Sequence[JsonObject]) -> None:
        """Remove what a run that was killed has left."""
        del parts
        self.discard()

    def discard(self) -> None:
        """Remove the files that are not complete."""
        self._owner.do(remove_parts, self.path)
