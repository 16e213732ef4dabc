"""Example folders: ``.npy`` files of each pass over each shard, to be memory-mapped, and an index."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.atomic_file import sync_folder, write_text
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.array_files import ArrayFiles, array_file
from wordpiece_bert.pretraining.dataset import EXAMPLES_FORMAT
from wordpiece_bert.pretraining.index import check_file, is_intact, read_index
from wordpiece_bert.pretraining.journal import compare_headers
from wordpiece_bert.pretraining.sinks.row_sink import FolderSink

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from wordpiece_bert import _core
    from wordpiece_bert._internal.safe_json import JsonObject
    from wordpiece_bert.pretraining.journal import Journal

# What offsets count.
_COUNTED = {"row_offsets": "input_ids", "masked_offsets": "masked_ids", "sequence_offsets": "sequence_lengths"}


class ArrayFolder(FolderSink):
    """The folder that `PretrainingDataset` reads. The rows of each pass over each shard are a part."""

    _files: ArrayFiles | None = None

    def header(self, header: JsonObject, name: str) -> JsonObject:
        """Return the beginning of the index, which names no format of an output."""
        del name
        return header

    def finished(self, journal: Journal) -> list[JsonObject] | None:
        """Whether the index is there; its files must have their sizes."""
        if not self.index.exists():
            return None
        index = read_index(self.path, EXAMPLES_FORMAT)
        compare_headers(self.path, journal.header, index)
        for entry in index["shards"]:
            for named in entry["files"].values():
                check_file(self.path, named)
        tallies: Any = index.get("tallies")
        if not isinstance(tallies, list):
            raise InputError(f"{self.index}: tallies must have the counts of each pass over each shard; make it again")
        journal.remove()
        return tallies

    def part_is_intact(self, number: int, part: JsonObject) -> bool:
        """Whether the part has the files of its pass over its shard, and they are as they were written."""
        step = (part.get("pass"), part.get("shard"))
        if number >= len(self.steps) or step != self.steps[number]:
            return False
        prefix = _prefix(*self.steps[number])
        return all(is_intact(self.path, file, array_file(prefix, name)) for name, file in part["files"].items())

    def begin(self, parts: Sequence[JsonObject]) -> None:
        """Begin the folder, or resume after these parts."""
        super().begin(parts)
        self._entries = [{name: value for name, value in part.items() if name != "tally"} for part in parts]

    def begin_step(self, pass_number: int, shard: int) -> None:
        """Begin the files of a pass over a shard."""
        super().begin_step(pass_number, shard)
        ids, places = self.schema.ids, np.uint16 if self.schema.row_length < 1 << 16 else np.uint32
        dtypes: dict[str, npt.DTypeLike] = {"input_ids": ids, "row_offsets": np.int64, "second_starts": places}
        if self.schema.label is not None:
            dtypes["pair_labels"] = np.uint8
        if self.schema.masked:
            dtypes |= {"masked_offsets": np.int64, "masked_positions": places, "masked_ids": ids}
        if self.schema.packed:
            dtypes |= {"sequence_offsets": np.int64, "sequence_lengths": places}
        self._files = ArrayFiles(self.path, _prefix(*self.step), dtypes)

    def write(self, rows: _core.ExampleBlock) -> list[JsonObject]:
        """Write rows; they are not a part before `commit`."""
        assert self._files is not None
        arrays = rows.stored(narrow_ids=self.schema.narrow_ids, narrow_places=self.schema.row_length < 1 << 16)
        for name, counted in _COUNTED.items():
            if name in self._files:
                arrays[name] += self._files.length(counted)
        self._files.append(arrays)
        return []

    def commit(self) -> JsonObject | None:
        """Complete the files of the pass over the shard."""
        assert self._files is not None
        pass_number, shard = self.step
        counts = {"rows": self._files.length("row_offsets"), "tokens": self._files.length("input_ids")}
        entry = {"pass": pass_number, "shard": shard, **counts, "files": self._files.finish()}
        self._entries.append(entry)
        return entry

    def finish(self, journal: Journal, tallies: list[JsonObject], report: JsonObject) -> None:
        """Write the index."""
        index = {**journal.header, "report": report, "tallies": tallies, "shards": self._entries}
        write_text(self.index, json.dumps(index, indent=1) + "\n")
        sync_folder(self.path)
        journal.remove()

    def __exit__(self, *_: object) -> None:
        if self._files is not None:
            self._files.close()
        super().__exit__()


def _prefix(pass_number: int, shard: int) -> str:
    """Return what the names of the files of a step begin with."""
    return f"{pass_number}-{shard:05}"
