"""Example folders: ``.npy`` files of each pass over each shard, and an index that is written last."""

from __future__ import annotations

import json
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from wordpiece_bert import _core
from wordpiece_bert._internal.atomic_file import sync_folder, write_text
from wordpiece_bert._internal.file_locks import only_writer
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.dataset import EXAMPLES_FORMAT, PAIR_LABELS
from wordpiece_bert.pretraining.index import INDEX, JOURNAL, check_file, read_index, verify_file
from wordpiece_bert.pretraining.journal import Journal, compare_headers, examples_header
from wordpiece_bert.pretraining.steps import Step, steps_of
from wordpiece_bert.pretraining.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wordpiece_bert._internal.safe_json import JsonObject
    from wordpiece_bert.pretraining.row_options import RowOptions
    from wordpiece_bert.pretraining.store import TokenStore

__all__ = ["ExampleFolder"]


class ExampleFolder:
    """Builds an example folder. A run that was killed resumes after the last pass over a shard that it completed.

    Parameters
    ----------
    path : Path
        The folder.
    store : TokenStore
        The store to read.
    options : RowOptions
        What rows are made.
    """

    def __init__(self, path: Path, store: TokenStore, options: RowOptions) -> None:
        self._path, self._store, self._options = path, store, options
        self._header = examples_header(store, options)
        self._journal = Journal(path / JOURNAL, self._header)
        self._tally = Tally(options.row_length)
        self._entries: list[JsonObject] = []

    def build(self, threads: int | None, show: Callable[[int], None]) -> Tally:
        """Write what is missing; return the counts of all rows.

        Raises
        ------
        InputError
            The folder holds something else, or examples of other arguments, or another process writes it.
        OSError
            A file cannot be written.
        """
        with only_writer(self._path):
            if (self._path / INDEX).exists():
                self._read_finished()
            else:
                self._build(threads, show)
        return self._tally

    def _build(self, threads: int | None, show: Callable[[int], None]) -> None:
        self._read_journal()
        for pass_number, shard in steps_of(self._store, self._options)[len(self._entries) :]:
            entry = self._write(pass_number, shard, threads, show)
            self._journal.append(entry)
            self._entries.append(entry)
        shards = [{name: value for name, value in entry.items() if name != "tally"} for entry in self._entries]
        tallies = [entry["tally"] for entry in self._entries]
        index = {**self._header, "report": self._report(), "tallies": tallies, "shards": shards}
        write_text(self._path / INDEX, json.dumps(index, indent=1) + "\n")
        sync_folder(self._path)
        self._journal.remove()

    def _report(self) -> JsonObject:
        store = self._store
        fields = {"documents": store.documents, "documents_empty": store.documents_empty, "bytes": store.bytes}
        return {**self._tally.report(self._options), **fields}

    def _write(self, pass_number: int, shard: int, threads: int | None, show: Callable[[int], None]) -> JsonObject:
        options = self._options
        step = Step(self._store, options, pass_number, shard, threads)
        writer = _core.NpyExampleWriter(
            str(self._path),
            _prefix(pass_number, shard),
            narrow_ids=self._store.dtype.itemsize == 2,
            narrow_places=options.narrow_places,
            pairs=options.objective in PAIR_LABELS,
            masks=options.masking is not None,
            packed=options.packing is not None,
        )
        before = self._tally.tokens
        for block in step.blocks():
            writer.write(block)
            show(before + step.tally.tokens)
        files = {what: {"name": name, "bytes": size, "crc32": crc} for what, name, size, crc in writer.finish()}
        sync_folder(self._path)
        tally = step.tally
        self._tally.merge(tally.to_json())
        return {
            "pass": pass_number,
            "shard": shard,
            "rows": tally.rows,
            "tokens": tally.tokens,
            "files": files,
            "tally": tally.to_json(),
        }

    def _read_journal(self) -> None:
        """Read what an earlier run has completed, or begin a journal."""
        header, entries = self._journal.read()
        if header is None:
            self._journal.begin()
        else:
            compare_headers(self._path, self._header, header)
            # What follows a step that is not as it was written, or another than the next, is made again.
            self._entries = [
                entry
                for entry, _ in takewhile(self._is_intact, zip(entries, steps_of(self._store, self._options)))  # noqa: B905
            ]
            self._journal.keep(len(self._entries))
        for part in self._path.glob("*.part"):
            part.unlink()
        for entry in self._entries:
            self._tally.merge(entry["tally"])

    def _is_intact(self, written: tuple[JsonObject, tuple[int, int]]) -> bool:
        """Whether an entry of the journal is that of a step, and its files are as they were written."""
        entry, step = written
        if (entry.get("pass"), entry.get("shard")) != step:
            return False
        try:
            for what, named in entry["files"].items():
                if named["name"] != f"{_prefix(*step)}.{what}.npy":
                    return False
                verify_file(self._path, named)
        except InputError:
            return False
        return True

    def _read_finished(self) -> None:
        index = read_index(self._path, EXAMPLES_FORMAT)
        compare_headers(self._path, self._header, index)
        for entry in index["shards"]:
            for named in entry["files"].values():
                check_file(self._path, named)
        tallies: Any = index.get("tallies")
        if not isinstance(tallies, list) or len(tallies) != len(steps_of(self._store, self._options)):
            raise InputError(
                f"{self._path / INDEX}: tallies must have the counts of each pass over each shard; make it again"
            )
        for tally in tallies:
            self._tally.merge(tally)
        self._journal.remove()


def _prefix(pass_number: int, shard: int) -> str:
    """Return what the names of the files of a step begin with."""
    return f"{pass_number}-{shard:05}"
