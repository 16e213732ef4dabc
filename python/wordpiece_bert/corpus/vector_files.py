"""Reads files of vectors, as `corpus.vectors` writes them: NumPy arrays memory-mapped, the others into memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert.corpus.parquet import import_pyarrow
from wordpiece_bert.corpus.vectors import COLUMN, FORMATS
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

__all__ = ["read_vectors"]


def read_vectors(path: Path) -> npt.NDArray[Any]:
    """Read the vectors of a file, [n, d]; its suffix is the format, one of `FORMATS`.

    A ``.npy`` file is memory-mapped, and may have any real dtype. The others have a column or field ``vector``.

    Raises
    ------
    InputError
        The file has another format, or no vectors of one width.
    OSError
        The file cannot be read.
    """
    kind = path.suffix.removeprefix(".")
    if kind not in FORMATS:
        message = f"{path}: vectors are read from files that end in {', '.join('.' + one for one in FORMATS)}"
        raise InputError(message)
    try:
        vectors = _READERS.get(kind, _from_arrow)(path)
    except (ValueError, KeyError, TypeError) as cause:
        message = f"{path}: is not a .{kind} file of vectors: {cause}"
        raise InputError(message) from cause
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
        message = f"{path}: has {vectors.dtype} of shape {list(vectors.shape)}, not vectors [n, d]"
        raise InputError(message)
    return vectors


def _from_npy(path: Path) -> npt.NDArray[Any]:
    array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


def _from_json_lines(path: Path) -> npt.NDArray[Any]:
    with path.open(encoding="utf-8") as lines:
        rows = [np.array(json.loads(line)[COLUMN], np.float32) for line in lines if not line.isspace()]
    return np.stack(rows) if rows else np.zeros((0, 0), np.float32)


def _from_arrow(path: Path) -> npt.NDArray[Any]:
    pyarrow = import_pyarrow(f"reading {path.suffix} files")
    if path.suffix == ".parquet":
        column = pyarrow.parquet.read_table(path, columns=[COLUMN]).column(COLUMN)
    else:
        opened = pyarrow.ipc.open_file if path.suffix == ".arrow" else pyarrow.ipc.open_stream
        with pyarrow.memory_map(str(path)) as source:
            column = opened(source).read_all().column(COLUMN)
    if column.null_count:
        message = f"the column {COLUMN!r} has nulls"
        raise ValueError(message)
    if len(column) == 0:
        return np.zeros((0, max(0, getattr(column.type, "list_size", 0))), np.float32)
    flat = np.concatenate([chunk.flatten().to_numpy(zero_copy_only=False) for chunk in column.chunks])
    return flat.reshape(len(column), -1)


_READERS = {"npy": _from_npy, "jsonl": _from_json_lines}
