"""`fill_mask`: tokens for the mask tokens of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

import numpy as np

from wordpiece_bert._internal.answers import Answers, Results
from wordpiece_bert._internal.batching import encoding_batches
from wordpiece_bert._internal.checks import checked_strings, whole_number
from wordpiece_bert._internal.highest import highest
from wordpiece_bert._internal.texts import one_or_many
from wordpiece_bert._internal.warn import warn
from wordpiece_bert.bert.functional import softmax
from wordpiece_bert.bert.heads.bert import BertForPreTraining
from wordpiece_bert.bert.heads.kinds import MaskedLM
from wordpiece_bert.errors import InputError, VocabWarning
from wordpiece_bert.tasks.inference import encode, finite
from wordpiece_bert.tasks.task_loading import longest_row, with_head

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.tasks.results import FilledMask
    from wordpiece_bert.tasks.task_loading import Source
    from wordpiece_bert.tokenizer.arrow_table import ArrowArray, ArrowStream
    from wordpiece_bert.tokenizer.subword import AnyEncoding, AnyTokenizer

#: The most scores of masks that are in memory at once, 32 MB of float32, or the scores of one mask.
_MOST_SCORES = 1 << 23


class _Options(TypedDict, total=False):
    """The options of `fill_mask` in its overloads."""

    top_k: int
    targets: str | Iterable[str] | None
    batch_size: int


@overload
def fill_mask(  # type: ignore[overload-overlap]
    source: Source, texts: str, **options: Unpack[_Options]
) -> Answers[FilledMask | Any]: ...


@overload
def fill_mask(
    source: Source, texts: Iterable[str] | ArrowArray | ArrowStream, **options: Unpack[_Options]
) -> list[Answers[FilledMask | Any]]: ...


def fill_mask(
    source: Source,
    texts: str | Iterable[str] | ArrowArray | ArrowStream,
    *,
    top_k: int = 5,
    targets: str | Iterable[str] | None = None,
    batch_size: int = 32,
) -> Answers[FilledMask | Any] | list[Answers[FilledMask | Any]]:
    """Replace the mask tokens of texts by likely tokens.

    Parameters
    ----------
    source : Loaded, str or PathLike
        A model with a masked-language head, as `load` returns it, or its name or folder.
    texts : str, iterable of str or Arrow column
        A text with one or more mask tokens, or a list of such texts.
    top_k : int, default 5
        How many tokens to return for each mask.
    targets : str or iterable of str, optional
        The only tokens to choose from. Their scores remain those over the entire vocabulary. A target is a token, or a
        text that is one token, such as "Paris" for a model without capital letters. Any other is replaced by its first
        piece, with a warning.
    batch_size : int, default 32
        The most texts that go through the model at once.

    Returns
    -------
    Answers
        For a text with one mask, dicts with ``score`` (a float), ``token`` (its id), ``token_str`` and ``sequence``
        (the text with the token in it), the highest score first. For a text with several masks, a list of such lists:
        each mask is filled by itself, and the others remain in ``sequence``. For a list of texts, a list of these. The
        attribute ``truncated`` is whether the text was truncated.

    Raises
    ------
    InputError
        A text has no mask token (the message has its index), the model has another head, or an argument is wrong.

    Warns
    -----
    TruncationWarning
        Texts were longer than the model accepts, and were truncated.
    VocabWarning
        A target is not one token of the model.

    Examples
    --------
    >>> from wordpiece_bert.tasks import fill_mask
    >>> fill_mask("models/words", "The capital of France is [MASK].", top_k=1)[0][
    ...     "token_str"
    ... ]
    'paris'
    """
    model: MaskedLM | BertForPreTraining
    model, tokenizer = with_head(source, (MaskedLM, BertForPreTraining), "fill_mask")  # type: ignore[arg-type]
    top_k = whole_number("top_k", top_k, 1)
    batch_size = whole_number("batch_size", batch_size, 1)
    if tokenizer.mask_token_id is None:
        raise InputError("fill_mask needs a tokenizer with a mask token")
    allowed = None if targets is None else _target_ids(tokenizer, targets, model.config.vocab_size)
    single, items = one_or_many(texts, str)
    encodings = encode(tokenizer, items, longest_row(model, tokenizer))
    masks = [np.flatnonzero(np.array(encoding.ids) == tokenizer.mask_token_id) for encoding in encodings]
    for index, encoding in enumerate(encodings):
        if len(masks[index]) == 0:
            where = f" among the {len(encoding)} tokens that are left of it" if encoding.truncated else ""
            raise InputError(f"texts[{index}] has no {tokenizer.mask_token}{where}: {items[index][:80]!r}")
    filled: dict[int, list[list[FilledMask]]] = {index: [] for index in range(len(items))}
    for batch in encoding_batches(encodings, batch_size):
        x = model.base_model(**batch.inputs, visible_only=True).last_hidden_state  # [B, S, H]
        counts = [len(masks[index]) for index in batch.encodings]
        rows = np.repeat(batch.rows, counts)  # [masks]
        positions = np.concatenate([masks[index] for index in batch.encodings])  # [masks]
        scores = (row for logits in token_logits(model, x[rows, positions]) for row in softmax(logits))
        for index, position, row in zip(
            np.repeat(batch.encodings, counts).tolist(), positions.tolist(), scores, strict=True
        ):
            only_mask = len(masks[index]) == 1
            found = _filled(tokenizer, encodings[index], position, row, allowed, top_k, only_mask=only_mask)
            filled[index].append(found)
    result = Results(
        Answers(filled[index][0] if len(filled[index]) == 1 else filled[index], truncated=encoding.truncated)
        for index, encoding in enumerate(encodings)
    )
    return result[0] if single else result


def token_logits(model: MaskedLM | BertForPreTraining, vectors: Array) -> Iterator[Array]:
    """Yield the logits of all tokens for the vectors [masks, H], in blocks [n, V].

    The masks of many texts go through the decoder together, so that its weights are read once for all of them.
    """
    step = max(1, _MOST_SCORES // model.config.vocab_size)
    for start in range(0, len(vectors), step):
        yield finite(model.predict(vectors[start : start + step]))


def _filled(
    tokenizer: AnyTokenizer,
    encoding: AnyEncoding,
    position: int,
    scores: Array,
    allowed: list[int] | None,
    top_k: int,
    *,
    only_mask: bool,
) -> list[FilledMask]:
    """Return the best tokens for the mask at one position; scores [V]."""
    candidates = None if allowed is None else np.array(allowed)
    best = highest(scores, top_k) if candidates is None else candidates[highest(scores[candidates], top_k)]
    filled: list[FilledMask] = []
    for token in map(int, best):
        ids = [*encoding.ids[:position], token, *encoding.ids[position + 1 :]]
        # As in transformers: special tokens are skipped unless the text has further masks, which would be lost.
        sequence = tokenizer.decode([i for i in ids if i != tokenizer.pad_token_id], skip_special_tokens=only_mask)
        filled.append(
            {
                "score": float(scores[token]),
                "token": token,
                "token_str": tokenizer.decode([token], skip_special_tokens=False),
                "sequence": sequence,
            }
        )
    return filled


def _target_ids(tokenizer: AnyTokenizer, targets: str | Iterable[str], vocab_size: int) -> list[int]:
    """Return the ids of the targets, without duplicates."""
    ids = []
    for target in [targets] if isinstance(targets, str) else checked_strings("targets", targets):
        token = target_id(tokenizer, target)
        if token is None:
            pieces = _pieces(tokenizer, target)
            if not pieces:
                warn(f"the target {target!r} has no token at all; it is skipped", VocabWarning)
                continue
            token = pieces[0]
            piece = tokenizer.id_to_token(token)
            message = f"the target {target!r} is not in the vocabulary; its first piece {piece!r} is used instead"
            warn(message, VocabWarning)
        if token >= vocab_size:
            raise InputError(f"the target {target!r} has the id {token}, but the model scores {vocab_size} tokens")
        ids.append(token)
    if not ids:
        raise InputError("targets has no token to choose from")
    return list(dict.fromkeys(ids))


def target_id(tokenizer: AnyTokenizer, target: str) -> int | None:
    """Return the id of a target: of the token with this name, or else the only one of this text; None if it has others.

    The unknown token counts only by its name.
    """
    token = tokenizer.token_to_id(target)
    if token is not None:
        return token
    pieces = _pieces(tokenizer, target)
    return pieces[0] if len(pieces) == 1 and pieces[0] != tokenizer.unk_token_id else None


def _pieces(tokenizer: AnyTokenizer, target: str) -> list[int]:
    return tokenizer.encode(target, add_special_tokens=False, truncation=False, padding=False).ids
