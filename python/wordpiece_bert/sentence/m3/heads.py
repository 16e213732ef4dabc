"""The two small heads that a folder of BGE-M3 has beside its encoder: weights of tokens, and vectors of tokens.

Source: Chen et al. 2024, "BGE M3-Embedding: Multi-Lingual, Multi-Functionality, Multi-Granularity Text Embeddings
Through Self-Knowledge Distillation", section 3.2; FlagEmbedding's files and formulas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wordpiece_bert.bert.checkpoint import read_tensors
from wordpiece_bert.bert.checkpoint.torch_writer import torch_file
from wordpiece_bert.bert.functional import normalize, relu
from wordpiece_bert.bert.half_precision import widen
from wordpiece_bert.errors import CheckpointError, ModelNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy.typing as npt

    from wordpiece_bert._internal.atomic_folder import AtomicFolder
    from wordpiece_bert.bert.functional import Array

#: The files of the heads: a weight [1, H] and a weight [c, H], each with a bias.
SPARSE_FILE, VECTORS_FILE = "sparse_linear.pt", "colbert_linear.pt"


class M3Heads(NamedTuple):
    """The weights of both heads, and what multiplies them."""

    sparse: tuple[Array, Array]  # [1, H], [1]
    vectors: tuple[Array, Array]  # [c, H], [c]
    linear: Callable[[Array, Array, Array], Array]

    def token_weights(self, x: Array) -> Array:
        """Return the weight of each token, max(w·x + b, 0): x [tokens, H] -> [tokens]."""
        return relu(self.linear(x, *self.sparse))[:, 0]

    def token_vectors(self, x: Array) -> Array:
        """Return the vector of each token, of length 1: x [tokens, H] -> [tokens, c]."""
        return normalize(self.linear(x, *self.vectors))


def read_heads(folder: Path, width: int, linear: Callable[[Array, Array, Array], Array]) -> M3Heads:
    """Read the heads of a folder whose encoder makes vectors of H = `width` numbers; `linear` multiplies them.

    Raises
    ------
    ModelNotFoundError
        The folder lacks one of the files.
    CheckpointError
        A file is malformed, or its tensors have other names or shapes.
    """
    missing = [name for name in (SPARSE_FILE, VECTORS_FILE) if not (folder / name).is_file()]
    if missing:
        raise ModelNotFoundError(
            f"{folder} is not a folder of BGE-M3: it has no {' and no '.join(missing)}. SentenceEncoder loads the "
            "dense vectors of other models"
        )
    return M3Heads(_dense(folder / SPARSE_FILE, width, 1), _dense(folder / VECTORS_FILE, width, None), linear)


def write_heads(output: AtomicFolder, heads: M3Heads) -> None:
    """Write both files of the heads, as torch writes them, in float32."""
    for name, (weight, bias) in ((SPARSE_FILE, heads.sparse), (VECTORS_FILE, heads.vectors)):
        output.write(name, [torch_file({"weight": weight, "bias": bias})])


def _dense(file: Path, width: int, rows: int | None) -> tuple[Array, Array]:
    """Return weight and bias of a file of torch."""
    tensors = read_tensors(file)
    if tensors.keys() != {"weight", "bias"}:
        raise CheckpointError(
            f"{file} must have the tensors weight and bias, not {', '.join(sorted(tensors)) or 'none'}"
        )
    weight, bias = tensors["weight"], tensors["bias"]
    fits = weight.ndim == 2 and weight.shape[1] == width and bias.shape == weight.shape[:1] and len(weight) > 0
    if not fits or (rows is not None and len(weight) != rows):
        expected = f"[{'c' if rows is None else rows}, {width}]"
        raise CheckpointError(
            f"{file}: weight has shape {list(weight.shape)} and bias {list(bias.shape)}, but weight must be "
            f"{expected}, with a bias for each of its rows"
        )
    if "f" not in (weight.dtype.kind, bias.dtype.kind) or weight.dtype.kind != bias.dtype.kind:
        raise CheckpointError(f"{file}: weight holds {weight.dtype} and bias {bias.dtype} numbers, not floating-point")
    return np.ascontiguousarray(widen(weight)), widen(bias)


def greatest_weights(
    ids: npt.NDArray[np.integer],
    weights: Array,
    ends: npt.NDArray[np.int64],
    left_out: npt.NDArray[np.int64],
    size: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Array]:
    """Return the greatest weight of each id in each row as the arrays of a CSR matrix: indptr, indices, values.

    Parameters
    ----------
    ids : ndarray of int
        The ids of all rows, one row after the other, [tokens].
    weights : ndarray
        Their weights, [tokens].
    ends : ndarray of int
        Row i is ``ids[ends[i]:ends[i + 1]]``, [B + 1].
    left_out : ndarray of int
        Ids that have no weight.
    size : int
        V, the number of ids.
    """
    rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    kept = (weights > 0) & ~np.isin(ids, left_out)
    cells = rows[kept] * size + ids[kept].astype(np.int64)
    present, where = np.unique(cells, return_inverse=True)
    values = np.zeros(len(present), np.float32)
    np.maximum.at(values, where, weights[kept])
    row, columns = np.divmod(present, size)
    return np.searchsorted(row, np.arange(len(ends))), columns, values
