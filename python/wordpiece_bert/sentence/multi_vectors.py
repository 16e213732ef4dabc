"""The token vectors of many texts in one array, in memory or in files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, cast, overload

import numpy as np

from wordpiece_bert._internal.atomic_folder import AtomicFolder
from wordpiece_bert._internal.notebook import table_html
from wordpiece_bert._internal.ordinary_file import require_ordinary_file
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array

__all__ = ["MultiVectors", "as_multi_vectors"]

_VECTORS, _OFFSETS = "vectors.npy", "offsets.npy"

#: How many texts are shown in a notebook.
_ROWS = 10

#: The most bytes of vectors that are written at once.
_BLOCK = 1 << 24


class MultiVectors(Sequence["Array"]):
    """The vectors of the tokens of texts: a sequence of arrays [tokens, d] that share one array.

    A whole number as index gives the vectors of one text; a slice, an array of numbers or of booleans gives those of as
    many. It never changes.

    Parameters
    ----------
    vectors : array_like
        The vectors of all texts, one text after the other, float32 [T, d].
    offsets : array_like
        Text i has the vectors ``offsets[i]`` to ``offsets[i + 1]``, int64 [n + 1].

    Attributes
    ----------
    vectors, offsets : ndarray
        The arrays, read-only.

    Raises
    ------
    InputError
        The arrays do not fit together.
    """

    __slots__ = ("offsets", "vectors")

    vectors: npt.NDArray[np.float32]
    offsets: npt.NDArray[np.int64]

    def __init__(self, vectors: npt.ArrayLike, offsets: npt.ArrayLike) -> None:
        rows = np.asanyarray(vectors)
        if rows.dtype != np.float32:
            rows = rows.astype(np.float32)
        ends = np.asarray(offsets, np.int64)
        if rows.ndim != 2 or ends.ndim != 1 or len(ends) < 1 or rows.shape[1] < 1:
            message = (
                f"vectors must have shape [T, d] and offsets [n + 1], not {list(rows.shape)} and {list(ends.shape)}"
            )
            raise InputError(message)
        if ends[0] != 0 or ends[-1] != len(rows) or (np.diff(ends) < 0).any():
            message = f"offsets must rise from 0 to {len(rows)}, the number of vectors"
            raise InputError(message)
        for name, array in (("vectors", rows.view()), ("offsets", ends.view())):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __setattr__(self, name: str, value: object) -> None:
        message = f"MultiVectors never changes: {name} cannot be set"
        raise AttributeError(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (np.asarray(self.vectors), self.offsets)

    @classmethod
    def from_list(cls, arrays: Iterable[npt.ArrayLike]) -> MultiVectors:
        """Join the vectors of texts, each [tokens, d].

        Parameters
        ----------
        arrays : iterable of array_like
            The vectors of each text; at least one text.
        """
        rows = [np.asarray(array, np.float32) for array in arrays]
        wrong = next((i for i, row in enumerate(rows) if row.ndim != 2 or row.shape[1] != rows[0].shape[-1]), None)
        if not rows or wrong is not None:
            what = (
                "no texts"
                if not rows
                else f"texts[{wrong}] has vectors of shape {list(rows[cast('int', wrong)].shape)}"
            )
            message = f"{what}: each must be an array [tokens, d], all of one width d"
            raise InputError(message)
        return cls(np.concatenate(rows), np.concatenate([[0], np.cumsum([len(row) for row in rows])]))

    @property
    def width(self) -> int:
        """d, the width of a vector."""
        return int(self.vectors.shape[1])

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The number of vectors of each text, [n]."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Array]:
        return (self[row] for row in range(len(self)))

    @overload
    def __getitem__(self, texts: SupportsIndex) -> Array: ...  # type: ignore[overload-overlap]  # arrays are both

    @overload
    def __getitem__(self, texts: slice | npt.NDArray[Any] | list[int]) -> MultiVectors: ...

    def __getitem__(self, texts: SupportsIndex | slice | npt.NDArray[Any] | list[int]) -> Array | MultiVectors:
        if isinstance(texts, SupportsIndex) and not isinstance(texts, np.ndarray):
            row = range(len(self))[texts.__index__()]  # an IndexError beyond the last text
            return np.asarray(self.vectors[self.offsets[row] : self.offsets[row + 1]])
        return self._selected(np.arange(len(self))[texts])

    def _selected(self, chosen: npt.NDArray[np.intp]) -> MultiVectors:
        """Return the vectors of some texts."""
        if len(chosen) and (np.diff(chosen) == 1).all():  # consecutive texts: a view of the same memory
            offsets = self.offsets[chosen[0] : chosen[-1] + 2]
            return MultiVectors(self.vectors[offsets[0] : offsets[-1]], offsets - offsets[0])
        lengths = self.lengths[chosen]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.arange(ends[-1]) + np.repeat(self.offsets[chosen] - ends[:-1], lengths)
        return MultiVectors(self.vectors[rows], ends)

    def __eq__(self, other: object) -> bool:
        """Whether the numbers and their division into texts are equal."""
        if not isinstance(other, MultiVectors):
            return NotImplemented
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.vectors, other.vectors)

    __hash__ = None  # type: ignore[assignment]

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write ``vectors.npy`` and ``offsets.npy`` into a folder, which `load` reads; both appear when complete.

        Parameters
        ----------
        folder : str or os.PathLike
            The folder; it is created if need be.

        Raises
        ------
        InputError
            There is a file of that name.
        OSError
            A file cannot be written; then nothing has changed.
        """
        with AtomicFolder(Path(folder)) as output:
            output.begin()
            output.write(_VECTORS, _npy(self.vectors))
            output.write(_OFFSETS, _npy(self.offsets))
            output.commit()

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, mmap: bool = True) -> MultiVectors:
        """Read a folder that `save` wrote.

        Parameters
        ----------
        folder : str or os.PathLike
            The folder.
        mmap : bool, default True
            Whether the vectors stay in their file, and are read where they are used.

        Raises
        ------
        InputError
            The folder does not have these files, or they do not fit together.
        """
        home = Path(folder)
        try:
            for name in (_VECTORS, _OFFSETS):
                require_ordinary_file(home / name)
            vectors = np.load(home / _VECTORS, mmap_mode="r" if mmap else None, allow_pickle=False)
            offsets = np.load(home / _OFFSETS, allow_pickle=False)
            kinds = vectors.dtype, offsets.dtype
        except Exception as cause:  # NumPy raises errors of any class for a damaged file
            message = f"{home}: cannot be read as token vectors: {cause}"
            raise InputError(message) from cause
        if kinds != (np.float32, np.int64):
            message = f"{home}: the files have {kinds[0]} and {kinds[1]}, expected float32 and int64"
            raise InputError(message)
        try:
            return cls(vectors, offsets)
        except InputError as cause:
            message = f"{home}: {cause}"
            raise InputError(message) from cause

    def __repr__(self) -> str:
        tokens, width = self.vectors.shape
        return f"MultiVectors({len(self)} texts, {tokens} vectors of {width})"

    def _repr_html_(self) -> str:
        rows = [(row, int(count)) for row, count in enumerate(self.lengths[:_ROWS].tolist())]
        caption = repr(self) + f"; the first {_ROWS} texts" * (len(self) > _ROWS)
        return table_html(caption, ("text", "vectors"), rows)


