"""Writers of vectors, rows at a time: NumPy, Arrow, Parquet and JSON lines, to a file or to standard output."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.atomic_file import AtomicFile
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.signals import uninterrupted
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.corpus.arrow_writer import ArrowWriter
from wordpiece_bert.tokenizer.corpus.file_formats import WRITING
from wordpiece_bert.tokenizer.corpus.npy_writer import npy_header
from wordpiece_bert.tokenizer.corpus.row_writer import ArrowRowWriter, RowWriter, open_output
from wordpiece_bert.tokenizer.corpus.vector_fingerprint import METADATA_KEY, VectorsDigest, sidecar_of

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from wordpiece_bert.tokenizer.corpus.row_writer import Output
    from wordpiece_bert.tokenizer.corpus.vector_fingerprint import Fingerprint

# The column of vectors in Arrow and Parquet files, and the key in JSON lines.
COLUMN = "vector"


class VectorWriter(RowWriter):
    """Writes float32 vectors. A context manager: `begin` opens the output, `append` writes rows, `commit` finishes.

    Parameters
    ----------
    output : AtomicFile or standard output
        Where to write.
    width : int
        The number of dimensions of a vector.

    Attributes
    ----------
    rows : int
        The number of vectors written so far.
    """

    def __init__(self, output: Output, width: int, ids: Any = None) -> None:
        super().__init__(output, ids)
        self.width = width
        self._digest = VectorsDigest()
        self._record: str | None = None  # the fingerprint as it is stored

    def append(self, vectors: npt.NDArray[np.float32], ids: Any = None) -> None:
        """Write vectors [n, width], with their ids if there is a column of them."""
        self._take_ids(ids, len(vectors))
        with self._output.naming_errors():
            self._write(np.ascontiguousarray(vectors, np.float32))
        self._digest.append(vectors)
        self.rows += len(vectors)

    def append_encoded(self, content: bytes, vectors: npt.NDArray[np.float32]) -> None:
        """Write vectors in the form that the file has them, for formats without a place for anything else."""
        with self._output.naming_errors():
            self._output.file.write(content)
        self._digest.append(vectors)
        self.rows += len(vectors)

    def commit(self, fingerprint: Fingerprint | None = None) -> None:
        """Finish the output, with the fingerprint of the vectors if it is known; a file appears under its name."""
        if fingerprint is not None:
            self._record = self._stored(fingerprint)
        super().commit()

    def _stored(self, fingerprint: Fingerprint) -> str:
        """Return the fingerprint as it is stored, with the digest of the vectors that were written."""
        return replace(fingerprint, vectors=self._digest.hexdigest(self.width)).to_json()

    def _write(self, vectors: npt.NDArray[np.float32]) -> None:
        raise NotImplementedError


class _WithSidecar(VectorWriter):
    """Writes a format that has no place for a fingerprint: it is in a file beside the vectors' file.

    Standard output has none.
    """

    def commit(self, fingerprint: Fingerprint | None = None) -> None:
        output = self._output
        if not isinstance(output, AtomicFile):
            super().commit()
            return
        with output.naming_errors():
            self._finish()
        output.sync()
        beside = sidecar_of(output.path)
        with AtomicFile(beside) as sidecar:
            if fingerprint is not None:
                sidecar.begin()
                sidecar.write([self._stored(fingerprint).encode()])
                sidecar.sync()
            with uninterrupted():
                # An old fingerprint is never beside new vectors, even if the process is killed in between.
                output.owner.do(beside.unlink, missing_ok=True)
                output.rename()
                if fingerprint is not None:
                    sidecar.rename()


class _Npy(_WithSidecar):
    """One array, float32 [rows, width]."""

    def _head(self) -> None:
        self._output.file.write(npy_header(np.dtype("<f4"), (self.rows, self.width)))

    def _write(self, vectors: npt.NDArray[np.float32]) -> None:
        self._output.file.write(vectors.astype("<f4", copy=False).data)

    def _finish(self) -> None:
        self._output.file.seek(0)
        self._head()


class _JsonLines(_WithSidecar):
    """A line ``{"vector": [...]}`` for each vector, in decimals that read back as the same float32."""

    def _write(self, vectors: npt.NDArray[np.float32]) -> None:
        line = f'"{COLUMN}": [' + ", ".join(["%.9g"] * self.width) + "]}\n"
        if not np.isfinite(vectors).all():
            raise InputError("a vector has a number that is not finite, which JSON cannot hold: choose another format")
        begins = self._json_ids(len(vectors))
        lines = (begin + line % tuple(row) for begin, row in zip(begins, vectors.tolist(), strict=True))
        self._output.file.write("".join(lines).encode())


class _Arrow(VectorWriter, ArrowRowWriter):
    """A column ``vector`` of fixed-size lists, in Parquet, an Arrow file or an Arrow stream."""

    def __init__(self, output: Output, width: int, kind: str, ids: Any = None) -> None:
        super().__init__(output, width, ids)
        self._writer = ArrowWriter(kind)
        pyarrow = self._writer.pyarrow
        self._schema = self._schema_of([pyarrow.field(COLUMN, pyarrow.list_(pyarrow.float32(), width))])

    def _write(self, vectors: npt.NDArray[np.float32]) -> None:
        pyarrow = self._writer.pyarrow
        column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.reshape(-1)), self.width)
        self._write_columns([column])

    def _finish(self) -> None:
        self._end(None if self._record is None else {METADATA_KEY: self._record})


@completed_by(WRITING)
def vector_writer(path: Path | None, width: int, kind: str, ids: Any = None) -> VectorWriter:
    """Return the writer for a file, or for standard output if `path` is None.

    Parameters
    ----------
    width : int
        The number of dimensions of a vector.
    kind : str
        One of `VECTOR_FORMATS`.
    ids : pyarrow.Field, optional
        A column of ids before the vectors.

    Raises
    ------
    InputError
        pyarrow is needed and not installed, or the format has no place for ids.
    """
    if ids is not None and kind == "npy":
        raise InputError("a .npy has vectors alone, without ids: write .parquet, .arrow, .arrows or .jsonl")
    output = open_output(path, collect=kind in ("npy", "arrow", "parquet"))
    if kind == "npy":
        return _Npy(output, width)
    return _JsonLines(output, width, ids) if kind == "jsonl" else _Arrow(output, width, kind, ids)
