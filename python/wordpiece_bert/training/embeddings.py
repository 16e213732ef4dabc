"""First embedding rows for the new tokens of an extended vocabulary, alone or in a model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from wordpiece_bert.bert.base import Model
    from wordpiece_bert.training.vocab import Vocab

__all__ = ["extend_embeddings", "extend_model"]

Float = TypeVar("Float", bound="np.floating[Any]")
AnyModel = TypeVar("AnyModel", bound="Model")

# Parameters with a row for each token, by the ends of their names in BERT and its variants: the word table, and what
# the heads that predict tokens have of their own.
_BY_TOKEN = re.compile(
    r"(^|\.)(word_embeddings\.weight|predictions\.decoder\.weight|predictions\.bias|vocab_projector\.(weight|bias)"
    r"|\w*lm_head\.(decoder\.)?(weight|bias))$"
)


def extend_model(model: AnyModel, vocab: Vocab) -> AnyModel:
    """Return a model for an extended vocabulary: its word table, and a head that predicts tokens, have the new rows.

    All other weights are those of `model`, shared with it. Train the result on the new texts; as it is, it reads old
    texts as before, and a new word about as it read its pieces.

    Parameters
    ----------
    model
        A loaded model of the vocabulary that was extended: a `BertModel`, a model with a head, a relative.
    vocab
        A vocabulary that extends the model's (`train_vocab` with `base`).

    Returns
    -------
    Model
        Of the same class; ``save_pretrained`` writes it.

    Raises
    ------
    InputError
        The model is not one of the vocabulary that was extended.
    """
    weights = {
        name: extend_embeddings(weight, vocab) if _BY_TOKEN.search(name) else weight
        for name, weight in model.named_parameters()
    }
    config = type(model.config).from_dict(model.config.to_dict() | {"vocab_size": len(vocab)})
    return type(model)(config, weights, backend=model.backend, dtype=model.dtype, source=model.source)


def extend_embeddings(embeddings: npt.NDArray[Float], vocab: Vocab) -> npt.NDArray[Float]:
    """Make the first embedding rows of new tokens: the mean of the rows of their pieces so far.

    A word that a model has read as pieces until now begins where their mean is: a better start than a random row.

    Parameters
    ----------
    embeddings
        The word embeddings of a model [old size, H], or another array with a row or a number for each token.
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
    if vocab.base_size is None:
        message = "this vocabulary does not extend another: train it with base, the vocabulary of the model"
        raise InputError(message)
    if embeddings.ndim == 0 or len(embeddings) != vocab.base_size:
        message = (
            f"embeddings of shape {embeddings.shape} do not belong to the vocabulary that was extended: it had "
            f"{vocab.base_size:,} tokens"
        )
        raise InputError(message)
    added = len(vocab) - vocab.base_size
    rows = np.concatenate([embeddings, np.zeros((added, *embeddings.shape[1:]), embeddings.dtype)])
    for token, pieces in vocab.pieces.items():
        if pieces:
            rows[token] = embeddings[pieces].mean(axis=0, dtype=np.float64)
        else:
            # Its characters mean nothing to the model: no better guess than the middle of all tokens.
            rows[token] = embeddings.mean(axis=0, dtype=np.float64)
    return rows
