"""Examples as one file, or as the shards of MDS. A run that was killed resumes after the last rows that are safe.

Rows are made again faster than they are written, so a journal needs no state of their making: it says how many rows of
the output are synced, and which passes over which shards these rows complete. A resumed run begins with the first step
that is not complete and skips its rows that are there.

What is finished stays known: a folder of MDS keeps its journal, and a file has a hidden record beside it.
"""

from __future__ import annotations

import os
import stat
import zlib
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from wordpiece_bert import _core
from wordpiece_bert._internal.atomic_file import sync_folder
from wordpiece_bert._internal.file_locks import HAS_LOCKS, hold, only_writer
from wordpiece_bert._internal.safe_json import read_object
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.dataset import PAIR_LABELS
from wordpiece_bert.pretraining.index import INDEX, JOURNAL, MAX_INDEX_BYTES, check_file
from wordpiece_bert.pretraining.journal import Journal, compare_headers, examples_header
from wordpiece_bert.pretraining.steps import Step, steps_of
from wordpiece_bert.pretraining.tables import ArrowRows, JsonRows, ParquetRows
from wordpiece_bert.pretraining.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from wordpiece_bert._internal.safe_json import JsonObject
    from wordpiece_bert.pretraining.row_options import RowOptions
    from wordpiece_bert.pretraining.store import TokenStore

__all__ = ["ExampleStream", "RowEncoder"]

#: Bytes of a file after which it is synced and the journal says so.
CHECKPOINT_BYTES = 64 << 20
#: The most bytes of a shard of MDS.
MDS_SHARD_BYTES = 1 << 26


class RowEncoder(Protocol):
    """Writes blocks of rows to an open file in a format."""

    #: Whether a file can be continued.
    resumes: bool

    def begin(self, file: BinaryIO, path: Path, offset: int) -> None:
        """Begin the file, or continue it at an offset at which `write` had returned before."""

    def write(self, block: _core.ExampleBlock, first: int) -> None:
        """Write the rows of a block from row `first` on."""

    def finish(self) -> None:
        """Write what follows the rows."""

    def close(self) -> None:
        """Give up what is open, after an error too."""


class _TfrecordRows:
    """Rows as TFRecords."""

    resumes = True

    def __init__(self, options: RowOptions) -> None:
        assert options.masking is not None
        self._encoder = _core.TfrecordEncoder(options.max_length, options.masking._options["max_predictions"])
        self._file: Any = None

    def begin(self, file: BinaryIO, path: Path, offset: int) -> None:
        del path, offset
        self._file = file

    def write(self, block: _core.ExampleBlock, first: int) -> None:
        self._file.write(self._encoder.encode(block, first))

    def finish(self) -> None:
        pass

    def close(self) -> None:
        pass


