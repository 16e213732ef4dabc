"""Examples as the shards that mosaicml-streaming reads."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from wordpiece_bert import _core
from wordpiece_bert._internal.atomic_file import AtomicFile, sync_folder, write_text
from wordpiece_bert._internal.safe_json import read_object
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.index import MAX_INDEX_BYTES, check_file, is_intact
from wordpiece_bert.pretraining.sinks.row_sink import FolderSink

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert._internal.safe_json import JsonObject
    from wordpiece_bert.pretraining.journal import Journal

#: The most bytes of a shard, unless one row has more.
SHARD_BYTES = 1 << 26


class MdsFolder(FolderSink):
    """The shards of MDS, each of which is a part. The journal stays beside them, with the counts of rows."""

    def finished(self, journal: Journal) -> list[JsonObject] | None:
        """Whether the index is there; its shards must have their sizes."""
        if not self.index.exists():
            return None
        header, entries = journal.read()
        if header != journal.header:
            raise InputError(f"{self.path}: has a data set already; choose another output, or delete it")
        index = read_object(self.index, InputError, max_bytes=MAX_INDEX_BYTES)
        shards = index.get("shards")
        for number, shard in enumerate(shards if isinstance(shards, list) else [None]):
            data = shard.get("raw_data") if isinstance(shard, dict) else None
            data = data if isinstance(data, dict) else {}
            if data.get("basename") != _shard_name(number) or not isinstance(data.get("bytes"), int):
                raise InputError(
                    f"{self.index}: shard {number} is not as it was written; delete the folder, and make it again"
                )
            check_file(self.path, {"name": data["basename"], "bytes": data["bytes"]})
        return [entry["tally"] for entry in entries if "tally" in entry]

    def part_is_intact(self, number: int, part: JsonObject) -> bool:
        """Whether the shard is as it was written."""
        name = _shard_name(number)
        return is_intact(self.path, {"name": name, "bytes": part["bytes"], "crc32": f"{part['crc']:08x}"}, name)

    def begin(self, parts: Sequence[JsonObject]) -> None:
        """Begin with the first shard, or with the one after these."""
        super().begin(parts)
        self._shards = [(_shard_name(n), part["samples"], part["bytes"]) for n, part in enumerate(parts)]
        self._rows = sum(part["samples"] for part in parts)
        self._encoder = _core.MdsEncoder(
            narrow_ids=self.schema.narrow_ids,
            pair_label=self.schema.label,
            masks=self.schema.masked,
            packed=self.schema.packed,
            size_limit=SHARD_BYTES,
        )

    def write(self, rows: _core.ExampleBlock) -> list[JsonObject]:
        """Write the shards that rows complete."""
        parts = [self._write_shard(samples, content) for samples, content in self._encoder.encode(rows)]
        if parts:
            sync_folder(self.path)
        return parts

    def _write_shard(self, samples: int, content: Sequence[npt.NDArray[np.uint8]]) -> JsonObject:
        name, size, crc = _shard_name(len(self._shards)), 0, 0
        with AtomicFile(self.path / name) as output:
            output.begin()
            with output.naming_errors():
                for piece in content:
                    size += output.file.write(piece.data)
                    crc = zlib.crc32(piece.data, crc)
            output.commit()
        self._rows += samples
        self._shards.append((name, samples, size))
        return {"rows": self._rows, "samples": samples, "bytes": size, "crc": crc}

    def finish(self, journal: Journal, tallies: list[JsonObject], report: JsonObject) -> None:
        """Write the last shard and the index."""
        del journal, tallies, report  # the journal has the counts, and stays
        if (last := self._encoder.finish()) is not None:
            self._write_shard(*last)
        write_text(self.index, self._encoder.index(self._shards))
        sync_folder(self.path)


def _shard_name(number: int) -> str:
    return f"shard.{number:05}.mds"
