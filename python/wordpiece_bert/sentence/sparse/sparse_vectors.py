"""Sparse vectors as the rows of a compressed matrix, and their similarity."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from wordpiece_bert._internal.arrays import as_float32, as_numbers, as_whole_numbers
from wordpiece_bert._internal.atomic_file import AtomicFile
from wordpiece_bert._internal.checks import whole_number
from wordpiece_bert._internal.notebook import table_html
from wordpiece_bert._internal.ordinary_file import require_ordinary_file
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.metrics import check_metric

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array

#: The most products of a comparison that are in memory at once, 32 MB of float64.
_BLOCK = 1 << 22

#: What is shown of a matrix in a notebook: rows, and numbers of a row.
_ROWS, _NUMBERS = 10, 8


class SparseVectors:
    """Vectors of which only the numbers other than 0 are stored, row after row: a matrix in CSR form.

    `toarray` and `to_scipy` convert it. An index selects rows: a whole number gives one vector, of one dimension; a
    slice, an array of numbers or of booleans gives as many. It never changes.

    Parameters
    ----------
    indptr : array_like
        Row i has the numbers ``indptr[i]`` to ``indptr[i + 1]``, int64 [n + 1].
    indices : array_like
        The column of each number, rising in each row, int32.
    values : array_like
        The numbers, float32.
    shape : tuple of int
        (n, V); or (V,) for one vector, whose `indptr` is [0, numbers].

    Attributes
    ----------
    indptr, indices, values : ndarray
        The arrays, read-only.
    shape : tuple of int
        The shape.

    Raises
    ------
    InputError
        The arrays do not fit together.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.sentence import SparseVectors
    >>> x = SparseVectors.from_dense(np.array([[0, 2, 0, 1], [3, 0, 0, 0]], np.float32))
    >>> x
    SparseVectors([2, 4], 3 values, 1.5 a row)
    >>> x.top(1).toarray()
    array([[0., 2., 0., 0.],
           [3., 0., 0., 0.]], dtype=float32)
    >>> x.save("vectors.npz")
    >>> SparseVectors.load("vectors.npz").indices
    array([1, 3, 0], dtype=int32)
    """

    __slots__ = ("indices", "indptr", "shape", "values")

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    shape: tuple[int, ...]

    def __init__(
        self, indptr: npt.ArrayLike, indices: npt.ArrayLike, values: npt.ArrayLike, shape: tuple[int, ...]
    ) -> None:
        starts, columns = as_whole_numbers("indptr", indptr), as_whole_numbers("indices", indices)
        numbers = as_float32("values", as_numbers("values", values))
        shape = tuple(as_whole_numbers("shape", shape).reshape(-1).tolist())
        rows = shape[0] if len(shape) == 2 else 1
        if (
            len(shape) not in (1, 2)
            or starts.shape != (rows + 1,)
            or columns.shape != numbers.shape
            or columns.ndim != 1
        ):
            raise InputError(
                f"indptr {list(starts.shape)}, indices {list(columns.shape)} and values {list(numbers.shape)} are not "
                f"those of a matrix of shape {shape}"
            )
        if starts[0] != 0 or starts[-1] != len(columns) or (np.diff(starts) < 0).any():
            raise InputError(f"indptr must rise from 0 to {len(columns)}, the number of indices")
        if len(columns) and not 0 <= int(columns.min()) <= int(columns.max()) < shape[-1]:
            raise InputError(f"indices must be from 0 to {shape[-1] - 1}, not {columns.min()} to {columns.max()}")
        rising = np.diff(columns) > 0
        rising[starts[1:-1][(starts[1:-1] > 0) & (starts[1:-1] < len(columns))] - 1] = True  # the first of a row
        if not rising.all():
            position = int(np.argmin(rising)) + 1
            row = int(np.searchsorted(starts, position, side="right")) - 1
            raise InputError(
                f"indices must rise in each row, but row {row} has {columns[position]} after {columns[position - 1]}"
            )
        _set(self, starts, columns.astype(np.int32), numbers, shape)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"SparseVectors never changes: {name} cannot be set")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.indptr, self.indices, self.values, self.shape)

    @classmethod
    def from_dense(cls, vectors: npt.ArrayLike) -> SparseVectors:
        """Make sparse vectors of an array [n, V] or [V].

        Parameters
        ----------
        vectors : array_like
            The numbers, of which those other than 0 are stored.

        Returns
        -------
        SparseVectors
            The vectors.

        Raises
        ------
        InputError
            The array has another number of dimensions, or holds no numbers.
        """
        dense = as_float32("vectors", as_numbers("vectors", vectors, "an array [n, V] or [V]"))
        if dense.ndim not in (1, 2):
            raise InputError(f"vectors must have shape [n, V] or [V], not {list(dense.shape)}")
        rows, columns = np.nonzero(np.atleast_2d(dense))
        count = 1 if dense.ndim == 1 else len(dense)
        indptr = np.searchsorted(rows, np.arange(count + 1))
        return cls(indptr, columns, np.atleast_2d(dense)[rows, columns], dense.shape)

    def __len__(self) -> int:
        if len(self.shape) == 1:
            raise TypeError("one vector has no length: see its shape")
        return self.shape[0]

    def __iter__(self) -> Iterator[SparseVectors]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, rows: SupportsIndex | slice | npt.ArrayLike) -> SparseVectors:
        if len(self.shape) == 1:
            raise TypeError("one vector has no rows: toarray() gives its numbers")
        if isinstance(rows, SupportsIndex) and not isinstance(rows, np.ndarray):
            row = range(len(self))[rows.__index__()]  # an IndexError beyond the last row
            numbers = slice(int(self.indptr[row]), int(self.indptr[row + 1]))
            indptr = np.array([0, numbers.stop - numbers.start], np.int64)
            return _known(indptr, self.indices[numbers], self.values[numbers], self.shape[1:])
        chosen = np.arange(len(self))[rows]  # type: ignore[index]  # NumPy checks it
        lengths = np.diff(self.indptr)[chosen]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        numbers = np.arange(ends[-1]) + np.repeat(self.indptr[chosen] - ends[:-1], lengths)
        shape = (len(chosen), self.shape[1])
        return _known(ends.astype(np.int64), self.indices[numbers], self.values[numbers], shape)

    def __eq__(self, other: object) -> bool:
        """Whether shape, columns and numbers are equal."""
        if not isinstance(other, SparseVectors):
            return NotImplemented
        return self.shape == other.shape and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in ("indptr", "indices", "values")
        )

    __hash__ = None  # type: ignore[assignment]

    def toarray(self) -> Array:
        """Return the numbers as an array, float32 [n, V], or [V] for one vector.

        Returns
        -------
        ndarray of float32
            The numbers, [n, V] or [V].
        """
        rows = 1 if len(self.shape) == 1 else self.shape[0]
        dense = np.zeros((rows, self.shape[-1]), np.float32)
        dense[np.repeat(np.arange(rows), np.diff(self.indptr)), self.indices] = self.values
        return dense.reshape(self.shape)

    def to_scipy(self) -> Any:
        """Return a ``scipy.sparse.csr_array`` [n, V] (one row for one vector), which shares the memory of the values.

        Returns
        -------
        scipy.sparse.csr_array
            The vectors, [n, V].

        Raises
        ------
        InputError
            scipy is not installed.

        Examples
        --------
        >>> import numpy as np
        >>> from wordpiece_bert.sentence import SparseVectors
        >>> x = SparseVectors.from_dense(np.array([[0, 2, 0, 1], [3, 0, 0, 0]], np.float32))
        >>> x.to_scipy().nnz
        3
        """
        try:
            from scipy.sparse import csr_array
        except ImportError as cause:
            raise InputError("to_scipy needs the package scipy: pip install scipy") from cause
        shape = (1, *self.shape) if len(self.shape) == 1 else self.shape
        return csr_array((self.values, self.indices, self.indptr), shape=shape)

    def top(self, count: int) -> SparseVectors:
        """Return the vectors with only the `count` values farthest from 0, and of equal values the lower columns.

        Parameters
        ----------
        count : int
            How many values of a vector to keep.

        Returns
        -------
        SparseVectors
            New vectors of the same shape.
        """
        from wordpiece_bert.bert.engines.vocabulary_heads import greatest_values

        count = whole_number("count", count, 1)
        return SparseVectors(*greatest_values((self.indptr, self.indices, self.values), count), self.shape)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an .npz file that `load` and ``scipy.sparse.load_npz`` read; it appears when it is complete.

        Parameters
        ----------
        path : str or os.PathLike
            The file to create or replace.

        Raises
        ------
        InputError
            The name does not end in .npz.
        OSError
            The file cannot be written.
        """
        file = Path(path)
        if file.suffix != ".npz":
            raise InputError(f"{file}: sparse vectors are written to a file whose name ends in .npz")
        with AtomicFile(file) as output:
            output.begin()
            with output.naming_errors():
                np.savez(
                    output.file,
                    indices=self.indices,
                    indptr=self.indptr,
                    format=np.array(b"csr"),
                    shape=np.array((1, *self.shape)[-2:]),
                    data=self.values,
                    single=np.array(len(self.shape) == 1),  # scipy reads matrices only
                )
            output.commit()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SparseVectors:
        """Read a file that `save`, or ``scipy.sparse.save_npz`` for a CSR matrix, wrote.

        Parameters
        ----------
        path : str or os.PathLike
            The file.

        Returns
        -------
        SparseVectors
            The vectors.

        Raises
        ------
        InputError
            The file is not such a file.
        """
        try:
            require_ordinary_file(Path(path))
            with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                kind = bytes(arrays["format"].item())
                indptr, indices, data, shape = (arrays[name] for name in ("indptr", "indices", "data", "shape"))
                single = "single" in arrays and bool(arrays["single"])
                size = tuple(shape.tolist())[1 if single else 0 :]
        except Exception as cause:  # NumPy, zipfile and zlib raise errors of any class for a damaged file
            raise InputError(f"{path}: cannot be read as sparse vectors: {cause}") from cause
        if kind != b"csr":
            raise InputError(f"{path}: has the format {kind!r}; only CSR matrices are read")
        return cls(indptr, indices, data, size)

    def __repr__(self) -> str:
        rows = 1 if len(self.shape) == 1 else self.shape[0]
        what = f"[{self.shape[0]}]" if len(self.shape) == 1 else f"[{self.shape[0]}, {self.shape[1]}]"
        mean = f", {len(self.values) / rows:.1f} a row" if rows > 1 else ""
        return f"SparseVectors({what}, {len(self.values)} values{mean})"

    def _repr_html_(self) -> str:
        rows = []
        for row in range(min(len(self.indptr) - 1, _ROWS)):
            start, end = int(self.indptr[row]), int(self.indptr[row + 1])
            order = np.argsort(-self.values[start:end], kind="stable")[:_NUMBERS] + start
            shown = ", ".join(f"{self.indices[i]}: {self.values[i]:.4g}" for i in order)
            rows.append((row, end - start, shown + ", …" * (end - start > _NUMBERS)))
        caption = repr(self) + f"; the first {_ROWS} rows" * (len(self.indptr) - 1 > _ROWS)
        return table_html(caption, ("row", "values", "the greatest, by column"), rows)


