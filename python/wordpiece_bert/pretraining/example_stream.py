"""Examples as one file, or as the shards of MDS. A run that was killed goes on after the last rows that are safe.

Rows are made again faster than they are written, so a journal needs no state of their making: it says how many rows of
the output are synced, and which passes over which shards these rows complete. A resumed run begins with the first step
that is not complete and skips its rows that are there.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from wordpiece_bert import _core
from wordpiece_bert._internal.atomic_file import sync_folder
from wordpiece_bert._internal.file_locks import HAS_LOCKS, hold
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.dataset import PAIR_LABELS
from wordpiece_bert.pretraining.index import INDEX, JOURNAL, check_file
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

    def holds(self, last: JsonObject) -> bool:
        """Whether what an entry says is on the disk."""

    def begin(self, safe: list[JsonObject]) -> None:
        """Begin, or go on after these entries."""

    def write(self, block: _core.ExampleBlock, first: int) -> list[JsonObject]:
        """Write the rows of a block from row `first` on; return entries for what has become safe."""

    def finish(self) -> None:
        """Complete the output."""

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
        self._rows = self._safe = 0

    def __enter__(self) -> Self:
        self._file = os.fdopen(os.open(self._part, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666), "r+b")
        if not hold(self._file.fileno(), self._part):
            self._file.close()
            message = f"{self._part}: is being written by another process; wait for it, or choose another output"
            raise InputError(message)
        return self

    def holds(self, last: JsonObject) -> bool:
        """Whether the part has as many bytes as an entry says; otherwise it is replaced."""
        return self._encoder.resumes and os.fstat(self._file.fileno()).st_size >= int(last["bytes"])

    def begin(self, safe: list[JsonObject]) -> None:
        if safe:
            self._rows, self._safe = safe[-1]["rows"], safe[-1]["bytes"]
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
        self._safe = end
        return [{"rows": self._rows, "bytes": end}]

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def finish(self) -> None:
        self._encoder.finish()
        self._sync()
        if not HAS_LOCKS:
            self._file.close()  # Windows renames no open file
        self._part.replace(self._target)
        sync_folder(self._target.parent)

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

    def __enter__(self) -> Self:
        self._path.mkdir(parents=True, exist_ok=True)
        return self

    def holds(self, last: JsonObject) -> bool:
        del last  # `begin` refuses a folder in which a shard is missing
        return True

    def begin(self, safe: list[JsonObject]) -> None:
        self.discard()
        for number, shard in enumerate(safe):
            check_file(self._path, {"name": f"shard.{number:05}.mds", "bytes": shard["bytes"]})
        shards = [(shard["samples"], shard["bytes"]) for shard in safe]
        self._writer = _core.MdsWriter(str(self._path), shards=shards, **self._layout)
        self._known, self._rows = len(shards), sum(samples for samples, _ in shards)

    def write(self, block: _core.ExampleBlock, first: int) -> list[JsonObject]:
        shards = self._writer.write(block, first)
        entries: list[JsonObject] = []
        for samples, size in shards[self._known :]:
            self._rows += samples
            entries.append({"rows": self._rows, "samples": samples, "bytes": size})
        if entries:
            sync_folder(self._path)
        self._known = len(shards)
        return entries

    def finish(self) -> None:
        self._writer.finish()
        sync_folder(self._path)

    def discard(self) -> None:
        for part in self._path.glob("*.part"):
            part.unlink()

    def __exit__(self, *_: object) -> None:
        pass


class ExampleStream:
    """Builds a file or a folder of MDS, and goes on where a run that was killed has left it.

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
        if self._kind == "mds" and (self._path / INDEX).exists():
            return self._finished()
        with _naming(self._path), self._output() as output:
            try:
                self._build(output, threads, show)
            except BaseException:
                if not self._any_safe:  # there is nothing to go on after
                    output.discard()
                    self._journal.remove()
                raise
        return self._tally

    def _build(self, output: _Output, threads: int | None, show: Callable[[int], None]) -> None:
        entries = self._resumed(output)
        done = [entry for entry in entries if "tally" in entry]
        safe = [entry for entry in entries if "rows" in entry]
        for entry in done:
            self._tally.merge(entry["tally"])
        skipped = (safe[-1]["rows"] if safe else 0) - self._tally.rows
        output.begin(safe)
        for pass_number, shard in steps_of(self._store, self._options)[len(done) :]:
            self._write(Step(self._store, self._options, pass_number, shard, threads), output, skipped, show)
            skipped = 0
        output.finish()
        self._journal.remove()

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
        self._journal.append({"tally": step.tally.to_json()})

    def _resumed(self, output: _Output) -> list[JsonObject]:
        """Return the entries to go on after; begin a journal if there are none."""
        header, entries = self._journal.read()
        if header is not None and self._kind == "mds":
            compare_headers(self._path, self._header, header)
        last = max((i for i, entry in enumerate(entries) if "rows" in entry), default=-1)
        if header != _as_json(self._header) or last < 0 or not output.holds(entries[last]):
            self._journal.begin()
            return []
        self._journal.keep(last + 1)
        self._any_safe = True
        return entries[: last + 1]

    def _finished(self) -> Tally:
        """Return the counts of a folder whose index is there, if this call has written it and was killed then."""
        header, entries = self._journal.read()
        if header != _as_json(self._header):
            message = f"{self._path}: has a data set already; choose another output, or delete it"
            raise InputError(message)
        for entry in entries:
            if "tally" in entry:
                self._tally.merge(entry["tally"])
        self._journal.remove()
        return self._tally

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


def _as_json(header: JsonObject) -> JsonObject:
    """Return a header as a journal returns it."""
    content: JsonObject = json.loads(json.dumps(header))
    return content


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Add the path of the output to an OSError that has none."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
