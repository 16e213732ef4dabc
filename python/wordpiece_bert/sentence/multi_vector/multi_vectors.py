"""The token vectors of many texts in one array, in memory or in files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, cast, overload

import numpy as np

from wordpiece_bert._internal.arrays import as_float32, as_numbers, as_whole_numbers
from wordpiece_bert._internal.atomic_folder import written_folder
from wordpiece_bert._internal.checks import check_instance, iterates
from wordpiece_bert._internal.notebook import table_html
from wordpiece_bert._internal.ordinary_file import require_ordinary_file
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array

#: What the arguments must be, in messages.
_ONE = "an array [tokens, d]"
_KINDS = "MultiVectors, a list of arrays [tokens, d], or one array [tokens, d] or [n, tokens, d]"

_VECTORS, _OFFSETS = "vectors.npy", "offsets.npy"

#: How many texts are shown in a notebook.
_ROWS = 10

#: The most bytes of vectors that are written at once.
_BLOCK = 1 << 24


class MultiVectors(Sequence["Array"]):
    """The vectors of the tokens of texts: a sequence of arrays [tokens, d] that share one array.

    A whole number as index gives the vectors of one text; a slice, an array of numbers or of booleans gives the vectors
    of as many. It never changes.

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

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.sentence import MultiVectors
    >>> x = MultiVectors.from_list([np.ones((3, 4)), np.zeros((2, 4))])
    >>> x, x[1].shape
    (MultiVectors(2 texts, 5 vectors of 4), (2, 4))
    >>> x.save("vectors")
    >>> len(MultiVectors.load("vectors"))
    2
    """

    __slots__ = ("_is_finite", "offsets", "vectors")

    vectors: npt.NDArray[np.float32]
    offsets: npt.NDArray[np.int64]
    #: Whether `parts.require_finite` has read all numbers.
    _is_finite: bool

    def __init__(self, vectors: npt.ArrayLike, offsets: npt.ArrayLike) -> None:
        numbers = as_numbers("vectors", vectors, "an array [T, d]")
        rows = as_float32("vectors", vectors if isinstance(vectors, np.memmap) else numbers)  # a map stays one
        ends = as_whole_numbers("offsets", offsets)
        if rows.ndim != 2 or ends.ndim != 1 or len(ends) < 1 or rows.shape[1] < 1:
            raise InputError(
                f"vectors must have shape [T, d] and offsets [n + 1], not {list(rows.shape)} and {list(ends.shape)}"
            )
        if ends[0] != 0 or ends[-1] != len(rows) or (np.diff(ends) < 0).any():
            raise InputError(f"offsets must rise from 0 to {len(rows)}, the number of vectors")
        for name, array in (("vectors", rows.view()), ("offsets", ends.view())):
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        object.__setattr__(self, "_is_finite", False)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"MultiVectors never changes: {name} cannot be set")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (np.asarray(self.vectors), self.offsets)

    @classmethod
    def from_list(cls, arrays: Iterable[npt.ArrayLike]) -> MultiVectors:
        """Join the vectors of texts, each [tokens, d].

        Parameters
        ----------
        arrays : iterable of array_like
            The vectors of each text; at least one text.

        Returns
        -------
        MultiVectors
            The vectors.
        """
        return _joined("arrays", arrays)

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
        with written_folder(folder) as output:
            output.write(_VECTORS, _npy(self.vectors))
            output.write(_OFFSETS, _npy(self.offsets))

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, mmap: bool = True) -> MultiVectors:
        """Read a folder that `save` wrote.

        Parameters
        ----------
        folder : str or os.PathLike
            The folder.
        mmap : bool, default True
            Whether the vectors stay in their file, and are read where they are used.

        Returns
        -------
        MultiVectors
            The vectors.

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
            raise InputError(f"{home}: cannot be read as token vectors: {cause}") from cause
        if kinds != (np.float32, np.int64):
            raise InputError(f"{home}: the files have {kinds[0]} and {kinds[1]}, expected float32 and int64")
        try:
            return cls(vectors, offsets)
        except InputError as cause:
            raise InputError(f"{home}: {cause}") from cause

    def __repr__(self) -> str:
        tokens, width = self.vectors.shape
        return f"MultiVectors({len(self)} texts, {tokens} vectors of {width})"

    def _repr_html_(self) -> str:
        rows = [(row, int(count)) for row, count in enumerate(self.lengths[:_ROWS].tolist())]
        caption = repr(self) + f"; the first {_ROWS} texts" * (len(self) > _ROWS)
        return table_html(caption, ("text", "vectors"), rows)


