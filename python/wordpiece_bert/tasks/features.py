"""Vectors of tokens or words, out of the layers of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from wordpiece_bert.bert.base import Model
from wordpiece_bert.bert.heads.base import HeadModel
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.errors import InputError
from wordpiece_bert.model_inputs import batches
from wordpiece_bert.tasks.common import encode, longest, one_or_many, with_head

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wordpiece_bert._core import Encoding
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.tasks.common import Source

__all__ = ["FEATURE_CHOICES", "Features", "feature_extraction"]

Choice = Literal[
    "embeddings",
    "second_to_last_hidden",
    "last_hidden",
    "weighted_sum_last_four",
    "concat_last_four",
    "weighted_sum_all",
]

#: The ways to combine layers that the BERT paper compares (Devlin et al. 2019, table 7), in its order.
FEATURE_CHOICES: tuple[Choice, ...] = (
    "embeddings",
    "second_to_last_hidden",
    "last_hidden",
    "weighted_sum_last_four",
    "concat_last_four",
    "weighted_sum_all",
)


@dataclass(frozen=True, eq=False)
class Features:
    """The vectors of one text."""

    #: One vector a token or word, float32 [n, H]; [n, 4·H] for ``"concat_last_four"``.
    vectors: Array
    #: Where each token or word stands in the text: characters (start, end); (0, 0) for special tokens.
    offsets: list[tuple[int, int]]
    #: The tokens, or the words as they stand in the text.
    tokens: list[str]
    #: Whether the text was longer than the model takes, and was cut.
    truncated: bool


def feature_extraction(
    source: Source,
    texts: Any,  # noqa: ANN401
    choice: Choice = "last_hidden",
    *,
    weights: Sequence[float] | None = None,
    words: Literal["first", "mean"] | None = None,
    is_split_into_words: bool = False,
    batch_size: int = 32,
) -> Any:  # noqa: ANN401
    """Take the vectors of tokens or words out of a model that is not trained further.

    Parameters
    ----------
    source
        What `load` gives for any model, or its name or folder.
    texts
        A text, or a list of texts.
    choice
        Which layers, h₀ (the embeddings) to h_L: ``"embeddings"`` h₀, ``"second_to_last_hidden"`` h_{L−1},
        ``"last_hidden"`` h_L, ``"weighted_sum_last_four"`` Σ wᵢ·hᵢ over the last four, ``"concat_last_four"`` the last
        four side by side, h_{L−3} first, ``"weighted_sum_all"`` Σ wᵢ·hᵢ over h₁ to h_L.
    weights
        wᵢ, one for each layer of a sum; 1 by default.
    words
        None for a vector for each token, special ones included. ``"first"`` or ``"mean"`` for one for each word: that
        of its first piece, as in the paper, or the mean over its pieces.
    is_split_into_words
        Whether each text is a list of words; offsets then begin anew in each word.
    batch_size
        How many texts go through the model at once.

    Returns
    -------
    Features
        The vectors, and what they stand for; a list of these for a list of texts.

    Raises
    ------
    InputError
        The model has too few layers for the choice, or an argument is wrong.

    Warns
    -----
    TruncationWarning
        Texts were cut at the longest row of the model.
    """
    model, tokenizer = with_head(source, Model, "feature_extraction")
    base = model.base_model if isinstance(model, HeadModel) else model
    assert isinstance(base, BertModel)
    if words not in (None, "first", "mean"):
        message = f"words must be None, 'first' or 'mean', not {words!r}"
        raise InputError(message)
    factors = _factors(choice, weights, base.config.encoder_layers)
    single, items = _one_or_many(texts, split=is_split_into_words)
    encodings = encode(tokenizer, items, longest(base, tokenizer), is_split_into_words=is_split_into_words)
    found: dict[int, Features] = {}
    for rows, inputs in batches(encodings, batch_size):
        states = base(**inputs, output_hidden_states=True).hidden_states
        assert states is not None
        x = _combined(states, choice, factors)  # [B, S, width]
        for place, row in enumerate(rows):
            vectors = x[place, : len(encodings[row])]
            text = items[row]
            found[row] = (
                _by_token(vectors, encodings[row]) if words is None else _by_word(vectors, encodings[row], text, words)
            )
    result = [found[row] for row in range(len(items))]
    return result[0] if single else result


def _one_or_many(texts: Any, *, split: bool) -> tuple[bool, list[Any]]:  # noqa: ANN401
    if not split:
        return one_or_many(texts, str)
    single, items = one_or_many(texts)
    return (True, [items]) if items and all(isinstance(item, str) for item in items) else (single, items)


def _factors(choice: Choice, weights: Sequence[float] | None, layers: int) -> Array | None:
    """Return the factor of each layer of a sum, the last one last; None for choices that are no sum."""
    if choice not in FEATURE_CHOICES:
        message = f"choice must be one of {', '.join(FEATURE_CHOICES)}, not {choice!r}"
        raise InputError(message)
    if choice.endswith("last_four") and layers < 4:
        message = f"{choice} needs 4 layers, and the model has {layers}"
        raise InputError(message)
    if not choice.startswith("weighted_sum"):
        if weights is not None:
            message = f"weights are for the weighted sums, not for {choice}"
            raise InputError(message)
        return None
    count = layers if choice == "weighted_sum_all" else 4
    factors = np.ones(count, np.float32) if weights is None else np.asarray(weights, np.float32)
    if factors.shape != (count,):
        message = f"weights must be {count} numbers for {choice} here, not of shape {list(factors.shape)}"
        raise InputError(message)
    return factors


def _combined(states: tuple[Array, ...], choice: Choice, factors: Array | None) -> Array:
    """L + 1 arrays [B, S, H] -> [B, S, H], or [B, S, 4·H] for a concatenation."""
    if factors is not None:
        x = np.zeros_like(states[0])
        for factor, state in zip(factors, states[-len(factors) :], strict=True):
            x += factor * state
        return x
    if choice == "concat_last_four":
        return np.concatenate(states[-4:], axis=-1)
    return states[{"embeddings": 0, "second_to_last_hidden": -2, "last_hidden": -1}[choice]]


def _by_token(vectors: Array, encoding: Encoding) -> Features:
    return Features(np.ascontiguousarray(vectors), list(encoding.offsets), list(encoding.tokens), encoding.truncated)


def _by_word(vectors: Array, encoding: Encoding, text: Any, how: str) -> Features:  # noqa: ANN401
    """One vector a word: of its first piece, or the mean over those of its pieces that are left."""
    pieces: dict[int, list[int]] = {}
    for place, word in enumerate(encoding.word_ids):
        if word is not None:
            pieces.setdefault(word, []).append(place)
    rows = [vectors[places[0]] if how == "first" else vectors[places].mean(axis=0) for places in pieces.values()]
    spans = [(encoding.offsets[places[0]][0], encoding.offsets[places[-1]][1]) for places in pieces.values()]
    split = not isinstance(text, str)
    names = [(text[word] if split else text)[start:end] for word, (start, end) in zip(pieces, spans, strict=True)]
    made = np.stack(rows) if rows else np.zeros((0, vectors.shape[1]), np.float32)
    return Features(made, spans, names, encoding.truncated)
