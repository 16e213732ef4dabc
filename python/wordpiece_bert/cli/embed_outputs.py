"""Where ``wordpiece-bert embed`` writes vectors, and what it says of them: one class for each form of vectors."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol

from wordpiece_bert.cli.messages import counted
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence import SentenceEncoder, SparseEncoder
from wordpiece_bert.sentence.dense.encoder_fingerprint import fingerprint_of
from wordpiece_bert.sentence.dense.parts import body_of
from wordpiece_bert.sentence.dense.table import TableBody
from wordpiece_bert.sentence.folders.kinds import MULTI_VECTOR, SPARSE, Kind
from wordpiece_bert.sentence.m3.one_output import OneOutput
from wordpiece_bert.tokenizer.corpus.list_writers import ListColumn, list_writer
from wordpiece_bert.tokenizer.corpus.vector_fingerprint import TextsDigest
from wordpiece_bert.tokenizer.corpus.vector_writers import vector_writer
from wordpiece_bert.vectors.document_vectors import folder_digests

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from wordpiece_bert.sentence import MultiVectors, SparseVectors
    from wordpiece_bert.sentence.encoder_loading import Encoder


class Output(Protocol):
    """Vectors of one form on their way to a file."""

    #: A context manager with `begin`, which must be entered before anything is appended.
    writer: Any
    #: The digest of the texts, if the file has one.
    digest: TextsDigest | None
    #: What the model is and how long texts may be, for messages.
    model: str
    at_most: str
    most: str

    def append(self, vectors: Any, ids: Any = None) -> None:
        """Write the vectors of some texts, with their ids if the output has a column of them."""

    def contents(self, folder: Path, prompt: str) -> dict[str, Any]:
        """Return what decides about the vectors besides the texts, for the record of a part."""

    def commit(self, prompt: str) -> None:
        """Complete the file; `prompt` is what was put before each text."""

    def summary(self) -> tuple[str, dict[str, object]]:
        """Return what was written, in words and as fields."""


def check_normalize(kind: Kind, *, normalize: bool, outputs: str = "dense") -> None:
    """Raise an `InputError` if vectors are to be normalized whose lengths matter; `outputs` is for BGE-M3."""
    if normalize and outputs == "colbert":
        raise InputError("--normalize is for dense vectors: those of tokens have length 1 already")
    if normalize and (kind is SPARSE or outputs == "sparse"):
        raise InputError(
            "--normalize is for dense vectors: the vectors of a sparse model are compared by their dot product"
        )


def output_of(
    encoder: Encoder | OneOutput, path: Path | None, kind: str, *, normalize: bool, ids: Any = None
) -> Output:
    """Return where the vectors of an encoder go.

    Parameters
    ----------
    encoder : SentenceEncoder, SparseEncoder, MultiVectorEncoder or OneOutput
        What makes the vectors.
    path : Path or None
        The file to write; None for standard output.
    kind : str
        Its format.
    normalize : bool
        Whether the vectors are scaled to length 1, for the fingerprint.
    ids : pyarrow.Field, optional
        The column of ids that the file gets.
    """
    if isinstance(encoder, SentenceEncoder):
        return _Dense(encoder, path, kind, normalize=normalize, ids=ids)
    if isinstance(encoder, SparseEncoder) or (isinstance(encoder, OneOutput) and encoder.name == "sparse"):
        return _Sparse(encoder, path, kind, ids)
    return _ManyVectors(encoder, path, kind, ids)


class _Dense:
    """One vector for each text."""

    def __init__(self, encoder: SentenceEncoder, path: Path | None, kind: str, *, normalize: bool, ids: Any) -> None:
        self.writer = vector_writer(path, encoder.dimension, kind, ids)
        self.digest: TextsDigest | None = TextsDigest()
        self.model = "static embeddings, " if isinstance(body_of(encoder), TableBody) else ""
        most = encoder.max_seq_length
        self.at_most = "" if most == sys.maxsize else f", at most {most} tokens a text"
        self.most = f"model's {most} tokens"
        self._encoder, self._normalize = encoder, normalize

    def append(self, vectors: npt.NDArray[np.float32], ids: Any = None) -> None:
        self.writer.append(vectors, ids)

    def contents(self, folder: Path, prompt: str) -> dict[str, Any]:
        del folder
        found = asdict(fingerprint_of(self._encoder, None, prompt=prompt, normalize=self._normalize))
        return {"dense": True, **found}

    def commit(self, prompt: str) -> None:
        self.writer.commit(fingerprint_of(self._encoder, self.digest, prompt=prompt, normalize=self._normalize))

    def summary(self) -> tuple[str, dict[str, object]]:
        rows, width = self.writer.rows, self.writer.width
        return f"{counted(rows, 'vector')} of {width} float32", {"vectors": rows, "dimensions": width}


class _Lists:
    """A list of numbers or of vectors for each text, of any length."""

    digest: TextsDigest | None = None
    at_most, most = "", "longest row of the model"
    #: The name of the model, and of what is counted.
    name, item = "", ""

    def __init__(self, encoder: Encoder | OneOutput, path: Path | None, kind: str, ids: Any) -> None:
        self.writer = list_writer(path, self.columns(encoder.dimension), kind, ids)
        self.model = f"{self.name}, "
        self._encoder, self._dimension = encoder, encoder.dimension

    def columns(self, dimension: int) -> list[ListColumn]:
        """Return the columns of the file."""
        raise NotImplementedError

    def contents(self, folder: Path, prompt: str) -> dict[str, Any]:
        """Return what decides about the vectors besides the texts."""
        del prompt  # of its own
        return {"dense": False, "model": folder_digests(folder), "dtype": str(self._encoder.engine.dtype)}

    def commit(self, prompt: str) -> None:
        del prompt
        self.writer.commit()

    def summary(self) -> tuple[str, dict[str, object]]:
        rows, values = self.writer.rows, self.writer.values
        fields = {"model": self.name, "texts": rows, f"{self.item}s": values, "dimensions": self._dimension}
        return f"{counted(rows, 'text')}, {counted(values, self.item)}", fields


class _Sparse(_Lists):
    """The columns and values of sparse vectors."""

    name, item = SPARSE.name, "value"

    def columns(self, dimension: int) -> list[ListColumn]:
        del dimension
        return [ListColumn("indices", "int32"), ListColumn("values", "float32")]

    def append(self, vectors: SparseVectors, ids: Any = None) -> None:
        """Write the vectors of some texts."""
        self.writer.append(vectors.indptr, {"indices": vectors.indices, "values": vectors.values}, ids)


class _ManyVectors(_Lists):
    """The vectors of the tokens of each text."""

    name, item = MULTI_VECTOR.name, "vector"

    def columns(self, dimension: int) -> list[ListColumn]:
        return [ListColumn("vectors", "float32", dimension)]

    def append(self, vectors: MultiVectors, ids: Any = None) -> None:
        """Write the vectors of some texts."""
        self.writer.append(vectors.offsets, {"vectors": vectors.vectors}, ids)
