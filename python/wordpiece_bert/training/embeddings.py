"""Embedding rows for the new tokens of an extended vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.training.vocab import Vocab

__all__ = ["extend_embeddings"]

Float = TypeVar("Float", bound="np.floating[Any]")


def extend_embeddings(embeddings: npt.NDArray[Float], vocab: Vocab) -> npt.NDArray[Float]:
    """Make the first embedding rows of new tokens: the mean of the rows of their pieces so far.

    A word that a model has read as pieces until now begins where their mean is: a better start than a random row.

    Parameters
    ----------
    embeddings
        The word embeddings of a model [old size, H].
    vocab
        A vocabulary that extends the model's (`train_vocab` with `base`).

    Returns
    -------
    array [len(vocab), H]
        The old rows where they were, and rows for the new tokens; a slot that was filled has a new row, too.

    Raises
    ------
    InputError
        The embeddings are not those of the vocabulary that was extended.
    """
    added = sum(token >= len(embeddings) for token in vocab.pieces)
    if embeddings.ndim != 2 or len(embeddings) + added != len(vocab):
        message = (
            f"embeddings of shape {embeddings.shape} do not belong to the vocabulary that was extended: it had "
            f"{len(vocab) - _appended(vocab):,} tokens"
        )
        raise InputError(message)
    rows = np.concatenate([embeddings, np.zeros((added, embeddings.shape[1]), embeddings.dtype)])
    for token, pieces in vocab.pieces.items():
        if pieces:
            rows[token] = embeddings[pieces].mean(axis=0, dtype=np.float64)
        else:
            # Its characters mean nothing to the model: no better guess than the middle of all tokens.
            rows[token] = embeddings.mean(axis=0, dtype=np.float64)
    return rows


def _appended(vocab: Vocab) -> int:
    """How many of the new tokens stand behind the old ones: they are the last ids without a gap."""
    count = 0
    while len(vocab) - 1 - count in vocab.pieces:
        count += 1
    return count