def as_multi_vectors(name: str, vectors: object) -> MultiVectors:
    """Return an argument as the token vectors of texts.

    Parameters
    ----------
    name : str
        The name of the argument, for messages.
    vectors : MultiVectors, list of array_like, or array_like
        An array [tokens, d] for each text; one such array counts as one text, and an array [n, tokens, d] as n.

    Raises
    ------
    InputError
        It is none of these.
    """
    if isinstance(vectors, MultiVectors):
        return vectors
    if hasattr(vectors, "ndim") or not isinstance(vectors, Iterable):
        array = np.asarray(vectors)
        if array.ndim not in (2, 3) or not np.issubdtype(array.dtype, np.number):
            message = f"{name} must be MultiVectors, a list of arrays [tokens, d], or one such array"
            raise InputError(message)
        array = array[None] if array.ndim == 2 else array
        return MultiVectors(array.reshape(-1, array.shape[-1]), np.arange(len(array) + 1) * array.shape[1])
    try:
        return MultiVectors.from_list(vectors)
    except (InputError, ValueError, TypeError) as cause:
        message = f"{name}: {cause}"
        raise InputError(message) from cause


def _npy(array: npt.NDArray[Any]) -> Iterator[bytes]:
    """Yield the bytes of an .npy file, a block of rows at a time."""
    header = _Collected()
    np.lib.format.write_array_header_1_0(
        cast("Any", header), {"descr": array.dtype.newbyteorder("<").str, "fortran_order": False, "shape": array.shape}
    )
    yield bytes(header.data)
    step = max(1, _BLOCK // max(1, array[:1].nbytes))
    for start in range(0, len(array), step):
        yield np.ascontiguousarray(array[start : start + step], array.dtype.newbyteorder("<")).tobytes()


class _Collected:
    """A file that keeps what is written to it."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: bytes) -> int:
        self.data += data
        return len(data)
