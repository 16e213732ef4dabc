"""The forms of vectors in a folder: their columns, how vectors become columns, and how columns become vectors again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from wordpiece_bert.errors import InputError
from wordpiece_bert.search.prepared_vectors import CODE_BYTES, code_rows
from wordpiece_bert.sentence.metrics import normalized
from wordpiece_bert.sentence.multi_vector.multi_vectors import MultiVectors
from wordpiece_bert.sentence.quantization import quantize_embeddings
from wordpiece_bert.sentence.sparse.sparse_vectors import SparseVectors
from wordpiece_bert.vectors.layout import BINARY, CODES, COUNT, DENSE, INT8, PRECISIONS, SPARSE, VECTOR

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.vectors.layout import Layout
    from wordpiece_bert.vectors.part_files import MappedPart

    Ranges = npt.NDArray[np.float32]

# Ranges of single dimensions need so many vectors; with fewer all dimensions have one range, of the greatest number.
_LEAST_FOR_RANGES = 256


class Form(Protocol):
    """One form of vectors."""

    #: The columns whose numbers are stored as they are in memory; the first is aligned.
    plain: tuple[str, ...]

    def fields(self, pyarrow: Any) -> list[Any]:
        """Return the fields of the columns."""

    def columns(self, pyarrow: Any, vectors: Any, ranges: Ranges | None) -> list[Any]:
        """Return vectors, as the encoder makes them, as columns."""

    def read(self, part: MappedPart, group: int, column: str) -> Any:
        """Return the vectors of a row group, mapped; of dense vectors, the vectors of a column."""


def form_of(layout: Layout) -> Form:
    """Return the form of the vectors of a folder."""
    if layout.kind == DENSE:
        return _Dense(layout)
    return _Sparse(layout) if layout.kind == SPARSE else _ManyVectors(layout)


def scaled(vectors: npt.NDArray[np.float32], layout: Layout) -> npt.NDArray[np.float32]:
    """Return vectors as they are quantized: of length 1 for cosines, which are then their inner products."""
    return normalized(vectors) if layout.similarity == "cosine" else vectors


def ranges_of(vectors: npt.NDArray[np.float32], layout: Layout) -> Ranges:
    """Return the ranges [2, d] for 8-bit numbers of vectors like these [n, d]; other numbers are clipped to them.

    With few vectors all dimensions have the same, from −m to m, where m is the greatest absolute value.
    """
    vectors = scaled(vectors, layout)
    if len(vectors) >= _LEAST_FOR_RANGES:
        return np.stack([vectors.min(axis=0), vectors.max(axis=0)])
    most = np.abs(vectors).max(initial=0)
    return np.repeat(np.array([[-most], [most]], np.float32), vectors.shape[1], axis=1)


class _Dense:
    """One vector for a text, in one or several precisions."""

    def __init__(self, layout: Layout) -> None:
        self._dimension, self._layout = layout.dimension, layout
        self.plain = tuple(column for precision, column in PRECISIONS.items() if precision in layout.precisions)
        if VECTOR in self.plain:
            self.plain += (CODES,)

    def fields(self, pyarrow: Any) -> list[Any]:
        kinds = {
            VECTOR: pyarrow.list_(pyarrow.field("element", pyarrow.float32(), nullable=False), self._dimension),
            INT8: pyarrow.binary(self._dimension),
            BINARY: pyarrow.binary(-(-self._dimension // 8)),
            CODES: pyarrow.binary(self._dimension + CODE_BYTES),
        }
        return [pyarrow.field(name, kinds[name], nullable=False) for name in self.plain]

    def columns(self, pyarrow: Any, vectors: npt.NDArray[np.float32], ranges: Ranges | None) -> list[Any]:
        fields = {field.name: field.type for field in self.fields(pyarrow)}
        found = []
        used = vectors if self._layout.precisions == ("float32",) else scaled(vectors, self._layout)
        for name, kind in fields.items():
            if name == VECTOR:
                flat = pyarrow.array(np.ascontiguousarray(vectors, np.float32).reshape(-1))
                found.append(pyarrow.FixedSizeListArray.from_arrays(flat, type=kind))
                continue
            if name == CODES:
                values = code_rows(np.ascontiguousarray(vectors, np.float32))
            else:
                precision = "int8" if name == INT8 else "ubinary"
                values = np.ascontiguousarray(quantize_embeddings(used, precision, ranges if name == INT8 else None))
            found.append(pyarrow.Array.from_buffers(kind, len(values), [None, pyarrow.py_buffer(values)]))
        return found

    def read(self, part: MappedPart, group: int, column: str) -> npt.NDArray[Any] | None:
        if column == CODES and column not in part.schema.names:  # written before there were codes
            return None
        rows = int(part.starts[group + 1] - part.starts[group])
        width = {BINARY: -(-self._dimension // 8), CODES: self._dimension + CODE_BYTES}.get(column, self._dimension)
        dtype = np.float32 if column == VECTOR else np.uint8
        return part.mapped(group, column, dtype, rows * width).reshape(rows, width)


class _Sparse:
    """The numbers of a vector other than 0, and their columns."""

    plain: tuple[str, ...] = ("values", "indices")

    def __init__(self, layout: Layout) -> None:
        self._dimension = layout.dimension

    def fields(self, pyarrow: Any) -> list[Any]:
        return [
            _list_field(pyarrow, "values", pyarrow.float32()),
            _list_field(pyarrow, "indices", pyarrow.int32()),
            pyarrow.field(COUNT, pyarrow.int32(), nullable=False),
        ]

    def columns(self, pyarrow: Any, vectors: SparseVectors, ranges: Ranges | None) -> list[Any]:
        values, indices, count = self.fields(pyarrow)
        return [
            _lists(pyarrow, vectors.indptr, pyarrow.array(vectors.values), values.type),
            _lists(pyarrow, vectors.indptr, pyarrow.array(vectors.indices), indices.type),
            pyarrow.array(np.diff(vectors.indptr), count.type),
        ]

    def read(self, part: MappedPart, group: int, column: str) -> SparseVectors:
        offsets = _offsets(part, group)
        numbers = {
            name: part.mapped(group, name, dtype, int(offsets[-1]))
            for name, dtype in (("values", np.float32), ("indices", np.int32))
        }
        return SparseVectors(offsets, numbers["indices"], numbers["values"], (len(offsets) - 1, self._dimension))


class _ManyVectors:
    """A vector for each token of a text."""

    plain: tuple[str, ...] = ("vectors",)

    def __init__(self, layout: Layout) -> None:
        self._dimension = layout.dimension

    def fields(self, pyarrow: Any) -> list[Any]:
        one = pyarrow.list_(pyarrow.field("element", pyarrow.float32(), nullable=False), self._dimension)
        return [_list_field(pyarrow, "vectors", one), pyarrow.field(COUNT, pyarrow.int32(), nullable=False)]

    def columns(self, pyarrow: Any, vectors: MultiVectors, ranges: Ranges | None) -> list[Any]:
        kind, count = (field.type for field in self.fields(pyarrow))
        flat = pyarrow.array(np.ascontiguousarray(vectors.vectors, np.float32).reshape(-1))
        items = pyarrow.FixedSizeListArray.from_arrays(flat, type=kind.value_type)
        return [_lists(pyarrow, vectors.offsets, items, kind), pyarrow.array(vectors.lengths, count)]

    def read(self, part: MappedPart, group: int, column: str) -> MultiVectors:
        offsets = _offsets(part, group)
        flat = part.mapped(group, "vectors", np.float32, int(offsets[-1]) * self._dimension)
        return MultiVectors(flat.reshape(-1, self._dimension), offsets)


def _list_field(pyarrow: Any, name: str, item: Any) -> Any:
    return pyarrow.field(name, pyarrow.list_(pyarrow.field("element", item, nullable=False)), nullable=False)


def _lists(pyarrow: Any, offsets: npt.NDArray[np.int64], items: Any, kind: Any) -> Any:
    """Return a column of lists of some items, which begin and end at offsets."""
    if int(offsets[-1]) >= 2**31:
        raise InputError(f"{len(offsets) - 1} texts have {offsets[-1]} values, more than a list of Arrow holds")
    return pyarrow.ListArray.from_arrays(pyarrow.array(offsets.astype(np.int32)), items, type=kind)


def _offsets(part: MappedPart, group: int) -> npt.NDArray[np.int64]:
    """Return where the values of each row of a row group begin, and where the last ones end."""
    counts = part.group(group, [COUNT]).column(COUNT).to_numpy()
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
