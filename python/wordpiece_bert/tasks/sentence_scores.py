"""`score_sentences`: how likely a masked-language model finds texts, by masking each token (Salazar et al. 2020)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import numpy as np

from wordpiece_bert._internal.answers import Answer, Results
from wordpiece_bert._internal.batching import ModelInputs
from wordpiece_bert._internal.checks import whole_number
from wordpiece_bert._internal.texts import one_or_many
from wordpiece_bert.bert.heads.bert import BertForPreTraining
from wordpiece_bert.bert.heads.kinds import MaskedLM
from wordpiece_bert.errors import InputError
from wordpiece_bert.tasks.inference import encode
from wordpiece_bert.tasks.mask_filling import token_logits
from wordpiece_bert.tasks.task_loading import longest_row, with_head

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.tasks.task_loading import Source
    from wordpiece_bert.tokenizer.arrow_table import ArrowArray, ArrowStream
    from wordpiece_bert.tokenizer.subword import AnyEncoding


class _Options(TypedDict, total=False):
    """The options of `score_sentences` in its overloads."""

    batch_size: int


@overload
def score_sentences(  # type: ignore[overload-overlap]
    source: Source, texts: str, **options: Unpack[_Options]
) -> Answer: ...


@overload
def score_sentences(
    source: Source, texts: Iterable[str] | ArrowArray | ArrowStream, **options: Unpack[_Options]
) -> list[Answer]: ...


def score_sentences(
    source: Source, texts: str | Iterable[str] | ArrowArray | ArrowStream, *, batch_size: int = 32
) -> Answer | list[Answer]:
    """Score texts by their pseudo-log-likelihood under a masked-language model.

    Each token is masked in turn, and the logarithms of the probabilities that the model gives the right tokens are
    added up (Salazar et al. 2020): the less negative the sum, the more likely the text. A text of n tokens goes through
    the model n times.

    Parameters
    ----------
    source : Loaded, str or PathLike
        What `fill_mask` takes: a model, or its name or folder.
    texts : str, iterable of str or Arrow column
        A text, or a list of texts.
    batch_size : int, default 32
        The most rows that go through the model at once. A row is a text with one token masked.

    Returns
    -------
    Answer
        A dict with ``score``, the sum of natural logarithms; ``perplexity``, which the number of tokens does not
        change: the exponential of the negative mean; ``tokens``, and their ``scores``, of which the first is the sum.
        For a list of texts, a list of these. Special tokens around a text and masks in it have no score. The attribute
        ``truncated`` is whether the text was truncated.

    Raises
    ------
    InputError
        The model has another head or the tokenizer no mask token, or an argument is wrong.

    Warns
    -----
    TruncationWarning
        Texts were longer than the model accepts, and were truncated.

    Notes
    -----
    The perplexity of a corpus is ``exp(-sum(scores) / tokens)`` over all of its tokens. A text without tokens has the
    score 0 and the perplexity 1. The later pieces of a word tell the model much about the earlier ones, so that a rare
    word of several pieces may have a high score.

    References
    ----------
    J. Salazar, D. Liang, T. Nguyen, K. Kirchhoff: Masked Language Model Scoring. ACL 2020.

    Examples
    --------
    >>> from wordpiece_bert.tasks import score_sentences
    >>> right, wrong = score_sentences(
    ...     "models/words", ["The capital of France is Paris.", "The capital of France is."]
    ... )
    >>> right["tokens"]
    ['the', 'capital', 'of', 'france', 'is', 'paris', '.']
    >>> right["perplexity"] < wrong["perplexity"]
    True
    """
    model: MaskedLM | BertForPreTraining
    model, tokenizer = with_head(source, (MaskedLM, BertForPreTraining), "score_sentences")  # type: ignore[arg-type]
    batch_size = whole_number("batch_size", batch_size, 1)
    mask = tokenizer.mask_token_id
    if mask is None:
        raise InputError("score_sentences needs a tokenizer with a mask token")
    single, items = one_or_many(texts, str)
    encodings = encode(tokenizer, items, longest_row(model, tokenizer))
    scored = [_scored(encoding, mask) for encoding in encodings]
    scores = [np.zeros(len(positions), np.float64) for positions in scored]
    for rows, inputs in _masked_rows(encodings, scored, mask, batch_size):
        x = model.base_model(**inputs, visible_only=True).last_hidden_state  # [B, S, H]
        places = [scored[index][number] for index, number in rows]
        logits = itertools.chain.from_iterable(token_logits(model, x[np.arange(len(rows)), places]))
        for (index, number), place, row in zip(rows, places, logits, strict=True):
            scores[index][number] = _log_probability(row, encodings[index].ids[place])
    result = Results(
        _answer(encoding, positions, own) for encoding, positions, own in zip(encodings, scored, scores, strict=True)
    )
    return result[0] if single else result


def _scored(encoding: AnyEncoding, mask: int) -> npt.NDArray[np.intp]:
    """Return the positions of the tokens that have a score."""
    special = np.array(encoding.special_tokens_mask, np.bool_)
    return np.flatnonzero(~special & (np.array(encoding.ids) != mask))


def _masked_rows(
    encodings: Sequence[AnyEncoding], scored: list[npt.NDArray[np.intp]], mask: int, size: int
) -> Iterator[tuple[list[tuple[int, int]], ModelInputs]]:
    """Yield batches of rows, each with one token masked: of which text, the number of the token, and the inputs.

    Long texts come first, so that the rows of a batch are about equally long.
    """
    order = sorted(range(len(encodings)), key=lambda index: -len(encodings[index]))
    rows = ((index, number) for index in order for number in range(len(scored[index])))
    while batch := list(itertools.islice(rows, size)):
        shape = len(batch), len(encodings[batch[0][0]])
        inputs = ModelInputs(
            input_ids=np.zeros(shape, np.int64),
            attention_mask=np.zeros(shape, np.int64),
            token_type_ids=np.zeros(shape, np.int64),
        )
        for row, (index, number) in enumerate(batch):
            encoding = encodings[index]
            n = len(encoding)
            inputs["input_ids"][row, :n] = encoding.ids
            inputs["input_ids"][row, scored[index][number]] = mask
            inputs["token_type_ids"][row, :n] = encoding.token_type_ids
            inputs["attention_mask"][row, :n] = 1
        yield batch, inputs


def _log_probability(logits: Array, token: int) -> float:
    """Return the logarithm of the probability of a token; logits [V]."""
    largest = logits.max()
    return float(logits[token] - largest) - float(np.log(np.exp(logits - largest).sum(dtype=np.float64)))


def _answer(encoding: AnyEncoding, positions: npt.NDArray[np.intp], scores: npt.NDArray[np.float64]) -> Answer:
    with np.errstate(over="ignore"):
        perplexity = float(np.exp(-scores.mean())) if len(scores) else 1.0
    found: dict[str, Any] = {
        "score": float(scores.sum()),
        "perplexity": perplexity,
        "tokens": [encoding.tokens[place] for place in positions],
        "scores": scores.tolist(),
    }
    return Answer(found, truncated=encoding.truncated)
