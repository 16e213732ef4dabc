"""Initial embeddings for the new tokens of an extended vocabulary, as an array or in a model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from wordpiece_bert._internal.checks import check_instance
from wordpiece_bert._internal.lazy import numpy as np
from wordpiece_bert._internal.parameters import completed_by
from wordpiece_bert._internal.parts import Extendable, with_vocabulary
from wordpiece_bert.errors import InputError
from wordpiece_bert.tokenizer.parts import plain_core, with_core
from wordpiece_bert.training.vocab import Vocab

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from wordpiece_bert.tokenizer.tokenizer import Tokenizer

__all__ = ["extend_embeddings", "extend_model"]

Float = TypeVar("Float", bound="np.floating[Any]")
AnyModel = TypeVar("AnyModel", bound="Weighted | Extendable")

# Parameters with one row per token, by the ends of their names in BERT and its variants: the word embeddings, and the
# output layers of heads that predict tokens.
_BY_TOKEN = re.compile(
    r"(^|\.)((word_embeddings|tok_embeddings|encoder)\.weight|predictions\.bias"
    r"|(decoder|vocab_projector|\w*lm_head)\.(weight|bias))$"
)


@runtime_checkable
class Weighted(Protocol):
    """A model of `wordpiece_bert.bert`, as far as its class is known here: it has a configuration and weights."""

    @property
    def config(self) -> Any: ...

    def named_parameters(self) -> Iterable[tuple[str, Any]]: ...


def extend_model(model: AnyModel, vocab: Vocab) -> AnyModel:
    """Return a model for an extended vocabulary, with rows for the new tokens.

    The word embeddings grow, and so does the output layer of a head that predicts tokens (`extend_embeddings`). All
    other weights are shared with `model`. Before any training, the result is the same for old tokens, and treats a new
    token roughly like its former pieces.

    Parameters
    ----------
    model : Model or SentenceEncoder
        A loaded model with the vocabulary that was extended: a `BertModel`, a variant, a model with a head, or a
        `SentenceEncoder`, whose tokenizer is extended as well.
    vocab : Vocab
        A vocabulary that extends the model's, from `train_vocab` with ``base=``.

    Returns
    -------
    Model or SentenceEncoder
        A model of the same class; ``save_pretrained`` writes it.

    Raises
    ------
    InputError
        `vocab` does not extend a vocabulary, or the model's has another size.

    Examples
    --------
    >>> from wordpiece_bert import BertModel, Tokenizer, train_vocab
    >>> from wordpiece_bert.bert import BertConfig
    >>> from wordpiece_bert.training import extend_model
    >>> minilm = Tokenizer.from_pretrained("minilm")
    >>> wider = train_vocab(
    ...     ["Nivolumab was given."],
    ...     30_523,
    ...     base=minilm,
    ...     algorithm="top_down",
    ...     lower_thresh=1,
    ... )
    >>> model = BertModel.from_config(
    ...     BertConfig(hidden_size=24, num_hidden_layers=1, intermediate_size=48)
    ... )
    >>> extend_model(model, wider).config.vocab_size
    30523
    """
    any_model: Any = model
    extended: AnyModel
    if isinstance(model, Extendable):
        return with_vocabulary(
            model, lambda inner: extend_model(inner, vocab), lambda tokenizer: _extended_tokenizer(tokenizer, vocab)
        )
    check_instance("model", model, Weighted, "a model of wordpiece_bert.bert or a SentenceEncoder")
    weights = {
        name: extend_embeddings(weight, vocab) if _BY_TOKEN.search(name) else weight
        for name, weight in any_model.named_parameters()
    }
    config = type(any_model.config).from_dict(any_model.config.to_dict() | {"vocab_size": len(vocab)})
    extended = type(any_model)(
        config,
        weights,
        backend=any_model.backend,
        dtype=any_model.dtype,
        instructions=any_model.instructions,
        source=any_model.source,
    )
    return extended


def _extended_tokenizer(tokenizer: Tokenizer, vocab: Vocab) -> Tokenizer:
    """Return a tokenizer with an extended vocabulary, and everything else as before."""
    core = plain_core(tokenizer, "extend_model")
    tokens = {token: token_id for token_id, token in enumerate(vocab.tokens)}
    return with_core(tokenizer, core.with_tokens(tokens, sorted(core.added_tokens()), template=True))


@completed_by(extend_model)
def extend_embeddings(embeddings: npt.NDArray[Float], vocab: Vocab) -> npt.NDArray[Float]:
    """Return embeddings with a row for each new token: the mean of the rows of its pieces under the old vocabulary.

    This is a better initial value than a random row, because the model has read these pieces for the word until now.

    Parameters
    ----------
    embeddings : ndarray
        The word embeddings of a model [old size, H], or another array whose first axis is tokens.

    Returns
    -------
    ndarray [len(vocab), H]
        The old rows at their ids, and rows for the new tokens. An ``[unusedN]`` token that was replaced has a new row.

    Raises
    ------
    InputError
        `vocab` does not extend a vocabulary, or `embeddings` has another number of rows than the old vocabulary.

    Examples
    --------
    >>> import numpy as np
    >>> from wordpiece_bert import Tokenizer, train_vocab
    >>> from wordpiece_bert.training import extend_embeddings
    >>> minilm = Tokenizer.from_pretrained("minilm")
    >>> wider = train_vocab(
    ...     ["Nivolumab was given."],
    ...     30_523,
    ...     base=minilm,
    ...     algorithm="top_down",
    ...     lower_thresh=1,
    ... )
    >>> wider.tokens[-1], wider.pieces
    ('nivolumab', {30522: [9152, 6767, 12942, 7875]})
    >>> table = np.arange(30_522, dtype=np.float32)[
    ...     :, None
    ... ]  # as if the vector of a token was its id
    >>> extend_embeddings(table, wider)[-1], float(np.mean(wider.pieces[30_522]))
    (array([9184.], dtype=float32), 9184.0)
    """
    check_instance("embeddings", embeddings, np.ndarray)
    check_instance("vocab", vocab, Vocab)
    if vocab.base_size is None:
        raise InputError("this vocabulary does not extend another: train it with base=, the vocabulary of the model")
    if embeddings.ndim == 0 or len(embeddings) != vocab.base_size:
        raise InputError(
            f"embeddings of shape {embeddings.shape} do not fit the vocabulary that was extended, which had "
            f"{vocab.base_size:,} tokens"
        )
    added = len(vocab) - vocab.base_size
    rows = np.concatenate([embeddings, np.zeros((added, *embeddings.shape[1:]), embeddings.dtype)])
    for token, pieces in vocab.pieces.items():
        if pieces:
            rows[token] = embeddings[pieces].mean(axis=0, dtype=np.float64)
        else:
            # The old vocabulary cannot represent the token at all, so the mean of all rows is the best guess.
            rows[token] = embeddings.mean(axis=0, dtype=np.float64)
    return rows
