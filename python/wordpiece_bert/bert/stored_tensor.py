"""Tensors that are still in their file: name, shape and dtype are known, the numbers are read on request.

A model takes its weights from a file one at a time and stores them as it computes with them, so that the tensors of a
file and the weights made of them are never in memory together.

Numbers are read, not mapped: the pages of a mapped file count as memory of the process, and reading a mapped file that
was truncated ends the process.
"""

from __future__ import annotations

import math
import mmap
import os
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from wordpiece_bert._internal.safe_json import quoted
from wordpiece_bert.bert.half_precision import is_half, native, widen
from wordpiece_bert.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    import numpy.typing as npt

#: Most bytes that are converted, compared or checked at once.
_BLOCK = 1 << 20


class NumbersFile:
    """An open file of numbers, of which parts are read; it must not change meanwhile.

    A file that is replaced by another of the same name stays readable.

    Raises
    ------
    OSError
        It cannot be opened.
    """

    def __init__(self, file: Path) -> None:
        self.path = file
        self._stream = file.open("rb", buffering=0)
        self._opened = self._state()
        #: Its size in bytes.
        self.size = self._opened[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._stream.close()

    def read_into(self, offset: int, to: memoryview) -> None:
        """Fill `to`, a memoryview of bytes, from `offset` on.

        Raises
        ------
        CheckpointError
            The file cannot be read, or was changed since it was opened.
        """
        try:
            self._stream.seek(offset)
            done = 0
            while done < len(to) and (count := self._stream.readinto(to[done:])):
                done += count
            changed = self._state() != self._opened
        except (OSError, ValueError) as cause:
            raise CheckpointError(
                f"{self.path}: cannot be read: {getattr(cause, 'strerror', None) or cause}"
            ) from cause
        if done < len(to):
            raise CheckpointError(f"{self.path}: was shortened while it was read")
        if changed:
            raise CheckpointError(f"{self.path}: was changed while it was read")

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset` on; fewer at the end of the file.

        Raises
        ------
        CheckpointError
            As `read_into`.
        """
        data = bytearray(max(0, min(size, self.size - offset)))
        self.read_into(offset, memoryview(data))
        return bytes(data)

    def _state(self) -> tuple[int, int]:
        status = os.fstat(self._stream.fileno())
        return status.st_size, status.st_mtime_ns


class Source(Protocol):
    """Where the bytes of a tensor are: a `NumbersFile`, or a part of one with a checksum."""

    def read_into(self, offset: int, to: memoryview) -> None:
        """Fill a memoryview of bytes from `offset` on."""


class Stored:
    """A weight that is still in its file."""

    __slots__ = ()

    def read(self, scratch: Scratch | None = None) -> Any:
        """Read it into new arrays, or into scratch memory."""
        raise NotImplementedError


class StoredTensor(Stored):
    """A tensor [rows, …] in a file, row by row; its slices are parts of it that are still in the file.

    Parameters
    ----------
    source, offset
        Where its first byte is.
    stored
        The dtype in the file, of any byte order.
    shape
        Its shape.
    """

    __slots__ = ("dtype", "finite", "offset", "shape", "source", "stored")

    def __init__(self, source: Source, offset: int, stored: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self.source, self.offset, self.stored = source, offset, stored
        self.finite: tuple[str, str] | None = None
        #: Its shape.
        self.shape = shape
        #: The dtype of the array that `read` returns: float32 for floats.
        self.dtype = native(np.empty(0, stored)).dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of numbers."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The size of the array that `read` returns, in bytes."""
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> StoredTensor:
        start, stop, step = rows.indices(len(self))
        assert step == 1, "rows are read in order"
        offset = self.offset + start * math.prod(self.shape[1:]) * self.stored.itemsize
        return self._changed(offset, (max(stop - start, 0), *self.shape[1:]))

    def copy(self) -> StoredTensor:
        """Return the same tensor as another object, which is loaded into another array."""
        return self._changed(self.offset, self.shape)

    def required_finite(self, name: str, where: str) -> StoredTensor:
        """Return the same tensor, called `name` in the file `where`; to read NaN or infinity from it is an error."""
        other = self.copy()
        other.finite = name, where
        return other

    def read(self, scratch: Scratch | None = None) -> npt.NDArray[Any]:
        """Read it into a new array, or into scratch memory, in the byte order of this machine.

        Raises
        ------
        CheckpointError
            The file cannot be read, or was changed since it was opened; or a number is NaN or infinite where none may.
        """
        array = np.empty(self.shape, self.dtype) if scratch is None else scratch.array(self.shape, self.dtype)
        flat = array.reshape(-1)
        step = _BLOCK // self.stored.itemsize
        bad = 0
        for start in range(0, flat.size, step):
            part = flat[start : start + step]
            offset = self.offset + start * self.stored.itemsize
            if self.stored == self.dtype:
                self.source.read_into(offset, part.view(np.uint8).data)
            else:
                block = np.empty(len(part), self.stored)
                self.source.read_into(offset, block.view(np.uint8).data)
                part[:] = native(block)
            if self.finite is not None:
                bad += count_non_finite(part)
        if bad and self.finite is not None:
            name, where = self.finite
            must_be_finite({name: bad}, where)
        return array

    def _changed(self, offset: int, shape: tuple[int, ...]) -> StoredTensor:
        other = StoredTensor(self.source, offset, self.stored, shape)
        other.finite = self.finite
        return other


class TransposedTensor(StoredTensor):
    """The transpose [columns, rows] of a tensor [rows, columns] in a file."""

    __slots__ = ("_of",)

    def __init__(self, of: StoredTensor) -> None:
        super().__init__(of.source, of.offset, of.stored, of.shape[::-1])
        self._of = of

    def __getitem__(self, rows: slice) -> Any:
        return self.read()[rows]

    def copy(self) -> TransposedTensor:
        """Return the same tensor as another object, which is loaded into another array."""
        return TransposedTensor(self._of.copy())

    def required_finite(self, name: str, where: str) -> TransposedTensor:
        """Return the same tensor, as `StoredTensor.required_finite`."""
        return TransposedTensor(self._of.required_finite(name, where))

    def read(self, scratch: Scratch | None = None) -> npt.NDArray[Any]:
        """Read it, as `StoredTensor.read`."""
        array = np.empty(self.shape, self.dtype) if scratch is None else scratch.array(self.shape, self.dtype)
        columns, start = array.T, 0
        for rows in blocks(self._of):
            columns[start : start + len(rows)] = rows
            start += len(rows)
        return array


class Scratch:
    """Memory for arrays that are soon dropped, used again and again.

    It lies in pages of its own. Arrays on the heap would leave gaps below what is allocated while they are there.
    """

    def __init__(self) -> None:
        self._pages: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
        self._used = 0

    def clear(self) -> None:
        """Free all memory for the next arrays: those so far must not be used any more."""
        self._used = 0

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return an array of any numbers, to be used until `clear`."""
        start, size = -(-self._used // 64) * 64, math.prod(shape) * dtype.itemsize
        self._used = start + size
        if self._used > len(self._pages):  # arrays so far keep their pages
            self._pages = np.frombuffer(mmap.mmap(-1, self._used), np.uint8)
        return self._pages[start : self._used].view(dtype).reshape(shape)


def loaded(weight: Any, scratch: Scratch | None = None) -> Any:
    """Return a weight in memory, read if it is still in its file, as by `StoredTensor.read`."""
    return weight.read(scratch) if isinstance(weight, Stored) else weight


def loaded_all(weights: Mapping[str, Any]) -> dict[str, Any]:
    """Return weights in memory, by name; one that has several names is read once."""
    arrays: dict[int, Any] = {}
    for weight in weights.values():
        if id(weight) not in arrays:
            arrays[id(weight)] = loaded(weight)
    return {name: arrays[id(weight)] for name, weight in weights.items()}


def blocks(tensor: Any) -> Iterator[npt.NDArray[Any]]:
    """Yield some rows of a tensor after the other, read if they are still in the file: at most 1 MB, or one row.

    A `TransposedTensor` is yielded as a whole.
    """
    if not tensor.ndim or isinstance(tensor, TransposedTensor):
        yield loaded(tensor)
        return
    step = max(1, _BLOCK * len(tensor) // max(1, tensor.nbytes))
    for start in range(0, len(tensor), step):
        yield loaded(tensor[start : start + step])


def equal(a: Any, b: Any) -> bool:
    """Return whether two tensors have equal numbers, of whatever floating-point type."""
    if a is b:
        return True
    if a.shape != b.shape or a.dtype.itemsize != b.dtype.itemsize:
        return False
    return all(np.array_equal(x, y) for x, y in zip(blocks(a), blocks(b), strict=True))


def count_non_finite(numbers: npt.NDArray[Any]) -> int:
    """Return how many numbers are NaN or infinite; 0 for integers."""
    if not is_half(numbers.dtype) and numbers.dtype.kind != "f":
        return 0
    return int(numbers.size - np.count_nonzero(np.isfinite(widen(numbers))))


def must_be_finite(bad: Mapping[str, int], where: str) -> None:
    """Refuse weights that int8 cannot hold: how many of each tensor are NaN or infinite.

    Raises
    ------
    CheckpointError
        There are such numbers; the message names the tensors.
    """
    if bad:
        worst = ", ".join(f"{count} in {quoted(name)}" for name, count in list(bad.items())[:8])
        raise CheckpointError(
            f"{where}: {sum(bad.values())} weights are NaN or infinite, which int8 has no numbers for: {worst}"
        )
