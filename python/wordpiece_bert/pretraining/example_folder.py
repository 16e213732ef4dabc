"""Example folders: ``.npy`` files of each pass over each shard, and an index that is written last."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

from wordpiece_bert import _core
from wordpiece_bert._internal.atomic_file import sync_folder, write_text
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.dataset import EXAMPLES_FORMAT, PAIR_LABELS
from wordpiece_bert.pretraining.index import INDEX, JOURNAL, check_file, read_index
from wordpiece_bert.pretraining.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wordpiece_bert._internal.safe_json import JsonObject
    from wordpiece_bert.pretraining.row_options import RowOptions
    from wordpiece_bert.pretraining.store import TokenStore

__all__ = ["ExampleFolder"]


class ExampleFolder:
    """Builds an example folder. A run that was killed goes on after the last pass over a shard that it completed.

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
        self._header = {
            "format": EXAMPLES_FORMAT,
            "version": 1,
            "dtype": store.dtype.name,
            "tokenizer": store.fingerprint,
            "vocab_size": store.vocab_size,
            "pad_token_id": options.pad_id,
            "objective": options.objective,
            "row_length": options.row_length,
            "options": options.recorded(),
            "store": _identity(store),
        }
        self._tally = Tally(options.row_length)
        self._entries: list[JsonObject] = []

    def build(self, threads: int | None, show: Callable[[int], None]) -> Tally:
        """Write what is missing; return the counts of all rows.

        Raises
        ------
        InputError
            The folder holds something else, or examples of other arguments.
        OSError
            A file cannot be written.
        """
        if (self._path / INDEX).exists():
            self._read_finished()
            return self._tally
        self._path.mkdir(parents=True, exist_ok=True)
        journal = self._path / JOURNAL
        self._read_journal(journal)
        with journal.open("ab") as file:
            for number, pass_number, shard in self._steps()[len(self._entries) :]:
                entry = self._write(pass_number, shard, threads, show)
                file.write(json.dumps(entry).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
                self._entries.append(entry)
                assert len(self._entries) == number + 1
        shards = [{name: value for name, value in entry.items() if name != "tally"} for entry in self._entries]
        tallies = [entry["tally"] for entry in self._entries]
        index = {**self._header, "report": self._report(), "tallies": tallies, "shards": shards}
        write_text(self._path / INDEX, json.dumps(index, indent=1) + "\n")
        sync_folder(self._path)
        journal.unlink(missing_ok=True)
        return self._tally

    def _steps(self) -> list[tuple[int, int, int]]:
        shards = range(len(self._store.shards))
        steps = [(pass_number, shard) for pass_number in range(self._options.dupe_factor) for shard in shards]
        return [(number, *step) for number, step in enumerate(steps)]

    def _report(self) -> JsonObject:
        store = self._store
        fields = {"documents": store.documents, "documents_empty": store.documents_empty, "bytes": store.bytes}
        return {**self._tally.report(self._options), **fields}

    def _write(self, pass_number: int, shard: int, threads: int | None, show: Callable[[int], None]) -> JsonObject:
        options = self._options
        builder = options.builder(self._store.shards[shard], pass_number, threads)
        writer = _core.NpyExampleWriter(
            str(self._path),
            f"{pass_number}-{shard:05}",
            narrow_ids=self._store.dtype.itemsize == 2,
            narrow_places=options.narrow_places,
            pairs=options.objective in PAIR_LABELS,
            masks=options.masking is not None,
            packed=options.packing is not None,
        )
        tally = Tally(options.row_length)
        before = self._tally.tokens
        while (block := builder.next_block()) is not None:
            writer.write(block)
            tally.add(block)
            show(before + tally.tokens)
        tally.add_counts(builder.counts)
        files = {what: {"name": name, "bytes": size, "crc32": crc} for what, name, size, crc in writer.finish()}
        sync_folder(self._path)
        self._tally.merge(tally.to_json())
        return {
            "pass": pass_number,
            "shard": shard,
            "rows": tally.rows,
            "tokens": tally.tokens,
            "files": files,
            "tally": tally.to_json(),
        }

    def _read_journal(self, journal: Path) -> None:
        """Read what an earlier run has completed, or begin a journal."""
        lines = journal.read_bytes().splitlines(keepends=True) if journal.exists() else []
        header = json.dumps(self._header).encode() + b"\n"
        whole = 0
        if lines and lines[0].endswith(b"\n"):
            self._compare(_parsed(lines[0]) or {})
            whole = len(lines[0])
            for line in lines[1:]:
                entry = _parsed(line)
                if entry is None:  # a run that was killed has written a part of it
                    break
                whole += len(line)
                self._tally.merge(entry["tally"])
                self._entries.append(entry)
            with journal.open("r+b") as file:
                file.truncate(whole)
        else:
            with journal.open("wb") as file:
                file.write(header)
                file.flush()
                os.fsync(file.fileno())
        for part in self._path.glob("*.npy.part"):
            part.unlink()
        for entry in self._entries:
            for named in entry["files"].values():
                check_file(self._path, named)

    def _read_finished(self) -> None:
        index = read_index(self._path, EXAMPLES_FORMAT)
        self._compare(index)
        for entry in index["shards"]:
            for named in entry["files"].values():
                check_file(self._path, named)
        for tally in index["tallies"]:
            self._tally.merge(tally)
        (self._path / JOURNAL).unlink(missing_ok=True)

    def _compare(self, found: JsonObject) -> None:
        """Check that the folder was begun by the same call."""
        for name, value in json.loads(json.dumps(self._header)).items():
            if found.get(name) == value:
                continue
            what = name
            if name == "options" and isinstance(found.get(name), dict):
                what = next(one for one in value if found[name].get(one) != value[one])
            elif name == "store":
                what = "token store"
            message = (
                f"{self._path}: has examples that were begun with another {what}; choose another output, or delete it"
            )
            raise InputError(message)


def _parsed(line: bytes) -> JsonObject | None:
    if not line.endswith(b"\n"):
        return None
    try:
        content: Any = json.loads(line)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def _identity(store: TokenStore) -> JsonObject:
    """Return what distinguishes a store from others, wherever it is: its counts and a hash of all checksums."""
    checksums = [[file["bytes"], file["crc32"]] for file in store._files()]
    digest = hashlib.sha256(json.dumps(checksums).encode()).hexdigest()
    return {"documents": store.documents, "tokens": store.tokens, "sha256": digest}