class _Output(Protocol):
    """Where rows go. Entries are lines of the journal; each has the number of ``rows`` that are safe."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def finished(self, journal: Journal) -> list[JsonObject] | None:
        """Return the entries with the counts of all rows, if this call has finished the output before; else None.

        Raises
        ------
        InputError
            Another call has finished it, and it is not to be replaced.
        """

    def intact(self, safe: list[JsonObject]) -> int:
        """Return how many entries, from the first on, say what is on the disk."""

    def begin(self, safe: list[JsonObject]) -> None:
        """Begin, or resume after these entries."""

    def write(self, block: _core.ExampleBlock, first: int) -> list[JsonObject]:
        """Write the rows of a block from row `first` on; return entries for what has become safe."""

    def finish(self, journal: Journal, tallies: list[JsonObject]) -> None:
        """Complete the output, and keep the entries with the counts of all rows."""

    def discard(self) -> None:
        """Remove what has been written."""


class _RowFile:
    """A file that is written under the name of a part, and renamed when it is complete. A context manager.

    The lock of the part keeps other processes out.
    """

    def __init__(self, path: Path, encoder: RowEncoder) -> None:
        self._target = Path(os.path.realpath(path))
        self._part = self._target.with_name(f"{self._target.name}.part")
        self._encoder = encoder
        self._file: Any = None
        self._rows = self._safe = self._crc = 0

    def __enter__(self) -> Self:
        self._file = os.fdopen(os.open(self._part, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666), "r+b")
        if not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            self._file.close()
            raise InputError(f"{self._part}: is no regular file; remove it, or choose another output")
        if not hold(self._file.fileno(), self._part):
            self._file.close()
            raise InputError(
                f"{self._part}: is being written by another process; wait for it, or choose another output"
            )
        return self

    def finished(self, journal: Journal) -> list[JsonObject] | None:
        """Whether the file is the one that the record is about, by its size and the time of its last change."""
        header, entries = self._record(journal).read()
        if header != journal.header or not entries or not self._target.is_file():
            return None
        return entries[:-1] if entries[-1] == _identity(self._target.stat()) else None

    def _record(self, journal: Journal) -> Journal:
        return Journal(self._target.with_name(f".{self._target.name}.{JOURNAL}"), journal.header)

    def intact(self, safe: list[JsonObject]) -> int:
        """All entries, if the part begins with the bytes that they are about; otherwise it is replaced."""
        if not safe or not self._encoder.resumes:
            return 0
        crc, at = 0, 0
        self._file.seek(0)
        for number, entry in enumerate(safe):
            while at < entry["bytes"]:
                chunk = self._file.read(min(entry["bytes"] - at, 1 << 24))
                if not chunk:
                    return number
                crc, at = zlib.crc32(chunk, crc), at + len(chunk)
            if crc != entry["crc"]:
                return number
        return len(safe)

    def begin(self, safe: list[JsonObject]) -> None:
        if safe:
            self._rows, self._safe, self._crc = (safe[-1][name] for name in ("rows", "bytes", "crc"))
        self._file.truncate(self._safe)
        self._file.seek(self._safe)
        self._encoder.begin(self._file, self._part, self._safe)

    def write(self, block: _core.ExampleBlock, first: int) -> list[JsonObject]:
        self._encoder.write(block, first)
        self._rows += len(block) - first
        end = self._file.tell()
        if not self._encoder.resumes or end - self._safe < CHECKPOINT_BYTES:
            return []
        self._sync()
        self._file.seek(self._safe)
        self._crc = zlib.crc32(self._file.read(end - self._safe), self._crc)
        self._file.seek(end)
        self._safe = end
        return [{"rows": self._rows, "bytes": end, "crc": self._crc}]

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def finish(self, journal: Journal, tallies: list[JsonObject]) -> None:
        self._encoder.finish()
        self._sync()
        self._record(journal).write([*tallies, _identity(os.fstat(self._file.fileno()))])
        if not HAS_LOCKS:
            self._file.close()  # Windows renames no open file
        self._part.replace(self._target)
        sync_folder(self._target.parent)
        journal.remove()

    def discard(self) -> None:
        self._part.unlink(missing_ok=True)

    def __exit__(self, *_: object) -> None:
        self._encoder.close()
        with suppress(OSError):  # after a failed write the data is still buffered, and closing writes it again
            self._file.close()


class _MdsFolder:
    """The shards of MDS; each is complete under its name or not there. A context manager."""

    def __init__(self, path: Path, store: TokenStore, options: RowOptions) -> None:
        self._path = path
        self._layout: dict[str, Any] = {
            "narrow_ids": store.dtype.itemsize == 2,
            "pair_label": PAIR_LABELS.get(options.objective),
            "masks": options.masking is not None,
            "packed": options.packing is not None,
            "size_limit": MDS_SHARD_BYTES,
        }
        self._known = self._rows = 0
        self._writer: Any = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(only_writer(self._path))
        return self

    def finished(self, journal: Journal) -> list[JsonObject] | None:
        """Whether the index is there; its shards must have their sizes."""
        where = self._path / INDEX
        if not where.exists():
            return None
        header, entries = journal.read()
        if header != journal.header:
            raise InputError(f"{self._path}: has a data set already; choose another output, or delete it")
        index = read_object(where, InputError, max_bytes=MAX_INDEX_BYTES)
        shards = index.get("shards")
        for number, shard in enumerate(shards if isinstance(shards, list) else [None]):
            data = shard.get("raw_data") if isinstance(shard, dict) else None
            data = data if isinstance(data, dict) else {}
            if data.get("basename") != _shard_name(number) or not isinstance(data.get("bytes"), int):
                raise InputError(
                    f"{where}: shard {number} is not as it was written; delete the folder, and make it again"
                )
            check_file(self._path, {"name": data["basename"], "bytes": data["bytes"]})
        return [entry for entry in entries if "tally" in entry]

    def intact(self, safe: list[JsonObject]) -> int:
        """Those up to the first shard that is not as it was written."""
        for number, shard in enumerate(safe):
            path = self._path / _shard_name(number)
            if not path.is_file() or path.stat().st_size != shard["bytes"] or _crc_of(path) != shard["crc"]:
                return number
        return len(safe)

    def begin(self, safe: list[JsonObject]) -> None:
        self.discard()
        shards = [(shard["samples"], shard["bytes"]) for shard in safe]
        self._writer = _core.MdsWriter(str(self._path), shards=shards, **self._layout)
        self._known, self._rows = len(shards), sum(samples for samples, _ in shards)

    def write(self, block: _core.ExampleBlock, first: int) -> list[JsonObject]:
        shards = self._writer.write(block, first)
        entries: list[JsonObject] = []
        for number, (samples, size) in enumerate(shards[self._known :], self._known):
            self._rows += samples
            crc = _crc_of(self._path / _shard_name(number))
            entries.append({"rows": self._rows, "samples": samples, "bytes": size, "crc": crc})
        if entries:
            sync_folder(self._path)
        self._known = len(shards)
        return entries

    def finish(self, journal: Journal, tallies: list[JsonObject]) -> None:
        del journal, tallies  # the journal has them, and stays
        self._writer.finish()
        sync_folder(self._path)

    def discard(self) -> None:
        for part in self._path.glob("*.part"):
            part.unlink()

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _shard_name(number: int) -> str:
    return f"shard.{number:05}.mds"


def _crc_of(path: Path) -> int:
    """Return the CRC-32 of a file, which may be a large one."""
    crc = 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 24):
            crc = zlib.crc32(chunk, crc)
    return crc


def _identity(status: os.stat_result) -> JsonObject:
    """Return what changes when a file is written again."""
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns}


class ExampleStream:
    """Builds a file or a folder of MDS, and resumes where a run that was killed has left it.

    Parameters
    ----------
    path : Path
        The file or folder.
    kind : {"arrow", "parquet", "jsonl", "mds", "tfrecord"}
        The format.
    store : TokenStore
        The store to read.
    options : RowOptions
        What rows are made.
    """

    def __init__(self, path: Path, kind: str, store: TokenStore, options: RowOptions) -> None:
        self._path, self._kind, self._store, self._options = path, kind, store, options
        self._header = {**examples_header(store, options), "output": kind}
        name = JOURNAL if kind == "mds" else f"{Path(os.path.realpath(path)).name}.{JOURNAL}"
        folder = path if kind == "mds" else Path(os.path.realpath(path)).parent
        self._journal = Journal(folder / name, self._header)
        self._tally = Tally(options.row_length)
        self._any_safe = False

    def build(self, threads: int | None, show: Callable[[int], None]) -> Tally:
        """Write what is missing; return the counts of all rows.

        Raises
        ------
        InputError
            The folder of MDS holds something else; or another process writes the same output.
        OSError
            A file cannot be written.
        """
        with _naming(self._path), self._output() as output:
            if (tallies := output.finished(self._journal)) is not None:
                self._merge(tallies)
                output.discard()
                return self._tally
            try:
                self._build(output, threads, show)
            except BaseException:
                if not self._any_safe:  # there is nothing to resume after
                    output.discard()
                    self._journal.remove()
                raise
        return self._tally

    def _merge(self, tallies: list[JsonObject]) -> None:
        """Take the counts of all rows from an earlier run."""
        if len(tallies) != len(steps_of(self._store, self._options)):
            raise InputError(f"{self._journal.path}: is damaged; delete {self._path}, and make it again")
        for entry in tallies:
            self._tally.merge(entry["tally"])

    def _build(self, output: _Output, threads: int | None, show: Callable[[int], None]) -> None:
        entries = self._resumed(output)
        done = [entry for entry in entries if "tally" in entry]
        safe = [entry for entry in entries if "rows" in entry]
        for entry in done:
            self._tally.merge(entry["tally"])
        skipped = (safe[-1]["rows"] if safe else 0) - self._tally.rows
        output.begin(safe)
        for pass_number, shard in steps_of(self._store, self._options)[len(done) :]:
            step = Step(self._store, self._options, pass_number, shard, threads)
            self._write(step, output, skipped, show)
            done.append({"tally": step.tally.to_json()})
            self._journal.append(done[-1])
            skipped = 0
        output.finish(self._journal, done)

    def _write(self, step: Step, output: _Output, skipped: int, show: Callable[[int], None]) -> None:
        """Write the rows of a step, but for the first `skipped`."""
        before = self._tally.tokens
        for block in step.blocks():
            first = min(skipped, len(block))
            skipped -= first
            if first < len(block):
                for entry in output.write(block, first):
                    self._journal.append(entry)
                    self._any_safe = True
            show(before + step.tally.tokens)
        self._tally.merge(step.tally.to_json())

    def _resumed(self, output: _Output) -> list[JsonObject]:
        """Return the entries to resume after; begin a journal if there are none."""
        header, entries = self._journal.read()
        if header is not None and self._kind == "mds":
            compare_headers(self._path, self._header, header)
        places = [i for i, entry in enumerate(entries) if "rows" in entry]
        count = output.intact([entries[i] for i in places]) if header == self._journal.header else 0
        if count == 0:
            self._journal.begin()
            return []
        kept = places[count - 1] + 1
        self._journal.keep(kept)
        self._any_safe = True
        return entries[:kept]

    def _output(self) -> _Output:
        if self._kind == "mds":
            return _MdsFolder(self._path, self._store, self._options)
        return _RowFile(self._path, self._encoder())

    def _encoder(self) -> RowEncoder:
        options = self._options
        if self._kind == "tfrecord":
            return _TfrecordRows(options)
        classes: dict[str, Callable[..., RowEncoder]] = {
            "arrow": ArrowRows,
            "parquet": ParquetRows,
            "jsonl": JsonRows,
        }
        return classes[self._kind](
            label=PAIR_LABELS.get(options.objective),
            masked=options.masking is not None,
            packed=options.packing is not None,
        )


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Add the path of the output to an OSError that has none."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
