"""Words for masked places."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert.bert.functional import softmax
from wordpiece_bert.bert.heads.bert import BertForPreTraining
from wordpiece_bert.bert.heads.tasks import MaskedLM
from wordpiece_bert.errors import InputError, VocabWarning
from wordpiece_bert.model_inputs import batches
from wordpiece_bert.results import Answers
from wordpiece_bert.tasks.common import encode, longest, one_or_many, with_head

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wordpiece_bert._core import Encoding
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.tasks.common import Source
    from wordpiece_bert.tokenizer import Tokenizer

__all__ = ["fill_mask"]


def fill_mask(
    source: Source,
    texts: Any,  # noqa: ANN401
    *,
    top_k: int = 5,
    targets: str | Iterable[str] | None = None,
    batch_size: int = 32,
) -> Any:  # noqa: ANN401
    """Fill in the mask tokens of texts.

    Parameters
    ----------
    source
        What `load` gives for a model with a masked-language head, or its name or folder.
    texts
        A text with one or more mask tokens, or a list of such texts.
    top_k
        How many tokens to give for each mask.
    targets
        Tokens to choose among; their scores are those over the whole vocabulary. One that is not in the vocabulary is
        replaced by its first piece, with a warning.
    batch_size
        How many texts go through the model at once.

    Returns
    -------
    Answers
        For a text with one mask, dicts with ``score`` (a float), ``token`` (its id), ``token_str`` and ``sequence``
        (the text with the token in it), the best first. For a text with several masks a list of such lists, each mask
        filled alone, with the others left in ``sequence``. For a list of texts a list. ``truncated`` tells whether the
        text was cut.

    Raises
    ------
    InputError
        A text has no mask (the message has its index), the model has another head, or an argument is wrong.

    Warns
    -----
    TruncationWarning
        Texts were cut at the longest row of the model.
    VocabWarning
        A target is not in the vocabulary.
    """
    model: MaskedLM | BertForPreTraining
    model, tokenizer = with_head(source, (MaskedLM, BertForPreTraining), "fill_mask")  # type: ignore[arg-type]
    if type(top_k) is not int or top_k < 1:
        message = f"top_k must be an integer, 1 or more, not {top_k!r}"
        raise InputError(message)
    if tokenizer.mask_token_id is None:
        message = "fill_mask needs a tokenizer with a mask token"
        raise InputError(message)
    chosen = None if targets is None else _target_ids(tokenizer, targets, model.config.vocab_size)
    single, items = one_or_many(texts, str)
    encodings = encode(tokenizer, items, longest(model, tokenizer))
    places = [np.flatnonzero(np.array(encoding.ids) == tokenizer.mask_token_id) for encoding in encodings]
    for index, (encoding, masks) in enumerate(zip(encodings, places, strict=True)):
        if len(masks) == 0:
            where = f" among the {len(encoding)} tokens that are left of it" if encoding.truncated else ""
            message = f"texts[{index}] has no {tokenizer.mask_token}{where}: {items[index][:80]!r}"
            raise InputError(message)
    answers: dict[int, Answers] = {}
    for rows, inputs in batches(encodings, batch_size):
        x = model.base_model(**inputs, visible_only=True).last_hidden_state  # [B, S, H]
        for place, row in enumerate(rows):
            scores = softmax(model.predict(x[place, places[row]]))  # [masks, V]
            filled = [
                _filled(tokenizer, encodings[row], int(at), values, chosen, top_k, alone=len(places[row]) == 1)
                for at, values in zip(places[row], scores, strict=True)
            ]
            answers[row] = Answers(filled[0] if len(filled) == 1 else filled, truncated=encodings[row].truncated)
    result = [answers[row] for row in range(len(items))]
    return result[0] if single else result


def _filled(
    tokenizer: Tokenizer,
    encoding: Encoding,
    at: int,
    scores: Array,
    chosen: list[int] | None,
    top_k: int,
    *,
    alone: bool,
) -> list[dict[str, Any]]:
    """Return the best tokens for one mask."""
    among = np.arange(len(scores)) if chosen is None else np.array(chosen)
    best = among[np.argsort(-scores[among], kind="stable")[:top_k]]
    found = []
    for token in map(int, best):
        ids = [*encoding.ids[:at], token, *encoding.ids[at + 1 :]]
        # As in transformers: special tokens are left out, but for a text with several masks, which would lose the
        # others.
        sequence = tokenizer.decode([i for i in ids if i != tokenizer.pad_token_id], skip_special_tokens=alone)
        score = float(scores[token])
        found.append(
            {
                "score": score,
                "token": token,
                "token_str": tokenizer.decode([token], skip_special_tokens=False),
                "sequence": sequence,
            }
        )
    return found


def _target_ids(tokenizer: Tokenizer, targets: str | Iterable[str], vocab_size: int) -> list[int]:
    """Return the ids of the targets, each once."""
    ids = []
    for target in [targets] if isinstance(targets, str) else targets:
        if not isinstance(target, str):
            message = f"targets must be str, not {type(target).__name__}: {target!r}"
            raise InputError(message)
        token = tokenizer.token_to_id(target)
        if token is None:
            pieces = tokenizer.encode(target, add_special_tokens=False, truncation=False, padding=False).ids
            if not pieces:
                warnings.warn(f"the target {target!r} has no token at all; it is left out", VocabWarning, stacklevel=3)
                continue
            token = pieces[0]
            piece = tokenizer.id_to_token(token)
            message = f"the target {target!r} is not in the vocabulary; its first piece stands for it: {piece!r}"
            warnings.warn(message, VocabWarning, stacklevel=3)
        if token >= vocab_size:
            message = f"the target {target!r} has the id {token}, but the model scores {vocab_size} tokens"
            raise InputError(message)
        ids.append(token)
    if not ids:
        message = "targets has no token to choose among"
        raise InputError(message)
    return list(dict.fromkeys(ids))
