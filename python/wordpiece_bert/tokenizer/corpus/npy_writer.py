"""Writing one array to a ``.npy`` file, rows at a time, without knowing its length beforehand."""

from __future__ import annotations

import io
import zlib
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from wordpiece_bert._internal.atomic_file import AtomicFile

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

# The polynomial of CRC-32, whose highest power is the lowest bit.
_POLYNOMIAL = 0xEDB88320


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the header of a ``.npy`` file of version 1.0.

    NumPy pads it, so that it can be rewritten with a larger first axis without moving the data.
    """
    header = io.BytesIO()
    fields = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, fields)
    return header.getvalue()


class NpyWriter:
    """Writes one array to a .npy file, rows at a time.

    Parameters
    ----------
    path : Path
        The file to create or replace.
    width : tuple of int
        The shape of a row.
    dtype : dtype_like
        The type of the array.

    Attributes
    ----------
    shape : tuple of int
        The shape of the rows written so far.
    bytes, crc32 : int
        The size and the checksum of the file, after `finish`.
    """

    def __init__(self, path: Path, width: tuple[int, ...], dtype: npt.DTypeLike) -> None:
        self.shape = (0, *width)
        self.dtype = np.dtype(dtype)
        self.bytes = self.crc32 = 0
        self._output = AtomicFile(path)

    def __enter__(self) -> Self:
        return self

    def begin(self) -> None:
        """Open the temporary file."""
        self._output.begin()
        self._output.file.write(npy_header(self.dtype, self.shape))

    def append(self, rows: npt.NDArray[Any]) -> None:
        """Write rows [n, *width]."""
        assert rows.shape[1:] == self.shape[1:]
        assert rows.dtype == self.dtype
        content = np.ascontiguousarray(rows)
        with self._output.naming_errors():
            self._output.file.write(content.data)
        self.crc32 = zlib.crc32(content.data, self.crc32)
        self.bytes += content.nbytes
        self.shape = (self.shape[0] + len(rows), *self.shape[1:])

    def finish(self) -> None:
        """Rewrite the header with the final number of rows, and flush the file to the disk."""
        header = npy_header(self.dtype, self.shape)
        with self._output.naming_errors():
            self._output.file.seek(0)
            self._output.file.write(header)
        self._output.sync()
        self.crc32 = _joined(zlib.crc32(header), self.crc32, self.bytes)
        self.bytes += len(header)

    def rename(self) -> None:
        """Rename the file, which is finished, to its final name."""
        self._output.rename()

    def commit(self) -> None:
        """Finish the file and rename it to its final name."""
        self.finish()
        self.rename()

    def __exit__(self, *exception: object) -> None:
        self._output.__exit__(*exception)


def _joined(first: int, second: int, length: int) -> int:
    """Return the CRC-32 of two contents one after the other, of their checksums and the length of the second."""
    # Each byte that follows multiplies the remainder of the first content by x⁸.
    power, shift = 1 << 23, first
    while length:
        if length & 1:
            shift = _product(power, shift)
        power = _product(power, power)
        length >>= 1
    return shift ^ second


def _product(first: int, second: int) -> int:
    """Return the product of two polynomials over GF(2), modulo the polynomial of CRC-32."""
    product = 0
    for bit in range(31, -1, -1):
        if first >> bit & 1:
            product ^= second
        second = second >> 1 ^ (_POLYNOMIAL if second & 1 else 0)
    return product