def joined(parts: Sequence[SparseVectors], width: int) -> SparseVectors:
    """Join the rows of several matrices with `width` columns."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.cumsum([0, *(len(part.values) for part in parts)])
    starts = [part.indptr[:-1] + size for part, size in zip(parts, sizes.tolist(), strict=False)]
    return _known(
        np.concatenate([*starts, sizes[-1:]]).astype(np.int64),
        np.concatenate([np.zeros(0, np.int32), *(part.indices for part in parts)]),
        np.concatenate([np.zeros(0, np.float32), *(part.values for part in parts)]),
        (sum(len(part) for part in parts), width),
    )


def _known(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    values: npt.NDArray[np.float32],
    shape: tuple[int, ...],
) -> SparseVectors:
    """Make sparse vectors of arrays that are known to fit together."""
    vectors = object.__new__(SparseVectors)
    _set(vectors, indptr, indices, values, shape)
    return vectors


def _set(
    vectors: SparseVectors,
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    values: npt.NDArray[np.float32],
    shape: tuple[int, ...],
) -> None:
    for name, array in (("indptr", indptr), ("indices", indices), ("values", values)):
        view = array.view()
        view.flags.writeable = False
        object.__setattr__(vectors, name, view)
    object.__setattr__(vectors, "shape", shape)


def is_sparse(vectors: object) -> bool:
    """Say if `as_sparse` has these as sparse vectors without an array between."""
    return isinstance(vectors, SparseVectors) or hasattr(vectors, "tocsr")


def as_sparse(name: str, vectors: object) -> SparseVectors:
    """Return an argument as a matrix of sparse vectors [n, V]: sparse vectors, a scipy matrix, or an array.

    Parameters
    ----------
    name : str
        The name of the argument, for messages.
    vectors : SparseVectors, sparse matrix of scipy, or array_like
        The vectors; one vector counts as a matrix of one row.

    Raises
    ------
    InputError
        It is none of these.
    """
    if hasattr(vectors, "tocsr"):
        matrix = vectors.tocsr()
        if not matrix.has_canonical_format:  # unsorted, or with several numbers for one place
            matrix = matrix.copy()
            matrix.sum_duplicates()
        vectors = SparseVectors(matrix.indptr, matrix.indices, matrix.data, matrix.shape)
    if not isinstance(vectors, SparseVectors):
        what = "SparseVectors, a sparse matrix or an array [n, V]"
        array = as_numbers(name, vectors, what)
        if array.ndim not in (1, 2):
            raise InputError(f"{name} must be {what}, not of shape {list(array.shape)}")
        vectors = SparseVectors.from_dense(array)
    if len(vectors.shape) == 1:
        return _known(vectors.indptr, vectors.indices, vectors.values, (1, *vectors.shape))
    return vectors


def sparse_similarity(a: object, b: object, metric: str = "dot") -> Array:
    """Compare every vector of `a` with every vector of `b`.

    The numbers are as for the dense vectors, whose zeros count; they are computed from the others alone, in float64.

    Parameters
    ----------
    a, b : SparseVectors, sparse matrix of scipy, or array_like
        Vectors [n, V] and [m, V]; one vector counts as one row.
    metric : {"dot", "cosine", "euclidean", "manhattan"}, default "dot"
        The measure; the last two are negative distances.

    Returns
    -------
    ndarray of float32
        The similarities [n, m].

    Raises
    ------
    InputError
        The vectors differ in width, or an argument is wrong.
    """
    check_metric(metric)
    x, y = as_sparse("a", a), as_sparse("b", b)
    _match(x, y)
    result = np.empty((len(x), len(y)), np.float32)
    blocks = _blocks(y)
    for i, dense, row in _rows_of(x):
        for rows in blocks:
            result[i, rows] = _compared(dense, row, y, rows, metric)
    return result


@completed_by(sparse_similarity)
def sparse_pairwise_similarity(a: object, b: object, metric: str = "dot") -> Array:
    """Compare the vectors of `a` and `b` pair by pair, as `sparse_similarity`: [n, V] and [n, V] -> float32 [n]."""
    check_metric(metric)
    x, y = as_sparse("a", a), as_sparse("b", b)
    _match(x, y)
    if len(x) != len(y):
        raise InputError(f"pairs need equal numbers of vectors, not {len(x)} and {len(y)}")
    result = np.empty(len(x), np.float32)
    for i, dense, row in _rows_of(x):
        result[i : i + 1] = _compared(dense, row, y, slice(i, i + 1), metric)
    return result


def _rows_of(x: SparseVectors) -> Iterator[tuple[int, npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
    """Yield each row with all its numbers, [V], in an array that the next row has too, and with its stored ones."""
    dense = np.zeros(x.shape[1])
    for i in range(len(x)):
        numbers = slice(int(x.indptr[i]), int(x.indptr[i + 1]))
        columns, row = x.indices[numbers], x.values[numbers].astype(np.float64)
        dense[columns] = row
        yield i, dense, row
        dense[columns] = 0


def _blocks(y: SparseVectors) -> list[slice]:
    """Divide rows into blocks with a bounded number of values."""
    blocks = []
    start = 0
    while start < len(y):
        end = int(np.searchsorted(y.indptr, y.indptr[start] + _BLOCK, side="right")) - 1
        blocks.append(slice(start, max(start + 1, min(end, len(y)))))
        start = blocks[-1].stop
    return blocks


def _compared(
    dense: npt.NDArray[np.float64], row: npt.NDArray[np.float64], y: SparseVectors, rows: slice, metric: str
) -> npt.NDArray[np.float64]:
    """Compare one vector, given by all its numbers and by those other than 0, with some rows: float64 [rows]."""
    indptr = y.indptr[rows.start : rows.stop + 1]
    numbers = slice(int(indptr[0]), int(indptr[-1]))
    values = y.values[numbers].astype(np.float64)
    others = dense[y.indices[numbers]]
    starts = indptr - indptr[0]
    if metric == "manhattan":
        # |x − y| = |x| + (|x − y| − |x|), whose second part is 0 where y is.
        differences = _sums(np.abs(others - values) - np.abs(others), starts)
        return np.asarray(-(np.abs(row).sum() + differences))
    products = _sums(others * values, starts)
    if metric == "dot":
        return products
    squares = _sums(values * values, starts)
    if metric == "euclidean":
        return -np.sqrt(np.maximum(row @ row + squares - 2 * products, 0))
    lengths = np.sqrt(row @ row) * np.sqrt(squares)
    return np.asarray(products / np.where(lengths > 0, lengths, 1))


def _sums(numbers: npt.NDArray[np.float64], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Sum the numbers of each row; 0 for a row without any."""
    sums = np.zeros(len(starts) - 1)
    filled = np.flatnonzero(np.diff(starts))
    if len(filled):
        sums[filled] = np.add.reduceat(numbers, starts[filled])
    return sums


def _match(x: SparseVectors, y: SparseVectors) -> None:
    if x.shape[1] != y.shape[1]:
        raise InputError(
            f"the vectors of a have {x.shape[1]} numbers, those of b {y.shape[1]}: they are not from one model"
        )