def as_multi_vectors(name: str, vectors: object, mask: object = None) -> MultiVectors:
    """Return an argument as the token vectors of texts, those that count.

    Parameters
    ----------
    name : str
        The name of the argument, for messages.
    vectors : MultiVectors, list of array_like, or array_like
        An array [tokens, d] for each text; one such array counts as one text, and an array [n, tokens, d] as n. In an
        array, without a mask, rows of zeros are padding.
    mask : array_like or list of array_like, optional
        Which tokens count, as booleans or 0 and 1: [n, tokens], or one array [tokens] for each text.

    Raises
    ------
    InputError
        It is none of these.
    """
    if isinstance(vectors, MultiVectors):
        return vectors if mask is None else _masked(name, vectors, mask)
    if isinstance(vectors, str | bytes | Mapping | AbstractSet) or not (hasattr(vectors, "ndim") or iterates(vectors)):
        raise InputError(f"{name} must be {_KINDS}, not {type(vectors).__name__}")
    if not hasattr(vectors, "ndim") or (vectors.ndim == 1 and getattr(vectors, "dtype", None) == np.dtype(object)):
        joined = _joined(name, cast("Iterable[npt.ArrayLike]", vectors))
        return joined if mask is None else _masked(name, joined, mask)
    array = as_float32(name, as_numbers(name, vectors, _KINDS))
    if array.ndim not in (2, 3) or not array.shape[-1]:
        raise InputError(f"{name} must be {_KINDS}, not of shape {list(array.shape)}")
    array = array[None] if array.ndim == 2 else array  # [n, tokens, d]
    rows = array.reshape(-1, array.shape[-1])
    joined = MultiVectors(rows, np.arange(len(array) + 1) * array.shape[1])
    return _counted(joined, np.asarray(rows.any(axis=-1))) if mask is None else _masked(name, joined, mask)


def _counted(vectors: MultiVectors, counts: npt.NDArray[np.bool_]) -> MultiVectors:
    """Return the vectors for which an array [T] is true."""
    if counts.all():
        return vectors
    before = np.concatenate([[0], np.cumsum(counts)])
    return MultiVectors(vectors.vectors[counts], before[vectors.offsets])


def _joined(name: str, arrays: Iterable[npt.ArrayLike]) -> MultiVectors:
    """Join the vectors of texts, each [tokens, d]."""
    check_instance(name, arrays, Iterable, "a list of arrays [tokens, d]")
    rows = [as_float32(f"{name}[{i}]", as_numbers(f"{name}[{i}]", x, _ONE)) for i, x in enumerate(arrays)]
    if not rows:
        raise InputError(f"{name} has no texts: pass at least one array [tokens, d]")
    for i, row in enumerate(rows):
        if row.ndim != 2 or row.shape[1] != rows[0].shape[-1]:
            raise InputError(f"{name}[{i}] has the shape {list(row.shape)}: each must be {_ONE}, all of one width d")
    return MultiVectors(np.concatenate(rows), np.cumsum([0, *map(len, rows)]))


def _masked(name: str, vectors: MultiVectors, mask: object) -> MultiVectors:
    """Return only the vectors that a mask counts.

    Parameters
    ----------
    name : str
        The name of the argument, for messages.
    vectors : MultiVectors
        The vectors of n texts.
    mask : array_like or list of array_like
        Booleans, or 0 and 1: an array [n, tokens], the longest text's number of them, or one array [tokens] for each
        text; for one text, its array [tokens].

    Raises
    ------
    InputError
        It has other numbers, or another shape.
    """
    what = f"the mask of {name}"
    if not iterates(mask):
        raise InputError(f"{what} must be an array [n, tokens] or a list of arrays [tokens], not {type(mask).__name__}")
    rows = [as_numbers(what, row) for row in mask]
    if rows and all(row.ndim == 0 for row in rows):
        rows = [np.array(rows)]
    lengths = vectors.lengths.tolist()
    longest = max(lengths, default=0)
    found = [row.shape for row in rows]
    if len(found) != len(lengths) or not all(
        shape in ((length,), (longest,)) for shape, length in zip(found, lengths, strict=True)
    ):
        raise InputError(f"{what} has rows of shapes {found[:4]}, but the texts have {lengths[:4]} vectors")
    counts = np.concatenate([np.zeros(0), *(row[:length] for row, length in zip(rows, lengths, strict=True))])
    if not np.isin(counts, (0, 1)).all():
        raise InputError(f"{what} must have booleans, or 0 and 1, not {counts[~np.isin(counts, (0, 1))][0]}")
    return _counted(vectors, counts != 0)


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
