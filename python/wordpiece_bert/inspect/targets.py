"""Which of a model's outputs is explained: a label, an entity, an answer, a word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wordpiece_bert._internal.checks import whole_number
from wordpiece_bert._internal.highest import highest
from wordpiece_bert.bert.heads.kinds import QuestionAnswering, SequenceClassification, TokenClassification
from wordpiece_bert.errors import InputError

if TYPE_CHECKING:
    from wordpiece_bert.bert.base_model import Model
    from wordpiece_bert.bert.functional import Array
    from wordpiece_bert.inspect.outputs import Outputs, Places
    from wordpiece_bert.tokenizer.subword import AnyEncoding, AnyTokenizer

#: How many words a target shows beside the one that is explained.
WORDS = 5
#: The longest answer that is looked for, in tokens.
LONGEST_ANSWER = 30


class Target(NamedTuple):
    """The logits whose sum is explained, and what the model says in their place."""

    name: str
    places: Places
    choices: list[str]
    scores: Array
    chosen: int


def chosen_target(
    model: Model,
    outputs: Outputs,
    tokenizer: AnyTokenizer,
    encoding: AnyEncoding,
    x: Array,
    label: str | int | None,
    token: int | None,
    answer: tuple[int, int] | None,
) -> Target:
    """Return what is explained; `x` is the encoder's output, [1, S, H].

    Raises
    ------
    InputError
        An argument is not for this model, or names nothing that the model has.
    """
    if answer is not None and not isinstance(model, QuestionAnswering):
        raise InputError(f"answer is for a model for question answering, not {type(model).__name__}")
    if isinstance(model, SequenceClassification | QuestionAnswering) and token is not None:
        raise InputError(f"token is for a model with an output for each token, not {type(model).__name__}")
    if isinstance(model, QuestionAnswering):
        if label is not None:
            raise InputError("an answer has no label: pass answer=(first, last)")
        return _answer(outputs, encoding, x, answer)
    if isinstance(model, SequenceClassification):
        scores = outputs.probabilities(outputs.logits(x, [0]))[0, 0]
        labels = [outputs.column(i) for i in range(len(scores))]
        chosen = _label_index(label, labels, scores)
        return Target(labels[chosen], [(0, chosen)], labels, scores, chosen)
    if isinstance(model, TokenClassification):
        return _entity(outputs, encoding, x, label, token)
    place = word_token(tokenizer, encoding, token)
    return _word(outputs, tokenizer, x, place, label, encoding.tokens[place])


def word_token(tokenizer: AnyTokenizer, encoding: AnyEncoding, token: int | None) -> int:
    """Return the position whose word is looked at: `token`, or the first mask.

    Raises
    ------
    InputError
        There is none.
    """
    if token is not None:
        return _position("token", token, len(encoding))
    ids = encoding.ids
    if tokenizer.mask_token_id not in ids:
        raise InputError(f"the text has no {tokenizer.mask_token or 'mask'}: write one, or pass token=, a position")
    return ids.index(tokenizer.mask_token_id)


def _position(name: str, value: int, count: int) -> int:
    return whole_number(name, value, -count, count - 1) % count


def _label_index(label: str | int | None, labels: list[str], scores: Array) -> int:
    if label is None:
        return int(np.argmax(scores))
    if isinstance(label, str) and label in labels:
        return labels.index(label)
    if isinstance(label, int) and not isinstance(label, bool) and 0 <= label < len(labels):
        return label
    raise InputError(f"label must be one of {', '.join(labels)}, or an index below {len(labels)}, not {label!r}")


def _entity(outputs: Outputs, encoding: AnyEncoding, x: Array, label: str | int | None, token: int | None) -> Target:
    length = len(encoding)
    scores = outputs.probabilities(outputs.logits(x, range(length)))[0]  # [S, labels]
    labels = [outputs.column(i) for i in range(scores.shape[1])]
    if token is None:
        # The best entity: of the tokens of a text, the one that is most surely no O, or the surest if all are O.
        texts = [i for i, side in enumerate(encoding.sequence_ids) if side is not None]
        named = [i for i in texts if labels[int(scores[i].argmax())] != "O"] or texts or list(range(length))
        column = None if label is None else _label_index(label, labels, scores[0])
        at = scores.max(axis=1) if column is None else scores[:, column]
        place = max(named if column is None else texts or named, key=lambda i: float(at[i]))
    else:
        place = _position("token", token, length)
    chosen = _label_index(label, labels, scores[place])
    name = f"{labels[chosen]} at {encoding.tokens[place]}"
    return Target(name, [(place, chosen)], labels, scores[place], chosen)


def _word(
    outputs: Outputs, tokenizer: AnyTokenizer, x: Array, place: int, label: str | int | None, there: str
) -> Target:
    scores = outputs.probabilities(outputs.logits(x, [place]))[0, 0]  # [V]
    best = highest(scores, WORDS).tolist()
    if label is None:
        wanted = best[0]
    elif isinstance(label, str):
        found = tokenizer.token_to_id(label)
        if found is None:
            raise InputError(f"the vocabulary has no token {label!r}: label must be one, or its id")
        wanted = found
    else:
        wanted = whole_number("label", label, 0, len(scores) - 1)
    shown = best if wanted in best else [*best, wanted]
    words = [outputs.column(i) for i in shown]
    name = f"{outputs.column(wanted)} at {there}"
    return Target(name, [(place, wanted)], words, scores[shown], shown.index(wanted))


def _answer(outputs: Outputs, encoding: AnyEncoding, x: Array, answer: tuple[int, int] | None) -> Target:
    length, tokens = len(encoding), encoding.tokens
    logits = outputs.logits(x, range(length))  # [1, S, 2]
    p = outputs.probabilities(logits)[0]
    if answer is None:
        sides = encoding.sequence_ids
        texts = [i for i, side in enumerate(sides) if side == 1] or [i for i, s in enumerate(sides) if s is not None]
        spans = [(i, j) for i in texts for j in texts if i <= j < i + LONGEST_ANSWER]
        if not spans:
            raise InputError("the text has no token that could be an answer")
        first, last = max(spans, key=lambda span: float(logits[0, span[0], 0] + logits[0, span[1], 1]))
    else:
        ends: Any = answer
        if not isinstance(ends, tuple | list) or len(ends) != 2:
            raise InputError(f"answer must be the first and the last token, (first, last), not {answer!r}")
        first, last = (_position("answer", value, length) for value in ends)
    choices = [f"starts at {tokens[first]}", f"ends at {tokens[last]}"]
    name = " ".join(tokens[first : last + 1]) if first <= last else f"{tokens[first]} … {tokens[last]}"
    return Target(name, [(first, 0), (last, 1)], choices, np.array([p[first, 0], p[last, 1]], np.float32), 0)
