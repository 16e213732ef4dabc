"""MaxSim, the score of late interaction, over the token vectors of queries and documents.

Khattab and Zaharia, "ColBERT: Efficient and Effective Passage Search via Contextualized Late Interaction over BERT"
(2020), equation 3: for each vector of the query the greatest dot product with a vector of the document, summed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wordpiece_bert import _core
from wordpiece_bert._internal.checks import checked_flag
from wordpiece_bert._internal.mapped_files import require_whole
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.multi_vector.multi_vectors import MultiVectors, as_multi_vectors
from wordpiece_bert.sentence.multi_vector.parts import require_finite

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array


def maxsim(
    a: object,
    b: object,
    a_mask: object = None,
    b_mask: object = None,
    *,
    length_normalize: bool = False,
    threads: int | None = None,
) -> Array:
    """Score every query with every document.

    The score is Σᵢ maxⱼ qᵢ·dⱼ, over the vectors i of the query and j of the document. A document without vectors scores
    −1e9, and a query without vectors 0.

    Parameters
    ----------
    a, b : MultiVectors, list of array_like, or array_like
        The vectors of the queries and of the documents: an array [tokens, d] for each; one such array counts as one
        text, and an array [n, tokens, d] as n. Rows of zeros in an array are padding, which does not count unless a
        mask says so; all rows of `MultiVectors` and of the arrays in a list count.
    a_mask, b_mask : array_like or list of array_like, optional
        Which vectors count, as booleans or 0 and 1: [n, tokens], or one array [tokens] for each text.
    length_normalize : bool, default False
        Divide each score by the number of vectors of the query.
    threads : int, optional
        How many threads to use; by default the number of `set_num_threads`.

    Returns
    -------
    ndarray of float32
        The scores [queries, documents]; the same bits for any number of threads.

    Raises
    ------
    InputError
        The vectors differ in width or have NaN or infinity, or an argument is wrong. `MultiVectors` are read for that
        when they are compared for the first time.

    Examples
    --------
    Each vector of the query counts with the nearest one of a document:

    >>> import numpy as np
    >>> from wordpiece_bert.sentence import maxsim
    >>> query = np.eye(2, dtype=np.float32)
    >>> documents = [
    ...     np.array([[1, 0]], np.float32),
    ...     np.array([[1, 0], [0, 0.5]], np.float32),
    ... ]
    >>> maxsim(query, documents)
    array([[1. , 1.5]], dtype=float32)
    """
    checked_flag("length_normalize", length_normalize)
    queries, documents = _texts("a", a, a_mask), _texts("b", b, b_mask)
    if queries is None or documents is None:
        return np.zeros((_count(queries), _count(documents)), np.float32)
    _check_widths(queries, documents)
    scores = _core.maxsim(_arrays(queries), _arrays(documents), threads)
    if length_normalize:
        scores /= np.maximum(queries.lengths, 1)[:, None].astype(np.float32)
    return scores


@completed_by(maxsim)
def maxsim_pairwise(
    a: object,
    b: object,
    a_mask: object = None,
    b_mask: object = None,
    *,
    length_normalize: bool = False,
    threads: int | None = None,
) -> Array:
    """Score each query with the document of the same number, as `maxsim`: float32 [n].

    Returns
    -------
    ndarray of float32
        The scores, [n].

    Raises
    ------
    InputError
        There are more queries than documents or fewer, or as for `maxsim`.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert.sentence import maxsim_pairwise
    >>> queries = [np.eye(2, dtype=np.float32)] * 2
    >>> documents = [
    ...     np.array([[1, 0]], np.float32),
    ...     np.array([[1, 0], [0, 0.5]], np.float32),
    ... ]
    >>> maxsim_pairwise(queries, documents)
    array([1. , 1.5], dtype=float32)
    """
    checked_flag("length_normalize", length_normalize)
    queries, documents = _texts("a", a, a_mask), _texts("b", b, b_mask)
    if _count(queries) != _count(documents):
        raise InputError(
            f"pairs need equal numbers of queries and documents, not {_count(queries)} and {_count(documents)}"
        )
    if queries is None or documents is None:
        return np.zeros(0, np.float32)
    _check_widths(queries, documents)
    scores = _core.maxsim_pairwise(_arrays(queries), _arrays(documents), threads)
    if length_normalize:
        scores /= np.maximum(queries.lengths, 1).astype(np.float32)
    return scores


def _texts(name: str, vectors: object, mask: object) -> MultiVectors | None:
    """Return the vectors of an argument; None for no texts at all, which have no width."""
    if isinstance(vectors, list | tuple | MultiVectors) and not len(vectors):
        return None
    if isinstance(vectors, np.ndarray) and vectors.ndim != 2 and vectors.shape[:1] == (0,):
        return None
    found = as_multi_vectors(name, vectors, mask)
    require_finite(name, found)
    return found if len(found) else None


def _check_widths(queries: MultiVectors, documents: MultiVectors) -> None:
    if queries.width != documents.width:
        raise InputError(
            f"the vectors of a have {queries.width} numbers, those of b {documents.width}: not from one model"
        )


def _arrays(vectors: MultiVectors) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    require_whole(vectors.vectors)
    return np.ascontiguousarray(vectors.vectors), np.ascontiguousarray(vectors.offsets)


def _count(vectors: MultiVectors | None) -> int:
    return 0 if vectors is None else len(vectors)
