"""Writing the rows of a token store to a sink. A run that was killed resumes after the last rows that are safe.

Rows are made again faster than they are written, so a journal needs no state of their making: it says how many rows of
the output are on the disk, and which passes over which shards these rows complete. A resumed run begins with the first
step that is not complete and skips its rows that are there.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from wordpiece_bert._internal.signals import telling
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.dataset import EXAMPLES_FORMAT
from wordpiece_bert.pretraining.journal import Journal
from wordpiece_bert.pretraining.steps import Step, steps_of
from wordpiece_bert.pretraining.store import files_of
from wordpiece_bert.pretraining.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from wordpiece_bert._internal.safe_json import JsonObject
    from wordpiece_bert.pretraining.formats import RowFormat
    from wordpiece_bert.pretraining.row_options import RowOptions
    from wordpiece_bert.pretraining.store import TokenStore


class ExampleRun:
    """Writes examples, and resumes where a run that was killed has left them.

    Parameters
    ----------
    path : Path
        The output.
    kind : RowFormat
        The format.
    store : TokenStore
        The store to read.
    options : RowOptions
        What rows are made.
    """

    def __init__(self, path: Path, kind: RowFormat, store: TokenStore, options: RowOptions) -> None:
        self._path, self._store, self._options = path, store, options
        self._steps = steps_of(store, options)
        self._sink = kind.load()(path, options.schema(store.dtype), self._steps)
        self._journal = Journal(self._sink.journal, self._sink.header(_header(store, options), kind.name))
        # The counts of each step, and of all.
        self._tallies: list[JsonObject] = []
        self._tally = Tally(options.row_length)
        self._any_safe = False

    def build(self, threads: int | None, show: Callable[[int], None]) -> Tally:
        """Write what is missing; return the counts of all rows.

        Raises
        ------
        InputError
            The output holds something else that is not to be replaced, or another process writes it.
        OSError
            A file cannot be written.
        """
        with _naming(self._path), self._sink as sink:
            if (tallies := sink.finished(self._journal)) is not None:
                if len(tallies) != len(self._steps):
                    raise InputError(
                        f"{self._path}: the counts of its passes over shards are damaged; delete it, and make it again"
                    )
                self._count(tallies)
                sink.discard()
                return self._tally
            try:
                with telling(self._kept):
                    self._write(threads, show)
            except BaseException:
                if not self._any_safe:  # there is nothing to resume after
                    sink.discard()
                    self._journal.remove()
                raise
        return self._tally

    def _kept(self) -> str:
        if not self._any_safe:
            return f"nothing of {self._path} was complete yet; {self._store.path} is kept, so run it again"
        return f"what is complete of {self._path} is kept; run it again for the rest"

    def _count(self, tallies: list[JsonObject]) -> None:
        self._tallies += tallies
        for tally in tallies:
            self._tally.merge(tally)

    def _write(self, threads: int | None, show: Callable[[int], None]) -> None:
        sink = self._sink
        entries = self._journal.resume(self._path, self._intact, replaces=sink.replaces)
        parts = [entry for entry in entries if "rows" in entry]
        self._any_safe = bool(parts)
        self._count([entry["tally"] for entry in entries if "tally" in entry])
        # A part with counts ends a step, so all rows up to its end are safe.
        skipped = parts[-1]["rows"] - self._tally.rows if parts and "tally" not in parts[-1] else 0
        sink.begin(parts)
        for pass_number, shard in self._steps[len(self._tallies) :]:
            step = Step(self._store, self._options, pass_number, shard, threads)
            sink.begin_step(pass_number, shard)
            before = self._tally.tokens
            for block in step.blocks():
                first = min(skipped, len(block))
                skipped -= first
                if first < len(block):
                    self._keep(sink.write(block.rest(first) if first else block))
                show(before + step.tally.tokens)
            tally = step.tally.to_json()
            self._count([tally])
            part = sink.commit()
            self._keep([{**(part or {}), "tally": tally}])
        store = self._store
        counts = {"documents": store.documents, "documents_empty": store.documents_empty, "bytes": store.bytes}
        sink.finish(self._journal, self._tallies, {**self._tally.report(self._options), **counts})

    def _keep(self, entries: list[JsonObject]) -> None:
        """Write the parts that have become safe to the journal."""
        for entry in entries:
            self._journal.append(entry)
            self._any_safe |= "rows" in entry

    def _intact(self, entries: list[JsonObject]) -> int:
        """Return how many entries to resume after: up to the last part that is on the disk."""
        places = [place for place, entry in enumerate(entries) if "rows" in entry]
        count = self._sink.intact([entries[place] for place in places])
        return places[count - 1] + 1 if count else 0


def _header(store: TokenStore, options: RowOptions) -> JsonObject:
    """Return what identifies the examples of a store: the beginning of their index and of their journal."""
    checksums = [[file["bytes"], file["crc32"]] for file in files_of(store)]
    # What distinguishes a store from others, wherever it is.
    digest = hashlib.sha256(json.dumps(checksums).encode()).hexdigest()
    return {
        "format": EXAMPLES_FORMAT,
        "version": 1,
        "dtype": store.dtype.name,
        "tokenizer": store.fingerprint,
        "vocab_size": store.vocab_size,
        "pad_token_id": options.pad_id,
        "objective": options.objective,
        "row_length": options.row_length,
        "options": options.recorded(),
        "store": {"documents": store.documents, "tokens": store.tokens, "sha256": digest},
    }


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Add the path of the output to an OSError that has none."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
