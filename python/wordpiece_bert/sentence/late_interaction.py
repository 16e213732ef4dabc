"""MaxSim, the score of late interaction, over the token vectors of queries and documents.

Khattab and Zaharia, "ColBERT: Efficient and Effective Passage Search via Contextualized Late Interaction over BERT"
(2020), equation 3: for each vector of the query the greatest dot product with a vector of the document, summed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import checked_flag
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.multi_vectors import MultiVectors, as_multi_vectors

if TYPE_CHECKING:
    from collections.abc import Sized

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array

__all__ = ["maxsim", "maxsim_pairwise"]


def maxsim(a: object, b: object, *, length_normalize: bool = False, threads: int | None = None) -> Array:
    """Score every query with every document.

    The score is Σᵢ maxⱼ qᵢ·dⱼ, over the vectors i of the query and j of the document. A document without vectors scores
    −1e9, and a query without vectors 0.

    Parameters
    ----------
    a, b : MultiVectors, list of array_like, or array_like
        The vectors of the queries and of the documents: an array [tokens, d] for each; one such array counts as one
        text.
    length_normalize : bool, default False
        Divide each score by the number of vectors of the query.
    threads : int, optional
        How many threads to use; by default those of `set_num_threads`.

    Returns
    -------
    ndarray of float32
        The scores [queries, documents]; the same bits for any number of threads.

    Raises
    ------
    InputError
        The vectors differ in width, or an argument is wrong.
    """
    checked_flag("length_normalize", length_normalize)
    if _is_empty(a) or _is_empty(b):
        return np.zeros((_count(a), _count(b)), np.float32)
    queries, documents = _matching(a, b)
    scores = _core.maxsim(_arrays(queries), _arrays(documents), threads)
    if length_normalize:
        scores /= np.maximum(queries.lengths, 1)[:, None].astype(np.float32)
    return scores


def maxsim_pairwise(a: object, b: object, *, length_normalize: bool = False, threads: int | None = None) -> Array:
    """Score each query with the document of the same number, as `maxsim`: float32 [n].

    Parameters
    ----------
    a, b, length_normalize, threads
        As for `maxsim`.
    """
    checked_flag("length_normalize", length_normalize)
    if _count(a) != _count(b):
        message = f"pairs need equal numbers of queries and documents, not {_count(a)} and {_count(b)}"
        raise InputError(message)
    if _is_empty(a):
        return np.zeros(0, np.float32)
    queries, documents = _matching(a, b)
    scores = _core.maxsim_pairwise(_arrays(queries), _arrays(documents), threads)
    if length_normalize:
        scores /= np.maximum(queries.lengths, 1).astype(np.float32)
    return scores


def _matching(a: object, b: object) -> tuple[MultiVectors, MultiVectors]:
    queries, documents = as_multi_vectors("a", a), as_multi_vectors("b", b)
    if queries.width != documents.width:
        message = f"the vectors of a have {queries.width} numbers, those of b {documents.width}: not from one model"
        raise InputError(message)
    return queries, documents


def _arrays(vectors: MultiVectors) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    return np.ascontiguousarray(vectors.vectors), np.ascontiguousarray(vectors.offsets)


def _count(vectors: Sized | object) -> int:
    """Return how many texts an argument has."""
    if getattr(vectors, "ndim", 0) == 2 and not isinstance(vectors, MultiVectors):
        return 1
    return len(vectors) if hasattr(vectors, "__len__") else len(as_multi_vectors("a", vectors))


def _is_empty(vectors: object) -> bool:
    return isinstance(vectors, list | tuple | MultiVectors | np.ndarray) and _count(vectors) == 0
