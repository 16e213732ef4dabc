"""The outputs of BGE-M3 for texts: a dense vector, weights of tokens and vectors of tokens for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wordpiece_bert._internal.arrays import as_float32, as_numbers
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.multi_vector.multi_vectors import MultiVectors, as_multi_vectors
from wordpiece_bert.sentence.sparse.sparse_vectors import SparseVectors, as_sparse

if TYPE_CHECKING:
    from wordpiece_bert.bert.functional import Array


class M3Vectors(NamedTuple):
    """The outputs of `M3Encoder.encode`: of n texts, or of one.

    Attributes
    ----------
    dense : ndarray
        Vectors of length 1, float32 [n, d], or [d] for one text.
    sparse : SparseVectors
        The weights of the tokens that a text has, [n, V], or [V].
    colbert : MultiVectors or ndarray
        The vectors of the tokens of each text but the first, of length 1: a sequence of arrays [tokens, c], or one.

    Examples
    --------
    >>> from wordpiece_bert.sentence import M3Encoder
    >>> found = M3Encoder("models/m3").encode(["bread dough", "a bicycle"])
    >>> found.dense.shape, found.sparse.shape, [len(x) for x in found.colbert]
    ((2, 67), (2, 67), [3, 3])
    """

    dense: Array
    sparse: SparseVectors
    colbert: MultiVectors | Array


class M3Rows(NamedTuple):
    """The outputs of n texts, checked: [n, d], [n, V], and n arrays [tokens, c]."""

    dense: Array
    sparse: SparseVectors
    colbert: MultiVectors


def rows_of_vectors(name: str, vectors: M3Vectors, widths: tuple[int, int, int]) -> tuple[bool, M3Rows]:
    """Return whether outputs are of one text, and the outputs as for n texts.

    Parameters
    ----------
    name : str
        The name of the argument, for messages.
    vectors : M3Vectors
        The outputs.
    widths : (int, int, int)
        d, V and c of the model that they must be of.

    Raises
    ------
    InputError
        The three outputs are not of equally many texts, or not of this model.
    """
    dense = as_float32(f"{name}.dense", as_numbers(f"{name}.dense", vectors.dense))
    single = dense.ndim == 1
    dense = dense[None] if single else dense
    sparse = as_sparse(f"{name}.sparse", vectors.sparse)
    colbert = vectors.colbert
    if not isinstance(colbert, MultiVectors):
        of_one = single or getattr(colbert, "ndim", 0) == 2
        colbert = as_multi_vectors(f"{name}.colbert", [colbert] if of_one else colbert)
    if dense.ndim != 2 or not len(dense) == len(sparse) == len(colbert):
        raise InputError(
            f"{name} must have as many dense vectors as sparse vectors and vectors of tokens, not {len(dense)}, "
            f"{len(sparse)} and {len(colbert)}"
        )
    found = (dense.shape[1], sparse.shape[1], colbert.width)
    if len(dense) and found != widths:
        raise InputError(
            f"{name} are not from this model: dense vectors, sparse vectors and vectors of tokens have "
            f"{', '.join(map(str, found))} numbers, not {', '.join(map(str, widths))}"
        )
    return single, M3Rows(dense, sparse, colbert)
