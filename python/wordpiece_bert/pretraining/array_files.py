"""Arrays of one dimension that grow together, each in a ``.npy`` file of a folder: a shard, or the rows of one."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.atomic_file import sync_folder
from wordpiece_bert.tokenizer.corpus.npy_writer import NpyWriter

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt

    from wordpiece_bert._internal.safe_json import JsonObject


class ArrayFiles:
    """Writes arrays to the files ``<prefix>.<name>.npy``, which appear when all are complete. A context manager.

    Parameters
    ----------
    folder : Path
        The folder.
    prefix : str
        What the names of the files begin with.
    dtypes : mapping of str to dtype
        The types of the arrays by name. Arrays named ``…_offsets`` begin with a 0 that is not an offset of what
        `append` gets.
    """

    def __init__(self, folder: Path, prefix: str, dtypes: Mapping[str, npt.DTypeLike]) -> None:
        self._folder, self._prefix = folder, prefix
        self._files: dict[str, NpyWriter] = {}
        self._stack = ExitStack()
        with ExitStack() as stack:  # if one file fails, those before it are closed and removed
            for name, dtype in dtypes.items():
                file = stack.enter_context(NpyWriter(folder / array_file(prefix, name), (), dtype))
                file.begin()
                self._files[name] = file
                if name.endswith("_offsets"):
                    file.append(np.zeros(1, dtype))
            self._stack = stack.pop_all()

    def append(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Write the next elements; names without a file are left out.

        Raises
        ------
        OSError
            A file cannot be written.
        """
        for name, file in self._files.items():
            file.append(arrays[name])

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def length(self, name: str) -> int:
        """Return how many elements an array has so far; the first offset, 0, is not counted."""
        return self._files[name].shape[0] - name.endswith("_offsets")

    def finish(self) -> JsonObject:
        """Complete the files; return the name, size and checksum of each, as an index has them.

        Raises
        ------
        OSError
            A file cannot be written.
        """
        for file in self._files.values():
            file.commit()
        sync_folder(self._folder)
        self.close()
        return {
            name: {"name": array_file(self._prefix, name), "bytes": file.bytes, "crc32": f"{file.crc32:08x}"}
            for name, file in self._files.items()
        }

    def close(self) -> None:
        """Remove what is not complete."""
        self._stack.close()


def array_file(prefix: str, name: str) -> str:
    """Return the name of the file of an array."""
    return f"{prefix}.{name}.npy"


def remove_parts(folder: Path) -> None:
    """Remove the temporary files that a run that was killed has left. The caller holds the lock of the folder."""
    for part in folder.glob("*.part"):
        part.unlink()
