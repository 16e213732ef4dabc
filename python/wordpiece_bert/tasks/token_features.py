"""`feature_extraction`: vectors of tokens or words from the layers of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

import numpy as np

from wordpiece_bert._internal.answers import Results
from wordpiece_bert._internal.batching import encoding_batches
from wordpiece_bert._internal.checks import checked_choice, finite_number, whole_number
from wordpiece_bert._internal.texts import one_or_many
from wordpiece_bert.bert.base_model import Model
from wordpiece_bert.bert.heads.head_model import HeadModel
from wordpiece_bert.bert.model import BertModel
from wordpiece_bert.errors import InputError
from wordpiece_bert.sentence.dense.body import TokenVectors
from wordpiece_bert.tasks.inference import encode
from wordpiece_bert.tasks.task_loading import longest_row, with_head

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wordpiece_bert._core import Encoding
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.tasks.task_loading import Source
    from wordpiece_bert.tokenizer.arrow_table import ArrowArray, ArrowStream

Choice = Literal[
    "embeddings",
    "second_to_last_hidden",
    "last_hidden",
    "weighted_sum_last_four",
    "concat_last_four",
    "weighted_sum_all",
]

#: The combinations of layers that the BERT paper compares (Devlin et al. 2019, table 7), in its order.
FEATURE_CHOICES: tuple[Choice, ...] = (
    "embeddings",
    "second_to_last_hidden",
    "last_hidden",
    "weighted_sum_last_four",
    "concat_last_four",
    "weighted_sum_all",
)


class _Options(TypedDict, total=False):
    """The options of `feature_extraction` in its overloads."""

    weights: Sequence[float] | None
    words: Literal["first", "mean"] | None
    batch_size: int


@overload
def feature_extraction(  # type: ignore[overload-overlap]
    source: Source,
    texts: str,
    choice: Choice = "last_hidden",
    *,
    is_split_into_words: Literal[False] = False,
    **options: Unpack[_Options],
) -> TokenVectors: ...


@overload
def feature_extraction(
    source: Source,
    texts: Iterable[str] | ArrowArray | ArrowStream,
    choice: Choice = "last_hidden",
    *,
    is_split_into_words: Literal[False] = False,
    **options: Unpack[_Options],
) -> list[TokenVectors]: ...


@overload
def feature_extraction(
    source: Source,
    texts: Iterable[str] | Iterable[Sequence[str]],
    choice: Choice = "last_hidden",
    *,
    is_split_into_words: bool,
    **options: Unpack[_Options],
) -> TokenVectors | list[TokenVectors] | Any: ...


def feature_extraction(
    source: Source,
    texts: str | Iterable[str] | Iterable[Sequence[str]] | ArrowArray | ArrowStream,
    choice: Choice = "last_hidden",
    *,
    weights: Sequence[float] | None = None,
    words: Literal["first", "mean"] | None = None,
    is_split_into_words: bool = False,
    batch_size: int = 32,
) -> TokenVectors | list[TokenVectors] | Any:
    """Compute vectors of tokens or words with a model that is not fine-tuned: the feature-based approach.

    Parameters
    ----------
    source : Loaded, str or PathLike
        Any model, as `load` returns it, or its name or folder.
    texts : str, iterable of str, iterable of sequence of str or Arrow column
        A text, or a list of texts.
    choice : str, default "last_hidden"
        How to combine the layers h₀ (the embeddings) to h_L: ``"embeddings"`` h₀, ``"second_to_last_hidden"`` h_{L−1},
        ``"last_hidden"`` h_L, ``"weighted_sum_last_four"`` Σ wᵢ·hᵢ over the last four, ``"concat_last_four"`` the last
        four concatenated, h_{L−3} first, ``"weighted_sum_all"`` Σ wᵢ·hᵢ over h₁ to h_L.
    weights : sequence of float, optional
        wᵢ, one for each layer of a sum; 1 by default.
    words : {"first", "mean"}, optional
        None returns a vector for each token, special tokens included. ``"first"`` or ``"mean"`` returns one for each
        word: the vector of its first piece, as in the paper, or the mean over its pieces.
    is_split_into_words : bool, default False
        Whether each text is a list of words; offsets then count from the start of each word.
    batch_size : int, default 32
        The most texts that go through the model at once.

    Returns
    -------
    TokenVectors
        The vectors, and the tokens or words that they belong to; for a list of texts, a list of these.

    Raises
    ------
    InputError
        The model has too few layers for the choice, or an argument is wrong.

    Warns
    -----
    TruncationWarning
        Texts were longer than the model accepts, and were truncated.

    Examples
    --------
    >>> from wordpiece_bert.tasks import feature_extraction
    >>> feature_extraction("models/sentences", "the bread").vectors.shape
    (4, 67)
    """
    model, tokenizer = with_head(source, Model, "feature_extraction")
    base = model.base_model if isinstance(model, HeadModel) else model
    assert isinstance(base, BertModel)
    batch_size = whole_number("batch_size", batch_size, 1)
    if words is not None:
        checked_choice("words", words, ("first", "mean"), "None, ")
    factors = _factors(choice, weights, base.config.encoder_layers)
    single, items = _check_texts(texts, split=is_split_into_words)
    encodings = encode(tokenizer, items, longest_row(base, tokenizer), is_split_into_words=is_split_into_words)
    found: dict[int, TokenVectors] = {}
    for batch in encoding_batches(encodings, batch_size):
        states = base(**batch.inputs, output_hidden_states=True).hidden_states
        assert states is not None
        x = _combined(states, choice, factors)  # [B, S, width]
        for index, row in zip(batch.encodings.tolist(), batch.rows.tolist(), strict=True):
            encoding = encodings[index]
            vectors = x[row, : len(encoding)]  # [tokens, width]
            if words is None:
                found[index] = _of_tokens(vectors, encoding)
            else:
                found[index] = _of_words(vectors, encoding, items[index], words)
    result = Results(found[index] for index in range(len(items)))
    return result[0] if single else result


def _check_texts(texts: Any, *, split: bool) -> tuple[bool, list[Any]]:
    """Return whether it is a single text, and the texts: str, or lists of words if they are split."""
    if not split:
        return one_or_many(texts, str)
    single, items = one_or_many(texts)
    return (True, [items]) if items and all(isinstance(item, str) for item in items) else (single, items)


def _factors(choice: Choice, weights: Sequence[float] | None, layers: int) -> Array | None:
    """Return the factor of each layer of a sum, the last layer's last; None for choices that are not a sum."""
    checked_choice("choice", choice, tuple(FEATURE_CHOICES))
    if choice.endswith("last_four") and layers < 4:
        raise InputError(f"{choice} needs 4 layers, and the model has {layers}")
    if not choice.startswith("weighted_sum"):
        if weights is not None:
            raise InputError(f"weights are for the weighted sums, not for {choice}")
        return None
    count = layers if choice == "weighted_sum_all" else 4
    given = [1.0] * count if weights is None else [finite_number("weights", weight) for weight in weights]
    factors = np.array(given, np.float32)
    if factors.shape != (count,):
        raise InputError(
            f"weights must be {count} numbers for {choice} with this model, not of shape {list(factors.shape)}"
        )
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


def _of_tokens(vectors: Array, encoding: Encoding) -> TokenVectors:
    return TokenVectors(vectors.copy(), list(encoding.offsets), list(encoding.tokens), encoding.truncated)


def _of_words(vectors: Array, encoding: Encoding, text: Any, how: str) -> TokenVectors:
    """One vector for each word: the vector of its first piece, or the mean over its pieces that truncation kept."""
    pieces: dict[int, list[int]] = {}  # by word, the positions of its tokens
    for position, word in enumerate(encoding.word_ids):
        if word is not None:
            pieces.setdefault(word, []).append(position)
    rows = [vectors[tokens[0]] if how == "first" else vectors[tokens].mean(axis=0) for tokens in pieces.values()]
    spans = [(encoding.offsets[tokens[0]][0], encoding.offsets[tokens[-1]][1]) for tokens in pieces.values()]
    split = not isinstance(text, str)
    names = [(text[word] if split else text)[start:end] for word, (start, end) in zip(pieces, spans, strict=True)]
    stacked = np.stack(rows) if rows else np.zeros((0, vectors.shape[1]), np.float32)
    return TokenVectors(stacked, spans, names, encoding.truncated)
