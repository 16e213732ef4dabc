"""Writing token stores: shard by shard, so that a run that was killed resumes after its last complete one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from wordpiece_bert._internal.atomic_file import sync_folder, write_text
from wordpiece_bert.errors import InputError
from wordpiece_bert.pretraining.array_files import ArrayFiles, array_file, remove_parts
from wordpiece_bert.pretraining.index import INDEX, JOURNAL, is_intact, read_index
from wordpiece_bert.pretraining.journal import Journal, compare_headers
from wordpiece_bert.pretraining.store import ARRAYS, TOKENS_FORMAT

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from wordpiece_bert import _core
    from wordpiece_bert._internal.safe_json import JsonObject
    from wordpiece_bert.tokenizer.tokenizer import Tokenizer


class StoreWriter:
    """Writes what a builder makes of texts to the folder of a token store. A context manager.

    The caller keeps other writers out of the folder.

    Parameters
    ----------
    folder : Path
        The folder.
    builder : _core.TokenStoreBuilder
        What makes the arrays.
    tokenizer : Tokenizer
        The tokenizer of the builder.
    fingerprint : str
        The fingerprint of the tokenizer.
    options : dict
        What the index records of the call.

    Attributes
    ----------
    finished : bool
        Whether an earlier run has completed the store.
    first_input : int
        The index of the first file whose texts are to be added.

    Raises
    ------
    InputError
        The folder has something else, or a store that was begun by another call.
    """

    def __init__(
        self,
        folder: Path,
        builder: _core.TokenStoreBuilder,
        tokenizer: Tokenizer,
        fingerprint: str,
        options: JsonObject,
    ) -> None:
        self._folder, self._builder = folder, builder
        header = {
            "format": TOKENS_FORMAT,
            "version": 1,
            "dtype": builder.dtype,
            "tokenizer": fingerprint,
            "vocab_size": len(tokenizer),
            "options": dict(sorted(options.items())),
        }
        self._journal = Journal(folder / JOURNAL, header)
        self._open: ArrayFiles | None = None
        self._shards: list[JsonObject] = []
        self.first_input = 0
        self.finished = (folder / INDEX).exists()
        if self.finished:
            compare_headers(folder, self._journal.header, read_index(folder, TOKENS_FORMAT))
        else:
            entries = self._journal.resume(folder, self._intact)
            self._shards = [entry["shard"] for entry in entries]
            if entries:
                builder.resume(entries[-1]["next"])
                self.first_input = entries[-1]["next"]["input"]
        remove_parts(folder)

    def _intact(self, entries: list[JsonObject]) -> int:
        """Return how many entries are about shards that are on the disk as they were written."""

        def holds(number: int, files: Any) -> bool:
            return all(is_intact(self._folder, files.get(name), array_file(f"{number:05}", name)) for name in ARRAYS)

        return next((n for n, entry in enumerate(entries) if not holds(n, entry["shard"]["files"])), len(entries))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._open is not None:
            self._open.close()

    @property
    def counts(self) -> dict[str, int]:
        """What was counted so far."""
        return self._builder.counts

    def kept(self) -> str:
        """Return what the next run of the same call finds, for a note about an interruption."""
        count = len(self._shards)
        if not count:
            return f"no shard of {self._folder} was complete yet"
        return (
            f"{count:,} {'shard is' if count == 1 else 'shards are'} kept in {self._folder}; run it again for the rest"
        )

    def add(
        self,
        block: _core.TextBlock,
        *,
        input_index: int | None = None,
        ids: npt.NDArray[np.uint64] | None = None,
    ) -> None:
        """Add the texts of a block, in the order of the files.

        Parameters
        ----------
        block : _core.TextBlock
            The texts, of files from `first_input` on.
        input_index : int, optional
            The index of the file, for a block that was made of a column.
        ids : ndarray of uint64, optional
            The ids of the documents.

        Raises
        ------
        InputError
            A text cannot be tokenized, or there are more or fewer ids than texts.
        OSError
            A file cannot be written.
        """
        if ids is not None and len(ids) != len(block):
            raise InputError(f"there are {len(ids):,} document ids for {len(block):,} texts: give each text one")
        for part in self._builder.add(block, input_index=input_index, ids=ids):
            self._write(part)

    def _write(self, part: dict[str, Any]) -> None:
        """Write what a shard gets; complete it if that was the last of it."""
        position = part.pop("next")
        if self._open is None:
            dtypes: dict[str, npt.DTypeLike] = dict.fromkeys(ARRAYS, np.int64)
            dtypes |= {"ids": self._builder.dtype, "document_ids": np.uint64}
            self._open = ArrayFiles(self._folder, f"{len(self._shards):05}", dtypes)
        self._open.append(part)
        if position is None:
            return
        lengths = (self._open.length(name) for name in ("ids", "sentence_offsets", "document_ids"))
        shard: JsonObject = dict(zip(("tokens", "sentences", "documents"), lengths, strict=True))
        shard["files"] = self._open.finish()
        self._open = None
        self._journal.append({"shard": shard, "next": position})
        self._shards.append(shard)

    def finish(self) -> None:
        """Complete the store: its last shard, then the index.

        Raises
        ------
        InputError
            No document has a token.
        OSError
            A file cannot be written.
        """
        for part in self._builder.finish():
            self._write(part)
        index = {**self._journal.header, "counts": self._builder.counts, "shards": self._shards}
        write_text(self._folder / INDEX, json.dumps(index, indent=2, ensure_ascii=False) + "\n")
        sync_folder(self._folder)
        self._journal.remove()
